"""Any refinement of the rules of a treebank: addresses by hashing, and sums over subcategories.

What was seen of every treebank rule is a list, so that sums over subcategories cost as much as was seen. With two
levels of rules,

    sum_{l,m} H(k, l, m) L[l] R[m] = sum_{seen in H} w L[l] R[m]
                                     + b_k ( sum_{seen in I} w L[l] R[m] + b P0 sum(L) sum(R) )
"""

import numpy as np

from tsgkit._backoff import level_number
from tsgkit._trees import validate_trees

from cython.operator cimport dereference
from libc.stdint cimport int32_t, uint64_t
from libcpp.map cimport map as cpp_map
from libcpp.pair cimport pair
from libcpp.utility cimport move
from libcpp.vector cimport vector

from tsgkit._backoff cimport (
    MOST_CLASS_LEVELS, MOST_LEVELS, MOST_SUBCATEGORIES, NOT_SEEN, Address, BackOff, Level, RefinedRule, class_level,
    copy_rules, fill_table_arrays, kinds_of, label_class_probability, n_classes, n_dishes_at, n_pairs, n_rules,
    n_symbols, open_label_class_cells, open_restaurants, parameters_of, predictive_at, restaurants_of,
    set_parameters_of, word_base, word_level,
)
from tsgkit._hash_tables cimport add_key, clear_keys, find_key
from tsgkit._random cimport Rng, Stream
from tsgkit._restaurant cimport Restaurant, SeatingLog, TableArray, Tables, denominator, new_weight, rollback
from tsgkit._rule_list cimport add_entry, add_terms, draw_entry, sort_list, start_list, sum_of_terms
from tsgkit._types cimport symbol_t
from tsgkit._vectors cimport fill


# ---- opening ----------------------------------------------------------------------------------------------------

def validate_order(symbol_label, levels, n_labels):
    """Refuse symbols and contexts that hashed addresses cannot have: they come in the same order, label by label."""
    sizes = np.bincount(symbol_label, minlength=n_labels)
    if (sizes < 1).any() or (np.diff(symbol_label) < 0).any():
        raise ValueError("symbols do not come label by label")
    if (sizes > MOST_SUBCATEGORIES).any():
        raise ValueError("a label has too many subcategories")
    if any((np.diff(context) < 0).any() for context in levels.contexts):
        raise ValueError("contexts do not come in the order of symbols")


cdef int first_of_labels(const vector[symbol_t]* labels, symbol_t n_labels, vector[symbol_t]* first) except -1 nogil:
    """Per label and one more, where it begins in an array that is sorted."""
    cdef size_t position
    cdef symbol_t label
    fill(first[0], n_labels + 1, 0)
    for position in range(labels.size()):
        first[0][labels[0][position] + 1] += 1
    for label in range(n_labels):
        first[0][label + 1] += first[0][label]
    return 0


