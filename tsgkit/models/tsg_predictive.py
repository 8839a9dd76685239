"""The true probability of a derivation under a tree-substitution grammar, for correcting samples of its transform.

The transform freezes the counts; the model itself seats the fragments of a derivation one after the other, so
that using a fragment twice makes it likelier the second time. For a derivation ``der`` of a sentence,

    P(der) / q(der) = prod_e p(e | those before it)  /  prod_e (w_e + b P0(e))

is what a Metropolis-Hastings step over sampled derivations needs (Cohn & Blunsom 2010).
"""

import math
from collections.abc import Sequence

import numpy as np

from tsgkit.errors import UsageError
from tsgkit.models.model import Model
from tsgkit.models.rules import number_rules
from tsgkit.models.tsg import is_site

FRONTIER = -1
BRIDGE = 3
Parts = tuple[int, int, int]


class DerivationCorrection:
    """Log of true over frozen probability of derivations.

    Parameters
    ----------
    model : Model
        A ``tsg`` of one sample: the frozen probability of a mean of samples is another one.
    """

    def __init__(self, model: Model) -> None:
        if model.kind != "tsg" or model.corpus is None or model.info.get("samples", 1) > 1:
            raise UsageError("only a tsg model of one sample (trained with --average=1) can correct its samples")
        self.grammar = model.grammar
        trees = number_rules(model.corpus)
        self.rule_of = {
            tuple(key): rule
            for rule, key in enumerate(
                zip(
                    trees.rule_label.tolist(),
                    trees.rule_left_label.tolist(),
                    trees.rule_right_label.tolist(),
                    trees.rule_word.tolist(),
                    strict=True,
                )
            )
        }
        self.log_rule = np.log(trees.rule_probability).tolist()
        fragments, sizes, dishes = model.state["fragments"], model.state["sizes"], model.state["dishes"]
        self.number_of: dict[Parts, int] = {
            (rule, left, right): number for number, (rule, left, right) in enumerate(fragments.tolist())
        }
        self.customers = np.bincount(dishes[dishes >= 0], minlength=len(fragments)).tolist()
        self.tables = np.bincount(sizes[:, 0], weights=sizes[:, 2], minlength=len(fragments)).tolist()
        label = trees.rule_label[fragments[:, 0]]
        self.label_customers = np.bincount(label, weights=self.customers, minlength=trees.n_labels).tolist()
        self.label_tables = np.bincount(label, weights=self.tables, minlength=trees.n_labels).tolist()
        discount, strength, stop = model.state["parameters"]
        self.discount, self.strength = discount.tolist(), strength.tolist()
        self.log_stop, self.log_go = np.log(stop).tolist(), np.log1p(-stop).tolist()

    def __call__(self, rows: np.ndarray, words: Sequence[int], random: np.random.Generator) -> float:
        """The log ratio for a derivation, one seating of it drawn at random.

        Parameters
        ----------
        rows : ndarray
            ``(symbol, start, end, kind)`` from the chart of the transform.
        words : sequence of int
            The grammar's numbers of the sentence's words; -1 for a word it does not have.
        """
        ordered = self.fragments_of(rows, words)
        if ordered is None:  # a word outside of the vocabulary: the model has no opinion
            return 0.0
        customers: dict[Parts, list[float]] = {}
        house: dict[int, list[float]] = {}
        log_ratio = 0.0
        for key, number, label, log_base in ordered:
            dish = customers.setdefault(key, [0.0, 0.0])
            own = house.setdefault(label, [0.0, 0.0])
            n_dish = self.customers[number] if number >= 0 else 0.0
            t_dish = self.tables[number] if number >= 0 else 0.0
            n_house, t_house = self.label_customers[label], self.label_tables[label]
            frozen, _ = self.parts(label, (n_dish, t_dish), (n_house, t_house), log_base)
            dish_now, house_now = (n_dish + dish[0], t_dish + dish[1]), (n_house + own[0], t_house + own[1])
            now, old_part = self.parts(label, dish_now, house_now, log_base)
            log_ratio += math.log(now) - math.log(frozen)
            opens = random.random() * now >= old_part
            dish[0] += 1
            own[0] += 1
            dish[1] += opens
            own[1] += opens
        return log_ratio

    def parts(
        self, label: int, dish: tuple[float, float], house: tuple[float, float], log_base: float
    ) -> tuple[float, float]:
        """The predictive probability of a dish, and the share of it that occupied tables have.

        Dish and house are their numbers of customers and tables.
        """
        discount, strength = self.discount[label], self.strength[label]
        denominator = strength + house[0]
        old = max(dish[0] - discount * dish[1], 0.0) / denominator
        return old + (strength + discount * house[1]) / denominator * math.exp(log_base), old

    def fragments_of(self, rows: np.ndarray, words: Sequence[int]) -> list[tuple[Parts, int, int, float]] | None:
        """The fragments of a derivation from the root down: a key, their number or -2, root label, log base."""
        label_of = self.grammar.label
        sites = is_site(self.grammar, rows[:, 0])
        nodes: list[tuple[int, int, int, bool]] = []  # label, start, kind, whether a fragment begins here
        begins = False
        for (symbol, start, _, kind), site in zip(rows.tolist(), sites.tolist(), strict=True):
            begins = begins or site
            if kind != BRIDGE:
                nodes.append((int(label_of[symbol]), start, kind, begins))
                begins = False
        fresh: dict[Parts, int] = {}
        ordered: list[tuple[Parts, int, int, float]] = []
        waiting: list[tuple[int, int, float, bool]] = []  # label, number, log base, begins
        for label, start, kind, starts_fragment in reversed(nodes):
            children = [waiting.pop() for _ in range(kind)]
            labels = [child[0] for child in children] + [-1] * (2 - kind)
            rule = self.rule_of.get((label, labels[0], labels[1], words[start] if kind == 0 else -1))
            if rule is None:
                return None
            log_base = self.log_rule[rule]
            parts = [FRONTIER, FRONTIER]
            for side, (child_label, number, child_base, is_frontier) in enumerate(children):
                if is_frontier:
                    log_base += self.log_stop[child_label]
                else:
                    log_base += self.log_go[child_label] + child_base
                    parts[side] = number
            key = (rule, parts[0], parts[1])
            number = self.number_of.get(key, -1)
            if number < 0:  # nowhere stored: numbered below -1, equal for equal fragments
                number = fresh.setdefault(key, -2 - len(fresh))
            if starts_fragment:
                ordered.append((key, number, label, log_base))
            waiting.append((label, number, log_base, starts_fragment))
        return ordered[::-1]
