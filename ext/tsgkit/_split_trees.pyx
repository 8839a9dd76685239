"""Whole trees of the split sampler by blocked Metropolis-Hastings.

On a known tree, with the counts frozen, the inside value of option k of node v with children y and z is

    I_k(v) = sum_{l,m} p(x_k -> y_l z_m) I_l(y) I_m(z)

with two values for each of k, l and m. All values of a node are divided by the larger one.

The proposals of a batch are made against the counts without any of its trees. Then all but the first one return to
their tables. Each tree in turn is unseated, unless it is the first, and seated by its proposal, which is accepted or
rejected.

All of it runs on worker threads: proposals tree by tree, seating part by part of the labels, which share no restaurant.
With several threads, all trees of the batch are seated as if each proposal was accepted; from the first that is not, it
is done again. Each tree has a stream of random numbers for its proposal and one for each part. So the result depends on
the seed and on the size of the batch, not on the number of threads.
"""

from libc.math cimport exp, pow
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libcpp.vector cimport vector

from tsgkit._backoff cimport (
    Address, BackOff, Level, Place, class_level, label_class_probability, predictive_at, word_level,
)
from tsgkit._label_parts cimport N_PARTS
from tsgkit._prefetch cimport prefetch
from tsgkit._random cimport RNG_SPLIT_TREE, RNG_SPLIT_TREE_ORDER, Rng, random_order, rng_for
from tsgkit._restaurant cimport (
    LogProduct, Restaurant, Tables, denominator, log_of, log_product, multiply, new_weight, old_weight,
)
from tsgkit._split_seating cimport SeatingEntries, leave_node, roll_back, sit_rule, unseat_node
from tsgkit._split_state cimport Block, SplitState, fill_address, index_of, place_at, places_of
from tsgkit._trees cimport n_nodes_of, n_trees
from tsgkit._types cimport index_t
from tsgkit._worker_pool cimport worker_vector


# The customers of one part of the labels.
cdef cppclass PartOfBatch:
    SeatingEntries seatings
    worker_vector[size_t] mark          # per tree of the batch: how many entries came before its own
    worker_vector[double] log_ratio     # per tree of the batch: log P(new) - log P(old)
    size_t first_unseated               # how many entries there are when the first tree is unseated, and no other


cdef cppclass Batch:
    SplitState* s
    const int64_t* trees
    int size
    uint64_t iteration
    double temperature
    PartOfBatch parts[N_PARTS]
    vector[InsideValues] values         # per thread
    vector[Rng] rng                     # per tree: of its proposal
    vector[double] log_proposals        # per tree: log q(new) - log q(old)
    # What workers do, the least work first: the pool hands out the last item first, which balances the load.
    vector[int] tree_of_item
    int part_of_item[N_PARTS]
    # The next trees to seat by their proposals, and the first one to roll back before that.
    int first
    int end
    int rejected                        # or `size`


# ---- sweeps -------------------------------------------------------------------------------------------------------

cdef int tree_sweep(
    SplitState* s, uint64_t iteration, double temperature, int batch, int n_threads, SweepCounts* counts
) except -1 nogil:
    cdef vector[int64_t] order = random_order(
        n_trees(&s.trees), rng_for(s.seed, iteration, RNG_SPLIT_TREE_ORDER, 0))
    cdef index_t first = 0, n_items = <index_t>order.size()
    cdef Batch work
    work.s, work.iteration, work.temperature = s, iteration, temperature
    work.values.resize(n_threads)
    work.rng.resize(batch)
    work.log_proposals.resize(batch)
    work.tree_of_item.resize(batch)
    while first < n_items:
        work.trees = &order[first]
        work.size = <int>min(<index_t>batch, n_items - first)
        order_items(&work)
        s.pool.run(n_threads, N_PARTS, freeze_part, &work)
        s.pool.run(n_threads, work.size, propose_item, &work)
        move_trees(&work, n_threads, counts)
        first += work.size
    return 0


