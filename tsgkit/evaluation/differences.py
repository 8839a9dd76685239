"""Where two parsers differ: the brackets that only one of them got right, sentence by sentence.

The brackets that count are EVALB's, and so are those that match; the sums of `mark_brackets` are those of `evaluate`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from nltk.tree import Tree

from tsgkit.errors import TreebankError
from tsgkit.evaluation.evalb import Evaluation, Trees, read_source, score
from tsgkit.evaluation.parameters import Parameters, load_parameters
from tsgkit.evaluation.scores import BracketCounts
from tsgkit.treebank.brackets import read_brackets
from tsgkit.treebank.trees import is_preterminal, words

RIGHT, WRONG, MISSED = "right", "wrong", "missed"
FUNCTION = re.compile("[-=]")


class ScoredBracket(NamedTuple):
    """A bracket that counts.

    Attributes
    ----------
    node : int
        The number of its node from the top down, words not counted.
    label : str
        Without function tags.
    start, end : int
        Its words, without those that do not count.
    first, last : int
        Its words among all words of the sentence; the last one is not part of it.
    """

    node: int
    label: str
    start: int
    end: int
    first: int
    last: int


def scored_brackets(tree: Tree, parameters: Parameters) -> list[ScoredBracket]:
    """The brackets of a tree that count, from the top down."""
    found: list[ScoredBracket] = []
    n_counted = n_words = n_nodes = 0
    # A node waits, with its number and where it began, until all its words are known.
    stack: list[tuple[Tree, int, int, int]] = [(tree, -1, 0, 0)]
    while stack:
        node, number, start, first = stack.pop()
        if number >= 0:
            label = FUNCTION.split(node.label())[0]
            if start != n_counted and not any(same(label, gone, parameters) for gone in parameters.delete_labels):
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


def same(one: str, other: str, parameters: Parameters) -> bool:
    """Whether two labels are held equal."""
    return one == other or (one, other) in parameters.eq_labels or (other, one) in parameters.eq_labels


@dataclass(frozen=True)
class Marks:
    """Which brackets of two trees over the same words match.

    Attributes
    ----------
    found, missed : list of ScoredBracket
        Of the gold tree.
    right, wrong : list of ScoredBracket
        Of the test tree.
    """

    found: list[ScoredBracket]
    missed: list[ScoredBracket]
    right: list[ScoredBracket]
    wrong: list[ScoredBracket]

    def of_test(self, n_nodes: int) -> list[str]:
        """For every node of the test tree ``right``, ``wrong``, or nothing if it does not count."""
        return marks_of_nodes(n_nodes, {RIGHT: self.right, WRONG: self.wrong})

    def of_gold(self, n_nodes: int) -> list[str]:
        """For every node of the gold tree ``right``, ``missed``, or nothing."""
        return marks_of_nodes(n_nodes, {RIGHT: self.found, MISSED: self.missed})


def marks_of_nodes(n_nodes: int, brackets: dict[str, list[ScoredBracket]]) -> list[str]:
    marks = [""] * n_nodes
    for mark, group in brackets.items():
        for bracket in group:
            marks[bracket.node] = mark
    return marks


def mark_brackets(gold: Tree, test: Tree, parameters: Parameters) -> Marks:
    """Match the brackets of two trees over the same words.

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
    for own in scored_brackets(gold, parameters):
        candidates = free.get((own.start, own.end), [])
        for number, other in enumerate(candidates):
            if not parameters.labeled or same(own.label, other.label, parameters):
                del candidates[number]
                right.add(other.node)
                found.append(own)
                break
        else:
            missed.append(own)
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
        The parsers' trees, if they are trees over the same words.
    first_f1, second_f1 : float
        In percent; 0 for what cannot be scored.
    only_first, only_second : list of ScoredBracket
        Gold brackets that only one of them has.
    first_mistakes, second_mistakes : list of ScoredBracket
        Wrong brackets that only one of them has.
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
        """How many brackets they differ in."""
        parts = (self.only_first, self.only_second, self.first_mistakes, self.second_mistakes)
        return sum(map(len, parts))


@dataclass(frozen=True)
class Differences:
    """Two parsers on the same gold trees.

    Attributes
    ----------
    first, second : Evaluation
    sentences : list of Difference
        Those on which they differ: the largest difference in F1 first, then in brackets, then in order.
    """

    first: Evaluation
    second: Evaluation
    sentences: list[Difference]

    @property
    def n_better(self) -> tuple[int, int]:
        """On how many sentences the first and the second has the higher F1."""
        pairs = [(each.first_f1, each.second_f1) for each in self.sentences]
        return sum(one > other for one, other in pairs), sum(one < other for one, other in pairs)

    def by_label(self) -> list[tuple[str, int, int]]:
        """For every label how many gold brackets only the first and only the second has; most first."""
        counts: dict[str, list[int]] = {}
        for each in self.sentences:
            for place, brackets in enumerate((each.only_first, each.only_second)):
                for bracket in brackets:
                    counts.setdefault(bracket.label, [0, 0])[place] += 1
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
            raise TreebankError(f"{len(lines[-1])} trees, but {len(gold_lines)} in {gold_name}; one a line each", name)
        evaluations.append(score(gold_name, gold_text, name, text, parameters))
    sentences = []
    rows = zip(*(evaluation.iterate_rows() for evaluation in evaluations), strict=True)
    for number, (own_rows, own_lines) in enumerate(zip(rows, zip(*lines, strict=True), strict=True), start=1):
        f1 = [f1_of_row(row) for row in own_rows]
        difference = difference_of(number, [tree_of_line(line) for line in own_lines], f1, parameters)
        if difference is not None:
            sentences.append(difference)
    sentences.sort(key=lambda each: (-abs(each.first_f1 - each.second_f1), -each.n_brackets, each.number))
    return Differences(evaluations[0], evaluations[1], sentences)


def lines_of(content: bytes) -> list[str]:
    """The lines of a file."""
    return content.decode("utf-8", "backslashreplace").removesuffix("\n").split("\n") if content else []


def tree_of_line(line: str) -> Tree | None:
    """The tree of a line, if it is one."""
    try:
        trees = list(read_brackets([line], "")) if line.strip() else []
    except TreebankError:
        return None
    return trees[0] if len(trees) == 1 else None


def f1_of_row(row: Sequence[int]) -> float:
    """A sentence's F1; 0 if it cannot be scored, 100 if there is nothing to find and nothing found."""
    _, status, matched, gold, test, *_ = row
    if status:
        return 0.0
    return BracketCounts(gold, test, matched).f1 if gold or test else 100.0


def difference_of(
    number: int, trees: Sequence[Tree | None], f1: Sequence[float], parameters: Parameters
) -> Difference | None:
    """How two trees differ in what counts; ``None`` if they do not, or without a gold tree."""
    gold, *tests = trees
    if gold is None:
        return None
    sentence = words(gold)
    own = [tree if tree is not None and words(tree) == sentence else None for tree in tests]
    nothing = Marks([], scored_brackets(gold, parameters), [], [])
    first, second = (nothing if tree is None else mark_brackets(gold, tree, parameters) for tree in own)
    found = [{bracket.node for bracket in marks.found} for marks in (first, second)]
    wrong = [{bracket[1:4] for bracket in marks.wrong} for marks in (first, second)]
    difference = Difference(
        number,
        gold,
        own[0],
        own[1],
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
