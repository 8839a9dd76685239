# Trees that are not known: Metropolis-Hastings over whole trees with their derivations.
#
# A batch of trees is frozen: unseated, so that a grammar can be made of the counts without them. New trees, which the
# caller has drawn from that grammar, are appended; one by one they replace the old ones or are rejected.
from libc.stdint cimport int32_t, uint64_t
from libcpp.vector cimport vector

from tsgkit._restaurant cimport SeatingLog
from tsgkit._tsg_state cimport SweepCounts, TsgState
from tsgkit._types cimport index_t


cdef cppclass FrozenBatch:
    vector[index_t] trees                # none: nothing is frozen
    SeatingLog seatings                  # how they were unseated
    vector[int32_t] tables               # which tables they left


cdef int freeze_batch(TsgState* tsg, uint64_t iteration, FrozenBatch* batch) except -1 nogil
# Seat the trees of a batch as they were.
cdef int unfreeze_batch(TsgState* tsg, FrozenBatch* batch) except -1 nogil
# Accept or reject the trees from number `first_new` on, one for every tree of the batch; those that are not kept are
# removed.
cdef int replace_batch(TsgState* tsg, uint64_t iteration, FrozenBatch* batch, index_t first_new, double temperature,
                       SweepCounts* counts) except -1 nogil
