"""What is done while allocations fail: every kernel of the parser, and every command that computes.

A target is a function of an empty folder. It returns a function that makes fresh objects and returns an operation on
them, so that no operation has anything left from the one before. An operation returns what can be compared.
"""

import contextlib
import io
import itertools
import json
import lzma
from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
from nltk.tree import Tree
from reference.chart import lexical_entries

from tsgkit._chart import Chart
from tsgkit._derivations import best_derivation, sample_derivations
from tsgkit._exit_codes import EXIT_INTERRUPTED, EXIT_MEMORY
from tsgkit._grammar_index import GrammarIndex
from tsgkit._messages import message_of
from tsgkit._posteriors import forest_of
from tsgkit._pruning import Projection
from tsgkit._tools import compare, draw, generate, info, inspect, parse, prepare, train
from tsgkit._tools import eval as evaluate
from tsgkit._tree_ranking import TreeRanking
from tsgkit._tree_score import TreeScorer
from tsgkit.grammar import WeightedGrammar
from tsgkit.inference._loop import Run
from tsgkit.models._model import Model
from tsgkit.parsing.objectives import OBJECTIVES
from tsgkit.report._service import Limits, ParseService
from tsgkit.treebank import load
from tsgkit.treebank._brackets import format_tree
from tsgkit.treebank._export import format_export

Operation = Callable[[], object]
Prepare = Callable[[], Operation]
N_SYMBOLS, N_WORDS = 20, 9
STATE = np.random.PCG64(1).state
BRACKETS = "(NP the old man) smiled .\nhe saw the dog ( with the man ) .\n(FOO he saw) (VP smiled) .\n"
SENTENCES = "the old man smiled .\nhe saw the dog with the man .\n"


# ---- kernels ---------------------------------------------------------------------------------------------


def random_grammar() -> WeightedGrammar:
    """Every symbol makes every word, and some pairs; some symbols are children in chains and a cycle of unary rules."""
    random = np.random.default_rng(1)
    binary = np.unique(random.integers(0, N_SYMBOLS, size=(8 * N_SYMBOLS, 3)), axis=0)
    steps = [(symbol, symbol + 1) for symbol in range(0, N_SYMBOLS - 1, 3)] + [(1, 4), (4, 1)]
    return WeightedGrammar(
        [f"L{number}" for number in range(N_SYMBOLS)], ["a", "b"], range(N_SYMBOLS), 0,
        binary=binary, binary_weight=random.uniform(0.1, 1.0, len(binary)),
        unary=steps, unary_weight=[0.125] * len(steps),
        lexical=[(symbol, word) for symbol in range(N_SYMBOLS) for word in (0, 1)],
        lexical_weight=random.uniform(0.1, 1.0, 2 * N_SYMBOLS),
    )  # fmt: skip


class Sentence:
    """A sentence, and charts for it."""

    def __init__(self) -> None:
        self.grammar = random_grammar()
        self.index = GrammarIndex(self.grammar)
        self.entries = lexical_entries(self.grammar, self.index, [word % 2 for word in range(N_WORDS)])
        self.projection = Projection(self.index, self.index, range(N_SYMBOLS), range(N_SYMBOLS))

    def chart(self, *, viterbi: bool | None = None, outside: bool = False) -> Chart:
        """An empty chart, or one with values."""
        chart = Chart(self.index, 1 << 40)
        if viterbi is not None:
            chart.fill(*self.entries, viterbi=viterbi)
        if outside:
            chart.fill_outside()
        return chart

    def fill(self, chart: Chart, **options: bool) -> object:
        chart.fill(*self.entries, **options)
        return values_of(chart)

    def masked(self, chart: Chart, coarse: Chart) -> object:
        # A threshold that forbids some members of the cycle here and there.
        chart.fill(*self.entries, mask=coarse.make_mask(1e-2), projection=self.projection)
        chart.fill_outside()
        return values_of(chart)


