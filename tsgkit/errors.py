"""Errors that a user can cause and fix, and the exit codes of all commands.

Commands print these errors without a traceback. This is the only place where exit codes are defined.
"""

from collections.abc import Iterable
from typing import ClassVar

__all__ = [
    "ArchiveError",
    "CancelledError",
    "JobError",
    "JobInterrupted",
    "NotFittedError",
    "OutOfTimeError",
    "OverwriteError",
    "SettingError",
    "TreebankError",
    "TsgkitError",
    "UsageError",
]

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_REFUSED = 3
EXIT_MEMORY = 4
EXIT_INTERRUPTED = 130

# What each code means, for the manual.
EXIT_CODES = {
    0: "Success.",
    EXIT_FAILED: "The job failed: full disk, read or write error, broken pipe, another process writes the same file,"
    " lost workers, or some of several chains did not finish.",
    EXIT_USAGE: "The options or the input are invalid. The message names the option, or the file, line and column.",
    EXIT_REFUSED: "Refused: the command would have written onto one of its inputs, or replaced a trained model, a"
    " checkpoint or partial results without being asked to. Nothing was changed.",
    EXIT_MEMORY: "Not enough memory.",
    EXIT_INTERRUPTED: "Interrupted by Ctrl-C.",
}


class TsgkitError(Exception):
    """The input or an option is wrong; the message says where, and what to do.

    Attributes
    ----------
    exit_code : int
        The exit code of a command that ends with this error.
    """

    exit_code: ClassVar[int] = EXIT_USAGE


class JobError(TsgkitError):
    """The input and the options are right, but the job failed."""

    exit_code = EXIT_FAILED


class JobInterrupted(TsgkitError):
    """The user has stopped the job before it had a result; the message says what it has kept."""

    exit_code = EXIT_INTERRUPTED


class OutOfTimeError(JobError):
    """A sentence takes more time than it may."""


class CancelledError(JobError):
    """Somebody cancelled the work, for example because its client has gone."""


class UsageError(TsgkitError):
    """The value of an option is not allowed."""


class SettingError(UsageError):
    """A setting has a value that it cannot have: ``name value: problem``.

    Parameters
    ----------
    name : str
        The field.
    value : object
    problem : str
        What it must be.
    """

    def __init__(self, name: str, value: object, problem: str) -> None:
        self.name, self.value, self.problem = name, value, problem
        super().__init__(f"{name} {value!r}: {problem}")

    def __reduce__(self) -> tuple[type["SettingError"], tuple[str, object, str]]:
        # By its arguments, not by its message: a worker sends it home.
        return type(self), (self.name, self.value, self.problem)


class NotFittedError(UsageError, ValueError, AttributeError):
    """An estimator was asked for something that only a trained model has."""


class ArchiveError(TsgkitError):
    """A file is not the archive that it should be; the message has its name and the reason."""


class OverwriteError(TsgkitError):
    """The job would have destroyed a file that it must keep: an input, or earlier results."""

    exit_code = EXIT_REFUSED


class TreebankError(TsgkitError):
    """A treebank cannot be read: ``place: problem``.

    Parameters
    ----------
    problem : str
        What is wrong, and what would be right.
    path : str
        The file, or another name of the source.
    line, column : int, optional
        Where in the file, counted from 1.
    reason : str, optional
        A few words that errors of this kind share; by default, what stands before the first colon of the problem.
    """

    def __init__(
        self, problem: str, path: str = "", line: int | None = None, column: int | None = None, *, reason: str = ""
    ) -> None:
        self.problem, self.path, self.line, self.column = problem, path, line, column
        self.reason = reason or problem.partition(":")[0]
        place = ":".join(str(part) for part in (path, line, column) if part not in ("", None))
        super().__init__(f"{place}: {problem}" if place else problem)


def message_of(error: BaseException) -> str:
    """An error that a user can cause, as one line."""
    if isinstance(error, MemoryError):
        return "not enough memory for this job"
    if isinstance(error, KeyboardInterrupt):
        return str(error) or "interrupted"
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        return f"{place}{error.strerror or error}"
    return str(error)


def exit_code_of(error: BaseException) -> int:
    """The exit code of a command that ends with this error.

    Examples
    --------
    >>> exit_code_of(UsageError("--top=x: not a whole number")), exit_code_of(MemoryError())
    (2, 4)
    """
    if isinstance(error, TsgkitError):
        return error.exit_code
    if isinstance(error, MemoryError):
        return EXIT_MEMORY
    if isinstance(error, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    # A file that is named on the command line and does not exist is wrong input.
    is_wrong_input = isinstance(error, FileNotFoundError | IsADirectoryError | NotADirectoryError)
    return EXIT_USAGE if is_wrong_input else EXIT_FAILED


def did_you_mean(word: str, words: Iterable[str]) -> str:
    """A guess at what a wrong word should have been, as the end of a sentence; empty if nothing is similar.

    Examples
    --------
    >>> did_you_mean("trian", ["train", "parse"])
    '; did you mean train?'
    """
    import difflib  # noqa: PLC0415 - only errors need it

    near = difflib.get_close_matches(word, list(words), n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else ""


def one_of(word: str, words: Iterable[str]) -> str:
    """What a wrong word should have been, for the end of a sentence: all that are right, and a guess.

    Examples
    --------
    >>> one_of("strsg", ["cfg", "srtsg"])
    'one of cfg, srtsg; did you mean srtsg?'
    """
    known = list(words)
    return f"one of {', '.join(known)}{did_you_mean(word, known)}"


# What Python and numpy say where there is no memory for a module, a thread, a lock or a buffer.
NO_MEMORY = (
    "failed to map segment",
    "cannot allocate memory",
    "can't start new thread",
    "can't allocate ",
    "error return without exception set",
    "returned NULL without setting an exception",
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error that is no MemoryError means that there is no memory left."""
    return any(text in str(error) for text in NO_MEMORY)
