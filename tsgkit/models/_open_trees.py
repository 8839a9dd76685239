"""Corpora in which some trees are not known: their sentences, the rules that they may have, and first trees.

Before training. An *open* sentence has words and perhaps some brackets; its tree is sampled. In the flat corpus it has
a tree like all others, which is only where sampling begins. Since the trees change, the base distribution P0 cannot be
the relative frequency of their rules. It is fixed, over a set of rules that is fixed, too:

    P0(r) = c(r) / sum over r' with the label of r of c(r')

where ``c`` counts a rule in the trees that are known. With known trees, the rules are theirs, and a word that has no
tag there may have any: such rules count 1. Without known trees, all rules over a number of induced labels count 1.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tsgkit._chart import Chart
from tsgkit._derivations import sample_derivations
from tsgkit._grammar_index import GrammarIndex
from tsgkit._plain import settings_of
from tsgkit.errors import TreebankError, UsageError
from tsgkit.grammar import WeightedGrammar
from tsgkit.models._constraints import LabelAutomata
from tsgkit.models._rules import TreeArrays, number_rules
from tsgkit.treebank import Cleaning, FlatCorpus, Preparation
from tsgkit.treebank._flat import NO_WORD, children_of
from tsgkit.treebank._partial import GivenBracket, OpenSentence, require_brackets
from tsgkit.treebank._prepare import preparation_of

OPEN = "open"  # the key in the settings of a corpus
ROOT = "TOP"
NumberedSentence = tuple[list[int], list[int], list[GivenBracket]]  # words, forms, brackets
Rule = tuple[int, int, int, int]  # label, left and right label, word; -1 for what there is not


@dataclass(frozen=True)
class OpenPart:
    """Which trees of a corpus are not known, and what is known of them.

    Attributes
    ----------
    first : int
        The number of the first such tree; all after it are open, too.
    brackets : list of list of GivenBracket
        For every open tree.
    induced : int
        How many labels are induced; 0 if there are trees that are known.
    """

    first: int
    brackets: list[list[GivenBracket]]
    induced: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        brackets = [list(map(list, each)) for each in self.brackets]
        return {"first": self.first, "brackets": brackets, "induced": self.induced}

    @classmethod
    def of_corpus(cls, corpus: FlatCorpus) -> "OpenPart | None":
        """The open part of a corpus, checked; None if all its trees are known."""
        values = corpus.settings.get(OPEN)
        if values is None:
            return None
        try:
            found = settings_of(cls, values)
            brackets = [[(label, start, end) for label, start, end in each] for each in found.brackets]
            n_open = corpus.n_trees - found.first
            if found.first < 0 or n_open < 1 or len(brackets) != n_open or found.induced < 0:
                raise ValueError("the numbers of trees do not fit")
            lengths = [int((words_of(corpus, found.first + number) >= 0).sum()) for number in range(n_open)]
            checked = [require_brackets(each, length) for each, length in zip(brackets, lengths, strict=True)]
        except (TypeError, ValueError, UsageError) as error:
            raise TreebankError(f"the sentences without trees of the corpus are damaged: {error}") from None
        return replace(found, brackets=checked)


def words_of(corpus: FlatCorpus, tree: int) -> np.ndarray:
    """The numbers of a tree's words, from left to right."""
    word = corpus.word[corpus.tree_start[tree] : corpus.tree_start[tree + 1]]
    return word[word >= 0]


# ---- rules ---------------------------------------------------------------------------------------------------


