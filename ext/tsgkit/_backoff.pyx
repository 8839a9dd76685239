"""The hierarchy of restaurants over refined rules: checks of its description, opening, parameters.

Kernels use the functions of ``_backoff.pxd`` inline, where the model is described.
"""

import numpy as np

from tsgkit.checks import require_discounts, require_strengths

from libcpp.vector cimport vector

from tsgkit._random cimport Rng
from tsgkit._restaurant cimport Restaurant, TableArray, Tables, add_sizes, empty_restaurant, resample_pair, table_counts
from tsgkit._types cimport index_t, symbol_t
from tsgkit._vectors cimport copy_numbers, copy_symbols, copy_vector, fill


# ---- what comes from Python -----------------------------------------------------------------------------------

cdef int copy_rules(
    BackOff* b, object trees, object symbol_label, object levels, object rule_base, object rule_class,
    object lexical_share, object class_word_base,
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
    copy_class_base(b, np.full((trees.n_labels, len(class_word_base)), 1.0 / max(1, len(class_word_base))))
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


cdef int copy_class_base(BackOff* b, object class_base) except -1:
    class_base = np.asarray(class_base, dtype=np.float64)
    if class_base.shape != (b.n_labels, b.class_word_base.size()) or not ((class_base > 0) & (class_base <= 1)).all():
        raise ValueError("a label's classes have no base probabilities")
    copy_numbers(class_base.ravel(), b.class_base)
    return 0


cdef object class_base_array(const BackOff* b):
    cdef size_t place
    values = np.empty(b.class_base.size())
    cdef double[::1] view = values
    for place in range(b.class_base.size()):
        view[place] = b.class_base[place]
    return values.reshape(b.n_labels, n_classes(b))


cdef int copy_levels(BackOff* b, object symbol_label, object levels) except -1:
    contexts = [np.asarray(context, dtype=np.int32) for context in levels.contexts]
    level_names(levels)
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


# The kinds of restaurants of words, after those of rules.
WORD_KINDS = ("class", "label_class", "word")


def level_names(levels):
    """The names of all levels: of rules, then of words."""
    names = (*levels.names, *WORD_KINDS)
    if len(levels.names) != len(levels.contexts) or len(set(names)) < len(names):
        raise ValueError("a level has no name, or two have the same")
    return names


def level_number(names, kind):
    if kind not in names:
        raise ValueError(f"no restaurants of kind {kind!r}: there are {', '.join(names)}")
    return names.index(kind)


def nested(context, values, n_contexts, message):
    """The one value of all symbols of a context."""
    result = np.zeros(n_contexts, dtype=np.int32)
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
    fill(b.levels[label_class_level(b)].pair, b.n_labels, <symbol_t>0)
    copy_vector(word_restaurant_label[0], b.levels[word_level(b)].pair)
    for number in range(n_levels(b)):
        level = &b.levels[number]
        fill(level.restaurants, level.pair.size(), empty_restaurant())
        level.sharing.clear()
        level.sharing.resize(1 if number == label_class_level(b) else b.n_labels)
        for restaurant in range(level.pair.size()):
            level.sharing[level.pair[restaurant]].push_back(restaurant)
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
        if level != label_class_level(b):
            resample_pair(&b.levels[level].restaurants, &counts[0][level], &b.levels[level].sharing[label], rng, False)
    return 0


cdef int resample_label_classes(BackOff* b, const vector[vector[table_counts]]* counts, Rng* rng) except -1 nogil:
    cdef Level* level = &b.levels[label_class_level(b)]
    return resample_pair(&level.restaurants, &counts[0][label_class_level(b)], &level.sharing[0], rng, False)


cdef symbol_t n_pairs(const BackOff* b) noexcept nogil:
    return (b.n_rule_levels + 2) * b.n_labels + 1


cdef index_t first_pair(const BackOff* b, int level) noexcept nogil:
    """The first pair of a level in `parameters_of`, which has J_x last."""
    cdef int position = level
    if level == word_level(b):
        position = level - 1
    elif level == label_class_level(b):
        position = level + 1
    return position * b.n_labels


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
