"""The static types of the parameters of estimators are those of the settings."""

import inspect
import typing
from dataclasses import fields

import pytest

from tsgkit import CFG, SRTSG, TSG, InsertionTSG, _estimator_parameters
from tsgkit._api import ReadParameters
from tsgkit._estimators import COMMON, ESTIMATORS
from tsgkit.errors import SettingError
from tsgkit.parsing._settings import ParserParameters, ParserSettings
from tsgkit.treebank import read_trees

TYPES = {
    CFG: _estimator_parameters.CommonParameters,
    TSG: _estimator_parameters.TsgParameters,
    InsertionTSG: _estimator_parameters.InsertionParameters,
    SRTSG: _estimator_parameters.SrtsgParameters,
}


@pytest.mark.parametrize("make", ESTIMATORS.values())
def test_names_and_types_are_those_of_the_settings(make):
    given = typing.get_type_hints(TYPES[make])
    settings = make._entry().settings
    expected = {each.name: typing.get_type_hints(settings)[each.name] for each in fields(settings)}
    assert set(given) == set(expected) | set(COMMON), "tsgkit/_estimator_parameters.py lists the parameters"
    for name, kind in expected.items():
        plain = str if typing.get_origin(given[name]) is typing.Literal else given[name]
        assert plain == kind, name


@pytest.mark.parametrize("make", ESTIMATORS.values())
def test_choices_are_those_of_the_settings(make):
    for name, kind in typing.get_type_hints(TYPES[make]).items():
        if typing.get_origin(kind) is typing.Literal:
            with pytest.raises(SettingError, match=f"must be one of {', '.join(typing.get_args(kind))}"):
                make(**{name: "none of them"})


@pytest.mark.parametrize("make", ESTIMATORS.values())
def test_every_parameter_is_described(make):
    entries = dict(_estimator_parameters.parameter_entries(inspect.getdoc(make)))
    assert [head.partition(" :")[0] for head in entries] == list(inspect.signature(make).parameters)
    assert all(description.strip().endswith((".", "it", "all")) for description in entries.values())
    assert "Examples\n--------\n>>> " in inspect.getdoc(make)


def test_parameters_of_parsers_are_their_settings():
    given, expected = typing.get_type_hints(ParserParameters), typing.get_type_hints(ParserSettings)
    assert list(given) == [each.name for each in fields(ParserSettings)]
    for name, kind in given.items():
        plain = str if typing.get_origin(kind) is typing.Literal else kind
        assert plain == expected[name], name
        if typing.get_origin(kind) is typing.Literal:
            with pytest.raises(SettingError, match=f"must be one of {', '.join(typing.get_args(kind))}"):
                ParserSettings(**{name: "none of them"})


def test_parameters_of_reading_are_those_of_the_reader():
    keywords = [
        each.name for each in inspect.signature(read_trees).parameters.values() if each.kind == each.KEYWORD_ONLY
    ]
    assert list(typing.get_type_hints(ReadParameters)) == keywords
