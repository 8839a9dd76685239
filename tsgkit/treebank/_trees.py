"""Traversal of `nltk.Tree` values without recursion, so that a tree may be as deep as memory allows.

All stages of the flow. A tree is an `nltk.Tree` whose leaves are strings (words). A *preterminal* has exactly one
child, a word. Transformations build new trees bottom-up with `rebuild` and never change their argument.
"""

import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

from nltk.tree import Tree

Child: TypeAlias = Tree | str
Bracket: TypeAlias = tuple[str, int, int]

# What separates symbols in all formats: nothing else does, so a word may contain a no-break space.
WHITESPACE = " \t\r\n\f\v"
SPACE = re.compile(f"[{WHITESPACE}]")
# The root of a tree that has none, where several nodes have no parent.
VIRTUAL_ROOT = "VROOT"
# Functions of labels remember what they said of so many.
CACHED_LABELS = 1 << 16


def is_symbol(text: object) -> bool:
    """Whether something can be a word or a label: a text that is not empty and has no whitespace of ASCII.

    Examples
    --------
    >>> is_symbol("10\\xa0000"), is_symbol("10 000"), is_symbol("")
    (True, False, False)
    """
    return isinstance(text, str) and text != "" and SPACE.search(text) is None


def is_preterminal(tree: Tree) -> bool:
    """Whether `tree` is a preterminal: a tag over one word."""
    if len(tree) != 1:
        return False
    # By the method of lists: that of trees, which also takes paths, is many times slower.
    return not isinstance(list.__getitem__(tree, 0), Tree)


def preorder(tree: Tree) -> Iterator[Tree]:
    """Every node, parents before their children, left to right."""
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(child for child in reversed(node) if isinstance(child, Tree))


def words(tree: Tree) -> list[str]:
    """The words of `tree`, left to right."""
    return [child for node in preorder(tree) for child in node if not isinstance(child, Tree)]


def tagged_words(tree: Tree) -> list[tuple[str, str]]:
    """The ``(word, tag)`` pairs of `tree`, left to right."""
    return [(node[0], node.label()) for node in preorder(tree) if is_preterminal(node)]


def brackets_of(tree: Tree) -> list[Bracket]:
    """Every bracket of a tree as ``(label, start, end)``, tags included, in the order of `preorder`.

    Examples
    --------
    >>> brackets_of(Tree.fromstring("(S (NP I) (VP ran))"))
    [('S', 0, 2), ('NP', 0, 1), ('VP', 1, 2)]
    """
    brackets: list[Bracket] = []
    position = 0
    stack: list[tuple[Tree, int]] = [(tree, -1)]
    while stack:
        node, row = stack.pop()
        if row >= 0:
            label, start, _ = brackets[row]
            brackets[row] = (label, start, position)
            continue
        stack.append((node, len(brackets)))
        brackets.append((node.label(), position, -1))
        if is_preterminal(node):
            position += 1
        else:
            stack.extend((child, -1) for child in reversed(node))
    return brackets


def rebuild(tree: Tree, combine: Callable[[Tree, list[Child]], Child | None]) -> Child | None:
    """Build a new tree bottom-up.

    Parameters
    ----------
    tree : nltk.Tree
        Is not changed.
    combine : callable
        ``combine(node, children)`` gets a node of the old tree and its children after rebuilding, and returns the
        new node, or ``None`` to drop it.

    Returns
    -------
    What `combine` returned for the root.

    Examples
    --------
    >>> from nltk.tree import Tree
    >>> tree = Tree.fromstring("(S (NP I) (VP ran))")
    >>> print(rebuild(tree, lambda node, children: Tree(node.label().lower(), children)))
    (s (np I) (vp ran))
    """
    results: list[Child | None] = []
    # A node is on the stack with the number of results before those of its children, -1 until these are computed.
    stack: list[tuple[Tree, int]] = [(tree, -1)]
    while stack:
        node, n_before = stack.pop()
        if n_before < 0:
            pending = [(child, -1) for child in node if isinstance(child, Tree)]
            if len(pending) == len(node):
                stack.append((node, len(results)))
                stack.extend(reversed(pending))
            elif is_preterminal(node):
                results.append(combine(node, list(node)))
            else:
                raise ValueError(f"words beside phrases under {node.label()!r}")
        else:
            children = [child for child in results[n_before:] if child is not None]
            del results[n_before:]
            results.append(combine(node, children))
    return results[0]


def with_one_root(tree: Tree) -> Tree:
    """A tree whose outer bracket has no label but several children, with the label ``VROOT``, as readers give it.

    Examples
    --------
    >>> print(with_one_root(Tree("", [Tree("S", [Tree("V", ["Run"])]), Tree(".", ["!"])])))
    (VROOT (S (V Run)) (. !))
    """
    return Tree(VIRTUAL_ROOT, list(tree)) if not tree.label() and len(tree) > 1 else tree


def map_symbols(tree: Tree, change: Callable[[str], str]) -> Tree:
    """A tree whose labels and words are what a function makes of them.

    Examples
    --------
    >>> print(map_symbols(Tree.fromstring("(s (np I) (vp ran))"), str.upper))
    (S (NP I) (VP RAN))
    """

    def changed(node: Tree, children: list[Child]) -> Child:
        return Tree(change(node.label()), [change(child) if isinstance(child, str) else child for child in children])

    result = rebuild(tree, changed)
    assert isinstance(result, Tree)
    return result


def same_tree(one: Child, other: Child) -> bool:
    """Whether two trees have the same labels, words and shape (``==`` would recurse)."""
    stack = [(one, other)]
    while stack:
        left, right = stack.pop()
        if isinstance(left, Tree) and isinstance(right, Tree):
            if left.label() != right.label() or len(left) != len(right):
                return False
            stack.extend(zip(left, right, strict=True))
        elif isinstance(left, Tree) or isinstance(right, Tree) or left != right:
            return False
    return True
