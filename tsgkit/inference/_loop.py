"""The training loop that all sampled models share: iterations, records, checkpoints, interruption.

A run that is killed at any moment and resumed ends with the same model, bit for bit, as one that never stopped: random
numbers depend on the seed and the iteration alone, and a checkpoint holds everything else.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path

import numpy as np

from tsgkit._files import open_output, remove_parts
from tsgkit._interruption import Abandoned, Background, interruptible
from tsgkit._locks import sole_writer
from tsgkit._overwriting import allow_replacing, note_output
from tsgkit._progress import LogLines, progress
from tsgkit.errors import JobInterrupted, OverwriteError, TsgkitError, UsageError
from tsgkit.inference._checkpoint import (
    Checkpoint,
    checkpoint_path,
    files_of_run,
    records_path,
    require_new,
    require_room,
)
from tsgkit.inference._phases import Record
from tsgkit.inference._training import Training
from tsgkit.models._model import Model

SECONDS = "seconds"
UNFINISHED = "unfinished"  # the key in `Model.info` of a model whose training was interrupted
CHECKPOINT_EVERY = 100
# An iteration that takes long is given up on Ctrl-C, and what is lost with it is what came after the last copy of the
# state. There is one every so often, unless copies take a larger share of the time than this.
SECONDS_BETWEEN_COPIES = 1.0
SHARE_OF_COPIES = 0.02
# Called after every iteration with its number and record; returns whether to stop.
Watch = Callable[[int, Record], bool]


@dataclass
class Run:
    """A training run.

    Parameters
    ----------
    training : Training
    output : path
        The model's file; where there are iterations, the checkpoint and the table of records lie beside it.
    checkpoint_every : int
        Iterations between checkpoints.
    resume : bool
        Continue from the checkpoint if there is one.
    force : bool
        Replace existing files of this output; with `resume`, only those without a checkpoint.
    quiet : bool
        No progress bar, and no lines where stderr is not a terminal.
    log : path, optional
        A file to append lines to, every so often: iteration, log joint, time left.
    watch : callable, optional
        Called after every iteration; returns whether to stop. By default a progress bar shows the run and Ctrl-C stops
        it.
    stopped : callable, optional
        Asked during every iteration whether to stop; an iteration that then takes longer than a fraction of a second is
        given up.
    patience : float
        Seconds to wait for a killed process that may still hold the lock of these files.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from tsgkit.inference.recipes import TsgSettings
    >>> from tsgkit.treebank import Binarization, UnknownWords, load, prepare
    >>> corpus = prepare(load("village", "dev"), binarization=Binarization("right", 0), unknown=UnknownWords())
    >>> with TemporaryDirectory() as folder:
    ...     run = Run(Training(corpus, TsgSettings(iterations=3)), Path(folder) / "tsg.model", quiet=True)
    ...     run.run().kind, len(run.history["log_joint"])
    ('tsg', 3)
    """

    training: Training
    output: Path
    _: KW_ONLY
    checkpoint_every: int = CHECKPOINT_EVERY
    resume: bool = False
    force: bool = False
    quiet: bool = False
    log: Path | None = None
    watch: Watch | None = None
    done: int = 0
    history: dict[str, list[float]] = field(default_factory=dict)
    interrupted: bool = False
    # Whether an unfinished model was not written, because another one is there.
    keeps_other: bool = False
    patience: float = 0.0
    stopped: Callable[[], bool] | None = None
    # Where iterations run; and the last state that was copied, to return to if an iteration is given up.
    background: Background = field(init=False, repr=False)
    kept: Checkpoint = field(init=False, repr=False)
    next_copy: float = field(init=False, default=0.0)
    is_abandoned: bool = field(init=False, default=False)

    @property
    def iterations(self) -> int:
        """In all, those of resumed runs included."""
        return self.training.iterations

    def run(self) -> Model:
        """Train to the end, or until interrupted; in both cases the model is written and returned.

        But an unfinished model does not replace another one (`force`).

        Raises
        ------
        JobInterrupted
            If the run was interrupted, and the model of the current state takes too long to compute; the state
            itself is in the checkpoint.
        JobError
            If another process is training the same model.
        OverwriteError
            If files of this output exist, and neither `resume` nor `force` allows to replace them.
        """
        files = files_of_run(self.output)
        with sole_writer(*files, patience=self.patience):
            for path in files:
                note_output(path, is_archive=True)
            self.require_new()
            for path in files:
                remove_parts(path)
            return self.run_alone() if self.iterations else self.run_without_iterations()

    def require_new(self) -> None:
        """Refuse to replace files that exist, as `run` does."""
        if self.force:
            for path in files_of_run(self.output):
                allow_replacing(path)
        elif self.iterations or not self.resume:
            require_new(files_of_run(self.output), resume=self.resume)

    def run_without_iterations(self) -> Model:
        """Count; resumed, an existing model must be the same."""
        with Background() as background:
            background.run(self.training.start)
            model = background.run(self.training.model)
        if self.resume and not self.force and self.output.exists():
            if self.output.read_bytes() != model.to_bytes():
                raise OverwriteError(f"{self.output}: holds something else; --force replaces it")
            return model
        model.save(self.output)
        return model

    def run_alone(self) -> Model:
        with Background() as self.background:
            self.background.run(self.begin)
            with self.watched() as watch:
                try:
                    while self.done < self.iterations and not self.interrupted:
                        record = self.step(self.done + 1)
                        if watch(self.done, record):
                            self.interrupted = True
                except Abandoned:
                    self.interrupted = True
                    self.go_back()
            self.checkpoint()
            try:
                model = self.background.run(self.exported, self.is_cut_short)
            except Abandoned:
                raise JobInterrupted(
                    f"interrupted after {self.done} iterations, which are in {checkpoint_path(self.output)};"
                    " --resume continues from there. The model takes longer to compute and is not written"
                ) from None
            return self.finish(model)

    def go_back(self) -> None:
        """Return to the last state that was kept, because an iteration takes too long to wait for its end."""
        saved = self.kept
        self.done = saved.iteration
        self.history = {name: values.tolist() for name, values in saved.history.items()}
        # The thread and the sampler are at work on the iteration that was given up.
        self.is_abandoned, self.background = True, Background()

    def keep_state(self) -> None:
        """Keep a copy of the present state in memory."""
        started = time.monotonic()
        saved = self.snapshot()
        saved.state = {name: np.array(values) for name, values in saved.state.items()}
        self.kept, now = saved, time.monotonic()
        self.next_copy = now + max(SECONDS_BETWEEN_COPIES, (now - started) / SHARE_OF_COPIES)

    def begin(self) -> None:
        path = checkpoint_path(self.output)
        if self.resume and path.exists():
            saved = Checkpoint.load(path, self.training.identity())
            if saved.iteration > self.iterations:
                raise UsageError(f"{path}: the checkpoint is of iteration {saved.iteration} of {self.iterations}")
            self.training.restore(saved.state, saved.iteration)
            self.done = saved.iteration
            self.history = {name: values.tolist() for name, values in saved.history.items()}
            self.keep_state()
        else:
            self.training.start()
            # Written before the first iteration, so that a folder that is not writable or a full disk is found now.
            self.checkpoint()
            require_room(path)

    def step(self, iteration: int) -> Record:
        started = time.perf_counter()
        record = self.background.run(lambda: self.training.iterate(iteration), self.is_stopped)
        record[SECONDS] = time.perf_counter() - started
        for name, value in record.items():
            self.history.setdefault(name, []).append(value)
        self.done = iteration
        if iteration % self.checkpoint_every == 0:
            self.checkpoint()
        if time.monotonic() >= self.next_copy:
            self.keep_state()
        return record

    def is_stopped(self) -> bool:
        """Whether to stop before the current iteration has ended."""
        return self.interrupted or (self.stopped is not None and self.stopped())

    def is_cut_short(self) -> bool:
        """Whether somebody waits for the end of an interrupted run; callers of `watch` want its model."""
        return self.done < self.iterations and (self.watch is None or self.stopped is not None)

    def snapshot(self) -> Checkpoint:
        history = {name: np.array(values) for name, values in self.history.items()}
        return Checkpoint(self.done, self.training.identity(), self.training.state(), history)

    def checkpoint(self) -> None:
        if not self.is_abandoned:
            self.keep_state()
        self.kept.save(checkpoint_path(self.output))

    def finish(self, model: Model) -> Model:
        """Write the model and the records."""
        if self.done < self.iterations:
            self.keeps_other = is_other_result(self.output)
        if not self.keeps_other:
            model.save(self.output)
            self.write_records()
        return model

    def exported(self) -> Model:
        """The model of the present state, with what was recorded."""
        if self.is_abandoned:
            self.training = self.training.copy()
            self.training.restore(self.kept.state, self.kept.iteration)
        model = self.training.model()
        model.info["iterations"] = self.done
        # How long it took is not part of the model: the same training gives the same file.
        names = [name for name in self.history if name != SECONDS]
        model.state |= {f"history_{name}": np.array(self.history[name]) for name in names}
        if self.done < self.iterations:
            model.info[UNFINISHED] = True
        return model

    def write_records(self) -> None:
        """The table of all iterations, with seconds, beside the model."""
        names = list(self.history)
        lines = ["\t".join(["iteration", *names])]
        lines += [
            "\t".join([str(number), *(f"{value:.10g}" for value in values)])
            for number, values in enumerate(zip(*self.history.values(), strict=True), start=1)
        ]
        with open_output(records_path(self.output)) as file:
            file.write("\n".join(lines) + "\n")

    @contextmanager
    def watched(self) -> Iterator[Watch]:
        """The callback for iterations: that of the caller, or one for the progress bar and Ctrl-C."""
        if self.watch is not None:
            yield self.watch
            return
        todo = range(self.done, self.iterations)
        name, n_tokens = self.training.settings.kind, self.training.corpus.n_tokens
        title = f"training {name}: {self.iterations} iterations over {n_tokens} tokens"
        lines = LogLines(title, self.iterations, done=self.done, quiet=self.quiet, path=self.log)
        with interruptible(self.interrupt), progress(todo, "training", "iterations", quiet=self.quiet) as bar:

            def show(done: int, record: Record) -> bool:
                figures = self.training.describe(record)
                bar.set_postfix(figures, refresh=False)
                bar.update()
                lines.add(done, ", ".join(f"{name} {value}" for name, value in figures.items()))
                return self.interrupted

            yield show
        lines.close(f"{'interrupted after' if self.interrupted else 'done:'} {self.done} iterations")

    def interrupt(self) -> None:
        """Stop after the current iteration, or before its end if it takes long."""
        self.interrupted = True


class RunInMemory(Run):
    """A run that writes no file.

    Parameters
    ----------
    training : Training
    watch : callable
        Called after every iteration; returns whether to stop.
    """

    def __init__(self, training: Training, watch: Watch) -> None:
        super().__init__(training, Path(os.devnull), quiet=True, watch=watch)

    def run(self) -> Model:
        """Train to the end, or until `watch` stops it."""
        if self.iterations:
            return self.run_alone()
        self.training.start()
        return self.training.model()

    def begin(self) -> None:
        self.training.start()

    def checkpoint(self) -> None:
        """There are none."""

    def finish(self, model: Model) -> Model:
        return model


def is_other_result(path: Path) -> bool:
    """Whether a file exists that is not the model of an unfinished training."""
    if not path.exists():
        return False
    try:
        return not Model.load(path, path.read_bytes()).info.get(UNFINISHED, False)
    except TsgkitError:
        return True