def values_of(chart: Chart) -> object:
    """Some of the values of a chart."""
    spans = [(0, 1), (0, 2), (1, 3), (0, chart.n_words)]
    outside = [chart.outside_values(*span) for span in spans] if chart.has_outside else []
    return chart.log_total, [chart.inside_values(*span) for span in spans], outside


def fill_outside(chart: Chart) -> object:
    chart.fill_outside()
    return values_of(chart)


def best_trees(chart: Chart) -> object:
    forest = forest_of(chart, 1e-5)
    trees = [forest.best_tree(product, 0) for product in (False, True)]
    return [(rows.tolist(), score) for rows, score in trees], forest.posteriors.tolist()


def first_trees(ranking: TreeRanking) -> object:
    return [(rows.tolist(), score) for rows, score in map(ranking.tree, range(30))]


def samples(chart: Chart, generator: np.random.PCG64) -> object:
    generator.state = STATE
    return [(rows.tolist(), log_weight) for rows, log_weight in sample_derivations(chart, 5, generator)]


def kernels() -> dict[str, Callable[[Path], Prepare]]:
    def target(make: Callable[[Sentence], Prepare]) -> Callable[[Path], Prepare]:
        return lambda folder: make(Sentence())

    def masked(sentence: Sentence) -> Prepare:
        coarse = sentence.chart(viterbi=False, outside=True)
        return lambda: partial(sentence.masked, sentence.chart(), coarse)

    def scored(sentence: Sentence) -> Prepare:
        rows = np.ascontiguousarray(best_derivation(sentence.chart(viterbi=True))[0])
        return lambda: partial(TreeScorer(sentence.index).log_weight, rows, *sentence.entries)

    def ranked_forest(sentence: Sentence) -> Prepare:
        forest = forest_of(sentence.chart(viterbi=False, outside=True), 1e-3)
        return lambda: lambda: first_trees(TreeRanking(forest, product=True, root=0))

    return {
        "fill": target(lambda s: lambda: partial(s.fill, s.chart())),
        "viterbi": target(lambda s: lambda: partial(s.fill, s.chart(), viterbi=True)),
        "outside": target(lambda s: lambda: partial(fill_outside, s.chart(viterbi=False))),
        "mask": target(masked),
        "forest": target(lambda s: lambda: partial(best_trees, s.chart(viterbi=False, outside=True))),
        "ranked chart": target(lambda s: lambda: partial(first_trees, TreeRanking(s.chart(viterbi=True)))),
        "ranked forest": target(ranked_forest),
        "samples": target(lambda s: lambda: partial(samples, s.chart(viterbi=False), np.random.PCG64(1))),
        "tree score": target(scored),
    }


# ---- commands --------------------------------------------------------------------------------------------


class Command:
    """A command that writes one file, in a folder of its own.

    It ends with success, or with the exit code for too little memory and one line that says so; then the output is as
    it was before, or whole, nothing is half-written, and the same command succeeds.
    """

    def __init__(
        self,
        main: Callable[[list[str]], int],
        arguments: list[str],
        folder: Path,
        before: dict[str, bytes],
        whole: set[bytes],
    ) -> None:
        self.main, self.folder, self.output, self.whole = main, folder, folder / "output", whole
        self.arguments = [argument.replace("{output}", str(self.output)) for argument in arguments]
        self.before = before.get("output")
        for name, content in before.items():
            (folder / name).write_bytes(content)

    def __call__(self) -> bytes:
        out, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            code = self.main(self.arguments)
        left = [path.name for path in self.folder.iterdir() if path.name.endswith(".part")]
        assert not left, f"left behind: {left}"
        found = self.output.read_bytes() if self.output.exists() else None
        if code == EXIT_MEMORY:
            message = errors.getvalue().strip().splitlines()[-1]
            assert message == f"tsgkit: {message_of(MemoryError())}", errors.getvalue()
            assert found == self.before or found in self.whole, "half-written output"
            raise MemoryError
        assert code == 0, errors.getvalue()
        result = out.getvalue().encode() if found is None else found
        self.whole.add(result)
        return result


