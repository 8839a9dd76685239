"""Moves of types over refined trees: cut, or join, a fragment at one of its nodes in all its occurrences at once.

As in `tsgkit._tsg_type_moves`, a cut is proposed only where no other occurrence has the two parts in that position, a
join only where the joined fragment does not occur, so that each undoes the other. The parts have a symbol x_k where
they meet. If symbols are given, the occurrences are those with the same symbol there. If they are sampled, a cut draws
k for all occurrences, by the counts without them,

    q(k)  proportional to  p(upper part with the frontier x_k) p(lower part with the root x_k)

and is accepted with probability min(1, P(after) / (P(before) q(k))), a join with min(1, P(after) q(k) / P(before)).
"""

from libc.math cimport exp, log
from libc.stdint cimport int32_t, uint8_t, uint64_t
from libcpp.vector cimport vector

from tsgkit._occurrences cimport change_occurrences, node_list
from tsgkit._random cimport RNG_REFINED_TYPE, Rng, rng_for
from tsgkit._refined_inside cimport find_stored_dish
from tsgkit._refined_rules cimport n_subcategories
from tsgkit._refined_seating cimport ANY_TABLE, multiply_predictive, rollback_state, seat_site, unseat_site
from tsgkit._refined_state cimport (
    Derivation,
    RefinedState,
    SweepCounts,
    find_dish_below,
    forget_seatings,
    present,
    release_dish,
    sort_state,
)
from tsgkit._restaurant cimport LogProduct, log_of, log_product
from tsgkit._trees cimport child, n_nodes
from tsgkit._types cimport index_t, symbol_t


# A fragment, what it is cut into at the end of a path from its root, and the occurrences that a move changes.
cdef cppclass TypeMove:
    vector[uint8_t] goes_right      # from below up: whether the path comes from the right child
    bint was_cut
    bint joint
    symbol_t label                  # of the node at the end
    symbol_t symbol                 # of it as a site
    int32_t whole                   # dishes; -1: not known
    int32_t upper
    int32_t lower
    node_list roots
    node_list nodes                 # those at the ends of the paths
    vector[symbol_t] old_symbols    # of these


cdef cppclass TypeScratch:
    vector[node_list] occurrences     # per dish: the nodes where it has its root, in order
    vector[double] log_weights        # per subcategory


# ---- sweeps ---------------------------------------------------------------------------------------------------

cdef int type_sweep(
    RefinedState* state, uint64_t iteration, index_t n_moves, bint joint, double temperature,
    const InsertionsAround* around, SweepCounts* counts,
) except -1 nogil:
    cdef TypeScratch scratch
    cdef TypeMove move
    cdef Rng rng = rng_for(state.seed, iteration, RNG_REFINED_TYPE, 0)
    cdef symbol_t node
    cdef index_t root, _move
    cdef bint is_accepted
    if n_moves == 0:
        return 0
    move.joint = joint
    scratch.occurrences.resize(state.dishes.size())
    for root in range(n_nodes(&state.trees)):
        if state.dish[root] >= 0:
            scratch.occurrences[state.dish[root]].push_back(<symbol_t>root)
    for _move in range(n_moves):
        node = <symbol_t>rng.below(<uint64_t>n_nodes(&state.trees))
        if state.trees.parent[node] < 0 or around is not NULL and around.is_foot[node]:
            continue
        counts.n_proposed += 1
        is_accepted = resample_type(state, node, temperature, around, &move, &scratch, &rng)
        counts.n_accepted += is_accepted
        counts.n_changed += is_accepted
    return sort_state(state)


cdef int resample_type(
    RefinedState* state, symbol_t node, double temperature, const InsertionsAround* around, TypeMove* move,
    TypeScratch* scratch, Rng* rng,
) except -1 nogil:
    """Propose to cut the fragment around a node there, or to join the two that meet there; whether it was accepted."""
    cdef symbol_t root = find_path(state, node, move)
    cdef int is_accepted = 0
    move.was_cut, move.label, move.symbol = state.is_site[node], state.trees.label[node], state.symbol[node]
    move.whole = move.upper = move.lower = -1
    find_occurrences(state, move, root, node, scratch)
    if not any_foot(around, &move.nodes):
        is_accepted = accept_or_reject(state, temperature, around, move, scratch, rng)
    release_known(state, move.whole)
    release_known(state, move.upper)
    release_known(state, move.lower)
    return is_accepted


cdef inline int release_known(RefinedState* state, int32_t dish) except -1 nogil:
    return release_dish(state, dish) if dish >= 0 else 0


cdef symbol_t find_path(const RefinedState* state, symbol_t node, TypeMove* move) except -1 nogil:
    """The root of the fragment that contains a node other than as its root, and the path to it."""
    cdef symbol_t above
    move.goes_right.clear()
    while True:
        above = state.trees.parent[node]
        move.goes_right.push_back(state.trees.right[above] == node)
        if state.is_site[above]:
            return above
        node = above


