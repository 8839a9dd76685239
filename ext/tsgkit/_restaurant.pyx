"""Pitman-Yor restaurants: parameters given seatings, and one restaurant over any dishes for Python.

Kernels use the functions of ``_restaurant.pxd`` inline. What the base distribution of a restaurant is, and with which
others it shares its parameters, is said in `tsgkit.models.restaurant`: probabilities and parameters come in with every
call, and are checked there.
"""

from libc.math cimport lgamma, log, log1p
from libc.stdint cimport int32_t, int64_t
from libcpp.vector cimport vector

from tsgkit._random cimport Rng, Stream
from tsgkit._vectors cimport fill

# Parameters are kept away from where probabilities become 0 or not a number.
cdef enum:
    PRIOR = 1    # Beta(1, 1) for discounts and stop probabilities, Gamma(1, 1) for strengths

cdef double SMALLEST = 1e-9


cdef int add_sizes(const Tables* tables, table_counts* counts) except -1 nogil:
    """Add the tables of a dish to those of its restaurant."""
    cdef size_t position
    cdef int32_t size
    for position in range(tables.by_size.size()):
        size = tables.by_size[position].size
        if <size_t>size >= counts.size():
            counts.resize(size + 1, 0)
        counts[0][size] += tables.by_size[position].n_tables
    return 0


cdef double log_seating(const Restaurant* restaurant, const table_counts* counts) noexcept nogil:
    """log p(seating) without the base probabilities of the tables' dishes."""
    if restaurant.n_customers == 0:
        return 0.0
    cdef double result = lgamma(restaurant.strength + 1.0) - lgamma(restaurant.strength + restaurant.n_customers)
    cdef double smallest = lgamma(1.0 - restaurant.discount)
    cdef int64_t table
    cdef size_t size
    if restaurant.discount == 0.0:
        result += (restaurant.n_tables - 1) * log(restaurant.strength)
    else:
        for table in range(1, restaurant.n_tables):
            result += log(restaurant.strength + restaurant.discount * table)
    for size in range(1, counts.size()):
        if counts[0][size]:
            result += counts[0][size] * (lgamma(size - restaurant.discount) - smallest)
    return result


# ---- discounts and strengths ----------------------------------------------------------------------------------

cdef void add_auxiliary(
    HyperSums* sums, const Restaurant* restaurant, const table_counts* counts, Rng* rng
) noexcept nogil:
    """Draw Teh's auxiliary variables of one restaurant, and add them up."""
    cdef double discount = restaurant.discount, strength = restaurant.strength, position
    cdef int64_t table, n_larger = 0
    cdef size_t size
    if restaurant.n_customers >= 2:
        sums.log_x += log(rng.beta(strength + 1.0, restaurant.n_customers - 1.0))
    for table in range(1, restaurant.n_tables):
        if rng.uniform() * (strength + discount * table) < strength:
            sums.ones_y += 1.0
        else:
            sums.zeros_y += 1.0
    # At position j, z is drawn once for every table with more than j customers.
    size = counts.size()
    while size > 2:
        size -= 1
        n_larger += counts[0][size]
        position = <double>(size - 1)
        sums.zeros_z += n_larger - rng.binomial(n_larger, (position - 1.0) / (position - discount))


cdef double draw_discount(const HyperSums* sums, Rng* rng) noexcept nogil:
    return rng.beta(PRIOR + sums.zeros_y, PRIOR + sums.zeros_z)


cdef double draw_strength(const HyperSums* sums, Rng* rng) noexcept nogil:
    return rng.gamma(PRIOR + sums.ones_y) / (PRIOR - sums.log_x)


cdef int resample_pair(
    vector[Restaurant]* restaurants, const vector[table_counts]* counts, const vector[int64_t]* sharing, Rng* rng,
    bint is_dirichlet,
) except -1 nogil:
    """Resample the (discount, strength) that these restaurants share; a Dirichlet process keeps its discount."""
    cdef HyperSums sums = HyperSums(0.0, 0.0, 0.0, 0.0)
    cdef double discount, strength
    cdef size_t item
    if sharing.empty():
        return 0
    for item in range(sharing.size()):
        add_auxiliary(&sums, &restaurants[0][sharing[0][item]], &counts[0][sharing[0][item]], rng)
    discount = restaurants[0][sharing[0][0]].discount
    if not is_dirichlet:
        discount = min(draw_discount(&sums, rng), 1.0 - SMALLEST)
    strength = max(draw_strength(&sums, rng), SMALLEST)
    for item in range(sharing.size()):
        restaurants[0][sharing[0][item]].discount = discount
        restaurants[0][sharing[0][item]].strength = strength
    return 0


