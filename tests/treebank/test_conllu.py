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


def test_what_is_not():
    assert not recognise(["(S (A b))\n"])
    assert not recognise(["#1 a comment\n", "(S (A b))\n"])
    assert not recognise([])
