"""The start of a symbol-refined training: subcategories and sites of a model that was trained on other trees.

Labels keep the splits that they have in the start; a label that the start does not have is not split, until the next
split. New trees get sites and subcategories together, drawn from the grammar of the start (`tsgkit.inference._start`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from tsgkit._subcategories import SplitSampler
from tsgkit.errors import UsageError
from tsgkit.inference._srtsg_phases import RefinedSites, Unsplit
from tsgkit.inference._start import Joined, Start
from tsgkit.models._parameter_layout import WORD_LEVELS, RefinedParameters
from tsgkit.models._srtsg import Subcategories
from tsgkit.models._subcategories import SubcategoryTable


@dataclass(frozen=True)
class StartedSites:
    """What the first phase begins with after a start: a split, or a phase with sites.

    Attributes
    ----------
    material : Unsplit
    splits : list of Subcategories
        The start's, over the labels of the training.
    node_symbols, sites : ndarray, one per node
    parameters : ndarray of float
        As `RefinedSampler.parameters` gives them.
    stops : ndarray of float, one per label
    """

    material: Unsplit
    splits: list[Subcategories]
    node_symbols: np.ndarray
    sites: np.ndarray
    parameters: np.ndarray
    stops: np.ndarray

    @property
    def subcategories(self) -> Subcategories:
        return self.splits[-1]

    def symbols(self) -> np.ndarray:
        return self.node_symbols

    def pass_parameters(self, sampler: SplitSampler) -> None:
        sampler.set_parameters(self.parameters[:, : sampler.n_pairs])

    def refined_sites(self) -> RefinedSites:
        """The sites of the start."""
        sites = RefinedSites(self.material, self.splits)
        sites.sampler.set_parameters(self.parameters)
        if self.material.settings.stop_prob is None:
            sites.sampler.set_stops(self.stops)
        sites.sampler.start(self.node_symbols, self.sites)
        return sites


def started_sites(start: Start, material: Unsplit) -> StartedSites:
    """The subcategories and sites of a start; those of new trees are drawn from its grammar."""
    settings, state = material.settings, start.model.state
    if start.setting("back_off") != settings.back_off:
        problem = f"was trained with --back-off={start.setting('back_off')} and not {settings.back_off}"
        raise UsageError(f"{start.name}: it {problem}")
    table = SubcategoryTable.of_model(start.model)
    joined = start.joined(material.corpus)
    trees = Unsplit(joined.corpus, settings, material.seed, material.threads)
    splits = transferred_splits(table.splits, joined.label_of, joined.corpus.labels, int(joined.corpus.label[0]))
    first, symbol_of = symbol_numbers(table.splits[-1], splits[-1], joined.label_of)
    drawn = RefinedSites(trees, splits)
    try:
        n_nodes = joined.corpus.n_nodes
        symbols = joined.of_nodes(symbol_of[table.symbols], first[joined.corpus.label])
        sites = joined.of_nodes(state.get("sites", np.ones(len(table.symbols))), np.ones(n_nodes)).astype(np.uint8)
        own = start_parameters(state, drawn, len(joined.label_of), len(symbol_of))
        drawn.sampler.set_parameters(transferred_parameters(own, drawn, joined, symbol_of))
        if "stops" in state and settings.stop_prob is None:
            drawn.sampler.set_stops(joined.of_labels(state["stops"], drawn.sampler.stops()))
        drawn.sampler.start(symbols, sites)
    except (KeyError, ValueError, IndexError) as error:
        raise UsageError(f"{start.name}: its sample does not fit these settings: {error}") from None
    drawn.sampler.redraw(0, joined.new_trees)
    return of_training(joined, drawn, material)


def of_training(joined: Joined, drawn: RefinedSites, material: Unsplit) -> StartedSites:
    """The part of the joined trees' sample that is of the training; its labels and symbols come first."""
    n_labels, n_nodes, sampler = joined.n_labels, joined.n_nodes, drawn.sampler
    splits = [
        Subcategories(split.group_label[is_own], split.n_options[is_own], n_labels)
        for split in drawn.splits
        for is_own in [split.group_label < n_labels]
    ]
    values = present_parameters(drawn).first(n_labels, len(splits[-1].label)).joined()
    symbols, sites = sampler.symbols()[:n_nodes], sampler.sites()[:n_nodes]
    return StartedSites(material, splits, symbols, sites, values, sampler.stops()[:n_labels])


