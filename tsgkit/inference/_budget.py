"""A budget of time: the longest training that fits into it.

Before a training. A trial with a few sweeps of every phase says what a sweep costs on this machine; then the first of
the schedules that the model offers (`Settings.shorter`, the most accurate first) whose time fits is taken. The model
that follows depends on the schedule and on nothing else of the budget: with its numbers as settings it can be trained
again.
"""

import time
from dataclasses import dataclass, fields, replace
from statistics import median

from tsgkit.errors import UsageError
from tsgkit.inference._chains import Plan
from tsgkit.inference._entry import MODELS
from tsgkit.inference._start import Start
from tsgkit.inference._training import Training
from tsgkit.treebank import FlatCorpus

# Sweeps of every phase of a trial, of which the last one also adds to the mean.
TRIAL_SWEEPS = 4
# The share of the time that may be used: sweeps become slower when fragments have grown, and other programs run, too.
USABLE = 0.85


@dataclass(frozen=True)
class Costs:
    """What a training takes, in seconds.

    Attributes
    ----------
    fixed : float
        For the first state and the export.
    sweeps : dict of str to float
        For a sweep, by the kind of its phase.
    sample : float
        For adding a sample to the mean.
    """

    fixed: float
    sweeps: dict[str, float]
    sample: float

    def seconds(self, plan: Plan) -> float:
        """The time that a training takes."""
        per_phase = (phase.iterations * self.sweeps[type(phase).__name__] for phase in plan.phases)
        return self.fixed + sum(per_phase) + getattr(plan.settings, "average", 0) * self.sample


def measure(plan: Plan, corpus: FlatCorpus, start: Start | None = None) -> Costs:
    """The costs of a training, by a trial of a few sweeps of every phase.

    Parameters
    ----------
    plan : Plan
        For this corpus (`Plan.for_corpus`).
    corpus : FlatCorpus
    start : Start, optional
    """
    names = {each.name for each in fields(plan.settings) if each.name.endswith("iterations")}
    short = {name: TRIAL_SWEEPS for name in names if getattr(plan.settings, name)}
    settings = replace(plan.settings, **short, **({"anneal_iterations": 0} if "anneal_iterations" in names else {}))
    begun = time.perf_counter()
    training = Training(corpus, settings, threads=plan.threads, begin=start)
    training.start()
    fixed, sample = time.perf_counter() - begun, 0.0
    sweeps: dict[str, list[float]] = {}
    for iteration in range(1, training.iterations + 1):
        begun = time.perf_counter()
        training.iterate(iteration)
        number, step = training.phase_of(iteration)
        seconds = time.perf_counter() - begun
        if step == TRIAL_SWEEPS and iteration == training.iterations:
            sample = seconds
        else:
            sweeps.setdefault(type(training.phases[number]).__name__, []).append(seconds)
    costs = {name: median(values) for name, values in sweeps.items()}
    begun = time.perf_counter()
    training.model()
    fixed += time.perf_counter() - begun
    last = type(training.phases[-1]).__name__
    return Costs(fixed, costs, max(sample - costs[last], 0.0))


def within(plan: Plan, corpus: FlatCorpus, seconds: float, start: Start | None = None) -> tuple[Plan, float]:
    """The plan with the schedule that fits into a time, and the time it will take.

    Parameters
    ----------
    plan : Plan
        For this corpus (`Plan.for_corpus`).
    corpus : FlatCorpus
    seconds : float
        The trial is part of it.
    start : Start, optional

    Raises
    ------
    UsageError
        If no schedule fits; it says how much time the shortest one takes.

    Examples
    --------
    >>> from tsgkit.inference.recipes import TsgSettings
    >>> from tsgkit.treebank import Binarization, UnknownWords, load, prepare
    >>> corpus = prepare(load("village", "dev"), binarization=Binarization("right", 0), unknown=UnknownWords())
    >>> plan, expected = within(Plan(TsgSettings(iterations=100)), corpus, 60.0)
    >>> plan.iterations, expected < 60
    (200, True)
    """
    begun = time.perf_counter()
    if not plan.iterations:
        raise UsageError(f"a {plan.settings.kind} is counted, not sampled: it needs no budget of time")
    costs = measure(plan, corpus, start)
    left = USABLE * (seconds - (time.perf_counter() - begun))
    expected = 0.0
    for settings in plan.settings.shorter():
        shorter = replace(plan, settings=settings)
        if start is not None and MODELS.require(settings.kind).skipped_phases(settings, start) != plan.n_skipped:
            break
        expected = costs.seconds(shorter)
        if expected <= left:
            return shorter, expected
    raise UsageError(
        f"{seconds / 60:.2g} minutes are too few: the shortest training of this treebank takes about"
        f" {(expected / USABLE + time.perf_counter() - begun) / 60:.2g}; a smaller model, or fewer trees"
    )
