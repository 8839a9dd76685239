"""Parse sentences with a trained model.

Usage:
  tsgkit parse [options] MODEL...
  tsgkit parse -h | --help | --version

The input has one sentence per line, its words separated by spaces (those of ASCII; a no-break space is part of a
word). The output has one tree per line, in the same order, over exactly these words, under the root of the treebank;
an empty line gives an empty tree. Several models of the same treebank parse together (--product). A sentence that
the grammar cannot analyse gets a fallback tree; the number of these is printed at the end, and --scores shows which.

Options:
  --score=TREES            parse nothing; print for each of these trees (a file, a folder, - or another source,
                           as annotated) the log probability of the tree with its words, summed over all its
                           derivations (of several models: the mean); -inf for a tree the grammar cannot make
  -i FILE, --input=FILE    sentences (plain, gzip or xz) [default: -]
  --from-trees             the input is a treebank (as for `tsgkit prepare`): parse the words of its trees, and print
                           the scores at the end; with --tags, the tags are those of the trees
  --treebank=NAME          for --from-trees and --score: the preset of the treebank (see `tsgkit prepare`), or a file
                           with one
  --params=SET             for --from-trees: collins, new, or an EVALB parameter file (default: those of --treebank, or
                           of the model's treebank, or collins)
  -o FILE, --output=FILE   trees; a file appears when all is done (until then FILE.partial holds what there is), stdout
                           line by line [default: -]
  --resume                 continue from FILE.partial, if it exists: what is in it is not parsed again
  --force                  discard FILE.partial, if it exists; without one of these options, the job is refused then
  --format=FORMAT          of the output: brackets (trees), or conllu (dependencies, by head rules) [default: brackets]
  --heads=RULES            for conllu: penn, leftmost, rightmost, another preset or a file (default:
                           those of --treebank, or of the model's treebank, or penn)
  --tokenize               the input is raw text, one sentence per line: split it into words as in the Penn
                           Treebank
  --tags=MODE              none, hard or soft; but for none, words come as word/TAG, and other tags are not
                           considered (hard) or count a hundredth (soft); the last slash counts, but not one
                           after a backslash; a word may have no tag [default: none]
  --constraints            the input has brackets that every tree must have, with labels, as in (NP the old man) went
                           home ., or without, as in ( the old man ) went (ADVP home) .; a label follows its bracket
                           without a space; (DT the) gives a tag; brackets that are words are -LRB- and -RRB-
                           here; where the grammar has no such tree, a fallback tree has the brackets
  --objective=NAME         which tree is best: {objectives}
                           (mpd: most probable derivation; mpp: most probable tree, from the best derivations;
                           mer: most expected correct rules; max-rule: largest product of rule posteriors)
                           [default: max-rule]
  --product=NAME           what several models multiply: {products} (rules: posteriors of the
                           treebank's rules; trees: probabilities of every model's 100 best) [default: rules]
  --kbest=N                so many trees, best first, then an empty line [default: 1]
  --scores                 before each tree, separated by tabs: the sentence's number, the tree's rank, its
                           log probability given the words, its score and its share of the objective, and the
                           kind of fallback (or ok)
  --confidence             give every phrase its posterior probability, as in NP=0.930 (`tsgkit eval`, EVALB
                           and `tsgkit prepare` cut it off again); 0 in a fallback tree
  --max-length=N           longer sentences get a flat fallback tree
  --max-seconds=S          a sentence that takes longer gets a flat fallback tree, marked as timeout; which ones do
                           depends on the machine
  --max-memory=MB          a sentence whose chart needs more gets a fallback tree; every thread has a chart
                           for every grammar of the model [default: 1024]
  --threshold=P            prune what has a smaller share of the probability; 0 for no pruning; 1e-3 unless
                           given, but 3e-4 for a product of rules, and 1e-3 in its models after the first
  --coarse-threshold=P     the same for the coarsest grammar; unless given, 3e-5, or the threshold if that is smaller
  --closing=P              do not look at spans that have a phrase with a smaller probability, as a model of the words
                           around their ends sees it; 0 to look at all [default: 1e-3]
  --pruning=KIND           that share: posterior or max-marginal [default: posterior]
  --span-power=N           with max-rule and a product of rules, multiply every rule by the odds of its label to the
                           power of N, as a model of the words around its ends sees them, if the model has one (srtsg);
                           0 for the grammar alone [default: 1]
  --samples=N              for the sampled objectives [default: 1000]
  --seed=N                 for the sampled objectives [default: 0]
  --correct                for the sampled objectives with a tsg model of one sample: accept or reject every
                           sample by the model itself instead of its frozen grammar
  --threads=N              the output is the same for any number [default: 1]
  --backend=NAME           where sentences are parsed: local (here), joblib (processes of this machine) or dask (a
                           cluster); the output is the same [default: local]
  --scheduler=ADDRESS      of the Dask cluster, or its scheduler file
  --jobs=N                 processes of joblib (1 unless given), or chunks that the cluster has at a time (4 for each
                           of its threads unless given); each with as many threads as --threads says
  --chunk=N                sentences that a process or worker gets at a time [default: 100]
  -q, --quiet              no progress bar and no messages
  -h, --help               this text
  --version                the version
"""

