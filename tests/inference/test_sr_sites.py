"""Training of symbol-refined grammars with substitution sites: phases, checkpoints, the model."""

import numpy as np
import pytest

from tsgkit._codes import SITE
from tsgkit.errors import UsageError
from tsgkit.inference._checkpoint import Checkpoint, checkpoint_path
from tsgkit.inference._loop import Run
from tsgkit.inference._srtsg import SrSettings
from tsgkit.inference._srtsg_phases import RefinedSites
from tsgkit.inference._training import Training
from tsgkit.models._model import Model
from tsgkit.models._srtsg_sites import SiteGrammar
from tsgkit.models._subcategories import refined_fragments
from tsgkit.parsing import Parser
from tsgkit.report._derivation import Deriver
from tsgkit.treebank import Binarization, UnknownWords, load, prepare
from tsgkit.treebank._fragments import format_fragment
from tsgkit.treebank.synthetic import assemble

SHORT = {"joint_iterations": 0, "splits": 2, "split_iterations": 3, "average": 2, "average_every": 1}


def small_corpus(threshold=0, n_trees=None):
    return prepare(
        load("village", "dev")[:n_trees],
        binarization=Binarization("right", 0),
        unknown=UnknownWords("unicode", threshold),
    )


def run_of(path, *, seed=1, threshold=0, n_trees=None, resume=False, watch=None, **settings):
    training = Training(small_corpus(threshold, n_trees), SrSettings(**{**SHORT, **settings}), seed=seed)
    return Run(training, path, checkpoint_every=1, quiet=True, resume=resume, watch=watch)


def trained(path, **options):
    run_of(path, **options).run()
    return path.read_bytes()


@pytest.mark.parametrize(
    "settings",
    [
        {"site_iterations": 3},
        {"site_iterations": 3, "sites": "local", "stop_prob": 0.7},
        {"joint_iterations": 3, "levels": 2},
        {"site_iterations": 2, "joint_iterations": 2, "threshold": 1},
        {"joint_iterations": 2, "insertion_iterations": 3},
        {"insertion_iterations": 2, "stacked": True, "insertion_probability": 0.4},
        {"insertion_iterations": 2, "levels": 1, "stop_prob": 0.5},
    ],
)
def test_a_resumed_run_ends_the_same(tmp_path, settings):
    settings = {"n_trees": 20, **settings}
    whole = trained(tmp_path / "whole", **settings)
    iterations = run_of(tmp_path / "parts", **settings).iterations
    for last in range(1, iterations + 1):
        run_of(tmp_path / "parts", resume=True, watch=lambda done, record, last=last: done == last, **settings).run()
    assert (tmp_path / "parts").read_bytes() == whole
    assert trained(tmp_path / "other", seed=2, **settings) != whole


def test_phases_and_the_mean(tmp_path):
    run = run_of(tmp_path / "m", site_iterations=4, joint_iterations=3)
    model = run.run()
    assert len(run.history["sites"]) == 13
    assert set(run.history["sites"][:6]) == {1.0}
    assert run.history["sites"][6] < 1
    assert model.info["samples"] == 2
    sites = run.training.active.sites
    symbols = sites.sampler.symbols()
    state = Model.load(tmp_path / "m").state
    number = sites.splits[-1].number
    assert (number[2 * state["groups"] + state["bits"]] == symbols).all()


def test_the_model_parses(tmp_path):
    run_of(tmp_path / "m", site_iterations=3).run()
    model = Model.load(tmp_path / "m")
    assert len(model.stages) == 4
    tree = Parser(model).parse_one(["The", "old", "mill", "stood", "by", "the", "unseenwordly", "."])
    assert tree.label() == "TOP"
    assert len(tree.leaves()) == 8


def test_insertions_into_refined_trees(tmp_path):
    run = run_of(tmp_path / "m", splits=1, merge=0.0, joint_iterations=2, insertion_iterations=10, average=3)
    run.run()
    assert not any(run.history["insertions"][:5])
    assert run.history["insertions"][-1] >= run.history["auxiliary"][-1] > 0
    assert all(len(values) == 15 for values in run.history.values())
    model = Model.load(tmp_path / "m")
    assert model.info["samples"] == 3
    assert (model.grammar.label < 0).any()
    tree = Parser(model).parse_one(["The", "old", "mill", "stood", "by", "the", "unseenwordly", "."])
    assert len(tree.leaves()) == 8
    table = refined_fragments(model)
    auxiliary = table.select(kind="auxiliary")
    assert len(auxiliary) == run.history["auxiliary"][-1]
    assert table.counts[auxiliary].sum() == run.history["insertions"][-1]
    assert len(table.select()) == run.history["fragments"][-1]
    for number in auxiliary:
        fragment = table.fragment(number)
        feet = [node.label() for node in fragment.tree if node.label().endswith("*")]
        assert feet == [f"{fragment.root}*"]
    deriver, n_inserted = Deriver(model), 0
    for tree in load("village", "dev"):
        derivation = deriver.derive(tree)
        n_inserted += sum(step.is_auxiliary for step in derivation.steps)
        # Where initial trees begin there are subcategories, and nowhere else.
        assert [bool(digits) for digits in derivation.subcategories[1:]] == [
            state == SITE for state in derivation.states[1:]
        ]
        assert assemble([format_fragment(step.marked) for step in derivation.steps]) == refined_tree(derivation)
    assert n_inserted > 0
    model.state["feet"] = np.minimum(model.state["feet"] + model.state["sites"], 2)
    with pytest.raises(UsageError, match="insertions are damaged"):
        refined_fragments(model)