def command(
    main: Callable[[list[str]], int],
    *arguments: str,
    models: tuple[str, ...] = (),
    before: Callable[[Path], dict[str, bytes]] = lambda folder: {},
) -> Callable[[Path], Prepare]:
    """A target that runs a command; ``{trees}``, ``{text}`` and the names of models stand for files.

    `before` makes the files that are in its folder when it begins.
    """

    def target(folder: Path) -> Prepare:
        files = input_files(folder)
        made = [str(model_file(folder, name)) for name in models]
        filled = [argument.format(output="{output}", **files) for argument in arguments]
        contents = before(folder)
        numbers, whole = itertools.count(), set[bytes]()

        def prepare() -> Operation:
            place = folder / f"run{next(numbers)}"
            place.mkdir()
            return Command(main, [*filled, *made], place, contents, whole)

        return prepare

    return target


def input_files(folder: Path) -> dict[str, str]:
    """A small treebank in brackets and as an export file, and sentences."""
    trees: list[Tree] = load("village", "dev")[:4]
    contents = {
        "trees": "".join(f"{format_tree(tree)}\n" for tree in trees),
        "export": "#FORMAT 3\n" + "".join(f"{format_export(tree, n)}\n" for n, tree in enumerate(trees, 1)),
        "text": SENTENCES,
        "brackets": BRACKETS,
        "tags": "DT JJ NN VBD .\nPRP VBD DT NN IN DT NN .\n",
        "tagged": "the/DT old/JJ man/NN smiled/VBD ./.\nhe/PRP saw the dog/NN .\n",
    }
    for name, content in contents.items():
        (folder / name).write_text(content)
    (folder / "trees.xz").write_bytes(lzma.compress(contents["trees"].encode()))
    names = {name: str(folder / name) for name in contents}
    return {**names, "packed": str(folder / "trees.xz"), "npz": str(folder / "trees.npz")}


SPLITS = ("--model=srtsg", "--splits=1", "--split-iterations=2", "--joint-iterations=0")
SITES = (*SPLITS, "--site-iterations=2")
JOINT = (*SPLITS[:-1], "--joint-iterations=1", "--site-iterations=1")
TRAININGS = {
    "cfg": ("--model=cfg",),
    "tsg": ("--model=tsg", "--iterations=3", "--type-moves=20"),
    "local": ("--model=tsg", "--iterations=3", "--sampler=local"),
    "threads": ("--model=tsg", "--iterations=2", "--batch=4", "--threads=2"),
    "one sample": ("--model=tsg", "--iterations=3", "--average=1"),
    "partial": ("--model=tsg", "--iterations=3", "--partial={brackets}"),
    "insertion": ("--model=insertion", "--iterations=3", "--type-moves=20"),
    "stacked": ("--model=insertion", "--iterations=2", "--stacked", "--insertion-cutoff=1"),
    "srtsg": (*SPLITS, "--site-iterations=0"),
    "classes": (*SPLITS, "--site-iterations=0", "--lexicon=classes", "--type-moves=20", "--merge-loss=joint"),
    "rules": (*SPLITS, "--site-iterations=0", "--lexicon=rules", "--levels=2", "--base=frequency"),
    "two splits": ("--model=srtsg", "--splits=2", "--split-iterations=3", "--merge=0.9", "--joint-iterations=1"),
    "split threads": (*SPLITS, "--site-iterations=0", "--batch=4", "--threads=2"),
    "sites": SITES,
    "site threads": (*SITES, "--batch=4", "--threads=2"),
    "local sites": (*SITES, "--sites=local"),
    "fragment moves": (*SITES, "--fragment-moves=50"),
    "joint": JOINT,
    "joint threads": (*JOINT, "--batch=4", "--threads=2", "--fragment-moves=20", "--anneal-from=2"),
    "insertions": (*SITES, "--insertion-iterations=1"),
    "insertion threads": (*JOINT, "--insertion-iterations=2", "--batch=4", "--threads=2", "--fragment-moves=20"),
}
# What these are continued from, after an interruption in some phase: the training, and after how many iterations.
RESUMED = {"tsg": 2, "insertion": 2, "two splits": 5, "joint": 3, "insertions": 4}


