"""A hand-written tree-substitution grammar with insertion: the source of synthetic treebanks.

Before the first stage of the flow. The probabilities of the elementary trees with the same root sum to one, those of
initial and of auxiliary trees separately; words have the frequencies of Zipf's law.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import cycle
from typing import NamedTuple

from nltk.tree import Tree

from tsgkit.treebank._fragments import format_fragment, n_rules, read_fragment

ROOT = "TOP"
FOOT_MARK = "*"
INSERTION_MARK = "+"
# Every word is an entry in a table that is kept in memory, about half a gigabyte for a million.
LARGEST_VOCABULARY = 1_000_000

# The grammar. A line is a weight and an elementary tree: `(NP )` is a frontier node, `(NP* )` the foot of an auxiliary
# tree; weights are relative to those of the other trees with the same root. `[kind]` is the kind of the lines below it.
# A clause, rooted in S, also occurs with a full stop under TOP.
#
# The label of a frontier node does not tell its number, so only a fragment with both the subject and the verb may be in
# the present tense (or have was/were); a fragment rooted in VP is in the past tense or has a modal. Nouns and
# adjectives begin with consonants, so that the article is `a`. NX is the Penn Treebank's noun phrase without its
# determiner: the node where adjectives are inserted.
INITIAL_TREES = """
[agreement]
3    (S (NP (DT this) (NX (NN ))) (VP (VBZ ) (NP )))
3    (S (NP (DT these) (NX (NNS ))) (VP (VBP ) (NP )))
2    (S (NP (DT every) (NX (NN ))) (VP (VBZ ) (NP ) (PP )))
2    (S (NP (JJ many) (NX (NNS ))) (VP (VBP ) (NP ) (PP )))
3    (S (NP (PRP he)) (VP (VBZ ) (NP )))
2    (S (NP (PRP she)) (VP (VBZ ) (NP ) (PP )))
3    (S (NP (PRP they)) (VP (VBP ) (NP )))
2    (S (NP (PRP I)) (VP (VBP ) (NP )))
2    (S (NP (NNP )) (VP (VBZ ) (NP )))
2    (S (NP (NP (NNP )) (CC and) (NP (NNP ))) (VP (VBP ) (NP )))
3    (S (NP (DT the) (NX (NN ))) (VP (VBZ is) (ADJP )))
3    (S (NP (DT the) (NX (NNS ))) (VP (VBP are) (ADJP )))
2    (S (NP (DT that) (NX (NN ))) (VP (VBD was) (ADJP )))
2    (S (NP (DT those) (NX (NNS ))) (VP (VBD were) (ADJP )))
2    (S (NP (EX there)) (VP (VBZ is) (NP (DT a) (NX (NN ))) (PP )))
2    (S (NP (EX there)) (VP (VBP are) (NP (CD ) (NX (NNS ))) (PP )))
2    (S (NP (DT the) (NX (NN ))) (VP (VBZ has) (VP (VBN ) (NP ))))
2    (S (NP (DT the) (NX (NNS ))) (VP (VBP have) (VP (VBN ) (NP ))))
2    (S (NP (DT the) (NX (NN ))) (VP (VBD was) (VP (VBN ) (PP (IN by) (NP )))))
2    (S (NP (DT the) (NX (NNS ))) (VP (VBD were) (VP (VBN ) (PP (IN by) (NP )))))
2    (S (NP (NP (DT the) (NX (NN ))) (PP (IN of) (NP (DT the) (NNS )))) (VP (VBZ ) (NP )))
2    (S (NP (NP (DT the) (NX (NNS ))) (PP (IN of) (NP (DT the) (NN )))) (VP (VBP ) (NP )))
6    (NP (DT a) (NX (NN )))
3    (NP (CD ) (NX (NNS )))
3    (NP (DT these) (NNS ))
2    (NP (DT each) (NN ))
1    (NP (NP (DT the) (NX (NN ))) (SBAR (WHNP (WDT that)) (S (VP (VBZ ) (NP )))))
1    (NP (NP (DT the) (NX (NNS ))) (SBAR (WHNP (WDT that)) (S (VP (VBP ) (NP )))))

