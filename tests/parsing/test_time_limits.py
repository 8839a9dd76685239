"""Work at a sentence ends when its time is over, or when somebody cancels it; the chart is good for the next one."""

import threading
import time

import numpy as np
import pytest
from parsing.conftest import ATTACHED, ATTACHMENT, model_of
from reference.chart import lexical_entries

from tsgkit._chart import Chart
from tsgkit._derivations import best_derivation, sample_derivations
from tsgkit._grammar_index import GrammarIndex
from tsgkit._posteriors import forest_of
from tsgkit._tree_ranking import TreeRanking
from tsgkit._tree_score import TreeScorer
from tsgkit._work_limit import WorkLimit
from tsgkit.errors import CancelledError, OutOfTimeError, UsageError
from tsgkit.grammar import WeightedGrammar
from tsgkit.parsing import Parser
from tsgkit.parsing._product import ProductParser
from tsgkit.parsing.objectives import OBJECTIVES


def slow_grammar(n_symbols=300):
    """Everything makes everything: some seconds for a hundred words."""
    pairs = [(x, y, (x * y) % n_symbols) for x in range(n_symbols) for y in range(n_symbols)]
    return WeightedGrammar(
        [f"L{number}" for number in range(n_symbols)], ["a"], range(n_symbols), 0,
        binary=pairs, binary_weight=[1 / n_symbols**2] * len(pairs),
        lexical=[(x, 0) for x in range(n_symbols)], lexical_weight=[0.5] * n_symbols,
    )  # fmt: skip


@pytest.fixture(scope="module")
def slow_model():
    return model_of(slow_grammar())


LONG = ["a"] * 150


def test_a_limit():
    limit = WorkLimit()
    limit.check()
    part = limit.part()
    assert not limit.is_cancelled
    limit.cancel()
    assert limit.is_cancelled
    assert part.is_cancelled
    with pytest.raises(CancelledError):
        limit.check()
    past = WorkLimit(1e-9)
    time.sleep(0.01)
    with pytest.raises(OutOfTimeError):
        past.part().check()
    with pytest.raises(OutOfTimeError):
        past.check()
    for seconds in (0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="must be above 0"):
            WorkLimit(seconds)


def test_every_kernel_stops_and_goes_on_as_before():
    """Cancelled before it begins; afterwards, the same object gives what it gives otherwise."""
    index = GrammarIndex(ATTACHMENT)
    entries = lexical_entries(ATTACHMENT, index, [ATTACHMENT.words.index(word) for word in ATTACHED])
    charts = {viterbi: Chart(index) for viterbi in (False, True)}
    for viterbi, chart in charts.items():
        chart.fill(*entries, viterbi=viterbi)
    scorer, rows = TreeScorer(index), np.ascontiguousarray(best_derivation(charts[True])[0])
    charts[False].fill_outside()
    forest = forest_of(charts[False])

    def sampled(chart):
        return [rows.tolist() for rows, _ in sample_derivations(chart, 3, np.random.PCG64(1))]

    def posteriors(chart):
        return forest_of(chart).posteriors.tolist()

    def rows_of(found):
        return found[0].tolist()

    operations = [
        (charts[False], lambda: posteriors(charts[False])),
        (charts[False], lambda: sampled(charts[False])),
        (charts[True], lambda: rows_of(best_derivation(charts[True]))),
        (charts[True], lambda: rows_of(TreeRanking(charts[True]).tree(3))),
        (forest, lambda: rows_of(forest.best_tree(True, 0))),
        (forest, lambda: rows_of(TreeRanking(forest, product=True, root=0).tree(2))),
        (scorer, lambda: scorer.log_weight(project_rows(rows), *entries)),
        (charts[False], lambda: charts[False].fill(*entries)),
        (charts[True], lambda: charts[True].fill(*entries, viterbi=True)),
    ]
    for place, (holder, operation) in enumerate(operations):
        expected = operation()
        holder.limit = WorkLimit()
        holder.limit.cancel()
        with pytest.raises(CancelledError):
            operation()
        holder.limit = WorkLimit()
        assert operation() == expected, place


def test_the_outside_pass_stops_and_goes_on():
    index = GrammarIndex(ATTACHMENT)
    chart = Chart(index)
    chart.fill(*lexical_entries(ATTACHMENT, index, [ATTACHMENT.words.index(word) for word in ATTACHED]))
    chart.limit.cancel()
    with pytest.raises(CancelledError):
        chart.fill_outside()
    assert not chart.has_outside
    chart.limit = WorkLimit()
    chart.fill_outside()
    assert sum(forest_of(chart).posteriors) == pytest.approx(2 * len(ATTACHED))


def project_rows(rows):
    kept = rows[rows[:, 3] != 3].copy()
    kept[:, 0] = ATTACHMENT.label[kept[:, 0]]
    return np.ascontiguousarray(kept)


@pytest.mark.parametrize("objective", OBJECTIVES.names)
def test_a_sentence_out_of_time_gets_a_marked_tree(slow_model, objective):
    parser = Parser(slow_model, objective=objective, max_seconds=0.05, n_samples=3)
    parse = parser.analyse(LONG, k=2)
    assert parse.fallback == "timeout"
    assert parse.tree.leaves() == LONG
    # The engine is as good as new.
    assert parser.with_settings(max_seconds=None).analyse(LONG[:3]).fallback == ""


def test_a_product_out_of_time(slow_model):
    parser = ProductParser([slow_model, slow_model], max_seconds=0.05)
    parse = parser.analyse(LONG)
    assert parse.fallback == "timeout"
    assert parse.tree.leaves() == LONG


def test_time_begins_when_a_sentence_does(slow_model):
    """Sentences that wait for a thread lose none of theirs."""
    parser = Parser(slow_model, max_seconds=60.0)
    parses = list(parser.parse_batch([(LONG[:3], None)] * 6, threads=2))
    assert [parse.fallback for parse in parses] == [""] * 6


def test_cancelling_from_another_thread(slow_model):
    """What a server does when a client has gone: the thread is free again."""
    limit, raised = WorkLimit(), []

    def work():
        try:
            Parser(slow_model).analyse(LONG, limit=limit)
        except CancelledError as error:
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.1)
    limit.cancel()
    thread.join(timeout=600)
    assert not thread.is_alive()
    assert len(raised) == 1


def test_a_batch_that_is_given_up_leaves_no_thread_at_work(slow_model):
    parses = Parser(slow_model).parse_batch([(["a"], None)] + [(LONG, None)] * 3, threads=2)
    assert next(parses).fallback == ""
    parses.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("ThreadPoolExecutor")]


def test_an_impossible_limit(slow_model):
    for seconds in (0, -1, float("nan")):
        with pytest.raises(UsageError, match="max_seconds"):
            Parser(slow_model, max_seconds=seconds)
