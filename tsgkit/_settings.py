"""Settings: frozen dataclasses that refuse what cannot be and are the only place for defaults.

What the settings of models and of parsers have in common. A command names its option where a setting is refused.
"""

from collections.abc import Sequence
from dataclasses import fields
from numbers import Integral, Real
from typing import Any, get_type_hints

from tsgkit._guesses import one_of
from tsgkit._plain import types_of
from tsgkit.errors import SettingError

# What the value of a setting of a type may be, and what to say if it is not.
TYPES: dict[type, tuple[type, str]] = {
    int: (Integral, "must be a whole number"),
    float: (Real, "must be a number"),
    bool: (bool, "must be True or False"),
    str: (str, "must be a string"),
}


class Checked:
    """A base for dataclasses whose ``__post_init__`` checks their fields; here, their types.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Schedule(Checked):
    ...     iterations: int = 10
    ...
    ...     def __post_init__(self):
    ...         super().__post_init__()
    ...         self.require_least(1, "iterations")
    >>> Schedule(0)
    Traceback (most recent call last):
        ...
    tsgkit.errors.SettingError: iterations 0: must be at least 1
    >>> Schedule("10")
    Traceback (most recent call last):
        ...
    tsgkit.errors.SettingError: iterations '10': must be a whole number
    """

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        for each in fields(self):  # type: ignore[arg-type]
            value, kinds = getattr(self, each.name), types_of(hints[each.name])
            if getattr(value, "ndim", None) == 0:  # a number of numpy, which JSON does not know
                value = value.item()
                object.__setattr__(self, each.name, value)
            if value is None and type(None) in kinds:
                continue
            for kind, (accepted, problem) in TYPES.items():
                if kind in kinds:
                    is_right = isinstance(value, accepted) and (kind is bool or not isinstance(value, bool))
                    self.require(each.name, is_right, problem)

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
        value = getattr(self, name)
        if value not in choices:
            raise SettingError(name, value, f"must be {one_of(str(value), map(str, choices))}")
