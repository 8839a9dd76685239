"""Settings from files: JSON values are checked against the types of a dataclass before an instance is made."""

import types
import typing
from dataclasses import fields
from typing import Any, TypeVar

T = TypeVar("T")


def settings_of(kind: type[T], values: object) -> T:
    """An instance of a dataclass of strings and numbers, from a dict with a value of the right type for every field.

    Raises
    ------
    ValueError
        If a field is missing, unknown, or has a value of another type. The class may raise errors for wrong values.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Point:
    ...     x: int
    ...     name: str | None = None
    >>> settings_of(Point, {"x": 1, "name": None})
    Point(x=1, name=None)
    >>> settings_of(Point, {"x": True, "name": None})
    Traceback (most recent call last):
        ...
    ValueError: x is of the type bool
    """
    known = typing.get_type_hints(kind)
    hints = {field.name: known[field.name] for field in fields(kind)}  # type: ignore[arg-type]
    if not isinstance(values, dict) or set(values) != set(hints):
        raise ValueError(f"settings are not those of {kind.__name__}: {', '.join(hints)}")
    for name, hint in hints.items():
        if type(values[name]) not in types_of(hint):
            raise ValueError(f"{name} is of the type {type(values[name]).__name__}")
    return kind(**values)


def types_of(hint: Any) -> tuple[Any, ...]:
    """The types that a type hint allows; the types of elements are not looked at."""
    if isinstance(hint, types.UnionType):
        return typing.get_args(hint)
    return (typing.get_origin(hint) or hint,)


def names_of(values: Any, what: str) -> list[str]:
    """`values`, if they are a list of strings; otherwise a ValueError that names `what`."""
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"{what} is not a list of names")
    return values