import gc
import hashlib
import io
import os
import sys
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TextIO

from nltk.tree import Tree

from tsgkit import __version__
from tsgkit._archive import ZIP_START, file_content
from tsgkit._cli import choice, command, integer, note_terminal, parse_arguments
from tsgkit._files import open_output
from tsgkit._messages import counted
from tsgkit._options import backend_of, head_rules_of, parameters_of, preset_of, require_effect, require_one
from tsgkit._overwriting import note_input
from tsgkit._parser_options import parser_settings
from tsgkit._progress import progress
from tsgkit._resumable import PartialOutput
from tsgkit._streams import chunks
from tsgkit._usage import with_registered
from tsgkit.distributed import Backend
from tsgkit.errors import UsageError
from tsgkit.evaluation import Parameters, evaluate
from tsgkit.evaluation._evalb import parameter_warnings
from tsgkit.models._model import Model
from tsgkit.parsing._lines import ChunkRescue, ParsedLine, ParsePlan, parse_chunk, shared_models
from tsgkit.parsing._product import parser_of
from tsgkit.treebank import read_trees
from tsgkit.treebank._heads import PENN
from tsgkit.treebank._sources import decode_lines, has_trees, is_tree
from tsgkit.treebank._trees import is_preterminal, preorder

__doc__ = with_registered(__doc__)
HERE = "here"
FORMATS = ("brackets", "conllu")


class Models:
    """The models of the command line, each read once, when it is needed."""

    def __init__(self, names: Sequence[str], contents: Sequence[bytes]) -> None:
        self.names, self.contents = names, contents
        for name, content in zip(names[1:], contents[1:], strict=True):
            if content and not content.startswith(ZIP_START):
                raise UsageError(f"{name}: not a model; sentences are read from --input={name}, or from stdin")

    @cached_property
    def first(self) -> Model:
        return Model.load(self.names[0], self.contents[0])

    def all(self) -> list[Model]:
        others = zip(self.names[1:], self.contents[1:], strict=True)
        return [self.first, *(Model.load(*one) for one in others)]


def plan_of(arguments: dict[str, Any]) -> ParsePlan:
    """How the options ask to parse."""
    is_conllu = choice(arguments, "--format", FORMATS) == "conllu"
    has_trees_in = arguments["--from-trees"] or arguments["--score"] is not None
    require_effect(arguments, "--params", arguments["--from-trees"], "--from-trees")
    require_effect(arguments, "--heads", is_conllu, "--format=conllu")
    require_effect(arguments, "--treebank", has_trees_in or is_conllu, "--from-trees, --score or --format=conllu")
    return ParsePlan(
        parser_settings(arguments),
        tokenize=arguments["--tokenize"],
        kbest=integer(arguments, "--kbest", 1),
        scores=arguments["--scores"],
        confidence=arguments["--confidence"],
        constraints=arguments["--constraints"],
        head_rules=head_rules_of(arguments, PENN) if is_conllu else "",
    )


