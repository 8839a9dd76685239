"""Show the fragments of a model, and the derivations of trees with them.

Usage:
  tsgkit inspect [options] MODEL
  tsgkit inspect -h | --help | --version

By default, the fragments of the last sample, one per line: the number of its occurrences in the training trees
(its customers), its tables, its number of rules, and the fragment in brackets with open frontier nodes, as in
(S (NP ) (VP (VBD said) (SBAR ))). For a cfg model, the rules and their weights. Labels are those of the
binarised trees; rare words are replaced by their classes. For an insertion model, the list contains auxiliary
trees, as in (NP (JJ pretty) NP*), with the side of the foot on which their words are. For an srtsg model,
roots and frontier nodes have subcategories, as in (NP-01 (DT-1 ) (NN-001 )).

Options:
  --sort=KEY            count (most frequent first), size (largest first) or root [default: count]
  --root=LABEL          only fragments with this root, as binarised (NP^S) or plain (NP)
  --contains=NAME       only fragments with this word, or with a node of this label
  --min-count=N         only fragments with at least N occurrences (of a cfg model: with at least this weight)
  --min-size=N          only fragments with at least N rules
  --kind=KIND           which trees: all, initial or auxiliary [default: all]
  --lexicalised         only fragments with a word
  --top=N               number of fragments to show, or all; 20 by default
  --examples            with a training sentence, the words below the fragment in square brackets
  --subcategories=LABEL  instead, for an srtsg model: the most frequent words, rules and parents of each subcategory
                        of a label, --top=N of each (5 by default); all: the number of subcategories of each label
  --hierarchy=LABEL     instead, for an srtsg model: how the subcategories of a label were split
  --sizes               instead: the number of fragments of each size, and of their occurrences
  --derivation=TREES    instead: the most probable derivation of each of these trees (a file, a folder, - or
                        another source, as annotated), one fragment per line: its count and its brackets, indented
                        by the depth of substitution, in the order of leftmost derivations; a + marks each
                        insertion at a node, which the next auxiliary tree fills
  --treebank=NAME       for --derivation: the preset of the treebank (see `tsgkit prepare`), or a file with one
  --format=FORMAT       brackets, json, or discodop (fragment, tab, count, as disco-dop's fragments command
                        writes) [default: brackets]
  -q, --quiet           no messages
  -h, --help            this text
  --version             the version
"""

import json
import math
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from tsgkit._cli import choice, command, integer, number, parse_arguments
from tsgkit._files import open_output
from tsgkit._options import preset_of
from tsgkit.errors import UsageError
from tsgkit.inference._entry import entry_of, fragments_of
from tsgkit.models._fragments import KINDS, SORTS, FragmentTable, with_bare_foot
from tsgkit.models._model import Model
from tsgkit.models._subcategories import SubcategoryTable
from tsgkit.parsing._known_tree import NoDerivationError
from tsgkit.report._derivation import Derivation, Deriver
from tsgkit.treebank import read_trees
from tsgkit.treebank._fragments import format_fragment

FORMATS = ("brackets", "json", "discodop")
FILTERS = ("--root", "--contains", "--min-count", "--min-size", "--lexicalised", "--examples")
BAR_WIDTH = 40
INDENT = "  "


def selected(arguments: dict[str, Any], table: FragmentTable) -> list[int]:
    """The numbers of the fragments that the options ask for, all of them."""
    return table.select(
        root=arguments["--root"],
        contains=arguments["--contains"],
        min_count=0 if arguments["--min-count"] is None else number(arguments, "--min-count", 0),
        min_size=1 if arguments["--min-size"] is None else integer(arguments, "--min-size", 1),
        kind=choice(arguments, "--kind", KINDS),
        lexicalised=arguments["--lexicalised"],
        sort=choice(arguments, "--sort", SORTS),
    )


def json_lines(values: Iterable[dict[str, Any]]) -> Iterator[str]:
    """A JSON list, one element per line."""
    separator = "["
    for value in values:
        yield f"{separator}\n{json.dumps(value, ensure_ascii=False)}"
        separator = ","
    yield "[]\n" if separator == "[" else "\n]\n"


def shown(count: float) -> str:
    """A count as it is, a weight with six digits."""
    return str(count) if isinstance(count, int) else f"{count:.6g}"


# ---- fragments -------------------------------------------------------------------------------------------


