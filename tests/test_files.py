"""Files that appear whole or not at all."""

import gzip
import lzma
import os
import subprocess
import sys

import numpy as np
import pytest
from processes import memory_limit

from tsgkit._files import TooLongError, lines_of, new_file, open_binary, open_output, remove_parts, whole_text
from tsgkit.errors import TreebankError, UsageError
from tsgkit.evaluation._evalb import read_source
from tsgkit.evaluation._parameters import ParameterError, load_parameters
from tsgkit.grammar._weighted import GrammarError
from tsgkit.grammar.formats import read_bitpar
from tsgkit.treebank import read_trees
from tsgkit.treebank._heads import read_rules
from tsgkit.treebank._presets import load_preset
from tsgkit.treebank._relabel import read_relabelling


def test_a_failed_write_keeps_the_old_file(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")
    with pytest.raises(RuntimeError), open_output(path) as file:  # noqa: PT012 - the write fails midway
        file.write("new")
        raise RuntimeError
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.txt"]


def test_compressed_output_reads_back_and_is_reproducible(tmp_path):
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


def test_new_files_get_the_default_permissions(tmp_path):
    (tmp_path / "other").write_text("")
    with new_file(tmp_path / "ours") as file:
        file.write(b"x")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_no_line_and_no_file_fills_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("tsgkit._files.LONGEST_LINE", 1000)
    path = tmp_path / "lines.gz"
    path.write_bytes(gzip.compress(b"(A b)\n" + b"x" * 100_000))
    with open_binary(path) as file, pytest.raises(TooLongError, match="longer than"):
        list(lines_of(file))
    with open_binary(path) as file, pytest.raises(TooLongError, match="more than"):
        whole_text(file, 50_000)
    with pytest.raises(TreebankError, match=r"lines.gz:2: the line is longer than"):
        list(read_trees(path))
    path.write_bytes(gzip.compress(b"1 S A B\n" + b"x" * 100_000))
    with pytest.raises(GrammarError, match="longer than"):
        read_bitpar(path, path)
    monkeypatch.setattr("tsgkit.evaluation._parameters.LARGEST_FILE", 1000)
    with pytest.raises(ParameterError, match="more than"):
        load_parameters(path)


@pytest.mark.parametrize("read", [read_relabelling, read_rules, load_preset])
def test_tables_of_users_are_short_and_whole(tmp_path, read):
    """Rules for labels, head rules and presets, which may be compressed as any other file."""
    path = tmp_path / "table"
    path.write_bytes(gzip.compress(b"# \xff\n"))
    with pytest.raises(TreebankError, match="table:1: not UTF-8"):
        read(path)
    path.write_bytes(gzip.compress(b"# a comment\n")[:-6])
    with pytest.raises(TreebankError, match="table: the compressed file is damaged"):
        read(path)
    path.write_bytes(gzip.compress(b"# a comment\n" * (2 << 20)))
    with pytest.raises(TreebankError, match=r"table: .* than \d+ MB"):
        read(path)


@pytest.mark.parametrize("encoding", ["unicode_escape", "raw_unicode_escape"])
def test_half_characters_are_no_text(tmp_path, encoding):
    (tmp_path / "a.mrg").write_text("(A \\ud800)\n")
    with pytest.raises(TreebankError, match="half a character"):
        list(read_trees(tmp_path / "a.mrg", encoding=encoding))


def test_bytes_that_are_no_text(tmp_path):
    """NUL characters, and marks of other encodings; lines end in any way."""
    path = tmp_path / "a.mrg"
    path.write_bytes(b"(A b)\n(A \0b)\n")
    with pytest.raises(TreebankError, match=r"a\.mrg:2:4: not text in utf-8: a NUL character"):
        list(read_trees(path))
    path.write_bytes("(A b)\n".encode("utf-16"))
    with pytest.raises(TreebankError, match=r"a\.mrg:1:1: not utf-8: .* mark of UTF-16; convert it to UTF-8"):
        list(read_trees(path))
    path.write_bytes("(A b)\n(A \xe9)\n".encode("utf-8-sig"))
    assert len(list(read_trees(path))) == 2
    with pytest.raises(TreebankError, match=r"a\.mrg:1:1: not iso-8859-1: .* mark of UTF-8; --encoding=utf-8 reads it"):
        list(read_trees(path, encoding="iso-8859-1"))
    for ends in (b"\r", b"\r\n", b"\n"):
        path.write_bytes(b"#FORMAT 3\n#BOS 1\na\tN\t--\t--\t0\n#EOS 1\n".replace(b"\n", ends))
        assert len(list(read_trees(path))) == 1
    path.write_bytes(b"(A b)\r(A b)\r\n(A b)\n(A (B")
    with pytest.raises(TreebankError, match=r"a\.mrg:4:1: unbalanced"):
        list(read_trees(path))
    path.write_bytes(b"(A b)\r(A b)\r\n(A b)\n(A \xff)\n")
    with pytest.raises(TreebankError, match=r"a\.mrg:4:4: not valid utf-8"):
        list(read_trees(path))


def test_what_a_killed_writer_left_is_removed_and_nothing_else(tmp_path):
    with new_file(tmp_path / "m"):
        (left,) = os.listdir(tmp_path)
    (tmp_path / left).touch()  # as if it had been killed
    others = sorted(["m", "m.part", ".m.checkpoint.abcdefgh.part", ".m.lock", ".mm.abcdefgh.part"])
    for name in others:
        (tmp_path / name).touch()
    remove_parts(tmp_path / "m")
    assert sorted(os.listdir(tmp_path)) == others


# ---- compressed files that expand too much ---------------------------------------------------------------------


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress])
def test_expansion_is_bounded(tmp_path, monkeypatch, compress):
    monkeypatch.setattr("tsgkit._files.FREE_EXPANSION", 1 << 17)
    path = tmp_path / "trees"
    path.write_bytes(compress(b"(TOP (A b))\n" * (1 << 15)))
    assert path.stat().st_size < 1 << 11
    n_read = 0
    with pytest.raises(TreebankError, match=r"trees:\d+: \d+ compressed bytes expand to more than \d+ MB"):  # noqa: PT012
        for _ in read_trees(path):
            n_read += 1
    assert 1 << 13 < n_read < 1 << 15
    with pytest.raises(TreebankError, match="TSGKIT_MAX_EXPANSION"):
        read_source(path, "")
    monkeypatch.setenv("TSGKIT_MAX_EXPANSION", "10000")
    with open_binary(path) as file:
        assert len(whole_text(file)) == 12 << 15
    monkeypatch.setenv("TSGKIT_MAX_EXPANSION", "little")
    with pytest.raises(UsageError, match="TSGKIT_MAX_EXPANSION=little"), open_binary(path):
        pass


