"""Several runs per model: seeds (same users, new training) and folds (other users, shared training data).

The spread between runs is separate from the spread between users: a model that wins with one seed may lose
with the next, and no number of users shows that.

With r seeds of n users, the mean squares of crossed random effects (Searle, Casella and McCulloch 1992)
split the variance of the mean difference into that of the users alone and that of the runs:

    V = (s_users^2 / n - s_interaction^2 / (n r)) + s_runs^2 / r

Its interval reaches sqrt(sum t_j^2 V_j), each part with the quantile t_j of its own degrees of freedom
(Banerjee 1961). With k folds, whose training sets overlap,

    V = (1 / k + n_test / n_train) s^2

over the mean differences of the folds, with k - 1 degrees of freedom (Nadeau and Bengio 2003).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recsys.errors import InputError
from recsys.records.arrays import Array, Bool, Float, PerCase
from recsys.records.checks import is_number, to_floats
from recsys.records.facts import Note, note
from recsys.stats.adjustment import Adjustment
from recsys.stats.bootstrap import has_spread
from recsys.stats.pairing import Sides, align
from recsys.stats.results import (
    Estimate,
    Interval,
    SmallSampleWarning,
    ZeroVarianceWarning,
    caution,
    check_confidence,
    t_interval,
    t_quantile,
    t_ratio,
    t_tail,
)
from recsys.stats.samples import Sample, linearised


@dataclass(frozen=True, kw_only=True)
class RunsResult(Estimate):
    """Difference of `n` users over several runs; its variance has a part due to users and one due to runs.

    `df` are the degrees of freedom at which `interval` is a t interval. `baseline_covariance` (with the
    difference) and `baseline_variance` are those of the baseline's mean, NaN if it was not given.
    """

    method: str
    p_value: float
    df: float
    variance_users: float
    variance_runs: float
    better_in: int
    per_run: tuple[float, ...]
    baseline_covariance: float = math.nan
    baseline_variance: float = math.nan

    @property
    def difference(self) -> float:
        return self.value

    @property
    def n_users(self) -> int:
        return self.n

    @property
    def n_runs(self) -> int:
        return len(self.per_run)

    def sides(self, base: float) -> Sides:
        """The baseline's value and what the model has more, with the variances of both."""
        shared = self.baseline_covariance + self.baseline_variance
        variance = self.standard_error**2 + self.baseline_covariance + shared
        return Sides(base + self.value, base, (variance, shared, self.baseline_variance))


def run_result(
    method: str,
    per_run: Float,
    parts: Sequence[tuple[Float, float]],
    *,
    variances: tuple[float, float],
    n_users: int,
    confidence: float,
    notes: tuple[Note, ...] = (),
) -> RunsResult:
    """Test and interval of the mean over runs, whose variance is a sum of independent parts.

    A part is the covariance of (difference, baseline) and its degrees of freedom. The interval reaches
    sqrt(sum of t^2 * variance), each part with its own quantile t: with few runs, the degrees of freedom of
    the sum (Satterthwaite's) cannot be estimated, and a test with them rejects twice too often for two runs.
    """
    from scipy.special import stdtridf

    check_confidence(confidence)
    mean = float(per_run.mean())
    total = np.sum([covariance for covariance, _ in parts], axis=0)
    error = math.sqrt(float(total[0, 0]))
    df = min(part_df for _, part_df in parts)
    interval, p = t_interval(mean, error, df, confidence), t_tail(t_ratio(mean, error), df)
    if len(parts) > 1 and error > 0:
        tail = (1.0 - confidence) / 2.0
        reach = _reach(parts, tail)
        interval, p = Interval(mean - reach, mean + reach, confidence, "t"), _p_value(parts, abs(mean))
        df = min(max(float(stdtridf(1.0 - tail, reach / error)), df), max(part_df for _, part_df in parts))
        total = np.sum([t_quantile(tail, part_df) ** 2 * c for c, part_df in parts], axis=0)
        total = total * (error / reach) ** 2
    return RunsResult(
        mean, error, interval, n_users, notes,
        method=method, p_value=p, df=df, variance_users=variances[0], variance_runs=variances[1],
        better_in=int(np.count_nonzero(per_run > 0)), per_run=tuple(per_run.tolist()),
        baseline_covariance=float(total[0, 1]), baseline_variance=float(total[1, 1]),
    )  # fmt: skip


