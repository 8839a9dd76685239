"""The sampler of Bayesian tree-substitution grammars, with or without insertion: a checked door to
``tsg_sampler.hpp``, which see.

Everything the sampler depends on comes in as arrays and is checked here; everything it knows goes out as
arrays. Same seed, same result, whatever the number of threads.
"""

import numpy as np

from tsgkit.checks import checked_rows, count_customers, require_discounts, require_strengths

from libc.stdint cimport uint8_t, uint64_t
from libcpp cimport bool as cpp_bool
from libcpp.vector cimport vector

from tsgkit._old_restaurant cimport House, Tables
from tsgkit._types cimport index_t, symbol_t
from tsgkit._vectors cimport copy_indices, copy_numbers, copy_symbols

cdef extern from "fragments.hpp" namespace "tsgkit" nogil:
    cdef cppclass Fragment:
        symbol_t rule
        symbol_t left
        symbol_t right
        symbol_t n_above_left
        symbol_t n_above_right
        Tables tables
        cpp_bool is_auxiliary()

    cdef cppclass FragmentStore:
        vector[Fragment] fragments
        symbol_t intern(symbol_t rule, symbol_t left, symbol_t right)
        symbol_t find(symbol_t rule, symbol_t left, symbol_t right)
        size_t n_used()

cdef extern from "tsg_sampler.hpp" namespace "tsgkit" nogil:
    cdef cppclass SweepCounts "tsgkit::TsgSampler::SweepCounts":
        index_t n_proposed
        index_t n_accepted
        index_t n_changed

    cdef cppclass Totals "tsgkit::TsgSampler::Totals":
        vector[index_t] rules
        vector[index_t] frontier
        vector[index_t] internal
        vector[index_t] inserted
        vector[index_t] not_inserted

    cdef cppclass CppSampler "tsgkit::TsgSampler":
        vector[symbol_t] label
        vector[symbol_t] rule
        vector[symbol_t] left
        vector[symbol_t] right
        vector[symbol_t] parent
        vector[index_t] tree_start
        vector[double] rule_probability
        vector[double] rule_log_probability
        vector[symbol_t] rule_label
        vector[symbol_t] rule_left_label
        vector[symbol_t] rule_right_label
        vector[House] houses
        vector[double] stop
        vector[double] log_stop
        vector[double] log_go
        vector[double] foot_probability
        vector[double] foot_log_probability
        vector[double] insert
        vector[double] log_insert
        vector[double] log_no_insert
        vector[uint8_t] state
        vector[symbol_t] dish
        FragmentStore store
        uint64_t seed
        cpp_bool has_insertion
        cpp_bool is_stacked
        index_t n_trees()
        void seat_all()
        void unseat_all()
        SweepCounts blocked_sweep(uint64_t iteration, int batch, int n_threads, double temperature)
        SweepCounts local_sweep(uint64_t iteration, double temperature)
        SweepCounts type_sweep(uint64_t iteration, index_t n_moves, double temperature)
        Totals totals()
        double log_joint(const Totals& sums)
        void resample_stops(uint64_t iteration, const Totals& sums)
        void resample_hyper(uint64_t iteration, const Totals& sums, cpp_bool is_dirichlet)
        void resample_insertions(uint64_t iteration, const Totals& sums)
        void set_stop(size_t symbol, double probability)
        void set_insertion(size_t symbol, double probability)
        symbol_t house_of(const Fragment& fragment)

cdef enum:
    GOES_ON = 0
    SITE = 1
    LEFT_FOOT = 2
    FRONTIER = -1
    FOOT = -3


