"""The state of the two-way split sampler: dense numbers of cells, the log joint, and parameters given the seating."""

from cython.operator cimport dereference
from libc.math cimport log
from libc.stdint cimport int32_t, int64_t, uint64_t
from libcpp cimport bool as cpp_bool
from libcpp.map cimport map as cpp_map
from libcpp.pair cimport pair
from libcpp.vector cimport vector

from tsgkit._backoff cimport (
    MOST_LEVELS, NOT_SEEN, BackOff, Level, class_level, count_tables, fill_table_arrays, label_class_level, n_levels,
    n_rules, open_restaurants, resample_label, resample_label_classes, word_level,
)
from tsgkit._random cimport RNG_SPLIT_HYPER, RNG_SPLIT_START, Rng, rng_for
from tsgkit._restaurant cimport TableArray, log_seating, rollback, table_counts
from tsgkit._trees cimport n_nodes, n_trees
from tsgkit._types cimport index_t, symbol_t

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
    Numbering label_classes            # by label and class
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
    open_cells(&s.back_off)
    s.planned_epoch.assign(n_nodes(&s.trees), 0)
    s.touched_epoch.assign(n_nodes(&s.trees), 0)
    s.planned_bit.assign(n_nodes(&s.trees), 0)
    s.epoch = 0
    return 0


cdef int start_numberings(SplitState* s, Numberings* numberings) except -1 nogil:
    cdef int level
    numberings.blocks.n_given = numberings.classes.n_given = 0
    numberings.label_classes.n_given = numberings.words.n_given = 0
    numberings.rules.resize(s.back_off.n_rule_levels)
    for level in range(s.back_off.n_rule_levels):
        numberings.rules[level].n_given = 0
    for level in range(n_levels(&s.back_off)):
        s.back_off.levels[level].restaurant_of_cell.clear()
    s.back_off.word_restaurant.assign(n_rules(&s.back_off), -1)
    return 0


cdef int add_block(
    SplitState* s, Numberings* numberings, index_t node, symbol_t left_group, symbol_t right_group
) except -1 nogil:
    cdef Block block
    block.rule, block.group, block.label = s.trees.rule[node], s.group[node], s.trees.label[node]
    block.left_group, block.right_group = left_group, right_group
    block.n_children = (left_group >= 0) + (right_group >= 0)
    block.word_class = s.back_off.rule_class[block.rule]
    block.word_restaurant = block.word_cell = block.class_first = block.label_class_cell = NOT_SEEN
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
    """The cells of a word with a class. Tags and classes have a cell in J_x and a restaurant of words each."""
    cdef vector[symbol_t]* restaurant_of_class = &b.levels[class_level(b)].restaurant_of_cell
    block.word_cell = number_of(&numberings.words, block.rule, -1, -1, -1, 1)
    block.class_first = number_of(&numberings.classes, block.group, block.word_class, -1, -1, 2)
    block.label_class_cell = number_of(&numberings.label_classes, block.label, block.word_class, -1, -1, 1)
    block.word_restaurant = block.label_class_cell
    if <size_t>numberings.label_classes.n_given > numberings.word_restaurant_label.size():
        numberings.word_restaurant_label.push_back(block.label)
        b.levels[label_class_level(b)].restaurant_of_cell.push_back(block.label)
    if <size_t>numberings.classes.n_given > restaurant_of_class.size():
        restaurant_of_class.push_back(2 * block.group)
        restaurant_of_class.push_back(2 * block.group + 1)
    b.levels[word_level(b)].restaurant_of_cell.resize(numberings.words.n_given, block.word_restaurant)
    b.word_restaurant[block.rule] = block.word_restaurant
    return 0


cdef int open_cells(BackOff* b) except -1 nogil:
    cdef int level
    for level in range(n_levels(b)):
        b.levels[level].cells.clear()
        b.levels[level].cells.resize(b.levels[level].restaurant_of_cell.size())
    return 0


