"""The start of a training with the last sample of another: what is kept, what is drawn, and what is refused."""

from collections import Counter

import numpy as np
import pytest
from nltk.tree import Tree
from reference import pyp
from reference.sr_sites import Reference as RefinedReference
from reference.tsg import Reference

from tsgkit._codes import SITE
from tsgkit._tools import train
from tsgkit.errors import UsageError
from tsgkit.inference._cfg import CfgSettings
from tsgkit.inference._insertion import InsertionSettings
from tsgkit.inference._loop import Run
from tsgkit.inference._srtsg import SRTSG, SrSettings
from tsgkit.inference._srtsg_start import transferred_splits
from tsgkit.inference._start import Start, keys_of
from tsgkit.inference._training import Training
from tsgkit.inference._tsg import TSG, TsgSettings
from tsgkit.models._model import Model
from tsgkit.models._srtsg import Subcategories, lexical_shares, refined_probabilities
from tsgkit.models._subcategories import SubcategoryTable
from tsgkit.treebank import Binarization, Cleaning, UnknownWords, load, prepare, write_trees

SHORT = {"average": 2, "average_every": 1}
SETTINGS = {
    "tsg": TsgSettings(iterations=4, **SHORT),
    "tsg dp": TsgSettings(iterations=4, process="dp", **SHORT),
    "insertion": InsertionSettings(iterations=4, **SHORT),
    "splits": SrSettings(splits=2, split_iterations=3, joint_iterations=0, **SHORT),
    "srtsg": SrSettings(splits=2, split_iterations=3, joint_iterations=3, **SHORT),
    "sites": SrSettings(splits=1, split_iterations=3, joint_iterations=0, site_iterations=3, **SHORT),
    "refined insertion": SrSettings(splits=1, split_iterations=3, joint_iterations=2, insertion_iterations=2, **SHORT),
}
# What is trained after the start, where the start's own settings would leave nothing to do.
AFTER = {"splits": SETTINGS["srtsg"]}
TREES = load("village", "train")
OLD, NEW = TREES[:60], [*TREES[90:100], *TREES[20:60], *TREES[20:22], *TREES[100:110]]


def corpus_of(trees, threshold=1, **binarization):
    # The tiny trees below have X over X.
    return prepare(
        trees,
        Cleaning(repeats=False),
        binarization=Binarization(**{"method": "right", "horizontal": 0, **binarization}),
        unknown=UnknownWords("unicode", threshold),
    )


def trained(trees, settings, *, begin=None, seed=3, threshold=1):
    training = Training(corpus_of(trees, threshold), settings, seed=seed, begin=begin)
    training.start()
    for iteration in range(1, training.iterations + 1):
        training.iterate(iteration)
    return training


@pytest.fixture(scope="module", params=[(name, threshold) for name in SETTINGS for threshold in (0, 1)], ids=str)
def start(request):
    name, threshold = request.param
    return name, threshold, Start(trained(OLD, SETTINGS[name], threshold=threshold).model())


def sample_of(state, corpus, preparation):
    """The state of every node, or whether it is a site and the name of its refined symbol."""
    if "states" in state:
        return state["states"].tolist()
    table = SubcategoryTable.of_model(Model("srtsg", preparation, [], {}, state, corpus))
    sites = state.get("sites", np.ones(corpus.n_nodes, dtype=np.uint8))
    return list(zip(sites.tolist(), (table.names[symbol] for symbol in table.symbols), strict=True))


def by_tree(corpus, values):
    bounds = zip(corpus.tree_start[:-1].tolist(), corpus.tree_start[1:].tolist(), strict=True)
    return [values[first:end] for first, end in bounds]


def test_trees_in_common_keep_their_state(start):
    name, threshold, begin = start
    training = Training(corpus_of(NEW, threshold), AFTER.get(name, SETTINGS[name]), seed=5, begin=begin)
    training.start()
    corpora = begin.corpus, training.corpus
    states = begin.model.state, training.state()
    before, after = (
        by_tree(corpus, sample_of(state, corpus, begin.model.preparation))
        for corpus, state in zip(corpora, states, strict=True)
    )
    assert after[10:50] == before[20:60]


def test_it_goes_on_and_says_what_it_began_with(start):
    name, threshold, begin = start
    settings = AFTER.get(name, SETTINGS[name])
    training = trained(NEW, settings, begin=begin, threshold=threshold)
    counts = training.model().info["start"]
    assert counts["digest"] == begin.digest
    assert (counts["trees_kept"], counts["trees_drawn"], counts["trees_left"]) == (40, 22, 20)
    assert counts["rules_new"] > 0 < counts["rules_left"]
    again = trained(NEW, settings, begin=begin, threshold=threshold)
    one, other = training.state(), again.state()
    assert all((one[part] == other[part]).all() for part in one)
    n_splits = len(SubcategoryTable.of_model(begin.model).splits) if settings.kind == "srtsg" else 0
    skipped = n_splits * getattr(settings, "split_iterations", 0)
    assert training.iterations == settings.iterations - skipped


