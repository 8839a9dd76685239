"""Trees sampled from the synthetic grammar, with their derivations.

Before the first stage of the flow. A derivation has the probability ``prod p(e | root) * prod a_X p'(e' | X) *
prod (1 - a_X)``: of its initial trees, of its insertions, and of the nodes without an insertion.
"""

import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate, combinations, islice
from random import Random
from typing import NamedTuple

from nltk.tree import Tree

from tsgkit.treebank.synthetic._grammar import (
    FOOT_MARK,
    INSERTION_MARK,
    ROOT,
    ElementaryTree,
    SyntheticGrammar,
    root_label,
    synthetic_grammar,
)

# Few trees are shorter than this: with a smaller limit, the generator would search for too long.
SHORTEST_MAX_LENGTH = 8

# A token of bracket notation: a frontier node or foot, an opening bracket with its label, the space before another
# child, a closing bracket, or a word.
PIECE = re.compile(r"\((?P<open>[^\s()]+) \)|\((?P<label>[^\s()]+) | |(?P<close>\))|[^\s()]+")


class Derivation(NamedTuple):
    """A tree and its derivation.

    Attributes
    ----------
    brackets : str
        The tree, on one line.
    steps : tuple of str
        The elementary trees in the order of a leftmost derivation. A node with an insertion is marked:
        ``(VP (VBD broke) (NP (DT the) (NX+ (NN ice))))``. The next step is substituted at the first frontier node, or
        inserted at the first marked node, from the left; `assemble` does so, `without_marks` removes the marks.
    """

    brackets: str
    steps: tuple[str, ...]

    def tree(self) -> Tree:
        """The derived tree."""
        return Tree.fromstring(self.brackets)


def generate(
    n: int, seed: int = 0, insertions: bool = True, *, vocabulary: int = 0, max_length: int | None = None
) -> Iterator[Tree]:
    """Sample `n` trees from the synthetic grammar.

    Parameters
    ----------
    n, seed, insertions, vocabulary, max_length
        As for `generate_derivations`.

    Examples
    --------
    >>> for tree in generate(2, seed=3):
    ...     print(" ".join(tree.leaves()))
    the next laws are new .
    this baker makes any share .
    """
    derivations = generate_derivations(n, seed, insertions, vocabulary=vocabulary, max_length=max_length)
    return (derivation.tree() for derivation in derivations)


def generate_derivations(
    n: int, seed: int = 0, insertions: bool = True, *, vocabulary: int = 0, max_length: int | None = None
) -> Iterator[Derivation]:
    """Sample `n` trees from the synthetic grammar, with their derivations.

    Parameters
    ----------
    n : int
        Number of trees. Each is sampled when it is asked for; none is kept.
    seed : int
        The same seed gives the same trees; with a larger `n`, the first trees are the same.
    insertions : bool
        If false, the grammar is a plain tree-substitution grammar.
    vocabulary : int
        Number of invented words in addition to the English ones.
    max_length : int, optional
        Trees with more words than this are left out.

    Examples
    --------
    >>> derivation = next(generate_derivations(1, seed=3))
    >>> derivation.steps[0]
    '(TOP (S (NP (DT the) (NX+ (NNS ))) (VP (VBP are) (ADJP )) (. .)))'
    >>> assemble(derivation.steps) == derivation.brackets
    True
    """
    if n < 0:
        raise ValueError(f"n={n}: must be at least 0")
    if seed < 0:
        raise ValueError(f"seed={seed}: must be at least 0")
    if max_length is not None and max_length < SHORTEST_MAX_LENGTH:
        raise ValueError(f"max_length={max_length}: must be at least {SHORTEST_MAX_LENGTH}")
    derivations = endless_derivations(synthetic_grammar(insertions, vocabulary), seed)
    if max_length is not None:
        derivations = (each for each in derivations if n_words(each.brackets) <= max_length)
    return islice(derivations, min(n, sys.maxsize))  # islice takes no larger number


def assemble(steps: Iterable[str]) -> str:
    """The tree of a derivation, in brackets.

    Parameters
    ----------
    steps : iterable of str
        Elementary trees in the order of a leftmost derivation.

    Examples
    --------
    >>> assemble(["(TOP (NP+ (NN )))", "(NP (ADVP (RB )) (NP* ))", "(RB even)", "(NN rain)"])
    '(TOP (NP (ADVP (RB even)) (NP (NN rain))))'
    """
    remaining = iter(steps)

    def next_step(site: Site) -> Step:
        brackets = next(remaining, None)
        if brackets is None:
            raise ValueError(f"the derivation ends before {site.label} is filled")
        step = Step(brackets, reversed_parts(brackets))
        if root_label(brackets) + (FOOT_MARK if FOOT in step.parts else "") != site.label:
            raise ValueError(f"{brackets} cannot fill {site.label}")
        return step

    derivation = grow(next_step)
    leftover = next(remaining, None)
    if leftover is not None:
        raise ValueError(f"the tree is complete before {leftover}")
    return derivation.brackets


