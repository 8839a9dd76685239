"""Hypothesis strategies that several tests share."""

from hypothesis import strategies as st
from nltk.tree import Tree

from tsgkit.grammar import WeightedGrammar

symbols = st.text(st.characters(exclude_characters=" \t\r\n\f\v()", exclude_categories=("Cs",)), min_size=1)
# Any tree that can be written in brackets.
trees = st.recursive(
    st.builds(lambda tag, word: Tree(tag, [word]), symbols, symbols),
    lambda children: st.builds(Tree, symbols, st.lists(children, min_size=1, max_size=4)),
    max_leaves=12,
)

# Powers of two make ties, the others do not.
weights = st.sampled_from([0.25, 0.5, 1.0, 2.0, 0.07, 0.31, 0.83, 1.7])


def sized(elements, smallest, largest):
    """Lists all of whose lengths are about as frequent; plain ones are mostly short."""
    return st.integers(smallest, largest).flatmap(lambda n: st.lists(elements, min_size=n, max_size=n))


@st.composite
def grammars(draw, cyclic=True):
    """A tiny weighted grammar, proper or not, most of the time with derivations for most sentences.

    With `cyclic`, unary rules and bridges may go in circles; what they lose on the way round is drawn too. The last
    symbols, before they are shuffled, may have no label.
    """
    n_symbols = draw(st.integers(2, 6))
    n_labels = draw(st.integers(1, min(4, n_symbols)))
    n_words = draw(st.integers(1, 3))
    symbol, label = st.integers(0, n_symbols - 1), st.integers(0, n_labels - 1)
    projection = draw(sized(label, n_symbols, n_symbols))
    binary = draw(sized(st.tuples(symbol, symbol, symbol, weights), 3, 10))
    binary.append((0, draw(symbol), draw(symbol), draw(weights)))
    lexical = draw(sized(st.tuples(symbol, st.integers(0, n_words - 1), weights), 0, 5))
    lexical += [(draw(symbol), word, draw(weights)) for word in range(n_words)]
    single = draw(sized(st.tuples(symbol, symbol, weights, st.booleans()), 0, 7))
    if not cyclic:
        # Only towards larger numbers: the names of symbols are shuffled below.
        single = [(min(x, y), max(x, y), weight, wish) for x, y, weight, wish in single if x != y]
    else:
        units = draw(sized(st.sampled_from([0.1, 1.0, 10.0]), n_symbols, n_symbols))
        single = damped(single, draw(st.sampled_from([0.3, 0.9])), units)
    is_bridge = [wish and projection[x] == projection[y] for x, y, _, wish in single]
    unary = [rule for rule, bridge in zip(single, is_bridge, strict=True) if not bridge]
    bridge = [rule for rule, bridge in zip(single, is_bridge, strict=True) if bridge]
    for bare in range(n_symbols, n_symbols + draw(st.integers(0, 2))):
        projection.append(-1)
        bridge += [(bare, child, weight, True) for child, weight in draw(sized(st.tuples(symbol, weights), 1, 3))]
        for parent, other, is_left, weight in draw(sized(st.tuples(symbol, symbol, st.booleans(), weights), 1, 3)):
            binary.append((parent, bare, other, weight) if is_left else (parent, other, bare, weight))
    name = draw(st.permutations(range(len(projection))))
    label_of = [0] * len(projection)
    for old, new in enumerate(name):
        label_of[new] = projection[old]
    return WeightedGrammar(
        labels=[f"L{number}" for number in range(n_labels)],
        words=[f"w{number}" for number in range(n_words)],
        label=label_of,
        root=name[0],
        binary=[(name[x], name[y], name[z]) for x, y, z, _ in binary],
        binary_weight=[rule[3] for rule in binary],
        unary=[(name[x], name[y]) for x, y, _, _ in unary],
        unary_weight=[rule[2] for rule in unary],
        bridge=[(name[x], name[y]) for x, y, _, _ in bridge],
        bridge_weight=[rule[2] for rule in bridge],
        lexical=[(name[x], word) for x, word, _ in lexical],
        lexical_weight=[rule[2] for rule in lexical],
    )


def damped(single, kept, units):
    """One-child rules such that no way round any circle keeps more than the share `kept`.

    Measuring every symbol in a unit of its own changes weights without changing what a circle keeps.
    """
    totals = {}
    for x, _, weight, _ in single:
        totals[x] = totals.get(x, 0.0) + weight
    return [(x, y, weight * min(1.0, kept / totals[x]) * units[x] / units[y], wish) for x, y, weight, wish in single]


def sentences(grammar, max_size=5):
    """Sentences of the grammar's words, as numbers."""
    return sized(st.integers(0, len(grammar.words) - 1), 1, max_size)
