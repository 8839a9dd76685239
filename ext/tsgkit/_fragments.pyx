"""The table of elementary trees: an open hash table with linear probing, and who is part of whom.

Kernels find fragments by the inline functions of ``_fragments.pxd``; here is what happens less often: storing a new
fragment, and removing one that nobody uses with all that only it used.
"""

from libc.stdint cimport int32_t, uint32_t, uint64_t
from libcpp cimport bool as cpp_bool
from libcpp.vector cimport vector

from tsgkit._types cimport symbol_t
from tsgkit._vectors cimport fill

cdef enum:
    FIRST_SLOTS = 1024


cdef int start_fragments(FragmentTable* table, cpp_bool is_refined, size_t n_rules) except -1 nogil:
    table.fragments.clear()
    clear_links(&table.links)
    clear_lists(&table.single_parts)
    table.free_numbers.clear()
    table.slots.clear()
    table.slots.resize(FIRST_SLOTS, empty_slot())
    table.is_refined = is_refined
    if is_refined:
        table.single_parts.resize(n_rules)
    table.n_used = 0
    table.n_removed = 0
    return 0


# Samplers of refined trees begin with empty vectors after every sweep, and need about the same memory again.

cdef void clear_links(vector[FragmentLinks]* links) noexcept nogil:
    cdef size_t number
    for number in range(links.size()):
        links[0][number].above_left.clear()
        links[0][number].above_right.clear()
        links[0][number].dishes.clear()


cdef void clear_lists(vector[vector[int32_t]]* lists) noexcept nogil:
    cdef size_t number
    for number in range(lists.size()):
        lists[0][number].clear()


cdef int32_t store_fragment(FragmentTable* table, symbol_t rule, symbol_t left, symbol_t right) except -1 nogil:
    """Store a fragment that is not there yet. All memory is taken before anything is changed."""
    cdef int32_t number
    reserve_for_one(table, left, right)
    if table.free_numbers.empty():
        number = <int32_t>table.fragments.size()
        table.fragments.resize(number + 1)
        if table.is_refined and table.links.size() <= <size_t>number:
            table.links.resize(number + 1)
    else:
        number = table.free_numbers.back()
        table.free_numbers.pop_back()
    table.fragments[number].rule = rule
    table.fragments[number].left = left
    table.fragments[number].right = right
    if left >= 0:
        table.fragments[left].n_above_left += 1
        list_part(table, left)
    if right >= 0:
        table.fragments[right].n_above_right += 1
        list_part(table, right)
    if table.is_refined:
        link(table, number)
    table.n_used += 1
    place(table, number)
    return number


cdef int reserve_for_one(FragmentTable* table, symbol_t left, symbol_t right) except -1 nogil:
    """Have room for one more fragment wherever it will be noted."""
    if table.free_numbers.empty():
        reserve_fragments(&table.fragments)
        if table.is_refined:
            reserve_links(&table.links)
    if 2 * (table.n_used + 1) > table.slots.size():
        rehash(table)
    if table.is_refined:
        if left >= 0:
            reserve_above(&table.links[left].above_left)
        elif right >= 0:
            reserve_above(&table.links[right].above_right)
        # Two at a time: both parts may be listed under the same rule.
        if left >= 0:
            reserve_numbers(&table.single_parts[table.fragments[left].rule], 2)
        if right >= 0:
            reserve_numbers(&table.single_parts[table.fragments[right].rule], 2)
    return 0


# A vector grows to twice its size when it is full, so that adding one is cheap on average.

cdef int reserve_fragments(vector[Fragment]* values) except -1 nogil:
    if values.size() == values.capacity():
        values.reserve(2 * values.size() + 1)
    return 0


cdef int reserve_links(vector[FragmentLinks]* values) except -1 nogil:
    if values.size() == values.capacity():
        values.reserve(2 * values.size() + 1)
    return 0


cdef int reserve_above(vector[FragmentAbove]* values) except -1 nogil:
    if values.size() == values.capacity():
        values.reserve(2 * values.size() + 1)
    return 0


cdef int reserve_numbers(vector[int32_t]* values, size_t n_more) except -1 nogil:
    if values.size() + n_more > values.capacity():
        values.reserve(2 * values.size() + n_more)
    return 0


# ---- who is above whom ----------------------------------------------------------------------------------------

cdef inline bint is_listed(const FragmentTable* table, int32_t number) noexcept nogil:
    """Whether a part is used once, so that it begins or ends being one of `single_parts`."""
    cdef const Fragment* part = &table.fragments[number]
    return table.is_refined and is_single(part) and part.n_above_left + part.n_above_right == 1


cdef int list_part(FragmentTable* table, int32_t number) except -1 nogil:
    """After one more use of a part."""
    if is_listed(table, number):
        table.single_parts[table.fragments[number].rule].push_back(number)
    return 0


cdef void unlist_part(FragmentTable* table, int32_t number) noexcept nogil:
    """Before a use of a part ends."""
    if is_listed(table, number):
        drop(&table.single_parts[table.fragments[number].rule], number)


