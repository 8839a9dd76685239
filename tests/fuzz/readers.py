"""Fuzz targets of the readers of treebank formats: valid inputs, their tokens, and what must hold of what was read."""

import functools
import io
from collections.abc import Callable
from pathlib import Path

from nltk.tree import Tree

from tsgkit.errors import TreebankError
from tsgkit.treebank._brackets import read_brackets
from tsgkit.treebank._discbracket import format_discbracket
from tsgkit.treebank._presets import load_preset, parse_preset
from tsgkit.treebank._relabel import Relabelling, labels_of, restored
from tsgkit.treebank._sources import validate_tree
from tsgkit.treebank._tigerxml import write_tigerxml
from tsgkit.treebank.formats import READERS, ReadOptions

ALPINO = b"""<alpino><alpino_ds id="7"><node begin="0" cat="top" end="3" rel="top"><node begin="2" end="3" pos="punct"
rel="--" word="."/>
<node begin="0" cat="smain" end="2" rel="--">
<node begin="0" end="1" index="1" pos="pron" rel="su" word="zij"/>
<node begin="1" end="2" pos="verb" rel="hd" word="lachte"/><node begin="0" cat="np" end="1" rel="mod">
<node begin="0" end="1" index="1" rel="su"/></node></node></node><sentence>zij lachte .</sentence>
</alpino_ds></alpino>"""
GENIA = b"""<Annotation><sentence id="S1"><cons cat="S"><cons cat="NP" role="SBJ"><tok cat="NNS">Cells</tok></cons>
<cons cat="VP"><tok cat="VBP">grow</tok><cons cat="NP" null="NONE"/></cons></cons></sentence></Annotation>"""
ANCORA = b"""<article lng="es"><sentence><sn elliptic="yes" func="suj"/><grup.verb><v pos="vmis3s0" wd="vino"/>
</grup.verb><sn func="cd"><n wd="a b"/></sn></sentence></article>"""
FTB = b"""<text><SENT nb="1"><NP fct="SUJ"><w cat="D">Le</w><w cat="N"><w catint="N">chemin</w><w>de</w> </w></NP>
<VN><w cat="V">va</w><w cat="D"/></VN></SENT></text>"""
SINICA = "#3:1.[17] S(agent:NP(Head:Nhaa:我)|Head:VA4:跑)#。(PERIODCATEGORY)\n#4:1.[18] VP(Head:VA4:跑)#\n".encode()
GAP = b"(S (VP (PDS 0=das) (VVPP 3=gesagt)) (VAFIN 1=hat) (PPER 2=er))\n(S (A 0=a) (B 1=#LRB#))\n"
TAGS = [
    b"<node ",
    b"</node>",
    b"<w>",
    b"</w>",
    b"<tok cat='X'>",
    b"<cons cat='X'>",
    b"</s>",
    b"&amp;",
    b"&x;",
    b"<!--",
    b"-->",
]
TAGS += [
    b"<![CDATA[",
    b"]]>",
    b"<!DOCTYPE a [",
    b"]>",
    b'="',
    b"<?xml version='1.0' encoding='latin-1'?>",
    b"&#0;",
    b"/>",
]
MARKS = [b"(", b")", b"|", b":", b"#", b"0=", b"=", b"Head:", b"(S "]


def target_of_reader(name: str) -> Callable[[bytes, Path], None]:
    """A function that reads an input in a format and checks what comes out."""
    reader = READERS[name]

    def source(data: bytes) -> object:
        return io.BytesIO(data) if reader.is_binary else data.decode("utf-8", "replace").splitlines(keepends=True)

    def read(data: bytes, folder: Path) -> None:
        skipped: list[TreebankError] = []
        options = ReadOptions(skipped=skipped, reattached=[], named=reader.named_options)
        found = []
        try:
            for tree in reader.read(source(data), "fuzz", options):
                validate_tree(tree)
                found.append(tree)
        finally:
            assert all(error.path == "fuzz" and error.line and error.reason for error in skipped)
        strict = list(reader.read(source(data), "fuzz", ReadOptions(reattached=[], named=reader.named_options)))
        assert strict == found

    return read


