"""Child processes: with a limit on their memory, of programs that are not ours, and those that others have started."""

import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are found through /proc")


def memory_limit(most_bytes: int, environment: dict[str, str] | None = None) -> dict[str, Any]:
    """What to tell `subprocess.run` for a child in an `environment` that ends when it takes more memory.

    As a rule, its addresses are limited. AddressSanitizer reserves terabytes of them, and watches the resident memory
    instead.
    """
    environment = dict(os.environ if environment is None else environment)
    if "libasan" in environment.get("LD_PRELOAD", ""):
        options = f"hard_rss_limit_mb={most_bytes >> 20}:quarantine_size_mb=16"
        return {"env": {**environment, "ASAN_OPTIONS": f"{environment.get('ASAN_OPTIONS', '')}:{options}"}}
    limit = (most_bytes, most_bytes)
    return {"env": environment, "preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_AS, limit)}


def hear_interrupts() -> None:
    """For a new process: jobs in the background of a shell ignore Ctrl-C, and so would what they start."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def unsanitized() -> dict[str, str]:
    """The environment for programs that are not ours to examine: a sanitizer can bring them to a halt."""
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


def descendants(pid: int, word: str) -> list[int]:
    """The processes below one, in the order in which they began, whose command line has a word in it."""
    rows = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                rows.append((int(entry.name), parent, (entry / "cmdline").read_bytes()))
            except (OSError, IndexError):  # it has just ended
                continue
    found, family = [], {pid}
    for own, parent, command in sorted(rows):
        if parent in family:
            family.add(own)
            if word.encode() in command:
                found.append(own)
    return found


def wait_until(
    condition: Callable[[], Any], process: "subprocess.Popen[str] | None" = None, seconds: float = 600
) -> None:
    """Wait for something; only what hangs takes so long. A `process` that ends meanwhile tells why."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert process is None or process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.01)
