"""Progress bars: on a terminal, unless it is to be quiet, and never on the standard output."""

import io
import sys

import pytest

from tsgkit._progress import LogLines, progress


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


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def lines_of_a_job(seconds_per_iteration, **options):
    clock = Clock()
    log = LogLines("training", 100, clock=clock, **options)
    for done in range(1, 101):
        clock.now += seconds_per_iteration
        log.add(done, "log joint -5")
    log.close("done: 100 iterations")


def test_a_long_job_without_a_terminal_prints_lines(monkeypatch, tmp_path):
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    lines_of_a_job(2.0, path=tmp_path / "log")
    assert shown.getvalue().splitlines() == [
        "tsgkit: training",
        "tsgkit: iteration 3 of 100, log joint -5, about 3.2 min left",
        "tsgkit: iteration 8 of 100, log joint -5, about 3.1 min left",
        "tsgkit: iteration 18 of 100, log joint -5, about 2.7 min left",
        "tsgkit: iteration 38 of 100, log joint -5, about 2.1 min left",
        "tsgkit: iteration 68 of 100, log joint -5, about 64 s left",
        "tsgkit: iteration 98 of 100, log joint -5, about 4 s left",
        "tsgkit: done: 100 iterations",
    ]
    written = (tmp_path / "log").read_text("utf-8").splitlines()
    assert [line.split(" ", 2)[2] for line in written] == [
        line.removeprefix("tsgkit: ") for line in shown.getvalue().splitlines()
    ]


@pytest.mark.parametrize(("stream", "quiet"), [(Terminal, False), (io.StringIO, True)])
def test_no_lines_on_a_terminal_or_if_quiet(monkeypatch, stream, quiet):
    shown = stream()
    monkeypatch.setattr(sys, "stderr", shown)
    lines_of_a_job(2.0, quiet=quiet)
    assert shown.getvalue() == ""


def test_a_short_job_prints_nothing_and_is_logged(monkeypatch, tmp_path):
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    lines_of_a_job(0.01, path=tmp_path / "log")
    assert shown.getvalue() == ""
    assert len((tmp_path / "log").read_text("utf-8").splitlines()) == 2
