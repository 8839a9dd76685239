# The grammar transform on a known tree: inside values under frozen counts, and the draw of a derivation from them.
#
# Both run on worker threads and change nothing but a thread's inside values and a tree's proposal. Only the matches
# grow there; a failed allocation passes as a C++ exception, for the worker pool to hand over.
from libc.stdint cimport int32_t
from libcpp cimport bool as cpp_bool
from libcpp.vector cimport vector

from tsgkit._random cimport Rng
from tsgkit._tsg_state cimport TreeDerivation, TsgState
from tsgkit._types cimport index_t
from tsgkit._worker_pool cimport worker_vector


# A fragment that matches at a node v, and S_g(v) / I(v) or N_g(v) / I(v).
cdef struct Match:
    int32_t number
    double value


# Matches of a node: a range of them.
cdef struct MatchRange:
    int32_t begin
    int32_t end
    double factor        # by which their values are to be multiplied


# A node that is still to be drawn.
cdef struct OpenNode:
    int32_t node
    int32_t expansion    # NEW_FRAGMENT, FROM_BASE, or the number of a fragment's part
    cpp_bool may_insert


# The inside values of one tree, per node.
cdef cppclass InsideValues:
    vector[double] base                # B(v) / I(v)
    vector[double] base_internal       # N_B(v) / I(v)
    vector[double] foot_weight         # a A(v, u) / I(v), for either child as u
    vector[MatchRange] matching        # the fragments that match at v
    vector[MatchRange] continuing      # and those with which a host can continue into v
    worker_vector[Match] matches
    vector[int32_t] position           # of a fragment among the matches that are being collected, -1 without
    vector[OpenNode] open_nodes
    double log_inside


# Room for a tree of so many nodes, so that workers allocate only what nobody can know before.
cdef int reserve_inside(const TsgState* tsg, InsideValues* values, index_t n_nodes) except -1 nogil
cdef void inside(const TsgState* tsg, index_t tree, InsideValues* values) noexcept nogil
# The states of a tree's nodes, from the root down.
cdef void draw_derivation(const TsgState* tsg, index_t tree, InsideValues* values, TreeDerivation* derivation,
                          Rng* rng) noexcept nogil
