"""The two-way split sampler: subcategories of the nodes of known trees, one bit each.

The model is in ``_backoff.pxd``, the state in ``_split_state.pxd``, the moves in ``_split_trees.pyx`` and
``_split_moves.pyx``. Everything the sampler depends on comes in as arrays and is checked here; everything it knows goes
out as arrays. Same seed and size of batches, same result, whatever the number of threads.
"""

from itertools import pairwise

import numpy as np

from tsgkit._backoff import level_number
from tsgkit._checks import checked_rows

from libc.stdint cimport uint8_t, uint64_t
from libcpp.vector cimport vector

from tsgkit._backoff cimport (
    Address, Level, class_probability, copy_rule_base, copy_rules, kinds_of, label_class_place, label_class_probability,
    n_pairs, parameters_of, probability_at, restaurants_of, set_parameters_of,
)
from tsgkit._restaurant cimport Restaurant
from tsgkit._split_moves cimport joint_losses, marginal_losses, merge_groups, type_sweep
from tsgkit._split_seating cimport seat_all, unseat_all
from tsgkit._split_state cimport (
    NO_TABLE, Block, SplitState, Table, TableList, fill_address, log_joint_and_hyper, open_split, places_of,
)
from tsgkit._split_trees cimport SweepCounts, tree_sweep
from tsgkit._trees cimport copy_trees, n_trees
from tsgkit._types cimport index_t, symbol_t
from tsgkit._vectors cimport copy_flags, copy_symbols

BLOCK_FIELDS = (
    "rule", "group", "left_group", "right_group", "label", "n_children", "word_class", "word_restaurant", "word_cell",
    "class_first",
)


