"""The sampler of Bayesian tree-substitution grammars, with or without insertion, as Python sees it.

Everything the sampler depends on comes in as arrays and is checked here; everything it knows goes out as arrays. The
state is described in ``_tsg_state.pxd``, the moves in `_tsg_blocked`, `_tsg_local`, `_tsg_type_moves` and
`_tsg_parameters`. Same seed, same result, whatever the number of threads.
"""

import numpy as np

from tsgkit._checks import checked_rows, count_customers, require_discounts, require_strengths

from libc.stdint cimport int32_t, uint8_t, uint64_t
from libcpp.vector cimport vector

from tsgkit._codes cimport FOOT, FRONTIER, INTERNAL, LEFT_FOOT, MISSING, RIGHT_FOOT, SITE
from tsgkit._fragments cimport Fragment, find_fragment, intern_fragment, is_auxiliary, start_fragments
from tsgkit._restaurant cimport Restaurant, empty_restaurant, grow, start_stops
from tsgkit._trees cimport copy_tree_numbers, copy_trees, n_nodes, n_trees
from tsgkit._tsg_blocked cimport blocked_sweep, redraw_trees
from tsgkit._tsg_local cimport local_sweep
from tsgkit._tsg_parameters cimport (
    Totals, count_totals, log_joint, resample_hyperparameters, resample_insertions, resample_stops,
)
from tsgkit._tsg_state cimport (
    SweepCounts, TsgState, n_labels, seat_all, set_insertion, set_stop_probability, unseat_all,
)
from tsgkit._tsg_trees cimport FrozenBatch, freeze_batch, replace_batch, unfreeze_batch
from tsgkit._tsg_type_moves cimport type_sweep
from tsgkit._types cimport index_t, symbol_t
from tsgkit._vectors cimport copy_flags, copy_numbers, copy_symbols, fill
from tsgkit._worker_pool cimport WorkerPool


