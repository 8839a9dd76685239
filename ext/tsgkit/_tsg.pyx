"""The sampler of Bayesian tree-substitution grammars: a checked door to ``tsg_sampler.hpp``, which see.

Everything the sampler depends on comes in as arrays and is checked here; everything it knows goes out as
arrays. Same seed, same result, whatever the number of threads.
"""

import numpy as np

from libc.stdint cimport uint8_t, uint64_t
from libcpp cimport bool as cpp_bool
from libcpp.pair cimport pair
from libcpp.vector cimport vector

from tsgkit._types cimport index_t, symbol_t, weight_t

cdef extern from "restaurant.hpp" namespace "tsgkit" nogil:
    cdef cppclass Tables:
        symbol_t n_customers
        symbol_t n_tables
        vector[pair[symbol_t, symbol_t]] by_size
        void grow(symbol_t size)

    cdef cppclass House:
        double discount
        double strength
        index_t n_customers
        index_t n_tables
        void grow(Tables& tables, symbol_t size)

cdef extern from "fragments.hpp" namespace "tsgkit" nogil:
    cdef cppclass Fragment:
        symbol_t rule
        symbol_t left
        symbol_t right
        symbol_t n_above_left
        symbol_t n_above_right
        Tables tables

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
        vector[uint8_t] is_site
        vector[symbol_t] dish
        FragmentStore store
        uint64_t seed
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
        void set_stop(size_t symbol, double probability)


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
        problem = trees.what_is_wrong()
        if problem:
            raise ValueError(problem)
        self.trees = trees
        self.sampler.seed = seed
        copy_symbols(trees.label, &self.sampler.label)
        copy_symbols(trees.rule, &self.sampler.rule)
        copy_symbols(trees.left, &self.sampler.left)
        copy_symbols(trees.right, &self.sampler.right)
        copy_symbols(trees.parent, &self.sampler.parent)
        copy_indices(trees.tree_start, &self.sampler.tree_start)
        copy_symbols(trees.rule_label, &self.sampler.rule_label)
        copy_symbols(trees.rule_left_label, &self.sampler.rule_left_label)
        copy_symbols(trees.rule_right_label, &self.sampler.rule_right_label)
        copy_numbers(trees.rule_probability, &self.sampler.rule_probability)
        copy_numbers(np.log(trees.rule_probability), &self.sampler.rule_log_probability)
        cdef index_t n_labels = trees.n_labels, symbol
        self.sampler.houses.resize(n_labels)
        self.sampler.stop.assign(n_labels, 0.5)
        self.sampler.log_stop.assign(n_labels, 0.0)
        self.sampler.log_go.assign(n_labels, 0.0)
        for symbol in range(n_labels):
            self.sampler.set_stop(symbol, 0.5)

    # ---- parameters ------------------------------------------------------------------------------------

    @property
    def n_labels(self):
        return self.sampler.houses.size()

    def parameters(self):
        """The discounts, strengths and stop probabilities of all labels."""
        cdef index_t symbol
        values = np.empty((3, self.sampler.houses.size()))
        for symbol in range(<index_t>self.sampler.houses.size()):
            values[0, symbol] = self.sampler.houses[symbol].discount
            values[1, symbol] = self.sampler.houses[symbol].strength
            values[2, symbol] = self.sampler.stop[symbol]
        return values

    def set_parameters(self, discount=None, strength=None, stop=None):
        """Set the parameters of all labels; each is a number or an array."""
        n_labels = self.sampler.houses.size()
        cdef index_t symbol
        if discount is not None:
            discount = np.broadcast_to(np.asarray(discount, dtype=np.float64), n_labels)
            if not ((discount >= 0) & (discount < 1)).all():
                raise ValueError("a discount is not in [0, 1)")
            for symbol in range(n_labels):
                self.sampler.houses[symbol].discount = discount[symbol]
        if strength is not None:
            strength = np.broadcast_to(np.asarray(strength, dtype=np.float64), n_labels)
            if not ((strength > 0) & np.isfinite(strength)).all():
                raise ValueError("a strength is not a positive number")
            for symbol in range(n_labels):
                self.sampler.houses[symbol].strength = strength[symbol]
        if stop is not None:
            stop = np.broadcast_to(np.asarray(stop, dtype=np.float64), n_labels)
            if not ((stop > 0) & (stop < 1)).all():
                raise ValueError("a stop probability is not in (0, 1)")
            for symbol in range(n_labels):
                self.sampler.set_stop(symbol, stop[symbol])

    # ---- derivations -----------------------------------------------------------------------------------

    def start(self, sites):
        """Seat all trees with these substitution sites; roots always are.

        Parameters
        ----------
        sites : array of bool, one per node
        """
        self.require_seated(False)
        sites = np.array(sites, dtype=np.uint8)
        if sites.shape != (self.sampler.label.size(),) or (sites > 1).any():
            raise ValueError("one flag is needed for every node")
        sites[self.trees.tree_start[:len(self.trees.tree_start) - 1]] = 1
        cdef const uint8_t[::1] view = sites
        self.sampler.is_site.assign(&view[0], &view[0] + view.shape[0])
        with nogil:
            self.sampler.seat_all()
        self.is_seated = True

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

    def sites(self):
        """Which nodes are substitution sites."""
        result = np.empty(self.sampler.is_site.size(), dtype=np.uint8)
        cdef uint8_t[::1] view = result
        cdef index_t node
        for node in range(view.shape[0]):
            view[node] = self.sampler.is_site[node]
        return result

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
        """One Gibbs step for every site: visits, visits again, and flips."""
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

    def resample_parameters(self, uint64_t iteration, *, bint hyper=True, bint stops=True, bint dirichlet=False):
        """Draw the hyperparameters and stop probabilities anew; returns the log joint before that."""
        cdef Totals sums
        cdef double log_joint
        with nogil:
            sums = self.sampler.totals()
            log_joint = self.sampler.log_joint(sums)
            if hyper:
                self.sampler.resample_hyper(iteration, sums, dirichlet)
            if stops:
                self.sampler.resample_stops(iteration, sums)
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

    def seating(self):
        """All fragments in use and who ordered them, numbered anew so that parts come before wholes.

        Returns
        -------
        fragments : ndarray of int32 with three columns
            Rule, left part, right part; -1 for a frontier or no child.
        customers, tables : ndarray of int32, one per fragment
        sizes : ndarray of int32 with three columns
            Fragment, table size, number of such tables.
        dishes : ndarray of int32, one per node
            The fragment below each substitution site, -1 elsewhere.
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
            fragment_view[place, 1] = new_number[fragment.left] if fragment.left >= 0 else -1
            fragment_view[place, 2] = new_number[fragment.right] if fragment.right >= 0 else -1
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

    def restore(self, sites, fragments, sizes, dishes):
        """Put back what `sites` and `seating` gave; the arrays are checked against the trees."""
        if self.sampler.store.fragments.size():
            raise ValueError("a sampler can only be restored before its first trees are seated")
        sites = np.ascontiguousarray(sites, dtype=np.uint8)
        dishes = np.ascontiguousarray(dishes, dtype=np.int32)
        cdef index_t n_nodes = self.sampler.label.size()
        if sites.shape != (n_nodes,) or dishes.shape != (n_nodes,) or (sites > 1).any() or (
                (dishes >= 0) != (sites == 1)).any():
            raise ValueError("the sites do not fit the trees")
        if not sites[self.trees.tree_start[:len(self.trees.tree_start) - 1]].all():
            raise ValueError("a root is no substitution site")
        cdef const uint8_t[::1] site_view = sites
        cdef symbol_t[::1] dish_view = dishes
        self.sampler.is_site.assign(&site_view[0], &site_view[0] + n_nodes)
        self.sampler.dish.assign(&dish_view[0], &dish_view[0] + n_nodes)
        n_fragments = len(fragments)
        ordered = dishes[dishes >= 0]
        if ordered.max() >= n_fragments:
            raise ValueError("a dish is not there")
        n_orders = np.bincount(ordered, minlength=n_fragments)
        is_used = n_orders > 0
        for place, (rule, left, right) in enumerate(np.asarray(fragments).tolist()):
            if not (0 <= rule < self.sampler.rule_label.size() and -1 <= left < place and -1 <= right < place):
                raise ValueError("a fragment has parts that are not there")
            if self.sampler.store.intern(rule, left, right) != place:
                raise ValueError("a fragment stands twice")
        parts = np.asarray(fragments)[:, 1:]
        is_used[parts[parts >= 0]] = True
        if not is_used.all():
            raise ValueError("a fragment is used nowhere")
        n_guests = np.zeros(n_fragments, dtype=np.int64)
        for place, size, number in np.asarray(sizes).tolist():
            if not (0 <= place < n_fragments and size > 0 and number > 0):
                raise ValueError("a table has no guests")
            n_guests[place] += size * number
        if (n_guests != n_orders).any():
            raise ValueError("the tables do not fit the derivations")
        self.check_dishes(sites, dishes)
        for place, size, number in np.asarray(sizes).tolist():
            self.seat_tables(place, size, number)
        self.is_seated = True

    def seat_tables(self, symbol_t place, symbol_t size, symbol_t number):
        cdef symbol_t _table, guest
        cdef Fragment* fragment = &self.sampler.store.fragments[place]
        cdef House* house = &self.sampler.houses[self.sampler.rule_label[fragment.rule]]
        for _table in range(number):
            for guest in range(size):
                house.grow(fragment.tables, guest)

    def check_dishes(self, sites, dishes):
        """Every dish must be the fragment that the sites cut out there."""
        cdef const uint8_t[::1] site = sites
        cdef const symbol_t[::1] dish = dishes
        cdef vector[symbol_t] number
        cdef symbol_t left, right
        cdef index_t node
        number.assign(site.shape[0], -2)
        for node in range(site.shape[0] - 1, -1, -1):
            left = right = -1
            if self.sampler.left[node] >= 0 and not site[self.sampler.left[node]]:
                left = number[self.sampler.left[node]]
            if self.sampler.right[node] >= 0 and not site[self.sampler.right[node]]:
                right = number[self.sampler.right[node]]
            if left != -2 and right != -2:
                number[node] = self.sampler.store.find(self.sampler.rule[node], left, right)
            if site[node] and number[node] != dish[node]:
                raise ValueError("a fragment is not what the trees have there")

    def houses(self):
        """The numbers of customers and tables of every label's restaurant."""
        cdef index_t symbol
        totals = np.empty((2, self.sampler.houses.size()), dtype=np.int64)
        for symbol in range(<index_t>self.sampler.houses.size()):
            totals[0, symbol] = self.sampler.houses[symbol].n_customers
            totals[1, symbol] = self.sampler.houses[symbol].n_tables
        return totals


cdef void copy_symbols(values, vector[symbol_t]* target) except *:
    cdef const symbol_t[::1] view = np.ascontiguousarray(values, dtype=np.int32)
    target.resize(view.shape[0])
    cdef index_t place
    for place in range(view.shape[0]):
        target[0][place] = view[place]


cdef void copy_indices(values, vector[index_t]* target) except *:
    cdef const index_t[::1] view = np.ascontiguousarray(values, dtype=np.int64)
    target.resize(view.shape[0])
    cdef index_t place
    for place in range(view.shape[0]):
        target[0][place] = view[place]


cdef void copy_numbers(values, vector[double]* target) except *:
    cdef const weight_t[::1] view = np.ascontiguousarray(values, dtype=np.float64)
    target.resize(view.shape[0])
    cdef index_t place
    for place in range(view.shape[0]):
        target[0][place] = view[place]
