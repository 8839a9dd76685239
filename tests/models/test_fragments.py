"""Fragments: their notation there and back, and a model's fragments against a recount from its sites."""

import copy
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.tree import Tree
from strategies import symbols

from tsgkit._archive import read_archive, write_archive
from tsgkit.errors import ArchiveError, TreebankError, TsgkitError, UsageError
from tsgkit.grammar._weighted import GrammarError, WeightedGrammar
from tsgkit.inference._training import Training
from tsgkit.inference._tsg import TsgSettings
from tsgkit.inference.entry import fragments_of
from tsgkit.models._cfg import cfg_model
from tsgkit.models._derivations import cut, node_states
from tsgkit.models._model import KIND, VERSION, Model
from tsgkit.treebank import Binarization, UnknownWords, load, prepare
from tsgkit.treebank._binarize import undo_label
from tsgkit.treebank._fragments import canonical, format_fragment, n_rules, read_fragment
from tsgkit.treebank._trees import preorder, same_tree, words

# ---- notation --------------------------------------------------------------------------------------------

parts = st.recursive(
    st.builds(Tree, symbols, st.lists(symbols, max_size=1)),
    lambda children: st.builds(Tree, symbols, st.lists(children, max_size=4)),
    max_leaves=12,
)
roots = st.one_of(st.lists(parts, min_size=1, max_size=4), st.lists(symbols, min_size=1, max_size=1))
fragments = st.builds(Tree, symbols, roots)


@given(fragments)
def test_there_and_back(fragment):
    brackets = format_fragment(fragment)
    assert same_tree(read_fragment(brackets), fragment)
    assert format_fragment(read_fragment(brackets)) == brackets
    assert n_rules(brackets) == sum(len(node) > 0 for node in preorder(fragment))
    spread = brackets.replace("(", " \n\t(\r").replace(")", "\f )\n")
    assert canonical(spread) == brackets


def test_the_notation():
    brackets = "(S (NP ) (VP (VBD said) (SBAR )))"
    fragment = read_fragment(brackets)
    assert fragment == Tree("S", [Tree("NP", []), Tree("VP", [Tree("VBD", ["said"]), Tree("SBAR", [])])])
    assert format_fragment(fragment) == brackets
    assert n_rules(brackets) == 3
    assert canonical("(S(NP)( VP (VBD said)(SBAR  )) )") == brackets
    assert format_fragment(Tree("NP", [Tree("-LRB-", ["("]), Tree("NN", [])])) == "(NP (-LRB- -LRB-) (NN ))"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "one fragment is wanted, here are 0"),
        ("  ", "one fragment is wanted, here are 0"),
        ("NP", "1:1: stray token: 'NP' is outside"),
        ("(NP )", r"1:5: empty node: \(NP \)"),
        ("(NP)", r"1:4: empty node: \(NP \)"),
        ("()", "1:2: empty node"),
        ("((NP (DT )))", "1:1: missing label"),
        ("(NP (DT )", "1:1: unbalanced brackets"),
        ("(NP (DT )))", r"1:11: unbalanced brackets: this '\)' closes nothing"),
        ("(NP (DT the) NN)", "1:14: stray token: 'NN' is not alone"),
        ("(NP the (NN ))", "1:9: stray token: 'the' is beside"),
        ("(NP (DT the dog))", "1:13: stray token: 'dog' is not alone"),
        ("(NP (DT )) (NN dog)", "1:12: two roots"),
        ("(NP (DT ))\n(NN dog)", "one fragment is wanted, here are 2"),
        ("(NP (DT ) ( ))", "1:11: missing label"),
        ("(NP\n (DT ) x)", "2:8: stray token: 'x'"),
    ],
)
def test_what_is_no_fragment(text, problem):
    with pytest.raises(TreebankError, match=problem):
        read_fragment(text)


def test_errors_name_their_source():
    with pytest.raises(TreebankError, match=r"list\.txt:1:5: empty node"):
        read_fragment("(NP )", "list.txt")


@pytest.mark.parametrize(
    ("tree", "problem"),
    [
        (Tree("NP", []), r"\(NP \) is no fragment"),
        (Tree("NP", ["a", "b"]), "not alone under 'NP'"),
        (Tree("NP", [Tree("DT", []), "b"]), "'b' is not alone under 'NP'"),
        (Tree("", ["a"]), "label ''"),
        (Tree("NP", ["a b"]), "word 'a b' cannot be written"),
        (Tree("N P", ["a"]), "label 'N P' cannot be written"),
    ],
)
def test_what_cannot_be_written(tree, problem):
    with pytest.raises(TreebankError, match=problem):
        format_fragment(tree)


