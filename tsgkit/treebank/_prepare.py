"""Preprocessing as a whole: from trees as annotated to the corpus that a model is trained on, and back.

`prepare` cleans, binarises and replaces rare words. The corpus keeps the `Preparation`, which turns the output of a
parser into trees over the words of the input.
"""

import itertools
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from nltk.tree import Tree

from tsgkit.errors import TreebankError, TsgkitError
from tsgkit.treebank._binarize import Binarization, undo_label
from tsgkit.treebank._brackets import escape_symbol, unescape_word
from tsgkit.treebank._clean import Cleaning
from tsgkit.treebank._flat import FlatCorpus
from tsgkit.treebank._heads import HeadRules
from tsgkit.treebank._relabel import labels_of, relabelling_of, restored
from tsgkit.treebank._trees import is_preterminal, preorder, words
from tsgkit.treebank.unknown._lexicon import Lexicon, UnknownWords, count_words


@dataclass(frozen=True)
class Preparation:
    """What was done to the trees of a corpus, and how to undo it.

    Parameters
    ----------
    cleaning : Cleaning
    binarization : Binarization, optional
        ``None`` does not binarise.
    lexicon : Lexicon, optional
        The closed vocabulary; ``None`` keeps all words.
    original_labels : dict
        What `tsgkit.treebank._relabel.Relabelling.inverse` says of the treebank's labels, for ``tag`` and ``phrase``.
    parameters : str
        The EVALB parameters of the treebank's preset: a name or a text; ``''`` if there is none.
    head_rules : str
        The text of the head rules of the treebank's preset, for dependencies; ``''`` if there is none.
    """

    cleaning: Cleaning
    binarization: Binarization | None = None
    lexicon: Lexicon | None = None
    original_labels: dict[str, dict[str, str]] = field(default_factory=dict)
    parameters: str = ""
    head_rules: str = ""

    @property
    def heads(self) -> HeadRules:
        """The head rules of the treebank, those of the binarisation, or else those for the Penn Treebank."""
        if not self.head_rules and self.binarization is not None and self.binarization.method == "centre-head":
            return self.binarization.head_rules
        return HeadRules.parse(self.head_rules, "head rules") if self.head_rules else HeadRules.load("penn")

    def encode(self, tree: Tree) -> Tree | None:
        """A tree cleaned and binarised, over the words of the text; ``None`` if cleaning leaves no word.

        Parameters
        ----------
        tree : nltk.Tree
            As annotated.
        """
        clean = self.cleaning.apply(tree)
        return clean if clean is None or self.binarization is None else self.binarization.apply(clean)

    def decode(self, tree: Tree, sentence: Sequence[str] | None = None) -> Tree:
        """A tree of a parser in the form of the cleaned treebank, over the words of `sentence`.

        Parameters
        ----------
        tree : nltk.Tree
            Binarised.
        sentence : sequence of str, optional
            The words that it gets; its own unless given.
        """
        if self.binarization is not None:
            tree = self.binarization.undo(tree)
        tree = self.cleaning.undo(tree)
        return tree if sentence is None else with_words(tree, sentence)

    def with_original_labels(self, tree: Tree) -> Tree:
        """A tree of a parser with the labels of the treebank, where rules for labels renamed one label only.

        Parameters
        ----------
        tree : nltk.Tree
            Not binarised.
        """
        return restored(tree, self.original_labels)

    def vocabulary_words(self, sentence: Sequence[str]) -> list[str]:
        """The words of a sentence in the closed vocabulary: rare and new words replaced by their classes.

        Parameters
        ----------
        sentence : sequence of str
        """
        if self.lexicon is None:
            return list(sentence)
        known = self.lexicon.words
        spelled = [word if word in known else as_spelled(word, known) for word in sentence]
        return [self.lexicon.lookup(word, position) for position, word in enumerate(spelled)]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        optional = {name: getattr(self, name) for name in ("original_labels", "parameters", "head_rules")}
        return {
            "cleaning": self.cleaning.to_dict(),
            "binarization": self.binarization.to_dict() if self.binarization else None,
            "lexicon": self.lexicon.to_dict() if self.lexicon else None,
            **{name: value for name, value in optional.items() if value},
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Preparation":
        """The inverse of `to_dict`; a ValueError says why these values are no preparation.

        Parameters
        ----------
        values : dict
            Plain values.
        """
        try:
            binarization, lexicon = values["binarization"], values["lexicon"]
            return cls(
                Cleaning.from_dict(values["cleaning"]),
                Binarization.from_dict(binarization) if binarization is not None else None,
                Lexicon.from_dict(lexicon) if lexicon is not None else None,
                label_tables(values.get("original_labels", {})),
                text_of(values.get("parameters", "")),
                checked_heads(text_of(values.get("head_rules", ""))),
            )
        except (KeyError, TypeError, ValueError, AttributeError, TsgkitError) as error:
            raise ValueError(f"the preparation is not one ({error})") from None


def as_spelled(word: str, known: Container[str]) -> str:
    """A word as the treebank spells it: many escape brackets, and files of brackets must, but others do not.

    Examples
    --------
    >>> as_spelled("(", {"-LRB-"}), as_spelled("-LRB-", {"("}), as_spelled("(", set())
    ('-LRB-', '(', '-LRB-')
    """
    escaped = escape_symbol(word)
    return next((each for each in (escaped, unescape_word(word)) if each in known), escaped)


def label_tables(values: Any) -> dict[str, dict[str, str]]:
    """Checked tables of labels, by kind; a ValueError if these are none."""
    tables = dict(values)
    for kind, table in tables.items():
        pairs = [text_of(item) for pair in table.items() for item in pair]
        if kind not in ("tag", "phrase") or "" in pairs:
            raise ValueError(f"original_labels: {kind!r} is no table of labels")
    return {kind: dict(table) for kind, table in tables.items()}


def text_of(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a string")
    return value


def checked_heads(text: str) -> str:
    """The text of head rules; a `TreebankError` if it is none."""
    HeadRules.parse(text, "head rules")
    return text


def with_words(tree: Tree, sentence: Sequence[str]) -> Tree:
    """Replace the words of `tree`, in place, by those of `sentence`."""
    tags = [node for node in preorder(tree) if is_preterminal(node)]
    if len(tags) != len(sentence):
        raise ValueError(f"the tree has {len(tags)} words, the sentence {len(sentence)}")
    for tag, word in zip(tags, sentence, strict=True):
        tag[0] = word
    return tree


def prepare(
    trees: Iterable[Tree],
    cleaning: Cleaning | None = None,
    binarization: Binarization | None = None,
    unknown: UnknownWords | None = None,
    lexicon: Lexicon | None = None,
    *,
    parameters: str = "",
    head_rules: str = "",
) -> FlatCorpus:
    """Clean and binarise trees, replace rare words, and number everything.

    Parameters
    ----------
    trees : iterable of nltk.Tree
        As annotated. A tree in which cleaning leaves no word is left out.
    cleaning : Cleaning, optional
        The default steps unless given.
    binarization : Binarization, optional
        Trees are not binarised unless given.
    unknown : UnknownWords, optional
        How rare words are classed; all words are kept unless given.
    lexicon : Lexicon, optional
        The closed vocabulary of another corpus, to be used for this one.
    parameters : str
        The EVALB parameters of the treebank, if it has others than the default.
    head_rules : str
        The text of the head rules of the treebank, likewise.

    Returns
    -------
    FlatCorpus
        Its ``settings`` hold the `Preparation` as plain values; see `preparation_of`.

    Examples
    --------
    >>> tree = Tree.fromstring("(S (NP-SBJ (DT the) (JJ old) (NN mill)) (VP (VBD stood)))")
    >>> corpus = prepare([tree], binarization=Binarization("right", 0))
    >>> print(next(corpus.trees()))
    (TOP (S (NP (DT the) (@NP (JJ old) (NN mill))) (VP (VBD stood))))
    """
    steps = Preparation(cleaning or Cleaning(), binarization)
    labels: dict[str, set[str]] = {"tag": set(), "phrase": set(), "root": set()}
    corpus = FlatCorpus.from_trees(encoded(trees, steps, labels))
    if not corpus.n_trees:
        raise TreebankError("the treebank has no trees with words")
    if unknown is not None and lexicon is None:
        lexicon = unknown.fit(*count_words(corpus.sentences()))
    if lexicon is not None:
        close_vocabulary(corpus, lexicon)
    original = original_labels(steps.cleaning, labels) if steps.cleaning.relabelling else {}
    done = Preparation(steps.cleaning, binarization, lexicon, original, parameters, head_rules)
    corpus.settings = {"preparation": done.to_dict()}
    return corpus


def original_labels(cleaning: Cleaning, labels: Mapping[str, set[str]]) -> dict[str, dict[str, str]]:
    """The labels that rules renamed, by what cleaning made of them, where only one label became the new one.

    The root gets its old label back only if all trees had that one: others had none, or one that cleaning replaced.
    """
    found = relabelling_of(cleaning.relabelling).inverse(labels, cleaning.after_rules)
    if {cleaning.after_rules("phrase", label) for label in labels["root"]} != {found["phrase"].get(cleaning.root)}:
        found["phrase"].pop(cleaning.root, None)
    return found


def encoded(trees: Iterable[Tree], steps: Preparation, labels: dict[str, set[str]]) -> Iterator[Tree]:
    """Trees cleaned and binarised; if there are rules for labels, those of the treebank are added to `labels`."""
    for tree in trees:
        if steps.cleaning.relabelling:
            for kind, found in labels_of([tree]).items():
                labels[kind] |= found
            labels["root"].add(tree.label())
        result = steps.encode(tree)
        if result is not None:
            yield result


def token_nodes(corpus: FlatCorpus) -> tuple[np.ndarray, np.ndarray]:
    """The preterminals, and whether the word of each is the first of its sentence."""
    tokens = np.flatnonzero(corpus.form >= 0)
    tree_of_token = np.searchsorted(corpus.tree_start, tokens, side="right")
    return tokens, np.diff(tree_of_token, prepend=0) > 0


def close_vocabulary(corpus: FlatCorpus, lexicon: Lexicon) -> None:
    """Replace the words of `corpus` by their symbols in the closed vocabulary of `lexicon`."""
    tokens, is_first = token_nodes(corpus)
    word_ids: dict[str, int] = {}
    known: dict[tuple[int, bool], int] = {}
    for node, form, first in zip(tokens.tolist(), corpus.form[tokens].tolist(), is_first.tolist(), strict=True):
        key = (form, first)
        if key not in known:
            word = lexicon.lookup(corpus.forms[form], 0 if first else 1)
            known[key] = word_ids.setdefault(word, len(word_ids))
        corpus.word[node] = known[key]
    corpus.words = list(word_ids)


def preparation_of(corpus: FlatCorpus) -> Preparation:
    """The preparation recorded in a corpus; a corpus without one counts as clean and not binarised.

    Parameters
    ----------
    corpus : FlatCorpus

    Examples
    --------
    >>> tree = Tree.fromstring("(S (NP (DT the) (JJ old) (NN mill)) (VP (VBD stood)))")
    >>> corpus = prepare([tree], binarization=Binarization("right", 0))
    >>> print(preparation_of(corpus).decode(next(corpus.trees())))
    (TOP (S (NP (DT the) (JJ old) (NN mill)) (VP (VBD stood))))
    """
    values = corpus.settings.get("preparation")
    try:
        return Preparation(Cleaning()) if values is None else Preparation.from_dict(values)
    except ValueError as error:
        raise TreebankError(f"the corpus does not say how it was prepared: {error}; prepare it again") from None


def sample_trees(trees: Sequence[Tree], size: int, seed: int) -> list[Tree]:
    """A random sample without replacement, in the order of the treebank; all trees if there are no more.

    Examples
    --------
    >>> sample_trees("abcdefgh", 3, seed=1) == sample_trees("abcdefgh", 3, seed=1)
    True
    """
    if size >= len(trees):
        return list(trees)
    chosen = np.random.Generator(np.random.PCG64(seed)).choice(len(trees), size, replace=False)
    return [trees[number] for number in sorted(chosen.tolist())]


def split_trees(trees: Sequence[Tree], shares: Sequence[float], seed: int | None = None) -> list[list[Tree]]:
    """Split trees into parts with the given shares, in order, or at random if a seed is given.

    Examples
    --------
    >>> trees = [Tree("N", [str(number)]) for number in range(10)]
    >>> [len(part) for part in split_trees(trees, [80, 10, 10])]
    [8, 1, 1]
    """
    order = np.arange(len(trees)) if seed is None else np.random.default_rng(seed).permutation(len(trees))
    bounds = np.round(np.cumsum([0.0, *shares]) / sum(shares) * len(trees)).astype(int)
    parts = [order[start:end] for start, end in itertools.pairwise(bounds)]
    return [[trees[index] for index in (part if seed is None else np.sort(part))] for part in parts]


def statistics(trees: Iterable[Tree]) -> dict[str, int | float]:
    """Sizes of a treebank."""
    n_trees = n_tokens = n_nodes = depth = longest = 0
    labels: Counter[str] = Counter()
    tags: Counter[str] = Counter()
    types: Counter[str] = Counter()
    rules: Counter[tuple[str, ...]] = Counter()
    for tree in trees:
        sentence = words(tree)
        n_trees += 1
        n_tokens += len(sentence)
        longest = max(longest, len(sentence))
        types.update(sentence)
        depth = max(depth, tree_height(tree))
        for node in preorder(tree):
            n_nodes += 1
            if is_preterminal(node):
                tags[node.label()] += 1
            else:
                labels[node.label()] += 1
                rules[node.label(), *(child.label() for child in node)] += 1
    return {
        "trees": n_trees,
        "tokens": n_tokens,
        "tokens per tree": round(n_tokens / max(n_trees, 1), 2),
        "longest sentence": longest,
        "word types": len(types),
        "words seen once": sum(count == 1 for count in types.values()),
        "tags": len(tags),
        "phrase labels": len(labels),
        "phrase rules": len(rules),
        "nodes": n_nodes,
        "greatest height": depth,
    }


def tree_height(tree: Tree) -> int:
    """The number of nodes on the longest path from the root to a preterminal, both included."""
    height, level = 0, [tree]
    while level:
        height += 1
        level = [child for node in level for child in node if isinstance(child, Tree)]
    return height


def share_of_repeats(corpus: FlatCorpus) -> float:
    """The share of the phrases whose label occurs above them in the same unary chain, as in NP over X over NP.

    No parser that looks for the most probable rules chooses such a chain: the tree without it has fewer rules that
    could be wrong. As one phrase (`Cleaning.unaries`), or with labels that name the parent, it is chosen like others.

    Examples
    --------
    >>> trees = [Tree.fromstring("(S (NP (X (NP (PRP I)))) (VP (VBD ran)))")]
    >>> share_of_repeats(prepare(trees, binarization=Binarization("right", 0)))  # of TOP, S, NP, X, NP and VP
    0.16666666666666666
    """
    is_intermediate = np.array([undo_label(label) is None for label in corpus.labels])[corpus.label]
    n_children = np.diff(corpus.child_start)
    parent = np.full(corpus.n_nodes, -1)
    parent[corpus.child] = np.repeat(np.arange(corpus.n_nodes), n_children)
    # The phrase right above, where there is nothing beside.
    above = np.where((parent >= 0) & (n_children[parent] == 1), parent, -1)
    is_phrase = (n_children > 0) & ~is_intermediate
    node, ancestor = np.flatnonzero(is_phrase), above[is_phrase]
    repeats = np.zeros(corpus.n_nodes, dtype=bool)
    while (is_inside := ancestor >= 0).any():
        node, ancestor = node[is_inside], ancestor[is_inside]
        repeats[node[corpus.label[node] == corpus.label[ancestor]]] = True
        ancestor = above[ancestor]
    n_phrases = int(np.count_nonzero(is_phrase))
    return int(np.count_nonzero(repeats)) / max(n_phrases, 1)
