"""French Treebank XML: functions, compounds, empty words, damage."""

import io

import pytest

from tsgkit.errors import TreebankError, UsageError
from tsgkit.treebank._brackets import format_tree
from tsgkit.treebank._ftb import read_ftb
from tsgkit.treebank.formats import ReadOptions

SENTENCE = """<SENT nb="12">
<NP fct="SUJ"><w cat="D" subcat="def" lemma="le">Le</w>
<w cat="N" subcat="C" compound="yes"><w catint="N">chemin</w> <w catint="P">de</w> <w>fer</w></w></NP>
<VN><w cat="V" mph="P3s">va</w></VN>
<PP fct="MOD"><w cat="P">du</w><NP><w cat="D"/><w cat="N" subcat="C">nord</w></NP></PP>
<w cat="PONCT" subcat="S">.</w>
</SENT>
"""


def read(*sentences, **options):
    text = f'<?xml version="1.0"?><text>{"".join(sentences)}</text>'
    return list(read_ftb(io.BytesIO(text.encode()), "t.xml", ReadOptions(**options)))


def test_a_sentence():
    (tree,) = read(SENTENCE)
    assert format_tree(tree) == (
        "(SENT (NP-SUJ (D Le) (MWN (N chemin) (P de) (N fer))) (VN (V va)) (PP-MOD (P du) (NP (-NONE- *) (N nord)))"
        " (PONCT .))"
    )


def test_joined_compounds_and_subcategories():
    (tree,) = read(SENTENCE, named={"compounds": "joined", "tag": "subcat"})
    assert format_tree(tree[0]) == "(NP-SUJ (D-def Le) (N-C chemin_de_fer))"


def test_options_are_checked():
    with pytest.raises(UsageError, match="compounds=split: must be one of phrases, joined"):
        read(SENTENCE, named={"compounds": "split"})


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('<w cat="V" mph="P3s">', "<w>", "4:5: missing attribute: <w> has no 'cat'"),
        ('<w cat="V" mph="P3s">va</w>', "", "empty node: 'VN' has neither words nor children"),
        ("<VN>", "<VN>encore", "stray text: 'encore'"),
        ("chemin</w>", "chemin</w>a", "stray text: 'a' beside the words of a compound"),
        ("va</w>", "va<NP/></w>", "stray element: <NP> inside <w>"),
        (">chemin<", "><w>x</w><", "stray element: a <w> inside a <w> inside a <w>"),
    ],
)
def test_damage(old, new, problem):
    damaged = SENTENCE.replace(old, new, 1)
    assert damaged != SENTENCE
    with pytest.raises(TreebankError) as caught:
        read(damaged)
    assert problem in str(caught.value)
    skipped = []
    assert len(read(damaged, SENTENCE, skipped=skipped)) == 1
    assert len(skipped) == 1
