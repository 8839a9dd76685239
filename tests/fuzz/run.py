"""Feed damaged inputs to readers; every answer but success and a `TsgkitError` is a fault.

Usage:
  run.py [options] [TARGET...]

Options:
  --inputs=N       in all, shared among the targets by weight [default: 100000]
  --seconds=N      instead: so much CPU time for every target
  --guided=N       after that, if atheris is installed: N seconds for every target of a search for inputs that reach
                   code that no other input has reached [default: 0]
  --seed=N         [default: 0]
  --faults=FOLDER  where inputs that found a fault are kept [default: build/faults]
  --one=FILE       read one input, in this process
  -h, --help       this text
"""

import importlib.util
import mmap
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from docopt import docopt
from processes import memory_limit

TESTS = str(Path(__file__).parents[1])
MEMORY = 2 << 30
SECONDS_PER_INPUT = 10.0  # of CPU time
LAST_INPUT = 1 << 23


class Hang(BaseException):
    """An input takes too long."""


def stop(number: int, frame: FrameType | None) -> NoReturn:
    raise Hang


def read_one(target: Any, data: bytes, folder: Path) -> str:
    """What is wrong with how a target takes an input; ``''`` if nothing is."""
    from tsgkit.errors import TsgkitError  # noqa: PLC0415 - not before atheris is ready

    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS_PER_INPUT)
    try:
        target.read(data, folder)
    except TsgkitError as error:
        if not str(error).strip():
            return "an error without a message"
    except Hang:
        return f"no end after {SECONDS_PER_INPUT:g} s"
    except Exception:
        return traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    left = [path.name for path in folder.iterdir() if path.name.endswith(".part")]
    return f"left behind: {left}" if left else ""


def work(name: str, n_inputs: int, seconds: float, seed: int, last_input: Path) -> int:
    """In a child process: read inputs until the first fault; prints how many there were."""
    signal.signal(signal.SIGVTALRM, stop)
    warnings.simplefilter("error")
    from fuzz.targets import target_of  # noqa: PLC0415 - with warnings as errors

    with tempfile.TemporaryDirectory() as scratch, open(last_input, "r+b") as file:
        folder = Path(scratch)
        target = target_of(name, folder)
        window = mmap.mmap(file.fileno(), LAST_INPUT)
        started, number = time.process_time(), 0
        for data in target.inputs(seed):
            if number >= n_inputs or time.process_time() - started > seconds:
                break
            number += 1
            window[:8] = len(data).to_bytes(8, "little")
            window[8 : 8 + len(data)] = data
            problem = read_one(target, data, folder)
            if problem:
                print(problem)
                return 1
        print(number)
    return 0


def run_target(name: str, n_inputs: int, seconds: float, seed: int, faults: Path) -> tuple[int, str]:
    """How many inputs a target was given in a child process, and what went wrong, with the input's place."""
    with tempfile.NamedTemporaryFile() as last_input:
        last_input.truncate(LAST_INPUT)
        done = subprocess.run(
            [sys.executable, "-m", "fuzz.run", "--work", name, str(n_inputs), str(seconds), str(seed), last_input.name],
            capture_output=True,
            text=True,
            check=False,
            **memory_limit(MEMORY, {**os.environ, "PYTHONPATH": TESTS, "PYTHONMALLOC": "malloc"}),
        )
        if done.returncode == 0:
            return int(done.stdout.split()[-1]), ""
        content = Path(last_input.name).read_bytes()
    data = content[8 : 8 + int.from_bytes(content[:8], "little")]
    place = faults / name.replace(" ", "-") / f"{abs(hash_of(data)):016x}"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(data)
    died = f"died with signal {-done.returncode}\n" if done.returncode < 0 else ""
    return 0, f"{name}: {died}{done.stdout}{done.stderr[-2000:]}\nthe input is kept in {place}"


def hash_of(data: bytes) -> int:
    import zlib  # noqa: PLC0415 - only after a fault

    return zlib.crc32(data) << 32 | zlib.adler32(data)


def run_guided(name: str, seconds: int, faults: Path) -> str:
    """What atheris, in a child process, found wrong with a target."""
    place = faults / name.replace(" ", "-")
    place.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", "fuzz.run", "--guide", name, str(seconds), f"{place}{os.sep}"],
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([TESTS, os.environ.get("PYTHONPATH", "")]),
        },
    )
    print(f"{name}: {(done.stderr.strip().splitlines() or ['nothing'])[-1]}")
    return "" if done.returncode == 0 else f"{name}: {done.stdout}{done.stderr[-3000:]}"


def guide(name: str, seconds: str, place: str) -> NoReturn:
    """In a child process: let atheris look for inputs; it ends the process."""
    import atheris  # noqa: PLC0415 - optional

    with atheris.instrument_imports(include=["tsgkit"]):
        from fuzz.targets import target_of  # noqa: PLC0415 - instrumented
    folder = Path(tempfile.mkdtemp())
    target = target_of(name, folder)
    seeds, scratch = folder / "seeds", folder / "files"
    seeds.mkdir()
    scratch.mkdir()
    for number, seed in enumerate(target.seeds):
        (seeds / str(number)).write_bytes(seed)

    def test_one_input(data: bytes) -> None:
        problem = read_one(target, data, scratch)
        if problem:
            raise RuntimeError(problem)

    signal.signal(signal.SIGVTALRM, stop)
    options = [
        f"-max_total_time={seconds}",
        f"-artifact_prefix={place}",
        f"-max_len={LAST_INPUT}",
        "-rss_limit_mb=2048",
    ]
    atheris.Setup([sys.argv[0], *options, str(seeds)], test_one_input)
    atheris.Fuzz()
    raise SystemExit(0)


def main() -> int:
    if sys.argv[1:2] == ["--work"]:
        name, n_inputs, seconds, seed, last_input = sys.argv[2:]
        return work(name, int(n_inputs), float(seconds), int(seed), Path(last_input))
    if sys.argv[1:2] == ["--guide"]:
        guide(*sys.argv[2:])
    arguments = docopt(__doc__ or "")
    from fuzz.targets import TARGET_NAMES, target_of, weight_of  # noqa: PLC0415 - children do without it

    names = arguments["TARGET"] or TARGET_NAMES
    if arguments["--one"]:
        signal.signal(signal.SIGVTALRM, stop)
        with tempfile.TemporaryDirectory() as scratch:
            target = target_of(names[0], Path(scratch))
            problem = read_one(target, Path(arguments["--one"]).read_bytes(), Path(scratch))
        print(problem or "no fault")
        return bool(problem)
    seconds = float(arguments["--seconds"] or "inf")
    n_inputs = 10**12 if arguments["--seconds"] else int(arguments["--inputs"])
    total = sum(map(weight_of, names))
    n_faults = n_done = 0
    for name in names:
        started = time.perf_counter()
        share = n_inputs * weight_of(name) // total
        count, problem = run_target(name, share, seconds, int(arguments["--seed"]), Path(arguments["--faults"]))
        n_done += count
        n_faults += bool(problem)
        print(problem or f"{name:<22}{count:>9} inputs{time.perf_counter() - started:>8.1f} s", flush=True)
        if int(arguments["--guided"]) and importlib.util.find_spec("atheris"):
            problem = run_guided(name, int(arguments["--guided"]), Path(arguments["--faults"]))
            n_faults += bool(problem)
            print(problem, flush=True)
    print(f"{n_done} inputs, {n_faults} targets with faults")
    return int(n_faults > 0)


if __name__ == "__main__":
    sys.exit(main())
