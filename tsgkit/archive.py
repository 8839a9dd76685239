"""The one container of everything tsgkit saves: a zip of plain arrays and one JSON text, no pickle.

An archive has a *kind* (corpus, grammar, model, ...) and a version of that kind. Reading checks the kind,
the version, the checksums, the sizes and the types of all members before any array is built, so that a
damaged, foreign or hostile file ends in an `ArchiveError` and nothing else.
"""

import io
import json
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tsgkit.errors import TsgkitError
from tsgkit.files import new_file

HEADER = "header"
MEMBER_NAME = re.compile(r"[a-z][a-z0-9_.]{0,63}\.npy")
MAX_MEMBERS = 1000
MAX_BYTES = 8 << 30
MAX_RATIO = 2000  # deflate cannot pack honest arrays tighter than about a thousand times
ALLOWED_TYPES = frozenset(map(np.dtype, ("uint8", "int8", "int32", "int64", "uint64", "float32", "float64")))


# All that unpacking a damaged file has been seen to raise.
NOT_AN_ARCHIVE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    ValueError,
    KeyError,
    AttributeError,
    EOFError,
    OSError,
    NotImplementedError,
    RecursionError,
    RuntimeError,
)


class ArchiveError(TsgkitError):
    """A file is not the archive it should be; the message names it and says why."""


def write_archive(
    path: str | os.PathLike[str],
    kind: str,
    version: int,
    header: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
) -> None:
    """Write arrays and a JSON-able header to `path`, whole or not at all.

    The same content gives the same bytes.
    """
    members = members_of(kind, version, header, arrays)
    with new_file(path) as file:
        np.savez_compressed(file, allow_pickle=False, **members)


def archive_bytes(kind: str, version: int, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """The same as bytes, for sending it elsewhere."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **members_of(kind, version, header, arrays))
    return buffer.getvalue()


def members_of(
    kind: str, version: int, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """All that is in an archive, by name; the header is an array of bytes."""
    text = json.dumps({"kind": kind, "version": version, **header}, ensure_ascii=False)
    members = {HEADER: np.frombuffer(text.encode("utf-8"), dtype=np.uint8), **arrays}
    for name, array in members.items():
        if array.dtype not in ALLOWED_TYPES or not MEMBER_NAME.fullmatch(f"{name}.npy"):
            raise ValueError(f"{name}: {array.dtype} arrays of that name are not for archives")
    return members


def read_archive(
    path: str | os.PathLike[str], kind: str, version: int, content: bytes | None = None
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read the header and the arrays of an archive of this kind and version.

    Parameters
    ----------
    path : path
    kind, version
        What it must be.
    content : bytes, optional
        The bytes of the file, where they are at hand; `path` is then only their name in messages.

    Raises
    ------
    ArchiveError
        When the file is anything else, or damaged.
    """
    # From memory: what was checked is what is read, and every error below speaks of the content.
    file = io.BytesIO(Path(path).read_bytes() if content is None else content)
    try:
        with zipfile.ZipFile(file) as members:
            check_members(members, path)
        with np.load(file, allow_pickle=False) as contents:
            arrays = {name: contents[name] for name in contents.files}
        header = json.loads(arrays.pop(HEADER).tobytes().decode("utf-8"))
    except NOT_AN_ARCHIVE as error:
        raise ArchiveError(f"{os.fspath(path)}: not a whole tsgkit file ({error})") from None
    if not isinstance(header, dict) or header.get("kind") != kind:
        found = header.get("kind") if isinstance(header, dict) else None
        raise ArchiveError(f"{os.fspath(path)}: a {kind} is needed here, this file holds: {found}")
    if header.get("version") != version:
        raise ArchiveError(
            f"{os.fspath(path)}: version {header.get('version')} of the {kind} format; this tsgkit reads {version}"
        )
    for name, array in arrays.items():
        if array.dtype not in ALLOWED_TYPES:
            raise ArchiveError(f"{os.fspath(path)}: array {name} has the type {array.dtype}")
    return header, arrays


def check_members(members: zipfile.ZipFile, path: str | os.PathLike[str]) -> None:
    """Refuse names and sizes that no archive of ours has, before anything is unpacked."""
    entries = members.infolist()
    if len(entries) > MAX_MEMBERS or sum(entry.file_size for entry in entries) > MAX_BYTES:
        raise ArchiveError(f"{os.fspath(path)}: too large to be a tsgkit file")
    for entry in entries:
        if not MEMBER_NAME.fullmatch(entry.filename):
            raise ArchiveError(f"{os.fspath(path)}: unexpected member {entry.filename!r}")
        if entry.file_size > MAX_RATIO * max(entry.compress_size, 1000):
            raise ArchiveError(f"{os.fspath(path)}: member {entry.filename!r} is packed too tightly to be honest")


def require(condition: bool, path: str | os.PathLike[str], problem: str) -> None:
    """Raise an `ArchiveError` unless `condition` holds."""
    if not condition:
        raise ArchiveError(f"{os.fspath(path)}: damaged: {problem}")


def take_array(
    arrays: Mapping[str, np.ndarray],
    name: str,
    dtype: str,
    shape: tuple[int | None, ...],
    path: str | os.PathLike[str],
) -> np.ndarray:
    """The array `name`, checked to have this type and shape (``None`` stands for any length)."""
    require(name in arrays, path, f"array {name} is missing")
    array = arrays[name]
    fits = array.ndim == len(shape) and all(
        want is None or want == have for want, have in zip(shape, array.shape, strict=True)
    )
    require(array.dtype == np.dtype(dtype) and fits, path, f"array {name} has the wrong type or shape")
    return np.ascontiguousarray(array)
