"""What the tests share: where treebanks of others are, and running a command as a user does."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import Finished, run_here, run_process
from hypothesis import HealthCheck, settings

from tsgkit.errors import TreebankError
from tsgkit.treebank import read_trees

# Benchmarks and experiments are not installed: they are found in the checkout, after everything that is installed.
sys.path.append(str(Path(__file__).parent.parent))

# How long something takes depends on what else the machine does; no test may fail for that.
# Examples are drawn again every time, but for CI.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize="CI" in os.environ
)
settings.load_profile("any machine")


@pytest.fixture(scope="session")
def treebanks() -> Path:
    """The folder of treebanks that are not part of the project."""
    folder = os.environ.get("TSGKIT_TREEBANKS")
    if not folder:
        pytest.skip("TSGKIT_TREEBANKS does not name a folder of treebanks")
    return Path(folder)


@pytest.fixture(scope="session")
def formats() -> Path:
    """The folder of excerpts of treebanks in their own formats, which are not part of the project."""
    named, treebanks = os.environ.get("TSGKIT_FORMATS"), os.environ.get("TSGKIT_TREEBANKS")
    folder = Path(named) if named else Path(treebanks or "").parent / "formats"
    if not (named or treebanks) or not folder.is_dir():
        pytest.skip("neither TSGKIT_FORMATS nor the folder beside TSGKIT_TREEBANKS has excerpts of treebanks")
    return folder


@pytest.fixture(scope="session")
def penn_sample() -> list:
    """NLTK's sample of the Penn Treebank, as annotated."""
    try:
        return list(read_trees("nltk:treebank"))
    except TreebankError:
        pytest.skip("NLTK_DATA does not hold NLTK's treebank sample")


def runner(run: Callable[..., Finished], folder: Path) -> Callable[..., Finished]:
    def tsgkit(*arguments: object, text: str | bytes = "", code: int | None = 0) -> Finished:
        done = run([str(each) for each in arguments], folder, text.encode() if isinstance(text, str) else text)
        assert "Traceback" not in done.stderr, done.stderr
        if code is not None:
            assert done.returncode == code, done.stderr
        return done

    return tsgkit


@pytest.fixture
def tsgkit(tmp_path):
    """Run ``tsgkit ARGUMENTS`` in an empty folder; returns its exit code and what it printed."""
    return runner(run_here, tmp_path)


@pytest.fixture
def tsgkit_process(tmp_path):
    """The same in a new process, for what depends on that: environment variables that are read once, entry points."""
    return runner(run_process, tmp_path)
