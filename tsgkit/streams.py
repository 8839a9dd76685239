"""Iterators for input of any length, which may fail in the middle."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def until_failure(items: Iterable[T], failures: list[Exception]) -> Iterator[T]:
    """The items up to the one that cannot be had; why not is put into `failures`."""
    try:
        yield from items
    except Exception as error:
        failures.append(error)


def chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Lists of `size` items, the last one shorter; those before one that cannot be had come all the same.

    Examples
    --------
    >>> list(chunks("abcde", 2))
    [['a', 'b'], ['c', 'd'], ['e']]
    """
    failures: list[Exception] = []
    left = until_failure(items, failures)
    while chunk := list(islice(left, size)):
        yield chunk
    if failures:
        raise failures[0]
