"""The command line: ``tsgkit COMMAND`` runs a command of `tsgkit._tools`, and what all commands share.

A command is a module with a docopt usage text as docstring and ``main(argv=None) -> int`` under the decorator
`command`. Results go to stdout, messages to stderr. Exit codes are in `tsgkit._exit_codes`.
"""

import contextlib
import functools
import importlib
import math
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from docopt import DocoptExit, docopt

from tsgkit import __version__
from tsgkit._exit_codes import EXIT_FAILED, EXIT_MEMORY, EXIT_USAGE
from tsgkit._guesses import COMMANDS_ELSEWHERE, did_you_mean, one_of
from tsgkit._interruption import interruptible
from tsgkit._messages import exit_code_of, is_out_of_memory, message_of
from tsgkit._overwriting import files_of_a_job
from tsgkit._standard_streams import discard_stdout, replace_closed_streams
from tsgkit._usage import DEFAULT, command_names, summary, usage_text
from tsgkit.errors import TsgkitError, UsageError


class Main(Protocol):
    """The main function of a command: without arguments, it takes those of the process."""

    def __call__(self, argv: Sequence[str] | None = None) -> int: ...


def command(main: Callable[[list[str]], int | None]) -> Main:
    """Turn the errors that a user can cause into a one-line message and an exit code; protect the inputs."""

    @functools.wraps(main)
    def guarded(argv: Sequence[str] | None = None) -> int:
        replace_closed_streams()
        try:
            with files_of_a_job():
                code = main(list(sys.argv[1:] if argv is None else argv)) or 0
            sys.stdout.flush()
        except BrokenPipeError:  # `| head`
            discard_stdout()
            return EXIT_FAILED
        except (TsgkitError, OSError, MemoryError, KeyboardInterrupt) as error:
            flush_or_discard()
            return fail(f"tsgkit: {message_of(error)}", exit_code_of(error))
        except (ImportError, RuntimeError, SystemError) as error:
            if not is_out_of_memory(error):
                raise
            flush_or_discard()
            return fail(f"tsgkit: {message_of(MemoryError())}", EXIT_MEMORY)
        except SystemExit as stop:  # raised by docopt after --help and --version
            code = int(stop.code or 0)
            if problem := flush_or_discard():
                return fail(f"tsgkit: {message_of(problem)}", exit_code_of(problem))
        return code

    return guarded


def fail(message: str, code: int) -> int:
    with contextlib.suppress(OSError):  # of a full disk, for instance; the code remains
        print(message, file=sys.stderr, flush=True)
    return code


def flush_or_discard() -> OSError | None:
    """Write what is left of stdout; if that fails, discard it and return the error."""
    try:
        sys.stdout.flush()
    except OSError as error:
        discard_stdout()
        return error
    return None


def parse_arguments(usage: str | None, argv: Sequence[str]) -> dict[str, Any]:
    """The docopt arguments of a command, with ``--help`` and ``--version`` handled."""
    text = usage or ""
    name = re.search(r"^ *tsgkit (\w+)", text, re.MULTILINE)
    words = [name[1]] if name else []  # to docopt, the command is a word of the usage
    try:
        return dict(docopt(text, argv=[*words, *argv], version=f"tsgkit {__version__}"))
    except DocoptExit as error:
        from tsgkit._misuse import misuse  # noqa: PLC0415 - only errors need it

        problem = misuse(text, argv) or "the arguments do not fit the usage"
        shown = " ".join(["tsgkit", *words])
        lines = (line for line in str(error.usage).splitlines() if "--help" not in line)
        raise UsageError(
            f"{problem}\n\n" + "\n".join(lines).strip() + f"\n\n{shown} --help tells what the options mean"
        ) from None


def integer(arguments: dict[str, Any], option: str, minimum: int | None = None) -> int:
    """The value of `option` as a whole number of at least `minimum`."""
    try:
        value = int(arguments[option])
    except ValueError:
        raise UsageError(f"{option}={arguments[option]}: not a whole number") from None
    if minimum is not None and value < minimum:
        raise UsageError(f"{option}={value}: must be at least {minimum}")
    return value


def number(arguments: dict[str, Any], option: str, minimum: float | None = None, maximum: float | None = None) -> float:
    """The value of `option` as a number between `minimum` and `maximum`, both included."""
    try:
        value = float(arguments[option])
    except ValueError:
        raise UsageError(f"{option}={arguments[option]}: not a number") from None
    if math.isnan(value) or (minimum is not None and value < minimum) or (maximum is not None and value > maximum):
        bounds = " and ".join(
            f"at {word} {bound:g}" for word, bound in (("least", minimum), ("most", maximum)) if bound is not None
        )
        raise UsageError(f"{option}={arguments[option]}: must be {bounds or 'a number'}")
    return value


def choice(arguments: dict[str, Any], option: str, choices: Sequence[str]) -> str:
    """The value of `option`, which must be one of `choices`."""
    value = str(arguments[option])
    if value not in choices:
        raise UsageError(f"{option}={value}: must be {one_of(value, choices)}")
    return value


def note_terminal(arguments: dict[str, Any], path: str, what: str) -> None:
    """Say that a command waits for its input, if that comes from the keyboard."""
    if path == "-" and sys.stdin.isatty() and not arguments["--quiet"]:
        print(f"tsgkit: reading {what}, from the terminal; Ctrl-D ends the input", file=sys.stderr, flush=True)


def overview() -> str:
    lines = "\n".join(f"  {name:<12}{summary(name)}" for name in command_names())
    return (
        "Usage: tsgkit COMMAND [ARGUMENTS...]\n\n"
        f"Commands:\n{lines}\n\n"
        "tsgkit COMMAND --help tells more about one of them; tsgkit --version prints the version."
    )


@command
def main(argv: list[str]) -> int:
    """``tsgkit COMMAND ARGUMENTS``: the console script."""
    if not argv or argv[0] in ("-h", "--help", "help"):
        if len(argv) == 2 and argv[0] == "help":
            argv = [argv[1], "--help"]
        else:
            print(overview(), file=sys.stdout if argv else sys.stderr)
            return 0 if argv else EXIT_USAGE
    if argv[0] == "--version":
        print(f"tsgkit {__version__}")
        return 0
    name, *rest = argv
    if name not in command_names():
        if name.startswith("-") and (commands := [each for each in rest if each in command_names()]):
            raise UsageError(f"options stand after the command: tsgkit {commands[0]} {name} ...")
        known = [*command_names(), "--version", "--help"]
        other = "--version" if name in ("-v", "-V") else COMMANDS_ELSEWHERE.get(name.lower())
        guess = f"; did you mean {other}?" if other else did_you_mean(name, known)
        raise UsageError(f"no command {name!r}{guess or '; there are ' + ', '.join(command_names())}")
    if shown_at_once(name, rest):
        return 0
    return int(loaded(f"tsgkit._tools.{name}").main(rest))


def shown_at_once(name: str, rest: list[str]) -> bool:
    """Print the version or the usage text of a command, if that is all that is asked for and nothing is imported."""
    if rest == ["--version"]:
        print(f"tsgkit {__version__}")
        return True
    if rest in (["-h"], ["--help"]) and DEFAULT not in (text := usage_text(name)):
        print(text)
        return True
    return False


def loaded(name: str) -> Any:
    """A module; Ctrl-C is handled after it is loaded, because numpy would report it as a failed import."""
    asked: list[bool] = []
    with interruptible(lambda: asked.append(True)):
        module = importlib.import_module(name)
    if asked:
        raise KeyboardInterrupt
    return module
