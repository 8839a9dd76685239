"""Settings of the parser: one value with the defaults and the checks, for commands and for Python."""

import math
import pickle
import re
from dataclasses import fields

import pytest
from parsing.conftest import SENTENCE

from tsgkit.cli import number, parse_arguments
from tsgkit.errors import UsageError
from tsgkit.parser_options import PARSER_OPTIONS, parser_settings
from tsgkit.parsing import Parser, ParserSettings
from tsgkit.parsing.objectives import OBJECTIVES, PRODUCTS
from tsgkit.parsing.product import ProductParser
from tsgkit.parsing.settings import THRESHOLD
from tsgkit.parsing.votes import RULES_THRESHOLD
from tsgkit.report.service import SERVICE_CHANGES, Limits
from tsgkit.settings import SettingError
from tsgkit.tools import parse as parse_command
from tsgkit.tools import serve as serve_command

WRONG = (
    ({"objective": "best"}, "objective 'best': must be one of mpd"),
    ({"product": "words"}, "product 'words': must be one of rules, trees"),
    ({"pruning": "much"}, "pruning 'much': must be one of posterior"),
    ({"threshold": 1.0}, "threshold 1.0: must be at least 0 and below 1"),
    ({"threshold": math.nan}, "threshold nan"),
    ({"n_samples": 0}, "n_samples 0: must be at least 1"),
    ({"n_derivations": 0}, "n_derivations 0: must be at least 1"),
    ({"max_bytes": 0}, "max_bytes 0: must be at least 1"),
    ({"max_length": -1}, "max_length -1: must be at least 0"),
    ({"tags": "firm"}, "tags 'firm': must be one of none, hard, soft"),
    ({"seed": -1}, "seed -1: must be at least 0"),
    ({"seed": 1 << 63}, "must be below 2"),
    ({"correct": True}, "correct True: goes with an objective over samples"),
)


@pytest.mark.parametrize(("wrong", "message"), WRONG)
def test_settings_are_checked(model, wrong, message):
    for make in (ParserSettings, Parser(model).with_settings, lambda **changes: Parser(model, **changes)):
        with pytest.raises(SettingError, match=message):
            make(**wrong)


def test_requests_are_checked(model):
    with pytest.raises(UsageError, match="k=0: must be at least 1"):
        next(Parser(model).parse(SENTENCE, k=0))
    with pytest.raises(TypeError, match="n_trees"):
        Parser(model, n_trees=3)


def test_single_settings_change_given_ones(model):
    settings = ParserSettings(objective="mer", seed=3)
    parser = Parser(model, settings, seed=4)
    assert parser.settings == ParserSettings(objective="mer", seed=4)
    assert parser.with_settings(tags="soft").settings == ParserSettings(objective="mer", seed=4, tags="soft")
    assert parser.with_settings(settings, tags="soft").settings == ParserSettings(objective="mer", seed=3, tags="soft")
    assert parser.settings == ParserSettings(objective="mer", seed=4)


def test_thresholds_unless_given(model):
    assert Parser(model).settings.pruning_threshold == THRESHOLD
    for product, threshold in (("rules", RULES_THRESHOLD), ("trees", THRESHOLD)):
        parser = ProductParser([model, model], product=product)
        assert [one.settings.pruning_threshold for one in parser.members] == [threshold] * 2
        given = parser.with_settings(threshold=0.1)
        assert [one.settings.pruning_threshold for one in given.members] == [0.1] * 2
    # The default is that of the product that decides.
    changed = ProductParser([model, model]).with_settings(product="trees")
    assert changed.members[0].settings.pruning_threshold == THRESHOLD


def test_errors_come_back_from_workers():
    error = pickle.loads(pickle.dumps(SettingError("seed", -1, "must be at least 0")))
    assert (str(error), error.name, error.problem) == ("seed -1: must be at least 0", "seed", "must be at least 0")


# ---- commands --------------------------------------------------------------------------------------------


def test_defaults_in_usage_texts_are_those_of_the_settings():
    assert parser_settings(parse_arguments(parse_command.__doc__, ["m"])) == ParserSettings()
    arguments = parse_arguments(serve_command.__doc__, ["m"])
    settings = ParserSettings(**SERVICE_CHANGES, max_length=Limits.max_length)
    assert parser_settings(arguments, **SERVICE_CHANGES) == settings
    limits = {"max-length": Limits.max_length, "max-body": Limits.max_body, "timeout": Limits.timeout}
    limits |= {"threads": Limits.threads, "queue": Limits.queue}
    assert {name: number(arguments, f"--{name}") for name in limits} == limits


def test_usage_text_names_what_there_is():
    text = re.sub(r"\s+", " ", parse_command.__doc__)
    thresholds = re.search(r"(\S+) unless given, but (\S+) for a product of rules", text)
    assert tuple(map(float, thresholds.groups())) == (THRESHOLD, RULES_THRESHOLD)
    for names, option in ((OBJECTIVES.names, "--objective"), (PRODUCTS.names, "--product")):
        described = text[text.index(f"{option}=NAME") :].partition("[default")[0]
        assert all(re.search(rf"(?<![\w-]){name}(?![\w-])", described) for name in names)


def test_every_setting_has_an_option():
    without = {"n_derivations"}
    assert {name for name, _ in PARSER_OPTIONS.values()} | without == {field.name for field in fields(ParserSettings)}
    arguments = parse_arguments(parse_command.__doc__, ["m"])
    assert set(PARSER_OPTIONS) <= set(arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--objective=best"], "--objective=best: must be one of mpd, mpp"),
        (["--threshold=1"], "--threshold=1: must be at least 0 and below 1"),
        (["--threshold=much"], "--threshold=much: not a number"),
        (["--samples=0"], "--samples=0: must be at least 1"),
        (["--samples=some"], "--samples=some: not a whole number"),
        (["--max-memory=0"], "--max-memory=0: must be at least 1"),
        (["--max-length=-1"], "--max-length=-1: must be at least 0"),
        (["--seed=-1"], "--seed=-1: must be at least 0"),
        (["--seed=9223372036854775808"], "--seed=9223372036854775808: must be below 2"),
        (["--correct"], "--correct: goes with an objective over samples"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(UsageError) as caught:
        parser_settings(parse_arguments(parse_command.__doc__, [*options, "m"]))
    assert str(caught.value).startswith(message)


def test_options_become_settings():
    options = ["--objective=mer-sampled", "--samples=7", "--correct", "--max-memory=3", "--max-length=40", "--seed=5"]
    options += ["--threshold=0.25", "--pruning=max-marginal", "--tags=hard", "--product=trees"]
    assert parser_settings(parse_arguments(parse_command.__doc__, [*options, "m"])) == ParserSettings(
        objective="mer-sampled",
        n_samples=7,
        correct=True,
        max_bytes=3 << 20,
        max_length=40,
        seed=5,
        threshold=0.25,
        pruning="max-marginal",
        tags="hard",
        product="trees",
    )
