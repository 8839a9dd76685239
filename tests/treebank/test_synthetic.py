"""Synthetic treebanks: their trees have the probabilities of the grammar, are reproducible, and score a sampler."""

import inspect
import itertools
import math
import re
from collections import Counter

import numpy as np
import pytest
from nltk.tree import Tree

from tsgkit.treebank import Binarization, Cleaning, read_trees
from tsgkit.treebank._fragments import canonical, n_rules
from tsgkit.treebank._trees import is_preterminal, preorder, same_tree, words
from tsgkit.treebank.synthetic import (
    assemble,
    generate,
    generate_derivations,
    n_words,
    recovery,
    synthetic_fragments,
    synthetic_grammar,
    without_marks,
)
from tsgkit.treebank.synthetic._grammar import KINDS_OF_AUXILIARY_TREES

PHRASES = "TOP S NP NX VP PP SBAR ADJP ADVP PRN PRT WHNP CONJP FRAG"
TAGS = "NN NNS NNP JJ JJS RB RBR RP VB VBZ VBP VBD VBN VBG MD DT PRP PRP$ IN TO CC CD EX WDT , . : `` '' -LRB- -RRB-"
PLURAL_PRONOUNS = {"they", "I", "you"}


@pytest.fixture(scope="module")
def derivations():
    return list(generate_derivations(20_000, seed=11))


@pytest.fixture(scope="module")
def trees(derivations):
    return [derivation.tree() for derivation in derivations[:3000]]


# The grammar.


def test_grammar_is_well_written():
    grammar = synthetic_grammar(vocabulary=1000)
    everything = grammar.initial + grammar.auxiliary
    assert all(canonical(tree.brackets) == tree.brackets for tree in everything)
    assert len({tree.brackets for tree in everything}) == len(everything)
    for trees in (grammar.initial, grammar.auxiliary):
        for root in {tree.root for tree in trees}:
            assert math.fsum(tree.probability for tree in trees if tree.root == root) == pytest.approx(1)
    # Every open node can be filled.
    frontier = {label for tree in everything for label in re.findall(r"\(([^\s()*]+) \)", tree.brackets)}
    assert frontier <= {tree.root for tree in grammar.initial}


def test_there_are_elementary_trees_of_every_kind():
    grammar = synthetic_grammar()
    kinds = Counter(tree.kind for tree in grammar.initial + grammar.auxiliary)
    assert kinds["agreement"] >= 20
    assert kinds["idiom"] >= 10
    assert kinds["frame"] >= 12
    assert all(kinds[kind] >= 5 for kind in KINDS_OF_AUXILIARY_TREES)
    assert kinds["word"] >= 300


def test_auxiliary_trees_are_simple_and_binary():
    for tree in synthetic_grammar().auxiliary:
        children = [child.label() for child in Tree.fromstring(tree.brackets)]
        assert len(children) == 2
        assert children.count(tree.root + "*") == 1
        assert tree.brackets.count("*") == 1


def expected_sites(grammar):
    """Expected number of sites of each kind (columns) that filling a site (row) opens, and of words."""
    rates = grammar.insertion_probability
    kinds = sorted({tree.root for tree in grammar.initial} | {label + "*" for label in rates})
    index = {kind: number for number, kind in enumerate(kinds)}
    sites, n_words_each = np.zeros((len(kinds), len(kinds))), np.zeros(len(kinds))
    for trees, mark in ((grammar.initial, ""), (grammar.auxiliary, "*")):
        for tree in trees:
            row = index[tree.root + mark]
            for node in list(preorder(Tree.fromstring(tree.brackets))):
                if len(node) == 0 and not node.label().endswith("*"):
                    sites[row, index[node.label()]] += tree.probability
                n_words_each[row] += tree.probability * (len(node) == 1 and is_preterminal(node))
            for node in itertools.islice(preorder(Tree.fromstring(tree.brackets)), 1, None):
                if len(node) and node.label() in rates:
                    sites[row, index[node.label() + "*"]] += tree.probability * rates[node.label()]
    return index, sites, n_words_each


def test_trees_end_and_have_the_expected_length(derivations):
    index, sites, n_words_each = expected_sites(synthetic_grammar())
    assert max(abs(np.linalg.eigvals(sites))) < 0.9
    mean = np.linalg.solve(np.eye(len(sites)) - sites, n_words_each)[index["TOP"]]
    assert 12 < mean < 20
    lengths = np.array([n_words(derivation.brackets) for derivation in derivations])
    assert abs(lengths.mean() - mean) < 4 * lengths.std() / math.sqrt(len(lengths))


# Samples.


