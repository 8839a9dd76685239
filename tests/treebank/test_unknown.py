"""Unknown words: the classes of each model, their back-off, and the closed vocabulary."""

import json
import pickle
import re
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsgkit.errors import UsageError
from tsgkit.treebank import Lexicon, UnknownWords
from tsgkit.treebank.unknown import UnknownWordModel, count_words, symbol_word, word_symbol
from tsgkit.treebank.unknown._lexicon import populated
from tsgkit.treebank.unknown._model import ROOT_CLASS, UNKNOWN_WORDS
from tsgkit.treebank.unknown._signature import signature_classes
from tsgkit.treebank.unknown._unicode import unicode_classes

words = st.one_of(
    st.text(),
    st.text("abzABZ01-.'\\ısİßǅäÄ", max_size=8),
    st.text(st.characters(categories=["Cs", "Mn", "Lo", "Nd", "Lu", "Ll"]), max_size=5),
    st.sampled_from(["UNK", "UNK-LC", "\\UNK", "\\\\UNKNOWN", "UN", "\\"]),
)
counts_of_words = st.dictionaries(words, st.integers(1, 9), max_size=30)
all_settings = st.builds(
    UnknownWords,
    st.sampled_from(UNKNOWN_WORDS.names),
    threshold=st.integers(0, 5),
    min_types=st.integers(1, 4),
    max_suffix=st.integers(0, 4),
)


@pytest.mark.parametrize(
    ("word", "position", "expected"),
    [
        # 1. case
        ("Zyx", 0, "UNK-INITC"),
        ("House", 0, "UNK-INITC-KNOWNLC"),
        ("House", 1, "UNK-CAPS"),
        ("HOuse", 0, "UNK-CAPS"),
        ("A", 0, "UNK-INITC"),
        ("4X", 3, "UNK-CAPS-NUM"),
        ("'Abc", 3, "UNK-CAPS"),
        ("iPod", 3, "UNK-LC"),
        ("'em", 3, "UNK-LC"),
        ("zyx", 0, "UNK-LC"),
        ("%", 3, "UNK"),
        ("東京", 3, "UNK"),
        # 2. digits and dashes
        ("12", 3, "UNK-NUM"),
        ("1-2", 3, "UNK-NUM-DASH"),
        ("mid-1980", 3, "UNK-LC-NUM-DASH"),
        ("--", 3, "UNK-DASH"),
        # 3. suffixes
        ("80s", 3, "UNK-LC-NUM-s"),
        ("as", 3, "UNK-LC"),
        ("Xs", 3, "UNK-CAPS"),
        ("dogs", 3, "UNK-LC-s"),
        ("DOGS", 3, "UNK-CAPS-s"),
        ("re-tells", 3, "UNK-LC-DASH-s"),
        ("glass", 3, "UNK-LC"),
        ("basis", 3, "UNK-LC"),
        ("virus", 3, "UNK-LC"),
        ("walked", 3, "UNK-LC-ed"),
        ("shed", 3, "UNK-LC"),
        ("walking", 3, "UNK-LC-ing"),
        ("nation", 3, "UNK-LC-ion"),
        ("Baker", 3, "UNK-CAPS-er"),
        ("oldest", 3, "UNK-LC-est"),
        ("newly", 3, "UNK-LC-ly"),
        ("Quickly", 0, "UNK-INITC-ly"),
        ("ability", 3, "UNK-LC-ity"),
        ("pretty", 3, "UNK-LC-y"),
        ("local", 3, "UNK-LC-al"),
        ("house", 3, "UNK-LC"),
        ("self-made", 3, "UNK-LC-DASH"),
        ("self-styled", 3, "UNK-LC-DASH"),
        ("1234ed", 3, "UNK-LC-NUM-ed"),
        ("X123ed", 3, "UNK-CAPS-NUM"),
    ],
)
def test_signatures(word, position, expected):
    assert signature_classes(word, position == 0, {"house"}, 0)[0] == expected


