"""The usage texts of the commands: read without importing the commands, which import numpy and nltk.

The text of a command is the docstring of its module in `tsgkit._tools`. It is what docopt parses, what `--help` prints,
what shells complete, and what a wrong command line is compared with.
"""

import importlib
import pkgutil
import re
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from tsgkit import _plugins
from tsgkit._registry import Registry

AUTO = "auto"
WIDTH_OF_USAGE = 115
QUOTES = '"' * 3
# Stands for the defaults of an option, which the settings of models define; see `tsgkit._model_options.with_defaults`.
DEFAULT = "{default}"
# What stands for the names of a table in a usage text.
REGISTERED: dict[str, Registry[Any]] = {
    "readers": _plugins.READERS,
    "writers": _plugins.WRITERS,
    "unknown_words": _plugins.UNKNOWN_WORDS,
    "base_distributions": _plugins.BASE_DISTRIBUTIONS,
    "back_offs": _plugins.BACK_OFFS,
    "recipes": _plugins.RECIPES,
    "objectives": _plugins.OBJECTIVES,
    "products": _plugins.PRODUCTS,
}
# Names of values and arguments that are files or folders; others are numbers, labels and so on.
FILES = ("A", "B", "FILE", "FOLDER", "GOLD", "MODEL", "RULES", "SET", "TEST", "TEST2", "TREEBANK", "TREES")
WORD = r"[\w-]+"


class OptionText(NamedTuple):
    """An option as the usage text describes it.

    Attributes
    ----------
    names : tuple of str
        For instance ``-o`` and ``--output``.
    value : str
        The name of its value in the text; empty for a flag.
    description : str
        On one line, without the default.
    """

    names: tuple[str, ...]
    value: str = ""
    description: str = ""

    @property
    def long(self) -> str:
        """The name that is offered."""
        return self.names[-1]

    @property
    def choices(self) -> list[str]:
        """The values that the description lists, if it lists any."""
        return listed_choices(self.description) if self.value else []

    @property
    def takes_file(self) -> bool:
        """Whether its value is a file, or can be one."""
        return self.value in FILES and (not self.choices or "file" in self.description)


class CommandText(NamedTuple):
    """A command as its usage text describes it.

    Attributes
    ----------
    name, summary : str
    options : list of OptionText
    words : list of str
        Words of the usage lines after the command: ``bash`` and ``zsh`` of ``tsgkit completion``.
    takes_files : bool
        Whether an argument is a file.
    """

    name: str
    summary: str
    options: list[OptionText]
    words: list[str]
    takes_files: bool


def listed_choices(description: str) -> list[str]:
    """The values that a description lists.

    Either each with its meaning, ``cfg: this; tsg: that``, or one after the other between colons and semicolons,
    ``of the input: auto, brackets or export``. Text in round brackets is ignored, and so is ``or a file``.

    Examples
    --------
    >>> listed_choices("cfg: relative frequencies; tsg: a Bayesian grammar, the better one")
    ['cfg', 'tsg']
    >>> listed_choices("of the input: auto, brackets or export")
    ['auto', 'brackets', 'export']
    >>> listed_choices("blocked (whole trees) or local (single sites); see there")
    ['blocked', 'local']
    >>> listed_choices("for centre-head: penn, leftmost or a file")
    ['penn', 'leftmost']
    >>> listed_choices("the probability of an insertion, for all labels")
    []
    """
    explained = [re.match(rf"({WORD}): ", part.strip()) for part in description.split(";")]
    if len(explained) > 1 and all(explained):
        return [found[1] for found in explained if found and not found[1].isdigit()]
    plain = re.sub(r"\([^()]*\)", "", description)
    for clause in re.split(r"[;:.](?: |$)", plain):
        parts = [part.strip() for part in re.split(r",(?: or)? | or ", clause)]
        words = [part for part in parts if not re.match("an? ", part)]
        if len(parts) > 1 and words and all(re.fullmatch(WORD, word) for word in words):
            return words
    return []


def option_texts(text: str) -> list[OptionText]:
    """The options that a usage text describes, in its order.

    Examples
    --------
    >>> option, flag = option_texts('''
    ...   -o FILE, --output=FILE  where to
    ...                           write [default: -]
    ...   -q, --quiet  no messages
    ... ''')
    >>> option.names, option.value, option.description
    (('-o', '--output'), 'FILE', 'where to write')
    >>> flag.long, flag.value
    ('--quiet', '')
    """
    found = []
    # As in docopt, an option begins a line, and two spaces end its names.
    for part in re.split(r"^[ \t]+(?=-\S)", text, flags=re.MULTILINE)[1:]:
        # An empty line or a heading ends the description of the option above it.
        paragraph = re.split(r"\n(?=\s*\n|\S)", part)[0]
        names, _, description = paragraph.partition("  ")
        value = re.search(r"--?[\w-]+[= ]([A-Z][A-Z0-9]*)", names)
        description = re.sub(
            r"\[default: [^]]*\]|\(default: [^)]*\)|\{default\}", "", " ".join(description.split())
        ).strip()
        found.append(OptionText(tuple(re.findall(r"--?[\w-]+", names)), value[1] if value else "", description))
    return found


