"""Moves of many bits of the split sampler at once; see ``_split_moves.pxd``."""

from libc.math cimport exp, log
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libcpp.vector cimport vector

from tsgkit._backoff cimport Place
from tsgkit._random cimport RNG_SPLIT_MERGE, RNG_SPLIT_TYPE, Rng, rng_for
from tsgkit._restaurant cimport LogProduct, log_of, log_product, multiply
from tsgkit._split_seating cimport SeatingEntries, roll_back, seat_node, unseat_node
from tsgkit._split_state cimport Block, SplitState, index_of, index_of_bits, places_of
from tsgkit._split_trees cimport InsideValues, SweepCounts, fill_inside
from tsgkit._trees cimport n_nodes, n_nodes_of, n_trees
from tsgkit._types cimport index_t, symbol_t
from tsgkit._vectors cimport fill
from tsgkit._worker_pool cimport worker_vector

cdef enum:
    N_CHOICES = 8            # of bits of a rule, at most
    TREES_OF_ITEM = 64       # what a thread does at a time; sums depend on it


# ---- nodes whose rules change -------------------------------------------------------------------------------------

# Nodes whose customers are unseated, and seated again with other bits; each is listed once. All functions from here on
# may let a failed allocation pass, and are called by `WorkerPool.run` only.
cdef cppclass Touched:
    SplitState* s
    worker_vector[int32_t] nodes
    worker_vector[uint8_t] old_bit
    worker_vector[int32_t] old_seat
    SeatingEntries seatings
    vector[uint32_t] epoch_of       # per node: the last list that it was in
    uint32_t epoch


cdef int open_touched(Touched* touched, SplitState* s) except -1 nogil:
    touched.s, touched.epoch = s, 0
    fill(touched.epoch_of, n_nodes(&s.trees), <uint32_t>0)
    return 0


cdef void clear_touched(Touched* touched) noexcept nogil:
    touched.nodes.clear()
    touched.old_bit.clear()
    touched.old_seat.clear()
    touched.seatings.clear()
    touched.epoch += 1


cdef void touch(Touched* touched, int32_t node) noexcept nogil:
    """The rule at a node may change."""
    if node >= 0 and touched.epoch_of[node] != touched.epoch:
        touched.epoch_of[node] = touched.epoch
        touched.nodes.push_back(node)
        touched.old_bit.push_back(touched.s.bit[node])
        touched.old_seat.push_back(touched.s.seat[node])


cdef double unseat_touched(Touched* touched) noexcept nogil:
    """Unseat all; the log of the product of the predictive probabilities of their rules."""
    cdef LogProduct product = log_product()
    cdef size_t item = touched.nodes.size()
    while item > 0:
        item -= 1
        multiply(&product, unseat_node(touched.s, touched.nodes[item], &touched.seatings))
    return log_of(&product)


cdef double seat_touched(Touched* touched, Rng* rng) noexcept nogil:
    """Seat all by the present bits; the log of the product of the predictive probabilities of their rules."""
    cdef LogProduct product = log_product()
    cdef size_t item
    for item in range(touched.nodes.size()):
        multiply(&product, seat_node(touched.s, touched.nodes[item], rng, &touched.seatings))
    return log_of(&product)


cdef void restore_bits(Touched* touched) noexcept nogil:
    cdef size_t item
    for item in range(touched.nodes.size()):
        touched.s.bit[touched.nodes[item]] = touched.old_bit[item]


cdef void restore_touched(Touched* touched) noexcept nogil:
    """Everything as it was before the nodes were unseated."""
    cdef size_t item
    restore_bits(touched)
    for item in range(touched.nodes.size()):
        touched.s.seat[touched.nodes[item]] = touched.old_seat[item]
    roll_back(&touched.seatings, 0)


# ---- all occurrences of a refined rule ----------------------------------------------------------------------------

cdef cppclass TypeSweep:
    Touched touched
    worker_vector[int32_t] occurrences
    uint64_t iteration
    index_t n_moves
    double temperature
    bint onto_used
    SweepCounts* counts


cdef int type_sweep(
    SplitState* s, uint64_t iteration, index_t n_moves, double temperature, bint onto_used, SweepCounts* counts
) except -1 nogil:
    cdef TypeSweep work
    if n_moves == 0:
        return 0
    open_touched(&work.touched, s)
    work.iteration, work.n_moves, work.temperature = iteration, n_moves, temperature
    work.onto_used, work.counts = onto_used, counts
    s.pool.run(1, 1, resample_types, &work)
    return 0


