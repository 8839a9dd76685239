"""Small treebanks with subcategories, the split sampler over them, and comparisons with the oracle of ``sr.py``."""

from collections import Counter, defaultdict
from itertools import cycle, islice, product

import numpy as np
from nltk.tree import Tree
from reference import pyp
from reference.chart import BINARY, LEXICAL, UNARY
from reference.sr import Reference

from tsgkit.models._back_off import UNREFINED_ROOT
from tsgkit.models._srtsg import (
    RefinedGrammar,
    RuleMeans,
    Subcategories,
    Words,
    lexical_shares,
    make_sampler,
    raw_probabilities,
    refinements,
    split_levels,
)
from tsgkit.models._suffixes import ClassLevels
from tsgkit.models.rules import number_rules
from tsgkit.treebank import Binarization, FlatCorpus, Preparation, UnknownWords, load, prepare

BANKS = {
    # Labels recur below themselves, so that a change of one node changes its neighbours' rules to each other's.
    "chains": ["(TOP (X (X (X a))))", "(TOP (X (X b)))", "(TOP (X a))"],
    "branches": ["(TOP (X (X a) (X b)))", "(TOP (X (X a) (X a)))"],
    "labels": ["(S (N a) (V b))", "(S (N a) (V b))", "(S (N c) (V (V b)))"],
    "one tree": ["(TOP (X (Y (X a) (Y b)) (X c)))"],
    "words": ["(TOP (X a) (X b))", "(TOP (X c) (X a))", "(TOP (X b) (Y a))"],
    "repeated": ["(TOP (X a))"] * 8,
    "many words": [f"(TOP (X w{number}))" for number in range(700)],
}
N_CLASSES = 2
# Two levels of the classes of a label. That coarser ones join classes is tested by models/test_suffixes.py.
CLASS_LEVELS = ClassLevels(np.array([[0, 1], [0, 1]]), np.array([[1.0, 1.0], [0.4, 0.6]]))


class Setting:
    """A small treebank with groups, a base and parameters.

    Parameters
    ----------
    bank : str
    n_groups : int
        How many groups every label has but the root's; nodes take them in turn. With more than one, every third group
        has a single option, as have labels of `whole`.
    back_off : BackOff
    levels : int, optional
        How many of its levels are in use, P0 among them.
    classes : bool
        Words have classes: every other word is of the same.
    """

    def __init__(
        self, bank, *, back_off=UNREFINED_ROOT, levels=None, discount=(0.0,), n_groups=1, whole="", classes=False,
        base="frequency",
    ):  # fmt: skip
        self.corpus = FlatCorpus.from_trees(map(Tree.fromstring, BANKS[bank]))
        self.trees = trees = number_rules(self.corpus)
        root, n_labels = int(self.corpus.label[0]), trees.n_labels
        rule_class = np.full(trees.n_rules, -1, dtype=np.int32)
        self.words = Words([], rule_class, np.empty(0), ClassLevels.uniform(0))
        if classes:
            rule_class = np.where(trees.rule_word >= 0, trees.rule_word % N_CLASSES, -1).astype(np.int32)
            self.words = Words(["UNK", "UNK-s"], rule_class, np.array([0.2, 0.3]), CLASS_LEVELS)
        group_label, n_options, own = [], [], defaultdict(list)
        for label in range(n_labels):
            for _ in range(1 if label == root else n_groups):
                own[label].append(len(group_label))
                third = n_groups > 1 and len(group_label) % 3 == 2
                is_whole = third or label == root or self.corpus.labels[label] in whole.split()
                n_options.append(1 if is_whole else 2)
                group_label.append(label)
        in_turn = [cycle(numbers) for _, numbers in sorted(own.items())]
        self.groups = np.array([next(in_turn[label]) for label in trees.label.tolist()])
        self.subcategories = Subcategories(np.array(group_label, np.int32), np.array(n_options, np.uint8), n_labels)
        self.base, self.back_off = base, back_off.truncated(levels)
        n_pairs = (len(back_off.levels) + 2) * n_labels + len(self.words.levels.dish)
        strengths = islice(cycle([1.0, 0.4, 2.0]), n_pairs)
        self.parameters = np.array([list(islice(cycle(discount), n_pairs)), list(strengths)])

    def sampler(self, seed=1, bits=None):
        """A sampler with these parameters, seated."""
        sampler = self.empty_sampler(seed)
        sampler.start(self.random_bits(seed) if bits is None else bits)
        return sampler

    def empty_sampler(self, seed=1):
        sampler = make_sampler(
            self.trees, self.words, self.groups, self.subcategories, base=self.base, back_off=self.back_off, seed=seed
        )
        sampler.set_parameters(self.parameters)
        return sampler

    def random_bits(self, seed=1):
        bits = np.random.default_rng(seed).integers(0, 2, len(self.groups))
        return bits * (self.subcategories.n_options[self.groups] > 1)

    def reference(self, kind=Reference, **options):
        raw = raw_probabilities(self.trees, self.base, self.subcategories, bool(self.words.classes))
        parameters = {"parameters": self.parameters} if kind is Reference else {}
        return kind(
            self.trees,
            groups=self.groups.tolist(),
            group_label=self.subcategories.group_label.tolist(),
            n_options=self.subcategories.n_options.tolist(),
            rule_base=(raw / refinements(self.trees, self.subcategories)).tolist(),
            rule_class=self.words.rule_class.tolist(),
            lexical_share=lexical_shares(self.trees).tolist(),
            class_word_base=self.words.class_word_base.tolist(),
            class_levels=self.words.levels,
            **{"levels": split_levels(self.back_off, self.subcategories), **parameters, **options},
        )


