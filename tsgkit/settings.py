"""Settings: frozen dataclasses that refuse what cannot be and are the only place for defaults.

What the settings of models and of parsers have in common. A command names its option where a setting is refused.
"""

from collections.abc import Sequence
from typing import Any

from tsgkit.errors import UsageError


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


class Checked:
    """A base for dataclasses whose ``__post_init__`` checks their fields.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Schedule(Checked):
    ...     iterations: int = 10
    ...
    ...     def __post_init__(self):
    ...         self.require_least(1, "iterations")
    >>> Schedule(0)
    Traceback (most recent call last):
        ...
    tsgkit.settings.SettingError: iterations 0: must be at least 1
    """

    def require(self, name: str, holds: bool, problem: str) -> None:
        """Refuse the value of a setting unless a condition holds."""
        if not holds:
            raise SettingError(name, getattr(self, name), problem)

    def require_least(self, least: float, *names: str) -> None:
        """Refuse settings that are below a number, or no numbers."""
        for name in names:
            self.require(name, getattr(self, name) >= least, f"must be at least {least}")

    def require_choice(self, name: str, choices: Sequence[Any]) -> None:
        """Refuse a setting that is none of these."""
        self.require(name, getattr(self, name) in choices, f"must be one of {', '.join(map(str, choices))}")
