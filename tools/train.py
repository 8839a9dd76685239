"""Train a model on a treebank.

Usage:
  tsgkit train [options] --output=MODEL TREEBANK...
  tsgkit train -h | --help | --version

A TREEBANK is as for `tsgkit prepare`, or one corpus that it wrote as arrays (.npz), which is then taken
as it is.

Options:
  -o MODEL, --output=MODEL  the file to write
  --model=KIND             cfg: relative frequencies of the rules of the binarised trees; tsg: a Bayesian
                           tree-substitution grammar; insertion: one with auxiliary trees too; srtsg: one with
                           learned subcategories, the most accurate [default: cfg]
  --dev=TREEBANK           parse this treebank with the finished model and say how well
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
  --binarize=METHOD        right, left or centre-head; centre-head for insertion, right for others unless given
  --horizontal=N           siblings that an intermediate symbol remembers, or all; 1 for cfg, 0 for others
                           unless given
  --vertical=N             1: labels as they are; 2: with the parent's; ...; 2 for cfg, 1 for others unless given
  --heads=RULES            for centre-head: penn, leftmost, rightmost or a file [default: penn]

Rare words:
  --unknown=MODEL          signature (English), three, one or unicode (any language); three for insertion,
                           unicode for others unless given
  --threshold=N            words seen at most N times are replaced by their class; 0: none, and srtsg lets
                           every word back off to its class; 0 for srtsg, 1 for others unless given

Subcategories (srtsg):
  --splits=N               how often every subcategory is split in two [default: 4]
  --split-iterations=N     sweeps over the treebank after every split [default: 200]
  --levels=N               3: refined rules back off to rules whose root has no subcategory; 1 and 2: they do
                           not [default: 3]
  --base=NAME              the last back-off: uniform, or by the frequency of the treebank's rules
                           [default: uniform]
  --merge=SHARE            the share of splits that are undone again; 0 for none [default: 0.5]
  --merge-loss=NAME        which: by the smallest loss in marginal or joint probability [default: marginal]
  --type-mode=NAME         whether --type-moves may relabel rules onto others in use: exact (no) or map (yes,
                           as in the paper; no longer samples the posterior) [default: exact]

Substitution sites (srtsg):
  --site-iterations=N      after the splits, sweeps that sample substitution sites: with them fragments are more
                           than single rules [default: 0]
  --sites=NAME             how: blocked (whole trees) or local (single sites) [default: blocked]
  --joint-iterations=N     after these, sweeps that sample sites and subcategories together; 0 for none
                           [default: 300]
  --stop-prob=P            the probability of a site at every child in the base of fragments; sampled, one per
                           label, unless given

Sampling (tsg and insertion):
  --iterations=N           sweeps over the treebank [default: 1000]
  --sampler=NAME           blocked (whole trees) or local (single sites) [default: blocked]
  --process=NAME           pyp (Pitman-Yor) or dp (Dirichlet) [default: pyp]
  --init=NAME              minimal (every node a substitution site), maximal (none) or random
                           [default: minimal]
  --batch=N                trees whose proposals are made together; the result depends on it [default: 8]
  --truncated              export only fragments in use and CFG rules, instead of the whole transform

Sampling (insertion):
  --stacked                several auxiliary trees may be inserted at one node
  --insertion-prob=P       fix the probability of an insertion, for all labels, instead of learning one for each
  --insertion-cutoff=N     leave out of the grammar what is expected to be inserted in a part of fragments less
                           than N times in the training trees; 0 for the exact grammar [default: 0.01]

Sampling (tsg, insertion and srtsg):
  --type-moves=N           after every sweep, so many proposals to change a fragment or refined rule wherever it
                           is used [default: 0]
  --average=N              the grammar is the mean over the last N samples; 30 for srtsg, 20 for others unless given
  --average-every=N        iterations between these samples; 4 for srtsg, 10 for others unless given
  --anneal-from=T          the temperature of the first iteration (srtsg: of every split) [default: 1]
  --anneal-iterations=N    iterations until the temperature is 1 [default: 0]
  --seed=N                 same seed, same model [default: 0]
  --threads=N              not for srtsg, but for --dev; the result does not depend on it [default: 1]
  --checkpoint-every=N     iterations between checkpoints, which lie beside the model [default: 100]
  --resume                 go on from the checkpoint, if there is one

Other:
  -q, --quiet              no progress and no remarks
  -h, --help               this text
  --version                the version
"""

import sys
import time
from pathlib import Path
from typing import Any

from tsgkit.cli import EXIT_FAILED, choice, command, integer, number, parse_arguments
from tsgkit.errors import TreebankError, UsageError
from tsgkit.evaluation import evaluate
from tsgkit.inference.loop import Run, Training
from tsgkit.inference.srtsg import SrSettings, SrTraining
from tsgkit.inference.tsg import TsgSettings, TsgTraining
from tsgkit.models.cfg import cfg_model
from tsgkit.models.model import Model
from tsgkit.options import binarization_of, cleaning_of, optional_number, seed_of, unknown_of
from tsgkit.parsing import Parser
from tsgkit.progress import progress
from tsgkit.treebank import Binarization, FlatCorpus, Lexicon, UnknownWords, prepare, read_trees
from tsgkit.treebank.prepare import preparation_of
from tsgkit.treebank.sources import READ_FORMATS, report_skipped
from tsgkit.treebank.trees import words

# What options are unless given.
USUAL = {
    "cfg": {"--horizontal": "1", "--vertical": "2"},
    "tsg": {},
    "insertion": {"--binarize": "centre-head", "--unknown": "three"},
    "srtsg": {"--threshold": "0", "--average": "30", "--average-every": "4"},
}
USUAL_ELSE = {
    "--binarize": "right",
    "--unknown": "unicode",
    "--horizontal": "0",
    "--vertical": "1",
    "--threshold": "1",
    "--average": "20",
    "--average-every": "10",
}


