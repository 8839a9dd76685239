"""The backends by the names that commands know them by."""

from typing import cast

from tsgkit._guesses import one_of
from tsgkit.distributed._base import Backend
from tsgkit.distributed._cluster import DaskBackend
from tsgkit.distributed._local import LocalBackend
from tsgkit.distributed._pool import JoblibBackend
from tsgkit.errors import UsageError

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
