"""Classes from Unicode's categories and learned suffixes, for any language: the unknown-word model ``unicode``."""

import unicodedata
from collections.abc import Collection, Sequence
from functools import lru_cache

from tsgkit.treebank.unknown._model import ROOT_CLASS, UnknownWordModel

LETTERS = frozenset({"lower", "upper", "letter"})
KINDS = {
    "Ll": "lower",
    "Lu": "upper",
    "Lt": "upper",
    "Lo": "letter",
    "Lm": "mark",
    "Cf": "mark",
    "Pd": "dash",
}
KINDS_OF_GROUP = {"M": "mark", "N": "num", "P": "punct"}


def unicode_classes(word: str, is_first: bool, vocabulary: Collection[str], max_suffix: int) -> list[str]:
    """Classes from Unicode's categories and the end of the word, finest first.

    The parts of a name are, if they apply: script, case (``a``, ``Aa``, ``AA``, ``aA``), ``num``, ``dash``, ``punct``,
    ``sym``, and ``*`` with a suffix. From fine to coarse, the suffix gets shorter and is dropped, and then the last
    part is dropped, one at a time. A first word whose lower-case form is in the vocabulary is classed as that form.

    Examples
    --------
    >>> unicode_classes("Übung", False, (), 2)
    ['UNK-latin-Aa-*ng', 'UNK-latin-Aa-*g', 'UNK-latin-Aa', 'UNK-latin', 'UNK']
    >>> unicode_classes("東京", False, (), 2)
    ['UNK-cjk-*京', 'UNK-cjk', 'UNK']
    """
    lowered = word.lower()
    text = unicodedata.normalize("NFC", lowered if is_first and lowered in vocabulary else word)
    clusters = split_clusters(text)
    # A word of numeral ideographs only is a number; a numeral among other ideographs is a letter.
    kinds = [("num", "") if text.isnumeric() else character_kind(cluster[0]) for cluster in clusters]
    parts = [ROOT_CLASS, *sorted({script for _, script in kinds if script}), *letter_case(kinds)]
    parts += [kind for kind in ("num", "dash", "punct", "sym") if any(kind == found for found, _ in kinds)]
    suffix = ["*" + end.lower() for end in suffixes(clusters, kinds, max_suffix)]
    whole = "-".join(parts)
    return [f"{whole}-{end}" for end in suffix] + ["-".join(parts[:end]) for end in range(len(parts), 0, -1)]


def suffixes(clusters: Sequence[str], kinds: Sequence[tuple[str, str]], max_suffix: int) -> list[str]:
    """The suffixes of a word, longest first: letters of one script, and never the whole word."""
    length, limit = 0, min(max_suffix, len(clusters) - 1)
    script = kinds[-1][1] if kinds else ""
    while length < limit and kinds[-1 - length][0] in LETTERS and kinds[-1 - length][1] == script:
        length += 1
    return ["".join(clusters[-size:]) for size in range(length, 0, -1)]


def letter_case(kinds: Sequence[tuple[str, str]]) -> list[str]:
    """The part of a class for case: none for scripts without case."""
    cased = [kind for kind, _ in kinds if kind in ("lower", "upper")]
    if not cased:
        return []
    n_upper = cased.count("upper")
    if not n_upper:
        return ["a"]
    if n_upper == 1 and cased[0] == "upper":
        return ["Aa"]
    return ["AA" if n_upper == len(cased) else "aA"]


def split_clusters(text: str) -> list[str]:
    """Characters with the marks that combine with them.

    Examples
    --------
    >>> [len(cluster) for cluster in split_clusters("x\\u0301y")]
    [2, 1]
    """
    if text.isascii():
        return list(text)
    clusters: list[str] = []
    for char in text:
        if clusters and character_kind(char)[0] == "mark":
            clusters[-1] += char
        else:
            clusters.append(char)
    return clusters


@lru_cache(1 << 16)
def character_kind(char: str) -> tuple[str, str]:
    """The kind of a character, and of a letter its script; modifier letters count as marks.

    Examples
    --------
    >>> [character_kind(char) for char in "aЖ7"]
    [('lower', 'latin'), ('upper', 'cyrillic'), ('num', '')]
    """
    category = unicodedata.category(char)
    kind = KINDS.get(category) or KINDS_OF_GROUP.get(category[0], "sym")
    if kind not in LETTERS:
        return kind, ""
    # The Unicode name of a letter begins with its script; a variant of width or style takes that of its plain form.
    plain = unicodedata.normalize("NFKC", char)[0]
    return kind, unicodedata.name(plain, "unnamed").split()[0].lower()


MODEL = UnknownWordModel(unicode_classes, has_min_types=True)
