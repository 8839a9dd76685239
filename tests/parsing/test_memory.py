"""A failed allocation in the chart, or in what reads it, is a MemoryError, and leaves nothing behind."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
COMPILER = shutil.which(os.environ.get("CXX", "c++"))
OPERATIONS = ["fill", "viterbi", "outside", "mask", "forest", "k best", "samples", "score"]


@pytest.fixture(scope="module")
def failing_new(tmp_path_factory):
    if COMPILER is None or not sys.platform.startswith("linux"):
        pytest.skip("a library to preload cannot be made")
    if "libasan" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip("the sanitizer has allocations of its own")
    library = tmp_path_factory.mktemp("library") / "failing_new.so"
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", library, FOLDER.parent / "failing_new.cpp"], check=True)
    return library


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_allocation_may_fail(failing_new, operation):
    paths = os.pathsep.join([str(FOLDER.parent), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    environment = {**os.environ, "LD_PRELOAD": str(failing_new), "PYTHONPATH": paths}
    done = subprocess.run(
        [sys.executable, FOLDER / "out_of_memory.py", operation],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    name, _, n_failures = done.stdout.strip().rpartition(" ")
    assert name == operation
    assert int(n_failures) > 1
