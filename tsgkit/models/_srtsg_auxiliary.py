"""Auxiliary trees of symbol-refined grammars: labels, rules and a sampler for sites, subcategories and insertions.

The root of an auxiliary tree of ``X`` has a label of its own, ``X+``, with one subcategory, and a rule with the sibling
of the foot as its only child: the tree without its foot. ``G'_X``, over auxiliary trees, is the restaurant of ``X+``,
and the rules of ``X+`` back off like others:

    e'  | X+ ~ G_{X+} ~ PYP(P)      P(e') = H(X+ -> y_l) ...      H_{X+} -> I_{X+} -> C(r) / sum C / K_y

with the counts ``C`` of the treebank's rules with a foot, as in Shindo, Fujino & Nagata (2011). A root and a foot have
no subcategory, as no internal node of a fragment has: what is inserted does not depend on the host.
"""

from dataclasses import dataclass, replace

import numpy as np

from tsgkit._refined_insertion_sampler import RefinedInsertionSampler
from tsgkit.models._back_off import BackOff, Levels
from tsgkit.models._parameter_layout import RefinedParameters
from tsgkit.models._rules import TreeArrays
from tsgkit.models._srtsg import Subcategories, Words, lexical_shares, refined_probabilities, refinements
from tsgkit.models._srtsg_sites import site_levels


@dataclass(frozen=True)
class WithAuxiliary:
    """Trees, words and subcategories with the labels and rules of auxiliary trees, which come after the others.

    Attributes
    ----------
    trees : TreeArrays
    words : Words
    subcategories : Subcategories
    label : ndarray of int32, one per label
        ``X+`` of a label that can have insertions, -1 of the others.
    top_rule : ndarray of int32, one row per rule
        The rules of ``X+`` with the left and the right child of a rule as the foot, or -1.
    n_labels, n_rules, n_symbols : int
        How many there are without them.
    """

    trees: TreeArrays
    words: Words
    subcategories: Subcategories
    label: np.ndarray
    top_rule: np.ndarray
    n_labels: int
    n_rules: int
    n_symbols: int

    @classmethod
    def of(cls, trees: TreeArrays, words: Words, subcategories: Subcategories) -> "WithAuxiliary":
        """Add what auxiliary trees need; a foot has a sibling."""
        children = (trees.rule_left_label, trees.rule_right_label)
        rules = [np.flatnonzero((children[side] == trees.rule_label) & (children[1 - side] >= 0)) for side in range(2)]
        used = np.concatenate(rules)
        hosts = np.unique(trees.rule_label[used])
        label = np.full(trees.n_labels + len(hosts), -1, dtype=np.int32)
        label[hosts] = trees.n_labels + np.arange(len(hosts))
        top_rule = np.full((trees.n_rules + len(used), 2), -1, dtype=np.int32)
        first = trees.n_rules
        for side in range(2):
            top_rule[rules[side], side] = first + np.arange(len(rules[side]))
            first += len(rules[side])
        siblings = np.concatenate([children[1 - side][rules[side]] for side in range(2)])
        weight, roots = trees.rule_weight[used], label[trees.rule_label[used]]
        totals = np.bincount(roots, weights=weight, minlength=len(label))
        none = np.full(len(used), -1, dtype=np.int32)
        added = {
            "rule_label": roots,
            "rule_left_label": siblings,
            "rule_right_label": none,
            "rule_word": none,
            "rule_count": trees.rule_count[used],
            "rule_weight": weight,
            "rule_probability": weight / totals[roots],
        }
        longer = {name: np.concatenate([getattr(trees, name), values]) for name, values in added.items()}
        groups = np.concatenate([subcategories.group_label, label[hosts]])
        options = np.concatenate([subcategories.n_options, np.ones(len(hosts), dtype=np.uint8)])
        return cls(
            replace(trees, n_labels=len(label), **longer),
            replace(words, rule_class=np.concatenate([words.rule_class, none])),
            Subcategories(groups, options, len(label)),
            label,
            top_rule,
            trees.n_labels,
            trees.n_rules,
            len(subcategories.label),
        )

    def levels(self, back_off: BackOff) -> Levels:
        """The levels of a back-off over all symbols."""
        return site_levels(back_off, self.subcategories)

    def rule_base(self, base: str) -> np.ndarray:
        """P0 of each refinement of a rule; those of auxiliary trees are weighed by the counts of the treebank."""
        result = refined_probabilities(self.trees, self.words, base, self.subcategories)
        own = slice(self.n_rules, None)
        result[own] = self.trees.rule_probability[own] / refinements(self.trees, self.subcategories)[own]
        return result

    def sampler(self, levels: Levels, base: str, *, stacked: bool = False, seed: int = 0) -> RefinedInsertionSampler:
        """A sampler with empty restaurants and no insertions."""
        return RefinedInsertionSampler(
            self.trees,
            self.subcategories.label,
            levels,
            self.rule_base(base),
            self.words.rule_class,
            lexical_shares(self.trees),
            self.words.class_word_base,
            self.label,
            self.top_rule,
            stacked=stacked,
            class_levels=self.words.levels,
            seed=seed,
        )

    def divided(self, values: np.ndarray) -> RefinedParameters:
        """Discounts and strengths as the sampler has them."""
        return RefinedParameters.of(
            values,
            n_labels=self.subcategories.n_labels,
            n_class_levels=len(self.words.levels.dish),
            n_symbols=len(self.subcategories.label),
        )

    def treebank_parameters(self, values: np.ndarray) -> np.ndarray:
        """Of discounts and strengths as the sampler has them, those without auxiliary trees."""
        return self.divided(values).first(self.n_labels, self.n_symbols).joined()

    def all_parameters(self, values: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Such values, with `others` of the sampler for auxiliary trees."""
        place = self.treebank_parameters(np.tile(np.arange(others.shape[1]), (2, 1)))[0]
        result = others.copy()
        result[:, place] = values
        return result
