"""A deliberate fault in a kernel or sampler, which the quick tests must notice.

It is a text that stands exactly once in a file, what to put in its place, the compiled modules to build with it (none
where the file is Python), and the tests that should fail then.
"""

from typing import NamedTuple


class Fault(NamedTuple):
    """One change to one file, and who should notice."""

    name: str
    path: str
    old: str
    new: str
    modules: str
    tests: str
