"""Say what a file is: a model, a corpus, a checkpoint, a treebank, ...

Usage:
  tsgkit info [options] FILE...
  tsgkit info -h | --help | --version

For a file of tsgkit, its kind and what it was made with; for a treebank, its format and how many trees it has.

Options:
  --json         one JSON object per file, one per line
  -q, --quiet    no messages
  -h, --help     this text
  --version      the version
"""

import json
import os
import re
import sys
from typing import Any

from tsgkit._archive import archive_header, is_archive
from tsgkit._cli import command, parse_arguments
from tsgkit._exit_codes import EXIT_USAGE
from tsgkit._files import open_binary, open_output
from tsgkit.errors import ArchiveError, TsgkitError
from tsgkit.treebank._formats import ENCODING
from tsgkit.treebank._sources import decode_lines, has_trees, read_trees, recognised_format
from tsgkit.treebank._trees import words

# By the end of the name: files that tsgkit writes beside others.
BESIDE = {
    ".partial": "the trees of an unfinished `tsgkit parse`; the same command with --resume continues it",
    ".partial.json": "the journal of an unfinished `tsgkit parse`",
    ".prm": "EVALB parameters",
    ".toml": "the preset of a treebank, for --treebank",
    ".html": "a page",
    ".svg": "a picture",
    ".tex": "a picture for LaTeX",
}
# By the first bytes.
MAGIC = {b"\x89PNG\r\n\x1a\n": "a picture (PNG)", b"%PDF-": "a picture or page (PDF)"}
# By the first line.
FIRST_LINES = {
    r"iteration\t": "a table of all iterations of a training",
    r"\d+\t\d+\t": "parses with their scores, from `tsgkit parse --scores`",
}
MISSING = "there is no such file"
# Only models with labels of spans have this array.
SPAN_LABELS = "span_labels.weights"
TITLES = {
    "model": "a trained model",
    "corpus": "a prepared corpus, for `tsgkit train`",
    "checkpoint": "a checkpoint, from which `tsgkit train --resume` continues",
    "grammar": "a weighted grammar",
}


def facts_of(path: str) -> dict[str, Any]:
    """What is known about a file."""
    if os.path.isfile(path) and is_archive(path):
        return archive_facts(path)
    if not has_trees(path):
        return {"file": path, "is": MISSING}
    for ending, title in sorted(BESIDE.items(), key=lambda pair: -len(pair[0])):
        if path.endswith(ending):
            return {"file": path, "is": title, "bytes": os.path.getsize(path)}
    if os.path.isfile(path) and (found := title_by_content(path)):
        return {"file": path, "is": found, "bytes": os.path.getsize(path)}
    return treebank_facts(path)


def title_by_content(path: str) -> str | None:
    """What a file is by how it begins; None for a treebank, and for what is not known."""
    with open_binary(path) as file:
        start = file.read(1 << 10)
    first_line = start.decode(ENCODING, "replace")
    for begin, title in MAGIC.items():
        if start.startswith(begin):
            return title
    for pattern, title in FIRST_LINES.items():
        if re.match(pattern, first_line):
            return title
    return None


def archive_facts(path: str) -> dict[str, Any]:
    """The kind of a file of tsgkit, and what its header says."""
    header, shapes = archive_header(path)
    kind = str(header.get("kind"))
    facts: dict[str, Any] = {"file": path, "is": TITLES.get(kind, f"a file of kind {kind}"), "kind": kind}
    facts |= {"format version": header.get("version"), "bytes": os.path.getsize(path)}
    info, identity = part_of(header, "info"), part_of(header, "identity")
    for name, value in (
        ("model", header.get("model", identity.get("model"))),
        ("iteration", header.get("iteration")),
        *((name, info.get(name, identity.get(name))) for name in ("tsgkit", "trees", "tokens", "seed", "iterations")),
        ("settings", info.get("settings", identity.get("settings"))),
        ("preparation", preparation_of(header)),
    ):
        if value is not None:
            facts[name] = value
    rules = sum(shape[0] for name, shape in shapes.items() if is_finest_rule(name, header) and shape)
    if rules:
        facts["rules"] = rules
    if SPAN_LABELS in shapes:
        facts["parses with"] = "a model of the labels of spans"
    return facts


