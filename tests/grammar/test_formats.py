"""bitpar and disco-dop files: exact round trips for any name, files by hand, and every error."""

import gzip
import os
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsgkit.grammar import GrammarError, WeightedGrammar
from tsgkit.grammar._formats import NOT_IN_NAMES, NOT_IN_WORDS, by_names, escape, unescape
from tsgkit.grammar.formats import read_bitpar, read_discodop, write_bitpar, write_discodop
from tsgkit.models._cfg import train_cfg
from tsgkit.treebank import Binarization, UnknownWords, load, prepare

many = settings(max_examples=100, deadline=None, derandomize=True)
FORMATS = {"bitpar": (write_bitpar, read_bitpar), "discodop": (write_discodop, read_discodop)}
each_format = pytest.mark.parametrize("form", FORMATS)

NASTY = [
    "",
    " ",
    "#",
    "#0",
    "A#1",
    "A",
    "A#1#2",
    "&",
    "&#",
    "&#;",
    "&#32;",
    "&#38;#32;",
    "&#9999999;",
    "&A#1",
]
NASTY += [
    "Epsilon",
    "-X",
    "e",
    "0.5",
    "(",
    ")",
    "-LRB-",
    "a\tb",
    "a\nb",
    "a\r",
    "\ufeff",
    "\u2028",
    "\u00a0",
    "\0",
]
NASTY += ["\ud800", "&#55296;", "+", "01", "NP^S", "@NP|DT", "\\", "%20", "é", "#LRB#"]
texts = st.one_of(
    st.sampled_from(NASTY),
    st.text("A#1&;38 \t\n()+", max_size=8),
    st.text(st.characters(exclude_categories=()), max_size=4),
)
weights = st.floats(1e-300, 0.1, exclude_min=False)


@st.composite
def grammars(draw, labels=texts):
    """Grammars of all kinds of rules; several symbols may share a label, and the last may have none."""
    names = draw(st.lists(labels, min_size=1, max_size=4, unique=True))
    words = draw(st.lists(texts, max_size=4, unique=True))
    label = draw(st.lists(st.integers(0, len(names) - 1), min_size=1, max_size=5))
    symbols = st.integers(0, len(label) - 1)
    root = draw(symbols)
    rules = {
        "binary": [
            (root, draw(symbols), draw(symbols)),
            *draw(st.lists(st.tuples(symbols, symbols, symbols))),
        ],
        "unary": draw(st.lists(st.tuples(symbols, symbols), max_size=3, unique=True)),
        "bridge": [
            pair
            for pair in draw(st.lists(st.tuples(symbols, symbols), max_size=3, unique=True))
            if label[pair[0]] == label[pair[1]]
        ],
        "lexical": [],
    }
    if draw(st.booleans()):
        bare = len(label)
        label.append(-1)
        rules["bridge"] += [(bare, symbol) for symbol in draw(st.sets(symbols, min_size=1))]
        rules["binary"].append((root, bare, draw(symbols)))
    if words:
        rules["lexical"] = draw(st.lists(st.tuples(symbols, st.integers(0, len(words) - 1)), max_size=8))
    arrays = dict(rules)
    for kind, found in rules.items():
        arrays[f"{kind}_weight"] = draw(st.lists(weights, min_size=len(found), max_size=len(found)))
    return WeightedGrammar(labels=names, words=words, label=label, root=root, **arrays)


def has_unique_names(grammar):
    return len({grammar.name_of(symbol) for symbol in range(grammar.n_symbols)}) == grammar.n_symbols


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder for many small files, which need not survive a power cut."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        yield tmp_path_factory.mktemp("formats")


@pytest.fixture(scope="module")
def pcfg():
    corpus = prepare(
        load("village", "train"),
        binarization=Binarization("right", horizontal=1, vertical=2),
        unknown=UnknownWords("signature"),
    )
    return train_cfg(corpus)


def bridged():
    """A label with two symbols, a bridge, and a unary rule between symbols of the same label."""
    return WeightedGrammar(
        labels=["S", "NP"],
        words=["dogs", "cats"],
        label=[0, 1, 1],
        root=0,
        unary=[(0, 1), (2, 1)],
        unary_weight=[1.0, 0.25],
        bridge=[(1, 2)],
        bridge_weight=[0.5],
        lexical=[(1, 0), (2, 0), (2, 1)],
        lexical_weight=[0.5, 0.5, 0.25],
    )


def read_text(folder, form, rules, lexicon="", **options):
    """Read a grammar from the text of its two files."""
    for name, text in (("rules", rules), ("lexicon", lexicon)):
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return FORMATS[form][1](folder / "rules", folder / "lexicon", **options)


# ---- round trips -------------------------------------------------------------------------------------------


