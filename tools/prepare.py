"""Read a treebank, clean it, binarise it, replace rare words, split it, and write it.

Usage:
  tsgkit prepare [options] TREEBANK...
  tsgkit prepare --list-presets
  tsgkit prepare -h | --help | --version

A TREEBANK is a file (plain, gzip or xz), a folder, a glob pattern, - for stdin, nltk:NAME for an NLTK
corpus, or village, village:train, village:dev, village:test for the bundled treebank.

Options:
  -o FILE, --output=FILE   where to write; a file in .gz or .xz is compressed, one in .npz is the flat
                           corpus as arrays [default: -]
  --format=FORMAT          of the input: {readers} [default: auto]
  --write=FORMAT           of the output: {writers};
                           line has one tree per line, words only their words, conllu their dependencies by the rules
                           of --heads [default: line]
  --treebank=NAME          a preset: format, encoding, cleaning, heads and evaluation of a treebank such as penn, tiger,
                           cess; or a file in the same form (--list-presets); options that are given win
  --list-presets           print the presets and their sources
  --encoding=NAME          of the input; utf-8 unless a preset or an XML file names another
  --nfc                    normalise text to Unicode's form C
  --unescape               replace words like -LRB- by the brackets they stand for
  --continuous             make discontinuous trees continuous, instead of stopping
  --skip-bad               skip and list what is not a tree, instead of stopping
  --max-bad=SHARE          with --skip-bad, fail if a larger share of the trees is bad [default: 0.05]
  --list-bad=FILE          with --skip-bad, list what was skipped in this file; unless given, the first 20 of each kind
                           are printed

Cleaning (all steps but unary chains and features are on by default):
  --labels=FILE            rules that rename, splice or drop labels, before all other steps
  --restore-labels=MODEL   give the trees of a parser the labels that --labels or a preset renamed, where this is
                           possible, and do nothing else
  --cut-labels=MARK        remove features from all labels, tags included: what follows this mark
  --keep-functions         keep function tags and indices (NP-SBJ-1)
  --keep-empty             keep traces and other empty nodes
  --empty-tags=TAGS        tags of empty words, separated by commas (default: -NONE-)
  --keep-repeats           keep X over X
  --collapse-unaries       merge unary chains of phrases (S+VP)
  --root=LABEL             the root that every tree gets; none adds none (default: TOP)

Binarisation:
  --binarize=METHOD        none, right, left or centre-head [default: none]
  --horizontal=N           horizontal markovisation: siblings that an intermediate symbol names, or all [default: all]
  --vertical=N             vertical markovisation: 1 plain labels, 2 with the label of the parent, ... [default: 1]
  --heads=RULES            for centre-head and conllu: penn, leftmost, rightmost, another preset or a file (default:
                           those of --treebank, or penn)
  --debinarize             undo a binarisation with these options instead of applying it

Rare words:
  --unknown=MODEL          none, {unknown_words} [default: none]
  --threshold=N            words that occur at most N times are replaced by their class [default: 1]
  --min-types=N            a class of fewer rare words is merged into a coarser one [default: 10]

Selection:
  --max-length=N           leave out trees with more than N words, after cleaning
  --sample=N               only N trees, chosen at random with the seed of --shuffle or 0, in their order

Splitting:
  --split=SHARES           for instance 80,10,10: write FILE with .train, .dev and .test before its ending; for
                           two shares only train and test
  --shuffle=SEED           split at random, but keep the order within the parts; with --sample, its seed

Other:
  --statistics             print a table of sizes instead of trees (or in addition, with --output)
  -q, --quiet              no progress bar and no messages
  -h, --help               this text
  --version                the version
"""

import itertools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nltk.tree import Tree

