# The hierarchy of Pitman-Yor restaurants over refined rules, as data: levels of restaurants, each with the context that
# it conditions on and the level that it backs off to.
#
#     rules:   H_{x_k}(r)  ->  ...  ->  I_x(r)  ->  P0(r)       any number of levels, the first one by refined symbol
#     words:   H_{x_k}(w)  ->  lexical_share_x J_{x_k}(c) W_{x,c}(w)     J_{x_k} -> J_x,  W -> fixed
#     classes: J_x(c)  ->  share(c | c') J'_x(c')  ->  ...               c' the next coarser class; at last fixed
#
# A level of rules is an array of contexts: from every refined symbol to a restaurant. Contexts are nested: what a level
# tells apart, all levels above it tell apart as well. A dish is a rule with its children's subcategories, the same at
# all levels. Only the first `n_used` levels of rules have customers; the last of them backs off to P0.
#
# Where a rule has its tables is an `Address`. `_refined_rules` finds it by hashing, for any refinement; a sampler that
# knows all its rules in advance numbers the cells itself, and fills addresses from its own tables.
from libc.stdint cimport int32_t, int64_t, uint64_t
from libcpp.vector cimport vector

from tsgkit._hash_tables cimport KeyTable
from tsgkit._random cimport Rng
from tsgkit._restaurant cimport (
    Restaurant, SeatingLog, TableArray, Tables, denominator, new_weight, note, old_weight, predictive, seat,
    table_counts, unseat,
)
from tsgkit._rule_list cimport RuleList
from tsgkit._types cimport symbol_t

cdef enum:
    MOST_LEVELS = 8              # of rules
    MOST_CLASS_LEVELS = 16       # of the classes of a label
    MOST_SUBCATEGORIES = 1024    # of a label: ten bits each in the keys of rules
    NOT_SEEN = -1                # the cell of a dish that nobody has ordered


# A treebank rule with the subcategories of its parent and children, counted within their labels; 0 for no child.
cdef struct RefinedRule:
    symbol_t rule
    symbol_t parent
    symbol_t left
    symbol_t right


cdef cppclass Level:
    vector[Restaurant] restaurants
    vector[symbol_t] pair                   # per restaurant: the number of its (discount, strength) within the level
    vector[vector[int64_t]] sharing         # per pair: its restaurants
    vector[Tables] cells                    # one per restaurant and dish
    vector[symbol_t] restaurant_of_cell
    # Of rules:
    vector[symbol_t] context                # per refined symbol: its restaurant
    vector[symbol_t] backs_off_to           # per restaurant: that of the next level; 0 at the last
    # Of rules, where addresses are hashed:
    vector[symbol_t] first_context          # per label and one more: the first of its restaurants
    RuleList rules                          # the cells as entries, by restaurant within the label; their `old_weight`
    vector[int32_t] below                   # per cell: that of the same rule at the next level in use, or NOT_SEEN
    KeyTable cell_of


cdef cppclass BackOff:
    # Per rule: its label and its children's (-1: none), P0 of each of its refinements, the class of its word (-1: no
    # word, or no classes), and the restaurant of its word among W (-1).
    vector[symbol_t] rule_label
    vector[symbol_t] rule_left_label
    vector[symbol_t] rule_right_label
    vector[double] rule_base
    vector[symbol_t] rule_class
    vector[symbol_t] word_restaurant
    # Per label: the share of words among its rules, where classes are in use, and that of other rules.
    vector[double] lexical_share
    vector[double] rule_share
    # Per class: P0 of each of its words.
    vector[double] class_word_base
    # The levels of the classes of a label: J_x, then those over coarser classes. Per level and class: its dish there,
    # and the probability of that dish given the one at the next level (at the last level: in the base distribution).
    int n_class_levels
    vector[symbol_t] class_dish
    vector[double] class_share
    vector[symbol_t] n_class_dishes         # per level
    vector[vector[double]] log_dish_share   # per level and dish
    symbol_t n_labels
    vector[symbol_t] symbol_label
    vector[symbol_t] first_symbol           # per label and one more, where the symbols come label by label
    # The levels of rules, then J_{x_k}, those of J_x, and W: `Seating.array` is the number of one of them.
    vector[Level] levels
    int n_rule_levels
    int n_used