def test_deep_fragments():
    depth = 20_000
    brackets = "(A " * depth + "(B )" + ")" * depth
    assert n_rules(canonical(brackets)) == depth


# ---- the fragments of a model ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def training():
    corpus = prepare(load(split="dev"), binarization=Binarization("right", 0, 2), unknown=UnknownWords())
    trained = Training(corpus, TsgSettings(iterations=10, average=1))
    trained.start()
    for iteration in range(1, 11):
        trained.iterate(iteration)
    return trained


@pytest.fixture(scope="module")
def model(training):
    return training.model()


@pytest.fixture(scope="module")
def table(model):
    return fragments_of(model)


def recounted(training):
    """The fragments that the sites cut the training trees into, with their places ``(tree, start, end)``."""
    sites, starts = training.active.sampler.sites(), training.corpus.tree_start.tolist()
    places = {}
    for number, tree in enumerate(training.corpus.trees(original_words=False)):
        nodes = list(preorder(tree))  # in the order of the corpus
        is_site = dict(zip(map(id, nodes), sites[starts[number] : starts[number + 1]].tolist(), strict=True))

        def below(node, is_top, is_site=is_site):
            if not is_top and is_site[id(node)]:
                return Tree(node.label(), [])
            return Tree(node.label(), [below(c, False) if isinstance(c, Tree) else c for c in node])

        before = 0
        for node in nodes:
            if is_site[id(node)]:
                brackets = format_fragment(below(node, True))
                places.setdefault(brackets, []).append((number, before, before + len(words(node))))
            before += len(node) == 1 and isinstance(node[0], str)
    return places


def test_counts_are_those_of_the_sites(training, table):
    places = recounted(training)
    assert table.count_of == {brackets: len(each) for brackets, each in places.items()}
    assert sum(table.count_of.values()) == training.active.sampler.sites().sum()
    _, customers, tables, _, _ = training.active.sampler.seating()
    assert (table.counts.tolist(), table.tables.tolist()) == (customers.tolist(), tables.tolist())
    sentences = list(training.corpus.sentences())
    for number in table.select():
        fragment, example = table.fragment(number), table.example(number)
        assert (example.tree, example.start, example.end) == places[fragment.brackets][0]
        assert example.words == sentences[example.tree]
        assert fragment.size == n_rules(fragment.brackets) == table.sizes[number]
        assert fragment.count == len(places[fragment.brackets])
        assert 1 <= fragment.tables <= fragment.count
        if not any(len(node) == 0 for node in preorder(fragment.tree)):  # no frontier: the words are all there
            assert len(fragment.words) == example.end - example.start


def test_example_sentence(table):
    number = next(n for n in table.select() if 0 < table.example(n).start < table.example(n).end - 1)
    example = table.example(number)
    marked = example.marked()
    assert marked.replace("[", "").replace("]", "") == " ".join(example.words)
    inside = marked[marked.index("[") + 1 : marked.index("]")]
    assert inside.split(" ") == example.words[example.start : example.end]


def test_selection(table):
    every = [table.fragment(number) for number in table.select()]
    assert len(every) == len({fragment.brackets for fragment in every}) == len(table.count_of)

    def labels(fragment):
        found = {node.label() for node in preorder(fragment.tree)}
        return found | {undo_label(label) for label in found}

    for wanted, fits in (
        ({"root": "NP"}, lambda each: undo_label(each.root) == "NP"),
        ({"root": "NP^S"}, lambda each: each.root == "NP^S"),
        ({"root": "@NP^S"}, lambda each: each.root == "@NP^S"),
        ({"contains": "the"}, lambda each: "the" in each.words),
        ({"contains": "PP"}, lambda each: "PP" in labels(each)),
        ({"contains": "("}, lambda each: "-LRB-" in each.words),
        ({"min_count": 5}, lambda each: each.count >= 5),
        ({"min_size": 3}, lambda each: each.size >= 3),
        ({"min_size": 2, "contains": "VBD", "root": "VP"}, None),
        ({"contains": "no such thing"}, lambda each: False),
    ):
        chosen = {table.fragment(number).brackets for number in table.select(**wanted)}
        if fits is None:
            assert chosen
            continue
        assert chosen == {each.brackets for each in every if fits(each)}, wanted


