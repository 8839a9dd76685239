"""What the chart computes, as the definitions read: derivations one by one, equations repeated until still.

Grammars have a few symbols and sentences a few words here. A derivation is a tuple of rows ``(symbol, start,
end, kind)`` from the root down, left to right; an *item* is ``(symbol, start, end)``.
"""

from itertools import product
from math import log

import numpy as np

LEXICAL, UNARY, BINARY, BRIDGE = range(4)


def total(values):
    return sum(values)


def best(values):
    return max(values, default=0.0)


class TooManyDerivations(Exception):
    """There are more than a test wants to look at."""


class Reference:
    """A grammar and a sentence.

    Parameters
    ----------
    grammar : WeightedGrammar
    sentence : list of int
        Numbers of words.
    allowed : function of symbol, start, end
        Derivations consist of items that are allowed.
    factor : function of start, end
        By which the binary rules over a span are multiplied.
    """

    def __init__(self, grammar, sentence, allowed=lambda symbol, start, end: True, factor=lambda start, end: 1.0):
        self.label = grammar.label.tolist()
        self.root = grammar.root
        self.n_words = len(sentence)
        self.allowed, self.factor = allowed, factor
        lexical = list(zip(grammar.lexical.tolist(), grammar.lexical_weight.tolist(), strict=True))
        self.lexicon = [{x: weight for (x, made), weight in lexical if made == word} for word in sentence]
        self.binary = {
            tuple(rule): weight
            for rule, weight in zip(grammar.binary.tolist(), grammar.binary_weight.tolist(), strict=True)
        }
        self.single = {}
        for kind, rules, weights in (
            (UNARY, grammar.unary, grammar.unary_weight),
            (BRIDGE, grammar.bridge, grammar.bridge_weight),
        ):
            for (x, y), weight in zip(rules.tolist(), weights.tolist(), strict=True):
                self.single[kind, x, y] = weight

    def spans(self):
        """All spans, shorter ones first."""
        for length in range(1, self.n_words + 1):
            for start in range(self.n_words - length + 1):
                yield start, start + length

    def symbols_at(self, start, end):
        return [symbol for symbol in range(len(self.label)) if self.allowed(symbol, start, end)]

    # ---- equations ---------------------------------------------------------------------------------------

    def inside(self, combine=total):
        """``{item: value}`` of all items with a value: `combine` is `total` or `best`."""
        values = {}
        for start, end in self.spans():
            symbols = self.symbols_at(start, end)
            base = {}
            for symbol in symbols:
                ways = [
                    self.factor(start, end)
                    * (weight * values.get((left, start, split), 0.0) * values.get((right, split, end), 0.0))
                    for (parent, left, right), weight in self.binary.items()
                    for split in range(start + 1, end)
                    if parent == symbol
                ]
                if end == start + 1:
                    ways.append(self.lexicon[start].get(symbol, 0.0))
                base[symbol] = combine(ways)
            moves = [(x, y, w) for (_, x, y), w in self.single.items() if x in base and y in base]
            for symbol, value in self.repeated(base, moves, combine).items():
                values[symbol, start, end] = value
        return {item: value for item, value in values.items() if value > 0}

    def outside(self, inside, combine=total):
        """``{item: value}`` of the items with an inside value."""
        values = {}
        for start, end in reversed(list(self.spans())):
            base = {}
            for symbol in self.symbols_at(start, end):
                if (symbol, start, end) not in inside:
                    continue
                ways = [1.0] if (symbol, start, end) == (self.root, 0, self.n_words) else []
                for (parent, left, right), weight in self.binary.items():
                    if left == symbol:
                        ways += [
                            self.factor(start, far)
                            * (weight * values.get((parent, start, far), 0.0) * inside.get((right, end, far), 0.0))
                            for far in range(end + 1, self.n_words + 1)
                        ]
                    if right == symbol:
                        ways += [
                            self.factor(far, end)
                            * (weight * values.get((parent, far, end), 0.0) * inside.get((left, far, start), 0.0))
                            for far in range(start)
                        ]
                base[symbol] = combine(ways)
            moves = [(y, x, w) for (_, x, y), w in self.single.items() if x in base and y in base]
            for symbol, value in self.repeated(base, moves, combine).items():
                values[symbol, start, end] = value
        return {item: value for item, value in values.items() if value > 0}

    def repeated(self, base, moves, combine):
        """The solution of ``v(x) = base(x) + sum of w v(y)`` over moves ``(x, y, w)``, by repetition."""
        values = dict(base)
        for _ in range(20000):
            before = dict(values)
            for symbol in values:
                values[symbol] = combine([base[symbol]] + [w * values[y] for x, y, w in moves if x == symbol])
            if all(abs(values[x] - before[x]) * 10**16 <= values[x] for x in values):
                break
        return values

    def rule_counts(self):
        """``{treebank rule at its place: expected number}`` from the equations."""
        inside = self.inside()
        outside = self.outside(inside)
        whole = inside[self.root, 0, self.n_words]
        counts = {}

        def add(key, value):
            if value > 0:
                counts[key] = counts.get(key, 0.0) + value / whole

        for (symbol, start, end), above in outside.items():
            label = self.label[symbol]
            if end == start + 1:
                add((start, -1, end, label, -1, -1), above * self.lexicon[start].get(symbol, 0.0))
            for (kind, x, y), weight in self.single.items():
                if x == symbol and kind == UNARY:
                    below = inside.get((y, start, end), 0.0)
                    add((start, -1, end, label, self.label[y], -1), above * weight * below)
            for (x, y, z), weight in self.binary.items():
                for split in range(start + 1, end) if x == symbol else ():
                    for left, left_value in self.labelled(y, start, split, inside):
                        for right, right_value in self.labelled(z, split, end, inside):
                            below = left_value * right_value
                            add((start, split, end, label, left, right), above * weight * below)
        return counts

    def labelled(self, symbol, start, end, inside):
        """The labels that a symbol stands for over a span, its own or those of its bridges, with inside values."""
        if self.label[symbol] >= 0:
            return [(self.label[symbol], inside.get((symbol, start, end), 0.0))]
        return [
            (self.label[y], weight * inside.get((y, start, end), 0.0))
            for (_, x, y), weight in self.single.items()
            if x == symbol and (x, start, end) in inside
        ]

    # ---- one by one --------------------------------------------------------------------------------------

    def derivations(self, limit, need_all=False):
        """``{item: [(weight, rows)]}``: the `limit` heaviest derivations of every item, heaviest first.

        A heavy derivation has heavy parts, so nothing is lost by keeping `limit` of each part.
        """
        found = {}
        for start, end in self.spans():
            symbols = self.symbols_at(start, end)
            base = {symbol: [] for symbol in symbols}
            for symbol in symbols:
                if end == start + 1 and symbol in self.lexicon[start]:
                    base[symbol].append((self.lexicon[start][symbol], ((symbol, start, end, LEXICAL),)))
                for (parent, left, right), weight in self.binary.items():
                    for split in range(start + 1, end) if parent == symbol else ():
                        pairs = product(found.get((left, start, split), []), found.get((right, split, end), []))
                        base[symbol] += [
                            (weight * one * other, ((symbol, start, end, BINARY), *left_rows, *right_rows))
                            for (one, left_rows), (other, right_rows) in pairs
                        ]
                if need_all and len(base[symbol]) > limit:
                    raise TooManyDerivations
            lists, before = base, None
            while lists != before:
                before = lists
                lists = {
                    symbol: heaviest(base[symbol] + self.moved(symbol, start, end, before), limit) for symbol in symbols
                }
            for symbol in symbols:
                found[symbol, start, end] = lists[symbol]
        return found

    def moved(self, symbol, start, end, lists):
        """The derivations that begin with a unary rule or a bridge from `symbol`."""
        return [
            (weight * below, ((symbol, start, end, kind), *rows))
            for (kind, x, y), weight in self.single.items()
            if x == symbol
            for below, rows in lists.get(y, [])
        ]

    def all_derivations(self, limit=400):
        """``{item: [(weight, rows)]}``, all of them; for grammars without unary cycles."""
        found = self.derivations(limit, need_all=True)
        if any(len(ways) >= limit for ways in found.values()):
            raise TooManyDerivations
        return found

    def log_weight(self, rows):
        """The log weight of a derivation of the sentence; an error if it is none."""
        parts = steps(rows)
        assert parts[0][0][:3] == (self.root, 0, self.n_words)
        return sum(log(self.step_weight(row, children)) for row, children in parts)

    def step_weight(self, row, children):
        symbol, start, end, kind = row
        assert self.allowed(symbol, start, end)
        if kind == LEXICAL:
            assert end == start + 1
            return self.lexicon[start][symbol]
        if kind == BINARY:
            return self.binary[symbol, children[0][0], children[1][0]]
        return self.single[kind, symbol, children[0][0]]

    def treebank_rules(self, rows):
        """The rules ``(start, split, end, label, left label, right label)`` of a derivation's tree."""
        rules = []
        parts = steps(rows)
        # A bridge from a symbol without a label leads to the label that it stands for.
        leads_to = {row: self.label[children[0][0]] for row, children in parts if self.label[row[0]] < 0}
        for (symbol, start, end, kind), children in parts:
            labels = [leads_to.get(child, self.label[child[0]]) for child in children]
            if kind == BINARY:
                rules.append((start, children[0][2], end, self.label[symbol], *labels))
            elif kind != BRIDGE:
                rules.append((start, -1, end, self.label[symbol], *labels, *[-1] * (2 - len(labels))))
        return rules


