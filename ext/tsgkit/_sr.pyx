"""The sampler of subcategories: a checked door to ``sr_sampler.hpp``, which see.

Everything the sampler depends on comes in as arrays and is checked here; everything it knows goes out as
arrays. Same seed, same result.
"""

import numpy as np

from tsgkit.checks import checked_rows, count_customers, require_discounts, require_strengths

from libc.stdint cimport uint8_t, uint64_t
from libcpp cimport bool as cpp_bool
from libcpp.vector cimport vector

from tsgkit._old_restaurant cimport House, Tables
from tsgkit._types cimport index_t, symbol_t
from tsgkit._vectors cimport copy_flags, copy_indices, copy_numbers, copy_symbols

cdef extern from "sr_sampler.hpp" namespace "tsgkit" nogil:
    cdef cppclass SrBlock:
        symbol_t rule
        symbol_t group
        symbol_t left_group
        symbol_t right_group
        symbol_t label
        symbol_t n_children
        symbol_t word_class
        symbol_t word_house
        index_t first
        index_t base_first
        index_t class_first
        index_t label_class

    cdef cppclass SweepCounts "tsgkit::SrSampler::SweepCounts":
        index_t n_proposed
        index_t n_accepted
        index_t n_changed

    cdef cppclass Totals "tsgkit::SrSampler::Totals":
        pass

    cdef cppclass CppSampler "tsgkit::SrSampler":
        vector[symbol_t] label
        vector[symbol_t] rule
        vector[symbol_t] left
        vector[symbol_t] right
        vector[symbol_t] parent
        vector[symbol_t] group
        vector[index_t] tree_start
        vector[double] rule_base
        vector[symbol_t] rule_class
        vector[double] lexical_share
        vector[double] class_word_base
        vector[symbol_t] group_label
        vector[uint8_t] n_options
        symbol_t n_labels
        int levels
        uint64_t seed
        vector[uint8_t] bit
        vector[symbol_t] block_of
        vector[SrBlock] blocks
        vector[Tables] rule_cells
        vector[Tables] base_cells
        vector[Tables] class_cells
        vector[Tables] label_class_cells
        vector[Tables] word_cells
        vector[House] rule_houses
        vector[House] base_houses
        vector[House] class_houses
        vector[House] label_class_houses
        vector[House] word_houses
        vector[symbol_t] word_house_label
        void build()
        void seat_all()
        void unseat_all()
        SweepCounts tree_sweep(uint64_t iteration, double temperature)
        SweepCounts type_sweep(uint64_t iteration, index_t n_moves, double temperature, cpp_bool onto_used)
        vector[double] joint_losses(uint64_t iteration)
        vector[double] marginal_losses()
        void merge(const vector[uint8_t]& is_merged, uint64_t iteration)
        Totals totals()
        double log_joint(const Totals& sums)
        void resample_hyper(uint64_t iteration, const Totals& sums)
        double probability(const SrBlock& block, int index)
        double class_probability(const SrBlock& block, int own)
        double label_class_probability(const SrBlock& block)

KINDS = ("rule", "base", "class", "label_class", "word")
BLOCK_FIELDS = (
    "rule", "group", "left_group", "right_group", "label", "n_children", "word_class", "word_house",
    "first", "base_first", "class_first", "label_class",
)


