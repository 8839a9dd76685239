"""The same seed gives the same model: whatever the hash seed, the number of threads, and the version of Python."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tsgkit.inference._insertion import InsertionSettings
from tsgkit.inference._srtsg import SrSettings
from tsgkit.inference._training import Training
from tsgkit.inference._tsg import TsgSettings
from tsgkit.models._cfg import cfg_model
from tsgkit.parsing import Parser
from tsgkit.treebank import Binarization, UnknownWords, load, prepare

# Digests of what training with seed 1 leaves, as every Python must reproduce it. The whole numbers alone: the last
# digits of the others are those of the C library's logarithms.
GOLDEN = {
    "cfg": "c507bf261394dce5",
    "tsg": "0a73c3d4ed38987b",
    "insertion": "4d3cac254d37ef69",
    "srtsg": "b2beeca1c31ff288",
    "sites": "edea215edf6622d8",
    "parses": "2ce80e28606c4005",
}


def corpus_of(kind, n_trees=25):
    trees = load("village", "dev")[:n_trees]
    method = "centre-head" if kind == "insertion" else "right"
    unknown = UnknownWords("unicode", threshold=0 if kind in ("srtsg", "sites") else 1)
    return prepare(trees, binarization=Binarization(method, 0), unknown=unknown)


def training_of(kind, threads=1):
    if kind in ("srtsg", "sites"):
        sites = 5 if kind == "sites" else 0
        settings = SrSettings(splits=2, split_iterations=10, average=3, site_iterations=sites, joint_iterations=sites)
    else:
        make = InsertionSettings if kind == "insertion" else TsgSettings
        settings = make(iterations=20, type_moves=20, average=3, average_every=2)
    return Training(corpus_of(kind), settings, seed=1, threads=threads)


def model_of(kind, threads=1):
    if kind == "cfg":
        return cfg_model(corpus_of("cfg"))
    training = training_of(kind, threads)
    training.start()
    for iteration in range(1, training.iterations + 1):
        training.iterate(iteration)
    return training.model()


def digest_of(model):
    """Of all whole numbers, names and words of a model."""
    digest = hashlib.sha256()
    for stage in model.stages:
        header, arrays = stage.grammar.to_parts()
        digest.update(json.dumps([header["labels"], header["words"], header["root"]]).encode())
        for name in sorted(arrays):
            if arrays[name].dtype.kind in "iu":
                digest.update(
                    f"{name} {arrays[name].shape}".encode() + np.ascontiguousarray(arrays[name], "<i8").tobytes()
                )
    for name in sorted(model.state):
        if model.state[name].dtype.kind in "iu":
            digest.update(name.encode() + np.ascontiguousarray(model.state[name], "<i8").tobytes())
    return digest.hexdigest()[:16]


def parses_digest():
    parser = Parser(model_of("cfg"), objective="mer-sampled", n_samples=50, seed=1)
    sentences = [(tree.leaves(), None) for tree in load("village", "test")[:8]]
    trees = [str(parse.tree) for parse in parser.parse_batch(sentences, threads=2)]
    return hashlib.sha256("\n".join(trees).encode()).hexdigest()[:16]


def all_digests():
    return {name: parses_digest() if name == "parses" else digest_of(model_of(name)) for name in GOLDEN}


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_digests(name):
    found = parses_digest() if name == "parses" else digest_of(model_of(name))
    assert found == GOLDEN[name]


@pytest.mark.parametrize("kind", ["tsg", "insertion", "srtsg"])
def test_threads_change_nothing(kind):
    one = model_of(kind)
    for threads in (2, 4):
        other = model_of(kind, threads)
        assert one.state.keys() == other.state.keys()
        for name, values in one.state.items():
            assert np.array_equal(values, other.state[name])
        assert np.array_equal(one.grammar.binary_weight, other.grammar.binary_weight)


@pytest.mark.parametrize("seed", ["1", "4321"])
def test_the_seed_of_hashes_changes_nothing(seed):
    """Sets of words and labels come in another order; nothing else may."""
    done = subprocess.run(
        [sys.executable, "-c", "import json, test_numbers; print(json.dumps(test_numbers.all_digests()))"],
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == GOLDEN
