"""Formats plug in: readers of text and of bytes, recognised or named, with options, and writers."""

import bz2
import gzip
import json
import tarfile
import zipfile
from importlib.metadata import EntryPoint

import pytest
from nltk.tree import Tree

from tsgkit import _registry as registry
from tsgkit.errors import TreebankError, UsageError
from tsgkit.registry import Registry
from tsgkit.treebank import _formats, _sources, read_trees, write_trees
from tsgkit.treebank._brackets import format_tree
from tsgkit.treebank._formats import recognised, split_format
from tsgkit.treebank.formats import READERS, WRITERS, Reader, ReadOptions

LINE = "(S (NP (N cafe\u0301)) (VP (V ran)))\n"


def read_tagged(lines, path, options):
    """Words with tags behind a separator, one sentence per line."""
    for number, line in enumerate(lines, start=1):
        pairs = [token.rpartition(options.named["separator"]) for token in line.split()]
        try:
            if not all(word for word, _, _ in pairs):
                raise TreebankError("a word has no tag", path, number, 1)
        except TreebankError as error:
            options.skip(error)
            continue
        yield Tree("S", [Tree(tag, [word]) for word, _, tag in pairs])


def read_json(file, path, options):
    """A JSON list of lists ``[tag, word]``, in the encoding that JSON has."""
    for sentence in json.load(file):
        yield Tree("S", [Tree(options.normalised(tag), [options.normalised(word)]) for tag, word in sentence])


TAGGED = Reader(read_tagged, lambda first_lines: "/" in next(iter(first_lines), ""), named_options={"separator": "/"})
JSON = Reader(read_json, lambda first_lines: any(line.startswith("[[") for line in first_lines), is_binary=True)


@pytest.fixture
def readers(monkeypatch):
    """A registry with two more readers; that of the package stays as it is."""
    table = Registry("reader", "tsgkit.readers", READERS._built_in)
    table.register("tagged", TAGGED)
    table.register("json", JSON)
    for module in (_formats, _sources):
        monkeypatch.setattr(module, "READERS", table)
    return table


def texts(*arguments, **options):
    return [format_tree(tree) for tree in read_trees(*arguments, **options)]


def test_what_comes_with_the_package():
    assert READERS.names == (
        *("brackets", "export", "tigerxml", "alpino", "ancora", "genia", "ftb", "sinica", "discbracket", "conllu"),
    )
    assert {"line", "pretty", "export", "tigerxml", "discbracket"} <= set(WRITERS.names)
    for name in READERS.names:
        assert isinstance(READERS[name], Reader)


@pytest.mark.parametrize(
    ("first", "name"),
    [
        ("#FORMAT 4\n", "export"),
        ("#BOS 1\n", "export"),
        ("#BOT ORIGIN\n", "export"),
        ("%% a comment\n", "export"),
        ("(S (NP I) (VP ran))\n", "brackets"),
        ("*x*x*x*\n", "brackets"),
        ("anything", "brackets"),
        ("", "brackets"),
    ],
)
def test_formats_are_recognised_by_their_first_lines(first, name):
    assert recognised([first] if first else []) == name


def test_every_file_has_its_own_format(tmp_path, readers):
    (tmp_path / "a").write_text("the/D cat/N\n")
    (tmp_path / "b").write_text("\ufeff#BOS 1\na\tN\t--\t--\t0\n#EOS 1\n")
    (tmp_path / "c").write_text("\n\n(S (N x))\n")
    (tmp_path / "d").write_text('\n[[["N", "y"]]]')
    assert texts(tmp_path) == ["(S (D the) (N cat))", "(VROOT (N a))", "(S (N x))", "(S (N y))"]
    assert texts(tmp_path / "d", format="json") == ["(S (N y))"]


def test_a_wrong_format_is_named(tmp_path, readers):
    with pytest.raises(
        UsageError, match=r"format 'tiger': must be one of auto, brackets, export, .*, conllu, tagged, json"
    ):
        next(read_trees("village", format="tiger"))
    with pytest.raises(UsageError, match=r"writer 'tiger': must be one of line, pretty, .*export"):
        write_trees([], tmp_path / "x", "tiger")
    assert not (tmp_path / "x").exists()


