r"""Grammars in the files of other parsers: bitpar's, and disco-dop's ``.rules`` and ``.lex``.

Both keep rules and lexicon in two text files and know symbols and words by name only. What a name cannot
hold is written ``&#N;``, which makes every grammar come back as it was, up to the numbering:
``by_names(read(write(g))) == by_names(g)``.
"""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np

from tsgkit._files import DAMAGED_ARCHIVE, TooLongError, lines_of, open_binary, open_output
from tsgkit.grammar._weighted import NO_LABEL, RULE_KINDS, GrammarError, WeightedGrammar

PathLike = str | os.PathLike[str]

REFERENCE = re.compile(r"&#([0-9]{0,7});")
# White space and control characters end a field somewhere, lone surrogates are not UTF-8, a byte order mark is
# dropped; of "&", only what would be read as a reference. Brackets would break the trees of the parsers.
NOT_IN_WORDS = re.compile(r"[\s\x00-\x1f\x7f-\x9f\ufeff\ud800-\udfff]|&(?=#[0-9]{0,7};)")
NOT_IN_NAMES = re.compile(rf"[()]|{NOT_IN_WORDS.pattern}")
NUMBER_OF_SYMBOL = re.compile(r"#([0-9]+)\Z")
# disco-dop takes a rules file that starts like this for one of bitpar's.
STARTS_LIKE_BITPAR = re.compile(r"[-.e0-9]+\b", re.ASCII)
EPSILON = "Epsilon"  # disco-dop's name for what words hang from

SEPARATORS = re.compile(r"[ \t]+")
SIGNED_NUMBER = re.compile(
    r"[+-]?(?:0[xX][0-9a-fA-F]+(?:\.[0-9a-fA-F]*)?(?:[pP][+-]?[0-9]+)?"
    r"|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
)
# Before the weight of a unary rule that makes a node although both symbols have the same label.
NODE_MARK = "+"
YIELD_FUNCTIONS = {1: "0", 2: "01"}


def write_bitpar(grammar: WeightedGrammar, rules_path: PathLike, lexicon_path: PathLike, *, scale: float = 1.0) -> None:
    r"""Write a grammar as a grammar file and a lexicon file of bitpar.

    Parameters
    ----------
    grammar : WeightedGrammar
        Symbols and words without rules are not written.
    rules_path, lexicon_path : path
        Files to write, compressed if the name ends in ``.gz`` or ``.xz``; bitpar itself reads plain files.
    scale : float
        What all weights are multiplied by. The program bitpar takes weights for frequencies, and those of
        words up to 0.1 for tags that were never seen; a large power of two, for instance ``2.0**40``, makes
        it use the weights of a proper grammar as they are.

    Raises
    ------
    GrammarError
        If two symbols have the same name, or if the root has no binary or unary rule: the root is the first
        symbol of the file.

    Examples
    --------
    >>> grammar = WeightedGrammar(
    ...     labels=["S", "A"], words=["a", "b"], label=[0, 1], root=0,
    ...     binary=[(0, 1, 1)], binary_weight=[1.0], lexical=[(1, 0), (1, 1)], lexical_weight=[0.75, 0.25])
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rules, lexicon = Path(folder, "grammar"), Path(folder, "lexicon")
    ...     write_bitpar(grammar, rules, lexicon)
    ...     rules.read_text(), lexicon.read_text()
    ...     by_names(read_bitpar(rules, lexicon)) == by_names(grammar)
    ('1.0\tS\tA\tA\n', 'a\tA 0.75\nb\tA 0.25\n')
    True
    """
    names = written_names(grammar)
    lines = (
        "\t".join((weight, parent, *children)) for parent, children, weight in ordered_rules(grammar, names, scale)
    )
    write_files(lines, rules_path, lexicon_lines(grammar, names, scale), lexicon_path)


