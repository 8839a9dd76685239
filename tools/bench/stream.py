"""Parse a long file of generated sentences, kill the parser half-way, resume it, and monitor its memory.

Usage:
  tools.bench.stream [options]
  tools.bench.stream -h | --help | --version

Run it as ``python -m tools.bench.stream``. It trains a PCFG on generated trees, writes generated sentences to a file,
parses them with `tsgkit parse`, kills that process half-way (-9), and completes the output with `tsgkit parse
--resume`. Every output tree is compared with its line of input. The table shows the resident memory of the parser
over time; the exit code is 1 if the memory grows, or if a tree is missing, duplicated, or of another sentence.

Options:
  --sentences=N     sentences in the file [default: 1000000]
  --max-length=N    maximum number of words per sentence [default: 8]
  --train=N         training trees [default: 2000]
  --threads=N       threads of the parser [default: 1]
  --objective=NAME  objective of the parser [default: mpd]
  --rows=N          rows of the table [default: 20]
  --folder=DIR      folder for the files; a temporary one by default
  --seed=N          seed of the sentences [default: 1]
  -q, --quiet       do not report progress
  -h, --help        this text
  --version         the version
"""

import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nltk.tree import Tree

from tsgkit._cli import command, integer, parse_arguments
from tsgkit._exit_codes import EXIT_FAILED
from tsgkit._progress import progress
from tsgkit.errors import UsageError
from tsgkit.evaluation._report import columns
from tsgkit.models._cfg import cfg_model
from tsgkit.treebank import Binarization, UnknownWords, prepare
from tsgkit.treebank.synthetic import generate_derivations
from tsgkit.treebank.synthetic._derivations import SHORTEST_MAX_LENGTH

LEAF = re.compile(r" ([^ ()]+)\)")
MEGABYTE = 1 << 10  # in kilobytes, the unit of the system
SECONDS_BETWEEN_LOOKS = 0.25
# Memory does not grow if the second half of a run needs at most this factor more than the first.
GROWTH = 1.05


