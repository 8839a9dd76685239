"""Seating all trees of the split sampler; see ``_split_seating.pxd``."""

from tsgkit._random cimport RNG_SPLIT_START, Rng, rng_for
from tsgkit._split_state cimport SplitState
from tsgkit._trees cimport n_nodes, n_trees
from tsgkit._types cimport index_t


cdef int seat_all(SplitState* s) except -1 nogil:
    s.pool.run(1, 1, seat_trees, s)
    return 0


cdef int unseat_all(SplitState* s) except -1 nogil:
    s.pool.run(1, 1, unseat_trees, s)
    return 0


cdef void seat_trees(void* context, int item, int thread) noexcept nogil:
    cdef SplitState* s = <SplitState*>context
    cdef SeatingEntries seatings
    cdef Rng rng
    cdef index_t tree, node
    for tree in range(n_trees(&s.trees)):
        rng = rng_for(s.seed, 0, RNG_SPLIT_START, tree)
        seatings.clear()
        for node in range(s.trees.tree_start[tree], s.trees.tree_start[tree + 1]):
            seat_node(s, node, &rng, &seatings)


cdef void unseat_trees(void* context, int item, int thread) noexcept nogil:
    cdef SplitState* s = <SplitState*>context
    cdef SeatingEntries seatings
    cdef index_t node
    for node in range(n_nodes(&s.trees) - 1, -1, -1):
        unseat_node(s, node, &seatings)
        seatings.clear()