def read_bitpar(
    rules_path: PathLike,
    lexicon_path: PathLike,
    root: str | None = None,
    label_of: Callable[[str], str | None] | None = None,
    *,
    bridges: bool = True,
    normalize: bool = False,
) -> WeightedGrammar:
    r"""Read a grammar from a grammar file and a lexicon file of bitpar.

    Parameters
    ----------
    rules_path, lexicon_path : path
        Plain, gzip or xz.
    root : str, optional
        The name of the root; the first symbol of the grammar file if not given, as in bitpar.
    label_of : callable, optional
        Gives the label for the name of a symbol, or None for a symbol without one. If not given, the label is the
        name without a final ``#number``, and a number alone is no label.
    bridges : bool
        Whether a unary rule between two symbols with the same label is a bridge. `write_bitpar` marks the
        unary rules that are none; they stay unary rules. Those of symbols without a label always are bridges.
    normalize : bool
        Whether weights are frequencies, to be divided by their sum over all rules of a symbol.

    Raises
    ------
    GrammarError
        ``file:line: problem`` if a file is not in the format.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rules, lexicon = Path(folder, "grammar"), Path(folder, "lexicon")
    ...     n_characters = rules.write_text("3 S NP VP\n1 S VP\n")
    ...     n_characters = lexicon.write_text("we\tNP 4\nlaugh\tNP 1\tVP 5\n")
    ...     grammar = read_bitpar(rules, lexicon, normalize=True)
    >>> by_names(grammar)["lexical"]
    {('NP', 'we'): 0.8, ('NP', 'laugh'): 0.2, ('VP', 'laugh'): 1.0}
    """
    files = GrammarFiles(label_of, fractions=False)
    files.read(rules_path, files.add_bitpar_rule)
    files.read(lexicon_path, files.add_entry)
    return files.grammar(rules_path, root, bridges, normalize)


def write_discodop(grammar: WeightedGrammar, rules_path: PathLike, lex_path: PathLike) -> None:
    r"""Write a grammar as a ``.rules`` and a ``.lex`` file of disco-dop.

    Parameters
    ----------
    grammar : WeightedGrammar
        Symbols and words without rules are not written.
    rules_path, lex_path : path
        Files to write, compressed if the name ends in ``.gz`` or ``.xz``; disco-dop reads plain and gzip.

    Raises
    ------
    GrammarError
        If two symbols have the same name, or if the root has no binary or unary rule: the root is the first
        symbol of the file.

    Examples
    --------
    >>> grammar = WeightedGrammar(
    ...     labels=["S", "A"], words=["a"], label=[0, 1], root=0,
    ...     binary=[(0, 1, 1)], binary_weight=[1.0], lexical=[(1, 0)], lexical_weight=[1.0])
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rules, lex = Path(folder, "g.rules"), Path(folder, "g.lex")
    ...     write_discodop(grammar, rules, lex)
    ...     rules.read_text(), lex.read_text()
    ...     by_names(read_discodop(rules, lex)) == by_names(grammar)
    ('S\tA\tA\t01\t1.0\n', 'a\tA 1.0\n')
    True
    """
    names = [hidden_start(name) if name == EPSILON else name for name in written_names(grammar)]
    if STARTS_LIKE_BITPAR.match(names[grammar.root] + "\t"):
        names[grammar.root] = hidden_start(names[grammar.root])
    lines = (
        "\t".join((parent, *children, YIELD_FUNCTIONS[len(children)], weight))
        for parent, children, weight in ordered_rules(grammar, names)
    )
    write_files(lines, rules_path, lexicon_lines(grammar, names), lex_path)


def read_discodop(
    rules_path: PathLike,
    lex_path: PathLike,
    root: str | None = None,
    label_of: Callable[[str], str | None] | None = None,
    *,
    bridges: bool = True,
    normalize: bool = False,
) -> WeightedGrammar:
    """Read a grammar from a ``.rules`` and a ``.lex`` file of disco-dop.

    Only context-free rules are understood: the yield function is ``0`` for one child, ``01`` for two.

    Parameters
    ----------
    rules_path, lex_path : path
        Plain, gzip or xz.
    root : str, optional
        The name of the root; the first symbol of the rules file if not given.
    label_of, bridges, normalize
        As in `read_bitpar`. disco-dop itself always normalises.

    Raises
    ------
    GrammarError
        ``file:line: problem`` if a file is not in the format.
    """
    files = GrammarFiles(label_of, fractions=True)
    files.read(rules_path, files.add_discodop_rule)
    files.read(lex_path, files.add_entry)
    return files.grammar(rules_path, root, bridges, normalize)


