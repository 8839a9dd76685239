"""Let one allocation after the other fail: each run ends with the same result, or with a clean error.

Usage:
  run.py [options] [TARGET...]

Run with the library of `failing_malloc.cpp` preloaded; without it, this program makes the library and starts itself
with it. A target does its work in this process again and again. In run n the n-th allocation fails, and after that,
with --stays, all others, too, until a run has enough. All allocations of compiled code count, and those of Python and
numpy from 128 kB on: of smaller ones numpy makes a segmentation fault. A target must then raise MemoryError, or its
command must end with the exit code for it, and leave no file half-written; the same objects must afterwards give what
they give otherwise, bit for bit.

Options:
  --every        fail at each allocation; otherwise after the first ones at fewer and fewer of them
  --stays        from the n-th allocation on, all fail
  --list         print the names of all targets
  -h, --help     this text
"""

import ctypes
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from docopt import docopt

from tsgkit._threads import prepare_thread
from tsgkit.errors import is_out_of_memory

FOLDER = Path(__file__).parent
# At most so many runs at allocations one after the other, if not at all of them; then the distance grows.
N_FIRST = 30
# Bytes, for what is not of C++. The buffers of numpy's iterators have 64 kB, and where there is no memory for one, as
# in indexing by int32, numpy writes to address 0.
SMALLEST = 1 << 17


class Allocator:
    """The preloaded library."""

    def __init__(self) -> None:
        library = ctypes.CDLL(None)
        self._fail_after = library.fail_after
        self._fail_after.argtypes = [ctypes.c_long, ctypes.c_size_t, ctypes.c_int]
        self._left = library.allocations_left
        self._left.restype = ctypes.c_long
        self.stays = False

    def arm(self, n: int, stays: bool) -> None:
        self.stays = stays
        self._fail_after(n, SMALLEST, stays)

    def disarm(self) -> bool:
        """Let none fail any more; whether one has."""
        left = self._left()
        self._fail_after(-1, 0, 0)
        return left < 0 or (self.stays and left == 0)


def run_target(prepare, allocator: Allocator, *, every: bool, stays: bool) -> tuple[int, int]:
    """How often a target failed cleanly, and how many runs it took until it had enough."""
    expected = prepare()()
    n = n_failed = n_runs = 0
    while True:
        operation = prepare()
        n_runs += 1
        allocator.arm(n, stays)
        try:
            found = operation()
        except Exception as error:
            allocator.disarm()
            if not isinstance(error, MemoryError) and not is_out_of_memory(error):
                raise
            n_failed += 1
            again = operation()
            assert again == expected, f"another result after allocation {n} failed"
        else:
            if not allocator.disarm():
                assert found == expected, "another result without a failure"
                return n_failed, n_runs
            # Something that can do without it: Python's own caches, or numpy's.
            assert found == expected, f"another result where allocation {n} failed"
        n += 1 if every or n < N_FIRST else 1 + n // 15


def library_of(folder: Path) -> Path:
    """The library, compiled."""
    library = folder / "failing_malloc.so"
    compiler = os.environ.get("CXX", "c++").split()
    subprocess.run([*compiler, "-O1", "-shared", "-fPIC", "-o", library, FOLDER / "failing_malloc.cpp"], check=True)
    return library


def start_again(library: Path) -> int:
    tests = os.pathsep.join([str(FOLDER.parent), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    environment = {**os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": tests}
    return subprocess.run([sys.executable, "-m", "oom.run", *sys.argv[1:]], env=environment, check=False).returncode


def main() -> int:
    arguments = docopt(__doc__ or "")
    if not hasattr(ctypes.CDLL(None), "fail_after"):
        with tempfile.TemporaryDirectory() as folder:
            return start_again(library_of(Path(folder)))
    from oom.targets import TARGETS  # noqa: PLC0415 - not in the process that only starts another

    if arguments["--list"]:
        print("\n".join(TARGETS))
        return 0
    names = arguments["TARGET"] or list(TARGETS)
    allocator = Allocator()
    prepare_thread()
    n_all = 0
    for name in names:
        started = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            prepare = TARGETS[name](Path(folder))
            n_failed, n_runs = run_target(prepare, allocator, every=arguments["--every"], stays=arguments["--stays"])
        n_all += n_failed
        seconds = time.perf_counter() - started
        print(f"{name:<28}{n_failed:>8} failed cleanly in {n_runs:>8} runs{seconds:>8.1f} s", flush=True)
    print(f"{n_all} allocations failed in {len(names)} targets")
    return 0


if __name__ == "__main__":
    sys.exit(main())
