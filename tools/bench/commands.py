"""Complete commands of parsers: their processor time, their memory, and what they write."""

import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tsgkit.errors import UsageError

# Parse a file and print the peak memory. `getrusage` would not report less for a child than its parent used.
PARSE_AND_PRINT_MEMORY = """
import sys
from tsgkit._tools.parse import main
code = main(sys.argv[1:])
with open("/proc/self/status") as status:
    print(*[line.split()[1] for line in status if line.startswith("VmHWM")])
sys.exit(code)
"""

Words = list[str]


def processor_seconds(program: Sequence[str]) -> float:
    """Run a program; returns its processor time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def command_megabytes(arguments: Sequence[str]) -> str:
    """The peak memory of ``tsgkit parse`` with these arguments, in a separate process."""
    if not os.path.exists("/proc/self/status"):
        return "-"
    program = [sys.executable, "-c", PARSE_AND_PRINT_MEMORY, *arguments]
    said = subprocess.run(program, stdout=subprocess.PIPE, check=True, text=True).stdout
    return f"{int(said) / 1024:.0f}"


def berkeley_command() -> list[str]:
    """The command of the Berkeley parser, if the environment names it."""
    jar = os.environ.get("BERKELEY_JAR")
    if not jar:
        return []
    grammar = os.environ.get("BERKELEY_GRAMMAR", "")
    for variable, path in (("BERKELEY_JAR", jar), ("BERKELEY_GRAMMAR", grammar)):
        if not os.path.isfile(path):
            raise UsageError(f"{variable}={path}: no such file")
    # The threads of a parallel garbage collector would count as processor time.
    return ["java", "-XX:+UseSerialGC", "-Xmx2g", "-jar", jar, "-gr", grammar]


def write_sentences(path: Path, sentences: Sequence[Words]) -> None:
    path.write_text("".join(f"{' '.join(words)}\n" for words in sentences), encoding="utf-8")


def read_output(path: Path) -> list[str]:
    """One tree per line; the Berkeley parser omits the label of the root, and prints ``(())`` for a failure."""
    return list(map(with_root, path.read_text(encoding="utf-8").splitlines()))


def read_lists(path: Path) -> list[list[str]]:
    """The trees of every sentence, one per line, with an empty line after each list."""
    lists: list[list[str]] = [[]]
    for line in path.read_text(encoding="utf-8").splitlines():
        if line:
            lists[-1].append(with_root(line))
        else:
            lists.append([])
    return lists[:-1]


def with_root(line: str) -> str:
    return "" if line == "(())" else f"(TOP{line[1:]}" if line.startswith("( ") else line
