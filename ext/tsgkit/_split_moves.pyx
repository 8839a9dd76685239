"""Moves of the two-way split sampler; see ``_split_moves.pxd``.

On a known tree, with the counts frozen, the inside value of option k of node v with children y and z is

    I_k(v) = sum_{l,m} p(x_k -> y_l z_m) I_l(y) I_m(z)

with two values for each of k, l and m. All values of a node are divided by the larger one.
"""

from libc.math cimport exp, log, pow
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libcpp.vector cimport vector

from tsgkit._backoff cimport Address, BackOff, Level, Place, word_base
from tsgkit._fragments cimport prefetch
from tsgkit._random cimport (
    RNG_SPLIT_MERGE, RNG_SPLIT_TREE, RNG_SPLIT_TREE_ORDER, RNG_SPLIT_TYPE, Rng, random_order, rng_for,
)
from tsgkit._restaurant cimport (
    LogProduct, Restaurant, Tables, denominator, log_of, log_product, multiply, new_weight, old_weight,
)
from tsgkit._split_state cimport (
    Block, Change, SplitState, accept_seatings, fill_address, index_of, index_of_bits, places_of, reject_seatings,
    seat_node, unseat_node,
)
from tsgkit._trees cimport n_nodes, n_nodes_of, n_trees
from tsgkit._types cimport index_t, symbol_t


# ---- weights and inside values ----------------------------------------------------------------------------------

cdef inline int fill_rule_bases(const SplitState* s, int32_t number, double* base) noexcept nogil:
    """What the first level backs off to for all refinements of a rule; 2 if the options differ there, otherwise 1.

    ``base[option << n_children | below]``, or option 0 only.
    """
    cdef const BackOff* b = &s.back_off
    cdef const Block* block = &s.blocks[number]
    cdef const Place* places = places_of(s, number)
    cdef const Place* place
    cdef const Level* here
    cdef const Restaurant* restaurant
    cdef int n = block.n_children, n_below = 1 << n, n_contexts = 1, level, option, below
    cdef double share = b.rule_share[block.label], value, fresh, total
    value = b.rule_base[block.rule] if b.n_used > 1 else share * b.rule_base[block.rule]
    for below in range(n_below):
        base[below] = value
    for level in range(b.n_used - 1, 0, -1):
        here = &b.levels[level]
        if n_contexts == 1 and places[2 * level].cell != places[2 * level + 1].cell:
            n_contexts = 2
            for below in range(n_below):
                base[n_below + below] = base[below]
        for option in range(n_contexts):
            place = &places[2 * level + option]
            restaurant = &here.restaurants[place.restaurant]
            fresh = new_weight(restaurant)
            total = denominator(restaurant)
            for below in range(n_below):
                value = old_weight(restaurant, &here.cells[place.cell + below]) + fresh * base[option << n | below]
                if level == 1:
                    value = share * value
                base[option << n | below] = value / total
    return n_contexts


cdef inline int fill_word_bases(const SplitState* s, int32_t number, double* base) noexcept nogil:
    """The same of a word with a class, whose options always differ."""
    cdef Address address
    fill_address(s, number, 0, &address)
    base[0] = word_base(&s.back_off, &address)
    base[1] = 0.0
    if s.n_options[s.blocks[number].group] > 1:
        fill_address(s, number, 1, &address)
        base[1] = word_base(&s.back_off, &address)
    return 2


