"""XML treebanks: hostile files are refused, errors have their place, memory does not grow with the file."""

import io
import tracemalloc
from itertools import islice

import pytest
from nltk.tree import Tree

from tsgkit.errors import TreebankError, UsageError
from tsgkit.treebank import _xml, read_trees
from tsgkit.treebank._alpino import read_alpino
from tsgkit.treebank._ancora import read_ancora
from tsgkit.treebank._brackets import format_tree
from tsgkit.treebank._ftb import read_ftb
from tsgkit.treebank._genia import read_genia
from tsgkit.treebank._tigerxml import read_tigerxml
from tsgkit.treebank._xml import escape
from tsgkit.treebank.formats import ReadOptions

READERS = {
    "tigerxml": read_tigerxml,
    "alpino": read_alpino,
    "ancora": read_ancora,
    "genia": read_genia,
    "ftb": read_ftb,
}
GENIA = '<Annotation><sentence id="S1"><cons cat="NP"><tok cat="NN">{}</tok></cons></sentence></Annotation>'
LAUGHS = (
    '<!DOCTYPE a [<!ENTITY l "lol"><!ENTITY m "&l;&l;&l;&l;&l;&l;&l;&l;&l;&l;"><!ENTITY n "&m;&m;&m;&m;&m;&m;&m;&m;">]>'
)
HOSTILE = {
    "billion laughs": f'<?xml version="1.0"?>{LAUGHS}<a>&n;</a>',
    "external entity": '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/hostname">]><a>&x;</a>',
    "external parameter entity": '<!DOCTYPE a [<!ENTITY % x SYSTEM "http://localhost/x"> %x;]><a/>',
    "default attribute": '<!DOCTYPE a [<!ATTLIST tok cat CDATA "NN">]><a/>',
    "entity of an external document type": f'<!DOCTYPE a SYSTEM "http://localhost/x.dtd">{GENIA.format("&x;")}',
    "unknown entity": GENIA.format("&x;"),
}


def read(text, reader=read_genia, **options):
    data = text if isinstance(text, bytes) else text.encode()
    return list(reader(io.BytesIO(data), "t.xml", ReadOptions(**options)))


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_entities_and_document_types_are_refused(reader, text):
    for options in ({}, {"skipped": []}):
        with pytest.raises(
            TreebankError, match=r"^t\.xml:1:\d+: (document type refused|entity refused|not well-formed)"
        ):
            read(text, reader, **options)


def test_a_document_type_that_declares_nothing_is_passed_over():
    for doctype in ("<!DOCTYPE Annotation>", '<!DOCTYPE Annotation SYSTEM "http://localhost/none.dtd">'):
        (tree,) = read(doctype + GENIA.format("GR"))
        assert format_tree(tree) == "(NP (NN GR))"


def test_known_entities_are_read():
    (tree,) = read(GENIA.format("&lt;&amp;&#228;&#x4e2d;"))
    assert tree.leaves() == ["<&ä中"]


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_what_is_not_well_formed(reader):
    with pytest.raises(TreebankError, match=r"^t\.xml:2:5: not well-formed XML: mismatched tag"):
        read("<a>\n  </b>", reader)
    with pytest.raises(TreebankError, match="not well-formed XML: no element found"):
        read("", reader)
    with pytest.raises(TreebankError, match="no sentences: there is no element"):
        read("<other/>", reader)
    with pytest.raises(TreebankError, match="not well-formed"):
        read("<a>\n  </b>", reader, skipped=[])


def test_sizes_are_bounded(monkeypatch):
    deep = "<cons cat='X'>" * 2000
    with pytest.raises(TreebankError, match="too large: at most 1000 elements are nested"):
        read(f"<a><sentence>{deep}")
    monkeypatch.setattr(_xml, "MOST_ELEMENTS", 100)
    wide = "<tok cat='X'>x</tok>" * 200
    with pytest.raises(TreebankError, match="a sentence has at most 100 elements"):
        read(f"<a><sentence>{wide}</sentence></a>")
    skipped = []
    assert len(read(f"<a><sentence>{wide}</sentence>{GENIA[12:-13].format('GR')}</a>", skipped=skipped)) == 1
    assert [error.reason for error in skipped] == ["too large"]
    monkeypatch.setattr(_xml, "MOST_CHARACTERS", 1000)
    with pytest.raises(TreebankError, match="too large"):
        read(GENIA.format("x" * 2000))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "\n\n<?xml version='1.0'?><a/>",
            r"t\.xml:3:1: .*; <\?xml \.\.\.\?> must be the very first of a file: remove what",
        ),
        ("<a/>\n<a/>", r"t\.xml:2:1: .*junk after document element; a file with several documents must be split"),
    ],
)
def test_remedies(text, problem):
    with pytest.raises(TreebankError, match=problem):
        read(text)


