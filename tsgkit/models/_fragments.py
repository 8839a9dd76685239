"""The fragments of a trained model as values: how often each was used, how large it is, where it was seen.

After training, for people to read. A fragment is stored as ``(rule, left part, right part)``, each once and
parts before wholes, as the sampler keeps them; trees and brackets are made only of those that are shown. With
insertion, fragments are the initial and the auxiliary trees; the foot of the latter is written ``(NP* )``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from nltk.tree import Tree

from tsgkit._codes import FOOT
from tsgkit._guesses import one_of
from tsgkit.errors import UsageError
from tsgkit.grammar._weighted import GrammarError, WeightedGrammar
from tsgkit.models._derivations import FOOT_MARK
from tsgkit.models._model import Model
from tsgkit.models._rules import TreeArrays, number_rules
from tsgkit.models._tsg import validate_fragments
from tsgkit.treebank import FlatCorpus
from tsgkit.treebank._binarize import undo_label
from tsgkit.treebank._brackets import escape_symbol
from tsgkit.treebank._fragments import format_fragment
from tsgkit.treebank._trees import words

SORTS = ("count", "size", "root")
KINDS = ("all", "initial", "auxiliary")


@dataclass(frozen=True)
class Example:
    """An occurrence of a fragment in the training trees.

    Attributes
    ----------
    tree : int
        The number of the tree, counted from 0.
    words : list of str
        Its sentence as it stands in the text.
    start, end : int
        The words below the fragment's root.
    """

    tree: int
    words: list[str]
    start: int
    end: int

    def marked(self) -> str:
        """The sentence with brackets around the words below the fragment's root."""
        inside = " ".join(self.words[self.start : self.end])
        return " ".join([*self.words[: self.start], f"[{inside}]", *self.words[self.end :]])


@dataclass(frozen=True)
class Fragment:
    """A fragment and its use.

    Attributes
    ----------
    tree : nltk.Tree
        Frontier nodes have no children; words are those of the closed vocabulary.
    size : int
        Its number of rules.
    count : int or float
        Its customers: the number of its occurrences in the training trees. Of the rules of a CFG, the weight.
    tables : int or None
        Its tables.
    side : str
        Of an auxiliary tree, where its words go, seen from the foot: ``left``, ``right``, or ``above`` if there are
        none; empty for an initial tree.
    """

    tree: Tree
    size: int
    count: float
    tables: int | None
    side: str = ""

    @property
    def brackets(self) -> str:
        return format_fragment(self.tree)

    @property
    def root(self) -> str:
        return str(self.tree.label())

    @property
    def words(self) -> list[str]:
        return words(self.tree)