# ---- texts ---------------------------------------------------------------------------------------------------


def command_names() -> list[str]:
    """The names of all commands, in alphabetical order."""
    tools = importlib.import_module("tsgkit._tools")
    return sorted(module.name for module in pkgutil.iter_modules(tools.__path__) if not module.ispkg)


@cache
def source_text(name: str) -> str:
    """The usage text as it stands in the source of a command, with ``{...}`` for what is filled in."""
    source = (pkgutil.get_data("tsgkit._tools", f"{name}.py") or b"").decode()
    return source.split(QUOTES)[1].strip()


def usage_text(name: str) -> str:
    """The usage text of a command with the names of what is registered."""
    return with_registered(source_text(name))


def summary(name: str) -> str:
    """The first line of a command's usage text."""
    return source_text(name).splitlines()[0]


def with_registered(usage: str | None) -> str:
    """A usage text that lists the registered readers, writers, objectives and so on where it names these."""
    used = {name: table.names for name, table in REGISTERED.items() if f"{{{name}}}" in (usage or "")}
    if "readers" in used:
        used["readers"] = (AUTO, *used["readers"])
    return with_choices(usage, **used) if used else usage or ""


def with_choices(usage: str | None, **choices: Sequence[str]) -> str:
    """A usage text with ``{name}`` replaced by the choices of that name, so that `--help` lists what is registered.

    Examples
    --------
    >>> with_choices("  --format=FORMAT  of the input: {readers}", readers=["auto", "brackets", "export"])
    '  --format=FORMAT  of the input: auto, brackets or export'
    """
    texts = {
        f"{{{name}}}": " or ".join(filter(None, (", ".join(listed[:-1]), *listed[-1:])))
        for name, listed in choices.items()
    }
    lines = []
    for line in (usage or "").split("\n"):
        filled = re.sub(r"\{\w+\}", lambda found: texts.get(found[0], found[0]), line)
        lines.append(filled if filled == line or len(filled) <= WIDTH_OF_USAGE else wrapped_option(filled))
    return "\n".join(lines)


def wrapped_option(line: str) -> str:
    """The line of an option on several lines, its description indented as on the first; a default is not broken."""
    import textwrap  # noqa: PLC0415 - few texts have such a line

    description = re.match(r" *\S+(?: \S+)*  +", line)
    parts = textwrap.wrap(
        line.replace("[default: ", "[default:\0"),
        WIDTH_OF_USAGE,
        subsequent_indent=" " * (description.end() if description else 0),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(parts).replace("\0", " ")


# ---- commands ------------------------------------------------------------------------------------------------


def patterns_and_rest(text: str) -> tuple[list[str], str]:
    """The patterns of a usage text, one string each, and what follows them.

    Examples
    --------
    >>> patterns_and_rest("Usage:\\n  tsgkit eval [options]\\n       GOLD TEST\\n  tsgkit eval --help\\n\\nOptions")
    (['  tsgkit eval [options] GOLD TEST', '  tsgkit eval --help'], 'Options')
    """
    _, _, after = text.partition("Usage:\n")
    patterns, _, rest = after.partition("\n\n")
    # A line that is indented more than the others continues the one before it.
    return re.sub(r"\n {3,}", " ", patterns).splitlines(), rest


def command_text(name: str) -> CommandText:
    """A command, from its usage text."""
    lines, rest = patterns_and_rest(usage_text(name))
    patterns = re.findall(rf"tsgkit {name}(.*)", "\n".join(lines))
    bare = [re.sub(r"\[?--?[\w-]+(?:=\w+)?\]?|\[options\]", "", pattern) for pattern in patterns]
    words = [word for pattern in bare for word in re.findall(r"\b[a-z]+\b", pattern)]
    arguments = [word for pattern in bare for word in re.findall(r"\b[A-Z][A-Z0-9]*\b", pattern)]
    return CommandText(
        name, summary(name), option_texts(rest), list(dict.fromkeys(words)), any(word in FILES for word in arguments)
    )


def command_texts() -> list[CommandText]:
    """All commands."""
    return [command_text(name) for name in command_names()]