def heaviest(derivations, limit):
    return sorted(derivations, key=lambda derivation: (-derivation[0], derivation[1]))[:limit]


def steps(rows):
    """Every row of a derivation or tree with the rows of its children; an error if they do not fit."""
    rows = [tuple(int(number) for number in row) for row in rows]
    children_of = [()] * len(rows)
    waiting = []  # positions of subtrees to the right of the row at work, the nearest last
    for position in reversed(range(len(rows))):
        _, start, end, kind = rows[position]
        taken = [waiting.pop() for _ in range({LEXICAL: 0, UNARY: 1, BINARY: 2, BRIDGE: 1}[kind])]
        children_of[position] = tuple(rows[child] for child in taken)
        edges = [start] + [child[2] for child in children_of[position]]
        assert all(child[1] == edge for child, edge in zip(children_of[position], edges, strict=False))
        assert edges[-1] == (start if kind == LEXICAL else end)
        waiting.append(position)
    assert waiting == [0]
    return list(zip(rows, children_of, strict=True))


# ---- trees by the posteriors of their rules --------------------------------------------------------------


def best_tree_score(counts, n_words, root, is_product):
    """The largest sum (or sum of logs) of posteriors over all trees whose unary chains repeat no label.

    Parameters
    ----------
    counts : dict
        Posteriors of rules ``(start, split, end, label, left label, right label)``.
    """
    seen = {}

    def worth(rule):
        return log(counts[rule]) if is_product else counts[rule]

    def score(start, end, label, above):
        """`above`: the labels of the chain of unary rules over this node."""
        key = (start, end, label, above)
        if key not in seen:
            seen[key] = float("-inf")
            for rule in counts:
                first, split, last, parent, left, right = rule
                if (first, last, parent) != (start, end, label):
                    continue
                if left < 0:
                    value = worth(rule)
                elif right >= 0:
                    below = score(start, split, left, frozenset()) + score(split, end, right, frozenset())
                    value = worth(rule) + below
                elif left != label and left not in above:
                    value = worth(rule) + score(start, end, left, above | {label})
                else:
                    continue
                seen[key] = max(seen[key], value)
        return seen[key]

    return score(0, n_words, root, frozenset())


