"""Where two parsers differ, sentence by sentence: the brackets that only one of them has right.

Last stage of the flow: trees again -> a score. Brackets are deleted and matched as in EVALB; the totals over
`mark_brackets` are those of `evaluate`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from nltk.tree import Tree

from tsgkit.errors import TreebankError
from tsgkit.evaluation._evalb import Evaluation, Trees, read_source, score
from tsgkit.evaluation._parameters import Parameters, load_parameters
from tsgkit.evaluation._scores import BracketCounts
from tsgkit.treebank._brackets import read_brackets
from tsgkit.treebank._trees import is_preterminal, words

RIGHT, WRONG, MISSED = "right", "wrong", "missed"
FUNCTION_TAG = re.compile("[-=]")


class ScoredBracket(NamedTuple):
    """A bracket that is not deleted.

    Attributes
    ----------
    node : int
        Number of its node in preorder; words have no number.
    label : str
        Without function tags.
    start, end : int
        Its span, counted in words that are not deleted.
    first, last : int
        Its span, counted in all words of the sentence: ``sentence[first:last]``.
    """

    node: int
    label: str
    start: int
    end: int
    first: int
    last: int


def scored_brackets(tree: Tree, parameters: Parameters) -> list[ScoredBracket]:
    """The brackets of a tree that are not deleted, in preorder.

    Parameters
    ----------
    tree : nltk.Tree
    parameters : Parameters
    """
    found: list[ScoredBracket] = []
    n_counted = n_words = n_nodes = 0
    # A node is pushed again, with its number and start, to be closed after its children.
    stack: list[tuple[Tree, int, int, int]] = [(tree, -1, 0, 0)]
    while stack:
        node, number, start, first = stack.pop()
        if number >= 0:
            label = FUNCTION_TAG.split(node.label())[0]
            is_deleted = any(labels_match(label, deleted, parameters) for deleted in parameters.delete_labels)
            if start != n_counted and not is_deleted:
                found.append(ScoredBracket(number, label, start, n_counted, first, n_words))
            continue
        n_nodes += 1
        if is_preterminal(node):
            n_counted += node.label() not in parameters.delete_labels
            n_words += 1
        else:
            stack.append((node, n_nodes - 1, n_counted, n_words))
            stack.extend((child, -1, 0, 0) for child in reversed(node))
    return sorted(found)


def labels_match(one: str, other: str, parameters: Parameters) -> bool:
    """Whether two labels are the same or declared equal (EQ_LABEL)."""
    return one == other or (one, other) in parameters.eq_labels or (other, one) in parameters.eq_labels


@dataclass(frozen=True)
class Marks:
    """Which brackets of two trees over the same words match.

    Attributes
    ----------
    found, missed : list of ScoredBracket
        Matched and unmatched brackets of the gold tree.
    right, wrong : list of ScoredBracket
        Matched and unmatched brackets of the test tree.
    """

    found: list[ScoredBracket]
    missed: list[ScoredBracket]
    right: list[ScoredBracket]
    wrong: list[ScoredBracket]

    def of_test(self, n_nodes: int) -> list[str]:
        """For every node of the test tree ``right``, ``wrong``, or an empty string if it is deleted."""
        return marks_of_nodes(n_nodes, {RIGHT: self.right, WRONG: self.wrong})

    def of_gold(self, n_nodes: int) -> list[str]:
        """For every node of the gold tree ``right``, ``missed``, or an empty string if it is deleted."""
        return marks_of_nodes(n_nodes, {RIGHT: self.found, MISSED: self.missed})


def marks_of_nodes(n_nodes: int, brackets: dict[str, list[ScoredBracket]]) -> list[str]:
    marks = [""] * n_nodes
    for mark, group in brackets.items():
        for bracket in group:
            marks[bracket.node] = mark
    return marks


def mark_brackets(gold: Tree, test: Tree, parameters: Parameters) -> Marks:
    """Match the brackets of two trees over the same words.

    Parameters
    ----------
    gold, test : nltk.Tree
    parameters : Parameters

    Examples
    --------
    >>> gold = Tree.fromstring("(TOP (S (NP (PRP I)) (VP (VBD saw) (NP (PRP you)))))")
    >>> test = Tree.fromstring("(TOP (S (NP (PRP I)) (VP (VBD saw)) (NP (PRP you))))")
    >>> marks = mark_brackets(gold, test, load_parameters("collins"))
    >>> [(bracket.label, bracket.first, bracket.last) for bracket in marks.wrong + marks.missed]
    [('VP', 1, 2), ('VP', 1, 3)]
    """
    found, missed = [], []
    right: set[int] = set()
    free: dict[tuple[int, int], list[ScoredBracket]] = {}
    brackets = scored_brackets(test, parameters)
    for bracket in brackets:
        free.setdefault((bracket.start, bracket.end), []).append(bracket)
    for bracket in scored_brackets(gold, parameters):
        candidates = free.get((bracket.start, bracket.end), [])
        for number, candidate in enumerate(candidates):
            if not parameters.labeled or labels_match(bracket.label, candidate.label, parameters):
                del candidates[number]
                right.add(candidate.node)
                found.append(bracket)
                break
        else:
            missed.append(bracket)
    return Marks(
        found,
        missed,
        [bracket for bracket in brackets if bracket.node in right],
        [bracket for bracket in brackets if bracket.node not in right],
    )


@dataclass(frozen=True)
class Difference:
    """A sentence on which two parsers differ.

    Attributes
    ----------
    number : int
        Of the sentence, counted from 1.
    gold : nltk.Tree
    first, second : nltk.Tree or None
        The parsers' trees; None if a line is not a tree over the gold words.
    first_f1, second_f1 : float
        In percent; 0 if the sentence is not valid.
    only_first, only_second : list of ScoredBracket
        Gold brackets that only one of the parsers found.
    first_mistakes, second_mistakes : list of ScoredBracket
        Wrong brackets of only one of the parsers.
    """

    number: int
    gold: Tree
    first: Tree | None
    second: Tree | None
    first_f1: float
    second_f1: float
    only_first: list[ScoredBracket]
    only_second: list[ScoredBracket]
    first_mistakes: list[ScoredBracket]
    second_mistakes: list[ScoredBracket]

    @property
    def n_brackets(self) -> int:
        """Number of brackets in which the parsers differ."""
        parts = (self.only_first, self.only_second, self.first_mistakes, self.second_mistakes)
        return sum(map(len, parts))


@dataclass(frozen=True)
class Differences:
    """Two parsers on the same gold trees.

    Attributes
    ----------
    first, second : Evaluation
    sentences : list of Difference
        Those on which they differ, sorted by difference in F1, then by number of brackets, largest first.
    """

    first: Evaluation
    second: Evaluation
    sentences: list[Difference]

    @property
    def n_better(self) -> tuple[int, int]:
        """Number of sentences on which the first parser, and on which the second, has the higher F1."""
        pairs = [(each.first_f1, each.second_f1) for each in self.sentences]
        return sum(one > other for one, other in pairs), sum(one < other for one, other in pairs)

    def by_label(self) -> list[tuple[str, int, int]]:
        """Label, gold brackets that only the first parser found, and only the second; most frequent first."""
        counts: dict[str, list[int]] = {}
        for each in self.sentences:
            for parser, brackets in enumerate((each.only_first, each.only_second)):
                for bracket in brackets:
                    counts.setdefault(bracket.label, [0, 0])[parser] += 1
        order = sorted(counts.items(), key=lambda entry: (-sum(entry[1]), entry[0]))
        return [(label, only_first, only_second) for label, (only_first, only_second) in order]


def find_differences(gold: Trees, first: Trees, second: Trees, params: str | Parameters = "collins") -> Differences:
    """Compare two parsers sentence by sentence.

    Parameters
    ----------
    gold, first, second : path, or iterable of str, nltk.Tree or None
        As for `evaluate`.
    params : str or Parameters

    Examples
    --------
    >>> gold = ["(TOP (S (NP (PRP I)) (VP (VBD saw) (NP (PRP you)))))"]
    >>> flat = ["(TOP (S (NP (PRP I)) (VP (VBD saw)) (NP (PRP you))))"]
    >>> found = find_differences(gold, gold, flat)
    >>> found.n_better, found.by_label(), found.sentences[0].second_f1
    ((1, 0), [('VP', 1, 0)], 75.0)
    """
    parameters = params if isinstance(params, Parameters) else load_parameters(params)
    gold_name, gold_text = read_source(gold, "gold")
    gold_lines = lines_of(gold_text)
    lines, evaluations = [gold_lines], []
    for trees, role in ((first, "A"), (second, "B")):
        name, text = read_source(trees, role)
        lines.append(lines_of(text))
        if len(lines[-1]) != len(gold_lines):
            raise TreebankError(
                f"{len(lines[-1])} trees, but {len(gold_lines)} in {gold_name}; both must have one tree per line", name
            )
        evaluations.append(score(gold_name, gold_text, name, text, parameters))
    sentences = []
    rows = zip(*(evaluation.iterate_rows() for evaluation in evaluations), strict=True)
    for number, (two_rows, three_lines) in enumerate(zip(rows, zip(*lines, strict=True), strict=True), start=1):
        f1 = [f1_of_row(row) for row in two_rows]
        difference = difference_of(number, [tree_of_line(line) for line in three_lines], f1, parameters)
        if difference is not None:
            sentences.append(difference)
    sentences.sort(key=lambda each: (-abs(each.first_f1 - each.second_f1), -each.n_brackets, each.number))
    return Differences(evaluations[0], evaluations[1], sentences)


def lines_of(content: bytes) -> list[str]:
    """The lines of a file."""
    return content.decode("utf-8", "backslashreplace").removesuffix("\n").split("\n") if content else []


def tree_of_line(line: str) -> Tree | None:
    """The tree on a line; None if the line is not one tree."""
    try:
        trees = list(read_brackets([line], "")) if line.strip() else []
    except TreebankError:
        return None
    return trees[0] if len(trees) == 1 else None


def f1_of_row(row: Sequence[int]) -> float:
    """A sentence's F1; 0 if it is not valid, 100 if neither tree has brackets."""
    _, status, matched, gold, test, *_ = row
    if status:
        return 0.0
    return BracketCounts(gold, test, matched).f1 if gold or test else 100.0


