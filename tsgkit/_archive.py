"""The container of all files that tsgkit saves: a zip of plain arrays and one JSON text, without pickle.

An archive has a *kind* (corpus, grammar, model, ...) and a version of that kind, and ends with a checksum of all its
bytes. The checksum, the names, sizes and types of all members, the kind and the version are checked before any array is
built, so that a damaged, foreign or malicious file raises an `ArchiveError` and does nothing else.
"""

import hashlib
import io
import json
import math
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from tsgkit._files import TooLongError, new_file, whole_text
from tsgkit._overwriting import SEAL_LENGTH, SEAL_NAME, is_sealed, may_replace_anything, note_input
from tsgkit.errors import ArchiveError, OverwriteError

ZIP_START = b"PK"
HEADER = "header"
MEMBER_NAME = re.compile(r"[a-z][a-z0-9_.]{0,63}\.npy")
MAX_MEMBERS = 1000
MAX_BYTES = 8 << 30
LARGEST_HEADER = 1 << 28
MAX_RATIO = 2000  # deflate compresses by a factor of about a thousand at most
ALLOWED_TYPES = frozenset(map(np.dtype, ("uint8", "int8", "int32", "int64", "uint64", "float16", "float32", "float64")))
# The header of a member exactly as numpy writes it, so that nothing in it has to be evaluated.
NPY_START = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '([<>|][a-z][0-9]{1,2})', 'fortran_order': False, "
    rb"'shape': \(((?:[0-9]{1,18},? ?){0,3})\), \} *\n",
    re.DOTALL,
)


ZLIB_OUT_OF_MEMORY = "Error -4 "
# What decompressing a damaged file has been seen to raise.
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


def write_archive(
    path: str | os.PathLike[str],
    kind: str,
    version: int,
    header: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
) -> None:
    """Write arrays and a JSON-able header to `path`, whole or not at all.

    The same content gives the same bytes. A command replaces an archive of another kind only if it is asked to.
    """
    if not may_replace_anything(path) and (found := kind_of(path)) not in (None, kind):
        raise OverwriteError(f"{os.fspath(path)}: holds a {found}, which a {kind} would replace; name another file")
    content = archive_bytes(kind, version, header, arrays)
    with new_file(path, is_archive=True) as file:
        file.write(content)


def kind_of(path: str | os.PathLike[str]) -> str | None:
    """The kind of an archive, or None for any other file."""
    if not is_sealed(path):
        return None
    try:
        with zipfile.ZipFile(path) as members, members.open(f"{HEADER}.npy") as file:
            header = json.loads(array_of(file.read(LARGEST_HEADER), HEADER).tobytes())
    except NOT_AN_ARCHIVE as error:
        if isinstance(error, OSError):
            raise
        return "damaged archive"
    return str(header.get("kind")) if isinstance(header, dict) else None


