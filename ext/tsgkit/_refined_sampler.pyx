"""The sampler of substitution sites of refined trees, and of sites and subcategories together.

Stages 2 and 3 of the symbol-refined tree-substitution grammar. What comes in is checked here; the kernels are in
``_refined_state``, ``_refined_seating``, ``_refined_blocked``, ``_refined_local``, ``_refined_type_moves`` and
``_refined_parameters``, the restaurants of rules in ``_backoff``. Same seed, same result.
"""

import numpy as np

from tsgkit._backoff import level_number
from tsgkit._refined_rules import validate_order
from tsgkit._checks import checked_rows, count_customers, require_discounts, require_strengths

from libc.stdint cimport int16_t, int32_t, uint64_t
from libcpp.vector cimport vector

from tsgkit._backoff cimport (
    MOST_SUBCATEGORIES,
    Level,
    RefinedRule,
    copy_rules,
    kinds_of,
    n_dishes_at,
    n_pairs,
    parameters_of,
    restaurants_of,
    set_parameters_of,
    word_level,
)
from tsgkit._refined_blocked cimport blocked_sweep, redraw_trees
from tsgkit._refined_local cimport local_sweep
from tsgkit._refined_parameters cimport (
    RefinedTotals,
    add_up,
    counts_agree,
    log_joint,
    resample_hyper,
    resample_stops,
)
from tsgkit._refined_rules cimport make_cell, open_hashed, rule_of_cell
from tsgkit._refined_seating cimport log_predictive_at, seat_all, unseat_all
from tsgkit._refined_state cimport (
    Dish,
    RefinedTable,
    SweepCounts,
    build_state,
    cache_parameters,
    clear_seating,
    find_all_dishes,
    has_internal_nodes,
    list_internal_labels,
    sort_rules,
)
from tsgkit._refined_type_moves cimport type_sweep
from tsgkit._restaurant cimport InlineVector, Restaurant, SizeCount, Tables, grow, set_stop
from tsgkit._trees cimport copy_tree_numbers, copy_trees, n_trees
from tsgkit._types cimport index_t, symbol_t
from tsgkit._vectors cimport copy_flags, copy_symbols


