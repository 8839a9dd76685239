"""Files that appear whole or not at all."""

import gzip
import lzma
import os

import pytest

from tsgkit.files import new_file, open_binary, open_output


def test_a_failed_write_keeps_the_old_file(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")
    with pytest.raises(RuntimeError), open_output(path) as file:  # noqa: PT012 - the write fails midway
        file.write("new")
        raise RuntimeError
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.txt"]


def test_packed_output_reads_back_and_is_reproducible(tmp_path):
    for name in ("a.gz", "b.gz", "c.xz", "d"):
        with open_output(tmp_path / name) as file:
            file.write("grün\n" * 1000)
        with open_binary(tmp_path / name) as file:
            assert file.read().decode("utf-8") == "grün\n" * 1000
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == lzma.decompress((tmp_path / "c.xz").read_bytes())


def test_compression_is_found_by_content(tmp_path):
    (tmp_path / "plain.name").write_bytes(gzip.compress(b"hello"))
    with open_binary(tmp_path / "plain.name") as file:
        assert file.read() == b"hello"


def test_new_files_get_the_usual_rights(tmp_path):
    (tmp_path / "usual").write_text("")
    with new_file(tmp_path / "ours") as file:
        file.write(b"x")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "usual").stat().st_mode
