"""Write an HTML report on a model: training, fragments, derivations, scores.

Usage:
  tsgkit report [options] --output=FILE MODEL...
  tsgkit report -h | --help | --version

Several models must be chains of one kind: their training is plotted together, fragments and derivations are those of
the first, and the sentences of --dev are parsed with the product of all, as `tsgkit parse` does. The page loads
nothing from the network and runs no script. Needs matplotlib: pip install 'tsgkit[plot]'.

Options:
  -o FILE, --output=FILE   output file
  --dev=TREEBANK           parse this treebank (as for `tsgkit prepare`) and report the scores
  --fragments=N            number of fragments, and of auxiliary trees, to show [default: 24]
  --derivations=N          number of sentences with derivations to show [default: 6]
  --worst=N                number of sentences with the lowest F1 to show [default: 10]
  --threads=N              threads for parsing; the page does not depend on it [default: 1]
  -q, --quiet              no progress bar
  -h, --help               this text
  --version                the version
"""

import os
import sys
from typing import Any

from tsgkit.cli import command, integer, parse_arguments
from tsgkit.files import open_output
from tsgkit.models.model import Model
from tsgkit.parsing import Parse
from tsgkit.parsing.product import parser_of
from tsgkit.progress import progress
from tsgkit.report.model_report import Report, ReportSettings
from tsgkit.treebank import read_trees
from tsgkit.treebank.trees import words


def parsed(arguments: dict[str, Any], models: list[Model]) -> dict[str, Any]:
    """The clean trees of the treebank to parse, and the parses of their sentences."""
    source, cleaning = arguments["--dev"], models[0].preparation.cleaning
    clean = [tree for tree in map(cleaning.apply, read_trees(source)) if tree is not None]
    parser = parser_of(models)
    sentences = [(words(tree), None) for tree in clean]
    parses = parser.parse_batch(sentences, threads=integer(arguments, "--threads", 1))
    shown = progress(parses, "parsing", "sentences", total=len(clean), quiet=arguments["--quiet"])
    found: list[Parse] = list(shown)
    return {"gold": [cleaning.undo(tree) for tree in clean], "parses": found, "source": source}


@command
def main(argv: list[str]) -> int:
    """Write the page."""
    arguments = parse_arguments(__doc__, argv)
    settings = ReportSettings(
        n_fragments=integer(arguments, "--fragments", 0),
        n_derivations=integer(arguments, "--derivations", 0),
        n_worst=integer(arguments, "--worst", 0),
    )
    models = [Model.load(path) for path in arguments["MODEL"]]
    names = [os.path.basename(path) for path in arguments["MODEL"]]
    report = Report(models, names, settings)
    if arguments["--dev"] is not None:
        for name, value in parsed(arguments, models).items():
            setattr(report, name, value)
    with open_output(arguments["--output"]) as file:
        file.write(report.page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
