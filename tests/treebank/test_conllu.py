"""CoNLL-U is recognised, to say that it has no phrases."""

import pytest

from tsgkit.errors import TreebankError
from tsgkit.treebank import read_trees
from tsgkit.treebank._conllu import recognise

ROW = "1\tShe\tshe\tPRON\tPRP\t_\t2\tnsubj\t_\t_\n"


@pytest.mark.parametrize("text", [f"# sent_id = 1\n{ROW}", ROW, f"# text = She\n\n{ROW}", ROW.replace("1", "1-2", 1)])
def test_dependencies_have_no_phrases(tmp_path, text):
    (tmp_path / "a.conllu").write_text(text)
    for skipped in (None, []):
        with pytest.raises(TreebankError, match=r"a\.conllu:1: dependency treebank: CoNLL-U has heads and relations"):
            list(read_trees(tmp_path / "a.conllu", skipped=skipped))


def test_columns_of_ontonotes(tmp_path):
    (tmp_path / "a.gold_conll").write_text("#begin document (a); part 000\na 0 0 It PRP (TOP(S(NP*) - - - - * -\n")
    with pytest.raises(TreebankError, match=r"a\.gold_conll:1: columns of CoNLL-2012: .* \.parse \(--treebank=penn\)"):
        list(read_trees(tmp_path / "a.gold_conll"))


def test_what_is_not():
    assert not recognise(["(S (A b))\n"])
    assert not recognise(["#1 a comment\n", "(S (A b))\n"])
    assert not recognise([])
