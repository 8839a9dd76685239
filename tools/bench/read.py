"""Speed and memory of the readers: TIGER-XML made by the writer, in three sizes.

Usage:
  read.py [options]

Reads a quarter, a half and all of N trees of TIGER-XML, written from the bundled treebank again and again, each in a
process of its own, and prints tokens per second and the largest memory. Time should double with the size, memory
should not change.

Options:
  --trees=N  of the largest file [default: 100000]
  -h, --help  this text
"""

import itertools
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from docopt import docopt
from nltk.tree import Tree

from tsgkit.treebank import Cleaning, load, read_trees, write_trees
from tsgkit.treebank._trees import words


def some_trees(n_trees: int) -> Iterator[Tree]:
    """The clean trees of the bundled treebank, over and over."""
    clean = [tree for tree in map(Cleaning().apply, load()) if tree is not None]
    return itertools.islice(itertools.cycle(clean), n_trees)


def measure(path: str) -> tuple[int, int, float, float, int]:
    """Trees, tokens, seconds by the clock and of the processor, and megabytes of a process that reads a file."""
    started, used = time.perf_counter(), time.process_time()
    n_trees = sum(1 for _ in read_trees(path))
    seconds, processor = time.perf_counter() - started, time.process_time() - used
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return n_trees, sum(len(words(tree)) for tree in some_trees(n_trees)), seconds, processor, memory


def main() -> None:
    n_most = int(docopt(__doc__ or "")["--trees"])
    print(f"{'trees':>8}{'tokens':>10}{'seconds':>9}{'processor':>11}{'tokens/s':>10}{'of processor':>14}{'MB':>6}")
    with tempfile.TemporaryDirectory() as folder:
        for part in (4, 2, 1):
            path = Path(folder) / "trees.xml"
            write_trees(some_trees(n_most // part), path, "tigerxml")
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                n_trees, n_tokens, seconds, processor, memory = pool.apply(measure, (str(path),))
            print(
                f"{n_trees:>8}{n_tokens:>10}{seconds:>9.2f}{processor:>11.2f}{n_tokens / seconds:>10.0f}"
                f"{n_tokens / processor:>14.0f}{memory:>6}",
                flush=True,
            )


if __name__ == "__main__":
    main()
