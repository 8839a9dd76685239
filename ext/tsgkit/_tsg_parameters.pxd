# Parameters of a tree-substitution grammar given its derivations and seating: sufficient statistics, draws, log joint.
from libc.stdint cimport uint64_t
from libcpp.vector cimport vector

from tsgkit._restaurant cimport table_counts
from tsgkit._tsg_state cimport TsgState
from tsgkit._types cimport index_t


# What the parameters depend on.
cdef cppclass Totals:
    # Over the dishes of all tables: rules (at the root of auxiliary trees apart), frontier and internal nodes by label.
    vector[index_t] rules
    vector[index_t] foot_rules
    vector[index_t] frontier
    vector[index_t] internal
    # Over all trees: insertions by label, and nodes where there could be one and is none.
    vector[index_t] inserted
    vector[index_t] not_inserted
    # By restaurant: tables of each size.
    vector[table_counts] tables_by_size


cdef int count_totals(const TsgState* tsg, Totals* totals) except -1 nogil
# log p(derivations, seating | hyperparameters, stop and insertion probabilities)
cdef double log_joint(const TsgState* tsg, const Totals* totals) noexcept nogil
cdef int resample_hyperparameters(TsgState* tsg, uint64_t iteration, const Totals* totals,
                                  bint is_dirichlet) except -1 nogil
cdef void resample_stops(TsgState* tsg, uint64_t iteration, const Totals* totals) noexcept nogil
cdef int resample_insertions(TsgState* tsg, uint64_t iteration, const Totals* totals) except -1 nogil
