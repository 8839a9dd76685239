"""The sampler of sites on refined trees against exact posteriors, its own counts, and the grammar it exports."""

from collections import Counter, defaultdict

import numpy as np
import pytest
from nltk.tree import Tree
from reference import pyp
from reference.sr_sites import Frozen, Mutated, Reference, tree_weight

from tsgkit.models._back_off import UNREFINED_ROOT
from tsgkit.models._srtsg import Subcategories, Words, lexical_shares, raw_probabilities, refinements
from tsgkit.models._srtsg_means import SiteMeans
from tsgkit.models._srtsg_sites import SiteGrammar, make_site_sampler, site_levels
from tsgkit.models._suffixes import ClassLevels
from tsgkit.models.rules import number_rules
from tsgkit.treebank import FlatCorpus

# Without and with classes.
CLASS_LEVELS = (
    ClassLevels.uniform(0),
    ClassLevels(np.array([[0, 1], [0, 1]]), np.array([[1.0, 1.0], [0.3, 0.7]])),
)

# Labels recur below themselves, so that fragments and their rules find each other in the same restaurants.
BANKS = {
    "ladder": ["(TOP (X (X (X (X a)))))"],
    "ladders": ["(TOP (X (X (X a))))", "(TOP (X (X a)))"],
    "chains": ["(TOP (X (X (X a))))", "(TOP (X (X a) (X a)))"],
    "short": ["(TOP (X (X a)))", "(TOP (X (X b)))"],
    "distinct": ["(TOP (X (Y a)))", "(TOP (X (Y a)))"],
    "labels": ["(S (NP (D a) (N b)) (V c))", "(S (NP (D a) (N b)) (V c))"],
    "copies": ["(TOP (X a))"] * 3,
    "repeated": ["(TOP (X (X a)))"] * 8,
}


class Case:
    """A sampler with fixed parameters, and the model it should sample from."""

    def __init__(self, bank, *, levels=3, discount=0.4, classes=False, seed=1, mistake=""):
        corpus = self.corpus = FlatCorpus.from_trees(map(Tree.fromstring, BANKS[bank]))
        trees = number_rules(corpus)
        self.trees, n_labels = trees, trees.n_labels
        n_options = np.where(np.arange(n_labels) == trees.label[0], 1, 2).astype(np.uint8)
        self.subcategories = Subcategories(np.arange(n_labels, dtype=np.int32), n_options, n_labels)
        label = self.subcategories.label
        first = np.searchsorted(label, trees.label)
        self.symbols = first + np.arange(len(first)) % n_options[trees.label]
        rule_class = np.where(trees.rule_word >= 0, trees.rule_word % 2, -1) if classes else np.full(trees.n_rules, -1)
        self.words = Words(
            ["C0", "C1"] if classes else [],
            rule_class.astype(np.int32),
            np.array([0.5, 0.3])[: 2 * classes],
            CLASS_LEVELS[classes],
        )
        self.levels = site_levels(UNREFINED_ROOT.truncated(levels), self.subcategories)
        self.sampler = make_site_sampler(
            trees, self.words, self.subcategories, self.levels, base="frequency", seed=seed
        )
        n_class_levels = len(CLASS_LEVELS[classes].dish)
        n_pairs = 4 * n_labels + n_class_levels + len(label)
        pairs = np.array([[discount * (1 + place % 3) / 2, 0.5 + place % 4] for place in range(n_pairs)])
        self.sampler.set_parameters(pairs.T)
        stops = 0.3 + 0.1 * (np.arange(n_labels) % 4)
        self.sampler.set_stops(stops)

        def parameters(name):
            kind, number = name[:2]
            if kind == "G":
                return tuple(pairs[4 * n_labels + n_class_levels + number])
            if kind == "JX":
                return tuple(pairs[4 * n_labels + name[2]])
            return tuple(pairs["HIJW".index(kind) * n_labels + (label[number] if kind in ("H", "J") else number)])

        raw = raw_probabilities(trees, "frequency", self.subcategories, classes)
        self.reference = (Mutated if mistake else Reference)(
            trees,
            label.tolist(),
            parameters=parameters,
            stop=stops.tolist(),
            levels=levels,
            rule_base=(raw / refinements(trees, self.subcategories)).tolist(),
            rule_class=rule_class.tolist(),
            lexical_share=lexical_shares(trees).tolist(),
            class_word_base=self.words.class_word_base.tolist(),
            class_levels=self.words.levels,
        )

        self.reference.mistake = mistake

    def start(self):
        self.sampler.start(self.symbols)
        return self

    def outcome(self, joint):
        """Sites, symbols of sites, and numbers of tables, as the reference has them."""
        sites, symbols = self.sampler.sites(), self.sampler.symbols()
        n_tables = int(self.sampler.restaurants("dish")[1].sum())
        n_lower = int(sum(self.sampler.restaurants(kind)[1].sum() for kind in self.sampler.kinds))
        shown = np.where(sites, symbols, -1) if joint else symbols
        return tuple(sites.tolist()), tuple(shown.tolist()), n_tables, n_lower

    def frequencies(self, move, n, thin, joint=False):
        seen = Counter()
        for iteration in range(n * thin):
            MOVES[move](self.sampler, iteration)
            if iteration % thin == thin - 1:
                seen[self.outcome(joint)] += 1
        return seen


