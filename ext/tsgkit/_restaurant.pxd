# Pitman-Yor restaurants as plain values: who sits where, as histograms of table sizes.
#
#     p(e) = [ n_e - d t_e + (theta + d t) P(e) ] / (theta + n)
#
# `Tables` is the seating of one dish, `Restaurant` the totals of all its dishes. Seating and unseating return the size
# of the table concerned, and can be undone exactly with it. What a new table means for the base distribution is the
# caller's business. Kernels of other modules use these functions inline.
from libc.math cimport log
from libc.stdint cimport int32_t, int64_t, uint64_t
from libcpp cimport bool as cpp_bool
from libcpp.vector cimport vector

from tsgkit._random cimport Rng


cdef struct SizeCount:
    int32_t size
    int32_t n_tables


cdef extern from "inline_vector.hpp" namespace "tsgkit" nogil:
    # A vector whose first two items lie inside it. Most dishes have tables of one or two sizes.
    cdef cppclass InlineVector[Item]:
        size_t size()
        const Item* data()
        Item& operator[](size_t)
        void insert_at(size_t position, Item item) except +
        void erase_at(size_t position)
        void swap(InlineVector[Item]&)


cdef cppclass Tables:
    int32_t n_customers
    int32_t n_tables
    InlineVector[SizeCount] by_size    # by size: draws walk through it in this order, always the same


cdef struct Restaurant:
    double discount
    double strength
    int64_t n_customers
    int64_t n_tables


cdef inline Restaurant empty_restaurant() noexcept nogil:
    """Nobody seated, with the parameters of a Dirichlet process of strength 1."""
    cdef Restaurant restaurant
    restaurant.discount, restaurant.strength = 0.0, 1.0
    restaurant.n_customers = restaurant.n_tables = 0
    return restaurant


# ---- one dish -----------------------------------------------------------------------------------------------

cdef inline size_t position_of_size(const Tables* tables, int32_t size) noexcept nogil:
    """The first entry of the histogram that is not smaller."""
    cdef size_t low = 0, high = tables.by_size.size(), middle
    while low < high:
        middle = (low + high) >> 1
        if tables.by_size[middle].size < size:
            low = middle + 1
        else:
            high = middle
    return low


cdef inline int change_count(Tables* tables, int32_t size, int32_t change) except -1 nogil:
    """Add to the number of tables of a size."""
    cdef size_t position = position_of_size(tables, size)
    cdef SizeCount entry
    if position == tables.by_size.size() or tables.by_size[position].size != size:
        entry.size, entry.n_tables = size, change
        tables.by_size.insert_at(position, entry)
    else:
        tables.by_size[position].n_tables += change
        if tables.by_size[position].n_tables == 0:
            tables.by_size.erase_at(position)
    return 0


cdef inline int resize_table(Tables* tables, int32_t size, int32_t change) except -1 nogil:
    """One table of this size gets one customer more or less. Most often it is alone, and its entry changes in place."""
    cdef size_t position = position_of_size(tables, size), beside = position + change
    cdef bint is_alone = tables.by_size[position].n_tables == 1
    cdef SizeCount entry
    if beside < tables.by_size.size() and tables.by_size[beside].size == size + change:
        tables.by_size[beside].n_tables += 1
        if is_alone:
            tables.by_size.erase_at(position)
        else:
            tables.by_size[position].n_tables -= 1
    elif is_alone:
        tables.by_size[position].size += change
    else:
        entry.size, entry.n_tables = size + change, 1
        tables.by_size.insert_at(position + (change > 0), entry)
        tables.by_size[position + (change < 0)].n_tables -= 1
    return 0


cdef inline int grow_table(Tables* tables, int32_t size) except -1 nogil:
    """One table of this size gets another customer; size 0 opens a new table."""
    if size == 0:
        change_count(tables, 1, +1)
        tables.n_tables += 1
    else:
        resize_table(tables, size, +1)
    tables.n_customers += 1
    return 0


cdef inline int shrink_table(Tables* tables, int32_t size) except -1 nogil:
    """One table of this size loses a customer; a table of one is removed."""
    if size == 1:
        change_count(tables, 1, -1)
        tables.n_tables -= 1
    else:
        resize_table(tables, size, -1)
    tables.n_customers -= 1
    return 0