def difference_of(
    number: int, trees: Sequence[Tree | None], f1: Sequence[float], parameters: Parameters
) -> Difference | None:
    """How the brackets of two parsers differ; None if they do not, or if there is no gold tree."""
    gold, *tests = trees
    if gold is None:
        return None
    sentence = words(gold)
    parses = [tree if tree is not None and words(tree) == sentence else None for tree in tests]
    nothing = Marks([], scored_brackets(gold, parameters), [], [])
    first, second = (nothing if tree is None else mark_brackets(gold, tree, parameters) for tree in parses)
    found = [{bracket.node for bracket in marks.found} for marks in (first, second)]
    wrong = [{bracket[1:4] for bracket in marks.wrong} for marks in (first, second)]
    difference = Difference(
        number,
        gold,
        parses[0],
        parses[1],
        f1[0],
        f1[1],
        [bracket for bracket in first.found if bracket.node not in found[1]],
        [bracket for bracket in second.found if bracket.node not in found[0]],
        [bracket for bracket in first.wrong if bracket[1:4] not in wrong[1]],
        [bracket for bracket in second.wrong if bracket[1:4] not in wrong[0]],
    )
    return difference if difference.n_brackets or f1[0] != f1[1] else None


def phrases(brackets: Sequence[ScoredBracket], sentence: Sequence[str]) -> Iterator[str]:
    """Brackets with their words, as in ``NP the old man``."""
    for bracket in brackets:
        yield f"{bracket.label} {' '.join(sentence[bracket.first : bracket.last])}"
