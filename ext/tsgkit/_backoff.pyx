"""The hierarchy of restaurants over refined rules: checks of its description, opening, parameters.

Kernels use the functions of ``_backoff.pxd`` inline, where the model is described.
"""

import numpy as np

from tsgkit._checks import require_discounts, require_strengths

from libcpp.vector cimport vector

from tsgkit._random cimport Rng
from tsgkit._restaurant cimport Restaurant, TableArray, Tables, add_sizes, empty_restaurant, resample_pair, table_counts
from tsgkit._types cimport index_t, symbol_t
from tsgkit._vectors cimport copy_numbers, copy_symbols, copy_vector, fill


# ---- what comes from Python -----------------------------------------------------------------------------------

cdef int copy_rules(
    BackOff* b, object trees, object symbol_label, object levels, object rule_base, object rule_class,
    object lexical_share, object class_word_base, object class_levels,
) except -1:
    symbol_label, rule_class = np.asarray(symbol_label, dtype=np.int32), np.asarray(rule_class, dtype=np.int32)
    lexical_share = np.asarray(lexical_share, dtype=np.float64)
    class_word_base = np.asarray(class_word_base, dtype=np.float64)
    validate_words(trees, rule_class, lexical_share, class_word_base)
    copy_symbols(trees.rule_label, b.rule_label)
    copy_symbols(trees.rule_left_label, b.rule_left_label)
    copy_symbols(trees.rule_right_label, b.rule_right_label)
    copy_symbols(rule_class, b.rule_class)
    copy_rule_base(b, rule_base)
    copy_numbers(lexical_share, b.lexical_share)
    copy_numbers(1.0 - lexical_share if len(class_word_base) else np.ones(trees.n_labels), b.rule_share)
    copy_numbers(class_word_base, b.class_word_base)
    copy_symbols(symbol_label, b.symbol_label)
    b.n_labels = trees.n_labels
    copy_class_levels(b, class_levels)
    return copy_levels(b, symbol_label, levels)


def validate_words(trees, rule_class, lexical_share, class_word_base):
    """Refuse classes of words that do not fit the rules."""
    n_classes = len(class_word_base)
    if rule_class.shape != (trees.n_rules,) or (rule_class < -1).any() or (rule_class >= n_classes).any():
        raise ValueError("a rule's class is out of range")
    if (rule_class[trees.rule_left_label >= 0] >= 0).any():
        raise ValueError("a rule without a word has a class")
    if lexical_share.shape != (trees.n_labels,) or not ((lexical_share >= 0) & (lexical_share <= 1)).all() or (
            lexical_share[trees.rule_label[rule_class >= 0]] <= 0).any():
        raise ValueError("a label's share of words is not one")
    if n_classes and (lexical_share[trees.rule_label[rule_class < 0]] >= 1).any():
        raise ValueError("a label's rules have no share")
    if not ((class_word_base > 0) & (class_word_base <= 1)).all():
        raise ValueError("a class has no base probability")


cdef int copy_rule_base(BackOff* b, object rule_base) except -1:
    rule_base = np.asarray(rule_base, dtype=np.float64)
    if rule_base.shape != (b.rule_label.size(),) or not ((rule_base > 0) & (rule_base <= 1)).all():
        raise ValueError("a rule has no base probability")
    copy_numbers(rule_base, b.rule_base)
    return 0


cdef int copy_class_levels(BackOff* b, object class_levels) except -1:
    n = <size_t>n_classes(b)
    dish, share = np.arange(n)[None], np.full((1, n), 1.0 / max(1, n))
    if class_levels is not None:
        dish, share = np.asarray(class_levels.dish), np.asarray(class_levels.share, dtype=np.float64)
        validate_class_levels(dish, share, n)
    if b.n_labels * n > <size_t>np.iinfo(np.int32).max:
        raise ValueError("there are too many classes")
    b.n_class_levels = len(dish)
    copy_symbols(np.asarray(dish, dtype=np.int32).ravel(), b.class_dish)
    copy_symbols(dish.max(axis=1, initial=-1) + 1, b.n_class_dishes)
    copy_numbers(share.ravel(), b.class_share)
    b.log_dish_share.clear()
    b.log_dish_share.resize(len(dish))
    for number, (here, shares) in enumerate(zip(dish, share, strict=True)):
        copy_numbers(np.log(nested(here, shares, here.max(initial=-1) + 1, "a dish has several shares")),
                     b.log_dish_share[<size_t>number])
    return 0


