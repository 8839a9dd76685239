"""Tables that are told apart while a batch of refined trees is resampled."""

from libc.stdint cimport int32_t, uint64_t

from tsgkit._backoff cimport (
    Address,
    BackOff,
    Place,
    class_level,
    label_class_level,
    label_class_place,
    restaurant_at,
    word_level,
)
from tsgkit._label_parts cimport N_PARTS
from tsgkit._random cimport Rng
from tsgkit._refined_state cimport DISHES, RefinedState, TrackedTable, tracked_at
from tsgkit._restaurant cimport Restaurant, Seating, Tables, n_tables_of_size, note, shrink


cdef inline const Tables* tables_of(const RefinedState* state, const Seating* entry) noexcept nogil:
    if entry.array == DISHES:
        return &state.dishes[entry.dish].tables
    return &state.rules.levels[entry.array].cells[entry.dish]


cdef int reserve_tracked(RefinedState* state) except -1 nogil:
    """Room for a tracked table of every dish and cell."""
    cdef size_t array, n_dishes
    for array in range(state.tracked.first.size()):
        n_dishes = state.rules.levels[array - 1].cells.size() if array else state.dishes.size()
        if state.tracked.first[array].size() < n_dishes:
            state.tracked.first[array].resize(2 * n_dishes, -1)
    return 0


cdef int32_t draw_tracked(RefinedState* state, const Seating* entry, Rng* rng) noexcept nogil:
    """Which table an entry of the log was, of all of its size: its number if it is tracked, or -1.

    The histogram does not have it any more at the size that it had then.
    """
    cdef int32_t table = first_tracked(state, entry.array, entry.dish)
    cdef uint64_t target
    if table < 0:
        return -1
    target = rng.below(<uint64_t>(n_tables_of_size(tables_of(state, entry), entry.size) + 1))
    while table >= 0:
        if tracked_at(state, table).size == entry.size:
            if target == 0:
                return table
            target -= 1
        table = tracked_at(state, table).next
    return -1


cdef void track_seated(RefinedState* state, size_t mark, Rng* rng) noexcept nogil:
    cdef Seating* seating
    cdef size_t entry
    for entry in range(mark, state.seatings.entries.size()):
        seating = &state.seatings.entries[entry]
        if seating.size:
            seating.table = draw_tracked(state, seating, rng)
            if seating.table >= 0:
                tracked_at(state, seating.table).size += 1


cdef bint leave_tracked(RefinedState* state, int level, const Place* place, int32_t table) except -1 nogil:
    """Unseat a customer from a tracked table; whether it is removed."""
    cdef Restaurant* restaurant = restaurant_at(&state.rules, level, place)
    cdef int32_t size = tracked_at(state, table).size
    shrink(restaurant, &state.rules.levels[level].cells[place.cell], size)
    tracked_at(state, table).size -= 1
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
        of_word = tracked_at(state, table).below[1]
        table = tracked_at(state, table).below[0]
        level += 1
    if address.word_class < 0 or level < n_used:
        return 0
    is_removed = leave_tracked(state, class_level(b), &address.of_class, table)
    level = 0
    while is_removed and level < b.n_class_levels:
        place = label_class_place(b, level, address.label, address.word_class)
        table = tracked_at(state, table).below[0]
        is_removed = leave_tracked(state, label_class_level(b) + level, &place, table)
        level += 1
    leave_tracked(state, word_level(b), &address.of_word, of_word)
    return 0


cdef void forget_tracked(RefinedState* state) noexcept nogil:
    cdef const TrackedTable* table
    cdef size_t number
    cdef int part
    for part in range(N_PARTS):
        for number in range(state.tracked.tables[part].size()):
            table = &state.tracked.tables[part][number]
            state.tracked.first[table.array + 1][table.dish] = -1
        state.tracked.tables[part].clear()
        state.tracked.rules[part].clear()
    state.tracked.is_active = False
