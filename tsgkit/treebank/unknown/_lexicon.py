"""The closed vocabulary: frequent training words keep their symbol, rare and new words get that of their class.

Preprocessing, before the flat corpus. `UnknownWords.fit` turns word counts into a `Lexicon`. An unknown-word model
names classes for a word, finest first; the word gets the first of them that rare training words support.
"""

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from tsgkit._plain import names_of, settings_of
from tsgkit._settings import Checked
from tsgkit.errors import UsageError
from tsgkit.treebank.unknown._model import ROOT_CLASS, UNKNOWN_WORDS

MAX_MEMO = 1 << 18
NO_COUNTS: Mapping[str, int] = {}


@dataclass(frozen=True)
class UnknownWords(Checked):
    """How rare and new words are classed.

    Parameters
    ----------
    model : str
        The name of an unknown-word model. ``unicode``: script, case, digits and punctuation, and the longest suffix
        that enough training words have; for any language. ``signature``: the classes of the Berkeley parser, for
        English. ``three``: has a digit, capitalised, other. ``one``: a single class. Other packages may add models.
    threshold : int
        Words that occur at most this often in training are replaced by their class.
    min_types : int
        For ``unicode``: how many rare training words a class must have; smaller ones are merged into a coarser one.
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
        super().__post_init__()
        UNKNOWN_WORDS.require(self.model)
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
            How often each is the first word of its tree. Classes of first words exist only if training has some, so
            without this mapping a first word is classed like any other.
        """
        rare = frozenset(word for word, count in counts.items() if count <= self.threshold)
        known = frozenset(counts) - rare
        # If no word is rare, words that occur once are the best sample of what new words look like, or else all words.
        once = frozenset(word for word, count in counts.items() if count == 1)
        evidence = [
            (word, is_first)
            for word in rare or once or known
            for is_first in (False, True)
            if (first_counts.get(word, 0) > 0 if is_first else counts[word] > first_counts.get(word, 0))
        ]
        vocabulary = frozenset(counts)
        # A set, so that a word counts once if it has the same classes as a first word and elsewhere.
        members = {(word, *self.classes(word, is_first, vocabulary)) for word, is_first in evidence}
        min_types = self.min_types if UNKNOWN_WORDS[self.model].has_min_types else 1
        classes = populated((names for _, *names in members), min_types)
        return Lexicon(self, known, rare, classes)

    def classes(self, word: str, is_first: bool, vocabulary: Collection[str]) -> Sequence[str]:
        """The classes that the model names for a word, finest first.

        Parameters
        ----------
        word : str
        is_first : bool
            Whether it is the first word of its sentence.
        vocabulary : collection of str
            The words of the training trees.

        Raises
        ------
        UsageError
            If the model (of another package) names none, or names that could be taken for words.
        """
        names = UNKNOWN_WORDS[self.model].classes(word, is_first, vocabulary, self.max_suffix)
        are_classes = all(name.startswith(ROOT_CLASS) for name in names) and len(set(names)) == len(names)
        if not names or names[-1] != ROOT_CLASS or not are_classes:
            raise UsageError(
                f"unknown-word model {self.model!r}: the classes of {word!r} are {list(names)}; each must begin with"
                f" {ROOT_CLASS}, none may occur twice, and the last one must be {ROOT_CLASS}"
            )
        return names

    def to_dict(self) -> dict[str, Any]:
        """The settings as JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "UnknownWords":
        """The inverse of `to_dict`; a ValueError if these are not settings.

        Parameters
        ----------
        values : dict
            Plain values.
        """
        return settings_of(cls, values)


@dataclass(frozen=True, repr=False)
class Lexicon:
    """The closed vocabulary: words with their own symbol, and classes for all others.

    A *symbol* is what a grammar has at its leaves: the name of a class, or a word. The names of classes begin with
    ``UNK``; a word that begins with ``UNK``, or with backslashes and then ``UNK``, has one more backslash in its
    symbol, so that no word is taken for a class.

    Attributes
    ----------
    settings : UnknownWords
    known, rare : frozenset of str
        The training words that keep their symbol, and those that are replaced by their class.
    classes : dict
        Class to the number of rare training words in it, at least one; a word that has one class as the first word
        of a sentence and another elsewhere counts for both. If no word is rare, the words that occur once are counted,
        or else all words.

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

    def __repr__(self) -> str:
        return f"<Lexicon of {len(self.words)} words, {len(self.classes)} classes>"

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

        If not (threshold 0, or every word is frequent), `lookup` still gives new words a class; a grammar must then
        weight the tags of a class by the training words for which `classify` returns it.
        """
        return bool(self.rare)

    @cached_property
    def last_resort(self) -> str:
        """The class of words for which no class that the model names exists: ``UNK``, or else the largest class."""
        if ROOT_CLASS in self.classes or not self.classes:
            return ROOT_CLASS
        return max(self.classes, key=lambda name: (self.classes[name], name))

    def lookup(self, word: str, position: int) -> str:
        """The symbol of a word: that of the word if it is known, that of its class otherwise.

        Parameters
        ----------
        word : str
        position : int
            Of the word in its sentence, from 0.
        """
        symbol = self._known_symbols.get(word)
        return self.classify(word, position) if symbol is None else symbol

    def classify(self, word: str, position: int) -> str:
        """The class of a word, known or not.

        Parameters
        ----------
        word : str
        position : int
            Of the word in its sentence, from 0.
        """
        key = (word, position == 0)
        name = self._memo.get(key)
        if name is None:
            finest_first = self.settings.classes(*key, self.words)
            name = next((name for name in finest_first if name in self.classes), self.last_resort)
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
        """The inverse of `to_dict`; a ValueError if these values are not a vocabulary.

        Parameters
        ----------
        values : dict
            Plain values.
        """
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
    """How often each word occurs, and how often as the first word of a sentence: the arguments of `UnknownWords.fit`.

    Parameters
    ----------
    sentences : iterable of sequences of str

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

    Parameters
    ----------
    word : str

    Examples
    --------
    >>> word_symbol("dog"), word_symbol("UNK-LC")
    ('dog', '\\UNK-LC')
    """
    return "\\" + word if word.lstrip("\\").startswith(ROOT_CLASS) else word


def symbol_word(symbol: str) -> str | None:
    r"""The word of a symbol; None for a class.

    Parameters
    ----------
    symbol : str

    Examples
    --------
    >>> symbol_word("dog"), symbol_word("\\UNK-LC"), symbol_word("UNK-LC")
    ('dog', 'UNK-LC', None)
    """
    if symbol.startswith(ROOT_CLASS):
        return None
    return symbol[1:] if symbol.lstrip("\\").startswith(ROOT_CLASS) else symbol


def populated(members: Iterable[Sequence[str]], min_types: int) -> dict[str, int]:
    """Classes with at least `min_types` members; a smaller one is merged into the next coarser.

    Parameters
    ----------
    members : iterable of sequence of str
        For each member its classes, finest first and ``UNK`` last; what follows a class is always the same.
    min_types : int
        Does not apply to ``UNK``, which takes what is left over, if anything is.

    Examples
    --------
    >>> populated([("UNK-a-b", "UNK-a", "UNK"), ("UNK-a-c", "UNK-a", "UNK"), ("UNK-d", "UNK")], 2)
    {'UNK': 1, 'UNK-a': 2}
    """
    n_members: Counter[str] = Counter()
    coarser: dict[str, str] = {}
    depth: dict[str, int] = {ROOT_CLASS: 0}
    for names in members:
        n_members[names[0]] += 1
        for index, (name, next_name) in enumerate(itertools.pairwise(names)):
            coarser[name], depth[name] = next_name, len(names) - 1 - index
    for name in sorted(coarser, key=depth.__getitem__, reverse=True):
        if n_members[name] < min_types:
            n_members[coarser[name]] += n_members.pop(name, 0)
    return {name: count for name, count in sorted(n_members.items()) if count}
