"""Fuzz targets of the readers of treebank formats: valid inputs, their tokens, and what must hold of what was read."""

import io
from collections.abc import Callable
from pathlib import Path

from tsgkit.errors import TreebankError
from tsgkit.treebank.brackets import read_brackets
from tsgkit.treebank.discbracket import format_discbracket
from tsgkit.treebank.formats import READERS, ReadOptions
from tsgkit.treebank.sources import validate_tree
from tsgkit.treebank.tigerxml import write_tigerxml

ALPINO = b"""<alpino><alpino_ds id="7"><node begin="0" cat="top" end="3" rel="top"><node begin="2" end="3" pos="punct"
rel="--" word="."/>
<node begin="0" cat="smain" end="2" rel="--">
<node begin="0" end="1" index="1" pos="pron" rel="su" word="zij"/>
<node begin="1" end="2" pos="verb" rel="hd" word="lachte"/><node begin="0" cat="np" end="1" rel="mod">
<node begin="0" end="1" index="1" rel="su"/></node></node></node><sentence>zij lachte .</sentence>
</alpino_ds></alpino>"""
GENIA = b"""<Annotation><sentence id="S1"><cons cat="S"><cons cat="NP" role="SBJ"><tok cat="NNS">Cells</tok></cons>
<cons cat="VP"><tok cat="VBP">grow</tok><cons cat="NP" null="NONE"/></cons></cons></sentence></Annotation>"""
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


def reader_inputs() -> dict[str, tuple[list[bytes], list[bytes]]]:
    """Valid inputs and tokens of every format, by its name."""
    trees = list(read_brackets(["(S (NP-SBJ (DT the) (NN dog)) (VP (VBD ran)))", "(S (A <b>) (B &amp;))"]))
    tiger = "".join(write_tigerxml(trees)).encode()
    numbered = "".join(f"{format_discbracket(tree)}\n" for tree in trees).encode()
    return {
        "tigerxml": (
            [tiger, tiger.replace(b'idref="s1_1"', b'idref="s1_3"')],
            [*TAGS, b"idref=", b"s1_500", b"<edge "],
        ),
        "alpino": ([ALPINO], TAGS),
        "genia": ([GENIA], TAGS),
        "ftb": ([FTB], TAGS),
        "sinica": ([SINICA], MARKS),
        "discbracket": ([numbered, GAP], MARKS),
    }