cdef void order_items(Batch* work) noexcept nogil:
    """Order trees and parts by their numbers of nodes."""
    cdef const int32_t* start
    cdef index_t n_nodes_of_part[N_PARTS]
    cdef int item, part, before
    for part in range(N_PARTS):
        n_nodes_of_part[part] = 0
    for item in range(work.size):
        start = &work.s.parts.start[work.trees[item] * (N_PARTS + 1)]
        for part in range(N_PARTS):
            n_nodes_of_part[part] += start[part + 1] - start[part]
        before = item
        while before > 0 and n_nodes_of(&work.s.trees, work.trees[work.tree_of_item[before - 1]]) > n_nodes_of(
                &work.s.trees, work.trees[item]):
            work.tree_of_item[before] = work.tree_of_item[before - 1]
            before -= 1
        work.tree_of_item[before] = item
    for part in range(N_PARTS):
        before = part
        while before > 0 and n_nodes_of_part[work.part_of_item[before - 1]] > n_nodes_of_part[part]:
            work.part_of_item[before] = work.part_of_item[before - 1]
            before -= 1
        work.part_of_item[before] = part


cdef int move_trees(Batch* work, int n_threads, SweepCounts* counts) except -1 nogil:
    """Accept or reject the proposals of a batch, one by one."""
    cdef int item
    work.first, work.rejected = 0, work.size
    while work.first < work.size:
        # One thread waits for every decision, several do not.
        work.end = work.first + 1 if n_threads == 1 else work.size
        work.s.pool.run(n_threads, N_PARTS, move_part, work)
        work.rejected = work.size
        for item in range(work.first, work.end):
            work.first = item + 1
            if not is_accepted(work, item, counts):
                work.rejected = item
                break
    if work.rejected < work.size:
        work.end = work.first
        work.s.pool.run(n_threads, N_PARTS, move_part, work)
    return 0


cdef bint is_accepted(Batch* work, int item, SweepCounts* counts) noexcept nogil:
    """Whether the proposal for a tree is accepted, and if so, make it the present state."""
    cdef SplitState* s = work.s
    cdef double log_ratio = 0.0
    cdef index_t tree = work.trees[item], node
    cdef bint differs = False
    cdef int part
    for part in range(N_PARTS):
        log_ratio += work.parts[part].log_ratio[item]
    log_ratio = log_ratio / work.temperature - work.log_proposals[item]
    counts.n_proposed += 1
    if log_ratio < 0.0 and work.rng[item].uniform() >= exp(log_ratio):
        return False
    for node in range(s.trees.tree_start[tree], s.trees.tree_start[tree + 1]):
        differs |= s.bit[node] != s.new_bit[node]
        s.bit[node], s.seat[node] = s.new_bit[node], s.new_seat[node]
    counts.n_accepted += 1
    counts.n_changed += differs
    return True


# ---- seating, part by part ----------------------------------------------------------------------------------------

# What follows runs on worker threads; see `tsgkit._worker_pool`.

cdef void freeze_part(void* context, int item, int thread) noexcept nogil:
    """Unseat the trees of a batch."""
    cdef Batch* work = <Batch*>context
    cdef int number = work.part_of_item[item], tree
    cdef PartOfBatch* part = &work.parts[number]
    part.seatings.clear()
    part.mark.resize(work.size)
    part.log_ratio.resize(work.size)
    for tree in range(work.size):
        prefetch_rules(work.s, work.trees[tree], number)
    for tree in range(work.size):
        prefetch_cells(work.s, work.trees[tree], number)
    for tree in range(work.size):
        prefetch_tables(work.s, work.trees[tree], number)
    # The first tree stays unseated until it is seated by its proposal.
    part.mark[0] = 0
    part.log_ratio[0] = -unseat_part(work.s, work.trees[0], number, &part.seatings)
    part.first_unseated = part.seatings.size()
    for tree in range(1, work.size):
        leave_part(work.s, work.trees[tree], number, &part.seatings)


