"""Sources of trees: what share may be bad, and what comes from NLTK."""

from types import SimpleNamespace

import nltk.corpus
import pytest
from nltk.corpus.reader.bracket_parse import AlpinoCorpusReader, BracketParseCorpusReader
from nltk.corpus.reader.dependency import DependencyCorpusReader
from nltk.tree import Tree

from tsgkit.errors import TreebankError
from tsgkit.treebank import read_trees
from tsgkit.treebank._brackets import format_tree
from tsgkit.treebank._sources import lost_share, require_share

GOOD, BAD = "(S (A b))\n", "(S (A b) c)\n"


def test_the_share_of_bad_trees(tmp_path):
    (tmp_path / "a").write_text(GOOD * 19 + BAD)
    skipped = []
    assert len(list(read_trees(tmp_path / "a", skipped=skipped))) == 19
    (tmp_path / "b").write_text(BAD)
    # Of all sources together, and only of what was skipped now.
    with pytest.raises(TreebankError, match=r"too many bad trees: 2 of 21 .9.5%.: stray token 2; --max-bad=0.05"):
        list(read_trees([tmp_path / "a", tmp_path / "b"], skipped=skipped))
    with pytest.raises(TreebankError, match=r"too many bad trees: 1 of 1 .100.0%.: stray token 1; are --format and"):
        list(read_trees(tmp_path / "b", skipped=[], max_bad=1))
    assert len(list(read_trees([tmp_path / "a", tmp_path / "b"], skipped=[], max_bad=0.1))) == 19


def test_reasons_are_counted():
    errors = [TreebankError("empty node: x"), TreebankError("y", reason="no tree"), TreebankError("empty node: z")]
    assert lost_share(errors, 7) == "3 of 10 (30.0%): empty node 2, no tree 1"
    require_share([], 0, 0.0)


ALPINO = """<alpino_ds id="1"><node begin="0" cat="top" end="2" rel="top"><node begin="1" end="2" pos="verb" rel="hd"
 word="sleeps"/><node begin="0" end="1" pos="name" rel="su" word="Kim"/></node>
<sentence>Kim sleeps</sentence></alpino_ds>
"""


@pytest.fixture
def corpora(tmp_path, monkeypatch):
    """Corpora of NLTK in a folder of this test."""
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])

    def add(name, reader, text, **options):
        (tmp_path / name).write_text(text)
        monkeypatch.setattr(
            nltk.corpus, name, reader(str(tmp_path), options.pop("fileids", name), **options), raising=False
        )

    return add


def test_nltk_word_order(corpora, tmp_path):
    """NLTK follows the order of the elements, tsgkit the positions."""
    (tmp_path / "alpino.xml").write_text(f"<alpino>{ALPINO}</alpino>")
    corpora("alpino", lambda root, _: AlpinoCorpusReader(root, tagset="alpino"), "")
    (tree,) = read_trees("nltk:alpino")
    assert tree.leaves() == ["Kim", "sleeps"]


def test_nltk_discontinuous_trees(corpora, tmp_path):
    """As in files, they are made continuous only if that is asked for, by an option or by a preset."""
    gap = '<node cat="top" rel="top">{}<node cat="np" rel="su">{}{}</node></node>'.format(
        *(f'<node begin="{at}" end="{at + 1}" pos="x" word="{word}"/>' for at, word in ((1, "b"), (0, "a"), (2, "c")))
    )
    (tmp_path / "alpino.xml").write_text(f"<alpino><alpino_ds>{gap}</alpino_ds></alpino>")
    corpora("alpino", lambda root, _: AlpinoCorpusReader(root, tagset="alpino"), "")
    with pytest.raises(TreebankError, match=r"nltk:alpino/alpino\.xml:1:1: .*discontinuous tree"):
        list(read_trees("nltk:alpino"))
    for options in ({"reattached": []}, {"treebank": "alpino"}):
        (tree,) = read_trees("nltk:alpino", **options)
        assert tree.leaves() == ["a", "b", "c"]


def test_nltk_dependencies(corpora):
    corpora("mine", DependencyCorpusReader, "Kim\tNNP\t2\nsleeps\tVBZ\t0\n")
    with pytest.raises(TreebankError, match="nltk:mine: dependency treebank: it has no phrases"):
        list(read_trees("nltk:mine"))


def test_nltk_flat_trees(corpora, capsys):
    """What NLTK recovers from is an error for that tree, with its place in the file."""
    corpora("mine", BracketParseCorpusReader, GOOD + "( (S (A b))\n" + GOOD * 30)
    with pytest.raises(TreebankError, match=r"nltk:mine/mine:3:1: two roots: the outer bracket"):
        list(read_trees("nltk:mine"))
    skipped = []
    assert len(list(read_trees("nltk:mine", skipped=skipped))) == 31
    assert [error.line for error in skipped] == [2]
    assert "Recovered" not in capsys.readouterr().err


def test_other_readers_of_nltk(monkeypatch):
    def corpus(sentences):
        empty = SimpleNamespace(fileids=list, abspaths=lambda names: [], parsed_sents=lambda files: sentences())
        monkeypatch.setattr(nltk.corpus, "mine", empty, raising=False)

    corpus(lambda: [Tree("S", [("the", "DT"), ("dog", "NN")]), *([Tree("S", [Tree("A", ["b"])])] * 30)])
    with pytest.raises(TreebankError, match="nltk:mine:1: no tree: NLTK's reader made a flat one of a bad tree"):
        list(read_trees("nltk:mine"))
    skipped = []
    assert [format_tree(tree) for tree in read_trees("nltk:mine", skipped=skipped)] == ["(S (A b))"] * 30
    assert [error.reason for error in skipped] == ["no tree"]
    corpus(lambda: [Tree("S", [Tree("A", [("b",)])])])
    with pytest.raises(TreebankError, match="nltk:mine:1: no tree"):
        list(read_trees("nltk:mine"))

    def failing():
        yield Tree("S", [Tree("A", ["b"])])
        raise TypeError("expected a node value")

    corpus(failing)
    with pytest.raises(TreebankError, match="nltk:mine:2: NLTK's reader failed: TypeError: expected a node value"):
        list(read_trees("nltk:mine"))


def test_corpora_without_trees():
    for name in ("words", "stopwords"):
        with pytest.raises(TreebankError, match=f"nltk:{name}: "):
            list(read_trees(f"nltk:{name}"))