@pytest.mark.parametrize(
    ("sort", "key"),
    [
        ("count", lambda each: (-each.count, -each.size)),
        ("size", lambda each: (-each.size, -each.count)),
        ("root", lambda each: (each.root, -each.count, -each.size)),
    ],
)
def test_order(table, sort, key):
    keys = [key(table.fragment(number)) for number in table.select(sort=sort)]
    assert keys == sorted(keys)
    with pytest.raises(UsageError, match="sort 'x': must be one of count, size, root"):
        table.select(sort="x")


def test_histogram(table):
    numbers = table.select()
    sizes = Counter(table.fragment(number).size for number in numbers)
    histogram = table.size_histogram(numbers)
    assert [(size, types) for size, types, _ in histogram] == sorted(sizes.items())
    assert sum(tokens for *_, tokens in histogram) == table.counts.sum()
    assert table.size_histogram([]) == []


def test_rules_of_a_cfg(training):
    cfg = cfg_model(training.corpus)
    table = fragments_of(cfg)
    grammar = cfg.grammar
    assert (table.measure, len(table.select())) == ("weight", grammar.n_rules)
    assert set(table.sizes.tolist()) == {1}
    totals = Counter()
    for number in table.select():
        fragment = table.fragment(number)
        assert n_rules(fragment.brackets) == 1
        totals[fragment.root] += fragment.count
    assert all(total == pytest.approx(1) for total in totals.values())
    assert table.fragment(0).tables is None
    with pytest.raises(UsageError, match="does not keep its training trees"):
        table.example(0)


def test_other_models(model):
    other = copy.copy(model)
    other.corpus = None
    with pytest.raises(UsageError, match="does not keep its training trees"):
        fragments_of(other)
    other.kind = "other"
    with pytest.raises(UsageError, match="no model 'other' is installed: install the package that defines it"):
        fragments_of(other)
    other.info = {"package": "some-package"}
    with pytest.raises(UsageError, match="install the package some-package, or train one of cfg, tsg"):
        fragments_of(other)


@pytest.mark.parametrize(
    ("name", "place", "value", "problem"),
    [
        ("fragments", (0, 0), -1, "a rule out of range"),
        ("fragments", (0, 0), 10**6, "a rule out of range"),
        ("fragments", (0, 1), 0, "a part does not come before"),
        ("fragments", (0, 2), -2, "a part does not come before"),
        ("fragments", (-1, 1), 0, "another label than its rule wants"),
        ("dishes", 0, 10**6, "a site has no fragment"),
        ("dishes", 0, -1, "a site has no fragment"),
        ("sizes", (0, 0), -1, "a table is out of range"),
        ("sizes", (0, 0), 10**6, "a table is out of range"),
        ("sizes", (0, 1), 0, "has no customers"),
        ("sizes", (0, 2), 2**31 - 1, "do not seat the sites"),
    ],
)
def test_states_that_do_not_fit(model, name, place, value, problem):
    damaged = copy.copy(model)
    array = model.state[name].copy()
    array[place] = value
    damaged.state = {**model.state, name: array}
    with pytest.raises(GrammarError, match=problem):
        fragments_of(damaged)
    for other in (array.astype(np.float64), array[:-1].ravel()[:5], array[None]):
        damaged.state = {**model.state, name: other}
        with pytest.raises(GrammarError, match=f"{name} is missing or has the wrong type"):
            fragments_of(damaged)
    del damaged.state[name]
    with pytest.raises(GrammarError, match=f"{name} is missing or has the wrong type"):
        fragments_of(damaged)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data())
def test_any_state_is_refused_or_works(model, data):
    name = data.draw(st.sampled_from(["fragments", "dishes", "sizes"]))
    array = model.state[name].copy()
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, array.size - 1))
        array.flat[place] = data.draw(st.sampled_from([-2, -1, 0, 1, 2, 50, 1000, 2**31 - 1, -(2**31)]))
    damaged = copy.copy(model)
    damaged.state = {**model.state, name: array}
    try:
        table = fragments_of(damaged)
    except GrammarError:
        return
    for number in table.select(contains="NP", sort="size")[:50]:
        table.fragment(number)
        table.example(number)


# ---- the training trees in the model's file --------------------------------------------------------------


