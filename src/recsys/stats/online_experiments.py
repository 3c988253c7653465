"""Online experiments from a log: effect, interval and health of an A/B test, several variants included.

The unit of randomisation is the unit of analysis: rows are summed per unit first, so ratio metrics and
repeated visits get honest errors. What would make the answer worthless is checked and said.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from recsys.errors import InputError, UnknownNameError
from recsys.stats.corrections import adjust
from recsys.stats.experiment_log import assignment, metric_parts, per_unit
from recsys.stats.experiment_results import Experiment, Lift, SampleRatio
from recsys.stats.group_sequential import boundaries, msprt
from recsys.stats.inference_results import Interval, lift_of, t_interval, t_of, t_tail
from recsys.stats.statistics_warnings import SampleRatioWarning, SmallSampleWarning, caution
from recsys.stats.verdicts import counted_as, said_gap, said_p
from recsys.types import Float

# A mismatch this unlikely is a broken assignment or log, the customary level for this check.
SAMPLE_RATIO_LEVEL = 0.001


@dataclass(frozen=True)
class Looks:
    """A group-sequential plan: fractions of the planned information at the looks so far, this one last."""

    fractions: tuple[float, ...]
    spending: str = "obrien-fleming"


@dataclass(frozen=True, eq=False)
class _Group:
    numerator: Float
    denominator: Float
    covariate: Float | None

    @property
    def value(self) -> float:
        return float(self.numerator.sum() / self.denominator.sum())

    def linearised(self) -> Float:
        """One value a unit with the ratio as mean: the delta method; the numerator itself for plain means."""
        value = self.value
        values: Float = value + (self.numerator - value * self.denominator) / self.denominator.mean()
        return values


def ab(
    frame: Any,
    *,
    unit: str,
    variant: str,
    metric: str | Sequence[str],
    control: Any = None,
    shares: Mapping[Any, float] | None = None,
    covariate: str | None = None,
    sequential: Literal["msprt"] | Looks | None = None,
    expected_effect: float = 0.02,
    correction: str = "holm",
    confidence: float = 0.95,
    mixed: Literal["error", "drop"] = "error",
) -> Experiment:
    """Compare the variants of an online experiment, one or many rows a unit.

    A metric is a column (0/1: conversion, a unit converts once; else summed per unit: revenue) or a ratio of
    two, "clicks/views". `covariate` is a pre-experiment column for CUPED; `expected_effect` (in standard
    deviations) tunes mSPRT. The control is the first variant in sorted order unless named.
    """
    metrics = [metric] if isinstance(metric, str) else list(metric)
    if not metrics:
        raise InputError("name at least one metric.")
    if mixed not in ("error", "drop"):
        raise UnknownNameError("choice for mixed units", mixed, ("error", "drop"))
    units, arms, assigned, notes = assignment(frame, unit, variant, mixed)
    base = _control(arms, control)
    ratio = _sample_ratio(arms, assigned, shares)
    before = None if covariate is None else per_unit(frame, covariate, units, how="mean")
    family = (len(arms) - 1) * len(metrics)
    rows: list[Lift] = []
    for name in metrics:
        kind, over, under = metric_parts(frame, name, units)
        groups = [_group(over, under, before, assigned == code) for code in range(len(arms))]
        empty = [arm for arm, group in zip(arms, groups, strict=True) if not group.denominator.sum()]
        if empty:
            raise InputError(
                f"the denominator of {name} adds up to zero in variant {empty[0]!r}.", column=name
            )
        for code in (code for code in range(len(arms)) if code != base):
            pair = (groups[code], groups[base])
            row = _lift(name, kind, (arms[code], arms[base]), pair, confidence)
            rows.append(_watched(row, pair, sequential, expected_effect, family=family))
    asked = f"{counted_as(len(arms) - 1, 'variant')} x {counted_as(len(metrics), 'metric')}"
    said = f"{counted_as(family, 'comparison')} ({asked}), {correction}"
    return Experiment(_judged(rows, correction, healthy=ratio.ok), ratio, said, notes)


def _judged(rows: Sequence[Lift], correction: str, *, healthy: bool) -> tuple[Lift, ...]:
    raw = [row.p_value if row.sequential_p is None else row.sequential_p for row in rows]
    adjusted = adjust(raw, correction)
    return tuple(
        _worded(row, float(p), correction, healthy=healthy) for row, p in zip(rows, adjusted, strict=True)
    )


def _control(arms: list[str], control: Any) -> int:
    if control is None:
        return 0
    if str(control) not in arms:
        raise UnknownNameError("control", str(control), arms)
    return arms.index(str(control))


def _sample_ratio(
    arms: list[str], assigned: npt.NDArray[np.int64], shares: Mapping[Any, float] | None
) -> SampleRatio:
    from scipy.special import chdtrc

    counts = np.bincount(assigned, minlength=len(arms)).astype(np.float64)
    given = (
        {str(name): float(share) for name, share in shares.items()} if shares else dict.fromkeys(arms, 1.0)
    )
    if set(given) != set(arms) or not all(0 < share < math.inf for share in given.values()):
        raise InputError(f"shares must give every variant a positive share: variants {arms}, got {given}.")
    planned = np.array([given[arm] for arm in arms])
    expected = counts.sum() * planned / planned.sum()
    statistic = float(((counts - expected) ** 2 / expected).sum())
    p = float(chdtrc(len(arms) - 1, statistic))
    if p < SAMPLE_RATIO_LEVEL:
        caution(
            SampleRatioWarning,
            "sample ratio mismatch: the groups are not of the planned size; find out why first",
        )
    sizes = {arm: int(n) for arm, n in zip(arms, counts, strict=True)}
    wanted = {arm: float(n) for arm, n in zip(arms, expected, strict=True)}
    return SampleRatio(sizes, wanted, statistic, p, p >= SAMPLE_RATIO_LEVEL)


def _group(over: Float, under: Float, before: Float | None, member: npt.NDArray[np.bool_]) -> _Group:
    return _Group(over[member], under[member], None if before is None else before[member])


def _lift(
    name: str, kind: str, arms: tuple[str, str], groups: tuple[_Group, _Group], confidence: float
) -> Lift:
    notes: tuple[str, ...] = ()
    sizes = [len(g.numerator) for g in groups]
    if min(sizes) < 3:
        notes += (caution(SmallSampleWarning, f"only {counted_as(min(sizes), 'unit')} in a group"),)
    if kind == "conversion" and min(min(g.numerator.sum(), (1 - g.numerator).sum()) for g in groups) < 10:
        notes += (
            caution(
                SmallSampleWarning, "fewer than 10 conversions or non-conversions: the normal limit is rough"
            ),
        )
    values, saved = _reduced(groups)
    means = [float(v.mean()) for v in values]
    shares = [_variance(v) / len(v) for v in values]
    gap, error = means[0] - means[1], math.sqrt(shares[0] + shares[1])
    bottom = sum(s**2 / (len(v) - 1) for s, v in zip(shares, values, strict=True)) if min(sizes) > 1 else 0.0
    df = error**4 / bottom if bottom > 0 else 0.0
    lift, lift_interval = lift_of(means[0], means[1], (shares[0], 0.0, shares[1]), df, confidence)
    return Lift(
        name,
        kind,
        *arms,
        groups[1].value,
        groups[0].value,
        gap,
        t_interval(gap, error, df, confidence),
        lift,
        lift_interval,
        t_tail(t_of(gap, error), df),
        math.nan,
        sizes[1],
        sizes[0],
        saved,
        notes=notes,
    )


def _reduced(groups: tuple[_Group, _Group]) -> tuple[list[Float], float]:
    """Values per unit less what a pre-experiment covariate explains (CUPED), and the share saved."""
    values = [g.linearised() for g in groups]
    covariates = [g.covariate for g in groups if g.covariate is not None]
    if len(covariates) < 2:
        return values, 0.0
    centred = [x - x.mean() for x in covariates]
    spread = sum(float(x @ x) for x in centred)
    if spread == 0:
        return values, 0.0
    slope = sum(float(x @ v) for x, v in zip(centred, values, strict=True)) / spread
    overall = float(np.concatenate(covariates).mean())
    adjusted = [v - slope * (x - overall) for v, x in zip(values, covariates, strict=True)]
    plain = sum(_variance(v) / len(v) for v in values)
    after = sum(_variance(v) / len(v) for v in adjusted)
    return adjusted, 1.0 - after / plain if plain > 0 else 0.0


def _variance(values: Float) -> float:
    return float(values.var(ddof=1)) if len(values) > 1 else math.nan


def _watched(
    row: Lift,
    groups: tuple[_Group, _Group],
    sequential: Literal["msprt"] | Looks | None,
    expected: float,
    *,
    family: int,
) -> Lift:
    """What may be said although the experiment is looked at while it runs.

    Boundaries have no p-values to adjust, so their error is split over the family beforehand.
    """
    if sequential is None:
        return row
    values, _ = _reduced(groups)
    variance = sum(_variance(v) / len(v) for v in values)
    sure = row.interval.confidence
    if isinstance(sequential, Looks):
        level = (1.0 - sure) / family
        passed = boundaries(sequential.fractions, alpha=level, spending=sequential.spending)[-1]
        reach = passed * math.sqrt(variance) if variance > 0 else math.inf
        wide = Interval(row.difference - reach, row.difference + reach, sure, "repeated (all looks)")
        return replace(row, boundary=passed, sequential_interval=wide)
    if sequential != "msprt":
        raise UnknownNameError("sequential method", sequential, ("msprt",), hint="Or give Looks(...).")
    spread = math.sqrt(sum(_variance(v) for v in values) / 2.0)
    if not variance > 0:
        return replace(row, sequential_p=math.nan, sequential_interval=row.interval)
    p, interval = msprt(row.difference, variance, expected * spread, confidence=sure)
    return replace(row, sequential_p=p, sequential_interval=interval)


def _worded(row: Lift, adjusted: float, correction: str, *, healthy: bool) -> Lift:
    from scipy.special import ndtri

    alpha = 1.0 - row.interval.confidence
    if row.boundary is not None:
        z = math.nan if math.isnan(row.p_value) else float(-ndtri(row.p_value / 2.0))
        sure = z >= row.boundary
        size = "|z| not defined" if math.isnan(z) else f"|z| {z:.2f}"
        basis = f"{size} against a boundary of {row.boundary:.2f} at this look"
    elif row.sequential_p is not None:
        sure = adjusted < alpha
        basis = f"always-valid {said_p(adjusted, correction)}"
    else:
        sure = adjusted < alpha
        basis = said_p(adjusted, correction)
    direction = "higher" if row.difference > 0 else "lower"
    word = direction if sure else "no clear difference"
    # While it runs only the interval that allows for looking may stand beside the verdict.
    gap = said_gap(row.difference, row.interval, row.lift, row.lift_interval)
    if row.sequential_interval is not None:
        gap = said_gap(row.difference, row.sequential_interval, math.nan, row.lift_interval)
    said = f"{word}: {gap}, {basis}"
    return replace(
        row, adjusted_p=adjusted, verdict=said if healthy else f"not to be trusted (sample ratio); {said}"
    )
