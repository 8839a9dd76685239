"""Head rules: which child of a phrase is its head, from a table in a small text format.

Preprocessing: used by centre-head binarisation. The built-in tables have the format of a user's file, so that `penn` is
an example of it.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from tsgkit._files import read_table
from tsgkit.errors import TreebankError
from tsgkit.treebank._clean import strip_function

OTHER_LABELS = "*"
SEARCHES = ("left", "right", "left-any", "right-any", "leftmost", "rightmost")

PENN = """\
# Head table for Penn Treebank labels, after Collins (1999), appendix A (from Magerman 1995).
# NX and NML go by the rules for NP; the original has no rule for them.
%punctuation   , : . `` '' -LRB- -RRB-
%conjunctions  CC CONJP

ADJP    left   NNS QP NN $ ADVP JJ VBN VBG ADJP JJR NP JJS DT FW RBR RBS SBAR RB
ADVP    right  RB RBR RBS FW ADVP TO CD JJR JJ IN NP JJS NN
CONJP   right  CC RB IN
FRAG    rightmost
INTJ    leftmost
LST     right  LS :
NAC     left   NN NNS NNP NNPS NP NAC EX $ CD QP PRP VBG JJ JJS JJR ADJP FW
PP      right  IN TO VBG VBN RP FW
PRN     leftmost
PRT     right  RP
QP      left   $ IN NNS NN JJ RB DT CD NCD QP JJR JJS
RRC     right  VP NP ADVP ADJP PP
S       left   TO IN VP S SBAR ADJP UCP NP
SBAR    left   WHNP WHPP WHADVP WHADJP IN DT S SQ SINV SBAR FRAG
SBARQ   left   SQ S SINV SBARQ FRAG
SINV    left   VBZ VBD VBP VB MD VP S SINV ADJP NP
SQ      left   VBZ VBD VBP VB MD VP SQ
UCP     rightmost
VP      left   TO VBD VBN MD VBZ VB VBG VBP VP ADJP NN NNS NP
WHADJP  left   CC WRB JJ ADJP
WHADVP  right  CC WRB
WHNP    left   WDT WP WP$ WHADJP WHPP WHNP
WHPP    right  IN TO FW

NP      rightmost  POS
NP      right-any  NN NNP NNPS NNS NX NML POS JJR
NP      left       NP
NP      right-any  $ ADJP PRN
NP      right      CD
NP      right-any  JJ JJS RB QP
NP      rightmost

NX      rightmost  POS
NX      right-any  NN NNP NNPS NNS NX NML POS JJR
NX      left       NP
NX      right-any  $ ADJP PRN
NX      right      CD
NX      right-any  JJ JJS RB QP
NX      rightmost

NML     rightmost  POS
NML     right-any  NN NNP NNPS NNS NX NML POS JJR
NML     left       NP
NML     right-any  $ ADJP PRN
NML     right      CD
NML     right-any  JJ JJS RB QP
NML     rightmost

