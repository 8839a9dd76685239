"""Estimators: parameters, training with callbacks, and the interface of scikit-learn."""

import copy
import inspect
import pickle
from dataclasses import fields, replace

import pytest

from tsgkit._api import train as train_function
from tsgkit._cli import parse_arguments
from tsgkit._estimators import CFG, SRTSG, TSG, Estimator, InsertionTSG, estimator_of
from tsgkit._model_options import model_settings
from tsgkit._tools import train
from tsgkit.errors import NotFittedError, SettingError, UsageError
from tsgkit.inference._loop import Run
from tsgkit.inference.entry import MODELS
from tsgkit.inference.recipes import RECIPES
from tsgkit.parsing import ParserSettings
from tsgkit.treebank import Binarization, UnknownWords

ALL = (CFG, TSG, InsertionTSG, SRTSG)
SHORT = {
    CFG: {},
    TSG: {"iterations": 3, "average": 1},
    InsertionTSG: {"iterations": 3, "average": 1},
    SRTSG: {"splits": 1, "split_iterations": 2, "joint_iterations": 1, "average": 1},
}
WORDS = ["I", "ran", "."]


@pytest.mark.parametrize("make", ALL)
def test_defaults_are_those_of_the_command(make):
    arguments = parse_arguments(train.__doc__, [f"--model={make.kind}", "-o", "m", "x"])
    assert make().settings() == model_settings(arguments, MODELS[make.kind])
    names = [each.name for each in fields(MODELS[make.kind].settings)]
    signature = inspect.signature(make)
    assert list(signature.parameters)[: len(names)] == names
    assert make().get_params() == {name: each.default for name, each in signature.parameters.items()}


@pytest.mark.parametrize("make", ALL)
def test_fit_predict_score(make):
    model = make(**SHORT[make], seed=1).fit("village:dev")
    (tree,) = model.predict([WORDS])
    assert tree.leaves() == WORDS
    assert 0 < model.score("village:dev") <= 100
    copied = pickle.loads(pickle.dumps(model))
    assert copied.predict([WORDS]) == [tree]
    assert copied.get_params() == model.get_params()
    assert copied.history_ == model.history_


def test_wrong_parameters():
    with pytest.raises(TypeError, match=r"SRTSG has no parameter 'split'; did you mean splits\?"):
        SRTSG(split=2)
    with pytest.raises(ValueError, match=r"TSG has no parameter 'zzz'$"):
        TSG().set_params(zzz=1)
    with pytest.raises(TypeError, match=r"setting of the parser: parsing=tsgkit.ParserSettings\(span_power=...\)$"):
        SRTSG(span_power=0.0)
    with pytest.raises(SettingError, match="splits 0: must be at least 1"):
        SRTSG(splits=0)
    model = SRTSG()
    with pytest.raises(SettingError):
        model.set_params(merge=2)


def test_parameters_are_kept_as_given():
    binarization, unknown = Binarization("left", 0), UnknownWords("one", 2)
    model = CFG(binarization=binarization, unknown=unknown)
    assert model.get_params()["binarization"] is binarization
    model.fit("village:dev")
    assert model.model.preparation.binarization == binarization
    assert model.model.preparation.lexicon.settings == unknown
    assert copy.deepcopy(model).model is model.model


def test_a_repr_has_what_is_not_the_default():
    parsing = ParserSettings(span_power=0.5, max_length=40)
    assert repr(CFG(parsing=parsing)) == "CFG(parsing=ParserSettings(span_power=0.5, max_length=40))"
    assert repr(ParserSettings()) == "ParserSettings()"


def test_a_recipe_decides_what_is_not_given():
    recipe = RECIPES["cohn2010"]
    model = TSG(recipe="cohn2010", iterations=2)
    assert model.settings() == replace(recipe.settings, iterations=2)
    assert (model.binarization, model.unknown) == (recipe.binarization, recipe.unknown)
    assert TSG(**model.get_params()).get_params() == model.get_params()
    assert model.fit("village:dev").model.info["settings"]["recipe"] == "cohn2010"
    with pytest.raises(UsageError, match="it is one for the model tsg"):
        SRTSG(recipe="cohn2010")


def test_training_from_a_start(tmp_path):
    first = TSG(iterations=3, average=1).fit("village:dev")
    again = TSG(iterations=3, average=1).fit("village:dev", start=first.model)
    assert again.model.info["start"]["trees_drawn"] == 0
    assert again.history_["log_joint"][0] > first.history_["log_joint"][0]
    first.save(tmp_path / "first.model")
    for start in (first, tmp_path / "first.model"):
        same = train_function("village:dev", "tsg", iterations=3, average=1, start=start)
        assert same.history_["log_joint"] == again.history_["log_joint"]
    with pytest.raises(TypeError, match="a model is an estimator, a Model or the path of a model file, not int"):
        TSG().fit("village:dev", start=5)


def test_callbacks_see_every_iteration_and_can_stop():
    seen = []

    def stop_after_two(progress):
        seen.append(progress)
        return progress.iteration == 2

    model = TSG(iterations=5, average=1).fit("village:dev", callback=stop_after_two)
    assert [(each.iteration, each.iterations) for each in seen] == [(1, 5), (2, 5)]
    assert model.history_["log_joint"] == [each.log_joint for each in seen]
    assert seen[0].seconds_left == pytest.approx(4 * seen[0].seconds)
    # Without a callback, or with one that returns nothing, it runs to the end.
    assert len(TSG(iterations=3, average=1).fit("village:dev", callback=lambda each: None).history_["log_joint"]) == 3


def test_what_is_not_trained_says_so():
    for call in (lambda: CFG().predict([WORDS]), lambda: CFG().score("village:dev"), lambda: CFG().save("x")):
        with pytest.raises(NotFittedError, match="this CFG is not trained yet: call fit"):
            call()
    assert not hasattr(CFG(), "model")


def test_models_of_others_have_estimators_too():
    assert [estimator_of(make.kind) for make in ALL] == list(ALL)
    with pytest.raises(UsageError, match="model 'pcfg': must be one of cfg, tsg"):
        estimator_of("pcfg")
    assert issubclass(estimator_of("tsg"), Estimator)


def test_a_run_takes_its_options_by_name():
    """A number in the place of an option was taken for the interval of checkpoints."""
    with pytest.raises(TypeError):
        Run(None, None, 200)


# ---- scikit-learn, where it is installed ---------------------------------------------------------------------


def test_scikit_learn_clones():
    base = pytest.importorskip("sklearn.base")
    model = TSG(iterations=3, average=1, binarization=Binarization("left", 0)).fit("village:dev")
    cloned = base.clone(model)
    assert cloned.get_params() == model.get_params()
    assert not hasattr(cloned, "model")


def test_scikit_learn_searches():
    selection = pytest.importorskip("sklearn.model_selection")
    from tsgkit import read_trees  # noqa: PLC0415

    trees = read_trees("village:dev")
    grid = {"binarization": [Binarization("right", 0), Binarization("right", 1, 2)]}
    search = selection.GridSearchCV(CFG(), grid, cv=2, n_jobs=2).fit(trees)
    assert 30 < search.best_score_ < 100
    assert search.predict([WORDS])[0].leaves() == WORDS
    scores = selection.cross_val_score(CFG(), trees, cv=2)
    assert len(scores) == 2