def test_a_start_without_trees_in_common_is_not_forgotten():
    """The fragments of the start are in the grammar that the new trees are drawn from."""
    settings = TsgSettings(iterations=60, **SHORT)
    begin = Start(trained(TREES[:150], settings).model())
    other = TREES[150:200]
    sizes = []
    for start in (begin, None):
        training = Training(corpus_of(other), settings, seed=1, begin=start)
        training.start()
        sizes.append((training.state()["states"] == SITE).mean())
    assert sizes[1] == 1.0
    assert sizes[0] < 0.8


def test_splits_go_to_the_labels_of_the_same_name():
    first = Subcategories(np.array([0, 1, 2]), np.array([1, 2, 2], dtype=np.uint8), 3)
    second = Subcategories(first.label, np.array([1, 2, 1, 1, 2], dtype=np.uint8), 3)
    # TOP NP VP become VP X NP TOP.
    splits = transferred_splits([first, second], np.array([3, 2, 0]), ["VP", "X", "NP", "TOP"], root=3)
    assert splits[0].n_options.tolist() == [2, 1, 2, 1]
    assert splits[1].group_label.tolist() == [0, 0, 1, 2, 2, 3]
    assert splits[1].n_options.tolist() == [1, 2, 1, 2, 1, 1]


def test_trees_are_the_same_by_labels_and_text():
    """A word may be rare in one treebank and not in the other."""
    trees = [Tree.fromstring("(S (N dog) (V ran))"), Tree.fromstring("(S (N cat) (V ran))")]
    begin = Start(trained(trees[:1], SETTINGS["tsg"]).model())
    corpus = corpus_of([*trees, trees[0]])
    joined = begin.joined(corpus)
    assert joined.new_trees.tolist() == [1, 2]
    assert corpus.words != begin.corpus.words
    assert len(set(keys_of(joined.corpus))) == 2


# ---- the posterior ------------------------------------------------------------------------------------------


def test_the_posterior_does_not_depend_on_the_start():
    """From the start on, states come as often as by enumeration, and the parameters of the start are those used."""
    old = [Tree.fromstring(text) for text in ("(TOP (X (X (X a))))", "(TOP (X (X b)))")]
    new = [Tree.fromstring(text) for text in ("(TOP (X (X (X a))))", "(TOP (X (X a) (X a)))", "(TOP (X (Y c)))")]
    settings = TsgSettings(iterations=3, batch=1)
    begin = Start(trained(old, settings, threshold=0).model())
    material = TSG.material(corpus_of(new, 0), settings, seed=1, threads=1)
    sampling = TSG.phase(settings).begin(TSG.begin_with(begin, material, settings))
    parameters = sampling.sampler.parameters()
    x, y = (material.corpus.labels.index(label) for label in "XY")
    assert parameters[:, x].tolist() == begin.model.state["parameters"][:, begin.corpus.labels.index("X")].tolist()
    assert parameters[:, y].tolist() == [0.5, 1.0, 0.5]
    seen = Counter()
    for iteration in range(1, 24001):
        sampling.sampler.blocked_sweep(iteration)
        if iteration % 3 == 0:
            seen[tuple(sampling.sampler.sites().tolist())] += 1
    expected = Reference(material.trees, *parameters.tolist()).marginal()
    assert pyp.chi_square(seen, expected) > 1e-3


