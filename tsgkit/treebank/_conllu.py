"""CoNLL-U and its relatives: dependency treebanks, which are recognised to say that they have no phrases.

First stage of the flow. Nothing can be read from them: a dependency tree does not say which phrases there are.
"""

import re
from collections.abc import Iterable, Iterator

from nltk.tree import Tree

from tsgkit.errors import TreebankError
from tsgkit.treebank._formats import STRICT, Reader, ReadOptions

COLUMNS = (8, 10)  # CoNLL 2006 in its short form; CoNLL-X, CoNLL-U
ONTONOTES = "#begin document"
COMMENT = re.compile(r"#\s*(newdoc|newpar|sent_id|text|global\.columns)\b")


def read_conllu(lines: Iterable[str], path: str = "", options: ReadOptions = STRICT) -> Iterator[Tree]:
    """Raise an error that says why there are no trees."""
    if next(iter(lines), "").startswith(ONTONOTES):
        raise TreebankError(
            "columns of CoNLL-2012: the trees of OntoNotes are read from its files in .parse (--treebank=penn)", path, 1
        )
    raise TreebankError(
        "dependency treebank: CoNLL-U has heads and relations but no phrases, which all models need; use a"
        " treebank of phrase structures",
        path,
        1,
    )


def recognise(first_lines: Iterable[str]) -> bool:
    """Whether a file begins as a file in CoNLL-U does: a comment that only it has, or a first row of its columns."""
    for line in first_lines:
        if COMMENT.match(line) or line.startswith(ONTONOTES):
            return True
        if line.strip() and not line.startswith("#"):
            columns = line.rstrip("\r\n").split("\t")
            return len(columns) in COLUMNS and re.fullmatch(r"1(-\d+)?", columns[0]) is not None
    return False


READER = Reader(read_conllu, recognise)
