"""A treebank with many tags, made of another one: tags are split by the last letter of their words.

Usage:
  tools.bench.many_tags [options] TREEBANK OUTPUT
  tools.bench.many_tags -h | --help | --version

TREEBANK is a file of trees, of which the first are taken. Of all tags with a last letter, the most frequent ones become
tags of their own, NN~n of NN, until there are enough. Treebanks of inflected languages have as many: the cost of a
training should not grow with their number. Prints the numbers of trees, tokens and tags.

Options:
  --tokens=N  trees are taken until there are this many tokens [default: 150000]
  --tags=N    number of tags [default: 278]
  -h --help   this text
  --version   the version
"""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from nltk.tree import Tree

from tsgkit._cli import command, integer, parse_arguments
from tsgkit.errors import UsageError
from tsgkit.treebank import read_trees, write_trees

MARK = "~"


def first_trees(trees: Iterable[Tree], n_tokens: int) -> Iterator[Tree]:
    """The first trees, until they have so many tokens."""
    n_so_far = 0
    for tree in trees:
        if n_so_far >= n_tokens:
            return
        n_so_far += len(tree.leaves())
        yield tree


def preterminals(tree: Tree) -> Iterator[Tree]:
    """The nodes above words."""
    return tree.subtrees(lambda node: len(node) == 1 and isinstance(node[0], str))


def fine_tag(node: Tree) -> str:
    return f"{node.label()}{MARK}{node[0][-1].lower()}"


def split_tags(trees: list[Tree], n_tags: int) -> int:
    """Split tags in place, until there are `n_tags`; how many there are."""
    nodes = [node for tree in trees for node in preterminals(tree)]
    frequent = Counter((fine_tag(node), node.label()) for node in nodes).most_common()
    coarse, fine = Counter(node.label() for node in nodes), set[str]()
    for (tag, whole), n_nodes in frequent:
        n_so_far = len(fine) + sum(1 for n_left in coarse.values() if n_left)
        if n_so_far >= n_tags:
            break
        if coarse[whole] > n_nodes:
            fine.add(tag)
            coarse[whole] -= n_nodes
    for node in nodes:
        if fine_tag(node) in fine:
            node.set_label(fine_tag(node))
    return len({node.label() for node in nodes})


@command
def main(argv: list[str]) -> int:
    """Split the tags of a treebank, and write it."""
    arguments = parse_arguments(__doc__, argv)
    n_tags, n_tokens = integer(arguments, "--tags", 1), integer(arguments, "--tokens", 1)
    trees = list(first_trees(read_trees(arguments["TREEBANK"]), n_tokens))
    if split_tags(trees, n_tags) < n_tags:
        raise UsageError(f"{arguments['TREEBANK']}: its tags cannot be split into {n_tags}")
    write_trees(trees, Path(arguments["OUTPUT"]))
    print(f"{len(trees)} trees, {sum(len(tree.leaves()) for tree in trees)} tokens, {n_tags} tags")
    return 0


if __name__ == "__main__":
    sys.exit(main(None))