def test_the_posterior_of_refined_trees_does_not_depend_on_the_start():
    """The same with subcategories: those of X are the start's, Y is new and has none."""
    old = [Tree.fromstring(text) for text in ("(TOP (X (X b)))", "(TOP (X (X a)))")]
    new = [Tree.fromstring(text) for text in ("(TOP (X (X a)))", "(TOP (X (Y c)))")]
    settings = SrSettings(splits=1, split_iterations=2, joint_iterations=2, merge=0.0, lexicon="rules", **SHORT)
    begin = Start(trained(old, settings, threshold=0).model())
    material = SRTSG.material(corpus_of(new, 0), settings, seed=1, threads=1)
    sites = SRTSG.begin_with(begin, material, settings).refined_sites()
    sampler, subcategories, trees = sites.sampler, sites.splits[-1], material.trees
    assert dict(zip(material.corpus.labels, subcategories.n_symbols.tolist(), strict=True)) == {
        "TOP": 1,
        "X": 2,
        "Y": 1,
    }
    pairs, label, n_labels = sampler.parameters().T, subcategories.label, trees.n_labels

    def parameters(name):
        kind, number = name[:2]
        if kind == "G":
            return tuple(pairs[4 * n_labels + 1 + number])
        return tuple(pairs["HI".index(kind) * n_labels + (label[number] if kind == "H" else number)])

    reference = RefinedReference(
        trees,
        label.tolist(),
        parameters=parameters,
        stop=sampler.stops().tolist(),
        levels=3,
        rule_base=refined_probabilities(trees, material.words, settings.base, subcategories).tolist(),
        rule_class=[-1] * trees.n_rules,
        lexical_share=lexical_shares(trees).tolist(),
        class_word_base=[],
        class_levels=material.words.levels,
    )
    seen = Counter()
    for iteration in range(1, 16001):
        sampler.blocked_sweep(iteration, joint=True)
        if iteration % 4 == 0:
            is_site = sampler.sites()
            seen[tuple(is_site.tolist()), tuple(np.where(is_site, sampler.symbols(), -1).tolist())] += 1
    expected = reference.posterior(sampler.symbols().tolist(), True, lambda sites, symbols, *_: (sites, symbols))
    assert pyp.chi_square(seen, expected) > 1e-3


# ---- files and the command ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["insertion", "srtsg"])
def test_a_resumed_run_ends_the_same(tmp_path, name):
    begin = Start(trained(OLD, SETTINGS[name]).model())

    def run(path, start=begin, **options):
        training = Training(corpus_of(NEW), SETTINGS[name], seed=2, begin=start)
        return Run(training, path, checkpoint_every=1, quiet=True, **options)

    run(tmp_path / "whole").run()
    for last in range(1, run(tmp_path / "parts").iterations + 1):
        run(tmp_path / "parts", resume=True, watch=lambda done, record, last=last: done == last).run()
    assert (tmp_path / "parts").read_bytes() == (tmp_path / "whole").read_bytes()
    with pytest.raises(UsageError, match="another run"):
        run(tmp_path / "parts", Start(trained(OLD, SETTINGS[name], seed=4).model()), resume=True).run()


def test_starts_that_do_not_fit_are_refused():
    begin = Start(trained(OLD, SETTINGS["tsg"]).model(), "m")
    with pytest.raises(UsageError, match="m: a tsg model cannot be the start of a model insertion"):
        Training(corpus_of(NEW), SETTINGS["insertion"], begin=begin)
    with pytest.raises(UsageError, match=r"prepared with horizontal 0 instead of 1, threshold 1 instead of 0$"):
        Training(corpus_of(NEW, threshold=0, horizontal=1), SETTINGS["tsg"], begin=begin)
    with pytest.raises(UsageError, match="without a sample"):
        Start(trained(OLD, CfgSettings()).model()).joined(corpus_of(NEW))
    cfg = Training(corpus_of(NEW), CfgSettings(), begin=Start(trained(OLD, CfgSettings()).model()))
    with pytest.raises(UsageError, match="takes no start"):
        cfg.start()
    refined = Start(trained(OLD, SETTINGS["srtsg"]).model(), "r")
    with pytest.raises(UsageError, match="--splits=1: r has 2 splits already"):
        Training(corpus_of(NEW), SrSettings(splits=1), begin=refined)
    with pytest.raises(UsageError, match="no sweeps are left"):
        Training(corpus_of(NEW), SETTINGS["splits"], begin=refined)
    del begin.model.state["parameters"]
    with pytest.raises(UsageError, match="does not fit these settings"):
        Training(corpus_of(NEW), SETTINGS["tsg"], begin=begin).start()


def test_the_option_and_chains(tmp_path, capsys):
    for name, trees in (("old", OLD), ("new", NEW)):
        write_trees(trees, tmp_path / f"{name}.mrg")
    common = ["--model=tsg", "--iterations=3", "--average=1", "--threshold=1"]
    old, new = (str(tmp_path / f"{name}.mrg") for name in ("old", "new"))
    assert train.main([*common, f"--output={tmp_path}/old.model", old]) == 0
    capsys.readouterr()
    more = [*common, f"--start={tmp_path}/old.model", new]
    assert train.main([*more, f"--output={tmp_path}/new.model"]) == 0
    assert (
        "40 trees keep their derivations, 22 are drawn; 20 trees of the start are left out" in capsys.readouterr().err
    )
    assert Model.load(tmp_path / "new.model").info["start"]["trees_kept"] == 40
    assert train.main([*more, "--quiet", f"--output={tmp_path}/c.model", "--chains=2"]) == 0
    assert Model.load(tmp_path / "c.model.chain02").info["start"]["trees_kept"] == 40
    assert train.main([*more, "--model=cfg", f"--output={tmp_path}/cfg.model"]) != 0