def fragment_lines(table: FragmentTable, numbers: list[int], form: str, examples: bool) -> Iterator[str]:
    """The list of fragments."""
    if form == "json":
        yield from json_lines(fragment_value(table, each, examples) for each in numbers)
        return
    if form == "brackets":
        tables = "" if table.tables is None else f"{'tables':>8}"
        side = f"{'side':>7}" if table.is_auxiliary.any() else ""
        yield f"{table.measure:>10}{tables}{'size':>6}{side}  fragment\n"
    for each in numbers:
        fragment = table.fragment(each)
        if form == "discodop":
            yield f"{fragment.brackets}\t{shown(fragment.count)}\n"
            continue
        tables = "" if fragment.tables is None else f"{fragment.tables:>8}"
        side = f"{fragment.side or '-':>7}" if table.is_auxiliary.any() else ""
        columns = f"{shown(fragment.count):>10}{tables}{fragment.size:>6}{side}"
        brackets = with_bare_foot(fragment.brackets, fragment.root) if fragment.side else fragment.brackets
        yield f"{columns}  {brackets}\n"
        if examples:
            yield f"{'':>{len(columns)}}  {table.example(each).marked()}\n"


def fragment_value(table: FragmentTable, each: int, examples: bool) -> dict[str, Any]:
    fragment = table.fragment(each)
    value: dict[str, Any] = {"fragment": fragment.brackets, table.measure: fragment.count}
    if fragment.tables is not None:
        value["tables"] = fragment.tables
    value |= {"size": fragment.size, "root": fragment.root, "words": fragment.words}
    if fragment.side:
        value["side"] = fragment.side
    return value | {"example": asdict(table.example(each))} if examples else value


def why_nothing(model: Model, name: str | None) -> str:
    """A hint for words that the model knows only by their class."""
    lexicon = model.preparation.lexicon
    if name is None or lexicon is None or name in lexicon.vocabulary or name in model.grammar.labels:
        return "no fragment fits"
    known_as = lexicon.lookup(name, 1)
    return f"no fragment fits; as a word, {name} is rare or new, and the model knows it as {known_as}"


def types_of(table: FragmentTable, numbers: list[int]) -> str:
    """The numbers of initial and of auxiliary trees among these fragments."""
    if not table.is_auxiliary.any():
        return ""
    n_auxiliary = int(table.is_auxiliary[numbers].sum())
    return f" ({len(numbers) - n_auxiliary} initial, {n_auxiliary} auxiliary)"


# ---- subcategories ---------------------------------------------------------------------------------------


def label_lines(table: SubcategoryTable, top: int | None, form: str) -> Iterator[str]:
    """The labels and how many subcategories each has."""
    rows = [(label, table.subcategories(label, 0)) for label in table.labels()[:top]]
    values = [
        {"label": label, "subcategories": len(each), "count": sum(one.count for one in each)} for label, each in rows
    ]
    if form == "json":
        yield from json_lines(values)
        return
    yield f"{'count':>10}{'subcategories':>15}  label\n"
    for value in values:
        yield f"{value['count']:>10}{value['subcategories']:>15}  {value['label']}\n"


def subcategory_lines(table: SubcategoryTable, label: str, n_examples: int, form: str) -> Iterator[str]:
    """The most frequent words, rules and parents of the subcategories of a label."""
    found = table.subcategories(label, n_examples)
    if form == "json":
        yield from json_lines(map(asdict, found))
        return
    for each in found:
        yield f"{each.name}  {each.count}\n"
        for title, examples in (("words", each.words), ("rules", each.rules), ("parents", each.parents)):
            if examples:
                yield f"{INDENT}{title:<8} " + ", ".join(f"{name} {count}" for name, count in examples) + "\n"


def hierarchy_lines(table: SubcategoryTable, label: str, form: str) -> Iterator[str]:
    """How the subcategories of a label were split."""
    rows = table.hierarchy(label)
    if form == "json":
        yield from json_lines({"name": name, "depth": depth, "count": count} for depth, name, count in rows)
        return
    for depth, name, count in rows:
        yield f"{count:>10}  {INDENT * depth}{name}\n"


def inspect_subcategories(arguments: dict[str, Any], model: Model, form: str) -> Iterator[str]:
    """The lines for --subcategories or --hierarchy."""
    table = entry_of(model).subcategories(model)
    if form == "discodop":
        raise UsageError("disco-dop's format cannot represent subcategories")
    if arguments["--subcategories"] not in (None, "all"):
        return subcategory_lines(table, arguments["--subcategories"], top_of(arguments, 5) or 1 << 30, form)
    if arguments["--hierarchy"] is not None:
        return hierarchy_lines(table, arguments["--hierarchy"], form)
    return label_lines(table, top_of(arguments, 20), form)


def top_of(arguments: dict[str, Any], default: int) -> int | None:
    """The number of lines to show; None for all."""
    if arguments["--top"] is None:
        return default
    return None if arguments["--top"] == "all" else integer(arguments, "--top", 1)


# ---- sizes -----------------------------------------------------------------------------------------------


