# Seating and unseating the customers of refined sites.
from libc.stdint cimport int32_t

from tsgkit._random cimport Rng
from tsgkit._refined_state cimport RefinedState

cdef int collect_nodes(RefinedState* state, int32_t root) except -1 nogil
cdef double log_predictive_at(RefinedState* state, int32_t node) except? -1 nogil
cdef double seat_site(RefinedState* state, int32_t node, Rng* rng, bint annotate) except? -1 nogil
cdef double unseat_site(RefinedState* state, int32_t node, Rng* rng) except? -1 nogil
cdef int seat_all(RefinedState* state) except -1 nogil
cdef int unseat_all(RefinedState* state) except -1 nogil
cdef int rollback_state(RefinedState* state) except -1 nogil
