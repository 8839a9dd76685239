"""Brackets that trees must have, as the definitions read: trees one by one, and equations with a state per span."""

from reference.chart import BRIDGE, Reference, total


def nodes_over(tree, nodes_of, span):
    """The labels of a tree's nodes over a span as annotated, from the bottom up."""
    labels = []
    for label, start, end, _ in reversed(tree):
        if (start, end) == span:
            labels.extend(nodes_of[label])
    return labels


def has_brackets(tree, nodes_of, brackets):
    """Whether the tree of rows ``(label, start, end, kind)`` has nodes for all brackets, one for each.

    `nodes_of` lists the nodes that a label makes, from the bottom up: none if it is an intermediate symbol.
    """
    for span in {bracket[1:] for bracket in brackets}:
        over = iter(nodes_over(tree, nodes_of, span))
        wanted = [label for label, *where in reversed(brackets) if tuple(where) == span]
        if not all(any(label in (None, node) for node in over) for label in wanted):
            return False
    return True


class ConstrainedReference(Reference):
    """A grammar, a sentence and brackets; `nodes_of` is as above."""

    def __init__(self, grammar, sentence, nodes_of, brackets):
        super().__init__(grammar, sentence)
        self.nodes_of = nodes_of
        self.wanted = {}
        for label, start, end in brackets:
            self.wanted.setdefault((start, end), []).insert(0, label)

    def after(self, state, label, span):
        """The state above a node."""
        wanted = self.wanted.get(span, [])
        for node in self.nodes_of[label]:
            if state < len(wanted) and wanted[state] in (None, node):
                state += 1
        return state

    def total_of_trees(self, combine=total):
        """The sum, or the best, of the derivations with all brackets."""
        values = {}
        for start, end in self.spans():
            last = len(self.wanted.get((start, end), []))
            base = {(x, state): 0.0 for x in range(len(self.label)) for state in range(last + 1)}
            for symbol in range(len(self.label)):
                if self.label[symbol] < 0 or any(a < start < b < end or start < a < end < b for a, b in self.wanted):
                    continue
                ways = [
                    weight * values.get((left, start, split), 0.0) * values.get((right, split, end), 0.0)
                    for (parent, left, right), weight in self.binary.items()
                    for split in range(start + 1, end)
                    if parent == symbol
                ]
                if end == start + 1:
                    ways.append(self.lexicon[start].get(symbol, 0.0))
                base[symbol, self.after(0, self.label[symbol], (start, end))] = combine(ways)
            moves = []
            for (kind, x, y), weight in self.single.items():
                for state in range(last + 1):
                    above = state if kind == BRIDGE else self.after(state, self.label[x], (start, end))
                    moves.append(((x, above), (y, state), weight))
            for (symbol, state), value in self.repeated(base, moves, combine).items():
                if state == last:
                    values[symbol, start, end] = value
        return values.get((self.root, 0, self.n_words), 0.0)
