"""Run commands with a fault in every file call, or killed at every file call, and check that nothing is lost.

Usage:
  injection.run (faults | kills) [options] [SCENARIO...]

After a fault a command must succeed with the same files, or print one line, exit with 1 or 2, and leave all inputs and
older results as they were. After a kill or a failure, the command is repeated (resumed where it can be), and must end
with the same bytes and the same files as one that was never disturbed.

Options:
  --every=N    only every N-th call [default: 1]
  --one        only one fault per call, instead of all errors that the call can return
  --once       kill once, instead of once more while the command is repeated
  --seed=N     of the second kill [default: 1]
"""

import contextlib
import importlib.util
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from docopt import docopt
from injection.control import (
    CHANGES,
    ERRORS,
    FAIL,
    KILL,
    KILL_LEADER,
    SHORT,
    SHORT_AND_KILL,
    VARIABLE,
    Fault,
    Injector,
    run_under_control,
)
from injection.scenarios import SCENARIOS, Stage

COLUMNS = ("scenario", "calls", "runs", "hit", "succeeded", "failed", "killed", "lost", "seconds")


class Tally(Counter[str]):
    """What happened in a scenario."""

    problems: list[str]

    def __init__(self) -> None:
        super().__init__()
        self.problems = []


def faults_of(kinds: str, every: int, one: bool) -> Iterator[Fault]:
    """The faults for a sequence of calls; with `one`, each call gets one, and all sorts have their turn."""
    turns: Counter[str] = Counter()
    for number in range(1, len(kinds) + 1, every):
        kind = kinds[number - 1]
        sorts = [Fault(number, FAIL, error) for error in ERRORS[kind]]
        sorts += [Fault(number, SHORT)] if kind in "rw" else []
        yield from [sorts[turns[kind] % len(sorts)]] if one else sorts
        turns[kind] += 1


def kills_of(kinds: str, every: int, one: bool, is_parallel: bool) -> Iterator[Fault]:
    """Kills at calls: all of them, or with `one` at those that change something."""
    numbers = [number for number, kind in enumerate(kinds, start=1) if not one or kind in CHANGES]
    for place, number in enumerate(numbers[::every]):
        if is_parallel and (not one or place % 2):
            yield Fault(number, KILL_LEADER)
        if not is_parallel or not one or not place % 2:
            yield Fault(number, KILL)
        if kinds[number - 1] == "w" and not one:
            yield Fault(number, SHORT_AND_KILL)


def attempt(stage: Stage, fault: Fault, tally: Tally, second: int | None) -> None:
    """Run the command with a fault, check its files, repeat it, and check them again."""

    def require(condition: bool, problem: str) -> None:
        if not condition:
            tally["lost"] += 1
            tally.problems.append(f"{fault} ({stage.kinds[fault.at - 1]}): {problem}")

    stage.reset()
    result = stage.injector.run(stage.folder, stage.scenario.arguments(), fault)
    tally["runs"] += 1
    tally["hit"] += result.hit
    killed = result.code == -signal.SIGKILL
    tally["killed" if killed else "failed" if result.code else "succeeded"] += 1
    is_clean = "Traceback" not in result.said and result.code in (0, 1, 2)
    require(killed or is_clean, f"exit code {result.code}: {result.said[-500:]}")
    if result.code in (1, 2) and not stage.scenario.is_parallel:
        require(len(result.said.splitlines()) == 1 and result.said.startswith("tsgkit: "), result.said)
    stage.require_nothing_lost(require)
    if second is not None:
        again = stage.injector.run(stage.folder, stage.scenario.arguments(again=True), Fault(second, KILL))
        tally["runs"] += 1
        tally["hit"] += again.hit
        tally["killed"] += again.code == -signal.SIGKILL
        stage.require_nothing_lost(require)
    again = stage.injector.run(stage.folder, stage.scenario.arguments(again=True))
    require(again.code == 0, f"repeated: exit code {again.code}: {again.said[-500:]}")
    stage.require_final(require)


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[None]:
    """A Dask cluster whose workers are replaced when they are killed, and meet the same faults as commands."""
    file = folder / "scheduler.json"
    dask = [sys.executable, "-m", "dask"]
    with open(folder / "cluster.log", "w", encoding="utf-8") as log:
        options = ["--no-dashboard", "--host=127.0.0.1", f"--scheduler-file={file}"]
        commands = (["scheduler", "--port=0"], ["worker", "--nworkers=2", "--nthreads=1", "--nanny"])
        started = []
        for words in commands:
            started.append(subprocess.Popen([*dask, *words, *options], cwd=folder, stdout=log, stderr=log))
            while not file.exists() and started[-1].poll() is None:
                time.sleep(0.1)
        try:
            yield
        finally:
            for process in reversed(started):
                process.terminate()
                process.wait()
    file.unlink(missing_ok=True)


def run_scenario(name: str, folder: Path, arguments: dict[str, str]) -> Tally:
    """All faults or kills of a scenario."""
    with cluster(folder) if SCENARIOS[name].needs_cluster else contextlib.nullcontext():
        return run_all(name, folder, arguments)


def run_all(name: str, folder: Path, arguments: dict[str, str]) -> Tally:
    started = time.perf_counter()
    stage = Stage(SCENARIOS[name], folder / name, Injector())
    stage.prepare()
    every, one, tally = int(arguments["--every"]), bool(arguments["--one"]), Tally()
    chosen = random.Random(int(arguments["--seed"]))
    if arguments["faults"]:
        todo = list(faults_of(stage.kinds, every, one))
    else:
        todo = list(kills_of(stage.kinds, every, one, stage.scenario.is_parallel))
    for fault in todo:
        is_twice = arguments["kills"] and not arguments["--once"]
        attempt(stage, fault, tally, chosen.randint(1, len(stage.kinds)) if is_twice else None)
    tally["calls"] = len(stage.kinds)
    tally["seconds"] = round(time.perf_counter() - started)
    return tally


def main() -> int:
    arguments = docopt(__doc__)
    has_dask = importlib.util.find_spec("distributed") is not None
    names = arguments["SCENARIO"] or [name for name, one in SCENARIOS.items() if has_dask or not one.needs_cluster]
    # Imported here, so that the commands, which are forks of this process, need not.
    for module in ("train", "parse", "prepare", "report", "draw", "compare", "generate", "eval"):
        __import__(f"tsgkit._tools.{module}")
    total = Tally()
    print(*(f"{column:>10}" for column in COLUMNS), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            tally = run_scenario(name, Path(folder).resolve(), arguments)
            total.update(tally)
            total.problems += [f"{name}: {problem}" for problem in tally.problems]
            print(f"{name:>10}", *(f"{tally[column]:>10}" for column in COLUMNS[1:]), flush=True)
    print(f"{'all':>10}", *(f"{total[column]:>10}" for column in COLUMNS[1:]))
    print("\n".join(total.problems[:100]))
    return 1 if total.problems else 0


if __name__ == "__main__":
    import os

    if VARIABLE in os.environ:
        sys.exit(main())
    with tempfile.TemporaryDirectory() as place:
        sys.exit(run_under_control(Path(place), sys.argv[1:]))