cdef void move_part(void* context, int item, int thread) noexcept nogil:
    """Seat trees by their proposals, after rolling back what was done for a tree that was rejected, and after it.

    At first the trees of a batch are unseated; all but the first one are back at their tables before it is seated.
    """
    cdef Batch* work = <Batch*>context
    cdef int number = work.part_of_item[item], tree
    cdef PartOfBatch* part = &work.parts[number]
    cdef Rng rng
    if work.rejected < work.size:
        roll_back(&part.seatings, part.mark[work.rejected])
    elif work.first == 0:
        roll_back(&part.seatings, part.first_unseated)
    for tree in range(work.first, work.end):
        if tree > 0:
            part.mark[tree] = part.seatings.size()
            part.log_ratio[tree] = -unseat_part(work.s, work.trees[tree], number, &part.seatings)
        rng = rng_of(work, tree, number)
        part.log_ratio[tree] += seat_part(work.s, work.trees[tree], number, &rng, &part.seatings)


cdef inline Rng rng_of(const Batch* work, int item, int purpose) noexcept nogil:
    """The stream of a tree for a part, or that of its proposal, which has the next number."""
    return rng_for(work.s.seed, work.iteration, RNG_SPLIT_TREE, work.trees[item] * (N_PARTS + 1) + purpose)


cdef inline void leave_part(SplitState* s, index_t tree, int part, SeatingEntries* seatings) noexcept nogil:
    """Unseat a tree."""
    cdef const int32_t* start = &s.parts.start[tree * (N_PARTS + 1)]
    cdef int32_t position
    for position in range(start[part + 1] - 1, start[part] - 1, -1):
        leave_node(s, s.parts.nodes[position], seatings)


cdef inline double unseat_part(SplitState* s, index_t tree, int part, SeatingEntries* seatings) noexcept nogil:
    """Unseat a tree; the log of the product of the predictive probabilities of its rules."""
    cdef const int32_t* start = &s.parts.start[tree * (N_PARTS + 1)]
    cdef LogProduct product = log_product()
    cdef int32_t position
    for position in range(start[part + 1] - 1, start[part] - 1, -1):
        multiply(&product, unseat_node(s, s.parts.nodes[position], seatings))
    return log_of(&product)


cdef inline double seat_part(
    SplitState* s, index_t tree, int part, Rng* rng, SeatingEntries* seatings
) noexcept nogil:
    """Seat a tree by its proposal; the log of the product of the predictive probabilities of its rules."""
    cdef const int32_t* start = &s.parts.start[tree * (N_PARTS + 1)]
    cdef LogProduct product = log_product()
    cdef int32_t position, node
    cdef Address address
    for position in range(start[part], start[part + 1]):
        node = s.parts.nodes[position]
        fill_address(s, s.block_of[node], index_of(s, node, s.new_bit.data()), &address)
        multiply(&product, sit_rule(s, &address, rng, seatings, &s.new_seat[node]))
    return log_of(&product)


# What unseating the rules of a tree needs lies anywhere. It is brought to the cache all at once, in three steps, since
# each says where the next one is to be found.

cdef inline void prefetch_rules(const SplitState* s, index_t tree, int part) noexcept nogil:
    cdef const int32_t* start = &s.parts.start[tree * (N_PARTS + 1)]
    cdef int32_t position, number
    for position in range(start[part], start[part + 1]):
        number = s.block_of[s.parts.nodes[position]]
        prefetch(&s.blocks[number])
        prefetch(places_of(s, number))


cdef inline void prefetch_cells(const SplitState* s, index_t tree, int part) noexcept nogil:
    cdef const int32_t* start = &s.parts.start[tree * (N_PARTS + 1)]
    cdef int32_t position, cell
    for position in range(start[part], start[part + 1]):
        cell = first_cell(s, s.parts.nodes[position])
        prefetch(&s.tables[0][cell])
        prefetch(&s.back_off.levels[0].cells[cell])


cdef inline void prefetch_tables(const SplitState* s, index_t tree, int part) noexcept nogil:
    cdef const int32_t* start = &s.parts.start[tree * (N_PARTS + 1)]
    cdef int32_t position, node
    for position in range(start[part], start[part + 1]):
        node = s.parts.nodes[position]
        prefetch(s.tables[0][first_cell(s, node)].data() + s.seat[node])


cdef inline int32_t first_cell(const SplitState* s, int32_t node) noexcept nogil:
    """The cell of the rule at a node at the first level."""
    return place_at(s, s.block_of[node], 0, index_of(s, node, s.bit.data())).cell