@many
@given(texts)
def test_any_text_survives_the_escape(text):
    for special in (NOT_IN_NAMES, NOT_IN_WORDS):
        written = escape(text, special)
        assert unescape(written) == text
        assert written
        assert not re.search(r"\s", written)
        written.encode()
    assert not set("()") & set(escape(text))


@each_format
@many
@given(grammar=grammars())
def test_round_trip(form, folder, grammar):
    write, read = FORMATS[form]
    rules, lexicon = folder / "rules", folder / "lexicon"
    if not has_unique_names(grammar):
        with pytest.raises(GrammarError, match="two symbols are called"):
            write(grammar, rules, lexicon)
        return
    write(grammar, rules, lexicon)
    back = read(rules, lexicon)
    assert by_names(back) == by_names(grammar)
    first = rules.read_bytes(), lexicon.read_bytes()
    write(back, rules, lexicon)
    assert (rules.read_bytes(), lexicon.read_bytes()) == first


@each_format
def test_trained_grammar_round_trips(form, folder, pcfg):
    write, read = FORMATS[form]
    write(pcfg, folder / "rules.gz", folder / "lexicon.xz")
    back = read(folder / "rules.gz", folder / "lexicon.xz")
    assert by_names(back) == by_names(pcfg)
    assert back.n_rules == pcfg.n_rules > 1000
    assert back.report().is_proper
    assert (folder / "rules.gz").read_bytes()[:2] == b"\x1f\x8b"


@each_format
def test_names_that_do_not_hold_the_label_need_label_of(form, folder):
    grammar = bridged()
    grammar.names = ["root", "left", "right"]
    write, read = FORMATS[form]
    write(grammar, folder / "rules", folder / "lexicon")
    labels = {"root": "S", "left": "NP", "right": "NP"}
    assert by_names(read(folder / "rules", folder / "lexicon", label_of=labels.get)) == by_names(grammar)


def test_by_names_sees_every_difference():
    changes = [
        {"unary_weight": [1.0, 0.125]},
        {"words": ["dogs", "cows"]},
        {"labels": ["S", "N"]},
        {"root": 1},
    ]
    seen = by_names(bridged())
    for change in changes:
        grammar = bridged()
        fields = {name: getattr(grammar, name) for name in grammar.__dataclass_fields__}
        assert by_names(WeightedGrammar(**{**fields, **change})) != seen


# ---- files by hand -----------------------------------------------------------------------------------------


def test_bitpar_files_as_written(folder):
    write_bitpar(bridged(), folder / "rules", folder / "lexicon")
    assert (folder / "rules").read_text() == "1.0\tS\tNP#0\n0.5\tNP#0\tNP#1\n+0.25\tNP#1\tNP#0\n"
    assert (folder / "lexicon").read_text() == "cats\tNP#1 0.25\ndogs\tNP#0 0.5\tNP#1 0.5\n"


def test_discodop_files_as_written(folder):
    write_discodop(bridged(), folder / "rules", folder / "lexicon")
    assert (folder / "rules").read_text() == "S\tNP#0\t0\t1.0\nNP#0\tNP#1\t0\t0.5\nNP#1\tNP#0\t0\t+0.25\n"
    assert (folder / "lexicon").read_text() == "cats\tNP#1 0.25\ndogs\tNP#0 0.5\tNP#1 0.5\n"


def test_bitpar_by_hand(folder):
    rules = "\ufeff2 S NP VP\r\n\n1.5e0\tVP  V \n0x1p-1 NP V V\n1 VP V\n"
    lexicon = "saw\tV 3 NP .5\n\nNew York\tNP\t2\nsaw\tN#1 1\n"
    grammar = read_text(folder, "bitpar", rules, lexicon)
    assert by_names(grammar) == {
        "root": {"S": "S"},
        "labels": {"S": "S", "NP": "NP", "VP": "VP", "V": "V", "N#1": "N"},
        "binary": {("S", "NP", "VP"): 2.0, ("NP", "V", "V"): 0.5},
        "unary": {("VP", "V"): 2.5},
        "bridge": {},
        "lexical": {("V", "saw"): 3.0, ("NP", "saw"): 0.5, ("NP", "New York"): 2.0, ("N#1", "saw"): 1.0},
    }


