"""Progress bars, shown only if stderr is a terminal."""

import sys
from collections.abc import Iterable
from typing import Any

from tqdm import tqdm


def progress(
    items: Iterable[Any] | None, description: str, unit: str, *, total: int | None = None, quiet: bool = False
) -> Any:
    """Iterate over `items` with a progress bar, which is shown only on a terminal and not if `quiet`.

    Returns the ``tqdm`` object, so that a caller can set a postfix or, without `items`, update the bar.
    """
    hidden = quiet or not sys.stderr.isatty()
    return tqdm(items, desc=description, unit=f" {unit}", total=total, disable=hidden, leave=False, dynamic_ncols=True)
