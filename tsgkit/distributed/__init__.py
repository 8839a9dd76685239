"""Where long jobs run: in processes of this machine, through joblib, or on a Dask cluster.

A *task* is a function of a module, called with a value that all share, an item of its own, and a link to the process
that waits for it. `gather` runs a few long tasks, each of which may fail alone; `stream` runs any number of short ones,
in order and with a bounded number under way. What is sent are plain values; nothing is saved except what a task itself
writes.
"""

from typing import cast

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
from tsgkit.errors import UsageError, one_of

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
BACKENDS = ("local", "joblib", "dask")


def make_backend(name: str, jobs: int | None = None, scheduler: str | None = None) -> Backend:
    """The backend of a name; that of Dask needs the address of a scheduler.

    Parameters
    ----------
    name : {"local", "joblib", "dask"}
    jobs : int, optional
        How many run at a time.
    scheduler : str, optional
        The address of a Dask scheduler.
    """
    if name not in BACKENDS:
        raise UsageError(f"--backend={name}: must be {one_of(name, BACKENDS)}")
    if (scheduler is None) == (name == "dask"):
        raise UsageError(
            "--backend=dask and --scheduler=ADDRESS go together; `dask scheduler` starts one and says its address"
        )
    if name == "local":
        return LocalBackend(jobs)
    if name == "joblib":
        return JoblibBackend(jobs)
    return DaskBackend(cast(str, scheduler), jobs)