def test_same_seed_same_trees():
    few = list(generate_derivations(100, seed=7))
    assert few == list(itertools.islice(generate_derivations(1000, seed=7), 100))
    assert few != list(generate_derivations(100, seed=8))
    assert list(generate(100, seed=7)) == [derivation.tree() for derivation in few]


def test_output_is_the_same_on_every_machine():
    # A change here changes the synthetic treebanks of all users.
    assert next(generate_derivations(1)).brackets == (
        "(TOP (S (S (NP (DT the) (NNS months)) (VP (VBD relied) (PP (IN on) (NP (DT the) (NN group)"
        " (NN court))))) (CC and) (S (NP (NNS men)) (VP (VBD wanted) (NP (DT no) (NN tree))"
        " (PP (IN under) (NP (DT some) (JJ wet) (NN street))))) (. .)))"
    )


def test_trees_come_one_by_one():
    endless = generate_derivations(10**30)
    assert iter(endless) is endless
    assert next(endless) == next(generate_derivations(1))
    assert inspect.isgenerator(generate(10**9))


def test_trees_are_clean(derivations, trees):
    tags, phrases = TAGS.split(), PHRASES.split()
    for derivation, tree in zip(derivations, trees, strict=False):
        assert canonical(derivation.brackets) == derivation.brackets
        assert tree.label() == "TOP"
        assert same_tree(Cleaning().apply(tree), tree)
        assert len(words(tree)) == n_words(derivation.brackets)
        for node in preorder(tree):
            assert len(node)
            assert node.label() in (tags if is_preterminal(node) else phrases)


@pytest.mark.parametrize("method", ["right", "left", "centre-head"])
def test_binarization_keeps_auxiliary_trees(method):
    for brackets in synthetic_fragments(Binarization(method).apply, KINDS_OF_AUXILIARY_TREES):
        tree = Tree.fromstring(brackets)
        assert len(tree) == 2
        assert tree.label() + "*" in [child.label() for child in tree]


def reference_assembly(steps):
    """The obvious way to build a tree from its derivation, by recursion."""
    remaining = iter(steps)

    def fill(node, foot):
        if isinstance(node, str):
            return node
        if node.label().endswith("*"):
            return foot()
        if len(node) == 0:
            return fill(Tree.fromstring(next(remaining)), None)
        if node.label().endswith("+"):
            host = Tree(node.label()[:-1], list(node))
            return fill(Tree.fromstring(next(remaining)), lambda: fill(host, foot))
        return Tree(node.label(), [fill(child, foot) for child in node])

    tree = fill(Tree("TOP", []), None)
    assert next(remaining, None) is None
    return tree


def test_derivations_assemble_to_the_tree(derivations):
    for derivation in derivations[:3000]:
        assert assemble(derivation.steps) == derivation.brackets
        assert reference_assembly(derivation.steps) == derivation.tree()


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([], "ends before TOP is filled"),
        (["(TOP (NP ))"], "ends before NP is filled"),
        (["(TOP (NP ))", "(VP (VBD sat))"], r"\(VP \(VBD sat\)\) cannot fill NP"),
        (["(TOP (NP+ (NN )))", "(NP (NN rain))"], r"cannot fill NP\*"),
        (["(TOP (NP ))", "(NP (ADVP (RB even)) (NP* ))"], "cannot fill NP"),
        (["(TOP (NN rain))", "(NN rain)"], "complete before"),
    ],
)
def test_impossible_derivations(steps, message):
    with pytest.raises(ValueError, match=message):
        assemble(steps)


def assert_frequencies(counts, trees):
    """Chi-square of the trees of one root, those expected less than five times taken together."""
    total = sum(counts[tree.brackets] for tree in trees)
    cells = {True: [], False: []}
    for tree in trees:
        expected = total * tree.probability
        cells[expected >= 5].append((counts[tree.brackets], expected))
    pooled = [*cells[True], tuple(map(sum, zip(*cells[False], strict=True)))] if cells[False] else cells[True]
    statistic = sum((observed - expected) ** 2 / expected for observed, expected in pooled)
    degrees = len(pooled) - 1
    assert statistic < degrees + 4 * math.sqrt(2 * degrees) + 4


@pytest.mark.parametrize("vocabulary", [0, 200])
def test_fragments_have_their_probabilities(derivations, vocabulary):
    grammar = synthetic_grammar(vocabulary=vocabulary)
    if vocabulary:
        derivations = generate_derivations(5000, seed=12, vocabulary=vocabulary)
    counts = Counter(without_marks(step) for derivation in derivations for step in derivation.steps)
    assert set(counts) <= {tree.brackets for tree in grammar.initial + grammar.auxiliary}
    for trees in (grammar.initial, grammar.auxiliary):
        for root in {tree.root for tree in trees}:
            assert_frequencies(counts, [tree for tree in trees if tree.root == root])


