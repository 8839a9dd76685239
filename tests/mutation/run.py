"""Put deliberate faults into a copy of the sources, one at a time, and see whether the quick tests notice.

Usage:
  run.py [options] [NAME...]

Without names, all faults of `faults.py`; with names, those that contain one of them.

Options:
  --keep        do not remove the copy of the tree
  -h, --help    this text
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from docopt import docopt
from mutation.fault import Fault
from mutation.faults import FAULTS
from processes import memory_limit

ROOT = Path(__file__).parents[2]
PARTS = ("setup.py", "pyproject.toml", "ext", "tsgkit", "tools", "tests", "README.md", "LICENSE")
LONGEST_TEST = 900.0
# A fault may let memory grow without end; of what the tests take, this is many times more.
MEMORY = 6 << 30


def copy_tree(target: Path) -> None:
    """What building and testing needs, with the modules as they are built now."""
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, target / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, target / part)
    # The package's own folder of tools is elsewhere in the source tree.
    (target / "tsgkit" / "_tools").symlink_to(target / "tools")


def run(command: list[str], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": f"{folder}:{folder / 'tests'}", **variables}
    return subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST_TEST,
        **memory_limit(MEMORY, environment),
    )


def modules_in(folder: Path, fault: Fault) -> list[Path]:
    return [path for name in fault.modules.split() for path in (folder / "tsgkit").glob(f"{name}.*.so")]


def build(fault: Fault, folder: Path) -> str:
    """Compile the modules of a fault, if there are any; what the compiler has to say against it."""
    if not fault.modules:
        return ""
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    built = run(command, folder, TSGKIT_QUICK="1", TSGKIT_MODULES=fault.modules)
    return built.stderr[-1000:] if built.returncode else ""


def try_fault(fault: Fault, folder: Path) -> str:
    """What the tests say to a fault: ``caught``, or what went otherwise."""
    path = folder / fault.path
    text = path.read_text()
    if text.count(fault.old) != 1:
        return f"stands {text.count(fault.old)} times in {fault.path}"
    whole = {module: module.read_bytes() for module in modules_in(folder, fault)}
    try:
        path.write_text(text.replace(fault.old, fault.new))
        problem = build(fault, folder)
        if problem:
            return f"does not compile\n{problem}"
        options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
        try:
            tested = run([sys.executable, "-m", "pytest", *options, *fault.tests.split()], folder)
        except subprocess.TimeoutExpired:
            return "caught (no end)"
        if tested.returncode == 0:
            return "NOT CAUGHT"
        failed = [line for line in tested.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
        if tested.returncode == 1 and failed:
            return f"caught by {failed[0].split('::')[-1].split(' - ')[0]}"
        return f"caught (pytest ended with {tested.returncode})" if tested.returncode < 0 else tested.stdout[-1000:]
    finally:
        path.write_text(text)
        for module, content in whole.items():
            module.write_bytes(content)


def main() -> int:
    arguments = docopt(__doc__ or "")
    wanted = arguments["NAME"]
    chosen = [fault for fault in FAULTS if not wanted or any(name in fault.name for name in wanted)]
    folder = Path(tempfile.mkdtemp(prefix="mutation-"))
    n_caught = 0
    try:
        copy_tree(folder)
        # The copy has other modes and times than the tree: what is built there is said to be in this mode.
        (folder / "build").mkdir()
        (folder / "build" / "mode").write_text("quick")
        for fault in chosen:
            started = time.perf_counter()
            answer = try_fault(fault, folder)
            n_caught += answer.startswith("caught")
            print(f"{fault.name:<60} {answer} ({time.perf_counter() - started:.0f} s)", flush=True)
    finally:
        if not arguments["--keep"]:
            shutil.rmtree(folder)
    print(f"{n_caught} of {len(chosen)} faults caught")
    return int(n_caught < len(chosen))


if __name__ == "__main__":
    sys.exit(main())
