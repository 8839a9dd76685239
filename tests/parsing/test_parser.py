"""The parser: NLTK's interface, confidence, threads, tags, and a tree for every input."""

import itertools
import pickle
import subprocess
import sys
from math import exp, inf, log

import pytest
from nltk.parse.api import ParserI
from nltk.tree import Tree
from parsing.conftest import ATTACHED, ATTACHMENT, NUMBERS, SENTENCE, model_of, trees_by_enumeration, village_model

import tsgkit
from tsgkit.errors import UsageError
from tsgkit.grammar import WeightedGrammar
from tsgkit.models._cfg import cfg_model
from tsgkit.parsing import Parser
from tsgkit.parsing.objectives import OBJECTIVES
from tsgkit.treebank import Binarization, Cleaning, UnknownWords, load, prepare
from tsgkit.treebank._trees import brackets_of

# ---- NLTK's interface ------------------------------------------------------------------------------------


def test_it_is_an_nltk_parser(parser):
    assert tsgkit.Parser is Parser
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = tsgkit.Nothing
    assert isinstance(parser, ParserI)
    trees = list(parser.parse(SENTENCE))
    assert 1 < len(trees) <= 10
    assert len(set(map(str, trees))) == len(trees)
    assert all(tree.leaves() == SENTENCE and tree.label() == "TOP" for tree in trees)
    assert all(0 < tree.prob() <= 1 for tree in trees)
    assert sum(tree.prob() for tree in trees) <= 1 + 1e-9
    assert parser.parse_one(SENTENCE) == trees[0]
    assert parser.parse_all(SENTENCE) == trees
    of_sentence, of_nothing = parser.parse_sents([SENTENCE, []])
    assert list(of_sentence) == trees
    assert [(tree.label(), len(tree)) for tree in of_nothing] == [("TOP", 0)]
    assert parser.grammar() is parser.model.grammar


@pytest.mark.parametrize("objective", ["mpd", "mpp"])
def test_the_total_is_found_when_it_is_asked_for(model, dev, objective):
    parser = Parser(model, objective=objective)
    parses = [parser.analyse(words) for words in dev[:5]]
    copies = [pickle.loads(pickle.dumps(parse)) for parse in parses]
    for words, parse, copied in zip(dev, parses, copies, strict=False):
        assert parse.log_total == copied.log_total
        if not parse.fallback:
            assert parse.log_total == Parser(model, objective="max-rule").analyse(words).log_total


def test_probabilities_are_those_of_the_trees_given_the_words():
    weights = trees_by_enumeration(ATTACHMENT, NUMBERS)
    expected = sorted((weight / sum(weights.values()) for weight in weights.values()), reverse=True)
    trees = list(Parser(model_of(ATTACHMENT), objective="mpp").parse(ATTACHED))
    assert [tree.prob() for tree in trees] == pytest.approx(expected)
    parse = Parser(model_of(ATTACHMENT), objective="mpp").analyse(ATTACHED, k=10)
    assert parse.log_total == pytest.approx(log(sum(weights.values())))
    for tree, log_probability in zip(parse.trees, parse.log_probabilities, strict=True):
        assert Parser(model_of(ATTACHMENT)).tree_log_probability(tree) == pytest.approx(log_probability)


def test_a_gold_tree_has_the_probability_of_its_rules(model, parser):
    tree = load("village", "train")[0]
    encoded = model.preparation.encode(tree)
    grammar, words = model.grammar, model.preparation.vocabulary_words(encoded.leaves())
    weights = {}
    for kind in ("binary", "unary", "lexical"):
        names = grammar.words if kind == "lexical" else grammar.labels
        for rule, weight in zip(getattr(grammar, kind), getattr(grammar, f"{kind}_weight"), strict=True):
            parent, *children = rule.tolist()
            weights[grammar.labels[parent], *(names[child] for child in children)] = weight
    words.reverse()
    expected = 0.0
    for node in encoded.subtrees():
        is_tag = isinstance(node[0], str)
        children = [words.pop()] if is_tag else [child.label() for child in node]
        expected += log(weights[node.label(), *children])
    assert parser.tree_log_probability(tree) == pytest.approx(expected)


