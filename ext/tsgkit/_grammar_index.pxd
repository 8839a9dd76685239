# A weighted grammar laid out for the loops of the chart.
from tsgkit._types cimport index_t, symbol_t, weight_t


cdef struct GrammarTable:
    # Symbols are renumbered ("ranks"): a unary rule or bridge goes from a higher rank to a lower one,
    # except inside a cycle, whose members have neighbouring ranks.
    symbol_t n_symbols
    symbol_t n_treebank_labels
    symbol_t n_labels                     # these, then one for every symbol without a label of its own
    symbol_t root
    const symbol_t* symbol_of             # per rank: the grammar's own number
    const symbol_t* label                 # per symbol
    const symbol_t* unlabelled            # per label that is not of the treebank: its symbol

    # Binary rules by left child: symbol -> pairs (left, right) -> rules with these children.
    const index_t* pair_start             # per left symbol, and one more
    const symbol_t* pair_right            # per pair
    const index_t* pair_rule_start        # per pair, and one more
    const symbol_t* rule_parent           # per rule
    const weight_t* rule_weight

    # The same rules by treebank rule: label -> groups with the same left label -> blocks (label, left label,
    # right label) -> runs with the same left symbol -> pairs -> rules.
    const index_t* group_start            # per label, and one more
    const symbol_t* group_left_label      # per group
    const index_t* group_block_start      # per group, and one more
    const index_t* block_start            # per label, and one more
    const symbol_t* block_left_label      # per block
    const symbol_t* block_right_label
    const index_t* block_parent_start     # per block, and one more
    const symbol_t* block_parent          # the different parents of each block's rules
    const index_t* run_start              # per block, and one more
    const symbol_t* run_left              # per run
    const index_t* run_pair_start         # per run, and one more
    const symbol_t* block_pair_right      # per pair
    const index_t* block_rule_start       # per pair, and one more
    const symbol_t* block_rule_parent     # per rule
    const weight_t* block_rule_weight

    # The same rules by parent, for walks from the root down.
    const index_t* parent_start           # per symbol, and one more
    const symbol_t* parent_left           # per rule
    const symbol_t* parent_right
    const weight_t* parent_weight

    # Unary rules and bridges, by child and by parent.
    const index_t* up_start               # per child symbol, and one more
    const symbol_t* up_parent
    const weight_t* up_weight
    const symbol_t* up_is_bridge
    const index_t* down_start             # per parent symbol, and one more
    const symbol_t* down_child
    const weight_t* down_weight
    const symbol_t* down_is_bridge

    # Cycles of them.
    const symbol_t* cycle_of              # per symbol: its cycle, or -1
    symbol_t largest_cycle                # number of its members
    const symbol_t* cycle_first           # per cycle: its first member
    const symbol_t* cycle_size
    const index_t* cycle_matrix           # per cycle: where its closure begins
    const weight_t* cycle_sums            # closures, row after row
    const weight_t* cycle_best


cdef class GrammarIndex:
    cdef GrammarTable table              # what the kernels read
    cdef readonly symbol_t n_symbols
    cdef readonly symbol_t n_labels      # of the treebank
    cdef readonly object symbol_of_rank  # ndarray: the grammar's own number of a symbol
    cdef readonly object rank_of_symbol  # ndarray: its inverse
    cdef list arrays                     # keeps what the table points to

    cdef const index_t* indices(self, values) except NULL
    cdef const symbol_t* symbols(self, values) except NULL
    cdef const weight_t* weights(self, values) except NULL
