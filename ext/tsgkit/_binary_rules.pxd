# The loop nest over the binary rules of a span, once for all passes over the chart: left children, their right
# children, and the split points at which both have a value,
#
#     (+)_{x -> y z}  (+)_k   ... w(x -> y z) ... Y(start, k) ... Z(k, end) ...
#
# Left times right is computed for all split points together, on vectors that lie next to each other in memory, and the
# rules of a pair of children are then applied once. What is done with a pair is a *step*, a fused type as the semiring
# is, so that every combination is compiled to a loop without branches:
#
#     InsideStep     x (+)=  w (+)_k y(start, k) z(k, end)           values of the parents from the children
#     OutsideStep    y(start, k) (+)=  w x z(k, end), and z likewise   those of the children from the parents
#     PosteriorStep  q(k) +=  w x y(start, k) z(k, end)               expected rules, by split point
#
# Stage: inside of the chart parser; `_inside.pyx`, `_outside.pyx` and `_posteriors.pyx` call it.
from libcpp.vector cimport vector

from tsgkit._chart_cells cimport Cells, Children, LiveBlock, Slot, find_slot
from tsgkit._grammar_index cimport GrammarTable, PairTable, Rule
from tsgkit._semiring cimport MaxProduct, SumProduct, dot, plus, plus_scaled, semiring_t
from tsgkit._types cimport bits_t, index_t, position_t, symbol_t, weight_t

cdef extern from "vector_kernels.hpp" namespace "tsgkit" nogil:
    void add_products(
        weight_t* target, const weight_t* left, const weight_t* right, weight_t factor, index_t n) noexcept


cdef struct InsideStep:
    weight_t factor                      # by which all rules of the cell are multiplied
    weight_t* sums                       # per symbol: what its binary rules make of the span
    bits_t* touched                      # flags of symbols with a sum
    bits_t* touched_words                # flags of the words of these flags that are not zero
    vector[Children]* live               # where pairs that make a value are kept; NULL: nowhere


cdef struct OutsideStep:
    weight_t factor
    const weight_t* sums                 # per symbol: its outside value over the span
    weight_t smallest                    # what would hand down less than this hands down nothing


cdef struct PosteriorStep:
    weight_t factor
    const weight_t* outside              # per symbol: its outside value over the span, as a share of the total
    weight_t* at_split                   # per split point: the sum over the rules


ctypedef fused step_t:
    InsideStep
    OutsideStep
    PosteriorStep


cdef inline int combine(
        Cells* cells, semiring_t* semiring, InsideStep* step, const PairTable* pairs,
        Children children) except -1 nogil:
    """Give the parents of a pair what it makes."""
    cdef weight_t* sums = step.sums
    cdef bits_t* touched = step.touched
    cdef bits_t* touched_words = step.touched_words
    cdef const Rule* rules = pairs.rules
    cdef index_t rule
    cdef symbol_t parent
    cdef weight_t value = step.factor * dot(
        semiring, &cells.left.inside[children.left], &cells.right.inside[children.right], children.n_splits)
    if not value > 0.0:
        return 0
    if step.live != NULL:
        step.live.push_back(children)
    for rule in range(pairs.pairs[children.pair].first_rule, pairs.pairs[children.pair + 1].first_rule):
        parent = rules[rule].parent
        sums[parent] = plus(semiring, sums[parent], rules[rule].weight * value)
        touched[parent >> 6] |= <bits_t>1 << (parent & 63)
        touched_words[parent >> 12] |= <bits_t>1 << ((parent >> 6) & 63)
    return 0


cdef inline weight_t value_of_parents(
        semiring_t* semiring, const weight_t* sums, const PairTable* pairs, index_t pair) noexcept nogil:
    """What the parents of a pair hand down to it."""
    cdef weight_t value = 0.0
    cdef index_t rule
    for rule in range(pairs.pairs[pair].first_rule, pairs.pairs[pair + 1].first_rule):
        value = plus(semiring, value, pairs.rules[rule].weight * sums[pairs.rules[rule].parent])
    return value


