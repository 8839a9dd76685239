"""Machine checks of the bundled treebank, ``village``.

The trees are looked at exactly as they are stored: with function tags, empty
elements and indices.
"""

import re
from collections import Counter
from pathlib import Path

import pytest
from nltk import Tree

import tsgkit.treebank
from tsgkit.treebank import load

SPLITS = ("train", "dev", "test")
DATA = Path(tsgkit.treebank.__file__).parent / "data" / "village"

POS_TAGS = """
CC CD DT EX FW IN JJ JJR JJS LS MD NN NNS NNP NNPS PDT POS PRP PRP$ RB RBR RBS RP SYM TO UH
VB VBD VBG VBN VBP VBZ WDT WP WP$ WRB # $ . , : `` '' -LRB- -RRB- -NONE-
"""
BRACKET_LABELS = """
ADJP ADVP CONJP FRAG INTJ LST NAC NP NX PP PRN PRT QP RRC S SBAR SBARQ SINV SQ UCP VP
WHADJP WHADVP WHNP WHPP X
"""
FUNCTION_TAGS = "ADV BNF CLF CLR DIR DTV EXT HLN LGS LOC MNR NOM PRD PRP PUT SBJ SEZ TMP TPC TTL VOC"
POS = set(POS_TAGS.split())
BRACKETS = set(BRACKET_LABELS.split())
FUNCTIONS = set(FUNCTION_TAGS.split())
LABEL = re.compile(r"([A-Z]+)((?:-[A-Z]{3})*)(?:-(\d+))?(?:=(\d+))?")
EMPTY = re.compile(r"0|\*U\*|\*\?\*|\*(?:-(\d+))?|\*(?:T|ICH|EXP|RNR|PPA)\*-(\d+)")
PUNCTUATION = {
    ".": {".", "?", "!"},
    ",": {","},
    ":": {":", ";", "--", "..."},
    "``": {"``"},
    "''": {"''"},
    "$": {"$"},
    "-LRB-": {"-LRB-"},
    "-RRB-": {"-RRB-"},
}
VERBAL = {"VB", "VBD", "VBG", "VBN", "VBP", "VBZ", "MD", "TO"}


def is_preterminal(node):
    return len(node) == 1 and isinstance(node[0], str)


def brackets(tree):
    """The labelled phrases of a tree, without its empty outer bracket."""
    return [node for node in tree.subtrees() if node.label() != "" and not is_preterminal(node)]


def category(node):
    """The label of a node without function tags and indices."""
    return node.label() if is_preterminal(node) else LABEL.match(node.label()).group(1)


def words(tree):
    """The words of a sentence, without its empty elements."""
    return [word for word, tag in tree.pos() if tag != "-NONE-"]


def traces(tree):
    """``(node, kind, index)`` of the empty elements that carry an index."""
    for node in tree.subtrees():
        if node.label() == "-NONE-":
            match = EMPTY.fullmatch(node[0])
            index = match.group(1) or match.group(2)
            if index:
                yield node, node[0][: -len(index) - 1], index


def without_empty(tree):
    """A copy of the tree without empty elements and the phrases they leave empty, or None.

    The attribute ``discontinuous`` of a node tells whether an ``*ICH*`` or ``*EXP*``
    was removed directly below it.
    """
    if is_preterminal(tree):
        return None if tree.label() == "-NONE-" else tree
    kids, discontinuous = [], False
    for child in tree:
        kept = without_empty(child)
        if kept is not None:
            kids.append(kept)
        elif child.leaves()[0].startswith(("*ICH*", "*EXP*")):
            discontinuous = True
    if not kids:
        return None
    node = Tree(tree.label(), kids)
    node.discontinuous = discontinuous
    return node


@pytest.fixture(scope="module")
def treebank():
    return {split: load("village", split=split) for split in SPLITS}


@pytest.fixture(scope="module")
def trees(treebank):
    return [tree for split in SPLITS for tree in treebank[split]]


