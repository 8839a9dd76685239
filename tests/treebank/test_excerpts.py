"""Excerpts of real treebanks in their own files: read by their presets with nothing lost, written, read again.

The excerpts are not part of the project: ``TSGKIT_FORMATS`` names their folder, or it is beside that of the treebanks.
"""

import random
import shutil
from typing import NamedTuple

import pytest

from tsgkit.errors import TreebankError
from tsgkit.treebank import Binarization, UnknownWords, prepare, read_trees, write_trees
from tsgkit.treebank._formats import recognised
from tsgkit.treebank._prepare import preparation_of
from tsgkit.treebank._presets import load_preset
from tsgkit.treebank._trees import same_tree, words
from tsgkit.treebank.formats import READERS


class Excerpt(NamedTuple):
    """A file, its preset, the format that is recognised, and counts that were made with regular expressions."""

    name: str
    preset: str
    format: str
    n_trees: int
    n_words: int
    n_discontinuous: int = 0
    n_cut: int = 0  # the tree in which the excerpt ends


EXCERPTS = [
    Excerpt("alpino-sample.xml", "alpino", "alpino", 30, 594, 23),
    Excerpt("alpino-sample.export", "tiger", "export", 3, 76, 3),
    Excerpt("cess-sample.tbf", "cess", "brackets", 6, 250),
    Excerpt("floresta-sample.ptb", "floresta", "brackets", 5, 164),
    Excerpt("sinica-sample.txt", "sinica", "sinica", 40, 205),
    Excerpt("greynir-sample.gld", "greynir", "brackets", 10, 49),
    Excerpt("icepahc-sample.psd", "icepahc", "brackets", 12, 350, n_cut=1),
    Excerpt("genia-sample.xml", "genia", "genia", 8, 297),
]
each_excerpt = pytest.mark.parametrize("excerpt", EXCERPTS, ids=[excerpt.name for excerpt in EXCERPTS])


def read(path, preset, **options):
    skipped, reattached = [], []
    trees = list(read_trees(path, treebank=preset, skipped=skipped, reattached=reattached, max_bad=0.5, **options))
    return trees, skipped, reattached


@each_excerpt
def test_nothing_is_lost(formats, excerpt):
    trees, skipped, reattached = read(formats / excerpt.name, excerpt.preset)
    assert (len(trees), len(reattached), len(skipped)) == (excerpt.n_trees, excerpt.n_discontinuous, excerpt.n_cut)
    assert all("unbalanced brackets: the tree that begins here" in str(error) for error in skipped)
    clean = [load_preset(excerpt.preset).cleaning.apply(tree) for tree in trees]
    assert None not in clean
    assert sum(len(words(tree)) for tree in clean) == excerpt.n_words
    assert [load_preset(excerpt.preset).cleaning.apply(tree) for tree in clean] == clean
    lines = (
        (formats / excerpt.name)
        .read_text(encoding=load_preset(excerpt.preset).encoding or "utf-8", errors="replace")
        .splitlines()
    )
    assert recognised(lines) == excerpt.format


@each_excerpt
def test_written_and_read_again(formats, tmp_path, excerpt):
    trees, _, _ = read(formats / excerpt.name, excerpt.preset)
    clean = [load_preset(excerpt.preset).cleaning.apply(tree) for tree in trees]
    for writer in ("line", "pretty", "export", "tigerxml", "discbracket"):
        path = tmp_path / f"trees.{writer}"
        write_trees(clean, path, writer)
        again = list(read_trees(path, unescape=writer in ("line", "pretty")))
        expected = clean if writer not in ("line", "pretty") else list(read_trees_unescaped(clean, tmp_path))
        assert len(again) == len(clean)
        assert all(map(same_tree, again, expected)), writer


def read_trees_unescaped(trees, folder):
    """Brackets have no way to tell a word -LRB- from a round bracket: with --unescape both are read as the latter."""
    write_trees(trees, folder / "escaped", "line")
    return read_trees(folder / "escaped", unescape=True)


