"""Local Gibbs sampling of derivations: the state of one node after the other, given all others.

Where a node can only be internal or a substitution site, the fragment e around it competes with the two into which it
falls, e_up and e_down:

    z = internal  with weight  p(e) (1 - a)             z = site  with weight  p(e_up) p(e_down | e_up)

where a is the label's probability of an insertion, 0 without. Of the three fragments the two that the present state has
are stored, and the base probability of the third follows from theirs, so that only the path up to the root needs to be
looked up. Where a node can be the root of an auxiliary tree or is a foot, all states are described from scratch and
weighed in logarithms.
"""

from libc.math cimport exp, log, pow
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libcpp.vector cimport vector

from tsgkit._codes cimport FRONTIER, INTERNAL, LEFT_FOOT, MISSING, RIGHT_FOOT, SITE
from tsgkit._fragments cimport Fragment, find_fragment, intern_fragment, prefetch_slot, release_fragment
from tsgkit._prefetch cimport prefetch
from tsgkit._random cimport RNG_SITE, RNG_SITE_ORDER, Rng, random_order
from tsgkit._restaurant cimport Restaurant, Tables, denominator, new_weight, old_weight, seat, unseat
from tsgkit._trees cimport n_nodes
from tsgkit._tsg_paths cimport (
    Description, FragmentScratch, Path, Split, cached_log_base, customers_of, find_path, fragment_below, root_above,
    seat_split, weigh_split,
)
from tsgkit._tsg_state cimport (
    SweepCounts, TsgState, can_be_foot, can_insert, foot_of, is_foot, log_predictive, restaurant_at, tsg_rng,
)
from tsgkit._types cimport index_t, symbol_t

# Visits ahead at which the memory that they will read is prefetched.
cdef enum:
    NODE_AHEAD = 16
    FRAGMENTS_AHEAD = 8
    LOOKUP_AHEAD = 4


# The path from a node up, with the numbers of the fragments below each node of it: as they are, and with the lowest
# node in the other state, a site or internal (MISSING if not stored).
cdef cppclass NumberedPath:
    Path path
    vector[int32_t] present
    vector[int32_t] other


# A state that a node can have: the fragment around it alone, or that and the one with its root there.
cdef struct Option:
    uint8_t state
    Description upper
    Description lower        # MISSING where there is one fragment
    Split split
    double log_weight


# ---- sweeps ---------------------------------------------------------------------------------------------------

cdef int local_sweep(TsgState* tsg, uint64_t iteration, double temperature, SweepCounts* counts) except -1 nogil:
    cdef vector[int64_t] order = random_order(n_nodes(&tsg.trees), tsg_rng(tsg, iteration, RNG_SITE_ORDER, 0))
    cdef FragmentScratch scratch
    cdef NumberedPath path
    cdef index_t visit, n_visits = <index_t>order.size()
    cdef symbol_t node
    cdef Rng rng
    cdef bint at_foot
    counts.n_proposed = counts.n_accepted = counts.n_changed = 0
    for visit in range(n_visits):
        # The nodes come from all over the corpus: what a visit will read is prefetched a few visits before.
        if visit + NODE_AHEAD < n_visits:
            prefetch_node(tsg, order[visit + NODE_AHEAD])
        if visit + FRAGMENTS_AHEAD < n_visits:
            prefetch_fragments(tsg, <symbol_t>order[visit + FRAGMENTS_AHEAD])
        if visit + LOOKUP_AHEAD < n_visits:
            prefetch_lookup(tsg, <symbol_t>order[visit + LOOKUP_AHEAD])
        node = <symbol_t>order[visit]
        if tsg.trees.parent[node] < 0:
            continue
        at_foot = is_foot(tsg, node)
        if at_foot and not tsg.is_stacked:
            continue
        rng = tsg_rng(tsg, iteration, RNG_SITE, node)
        counts.n_proposed += 1
        counts.n_accepted += 1
        if at_foot or can_insert(tsg, node):
            counts.n_changed += resample_node(tsg, node, temperature, &scratch, &rng)
        else:
            counts.n_changed += resample_site(tsg, node, temperature, &path, &rng)
    return 0


cdef inline void prefetch_node(const TsgState* tsg, index_t node) noexcept nogil:
    prefetch(&tsg.trees.parent[node])
    prefetch(&tsg.state[node])
    prefetch(&tsg.dish[node])
    prefetch(&tsg.trees.label[node])
    prefetch(&tsg.trees.right[node])


