"""Syntax graphs: words in order and phrases with parents, from formats that do not nest; they become trees here.

First stage of the flow, between a reader and the tree. Export files, TIGER-XML, Alpino XML and discbracket say of every
node which phrase it belongs to, and of every word its position, so a phrase may have gaps. Nodes are numbered as in
`tsgkit.treebank._continuous`. All models are context-free: a discontinuous graph is an error, or is made continuous.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from nltk.tree import Tree

from tsgkit.errors import TreebankError
from tsgkit.treebank._continuous import ROOT, Outline, continuous_parents, word_node
from tsgkit.treebank._formats import ReadOptions
from tsgkit.treebank._trees import VIRTUAL_ROOT, is_preterminal

NO_EDGE = "--"
# Edge labels that are none; TüBa-D/Z has a single dash.
NO_FUNCTION = frozenset({"", NO_EDGE, "-"})
HEAD_EDGES = frozenset({"HD", "hd"})
# Phrases that stand for the sentence itself: punctuation is attached to them wherever it occurs.
SENTENCE_LABELS = frozenset({"", VIRTUAL_ROOT, "TOP", "top", "ROOT"})
# Making a tree continuous takes time in proportion to the square of its number of words and phrases.
MOST_NODES = 5000


@dataclass
class SyntaxGraph:
    """A sentence as words and phrases.

    Attributes
    ----------
    name : str
        How errors call the sentence.
    line : int
        Where it begins in the file.
    words : list of (str, str)
        Words with their tags, in the order of the sentence.
    labels : dict
        The labels of phrases, with their functions, by number (1 or more).
    parents : dict
        The parent of every word and phrase; 0 is the sentence itself.
    heads : set of int
        Nodes that are the heads of their parents.
    phrase_names : dict
        How errors call the phrases; ``#`` and their number unless given.
    empty_children : dict
        Empty nodes, such as traces, by the phrase whose first children they become.
    """

    name: str
    line: int
    words: list[tuple[str, str]] = field(default_factory=list)
    labels: dict[int, str] = field(default_factory=dict)
    parents: dict[int, int] = field(default_factory=dict)
    heads: set[int] = field(default_factory=set)
    phrase_names: dict[int, str] = field(default_factory=dict)
    empty_children: dict[int, list[Tree]] = field(default_factory=dict)

    def error(self, reason: str, details: str, path: str) -> TreebankError:
        """The error of this sentence, at its place in the file."""
        return TreebankError(f"sentence {self.name}: {reason}: {details}", path, self.line, 1, reason=reason)

    def phrase_name(self, node: int) -> str:
        return self.phrase_names.get(node, f"#{node}")


def with_function(label: str, edge: str) -> str:
    """The label of a phrase with its edge label as function tag: ``NP`` with ``SB`` is ``NP-SB``."""
    return label if edge in NO_FUNCTION else f"{label}-{edge}"


def split_function(label: str) -> tuple[str, str]:
    """Category and edge label, the inverse of `with_function`; a label without function tag has ``--``.

    Examples
    --------
    >>> split_function("NP-SBJ-1"), split_function("NP"), split_function("-LRB-")
    (('NP', 'SBJ-1'), ('NP', '--'), ('-LRB-', '--'))
    """
    category, dash, function = label.partition("-")
    return (category, function) if category and dash and function not in NO_FUNCTION else (label, NO_EDGE)


def tree_of(graph: SyntaxGraph, path: str, options: ReadOptions) -> Tree:
    """The tree of a graph; its root is labelled ``VROOT``, or is the only phrase below that.

    Parameters
    ----------
    graph : SyntaxGraph
    path : str
        The file, for errors.
    options : ReadOptions
        Whether a discontinuous graph is made continuous.

    Examples
    --------
    >>> graph = SyntaxGraph("1", 1, [("I", "PRP"), ("ran", "VBD")], {1: "S", 2: "NP-SBJ"}, {-1: 2, -2: 1, 2: 1, 1: 0})
    >>> print(tree_of(graph, "", ReadOptions()))
    (S (NP-SBJ (PRP I)) (VBD ran))
    """

    def error(reason: str, details: str) -> TreebankError:
        return graph.error(reason, details, path)

    if not graph.words:
        raise error("empty sentence", "it has no words")
    root = grown(graph, graph.parents, error)
    if root is None:
        root = grown(graph, reattached(graph, path, options, error), error)
        assert root is not None  # a continuous tree has no gap
    return root[0] if len(root) == 1 and not is_preterminal(root[0]) else root


def grown(graph: SyntaxGraph, parents: dict[int, int], error: Callable[[str, str], TreebankError]) -> Tree | None:
    """The tree below the virtual root, or None if a phrase has a gap.

    Words come from left to right, each with the phrases above it that no earlier word has. `spine` is the path from the
    root to the last word: where the new nodes are attached must be on it, else the phrases there have a gap.
    """
    labels = graph.labels
    root = Tree(VIRTUAL_ROOT, [])
    nodes, spine = {ROOT: root}, [ROOT]
    node_number = 0
    for word, tag in graph.words:
        node_number -= 1  # `word_node` of the position
        above: list[int] = []
        parent = parents.get(node_number, -1)
        while parent not in nodes:
            if parent not in labels or parent not in parents:
                missing = "no parent" if parent == -1 or parent in labels else f"a parent that does not exist: {parent}"
                raise error("no tree", f"word {-node_number} ({word}) or a phrase above it has {missing}")
            if len(above) > len(labels):
                raise error("no tree", f"phrase {graph.phrase_name(parent)} is its own ancestor")
            above.append(parent)
            parent = parents[parent]
        while spine[-1] != parent:
            spine.pop()
            if not spine:
                return None
        node = nodes[parent]
        while above:
            number = above.pop()
            child = nodes[number] = Tree(labels[number], [])
            node.append(child)
            node = child
            spine.append(number)
        node.append(Tree(tag, [word]))
    if len(nodes) <= len(labels):
        number = next(number for number in labels if number not in nodes)
        raise error("empty node", f"phrase {graph.phrase_name(number)} ({labels[number]}) has no words")
    for number, empty in graph.empty_children.items():
        nodes[number][0:0] = empty
    return root


def reattached(
    graph: SyntaxGraph, path: str, options: ReadOptions, error: Callable[[str, str], TreebankError]
) -> dict[int, int]:
    """The parents of a discontinuous graph after it was made continuous, if the options allow it."""
    require_tree(graph, error)
    reason = "discontinuous tree"
    if options.reattached is None:
        gap = Outline.of(graph.parents).gap()
        assert gap is not None
        number, position = gap
        raise error(
            reason,
            f"phrase {graph.phrase_name(number)} ({graph.labels[number]}) covers word {position + 1}"
            f" ({graph.words[position][0]}) but not the word before it; only continuous trees can be read:"
            " --continuous makes it one",
        )
    if len(graph.parents) > MOST_NODES:
        raise error(reason, f"with more than {MOST_NODES} words and phrases it cannot be made continuous")
    options.reattached.append(f"{path}:{graph.line}: sentence {graph.name}")
    tops = [node for node, parent in graph.parents.items() if parent == ROOT]
    if len(tops) != 1 or graph.labels.get(tops[0]) not in SENTENCE_LABELS:
        return continuous_parents(graph.parents, graph.heads)
    top = tops[0]
    below = {node: ROOT if parent == top else parent for node, parent in graph.parents.items() if node != top}
    moved = continuous_parents(below, graph.heads)
    return {top: ROOT, **{node: top if parent == ROOT else parent for node, parent in moved.items()}}


def require_tree(graph: SyntaxGraph, error: Callable[[str, str], TreebankError]) -> None:
    """Raise an error for parents that do not exist, for cycles, and for phrases without words."""
    reached = {ROOT}
    for position, (word, _) in enumerate(graph.words):
        node, above = word_node(position), set[int]()
        while node not in reached:
            if node in above:
                raise error("no tree", f"phrase {graph.phrase_name(node)} is its own ancestor")
            if node not in graph.parents or (node > ROOT and node not in graph.labels):
                raise error("no tree", f"word {position + 1} ({word}) or a phrase above it has no parent that exists")
            above.add(node)
            node = graph.parents[node]
        reached |= above
    for number, label in graph.labels.items():
        if number not in reached:
            raise error("empty node", f"phrase {graph.phrase_name(number)} ({label}) has no words")