MOVES = {
    "blocked": lambda sampler, iteration: sampler.blocked_sweep(iteration),
    "joint": lambda sampler, iteration: sampler.blocked_sweep(iteration, joint=True),
    "batches": lambda sampler, iteration: sampler.blocked_sweep(iteration, batch=3, threads=2),
    "local": lambda sampler, iteration: sampler.local_sweep(iteration),
    "redraw": lambda sampler, iteration: sampler.redraw(iteration, [iteration % 2]),
    "types": lambda sampler, iteration: with_types(sampler, iteration, joint=False),
    "joint types": lambda sampler, iteration: with_types(sampler, iteration, joint=True),
}


def with_types(sampler, iteration, joint):
    """Moves of types do not reach all derivations by themselves: most moves are such, and one in a few is another."""
    if iteration % 2 == 0:
        sampler.blocked_sweep(iteration, joint=joint)
    sampler.type_sweep(iteration, 20, joint=joint)


def whole(*outcome):
    return outcome


POSTERIORS = [
    ("ladder", {}),
    ("ladder", {"levels": 2}),
    ("ladder", {"levels": 1}),
    ("ladders", {"discount": 0.0}),
    ("short", {"classes": True}),
    ("short", {"classes": True, "levels": 1}),
    ("chains", {"levels": 2}),
    ("labels", {}),
    ("copies", {}),
]
# With subcategories that move too, the others have too many states to enumerate.
ENUMERABLE = ("ladder", "short", "copies")


@pytest.mark.statistics
@pytest.mark.parametrize(
    ("bank", "options", "move"),
    [
        (bank, options, move)
        for bank, options in POSTERIORS
        for move in ("blocked", "joint", "local", "types", "joint types")
        if "joint" not in move or bank in ENUMERABLE
    ],
)
def test_posterior(bank, options, move):
    case = Case(bank, **options).start()
    expected = case.reference.posterior(case.symbols.tolist(), "joint" in move, whole)
    seen = case.frequencies(move, n=4000, thin=4, joint="joint" in move)
    assert pyp.chi_square(seen, expected) > 1e-3


@pytest.mark.statistics
@pytest.mark.parametrize(("stop", "kind"), [(0.1, "refined"), (0.9, "dish")])
@pytest.mark.parametrize("move", ["blocked", "batches", "joint", "local"])
def test_tables_have_the_sizes_that_they_should(move, stop, kind):
    """Of the customers and tables of a dish, the sizes of its tables depend on the discount alone."""
    assert_sizes(move, stop, kind, discount=0.7, n_sweeps=20000)


@pytest.mark.slow
@pytest.mark.statistics
def test_tables_of_batches_have_the_sizes_that_they_should():
    """Longer: a wrong choice among tables of the same size changes the frequencies of sizes by a few percent."""
    assert_sizes("batches", 0.9, "dish", discount=0.3, n_sweeps=120_000)


def assert_sizes(move, stop, kind, *, discount, n_sweeps):
    """Compare the sizes of the tables of a kind of dishes with the exact ones."""
    case = Case("repeated")
    sampler = case.sampler
    sampler.set_parameters(np.vstack([np.full(sampler.n_pairs, discount), sampler.parameters()[1]]))
    sampler.set_stops(np.full(sampler.n_labels, stop))
    sampler.start(np.searchsorted(case.subcategories.label, case.trees.label))
    seen = []
    for iteration in range(n_sweeps):
        MOVES[move](sampler, iteration)
        if iteration % 5 == 0:
            sizes = defaultdict(tuple)
            for dish, size, *n_tables in sampler.seating()[kind].tolist():
                sizes[dish] += (size,) * (n_tables[0] if n_tables else 1)
            seen += sizes.values()
    p_values = list(pyp.p_values_of_sizes(seen, discount, 100))
    assert len(p_values) > 1
    assert min(p_values) > 1e-4


