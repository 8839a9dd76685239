"""The true probability of a derivation under a tree-substitution grammar, for correcting samples of its transform.

The transform freezes the counts; the model itself seats the fragments of a derivation one after the other, so
that using a fragment twice makes it likelier the second time. For a derivation ``der`` of a sentence,

    P(der) / q(der) = prod_e p(e | those before it)  /  prod_e (w_e + b P0(e))

is what a Metropolis-Hastings step over sampled derivations needs (Cohn & Blunsom 2010). With insertion, auxiliary
trees are seated likewise, in restaurants of their own; the probabilities of inserting or not are the same in both.
"""

import math
from collections.abc import Sequence

import numpy as np

from tsgkit._codes import FOOT, FRONTIER, LEFT_FOOT, SITE
from tsgkit.errors import UsageError
from tsgkit.grammar.weighted import GrammarError
from tsgkit.models.base_distributions import with_base
from tsgkit.models.derivations import node_states
from tsgkit.models.fragments import validate_state
from tsgkit.models.model import Model
from tsgkit.models.rules import number_rules

Parts = tuple[int, int, int]


def validate_parameters(values: np.ndarray, shape: tuple[int, int]) -> None:
    """Raise a ValueError unless these are the parameters of a TSG: of every label three, or six with insertion."""
    if values.dtype != np.float64 or values.shape != shape:
        raise ValueError("parameters are missing or have the wrong type or shape")
    discount, strength, others = values[0::3], values[1::3], values[2::3]
    if not ((discount >= 0) & (discount < 1) & (strength > 0) & (strength < np.inf)).all():
        raise ValueError("a discount is not in [0, 1), or a strength is not a positive number")
    if not ((others >= 0) & (others < 1)).all() or not (values[2] > 0).all():
        raise ValueError("a probability is not between 0 and 1")


class DerivationCorrection:
    """Log of true over frozen probability of derivations.

    Parameters
    ----------
    model : Model
        A tree-substitution grammar of one sample: the frozen probability of a mean of samples is another one.
    base : str
        Its base distribution P0; see `tsgkit.models.base_distributions`.
    with_insertion : bool
    """

    def __init__(self, model: Model, base: str = "frequency", *, with_insertion: bool = False) -> None:
        if model.corpus is None or model.info.get("samples", 1) != 1:
            raise UsageError("only a model of one sample (trained with --average=1) can correct its samples")
        self.grammar = model.grammar
        trees = with_base(number_rules(model.corpus), base)
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
        feet = trees.foot_probability()
        self.log_foot_rule = np.log(np.where(feet > 0, feet, 1.0)).tolist()
        self.n_labels = trees.n_labels
        try:
            validate_state(model.state, trees)
            shape = (6 if with_insertion else 3, trees.n_labels)
            validate_parameters(model.state.get("parameters", np.empty(0)), shape)
        except ValueError as error:
            raise GrammarError(f"the model's fragments do not fit its training trees: {error}") from None
        fragments, sizes, dishes = model.state["fragments"], model.state["sizes"], model.state["dishes"]
        self.number_of: dict[Parts, int] = {
            (rule, left, right): number for number, (rule, left, right) in enumerate(fragments.tolist())
        }
        self.customers = np.bincount(dishes[dishes >= 0], minlength=len(fragments)).tolist()
        self.tables = np.bincount(sizes[:, 0], weights=sizes[:, 2], minlength=len(fragments)).tolist()
        # Restaurants: those of initial trees by label, then those of auxiliary trees.
        house = trees.rule_label[fragments[:, 0]] + trees.n_labels * (fragments[:, 1:] == FOOT).any(axis=1)
        self.house_customers = np.bincount(house, weights=self.customers, minlength=2 * trees.n_labels).tolist()
        self.house_tables = np.bincount(house, weights=self.tables, minlength=2 * trees.n_labels).tolist()
        discount, strength, stop, *auxiliary = model.state["parameters"]
        self.discount, self.strength = (
            np.concatenate([values, *others]).tolist()
            for values, others in ((discount, auxiliary[:1]), (strength, auxiliary[1:2]))
        )
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
        for key, number, place, log_base in ordered:
            dish = customers.setdefault(key, [0.0, 0.0])
            own = house.setdefault(place, [0.0, 0.0])
            n_dish = self.customers[number] if number >= 0 else 0.0
            t_dish = self.tables[number] if number >= 0 else 0.0
            n_house, t_house = self.house_customers[place], self.house_tables[place]
            frozen, _ = self.parts(place, (n_dish, t_dish), (n_house, t_house), log_base)
            dish_now, house_now = (n_dish + dish[0], t_dish + dish[1]), (n_house + own[0], t_house + own[1])
            now, old_part = self.parts(place, dish_now, house_now, log_base)
            log_ratio += math.log(now) - math.log(frozen)
            opens = random.random() * now >= old_part
            dish[0] += 1
            own[0] += 1
            dish[1] += opens
            own[1] += opens
        return log_ratio

    def parts(
        self, place: int, dish: tuple[float, float], house: tuple[float, float], log_base: float
    ) -> tuple[float, float]:
        """The predictive probability of a dish, and the share of it that occupied tables have.

        Dish and house are their numbers of customers and tables.
        """
        discount, strength = self.discount[place], self.strength[place]
        denominator = strength + house[0]
        old = max(dish[0] - discount * dish[1], 0.0) / denominator
        return old + (strength + discount * house[1]) / denominator * math.exp(log_base), old

    def fragments_of(self, rows: np.ndarray, words: Sequence[int]) -> list[tuple[Parts, int, int, float]] | None:
        """The elementary trees of a derivation from the root down: a key, their number or -2, restaurant, log base."""
        nodes, states = node_states(self.grammar, rows)
        fresh: dict[Parts, int] = {}
        ordered: list[tuple[Parts, int, int, float]] = []
        waiting: list[tuple[int, int, float, bool]] = []  # label, number, log base, whether a site
        for (label, start, _, kind), state in zip(nodes[::-1].tolist(), states[::-1].tolist(), strict=True):
            children = [waiting.pop() for _ in range(kind)]
            labels = [child[0] for child in children] + [-1] * (2 - kind)
            rule = self.rule_of.get((label, labels[0], labels[1], words[start] if kind == 0 else -1))
            if rule is None:
                return None
            inserts = state >= LEFT_FOOT
            log_base = (self.log_foot_rule if inserts else self.log_rule)[rule]
            parts = [FRONTIER, FRONTIER]
            for side, (child_label, number, child_base, is_frontier) in enumerate(children):
                if inserts and side == state - LEFT_FOOT:
                    parts[side] = FOOT
                elif is_frontier:
                    log_base += self.log_stop[child_label]
                else:
                    log_base += self.log_go[child_label] + child_base
                    parts[side] = number
            key = (rule, parts[0], parts[1])
            number = self.number_of.get(key, -1)
            if number < 0:  # nowhere stored: numbered below -3, the foot, equal for equal fragments
                number = fresh.setdefault(key, -4 - len(fresh))
            if inserts:
                ordered.append((key, number, label + self.n_labels, log_base))
                waiting.append(children[state - LEFT_FOOT])  # the host goes on at the foot
                continue
            if state == SITE:
                ordered.append((key, number, label, log_base))
            waiting.append((label, number, log_base, state == SITE))
        return ordered[::-1]
