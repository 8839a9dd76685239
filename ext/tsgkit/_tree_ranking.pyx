"""Different trees, best first: of a chart by their best derivations, of a forest by the sum or product of posteriors.

From a chart with Viterbi values, or from a forest of treebank rules, to rows ``(label, start, end, kind)``. With
``T(x)`` the trees of a node ``x``, a symbol or a label over a span, the score of a tree is

    max over options of x  of  score(option) + scores of the trees of its children

as in Huang & Chiang (2005), algorithm 3, where the next best tree of a node is looked for only when somebody asks for
it. A node has two lists: its *base* trees, which begin with a binary rule or a word, and all its trees, which have a
path of unary rules and bridges above a base tree. Paths are extended in the order of the best that they can become. Of
a chart, many derivations make the same tree: at every node the best one counts, and others of the same tree are left
out. Of a forest, paths repeat no label. There is no recursion: what a list waits for is on a stack.
"""

import numpy as np

from libcpp.algorithm cimport pop_heap, push_heap
from libcpp.unordered_map cimport unordered_map
from libcpp.vector cimport vector

from tsgkit._chart cimport Chart
from tsgkit._chart_cells cimport bytes_in_use
from tsgkit._codes cimport BINARY, LEXICAL, N_ROW_COLUMNS, ROW_END, ROW_KIND, ROW_LABEL, ROW_START, UNARY
from tsgkit._forest cimport Forest
from tsgkit._hash_tables cimport TripleTable, put
from tsgkit._tree_options cimport (
    Option,
    TreeSource,
    best_of,
    has_unary,
    label_of,
    list_base,
    list_unary,
    open_chart,
    open_forest,
    start_of,
)
from tsgkit._types cimport index_t, position_t, symbol_t
from tsgkit._work_limit cimport Limits, check_limit

# Steps along paths of unary rules that repeat no label: their number can grow beyond all bounds.
cdef index_t MAX_STEPS = 100_000_000


cdef struct TreeNode:
    symbol_t label
    position_t start
    position_t end
    index_t left          # trees; -1 where there is none
    index_t right


cdef struct Candidate:
    # A base tree: an option with these trees of its children. A tree: a path with this base tree, or, with the number
    # -1, all that begin with this path.
    double value
    index_t option        # or the last step of the path
    index_t left_number   # or that of the base tree
    index_t right_number
    index_t serial        # ties go to what was found first


cdef struct Step:
    # A path of unary rules and bridges, from the top down.
    index_t above         # -1: the node itself
    index_t node
    index_t chain         # number of the labels of the nodes that the path makes
    double score
    bint makes_node


cdef struct Found:
    double value
    index_t tree


cdef struct Ranking:
    # The trees of a node, or its base trees, that were found so far, and candidates for the next.
    index_t node
    bint is_base
    bint is_open
    bint is_exhausted
    index_t n_candidates
    vector[Option] options
    vector[Step] steps
    vector[Candidate] candidates          # a heap
    vector[Candidate] pending             # candidates whose children are still to be found
    vector[Found] found


cdef struct Request:
    index_t ranking
    index_t number


cdef bint is_worse(const Candidate& one, const Candidate& other) noexcept nogil:
    return one.serial > other.serial if one.value == other.value else one.value < other.value