cdef class TsgSampler:
    """Derivations of known trees under a tree-substitution grammar.

    Parameters
    ----------
    trees : TreeArrays
        The trees and their rules; see `tsgkit.models.rules`.
    seed : int
    """

    cdef CppSampler sampler
    cdef readonly object trees
    cdef bint is_seated

    def __init__(self, trees, uint64_t seed=0):
        trees.validate()
        self.trees = trees
        self.sampler.seed = seed
        copy_symbols(trees.label, self.sampler.label)
        copy_symbols(trees.rule, self.sampler.rule)
        copy_symbols(trees.left, self.sampler.left)
        copy_symbols(trees.right, self.sampler.right)
        copy_symbols(trees.parent, self.sampler.parent)
        copy_indices(trees.tree_start, self.sampler.tree_start)
        copy_symbols(trees.rule_label, self.sampler.rule_label)
        copy_symbols(trees.rule_left_label, self.sampler.rule_left_label)
        copy_symbols(trees.rule_right_label, self.sampler.rule_right_label)
        copy_numbers(trees.rule_probability, self.sampler.rule_probability)
        copy_numbers(np.log(trees.rule_probability), self.sampler.rule_log_probability)
        cdef index_t n_labels = trees.n_labels, symbol
        self.sampler.houses.resize(n_labels)
        self.sampler.stop.assign(n_labels, 0.5)
        self.sampler.log_stop.assign(n_labels, 0.0)
        self.sampler.log_go.assign(n_labels, 0.0)
        for symbol in range(n_labels):
            self.sampler.set_stop(symbol, 0.5)
        self.sampler.foot_probability.assign(trees.n_rules, 0.0)
        self.sampler.foot_log_probability.assign(trees.n_rules, 0.0)
        self.sampler.insert.assign(n_labels, 0.0)
        self.sampler.log_insert.assign(n_labels, 0.0)
        self.sampler.log_no_insert.assign(n_labels, 0.0)

    def allow_insertions(self, foot_probability, bint stacked=False):
        """Let there be auxiliary trees, at first with insertion probabilities of 0.

        Parameters
        ----------
        foot_probability : array of float, one per rule
            The base probability of the rule at the top of an auxiliary tree, with a given child as its foot; 0 for
            rules without a child of their own label.
        stacked : bool
            Whether a foot may be the host of a further insertion.
        """
        self.require_seated(False)
        values = np.array(foot_probability, dtype=np.float64)
        trees = self.trees
        has_foot = (trees.rule_left_label == trees.rule_label) | (trees.rule_right_label == trees.rule_label)
        if values.shape != (trees.n_rules,) or ((values > 0) != has_foot).any() or not (values <= 1).all():
            raise ValueError("a probability is needed for every rule with a foot, and 0 for the others")
        copy_numbers(values, self.sampler.foot_probability)
        copy_numbers(np.log(np.where(has_foot, values, 1.0)), self.sampler.foot_log_probability)
        self.sampler.houses.resize(2 * self.sampler.stop.size())
        self.sampler.has_insertion, self.sampler.is_stacked = True, stacked

    # ---- parameters ------------------------------------------------------------------------------------

    @property
    def n_labels(self):
        return self.sampler.stop.size()

    def parameters(self):
        """The parameters of all labels, a row each, in the order in which `set_parameters` takes them."""
        cdef index_t symbol, n_labels = self.n_labels
        values = np.zeros((6 if self.sampler.has_insertion else 3, n_labels))
        for symbol in range(n_labels):
            values[0, symbol] = self.sampler.houses[symbol].discount
            values[1, symbol] = self.sampler.houses[symbol].strength
            values[2, symbol] = self.sampler.stop[symbol]
            if self.sampler.has_insertion:
                values[3, symbol] = self.sampler.houses[n_labels + symbol].discount
                values[4, symbol] = self.sampler.houses[n_labels + symbol].strength
                values[5, symbol] = self.sampler.insert[symbol]
        return values

    def set_parameters(self, discount=None, strength=None, stop=None, auxiliary_discount=None,
                       auxiliary_strength=None, insertion=None):
        """Set the parameters of all labels; each is a number or an array.

        Discount and strength are those of the restaurants of initial trees, then of auxiliary trees. Labels that no
        auxiliary tree can have at its root keep an insertion probability of 0.
        """
        cdef index_t symbol, n_labels = self.n_labels
        if not self.sampler.has_insertion and not (
                auxiliary_discount is None and auxiliary_strength is None and insertion is None):
            raise ValueError("there are no auxiliary trees")
        for offset, discounts, strengths in (
                (0, discount, strength), (n_labels, auxiliary_discount, auxiliary_strength)):
            self.set_houses(offset, discounts, strengths)
        if stop is not None:
            stop = np.broadcast_to(np.asarray(stop, dtype=np.float64), n_labels)
            if not ((stop > 0) & (stop < 1)).all():
                raise ValueError("a stop probability is not in (0, 1)")
            for symbol in range(n_labels):
                self.sampler.set_stop(symbol, stop[symbol])
        if insertion is not None:
            insertion = np.where(self.can_be_inserted(), np.asarray(insertion, dtype=np.float64), 0.0)
            if not ((insertion >= 0) & (insertion < 1)).all():
                raise ValueError("an insertion probability is not in [0, 1)")
            for node in range(<index_t>self.sampler.state.size() if self.is_seated else 0):
                if self.sampler.state[node] >= LEFT_FOOT and insertion[self.sampler.label[node]] == 0:
                    raise ValueError("an insertion probability is 0, but there are such insertions")
            for symbol in range(n_labels):
                self.sampler.set_insertion(symbol, insertion[symbol])

    cdef set_houses(self, index_t offset, discount, strength):
        cdef index_t symbol, n_labels = self.n_labels
        if discount is not None:
            discount = np.broadcast_to(np.asarray(discount, dtype=np.float64), n_labels)
            require_discounts(discount)
            for symbol in range(n_labels):
                self.sampler.houses[offset + symbol].discount = discount[symbol]
        if strength is not None:
            strength = np.broadcast_to(np.asarray(strength, dtype=np.float64), n_labels)
            require_strengths(strength)
            for symbol in range(n_labels):
                self.sampler.houses[offset + symbol].strength = strength[symbol]

    def can_be_inserted(self):
        """Which labels auxiliary trees can have at their roots."""
        found = np.zeros(self.n_labels, dtype=bool)
        cdef index_t rule
        for rule in range(<index_t>self.sampler.foot_probability.size()):
            if self.sampler.foot_probability[rule] > 0:
                found[self.sampler.rule_label[rule]] = True
        return found

    # ---- derivations -----------------------------------------------------------------------------------

    def start(self, states):
        """Seat all trees with these derivations; roots always are substitution sites.

        Parameters
        ----------
        states : array of int, one per node
            0 inside of an elementary tree, 1 at a substitution site, 2 or 3 at the root of an auxiliary tree whose
            foot is the left (or only) or the right child.
        """
        self.require_seated(False)
        states = np.array(states, dtype=np.uint8)
        if states.shape != (self.sampler.label.size(),):
            raise ValueError("one state is needed for every node")
        states[self.trees.tree_start[:len(self.trees.tree_start) - 1]] = SITE
        self.check_states(states)
        cdef const uint8_t[::1] view = states
        self.sampler.state.assign(&view[0], &view[0] + view.shape[0])
        with nogil:
            self.sampler.seat_all()
        self.is_seated = True

    def check_states(self, states):
        """Refuse insertions where there cannot be any."""
        trees = self.trees
        if (states > LEFT_FOOT + 1).any() or ((states >= LEFT_FOOT).any() and not self.sampler.has_insertion):
            raise ValueError("a node has a state that there is not")
        nodes = np.flatnonzero(states >= LEFT_FOOT)
        feet = np.where(states[nodes] == LEFT_FOOT, trees.left[nodes], trees.right[nodes])
        if (feet < 0).any() or (trees.label[feet] != trees.label[nodes]).any() or (states[feet] == SITE).any() or (
                not self.sampler.is_stacked and (states[feet] != GOES_ON).any()):
            raise ValueError("an insertion has no foot")
        if (self.parameters()[5, trees.label[nodes]] == 0).any() if len(nodes) else False:
            raise ValueError("an insertion has the probability 0")

    def empty(self):
        """Unseat all trees."""
        self.require_seated(True)
        with nogil:
            self.sampler.unseat_all()
        self.is_seated = False

    cdef int require_seated(self, bint wanted) except -1:
        if self.is_seated != wanted:
            raise ValueError("no trees are seated" if wanted else "the trees are seated already")
        return 0

    def states(self):
        """What every node is; see `start`."""
        result = np.empty(self.sampler.state.size(), dtype=np.uint8)
        cdef uint8_t[::1] view = result
        cdef index_t node
        for node in range(view.shape[0]):
            view[node] = self.sampler.state[node]
        return result

    def sites(self):
        """Which nodes are substitution sites."""
        return (self.states() == SITE).astype(np.uint8)

    def blocked_sweep(self, uint64_t iteration, int batch=1, int threads=1, double temperature=1.0):
        """One Metropolis-Hastings step for every tree: proposals, acceptances and changes."""
        if batch < 1 or threads < 1 or not temperature > 0:
            raise ValueError("batch, threads and temperature must be positive")
        self.require_seated(True)
        batch = min(batch, self.sampler.n_trees())
        threads = min(threads, batch)
        cdef SweepCounts counts
        with nogil:
            counts = self.sampler.blocked_sweep(iteration, batch, threads, temperature)
        return counts.n_proposed, counts.n_accepted, counts.n_changed

    def local_sweep(self, uint64_t iteration, double temperature=1.0):
        """One Gibbs step for every node: visits, visits again, and changes."""
        if not temperature > 0:
            raise ValueError("the temperature must be positive")
        self.require_seated(True)
        cdef SweepCounts counts
        with nogil:
            counts = self.sampler.local_sweep(iteration, temperature)
        return counts.n_proposed, counts.n_accepted, counts.n_changed

    def type_sweep(self, uint64_t iteration, index_t n_moves, double temperature=1.0):
        """Cut or join fragments in all their places at once: proposals, acceptances, and acceptances again."""
        if n_moves < 0 or not temperature > 0:
            raise ValueError("the number of moves and the temperature must be positive")
        self.require_seated(True)
        cdef SweepCounts counts
        with nogil:
            counts = self.sampler.type_sweep(iteration, n_moves, temperature)
        return counts.n_proposed, counts.n_accepted, counts.n_changed

    def resample_parameters(self, uint64_t iteration, *, bint hyper=True, bint stops=True, bint dirichlet=False,
                            bint insertions=True):
        """Draw the hyperparameters, stop and insertion probabilities anew; returns the log joint before that."""
        cdef Totals sums
        cdef double log_joint
        with nogil:
            sums = self.sampler.totals()
            log_joint = self.sampler.log_joint(sums)
            if hyper:
                self.sampler.resample_hyper(iteration, sums, dirichlet)
            if stops:
                self.sampler.resample_stops(iteration, sums)
            if insertions and self.sampler.has_insertion:
                self.sampler.resample_insertions(iteration, sums)
        return log_joint

    def log_joint(self):
        """The log probability of derivations and seating given the parameters."""
        return self.sampler.log_joint(self.sampler.totals())

    # ---- what it knows -----------------------------------------------------------------------------------

    def n_fragments(self):
        """The stored fragments, parts of others included, and those that somebody ordered."""
        cdef index_t number, n_ordered = 0
        for number in range(<index_t>self.sampler.store.fragments.size()):
            n_ordered += self.sampler.store.fragments[number].tables.n_customers > 0
        return self.sampler.store.n_used(), n_ordered

    def n_auxiliary(self):
        """The auxiliary trees in use, and how many insertions there are."""
        cdef index_t number, n_types = 0, n_insertions = 0
        cdef Fragment* fragment
        for number in range(<index_t>self.sampler.store.fragments.size()):
            fragment = &self.sampler.store.fragments[number]
            if fragment.tables.n_customers > 0 and fragment.is_auxiliary():
                n_types += 1
                n_insertions += fragment.tables.n_customers
        return n_types, n_insertions

    def insertion_choices(self):
        """For every label, how many insertions there are, and how many more there could be."""
        cdef Totals sums = self.sampler.totals()
        return np.array([sums.inserted, sums.not_inserted], dtype=np.int64)

    def seating(self):
        """All fragments in use and who ordered them, numbered anew so that parts come before wholes.

        Returns
        -------
        fragments : ndarray of int32 with three columns
            Rule, left part, right part; -1 for a frontier or no child, -3 for a foot.
        customers, tables : ndarray of int32, one per fragment
        sizes : ndarray of int32 with three columns
            Fragment, table size, number of such tables.
        dishes : ndarray of int32, one per node
            The fragment at each root of an elementary tree, -1 elsewhere.
        """
        cdef index_t n_stored = self.sampler.store.fragments.size(), place = 0, node
        cdef vector[symbol_t] order, new_number, waiting
        cdef symbol_t top
        new_number.assign(n_stored, -1)
        # Sites come in the order of the corpus, so the numbering depends on the derivations alone.
        for node in range(<index_t>self.sampler.dish.size()):
            if self.sampler.dish[node] >= 0:
                waiting.push_back(self.sampler.dish[node])
                while not waiting.empty():
                    top = waiting.back()
                    if new_number[top] >= 0:
                        waiting.pop_back()
                        continue
                    if self.push_part(self.sampler.store.fragments[top].left, new_number, waiting) or (
                            self.push_part(self.sampler.store.fragments[top].right, new_number, waiting)):
                        continue
                    waiting.pop_back()
                    new_number[top] = order.size()
                    order.push_back(top)
        fragments = np.empty((order.size(), 3), dtype=np.int32)
        customers = np.empty(order.size(), dtype=np.int32)
        tables = np.empty(order.size(), dtype=np.int32)
        cdef symbol_t[:, ::1] fragment_view = fragments
        cdef symbol_t[::1] customer_view = customers, table_view = tables
        cdef Fragment* fragment
        sizes = []
        for place in range(<index_t>order.size()):
            fragment = &self.sampler.store.fragments[order[place]]
            fragment_view[place, 0] = fragment.rule
            fragment_view[place, 1] = new_number[fragment.left] if fragment.left >= 0 else fragment.left
            fragment_view[place, 2] = new_number[fragment.right] if fragment.right >= 0 else fragment.right
            customer_view[place], table_view[place] = fragment.tables.n_customers, fragment.tables.n_tables
            for entry in fragment.tables.by_size:
                sizes.append((place, entry.first, entry.second))
        dishes = np.full(self.sampler.dish.size(), -1, dtype=np.int32)
        cdef symbol_t[::1] dish_view = dishes
        for node in range(<index_t>self.sampler.dish.size()):
            if self.sampler.dish[node] >= 0:
                dish_view[node] = new_number[self.sampler.dish[node]]
        return fragments, customers, tables, np.array(sizes, dtype=np.int32).reshape(-1, 3), dishes

    cdef bint push_part(self, symbol_t part, vector[symbol_t]& new_number, vector[symbol_t]& waiting):
        if part >= 0 and new_number[part] < 0:
            waiting.push_back(part)
            return True
        return False

    def restore(self, states, fragments, sizes, dishes):
        """Put back what `states` and `seating` gave; the arrays are checked against the trees."""
        if self.sampler.store.fragments.size():
            raise ValueError("a sampler can only be restored before its first trees are seated")
        states = np.ascontiguousarray(states, dtype=np.uint8)
        dishes = np.ascontiguousarray(dishes, dtype=np.int32)
        cdef index_t n_nodes = self.sampler.label.size()
        if states.shape != (n_nodes,) or dishes.shape != (n_nodes,) or ((dishes >= 0) != (states != GOES_ON)).any():
            raise ValueError("the states do not fit the trees")
        if not (states[self.trees.tree_start[:len(self.trees.tree_start) - 1]] == SITE).all():
            raise ValueError("a root is no substitution site")
        self.check_states(states)
        cdef const uint8_t[::1] state_view = states
        cdef symbol_t[::1] dish_view = dishes
        self.sampler.state.assign(&state_view[0], &state_view[0] + n_nodes)
        self.sampler.dish.assign(&dish_view[0], &dish_view[0] + n_nodes)
        n_fragments = len(fragments)
        ordered = dishes[dishes >= 0]
        if ordered.max() >= n_fragments:
            raise ValueError("a dish is not there")
        n_orders = np.bincount(ordered, minlength=n_fragments)
        is_used = n_orders > 0
        for place, (rule, left, right) in enumerate(np.asarray(fragments).tolist()):
            if not 0 <= rule < self.sampler.rule_label.size() or not all(
                    part in (FRONTIER, FOOT) or 0 <= part < place for part in (left, right)):
                raise ValueError("a fragment has parts that are not there")
            if FOOT in (left, right) and not self.sampler.has_insertion:
                raise ValueError("a fragment has a foot, but there are no auxiliary trees")
            if self.sampler.store.intern(rule, left, right) != place:
                raise ValueError("a fragment stands twice")
        parts = np.asarray(fragments)[:, 1:]
        is_used[parts[parts >= 0]] = True
        if not is_used.all():
            raise ValueError("a fragment is used nowhere")
        sizes = checked_rows(sizes, [0, 1, 1], [n_fragments, n_nodes + 1, n_nodes + 1])
        if (count_customers(sizes, n_fragments) != n_orders).any():
            raise ValueError("the tables do not fit the derivations")
        self.check_dishes(states, dishes)
        for place, size, number in sizes.tolist():
            self.seat_tables(place, size, number)
        self.is_seated = True

    def seat_tables(self, symbol_t place, symbol_t size, symbol_t number):
        cdef symbol_t _table, guest
        cdef Fragment* fragment = &self.sampler.store.fragments[place]
        cdef House* house = &self.sampler.houses[self.sampler.house_of(fragment[0])]
        for _table in range(number):
            for guest in range(size):
                house.grow(fragment.tables, guest)

    def check_dishes(self, states, dishes):
        """Every dish must be the fragment that the derivation has there."""
        cdef const uint8_t[::1] state = states
        cdef const symbol_t[::1] dish = dishes
        cdef vector[symbol_t] number
        cdef symbol_t own
        cdef symbol_t parts[2]
        cdef symbol_t children[2]
        cdef index_t node, side
        number.assign(state.shape[0], -2)
        for node in range(state.shape[0] - 1, -1, -1):
            children[0], children[1] = self.sampler.left[node], self.sampler.right[node]
            for side in range(2):
                parts[side] = FRONTIER
                if side == state[node] - LEFT_FOOT:
                    parts[side] = FOOT
                elif children[side] >= 0 and state[children[side]] != SITE:
                    parts[side] = number[children[side]]
            own = -2
            if parts[0] != -2 and parts[1] != -2:
                own = self.sampler.store.find(self.sampler.rule[node], parts[0], parts[1])
            if state[node] != GOES_ON and own != dish[node]:
                raise ValueError("a fragment is not what the trees have there")
            number[node] = number[children[state[node] - LEFT_FOOT]] if state[node] >= LEFT_FOOT else own

    def houses(self):
        """The numbers of customers and tables of every label's restaurant; those of auxiliary trees come last."""
        cdef index_t symbol
        totals = np.empty((2, self.sampler.houses.size()), dtype=np.int64)
        for symbol in range(<index_t>self.sampler.houses.size()):
            totals[0, symbol] = self.sampler.houses[symbol].n_customers
            totals[1, symbol] = self.sampler.houses[symbol].n_tables
        return totals