cdef class TsgSampler:
    """Derivations of known trees under a tree-substitution grammar.

    Parameters
    ----------
    trees : TreeArrays
        The trees and their rules; see `tsgkit.models.rules`.
    seed : int
    """

    cdef TsgState tsg
    cdef WorkerPool pool
    cdef readonly object trees
    cdef bint is_seated
    cdef FrozenBatch frozen
    cdef bint is_changing    # stays true where a change of the derivations was interrupted by an exception

    def __init__(self, trees, uint64_t seed=0):
        copy_trees(trees, &self.tsg.trees)
        self.trees = trees
        self.tsg.seed = seed
        self.tsg.epoch = 1
        self.tsg.has_insertion = self.tsg.is_stacked = False
        copy_numbers(trees.rule_probability, self.tsg.rule_probability)
        copy_numbers(np.log(trees.rule_probability), self.tsg.rule_log_probability)
        fill(self.tsg.foot_probability, trees.n_rules, 0.0)
        fill(self.tsg.foot_log_probability, trees.n_rules, 0.0)
        fill(self.tsg.restaurants, trees.n_labels, empty_restaurant())
        start_stops(&self.tsg.stops, trees.n_labels)
        fill(self.tsg.insertion, trees.n_labels, 0.0)
        fill(self.tsg.log_insertion, trees.n_labels, 0.0)
        fill(self.tsg.log_no_insertion, trees.n_labels, 0.0)
        start_fragments(&self.tsg.fragments, False, trees.n_rules)

    def allow_insertions(self, foot_probability, bint stacked=False):
        """Let there be auxiliary trees, at first with insertion probabilities of 0.

        Parameters
        ----------
        foot_probability : array of float, one per rule
            The base probability of the rule at the root of an auxiliary tree, with a given child as its foot; 0 for
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
        copy_numbers(values, self.tsg.foot_probability)
        copy_numbers(np.log(np.where(has_foot, values, 1.0)), self.tsg.foot_log_probability)
        self.tsg.restaurants.resize(2 * n_labels(&self.tsg), empty_restaurant())
        self.tsg.has_insertion, self.tsg.is_stacked = True, stacked

    # ---- parameters ------------------------------------------------------------------------------------

    @property
    def n_labels(self):
        return n_labels(&self.tsg)

    def parameters(self):
        """The parameters of all labels, a row each, in the order in which `set_parameters` takes them."""
        cdef index_t label, labels = n_labels(&self.tsg)
        values = np.zeros((6 if self.tsg.has_insertion else 3, labels))
        cdef double[:, ::1] view = values
        for label in range(labels):
            view[0, label] = self.tsg.restaurants[label].discount
            view[1, label] = self.tsg.restaurants[label].strength
            view[2, label] = self.tsg.stops.stop[label]
            if self.tsg.has_insertion:
                view[3, label] = self.tsg.restaurants[labels + label].discount
                view[4, label] = self.tsg.restaurants[labels + label].strength
                view[5, label] = self.tsg.insertion[label]
        return values

    def set_parameters(self, discount=None, strength=None, stop=None, auxiliary_discount=None,
                       auxiliary_strength=None, insertion=None):
        """Set the parameters of all labels; each is a number or an array.

        Discount and strength are those of the restaurants of initial trees, then of auxiliary trees. Labels that no
        auxiliary tree can have at its root keep an insertion probability of 0.
        """
        cdef index_t label, labels = n_labels(&self.tsg)
        if not self.tsg.has_insertion and not (
                auxiliary_discount is None and auxiliary_strength is None and insertion is None):
            raise ValueError("there are no auxiliary trees")
        self.set_restaurants(0, discount, strength)
        self.set_restaurants(labels, auxiliary_discount, auxiliary_strength)
        if stop is not None:
            stop = np.broadcast_to(np.asarray(stop, dtype=np.float64), labels)
            if not ((stop > 0) & (stop < 1)).all():
                raise ValueError("a stop probability is not in (0, 1)")
            for label in range(labels):
                set_stop_probability(&self.tsg, label, stop[label])
        if insertion is not None:
            insertion = np.where(self.can_be_inserted(), np.asarray(insertion, dtype=np.float64), 0.0)
            if not ((insertion >= 0) & (insertion < 1)).all():
                raise ValueError("an insertion probability is not in [0, 1)")
            if self.is_seated and (insertion[self.trees.label[self.states() >= LEFT_FOOT]] == 0).any():
                raise ValueError("an insertion probability is 0, but there are such insertions")
            for label in range(labels):
                set_insertion(&self.tsg, label, insertion[label])

    cdef int set_restaurants(self, index_t offset, discount, strength) except -1:
        cdef index_t label, labels = n_labels(&self.tsg)
        if discount is not None:
            discount = np.broadcast_to(np.asarray(discount, dtype=np.float64), labels)
            require_discounts(discount)
            for label in range(labels):
                self.tsg.restaurants[offset + label].discount = discount[label]
        if strength is not None:
            strength = np.broadcast_to(np.asarray(strength, dtype=np.float64), labels)
            require_strengths(strength)
            for label in range(labels):
                self.tsg.restaurants[offset + label].strength = strength[label]
        return 0

    def can_be_inserted(self):
        """Which labels auxiliary trees can have at their roots."""
        cdef index_t rule
        found = np.zeros(n_labels(&self.tsg), dtype=bool)
        for rule in range(<index_t>self.tsg.foot_probability.size()):
            if self.tsg.foot_probability[rule] > 0:
                found[self.tsg.trees.rule_label[rule]] = True
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
        if states.shape != (n_nodes(&self.tsg.trees),):
            raise ValueError("one state is needed for every node")
        states[self.trees.tree_start[:n_trees(&self.tsg.trees)]] = SITE
        self.validate_states(states)
        copy_flags(states, self.tsg.state)
        self.is_changing = True
        with nogil:
            seat_all(&self.tsg)
        self.is_changing, self.is_seated = False, True

    cdef int validate_states(self, states) except -1:
        """Refuse insertions where there cannot be any."""
        trees = self.trees
        if (states > RIGHT_FOOT).any() or ((states >= LEFT_FOOT).any() and not self.tsg.has_insertion):
            raise ValueError("the state of a node is out of range")
        nodes = np.flatnonzero(states >= LEFT_FOOT)
        if not len(nodes):
            return 0
        feet = np.where(states[nodes] == LEFT_FOOT, trees.left[nodes], trees.right[nodes])
        if (feet < 0).any() or (trees.label[feet] != trees.label[nodes]).any() or (states[feet] == SITE).any() or (
                not self.tsg.is_stacked and (states[feet] != INTERNAL).any()):
            raise ValueError("an insertion has no foot")
        if (self.parameters()[5, trees.label[nodes]] == 0).any():
            raise ValueError("an insertion has the probability 0")
        return 0

    def empty(self):
        """Unseat all trees."""
        self.require_seated(True)
        self.is_changing = True
        with nogil:
            unseat_all(&self.tsg)
        self.is_changing = self.is_seated = False

    cdef int require_seated(self, bint wanted) except -1:
        self.require_usable()
        if not self.frozen.trees.empty():
            raise ValueError("some trees are frozen")
        if self.is_seated != wanted:
            raise ValueError("no trees are seated" if wanted else "the trees are seated already")
        return 0

    cdef int require_usable(self) except -1:
        if self.is_changing:
            raise RuntimeError("the derivations are being changed, or a change ran out of memory half-way")
        return 0

    def states(self):
        """The state of every node; see `start`."""
        result = np.empty(self.tsg.state.size(), dtype=np.uint8)
        cdef uint8_t[::1] view = result
        cdef index_t node
        for node in range(view.shape[0]):
            view[node] = self.tsg.state[node]
        return result

    def sites(self):
        """Which nodes are substitution sites."""
        return (self.states() == SITE).astype(np.uint8)

    def blocked_sweep(self, uint64_t iteration, int batch=1, int threads=1, double temperature=1.0):
        """One Metropolis-Hastings step for every tree: proposals, acceptances and changes."""
        if batch < 1 or threads < 1 or not temperature > 0:
            raise ValueError("batch, threads and temperature must be positive")
        self.require_seated(True)
        batch = min(batch, n_trees(&self.tsg.trees))
        threads = min(threads, batch)
        cdef SweepCounts counts
        self.is_changing = True
        with nogil:
            blocked_sweep(&self.tsg, iteration, batch, threads, temperature, &self.pool, &counts)
        self.is_changing = False
        return counts.n_proposed, counts.n_accepted, counts.n_changed

    def redraw(self, uint64_t iteration, trees, int batch=1, int threads=1):
        """Draw new derivations for some trees from the grammar of the others; none is rejected.

        All of them are unseated; then each is drawn, given the others and those drawn before, `batch` at a time.
        """
        cdef vector[index_t] numbers
        copy_tree_numbers(trees, n_trees(&self.tsg.trees), numbers)
        if batch < 1 or threads < 1:
            raise ValueError("batch and threads must be positive")
        self.require_seated(True)
        threads = min(threads, batch)
        self.is_changing = True
        with nogil:
            redraw_trees(&self.tsg, iteration, &numbers, batch, threads, &self.pool)
        self.is_changing = False

    # ---- trees that are not known ------------------------------------------------------------------------

    def freeze(self, uint64_t iteration, trees):
        """Unseat some trees, until `replace` or `unfreeze`: `seating` and `restaurants` are without them then."""
        self.require_seated(True)
        if self.tsg.has_insertion:
            raise ValueError("trees with insertions are not replaced")
        copy_tree_numbers(trees, n_trees(&self.tsg.trees), self.frozen.trees)
        self.is_changing = True
        with nogil:
            freeze_batch(&self.tsg, iteration, &self.frozen)
        self.is_changing = False

    def unfreeze(self):
        """Seat the trees that are frozen, if any are, as they were."""
        self.require_usable()
        self.is_changing = True
        with nogil:
            unfreeze_batch(&self.tsg, &self.frozen)
        self.is_changing = False

    def replace(self, uint64_t iteration, proposals, states, double temperature=1.0):
        """Accept or reject a new tree, with its derivation, for every tree that is frozen.

        Parameters
        ----------
        iteration : int
        proposals : TreeArrays
            Over the same rules, drawn from the grammar of the present counts; in the order of the frozen trees.
        states : array of int, one per node of the proposals
        temperature : float

        Returns
        -------
        n_proposed, n_accepted, n_changed : int
        """
        cdef index_t first_new = n_trees(&self.tsg.trees)
        cdef SweepCounts counts
        self.require_usable()
        states = np.ascontiguousarray(states, dtype=np.uint8)
        if proposals.n_trees != self.frozen.trees.size() or proposals.n_rules != self.trees.n_rules or (
                proposals.rule_label is not self.trees.rule_label):
            raise ValueError("the proposals are not those of the frozen trees")
        proposals.validate()
        if not temperature > 0 or states.shape != (len(proposals.label),) or (states > SITE).any() or (
                states[proposals.tree_start[:proposals.n_trees]] != SITE).any():
            raise ValueError("the states do not fit the proposals")
        self.is_changing = True
        self.append(proposals, states)
        with nogil:
            replace_batch(&self.tsg, iteration, &self.frozen, first_new, temperature, &counts)
        self.trees = self.present_trees()
        self.is_changing = False
        return counts.n_proposed, counts.n_accepted, counts.n_changed

    cdef int append(self, proposals, states) except -1:
        cdef symbol_t first = n_nodes(&self.tsg.trees)
        for label, rule, left, right, parent, state in zip(
                proposals.label.tolist(), proposals.rule.tolist(), proposals.left.tolist(), proposals.right.tolist(),
                proposals.parent.tolist(), states.tolist(), strict=True):
            self.tsg.trees.label.push_back(label)
            self.tsg.trees.rule.push_back(rule)
            self.tsg.trees.left.push_back(left + first if left >= 0 else -1)
            self.tsg.trees.right.push_back(right + first if right >= 0 else -1)
            self.tsg.trees.parent.push_back(parent + first if parent >= 0 else -1)
            self.tsg.state.push_back(state)
            self.tsg.dish.push_back(-1)
        for start in proposals.tree_start[1:].tolist():
            self.tsg.trees.tree_start.push_back(first + start)
        return 0

    cdef object present_trees(self):
        """The trees as they are now, over the rules that they always had."""
        names = ("label", "rule", "left", "right", "parent")
        columns = np.empty((len(names), n_nodes(&self.tsg.trees)), dtype=np.int32)
        cdef symbol_t[:, ::1] view = columns
        cdef index_t node, tree
        for node in range(view.shape[1]):
            view[0, node], view[1, node] = self.tsg.trees.label[node], self.tsg.trees.rule[node]
            view[2, node], view[3, node] = self.tsg.trees.left[node], self.tsg.trees.right[node]
            view[4, node] = self.tsg.trees.parent[node]
        starts = np.array([self.tsg.trees.tree_start[tree] for tree in range(n_trees(&self.tsg.trees) + 1)])
        return self.trees.with_nodes(**dict(zip(names, columns, strict=True)), tree_start=starts.astype(np.int64))

    # ---- single nodes and fragments ----------------------------------------------------------------------

    def local_sweep(self, uint64_t iteration, double temperature=1.0):
        """One Gibbs step for every node: visits, visits again, and changes."""
        if not temperature > 0:
            raise ValueError("the temperature must be positive")
        self.require_seated(True)
        cdef SweepCounts counts
        self.is_changing = True
        with nogil:
            local_sweep(&self.tsg, iteration, temperature, &counts)
        self.is_changing = False
        return counts.n_proposed, counts.n_accepted, counts.n_changed

    def type_sweep(self, uint64_t iteration, index_t n_moves, double temperature=1.0):
        """Cut or join fragments in all their occurrences at once: proposals, acceptances, and acceptances again."""
        if n_moves < 0 or not temperature > 0:
            raise ValueError("the number of moves and the temperature must be positive")
        self.require_seated(True)
        cdef SweepCounts counts
        self.is_changing = True
        with nogil:
            type_sweep(&self.tsg, iteration, n_moves, temperature, &counts)
        self.is_changing = False
        return counts.n_proposed, counts.n_accepted, counts.n_changed

    def resample_parameters(self, uint64_t iteration, *, bint hyper=True, bint stops=True, bint dirichlet=False,
                            bint insertions=True):
        """Resample hyperparameters, stop and insertion probabilities; returns the log joint before that."""
        cdef Totals totals
        cdef double result
        self.require_usable()
        with nogil:
            count_totals(&self.tsg, &totals)
            result = log_joint(&self.tsg, &totals)
            if hyper:
                resample_hyperparameters(&self.tsg, iteration, &totals, dirichlet)
            if stops:
                resample_stops(&self.tsg, iteration, &totals)
            if insertions and self.tsg.has_insertion:
                resample_insertions(&self.tsg, iteration, &totals)
        return result

    def log_joint(self):
        """The log probability of derivations and seating given the parameters."""
        cdef Totals totals
        self.require_usable()
        count_totals(&self.tsg, &totals)
        return log_joint(&self.tsg, &totals)

    # ---- what it knows -----------------------------------------------------------------------------------

    def n_fragments(self):
        """The stored fragments, parts of others included, and those that have customers."""
        cdef size_t number
        cdef index_t n_ordered = 0
        for number in range(self.tsg.fragments.fragments.size()):
            n_ordered += self.tsg.fragments.fragments[number].tables.n_customers > 0
        return self.tsg.fragments.n_used, n_ordered

    def n_auxiliary(self):
        """The auxiliary trees in use, and how many insertions there are."""
        cdef size_t number
        cdef index_t n_types = 0, n_insertions = 0
        cdef const Fragment* fragment
        for number in range(self.tsg.fragments.fragments.size()):
            fragment = &self.tsg.fragments.fragments[number]
            if fragment.tables.n_customers > 0 and is_auxiliary(fragment):
                n_types += 1
                n_insertions += fragment.tables.n_customers
        return n_types, n_insertions

    def insertion_counts(self):
        """For every label, how many insertions there are, and how many more there could be."""
        cdef Totals totals
        self.require_usable()
        count_totals(&self.tsg, &totals)
        return np.array([totals.inserted, totals.not_inserted], dtype=np.int64)

    def restaurants(self):
        """The customers and tables of every label's restaurant; those of auxiliary trees come last."""
        cdef size_t number
        totals = np.empty((2, self.tsg.restaurants.size()), dtype=np.int64)
        for number in range(self.tsg.restaurants.size()):
            totals[0, number] = self.tsg.restaurants[number].n_customers
            totals[1, number] = self.tsg.restaurants[number].n_tables
        return totals

    def seating(self):
        """All fragments in use and their customers, renumbered so that parts come before wholes.

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
        cdef vector[int32_t] order, new_number
        cdef index_t place, node
        cdef size_t entry
        cdef const Fragment* fragment
        self.require_usable()
        self.number_in_order(&order, &new_number)
        fragments = np.empty((order.size(), 3), dtype=np.int32)
        customers = np.empty(order.size(), dtype=np.int32)
        tables = np.empty(order.size(), dtype=np.int32)
        cdef symbol_t[:, ::1] fragment_view = fragments
        cdef symbol_t[::1] customer_view = customers, table_view = tables
        sizes = []
        for place in range(<index_t>order.size()):
            fragment = &self.tsg.fragments.fragments[order[place]]
            fragment_view[place, 0] = fragment.rule
            fragment_view[place, 1] = new_number[fragment.left] if fragment.left >= 0 else fragment.left
            fragment_view[place, 2] = new_number[fragment.right] if fragment.right >= 0 else fragment.right
            customer_view[place], table_view[place] = fragment.tables.n_customers, fragment.tables.n_tables
            for entry in range(fragment.tables.by_size.size()):
                sizes.append((place, fragment.tables.by_size[entry].size, fragment.tables.by_size[entry].n_tables))
        dishes = np.full(self.tsg.dish.size(), -1, dtype=np.int32)
        cdef symbol_t[::1] dish_view = dishes
        for node in range(dish_view.shape[0]):
            if self.tsg.dish[node] >= 0:
                dish_view[node] = new_number[self.tsg.dish[node]]
        return fragments, customers, tables, np.array(sizes, dtype=np.int32).reshape(-1, 3), dishes

    cdef int number_in_order(self, vector[int32_t]* order, vector[int32_t]* new_number) except -1:
        """Number the fragments in the order of the corpus, parts first: it depends on the derivations alone."""
        cdef vector[int32_t] waiting
        cdef const Fragment* fragment
        cdef int32_t top
        cdef size_t node
        fill(new_number[0], self.tsg.fragments.fragments.size(), -1)
        for node in range(self.tsg.dish.size()):
            if self.tsg.dish[node] >= 0:
                waiting.push_back(self.tsg.dish[node])
            while not waiting.empty():
                top = waiting.back()
                fragment = &self.tsg.fragments.fragments[top]
                if new_number[0][top] >= 0:
                    waiting.pop_back()
                elif fragment.left >= 0 and new_number[0][fragment.left] < 0:
                    waiting.push_back(fragment.left)
                elif fragment.right >= 0 and new_number[0][fragment.right] < 0:
                    waiting.push_back(fragment.right)
                else:
                    waiting.pop_back()
                    new_number[0][top] = <int32_t>order.size()
                    order.push_back(top)
        return 0

    # ---- a saved state -----------------------------------------------------------------------------------

    def restore(self, states, fragments, sizes, dishes):
        """Put back what `states` and `seating` gave; the arrays are checked against the trees."""
        if self.tsg.fragments.fragments.size():
            raise ValueError("a sampler can only be restored before its first trees are seated")
        states = np.ascontiguousarray(states, dtype=np.uint8)
        dishes = np.ascontiguousarray(dishes, dtype=np.int32)
        shape = (n_nodes(&self.tsg.trees),)
        if states.shape != shape or dishes.shape != shape or ((dishes >= 0) != (states != INTERNAL)).any():
            raise ValueError("the states do not fit the trees")
        if not (states[self.trees.tree_start[:n_trees(&self.tsg.trees)]] == SITE).all():
            raise ValueError("a root is no substitution site")
        self.validate_states(states)
        n_fragments = len(fragments)
        orders = dishes[dishes >= 0]
        if orders.max() >= n_fragments:
            raise ValueError("a dish is out of range")
        n_orders = np.bincount(orders, minlength=n_fragments)
        self.restore_fragments(np.asarray(fragments), n_orders)
        sizes = checked_rows(sizes, [0, 1, 1], [n_fragments, shape[0] + 1, shape[0] + 1])
        if (count_customers(sizes, n_fragments) != n_orders).any():
            raise ValueError("the tables do not fit the derivations")
        copy_flags(states, self.tsg.state)
        copy_symbols(dishes, self.tsg.dish)
        self.validate_dishes()
        for fragment, size, n_tables in sizes.tolist():
            self.restore_tables(fragment, size, n_tables)
        self.is_seated = True

    cdef int restore_fragments(self, fragments, n_orders) except -1:
        """Store the fragments of a saved state, each under its number there."""
        is_used = n_orders > 0
        for place, (rule, left, right) in enumerate(fragments.tolist()):
            if not 0 <= rule < self.tsg.trees.rule_label.size() or not all(
                    part in (FRONTIER, FOOT) or 0 <= part < place for part in (left, right)):
                raise ValueError("a fragment has a rule or a part that is out of range")
            if FOOT in (left, right) and not self.tsg.has_insertion:
                raise ValueError("a fragment has a foot, but there are no auxiliary trees")
            if intern_fragment(&self.tsg.fragments, rule, left, right) != place:
                raise ValueError("a fragment is listed twice")
        parts = fragments[:, 1:]
        is_used[parts[parts >= 0]] = True
        if not is_used.all():
            raise ValueError("a fragment is used nowhere")
        return 0

    cdef int validate_dishes(self) except -1:
        """Refuse dishes that are not the fragments of the derivations."""
        cdef vector[int32_t] number
        cdef int32_t found
        cdef int32_t parts[2]
        cdef symbol_t children[2]
        cdef uint8_t state
        cdef index_t node
        cdef int side
        fill(number, n_nodes(&self.tsg.trees), MISSING)
        for node in range(n_nodes(&self.tsg.trees) - 1, -1, -1):
            state = self.tsg.state[node]
            children[0], children[1] = self.tsg.trees.left[node], self.tsg.trees.right[node]
            for side in range(2):
                parts[side] = FRONTIER
                if state == LEFT_FOOT + side:
                    parts[side] = FOOT
                elif children[side] >= 0 and self.tsg.state[children[side]] != SITE:
                    parts[side] = number[children[side]]
            found = MISSING
            if parts[0] != MISSING and parts[1] != MISSING:
                found = find_fragment(&self.tsg.fragments, self.tsg.trees.rule[node], parts[0], parts[1])
            if state != INTERNAL and found != self.tsg.dish[node]:
                raise ValueError("a fragment is not what the trees have there")
            # A host continues at the foot.
            number[node] = number[children[state - LEFT_FOOT]] if state >= LEFT_FOOT else found
        return 0

    cdef int restore_tables(self, int32_t number, int32_t size, int32_t n_tables) except -1:
        """Seat customers of a fragment at so many tables of a size."""
        cdef Fragment* fragment = &self.tsg.fragments.fragments[number]
        cdef index_t offset = n_labels(&self.tsg) if is_auxiliary(fragment) else 0
        cdef Restaurant* restaurant = &self.tsg.restaurants[offset + self.tsg.trees.rule_label[fragment.rule]]
        cdef int32_t _table, customer
        for _table in range(n_tables):
            for customer in range(size):
                grow(restaurant, &fragment.tables, customer)
        return 0
