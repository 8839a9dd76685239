"""Commands that write files, what they start from, and what must hold after a fault."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from injection.control import Injector

from tsgkit.treebank import load
from tsgkit.treebank._brackets import format_tree

TSG = "train -q --model=tsg --iterations=4 --checkpoint-every=2 --average=2 --average-every=1"
CFG = "train -q --model=cfg"
PHASES = (
    "train -q --model=srtsg --splits=2 --split-iterations=2 --site-iterations=2 --joint-iterations=2"
    " --insertion-iterations=2 --fragment-moves=5 --checkpoint-every=1 --average=2 --average-every=1"
)


@dataclass(frozen=True)
class Scenario:
    """A command, and how it is repeated after a fault.

    Attributes
    ----------
    words : str
        The command.
    outputs : tuple of str
        Files with the same bytes whenever it succeeds.
    also : tuple of str
        Other files that it leaves: their bytes contain times.
    again : str
        What to add to repeat it after a fault.
    before : tuple of str
        Commands that are run first; what they write is not the subject.
    old : tuple of str
        Outputs that exist before, with other content.
    is_parallel : bool
        Whether it starts processes, which makes it slow, and the order of calls another one every time.
    needs_cluster : bool
        Whether it runs on a Dask cluster, whose scheduler file is in the folder above.
    """

    words: str
    outputs: tuple[str, ...]
    also: tuple[str, ...] = ()
    again: str = ""
    before: tuple[str, ...] = ()
    old: tuple[str, ...] = ()
    is_parallel: bool = False
    needs_cluster: bool = False

    def arguments(self, *, again: bool = False) -> list[str]:
        return f"{self.words} {self.again if again else ''}".split()


def sampled(words: str, **others: object) -> Scenario:
    """A training with iterations."""
    return Scenario(f"{words} a.mrg -o m", ("m",), ("m.checkpoint", "m.tsv"), again="--resume", **others)  # type: ignore[arg-type]


CHAINS = ("m.chain01", "m.chain02", "m.convergence.tsv")
CHAIN_FILES = tuple(f"m.{kind}.chain0{number}" for kind in ("checkpoint", "tsv") for number in (1, 2))
SCENARIOS = {
    "prepare": Scenario("prepare -q a.mrg b.mrg -o out.mrg", ("out.mrg",), old=("out.mrg",)),
    "prepare-gz": Scenario("prepare -q a.mrg -o out.mrg.gz", ("out.mrg.gz",)),
    "prepare-npz": Scenario("prepare -q --binarize=right --unknown=unicode a.mrg -o out.npz", ("out.npz",)),
    "prepare-split": Scenario("prepare -q a.mrg --split=60,40 -o s.mrg", ("s.train.mrg", "s.test.mrg")),
    "cfg": Scenario(f"{CFG} a.mrg -o m", ("m",), again="--resume"),
    "cfg-force": Scenario(f"{CFG} --force a.mrg -o m", ("m",), before=(f"{CFG} b.mrg -o m",)),
    "tsg": sampled(TSG),
    "tsg-local": sampled(f"{TSG} --sampler=local --type-moves=20"),
    "tsg-force": Scenario(
        f"{TSG} --force a.mrg -o m", ("m",), ("m.checkpoint", "m.tsv"), before=(f"{TSG} --seed=3 b.mrg -o m",)
    ),
    "partial": sampled(f"{TSG} --partial=brackets"),
    "induce": Scenario(f"{TSG} --induce=2 tags -o m", ("m",), ("m.checkpoint", "m.tsv"), again="--resume"),
    "insertion": sampled(TSG.replace("=tsg", "=insertion")),
    "srtsg": sampled(PHASES),
    "srtsg-sites": sampled(f"{PHASES} --sites=local --merge=0.25"),
    "raw-text": Scenario(
        f"{TSG} --raw=text --teachers=1 a.mrg -o m",
        ("m", "m.teachers.chain01", "m.raw.mrg"),
        ("m.checkpoint", "m.tsv", "m.teachers.checkpoint.chain01", "m.teachers.tsv.chain01", "m.raw.json"),
        again="--resume",
        is_parallel=True,
    ),
    "chains": Scenario(
        f"{TSG} --chains=2 --jobs=2 a.mrg -o m", ("m", *CHAINS), CHAIN_FILES, again="--resume", is_parallel=True
    ),
    "dask": Scenario(
        f"{TSG} --chains=2 --backend=dask --scheduler=../scheduler.json a.mrg -o m",
        ("m", *CHAINS),
        CHAIN_FILES,
        again="--resume",
        is_parallel=True,
        needs_cluster=True,
    ),
    "parse": Scenario("parse -q g.model -i text -o out", ("out",), again="--resume", old=("out",)),
    "parse-gz": Scenario("parse -q g.model -i text -o out.gz", ("out.gz",), again="--resume"),
    "parse-kbest": Scenario("parse -q g.model --kbest=3 --scores -i text -o out", ("out",), again="--resume"),
    "parse-constraints": Scenario("parse -q g.model --constraints -i brackets -o out", ("out",), again="--resume"),
    "report": Scenario("report -q g.model --fragments=2 --derivations=1 -o out.html", ("out.html",), old=("out.html",)),
    "draw": Scenario("draw a.mrg --format=html -o out.html", ("out.html",)),
    "compare": Scenario("compare a.mrg a.mrg a.mrg --html=out.html", ("out.html",)),
    "generate": Scenario("generate -q 20 --truth=out", ("out",)),
    "eval": Scenario("eval a.mrg a.mrg", ()),
}


@dataclass
class Stage:
    """A folder in which a scenario is run again and again."""

    scenario: Scenario
    folder: Path
    injector: Injector
    inputs: dict[str, bytes] = field(default_factory=dict)
    wanted: dict[str, bytes] = field(default_factory=dict)
    final: set[str] = field(default_factory=set)
    kinds: str = ""

    def prepare(self) -> None:
        """Write the inputs, and run the command once without a fault."""
        self.folder.mkdir(parents=True)
        trees = [format_tree(tree) + "\n" for tree in load("village", "dev")]
        (self.folder / "a.mrg").write_text("".join(trees[:6]), encoding="utf-8")
        (self.folder / "b.mrg").write_text("".join(trees[6:9]), encoding="utf-8")
        (self.folder / "text").write_text("he ran .\nthe dog barked .\nI saw it .\n")
        (self.folder / "brackets").write_text("(NP he) ran .\n( the dog ) barked .\nI saw it .\n")
        (self.folder / "tags").write_text("DT NN VBD .\nPRP VBD DT NN .\n")
        self.must(f"{CFG} a.mrg -o g.model")
        for words in self.scenario.before:
            self.must(words)
        for name in self.scenario.old:
            (self.folder / name).write_text("old\n")
        self.inputs = self.files()
        self.kinds = self.must(self.scenario.words)
        found = self.files()
        self.wanted = {name: found[name] for name in self.scenario.outputs}
        self.final = set(found)
        expected = set(self.inputs) | set(self.scenario.outputs) | set(self.scenario.also)
        assert self.final == expected, self.final ^ expected

    def must(self, words: str) -> str:
        """Run a command that must succeed; returns the kinds of its calls."""
        result = self.injector.run(self.folder, words.split())
        assert result.code == 0, result.said
        return result.kinds

    def reset(self) -> None:
        """Restore the inputs, and nothing else."""
        shutil.rmtree(self.folder)
        self.folder.mkdir()
        for name, content in self.inputs.items():
            (self.folder / name).write_bytes(content)

    def files(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.folder.iterdir()}

    def require_nothing_lost(self, require: Callable[[bool, str], None]) -> None:
        """All inputs and old outputs are there, or replaced by what belongs there."""
        found = self.files()
        for name, content in self.inputs.items():
            others = [self.wanted[name]] if name in self.wanted else []
            if name in self.scenario.also:  # of the run before, or of this one
                require(name in found, f"{name} is lost")
            else:
                require(found.get(name) in (content, *others), f"{name} is lost or damaged")
        for name in set(self.wanted) & set(found) - set(self.inputs):
            allowed = [self.wanted[name]]
            if self.scenario.is_parallel:
                # Without a chain that was killed, the best chain is another one, and so is the table of diagnostics.
                allowed = [found[name]] if name.endswith(".tsv") else list(self.wanted.values())
            require(found[name] in allowed, f"{name} is half-written")

    def require_final(self, require: Callable[[bool, str], None]) -> None:
        """The files are those of a run without faults."""
        found = self.files()
        require(set(found) == self.final, f"other files: {sorted(set(found) ^ self.final)}")
        for name, content in self.wanted.items():
            require(found.get(name) == content, f"{name} has other content")
