"""Blocked Metropolis-Hastings over refined trees: sites, subcategories and insertions together.

The inside pass is that of `tsgkit._refined_inside` over the treebank's links, with N_h in place of h at internal nodes
(see the ``.pxd``). An auxiliary tree at v is weighed by the same code: for as long as that takes, v has the label and
the rule of its root. The probabilities of insertions are the same in the proposal and, at temperature 1, in the model.

A worker that makes a proposal changes the links of its tree, which no other reads, and then exchanges them for those
before; they are exchanged again when the proposal is seated.
"""

from libc.math cimport log
from libc.stdint cimport int32_t, uint8_t, uint64_t
from libcpp.vector cimport vector

from tsgkit._random cimport RNG_REFINED_INSERTION, Rng, rng_for
from tsgkit._refined_blocked cimport (
    Proposal,
    ProposalBatch,
    ProposalKind,
    keep_customers,
    rng_of_proposal,
    start_batches,
    sweep_trees,
)
from tsgkit._refined_inside cimport (
    AT_SITE,
    BY_BASE,
    OpenNode,
    MatchRange,
    RefinedInside,
    TreeDerivation,
    draw_base_children,
    draw_site,
    fill_at,
    find_stored_dishes,
    open_node,
    open_parts,
    open_root,
    reserve_inside,
)
from tsgkit._refined_rules cimport n_subcategories
from tsgkit._refined_seating cimport multiply_predictive
from tsgkit._refined_state cimport Derivation, RefinedState, SweepCounts
from tsgkit._restaurant cimport LogProduct, log_of, log_product, multiply
from tsgkit._trees cimport child, n_nodes, n_nodes_of, n_trees
from tsgkit._types cimport index_t, symbol_t
from tsgkit._vectors cimport copy_vector, fill
from tsgkit._worker_pool cimport WorkerPool


# What the inside pass of a tree has in addition.
cdef cppclass InsertionInside:
    RefinedInside values               # the matches of a node are those of N_h
    vector[MatchRange] direct               # per node: those of h, where nothing is inserted
    vector[double] internal            # N_{B_k} by node and subcategory
    vector[double] weight              # per node and side of the foot: A(v, u), in the unit of the node's values
    vector[int32_t] position           # per fragment: where it is in the list at work


# The links of a tree's nodes, and what is inserted there.
cdef cppclass TreeLinks:
    vector[symbol_t] label
    vector[symbol_t] rule
    vector[symbol_t] left
    vector[symbol_t] right
    vector[symbol_t] parent
    vector[uint8_t] foot


# ---- links ------------------------------------------------------------------------------------------------------

cdef int open_insertions(RefinedState* state, Insertions* insertions) except -1 nogil:
    cdef size_t label
    copy_vector(state.trees, insertions.trees)
    # Roots of auxiliary trees are nodes of the part that has their hosts.
    for label in range(insertions.auxiliary_label.size()):
        if insertions.auxiliary_label[label] >= 0:
            state.parts.of_label[insertions.auxiliary_label[label]] = state.parts.of_label[label]
    fill(insertions.foot, n_nodes(&state.trees), <uint8_t>NO_FOOT)
    return 0


cdef inline bint can_insert(const Insertions* insertions, index_t node, int side) noexcept nogil:
    """Whether the child on this side can be the foot of an insertion at a node."""
    return insertions.top_rule[2 * insertions.trees.rule[node] + side] >= 0


cdef inline void make_auxiliary(
    RefinedState* state, const Insertions* insertions, index_t node, int side
) noexcept nogil:
    """Make a node the root of an auxiliary tree; the links of others stay."""
    cdef const BinaryTrees* trees = &insertions.trees
    state.trees.label[node] = insertions.auxiliary_label[trees.label[node]]
    state.trees.rule[node] = insertions.top_rule[2 * trees.rule[node] + side]
    state.trees.left[node] = child(trees, node, 1 - side)
    state.trees.right[node] = -1


