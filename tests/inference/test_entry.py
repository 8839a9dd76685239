"""Models plug in: what every entry has, a model of another package as a user has it, and one that is not installed."""

from contextlib import contextmanager
from dataclasses import fields, is_dataclass

import numpy as np
import pytest
from extending.plugins import install

from tsgkit.errors import UsageError
from tsgkit.inference._chains import Plan
from tsgkit.inference._training import Training
from tsgkit.inference.entry import MODELS, entry_of, fragments_of
from tsgkit.models._cfg import cfg_model
from tsgkit.models._model import Model
from tsgkit.parsing import Parser
from tsgkit.report.panels import PANELS
from tsgkit.treebank import load, prepare

SHORT = {
    "cfg": {},
    "tsg": {"iterations": 2},
    "insertion": {"iterations": 2},
    "srtsg": {"splits": 1, "split_iterations": 2, "joint_iterations": 1},
}
# A model of another package: in every iteration it takes a part of the counts away from the rules of the first tree.
TOY = """
from dataclasses import dataclass

import numpy as np

from tsgkit.inference.entry import ModelEntry
from tsgkit.inference._settings import Settings
from tsgkit.models._cfg import cfg_model
from tsgkit.models._fragments import FragmentTable
from tsgkit.report.panels import Panel


@dataclass(frozen=True, kw_only=True)
class ToySettings(Settings):
    kind = "toy"
    rounds: int = 3
    factor: float = 0.5
    loud: bool = False

    def __post_init__(self):
        self.require_least(1, "rounds")


class ToySampling:
    def __init__(self, corpus, settings, value):
        self.corpus, self.settings, self.value = corpus, settings, value

    def iterate(self, step):
        self.value *= self.settings.factor
        return {"log_joint": float(np.log(self.value)), "acceptance": 1.0, "fragments": 1.0}

    def state(self):
        return {"value": np.array([self.value])}

    def export(self):
        model = cfg_model(self.corpus)
        model.kind, model.state = "toy", self.state()
        return model

    def describe(self, record):
        return {}


@dataclass(frozen=True)
class ToyPhase:
    settings: ToySettings
    burn_in: int = 1

    @property
    def iterations(self):
        return self.settings.rounds

    def begin(self, before):
        return ToySampling(before, self.settings, 1.0)

    def restore(self, state, material):
        return ToySampling(material, self.settings, float(state["value"][0]))


class ToyEntry(ModelEntry):
    title = "A toy"
    settings = ToySettings
    panels = ("training", "toy", "derivations")

    def phases(self, settings):
        return [ToyPhase(settings)]

    def material(self, corpus, settings, *, seed, threads):
        return corpus

    def fragments(self, model):
        return FragmentTable.of_rules(model.grammar)


TOY = ToyEntry()
PANEL = Panel("What the toy has to say", lambda report: [f"<p>{report.model.state['value'][0]:.4f}</p>"])
"""
ENTRY_POINTS = "[tsgkit.models]\ntoy = toy_models:TOY\n[tsgkit.panels]\ntoy = toy_models:PANEL\n"


def corpus_of(entry):
    return prepare(load("village", "dev"), binarization=entry.binarization, unknown=entry.unknown)


@pytest.mark.parametrize("name", MODELS.built_in)
def test_every_entry_is_complete(name):
    entry = MODELS[name]
    assert is_dataclass(entry.settings)
    assert entry.settings.kind == name
    assert entry.title[0].isupper()
    assert set(entry.panels) <= set(PANELS.names)
    training = Training(corpus_of(entry), entry.settings(**SHORT[name]), seed=1)
    training.start()
    for iteration in range(1, training.iterations + 1):
        training.iterate(iteration)
    model = training.model()
    assert model.kind == name
    assert entry_of(model) is entry
    assert "package" not in model.info
    assert fragments_of(model).select()
    reader = entry.derivations(model)
    assert all(name.startswith(label) and digits.isdigit() for name, (label, digits) in reader.refined.items())
    assert Parser(model).parse_one(["We", "saw", "it", "."]).leaves() == ["We", "saw", "it", "."]


def test_only_a_model_without_iterations_is_counted():
    counted = [name for name in MODELS.built_in if not Plan(MODELS[name].settings(**SHORT[name])).iterations]
    assert counted == ["cfg"]


