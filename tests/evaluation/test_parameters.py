"""`tsgkit.evaluation._parameters`: EVALB's parameter files."""

import gzip

import pytest

from tsgkit.evaluation import ParameterError, Parameters, load_parameters
from tsgkit.evaluation._parameters import parse_parameters

COLLINS_DELETES = ("TOP", "-NONE-", ",", ":", "``", "''", ".")


def test_collins():
    assert load_parameters("collins") == Parameters(
        max_error=10,
        cutoff_len=40,
        labeled=True,
        delete_labels=COLLINS_DELETES,
        delete_labels_for_length=("-NONE-",),
        eq_labels=(("ADVP", "PRT"),),
    )


def test_new():
    parameters = load_parameters("new")
    assert set(parameters.delete_labels) == {*COLLINS_DELETES, "S1", "?", "!"}
    assert parameters.quote_labels == ("``", "''", "POS", "NN", "CD", "VBZ", ":")
    assert parameters.eq_labels == (("ADVP", "PRT"),)


def test_every_key():
    text = (
        "# comment\r\n\nDEBUG 2\nMAX_ERROR 3\nCUTOFF_LEN 70  \nLABELED 0\n"
        "DELETE_LABEL #\nDELETE_LABEL\t日本\n"
        "DELETE_LABEL_FOR_LENGTH X\nQUOTE_LABEL Y\nEQ_LABEL A  B\nEQ_WORD c d"
    )
    assert parse_parameters(text) == Parameters(
        max_error=3,
        cutoff_len=70,
        labeled=False,
        delete_labels=("#", "日本"),
        delete_labels_for_length=("X",),
        quote_labels=("Y",),
        eq_labels=(("A", "B"),),
        eq_words=(("c", "d"),),
    )


def test_compressed_file_with_byte_order_mark(tmp_path):
    path = tmp_path / "own.prm.gz"
    path.write_bytes(gzip.compress("\ufeffLABELED 0\n".encode()))
    assert load_parameters(path) == Parameters(labeled=False)


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ("\nLABLED 1", "2:1", "unknown key 'LABLED'"),
        ("MAX_ERROR", "1:10", "takes one whole number, not ''"),
        ("MAX_ERROR ten", "1:11", "takes one whole number, not 'ten'"),
        ("CUTOFF_LEN 99999999999999999999", "1:12", "takes one whole number"),
        ("DELETE_LABEL A B", "1:14", "takes one label, not 'A B'"),
        ("DELETE_LABEL  ", "1:13", "takes one label, not ''"),
        ("EQ_LABEL A", "1:10", "takes two values, not 'A'"),
        ("EQ_WORD a b c", "1:9", "takes two values, not 'a b c'"),
        (" LABELED 1", "1:1", "beginning of the line"),
    ],
)
def test_wrong_files(text, place, problem):
    with pytest.raises(ParameterError) as error:
        parse_parameters(text, "own.prm")
    assert str(error.value).startswith(f"own.prm:{place}: ")
    assert problem in str(error.value)


def test_missing_file():
    with pytest.raises(ParameterError, match=r"no such parameter file; give a file, or one of collins, new"):
        load_parameters("colins")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"LABELED 1\nDELETE_LABEL \xff\n", r"own\.prm:2:14: not UTF-8 text$"),
        (b"\x1f\x8bdamaged", r"own\.prm: the compressed file is damaged \("),
    ],
)
def test_unreadable_file(tmp_path, content, problem):
    path = tmp_path / "own.prm"
    path.write_bytes(content)
    with pytest.raises(ParameterError, match=problem):
        load_parameters(path)
