"""Show where two parsers differ: the sentences, and the brackets that only one of them has right.

Usage:
  tsgkit compare [options] GOLD A B
  tsgkit compare -h | --help | --version

GOLD, A and B have one tree per line, as for `tsgkit eval`, which computes the same scores and tests the significance of
the difference. Sentences are sorted by difference in F1. For each: the phrases of the gold tree that only A or only B
found, the phrases that are wrong in only one of them, and both trees side by side, with a ✗ at wrong brackets.

Options:
  --top=N              number of sentences to show, or all [default: 10]
  --params=SET         collins, new, or an EVALB parameter file (default: collins, or those of --treebank)
  --treebank=NAME      the preset of the treebank, or a file with one: its evaluation parameters
  --better=SYSTEM      only sentences on which this parser is better: A or B
  --no-trees           leave out the trees
  --html=FILE          write an HTML page with drawn trees, gold included, instead
  --colour=WHEN        auto (on a terminal, unless NO_COLOR is set), always or never [default: auto]
  -h, --help           this text
  --version            the version
"""

import itertools
import sys
from collections.abc import Iterator, Sequence

from nltk.tree import Tree

from tsgkit._cli import choice, command, integer, parse_arguments
from tsgkit._files import open_output
from tsgkit._options import parameters_of
from tsgkit.drawing._terminal import columns, outline_lines, printable, wants_colour
from tsgkit.errors import UsageError
from tsgkit.evaluation._differences import Difference, Differences, ScoredBracket, find_differences, phrases
from tsgkit.evaluation._parameters import Parameters
from tsgkit.report._comparison import comparison_page, marked_drawing
from tsgkit.treebank._trees import words

COLOURS = ("auto", "always", "never")
SYSTEMS = ("A", "B")
N_LABELS = 10


def heading(found: Differences) -> Iterator[str]:
    """Scores and totals of both systems."""
    n_first, n_second = found.n_better
    n_all = found.first.all.sentences
    for name, evaluation in zip(SYSTEMS, (found.first, found.second), strict=True):
        yield f"{name} = {evaluation.test_name}: {evaluation.headline()}\n"
    n_same = n_all - len(found.sentences)
    yield f"{n_all} sentences: A better on {n_first}, B on {n_second}, the same brackets on {n_same}\n"
    by_label = found.by_label()
    if by_label:
        shown = ", ".join(f"{label or '(none)'} {one}:{other}" for label, one, other in by_label[:N_LABELS])
        yield f"gold phrases found by only one, A:B: {shown}\n"


def sentence_lines(each: Difference, parameters: Parameters | None, colour: bool) -> Iterator[str]:
    """One sentence; its trees only if there are parameters to mark them by."""
    sentence = words(each.gold)
    change = each.second_f1 - each.first_f1
    better = f"B +{change:.2f}" if change > 0 else f"A +{-change:.2f}" if change < 0 else "the same"
    yield f"\n{each.number}: A {each.first_f1:.2f}, B {each.second_f1:.2f} ({better})\n"
    yield f"   {printable(' '.join(sentence))}\n"
    groups: Sequence[tuple[str, list[ScoredBracket]]] = (
        ("only A found", each.only_first),
        ("only B found", each.only_second),
        ("wrong in A", each.first_mistakes),
        ("wrong in B", each.second_mistakes),
    )
    for title, brackets in groups:
        for phrase in phrases(brackets, sentence):
            yield f"   {title:<13} {printable(phrase)}\n"
    if parameters is not None:
        yield from side_by_side(each, parameters, colour)


def side_by_side(each: Difference, parameters: Parameters, colour: bool) -> Iterator[str]:
    """Both trees as indented lists."""
    pages = [tree_lines(each.gold, tree, parameters, False) for tree in (each.first, each.second)]
    shown = [tree_lines(each.gold, tree, parameters, colour) for tree in (each.first, each.second)]
    width = max(map(columns, ["A", *pages[0]]))
    for plain, left, right in itertools.zip_longest(["A", *pages[0]], ["A", *shown[0]], ["B", *shown[1]], fillvalue=""):
        yield f"   {left}{' ' * (width - columns(plain))}   {right}".rstrip() + "\n"


def tree_lines(gold: Tree, tree: Tree | None, parameters: Parameters, colour: bool) -> list[str]:
    if tree is None:
        return ["(no tree over these words)"]
    return outline_lines(marked_drawing(gold, tree, parameters), colour=colour)


@command
def main(argv: list[str]) -> int:
    """Compare, and show the differences."""
    arguments = parse_arguments(__doc__, argv)
    top = None if arguments["--top"] == "all" else integer(arguments, "--top", 1)
    when = choice(arguments, "--colour", COLOURS)
    better = choice(arguments, "--better", SYSTEMS) if arguments["--better"] is not None else None
    parameters = parameters_of(arguments)
    gold, first, second = (arguments[name] for name in ("GOLD", "A", "B"))
    if [gold, first, second].count("-") > 1:
        raise UsageError("only one of the files can be -, the standard input")
    found = find_differences(gold, first, second, parameters)
    chosen = found.sentences
    if better is not None:
        sign = 1 if better == "A" else -1
        chosen = [each for each in chosen if sign * (each.first_f1 - each.second_f1) > 0]
    if arguments["--html"] is not None:
        with open_output(arguments["--html"]) as file:
            file.write(comparison_page(found, chosen[:top], parameters))
        return 0
    colour = when == "always" or (when == "auto" and wants_colour(sys.stdout))
    with open_output() as file:
        file.writelines(heading(found))
        for each in chosen[:top]:
            file.writelines(sentence_lines(each, None if arguments["--no-trees"] else parameters, colour))
    return 0


if __name__ == "__main__":
    sys.exit(main())