cdef symbol_t descend(const RefinedState* state, symbol_t root, const TypeMove* move) noexcept nogil:
    """The node at the end of the path from this root."""
    cdef size_t item = move.goes_right.size()
    cdef symbol_t node = root
    while item > 0:
        item -= 1
        node = child(&state.trees, node, move.goes_right[item])
    return node


# ---- occurrences ----------------------------------------------------------------------------------------------

cdef int find_occurrences(
    const RefinedState* state, TypeMove* move, symbol_t root, symbol_t node, const TypeScratch* scratch
) except -1 nogil:
    """Those that a move changes: of both parts, or of the whole."""
    cdef const node_list* roots
    cdef symbol_t end
    cdef size_t item
    if move.was_cut:
        move.upper, move.lower = state.dish[root], state.dish[node]
    else:
        move.whole = state.dish[root]
    roots = &scratch.occurrences[state.dish[root]]
    move.roots.clear()
    move.nodes.clear()
    move.old_symbols.clear()
    for item in range(roots.size()):
        end = descend(state, roots[0][item], move)
        if has_parts(state, move, end) if move.was_cut else has_whole(state, move, end):
            move.roots.push_back(roots[0][item])
            move.nodes.push_back(end)
            move.old_symbols.push_back(state.symbol[end])
    return 0


cdef inline bint has_parts(const RefinedState* state, const TypeMove* move, symbol_t end) noexcept nogil:
    """Whether the lower part is at the end of the path of an upper part."""
    return state.dish[end] == move.lower


cdef inline bint has_whole(const RefinedState* state, const TypeMove* move, symbol_t end) noexcept nogil:
    """Whether a whole fragment is of the type: where symbols are given, that at the end of the path is the same."""
    return move.joint or state.symbol[end] == move.symbol


cdef bint any_foot(const InsertionsAround* around, const node_list* nodes) noexcept nogil:
    """Whether an occurrence cannot be cut, since there is an insertion at the node."""
    cdef size_t item
    if around is not NULL:
        for item in range(nodes.size()):
            if around.is_foot[nodes[0][item]]:
                return True
    return False


cdef int update_occurrences(const TypeMove* move, TypeScratch* scratch) except -1 nogil:
    """Keep the lists as they are after an accepted move."""
    change_occurrences(&move.roots, &scratch.occurrences[move.whole], move.was_cut)
    change_occurrences(&move.roots, &scratch.occurrences[move.upper], not move.was_cut)
    change_occurrences(&move.nodes, &scratch.occurrences[move.lower], not move.was_cut)
    return 0


# ---- what there would be --------------------------------------------------------------------------------------

cdef bint find_whole(RefinedState* state, TypeMove* move, TypeScratch* scratch) except -1 nogil:
    """The dish of the joined fragment; whether the join can be undone by a cut: it does not occur."""
    cdef symbol_t root = move.roots[0], node = move.nodes[0]
    cdef const node_list* roots
    cdef size_t item
    if move.upper == move.lower:
        return False
    state.is_site[node] = False
    find_dish_below(state, root)
    move.whole = state.dish[root]
    put_back(state, move, 0)
    make_lists(state, scratch)
    roots = &scratch.occurrences[move.whole]
    for item in range(roots.size()):
        if has_whole(state, move, descend(state, roots[0][item], move)):
            return False
    return True


cdef bint find_parts(RefinedState* state, TypeMove* move, TypeScratch* scratch) except -1 nogil:
    """The dishes of the two parts; whether the cut can be undone by a join: they do not occur there."""
    cdef symbol_t root = move.roots[0], node = move.nodes[0]
    cdef const node_list* roots
    cdef size_t item
    state.is_site[node], state.symbol[node] = True, move.symbol
    find_dish_below(state, node)
    find_dish_below(state, root)
    move.upper, move.lower = state.dish[root], state.dish[node]
    put_back(state, move, 0)
    make_lists(state, scratch)
    if move.upper == move.lower:
        return False
    roots = &scratch.occurrences[move.upper]
    for item in range(roots.size()):
        if has_parts(state, move, descend(state, roots[0][item], move)):
            return False
    return True


cdef inline int make_lists(const RefinedState* state, TypeScratch* scratch) except -1 nogil:
    """A list of occurrences for every dish."""
    if scratch.occurrences.size() < state.dishes.size():
        scratch.occurrences.resize(state.dishes.size())
    return 0