def test_discodop_by_hand(folder):
    rules = "S\tNP\tVP\t01\t1/2\nNP\tNN\t0\t0x1.0000000000000p-2\nS\tVP\t0\t0.5\n"
    lexicon = "is\tVP 1/4\nJohn\tNN\t1/2\trare&#32;tag 1e-3\n(\tNN 0.5\n"
    grammar = read_text(folder, "discodop", rules, lexicon)
    assert by_names(grammar) == {
        "root": {"S": "S"},
        "labels": {name: name for name in ("S", "NP", "VP", "NN", "rare tag")},
        "binary": {("S", "NP", "VP"): 0.5},
        "unary": {("NP", "NN"): 0.25, ("S", "VP"): 0.5},
        "bridge": {},
        "lexical": {
            ("VP", "is"): 0.25,
            ("NN", "John"): 0.5,
            ("rare tag", "John"): 1e-3,
            ("NN", "("): 0.5,
        },
    }


def test_the_root_can_be_named(folder):
    grammar = read_text(folder, "bitpar", "1 NP N\n1 S NP\n", "a\tN 1\n", root="S")
    assert grammar.name_of(grammar.root) == "S"
    assert read_text(folder, "bitpar", "1 NP N\n", "a\tS 1\n", root="S").name_of(2) == "S"


def test_unary_rules_within_a_label_are_bridges_unless_told_otherwise(folder):
    rules = "1 S A#1\n0.5 A#1 A#2\n+0.25 A#2 A#1\n"
    as_bridges = by_names(read_text(folder, "bitpar", rules, "a\tA#2 1\n"))
    assert as_bridges["bridge"] == {("A#1", "A#2"): 0.5}
    assert as_bridges["unary"] == {("S", "A#1"): 1.0, ("A#2", "A#1"): 0.25}
    as_rules = by_names(read_text(folder, "bitpar", rules, "a\tA#2 1\n", bridges=False))
    assert as_rules["bridge"] == {}
    assert as_rules["unary"] == {**as_bridges["bridge"], **as_bridges["unary"]}


def test_label_of_replaces_the_rule_for_labels(folder):
    rules = "S@1\tNP@2\tNP@3\t01\t1\nNP@2\tNP\t0\t0.5\n"
    grammar = read_text(folder, "discodop", rules, "a\tNP 1\tNP@3 1\n", label_of=lambda name: name.partition("@")[0])
    assert by_names(grammar)["labels"] == {"S@1": "S", "NP@2": "NP", "NP@3": "NP", "NP": "NP"}
    assert list(by_names(grammar)["bridge"]) == [("NP@2", "NP")]


def test_frequencies_become_relative(folder):
    grammar = read_text(folder, "bitpar", "3 S A A\n1 S A\n2 A A A\n", "a\tA 5\nb\tA 1\tS 4\n", normalize=True)
    assert grammar.report().is_proper
    assert by_names(grammar)["binary"] == {("S", "A", "A"): 0.375, ("A", "A", "A"): 0.25}
    assert by_names(grammar)["lexical"]["S", "b"] == 0.5


def test_scaled_weights_normalize_to_the_grammar(folder, pcfg):
    write_bitpar(pcfg, folder / "rules", folder / "lexicon", scale=2.0**40)
    scaled = read_bitpar(folder / "rules", folder / "lexicon", bridges=False, normalize=True)
    assert scaled.lexical_weight.min() > 0
    for kind in ("binary", "unary", "lexical"):
        expected = by_names(pcfg)[kind]
        assert by_names(scaled)[kind] == pytest.approx(expected, rel=1e-12)


def test_names_that_discodop_would_misread(folder):
    """A first line that starts with one of ``-.e0-9`` means bitpar; Epsilon is a symbol of its own."""
    grammar = WeightedGrammar(
        labels=["-X-", "Epsilon"], words=["Epsilon"], label=[0, 1], root=0,
        unary=[(0, 1)], unary_weight=[1.0], lexical=[(1, 0)], lexical_weight=[1.0],
    )  # fmt: skip
    write_discodop(grammar, folder / "rules", folder / "lexicon")
    assert (folder / "rules").read_text() == "&#45;X-\t&#69;psilon\t0\t1.0\n"
    assert (folder / "lexicon").read_text() == "Epsilon\t&#69;psilon 1.0\n"
    assert by_names(read_discodop(folder / "rules", folder / "lexicon")) == by_names(grammar)


# ---- errors ------------------------------------------------------------------------------------------------

