"""A training: the phases of any model, one after the other.

It stands between the loop (`tsgkit.inference._loop`), which knows iterations and files, and the phases, which know
samplers. A phase begins with its first iteration, so that the state after the last iteration of a phase belongs to it.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from tsgkit.errors import UsageError
from tsgkit.grammar import WeightedGrammar
from tsgkit.inference._checkpoint import corpus_digest
from tsgkit.inference._entry import MODELS, PACKAGE
from tsgkit.inference._phases import ActivePhase, Record
from tsgkit.inference._settings import Settings
from tsgkit.inference._start import Start
from tsgkit.models._closing import CellClosing, learn_closing
from tsgkit.models._model import Model
from tsgkit.models._open_trees import OPEN
from tsgkit.models._span_labels import SpanLabels, learn_span_labels
from tsgkit.treebank import FlatCorpus


class Training:
    """The training of a model.

    Parameters
    ----------
    corpus : FlatCorpus
        Binarised, with closed vocabulary.
    settings : Settings
        Their class says which model it is; what depends on the size of the treebank is filled in.
    seed : int
    threads : int
        The result does not depend on it.
    begin : Start, optional
        The last sample of a model of the same kind, trained on other trees, to begin with.

    Examples
    --------
    >>> from tsgkit.inference.recipes import TsgSettings
    >>> from tsgkit.treebank import Binarization, UnknownWords, load, prepare
    >>> corpus = prepare(load("village", "dev"), binarization=Binarization("right", 0), unknown=UnknownWords())
    >>> training = Training(corpus, TsgSettings(iterations=5, type_moves=100), seed=1)
    >>> training.start()
    >>> log_joints = [training.iterate(iteration)["log_joint"] for iteration in range(1, training.iterations + 1)]
    >>> log_joints[-1] > log_joints[0]
    True
    >>> training.model().kind
    'tsg'
    """

    def __init__(
        self, corpus: FlatCorpus, settings: Settings, *, seed: int = 0, threads: int = 1, begin: Start | None = None
    ) -> None:
        settings = settings.for_size(corpus.n_tokens)
        self.corpus, self.settings, self.seed, self.threads, self.begin = corpus, settings, seed, threads, begin
        self.entry = MODELS.require(settings.kind)
        if OPEN in corpus.settings and not self.entry.takes_open_trees:
            raise UsageError(f"a {settings.kind} model needs a tree for every sentence; a tsg samples missing ones")
        self.phases = self.entry.phases(settings)
        if begin is not None:
            begin.require_fit(settings.kind, corpus)
            self.phases = self.phases[self.entry.skipped_phases(settings, begin) :]
        self.material = self.entry.material(corpus, settings, seed=seed, threads=threads)
        self.digest = corpus_digest(corpus)
        self.closing: tuple[Sequence[str], CellClosing] | None = None
        self.span_labels: tuple[Sequence[str], CellClosing, SpanLabels] | None = None
        # The number of the current phase, and the phase itself; there is none before `start` or `restore`.
        self.number = 0
        self.active: ActivePhase

    @property
    def iterations(self) -> int:
        """Iterations of all phases."""
        return sum(phase.iterations for phase in self.phases)

    def identity(self) -> dict[str, Any]:
        """Model, settings, seed and corpus: what must be the same to go on from a checkpoint."""
        settings = asdict(self.settings)
        identity = {"model": self.settings.kind, "settings": settings, "seed": self.seed, "corpus": self.digest}
        return identity if self.begin is None else {**identity, "start": self.begin.digest}

    def copy(self) -> "Training":
        """The same training, without a state."""
        return Training(self.corpus, self.settings, seed=self.seed, threads=self.threads, begin=self.begin)

    def start(self) -> None:
        """Make the first state."""
        first = self.material
        if self.begin is not None:
            first = self.entry.begin_with(self.begin, self.material, self.settings)
        self.number, self.active = 0, self.phases[0].begin(first)

    def iterate(self, iteration: int) -> Record:
        """Do iteration number `iteration`, counted from 1; returns the quantities to record."""
        number, step = self.phase_of(iteration)
        if number != self.number:
            if (number, step) != (self.number + 1, 1):
                raise ValueError(f"iteration {iteration} does not follow: phase {self.number + 1} is not done")
            self.active = self.phases[number].begin(self.active)
            self.number = number
        return self.active.iterate(step)

    def phase_of(self, iteration: int) -> tuple[int, int]:
        """The number of the phase that an iteration belongs to, and which one it is there, counted from 1.

        The state before the first iteration is that of the first phase.
        """
        number, step = 0, iteration
        while number < len(self.phases) - 1 and step > self.phases[number].iterations:
            step -= self.phases[number].iterations
            number += 1
        return number, step

    def state(self) -> dict[str, np.ndarray]:
        """The arrays that `restore` needs."""
        return self.active.state()

    def restore(self, state: dict[str, np.ndarray], iteration: int) -> None:
        """Restore the state after an iteration.

        Raises
        ------
        UsageError
            If the state is not one of this training after this iteration.
        """
        number, _ = self.phase_of(iteration)
        try:
            active = self.phases[number].restore(state, self.material)
            if stray := set(state) ^ set(active.state()):
                raise ValueError(f"{min(stray)} is missing or unknown")
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise UsageError(f"the checkpoint does not fit the treebank or iteration {iteration}: {error}") from None
        self.number, self.active = number, active

    def model(self) -> Model:
        """The model of the present state."""
        model = self.active.export()
        if model.closing is None:
            model.closing = self.closing_of(model.grammar.words)
        if self.entry.learns_span_labels:
            model.span_labels = self.span_labels_of(model.grammar, model.closing)
        if (package := MODELS.package_of(model.kind)) is not None:
            model.info[PACKAGE] = package
        if self.begin is not None:
            model.info["start"] = {"digest": self.begin.digest, **self.begin.overlap(self.corpus)}
        return model

    def closing_of(self, vocabulary: Sequence[str]) -> CellClosing:
        """Which spans have no node, learned from the trees; once, as long as the words stay the same."""
        if self.closing is None or self.closing[0] != vocabulary:
            self.closing = vocabulary, learn_closing(self.corpus, vocabulary)
        return self.closing[1]

    def span_labels_of(self, grammar: WeightedGrammar, closing: CellClosing) -> SpanLabels:
        """Which labels spans have, learned from the trees; once, as long as words and labels stay the same."""
        known = self.span_labels
        if known is None or known[0] != grammar.labels or known[1] is not closing:
            learned = learn_span_labels(self.corpus, grammar.words, grammar.labels, closing)
            self.span_labels = known = grammar.labels, closing, learned
        return known[2]

    def describe(self, record: Record) -> dict[str, str]:
        """The figures of a record that the progress bar shows."""
        return self.active.describe(record)
