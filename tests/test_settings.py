"""Settings that check themselves: what is refused is named, also when it comes from a worker."""

import math
import pickle
from dataclasses import dataclass

import numpy as np
import pytest

from tsgkit._settings import Checked
from tsgkit.errors import SettingError


@dataclass(frozen=True)
class Schedule(Checked):
    iterations: int = 1
    order: str = "random"
    share: float = 0.5
    is_long: bool = False
    limit: int | None = None

    def __post_init__(self):
        super().__post_init__()
        self.require_least(1, "iterations")
        self.require_choice("order", ("random", "given"))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"iterations": 0}, "iterations 0: must be at least 1"),
        ({"iterations": math.nan}, "iterations nan: must be a whole number"),
        ({"iterations": "5"}, "iterations '5': must be a whole number"),
        ({"iterations": True}, "iterations True: must be a whole number"),
        ({"share": "much"}, "share 'much': must be a number"),
        ({"share": None}, "share None: must be a number"),
        ({"is_long": 1}, "is_long 1: must be True or False"),
        ({"order": 3}, "order 3: must be a string"),
        ({"order": "rando"}, "order 'rando': must be one of random, given; did you mean random?"),
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


def test_numbers_of_numpy_become_those_of_python():
    schedule = Schedule(np.int64(2), share=np.float32(0.5), is_long=np.True_, limit=np.int8(3))
    found = (schedule.iterations, schedule.share, schedule.is_long, schedule.limit)
    assert [type(value) for value in found] == [int, float, bool, int]
    assert Schedule(share=1).share == 1  # a whole number is a number
    assert Schedule().limit is None


def test_errors_come_back_from_workers():
    error = pickle.loads(pickle.dumps(SettingError("seed", -1, "must be at least 0")))
    assert (str(error), error.name, error.problem) == ("seed -1: must be at least 0", "seed", "must be at least 0")