def require_files(paths: Sequence[str]) -> None:
    """Refuse what is no file with the option that was perhaps meant."""
    for path in paths[1:]:
        if not Path(path).exists():
            raise UsageError(f"{path}: there is no such model; sentences or trees to parse are named by --input")


def with_heads_of_model(plan: ParsePlan, arguments: dict[str, Any], models: Models) -> ParsePlan:
    """The plan with the head rules of the model's treebank, if the options name no others."""
    if not plan.head_rules or arguments["--heads"] is not None or arguments["--treebank"] is not None:
        return plan
    return replace(plan, head_rules=models.first.preparation.head_rules or PENN)


# ---- where trees go ------------------------------------------------------------------------------------------


class Output(Protocol):
    """What trees are written to; a `tsgkit._resumable.PartialOutput` is one."""

    n_done: int
    n_resumed: int
    is_finished: bool

    def skip(self, lines: Iterator[str]) -> Iterator[str]: ...

    def write(self, record: str, line: str) -> None: ...


class DirectOutput:
    """Where nothing is kept to go on with: stdout, a pipe, a device."""

    n_done = n_resumed = 0
    is_finished = False

    def __init__(self, file: TextIO) -> None:
        self.file = file

    def skip(self, lines: Iterator[str]) -> Iterator[str]:
        """All of them: none is done."""
        return lines

    def write(self, record: str, line: str) -> None:
        self.file.write(record)


@contextmanager
def output_of(arguments: dict[str, Any], plan: ParsePlan, contents: Sequence[bytes]) -> Iterator[Output]:
    """Where trees go: stdout gets each as it comes, a file appears when all is done."""
    path = arguments["--output"]
    require_one(arguments, "--resume", "--force")
    if path == "-" or (Path(path).exists() and not (Path(path).is_file() or Path(path).is_dir())):
        if arguments["--resume"]:
            raise UsageError("--resume goes with --output=FILE: there is nothing to resume elsewhere")
        with streaming_output(path) as file:
            yield DirectOutput(file)
        return
    digests = [hashlib.sha256(content).hexdigest() for content in contents]
    identity = {"version": __version__, "models": digests, **plan.identity()}
    if arguments["--input"] != "-":
        note_input(arguments["--input"])  # before a file is opened to be written
    options = {name: arguments[f"--{name}"] for name in ("resume", "force")}
    output = PartialOutput(path, identity, **options, blank_line_ends=plan.blank_line_ends)
    try:
        with output:
            yield output
    except BaseException:
        if output.n_done and not arguments["--quiet"]:
            print(
                f"tsgkit: {output.n_done} sentences are in {output.partial}; --resume continues from there",
                file=sys.stderr,
            )
        raise


@contextmanager
def streaming_output(path: str) -> Iterator[TextIO]:
    """Text that goes to stdout at once, or to a file that appears whole or not at all."""
    if path != "-":
        with open_output(path) as file:
            yield file
        return
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", newline="\n", line_buffering=True)
    yield sys.stdout


# ---- where trees come from -----------------------------------------------------------------------------------