cdef int link(FragmentTable* table, int32_t number) except -1 nogil:
    cdef symbol_t left = table.fragments[number].left, right = table.fragments[number].right
    if left >= 0:
        insert_above(&table.links[left].above_left, table.fragments[number].rule, right, number)
    elif right >= 0:
        insert_above(&table.links[right].above_right, table.fragments[number].rule, left, number)
    return 0


cdef void unlink(FragmentTable* table, int32_t number) noexcept nogil:
    cdef symbol_t left = table.fragments[number].left, right = table.fragments[number].right
    if left >= 0:
        erase_above(&table.links[left].above_left, table.fragments[number].rule, right)
    elif right >= 0:
        erase_above(&table.links[right].above_right, table.fragments[number].rule, left)


cdef int insert_above(vector[FragmentAbove]* above, symbol_t rule, symbol_t beside, int32_t number) except -1 nogil:
    cdef size_t position = position_above(above, rule, beside), item = above.size()
    cdef FragmentAbove entry
    entry.rule, entry.beside, entry.number = rule, beside, number
    above.push_back(entry)
    while item > position:
        above[0][item] = above[0][item - 1]
        item -= 1
    above[0][position] = entry
    return 0


cdef void erase_above(vector[FragmentAbove]* above, symbol_t rule, symbol_t beside) noexcept nogil:
    cdef size_t item
    for item in range(position_above(above, rule, beside) + 1, above.size()):
        above[0][item - 1] = above[0][item]
    above.pop_back()


cdef void drop(vector[int32_t]* numbers, int32_t number) noexcept nogil:
    """Take a number out of a list; the last one comes into its place."""
    cdef size_t item = 0
    while numbers[0][item] != number:
        item += 1
    numbers[0][item] = numbers.back()
    numbers.pop_back()


# ---- removal --------------------------------------------------------------------------------------------------

cdef int remove_fragment(FragmentTable* table, int32_t number) except -1 nogil:
    """Remove a fragment and, from the top down, all parts that only it used."""
    cdef int32_t next
    cdef symbol_t left, right
    fill(table.waiting, 1, number)
    while not table.waiting.empty():
        next = table.waiting.back()
        table.waiting.pop_back()
        if table.fragments[next].rule == FREE or is_used(table, next):
            continue
        left, right = table.fragments[next].left, table.fragments[next].right
        table.waiting.reserve(table.waiting.size() + 2)
        reserve_numbers(&table.free_numbers, 1)
        unplace(table, next)
        if table.is_refined:
            unlink(table, next)
        if left >= 0:
            unlist_part(table, left)
            table.fragments[left].n_above_left -= 1
            table.waiting.push_back(left)
        if right >= 0:
            unlist_part(table, right)
            table.fragments[right].n_above_right -= 1
            table.waiting.push_back(right)
        table.fragments[next].rule = FREE
        table.fragments[next].epoch = 0
        table.free_numbers.push_back(next)
        table.n_used -= 1
        table.n_removed += 1
    return 0


# ---- the hash table -------------------------------------------------------------------------------------------

cdef inline Slot empty_slot() noexcept nogil:
    cdef Slot slot
    slot.number, slot.tag = EMPTY, 0
    return slot


cdef inline uint64_t code_of(const FragmentTable* table, int32_t number) noexcept nogil:
    cdef const Fragment* fragment = &table.fragments[number]
    return hash_fragment(fragment.rule, fragment.left, fragment.right)


cdef void place(FragmentTable* table, int32_t number) noexcept nogil:
    cdef uint64_t code = code_of(table, number)
    cdef size_t mask = table.slots.size() - 1, slot = code & mask
    while table.slots[slot].number != EMPTY:
        slot = (slot + 1) & mask
    table.slots[slot].number = number
    table.slots[slot].tag = <uint32_t>(code >> 32)


cdef int rehash(FragmentTable* table) except -1 nogil:
    """Give everything a slot in a table of twice the size."""
    cdef vector[Slot] slots
    cdef size_t number
    slots.resize(2 * table.slots.size(), empty_slot())
    table.slots.swap(slots)
    for number in range(table.fragments.size()):
        if table.fragments[number].rule != FREE:
            place(table, <int32_t>number)
    return 0


cdef void unplace(FragmentTable* table, int32_t number) noexcept nogil:
    """Take a number out of its slot and close the gap: what was pushed past it moves back."""
    cdef size_t mask = table.slots.size() - 1, gap = code_of(table, number) & mask, slot, wanted
    cdef bint stays
    while table.slots[gap].number != number:
        gap = (gap + 1) & mask
    slot = (gap + 1) & mask
    while table.slots[slot].number != EMPTY:
        wanted = code_of(table, table.slots[slot].number) & mask
        # An entry stays if its wanted slot lies cyclically in (gap, slot].
        if gap <= slot:
            stays = gap < wanted and wanted <= slot
        else:
            stays = gap < wanted or wanted <= slot
        if not stays:
            table.slots[gap] = table.slots[slot]
            gap = slot
        slot = (slot + 1) & mask
    table.slots[gap] = empty_slot()