class RuleTable:
    """The rules that trees may have, with their counts.

    Parameters
    ----------
    counts : dict
        By rule.
    labels, words : sequence of str
    root : int
        The label of all roots.
    """

    def __init__(self, counts: dict[Rule, int], labels: Sequence[str], words: Sequence[str], root: int) -> None:
        self.rules = sorted(counts)
        self.counts = np.array([counts[rule] for rule in self.rules], dtype=np.int64)
        self.number_of = {rule: number for number, rule in enumerate(self.rules)}
        self.labels, self.words, self.root = list(labels), list(words), root

    def trees(self, trees: Sequence["NodeArrays"]) -> TreeArrays:
        """Trees over these rules."""
        columns = np.array(self.rules, dtype=np.int32).reshape(-1, 4).T
        totals = np.bincount(columns[0], weights=self.counts, minlength=len(self.labels))
        empty = np.empty(0, dtype=np.int32)
        arrays = TreeArrays(
            label=empty,
            rule=empty,
            left=empty,
            right=empty,
            parent=empty,
            tree_start=np.zeros(1, dtype=np.int64),
            rule_label=columns[0].copy(),
            rule_left_label=columns[1].copy(),
            rule_right_label=columns[2].copy(),
            rule_word=columns[3].copy(),
            rule_count=self.counts,
            rule_weight=self.counts.astype(np.float64),
            rule_probability=self.counts / totals[columns[0]],
            n_labels=len(self.labels),
        )
        return with_trees(arrays, trees)

    def grammar(self, probability: np.ndarray) -> WeightedGrammar:
        """The CFG with these probabilities."""
        rules = np.array(self.rules, dtype=np.int32).reshape(-1, 4)
        is_lexical, is_binary = rules[:, 3] >= 0, rules[:, 2] >= 0
        is_unary = ~is_lexical & ~is_binary
        return WeightedGrammar(
            self.labels,
            self.words,
            np.arange(len(self.labels), dtype=np.int32),
            self.root,
            binary=rules[is_binary][:, :3],
            binary_weight=probability[is_binary],
            unary=rules[is_unary][:, :2],
            unary_weight=probability[is_unary],
            lexical=rules[is_lexical][:, [0, 3]],
            lexical_weight=probability[is_lexical],
        )

    @classmethod
    def of_corpus(cls, corpus: FlatCorpus, part: OpenPart) -> "RuleTable":
        """The rules for a corpus with an open part."""
        labels, words = corpus.labels, corpus.words
        root = int(corpus.label[0])
        open_words = {int(word) for word in corpus.word[corpus.tree_start[part.first] :] if word >= 0}
        if part.induced:
            return cls(induced_rules(labels, len(words), root, part.induced), labels, words, root)
        known = number_rules(first_trees(corpus, part.first))
        counts: dict[Rule, int] = {}
        for rule in range(known.n_rules):
            key = tuple(
                int(column[rule])
                for column in (known.rule_label, known.rule_left_label, known.rule_right_label, known.rule_word)
            )
            counts[key] = int(known.rule_count[rule])  # type: ignore[index]
        tags = sorted({label for label, _, _, word in counts if word >= 0})
        seen = {word for _, _, _, word in counts}
        for word in sorted(open_words - seen):
            counts |= {(tag, -1, -1, word): 1 for tag in tags}
        number_of_label = {label: number for number, label in enumerate(labels)}
        for number, brackets in enumerate(part.brackets):
            sentence = words_of(corpus, part.first + number)
            for label, start, end in brackets:
                tag = number_of_label.get(label or "", -1)
                if end == start + 1 and tag in tags:
                    counts.setdefault((tag, -1, -1, int(sentence[start])), 1)
        return cls(counts, labels, words, root)


def induced_rules(labels: Sequence[str], n_words: int, root: int, n_induced: int) -> dict[Rule, int]:
    """All rules over the root, induced labels and tags, in this order; the word of a tag is that of its number.

    The root has one child, an induced label or a tag; an induced label has two, each an induced label or a tag.
    """
    others = [label for label in range(len(labels)) if label != root]
    induced, tags = others[:n_induced], others[n_induced:]
    counts: dict[Rule, int] = {(root, child, -1, -1): 1 for child in others}
    counts |= {(parent, left, right, -1): 1 for parent in induced for left in others for right in others}
    counts |= {(tag, -1, -1, word): 1 for word, tag in enumerate(tags[:n_words])}
    return counts


def first_trees(corpus: FlatCorpus, n_trees: int) -> FlatCorpus:
    """The first trees of a corpus, with all its labels and words."""
    last = corpus.tree_start[n_trees]
    return replace(
        corpus,
        label=corpus.label[:last],
        word=corpus.word[:last],
        form=corpus.form[:last],
        child_start=corpus.child_start[: last + 1],
        child=corpus.child[: corpus.child_start[last]],
        tree_start=corpus.tree_start[: n_trees + 1],
    )