def parsed_lines(
    arguments: dict[str, Any], plan: ParsePlan, models: Models, lines: Iterator[str], first_number: int
) -> Iterator[tuple[str, list[ParsedLine]]]:
    """The output for all lines, in order, in portions, each with the place it comes from."""
    threads = integer(arguments, "--threads", 1)
    backend = remote_backend(arguments)
    if backend is None:
        parser = parser_of(models.all(), plan.settings)
        gc.freeze()  # all of this stays: the collector of garbage need not look at it after every few sentences
        for line in plan.parse_lines(parser, lines, first_number=first_number, threads=threads):
            yield HERE, [line]
        return
    size = integer(arguments, "--chunk", 1)
    numbered = ((first_number + size * place, chunk) for place, chunk in enumerate(chunks(lines, size)))
    try:
        shared = shared_models(plan, models.names, models.contents, threads)
        yield from backend.stream(parse_chunk, shared, numbered, ChunkRescue())
    finally:
        backend.close()


def remote_backend(arguments: dict[str, Any]) -> Backend | None:
    """Where sentences are parsed, if not here."""
    if arguments["--backend"] != "local":
        return backend_of(arguments)
    if arguments["--jobs"] or arguments["--scheduler"]:
        raise UsageError("--jobs and --scheduler go with --backend=joblib or --backend=dask; here there are --threads")
    return None


def remembering(lines: Iterator[str], memory: deque[str]) -> Iterator[str]:
    """The lines, which also stay in `memory` until somebody takes them out."""
    for line in lines:
        memory.append(line)
        yield line


def input_lines(arguments: dict[str, Any], gold: Sequence[Tree] | None) -> Iterator[str]:
    """The sentences, one per line: those of the input, or of the gold trees."""
    if gold is None:
        require_sentences_in(arguments["--input"])
        note_terminal(arguments, arguments["--input"], "sentences, one per line")
        lines = decode_lines(arguments["--input"], "utf-8")
        return lines if arguments["--constraints"] else sentences_only(lines, arguments["--input"])
    has_tags = arguments["--tags"] != "none"
    pairs = ([(leaf[0], leaf.label()) for leaf in preorder(tree) if is_preterminal(leaf)] for tree in gold)
    return (" ".join(f"{word}/{tag}" if has_tags else word for word, tag in pair) + "\n" for pair in pairs)


def require_sentences_in(path: str) -> None:
    """Refuse a treebank that is no file, as ``village:dev``."""
    if path != "-" and not os.path.exists(path) and has_trees(path):
        raise UsageError(f"{path} is a treebank; --from-trees parses its words and scores the result")


def sentences_only(lines: Iterator[str], path: str) -> Iterator[str]:
    """The lines, of which the first must not be a tree."""
    for number, line in enumerate(lines):
        if not number and is_tree(line):
            name = "the input" if path == "-" else path
            raise UsageError(f"{name} has trees, not sentences; --from-trees parses their words and scores the result")
        yield line


def gold_trees(arguments: dict[str, Any], plan: ParsePlan, models: Models) -> list[Tree] | None:
    """The clean trees of the input, if it is a treebank."""
    if not arguments["--from-trees"]:
        return None
    if plan.tokenize or plan.blank_line_ends or plan.scores or plan.confidence or plan.constraints:
        others = "--tokenize, --format, --kbest, --scores, --confidence and --constraints"
        raise UsageError(f"--from-trees: {others} do not go with it")
    note_terminal(arguments, arguments["--input"], "trees")
    cleaning = models.first.preparation.cleaning
    trees = read_trees(arguments["--input"], treebank=preset_of(arguments))
    found = [tree for tree in map(cleaning.apply, trees) if tree is not None]
    return [cleaning.undo(tree) for tree in found]


def print_evaluation(
    arguments: dict[str, Any], gold: Sequence[Tree], parsed: list[str], parameters: Parameters
) -> None:
    """The scores, on stdout unless the trees are there."""
    path = arguments["--output"]
    test = path if path != "-" and Path(path).is_file() else parsed
    evaluation = evaluate(gold, test, parameters)
    print(f"{arguments['--input']}: {evaluation.headline()}", file=sys.stderr if path == "-" else sys.stdout)
    if not arguments["--quiet"]:
        for warning in parameter_warnings(evaluation):
            print(f"tsgkit: {warning}", file=sys.stderr)


