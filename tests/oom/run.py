"""Let one allocation after the other fail: each run ends with the same result, or with a clean error.

Usage:
  run.py [options] [TARGET...]

Run with the library of `failing_malloc.cpp` preloaded; without it, this program makes the library and starts itself
with it. A target does its work in a process of its own again and again. In one run the n-th allocation fails, and after
that, with --stays, all others, too. Unless otherwise said, n are the first and the last allocation of every call stack
(its innermost 16 frames) that no target before had, and some between and of the others, half as many. All allocations
of compiled code count, and those of Python and numpy from 128 kB on: of smaller ones numpy makes a segmentation fault.
A target must then raise MemoryError, or its command must end with the exit code for it, and leave no file half-written;
the same objects must afterwards give what they give otherwise, bit for bit.

Options:
  --every        fail at each allocation
  --most=N       fail at N allocations of a target at most
  --stays        from the n-th allocation on, all fail
  --list         print the names of all targets
  -h, --help     this text
"""

import ctypes
import importlib
import importlib.util
import mmap
import os
import pkgutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Collection
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from typing import Any

from docopt import docopt

import tsgkit
from tsgkit._messages import is_out_of_memory
from tsgkit._threads import prepare_thread

FOLDER = Path(__file__).parent
# Allocations whose call stacks can be noted.
MOST = 1 << 20
STACKS = "stacks"
N_NUMBERS = 3
# Of a target whose call stacks are all known, about half as many allocations fail.
N_OTHERS = 20
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
        self._note = library.note_stacks
        self._note.argtypes = [ctypes.c_void_p, ctypes.c_long, ctypes.c_size_t]
        self._n_noted = library.stacks_noted
        self._n_noted.restype = ctypes.c_long
        self.stays = False

    def stacks_of(self, operation: Callable[[], object]) -> list[int]:
        """A number for the call stack of every allocation of an operation."""
        stacks = (ctypes.c_uint64 * MOST)()
        self._note(stacks, MOST, SMALLEST)
        try:
            operation()
        finally:
            n_noted = self._n_noted()
            self._note(None, 0, 0)
        return stacks[: min(n_noted, MOST)]

    def arm(self, n: int, stays: bool) -> None:
        self.stays = stays
        self._fail_after(n, SMALLEST, stays)

    def disarm(self) -> bool:
        """Let none fail any more; whether one has."""
        left = self._left()
        self._fail_after(-1, 0, 0)
        return left < 0 or (self.stays and left == 0)


def chosen_of(stacks: list[int], known: Collection[int] = ()) -> list[int]:
    """The numbers of the first and the last allocation of every call stack that is not known, and of some others."""
    places: dict[int, list[int]] = {}
    for place, stack in enumerate(stacks):
        if stack not in known:
            places.setdefault(stack, []).append(place)
    chosen = {place for found in places.values() for place in (found[0], found[-1])}
    others = [place for place in range(len(stacks)) if place not in chosen]
    return sorted(chosen.union(others[:: 1 + 2 * len(others) // max(len(chosen), N_OTHERS)]))


class Counts:
    """How far a target came: numbers that outlive its process."""

    def __init__(self) -> None:
        self.numbers = (ctypes.c_long * N_NUMBERS).from_buffer(mmap.mmap(-1, N_NUMBERS * ctypes.sizeof(ctypes.c_long)))

    # The allocation that fails, counted from 0; how many have failed cleanly; how many there are.
    @property
    def n(self) -> int:
        return self.numbers[0]

    @property
    def n_failed(self) -> int:
        return self.numbers[1]

    @property
    def n_all(self) -> int:
        return self.numbers[2]


def run_target(
    prepare: Callable[[], Callable[[], object]], counts: Counts, known: set[int], options: dict[str, Any]
) -> list[int]:
    """Let allocations of a target fail, and count; returns the call stacks of all."""
    allocator = Allocator()
    prepare_thread()
    expected = prepare()()
    stacks = allocator.stacks_of(prepare())
    counts.numbers[2] = len(stacks)
    chosen = list(range(len(stacks))) if options["--every"] else chosen_of(stacks, known)
    for n in chosen[:: 1 + len(chosen) // int(options["--most"] or MOST)]:
        counts.numbers[0] = n
        operation = prepare()
        allocator.arm(n, options["--stays"])
        try:
            found = operation()
        except Exception as error:
            allocator.disarm()
            if not isinstance(error, MemoryError) and not is_out_of_memory(error):
                raise
            counts.numbers[1] += 1
            again = operation()
            assert again == expected, f"another result after allocation {n} failed"
        else:
            # What failed was something that can do without it, as a cache of Python; or threads needed fewer this time.
            allocator.disarm()
            assert found == expected, f"another result where allocation {n} failed"
    return stacks


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


def begin(name: str, counts: Counts, folder: Path, known: set[int], options: dict[str, Any]) -> int:
    """The whole life of the process of a target."""
    from oom.targets import TARGETS  # noqa: PLC0415 - not in the process that only starts another

    try:
        stacks = run_target(TARGETS[name](folder), counts, known, options)
        (folder / STACKS).write_text(" ".join(map(str, set(stacks))))
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


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
    # Loaded here, so that their call stacks are the same in all processes.
    for module in pkgutil.iter_modules(tsgkit.__path__):
        name = f"tsgkit.{module.name}"
        if module.name != "__main__" and isinstance(importlib.util.find_spec(name).loader, ExtensionFileLoader):
            importlib.import_module(name)
    known: set[int] = set()
    n_all, faults = 0, []
    for name in names:
        started = time.perf_counter()
        counts = Counts()
        with tempfile.TemporaryDirectory() as folder:
            process = os.fork()
            if process == 0:
                code = begin(name, counts, Path(folder), known, arguments)
                sys.stderr.flush()
                os._exit(code)
            status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
            if not status and not arguments["--most"]:
                known.update(map(int, (Path(folder) / STACKS).read_text().split()))
        n_all += counts.n_failed
        seconds = time.perf_counter() - started
        print(f"{name:<28}{counts.n_failed:>8} failed cleanly of {counts.n_all:>8}{seconds:>8.1f} s", flush=True)
        if status:
            how = f"ended by signal {-status}" if status < 0 else "wrong"
            faults.append(f"{name}: {how} where allocation {counts.n} failed")
            print(faults[-1], flush=True)
    print(f"{n_all} allocations failed in {len(names)} targets, {len(known)} call stacks, {len(faults)} faults")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
