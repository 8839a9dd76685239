"""Brackets that a parse must have: how they are written, and what they mean to the chart.

Between a line of input and the chart. A bracket is ``(label, start, end)`` over the words ``start .. end``, with the
label ``None`` if any will do; a tree has it if it has a node with this label, a tag or a phrase, over exactly these
words. With ``B`` the brackets, everything that a parser computes is conditional on them: P(t | words, B) is P(t) over
the sum of all trees that have the brackets.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from nltk.tree import Tree

from tsgkit._constraints import MAX_STATES, Constraints
from tsgkit._grammar_index import GrammarIndex
from tsgkit.errors import TreebankError, UsageError
from tsgkit.treebank.binarize import undo_label
from tsgkit.treebank.clean import chain_parts

# A label, or None for any, with the first of its words and the first after it.
GivenBracket = tuple[str | None, int, int]
Span = tuple[int, int]
TOKEN = re.compile(r"\((?P<label>[^ \t\r\n\f\v()]*)|(?P<close>\))|(?P<word>[^ \t\r\n\f\v()]+)")
SPACES = " \t\r\n\f\v"
# The label of a bracket without a label in a fallback tree, where no grammar names a better one.
UNNAMED = "X"


def bracketed_sentence(line: str, path: str = "", number: int | None = None) -> tuple[list[str], list[GivenBracket]]:
    """The words and the brackets of a line; brackets come in the order in which they open.

    Parameters
    ----------
    line : str
        Words, and brackets around some of them: ``(NP the old man)`` with a label, which follows the bracket without a
        space, or ``( the old man )`` without one, where a space follows it. Words that are round brackets are written
        ``-LRB-`` and ``-RRB-``.
    path : str
        The name of the file, for messages.
    number : int, optional
        The number of the line, for messages.

    Raises
    ------
    TreebankError
        If brackets do not match, one has no words, or a word has a round bracket in it.

    Examples
    --------
    >>> bracketed_sentence("(NP (DT the) old man) went ( home )")
    (['the', 'old', 'man', 'went', 'home'], [('NP', 0, 3), ('DT', 0, 1), (None, 4, 5)])
    >>> bracketed_sentence("(NP the old", "notes.txt", 3)
    Traceback (most recent call last):
        ...
    tsgkit.errors.TreebankError: notes.txt:3:1: a bracket is not closed
    """

    def error(problem: str, place: int) -> TreebankError:
        return TreebankError(problem, path, number, place + 1)

    words: list[str] = []
    found: list[GivenBracket] = []
    opened: list[tuple[int, int]] = []  # number of the bracket, column
    for token in TOKEN.finditer(line):
        place = token.start()
        before = line[place - 1] if place else " "
        if token["word"] is not None:
            if before == ")":
                raise error("a word follows a bracket: separate them by a space", place)
            words.append(token["word"])
        elif token["close"] is not None:
            if not opened:
                raise error("a bracket closes that was not opened: write -RRB- for a word", place)
            number_of_bracket, column = opened.pop()
            label, start, _ = found[number_of_bracket]
            if start == len(words):
                raise error("a bracket has no words", column)
            found[number_of_bracket] = (label, start, len(words))
        else:
            if before not in SPACES + "()":
                raise error("a round bracket inside of a word: write -LRB- for a word, or a space before it", place)
            opened.append((len(found), place))
            found.append((token["label"] or None, len(words), -1))
    if opened:
        raise error("a bracket is not closed", opened[-1][1])
    return words, found


def require_brackets(brackets: Iterable[GivenBracket], n_words: int) -> list[GivenBracket]:
    """Brackets that fit a sentence and each other, outer ones first; a UsageError otherwise.

    Examples
    --------
    >>> require_brackets([("NP", 0, 2), (None, 1, 3)], 4)
    Traceback (most recent call last):
        ...
    tsgkit.errors.UsageError: brackets NP 0..2 and 1..3 cross: no tree has both
    """
    found: list[GivenBracket] = []
    for bracket in brackets:
        try:
            label, start, end = bracket
        except (TypeError, ValueError):
            raise UsageError(f"bracket {bracket!r}: must be (label or None, start, end)") from None
        if not (label is None or isinstance(label, str)) or isinstance(start, str) or isinstance(end, str):
            raise UsageError(f"bracket {bracket!r}: must be (label or None, start, end)")
        if not 0 <= start < end <= n_words:
            raise UsageError(f"bracket {named(bracket)} is out of range: there are {n_words} words")
        found.append((label, int(start), int(end)))
    if len(found) > MAX_STATES:
        raise UsageError(f"{len(found)} brackets for one sentence: at most {MAX_STATES} are possible")
    # Stable: of brackets over the same words, the first is the outer one.
    found.sort(key=lambda bracket: (bracket[1], -bracket[2]))
    outer: list[GivenBracket] = []
    for bracket in found:
        while outer and outer[-1][2] <= bracket[1]:
            outer.pop()
        if outer and outer[-1][2] < bracket[2]:
            raise UsageError(f"brackets {named(outer[-1])} and {named(bracket)} cross: no tree has both")
        outer.append(bracket)
    return found


def named(bracket: GivenBracket) -> str:
    """A bracket as messages name it."""
    label, start, end = bracket
    return f"{label} {start}..{end}" if label else f"{start}..{end}"


def by_span(brackets: Iterable[GivenBracket]) -> dict[Span, tuple[str | None, ...]]:
    """The labels that every span must have, the innermost first."""
    labels: dict[Span, tuple[str | None, ...]] = {}
    for label, start, end in brackets:
        labels[start, end] = (label, *labels.get((start, end), ()))
    return labels


class LabelAutomata:
    """What the labels of a grammar do to the brackets that a span must have.

    Parameters
    ----------
    index : GrammarIndex
    labels : sequence of str
        Of the grammar, binarised.
    joins_chains : bool
        Whether a label may stand for a chain of unary nodes, see `tsgkit.treebank.clean.collapse_unaries`.
    """

    def __init__(self, index: GrammarIndex, labels: Sequence[str], joins_chains: bool) -> None:
        self.index = index
        # The nodes that a label makes in a tree as annotated, from the bottom up.
        self.nodes: list[tuple[str, ...]] = []
        for label in labels:
            plain = undo_label(label)
            if plain is None:
                self.nodes.append(())
            else:
                self.nodes.append(tuple(reversed(chain_parts(plain))) if joins_chains else (plain,))
        self.known: dict[tuple[str | None, ...], np.ndarray] = {}

    def automaton(self, wanted: tuple[str | None, ...]) -> np.ndarray:
        """By state (how many of the wanted labels were found) and label: the state above a node with this label."""
        if wanted not in self.known:
            table = np.empty((len(wanted) + 1, len(self.nodes)), dtype=np.int32)
            for state in range(len(wanted) + 1):
                for label, nodes in enumerate(self.nodes):
                    table[state, label] = after_nodes(state, nodes, wanted)
            self.known[wanted] = table
        return self.known[wanted]

    def constraints(
        self, brackets: Sequence[GivenBracket], n_words: int, relaxed: Collection[Span] = ()
    ) -> Constraints:
        """The brackets of a sentence as the chart takes them; of relaxed spans only that nothing crosses them."""
        spans = {span: () if span in relaxed else wanted for span, wanted in by_span(brackets).items()}
        return Constraints(self.index, n_words, list(spans), [self.automaton(wanted) for wanted in spans.values()])


def after_nodes(state: int, nodes: Sequence[str], wanted: Sequence[str | None]) -> int:
    """How many wanted labels were found after these nodes, from the bottom up.

    Examples
    --------
    >>> after_nodes(0, ("VP", "S"), ("VP", None, "S"))
    2
    """
    for node in nodes:
        if state < len(wanted) and wanted[state] in (None, node):
            state += 1
    return state


@dataclass(frozen=True)
class StateCodes:
    """Labels of treebank rules with the states of constraints, as a forest of constrained trees has them.

    Attributes
    ----------
    automata : LabelAutomata
    brackets : list of GivenBracket
    """

    automata: LabelAutomata
    brackets: list[GivenBracket]

    @property
    def n_states(self) -> int:
        return 1 + max(map(len, by_span(self.brackets).values()), default=0)

    def rows(self, rows: np.ndarray) -> np.ndarray:
        """The rows of a tree that has the brackets, with labels by state."""
        spans, n_labels = by_span(self.brackets), len(self.automata.nodes)
        coded = rows.copy()
        states: dict[Span, int] = {}
        for number in reversed(range(len(rows))):
            label, start, end, _ = rows[number].tolist()
            wanted = spans.get((start, end))
            if wanted is None:
                continue
            state = after_nodes(states.get((start, end), 0), self.automata.nodes[label], wanted)
            states[start, end] = state
            if state < len(wanted):
                coded[number, 0] += (state + 1) * n_labels
        return coded


# ---- fallback trees ------------------------------------------------------------------------------------------


def with_brackets(parts: Sequence[tuple[Span, Sequence[Tree]]], brackets: Sequence[GivenBracket], root: str) -> Tree:
    """The parts of a sentence, from left to right, under a root and inside of brackets.

    Parameters
    ----------
    parts : sequence of (span, trees)
        No span crosses a bracket or has one strictly inside.
    brackets : sequence of GivenBracket
        Outer ones first.
    root : str
        A bracket with this label over all words is the root itself.

    Examples
    --------
    >>> words = [((place, place + 1), [Tree("N", [word])]) for place, word in enumerate("abc")]
    >>> print(with_brackets(words, [("NP", 0, 2), (None, 1, 2)], "TOP"))
    (TOP (NP (N a) (X (N b))) (N c))
    """
    n_words = parts[-1][0][1]
    waiting = [bracket for bracket in brackets if bracket != (root, 0, n_words)][::-1]
    open_nodes = [(n_words, Tree(root, []))]
    for (start, end), trees in parts:
        while waiting and waiting[-1][1] == start and waiting[-1][2] >= end:
            label, _, bracket_end = waiting.pop()
            node = Tree(label or UNNAMED, [])
            open_nodes[-1][1].append(node)
            open_nodes.append((bracket_end, node))
        open_nodes[-1][1].extend(trees)
        while len(open_nodes) > 1 and open_nodes[-1][0] == end:
            open_nodes.pop()
    return open_nodes[0][1]