from tsgkit._cli import choice, command, integer, parse_arguments
from tsgkit._files import open_output
from tsgkit._messages import counted
from tsgkit._options import (
    binarization_of,
    cleaning_of,
    facts_of_treebank,
    head_rules_of,
    optional_integer,
    reading_of,
    report_wordless,
    unknown_of,
)
from tsgkit._overwriting import note_output
from tsgkit._progress import progress
from tsgkit._usage import with_registered
from tsgkit.errors import TreebankError, UsageError
from tsgkit.models._model import Model
from tsgkit.treebank import Binarization, Cleaning, Lexicon, UnknownWords, prepare, write_trees
from tsgkit.treebank._dependencies import write_conllu
from tsgkit.treebank._formats import WRITERS
from tsgkit.treebank._heads import PENN, HeadRules
from tsgkit.treebank._prepare import Preparation, preparation_of, sample_trees, split_trees, statistics
from tsgkit.treebank._presets import load_preset, preset_names
from tsgkit.treebank._trees import words

__doc__ = with_registered(__doc__)
PARTS = {2: ("train", "test"), 3: ("train", "dev", "test")}


@dataclass(frozen=True)
class Job:
    """The checked options."""

    cleaning: Cleaning
    binarization: Binarization | None
    debinarize: bool
    unknown: UnknownWords | None
    output: str
    write_format: str
    heads: str
    quiet: bool
    facts: dict[str, str]
    restore: Preparation | None

    def trees(self, trees: Iterator[Tree]) -> Iterator[Tree]:
        """Every tree cleaned and binarised (or with its binarisation undone)."""
        n_kept = n_dropped = 0
        for tree in progress(trees, "trees", "trees", quiet=self.quiet):
            if self.restore is not None:
                yield self.restore.with_original_labels(tree)
                continue
            if self.debinarize and self.binarization is not None:
                yield self.binarization.undo(tree)
                continue
            clean = self.cleaning.apply(tree)
            if clean is None:
                n_dropped += 1
                continue
            n_kept += 1
            yield clean if self.binarization is None else self.binarization.apply(clean)
        if n_dropped and not n_kept:
            raise TreebankError(
                f"cleaning leaves no words in any tree ({n_dropped}); do rules for labels drop too much?"
            )
        report_wordless(n_dropped)

    def write(self, trees: Iterator[Tree], path: str, lexicon: Lexicon | None = None) -> Lexicon | None:
        """Write trees to a file; returns the closed vocabulary, if rare words are replaced."""
        if path.endswith(".npz"):
            numbers = itertools.count()
            counted = (tree for tree, _ in zip(trees, numbers, strict=False))
            corpus = prepare(counted, self.cleaning, self.binarization, self.unknown, lexicon, **self.facts)
            corpus.save(path)
            report_wordless(next(numbers) - corpus.n_trees)
            return preparation_of(corpus).lexicon
        encoded = self.trees(trees)
        if self.unknown is not None:
            as_they_are = Cleaning((), functions=False, repeats=False, root="")
            corpus = prepare(encoded, as_they_are, None, self.unknown, lexicon)
            encoded, lexicon = corpus.trees(original_words=False), preparation_of(corpus).lexicon
        if self.write_format == "conllu":
            with open_output(path) as file:
                file.writelines(write_conllu(encoded, HeadRules.parse(self.heads, "head rules")))
        else:
            write_trees(encoded, path, self.write_format)
        return lexicon


def job_of(arguments: dict[str, Any]) -> Job:
    binarization = binarization_of(arguments)
    if arguments["--debinarize"] and binarization is None:
        raise UsageError("--debinarize needs --binarize=METHOD, to know what to undo")
    if arguments["--debinarize"] and arguments["--output"].endswith(".npz"):
        raise UsageError("--debinarize writes trees, not a corpus for training: name another --output")
    if arguments["--shuffle"] is not None and not arguments["--split"] and arguments["--sample"] is None:
        raise UsageError("--shuffle needs --split or --sample")
    if arguments["--write"] == "conllu" and binarization is not None and not arguments["--debinarize"]:
        raise UsageError("--write=conllu is for trees that are not binarised: leave out --binarize")
    if arguments["--statistics"] and arguments["--split"]:
        raise UsageError("--statistics cannot be combined with --split: run it on the parts")
    return Job(
        cleaning=cleaning_of(arguments),
        binarization=binarization,
        debinarize=arguments["--debinarize"],
        unknown=unknown_of(arguments),
        output=arguments["--output"],
        write_format=choice(arguments, "--write", WRITERS.names),
        heads=head_rules_of(arguments, PENN),
        quiet=arguments["--quiet"],
        facts=facts_of_treebank(arguments),
        restore=restore_of(arguments),
    )


