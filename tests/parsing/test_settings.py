"""Settings of the parser: one value with the defaults and the checks, for commands and for Python."""

import math

import pytest
from parsing.conftest import SENTENCE

from tsgkit.errors import SettingError, UsageError
from tsgkit.parsing import Parser, ParserSettings
from tsgkit.parsing._product import ProductParser
from tsgkit.parsing._settings import COARSE_THRESHOLD, THRESHOLD
from tsgkit.parsing._votes import GUIDED_THRESHOLD, RULES_THRESHOLD

WRONG = (
    ({"objective": "best"}, "objective 'best': must be one of mpd"),
    ({"product": "words"}, "product 'words': must be one of rules, trees"),
    ({"pruning": "much"}, "pruning 'much': must be one of posterior"),
    ({"threshold": 1.0}, "threshold 1.0: must be at least 0 and below 1"),
    ({"threshold": math.nan}, "threshold nan"),
    ({"coarse_threshold": -0.1}, "coarse_threshold -0.1: must be at least 0 and below 1"),
    ({"closing": 1.0}, "closing 1.0: must be at least 0 and below 1"),
    ({"closing": math.nan}, "closing nan"),
    ({"n_samples": 0}, "n_samples 0: must be at least 1"),
    ({"n_candidates": 0}, "n_candidates 0: must be at least 1"),
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


def test_the_coarsest_grammar_has_a_threshold_of_its_own():
    for settings, thresholds in (
        (ParserSettings(), [COARSE_THRESHOLD, THRESHOLD, THRESHOLD]),
        (ParserSettings(threshold=0.1), [COARSE_THRESHOLD, 0.1, 0.1]),
        (ParserSettings(threshold=1e-6), [1e-6, 1e-6, 1e-6]),
        (ParserSettings(threshold=0.1, coarse_threshold=0.2), [0.2, 0.1, 0.1]),
        (ParserSettings(threshold=0.0), [0.0, 0.0, 0.0]),
    ):
        assert [settings.threshold_of(stage) for stage in range(3)] == thresholds
    assert not ParserSettings(threshold=0.0).prunes
    assert ParserSettings().closes_cells
    assert not ParserSettings(threshold=0.0).closes_cells
    assert not ParserSettings(closing=0.0).closes_cells


def test_thresholds_unless_given(model):
    assert Parser(model).settings.pruning_threshold == THRESHOLD
    for product, first, guided in (
        ("rules", RULES_THRESHOLD, GUIDED_THRESHOLD),
        ("trees", THRESHOLD, GUIDED_THRESHOLD),
    ):
        parser = ProductParser([model, model], product=product)
        assert [one.settings.pruning_threshold for one in parser._members] == [first, guided]
        given = parser.with_settings(threshold=0.1)
        assert [one.settings.pruning_threshold for one in given._members] == [0.1] * 2
    # The default is that of the product that decides.
    changed = ProductParser([model, model]).with_settings(product="trees")
    assert changed._members[0].settings.pruning_threshold == THRESHOLD
