# Single fragments of the present derivations: the path from a node up to the root of its fragment, the fragment that
# there would be if one node were in another state, and the weights of the two into which one is cut. Local Gibbs and
# the moves of types share it.
from libc.stdint cimport int32_t, uint8_t
from libcpp cimport bool as cpp_bool
from libcpp.vector cimport vector

from tsgkit._codes cimport INTERNAL, LEFT_FOOT, MISSING
from tsgkit._random cimport Rng
from tsgkit._restaurant cimport Restaurant
from tsgkit._tsg_state cimport TsgState, foot_of
from tsgkit._types cimport symbol_t


# From a node up to the root of the fragment that contains it other than as its root, insertions left out.
cdef cppclass Path:
    vector[symbol_t] nodes          # from below up; the last one is the root
    vector[uint8_t] goes_right      # whether it comes from the right child of each


cdef inline symbol_t step_up(const TsgState* tsg, symbol_t* below) noexcept nogil:
    """The node above `below` in the same fragment; `below` becomes the child that leads to it."""
    cdef symbol_t above = tsg.trees.parent[below[0]]
    while tsg.state[above] >= LEFT_FOOT and foot_of(tsg, above, tsg.state[above]) == below[0]:
        below[0] = above
        above = tsg.trees.parent[above]
    return above


cdef inline symbol_t root_above(const TsgState* tsg, symbol_t node) noexcept nogil:
    """The root of the fragment that contains a node other than as its root."""
    node = step_up(tsg, &node)
    while tsg.state[node] == INTERNAL:
        node = step_up(tsg, &node)
    return node


cdef inline symbol_t find_path(const TsgState* tsg, symbol_t node, Path* path) except -1 nogil:
    """The same, with the path to it."""
    cdef symbol_t above
    path.nodes.clear()
    path.goes_right.clear()
    while True:
        above = step_up(tsg, &node)
        path.nodes.push_back(above)
        path.goes_right.push_back(tsg.trees.right[above] == node)
        if tsg.state[above] != INTERNAL:
            return above
        node = above


# The fragment at the other end of such a path from a root.
cdef symbol_t descend(const TsgState* tsg, symbol_t root, const Path* path) noexcept nogil


cdef struct Description:
    int32_t number      # of a fragment, MISSING if it is not stored
    double log_base     # log P0 of it


cdef cppclass FragmentScratch:
    vector[symbol_t] nodes
    vector[Description] below     # per node of the corpus

# The fragment with its root at `root`, where `node` counts as being in this state; with `is_stored`, it is stored.
cdef int fragment_below(TsgState* tsg, symbol_t root, symbol_t node, uint8_t state, bint is_stored,
                        FragmentScratch* scratch, Description* result) except -1 nogil


# log P0 of a stored fragment, cached until a stop probability changes.
cdef int compute_log_base(TsgState* tsg, int32_t number) except -1 nogil

cdef inline int cached_log_base(TsgState* tsg, int32_t number, double* log_base) except -1 nogil:
    if tsg.fragments.fragments[number].epoch != tsg.epoch:
        compute_log_base(tsg, number)
    log_base[0] = tsg.fragments.fragments[number].log_base
    return 0


cdef inline int32_t customers_of(const TsgState* tsg, int32_t number) noexcept nogil:
    return 0 if number == MISSING else tsg.fragments.fragments[number].tables.n_customers


# A fragment and what it is cut into.
cdef struct Split:
    Restaurant* upper_restaurant
    Restaurant* lower_restaurant
    int32_t upper
    int32_t lower
    double log_upper      # log P0 of both, each less its scale
    double log_lower
    double weights[2]     # see `weigh_split`

cdef void weigh_split(const TsgState* tsg, Split* split) noexcept nogil
cdef int seat_split(TsgState* tsg, Split* split, double lower_base, Rng* rng) except -1 nogil
