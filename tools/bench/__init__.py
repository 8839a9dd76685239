"""Benchmarks: each prints what it measures; none asserts a speed. They are run from a checkout and not installed."""

import os
from pathlib import Path


def from_checkout() -> dict[str, str]:
    """The environment for a worker process that imports a module of this package."""
    checkout = str(Path(__file__).parents[2])
    path = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": f"{checkout}{os.pathsep}{path}" if path else checkout}
