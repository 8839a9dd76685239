"""The sampler of substitution sites on refined trees: a checked door to ``sr_sites.hpp``, which see.

Everything the sampler depends on comes in as arrays and is checked here; everything it knows goes out as
arrays. Same seed, same result.
"""

import numpy as np

from tsgkit.checks import checked_rows, count_customers, require_discounts, require_strengths

from libc.stdint cimport int16_t, uint8_t, uint64_t
from libcpp cimport bool as cpp_bool
from libcpp.vector cimport vector

from tsgkit._old_restaurant cimport House, Tables
from tsgkit._types cimport index_t, symbol_t
from tsgkit._vectors cimport copy_flags, copy_indices, copy_numbers, copy_symbols

cdef extern from "sr_parts.hpp" namespace "tsgkit" nogil:
    cdef cppclass Part:
        symbol_t rule
        symbol_t left
        symbol_t right

    cdef cppclass PartStore:
        vector[Part] parts
        size_t n_used()

    cdef cppclass RefinedTable:
        symbol_t size
        vector[int16_t] refinement

    cdef cppclass Dish:
        symbol_t part
        symbol_t symbol
        Tables tables
        vector[RefinedTable] refined

cdef extern from "sr_rules.hpp" namespace "tsgkit" nogil:
    cdef cppclass RefinedRule:
        symbol_t rule
        symbol_t own
        symbol_t left
        symbol_t right

    cdef enum class Level "tsgkit::Level"(uint8_t):
        pass

    cdef cppclass RuleRestaurants:
        vector[symbol_t] rule_label
        vector[symbol_t] rule_left_label
        vector[symbol_t] rule_right_label
        vector[double] rule_base
        vector[symbol_t] rule_class
        vector[double] lexical_share
        vector[double] class_word_base
        vector[symbol_t] first_symbol
        int levels
        vector[Tables] cells[5]
        vector[House] houses[5]
        vector[RefinedRule] rule_of_cell[2]
        vector[symbol_t] word_house
        vector[symbol_t] word_house_label
        symbol_t cell(Level level, const RefinedRule& rule)
        double probability(const RefinedRule& rule)
        double class_probability(symbol_t symbol, symbol_t label, symbol_t klass)
        symbol_t house_of(Level level, symbol_t cell)
        void tidy()

cdef extern from "sr_sites.hpp" namespace "tsgkit" nogil:
    cdef cppclass SweepCounts "tsgkit::SrSiteSampler::SweepCounts":
        index_t n_proposed
        index_t n_accepted
        index_t n_changed

    cdef cppclass Totals "tsgkit::SrSiteSampler::Totals":
        pass

    cdef cppclass CppSampler "tsgkit::SrSiteSampler":
        vector[symbol_t] label
        vector[symbol_t] rule
        vector[symbol_t] left
        vector[symbol_t] right
        vector[symbol_t] parent
        vector[index_t] tree_start
        RuleRestaurants rules
        vector[symbol_t] symbol_label
        vector[double] stop
        vector[House] dish_houses
        uint64_t seed
        vector[uint8_t] is_site
        vector[symbol_t] symbol
        vector[symbol_t] dish
        PartStore store
        vector[Dish] dishes
        void build()
        void clear()
        void seat_all()
        void unseat_all()
        void name_all()
        SweepCounts blocked_sweep(uint64_t iteration, cpp_bool joint)
        SweepCounts local_sweep(uint64_t iteration)
        Totals totals()
        double log_joint(const Totals& sums)
        void resample_stops(uint64_t iteration, const Totals& sums)
        void resample_hyper(uint64_t iteration, const Totals& sums)
        void set_stop(size_t number, double probability)
        cpp_bool counts_fit()
        cpp_bool has_internal(const Dish& one)
        vector[symbol_t] internal_labels(symbol_t number)
        double log_predictive_at(symbol_t node)

KINDS = ("rule", "base", "class", "label_class", "word")
# A subcategory has ten bits in the keys of rules.
MOST_SUBCATEGORIES = 1024


