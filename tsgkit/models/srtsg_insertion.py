"""Symbol-refined grammars with insertion: elementary trees over refined symbols, some inserted into others.

Every node keeps its refined symbol, and `tsgkit.models.tsg` uses these symbols as labels. In the base distribution,
``P(r)`` is the probability of a refined rule under the restaurants of symbol-refined grammars, which back off to rules
and words that were never seen. These restaurants do not change, so that the transform is that of `SiteGrammar` with

    x_k => x_k'      x_k -> sig(e)      y_l* => y_l, N_{y_l'}      N_h => h      N_h -> M h      N_h -> h M

where ``h`` is ``x_k'`` or a part of an elementary tree, and ``M``, of ``x_k`` and a side, what stands beside the foot.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from tsgkit.grammar import WeightedGrammar
from tsgkit.grammar.weighted import NO_LABEL, RULE_KINDS
from tsgkit.models.rules import TreeArrays, number_rules
from tsgkit.models.srtsg_sites import SiteGrammar
from tsgkit.models.tsg import TsgAverage
from tsgkit.treebank import FlatCorpus


def refined_corpus(corpus: FlatCorpus, names: list[str], symbols: np.ndarray) -> FlatCorpus:
    """The corpus with refined symbols, which have these names, as its labels."""
    return replace(corpus, labels=names, label=symbols.astype(np.int32))


def refined_trees(refined: FlatCorpus, sites: SiteGrammar) -> TreeArrays:
    """Refined trees whose rules have the probabilities of the base of a symbol-refined grammar."""
    trees = number_rules(refined)
    raw_rule = np.empty(trees.n_rules, dtype=np.int64)
    raw_rule[trees.rule] = sites.trees.rule
    rows = np.stack([raw_rule, trees.rule_label, trees.rule_left_label, trees.rule_right_label], axis=1)
    return replace(trees, rule_probability=sites.rule_probabilities(rows))


@dataclass
class InsertionGrammar(SiteGrammar):
    """The transform of a mean of samples with insertion; parameters as for `SiteGrammar`, and

    average : TsgAverage
        Of the samples with insertion, over trees of `refined_trees`. Of `means`, only the base is used.
    """

    average: TsgAverage = field(kw_only=True)

    def grammar(self) -> WeightedGrammar:
        """The whole transform."""
        collected, hosts = self.average.all_but_base(self.n_shared)
        for label, host in hosts.items():
            if host.on != host.plain:
                collected.bridges.append((host.on, host.plain, 1.0 - collected.insertion[label]))
        arrays = collected.arrays()
        for kind in RULE_KINDS:
            self.rules.add(kind, arrays[f"{kind}_weight"], *arrays[kind].T)
        internal = np.array([hosts[symbol].on for symbol in range(self.n_symbols)])
        words = self.add_base(self.average.stop / self.average.n_samples, internal)
        self.private_symbol = np.array(collected.label, dtype=np.int64)
        private_label = np.where(self.private_symbol == NO_LABEL, NO_LABEL, self.label[self.private_symbol])
        return self.finished(words, private_label)

    def symbol_of(self) -> np.ndarray:
        """The refined symbol of every symbol of the transform, or -1."""
        refined = np.arange(self.n_symbols)
        unrefined = np.full(self.n_shared - 3 * self.n_symbols, -1)
        return np.concatenate([refined, refined, refined, unrefined, self.private_symbol]).astype(np.int32)

    def symbol_map(self, fine: WeightedGrammar, ancestor: np.ndarray) -> np.ndarray:
        """For every symbol of the transform the coarser one that prunes it, or -1; private ones are refined, too."""
        result = super().symbol_map(fine, ancestor)
        coarser = np.where(self.private_symbol == NO_LABEL, -1, ancestor[self.private_symbol])
        result[self.n_shared :] = coarser
        return result