@pytest.mark.statistics
@pytest.mark.parametrize("options", [{}, {"levels": 2}, {"levels": 1}, {"classes": True}, {"discount": 0.0}], ids=str)
def test_trees_are_drawn_from_the_grammar_of_the_others(options):
    """Where no label occurs twice in a tree, the frozen grammar is the predictive distribution, so it is Gibbs."""
    case = Case("distinct", **options).start()
    expected = case.reference.posterior(case.symbols.tolist(), True, whole)
    seen = case.frequencies("redraw", n=4000, thin=6, joint=True)
    assert pyp.chi_square(seen, expected) > 1e-3
    assert case.sampler.counts_agree()
    case.sampler.empty()
    assert not any(case.sampler.restaurants(kind)[:2].any() for kind in ("dish", *case.sampler.kinds))


@pytest.mark.statistics
@pytest.mark.parametrize("mistake", ["blind rules", "one refinement", "rootless"])
def test_mistakes_are_noticed(mistake):
    case = Case("ladders", mistake=mistake, discount=0.2).start()
    wrong = case.reference.posterior(case.symbols.tolist(), False, lambda sites, *_: sites)
    case.reference.mistake = ""
    right = case.reference.posterior(case.symbols.tolist(), False, lambda sites, *_: sites)
    seen = Counter()
    for (sites, *_), n in case.frequencies("blocked", n=4000, thin=3).items():
        seen[sites] += n
    assert pyp.chi_square(seen, right) > 1e-3
    assert pyp.chi_square(seen, wrong) < 1e-6


# ---- the grammar ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("levels", [1, 2, 3])
@pytest.mark.parametrize(("bank", "classes"), [("chains", False), ("labels", False), ("short", True), ("labels", True)])
def test_trees_weigh_the_same_under_restaurants_and_grammar(bank, classes, levels):
    case = Case(bank, levels=levels, classes=classes).start()
    for iteration in range(5):
        case.sampler.blocked_sweep(iteration, joint=iteration % 2 == 0)
    means = SiteMeans()
    for _ in range(2):  # the mean of a sample with itself
        means.add(case.sampler, case.words, case.levels)
        means = SiteMeans.restored(means.state(), case.sampler, case.words, case.levels)
    rules = SiteGrammar(case.corpus, case.trees, case.words, case.subcategories, means, "frequency", case.levels)
    grammar = rules.grammar()
    roots = case.trees.tree_start[:-1].tolist()
    weights = [tree_weight(grammar, case.trees, root) for root in roots]
    assert weights == pytest.approx(Frozen(case.reference, case.sampler).trees(), rel=1e-9)
    # Coarser grammars make the same trees.
    for ancestor in (np.arange(len(case.subcategories.label)), case.subcategories.parent):
        _, coarse = rules.coarse_grammar(case.sampler.symbols(), ancestor)
        assert all(tree_weight(coarse, case.trees, root) > 0 for root in roots)
        symbol_map = rules.symbol_map(grammar, ancestor)
        known = symbol_map >= 0
        assert (coarse.label[symbol_map[known]] == grammar.label[known]).all()


# ---- counts -------------------------------------------------------------------------------------------------


def mixed_sweeps(sampler, iterations, **options):
    trace = []
    for iteration in iterations:
        for move in MOVES.values():
            move(sampler, iteration)
            assert sampler.counts_agree()
        trace.append(sampler.resample_parameters(iteration, **options))
    return trace


def everything(sampler):
    parts = [sampler.symbols(), sampler.sites(), sampler.parameters(), sampler.stops(), sampler.fragments()]
    return [part.tolist() for part in (*parts, sampler.dishes(), *sampler.seating().values())]


@pytest.mark.parametrize("levels", [1, 2, 3])
def test_counts_are_those_of_the_derivations(levels):
    case = Case("labels", levels=levels, classes=True).start()
    sampler = case.sampler
    mixed_sweeps(sampler, range(40))
    counts = Frozen(case.reference, sampler).counts
    sites, symbols = sampler.sites().tolist(), sampler.symbols().tolist()
    orders = Counter(case.reference.fragments(sites, symbols).values())
    assert {dish: n for (name, dish), (n, _) in counts.items() if name[0] == "G"} == orders
    assert sampler.counts() == (sum(sites), len(orders), len(sampler.cells("rule")))
    sampler.empty()
    for kind in ("dish", *case.sampler.kinds):
        assert not sampler.restaurants(kind)[:2].any()
    assert not len(sampler.cells("rule"))
    assert not len(sampler.cells("base"))
    sampler.start(case.symbols)
    assert sampler.counts_agree()


@pytest.mark.parametrize("levels", [1, 2, 3])
@pytest.mark.parametrize("classes", [False, True])
def test_log_joint_is_that_of_the_definition(levels, classes):
    case = Case("labels", levels=levels, classes=classes).start()
    for iteration in range(5):
        mixed_sweeps(case.sampler, [iteration], hyper=False, stops=False)
        expected = Frozen(case.reference, case.sampler).log_joint(case.sampler.seating())
        assert case.sampler.log_joint() == pytest.approx(expected, abs=1e-9)


