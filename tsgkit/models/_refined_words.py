"""Lexical rules of a refined grammar whose words back off to their classes.

With tag x of subcategory k, word w and its class c, a lexical rule has the probability

    p(x_k -> w) = w_H + b_{x_k} s_x p(c | x_k) p(w | x, c)

The first part is cached: the word was seen with the symbol. The other one backs off to the class of the word, and has a
rule for every symbol of a tag that the word may have.
"""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tsgkit.models._srtsg import RefinedGrammar, RuleLists

# A tag that a word was never seen with is kept if it has at least this share of the word's probability.
SMALLEST_TAG_SHARE = 1e-3


class WordRules:
    """The lexical rules of all words, and of the classes that stand for new ones.

    Parameters
    ----------
    grammar : RefinedGrammar
    lexical_share : ndarray of float, one per label
        The share of words among the rules of a label.
    """

    def __init__(self, grammar: "RefinedGrammar", lexical_share: np.ndarray) -> None:
        self.grammar, self.first_level = grammar, grammar.levels.names[0]
        blocks, weights, exists = grammar.blocks, grammar.weights, grammar.subcategories.exists
        back_off = weights[f"{self.first_level}_bridge"][exists] * lexical_share[grammar.label]
        # Per symbol and class: of all words of the class together.
        self.of_class = weights["class"][exists] * back_off[:, None]
        self.is_word = blocks["word_class"] >= 0
        # Per tag and class: of a word of the class that the tag was not seen with.
        self.unseen = np.zeros((grammar.n_labels, len(grammar.words.classes)))
        of_tag = weights["word_bridge"][blocks["word_restaurant"][self.is_word]]
        self.unseen[blocks["label"][self.is_word], blocks["word_class"][self.is_word]] = of_tag
        # The symbols, those of a tag together, and where those of each tag begin.
        self.symbols = np.argsort(grammar.label, kind="stable")
        self.first_symbol = np.searchsorted(grammar.label[self.symbols], np.arange(grammar.n_labels + 1))
        # Tag, class, word, and the probability of the word given both.
        self.columns: list[tuple[np.ndarray, ...]] = []

    def add(self, rules: "RuleLists") -> list[str]:
        """Add all rules; returns all words, classes among them."""
        self.add_cached(rules)
        tags_of = self.put_seen_tags()
        self.put_unseen_tags(tags_of)
        words = self.put_new_words()
        self.add_backing_off(rules)
        return words

    def add_backing_off(self, rules: "RuleLists") -> None:
        """A rule for every symbol of the tags in the columns."""
        tags, classes, words, values = (np.concatenate(column) for column in zip(*self.columns, strict=True))
        n_symbols = np.diff(self.first_symbol)[tags]
        of_rule = np.repeat(np.arange(len(tags)), n_symbols)
        place = np.arange(len(of_rule)) - np.repeat(np.cumsum(n_symbols) - n_symbols, n_symbols)
        symbols = self.symbols[self.first_symbol[tags][of_rule] + place]
        rules.add("lexical", self.of_class[symbols, classes[of_rule]] * values[of_rule], symbols, words[of_rule])

    def add_cached(self, rules: "RuleLists") -> None:
        """Words with the symbols that they were seen with: the part that is cached."""
        blocks, grammar = self.grammar.blocks, self.grammar
        numbers = np.flatnonzero(self.is_word)
        for option in range(2):
            symbols = grammar.number[2 * blocks["group"][numbers] + option]
            cells = blocks[f"first_{self.first_level}"][numbers, option]
            value = np.where(symbols >= 0, grammar.weights[self.first_level][cells], 0.0)
            rules.add("lexical", value, symbols, grammar.trees.rule_word[blocks["rule"][numbers]])

    def put_seen_tags(self) -> dict[tuple[int, int], list[int]]:
        """Words with the tags that they were seen with, the part that backs off; these tags by word and class."""
        trees, blocks = self.grammar.trees, self.grammar.blocks
        rule_class = self.grammar.words.rule_class
        word_cell = np.zeros(trees.n_rules, dtype=np.int64)
        word_cell[blocks["rule"][self.is_word]] = blocks["word_cell"][self.is_word]
        rules = np.flatnonzero(rule_class >= 0)
        columns = (trees.rule_label[rules], rule_class[rules], trees.rule_word[rules])
        self.columns.append((*columns, self.grammar.weights["word"][word_cell[rules]]))
        tags_of: dict[tuple[int, int], list[int]] = {}
        for tag, klass, word in zip(*(column.tolist() for column in columns), strict=True):
            tags_of.setdefault((word, klass), []).append(tag)
        return tags_of

    def put_unseen_tags(self, tags_of: dict[tuple[int, int], list[int]]) -> None:
        """Tags that a word was not seen with, if their expected share of its occurrences is at least the minimum."""
        trees, words = self.grammar.trees, self.grammar.words
        is_lexical = trees.rule_word >= 0
        n_seen = np.bincount(trees.rule_word[is_lexical], weights=trees.rule_count[is_lexical])
        expected = np.zeros_like(self.unseen)
        np.add.at(expected, self.grammar.label, self.of_class * self.grammar.symbol_frequency[:, None])
        if words.has_suffixes:
            add_unseen_tags(self.unseen, expected, words.class_word_base)
        expected *= self.unseen
        for (word, klass), seen in tags_of.items():
            is_new = expected[:, klass] >= SMALLEST_TAG_SHARE * n_seen[word]
            is_new[seen] = False
            tags = np.flatnonzero(is_new)
            self.columns.append((tags, np.full_like(tags, klass), np.full_like(tags, word), self.unseen[tags, klass]))

    def put_new_words(self) -> list[str]:
        """A class in the place of its new words; returns all words."""
        words = list(self.grammar.corpus.words)
        names = {name: number for number, name in enumerate(words)}
        tags, classes = np.nonzero(self.unseen > 0)
        number_of = np.full(len(self.grammar.words.classes), -1)
        for klass in dict.fromkeys(classes.tolist()):
            name = self.grammar.words.classes[klass]
            if name not in names:
                names[name] = len(words)
                words.append(name)
            number_of[klass] = names[name]
        self.columns.append((tags, classes, number_of[classes], self.unseen[tags, classes]))
        return words


def add_unseen_tags(unseen: np.ndarray, expected: np.ndarray, class_word_base: np.ndarray) -> None:
    """Add tags that a class was not seen with, if their expected share of its new words is at least the minimum.

    Parameters
    ----------
    unseen : ndarray, labels by classes
        The probability of a new word under a tag and a class; changed.
    expected : ndarray, labels by classes
        How many words of a class are expected under a tag.
    class_word_base : ndarray, one per class
        The probability of each word of a class where none was seen.
    """
    of_new = expected * np.where(unseen > 0, unseen, class_word_base)
    enough = of_new >= SMALLEST_TAG_SHARE * of_new.sum(axis=0)
    added = enough & (unseen == 0) & (of_new > 0)
    unseen[added] = np.broadcast_to(class_word_base, unseen.shape)[added]
