"""Presets: everything that a treebank needs, in one word: reader, cleaning, head rules, evaluation, punctuation.

All stages of the flow. A preset is a TOML file; those of the package have the form of a user's own.
"""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib import resources
from pathlib import Path
from typing import Any

from tsgkit._files import read_table
from tsgkit._guesses import one_of
from tsgkit.errors import TreebankError, UsageError
from tsgkit.treebank._brackets import escape_symbol
from tsgkit.treebank._clean import Cleaning
from tsgkit.treebank._formats import AUTO, READERS, named_options
from tsgkit.treebank._heads import BUILT_IN, PENN, HeadRules, rules_text

ENDING = ".toml"
LARGEST_FILE = 1 << 20
SECTIONS = {
    "": ("title", "sources", "notes", "read", "clean", "heads", "evaluate"),
    "read": ("format", "encoding", "continuous", "files", "options"),
    "clean": ("labels", *(each.name for each in fields(Cleaning) if each.name != "relabelling")),
    "heads": ("table", "rules"),
    "evaluate": ("parameters", "punctuation", "root", "equal_labels"),
}


@dataclass(frozen=True, repr=False)
class Preset:
    """The settings of a treebank.

    Attributes
    ----------
    name : str
    title : str
    sources : tuple of str
        Papers and manuals that the settings follow.
    notes : str
    format : str
        The name of a reader, or ``auto``.
    options : mapping of str to str
        The named options of the reader.
    encoding : str or None
    continuous : bool
        Whether discontinuous trees are made continuous.
    files : tuple of str
        Patterns for the names of the files of a folder; all files if there are none.
    cleaning : Cleaning
    heads : str
        The name of a built-in head table, or that of the preset.
    rules : str or None
        The text of the head rules, unless they are built in.
    punctuation : tuple of str
        Tags of punctuation.
    parameters : str
        EVALB parameters: the name of a bundled file, or a text with ``punctuation`` deleted.

    Examples
    --------
    >>> preset = load_preset("cess")
    >>> preset.format, preset.encoding, preset.punctuation[:2]
    ('brackets', 'iso-8859-1', ('Fp', 'Fc'))
    """

    name: str
    title: str
    sources: tuple[str, ...] = ()
    notes: str = ""
    format: str = AUTO
    options: Mapping[str, str] = field(default_factory=dict)
    encoding: str | None = None
    continuous: bool = False
    files: tuple[str, ...] = ()
    cleaning: Cleaning = field(default_factory=Cleaning)
    heads: str = "penn"
    rules: str | None = None
    punctuation: tuple[str, ...] = ()
    parameters: str = "collins"

    def __repr__(self) -> str:
        return f"<Preset {self.name}: {self.title}>"

    @property
    def head_rules(self) -> str:
        """The text of the head rules."""
        return BUILT_IN[self.heads] if self.rules is None else self.rules


def preset_names() -> list[str]:
    """The names of the presets of the package."""
    folder = resources.files("tsgkit.treebank._presets")
    return sorted(entry.name.removesuffix(ENDING) for entry in folder.iterdir() if entry.name.endswith(ENDING))


def load_preset(name: str | os.PathLike[str]) -> Preset:
    """A preset of the package by its name, or one of a user's own by the path of its file."""
    text = os.fspath(name)
    if text in preset_names():
        source = resources.files("tsgkit.treebank._presets") / f"{text}{ENDING}"
        return parse_preset(source.read_text(encoding="utf-8"), text, f"preset {text}")
    path = Path(text)
    if not path.is_file():
        raise UsageError(f"treebank {text!r}: neither a file nor {one_of(text, preset_names())}")
    return parse_preset(read_table(path, "presets", LARGEST_FILE), path.stem, text)


def facts_of_preset(preset: Preset) -> dict[str, Any]:
    """What a model remembers of its treebank, as arguments of `tsgkit.treebank.prepare`.

    Examples
    --------
    >>> facts_of_preset(load_preset("penn"))
    {'parameters': 'collins', 'head_rules': ''}
    """
    return {"parameters": preset.parameters, "head_rules": remembered(preset.head_rules)}


def remembered(rules: str) -> str:
    """The text of head rules, unless they are those for the Penn Treebank, the default."""
    return "" if rules == PENN else rules


def head_rules_named(name: str | os.PathLike[str]) -> str:
    """The text of head rules: a built-in table, that of a preset, or that of a file.

    Examples
    --------
    >>> head_rules_named("rightmost"), "grup.nom" in head_rules_named("cess")
    ('* rightmost\\n', True)
    """
    text = os.fspath(name)
    if text not in BUILT_IN and text in preset_names():
        return load_preset(text).head_rules
    if text not in BUILT_IN and not os.path.exists(text):
        known = dict.fromkeys([*BUILT_IN, *preset_names()])
        raise UsageError(f"head rules {text!r}: neither a file nor {one_of(text, known)}")
    return rules_text(text)