def without_marks(step: str) -> str:
    """The elementary tree of a step, without the marks of the insertions of this derivation.

    Parameters
    ----------
    step : str

    Examples
    --------
    >>> without_marks("(VP (VBD broke) (NP (DT the) (NX+ (NN ice))))")
    '(VP (VBD broke) (NP (DT the) (NX (NN ice))))'
    """
    return re.sub(r"(\([^\s()]+)\+ ", r"\1 ", step)


def n_words(brackets: str) -> int:
    """The length of a complete tree's sentence.

    Parameters
    ----------
    brackets : str
    """
    # There is one space before every word and before every node but the root.
    return brackets.count(" ") - brackets.count("(") + 1


# Sampling: every elementary tree is split once into strings and sites, and a tree is a concatenation of strings.


class Site(NamedTuple):
    """Where an elementary tree goes: a frontier node, or a node with an insertion and what is inside that node."""

    label: str  # with the mark of a foot if an auxiliary tree goes here
    inside: "tuple[Part, ...] | None" = None


# A part of an elementary tree.
Part = str | Site


class Step(NamedTuple):
    """An elementary tree with its insertions marked, and its parts from right to left, the order for a stack."""

    brackets: str
    parts: tuple[Part, ...]


FOOT = Site(FOOT_MARK)


def grow(next_step: Callable[[Site], Step]) -> Derivation:
    """Build a tree from left to right; `next_step` chooses the step for every site."""
    strings: list[str] = []
    steps: list[str] = []
    open_parts: list[Part] = [Site(ROOT)]
    while open_parts:
        part = open_parts.pop()
        if isinstance(part, str):
            strings.append(part)
            continue
        brackets, parts = next_step(part)
        steps.append(brackets)
        if part.inside is None:
            open_parts += parts
        else:
            for piece in parts:
                open_parts += part.inside if piece is FOOT else (piece,)
    return Derivation("".join(strings), tuple(steps))


def endless_derivations(grammar: SyntheticGrammar, seed: int) -> Iterator[Derivation]:
    """Derivations without end. Only ``random()`` gives the same numbers in every version of Python."""
    tables = step_tables(grammar)
    random = Random(seed).random

    def draw(site: Site) -> Step:
        bounds, steps = tables[site.label]
        return steps[bisect_right(bounds, random())]

    while True:
        yield grow(draw)


def step_tables(grammar: SyntheticGrammar) -> dict[str, tuple[list[float], list[Step]]]:
    """For every label of a site, the upper bounds of the cumulated probabilities of its steps, and the steps."""
    weighted: dict[str, list[tuple[float, Step]]] = {}
    for trees, mark in ((grammar.initial, ""), (grammar.auxiliary, FOOT_MARK)):
        for tree in trees:
            entries = weighted.setdefault(tree.root + mark, [])
            for probability, brackets in with_insertions(tree, grammar.insertion_probability):
                entries.append((probability, Step(brackets, reversed_parts(brackets))))
    # The last bound, which is one up to rounding, is left out: what is above the others is the last step.
    return {
        site: ([*accumulate(probability for probability, _ in entries)][:-1], [step for _, step in entries])
        for site, entries in weighted.items()
    }


def with_insertions(tree: ElementaryTree, insertion_probability: Mapping[str, float]) -> Iterator[tuple[float, str]]:
    """Every subset of insertions in `tree`, as marks, with its probability."""
    # Nothing is inserted at the root; frontier nodes and feet are not matched as labels.
    labels = [match for match in PIECE.finditer(tree.brackets) if match["label"]][1:]
    hosts = [match for match in labels if insertion_probability.get(match["label"], 0) > 0]
    for n_insertions in range(len(hosts) + 1):
        for chosen in combinations(hosts, n_insertions):
            probability, brackets = tree.probability, tree.brackets
            for host in reversed(hosts):  # from the right, so that positions remain valid
                share = insertion_probability[host["label"]]
                probability *= share if host in chosen else 1 - share
                if host in chosen:
                    brackets = brackets[: host.end() - 1] + INSERTION_MARK + brackets[host.end() - 1 :]
            yield probability, brackets


def reversed_parts(brackets: str) -> tuple[Part, ...]:
    """Split an elementary tree at its frontier nodes, at its foot and around its marked nodes."""
    parts: list[Part] = []
    # For every open bracket: the label of its marked node and the index of its first part, or None.
    hosts: list[tuple[str, int] | None] = []
    for piece in PIECE.finditer(brackets):
        label = piece["label"] or ""
        if piece["open"]:
            parts.append(FOOT if piece["open"].endswith(FOOT_MARK) else Site(piece["open"]))
        elif label.endswith(INSERTION_MARK):
            label = label.removesuffix(INSERTION_MARK)
            hosts.append((label, len(parts)))
            parts.append(f"({label} ")
        else:
            if label:
                hosts.append(None)
            text_before = parts.pop() if parts and isinstance(parts[-1], str) else ""
            parts.append(f"{text_before}{piece[0]}")
            host = hosts.pop() if piece["close"] else None
            if host:
                label, first = host
                parts[first:] = [Site(label + FOOT_MARK, tuple(reversed(parts[first:])))]
    return tuple(reversed(parts))
