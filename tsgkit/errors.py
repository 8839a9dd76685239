"""Errors that a user can cause and fix. Commands print them without a traceback and exit with 2 (`JobError`: 1)."""


class TsgkitError(Exception):
    """The input or an option is wrong; the message says where, and what to do."""


class JobError(TsgkitError):
    """The input and the options are right, but the job failed."""


class UsageError(TsgkitError):
    """The value of an option is not allowed."""


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
