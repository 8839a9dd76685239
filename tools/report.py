"""Write an HTML report on a model: training, fragments, derivations, scores.

Usage:
  tsgkit report [options] --output=FILE MODEL...
  tsgkit report -h | --help | --version

Several models of one kind are chains: their training is plotted together, fragments and derivations are those of the
first, and the sentences of --dev are parsed with the product of all, as `tsgkit parse` does. Models of different kinds
are shown side by side: sizes, training, scores, and the sentences of --dev on which they differ most. The page is one
file that loads nothing from the network. Needs matplotlib: pip install 'tsgkit[plot]'.

Options:
  -o FILE, --output=FILE   output file
  --dev=TREEBANK           parse this treebank (as for `tsgkit prepare`) and report the scores
  --treebank=NAME          for --dev: the preset of the treebank (see `tsgkit prepare`), or a file with one
  --params=SET             for --dev: collins, new, or an EVALB parameter file (default: those of --treebank, or of the
                           model's treebank, or collins)
  --fragments=N            number of fragments, and of auxiliary trees, to show [default: 24]
  --derivations=N          number of sentences with derivations to show [default: 6]
  --worst=N                number of sentences with the lowest F1 to show, or of those that differ most [default: 10]
  --threads=N              threads for parsing; only the speed depends on it [default: 1]
  -q, --quiet              no progress bar
  -h, --help               this text
  --version                the version
"""

import os
import sys
import time
from typing import Any

from tsgkit._cli import command, integer, parse_arguments
from tsgkit._files import open_output
from tsgkit._options import parameters_of, preset_of, require_effect
from tsgkit._progress import progress
from tsgkit.evaluation._evalb import parameter_warnings
from tsgkit.models._model import Model
from tsgkit.parsing import Parse
from tsgkit.parsing._product import parser_of
from tsgkit.report._model_report import Report, ReportSettings
from tsgkit.report._side_by_side import grouped, side_by_side_page
from tsgkit.treebank import read_trees
from tsgkit.treebank._trees import words


def parsed(arguments: dict[str, Any], models: list[Model]) -> dict[str, Any]:
    """The clean trees of the treebank to parse, the parses of their sentences, and how long they took."""
    source, cleaning = arguments["--dev"], models[0].preparation.cleaning
    trees = read_trees(source, treebank=preset_of(arguments))
    clean = [tree for tree in map(cleaning.apply, trees) if tree is not None]
    parser = parser_of(models)
    sentences = [(words(tree), None) for tree in clean]
    threads, started = integer(arguments, "--threads", 1), time.perf_counter()
    parses = parser.parse_batch(sentences, threads=threads)
    shown = progress(parses, "parsing", "sentences", total=len(clean), quiet=arguments["--quiet"])
    found: list[Parse] = list(shown)
    seconds = time.perf_counter() - started
    gold = [cleaning.undo(tree) for tree in clean]
    return {"gold": gold, "parses": found, "source": source, "seconds": seconds, "threads": threads}


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
    for option in ("--params", "--treebank"):
        require_effect(arguments, option, arguments["--dev"] is not None, "--dev=TREEBANK")
    parameters = parameters_of(arguments, models[0].preparation.parameters)
    reports = []
    for group in grouped([model.kind for model in models]):
        own = [models[number] for number in group], [names[number] for number in group]
        report = Report(*own, settings, parameters=parameters)
        if arguments["--dev"] is not None:
            for name, value in parsed(arguments, report.models).items():
                setattr(report, name, value)
        reports.append(report)
    if arguments["--dev"] is not None and not arguments["--quiet"]:
        for warning in parameter_warnings(reports[0].evaluation):
            print(f"tsgkit: {warning}", file=sys.stderr)
    page = reports[0].page() if len(reports) == 1 else side_by_side_page(reports)
    with open_output(arguments["--output"]) as file:
        file.write(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