@each_excerpt
def test_discontinuous_trees_are_refused_unless_asked(formats, excerpt):
    chosen = load_preset(excerpt.preset)
    skipped = []
    options = {"format": format_with_options(chosen), "encoding": chosen.encoding, "skipped": skipped, "max_bad": 0.999}
    if excerpt.n_discontinuous == excerpt.n_trees:
        with pytest.raises(TreebankError, match=r"too many bad trees: 3 of 3 .100.0%.: discontinuous tree 3"):
            list(read_trees(formats / excerpt.name, **options))
        return
    assert len(list(read_trees(formats / excerpt.name, **options))) == excerpt.n_trees - excerpt.n_discontinuous
    reasons = [error.reason for error in skipped]
    assert reasons.count("discontinuous tree") == excerpt.n_discontinuous
    assert len(reasons) == excerpt.n_discontinuous + excerpt.n_cut


def format_with_options(preset):
    options = ",".join(f"{name}={value}" for name, value in preset.options.items())
    return f"{preset.format}:{options}" if options else preset.format


@each_excerpt
def test_damaged(formats, tmp_path, excerpt):
    """A hundred damaged copies: read, or refused with a place and a reason; nothing else happens."""
    content = (formats / excerpt.name).read_bytes()
    draw = random.Random(excerpt.name)
    path = tmp_path / excerpt.name
    refused = []
    for _ in range(100):
        start = draw.randrange(len(content))
        end = min(len(content), start + draw.choice([1, 1, 5, 40]))
        path.write_bytes(content[:start] + draw.choice([b"", b"(", b")", b"<", b"\xff", content[:30]]) + content[end:])
        try:
            for tree in read_trees(path, treebank=excerpt.preset):
                assert words(tree)
        except TreebankError as error:
            refused.append(error)
    assert len(refused) > 20
    for error in refused:
        assert error.path == str(path)
        assert error.line or "no sentences" in error.problem


@each_excerpt
def test_prepared_for_a_model(formats, excerpt):
    trees, _, _ = read(formats / excerpt.name, excerpt.preset)
    chosen = load_preset(excerpt.preset)
    binarization = Binarization("centre-head", 1, heads=chosen.heads, rules=chosen.rules)
    corpus = prepare(trees, chosen.cleaning, binarization, UnknownWords(), parameters=chosen.parameters)
    decoded = list(map(preparation_of(corpus).decode, corpus.trees()))
    assert all(map(same_tree, decoded, map(chosen.cleaning.apply, trees)))


@each_excerpt
def test_the_error_without_a_preset_names_it(formats, excerpt):
    """Where brackets are not those of the Penn Treebank; other formats are recognised."""
    path = formats / excerpt.name
    if excerpt.format == "brackets":
        names = {"icepahc": "historical or icepahc"}.get(excerpt.preset, excerpt.preset)
        with pytest.raises(TreebankError, match=rf":\d+:\d+: .*; --treebank={names} reads the beginning of this file"):
            list(read_trees(path))
    else:
        assert list(read_trees(path, reattached=[]))


NLTK = {"alpino": ("alpino.xml", "alpino-sample.xml", 30), "cess_esp": ("x.tbf", "cess-sample.tbf", 6)}
NLTK |= {"floresta": ("f.ptb", "floresta-sample.ptb", 5), "sinica_treebank": ("parsed", "sinica-sample.txt", 40)}


@pytest.mark.parametrize("corpus", NLTK)
def test_as_corpora_of_nltk(formats, tmp_path, tsgkit_process, monkeypatch, corpus):
    file, excerpt, n_trees = NLTK[corpus]
    folder = tmp_path / "corpora" / corpus
    folder.mkdir(parents=True)
    shutil.copy(formats / excerpt, folder / file)
    monkeypatch.setenv("NLTK_DATA", str(tmp_path))
    done = tsgkit_process("prepare", "--quiet", "--root=none", f"nltk:{corpus}", "-o", "out.mrg", "--continuous")
    assert len((tmp_path / "out.mrg").read_text("utf-8").splitlines()) == n_trees, done.stderr
    direct, _, _ = read(formats / excerpt, {"cess_esp": "cess", "sinica_treebank": "sinica"}.get(corpus, corpus))
    sentences = [words(tree) for tree in read_trees(tmp_path / "out.mrg")]
    assert [len(sentence) for sentence in sentences] == [len(words_of_text(tree)) for tree in direct]


def words_of_text(tree):
    return [word for word in words(tree) if word not in ("*0*",)]


def test_all_formats_have_an_excerpt_or_a_test():
    tested = {excerpt.format for excerpt in EXCERPTS}
    assert tested | {"ancora", "tigerxml", "ftb", "discbracket", "conllu"} == set(READERS.built_in)
