"""What Cython makes of a few things that look harmless: allocations that cannot be reported."""

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "build" / "cython"
GENERATED = sorted(FOLDER.rglob("_*.cpp"))
# A loop over a container that is no variable: Cython copies it to a temporary one, outside of any `try`, so that the
# process would end where memory has run out.
COPIED = re.compile(r"__pyx_t_\d+\.c?begin\(\)")


@pytest.mark.skipif(not GENERATED, reason="nothing was translated in this folder")
def test_no_loop_copies_its_container():
    found = {path.name: COPIED.findall(path.read_text("utf-8")) for path in GENERATED}
    assert {name: calls for name, calls in found.items() if calls} == {}
