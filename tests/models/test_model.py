"""The model file: whole, the same bytes every time, and refused when it is anything else."""

import copy
import json
import os
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nltk.tree import Tree

from tsgkit._archive import read_archive, write_archive
from tsgkit.errors import ArchiveError, TsgkitError
from tsgkit.grammar._weighted import RULE_KINDS
from tsgkit.models._cfg import cfg_model
from tsgkit.models._model import KIND, VERSION, Model
from tsgkit.parsing import Parser
from tsgkit.treebank import Binarization, UnknownWords, prepare

TREES = [
    Tree.fromstring("(S (NP (DT the) (JJ old) (NN dog)) (VP (VBD ran)) (. .))"),
    Tree.fromstring("(S (NP (DT the) (NN dog)) (VP (VBD saw) (NP (DT the) (NN cat))) (. .))"),
]


@pytest.fixture(scope="module")
def model():
    corpus = prepare(TREES, binarization=Binarization("centre-head", 1, 2), unknown=UnknownWords("three"))
    made = cfg_model(corpus)
    made.info = {"trees": 2}
    made.state = {"counts": np.arange(3, dtype=np.int64)}
    return made


@pytest.fixture
def path(model, tmp_path):
    model.save(tmp_path / "model")
    return tmp_path / "model"


def assert_works(model):
    """Whatever was read parses."""
    words = ["the", "small", "dog", "ran", "."]
    assert Parser(model).parse_one(words).leaves() == words


def test_there_and_back(model, path):
    back = Model.load(path)
    assert (back.kind, back.preparation) == ("cfg", model.preparation)
    assert back.info["trees"] == 2
    assert back.state["counts"].tolist() == [0, 1, 2]
    assert len(back.stages) == 2
    for ours, theirs in zip(back.stages, model.stages, strict=True):
        assert (ours.label_map is None) == (theirs.label_map is None)
        for name in RULE_KINDS:
            assert np.array_equal(getattr(ours.grammar, name), getattr(theirs.grammar, name))
            weights = f"{name}_weight"
            assert np.array_equal(getattr(ours.grammar, weights), getattr(theirs.grammar, weights))
    assert back.stages[1].label_map.tolist() == model.stages[1].label_map.tolist()
    assert_works(back)


def test_symbol_maps_are_kept(model, tmp_path):
    other = copy.copy(model)
    other.stages = [model.stages[0], copy.copy(model.stages[1])]
    other.stages[1].symbol_map = model.stages[1].label_map  # of a PCFG, labels are symbols
    other.save(tmp_path / "model")
    back = Model.load(tmp_path / "model")
    assert back.stages[1].symbol_map.tolist() == model.stages[1].label_map.tolist()
    assert_works(back)


def test_same_model_same_bytes(model, path, tmp_path):
    model.save(tmp_path / "other")
    Model.load(path).save(tmp_path / "third")
    assert path.read_bytes() == (tmp_path / "other").read_bytes()
    assert [file.name for file in sorted(tmp_path.iterdir())] == ["model", "other", "third"]


def test_no_pickle(path):
    with zipfile.ZipFile(path) as members:
        for name in members.namelist():
            assert b"'descr': '|O'" not in members.read(name)[:200]
    np.load(path, allow_pickle=False).close()


def test_a_failed_save_leaves_the_old_file(model, path, monkeypatch):
    before = path.read_bytes()
    broken = copy.copy(model)
    broken.info = {"not JSON": object()}
    with pytest.raises(TypeError):
        broken.save(path)

    def full(*args, **rest):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full)
    with pytest.raises(OSError, match="No space"):
        model.save(path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["model"]


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"(TOP (NN dog))\n"])
def test_other_files(tmp_path, content):
    (tmp_path / "model").write_bytes(content)
    with pytest.raises(ArchiveError, match=r"not a (whole )?tsgkit file"):
        Model.load(tmp_path / "model")


def test_other_kinds_and_versions(model, path, tmp_path):
    model.grammar.save(tmp_path / "grammar.npz")
    with pytest.raises(ArchiveError, match="a model is needed here, this file holds: grammar"):
        Model.load(tmp_path / "grammar.npz")
    header, arrays = read_archive(path, KIND, VERSION)
    del header["version"], header["kind"]
    write_archive(path, KIND, VERSION + 1, header, arrays)
    with pytest.raises(ArchiveError, match=f"version {VERSION + 1} of the model format; this tsgkit reads"):
        Model.load(path)