def test_known_lower_case_means_the_whole_training_vocabulary():
    counts = {"a": 9, "house": 1, "House": 1, "Zyx": 1}
    lexicon = UnknownWords("signature", threshold=1).fit(counts, {"House": 1, "Zyx": 1})
    assert lexicon.lookup("House", 0) == "UNK-INITC-KNOWNLC"
    assert lexicon.classes == {"UNK-INITC": 1, "UNK-INITC-KNOWNLC": 1, "UNK-LC": 1}


def test_a_signature_that_training_lacks_becomes_coarser():
    rare = ["Xyzzy", "Xyz-7", "dashed", "odd", "%"]
    lexicon = UnknownWords("signature", threshold=1).fit(dict.fromkeys(rare, 1))
    assert set(lexicon.classes) == {"UNK-CAPS-y", "UNK-CAPS-NUM-DASH", "UNK-LC-ed", "UNK-LC", "UNK"}
    assert lexicon.lookup("Abbey", 0) == "UNK-CAPS-y"  # -INITC-y -> -CAPS-y
    assert lexicon.lookup("dogs", 1) == "UNK-LC"
    assert lexicon.lookup("mid-90s", 1) == "UNK-LC"
    assert lexicon.lookup("Abba", 1) == "UNK"


def test_without_positions_first_words_are_like_others():
    lexicon = UnknownWords("signature").fit({"Abc": 1, "x": 5})
    assert lexicon.lookup("Def", 0) == lexicon.lookup("Def", 1) == "UNK-CAPS"


def test_three_classes_and_one():
    counts = {"x": 7, "1a": 1, "Rome": 1, "cat": 1}
    three = UnknownWords("three").fit(counts)
    assert [three.lookup(word, 0) for word in ("x", "X2", "Über", "über", "?")] == [
        "x",
        "UNK-NUM",
        "UNK-CAPS",
        "UNK",
        "UNK",
    ]
    assert {UnknownWords("one").fit(counts).lookup(word, 0) for word in ("new", "Rome", "1a")} == {"UNK"}


@pytest.mark.parametrize(
    ("word", "whole", "longest"),
    [
        ("Haus", "UNK-latin-Aa", "*aus"),
        ("IBM", "UNK-latin-AA", "*bm"),
        ("McCoy", "UNK-latin-aA", "*coy"),
        ("e-mail", "UNK-latin-a-dash", "*ail"),
        ("1990s", "UNK-latin-a-num", "*s"),
        ("1,234.5", "UNK-num-punct", ""),
        ("٣٤", "UNK-num", ""),
        ("二十", "UNK-num", ""),
        ("三月", "UNK-cjk", "*月"),
        ("食べた", "UNK-cjk-hiragana", "*べた"),
        ("ガイド", "UNK-katakana", "*イド"),
        ("コーヒー", "UNK-katakana", "*ヒー"),
        ("ｶﾞｲﾄﾞさん", "UNK-hiragana-katakana", "*さん"),
        ("학교에서", "UNK-hangul", "*교에서"),
        ("والكتاب", "UNK-arabic", "*تاب"),
        ("ספרים", "UNK-hebrew", "*רים"),
        ("Москва", "UNK-cyrillic-Aa", "*ква"),
        ("evlerinizden", "UNK-latin-a", "*den"),
        ("U.S.", "UNK-latin-AA-punct", ""),
        ("...", "UNK-punct", ""),
        ("--", "UNK-dash", ""),
        ("€", "UNK-sym", ""),
        ("α-actin", "UNK-greek-latin-a-dash", "*tin"),
        ("a", "UNK-latin-a", ""),
        ("", "UNK", ""),
    ],
)
def test_unicode_classes(word, whole, longest):
    names = unicode_classes(word, False, (), 3)
    assert names[0] == (f"{whole}-{longest}" if longest else whole)
    assert whole in names


def test_a_first_word_known_in_lower_case_is_classed_as_that():
    assert unicode_classes("Häuser", True, {"häuser"}, 2)[0] == "UNK-latin-a-*er"
    assert unicode_classes("Häuser", False, {"häuser"}, 2)[0] == "UNK-latin-Aa-*er"
    assert unicode_classes("Häuser", True, (), 2)[0] == "UNK-latin-Aa-*er"