@dataclass
class Watched:
    """Measurements of the running parser: rows of run, sentences, seconds, kilobytes."""

    n_sentences: int
    output: Path
    rows: list[tuple[int, int, float, int]] = field(default_factory=list)

    @property
    def n_done(self) -> int:
        """The number of sentences that are done and on disk."""
        try:
            return int(json.loads(Path(f"{self.output}.partial.json").read_text())["n_done"])
        except FileNotFoundError:  # not started, or complete
            return self.n_sentences if self.output.exists() else 0

    def watch(self, command: list[str], *, kill_at: int | None = None, quiet: bool = False) -> None:
        """Run a parser to its end, or until `kill_at` sentences are done."""
        run = self.rows[-1][0] + 1 if self.rows else 1
        process = subprocess.Popen(command)
        started = time.monotonic()
        with progress(None, f"run {run}", "sentences", total=self.n_sentences, quiet=quiet) as bar:
            while process.poll() is None:
                time.sleep(SECONDS_BETWEEN_LOOKS)
                memory, done = resident(process.pid), self.n_done
                if memory and done:
                    self.rows.append((run, done, time.monotonic() - started, memory))
                bar.n = done
                bar.refresh()
                if kill_at is not None and done >= kill_at:
                    process.send_signal(signal.SIGKILL)
        code = process.wait()
        if code not in ((0,) if kill_at is None else (0, -signal.SIGKILL)):
            raise UsageError(f"the parser ended with exit code {code}")

    def table(self, n_rows: int) -> str:
        """The memory at `n_rows` points between the beginning and the end."""
        marks = [self.n_sentences * place // n_rows for place in range(1, n_rows + 1)]
        chosen: list[tuple[int, int, float, int]] = []
        for mark in marks:
            row = min(self.rows, key=lambda row: abs(row[1] - mark))
            if row not in chosen:
                chosen.append(row)
        cells = [
            [str(run), str(done), f"{seconds:.0f}", f"{memory / MEGABYTE:.1f}"] for run, done, seconds, memory in chosen
        ]
        return columns(["run", "sentences", "seconds", "MB"], cells, n_left=0)

    def growth(self) -> float:
        """The maximum over runs of the peak memory in the second half divided by that in the first half."""
        ratios = []
        for number in {row[0] for row in self.rows}:
            own = [row for row in self.rows if row[0] == number]
            middle = (own[0][1] + own[-1][1]) / 2
            first = [memory for _, done, _, memory in own if done <= middle]
            second = [memory for _, done, _, memory in own if done > middle]
            if first and second:
                ratios.append(max(second) / max(first))
        return max(ratios, default=1.0)


def resident(pid: int) -> int:
    """The resident memory of a process in kilobytes; 0 if it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    found = re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)
    return int(found[1]) if found else 0


def sentences(arguments: dict[str, Any], n_sentences: int, seed: int) -> Iterator[str]:
    """The brackets of generated trees."""
    max_length = integer(arguments, "--max-length", SHORTEST_MAX_LENGTH)
    return (derivation.brackets for derivation in generate_derivations(n_sentences, seed, max_length=max_length))


def write_input(arguments: dict[str, Any], path: Path) -> None:
    """A line of words for every generated tree."""
    n_sentences = integer(arguments, "--sentences", 2)
    trees = sentences(arguments, n_sentences, integer(arguments, "--seed", 0))
    with path.open("w", encoding="utf-8") as file:
        for tree in progress(trees, "generating", "sentences", total=n_sentences, quiet=arguments["--quiet"]):
            file.write(" ".join(LEAF.findall(tree)) + "\n")


def first_difference(text: Path, trees: Path) -> int:
    """The number of the first line whose tree has other words, is missing or is extra; 0 if there is none."""
    with text.open(encoding="utf-8") as lines, trees.open(encoding="utf-8") as found:
        number = 0
        for number, line in enumerate(lines, start=1):
            if LEAF.findall(found.readline()) != line.split():
                return number
        return number + 1 if found.readline() else 0


@command
def main(argv: list[str]) -> int:
    arguments = parse_arguments(__doc__, argv)
    if not Path("/proc/self/status").exists():
        raise UsageError("memory is read from /proc, which this system does not have")
    with tempfile.TemporaryDirectory() as temporary:
        return measure(arguments, Path(arguments["--folder"] or temporary))


def measure(arguments: dict[str, Any], folder: Path) -> int:
    """Write the files, parse, and print the measurements."""
    folder.mkdir(exist_ok=True)
    model, text, output = folder / "cfg.model", folder / "sentences", folder / "trees"
    # With another seed than the sentences, since otherwise all words would be known.
    brackets = sentences(arguments, integer(arguments, "--train", 1), integer(arguments, "--seed", 0) + 1)
    corpus = prepare(map(Tree.fromstring, brackets), binarization=Binarization("right", 0), unknown=UnknownWords())
    cfg_model(corpus).save(model)
    write_input(arguments, text)
    output.unlink(missing_ok=True)
    parser = [sys.executable, "-m", "tsgkit", "parse", "--quiet", "--resume", f"--threads={arguments['--threads']}"]
    parser += [f"--objective={arguments['--objective']}", f"--input={text}", f"--output={output}", str(model)]
    n_sentences = integer(arguments, "--sentences", 2)
    seen = Watched(n_sentences, output)
    started = time.monotonic()
    seen.watch(parser, kill_at=n_sentences // 2, quiet=arguments["--quiet"])
    seen.watch(parser, quiet=arguments["--quiet"])
    seconds = time.monotonic() - started
    if not seen.rows:
        raise UsageError(f"--sentences={n_sentences}: too few; they were parsed before anything could be measured")
    wrong, growth = first_difference(text, output), seen.growth()
    print(seen.table(integer(arguments, "--rows", 1)))
    size = text.stat().st_size / (1 << 20), output.stat().st_size / (1 << 20)
    print(f"{n_sentences} sentences ({size[0]:.1f} MB) to trees ({size[1]:.1f} MB) in {seconds:.0f} s")
    peak = max(row[3] for row in seen.rows) / MEGABYTE
    print(f"memory at most {peak:.1f} MB, {100 * (growth - 1):+.1f} % in the second half")
    print("every sentence has its tree" if not wrong else f"line {wrong}: the tree is not that of the sentence")
    return 0 if not wrong and growth <= GROWTH else EXIT_FAILED


if __name__ == "__main__":
    sys.exit(main())
