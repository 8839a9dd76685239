"""Tables that are told apart while a batch of refined trees is resampled."""

from libc.stdint cimport int32_t, uint64_t

from tsgkit._backoff cimport (
    Address,
    BackOff,
    Place,
    class_level,
    is_label_class_level,
    label_class_level,
    label_class_place,
    restaurant_at,
    word_level,
)
from tsgkit._random cimport Rng
from tsgkit._refined_state cimport DISHES, RefinedState, TrackedTable
from tsgkit._restaurant cimport Restaurant, Seating, Tables, n_tables_of_size, note, shrink


cdef inline const Tables* tables_of(const RefinedState* state, const Seating* entry) noexcept nogil:
    if entry.array == DISHES:
        return &state.dishes[entry.dish].tables
    return &state.rules.levels[entry.array].cells[entry.dish]


cdef inline int32_t first_tracked(const RefinedState* state, int32_t array, int32_t dish) noexcept nogil:
    """A tracked table of a dish, or -1."""
    if <size_t>dish >= state.tracked.first[array + 1].size():
        return -1
    return state.tracked.first[array + 1][dish]


cdef int32_t draw_tracked(const RefinedState* state, const Seating* entry, Rng* rng) noexcept nogil:
    """Which table an entry of the log was, of all of its size: its number if it is tracked, or -1.

    The histogram does not have it any more at the size that it had then.
    """
    cdef int32_t table = first_tracked(state, entry.array, entry.dish)
    cdef uint64_t target
    if table < 0:
        return -1
    target = rng.below(<uint64_t>(n_tables_of_size(tables_of(state, entry), entry.size) + 1))
    while table >= 0:
        if state.tracked.tables[table].size == entry.size:
            if target == 0:
                return table
            target -= 1
        table = state.tracked.tables[table].next
    return -1


cdef int32_t track_left(RefinedState* state, size_t entry, Rng* rng) except -1 nogil:
    cdef Seating* seating = &state.seatings.entries[entry]
    cdef int32_t table = draw_tracked(state, seating, rng)
    cdef TrackedTable tracked
    if table < 0:
        table = <int32_t>state.tracked.tables.size()
        tracked.array, tracked.dish, tracked.size = seating.array, seating.dish, seating.size
        tracked.next = first_tracked(state, seating.array, seating.dish)
        tracked.below[0] = tracked.below[1] = -1
        state.tracked.tables.push_back(tracked)
        if <size_t>seating.dish >= state.tracked.first[seating.array + 1].size():
            state.tracked.first[seating.array + 1].resize(2 * seating.dish + 1, -1)
        state.tracked.first[seating.array + 1][seating.dish] = table
    state.tracked.tables[table].size -= 1
    seating.table = table
    return table


cdef int track_rule_left(RefinedState* state, size_t mark, int32_t* below, Rng* rng) except -1 nogil:
    cdef const BackOff* b = &state.rules
    cdef int32_t table, array, above, last_rule = -1, last_class = -1
    cdef size_t entry
    cdef int which
    for entry in range(mark, state.seatings.entries.size()):
        table = track_left(state, entry, rng)
        array = state.seatings.entries[entry].array
        above = last_class if is_label_class_level(b, array) else last_rule
        which = array == word_level(b)
        if above < 0:
            below[which] = table
        else:
            state.tracked.tables[above].below[which] = table
        if array < b.n_rule_levels:
            last_rule = table
        elif array != word_level(b):
            last_class = table
    return 0


cdef void track_seated(RefinedState* state, size_t mark, Rng* rng) noexcept nogil:
    cdef Seating* seating
    cdef size_t entry
    for entry in range(mark, state.seatings.entries.size()):
        seating = &state.seatings.entries[entry]
        if seating.size:
            seating.table = draw_tracked(state, seating, rng)
            if seating.table >= 0:
                state.tracked.tables[seating.table].size += 1


cdef bint leave_tracked(RefinedState* state, int level, const Place* place, int32_t table) except -1 nogil:
    """Unseat a customer from a tracked table; whether it is removed."""
    cdef Restaurant* restaurant = restaurant_at(&state.rules, level, place)
    cdef int32_t size = state.tracked.tables[table].size
    shrink(restaurant, &state.rules.levels[level].cells[place.cell], size)
    state.tracked.tables[table].size -= 1
    note(&state.seatings, restaurant, level, place.cell, size, table, False)
    return size == 1


cdef int unseat_rule_below(RefinedState* state, const Address* address, const int32_t* below) except -1 nogil:
    """As `tsgkit._backoff.unseat_at`, in the same order."""
    cdef BackOff* b = &state.rules
    cdef int level = 0, n_used = min(b.n_used, 1) if address.word_class >= 0 else b.n_used
    cdef int32_t table = below[0], of_word = below[1]
    cdef bint is_removed
    cdef Place place
    while level < n_used and leave_tracked(state, level, &address.rules[level], table):
        of_word = state.tracked.tables[table].below[1]
        table = state.tracked.tables[table].below[0]
        level += 1
    if address.word_class < 0 or level < n_used:
        return 0
    is_removed = leave_tracked(state, class_level(b), &address.of_class, table)
    level = 0
    while is_removed and level < b.n_class_levels:
        place = label_class_place(b, level, address.label, address.word_class)
        table = state.tracked.tables[table].below[0]
        is_removed = leave_tracked(state, label_class_level(b) + level, &place, table)
        level += 1
    leave_tracked(state, word_level(b), &address.of_word, of_word)
    return 0


cdef void forget_tracked(RefinedState* state) noexcept nogil:
    cdef const TrackedTable* table
    cdef size_t number
    for number in range(state.tracked.tables.size()):
        table = &state.tracked.tables[number]
        state.tracked.first[table.array + 1][table.dish] = -1
    state.tracked.tables.clear()
    state.tracked.is_active = False
