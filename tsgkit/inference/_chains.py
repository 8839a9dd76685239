"""Several chains of the same training: their seeds, their files, and where they run.

Every chain is an ordinary run with its own seed, checkpoint and model file, as if it were trained alone with that seed.
If one fails, the others are not affected.
"""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tsgkit import __version__
from tsgkit._files import new_file
from tsgkit._interruption import interruptible
from tsgkit._locks import sole_writer
from tsgkit._overwriting import allow_replacing, note_output
from tsgkit._progress import LogLines, progress
from tsgkit.distributed import Backend, Link, require_same_version
from tsgkit.distributed._base import Shared
from tsgkit.errors import JobInterrupted, OverwriteError
from tsgkit.inference._checkpoint import beside, checkpoint_path, files_of_run, require_new
from tsgkit.inference._convergence import QUANTITIES, Diagnosis, diagnose, kept_draws
from tsgkit.inference._entry import MODELS
from tsgkit.inference._loop import CHECKPOINT_EVERY, Run, Watch
from tsgkit.inference._phases import Phase, Record, burn_in
from tsgkit.inference._settings import Settings
from tsgkit.inference._start import Start
from tsgkit.inference._training import Training
from tsgkit.treebank import FlatCorpus

# How long a chain waits for the locks of its files, which a process that was killed may still hold.
SECONDS_FOR_LOCKS = 30.0