cdef inline void prefetch_fragments(const TsgState* tsg, symbol_t node) noexcept nogil:
    if tsg.state[node] != INTERNAL:
        prefetch(&tsg.fragments.fragments[tsg.dish[node]])
    if tsg.trees.parent[node] >= 0:
        prefetch(&tsg.fragments.fragments[tsg.dish[root_above(tsg, node)]])


cdef inline void prefetch_lookup(const TsgState* tsg, symbol_t node) noexcept nogil:
    """Where the parent is the root of its fragment, there is one lookup; deeper nodes are fewer."""
    cdef symbol_t above = tsg.trees.parent[node]
    cdef const Fragment* fragment
    cdef int32_t number
    if above < 0 or tsg.state[above] == INTERNAL:
        return
    fragment = &tsg.fragments.fragments[tsg.dish[above]]
    number = FRONTIER
    if tsg.state[node] == SITE:
        number = tsg.dish[node]
    if tsg.trees.right[above] == node:
        prefetch_slot(&tsg.fragments, fragment.rule, fragment.left, number)
    else:
        prefetch_slot(&tsg.fragments, fragment.rule, number, fragment.right)


# ---- nodes that are internal or sites -------------------------------------------------------------------------

cdef inline int32_t with_part(
    TsgState* tsg, const NumberedPath* path, size_t item, int32_t number, bint is_stored
) except -3 nogil:
    """The fragment below a node on the path, with another part where the path comes from: found, or stored."""
    cdef const Fragment* fragment = &tsg.fragments.fragments[path.present[item]]
    cdef symbol_t rule = fragment.rule, left = fragment.left, right = fragment.right
    if path.path.goes_right[item]:
        right = number
    else:
        left = number
    if is_stored:
        return intern_fragment(&tsg.fragments, rule, left, right)
    return find_fragment(&tsg.fragments, rule, left, right)


cdef int32_t number_path(TsgState* tsg, symbol_t node, NumberedPath* path) except -1 nogil:
    """Find the path up from a node and number it; the number of the fragment below the node."""
    cdef symbol_t root = find_path(tsg, node, &path.path)
    cdef size_t length = path.path.nodes.size(), item = length
    cdef int32_t number = tsg.dish[root], lower
    cdef const Fragment* fragment
    path.present.resize(length)
    path.other.resize(length)
    while item > 0:
        item -= 1
        path.present[item] = number
        fragment = &tsg.fragments.fragments[number]
        number = fragment.right if path.path.goes_right[item] else fragment.left
    if tsg.state[node] == SITE:
        lower = number = tsg.dish[node]
    else:
        lower, number = number, FRONTIER
    for item in range(length):
        number = with_part(tsg, path, item, number, False)
        path.other[item] = number
        if number == MISSING:
            path.other[length - 1] = MISSING
            break
    return lower


cdef int32_t store_other(TsgState* tsg, symbol_t node, int32_t lower, const NumberedPath* path) except -1 nogil:
    """Store the fragment at the root with the node in the other state."""
    cdef int32_t number = lower if tsg.state[node] == SITE else FRONTIER
    cdef size_t item
    if path.other.back() != MISSING:
        return path.other.back()
    for item in range(path.other.size()):
        number = with_part(tsg, path, item, number, True)
    return number


