# The grammar transform on a known tree with refined symbols: inside values under frozen counts, and the draw of a
# derivation from them.
#
# Both run on worker threads and change nothing but a thread's inside values and a tree's proposal. Only the matches
# grow there; a failed allocation passes as a C++ exception, for the worker pool to hand over.
from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp.vector cimport vector

from tsgkit._random cimport Rng
from tsgkit._refined_state cimport Derivation, FragmentValues, RefinedState
from tsgkit._types cimport index_t, symbol_t
from tsgkit._worker_pool cimport worker_vector


# How a node that is still to be drawn is derived, where it is not by the part of a fragment.
cdef enum:
    AT_SITE = -1
    BY_BASE = -2


cdef struct Range:
    int32_t begin
    int32_t end


# Fragments that match at a node: single rules come first.
cdef struct MatchRange:
    int32_t begin
    int32_t first_large
    int32_t end


# A node that is still to be drawn.
cdef struct OpenNode:
    int32_t node
    int32_t derived_by     # the number of a fragment's part, AT_SITE or BY_BASE
    symbol_t subcategory


# When a fragment was last found at a right child, and its S there.
cdef struct Stamp:
    int64_t time
    double value


# The inside values of one tree. Those of a node are divided by the largest I(v); `scale` is 1 over that.
cdef cppclass RefinedInside:
    # I, B and s I + (1 - s) B by node and subcategory.
    vector[double] inside
    vector[double] base
    vector[double] mixed
    vector[double] scale                  # per node
    # Fragments that match at a node, with their S: those with parts, and single rules that are parts of others.
    vector[MatchRange] matches            # per node
    worker_vector[int32_t] match
    worker_vector[double] value
    vector[Stamp] stamps                  # per fragment
    int64_t now
    vector[OpenNode] open_nodes
    size_t n_open
    vector[int32_t] below                 # per node: the fragment below it, -1 if it is not stored
    FragmentValues at_work


# A derivation of one tree: whether each node is a site, its symbol, and the dish at a site, -1 if it is not stored.
cdef cppclass TreeDerivation:
    vector[uint8_t] is_site
    vector[symbol_t] symbol
    vector[int32_t] dish


# Room for the trees of a batch, so that workers allocate only what nobody can know before.
cdef int reserve_inside(const RefinedState* state, RefinedInside* values) except -1 nogil
cdef int resize_derivation(TreeDerivation* derivation, index_t n_nodes) except -1 nogil
# With `joint`, any subcategory may be that of a site; otherwise the present one.
cdef void fill_inside(const RefinedState* state, RefinedInside* values, index_t tree, bint joint) noexcept nogil
cdef void draw_derivation(const RefinedState* state, RefinedInside* values, index_t tree, bint joint,
                          TreeDerivation* drawn, Rng* rng) noexcept nogil

# ---- steps of these two, for one node ---------------------------------------------------------------------------

cdef void fill_at(const RefinedState* state, RefinedInside* values, index_t first, index_t node,
                  bint joint) noexcept nogil
cdef void open_root(const RefinedState* state, RefinedInside* values, index_t tree,
                    TreeDerivation* drawn) noexcept nogil
cdef void open_node(RefinedInside* values, int32_t node, int32_t derived_by, symbol_t subcategory) noexcept nogil
cdef void draw_site(const RefinedState* state, RefinedInside* values, index_t first, bint joint, const OpenNode* next,
                    TreeDerivation* drawn, Rng* rng) noexcept nogil
cdef void draw_base_children(const RefinedState* state, RefinedInside* values, index_t first, int32_t node,
                             symbol_t subcategory, Rng* rng) noexcept nogil
cdef void open_parts(const RefinedState* state, RefinedInside* values, int32_t node, int32_t fragment) noexcept nogil
cdef void find_stored_dishes(const RefinedState* state, RefinedInside* values, index_t tree,
                             TreeDerivation* drawn) noexcept nogil
# The dish of a site of a derivation, or -1 if it is not stored; `below_node` has room for every node of the derivation.
cdef int32_t find_stored_dish(const RefinedState* state, const Derivation* derivation, int32_t root,
                              FragmentValues* at_work, int32_t* below_node) noexcept nogil
