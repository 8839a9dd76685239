"""The paired bootstrap test of the difference in F1 between two parsers.

Last stage of the flow: trees again -> a score. With ``a_i`` and ``b_i`` the counts (matched, gold, test brackets) of
sentence i under two systems, d = F(sum a_i) - F(sum b_i), and d* the same on N sentences drawn with replacement from
the N,

    p = (1 + #{ |d*_b - d| >= |d| }) / (1 + B)

is the two-sided p-value of the null hypothesis "no difference" with B resamples, and the 2.5 and 97.5 % quantiles
of the d*_b are a confidence interval of the difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tsgkit._bootstrap import resample_differences
from tsgkit._progress import progress

if TYPE_CHECKING:
    import numpy as np

CHUNK = 250


@dataclass(frozen=True)
class BootstrapTest:
    """The result of a paired bootstrap test of a difference in F1.

    Parameters
    ----------
    difference : float
        F1 of the first system minus F1 of the second, in points.
    p_value : float
        Two-sided.
    low, high : float
        The 95 % percentile interval (a confidence interval) of the difference.
    n_resamples, seed : int
        Number of resamples and seed of the random numbers.
    """

    difference: float
    p_value: float
    low: float
    high: float
    n_resamples: int
    seed: int


def paired_bootstrap(
    first: np.ndarray, second: np.ndarray, n_resamples: int = 10_000, seed: int = 1, *, quiet: bool = True
) -> BootstrapTest:
    """Test the difference in corpus F1 between two systems on the same sentences.

    Parameters
    ----------
    first, second : int64 array, (sentences, 3)
        Matched, gold and test brackets of each sentence.
    n_resamples : int
        Number of bootstrap resamples.
    seed : int
        The same seed gives the same result.
    quiet : bool
        Whether to show no progress bar.

    Notes
    -----
    The null distribution is that of d* - d (Berg-Kirkpatrick, Burkett & Klein 2012, made two-sided; the 1 in
    numerator and denominator counts the observed sample itself, so that p is never 0).

    Examples
    --------
    >>> import numpy as np
    >>> first = np.array([[9, 10, 10]] * 50)
    >>> second = np.array([[8, 10, 10]] * 50)
    >>> test = paired_bootstrap(first, second, n_resamples=99)
    >>> round(test.difference, 6), test.p_value
    (10.0, 0.01)
    """
    import numpy as np  # noqa: PLC0415 - scoring one file does not need it

    one, other = (np.ascontiguousarray(counts, dtype=np.int64) for counts in (first, second))
    (difference,) = f_measures(one.sum(axis=0)) - f_measures(other.sum(axis=0))
    bit_generator = np.random.PCG64(seed)
    differences = np.zeros(n_resamples)
    if len(first):
        with progress((), "Bootstrap", "resamples", total=n_resamples, quiet=quiet) as bar:
            for start in range(0, n_resamples, CHUNK):
                chunk = differences[start : start + CHUNK]
                resample_differences(bit_generator, one, other, chunk)
                bar.update(len(chunk))
    # Differences that are equal up to rounding count as equal, or the smallest p-values would depend on the last bit.
    as_extreme = np.abs(differences - difference) >= abs(difference) - 1e-9
    low, high = np.quantile(differences, [0.025, 0.975])
    p_value = (1 + int(as_extreme.sum())) / (1 + n_resamples)
    return BootstrapTest(float(difference), p_value, float(low), float(high), n_resamples, seed)


def f_measures(counts: np.ndarray) -> np.ndarray:
    """F1 in points of each row (matched, gold, test); 0 without brackets."""
    import numpy as np  # noqa: PLC0415

    matched, gold, test = np.atleast_2d(counts).T
    return 200.0 * matched / np.maximum(gold + test, 1)
