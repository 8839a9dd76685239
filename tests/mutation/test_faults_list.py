"""The list of deliberate faults fits the sources; `make mutation` tries them."""

from pathlib import Path

import pytest
from mutation.faults import FAULTS

ROOT = Path(__file__).parents[2]


def test_there_are_enough_and_all_different():
    assert len(FAULTS) >= 30
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_has_one_place(fault):
    text = (ROOT / fault.path).read_text(encoding="utf-8")
    assert text.count(fault.old) == 1
    assert fault.old != fault.new
    for module in fault.modules.split():
        assert (ROOT / "ext" / "tsgkit" / f"{module}.pyx").exists()
    for path in fault.tests.split():
        assert (ROOT / path.split("::")[0]).exists()