def archive_bytes(kind: str, version: int, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """The bytes of an archive, to be sent to another process."""
    buffer = io.BytesIO()
    try:
        np.savez_compressed(buffer, allow_pickle=False, **members_of(kind, version, header, arrays))
    except ValueError as error:
        # Where memory ends in the middle of a member, the archive cannot be closed, which is the error that comes out.
        if isinstance(error.__context__, MemoryError):
            raise MemoryError from None
        raise
    return sealed(buffer.getvalue())


def members_of(
    kind: str, version: int, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """The members of an archive, by name; the header is an array of bytes."""
    text = json.dumps({"kind": kind, "version": version, **header}, ensure_ascii=False)
    members = {HEADER: np.frombuffer(text.encode("utf-8"), dtype=np.uint8), **arrays}
    for name, array in members.items():
        if array.dtype not in ALLOWED_TYPES or not MEMBER_NAME.fullmatch(f"{name}.npy"):
            raise ValueError(f"{name}: an archive cannot have {array.dtype} arrays of that name")
    return {name: plain(array) for name, array in members.items()}


def plain(array: np.ndarray) -> np.ndarray:
    """An array in C order and little-endian, as in files, whatever the machine and the array have."""
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).reshape(array.shape)


def sealed(archive: bytes) -> bytes:
    """A zip without a comment, with its checksum as the comment."""
    body = archive[:-2] + struct.pack("<H", SEAL_LENGTH)
    return body + SEAL_NAME + hashlib.sha256(body).hexdigest().encode("ascii")


def read_archive(
    path: str | os.PathLike[str], kind: str, version: int, content: bytes | None = None
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read the header and the arrays of an archive of this kind and version.

    Parameters
    ----------
    path : path
    kind, version
        The kind and the version that are required.
    content : bytes, optional
        The bytes of the file, if they were read before; `path` is then only their name in messages.

    Raises
    ------
    ArchiveError
        If the file is damaged, or of another kind or version.
    """
    header, arrays = members_read(path, content)
    if header.get("kind") != kind:
        raise ArchiveError(f"{os.fspath(path)}: a {kind} is needed here, this file holds: {header.get('kind')}")
    if header.get("version") != version:
        raise ArchiveError(
            f"{os.fspath(path)}: version {header.get('version')} of the {kind} format; this tsgkit reads {version}"
        )
    return header, arrays


def is_archive(path: str | os.PathLike[str]) -> bool:
    """Whether a file looks like one of tsgkit: a zip with a header."""
    try:
        with zipfile.ZipFile(path) as members:
            return f"{HEADER}.npy" in members.namelist()
    except (zipfile.BadZipFile, OSError, ValueError):
        return False


def archive_header(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, tuple[int, ...]]]:
    """The header of an archive of any kind, and the shapes of its arrays.

    Raises
    ------
    ArchiveError
        If the file is damaged.
    """
    header, arrays = members_read(path)
    return header, {name: array.shape for name, array in arrays.items()}


def members_read(
    path: str | os.PathLike[str], content: bytes | None = None
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the arrays of an archive of any kind, checked."""
    # From memory: the bytes that are checked are those that are read, and every error below is one of the content.
    content = file_content(path) if content is None else content
    check_seal(content, path)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as members:
            check_members(members, path)
            arrays = {
                entry.filename.removesuffix(".npy"): array_of(member_bytes(members, entry), entry.filename)
                for entry in members.infolist()
            }
        header = json.loads(arrays.pop(HEADER).tobytes().decode("utf-8"))
    except NOT_AN_ARCHIVE as error:
        if isinstance(error, zlib.error) and ZLIB_OUT_OF_MEMORY in str(error):
            raise MemoryError from None
        raise ArchiveError(f"{os.fspath(path)}: not a whole tsgkit file ({error})") from None
    return header if isinstance(header, dict) else {}, arrays


def file_content(path: str | os.PathLike[str], *, is_own: bool = False) -> bytes:
    """All bytes of a file that may be an archive; the job may replace it if it `is_own`, such as a checkpoint."""
    try:
        with open(path, "rb") as file:
            if not is_own:
                note_input(path)
            return whole_text(file, MAX_BYTES)
    except TooLongError:
        raise ArchiveError(f"{os.fspath(path)}: too large to be a tsgkit file") from None


def check_seal(content: bytes, path: str | os.PathLike[str]) -> None:
    """Raise an error if the bytes are not those that were written."""
    body, trailer = content[:-SEAL_LENGTH], content[-SEAL_LENGTH:]
    if not trailer.startswith(SEAL_NAME):
        if content and not content.startswith(ZIP_START):
            raise ArchiveError(f"{os.fspath(path)}: not a tsgkit file; `tsgkit info` says what it is")
        raise ArchiveError(f"{os.fspath(path)}: not a whole tsgkit file (it does not end with a checksum)")
    if trailer[len(SEAL_NAME) :] != hashlib.sha256(body).hexdigest().encode("ascii"):
        raise ArchiveError(f"{os.fspath(path)}: not a whole tsgkit file (damaged: its checksum is wrong)")


def check_members(members: zipfile.ZipFile, path: str | os.PathLike[str]) -> None:
    """Raise an error for names and sizes that no archive has, before anything is decompressed."""
    entries = members.infolist()
    if len(entries) > MAX_MEMBERS or sum(entry.file_size for entry in entries) > MAX_BYTES:
        raise ArchiveError(f"{os.fspath(path)}: too large to be a tsgkit file")
    if len({entry.filename for entry in entries}) < len(entries):
        raise ArchiveError(f"{os.fspath(path)}: a member occurs twice")
    for entry in entries:
        if not MEMBER_NAME.fullmatch(entry.filename):
            raise ArchiveError(f"{os.fspath(path)}: unexpected member {entry.filename!r}")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ArchiveError(f"{os.fspath(path)}: member {entry.filename!r} is neither stored nor deflated")
        if entry.file_size > MAX_RATIO * max(entry.compress_size, 1000):
            raise ArchiveError(f"{os.fspath(path)}: member {entry.filename!r} is compressed too much for an array")
    # Members that share compressed bytes would expand to more than the ratio allows.
    if sum(entry.compress_size for entry in entries) > len(members.fp.getbuffer()):  # type: ignore[union-attr]
        raise ArchiveError(f"{os.fspath(path)}: the members overlap")


def member_bytes(members: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """The bytes of a member, at most as many as it declares."""
    with members.open(entry) as file:
        return file.read(entry.file_size)


def array_of(member: bytes, name: str) -> np.ndarray:
    """The array of a ``.npy`` member; a ValueError if it is none that an archive may have."""
    start = NPY_START.match(member)
    if start is None:
        raise ValueError(f"{name} is not an array")
    dtype = np.dtype(start[1].decode("ascii"))
    if dtype.newbyteorder("=") not in ALLOWED_TYPES:
        raise ValueError(f"{name} has the type {dtype}")
    shape = tuple(map(int, re.findall(rb"[0-9]+", start[2])))
    if math.prod(shape) * dtype.itemsize != len(member) - start.end():
        raise ValueError(f"{name} has another size than it declares")
    values = np.frombuffer(member, dtype=dtype, offset=start.end()).reshape(shape)
    return values.astype(dtype.newbyteorder("="))


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
    """The array `name`, checked to have this type and shape (``None``: any length)."""
    require(name in arrays, path, f"array {name} is missing")
    array = arrays[name]
    fits = array.ndim == len(shape) and all(
        want is None or want == have for want, have in zip(shape, array.shape, strict=True)
    )
    require(array.dtype == np.dtype(dtype) and fits, path, f"array {name} has the wrong type or shape")
    return np.ascontiguousarray(array)
