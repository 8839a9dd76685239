"""Relabelling: rules that rename, splice out or drop nodes, for tags, phrases and words apart.

Preprocessing, the first step of cleaning. A table of rules is a small text: of each kind, the first rule with a pattern
that matches decides. It is stored in the corpus and in the model, so that all trees are treated alike; names that only
one label got can be taken back.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from nltk.tree import Tree

from tsgkit._files import read_table
from tsgkit.errors import TreebankError
from tsgkit.treebank._brackets import escape_symbol
from tsgkit.treebank._patterns import Pattern
from tsgkit.treebank._trees import VIRTUAL_ROOT, Child, is_preterminal, preorder, rebuild

KINDS = ("tag", "phrase", "word")
ARROW = "->"
ACTIONS = ("keep", "drop", "splice")
RENAME, KEEP, DROP, SPLICE = "rename", *ACTIONS
# What stands for a node that is spliced out, until its parent takes its children.
SPLICED = "\0spliced"
REFERENCE = re.compile(r"\\(.)|\$([1-9])")
MOST_RULES = 10_000


@dataclass(frozen=True)
class Rule:
    """One line of a table.

    Attributes
    ----------
    kind : {"tag", "phrase", "word"}
    patterns : tuple of Pattern
    action : {"rename", "keep", "drop", "splice"}
    new : str
        For ``rename``, with ``$1``, ``$2``, ... for what the first, second, ... star or question mark stands for.
    """

    kind: str
    patterns: tuple[Pattern, ...]
    action: str
    new: str = ""

    def result(self, label: str) -> tuple[str, str] | None:
        """The action and the new label, or None if no pattern matches."""
        for pattern in self.patterns:
            captured = pattern.match(label)
            if captured is not None:
                # A label is never empty: what would be stays as it is.
                return self.action, (self.renamed(captured) or label) if self.action == RENAME else label
        return None

    def renamed(self, captured: tuple[str, ...]) -> str:
        return REFERENCE.sub(lambda found: found[1] or captured[int(found[2]) - 1], self.new)


class Relabelling:
    """A table of rules; see `parse` for its text.

    Examples
    --------
    >>> rules = Relabelling.parse("phrase *-SUJ -> $1\\nphrase VN splice\\ntag PONCT drop\\nword -Fpa- -> -LRB-")
    >>> tree = Tree.fromstring("(S (NP-SUJ (P -Fpa-)) (VN (V va) (CL y)) (PONCT .))")
    >>> print(rules.apply(tree))
    (S (NP (P -LRB-)) (V va) (CL y))
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = {kind: tuple(rule for rule in rules if rule.kind == kind) for kind in KINDS}
        self._known: dict[tuple[str, str], tuple[str, str]] = {}

    @classmethod
    def parse(cls, text: str, name: str = "") -> "Relabelling":
        """A table from its text; `name` is its name in errors.

        A line is ``KIND PATTERN... -> NEW``, ``KIND PATTERN... drop``, ``splice`` or ``keep``. Empty lines, and lines
        that begin with ``#``, are skipped.
        """
        rules = []
        for number, line in enumerate(text.splitlines(), start=1):
            fields = line.split()
            if fields and not fields[0].startswith("#"):
                try:
                    rules.append(rule_of(fields))
                except TreebankError as error:
                    raise TreebankError(error.problem, name, number) from None
        if len(rules) > MOST_RULES:
            raise TreebankError(f"more than {MOST_RULES} rules", name)
        return cls(rules)

    def decide(self, kind: str, label: str) -> tuple[str, str]:
        """What happens to a label of a kind: an action, and the new label."""
        key = (kind, label)
        if key not in self._known:
            results = (rule.result(label) for rule in self.rules[kind])
            self._known[key] = next((result for result in results if result is not None), (KEEP, label))
        return self._known[key]

    def apply(self, tree: Tree) -> Tree | None:
        """A new tree; None if no word is left."""
        result = rebuild(tree, self.combine)
        if result is None or isinstance(result, str):
            return None
        if result.label() != SPLICED:
            return result
        only = result[0]
        return only if len(result) == 1 and isinstance(only, Tree) else Tree(VIRTUAL_ROOT, list(result))

    def combine(self, node: Tree, children: list[Child]) -> Child | None:
        if is_preterminal(node):
            action, word = self.decide("word", node[0])
            tag_action, tag = self.decide("tag", node.label())
            return None if DROP in (action, tag_action) else Tree(tag, [word])
        if not children:
            return None
        action, label = self.decide("phrase", node.label())
        if action == DROP:
            return None
        below: list[Child] = []
        for child in children:
            below += list(child) if isinstance(child, Tree) and child.label() == SPLICED else [child]
        return Tree(SPLICED if action == SPLICE else label, below)

    def inverse(
        self, labels: Mapping[str, Iterable[str]], later: Callable[[str, str], str] = lambda kind, label: label
    ) -> dict[str, dict[str, str]]:
        """New labels that only one of the given labels got, with that label, for tags and for phrases.

        Parameters
        ----------
        labels : mapping
            Those of the treebank, for ``tag`` and ``phrase``.
        later : callable
            ``later(kind, label)`` is what the steps after this one make of a label; both labels are as after them.

        Examples
        --------
        >>> rules = Relabelling.parse("tag PERIOD -> .\\ntag N* -> N")
        >>> rules.inverse({"tag": ["PERIOD", "NN", "NNS", "VB"], "phrase": []})
        {'tag': {'.': 'PERIOD'}, 'phrase': {}}
        """
        found: dict[str, dict[str, str]] = {}
        for kind in ("tag", "phrase"):
            old_labels: dict[str, set[str]] = {}
            for label in sorted(set(labels[kind])):
                action, new = self.decide(kind, label)
                if action in (RENAME, KEEP):
                    old_labels.setdefault(later(kind, new), set()).add(later(kind, label))
            only = {new: next(iter(olds)) for new, olds in old_labels.items() if len(olds) == 1}
            found[kind] = {new: old for new, old in only.items() if new != old}
        return found


