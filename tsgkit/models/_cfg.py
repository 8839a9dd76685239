"""The plain PCFG: relative frequencies of the rules of a prepared corpus, ``P(r) = C(r) / C(root of r)``.

The baseline of every comparison, and the first grammar of every coarse-to-fine cascade.
"""

from collections import Counter
from dataclasses import replace

import numpy as np

from tsgkit.grammar import WeightedGrammar
from tsgkit.models._closing import learn_closing
from tsgkit.models._distinct import distinct_rows
from tsgkit.models._model import Model, Stage
from tsgkit.models._rules import RuleCounts, count_rules
from tsgkit.treebank import FlatCorpus
from tsgkit.treebank._binarize import coarse_label
from tsgkit.treebank._prepare import preparation_of


def train_cfg(corpus: FlatCorpus) -> WeightedGrammar:
    """The relative-frequency grammar of a corpus; its symbols are the corpus's labels.

    Examples
    --------
    >>> from nltk.tree import Tree
    >>> corpus = FlatCorpus.from_trees([Tree.fromstring("(TOP (S (NP I) (VP ran)))")])
    >>> train_cfg(corpus).report().is_proper
    True
    """
    return cfg_grammar(count_rules(corpus), corpus)


def cfg_grammar(rules: RuleCounts, corpus: FlatCorpus) -> WeightedGrammar:
    """The relative-frequency grammar of these counts over the tables of a corpus."""
    totals = rules.totals()
    lexical, lexical_count, words = with_classes(rules, corpus)
    return WeightedGrammar(
        labels=corpus.labels,
        words=words,
        label=np.arange(rules.n_labels),
        root=rules.root,
        binary=rules.binary,
        binary_weight=rules.binary_count / totals[rules.binary[:, 0]],
        unary=rules.unary,
        unary_weight=rules.unary_count / totals[rules.unary[:, 0]],
        lexical=lexical,
        lexical_weight=lexical_count / totals[lexical[:, 0]],
    )


def with_classes(rules: RuleCounts, corpus: FlatCorpus) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """The lexical rules, with classes for new words where the corpus has none at its leaves.

    When no training word was rare, a class gets, for every tag, the number of distinct training words of
    that class and tag: what a new word of the class most likely is.
    """
    lexicon = preparation_of(corpus).lexicon
    if lexicon is None or lexicon.replaces:
        return rules.lexical, rules.lexical_count, corpus.words
    words = list(corpus.words)
    number = {word: index for index, word in enumerate(words)}
    types: Counter[tuple[int, int]] = Counter()
    is_tag = corpus.form >= 0
    pairs = np.unique(np.stack([corpus.label[is_tag], corpus.form[is_tag]], axis=1), axis=0)
    for tag, form in pairs.tolist():
        name = lexicon.classify(corpus.forms[form], 1)
        if name not in number:
            number[name] = len(words)
            words.append(name)
        types[tag, number[name]] += 1
    lexical = np.concatenate([rules.lexical, np.array(list(types), dtype=np.int32).reshape(-1, 2)])
    return (
        lexical,
        np.concatenate([rules.lexical_count, np.array(list(types.values()), dtype=np.int64)]),
        words,
    )


def coarse_labels(labels: list[str]) -> tuple[list[str], np.ndarray]:
    """Labels without markovisation, and for every given label the number of its coarse one.

    Examples
    --------
    >>> names, numbers = coarse_labels(["NP", "NP^S", "@NP^S|JJ", "@NP|NN"])
    >>> names, numbers.tolist()
    (['NP', '@NP'], [0, 0, 1, 1])
    """
    numbers: dict[str, int] = {}
    mapped = [numbers.setdefault(coarse_label(label), len(numbers)) for label in labels]
    return list(numbers), np.array(mapped, dtype=np.int32)


def project_rules(rules: RuleCounts, label_map: np.ndarray, n_labels: int) -> RuleCounts:
    """The counts of rules whose labels are replaced by coarser ones."""
    parts: dict[str, np.ndarray] = {}
    for kind, n_label_columns in (("binary", 3), ("unary", 2), ("lexical", 1)):
        rows = getattr(rules, kind).copy()
        rows[:, :n_label_columns] = label_map[rows[:, :n_label_columns]]
        first, place, _ = distinct_rows(rows.T)
        counts = np.bincount(place, weights=getattr(rules, f"{kind}_count"), minlength=len(first))
        parts[kind], parts[f"{kind}_count"] = rows[first].astype(np.int32), counts
    return RuleCounts(**parts, root=int(label_map[rules.root]), n_labels=n_labels)


def cfg_model(corpus: FlatCorpus) -> Model:
    """The PCFG as a model, with its labels' unmarkovised grammar for pruning where that is smaller.

    Examples
    --------
    >>> from tsgkit.treebank import Binarization, UnknownWords, load, prepare
    >>> corpus = prepare(load("village", "dev"), binarization=Binarization("right", 1), unknown=UnknownWords())
    >>> model = cfg_model(corpus)
    >>> model.kind, len(model.stages)
    ('cfg', 2)
    """
    rules = count_rules(corpus)
    fine = cfg_grammar(rules, corpus)
    names, label_map = coarse_labels(corpus.labels)
    stages = [Stage(fine)]
    if len(names) < len(corpus.labels):
        coarse_rules = project_rules(rules, label_map, len(names))
        coarse_corpus = replace(corpus, labels=names, label=label_map[corpus.label])
        stages = [Stage(cfg_grammar(coarse_rules, coarse_corpus)), Stage(fine, label_map)]
    return Model("cfg", preparation_of(corpus), stages, closing=learn_closing(corpus, fine.words))