cdef struct Place:
    symbol_t restaurant
    int32_t cell                            # NOT_SEEN: none


# Where a rule has its tables: at the levels of rules in use or, if it is a word with a class, at the first of them and
# in the restaurants of classes and words. Those of the label's classes are found by `label_class_place`.
cdef struct Address:
    symbol_t rule
    symbol_t label
    symbol_t word_class
    Place rules[MOST_LEVELS]
    Place of_class
    Place of_word


# ---- sizes ------------------------------------------------------------------------------------------------------

cdef inline int class_level(const BackOff* b) noexcept nogil:
    """The level of J_{x_k}."""
    return b.n_rule_levels


cdef inline int label_class_level(const BackOff* b) noexcept nogil:
    """The level of J_x, the first of `n_class_levels`."""
    return b.n_rule_levels + 1


cdef inline int word_level(const BackOff* b) noexcept nogil:
    """The level of W."""
    return b.n_rule_levels + 1 + b.n_class_levels


cdef inline int n_levels(const BackOff* b) noexcept nogil:
    """Of rules, classes and words."""
    return b.n_rule_levels + 2 + b.n_class_levels


cdef inline bint is_label_class_level(const BackOff* b, int level) noexcept nogil:
    return label_class_level(b) <= level < word_level(b)


cdef inline symbol_t n_rules(const BackOff* b) noexcept nogil:
    return <symbol_t>b.rule_label.size()


cdef inline symbol_t n_symbols(const BackOff* b) noexcept nogil:
    return <symbol_t>b.symbol_label.size()


cdef inline symbol_t n_classes(const BackOff* b) noexcept nogil:
    return <symbol_t>b.class_word_base.size()


cdef inline Place label_class_place(const BackOff* b, int number, symbol_t label, symbol_t word_class) noexcept nogil:
    """Where a class has its tables at one of the levels of a label's classes."""
    cdef Place place
    place.restaurant = label
    place.cell = label * b.n_class_dishes[number] + b.class_dish[<size_t>number * n_classes(b) + word_class]
    return place


cdef inline symbol_t n_dishes_at(const BackOff* b, int level) noexcept nogil:
    """The number of dishes of every restaurant at a level of classes."""
    return n_classes(b) if level == class_level(b) else b.n_class_dishes[level - label_class_level(b)]


cdef inline symbol_t class_of_dish(const BackOff* b, int number, symbol_t dish) noexcept nogil:
    """One of the classes that have this dish at one of these levels."""
    cdef symbol_t word_class = 0
    while b.class_dish[<size_t>number * n_classes(b) + word_class] != dish:
        word_class += 1
    return word_class


cdef inline double class_share(const BackOff* b, int number, symbol_t word_class) noexcept nogil:
    """The probability of a class's dish at one of these levels given that at the next."""
    return b.class_share[<size_t>number * n_classes(b) + word_class]


cdef inline symbol_t restaurant_of(const BackOff* b, int level, int32_t cell) noexcept nogil:
    return b.levels[level].restaurant_of_cell[cell]


# ---- probabilities at an address ----------------------------------------------------------------------------------

cdef inline Restaurant* restaurant_at(BackOff* b, int level, const Place* place) noexcept nogil:
    return &b.levels[level].restaurants[place.restaurant]


cdef inline double predictive_at(const BackOff* b, int level, const Place* place, double base) noexcept nogil:
    """The probability of a dish at one level, given that at the level below."""
    cdef const Level* here = &b.levels[level]
    if place.cell == NOT_SEEN:
        return predictive(&here.restaurants[place.restaurant], NULL, base)
    return predictive(&here.restaurants[place.restaurant], &here.cells[place.cell], base)


cdef inline double label_class_probability(const BackOff* b, symbol_t label, symbol_t word_class,
                                           double* bases=NULL) noexcept nogil:
    """J_x of a class; `bases`, unless NULL, are filled with what each of its levels backs off to."""
    cdef double value = 1.0
    cdef Place place
    cdef int number
    for number in range(b.n_class_levels - 1, -1, -1):
        value *= class_share(b, number, word_class)
        if bases is not NULL:
            bases[number] = value
        place = label_class_place(b, number, label, word_class)
        value = predictive_at(b, label_class_level(b) + number, &place, value)
    return value


