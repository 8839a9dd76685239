"""`tsgkit.evaluation._evalb`: what a program calls; and the examples in the docstrings of the package."""

import doctest
import gzip
import importlib
import lzma
import pickle
import pkgutil

import pytest
from nltk.tree import Tree

from tsgkit import evaluation
from tsgkit.errors import TreebankError
from tsgkit.evaluation import evaluate

GOLD = "(TOP (S (NP (DT the) (NN dog)) (VP (VBD ran) (ADVP (RB away)))))"
TEST = "(TOP (S (NP (DT the) (NN dog)) (VP (VBD ran) (NP (RB away)))))"
MODULES = [module.name for module in pkgutil.iter_modules(evaluation.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_the_documentation(name):
    module = importlib.import_module(f"tsgkit.evaluation.{name}")
    assert doctest.testmod(module, optionflags=doctest.ELLIPSIS).failed == 0


def test_trees_strings_and_files_agree(tmp_path):
    (tmp_path / "gold").write_text(f"{GOLD}\n\n")
    (tmp_path / "test.gz").write_bytes(gzip.compress(f"{TEST}\n\n".encode()))
    (tmp_path / "test.xz").write_bytes(lzma.compress(f"{TEST}\n\n".encode()))
    expected = evaluate([GOLD, ""], [TEST, ""]).all
    assert (expected.f1, expected.sentences, expected.valid, expected.skips) == (75, 2, 1, 1)
    for test in (
        [Tree.fromstring(TEST), None],
        [TEST, None],
        iter([TEST, Tree("TOP", [])]),
        tmp_path / "test.gz",
    ):
        assert evaluate([Tree.fromstring(GOLD), ""], test).all == expected
    assert evaluate(tmp_path / "gold", str(tmp_path / "test.xz")).all == expected


def test_a_tree_on_several_lines():
    tree = Tree.fromstring(GOLD).pformat(margin=20)
    assert tree.count("\n") > 2
    result = evaluate([GOLD], [tree]).all
    assert (result.gold, result.test, result.matched, result.complete) == (4, 4, 4, 1)


def test_brackets_in_words_of_trees():
    tree = Tree("TOP", [Tree("NP", [Tree("-LRB-", ["("]), Tree("NN", ["dog"])])])
    result = evaluate([tree], ["(TOP (NP (-LRB- -LRB-) (NN dog)))"]).all
    assert (result.matched, result.words, result.tags) == (1, 2, 2)


def test_recall_precision_and_f1_are_those_of_all_sentences():
    long = "(S " + "(X a) " * 41 + ")"
    result = evaluate([GOLD, long], [TEST, long.replace("(S", "(S (S") + ")"])
    assert (result.recall, result.precision, result.f1) == pytest.approx((80, 400 / 6, 800 / 11))
    assert result.cutoff.f1 == 75


def test_an_evaluation_can_be_pickled():
    result = evaluate([GOLD], [TEST])
    assert pickle.loads(pickle.dumps(result)) == result


def test_damaged_archive(tmp_path):
    path = tmp_path / "test.gz"
    path.write_bytes(gzip.compress(GOLD.encode() * 100)[:40])
    with pytest.raises(TreebankError, match=r"test\.gz: the compressed file is damaged"):
        evaluate([GOLD], path)


def test_errors_have_a_location(tmp_path):
    path = tmp_path / "parsed"
    path.write_text("(S (é ü)) ö\n(S (X a)\n(S (X b)))\n(S (X a))\n", encoding="utf-8")
    result = evaluate(["(S (é ü))", "(S (X a))", "(S (X a))", "(S (X a) (X b))", "(S (X a))"], path)
    assert [str(problem).removeprefix(str(path)) for problem in result.problems] == [
        ":1:11: 'ö' is not inside a (TAG word) bracket",
        ":2:9: unclosed bracket; each tree must be on one line",
        ":3:10: extra closing bracket",
        ":3: word 'b' where the gold tree has 'a'",
        ":4: 1 words where the gold tree has 2",
        ":5: missing; the gold file has more lines",
    ]
    assert [problem.line for problem in result.problems] == [1, 2, 3, 3, 4, 5]


def test_errors_in_the_gold_file_and_extra_lines():
    result = evaluate(["(S (X a)"], ["(S (X a))", "(S (X a))", "(S (X a))"])
    assert [str(problem) for problem in result.problems] == [
        "gold:1:9: unclosed bracket; each tree must be on one line",
        "test:2: extra line; the gold file has fewer lines",
    ]


def test_text_that_is_not_utf8_stays_visible(tmp_path):
    (tmp_path / "gold").write_bytes(b"(A\xff (X a))\n(S (X \xe9))\n")
    (tmp_path / "test").write_bytes(b"(A\xfe (X a))\n(S (X b))\n")
    result = evaluate(tmp_path / "gold", tmp_path / "test")
    assert result.confusion_counts == {(r"A\xff", r"A\xfe"): 1}
    assert [problem.message for problem in result.problems] == [r"word 'b' where the gold tree has '\\xe9'"]


def test_progress_counts_the_bytes_of_both_files(monkeypatch):
    class Bar:
        n = 0

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def update(self, n_bytes):
            self.n += n_bytes

    def progress(_items, _name, _unit, total):
        bar.total = total
        return bar

    bar = Bar()
    monkeypatch.setattr("tsgkit._progress.progress", progress)
    monkeypatch.setattr("tsgkit.evaluation._evalb.BATCH_SIZE", 2)
    assert evaluate([GOLD] * 3, [TEST] * 4, quiet=False) == evaluate([GOLD] * 3, [TEST] * 4)
    assert bar.n == bar.total == 3 * (len(GOLD) + 1) + 4 * (len(TEST) + 1)
