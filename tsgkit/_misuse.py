"""What is wrong with a command line: in words, with a guess at what was meant.

docopt only says that the arguments do not match. This module compares them with the usage text and names the option
that does not exist, the value or argument that is missing, or the one that is too many.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tsgkit._guesses import did_you_mean
from tsgkit._usage import OptionText, command_names, option_texts, patterns_and_rest, usage_text

# What options of EVALB, the Berkeley parser and disco-dop are called here, by their names in lower case.
ELSEWHERE = {
    "goldpos": "--tags",
    "usegoldpos": "--tags",
    "tagged": "--tags",
    "inputfile": "--input",
    "outputfile": "--output",
    "nthreads": "--threads",
    "numproc": "--jobs",
    "k": "--kbest",
    "n": "--kbest",
    "p": "--params",
    "i": "--input",
}


@dataclass(frozen=True)
class Pattern:
    """One line of a usage: what must be given, and what may be.

    Attributes
    ----------
    required : tuple of str
        Options and words that must be there.
    repeatable : tuple of str
        Options that may be given several times.
    least : tuple of str
        Names of the arguments that must be there, in order.
    most : int or None
        How many arguments there may be; None for any number.
    """

    required: tuple[str, ...]
    repeatable: tuple[str, ...]
    least: tuple[str, ...]
    most: int | None


@dataclass
class Given:
    """A command line in parts: options with how often they are given, arguments, and what is wrong already."""

    options: Counter[str] = field(default_factory=Counter)
    arguments: list[str] = field(default_factory=list)
    problem: str = ""


def misuse(usage: str, argv: Sequence[str]) -> str:
    """Why arguments do not fit a usage text; an empty string if no reason is found.

    Examples
    --------
    >>> usage = '''Usage:
    ...   tsgkit train [options] --output=MODEL TREEBANK...
    ...
    ...   -o MODEL, --output=MODEL  the file to write
    ...   --model=KIND  which model
    ...   -q, --quiet  no messages
    ... '''
    >>> misuse(usage, ["--modle=cfg", "x.mrg"])
    'no option --modle; did you mean --model?'
    >>> misuse(usage, ["x.mrg"])
    '--output=MODEL is missing'
    >>> misuse(usage, ["-o", "m"])
    'TREEBANK is missing'
    >>> misuse(usage, ["-qo", "m", "--quiet=yes", "x.mrg"])
    '--quiet takes no value'
    """
    lines, rest = patterns_and_rest(usage)
    texts = option_texts(rest)
    given = split_arguments(argv, texts)
    if given.problem:
        return given.problem
    patterns = [pattern_of(line, texts) for line in lines if "--help" not in line]
    found = [problems_with(given, pattern) for pattern in patterns]
    fewest = min(found, key=len, default=[])
    return "; ".join(fewest)


def split_arguments(argv: Sequence[str], texts: Sequence[OptionText]) -> Given:
    """The options and arguments of a command line, as docopt takes them: any prefix of a long option that is unique."""
    given = Given()
    rest = list(argv)
    while rest and not given.problem:
        word = rest.pop(0)
        if word == "--":
            given.arguments += rest
            break
        if word.startswith("--"):
            take_long(word, rest, texts, given)
        elif word.startswith("-") and len(word) > 1:
            take_short(word[1:], rest, texts, given)
        else:
            given.arguments.append(word)
    return given


def take_long(word: str, rest: list[str], texts: Sequence[OptionText], given: Given) -> None:
    name, equals, _ = word.partition("=")
    by_name = {each: text for text in texts for each in text.names if each.startswith("--")}
    matches = [name] if name in by_name else [each for each in by_name if each.startswith(name)]
    if not matches:
        given.problem = f"no option {name}{commands_with(name) or meant(name, by_name)}"
    elif len(matches) > 1:
        given.problem = f"{name} can be {', '.join(matches[:-1])} or {matches[-1]}"
    else:
        take_option(by_name[matches[0]], bool(equals), rest, given)


def take_short(letters: str, rest: list[str], texts: Sequence[OptionText], given: Given) -> None:
    by_letter = {name[1:]: text for text in texts for name in text.names if not name.startswith("--")}
    long_names = [name for text in texts for name in text.names if name.startswith("--")]
    whole = letters.partition("=")[0]
    for place, letter in enumerate(letters):
        if letter not in by_letter:
            # A long option with one dash, as other programs have them, or a letter.
            name = whole if len(whole) > 1 and meant(whole, long_names) else letter
            given.problem = f"no option -{name}{meant(name, long_names)}"
            return
        if by_letter[letter].value:
            take_option(by_letter[letter], place + 1 < len(letters), rest, given)
            return
        given.options[by_letter[letter].long] += 1


def commands_with(name: str) -> str:
    """Which other commands have an option, as the end of a sentence; empty if none has.

    Examples
    --------
    >>> commands_with("--splits"), commands_with("--product"), commands_with("--spilts")
    ('; it is one of `tsgkit train`', '; it is one of `tsgkit parse`', '')
    """
    found = [
        f"`tsgkit {command}`"
        for command in command_names()
        if any(name in text.names for text in option_texts(patterns_and_rest(usage_text(command))[1]))
    ]
    listed = " and ".join(filter(None, (", ".join(found[:-1]), found[-1]))) if found else ""
    return f"; it is one of {listed}" if found else ""


def meant(name: str, known: Iterable[str]) -> str:
    """A guess at what a wrong option should have been, as the end of a sentence; empty if nothing is similar.

    Examples
    --------
    >>> meant("-kbest", ["--kbest", "--tags"]), meant("--goldPOS", ["--kbest", "--tags"]), meant("x", ["--tags"])
    ('; did you mean --kbest?', '; did you mean --tags?', '')
    """
    bare, names = name.strip("-"), list(known)
    other = ELSEWHERE.get(bare.lower())
    if other in names:
        return f"; did you mean {other}?"
    return did_you_mean(f"--{bare}", names) if len(bare) > 1 else ""


def take_option(text: OptionText, has_value: bool, rest: list[str], given: Given) -> None:
    """Count an option; its value may be the next word."""
    given.options[text.long] += 1
    if has_value and not text.value:
        given.problem = f"{text.long} takes no value"
    elif text.value and not has_value:
        if not rest:
            given.problem = f"{text.long} needs a value: {text.long}={text.value}"
        rest[:1] = []


def pattern_of(line: str, texts: Sequence[OptionText]) -> Pattern:
    """What a line of a usage asks for."""
    long_names = {name: text.long for text in texts for name in text.names}
    bare = re.sub(r"^.*?tsgkit \w+|^ *python3? -m \S+", "", line)
    repeatable = [long_names.get(name, name) for name in re.findall(r"\[(--[\w-]+)[^\]]*\]\.\.\.", bare)]
    required = re.sub(r"\[.*?\]", "", bare).split()
    arguments = re.findall(r"(\[?)\b(?<![=-])([A-Z][A-Z0-9]*)\]?(\.\.\.)?", re.sub(r"--[\w-]+=\w+", "", bare))
    return Pattern(
        required=tuple(word for word in required if word.startswith("-") or word.islower()),
        repeatable=tuple(repeatable),
        least=tuple(name for bracket, name, _ in arguments if not bracket),
        most=None if any(dots for *_, dots in arguments) else len(arguments),
    )


def problems_with(given: Given, pattern: Pattern) -> list[str]:
    """Why a command line does not fit a pattern."""
    words = [word for word in pattern.required if not word.startswith("-")]
    missing = [word for word in words if word not in given.arguments]
    arguments = [word for word in given.arguments if word not in words]
    found = [f"{name} is given twice" for name, n in given.options.items() if n > 1 and name not in pattern.repeatable]
    found += [f"{word} is missing" for word in missing]
    options = [word for word in pattern.required if word.startswith("-")]
    found += [f"{word} is missing" for word in options if not given.options[word.partition("=")[0]]]
    found += [f"{name} is missing" for name in pattern.least[len(arguments) :]]
    if pattern.most is not None and len(arguments) > pattern.most:
        found.append(f"{arguments[pattern.most]!r} is one argument too many")
    return found