def by_names(grammar: WeightedGrammar) -> dict[str, dict]:
    """A grammar without numbers: what two grammars that differ only in their numbering have in common.

    Returns
    -------
    dict
        ``root`` and ``labels`` give the label (or None) for the names of the root and of all symbols in rules;
        ``binary``, ``unary``, ``bridge`` and ``lexical`` the weight for the names in a rule.
    """
    names = [grammar.name_of(symbol) for symbol in range(grammar.n_symbols)]
    labels = [grammar.labels[label] if label != NO_LABEL else None for label in grammar.label.tolist()]
    view: dict[str, dict] = {"root": {names[grammar.root]: labels[grammar.root]}, "labels": {}}
    for kind in RULE_KINDS:
        weights = view[kind] = {}
        for rule, weight in rules_of(grammar, kind):
            symbols = rule[:-1] if kind == "lexical" else rule
            last = [grammar.words[rule[-1]]] if kind == "lexical" else []
            weights[(*(names[symbol] for symbol in symbols), *last)] = weight
            view["labels"].update((names[symbol], labels[symbol]) for symbol in symbols)
    return view


def escape(text: str, special: re.Pattern[str] = NOT_IN_NAMES) -> str:
    """A name, or with `NOT_IN_WORDS` a word, as it stands in the files.

    Examples
    --------
    >>> escape("N P"), escape("AT&T"), escape("&#32;"), escape("")
    ('N&#32;P', 'AT&T', '&#38;#32;', '&#;')
    """
    return special.sub(lambda match: f"&#{ord(match.group())};", text) if text else "&#;"


def unescape(written: str) -> str:
    """The name or word that `escape` wrote; what is not a reference to a character stays.

    Examples
    --------
    >>> unescape("N&#32;P"), unescape("AT&T"), unescape("&#;")
    ('N P', 'AT&T', '')
    """
    return REFERENCE.sub(character, written) if "&#" in written else written


def character(reference: re.Match[str]) -> str:
    """What a reference stands for."""
    if not reference.group(1):
        return ""
    code = int(reference.group(1))
    return chr(code) if code <= 0x10FFFF else reference.group()


def label_in(written: str) -> str | None:
    """The label of a symbol by its name as written; ``None`` if it is a number alone.

    Examples
    --------
    >>> label_in("NP#12"), label_in("#12"), label_in("&#;#12")
    ('NP', None, '')
    """
    rest = NUMBER_OF_SYMBOL.sub("", written)
    return unescape(rest) if rest else None


def hidden_start(written: str) -> str:
    """The same name written so that a parser sees another first character."""
    return f"&#{ord(written[0])};{written[1:]}"


def written_names(grammar: WeightedGrammar) -> list[str]:
    """How the symbols are called in the files."""
    names = [grammar.name_of(symbol) for symbol in range(grammar.n_symbols)]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise GrammarError(f"two symbols are called {twice!r}: files cannot tell them apart; give the grammar names")
    written = []
    for name, label in zip(names, grammar.label.tolist(), strict=True):
        text = escape(name)
        if label != NO_LABEL and name == grammar.labels[label]:
            # A number sign of the label itself must not look like the one before a symbol's number.
            text = NUMBER_OF_SYMBOL.sub(r"&#35;\1", text)
        elif label != NO_LABEL and text.startswith("#"):
            # Numbers alone are symbols without a label; this one's label is empty.
            text = f"{escape('')}{text}"
        written.append(text)
    return written


def ordered_rules(
    grammar: WeightedGrammar, names: list[str], scale: float = 1.0
) -> list[tuple[str, tuple[str, ...], str]]:
    """Binary and unary rules and bridges as parent, children and weight, in an order that names alone give.

    The rules of the root come first: in both formats the first symbol is the root.
    """
    rules = []
    for kind in ("binary", "unary", "bridge"):
        for (parent, *children), weight in rules_of(grammar, kind):
            is_marked = kind == "unary" and grammar.label[parent] == grammar.label[children[0]]
            text = f"{NODE_MARK if is_marked else ''}{weight * scale!r}"
            rules.append((names[parent], tuple(names[child] for child in children), text))
    root = names[grammar.root]
    rules.sort(key=lambda rule: (rule[0] != root, rule[0], -len(rule[1]), rule[1], rule[2]))
    if not rules or rules[0][0] != root:
        raise GrammarError(f"the root {root!r} has no binary or unary rule: files start with the rules of the root")
    return rules


