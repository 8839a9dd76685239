"""EVALB's counts the slow and obvious way: every step a loop over everything, nothing shared with the kernel.

A line is cut into tokens; a sentence is compared by trying every gold bracket with every test bracket. All texts are
bytes, so that the lines need not be UTF-8.
"""

import re
from dataclasses import asdict, dataclass, field
from typing import Any

from tsgkit.evaluation import Parameters

TOKEN = re.compile(
    rb"\((?P<tag>[^ \t\n\v\f\r()]*)[ \t\n\v\f\r]+(?P<word>[^ \t\n\v\f\r()]*)\)"
    rb"|\((?P<label>[^ \t\n\v\f\r()]*)"
    rb"|(?P<close>\))"
    rb"|(?P<stray>[^ \t\n\v\f\r()]+)"
)
QUOTES = (b"'", b'"', b"/")


@dataclass
class Sentence:
    """One line: words as ``[tag, word]``, brackets as ``[start, end, label]``, quotes as dicts."""

    words: list = field(default_factory=list)
    brackets: list = field(default_factory=list)
    quotes: list = field(default_factory=list)
    length: int = 0
    n_errors: int = 0
    # All words, the deleted ones too, and the brackets over them.
    all_words: list = field(default_factory=list)
    all_brackets: list = field(default_factory=list)


class BytesParameters:
    """Parameters with the labels and words as bytes."""

    def __init__(self, parameters: Parameters):
        self.__dict__ = {name: in_bytes(value) for name, value in asdict(parameters).items()}


def in_bytes(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(in_bytes, value))
    return value.encode() if isinstance(value, str) else value


def c_string(text: bytes) -> bytes:
    """What a C program sees of a text: it ends at a NUL byte."""
    return text.partition(b"\0")[0]


def read(line: bytes, parameters: Any) -> Sentence:
    sentence = Sentence()
    open_brackets: list[int] = []
    has_stray_text = False
    for token in TOKEN.finditer(line):
        if token["tag"] is not None:
            read_word(sentence, c_string(token["tag"]), c_string(token["word"]), open_brackets, parameters)
        elif token["label"] is not None:
            open_brackets.append(len(sentence.brackets))
            label = re.split(b"[-=]", c_string(token["label"]))[0]
            sentence.brackets.append([len(sentence.words), -1, label])
            sentence.all_brackets.append([len(sentence.all_words), -1, label])
        elif token["close"] is not None and open_brackets:
            sentence.all_brackets[open_brackets[-1]][1] = len(sentence.all_words)
            sentence.brackets[open_brackets.pop()][1] = len(sentence.words)
        elif token["close"] is not None:
            sentence.n_errors += 1
        elif token["stray"].startswith(b"\0"):
            break
        else:
            has_stray_text = True
    sentence.n_errors += has_stray_text + bool(open_brackets)
    return sentence


def read_word(sentence: Sentence, tag: bytes, word: bytes, open_brackets: list[int], parameters: Any) -> None:
    sentence.all_words.append([tag, word])
    if tag not in parameters.delete_labels_for_length:
        sentence.length += 1
    if tag in parameters.quote_labels and word in QUOTES:
        quote = {"index": len(sentence.words), "tag": tag, "word": word}
        quote |= {"inside": list(open_brackets), "n_before": len(sentence.brackets)}
        sentence.quotes.append(quote)
    if tag not in parameters.delete_labels:
        sentence.words.append([tag, word])


def equal(left: object, right: object, pairs: object) -> bool:
    return left == right or (left, right) in pairs or (right, left) in pairs


def kept(sentence: Sentence, parameters: Any) -> list:
    return counted_brackets(sentence.brackets, parameters)


def counted_brackets(brackets: list, parameters: Any) -> list:
    return [
        bracket
        for bracket in brackets
        if bracket[0] != bracket[1]
        and not any(equal(bracket[2], label, parameters.eq_labels) for label in parameters.delete_labels)
    ]


def restore(sentence: Sentence, which: int) -> None:
    quote = sentence.quotes[which]
    sentence.words.insert(quote["index"], [quote["tag"], quote["word"]])
    for number, bracket in enumerate(sentence.brackets):
        if number >= quote["n_before"]:
            bracket[0] += 1
            bracket[1] += 1
        if number in quote["inside"]:
            bracket[1] += 1
    for later in sentence.quotes[which:]:
        later["index"] += 1


def repair_quotes(gold: Sentence, test: Sentence, parameters: Any) -> None:
    for t, test_quote in enumerate(test.quotes):
        index = test_quote["index"]
        for g, gold_quote in enumerate(gold.quotes):
            if gold_quote["index"] != index:
                continue
            gold_deleted = gold_quote["tag"] in parameters.delete_labels
            test_deleted = test_quote["tag"] in parameters.delete_labels
            if gold_deleted and not test_deleted:
                restore(gold, g)
            elif test_deleted and not gold_deleted:
                restore(test, t)


def deleted_places(sentence: Sentence, parameters: Any) -> list[int]:
    return [number for number, (tag, _) in enumerate(sentence.all_words) if tag in parameters.delete_labels]


def n_matched(gold: list, test: list, parameters: Any) -> int:
    free = list(test)
    for gold_start, gold_end, gold_label in gold:
        for number, (start, end, label) in enumerate(free):
            same_label = not parameters.labeled or equal(gold_label, label, parameters.eq_labels)
            if (start, end) == (gold_start, gold_end) and same_label:
                del free[number]
                break
    return len(test) - len(free)


def n_crossing(gold: list, test: list) -> int:
    return sum(
        any(g_start < start < g_end < end or start < g_start < end < g_end for g_start, g_end, _ in gold)
        for start, end, _ in test
    )


