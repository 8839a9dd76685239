"""Pitman-Yor processes, and Dirichlet processes among them, as restaurants: a hierarchy of them is a model by itself.

A customer who orders a dish sits down at a table where it is served, or at a new one; a new table is a draw from
the base distribution, so where the base is a process itself, it seats a customer there.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Iterator

from tsgkit._random import Stream
from tsgkit._restaurant import DishRestaurant, draw_parameters


class Parameters:
    """The discount and strength of one process, or of several that share them.

    Parameters
    ----------
    discount : float
        At least 0 and less than 1. Exactly 0 is the Dirichlet process, and stays when resampled.
    strength : float
        Greater than 0.
    """

    def __init__(self, discount: float = 0.5, strength: float = 1.0):
        self.discount = discount
        self.strength = strength

    def __repr__(self) -> str:
        return f"Parameters(discount={self.discount:.6g}, strength={self.strength:.6g})"

    @property
    def discount(self) -> float:
        return self._discount

    @discount.setter
    def discount(self, value: float) -> None:
        if not 0 <= value < 1:
            raise ValueError(f"the discount {value} is not in [0, 1)")
        self._discount = float(value)

    @property
    def strength(self) -> float:
        return self._strength

    @strength.setter
    def strength(self, value: float) -> None:
        if not 0 < value < math.inf:
            raise ValueError(f"the strength {value} is not a positive number")
        self._strength = float(value)

    def resample(self, processes: Iterable["PitmanYorProcess"], stream: Stream) -> None:
        """Resample both, given who sits where in all processes that share them.

        Parameters
        ----------
        processes : iterable of PitmanYorProcess
            All that have these parameters.
        stream : Stream

        Notes
        -----
        The priors are Beta(1, 1) for the discount and Gamma(1, 1) for the strength. One step is one draw of Teh's
        auxiliary variables and one of the parameters given them: it leaves the posterior distribution as it is, and
        is not a draw from it that is independent of the values before.
        """
        restaurants = []
        for process in processes:
            if process.parameters is not self:
                raise ValueError("a process has other parameters than these")
            restaurants.append(process._restaurant)
        discount, strength = draw_parameters(restaurants, self.discount, self.strength, stream)
        if self.discount > 0:
            self.discount = min(max(discount, 1e-9), 1 - 1e-9)
        self.strength = max(strength, 1e-9)


class PitmanYorProcess:
    """A distribution over dishes of which only the customers' orders and their tables are known.

    Parameters
    ----------
    base : PitmanYorProcess, number, or function of a dish
        The base distribution: another process, the probability that every dish has, or what gives it.
    parameters : Parameters, optional
        May be shared with other processes; by default the process has new ones.

    Notes
    -----
    With :math:`n_e` customers of dish :math:`e` at :math:`t_e` tables, :math:`n` and :math:`t` in all, discount
    :math:`d`, strength :math:`\\theta` and base :math:`P`, the next customer orders :math:`e` with probability

    .. math:: p(e) = \\frac{n_e - d t_e + (\\theta + d t) P(e)}{\\theta + n}

    Examples
    --------
    >>> stream = Stream(seed=1)
    >>> words = PitmanYorProcess(base=1 / 1000, parameters=Parameters(0.5, 1.0))
    >>> after_the = PitmanYorProcess(base=words, parameters=words.parameters)
    >>> for word in ["cat", "dog", "cat"]:
    ...     after_the.seat(word, stream)
    >>> words.n_customers == after_the.n_tables
    True
    >>> after_the.probability("cat") > after_the.probability("dog") > after_the.probability("cow")
    True
    >>> after_the.unseat("dog", stream)
    >>> words.counts("dog")
    (0, 0)
    """

    def __init__(
        self,
        base: "PitmanYorProcess | float | Callable[[Hashable], float]",
        parameters: Parameters | None = None,
    ):
        if not isinstance(base, PitmanYorProcess) and not callable(base) and not 0 < base < math.inf:
            raise ValueError(f"the base probability {base} is not a positive number")
        self._base = base
        self.parameters = Parameters() if parameters is None else parameters
        self._restaurant = DishRestaurant()

    @property
    def base(self) -> "PitmanYorProcess | float | Callable[[Hashable], float]":
        return self._base

    @property
    def n_customers(self) -> int:
        return self._restaurant.n_customers

    @property
    def n_tables(self) -> int:
        return self._restaurant.n_tables

    def dishes(self) -> list[Hashable]:
        """What the customers have ordered, each dish once."""
        return self._restaurant.dishes()

    def counts(self, dish: Hashable) -> tuple[int, int]:
        """The numbers of customers and of tables of a dish."""
        return self._restaurant.counts(dish)

    def table_sizes(self, dish: Hashable) -> list[int]:
        """How many customers sit at each table of a dish, from the smallest on."""
        return self._restaurant.table_sizes(dish)

    def probability(self, dish: Hashable) -> float:
        """The probability that the next customer orders `dish`."""
        *_, (_, _, probability) = self._downwards(dish)
        return probability

    def seat(self, dish: Hashable, stream: Stream) -> None:
        """Seat a customer who ordered `dish`, here and wherever new tables need one."""
        levels = list(self._downwards(dish))
        base_probability = levels[0][1]
        if not 0 < base_probability < math.inf:
            raise ValueError(f"the base distribution P0 gives {dish!r} the probability {base_probability}")
        for process, base, _ in reversed(levels):
            discount, strength = process.parameters.discount, process.parameters.strength
            if not process._restaurant.seat(dish, base, discount, strength, stream):
                return

    def unseat(self, dish: Hashable, stream: Stream) -> None:
        """Unseat a customer of `dish`, any one of them; tables that empty are removed, down to P0."""
        for process in self._levels():
            if not process._restaurant.unseat(dish, stream):
                return

    def log_joint(self) -> float:
        """The log probability of this restaurant's seating.

        The tables' dishes count as draws from the base if that is no process; otherwise the base counts them among
        its customers, so that a hierarchy has the sum over all its processes.
        """
        log_probability: float = self._restaurant.log_seating(self.parameters.discount, self.parameters.strength)
        if not isinstance(self._base, PitmanYorProcess):
            for dish in self.dishes():
                log_probability += self.counts(dish)[1] * math.log(self._p0(dish))
        return log_probability

    def _levels(self) -> Iterator["PitmanYorProcess"]:
        """This process, its base, and so on."""
        process: object = self
        while isinstance(process, PitmanYorProcess):
            yield process
            process = process._base

    def _p0(self, dish: Hashable) -> float:
        assert not isinstance(self._base, PitmanYorProcess)
        return self._base(dish) if callable(self._base) else self._base

    def _downwards(self, dish: Hashable) -> Iterator[tuple["PitmanYorProcess", float, float]]:
        """Every process from P0 to this one, with a dish's base probability and probability."""
        levels = list(self._levels())
        probability = levels[-1]._p0(dish)
        for process in reversed(levels):
            base = probability
            discount, strength = process.parameters.discount, process.parameters.strength
            probability = process._restaurant.probability(dish, base, discount, strength)
            yield process, base, probability