def test_going_on_from_what_was_saved():
    case, other = Case("chains").start(), Case("chains")
    mixed_sweeps(case.sampler, range(10))
    other.sampler.set_parameters(case.sampler.parameters())
    other.sampler.set_stops(case.sampler.stops())
    other.sampler.restore(case.sampler.symbols(), case.sampler.sites(), case.sampler.seating())
    assert everything(other.sampler) == everything(case.sampler)
    traces = [mixed_sweeps(each.sampler, range(10, 20)) for each in (case, other)]
    assert traces[0] == traces[1]
    assert everything(other.sampler) == everything(case.sampler)


# ---- parameters ---------------------------------------------------------------------------------------------


def test_stopping_is_drawn_from_the_dishes_of_tables():
    case = Case("labels").start()
    mixed_sweeps(case.sampler, range(10), hyper=False, stops=False)
    n_labels = case.trees.n_labels
    numbers = np.zeros((2, n_labels))  # of frontiers and internal nodes

    def count(part, n):
        rule, *below = part
        for label, code in zip(case.reference.rule_children[rule], below, strict=True):
            if code is not None:
                numbers[int(isinstance(code, tuple)), label] += n
            if isinstance(code, tuple):
                count(code, n)

    for (name, dish), (_, n_tables) in Frozen(case.reference, case.sampler).counts.items():
        if name[0] == "G":
            count(dish[1:], n_tables)
    draws = []
    for iteration in range(4000):
        case.sampler.resample_parameters(iteration, hyper=False)
        draws.append(case.sampler.stops())
    a, b = numbers + 1
    spread = np.sqrt(a * b / (a + b) ** 2 / (a + b + 1))
    assert (abs(np.mean(draws, axis=0) - a / (a + b)) < 4 * spread / np.sqrt(4000)).all()
    assert np.std(draws, axis=0) == pytest.approx(spread, rel=0.1)


def test_which_restaurants_share_parameters():
    case = Case("labels", classes=True).start()
    mixed_sweeps(case.sampler, range(3))
    label = case.subcategories.label
    word_label = np.zeros(case.sampler.restaurants("word").shape[1], dtype=int)
    restaurant_of = case.sampler.word_restaurants()
    word_label[restaurant_of[restaurant_of >= 0]] = case.trees.rule_label[restaurant_of >= 0]
    groups = {
        "dish": np.arange(len(label)),
        "rule": label,
        "base": np.arange(case.trees.n_labels),
        "class": label,
        "label_class": np.zeros(case.trees.n_labels, dtype=int),
        "label_class_2": np.zeros(case.trees.n_labels, dtype=int),
        "word": word_label,
    }
    for kind, group in groups.items():
        pairs = case.sampler.restaurants(kind)[2:].T
        _, first, place = np.unique(group, return_index=True, return_inverse=True)
        assert (pairs == pairs[first][place]).all()
        assert len(np.unique(pairs, axis=0)) == len(first)
    before = case.sampler.parameters()
    case.sampler.set_parameters(before)
    assert (case.sampler.parameters() == before).all()


# ---- what is refused ------------------------------------------------------------------------------------------


def test_calls_that_do_not_fit_are_refused():
    case = Case("short")
    sampler, symbols = case.sampler, case.symbols
    for call in (sampler.empty, lambda: sampler.local_sweep(1), lambda: sampler.blocked_sweep(1)):
        with pytest.raises(ValueError, match="no trees are seated"):
            call()
    sites = np.ones(len(symbols))
    for states, message in (
        ((symbols[1:],), "symbol is out of range"),
        ((symbols + 100,), "symbol is out of range"),
        ((np.zeros_like(symbols),), "another label"),
        ((symbols, sites[1:]), "do not fit"),
        ((symbols, sites * 2), "do not fit"),
        ((symbols, sites * 0), "not a substitution site"),
    ):
        with pytest.raises(ValueError, match=message):
            sampler.start(*states)
    for value in (0.0, 1.0, float("nan")):
        with pytest.raises(ValueError, match="stopping"):
            sampler.set_stops(value)
    pairs = sampler.parameters()
    for broken in (pairs[:, 1:], pairs + np.array([[1], [0]]), pairs * [[1], [0]], pairs * float("nan")):
        with pytest.raises(ValueError, match=r"discount|strength"):
            sampler.set_parameters(broken)
    with pytest.raises(ValueError, match="discount"):
        sampler.take_parameters(pairs)
    sampler.start(symbols)
    with pytest.raises(ValueError, match="seated already"):
        sampler.start(symbols)
