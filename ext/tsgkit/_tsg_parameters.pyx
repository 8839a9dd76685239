"""Parameters of a tree-substitution grammar, resampled given its derivations and seating, and the log joint.

Every table is one draw from the base distribution. So, with uniform priors, for a label c

    s_c ~ Beta(1 + frontier nodes labelled c in the dishes of all tables, 1 + internal nodes)
    a_c ~ Beta(1 + insertions at nodes labelled c, 1 + internal nodes without one)

and the (discount, strength) of every restaurant by Teh's auxiliary variables (`tsgkit._restaurant`).
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libcpp.vector cimport vector

from tsgkit._codes cimport FOOT, INTERNAL, LEFT_FOOT
from tsgkit._fragments cimport Fragment, is_auxiliary
from tsgkit._random cimport RNG_HYPER, RNG_INSERTION, RNG_STOP, Rng
from tsgkit._restaurant cimport add_sizes, log_seating, resample_pair
from tsgkit._trees cimport n_nodes
from tsgkit._tsg_state cimport TsgState, is_foot, n_labels, set_insertion, set_stop_probability, tsg_rng
from tsgkit._types cimport index_t, symbol_t
from tsgkit._vectors cimport fill


# ---- sufficient statistics ------------------------------------------------------------------------------------

cdef int count_totals(const TsgState* tsg, Totals* totals) except -1 nogil:
    cdef size_t number
    cdef vector[int32_t] waiting
    cdef const Fragment* fragment
    fill(totals.rules, tsg.trees.rule_label.size(), 0)
    fill(totals.foot_rules, tsg.trees.rule_label.size(), 0)
    fill(totals.frontier, n_labels(tsg), 0)
    fill(totals.internal, n_labels(tsg), 0)
    fill(totals.inserted, n_labels(tsg), 0)
    fill(totals.not_inserted, n_labels(tsg), 0)
    totals.tables_by_size.clear()
    totals.tables_by_size.resize(tsg.restaurants.size())
    count_insertions(tsg, totals)
    for number in range(tsg.fragments.fragments.size()):
        fragment = &tsg.fragments.fragments[number]
        if fragment.tables.n_tables == 0:
            continue
        add_sizes(&fragment.tables, &totals.tables_by_size[restaurant_of(tsg, fragment)])
        count_dish(tsg, <int32_t>number, &waiting, totals)
    return 0


cdef inline size_t restaurant_of(const TsgState* tsg, const Fragment* fragment) noexcept nogil:
    return tsg.trees.rule_label[fragment.rule] + (n_labels(tsg) if is_auxiliary(fragment) else 0)


cdef void count_insertions(const TsgState* tsg, Totals* totals) noexcept nogil:
    cdef index_t node
    if not tsg.has_insertion:
        return
    for node in range(n_nodes(&tsg.trees)):
        if tsg.state[node] >= LEFT_FOOT:
            totals.inserted[tsg.trees.label[node]] += 1
        elif tsg.state[node] == INTERNAL and (tsg.is_stacked or not is_foot(tsg, node)):
            totals.not_inserted[tsg.trees.label[node]] += 1


cdef int count_dish(const TsgState* tsg, int32_t dish, vector[int32_t]* waiting, Totals* totals) except -1 nogil:
    """Count a fragment's rules and nodes, once for each of its tables."""
    cdef index_t n_tables = tsg.fragments.fragments[dish].tables.n_tables
    cdef const Fragment* fragment
    fill(waiting[0], 1, dish)
    while not waiting.empty():
        fragment = &tsg.fragments.fragments[waiting.back()]
        waiting.pop_back()
        if is_auxiliary(fragment):
            totals.foot_rules[fragment.rule] += n_tables
        else:
            totals.rules[fragment.rule] += n_tables
        count_child(fragment.left, tsg.trees.rule_left_label[fragment.rule], n_tables, waiting, totals)
        count_child(fragment.right, tsg.trees.rule_right_label[fragment.rule], n_tables, waiting, totals)
    return 0


cdef inline int count_child(
    symbol_t part, symbol_t label, index_t n_tables, vector[int32_t]* waiting, Totals* totals
) except -1 nogil:
    if label < 0 or part == FOOT:
        return 0
    if part < 0:
        totals.frontier[label] += n_tables
        return 0
    totals.internal[label] += n_tables
    waiting.push_back(part)
    return 0


cdef double log_joint(const TsgState* tsg, const Totals* totals) noexcept nogil:
    cdef double result = 0.0
    cdef size_t number
    for number in range(tsg.restaurants.size()):
        result += log_seating(&tsg.restaurants[number], &totals.tables_by_size[number])
        if number >= n_labels(tsg):
            continue
        if totals.inserted[number]:
            result += totals.inserted[number] * tsg.log_insertion[number]
        result += totals.not_inserted[number] * tsg.log_no_insertion[number]
        result += (totals.frontier[number] * tsg.stops.log_stop[number]
                   + totals.internal[number] * tsg.stops.log_internal[number])
    for number in range(totals.rules.size()):
        if totals.rules[number]:
            result += totals.rules[number] * tsg.rule_log_probability[number]
        if totals.foot_rules[number]:
            result += totals.foot_rules[number] * tsg.foot_log_probability[number]
    return result


# ---- draws ----------------------------------------------------------------------------------------------------

cdef int resample_hyperparameters(
    TsgState* tsg, uint64_t iteration, const Totals* totals, bint is_dirichlet
) except -1 nogil:
    """One pair (discount, strength) per restaurant; a Dirichlet process keeps its discount of 0."""
    cdef vector[int64_t] sharing
    cdef size_t number
    cdef Rng rng
    for number in range(tsg.restaurants.size()):
        rng = tsg_rng(tsg, iteration, RNG_HYPER, number)
        fill(sharing, 1, number)
        resample_pair(&tsg.restaurants, &totals.tables_by_size, &sharing, &rng, is_dirichlet)
    return 0


cdef void resample_stops(TsgState* tsg, uint64_t iteration, const Totals* totals) noexcept nogil:
    cdef size_t label
    cdef Rng rng
    for label in range(n_labels(tsg)):
        rng = tsg_rng(tsg, iteration, RNG_STOP, label)
        set_stop_probability(tsg, label, rng.beta(1.0 + totals.frontier[label], 1.0 + totals.internal[label]))


cdef int resample_insertions(TsgState* tsg, uint64_t iteration, const Totals* totals) except -1 nogil:
    """Labels without any rule that could have a foot have no insertions."""
    cdef vector[uint8_t] can_be_root
    cdef size_t label, rule
    cdef double drawn
    cdef Rng rng
    fill(can_be_root, n_labels(tsg), 0)
    for rule in range(tsg.foot_probability.size()):
        if tsg.foot_probability[rule] > 0.0:
            can_be_root[tsg.trees.rule_label[rule]] = 1
    for label in range(n_labels(tsg)):
        if can_be_root[label]:
            rng = tsg_rng(tsg, iteration, RNG_INSERTION, label)
            drawn = rng.beta(1.0 + totals.inserted[label], 1.0 + totals.not_inserted[label])
            set_insertion(tsg, label, min(max(drawn, 1e-9), 1.0 - 1e-9))
    return 0
