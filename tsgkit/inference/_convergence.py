"""Whether chains agree: rank-normalised split R-hat and effective sample size.

The formulas are those of Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021). With z the normal scores of the
ranks of all draws, W the mean variance within and B the variance between the halves of chains of n draws,

    R-hat = sqrt((n - 1) / n + B / W)        ESS = m n / (1 + 2 sum_t rho_t)

R-hat is the larger of that of the draws and that of their distances from the median. Where ArviZ is installed, it
computes both.
"""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from types import ModuleType

import numpy as np

# Halves of chains need two draws each.
FEWEST_DRAWS = 4
# The recorded quantities by which convergence is judged.
QUANTITIES = ("log_joint", "fragments", "sites", "auxiliary", "insertions")


@dataclass(frozen=True)
class Diagnosis:
    """How well chains agree on a quantity.

    Attributes
    ----------
    quantity : str
    n_chains, n_draws : int
        Chains, and draws of each that were looked at.
    mean, deviation : float
        Over all of these draws.
    r_hat : float
        1 when the halves of all chains agree; above 1.01 they do not. For a single chain its two halves are compared,
        which shows a trend but not that there are other modes. Nan for few draws or a constant.
    ess : float
        So many independent draws would tell as much about the mean; nan for few draws.
    """

    quantity: str
    n_chains: int
    n_draws: int
    mean: float
    deviation: float
    r_hat: float
    ess: float


def diagnose(histories: Sequence[Mapping[str, Sequence[float]]], burn_in: int) -> list[Diagnosis]:
    """Diagnose what several chains recorded.

    Parameters
    ----------
    histories : sequence of mapping
        Of each chain, one value per iteration and quantity.
    burn_in : int
        Iterations that are left out: they sample other distributions. The first half of the rest is left out, too.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> histories = [{"log_joint": random.normal(size=400).tolist()} for _ in range(4)]
    >>> (found,) = diagnose(histories, 0)
    >>> found.n_draws, round(found.r_hat, 1), found.ess > 400
    (200, 1.0, True)
    """
    names = [name for name in QUANTITIES if histories and all(name in history for history in histories)]
    return [diagnosis(name, [kept_draws(history[name], burn_in) for history in histories]) for name in names]


def kept_draws(values: Sequence[float] | np.ndarray, burn_in: int) -> np.ndarray:
    """The second half of the draws of the last distribution."""
    after = np.asarray(values, dtype=np.float64)[min(burn_in, max(len(values) - 1, 0)) :]
    return after[len(after) // 2 :]


def diagnosis(quantity: str, chains: Sequence[np.ndarray]) -> Diagnosis:
    n_draws = min(map(len, chains))
    draws = np.array([chain[len(chain) - n_draws :] for chain in chains])
    deviation = float(draws.std(ddof=1)) if draws.size > 1 else math.nan
    return Diagnosis(
        quantity, len(draws), n_draws, float(draws.mean()), deviation, r_hat(draws), effective_sample_size(draws)
    )


def arviz() -> ModuleType | None:
    """ArviZ, where it is installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its messages on import concern its direct users only
            import arviz as module  # noqa: PLC0415 - takes long, and few need it
    except ImportError:
        return None
    return module


def r_hat(draws: np.ndarray) -> float:
    """R-hat of chains (rows) of draws, by ArviZ where it is installed."""
    if not has_r_hat(draws):
        return math.nan
    # ArviZ compares chains, and refuses a single one.
    module = arviz() if len(draws) > 1 else None
    return plain_r_hat(draws) if module is None else float(module.rhat(draws, method="rank"))


def effective_sample_size(draws: np.ndarray) -> float:
    """The effective sample size of chains (rows) of draws, by ArviZ where it is installed."""
    if not has_draws(draws):
        return math.nan
    module = arviz()
    return plain_effective_sample_size(draws) if module is None else float(module.ess(draws, method="bulk"))


def has_draws(draws: np.ndarray) -> bool:
    return draws.shape[1] >= FEWEST_DRAWS and bool(np.isfinite(draws).all())


def has_r_hat(draws: np.ndarray) -> bool:
    return has_draws(draws) and float(np.ptp(draws)) > 0


def plain_r_hat(draws: np.ndarray) -> float:
    """R-hat by the formula."""
    halves = split(draws)
    return max(ratio(normal_scores(halves)), ratio(normal_scores(np.abs(halves - np.median(halves)))))


def split(draws: np.ndarray) -> np.ndarray:
    """Both halves of every chain as separate chains; the middle draw of an odd number is left out."""
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]])


def normal_scores(draws: np.ndarray) -> np.ndarray:
    """The normal scores of the ranks of all draws; equal ones get their mean rank."""
    _, inverse, counts = np.unique(draws, return_inverse=True, return_counts=True)
    mean_rank = np.cumsum(counts) - (counts - 1) / 2
    normal = NormalDist()
    scores = [normal.inv_cdf((rank - 3 / 8) / (draws.size + 1 / 4)) for rank in mean_rank.tolist()]
    return np.array(scores)[inverse].reshape(draws.shape)


def ratio(chains: np.ndarray) -> float:
    """The square root of the variance of all draws, estimated from above, over that within chains."""
    n_draws = chains.shape[1]
    within = chains.var(axis=1, ddof=1).mean()
    between = chains.mean(axis=1).var(ddof=1)
    if within == 0:
        return math.inf if between > 0 else math.nan
    return math.sqrt((n_draws - 1) / n_draws + between / within)


def plain_effective_sample_size(draws: np.ndarray) -> float:
    """The effective sample size by the formula, with Geyer's bounds on the sum of autocorrelations."""
    if np.ptp(draws) == 0:
        return float(2 * len(draws) * (draws.shape[1] // 2))
    chains = normal_scores(split(draws))
    n_chains, n_draws = chains.shape
    covariance = autocovariance(chains).mean(axis=0)
    within = covariance[0] * n_draws / (n_draws - 1)
    variance = covariance[0] + chains.mean(axis=1).var(ddof=1)
    correlation = 1 - (within - covariance) / variance
    correlation[0] = 1
    # Sums of neighbours are positive and falling in theory: the sum ends where they no longer are positive, and none
    # counts for more than the one before. Of the pair where it ends, the first counts once.
    lag, pairs = 0, [math.inf]
    while (pair := float(correlation[lag : lag + 2].sum())) > 0 and lag + 4 < n_draws:
        pairs.append(min(pair, pairs[-1]))
        lag += 2
    last = float(correlation[lag])
    if pair <= 0:
        last = max(last, 0.0)
    time = max(-1 + 2 * sum(pairs[1:]) + last, 1 / math.log10(n_chains * n_draws))
    return n_chains * n_draws / time


def autocovariance(chains: np.ndarray) -> np.ndarray:
    """The autocovariance of every chain at every lag, by the Fourier transform."""
    n_draws = chains.shape[1]
    centred = chains - chains.mean(axis=1, keepdims=True)
    spectrum = np.fft.rfft(centred, n=2 * n_draws, axis=1)
    return np.fft.irfft(spectrum * spectrum.conj(), n=2 * n_draws, axis=1)[:, :n_draws] / n_draws
