"""What subcategories mean: of every one its commonest words, rules and parents, and the tree of their splits."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tsgkit._checks import require_amounts
from tsgkit._codes import FOOT
from tsgkit.errors import UsageError
from tsgkit.grammar import WeightedGrammar
from tsgkit.grammar._weighted import NO_LABEL
from tsgkit.models._derivations import Cut, DerivationReader, cut, nodes_of, states_of
from tsgkit.models._fragments import FragmentTable
from tsgkit.models._model import Model
from tsgkit.models._rules import number_rules
from tsgkit.models._srtsg import Subcategories
from tsgkit.treebank import FlatCorpus

# In the state of a model with insertion: for every node 0, 1 or 2 if its left or right child is the foot of what is
# inserted there.
FEET = "feet"


@dataclass(frozen=True)
class Subcategory:
    """One subcategory as people can read it.

    Attributes
    ----------
    name : str
        The label and one digit for every split that was kept: ``NP-01`` is half of ``NP-0``.
    count : int
        Nodes of the training trees.
    words, rules, parents : list of (str, int)
        What its nodes have below and above them, commonest first.
    """

    name: str
    count: int
    words: list[tuple[str, int]]
    rules: list[tuple[str, int]]
    parents: list[tuple[str, int]]


class SubcategoryTable:
    """The subcategories of a model's training trees.

    Parameters
    ----------
    corpus : FlatCorpus
    splits : list of Subcategories
        One per split.
    symbols : ndarray, one per node
        The subcategory after the last split.
    """

    def __init__(self, corpus: FlatCorpus, splits: list[Subcategories], symbols: np.ndarray) -> None:
        self.corpus, self.splits, self.symbols = corpus, splits, symbols
        self.label = splits[-1].label
        self.names = symbol_names(corpus.labels, splits)

    @classmethod
    def of_model(cls, model: Model) -> "SubcategoryTable":
        """The subcategories of a symbol-refined model's last sample."""
        corpus = model.corpus
        if corpus is None:
            raise UsageError("the model does not keep its training trees, so it has no subcategories to show")
        try:
            splits = read_splits(model.state, corpus)
            groups, bits = model.state["groups"], model.state["bits"]
            require_amounts(groups, "int32", (corpus.n_nodes,))
            require_amounts(bits, "uint8", (corpus.n_nodes,))
            if (groups >= len(splits[-1].n_options)).any() or (bits > 1).any():
                raise ValueError("a subcategory is out of range")
            symbols = splits[-1].number[2 * groups.astype(np.int64) + bits]
            if (symbols < 0).any() or (splits[-1].label[symbols] != corpus.label).any():
                raise ValueError("a subcategory is of another label")
        except (KeyError, ValueError, IndexError) as error:
            raise UsageError(f"the model's subcategories are damaged: {error}") from None
        return cls(corpus, splits, symbols)

    def labels(self) -> list[str]:
        """The labels with more than one subcategory, most frequent first."""
        n_symbols = np.bincount(self.label, minlength=len(self.corpus.labels))
        count = np.bincount(self.corpus.label, minlength=len(self.corpus.labels))
        order = np.argsort(-count, kind="stable")
        return [self.corpus.labels[label] for label in order if n_symbols[label] > 1]

    def subcategories(self, label: str, n_examples: int = 5) -> list[Subcategory]:
        """The subcategories of a label, in the order of their names."""
        if label not in self.corpus.labels:
            raise UsageError(f"{label}: the model has no such label; it has {', '.join(sorted(self.corpus.labels))}")
        wanted = np.flatnonzero(self.label == self.corpus.labels.index(label)).tolist()
        return [self.describe(symbol, n_examples) for symbol in sorted(wanted, key=lambda each: self.names[each])]

    def describe(self, symbol: int, n_examples: int) -> Subcategory:
        """What the nodes of a subcategory have in common."""
        corpus = self.corpus
        nodes = np.flatnonzero(self.symbols == symbol)
        words: Counter[str] = Counter()
        rules: Counter[str] = Counter()
        parents: Counter[str] = Counter()
        for node in nodes.tolist():
            children = corpus.child[corpus.child_start[node] : corpus.child_start[node + 1]]
            if len(children):
                rules[" ".join(self.names[self.symbols[child]] for child in children)] += 1
            else:
                words[corpus.forms[corpus.form[node]]] += 1
            if self.parent[node] >= 0:
                parents[self.names[self.symbols[self.parent[node]]]] += 1
        common = [counter.most_common(n_examples) for counter in (words, rules, parents)]
        return Subcategory(self.names[symbol], len(nodes), *common)

    def phrases(self, name: str, n_examples: int = 5) -> list[tuple[str, int]]:
        """The most frequent phrases of a subcategory; of those that are equally frequent, the shortest."""
        corpus, counter = self.corpus, Counter[str]()
        for node in np.flatnonzero(self.symbols == self.names.index(name)).tolist():
            # In preorder, the nodes below one follow it; those with a form are words.
            forms = corpus.form[node : self.end[node]]
            counter[" ".join(corpus.forms[form] for form in forms[forms >= 0].tolist())] += 1
        order = sorted(counter.items(), key=lambda item: (-item[1], item[0].count(" "), item[0]))
        return order[:n_examples]

    @cached_property
    def end(self) -> np.ndarray:
        """The node after the last one below every node."""
        end = np.arange(1, self.corpus.n_nodes + 1)
        for node in range(self.corpus.n_nodes - 1, 0, -1):
            parent = self.parent[node]
            if parent >= 0:
                end[parent] = max(end[parent], end[node])
        return end

    @property
    def parent(self) -> np.ndarray:
        """The parent of every node, or -1."""
        if not hasattr(self, "_parent"):
            self._parent = np.full(self.corpus.n_nodes, -1, dtype=np.int64)
            self._parent[self.corpus.child] = np.repeat(
                np.arange(self.corpus.n_nodes), np.diff(self.corpus.child_start)
            )
        return self._parent

    def hierarchy(self, label: str) -> Iterator[tuple[int, str, int]]:
        """The tree of a label's splits, top down: depth, name and count of each; splits undone are left out."""
        leaves = {each.name: each.count for each in self.subcategories(label, 0)}
        counts: Counter[str] = Counter()
        for name, count in leaves.items():
            digits = name.removeprefix(label)
            for end in {0, *range(2, len(digits) + 1)}:
                counts[label + digits[:end]] += count
        for name in sorted(counts):
            yield max(len(name) - len(label) - 1, 0), name, counts[name]


