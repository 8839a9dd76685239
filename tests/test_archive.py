"""Untrusted archives: damage, zip bombs and unexpected members are refused before any array is built."""

import io
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from processes import memory_limit

from tsgkit._archive import plain, read_archive, sealed, write_archive
from tsgkit._overwriting import SEAL_LENGTH
from tsgkit.errors import ArchiveError


def zipped(members, compression=zipfile.ZIP_DEFLATED):
    """The bytes of a sealed zip with these members."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return sealed(file.getvalue())


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def refused(tmp_path, content, problem):
    path = tmp_path / "strange.npz"
    path.write_bytes(content)
    with pytest.raises(ArchiveError, match=problem) as raised:
        read_archive(path, "corpus", 1)
    assert str(raised.value).startswith(str(path))


HEADER = ("header.npy", npy(np.frombuffer(b'{"kind": "corpus", "version": 1}', dtype=np.uint8)))


def test_what_the_others_are_damaged_from(tmp_path):
    (tmp_path / "whole.npz").write_bytes(zipped([HEADER, ("a.npy", npy(np.arange(6).reshape(2, 3)))]))
    header, arrays = read_archive(tmp_path / "whole.npz", "corpus", 1)
    assert header == {"kind": "corpus", "version": 1}
    assert arrays["a"].tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.slow
def test_a_bomb_is_refused(tmp_path):
    refused(tmp_path, zipped([("header.npy", b"\0" * 300_000_000)], zipfile.ZIP_BZIP2), "neither stored nor deflated")
    refused(tmp_path, zipped([(f"a{number}.npy", b"") for number in range(1001)]), "too large")


def declared(content, size):
    """A sealed zip whose directory says that its only member expands to `size` bytes."""
    body = bytearray(content[:-SEAL_LENGTH])
    at = body.rindex(b"PK\x01\x02")
    body[at + 24 : at + 28] = size.to_bytes(4, "little")
    return sealed(bytes(body[:-2]) + b"\0\0")


def test_a_member_that_declares_too_much_is_refused(tmp_path):
    one = zipped([("header.npy", b"x")])
    refused(tmp_path, declared(one, 4_000_000_000), "compressed too much")


@pytest.mark.slow
def test_a_member_that_declares_too_little_takes_no_more(tmp_path):
    """However much is compressed: with little memory, in a separate process."""
    path = tmp_path / "bomb.npz"
    path.write_bytes(declared(zipped([("header.npy", b"\0" * 900_000_000)]), 100))
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from tsgkit._archive import read_archive; read_archive(sys.argv[1], 'corpus', 1)",
            path,
        ],
        capture_output=True,
        text=True,
        check=False,
        **memory_limit(600 << 20),
    )
    assert "ArchiveError" in done.stderr
    assert "MemoryError" not in done.stderr


def test_members_that_share_their_bytes_are_refused(tmp_path):
    body = bytearray(zipped([("a.npy", npy(np.zeros(4000)))])[:-SEAL_LENGTH])
    first, end = body.rindex(b"PK\x01\x02"), body.rindex(b"PK\x05\x06")
    entry = bytes(body[first:end])
    entries = b"".join(entry.replace(b"a.npy", b"%c.npy" % letter) for letter in range(ord("a"), ord("k")))
    tail = bytearray(body[end:-2] + b"\0\0")
    tail[8:10] = tail[10:12] = (10).to_bytes(2, "little")
    tail[12:16] = len(entries).to_bytes(4, "little")
    refused(tmp_path, sealed(bytes(body[:first]) + entries + bytes(tail)), "overlap")


@pytest.mark.parametrize("name", ["../header.npy", "/etc/passwd", "header.pkl", "a/b.npy", "A.npy", "a.npy\0"])
def test_strange_members_are_refused(tmp_path, name):
    refused(tmp_path, zipped([(name, b"x")]), "unexpected member|not a whole tsgkit file")


def test_a_member_that_occurs_twice_is_refused(tmp_path):
    with pytest.warns(UserWarning, match="Duplicate name"):
        content = zipped([HEADER, HEADER])
    refused(tmp_path, content, "occurs twice")


@pytest.mark.parametrize(
    "array",
    [
        np.array([b"ab"]),
        np.array(["ab"]),
        np.zeros(2, dtype="complex128"),
        np.zeros(2, dtype="int16"),
        np.zeros(2, dtype=[("a", "int32")]),
        np.zeros((1, 1, 1, 1)),
        np.asfortranarray(np.zeros((2, 3))),
    ],
)
def test_other_types_and_shapes_are_refused(tmp_path, array):
    refused(tmp_path, zipped([HEADER, ("a.npy", npy(array))]), "has the type|is not an array")


def test_pickles_are_refused(tmp_path):
    pickled = io.BytesIO()
    np.save(pickled, np.array([{"a": print}], dtype=object), allow_pickle=True)
    refused(tmp_path, zipped([HEADER, ("a.npy", pickled.getvalue())]), "is not an array")


@pytest.mark.parametrize(
    "shape", [b"(99999999999,), }", b"(999999999999999999, 999999999999999999), }", b"(3,), }", b"(-4,), }"]
)
def test_an_array_of_another_size_than_it_says_is_refused(tmp_path, shape):
    member = npy(np.arange(4, dtype=np.int32))
    start = member.index(b"(4,), }")
    length = int.from_bytes(member[8:10], "little")
    text = member[10:start] + shape
    text += b" " * (length - len(text) - 1) + b"\n"
    content = member[:8] + len(text).to_bytes(2, "little") + text + member[10 + length :]
    refused(tmp_path, zipped([HEADER, ("a.npy", content)]), "has another size|is not an array")


@pytest.mark.parametrize("text", [b"[" * 100_000, b"{", b"\xff", b"1" * 10_000, b'{"kind": "corpus", "version": 1'])
def test_headers_that_are_no_json_are_refused(tmp_path, text):
    refused(tmp_path, zipped([("header.npy", npy(np.frombuffer(text, dtype=np.uint8)))]), "not a whole tsgkit file")


def test_every_flipped_byte_is_noticed(tmp_path):
    path = tmp_path / "a.npz"
    write_archive(path, "corpus", 1, {"names": ["x"] * 50}, {"values": np.arange(300, dtype=np.int32)})
    whole = path.read_bytes()
    for position in range(len(whole)):
        refused(
            tmp_path,
            whole[:position] + bytes([whole[position] ^ 1 << position % 8]) + whole[position + 1 :],
            "checksum",
        )
    for length in range(0, len(whole), 7):
        refused(tmp_path, whole[:length], "checksum")


def test_shapes_come_back(tmp_path):
    arrays = {
        "none": np.empty((0, 3), dtype=np.int32),
        "one": np.array(7, dtype=np.int64),
        "columns": np.arange(6.0).reshape(2, 3).T,
        "bytes": np.arange(3, dtype=np.uint8),
    }
    write_archive(tmp_path / "a.npz", "corpus", 1, {}, arrays)
    back = read_archive(tmp_path / "a.npz", "corpus", 1)[1]
    for name, array in arrays.items():
        assert back[name].dtype == array.dtype
        assert back[name].shape == array.shape
        assert np.array_equal(back[name], array)
    with np.load(tmp_path / "a.npz") as anybody:  # needs nothing of ours
        assert anybody["columns"].tolist() == arrays["columns"].tolist()


@pytest.mark.parametrize("kind", ["i4", "i8", "f8"])
def test_the_order_of_bytes_of_the_machine_does_not_matter(tmp_path, kind):
    values = np.array([[1, 2, 300], [-4, 5, 60000]])
    machines = [values.astype(f"{order}{kind}") for order in "<>"]
    # What is written, and what digests are made of, is the same on both.
    assert plain(machines[0]).tobytes() == plain(machines[1]).tobytes()
    # What another machine wrote in its byte order is read correctly.
    (tmp_path / "a.npz").write_bytes(zipped([HEADER, ("x.npy", npy(machines[0])), ("y.npy", npy(machines[1]))]))
    back = read_archive(tmp_path / "a.npz", "corpus", 1)[1]
    assert back["x"].dtype == back["y"].dtype == np.dtype(kind)
    assert back["x"].tolist() == back["y"].tolist() == values.tolist()


def test_arrays_of_objects_are_never_written(tmp_path):
    with pytest.raises(ValueError, match="an archive cannot have object arrays"):
        write_archive(tmp_path / "a.npz", "corpus", 1, {}, {"x": np.array([object()])})
    assert not (tmp_path / "a.npz").exists()