cdef inline void restore_node(RefinedState* state, const Insertions* insertions, index_t node) noexcept nogil:
    """Give a node the links of the treebank, but for its parent."""
    state.trees.label[node], state.trees.rule[node] = insertions.trees.label[node], insertions.trees.rule[node]
    state.trees.left[node], state.trees.right[node] = insertions.trees.left[node], insertions.trees.right[node]


cdef void restore_tree(RefinedState* state, Insertions* insertions, index_t tree) noexcept nogil:
    """Nothing is inserted into a tree."""
    cdef index_t node
    for node in range(state.trees.tree_start[tree], state.trees.tree_start[tree + 1]):
        restore_node(state, insertions, node)
        state.trees.parent[node] = insertions.trees.parent[node]
        insertions.foot[node] = NO_FOOT


cdef void insert_at(RefinedState* state, Insertions* insertions, symbol_t node, int side) noexcept nogil:
    """Insert an auxiliary tree with its root at a node; insertions above it come first."""
    cdef symbol_t above = state.trees.parent[node], foot = child(&insertions.trees, node, side)
    if state.trees.left[above] == node:
        state.trees.left[above] = foot
    else:
        state.trees.right[above] = foot
    state.trees.parent[foot], state.trees.parent[node] = above, -1
    make_auxiliary(state, insertions, node, side)
    insertions.foot[node] = <uint8_t>(side + 1)


cdef int link_insertions(RefinedState* state, Insertions* insertions) except -1 nogil:
    cdef vector[uint8_t] foot
    cdef index_t tree, node
    copy_vector(insertions.foot, foot)
    for tree in range(n_trees(&state.trees)):
        restore_tree(state, insertions, tree)
    for node in range(n_nodes(&state.trees)):
        if foot[node] != NO_FOOT:
            insert_at(state, insertions, <symbol_t>node, foot[node] - 1)
    return 0


cdef int resize_links(TreeLinks* links, index_t n_items) except -1 nogil:
    links.label.resize(n_items)
    links.rule.resize(n_items)
    links.left.resize(n_items)
    links.right.resize(n_items)
    links.parent.resize(n_items)
    links.foot.resize(n_items)
    return 0


cdef void save_links(
    const RefinedState* state, const Insertions* insertions, index_t first, TreeLinks* links
) noexcept nogil:
    cdef size_t item
    for item in range(links.label.size()):
        links.label[item], links.rule[item] = state.trees.label[first + item], state.trees.rule[first + item]
        links.left[item], links.right[item] = state.trees.left[first + item], state.trees.right[first + item]
        links.parent[item], links.foot[item] = state.trees.parent[first + item], insertions.foot[first + item]


cdef void exchange_links(RefinedState* state, Insertions* insertions, index_t first, TreeLinks* links) noexcept nogil:
    cdef size_t item
    cdef index_t node
    for item in range(links.label.size()):
        node = first + item
        links.label[item], state.trees.label[node] = state.trees.label[node], links.label[item]
        links.rule[item], state.trees.rule[node] = state.trees.rule[node], links.rule[item]
        links.left[item], state.trees.left[node] = state.trees.left[node], links.left[item]
        links.right[item], state.trees.right[node] = state.trees.right[node], links.right[item]
        links.parent[item], state.trees.parent[node] = state.trees.parent[node], links.parent[item]
        links.foot[item], insertions.foot[node] = insertions.foot[node], links.foot[item]


# ---- sweeps -----------------------------------------------------------------------------------------------------

cdef cppclass InsertionProposals:
    ProposalBatch* work
    Insertions* insertions
    vector[InsertionInside] inside     # per thread
    vector[TreeLinks] links            # per tree of the batch: those that its nodes do not have now