cdef inline void fill_weights(const SplitState* s, int32_t number, double* weight) noexcept nogil:
    """The probabilities of all refinements of a block's rule; 0 for options that a group does not have."""
    cdef const Block* block = &s.blocks[number]
    cdef const Place* places = places_of(s, number)
    cdef const Level* top = &s.back_off.levels[0]
    cdef const Restaurant* restaurant
    cdef int n = block.n_children, n_below = 1 << n, option, below, n_contexts, from_option
    cdef double base[8]
    cdef double scale, fresh
    cdef bint exists[4]
    n_contexts = fill_word_bases(s, number, base) if block.word_class >= 0 else fill_rule_bases(s, number, base)
    exists[0] = exists[1] = exists[2] = exists[3] = True
    if n >= 1 and s.n_options[block.left_group] < 2:
        for below in range(n_below // 2, n_below):
            exists[below] = False
    if n == 2 and s.n_options[block.right_group] < 2:
        exists[1] = exists[3] = False
    for option in range(2):
        restaurant = &top.restaurants[places[option].restaurant]
        scale = 1.0 / denominator(restaurant)
        fresh = new_weight(restaurant)
        from_option = option if n_contexts == 2 else 0
        for below in range(n_below):
            weight[option << n | below] = 0.0
            if option < s.n_options[block.group] and exists[below]:
                weight[option << n | below] = (
                    old_weight(restaurant, &top.cells[places[option].cell + below])
                    + fresh * base[from_option << n | below]
                ) * scale


cdef int fill_inside(SplitState* s, index_t tree, double temperature) except -1 nogil:
    """The weights of all refinements of the rules of a tree, and the inside values of its nodes' options."""
    cdef index_t first = s.trees.tree_start[tree], size = n_nodes_of(&s.trees, tree), position, node
    cdef const Block* block
    cdef double* weight
    cdef double* inside
    cdef const double* left
    cdef const double* right
    cdef double value[2]
    cdef double pairs[4]
    cdef double largest
    cdef int option, index
    s.inside.resize(2 * size)
    s.weights.resize(8 * size)
    inside = s.inside.data()
    for position in range(size - 1, -1, -1):
        node = first + position
        block = &s.blocks[s.block_of[node]]
        weight = &s.weights[8 * position]
        fill_weights(s, s.block_of[node], weight)
        if temperature != 1.0:
            for index in range(2 << block.n_children):
                if weight[index] > 0.0:
                    weight[index] = pow(weight[index], 1.0 / temperature)
        if block.n_children == 2:
            left = &inside[2 * (s.trees.left[node] - first)]
            right = &inside[2 * (s.trees.right[node] - first)]
            pairs[0], pairs[1] = left[0] * right[0], left[0] * right[1]
            pairs[2], pairs[3] = left[1] * right[0], left[1] * right[1]
            for option in range(2):
                value[option] = (
                    weight[4 * option] * pairs[0] + weight[4 * option + 1] * pairs[1]
                    + weight[4 * option + 2] * pairs[2] + weight[4 * option + 3] * pairs[3]
                )
        elif block.n_children == 1:
            left = &inside[2 * (s.trees.left[node] - first)]
            for option in range(2):
                value[option] = weight[2 * option] * left[0] + weight[2 * option + 1] * left[1]
        else:
            value[0], value[1] = weight[0], weight[1]
        largest = max(value[0], value[1])
        inside[2 * position] = value[0] / largest
        inside[2 * position + 1] = value[1] / largest
    return 0


# ---- whole trees ------------------------------------------------------------------------------------------------

cdef inline uint8_t draw_bit(double zero, double one, Rng* rng) noexcept nogil:
    return one > 0.0 if rng.uniform() * (zero + one) >= zero else 0


cdef int tree_sweep(SplitState* s, uint64_t iteration, double temperature, SweepCounts* counts) except -1 nogil:
    cdef vector[int64_t] order = random_order(
        n_trees(&s.trees), rng_for(s.seed, iteration, RNG_SPLIT_TREE_ORDER, 0))
    cdef size_t position
    cdef Rng rng
    for position in range(order.size()):
        rng = rng_for(s.seed, iteration, RNG_SPLIT_TREE, order[position])
        resample_tree(s, order[position], temperature, &rng, counts)
    return 0


cdef inline void prefetch_tree(const SplitState* s, index_t first, index_t size) noexcept nogil:
    """Have the cells of a tree's rules brought to the cache, all at once: they lie anywhere."""
    cdef const Block* block
    cdef const Place* places
    cdef const Tables* cells
    cdef index_t node
    cdef int level, option, index
    for node in range(first, first + size):
        prefetch(&s.blocks[s.block_of[node]])
        prefetch(places_of(s, s.block_of[node]))
    for node in range(first, first + size):
        block = &s.blocks[s.block_of[node]]
        places = places_of(s, s.block_of[node])
        for level in range(s.back_off.n_used if block.word_class < 0 else 1):
            for option in range(2):
                cells = &s.back_off.levels[level].cells[places[2 * level + option].cell]
                prefetch(cells)
                if block.n_children == 2:
                    prefetch(cells + 2)
    for node in range(first, first + size):
        block = &s.blocks[s.block_of[node]]
        index = index_of(s, node)
        places = places_of(s, s.block_of[node]) + (index >> block.n_children)
        cells = &s.back_off.levels[0].cells[places.cell + (index & ((1 << block.n_children) - 1))]
        prefetch(cells.by_size.data())


cdef int resample_tree(
    SplitState* s, index_t tree, double temperature, Rng* rng, SweepCounts* counts
) except -1 nogil:
    cdef index_t first = s.trees.tree_start[tree], size = n_nodes_of(&s.trees, tree), node
    cdef LogProduct old = log_product(), new = log_product()
    cdef double log_ratio, log_proposals
    cdef bint differs
    accept_seatings(s)
    prefetch_tree(s, first, size)
    for node in range(first + size - 1, first - 1, -1):
        multiply(&old, unseat_node(s, node, rng))
    fill_inside(s, tree, temperature)
    log_proposals = propose_bits(s, tree, rng)
    counts.n_proposed += 1
    # Also for the same bits: seats drawn one after the other are a proposal, not a draw from the posterior.
    differs = swap_bits(s, first, size)
    for node in range(first, first + size):
        multiply(&new, seat_node(s, node, rng))
    log_ratio = (log_of(&new) - log_of(&old)) / temperature - log_proposals
    if log_ratio >= 0.0 or rng.uniform() < exp(log_ratio):
        counts.n_accepted += 1
        counts.n_changed += differs
        return 0
    swap_bits(s, first, size)
    return reject_seatings(s)


cdef double propose_bits(SplitState* s, index_t tree, Rng* rng) except? -1.0 nogil:
    """Draw new bits from the root down; returns log q(new) - log q(old)."""
    cdef index_t first = s.trees.tree_start[tree], size = n_nodes_of(&s.trees, tree), position, node, left, right
    cdef const double* inside = s.inside.data()
    cdef const double* weight
    cdef LogProduct new = log_product(), old = log_product()
    cdef int bit, index, below, n_children
    s.new_bits.resize(size)
    s.new_bits[0] = draw_bit(inside[0], inside[1], rng)
    for position in range(size):
        node = first + position
        weight = &s.weights[8 * position]
        left = s.trees.left[node] - first
        right = s.trees.right[node] - first
        n_children = s.blocks[s.block_of[node]].n_children
        bit = index = s.new_bits[position]
        if n_children == 2:
            below = draw_two_bits(weight + 4 * bit, inside + 2 * left, inside + 2 * right, rng)
            s.new_bits[left] = below >> 1
            s.new_bits[right] = below & 1
            index = 4 * bit + below
        elif n_children == 1:
            s.new_bits[left] = draw_bit(
                weight[2 * bit] * inside[2 * left], weight[2 * bit + 1] * inside[2 * left + 1], rng)
            index = 2 * bit + s.new_bits[left]
        multiply(&new, weight[index])
        multiply(&old, weight[index_of(s, node)])
    return log_of(&new) - log_of(&old)


cdef inline int draw_two_bits(const double* weight, const double* left, const double* right, Rng* rng) noexcept nogil:
    cdef double value[4]
    cdef double target = 0.0
    cdef int below
    for below in range(4):
        value[below] = weight[below] * left[below >> 1] * right[below & 1]
        target += value[below]
    target *= rng.uniform()
    below = 0
    while below < 3:
        target -= value[below]
        if target < 0.0:
            break
        below += 1
    while value[below] <= 0.0:    # rounding
        below -= 1
    return below


cdef inline bint swap_bits(SplitState* s, index_t first, index_t size) noexcept nogil:
    """Exchange the bits of a tree with those proposed; whether one differs."""
    cdef index_t position
    cdef uint8_t old
    cdef bint differs = False
    for position in range(size):
        old = s.bit[first + position]
        s.bit[first + position] = s.new_bits[position]
        differs |= s.new_bits[position] != old
        s.new_bits[position] = old
    return differs


# ---- changes of many bits at once -------------------------------------------------------------------------------

cdef inline void begin_change(SplitState* s) noexcept nogil:
    s.planned.clear()
    s.touched.clear()
    s.epoch += 1


cdef inline int touch(SplitState* s, int32_t node) except -1 nogil:
    """The rule at a node changes."""
    if s.touched_epoch[node] != s.epoch:
        s.touched_epoch[node] = s.epoch
        s.touched.push_back(node)
    return 0


cdef bint plan(SplitState* s, int32_t node, uint8_t value) except -1 nogil:
    """Whether a node can have this bit together with what was planned before."""
    cdef Change change
    if s.planned_epoch[node] == s.epoch:
        return s.planned_bit[node] == value
    s.planned_epoch[node] = s.epoch
    s.planned_bit[node] = value
    if s.bit[node] == value:
        return True
    change.node, change.old_bit = node, s.bit[node]
    s.planned.push_back(change)
    touch(s, node)
    if s.trees.parent[node] >= 0:
        touch(s, s.trees.parent[node])
    return True


cdef double make_change(SplitState* s, Rng* rng) except? -1.0 nogil:
    """Make the planned change; returns the log of the ratio of the joint probabilities, seats included."""
    cdef double result = 0.0
    cdef size_t item
    accept_seatings(s)
    item = s.touched.size()
    while item > 0:
        item -= 1
        result -= log(unseat_node(s, s.touched[item], rng))
    for item in range(s.planned.size()):
        s.bit[s.planned[item].node] = 1 - s.planned[item].old_bit
    for item in range(s.touched.size()):
        result += log(seat_node(s, s.touched[item], rng))
    return result


cdef int undo_change(SplitState* s) except -1 nogil:
    cdef size_t item
    for item in range(s.planned.size()):
        s.bit[s.planned[item].node] = s.planned[item].old_bit
    return reject_seatings(s)


# ---- all occurrences of a refined rule --------------------------------------------------------------------------

cdef int type_sweep(
    SplitState* s, uint64_t iteration, index_t n_moves, double temperature, bint onto_used, SweepCounts* counts
) except -1 nogil:
    cdef Rng rng = rng_for(s.seed, iteration, RNG_SPLIT_TYPE, 0)
    cdef index_t _move
    cdef int32_t node
    cdef bint is_accepted
    for _move in range(n_moves):
        node = <int32_t>rng.below(n_nodes(&s.trees))
        is_accepted = resample_type(s, node, temperature, onto_used, &rng)
        counts.n_proposed += 1
        counts.n_accepted += is_accepted
        counts.n_changed += is_accepted
    return 0


cdef inline int other_indices(const SplitState* s, const Block* block, int index, int* choices) noexcept nogil:
    """All other refinements of a block's rule; how many they are."""
    cdef int n_choices = 0, bit, left_bit, right_bit, other
    cdef int n_left = s.n_options[block.left_group] if block.n_children >= 1 else 1
    cdef int n_right = s.n_options[block.right_group] if block.n_children == 2 else 1
    for bit in range(s.n_options[block.group]):
        for left_bit in range(n_left):
            for right_bit in range(n_right):
                other = index_of_bits(block, bit, left_bit, right_bit)
                if other != index:
                    choices[n_choices] = other
                    n_choices += 1
    return n_choices


cdef inline int32_t n_customers_of(const SplitState* s, int32_t number, int index) noexcept nogil:
    """How many nodes have this refinement of a block's rule."""
    cdef int n = s.blocks[number].n_children
    cdef const Place* place = &places_of(s, number)[index >> n]
    return s.back_off.levels[0].cells[place.cell + (index & ((1 << n) - 1))].n_customers


cdef bint resample_type(SplitState* s, int32_t node, double temperature, bint onto_used, Rng* rng) except -1 nogil:
    """Propose another refinement for all nodes that have the one of this node; whether it is accepted."""
    cdef int32_t number = s.block_of[node]
    cdef int index = index_of(s, node), goal, n_choices
    cdef int choices[8]
    cdef index_t n_occurrences
    cdef double log_ratio
    cdef bint is_reversible
    n_choices = other_indices(s, &s.blocks[number], index, choices)
    if n_choices == 0:
        return False
    goal = choices[rng.below(n_choices)]
    if not onto_used and n_customers_of(s, number, goal) > 0:
        return False
    begin_change(s)
    n_occurrences = plan_type(s, number, index, goal)
    if n_occurrences < 0:
        return False
    log_ratio = make_change(s, rng)
    # Other nodes may have become the new rule by this, and the reverse would take them along; or the old one, and the
    # reverse would lead to a rule that is in use.
    is_reversible = n_customers_of(s, number, goal) == n_occurrences and n_customers_of(s, number, index) == 0
    if (onto_used or is_reversible) and (log_ratio >= 0.0 or rng.uniform() < exp(log_ratio / temperature)):
        return True
    undo_change(s)
    return False


cdef index_t plan_type(SplitState* s, int32_t number, int index, int goal) except -2 nogil:
    """Plan a refinement for all nodes of a block that have another one; how many they are, or -1 if it cannot be."""
    cdef int n = s.blocks[number].n_children
    cdef index_t n_occurrences = 0
    cdef size_t item
    cdef int32_t node
    cdef bint fits
    for item in range(s.nodes_of_block[number].size()):
        node = s.nodes_of_block[number][item]
        if index_of(s, node) != index:
            continue
        n_occurrences += 1
        fits = plan(s, node, goal >> n)
        if n >= 1:
            fits = plan(s, s.trees.left[node], goal >> 1 & 1 if n == 2 else goal & 1) and fits
        if n == 2:
            fits = plan(s, s.trees.right[node], goal & 1) and fits
        if not fits:
            return -1
    return n_occurrences


# ---- merging ----------------------------------------------------------------------------------------------------

cdef int joint_losses(SplitState* s, uint64_t iteration, vector[double]* losses) except -1 nogil:
    cdef vector[vector[int32_t]] members
    cdef size_t group, item
    cdef int64_t n_ones
    cdef uint8_t moving
    cdef index_t node
    cdef Rng rng
    members.resize(s.group_label.size())
    for node in range(n_nodes(&s.trees)):
        members[s.group[node]].push_back(<int32_t>node)
    losses.assign(s.group_label.size(), 0.0)
    for group in range(s.group_label.size()):
        if s.n_options[group] < 2:
            continue
        rng = rng_for(s.seed, iteration, RNG_SPLIT_MERGE, group)
        n_ones = 0
        for item in range(members[group].size()):
            n_ones += s.bit[members[group][item]]
        moving = 2 * n_ones <= <int64_t>members[group].size()
        begin_change(s)
        for item in range(members[group].size()):
            if s.bit[members[group][item]] == moving:
                plan(s, members[group][item], 1 - moving)
        losses[0][group] = -make_change(s, &rng)
        undo_change(s)
    return 0


cdef int marginal_losses(SplitState* s, vector[double]* losses) except -1 nogil:
    cdef vector[double] share, outside
    cdef double zeros, ones
    cdef size_t group
    cdef index_t tree
    losses.assign(s.group_label.size(), 0.0)
    share.resize(2 * s.group_label.size())
    for group in range(s.group_label.size()):
        zeros = <double>s.back_off.levels[0].restaurants[2 * group].n_customers
        ones = <double>s.back_off.levels[0].restaurants[2 * group + 1].n_customers
        share[2 * group] = zeros / (zeros + ones) if zeros + ones > 0 else 1.0
        share[2 * group + 1] = 1.0 - share[2 * group]
    for tree in range(n_trees(&s.trees)):
        fill_inside(s, tree, 1.0)
        outside.assign(2 * n_nodes_of(&s.trees, tree), 0.0)
        outside[0] = 1.0
        add_losses(s, tree, share.data(), outside.data(), losses)
    return 0


cdef void add_losses(
    SplitState* s, index_t tree, const double* share, double* outside, vector[double]* losses
) noexcept nogil:
    """Add what every node of a tree loses, with the outside values from the root down."""
    cdef index_t first = s.trees.tree_start[tree], position, node
    cdef const double* inside = s.inside.data()
    cdef const double* above
    cdef symbol_t group
    cdef double total, merged
    for position in range(n_nodes_of(&s.trees, tree)):
        node, group = first + position, s.group[first + position]
        above = &outside[2 * position]
        total = inside[2 * position] * above[0] + inside[2 * position + 1] * above[1]
        if s.n_options[group] > 1 and total > 0.0:
            merged = (
                share[2 * group] * inside[2 * position] + share[2 * group + 1] * inside[2 * position + 1]
            ) * (above[0] + above[1])
            losses[0][group] += log(total) - log(merged)
        add_outside(s, node, first, inside, outside)


cdef inline void add_outside(
    const SplitState* s, index_t node, index_t first, const double* inside, double* outside
) noexcept nogil:
    """Add to the outside values of a node's children. Values of a node need only be right up to a factor."""
    cdef index_t position = node - first, left = s.trees.left[node] - first, right = s.trees.right[node] - first
    cdef int n = s.blocks[s.block_of[node]].n_children, option, left_bit, right_bit
    cdef const double* weight = &s.weights[8 * position]
    cdef double scale = 1.0 / max(outside[2 * position], outside[2 * position + 1]), above, value
    for option in range(2):
        above = outside[2 * position + option] * scale
        if n == 1:
            for left_bit in range(2):
                outside[2 * left + left_bit] += above * weight[option << 1 | left_bit]
        elif n == 2:
            for left_bit in range(2):
                for right_bit in range(2):
                    value = above * weight[option << 2 | left_bit << 1 | right_bit]
                    outside[2 * left + left_bit] += value * inside[2 * right + right_bit]
                    outside[2 * right + right_bit] += value * inside[2 * left + left_bit]


cdef int merge_groups(SplitState* s, const vector[uint8_t]* is_merged, uint64_t iteration) except -1 nogil:
    cdef Rng rng = rng_for(s.seed, iteration, RNG_SPLIT_MERGE, s.group_label.size())
    cdef index_t node
    cdef size_t group
    begin_change(s)
    for node in range(n_nodes(&s.trees)):
        if is_merged[0][s.group[node]] and s.bit[node]:
            plan(s, <int32_t>node, 0)
    make_change(s, &rng)
    for group in range(s.group_label.size()):
        if is_merged[0][group]:
            s.n_options[group] = 1
    return 0
