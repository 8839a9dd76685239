"""The remedy of errors names the presets that read the beginning of a file, where Penn brackets do not."""

import os
import threading

import pytest

from tsgkit.errors import TreebankError
from tsgkit.treebank import read_trees

CESS = "(S (sn (da El el) (nc gato gato)) (grup.verb (vmi duerme dormir)) (Fp . .))\n"
HISTORICAL = "( (IP-MAT (NP-SBJ (PRO I)) (MD wolde) (VB send) (PUNC .)) (ID A,1.{}))\n"


def problem_of(path, **options):
    with pytest.raises(TreebankError) as caught:
        list(read_trees(path, **options))
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "presets"),
    [
        ("a.tbf", CESS * 3, "cess"),
        ("a.tbf", f"{CESS * 9}(S (da a\n", "cess"),
        ("a.tbf", CESS.replace("gato", "g\xe1to") * 3, "cess"),
        ("a.psd", "".join(map(HISTORICAL.format, range(4))), "historical"),
        ("a.gld", "( (META (ID 1) (C )) (S0 (no Minni (lemma minni)) (grm .)))\n" * 3, "greynir"),
        ("other", "( (META (ID 1) (C )) (S0 (no Minni (lemma minni)) (grm .)))\n" * 3, "greynir"),
        ("a.bracket", "(S (NN (pesta raga)) (Z (.)))\n" * 3, "indonesian"),
    ],
)
def test_the_presets_are_named(tmp_path, name, text, presets):
    path = tmp_path / name
    path.write_bytes(text.encode("iso-8859-1"))
    assert problem_of(path).endswith(f"; --treebank={presets} reads the beginning of this file")
    # Whoever names a format or a preset is not told another one.
    assert "reads the beginning" not in problem_of(path, format="brackets")
    assert "reads the beginning" not in problem_of(path, treebank="penn")


@pytest.mark.parametrize(
    "text",
    [
        "(S (A b))\n" * 5 + "(S (A b c))\n",  # a few bad trees are no reason
        "(S (A b)\n",
        "no brackets\n" * 5,
        "(S (A b) c) (\n" * 5,
    ],
)
def test_no_preset_is_named(tmp_path, text):
    (tmp_path / "a").write_text(text)
    assert "reads the beginning" not in problem_of(tmp_path / "a")


def test_a_pipe_is_not_opened_again(tmp_path):
    path = tmp_path / "a.tbf"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=(CESS * 3,), daemon=True)
    writer.start()
    assert "reads the beginning" not in problem_of(path)
    writer.join(60)
    assert not writer.is_alive()