def validate_class_levels(dish, share, n_classes):
    """Refuse levels of classes that are not nested, or whose shares are no distributions."""
    if dish.ndim != 2 or not 1 <= len(dish) <= MOST_CLASS_LEVELS or dish.shape != share.shape or (
            dish.shape[1] != n_classes):
        raise ValueError(f"there are 1 to {MOST_CLASS_LEVELS} levels of classes, with one dish for every class")
    if dish[0].tolist() != list(range(n_classes)):
        raise ValueError("the first level of classes does not have one dish for every class")
    if not ((share > 0) & (share <= 1)).all():
        raise ValueError("a class has no share")
    if any(sorted(set(here.tolist())) != list(range(here.max(initial=-1) + 1)) for here in dish):
        raise ValueError("the dishes of a level of classes are not numbered from 0 on")
    for number, here in enumerate(dish):
        n_dishes = int(here.max(initial=-1)) + 1
        below = dish[number + 1] if number + 1 < len(dish) else np.zeros_like(here)
        below = nested(here, below, n_dishes, "the levels of classes are not nested")
        totals = np.bincount(below, weights=nested(here, share[number], n_dishes, "a dish has several shares"))
        if not np.allclose(totals, 1.0):
            raise ValueError("the shares of classes do not sum to 1")


cdef int copy_levels(BackOff* b, object symbol_label, object levels) except -1:
    contexts = [np.asarray(context, dtype=np.int32) for context in levels.contexts]
    kinds_of(b, levels)
    if not 1 <= len(contexts) <= MOST_LEVELS or not 0 <= levels.n_used <= len(contexts):
        raise ValueError(f"there are 1 to {MOST_LEVELS} levels of rules, and no more in use")
    if symbol_label.ndim != 1 or not len(symbol_label) or not (
            (symbol_label >= 0) & (symbol_label < b.n_labels)).all():
        raise ValueError("a symbol's label is out of range")
    if any(context.shape != symbol_label.shape for context in contexts):
        raise ValueError("a level does not have one context for every symbol")
    if contexts[0].tolist() != list(range(len(symbol_label))):
        raise ValueError("the first level does not have one restaurant for every symbol")
    b.n_rule_levels, b.n_used = len(contexts), levels.n_used
    b.levels.clear()
    b.levels.resize(n_levels(b))
    for number, context in enumerate(contexts):
        below = contexts[number + 1] if number + 1 < len(contexts) else np.zeros_like(symbol_label)
        n_restaurants = int(context.max()) + 1
        if sorted(set(context.tolist())) != list(range(n_restaurants)):
            raise ValueError("a level's restaurants are not numbered from 0 on")
        label = nested(context, symbol_label, n_restaurants, "a context has symbols of several labels")
        backs_off_to = nested(context, below, n_restaurants, "the contexts of two levels are not nested")
        copy_symbols(context, b.levels[<size_t>number].context)
        copy_symbols(label, b.levels[<size_t>number].pair)
        copy_symbols(backs_off_to, b.levels[<size_t>number].backs_off_to)
    return 0


cdef tuple kinds_of(const BackOff* b, object levels):
    return level_names(levels, b.n_class_levels)


def level_names(levels, n_class_levels=1):
    """The names of all levels: of rules, then of words."""
    coarser = [f"label_class_{number}" for number in range(2, n_class_levels + 1)]
    names = (*levels.names, "class", "label_class", *coarser, "word")
    if len(levels.names) != len(levels.contexts) or len(set(names)) < len(names):
        raise ValueError("a level has no name, or two have the same")
    return names


def level_number(names, kind):
    if kind not in names:
        raise ValueError(f"no restaurants of kind {kind!r}: there are {', '.join(names)}")
    return names.index(kind)


def nested(context, values, n_contexts, message):
    """The one value of all symbols of a context."""
    result = np.zeros(n_contexts, dtype=values.dtype)
    result[context] = values
    if (result[context] != values).any():
        raise ValueError(message)
    return result


# ---- opening ----------------------------------------------------------------------------------------------------

cdef int open_restaurants(BackOff* b, const vector[symbol_t]* word_restaurant_label) except -1 nogil:
    cdef int number
    cdef size_t restaurant
    cdef Level* level
    copy_vector(b.symbol_label, b.levels[class_level(b)].pair)
    for number in range(label_class_level(b), word_level(b)):
        fill(b.levels[number].pair, b.n_labels, <symbol_t>0)
    copy_vector(word_restaurant_label[0], b.levels[word_level(b)].pair)
    for number in range(n_levels(b)):
        level = &b.levels[number]
        fill(level.restaurants, level.pair.size(), empty_restaurant())
        level.sharing.clear()
        level.sharing.resize(1 if is_label_class_level(b, number) else b.n_labels)
        for restaurant in range(level.pair.size()):
            level.sharing[level.pair[restaurant]].push_back(restaurant)
    return 0


