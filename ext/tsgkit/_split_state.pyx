"""The state of the two-way split sampler: dense numbers of cells, the log joint, and parameters given the seating."""

from cython.operator cimport dereference
from libc.math cimport log
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libcpp cimport bool as cpp_bool
from libcpp.map cimport map as cpp_map
from libcpp.pair cimport pair
from libcpp.vector cimport vector

from tsgkit._backoff cimport (
    NOT_SEEN, BackOff, Level, add_log_class_shares, class_level, label_class_level, n_levels, n_rules,
    open_label_class_cells, open_restaurants, resample_label, resample_label_classes, restaurant_of, word_level,
)
from tsgkit._label_parts cimport divide_labels
from tsgkit._random cimport RNG_SPLIT_HYPER, Rng, rng_for
from tsgkit._restaurant cimport log_seating, table_counts
from tsgkit._trees cimport n_nodes
from tsgkit._types cimport index_t, symbol_t
from tsgkit._vectors cimport fill

ctypedef pair[symbol_t, symbol_t] TwoNumbers
ctypedef pair[TwoNumbers, TwoNumbers] Key


# Numbers for keys, in the order in which they come.
cdef cppclass Numbering:
    cpp_map[Key, int32_t] numbers
    int32_t n_given


# All that `open_split` numbers.
cdef cppclass Numberings:
    Numbering blocks
    vector[Numbering] rules            # per level: by rule, context and the children's groups
    Numbering classes                  # by group and class
    Numbering word_restaurants         # by label and class
    Numbering words                    # by rule
    vector[symbol_t] word_restaurant_label


cdef int32_t number_of(
    Numbering* numbering, symbol_t first, symbol_t second, symbol_t third, symbol_t fourth, int32_t n_numbers
) except -1 nogil:
    """The number of a key; a new one takes as many as it needs, one after the other."""
    cdef Key key = Key(TwoNumbers(first, second), TwoNumbers(third, fourth))
    cdef cpp_map[Key, int32_t].iterator found = numbering.numbers.find(key)
    if found != numbering.numbers.end():
        return dereference(found).second
    numbering.numbers.insert(pair[Key, int32_t](key, numbering.n_given))
    numbering.n_given += n_numbers
    return numbering.n_given - n_numbers


# ---- opening ----------------------------------------------------------------------------------------------------

cdef int open_split(SplitState* s) except -1 nogil:
    cdef Numberings numberings
    cdef symbol_t left, right, left_group, right_group
    cdef int32_t number
    cdef index_t node
    start_numberings(s, &numberings)
    s.blocks.clear()
    s.places.clear()
    s.block_of.resize(n_nodes(&s.trees))
    s.nodes_of_block.clear()
    for node in range(n_nodes(&s.trees)):
        left, right = s.trees.left[node], s.trees.right[node]
        left_group = s.group[left] if left >= 0 else -1
        right_group = s.group[right] if right >= 0 else -1
        number = number_of(&numberings.blocks, s.trees.rule[node], s.group[node], left_group, right_group, 1)
        if number == <int32_t>s.blocks.size():
            add_block(s, &numberings, node, left_group, right_group)
        s.block_of[node] = number
        s.nodes_of_block[number].push_back(<int32_t>node)
    open_restaurants(&s.back_off, &numberings.word_restaurant_label)
    open_cells(s)
    divide_labels(&s.trees, s.back_off.n_labels, &s.parts)
    fill(s.seat, n_nodes(&s.trees), <int32_t>NO_TABLE)
    fill(s.new_seat, n_nodes(&s.trees), <int32_t>NO_TABLE)
    fill(s.new_bit, n_nodes(&s.trees), <uint8_t>0)
    return 0


cdef int start_numberings(SplitState* s, Numberings* numberings) except -1 nogil:
    cdef int level
    numberings.blocks.n_given = numberings.classes.n_given = 0
    numberings.word_restaurants.n_given = numberings.words.n_given = 0
    numberings.rules.resize(s.back_off.n_rule_levels)
    for level in range(s.back_off.n_rule_levels):
        numberings.rules[level].n_given = 0
    for level in range(n_levels(&s.back_off)):
        s.back_off.levels[level].restaurant_of_cell.clear()
    fill(s.back_off.word_restaurant, n_rules(&s.back_off), <symbol_t>-1)
    return 0


