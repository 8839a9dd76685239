# Seating in the split sampler: a customer of a rule sits down or leaves, at every level where a table opens or empties,
# and can be rolled back.
#
# All of it may run on worker threads: what allocates lets std::bad_alloc pass, and is called by `WorkerPool.run` only.
from libc.stdint cimport int32_t
from libcpp cimport bool as cpp_bool

from tsgkit._backoff cimport (
    MOST_CLASS_LEVELS, MOST_LEVELS, Address, Place, class_level, fill_bases, label_class_level, label_class_place,
    label_class_probability, predictive_at, probability_at, restaurant_at, word_level,
)
from tsgkit._random cimport Rng
from tsgkit._restaurant cimport Restaurant, Tables, new_weight, old_weight
from tsgkit._split_state cimport NO_TABLE, SplitState, Table, TableList, fill_address, index_of, place_at
from tsgkit._types cimport index_t
from tsgkit._worker_pool cimport worker_vector


# A customer sat down at a table or left it; `before` is the table without that.
cdef struct SeatingEntry:
    Restaurant* restaurant
    Tables* cell
    TableList* tables
    int32_t number
    Table before
    cpp_bool is_seated

ctypedef worker_vector[SeatingEntry] SeatingEntries


# ---- one level --------------------------------------------------------------------------------------------------

cdef inline void add_customer(Restaurant* restaurant, Tables* cell, int change, bint is_only) noexcept nogil:
    """One customer more or less; whether there is no other one at the table."""
    restaurant.n_customers += change
    cell.n_customers += change
    if is_only:
        restaurant.n_tables += change
        cell.n_tables += change


cdef inline int32_t table_at(const TableList* tables, double discount, double target) noexcept nogil:
    """The table where the sum of all weights, size - discount, exceeds a target."""
    cdef const Table* first = tables.data()
    cdef int32_t number, last = NO_TABLE
    for number in range(<int32_t>tables.size()):
        if first[number].size:
            target -= first[number].size - discount
            last = number
            if target < 0.0:
                break
    return last


cdef inline int32_t free_table(TableList* tables) noexcept nogil:
    """The first number that no table has."""
    cdef const Table* first = tables.data()
    cdef int32_t number
    cdef Table table
    for number in range(<int32_t>tables.size()):
        if first[number].size == 0:
            return number
    table.size, table.below, table.class_below = 0, NO_TABLE, NO_TABLE
    tables.insert_at(tables.size(), table)
    return <int32_t>tables.size() - 1


cdef inline Table* sit(SplitState* s, int level, const Place* place, double base, Rng* rng, SeatingEntries* seatings,
                       int32_t* number) noexcept nogil:
    """Seat a customer of a dish with this base probability; the table, which is new if it has one customer."""
    cdef SeatingEntry entry
    cdef Table* table
    cdef double old_part, target
    entry.restaurant = restaurant_at(&s.back_off, level, place)
    entry.cell = &s.back_off.levels[level].cells[place.cell]
    entry.tables = &s.tables[level][place.cell]
    entry.number = NO_TABLE
    if entry.cell.n_customers:
        old_part = old_weight(entry.restaurant, entry.cell)
        target = rng.uniform() * (old_part + new_weight(entry.restaurant) * base)
        if target < old_part:
            entry.number = table_at(entry.tables, entry.restaurant.discount, target)
    if entry.number == NO_TABLE:
        entry.number = free_table(entry.tables)
    table = &entry.tables[0][entry.number]
    entry.before, entry.is_seated = table[0], True
    seatings.push_back(entry)
    table.size += 1
    if table.size == 1:
        table.below = table.class_below = NO_TABLE
    add_customer(entry.restaurant, entry.cell, +1, table.size == 1)
    number[0] = entry.number
    return table


cdef inline Table leave(SplitState* s, int level, const Place* place, int32_t number,
                        SeatingEntries* seatings) noexcept nogil:
    """Unseat a customer of a table; the table without that customer."""
    cdef SeatingEntry entry
    cdef Table* table
    entry.restaurant = restaurant_at(&s.back_off, level, place)
    entry.cell = &s.back_off.levels[level].cells[place.cell]
    entry.tables = &s.tables[level][place.cell]
    entry.number, entry.is_seated = number, False
    table = &entry.tables[0][number]
    entry.before = table[0]
    seatings.push_back(entry)
    table.size -= 1
    add_customer(entry.restaurant, entry.cell, -1, table.size == 0)
    return table[0]


cdef inline void roll_back(SeatingEntries* seatings, size_t mark) noexcept nogil:
    """Undo all entries from `mark` on, the last one first, and forget them."""
    cdef const SeatingEntry* last
    while seatings.size() > mark:
        last = seatings.data() + (seatings.size() - 1)
        last.tables[0][last.number] = last.before
        if last.is_seated:
            add_customer(last.restaurant, last.cell, -1, last.before.size == 0)
        else:
            add_customer(last.restaurant, last.cell, +1, last.before.size == 1)
        seatings.pop_back()


