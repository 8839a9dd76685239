# Moves of many bits of the split sampler: all occurrences of a refined rule at once, and merges of the two options of a
# group.
from libc.stdint cimport uint8_t, uint64_t
from libcpp.vector cimport vector

from tsgkit._split_state cimport SplitState
from tsgkit._split_trees cimport SweepCounts
from tsgkit._types cimport index_t


# Draw a node, and resample the bits of all nodes with the same refined rule and of their children: the same for all. A
# rule that others have is no choice, because the reverse would not be the same move (`onto_used` allows it).
cdef int type_sweep(SplitState* s, uint64_t iteration, index_t n_moves, double temperature, bint onto_used,
                    SweepCounts* counts) except -1 nogil

# Per group: what the log joint loses when its two subcategories become one, everything else as it is. Seats are
# resampled where labels change, and rolled back.
cdef int joint_losses(SplitState* s, uint64_t iteration, vector[double]* losses) except -1 nogil
# Per group: the same for the marginal likelihood of the trees, with the counts as they are (Petrov et al. 2006).
cdef int marginal_losses(SplitState* s, int n_threads, vector[double]* losses) except -1 nogil
# Make one subcategory of each of these groups' two.
cdef int merge_groups(SplitState* s, const vector[uint8_t]* is_merged, uint64_t iteration) except -1 nogil
