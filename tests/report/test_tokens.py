"""Text into words: as the words of the training trees show."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsgkit.models._cfg import cfg_model
from tsgkit.report._tokens import PennTokenizer, WordTokenizer, tokenizer_of, word_counts
from tsgkit.treebank import Binarization, UnknownWords, load, prepare
from tsgkit.treebank._brackets import read_brackets

FRENCH = {"l'": 40, "d'": 30, "homme": 3, "dort": 2, "aujourd'hui": 4, ".": 90, ",": 80, "le": 50, "2,5": 1, "-t-il": 2}
CHINESE = {"我": 20, "喜欢": 9, "北京": 5, "大学": 4, "北京大学": 3, "。": 30, "学": 2, "生": 1}


@pytest.mark.parametrize(
    ("counts", "text", "expected"),
    [
        (FRENCH, "L'homme dort aujourd'hui.", ["L'", "homme", "dort", "aujourd'hui", "."]),
        (FRENCH, "d'eau, 2,5 et 3,75", ["d'", "eau", ",", "2,5", "et", "3,75"]),
        (FRENCH, "dort-t-il", ["dort", "-t-il"]),
        (FRENCH, "rendez-vous", ["rendez-vous"]),
        (FRENCH, "(quoi ?!)", ["(", "quoi", "?", "!", ")"]),
        (FRENCH, "hommes", ["hommes"]),
        (FRENCH, "non...", ["non", "..."]),
        (CHINESE, "我喜欢北京大学。", ["我", "喜欢", "北京大学", "。"]),
        (CHINESE, "我喜欢 北京", ["我", "喜欢", "北京"]),
        (CHINESE, "我喜欢Linux。", ["我", "喜欢", "Linux", "。"]),
        (FRENCH, "", []),
        (FRENCH, " \t\n", []),
    ],
)
def test_words(counts, text, expected):
    assert WordTokenizer(counts).tokenize(text) == expected


@given(text=st.text(max_size=60))
def test_nothing_is_lost_but_spaces(text):
    for counts in (FRENCH, CHINESE):
        words = WordTokenizer(counts).tokenize(text)
        assert "".join(words) == "".join(text.split())
        assert all(words)


def test_long_input_takes_no_long_time():
    text = "'".join("l" * 3 for _ in range(3000))
    assert "".join(WordTokenizer(FRENCH).tokenize(text)) == text


def model_of(trees, **options):
    return cfg_model(prepare(trees, binarization=Binarization("right", 0), unknown=UnknownWords(**options)))


def test_the_treebank_decides():
    assert isinstance(tokenizer_of(model_of(load("village", "dev"))), PennTokenizer)
    french = list(read_brackets(["(S (NP (D l') (N homme)) (V dort))", "(S (NP (D l') (N eau)) (V dort))"]))
    found = tokenizer_of(model_of(french))
    assert isinstance(found, WordTokenizer)
    assert found.tokenize("l'homme dort") == ["l'", "homme", "dort"]


def test_sentences_of_the_treebank_are_found_again():
    """Most training sentences, written without the spaces that people do not write, give the same words."""
    trees = list(load("village", "dev"))
    model = model_of(trees)
    counts = word_counts(model)
    assert counts["the"] >= 1
    tokenizer = tokenizer_of(model)
    sentences = [tree.leaves() for tree in trees]
    same = 0
    for words in sentences:
        text = " ".join(words)
        for sign in (".", ",", "?", "!", "n't", "'s", "'ll", "'re", "'d", "'m", "'ve"):
            text = text.replace(f" {sign}", sign)
        same += tokenizer.tokenize(text) == words
    assert same / len(sentences) > 0.9
