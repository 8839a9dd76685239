"""Options that are settings of the parser: from the words of the command line to `tsgkit.parsing.ParserSettings`.

All commands that parse use it, each with those of the options that its usage text has.
"""

from collections.abc import Callable
from typing import Any

from tsgkit._cli import integer, number
from tsgkit.errors import SettingError, UsageError
from tsgkit.parsing._settings import ParserSettings

# Which settings the options are, and how they are read; what they may be, the settings know.
PARSER_OPTIONS: dict[str, tuple[str, Callable[[dict[str, Any], str], Any]]] = {
    "--objective": ("objective", dict.__getitem__),
    "--product": ("product", dict.__getitem__),
    "--threshold": ("threshold", number),
    "--coarse-threshold": ("coarse_threshold", number),
    "--closing": ("closing", number),
    "--span-power": ("span_power", number),
    "--pruning": ("pruning", dict.__getitem__),
    "--samples": ("n_samples", integer),
    "--correct": ("correct", dict.__getitem__),
    "--max-memory": ("max_bytes", lambda arguments, option: integer(arguments, option) << 20),
    "--max-length": ("max_length", integer),
    "--max-seconds": ("max_seconds", number),
    "--tags": ("tags", dict.__getitem__),
    "--seed": ("seed", integer),
}


def parser_settings(arguments: dict[str, Any], **changes: Any) -> ParserSettings:
    """How the options ask to parse: those of `PARSER_OPTIONS` that a command has.

    Parameters
    ----------
    arguments : dict
        Of docopt. An option that is missing or was not given leaves the setting at its default.
    **changes
        Settings whose defaults are others in this command.
    """
    given = {option: how for option, how in PARSER_OPTIONS.items() if arguments.get(option) is not None}
    values = {name: read(arguments, option) for option, (name, read) in given.items()}
    try:
        return ParserSettings(**{**changes, **values})
    except SettingError as error:
        option = next((option for option, (name, _) in given.items() if name == error.name), None)
        if option is None:
            raise
        shown = option if arguments[option] is True else f"{option}={arguments[option]}"
        raise UsageError(f"{shown}: {error.problem}") from None
