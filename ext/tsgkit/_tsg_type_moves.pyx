"""Moves of types: cut, or join, a fragment at one of its nodes in all its occurrences at once.

Whole tables get new dishes, which local moves reach only one customer after the other. A cut is proposed only where no
other occurrence has the two parts in that position, a join only where the joined fragment does not occur: each undoes
the other, and both are proposed equally often. The ratio of the joint probabilities then decides (Metropolis):

    accept with probability  min(1, P(after) / P(before))
"""

from libc.math cimport exp
from libc.stdint cimport int32_t, uint64_t
from libcpp.vector cimport vector

from tsgkit._codes cimport INTERNAL, LEFT_FOOT, SITE
from tsgkit._fragments cimport release_fragment
from tsgkit._occurrences cimport change_occurrences, node_list
from tsgkit._random cimport RNG_TYPE, Rng
from tsgkit._restaurant cimport Restaurant, SeatingLog, Tables, note, seat, unseat
from tsgkit._trees cimport n_nodes
from tsgkit._tsg_paths cimport Description, FragmentScratch, Path, descend, find_path, fragment_below
from tsgkit._tsg_state cimport (
    SweepCounts, TsgState, is_foot, log_base_below, log_predictive, restaurant_at, rollback_seatings, tsg_rng,
)
from tsgkit._types cimport index_t, symbol_t


# A fragment, what it is cut into at the end of a path from its root, and the occurrences that a move changes.
cdef cppclass TypeMove:
    Path path
    int32_t whole
    int32_t upper
    int32_t lower
    bint was_cut
    node_list roots


cdef cppclass TypeScratch:
    vector[node_list] occurrences     # per fragment: the nodes where it has its root, in order
    FragmentScratch fragments
    SeatingLog seatings
    vector[index_t] waiting           # of `log_base_below`


# ---- sweeps ---------------------------------------------------------------------------------------------------

cdef int type_sweep(
    TsgState* tsg, uint64_t iteration, index_t n_moves, double temperature, SweepCounts* counts
) except -1 nogil:
    cdef TypeScratch scratch
    cdef TypeMove move
    cdef Rng rng = tsg_rng(tsg, iteration, RNG_TYPE, 0)
    cdef symbol_t node
    cdef index_t root, _move
    cdef bint is_accepted
    counts.n_proposed = counts.n_accepted = counts.n_changed = 0
    scratch.waiting.resize(n_nodes(&tsg.trees))
    scratch.occurrences.resize(tsg.fragments.fragments.size())
    for root in range(n_nodes(&tsg.trees)):
        if tsg.dish[root] >= 0:
            scratch.occurrences[tsg.dish[root]].push_back(<symbol_t>root)
    for _move in range(n_moves):
        node = <symbol_t>rng.below(<uint64_t>n_nodes(&tsg.trees))
        if tsg.trees.parent[node] < 0 or tsg.state[node] >= LEFT_FOOT or is_foot(tsg, node):
            continue
        counts.n_proposed += 1
        is_accepted = resample_type(tsg, node, temperature, &move, &scratch, &rng)
        counts.n_accepted += is_accepted
        counts.n_changed += is_accepted
    return 0


cdef int resample_type(
    TsgState* tsg, symbol_t node, double temperature, TypeMove* move, TypeScratch* scratch, Rng* rng
) except -1 nogil:
    """Propose to cut the fragment around a node there, or to join the two that meet there; whether it was accepted."""
    cdef symbol_t root = find_path(tsg, node, &move.path)
    cdef Description whole, upper, lower
    cdef node_list joined, cut
    cdef int is_accepted = 0
    fragment_below(tsg, root, node, INTERNAL, True, &scratch.fragments, &whole)
    fragment_below(tsg, root, node, SITE, True, &scratch.fragments, &upper)
    fragment_below(tsg, node, node, SITE, True, &scratch.fragments, &lower)
    move.whole, move.upper, move.lower = whole.number, upper.number, lower.number
    move.was_cut = tsg.state[node] == SITE
    if scratch.occurrences.size() < tsg.fragments.fragments.size():
        scratch.occurrences.resize(tsg.fragments.fragments.size())
    find_occurrences(tsg, move, False, &scratch.occurrences[move.whole], &joined)
    find_occurrences(tsg, move, True, &scratch.occurrences[move.upper], &cut)
    if move.upper != move.lower and not has_insertion_there(tsg, move, &joined):
        if move.was_cut and joined.empty():
            move.roots.swap(cut)
            is_accepted = accept_or_reject(tsg, move, temperature, scratch, rng)
        elif not move.was_cut and cut.empty():
            move.roots.swap(joined)
            is_accepted = accept_or_reject(tsg, move, temperature, scratch, rng)
    release_fragment(&tsg.fragments, move.whole)
    release_fragment(&tsg.fragments, move.upper)
    release_fragment(&tsg.fragments, move.lower)
    return is_accepted


cdef int find_occurrences(
    const TsgState* tsg, const TypeMove* move, bint is_cut, const node_list* roots, node_list* result
) except -1 nogil:
    """Where the joined fragment occurs, or its upper part with the lower one below the end of the path."""
    cdef size_t item
    cdef symbol_t node
    for item in range(roots.size()):
        node = descend(tsg, roots[0][item], &move.path)
        if (tsg.dish[node] == move.lower) if is_cut else (tsg.state[node] == INTERNAL):
            result.push_back(roots[0][item])
    return 0