def refined_tree(derivation):
    """The brackets of a derivation's tree, every node with its subcategory if it has one."""
    nodes = iter(zip(derivation.nodes.tolist(), derivation.labels, derivation.subcategories, strict=True))

    def brackets():
        (_, start, _, n_children), label, digits = next(nodes)
        below = [brackets() for _ in range(n_children)] or [derivation.vocabulary_words[start]]
        return f"({label}{'-' if digits else ''}{digits} {' '.join(below)})"

    return brackets()


def test_without_insertions_it_is_the_joint_sampler(tmp_path):
    """With other streams of random numbers, of the same model: the grammar of its state is that without insertion."""
    run = run_of(tmp_path / "m", joint_iterations=2, insertion_iterations=4, insertion_probability=0.0, average=1)
    run.run()
    active = run.training.active
    assert not active.sampler.insertions_of_nodes().any()
    sites = RefinedSites(run.training.material, active.splits)
    sites.sampler.set_parameters(active.extended.treebank_parameters(active.sampler.parameters()))
    sites.sampler.set_stops(active.sampler.stops()[: active.extended.n_labels])
    sites.sampler.restore(active.sampler.symbols(), active.sampler.sites(), active.sampler.seating())
    assert sites.sampler.log_joint() == pytest.approx(active.sampler.log_joint(), rel=1e-12)
    sites.add_to_mean()
    plain, other = SiteGrammar(*sites.parts()).grammar(), Model.load(tmp_path / "m").grammar
    assert plain.n_rules == other.n_rules
    assert np.sort(plain.binary_weight) == pytest.approx(np.sort(other.binary_weight), rel=1e-9)


def test_damaged_checkpoints_are_refused(tmp_path):
    run = run_of(tmp_path / "m", site_iterations=2)
    run.run()
    training = run.training
    state = Checkpoint.load(checkpoint_path(tmp_path / "m"), training.identity()).state
    rows = state["seating_refined"]
    assert len(rows)
    broken = [
        {"bits": state["bits"] + 1},
        {"groups": state["groups"] + len(training.active.sites.splits[-1].n_options)},
        {"groups": state["groups"][1:]},
        {"sites": np.zeros_like(state["sites"])},
        {"sites": state["sites"] + 1},
        {"stops": state["stops"] + 1},
        {"parameters": state["parameters"][:, 1:]},
        {"seating_refined": rows[1:]},
        {"seating_refined": rows + np.array([10**6, 0])},
        {"seating_refined": rows * [1, 0]},
        {"seating_refinement": state["seating_refinement"][1:]},
        {"seating_refinement": state["seating_refinement"] + 100},
        {"seating_dish": state["seating_dish"][1:]},
        {"seating_rule": state["seating_rule"][1:]},
        {"seating_rule": state["seating_rule"] + [0, 100, 0, 0, 0, 0]},
        {"seating_rule": state["seating_rule"] * -1},
        {"seating_word": state["seating_word"] + [10**6, 0, 0]},
        {"seating_class": state["seating_class"] + [0, 10**6, 0, 0]},
        {"seating_base": np.concatenate([state["seating_base"]] * 2)},
    ]
    for change in broken:
        other = Training(training.corpus, training.settings, seed=1)
        with pytest.raises(UsageError, match="does not fit"):
            other.restore({**state, **change}, training.iterations)
    for name in state:
        if name.startswith("seating"):
            other = Training(training.corpus, training.settings, seed=1)
            with pytest.raises(UsageError, match="does not fit"):
                other.restore({key: value for key, value in state.items() if key != name}, training.iterations)


def test_settings_that_do_not_fit_are_refused():
    for settings in (
        {"site_iterations": -1},
        {"sites": "all"},
        {"joint_iterations": -2},
        {"stop_prob": 1.0},
        {"insertion_iterations": -1},
        {"insertion_iterations": 1, "insertion_probability": 1.0},
        {"insertion_probability": 0.1},
        {"stacked": True},
    ):
        with pytest.raises(UsageError):
            SrSettings(**settings)


def test_the_command(tsgkit):
    options = ["--splits=1", "--split-iterations=2", "--site-iterations=2", "--joint-iterations=1", "--sites=local"]
    done = tsgkit("train", "--model=srtsg", *options, "--stop-prob=0.6", "-o", "m", "village:dev", "--dev=village:dev")
    assert "F1" in done.stdout
    assert "stop-prob" in tsgkit("train", "--model=srtsg", "--stop-prob=2", "-o", "m", "village:dev", code=2).stderr
