"""Running commands: in a new process, as a user does, or in ways that do not load all modules every time.

`run_here` runs a command in this process; `run_forked` runs several, each in a process forked from one that has loaded
the modules. Both are for tests in which the start of the interpreter is not what is tested.
"""

import io
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tsgkit import _cli

Finished = subprocess.CompletedProcess[str]


def run_process(arguments: Sequence[str], folder: Path, data: bytes = b"") -> Finished:
    """Run ``tsgkit ARGUMENTS`` in a new process."""
    done = subprocess.run(
        [sys.executable, "-m", "tsgkit", *arguments], input=data, capture_output=True, cwd=folder, check=False
    )
    return Finished(arguments, done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8"))


def run_here(arguments: Sequence[str], folder: Path, data: bytes = b"", *, is_one_stream: bool = False) -> Finished:
    """Run ``tsgkit ARGUMENTS`` in this process: its streams are files, on the descriptors of standard streams.

    With `is_one_stream`, stderr is the same stream as stdout, and lines come in the order in which they are printed, as
    on a terminal.
    """
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as results, tempfile.TemporaryFile() as messages:
        given.write(data)
        given.seek(0)
        second = results if is_one_stream else messages
        descriptors = given.fileno(), results.fileno(), second.fileno()
        with in_folder(folder), standard_streams(*descriptors, is_by_line=is_one_stream):
            code = _cli.main(arguments)
        texts = []
        for file in (results, messages):
            file.seek(0)
            texts.append(file.read().decode("utf-8"))
    return Finished(arguments, code, *texts)


@contextmanager
def in_folder(folder: Path) -> Iterator[None]:
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@contextmanager
def standard_streams(*descriptors: int, is_by_line: bool) -> Iterator[None]:
    """Put files in the place of stdin, stdout and stderr, for Python and for everything below it.

    With `is_by_line`, every line of stdout is written at once, as those of stderr are.
    """
    streams = sys.stdin, sys.stdout, sys.stderr
    for stream in streams[1:]:
        stream.flush()
    kept = [os.dup(number) for number in range(3)]
    try:
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
        sys.stdin, sys.stdout, sys.stderr = (
            io.TextIOWrapper(open(number, mode, closefd=False), encoding="utf-8", line_buffering=is_flushed)  # noqa: SIM115 - a standard stream
            for number, (mode, is_flushed) in enumerate((("rb", False), ("wb", is_by_line), ("wb", True)))
        )
        yield
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    finally:
        sys.stdin, sys.stdout, sys.stderr = streams
        for number, descriptor in enumerate(kept):
            os.dup2(descriptor, number)
            os.close(descriptor)


def run_forked(
    commands: Sequence[Sequence[str]], folder: Path, text: str = "", redirection: str = "", **options: Any
) -> list[Finished]:
    """Run commands one after the other, each in a process that is forked from one that has loaded the modules.

    `text` is the input of each. A `redirection` of the shell, such as ``<&-``, holds for all of them, but for stderr;
    what it concerns is not captured. More `options` are those of `subprocess.run`.
    """
    (folder / "commands.in").write_text(text, "utf-8")
    job = json.dumps({"commands": [list(map(str, each)) for each in commands], "is_redirected": bool(redirection)})
    line = shlex.join([sys.executable, "-c", "import commands; commands.fork_each()", job]) + f" {redirection}"
    environment = {**options.pop("env", os.environ)}
    paths = [str(Path(__file__).parent), *filter(None, [environment.get("PYTHONPATH")])]
    environment["PYTHONPATH"] = os.pathsep.join(paths)
    subprocess.run(["sh", "-c", line], cwd=folder, env=environment, check=True, **options)
    return [
        Finished(each, *json.loads((folder / f"commands.out{number}").read_text("utf-8")))
        for number, each in enumerate(commands)
    ]


NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC


def replace_stream(number: int, path: str, flags: int) -> None:
    descriptor = os.open(path, flags, 0o600)
    os.dup2(descriptor, number)
    os.close(descriptor)  # it may be 0 or 1 where these are closed, and must not take their place


def fork_each() -> None:
    """The process of `run_forked`, which needs no standard streams."""
    job = json.loads(sys.argv[1])
    for name in {command[0] for command in job["commands"]}:
        _cli.loaded(f"tsgkit._tools.{name}")
    for number, arguments in enumerate(job["commands"]):
        child = os.fork()
        if not child:
            if not job["is_redirected"]:
                replace_stream(0, "commands.in", os.O_RDONLY)
                replace_stream(1, "commands.stdout", NEW_FILE)
            replace_stream(2, "commands.stderr", NEW_FILE)
            sys.exit(_cli.main(arguments))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        printed = "" if job["is_redirected"] else Path("commands.stdout").read_text("utf-8")
        result = [code, printed, Path("commands.stderr").read_text("utf-8")]
        Path(f"commands.out{number}").write_text(json.dumps(result), "utf-8")