BAD_RULES = [
    ("bitpar", "1 S A\nS A B\n", "rules:2: weight 'S': not a number"),
    ("bitpar", "1 S A\n1 S\n", "rules:2: a rule needs a parent and one or two children"),
    ("bitpar", "1 S A\n\n1 S A B C\n", "rules:3: 3 children: at most two; binarise the grammar first"),
    ("bitpar", "-1 S A\n", "rules:1: weight -1: must be finite and greater than zero"),
    ("bitpar", "0 S A\n", "rules:1: weight 0: must be finite and greater than zero"),
    ("bitpar", "1e999 S A\n", "rules:1: weight 1e999: must be finite and greater than zero"),
    ("bitpar", "0x1p9999 S A\n", "rules:1: weight 0x1p9999: must be finite and greater than zero"),
    ("bitpar", "1e-999 S A\n", "rules:1: weight 1e-999: must be finite and greater than zero"),
    ("bitpar", "1_0 S A\n", "rules:1: weight '1_0': not a number"),
    ("bitpar", "1/2 S A\n", "rules:1: weight '1/2': not a number"),
    ("bitpar", b"1 S A\n1 S \xe4\n", "rules:2: byte E4 is not UTF-8; convert the file"),
    ("bitpar", "1 S A\n1 S\u0660 A\n\u0661 S A\n", "rules:3: weight '\u0661': not a number"),
    ("bitpar", "\n", "rules: there are no rules in the file"),
    ("discodop", "", "rules: there are no rules in the file"),
    (
        "discodop",
        "S A B 01 1\n",
        "rules:1: not a rule: parent, children, yield function and weight, with a tab",
    ),
    ("discodop", "S\tA\t\t0\t1\n", "rules:1: not a rule"),
    ("discodop", "S\t0\t1\n", "rules:1: a rule needs a parent and one or two children"),
    (
        "discodop",
        "S\tA\tB\t0,1\t1\n",
        "rules:1: yield function '0,1': must be 0 for one child and 01 for two",
    ),
    ("discodop", "S\tA\tB\t10\t1\n", "rules:1: yield function '10'"),
    ("discodop", "S\tA\tB\t0\t1\n", "rules:1: yield function '0'"),
    ("discodop", "S\tA\t01\t1\n", "rules:1: yield function '01'"),
    ("discodop", "S\tA\tB\tC\t012\t1\n", "rules:1: 3 children: at most two"),
    ("discodop", "S\tA\t0\t-1/2\n", "rules:1: weight -1/2: must be finite and greater than zero"),
    ("discodop", "S\tA\t0\t1/0\n", "rules:1: weight 1/0: must be finite and greater than zero"),
    ("discodop", "S\tA\t0\t1/2/3\n", "rules:1: weight '1/2/3': not a number"),
    ("discodop", "S\tA\t0\tnan\n", "rules:1: weight 'nan': not a number"),
    ("discodop", "S\tA\t0\t1\nA\tS\t0\t1\n", "rules: the sum over a cycle of unary rules and bridges does not"),
]


@pytest.mark.parametrize(("form", "rules", "problem"), BAD_RULES)
def test_bad_rules(tmp_path, form, rules, problem):
    with pytest.raises(GrammarError) as caught:
        read_text(tmp_path, form, rules, "a\tA 1\n")
    assert str(caught.value).startswith(f"{tmp_path}/{problem}")


@each_format
@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("b", "not an entry: a word and a tab, then pairs of a tag and its weight"),
        ("b\t", "not an entry"),
        ("b A 1", "not an entry"),
        ("\tA 1", "not an entry"),
        ("b\tA", "not an entry"),
        ("b\tA 1\tB", "not an entry"),
        ("b\tA x", "weight 'x': not a number"),
        ("b\tA -1", "weight -1: must be finite and greater than zero"),
        (b"b\xff\tA 1", "byte FF is not UTF-8"),
    ],
)
def test_bad_entries(tmp_path, form, line, problem):
    rules = "1 S A\n" if form == "bitpar" else "S\tA\t0\t1\n"
    line = line if isinstance(line, bytes) else line.encode()
    with pytest.raises(GrammarError, match=re.escape(f"lexicon:2: {problem}")):
        read_text(tmp_path, form, rules, b"a\tA 1\n" + line + b"\n")


@each_format
def test_missing_root(tmp_path, form):
    rules = "1 S A\n" if form == "bitpar" else "S\tA\t0\t1\n"
    with pytest.raises(GrammarError, match="rules: no symbol is called 'TOP': the root must have rules"):
        read_text(tmp_path, form, rules, "a\tA 1\n", root="TOP")


def test_damaged_gzip(tmp_path):
    with pytest.raises(GrammarError, match="rules: the compressed file is damaged"):
        read_text(tmp_path, "bitpar", gzip.compress(b"1 S A\n" * 100)[:-9])


@each_format
def test_what_cannot_be_written_leaves_the_old_files(tmp_path, form):
    rules, lexicon = tmp_path / "rules", tmp_path / "lexicon"
    rules.write_text("old")
    lexical_root = WeightedGrammar(["S"], ["a"], [0], 0, lexical=[(0, 0)], lexical_weight=[1.0])
    for grammar, problem in ((lexical_root, "the root 'S' has no binary"),):
        with pytest.raises(GrammarError, match=problem):
            FORMATS[form][0](grammar, rules, lexicon)
    assert rules.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["rules"]