*       leftmost
"""

BUILT_IN = {"penn": PENN, "leftmost": "* leftmost\n", "rightmost": "* rightmost\n"}


@dataclass(frozen=True)
class Search:
    """One line of a table: how to search for the head, and for which labels.

    Attributes
    ----------
    how : str
        One of `SEARCHES`.
    ranks : dict
        Label to its index in the line.
    """

    how: str
    ranks: dict[str, int]

    @property
    def from_right(self) -> bool:
        return self.how.startswith("right")

    @property
    def certain(self) -> bool:
        """Whether the search finds a head in every phrase."""
        return not self.ranks

    def find(self, labels: Sequence[str]) -> int | None:
        """The position of the head among `labels`, or None if this line finds none."""
        positions = range(len(labels) - 1, -1, -1) if self.from_right else range(len(labels))
        if self.certain:
            return positions[0]
        if self.how in ("leftmost", "rightmost"):
            return positions[0] if labels[positions[0]] in self.ranks else None
        found = (position for position in positions if labels[position] in self.ranks)
        if self.how in ("left-any", "right-any"):
            return next(found, None)
        # min() keeps the first of equals: the one nearest to the side where the search starts.
        return min(found, key=lambda position: self.ranks[labels[position]], default=None)


@dataclass(frozen=True)
class HeadRules:
    """A table of head rules.

    Attributes
    ----------
    searches : dict
        Label of a phrase, or ``*`` for every other label, to its searches in the order they are tried.
    punctuation : frozenset of str
        Labels that are ignored, unless all children have one.
    conjunctions : frozenset of str
        If the child before the head is one of these, the head is the child before the conjunction.

    Examples
    --------
    >>> rules = HeadRules.load("penn")
    >>> rules.head("NP", ["DT", "JJ", "NN", "PP"])
    2
    >>> rules.head("NP", ["NN", ",", "CC", "NN"])
    0
    """

    searches: dict[str, tuple[Search, ...]]
    punctuation: frozenset[str] = frozenset()
    conjunctions: frozenset[str] = frozenset()

    @classmethod
    def load(cls, name: str | os.PathLike[str]) -> "HeadRules":
        """The built-in table ``penn``, ``leftmost`` or ``rightmost``, or the one in a file."""
        return cls.parse(rules_text(name), str(name))

    @classmethod
    def parse(cls, text: str, name: str = "") -> "HeadRules":
        """A table from its text; `name` is its name in errors.

        Examples
        --------
        >>> rules = HeadRules.parse("VP left VBD VB\\n* rightmost")
        >>> rules.head("VP", ["ADVP", "VB", "NP"]), rules.head("NP", ["DT", "NN"])
        (1, 1)
        """
        searches: dict[str, tuple[Search, ...]] = {}
        lists = {"%punctuation": frozenset[str](), "%conjunctions": frozenset[str]()}
        for number, line in enumerate(text.splitlines(), start=1):
            fields = line.split()
            if not fields or fields[0].startswith("#"):
                continue
            if fields[0].startswith("%"):
                if fields[0] not in lists:
                    raise TreebankError(f"{fields[0]} is not one of {', '.join(lists)}", name, number)
                lists[fields[0]] |= frozenset(fields[1:])
                continue
            earlier = searches.get(fields[0], ())
            searches[fields[0]] = (*earlier, _parse_search(fields, earlier, name, number))
        searches.setdefault(OTHER_LABELS, (Search("leftmost", {}),))
        return cls(searches, lists["%punctuation"], lists["%conjunctions"])

    def head(self, label: str, child_labels: Sequence[str]) -> int:
        """The position of the head among the children of a phrase.

        Parameters
        ----------
        label : str
            Of the phrase. Function tags (``NP-SBJ``) are ignored here and in the children.
        child_labels : sequence of str
            At least one.
        """
        if not child_labels:
            raise ValueError(f"a phrase without children has no head: {label!r}")
        labels = [strip_function(child_label) for child_label in child_labels]
        visible = [position for position, child in enumerate(labels) if child not in self.punctuation]
        visible = visible or list(range(len(labels)))
        seen = [labels[position] for position in visible]
        head = self._find(strip_function(label), seen)
        if head >= 2 and seen[head - 1] in self.conjunctions:
            head -= 2
        return visible[head]

    def _find(self, label: str, labels: Sequence[str]) -> int:
        searches = self.searches.get(label) or self.searches[OTHER_LABELS]
        for search in searches:
            head = search.find(labels)
            if head is not None:
                return head
        return len(labels) - 1 if searches[-1].from_right else 0


def rules_text(name: str | os.PathLike[str]) -> str:
    """The text of a built-in table, or of a file."""
    text = BUILT_IN.get(str(name))
    return read_rules(name) if text is None else text


def read_rules(path: str | os.PathLike[str]) -> str:
    """The text of a file with head rules."""
    return read_table(path, "head rules")


def _parse_search(fields: list[str], earlier: Sequence[Search], name: str, number: int) -> Search:
    """The search of a line, given the earlier ones of its label."""
    label, how, labels = fields[0], *(fields[1:2] or [""]), fields[2:]
    if how not in SEARCHES:
        found = f"not {how!r}" if how else "but the line ends"
        raise TreebankError(f"after {label!r} comes one of {', '.join(SEARCHES)}, {found}", name, number)
    if not labels and how not in ("leftmost", "rightmost"):
        side = "rightmost" if how.startswith("right") else "leftmost"
        raise TreebankError(f"{how!r} needs labels to look for; for any child write {side!r}", name, number)
    if earlier and earlier[-1].certain:
        raise TreebankError(f"never tried: an earlier line for {label!r} already takes any child", name, number)
    # If a label occurs twice, its first rank counts.
    return Search(how, {child: rank for rank, child in reversed(list(enumerate(labels)))})
