"""The kernel against the oracle on random and on damaged trees."""

from dataclasses import replace

from hypothesis import example, given, settings
from hypothesis import strategies as st
from reference.evalb import score_files, score_line

from tsgkit.evaluation import Parameters, evaluate, load_parameters
from tsgkit.evaluation._evalb import score

LABELS = ["S", "NP", "NP-SBJ", "S=2", "ADVP", "PRT", "PRT-1", "TOP", "", "-NONE-", "A|B", "日本"]
TAGS = ["NN", "DT", ",", ".", ":", "``", "''", "POS", "-NONE-", "ADVP", "PRT", "NN-1", ""]
WORDS = ["a", "b", "'", '"', "/", "é", ""]

SETTINGS = [
    load_parameters("collins"),
    load_parameters("new"),
    replace(load_parameters("new"), labeled=False),
    # Equality that is not transitive: which bracket takes which then depends on the order.
    Parameters(
        eq_labels=(("S", "NP"), ("NP", "ADVP"), ("TOP", "PRT")),
        delete_labels=("TOP",),
        eq_words=(("a", "b"),),
    ),
    Parameters(quote_labels=("NN", "''", "DT"), delete_labels=("''", "DT", "NN-1")),
]

tagged = st.builds("({} {})".format, st.sampled_from(TAGS), st.sampled_from(WORDS))
trees = st.recursive(
    tagged,
    lambda inner: st.builds(
        lambda label, children, gap: f"({label}{gap}{gap.join(children)})",
        st.sampled_from(LABELS),
        st.lists(inner, max_size=5),
        st.sampled_from([" ", "", "\t\r"]),
    ),
    max_leaves=25,
)


@st.composite
def pairs_over_the_same_words(draw):
    """Two trees over one list of words, sometimes with other tags."""
    words = draw(st.lists(st.tuples(st.sampled_from(TAGS), st.sampled_from(WORDS)), min_size=1, max_size=12))
    retag = draw(st.booleans())
    tests = [(draw(st.sampled_from(TAGS)) if retag and word in "'\"/" else tag, word) for tag, word in words]
    return tuple(draw(bracketings(tagged_words)) for tagged_words in (words, tests))


@st.composite
def bracketings(draw, tagged_words):
    nodes = [f"({tag} {word})" for tag, word in tagged_words]
    for _ in range(draw(st.integers(1, 12))):
        start = draw(st.integers(0, len(nodes) - 1))
        end = draw(st.integers(start + 1, len(nodes)))
        nodes[start:end] = [f"({draw(st.sampled_from(LABELS))} {' '.join(nodes[start:end])})"]
    return f"(TOP {' '.join(nodes)})"


def check(gold: bytes, test: bytes, parameters: Parameters) -> None:
    evaluation = score("gold", gold + b"\n", "test", test + b"\n", parameters)
    row, n_errors = score_line(gold, test, parameters)
    assert list(evaluation.iterate_rows()) == [row]
    assert evaluation.n_errors == n_errors


# Deleted words that differ at the same positions: the other words are aligned all the same.
@example("(S (NN b) (, a) (, b) (NN a) (NN '))", "(S (NN b) (, a) (, a) (NN a) (NN '))", SETTINGS[1])
@given(trees, trees, st.sampled_from(SETTINGS))
def test_any_two_trees(gold, test, parameters):
    check(gold.encode(), test.encode(), parameters)


@settings(max_examples=300)
@given(pairs_over_the_same_words(), st.sampled_from(SETTINGS))
def test_two_trees_over_the_same_words(pair, parameters):
    check(pair[0].encode(), pair[1].encode(), parameters)


@given(pairs_over_the_same_words(), st.data(), st.sampled_from(SETTINGS))
def test_damaged_trees(pair, data, parameters):
    damaged = []
    for tree in pair:
        place = data.draw(st.integers(0, len(tree)))
        n_lost = data.draw(st.integers(0, 3))
        inserted = data.draw(st.sampled_from(["", "(", ")", "))", "x", " "]))
        damaged.append(tree[:place] + inserted + tree[place + n_lost :])
    check(damaged[0].encode(), damaged[1].encode(), parameters)


@given(st.text(alphabet="()  \tNPa-='", max_size=40), st.text(alphabet="()  \tNPa-='", max_size=40))
def test_anything_made_of_brackets(gold, test):
    check(gold.encode(), test.encode(), load_parameters("new"))


some_bytes = st.binary(max_size=200) | st.text(alphabet="()  \t\nNa-='\0\ufeffé", max_size=80).map(str.encode)


@settings(max_examples=300)
@given(some_bytes, some_bytes, st.sampled_from(SETTINGS))
def test_any_bytes(gold, test, parameters):
    """Files that need not be text, with any number of lines each."""
    evaluation = score("gold", gold, "test", test, parameters)
    expected = score_files(gold, test, parameters)
    assert list(evaluation.iterate_rows()) == expected.rows
    assert evaluation.n_errors == len(evaluation.problems) == sum(expected.n_errors)
    strict = evaluation.strict
    assert (strict.gold, strict.test, strict.words) == (expected.gold, expected.test, expected.words)
    unpaired = expected.gold - sum(row[8] for row in expected.rows)
    assert evaluation.aligned.gold == sum(row[12] for row in expected.rows) + unpaired
    assert evaluation.aligned.matched == sum(row[11] for row in expected.rows)
    assert len(evaluation.table().splitlines()) == 3 + len(expected.rows) + 2
    assert [tuple(row.values())[1:] for row in evaluation.to_dict()["sentences"]] == expected.rows