# ---- stop probabilities ---------------------------------------------------------------------------------------

cdef void set_stop(StopProbabilities* stops, size_t label, double probability) noexcept nogil:
    """Set a label's probability, kept away from 0 and 1, so that every derivation stays possible."""
    stops.stop[label] = min(max(probability, SMALLEST), 1.0 - SMALLEST)
    stops.log_stop[label] = log(stops.stop[label])
    stops.log_internal[label] = log1p(-stops.stop[label])


cdef int start_stops(StopProbabilities* stops, size_t n_labels) except -1 nogil:
    cdef size_t label
    fill(stops.stop, n_labels, 0.5)
    fill(stops.log_stop, n_labels, 0.0)
    fill(stops.log_internal, n_labels, 0.0)
    for label in range(n_labels):
        set_stop(stops, label, 0.5)
    return 0


# ---- for Python -----------------------------------------------------------------------------------------------

cdef class DishRestaurant:
    """Who sits where; a dish is anything hashable, and is forgotten when its last customer leaves."""

    cdef Restaurant restaurant
    cdef vector[Tables] tables        # by the number of a dish; numbers are given again
    cdef vector[int32_t] free
    cdef dict numbers

    def __init__(self):
        self.restaurant = empty_restaurant()
        self.numbers = {}

    @property
    def n_customers(self):
        return self.restaurant.n_customers

    @property
    def n_tables(self):
        return self.restaurant.n_tables

    def dishes(self):
        return list(self.numbers)

    def table_sizes(self, dish):
        """The sizes of a dish's tables, small ones first."""
        cdef Tables* tables = self.find(dish)
        cdef size_t position
        sizes = []
        if tables is not NULL:
            for position in range(tables.by_size.size()):
                sizes.extend([tables.by_size[position].size] * tables.by_size[position].n_tables)
        return sizes

    def counts(self, dish):
        """The numbers of customers and tables of a dish."""
        cdef Tables* tables = self.find(dish)
        if tables is NULL:
            return 0, 0
        return tables.n_customers, tables.n_tables

    def probability(self, dish, double base, double discount, double strength):
        self.set_parameters(discount, strength)
        return predictive(&self.restaurant, self.find(dish), base)

    def seat(self, dish, double base, double discount, double strength, Stream stream not None):
        """Seat a customer; returns whether the table is new."""
        self.set_parameters(discount, strength)
        cdef Tables* tables = self.find(dish)
        if tables is NULL:
            if self.free.empty():
                self.tables.resize(self.tables.size() + 1)
                self.numbers[dish] = self.tables.size() - 1
            else:
                self.numbers[dish] = self.free.back()
                self.free.pop_back()
            tables = self.find(dish)
        return seat(&self.restaurant, tables, base, &stream.rng) == 0

    def unseat(self, dish, Stream stream not None):
        """Unseat a customer; returns whether the table is removed."""
        cdef Tables* tables = self.find(dish)
        if tables is NULL:
            raise ValueError(f"no customer has the dish {dish!r}")
        cdef bint is_removed = unseat(&self.restaurant, tables, &stream.rng) == 1
        if tables.n_customers == 0:
            self.free.push_back(self.numbers.pop(dish))
        return is_removed

    def log_seating(self, double discount, double strength):
        """The log probability of the seating, without the base probabilities of the tables' dishes."""
        self.set_parameters(discount, strength)
        cdef table_counts counts
        self.count_tables(&counts)
        return log_seating(&self.restaurant, &counts)

    cdef Tables* find(self, dish) except? NULL:
        number = self.numbers.get(dish)
        if number is None:
            return NULL
        return &self.tables[<int32_t>number]

    cdef void set_parameters(self, double discount, double strength) noexcept:
        self.restaurant.discount, self.restaurant.strength = discount, strength

    cdef int count_tables(self, table_counts* counts) except -1:
        cdef size_t number
        for number in range(self.tables.size()):
            add_sizes(&self.tables[number], counts)
        return 0


def draw_parameters(restaurants, double discount, double strength, Stream stream not None):
    """A new discount and strength that all these restaurants share, given the present ones and the seatings."""
    cdef HyperSums sums = HyperSums(0.0, 0.0, 0.0, 0.0)
    cdef DishRestaurant restaurant
    cdef table_counts counts
    for restaurant in restaurants:
        restaurant.set_parameters(discount, strength)
        counts.clear()
        restaurant.count_tables(&counts)
        add_auxiliary(&sums, &restaurant.restaurant, &counts, &stream.rng)
    return draw_discount(&sums, &stream.rng), draw_strength(&sums, &stream.rng)
