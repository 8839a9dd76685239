"""Errors that a user can cause and fix; commands print them without a traceback."""

from typing import ClassVar as _ClassVar

from tsgkit import _exit_codes as _codes

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


class TsgkitError(Exception):
    """The input or an option is wrong; the message says where, and what to do.

    Attributes
    ----------
    exit_code : int
        The exit code of a command that ends with this error.
    """

    exit_code: _ClassVar[int] = _codes.EXIT_USAGE


class JobError(TsgkitError):
    """The input and the options are right, but the job failed."""

    exit_code = _codes.EXIT_FAILED


class JobInterrupted(TsgkitError):
    """The user has stopped the job before it had a result; the message says what it has kept."""

    exit_code = _codes.EXIT_INTERRUPTED


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

    exit_code = _codes.EXIT_REFUSED


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
