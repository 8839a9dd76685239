"""A reader for column brackets, the format of the CoNLL-2005 and CoNLL-2012 shared tasks: one word per line.

The third column has the brackets of the tree, with ``*`` for the tagged word. An empty line ends a sentence::

    The   DT   (S(NP*
    cat   NN   *)
    ran   VBD  (VP*)
    .     .    *)
"""

import re
from itertools import islice

from nltk.tree import Tree

from tsgkit.errors import TreebankError, UsageError
from tsgkit.treebank.formats import Reader

# Nodes that begin at a word, the word, nodes that end with it.
BRACKETS = re.compile(r"((?:\([^()*]+)*)\*(\)*)")


def read_columns(lines, path, options):
    """Yield the trees of a file; a bad tree is skipped, or raises its error.

    Examples
    --------
    >>> from tsgkit.treebank.formats import ReadOptions
    >>> lines = ["The DT (S(NP*", "cat NN *)", "ran VBD (VP*)", ". . *)"]
    >>> options = ReadOptions(named=READER.named_options)
    >>> print(*read_columns(lines, "my.conll", options))
    (S (NP (DT The) (NN cat)) (VP (VBD ran)) (. .))
    """
    try:
        columns = [int(options.named[name]) - 1 for name in ("word", "tag", "brackets")]
    except ValueError as error:
        raise UsageError(f"format columns: a column is not a number ({error})") from None
    for rows in sentences(lines):
        try:
            yield tree_of(rows, path, columns)
        except TreebankError as error:
            options.skip(error)


def sentences(lines):
    """The rows of each sentence: pairs of a line number and the columns of that line."""
    rows = []
    for number, line in enumerate(lines, start=1):
        if line.strip() and not line.startswith("#"):
            rows.append((number, line.split()))
        elif rows and not line.strip():
            yield rows
            rows = []
    if rows:
        yield rows


def tree_of(rows, path, columns):
    """The tree of the rows of one sentence."""
    outer = Tree("", [])  # holds the root while nodes are open
    open_nodes = [outer]
    for number, row in rows:
        if max(columns) >= len(row):
            raise TreebankError(f"the line has {len(row)} columns, column {max(columns) + 1} is needed", path, number)
        word, tag, brackets = (row[column] for column in columns)
        parts = BRACKETS.fullmatch(brackets)
        if parts is None or (len(open_nodes) == 1 and (len(outer) or not parts[1])):
            raise TreebankError(f"{brackets!r} does not continue the tree", path, number)
        for label in parts[1].split("(")[1:]:
            node = Tree(label, [])
            open_nodes[-1].append(node)
            open_nodes.append(node)
        open_nodes[-1].append(Tree(tag, [word]))
        if len(parts[2]) >= len(open_nodes):
            raise TreebankError(f"{brackets!r} closes more nodes than are open", path, number)
        del open_nodes[len(open_nodes) - len(parts[2]) :]
    if len(open_nodes) > 1:
        raise TreebankError(f"the tree lacks {len(open_nodes) - 1} closing brackets", path, rows[0][0])
    return outer[0]


def recognise(first_lines):
    """Whether the first line that is not a comment has brackets around a ``*`` in its third column."""
    rows = (line.split() for line in first_lines if line.strip() and not line.startswith("#"))
    return any(len(row) > 2 and BRACKETS.fullmatch(row[2]) is not None for row in islice(rows, 1))


READER = Reader(read_columns, recognise, named_options={"word": "1", "tag": "2", "brackets": "3"})
