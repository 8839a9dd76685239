"""One Pitman-Yor restaurant over any dishes: a door to ``restaurant.hpp``, which see.

What its base distribution is, and with whom it shares its parameters, is the business of
`tsgkit.models.restaurant`: probabilities and parameters come in with every call, and are checked there.
"""

from libc.stdint cimport uint64_t
from libcpp.vector cimport vector

from tsgkit._restaurant cimport CppStream, House, HyperSums, Tables, add_sizes, log_seating
from tsgkit._types cimport index_t, symbol_t


cdef class Stream:
    """A stream of random numbers: the same seed gives the same numbers everywhere.

    Parameters
    ----------
    seed : int
    iteration, number : int
        Streams of the same seed that differ in one of these are independent of each other.
    """

    cdef CppStream stream

    def __init__(self, uint64_t seed, uint64_t iteration=0, uint64_t number=0):
        self.stream = CppStream(seed, iteration, number)

    def uniform(self):
        """A number in [0, 1)."""
        return self.stream.uniform()


cdef class Restaurant:
    """Who sits where; a dish is anything hashable, and is forgotten when its last customer leaves."""

    cdef House house
    cdef vector[Tables] tables        # by the number of a dish; numbers are given again
    cdef vector[symbol_t] free
    cdef dict numbers

    def __init__(self):
        self.numbers = {}

    @property
    def n_customers(self):
        return self.house.n_customers

    @property
    def n_tables(self):
        return self.house.n_tables

    def dishes(self):
        return list(self.numbers)

    def table_sizes(self, dish):
        """The sizes of a dish's tables, small ones first."""
        cdef Tables* tables = self.find(dish)
        sizes = []
        if tables is not NULL:
            for entry in tables.by_size:
                sizes.extend([entry.first] * entry.second)
        return sizes

    def counts(self, dish):
        """The numbers of customers and tables of a dish."""
        cdef Tables* tables = self.find(dish)
        if tables is NULL:
            return 0, 0
        return tables.n_customers, tables.n_tables

    def probability(self, dish, double base, double discount, double strength):
        self.set_parameters(discount, strength)
        cdef Tables* tables = self.find(dish)
        cdef double weight = self.house.new_weight() * base
        if tables is not NULL:
            weight += self.house.old_weight(tables[0])
        return weight / self.house.denominator()

    def seat(self, dish, double base, double discount, double strength, Stream stream not None):
        """Seat a customer; returns whether the table is new."""
        self.set_parameters(discount, strength)
        cdef Tables* tables = self.find(dish)
        if tables is NULL:
            if self.free.empty():
                self.numbers[dish] = self.tables.size()
                self.tables.emplace_back()
            else:
                self.numbers[dish] = self.free.back()
                self.free.pop_back()
            tables = self.find(dish)
        return self.house.seat(tables[0], base, stream.stream) == 0

    def unseat(self, dish, Stream stream not None):
        """Unseat a customer; returns whether the table is gone."""
        cdef Tables* tables = self.find(dish)
        if tables is NULL:
            raise ValueError(f"nobody here ordered {dish!r}")
        cdef bint is_gone = self.house.unseat(tables[0], stream.stream) == 1
        if tables.n_customers == 0:
            self.free.push_back(self.numbers.pop(dish))
        return is_gone

    def log_seating(self, double discount, double strength):
        """The log probability of the seating, without the base probabilities of the tables' dishes."""
        self.set_parameters(discount, strength)
        return log_seating(self.house, self.tables_by_size())

    cdef Tables* find(self, dish) except? NULL:
        number = self.numbers.get(dish)
        if number is None:
            return NULL
        return &self.tables[<symbol_t>number]

    cdef void set_parameters(self, double discount, double strength) noexcept:
        self.house.discount, self.house.strength = discount, strength

    cdef vector[index_t] tables_by_size(self) noexcept:
        cdef vector[index_t] counts
        cdef Tables tables
        for tables in self.tables:
            add_sizes(tables, counts)
        return counts


def draw_parameters(restaurants, double discount, double strength, Stream stream not None):
    """A new discount and strength that all these restaurants share, given the present ones and the seatings."""
    cdef HyperSums sums
    cdef Restaurant restaurant
    for restaurant in restaurants:
        restaurant.set_parameters(discount, strength)
        sums.draw(restaurant.house, restaurant.tables_by_size(), stream.stream)
    return sums.draw_discount(stream.stream), sums.draw_strength(stream.stream)
