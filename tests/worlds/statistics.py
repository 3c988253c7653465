"""What simulations of the statistics share: the level, chance bounds, and slow tests of many rows at once."""

from __future__ import annotations

import numpy as np
from scipy import stats

from recsys.stats.bootstrap import Resampler, Units, unit_keys

ALPHA = 0.05


def upper(rate: float, n: int) -> float:
    """Largest share of n trials that a true rate explains (three standard errors)."""
    return rate + 3 * np.sqrt(rate * (1 - rate) / n)


def alone(rows: np.ndarray) -> Units:
    return Units(unit_keys(np.arange(rows.shape[1])), rows, np.ones_like(rows))


def t_p(rows: np.ndarray, alternative: str = "two-sided") -> np.ndarray:
    return stats.ttest_1samp(rows, 0, axis=1, alternative=alternative).pvalue


def flip_p(
    rows: np.ndarray, seed: int, alternative: str = "two-sided", n_resamples: int = 1999
) -> np.ndarray:
    sums = Resampler(unit_keys(np.arange(rows.shape[1])), n_resamples, seed).flipped(rows)
    seen = rows.sum(axis=1)[:, None]
    slack = 1e-12 * np.abs(rows).sum(axis=1)[:, None]
    beyond = sums <= seen + slack if alternative == "less" else np.abs(sums) >= np.abs(seen) - slack
    return (1 + beyond.sum(axis=1)) / (n_resamples + 1)