def test_small_and_ordinary_files_expand_as_they_like(tmp_path, monkeypatch):
    path = tmp_path / "text"
    path.write_bytes(lzma.compress(b"the same again\n" * (1 << 17)))
    with open_binary(path) as file:
        assert sum(1 for _ in lines_of(file)) == 1 << 17
    monkeypatch.setattr("tsgkit._files.FREE_EXPANSION", 1 << 10)
    random = np.random.default_rng(1).integers(97, 123, size=1 << 20, dtype=np.uint8).tobytes()
    path.write_bytes(gzip.compress(random, 1))
    with open_binary(path) as file:
        assert whole_text(file) == random


def test_a_hostile_treebank_takes_little_memory(tmp_path):
    """As found: nine kilobytes that took gigabytes, because all of one line becomes one tree."""
    path = tmp_path / "hostile.xz"
    path.write_bytes(lzma.compress(b"(TOP" + b"(A b)" * 12_000_000 + b")"))
    assert path.stat().st_size < 20_000
    limit = memory_limit(1 << 30)
    command = [sys.executable, "-m", "tsgkit", "prepare", path, "-o", tmp_path / "out"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, **limit)
    assert done.returncode == 2, done.stderr
    assert "hostile.xz:1: " in done.stderr
    assert "expand to more than 16 MB" in done.stderr