[idiom]
2    (VP (VBD kicked) (NP (DT the) (NX (NN bucket))))
2    (VP (VBD took) (NP ) (PP (IN into) (NP (NN account))))
2    (VP (VBD spilled) (NP (DT the) (NX (NNS beans))))
2    (VP (VBD broke) (NP (DT the) (NX (NN ice))))
2    (VP (VBD paid) (NP (NX (NN attention))) (PP (TO to) (NP )))
2    (VP (VBD took) (NP (NX (NN advantage))) (PP (IN of) (NP )))
2    (VP (VBD kept) (NP (DT a) (NX (JJ close) (NN eye))) (PP (IN on) (NP )))
1.5  (VP (VBD came) (PP (TO to) (NP (NP (NNS grips)) (PP (IN with) (NP )))))
1.5  (VP (VBD called) (NP (PRP it)) (NP (DT a) (NN day)))
1.5  (VP (VBD turned) (NP (DT a) (NX (JJ blind) (NN eye))) (PP (TO to) (NP )))
1.5  (VP (VBD gave) (NP (NN rise)) (PP (TO to) (NP )))
1.5  (VP (VBD let) (S (NP (DT the) (NN cat)) (PP (IN out) (PP (IN of) (NP (DT the) (NN bag))))))
1.5  (VP (MD could) (RB not) (VP (VB care) (ADVP (RBR less)) (PP (IN about) (NP ))))
1    (S (NP (PRP it)) (VP (VBZ goes) (PP (IN without) (S (VP (VBG saying)))) (SBAR (IN that) (S ))))
1    (S (NP (DT the) (NX (NN writing))) (VP (VBZ is) (PP (IN on) (NP (DT the) (NX (NN wall))))))
2    (NP (NP (DT a) (NN lot)) (PP (IN of) (NP (NNS ))))
1    (NP (NP ) (CONJP (RB as) (RB well) (IN as)) (NP ))
3    (PP (IN in) (NP (NP (NN front)) (PP (IN of) (NP ))))
2    (PP (IN on) (NP (NP (NN behalf)) (PP (IN of) (NP ))))
2    (PP (IN in) (NP (NP (NN spite)) (PP (IN of) (NP ))))
1    (ADVP (RB once) (PP (IN in) (NP (DT a) (NN while))))
1    (ADVP (IN at) (JJS least))

[frame]
6    (VP (VBD said) (SBAR ))
2    (VP (VBD thought) (SBAR ))
2    (VP (VBD told) (NP ) (SBAR ))
2    (VP (VBD asked) (SBAR (IN whether) (S )))
3    (VP (VBD gave) (NP ) (NP ))
2    (VP (VBD gave) (NP ) (PP (TO to) (NP )))
2    (VP (VBD sent) (NP ) (NP ))
3    (VP (VBD put) (NP ) (PP ))
2    (VP (VBD persuaded) (NP ) (S (VP (TO to) (VP (VB ) (NP )))))
3    (VP (VBD wanted) (S (VP (TO to) (VP (VB ) (NP )))))
2    (VP (VBD tried) (S (VP (TO to) (VP (VB ) (NP )))))
2    (VP (VBD stopped) (S (VP (VBG ) (NP ))))
2    (VP (VBD relied) (PP (IN on) (NP )))
3    (VP (VBD looked) (PP (IN at) (NP )))
2    (VP (VBD waited) (PP (IN for) (NP )))
2    (VP (VBD blamed) (NP ) (PP (IN for) (NP )))
1.5  (VP (VBD accused) (NP ) (PP (IN of) (S (VP (VBG ) (NP )))))
1.5  (VP (VBD prevented) (NP ) (PP (IN from) (S (VP (VBG ) (NP )))))
2    (VP (VBD seemed) (ADJP ))
2    (VP (VBD became) (ADJP ))
2    (VP (VBD made) (S (NP ) (ADJP )))
2    (VP (VBD gave) (PRT (RP up)) (NP ))
1.5  (VP (VBD carried) (PRT (RP out)) (NP ))
3    (VP (VBD arrived))
2    (VP (VBD slept))
2    (VP (VBD laughed) (PP ))
2    (NP (DT the) (NN fact) (SBAR (IN that) (S )))
2    (NP (DT the) (NN decision) (S (VP (TO to) (VP (VB ) (NP )))))
2    (ADJP (JJ full) (PP (IN of) (NP )))
2    (ADJP (JJ proud) (PP (IN of) (NP )))
2    (ADJP (JJ ready) (S (VP (TO to) (VP (VB ) (NP )))))
3    (ADJP (RB very) (JJ ))
6    (SBAR (IN that) (S ))
2    (SBAR (IN because) (S ))
1    (SBAR (IN if) (S ))
6    (TOP (S (SBAR (IN because) (S )) (, ,) (NP ) (VP ) (. .)))
4    (TOP (S (SBAR (IN if) (S )) (, ,) (NP ) (VP ) (. .)))