def test_sizes(treebank, trees):
    assert len(trees) >= 300
    assert sum(len(words(tree)) for tree in trees) >= 3500
    for split in SPLITS:
        assert len(treebank[split]) >= 0.12 * len(trees)
    assert len(treebank["train"]) >= 0.6 * len(trees)


def test_documents():
    documents = {split: {path.name for path in (DATA / split).glob("*.mrg")} for split in SPLITS}
    assert sum(len(names) for names in documents.values()) >= 8
    assert all(len(names) >= 2 for names in documents.values())
    assert len(set.union(*documents.values())) == sum(map(len, documents.values()))


def test_splits_share_no_sentence(treebank):
    seen = {}
    for split in SPLITS:
        for tree in treebank[split]:
            sentence = tuple(words(tree))
            if len(sentence) > 3:
                assert seen.setdefault(sentence, split) == split, sentence


def test_no_sentence_twice(trees):
    counts = Counter(tuple(words(tree)) for tree in trees)
    assert not [s for s, n in counts.items() if n > 1 and len(s) > 3]


def test_vocabulary_is_shared(treebank):
    known = {word for tree in treebank["train"] for word in words(tree)}
    for split in ("dev", "test"):
        tokens = [word for tree in treebank[split] for word in words(tree)]
        assert sum(word in known for word in tokens) >= 0.75 * len(tokens)


def test_shape(trees):
    for tree in trees:
        assert tree.label() == ""
        assert len(tree) == 1
        assert isinstance(tree[0], Tree)
        assert words(tree)
        for node in tree.subtrees():
            assert len(node) > 0
            assert is_preterminal(node) or all(isinstance(kid, Tree) for kid in node)


def test_tags(trees):
    for tree in trees:
        for word, tag in tree.pos():
            assert tag in POS, (tag, word)
            if tag == "-NONE-":
                assert EMPTY.fullmatch(word), word
            elif tag in PUNCTUATION:
                assert word in PUNCTUATION[tag], (tag, word)
            else:
                assert re.search("[A-Za-z0-9%#]", word) or word == "'", (tag, word)


def test_words_have_their_closed_class_tags(trees):
    only = {
        "the": {"DT"}, "a": {"DT"}, "of": {"IN"}, "and": {"CC"}, "to": {"TO"},
        "it": {"PRP"}, "n't": {"RB"}, "not": {"RB"}, "would": {"MD"},
        "was": {"VBD"}, "is": {"VBZ"}, "who": {"WP"}, "which": {"WDT"},
        "that": {"IN", "DT", "WDT"}, "her": {"PRP", "PRP$"}, "his": {"PRP$"},
        "there": {"EX", "RB"}, "when": {"WRB"}, "'s": {"POS", "VBZ"},
    }  # fmt: skip
    for tree in trees:
        for word, tag in tree.pos():
            assert tag in only.get(word.lower(), {tag}), (word, tag)


def test_labels(trees):
    for tree in trees:
        for node in brackets(tree):
            match = LABEL.fullmatch(node.label())
            assert match, node.label()
            assert match.group(1) in BRACKETS, node.label()
            functions = [f for f in match.group(2).split("-") if f]
            assert set(functions) <= FUNCTIONS, node.label()
            assert len(functions) == len(set(functions)), node.label()


def test_indices(trees):
    for tree in trees:
        antecedents, gaps = Counter(), set()
        for node in brackets(tree):
            _, _, index, gap = LABEL.fullmatch(node.label()).groups()
            antecedents.update([index] if index else [])
            gaps.update([gap] if gap else [])
        referring = {index for _, _, index in traces(tree)}
        assert all(n == 1 for n in antecedents.values()), tree
        assert referring <= set(antecedents), tree
        assert gaps <= set(antecedents), tree
        assert set(antecedents) <= referring | gaps, tree
        assert sorted(map(int, antecedents)) == list(range(1, len(antecedents) + 1))