cdef class RefinedSampler:
    """Substitution sites, and symbols, of the nodes of known trees.

    Parameters
    ----------
    trees : TreeArrays
    symbol_label : array of int, one per refined symbol
        Its label; the symbols of a label come one after the other, in the order of labels.
    levels : tsgkit.models.back_off.Levels
        The back-off of refined rules.
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
    seed : int
    """

    def __init__(
        self, trees, symbol_label, levels, rule_base, rule_class, lexical_share, class_word_base, class_levels=None,
        uint64_t seed=0,
    ):
        symbol_label = np.asarray(symbol_label, dtype=np.int32)
        copy_trees(trees, &self.state.trees)
        copy_rules(
            &self.state.rules, trees, symbol_label, levels, rule_base, rule_class, lexical_share, class_word_base,
            class_levels
        )
        validate_order(symbol_label, levels, trees.n_labels)
        n_symbols = np.bincount(symbol_label, minlength=trees.n_labels)
        if trees.n_rules * max(1, len(class_word_base)) > np.iinfo(np.int32).max:
            raise ValueError("there are too many rules")
        if (n_symbols[trees.label[trees.tree_start[:len(trees.tree_start) - 1]]] != 1).any():
            raise ValueError("roots have no subcategories")
        self.trees, self.kinds, self.state.seed = trees, kinds_of(&self.state.rules, levels), seed
        copy_symbols(symbol_label, self.state.symbol_label)
        with nogil:
            open_hashed(&self.state.rules)
            build_state(&self.state)
        self.set_parameters(np.tile([[0.5], [1.0]], (1, self.n_pairs)))

    cdef int require_usable(self) except -1:
        if self.is_changing:
            raise RuntimeError("the derivations are being changed, or a change ran out of memory half-way")
        return 0

    cdef int require_seated(self, bint wanted) except -1:
        self.require_usable()
        if self.is_seated != wanted:
            raise ValueError("no trees are seated" if wanted else "the trees are seated already")
        return 0

    cdef int require_plain(self) except -1:
        """Refuse sweeps that would not keep insertions, where there are some."""
        return 0

    # ---- parameters ------------------------------------------------------------------------------------

    @property
    def n_labels(self):
        return self.trees.n_labels

    @property
    def n_symbols(self):
        return self.state.symbol_label.size()

    @property
    def n_pairs(self):
        """How many pairs (discount, strength) there are: those of the back-off, and one per symbol."""
        return n_pairs(&self.state.rules) + self.n_symbols

    def parameters(self):
        """Discounts and strengths: of the back-off, as `SplitSampler.parameters` has them, and of G by symbol."""
        return np.concatenate([parameters_of(&self.state.rules), self.restaurants("dish")[2:]], axis=1)

    def set_parameters(self, values):
        """Set what `parameters` gave."""
        cdef index_t symbol, n_shared = n_pairs(&self.state.rules)
        values = np.ascontiguousarray(values, dtype=np.float64)
        if values.shape != (2, self.n_pairs):
            raise ValueError("one discount and one strength are needed for every restaurant")
        require_discounts(values[0])
        require_strengths(values[1])
        set_parameters_of(&self.state.rules, values[:, :n_shared])
        cdef const double[:, ::1] view = values
        for symbol in range(self.n_symbols):
            self.state.restaurants[symbol].discount = view[0, n_shared + symbol]
            self.state.restaurants[symbol].strength = view[1, n_shared + symbol]
        cache_parameters(&self.state)

    def take_parameters(self, values):
        """Set what `SplitSampler.parameters` gave; those of G, which it does not have, stay."""
        values, n_shared = np.asarray(values, dtype=np.float64), n_pairs(&self.state.rules)
        if values.shape != (2, n_shared):
            raise ValueError("one discount and one strength are needed for every restaurant")
        self.set_parameters(np.concatenate([values, self.parameters()[:, n_shared:]], axis=1))

    def stops(self):
        """The probability of stopping at every label."""
        return np.array([value for value in self.state.stops.stop])

    def set_stops(self, values):
        """Set the probability of stopping, one for all or one per label."""
        values = np.broadcast_to(np.asarray(values, dtype=np.float64), (self.n_labels,))
        if not ((values > 0) & (values < 1)).all():
            raise ValueError("a probability of stopping lies between 0 and 1")
        for label, value in enumerate(values.tolist()):
            set_stop(&self.state.stops, label, value)
        cache_parameters(&self.state)

    def resample_parameters(self, uint64_t iteration, *, bint hyper=True, bint stops=True):
        """Resample discounts, strengths and stopping probabilities; returns the log joint before that."""
        cdef RefinedTotals totals
        cdef double result
        self.require_usable()
        with nogil:
            add_up(&self.state, &totals)
            result = log_joint(&self.state, &totals)
            if stops:
                resample_stops(&self.state, iteration, &totals)
            if hyper:
                resample_hyper(&self.state, iteration, &totals)
            cache_parameters(&self.state)
        return result

    def log_joint(self):
        """The log probability of sites, symbols, seating and refinements of tables given the parameters."""
        cdef RefinedTotals totals
        self.require_usable()
        add_up(&self.state, &totals)
        return log_joint(&self.state, &totals)

    # ---- moves -----------------------------------------------------------------------------------------

    def start(self, symbols, sites=None):
        """Seat all trees with these symbols of nodes; every node is a site unless flags are given."""
        self.require_seated(False)
        self.put_state(symbols, np.ones(len(self.trees.label)) if sites is None else sites)
        self.is_changing = True
        with nogil:
            seat_all(&self.state)
        self.is_changing = False
        self.is_seated = True

    cdef int put_state(self, symbols, sites) except -1:
        symbols, sites, n_nodes = np.asarray(symbols), np.asarray(sites), len(self.trees.label)
        if symbols.shape != (n_nodes,) or (symbols < 0).any() or (symbols >= self.n_symbols).any():
            raise ValueError("a node's symbol is out of range")
        symbols = np.ascontiguousarray(symbols, dtype=np.int32)
        if (self.symbol_labels()[symbols] != self.node_labels()).any():
            raise ValueError("a node's symbol is of another label")
        if sites.shape != (n_nodes,) or ((sites != 0) & (sites != 1)).any():
            raise ValueError("sites do not fit the trees: one flag is needed for every node")
        if (sites[self.trees.tree_start[:len(self.trees.tree_start) - 1]] != 1).any():
            raise ValueError("a root is not a substitution site")
        copy_flags(sites, self.state.is_site)
        copy_symbols(symbols, self.state.symbol)
        return 0

    cdef object node_labels(self):
        """The label of every node."""
        return self.trees.label

    def empty(self):
        """Unseat all trees."""
        self.require_seated(True)
        self.is_changing = True
        with nogil:
            unseat_all(&self.state)
        self.is_changing = False
        self.is_seated = False

    def blocked_sweep(
        self, uint64_t iteration, *, bint joint=False, int batch=1, int threads=1, double temperature=1.0
    ):
        """One Metropolis-Hastings step for every tree: proposals, acceptances and changes.

        The proposals of a batch of trees are made together, given the counts without them.
        """
        self.require_plain()
        self.require_seated(True)
        require_positive(batch, threads, temperature)
        batch = min(batch, n_trees(&self.state.trees))
        cdef SweepCounts counts = SweepCounts(0, 0, 0)
        self.is_changing = True
        with nogil:
            blocked_sweep(
                &self.state, iteration, joint, batch, min(threads, batch), temperature, &self.pool, &counts
            )
        self.is_changing = False
        return counts.n_proposed, counts.n_accepted, counts.n_changed

    def redraw(self, uint64_t iteration, trees):
        """Draw new sites and symbols for some trees from the grammar of the others; none is rejected.

        All of them are unseated; then each is drawn, given the others and those drawn before.
        """
        cdef vector[index_t] numbers
        self.require_plain()
        copy_tree_numbers(trees, len(self.trees.tree_start) - 1, numbers)
        self.require_seated(True)
        self.is_changing = True
        with nogil:
            redraw_trees(&self.state, iteration, &numbers, &self.pool)
        self.is_changing = False

    def local_sweep(self, uint64_t iteration, *, double temperature=1.0):
        """One Metropolis-Hastings step for every node but the roots: proposals, acceptances and changes."""
        self.require_plain()
        self.require_seated(True)
        require_positive(1, 1, temperature)
        cdef SweepCounts counts = SweepCounts(0, 0, 0)
        self.is_changing = True
        with nogil:
            local_sweep(&self.state, iteration, temperature, &counts)
        self.is_changing = False
        return counts.n_proposed, counts.n_accepted, counts.n_changed

    def type_sweep(self, uint64_t iteration, index_t n_moves, *, bint joint=False, double temperature=1.0):
        """Cut or join fragments in all their occurrences at once: proposals, acceptances, and acceptances again.

        With `joint`, the symbols of nodes that become sites are sampled as well.
        """
        self.require_seated(True)
        require_positive(1, 1, temperature)
        if n_moves < 0:
            raise ValueError("the number of moves must not be negative")
        cdef SweepCounts counts = SweepCounts(0, 0, 0)
        self.is_changing = True
        self.move_types(iteration, n_moves, joint, temperature, &counts)
        self.is_changing = False
        return counts.n_proposed, counts.n_accepted, counts.n_changed

    cdef int move_types(
        self, uint64_t iteration, index_t n_moves, bint joint, double temperature, SweepCounts* counts
    ) except -1:
        with nogil:
            return type_sweep(&self.state, iteration, n_moves, joint, temperature, NULL, counts)

    # ---- what it knows ---------------------------------------------------------------------------------

    def sites(self):
        """Whether each node is a substitution site."""
        return np.array([value for value in self.state.is_site], dtype=np.uint8)

    def counts(self):
        """The numbers of substitution sites, of dishes, and of refined rules in use at the first level."""
        cdef index_t n_sites = 0, n_rules = 0, number
        for number in range(<index_t>self.state.is_site.size()):
            n_sites += self.state.is_site[number]
        for number in range(<index_t>self.state.rules.levels[0].cells.size()):
            n_rules += self.state.rules.levels[0].cells[number].n_customers > 0
        return n_sites, self.state.dishes.size() - self.state.free_dishes.size(), n_rules

    def symbols(self):
        """The symbol of every node; where it is no site, the one it would have."""
        return np.array([value for value in self.state.symbol], dtype=np.int32)

    def symbol_labels(self):
        """The label of every symbol."""
        return np.array([value for value in self.state.symbol_label], dtype=np.int32)

    def dishes_of_nodes(self):
        """The dish at every site, -1 elsewhere."""
        return np.array([value for value in self.state.dish], dtype=np.int32)

    def fragments(self):
        """Rule, left and right of every fragment: a smaller one, -1 for no child, -2 - symbol for a frontier."""
        cdef index_t number
        table = np.empty((self.state.fragments.fragments.size(), 3), dtype=np.int32)
        cdef symbol_t[:, ::1] view = table
        for number in range(view.shape[0]):
            view[number, 0] = self.state.fragments.fragments[number].rule
            view[number, 1] = self.state.fragments.fragments[number].left
            view[number, 2] = self.state.fragments.fragments[number].right
        return table

    def dishes(self):
        """Fragment, root symbol, customers and tables of every dish."""
        cdef index_t number
        cdef const Dish* dish
        table = np.empty((self.state.dishes.size(), 4), dtype=np.int32)
        cdef symbol_t[:, ::1] view = table
        for number in range(view.shape[0]):
            dish = &self.state.dishes[number]
            view[number, 0], view[number, 1] = dish.fragment, dish.symbol
            view[number, 2], view[number, 3] = dish.tables.n_customers, dish.tables.n_tables
        return table

    def cells(self, kind):
        """The cells of a kind that are in use, with their customers and tables.

        Of rules: rule, context within its label (the parent's subcategory at the first level), subcategories of the
        children (0 where there is none), customers, tables. Of ``class`` and ``label_class``: symbol or label, class,
        customers, tables, and likewise of coarser classes; of ``word``: rule, customers, tables.
        """
        cdef int level = level_number(self.kinds, kind)
        cdef const Tables* tables
        cdef index_t cell
        rows = []
        for cell in range(<index_t>self.state.rules.levels[level].cells.size()):
            tables = &self.state.rules.levels[level].cells[cell]
            if tables.n_customers:
                rows.append((*self.name_of_cell(level, cell), tables.n_customers, tables.n_tables))
        return np.array(rows, dtype=np.int32).reshape(-1, self.n_columns(level) + 2)

    cdef tuple name_of_cell(self, int level, index_t cell):
        """What tells a cell apart from the others of its level."""
        cdef RefinedRule rule
        if level < self.state.rules.n_rule_levels:
            rule = rule_of_cell(&self.state.rules.levels[level], <int32_t>cell)
            return rule.rule, rule.parent, rule.left, rule.right
        if level < word_level(&self.state.rules):
            return divmod(cell, n_dishes_at(&self.state.rules, level))
        return (cell,)

    cdef int n_columns(self, int level) noexcept:
        """How many numbers `name_of_cell` gives."""
        return 4 if level < self.state.rules.n_rule_levels else 2 if level < word_level(&self.state.rules) else 1

    def restaurants(self, kind):
        """Customers, tables, discount and strength of all restaurants of a kind; ``dish`` is that of fragments."""
        cdef index_t number
        cdef const Restaurant* restaurant
        if kind != "dish":
            return restaurants_of(&self.state.rules, level_number(self.kinds, kind))
        values = np.empty((4, self.n_symbols))
        cdef double[:, ::1] view = values
        for number in range(view.shape[1]):
            restaurant = &self.state.restaurants[number]
            view[0, number], view[1, number] = restaurant.n_customers, restaurant.n_tables
            view[2, number], view[3, number] = restaurant.discount, restaurant.strength
        return values

    def word_restaurants(self):
        """The restaurant of words of every rule, -1 for rules without a class."""
        return np.array([value for value in self.state.rules.word_restaurant], dtype=np.int32)

    def counts_agree(self):
        """Whether all counts are what the trees and the tables above order."""
        return bool(counts_agree(&self.state))

    def log_predictives(self):
        """The log predictive probability of the fragment at every site with the counts as they are; 0 elsewhere."""
        cdef symbol_t node
        values = np.zeros(len(self.trees.label))
        cdef double[::1] view = values
        for node in range(view.shape[0]):
            if self.state.is_site[node] and self.state.dish[node] >= 0:
                view[node] = log_predictive_at(&self.state, node)
        return values

    # ---- checkpoints -----------------------------------------------------------------------------------

    def seating(self):
        """All tables.

        Of every kind of restaurant below: rows of what `cells` says of a cell, table size, and number of such tables.
        ``dish``: rows of dish, table size, number of such tables, for dishes without internal nodes; ``refined``: rows
        of dish and table size for the others; ``refinement``: the subcategories of these tables, one after the other.
        """
        cdef index_t cell
        cdef int level
        cdef size_t item
        cdef InlineVector[SizeCount]* by_size
        result = {}
        for level, kind in enumerate(self.kinds):
            rows = []
            for cell in range(<index_t>self.state.rules.levels[level].cells.size()):
                name = self.name_of_cell(level, cell)
                by_size = &self.state.rules.levels[level].cells[cell].by_size
                for item in range(by_size.size()):
                    rows.append((*name, by_size[0][item].size, by_size[0][item].n_tables))
            result[kind] = np.array(rows, dtype=np.int32).reshape(-1, self.n_columns(level) + 2)
        return result | self.seating_of_dishes()

    cdef dict seating_of_dishes(self):
        cdef size_t number, table, item
        cdef InlineVector[SizeCount]* by_size
        # A loop over the vector itself, which is no variable, would copy it first, and could not report a failure.
        cdef const vector[int16_t]* drawn
        plain, refined, refinement = [], [], []
        for number in range(self.state.dishes.size()):
            if self.state.dishes[number].fragment < 0:
                continue
            if not has_internal_nodes(&self.state.dishes[number]):
                by_size = &self.state.dishes[number].tables.by_size
                for item in range(by_size.size()):
                    plain.append((number, by_size[0][item].size, by_size[0][item].n_tables))
                continue
            for table in range(self.state.dishes[number].refined.size()):
                refined.append((number, self.state.dishes[number].refined[table].size))
                drawn = &self.state.dishes[number].refined[table].refinement
                refinement.extend([drawn[0][item] for item in range(drawn.size())])
        return {
            "dish": np.array(plain, dtype=np.int32).reshape(-1, 3),
            "refined": np.array(refined, dtype=np.int32).reshape(-1, 2),
            "refinement": np.array(refinement, dtype=np.int32),
        }

    def restore(self, symbols, sites, seating):
        """Put back what `symbols`, `sites` and `seating` gave; the arrays are checked against the trees."""
        self.require_seated(False)
        self.put_state(symbols, sites)
        clear_seating(&self.state)
        find_all_dishes(&self.state)
        try:
            self.seat_dishes(seating)
            for level, kind in enumerate(self.kinds):
                self.seat_cells(level, seating[kind])
            sort_rules(&self.state)
            if not counts_agree(&self.state):
                raise ValueError("the tables do not fit the trees")
        except (ValueError, KeyError):
            clear_seating(&self.state)
            raise
        self.is_seated = True

    cdef int seat_dishes(self, seating) except -1:
        cdef index_t number, first = 0
        cdef vector[symbol_t] labels
        cdef Dish* dish
        subcategories = checked_rows(np.reshape(seating["refinement"], (-1, 1)), [0], [MOST_SUBCATEGORIES])[:, 0]
        n_symbols = np.bincount(self.symbol_labels(), minlength=self.n_labels)
        n_dishes, n_nodes = self.state.dishes.size(), len(self.trees.label)
        plain = checked_rows(seating["dish"], [0, 1, 1], [n_dishes, n_nodes + 1, n_nodes + 1])
        refined = checked_rows(seating["refined"], [0, 1], [n_dishes, n_nodes + 1])
        if count_customers(plain, n_dishes).sum() + refined[:, 1].sum() > n_nodes:
            raise ValueError("the tables do not fit the trees")
        for number, size, n_tables in plain.tolist():
            dish = &self.state.dishes[number]
            if has_internal_nodes(dish):
                raise ValueError("a table has no refinement")
            seat_tables(&self.state.restaurants[dish.symbol], &dish.tables, size, n_tables)
        for number, size in refined.tolist():
            list_internal_labels(&self.state, number, &labels)
            values = subcategories[first:first + <index_t>labels.size()]
            if labels.empty() or <size_t>len(values) != labels.size() or (values >= n_symbols[list(labels)]).any():
                raise ValueError("a table's refinement is not one of its dish")
            first += labels.size()
            self.add_refined_table(number, size, values.tolist())
        if subcategories.shape != (first,):
            raise ValueError("a refinement has no table")
        return 0

    cdef int add_refined_table(self, index_t number, int32_t size, list values) except -1:
        cdef RefinedTable table
        cdef Dish* dish = &self.state.dishes[number]
        table.size, table.identity, table.frozen_rules = size, 0, 0
        for value in values:  # the conversion of a list copies a vector, which cannot report that memory has run out
            table.refinement.push_back(value)
        dish.refined.push_back(table)
        return seat_tables(&self.state.restaurants[dish.symbol], &dish.tables, size, 1)

    cdef int seat_cells(self, int level, rows) except -1:
        cdef int32_t cell
        cdef RefinedRule rule
        cdef Level* here = &self.state.rules.levels[level]
        rows = self.checked_cells(level, rows)
        for row in rows.tolist():
            if level < self.state.rules.n_rule_levels:
                rule.rule, rule.parent, rule.left, rule.right = row[0], row[1], row[2], row[3]
                cell = make_cell(&self.state.rules, level, &rule)
            elif level < word_level(&self.state.rules):
                cell = row[0] * n_dishes_at(&self.state.rules, level) + row[1]
            else:
                cell = row[0]
            n_tables, size = row.pop(), row.pop()
            seat_tables(&here.restaurants[here.restaurant_of_cell[cell]], &here.cells[cell], size, n_tables)
        return 0

    def checked_cells(self, int level, rows):
        """Rows of cells and tables of a level, refused where they do not fit the trees."""
        cdef index_t n_rule_levels = self.state.rules.n_rule_levels
        cdef const vector[symbol_t]* first_context
        cdef size_t number
        trees = self.trees
        # A table holds no more customers than there are nodes, and there are no more tables.
        most = [len(trees.label) + 1] * 2
        if level < n_rule_levels:
            rows = checked_rows(rows, [0, 0, 0, 0, 1, 1], [trees.n_rules, *[MOST_SUBCATEGORIES] * 3, *most])
            first_context = &self.state.rules.levels[level].first_context
            n_contexts = np.diff([first_context[0][number] for number in range(first_context.size())])
            n_symbols = np.bincount(self.symbol_labels(), minlength=self.n_labels)
            for column, (label, n_values) in enumerate((
                (trees.rule_label, n_contexts), (trees.rule_left_label, n_symbols),
                (trees.rule_right_label, n_symbols),
            )):
                label = label[rows[:, 0]]
                if (rows[:, column + 1] >= np.where(label >= 0, n_values[label], 1)).any():
                    raise ValueError("a rule's subcategory is out of range")
        elif level < word_level(&self.state.rules):
            n_rows = self.n_symbols if level == n_rule_levels else self.n_labels
            rows = checked_rows(rows, [0, 0, 1, 1], [n_rows, n_dishes_at(&self.state.rules, level), *most])
        else:
            rows = checked_rows(rows, [0, 1, 1], [trees.n_rules, *most])
            if (self.word_restaurants()[rows[:, 0]] < 0).any():
                raise ValueError("a rule without a class has words")
        if count_customers(rows, 1).sum() > len(trees.label):
            raise ValueError("the tables do not fit the trees")
        return rows


cdef int require_positive(int batch, int threads, double temperature) except -1:
    if batch < 1 or threads < 1 or not temperature > 0:
        raise ValueError("batch, threads and temperature must be positive")
    return 0


cdef int seat_tables(Restaurant* restaurant, Tables* tables, int32_t size, int32_t n_tables) except -1:
    """Add tables of a size to a dish."""
    cdef int32_t _table, n_customers
    for _table in range(n_tables):
        for n_customers in range(size):
            grow(restaurant, tables, n_customers)
    return 0