cdef int add_block(
    SplitState* s, Numberings* numberings, index_t node, symbol_t left_group, symbol_t right_group
) except -1 nogil:
    cdef Block block
    block.rule, block.group, block.label = s.trees.rule[node], s.group[node], s.trees.label[node]
    block.left_group, block.right_group = left_group, right_group
    block.n_children = (left_group >= 0) + (right_group >= 0)
    block.word_class = s.back_off.rule_class[block.rule]
    block.word_restaurant = block.word_cell = block.class_first = NOT_SEEN
    if block.word_class >= 0:
        place_word(&s.back_off, numberings, &block)
    place_rule(s, numberings, &block)
    s.blocks.push_back(block)
    s.nodes_of_block.resize(s.blocks.size())
    return 0


cdef int place_rule(SplitState* s, Numberings* numberings, const Block* block) except -1 nogil:
    """The restaurants of both options and the first of their cells; words with classes have the first level only."""
    cdef int level, option
    cdef Level* here
    cdef Place place
    for level in range(s.back_off.n_rule_levels):
        here = &s.back_off.levels[level]
        for option in range(2):
            place.restaurant, place.cell = here.context[2 * block.group + option], NOT_SEEN
            if level == 0 or block.word_class < 0:
                place.cell = number_of(
                    &numberings.rules[level], block.rule, place.restaurant, block.left_group, block.right_group,
                    1 << block.n_children)
                here.restaurant_of_cell.resize(numberings.rules[level].n_given, place.restaurant)
            s.places.push_back(place)
    return 0


cdef int place_word(BackOff* b, Numberings* numberings, Block* block) except -1 nogil:
    """The cells of a word with a class. Every tag and class has a restaurant of words."""
    cdef vector[symbol_t]* restaurant_of_class = &b.levels[class_level(b)].restaurant_of_cell
    block.word_cell = number_of(&numberings.words, block.rule, -1, -1, -1, 1)
    block.class_first = number_of(&numberings.classes, block.group, block.word_class, -1, -1, 2)
    block.word_restaurant = number_of(&numberings.word_restaurants, block.label, block.word_class, -1, -1, 1)
    if <size_t>numberings.word_restaurants.n_given > numberings.word_restaurant_label.size():
        numberings.word_restaurant_label.push_back(block.label)
    if <size_t>numberings.classes.n_given > restaurant_of_class.size():
        restaurant_of_class.push_back(2 * block.group)
        restaurant_of_class.push_back(2 * block.group + 1)
    b.levels[word_level(b)].restaurant_of_cell.resize(numberings.words.n_given, block.word_restaurant)
    b.word_restaurant[block.rule] = block.word_restaurant
    return 0


cdef int open_cells(SplitState* s) except -1 nogil:
    cdef Level* here
    cdef int level
    open_label_class_cells(&s.back_off)
    s.tables.clear()
    s.tables.resize(n_levels(&s.back_off))
    for level in range(n_levels(&s.back_off)):
        here = &s.back_off.levels[level]
        here.cells.clear()
        here.cells.resize(here.restaurant_of_cell.size())
        s.tables[level].resize(here.restaurant_of_cell.size())
    return 0


# ---- the log joint and parameters -------------------------------------------------------------------------------

cdef double log_joint_and_hyper(SplitState* s, uint64_t iteration, bint resample) except? -1.0 nogil:
    cdef vector[vector[table_counts]] counts
    cdef double result
    cdef symbol_t label
    cdef Rng rng
    count_tables(s, &counts)
    result = add_log_bases(s, log_seatings(&s.back_off, &counts))
    if resample:
        for label in range(s.back_off.n_labels):
            rng = rng_for(s.seed, iteration, RNG_SPLIT_HYPER, label)
            resample_label(&s.back_off, &counts, label, &rng)
        rng = rng_for(s.seed, iteration, RNG_SPLIT_HYPER, s.back_off.n_labels)
        resample_label_classes(&s.back_off, &counts, &rng)
    return result