# ---- trees ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NodeArrays:
    """One tree: for every node, parents first, its label, rule, children and parent; -1 for what there is not."""

    label: list[int]
    rule: list[int]
    left: list[int]
    right: list[int]
    parent: list[int]


def tree_of_nodes(nodes: np.ndarray, words: Sequence[int], table: RuleTable) -> NodeArrays:
    """The tree of rows ``(label, start, end, number of children)``, from the root down.

    Raises
    ------
    KeyError
        If it has a rule that is not in the table.
    """
    n_nodes = len(nodes)
    label = nodes[:, 0].tolist()
    left, right, parent = [-1] * n_nodes, [-1] * n_nodes, [-1] * n_nodes
    rule = [-1] * n_nodes
    waiting: list[int] = []  # subtrees to the right of the node at work, the nearest last
    for node in reversed(range(n_nodes)):
        n_children, start = int(nodes[node, 3]), int(nodes[node, 1])
        children = [waiting.pop() for _ in range(n_children)]
        left[node] = children[0] if n_children else -1
        right[node] = children[1] if n_children == 2 else -1
        for child in children:
            parent[child] = node
        key = (
            label[node],
            label[left[node]] if n_children else -1,
            label[right[node]] if n_children == 2 else -1,
            -1 if n_children else int(words[start]),
        )
        rule[node] = table.number_of[key]
        waiting.append(node)
    return NodeArrays(label, rule, left, right, parent)


def with_trees(arrays: TreeArrays, trees: Sequence[NodeArrays]) -> TreeArrays:
    """These trees one after the other, over the same rules."""
    starts: np.ndarray = np.cumsum([0, *(len(tree.label) for tree in trees)])
    columns = {
        name: np.array([value for tree in trees for value in getattr(tree, name)], dtype=np.int32)
        for name in ("label", "rule")
    }
    for name in ("left", "right", "parent"):
        columns[name] = np.array(
            [
                value + start if value >= 0 else -1
                for tree, start in zip(trees, starts.tolist(), strict=False)
                for value in getattr(tree, name)
            ],
            dtype=np.int32,
        )
    return arrays.with_nodes(**columns, tree_start=starts.astype(np.int64))


def trees_of_corpus(corpus: FlatCorpus, table: RuleTable) -> list[NodeArrays]:
    """All trees of a corpus over the rules of a table; a TreebankError if one has another rule."""
    found = []
    n_children = np.diff(corpus.child_start)
    for tree in range(corpus.n_trees):
        first, last = int(corpus.tree_start[tree]), int(corpus.tree_start[tree + 1])
        words = words_of(corpus, tree)
        is_word = corpus.word[first:last] >= 0
        starts: np.ndarray = np.cumsum(is_word) - is_word
        nodes = np.stack([corpus.label[first:last], starts, starts, n_children[first:last]], axis=1)
        try:
            found.append(tree_of_nodes(nodes, words.tolist(), table))
        except KeyError:
            raise TreebankError(f"tree {tree + 1} of the corpus has a rule that trees may not have") from None
    return found


def corpus_of_trees(corpus: FlatCorpus, trees: TreeArrays) -> FlatCorpus:
    """The corpus with other trees over the same sentences."""
    child_start, child = children_of(trees.parent)
    word = np.where(trees.left < 0, trees.rule_word[trees.rule], NO_WORD).astype(np.int32)
    form = np.full(len(word), NO_WORD, dtype=np.int32)
    # In preorder, preterminals come from left to right.
    form[word >= 0] = corpus.form[corpus.form >= 0]
    return replace(
        corpus,
        label=trees.label.astype(np.int32),
        word=word,
        form=form,
        child_start=child_start,
        child=child,
        tree_start=trees.tree_start.astype(np.int32),
    )


# ---- the chart -----------------------------------------------------------------------------------------------