# ---- confidence ------------------------------------------------------------------------------------------


def test_confidence_is_the_probability_of_the_bracket():
    for objective in ("max-rule", "mpd"):
        parser = Parser(model_of(ATTACHMENT), objective=objective)
        parse = parser.analyse(ATTACHED, k=10, confidence=True)
        weights = [exp(value - parse.log_total) for value in parse.log_probabilities]
        assert sum(weights) == pytest.approx(1)
        expected = {}
        for tree, weight in zip(parse.trees, weights, strict=True):
            for bracket in brackets_of(tree):
                expected[bracket] = expected.get(bracket, 0.0) + weight
        assert parse.confidence == pytest.approx(expected)
        assert parse.confidence["TOP", 0, 7] == pytest.approx(1)
        assert 0.1 < parse.confidence["NP", 2, 5] < 0.9
    assert not parser.analyse(ATTACHED).confidence


@pytest.mark.parametrize("unaries", [False, True])
def test_confidence_of_annotated_labels_adds_up(unaries):
    """NP^S and NP^X are both NP, whether chains of phrases are joined or not."""
    trees = [Tree.fromstring(f"({label} (NP (Q (A a))) (VP (B b)))") for label in ("S", "S", "X")]
    corpus = prepare(trees, Cleaning(unaries=unaries), Binarization("right", 1, 2), UnknownWords("one", 0))
    parse = Parser(cfg_model(corpus)).analyse(["a", "b"], k=2, confidence=True)
    one = dict.fromkeys([("TOP", 0, 2), ("NP", 0, 1), ("Q", 0, 1), ("A", 0, 1), ("VP", 1, 2), ("B", 1, 2)], 1.0)
    assert parse.confidence == pytest.approx({**one, ("S", 0, 2): 2 / 3, ("X", 0, 2): 1 / 3})


def test_confidence_of_real_sentences(parser, dev):
    for words in dev[:10]:
        parse = parser.analyse(words, confidence=True)
        if parse.fallback:
            assert not parse.confidence
            continue
        assert set(parse.confidence) == set(brackets_of(parse.tree))
        assert all(0 <= value <= 1 for value in parse.confidence.values())
        assert parse.confidence["TOP", 0, len(words)] == pytest.approx(1)
        for position, (_, tag) in enumerate(parse.tree.pos()):
            assert parse.confidence[tag, position, position + 1] > 0


# ---- many sentences --------------------------------------------------------------------------------------


def comparable(parses):
    return [
        (parse.words, list(map(str, parse.trees)), parse.scores, parse.log_total, parse.fallback) for parse in parses
    ]


@pytest.mark.parametrize(
    "options", [{}, {"objective": "max-rule-sampled", "n_samples": 50}, {"objective": "mpp-sampled"}], ids=str
)
def test_threads_change_nothing(model, dev, options):
    sentences = [(words, None) for words in [*dev[:20], [], ["zorgle"], *dev[20:30]]]
    expected = comparable(Parser(model, **options).parse_batch(sentences, k=2))
    assert [words for words, *_ in expected] == [words for words, _ in sentences]
    for threads in (2, 5):
        assert comparable(Parser(model, **options).parse_batch(sentences, k=2, threads=threads)) == expected
    # Nor does it matter what a chart held before.
    fresh = (Parser(model, **options).analyse(words, k=2, number=number) for number, (words, _) in enumerate(sentences))
    assert comparable(fresh) == expected


