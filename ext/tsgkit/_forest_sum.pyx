"""The sum over all trees of a forest, of which each tree has a share.

From posteriors ``q(r)`` of treebank rules to

    log  sum_t  prod_{r in t} q(r)

over the trees that `_forest.pyx` chooses the best from, whose unary chains repeat no label: a dynamic programme over
the same items, with sums in the place of maxima. Every sum is kept relative to the best tree of its item, so that
values stay in the range of floats. A chain with less than 1e-9 of the best tree of the label at its top is left out.
Where unary rules make very many chains over a span, as those of a hostile grammar do, this share grows tenfold with
every million of rules that were looked at, so that the work is bounded.
"""

from libc.math cimport INFINITY, exp, log
from libcpp.vector cimport vector

from tsgkit._forest cimport Decoder, Edge, Forest, find, is_unary, make_decoder
from tsgkit._types cimport index_t, symbol_t
from tsgkit._work_limit cimport Limits, check_limit

cdef double NEGLIGIBLE_CHAIN = log(1e-9)
cdef double TENFOLD = log(10.0)
cdef index_t STEPS_OF_A_THRESHOLD = 1 << 20
cdef index_t STEPS_BETWEEN_CHECKS = 1 << 14


cdef cppclass Sums:
    vector[double] base                  # per item: the trees without a unary rule on top, relative to its best tree
    vector[double] all                   # all trees, likewise
    # Scratch of the span at work.
    vector[double] edge_log              # per unary rule that chains may have
    vector[index_t] edge_top             # of each its item and that of its child
    vector[index_t] edge_below
    vector[index_t] path                 # the rules of a chain from the bottom up; the last is to be tried next
    vector[double] path_log              # what each of these chains weighs
    vector[bint] is_on_path              # per item
    double least_share                   # the log of the share of chains that count
    index_t n_steps                      # rules that chains were to be continued with


def log_sum(Forest forest not None, symbol_t root):
    """The log of the sum over all trees of the products of their rules' posteriors; -inf if there is no tree.

    Parameters
    ----------
    forest : Forest
    root : int
        The label of the root.
    """
    if not 0 <= root < forest.n_labels:
        raise ValueError(f"label {root} is out of range: there are {forest.n_labels}")
    cdef Decoder decoder
    cdef Sums sums
    cdef index_t item
    make_decoder(&decoder, forest, True)
    with nogil:
        add_all(&decoder, &sums, &forest.limit.limits)
    item = find(&decoder, 0, decoder.n_words, root)
    return decoder.items[item].best + log(sums.all[item]) if item >= 0 and sums.all[item] > 0.0 else -INFINITY


cdef int add_all(const Decoder* decoder, Sums* sums, Limits* limits) except -1 nogil:
    """Go through all spans, shorter ones first."""
    cdef index_t n_edges = decoder.edges.size(), position = 0, cell
    cdef Edge edge
    sums.base.resize(decoder.items.size(), 0.0)
    sums.all.resize(decoder.items.size(), 0.0)
    sums.is_on_path.resize(decoder.items.size(), False)
    while position < n_edges:
        check_limit(limits)
        edge = decoder.edges[0][position]
        cell = <index_t>edge.start * (decoder.n_words + 1) + edge.end
        sums.edge_log.clear()
        sums.edge_top.clear()
        sums.edge_below.clear()
        while position < n_edges and decoder.edges[0][position].start == edge.start and (
                decoder.edges[0][position].end == edge.end):
            if not is_unary(decoder.edges[0][position]):
                add_base(decoder, sums, decoder.edges[0][position])
            elif decoder.may_chain[position]:
                add_step(decoder, sums, decoder.edges[0][position])
            position += 1
        add_chains(decoder, sums, decoder.cell_begin[cell], decoder.cell_end[cell], limits)
    return 0


cdef void add_base(const Decoder* decoder, Sums* sums, Edge edge) noexcept nogil:
    """Add the trees that begin with a binary or lexical rule to those of its label."""
    cdef index_t item = find(decoder, edge.start, edge.end, edge.label), left, right
    cdef double value
    if item < 0:
        return
    value = edge.posterior * exp(-decoder.items[item].best)
    if edge.left >= 0:
        left = find(decoder, edge.start, edge.split, edge.left)
        right = find(decoder, edge.split, edge.end, edge.right)
        if left < 0 or right < 0 or sums.all[left] == 0.0 or sums.all[right] == 0.0:
            return
        value = edge.posterior * sums.all[left] * sums.all[right] * exp(
            decoder.items[left].best + decoder.items[right].best - decoder.items[item].best)
    sums.base[item] += value


cdef int add_step(const Decoder* decoder, Sums* sums, Edge edge) except -1 nogil:
    sums.edge_log.push_back(log(edge.posterior))
    sums.edge_top.push_back(find(decoder, edge.start, edge.end, edge.label))
    sums.edge_below.push_back(find(decoder, edge.start, edge.end, edge.left))
    return 0


cdef int add_chains(
        const Decoder* decoder, Sums* sums, index_t first_item, index_t last_item, Limits* limits) except -1 nogil:
    """Put all chains of unary rules on top of the trees of a span that have none."""
    cdef index_t item
    sums.least_share, sums.n_steps = NEGLIGIBLE_CHAIN, 0
    for item in range(first_item, last_item):
        sums.all[item] = sums.base[item]
    for item in range(first_item, last_item):
        if sums.least_share > 0.0:
            break
        if sums.base[item] > 0.0:
            check_limit(limits)
            walk_up(decoder, sums, item, limits)
    return 0


cdef int walk_up(const Decoder* decoder, Sums* sums, index_t bottom, Limits* limits) except -1 nogil:
    """Add the trees of an item that have no unary rule on top to all items that chains lead to."""
    cdef vector[index_t]* path = &sums.path
    cdef index_t n_edges = sums.edge_log.size(), number, item, top
    cdef double value, share
    path.clear()
    sums.path_log.clear()
    path.push_back(-1)
    sums.path_log.push_back(0.0)
    sums.is_on_path[bottom] = True
    while not path.empty():
        item = bottom if path.size() == 1 else sums.edge_top[path[0][path.size() - 2]]
        number = path.back() + 1
        path[0][path.size() - 1] = number
        if number == n_edges:
            sums.is_on_path[item] = False
            path.pop_back()
            sums.path_log.pop_back()
            continue
        top = sums.edge_top[number]
        sums.n_steps += 1
        if sums.n_steps % STEPS_BETWEEN_CHECKS == 0:
            check_limit(limits)
            if sums.n_steps % STEPS_OF_A_THRESHOLD == 0:
                sums.least_share += TENFOLD
        if sums.edge_below[number] != item or sums.is_on_path[top]:
            continue
        value = sums.path_log.back() + sums.edge_log[number]
        share = decoder.items[bottom].best + value - decoder.items[top].best
        if share < sums.least_share:
            continue
        sums.all[top] += sums.base[bottom] * exp(share)
        sums.is_on_path[top] = True
        path.push_back(-1)
        sums.path_log.push_back(value)
    return 0
