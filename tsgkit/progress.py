"""Progress bars: on a terminal, on stderr, and nowhere else."""

import sys
from collections.abc import Iterable
from typing import Any

from tqdm import tqdm


def progress(
    items: Iterable[Any] | None, description: str, unit: str, *, total: int | None = None, quiet: bool = False
) -> Any:
    """Iterate over `items` behind a bar that shows only on a terminal and never when `quiet`.

    Returns the ``tqdm`` object, so that a caller may set a postfix, or without `items` move the bar himself.
    """
    hidden = quiet or not sys.stderr.isatty()
    return tqdm(items, desc=description, unit=f" {unit}", total=total, disable=hidden, leave=False, dynamic_ncols=True)
