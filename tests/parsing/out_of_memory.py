"""Let allocations fail in every function that fills or reads a chart; run by `test_memory.py` in a process of its own.

The library that `failing_new.cpp` makes is preloaded. An operation fails at one allocation after another until it has
enough. Each time it must raise MemoryError, and the same objects must then give what they give otherwise, bit for bit.
"""

import ctypes
import sys
from functools import partial

import numpy as np
from reference.chart import lexical_entries

from tsgkit._chart import Chart
from tsgkit._derivations import KBest, best_derivation, sample_derivations
from tsgkit._grammar_index import GrammarIndex
from tsgkit._posteriors import forest_of
from tsgkit._pruning import Projection
from tsgkit._tree_score import TreeScorer
from tsgkit.grammar import WeightedGrammar

N_SYMBOLS, N_WORDS = 20, 12
fail_after = ctypes.CDLL(None).fail_after
fail_after.argtypes = [ctypes.c_long]


def random_grammar():
    """Every symbol makes every word, and some pairs; some symbols are children in a chain of unary rules."""
    random = np.random.default_rng(1)
    binary = np.unique(random.integers(0, N_SYMBOLS, size=(8 * N_SYMBOLS, 3)), axis=0)
    chain = [(symbol, symbol + 1) for symbol in range(0, N_SYMBOLS - 1, 3)]
    return WeightedGrammar(
        [f"L{number}" for number in range(N_SYMBOLS)], ["a", "b"], range(N_SYMBOLS), 0,
        binary=binary, binary_weight=random.uniform(0.1, 1.0, len(binary)),
        unary=chain, unary_weight=[0.125] * len(chain),
        lexical=[(symbol, word) for symbol in range(N_SYMBOLS) for word in (0, 1)],
        lexical_weight=random.uniform(0.1, 1.0, 2 * N_SYMBOLS),
    )  # fmt: skip


def values_of(chart):
    """Some of the values of a chart."""
    spans = [(0, 1), (0, 2), (1, 3), (0, chart.n_words)]
    outside = [chart.outside_values(*span) for span in spans] if chart.has_outside else []
    return chart.log_total, [chart.inside_values(*span) for span in spans], outside


class Sentence:
    """The charts of a sentence before the operation that is tried."""

    def __init__(self, index, entries):
        self.index, self.entries = index, entries
        self.chart = Chart(index, 1 << 40)

    def filled(self, *, viterbi=False, outside=False):
        self.chart.fill(*self.entries, viterbi=viterbi)
        if outside:
            self.chart.fill_outside()
        return self.chart


def fill(chart, entries, **options):
    chart.fill(*entries, **options)
    return values_of(chart)


def fill_outside(chart):
    chart.fill_outside()
    return values_of(chart)


def masked(chart, coarse, projection, entries):
    chart.fill(*entries, mask=coarse.make_mask(1e-6), projection=projection)
    chart.fill_outside()
    return values_of(chart)


def best_trees(chart):
    forest = forest_of(chart, 1e-5)
    trees = [forest.best_tree(product, 0) for product in (False, True)]
    return [(rows.tolist(), score) for rows, score in trees], forest.posteriors.tolist()


def k_best(derivations, k):
    found = [derivations.derivation(number) for number in range(k)]
    return [(rows.tolist(), log_weight) for rows, log_weight in found]


def samples(chart):
    return [(rows.tolist(), log_weight) for rows, log_weight in sample_derivations(chart, 5, np.random.PCG64(1))]


def operations(index, entries):
    """What is tried, by name: each time it is called, a function that does it with objects of its own."""
    sentence = partial(Sentence, index, entries)
    rows = np.ascontiguousarray(best_derivation(sentence().filled(viterbi=True))[0])
    projection = Projection(index, index, range(N_SYMBOLS), range(N_SYMBOLS))
    coarse = sentence().filled(outside=True)
    return {
        "fill": lambda: partial(fill, sentence().chart, entries),
        "viterbi": lambda: partial(fill, sentence().chart, entries, viterbi=True),
        "outside": lambda: partial(fill_outside, sentence().filled()),
        "mask": lambda: partial(masked, sentence().chart, coarse, projection, entries),
        "forest": lambda: partial(best_trees, sentence().filled(outside=True)),
        "k best": lambda: partial(k_best, KBest(sentence().filled(viterbi=True)), 50),
        "samples": lambda: partial(samples, sentence().filled()),
        "score": lambda: partial(TreeScorer(index).log_weight, rows, *entries),
    }


def n_failures(prepare):
    """How often an operation fails before it has enough."""
    expected = prepare()()
    n_allocations = n_failed = 0
    while True:
        operation = prepare()
        fail_after(n_allocations)
        try:
            found = operation()
        except MemoryError:
            fail_after(-1)
            assert operation() == expected, "another result after a failure"
            n_failed += 1
            n_allocations += 1 + n_allocations // 50
            continue
        finally:
            fail_after(-1)
        assert found == expected, "another result with little memory"
        return n_failed


def main():
    grammar = random_grammar()
    index = GrammarIndex(grammar)
    entries = lexical_entries(grammar, index, [word % 2 for word in range(N_WORDS)])
    for name, prepare in operations(index, entries).items():
        if not sys.argv[1:] or name in sys.argv[1:]:
            print(name, n_failures(prepare), flush=True)


if __name__ == "__main__":
    main()