cdef int resample_site(TsgState* tsg, symbol_t node, double temperature, NumberedPath* path, Rng* rng) except -1 nogil:
    """Gibbs for a node that can only be internal or a site; whether it changed."""
    cdef int32_t lower = number_path(tsg, node, path)
    cdef symbol_t root = path.path.nodes.back(), label = tsg.trees.label[node]
    cdef bint was_site = tsg.state[node] == SITE, is_site
    cdef int32_t old_upper = tsg.dish[root], other = path.other.back()
    cdef int32_t whole = other if was_site else old_upper
    cdef double log_lower, log_present, log_join, log_whole, upper_scale, lower_scale, joined, odds
    cdef Split split
    split.upper = old_upper if was_site else other
    split.lower = lower
    split.upper_restaurant = &tsg.restaurants[restaurant_at(tsg, root, tsg.state[root])]
    split.lower_restaurant = &tsg.restaurants[label]
    # Of the three fragments at most the one that is not there now is not stored; its base follows from the others'.
    cached_log_base(tsg, lower, &log_lower)
    cached_log_base(tsg, old_upper, &log_present)
    log_join = tsg.stops.log_internal[label] + log_lower - tsg.stops.log_stop[label]
    log_whole = log_present + log_join if was_site else log_present
    split.log_upper = log_present if was_site else log_present - log_join
    if was_site:
        unseat(split.lower_restaurant, &tsg.fragments.fragments[lower].tables, rng)
    unseat(split.upper_restaurant, &tsg.fragments.fragments[old_upper].tables, rng)
    # Where all comes from the base, common factors are left out: they may be too small for a double.
    upper_scale = lower_scale = 0.0
    if customers_of(tsg, whole) == 0:
        if customers_of(tsg, split.upper) == 0:
            upper_scale = split.log_upper
        if customers_of(tsg, lower) == 0 and split.upper != lower:
            lower_scale = log_lower
    joined = weight_of(tsg, split.upper_restaurant, whole, log_whole - upper_scale - lower_scale)
    split.log_upper -= upper_scale
    split.log_lower = log_lower - lower_scale
    weigh_split(tsg, &split)
    odds = (split.weights[0] + split.weights[1]) / (joined * (1.0 - tsg.insertion[label]))
    if temperature != 1.0:
        odds = pow(odds, 1.0 / temperature)
    is_site = rng.uniform() * (1.0 + odds) >= 1.0
    if is_site != was_site:
        tsg.dish[root] = store_other(tsg, node, lower, path)
    if is_site:
        split.upper = tsg.dish[root]
        seat_split(tsg, &split, exp(log_lower), rng)
    else:
        seat(split.upper_restaurant, &tsg.fragments.fragments[tsg.dish[root]].tables, exp(log_whole), rng)
    tsg.state[node] = SITE if is_site else INTERNAL
    tsg.dish[node] = lower if is_site else -1
    if is_site == was_site:
        return 0
    release_fragment(&tsg.fragments, old_upper)
    release_fragment(&tsg.fragments, lower)
    return 1


cdef inline double weight_of(
    const TsgState* tsg, const Restaurant* restaurant, int32_t number, double log_base
) noexcept nogil:
    """The predictive probability of a fragment, whose base probability may be scaled."""
    cdef double old_part = 0.0
    if customers_of(tsg, number):
        old_part = old_weight(restaurant, &tsg.fragments.fragments[number].tables)
    return (old_part + new_weight(restaurant) * exp(log_base)) / denominator(restaurant)


# ---- nodes that can have insertions ---------------------------------------------------------------------------

cdef bint can_be(const TsgState* tsg, symbol_t node, uint8_t state) noexcept nogil:
    """Whether a node can be in a state, the others being what they are."""
    cdef uint8_t below
    if state == INTERNAL:
        return True
    if state == SITE:
        return not is_foot(tsg, node)
    if not can_insert(tsg, node) or not can_be_foot(tsg, node, state - LEFT_FOOT):
        return False
    below = tsg.state[foot_of(tsg, node, state)]
    return below == INTERNAL or (tsg.is_stacked and below != SITE)


cdef int weigh(
    TsgState* tsg, symbol_t node, symbol_t root, uint8_t state, Option* option, FragmentScratch* scratch
) except -1 nogil:
    """Describe a state of a node, and its log weight; the fragments are to be released."""
    cdef Restaurant* upper_restaurant = &tsg.restaurants[restaurant_at(tsg, root, tsg.state[root])]
    cdef Restaurant* lower_restaurant = &tsg.restaurants[restaurant_at(tsg, node, state)]
    # In the same restaurant the two may be the same fragment, which only stored ones can show.
    cdef bint is_stored = state != INTERNAL and upper_restaurant == lower_restaurant
    cdef symbol_t label = tsg.trees.label[node]
    cdef const Tables* tables = NULL
    option.state = state
    option.lower.number, option.lower.log_base = MISSING, 0.0
    fragment_below(tsg, root, node, state, is_stored, scratch, &option.upper)
    if state == INTERNAL:
        if option.upper.number != MISSING:
            tables = &tsg.fragments.fragments[option.upper.number].tables
        option.log_weight = log_predictive(upper_restaurant, tables, option.upper.log_base)
        option.log_weight += tsg.log_no_insertion[label]
        return 0
    fragment_below(tsg, node, node, state, is_stored, scratch, &option.lower)
    option.split.upper_restaurant, option.split.lower_restaurant = upper_restaurant, lower_restaurant
    option.log_weight = log_split_weight(tsg, &option.upper, &option.lower, &option.split)
    if state >= LEFT_FOOT:
        option.log_weight += tsg.log_insertion[label]
        if not tsg.is_stacked:
            option.log_weight -= tsg.log_no_insertion[label]    # the foot's
    return 0


