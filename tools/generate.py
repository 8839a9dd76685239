"""Draw a treebank of any size from a grammar with known fragments and insertions.

Usage:
  tsgkit generate [options] N
  tsgkit generate [options] --grammar
  tsgkit generate -h | --help | --version

N trees go to stdout, one a line, from a hand-written tree-substitution grammar: its fragments are agreement,
idioms and argument frames beside plain rules and words, its insertions adjectives, adverbs, parentheticals.

Options:
  --seed=S         the same seed gives the same trees on every machine [default: 0]
  --no-insertions  a plain tree-substitution grammar, without auxiliary trees
  --vocabulary=V   invent V words beside the English ones, so that large samples keep showing new words
                   [default: 0]
  --max-length=L   leave out trees of more than L words
  --derivations    instead of a tree write its derivation: the elementary trees from the top down and from
                   left to right with tabs between them, + at a node with an insertion, * at a foot
  --truth=FILE     write the derivations to FILE, beside the trees
  --grammar        write the grammar instead: probability, kind, elementary tree, with tabs between them
  -q, --quiet      no progress bar
  -h, --help       this text
  --version        the version
"""

import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack

from tsgkit.cli import command, integer, parse_arguments
from tsgkit.errors import UsageError
from tsgkit.progress import progress
from tsgkit.treebank.planted import (
    LARGEST_VOCABULARY,
    SHORTEST_MAX_LENGTH,
    Derivation,
    generate_derivations,
    planted_grammar,
)


@command
def main(argv: list[str]) -> int:
    if argv and re.fullmatch(r"-\d+", argv[0]):
        # docopt would take it for an option that does not exist.
        raise UsageError(f"N={argv[0]}: must be at least 0")
    arguments = parse_arguments(__doc__, argv)
    insertions = not arguments["--no-insertions"]
    vocabulary = integer(arguments, "--vocabulary", minimum=0)
    if vocabulary > LARGEST_VOCABULARY:
        raise UsageError(f"--vocabulary={vocabulary}: must be at most {LARGEST_VOCABULARY}")
    if arguments["--grammar"]:
        sys.stdout.writelines(f"{line}\n" for line in planted_grammar(insertions, vocabulary).lines())
        return 0
    n_trees = integer(arguments, "N", minimum=0)
    seed = integer(arguments, "--seed", minimum=0)
    max_length = None
    if arguments["--max-length"] is not None:
        max_length = integer(arguments, "--max-length", minimum=SHORTEST_MAX_LENGTH)
    derivations = generate_derivations(n_trees, seed, insertions, vocabulary=vocabulary, max_length=max_length)
    # A bar would get in the way of trees on the same terminal.
    quiet = arguments["--quiet"] or sys.stdout.isatty()
    bar = progress(derivations, "generate", "trees", total=n_trees, quiet=quiet)
    write(bar, arguments["--derivations"], arguments["--truth"])
    return 0


def write(derivations: Iterator[Derivation], as_derivations: bool, truth: str | None) -> None:
    """Trees or derivations to stdout, and derivations to the file `truth` if there is one."""
    with ExitStack() as files:
        truth_file = files.enter_context(open(truth, "w", encoding="utf-8")) if truth else None
        for derivation in derivations:
            steps = "\t".join(derivation.steps)
            sys.stdout.write(f"{steps if as_derivations else derivation.brackets}\n")
            if truth_file:
                truth_file.write(f"{steps}\n")
