"""Sources of trees: what share may be bad, what comes from NLTK, and files that are not as their preset says."""

import gzip
from types import SimpleNamespace

import nltk.corpus
import pytest
from nltk.corpus.reader.bracket_parse import AlpinoCorpusReader, BracketParseCorpusReader
from nltk.corpus.reader.dependency import DependencyCorpusReader
from nltk.tree import Tree

from tsgkit.errors import TreebankError
from tsgkit.treebank import read_trees, write_trees
from tsgkit.treebank._brackets import format_tree
from tsgkit.treebank._presets import load_preset
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


SPANISH = "(S (A b b))\n" * 3 + "(S (A \xe9 \xe9))\n" * 200


@pytest.mark.parametrize("encoding", ["iso-8859-1", "utf-8", "utf-8-sig"])
def test_the_encoding_of_a_preset_is_checked(tmp_path, encoding):
    path = tmp_path / "a.tbf"
    path.write_bytes(SPANISH.encode(encoding))
    assert [tree[0][0] for tree in read_trees(path, treebank="cess")] == ["b"] * 3 + ["\xe9"] * 200


def test_an_encoding_that_is_given_is_not_checked(tmp_path):
    (tmp_path / "a.tbf").write_bytes(SPANISH.encode())
    words = [tree[0][0] for tree in read_trees(tmp_path / "a.tbf", treebank="cess", encoding="iso-8859-1")]
    assert words == ["b"] * 3 + ["\xc3\xa9"] * 200


def test_a_file_in_two_encodings(tmp_path):
    path = tmp_path / "a.tbf"
    path.write_bytes(SPANISH.encode() + SPANISH.encode("iso-8859-1"))
    with pytest.raises(
        TreebankError, match=r"a\.tbf:207:7: not valid utf-8: byte 0xe9; .* iso-8859-1, the encoding of the"
    ):
        list(read_trees(path, treebank="cess"))
    # One line of which the bytes could be UTF-8 decides nothing.
    path.write_bytes("(S (A \xc3\xa9 b))\n(S (A \xe9 \xe9))\n".encode("iso-8859-1"))
    assert [tree[0][0] for tree in read_trees(path, treebank="cess")] == ["\xc3\xa9", "\xe9"]


def test_lines_before_a_damage_are_read(tmp_path):
    """The lines that decide on the encoding are read before they are given on."""
    packed = gzip.compress(SPANISH.encode("iso-8859-1"), mtime=0)
    path = tmp_path / "a.tbf"
    path.write_bytes(packed[:-8] + bytes(8))
    trees = read_trees(path, treebank="cess")
    assert [next(trees)[0][0] for _ in range(150)][-1] == "\xe9"
    with pytest.raises(TreebankError, match="damaged or cut short"):
        list(trees)


@pytest.mark.parametrize("preset", ["alpino", "ancora", "genia", "ftb", "negra", "sinica", "tiger"])
def test_prepared_files_are_read_with_the_preset(tmp_path, preset):
    """Brackets are read as such where a preset expects something else, but not where the user does."""
    path = tmp_path / "prepared.mrg"
    path.write_text("(TOP (S (NP (N Ã¤pfel)) (V essen)))\n", encoding="utf-8")
    (tree,) = read_trees(path, treebank=preset)
    assert format_tree(tree) == "(TOP (S (NP (N Ã¤pfel)) (V essen)))"
    name = load_preset(preset).format
    if name != "auto":
        with pytest.raises(TreebankError):
            list(read_trees(path, treebank=preset, format=name))


def test_another_format_than_that_of_the_preset(tmp_path):
    trees = [Tree.fromstring("(S (NP (N a)) (VP (V b)))")]
    for writer in ("export", "tigerxml"):
        for preset in ("cess", "alpino", "negra"):
            write_trees(trees, tmp_path / "a", writer)
            if (writer, preset) != (
                "tigerxml",
                "alpino",
            ):  # XML of both kinds: its elements must be those of the preset
                assert list(read_trees(tmp_path / "a", treebank=preset)) == trees
    with pytest.raises(TreebankError, match="there is no element <alpino_ds>"):
        list(read_trees(tmp_path / "a", treebank="alpino"))
    # The label rules of a preset are not for other treebanks.
    (tmp_path / "a").write_text("#1:1.[7] S(agent:NP(Head:Nhaa:he)|Head:VA4:ran)#.(PERIODCATEGORY)\n")
    for preset in ("cess", "negra", "alpino"):
        with pytest.raises(TreebankError):
            list(read_trees(tmp_path / "a", treebank=preset, skipped=[]))