cdef class SplitSampler:
    """Subcategories of the nodes of known trees.

    Parameters
    ----------
    trees : TreeArrays
    groups : array of int, one per node
        The label and earlier subcategory of each node, as one number.
    group_label : array of int, one per group
    n_options : array of int, one per group
        1 or 2: how many subcategories the group has now.
    levels : tsgkit.models.back_off.Levels
        What rules back off to, over the symbols ``2 group + option``; at least one level is in use.
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

    cdef SplitState state
    cdef readonly object trees
    cdef readonly tuple kinds
    cdef bint is_seated
    cdef bint is_changing    # or a change was not finished

    def __init__(
        self, trees, groups, group_label, n_options, levels, rule_base, rule_class, lexical_share, class_word_base,
        class_levels=None, uint64_t seed=0,
    ):
        copy_trees(trees, &self.state.trees)
        groups, group_label = np.asarray(groups, dtype=np.int32), np.asarray(group_label, dtype=np.int32)
        n_options = np.asarray(n_options, dtype=np.uint8)
        validate_groups(trees, groups, group_label, n_options)
        copy_rules(
            &self.state.back_off, trees, np.repeat(group_label, 2), levels, rule_base, rule_class, lexical_share,
            class_word_base, class_levels)
        if levels.n_used < 1:
            raise ValueError("no level of rules is in use")
        self.trees, self.kinds = trees, kinds_of(&self.state.back_off, levels)
        copy_symbols(groups, self.state.group)
        copy_symbols(group_label, self.state.group_label)
        copy_flags(n_options, self.state.n_options)
        self.state.seed = seed
        with nogil:
            open_split(&self.state)
        self.set_parameters(np.tile([[0.5], [1.0]], (1, self.n_pairs)))

    def set_rule_base(self, rule_base):
        """Set P0, the probability of each refinement of a rule: a merge leaves fewer of them."""
        copy_rule_base(&self.state.back_off, rule_base)

    cdef int require_seated(self, bint wanted) except -1:
        if self.is_changing:
            raise RuntimeError("the subcategories are being changed, or a change ran out of memory half-way")
        if self.is_seated != wanted:
            raise ValueError("no trees are seated" if wanted else "the trees are seated already")
        return 0

    @property
    def rule_kinds(self):
        """The names of the levels of rules, which come first among the kinds of restaurants."""
        return self.kinds[:self.state.back_off.n_rule_levels]

    # ---- parameters ------------------------------------------------------------------------------------

    @property
    def n_labels(self):
        return self.trees.n_labels

    @property
    def n_pairs(self):
        """How many pairs (discount, strength) there are: see `parameters`."""
        return n_pairs(&self.state.back_off)

    def parameters(self):
        """Discounts and strengths: for every label at each level of rules, of J and of W, and of the levels of J_x."""
        return parameters_of(&self.state.back_off)

    def set_parameters(self, values):
        """Set what `parameters` gave."""
        set_parameters_of(&self.state.back_off, values)

    def resample_parameters(self, uint64_t iteration, *, bint hyper=True):
        """Resample all discounts and strengths; returns the log joint before that."""
        cdef double log_joint
        with nogil:
            log_joint = log_joint_and_hyper(&self.state, iteration, hyper)
        return log_joint

    def log_joint(self):
        """The log probability of subcategories and seating given the parameters."""
        return log_joint_and_hyper(&self.state, 0, False)

    # ---- subcategories -----------------------------------------------------------------------------------

    def start(self, bits):
        """Seat all trees with these choices, 0 or 1 per node."""
        self.require_seated(False)
        self.put_bits(bits)
        self.is_changing = True
        with nogil:
            seat_all(&self.state)
        self.is_changing, self.is_seated = False, True

    cdef int put_bits(self, bits) except -1:
        bits = np.ascontiguousarray(bits, dtype=np.uint8)
        if bits.shape != (self.state.group.size(),) or (bits >= self.n_options()[self.groups()]).any():
            raise ValueError("a node chooses an option that its group does not have")
        return copy_flags(bits, self.state.bit)

    def empty(self):
        """Unseat all trees."""
        self.require_seated(True)
        self.is_changing = True
        with nogil:
            unseat_all(&self.state)
        self.is_changing = self.is_seated = False

    def bits(self):
        """Which option each node has chosen."""
        return np.array([value for value in self.state.bit], dtype=np.uint8)

    def seats(self):
        """The number of the table where the customer of each node sits, among those of its cell."""
        return np.array([value for value in self.state.seat], dtype=np.int32)

    def groups(self):
        return np.array([value for value in self.state.group], dtype=np.int32)

    def group_labels(self):
        return np.array([value for value in self.state.group_label], dtype=np.int32)

    def n_options(self):
        """How many options each group has."""
        return np.array([value for value in self.state.n_options], dtype=np.uint8)

    def tree_sweep(self, uint64_t iteration, double temperature=1.0, *, int batch=1, int threads=1):
        """One Metropolis-Hastings step for every tree: proposals, acceptances and changes."""
        if batch < 1 or threads < 1 or not temperature > 0:
            raise ValueError("batch, threads and temperature must be positive")
        self.require_seated(True)
        batch = min(batch, n_trees(&self.state.trees))
        cdef SweepCounts counts = SweepCounts(0, 0, 0)
        self.is_changing = True
        with nogil:
            tree_sweep(&self.state, iteration, temperature, batch, threads if batch > 1 else 1, &counts)
        self.is_changing = False
        return counts.n_proposed, counts.n_accepted, counts.n_changed

    def type_sweep(self, uint64_t iteration, index_t n_moves, double temperature=1.0, *, bint onto_used=False):
        """Resample all occurrences of refined rules at once: moves, changes, and changes again."""
        self.require_seated(True)
        if n_moves < 0 or not temperature > 0:
            raise ValueError("the number of moves and the temperature must be positive")
        cdef SweepCounts counts = SweepCounts(0, 0, 0)
        self.is_changing = True
        with nogil:
            type_sweep(&self.state, iteration, n_moves, temperature, onto_used, &counts)
        self.is_changing = False
        return counts.n_proposed, counts.n_accepted, counts.n_changed

    def merge_losses(self, uint64_t iteration, *, bint marginal=False, int threads=1):
        """Per group, what is lost in log probability when its two options are made one."""
        self.require_seated(True)
        if threads < 1:
            raise ValueError("threads must be positive")
        cdef vector[double] losses
        self.is_changing = True
        with nogil:
            if marginal:
                marginal_losses(&self.state, threads, &losses)
            else:
                joint_losses(&self.state, iteration, &losses)
        self.is_changing = False
        return np.array([value for value in losses])

    def merge(self, is_merged, uint64_t iteration):
        """Make one option of the two of these groups."""
        self.require_seated(True)
        cdef vector[uint8_t] flags
        if np.shape(is_merged) != (self.state.group_label.size(),):
            raise ValueError("one flag is needed for every group")
        self.is_changing = True
        copy_flags(is_merged, flags)
        with nogil:
            merge_groups(&self.state, &flags, iteration)
        self.is_changing = False

    # ---- what it knows -----------------------------------------------------------------------------------

    def blocks(self):
        """The blocks as columns: see `Block` in ``_split_state.pxd``.

        And for every level of rules, ``first_NAME`` with two columns: the first cells of both options; -1 for words
        with classes, which have the first level only.
        """
        cdef index_t n_blocks = self.state.blocks.size(), number
        cdef int level, option, n_rule_levels = self.state.back_off.n_rule_levels
        table = np.empty((n_blocks, len(BLOCK_FIELDS)), dtype=np.int64)
        first = np.empty((n_rule_levels, n_blocks, 2), dtype=np.int64)
        cdef index_t[:, ::1] view = table
        cdef index_t[:, :, ::1] first_view = first
        cdef const Block* block
        for number in range(n_blocks):
            block = &self.state.blocks[number]
            view[number, 0], view[number, 1], view[number, 2] = block.rule, block.group, block.left_group
            view[number, 3], view[number, 4], view[number, 5] = block.right_group, block.label, block.n_children
            view[number, 6], view[number, 7] = block.word_class, block.word_restaurant
            view[number, 8], view[number, 9] = block.word_cell, block.class_first
            for level in range(n_rule_levels):
                for option in range(2):
                    first_view[level, number, option] = places_of(&self.state, number)[2 * level + option].cell
        columns = {name: np.ascontiguousarray(table[:, column]) for column, name in enumerate(BLOCK_FIELDS)}
        return columns | {f"first_{self.kinds[level]}": first[level] for level in range(n_rule_levels)}

    cdef Level* level_of(self, kind) except NULL:
        return &self.state.back_off.levels[<size_t>level_number(self.kinds, kind)]

    def cells(self, kind):
        """The numbers of customers and tables of all cells of a kind."""
        cdef const Level* level = self.level_of(kind)
        cdef index_t cell
        counts = np.empty((2, level.cells.size()), dtype=np.int32)
        cdef symbol_t[:, ::1] view = counts
        for cell in range(<index_t>level.cells.size()):
            view[0, cell], view[1, cell] = level.cells[cell].n_customers, level.cells[cell].n_tables
        return counts

    def n_cells(self, kind):
        return self.level_of(kind).cells.size()

    def restaurants(self, kind):
        """Customers, tables, discount and strength of all restaurants of a kind."""
        return restaurants_of(&self.state.back_off, level_number(self.kinds, kind))

    def restaurant_of_cells(self, kind):
        """The restaurant of every cell of a kind."""
        # A loop over the vector itself, which is no variable, would copy it first, and could not report a failure.
        cdef const Level* level = self.level_of(kind)
        cdef size_t cell
        numbers = [level.restaurant_of_cell[cell] for cell in range(level.restaurant_of_cell.size())]
        return np.array(numbers, dtype=np.int64)

    def probabilities(self):
        """The predictive probability of every cell of the first level; 0 for options that a group does not have."""
        cdef index_t number
        cdef int index, below
        cdef const Block* block
        cdef Address address
        values = np.zeros(self.n_cells(self.kinds[0]))
        cdef double[::1] view = values
        for number in range(<index_t>self.state.blocks.size()):
            block = &self.state.blocks[number]
            for index in range(2 << block.n_children):
                below = index & ((1 << block.n_children) - 1)
                if (
                    index >> block.n_children >= self.state.n_options[block.group]
                    or block.n_children == 1 and below >= self.state.n_options[block.left_group]
                    or block.n_children == 2 and below >> 1 >= self.state.n_options[block.left_group]
                    or block.n_children == 2 and below & 1 >= self.state.n_options[block.right_group]
                ):
                    continue
                fill_address(&self.state, number, index, &address)
                view[address.rules[0].cell] = probability_at(&self.state.back_off, &address)
        return values

    def class_probabilities(self):
        """Of every lexical block with a class: the probability of the class under each option, and under the tag."""
        cdef index_t number
        cdef int option
        cdef Address address
        values = np.zeros((self.state.blocks.size(), 3))
        cdef double[:, ::1] view = values
        for number in range(<index_t>self.state.blocks.size()):
            if self.state.blocks[number].word_class < 0:
                continue
            for option in range(2):
                fill_address(&self.state, number, option, &address)
                view[number, option] = class_probability(&self.state.back_off, &address)
            view[number, 2] = label_class_probability(&self.state.back_off, address.label, address.word_class)
        return values

    # ---- seating -----------------------------------------------------------------------------------------

    def seating(self):
        """All tables: per kind of cell, rows of cell, number, size, and the tables below; see `Table`."""
        cdef const TableList* tables
        cdef Table table
        cdef index_t cell
        cdef size_t item
        cdef int level
        result = {}
        for level, kind in enumerate(self.kinds):
            rows = []
            for cell in range(<index_t>self.state.tables[level].size()):
                tables = &self.state.tables[level][cell]
                for item in range(tables.size()):
                    table = tables.data()[item]
                    if table.size:
                        rows.append((cell, item, table.size, table.below, table.class_below))
            result[kind] = np.array(rows, dtype=np.int32).reshape(-1, 5)
        return result

    def restore(self, bits, seats, seating):
        """Put back what `bits`, `seats` and `seating` gave; the arrays are checked against the trees."""
        self.require_seated(False)
        self.put_bits(bits)
        n_nodes = <index_t>self.state.group.size()
        seats = np.asarray(seats)
        if seats.dtype != np.int32 or seats.shape != (n_nodes,) or (seats < 0).any():
            raise ValueError("a node's table is out of range")
        checked = {}
        for kind in self.kinds:
            most = [self.n_cells(kind), n_nodes, n_nodes + 1, n_nodes, n_nodes]
            checked[kind] = checked_rows(seating[kind], [0, 0, 1, NO_TABLE, NO_TABLE], most)
        customers = self.customers(seats, checked)
        for kind, rows in checked.items():
            validate_tables(rows, customers[kind], n_nodes)
        self.is_changing = True
        for kind, rows in checked.items():
            self.put_tables(kind, rows)
        for node, number in enumerate(seats.tolist()):
            self.state.seat[<size_t>node] = number
        self.is_changing, self.is_seated = False, True

    cdef int put_tables(self, kind, rows) except -1:
        cdef int level = level_number(self.kinds, kind)
        cdef Level* here = &self.state.back_off.levels[level]
        cdef Restaurant* restaurant
        cdef TableList* tables
        cdef Table table
        cdef index_t cell
        cdef size_t number
        for cell, number, table.size, table.below, table.class_below in rows.tolist():
            tables = &self.state.tables[level][cell]
            grow_tables(tables[0], number + 1)
            tables[0][number] = table
            restaurant = &here.restaurants[here.restaurant_of_cell[cell]]
            here.cells[cell].n_customers += table.size
            here.cells[cell].n_tables += 1
            restaurant.n_customers += table.size
            restaurant.n_tables += 1
        return 0

    def customers(self, seats, tables):
        """Who sits at the tables of every kind, as the nodes and the tables above say: pairs of cell and number."""
        blocks, names = self.blocks(), self.rule_kinds
        used = names[:self.state.back_off.n_used]
        block, option, below = choices_of(blocks)
        is_word = blocks["word_class"][block] >= 0
        cells = {name: blocks[f"first_{name}"][block, option] + below for name in used}
        cells["class"], cells["word"] = blocks["class_first"][block] + option, blocks["word_cell"][block]
        of_class = self.label_class_cells(blocks)
        cells |= {kind: numbers[block] for kind, numbers in of_class.items()}
        result = {kind: [] for kind in self.kinds}
        result[names[0]].append(np.stack([self.cells_of_nodes(blocks), seats], axis=1))
        steps = [(above, below, ~is_word, 3) for above, below in zip(used, used[1:], strict=False)]
        steps += [(names[0], "word", is_word, 3), (names[0], "class", is_word, 4)]
        steps += [(above, below, is_word, 3) for above, below in pairwise(("class", *of_class))]
        n_below = {kind: np.zeros((len(rows), 5), dtype=bool) for kind, rows in tables.items()}
        for above, kind, chosen, column in steps:
            cell_below = np.full(self.n_cells(above), -1, dtype=np.int64)
            cell_below[cells[above][chosen]] = cells[kind][chosen]
            cell_below = cell_below[tables[above][:, 0]]
            n_below[above][:, column] |= cell_below >= 0
            has_below = cell_below >= 0
            result[kind].append(np.stack([cell_below[has_below], tables[above][has_below, column]], axis=1))
        for kind, rows in tables.items():
            if ((rows[:, 3:] >= 0) != n_below[kind][:, 3:]).any():
                raise ValueError("the tables do not fit the trees: one has no table below, or one too many")
        return {kind: np.concatenate([*pairs, np.empty((0, 2), np.int64)]) for kind, pairs in result.items()}

    def label_class_cells(self, blocks):
        """The cells of every block at the levels of the labels' classes, by kind; -1 of a block without a class."""
        cdef index_t number
        cdef int level
        cdef const Block* block
        cells = np.full((self.state.back_off.n_class_levels, len(blocks["label"])), -1, dtype=np.int64)
        cdef index_t[:, ::1] view = cells
        for number in range(<index_t>self.state.blocks.size()):
            block = &self.state.blocks[number]
            for level in range(self.state.back_off.n_class_levels if block.word_class >= 0 else 0):
                view[level, number] = label_class_place(
                    &self.state.back_off, level, block.label, block.word_class).cell
        return dict(zip(self.kinds[len(self.rule_kinds) + 1:], cells, strict=False))

    def cells_of_nodes(self, blocks):
        """The cell of every node's rule at the first level."""
        bits = self.bits().astype(np.int64)
        block = np.array([value for value in self.state.block_of], dtype=np.int64)
        left, right, n_children = self.trees.left, self.trees.right, blocks["n_children"][block]
        below = np.zeros_like(bits)
        below[n_children == 1] = bits[left[n_children == 1]]
        below[n_children == 2] = bits[left[n_children == 2]] << 1 | bits[right[n_children == 2]]
        return blocks[f"first_{self.kinds[0]}"][block, bits] + below


