"""Several runs per model: seeds (same users, new training) and folds (other users, shared training data).

The spread between runs is separate from the spread between users: a model that wins with one seed may lose
with the next, and no number of users shows that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recsys.errors import InputError
from recsys.stats.inference_results import (
    Interval,
    SmallSampleWarning,
    ZeroVarianceWarning,
    caution,
    is_number,
    t_interval,
    t_ratio,
    t_tail,
    to_floats,
)
from recsys.stats.pairing import align
from recsys.stats.resampling import collapse, has_spread, unit_keys
from recsys.stats.variance_reduction import Adjustment
from recsys.types import Array, Bool, Float, PerCase


@dataclass(frozen=True)
class RunsResult:
    """Difference over several runs; its variance has a part due to users and a part due to runs."""

    method: str
    difference: float
    standard_error: float
    interval: Interval
    p_value: float
    df: float
    n_users: int
    n_runs: int
    variance_users: float
    variance_runs: float
    better_in: int
    per_run: tuple[float, ...]
    notes: tuple[str, ...] = ()

    @property
    def says(self) -> str:
        return f"better in {self.better_in} of {self.n_runs} runs"


def run_result(
    method: str,
    per_run: Float,
    *,
    variances: tuple[float, float],
    error: float,
    df: float,
    n_users: int,
    confidence: float,
    notes: tuple[str, ...] = (),
) -> RunsResult:
    """Test and interval of the mean over runs, from its standard error."""
    mean = float(per_run.mean())
    return RunsResult(
        method,
        mean,
        error,
        t_interval(mean, error, df, confidence),
        t_tail(t_ratio(mean, error), df),
        df,
        n_users,
        len(per_run),
        variances[0],
        variances[1],
        int(np.count_nonzero(per_run > 0)),
        tuple(float(d) for d in per_run),
        notes,
    )


def seeds(differences: npt.ArrayLike, *, confidence: float = 0.95) -> RunsResult:
    """Test the mean of differences (runs x units), with users and runs as crossed random effects.

    Every unit must be in every run. The variance of the mean is the variance due to users plus the variance
    due to runs, minus their interaction, which both contain.
    """
    table = to_floats(differences, "the differences")
    if table.ndim != 2 or table.shape[0] < 2 or table.shape[1] < 2:
        raise InputError(f"seeds needs runs x units, at least 2 x 2, got shape {table.shape}.")
    if not np.isfinite(table).all():
        raise InputError(
            "seeds needs a finite difference for every run and unit.", hint="Pair the runs by id first."
        )
    r, n = table.shape
    notes: tuple[str, ...] = ()
    if r < 3:
        notes += (caution(SmallSampleWarning, f"only {r} runs: the variance between runs is barely known"),)
    by_user, by_run, mean = table.mean(axis=0), table.mean(axis=1), float(table.mean())
    residuals = table - by_user[None, :] - by_run[:, None] + mean
    scale = 1.0 if has_spread(table.ravel()) else 0.0  # differences that vary by rounding only have no spread
    users_variance = scale * float(by_user.var(ddof=1)) / n
    runs_variance = scale * float(by_run.var(ddof=1)) / r
    interaction = scale * float((residuals**2).sum()) / ((r - 1) * (n - 1)) / (r * n)
    variance = max(users_variance + runs_variance - interaction, users_variance, runs_variance)
    if variance == 0:
        notes += (caution(ZeroVarianceWarning, "every difference is the same: zero variance"),)
    satterthwaite = users_variance**2 / (n - 1) + runs_variance**2 / (r - 1)
    df = variance**2 / satterthwaite if satterthwaite > 0 else float(min(n, r) - 1)
    return run_result(
        "users and runs crossed",
        by_run,
        variances=(users_variance, max(runs_variance - interaction, 0.0)),
        error=math.sqrt(variance),
        df=df,
        n_users=n,
        confidence=confidence,
        notes=notes,
    )


def folds(
    per_fold: npt.ArrayLike,
    *,
    test_over_train: float | None = None,
    confidence: float = 0.95,
    n_users: int = 0,
) -> RunsResult:
    """Corrected resampled t-test (Nadeau and Bengio) over the mean difference of each fold.

    Folds share training data, so their differences are correlated; the plain t-test over folds rejects far
    too often. `test_over_train` is n_test / n_train of a fold, 1 / (k - 1) for k-fold cross-validation.
    """
    d = to_floats(per_fold, "the differences")
    k = d.size
    if d.ndim != 1 or k < 2 or not np.isfinite(d).all():
        raise InputError("folds needs the finite mean difference of at least 2 folds.")
    ratio = 1.0 / (k - 1) if test_over_train is None else test_over_train
    if not (is_number(ratio) and 0 < ratio < math.inf):
        raise InputError(f"test_over_train must be positive, got {ratio!r}.")
    notes: tuple[str, ...] = (f"variance inflated by n_test / n_train = {ratio:.3g}",)
    spread = float(d.var(ddof=1)) if has_spread(d) else 0.0
    if spread == 0:
        notes += (caution(ZeroVarianceWarning, "every fold shows the same difference: zero variance"),)
    error = math.sqrt((1.0 / k + ratio) * spread)
    return run_result(
        "corrected resampled t",
        d,
        variances=(math.nan, error**2),
        error=error,
        df=float(k - 1),
        n_users=n_users,
        confidence=confidence,
        notes=notes,
    )


def run_layout(runs: Mapping[str, list[PerCase]], requested: str) -> str:
    """How runs relate: "" if each model has one, "seeds" over the same cases, "folds" over different ones."""
    longest = max(runs.values(), key=len)
    if len(longest) == 1:
        return ""
    if requested != "auto":
        return requested
    return "seeds" if len(np.intersect1d(longest[0].ids, longest[1].ids)) else "folds"


def merge_runs(runs: Sequence[PerCase], layout: str, metrics: Sequence[str]) -> PerCase:
    """One table for all runs: each case has its mean over the runs.

    With seeds, a case that is missing in one run is missing; with folds, it has the mean of the other runs.
    """
    if len(runs) == 1:
        return runs[0]
    if not runs:
        raise InputError("a model has no run at all.")
    aligned = align({str(r): run for r, run in enumerate(runs)}, metrics)
    values_by_metric = {
        metric: np.stack([columns_of_run[metric] for columns_of_run in aligned.tables.values()])
        for metric in metrics
    }
    if layout == "seeds":
        columns = {metric: values.mean(axis=0) for metric, values in values_by_metric.items()}
    else:
        columns = {}
        for metric, values in values_by_metric.items():
            counts = (~np.isnan(values)).sum(axis=0)
            sums = np.where(np.isnan(values), 0.0, values).sum(axis=0)
            columns[metric] = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return PerCase(aligned.ids, columns, aligned.clusters, aligned.weights)


def compare_runs(
    model: Sequence[PerCase],
    baseline: Sequence[PerCase],
    metric: str,
    *,
    layout: str,
    test_over_train: float | None = None,
    confidence: float = 0.95,
    adjustment: Adjustment | None = None,
) -> RunsResult:
    """The difference between two models over their runs, run by run.

    Seeds may be adjusted for their users, who are the same in every run.
    """
    if len(model) != len(baseline) and 1 not in (len(model), len(baseline)):
        raise InputError(
            f"runs are compared one by one, but there are {len(model)} and {len(baseline)}.",
            hint="Give the same number of runs, or one for the baseline.",
        )
    n_runs = max(len(model), len(baseline))
    pairs = [(model[r % len(model)], baseline[r % len(baseline)]) for r in range(n_runs)]
    if layout == "folds":
        means = []
        for a, b in pairs:
            aligned = align({"a": a, "b": b}, [metric])
            differences = aligned.differences("a", "b", metric)
            if np.isnan(differences).all():
                raise InputError(
                    f"a run of the two sides has no case in common on {metric!r}.", column=metric
                )
            fold = collapse(differences[None, :], keys=unit_keys(aligned.ids), weights=aligned.weights)
            means.append(float(fold.estimates()[0]))
        return folds_of_users(means, [a.ids for a, _ in pairs], test_over_train, confidence)
    tables = {
        f"{side}{r}": table for r, pair in enumerate(pairs) for side, table in zip("ab", pair, strict=True)
    }
    aligned = align(tables, [metric])
    differences = np.stack([aligned.differences(f"a{r}", f"b{r}", metric) for r in range(n_runs)])
    complete: Bool = ~np.any(np.isnan(differences), axis=0)
    units = aligned.units(differences, complete)
    values = np.stack([units.linearised(r) for r in range(n_runs)])
    if adjustment is not None:
        clusters = aligned.clusters
        users = aligned.ids[complete] if clusters is None else np.unique(clusters[complete])
        values = adjustment.values(values, users[units.weights[0] != 0])
    return seeds(values, confidence=confidence)


def folds_of_users(
    per_fold: Sequence[float], ids: Sequence[Array], test_over_train: float | None, confidence: float
) -> RunsResult:
    """The difference over folds, from the difference and the test ids of each fold.

    Unless `test_over_train` is given, n_test / n_train follows from the ids: users who are not tested in a
    fold train it. Repeated folds test the same users again.
    """
    n_users, mean_n_test = len(np.unique(np.concatenate(ids))), sum(map(len, ids)) / len(ids)
    if test_over_train is None and mean_n_test < n_users:
        test_over_train = mean_n_test / (n_users - mean_n_test)
    return folds(per_fold, test_over_train=test_over_train, confidence=confidence, n_users=n_users)
