"""An unknown-word model of another package: one file, used in preparing, training and parsing."""

import doctest

from extending.plugins import install_example, load_example

from tsgkit.treebank import FlatCorpus
from tsgkit.treebank._prepare import preparation_of

example = load_example("unknown_words")


def test_examples_in_docstrings():
    assert doctest.testmod(example).attempted == 2
    assert doctest.testmod(example).failed == 0


def test_preparing_training_and_parsing(tsgkit, tsgkit_process, tmp_path, monkeypatch):
    install_example(tmp_path, monkeypatch, "unknown_words", "tsgkit.unknown_words", "suffixes=MODEL")
    assert "none, unicode, signature, three, one or suffixes" in tsgkit_process("prepare", "--help").stdout
    text = "(S (N walking) (V tells))\n(S (N talking) (V sees))\n(S (N going) (V sees))\n"
    prepared = tsgkit("prepare", "--unknown=suffixes", "--threshold=1", "-", text=text).stdout
    assert prepared.splitlines()[0] == "(TOP (S (N UNK) (V UNK)))"  # too few rare words for finer classes
    parses = {}
    for name in ("suffixes", "one"):
        tsgkit("train", "--quiet", "--model=cfg", f"--unknown={name}", "village:train", "-o", f"{name}.model")
        parses[name] = tsgkit("parse", "--quiet", f"{name}.model", text="she was blorking .").stdout
    # Rare words in -ng are mostly participles.
    assert parses["suffixes"] == "(TOP (S (NP (PRP she)) (VP (VBD was) (VP (VBG blorking))) (. .)))\n"
    assert parses["one"] == "(TOP (S (NP (PRP she)) (VP (VBD was) (ADJP (JJ blorking))) (. .)))\n"
    # Without the package, its model is named.
    monkeypatch.delenv("PYTHONPATH")
    stderr = tsgkit_process("parse", "--quiet", "suffixes.model", text="the man", code=2).stderr
    assert "unknown-word model 'suffixes': must be one of unicode, signature, three, one" in stderr


def test_the_classes_of_a_treebank(tsgkit, tmp_path, monkeypatch):
    install_example(tmp_path, monkeypatch, "unknown_words", "tsgkit.unknown_words", "suffixes=MODEL")
    tsgkit("prepare", "--unknown=suffixes", "--binarize=right", "village:train", "-o", "c.npz")
    corpus = FlatCorpus.load(tmp_path / "c.npz")
    lexicon = preparation_of(corpus).lexicon
    assert lexicon.classes["UNK-ng"] >= lexicon.settings.min_types
    assert lexicon.lookup("blorking", 3) == "UNK-ng"
    assert lexicon.classify("sing", 3) == "UNK-ng"
