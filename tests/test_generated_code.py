"""What Cython makes of a few things that look harmless: allocations that cannot be reported."""

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "build" / "cython"
GENERATED = sorted(FOLDER.rglob("_*.cpp"))
# A loop over a container that is no variable: Cython copies it to a temporary one, outside of any `try`, so that the
# process would end where memory has run out.
COPIED = re.compile(r"__pyx_t_\d+\.c?begin\(\)")
# The same where Cython converts an object to a container, but for the methods that it adds to classes for pickling.
CONVERTED = re.compile(r"= __pyx_convert_\w+_from_py_\w+\(")
PLACE = re.compile(r'/\* "([^"]+)":(\d+)\n')
NOT_OURS = ("(tree fragment)", "map.from_py", "pair.from_py", "string.from_py", "vector.from_py")


@pytest.mark.skipif(not GENERATED, reason="nothing was translated in this folder")
def test_no_loop_copies_its_container():
    found = {path.name: COPIED.findall(path.read_text("utf-8")) for path in GENERATED}
    assert {name: calls for name, calls in found.items() if calls} == {}


@pytest.mark.skipif(not GENERATED, reason="nothing was translated in this folder")
def test_no_object_is_converted_to_a_container():
    found = []
    for path in GENERATED:
        text = path.read_text("utf-8")
        for call in CONVERTED.finditer(text):
            source, line = PLACE.findall(text, 0, call.start())[-1]
            if not source.endswith(NOT_OURS):
                found.append(f"{source}:{line}")
    assert not found
