"""The section of a report on raw text: what was read, and the words that the treebank does not have."""

import re

import pytest
from nltk.tree import Tree

from tsgkit.errors import TreebankError
from tsgkit.inference._training import Training
from tsgkit.inference._tsg import TsgSettings
from tsgkit.raw_text import student_corpus
from tsgkit.report._raw_text_panel import raw_text
from tsgkit.report.model_report import Report, ReportSettings
from tsgkit.treebank import Binarization, UnknownWords, load, prepare

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

RECORD = {"teachers": 2, "lines": 9, "empty": 1, "too_long": 2, "used": 6, "parsed": 4, "fallback": 2}
PARSED = [
    "(TOP (S (NP (DT the) (NN <b>zebra)) (VP (VBD slept)) (. .)))",
    "(TOP (S (NP (NNP <b>zebra)) (VP (VBD slept)) (. .)))",
    "(TOP (S (NP (DT the) (NN <b>zebra)) (VP (VBD smiled)) (. .)))",
    "(TOP (S (NP (DT the) (NN man)) (VP (VBD smiled)) (. .)))",
]


def report_on(record):
    trees = load("village", "dev")[:20]
    gold = prepare(trees, binarization=Binarization("right", 0), unknown=UnknownWords("unicode", 0))
    corpus = gold if record is None else student_corpus(gold, map(Tree.fromstring, PARSED), record)
    training = Training(corpus, TsgSettings(iterations=1, average=1), seed=1)
    training.start()
    training.iterate(1)
    return Report([training.model()], ["m"], ReportSettings(n_derivations=0, n_fragments=0)), gold


def test_what_was_read_and_words_of_the_raw_text_alone():
    report, gold = report_on({**RECORD, "sources": ["<i>text.txt"]})
    text = "".join(raw_text(report))
    assert "&lt;i&gt;text.txt" in text
    assert "<i>" not in text
    assert "<b>" not in text
    assert f"The first {gold.n_trees} training trees" in text
    cells = re.findall(r"<td[^>]*>(.*?)</td>", text)
    rows = dict(zip(cells[:12:2], cells[1:12:2], strict=True))
    assert rows["lines read"] == "9"
    assert rows["sentences learned from"] == "4"
    known = set(gold.forms)
    new = {word for line in PARSED for word in re.findall(r" ([^ ()]+)\)", line)} - known
    assert f"{len(known)} different words are in the treebank; {len(new)} more" in text
    assert cells[12:15] == ["&lt;b&gt;zebra", "NN 2, NNP 1", "3"]


def test_section_is_there_for_students_alone():
    student, _ = report_on(RECORD)
    assert '<section id="raw-text">' in student.page()
    assert "sentences in memory" in student.page()
    alone, _ = report_on(None)
    assert 'id="raw-text"' not in alone.page()


def test_damaged_record_is_an_error():
    report, _ = report_on(RECORD)
    report.model.corpus.settings["raw_text"]["parsed"] = "many"
    with pytest.raises(TreebankError, match="does not say which raw text"):
        report.page()
