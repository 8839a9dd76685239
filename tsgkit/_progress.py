"""Progress bars, shown only if stderr is a terminal; otherwise lines, every so often."""

import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tqdm import tqdm

FIRST_LINE, LONGEST_PAUSE = 5.0, 60.0  # seconds
# No thread that only watches whether bars are still updated.
tqdm.monitor_interval = 0


def progress(
    items: Iterable[Any] | None, description: str, unit: str, *, total: int | None = None, quiet: bool = False
) -> Any:
    """Iterate over `items` with a progress bar, which is shown only on a terminal and not if `quiet`.

    Returns the ``tqdm`` object, so that a caller can set a postfix or, without `items`, update the bar.
    """
    hidden = quiet or not sys.stderr.isatty()
    return tqdm(items, desc=description, unit=f" {unit}", total=total, disable=hidden, leave=False, dynamic_ncols=True)


class LogLines:
    """Lines about a long job: what is done, and the time that is left; at first after seconds, then every minute.

    Parameters
    ----------
    title : str
        What is done; the first line.
    total : int
        Iterations of the whole job.
    done : int
        Iterations that were done before, by a run that is resumed.
    quiet : bool
        No lines on stderr. If stderr is a terminal there are none either: a progress bar is shown there.
    path : path, optional
        A file to append the lines to, with the time of each.
    clock : callable
        Returns seconds.

    Examples
    --------
    >>> seconds = iter([0.0, 1.0, 6.0])
    >>> log = LogLines("training", 100, quiet=True, clock=lambda: next(seconds))
    >>> log.due(), log.due()
    (False, True)
    """

    def __init__(
        self,
        title: str,
        total: int,
        *,
        done: int = 0,
        quiet: bool = False,
        path: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.title, self.total, self.first, self.path, self.clock = title, total, done, path, clock
        self.to_stderr = not quiet and not sys.stderr.isatty()
        self.is_long = False
        self.write_file(title)
        self.started = self.clock()
        self.pause = FIRST_LINE
        self.next_line = self.started + self.pause

    def due(self) -> bool:
        """Whether it is time for a line."""
        now = self.clock()
        if now < self.next_line:
            return False
        self.pause = min(2 * self.pause, LONGEST_PAUSE)
        self.next_line = now + self.pause
        return True

    def add(self, done: int, figures: str) -> None:
        """Say how far the job is, if it is time."""
        if self.due():
            seconds = (self.clock() - self.started) / max(done - self.first, 1) * (self.total - done)
            if not self.is_long:
                self.is_long = True
                self.write_stderr(self.title)
            self.write(f"iteration {done} of {self.total}, {figures}, about {duration(seconds)} left")

    def close(self, text: str) -> None:
        """Write the last line; a job that took only seconds has none on stderr."""
        self.write(text)

    def write(self, text: str) -> None:
        if self.is_long:
            self.write_stderr(text)
        self.write_file(text)

    def write_stderr(self, text: str) -> None:
        if self.to_stderr:
            print(f"tsgkit: {text}", file=sys.stderr, flush=True)

    def write_file(self, text: str) -> None:
        if self.path is not None:
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}\n")


def duration(seconds: float) -> str:
    """A time span in words.

    Examples
    --------
    >>> duration(9.6), duration(150), duration(3 * 3600 + 600)
    ('10 s', '2.5 min', '3.2 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
