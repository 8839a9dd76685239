"""The true probability of a derivation under a tree-substitution grammar, to correct samples of its transform.

The transform freezes the counts; the model itself seats the fragments of a derivation one after the other, so
that using a fragment twice makes it likelier the second time. For a derivation ``der`` of a sentence,

    P(der) / q(der) = prod_e p(e | those before it)  /  prod_e (w_e + b P0(e))

is the ratio of a Metropolis-Hastings step over sampled derivations (Cohn & Blunsom 2010). With insertion, auxiliary
trees are seated in separate restaurants; the probabilities of inserting or not cancel.
"""

import math
from collections.abc import Sequence

import numpy as np

from tsgkit._codes import FOOT, FRONTIER, LEFT_FOOT, SITE
from tsgkit.errors import UsageError
from tsgkit.grammar._weighted import GrammarError
from tsgkit.models._base_distributions import with_base
from tsgkit.models._derivations import node_states
from tsgkit.models._fragments import validate_state
from tsgkit.models._model import Model
from tsgkit.models._rules import number_rules

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
    """The log of the true over the frozen probability of a derivation.

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
        # Restaurants of initial trees by label, then those of auxiliary trees.
        restaurant = trees.rule_label[fragments[:, 0]] + trees.n_labels * (fragments[:, 1:] == FOOT).any(axis=1)
        self.restaurant_customers, self.restaurant_tables = (
            np.bincount(restaurant, weights=weights, minlength=2 * trees.n_labels).tolist()
            for weights in (self.customers, self.tables)
        )
        discount, strength, stop, *auxiliary = model.state["parameters"]
        self.discount, self.strength = (
            np.concatenate([values, *others]).tolist()
            for values, others in ((discount, auxiliary[:1]), (strength, auxiliary[1:2]))
        )
        self.log_stop, self.log_go = np.log(stop).tolist(), np.log1p(-stop).tolist()

    def __call__(self, rows: np.ndarray, words: Sequence[int], random: np.random.Generator) -> float:
        """The log ratio for a derivation and one random seating of it.

        Parameters
        ----------
        rows : ndarray
            ``(symbol, start, end, kind)`` from the chart of the transform.
        words : sequence of int
            The grammar's numbers of the sentence's words; -1 for a word it does not have.
        """
        ordered = self.fragments_of(rows, words)
        if ordered is None:  # a word is not in the vocabulary: the ratio is 1
            return 0.0
        customers: dict[Parts, list[float]] = {}
        added: dict[int, list[float]] = {}
        log_ratio = 0.0
        for key, number, restaurant, log_base in ordered:
            dish = customers.setdefault(key, [0.0, 0.0])
            seated = added.setdefault(restaurant, [0.0, 0.0])
            n_dish = self.customers[number] if number >= 0 else 0.0
            t_dish = self.tables[number] if number >= 0 else 0.0
            n_all, t_all = self.restaurant_customers[restaurant], self.restaurant_tables[restaurant]
            frozen, _ = self.parts(restaurant, (n_dish, t_dish), (n_all, t_all), log_base)
            dish_now, all_now = (n_dish + dish[0], t_dish + dish[1]), (n_all + seated[0], t_all + seated[1])
            now, old_part = self.parts(restaurant, dish_now, all_now, log_base)
            if now <= 0 or frozen <= 0:  # with parameters at the border of the range of floats
                return -math.inf
            log_ratio += math.log(now) - math.log(frozen)
            opens = random.random() * now >= old_part
            dish[0] += 1
            seated[0] += 1
            dish[1] += opens
            seated[1] += opens
        return log_ratio

    def parts(
        self, restaurant: int, dish: tuple[float, float], total: tuple[float, float], log_base: float
    ) -> tuple[float, float]:
        """The predictive probability of a dish, and the part of it that occupied tables have.

        Parameters
        ----------
        restaurant : int
        dish, total : tuple
            The customers and tables of the dish, and of the whole restaurant.
        log_base : float
            The log probability of the dish under P0.
        """
        discount, strength = self.discount[restaurant], self.strength[restaurant]
        denominator = strength + total[0]
        old = max(dish[0] - discount * dish[1], 0.0) / denominator
        return old + (strength + discount * total[1]) / denominator * math.exp(log_base), old

    def fragments_of(self, rows: np.ndarray, words: Sequence[int]) -> list[tuple[Parts, int, int, float]] | None:
        """The elementary trees of a derivation from the root down: key, number, restaurant, log P0."""
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
            if number < 0:  # not stored: a number below -3, the code of a foot; equal fragments have equal numbers
                number = fresh.setdefault(key, -4 - len(fresh))
            if inserts:
                ordered.append((key, number, label + self.n_labels, log_base))
                waiting.append(children[state - LEFT_FOOT])  # the host continues at the foot
                continue
            if state == SITE:
                ordered.append((key, number, label, log_base))
            waiting.append((label, number, log_base, state == SITE))
        return ordered[::-1]