[rule]
40   (S (NP ) (VP ))
12   (TOP (S (S ) (CC and) (S ) (. .)))
6    (TOP (S (`` ``) (S ) (, ,) ('' '') (NP ) (VP (VBD said)) (. .)))
2    (TOP (FRAG (NP ) (. .)))
18   (NP (DT ) (NN ))
9    (NP (DT ) (JJ ) (NN ))
10   (NP (DT ) (NNS ))
10   (NP (NNS ))
5    (NP (JJ ) (NNS ))
12   (NP (NNP ))
5    (NP (NNP ) (NNP ))
8    (NP (PRP ))
6    (NP (PRP$ ) (NN ))
3    (NP (DT ) (NN ) (NN ))
24   (NP (NP ) (PP ))
4    (NP (NP ) (CC ) (NP ))
14   (VP (VBD ) (NP ))
16   (VP (VBD ) (NP ) (PP ))
4    (VP (VBD ) (NP ) (ADVP ))
10   (VP (MD ) (VP (VB ) (NP )))
6    (VP (MD ) (VP (VB ) (NP ) (PP )))
4    (VP (VP ) (CC ) (VP ))
70   (PP (IN ) (NP ))
3    (SBAR (S ))
10   (ADJP (JJ ))
10   (ADVP (RB ))
"""

AUXILIARY_TREES = """
[adjective]
3    (NX (JJ proverbial) (NX* ))
3    (NX (JJ pretty) (NX* ))
2    (NX (JJ same) (NX* ))
2    (NX (JJ poor) (NX* ))
6    (NX (JJ ) (NX* ))
3    (NX (ADJP (RB very) (JJ )) (NX* ))

[adverb]
3    (VP (ADVP (RB quickly)) (VP* ))
3    (VP (ADVP (RB probably)) (VP* ))
2    (VP (ADVP (RB never)) (VP* ))
4    (VP (ADVP (RB )) (VP* ))
3    (VP (VP* ) (ADVP (RB again)))
3    (VP (VP* ) (ADVP (RB today)))
2    (VP (VP* ) (ADVP (RB very) (RB )))
3    (NP (ADVP (RB even)) (NP* ))
3    (NP (ADVP (RB only)) (NP* ))
3    (S (ADVP (RB perhaps)) (S* ))
2    (S (ADVP (RB suddenly)) (S* ))

