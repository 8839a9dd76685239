"""Dependencies by head rules: known sentences, properties that hold for all trees, CoNLL-U, and the published table."""

import pytest
from hypothesis import given
from nltk.tree import Tree
from strategies import trees

from tsgkit.treebank import Cleaning, load
from tsgkit.treebank._dependencies import conllu_block, dependencies_of, relation
from tsgkit.treebank._heads import HeadRules

PENN = HeadRules.load("penn")
# Collins (1999), appendix A, after Magerman (1995), as published with several parsers: the direction in which a phrase
# is searched, and what for.
PUBLISHED = """
ADJP left NNS QP NN $ ADVP JJ VBN VBG ADJP JJR NP JJS DT FW RBR RBS SBAR RB
ADVP right RB RBR RBS FW ADVP TO CD JJR JJ IN NP JJS NN
CONJP right CC RB IN
LST right LS :
NAC left NN NNS NNP NNPS NP NAC EX $ CD QP PRP VBG JJ JJS JJR ADJP FW
PP right IN TO VBG VBN RP FW
PRT right RP
QP left $ IN NNS NN JJ RB DT CD NCD QP JJR JJS
RRC right VP NP ADVP ADJP PP
S left TO IN VP S SBAR ADJP UCP NP
SBAR left WHNP WHPP WHADVP WHADJP IN DT S SQ SINV SBAR FRAG
SBARQ left SQ S SINV SBARQ FRAG
SINV left VBZ VBD VBP VB MD VP S SINV ADJP NP
SQ left VBZ VBD VBP VB MD VP SQ
VP left TO VBD VBN MD VBZ VB VBG VBP VP ADJP NN NNS NP
WHADJP left CC WRB JJ ADJP
WHADVP right CC WRB
WHNP left WDT WP WP$ WHADJP WHPP WHNP
WHPP right IN TO FW
"""


@pytest.mark.parametrize("line", PUBLISHED.split("\n")[1:-1], ids=lambda line: line.split()[0])
def test_the_penn_table_is_the_published_one(line):
    label, direction, *wanted = line.split()
    (search,) = PENN.searches[label]
    assert search.how == direction
    assert sorted(search.ranks, key=search.ranks.get) == wanted


def test_noun_phrases_are_searched_as_published():
    """Seven searches, one after the other; NML, which is not in the table, goes with the nouns."""
    found = [(search.how, set(search.ranks) - {"NML"}) for search in PENN.searches["NP"]]
    assert found == [
        ("rightmost", {"POS"}),
        ("right-any", {"NN", "NNP", "NNPS", "NNS", "NX", "POS", "JJR"}),
        ("left", {"NP"}),
        ("right-any", {"$", "ADJP", "PRN"}),
        ("right", {"CD"}),
        ("right-any", {"JJ", "JJS", "RB", "QP"}),
        ("rightmost", set()),
    ]


def heads(text, rules=PENN):
    return [(each.word, each.head, each.label) for each in dependencies_of(Tree.fromstring(text), rules)]


def test_a_known_sentence():
    verbs = "(VP (MD will) (VP (VB chase) (NP (NNS cats)) (PP (IN in) (NP (NNP May)))))"
    tree = f"(TOP (S (NP-SBJ (DT The) (NN dog)) {verbs}))"
    assert heads(tree) == [
        ("The", 2, "DT"),
        ("dog", 3, "SBJ"),
        ("will", 0, "root"),
        ("chase", 3, "VP"),
        ("cats", 4, "NP"),
        ("in", 4, "PP"),
        ("May", 6, "NP"),
    ]


def test_other_rules():
    assert [head for _, head, _ in heads("(S (A a) (B (C c) (D d)))", HeadRules.load("rightmost"))] == [3, 3, 0]
    assert [head for _, head, _ in heads("(S (A a) (B (C c) (D d)))", HeadRules.load("leftmost"))] == [0, 1, 2]


def test_empty_trees_and_phrases():
    assert dependencies_of(Tree("TOP", []), PENN) == []
    assert heads("(S (NP ) (VP (VB go)))") == [("go", 0, "root")]
    assert heads("(X x)") == [("x", 0, "root")]


@pytest.mark.parametrize(
    ("label", "shown"),
    [("NP-SBJ-1", "SBJ"), ("NP-1", "NP"), ("S=2", "S"), ("PP-LOC-PRD", "LOC"), ("-LRB-", "-LRB-"), ("", "_")],
)
def test_labels(label, shown):
    assert relation(label) == shown


@given(trees)
def test_every_tree_gives_a_projective_tree_of_words(tree):
    found = dependencies_of(tree, PENN)
    assert [each.word for each in found] == tree.leaves()
    assert sum(each.head == 0 for each in found) == 1
    for number, each in enumerate(found, start=1):
        # Following the heads ends at the root.
        seen, at = set(), number
        while at:
            assert at not in seen
            seen.add(at)
            at = found[at - 1].head
        # All words between a word and its head depend on one of the two, directly or not.
        if each.head:
            for between in range(min(number, each.head) + 1, max(number, each.head)):
                above, at = set(), between
                while at:
                    above.add(at)
                    at = found[at - 1].head
                assert above & {number, each.head}


def test_conllu():
    block = conllu_block(dependencies_of(Tree.fromstring("(S (NP (PRP I)) (VP (VBD ran)))"), PENN))
    lines = block.split("\n")
    assert lines[0] == "# text = I ran"
    assert all(len(line.split("\t")) == 10 for line in lines[1:3])
    assert lines[3:] == ["", ""]
    assert conllu_block([]) == "# text = \n\n"


def test_commands(tsgkit, tmp_path):
    gold = [Cleaning().apply(tree) for tree in load("village", "dev")]
    wanted = "".join(conllu_block(dependencies_of(tree, PENN)) for tree in gold)
    assert tsgkit("prepare", "-q", "--write=conllu", "village:dev").stdout == wanted
    other = tsgkit("prepare", "-q", "--write=conllu", "--heads=rightmost", "village:dev").stdout
    assert other != wanted
    assert "not binarised" in tsgkit("prepare", "--write=conllu", "--binarize=left", "village:dev", code=2).stderr
    tsgkit("train", "-q", "--model=cfg", "village:train", "-o", "m")
    sentences = "the old man smiled .\n\nI ran .\n"
    out = tsgkit("parse", "-q", "--format=conllu", "m", text=sentences).stdout
    blocks = out.split("\n\n")
    assert [block.splitlines()[0] for block in blocks[:3]] == [
        "# text = the old man smiled .",
        "# text = ",
        "# text = I ran .",
    ]
    assert "4\tsmiled\t_\t_\tVBD\t_\t0\troot\t_\t_" in blocks[0]
    # The same to a file, which can be resumed, and by other processes.
    (tmp_path / "text").write_text(sentences)
    tsgkit("parse", "-q", "--format=conllu", "m", "-i", "text", "-o", "one.conllu")
    tsgkit("parse", "-q", "--format=conllu", "--backend=joblib", "--chunk=1", "m", "-i", "text", "-o", "two.conllu")
    assert (tmp_path / "one.conllu").read_text() == (tmp_path / "two.conllu").read_text() == out
    assert "are for trees" in tsgkit("parse", "--format=conllu", "--kbest=2", "m", code=2).stderr
