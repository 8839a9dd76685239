"""Generate a synthetic treebank of any size from a grammar with known fragments and insertions.

Usage:
  tsgkit generate [options] N
  tsgkit generate [options] --grammar
  tsgkit generate -h | --help | --version

N trees go to stdout, one tree per line, sampled from a hand-written tree-substitution grammar. Its fragments are
agreement, idioms, argument frames, plain rules and words; its insertions are adjectives, adverbs, parentheticals.

Options:
  --seed=S         the same seed gives the same trees on every machine [default: 0]
  --no-insertions  a plain tree-substitution grammar, without auxiliary trees
  --vocabulary=V   add V invented words to the English ones, so that large samples keep having new words
                   [default: 0]
  --max-length=L   leave out trees of more than L words
  --derivations    write derivations instead of trees: the elementary trees in leftmost order, separated by tabs,
                   with + at a node with an insertion and * at a foot
  --truth=FILE     also write the derivations of the trees to FILE
  --grammar        write the grammar instead: probability, kind and elementary tree, separated by tabs
  -q, --quiet      no progress bar
  -h, --help       this text
  --version        the version
"""

import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack

from tsgkit._cli import command, integer, parse_arguments
from tsgkit._files import open_output
from tsgkit._progress import progress
from tsgkit.errors import UsageError
from tsgkit.treebank.synthetic import Derivation, generate_derivations, synthetic_grammar
from tsgkit.treebank.synthetic._derivations import SHORTEST_MAX_LENGTH
from tsgkit.treebank.synthetic._grammar import LARGEST_VOCABULARY


@command
def main(argv: list[str]) -> int:
    if argv and re.fullmatch(r"-\d+", argv[0]):
        # docopt would parse it as an option.
        raise UsageError(f"N={argv[0]}: must be at least 0")
    arguments = parse_arguments(__doc__, argv)
    insertions = not arguments["--no-insertions"]
    vocabulary = integer(arguments, "--vocabulary", minimum=0)
    if vocabulary > LARGEST_VOCABULARY:
        raise UsageError(f"--vocabulary={vocabulary}: must be at most {LARGEST_VOCABULARY}")
    if arguments["--grammar"]:
        sys.stdout.writelines(f"{line}\n" for line in synthetic_grammar(insertions, vocabulary).lines())
        return 0
    n_trees = integer(arguments, "N", minimum=0)
    seed = integer(arguments, "--seed", minimum=0)
    max_length = None
    if arguments["--max-length"] is not None:
        max_length = integer(arguments, "--max-length", minimum=SHORTEST_MAX_LENGTH)
    derivations = generate_derivations(n_trees, seed, insertions, vocabulary=vocabulary, max_length=max_length)
    # A progress bar would disturb trees on the same terminal.
    quiet = arguments["--quiet"] or sys.stdout.isatty()
    bar = progress(derivations, "generate", "trees", total=n_trees, quiet=quiet)
    write(bar, arguments["--derivations"], arguments["--truth"])
    return 0


def write(derivations: Iterator[Derivation], as_derivations: bool, truth: str | None) -> None:
    """Write trees or derivations to stdout, and derivations to the file `truth` if it is given."""
    with ExitStack() as files:
        truth_file = files.enter_context(open_output(truth)) if truth else None
        for derivation in derivations:
            steps = "\t".join(derivation.steps)
            sys.stdout.write(f"{steps if as_derivations else derivation.brackets}\n")
            if truth_file:
                truth_file.write(f"{steps}\n")
