"""Settings that check themselves: what is refused is named, also when it comes from a worker."""

import math
import pickle
from dataclasses import dataclass

import pytest

from tsgkit.settings import Checked, SettingError


@dataclass(frozen=True)
class Schedule(Checked):
    iterations: int = 1
    order: str = "random"

    def __post_init__(self):
        self.require_least(1, "iterations")
        self.require_choice("order", ("random", "given"))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"iterations": 0}, "iterations 0: must be at least 1"),
        ({"iterations": math.nan}, "iterations nan: must be at least 1"),
        ({"order": "none"}, "order 'none': must be one of random, given"),
    ],
)
def test_wrong_values_are_named(wrong, message):
    with pytest.raises(SettingError) as caught:
        Schedule(**wrong)
    assert str(caught.value) == message
    assert [caught.value.name] == list(wrong)


def test_right_values_are_taken():
    assert Schedule(2, "given") == Schedule(iterations=2, order="given")


def test_errors_come_back_from_workers():
    error = pickle.loads(pickle.dumps(SettingError("seed", -1, "must be at least 0")))
    assert (str(error), error.name, error.problem) == ("seed -1: must be at least 0", "seed", "must be at least 0")