cdef inline int32_t n_tables_of_size(const Tables* tables, int32_t size) noexcept nogil:
    cdef size_t position = position_of_size(tables, size)
    if position == tables.by_size.size() or tables.by_size[position].size != size:
        return 0
    return tables.by_size[position].n_tables


cdef inline int32_t draw_customer(const Tables* tables, Rng* rng) noexcept nogil:
    """The size of the table of a customer drawn uniformly."""
    return size_at_customer(tables, <int64_t>rng.below(<uint64_t>tables.n_customers))


cdef inline int32_t size_at_customer(const Tables* tables, int64_t target) noexcept nogil:
    """The size of the table of a customer, counted from 0 through all tables, small ones first."""
    cdef size_t position
    for position in range(tables.by_size.size()):
        target -= <int64_t>tables.by_size[position].size * tables.by_size[position].n_tables
        if target < 0:
            return tables.by_size[position].size
    return tables.by_size[tables.by_size.size() - 1].size


cdef inline int32_t draw_table(const Tables* tables, double discount, Rng* rng) noexcept nogil:
    """The size of an occupied table drawn with weight size - discount."""
    cdef double target = rng.uniform() * (tables.n_customers - discount * tables.n_tables)
    cdef size_t position
    for position in range(tables.by_size.size()):
        target -= (tables.by_size[position].size - discount) * tables.by_size[position].n_tables
        if target < 0.0:
            return tables.by_size[position].size
    return tables.by_size[tables.by_size.size() - 1].size


# ---- one restaurant -------------------------------------------------------------------------------------------

cdef inline double old_weight(const Restaurant* restaurant, const Tables* tables) noexcept nogil:
    """The weight of all tables that serve a dish, before division by `denominator`."""
    return tables.n_customers - restaurant.discount * tables.n_tables


cdef inline double new_weight(const Restaurant* restaurant) noexcept nogil:
    """The same of a new table, before multiplication by the base probability."""
    return restaurant.strength + restaurant.discount * <double>restaurant.n_tables


cdef inline double denominator(const Restaurant* restaurant) noexcept nogil:
    return restaurant.strength + <double>restaurant.n_customers


cdef inline double predictive(const Restaurant* restaurant, const Tables* tables, double base) noexcept nogil:
    """The probability of a dish for the next customer; `tables` is NULL for a dish that nobody has."""
    cdef double old_part = old_weight(restaurant, tables) if tables is not NULL else 0.0
    return (old_part + new_weight(restaurant) * base) / denominator(restaurant)


cdef inline int grow(Restaurant* restaurant, Tables* tables, int32_t size) except -1 nogil:
    """A customer sits down at a table of this size; 0: at a new one."""
    grow_table(tables, size)
    restaurant.n_customers += 1
    restaurant.n_tables += size == 0
    return 0


cdef inline int shrink(Restaurant* restaurant, Tables* tables, int32_t size) except -1 nogil:
    """A customer leaves a table of this size; a table of one is removed."""
    shrink_table(tables, size)
    restaurant.n_customers -= 1
    restaurant.n_tables -= size == 1
    return 0


cdef inline int32_t seat(Restaurant* restaurant, Tables* tables, double base, Rng* rng) except -1 nogil:
    """Seat a customer of a dish with this base probability; the size of the table before, 0 if it is new."""
    cdef double old_part = old_weight(restaurant, tables) if tables.n_customers else 0.0
    cdef double new_part = new_weight(restaurant) * base
    cdef int32_t size = 0
    if tables.n_customers and rng.uniform() * (old_part + new_part) < old_part:
        size = draw_table(tables, restaurant.discount, rng)
    grow(restaurant, tables, size)
    return size


cdef inline int32_t unseat(Restaurant* restaurant, Tables* tables, Rng* rng) except -1 nogil:
    """Unseat a customer of a dish, any of them; the size of the table before, 1 if it is removed."""
    cdef int32_t size = draw_customer(tables, rng)
    shrink(restaurant, tables, size)
    return size


