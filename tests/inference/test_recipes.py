"""Recipes: what the papers say, in one word; which options replace it, and what the model keeps of it."""

from dataclasses import asdict, replace

import pytest

from tsgkit._cli import parse_arguments
from tsgkit._model_options import fill_preparation, model_settings, recipe_of
from tsgkit._options import binarization_of, unknown_of
from tsgkit._tools import train
from tsgkit.errors import UsageError
from tsgkit.inference._srtsg_phases import SitePhase, SplitPhase, Unsplit
from tsgkit.inference.entry import MODELS
from tsgkit.inference.recipes import RECIPES, Recipe
from tsgkit.models._model import Model
from tsgkit.treebank import Binarization, UnknownWords, load, prepare, write_trees


def arguments(*options):
    return parse_arguments(train.__doc__, [*options, "--output=m", "bank"])


def settings_of(*options):
    given = arguments(*options)
    recipe, replaced = recipe_of(given)
    return model_settings(given, MODELS[given["--model"]], recipe), replaced


@pytest.mark.parametrize("name", RECIPES.names)
def test_options_are_those_of_the_recipe(name):
    recipe = RECIPES[name]
    assert isinstance(recipe, Recipe)
    assert name in train.__doc__
    given = arguments(f"--recipe={name}", "--dev=dev")
    found, replaced = recipe_of(given)
    assert (found, replaced) == (recipe, [])
    assert model_settings(given, MODELS[given["--model"]], found) == recipe.settings
    assert recipe.settings.recipe == name
    fill_preparation(given, found)
    assert (binarization_of(given), unknown_of(given)) == (recipe.binarization, recipe.unknown)
    assert int(given["--chains"]) == recipe.n_chains
    assert recipe.deviations
    assert all(sentence.endswith(".") for sentence in recipe.deviations)


def test_what_the_papers_say():
    cohn, insertion, refined = (RECIPES[name].settings for name in ("cohn2010", "shindo2011", "shindo2012"))
    # "Dirichlet Process (DP) prior"; "sampled for 5k iterations"; "we did not use annealing".
    assert (cohn.kind, cohn.process, cohn.iterations, cohn.anneal_iterations, cohn.batch) == ("tsg", "dp", 5000, 0, 1)
    # "Pitman-Yor process prior"; "1k iterations"; "CENTER-HEAD"; "counts <= 1 ... with one of three unknown words".
    assert (insertion.kind, insertion.process, insertion.iterations) == ("insertion", "pyp", 1000)
    assert RECIPES["shindo2011"].binarization.method == "centre-head"
    assert RECIPES["shindo2011"].unknown == UnknownWords("three", 1)
    # "3 split-merge steps for the small training set"; "1000 iterations"; "Gibbs sampler for 2000 iterations".
    phases = MODELS["srtsg"].phases(refined)
    assert [type(phase) for phase in phases] == [SplitPhase] * 3 + [SitePhase]
    assert [phase.iterations for phase in phases] == [1000, 1000, 1000, 2000]
    assert refined.sites == "local"
    # "After convergence, ... the smallest 50% of the newly split symbols ... are merged".
    assert (refined.merge, refined.merge_step) == (0.5, 1000)
    # "words with count <= 5 ... with one of 50 unknown words"; "ten independent runs".
    assert RECIPES["shindo2012"].unknown == UnknownWords("signature", 5)
    assert RECIPES["shindo2012"].n_chains == 10


@pytest.mark.parametrize("levels", [1, 2, 3])
def test_levels_of_the_paper_have_no_restaurants_of_classes(levels):
    """P_sr-tsg alone, with P_sr-cfg, with P_ru-cfg: nothing else is below."""
    recipe = RECIPES["shindo2012"]
    settings = replace(recipe.settings, levels=levels)
    for threshold in (0, 5):
        unknown = UnknownWords("signature", threshold)
        corpus = prepare(load("village", "dev")[:20], binarization=recipe.binarization, unknown=unknown)
        assert not Unsplit(corpus, settings, 1).words.classes
        assert bool(Unsplit(corpus, replace(settings, lexicon="classes"), 1).words.classes) == (threshold == 0)
    assert settings.rule_back_off.n_used == (None if levels == 0 else levels - 1)


def test_given_options_replace_choices_and_this_is_said():
    settings, replaced = settings_of("--recipe=cohn2010", "--iterations=7", "--process=dp", "--truncated")
    assert settings == replace(RECIPES["cohn2010"].settings, iterations=7, truncated=True)
    assert sorted(replaced) == ["--iterations=7 instead of 5000", "--truncated=yes instead of False"]
    with pytest.raises(UsageError, match="--model=srtsg: the recipe cohn2010 is one for --model=tsg"):
        settings_of("--recipe=cohn2010", "--model=srtsg")
    with pytest.raises(UsageError, match="best of 10 chains on --dev=TREEBANK; or give --chains=1"):
        settings_of("--recipe=shindo2012")
    assert settings_of("--recipe=shindo2012", "--chains=2")[1] == ["--chains=2 instead of 10"]
    with pytest.raises(UsageError, match="cohn2011"):
        settings_of("--recipe=cohn2011")
    assert settings_of() == (MODELS["srtsg"].settings(), [])


def test_a_model_keeps_its_recipe(tmp_path, capsys):
    write_trees(load("village", "dev")[:20], tmp_path / "bank.mrg")
    options = ["--recipe=shindo2011", "--iterations=3", f"--output={tmp_path}/m", f"{tmp_path}/bank.mrg"]
    assert train.main(options) == 0
    expected = "not as in the recipe shindo2011: --iterations=3 instead of 1000"
    assert expected in capsys.readouterr().err
    model = Model.load(tmp_path / "m")
    assert model.kind == "insertion"
    assert model.info["settings"] == asdict(replace(RECIPES["shindo2011"].settings, iterations=3))
    assert model.preparation.binarization == Binarization("centre-head", 0, 1)
