"""Train a model on a treebank.

Usage:
  tsgkit train [options] --output=MODEL TREEBANK...
  tsgkit train -h | --help | --version

A TREEBANK is as for `tsgkit prepare`, or one corpus that it wrote as arrays (.npz), which is then taken
as it is.

Options:
  -o MODEL, --output=MODEL  the file to write
  --model=KIND             cfg: relative frequencies of the rules of the binarised trees [default: cfg]
  --format=FORMAT          of the input: auto, brackets or export [default: auto]
  --encoding=NAME          of the input [default: utf-8]
  --nfc                    bring text to Unicode's normal form C
  --skip-bad               leave out what is not a tree, and list it, instead of stopping

Cleaning:
  --keep-functions         keep function tags and indices (NP-SBJ-1)
  --keep-empty             keep traces and other empty nodes
  --empty-tags=TAGS        tags of empty words, separated by commas [default: -NONE-]
  --keep-repeats           keep X over X
  --collapse-unaries       join chains of phrases with one child (S+VP)
  --root=LABEL             the root that every tree gets [default: TOP]

Binarisation:
  --binarize=METHOD        right, left or centre-head [default: right]
  --horizontal=N           siblings that an intermediate symbol remembers, or all [default: 1]
  --vertical=N             1: labels as they are; 2: with the parent's; ... [default: 2]
  --heads=RULES            for centre-head: penn, leftmost, rightmost or a file [default: penn]

Rare words:
  --unknown=MODEL          signature (English), three, one or unicode (any language) [default: unicode]
  --threshold=N            words seen at most N times are replaced by their class [default: 1]

Other:
  -q, --quiet              no progress and no remarks
  -h, --help               this text
  --version                the version
"""

import sys
import time
from typing import Any

from tsgkit.cli import choice, command, parse_arguments
from tsgkit.errors import TreebankError, UsageError
from tsgkit.models.cfg import cfg_model
from tsgkit.options import binarization_of, cleaning_of, unknown_of
from tsgkit.progress import progress
from tsgkit.treebank import Binarization, FlatCorpus, Lexicon, UnknownWords, prepare, read_trees
from tsgkit.treebank.prepare import preparation_of
from tsgkit.treebank.sources import READ_FORMATS, report_skipped

MODELS = ("cfg",)


def corpus_of(arguments: dict[str, Any]) -> FlatCorpus:
    """The prepared corpus of the command line's treebanks."""
    sources = arguments["TREEBANK"]
    if any(source.endswith(".npz") for source in sources):
        if len(sources) > 1:
            raise UsageError("a prepared corpus (.npz) stands alone: it has its own vocabulary")
        corpus = FlatCorpus.load(sources[0])
        preparation = preparation_of(corpus)
        require_both(preparation.binarization, preparation.lexicon)
        return corpus
    binarization, unknown = binarization_of(arguments), unknown_of(arguments)
    require_both(binarization, unknown)
    skipped: list[TreebankError] | None = [] if arguments["--skip-bad"] else None
    trees = read_trees(
        sources,
        format=choice(arguments, "--format", READ_FORMATS),
        skipped=skipped,
        nfc=arguments["--nfc"],
        encoding=arguments["--encoding"],
    )
    counted = progress(trees, "reading", "trees", quiet=arguments["--quiet"])
    corpus = prepare(counted, cleaning_of(arguments), binarization, unknown)
    report_skipped(skipped)
    return corpus


def require_both(binarization: Binarization | None, unknown: UnknownWords | Lexicon | None) -> None:
    if binarization is None or unknown is None:
        raise UsageError(
            "a model needs binarised trees and classes for unknown words: --binarize and --unknown, here or"
            " where the corpus was prepared"
        )


@command
def main(argv: list[str]) -> int:
    arguments = parse_arguments(__doc__, argv)
    choice(arguments, "--model", MODELS)
    started = time.perf_counter()
    corpus = corpus_of(arguments)
    model = cfg_model(corpus)
    model.info = {"trees": corpus.n_trees, "tokens": corpus.n_tokens}
    model.save(arguments["--output"])
    if not arguments["--quiet"]:
        grammar = model.grammar
        print(
            f"{arguments['--output']}: {corpus.n_trees} trees, {corpus.n_tokens} tokens,"
            f" {len(grammar.labels)} labels, {grammar.n_rules} rules, {time.perf_counter() - started:.1f} s",
            file=sys.stderr,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