class TreeChart:
    """Charts for sentences whose trees are sampled from one grammar.

    Parameters
    ----------
    grammar : WeightedGrammar
        Its labels are those of the corpus.
    joins_chains : bool
        Whether a label may stand for a chain of unary nodes.
    """

    def __init__(self, grammar: WeightedGrammar, *, joins_chains: bool) -> None:
        self.grammar, self.index = grammar, GrammarIndex(grammar)
        self.automata = LabelAutomata(self.index, grammar.labels, joins_chains)
        order = np.argsort(grammar.lexical[:, 1], kind="stable")
        self.ranks = self.index.rank_of_symbol[grammar.lexical[order, 0]].astype(np.int32)
        self.weights = grammar.lexical_weight[order]
        self.starts = np.searchsorted(grammar.lexical[order, 1], np.arange(len(grammar.words) + 1))

    def sample(
        self, words: np.ndarray, brackets: Sequence[GivenBracket], bit_generator: np.random.BitGenerator
    ) -> np.ndarray | None:
        """The rows of a derivation of a tree with these brackets, drawn by its probability; None if there is none."""
        parts = [slice(self.starts[word], self.starts[word + 1]) for word in words.tolist()]
        starts = np.cumsum([0, *(part.stop - part.start for part in parts)]).astype(np.int64)
        entries = (
            starts,
            np.concatenate([self.ranks[part] for part in parts]),
            np.concatenate([self.weights[part] for part in parts]),
        )
        constraints = self.automata.constraints(brackets, len(words)) if brackets else None
        chart = Chart(self.index)
        try:
            if chart.fill(*entries, constraints=constraints) == -np.inf or chart.is_over_budget:
                return None
            ((rows, _),) = sample_derivations(chart, 1, bit_generator)
        except OverflowError:
            return None
        return np.asarray(rows)


# ---- joining -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OpenCorpus:
    """A corpus with open sentences, and the numbers of those that were left out because no tree fits them."""

    corpus: FlatCorpus
    left_out: list[int]

    def left_out_message(self) -> str:
        """A message on sentences that no tree fits."""
        return (
            f"{len(self.left_out)} sentences without trees are left out, the first is number {self.left_out[0] + 1}:"
            " no tree that the rules can make has their words and brackets"
        )


def with_open_sentences(corpus: FlatCorpus, sentences: Iterable[OpenSentence]) -> OpenCorpus:
    """A corpus of known trees with sentences whose trees are not known, or known in part.

    Parameters
    ----------
    corpus : FlatCorpus
        Binarised, with closed vocabulary.
    sentences : iterable of (words, brackets)
        Labels of brackets are those of the treebank, cleaned.
    """
    preparation = preparation_of(corpus)
    number_of_word = {word: number for number, word in enumerate(corpus.words)}
    number_of_form = {form: number for number, form in enumerate(corpus.forms)}
    found: list[NumberedSentence] = []
    for words, brackets in sentences:
        symbols = [number_of_word.setdefault(word, len(number_of_word)) for word in preparation.vocabulary_words(words)]
        forms = [number_of_form.setdefault(word, len(number_of_form)) for word in words]
        found.append((symbols, forms, require_brackets(brackets, len(words))))
    base = replace(corpus, words=list(number_of_word), forms=list(number_of_form))
    return joined(base, found, 0)


def induced_corpus(sentences: Iterable[OpenSentence], n_labels: int) -> OpenCorpus:
    """A corpus of sentences alone, of tags or words, each its own tag, over a number of induced labels.

    Parameters
    ----------
    sentences : iterable of (words, brackets)
        The labels that brackets can have are those of the example.
    n_labels : int

    Examples
    --------
    >>> corpus = induced_corpus([(["DT", "NN", "VBD"], [(None, 0, 2)])], 2).corpus
    >>> corpus.labels
    ['TOP', 'X1', 'X2', 'DT', 'NN', 'VBD']
    """
    if n_labels < 1:
        raise UsageError(f"{n_labels} induced labels: must be at least 1")
    number_of: dict[str, int] = {}
    found: list[NumberedSentence] = []
    for words, brackets in sentences:
        numbers = [number_of.setdefault(word, len(number_of)) for word in words]
        found.append((numbers, numbers, require_brackets(brackets, len(words))))
    names = [f"X{number}" for number in range(1, n_labels + 1)]
    if clash := sorted({ROOT, *names} & number_of.keys()):
        raise UsageError(f"{clash[0]} is a word and the name of an induced label")
    labels = [ROOT, *names, *number_of]
    empty = np.empty(0, dtype=np.int32)
    corpus = FlatCorpus(
        labels,
        list(number_of),
        list(number_of),
        empty,
        empty,
        empty,
        np.zeros(1, np.int32),
        empty,
        np.zeros(1, np.int32),
    )
    corpus.settings = {"preparation": Preparation(Cleaning(empty_tags=(), functions=False, repeats=False)).to_dict()}
    return joined(corpus, found, n_labels)