def train_arguments(kind: str, files: dict[str, str]) -> list[str]:
    """The arguments of a training, without its output."""
    return ["--quiet", *(option.format(**files) for option in TRAININGS[kind]), files["trees"]]


def model_file(folder: Path, name: str) -> Path:
    kind, _, seed = name.partition(", seed ")
    path = folder / f"{name}.model"
    if not path.exists():
        arguments = train_arguments(kind, input_files(folder))
        assert train.main([*arguments, f"--seed={seed or 1}", "-o", str(path)]) == 0
        Model.load(path)
    return path


def interrupted(kind: str, n_iterations: int) -> Callable[[Path], dict[str, bytes]]:
    """What is left by a training that was interrupted after so many iterations."""

    def before(folder: Path) -> dict[str, bytes]:
        place = folder / "interrupted"
        place.mkdir()
        whole_step = Run.step

        def step(run: Run, iteration: int) -> object:
            run.interrupted = iteration == n_iterations
            return whole_step(run, iteration)

        arguments = [*train_arguments(kind, input_files(folder)), "-o", str(place / "output")]
        with patch.object(Run, "step", step), contextlib.redirect_stderr(io.StringIO()):
            code = train.main(arguments)
        assert code == EXIT_INTERRUPTED
        return {path.name: path.read_bytes() for path in place.iterdir()}

    return before


def corpus_of(folder: Path) -> dict[str, bytes]:
    """Makes a file of arrays, which is beside the other inputs."""
    files = input_files(folder)
    assert prepare.main(["-q", "--binarize=right", "--unknown=unicode", files["trees"], "-o", files["npz"]]) == 0
    return {}