@dataclass(frozen=True)
class Plan:
    """Everything that a chain is trained with except its seed.

    Parameters
    ----------
    settings : Settings
        Their class says which model it is.
    checkpoint_every : int
        Iterations between checkpoints.
    threads : int
        Threads of every chain; the result does not depend on it.
    n_skipped : int
        So many of the first phases are those of a start; see `tsgkit.inference._start`.

    Examples
    --------
    >>> from tsgkit.inference.recipes import TsgSettings
    >>> plan = Plan(TsgSettings(iterations=500, anneal_from=2.0, anneal_iterations=100))
    >>> plan.iterations, plan.burn_in
    (500, 100)
    """

    settings: Settings
    checkpoint_every: int = CHECKPOINT_EVERY
    threads: int = 1
    n_skipped: int = 0

    @property
    def phases(self) -> Sequence[Phase]:
        return MODELS.require(self.settings.kind).phases(self.settings)[self.n_skipped :]

    def for_corpus(self, corpus: FlatCorpus) -> "Plan":
        """The plan for a treebank, on whose size settings can depend."""
        return replace(self, settings=self.settings.for_size(corpus.n_tokens))

    def after(self, start: Start) -> "Plan":
        """The plan without the phases that a start has done."""
        return replace(self, n_skipped=MODELS.require(self.settings.kind).skipped_phases(self.settings, start))

    @property
    def is_sampled(self) -> bool:
        """Whether there are iterations at all, on whatever treebank."""
        return replace(self, settings=self.settings.for_size(0)).iterations > 0

    @property
    def iterations(self) -> int:
        """Iterations of a chain; 0 if the model is not sampled."""
        return sum(phase.iterations for phase in self.phases)

    @property
    def burn_in(self) -> int:
        """The iteration after which all others sample the same distribution."""
        return burn_in(self.phases)

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain values."""
        return {**asdict(self), "kind": self.settings.kind}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Plan":
        """The inverse of `to_dict`."""
        others = dict(values)
        make = MODELS.require(others.pop("kind")).settings
        return cls(**{**others, "settings": make(**others["settings"])})

    def run(self, corpus: FlatCorpus, seed: int, output: Path, start: Start | None = None, **options: Any) -> Run:
        """The run of a chain; `options` are those of `tsgkit.inference._loop.Run`."""
        training = Training(corpus, self.settings, seed=seed, threads=self.threads, begin=start)
        return Run(training, output, checkpoint_every=self.checkpoint_every, **options)


def chain_seeds(seed: int, n_chains: int) -> list[int]:
    """The seeds of chains 1, 2, ...: numpy's `SeedSequence` spawns them, so they do not depend on how many there are.

    Examples
    --------
    >>> chain_seeds(0, 2)
    [4334430513956379144, 2440950710608614359]
    >>> chain_seeds(0, 3)[:2] == chain_seeds(0, 2)
    True
    """
    spawned = np.random.SeedSequence(seed).spawn(n_chains)
    # Seeds are below 2^63 here.
    return [int(sequence.generate_state(1, np.uint64)[0]) >> 1 for sequence in spawned]


def chain_path(output: str | os.PathLike[str], number: int) -> Path:
    """Where the model of chain `number`, counted from 1, lies.

    Examples
    --------
    >>> chain_path("wsj.model", 3).name
    'wsj.model.chain03'
    """
    return Path(f"{os.fspath(output)}.chain{number:02d}")


@dataclass
class Chain:
    """The outcome of a chain.

    Attributes
    ----------
    number : int
        From 1.
    seed : int
    path : Path
        Its model.
    done : int
        Iterations done.
    error : str
        Why it failed; ``''`` if it did not.
    history : dict of list
        The quantities of every iteration by which convergence is judged.
    """

    number: int
    seed: int
    path: Path
    done: int = 0
    error: str = ""
    history: dict[str, list[float]] = field(default_factory=dict)

    def log_joint(self, burn_in: int) -> float:
        """The mean log joint of the kept draws."""
        return float(kept_draws(self.history["log_joint"], burn_in).mean())


@dataclass
class Chains:
    """Chains of one training.

    Parameters
    ----------
    plan : Plan
    corpus : FlatCorpus
    output : path
        The model file; the best chain is copied there. For the files of the chains see `chain_path`.
    seed : int
        The seeds of the chains are derived from it, see `chain_seeds`.
    n_chains : int
    resume : bool
        Continue from existing checkpoints.
    force : bool
        Replace existing files of these chains, and discard their checkpoints.
    quiet : bool
        No progress bar.
    start : path, optional
        The model that all chains begin with.
    log : path, optional
        A file to append lines to, every so often: the iterations of each chain, and the time left.
    """

    plan: Plan
    corpus: FlatCorpus
    output: Path
    seed: int
    n_chains: int
    resume: bool = False
    force: bool = False
    quiet: bool = False
    start: Path | None = None
    log: Path | None = None
    interrupted: bool = False
    is_locked: bool = field(init=False, default=False)
    chains: list[Chain] = field(init=False)

    def __post_init__(self) -> None:
        # Absolute, because it is the workers who write.
        self.output = Path(os.path.abspath(self.output))
        seeds = chain_seeds(self.seed, self.n_chains)
        self.chains = [Chain(number, seed, chain_path(self.output, number)) for number, seed in enumerate(seeds, 1)]

    @property
    def shared_files(self) -> list[Path]:
        """The files that belong to all chains together."""
        return [*files_of_run(self.output), beside(self.output, "convergence.tsv")]

    @contextmanager
    def sole_writer(self) -> Iterator[None]:
        """Hold the lock of the output in this block; within another such block, that one counts.

        Raises
        ------
        JobError
            If another process is writing the same files.
        OverwriteError
            If files of this output exist, and neither `resume` nor `force` allows to replace them.
        """
        if self.is_locked:
            yield
            return
        if not self.output.parent.is_dir():
            raise FileNotFoundError(2, "No such folder", str(self.output.parent))
        with sole_writer(*self.shared_files):
            self.is_locked = True
            try:
                self.require_new()
                yield
            finally:
                self.is_locked = False

    def require_new(self) -> None:
        """Refuse to replace files of another run."""
        own = [path for chain in self.chains for path in files_of_run(chain.path)]
        for path in (*self.shared_files, *own):
            note_output(path, is_archive=True)
        if self.force:
            for path in (*self.shared_files, *own):
                allow_replacing(path)
            return
        if not self.resume:
            require_new([*self.shared_files, *own])
            return
        for chain in self.chains:
            require_new(files_of_run(chain.path), resume=True)
        if self.output.exists() and not any(is_same_content(self.output, path) for path in self.all_models()):
            raise OverwriteError(
                f"{self.output}: is not the model of one of these chains; --force replaces it, another --output"
                " keeps it"
            )

    def run(self, backend: Backend) -> Iterator[Chain]:
        """Run all chains; each is yielded when it ends: finished, interrupted or failed."""
        with self.sole_writer():
            if self.force and not self.resume:
                # A chain always continues from its checkpoint, also if the worker that began it was lost.
                for chain in self.chains:
                    checkpoint_path(chain.path).unlink(missing_ok=True)
            yield from self.run_alone(backend)

    def run_alone(self, backend: Backend) -> Iterator[Chain]:
        start = None if self.start is None else as_array(self.start.read_bytes())
        corpus = as_array(self.corpus.to_bytes())
        shared = {"version": __version__, "plan": self.plan.to_dict(), "corpus": corpus, "start": start}
        items = [{"seed": chain.seed, "output": str(chain.path)} for chain in self.chains]
        with (
            interruptible(lambda: self.interrupt(backend)),
            progress(
                None, "training", "iterations", total=self.n_chains * self.plan.iterations, quiet=self.quiet
            ) as bar,
        ):
            title = f"training {self.n_chains} chains of {self.plan.settings.kind}"
            lines = LogLines(title, self.n_chains * self.plan.iterations, quiet=self.quiet, path=self.log)

            def show(index: int, message: dict[str, Any]) -> None:
                self.chains[index].done = message["done"]
                bar.n = sum(chain.done for chain in self.chains)
                bar.set_postfix_str(self.overview())
                lines.add(bar.n, self.overview())

            for outcome in backend.gather(run_chain, shared, items, show):
                chain = self.chains[outcome.index]
                chain.error = outcome.error
                if outcome.value is not None:
                    chain.done, chain.history = outcome.value["done"], outcome.value["history"]
                    show(outcome.index, outcome.value)
                yield chain

    def overview(self) -> str:
        """The progress of each chain."""
        shares = (f"{chain.number}: {chain.done / self.plan.iterations:.0%}" for chain in self.chains)
        return f"chain {', '.join(shares)}"

    def interrupt(self, backend: Backend) -> None:
        self.interrupted = True
        backend.stop()

    @property
    def finished(self) -> list[Chain]:
        """The chains that have done all iterations."""
        return [chain for chain in self.chains if chain.history and chain.done == self.plan.iterations]

    def stale_files(self) -> list[Path]:
        """Model files of chains of other runs, beside the output."""
        current = {chain.path for chain in self.chains}
        return [path for path in self.all_models() if path not in current]

    def all_models(self) -> list[Path]:
        """The model files of all chains of this output, also of those of other runs."""
        pattern = f"{self.output.name}.chain"
        found = (path for path in self.output.parent.iterdir() if path.name.startswith(pattern))
        return sorted(path for path in found if path.name.removeprefix(pattern).isdigit())

    def choose(self, chain: Chain) -> None:
        """Make a chain's model the output."""
        with open(chain.path, "rb") as source, new_file(self.output, is_archive=True) as target:
            shutil.copyfileobj(source, target)

    def diagnose(self) -> list[Diagnosis]:
        """How well the finished chains agree; also written beside the output."""
        found = diagnose([chain.history for chain in self.finished], self.plan.burn_in)
        with new_file(beside(self.output, "convergence.tsv")) as file:
            file.write(diagnosis_table(found).encode())
        return found


