# A weighted grammar as plain arrays, in the orders in which the loops of the chart read its rules.
#
# Stage: between the weighted grammar, which is checked when it is made, and the chart, which trusts this table.
from libcpp.vector cimport vector

from tsgkit._types cimport index_t, symbol_t, weight_t


cdef struct Pair:
    symbol_t right                        # the right child
    symbol_t first_rule


cdef struct Rule:
    weight_t weight
    symbol_t parent


cdef struct PairTable:
    # Binary rules by their children: pairs (left, right) -> the rules with these children. What is read together lies
    # together in memory.
    const Pair* pairs                     # and one more, whose first rule is the end
    const Rule* rules


cdef struct EdgeTable:
    # Unary rules and bridges from one of their ends: symbol -> edges to the symbols at the other end.
    const index_t* start                  # per symbol, and one more
    const symbol_t* other                 # per edge
    const weight_t* weight
    const symbol_t* is_bridge


cdef struct GrammarTable:
    # Symbols are renumbered ("ranks"): a unary rule or bridge goes from a higher rank to a lower one,
    # except inside a cycle, whose members have neighbouring ranks.
    symbol_t n_symbols
    symbol_t n_treebank_labels
    symbol_t n_labels                     # these, then one for every symbol without a label
    symbol_t root
    const symbol_t* symbol_of             # per rank: its number in the grammar
    const symbol_t* label                 # per symbol
    const symbol_t* unlabelled            # per label that is not of the treebank: its symbol

    # Binary rules by left child: symbol -> pairs -> rules. These exist once `need_left` was called.
    const index_t* left_pair_start        # per left symbol, and one more
    PairTable by_left

    # The same rules by treebank rule: label -> groups with the same left label -> blocks (label, left label,
    # right label) -> runs with the same left symbol -> pairs -> rules.
    const index_t* group_start            # per label, and one more
    const symbol_t* group_left_label      # per group
    const index_t* group_block_start      # per group, and one more
    const index_t* block_start            # per label, and one more
    const symbol_t* block_left_label      # per block
    const symbol_t* block_right_label
    const index_t* run_start              # per block, and one more
    const symbol_t* run_left              # per run
    const index_t* run_pair_start         # per run, and one more
    PairTable by_block

    # The same rules by parent, for walks from the root down. These exist once `need_parent` was called.
    const index_t* parent_start           # per symbol, and one more
    const symbol_t* parent_left           # per rule
    const symbol_t* parent_right
    const weight_t* parent_weight

    # Unary rules and bridges.
    EdgeTable up                          # by child: to the parents
    EdgeTable down                        # by parent: to the children

    # Cycles of them.
    const symbol_t* cycle_of              # per symbol: its cycle, or -1
    symbol_t largest_cycle                # number of its members
    const symbol_t* cycle_first           # per cycle: its first member
    const symbol_t* cycle_size
    const index_t* cycle_matrix           # per cycle: where its closure begins
    const weight_t* cycle_sums            # closures, row after row
    const weight_t* cycle_best


cdef cppclass BlockLists:
    # What the table points to of the rules by treebank rule.
    vector[symbol_t] group_label
    vector[symbol_t] group_left_label
    vector[index_t] group_block_start
    vector[symbol_t] block_label
    vector[symbol_t] block_left_label
    vector[symbol_t] block_right_label
    vector[index_t] run_start
    vector[symbol_t] run_left
    vector[index_t] run_pair_start
    vector[Pair] pairs
    vector[Rule] rules


cdef cppclass LeftLists:
    vector[index_t] pair_start
    vector[Pair] pairs
    vector[Rule] rules


cdef cppclass ParentLists:
    vector[index_t] start
    vector[symbol_t] left
    vector[symbol_t] right
    vector[weight_t] weight


cdef cppclass Columns:
    # Binary rules as they stand in the lists by treebank rule, one column each.
    vector[symbol_t] parent
    vector[symbol_t] left
    vector[symbol_t] right
    vector[weight_t] weight


cdef class GrammarIndex:
    cdef GrammarTable table              # what the kernels read
    cdef readonly symbol_t n_symbols
    cdef readonly symbol_t n_labels      # of the treebank
    cdef readonly object symbol_of_rank  # ndarray: per rank, the number in the grammar
    cdef readonly object rank_of_symbol  # ndarray: the inverse
    # What the table points to.
    cdef list arrays
    cdef BlockLists by_block
    cdef LeftLists by_left
    cdef ParentLists by_parent
    cdef object lock                     # of the orders that are made when they are needed
    cdef readonly bint has_left
    cdef readonly bint has_parent

    cdef int need_left(self) except -1
    cdef int need_parent(self) except -1
    cdef const index_t* indices(self, values) except NULL
    cdef const symbol_t* symbols(self, values) except NULL
    cdef const weight_t* weights(self, values) except NULL
    cdef object kept(self, values, dtype)
    cdef int index_by_block(self, grammar) except -1
    cdef int index_unary(self, rules, weights, is_bridge) except -1
    cdef int index_cycles(self, components, rank) except -1


cdef int check_lexical(
    GrammarIndex grammar, const index_t[::1] start, const symbol_t[::1] symbol, const weight_t[::1] weight) except -1
