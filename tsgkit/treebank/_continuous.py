"""Reattachment: discontinuous trees become continuous, so that the words of every phrase are a contiguous span.

First stage of the flow, part of a reader. Nodes are numbers, and a tree is a mapping from every node but the root to
its parent. Words are numbered from left to right -1, -2, -3, ...; the root is 0; phrases have any other numbers.
"""

from bisect import bisect
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

ROOT = 0


def word_node(position: int) -> int:
    """The node of the word at a position, from 0; its own inverse: also the position of a word's node."""
    return -1 - position


@dataclass(frozen=True)
class Outline:
    """The depths and spans of the nodes of a tree.

    Attributes
    ----------
    parents : mapping
    depth : dict
        The number of nodes above every node.
    first, last : dict
        The positions of a node's first and last words.
    n_words : dict
    """

    parents: Mapping[int, int]
    depth: dict[int, int]
    first: dict[int, int]
    last: dict[int, int]
    n_words: dict[int, int]

    @classmethod
    def of(cls, parents: Mapping[int, int]) -> "Outline":
        """The outline of a tree whose phrases all have words."""
        depth = {ROOT: 0}  # every parent comes before its children
        for start in parents:
            path, node = [], start
            while node not in depth:
                path.append(node)
                node = parents[node]
            level = depth[node]
            for node in reversed(path):
                level += 1
                depth[node] = level
        words = [node for node in parents if node < ROOT]
        first = {node: word_node(node) for node in words}
        last, n_words = dict(first), dict.fromkeys(words, 1)
        for node in reversed(depth):
            if node == ROOT:
                break
            parent = parents[node]
            if parent not in first:
                first[parent], last[parent], n_words[parent] = first[node], last[node], n_words[node]
                continue
            if first[node] < first[parent]:  # noqa: PLR1730 - min takes twice the time
                first[parent] = first[node]
            if last[node] > last[parent]:  # noqa: PLR1730
                last[parent] = last[node]
            n_words[parent] += n_words[node]
        return cls(parents, depth, first, last, n_words)

    def gap(self) -> tuple[int, int] | None:
        """The deepest discontinuous phrase and the position of its first word after a gap; None if there is none."""
        broken = [node for node, number in self.n_words.items() if self.last[node] - self.first[node] >= number]
        if not broken:
            return None
        phrase = max(broken, key=lambda node: (self.depth[node], -self.first[node]))
        below = {phrase}
        for node in sorted(self.parents, key=self.depth.__getitem__):
            if self.parents[node] in below:
                below.add(node)
        return phrase, next(
            position
            for position in range(self.first[phrase] + 1, self.last[phrase] + 1)
            if word_node(position) in below and word_node(position - 1) not in below
        )

    def top(self, node: int) -> int:
        """The child of the root that dominates a node, or is it."""
        while self.parents[node] != ROOT:
            node = self.parents[node]
        return node

    def lowest_above(self, one: int, other: int) -> int:
        """The lowest node that dominates two words."""
        while one != other:
            if self.depth[one] >= self.depth[other]:
                one = self.parents[one]
            else:
                other = self.parents[other]
        return one


def continuous_parents(parents: Mapping[int, int], heads: Collection[int] = ()) -> dict[int, int]:
    """The parents of a tree in which every phrase is continuous; those of a continuous tree do not change.

    First, a child of the root inside the span of a phrase, as punctuation in Negra and TIGER, is attached to the lowest
    node that dominates the words of the phrase on both sides of it. Then, from the deepest phrase to the highest, every
    phrase that is still discontinuous keeps one of its parts and gives the others to its parent. It keeps the part with
    a head; if there is none, the part with the most words that are children of the phrase; if that does not decide, the
    first.

    Parameters
    ----------
    parents : mapping
        Every phrase has words.
    heads : collection of int
        Nodes that are the heads of their parents.

    Examples
    --------
    >>> # das hat gesagt, where das is part of the verb phrase
    >>> continuous_parents({-1: 500, -2: 501, -3: 500, 500: 501, 501: 0}, heads=[-3])
    {-1: 501, -2: 501, -3: 500, 500: 501, 501: 0}
    """
    result = {**parents, **inside_phrases(Outline.of(parents))}
    outline = Outline.of(result)
    children = defaultdict(list)
    for node, parent in result.items():
        children[parent].append(node)

    def weight(part: list[int]) -> tuple[bool, int]:
        annotated = [node for node in part if parents[node] == phrase]
        return any(node in heads for node in annotated), sum(node < ROOT for node in annotated)

    for phrase in sorted((node for node in result if node > ROOT), key=outline.depth.__getitem__, reverse=True):
        # Deeper phrases came before, so all children are continuous.
        parts = without_gaps(children[phrase], outline)
        kept = max(parts, key=weight)
        for part in parts:
            if part is not kept:
                children[result[phrase]] += part
                result.update(dict.fromkeys(part, result[phrase]))
        outline.first[phrase], outline.last[phrase] = outline.first[kept[0]], outline.last[kept[-1]]
    return result


def inside_phrases(outline: Outline) -> dict[int, int]:
    """The children of the root inside the span of a phrase, and the node each should be attached to."""
    words_below = defaultdict(list)
    for position in range(outline.n_words[ROOT]):
        words_below[outline.top(word_node(position))].append(position)
    found = {}
    for node in words_below:
        first, last = outline.first[node], outline.last[node]
        around = [other for other in words_below if outline.first[other] < first and outline.last[other] > last]
        if around:
            narrowest = min(around, key=lambda other: (outline.last[other] - outline.first[other], other))
            words = words_below[narrowest]
            before, after = words[bisect(words, first) - 1], words[bisect(words, last)]
            found[node] = outline.lowest_above(word_node(before), word_node(after))
    return found


def without_gaps(nodes: Iterable[int], outline: Outline) -> list[list[int]]:
    """Nodes from left to right, in groups without a gap between their spans."""
    groups: list[list[int]] = []
    for node in sorted(nodes, key=outline.first.__getitem__):
        if not groups or outline.first[node] > outline.last[groups[-1][-1]] + 1:
            groups.append([])
        groups[-1].append(node)
    return groups