def test_settings_are_plain_values():
    """They are stored as JSON and sent to workers."""
    for name in MODELS.built_in:
        plan = Plan(MODELS[name].settings(), threads=2)
        assert Plan.from_dict(plan.to_dict()) == plan
        assert all(isinstance(each.default, int | float | str | None) for each in fields(plan.settings))


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Within ``with installed():``, the package that brings the toy is installed."""

    @contextmanager
    def install_toy():
        with monkeypatch.context() as patch:
            install(tmp_path, patch, "toy_models", TOY, ENTRY_POINTS)
            yield

    return install_toy


def test_a_model_of_another_package(installed, tsgkit, tsgkit_process, tmp_path):
    with installed():
        options = ("--model=toy", "--set=rounds=4", "--set=factor=0.25")
        tsgkit_process("train", "-q", *options, "-o", "m", "village:dev")
        model = Model.load(tmp_path / "m")
        assert model.info["package"] == "toy-models"
        assert model.state["value"].tolist() == [0.25**4]
        assert np.exp(model.state["history_log_joint"]).tolist() == pytest.approx([0.25, 0.25**2, 0.25**3, 0.25**4])
        assert tsgkit("inspect", "m", "--top=1").stdout.splitlines()[0].split() == ["weight", "size", "fragment"]
        pytest.importorskip("matplotlib", reason="matplotlib is not installed")
        tsgkit("report", "-q", "-o", "r.html", "m")
    page = (tmp_path / "r.html").read_text("utf-8")
    assert "<h1>A toy: m</h1>" in page
    assert "<h2>What the toy has to say</h2><p>0.0039</p>" in page


def test_a_model_of_another_package_in_chains(installed, tsgkit, tmp_path):
    with installed():
        done = tsgkit("train", "-q", "--model=toy", "--chains=2", "-o", "m", "village:dev")
    assert "chain 1 has the highest log joint and is m" in done.stdout
    assert (tmp_path / "m.chain02").exists()


def test_wrong_settings_of_another_package(installed, tsgkit):
    for options, message in (
        (["--set=rounds=0"], "--rounds=0: must be at least 1"),
        (["--set=rounds=x"], "--rounds=x: not a whole number"),
        (["--set=loud=perhaps"], "--loud=perhaps: must be one of yes, no"),
        (["--set=average=3"], "--set=average=3: the model toy has no such setting; it has factor, loud, rounds"),
        (["--average=3"], "--average: the model toy has no such setting, only tsg, insertion and srtsg have it"),
    ):
        with installed():
            done = tsgkit("train", "-q", "--model=toy", *options, "-o", "m", "village:dev", code=2)
        assert done.stderr == f"tsgkit: {message}\n"


def test_a_model_whose_package_is_not_installed(installed, tsgkit):
    with installed():
        tsgkit("train", "-q", "--model=toy", "--set=loud=yes", "-o", "m", "village:dev")
    message = "tsgkit: no model 'toy' is installed: install the package toy-models, or train one of cfg, tsg,"
    for command in (["inspect", "m"], ["report", "-q", "-o", "r", "m"], ["draw", "--model=m", "village:dev"]):
        assert message in tsgkit(*command, code=2).stderr
    assert "--model=toy: must be one of" in tsgkit("train", "--model=toy", "-o", "n", "-", code=2).stderr
    # The grammar is in the file, so that the model parses everywhere.
    assert tsgkit("parse", "-q", "m", text="We saw it .\n").stdout.startswith("(TOP ")


def test_a_model_registered_in_the_program(monkeypatch):
    space = {"__name__": "some_package.models"}
    exec(TOY, space)
    monkeypatch.setitem(MODELS._loaded, "toy", space["TOY"])
    corpus = prepare(
        load("village", "dev"), binarization=space["ToyEntry"].binarization, unknown=space["ToyEntry"].unknown
    )
    training = Training(corpus, space["ToySettings"]())
    training.start()
    training.iterate(1)
    model = training.model()
    assert model.info["package"] == "some_package"
    monkeypatch.undo()
    with pytest.raises(UsageError, match="install the package some_package"):
        fragments_of(model)


def test_a_model_of_unknown_origin():
    model = cfg_model(
        prepare(load("village", "dev"), binarization=MODELS["cfg"].binarization, unknown=MODELS["cfg"].unknown)
    )
    model.kind = "other"
    for info in ({}, {"package": ["no", "name"]}):
        model.info = info
        with pytest.raises(UsageError, match="install the package that defines it"):
            entry_of(model)