# ---- seating ----------------------------------------------------------------------------------------------------

cdef int seat_all(SplitState* s) except -1 nogil:
    cdef Rng rng
    cdef index_t tree, node
    for tree in range(n_trees(&s.trees)):
        rng = rng_for(s.seed, 0, RNG_SPLIT_START, tree)
        for node in range(s.trees.tree_start[tree], s.trees.tree_start[tree + 1]):
            seat_node(s, node, &rng)
        accept_seatings(s)
    return 0


cdef int unseat_all(SplitState* s) except -1 nogil:
    cdef Rng rng = rng_for(s.seed, 0, RNG_SPLIT_START, n_trees(&s.trees))
    cdef index_t node
    for node in range(n_nodes(&s.trees) - 1, -1, -1):
        unseat_node(s, node, &rng)
    accept_seatings(s)
    return 0


cdef int accept_seatings(SplitState* s) except -1 nogil:
    s.seatings.entries.clear()
    return 0


cdef int reject_seatings(SplitState* s) except -1 nogil:
    cdef TableArray[MOST_LEVELS + 3] arrays
    fill_table_arrays(&s.back_off, arrays)
    rollback(&s.seatings, arrays)
    return 0


# ---- the log joint and parameters -------------------------------------------------------------------------------

cdef double log_joint_and_hyper(SplitState* s, uint64_t iteration, bint resample) except? -1.0 nogil:
    cdef vector[vector[table_counts]] counts
    cdef double result
    cdef symbol_t label
    cdef Rng rng
    count_tables(&s.back_off, &counts)
    result = add_log_bases(s, log_seatings(&s.back_off, &counts))
    if resample:
        for label in range(s.back_off.n_labels):
            rng = rng_for(s.seed, iteration, RNG_SPLIT_HYPER, label)
            resample_label(&s.back_off, &counts, label, &rng)
        rng = rng_for(s.seed, iteration, RNG_SPLIT_HYPER, s.back_off.n_labels)
        resample_label_classes(&s.back_off, &counts, &rng)
    return result


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
            result += log_seating_of(b, counts, label_class_level(b), restaurant)
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
    cdef vector[cpp_bool] done, word_done, label_class_done
    cdef int64_t n_tables
    cdef size_t number
    done.resize(b.levels[last].cells.size(), False)
    word_done.resize(b.levels[word_level(b)].cells.size(), False)
    label_class_done.resize(b.levels[label_class_level(b)].cells.size(), False)
    for number in range(s.blocks.size()):
        block = &s.blocks[number]
        places = places_of(s, <int32_t>number)
        n_below = 1 << block.n_children
        n_tables = n_tables_of_options(&b.levels[0], places, n_below)
        if block.word_class >= 0:
            result += n_tables * log(b.lexical_share[block.label])
            n_tables = tables_not_counted(&b.levels[word_level(b)], block.word_cell, 1, &word_done)
            result += n_tables * log(b.class_word_base[block.word_class])
            n_tables = tables_not_counted(
                &b.levels[label_class_level(b)], block.label_class_cell, 1, &label_class_done)
            result += n_tables * log(b.uniform_class)
            continue
        if n_tables:
            result += n_tables * log(b.rule_share[block.label])
        n_tables = tables_not_counted(&b.levels[last], places[2 * last].cell, n_below, &done)
        n_tables += tables_not_counted(&b.levels[last], places[2 * last + 1].cell, n_below, &done)
        if n_tables:
            result += n_tables * log(b.rule_base[block.rule])
    return result


cdef inline int64_t n_tables_of_options(const Level* level, const Place* places, int n_below) noexcept nogil:
    """At the first level, where no block shares its cells with others."""
    cdef int64_t result = 0
    cdef int option, below
    for option in range(2):
        for below in range(n_below):
            result += level.cells[places[option].cell + below].n_tables
    return result
