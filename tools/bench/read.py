"""Speed and memory of the readers: trees of the bundled treebank in every format that is written here or by tsgkit.

Usage:
  read.py [options]

Reads N trees, written from the bundled treebank again and again, in a process of its own for each format, and prints
tokens per second and the largest memory; for the format of --sizes also a quarter and a half of them: time should
double with the size, memory should not change.

Options:
  --trees=N       of the largest file [default: 100000]
  --sizes=FORMAT  read in three sizes [default: tigerxml]
  --formats=LIST  separated by commas (default: all)
  -h, --help      this text
"""

import itertools
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from nltk.tree import Tree

from tsgkit._cli import command, parse_arguments
from tsgkit.treebank import Cleaning, load, read_trees, write_trees
from tsgkit.treebank._formats import WRITERS
from tsgkit.treebank._trees import is_preterminal, words


def some_trees(n_trees: int) -> Iterator[Tree]:
    """The clean trees of the bundled treebank, over and over."""
    clean = [tree for tree in map(Cleaning().apply, load()) if tree is not None]
    return itertools.islice(itertools.cycle(clean), n_trees)


def nested(tree: Tree, phrase: str, word: str) -> str:
    """A tree as XML elements inside each other: of phrases and words, with the label, the position and the word."""
    positions = itertools.count()

    def element(node: Tree) -> str:
        label = quoteattr(node.label())
        if is_preterminal(node):
            begin = next(positions)
            return word.format(label=label, begin=begin, end=begin + 1, word=node[0])
        return phrase.format(label=label, inside="".join(map(element, node)))

    return element(tree)


def alpino(trees: Iterable[Tree]) -> Iterator[str]:
    """Alpino XML."""
    yield "<treebank>\n"
    for tree in trees:
        phrase = '<node cat={label} rel="--">\n{inside}</node>\n'
        word = '<node rel="hd" pos={label} begin="{begin}" end="{end}" word="{word}" root="{word}"/>\n'
        sentence = " ".join(words(tree))
        yield f"<alpino_ds>{nested(escaped(tree), phrase, word)}<sentence>{escape(sentence)}</sentence></alpino_ds>\n"
    yield "</treebank>\n"


def genia(trees: Iterable[Tree]) -> Iterator[str]:
    """GENIA XML."""
    yield "<Annotation>\n"
    for tree in trees:
        phrase, word = "<cons cat={label}>{inside}</cons>", "<tok cat={label}>{word}</tok> "
        yield f"<sentence>{nested(escaped(tree), phrase, word)}</sentence>\n"
    yield "</Annotation>\n"


def ftb(trees: Iterable[Tree]) -> Iterator[str]:
    """The XML of the French Treebank, with one name for all phrases."""
    yield "<text>\n"
    for tree in trees:
        yield f"<SENT>{nested(escaped(tree), '<X>{inside}</X>', '<w cat={label}>{word}</w> ')}</SENT>\n"
    yield "</text>\n"


def lemmas(trees: Iterable[Tree]) -> Iterator[str]:
    """Brackets as in CESS, with a lemma behind every word, over several lines."""
    for tree in trees:
        clone = tree.copy(deep=True)
        for leaf in clone.subtrees(is_preterminal):
            leaf[0] = f"{leaf[0]} {leaf[0].lower()}"
        yield f"{clone.pformat(margin=60)}\n"


def escaped(tree: Tree) -> Tree:
    """A copy whose words can be attributes."""
    clone = tree.copy(deep=True)
    for leaf in clone.subtrees(is_preterminal):
        leaf[0] = escape(leaf[0], {'"': "&quot;"})
    return clone


# Text of formats that tsgkit does not write, and how each is read.
TEXTS: dict[str, tuple[Callable[[Iterable[Tree]], Iterator[str]], str]] = {
    "alpino": (alpino, "auto"),
    "genia": (genia, "auto"),
    "ftb": (ftb, "auto"),
    "lemmas": (lemmas, "brackets:lemma=column"),
}


def measure(path: str, format_name: str) -> tuple[int, float, float, int]:
    """Trees, seconds by the clock and of the processor, and megabytes of a process that reads a file."""
    started, used = time.perf_counter(), time.process_time()
    n_trees = sum(1 for _ in read_trees(path, format=format_name))
    seconds, processor = time.perf_counter() - started, time.process_time() - used
    return n_trees, seconds, processor, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


@command
def main(argv: list[str]) -> int:
    arguments = parse_arguments(__doc__, argv)
    n_most = int(arguments["--trees"])
    every = [*(name for name in WRITERS.built_in if name not in ("words", "conllu")), *TEXTS]
    chosen = arguments["--formats"].split(",") if arguments["--formats"] else every
    head = f"{'format':<12}{'trees':>8}{'tokens':>10}{'seconds':>9}{'processor':>11}{'tokens/s':>10}"
    print(f"{head}{'of processor':>14}{'MB':>6}")
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen:
            for part in (4, 2, 1) if name == arguments["--sizes"] else (1,):
                path = Path(folder) / f"trees.{name}"
                text, format_name = TEXTS.get(name, (None, "auto"))
                if text is None:
                    write_trees(some_trees(n_most // part), path, name)
                else:
                    with path.open("w", encoding="utf-8") as file:
                        file.writelines(text(some_trees(n_most // part)))
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    n_trees, seconds, processor, memory = pool.apply(measure, (str(path), format_name))
                n_tokens = sum(len(words(tree)) for tree in some_trees(n_trees))
                print(
                    f"{name:<12}{n_trees:>8}{n_tokens:>10}{seconds:>9.2f}{processor:>11.2f}{n_tokens / seconds:>10.0f}"
                    f"{n_tokens / processor:>14.0f}{memory:>6}",
                    flush=True,
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
