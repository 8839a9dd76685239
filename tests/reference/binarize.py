"""Binarisation as its definition reads: recursive, one child split off at a time, slices for memory."""

from nltk.tree import Tree


def escaped(label: str) -> str:
    for char in "\\@^|":
        label = label.replace(char, "\\" + char)
    return label


def binarized(tree, method, horizontal, vertical, head_of, annotate_tags=False, ancestors=()):
    """`tree` binarised; ``head_of(node)`` gives the position of the head child."""
    tag = len(tree) == 1 and isinstance(tree[0], str)
    name = escaped(tree.label())
    if annotate_tags or not tag:
        name += "".join("^" + escaped(label) for label in ancestors[: vertical - 1])
    if tag:
        return Tree(name, list(tree))
    below = (tree.label(), *ancestors)
    children = [
        binarized(child, method, horizontal, vertical, head_of, annotate_tags, below) for child in tree
    ]
    if len(children) <= 2:
        return Tree(name, children)
    labels = [child.label() for child in tree]
    return split(name, name, children, labels, method, horizontal, head_of(tree))


def split(symbol, name, children, labels, method, horizontal, head):
    """A node for `children`: one is split off, an intermediate node has the others."""
    from_left = method == "right" or (method == "centre-head" and head > 0)
    kept = slice(1, None) if from_left else slice(None, -1)
    head = head - 1 if from_left else head
    if len(children) == 2:
        return Tree(symbol, children)
    marked = memory(labels[kept], method, head)
    inner_symbol = "@" + name + "".join(marked if horizontal is None else marked[:horizontal])
    inner = split(inner_symbol, name, children[kept], labels[kept], method, horizontal, head)
    return Tree(symbol, [children[0], inner] if from_left else [inner, children[-1]])


def memory(labels, method, head):
    """The labels in the order they are split off, each with its side."""
    labels = [escaped(label) for label in labels]
    if method == "right":
        return ["|" + label for label in labels]
    if method == "left":
        return ["|" + label for label in reversed(labels)]
    left = ["|<" + label for label in labels[:head]]
    right = ["|>" + label for label in reversed(labels[head + 1 :])]
    return [*left, *right, "|=" + labels[head]]