cdef class SrSiteSampler:
    """Substitution sites, and symbols, of the nodes of known trees.

    Parameters
    ----------
    trees : TreeArrays
    symbol_label : array of int, one per refined symbol
        Its label; the symbols of a label come one after the other, in the order of labels.
    rule_base : array of float, one per rule
        The probability of each refinement of a treebank rule in the last base.
    rule_class : array of int, one per rule
        The class of a lexical rule's word; -1 for other rules, and where words have no classes.
    lexical_share : array of float, one per label
        The share of words among the rules of a label, where words have classes.
    class_word_base : array of float, one per class
        The probability of each word of a class in the last base.
    levels : {1, 2, 3}
        1: fragments only, 2: and refined rules, 3: and rules without their root's subcategory, above the last base.
    seed : int
    """

    cdef CppSampler sampler
    cdef readonly object trees
    cdef bint is_seated

    def __init__(
        self, trees, symbol_label, rule_base, rule_class, lexical_share, class_word_base, int levels=3,
        uint64_t seed=0,
    ):
        trees.validate()
        symbol_label, rule_class = np.asarray(symbol_label, dtype=np.int32), np.asarray(rule_class, dtype=np.int32)
        rule_base, lexical_share = np.asarray(rule_base, dtype=np.float64), np.asarray(lexical_share, dtype=np.float64)
        class_word_base = np.asarray(class_word_base, dtype=np.float64)
        n_classes = len(class_word_base)
        n_symbols = np.bincount(symbol_label, minlength=trees.n_labels) if (symbol_label >= 0).all() else np.zeros(0)
        if len(n_symbols) != trees.n_labels or (n_symbols < 1).any() or (np.diff(symbol_label) < 0).any():
            raise ValueError("symbols do not come label by label")
        if (n_symbols > MOST_SUBCATEGORIES).any() or trees.n_rules * max(1, n_classes) > np.iinfo(np.int32).max:
            raise ValueError("a label has too many subcategories, or there are too many rules")
        if (n_symbols[trees.label[trees.tree_start[:len(trees.tree_start) - 1]]] != 1).any():
            raise ValueError("roots have no subcategories")
        if rule_base.shape != (trees.n_rules,) or not ((rule_base > 0) & (rule_base <= 1)).all():
            raise ValueError("a rule has no base probability")
        if rule_class.shape != (trees.n_rules,) or (rule_class < -1).any() or (rule_class >= n_classes).any():
            raise ValueError("a rule's class is not there")
        if (rule_class[trees.rule_left_label >= 0] >= 0).any():
            raise ValueError("a rule without a word has a class")
        if lexical_share.shape != (trees.n_labels,) or not ((lexical_share >= 0) & (lexical_share <= 1)).all() or (
                lexical_share[trees.rule_label[rule_class >= 0]] <= 0).any():
            raise ValueError("a label's share of words is not one")
        if n_classes and (lexical_share[trees.rule_label[rule_class < 0]] >= 1).any():
            raise ValueError("a label's rules have no share")
        if not ((class_word_base > 0) & (class_word_base <= 1)).all():
            raise ValueError("a class has no base probability")
        if levels not in (1, 2, 3):
            raise ValueError("there are 1, 2 or 3 levels")
        self.trees = trees
        copy_symbols(trees.label, self.sampler.label)
        copy_symbols(trees.rule, self.sampler.rule)
        copy_symbols(trees.left, self.sampler.left)
        copy_symbols(trees.right, self.sampler.right)
        copy_symbols(trees.parent, self.sampler.parent)
        copy_symbols(symbol_label, self.sampler.symbol_label)
        copy_symbols(trees.rule_label, self.sampler.rules.rule_label)
        copy_symbols(trees.rule_left_label, self.sampler.rules.rule_left_label)
        copy_symbols(trees.rule_right_label, self.sampler.rules.rule_right_label)
        copy_symbols(rule_class, self.sampler.rules.rule_class)
        copy_symbols(np.concatenate([[0], np.cumsum(n_symbols)]), self.sampler.rules.first_symbol)
        copy_indices(trees.tree_start, self.sampler.tree_start)
        copy_numbers(rule_base, self.sampler.rules.rule_base)
        copy_numbers(lexical_share, self.sampler.rules.lexical_share)
        copy_numbers(class_word_base, self.sampler.rules.class_word_base)
        self.sampler.rules.levels, self.sampler.seed = levels, seed
        with nogil:
            self.sampler.build()
        self.set_parameters(np.tile([[0.5], [1.0]], (1, self.n_pairs)))

    cdef int require_seated(self, bint wanted) except -1:
        if self.is_seated != wanted:
            raise ValueError("no trees are seated" if wanted else "the trees are seated already")
        return 0

    # ---- parameters ------------------------------------------------------------------------------------

    @property
    def n_labels(self):
        return self.trees.n_labels

    @property
    def n_symbols(self):
        return self.sampler.symbol_label.size()

    @property
    def n_pairs(self):
        """How many pairs (discount, strength) there are: four per label, one more, and one per symbol."""
        return 4 * self.n_labels + 1 + self.n_symbols

    cdef House* house_of_pair(self, index_t place, index_t member) except NULL:
        """One of the restaurants that share a pair; restaurants of words are found otherwise."""
        cdef index_t n_labels = self.n_labels, kind = place // n_labels, label = place % n_labels
        if place > 4 * n_labels:
            return &self.sampler.dish_houses[place - 4 * n_labels - 1]
        if place == 4 * n_labels:
            return &self.sampler.rules.houses[3][member]
        if kind == 1:
            return &self.sampler.rules.houses[1][label]
        return &self.sampler.rules.houses[kind][self.sampler.rules.first_symbol[label] + member]

    cdef index_t n_members(self, index_t place) except -1:
        cdef index_t n_labels = self.n_labels, kind = place // n_labels, label = place % n_labels
        if place == 4 * n_labels:
            return n_labels
        if place > 4 * n_labels or kind == 1:
            return 1
        return self.sampler.rules.first_symbol[label + 1] - self.sampler.rules.first_symbol[label]

    def parameters(self):
        """Discounts and strengths: of H, I, J and W for every label, of the labels' classes, of G for every symbol."""
        cdef index_t place, n_labels = self.n_labels
        cdef House* house
        values = np.tile([[0.5], [1.0]], (1, self.n_pairs))
        for place in range(values.shape[1]):
            if 3 * n_labels <= place < 4 * n_labels:
                continue
            house = self.house_of_pair(place, 0)
            values[0, place], values[1, place] = house.discount, house.strength
        for place in range(<index_t>self.sampler.rules.word_house_label.size()):
            house = &self.sampler.rules.houses[4][place]
            label = 3 * n_labels + self.sampler.rules.word_house_label[place]
            values[0, label], values[1, label] = house.discount, house.strength
        return values

    def set_parameters(self, values):
        """Set what `parameters` gave."""
        cdef index_t place, member, n_labels = self.n_labels
        cdef House* house
        values = np.array(values, dtype=np.float64)
        if values.shape != (2, self.n_pairs):
            raise ValueError("one discount and one strength are needed for every restaurant")
        require_discounts(values[0])
        require_strengths(values[1])
        cdef double[:, ::1] view = np.ascontiguousarray(values)
        for place in range(view.shape[1]):
            if 3 * n_labels <= place < 4 * n_labels:
                continue
            for member in range(self.n_members(place)):
                house = self.house_of_pair(place, member)
                house.discount, house.strength = view[0, place], view[1, place]
        for member in range(<index_t>self.sampler.rules.word_house_label.size()):
            place = 3 * n_labels + self.sampler.rules.word_house_label[member]
            house = &self.sampler.rules.houses[4][member]
            house.discount, house.strength = view[0, place], view[1, place]

    def take_parameters(self, values):
        """Set what `SrSampler.parameters` gave; those of G, which it does not have, stay."""
        values, n_shared = np.asarray(values, dtype=np.float64), 4 * self.n_labels + 1
        if values.shape != (2, n_shared):
            raise ValueError("one discount and one strength are needed for every restaurant")
        self.set_parameters(np.concatenate([values, self.parameters()[:, n_shared:]], axis=1))

    def stops(self):
        """The probability of stopping at every label."""
        return np.array([value for value in self.sampler.stop])

    def set_stops(self, values):
        """Set the probability of stopping, one for all or one per label."""
        values = np.broadcast_to(np.asarray(values, dtype=np.float64), (self.n_labels,))
        if not ((values > 0) & (values < 1)).all():
            raise ValueError("a probability of stopping lies between 0 and 1")
        for label, value in enumerate(values.tolist()):
            self.sampler.set_stop(label, value)

    def resample_parameters(self, uint64_t iteration, *, bint hyper=True, bint stops=True):
        """Draw discounts, strengths and stopping probabilities anew; returns the log joint before that."""
        cdef Totals sums
        cdef double log_joint
        with nogil:
            sums = self.sampler.totals()
            log_joint = self.sampler.log_joint(sums)
            if stops:
                self.sampler.resample_stops(iteration, sums)
            if hyper:
                self.sampler.resample_hyper(iteration, sums)
        return log_joint

    def log_joint(self):
        """The log probability of sites, symbols, seating and refinements of tables given the parameters."""
        return self.sampler.log_joint(self.sampler.totals())

    # ---- moves -------------------------------------------------------------------------------------------

    def start(self, symbols, sites=None):
        """Seat all trees with these symbols of nodes; every node is a site unless flags are given."""
        self.require_seated(False)
        self.put_state(symbols, np.ones(len(self.trees.label)) if sites is None else sites)
        with nogil:
            self.sampler.seat_all()
        self.is_seated = True

    cdef int put_state(self, symbols, sites) except -1:
        symbols = np.asarray(symbols)
        n_nodes = len(self.trees.label)
        if symbols.shape != (n_nodes,) or (symbols < 0).any() or (symbols >= self.n_symbols).any():
            raise ValueError("a node's symbol is not there")
        symbols = np.ascontiguousarray(symbols, dtype=np.int32)
        if (np.array([value for value in self.sampler.symbol_label])[symbols] != self.trees.label).any():
            raise ValueError("a node's symbol is of another label")
        sites = np.asarray(sites)
        if sites.shape != (n_nodes,) or ((sites != 0) & (sites != 1)).any():
            raise ValueError("sites do not fit the trees: one flag is needed for every node")
        roots = self.trees.tree_start[:len(self.trees.tree_start) - 1]
        if (sites[roots] != 1).any():
            raise ValueError("a root is no substitution site")
        copy_flags(sites, self.sampler.is_site)
        copy_symbols(symbols, self.sampler.symbol)
        return 0

    def empty(self):
        """Unseat all trees."""
        self.require_seated(True)
        with nogil:
            self.sampler.unseat_all()
        self.is_seated = False

    def blocked_sweep(self, uint64_t iteration, *, bint joint=False):
        """One Metropolis-Hastings step for every tree: proposals, acceptances and changes."""
        self.require_seated(True)
        cdef SweepCounts counts
        with nogil:
            counts = self.sampler.blocked_sweep(iteration, joint)
        return counts.n_proposed, counts.n_accepted, counts.n_changed

    def local_sweep(self, uint64_t iteration):
        """One Metropolis-Hastings step for every node but the roots: proposals, acceptances and changes."""
        self.require_seated(True)
        cdef SweepCounts counts
        with nogil:
            counts = self.sampler.local_sweep(iteration)
        return counts.n_proposed, counts.n_accepted, counts.n_changed

    # ---- what it knows -----------------------------------------------------------------------------------

    def sites(self):
        """Whether each node is a substitution site."""
        return np.array([value for value in self.sampler.is_site], dtype=np.uint8)

    def symbols(self):
        """The symbol of every node; where it is no site, the one it would have."""
        return np.array([value for value in self.sampler.symbol], dtype=np.int32)

    def symbol_labels(self):
        """The label of every symbol."""
        return np.array([value for value in self.sampler.symbol_label], dtype=np.int32)

    def dishes_of_nodes(self):
        """The dish at every site, -1 elsewhere."""
        return np.array([value for value in self.sampler.dish], dtype=np.int32)

    def parts(self):
        """Rule, left and right of every part: a smaller part, -1 for no child, -2 - symbol for a frontier."""
        cdef index_t number
        table = np.empty((self.sampler.store.parts.size(), 3), dtype=np.int32)
        cdef symbol_t[:, ::1] view = table
        cdef Part* part
        for number in range(view.shape[0]):
            part = &self.sampler.store.parts[number]
            view[number, 0], view[number, 1], view[number, 2] = part.rule, part.left, part.right
        return table

    def dishes(self):
        """Part, root symbol, customers and tables of every dish."""
        cdef index_t number
        table = np.empty((self.sampler.dishes.size(), 4), dtype=np.int32)
        cdef symbol_t[:, ::1] view = table
        cdef Dish* dish
        for number in range(view.shape[0]):
            dish = &self.sampler.dishes[number]
            view[number, 0], view[number, 1] = dish.part, dish.symbol
            view[number, 2], view[number, 3] = dish.tables.n_customers, dish.tables.n_tables
        return table

    def cells(self, kind):
        """The cells of a kind that are in use, with their customers and tables.

        Of ``rule`` and ``base``: rule, subcategories of parent and children (0 where there is none), customers, tables.
        Of ``class`` and ``label_class``: symbol or label, class, customers, tables; of ``word``: rule, customers,
        tables.
        """
        cdef index_t number, cell, n_classes = self.sampler.rules.class_word_base.size()
        cdef RefinedRule* rule
        cdef Tables* tables
        number = KINDS.index(kind)
        rows = []
        for cell in range(<index_t>self.sampler.rules.cells[number].size()):
            tables = &self.sampler.rules.cells[number][cell]
            if tables.n_customers == 0:
                continue
            if number < 2:
                rule = &self.sampler.rules.rule_of_cell[number][cell]
                rows.append((rule.rule, rule.own, rule.left, rule.right, tables.n_customers, tables.n_tables))
            elif number < 4:
                rows.append((cell // n_classes, cell % n_classes, tables.n_customers, tables.n_tables))
            else:
                rows.append((cell, tables.n_customers, tables.n_tables))
        return np.array(rows, dtype=np.int32).reshape(-1, (6, 6, 4, 4, 3)[number])

    def houses(self, kind):
        """Customers, tables, discount and strength of all restaurants of a kind; ``dish`` is that of fragments."""
        cdef vector[House]* houses = &self.sampler.dish_houses
        if kind != "dish":
            houses = &self.sampler.rules.houses[<index_t>KINDS.index(kind)]
        cdef index_t place
        values = np.empty((4, houses.size()))
        cdef double[:, ::1] view = values
        for place in range(view.shape[1]):
            view[0, place], view[1, place] = houses[0][place].n_customers, houses[0][place].n_tables
            view[2, place], view[3, place] = houses[0][place].discount, houses[0][place].strength
        return values

    def word_houses(self):
        """The restaurant of words of every rule, -1 for rules without a class."""
        return np.array([value for value in self.sampler.rules.word_house], dtype=np.int32)

    def counts_fit(self):
        """Whether all counts are what the trees and the tables above ask for."""
        return bool(self.sampler.counts_fit())

    def log_predictives(self):
        """The log predictive probability of the fragment at every site with the counts as they are; 0 elsewhere."""
        cdef symbol_t node
        values = np.zeros(len(self.trees.label))
        cdef double[::1] view = values
        for node in range(view.shape[0]):
            if self.sampler.is_site[node] and self.sampler.dish[node] >= 0:
                view[node] = self.sampler.log_predictive_at(node)
        return values

    # ---- going on ------------------------------------------------------------------------------------------

    def seating(self):
        """All tables.

        Of every kind of restaurant below: rows of what `cells` says of a cell, table size, and number of such tables.
        ``dish``: rows of dish, table size, number of such tables, for dishes without internal nodes; ``refined``: rows
        of dish and table size for the others; ``refinement``: the subcategories of these tables, one after the other.
        """
        cdef index_t number, cell, n_classes = self.sampler.rules.class_word_base.size()
        cdef RefinedRule* rule
        cdef RefinedTable* table
        result = {}
        for number, kind in enumerate(KINDS):
            rows = []
            for cell in range(<index_t>self.sampler.rules.cells[number].size()):
                for entry in self.sampler.rules.cells[number][cell].by_size:
                    if number < 2:
                        rule = &self.sampler.rules.rule_of_cell[number][cell]
                        rows.append((rule.rule, rule.own, rule.left, rule.right, entry.first, entry.second))
                    elif number < 4:
                        rows.append((cell // n_classes, cell % n_classes, entry.first, entry.second))
                    else:
                        rows.append((cell, entry.first, entry.second))
            result[kind] = np.array(rows, dtype=np.int32).reshape(-1, (6, 6, 4, 4, 3)[number])
        plain, refined, refinement = [], [], []
        for cell in range(<index_t>self.sampler.dishes.size()):
            if self.sampler.dishes[cell].part < 0:
                continue
            if not self.sampler.has_internal(self.sampler.dishes[cell]):
                for entry in self.sampler.dishes[cell].tables.by_size:
                    plain.append((cell, entry.first, entry.second))
                continue
            for number in range(<index_t>self.sampler.dishes[cell].refined.size()):
                table = &self.sampler.dishes[cell].refined[number]
                refined.append((cell, table.size))
                refinement.extend([value for value in table.refinement])
        result["dish"] = np.array(plain, dtype=np.int32).reshape(-1, 3)
        result["refined"] = np.array(refined, dtype=np.int32).reshape(-1, 2)
        result["refinement"] = np.array(refinement, dtype=np.int32)
        return result

    def restore(self, symbols, sites, seating):
        """Put back what `symbols`, `sites` and `seating` gave; the arrays are checked against the trees."""
        self.require_seated(False)
        self.put_state(symbols, sites)
        self.sampler.clear()
        self.sampler.name_all()
        try:
            self.seat_dishes(seating)
            for number, kind in enumerate(KINDS):
                self.seat_cells(number, seating[kind])
            self.sampler.rules.tidy()
            if not self.sampler.counts_fit():
                raise ValueError("the tables do not fit the trees")
        except (ValueError, KeyError):
            self.sampler.clear()
            raise
        self.is_seated = True

    cdef int seat_dishes(self, seating) except -1:
        cdef index_t number, first = 0
        cdef symbol_t guest, _table
        cdef RefinedTable table
        cdef Dish* dish
        subcategories = checked_rows(np.reshape(seating["refinement"], (-1, 1)), [0], [MOST_SUBCATEGORIES])[:, 0]
        n_symbols = np.diff([value for value in self.sampler.rules.first_symbol])
        n_dishes = self.sampler.dishes.size()
        n_nodes = len(self.trees.label)
        plain = checked_rows(seating["dish"], [0, 1, 1], [n_dishes, n_nodes + 1, n_nodes + 1])
        refined = checked_rows(seating["refined"], [0, 1], [n_dishes, n_nodes + 1])
        if count_customers(plain, n_dishes).sum() + refined[:, 1].sum() > n_nodes:
            raise ValueError("the tables do not fit the trees")
        for number, size, n_tables in plain.tolist():
            dish = &self.sampler.dishes[number]
            if self.sampler.has_internal(dish[0]):
                raise ValueError("a table has no refinement")
            for _table in range(n_tables):
                for guest in range(size):
                    self.sampler.dish_houses[dish.symbol].grow(dish.tables, guest)
        for number, size in refined.tolist():
            labels = [value for value in self.sampler.internal_labels(number)]
            values = subcategories[first:first + len(labels)]
            if not labels or len(values) != len(labels) or (values < 0).any() or (values >= n_symbols[labels]).any():
                raise ValueError("a table's refinement is not one of its dish")
            first += len(labels)
            table.size = size
            table.refinement = values.tolist()
            dish = &self.sampler.dishes[number]
            dish.refined.push_back(table)
            for guest in range(size):
                self.sampler.dish_houses[dish.symbol].grow(dish.tables, guest)
        if subcategories.shape != (first,):
            raise ValueError("a refinement has no table")
        return 0

    cdef int seat_cells(self, index_t number, rows) except -1:
        cdef index_t n_classes = self.sampler.rules.class_word_base.size()
        cdef symbol_t guest, _table, cell
        cdef RefinedRule rule
        cdef House* house
        trees = self.trees
        n_symbols = np.diff([value for value in self.sampler.rules.first_symbol])
        # A table holds no more guests than there are nodes, and there are no more tables.
        most = [len(trees.label) + 1] * 2
        if number < 2:
            rows = checked_rows(rows, [0, 0, 0, 0, 1, 1], [trees.n_rules, *[MOST_SUBCATEGORIES] * 3, *most])
            for place, label in enumerate((trees.rule_label, trees.rule_left_label, trees.rule_right_label)):
                label = label[rows[:, 0]]
                if (rows[:, place + 1] >= np.where(label >= 0, n_symbols[label], 1)).any():
                    raise ValueError("a rule's subcategory is not there")
            if number == 1 and rows[:, 1].any():
                raise ValueError("a rule's subcategory is not there")
        elif number < 4:
            owners = self.n_symbols if number == 2 else self.n_labels
            rows = checked_rows(rows, [0, 0, 1, 1], [owners, n_classes, *most])
        else:
            rows = checked_rows(rows, [0, 1, 1], [trees.n_rules, *most])
            if n_classes == 0 and len(rows) or (self.word_houses()[rows[:, 0]] < 0).any():
                raise ValueError("a rule without a class has words")
        n_columns = rows.shape[1]
        if count_customers(rows, 1).sum() > len(trees.label):
            raise ValueError("the tables do not fit the trees")
        for row in rows.tolist():
            size, n_tables = row[n_columns - 2], row[n_columns - 1]
            if number < 2:
                rule.rule, rule.own, rule.left, rule.right = row[0], row[1], row[2], row[3]
                cell = self.sampler.rules.cell(<Level><uint8_t>number, rule)
            elif number < 4:
                cell = row[0] * n_classes + row[1]
            else:
                cell = row[0]
            house = &self.sampler.rules.houses[number][self.sampler.rules.house_of(<Level><uint8_t>number, cell)]
            for _table in range(n_tables):
                for guest in range(size):
                    house.grow(self.sampler.rules.cells[number][cell], guest)
        return 0
