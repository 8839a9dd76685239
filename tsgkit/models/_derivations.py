"""The derivation of a tree as people see it: of every node, which elementary tree it belongs to.

After training and parsing. A derivation comes as the rows of a chart or of a tree that is known; bridges of the grammar
are no nodes. The elementary trees are cut out at substitution sites and around insertions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from nltk.tree import Tree

from tsgkit._codes import BRIDGE, LEFT_FOOT, LEXICAL, RIGHT_FOOT, SITE
from tsgkit.grammar import WeightedGrammar
from tsgkit.models._tsg import is_beside, is_site
from tsgkit.treebank._fragments import format_fragment

FOOT_MARK, HOST_MARK = "*", "+"


def nodes_of(grammar: WeightedGrammar, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The nodes of a derivation, and for every row the number of its node.

    Parameters
    ----------
    grammar : WeightedGrammar
    rows : ndarray of int with four columns
        ``(symbol, start, end, kind)`` from the root down, left to right. A bridge is at the same node as the row
        after it.

    Returns
    -------
    nodes : ndarray of int with four columns
        The rows that are no bridges, ``(label, start, end, kind)``.
    node_of_row : ndarray of int
    """
    is_node = rows[:, 3] != BRIDGE
    nodes = rows[is_node]
    nodes[:, 0] = grammar.label[nodes[:, 0]]
    return nodes, np.cumsum(is_node) - is_node


def node_states(grammar: WeightedGrammar, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The nodes of a derivation, and what it says of each.

    Parameters
    ----------
    grammar : WeightedGrammar
        A transform, or a plain CFG.
    rows : ndarray of int with four columns
        As `nodes_of` takes them.

    Returns
    -------
    nodes : ndarray of int with four columns
        As `nodes_of` gives them.
    states : ndarray of int, one per node
        0 inside of an elementary tree (or a foot), 1 where an initial tree begins, 2 or 3 at the root of an auxiliary
        tree whose foot is the left (or only) or the right child.
    """
    nodes, node_of_row = nodes_of(grammar, rows)
    begins, beside = np.zeros((2, len(nodes)), dtype=bool)
    np.logical_or.at(begins, node_of_row, is_site(grammar, rows[:, 0]))
    np.logical_or.at(beside, node_of_row, is_beside(grammar, rows[:, 0]))
    return nodes, states_of(nodes, begins, beside)


def states_of(nodes: np.ndarray, begins: np.ndarray, beside: np.ndarray) -> np.ndarray:
    """The states of nodes, from which of them begin initial trees and which are beside, or in place of, a foot."""
    states = begins.astype(np.int64)
    waiting: list[int] = []  # subtrees to the right of the node at work, the nearest last
    for node in reversed(range(len(nodes))):
        children = [waiting.pop() for _ in range(nodes[node, 3])]
        if any(beside[child] for child in children):
            # Of two children it is the one beside the foot; a single one is the foot itself.
            states[node] = RIGHT_FOOT if len(children) == 2 and beside[children[0]] else LEFT_FOOT
        waiting.append(node)
    return states


@dataclass(frozen=True)
class Step:
    """An elementary tree in a derivation.

    Attributes
    ----------
    tree : nltk.Tree
    marked : nltk.Tree
        The same with a ``+`` at the nodes where something was inserted, one for each insertion.
    depth : int
        Substitutions and insertions between it and the fragment at the top.
    start, end : int
        The words below its root.
    is_auxiliary : bool
        Whether it was inserted.
    nodes : list of int
        The numbers of its nodes in the derivation, without its frontier and its foot.
    """

    tree: Tree
    marked: Tree
    depth: int
    start: int
    end: int
    is_auxiliary: bool = False
    nodes: list[int] = field(default_factory=list)

    @property
    def brackets(self) -> str:
        return format_fragment(self.tree)


class Slot(NamedTuple):
    """Where the next node of a derivation is attached."""

    parents: list[Tree]  # in the tree and in the marked tree; none at the top
    depth: int
    auxiliary: list[Tree]  # of which it is the foot: in the tree and the marked tree
    step_nodes: list[int]  # those of the elementary tree that continues there
    n_insertions: int = 0


def cut(nodes: np.ndarray, states: np.ndarray, labels: Sequence[str], sentence: Sequence[str]) -> list[Step]:
    """The elementary trees of a derivation.

    Each fills the first node, from the left, that is still open: a frontier node, or one marked for an insertion.

    Parameters
    ----------
    nodes : ndarray of int with four columns
        ``(label, start, end, kind)`` from the root down, left to right.
    states : ndarray of int, one per node
        Both as `tsgkit.models._tsg.node_states` gives them.
    labels : sequence of str
    sentence : sequence of str
        The words as fragments show them.
    """
    steps: list[Step] = []
    slots = [Slot([], -1, [], [])]
    for number, ((label, start, end, kind), state) in enumerate(zip(nodes.tolist(), states.tolist(), strict=True)):
        slot = slots.pop()
        name = labels[label]
        for auxiliary in slot.auxiliary:
            auxiliary.append(Tree(name + FOOT_MARK, []))
        inserts = state >= LEFT_FOOT
        node = Tree(name, [])
        marked = Tree(name if inserts else name + HOST_MARK * slot.n_insertions, [])
        both = [node, marked]
        if inserts:
            steps.append(Step(node, marked, slot.depth + 1, start, end, is_auxiliary=True, nodes=[number]))
            foot = Slot(slot.parents, slot.depth, both, slot.step_nodes, slot.n_insertions + 1)
            beside = Slot(both, slot.depth + 1, [], steps[-1].nodes)
            below = [beside] * kind
            below[state - LEFT_FOOT] = foot
            slots.extend(reversed(below))
            continue
        depth, step_nodes = slot.depth, slot.step_nodes
        for parent, each in zip(slot.parents, both, strict=bool(slot.parents)):
            parent.append(Tree(name, []) if state == SITE else each)
        if state == SITE:
            depth += 1
            steps.append(Step(node, marked, depth, start, end))
            step_nodes = steps[-1].nodes
        step_nodes.append(number)
        if kind == LEXICAL:
            for each in both:
                each.append(sentence[start])
        slots.extend([Slot(both, depth, [], step_nodes)] * kind)
    return steps


class Cut(NamedTuple):
    """A derivation, cut into its elementary trees.

    Attributes
    ----------
    nodes, states : ndarray
        As of `node_states`.
    subcategories : list of str, one per node
        Digits, as of ``NP-01``, where the model knows them; otherwise empty.
    steps : list of Step
    """

    nodes: np.ndarray
    states: np.ndarray
    subcategories: list[str]
    steps: list[Step]


class DerivationReader:
    """Reads derivations with a grammar in which a symbol begins a fragment if it is a label: a CFG, or a transform.

    Parameters
    ----------
    grammar : WeightedGrammar

    Attributes
    ----------
    refined : dict
        Of every name that a fragment may show for a refined label, the label and the digits; none here.
    """

    def __init__(self, grammar: WeightedGrammar) -> None:
        self.grammar = grammar
        self.refined: dict[str, tuple[str, str]] = {}

    def read(self, rows: np.ndarray, vocabulary_words: Sequence[str]) -> Cut:
        """Cut a derivation, the rows of `nodes_of`, of a sentence of words of the vocabulary."""
        nodes, states = node_states(self.grammar, rows)
        return Cut(nodes, states, [""] * len(nodes), cut(nodes, states, self.grammar.labels, vocabulary_words))
