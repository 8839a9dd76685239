# Sweeps over whole refined trees: proposals of any kind for batches of trees, accepted or rejected one by one.
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libcpp.vector cimport vector

from tsgkit._random cimport Rng
from tsgkit._refined_freezing cimport FrozenBatch
from tsgkit._refined_inside cimport TreeDerivation
from tsgkit._refined_state cimport RefinedState, SweepCounts
from tsgkit._types cimport index_t
from tsgkit._worker_pool cimport WorkerPool, work_t


cdef cppclass Proposal:
    TreeDerivation derivation
    double log_ratio          # log q of the derivation before - log q of the proposed one
    vector[uint8_t] is_kept   # per node: whether its customer stays seated
    double log_beside         # log P of what is not seated, of the proposed derivation over the one before


# What differs between kinds of proposals. All functions get `context`.
cdef struct ProposalKind:
    void* context
    # Take all memory that can be known before, for proposals for so many trees.
    int (*reserve)(void* context, int size) except -1 nogil
    # Make the proposal for an item of a batch, on a worker thread.
    work_t propose
    # Exchange what else belongs to the derivation of an item's tree with that of its proposal; NULL: nothing does.
    void (*exchange)(void* context, int item) noexcept nogil


# The trees whose proposals are made together.
cdef cppclass ProposalBatch:
    RefinedState* state
    uint64_t iteration
    bint joint                       # whether symbols are sampled, too
    double temperature
    int n_threads
    const int64_t* trees
    vector[Proposal] proposals       # per tree of the batch
    FrozenBatch frozen


cdef void start_batches(ProposalBatch* work, RefinedState* state, uint64_t iteration, bint joint, double temperature,
                        int n_threads) noexcept nogil
# One proposal of this kind for every tree, in a random order.
cdef int sweep_trees(ProposalBatch* work, const ProposalKind* kind, int batch, WorkerPool* pool,
                     SweepCounts* counts) except -1 nogil
# The stream for the proposal of an item.
cdef Rng rng_of_proposal(const ProposalBatch* work, int item) noexcept nogil
# After the derivation of an item is drawn: the customers who order what they ordered before stay seated.
cdef void keep_customers(ProposalBatch* work, int item) noexcept nogil
# Sites, or with `joint` sites and symbols, of all trees.
cdef int blocked_sweep(RefinedState* state, uint64_t iteration, bint joint, int batch, int n_threads,
                       double temperature, WorkerPool* pool, SweepCounts* counts) except -1 nogil
# New sites and symbols for these trees, drawn from the grammar of all others and of those of them that were drawn
# before; none is rejected.
cdef int redraw_trees(RefinedState* state, uint64_t iteration, const vector[index_t]* trees,
                      WorkerPool* pool) except -1 nogil
