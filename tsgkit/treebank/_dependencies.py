"""Dependencies: the words of a tree, each with the word that it depends on, found by head rules; CoNLL-U.

After the trees of a treebank or a parser. Every phrase has a head child (`tsgkit.treebank._heads`), and so a head word;
the head words of its other children depend on it:

    head(child) = head word of the phrase, for every child but the head child;  head(head word of the tree) = 0
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from nltk.tree import Tree

from tsgkit.treebank._clean import strip_function
from tsgkit.treebank._heads import HeadRules
from tsgkit.treebank._trees import is_preterminal

ROOT = "root"
UNKNOWN = "_"


class Dependency(NamedTuple):
    """A word and what it depends on.

    Attributes
    ----------
    word, tag : str
    head : int
        The number of the word that it depends on, counted from 1; 0 for the root.
    label : str
        The function of the largest phrase that the word is the head of, ``SBJ`` of ``NP-SBJ``, or else the label of
        that phrase, ``NP``; ``root`` for the root. These are not the relations of Universal Dependencies.
    """

    word: str
    tag: str
    head: int
    label: str


def dependencies_of(tree: Tree, rules: HeadRules) -> list[Dependency]:
    """The dependencies of a tree, one for every word.

    Parameters
    ----------
    tree : nltk.Tree
        Not binarised. Function tags are used for labels and ignored for heads.
    rules : HeadRules

    Examples
    --------
    >>> tree = Tree.fromstring("(S (NP-SBJ (DT the) (NN mill)) (VP (VBD stood) (ADVP (RB still))) (. .))")
    >>> for dependency in dependencies_of(tree, HeadRules.load("penn")):
    ...     print(*dependency)
    the DT 2 DT
    mill NN 3 SBJ
    stood VBD 0 root
    still RB 3 ADVP
    . . 3 .
    """
    nodes, children = numbered(tree)
    words = [number for number, node in enumerate(nodes) if is_preterminal(node)]
    number_of_word = {node: place for place, node in enumerate(words, start=1)}
    heads, labels = [0] * len(words), [ROOT] * len(words)
    head_word = [0] * len(nodes)  # 0 for a phrase without words
    # Children have larger numbers than their parents.
    for number in range(len(nodes) - 1, -1, -1):
        node = nodes[number]
        if is_preterminal(node):
            head_word[number] = number_of_word[number]
            continue
        with_words = [child for child in children[number] if head_word[child]]
        if not with_words:
            continue
        chosen = with_words[rules.head(node.label(), [nodes[child].label() for child in with_words])]
        head_word[number] = head_word[chosen]
        for child in with_words:
            if child != chosen:
                heads[head_word[child] - 1] = head_word[chosen]
                labels[head_word[child] - 1] = relation(nodes[child].label())
    return [
        Dependency(nodes[word][0], nodes[word].label(), heads[place], labels[place]) for place, word in enumerate(words)
    ]


def numbered(tree: Tree) -> tuple[list[Tree], list[list[int]]]:
    """The nodes of a tree in preorder, and the numbers of their children."""
    nodes: list[Tree] = []
    children: list[list[int]] = []
    stack: list[tuple[Tree, int]] = [(tree, -1)]
    while stack:
        node, parent = stack.pop()
        nodes.append(node)
        children.append([])
        if parent >= 0:
            children[parent].append(len(nodes) - 1)
        place = len(nodes) - 1
        stack.extend((child, place) for child in reversed(node) if isinstance(child, Tree))
    return nodes, children


def relation(label: str) -> str:
    """The label of a dependency: a function of the phrase, or its label.

    Examples
    --------
    >>> relation("NP-SBJ-1"), relation("PP"), relation("-LRB-")
    ('SBJ', 'PP', '-LRB-')
    """
    bare = strip_function(label)
    functions = [part for part in label.removeprefix(bare).replace("=", "-").split("-") if part and not part.isdigit()]
    return functions[0] if functions else bare or UNKNOWN


def conllu_block(sentence: Sequence[Dependency]) -> str:
    """A sentence in CoNLL-U, with the empty line that ends it.

    Examples
    --------
    >>> block = conllu_block([Dependency("I", "PRP", 2, "NP"), Dependency("ran", "VBD", 0, "root")])
    >>> print(block.replace("\\t", " "), end="")
    # text = I ran
    1 I _ _ PRP _ 2 NP _ _
    2 ran _ _ VBD _ 0 root _ _
    <BLANKLINE>
    """
    lines = [f"# text = {' '.join(each.word for each in sentence)}"]
    lines += [
        "\t".join((str(number), each.word, UNKNOWN, UNKNOWN, each.tag, UNKNOWN, str(each.head), each.label, "_", "_"))
        for number, each in enumerate(sentence, start=1)
    ]
    return "\n".join(lines) + "\n\n"


def write_conllu(trees: Iterable[Tree], rules: HeadRules | None = None) -> Iterator[str]:
    """The dependencies of trees in CoNLL-U; by the Penn Treebank's head rules unless others are given."""
    chosen = rules or HeadRules.load("penn")
    return (conllu_block(dependencies_of(tree, chosen)) for tree in trees)