def test_antecedents_fit_their_traces(trees):
    for tree in trees:
        antecedent, parent = {}, {}
        for node in brackets(tree):
            index = LABEL.fullmatch(node.label()).group(3)
            if index:
                antecedent[index] = node
            for kid in node:
                parent[id(kid)] = node
        for node, kind, index in traces(tree):
            above, target = parent[id(node)], antecedent[index]
            if kind == "*T*":
                wh = category(target).startswith("WH")
                assert wh or "-TPC" in target.label() or category(target) == "S", tree
                plain = category(target)[2:] if wh else category(target)
                assert category(above) == plain, tree
            elif kind in ("*ICH*", "*EXP*"):
                assert category(above) == category(target), tree
            else:
                assert category(above) == "NP", tree
                assert category(target) == "NP" or "-SBJ" in target.label(), tree


def test_no_vacuous_unary_brackets(trees):
    """No phrase is the only child of a phrase of the same category, and no chain
    of unary brackets repeats a category. What a discontinuous element leaves
    behind, as in ``(NP-SBJ (NP It) (SBAR *EXP*-1))``, is no error."""
    for tree in trees:
        for node in brackets(tree):
            if len(node) == 1:
                assert category(node) != category(node[0]), tree
        bare = without_empty(tree[0])
        for top in brackets(bare):
            node, chain = top, [category(top)]
            while not is_preterminal(node) and len(node) == 1 and not node.discontinuous:
                node = node[0]
                assert category(node) not in chain, tree
                chain.append(category(node))


def test_clauses_have_subjects(trees):
    """An S with a verb phrase has a subject; so does an SQ or SINV."""
    for tree in trees:
        for node in brackets(tree):
            kids = [kid.label() for kid in node]
            if category(node) in ("S", "SQ", "SINV") and any(
                LABEL.fullmatch(k) and LABEL.fullmatch(k).group(1) == "VP" for k in kids
            ):
                assert sum("-SBJ" in kid for kid in kids) == 1, node


def test_verb_phrases_have_heads(trees):
    for tree in trees:
        for node in brackets(tree):
            if category(node) != "VP":
                continue
            kids = [category(kid) for kid in node]
            gapped = any("=" in kid.label() for kid in node)
            assert gapped or set(kids) & (VERBAL | {"VP", "-NONE-"}), node
            if kids[0] in ("MD", "TO"):
                assert "VP" in kids, node
                assert kids.count(kids[0]) == 1, node


def test_phrases_begin_as_they_should(trees):
    for tree in trees:
        for node in brackets(tree):
            kids = [category(kid) for kid in node]
            if category(node) == "SBAR" and "-NONE-" not in kids:
                heads = {"IN", "WHNP", "WHADVP", "WHPP", "WHADJP", "SBAR"}
                assert kids[0] in heads, node
            if category(node) == "SBARQ" and kids != ["-NONE-"]:
                assert any(kid.startswith("WH") for kid in kids), node
                assert "SQ" in kids, node
            if category(node) == "PRT":
                assert kids == ["RP"], node


def test_final_punctuation_is_at_the_top(trees):
    for tree in trees:
        for node in brackets(tree):
            if node is not tree[0]:
                assert all(kid.label() != "." or kid[0] != "." for kid in node), tree


def test_all_kinds_of_empty_elements_occur(trees):
    kinds = Counter(re.sub(r"-\d+$", "-", word) for tree in trees for word, tag in tree.pos() if tag == "-NONE-")
    for kind in ("*", "*-", "*T*-", "0", "*U*", "*?*", "*ICH*-", "*EXP*-"):
        assert kinds[kind] > 1, kind


def test_reading_again_gives_the_same(trees):
    for tree in trees:
        assert Tree.fromstring(str(tree)) == tree


def test_files_are_laid_out_alike(treebank):
    """Trees with an empty outer bracket, indented, a blank line between two of them."""
    for split in SPLITS:
        count = 0
        for path in (DATA / split).glob("*.mrg"):
            text = path.read_text(encoding="utf-8")
            assert text.isascii()
            assert "\t" not in text
            assert text.endswith(" )\n")
            for block in text.rstrip("\n").split("\n\n"):
                first, *rest = block.split("\n")
                assert first.startswith("( (")
                assert block.endswith(") )")
                assert all(line.startswith("    ") for line in rest)
                count += 1
        assert count == len(treebank[split])