@dataclass(frozen=True, repr=False)
class FragmentTable:
    """All fragments of a model; they are called by their numbers.

    Attributes
    ----------
    labels, words : list of str
    rules : ndarray with four columns
        Label, label of the first and of the second child, word; -1 for what a rule does not have.
    fragments : ndarray with three columns
        Rule, left part, right part; parts come before wholes, -1 is a frontier or no child, -3 a foot.
    counts : ndarray, one per fragment
        0 for what is only a part of others.
    tables : ndarray, one per fragment, optional
    uses : ndarray, one per node of the corpus, optional
        The fragment that begins at the node, or -1.
    corpus : FlatCorpus, optional
    measure : str
        What the counts are: ``count``, or ``weight`` for the rules of a CFG.

    Examples
    --------
    >>> import tsgkit
    >>> table = tsgkit.train("village:dev", model="tsg", iterations=2, average=1).fragments()
    >>> table.fragment(table.select(root="NP", sort="count")[0]).brackets
    '(NP (PRP ))'
    """

    labels: list[str]
    words: list[str]
    rules: np.ndarray
    fragments: np.ndarray
    counts: np.ndarray
    tables: np.ndarray | None = None
    uses: np.ndarray | None = None
    corpus: FlatCorpus | None = None
    measure: str = "count"

    def __repr__(self) -> str:
        return f"<FragmentTable of {len(self.counts)} fragments, {len(self.labels)} labels>"

    @classmethod
    def of_sample(cls, model: Model) -> "FragmentTable":
        """The fragments that the training trees of a TSG are cut into."""
        if model.corpus is None:
            raise UsageError("the model does not keep its training trees, so it has no fragments to show")
        return cls.of_state(model.corpus, model.state)

    @classmethod
    def of_state(cls, corpus: FlatCorpus, state: dict[str, np.ndarray]) -> "FragmentTable":
        """The fragments that the state of a sampler cuts the trees of a corpus into."""
        trees = number_rules(corpus)
        try:
            validate_state(state, trees)
        except ValueError as error:
            raise GrammarError(f"the model's fragments do not fit its training trees: {error}") from None
        fragments, dishes = state["fragments"], state["dishes"]
        sizes = state["sizes"]
        tables = np.bincount(sizes[:, 0], weights=sizes[:, 2], minlength=len(fragments)).astype(np.int64)
        columns = (trees.rule_label, trees.rule_left_label, trees.rule_right_label, trees.rule_word)
        counts = np.bincount(dishes[dishes >= 0], minlength=len(fragments))
        rules = np.stack(columns, axis=1)
        return cls(corpus.labels, corpus.words, rules, fragments, counts, tables, dishes, corpus)

    @classmethod
    def of_rules(cls, grammar: WeightedGrammar) -> "FragmentTable":
        """The rules of a grammar whose symbols are the labels, each as a fragment."""
        if not np.array_equal(grammar.label, np.arange(len(grammar.labels))):
            raise GrammarError("this grammar has symbols that are not its labels, so that its rules are no fragments")
        kinds = (
            (grammar.binary, grammar.binary_weight, (0, 1, 2)),
            (grammar.unary, grammar.unary_weight, (0, 1)),
            (grammar.lexical, grammar.lexical_weight, (0, 3)),
        )
        rules = []
        for kind, _, columns in kinds:
            rows = np.full((len(kind), 4), -1, dtype=np.int32)
            rows[:, columns] = kind
            rules.append(rows)
        numbers = np.arange(sum(map(len, rules)), dtype=np.int32)
        fragments = np.stack([numbers, np.full_like(numbers, -1), np.full_like(numbers, -1)], axis=1)
        weights = np.concatenate([weights for _, weights, _ in kinds])
        labels, vocabulary = list(grammar.labels), list(grammar.words)
        return cls(labels, vocabulary, np.concatenate(rules), fragments, weights, measure="weight")

    @cached_property
    def sizes(self) -> np.ndarray:
        """The number of rules of every fragment."""
        sizes: list[int] = []
        for _, left, right in self.fragments.tolist():
            sizes.append(1 + (sizes[left] if left >= 0 else 0) + (sizes[right] if right >= 0 else 0))
        return np.array(sizes, dtype=np.int64)

    @cached_property
    def number_of(self) -> dict[str, int]:
        """The numbers of all fragments in use, by their brackets."""
        return {format_fragment(self.tree(number)): number for number in np.flatnonzero(self.counts).tolist()}

    @cached_property
    def count_of(self) -> dict[str, float]:
        """The counts of all fragments in use, by their brackets."""
        return {brackets: self.counts[number].item() for brackets, number in self.number_of.items()}

    @cached_property
    def first_node(self) -> np.ndarray | None:
        """For every fragment the node of its first occurrence in the corpus, or -1."""
        if self.uses is None:
            return None
        sites = np.flatnonzero(self.uses >= 0)
        used, first = np.unique(self.uses[sites], return_index=True)
        first_node = np.full(len(self.fragments), -1)
        first_node[used] = sites[first]
        return first_node

    @cached_property
    def is_auxiliary(self) -> np.ndarray:
        """Which fragments are auxiliary trees."""
        return (self.fragments[:, 1:] == FOOT).any(axis=1)

    @cached_property
    def is_lexicalised(self) -> np.ndarray:
        """Which fragments have a word."""
        found: list[bool] = []
        for rule, left, right in self.fragments.tolist():
            below = (left >= 0 and found[left]) or (right >= 0 and found[right])
            found.append(bool(self.rules[rule, 3] >= 0) or below)
        return np.array(found, dtype=bool)

    def contains(self, name: str) -> np.ndarray:
        """Which fragments have the word `name`, or a node labelled so."""
        is_label = self.labels_called(name)
        spelt = {name, escape_symbol(name)}
        is_word = np.array([*(word in spelt for word in self.words), False])
        # -1, for what a rule does not have, finds the last entry, which is no.
        in_rule = is_label[self.rules[:, :3]].any(axis=1) | is_word[self.rules[:, 3]]
        found: list[bool] = []
        for rule, left, right in self.fragments.tolist():
            below = (left >= 0 and found[left]) or (right >= 0 and found[right])
            found.append(bool(in_rule[rule]) or below)
        return np.array(found, dtype=bool)

    def labels_called(self, name: str) -> np.ndarray:
        """For every label, and at last for none, whether it is `name`, with or without its markovisation."""
        return np.array([*(name in (label, undo_label(label)) for label in self.labels), False])

    def select(
        self,
        *,
        root: str | None = None,
        contains: str | None = None,
        min_count: float = 0,
        min_size: int = 1,
        kind: str = "all",
        lexicalised: bool = False,
        sort: str = "count",
    ) -> list[int]:
        """The numbers of the fragments in use that fit, in order.

        Parameters
        ----------
        root : str, optional
            The label of the root, as binarised (``NP^S``) or plain (``NP``).
        contains : str, optional
            A word of the closed vocabulary, or a label of any node.
        min_count, min_size : number
        kind : {"all", "initial", "auxiliary"}
        lexicalised : bool
            Only fragments that have a word.
        sort : {"count", "size", "root"}
            The largest first, or the roots in alphabetical order; then the most frequent, then the largest,
            then in the order of the training trees.
        """
        if sort not in SORTS:
            raise UsageError(f"sort {sort!r}: must be {one_of(sort, SORTS)}")
        if kind not in KINDS:
            raise UsageError(f"kind {kind!r}: must be {one_of(kind, KINDS)}")
        fits = (self.counts > 0) & (self.counts >= min_count) & (self.sizes >= min_size)
        root_label = self.rules[self.fragments[:, 0], 0]
        if root is not None:
            fits &= self.labels_called(root)[root_label]
        if contains is not None:
            fits &= self.contains(contains)
        if kind != "all":
            fits &= self.is_auxiliary == (kind == "auxiliary")
        if lexicalised:
            fits &= self.is_lexicalised
        chosen = np.flatnonzero(fits)
        first = chosen if self.first_node is None else self.first_node[chosen]
        keys = [first, -self.sizes[chosen], -self.counts[chosen]]  # the last one counts most
        if sort == "size":
            keys.append(-self.sizes[chosen])
        elif sort == "root":
            rank_of_label = np.unique(np.array(self.labels, dtype=object), return_inverse=True)[1]
            keys.append(rank_of_label[root_label[chosen]])
        return [int(number) for number in chosen[np.lexsort(keys)]]

    def size_histogram(self, numbers: Sequence[int]) -> list[tuple[int, int, float]]:
        """Of these fragments: for every size, how many there are and the sum of their counts."""
        chosen = np.array(numbers, dtype=np.int64)
        sizes, row, types = np.unique(self.sizes[chosen], return_inverse=True, return_counts=True)
        tokens = np.zeros(len(sizes), dtype=self.counts.dtype)
        np.add.at(tokens, row, self.counts[chosen])
        return list(zip(sizes.tolist(), types.tolist(), tokens.tolist(), strict=True))

    def tree(self, number: int) -> Tree:
        """A fragment as a tree."""
        top = Tree(self.labels[self.rules[self.fragments[number, 0], 0]], [])
        open_nodes = [(number, top)]
        while open_nodes:
            part, node = open_nodes.pop()
            rule, *parts = self.fragments[part].tolist()
            _, left_label, right_label, word = self.rules[rule].tolist()
            if word >= 0:
                node.append(self.words[word])
            for label, below in zip((left_label, right_label), parts, strict=True):
                if label >= 0:
                    node.append(Tree(self.labels[label] + (FOOT_MARK if below == FOOT else ""), []))
                if below >= 0:
                    open_nodes.append((below, node[-1]))
        return top

    def fragment(self, number: int) -> Fragment:
        """A fragment and its use."""
        tables = None if self.tables is None else int(self.tables[number])
        return Fragment(
            self.tree(number), int(self.sizes[number]), self.counts[number].item(), tables, self.side(number)
        )

    def side(self, number: int) -> str:
        """On which side of its foot an auxiliary tree has its words; see `Fragment`."""
        rule, left, right = self.fragments[number].tolist()
        if FOOT not in (left, right):
            return ""
        if self.rules[rule, 2] < 0:
            return "above"
        return "right" if left == FOOT else "left"

    def example(self, number: int) -> Example:
        """The first occurrence of a fragment in the training trees."""
        return self.examples(number, 1)[0]

    def examples(self, number: int, limit: int) -> list[Example]:
        """The first occurrences of a fragment in the training trees, at most one per tree."""
        if self.corpus is None or self.uses is None:
            raise UsageError("the model does not keep its training trees, so it has no examples to show")
        nodes = np.flatnonzero(self.uses == number)
        trees, first = np.unique(np.searchsorted(self.corpus.tree_start, nodes, side="right") - 1, return_index=True)
        found = zip(trees[:limit].tolist(), nodes[first[:limit]].tolist(), strict=True)
        return [self.occurrence(tree, node) for tree, node in found]

    def occurrence(self, tree: int, node: int) -> Example:
        """A node of the training trees as an example."""
        assert self.corpus is not None
        sentence: list[str] = []
        start = end = 0
        # A number that comes again, as its complement, is a node whose last word has been seen.
        stack = [int(self.corpus.tree_start[tree])]
        while stack:
            at = stack.pop()
            if at < 0:
                end = len(sentence)
                continue
            if at == node:
                start = len(sentence)
                stack.append(~at)
            if self.corpus.form[at] >= 0:
                sentence.append(self.corpus.forms[self.corpus.form[at]])
            first, last = self.corpus.child_start[at : at + 2].tolist()
            stack.extend(self.corpus.child[first:last][::-1].tolist())
        return Example(tree, sentence, start, end)