def joined(base: FlatCorpus, sentences: Sequence[NumberedSentence], n_induced: int) -> OpenCorpus:
    """The known trees and a first tree for every sentence, sampled from the CFG of P0."""
    if not sentences:
        raise TreebankError("there are no sentences without trees")
    first = base.n_trees
    # Flat stand-ins, which only hold the words, so that the rules can be listed.
    flat = appended(base, [flat_nodes(base, words) for words, _, _ in sentences], sentences)
    part = OpenPart(first, [brackets for _, _, brackets in sentences], n_induced)
    table = RuleTable.of_corpus(flat, part)
    arrays = table.trees([])
    charts = TreeChart(table.grammar(arrays.rule_probability), joins_chains=preparation_of(base).cleaning.unaries)
    kept, trees, left_out = [], [], []
    for number, sentence in enumerate(sentences):
        words, _, brackets = sentence
        rows = charts.sample(np.array(words), brackets, np.random.PCG64([0, number])) if words else None
        if rows is None:
            left_out.append(number)
        else:
            kept.append(sentence)
            trees.append(rows)
    if not kept:
        raise TreebankError("no rule of the known trees makes a tree for any of the sentences without trees")
    result = appended(base, trees, kept)
    part = OpenPart(first, [brackets for _, _, brackets in kept], n_induced)
    result.settings = {**base.settings, OPEN: part.to_dict()}
    return OpenCorpus(result, left_out)


def flat_nodes(base: FlatCorpus, words: Sequence[int]) -> np.ndarray:
    """The root over words, as rows."""
    rows = [(0, 0, len(words), len(words)), *((0, place, place + 1, 0) for place in range(len(words)))]
    return np.array(rows, dtype=np.int32)


def appended(base: FlatCorpus, trees: Sequence[np.ndarray], sentences: Sequence[NumberedSentence]) -> FlatCorpus:
    """A corpus with more trees, given by rows ``(label, start, end, number of children)`` from the root down."""
    columns: dict[str, list[np.ndarray]] = {name: [getattr(base, name)] for name in ("label", "word", "form")}
    parents = [parents_of_corpus(base)]
    starts = [base.tree_start]
    n_nodes = base.n_nodes
    for rows, (words, forms, _) in zip(trees, sentences, strict=True):
        is_tag = rows[:, 3] == 0
        word, form = np.full((2, len(rows)), NO_WORD, dtype=np.int32)
        word[is_tag], form[is_tag] = np.array(words)[rows[is_tag, 1]], np.array(forms)[rows[is_tag, 1]]
        columns["label"].append(rows[:, 0].astype(np.int32))
        columns["word"].append(word)
        columns["form"].append(form)
        parents.append(parents_of_rows(rows, n_nodes))
        n_nodes += len(rows)
        starts.append(np.array([n_nodes]))
    child_start, child = children_of(np.concatenate(parents).astype(np.int32))
    return replace(
        base,
        label=np.concatenate(columns["label"]).astype(np.int32),
        word=np.concatenate(columns["word"]).astype(np.int32),
        form=np.concatenate(columns["form"]).astype(np.int32),
        child_start=child_start,
        child=child,
        tree_start=np.concatenate(starts).astype(np.int32),
    )


def parents_of_corpus(corpus: FlatCorpus) -> np.ndarray:
    parent = np.full(corpus.n_nodes, -1, dtype=np.int32)
    parent[corpus.child] = np.repeat(np.arange(corpus.n_nodes), np.diff(corpus.child_start))
    return parent


def parents_of_rows(rows: np.ndarray, first: int) -> np.ndarray:
    """The parent of every row of a tree, from the root down; nodes are counted from `first` on."""
    parent = np.full(len(rows), -1, dtype=np.int32)
    waiting: list[int] = []
    for node in reversed(range(len(rows))):
        for _ in range(rows[node, 3]):
            parent[waiting.pop()] = first + node
        waiting.append(node)
    return parent
