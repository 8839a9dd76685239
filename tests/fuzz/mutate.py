"""Damage: bytes changed at random, and archives whose content is changed and sealed again.

All changes are drawn from one `random.Random`, so that the same seed gives the same inputs.
"""

import io
import json
import random
import zipfile
from collections.abc import Sequence
from typing import Any

import numpy as np

from tsgkit._archive import HEADER, sealed

LONGEST = 4000
# Bytes that matter to readers, in addition to the tokens of each target.
TOKENS = [b"(", b")", b"()", b" ", b"\n", b"\t", b"\r", b"\0", b"\x85", b"\xa0", b"\xc2\xa0", b"\xff", b"\xed\xa0\x80"]
TOKENS += [
    b"\xef\xbb\xbf",
    b"#",
    b"%",
    b"-",
    b"--",
    b"0",
    b"-1",
    b"1e999",
    b"nan",
    b"9" * 30,
    b"\x1f\x8b",
    b"\xfd7zXZ\x00",
]
NUMBERS = [-(2**63), -(2**31), -4, -3, -2, -1, 0, 1, 2, 3, 7, 255, 256, 2**31 - 1, 2**31, 2**32, 2**63 - 1]
FLOATS = [float("nan"), float("inf"), -float("inf"), -1.0, -0.0, 0.0, 1e-320, 1e-300, 0.5, 1.0, 1e300]
VALUES: list[Any] = [
    None,
    True,
    False,
    "",
    "x",
    "@",
    "/etc/passwd",
    "UNK",
    "\0",
    [],
    {},
    [1],
    ["a"],
    [[]],
    {"a": 1},
    1e999,
]
VALUES += [*NUMBERS, *FLOATS]
TYPES = ("uint8", "int8", "int32", "int64", "uint64", "float32", "float64")


def mutated(seed: bytes, others: Sequence[bytes], tokens: Sequence[bytes], draw: random.Random) -> bytes:
    """A valid input with one to eight changes."""
    data = bytearray(seed)
    for _ in range(1 << draw.randrange(4)):
        place = draw.randrange(len(data) + 1)
        end = min(len(data), place + draw.choice((1, 1, 2, 4, 16, 64)))
        change = draw.randrange(8)
        if change == 0 and place < len(data):
            data[place] ^= 1 << draw.randrange(8)
        elif change == 1 and place < len(data):
            data[place] = draw.randrange(256)
        elif change == 2:
            del data[place:end]
        elif change == 3:
            data[place:place] = data[place:end] * draw.choice((1, 2, 8, 50))
        elif change == 4:
            data[place:end] = draw.choice(tokens if draw.random() < 0.5 else TOKENS)
        elif change == 5:
            data[place:place] = draw.choice(tokens if draw.random() < 0.5 else TOKENS)
        elif change == 6:
            other = draw.choice(others)
            data[place:] = other[draw.randrange(len(other) + 1) :]
        else:
            del data[place:]
    return bytes(data[:LONGEST])


class Archive:
    """The content of an archive, to be damaged and written again with a right checksum."""

    def __init__(self, content: bytes) -> None:
        with np.load(io.BytesIO(content), allow_pickle=False) as members:
            self.arrays = {name: members[name] for name in members.files}
        self.header = json.loads(self.arrays.pop(HEADER).tobytes())

    def damaged(self, draw: random.Random) -> bytes:
        """The bytes of an archive with one or two changes in its header or arrays."""
        header, arrays = json.loads(json.dumps(self.header)), dict(self.arrays)
        for _ in range(draw.choice((1, 1, 2))):
            if draw.random() < 0.3:
                change_json(header, draw)
            else:
                change_arrays(arrays, draw)
        text = json.dumps(header).encode()
        content = zipped({HEADER: np.frombuffer(text, dtype=np.uint8), **arrays})
        if draw.random() < 0.15:  # the zip itself, under a right checksum
            place = draw.randrange(len(content))
            content = content[:place] + bytes([content[place] ^ 1 << draw.randrange(8)]) + content[place + 1 :]
        return sealed(content)


def zipped(arrays: dict[str, np.ndarray]) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def change_json(value: Any, draw: random.Random) -> None:
    """Replace, remove, repeat or exchange something somewhere in a JSON value, in place."""
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not keys:
            return
        key = draw.choice(keys)
        if isinstance(value[key], dict | list) and value[key] and draw.random() < 0.8:
            value = value[key]
            continue
        change = draw.randrange(6)
        if change == 0:
            del value[key]
        elif change == 1:
            value[key] = value[draw.choice(keys)]
        elif change == 2 and isinstance(value, list):
            value.append(value[key])
        elif change == 3 and isinstance(value, dict):
            value[draw.choice(("x", "", "rules", "names"))] = value[key]
        else:
            value[key] = draw.choice(VALUES)
        return


def change_arrays(arrays: dict[str, np.ndarray], draw: random.Random) -> None:
    """Change the values, the type or the shape of one array, or which arrays there are."""
    name = draw.choice(list(arrays))
    array = arrays[name].copy()
    change = draw.randrange(12)
    if change <= 4 and array.size:
        for _ in range(draw.choice((1, 1, 3))):
            array.reshape(-1)[draw.randrange(array.size)] = extreme(array, draw)
    elif change == 5 and array.size:
        array.reshape(-1)[:] = extreme(array, draw)
    elif change == 6:
        with np.errstate(invalid="ignore", over="ignore"):
            array = array.astype(draw.choice(TYPES))
    elif change == 7:
        array = array[: draw.randrange(len(array) + 1)] if array.ndim else array.reshape(1)
    elif change == 8:
        array = draw.choice((array.reshape(-1), array[None], array[..., None], array.T, np.concatenate([array, array])))
    elif change == 9:
        array = draw.choice(list(arrays.values()))
    elif change == 10:
        del arrays[name]
        return
    elif array.ndim and len(array):
        array = array[draw.choices(range(len(array)), k=len(array))]
    arrays[name] = np.ascontiguousarray(array)


def extreme(array: np.ndarray, draw: random.Random) -> Any:
    """A value that an array can hold, most of the time one that it should not."""
    if array.dtype.kind == "f":
        with np.errstate(over="ignore"):
            return array.dtype.type(draw.choice(FLOATS))
    limits = np.iinfo(array.dtype)
    near = int(array.reshape(-1)[draw.randrange(array.size)]) + draw.choice((-1, 1, 0))
    return min(max(draw.choice([near, near, *NUMBERS]), int(limits.min)), int(limits.max))


def bomb(n_bytes: int) -> bytes:
    """A sealed archive whose only member expands to many zeros."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as members:
        members.writestr(f"{HEADER}.npy", bytes(n_bytes))
    return sealed(file.getvalue())
