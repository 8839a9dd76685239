"""Sentences whose trees are known in part: brackets around some of their words.

Preprocessing, beside trees. A bracket is ``(label, start, end)`` over the words ``start .. end``, with the label
``None`` if any will do; a tree has it if it has a node with this label, a tag or a phrase, over exactly these words.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from tsgkit.errors import TreebankError, UsageError
from tsgkit.treebank._formats import ENCODING
from tsgkit.treebank._sources import decode_lines

# A label, or None for any, with the first of its words and the first after it.
GivenBracket = tuple[str | None, int, int]
Span = tuple[int, int]
# A sentence whose tree is not known, and many of them as users give them.
OpenSentence = tuple[Sequence[str], Sequence[GivenBracket]]
OpenSentences: TypeAlias = str | os.PathLike[str] | Iterable[str | OpenSentence]
TOKEN = re.compile(r"\((?P<label>[^ \t\r\n\f\v()]*)|(?P<close>\))|(?P<word>[^ \t\r\n\f\v()]+)")
SPACES = " \t\r\n\f\v"
# So many brackets in one sentence can be looked for.
MAX_BRACKETS = 1 << 12


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


def open_sentences(given: OpenSentences) -> Iterator[OpenSentence]:
    """The words and brackets of sentences whose trees are not known; lines without words are left out.

    Parameters
    ----------
    given : path, or iterable of str or (words, brackets)
        A file with one sentence per line; or its lines; or words with brackets as `require_brackets` takes them.

    Examples
    --------
    >>> list(open_sentences(["(NP the cat) ran .", (["it", "ran"], [])]))
    [(['the', 'cat', 'ran', '.'], [('NP', 0, 2)]), (['it', 'ran'], [])]
    """
    if isinstance(given, str | os.PathLike):
        name = os.fspath(given)
        sentences: Iterable[str | OpenSentence] = decode_lines(name, ENCODING)
    else:
        name, sentences = "partial", given
    for number, sentence in enumerate(sentences, start=1):
        open_sentence = bracketed_sentence(sentence, name, number) if isinstance(sentence, str) else sentence
        if open_sentence[0]:
            yield open_sentence


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
    if len(found) > MAX_BRACKETS:
        raise UsageError(f"{len(found)} brackets for one sentence: at most {MAX_BRACKETS} are possible")
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