# ---- all levels -------------------------------------------------------------------------------------------------

cdef inline void sit_word(SplitState* s, const Address* address, Table* table, Rng* rng,
                          SeatingEntries* seatings) noexcept nogil:
    """Seat the customers of a new table of a word with a class."""
    cdef double bases[MOST_CLASS_LEVELS]
    cdef double of_label = label_class_probability(&s.back_off, address.label, address.word_class, bases)
    cdef Table* above
    cdef Place place
    cdef int number = 0
    sit(s, word_level(&s.back_off), &address.of_word, s.back_off.class_word_base[address.word_class], rng, seatings,
        &table.below)
    table = sit(s, class_level(&s.back_off), &address.of_class, of_label, rng, seatings, &table.class_below)
    while table.size == 1 and number < s.back_off.n_class_levels:
        above = table
        place = label_class_place(&s.back_off, number, address.label, address.word_class)
        table = sit(s, label_class_level(&s.back_off) + number, &place, bases[number], rng, seatings, &above.below)
        number += 1


cdef inline double sit_rule(SplitState* s, const Address* address, Rng* rng, SeatingEntries* seatings,
                            int32_t* number) noexcept nogil:
    """Seat a customer of a rule, and one more at every next level where a table is new; its probability before that."""
    cdef double base[MOST_LEVELS]
    cdef double result = predictive_at(&s.back_off, 0, &address.rules[0], fill_bases(&s.back_off, address, base))
    cdef Table* table = sit(s, 0, &address.rules[0], base[0], rng, seatings, number)
    cdef Table* above
    cdef int level = 1
    if address.word_class >= 0:
        if table.size == 1:
            sit_word(s, address, table, rng, seatings)
        return result
    while level < s.back_off.n_used and table.size == 1:
        above = table
        table = sit(s, level, &address.rules[level], base[level], rng, seatings, &above.below)
        level += 1
    return result


cdef inline void leave_word(SplitState* s, const Address* address, const Table* removed,
                            SeatingEntries* seatings) noexcept nogil:
    """Unseat the customers of a table of a word with a class that was removed."""
    cdef Table table
    cdef Place place
    cdef int number = 0
    leave(s, word_level(&s.back_off), &address.of_word, removed.below, seatings)
    table = leave(s, class_level(&s.back_off), &address.of_class, removed.class_below, seatings)
    while table.size == 0 and number < s.back_off.n_class_levels:
        place = label_class_place(&s.back_off, number, address.label, address.word_class)
        table = leave(s, label_class_level(&s.back_off) + number, &place, table.below, seatings)
        number += 1


cdef inline void leave_rule(SplitState* s, int32_t number, int index, int32_t seat,
                            SeatingEntries* seatings) noexcept nogil:
    """Unseat a customer of a rule from a table, and one more at every next level where a table is removed."""
    cdef Place place = place_at(s, number, 0, index)
    cdef Table table = leave(s, 0, &place, seat, seatings)
    cdef Address address
    cdef int level = 1
    if table.size:
        return
    if s.blocks[number].word_class >= 0:
        fill_address(s, number, index, &address)
        leave_word(s, &address, &table, seatings)
        return
    while level < s.back_off.n_used and table.size == 0:
        place = place_at(s, number, level, index)
        table = leave(s, level, &place, table.below, seatings)
        level += 1


# ---- nodes ------------------------------------------------------------------------------------------------------

cdef inline double seat_node(SplitState* s, index_t node, Rng* rng, SeatingEntries* seatings) noexcept nogil:
    """Seat a customer for the rule at a node; its probability before that."""
    cdef Address address
    fill_address(s, s.block_of[node], index_of(s, node, s.bit.data()), &address)
    return sit_rule(s, &address, rng, seatings, &s.seat[node])


cdef inline void leave_node(SplitState* s, index_t node, SeatingEntries* seatings) noexcept nogil:
    """Unseat the customer of the rule at a node."""
    leave_rule(s, s.block_of[node], index_of(s, node, s.bit.data()), s.seat[node], seatings)


cdef inline double unseat_node(SplitState* s, index_t node, SeatingEntries* seatings) noexcept nogil:
    """Unseat the customer of the rule at a node; its probability after that."""
    cdef int index = index_of(s, node, s.bit.data())
    cdef Address address
    leave_rule(s, s.block_of[node], index, s.seat[node], seatings)
    fill_address(s, s.block_of[node], index, &address)
    return probability_at(&s.back_off, &address)


# Seat, and unseat, all trees by their bits.
cdef int seat_all(SplitState* s) except -1 nogil
cdef int unseat_all(SplitState* s) except -1 nogil