def lexicon_lines(grammar: WeightedGrammar, names: list[str], scale: float = 1.0) -> Iterator[str]:
    """``word TAB tag SPACE weight TAB tag SPACE weight ...``, the same in both formats."""
    entries: dict[str, list[tuple[str, str]]] = {}
    for (tag, word), weight in rules_of(grammar, "lexical"):
        entries.setdefault(escape(grammar.words[word], NOT_IN_WORDS), []).append((names[tag], repr(weight * scale)))
    for written in sorted(entries):
        yield "\t".join([written, *(" ".join(pair) for pair in sorted(entries[written]))])


def rules_of(grammar: WeightedGrammar, kind: str) -> Iterator[tuple[list[int], float]]:
    """The rules of a kind with their weights, as Python numbers."""
    return zip(getattr(grammar, kind).tolist(), getattr(grammar, f"{kind}_weight").tolist(), strict=True)


def write_files(rules: Iterator[str], rules_path: PathLike, lexicon: Iterator[str], lexicon_path: PathLike) -> None:
    """Write both files or, after an error in the grammar, none; the rules file appears first."""
    with open_output(lexicon_path) as lexicon_file, open_output(rules_path) as rules_file:
        rules_file.writelines(f"{line}\n" for line in rules)
        lexicon_file.writelines(f"{line}\n" for line in lexicon)


class MalformedLine(Exception):
    """What is wrong with the line being read."""


@dataclass
class GrammarFiles:
    """What was read so far: symbols and words numbered as they come, and the rules over them."""

    label_of: Callable[[str], str | None] | None
    fractions: bool  # whether a weight may be one
    symbol_of: dict[str, int] = field(default_factory=dict)  # by the name as written
    number_of_name: dict[str, int] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)
    label: list[int] = field(default_factory=list)
    words: dict[str, int] = field(default_factory=dict)
    rules: dict[str, list[tuple[int, ...]]] = field(default_factory=lambda: {kind: [] for kind in RULE_KINDS})
    weights: dict[str, list[float]] = field(default_factory=lambda: {kind: [] for kind in RULE_KINDS})

    def read(self, path: PathLike, add_line: Callable[[str], None]) -> None:
        """Hand the lines of a file to `add_line`; add file and line to what it complains about."""
        for number, line in numbered_lines(path):
            try:
                add_line(line)
            except MalformedLine as problem:
                raise GrammarError(f"{os.fspath(path)}:{number}: {problem}") from None

    def add_bitpar_rule(self, line: str) -> None:
        weight, *symbols = SEPARATORS.split(line.strip(" \t"))
        self.add_rule(symbols, weight)

    def add_discodop_rule(self, line: str) -> None:
        fields = line.split("\t")
        if len(fields) < 3 or not all(fields):
            malformed("not a rule: parent, children, yield function and weight, with a tab between")
        *symbols, yield_function, weight = fields
        if yield_function != YIELD_FUNCTIONS.get(len(symbols) - 1, yield_function):
            malformed(f"yield function {yield_function!r}: must be 0 for one child and 01 for two")
        self.add_rule(symbols, weight)

    def add_rule(self, symbols: list[str], weight: str) -> None:
        """One binary or unary rule; which unary rules are bridges is seen at the end."""
        if len(symbols) < 2:
            malformed("a rule needs a parent and one or two children")
        if len(symbols) > 3:
            malformed(f"{len(symbols) - 1} children: at most two; binarise the grammar first")
        value = parse_weight(weight, self.fractions)
        kind = "binary" if len(symbols) == 3 else "unary" if weight.startswith(NODE_MARK) else "bridge"
        self.rules[kind].append(tuple(map(self.symbol, symbols)))
        self.weights[kind].append(value)

    def add_entry(self, line: str) -> None:
        """A word with its tags and weights."""
        written, _, rest = line.partition("\t")
        pairs = SEPARATORS.split(rest.strip(" \t"))
        if not written or len(pairs) % 2:
            malformed("not an entry: a word and a tab, then pairs of a tag and its weight")
        word = self.words.setdefault(unescape(written), len(self.words))
        for tag, weight in zip(pairs[::2], pairs[1::2], strict=True):
            value = parse_weight(weight, self.fractions)
            self.rules["lexical"].append((self.symbol(tag), word))
            self.weights["lexical"].append(value)

    def symbol(self, written: str) -> int:
        """The number of a symbol, a new one if the files had not named it."""
        if written not in self.symbol_of:
            name = unescape(written)
            if name not in self.number_of_name:
                self.number_of_name[name] = len(self.label)
                label = self.label_of(name) if self.label_of else label_in(written)
                self.label.append(NO_LABEL if label is None else self.labels.setdefault(label, len(self.labels)))
            self.symbol_of[written] = self.number_of_name[name]
        return self.symbol_of[written]

    def grammar(self, path: PathLike, root: str | None, bridges: bool, normalize: bool) -> WeightedGrammar:
        """The grammar of all files; `path` is the one with the rules."""
        name = os.fspath(path)
        if not any(self.rules[kind] for kind in ("binary", "unary", "bridge")):
            raise GrammarError(f"{name}: there are no rules in the file")
        if root is not None and root not in self.number_of_name:
            raise GrammarError(f"{name}: no symbol is called {root!r}: the root must have rules")
        arrays = self.arrays(bridges, normalize)
        try:
            return WeightedGrammar(
                labels=list(self.labels),
                words=list(self.words),
                label=np.array(self.label),
                root=0 if root is None else self.number_of_name[root],
                names=list(self.number_of_name),
                **arrays,
            )
        except GrammarError as error:
            raise GrammarError(f"{name}: {error}") from None

    def arrays(self, bridges: bool, normalize: bool) -> dict[str, np.ndarray]:
        """Rules and weights as the grammar takes them."""
        arrays: dict[str, np.ndarray] = {}
        for kind, n_columns in RULE_KINDS.items():
            arrays[kind] = np.array(self.rules[kind], dtype=np.int32).reshape(-1, n_columns)
            arrays[f"{kind}_weight"] = np.array(self.weights[kind], dtype=np.float64)
        label = np.array(self.label)
        single, weight = arrays["bridge"], arrays["bridge_weight"]
        upper, lower = label[single.T]
        is_bridge = ((upper == lower) & bridges) | (upper == NO_LABEL)
        arrays["bridge"], arrays["bridge_weight"] = single[is_bridge], weight[is_bridge]
        arrays["unary"] = np.concatenate([arrays["unary"], single[~is_bridge]])
        arrays["unary_weight"] = np.concatenate([arrays["unary_weight"], weight[~is_bridge]])
        if normalize:
            totals = np.zeros(len(label))
            for kind in RULE_KINDS:
                np.add.at(totals, arrays[kind][:, 0], arrays[f"{kind}_weight"])
            for kind in RULE_KINDS:
                arrays[f"{kind}_weight"] = arrays[f"{kind}_weight"] / totals[arrays[kind][:, 0]]
        return arrays


