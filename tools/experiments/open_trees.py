"""Trees that are sampled: induction from tags, and training with partial brackets, on NLTK's Penn Treebank sample.

Usage:
  open_trees.py induction [--labels=N] [--iterations=N] [--seed=N]
  open_trees.py partial KIND [--iterations=N] [--seed=N]

`induction` learns from the gold tags of all sentences with 2 to 10 words, punctuation removed, and prints the
unlabelled F1 of the trees of the last sample, without brackets around single words and whole sentences. `partial`
trains on 250 trees of at most 20 words, and 500 more such sentences without trees: KIND is none (they are not used),
words, or np (with the brackets of their noun phrases). It prints the F1 on the last 250 such sentences.

Options:
  --labels=N      [default: 5]
  --iterations=N  [default: 100]
  --seed=N        [default: 1]
"""

import sys
from collections.abc import Iterator
from typing import Any, cast

from docopt import docopt
from nltk.tree import Tree

from tsgkit.inference._training import Training
from tsgkit.inference._tsg import TsgSettings
from tsgkit.models._open_trees import induced_corpus, with_open_sentences
from tsgkit.parsing._held_out import held_out_score
from tsgkit.treebank import Binarization, Cleaning, FlatCorpus, UnknownWords, prepare, read_trees
from tsgkit.treebank._partial import OpenSentence
from tsgkit.treebank._trees import brackets_of, is_preterminal, rebuild

TREEBANK = "nltk:treebank"
PUNCTUATION = {",", ".", ":", "``", "''", "-LRB-", "-RRB-", "$", "#"}
Spans = set[tuple[int, int]]


def clean_trees() -> Iterator[Tree]:
    """All trees of the treebank, cleaned."""
    return (tree for tree in map(Cleaning().apply, read_trees(TREEBANK)) if tree is not None)


def without_punctuation(tree: Tree) -> Tree:
    """A tree without the words of punctuation tags and what they leave empty."""

    def kept(node: Tree, children: list) -> Tree:
        if is_preterminal(node):
            return node
        return Tree(
            node.label(),
            [child for child in children if child.label() not in PUNCTUATION and len(child)],
        )

    return cast(Tree, rebuild(tree, kept))


def spans_of(tree: Tree) -> Spans:
    """The spans of a tree's nodes but for single words and the whole sentence."""
    n_words = len(tree.leaves())
    return {(start, end) for _, start, end in brackets_of(tree) if 1 < end - start < n_words}


def unlabelled_f1(found: list[Spans], gold: list[Spans]) -> float:
    n_matched = sum(len(one & other) for one, other in zip(found, gold, strict=True))
    return 200 * n_matched / (sum(map(len, found)) + sum(map(len, gold)))


def trained(corpus: FlatCorpus, iterations: int, seed: int, **settings: Any) -> Training:
    training = Training(corpus, TsgSettings(iterations=iterations, **settings), seed=seed)
    training.start()
    for step in range(1, iterations + 1):
        training.iterate(step)
    return training


def induction(n_labels: int, iterations: int, seed: int) -> None:
    trees = [tree for tree in map(without_punctuation, clean_trees()) if 2 <= len(tree.leaves()) <= 10]
    gold, lengths = [spans_of(tree) for tree in trees], [len(tree.leaves()) for tree in trees]
    right = [{(start, length) for start in range(1, length - 1)} for length in lengths]
    left = [{(0, end) for end in range(2, length)} for length in lengths]
    sentences: list[OpenSentence] = [([tag for _, tag in tree.pos()], []) for tree in trees]
    corpus = (
        trained(induced_corpus(sentences, n_labels).corpus, iterations, seed, average=1, type_moves=0).model().corpus
    )
    sampled = [] if corpus is None else [spans_of(tree) for tree in corpus.trees()]
    print(f"{len(trees)} sentences, {n_labels} labels, {iterations} iterations, seed {seed}")
    print(f"right-branching {unlabelled_f1(right, gold):.1f}, left-branching {unlabelled_f1(left, gold):.1f}")
    print(f"induced {unlabelled_f1(sampled, gold):.1f}")


def partial(kind: str, iterations: int, seed: int) -> None:
    short = [tree for tree in clean_trees() if len(tree.leaves()) <= 20]
    known, others, dev = short[:250], short[250:750], short[-250:]
    corpus = prepare(known, binarization=Binarization("right", 0, 1), unknown=UnknownWords("unicode", 1))
    if kind != "none":
        sentences: list[OpenSentence] = []
        for tree in others:
            phrases = [bracket for bracket in brackets_of(tree) if bracket[0] == "NP" and bracket[2] - bracket[1] > 1]
            sentences.append((tree.leaves(), phrases if kind == "np" else []))
        found = with_open_sentences(corpus, sentences)
        corpus = found.corpus
        print(f"{len(found.left_out)} of {len(sentences)} sentences left out")
    model = trained(corpus, iterations, seed, average=10, average_every=2).model()
    print(f"{kind}, {iterations} iterations, seed {seed}: F1 {held_out_score(model, dev, quiet=True).f1:.2f}")


def main(argv: list[str] | None = None) -> int:
    arguments = docopt(__doc__, argv)
    iterations, seed = int(arguments["--iterations"]), int(arguments["--seed"])
    if arguments["induction"]:
        induction(int(arguments["--labels"]), iterations, seed)
    else:
        partial(arguments["KIND"], iterations, seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