def aligned_counts(gold: Sentence, test: Sentence, parameters: Any) -> tuple[int, ...] | None:
    """matched, gold, test, words and tags if the gold tags say which words are deleted; None if the words differ."""
    pairs, lone_gold, lone_test = [], [], []
    g = t = 0
    while g < len(gold.all_words) or t < len(test.all_words):
        both = g < len(gold.all_words) and t < len(test.all_words)
        if both and equal(gold.all_words[g][1], test.all_words[t][1], parameters.eq_words):
            pairs.append((g, t))
            g, t = g + 1, t + 1
        elif g < len(gold.all_words) and gold.all_words[g][0] in parameters.delete_labels:
            lone_gold.append(g)
            g += 1
        elif t < len(test.all_words) and test.all_words[t][0] in parameters.delete_labels:
            lone_test.append(t)
            t += 1
        else:
            return None
    left = [(g, t) for g, t in pairs if gold.all_words[g][0] not in parameters.delete_labels]
    brackets = []
    for tree, places in ((gold, [g for g, _ in left]), (test, [t for _, t in left])):
        spans = [
            [sum(place < start for place in places), sum(place < end for place in places), label]
            for start, end, label in tree.all_brackets
        ]
        brackets.append(counted_brackets(spans, parameters))
    tags = sum(equal(gold.all_words[g][0], test.all_words[t][0], parameters.eq_labels) for g, t in left)
    return n_matched(*brackets, parameters), len(brackets[0]), len(brackets[1]), len(left), tags


def score_line(gold_line: bytes, test_line: bytes, parameters: Parameters) -> tuple[tuple[int, ...], int]:
    """The row of a sentence, and its number of errors.

    The row has length, status, matched, gold, test, crossing, words, tags, all_gold, all_test, all_words, and matched,
    gold, test, words and tags of the aligned score.
    """
    as_bytes = BytesParameters(parameters)
    return score_trees(read(gold_line, as_bytes), read(test_line, as_bytes), as_bytes)


def score_trees(gold: Sentence, test: Sentence, parameters: Any) -> tuple[tuple[int, ...], int]:
    aligned = None if gold.n_errors or test.n_errors else aligned_counts(gold, test, parameters)
    row, n_errors = evalb_row(gold, test, parameters)
    all_gold, all_test, all_words = row[8:]
    if row[1] == 0 and deleted_places(gold, parameters) == deleted_places(test, parameters):
        # The trees have deleted the same occurrences, whatever words stand there: EVALB has aligned the others.
        aligned = (*row[2:5], *row[6:8])
    return (*row, *(aligned or (0, all_gold, all_test, all_words, 0))), n_errors


def evalb_row(gold: Sentence, test: Sentence, parameters: Any) -> tuple[tuple[int, ...], int]:
    n_errors = gold.n_errors + test.n_errors
    counted = (len(kept(gold, parameters)), len(kept(test, parameters)), len(gold.words))
    if not test.words:
        return (gold.length, 2, 0, 0, 0, 0, 0, 0, *counted), n_errors
    if len(gold.words) != len(test.words):
        repair_quotes(gold, test, parameters)
    pairs = list(zip(gold.words, test.words, strict=False))
    if len(gold.words) != len(test.words) or not all(equal(g[1], t[1], parameters.eq_words) for g, t in pairs):
        return (gold.length, 1, 0, 0, 0, 0, 0, 0, *counted), n_errors + 1
    tags = sum(equal(g[0], t[0], parameters.eq_labels) for g, t in pairs)
    gold_kept, test_kept = kept(gold, parameters), kept(test, parameters)
    counts = (n_matched(gold_kept, test_kept, parameters), len(gold_kept), len(test_kept))
    row = (gold.length, int(n_errors > 0), *counts, n_crossing(gold_kept, test_kept), len(gold.words), tags)
    return (*row, len(gold_kept), len(test_kept), len(gold.words)), n_errors


@dataclass
class Files:
    """What two files have: rows of the pairs of lines, errors of all lines, and the totals of the strict score."""

    rows: list = field(default_factory=list)
    n_errors: list = field(default_factory=list)
    gold: int = 0
    test: int = 0
    words: int = 0


def lines_of(content: bytes) -> list[bytes]:
    content = content.removeprefix(b"\xef\xbb\xbf")
    return content.removesuffix(b"\n").split(b"\n") if content else []


def score_files(gold: bytes, test: bytes, parameters: Parameters) -> Files:
    as_bytes = BytesParameters(parameters)
    gold_trees, test_trees = ([read(line, as_bytes) for line in lines_of(content)] for content in (gold, test))
    files = Files()
    for gold_tree, test_tree in zip(gold_trees, test_trees, strict=False):
        row, n_errors = score_trees(gold_tree, test_tree, as_bytes)
        files.rows.append(row)
        files.n_errors.append(n_errors)
    n_pairs = len(files.rows)
    # The first line without a partner is an error, besides those of its syntax if it is a gold line.
    if len(gold_trees) > n_pairs:
        files.n_errors.append(1 + gold_trees[n_pairs].n_errors)
    elif len(test_trees) > n_pairs:
        files.n_errors.append(1)
    files.gold = sum(row[8] for row in files.rows) + sum(len(kept(tree, as_bytes)) for tree in gold_trees[n_pairs:])
    files.test = sum(row[9] for row in files.rows) + sum(len(kept(tree, as_bytes)) for tree in test_trees[n_pairs:])
    files.words = sum(row[10] for row in files.rows) + sum(len(tree.words) for tree in gold_trees[n_pairs:])
    return files
