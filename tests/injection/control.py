"""Faults in file calls: the control file of ``inject.c``, and commands that run under it.

The process that runs commands imports everything once; each command is a fork of it, so that thousands can be run. What
commands start themselves, such as chains, shares the control file, and its calls are numbered together with theirs.
"""

import ctypes
import errno
import mmap
import os
import shutil
import signal
import subprocess
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).parent / "inject.c"
VARIABLE = "TSGKIT_FAULTS"
N_LOGGED = 1 << 16
PASS, FAIL, SHORT, KILL, KILL_LEADER, SHORT_AND_KILL = range(6)
# What can go wrong with each kind of call, most telling first.
ERRORS = {
    "c": (errno.ENOSPC, errno.EIO, errno.EINTR),
    "l": (errno.ENOLCK, errno.EINTR),
    "m": (errno.EIO,),
    "n": (errno.EIO, errno.ENOSPC),
    "o": (errno.EIO, errno.EMFILE, errno.EINTR),
    "r": (errno.EIO, errno.EINTR),
    "s": (errno.EIO, errno.ENOSPC, errno.EINTR),
    "t": (errno.EIO, errno.EINTR),
    "u": (errno.EIO,),
    "w": (errno.ENOSPC, errno.EIO, errno.EINTR),
    "x": (errno.EIO,),
}
# Calls that change something, before which a kill leaves another state of the files.
CHANGES = "cmntuw"


class Control(ctypes.Structure):
    """As in inject.c."""

    _fields_ = (
        ("count", ctypes.c_int64),
        ("at", ctypes.c_int64),
        ("action", ctypes.c_int32),
        ("error", ctypes.c_int32),
        ("leader", ctypes.c_int32),
        ("hit", ctypes.c_int32),
        ("folder", ctypes.c_char * 1024),
        ("kinds", ctypes.c_char * N_LOGGED),
    )


@dataclass(frozen=True)
class Fault:
    """What happens to one call: its number, counted from 1, the action, and the error if it fails."""

    at: int = 0
    action: int = PASS
    error: int = 0

    def __str__(self) -> str:
        what = ("passes", "fails with", "is cut short", "kills", "kills the command", "is cut short and kills")[
            self.action
        ]
        return f"call {self.at} {what}" + (f" {errno.errorcode[self.error]}" if self.action == FAIL else "")


@dataclass(frozen=True)
class Result:
    """How a command ended: its exit code, negative for a signal, its messages, and which calls it made."""

    code: int
    said: str
    kinds: str
    hit: bool


def build(folder: Path) -> Path:
    """Compile the library; returns its path."""
    library = folder / "inject.so"
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise FileNotFoundError("no C compiler")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"], check=True)
    return library


def run_under_control(folder: Path, arguments: list[str]) -> int:
    """Start this interpreter again with the library, to run ``python -m injection.run ARGUMENTS``."""
    control = folder / "control"
    control.write_bytes(bytes(ctypes.sizeof(Control)))
    environment = {
        **os.environ,
        "LD_PRELOAD": " ".join(filter(None, (str(build(folder)), os.environ.get("LD_PRELOAD")))),
        VARIABLE: str(control),
        "PYTHONPATH": str(Path(__file__).parent.parent),
    }
    return subprocess.call([sys.executable, "-m", "injection.run", *arguments], env=environment)


NO_FAULT = Fault()


class Injector:
    """Runs commands with faults; only in a process that has the library."""

    def __init__(self) -> None:
        with open(os.environ[VARIABLE], "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), ctypes.sizeof(Control))
        self.control = Control.from_buffer(self.memory)

    def run(self, folder: Path, words: list[str], fault: Fault = NO_FAULT) -> Result:
        """Run ``tsgkit WORDS`` in a folder."""
        log = folder.parent / f"{folder.name}.log"
        self.control.folder = b""
        process = os.fork()
        if process == 0:
            self.begin(folder, words, fault, log)
        self.control.leader = process
        _, status = os.waitpid(process, 0)
        self.control.folder = b""
        said = log.read_text(errors="replace")
        return Result(os.waitstatus_to_exitcode(status), said, self.kinds().decode("ascii"), bool(self.control.hit))

    def kinds(self) -> bytes:
        """The kinds of the calls so far."""
        start = Control.kinds.offset
        return self.memory[start : start + min(self.control.count, N_LOGGED)]

    def begin(self, folder: Path, words: list[str], fault: Fault, log: Path) -> None:
        """The whole life of the process of a command."""
        code = 70
        try:
            os.setsid()  # so that nothing that it leaves behind is taken for something of another command
            signal.signal(signal.SIGINT, signal.default_int_handler)
            os.chdir(folder)
            output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
            null = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1):
                os.dup2(null, descriptor)
            os.dup2(output, 2)
            self.control.count, self.control.hit, self.control.leader = 0, 0, os.getpid()
            self.control.at, self.control.action, self.control.error = fault.at, fault.action, fault.error
            self.control.folder = os.fsencode(folder)
            from tsgkit._cli import main  # noqa: PLC0415 - imported before, if this is a fork

            code = main(words)
            sys.stdout.flush()
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