def test_options_of_one_reader(tmp_path, readers):
    path = tmp_path / "a"
    path.write_text("the_D cat_N\n")
    assert texts(path, format="tagged:separator=_") == ["(S (D the) (N cat))"]
    assert split_format("x:a=1,b==") == ("x", {"a": "1", "b": "="})
    with pytest.raises(UsageError, match="format 'tagged': no option 'column'; it has separator"):
        texts(path, format="tagged:column=2")
    with pytest.raises(UsageError, match="format 'export': no option 'column'; it has none"):
        texts(path, format="export:column=2")
    with pytest.raises(UsageError, match="'separator' has no value; write tagged:separator=VALUE"):
        texts(path, format="tagged:separator")


def test_errors_are_raised_or_recorded(tmp_path, readers):
    (tmp_path / "a").write_text("the/D cat/N\nno tags\nI/P\n")
    with pytest.raises(TreebankError, match=r"a:2:1: a word has no tag"):
        texts(tmp_path / "a")
    skipped = []
    assert texts(tmp_path / "a", skipped=skipped, max_bad=0.5) == ["(S (D the) (N cat))", "(S (P I))"]
    assert [(error.path, error.line) for error in skipped] == [(str(tmp_path / "a"), 2)]


def test_lines_come_normalised_and_binary_readers_normalise(tmp_path, readers):
    (tmp_path / "a").write_text(LINE, encoding="utf-8")
    assert texts(tmp_path / "a") == [LINE.strip()]
    assert texts(tmp_path / "a", nfc=True) == ["(S (NP (N caf\u00e9)) (VP (V ran)))"]
    (tmp_path / "b").write_text('[[["N", "cafe\\u0301"]]]')
    assert texts(tmp_path / "b", nfc=True) == ["(S (N caf\u00e9))"]
    assert ReadOptions().normalised("cafe\u0301") == "cafe\u0301"


@pytest.mark.parametrize("format", ["auto", "json"])
def test_binary_readers_read_compressed_and_damaged_files(tmp_path, readers, format):
    content = json.dumps([[["N", f"word{number}"]] for number in range(5000)]).encode()
    (tmp_path / "whole").write_bytes(gzip.compress(content))
    assert texts(tmp_path / "whole", format=format)[4999] == "(S (N word4999))"
    (tmp_path / "cut").write_bytes(gzip.compress(content)[:5000])
    with pytest.raises(TreebankError, match="cut: the compressed file is damaged or cut short"):
        texts(tmp_path / "cut", format="json")


def test_a_reader_of_another_package(monkeypatch, tmp_path):
    points = [EntryPoint("tagged", f"{__name__}:TAGGED", "tsgkit.readers")]
    monkeypatch.setattr(registry, "entry_points", lambda group: points if group == "tsgkit.readers" else [])
    monkeypatch.setattr(EntryPoint, "load", lambda point: globals()[point.attr])
    table = Registry("reader", "tsgkit.readers", READERS._built_in)
    for module in (_formats, _sources):
        monkeypatch.setattr(module, "READERS", table)
    (tmp_path / "a").write_text("the/D cat/N\n")
    assert texts(tmp_path / "a") == texts(tmp_path / "a", format="tagged") == ["(S (D the) (N cat))"]


def test_a_broken_reader_of_another_package_has_a_remedy(monkeypatch, tmp_path):
    points = [EntryPoint("broken", "no_such_module:X", "tsgkit.readers")]
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    table = Registry("reader", "tsgkit.readers", READERS._built_in)
    for module in (_formats, _sources):
        monkeypatch.setattr(module, "READERS", table)
    (tmp_path / "a").write_text(LINE)
    with pytest.raises(UsageError, match=r"'broken' of no_such_module:X: .*; uninstall it, or name the format"):
        texts(tmp_path / "a")
    assert len(texts(tmp_path / "a", format="brackets")) == 1


def test_writers_of_others(monkeypatch, tmp_path):
    table = Registry("writer", "tsgkit.writers", WRITERS._built_in)
    table.register("sentences", lambda trees: (" ".join(tree.leaves()) + "\n" for tree in trees))
    monkeypatch.setattr(_sources, "WRITERS", table)
    write_trees([Tree("S", [Tree("N", ["a"]), Tree("V", ["b"])])], tmp_path / "x.gz", "sentences")
    assert gzip.decompress((tmp_path / "x.gz").read_bytes()) == b"a b\n"


