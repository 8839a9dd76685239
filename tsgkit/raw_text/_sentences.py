"""Raw sentences: the lines of text files, streamed, with what is left out counted.

First stage of learning from raw text. A line is a sentence. Empty lines and sentences that are too long are left out;
a file that is no text, or whose words are not those of the treebank, is an error.
"""

import hashlib
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice

from tsgkit.errors import TreebankError, UsageError
from tsgkit.parsing._base import require_words
from tsgkit.parsing._lines import ParsePlan
from tsgkit.raw_text._settings import RawTextSettings
from tsgkit.treebank._sources import decode_lines

# The first sentences whose words are compared with those of the treebank, and the least share of known ones. Raw text
# of the same language and tokenisation has over half even beside a few hundred trees.
COMPARED_SENTENCES = 1000
LEAST_KNOWN = 0.1


class RawSentences:
    """The sentences of some files, read again with every iteration.

    Parameters
    ----------
    sources : sequence of paths
        Text files, plain, gzip or xz, one sentence per line.
    settings : RawTextSettings
    encoding : str

    Attributes
    ----------
    counts : dict
        Of the last iteration: ``lines`` that were read, ``empty`` and ``too_long`` ones, and ``used`` sentences.
    digest : str
        Of the sentences of the last iteration.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with open(f"{folder}/text", "w") as file:
    ...         _ = file.write("the dog barks .\\n\\nit rains all day long .\\n")
    ...     raw = RawSentences([f"{folder}/text"], RawTextSettings(max_length=5))
    ...     list(raw), raw.counts
    (['the dog barks .'], {'lines': 3, 'empty': 1, 'too_long': 1, 'used': 1})
    """

    def __init__(
        self, sources: Sequence[str | os.PathLike[str]], settings: RawTextSettings, encoding: str = "utf-8"
    ) -> None:
        if "-" in map(str, sources):
            raise UsageError("raw text cannot come from stdin: it is read more than once; name a file")
        self.sources, self.settings, self.encoding = [os.fspath(source) for source in sources], settings, encoding
        self.counts: dict[str, int] = {}
        self.digest = ""

    def __iter__(self) -> Iterator[str]:
        """The sentences, their words separated by single spaces."""
        counts = dict.fromkeys(("lines", "empty", "too_long", "used"), 0)
        words_of = ParsePlan(tokenize=self.settings.tokenize).sentence_reader()
        digest = hashlib.sha256()
        for line in self.lines():
            counts["lines"] += 1
            words = words_of(line)[0]
            kind = "empty" if not words else "too_long" if len(words) > self.settings.max_length else "used"
            counts[kind] += 1
            if kind == "used":
                sentence = " ".join(words)
                digest.update(f"{sentence}\n".encode())
                yield sentence
                if counts["used"] == self.settings.sentences:
                    break
        self.counts, self.digest = counts, digest.hexdigest()

    def lines(self) -> Iterator[str]:
        """All lines of all files."""
        for source in self.sources:
            for number, line in enumerate(decode_lines(source, self.encoding), start=1):
                if "\0" in line:
                    raise TreebankError("a null character: this is no text file", source, number)
                yield line

    def require_known(self, vocabulary: Collection[str]) -> float:
        """The share of words with letters, in the first sentences, that the treebank has.

        Raises
        ------
        UsageError
            If there is no sentence, or hardly any word is known: another language, script or tokenisation.
        """
        words = [word for sentence in islice(self, COMPARED_SENTENCES) for word in letters(sentence.split(" "))]
        names = ", ".join(self.sources) or "raw text"
        if not words:
            raise UsageError(f"{names}: no sentences of at most {self.settings.max_length} words with letters in them")
        share = sum(word in vocabulary or word.lower() in vocabulary for word in words) / len(words)
        if share < LEAST_KNOWN:
            raise UsageError(
                f"{names}: of the words in the first sentences, the treebank has only {share:.1%}; is this text in"
                " the language and script of the treebank, and split into words as it is?"
            )
        return share


class GivenSentences(RawSentences):
    """Raw sentences that are in memory.

    Parameters
    ----------
    sentences : iterable of sequences of str
        The words of each.
    settings : RawTextSettings
    """

    def __init__(self, sentences: Iterable[Sequence[str]], settings: RawTextSettings) -> None:
        super().__init__([], settings)
        self.sentences = [require_words(sentence) for sentence in sentences]
        for sentence in self.sentences:
            if strays := [word for word in sentence if not word or any(map(str.isspace, word))]:
                raise UsageError(f"raw text: {strays[0]!r} is no word: words are not empty and have no spaces in them")

    def lines(self) -> Iterator[str]:
        return map(" ".join, self.sentences)


def letters(words: Iterable[str]) -> Iterator[str]:
    """The words that contain a letter."""
    return (word for word in words if any(map(str.isalpha, word)))
