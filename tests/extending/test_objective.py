"""The example of a parsing objective: the tree with the most expected brackets, by definition and as a command."""

import re
from collections import Counter

import numpy as np
import pytest
from extending.plugins import install_example, load_example
from parsing.conftest import ATTACHED, ATTACHMENT, NUMBERS, model_of, trees_by_enumeration

from tsgkit.models._cfg import cfg_model
from tsgkit.parsing import Parser, ParserSettings
from tsgkit.parsing.objectives import OBJECTIVES
from tsgkit.treebank import Binarization, Cleaning, UnknownWords, load, prepare
from tsgkit.treebank._trees import brackets_of

NAME = "labelled-recall"


@pytest.fixture
def registered(monkeypatch):
    """The objective in the table, for one test."""
    monkeypatch.setattr(OBJECTIVES, "_loaded", dict(OBJECTIVES._loaded))
    return OBJECTIVES.register(NAME, load_example("objective").OBJECTIVE)


def test_the_tree_has_the_most_expected_brackets_of_all(registered):
    weights = trees_by_enumeration(ATTACHMENT, NUMBERS)
    expected = Counter()
    for tree, weight in weights.items():
        for label, start, end, _ in tree:
            expected[label, start, end] += weight / sum(weights.values())
    sums = {tree: sum(expected[label, start, end] for label, start, end, _ in tree) for tree in weights}
    parse = Parser(model_of(ATTACHMENT), objective=NAME).analyse(ATTACHED, k=5)
    best = max(sums, key=sums.get)
    names = [(ATTACHMENT.labels[label], start, end) for label, start, end, _ in best]
    assert brackets_of(parse.tree) == names
    assert parse.scores == pytest.approx(sorted(sums.values(), reverse=True), abs=1e-9)


def test_it_expects_more_brackets_than_others(registered):
    """In sentences of the village treebank, with labels that remember their parents and with intermediate symbols."""
    corpus = prepare(load("village", "train"), binarization=Binarization("right", 1, 2), unknown=UnknownWords())
    own = Parser(cfg_model(corpus), ParserSettings(objective=NAME, threshold=0.0))
    others = [own.with_settings(objective=name) for name in ("mer", "max-rule", "mpd")]
    gains = []
    for words in (Cleaning().apply(tree).leaves() for tree in load("village", "dev")[:30]):
        parse = own.analyse(words, confidence=True)
        if parse.fallback:
            continue
        # Alternatives have at least one percent; what is missing counts as less.
        expected = parse.alternatives | parse.confidence
        found = sum(expected[bracket] for bracket in brackets_of(parse.tree))
        assert parse.scores[0] == pytest.approx(found, abs=0.02)
        for other in others:
            tree = other.analyse(words).tree
            gains.append(found - sum(expected.get(bracket, 0.0) for bracket in brackets_of(tree)))
    assert np.mean(gains) > 0.01


def test_an_installed_objective_is_an_option(tsgkit, tsgkit_process, tmp_path, monkeypatch):
    install_example(tmp_path, monkeypatch, "objective", "tsgkit.objectives", f"{NAME}=OBJECTIVE")
    tsgkit("train", "-q", "--model=cfg", "village:train", "-o", "m")
    (line,) = tsgkit(
        "parse", "-q", f"--objective={NAME}", "--scores", "m", text="the old man smiled .\n"
    ).stdout.splitlines()
    *_, score, _share, kind, tree = line.split("\t")
    n_brackets = len(re.findall(r"\(", tree))
    assert kind == "ok"
    assert n_brackets - 3 < float(score) < n_brackets  # it expects most of its brackets, and cannot expect more
    assert NAME in tsgkit_process("parse", "--help").stdout
    assert "must be one of mpd, mpp" in tsgkit("parse", "--objective=recall", "m", code=2).stderr
