"""What messages say of errors and of wrong values, and the exit code that a command ends with."""

from tsgkit._exit_codes import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_MEMORY, EXIT_USAGE
from tsgkit._guesses import similar_file
from tsgkit.errors import TsgkitError


def message_of(error: BaseException) -> str:
    """An error that a user can cause, as one line."""
    if isinstance(error, MemoryError):
        return "not enough memory for this job"
    if isinstance(error, KeyboardInterrupt):
        return str(error) or "interrupted"
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        is_missing = isinstance(error, FileNotFoundError) and isinstance(error.filename, str)
        return f"{place}{error.strerror or error}{similar_file(error.filename) if is_missing else ''}"
    return str(error)


def exit_code_of(error: BaseException) -> int:
    """The exit code of a command that ends with this error.

    Examples
    --------
    >>> from tsgkit.errors import UsageError
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


def kind_of(value: object) -> str:
    """What a value is that should have been something else, for the end of a message.

    Examples
    --------
    >>> kind_of(3), kind_of(int)
    ('int', 'the class int')
    """
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__


def counted(number: int, what: str) -> str:
    """A number of things in words.

    Examples
    --------
    >>> counted(1, "tree"), counted(3, "tree")
    ('1 tree', '3 trees')
    """
    return f"{number} {what}{'s'[: number != 1]}"