def parse_all(
    arguments: dict[str, Any], plan: ParsePlan, models: Models, output: Output, gold: Sequence[Tree] | None
) -> "Tally":
    """Parse the input from where the output ends."""
    tally = Tally()
    read: deque[str] = deque()
    lines = remembering(output.skip(input_lines(arguments, gold)), read)
    portions = parsed_lines(arguments, plan, models, lines, output.n_done)
    with progress(None, "parsing", "sentences", quiet=arguments["--quiet"]) as bar:
        for place, portion in portions:
            for parsed in portion:
                output.write(parsed.text, read.popleft())
                tally.add(parsed.text, keep=gold is not None)
                tally.fallbacks[parsed.fallback] += 1
                if parsed.problem:
                    print(f"tsgkit: {parsed.problem}", file=sys.stderr)
            tally.places[place] += len(portion)
            bar.update(len(portion))
            if place != HERE:
                bar.set_postfix_str(f"{len(tally.places)} at work", refresh=False)
    return tally


class Tally:
    """What is counted on the way."""

    def __init__(self) -> None:
        self.started = time.perf_counter()
        self.fallbacks: Counter[str] = Counter()
        self.places: Counter[str] = Counter()
        self.parsed: list[str] = []

    def add(self, text: str, *, keep: bool) -> None:
        """Keep a tree that is to be scored."""
        if keep:
            self.parsed.append(text)

    def report(self, n_resumed: int) -> None:
        """Say what was done."""
        seconds = time.perf_counter() - self.started
        n_sentences = self.fallbacks.total()
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.fallbacks.items()) if kind)
        without = sum(count for kind, count in self.fallbacks.items() if kind)
        rate = n_sentences / seconds if seconds else 0.0
        lines = [
            f"tsgkit: {counted(n_sentences, 'sentence')} in {seconds:.1f} s ({rate:.1f} a second),"
            f" {without} with a fallback tree" + (f" ({kinds})" if kinds else "")
        ]
        if n_resumed:
            lines.append(f"tsgkit: {n_resumed} were done before and not parsed again")
        lines += [f"tsgkit: {count} by {place}" for place, count in sorted(self.places.items()) if place != HERE]
        print("\n".join(lines), file=sys.stderr)


def print_scores(arguments: dict[str, Any], plan: ParsePlan) -> None:
    """The log probabilities of the trees of --score."""
    if arguments["--resume"] or arguments["--backend"] != "local":
        raise UsageError("--resume and --backend are for parsing; --score parses nothing")
    parser = parser_of([Model.load(path) for path in arguments["MODEL"]], plan.settings)
    with streaming_output(arguments["--output"]) as output:
        trees = read_trees(arguments["--score"], treebank=preset_of(arguments))
        output.writelines(f"{parser.tree_log_probability(tree):.9f}\n" for tree in trees)


@command
def main(argv: list[str]) -> int:
    arguments = parse_arguments(__doc__, argv)
    plan = plan_of(arguments)
    if arguments["--score"] is not None:
        print_scores(arguments, plan)
        return 0
    require_files(arguments["MODEL"])
    models = Models(arguments["MODEL"], [file_content(path) for path in arguments["MODEL"]])
    plan = with_heads_of_model(plan, arguments, models)
    gold = gold_trees(arguments, plan, models)
    parameters = parameters_of(arguments, models.first.preparation.parameters) if gold is not None else None
    with output_of(arguments, plan, models.contents) as output:
        tally = Tally() if output.is_finished else parse_all(arguments, plan, models, output, gold)
    if not arguments["--quiet"]:
        tally.report(output.n_resumed)
    if gold is not None and parameters is not None:
        print_evaluation(arguments, gold, tally.parsed, parameters)
    return 0


if __name__ == "__main__":
    sys.exit(main())
