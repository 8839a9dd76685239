"""The most probable derivation of a given tree: Viterbi over its nodes, in time linear in its size.

With ``V(x, v)`` the weight of the best way to make the tree below node ``v`` from symbol ``x``,

    V(x, v) = max( max_{x -> y z} w V(y, left child) V(z, right child),  max_{x => y} w V(y, v) )

where only rules whose labels are those of the tree count, and bridges ``x => y`` stay at the node.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from nltk.tree import Tree

from tsgkit._codes import BINARY, BRIDGE, LEXICAL, UNARY
from tsgkit.errors import TsgkitError
from tsgkit.grammar import WeightedGrammar
from tsgkit.grammar._weighted import NO_LABEL
from tsgkit.parsing._rows import rows_of_tree
from tsgkit.treebank._trees import preorder, words

NO_WORD = -1
SHORT_PATH = 16
Shape = tuple[int, ...]


class NoDerivationError(TsgkitError):
    """A grammar does not make a tree; the message names what it lacks."""


class RuleGroup:
    """The rules of one kind, by what they look like in a tree.

    Parameters
    ----------
    rules : ndarray of int
        Symbols, the parent first; of lexical rules, the parent alone.
    shapes : ndarray of int, one row per rule
        What rules that can stand at the same node have in common.
    weights : ndarray of float
    """

    def __init__(self, rules: np.ndarray, shapes: np.ndarray, weights: np.ndarray) -> None:
        # Stable: rules of one shape stay in the order of their symbols: ties always fall the same way.
        order = np.lexsort(shapes.T[::-1])
        shapes = shapes[order]
        self.rules, self.log_weights = rules[order], np.log(weights[order])
        is_first = np.ones(len(shapes), dtype=bool)
        is_first[1:] = (shapes[1:] != shapes[:-1]).any(axis=1)
        starts = np.flatnonzero(is_first).tolist()
        bounds = zip(starts, [*starts[1:], len(shapes)], strict=False)
        self.part_of = {tuple(shapes[start].tolist()): slice(start, end) for start, end in bounds}

    def of_shape(self, shape: Shape) -> tuple[np.ndarray, np.ndarray]:
        """The rules with this shape and the logs of their weights."""
        part = self.part_of.get(shape, slice(0, 0))
        return self.rules[part], self.log_weights[part]


class KnownTreeParser:
    """Finds the best derivations of given trees under one grammar.

    Parameters
    ----------
    grammar : WeightedGrammar

    Examples
    --------
    >>> grammar = WeightedGrammar(
    ...     labels=["S", "A"], words=["a"], label=[0, 1], root=0,
    ...     binary=[(0, 1, 1)], binary_weight=[1.0], lexical=[(1, 0)], lexical_weight=[0.5])
    >>> rows, log_weight = KnownTreeParser(grammar).best(Tree.fromstring("(S (A a) (A a))"))
    >>> rows.tolist(), float(np.exp(log_weight))
    ([[0, 0, 2, 2], [1, 0, 1, 0], [1, 1, 2, 0]], 0.25)
    """

    def __init__(self, grammar: WeightedGrammar) -> None:
        self.grammar = grammar
        self._number_of_label = {label: number for number, label in enumerate(grammar.labels)}
        self._number_of_word = {word: number for number, word in enumerate(grammar.words)}
        label = grammar.label
        tags = grammar.lexical[:, :1]
        self._groups = {
            LEXICAL: RuleGroup(
                tags, np.concatenate([label[tags], grammar.lexical[:, 1:]], axis=1), grammar.lexical_weight
            ),
            UNARY: RuleGroup(grammar.unary, label[grammar.unary], grammar.unary_weight),
            BINARY: RuleGroup(grammar.binary, label[grammar.binary], grammar.binary_weight),
            BRIDGE: RuleGroup(grammar.bridge, label[grammar.bridge[:, 1:]], grammar.bridge_weight),
        }
        # A node has values for the symbols without a label, then for those with its own: `place` is where among them
        # a symbol stands.
        counts = np.bincount(label + 1, minlength=len(grammar.labels) + 1)
        self._place = np.empty(grammar.n_symbols, dtype=np.int64)
        by_label = np.argsort(label, kind="stable")
        self._place[by_label] = np.arange(grammar.n_symbols) - np.repeat(np.cumsum(counts) - counts, counts)
        self._place[label != NO_LABEL] += counts[0]
        self._n_symbols = counts[0] + counts[1:]

    @cached_property
    def _rank(self) -> np.ndarray:
        """The places of symbols in an order from the bottom of bridges and unary rules to the top."""
        rank = np.empty(self.grammar.n_symbols, dtype=np.int64)
        rank[self.grammar.bottom_up_order()] = np.arange(self.grammar.n_symbols)
        return rank

    def best(self, tree: Tree, vocabulary_words: Sequence[str] | None = None) -> tuple[np.ndarray, float]:
        """The best derivation of a binarised tree.

        Parameters
        ----------
        tree : nltk.Tree
        vocabulary_words : sequence of str, optional
            Its words as the grammar knows them; those of the tree unless given.

        Returns
        -------
        rows : ndarray of int32 with four columns
            ``(symbol, start, end, kind)`` from the root down, left to right; a bridge has the kind 3. Of
            derivations with the same weight, one without a bridge, then that of the smaller numbers.
        log_weight : float

        Raises
        ------
        NoDerivationError
            If the grammar does not make the tree.
        """
        rows = rows_of_tree(tree, self._number_of_label)
        if rows is None:
            raise NoDerivationError(self._why_no_rows(tree))
        sentence = words(tree) if vocabulary_words is None else vocabulary_words
        analysis = Analysis(self, rows, sentence)
        return analysis.derivation(), analysis.log_weight()

    def _why_no_rows(self, tree: Tree) -> str:
        for node in preorder(tree):
            if node.label() not in self._number_of_label:
                return f"the grammar has no label {node.label()}"
        return "the tree is not binarised: a node has more than two children"


class Analysis:
    """The values of all nodes of one tree.

    Parameters
    ----------
    parser : KnownTreeParser
    rows : ndarray of int32 with four columns
        The tree: ``(label, start, end, kind)``.
    sentence : sequence of str
        As the grammar knows the words.
    """

    def __init__(self, parser: KnownTreeParser, rows: np.ndarray, sentence: Sequence[str]) -> None:
        self.parser, self.grammar, self.sentence = parser, parser.grammar, sentence
        self.rows: list[list[int]] = rows.tolist()
        self.children = children_of(self.rows)
        n_nodes = len(self.rows)
        self.values: list[np.ndarray] = [np.empty(0)] * n_nodes
        self.bridges: list[np.ndarray] = [np.empty(0)] * n_nodes
        for node in reversed(range(n_nodes)):
            self.fill(node)

    def shape(self, node: int) -> Shape:
        """What the rule at a node looks like: its label, then those of its children, or its word."""
        label, start, _, kind = self.rows[node]
        if kind == LEXICAL:
            return label, self.parser._number_of_word.get(self.sentence[start], NO_WORD)
        return label, *(self.rows[child][0] for child in self.children[node])

    def candidates(self, node: int) -> tuple[np.ndarray, np.ndarray]:
        """The rules that can stand at a node, with the log of the best weight that each leads to."""
        group, shape = self.parser._groups[self.rows[node][3]], self.shape(node)
        rules, scores = group.of_shape(shape)
        if len(self.children[node]) == BINARY:
            # One of the children may be made by a symbol without a label.
            found = [(rules, scores), *(group.of_shape(bare) for bare in bare_shapes(shape))]
            rules, scores = (np.concatenate(parts) for parts in zip(*found, strict=True))
        for column, child in enumerate(self.children[node], start=1):
            scores = scores + self.values[child][self.parser._place[rules[:, column]]]
        return rules, scores

    def fill(self, node: int) -> None:
        label = self.rows[node][0]
        rules, scores = self.candidates(node)
        values = np.full(self.parser._n_symbols[label], -np.inf)
        np.maximum.at(values, self.parser._place[rules[:, 0]], scores)
        if not (values > -np.inf).any():
            lacks = "has no rule" if not len(rules) else "has no derivation that uses the rule"
            raise NoDerivationError(f"the grammar {lacks} {self.rule_name(node)}")
        self.values[node] = values
        self.bridges[node] = self.follow_bridges(label, values)

    def follow_bridges(self, label: int, values: np.ndarray) -> np.ndarray:
        """Improve a node's values by bridges; returns, for every symbol, the one its bridge goes to, or -1.

        A cycle of bridges loses weight, so that this ends. All bridges at a time are quick where paths are short; for
        long ones, bridges follow each other from the bottom up.
        """
        bridges, log_weights = self.parser._groups[BRIDGE].of_shape((label,))
        goes_to = np.full(len(values), -1)
        upper, lower = self.parser._place[bridges.T]
        for _ in range(SHORT_PATH):
            scores = log_weights + values[lower]
            better = np.flatnonzero(scores > values[upper])
            if not len(better):
                return goes_to
            for bridge in better.tolist():
                if scores[bridge] > values[upper[bridge]]:
                    values[upper[bridge]] = scores[bridge]
                    goes_to[upper[bridge]] = bridges[bridge, 1]
        from_below = np.argsort(self.parser._rank[bridges[:, 1]], kind="stable").tolist()
        has_changed = True
        while has_changed:
            has_changed = False
            for bridge in from_below:
                score = log_weights[bridge] + values[lower[bridge]]
                if score > values[upper[bridge]]:
                    values[upper[bridge]] = score
                    goes_to[upper[bridge]] = bridges[bridge, 1]
                    has_changed = True
        return goes_to

    def log_weight(self) -> float:
        return float(self.values[0][self.parser._place[self.grammar.root]])

    def derivation(self) -> np.ndarray:
        """The rows of the best derivation, from the root down: each node's best way is computed again."""
        root, place = self.grammar.root, self.parser._place
        if self.rows[0][0] != self.grammar.label[root]:
            raise NoDerivationError(
                f"the tree's root is {self.grammar.labels[self.rows[0][0]]},"
                f" the grammar's {self.grammar.labels[self.grammar.label[root]]}"
            )
        if self.log_weight() == -np.inf:
            raise NoDerivationError(f"the grammar has no derivation that begins with {self.rule_name(0)}")
        derivation: list[tuple[int, int, int, int]] = []
        waiting = [(root, 0)]
        while waiting:
            symbol, node = waiting.pop()
            _, start, end, kind = self.rows[node]
            while (below := int(self.bridges[node][place[symbol]])) >= 0:
                derivation.append((symbol, start, end, BRIDGE))
                symbol = below
            derivation.append((symbol, start, end, kind))
            rules, scores = self.candidates(node)
            _, *parts = rules[np.where(rules[:, 0] == symbol, scores, -np.inf).argmax()].tolist()
            waiting.extend(reversed(list(zip(parts, self.children[node], strict=True))))
        return np.array(derivation, dtype=np.int32)

    def rule_name(self, node: int) -> str:
        labels, (label, start, _, kind) = self.grammar.labels, self.rows[node]
        below = [labels[self.rows[child][0]] for child in self.children[node]]
        return f"{labels[label]} -> {' '.join(below) if kind else self.sentence[start]}"


def bare_shapes(shape: Shape) -> tuple[Shape, Shape]:
    """A binary rule's shape with one of its children's labels left out."""
    label, left, right = shape
    return (label, NO_LABEL, right), (label, left, NO_LABEL)


def children_of(rows: list[list[int]]) -> list[list[int]]:
    """For every row of a tree, the rows of its children."""
    children: list[list[int]] = [[] for _ in rows]
    waiting: list[int] = []  # subtrees to the right of the row at work, the nearest last
    for node in reversed(range(len(rows))):
        children[node] = [waiting.pop() for _ in range(rows[node][3])]
        waiting.append(node)
    return children