cdef int insertion_sweep(
    RefinedState* state, Insertions* insertions, uint64_t iteration, int batch, int n_threads, double temperature,
    WorkerPool* pool, SweepCounts* counts,
) except -1 nogil:
    cdef ProposalBatch work
    cdef InsertionProposals proposals
    cdef ProposalKind kind
    cdef int thread
    proposals.work, proposals.insertions = &work, insertions
    proposals.links.resize(batch)
    proposals.inside.resize(n_threads)
    for thread in range(n_threads):
        proposals.inside[thread].values.now = 0
    kind.context, kind.reserve, kind.propose, kind.exchange = &proposals, reserve_trees, propose_tree, exchange_tree
    start_batches(&work, state, iteration, True, temperature, n_threads)
    return sweep_trees(&work, &kind, batch, pool, counts)


cdef int reserve_trees(void* context, int size) except -1 nogil:
    cdef InsertionProposals* proposals = <InsertionProposals*>context
    cdef const RefinedState* state = proposals.work.state
    cdef size_t thread
    cdef int item
    for item in range(size):
        resize_links(&proposals.links[item], n_nodes_of(&state.trees, proposals.work.trees[item]))
    for thread in range(proposals.inside.size()):
        reserve_values(state, &proposals.inside[thread])
    return 0


cdef void exchange_tree(void* context, int item) noexcept nogil:
    cdef InsertionProposals* proposals = <InsertionProposals*>context
    cdef RefinedState* state = proposals.work.state
    cdef index_t first = state.trees.tree_start[proposals.work.trees[item]]
    exchange_links(state, proposals.insertions, first, &proposals.links[item])


cdef void propose_tree(void* context, int item, int thread) noexcept nogil:
    """Draw a derivation of a tree from the frozen grammar; its log q against that of the present one."""
    cdef InsertionProposals* proposals = <InsertionProposals*>context
    cdef ProposalBatch* work = proposals.work
    cdef RefinedState* state = work.state
    cdef Insertions* insertions = proposals.insertions
    cdef InsertionInside* inside = &proposals.inside[thread]
    cdef Proposal* proposal = &work.proposals[item]
    cdef TreeDerivation* drawn = &proposal.derivation
    cdef index_t tree = work.trees[item], first = state.trees.tree_start[tree]
    cdef double log_old
    cdef Rng rng = rng_of_proposal(work, item)
    save_links(state, insertions, first, &proposals.links[item])
    log_old = log_insertions_of(state, insertions, tree, &state.is_site[first])
    proposal.log_ratio = log_frozen(
        state, tree, &state.is_site[first], &state.symbol[first], &state.dish[first], &inside.values
    )
    restore_tree(state, insertions, tree)
    fill_tree(state, insertions, inside, tree)
    draw_tree(state, insertions, inside, tree, drawn, &rng)
    proposal.log_ratio -= log_frozen(
        state, tree, &drawn.is_site[0], &drawn.symbol[0], &drawn.dish[0], &inside.values
    )
    proposal.log_beside = log_insertions_of(state, insertions, tree, &drawn.is_site[0]) - log_old
    proposal.log_ratio -= proposal.log_beside
    exchange_tree(context, item)
    keep_customers(work, item)


cdef double log_frozen(
    const RefinedState* state, index_t tree, const uint8_t* is_site, const symbol_t* symbol, const int32_t* dish,
    RefinedInside* values,
) noexcept nogil:
    """The log probability of a derivation of a tree under the frozen grammar, without that of insertions.

    The links of the tree are those of the derivation.
    """
    cdef LogProduct product = log_product()
    cdef index_t first = state.trees.tree_start[tree], node
    cdef Derivation derivation
    derivation.is_site, derivation.symbol, derivation.first = is_site, symbol, first
    for node in range(n_nodes_of(&state.trees, tree)):
        if is_site[node]:
            multiply_predictive(
                state, &derivation, <int32_t>(first + node), dish[node], &values.at_work, &product
            )
    return log_of(&product)


cdef int reserve_values(const RefinedState* state, InsertionInside* inside) except -1 nogil:
    reserve_inside(state, &inside.values)
    inside.direct.resize(state.n_most_nodes)
    inside.internal.resize(state.n_longest)
    inside.weight.resize(2 * state.n_most_nodes)
    inside.position.resize(inside.values.stamps.size())
    return 0