def test_samples_depend_on_the_seed_and_the_sentence_number_alone(model, dev):
    words = max(dev, key=len)
    options = {"objective": "mer-sampled", "n_samples": 20}

    def score(seed, number):
        return Parser(model, seed=seed, **options).analyse(words, number=number).scores[0]

    assert score(3, 7) == score(3, 7)
    assert len({score(3, 7), score(4, 7), score(3, 8)}) == 3
    batch = list(Parser(model, seed=3, **options).parse_batch([(words, None)] * 2, first_number=7))
    assert [parse.scores[0] for parse in batch] == [score(3, 7), score(3, 8)]


@pytest.mark.parametrize("threads", [1, 2])
def test_results_stream(parser, threads):
    """An endless input gives results, and only so much of it is read ahead."""
    taken = itertools.count()
    sentences = ((["word", str(next(taken))], None) for _ in itertools.repeat(None))
    results = parser.parse_batch(sentences, threads=threads)
    for number in range(40):
        assert next(results).words == ["word", str(number)]
    results.close()
    assert next(taken) <= 40 + 8 * threads


@pytest.mark.parametrize("threads", [1, 3])
def test_what_comes_before_a_fault_is_parsed(parser, threads):
    def broken():
        for number in range(5):
            yield ["word", str(number)], None
        raise UsageError("the input ends here")

    results = parser.parse_batch(broken(), threads=threads)
    assert [next(results).words[1] for _ in range(5)] == list("01234")
    with pytest.raises(UsageError, match="the input ends here"):
        next(results)


@pytest.mark.parametrize("threads", [1, 2])
def test_wrong_tags_in_a_batch(model, threads):
    sentences = [(["a"], ["DT"]), (["a", "b"], ["DT"])]
    results = Parser(model, tags="hard").parse_batch(sentences, threads=threads)
    assert next(results).words == ["a"]
    with pytest.raises(UsageError, match="1 tags for 2 words"):
        next(results)


# ---- tags ------------------------------------------------------------------------------------------------


def test_tags(model):
    words = ["the", "old", "man", "smiled", "."]

    def tags_found(mode, tags):
        parse = Parser(model, tags=mode).analyse(words, tags)
        assert parse.tree.leaves() == words
        return [tag for _, tag in parse.tree.pos()]

    plain = tags_found("none", None)
    assert plain == ["DT", "JJ", "NN", "VBD", "."]
    forced = ["DT", "NN", "VBP", "VBN", "."]
    assert tags_found("none", forced) == plain
    assert tags_found("hard", forced) == forced
    assert tags_found("hard", [None, "NN", None, None, None])[1] == "NN"
    # Where words can be both, a soft tag decides.
    assert tags_found("soft", plain) == plain
    assert tags_found("soft", ["DT", "JJ", "NN", "VBN", "."])[3] in ("VBN", "VBD")
    assert tags_found("hard", ["NO-SUCH-TAG"] * 5) == plain
    assert tags_found("soft", ["NO-SUCH-TAG"] * 5) == plain


def test_soft_tags_are_preferred_and_not_enforced():
    labels = ["TOP", "A", "B", "C"]
    grammar = WeightedGrammar(
        labels, ["a", "b"], [0, 1, 2, 3], 0,
        unary=[(0, 1), (0, 2)], unary_weight=[0.9, 0.1],
        lexical=[(1, 0), (2, 0), (3, 1)], lexical_weight=[1.0, 0.5, 1.0],
    )  # fmt: skip
    tag = {
        (mode, wanted): Parser(model_of(grammar), tags=mode).analyse(["a"], [wanted]).tree.pos()[0][1]
        for mode in ("hard", "soft")
        for wanted in ("A", "B", "C")
    }
    assert tag["soft", "A"] == tag["hard", "A"] == "A"
    assert tag["soft", "B"] == tag["hard", "B"] == "B"
    # C cannot be the whole sentence: enforced it leaves no analysis, preferred it gives way.
    assert (tag["hard", "C"], tag["soft", "C"]) == ("C", "A")


# ---- every input gets a tree -----------------------------------------------------------------------------

