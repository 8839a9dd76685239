"""Score a parser's trees against gold trees: exactly as EVALB does, and with every sentence counted.

Usage:
  tsgkit eval [options] [--by=WHAT]... GOLD TEST [TEST2]
  tsgkit eval -h | --help | --version

GOLD and TEST have one tree per line (plain, gzip or xz; - is stdin); an empty line in TEST is a failed parse.
The output is EVALB's table and summary, byte for byte, then the strict score, in which failed and mismatched
sentences count as wrong, and the aligned score, in which the gold tags decide for both trees what is punctuation.
With two TEST files: both side by side, and a paired bootstrap test.

Options:
  --params=SET      collins, new, or an EVALB parameter file (default: collins, or those of --treebank).
  --treebank=NAME   The preset of a treebank, or a file with one: its evaluation parameters.
  --summary         Leave out the table of sentences.
  --by=WHAT         Add a breakdown, by: label (with the most frequent confusions) or length.
  --json            All results as one JSON object.
  --stop-on-errors  Stop after too many errors (see MAX_ERROR) as EVALB does, with exit code 1 and without a
                    summary. By default, more than MAX_ERROR errors only give a warning.
  --resamples=N     Number of bootstrap resamples. [default: 10000]
  --seed=N          Seed of the bootstrap test. [default: 1]
  --quiet           No progress bar and no messages about single sentences.
  -h --help         This text.
  --version         The version.
"""

import io
import sys
from typing import Any

from tsgkit._cli import command, integer, parse_arguments
from tsgkit._exit_codes import EXIT_FAILED
from tsgkit._guesses import one_of
from tsgkit.errors import UsageError
from tsgkit.evaluation import Comparison, Evaluation, _report, compare, load_parameters
from tsgkit.evaluation._evalb import parameter_warnings, read_source, score
from tsgkit.evaluation._parameters import DEFAULT_PARAMETERS, Parameters, parameters_named

BREAKDOWNS = ("label", "length")


@command
def main(argv: list[str]) -> int:
    arguments = parse_arguments(__doc__, argv)
    breakdowns = list(dict.fromkeys(arguments["--by"]))
    for name in breakdowns:
        if name not in BREAKDOWNS:
            raise UsageError(f"--by={name}: must be {one_of(name, BREAKDOWNS)}")
    resamples = integer(arguments, "--resamples", minimum=1)
    seed = integer(arguments, "--seed", minimum=0)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # File names need not be UTF-8; their bytes are printed unchanged.
        sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape", newline="\n")
    evaluations = evaluate_files(arguments)
    if any(evaluation.stopped for evaluation in evaluations):
        return report_stop(next(evaluation for evaluation in evaluations if evaluation.stopped), arguments)
    if not arguments["--quiet"]:
        warn(evaluations)
    comparison = None
    if len(evaluations) == 2:
        first, second = evaluations
        comparison = compare(first, second, resamples, seed, quiet=arguments["--quiet"])
    if arguments["--json"]:
        write_json(evaluations, comparison, breakdowns, sentences=not arguments["--summary"])
    elif comparison:
        sys.stdout.write(comparison.table())
        for evaluation in evaluations:
            write_breakdowns(evaluation, breakdowns, title=f"\n##### {evaluation.test_name}\n")
    else:
        write_text(evaluations[0], summary_only=arguments["--summary"])
        write_breakdowns(evaluations[0], breakdowns)
    return 0


def parameters_of(arguments: dict[str, Any]) -> Parameters:
    """The parameters of --params, or else of --treebank, or else the default."""
    if arguments["--params"] is not None or arguments["--treebank"] is None:
        return load_parameters(arguments["--params"] or DEFAULT_PARAMETERS)
    from tsgkit.treebank._presets import load_preset  # noqa: PLC0415 - imports nltk, which nothing else here needs

    return parameters_named(load_preset(arguments["--treebank"]).parameters)


def evaluate_files(arguments: dict[str, Any]) -> list[Evaluation]:
    """Score every TEST file against GOLD, which is read once."""
    parameters = parameters_of(arguments)
    names = [name for name in (arguments["GOLD"], arguments["TEST"], arguments["TEST2"]) if name is not None]
    if names.count("-") > 1:
        raise UsageError("only one of the files can be -, the standard input")
    gold, *tests = [read_source(name, "") for name in names]
    quiet = arguments["--quiet"] or not sys.stderr.isatty()
    stop = arguments["--stop-on-errors"]
    return [score(*gold, *test, parameters, stop_on_errors=stop, quiet=quiet) for test in tests]


def warn(evaluations: list[Evaluation]) -> None:
    """List the errors, at most MAX_ERROR of them, and warn if there are more."""
    printed: set[str] = set()
    for evaluation in evaluations:
        max_error = max(evaluation.parameters.max_error, 0)
        # Errors in the gold file are the same for both systems.
        messages = [str(problem) for problem in evaluation.problems[:max_error] if str(problem) not in printed]
        printed.update(messages)
        if evaluation.n_errors > max_error:
            messages.append(
                f"tsgkit: {evaluation.test_name}: {evaluation.n_errors} errors, "
                f"more than MAX_ERROR {max_error}; EVALB's score leaves these sentences out, "
                "the strict and the aligned score do not"
            )
        warnings = (f"tsgkit: {warning}" for warning in parameter_warnings(evaluation))
        messages += [warning for warning in warnings if warning not in printed]
        printed.update(messages)
        sys.stderr.write("".join(f"{message}\n" for message in messages))


def report_stop(evaluation: Evaluation, arguments: dict[str, Any]) -> int:
    """Print what EVALB prints before it stops: the table up to there."""
    if not arguments["--json"] and not arguments["--summary"]:
        sys.stdout.write(evaluation.table())
    for problem in evaluation.problems:
        print(problem, file=sys.stderr)
    print(f"tsgkit: stopped at line {evaluation.problems[-1].line}: too many errors", file=sys.stderr)
    return EXIT_FAILED


def write_text(evaluation: Evaluation, *, summary_only: bool) -> None:
    if not summary_only:
        sys.stdout.write(evaluation.table())
    sys.stdout.write(f"{evaluation.summary()}\n{evaluation.strict_summary()}\n{evaluation.aligned_summary()}")


def write_breakdowns(evaluation: Evaluation, breakdowns: list[str], title: str = "") -> None:
    for index, name in enumerate(breakdowns):
        if name == "label":
            table = _report.label_table(evaluation.by_label(), evaluation.confusions())
        else:
            table = _report.length_table(evaluation.by_length())
        sys.stdout.write(f"{'' if index else title}\n{table}")


def write_json(
    evaluations: list[Evaluation], comparison: Comparison | None, breakdowns: list[str], *, sentences: bool
) -> None:
    import json  # noqa: PLC0415 - not needed for the table, which must be fast
    from dataclasses import asdict  # noqa: PLC0415

    systems = []
    for evaluation in evaluations:
        system = evaluation.to_dict(sentences=sentences)
        if "label" in breakdowns:
            system["by_label"] = [_report.score_dict(row) for row in evaluation.by_label()]
            system["confusions"] = [asdict(row) for row in evaluation.confusions()]
        if "length" in breakdowns:
            system["by_length"] = [_report.score_dict(row) for row in evaluation.by_length()]
        systems.append(system)
    result = systems[0]
    if comparison:
        tests = {name: asdict(getattr(comparison, name)) for name in ("evalb", "strict", "aligned")}
        result = {"systems": systems, "comparison": tests}
    json.dump(result, sys.stdout, ensure_ascii=False, indent=1)
    print()