cdef int open_class_cells(BackOff* b) except -1 nogil:
    """A cell of every class for every symbol in J_{x_k}, and of every dish for every label below."""
    cdef Level* level = &b.levels[class_level(b)]
    cdef size_t cell, n_cells = <size_t>n_symbols(b) * n_classes(b)
    level.cells.clear()
    level.cells.resize(n_cells)
    level.restaurant_of_cell.resize(n_cells)
    for cell in range(n_cells):
        level.restaurant_of_cell[cell] = <symbol_t>(cell // n_classes(b))
    return open_label_class_cells(b)


cdef int open_hashed(BackOff* b) except -1 nogil:
    """Symbols and contexts come in the same order, label by label: `validate_order`."""
    cdef cpp_map[pair[symbol_t, symbol_t], symbol_t] restaurant_of_tag
    cdef pair[symbol_t, symbol_t] tag
    cdef vector[symbol_t] word_restaurant_label
    cdef symbol_t rule
    cdef int number
    fill(b.word_restaurant, n_rules(b), -1)
    for rule in range(n_rules(b)):
        if b.rule_class[rule] < 0:
            continue
        tag = pair[symbol_t, symbol_t](b.rule_label[rule], b.rule_class[rule])
        if restaurant_of_tag.count(tag) == 0:
            restaurant_of_tag.insert(
                pair[pair[symbol_t, symbol_t], symbol_t](tag, <symbol_t>word_restaurant_label.size()))
            word_restaurant_label.push_back(b.rule_label[rule])
        b.word_restaurant[rule] = dereference(restaurant_of_tag.find(tag)).second
    open_restaurants(b, &word_restaurant_label)
    first_of_labels(&b.symbol_label, b.n_labels, &b.first_symbol)
    for number in range(b.n_rule_levels):
        first_of_labels(&b.levels[number].pair, b.n_labels, &b.levels[number].first_context)
        b.levels[number].cells.clear()
        b.levels[number].restaurant_of_cell.clear()
        b.levels[number].below.clear()
        clear_keys(&b.levels[number].cell_of)
        start_list(&b.levels[number].rules, n_rules(b))
    open_class_cells(b)
    b.levels[word_level(b)].cells.clear()
    b.levels[word_level(b)].restaurant_of_cell.clear()
    if n_classes(b):
        b.levels[word_level(b)].cells.resize(n_rules(b))
        fill(b.levels[word_level(b)].restaurant_of_cell, n_rules(b), -1)
        for rule in range(n_rules(b)):
            b.levels[word_level(b)].restaurant_of_cell[rule] = b.word_restaurant[rule]
    return 0


# ---- addresses --------------------------------------------------------------------------------------------------

cdef inline uint64_t key_of(const RefinedRule* rule) noexcept nogil:
    """Of a rule with a context in place of its parent. Keys are in the order of rule, context and children."""
    return <uint64_t>rule.rule << 30 | <uint64_t>rule.parent << 20 | <uint64_t>rule.left << 10 | <uint64_t>rule.right


cdef int32_t find_cell(const BackOff* b, int level, const RefinedRule* rule) noexcept nogil:
    return find_key(&b.levels[level].cell_of, key_of(rule))


cdef int32_t make_cell(BackOff* b, int level, const RefinedRule* rule) except -1 nogil:
    cdef int32_t cell = find_cell(b, level, rule)
    cdef Level* here = &b.levels[level]
    if cell != NOT_SEEN:
        return cell
    cell = add_entry(&here.rules, rule.rule, rule.parent, rule.left, rule.right)
    here.cells.resize(cell + 1)
    here.restaurant_of_cell.push_back(here.first_context[b.rule_label[rule.rule]] + rule.parent)
    here.below.push_back(NOT_SEEN)
    add_key(&here.cell_of, key_of(rule), cell)
    return cell


cdef inline RefinedRule in_context(const BackOff* b, int level, const RefinedRule* rule) noexcept nogil:
    """The rule with its context at a level in place of its parent's subcategory."""
    cdef RefinedRule result = rule[0]
    cdef const Level* here = &b.levels[level]
    result.parent = here.context[symbol_of(b, rule)] - here.first_context[b.rule_label[rule.rule]]
    return result


cdef inline int begin_address(const BackOff* b, const RefinedRule* rule, Address* address) noexcept nogil:
    """All of an address but the cells at the levels of rules; the number of these levels."""
    cdef symbol_t symbol = symbol_of(b, rule), label = b.rule_label[rule.rule], word_class = b.rule_class[rule.rule]
    cdef int level, n_used = b.n_used
    address.rule, address.label, address.word_class = rule.rule, label, word_class
    if word_class >= 0:
        address.of_class.restaurant, address.of_class.cell = symbol, class_cell(b, symbol, word_class)
        address.of_word.restaurant, address.of_word.cell = b.word_restaurant[rule.rule], rule.rule
        n_used = min(n_used, 1)
    for level in range(n_used):
        address.rules[level].restaurant = b.levels[level].context[symbol]
    return n_used


cdef void find_address(const BackOff* b, const RefinedRule* rule, Address* address) noexcept nogil:
    """Where a rule has its tables; `NOT_SEEN` where it has none."""
    cdef RefinedRule there
    cdef int level
    for level in range(begin_address(b, rule, address)):
        there = in_context(b, level, rule)
        address.rules[level].cell = find_cell(b, level, &there)


cdef int make_address(BackOff* b, const RefinedRule* rule, Address* address) except -1 nogil:
    """Where a rule has its tables, or will have them."""
    cdef RefinedRule there
    cdef int level
    for level in range(begin_address(b, rule, address)):
        there = in_context(b, level, rule)
        address.rules[level].cell = make_cell(b, level, &there)
        if level:
            b.levels[level - 1].below[address.rules[level - 1].cell] = address.rules[level].cell
    return 0


cdef void address_of_cell(const BackOff* b, const RefinedRule* rule, int32_t cell, Address* address) noexcept nogil:
    cdef int level
    for level in range(begin_address(b, rule, address)):
        if level:
            cell = b.levels[level - 1].below[cell]
        address.rules[level].cell = cell


cdef int sort_cells(BackOff* b) except -1 nogil:
    cdef int level
    for level in range(b.n_rule_levels):
        sort_cells_of(&b.levels[level])
    for level in range(b.n_used - 1):
        link_cells(b, level)
    weigh_all(b)
    return 0


cdef int sort_cells_of(Level* level) except -1 nogil:
    cdef vector[int32_t] kept
    cdef vector[Tables] cells
    cdef vector[symbol_t] restaurants
    cdef RefinedRule rule
    cdef size_t position
    for position in range(level.cells.size()):
        if level.cells[position].n_customers:
            kept.push_back(<int32_t>position)
    sort_list(&level.rules, &kept)
    cells.resize(kept.size())
    clear_keys(&level.cell_of)
    for position in range(kept.size()):
        cells[position] = move(level.cells[kept[position]])
        restaurants.push_back(level.restaurant_of_cell[kept[position]])
        rule = rule_of_cell(level, <int32_t>position)
        add_key(&level.cell_of, key_of(&rule), <int32_t>position)
    level.cells.swap(cells)
    level.restaurant_of_cell.swap(restaurants)
    level.below.clear()
    level.below.resize(kept.size(), NOT_SEEN)
    return 0


cdef void link_cells(BackOff* b, int level) noexcept nogil:
    """Find the cells that those of a level back off to. Words with a class have none."""
    cdef Level* here = &b.levels[level]
    cdef RefinedRule rule
    cdef size_t cell
    for cell in range(here.cells.size()):
        rule = rule_of_cell(here, <int32_t>cell)
        if b.rule_class[rule.rule] < 0:
            rule.parent = below_of(b, level, b.rule_label[rule.rule], rule.parent)
            here.below[cell] = find_cell(b, level + 1, &rule)


cdef void weigh_all(BackOff* b) noexcept nogil:
    cdef int level
    cdef size_t cell
    for level in range(b.n_rule_levels):
        for cell in range(b.levels[level].cells.size()):
            weigh_cell(&b.levels[level], <int32_t>cell)


# ---- sums over the children's subcategories -------------------------------------------------------------------------

cdef inline double total_of(const double* values, symbol_t n_values) noexcept nogil:
    cdef double result = 0.0
    cdef symbol_t number
    for number in range(n_values):
        result += values[number]
    return result


cdef inline double sum_of_p0(const BackOff* b, symbol_t rule, const double* left, const double* right) noexcept nogil:
    return (
        total_of(left, n_subcategories(b, b.rule_left_label[rule]))
        * total_of(right, n_subcategories(b, b.rule_right_label[rule]))
        * b.rule_base[rule]
    )


cdef inline double word_base_of(const BackOff* b, symbol_t rule, symbol_t parent) noexcept nogil:
    """What the first level backs off to for a word with a class."""
    cdef RefinedRule refined
    cdef Address address
    refined.rule, refined.parent, refined.left, refined.right = rule, parent, 0, 0
    begin_address(b, &refined, &address)
    return word_base(b, &address)


cdef void fill_word_bases(const BackOff* b, symbol_t rule, double* result) noexcept nogil:
    """The same for every subcategory of the parent. Those of J_x and W do not depend on it."""
    cdef symbol_t label = b.rule_label[rule], parent
    cdef double below, word
    cdef RefinedRule refined
    cdef Address address
    refined.rule, refined.parent, refined.left, refined.right = rule, 0, 0, 0
    begin_address(b, &refined, &address)
    below = label_class_probability(b, label, address.word_class)
    word = predictive_at(b, word_level(b), &address.of_word, b.class_word_base[address.word_class])
    for parent in range(n_subcategories(b, label)):
        result[parent] = b.lexical_share[label] * predictive_at(b, class_level(b), &address.of_class, below) * word
        address.of_class.restaurant += 1
        address.of_class.cell += n_classes(b)


cdef void fill_base_sums(
    const BackOff* b, symbol_t rule, const double* left, const double* right, double* result
) noexcept nogil:
    """The sums of what the first level backs off to, for every subcategory of the parent."""
    cdef symbol_t label = b.rule_label[rule], first = b.first_symbol[label], n_parents = n_subcategories(b, label)
    cdef symbol_t context, n_contexts, first_context, parent
    # Per context of one level: what comes from the level below, then the sum; and the sum over what was seen.
    cdef double values[MOST_SUBCATEGORIES]
    cdef double of_seen[MOST_SUBCATEGORIES]
    cdef const Level* here
    cdef const Restaurant* restaurant
    cdef int level
    values[0] = sum_of_p0(b, rule, left, right)
    if b.n_used < 2:
        for parent in range(n_parents):
            result[parent] = b.rule_share[label] * values[0]
        return
    for level in range(b.n_used - 1, 0, -1):
        here = &b.levels[level]
        first_context = here.first_context[label]
        n_contexts = here.first_context[label + 1] - first_context
        for context in range(n_contexts):
            of_seen[context] = 0.0
        add_terms(&here.rules, rule, left, right, of_seen)
        # From the last on: a context backs off to one of the same number or a smaller one.
        for context in range(n_contexts - 1, -1, -1):
            restaurant = &here.restaurants[first_context + context]
            values[context] = of_seen[context] + new_weight(restaurant) * values[below_of(b, level, label, context)]
            if level == 1:
                values[context] = b.rule_share[label] * values[context]
            values[context] = values[context] / denominator(restaurant)
    for parent in range(n_parents):
        result[parent] = values[b.levels[1].context[first + parent] - b.levels[1].first_context[label]]


cdef inline symbol_t below_of(const BackOff* b, int level, symbol_t label, symbol_t context) noexcept nogil:
    """What a context backs off to, counted within the label; 0 for P0."""
    if level == b.n_used - 1:
        return 0
    return (
        b.levels[level].backs_off_to[b.levels[level].first_context[label] + context]
        - b.levels[level + 1].first_context[label]
    )


cdef void sums(const BackOff* b, symbol_t rule, const double* left, const double* right, double* result) noexcept nogil:
    cdef symbol_t label = b.rule_label[rule], n_parents = n_subcategories(b, label), parent
    cdef const Restaurant* restaurants
    cdef double of_seen[MOST_SUBCATEGORIES]
    if b.rule_class[rule] >= 0:
        fill_word_bases(b, rule, result)
    else:
        fill_base_sums(b, rule, left, right, result)
    if b.n_used == 0:
        return
    for parent in range(n_parents):
        of_seen[parent] = 0.0
    add_terms(&b.levels[0].rules, rule, left, right, of_seen)
    restaurants = &b.levels[0].restaurants[b.first_symbol[label]]
    for parent in range(n_parents):
        result[parent] = (
            (of_seen[parent] + new_weight(&restaurants[parent]) * result[parent]) / denominator(&restaurants[parent])
        )


cdef double sum_for(
    const BackOff* b, symbol_t rule, symbol_t parent, const double* left, const double* right
) noexcept nogil:
    cdef symbol_t label = b.rule_label[rule], symbol = b.first_symbol[label] + parent, context
    cdef const Level* here
    cdef const Restaurant* restaurant
    cdef double value
    cdef int level, n_used = b.n_used
    if b.rule_class[rule] >= 0:
        value = word_base_of(b, rule, parent)
        n_used = min(n_used, 1)
    else:
        value = sum_of_p0(b, rule, left, right)
        if n_used < 2:
            value = b.rule_share[label] * value
    for level in range(n_used - 1, -1, -1):
        here = &b.levels[level]
        context = here.context[symbol]
        restaurant = &here.restaurants[context]
        value = (
            sum_of_terms(&here.rules, rule, context - here.first_context[label], left, right)
            + new_weight(restaurant) * value
        )
        if level == 1:
            value = b.rule_share[label] * value
        value = value / denominator(restaurant)
    return value


cdef inline symbol_t draw_one(const double* values, symbol_t n_values, Rng* rng) noexcept nogil:
    cdef double target = rng.uniform() * total_of(values, n_values)
    cdef symbol_t last = 0, number
    for number in range(n_values):
        if values[number] <= 0.0:
            continue
        last = number
        target -= values[number]
        if target < 0.0:
            break
    return last


cdef void draw_children(
    const BackOff* b, RefinedRule* rule, const double* left, const double* right, double total, Rng* rng
) noexcept nogil:
    cdef symbol_t label = b.rule_label[rule.rule], symbol = symbol_of(b, rule), context
    cdef double target = rng.uniform() * total, scale
    cdef const Level* here
    cdef const Restaurant* restaurant
    cdef int32_t drawn
    cdef int level
    for level in range(b.n_used):
        here = &b.levels[level]
        restaurant = &here.restaurants[here.context[symbol]]
        context = here.context[symbol] - here.first_context[label]
        scale = 1.0 / denominator(restaurant)
        drawn = draw_entry(&here.rules, rule.rule, context, left, right, scale, &target)
        if drawn >= 0:
            rule.left, rule.right = here.rules.entries[drawn].left, here.rules.entries[drawn].right
            return
        target /= new_weight(restaurant) * scale
        if level == 0:
            target /= b.rule_share[label]
    rule.left = draw_one(left, n_subcategories(b, b.rule_left_label[rule.rule]), rng)
    rule.right = draw_one(right, n_subcategories(b, b.rule_right_label[rule.rule]), rng)


# ---- for Python -----------------------------------------------------------------------------------------------------

cdef class RuleHierarchy:
    """The restaurants of refined rules by themselves, whose customers are seated one by one.

    Parameters
    ----------
    trees : TreeArrays
        Their rules count, and not the nodes.
    symbol_label : array of int, one per refined symbol
        Its label; the symbols of a label come one after the other, in the order of labels.
    levels : tsgkit.models.back_off.Levels
    rule_base : array of float, one per rule
        P0: the probability of each refinement of a treebank rule.
    rule_class : array of int, one per rule
        The class of a lexical rule's word; -1 for other rules, and where words have no classes.
    lexical_share : array of float, one per label
        The share of words among the rules of a label, where words have classes.
    class_word_base : array of float, one per class
        P0 of each word of a class.
    class_levels : tsgkit.models._suffixes.ClassLevels, optional
        What the classes of a label back off to; unless given, all classes are equally probable.

    Notes
    -----
    Rules are given as ``rule, parent, left, right``: a treebank rule and the subcategories of its parent and children,
    counted within their labels; 0 for a child that the rule does not have.
    """

    cdef BackOff back_off
    cdef SeatingLog seatings
    cdef readonly object trees
    cdef readonly tuple names

    def __init__(
        self, trees, symbol_label, levels, rule_base, rule_class, lexical_share, class_word_base, class_levels=None,
    ):
        validate_trees(trees)
        copy_rules(
            &self.back_off, trees, symbol_label, levels, rule_base, rule_class, lexical_share, class_word_base,
            class_levels)
        validate_order(np.asarray(symbol_label), levels, trees.n_labels)
        self.trees, self.names = trees, kinds_of(&self.back_off, levels)
        with nogil:
            open_hashed(&self.back_off)
        set_parameters_of(&self.back_off, np.tile([[0.5], [1.0]], (1, n_pairs(&self.back_off))))

    cdef RefinedRule checked(self, rule, parent, left, right) except *:
        cdef BackOff* b = &self.back_off
        cdef RefinedRule result
        if not 0 <= rule < n_rules(b):
            raise ValueError("a rule is out of range")
        result.rule, result.parent, result.left, result.right = rule, parent, left, right
        if not (
            0 <= parent < n_subcategories(b, b.rule_label[result.rule])
            and 0 <= left < n_subcategories(b, b.rule_left_label[result.rule])
            and 0 <= right < n_subcategories(b, b.rule_right_label[result.rule])
        ):
            raise ValueError("a rule's subcategory is out of range")
        return result

    def parameters(self):
        """Discounts and strengths: for every label at each level of rules, of J and of W, and of the levels of J_x."""
        return parameters_of(&self.back_off)

    def set_parameters(self, values):
        """Set what `parameters` gave."""
        set_parameters_of(&self.back_off, values)
        weigh_all(&self.back_off)

    def probability(self, rule, parent=0, left=0, right=0):
        """The probability of a refined rule for the next customer."""
        cdef RefinedRule refined = self.checked(rule, parent, left, right)
        return probability(&self.back_off, &refined)

    def seat(self, rule, parent, left, right, Stream stream):
        """Seat a customer of a refined rule; its probability before that."""
        cdef RefinedRule refined = self.checked(rule, parent, left, right)
        return seat_rule(&self.back_off, &refined, &stream.rng, &self.seatings)

    def unseat(self, rule, parent, left, right, Stream stream):
        """Unseat a customer of a refined rule, any of them; its probability after that."""
        cdef RefinedRule refined = self.checked(rule, parent, left, right)
        cdef Address address
        find_address(&self.back_off, &refined, &address)
        if self.back_off.n_used and (
            address.rules[0].cell == NOT_SEEN
            or self.back_off.levels[0].cells[address.rules[0].cell].n_customers == 0
        ):
            raise ValueError("no customer of this rule is seated")
        return unseat_rule_at(&self.back_off, &address, &stream.rng, &self.seatings)

    def roll_back(self, mark=0):
        """Undo what was done since the log had `mark` entries."""
        cdef TableArray[MOST_LEVELS + MOST_CLASS_LEVELS + 2] arrays
        if not 0 <= mark <= self.n_logged:
            raise ValueError("the log of seatings has no such entry")
        fill_table_arrays(&self.back_off, arrays)
        rollback(&self.seatings, arrays, mark)
        weigh_all(&self.back_off)

    @property
    def n_logged(self):
        """How many customers sat down or left so far, at any level."""
        return self.seatings.entries.size()

    def sums(self, rule, left, right):
        """For every subcategory of the parent, the sum over those of the children of probability times values."""
        cdef const double[::1] lefts = self.values_of(rule, self.trees.rule_left_label, left)
        cdef const double[::1] rights = self.values_of(rule, self.trees.rule_right_label, right)
        result = np.empty(n_subcategories(&self.back_off, self.trees.rule_label[rule]))
        cdef double[::1] view = result
        sums(&self.back_off, rule, &lefts[0], &rights[0], &view[0])
        return result

    def sum_for(self, rule, parent, left, right):
        """The same for one subcategory of the parent."""
        cdef RefinedRule refined = self.checked(rule, parent, 0, 0)
        cdef const double[::1] lefts = self.values_of(rule, self.trees.rule_left_label, left)
        cdef const double[::1] rights = self.values_of(rule, self.trees.rule_right_label, right)
        return sum_for(&self.back_off, refined.rule, refined.parent, &lefts[0], &rights[0])

    def draw_children(self, rule, parent, left, right, Stream stream):
        """The subcategories of the children, drawn from the terms of `sum_for`."""
        cdef RefinedRule refined = self.checked(rule, parent, 0, 0)
        cdef const double[::1] lefts = self.values_of(rule, self.trees.rule_left_label, left)
        cdef const double[::1] rights = self.values_of(rule, self.trees.rule_right_label, right)
        cdef double total = sum_for(&self.back_off, refined.rule, refined.parent, &lefts[0], &rights[0])
        draw_children(&self.back_off, &refined, &lefts[0], &rights[0], total, &stream.rng)
        return refined.left, refined.right

    def values_of(self, rule, child_label, values):
        """The values of all subcategories of a child; 1 for a child that the rule does not have."""
        if not 0 <= rule < self.trees.n_rules:
            raise ValueError("a rule is out of range")
        values = np.ones(1) if child_label[rule] < 0 else np.ascontiguousarray(values, dtype=np.float64)
        if values.shape != (n_subcategories(&self.back_off, child_label[rule]),):
            raise ValueError("one value is needed for every subcategory of a child")
        return values

    def sort_cells(self):
        """Forget empty cells, and sort the others."""
        sort_cells(&self.back_off)
        self.seatings.entries.clear()

    def restaurants(self, kind):
        """Customers, tables, discount and strength of all restaurants of a kind."""
        return restaurants_of(&self.back_off, level_number(self.names, kind))

    def cells(self, kind):
        """The dishes of a kind that have customers: restaurant, dish, customers and tables.

        A dish of rules is a rule with its children's subcategories, one of classes or words is a number.
        """
        cdef int level = level_number(self.names, kind)
        cdef const Level* here = &self.back_off.levels[level]
        cdef RefinedRule rule
        cdef size_t cell
        rows = []
        for cell in range(here.cells.size()):
            if here.cells[cell].n_customers == 0:
                continue
            if level < self.back_off.n_rule_levels:
                rule = rule_of_cell(here, <int32_t>cell)
                dish = (rule.rule, rule.left, rule.right)
            elif level == word_level(&self.back_off):
                dish = cell
            else:
                dish = cell % n_dishes_at(&self.back_off, level)
            rows.append(
                (here.restaurant_of_cell[cell], dish, here.cells[cell].n_customers, here.cells[cell].n_tables))
        return rows