def transferred_splits(
    splits: list[Subcategories], label_of: np.ndarray, labels: list[str], root: int
) -> list[Subcategories]:
    """Splits over other labels; those without a counterpart are not split.

    Parameters
    ----------
    splits : list of Subcategories
    label_of : ndarray of int, one per label of the splits
        The other label.
    labels : list of str
        The other labels.
    root : int
        The other number of the root's label.

    Examples
    --------
    >>> one = Subcategories(np.array([0, 1]), np.array([1, 2], dtype=np.uint8), 2)
    >>> (other,) = transferred_splits([one], np.array([2, 1]), ["PP", "NP", "TOP"], root=2)
    >>> other.group_label.tolist(), other.n_options.tolist()
    ([0, 1, 2], [1, 2, 1])
    """
    result: list[Subcategories] = []
    before = Subcategories.whole(len(labels))
    for split in splits:
        wanted = before.split(root)
        n_options = np.ones(len(wanted.group_label), dtype=np.uint8)
        # Groups are in the order of labels, and within a label in the order of the splits before.
        order = np.argsort(label_of[split.group_label], kind="stable")
        n_options[np.isin(wanted.group_label, label_of)] = split.n_options[order]
        before = Subcategories(wanted.group_label, n_options, len(labels))
        result.append(before)
    return result


def symbol_numbers(own: Subcategories, other: Subcategories, label_of: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first symbol of every other label; and for every own symbol, the other one."""
    first = np.searchsorted(other.label, np.arange(other.n_labels))
    within = np.arange(len(own.label)) - np.searchsorted(own.label, own.label)
    return first, (first[label_of[own.label]] + within).astype(np.int32)


def start_parameters(
    state: Mapping[str, np.ndarray], sites: RefinedSites, n_labels: int, n_symbols: int
) -> RefinedParameters:
    """Discounts and strengths of a start with so many labels and symbols; one of splits alone has none of symbols."""
    values = state["parameters"]
    n_symbols = n_symbols if "sites" in state else 0
    n_by_label = (len(sites.levels.names) + len(WORD_LEVELS)) * n_labels
    n_class_levels = values.shape[-1] - n_by_label - n_symbols
    if n_class_levels < 1:
        raise ValueError("the start has parameters of other levels")
    return RefinedParameters.of(values, n_labels=n_labels, n_class_levels=n_class_levels, n_symbols=n_symbols)


def present_parameters(sites: RefinedSites) -> RefinedParameters:
    """Discounts and strengths of a sampler."""
    sampler, n_class_levels = sites.sampler, len(sites.material.words.levels.dish)
    return RefinedParameters.of(
        sampler.parameters(), n_labels=sampler.n_labels, n_class_levels=n_class_levels, n_symbols=sampler.n_symbols
    )


def transferred_parameters(
    own: RefinedParameters, sites: RefinedSites, joined: Joined, symbol_of: np.ndarray
) -> np.ndarray:
    """Those of a start for the labels and symbols of other trees.

    Classes can have another number of levels there; these are counted from the coarsest one.
    """
    result = present_parameters(sites)
    n_common = min(own.of_all.shape[1], result.of_all.shape[1])
    result.of_all[:, -n_common:] = own.of_all[:, -n_common:]
    if own.of_symbols.shape[1]:
        result.of_symbols[:, symbol_of] = own.of_symbols
    return replace(result, by_label=joined.of_labels(own.by_label, result.by_label)).joined()
