"""Sentences beyond the fixed buffers of EVALB.

They hold 200 words and brackets, 20 quotes, 5,000 characters of a line, 30 of a label, 100 of a word.
"""

import random

from reference.evalb import score_line

from tsgkit.evaluation import evaluate, load_parameters


def row(gold: str, test: str) -> tuple[int, ...]:
    return next(evaluate([gold], [test]).iterate_rows())[:8]


def right_branching(n_words: int) -> str:
    return "".join(f"(VP (X w{number}) " for number in range(n_words)) + ")" * n_words


def left_branching(n_words: int) -> str:
    return "(VP " * n_words + "".join(f"(X w{number}))" for number in range(n_words))


def test_3000_flat_words():
    words = " ".join(f"(X w{number})" for number in range(3000))
    assert row(f"(S {words})", f"(S (NP {words}))") == (3000, 0, 1, 1, 2, 0, 3000, 3000)


def test_random_trees_of_300_words():
    generator = random.Random(1)
    for _ in range(3):
        gold, test = (random_tree(generator, 0, 300) for _ in range(2))
        expected, _ = score_line(gold.encode(), test.encode(), load_parameters("collins"))
        assert row(gold, test) == expected[:8]
        # Two random trees over 300 words cross in most brackets; a test without crossings would say nothing.
        assert expected[5] > 100


def random_tree(generator: random.Random, start: int, end: int) -> str:
    if end - start == 1:
        return f"(X w{start})"
    split = generator.randrange(start + 1, end)
    label = generator.choice(["S", "NP", "VP"])
    return f"({label} {random_tree(generator, start, split)} {random_tree(generator, split, end)})"


def test_100000_levels_over_one_word():
    depth = 100_000
    chain = "(A " * depth + "(X a)" + ")" * depth
    other = "(B " * depth + "(X a)" + ")" * depth
    assert row(chain, chain) == (1, 0, depth, depth, depth, 0, 1, 1)
    assert row(chain, other) == (1, 0, 0, depth, depth, 0, 1, 1)


def test_opposite_branching():
    """All brackets cross except the root, the words' own and those of the two trees' ends."""
    n_words = 50_000
    length, status, matched, gold, test, crossing, *_ = row(right_branching(n_words), left_branching(n_words))
    assert (length, status, matched, gold, test) == (n_words, 0, 1, n_words, n_words)
    assert crossing == n_words - 2


def test_long_labels_and_words():
    label, word = "L" * 10_000, "w" * 100_000
    tree = f"(S ({label} (X {word})))"
    assert row(tree, tree) == (1, 0, 2, 2, 2, 0, 1, 1)
    assert row(tree, tree.replace("Lw", "L")) == (1, 0, 2, 2, 2, 0, 1, 1)


def test_more_quotes_than_evalb_remembers():
    n_quotes = 50
    gold = "(S (X a) " + "(NN ') (X b) " * n_quotes + ")"
    test = "(S (X a) " + "('' ') (X b) " * n_quotes + ")"
    evaluation = evaluate([gold], [test], "new")
    assert (evaluation.all.valid, evaluation.all.complete) == (1, 1)


def test_100000_sentences_in_ten_batches():
    evaluation = evaluate(["(S (X a))"] * 100_000, ["(S (X a))"] * 100_000)
    assert evaluation.all.complete == 100_000
    assert evaluation.table().splitlines()[-3] == (
        "100000    1    0  100.00 100.00     1      1    1      0      1     1   100.00"
    )