cdef void resample_types(void* context, int item, int thread) noexcept nogil:
    cdef TypeSweep* work = <TypeSweep*>context
    cdef SplitState* s = work.touched.s
    cdef Rng rng = rng_for(s.seed, work.iteration, RNG_SPLIT_TYPE, 0)
    cdef index_t _move
    cdef bint is_changed
    for _move in range(work.n_moves):
        is_changed = resample_type(work, <int32_t>rng.below(n_nodes(&s.trees)), &rng)
        work.counts.n_proposed += 1
        work.counts.n_accepted += is_changed
        work.counts.n_changed += is_changed


cdef bint resample_type(TypeSweep* work, int32_t node, Rng* rng) noexcept nogil:
    """Resample the refinement of all nodes that have the one of this node; whether it is another one.

    With W_j the product of the predictive probabilities of all rules that change, seated one after the other with
    refinement j, and the present seats for the present refinement, j is drawn with probability W_j / sum_k W_k. Seats
    of every j are one draw given j; these draws and the present seats together are a state whose joint probability is
    proportional to W_j, so that this is a Gibbs step.
    """
    cdef SplitState* s = work.touched.s
    cdef int32_t number = s.block_of[node]
    cdef int choices[N_CHOICES]
    cdef double log_weight[N_CHOICES]
    cdef Rng rng_of_choice[N_CHOICES]
    cdef int present = index_of(s, node, s.bit.data()), choice, chosen
    cdef int n_choices = list_choices(s, &s.blocks[number], present, choices)
    cdef size_t mark
    if n_choices == 1:
        return False
    find_occurrences(work, number, present)
    log_weight[0] = unseat_touched(&work.touched)
    mark = work.touched.seatings.size()
    for choice in range(1, n_choices):
        log_weight[choice] = 1.0    # it cannot be
        rng_of_choice[choice] = Rng(rng.below(<uint64_t>1 << 53), work.iteration, choice)
        if relabel(work, number, choices[choice]):
            log_weight[choice] = draw_seats(&work.touched, rng_of_choice[choice])
            roll_back(&work.touched.seatings, mark)
        restore_bits(&work.touched)
    chosen = draw_choice(log_weight, n_choices, work.temperature, rng)
    if chosen == 0:
        restore_touched(&work.touched)
        return False
    relabel(work, number, choices[chosen])
    draw_seats(&work.touched, rng_of_choice[chosen])
    return True


cdef double draw_seats(Touched* touched, Rng rng) noexcept nogil:
    """As `seat_touched`: the same seats for the same stream."""
    return seat_touched(touched, &rng)


cdef int list_choices(const SplitState* s, const Block* block, int present, int* choices) noexcept nogil:
    """All refinements of a block's rule, the present one first; how many they are."""
    cdef int n_choices = 1, bit, left_bit, right_bit, other
    cdef int n_left = s.n_options[block.left_group] if block.n_children >= 1 else 1
    cdef int n_right = s.n_options[block.right_group] if block.n_children == 2 else 1
    choices[0] = present
    for bit in range(s.n_options[block.group]):
        for left_bit in range(n_left):
            for right_bit in range(n_right):
                other = index_of_bits(block, bit, left_bit, right_bit)
                if other != present:
                    choices[n_choices] = other
                    n_choices += 1
    return n_choices


cdef void find_occurrences(TypeSweep* work, int32_t number, int index) noexcept nogil:
    """The nodes of a block that have a refinement, and all whose rules change with it."""
    cdef SplitState* s = work.touched.s
    cdef size_t item
    cdef int32_t node
    work.occurrences.clear()
    clear_touched(&work.touched)
    for item in range(s.nodes_of_block[number].size()):
        node = s.nodes_of_block[number][item]
        if index_of(s, node, s.bit.data()) == index:
            work.occurrences.push_back(node)
            touch(&work.touched, s.trees.parent[node])
            touch(&work.touched, node)
            touch(&work.touched, s.trees.left[node])
            touch(&work.touched, s.trees.right[node])