# ---- proposals ----------------------------------------------------------------------------------------------------

cdef inline uint8_t draw_bit(double zero, double one, Rng* rng) noexcept nogil:
    return one > 0.0 if rng.uniform() * (zero + one) >= zero else 0


cdef void propose_item(void* context, int item, int thread) noexcept nogil:
    """Draw new bits for a tree, from the root down."""
    cdef Batch* work = <Batch*>context
    cdef InsideValues* values = &work.values[thread]
    cdef int number = work.tree_of_item[item]
    cdef index_t tree = work.trees[number]
    work.rng[number] = rng_of(work, number, N_PARTS)
    prefetch_tree(work.s, tree)
    fill_inside(work.s, tree, work.temperature, values)
    work.log_proposals[number] = propose_bits(work.s, tree, values, &work.rng[number])


cdef double propose_bits(SplitState* s, index_t tree, InsideValues* values, Rng* rng) noexcept nogil:
    """Fill in `new_bit`; returns log q(new) - log q(old)."""
    cdef index_t first = s.trees.tree_start[tree], size = n_nodes_of(&s.trees, tree), position, node
    cdef const double* inside = values.inside.data()
    cdef const double* weight
    cdef const double* pair
    cdef const double* left
    cdef const double* right
    cdef uint8_t* bit = s.new_bit.data()
    cdef LogProduct new = log_product(), old = log_product()
    cdef int below, n_children
    bit[first] = draw_bit(inside[0], inside[1], rng)
    for position in range(size):
        node = first + position
        n_children = s.blocks[s.block_of[node]].n_children
        weight = &values.weights[8 * position]
        if n_children == 2:
            left, right = inside + 2 * (s.trees.left[node] - first), inside + 2 * (s.trees.right[node] - first)
            below = draw_two_bits(weight + 4 * bit[node], left, right, rng)
            bit[s.trees.left[node]], bit[s.trees.right[node]] = below >> 1, below & 1
        elif n_children == 1:
            left, pair = inside + 2 * (s.trees.left[node] - first), weight + 2 * bit[node]
            bit[s.trees.left[node]] = draw_bit(pair[0] * left[0], pair[1] * left[1], rng)
        multiply(&new, weight[index_of(s, node, bit)])
        multiply(&old, weight[index_of(s, node, s.bit.data())])
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


cdef inline void prefetch_tree(const SplitState* s, index_t tree) noexcept nogil:
    """Have the cells of all refinements of a tree's rules brought to the cache."""
    cdef index_t node
    cdef const Block* block
    cdef const Place* places
    cdef const Tables* cells
    cdef int level, option
    for node in range(s.trees.tree_start[tree], s.trees.tree_start[tree + 1]):
        block = &s.blocks[s.block_of[node]]
        places = places_of(s, s.block_of[node])
        for level in range(s.back_off.n_used if block.word_class < 0 else 1):
            for option in range(2):
                cells = &s.back_off.levels[level].cells[places[2 * level + option].cell]
                prefetch(cells)
                if block.n_children == 2:
                    prefetch(cells + 2)


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
    """The same of a word with a class, whose options always differ; those of J_x and W do not depend on them."""
    cdef const BackOff* b = &s.back_off
    cdef double below, word, of_class
    cdef Address address
    cdef int option
    fill_address(s, number, 0, &address)
    below = label_class_probability(b, address.label, address.word_class)
    word = predictive_at(b, word_level(b), &address.of_word, b.class_word_base[address.word_class])
    base[1] = 0.0
    for option in range(s.n_options[s.blocks[number].group]):
        of_class = predictive_at(b, class_level(b), &address.of_class, below)
        base[option] = b.lexical_share[address.label] * of_class * word
        address.of_class.restaurant += 1
        address.of_class.cell += 1
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


cdef void fill_inside(const SplitState* s, index_t tree, double temperature, InsideValues* values) noexcept nogil:
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
    values.inside.resize(2 * size)
    values.weights.resize(8 * size)
    inside = values.inside.data()
    for position in range(size - 1, -1, -1):
        node = first + position
        block = &s.blocks[s.block_of[node]]
        weight = &values.weights[8 * position]
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
