"""What a report says of the training: facts from the model file, checked; phases; plots; whether the chains converged.

A model file may come from anybody. What its header says of the training has no meaning for the parser and is not
checked when it is read; so it is checked here.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from tsgkit._plain import settings_of
from tsgkit.errors import UsageError
from tsgkit.inference._convergence import Diagnosis, diagnose, kept_draws
from tsgkit.inference._entry import entry_of
from tsgkit.inference._phases import Phase, burn_in
from tsgkit.models._model import Model
from tsgkit.report._page import escape, table
from tsgkit.report._panels import Panel
from tsgkit.report._plots import Mark, Series, line_plot

if TYPE_CHECKING:
    from tsgkit.report._model_report import Report

PREFIX = "history_"
WHOLE_NUMBERS = ("trees", "tokens", "samples", "seed", "iterations")
# What the table of every iteration has, and how its plot is called.
HISTORIES = (
    ("log_joint", "Log joint probability"),
    ("acceptance", "Accepted proposals"),
    ("fragments", "Different fragments"),
    ("auxiliary", "Different auxiliary trees"),
    ("insertions", "Insertions"),
    ("mean_size", "Mean size of fragments"),
    ("symbols", "Refined symbols"),
    ("rules", "Different refined rules"),
)


def require_facts(model: Model, name: str) -> None:
    """Refuse a model whose file says of its training what cannot be.

    Raises
    ------
    UsageError
        Names the file, and what is wrong.
    """
    for key in WHOLE_NUMBERS:
        value = model.info.get(key, 0)
        if not isinstance(value, int) or isinstance(value, bool):
            raise UsageError(f"{name}: {key} is {shortened(value)} instead of a whole number; the file is damaged")
    settings = model.info.get("settings", {})
    if not isinstance(settings, dict):
        raise UsageError(
            f"{name}: its settings are {shortened(settings)} instead of names with values; the file is damaged"
        )
    lengths = set()
    for key, values in histories(model).items():
        if values.ndim != 1 or values.dtype.kind not in "fiu":
            raise UsageError(f"{name}: the record of {key} is not a list of numbers; the file is damaged")
        lengths.add(len(values))
    if len(lengths) > 1:
        raise UsageError(f"{name}: the records of its iterations are of different lengths; the file is damaged")


def shortened(value: object, most: int = 40) -> str:
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}..."


def histories(model: Model) -> dict[str, np.ndarray]:
    """What was recorded in every iteration; nan where it is not finite."""
    found = {name.removeprefix(PREFIX): values for name, values in model.state.items() if name.startswith(PREFIX)}
    return {name: np.where(np.isfinite(values), values, np.nan) for name, values in found.items() if values.size}


def phases_of(model: Model) -> list[Phase]:
    """The phases that the record of a model consists of; none if they cannot be told."""
    n_recorded = len(next(iter(histories(model).values()), ()))
    entry = entry_of(model)
    # A model of another version may have more or fewer settings.
    values = {each.name: each.default for each in fields(entry.settings)}
    given = model.info.get("settings", {})
    values |= {name: value for name, value in given.items() if name in values}
    try:
        phases = list(entry.phases(settings_of(entry.settings, values)))
    except (ValueError, UsageError):
        return []
    # A training that began with another model has only the last of them.
    while phases and sum(phase.iterations for phase in phases) > n_recorded:
        phases.pop(0)
    return phases if phases and sum(phase.iterations for phase in phases) == n_recorded else []


def marks_of(phases: list[Phase]) -> list[Mark]:
    """Where the phases begin; nothing is marked where there is only one."""
    starts = np.cumsum([1, *(phase.iterations for phase in phases)]).tolist()
    return [Mark(start, phase.title) for start, phase in zip(starts, phases, strict=False)] if len(phases) > 1 else []


def series_of(report: "Report", name: str) -> list[Series]:
    """What was recorded in every iteration, of every chain that has it."""
    found = []
    for model, title in zip(report.models, report.names, strict=True):
        values = histories(model).get(name)
        if values is not None:
            found.append(Series(title, range(1, len(values) + 1), values.tolist()))
    return found


def diagnoses_of(report: "Report") -> list[Diagnosis]:
    """Whether the chains agree in the last phase; for one chain, whether its halves do."""
    recorded: list[Mapping[str, Any]] = [histories(model) for model in report.models]
    if not all(recorded):
        return []
    phases = phases_of(report.model)
    return [one for one in diagnose(recorded, burn_in(phases) if phases else 0) if np.isfinite(one.r_hat)]


def training(report: "Report") -> Iterator[str]:
    """Plots of every iteration, how the chains ended, and whether they agree."""
    marks = marks_of(phases_of(report.model))
    plots = []
    for name, title in HISTORIES:
        series = series_of(report, name)
        # What never changes has no plot, such as sites where there are none.
        if any(has_changed(each.y) for each in series):
            plot = line_plot(title, series, "iteration", title.lower(), marks)
            plots.append(f"<div><h3>{title}</h3>{plot}</div>")
    if not plots:
        return
    yield chains_table(report)
    yield from convergence(report)
    if report.entry.training_note and marks:
        yield f"<p>Dashed lines mark where a phase begins. {escape(report.entry.training_note)}</p>"
    yield f'<div class="plots">{"".join(plots)}</div>'


def has_changed(values: Sequence[float]) -> bool:
    return len({value for value in values if math.isfinite(value)}) > 1


def chains_table(report: "Report") -> str:
    """How the chains ended: by the second half of the last phase, since values of different phases differ in kind."""
    rows = []
    for model, title in zip(report.models, report.names, strict=True):
        recorded = histories(model)
        joint, accepted = (recorded.get(name, np.empty(0)) for name in ("log_joint", "acceptance"))
        if len(joint):
            phases = phases_of(model)
            kept = kept_draws(joint.tolist(), burn_in(phases) if phases else 0)
            means = (f"{joint[-1]:,.1f}", f"{kept.mean():,.1f}", f"{kept.max():,.1f}")
            shown = f"{accepted.mean():.1%}" if len(accepted) else ""
            rows.append((title, model.info.get("seed", ""), f"{len(joint):,}", *means, shown))
    head = ("Chain", "Seed", "Iterations", "Last log joint", "Mean at the end", "Highest there", "Accepted")
    return table(head, rows)


def convergence(report: "Report") -> Iterator[str]:
    """R-hat and effective sample size of the last phase, and its trace."""
    found = diagnoses_of(report)
    if not found:
        return
    n_draws, n_chains = found[0].n_draws, len(report.models)
    compared = "the halves of all chains" if n_chains > 1 else "the two halves of the only chain"
    yield (
        f"<h3>Convergence</h3><p>R-hat compares {compared}, over the last {n_draws:,} iterations: the second half of"
        " the last phase, as the mean at the end. Near 1 they agree; above 1.01 the chain has not converged."
        f"{'' if n_chains > 1 else ' Only several chains, trained with --chains, can show that there are other modes.'}"
        " ESS is the number of independent draws that would tell as much about the mean.</p>"
    )
    rows = [
        (
            one.quantity.replace("_", " "),
            f"{one.mean:.6g}",
            f"{one.deviation:.3g}",
            f"{one.r_hat:.3f}",
            f"{one.ess:,.0f}",
        )
        for one in found
    ]
    numbers = table(("Quantity", "Mean", "Deviation", "R-hat", "ESS"), rows)
    series = series_of(report, "log_joint")
    kept = [Series(name, x[-n_draws:], y[-n_draws:]) for name, x, y in series]
    half = [Mark(kept[0].x[0], "first half"), Mark(kept[0].x[len(kept[0].x) // 2], "second half")]
    trace = line_plot("Trace of the log joint", kept, "iteration", "log joint", half)
    yield f'<div class="plots"><div>{trace}</div><div>{numbers}</div></div>'


TRAINING = Panel("Training", training)