def is_same_content(first: Path, second: Path) -> bool:
    """Whether two files have the same bytes."""
    return first.stat().st_size == second.stat().st_size and first.read_bytes() == second.read_bytes()


def diagnosis_table(diagnoses: Sequence[Diagnosis]) -> str:
    """Diagnoses as a table with tabs."""
    rows = [list(map(str, asdict(one).values())) for one in diagnoses]
    head = list(Diagnosis.__dataclass_fields__)
    return "".join("\t".join(row) + "\n" for row in (head, *rows))


def as_array(content: bytes) -> np.ndarray:
    """Bytes as an array: joblib sends a large array to its processes only once, through a file."""
    return np.frombuffer(content, dtype=np.uint8)


def run_chain(shared: Shared, item: dict[str, Any], link: Link) -> dict[str, Any]:
    """The task of a chain, wherever it runs; it continues from its checkpoint, if there is one."""
    require_same_version(shared["version"])
    corpus = FlatCorpus.load("the treebank that was sent", shared["corpus"].tobytes())
    plan = Plan.from_dict(shared["plan"])
    start = None if shared["start"] is None else Start.load("the start that was sent", shared["start"].tobytes())
    # What exists was checked before; a process that was killed may still hold its locks for a moment.
    options = {"resume": True, "force": True, "patience": SECONDS_FOR_LOCKS, "stopped": link.stopped}
    run = plan.run(corpus, item["seed"], Path(item["output"]), start, **options, watch=watch_of(link))
    with suppress(JobInterrupted):  # its checkpoint is written
        run.run()
    return {"done": run.done, "history": {name: run.history[name] for name in QUANTITIES if name in run.history}}


def watch_of(link: Link) -> Watch:
    def watch(done: int, record: Record) -> bool:
        link.report({"done": done})
        return link.stopped()

    return watch