cdef class TreeRanking:
    """Trees, best first, each computed when it is asked for.

    Parameters
    ----------
    source : Chart or Forest
        A chart with Viterbi values: by the weight of a tree's best derivation. A forest: by its rules' posteriors.
    product : bool
        Of a forest: whether to multiply; otherwise to add.
    root : int
        Of a forest: the label of the root.
    """

    cdef Chart chart                      # one of these two
    cdef Forest forest
    cdef bint is_chart
    cdef TreeSource source
    cdef Limits* limits
    cdef index_t n_fills
    cdef index_t root
    cdef index_t max_bytes
    cdef index_t n_bytes
    cdef index_t n_steps
    cdef readonly bint is_over_budget     # memory or steps ended before the trees did
    cdef vector[TreeNode] trees
    cdef vector[Ranking] rankings
    cdef vector[Request] requests
    cdef vector[Option] scratch
    cdef unordered_map[index_t, index_t] base_of_node
    cdef unordered_map[index_t, index_t] all_of_node
    cdef TripleTable tree_numbers
    cdef TripleTable chain_numbers
    cdef TripleTable seen                 # (ranking, tree) and (ranking, path) that were there before
    cdef index_t n_chains
    cdef index_t n_seen

    def __init__(self, source, bint product=False, symbol_t root=-1):
        self.root = -1
        if isinstance(source, Chart):
            self.rank_derivations(source)
        elif isinstance(source, Forest):
            self.rank_forest(source, product, root)
        else:
            raise TypeError("trees come from a Chart or a Forest")

    cdef int rank_derivations(self, Chart chart) except -1:
        if chart.cells.total <= 0.0 or chart.cells.is_over_budget:
            raise ValueError("the chart holds no derivation")
        if not chart.is_viterbi:
            raise ValueError("the chart has no Viterbi values")
        chart.require_plain_cells()
        chart.grammar.need_parent()
        self.chart, self.is_chart, self.n_fills = chart, True, chart.n_fills
        self.limits, self.max_bytes = chart.cells.limits, chart.cells.max_bytes - bytes_in_use(&chart.cells)
        self.root = open_chart(&self.source, chart)
        return 0

    cdef int rank_forest(self, Forest forest, bint product, symbol_t root) except -1:
        if not 0 <= root < forest.n_labels:
            raise ValueError(f"label {root} is out of range: there are {forest.n_labels}")
        self.forest, self.limits, self.max_bytes = forest, &forest.limit.limits, forest.max_bytes
        self.root = open_forest(&self.source, forest, product, root)
        return 0

    # ---- trees ---------------------------------------------------------------------------------------

    cdef index_t make_tree(
            self, symbol_t label, position_t start, position_t end, index_t left, index_t right) except -1 nogil:
        """The number of a tree; derivations of the same tree get the same."""
        cdef index_t number = self.trees.size()
        cdef TreeNode tree
        if self.is_chart:
            # The trees of its children tell where a tree stands; that of a word is told by its start.
            number = self.tree_numbers.find_or_add(label, left if left >= 0 else -1 - start, right, number)
        if number == <index_t>self.trees.size():
            tree.label, tree.start, tree.end, tree.left, tree.right = label, start, end, left, right
            self.trees.push_back(tree)
            self.n_bytes += 3 * sizeof(TreeNode)
        return number

    cdef bint is_seen(self, index_t ranking, index_t what, index_t number) except -1 nogil:
        """Whether a ranking has had this tree (`what` -1) or this path before; it has from now on."""
        cdef index_t found = self.seen.find_or_add(ranking, what, number, self.n_seen)
        if found < self.n_seen:
            return True
        self.n_seen += 1
        self.n_bytes += 64
        return False

    # ---- rankings ------------------------------------------------------------------------------------

    cdef index_t ranking_of(self, index_t node, bint is_base) except -1 nogil:
        """The list of a node's trees or base trees; a node without unary rules has only one."""
        cdef unordered_map[index_t, index_t]* numbers
        cdef Ranking fresh
        is_base = is_base or not has_unary(&self.source, node)
        numbers = &self.base_of_node if is_base else &self.all_of_node
        if numbers.count(node):
            return numbers.at(node)
        fresh.node, fresh.is_base, fresh.n_candidates = node, is_base, 0
        fresh.is_open = fresh.is_exhausted = False
        self.rankings.push_back(fresh)
        put(numbers[0], node, <index_t>self.rankings.size() - 1)
        self.n_bytes += 2 * sizeof(Ranking)
        return self.rankings.size() - 1

    cdef int push(self, Ranking* ranking, Candidate candidate) except -1 nogil:
        candidate.serial = ranking.n_candidates
        ranking.n_candidates += 1
        ranking.candidates.push_back(candidate)
        push_heap(ranking.candidates.begin(), ranking.candidates.end(), &is_worse)
        self.n_bytes += 2 * sizeof(Candidate)
        return 0

    cdef Candidate pop(self, Ranking* ranking) noexcept nogil:
        cdef Candidate candidate
        pop_heap(ranking.candidates.begin(), ranking.candidates.end(), &is_worse)
        candidate = ranking.candidates.back()
        ranking.candidates.pop_back()
        return candidate

    cdef int find_trees(self, index_t ranking, index_t number) except -1 nogil:
        """Find the tree of this number of a ranking, if it has so many, and all that it depends on."""
        cdef Request request
        request.ranking, request.number = ranking, number
        self.requests.clear()
        self.requests.push_back(request)
        while not self.requests.empty():
            check_limit(self.limits)
            request = self.requests.back()
            if self.is_known(request.ranking, request.number):
                self.requests.pop_back()
                continue
            if self.n_bytes > self.max_bytes or self.n_steps > MAX_STEPS:
                self.is_over_budget = True
                return 0
            if self.rankings[request.ranking].is_base:
                self.advance_base(request.ranking)
            else:
                self.advance_paths(request.ranking)
        return 0

    cdef bint is_known(self, index_t ranking, index_t number) noexcept nogil:
        return number < <index_t>self.rankings[ranking].found.size() or self.rankings[ranking].is_exhausted

    cdef bint has(self, index_t ranking, index_t number) except -1 nogil:
        """Whether a tree was found; if that is not known yet, it is asked for."""
        cdef Request request
        if not self.is_known(ranking, number):
            request.ranking, request.number = ranking, number
            self.requests.push_back(request)
        return number < <index_t>self.rankings[ranking].found.size()

    # ---- base trees ----------------------------------------------------------------------------------

    cdef int advance_base(self, index_t number) except -1 nogil:
        """Find the next base tree of a node, or what it depends on."""
        cdef Candidate candidate
        cdef Option option
        cdef index_t n_requests = self.requests.size()
        if not self.rankings[number].is_open:
            self.open_base(&self.rankings[number])
        while not self.rankings[number].pending.empty():
            candidate = self.rankings[number].pending.back()
            if self.has_children(number, &candidate):
                self.rankings[number].pending.pop_back()
                self.push(&self.rankings[number], candidate)
            elif <index_t>self.requests.size() > n_requests:
                return 0
            else:
                self.rankings[number].pending.pop_back()
        if self.rankings[number].candidates.empty():
            self.rankings[number].is_exhausted = True
            return 0
        candidate = self.rankings[number].candidates.front()
        if not self.has_children(number, &candidate):
            if <index_t>self.requests.size() == n_requests:
                # A child has no tree at all: its values were too small.
                self.pop(&self.rankings[number])
            return 0
        self.pop(&self.rankings[number])
        option = self.rankings[number].options[candidate.option]
        self.add_found(number, candidate.value, self.tree_of_option(number, option, candidate))
        if option.left >= 0:
            candidate.left_number += 1
            self.rankings[number].pending.push_back(candidate)
            if candidate.left_number == 1:
                # The right child moves on only while the left one is at its best: each combination comes once.
                candidate.left_number = 0
                candidate.right_number += 1
                self.rankings[number].pending.push_back(candidate)
        return 0

    cdef int open_base(self, Ranking* ranking) except -1 nogil:
        cdef Candidate candidate
        cdef index_t number
        list_base(&self.source, ranking.node, &ranking.options)
        self.n_bytes += sizeof(Option) * <index_t>ranking.options.capacity()
        candidate.left_number = candidate.right_number = 0
        for number in range(<index_t>ranking.options.size()):
            candidate.option, candidate.value = number, ranking.options[number].score
            if ranking.options[number].left >= 0:
                candidate.value += best_of(&self.source, ranking.options[number].left)
                candidate.value += best_of(&self.source, ranking.options[number].right)
            self.push(ranking, candidate)
        ranking.is_open = True
        return 0

    cdef bint has_children(self, index_t number, Candidate* candidate) except -1 nogil:
        """Whether the trees of the children were found, and so the value; those that may be are asked for."""
        cdef Option option = self.rankings[number].options[candidate.option]
        cdef index_t left, right
        if option.left < 0:
            return True
        left, right = self.ranking_of(option.left, False), self.ranking_of(option.right, False)
        if not self.has(left, candidate.left_number) or not self.has(right, candidate.right_number):
            return False
        candidate.value = option.score + (
            self.rankings[left].found[candidate.left_number].value
            + self.rankings[right].found[candidate.right_number].value)
        return True

    cdef index_t tree_of_option(self, index_t number, Option option, Candidate candidate) except -1 nogil:
        cdef index_t node = self.rankings[number].node, left, right
        cdef position_t start
        if option.left < 0:
            start = start_of(&self.source, node)
            return self.make_tree(label_of(&self.source, node), start, start + 1, -1, -1)
        left = self.rankings[self.ranking_of(option.left, False)].found[candidate.left_number].tree
        right = self.rankings[self.ranking_of(option.right, False)].found[candidate.right_number].tree
        return self.make_tree(label_of(&self.source, node), self.trees[left].start, self.trees[right].end, left, right)

    cdef int add_found(self, index_t number, double value, index_t tree) except -1 nogil:
        """Keep a tree, unless a better derivation of it was found before."""
        cdef Found found
        if self.is_chart and self.is_seen(number, -1, tree):
            return 0
        found.value, found.tree = value, tree
        self.rankings[number].found.push_back(found)
        self.n_bytes += 2 * sizeof(Found)
        return 0

    # ---- paths of unary rules and bridges ------------------------------------------------------------

    cdef int advance_paths(self, index_t number) except -1 nogil:
        """Find the next tree of a node, or what it depends on."""
        cdef Candidate candidate
        cdef index_t n_requests = self.requests.size(), base
        if not self.rankings[number].is_open:
            self.rankings[number].is_open = True
            self.add_step(number, -1, self.rankings[number].node, 0, 0.0, False)
        while not self.rankings[number].pending.empty():
            candidate = self.rankings[number].pending.back()
            base = self.ranking_of(self.rankings[number].steps[candidate.option].node, True)
            if self.has(base, candidate.left_number):
                candidate.value = (
                    self.rankings[number].steps[candidate.option].score
                    + self.rankings[base].found[candidate.left_number].value)
                self.push(&self.rankings[number], candidate)
            elif <index_t>self.requests.size() > n_requests:
                return 0
            self.rankings[number].pending.pop_back()
        if self.rankings[number].candidates.empty():
            self.rankings[number].is_exhausted = True
            return 0
        candidate = self.pop(&self.rankings[number])
        if candidate.left_number < 0:
            if not self.extend_path(number, candidate.option):
                return 0
        else:
            base = self.ranking_of(self.rankings[number].steps[candidate.option].node, True)
            self.add_found(
                number, candidate.value,
                self.tree_of_path(number, candidate.option, self.rankings[base].found[candidate.left_number].tree))
        candidate.left_number += 1
        self.rankings[number].pending.push_back(candidate)
        return 0

    cdef int add_step(
            self, index_t number, index_t above, index_t node, index_t chain, double score,
            bint makes_node) except -1 nogil:
        cdef Candidate candidate
        cdef Step step
        step.above, step.node, step.chain, step.score, step.makes_node = above, node, chain, score, makes_node
        candidate.option = self.rankings[number].steps.size()
        candidate.left_number = candidate.right_number = -1
        candidate.value = score + best_of(&self.source, node)
        self.rankings[number].steps.push_back(step)
        self.n_bytes += 2 * sizeof(Step)
        return self.push(&self.rankings[number], candidate)

    cdef bint extend_path(self, index_t number, index_t last) except -1 nogil:
        """All paths that are one step longer; false if this one makes the same trees as one before."""
        cdef Step step = self.rankings[number].steps[last]
        cdef Option option
        cdef index_t position, chain
        if self.is_chart and self.is_seen(number, step.chain, step.node):
            return False
        list_unary(&self.source, step.node, &self.scratch)
        for position in range(<index_t>self.scratch.size()):
            option = self.scratch[position]
            if not self.is_chart and self.is_on_path(number, last, option.left):
                continue
            chain = step.chain
            if option.makes_node and self.is_chart:
                chain = 1 + self.chain_numbers.find_or_add(chain, label_of(&self.source, step.node), 0, self.n_chains)
                self.n_chains = max(self.n_chains, chain)
            self.add_step(number, last, option.left, chain, step.score + option.score, option.makes_node)
        return True

    cdef bint is_on_path(self, index_t number, index_t last, index_t node) noexcept nogil:
        """Whether a path goes through a node."""
        while last >= 0:
            self.n_steps += 1
            if self.rankings[number].steps[last].node == node:
                return True
            last = self.rankings[number].steps[last].above
        return False

    cdef index_t tree_of_path(self, index_t number, index_t last, index_t tree) except -1 nogil:
        """A base tree with the nodes of a path above it."""
        cdef Step step = self.rankings[number].steps[last]
        while step.above >= 0:
            if step.makes_node:
                tree = self.make_tree(
                    label_of(&self.source, self.rankings[number].steps[step.above].node), self.trees[tree].start,
                    self.trees[tree].end, tree, -1)
            step = self.rankings[number].steps[step.above]
        return tree

    # ---- answers -------------------------------------------------------------------------------------

    def tree(self, index_t number):
        """The tree of this number, counted from 0: its rows and its score; None past the last.

        The score is the log weight of the tree's best derivation, or the sum of its rules' posteriors or of their logs.
        """
        if number < 0:
            raise ValueError(f"there is no tree {number}")
        if self.chart is not None and self.n_fills != self.chart.n_fills:
            raise ValueError("the chart holds another sentence by now")
        cdef index_t ranking
        if self.root < 0:
            return None
        try:
            with nogil:
                ranking = self.ranking_of(self.root, False)
                self.find_trees(ranking, number)
        except BaseException:
            # Some of it may be incomplete: it is found again when it is asked for.
            self.forget()
            raise
        if number >= <index_t>self.rankings[ranking].found.size():
            return None
        cdef Found found = self.rankings[ranking].found[number]
        scale = 0.0 if self.chart is None else self.chart.scale_prefix[self.chart.cells.n_words]
        return self.rows_of(found.tree), found.value - scale

    cdef void forget(self) noexcept:
        self.trees.clear()
        self.rankings.clear()
        self.requests.clear()
        self.base_of_node.clear()
        self.all_of_node.clear()
        self.tree_numbers.clear()
        self.chain_numbers.clear()
        self.seen.clear()
        self.n_bytes = self.n_chains = self.n_seen = 0

    cdef object rows_of(self, index_t tree):
        """The rows of a tree from the root down, left to right."""
        cdef vector[index_t] waiting, order
        cdef TreeNode node
        cdef index_t row
        waiting.push_back(tree)
        while not waiting.empty():
            tree = waiting.back()
            waiting.pop_back()
            order.push_back(tree)
            if self.trees[tree].right >= 0:
                waiting.push_back(self.trees[tree].right)
            if self.trees[tree].left >= 0:
                waiting.push_back(self.trees[tree].left)
        rows = np.empty((order.size(), N_ROW_COLUMNS), dtype=np.int32)
        cdef symbol_t[:, ::1] view = rows
        for row in range(<index_t>order.size()):
            node = self.trees[order[row]]
            view[row, ROW_LABEL], view[row, ROW_START], view[row, ROW_END] = node.label, node.start, node.end
            view[row, ROW_KIND] = LEXICAL if node.left < 0 else UNARY if node.right < 0 else BINARY
        return rows