class TreebankSetting(Setting):
    """Some real trees with classes, split twice."""

    def __init__(self):
        trees = list(islice(load("village", "dev"), 40))
        self.corpus = prepare(trees, binarization=Binarization("right", 0), unknown=UnknownWords("signature", 0))
        self.trees = number_rules(self.corpus)
        lexicon = Preparation.from_dict(self.corpus.settings["preparation"]).lexicon
        self.words = Words.of(self.corpus, self.trees, lexicon, suffixes=True)
        root = int(self.corpus.label[0])
        split = Subcategories.whole(self.trees.n_labels).split(root)
        self.subcategories = split.split(root)
        first = np.random.default_rng(1).integers(0, 2, len(self.trees.label))
        first *= split.n_options[self.trees.label] > 1
        self.groups = split.number[2 * self.trees.label + first]
        self.base, self.back_off = "frequency", UNREFINED_ROOT
        n_pairs = 4 * self.trees.n_labels + len(self.words.levels.dish)
        self.parameters = np.tile([[0.5], [1.0]], (1, n_pairs))


def mixed_sweeps(sampler, iterations):
    """All kinds of moves in turn."""
    trace = []
    for iteration in iterations:
        trace.append(sampler.tree_sweep(iteration, 1.0 + iteration % 2, batch=1 + iteration % 3))
        trace.append(sampler.type_sweep(iteration, 50))
        if iteration % 3 == 0:
            trace.append(sampler.type_sweep(iteration + 1000, 5, 2.0, onto_used=True))
        trace.append(sampler.resample_parameters(iteration, hyper=iteration % 4 > 0))
    return trace