def restore_of(arguments: dict[str, Any]) -> Preparation | None:
    """The preparation of the model of --restore-labels."""
    if arguments["--restore-labels"] is None:
        return None
    if arguments["--debinarize"] or arguments["--unknown"] != "none" or arguments["--output"].endswith(".npz"):
        raise UsageError("--restore-labels changes labels only: no other step can be combined with it")
    preparation = Model.load(arguments["--restore-labels"]).preparation
    if not any(preparation.original_labels.values()):
        raise UsageError(f"--restore-labels={arguments['--restore-labels']}: this model has no labels to restore")
    return preparation


def list_presets() -> None:
    """Print all presets with their sources."""
    for name in preset_names():
        preset = load_preset(name)
        print(f"{name}: {preset.title}")
        if preset.notes:
            print(f"    {preset.notes}")
        for source in preset.sources:
            print(f"    - {source}")


def shares_of(text: str) -> list[float]:
    try:
        shares = [float(share) for share in text.split(",")]
    except ValueError:
        shares = []
    if len(shares) not in PARTS or min(shares) < 0 or not 0 < sum(shares) < float("inf"):
        raise UsageError(f"--split={text}: must be two or three shares such as 80,10,10")
    return shares


def write_split(job: Job, trees: Iterator[Tree], shares: Sequence[float], seed: int | None) -> None:
    if job.output == "-":
        raise UsageError("--split writes several files: name them with --output=FILE")
    target = Path(job.output)
    suffixes = "".join(target.suffixes[-2:]) if target.suffix in (".gz", ".xz") else target.suffix
    paths = [target.with_name(f"{target.name.removesuffix(suffixes)}.{name}{suffixes}") for name in PARTS[len(shares)]]
    parts = split_trees(list(trees), shares, seed)
    for path in paths:  # all of them, before the first is written
        note_output(path, is_archive=True)
    lexicon = None  # the vocabulary of the first part, the training part, is that of all parts
    for path, part in zip(paths, parts, strict=True):
        lexicon = job.write(iter(part), str(path), lexicon)
        if not job.quiet:
            print(f"{path}: {counted(len(part), 'tree')}", file=sys.stderr)


def selected(trees: Iterator[Tree], arguments: dict[str, Any], cleaning: Cleaning) -> Iterator[Tree]:
    """The trees that the options ask for: short ones, and a sample of these."""
    longest, size = optional_integer(arguments, "--max-length", 1), optional_integer(arguments, "--sample", 1)
    if longest is not None:
        cleaned = ((tree, cleaning.apply(tree)) for tree in trees)
        trees = (tree for tree, clean in cleaned if clean is not None and len(words(clean)) <= longest)
    if size is None:
        return trees
    return iter(sample_trees(list(trees), size, integer({"--shuffle": arguments["--shuffle"] or 0}, "--shuffle", 0)))


@command
def main(argv: list[str]) -> int:
    arguments = parse_arguments(__doc__, argv)
    if arguments["--list-presets"]:
        list_presets()
        return 0
    job = job_of(arguments)
    reading = reading_of(arguments)
    trees = selected(reading.trees(arguments["TREEBANK"]), arguments, job.cleaning)
    if arguments["--split"]:
        seed = None if arguments["--shuffle"] is None else integer(arguments, "--shuffle", 0)
        write_split(job, trees, shares_of(arguments["--split"]), seed)
    elif arguments["--statistics"]:
        if job.output != "-":
            kept = list(trees)
            job.write(iter(kept), job.output)
            trees = iter(kept)
        for name, value in statistics(job.trees(trees)).items():
            print(f"{name:<18}{value:>12}")
    else:
        job.write(trees, job.output)
    reading.report()
    return 0


if __name__ == "__main__":
    sys.exit(main())
