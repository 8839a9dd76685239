"""The compiled modules `_brackets`, `_bracket_trees` and `_bracket_matching`: misuse, memory, threads, labels.

Their counts are tested in `test_oracle`, `test_quirks`, `test_long_trees` and `test_reference_outputs`.
"""

import os
import struct
import subprocess
import sys
import threading

import pytest

from tsgkit._brackets import ROW_FIELDS, Scorer, format_table
from tsgkit.evaluation import load_parameters
from tsgkit.evaluation._evalb import score

N_FIELDS = len(ROW_FIELDS)

COLLINS = load_parameters("collins")
# Too little for what the tests below read into arrays, enough for Python.
MEMORY = 400 << 20


def test_misuse_is_refused():
    with pytest.raises(TypeError):
        Scorer("text", b"", COLLINS)
    with pytest.raises(TypeError):
        Scorer(b"", None, COLLINS)
    scorer = Scorer(b"", b"", COLLINS)
    with pytest.raises(RuntimeError, match="one pair"):
        scorer.__init__(b"x", b"y", COLLINS)
    with pytest.raises(ValueError, match="123 bytes are not a whole number of rows"):
        format_table(b"1" * 123)


@pytest.mark.parametrize("name", ["n_bytes_left", "label_counts", "confusions"])
def test_a_scorer_without_files_is_refused(name):
    scorer = Scorer.__new__(Scorer)
    with pytest.raises(RuntimeError, match="not initialised"):
        scorer.advance(1)
    with pytest.raises(RuntimeError, match="not initialised"):
        getattr(scorer, name)
    assert (scorer.rows, scorer.problems, scorer.n_errors, scorer.stopped) == (b"", [], 0, False)


def test_sentences_are_scored_in_steps():
    gold = b"(S (X a))\n" * 5
    scorer = Scorer(gold, gold, COLLINS)
    assert scorer.n_bytes_left == 2 * len(gold)
    assert scorer.advance(0) is True
    assert scorer.advance(2) is True
    assert (scorer.n_bytes_left, scorer.totals[0]["sentences"]) == (2 * 30, 2)
    assert scorer.advance(3) is False
    assert scorer.advance(1) is False
    assert scorer.totals[0]["complete"] == 5


def test_percentages_are_rounded_as_by_printf():
    """The decimal value of a double is printed: 1 of 32 (3.125) goes down, 3 of 32 (9.375) goes up."""
    pairs = [(part, whole) for whole in (*range(1, 200), 800, 1000, 1600, 2000) for part in range(whole + 1)]
    rows = b"".join(
        struct.pack(f"={N_FIELDS}i", 1, 0, part, whole, whole, *[0] * (N_FIELDS - 5)) for part, whole in pairs
    )
    for (part, whole), line in zip(pairs, format_table(rows).splitlines(), strict=True):
        assert line.split()[3] == f"{100.0 * part / whole:.2f}"


def test_numbers_of_any_width():
    largest, smallest = 2**31 - 1, -(2**31)
    rows = struct.pack(f"={2 * N_FIELDS}i", *[largest] * N_FIELDS, *[smallest] * N_FIELDS)
    first, second = format_table(rows).splitlines()
    assert first == f"   1  {largest}    {largest}  100.00 100.00   {largest}" + (
        f"    {largest}  {largest}    {largest}   {largest}  {largest}   100.00"
    )
    assert second == f"   2  {smallest}    {smallest}    0.00   0.00   {smallest}" + (
        f"    {smallest}  {smallest}    {smallest}   {smallest}  {smallest}     0.00"
    )


def test_labels_that_share_a_key_are_two():
    """Labels are found by a number made of their bytes, which is unique up to seven bytes only."""
    first, second = "A123456B", "C123456C"
    tree = f"({first} ({second} (X a)))".encode()
    evaluation = score("gold", tree, "test", tree, COLLINS)
    assert {each.label: each.matched_gold for each in evaluation.by_label()} == {first: 1, second: 1}
    other = tree.replace(first.encode(), second.encode())
    assert score("gold", tree, "test", other, COLLINS).all.matched == 1


def test_more_labels_than_the_table_had_room_for():
    labels = [f"L{number}" for number in range(20_000)]
    trees = "".join(f"({label}-X (T{label} a))\n" for label in labels).encode()
    evaluation = score("gold", trees, "test", trees, COLLINS)
    assert evaluation.label_counts == dict.fromkeys(labels, (1, 1, 1, 1))
    assert (evaluation.all.matched, evaluation.all.tags) == (20_000, 20_000)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of a process")
@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="AddressSanitizer ends the process instead")
@pytest.mark.parametrize(("piece", "times"), [("(", 40 << 20), (")", 10 << 20), ("(X a)", 16 << 20)])
def test_failed_allocation_is_a_memory_error(piece, times):
    """Of brackets, of errors, of words; the scorer cannot be used after that."""
    from processes import memory_limit  # noqa: PLC0415 - needs a module that Windows lacks

    code = f"""
from tsgkit._brackets import Scorer
from tsgkit.evaluation import load_parameters
scorer = Scorer(b"{piece}" * {times}, b"(S (X a))", load_parameters("collins"))
for _ in range(2):
    try:
        scorer.advance(1)
    except (MemoryError, RuntimeError) as error:
        print(type(error).__name__, error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, **memory_limit(MEMORY)
    )
    assert done.stdout.splitlines() == [
        "MemoryError std::bad_alloc",
        "RuntimeError this Scorer failed, or another thread is using it",
    ], done.stderr


def test_scorers_in_several_threads():
    """Each has its own; they run without the lock of the interpreter and do not disturb each other."""
    gold = b"(S (NP (X a) (X b)) (VP (X c)))\n" * 20_000
    tests = [b"(S (NP (X a)) (L%d (X b) (X c)))\n" % number * 20_000 for number in range(4)]
    results = [None] * len(tests)

    def run(number: int) -> None:
        results[number] = score("gold", gold, "test", tests[number], COLLINS)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(tests))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, result in enumerate(results):
        assert result == score("gold", gold, "test", tests[number], COLLINS)
        assert result.confusion_counts == {}
        assert (result.all.matched, result.all.crossing) == (20_000, 20_000)
        assert set(result.label_counts) == {"S", "NP", "VP", f"L{number}"}