@pytest.mark.parametrize("name", ["tigerxml", "alpino", "ancora", "genia", "ftb"])
def test_normalised(name):
    """Words, tags and labels; a word may contain a no-break space."""
    text = {
        "tigerxml": "<corpus><s><graph><terminals><t id='a' word='{0}' pos='{0}'/></terminals><nonterminals>"
        "<nt id='b' cat='{0}'><edge idref='a'/></nt></nonterminals></graph></s></corpus>",
        "alpino": "<alpino_ds><node cat='{0}'><node begin='0' end='1' word='{0}' pos='{0}'/></node></alpino_ds>",
        "ancora": "<article><sentence><n pos='{0}' wd='{0}'/></sentence></article>",
        "genia": "<a><sentence><cons cat='{0}'><tok cat='{0}'>{0}</tok></cons></sentence></a>",
        "ftb": "<text><SENT><w cat='{0}'>{0}</w></SENT></text>",
    }[name].format("e\u0301\xa0x")
    (tree,) = read(text, READERS[name])
    assert tree.leaves() == ["e\u0301\xa0x"]
    (tree,) = read(text, READERS[name], nfc=True)
    label = {"ftb": "SENT", "ancora": "sentence"}.get(name, "\xe9\xa0x")
    assert tree == Tree(label, [Tree("\xe9\xa0x", ["\xe9\xa0x"])])


def test_a_tag_without_end():
    with pytest.raises(TreebankError, match=r"tag too long|not well-formed"):
        read(b'<a x="' + b"y" * (3 << 20) + b'"/>')


class Endless(io.RawIOBase):
    """A file with `n` sentences, made while it is read."""

    def __init__(self, n):
        sentence = GENIA[12:-13].format("GR").encode() * 100
        self.pieces = iter([b"<Annotation>", *([sentence] * (n // 100)), b"</Annotation>"])

    def read(self, size=-1):
        return next(self.pieces, b"")


def test_memory_does_not_grow():
    def most_memory(n):
        tracemalloc.start()
        assert sum(1 for _ in read_genia(Endless(n), "t.xml")) == n
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    most_memory(100)
    assert most_memory(20_000) < 1.2 * most_memory(2_000) + 100_000


def test_trees_come_before_the_file_ends():
    assert len(list(islice(read_genia(Endless(10**9 // 10**4), "t.xml"), 5))) == 5


def test_encodings(tmp_path):
    text = '<?xml version="1.0" encoding="{}"?>' + GENIA.format("Käfer")
    for name in ("utf-8", "iso-8859-1", "windows-1252", "utf-16"):
        (tmp_path / "a.xml").write_bytes(text.format(name).encode(name))
        for format in ("genia", "auto"):
            (tree,) = read_trees(tmp_path / "a.xml", format=format)
            assert tree.leaves() == ["Käfer"]
    # Not one that Python has; not one that expat can take from it.
    for name in ("klingon", "gb18030"):
        (tmp_path / "a.xml").write_bytes(text.format(name).encode("gb18030"))
        with pytest.raises(TreebankError, match=r"a\.xml:1: the encoding that the file declares cannot be read"):
            list(read_trees(tmp_path / "a.xml"))
    (tree,) = read_trees(tmp_path / "a.xml", encoding="gb18030")
    assert tree.leaves() == ["Käfer"]
    # What the user says wins.
    (tmp_path / "a.xml").write_bytes(text.format("utf-8").encode("iso-8859-1"))
    (tree,) = read_trees(tmp_path / "a.xml", encoding="iso-8859-1")
    assert tree.leaves() == ["Käfer"]
    with pytest.raises(TreebankError, match="not well-formed XML"):
        list(read_trees(tmp_path / "a.xml"))
    with pytest.raises(TreebankError, match=r"a\.xml: not valid ascii"):
        list(read_trees(tmp_path / "a.xml", encoding="ascii"))
    with pytest.raises(UsageError, match="encoding 'nonsense': not known"):
        list(read_trees(tmp_path / "a.xml", encoding="nonsense"))


def test_characters_that_xml_cannot_have():
    assert escape('<"&>\t') == "&lt;&quot;&amp;&gt;&#9;"
    with pytest.raises(TreebankError, match="control character"):
        escape("\x07")