def _reach(parts: Sequence[tuple[Float, float]], tail: float) -> float:
    """Return how far the interval with this probability on each side reaches."""
    return math.hypot(*(t_quantile(tail, df) * math.sqrt(covariance[0, 0]) for covariance, df in parts))


def _p_value(parts: Sequence[tuple[Float, float]], difference: float) -> float:
    """Return the p-value at which the interval of a difference just reaches 0."""
    from scipy.optimize import brentq

    def excess(log_tail: float) -> float:
        return _reach(parts, math.exp(log_tail)) - difference

    lowest, highest = -600.0, math.log(0.5)
    if excess(lowest) <= 0:
        return 2.0 * math.exp(lowest)
    if excess(highest) >= 0:  # no difference; the median of SciPy 1.13 is not quite 0
        return 1.0
    return 2.0 * math.exp(brentq(excess, lowest, highest, xtol=1e-13))


def _with_baseline(differences: Float, baseline: npt.ArrayLike | None) -> Float:
    """Differences and the baseline's values in one array; NaN for a baseline that is not given."""
    values = np.full_like(differences, np.nan) if baseline is None else to_floats(baseline, "the baseline")
    if values.shape != differences.shape:
        raise InputError(
            f"the baseline has shape {values.shape}, its differences have shape {differences.shape}."
        )
    return np.stack([differences, values])


def seeds(
    differences: npt.ArrayLike,
    *,
    baseline: npt.ArrayLike | None = None,
    users_df: float | None = None,
    confidence: float = 0.95,
) -> RunsResult:
    """Test the mean of differences (runs x units), with users and runs as crossed random effects.

    Every unit must be in every run. The variance of the mean is that of the users' effects, estimated by the
    variance between users without their interaction with runs, plus that of the runs, which contains the
    interaction. `baseline` holds the baseline's values, for the interval of a lift; `users_df` the degrees of
    freedom of the users, if they are fewer than the number of units less one.
    """
    table = to_floats(differences, "the differences")
    if table.ndim != 2 or table.shape[0] < 2 or table.shape[1] < 2:
        raise InputError(f"seeds needs runs x units, at least 2 x 2, got shape {table.shape}.")
    if not np.isfinite(table).all():
        raise InputError(
            "seeds needs a finite difference for every run and unit.", hint="Pair the runs by id first."
        )
    r, n = table.shape
    notes: tuple[Note, ...] = ()
    if r < 3:
        notes += (caution(SmallSampleWarning, "few_runs", n=r),)
    both = _with_baseline(table, baseline)
    by_user, by_run = both.mean(axis=1), both.mean(axis=2)
    residuals = both - by_user[:, None, :] - by_run[:, :, None] + by_run.mean(axis=1)[:, None, None]
    users = np.cov(by_user) / n
    runs = np.cov(by_run) / r
    flat = residuals.reshape(2, -1)
    interaction = flat @ flat.T / ((r - 1) * (n - 1)) / (r * n)
    if not has_spread(table.ravel()):  # differences that vary by rounding only have no spread
        for covariance in (users, runs, interaction):
            covariance[0] = covariance[:, 0] = 0.0
    # The runs never make the mean more certain than its users do.
    shared = runs if runs[0, 0] < interaction[0, 0] else interaction
    users_alone = users - shared if users[0, 0] > shared[0, 0] else np.zeros((2, 2))
    if users_alone[0, 0] == runs[0, 0] == 0:
        notes += (caution(ZeroVarianceWarning, "equal_values", noun="difference"),)
    return run_result(
        "users and runs crossed",
        by_run[0],
        [(users_alone, n - 1.0 if users_df is None else users_df), (runs, r - 1.0)],
        variances=(float(users[0, 0]), max(float(runs[0, 0] - interaction[0, 0]), 0.0)),
        n_users=n,
        confidence=confidence,
        notes=notes,
    )