@given(words, st.booleans(), st.integers(0, 5))
def test_unicode_suffixes_respect_combining_marks(word, is_first, max_suffix):
    composed, decomposed = (unicodedata.normalize(form, word) for form in ("NFC", "NFD"))
    assert unicode_classes(composed, False, (), max_suffix) == unicode_classes(decomposed, False, (), max_suffix)
    for name in unicode_classes("x" + word, is_first, (), max_suffix):
        _, star, suffix = name.partition("-*")
        assert not star or not unicodedata.category(suffix[0]).startswith("M")


def test_small_classes_join_coarser_ones():
    members = [["UNK-a-*ng", "UNK-a-*g", "UNK-a", "UNK"]] * 3
    members += [["UNK-a-*ag", "UNK-a-*g", "UNK-a", "UNK"]] * 2
    members += [["UNK-a-*ug", "UNK-a-*g", "UNK-a", "UNK"]] * 1
    members += [["UNK-a-*x", "UNK-a", "UNK"], ["UNK-num", "UNK"]]
    assert populated(members, 1) == {
        "UNK-a-*ag": 2,
        "UNK-a-*ng": 3,
        "UNK-a-*ug": 1,
        "UNK-a-*x": 1,
        "UNK-num": 1,
    }
    assert populated(members, 3) == {"UNK-a-*g": 3, "UNK-a-*ng": 3, "UNK": 2}
    assert populated(members, 99) == {"UNK": 8}
    assert populated([], 1) == {}


def test_unicode_learns_suffixes():
    nouns = {f"{stem}ung": 1 for stem in ("Heiz", "Les", "Wohn", "Zeit", "Mein")}
    verbs = {f"{stem}en": 1 for stem in ("geh", "les", "wohn", "sag", "mein")}
    lexicon = UnknownWords("unicode", min_types=5).fit({**nouns, **verbs, "die": 9})
    assert lexicon.classes == {"UNK-latin-Aa-*ung": 5, "UNK-latin-a-*en": 5}
    assert lexicon.lookup("Bildung", 1) == "UNK-latin-Aa-*ung"
    assert lexicon.lookup("bilden", 1) == "UNK-latin-a-*en"
    assert lexicon.lookup("Haus", 1) in lexicon.classes  # nothing fits; the largest class takes it


@given(all_settings, counts_of_words, st.data())
def test_lookup_stays_in_the_vocabulary(settings, counts, data):
    first_counts = {word: data.draw(st.integers(0, count)) for word, count in counts.items()}
    lexicon = settings.fit(counts, first_counts)
    for word in [*counts, *data.draw(st.lists(words, max_size=10))]:
        for position in (0, 1):
            symbol, name = lexicon.lookup(word, position), lexicon.classify(word, position)
            assert symbol in lexicon.vocabulary
            assert symbol_word(name) is None
            assert name in lexicon.classes or not lexicon.classes
            assert symbol == (word_symbol(word) if word in lexicon.known else name)


@given(all_settings, counts_of_words)
def test_every_class_occurs_in_training(settings, counts):
    lexicon = settings.fit(counts)
    assert lexicon.replaces == bool(lexicon.rare)
    assert lexicon.rare == {word for word, count in counts.items() if count <= settings.threshold}
    assert lexicon.words == counts.keys()
    symbols = {lexicon.classify(word, 1) for word in lexicon.rare or lexicon.known}
    assert symbols == set(lexicon.classes)
    if settings.model == "unicode":
        small = [name for name, count in lexicon.classes.items() if count < settings.min_types]
        assert set(small) <= {ROOT_CLASS}


@given(all_settings, counts_of_words)
def test_a_lexicon_survives_json_and_pickle(settings, counts):
    lexicon = settings.fit(counts)
    again = Lexicon.from_dict(json.loads(json.dumps(lexicon.to_dict())))
    assert again == lexicon == pickle.loads(pickle.dumps(lexicon))
    assert all(again.lookup(word + "x", 0) == lexicon.lookup(word + "x", 0) for word in counts)