ODD = {
    "brackets": ["(", "the", ")", "[", "-LRB-"],
    "new words": ["zorgle", "blixed", "frimly"],
    "class names": ["UNK", "UNK-LC", "\\UNK", "UNK-latin-a"],
    "slashes": ["and/or", "1\\/2", "/"],
    "blanks inside": ["New York", "a\u00a0b", "\u2028", "", " "],
    "control characters": ["\x00", "a\x1fb", "\x85"],
    "surrogate": ["\ud800"],
    "structural characters": ["@NP", "^", "|", "NP=0.5", "+"],
    "other scripts": ["東京", "Ελλάς", "👍🏽", "ﷺ"],
    "one word": ["."],
    "all the same": ["the"] * 30,
    "long token": ["x" * 100_000, "é" * 10_000],
}


@pytest.mark.parametrize("objective", ["max-rule", "mpd"])
@pytest.mark.parametrize("name", ODD)
def test_odd_sentences(model, name, objective):
    parse = Parser(model, objective=objective).analyse(ODD[name], k=3, confidence=True)
    assert parse.words == ODD[name]
    for tree in parse.trees:
        assert tree.leaves() == ODD[name]
        assert tree.label() == "TOP"


def test_names_of_brackets_are_the_brackets(parser):
    """The treebank writes -LRB-; a sentence may have either."""
    sentence = "the mill ( the old one ) stood .".split()  # noqa: SIM905
    escaped = [{"(": "-LRB-", ")": "-RRB-"}.get(word, word) for word in sentence]
    plain, named = parser.parse_one(sentence), parser.parse_one(escaped)
    assert plain.leaves() == sentence
    assert [tag for _, tag in plain.pos()] == [tag for _, tag in named.pos()]


def test_empty_sentence(parser):
    for words in ([], ()):
        parse = parser.analyse(words, [], k=3, confidence=True)
        assert (parse.fallback, parse.trees, parse.log_total) == ("empty", [Tree("TOP", [])], -inf)
    assert parser.parse_one([]).prob() == 0


def test_fallback_by_the_coarse_grammar(parser, dev):
    """The markovised grammar lacks what the plain one has."""
    coarse = [parse for parse in map(parser.analyse, dev) if parse.fallback]
    assert {parse.fallback for parse in coarse} == {"coarse"}
    plain = Parser(village_model(Binarization("right", 0)), objective="mpd")
    for parse in coarse:
        assert parse.tree.leaves() == parse.words
        assert parse.tree == plain.analyse(parse.words).tree
        assert parse.log_probabilities == parse.scores == [-inf]


def test_glued_parts():
    """No rule spans the words: the fewest parts, and of those the most probable."""
    parse = Parser(model_of(ATTACHMENT)).analyse(["her", "with", "it", "saw", "I", "with"])
    assert parse.fallback == "glued"
    assert parse.tree == Tree.fromstring("(TOP (S (NP (NP her) (PP (P with) (NP it))) (VP (V saw) (NP I))) (P with))")
    assert [tree.prob() for tree in Parser(model_of(ATTACHMENT)).parse(["with"])] == [0]


def test_glued_parts_are_decoded():
    """Intermediate symbols are no parts, and joined chains come apart."""
    trees = [Tree.fromstring("(S (NP (X (D a) (J b) (J b) (N c))) (VP (V d)))")]
    corpus = prepare(trees, Cleaning(unaries=True), Binarization("right", 0, 2), UnknownWords("one", 0))
    parser = Parser(cfg_model(corpus))
    parse = parser.analyse(["b", "c", "a", "b", "c"])
    assert parse.fallback == "glued"
    assert parse.tree == Tree.fromstring("(TOP (J b) (N c) (NP (X (D a) (J b) (N c))))")


def test_flat_trees(model, parser, dev):
    words = dev[0]
    for limited in (Parser(model, max_length=len(words) - 1), Parser(model, max_bytes=1)):
        parse = limited.analyse(words, k=5, confidence=True)
        assert parse.fallback == "flat"
        assert parse.tree.leaves() == words
        assert parse.tree.height() == 3
    assert Parser(model, max_length=len(words)).analyse(words).tree == parser.analyse(words).tree


