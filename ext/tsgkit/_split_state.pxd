# The state of the two-way split sampler: a bit for every node of known trees, and who sits where in the restaurants.
#
# Every node belongs to a *group*: a label with the subcategory that an earlier split gave it. In this split it has one
# of the group's two subcategories (its bit), so that the cost of a sweep does not grow with the number of
# subcategories. A refined symbol has the number 2 group + bit; a group with one option only has bit 0. Every node is a
# substitution site here: its rule is a customer of the `BackOff`.
#
# Nodes with the same treebank rule and groups share a *block* of cells at every level, one for each choice of bits:
# addresses are dense, and nothing is hashed while sampling.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libcpp.vector cimport vector

from tsgkit._backoff cimport Address, BackOff, Place, seat_at, unseat_at
from tsgkit._random cimport Rng
from tsgkit._restaurant cimport SeatingLog
from tsgkit._trees cimport BinaryTrees
from tsgkit._types cimport index_t, symbol_t


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
    int32_t label_class_cell    # the cell of (label, class) in J_x


cdef struct Change:
    int32_t node
    uint8_t old_bit


cdef cppclass SplitState:
    BinaryTrees trees
    vector[symbol_t] group              # per node
    vector[symbol_t] group_label        # per group
    vector[uint8_t] n_options           # per group: 1 or 2
    uint64_t seed
    vector[uint8_t] bit                 # per node
    vector[int32_t] block_of            # per node
    vector[Block] blocks
    # Per block, level of rules and option: the restaurant, and the first of its `1 << n_children` cells there.
    vector[Place] places
    vector[vector[int32_t]] nodes_of_block
    BackOff back_off
    SeatingLog seatings
    # Scratch of tree sweeps, per node of a tree: the weights of its rule's refinements, the inside values of its
    # options, divided by the larger one, and the bits that are proposed.
    vector[double] weights
    vector[double] inside
    vector[uint8_t] new_bits
    # A change of many bits at once: the nodes, and those whose rules it touches. A mark of this epoch is in force.
    vector[Change] planned
    vector[int32_t] touched
    vector[uint32_t] planned_epoch
    vector[uint32_t] touched_epoch
    vector[uint8_t] planned_bit
    uint32_t epoch


cdef inline int index_of_bits(const Block* block, int bit, int left_bit, int right_bit) noexcept nogil:
    if block.n_children == 2:
        return bit << 2 | left_bit << 1 | right_bit
    return bit << 1 | left_bit if block.n_children == 1 else bit


cdef inline int index_of(const SplitState* s, index_t node) noexcept nogil:
    cdef symbol_t left = s.trees.left[node], right = s.trees.right[node]
    return index_of_bits(&s.blocks[s.block_of[node]], s.bit[node], s.bit[left] if left >= 0 else 0,
                         s.bit[right] if right >= 0 else 0)


cdef inline const Place* places_of(const SplitState* s, int32_t number) noexcept nogil:
    """The places of a block: those of both options at the first level, then at the second, and so on."""
    return &s.places[<size_t>number * 2 * s.back_off.n_rule_levels]


cdef inline void fill_address(const SplitState* s, int32_t number, int index, Address* address) noexcept nogil:
    """Where a refinement of a block's rule has its tables."""
    cdef const Block* block = &s.blocks[number]
    cdef const Place* places = places_of(s, number)
    cdef int option = index >> block.n_children, below = index & ((1 << block.n_children) - 1), level
    address.rule, address.label, address.word_class = block.rule, block.label, block.word_class
    address.of_class.restaurant, address.of_class.cell = 2 * block.group + option, block.class_first + option
    address.of_label_class.restaurant, address.of_label_class.cell = block.label, block.label_class_cell
    address.of_word.restaurant, address.of_word.cell = block.word_restaurant, block.word_cell
    for level in range(s.back_off.n_used):
        address.rules[level].restaurant = places[2 * level + option].restaurant
        address.rules[level].cell = places[2 * level + option].cell + below


cdef inline double seat_node(SplitState* s, index_t node, Rng* rng) except -1.0 nogil:
    """Seat a customer for the rule at a node; its probability before that."""
    cdef Address address
    fill_address(s, s.block_of[node], index_of(s, node), &address)
    return seat_at(&s.back_off, &address, rng, &s.seatings)


cdef inline double unseat_node(SplitState* s, index_t node, Rng* rng) except -1.0 nogil:
    """Unseat a customer of the rule at a node; its probability after that."""
    cdef Address address
    fill_address(s, s.block_of[node], index_of(s, node), &address)
    return unseat_at(&s.back_off, &address, rng, &s.seatings)


# Number the blocks and cells of the trees, and open the restaurants; nobody is seated.
cdef int open_split(SplitState* s) except -1 nogil
# Seat, and unseat, all trees by their bits.
cdef int seat_all(SplitState* s) except -1 nogil
cdef int unseat_all(SplitState* s) except -1 nogil
# Forget who sat down or left since the log was empty, or undo it.
cdef int accept_seatings(SplitState* s) except -1 nogil
cdef int reject_seatings(SplitState* s) except -1 nogil
# The log probability of bits and seating; all discounts and strengths are resampled after that, where asked for.
cdef double log_joint_and_hyper(SplitState* s, uint64_t iteration, bint resample) except? -1.0 nogil