def cell_names(sampler):
    """Of every kind, what each cell is: (restaurant, number of the restaurant, dish)."""
    names = {kind: {} for kind in sampler.kinds}
    columns = {name: values.tolist() for name, values in sampler.blocks().items()}
    restaurant_of = {kind: sampler.restaurant_of_cells(kind).tolist() for kind in sampler.kinds}
    for row in zip(*columns.values(), strict=True):
        block = dict(zip(columns, row, strict=True))
        n, group, label, klass = (block[name] for name in ("n_children", "group", "label", "word_class"))
        for own, left, right in product((0, 1), (0, 1) if n >= 1 else (0,), (0, 1) if n == 2 else (0,)):
            place = own << n | (left << 1 | right if n == 2 else left)
            symbols = (
                2 * block["left_group"] + left if n >= 1 else -1,
                2 * block["right_group"] + right if n > 1 else -1,
            )
            dish, symbol = (block["rule"], *symbols), 2 * group + own
            for kind in sampler.rule_kinds if klass < 0 else sampler.rule_kinds[:1]:
                cell = block[f"first_{kind}"][own] + (place & ((1 << n) - 1))
                names[kind][cell] = restaurant_of[kind][cell], restaurant_of[kind][cell], dish
            assert restaurant_of[sampler.kinds[0]][block[f"first_{sampler.kinds[0]}"][own]] == symbol
            if klass >= 0:
                names["word"][block["word_cell"]] = (label, klass), block["word_restaurant"], block["rule"]
                names["class"][block["class_first"] + own] = symbol, symbol, klass
    for kind, cells in sampler.label_class_cells(sampler.blocks()).items():
        n_dishes = sampler.n_cells(kind) // sampler.n_labels
        assert set(cells.tolist()) <= set(range(-1, sampler.n_cells(kind)))
        names[kind] = {
            cell: (cell // n_dishes, cell // n_dishes, cell % n_dishes) for cell in range(sampler.n_cells(kind))
        }
    for kind, cells in names.items():
        assert sorted(cells) == list(range(sampler.n_cells(kind)))
        assert all(restaurant_of[kind][cell] == number for cell, (_, number, _) in cells.items())
    return names


def seating_of(sampler):
    """The seating as the reference has it."""
    names, tables = cell_names(sampler), sampler.seating()
    seating = {kind: defaultdict(dict) for kind in names}
    for kind, cells in names.items():
        for cell, _, size, *_ in tables[kind].tolist():
            place, _, dish = cells[cell]
            seating[kind][place][dish] = (*seating[kind][place].get(dish, ()), size)
    return seating


def check(setting, sampler):
    """What the sampler keeps up to date equals what its bits say."""
    reference = setting.reference(parameters=sampler.parameters())
    seating, names = seating_of(sampler), cell_names(sampler)
    wanted = reference.customers(sampler.bits().tolist(), seating)
    tables = sampler.seating()
    seated = sampler.customers(sampler.seats(), tables)
    for kind in sampler.kinds:
        found = {place: {dish: sum(own) for dish, own in dishes.items()} for place, dishes in seating[kind].items()}
        assert found == wanted[kind]
        sizes_by_number = Counter(map(tuple, seated[kind].tolist()))
        assert sizes_by_number == {(cell, number): size for cell, number, size, *_ in tables[kind].tolist()}
        customers, n_tables = sampler.cells(kind)
        totals = np.zeros((2, sampler.restaurants(kind).shape[1]))
        for cell, (place, number, dish) in names[kind].items():
            sizes = seating[kind].get(place, {}).get(dish, ())
            assert (customers[cell], n_tables[cell]) == (sum(sizes), len(sizes))
            totals[:, number] += sum(sizes), len(sizes)
        assert sampler.restaurants(kind)[:2].tolist() == totals.tolist()
    return reference, seating


def state_of(sampler):
    seating = {kind: rows.tolist() for kind, rows in sampler.seating().items()}
    restaurants = {kind: sampler.restaurants(kind).tolist() for kind in sampler.kinds}
    nodes = sampler.bits().tolist(), sampler.seats().tolist()
    return *nodes, seating, restaurants, sampler.parameters().tolist(), sampler.n_options().tolist()


# ---- exact posteriors ------------------------------------------------------------------------------------


def trees_only(sampler, iteration):
    sampler.tree_sweep(iteration)


def in_batches(sampler, iteration):
    sampler.tree_sweep(iteration, batch=2 + iteration % 2, threads=1 + iteration % 3)


def with_types(sampler, iteration):
    """Many moves of all occurrences to few of trees; alone they do not reach every state."""
    sampler.type_sweep(iteration, 25)
    if iteration % 3 == 0:
        sampler.tree_sweep(iteration)


def samples(setting, move, *, n=6000, thin=6, seed=1):
    """Run a sampler; the bits with the number of tables of every kind, one after the other."""
    sampler, kinds = setting.sampler(seed), setting.reference().kinds
    states = []
    for sample in range(n):
        for iteration in range(sample * thin, (sample + 1) * thin):
            move(sampler, iteration)
        tables = [int(sampler.restaurants(kind)[1].sum()) for kind in kinds]
        states.append((tuple(sampler.bits().tolist()), *tables))
    return states


def nameless(setting, bits):
    """The bits when the first node of every group has 0.

    The two options of a group are the same but for their names, which change so slowly that the frequencies of the bits
    themselves are not those of independent draws.
    """
    first = {}
    return tuple(bit ^ first.setdefault(group, bit) for group, bit in zip(setting.groups.tolist(), bits, strict=True))


def smallest_p_value(setting, states, reference, *, bits_only=False):
    """Of the frequencies of the bits without names, and of the numbers of tables of every kind."""
    posterior = reference.posterior()
    p_values = []
    for place in [0] if bits_only else range(1 + len(reference.kinds)):
        seen, expected = Counter(), Counter()
        for counts, weights in ((seen, Counter(states)), (expected, posterior)):
            for state, weight in weights.items():
                counts[nameless(setting, state[0]) if place == 0 else state[place]] += weight
        if len(expected) > 1:
            p_values.append(pyp.chi_square(seen, expected))
    return min(p_values)


def largest_deviate(setting, states):
    """How far the share of each name at the first node of a group is from a half, in standard errors of the chain."""
    groups = setting.groups.tolist()
    first = [groups.index(group) for group in np.flatnonzero(setting.subcategories.n_options == 2).tolist()]
    return max(abs(pyp.deviate([state[0][node] for state in states], 0.5)) for node in first)


# ---- grammars --------------------------------------------------------------------------------------------


def refined(setting, sampler):
    means = RuleMeans()
    means.add(sampler, setting.words)
    symbols = 2 * setting.groups + sampler.bits()
    return RefinedGrammar(
        setting.corpus, setting.trees, setting.words, setting.subcategories, sampler.blocks(), means.mean(),
        np.bincount(symbols, minlength=2 * len(setting.subcategories.group_label)),
        raw_probabilities(setting.trees, setting.base, setting.subcategories, bool(setting.words.classes)),
        split_levels(setting.back_off, setting.subcategories),
    )  # fmt: skip


def rows_of(setting, tree):
    """The rows of a tree of the treebank, and its words."""
    trees, words, rows = setting.trees, [], {}

    def visit(node):
        start, children = len(words), [child for child in (trees.left[node], trees.right[node]) if child >= 0]
        rows[node] = None
        if not children:
            words.append(int(trees.rule_word[trees.rule[node]]))
        for child in children:
            visit(child)
        rows[node] = int(trees.label[node]), start, len(words), (LEXICAL, UNARY, BINARY)[len(children)]

    visit(int(trees.tree_start[tree]))
    return np.array(list(rows.values()), dtype=np.int32), words


def sum_of_refinements(setting, reference, seating, tree):
    """The probability of a tree whatever its subcategories: from the leaves upwards, all symbols of every label."""
    trees = setting.trees
    symbols_of = defaultdict(list)
    for symbol in np.flatnonzero(setting.subcategories.exists).tolist():
        symbols_of[reference.label(symbol)].append(symbol)

    def inside(node):
        below = [
            inside(child) if child >= 0 else {-1: 1.0} for child in (int(trees.left[node]), int(trees.right[node]))
        ]
        return {
            symbol: sum(
                reference.predictive(seating, symbol, int(trees.rule[node]), left, right)
                * below[0][left]
                * below[1][right]
                for left, right in product(*below)
            )
            for symbol in symbols_of[int(trees.label[node])]
        }

    [value] = inside(int(trees.tree_start[tree])).values()
    return value


def sums_of(grammar):
    """The sum of the weights of all rules of every symbol."""
    sums = np.zeros(grammar.n_symbols)
    for kind in ("binary", "unary", "bridge", "lexical"):
        np.add.at(sums, getattr(grammar, kind)[:, 0], getattr(grammar, f"{kind}_weight"))
    return sums