def test_empty_lines_may_come_first(tmp_path):
    export = "#BOS 1\na\tN\t--\t--\t0\n#EOS 1\n"
    for name, text in {"export": export, "sinica": "#1:1.[7] S(Head:N:a)#\n", "discbracket": "(S (N 0=a))\n"}.items():
        (tmp_path / name).write_text(f"\ufeff\n \n{text}")
        assert _sources.recognised_format(tmp_path / name) == name
        (tree,) = read_trees(tmp_path / name)
        assert tree.leaves() == ["a"]
    for text in ('<?xml version="1.0"?>\n<alpino_ds/>', "<alpino_ds/>"):
        (tmp_path / "a.xml").write_text(f"\n\n{text}")
        assert _sources.recognised_format(tmp_path / "a.xml") == "alpino"


def test_xml_that_is_not_known_is_not_read_as_brackets(tmp_path):
    (tmp_path / "a.xml").write_text("<exml-doc>\n\n<node\n cat='('/>\n</exml-doc>\n")
    with pytest.raises(TreebankError, match=r"a\.xml:1: XML of a kind that is not known"):
        list(read_trees(tmp_path / "a.xml"))
    (tmp_path / "a.fid").write_text("<DOC>\n<S ID=1>\n( (S (N a)))\n</S>\n</DOC>\n")
    assert texts(tmp_path / "a.fid") == ["( (S (N a)))"]


@pytest.mark.parametrize("format", ["auto", "brackets", "tigerxml"])
def test_archives_that_are_not_read_are_named(tmp_path, format):
    tree = b"(S (N a))\n"
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.mrg", tree)
    (tmp_path / "a.mrg").write_bytes(tree)
    for name, mode in {"a.tar": "w", "a.tar.gz": "w:gz"}.items():
        with tarfile.open(tmp_path / name, mode) as archive:
            archive.add(tmp_path / "a.mrg", "a.mrg")
    (tmp_path / "a.bz2").write_bytes(bz2.compress(tree))
    problems = {"a.zip": "a zip archive: unpack it", "a.tar": "a tar archive: unpack it", "a.tar.gz": "a tar archive"}
    problems["a.bz2"] = "compressed by bzip2: decompress it"
    for name, problem in problems.items():
        with pytest.raises(TreebankError, match=rf"{name}: {problem}"):
            list(read_trees(tmp_path / name, format=format))


def test_every_format_is_recognised(tmp_path):
    """What each writer writes, and a beginning of each format without a writer."""
    beginnings = {
        "alpino": '<?xml version="1.0"?>\n<!-- c -->\n<alpino_ds version="1.3">',
        "ancora": '<?xml version="1.0"?>\n<article lng="es">\n<sentence>\n<sn>\n<n pos="np" wd="Ana"/>',
        "genia": '<?xml version="1.0"?>\n<!DOCTYPE Annotation>\n<Annotation>\n<sentence><cons cat="S">',
        "ftb": '<?xml version="1.0"?>\n<text>\n<SENT nb="1">',
        "sinica": "#1:1.[4257] NP(Head:Neu:a)#.(PERIODCATEGORY)",
        "conllu": "# sent_id = 1",
        "brackets": "( (S (A b)))",
        "export": "%% word lemma tag",
    }
    for name, text in beginnings.items():
        assert recognised([f"{line}\n" for line in text.split("\n")]) == name
    tree = Tree("S", [Tree("N", ["a"]), Tree("V", ["b"])])
    for name in ("export", "tigerxml", "discbracket"):
        write_trees([tree], tmp_path / name, name)
        assert recognised((tmp_path / name).read_text().splitlines(keepends=True)) == name
    for first_line in ('<?xml version="1.0"?>', '<!DOCTYPE book [<!ENTITY x "y">]>'):
        (tmp_path / "other.xml").write_text(f"{first_line}\n<book>\n<title>x</title>\n</book>\n")
        with pytest.raises(TreebankError, match=r"other\.xml:1: XML of a kind that is not known; --format names a"):
            list(read_trees(tmp_path / "other.xml"))
