"""Streams: items before a failure are not lost, and the first lines of a file are read only when asked for."""

import io

import pytest

from tsgkit._streams import MOST_FIRST_LINES, FirstLines, chunks, until_failure


def failing(n_items):
    yield from range(n_items)
    raise RuntimeError("cut")


def test_items_before_a_failure_come():
    failures = []
    assert list(until_failure(failing(3), failures)) == [0, 1, 2]
    assert [str(error) for error in failures] == ["cut"]
    assert list(until_failure(chunks(failing(5), 2), failures)) == [[0, 1], [2, 3], [4]]
    assert [str(error) for error in failures] == ["cut", "cut"]


class Terminal(io.BytesIO):
    """A file that counts the lines that were asked for."""

    n_read = 0

    def readline(self, size=-1):
        self.n_read += 1
        return super().readline(size)


def test_lines_are_read_when_asked_for():
    file = Terminal(b"a\nb\nc\n")
    first_lines = FirstLines(file, "utf-8")
    assert next(iter(first_lines)) == "a\n"
    assert next(iter(first_lines)) == "a\n"
    assert file.n_read == 1
    lines = iter(first_lines)
    assert (next(lines), next(lines)) == ("a\n", "b\n")
    assert file.n_read == 2
    assert list(first_lines.all_lines()) == [b"a\n", b"b\n", b"c\n"]


def test_the_number_of_first_lines_is_limited():
    file = Terminal(b"x\n" * 1000)
    assert len(list(FirstLines(file, "utf-8"))) == MOST_FIRST_LINES == file.n_read


@pytest.mark.parametrize("encoding", ["utf-8", "klingon", "hex"])
def test_what_is_no_text_is_left_to_the_reader_of_the_file(encoding):
    first_lines = FirstLines(io.BytesIO(b"\xef\xbb\xbf#\xff\n"), encoding)
    assert list(first_lines) == (["#\ufffd\n"] if encoding == "utf-8" else [""])
    assert list(first_lines.all_lines()) == [b"\xef\xbb\xbf#\xff\n"]


class Damaged(io.BytesIO):
    """A file of which only the first line can be read."""

    def readline(self, size=-1):
        if self.tell():
            raise EOFError("cut")
        return super().readline(size)


def test_a_failure_in_the_first_lines_comes_in_its_turn():
    first_lines = FirstLines(Damaged(b"a\nb\nc\n"), "utf-8")
    assert list(first_lines) == ["a\n"]
    lines = first_lines.all_lines()
    assert next(lines) == b"a\n"
    with pytest.raises(EOFError, match="cut"):
        next(lines)
    file = FirstLines(Damaged(b"a\nb\nc\n"), "utf-8")
    assert list(file) == ["a\n"]
    with pytest.raises(EOFError, match="cut"):
        file.whole_file().read()


@pytest.mark.parametrize("n_looked_at", [0, 1, 3, 9])
def test_the_whole_file_after_its_first_lines(n_looked_at):
    content = b"".join(b"line %d\n" % number for number in range(5)) * 10_000
    first_lines = FirstLines(io.BytesIO(content), "utf-8")
    for _, _ in zip(range(n_looked_at), first_lines, strict=False):
        pass
    file = first_lines.whole_file()
    assert file.read(3) == b"lin"
    assert file.readline() == b"e 0\n"
    assert file.read() == content[7:]