@given(some_bytes, some_bytes, st.sampled_from(SETTINGS))
def test_any_bytes_that_stop_the_scoring(gold, test, parameters):
    """Up to the line at which it stops, the rows are the same."""
    expected = score_files(gold, test, parameters)
    evaluation = score("gold", gold, "test", test, parameters, stop_on_errors=True)
    n_rows = len(list(evaluation.iterate_rows()))
    assert list(evaluation.iterate_rows()) == expected.rows[:n_rows]
    if evaluation.stopped:
        kinds = {problem.kind for problem in evaluation.problems if problem.line == n_rows + 1}
        assert "stray text" in kinds or (kinds and evaluation.n_errors >= parameters.max_error + 2)
    else:
        assert n_rows == len(expected.rows)
        assert sum(expected.n_errors) < parameters.max_error + 2


@given(st.lists(pairs_over_the_same_words() | st.tuples(trees, trees), max_size=6), st.integers(-2, 4))
def test_the_line_at_which_scoring_stops(pairs, max_error):
    """It is that of error number MAX_ERROR + 2, and it has no row."""
    parameters = replace(load_parameters("new"), max_error=max_error)
    gold, test = ("".join(f"{pair[side]}\n" for pair in pairs).encode() for side in (0, 1))
    expected = score_files(gold, test, parameters)
    totals = [sum(expected.n_errors[: number + 1]) for number in range(len(pairs))]
    n_rows = sum(total < max(max_error + 2, 1) for total in totals)
    evaluation = score("gold", gold, "test", test, parameters, stop_on_errors=True)
    assert list(evaluation.iterate_rows()) == expected.rows[:n_rows]
    assert evaluation.stopped == (n_rows < len(pairs))


@given(st.lists(pairs_over_the_same_words(), max_size=5))
def test_sums_are_the_sums_of_the_rows(pairs):
    evaluation = evaluate([gold for gold, _ in pairs], [test for _, test in pairs])
    rows = evaluation.sentences
    valid = rows[rows["status"] == 0]
    for name in ("gold", "test", "matched", "crossing", "words", "tags"):
        assert getattr(evaluation.all, name) == valid[name].sum()
    complete = (valid["matched"] == valid["gold"]) & (valid["matched"] == valid["test"])
    assert evaluation.all.complete == evaluation.strict.complete == complete.sum()
    assert evaluation.all.no_crossing == (valid["crossing"] == 0).sum()
    assert evaluation.all.two_or_less_crossing == (valid["crossing"] <= 2).sum()
    assert evaluation.strict.gold == rows["all_gold"].sum()
    assert evaluation.strict.test == rows["all_test"].sum()
    assert evaluation.strict.matched == evaluation.all.matched
    for name in ("gold", "test", "matched", "words", "tags"):
        assert getattr(evaluation.aligned, name) == rows[f"aligned_{name}"].sum()
    if evaluation.all.valid == len(pairs):
        assert evaluation.strict.f1 == evaluation.f1
    by_label = evaluation.by_label()
    assert sum(score.gold for score in by_label) == evaluation.all.gold
    assert sum(score.matched_gold for score in by_label) == evaluation.all.matched
    assert sum(score.matched_test for score in by_label) == evaluation.all.matched
    by_length = evaluation.by_length()
    assert sum(score.matched for score in by_length) == evaluation.all.matched
    assert sum(score.sentences for score in by_length) == len(pairs)


def test_a_matched_bracket_of_a_malformed_tree_can_cross():
    """The unclosed A gets an end by four restored quotation marks, 3, which is inside of B."""
    gold = "(A (X a) (B (X b) ('' ') ('' ') ('' ') ('' ')) (X c)"
    test = "(A (X a) (B (X b) (POS ') (POS ') (POS ') (POS ')) (X c))"
    check(gold.encode(), test.encode(), load_parameters("new"))
    (row,) = evaluate([gold], [test], "new").iterate_rows()
    assert row[1:6] == (1, 1, 2, 2, 1)


def test_sentences_that_are_complete_and_that_cross():
    right = ["(S (A a) (B b))", "(S (A a) (X (A a) (X (A a) (A a))))", "(S (A a) (X (A a) (X (A a) (X (A a) (A a)))))"]
    left = ["(S (A a) (B b))", "(S (X (X (A a) (A a)) (A a)) (A a))", "(S (X (X (X (A a) (A a)) (A a)) (A a)) (A a))"]
    evaluation = evaluate(right, left)
    assert evaluation.sentences["crossing"].tolist() == [0, 2, 3]
    assert (evaluation.all.no_crossing, evaluation.all.two_or_less_crossing) == (1, 2)
    # One bracket too few, one too many: neither is complete.
    for pair in (("(S (X (A a) (B b)))", "(S (A a) (B b))"), ("(S (A a) (B b))", "(S (X (A a) (B b)))")):
        evaluation = evaluate(*([tree, right[0]] for tree in pair))
        assert evaluation.all.complete == evaluation.strict.complete == 1