cdef bint relabel(TypeSweep* work, int32_t number, int index) noexcept nogil:
    """Give all occurrences a refinement; whether they can have it, and nobody else has.

    Others may have it, or get it as parents or children of occurrences. The reverse would take them along. All who are
    touched are unseated.
    """
    cdef SplitState* s = work.touched.s
    cdef int n = s.blocks[number].n_children
    cdef size_t item, n_here = 0
    cdef int32_t node
    for item in range(work.occurrences.size()):
        node = work.occurrences[item]
        s.bit[node] = index >> n
        if n == 1:
            s.bit[s.trees.left[node]] = index & 1
        elif n == 2:
            s.bit[s.trees.left[node]], s.bit[s.trees.right[node]] = index >> 1 & 1, index & 1
    for item in range(work.occurrences.size()):
        if index_of(s, work.occurrences[item], s.bit.data()) != index:
            return False
    if work.onto_used:
        return True
    for item in range(work.touched.nodes.size()):
        node = work.touched.nodes[item]
        n_here += s.block_of[node] == number and index_of(s, node, s.bit.data()) == index
    return n_here == work.occurrences.size() and n_seated(s, number, index) == 0


cdef int32_t n_seated(const SplitState* s, int32_t number, int index) noexcept nogil:
    """How many customers have this refinement of a block's rule."""
    cdef int n = s.blocks[number].n_children
    cdef const Place* place = &places_of(s, number)[index >> n]
    return s.back_off.levels[0].cells[place.cell + (index & ((1 << n) - 1))].n_customers


cdef int draw_choice(const double* log_weight, int n_choices, double temperature, Rng* rng) noexcept nogil:
    """One of the choices that can be, whose log weights are at most 0."""
    cdef double largest = log_weight[0], target = 0.0, weight
    cdef int choice, last = 0
    for choice in range(n_choices):
        if log_weight[choice] <= 0.0:
            largest = max(largest, log_weight[choice])
    for choice in range(n_choices):
        if log_weight[choice] <= 0.0:
            target += exp((log_weight[choice] - largest) / temperature)
    target *= rng.uniform()
    for choice in range(n_choices):
        if log_weight[choice] > 0.0:
            continue
        weight = exp((log_weight[choice] - largest) / temperature)
        if weight > 0.0:
            last = choice
        target -= weight
        if target < 0.0:
            break
    return last


# ---- merging ------------------------------------------------------------------------------------------------------

cdef cppclass Merging:
    Touched touched
    uint64_t iteration
    vector[vector[int32_t]] members       # per group
    const vector[uint8_t]* is_merged      # per group; NULL: only compute losses
    vector[double]* losses                # per group


cdef int open_merging(Merging* work, SplitState* s, uint64_t iteration) except -1 nogil:
    cdef index_t node
    open_touched(&work.touched, s)
    work.iteration = iteration
    work.members.resize(s.group_label.size())
    for node in range(n_nodes(&s.trees)):
        work.members[s.group[node]].push_back(<int32_t>node)
    return 0


cdef void flip(Touched* touched, const vector[int32_t]* members, uint8_t value) noexcept nogil:
    """Touch all members with this bit, and their parents."""
    cdef size_t item
    for item in range(members.size()):
        if touched.s.bit[members[0][item]] == value:
            touch(touched, touched.s.trees.parent[members[0][item]])
            touch(touched, members[0][item])


cdef void set_bits(Touched* touched, const vector[int32_t]* members, uint8_t value) noexcept nogil:
    cdef size_t item
    for item in range(members.size()):
        touched.s.bit[members[0][item]] = value


cdef int joint_losses(SplitState* s, uint64_t iteration, vector[double]* losses) except -1 nogil:
    cdef Merging work
    open_merging(&work, s, iteration)
    fill(losses[0], s.group_label.size(), 0.0)
    work.losses = losses
    s.pool.run(1, 1, compute_joint_losses, &work)
    return 0


cdef void compute_joint_losses(void* context, int item, int thread) noexcept nogil:
    cdef Merging* work = <Merging*>context
    cdef SplitState* s = work.touched.s
    cdef size_t group, member
    cdef int64_t n_ones
    cdef uint8_t moving
    cdef double loss
    cdef Rng rng
    for group in range(s.group_label.size()):
        if s.n_options[group] < 2:
            continue
        rng = rng_for(s.seed, work.iteration, RNG_SPLIT_MERGE, group)
        n_ones = 0
        for member in range(work.members[group].size()):
            n_ones += s.bit[work.members[group][member]]
        moving = 2 * n_ones <= <int64_t>work.members[group].size()
        clear_touched(&work.touched)
        flip(&work.touched, &work.members[group], moving)
        loss = unseat_touched(&work.touched)
        set_bits(&work.touched, &work.members[group], 1 - moving)
        work.losses[0][group] = loss - seat_touched(&work.touched, &rng)
        # The bits of the others were the same.
        restore_touched(&work.touched)


