"""A small model of every kind, trained once for all tests of pictures."""

import pytest

from tsgkit._tools import train as train_command
from tsgkit.models._model import Model

OPTIONS = {
    "cfg": [],
    "tsg": ["--iterations=20", "--average=2", "--average-every=5"],
    "insertion": ["--iterations=20", "--average=1"],
    "srtsg": ["--splits=2", "--split-iterations=4", "--joint-iterations=6", "--average=1"],
    "srtsg-rules": ["--splits=1", "--split-iterations=4", "--joint-iterations=0", "--average=1"],
    "srtsg-insertion": [
        *("--splits=1", "--split-iterations=4", "--joint-iterations=0", "--insertion-iterations=6", "--average=1"),
        "--binarize=centre-head",
    ],
}
KINDS = tuple(OPTIONS)


@pytest.fixture(scope="session")
def paths(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    found = {}
    for kind, options in OPTIONS.items():
        found[kind] = folder / f"{kind}.model"
        chosen = [f"--model={kind.partition('-')[0]}", "--quiet", *options]
        assert train_command.main([*chosen, f"--output={found[kind]}", "village:train"]) == 0
    return found


@pytest.fixture(scope="session")
def models(paths):
    return {kind: Model.load(path) for kind, path in paths.items()}
