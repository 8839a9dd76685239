"""How well the classes of unknown words predict their tags, as a table: every model of unknown words, two thresholds.

Usage:
  tools.bench.classes [options]
  tools.bench.classes -h | --help | --version

Run it as ``python -m tools.bench.classes``, or ``make bench-classes``. It reads the WSJ sample and CRAFT if the
environment variable TSGKIT_TREEBANKS names their folder, else the bundled treebank. An unknown word of the development
part is predicted to have the most frequent tag of its class among the rare training words. Bits are the mean of -log2
of the probability of its tag, the tags of a class being smoothed towards those of all rare words with the weight of two
words.

Options:
  --train=TREEBANK  Training trees, as for `tsgkit prepare`.
  --dev=TREEBANK    Trees with unknown words.
  -h --help         This text.
  --version         The version.
"""

import math
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from nltk.tree import Tree

from tsgkit._cli import command, parse_arguments
from tsgkit.errors import UsageError
from tsgkit.evaluation._report import columns
from tsgkit.treebank import Cleaning, Lexicon, UnknownWords, read_trees
from tsgkit.treebank.unknown import count_words
from tsgkit.treebank.unknown._model import UNKNOWN_WORDS

HEAD = ("treebank", "threshold", "unknown words", "model", "classes", "tags predicted, %", "bits")
N_LEFT = 1
FOLDERS = ("wsj-sample", "craft")
THRESHOLDS = (1, 5)
SMOOTHING = 2
# The words of a sentence with their tags.
Tagged = Sequence[tuple[str, str]]


@command
def main(argv: list[str]) -> int:
    """Print the table."""
    arguments = parse_arguments(__doc__, argv)
    rows = [
        row
        for name, train, dev in treebanks(arguments["--train"], arguments["--dev"])
        for row in rows_of(name, train, dev)
    ]
    print(columns(HEAD, rows, N_LEFT), end="")
    return 0


def treebanks(train: str | None, dev: str | None) -> Iterator[tuple[str, list[Tagged], list[Tagged]]]:
    """Name and sentences of the treebanks of the options, or of those that there are."""
    if (train is None) != (dev is None):
        raise UsageError("--train and --dev go together")
    folder = os.environ.get("TSGKIT_TREEBANKS")
    if train is not None and dev is not None:
        yield os.path.basename(train), tagged(train), tagged(dev)
    elif folder:
        for name in FOLDERS:
            yield name, tagged(f"{folder}/{name}/train.mrg"), tagged(f"{folder}/{name}/dev.mrg")
    else:
        yield "village", tagged("village:train"), tagged("village:dev")


def tagged(source: str) -> list[Tagged]:
    """The sentences of a treebank, cleaned."""
    trees: Iterable[Tree | None] = map(Cleaning().apply, read_trees(source))
    return [tree.pos() for tree in trees if tree is not None]


def rows_of(name: str, train: list[Tagged], dev: list[Tagged]) -> Iterator[list[str]]:
    """The rows of a treebank."""
    counts = count_words([word for word, _ in sentence] for sentence in train)
    for threshold in THRESHOLDS:
        for model in UNKNOWN_WORDS.built_in:
            lexicon = UnknownWords(model, threshold).fit(*counts)
            tags: dict[str, Counter[str]] = defaultdict(Counter)
            for symbol, tag in unknown_words(lexicon, train):
                tags[symbol][tag] += 1
            of_all = sum(tags.values(), Counter())
            n_right, n_words, bits = 0, 0, 0.0
            for symbol, tag in unknown_words(lexicon, dev):
                n_words += 1
                n_right += tag == tags[symbol].most_common(1)[0][0]
                # A tag that no rare word has counts as one of them.
                share = max(of_all[tag], 1) / of_all.total()
                bits -= math.log2((tags[symbol][tag] + SMOOTHING * share) / (tags[symbol].total() + SMOOTHING))
            shown = (f"{100 * n_right / n_words:.1f}", f"{bits / n_words:.2f}")
            yield [name, str(threshold), f"{n_words:,}", model, str(len(lexicon.classes)), *shown]


def unknown_words(lexicon: Lexicon, sentences: Iterable[Tagged]) -> Iterator[tuple[str, str]]:
    """The class and the tag of every word that is not known, in training the rare ones."""
    for sentence in sentences:
        for position, (word, tag) in enumerate(sentence):
            if word not in lexicon.known:
                yield lexicon.lookup(word, position), tag


if __name__ == "__main__":
    sys.exit(main(None))
