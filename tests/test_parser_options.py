"""Options of the parser: they become settings, and usage texts have the defaults of the settings."""

import re
from dataclasses import asdict, fields

import pytest

from tsgkit._cli import number, parse_arguments
from tsgkit._parser_options import PARSER_OPTIONS, parser_settings
from tsgkit._tools import parse as parse_command
from tsgkit._tools import serve as serve_command
from tsgkit.errors import UsageError
from tsgkit.parsing import ParserSettings
from tsgkit.parsing._settings import THRESHOLD
from tsgkit.parsing._votes import GUIDED_THRESHOLD, RULES_THRESHOLD
from tsgkit.parsing.objectives import OBJECTIVES, PRODUCTS
from tsgkit.report._limits import ConnectionLimits, Limits
from tsgkit.report._service import SERVICE_CHANGES


def test_defaults_in_usage_texts_are_those_of_the_settings():
    assert parser_settings(parse_arguments(parse_command.__doc__, ["m"])) == ParserSettings()
    arguments = parse_arguments(serve_command.__doc__, ["m"])
    settings = ParserSettings(**SERVICE_CHANGES, max_length=Limits.max_length)
    assert parser_settings(arguments, **SERVICE_CHANGES) == settings
    limits = {"max-length": Limits.max_length, "max-body": Limits.max_body, "timeout": Limits.timeout}
    limits |= {"threads": Limits.threads, "queue": Limits.queue}
    limits |= {name.replace("_", "-"): value for name, value in asdict(ConnectionLimits()).items()}
    assert {name: number(arguments, f"--{name}") for name in limits} == limits


def test_usage_text_names_what_there_is():
    text = re.sub(r"\s+", " ", parse_command.__doc__)
    thresholds = re.search(r"(\S+) unless given, but (\S+) for a product of rules, and (\S+) in its models after", text)
    assert tuple(map(float, thresholds.groups())) == (THRESHOLD, RULES_THRESHOLD, GUIDED_THRESHOLD)
    for names, option in ((OBJECTIVES.names, "--objective"), (PRODUCTS.names, "--product")):
        described = text[text.index(f"{option}=NAME") :].partition("[default")[0]
        assert all(re.search(rf"(?<![\w-]){name}(?![\w-])", described) for name in names)


def test_every_setting_has_an_option():
    without = {"n_candidates"}
    assert {name for name, _ in PARSER_OPTIONS.values()} | without == {field.name for field in fields(ParserSettings)}
    arguments = parse_arguments(parse_command.__doc__, ["m"])
    assert set(PARSER_OPTIONS) <= set(arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--objective=best"], "--objective=best: must be one of mpd, mpp"),
        (["--threshold=1"], "--threshold=1: must be at least 0 and below 1"),
        (["--coarse-threshold=2"], "--coarse-threshold=2: must be at least 0 and below 1"),
        (["--closing=-1"], "--closing=-1: must be at least 0 and below 1"),
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