def test_a_model_keeps_its_trees(model, training, tmp_path):
    model.save(tmp_path / "model")
    back = Model.load(tmp_path / "model")
    assert back.corpus.settings == training.corpus.settings
    assert list(map(str, back.corpus.trees())) == list(map(str, training.corpus.trees()))
    assert back.corpus.words == training.corpus.words
    assert fragments_of(back).count_of == fragments_of(model).count_of
    back.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()
    cfg_model(training.corpus).save(tmp_path / "cfg")
    assert Model.load(tmp_path / "cfg").corpus is None


def put(name, place, value):
    def change(header, arrays):
        arrays[name] = arrays[name].copy()
        arrays[name][place] = value

    return change


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda header, arrays: header.pop("corpus"), "the tables of the training trees are missing"),
        (lambda header, arrays: header.update(corpus=[1]), "the training trees are not tables"),
        (lambda header, arrays: header["corpus"].update(labels="x"), "labels is not a list of names"),
        (lambda header, arrays: header["corpus"].pop("forms"), "forms is not a list of names"),
        (lambda header, arrays: arrays.pop("corpus.child"), "array child is missing"),
        (lambda header, arrays: arrays.update({"corpus.label": np.int32(3)}), "array label has the wrong"),
        (put("corpus.word", 0, 10**6), "word has an index out of range"),
        (put("corpus.child", 0, 0), "a child does not come after its parent"),
    ],
)
def test_damaged_trees(model, tmp_path, change, problem):
    path = tmp_path / "model"
    model.save(path)
    header, arrays = read_archive(path, KIND, VERSION)
    del header["version"], header["kind"]
    change(header, arrays)
    write_archive(path, KIND, VERSION, header, arrays)
    with pytest.raises(ArchiveError, match=problem) as raised:
        Model.load(path)
    assert isinstance(raised.value, TsgkitError)
    assert str(raised.value).startswith(str(path))


# ---- cutting ---------------------------------------------------------------------------------------------


def test_cut_at_sites_and_bridges():
    # (S (A a) (B (A a))), S and B begin fragments, B after a bridge; the inner A, by a private symbol, begins none.
    grammar = WeightedGrammar(
        ["S", "A", "B"],
        ["a"],
        [0, 1, 2, 2, 1],
        0,
        binary=[(0, 1, 2)],
        binary_weight=[1.0],
        unary=[(3, 4)],
        unary_weight=[1.0],
        bridge=[(2, 3)],
        bridge_weight=[1.0],
        lexical=[(1, 0), (4, 0)],
        lexical_weight=[1.0, 1.0],
    )
    rows = np.array([(0, 0, 2, 2), (1, 0, 1, 0), (2, 1, 2, 3), (3, 1, 2, 1), (4, 1, 2, 0)])
    nodes, states = node_states(grammar, rows)
    assert nodes.tolist() == [[0, 0, 2, 2], [1, 0, 1, 0], [2, 1, 2, 1], [1, 1, 2, 0]]
    assert states.tolist() == [1, 1, 1, 0]
    steps = cut(nodes, states, ["S", "A", "B"], ["x", "y"])
    assert all(step.tree == step.marked for step in steps)
    assert [(step.brackets, step.depth, step.start, step.end) for step in steps] == [
        ("(S (A ) (B ))", 0, 0, 2),
        ("(A x)", 1, 0, 1),
        ("(B (A y))", 1, 1, 2),
    ]


def test_cut_at_insertions():
    # (S (X (A a) (X (X (A b)) (B c)))): two insertions at one node, the first on the left, the second on the right.
    nodes = np.array([(0, 0, 3, 1), (1, 0, 3, 2), (2, 0, 1, 0), (1, 1, 3, 2), (1, 1, 2, 1), (2, 1, 2, 0), (3, 2, 3, 0)])
    states = np.array([1, 3, 0, 2, 0, 1, 1])
    steps = cut(nodes, states, ["S", "X", "A", "B"], ["a", "b", "c"])
    assert [(step.brackets, format_fragment(step.marked), step.depth, step.is_auxiliary) for step in steps] == [
        ("(S (X (A )))", "(S (X++ (A )))", 0, False),
        ("(X (A a) (X* ))", "(X (A a) (X* ))", 1, True),
        ("(X (X* ) (B ))", "(X (X* ) (B ))", 1, True),
        ("(A b)", "(A b)", 1, False),
        ("(B c)", "(B c)", 2, False),
    ]
