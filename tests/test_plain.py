"""Settings from files: only values of the types of the fields make a dataclass."""

from dataclasses import dataclass

import pytest

from tsgkit._plain import names_of, settings_of


@dataclass
class Settings:
    number: int
    share: float
    name: str | None
    parts: list[str]

    def __post_init__(self):
        if self.number < 0:
            raise ValueError("number is negative")


GIVEN = {"number": 1, "share": 0.5, "name": "x", "parts": ["a"]}


def test_settings():
    assert settings_of(Settings, GIVEN) == Settings(1, 0.5, "x", ["a"])
    assert settings_of(Settings, GIVEN | {"name": None}) == Settings(1, 0.5, None, ["a"])


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        (GIVEN | {"number": True}, "number is of the type bool"),
        (GIVEN | {"number": "1"}, "number is of the type str"),
        (GIVEN | {"share": 1}, "share is of the type int"),
        (GIVEN | {"name": 3}, "name is of the type int"),
        (GIVEN | {"other": 3}, "settings are not those of Settings"),
        ({"number": 1}, "settings are not those of Settings"),
        ([1, 0.5], "settings are not those of Settings"),
        (None, "settings are not those of Settings"),
        (GIVEN | {"number": -1}, "number is negative"),
    ],
)
def test_other_values_are_refused(values, problem):
    with pytest.raises(ValueError, match=problem):
        settings_of(Settings, values)


def test_names():
    assert names_of(["a", "b"], "labels") == ["a", "b"]
    for wrong in ("ab", ["a", 1], None, {"a": 1}):
        with pytest.raises(ValueError, match="labels is not a list of names"):
            names_of(wrong, "labels")