def read_splits(state: dict[str, np.ndarray], corpus: FlatCorpus) -> list[Subcategories]:
    """The checked splits of a saved state."""
    subcategories = Subcategories.whole(len(corpus.labels))
    splits: list[Subcategories] = []
    while f"options_{len(splits)}" in state:
        split = subcategories.split(int(corpus.label[0]))
        options = state[f"options_{len(splits)}"]
        require_amounts(options, "uint8", split.n_options.shape)
        if (options < 1).any() or (options > split.n_options).any():
            raise ValueError("a split has other subcategories")
        subcategories = Subcategories(split.group_label, options, split.n_labels)
        splits.append(subcategories)
    if not splits:
        raise ValueError("there are no splits")
    return splits


def symbol_names(labels: list[str], splits: list[Subcategories]) -> list[str]:
    """The names of all subcategories after the last split.

    Examples
    --------
    >>> two = np.array([1, 2], dtype=np.uint8)
    >>> first = Subcategories(np.array([0, 1]), two, 2)
    >>> symbol_names(["TOP", "NP"], [first])
    ['TOP', 'NP-0', 'NP-1']
    """
    names = list(labels)
    for number, split in enumerate(splits):
        before = names
        names = []
        for group, n_options in enumerate(split.n_options.tolist()):
            name = before[group]
            dash = "" if number and name != labels[split.group_label[group]] else "-"
            names += [name] if n_options == 1 else [f"{name}{dash}{option}" for option in range(2)]
    return names


def refined_fragments(model: Model) -> FragmentTable:
    """The fragments of a symbol-refined model's last sample: roots and frontiers with subcategories, the rest without.

    A model that was trained without sites has single rules only.
    """
    table = SubcategoryTable.of_model(model)
    corpus = table.corpus
    sites = checked_sites(model, corpus)
    label = np.where(sites == 1, len(corpus.labels) + table.symbols, corpus.label).astype(np.int32)
    refined = replace(corpus, labels=[*corpus.labels, *table.names], label=label)
    return fragments_of_sites(refined, sites, checked_feet(model, corpus, sites))


def unrefined_fragments(model: Model) -> FragmentTable:
    """The same without subcategories and insertions: fragments that differ in their subcategories only are one."""
    corpus = SubcategoryTable.of_model(model).corpus
    return fragments_of_sites(corpus, checked_sites(model, corpus))


def checked_sites(model: Model, corpus: FlatCorpus) -> np.ndarray:
    """Which nodes of the training trees are sites; all, if the model was trained without them."""
    sites = model.state.get("sites", np.ones(corpus.n_nodes, dtype=np.uint8))
    is_fit = sites.dtype == np.uint8 and sites.shape == (corpus.n_nodes,) and (sites <= 1).all()
    if not is_fit or not sites[corpus.tree_start[:-1]].all():
        raise UsageError("the model's sites are damaged")
    return sites


