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
    assert "text: text, not a treebank (text:1" in out
    assert "\n  lines           1\n" in out
    assert "empty: an empty file" in out
    assert "damaged: a damaged file of tsgkit" in out
    assert "village:test: a treebank\n" in out
    (files / "bytes").write_bytes(b"\xff\xfe\0")
    assert "bytes: not a treebank (bytes:1" in tsgkit("info", "bytes").stdout
    (files / "my.toml").write_text("title = 'mine'\n")
    out = tsgkit("info", "nothing", "my.toml", code=2).stdout
    assert out.startswith("nothing: there is no such file\nmy.toml: the preset of a treebank")


def test_outputs_of_all_commands(tsgkit, files):
    """Whatever the name of the file is."""
    (files / "tree.mrg").write_text("(S (NP (PRP I)) (VP (VBD ran)))\n")
    for suffix in ("svg", "html", "tex", "png", "pdf"):
        tsgkit("draw", "-o", f"tree.{suffix}", "tree.mrg")
    (files / "tree.png").rename(files / "picture")
    tsgkit("prepare", "-q", "--write=conllu", "village:dev", "-o", "dev.conllu")
    tsgkit("prepare", "-q", "--write=words", "village:dev", "-o", "words.txt")
    tsgkit("parse", "-q", "--scores", "m.model", "-o", "scores.tsv", text="The old man smiled .\n")
    names = ["tree.svg", "tree.html", "tree.tex", "picture", "tree.pdf", "dev.conllu", "words.txt", "scores.tsv"]
    found = {facts["file"]: facts for facts in map(json.loads, tsgkit("info", "--json", *names).stdout.splitlines())}
    assert [found[name]["is"] for name in names[:5]] == [
        "a picture",
        "a page",
        "a picture for LaTeX",
        "a picture (PNG)",
        "a picture or page (PDF)",
    ]
    dependencies, sentences, scores = (found[name] for name in names[5:])
    assert dependencies["is"] == "dependencies in CoNLL-U, without phrases"
    assert (dependencies["sentences"], dependencies["words"]) == (65, 809)
    assert sentences["is"].startswith("text, not a treebank (words.txt:1:1: ")
    assert sentences["lines"] == 65
    assert scores["is"] == "parses with their scores, from `tsgkit parse --scores`"


def test_models_beside_the_grammar_are_named(tsgkit, files):
    options = ["--splits=1", "--split-iterations=3", "--joint-iterations=0", "--average=1", "--quiet"]
    tsgkit("train", *options, "-o", "sr.model", "village:dev")
    tsgkit("train", "--model=cfg", "-o", "c.model", "village:dev")
    refined, counted = map(json.loads, tsgkit("info", "--json", "sr.model", "c.model").stdout.splitlines())
    assert refined["parses with"] == "a model of the labels of spans"
    assert "parses with" not in counted
