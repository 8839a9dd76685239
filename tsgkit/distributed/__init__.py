"""Where long jobs run: in processes of this machine, through joblib, or on a Dask cluster.

A *task* is a function of a module, called with a value that all share, an item of its own, and a link to the process
that waits for it. `gather` runs a few long tasks, each of which may fail alone; `stream` runs any number of short ones,
in order and with a bounded number under way. What is sent are plain values; nothing is saved except what a task itself
writes.
"""

from tsgkit.distributed._backends import make_backend
from tsgkit.distributed._base import (
    Backend,
    Link,
    Outcome,
    Rescue,
    outcome_of,
    require_same_version,
    worker_name,
)
from tsgkit.distributed._cluster import DaskBackend
from tsgkit.distributed._local import LocalBackend
from tsgkit.distributed._pool import JoblibBackend

__all__ = [
    "Backend",
    "DaskBackend",
    "JoblibBackend",
    "Link",
    "LocalBackend",
    "Outcome",
    "Rescue",
    "make_backend",
    "outcome_of",
    "require_same_version",
    "worker_name",
]