def test_insertions_have_their_probabilities(derivations):
    n_hosts, n_insertions = Counter(), Counter()
    for derivation in derivations:
        for step in derivation.steps:
            for label, mark in re.findall(r" \(([^\s()+]+)(\+?) (?!\))", step):
                n_hosts[label] += 1
                n_insertions[label] += bool(mark)
    rates = synthetic_grammar().insertion_probability
    assert set(rates) == {label for label, n in n_insertions.items() if n}
    for label, rate in rates.items():
        deviation = n_insertions[label] - rate * n_hosts[label]
        assert abs(deviation) < 4 * math.sqrt(rate * (1 - rate) * n_hosts[label])


def test_without_insertions():
    grammar = synthetic_grammar(insertions=False)
    assert not grammar.auxiliary
    for derivation in generate_derivations(500, seed=1, insertions=False):
        assert not any(re.search(r"\([^\s()]+[*+] ", step) for step in derivation.steps)


# Agreement.


def is_plural(phrase):
    """The number of a noun phrase: that of its head, below all that was added."""
    labels = [child.label() for child in phrase]
    if "CC" in labels or "CONJP" in labels:
        return True
    for label in ("NP", "NX"):
        if label in labels:
            return is_plural(phrase[labels.index(label)])
    head = phrase[-1]
    return head.label() == "NNS" or head[0] in PLURAL_PRONOUNS


def finite_verb(phrase):
    """Tag and word of the verb of a clause's verb phrase, below all that was added."""
    while not re.match("VB|MD", phrase[0].label()):
        phrase = next(child for child in phrase if child.label() == "VP")
    return phrase[0].label(), phrase[0][0]


def core(clause):
    """The clause below all that was added to it."""
    while len(clause) == 2 and clause[1].label() == "S":
        clause = clause[1]
    return clause


def subjects_and_verbs(tree):
    for node in preorder(tree):
        labels = [child.label() for child in node if isinstance(child, Tree)]
        if node.label() == "S" and "NP" in labels and "VP" in labels:
            subject, verb_phrase = node[labels.index("NP")], node[labels.index("VP")]
            if "there" in words(subject):
                subject = next(each for each in preorder(verb_phrase) if each.label() == "NP")
            yield subject, *finite_verb(verb_phrase)
        elif node.label() == "NP" and labels == ["NP", "SBAR"] and node[1][0].label() == "WHNP":
            yield node[0], *finite_verb(core(node[1][1])[0])


def test_subject_and_verb_agree(trees):
    n_checked = Counter()
    for tree in trees:
        for subject, tag, verb in subjects_and_verbs(tree):
            form = {"was": "VBZ", "were": "VBP"}.get(verb, tag)
            if form in ("VBZ", "VBP"):
                assert is_plural(subject) == (form == "VBP"), tree
                n_checked[form] += 1
    assert min(n_checked["VBZ"], n_checked["VBP"]) > 500


def test_determiner_and_noun_agree(derivations):
    text = "\n".join(derivation.brackets for derivation in derivations)
    pairs = set(re.findall(r"\(DT (\w+)\)[^()]*\((?:NX \()?(NNS?) ", text))
    singular, plural = ("a", "this", "that", "every", "each"), ("these", "those")
    assert {noun for determiner, noun in pairs if determiner in singular} == {"NN"}
    assert {noun for determiner, noun in pairs if determiner in plural} == {"NNS"}
    assert not re.search(r"\(DT a\) [^A-Za-z]*(?:[A-Z$]+ \()*[A-Z]+ [aeiou]", text)


# Options.


def test_longest_sentence():
    lengths = [n_words(each.brackets) for each in generate_derivations(500, seed=2, max_length=10)]
    assert max(lengths) == 10
    assert len(lengths) == 500


def test_invented_words_keep_coming():
    def vocabulary_size(n, **options):
        return len({word for tree in generate(n, seed=1, **options) for word in words(tree)})

    assert vocabulary_size(1000, vocabulary=20_000) > 1.5 * vocabulary_size(500, vocabulary=20_000)
    grammar = synthetic_grammar(vocabulary=20_000)
    assert len({tree.brackets for tree in grammar.initial}) == len(grammar.initial)
    assert len(grammar.initial) == len(synthetic_grammar().initial) + 20_000


@pytest.mark.parametrize(
    "options",
    [{"n": -1}, {"n": 1, "seed": -1}, {"n": 1, "max_length": 2}, {"n": 1, "vocabulary": -1}],
)
def test_impossible_options(options):
    # At once, not when the first tree is asked for.
    with pytest.raises(ValueError, match="must be"):
        generate(**options)


# Scoring.