def test_too_much_memory_for_the_fine_grammar_only(model, dev):
    words = max(dev, key=len)
    kinds = [
        Parser(model, max_bytes=1 << exponent, threshold=0.0).analyse(words).fallback for exponent in range(10, 26)
    ]
    assert [kind for kind, _ in itertools.groupby(kinds)] == ["flat", "coarse", ""]


def test_weights_beyond_the_range_of_floats():
    grammar = WeightedGrammar(
        ["TOP", "A"], ["a"], [0, 1], 0,
        unary=[(0, 1)], unary_weight=[1.0],
        binary=[(1, 1, 1)], binary_weight=[1e-300],
        lexical=[(1, 0)], lexical_weight=[1e-300],
    )  # fmt: skip
    for n_words in (1, 2, 3, 50):
        words = ["a"] * n_words
        for objective in OBJECTIVES.names:
            parse = Parser(model_of(grammar), objective=objective, n_samples=3).analyse(words)
            assert parse.tree.leaves() == words


def test_a_word_whose_only_tag_is_the_root():
    corpus = prepare(
        [Tree.fromstring("(A a)"), Tree.fromstring("(A b)")],
        Cleaning(root=""),
        Binarization("right"),
        UnknownWords("one"),
    )
    parser = Parser(cfg_model(corpus))
    assert parser.analyse(["a"]).tree == Tree("A", ["a"])
    parse = parser.analyse(["a", "new"])
    assert (parse.fallback, parse.tree) == ("glued", Tree.fromstring("(A (A a) (A new))"))


def test_four_hundred_words(dev):
    words = list(itertools.islice(itertools.chain.from_iterable(dev * 2), 400))
    parse = Parser(village_model(Binarization("right", 0))).analyse(words)
    assert not parse.fallback
    assert parse.tree.leaves() == words


MEMORY = """
import resource, sys
from tsgkit.parsing import Parser
model, megabytes, objective, text = sys.argv[1:]
parser = Parser(model, max_bytes=int(megabytes) << 20, objective=objective)
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
words = text.split()
parser.analyse(words[:10])
before = peak()
print(parser.analyse(words).fallback or "ok", peak() - before)
"""


@pytest.mark.parametrize(
    ("bound", "kind", "most"),
    [(("8", "max-rule"), "flat", 16), (("30", "mpd"), "ok", 30), (("40", "max-rule"), "ok", 48)],
)
def test_memory_of_a_sentence_is_bounded(tmp_path, dev, bound, kind, most):
    words = list(itertools.islice(itertools.chain.from_iterable(dev), 200))
    village_model(Binarization("right", 0)).save(tmp_path / "model")
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, tmp_path / "model", *bound, " ".join(words)],
        capture_output=True,
        text=True,
        check=True,
    )
    found, used = done.stdout.split()
    assert found == kind
    assert int(used) <= most