cdef inline int distribute(
        Cells* cells, semiring_t* semiring, OutsideStep* step, const PairTable* pairs,
        Children children) noexcept nogil:
    """Give a pair of children the outside value of their parents, at all split points."""
    cdef weight_t value = step.factor * value_of_parents(semiring, step.sums, pairs, children.pair)
    cdef index_t left = children.left, right = children.right, n = children.n_splits
    if not value > 0.0:
        return 0
    # Telling that all of them together have too small a share costs half of what giving it does.
    if step.smallest > 0.0 and (
            value * dot(semiring, &cells.left.inside[left], &cells.right.inside[right], n) < step.smallest):
        return 0
    plus_scaled(semiring, &cells.left.outside[left], &cells.right.inside[right], value, n)
    plus_scaled(semiring, &cells.right.outside[right], &cells.left.inside[left], value, n)
    return 0


cdef inline int expect(
        Cells* cells, semiring_t* semiring, PosteriorStep* step, const PairTable* pairs,
        Children children) noexcept nogil:
    """Add the expected number of a pair's rules at every split point."""
    cdef weight_t value = step.factor * value_of_parents(semiring, step.outside, pairs, children.pair)
    if not value > 0.0:
        return 0
    add_products(
        step.at_split + children.first, &cells.left.inside[children.left], &cells.right.inside[children.right],
        value, children.n_splits)
    return 0


cdef inline int take(
        Cells* cells, semiring_t* semiring, step_t* step, const PairTable* pairs, Children children) except -1 nogil:
    if step_t is InsideStep:
        return combine(cells, semiring, step, pairs, children)
    elif step_t is OutsideStep:
        return distribute(cells, semiring, step, pairs, children)
    else:
        return expect(cells, semiring, step, pairs, children)


cdef inline int visit_pairs(
        Cells* cells, semiring_t* semiring, step_t* step, const PairTable* pairs, index_t first_pair, index_t last_pair,
        const Slot* left, position_t end, position_t low, position_t high) except -1 nogil:
    """The pairs of one left child, with split points from `low` to `high`."""
    cdef Children children
    cdef const Slot* right
    cdef index_t pair
    cdef position_t first, last
    for pair in range(first_pair, last_pair):
        right = find_slot(cells, &cells.right, end, pairs.pairs[pair].right)
        if right == NULL:
            continue
        first, last = max(low, right.low), min(high, right.high)
        if first > last:
            continue
        children.pair, children.first, children.n_splits = pair, first, last - first + 1
        children.left, children.right = left.base + first, right.base + first
        take(cells, semiring, step, pairs, children)
    return 0


cdef inline int visit_all(
        Cells* cells, semiring_t* semiring, step_t* step, position_t start, position_t end) except -1 nogil:
    """All rules whose children stand left and right of a split point."""
    cdef const GrammarTable* grammar = cells.grammar
    cdef const Slot* slot
    cdef symbol_t left
    cdef index_t position
    cdef position_t low, high
    for position in range(<index_t>cells.row_symbols[start].size()):
        left = cells.row_symbols[start][position]
        slot = find_slot(cells, &cells.left, start, left)
        low, high = max(start + 1, slot.low), min(end - 1, slot.high)
        if low <= high:
            visit_pairs(
                cells, semiring, step, &grammar.by_left, grammar.left_pair_start[left],
                grammar.left_pair_start[left + 1], slot, end, low, high)
    return 0


cdef inline int visit_block(
        Cells* cells, semiring_t* semiring, step_t* step, index_t block, position_t start, position_t end,
        position_t low, position_t high) except -1 nogil:
    """The rules of one treebank rule, with split points from `low` to `high`."""
    cdef const GrammarTable* grammar = cells.grammar
    cdef const Slot* slot
    cdef index_t run
    cdef position_t first, last
    for run in range(grammar.run_start[block], grammar.run_start[block + 1]):
        slot = find_slot(cells, &cells.left, start, grammar.run_left[run])
        if slot == NULL:
            continue
        first, last = max(low, slot.low), min(high, slot.high)
        if first > last or (first == last and cells.left.inside[slot.base + first] == 0.0):
            continue
        visit_pairs(
            cells, semiring, step, &grammar.by_block, grammar.run_pair_start[run], grammar.run_pair_start[run + 1],
            slot, end, first, last)
    return 0


cdef inline int visit_live(
        Cells* cells, semiring_t* semiring, step_t* step, const LiveBlock* live) except -1 nogil:
    """The same rules after the first pass, which has kept their pairs."""
    cdef index_t number
    for number in range(live.pair_begin, live.pair_end):
        take(cells, semiring, step, &cells.grammar.by_block, cells.live_pairs[number])
    return 0