def numbered_lines(path: PathLike) -> Iterator[tuple[int, str]]:
    """The lines of a UTF-8 file that are not empty, counted from 1."""
    try:
        with open_binary(path) as file:
            for number, raw in enumerate(lines_of(file), start=1):
                try:
                    line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
                except UnicodeDecodeError as error:
                    problem = f"byte {raw[error.start]:02X} is not UTF-8; convert the file"
                    raise GrammarError(f"{os.fspath(path)}:{number}: {problem}") from None
                if line.strip(" \t"):
                    yield number, line
    except DAMAGED_ARCHIVE as error:
        raise GrammarError(f"{os.fspath(path)}: the compressed file is damaged ({error})") from None
    except TooLongError as error:
        raise GrammarError(f"{os.fspath(path)}: {error}") from None


def parse_weight(text: str, fractions: bool) -> float:
    """A weight in decimal or hexadecimal or, where that is allowed, as a fraction.

    Examples
    --------
    >>> [parse_weight(text, fractions=True) for text in ("0.25", "0x1.0p-2", "1/4")]
    [0.25, 0.25, 0.25]
    """
    parts = text.split("/") if fractions else [text]
    if len(parts) > 2 or not all(map(SIGNED_NUMBER.fullmatch, parts)):
        malformed(f"weight {text!r}: not a number")
    try:
        values = [float.fromhex(part) if "x" in part.lower() else float(part) for part in parts]
        weight = values[0] / values[1] if len(parts) == 2 else values[0]
    except (OverflowError, ZeroDivisionError):
        weight = np.inf
    if not 0 < weight < np.inf:
        malformed(f"weight {text}: must be finite and greater than zero")
    return weight


def malformed(problem: str) -> NoReturn:
    raise MalformedLine(problem)
