"""``tsgkit info``: what a file is."""

import json

import pytest


@pytest.fixture
def files(tsgkit, tmp_path):
    tsgkit(
        "train", "--quiet", "--model=tsg", "--iterations=3", "--average=1", "--seed=4", "village:dev", "-o", "m.model"
    )
    tsgkit("prepare", "--quiet", "--binarize=right", "--unknown=one", "village:dev", "-o", "c.npz")
    tsgkit("prepare", "--quiet", "village:dev", "-o", "dev.mrg")
    return tmp_path


def test_every_file_is_recognised(tsgkit, files):
    names = ["m.model", "m.model.checkpoint", "m.model.tsv", "c.npz", "dev.mrg"]
    lines = tsgkit("info", "--json", *names).stdout.splitlines()
    model, checkpoint, table, corpus, trees = map(json.loads, lines)
    assert (model["kind"], model["model"], model["trees"], model["seed"]) == ("model", "tsg", 65, 4)
    assert model["settings"]["iterations"] == 3
    assert model["rules"] > 100
    assert (checkpoint["kind"], checkpoint["iteration"], checkpoint["model"]) == ("checkpoint", 3, "tsg")
    assert table["is"] == "a table of all iterations of a training"
    assert corpus["kind"] == "corpus"
    assert corpus["preparation"]["binarization"]["method"] == "right"
    assert (trees["is"], trees["trees"], trees["words"]) == ("a treebank in the format brackets", 65, 809)
    text = tsgkit("info", *names).stdout
    assert text.startswith("m.model: a trained model\n  format version  ")
    assert "settings        " in text
    assert "\n  binarization    method=right, horizontal=0, vertical=1, heads=penn\n" in text
    assert "{" not in text


def test_other_files(tsgkit, files):
    (files / "text").write_text("no trees at all\n")
    (files / "empty").write_text("")
    damaged = bytearray((files / "m.model").read_bytes())
    damaged[200] ^= 1
    (files / "damaged").write_bytes(damaged)
    out = tsgkit("info", "text", "empty", "damaged", "village:test").stdout
    assert "text: not a treebank (text:1" in out
    assert "empty: an empty file" in out
    assert "damaged: a damaged file of tsgkit" in out
    assert "village:test: a treebank\n" in out
    (files / "my.toml").write_text("title = 'mine'\n")
    out = tsgkit("info", "nothing", "my.toml", code=2).stdout
    assert out.startswith("nothing: there is no such file\nmy.toml: the preset of a treebank")