def rule_of(fields: list[str]) -> Rule:
    """The rule of a line."""
    kind, *rest = fields
    if kind not in KINDS:
        raise TreebankError(f"{kind!r}: a line begins with one of {', '.join(KINDS)}")
    if ARROW in rest:
        at = rest.index(ARROW)
        texts, new = rest[:at], rest[at + 1 :]
        if len(new) != 1 or not texts:
            raise TreebankError(f"one new label follows {ARROW}, and patterns come before it; this line is {fields}")
        patterns = tuple(map(Pattern.parse, texts))
        for number in (int(found[2]) for found in REFERENCE.finditer(new[0]) if found[2]):
            if number > min(pattern.n_captured for pattern in patterns):
                raise TreebankError(f"${number}: a pattern of this line has fewer stars and question marks")
        return Rule(kind, patterns, RENAME, new[0])
    if len(rest) < 2 or rest[-1] not in ACTIONS:
        raise TreebankError(f"after {kind!r} come patterns, then {ARROW} and a label, or one of {', '.join(ACTIONS)}")
    if rest[-1] == SPLICE and kind != "phrase":
        raise TreebankError("only phrases can be spliced out")
    return Rule(kind, tuple(map(Pattern.parse, rest[:-1])), rest[-1])


@lru_cache(maxsize=16)
def relabelling_of(text: str) -> Relabelling:
    """The table of a text, parsed once."""
    return Relabelling.parse(text, "labels")


def read_relabelling(path: str) -> str:
    """The checked text of a file with rules."""
    text = read_table(path, "rules for labels")
    Relabelling.parse(text, path)
    return text


def labels_of(trees: Iterable[Tree]) -> dict[str, set[str]]:
    """The tags and phrase labels of trees."""
    found: dict[str, set[str]] = {"tag": set(), "phrase": set()}
    for tree in trees:
        for node in preorder(tree):
            found["tag" if is_preterminal(node) else "phrase"].add(node.label())
    return found


def restored(tree: Tree, original: Mapping[str, Mapping[str, str]]) -> Tree:
    """A tree with the labels that `Relabelling.inverse` gives back, also if it was written to a file of brackets."""
    written = {kind: {escape_symbol(new): old for new, old in table.items()} for kind, table in original.items()}

    def restore(node: Tree, children: list[Child]) -> Child:
        label, kind = node.label(), "tag" if is_preterminal(node) else "phrase"
        old = original.get(kind, {}).get(label) or written.get(kind, {}).get(label)
        return Tree(old or label, children)

    result = rebuild(tree, restore)
    assert isinstance(result, Tree)
    return result