cdef cppclass MarginalLosses:
    SplitState* s
    vector[double] share                    # per group and option: of the group's nodes
    vector[worker_vector[double]] losses    # per item of work and group


cdef int marginal_losses(SplitState* s, int n_threads, vector[double]* losses) except -1 nogil:
    cdef MarginalLosses work
    cdef double zeros, ones
    cdef size_t group
    cdef index_t n_items = (n_trees(&s.trees) + TREES_OF_ITEM - 1) // TREES_OF_ITEM, item
    work.s = s
    work.share.resize(2 * s.group_label.size())
    for group in range(s.group_label.size()):
        zeros = <double>s.back_off.levels[0].restaurants[2 * group].n_customers
        ones = <double>s.back_off.levels[0].restaurants[2 * group + 1].n_customers
        work.share[2 * group] = zeros / (zeros + ones) if zeros + ones > 0 else 1.0
        work.share[2 * group + 1] = 1.0 - work.share[2 * group]
    work.losses.resize(n_items)
    s.pool.run(n_threads, <int>n_items, add_losses_of_item, &work)
    fill(losses[0], s.group_label.size(), 0.0)
    for item in range(n_items):
        for group in range(s.group_label.size()):
            losses[0][group] += work.losses[item][group]
    return 0


cdef void add_losses_of_item(void* context, int item, int thread) noexcept nogil:
    """Sum over some trees; a worker thread does this."""
    cdef MarginalLosses* work = <MarginalLosses*>context
    cdef InsideValues values
    cdef worker_vector[double] outside
    cdef index_t tree, first = item * <index_t>TREES_OF_ITEM
    work.losses[item].resize(work.s.group_label.size())
    for tree in range(first, min(first + TREES_OF_ITEM, n_trees(&work.s.trees))):
        fill_inside(work.s, tree, 1.0, &values)
        outside.clear()
        outside.resize(2 * n_nodes_of(&work.s.trees, tree))
        outside[0] = 1.0
        add_losses(work.s, tree, work.share.data(), &values, outside.data(), work.losses[item].data())


cdef void add_losses(
    const SplitState* s, index_t tree, const double* share, InsideValues* values, double* outside, double* losses
) noexcept nogil:
    """Add what every node of a tree loses, with the outside values from the root down."""
    cdef index_t first = s.trees.tree_start[tree], position, node
    cdef const double* inside = values.inside.data()
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
            losses[group] += log(total) - log(merged)
        add_outside(s, node, first, &values.weights[8 * position], inside, outside)


cdef inline void add_outside(
    const SplitState* s, index_t node, index_t first, const double* weight, const double* inside, double* outside
) noexcept nogil:
    """Add to the outside values of a node's children. Values of a node need only be right up to a factor."""
    cdef index_t position = node - first, left = s.trees.left[node] - first, right = s.trees.right[node] - first
    cdef int n = s.blocks[s.block_of[node]].n_children, option, left_bit, right_bit
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
    cdef Merging work
    cdef size_t group
    open_merging(&work, s, iteration)
    work.is_merged = is_merged
    s.pool.run(1, 1, merge_bits, &work)
    for group in range(s.group_label.size()):
        if is_merged[0][group]:
            s.n_options[group] = 1
    return 0


cdef void merge_bits(void* context, int item, int thread) noexcept nogil:
    cdef Merging* work = <Merging*>context
    cdef SplitState* s = work.touched.s
    cdef Rng rng = rng_for(s.seed, work.iteration, RNG_SPLIT_MERGE, s.group_label.size())
    cdef size_t group
    clear_touched(&work.touched)
    for group in range(s.group_label.size()):
        if work.is_merged[0][group]:
            flip(&work.touched, &work.members[group], 1)
    unseat_touched(&work.touched)
    for group in range(s.group_label.size()):
        if work.is_merged[0][group]:
            set_bits(&work.touched, &work.members[group], 0)
    seat_touched(&work.touched, &rng)
