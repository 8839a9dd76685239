"""What the tests share: where treebanks of others are, and running a command as a user does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tsgkit.errors import TreebankError
from tsgkit.treebank import read_trees

# Benchmarks and experiments are not installed: they are found in the checkout, after everything that is installed.
sys.path.append(str(Path(__file__).parent.parent))

# How long something takes depends on what else the machine does; no test may fail for that.
# Examples are drawn anew every time, but for CI.
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


@pytest.fixture
def tsgkit(tmp_path):
    """Run ``tsgkit ARGUMENTS`` in an empty folder; returns the finished process."""

    def run(*arguments: str, text: str | bytes = "", code: int | None = 0) -> subprocess.CompletedProcess[str]:
        data = text.encode() if isinstance(text, str) else text
        done = subprocess.run(
            [sys.executable, "-m", "tsgkit", *map(str, arguments)],
            input=data,
            capture_output=True,
            cwd=tmp_path,
            check=False,
        )
        result = subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8")
        )
        assert "Traceback" not in result.stderr, result.stderr
        if code is not None:
            assert result.returncode == code, result.stderr
        return result

    return run
