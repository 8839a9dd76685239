"""Options of models: every setting has one, its default stands in the help text, and its value reaches the settings."""

import re
from dataclasses import fields

import pytest

from tsgkit._cli import parse_arguments
from tsgkit._model_options import fill_preparation, model_options, model_settings, option_of, with_defaults
from tsgkit._options import binarization_of, unknown_of
from tsgkit._tools import train
from tsgkit._usage import option_texts
from tsgkit.errors import SettingError, UsageError
from tsgkit.inference._chains import Plan
from tsgkit.inference._tsg import TsgSettings
from tsgkit.inference.entry import MODELS

REQUIRED = ["--output=m", "bank"]


def arguments(*options):
    return parse_arguments(train.__doc__, [*options, *REQUIRED])


def described(option):
    """What the help text says of an option, on one line."""
    (found,) = re.findall(rf"^ +{option}(?:=[A-Z]+)?  +(.*(?:\n {{20}}.*)*)", train.__doc__, flags=re.MULTILINE)
    return " ".join(found.split())


def test_every_setting_has_an_option_and_every_option_one_meaning():
    names = {name for text in option_texts(train.__doc__) for name in text.names}
    assert set(model_options()) <= names
    for name in MODELS.built_in:
        for each in fields(MODELS[name].settings):
            flag = re.search(rf"{option_of(each.name)}(=[A-Z]+)?  ", train.__doc__)
            assert (flag[1] is None) == (each.type in (bool, "bool")), each.name


@pytest.mark.parametrize("name", MODELS.built_in)
def test_the_help_text_shows_the_defaults_of_the_settings(name):
    for each in fields(MODELS[name].settings):
        text = described(option_of(each.name))
        if each.name in MODELS[name].settings.by_size:
            assert text.endswith(f"(default: {MODELS[name].settings.by_size[each.name]})")
            continue
        if each.default is None or each.default is False:
            assert "default" not in text
            continue
        common, *others = re.search(r"\(default: (.*)\)$", text)[1].split(", ")
        shown = dict(other.split(": ") for other in others).get(name, common)
        assert type(each.default)(shown) == each.default


@pytest.mark.parametrize("name", MODELS.built_in)
def test_without_options_settings_are_the_defaults(name):
    entry = MODELS[name]
    given = arguments(f"--model={name}")
    assert model_settings(given, entry) == entry.settings()
    fill_preparation(given, entry)
    assert binarization_of(given) == entry.binarization
    assert unknown_of(given) == entry.unknown


def test_the_help_text_shows_the_defaults_of_the_preparation():
    assert described("--binarize").endswith("(default: right, insertion: centre-head)")
    assert described("--horizontal").endswith("(default: 0, cfg: 1)")
    assert described("--vertical").endswith("(default: 1, cfg: 2)")
    assert described("--unknown").endswith("(default: unicode, insertion: three)")
    assert described("--threshold").endswith("(default: 1, srtsg: 0)")
    assert described("--average").endswith("(default: 20, srtsg: 30)")
    assert described("--checkpoint-every").endswith(f"[default: {Plan(TsgSettings()).checkpoint_every}]")
    assert "{" not in train.__doc__
    assert max(map(len, train.__doc__.splitlines())) <= 120


def test_given_options_reach_the_settings():
    given = arguments("--iterations=7", "--truncated", "--anneal-from=2", "--base=uniform", "--process=dp", "--batch=3")
    expected = TsgSettings(iterations=7, truncated=True, anneal_from=2.0, base="uniform", process="dp", batch=3)
    assert model_settings(given, MODELS["tsg"]) == expected
    given = arguments("--insertion-prob=0.25", "--stacked", "--insertion-cutoff=1.5")
    found = model_settings(given, MODELS["insertion"])
    assert (found.insertion_probability, found.stacked, found.insertion_cutoff) == (0.25, True, 1.5)
    found = model_settings(arguments("--stop-prob=0.5", "--splits=2", "--merge=0"), MODELS["srtsg"])
    assert (found.stop_prob, found.splits, found.merge) == (0.5, 2, 0.0)


@pytest.mark.parametrize(
    ("name", "option", "message"),
    [
        ("cfg", "--iterations=3", "--iterations: the model cfg has no such setting, only tsg and insertion have it"),
        ("tsg", "--splits=3", "--splits: the model tsg has no such setting, only srtsg has it"),
        ("tsg", "--stacked", "--stacked: the model tsg has no such setting, only insertion and srtsg have it"),
        ("srtsg", "--truncated", "--truncated: the model srtsg has no such setting, only tsg and insertion have it"),
        (
            "srtsg",
            "--iterations=5",
            "--iterations: the model srtsg has no such setting, only tsg and insertion have it; instead it has"
            " --anneal-iterations, --split-iterations, --site-iterations, --joint-iterations, --insertion-iterations",
        ),
        ("tsg", "--set=average=3", "--set=average=3: the model tsg has no such setting"),
        ("tsg", "--average=0", "--average=0: must be at least 1"),
        ("tsg", "--average=x", "--average=x: not a whole number"),
        ("tsg", "--anneal-from=nan", "--anneal-from=nan: must be a number"),
        ("tsg", "--sampler=best", "--sampler=best: must be one of blocked, local"),
        ("tsg", "--type-moves=-1", "--type-moves=-1: must be at least 0"),
        ("srtsg", "--levels=4", "--levels=4: must be one of 1, 2, 3"),
        ("insertion", "--insertion-prob=1", "--insertion-probability=1.0: must be at least 0 and below 1"),
    ],
)
def test_what_is_refused(name, option, message):
    with pytest.raises(UsageError) as caught:
        model_settings(arguments(option), MODELS[name])
    assert str(caught.value) == message


def test_an_error_of_settings_names_the_field():
    with pytest.raises(SettingError) as caught:
        TsgSettings(average_every=0)
    error = caught.value
    assert (error.name, error.value, error.problem) == ("average_every", 0, "must be at least 1")
    assert str(error) == "average_every 0: must be at least 1"


def test_text_around_options_stays():
    text = (
        "Usage:\n  x [options]\n\n"
        "  -a N, --average=N  so many {default}\n  --merge=P  x\n             y {default}\n\nEnd."
    )
    expected = text.replace("{default}", "(default: 20, srtsg: 30)", 1).replace("{default}", "(default: 0.5)")
    assert with_defaults(text) == expected