cdef int count_tables(const SplitState* s, vector[vector[table_counts]]* counts) except -1 nogil:
    """Per level and restaurant, how many tables of which size there are."""
    cdef table_counts* here
    cdef const TableList* tables
    cdef int level
    cdef size_t cell, number
    counts.resize(s.tables.size())
    for level in range(<int>s.tables.size()):
        counts[0][level].resize(s.back_off.levels[level].restaurants.size())
        for cell in range(s.tables[level].size()):
            tables = &s.tables[level][cell]
            here = &counts[0][level][restaurant_of(&s.back_off, level, <int32_t>cell)]
            for number in range(tables.size()):
                if <size_t>tables.data()[number].size >= here.size():
                    here.resize(tables.data()[number].size + 1, 0)
                here[0][tables.data()[number].size] += tables.data()[number].size > 0
    return 0


cdef inline double log_seating_of(
    const BackOff* b, const vector[vector[table_counts]]* counts, int level, size_t restaurant
) noexcept nogil:
    return log_seating(&b.levels[level].restaurants[restaurant], &counts[0][level][restaurant])


cdef double log_seatings(const BackOff* b, const vector[vector[table_counts]]* counts) noexcept nogil:
    """Of all restaurants, without the base distributions: by symbol, then by what next levels know, then of words."""
    cdef double result = 0.0
    cdef size_t restaurant, most = b.n_labels
    cdef int level
    for restaurant in range(b.levels[0].restaurants.size()):
        result += log_seating_of(b, counts, 0, restaurant) + log_seating_of(b, counts, class_level(b), restaurant)
    for level in range(1, b.n_rule_levels):
        most = max(most, b.levels[level].restaurants.size())
    for restaurant in range(most):
        for level in range(1, b.n_rule_levels):
            if restaurant < b.levels[level].restaurants.size():
                result += log_seating_of(b, counts, level, restaurant)
        if restaurant < <size_t>b.n_labels:
            for level in range(label_class_level(b), word_level(b)):
                result += log_seating_of(b, counts, level, restaurant)
    for restaurant in range(b.levels[word_level(b)].restaurants.size()):
        result += log_seating_of(b, counts, word_level(b), restaurant)
    return result


cdef inline int64_t tables_not_counted(
    const Level* level, int32_t first, int n_cells, vector[cpp_bool]* done
) noexcept nogil:
    """The number of tables in cells that are not done yet; they are then."""
    cdef int64_t result = 0
    cdef int32_t cell
    for cell in range(first, first + n_cells):
        if not done[0][cell]:
            done[0][cell] = True
            result += level.cells[cell].n_tables
    return result


cdef double add_log_bases(const SplitState* s, double result) except? -1.0 nogil:
    """Add the log probabilities of the tables' dishes in the base distributions, and of the shares of words."""
    cdef const BackOff* b = &s.back_off
    cdef int last = b.n_used - 1, n_below
    cdef const Block* block
    cdef const Place* places
    cdef vector[cpp_bool] done, word_done
    cdef int64_t n_tables
    cdef size_t number
    done.resize(b.levels[last].cells.size(), False)
    word_done.resize(b.levels[word_level(b)].cells.size(), False)
    for number in range(s.blocks.size()):
        block = &s.blocks[number]
        places = places_of(s, <int32_t>number)
        n_below = 1 << block.n_children
        n_tables = n_tables_of_options(&b.levels[0], places, n_below)
        if block.word_class >= 0:
            result += n_tables * log(b.lexical_share[block.label])
            n_tables = tables_not_counted(&b.levels[word_level(b)], block.word_cell, 1, &word_done)
            result += n_tables * log(b.class_word_base[block.word_class])
            continue
        if n_tables:
            result += n_tables * log(b.rule_share[block.label])
        n_tables = tables_not_counted(&b.levels[last], places[2 * last].cell, n_below, &done)
        n_tables += tables_not_counted(&b.levels[last], places[2 * last + 1].cell, n_below, &done)
        if n_tables:
            result += n_tables * log(b.rule_base[block.rule])
    return add_log_class_shares(b, result)


cdef inline int64_t n_tables_of_options(const Level* level, const Place* places, int n_below) noexcept nogil:
    """At the first level, where no block shares its cells with others."""
    cdef int64_t result = 0
    cdef int option, below
    for option in range(2):
        for below in range(n_below):
            result += level.cells[places[option].cell + below].n_tables
    return result
