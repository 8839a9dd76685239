"""Progress bars: on a terminal, unless it is to be quiet, and never on the standard output."""

import io
import sys

import pytest

from tsgkit.progress import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("stream", "quiet", "is_shown"), [(Terminal, False, True), (Terminal, True, False), (io.StringIO, False, False)]
)
def test_where_a_bar_is_shown(monkeypatch, capsys, stream, quiet, is_shown):
    shown = stream()
    monkeypatch.setattr(sys, "stderr", shown)
    assert list(progress(range(3), "parsing", "sentences", quiet=quiet)) == [0, 1, 2]
    assert ("parsing" in shown.getvalue()) == is_shown
    assert capsys.readouterr().out == ""


def test_a_bar_that_the_caller_moves(monkeypatch):
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    with progress(None, "run", "sentences", total=2) as bar:
        bar.update(2)
        bar.refresh()
    assert "2/2" in shown.getvalue()
