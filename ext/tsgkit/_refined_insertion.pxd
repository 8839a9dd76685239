# Insertions into refined trees, sampled together with sites and subcategories.
#
# What is inserted at a node v with the foot u is taken out of the tree: the links of the state's trees lead from the
# parent of v to u, and v is the root of a tree of its own. It has a label for roots of auxiliary trees, which has one
# subcategory, and a rule with the sibling of the foot as its only child. So auxiliary trees are fragments like others,
# with restaurants of their own, and seating knows nothing of insertions.
#
#     N_h(v) = (1 - a) h(v) + a sum_u A(v, u) h(u)
#
# replaces h(v), B_k or S_g, at every internal node of a fragment; A(v, u) is the inside value of the auxiliary tree.
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libcpp cimport bool as cpp_bool
from libcpp.vector cimport vector

from tsgkit._refined_state cimport RefinedState, SweepCounts
from tsgkit._trees cimport BinaryTrees
from tsgkit._types cimport symbol_t
from tsgkit._worker_pool cimport WorkerPool

cdef enum:
    NO_FOOT = 0        # otherwise one more than the side of the child that is the foot


cdef cppclass Insertions:
    cpp_bool stacked                    # whether a foot may be the host of a further insertion
    BinaryTrees trees                   # as the treebank has them
    vector[symbol_t] auxiliary_label    # per label: that of its auxiliary trees, -1 if it has none
    vector[symbol_t] top_rule           # per rule and side of the foot: that of the root of an auxiliary tree, or -1
    vector[double] probability          # per label; 0 if it has no auxiliary trees
    vector[uint8_t] foot                # per node: what is inserted there


# How often internal nodes of a label have an insertion, and how often they have none.
cdef struct InsertionCounts:
    int64_t inserted
    int64_t none


# Copy the trees, into which nothing is inserted yet.
cdef int open_insertions(RefinedState* state, Insertions* insertions) except -1 nogil
# Let the links of the trees follow `foot`, from links of the treebank's.
cdef int link_insertions(RefinedState* state, Insertions* insertions) except -1 nogil
# One Metropolis-Hastings step for every tree: sites, symbols and insertions.
cdef int insertion_sweep(RefinedState* state, Insertions* insertions, uint64_t iteration, int batch, int n_threads,
                         double temperature, WorkerPool* pool, SweepCounts* counts) except -1 nogil
# Per label.
cdef int count_insertions(const RefinedState* state, const Insertions* insertions,
                          vector[InsertionCounts]* counts) except -1 nogil
# The log probability of all insertions, and of there being none elsewhere.
cdef double log_insertions(const Insertions* insertions, const vector[InsertionCounts]* counts) noexcept nogil
cdef int resample_insertions(const RefinedState* state, Insertions* insertions, uint64_t iteration,
                             const vector[InsertionCounts]* counts) except -1 nogil
# Per label the log probability that an internal node has no insertion, and per node whether it is a foot. With stacked
# insertions, a foot that has none itself counts as an internal node without an insertion.
cdef int describe_insertions(const RefinedState* state, const Insertions* insertions, vector[double]* log_none,
                             vector[uint8_t]* is_foot) except -1 nogil