def parse_preset(text: str, name: str, place: str) -> Preset:
    """The preset of the text of a TOML file; `place` is its name in errors."""
    try:
        values = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise TreebankError(f"not TOML: {error}", place) from None
    sections = {section: section_of(values, section, place) for section in SECTIONS}
    top, read, evaluate = sections[""], sections["read"], sections["evaluate"]
    punctuation = as_annotated_and_written(strings(evaluate.get("punctuation", []), "evaluate.punctuation", place))
    heads, rules = heads_of(sections["heads"], punctuation, name, place)
    return Preset(
        name,
        title=string(top.get("title", name), "title", place),
        sources=strings(top.get("sources", []), "sources", place),
        notes=string(top.get("notes", ""), "notes", place),
        **reading_of(read, place),
        cleaning=cleaning_of(sections["clean"], place),
        heads=heads,
        rules=rules,
        punctuation=punctuation,
        parameters=parameters_of(evaluate, punctuation, place),
    )


def as_annotated_and_written(tags: tuple[str, ...]) -> tuple[str, ...]:
    """Tags, and those with round brackets also as they are in files of brackets: ``$(`` is ``$-LRB-`` there."""
    return tuple(dict.fromkeys([*tags, *map(escape_symbol, tags)]))


def section_of(values: dict[str, Any], section: str, place: str) -> dict[str, Any]:
    """A table of the file, with no other keys than there may be."""
    table = values.get(section, {}) if section else values
    if not isinstance(table, dict):
        raise TreebankError(f"[{section}] must be a table", place)
    for key in table:
        if key not in SECTIONS[section]:
            where = f"in [{section}]" if section else "at the top"
            raise TreebankError(f"no key {key!r} {where}; there are {', '.join(SECTIONS[section])}", place)
    return table


def string(value: object, key: str, place: str) -> str:
    if not isinstance(value, str):
        raise TreebankError(f"{key} must be a string, not {value!r}", place)
    return value


def strings(value: object, key: str, place: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise TreebankError(f"{key} must be a list of strings, not {value!r}", place)
    return tuple(value)


def reading_of(read: dict[str, Any], place: str) -> dict[str, Any]:
    """The settings of the reader."""
    format_name = string(read.get("format", AUTO), "read.format", place)
    options = read.get("options", {})
    if not isinstance(options, dict) or not all(isinstance(value, str) for value in options.values()):
        raise TreebankError("read.options must be a table of strings", place)
    try:
        if format_name != AUTO:
            named_options(READERS.require(format_name), format_name, options)
        elif options:
            raise UsageError("options need a format")
    except UsageError as error:
        raise TreebankError(f"read: {error}", place) from None
    continuous = read.get("continuous", False)
    if not isinstance(continuous, bool):
        raise TreebankError(f"read.continuous must be true or false, not {continuous!r}", place)
    return {
        "format": format_name,
        "options": options,
        "encoding": string(read["encoding"], "read.encoding", place) if "encoding" in read else None,
        "continuous": continuous,
        "files": strings(read.get("files", []), "read.files", place),
    }


def cleaning_of(clean: dict[str, Any], place: str) -> Cleaning:
    """The cleaning steps: the defaults, with those that the section names."""
    given = {("relabelling" if key == "labels" else key): value for key, value in clean.items()}
    try:
        return Cleaning.from_dict({**Cleaning().to_dict(), **given})
    except (ValueError, TypeError) as error:
        raise TreebankError(f"clean: {error}", place) from None


def heads_of(heads: dict[str, Any], punctuation: tuple[str, ...], name: str, place: str) -> tuple[str, str | None]:
    """The name and the text of the head rules; punctuation is no head."""
    if "rules" not in heads:
        table = string(heads.get("table", "penn"), "heads.table", place)
        if table not in BUILT_IN:
            raise TreebankError(f"heads.table={table!r}: must be one of {', '.join(BUILT_IN)}", place)
        return table, None
    if "table" in heads:
        raise TreebankError("heads: either table or rules", place)
    rules = f"%punctuation {' '.join(punctuation)}\n{string(heads['rules'], 'heads.rules', place)}"
    HeadRules.parse(rules, f"{place}, heads")
    return name, rules


def parameters_of(evaluate: dict[str, Any], punctuation: tuple[str, ...], place: str) -> str:
    """The name or the text of EVALB parameters."""
    if "parameters" in evaluate:
        return string(evaluate["parameters"], "evaluate.parameters", place)
    roots = strings(evaluate.get("root", ["TOP"]), "evaluate.root", place)
    pairs = evaluate.get("equal_labels", [])
    if not isinstance(pairs, list) or not all(len(strings(pair, "equal_labels", place)) == 2 for pair in pairs):
        raise TreebankError("evaluate.equal_labels must be a list of pairs of labels", place)
    lines = [f"DELETE_LABEL {label}" for label in (*roots, *punctuation)]
    lines += [f"DELETE_LABEL_FOR_LENGTH {label}" for label in punctuation]
    lines += [f"EQ_LABEL {one} {other}" for one, other in pairs]
    return "".join(f"{line}\n" for line in ("LABELED 1", "CUTOFF_LEN 40", *lines))