def commands() -> dict[str, Callable[[Path], Prepare]]:
    # A run after one that failed discards what that has left, as checkpoints and partial output.
    force = ("--quiet", "--force", "-o", "{output}")
    written = (*force, "-i", "{text}")
    given = (*force, "-i", "{brackets}", "--constraints")
    found = {
        f"parse {name}": command(parse.main, *written, f"--objective={name}", "--samples=20", models=("tsg",))
        for name in OBJECTIVES.names
    }
    found |= {
        f"parse {name} given": command(
            parse.main, *given, f"--objective={name}", "--samples=20", "--kbest=3", models=("srtsg",)
        )
        for name in ("mpd", "mpp", "mer-sampled", "max-rule")
    }
    two, refined = ("tsg, seed 1", "tsg, seed 2"), ("srtsg, seed 1", "srtsg, seed 2")
    found |= {
        "parse srtsg": command(parse.main, *written, "--kbest=5", "--scores", "--confidence", models=("srtsg",)),
        "parse by threads": command(parse.main, *written, "--threads=2", models=("cfg",)),
        "parse without pruning": command(parse.main, *written, "--threshold=0", "--confidence", models=("srtsg",)),
        "parse tagged": command(parse.main, *force, "-i", "{tagged}", "--tags=soft", "--kbest=2", models=("srtsg",)),
        "parse insertion": command(parse.main, *written, "--pruning=max-marginal", models=("insertion",)),
        "parse corrected": command(
            parse.main, *written, "--correct", "--objective=mpp-sampled", "--samples=20", models=("one sample",)
        ),
        "parse trees": command(
            parse.main, *force, "--from-trees", "-i", "{trees}", "--max-length=6", models=("srtsg",)
        ),
        "parse with little": command(parse.main, *written, "--max-memory=1", models=("srtsg",)),
        "product of rules": command(parse.main, *written, "--kbest=3", models=two),
        "product of trees": command(parse.main, *written, "--product=trees", "--scores", models=two),
        "product given": command(parse.main, *given, "--confidence", "--threads=2", models=refined),
        "product of trees given": command(parse.main, *given, "--product=trees", "--kbest=2", models=refined),
        "score trees": command(parse.main, "--score={trees}", "-o", "{output}", models=("tsg",)),
        "score by product": command(parse.main, "--score={trees}", "-o", "{output}", models=refined),
        "eval": command(evaluate.main, "--quiet", "--by=label", "{trees}", "{trees}"),
        "eval two": command(evaluate.main, "--quiet", "--json", "{trees}", "{trees}", "{trees}"),
        "compare": command(compare.main, "--html={output}", "{trees}", "{trees}", "{trees}"),
        "prepare": command(prepare.main, "--quiet", "{trees}", "-o", "{output}"),
        "prepare export": command(prepare.main, "--quiet", "{export}", "-o", "{output}"),
        "prepare packed": command(prepare.main, "--quiet", "{packed}", "-o", "{output}.gz"),
        "prepare arrays": command(
            prepare.main, "--quiet", "--binarize=centre-head", "--unknown=signature", "{trees}", "-o", "{output}.npz"
        ),
        "inspect": command(inspect.main, "--quiet", models=("tsg",)),
        "inspect sites": command(inspect.main, "--quiet", models=("sites",)),
        "inspect derivation": command(inspect.main, "--quiet", "--derivation={trees}", models=("insertions",)),
        "inspect subcategories": command(inspect.main, "--quiet", "--subcategories=all", models=("two splits",)),
        "parse sites": command(parse.main, *written, models=("sites",)),
        "parse insertions": command(parse.main, *written, models=("insertions",)),
        "info": command(info.main, "--quiet", "--json", models=("joint",)),
        "generate": command(generate.main, "--quiet", "20"),
        "draw": command(draw.main, "--quiet", "--format=html", "{trees}", "-o", "{output}"),
        "draw derivations": command(
            draw.main, "--quiet", "--format=html", "--first=2", "{trees}", "-o", "{output}", "--model", models=("tsg",)
        ),
        "answer a request": answered,
    }
    for name, options in TRAININGS.items():
        found[f"train {name}"] = command(train.main, "--quiet", "--force", *options, "{trees}", "-o", "{output}")
    for name, n_iterations in RESUMED.items():
        options = TRAININGS[name]
        found[f"resume {name}"] = command(
            train.main, "--quiet", "--resume", *options, "{trees}", "-o", "{output}",
            before=interrupted(name, n_iterations),
        )  # fmt: skip
    tsg = TRAININGS["one sample"]
    found |= {
        "train with labels": command(train.main, *force, *tsg, "--induce=2", "{tags}"),
        "train from arrays": command(train.main, *force, *tsg, "{npz}", before=corpus_of),
        "train and score": command(train.main, *force, *tsg, "--dev={trees}", "{trees}"),
        "train from a start": command(train.main, *force, *JOINT, "{trees}", "--start", models=("srtsg",)),
        "train on text": command(train.main, *force, *tsg, "--raw={text}", "{trees}", "--taught-by", models=("tsg",)),
    }
    return found


def answered(folder: Path) -> Prepare:
    """A request to the server, which goes on serving after one that failed."""
    input_files(folder)
    service = ParseService([Model.load(model_file(folder, "srtsg"))], ["srtsg"], Limits(threads=1))
    request = {"text": SENTENCES.splitlines()[0], "k": 3}
    return lambda: lambda: json.dumps({**service.answer(request), "seconds": 0.0})


TARGETS = {**kernels(), **commands()}