def checked_feet(model: Model, corpus: FlatCorpus, sites: np.ndarray) -> np.ndarray | None:
    """What is inserted at the nodes of the training trees; None if the model was trained without insertion."""
    feet = model.state.get(FEET)
    if feet is None:
        return None
    nodes = np.flatnonzero(feet)
    is_fit = feet.dtype == np.uint8 and feet.shape == (corpus.n_nodes,) and bool((feet <= 2).all())
    is_fit = is_fit and not sites[nodes].any() and bool((np.diff(corpus.child_start)[nodes] == 2).all())
    if is_fit:
        below = corpus.child[corpus.child_start[nodes] + feet[nodes] - 1]
        is_fit = bool((corpus.label[below] == corpus.label[nodes]).all()) and not sites[below].any()
    if not is_fit:
        raise UsageError("the model's insertions are damaged")
    return feet


def fragments_of_sites(corpus: FlatCorpus, sites: np.ndarray, feet: np.ndarray | None = None) -> FragmentTable:
    """The fragments of trees that are cut at these sites, and around insertions with these feet."""
    trees = number_rules(corpus)
    number_of: dict[tuple[int, int, int], int] = {}
    below, uses = np.full((2, corpus.n_nodes), -1, dtype=np.int64)
    columns = (trees.rule.tolist(), trees.left.tolist(), trees.right.tolist())
    is_site, inserted = sites.tolist(), [0] * corpus.n_nodes if feet is None else feet.tolist()
    for node, (rule, *children) in reversed(list(enumerate(zip(*columns, strict=True)))):
        parts = [-1 if child < 0 or is_site[child] else int(below[child]) for child in children]
        if inserted[node]:
            # The fragment around it continues at the foot.
            below[node], parts[inserted[node] - 1] = below[children[inserted[node] - 1]], FOOT
        number = number_of.setdefault((rule, parts[0], parts[1]), len(number_of))
        if not inserted[node]:
            below[node] = number
        if is_site[node] or inserted[node]:
            uses[node] = number
    rules = np.stack([trees.rule_label, trees.rule_left_label, trees.rule_right_label, trees.rule_word], axis=1)
    fragments = np.array(list(number_of), dtype=np.int32)
    counts = np.bincount(uses[uses >= 0], minlength=len(number_of))
    return FragmentTable(corpus.labels, corpus.words, rules, fragments, counts, None, uses, corpus)


def refined_states(grammar: WeightedGrammar, rows: np.ndarray, n_symbols: int) -> tuple[np.ndarray, ...]:
    """The nodes of a derivation with a symbol-refined grammar, and what it says of each.

    Parameters
    ----------
    grammar : WeightedGrammar
        Of an srtsg model.
    rows : ndarray of int with four columns
        As `tsgkit.models._derivations.nodes_of` takes them.
    n_symbols : int
        The number of refined symbols, which come first; a node that has one begins a fragment.

    Returns
    -------
    nodes, states : ndarray of int
        As of `tsgkit.models._derivations.node_states`.
    symbols : ndarray of int, one per node
        The refined symbol where a fragment begins, elsewhere -1.
    """
    nodes, node_of_row = nodes_of(grammar, rows)
    symbols = np.full(len(nodes), -1, dtype=np.int64)
    begins, beside = np.zeros((2, len(nodes)), dtype=bool)
    is_site = rows[:, 0] < n_symbols
    begins[node_of_row[is_site]] = True
    symbols[node_of_row[is_site]] = rows[is_site, 0]
    # What stands beside the foot of an insertion has no label.
    beside[node_of_row[grammar.label[rows[:, 0]] == NO_LABEL]] = True
    return nodes, states_of(nodes, begins, beside), symbols


class RefinedReader(DerivationReader):
    """Reads derivations with a symbol-refined grammar: fragments show subcategories where the model knows them.

    Parameters
    ----------
    model : Model
    """

    def __init__(self, model: Model) -> None:
        super().__init__(model.grammar)
        table = SubcategoryTable.of_model(model)
        self.names = table.names
        labels = [table.corpus.labels[label] for label in table.label.tolist()]
        self.digits = [digits_of(name, label) for name, label in zip(self.names, labels, strict=True)]
        rows = zip(self.names, labels, self.digits, strict=True)
        self.refined = {name: (label, digits) for name, label, digits in rows if digits}

    def read(self, rows: np.ndarray, vocabulary_words: Sequence[str]) -> Cut:
        """Cut a derivation, the rows of `tsgkit.models._derivations.nodes_of`, of a sentence."""
        labels = self.grammar.labels
        nodes, states, symbols = refined_states(self.grammar, rows, len(self.names))
        refined = nodes.copy()
        refined[:, 0] = np.where(symbols >= 0, len(labels) + symbols, nodes[:, 0])
        steps = cut(refined, states, [*labels, *self.names], vocabulary_words)
        digits = [self.digits[symbol] if symbol >= 0 else "" for symbol in symbols.tolist()]
        return Cut(nodes, states, digits, steps)


def digits_of(name: str, label: str) -> str:
    """The digits of a refined label's name, empty for one that was never split.

    Examples
    --------
    >>> digits_of("NP-01", "NP"), digits_of("NP", "NP")
    ('01', '')
    """
    return name.removeprefix(label).removeprefix("-")
