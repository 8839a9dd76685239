"""Archives from strangers: bombs and strange members are refused before anything is unpacked."""

import zipfile

import numpy as np
import pytest

from tsgkit.archive import ArchiveError, read_archive, write_archive


def test_a_bomb_is_refused(tmp_path):
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as bomb:
        bomb.writestr("header.npy", b"\0" * 300_000_000)
    with pytest.raises(ArchiveError, match="too tightly"):
        read_archive(path, "corpus", 1)


@pytest.mark.parametrize("name", ["../header.npy", "/etc/passwd", "header.pkl", "a/b.npy"])
def test_strange_members_are_refused(tmp_path, name):
    path = tmp_path / "strange.npz"
    with zipfile.ZipFile(path, "w") as strange:
        strange.writestr(name, b"x")
    with pytest.raises(ArchiveError, match="unexpected member"):
        read_archive(path, "corpus", 1)


def test_every_flipped_byte_is_noticed_or_harmless(tmp_path):
    path = tmp_path / "a.npz"
    write_archive(path, "corpus", 1, {"names": ["x"] * 50}, {"values": np.arange(300, dtype=np.int32)})
    whole = path.read_bytes()
    expected = read_archive(path, "corpus", 1)
    for position in range(0, len(whole), 3):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x55]) + whole[position + 1 :])
        try:
            header, arrays = read_archive(path, "corpus", 1)
        except ArchiveError:
            continue
        assert header == expected[0]
        assert np.array_equal(arrays["values"], expected[1]["values"])


def test_arrays_of_objects_are_never_written(tmp_path):
    with pytest.raises(ValueError, match="not for archives"):
        write_archive(tmp_path / "a.npz", "corpus", 1, {}, {"x": np.array([object()])})
    assert not (tmp_path / "a.npz").exists()