def test_the_bound_has_the_formula_of_the_manual(dev):
    parser = Parser(village_model(Binarization("right", 0)), objective="mpd")
    for words in (dev[0], list(itertools.chain.from_iterable(dev[:12]))):
        parser.analyse(words)
        chart, grammar, n_words = parser._idle_engines.get().chart, parser.grammar(), len(words)
        spans = itertools.combinations(range(n_words + 1), 2)
        items = {(span, symbol) for span in spans for symbol in chart.inside_values(*span)}
        starts = {(start, symbol) for (start, _), symbol in items}
        ends = {(end, symbol) for (_, end), symbol in items}
        # Without a mask, a span can end anywhere after its start, and begin anywhere before its end.
        n_values = sum(n_words - start for start, _ in starts) + sum(end for end, _ in ends)
        n_rows = n_words + 1
        assert chart.n_bytes == (
            16 * n_values
            + 24 * (len(starts) + len(ends))
            + 8.25 * n_rows * 64 * -(-grammar.n_symbols // 64)
            + 16 * n_rows * len(grammar.labels) * -(-n_rows // 64)
            + 32 * n_rows**2
        )


# ---- treebanks of other kinds ----------------------------------------------------------------------------

GREEK = """
(S (NP (AT ο) (NO σκύλος)) (VP (VB τρέχει)) (PT .))
(S (NP (AT η) (NO γάτα)) (VP (VB κοιμάται)) (PT .))
(S (NP (AT ο) (AJ μικρός) (NO σκύλος)) (VP (VB βλέπει) (NP (AT τη) (NO γάτα))) (PT .))
(S (NP (AT η) (NO γάτα)) (VP (VB βλέπει) (NP (AT το) (NO ψάρι))) (PT .))
(S (VP (VB τρέχει)) (PT ;))
"""
CHINESE = """
(IP (NP (PN 我)) (VP (VV 看) (NP (NN 书))) (PU 。))
(IP (NP (PN 他)) (VP (VV 看) (NP (NN 狗))) (PU 。))
(IP (NP (NN 狗)) (VP (VV 跑)) (PU 。))
(IP (NP (PN 我)) (VP (ADVP (AD 不)) (VP (VV 跑))) (PU 。))
(IP (VP (VV 看)) (PU ！))
"""
ONE_TREE = "(S (NP (DT the) (JJ old) (NN dog)) (VP (VBD ran)) (. .))"
ONE_WORD_TREES = "(UH yes)\n(UH no)\n(INTJ (UH yes))\n(TOP hello)"


@pytest.mark.parametrize("text", [GREEK, CHINESE, ONE_TREE, ONE_WORD_TREES], ids=str.split)
@pytest.mark.parametrize(
    ("binarization", "cleaning", "unknown"),
    [
        (Binarization("right", 1, 2), Cleaning(), UnknownWords()),
        (Binarization("centre-head", 0), Cleaning(unaries=True), UnknownWords(threshold=0)),
        (Binarization("left"), Cleaning(root="ROOT"), UnknownWords("signature", threshold=5)),
    ],
    ids=["right", "centre-head", "left"],
)
def test_small_treebanks(text, binarization, cleaning, unknown):
    trees = [Tree.fromstring(line) for line in text.strip().splitlines()]
    corpus = prepare(trees, cleaning, binarization, unknown)
    parser = Parser(cfg_model(corpus))
    for tree in trees:
        words = tree.leaves()
        parse = parser.analyse(words)
        assert not parse.fallback
        assert parse.tree.leaves() == words
        assert parse.tree.label() == cleaning.root
        assert parser.tree_log_probability(tree) > -inf
    for words in (["νέο", "新", "."], trees[0].leaves() * 2, ["x"]):
        for mode, tags in (("none", None), ("hard", ["NN"] * len(words))):
            parse = Parser(parser.model, tags=mode).analyse(words, tags)
            assert parse.tree.leaves() == words
            assert parse.tree.label() == cleaning.root


def test_a_tree_of_the_treebank_comes_back():
    """A treebank of one tree has one sentence, and this tree for it, with every way to prepare it."""
    tree = Tree.fromstring("(S (NP (X (DT the) (JJ old) (JJ red) (NN dog))) (VP (VBD ran)) (. .))")
    for method, horizontal, vertical, unaries in itertools.product(
        ("right", "left", "centre-head"), (None, 0, 1), (1, 2, 3), (False, True)
    ):
        corpus = prepare(
            [tree], Cleaning(unaries=unaries), Binarization(method, horizontal, vertical), UnknownWords("one")
        )
        for objective in ("max-rule", "mpd"):
            parse = Parser(cfg_model(corpus), objective=objective).analyse(tree.leaves())
            assert parse.tree == Tree("TOP", [tree])