@given(words, words)
def test_no_word_is_taken_for_a_class(one, other):
    assert symbol_word(word_symbol(one)) == one
    assert (word_symbol(one) == word_symbol(other)) == (one == other)
    assert not word_symbol(one).startswith(ROOT_CLASS)


def test_a_training_word_named_like_a_class():
    lexicon = UnknownWords("one").fit({"UNK": 5, "rare": 1})
    assert lexicon.lookup("UNK", 0) == "\\UNK"
    assert lexicon.lookup("rare", 0) == "UNK"
    assert lexicon.vocabulary == {"\\UNK", "UNK"}


def test_nothing_rare():
    lexicon = UnknownWords("three", threshold=0).fit({"cat": 1, "Rome": 1})
    assert not lexicon.replaces
    assert lexicon.lookup("cat", 0) == "cat"
    assert lexicon.lookup("Paris", 0) == lexicon.classify("Rome", 0) == "UNK-CAPS"
    assert UnknownWords().fit({}).lookup("word", 0) == "UNK"


def test_wrong_settings():
    for wrong in ({"model": "two"}, {"threshold": -1}, {"min_types": 0}, {"max_suffix": -1}):
        with pytest.raises(UsageError):
            UnknownWords(**wrong)


@pytest.mark.parametrize("model", UNKNOWN_WORDS.names)
def test_a_million_words_in_seconds(model):
    lexicon = UnknownWords(model).fit({f"word{number}": number % 3 + 1 for number in range(1000)})
    tokens = [f"new{number}ings" for number in range(20_000)] * 50
    started = time.process_time()
    for position, word in enumerate(tokens):
        lexicon.lookup(word, position)
    assert time.process_time() - started < 10


def tagged_sentences(path) -> list[list[tuple[str, str]]]:
    with open(path, encoding="utf-8") as lines:
        return [re.findall(r"\((\S+) ([^\s()]+)\)", line) for line in lines]


def share_of_tags_predicted(settings: UnknownWords, train, dev) -> float:
    """How many unknown words of `dev` have the tag that is most frequent for their class in `train`."""
    lexicon = settings.fit(*count_words([word for _, word in sentence] for sentence in train))
    tags: dict[str, list[str]] = {}
    for sentence in train:
        for position, (tag, word) in enumerate(sentence):
            if word in lexicon.rare:
                tags.setdefault(lexicon.lookup(word, position), []).append(tag)
    best = {name: max(sorted(set(seen)), key=seen.count) for name, seen in tags.items()}
    predictions = [
        best[lexicon.lookup(word, position)] == tag
        for sentence in dev
        for position, (tag, word) in enumerate(sentence)
        if word not in lexicon.known
    ]
    return sum(predictions) / len(predictions)


def test_classes_predict_the_tags_of_new_words(treebanks):
    folder = treebanks / "wsj-sample"
    train, dev = tagged_sentences(folder / "train.mrg"), tagged_sentences(folder / "dev.mrg")
    shares = {model: share_of_tags_predicted(UnknownWords(model), train, dev) for model in UNKNOWN_WORDS.names}
    percent = {model: round(100 * share, 1) for model, share in shares.items()}
    assert percent == {"unicode": 74.2, "signature": 73.1, "three": 46.0, "one": 20.0}  # as the manual says


@pytest.mark.parametrize("names", [[], ["UNK-a"], ["a", "UNK"], ["UNK", "UNK-a"], ["UNK-a", "UNK-a", "UNK"]])
def test_classes_of_a_wrong_model_are_refused(monkeypatch, names):
    monkeypatch.setitem(UNKNOWN_WORDS._loaded, "wrong", UnknownWordModel(lambda *arguments: names))
    with pytest.raises(UsageError, match=r"unknown-word model 'wrong': the classes of 'word' are .* begin with UNK"):
        UnknownWords("wrong").fit({"word": 1})


def test_an_unknown_model_is_named():
    with pytest.raises(UsageError, match="unknown-word model 'two': must be one of unicode, signature, three, one"):
        UnknownWords("two")
    settings = {**UnknownWords().to_dict(), "model": "two"}
    with pytest.raises(UsageError, match="unknown-word model 'two'"):
        UnknownWords.from_dict(settings)
