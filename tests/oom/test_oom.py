"""A failed allocation ends in a clean error and leaves nothing behind: some of them here, all by ``make oom``."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from oom.run import chosen_of, library_of
from oom.targets import TARGETS

TESTS = Path(__file__).parents[1]
KERNELS = ["fill", "viterbi", "outside", "mask", "forest", "ranked chart", "ranked forest", "samples", "tree score"]
QUICK = ["parse max-rule", "score trees", "eval", "prepare", "draw"]
SLOW = sorted(set(TARGETS) - set(KERNELS) - set(QUICK))

needs_library = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the allocator is exchanged by LD_PRELOAD"),
    pytest.mark.skipif(not shutil.which(os.environ.get("CXX", "c++").split()[0]), reason="no C++ compiler here"),
    pytest.mark.skipif("ASAN_OPTIONS" in os.environ, reason="the sanitizer has an allocator of its own"),
]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return library_of(tmp_path_factory.mktemp("library"))


def run(library, *arguments):
    paths = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    done = subprocess.run(
        [sys.executable, "-m", "oom.run", *arguments],
        env={**os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": paths},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout[-500:]}{done.stderr[-3000:]}"
    counts = [int(line.split(" failed cleanly")[0].split()[-1]) for line in done.stdout.splitlines()[:-1]]
    assert len(counts) == len([each for each in arguments if not each.startswith("--")])
    assert min(counts) > 1, done.stdout


pytestmark = needs_library


def test_kernels(library):
    run(library, *KERNELS)


def test_kernels_when_all_later_allocations_fail(library):
    run(library, "--stays", *KERNELS)


@pytest.mark.parametrize("target", QUICK)
def test_commands(library, target):
    run(library, "--most=40", target)


@pytest.mark.slow
@pytest.mark.parametrize("target", SLOW)
def test_more_commands(library, target):
    run(library, "--most=40", *["--stays"] * (SLOW.index(target) % 2), target)


def test_allocations_are_chosen_by_their_stacks():
    stacks = [7, 7, 7, 8, 7, 7, 9, 7]
    assert set(chosen_of(stacks)) >= {0, 3, 6, 7}
    assert chosen_of([]) == []
    assert len(chosen_of([1] * 1000)) < 20