cdef class SrSampler:
    """Subcategories of the nodes of known trees.

    Parameters
    ----------
    trees : TreeArrays
    groups : array of int, one per node
        The label and earlier subcategory of each node, as one number.
    group_label : array of int, one per group
    n_options : array of int, one per group
        1 or 2: how many subcategories the group has now.
    rule_base : array of float, one per rule
        The probability of each refinement of a treebank rule in the last base.
    rule_class : array of int, one per rule
        The class of a lexical rule's word; -1 for other rules, and where words have no classes.
    lexical_share : array of float, one per label
        The share of words among the rules of a label, where words have classes.
    class_word_base : array of float, one per class
        The probability of each word of a class in the last base.
    levels : {1, 2, 3}
        3: rules back off to rules without their root's subcategory; otherwise to the last base directly.
    seed : int
    """

    cdef CppSampler sampler
    cdef readonly object trees
    cdef bint is_seated

    def __init__(
        self, trees, groups, group_label, n_options, rule_base, rule_class, lexical_share, class_word_base,
        int levels=3, uint64_t seed=0,
    ):
        trees.validate()
        groups, group_label = np.asarray(groups, dtype=np.int32), np.asarray(group_label, dtype=np.int32)
        n_options, rule_class = np.asarray(n_options, dtype=np.uint8), np.asarray(rule_class, dtype=np.int32)
        lexical_share = np.asarray(lexical_share, dtype=np.float64)
        class_word_base = np.asarray(class_word_base, dtype=np.float64)
        n_groups, n_classes = len(group_label), len(class_word_base)
        if groups.shape != trees.label.shape or (groups < 0).any() or (groups >= n_groups).any():
            raise ValueError("a node's group is not there")
        if (group_label[groups] != trees.label).any() or (group_label < 0).any() or (
                group_label >= trees.n_labels).any():
            raise ValueError("a node's group is of another label")
        if n_options.shape != (n_groups,) or (n_options < 1).any() or (n_options > 2).any():
            raise ValueError("a group has one or two options")
        roots = groups[trees.tree_start[:len(trees.tree_start) - 1]]
        if (n_options[roots] != 1).any():
            raise ValueError("roots have no subcategories")
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
        copy_symbols(groups, self.sampler.group)
        copy_symbols(rule_class, self.sampler.rule_class)
        copy_symbols(group_label, self.sampler.group_label)
        copy_indices(trees.tree_start, self.sampler.tree_start)
        self.set_rule_base(rule_base)
        copy_numbers(lexical_share, self.sampler.lexical_share)
        copy_numbers(class_word_base, self.sampler.class_word_base)
        copy_flags(n_options, self.sampler.n_options)
        self.sampler.n_labels, self.sampler.levels, self.sampler.seed = trees.n_labels, levels, seed
        with nogil:
            self.sampler.build()
        self.set_parameters(np.tile([[0.5], [1.0]], (1, self.n_pairs)))

    def set_rule_base(self, rule_base):
        """Set the probability of each refinement of a rule in the last base: a merge leaves fewer of them."""
        rule_base = np.asarray(rule_base, dtype=np.float64)
        if rule_base.shape != (self.trees.n_rules,) or not ((rule_base > 0) & (rule_base <= 1)).all():
            raise ValueError("a rule has no base probability")
        copy_numbers(rule_base, self.sampler.rule_base)

    cdef int require_seated(self, bint wanted) except -1:
        if self.is_seated != wanted:
            raise ValueError("no trees are seated" if wanted else "the trees are seated already")
        return 0

    # ---- parameters ------------------------------------------------------------------------------------

    @property
    def n_labels(self):
        return self.sampler.n_labels

    @property
    def n_pairs(self):
        """How many pairs (discount, strength) there are: four per label and one more."""
        return 4 * self.sampler.n_labels + 1

    def parameters(self):
        """Discounts and strengths: of H, I, J and W for every label, and of the labels' classes."""
        cdef index_t number, label, n_labels = self.sampler.n_labels
        values = np.tile([[0.5], [1.0]], (1, self.n_pairs))
        for number in range(<index_t>self.sampler.group_label.size()):
            label = self.sampler.group_label[number]
            values[:, label] = self.pair_of(self.sampler.rule_houses[2 * number])
            values[:, 2 * n_labels + label] = self.pair_of(self.sampler.class_houses[2 * number])
        for label in range(n_labels):
            values[:, n_labels + label] = self.pair_of(self.sampler.base_houses[label])
        for number in range(<index_t>self.sampler.word_houses.size()):
            label = self.sampler.word_house_label[number]
            values[:, 3 * n_labels + label] = self.pair_of(self.sampler.word_houses[number])
        if n_labels:
            values[:, 4 * n_labels] = self.pair_of(self.sampler.label_class_houses[0])
        return values

    cdef tuple pair_of(self, House house):
        return house.discount, house.strength

    def set_parameters(self, values):
        """Set what `parameters` gave."""
        values = np.ascontiguousarray(values, dtype=np.float64)
        if values.shape != (2, self.n_pairs):
            raise ValueError("one discount and one strength are needed for every restaurant")
        require_discounts(values[0])
        require_strengths(values[1])
        cdef double[:, ::1] view = values
        cdef index_t number, label, own, n_labels = self.sampler.n_labels
        for number in range(<index_t>self.sampler.group_label.size()):
            label = self.sampler.group_label[number]
            for own in range(2):
                self.sampler.rule_houses[2 * number + own].discount = view[0, label]
                self.sampler.rule_houses[2 * number + own].strength = view[1, label]
                self.sampler.class_houses[2 * number + own].discount = view[0, 2 * n_labels + label]
                self.sampler.class_houses[2 * number + own].strength = view[1, 2 * n_labels + label]
        for label in range(n_labels):
            self.sampler.base_houses[label].discount = view[0, n_labels + label]
            self.sampler.base_houses[label].strength = view[1, n_labels + label]
            self.sampler.label_class_houses[label].discount = view[0, 4 * n_labels]
            self.sampler.label_class_houses[label].strength = view[1, 4 * n_labels]
        for number in range(<index_t>self.sampler.word_houses.size()):
            label = self.sampler.word_house_label[number]
            self.sampler.word_houses[number].discount = view[0, 3 * n_labels + label]
            self.sampler.word_houses[number].strength = view[1, 3 * n_labels + label]

    def resample_parameters(self, uint64_t iteration, *, bint hyper=True):
        """Draw all discounts and strengths anew; returns the log joint before that."""
        cdef Totals sums
        cdef double log_joint
        with nogil:
            sums = self.sampler.totals()
            log_joint = self.sampler.log_joint(sums)
            if hyper:
                self.sampler.resample_hyper(iteration, sums)
        return log_joint

    def log_joint(self):
        """The log probability of subcategories and seating given the parameters."""
        return self.sampler.log_joint(self.sampler.totals())

    # ---- subcategories -----------------------------------------------------------------------------------

    def start(self, bits):
        """Seat all trees with these choices, 0 or 1 per node."""
        self.require_seated(False)
        self.put_bits(bits)
        with nogil:
            self.sampler.seat_all()
        self.is_seated = True

    cdef int put_bits(self, bits) except -1:
        bits = np.ascontiguousarray(bits, dtype=np.uint8)
        if bits.shape != (self.sampler.label.size(),) or (bits >= self.n_options()[self.groups()]).any():
            raise ValueError("a node chooses an option that its group does not have")
        cdef const uint8_t[::1] view = bits
        self.sampler.bit.assign(&view[0], &view[0] + view.shape[0])
        return 0

    def empty(self):
        """Unseat all trees."""
        self.require_seated(True)
        with nogil:
            self.sampler.unseat_all()
        self.is_seated = False

    def bits(self):
        """Which option each node has chosen."""
        return np.array([value for value in self.sampler.bit], dtype=np.uint8)

    def groups(self):
        return np.array([value for value in self.sampler.group], dtype=np.int32)

    def group_labels(self):
        return np.array([value for value in self.sampler.group_label], dtype=np.int32)

    def n_options(self):
        """How many options each group has."""
        return np.array([value for value in self.sampler.n_options], dtype=np.uint8)

    def tree_sweep(self, uint64_t iteration, double temperature=1.0):
        """One Metropolis-Hastings step for every tree: proposals, acceptances and changes."""
        self.require_seated(True)
        if not temperature > 0:
            raise ValueError("the temperature must be positive")
        cdef SweepCounts counts
        with nogil:
            counts = self.sampler.tree_sweep(iteration, temperature)
        return counts.n_proposed, counts.n_accepted, counts.n_changed

    def type_sweep(self, uint64_t iteration, index_t n_moves, double temperature=1.0, *, bint onto_used=False):
        """Relabel all occurrences of refined rules at once: proposals, acceptances, and acceptances again."""
        self.require_seated(True)
        if n_moves < 0 or not temperature > 0:
            raise ValueError("the number of moves and the temperature must be positive")
        cdef SweepCounts counts
        with nogil:
            counts = self.sampler.type_sweep(iteration, n_moves, temperature, onto_used)
        return counts.n_proposed, counts.n_accepted, counts.n_changed

    def merge_losses(self, uint64_t iteration, *, bint marginal=False):
        """Per group, what is lost in log probability when its two options are made one."""
        self.require_seated(True)
        cdef vector[double] losses
        with nogil:
            losses = self.sampler.marginal_losses() if marginal else self.sampler.joint_losses(iteration)
        return np.array([value for value in losses])

    def merge(self, is_merged, uint64_t iteration):
        """Make one option of the two of these groups."""
        self.require_seated(True)
        is_merged = np.ascontiguousarray(is_merged, dtype=np.uint8)
        if is_merged.shape != (self.sampler.group_label.size(),):
            raise ValueError("one flag is needed for every group")
        cdef const uint8_t[::1] view = is_merged
        cdef vector[uint8_t] flags
        flags.assign(&view[0], &view[0] + view.shape[0])
        with nogil:
            self.sampler.merge(flags, iteration)

    # ---- what it knows -----------------------------------------------------------------------------------

    def blocks(self):
        """The blocks as columns: see `SrBlock` in the header."""
        cdef index_t n_blocks = self.sampler.blocks.size(), number
        table = np.empty((n_blocks, len(BLOCK_FIELDS)), dtype=np.int64)
        cdef index_t[:, ::1] view = table
        cdef SrBlock* block
        for number in range(n_blocks):
            block = &self.sampler.blocks[number]
            view[number, 0], view[number, 1], view[number, 2] = block.rule, block.group, block.left_group
            view[number, 3], view[number, 4], view[number, 5] = block.right_group, block.label, block.n_children
            view[number, 6], view[number, 7], view[number, 8] = block.word_class, block.word_house, block.first
            view[number, 9], view[number, 10] = block.base_first, block.class_first
            view[number, 11] = block.label_class
        return {name: np.ascontiguousarray(table[:, place]) for place, name in enumerate(BLOCK_FIELDS)}

    def cells(self, kind):
        """The numbers of customers and tables of all cells of a kind."""
        cdef vector[Tables]* cells = self.cells_of(kind)
        cdef index_t place
        counts = np.empty((2, cells.size()), dtype=np.int32)
        cdef symbol_t[:, ::1] view = counts
        for place in range(<index_t>cells.size()):
            view[0, place], view[1, place] = cells[0][place].n_customers, cells[0][place].n_tables
        return counts

    def houses(self, kind):
        """Customers, tables, discount and strength of all restaurants of a kind."""
        cdef vector[House]* houses = self.houses_of(kind)
        cdef index_t place
        values = np.empty((4, houses.size()))
        cdef double[:, ::1] view = values
        for place in range(<index_t>houses.size()):
            view[0, place], view[1, place] = houses[0][place].n_customers, houses[0][place].n_tables
            view[2, place], view[3, place] = houses[0][place].discount, houses[0][place].strength
        return values

    def word_house_labels(self):
        return np.array([value for value in self.sampler.word_house_label], dtype=np.int32)

    def probabilities(self):
        """The predictive probability of every cell of H; 0 for options that are not there."""
        cdef index_t number
        cdef int index
        cdef SrBlock* block
        values = np.zeros(self.sampler.rule_cells.size())
        cdef double[::1] view = values
        for number in range(<index_t>self.sampler.blocks.size()):
            block = &self.sampler.blocks[number]
            for index in range(2 << block.n_children):
                if (
                    index >> block.n_children >= self.sampler.n_options[block.group]
                    or block.n_children == 1 and index & 1 >= self.sampler.n_options[block.left_group]
                    or block.n_children == 2 and index >> 1 & 1 >= self.sampler.n_options[block.left_group]
                    or block.n_children == 2 and index & 1 >= self.sampler.n_options[block.right_group]
                ):
                    continue
                view[block.first + index] = self.sampler.probability(block[0], index)
        return values

    def class_probabilities(self):
        """Of every lexical block with a class: the probability of the class under each option, and under the tag."""
        cdef index_t number
        cdef SrBlock* block
        values = np.zeros((self.sampler.blocks.size(), 3))
        cdef double[:, ::1] view = values
        for number in range(<index_t>self.sampler.blocks.size()):
            block = &self.sampler.blocks[number]
            if block.word_class >= 0:
                view[number, 0] = self.sampler.class_probability(block[0], 0)
                view[number, 1] = self.sampler.class_probability(block[0], 1)
                view[number, 2] = self.sampler.label_class_probability(block[0])
        return values

    def seating(self):
        """All tables: per kind of cell, rows of cell, table size, and number of such tables."""
        cdef vector[Tables]* cells
        cdef index_t place
        result = {}
        for kind in KINDS:
            cells = self.cells_of(kind)
            rows = []
            for place in range(<index_t>cells.size()):
                for entry in cells[0][place].by_size:
                    rows.append((place, entry.first, entry.second))
            result[kind] = np.array(rows, dtype=np.int32).reshape(-1, 3)
        return result

    def restore(self, bits, seating):
        """Put back what `bits` and `seating` gave; the arrays are checked against the trees."""
        self.require_seated(False)
        self.put_bits(bits)
        n_nodes = <index_t>self.sampler.label.size()
        checked = {}
        for kind in KINDS:
            checked[kind] = checked_rows(seating[kind], [0, 1, 1], [self.n_cells(kind), n_nodes + 1, n_nodes + 1])
        wanted = self.wanted_customers(checked)
        for kind in KINDS:
            if (count_customers(checked[kind], self.n_cells(kind)) != wanted[kind]).any():
                raise ValueError("the tables do not fit the trees")
        for kind in KINDS:
            self.seat_tables(kind, checked[kind])
        self.is_seated = True

    def wanted_customers(self, tables):
        """How many customers each cell must have: of H the nodes of the trees, of the others the tables above."""
        blocks, bits = self.blocks(), self.bits().astype(np.int64)
        block_of = np.array([value for value in self.sampler.block_of], dtype=np.int64)
        left, right = self.trees.left, self.trees.right
        n_children = blocks["n_children"][block_of]
        index = bits << n_children
        index[n_children == 1] |= bits[left[n_children == 1]]
        index[n_children == 2] |= bits[left[n_children == 2]] << 1 | bits[right[n_children == 2]]
        wanted = {"rule": np.bincount(blocks["first"][block_of] + index, minlength=self.n_cells("rule"))}
        n_tables = {kind: np.bincount(rows[:, 0], weights=rows[:, 2], minlength=self.n_cells(kind))
                    for kind, rows in tables.items()}
        n_cells = 2 << blocks["n_children"]
        block_of_cell = np.repeat(np.arange(len(n_cells)), n_cells)
        place = np.arange(len(block_of_cell)) - blocks["first"][block_of_cell]
        is_word = blocks["word_class"][block_of_cell] >= 0
        below = place & ((1 << blocks["n_children"][block_of_cell]) - 1)
        base_cell = blocks["base_first"][block_of_cell] + below
        has_base = ~is_word & (self.sampler.levels >= 3)
        wanted["base"] = self.sums(base_cell, n_tables["rule"], has_base, "base")
        wanted["word"] = self.sums(blocks["base_first"][block_of_cell], n_tables["rule"], is_word, "word")
        class_cell = blocks["class_first"][block_of_cell] + place
        wanted["class"] = self.sums(class_cell, n_tables["rule"], is_word, "class")
        # A cell of J_{x_k} can belong to several blocks; each counts once.
        cells, first = np.unique(class_cell[is_word], return_index=True)
        label_class = blocks["label_class"][block_of_cell][is_word][first]
        wanted["label_class"] = np.bincount(
            label_class, weights=n_tables["class"][cells], minlength=self.n_cells("label_class"))
        return wanted

    def sums(self, cells, weights, chosen, kind):
        return np.bincount(cells[chosen], weights=weights[chosen], minlength=self.n_cells(kind))

    def n_cells(self, kind):
        return self.cells_of(kind).size()

    cdef int seat_tables(self, kind, rows) except -1:
        cdef vector[Tables]* cells = self.cells_of(kind)
        cdef vector[House]* houses = self.houses_of(kind)
        house_of = self.house_of_cells(kind)
        cdef symbol_t guest, _table
        for place, size, number in rows.tolist():
            for _table in range(number):
                for guest in range(size):
                    houses[0][<index_t>house_of[place]].grow(cells[0][<index_t>place], guest)
        return 0

    def house_of_cells(self, kind):
        """The restaurant of every cell of a kind."""
        blocks = self.blocks()
        n_cells = 2 << blocks["n_children"]
        block_of_cell = np.repeat(np.arange(len(n_cells)), n_cells)
        place = np.arange(len(block_of_cell)) - blocks["first"][block_of_cell]
        symbol = 2 * blocks["group"][block_of_cell] + (place >> blocks["n_children"][block_of_cell])
        if kind == "rule":
            return symbol
        is_word = blocks["word_class"][block_of_cell] >= 0
        houses = np.zeros(self.n_cells(kind), dtype=np.int64)
        if kind == "base":
            below = place & ((1 << blocks["n_children"][block_of_cell]) - 1)
            houses[(blocks["base_first"][block_of_cell] + below)[~is_word]] = blocks["label"][block_of_cell][~is_word]
        elif kind == "word":
            houses[blocks["base_first"][block_of_cell][is_word]] = blocks["word_house"][block_of_cell][is_word]
        elif kind == "class":
            houses[(blocks["class_first"][block_of_cell] + place)[is_word]] = symbol[is_word]
        else:
            houses[blocks["label_class"][block_of_cell][is_word]] = blocks["label"][block_of_cell][is_word]
        return houses

    cdef vector[Tables]* cells_of(self, kind) except NULL:
        if kind == "rule":
            return &self.sampler.rule_cells
        if kind == "base":
            return &self.sampler.base_cells
        if kind == "class":
            return &self.sampler.class_cells
        if kind == "label_class":
            return &self.sampler.label_class_cells
        if kind == "word":
            return &self.sampler.word_cells
        raise ValueError(f"no cells of kind {kind!r}")

    cdef vector[House]* houses_of(self, kind) except NULL:
        if kind == "rule":
            return &self.sampler.rule_houses
        if kind == "base":
            return &self.sampler.base_houses
        if kind == "class":
            return &self.sampler.class_houses
        if kind == "label_class":
            return &self.sampler.label_class_houses
        if kind == "word":
            return &self.sampler.word_houses
        raise ValueError(f"no restaurants of kind {kind!r}")
