"""Binarisation as its definition reads: recursive, one child split off at a time, slices for memory."""

from nltk.tree import Tree


def escaped(label):
    for char in "\\@^|":
        label = label.replace(char, "\\" + char)
    return label


def binarized(tree, settings, head_of, ancestors=()):
    """`tree` binarised; ``head_of(node)`` gives the position of the head child."""
    is_tag = len(tree) == 1 and isinstance(tree[0], str)
    name = escaped(tree.label())
    if settings.annotate_tags or not is_tag:
        name += "".join("^" + escaped(label) for label in ancestors[: settings.vertical - 1])
    if is_tag:
        return Tree(name, list(tree))
    children = [binarized(child, settings, head_of, (tree.label(), *ancestors)) for child in tree]
    if len(children) <= 2:
        return Tree(name, children)
    labelled = [(old.label(), new) for old, new in zip(tree, children, strict=True)]
    return split(name, name, labelled, settings, head_of(tree))


def split(symbol, name, labelled, settings, head):
    """A node for children with their labels: one is split off, an intermediate node has the others."""
    if len(labelled) == 2:
        return Tree(symbol, [child for _, child in labelled])
    from_left = settings.method == "right" or (settings.method == "centre-head" and head > 0)
    rest, rest_head = (labelled[1:], head - 1) if from_left else (labelled[:-1], head)
    remembered = memory([escaped(label) for label, _ in rest], settings.method, rest_head)
    inner_symbol = "@" + name + "".join(remembered[: settings.horizontal])
    inner = split(inner_symbol, name, rest, settings, rest_head)
    return Tree(symbol, [labelled[0][1], inner] if from_left else [inner, labelled[-1][1]])


def memory(labels, method, head):
    """The labels in the order they are split off, each with its side."""
    if method == "right":
        return ["|" + label for label in labels]
    if method == "left":
        return ["|" + label for label in reversed(labels)]
    left = ["|<" + label for label in labels[:head]]
    right = ["|>" + label for label in reversed(labels[head + 1 :])]
    return [*left, *right, "|=" + labels[head]]