def test_cut_short_or_with_a_wrong_byte(path):
    whole = path.read_bytes()
    for length in range(0, len(whole), len(whole) // 50):
        path.write_bytes(whole[:length])
        with pytest.raises(ArchiveError):
            Model.load(path)
    for place in range(0, len(whole), len(whole) // 200):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:
            read = Model.load(path)
        except TsgkitError:
            continue
        assert_works(read)  # a byte that means nothing, such as a date


def rewritten(path, change):
    """The file with a header and arrays that `change` altered in place."""
    header, arrays = read_archive(path, KIND, VERSION)
    del header["version"], header["kind"]
    change(header, arrays)
    write_archive(path, KIND, VERSION, header, arrays)


def put(name, place, value):
    def change(header, arrays):
        arrays[name] = arrays[name].copy()
        arrays[name][place] = value

    return change


def intermediate_tag(header, arrays):
    tag = arrays["level1.lexical"][0, 0]
    header["levels"][1]["labels"][arrays["level1.label"][tag]] = "@DT"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (put("level1.label_map", 0, 10_000), "a label map points outside"),
        (put("level1.label_map", 0, -1), "a label map points outside"),
        (put("level0.binary", (0, 0), -1), "names a symbol or word that is out of range"),
        (put("level1.lexical", (0, 1), 10_000), "names a symbol or word that is out of range"),
        (put("level1.binary_weight", 0, np.nan), "not a positive number"),
        (put("level1.label", 0, 10_000), "projection points outside"),
        (lambda header, arrays: arrays.pop("level1.label_map"), "label_map is missing"),
        (lambda header, arrays: arrays.pop("level0.unary"), "unary is missing"),
        (lambda header, arrays: header.pop("levels"), "the grammars are missing"),
        (lambda header, arrays: header.update(levels=[]), "the grammars are missing"),
        (lambda header, arrays: header.update(levels=[1]), "the grammars are missing"),
        (lambda header, arrays: header.update(model=1), "the kind of model is missing"),
        (lambda header, arrays: header.update(info=None), "the settings are missing"),
        (lambda header, arrays: header.pop("preparation"), "the preparation is not one"),
        (lambda header, arrays: header["preparation"].update(cleaning=None), "the preparation is not one"),
        (lambda header, arrays: header["preparation"]["lexicon"].update(known=[1]), "preparation is not one"),
        (
            lambda header, arrays: header["preparation"]["binarization"].update(method="up"),
            "the preparation is not one",
        ),
        (lambda header, arrays: header["levels"][0].update(root=10_000), "root 10000 is not one"),
        (lambda header, arrays: header["levels"][0].update(words="dog"), "words is not a list of names"),
        (intermediate_tag, "an intermediate symbol is the root or a tag"),
    ],
)
def test_damaged_content(path, change, problem):
    rewritten(path, change)
    with pytest.raises(TsgkitError, match=problem) as raised:
        Model.load(path)
    assert str(raised.value).startswith(str(path))


def test_a_model_opens_no_other_file(path, tmp_path):
    """Not even to look: a pipe would never end."""
    os.mkfifo(tmp_path / "heads")

    def change(header, arrays):
        header["preparation"]["binarization"].update(method="centre-head", heads=str(tmp_path / "heads"), rules=None)

    rewritten(path, change)
    with pytest.raises(TsgkitError, match="head rules without their text"):
        Model.load(path)


def test_a_grammar_without_words_is_refused(path):
    def change(header, arrays):
        for name in ("lexical", "lexical_weight"):
            arrays[f"level0.{name}"] = arrays[f"level0.{name}"][:0]

    rewritten(path, change)
    with pytest.raises(TsgkitError, match="has no words"):
        Parser(Model.load(path))


scalars = st.one_of(st.none(), st.booleans(), st.integers(-2, 9), st.floats(-1, 1), st.text(max_size=2))
values = st.one_of(scalars, st.lists(scalars, max_size=2), st.dictionaries(st.text(max_size=2), scalars))


def places(value, path=()):
    """Where a value can be replaced, as paths of keys."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in inner:
        yield (*path, key)
        yield from places(below, (*path, key))


@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_any_header_is_refused_or_works(model, tmp_path, data):
    path = tmp_path / "model"
    model.save(path)

    def change(header, arrays):
        *above, last = data.draw(st.sampled_from(list(places(header))))
        target = header
        for key in above:
            target = target[key]
        target[last] = data.draw(values)

    rewritten(path, change)
    try:
        read = Model.load(path)
    except TsgkitError:
        return
    json.dumps(read.info)
    assert_works(read)