def corpus_of(arguments: dict[str, Any]) -> FlatCorpus:
    """The prepared corpus of the command line's treebanks."""
    sources = arguments["TREEBANK"]
    if any(source.endswith(".npz") for source in sources):
        if len(sources) > 1:
            raise UsageError("a prepared corpus (.npz) stands alone: it has its own vocabulary")
        corpus = FlatCorpus.load(sources[0])
        require_both(preparation_of(corpus).binarization, preparation_of(corpus).lexicon)
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
    """Refuse trees that no model here can be trained on."""
    if binarization is None or unknown is None:
        raise UsageError(
            "a model needs binarised trees and classes for unknown words: --binarize and --unknown, here or"
            " where the corpus was prepared"
        )


def sampled_run(arguments: dict[str, Any], corpus: FlatCorpus, kind: str) -> Run:
    """The training run that the options ask for."""
    shared: dict[str, Any] = {
        "type_moves": integer(arguments, "--type-moves", 0),
        "average": integer(arguments, "--average", 1),
        "average_every": integer(arguments, "--average-every", 1),
        "anneal_from": number(arguments, "--anneal-from", 1),
        "anneal_iterations": integer(arguments, "--anneal-iterations", 0),
    }
    training: Training
    if kind == "srtsg":
        settings = SrSettings(
            splits=integer(arguments, "--splits", 1),
            split_iterations=integer(arguments, "--split-iterations", 1),
            levels=integer(arguments, "--levels", 1),
            base=arguments["--base"],
            merge=number(arguments, "--merge", 0),
            merge_loss=arguments["--merge-loss"],
            type_mode=arguments["--type-mode"],
            site_iterations=integer(arguments, "--site-iterations", 0),
            sites=arguments["--sites"],
            joint_iterations=integer(arguments, "--joint-iterations", 0),
            stop_prob=None if arguments["--stop-prob"] is None else number(arguments, "--stop-prob", 0),
            **shared,
        )
        iterations = settings.iterations
        training = SrTraining(corpus, settings, seed=seed_of(arguments))
    else:
        iterations = integer(arguments, "--iterations", 1)
        training = TsgTraining(
            corpus,
            TsgSettings(
                sampler=arguments["--sampler"],
                process=arguments["--process"],
                init=arguments["--init"],
                batch=integer(arguments, "--batch", 1),
                truncated=arguments["--truncated"],
                insertion=kind == "insertion",
                stacked=arguments["--stacked"],
                insertion_probability=optional_number(arguments, "--insertion-prob"),
                insertion_cutoff=number(arguments, "--insertion-cutoff", 0),
                **shared,
            ),
            iterations=iterations,
            seed=seed_of(arguments),
            threads=integer(arguments, "--threads", 1),
        )
    return Run(
        training,
        Path(arguments["--output"]),
        iterations,
        checkpoint_every=integer(arguments, "--checkpoint-every", 1),
        resume=arguments["--resume"],
        quiet=arguments["--quiet"],
    )


def report_dev(model: Model, source: str, threads: int, quiet: bool) -> None:
    """Parse a treebank and print how well that went."""
    gold = [tree for tree in map(model.preparation.cleaning.apply, read_trees(source)) if tree is not None]
    parses = Parser(model).parse_batch([(words(tree), None) for tree in gold], threads=threads)
    guess = [parse.tree for parse in progress(parses, "parsing", "sentences", total=len(gold), quiet=quiet)]
    score = evaluate(map(model.preparation.cleaning.undo, gold), guess)
    print(f"{source}: F1 {score.f1:.2f}, strict {score.strict.f1:.2f}")


def types_of(model: Model) -> str:
    """The size of a grammar with insertion as the paper gives it: initial and auxiliary trees of the last sample."""
    if "history_auxiliary" not in model.state:
        return ""
    n_types, n_auxiliary = (int(model.state[f"history_{name}"][-1]) for name in ("fragments", "auxiliary"))
    return f" {n_types - n_auxiliary} initial and {n_auxiliary} auxiliary trees,"


@command
def main(argv: list[str]) -> int:
    """Train, write the model, and say what came out."""
    arguments = parse_arguments(__doc__, argv)
    kind = choice(arguments, "--model", tuple(USUAL))
    usual = {**USUAL_ELSE, **USUAL[kind]}
    arguments |= {option: value for option, value in usual.items() if arguments[option] is None}
    started = time.perf_counter()
    corpus = corpus_of(arguments)
    interrupted = False
    if kind == "cfg":
        model = cfg_model(corpus)
        model.info = {"trees": corpus.n_trees, "tokens": corpus.n_tokens}
        model.save(arguments["--output"])
    else:
        run = sampled_run(arguments, corpus, kind)
        model, interrupted = run.run(), run.interrupted
    if not arguments["--quiet"]:
        grammar = model.grammar
        print(
            f"{arguments['--output']}: {corpus.n_trees} trees, {corpus.n_tokens} tokens,"
            f" {len(grammar.labels)} labels,{types_of(model)} {grammar.n_rules} rules,"
            f" {time.perf_counter() - started:.1f} s",
            file=sys.stderr,
        )
    if interrupted:
        done = model.info["iterations"]
        print(f"tsgkit: interrupted after {done} iterations; --resume goes on from there", file=sys.stderr)
        return EXIT_FAILED
    if arguments["--dev"] is not None:
        report_dev(model, arguments["--dev"], integer(arguments, "--threads", 1), arguments["--quiet"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