def test_recovery_of_the_truth_is_perfect(derivations):
    truth = synthetic_fragments()
    used = {without_marks(step) for derivation in derivations for step in derivation.steps}
    score = recovery([step for step in used if "*" not in step], truth)
    assert (score.precision, score.recall, score.f1) == (1, 1, 1)
    insertions = synthetic_fragments(kinds=KINDS_OF_AUXILIARY_TREES)
    assert recovery([step for step in used if "*" in step], insertions).f1 == 1


def test_recovery_counts_types_of_two_rules():
    truth = ["(NP (DT a) (NN ))", "(VP (VBD sat))", "(NN dog)"]
    score = recovery(["(NP  (DT a)(NN))", "(NP (DT a) (NN ))", "(NP (DT the) (NN ))", "(NN cat)"], truth)
    assert (score.n_found, score.n_true, score.n_both) == (2, 2, 1)
    assert (score.precision, score.recall, score.f1) == (0.5, 0.5, 0.5)
    nothing = recovery([], [])
    assert (nothing.precision, nothing.recall, nothing.f1) == (0, 0, 0)


@pytest.mark.parametrize("method", ["right", "left", "centre-head"])
def test_fragments_of_binarized_trees(method):
    binarization = Binarization(method)
    plain, binarized = synthetic_fragments(), synthetic_fragments(binarization.apply)
    assert len(plain) == len(binarized)
    assert plain != binarized
    for before, after in zip(plain, binarized, strict=True):
        tree = Tree.fromstring(after)
        assert max(len(node) for node in preorder(tree)) <= 2
        assert canonical(str(binarization.undo(tree))) == before
    # Whole trees are made of the same pieces: a fragment cut out of a binarised tree is a binarised fragment.
    derivations = generate_derivations(1000, seed=3, insertions=False)
    derivation = next(each for each in derivations if len(each.steps) > 9)
    steps = [canonical(str(binarization.apply(Tree.fromstring(step)))) for step in derivation.steps]
    assert Tree.fromstring(assemble(steps)) == binarization.apply(derivation.tree())
    assert {step for step in steps if n_rules(step) > 1} & set(binarized)


def test_unknown_kind():
    with pytest.raises(ValueError, match="kinds: noun: there are"):
        synthetic_fragments(kinds=["noun"])


# The command.


def test_command_writes_trees_and_truth(tsgkit, tmp_path):
    done = tsgkit("generate", "50", "--seed=3", "--truth=truth.txt")
    expected = list(generate_derivations(50, seed=3))
    assert done.stderr == ""
    assert done.stdout.splitlines() == [derivation.brackets for derivation in expected]
    truth = (tmp_path / "truth.txt").read_text()
    assert truth.splitlines() == ["\t".join(derivation.steps) for derivation in expected]
    assert tsgkit("generate", "50", "--seed=3", "--derivations").stdout == truth
    (tmp_path / "trees.mrg").write_text(done.stdout)
    assert list(read_trees(tmp_path / "trees.mrg")) == list(generate(50, seed=3))


def test_command_passes_its_options_on(tsgkit):
    done = tsgkit("generate", "--no-insertions", "--vocabulary=50", "--max-length=9", "20")
    expected = generate_derivations(20, insertions=False, vocabulary=50, max_length=9)
    assert done.stdout.splitlines() == [derivation.brackets for derivation in expected]
    assert tsgkit("generate", "0").stdout == ""


def test_command_writes_the_grammar(tsgkit):
    lines = [line.split("\t") for line in tsgkit("generate", "--grammar").stdout.splitlines()]
    grammar = synthetic_grammar()
    assert len(lines) == len(grammar.initial + grammar.auxiliary) + len(grammar.insertion_probability)
    assert ["0.25", "insertion", "NX"] in lines
    assert {kind for _, kind, fragment in lines if "kicked) (NP (DT the)" in fragment} == {"idiom"}
    plain = tsgkit("generate", "--grammar", "--no-insertions").stdout.splitlines()
    assert len(plain) == len(grammar.initial)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x"], "N=x: not a whole number"),
        (["-5"], "N=-5: must be at least 0"),
        (["5", "--seed=x"], "--seed=x: not a whole number"),
        (["5", "--seed=-1"], "--seed=-1: must be at least 0"),
        (["5", "--max-length=2"], "--max-length=2: must be at least 8"),
        (["5", "--vocabulary=9999999"], "--vocabulary=9999999: must be at most 1000000"),
        (["5", "--truth=none/truth.txt"], "none/truth.txt: No such file or directory"),
        ([], "Usage:"),
        (["5", "6"], "Usage:"),
    ],
)
def test_command_explains_mistakes(tsgkit, arguments, message):
    done = tsgkit("generate", *arguments, code=2)
    assert message in done.stderr
    assert done.stdout == ""