def all_trees(counts, n_words, root, limit=2000):
    """The rows of all trees that rules make, with unary chains that repeat no label.

    Parameters
    ----------
    counts : dict
        By rules ``(start, split, end, label, left label, right label)``.
    """
    seen = {}

    def trees(start, end, label, above):
        key = (start, end, label, above)
        if key in seen:
            return seen[key]
        found = []
        for first, split, last, parent, left, right in counts:
            if (first, last, parent) != (start, end, label):
                continue
            if left < 0:
                found.append(((label, start, end, LEXICAL),))
            elif right >= 0:
                pairs = product(trees(start, split, left, frozenset()), trees(split, end, right, frozenset()))
                found += [((label, start, end, BINARY), *one, *other) for one, other in pairs]
            elif left != label and left not in above:
                found += [((label, start, end, UNARY), *below) for below in trees(start, end, left, above | {label})]
            if len(found) > limit:
                raise TooManyDerivations
        seen[key] = found
        return found

    return trees(0, n_words, root, frozenset())


def tree_score(rows, counts, is_product):
    """The score of a tree, which must have no repeated label in a unary chain."""
    score = 0.0
    chain = []
    for (label, start, end, kind), children in steps(rows):
        labels = [child[0] for child in children]
        split = children[0][2] if kind == BINARY else -1
        value = counts[(start, split, end, label, *labels, *[-1] * (2 - len(labels)))]
        score += log(value) if is_product else value
        chain.append(label)
        assert len(set(chain)) == len(chain)
        if kind != UNARY:
            chain = []
    return score


# ---- the chart's own form of a sentence ------------------------------------------------------------------


def lexical_entries(grammar, index, sentence):
    """The arguments of `Chart.fill`: where each word's entries begin, ranks of symbols, weights."""
    starts, ranks, weights = [0], [], []
    for word in sentence:
        for (symbol, made), weight in zip(grammar.lexical.tolist(), grammar.lexical_weight, strict=True):
            if made == word:
                ranks.append(index.rank_of_symbol[symbol])
                weights.append(weight)
        starts.append(len(ranks))
    return np.array(starts, np.int64), np.array(ranks, np.int32), np.array(weights, np.float64)