# ---- the log of seatings --------------------------------------------------------------------------------------

# Where the tables of an array of dishes lie: inside of records of `stride` bytes each.
cdef struct TableArray:
    Tables* first
    size_t stride


cdef struct Seating:
    Restaurant* restaurant
    int32_t array        # which TableArray, by the owner's numbers
    int32_t dish         # its position in that array
    int32_t size         # of the table before
    int32_t table        # which one of that size, where tables are told apart; otherwise -1
    cpp_bool is_seated   # whether a customer sat down there, or left it


# Customers who sat down or left, in order, so that a rejected proposal can be rolled back.
cdef cppclass SeatingLog:
    vector[Seating] entries


cdef inline Tables* tables_at(const TableArray* arrays, int32_t array, int32_t dish) noexcept nogil:
    return <Tables*>(<char*>arrays[array].first + arrays[array].stride * dish)


cdef inline int note(SeatingLog* seatings, Restaurant* restaurant, int32_t array, int32_t dish, int32_t size,
                     int32_t table, bint is_seated) except -1 nogil:
    cdef Seating entry
    entry.restaurant, entry.array, entry.dish = restaurant, array, dish
    entry.size, entry.table, entry.is_seated = size, table, is_seated
    seatings.entries.push_back(entry)
    return 0


cdef inline int undo(const Seating* entry, Tables* tables) except -1 nogil:
    """Undo one entry of a log, the last one that is not undone yet."""
    if entry.is_seated:
        return shrink(entry.restaurant, tables, entry.size + 1)
    return grow(entry.restaurant, tables, entry.size - 1)


cdef inline int rollback(SeatingLog* seatings, const TableArray* arrays, size_t mark=0) except -1 nogil:
    """Undo all entries from `mark` on, the last one first, and forget them."""
    cdef const Seating* last
    while seatings.entries.size() > mark:
        last = &seatings.entries.back()
        undo(last, tables_at(arrays, last.array, last.dish))
        seatings.entries.pop_back()
    return 0


# ---- parameters -----------------------------------------------------------------------------------------------

# The numbers of tables by size of one restaurant are all that its seating's probability and its parameters depend on:
# counts[m] tables have m customers.
ctypedef vector[int64_t] table_counts

cdef int add_sizes(const Tables* tables, table_counts* counts) except -1 nogil
cdef double log_seating(const Restaurant* restaurant, const table_counts* counts) noexcept nogil


# What Teh's auxiliary variables add to the posterior of a shared (discount, strength).
cdef struct HyperSums:
    double ones_y     # sum of y
    double zeros_y    # sum of 1 - y
    double zeros_z    # sum of 1 - z
    double log_x      # sum of log x

cdef void add_auxiliary(HyperSums* sums, const Restaurant* restaurant, const table_counts* counts,
                        Rng* rng) noexcept nogil
cdef double draw_discount(const HyperSums* sums, Rng* rng) noexcept nogil
cdef double draw_strength(const HyperSums* sums, Rng* rng) noexcept nogil
cdef int resample_pair(vector[Restaurant]* restaurants, const vector[table_counts]* counts,
                       const vector[int64_t]* sharing, Rng* rng, bint is_dirichlet) except -1 nogil


# The probability of stopping at a node, per label, with the logarithms that samplers need.
cdef cppclass StopProbabilities:
    vector[double] stop
    vector[double] log_stop
    vector[double] log_internal    # log(1 - stop)

cdef void set_stop(StopProbabilities* stops, size_t label, double probability) noexcept nogil
cdef int start_stops(StopProbabilities* stops, size_t n_labels) except -1 nogil


# The logarithm of a product of many factors, with as few logarithms as possible.
cdef struct LogProduct:
    double log
    double product

cdef inline LogProduct log_product() noexcept nogil:
    cdef LogProduct result
    result.log, result.product = 0.0, 1.0
    return result

cdef inline void multiply(LogProduct* result, double factor) noexcept nogil:
    result.product *= factor
    if result.product < 1e-150 or result.product > 1e150:
        result.log += log(result.product)
        result.product = 1.0

cdef inline double log_of(const LogProduct* result) noexcept nogil:
    return result.log + log(result.product)
