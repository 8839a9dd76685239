"""Unknown words: rare words of the training trees stand as classes, so that new words have a symbol.

`UnknownWords.fit` turns word counts into a `Lexicon`, the closed vocabulary of a prepared corpus. Each
model names for a word a chain of classes from fine to coarse; the finest that training supports is its.
"""

import itertools
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from typing import Any

from tsgkit.errors import UsageError
from tsgkit.plain import names_of, settings_of

ROOT_CLASS = "UNK"
ENGLISH_SUFFIXES = ("ed", "ing", "ion", "er", "est", "ly", "ity", "y", "al")
MAX_MEMO = 1 << 18
NO_COUNTS: Mapping[str, int] = {}


@dataclass(frozen=True)
class UnknownWords:
    """How rare and new words are classed.

    Parameters
    ----------
    model : {"unicode", "signature", "three", "one"}
        ``unicode``: script, case, digits and punctuation, and the longest suffix that enough training
        words have; for any language. ``signature``: the classes of the Berkeley parser, for English.
        ``three``: has a digit, capitalised, other. ``one``: a single class.
    threshold : int
        Words seen at most so often in training are replaced by their class.
    min_types : int
        For ``unicode``: how many rare training words a class must have; smaller ones join a coarser one.
    max_suffix : int
        For ``unicode``: the length of the longest suffix, in letters.

    Examples
    --------
    >>> lexicon = UnknownWords("signature", threshold=1).fit({"the": 9, "walked": 1, "IBM": 1})
    >>> [lexicon.lookup(word, 1) for word in ("the", "walked", "talked", "Unix", "walks")]
    ['the', 'UNK-LC-ed', 'UNK-LC-ed', 'UNK-CAPS', 'UNK-LC-ed']
    """

    model: str = "unicode"
    threshold: int = 1
    min_types: int = 10
    max_suffix: int = 5

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            raise UsageError(f"unknown-word model {self.model!r}: not one of {', '.join(MODELS)}")
        for name, minimum in (("threshold", 0), ("min_types", 1), ("max_suffix", 0)):
            if getattr(self, name) < minimum:
                raise UsageError(f"unknown words: {name} is {getattr(self, name)}, must be at least {minimum}")

    def fit(self, counts: Mapping[str, int], first_counts: Mapping[str, int] = NO_COUNTS) -> "Lexicon":
        """The closed vocabulary of a treebank.

        Parameters
        ----------
        counts : mapping
            How often each word form occurs in the training trees.
        first_counts : mapping
            How often each is the first word of its tree. Classes for first words exist only if training
            has some, so without this mapping a first word is classed like any other.
        """
        rare = frozenset(word for word, count in counts.items() if count <= self.threshold)
        known = frozenset(counts) - rare
        # With nothing rare, words seen once are the best guess at what new ones look like, or else all words.
        once = frozenset(word for word, count in counts.items() if count == 1)
        evidence = [
            (word, is_first)
            for word in rare or once or known
            for is_first in (False, True)
            if (first_counts.get(word, 0) > 0 if is_first else counts[word] > first_counts.get(word, 0))
        ]
        chain, vocabulary = MODELS[self.model], frozenset(counts)
        # A set, so that a word counts once where its place makes no difference.
        chains = {(word, *chain(word, is_first, vocabulary, self.max_suffix)) for word, is_first in evidence}
        min_types = self.min_types if self.model == "unicode" else 1
        classes = populated((names for _, *names in chains), min_types)
        return Lexicon(self, known, rare, classes)

    def to_dict(self) -> dict[str, Any]:
        """The settings as JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "UnknownWords":
        """The settings that `to_dict` gave; a ValueError if these are not some."""
        return settings_of(cls, values)


@dataclass(frozen=True)
class Lexicon:
    """The closed vocabulary: words that stand for themselves, and classes for all others.

    A *symbol* is what a grammar has at its leaves: the name of a class, or a word. Names of classes start
    with ``UNK``; the symbol of a word that starts so too (or with backslashes and then so) has one more
    backslash before it, so that no word is ever taken for a class.

    Attributes
    ----------
    settings : UnknownWords
    known, rare : frozenset of str
        The training words that keep their own symbol, and those that are replaced.
    classes : dict
        Class to the number of rare training words in it, at least one; a word that is classed in one way
        when first and in another when not counts for both. When nothing is rare, words seen once are
        counted, or else all words.

    Examples
    --------
    >>> lexicon = UnknownWords("three", threshold=1).fit({"a": 5, "UNK": 2, "7": 1, "Rome": 1, "cat": 1})
    >>> [lexicon.lookup(word, 3) for word in ("a", "UNK", "1987", "Paris", "dog")]
    ['a', '\\\\UNK', 'UNK-NUM', 'UNK-CAPS', 'UNK']
    """

    settings: UnknownWords
    known: frozenset[str]
    rare: frozenset[str]
    classes: dict[str, int]

    @cached_property
    def words(self) -> frozenset[str]:
        """All words of the training trees."""
        return self.known | self.rare

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """All symbols that `lookup` can return."""
        return frozenset(map(word_symbol, self.known)) | frozenset(self.classes) | {self.last_resort}

    @property
    def replaces(self) -> bool:
        """Whether the training trees have classes at their leaves, so that a grammar learns their tags.

        If not (threshold 0, or every word is frequent), `lookup` still gives new words a class; whoever
        builds the grammar must then weigh tags by the classes that `classify` gives the training words.
        """
        return bool(self.rare)

    @cached_property
    def last_resort(self) -> str:
        """The class of words that have nothing in common with any class: ``UNK``, or else the largest."""
        if ROOT_CLASS in self.classes or not self.classes:
            return ROOT_CLASS
        return max(self.classes, key=lambda name: (self.classes[name], name))

    def lookup(self, word: str, position: int) -> str:
        """The symbol of a word: its own if known, else its class.

        Parameters
        ----------
        word : str
        position : int
            In the sentence, counted from 0.
        """
        symbol = self._known_symbols.get(word)
        return self.classify(word, position) if symbol is None else symbol

    def classify(self, word: str, position: int) -> str:
        """The class of a word, also of a known one."""
        key = (word, position == 0)
        name = self._memo.get(key)
        if name is None:
            chain = MODELS[self.settings.model](*key, self.words, self.settings.max_suffix)
            name = next((name for name in chain if name in self.classes), self.last_resort)
            if len(self._memo) >= MAX_MEMO:
                self._memo.clear()
            self._memo[key] = name
        return name

    def to_dict(self) -> dict[str, Any]:
        """The vocabulary as JSON values."""
        return {
            "settings": self.settings.to_dict(),
            "known": sorted(self.known),
            "rare": sorted(self.rare),
            "classes": dict(sorted(self.classes.items())),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Lexicon":
        """The vocabulary that `to_dict` gave; a ValueError if this is none."""
        settings = UnknownWords.from_dict(values["settings"])
        known, rare = (frozenset(names_of(values[name], name)) for name in ("known", "rare"))
        names_of(list(values["classes"]), "classes")
        if not all(type(count) is int and count > 0 for count in values["classes"].values()):
            raise ValueError("classes have no counts")
        return cls(settings, known, rare, dict(values["classes"]))

    @cached_property
    def _known_symbols(self) -> dict[str, str]:
        return {word: word_symbol(word) for word in self.known}

    @cached_property
    def _memo(self) -> dict[tuple[str, bool], str]:
        return {}


def count_words(sentences: Iterable[Sequence[str]]) -> tuple[Counter[str], Counter[str]]:
    """How often each word occurs, and how often as the first of its sentence: what `fit` needs.

    Examples
    --------
    >>> counts, first_counts = count_words([["It", "rains"], ["It", "was", "It"]])
    >>> counts["It"], first_counts["It"]
    (3, 2)
    """
    counts: Counter[str] = Counter()
    first_counts: Counter[str] = Counter()
    for sentence in sentences:
        counts.update(sentence)
        first_counts.update(sentence[:1])
    return counts, first_counts


def word_symbol(word: str) -> str:
    r"""The symbol of a known word.

    Examples
    --------
    >>> word_symbol("dog"), word_symbol("UNK-LC")
    ('dog', '\\UNK-LC')
    """
    return "\\" + word if word.lstrip("\\").startswith(ROOT_CLASS) else word


def symbol_word(symbol: str) -> str | None:
    r"""The word of a symbol; None for a class.

    Examples
    --------
    >>> symbol_word("dog"), symbol_word("\\UNK-LC"), symbol_word("UNK-LC")
    ('dog', 'UNK-LC', None)
    """
    if symbol.startswith(ROOT_CLASS):
        return None
    return symbol[1:] if symbol.lstrip("\\").startswith(ROOT_CLASS) else symbol


def populated(chains: Iterable[Sequence[str]], min_types: int) -> dict[str, int]:
    """Classes with at least `min_types` members; smaller ones give theirs to the next coarser.

    Parameters
    ----------
    chains : iterable of sequence of str
        For each member its classes, finest first and ``UNK`` last; what follows a class is always the same.
    min_types : int
        Does not hold for ``UNK``, which takes what is left, if anything is.
    """
    members: Counter[str] = Counter()
    coarser: dict[str, str] = {}
    level: dict[str, int] = {ROOT_CLASS: 0}
    for chain in chains:
        members[chain[0]] += 1
        for place, (name, above) in enumerate(itertools.pairwise(chain)):
            coarser[name], level[name] = above, len(chain) - 1 - place
    for name in sorted(coarser, key=level.__getitem__, reverse=True):
        if members[name] < min_types:
            members[coarser[name]] += members.pop(name, 0)
    return {name: count for name, count in sorted(members.items()) if count}


def signature_chain(word: str, is_first: bool, vocabulary: Collection[str], max_suffix: int = 0) -> list[str]:
    """Classes of the Berkeley parser, finest first.

    Going coarser, ``-KNOWNLC`` is dropped, then ``-INITC`` becomes ``-CAPS``, then parts go from the end.

    Examples
    --------
    >>> signature_chain("Quickly", True, {"quickly"})
    ['UNK-INITC-KNOWNLC-ly', 'UNK-INITC-ly', 'UNK-CAPS-ly', 'UNK-CAPS', 'UNK']
    """
    n_capitals = sum(is_capital(char) for char in word)
    has_digit = any(map(str.isdecimal, word))
    lowered = word.lower()
    first_word_parts, case = [], []
    if word and is_capital(word[0]):
        case = ["-CAPS"]
        if is_first and n_capitals == 1:
            first_word_parts = ["-INITC-KNOWNLC", "-INITC"] if lowered in vocabulary else ["-INITC"]
    elif word and not word[0].isalpha() and n_capitals:
        case = ["-CAPS"]
    elif any(map(str.islower, word)):
        case = ["-LC"]
    rest = ["-NUM"] * has_digit + ["-DASH"] * ("-" in word)
    if lowered.endswith("s") and len(word) >= 3:
        rest += ["-s"] * (lowered[-2] not in "siu")
    elif len(word) >= 5 and "-" not in word and not (has_digit and n_capitals):
        rest += ["-" + suffix for suffix in ENGLISH_SUFFIXES if lowered.endswith(suffix)][:1]
    chain = [ROOT_CLASS + part + "".join(rest) for part in first_word_parts]
    parts = case + rest
    return chain + [ROOT_CLASS + "".join(parts[:end]) for end in range(len(parts), -1, -1)]


def three_chain(word: str, is_first: bool, vocabulary: Collection[str], max_suffix: int = 0) -> list[str]:
    """Has a digit, is capitalised, or neither.

    Examples
    --------
    >>> three_chain("B-52", False, ()), three_chain("Rome", False, ()), three_chain("cat", False, ())
    (['UNK-NUM', 'UNK'], ['UNK-CAPS', 'UNK'], ['UNK'])
    """
    if any(map(str.isdecimal, word)):
        return ["UNK-NUM", ROOT_CLASS]
    return ["UNK-CAPS", ROOT_CLASS] if word and is_capital(word[0]) else [ROOT_CLASS]


def one_chain(word: str, is_first: bool, vocabulary: Collection[str], max_suffix: int = 0) -> list[str]:
    """The one class."""
    return [ROOT_CLASS]


def unicode_chain(word: str, is_first: bool, vocabulary: Collection[str], max_suffix: int) -> list[str]:
    """Classes from Unicode's categories and the end of the word, finest first.

    The parts of a name are, as far as they apply: script, case (``a``, ``Aa``, ``AA``, ``aA``), ``num``,
    ``dash``, ``punct``, ``sym``, and ``*`` with a suffix. Going coarser, the suffix gets shorter and goes,
    then the other parts go from the end. A first word whose lower-case form is in the vocabulary is
    classed as that form.

    Examples
    --------
    >>> unicode_chain("Übung", False, (), 2)
    ['UNK-latin-Aa-*ng', 'UNK-latin-Aa-*g', 'UNK-latin-Aa', 'UNK-latin', 'UNK']
    >>> unicode_chain("東京", False, (), 2)
    ['UNK-cjk-*京', 'UNK-cjk', 'UNK']
    """
    lowered = word.lower()
    text = unicodedata.normalize("NFC", lowered if is_first and lowered in vocabulary else word)
    clusters = split_clusters(text)
    # Ideographs that are all numerals make a number; one among others is a letter.
    kinds = [("num", "") if text.isnumeric() else character_kind(cluster[0]) for cluster in clusters]
    parts = [ROOT_CLASS, *sorted({script for _, script in kinds if script}), *letter_case(kinds)]
    parts += [kind for kind in ("num", "dash", "punct", "sym") if any(kind == found for found, _ in kinds)]
    suffix = ["*" + end.lower() for end in suffixes(clusters, kinds, max_suffix)]
    whole = "-".join(parts)
    return [f"{whole}-{end}" for end in suffix] + ["-".join(parts[:end]) for end in range(len(parts), 0, -1)]


def suffixes(clusters: Sequence[str], kinds: Sequence[tuple[str, str]], max_suffix: int) -> list[str]:
    """The ends of a word, longest first: letters of one script, and never the whole word."""
    length, limit = 0, min(max_suffix, len(clusters) - 1)
    script = kinds[-1][1] if kinds else ""
    while length < limit and kinds[-1 - length][0] in LETTERS and kinds[-1 - length][1] == script:
        length += 1
    return ["".join(clusters[-size:]) for size in range(length, 0, -1)]


def letter_case(kinds: Sequence[tuple[str, str]]) -> list[str]:
    """The case part of a class: none for scripts without case."""
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


@lru_cache(1 << 16)
def character_kind(char: str) -> tuple[str, str]:
    """What a character is, and for a letter its script; modifier letters count as marks.

    Examples
    --------
    >>> [character_kind(char) for char in "aЖ7"]
    [('lower', 'latin'), ('upper', 'cyrillic'), ('num', '')]
    """
    category = unicodedata.category(char)
    kind = KINDS.get(category) or KINDS_OF_GROUP.get(category[0], "sym")
    if kind not in LETTERS:
        return kind, ""
    # Unicode names start with the script; a width or style variant has the name of its plain form.
    plain = unicodedata.normalize("NFKC", char)[0]
    return kind, unicodedata.name(plain, "unnamed").split()[0].lower()


@lru_cache(1 << 16)
def is_capital(char: str) -> bool:
    return char.isupper() or char.istitle()


MODELS: dict[str, Callable[[str, bool, Collection[str], int], list[str]]] = {
    "unicode": unicode_chain,
    "signature": signature_chain,
    "three": three_chain,
    "one": one_chain,
}
