"""Symbol-refined grammars with insertion as weighted rules: the transform of `SiteGrammar` with hosts.

    y_l* => y_l, N_{y_l'}      N_h => h      N_h => I_h      I_h -> M h      I_h -> h M      M => y_l, y_l*, N_part, y?

``h`` is ``x_k'`` or a part of a fragment, and takes part as ``N_h`` wherever a fragment continues; ``a_X`` is the
weight of ``I_h``. ``M``, of a label and a side, is what stands beside a foot: the auxiliary trees of
`tsgkit.models._srtsg_auxiliary` without root and foot, all hosts share it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from tsgkit.grammar import WeightedGrammar
from tsgkit.grammar._weighted import NO_LABEL
from tsgkit.models._back_off import Levels
from tsgkit.models._srtsg_auxiliary import WithAuxiliary
from tsgkit.models._srtsg_means import SiteMeans, WeightTable
from tsgkit.models._srtsg_sites import SiteGrammar


def treebank_means(means: SiteMeans, extended: WithAuxiliary, levels: Levels) -> tuple[SiteMeans, np.ndarray]:
    """The part of a mean over samples that is not of auxiliary trees; those come last everywhere.

    Parameters
    ----------
    means : SiteMeans
    extended : WithAuxiliary
    levels : Levels
        Of all symbols.

    Returns
    -------
    means : SiteMeans
    number : ndarray of int
        For every part, its number in the result, or -1.
    """
    lengths = {f"{name}_bridge": int(context[extended.n_symbols - 1]) + 1 for name, context in levels.used}
    lengths |= dict.fromkeys(("site_bridge", "frequency", "class"), extended.n_symbols)
    lengths |= dict.fromkeys(("stop", "insertion"), extended.n_labels)
    lengths |= dict.fromkeys(("word", "word_bridge"), extended.n_rules)
    values = {name: value[: lengths[name]] for name, value in means.values.items()}
    kept: dict[tuple[int, int, int], int] = {}
    number = np.full(len(means.number_of), -1, dtype=np.int64)
    for (rule, left, right), before in means.number_of.items():
        if rule < extended.n_rules:
            parts = (rule, int(number[left]) if left >= 0 else left, int(number[right]) if right >= 0 else right)
            number[before] = kept.setdefault(parts, len(kept))
    part, symbol = means.fragments.rows.T
    own = symbol < extended.n_symbols
    fragments = WeightTable(np.stack([number[part[own]], symbol[own]], axis=1), means.fragments.weight[own])
    rules = {}
    for name, table in means.rules.items():
        own = table.rows[:, 0] < extended.n_rules
        rules[name] = WeightTable(table.rows[own], table.weight[own])
    return replace(means, number_of=kept, fragments=fragments, rules=rules, values=values), number


@dataclass
class InsertionGrammar(SiteGrammar):
    """The transform of a mean of samples with insertion; parameters as for `SiteGrammar`, all of the treebank, but

    means : SiteMeans
        Of the samples, with auxiliary trees.
    extended : WithAuxiliary
    all_levels : Levels
        Of all symbols.
    stacked : bool
        Whether a foot may be the host of a further insertion.
    """

    extended: WithAuxiliary = field(kw_only=True)
    all_levels: Levels = field(kw_only=True)
    stacked: bool = field(kw_only=True)

    def __post_init__(self) -> None:
        self.all_means = self.means
        self.means, number = treebank_means(self.all_means, self.extended, self.all_levels)
        super().__post_init__()
        self.insertion = self.means.mean("insertion")
        # Auxiliary trees in use: their rules, what is below them (a part, or -2 - symbol), and their weights.
        own = self.all_means.fragments.rows[:, 1] >= self.extended.n_symbols
        rule, below, _ = self.all_means.parts()[self.all_means.fragments.rows[own, 0]].T
        below = np.where(below >= 0, number[np.maximum(below, 0)], below)
        self.auxiliary = rule, below, self.all_means.fragments.weight[own] / self.all_means.n_samples
        self.also_parts = below[below >= 0]
        # The symbols that insertions add, after those of parts: their labels; of hosts, labels and symbols; and those
        # that stand for refined symbols, with these.
        self.added_labels: list[np.ndarray] = []
        self.hosts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self.refined: list[tuple[np.ndarray, np.ndarray]] = []

    # ---- hosts -------------------------------------------------------------------------------------------------

    def new_symbols(self, labels: np.ndarray) -> np.ndarray:
        first = self.n_shared + self.n_parts + sum(map(len, self.added_labels))
        self.added_labels.append(labels)
        return first + np.arange(len(labels))

    def continued(self, symbols: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """The symbols N_h by which fragments reach these parts h; h itself where nothing can be inserted."""
        is_host = self.insertion[labels] > 0
        result, own = symbols.copy(), labels[is_host]
        result[is_host] = on = self.new_symbols(own)
        inserting = self.new_symbols(own)
        self.rules.add("bridge", 1.0 - self.insertion[own], on, symbols[is_host])
        self.rules.add("bridge", self.insertion[own], on, inserting)
        self.hosts.append((own, inserting, on if self.stacked else symbols[is_host]))
        if len(symbols) == self.n_symbols and symbols[0] == self.n_symbols:
            refined = np.flatnonzero(is_host)
            self.refined += [(on, refined), (inserting, refined)]
        return result

    # ---- what stands beside a foot -----------------------------------------------------------------------------

    def expansions(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Rules of auxiliary trees, the symbols of what is below them, and weights; each rule several times."""
        means, extended = self.all_means, self.extended
        first, n = extended.n_rules, means.n_samples
        rule, below, weight = self.auxiliary
        yield rule, np.where(below >= 0, self.inside[np.maximum(below, 0)], -2 - below), weight
        # From the base, level by level; P0 last.
        rules = np.arange(first, extended.trees.n_rules)
        roots = np.searchsorted(extended.subcategories.label, extended.trees.rule_label[rules])
        sibling = extended.trees.rule_left_label[rules]
        factor = means.mean("site_bridge")[roots]
        either = 2 * self.n_symbols + self.first
        for name, context in self.all_levels.used:
            table = means.rules[name]
            own = table.rows[:, 0] >= first
            rule, subcategory = table.rows[own, 0], table.rows[own, 2]
            yield rule, either[sibling[rule - first]] + subcategory, factor[rule - first] * table.weight[own] / n
            factor = factor * means.mean(f"{name}_bridge")[context[roots]]
        yield rules, self.back_off.end + sibling, factor * extended.trees.rule_probability[rules]

    def add_insertions(self) -> None:
        """Rules that insert something into hosts."""
        extended = self.extended
        rule, symbol, weight = (np.concatenate(column) for column in zip(*self.expansions(), strict=True))
        labels, inserting, inside = (np.concatenate(column) for column in zip(*self.hosts, strict=True))
        for side in range(2):
            top = extended.top_rule[: extended.n_rules, side]
            host_label = np.full(extended.trees.n_rules, -1)
            host_label[top[top >= 0]] = self.trees.rule_label[top >= 0]
            for label in np.flatnonzero(self.insertion > 0).tolist():
                found = host_label[rule] == label
                total, hosts = weight[found].sum(), labels == label
                if not found.any() or not hosts.any():
                    continue
                (beside,) = self.new_symbols(np.array([NO_LABEL]))
                self.rules.add(
                    "bridge", weight[found] / total, np.full(found.sum(), beside), symbol[found].astype(np.int64)
                )
                children = [inside[hosts], np.full(hosts.sum(), beside)]
                left, right = children if side == 0 else reversed(children)
                self.rules.add("binary", np.full(hosts.sum(), total), inserting[hosts], left, right)

    def finished(self, words: list[str], private_label: np.ndarray) -> WeightedGrammar:
        """The grammar of the rules that were added, and of insertions."""
        if self.hosts and any(len(labels) for labels, _, _ in self.hosts):
            self.add_insertions()
        return super().finished(words, np.concatenate([private_label, *self.added_labels]))

    def symbol_map(self, fine: WeightedGrammar, ancestor: np.ndarray) -> np.ndarray:
        """For every symbol of the transform the coarser one that prunes it, or -1."""
        result = super().symbol_map(fine, ancestor)
        for symbols, refined in self.refined:
            result[symbols] = ancestor[refined]
        return result