cdef bint has_insertion_there(const TsgState* tsg, const TypeMove* move, const node_list* roots) noexcept nogil:
    """Whether an occurrence of the joined fragment cannot be cut, since there is an insertion at the node."""
    cdef size_t item
    for item in range(roots.size()):
        if is_foot(tsg, descend(tsg, roots[0][item], &move.path)):
            return True
    return False


# ---- acceptance -----------------------------------------------------------------------------------------------

cdef int accept_or_reject(
    TsgState* tsg, TypeMove* move, double temperature, TypeScratch* scratch, Rng* rng
) except -1 nogil:
    cdef double log_old = 0.0, log_new = 0.0, log_ratio
    scratch.seatings.entries.clear()
    unseat_occurrences(tsg, move, scratch, rng, &log_old)
    seat_occurrences(tsg, move, scratch, rng, &log_new)
    log_ratio = (log_new - log_old) / temperature
    if log_ratio >= 0.0 or rng.uniform() < exp(log_ratio):
        update_occurrences(tsg, move, scratch)
        return 1
    rollback_seatings(tsg, &scratch.seatings)
    restore_derivations(tsg, move)
    return 0


cdef int unseat_occurrences(
    TsgState* tsg, const TypeMove* move, TypeScratch* scratch, Rng* rng, double* log_probability
) except -1 nogil:
    """Unseat the fragments of all occurrences, and nothing else; the log probability of what was there."""
    cdef size_t item = move.roots.size()
    cdef symbol_t node
    while item > 0:
        item -= 1
        node = descend(tsg, move.roots[item], &move.path)
        if move.was_cut:
            unseat_one(tsg, node, scratch, rng, log_probability)
        else:
            log_probability[0] += tsg.log_no_insertion[tsg.trees.label[node]]
        unseat_one(tsg, move.roots[item], scratch, rng, log_probability)
    return 0


cdef int unseat_one(
    TsgState* tsg, symbol_t root, TypeScratch* scratch, Rng* rng, double* log_probability
) except -1 nogil:
    cdef Restaurant* restaurant = &tsg.restaurants[restaurant_at(tsg, root, tsg.state[root])]
    cdef Tables* tables = &tsg.fragments.fragments[tsg.dish[root]].tables
    cdef double log_base = log_base_below(tsg, 0, root, tsg.state.data(), scratch.waiting.data())
    note(&scratch.seatings, restaurant, 0, tsg.dish[root], unseat(restaurant, tables, rng), -1, False)
    log_probability[0] += log_predictive(restaurant, tables, log_base)
    return 0


cdef int seat_occurrences(
    TsgState* tsg, const TypeMove* move, TypeScratch* scratch, Rng* rng, double* log_probability
) except -1 nogil:
    """Seat the other fragments in all occurrences; the log probability of what is there now."""
    cdef size_t item
    cdef symbol_t root, node
    for item in range(move.roots.size()):
        root = move.roots[item]
        node = descend(tsg, root, &move.path)
        if move.was_cut:
            tsg.state[node] = INTERNAL
            seat_one(tsg, root, move.whole, scratch, rng, log_probability)
            tsg.dish[node] = -1
            log_probability[0] += tsg.log_no_insertion[tsg.trees.label[node]]
        else:
            tsg.state[node] = SITE
            seat_one(tsg, root, move.upper, scratch, rng, log_probability)
            seat_one(tsg, node, move.lower, scratch, rng, log_probability)
    return 0


cdef int seat_one(
    TsgState* tsg, symbol_t root, int32_t number, TypeScratch* scratch, Rng* rng, double* log_probability
) except -1 nogil:
    cdef Restaurant* restaurant = &tsg.restaurants[restaurant_at(tsg, root, tsg.state[root])]
    cdef Tables* tables = &tsg.fragments.fragments[number].tables
    cdef double log_base = log_base_below(tsg, 0, root, tsg.state.data(), scratch.waiting.data())
    log_probability[0] += log_predictive(restaurant, tables, log_base)
    note(&scratch.seatings, restaurant, 0, number, seat(restaurant, tables, exp(log_base), rng), -1, True)
    tsg.dish[root] = number
    return 0


cdef void restore_derivations(TsgState* tsg, const TypeMove* move) noexcept nogil:
    """Put the former derivations back in all occurrences."""
    cdef size_t item
    cdef symbol_t root, node
    for item in range(move.roots.size()):
        root = move.roots[item]
        node = descend(tsg, root, &move.path)
        tsg.state[node] = SITE if move.was_cut else INTERNAL
        tsg.dish[root] = move.upper if move.was_cut else move.whole
        tsg.dish[node] = move.lower if move.was_cut else -1


# ---- where fragments occur ------------------------------------------------------------------------------------

cdef int update_occurrences(const TsgState* tsg, const TypeMove* move, TypeScratch* scratch) except -1 nogil:
    """Keep the lists as they are after an accepted move."""
    cdef node_list nodes
    cdef size_t item
    for item in range(move.roots.size()):
        nodes.push_back(descend(tsg, move.roots[item], &move.path))
    change_occurrences(&move.roots, &scratch.occurrences[move.whole], move.was_cut)
    change_occurrences(&move.roots, &scratch.occurrences[move.upper], not move.was_cut)
    change_occurrences(&nodes, &scratch.occurrences[move.lower], not move.was_cut)
    return 0
