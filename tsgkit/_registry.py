"""Tables of the parts that plug in: models, readers, objectives, models of unknown words, back-offs.

Each part is one entry, found by its name. Entries that come with tsgkit are named in the module that owns the table;
those of other packages are found by entry point. An entry is imported when it is first asked for, so that a table
costs nothing to read.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tsgkit._guesses import one_of
from tsgkit.errors import UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")


def entry_points(*, group: str) -> Iterable["EntryPoint"]:
    """The entry points of a group in all installed packages."""
    from importlib import metadata  # noqa: PLC0415 - takes as long as `tsgkit eval`, which has no entries, to start

    return metadata.entry_points(group=group)


class Registry(Generic[T]):
    """Entries of one kind, by name.

    Parameters
    ----------
    kind : str
        What an entry is, for messages: ``model``, ``reader``, ...
    group : str
        The group of entry points in which other packages name theirs, as ``tsgkit.readers``.
    built_in : mapping of str to str
        Name and ``module:attribute`` of the entries that come with tsgkit.

    Examples
    --------
    >>> shapes = Registry("shape", "tsgkit.shapes", {"fraction": "fractions:Fraction"})
    >>> shapes.names
    ('fraction',)
    >>> shapes["fraction"](1, 2)
    Fraction(1, 2)
    """

    def __init__(self, kind: str, group: str, built_in: Mapping[str, str]) -> None:
        self.kind, self.group = kind, group
        self._built_in = dict(built_in)
        self._loaded: dict[str, T] = {}

    @cached_property
    def _installed(self) -> "dict[str, EntryPoint]":
        """The entries of other packages; a name that is taken already is refused when it is asked for."""
        return {point.name: point for point in entry_points(group=self.group)}

    @property
    def names(self) -> tuple[str, ...]:
        """All names: those of tsgkit, then those of other packages, then those registered in this process."""
        return tuple(dict.fromkeys([*self._built_in, *sorted(self._installed), *self._loaded]))

    @property
    def built_in(self) -> tuple[str, ...]:
        """The names of the entries that come with tsgkit."""
        return tuple(self._built_in)

    def package_of(self, name: str) -> str | None:
        """The package that brings an entry: None for tsgkit itself, its module for one registered in this process."""
        if name in self._built_in:
            return None
        if name in self._installed and (distribution := self._installed[name].dist) is not None:
            return distribution.name
        entry = self[name]
        module: str = getattr(entry, "__module__", type(entry).__module__)
        return module.partition(".")[0]

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __getitem__(self, name: str) -> T:
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def register(self, name: str, entry: T) -> T:
        """Add an entry in this process; an entry of that name must not exist yet."""
        if name in self:
            raise ValueError(f"there is a {self.kind} {name!r} already")
        self._loaded[name] = entry
        return entry

    def require(self, name: str, option: str | None = None) -> T:
        """The entry of this name; a `UsageError` that lists all names if there is none."""
        if name not in self:
            shown = f"{self.kind} {name!r}" if option is None else f"{option}={name}"
            raise UsageError(f"{shown}: must be {one_of(name, self.names)}")
        return self[name]

    def _load(self, name: str) -> Any:
        if name in self._built_in:
            if name in self._installed:
                raise UsageError(
                    f"{self._installed[name].value}: names a {self.kind} {name!r}, but tsgkit has one of that name"
                )
            module, _, attribute = self._built_in[name].partition(":")
            return getattr(import_module(module), attribute)
        if name in self._installed:
            try:
                return self._installed[name].load()
            except Exception as error:
                raise UsageError(f"the {self.kind} {name!r} of {self._installed[name].value}: {error}") from error
        raise KeyError(name)
