# Whole trees of the split sampler by blocked Metropolis-Hastings, in batches, and their inside values.
from libc.stdint cimport uint64_t

from tsgkit._split_state cimport SplitState
from tsgkit._types cimport index_t
from tsgkit._worker_pool cimport worker_vector


cdef struct SweepCounts:
    index_t n_proposed
    index_t n_accepted
    index_t n_changed


# Per node of a tree: the weights of its rule's refinements, and the inside values of its options, divided by the larger
# one.
cdef cppclass InsideValues:
    worker_vector[double] weights
    worker_vector[double] inside


# The weights of all refinements of the rules of a tree, and the inside values of its nodes' options.
cdef void fill_inside(const SplitState* s, index_t tree, double temperature, InsideValues* values) noexcept nogil

# One Metropolis-Hastings step for every tree, in a random order; added to the counts.
cdef int tree_sweep(SplitState* s, uint64_t iteration, double temperature, int batch, int n_threads,
                    SweepCounts* counts) except -1 nogil