cdef inline double class_probability(const BackOff* b, const Address* address) noexcept nogil:
    cdef double below = label_class_probability(b, address.label, address.word_class)
    return predictive_at(b, class_level(b), &address.of_class, below)


cdef inline double word_base(const BackOff* b, const Address* address) noexcept nogil:
    """What the first level backs off to for a word with a class."""
    cdef double word = predictive_at(b, word_level(b), &address.of_word, b.class_word_base[address.word_class])
    return b.lexical_share[address.label] * class_probability(b, address) * word


cdef inline double fill_bases(const BackOff* b, const Address* address, double* base) noexcept nogil:
    """What every level of rules in use backs off to; returns that of the first: the rule's own if none is in use."""
    cdef const Level* here
    cdef const Restaurant* restaurant
    cdef double value, old_part
    cdef int level
    if address.word_class >= 0:
        base[0] = word_base(b, address)
        return base[0]
    value = b.rule_base[address.rule]
    for level in range(b.n_used - 1, 0, -1):
        base[level] = value
        here = &b.levels[level]
        restaurant = &here.restaurants[address.rules[level].restaurant]
        old_part = 0.0
        if address.rules[level].cell != NOT_SEEN:
            old_part = old_weight(restaurant, &here.cells[address.rules[level].cell])
        value = old_part + new_weight(restaurant) * value
        if level == 1:
            value = b.rule_share[address.label] * value
        value = value / denominator(restaurant)
    base[0] = value if b.n_used > 1 else b.rule_share[address.label] * value
    return base[0]


cdef inline double probability_at(const BackOff* b, const Address* address) noexcept nogil:
    """The probability of a rule for the next customer."""
    cdef double base[MOST_LEVELS]
    cdef double below = fill_bases(b, address, base)
    return predictive_at(b, 0, &address.rules[0], below) if b.n_used else below


# ---- seating at an address ------------------------------------------------------------------------------------------

cdef inline bint sit(BackOff* b, int level, const Place* place, double base, Rng* rng,
                     SeatingLog* seatings) except -1 nogil:
    """Seat a customer at one level; whether the table is new."""
    cdef Restaurant* restaurant = restaurant_at(b, level, place)
    cdef int32_t size = seat(restaurant, &b.levels[level].cells[place.cell], base, rng)
    note(seatings, restaurant, level, place.cell, size, -1, True)
    return size == 0


cdef inline bint leave(BackOff* b, int level, const Place* place, Rng* rng, SeatingLog* seatings) except -1 nogil:
    """Unseat a customer at one level; whether the table is removed."""
    cdef Restaurant* restaurant = restaurant_at(b, level, place)
    cdef int32_t size = unseat(restaurant, &b.levels[level].cells[place.cell], rng)
    note(seatings, restaurant, level, place.cell, size, -1, False)
    return size == 1


cdef inline int seat_word(BackOff* b, const Address* address, Rng* rng, SeatingLog* seatings) except -1 nogil:
    cdef double bases[MOST_CLASS_LEVELS]
    cdef double of_label = label_class_probability(b, address.label, address.word_class, bases)
    cdef Place place
    cdef int number = 0
    cdef bint is_new
    sit(b, word_level(b), &address.of_word, b.class_word_base[address.word_class], rng, seatings)
    is_new = sit(b, class_level(b), &address.of_class, of_label, rng, seatings)
    while is_new and number < b.n_class_levels:
        place = label_class_place(b, number, address.label, address.word_class)
        is_new = sit(b, label_class_level(b) + number, &place, bases[number], rng, seatings)
        number += 1
    return 0


cdef inline int unseat_word(BackOff* b, const Address* address, Rng* rng, SeatingLog* seatings) except -1 nogil:
    cdef bint is_removed = leave(b, class_level(b), &address.of_class, rng, seatings)
    cdef Place place
    cdef int number = 0
    while is_removed and number < b.n_class_levels:
        place = label_class_place(b, number, address.label, address.word_class)
        is_removed = leave(b, label_class_level(b) + number, &place, rng, seatings)
        number += 1
    leave(b, word_level(b), &address.of_word, rng, seatings)
    return 0