cdef double log_split_weight(
    const TsgState* tsg, const Description* upper, const Description* lower, Split* split
) noexcept nogil:
    """The log weight of two fragments; what comes from the base alone may be too small for a double, and is scaled."""
    cdef double upper_scale = 0.0, lower_scale = 0.0
    split.upper, split.lower = upper.number, lower.number
    if customers_of(tsg, upper.number) == 0:
        upper_scale = upper.log_base
    if customers_of(tsg, lower.number) == 0 and (upper.number == MISSING or upper.number != lower.number):
        lower_scale = lower.log_base
    split.log_upper = upper.log_base - upper_scale
    split.log_lower = lower.log_base - lower_scale
    weigh_split(tsg, split)
    return log(split.weights[0] + split.weights[1]) + upper_scale + lower_scale


cdef int resample_node(
    TsgState* tsg, symbol_t node, double temperature, FragmentScratch* scratch, Rng* rng
) except -1 nogil:
    """Gibbs for a node of any kind; whether it changed."""
    cdef symbol_t root = root_above(tsg, node)
    cdef uint8_t old_state = tsg.state[node], state
    cdef int32_t old_upper = tsg.dish[root], old_lower = tsg.dish[node]
    cdef Option options[4]
    cdef double odds[4]
    cdef double total = 0.0, target
    cdef int n_options = 0, chosen = 0, item
    if old_state != INTERNAL:
        unseat(&tsg.restaurants[restaurant_at(tsg, node, old_state)], &tsg.fragments.fragments[old_lower].tables, rng)
    unseat(
        &tsg.restaurants[restaurant_at(tsg, root, tsg.state[root])], &tsg.fragments.fragments[old_upper].tables, rng
    )
    for state in range(INTERNAL, RIGHT_FOOT + 1):
        if not can_be(tsg, node, state):
            continue
        weigh(tsg, node, root, state, &options[n_options], scratch)
        odds[n_options] = 1.0
        if n_options:
            odds[n_options] = min(exp((options[n_options].log_weight - options[0].log_weight) / temperature), 1e300)
        total += odds[n_options]
        n_options += 1
    target = rng.uniform() * total
    while chosen + 1 < n_options and target >= odds[chosen]:
        target -= odds[chosen]
        chosen += 1
    seat_option(tsg, node, root, &options[chosen], scratch, rng)
    release_fragment(&tsg.fragments, old_upper)
    if old_lower >= 0:
        release_fragment(&tsg.fragments, old_lower)
    for item in range(n_options):
        if options[item].upper.number >= 0:
            release_fragment(&tsg.fragments, options[item].upper.number)
        if options[item].lower.number >= 0:
            release_fragment(&tsg.fragments, options[item].lower.number)
    return tsg.state[node] != old_state


cdef int seat_option(
    TsgState* tsg, symbol_t node, symbol_t root, Option* option, FragmentScratch* scratch, Rng* rng
) except -1 nogil:
    """Put a node into a state, and seat its fragments."""
    cdef Description upper, lower
    tsg.state[node] = option.state
    fragment_below(tsg, root, node, option.state, True, scratch, &upper)
    tsg.dish[root] = upper.number
    if option.state == INTERNAL:
        seat(
            &tsg.restaurants[restaurant_at(tsg, root, tsg.state[root])],
            &tsg.fragments.fragments[upper.number].tables, exp(upper.log_base), rng,
        )
        tsg.dish[node] = -1
        return 0
    fragment_below(tsg, node, node, option.state, True, scratch, &lower)
    option.split.upper, option.split.lower = upper.number, lower.number
    seat_split(tsg, &option.split, exp(lower.log_base), rng)
    tsg.dish[node] = lower.number
    return 0