def size_lines(table: FragmentTable, numbers: list[int], form: str) -> Iterator[str]:
    """The histogram of sizes."""
    histogram = table.size_histogram(numbers)
    tokens_name = "tokens" if table.measure == "count" else table.measure
    if form == "json":
        yield from json_lines({"size": size, "types": types, tokens_name: tokens} for size, types, tokens in histogram)
        return
    most = max((tokens for *_, tokens in histogram), default=1)
    yield f"{'size':>6}{'types':>10}{tokens_name:>10}\n"
    for size, types, tokens in histogram:
        yield f"{size:>6}{types:>10}{shown(tokens):>10}  {'#' * math.ceil(BAR_WIDTH * tokens / most)}\n"
    n_types, n_tokens = sum(types for _, types, _ in histogram), sum(tokens for *_, tokens in histogram)
    yield f"{'all':>6}{n_types:>10}{shown(n_tokens):>10}\n"


# ---- derivations -----------------------------------------------------------------------------------------


def derivations(deriver: Deriver, arguments: dict[str, Any]) -> Iterator[Derivation]:
    """The most probable derivation of every tree of --derivation."""
    n_empty, source = 0, arguments["--derivation"]
    for position, tree in enumerate(read_trees(source, treebank=preset_of(arguments)), start=1):
        try:
            derivation = deriver.derive(tree)
        except NoDerivationError as error:
            raise NoDerivationError(f"{source}: the model cannot make tree {position}: {error}") from None
        if derivation is None:
            n_empty += 1
        else:
            yield derivation
    if n_empty and not arguments["--quiet"]:
        left_out = f"left out {n_empty} tree{'s'[: n_empty != 1]} without words"
        print(f"tsgkit: {source}: {left_out}", file=sys.stderr)


def derivation_lines(found: Iterable[Derivation], form: str, with_insertion: bool) -> Iterator[str]:
    """Derivations as text; a fragment that is not in the last sample has the count 0."""
    if form == "json":
        yield from json_lines(derivation_value(each, with_insertion) for each in found)
        return
    for position, derivation in enumerate(found):
        if position and form == "brackets":
            yield "\n"
        for step, number_of_uses in zip(derivation.steps, derivation.counts, strict=True):
            count = shown(number_of_uses)
            if form == "discodop":
                yield f"{step.brackets}\t{count}\n"
            else:
                marked = format_fragment(step.marked)
                if step.is_auxiliary:
                    marked = with_bare_foot(marked, step.tree.label())
                yield f"{count:>10}  {INDENT * step.depth}{marked}\n"


def derivation_value(derivation: Derivation, with_insertion: bool) -> dict[str, Any]:
    steps = []
    for step, count in zip(derivation.steps, derivation.counts, strict=True):
        value = {"fragment": step.brackets, derivation.measure: count}
        value |= {"depth": step.depth, "start": step.start, "end": step.end}
        if with_insertion:
            value |= {"marked": format_fragment(step.marked), "auxiliary": step.is_auxiliary}
        steps.append(value)
    return {"words": derivation.words, "log_probability": derivation.log_weight, "steps": steps}


@command
def main(argv: list[str]) -> int:
    """Show a model's fragments, their sizes, or derivations with them."""
    arguments = parse_arguments(__doc__, argv)
    form, quiet = choice(arguments, "--format", FORMATS), arguments["--quiet"]
    top = top_of(arguments, 20)
    check_together(arguments, form)
    model = Model.load(arguments["MODEL"])
    if arguments["--subcategories"] is not None or arguments["--hierarchy"] is not None:
        with open_output() as file:
            file.writelines(inspect_subcategories(arguments, model, form))
        return 0
    deriver = Deriver(model) if arguments["--derivation"] is not None else None
    table = deriver.table if deriver else fragments_of(model)
    numbers = selected(arguments, table)
    message = ""
    if deriver is not None:
        lines = derivation_lines(derivations(deriver, arguments), form, bool(table.is_auxiliary.any()))
    elif arguments["--sizes"]:
        lines = size_lines(table, numbers, form)
        if table.is_auxiliary.any():
            message = f"{len(numbers)} fragments{types_of(table, numbers)}"
    else:
        lines = fragment_lines(table, numbers[:top], form, arguments["--examples"])
        message = f"{len(numbers[:top])} of {len(numbers)} fragments{types_of(table, numbers)}"
        if not numbers:
            message = why_nothing(model, arguments["--contains"])
    with open_output() as file:
        file.writelines(lines)
    if message and not quiet:
        print(f"tsgkit: {arguments['MODEL']}: {message}", file=sys.stderr)
    return 0


def check_together(arguments: dict[str, Any], form: str) -> None:
    """Refuse combinations of options that have no meaning."""
    if arguments["--derivation"] is not None:
        for option in ("--sizes", *FILTERS):
            if arguments[option] not in (None, False):
                raise UsageError(f"{option} and --derivation do not go together")
    if arguments["--sizes"] and arguments["--examples"]:
        raise UsageError("--sizes and --examples do not go together")
    if form == "discodop":
        for option in ("--sizes", "--examples"):
            if arguments[option]:
                raise UsageError(f"{option}: disco-dop's format cannot represent this")
