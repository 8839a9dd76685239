"""The two-way split sampler: subcategories of the nodes of known trees, one bit each.

The model is in ``_backoff.pxd``, the state in ``_split_state.pxd``, the moves in ``_split_moves.pyx``. Everything the
sampler depends on comes in as arrays and is checked here; everything it knows goes out as arrays. Same seed, same
result.
"""

import numpy as np

from tsgkit._backoff import level_names, level_number
from tsgkit.checks import checked_rows, count_customers

from libc.stdint cimport uint8_t, uint64_t
from libcpp.vector cimport vector

from tsgkit._backoff cimport (
    Address, Level, class_probability, copy_rule_base, copy_rules, label_class_probability, n_pairs, parameters_of,
    probability_at, restaurants_of, set_parameters_of,
)
from tsgkit._restaurant cimport grow
from tsgkit._split_moves cimport SweepCounts, joint_losses, marginal_losses, merge_groups, tree_sweep, type_sweep
from tsgkit._split_state cimport (
    Block, SplitState, fill_address, log_joint_and_hyper, open_split, places_of, seat_all, unseat_all,
)
from tsgkit._trees cimport copy_trees
from tsgkit._types cimport index_t, symbol_t
from tsgkit._vectors cimport copy_flags, copy_symbols

BLOCK_FIELDS = (
    "rule", "group", "left_group", "right_group", "label", "n_children", "word_class", "word_restaurant", "word_cell",
    "class_first", "label_class_cell",
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
    seed : int
    """

    cdef SplitState state
    cdef readonly object trees
    cdef readonly tuple kinds
    cdef bint is_seated

    def __init__(
        self, trees, groups, group_label, n_options, levels, rule_base, rule_class, lexical_share, class_word_base,
        uint64_t seed=0,
    ):
        copy_trees(trees, &self.state.trees)
        groups, group_label = np.asarray(groups, dtype=np.int32), np.asarray(group_label, dtype=np.int32)
        n_options = np.asarray(n_options, dtype=np.uint8)
        validate_groups(trees, groups, group_label, n_options)
        copy_rules(
            &self.state.back_off, trees, np.repeat(group_label, 2), levels, rule_base, rule_class, lexical_share,
            class_word_base)
        if levels.n_used < 1:
            raise ValueError("no level of rules is in use")
        self.trees, self.kinds = trees, level_names(levels)
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
        """How many pairs (discount, strength) there are: for every label at each level, and one more."""
        return n_pairs(&self.state.back_off)

    def parameters(self):
        """Discounts and strengths: for every label at each level of rules, of J and of W, and of all J_x."""
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
        with nogil:
            seat_all(&self.state)
        self.is_seated = True

    cdef int put_bits(self, bits) except -1:
        bits = np.ascontiguousarray(bits, dtype=np.uint8)
        if bits.shape != (self.state.group.size(),) or (bits >= self.n_options()[self.groups()]).any():
            raise ValueError("a node chooses an option that its group does not have")
        return copy_flags(bits, self.state.bit)

    def empty(self):
        """Unseat all trees."""
        self.require_seated(True)
        with nogil:
            unseat_all(&self.state)
        self.is_seated = False

    def bits(self):
        """Which option each node has chosen."""
        return np.array([value for value in self.state.bit], dtype=np.uint8)

    def groups(self):
        return np.array([value for value in self.state.group], dtype=np.int32)

    def group_labels(self):
        return np.array([value for value in self.state.group_label], dtype=np.int32)

    def n_options(self):
        """How many options each group has."""
        return np.array([value for value in self.state.n_options], dtype=np.uint8)

    def tree_sweep(self, uint64_t iteration, double temperature=1.0):
        """One Metropolis-Hastings step for every tree: proposals, acceptances and changes."""
        self.require_seated(True)
        if not temperature > 0:
            raise ValueError("the temperature must be positive")
        cdef SweepCounts counts = SweepCounts(0, 0, 0)
        with nogil:
            tree_sweep(&self.state, iteration, temperature, &counts)
        return counts.n_proposed, counts.n_accepted, counts.n_changed

    def type_sweep(self, uint64_t iteration, index_t n_moves, double temperature=1.0, *, bint onto_used=False):
        """Relabel all occurrences of refined rules at once: proposals, acceptances, and acceptances again."""
        self.require_seated(True)
        if n_moves < 0 or not temperature > 0:
            raise ValueError("the number of moves and the temperature must be positive")
        cdef SweepCounts counts = SweepCounts(0, 0, 0)
        with nogil:
            type_sweep(&self.state, iteration, n_moves, temperature, onto_used, &counts)
        return counts.n_proposed, counts.n_accepted, counts.n_changed

    def merge_losses(self, uint64_t iteration, *, bint marginal=False):
        """Per group, what is lost in log probability when its two options are made one."""
        self.require_seated(True)
        cdef vector[double] losses
        with nogil:
            if marginal:
                marginal_losses(&self.state, &losses)
            else:
                joint_losses(&self.state, iteration, &losses)
        return np.array([value for value in losses])

    def merge(self, is_merged, uint64_t iteration):
        """Make one option of the two of these groups."""
        self.require_seated(True)
        cdef vector[uint8_t] flags
        if np.shape(is_merged) != (self.state.group_label.size(),):
            raise ValueError("one flag is needed for every group")
        copy_flags(is_merged, flags)
        with nogil:
            merge_groups(&self.state, &flags, iteration)

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
            view[number, 10] = block.label_class_cell
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
        return np.array([value for value in self.level_of(kind).restaurant_of_cell], dtype=np.int64)

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
            view[number, 2] = label_class_probability(&self.state.back_off, &address)
        return values

    # ---- seating -----------------------------------------------------------------------------------------

    def seating(self):
        """All tables: per kind of cell, rows of cell, table size, and number of such tables."""
        cdef const Level* level
        cdef index_t cell
        cdef size_t item
        result = {}
        for kind in self.kinds:
            level = self.level_of(kind)
            rows = []
            for cell in range(<index_t>level.cells.size()):
                for item in range(level.cells[cell].by_size.size()):
                    rows.append((cell, level.cells[cell].by_size[item].size, level.cells[cell].by_size[item].n_tables))
            result[kind] = np.array(rows, dtype=np.int32).reshape(-1, 3)
        return result

    def restore(self, bits, seating):
        """Put back what `bits` and `seating` gave; the arrays are checked against the trees."""
        self.require_seated(False)
        self.put_bits(bits)
        n_nodes = <index_t>self.state.group.size()
        checked = {}
        for kind in self.kinds:
            checked[kind] = checked_rows(seating[kind], [0, 1, 1], [self.n_cells(kind), n_nodes + 1, n_nodes + 1])
        wanted = self.wanted_customers(checked)
        for kind in self.kinds:
            if (count_customers(checked[kind], self.n_cells(kind)) != wanted[kind]).any():
                raise ValueError("the tables do not fit the trees")
        for kind in self.kinds:
            self.seat_tables(kind, checked[kind])
        self.is_seated = True

    cdef int seat_tables(self, kind, rows) except -1:
        cdef Level* level = self.level_of(kind)
        cdef symbol_t customer, _table, size, n_tables
        cdef index_t cell
        for cell, size, n_tables in rows.tolist():
            for _table in range(n_tables):
                for customer in range(size):
                    grow(&level.restaurants[level.restaurant_of_cell[cell]], &level.cells[cell], customer)
        return 0

    def wanted_customers(self, tables):
        """How many customers each cell must have: at the first level the nodes, at the others the tables above."""
        blocks, names = self.blocks(), self.rule_kinds
        n_tables = {
            kind: np.bincount(rows[:, 0], weights=rows[:, 2], minlength=self.n_cells(kind))
            for kind, rows in tables.items()
        }
        wanted = {kind: np.zeros(self.n_cells(kind)) for kind in self.kinds}
        wanted[names[0]] = self.count_nodes(blocks)
        block, option, below = choices_of(blocks)
        is_word = blocks["word_class"][block] >= 0
        cells = {name: blocks[f"first_{name}"][block, option] + below for name in names}
        for name, next_name in zip(names, names[1:self.state.back_off.n_used], strict=False):
            add_once(wanted[next_name], cells[next_name], n_tables[name], cells[name], ~is_word)
        cell, number = cells[names[0]], block[is_word]
        wanted["word"] += np.bincount(
            blocks["word_cell"][number], weights=n_tables[names[0]][cell[is_word]], minlength=self.n_cells("word"))
        class_cell = blocks["class_first"][block] + option
        add_once(wanted["class"], class_cell, n_tables[names[0]], cell, is_word)
        label_class_cell = blocks["label_class_cell"][block]
        add_once(wanted["label_class"], label_class_cell, n_tables["class"], class_cell, is_word)
        return wanted

    def count_nodes(self, blocks):
        """How many nodes have every refined rule, by its cell at the first level."""
        bits = self.bits().astype(np.int64)
        block = np.array([value for value in self.state.block_of], dtype=np.int64)
        left, right, n_children = self.trees.left, self.trees.right, blocks["n_children"][block]
        below = np.zeros_like(bits)
        below[n_children == 1] = bits[left[n_children == 1]]
        below[n_children == 2] = bits[left[n_children == 2]] << 1 | bits[right[n_children == 2]]
        cells = blocks[f"first_{self.kinds[0]}"][block, bits] + below
        return np.bincount(cells, minlength=self.n_cells(self.kinds[0]))


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


def add_once(wanted, cells, n_tables, above, chosen):
    """Add the tables of cells to those of the next level; a cell that several blocks have counts once."""
    _, first = np.unique(above[chosen], return_index=True)
    np.add.at(wanted, cells[chosen][first], n_tables[above[chosen][first]])