cdef double draw_symbol(RefinedState* state, TypeMove* move, TypeScratch* scratch, Rng* rng) except 1.0 nogil:
    """The log probability of drawing the symbol at the end of the path, by the counts without the occurrences.

    For a cut it is drawn here.
    """
    cdef symbol_t root = move.roots[0], node = move.nodes[0], first = state.rules.first_symbol[move.label]
    cdef int32_t n_values = n_subcategories(&state.rules, move.label), number
    cdef double largest, total = 0.0, target
    scratch.log_weights.resize(n_values)
    state.is_site[node] = True
    for number in range(n_values):
        state.symbol[node] = first + number
        scratch.log_weights[number] = log_frozen(state, node) + log_frozen(state, root)
    put_back(state, move, 0)
    largest = scratch.log_weights[0]
    for number in range(1, n_values):
        largest = max(largest, scratch.log_weights[number])
    for number in range(n_values):
        total += exp(scratch.log_weights[number] - largest)
    if not move.was_cut:
        target = rng.uniform() * total
        number = 0
        while number + 1 < n_values:
            target -= exp(scratch.log_weights[number] - largest)
            if target < 0.0:
                break
            number += 1
        move.symbol = first + number
    return min(0.0, scratch.log_weights[move.symbol - first] - largest - log(total))


cdef double log_frozen(RefinedState* state, symbol_t site) noexcept nogil:
    """The log predictive probability of the fragment at a site, whose dish need not be stored."""
    cdef Derivation derivation = present(state)
    cdef LogProduct product = log_product()
    cdef int32_t dish = find_stored_dish(state, &derivation, site, &state.at_work, state.below.data())
    multiply_predictive(state, &derivation, site, dish, &state.at_work, &product)
    return log_of(&product)


# ---- acceptance -----------------------------------------------------------------------------------------------

cdef int accept_or_reject(
    RefinedState* state, double temperature, const InsertionsAround* around, TypeMove* move, TypeScratch* scratch,
    Rng* rng,
) except -1 nogil:
    cdef LogProduct before = log_product(), after = log_product()
    cdef double log_ratio, log_none, log_symbol = 0.0
    cdef bint can_move = True
    if move.was_cut:
        can_move = find_whole(state, move, scratch)
    elif not move.joint:
        can_move = find_parts(state, move, scratch)
    if not can_move:
        return 0
    forget_seatings(state)
    unseat_occurrences(state, move, rng, &before)
    if move.joint:
        log_symbol = draw_symbol(state, move, scratch, rng)
        if not move.was_cut and not find_parts(state, move, scratch):
            rollback_state(state)
            return 0
    seat_occurrences(state, move, rng, &after)
    log_none = 0.0 if around is NULL else move.roots.size() * around.log_none[move.label]
    log_ratio = log_of(&after) - log_of(&before) + (log_none if move.was_cut else -log_none)
    log_ratio = log_ratio / temperature + (log_symbol if move.was_cut else -log_symbol)
    if log_ratio >= 0.0 or rng.uniform() < exp(log_ratio):
        forget_seatings(state)
        update_occurrences(move, scratch)
        return 1
    rollback_state(state)
    restore_derivations(state, move)
    return 0


cdef int unseat_occurrences(RefinedState* state, const TypeMove* move, Rng* rng, LogProduct* product) except -1 nogil:
    """Unseat the fragments of all occurrences, and nothing else."""
    cdef size_t item = move.roots.size()
    while item > 0:
        item -= 1
        if move.was_cut:
            unseat_site(state, move.nodes[item], rng, ANY_TABLE, product)
        unseat_site(state, move.roots[item], rng, ANY_TABLE, product)
    return 0


cdef int seat_occurrences(RefinedState* state, const TypeMove* move, Rng* rng, LogProduct* product) except -1 nogil:
    """Seat the other fragments in all occurrences. Symbols of internal nodes stay as they are."""
    cdef symbol_t root, node
    cdef size_t item
    for item in range(move.roots.size()):
        root, node = move.roots[item], move.nodes[item]
        state.is_site[node] = not move.was_cut
        state.symbol[node] = move.symbol
        state.dish[root] = move.whole if move.was_cut else move.upper
        state.dish[node] = -1 if move.was_cut else move.lower
        seat_site(state, root, rng, False, product)
        if not move.was_cut:
            seat_site(state, node, rng, False, product)
    return 0


cdef void restore_derivations(RefinedState* state, const TypeMove* move) noexcept nogil:
    cdef size_t item
    for item in range(move.roots.size()):
        put_back(state, move, item)


cdef inline void put_back(RefinedState* state, const TypeMove* move, size_t item) noexcept nogil:
    """Put the former derivation back in an occurrence."""
    cdef symbol_t root = move.roots[item], node = move.nodes[item]
    state.is_site[node] = move.was_cut
    state.symbol[node] = move.old_symbols[item]
    state.dish[root] = move.upper if move.was_cut else move.whole
    state.dish[node] = move.lower if move.was_cut else -1