cdef inline double seat_at(BackOff* b, const Address* address, Rng* rng, SeatingLog* seatings) except -1.0 nogil:
    """Seat a customer of a rule, and one more at every next level where a table is new; its probability before that."""
    cdef double base[MOST_LEVELS]
    cdef double result = fill_bases(b, address, base)
    cdef int level = 0, n_used = min(b.n_used, 1) if address.word_class >= 0 else b.n_used
    if b.n_used:
        result = predictive_at(b, 0, &address.rules[0], result)
    while level < n_used and sit(b, level, &address.rules[level], base[level], rng, seatings):
        level += 1
    if address.word_class >= 0 and level == n_used:
        seat_word(b, address, rng, seatings)
    return result


cdef inline double unseat_at(BackOff* b, const Address* address, Rng* rng, SeatingLog* seatings) except -1.0 nogil:
    """Unseat a customer of a rule, and one more at every next level where a table is removed; its probability then."""
    cdef int level = 0, n_used = min(b.n_used, 1) if address.word_class >= 0 else b.n_used
    while level < n_used and leave(b, level, &address.rules[level], rng, seatings):
        level += 1
    if address.word_class >= 0 and level == n_used:
        unseat_word(b, address, rng, seatings)
    return probability_at(b, address)


# ---- all restaurants ------------------------------------------------------------------------------------------------

# Copy what comes from Python: the rules of a `TreeArrays` that was validated, the labels of the refined symbols, a
# `tsgkit.models.back_off.Levels`, what the base distributions are made of, and a `tsgkit.models._suffixes.ClassLevels`,
# or None for one level whose classes are equally probable. Raises ValueError unless it is valid.
cdef int copy_rules(BackOff* b, object trees, object symbol_label, object levels, object rule_base, object rule_class,
                    object lexical_share, object class_word_base, object class_levels) except -1
# Copy P0 alone.
cdef int copy_rule_base(BackOff* b, object rule_base) except -1
# The names of all levels: of rules, then of words.
cdef tuple kinds_of(const BackOff* b, object levels)
# A cell of every dish for every label, at the levels of the labels' classes.
cdef int open_label_class_cells(BackOff* b) except -1 nogil
# Open the restaurants, with nobody in them; the labels of W's are given. `cells`, `restaurant_of_cell` and
# `word_restaurant` belong to whoever makes the addresses.
cdef int open_restaurants(BackOff* b, const vector[symbol_t]* word_restaurant_label) except -1 nogil
# Nobody is seated any more.
cdef int empty_restaurants(BackOff* b) except -1 nogil
# Where the tables of all levels lie now: `n_levels` arrays, for `rollback`. They move when cells are made.
cdef void fill_table_arrays(BackOff* b, TableArray* arrays) noexcept nogil

# Add the log shares of the dishes of all tables of the labels' classes.
cdef double add_log_class_shares(const BackOff* b, double result) noexcept nogil

# Per level and restaurant, how many tables of which size there are.
cdef int count_tables(const BackOff* b, vector[vector[table_counts]]* counts) except -1 nogil
# Resample the (discount, strength) of a label at every level; and those of J_x, which all labels share, one for each of
# its levels. `counts` is of `count_tables`.
cdef int resample_label(BackOff* b, const vector[vector[table_counts]]* counts, symbol_t label,
                        Rng* rng) except -1 nogil
cdef int resample_label_classes(BackOff* b, const vector[vector[table_counts]]* counts, Rng* rng) except -1 nogil

# Discounts and strengths as an array of 2 by `n_pairs`: for every label at each level of rules, in J_{x_k} and in W,
# and one for each level of all J_x. Pairs without a restaurant are (0.5, 1).
cdef symbol_t n_pairs(const BackOff* b) noexcept nogil
cdef object parameters_of(const BackOff* b)
cdef int set_parameters_of(BackOff* b, object values) except -1
# Customers, tables, discount and strength of all restaurants of a level.
cdef object restaurants_of(const BackOff* b, int level)