# ---- the inside pass --------------------------------------------------------------------------------------------

cdef void fill_tree(
    RefinedState* state, const Insertions* insertions, InsertionInside* inside, index_t tree
) noexcept nogil:
    cdef index_t first = state.trees.tree_start[tree], node = state.trees.tree_start[tree + 1]
    cdef bint inserts
    cdef int side
    inside.values.match.clear()
    inside.values.value.clear()
    while node > first:
        node -= 1
        inserts = insertions.probability[state.trees.label[node]] > 0.0
        for side in range(2):
            inside.weight[2 * (node - first) + side] = 0.0
            if inserts and can_insert(insertions, node, side):
                inside.weight[2 * (node - first) + side] = auxiliary_weight(
                    state, insertions, inside, first, node, side
                )
        fill_at(state, &inside.values, first, node, True)
        inside.direct[node - first] = inside.values.matches[node - first]
        if inserts:
            add_insertions(state, insertions, inside, first, node)


cdef double auxiliary_weight(
    RefinedState* state, const Insertions* insertions, InsertionInside* inside, index_t first, index_t node, int side
) noexcept nogil:
    """A(v, u): the inside value of v as the root of an auxiliary tree, in the unit of the sibling's values."""
    cdef size_t n_matches = inside.values.match.size()
    make_auxiliary(state, insertions, node, side)
    fill_at(state, &inside.values, first, node, True)
    restore_node(state, insertions, node)
    inside.values.match.resize(n_matches)
    inside.values.value.resize(n_matches)
    return 1.0 / inside.values.scale[node - first]


cdef void add_insertions(
    const RefinedState* state, const Insertions* insertions, InsertionInside* inside, index_t first, index_t node
) noexcept nogil:
    """N_h of a node: of the base, where it makes `mixed`, and of the fragments that match."""
    cdef symbol_t label = state.trees.label[node]
    cdef int32_t n_values = n_subcategories(&state.rules, label), number, offset = state.offset[node], below
    cdef double probability = insertions.probability[label], stop = state.stops.stop[label], weight
    cdef RefinedInside* values = &inside.values
    cdef const double* host = inside.internal.data() if insertions.stacked else values.base.data()
    cdef int side
    for number in range(n_values):
        inside.internal[offset + number] = (1.0 - probability) * values.base[offset + number]
    for side in range(2):
        # From here on in the unit of the node's own values.
        inside.weight[2 * (node - first) + side] *= values.scale[node - first]
        weight = probability * inside.weight[2 * (node - first) + side]
        if weight > 0.0:
            below = state.offset[child(&insertions.trees, node, side)]
            for number in range(n_values):
                inside.internal[offset + number] += weight * host[below + number]
    for number in range(n_values):
        values.mixed[offset + number] = (
            stop * values.inside[offset + number] + (1.0 - stop) * inside.internal[offset + number]
        )
    merge_matches(insertions, inside, first, node, probability)


cdef void merge_matches(
    const Insertions* insertions, InsertionInside* inside, index_t first, index_t node, double probability
) noexcept nogil:
    """The fragments that match at a node as parts of others, with N_g."""
    cdef RefinedInside* values = &inside.values
    cdef int32_t begin = <int32_t>values.match.size()
    cdef index_t below
    cdef double weight
    cdef int side
    values.now += 1
    add_matches_of(inside, inside.direct[node - first], 1.0 - probability)
    for side in range(2):
        weight = probability * inside.weight[2 * (node - first) + side]
        if weight > 0.0:
            below = child(&insertions.trees, node, side) - first
            add_matches_of(
                inside, values.matches[below] if insertions.stacked else inside.direct[below], weight
            )
    # Single rules are among them: their weights as dishes are 0.
    values.matches[node - first].begin = values.matches[node - first].first_large = begin
    values.matches[node - first].end = <int32_t>values.match.size()