def part_of(header: dict[str, Any], name: str) -> dict[str, Any]:
    """A part of the header, which may be missing."""
    found = header.get(name)
    return found if isinstance(found, dict) else {}


def is_finest_rule(member: str, header: dict[str, Any]) -> bool:
    """Whether an array has the rules of the grammar that decides."""
    levels = header.get("levels")
    last = len(levels) - 1 if isinstance(levels, list) else -1
    return member in {f"level{last}.{kind}" for kind in ("binary", "unary", "bridge", "lexical")}


def preparation_of(header: dict[str, Any]) -> dict[str, Any] | None:
    """The preparation without the words."""
    found = header.get("preparation", part_of(header, "settings").get("preparation"))
    if not isinstance(found, dict):
        return None
    return {name: value for name, value in found.items() if name != "lexicon"}


def treebank_facts(path: str) -> dict[str, Any]:
    """The format of a treebank, and its size."""
    facts: dict[str, Any] = {"file": path}
    name = recognised_format(path) if os.path.isfile(path) else None
    n_trees = n_words = 0
    if name == "conllu":
        return facts | dependency_facts(path)
    try:
        for tree in read_trees(path):
            n_trees += 1
            n_words += len(words(tree))
    except TsgkitError as error:
        problem = f"not a treebank ({error})" if not n_trees else f"a treebank with an error ({error})"
        n_lines = 0 if n_trees else lines_of_text(path)
        return facts | ({"is": f"text, {problem}", "lines": n_lines} if n_lines else {"is": problem})
    shown = f"a treebank in the format {name}" if name else "a treebank"
    return facts | {"is": shown if n_trees else "an empty file", "trees": n_trees, "words": n_words}


def dependency_facts(path: str) -> dict[str, Any]:
    """Sentences and words of a file in CoNLL-U; ranges of words and empty nodes do not count."""
    n_sentences = n_words = 0
    for line in decode_lines(path, ENCODING):
        number = line.partition("\t")[0]
        n_words += number.isdecimal()
        n_sentences += number == "1"
    return {"is": "dependencies in CoNLL-U, without phrases", "sentences": n_sentences, "words": n_words}


def lines_of_text(path: str) -> int:
    """The number of lines with more than white space; 0 if the file is not text."""
    try:
        return sum(1 for line in decode_lines(path, ENCODING) if line.strip())
    except (TsgkitError, OSError):  # a folder, say
        return 0


def text_of(facts: dict[str, Any]) -> str:
    """The facts as text, one per line."""
    lines = [f"{facts['file']}: {facts['is']}"]
    for name, value in facts.items():
        if name in ("file", "is", "kind"):
            continue
        # What a part has of its own is shown as the part is: how trees were cleaned, and binarised.
        parts = value.items() if name == "preparation" else [(name, value)]
        lines += [f"  {part:<16}{shown}" for part, each in parts if (shown := shown_value(each))]
    return "\n".join(lines) + "\n"


def shown_value(value: Any) -> str:
    """A value on one line: settings with what they are, without those that are off; of a text, its first line.

    Examples
    --------
    >>> shown_value({"method": "right", "heads": None, "tags": ["A", "B"], "functions": True, "unaries": False})
    'method=right, tags=A B, functions'
    """
    if isinstance(value, dict):
        given = {key: each for key, each in value.items() if each is not False and each not in (None, "", [], {})}
        return ", ".join(key if each is True else f"{key}={shown_value(each)}" for key, each in given.items())
    if isinstance(value, list):
        return " ".join(map(shown_value, value))
    first, *others = str(value).splitlines() or [""]
    return f"{first} ..." if others else first


@command
def main(argv: list[str]) -> int:
    """Print what is known about each file."""
    arguments = parse_arguments(__doc__, argv)
    any_missing = False
    with open_output() as file:
        for path in arguments["FILE"]:
            try:
                facts = facts_of(path)
            except ArchiveError as error:
                facts = {"file": path, "is": f"a damaged file of tsgkit ({error})"}
            any_missing |= facts["is"] == MISSING
            file.write(json.dumps(facts, ensure_ascii=False) + "\n" if arguments["--json"] else text_of(facts))
    return EXIT_USAGE if any_missing else 0


if __name__ == "__main__":
    sys.exit(main())
