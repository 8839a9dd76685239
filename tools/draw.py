"""Draw trees or their derivations, each fragment in a different colour.

Usage:
  tsgkit draw [options] [TREEBANK]...
  tsgkit draw -h | --help | --version

A TREEBANK is as for `tsgkit prepare` (a file, a folder, a pattern, village:dev, nltk:NAME, ...), or - for the standard
input, the default. With --model, the most probable derivation of every tree under the model is drawn: • marks a
substitution site, + an insertion, with a dashed line to its foot.

Options:
  --model=MODEL            draw derivations with this model
  --treebank=NAME          the preset of the treebank (see `tsgkit prepare`), or a file with one: how trees are read,
                           and head rules
  --dependencies           draw dependencies, as arcs; as text, a table
  --heads=RULES            for --dependencies: penn, leftmost, rightmost, another preset or a file (default:
                           those of --treebank, or penn)
  --format=FORMAT          text, svg (one tree), html (a complete page), latex (forest), png or pdf (one tree; these two
                           need matplotlib); by default that of the suffix of --output (.svg, .html, .tex, .png, .pdf),
                           or text
  --number=N               draw only tree N, counted from 1
  --first=N                draw only the first N trees
  --width=N                for text: a tree that is wider than N columns is printed as an indented list; by default the
                           width of the terminal, or no limit if the output is not a terminal
  --colour=WHEN            for text: auto (on a terminal, unless NO_COLOR is set), always or never [default: auto]
  -o FILE, --output=FILE   output file [default: -]
  -q, --quiet              no messages
  -h, --help               this text
  --version                the version
"""

import itertools
import shutil
import sys
from collections.abc import Iterator
from typing import Any

from nltk.tree import Tree

from tsgkit._cli import choice, command, note_terminal, parse_arguments
from tsgkit._options import head_rules_of, optional_integer, preset_of, require_effect
from tsgkit.drawing import Drawing
from tsgkit.drawing._arcs import ArcDrawing
from tsgkit.drawing._terminal import wants_colour
from tsgkit.errors import UsageError
from tsgkit.models._model import Model
from tsgkit.parsing._known_tree import NoDerivationError
from tsgkit.report import Deriver
from tsgkit.report._drawings import FORMATS, format_of, write_drawings
from tsgkit.treebank import read_trees
from tsgkit.treebank._heads import PENN, HeadRules

COLOURS = ("auto", "always", "never")


def drawings(arguments: dict[str, Any]) -> Iterator[Drawing | ArcDrawing]:
    """The drawings of the selected trees."""
    first, number = optional_integer(arguments, "--first", 1), optional_integer(arguments, "--number", 1)
    if first is not None and number is not None:
        raise UsageError("--first and --number do not go together")
    preset = preset_of(arguments)
    sources = arguments["TREEBANK"] or ["-"]
    for source in sources:
        note_terminal(arguments, source, "trees")
    trees = enumerate(read_trees(sources, treebank=preset), start=1)
    deriver = Deriver(Model.load(arguments["--model"])) if arguments["--model"] is not None else None
    rules = HeadRules.parse(head_rules_of(arguments, PENN), "head rules") if arguments["--dependencies"] else None
    if rules is not None and deriver is not None:
        raise UsageError("--model and --dependencies do not go together: a derivation is not drawn as arcs")
    start = number - 1 if number is not None else 0
    n_found = 0
    for position, tree in itertools.islice(trees, start, number or first):
        n_found += 1
        if rules is not None:
            yield ArcDrawing.of_tree(tree, rules, None if preset is None else preset.cleaning)
        elif deriver is None:
            yield Drawing.of_tree(tree[0] if not tree.label() and len(tree) == 1 else tree)
        else:
            yield from drawn_derivation(deriver, tree, position, quiet=arguments["--quiet"])
    if number is not None and not n_found:
        raise UsageError(f"--number={number}: out of range, there are fewer trees")


def drawn_derivation(deriver: Deriver, tree: Tree, position: int, *, quiet: bool) -> Iterator[Drawing]:
    """The drawing of the derivation of a tree, at a position of the treebank; none if the tree has no words."""
    try:
        derivation = deriver.derive(tree)
    except NoDerivationError as error:
        raise NoDerivationError(f"tree {position} has no derivation under the model: {error}") from None
    if derivation is not None:
        yield derivation.drawing()
    elif not quiet:
        print(f"tsgkit: tree {position} has no words and therefore no derivation", file=sys.stderr)


def text_options(arguments: dict[str, Any]) -> dict[str, Any]:
    """Width and colours of text."""
    when = choice(arguments, "--colour", COLOURS)
    is_screen = arguments["--output"] == "-" and sys.stdout.isatty()
    width = optional_integer(arguments, "--width", 1)
    if width is None and is_screen:
        width = shutil.get_terminal_size().columns
    is_colourful = when == "always" or (when == "auto" and is_screen and wants_colour(sys.stdout))
    return {"width": width, "colour": is_colourful}


@command
def main(argv: list[str]) -> int:
    """Draw."""
    arguments = parse_arguments(__doc__, argv)
    if arguments["--format"] is None:
        arguments["--format"] = format_of(arguments["--output"])
    form = choice(arguments, "--format", FORMATS)
    require_effect(arguments, "--heads", arguments["--dependencies"], "--dependencies")
    require_effect(arguments, "--width", form == "text", "--format=text")
    options = text_options(arguments) if form == "text" else {}
    write_drawings(drawings(arguments), arguments["--output"], form, **options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