[parenthetical]
3    (VP (VP* ) (PRN (, ,) (S (NP (PRP I)) (VP (VBP think)))))
2    (VP (VP* ) (PRN (, ,) (SBAR (IN as) (S (NP (PRP you)) (VP (VBP know))))))
2    (VP (PRN (, ,) (PP (IN of) (NP (NN course))) (, ,)) (VP* ))
3    (NP (NP* ) (PRN (-LRB- -LRB-) (NP ) (-RRB- -RRB-)))
2    (NP (NP* ) (PRN (: --) (NP (DT a) (NX (NN ))) (: --)))
3    (S (PRN (PP (IN in) (NP (NN fact))) (, ,)) (S* ))
2    (S (PRN (PP (IN for) (NP (NN example))) (, ,)) (S* ))
"""

# a_X: the probability of an insertion at an internal node labelled X of an elementary tree.
INSERTION_PROBABILITIES = {"NX": 0.25, "VP": 0.15, "S": 0.1, "NP": 0.05}

# Words from frequent to rare: a word's weight falls with its rank (Zipf). Verbs are transitive, with their forms in the
# order base, third person, past, participle, gerund; other verbs are part of the frames. A few words have two tags.
NOUNS = """
company year man market day plan price woman report child house state share group bank bond week law point
problem party court fund president month firm country program game minister night room street car door book
city letter song river garden table dog cat bird horse picture story king queen farmer doctor teacher student
judge lawyer writer painter driver sailor soldier baker neighbor brother sister mother father friend stranger
village mountain forest bridge tower castle church school hospital theater kitchen window mirror lamp candle
clock ring coin basket bottle knife hammer wheel boat train plane ticket map secret promise question reason
method theory number sample model result kernel grammar tree word sentence language paper page poem drum
"""
PLURALS = """
shares years people prices men sales markets days women plans children companies bonds months funds banks
groups weeks reports laws houses problems parties courts countries games firms cars books cities letters songs
rivers gardens tables dogs cats birds horses pictures stories kings farmers doctors teachers students judges
lawyers writers painters drivers sailors soldiers bakers neighbors brothers sisters friends strangers villages
mountains forests bridges towers castles schools windows mirrors lamps candles clocks rings coins baskets
bottles knives hammers wheels boats trains planes tickets maps secrets promises questions reasons methods
"""
ADJECTIVES = """
new big last major federal next good large little small national foreign best recent previous former long
great real short common high late public red green black white blue yellow quiet loud clever stupid rich
strong weak sweet bitter heavy light dark bright cold warm wet dry round square brave gentle proud lazy
hungry tired famous secret strange simple difficult modern Russian French German
"""
NAMES = """
John Mary Smith Jones Boston London Paris Brown Miller Susan Peter Clark Davis Helen Martin Chicago Tokyo
Baker Wilson Laura Hughes Texas Berlin Murphy Cooper Walter Simon Dublin Quinn Farmer Marcus Vera Nolan
Judith Hugo
"""
ADVERBS = """
still now already often soon slowly quickly quietly usually finally clearly early later once loudly together
carefully rarely gladly badly well almost twice openly bravely secretly
"""
VERBS = """
see sees saw seen seeing, buy buys bought bought buying, make makes made made making,
find finds found found finding, take takes took taken taking, plan plans planned planned planning,
sell sells sold sold selling, like likes liked liked liking, know knows knew known knowing,
hold holds held held holding, report reports reported reported reporting, want wants wanted wanted wanting,
need needs needed needed needing, bring brings brought brought bringing, lose loses lost lost losing,
win wins won won winning, meet meets met met meeting, build builds built built building,
read reads read read reading, write writes wrote written writing, watch watches watched watched watching,
love loves loved loved loving, hate hates hated hated hating, help helps helped helped helping,
judge judges judged judged judging, question questions questioned questioned questioning,
paint paints painted painted painting, promise promises promised promised promising,
forget forgets forgot forgotten forgetting, steal steals stole stolen stealing,
hide hides hid hidden hiding, break breaks broke broken breaking, follow follows followed followed following,
admire admires admired admired admiring, draw draws drew drawn drawing, book books booked booked booking,
ring rings rang rung ringing, kick kicks kicked kicked kicking, praise praises praised praised praising
"""
CLOSED_CLASSES = {
    "DT": "the some no any",  # these go with singular and plural
    "PRP": "it you",  # these are subjects and objects
    "PRP$": "his their her its my our your",
    "IN": "in of for on with at from by about after under over between near behind against during",
    "MD": "will would could may should might must",
    "CC": "and or but",
    "CD": "two three ten five four seven 20 100 twelve 1,000",
}

SYLLABLES = [consonant + vowel for consonant in "bdfghklmnprstvz" for vowel in "aeiou"]
# Invented words get these tags in turn, with these endings.
INVENTED_ENDINGS = {"NN": "k", "NNS": "ks", "JJ": "kish", "NNP": "k", "VBD": "ked"}

KINDS_OF_INITIAL_TREES = ("agreement", "idiom", "frame", "rule", "word")
KINDS_OF_AUXILIARY_TREES = ("adjective", "adverb", "parenthetical")


class ElementaryTree(NamedTuple):
    """An initial tree (fragment) or an auxiliary tree of the synthetic grammar.

    Attributes
    ----------
    probability : float
        Given the label of the root, among the initial or among the auxiliary trees.
    kind : str
        One of ``agreement idiom frame rule word`` (initial), ``adjective adverb parenthetical`` (auxiliary).
    brackets : str
        In canonical bracket notation: frontier nodes ``(NP )``, the foot ``(NP* )``.
    """

    probability: float
    kind: str
    brackets: str

    @property
    def root(self) -> str:
        """The label of the root."""
        return root_label(self.brackets)


@dataclass(frozen=True)
class SyntheticGrammar:
    """A tree-substitution grammar with insertion, with the probabilities of its elementary trees.

    Attributes
    ----------
    initial, auxiliary : tuple of ElementaryTree
        The probabilities of those with the same root sum to one.
    insertion_probability : mapping
        Label to the probability of an insertion at an internal node with this label.
    """

    initial: tuple[ElementaryTree, ...]
    auxiliary: tuple[ElementaryTree, ...]
    insertion_probability: Mapping[str, float]

    def lines(self) -> Iterator[str]:
        """The grammar as text: ``probability TAB kind TAB elementary tree``, then the insertion probabilities."""
        for tree in self.initial + self.auxiliary:
            yield f"{tree.probability:.9g}\t{tree.kind}\t{tree.brackets}"
        for label, probability in self.insertion_probability.items():
            yield f"{probability:.9g}\tinsertion\t{label}"


def synthetic_grammar(insertions: bool = True, vocabulary: int = 0) -> SyntheticGrammar:
    """The grammar that synthetic treebanks are sampled from.

    Parameters
    ----------
    insertions : bool
        If false, it is a plain tree-substitution grammar, without auxiliary trees.
    vocabulary : int
        Number of invented words in addition to the few hundred English ones; they continue the Zipf curve.

    Examples
    --------
    >>> grammar = synthetic_grammar()
    >>> grammar.auxiliary[0].brackets
    '(NX (JJ proverbial) (NX* ))'
    >>> grammar.insertion_probability["NX"]
    0.25
    """
    if not 0 <= vocabulary <= LARGEST_VOCABULARY:
        raise ValueError(f"vocabulary={vocabulary}: must be between 0 and {LARGEST_VOCABULARY}")
    phrases = list(read_weighted_trees(INITIAL_TREES))
    sentences = [
        (weight, kind, main_clause(brackets)) for weight, kind, brackets in phrases if root_label(brackets) == "S"
    ]
    # Function words follow Zipf's law from the first rank on; the most frequent content words are less extreme.
    words = [
        (1 / (rank + (0.5 if tag in CLOSED_CLASSES else 3)), "word", f"({tag} {word})")
        for tag, ranked_words in lexicon(vocabulary).items()
        for rank, word in enumerate(ranked_words)
    ]
    return SyntheticGrammar(
        initial=normalized(sentences + phrases + words),
        auxiliary=normalized(list(read_weighted_trees(AUXILIARY_TREES))) if insertions else (),
        insertion_probability=dict(INSERTION_PROBABILITIES) if insertions else {},
    )


def synthetic_fragments(
    transform: Callable[[Tree], Tree] | None = None, kinds: Iterable[str] = KINDS_OF_INITIAL_TREES
) -> list[str]:
    """The fragments of the synthetic grammar with at least two rules: what a sampler should find.

    Parameters
    ----------
    transform : callable, optional
        The transformation of the training trees, such as a binarisation; it is applied to every fragment, whose
        frontier nodes are trees without children. Rules are counted before it.
    kinds : iterable of str
        Which fragments; `KINDS_OF_AUXILIARY_TREES` gives the auxiliary trees.

    Examples
    --------
    >>> synthetic_fragments(kinds=["idiom"])[2]
    '(VP (VBD kicked) (NP (DT the) (NX (NN bucket))))'
    """
    grammar, wanted = synthetic_grammar(), set(kinds)
    known = {*KINDS_OF_INITIAL_TREES, *KINDS_OF_AUXILIARY_TREES}
    if not wanted <= known:
        raise ValueError(f"kinds: {', '.join(sorted(wanted - known))}: there are {', '.join(sorted(known))}")
    fragments = [
        tree.brackets
        for tree in grammar.initial + grammar.auxiliary
        if tree.kind in wanted and n_rules(tree.brackets) > 1
    ]
    if transform is None:
        return fragments
    return [format_fragment(transform(read_fragment(fragment))) for fragment in fragments]


def root_label(brackets: str) -> str:
    return brackets[1 : brackets.index(" ")].removesuffix(INSERTION_MARK)


def read_weighted_trees(text: str) -> Iterator[tuple[float, str, str]]:
    """Weight, kind and brackets of every line."""
    kind = ""
    for line in filter(None, text.splitlines()):
        if line.startswith("["):
            kind = line.strip("[]")
        else:
            weight, brackets = line.split(maxsplit=1)
            yield float(weight), kind, brackets


def main_clause(clause: str) -> str:
    """The fragment of a whole sentence: `clause` with a full stop, under the root."""
    return f"({ROOT} {clause.removesuffix(')')} (. .)))"


def lexicon(n_invented: int) -> dict[str, list[str]]:
    """The words of every tag, from frequent to rare; invented words come last."""
    verbs = [row.split() for row in VERBS.split(",")]
    words = dict(zip(("VB", "VBZ", "VBD", "VBN", "VBG"), map(list, zip(*verbs, strict=True)), strict=True))
    words["VBP"] = list(words["VB"])
    open_classes = {"NN": NOUNS, "NNS": PLURALS, "JJ": ADJECTIVES, "NNP": NAMES, "RB": ADVERBS}
    words.update({tag: text.split() for tag, text in (CLOSED_CLASSES | open_classes).items()})
    for number, (tag, ending) in zip(range(n_invented), cycle(INVENTED_ENDINGS.items()), strict=False):
        word = invented_stem(number) + ending
        words[tag].append(word.capitalize() if tag == "NNP" else word)
    return words


def invented_stem(number: int) -> str:
    """A pronounceable stem of two or more syllables, different for every number."""
    n_syllables = len(SYLLABLES)
    stem, rest = "", number + n_syllables + 1
    while rest:
        rest, last = divmod(rest - 1, n_syllables)
        stem = SYLLABLES[last] + stem
    return stem


def normalized(weighted: list[tuple[float, str, str]]) -> tuple[ElementaryTree, ...]:
    """Elementary trees; the probabilities of those with the same root sum to one."""
    weights: dict[str, list[float]] = {}
    for weight, _, brackets in weighted:
        weights.setdefault(root_label(brackets), []).append(weight)
    # `sum` rounds differently in Python 3.12; the same seed must give the same trees.
    totals = {root: math.fsum(each) for root, each in weights.items()}
    return tuple(
        ElementaryTree(weight / totals[root_label(brackets)], kind, brackets) for weight, kind, brackets in weighted
    )
