"""EVALB's counts the slow and obvious way: every step a loop over everything, nothing shared with the kernel.

A line is cut into tokens; a sentence is compared by trying every gold bracket with every test bracket.
"""

import re
from dataclasses import dataclass, field

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


def read(line: bytes, parameters: Parameters) -> Sentence:
    sentence = Sentence()
    open_brackets: list[int] = []
    has_stray_text = False
    for token in TOKEN.finditer(line):
        if token["tag"] is not None:
            read_word(sentence, token["tag"].decode(), token["word"], open_brackets, parameters)
        elif token["label"] is not None:
            open_brackets.append(len(sentence.brackets))
            sentence.brackets.append([len(sentence.words), -1, re.split("[-=]", token["label"].decode())[0]])
        elif token["close"] is not None and open_brackets:
            sentence.brackets[open_brackets.pop()][1] = len(sentence.words)
        elif token["close"] is not None:
            sentence.n_errors += 1
        else:
            has_stray_text = True
    sentence.n_errors += has_stray_text + bool(open_brackets)
    return sentence


def read_word(sentence: Sentence, tag: str, word: bytes, open_brackets: list[int], parameters: Parameters) -> None:
    if tag not in parameters.delete_labels_for_length:
        sentence.length += 1
    if tag in parameters.quote_labels and word in QUOTES:
        place = {"index": len(sentence.words), "tag": tag, "word": word}
        place |= {"inside": list(open_brackets), "n_before": len(sentence.brackets)}
        sentence.quotes.append(place)
    if tag not in parameters.delete_labels:
        sentence.words.append([tag, word])


def equal(left: object, right: object, pairs: object) -> bool:
    return left == right or (left, right) in pairs or (right, left) in pairs


def kept(sentence: Sentence, parameters: Parameters) -> list:
    return [
        bracket
        for bracket in sentence.brackets
        if bracket[0] != bracket[1]
        and not any(equal(bracket[2], label, parameters.eq_labels) for label in parameters.delete_labels)
    ]


def put_back(sentence: Sentence, which: int) -> None:
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


def repair_quotes(gold: Sentence, test: Sentence, parameters: Parameters) -> None:
    for t, test_quote in enumerate(test.quotes):
        index = test_quote["index"]
        for g, gold_quote in enumerate(gold.quotes):
            if gold_quote["index"] != index:
                continue
            gold_gone = gold_quote["tag"] in parameters.delete_labels
            test_gone = test_quote["tag"] in parameters.delete_labels
            if gold_gone and not test_gone:
                put_back(gold, g)
            elif test_gone and not gold_gone:
                put_back(test, t)


def n_matched(gold: list, test: list, parameters: Parameters) -> int:
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


def score_line(gold_line: bytes, test_line: bytes, parameters: Parameters) -> tuple[tuple[int, ...], int]:
    """The row of a sentence, and its number of errors.

    The row has length, status, matched, gold, test, crossing, words, tags, all_gold, all_test, all_words.
    """
    gold, test = read(gold_line, parameters), read(test_line, parameters)
    n_errors = gold.n_errors + test.n_errors
    charged = (len(kept(gold, parameters)), len(kept(test, parameters)), len(gold.words))
    if not test.words:
        return (gold.length, 2, 0, 0, 0, 0, 0, 0, *charged), n_errors
    if len(gold.words) != len(test.words):
        repair_quotes(gold, test, parameters)
    eq_words = [tuple(word.encode() for word in pair) for pair in parameters.eq_words]
    pairs = list(zip(gold.words, test.words, strict=False))
    if len(gold.words) != len(test.words) or not all(equal(g[1], t[1], eq_words) for g, t in pairs):
        return (gold.length, 1, 0, 0, 0, 0, 0, 0, *charged), n_errors + 1
    tags = sum(equal(g[0], t[0], parameters.eq_labels) for g, t in pairs)
    gold_kept, test_kept = kept(gold, parameters), kept(test, parameters)
    counts = (n_matched(gold_kept, test_kept, parameters), len(gold_kept), len(test_kept))
    row = (gold.length, int(n_errors > 0), *counts, n_crossing(gold_kept, test_kept), len(gold.words), tags)
    return (*row, len(gold_kept), len(test_kept), len(gold.words)), n_errors