cdef void add_matches_of(InsertionInside* inside, MatchRange matches, double weight) noexcept nogil:
    """Add the fragments of a list, times a weight, to the list at work, which ends the vector."""
    cdef RefinedInside* values = &inside.values
    cdef int32_t item, fragment
    for item in range(matches.begin, matches.end):
        fragment = values.match[item]
        if values.stamps[fragment].time == values.now:
            values.value[inside.position[fragment]] += weight * values.value[item]
            continue
        values.stamps[fragment].time = values.now
        inside.position[fragment] = <int32_t>values.match.size()
        values.match.push_back(fragment)
        values.value.push_back(weight * values.value[item])


# ---- drawing a derivation -----------------------------------------------------------------------------------------

cdef void draw_tree(
    RefinedState* state, Insertions* insertions, InsertionInside* inside, index_t tree, TreeDerivation* drawn, Rng* rng
) noexcept nogil:
    """Draw sites, symbols and insertions from the root down; the links of the tree follow."""
    cdef index_t first = state.trees.tree_start[tree]
    cdef RefinedInside* values = &inside.values
    cdef OpenNode next
    open_root(state, values, tree, drawn)
    while values.n_open:
        values.n_open -= 1
        next = values.open_nodes[values.n_open]
        if next.derived_by == AT_SITE:
            if insertions.foot[next.node] == NO_FOOT:
                values.matches[next.node - first] = inside.direct[next.node - first]
            draw_site(state, values, first, True, &next, drawn, rng)
            continue
        draw_insertions(state, insertions, inside, first, &next, rng)
        if state.trees.left[next.node] < 0:
            continue
        if next.derived_by == BY_BASE:
            draw_base_children(state, values, first, next.node, next.subcategory, rng)
        else:
            open_parts(state, values, next.node, next.derived_by)
    find_stored_dishes(state, values, tree, drawn)


cdef void draw_insertions(
    RefinedState* state, Insertions* insertions, InsertionInside* inside, index_t first, OpenNode* next, Rng* rng
) noexcept nogil:
    """What is inserted at an internal node of a fragment, if anything; the fragment then continues at the foot."""
    cdef int side = draw_foot(state, insertions, inside, first, next, rng)
    cdef int32_t node
    while side >= 0:
        node = next.node
        next.node = child(&insertions.trees, node, side)
        insert_at(state, insertions, node, side)
        # The values of the node are now those of the auxiliary tree's root.
        fill_at(state, &inside.values, first, node, True)
        open_node(&inside.values, node, AT_SITE, 0)
        side = draw_foot(state, insertions, inside, first, next, rng) if insertions.stacked else -1


cdef int draw_foot(
    const RefinedState* state, const Insertions* insertions, const InsertionInside* inside, index_t first,
    const OpenNode* next, Rng* rng
) noexcept nogil:
    """The side of the foot of what is inserted at a node, or -1."""
    cdef double probability = insertions.probability[insertions.trees.label[next.node]], total, target
    cdef double weights[2]
    cdef int side
    if probability == 0.0:
        return -1
    total = (1.0 - probability) * host_value(state, inside, first, next, next.node, inside.direct, inside.values.base)
    for side in range(2):
        weights[side] = probability * inside.weight[2 * (next.node - first) + side]
        if weights[side] > 0.0:
            weights[side] *= value_at_foot(
                state, insertions, inside, first, next, child(&insertions.trees, next.node, side)
            )
        total += weights[side]
    target = rng.uniform() * total
    for side in range(2):
        target -= weights[side]
        if target < 0.0:
            return side
    return -1


cdef inline double value_at_foot(
    const RefinedState* state, const Insertions* insertions, const InsertionInside* inside, index_t first,
    const OpenNode* next, symbol_t foot
) noexcept nogil:
    """h(u), or N_h(u) where insertions are stacked."""
    if insertions.stacked:
        return host_value(state, inside, first, next, foot, inside.values.matches, inside.internal)
    return host_value(state, inside, first, next, foot, inside.direct, inside.values.base)