cdef int open_label_class_cells(BackOff* b) except -1 nogil:
    cdef Level* level
    cdef size_t cell, n_cells
    cdef int number
    for number in range(b.n_class_levels):
        level = &b.levels[label_class_level(b) + number]
        n_cells = <size_t>b.n_labels * b.n_class_dishes[number]
        level.cells.clear()
        level.cells.resize(n_cells)
        level.restaurant_of_cell.resize(n_cells)
        for cell in range(n_cells):
            level.restaurant_of_cell[cell] = <symbol_t>(cell // b.n_class_dishes[number])
    return 0


cdef int empty_restaurants(BackOff* b) except -1 nogil:
    cdef int number
    cdef size_t item, n_cells
    for number in range(n_levels(b)):
        for item in range(b.levels[number].restaurants.size()):
            b.levels[number].restaurants[item].n_customers = b.levels[number].restaurants[item].n_tables = 0
        n_cells = b.levels[number].cells.size()
        b.levels[number].cells.clear()
        b.levels[number].cells.resize(n_cells)
    return 0


cdef void fill_table_arrays(BackOff* b, TableArray* arrays) noexcept nogil:
    cdef int number
    for number in range(n_levels(b)):
        arrays[number].first = b.levels[number].cells.data()
        arrays[number].stride = sizeof(Tables)


cdef double add_log_class_shares(const BackOff* b, double result) noexcept nogil:
    cdef const Level* level
    cdef size_t cell
    cdef int number
    for number in range(b.n_class_levels):
        level = &b.levels[label_class_level(b) + number]
        for cell in range(level.cells.size()):
            if level.cells[cell].n_tables:
                result += level.cells[cell].n_tables * b.log_dish_share[number][cell % b.n_class_dishes[number]]
    return result


# ---- parameters -------------------------------------------------------------------------------------------------

cdef int count_tables(const BackOff* b, vector[vector[table_counts]]* counts) except -1 nogil:
    cdef int level
    cdef size_t cell
    counts.clear()
    counts.resize(n_levels(b))
    for level in range(n_levels(b)):
        counts[0][level].resize(b.levels[level].restaurants.size())
        for cell in range(b.levels[level].cells.size()):
            if b.levels[level].cells[cell].n_customers:
                add_sizes(&b.levels[level].cells[cell], &counts[0][level][b.levels[level].restaurant_of_cell[cell]])
    return 0


cdef int resample_label(
    BackOff* b, const vector[vector[table_counts]]* counts, symbol_t label, Rng* rng
) except -1 nogil:
    cdef int level
    for level in range(n_levels(b)):
        if not is_label_class_level(b, level):
            resample_pair(&b.levels[level].restaurants, &counts[0][level], &b.levels[level].sharing[label], rng, False)
    return 0


cdef int resample_label_classes(BackOff* b, const vector[vector[table_counts]]* counts, Rng* rng) except -1 nogil:
    cdef int level
    for level in range(label_class_level(b), word_level(b)):
        resample_pair(&b.levels[level].restaurants, &counts[0][level], &b.levels[level].sharing[0], rng, False)
    return 0


cdef symbol_t n_pairs(const BackOff* b) noexcept nogil:
    return (b.n_rule_levels + 2) * b.n_labels + b.n_class_levels


cdef index_t first_pair(const BackOff* b, int level) noexcept nogil:
    """The first pair of a level in `parameters_of`, which has those of J_x last."""
    if is_label_class_level(b, level):
        return (b.n_rule_levels + 2) * b.n_labels + level - label_class_level(b)
    return (b.n_rule_levels + 1 if level == word_level(b) else level) * b.n_labels


cdef object parameters_of(const BackOff* b):
    cdef index_t restaurant, position
    cdef int level
    cdef const Restaurant* here
    values = np.tile([[0.5], [1.0]], (1, n_pairs(b)))
    cdef double[:, ::1] view = values
    for level in range(n_levels(b)):
        for restaurant in range(<index_t>b.levels[level].restaurants.size()):
            here = &b.levels[level].restaurants[restaurant]
            position = first_pair(b, level) + b.levels[level].pair[restaurant]
            view[0, position], view[1, position] = here.discount, here.strength
    return values


cdef int set_parameters_of(BackOff* b, object values) except -1:
    cdef index_t restaurant, position
    cdef int level
    cdef Restaurant* here
    values = np.ascontiguousarray(values, dtype=np.float64)
    if values.shape != (2, n_pairs(b)):
        raise ValueError("one discount and one strength are needed for every restaurant")
    require_discounts(values[0])
    require_strengths(values[1])
    cdef const double[:, ::1] view = values
    for level in range(n_levels(b)):
        for restaurant in range(<index_t>b.levels[level].restaurants.size()):
            here = &b.levels[level].restaurants[restaurant]
            position = first_pair(b, level) + b.levels[level].pair[restaurant]
            here.discount, here.strength = view[0, position], view[1, position]
    return 0


cdef object restaurants_of(const BackOff* b, int level):
    cdef index_t position
    cdef const Restaurant* here
    values = np.empty((4, b.levels[level].restaurants.size()))
    cdef double[:, ::1] view = values
    for position in range(<index_t>b.levels[level].restaurants.size()):
        here = &b.levels[level].restaurants[position]
        view[0, position], view[1, position] = here.n_customers, here.n_tables
        view[2, position], view[3, position] = here.discount, here.strength
    return values