def with_bare_foot(brackets: str, root: str) -> str:
    """An auxiliary tree as people write it: the foot without brackets."""
    return brackets.replace(f"({root}{FOOT_MARK} )", f"{root}{FOOT_MARK}", 1)


def validate_state(state: dict[str, np.ndarray], trees: TreeArrays) -> None:
    """Raise a ValueError unless the fragments of a TSG's state are those of its trees."""
    n_nodes = len(trees.label)
    for name, (n_dimensions, last) in {"fragments": (2, 3), "sizes": (2, 3), "dishes": (1, n_nodes)}.items():
        array = state.get(name, np.empty(0))
        if array.dtype != np.int32 or array.ndim != n_dimensions or array.shape[-1] != last:
            raise ValueError(f"{name} is missing or has the wrong type or shape")
    fragments, sizes, dishes = state["fragments"], state["sizes"], state["dishes"]
    validate_fragments(fragments, trees)
    rule = fragments[:, 0]
    used = dishes >= 0
    if (dishes >= len(fragments)).any() or not used[trees.tree_start[:-1]].all():
        raise ValueError("a site has no fragment")
    if (rule[dishes[used]] != trees.rule[used]).any():
        raise ValueError("a site has another rule than its fragment")
    if (sizes[:, 0] < 0).any() or (sizes[:, 0] >= len(fragments)).any() or (sizes[:, 1:] < 1).any():
        raise ValueError("a table is out of range or has no customers")
    customers = sizes[:, 1].astype(np.float64) * sizes[:, 2]
    seated = np.bincount(sizes[:, 0], weights=customers, minlength=len(fragments))
    if (seated != np.bincount(dishes[used], minlength=len(fragments))).any():
        raise ValueError("the tables do not seat the sites")