cdef double host_value(
    const RefinedState* state, const InsertionInside* inside, index_t first, const OpenNode* next, symbol_t node,
    const vector[MatchRange]& matches, const vector[double]& base,
) noexcept nogil:
    """The value at a node of what derives `next`: the base, or a part of a fragment among these matches."""
    cdef int32_t item
    if next.derived_by == BY_BASE:
        return base[state.offset[node] + next.subcategory]
    for item in range(matches[node - first].begin, matches[node - first].end):
        if inside.values.match[item] == next.derived_by:
            return inside.values.value[item]
    return 0.0


# ---- probabilities of insertions ------------------------------------------------------------------------------------

cdef inline bint is_foot_of(const Insertions* insertions, index_t node) noexcept nogil:
    cdef symbol_t above = insertions.trees.parent[node]
    if above < 0 or insertions.foot[above] == NO_FOOT:
        return False
    return child(&insertions.trees, above, insertions.foot[above] - 1) == node


cdef inline bint has_none(
    const Insertions* insertions, index_t node, bint is_site
) noexcept nogil:
    """Whether a node could have an insertion, and has none."""
    if insertions.foot[node] != NO_FOOT or is_site:
        return False
    return insertions.stacked or not is_foot_of(insertions, node)


cdef int count_insertions(
    const RefinedState* state, const Insertions* insertions, vector[InsertionCounts]* counts
) except -1 nogil:
    cdef InsertionCounts none
    cdef InsertionCounts* own
    cdef index_t node
    none.inserted = none.none = 0
    fill(counts[0], insertions.probability.size(), none)
    for node in range(n_nodes(&state.trees)):
        own = &counts[0][insertions.trees.label[node]]
        own.inserted += insertions.foot[node] != NO_FOOT
        own.none += has_none(insertions, node, state.is_site[node])
    return 0


cdef double log_insertions_of(
    const RefinedState* state, const Insertions* insertions, index_t tree, const uint8_t* is_site
) noexcept nogil:
    """The log probability of the insertions into a tree with these sites."""
    cdef index_t first = state.trees.tree_start[tree], node
    cdef LogProduct product = log_product()
    cdef double probability
    for node in range(first, state.trees.tree_start[tree + 1]):
        probability = insertions.probability[insertions.trees.label[node]]
        if insertions.foot[node] != NO_FOOT:
            multiply(&product, probability)
        elif has_none(insertions, node, is_site[node - first]):
            multiply(&product, 1.0 - probability)
    return log_of(&product)


cdef int describe_insertions(
    const RefinedState* state, const Insertions* insertions, vector[double]* log_none, vector[uint8_t]* is_foot
) except -1 nogil:
    cdef index_t node
    cdef size_t label
    fill(log_none[0], insertions.probability.size(), 0.0)
    fill(is_foot[0], n_nodes(&state.trees), <uint8_t>0)
    for label in range(insertions.probability.size()):
        log_none[0][label] = log(1.0 - insertions.probability[label])
    for node in range(n_nodes(&state.trees)):
        is_foot[0][node] = is_foot_of(insertions, node)
    return 0


cdef double log_insertions(const Insertions* insertions, const vector[InsertionCounts]* counts) noexcept nogil:
    cdef double result = 0.0
    cdef size_t label
    for label in range(insertions.probability.size()):
        if counts[0][label].inserted:
            result += counts[0][label].inserted * log(insertions.probability[label])
        if counts[0][label].none:
            result += counts[0][label].none * log(1.0 - insertions.probability[label])
    return result


cdef int resample_insertions(
    const RefinedState* state, Insertions* insertions, uint64_t iteration, const vector[InsertionCounts]* counts
) except -1 nogil:
    """Resample the probability of an insertion at every label that can have one."""
    cdef size_t label
    cdef Rng rng
    for label in range(insertions.probability.size()):
        if insertions.auxiliary_label[label] >= 0:
            rng = rng_for(state.seed, iteration, RNG_REFINED_INSERTION, label)
            insertions.probability[label] = rng.beta(1.0 + counts[0][label].inserted, 1.0 + counts[0][label].none)
    return 0
