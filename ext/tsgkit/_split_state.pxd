# The state of the two-way split sampler: a bit for every node of known trees, and the table that its rule's customer
# sits at.
#
# Every node belongs to a *group*: a label with the subcategory that an earlier split gave it. In this split it has one
# of the group's two subcategories (its bit), so that the cost of a sweep does not grow with the number of
# subcategories. A refined symbol has the number 2 group + bit; a group with one option only has bit 0. Every node is a
# substitution site here: its rule is a customer of the `BackOff`.
#
# Nodes with the same treebank rule and groups share a *block* of cells at every level, one for each choice of bits:
# addresses are dense, and nothing is hashed while sampling.
#
# Tables are told apart: a node knows the number of its table among those of its cell, and a table the numbers of those
# where its own customers sit, at the next level. So unseating a tree needs no random numbers, and the trees of a batch
# can be unseated, seated again and unseated one by one (`_split_trees`).
#
# Labels share no restaurant. They are divided into parts, whose customers can be seated by different threads.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libcpp.vector cimport vector

from tsgkit._backoff cimport Address, BackOff, Place
from tsgkit._label_parts cimport LabelParts
from tsgkit._random cimport Rng
from tsgkit._trees cimport BinaryTrees
from tsgkit._types cimport index_t, symbol_t
from tsgkit._worker_pool cimport WorkerPool

cdef enum:
    NO_TABLE = -1

cdef extern from "inline_vector.hpp" namespace "tsgkit" nogil:
    # As `InlineVector` of `_restaurant`, but it may grow on worker threads; see `_worker_pool`.
    cdef cppclass TableVector "tsgkit::InlineVector" [Item]:
        size_t size()
        const Item* data()
        Item& operator[](size_t)
        void insert_at(size_t position, Item item)


# A table of a cell; one without customers is a number that is free.
cdef struct Table:
    int32_t size
    int32_t below          # where its customer at the next level sits: of a word at W; NO_TABLE at the last level
    int32_t class_below    # of a word: the same at J_{x_k}; otherwise NO_TABLE

ctypedef TableVector[Table] TableList


# The rules of one kind of node. A choice of bits is an *index*: the node's bit, then those of its children.
cdef struct Block:
    symbol_t rule
    symbol_t group
    symbol_t left_group         # -1: no child
    symbol_t right_group
    symbol_t label
    symbol_t n_children
    symbol_t word_class         # of a word with a class; otherwise -1
    symbol_t word_restaurant
    int32_t word_cell
    int32_t class_first         # the two cells of (group, class) in J_{x_k}


cdef cppclass SplitState:
    BinaryTrees trees
    vector[symbol_t] group              # per node
    vector[symbol_t] group_label        # per group
    vector[uint8_t] n_options           # per group: 1 or 2
    uint64_t seed
    vector[uint8_t] bit                 # per node
    vector[int32_t] seat                # per node: the number of its table
    vector[int32_t] block_of            # per node
    vector[Block] blocks
    # Per block, level of rules and option: the restaurant, and the first of its `1 << n_children` cells there.
    vector[Place] places
    vector[vector[int32_t]] nodes_of_block
    BackOff back_off                    # `by_size` of its cells is not used
    vector[vector[TableList]] tables    # per level and cell
    LabelParts parts
    # Per node: what is proposed for its tree.
    vector[uint8_t] new_bit
    vector[int32_t] new_seat
    WorkerPool pool


cdef inline int index_of_bits(const Block* block, int bit, int left_bit, int right_bit) noexcept nogil:
    if block.n_children == 2:
        return bit << 2 | left_bit << 1 | right_bit
    return bit << 1 | left_bit if block.n_children == 1 else bit


cdef inline int index_of(const SplitState* s, index_t node, const uint8_t* bit) noexcept nogil:
    """The refinement of a node's rule by these bits."""
    cdef symbol_t left = s.trees.left[node], right = s.trees.right[node]
    return index_of_bits(&s.blocks[s.block_of[node]], bit[node], bit[left] if left >= 0 else 0,
                         bit[right] if right >= 0 else 0)


cdef inline const Place* places_of(const SplitState* s, int32_t number) noexcept nogil:
    """The places of a block: those of both options at the first level, then at the second, and so on."""
    return &s.places[<size_t>number * 2 * s.back_off.n_rule_levels]


cdef inline Place place_at(const SplitState* s, int32_t number, int level, int index) noexcept nogil:
    """Where a refinement of a block's rule has its tables at a level of rules."""
    cdef int n = s.blocks[number].n_children
    cdef Place place = places_of(s, number)[2 * level + (index >> n)]
    place.cell += index & ((1 << n) - 1)
    return place


cdef inline void fill_address(const SplitState* s, int32_t number, int index, Address* address) noexcept nogil:
    """Where a refinement of a block's rule has its tables."""
    cdef const Block* block = &s.blocks[number]
    cdef const Place* places = places_of(s, number)
    cdef int option = index >> block.n_children, below = index & ((1 << block.n_children) - 1), level
    address.rule, address.label, address.word_class = block.rule, block.label, block.word_class
    address.of_class.restaurant, address.of_class.cell = 2 * block.group + option, block.class_first + option
    address.of_word.restaurant, address.of_word.cell = block.word_restaurant, block.word_cell
    for level in range(s.back_off.n_used):
        address.rules[level].restaurant = places[2 * level + option].restaurant
        address.rules[level].cell = places[2 * level + option].cell + below


# Number the blocks and cells of the trees, and open the restaurants; nobody is seated.
cdef int open_split(SplitState* s) except -1 nogil
# The log probability of bits and seating; all discounts and strengths are resampled after that, where asked for.
cdef double log_joint_and_hyper(SplitState* s, uint64_t iteration, bint resample) except? -1.0 nogil