known_preset = functools.cache(load_preset)


def variants(data: bytes, folder: Path) -> None:
    """Brackets with the options of the presets that have some."""
    lines = data.decode("utf-8", "replace").splitlines(keepends=True)
    for named in (*(known_preset(name).options for name in VARIANTS), {"roots": "several"}):
        skipped: list[TreebankError] = []
        for tree in read_brackets(lines, "fuzz", ReadOptions(skipped=skipped, named=named)):
            validate_tree(tree)
        assert all(error.path == "fuzz" and error.line and 1 <= error.line <= len(lines) for error in skipped)


def labels(data: bytes, folder: Path) -> None:
    rules = Relabelling.parse(data.decode("utf-8", "replace"), "fuzz")
    tree = Tree("S-1", [Tree("NP-SB", [Tree("NN", ["dog"])]), Tree("VN", [Tree("V", ["ran"]), Tree("PU", ["."])])])
    result = rules.apply(tree)
    if result is not None:
        validate_tree(result)
        restored(result, rules.inverse(labels_of([tree])))


def preset(data: bytes, folder: Path) -> None:
    parse_preset(data.decode("utf-8", "replace"), "fuzz", "fuzz.toml")


VARIANTS = ("cess", "floresta", "greynir", "icepahc", "indonesian")
BRACKETS = """( (S (sn-SUJ (da El el) (nc gato gato)) (sn.e *0*)))
#2 x
(STA+fcl (H+n um) (.))
( (META (ID 1) (C )) (S0 (no Minni (lemma minni)) (grm \\())) )
( (IP (N-A orð-orð) (WNP-1 0)) (ID 1,2))
(S (NN (pesta raga)) (SBAR (0) (S (*T*-1) (Z (.)))))
"""
RULES = "tag F* keep\ntag ??* -> $1$2\nphrase *-SB *-1 -> $1\nphrase VN splice\nword . -> \\*\ntag PU drop\n"
PRESET = """title = "a"
[read]
format = "brackets"
options = {lemma = "dash"}
[clean]
labels = "tag A -> B"
[heads]
rules = "NP left N"
[evaluate]
punctuation = ["F"]
"""


def other_targets() -> dict[str, tuple[Callable[[bytes, Path], None], list[bytes], list[bytes]]]:
    """Variants of brackets, rules for labels, presets: the function, valid inputs and tokens of each."""
    return {
        "bracket variants": (variants, [BRACKETS.encode()], [*MARKS, b"\\", b"*", b"-", b"(ID", b"#"]),
        "labels": (labels, [RULES.encode()], [b"->", b"$1", b"$9", b"*", b"?", b"\\", b"tag ", b"phrase ", b"splice"]),
        "preset": (preset, [PRESET.encode()], [b"[read]", b"=", b'"', b"{", b"files", b"true", b"[[", b"labels"]),
    }


def reader_inputs() -> dict[str, tuple[list[bytes], list[bytes]]]:
    """Valid inputs and tokens of every format, by its name."""
    trees = list(read_brackets(["(S (NP-SBJ (DT the) (NN dog)) (VP (VBD ran)))", "(S (A <b>) (B &amp;))"]))
    tiger = "".join(write_tigerxml(trees)).encode()
    numbered = "".join(f"{format_discbracket(tree)}\n" for tree in trees).encode()
    return {
        "tigerxml": (
            [tiger],
            [*TAGS, b"idref=", b"s1_500", b"<edge "],
        ),
        "alpino": ([ALPINO], TAGS),
        "ancora": ([ANCORA], [*TAGS, b"<sn ", b"</sn>", b"wd=", b"elliptic='yes'"]),
        "genia": ([GENIA], TAGS),
        "ftb": ([FTB], TAGS),
        "sinica": ([SINICA], MARKS),
        "discbracket": ([numbered, GAP], MARKS),
    }