def folds(
    per_fold: npt.ArrayLike,
    *,
    baseline: npt.ArrayLike | None = None,
    test_over_train: float | None = None,
    confidence: float = 0.95,
    n_users: int = 0,
) -> RunsResult:
    """Corrected resampled t-test (Nadeau and Bengio) over the mean difference of each fold.

    Folds share training data, so their differences are correlated; the plain t-test over folds rejects far
    too often. `test_over_train` is n_test / n_train of a fold, 1 / (k - 1) for k-fold cross-validation.
    `baseline` holds the baseline's mean in each fold, for the interval of a lift.
    """
    d = to_floats(per_fold, "the differences")
    k = d.size
    if d.ndim != 1 or k < 2 or not np.isfinite(d).all():
        raise InputError("folds needs the finite mean difference of at least 2 folds.")
    ratio = 1.0 / (k - 1) if test_over_train is None else test_over_train
    if not (is_number(ratio) and 0 < ratio < math.inf):
        raise InputError(f"test_over_train must be positive, got {ratio!r}.")
    notes: tuple[Note, ...] = (note("fold_variance", ratio=ratio),)
    covariance = (1.0 / k + ratio) * np.cov(_with_baseline(d, baseline))
    if not has_spread(d):
        covariance[0] = covariance[:, 0] = 0.0
        notes += (caution(ZeroVarianceWarning, "equal_folds"),)
    return run_result(
        "corrected resampled t",
        d,
        [(covariance, k - 1.0)],
        variances=(math.nan, float(covariance[0, 0])),
        n_users=n_users,
        confidence=confidence,
        notes=notes,
    )


def run_layout(runs: Mapping[str, list[PerCase]], requested: str) -> str:
    """Return how runs relate.

    They are "" if each model has one, "seeds" over the same cases, "folds" over different ones.
    """
    longest = max(runs.values(), key=len)
    if len(longest) == 1:
        return ""
    if requested != "auto":
        return requested
    return "seeds" if len(np.intersect1d(longest[0].ids, longest[1].ids)) else "folds"


def merge_runs(runs: Sequence[PerCase], layout: str, metrics: Sequence[str]) -> PerCase:
    """Return one table for all runs: each case has its mean over the runs.

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
    """Return the difference between two models over their runs, run by run.

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
        means, baseline_means = [], []
        for a, b in pairs:
            fold = align({"a": a, "b": b}, [metric]).pair(("a", "b", metric))
            if not fold.n_cases:
                raise InputError(
                    f"a run of the two sides has no case in common on {metric!r}.", column=metric
                )
            means.append(fold.sample.mean)
            baseline_means.append(fold.side_estimates().second)
        ids = [a.ids for a, _ in pairs]
        return folds_of_users(means, baseline_means, ids, test_over_train, confidence)
    tables = {
        f"{side}{r}": table for r, pair in enumerate(pairs) for side, table in zip("ab", pair, strict=True)
    }
    aligned = align(tables, [metric])
    differences = np.stack([aligned.differences(f"a{r}", f"b{r}", metric) for r in range(n_runs)])
    complete: Bool = ~np.any(np.isnan(differences), axis=0)
    baseline_values = np.stack([aligned.tables[f"b{r}"][metric] for r in range(n_runs)])
    units = aligned.units(np.concatenate([differences, baseline_values]), complete)
    values = np.stack([linearised(units, r, plain=adjustment is not None) for r in range(2 * n_runs)])
    df: float | None = None
    if adjustment is not None:
        clusters = aligned.clusters
        users = aligned.ids[complete] if clusters is None else np.unique(clusters[complete])
        values = adjustment.values(values, users[units.weights[0] != 0])
    else:
        df = min(Sample.row(units, r).df for r in range(n_runs))
    return seeds(values[:n_runs], baseline=values[n_runs:], users_df=df, confidence=confidence)


def folds_of_users(
    per_fold: Sequence[float],
    baseline: Sequence[float],
    ids: Sequence[Array],
    test_over_train: float | None,
    confidence: float,
) -> RunsResult:
    """Combine the difference, the baseline's mean and the test ids of each fold into one difference.

    Unless `test_over_train` is given, n_test / n_train follows from the ids: users who are not tested in a
    fold train it. Repeated folds test the same users again.
    """
    n_users, mean_n_test = len(np.unique(np.concatenate(ids))), sum(map(len, ids)) / len(ids)
    if test_over_train is None and mean_n_test < n_users:
        test_over_train = mean_n_test / (n_users - mean_n_test)
    return folds(
        per_fold, baseline=baseline, test_over_train=test_over_train, confidence=confidence, n_users=n_users
    )