cdef extern from *:
    """
    template <class Tables>
    inline void tsgkit_grow_tables(Tables& tables, size_t size) {
        while (tables.size() < size) tables.insert_at(tables.size(), {0, -1, -1});
    }
    """
    # Have at least so many numbers of tables.
    void grow_tables "tsgkit_grow_tables"(TableList& tables, size_t size) except +


def validate_tables(rows, customers, n_nodes):
    """Refuse tables of other sizes than the customers say, and numbers that no sampler gives."""
    keys, sizes = np.unique(customers[:, 0] * n_nodes + customers[:, 1], return_counts=True)
    found = rows[:, 0].astype(np.int64) * n_nodes + rows[:, 1]
    order = np.argsort(found, kind="stable")
    if len(found) != len(keys) or (found[order] != keys).any() or (rows[order, 2] != sizes).any():
        raise ValueError("the tables do not fit the trees")
    # A cell never had more tables than nodes that could have its rule, and these have eight cells at most.
    largest = np.zeros(rows[:, 0].max(initial=-1) + 1, dtype=np.int64)
    np.maximum.at(largest, rows[:, 0], rows[:, 1])
    if largest.sum() > 8 * n_nodes:
        raise ValueError("the numbers of tables are out of range")


def validate_groups(trees, groups, group_label, n_options):
    """Refuse groups that do not fit the trees."""
    n_groups = len(group_label)
    if groups.shape != trees.label.shape or (groups < 0).any() or (groups >= n_groups).any():
        raise ValueError("a node's group is out of range")
    if (group_label[groups] != trees.label).any() or (group_label < 0).any() or (
            group_label >= trees.n_labels).any():
        raise ValueError("a node's group is of another label")
    if n_options.shape != (n_groups,) or (n_options < 1).any() or (n_options > 2).any():
        raise ValueError("a group has one or two options")
    roots = groups[trees.tree_start[:len(trees.tree_start) - 1]]
    if (n_options[roots] != 1).any():
        raise ValueError("roots have no subcategories")
    # A node needs eight cells at most.
    if len(trees.label) > np.iinfo(np.int32).max // 8:
        raise ValueError("the trees have too many nodes")


def choices_of(blocks):
    """All choices of bits of all blocks: the block, its own bit, and those below as one number."""
    n_choices = 2 << blocks["n_children"]
    block = np.repeat(np.arange(len(n_choices)), n_choices)
    index = np.arange(len(block)) - np.repeat(np.cumsum(n_choices) - n_choices, n_choices)
    n_children = blocks["n_children"][block]
    return block, index >> n_children, index & ((1 << n_children) - 1)
