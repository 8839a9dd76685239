"""Completion scripts for shells, generated from the usage texts of the commands.

The usage texts are also what docopt parses, so that completion cannot differ from the commands: a command, an option or
a list of choices that is added to a text is completed.
"""

import importlib
import inspect
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tsgkit.cli import command_names, summary

# Names of values and arguments that are files or folders; others are numbers, labels and so on.
FILES = ("A", "B", "FILE", "FOLDER", "GOLD", "MODEL", "RULES", "SET", "TEST", "TEST2", "TREEBANK", "TREES")
WORD = r"[\w-]+"


@dataclass(frozen=True)
class OptionText:
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


@dataclass(frozen=True)
class CommandText:
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
    options: list[OptionText] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    takes_files: bool = False


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
        description = re.sub(r"\[default: [^]]*\]|\(default: [^)]*\)", "", " ".join(description.split())).strip()
        found.append(OptionText(tuple(re.findall(r"--?[\w-]+", names)), value[1] if value else "", description))
    return found


def command_text(name: str) -> CommandText:
    """A command, from its usage text."""
    text = inspect.getdoc(importlib.import_module(f"tsgkit.tools.{name}")) or ""
    _, _, after = text.partition("Usage:\n")
    usage, _, rest = after.partition("\n\n")
    patterns = re.findall(rf"tsgkit {name}(.*)", usage)
    bare = [re.sub(r"\[?--?[\w-]+(?:=\w+)?\]?|\[options\]", "", pattern) for pattern in patterns]
    words = [word for pattern in bare for word in re.findall(r"\b[a-z]+\b", pattern)]
    arguments = [word for pattern in bare for word in re.findall(r"\b[A-Z][A-Z0-9]*\b", pattern)]
    return CommandText(
        name, summary(name), option_texts(rest), list(dict.fromkeys(words)), any(word in FILES for word in arguments)
    )


def command_texts() -> list[CommandText]:
    """All commands."""
    return [command_text(name) for name in command_names()]


# ---- bash --------------------------------------------------------------------------------------------------

BASH = """\
# Completion of tsgkit for bash, generated by `tsgkit completion bash`; load it with
#   source <(tsgkit completion bash)
_tsgkit() {
    local word=${COMP_WORDS[COMP_CWORD]} option= command=${COMP_WORDS[1]} words= files=
    # bash splits --option=value at the =.
    if [[ $word == = ]]; then
        word= option=${COMP_WORDS[COMP_CWORD-1]}
    elif ((COMP_CWORD >= 2)) && [[ ${COMP_WORDS[COMP_CWORD-1]} == = ]]; then
        option=${COMP_WORDS[COMP_CWORD-2]}
    elif ((COMP_CWORD >= 2)) && [[ ${COMP_WORDS[COMP_CWORD-1]} == -[a-z] ]]; then
        option=${COMP_WORDS[COMP_CWORD-1]}
    fi
    COMPREPLY=()
    if ((COMP_CWORD == 1)) || [[ $command == help && COMP_CWORD -eq 2 ]]; then
        words=$COMMANDS
        ((COMP_CWORD == 1)) && words+=' help --help --version'
        COMPREPLY=($(compgen -W "$words" -- "$word"))
        return
    fi
    case "$command $option" in
$VALUES
        *" "-?*)
            # A flag has no value: what follows is an argument.
            [[ ${COMP_WORDS[COMP_CWORD-1]} == = || ${COMP_WORDS[COMP_CWORD]} == = ]] && return
            option= ;;
    esac
    if [[ -z $option ]]; then
        case $command in
$ARGUMENTS
            *) return ;;
        esac
    fi
    if [[ -n $words ]]; then
        COMPREPLY=($(compgen -W "$words" -- "$word"))
        [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
    fi
    if [[ -n $files && $word != -* ]]; then
        local IFS=$'\\n'
        compopt -o filenames 2>/dev/null
        COMPREPLY+=($(compgen -f -- "$word"))
    fi
}
complete -F _tsgkit tsgkit
"""


def bash_script() -> str:
    """A script for bash."""
    texts = command_texts()
    values, arguments = [], []
    for text in texts:
        for option in text.options:
            if option.value:
                patterns = "|".join(f'"{text.name} {name}"' for name in option.names)
                values.append(f"        {patterns}) {bash_settings(option.choices, option.takes_file)} ;;")
        words = [*text.words, *(option.long + ("=" if option.value else "") for option in text.options)]
        arguments.append(f"            {text.name}) {bash_settings(words, text.takes_files)} ;;")
    return (
        BASH.replace("$COMMANDS", shlex.quote(" ".join(text.name for text in texts)))
        .replace("$VALUES", "\n".join(values))
        .replace("$ARGUMENTS", "\n".join(arguments))
    )


def bash_settings(words: list[str], files: bool) -> str:
    """The variables that an entry of the tables in the script sets."""
    return f"words={shlex.quote(' '.join(words))} files={'yes' if files else ''}"


# ---- zsh ---------------------------------------------------------------------------------------------------

ZSH = """\
#compdef tsgkit
# Completion of tsgkit for zsh, generated by `tsgkit completion zsh`; put it into a folder of $fpath as _tsgkit, or,
# after compinit, load it with
#   source <(tsgkit completion zsh)
_tsgkit_word_or_file() {
    _alternative "words:word:($*)" 'files:file:_files'
}
_tsgkit() {
    local -a commands
    commands=(
$COMMANDS
    )
    if ((CURRENT == 2)); then
        _describe -t commands command commands
        return
    fi
    local command=$words[2]
    shift words
    ((CURRENT--))
    case $command in
        help) _describe -t commands command commands ;;
$ARGUMENTS
    esac
}
if [[ $funcstack[1] == _tsgkit ]]; then
    _tsgkit "$@"
else
    compdef _tsgkit tsgkit
fi
"""


def zsh_script() -> str:
    """A script for zsh."""
    texts = command_texts()
    commands = [f"        {shlex.quote(f'{text.name}:{text.summary}')}" for text in texts]
    arguments = []
    for text in texts:
        lines = " \\\n".join(f"            {shlex.quote(each)}" for each in zsh_arguments(text))
        arguments.append(f"        {text.name}) _arguments -S \\\n{lines} ;;")
    return ZSH.replace("$COMMANDS", "\n".join(commands)).replace("$ARGUMENTS", "\n".join(arguments))


def zsh_arguments(text: CommandText) -> Iterator[str]:
    """The arguments of zsh's ``_arguments`` for a command."""
    for option in text.options:
        description = re.sub(r"([\[\]:\\])", r"\\\1", option.description)
        for name in option.names:
            if not option.value:
                yield f"{name}[{description}]"
                continue
            action = zsh_action(option)
            joint = "=" if name.startswith("--") else ""
            yield f"*{name}{joint}[{description}]:{option.value}:{action}"
    if text.words:
        yield f"1:word:({' '.join(text.words)})"
    if text.takes_files:
        yield "*:file:_files"


def zsh_action(option: OptionText) -> str:
    """How zsh completes the value of an option."""
    words = " ".join(option.choices)
    if not option.takes_file:
        return f"({words})" if words else " "
    return f" _tsgkit_word_or_file {words}" if words else "_files"


SCRIPTS: dict[str, Callable[[], str]] = {"bash": bash_script, "zsh": zsh_script}
