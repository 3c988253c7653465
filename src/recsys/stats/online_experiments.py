"""Online experiments from a log: effect, interval and health of an A/B test, several variants included.

The unit of randomisation is the unit of analysis: rows are summed per unit first, so ratio metrics and
repeated visits get honest errors. What would invalidate the answer is checked and reported.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from recsys.display.number_words import plural
from recsys.display.words import format_p, merged
from recsys.errors import ColumnError, IdTypeError, InputError, UnknownNameError, came_as, check_choice
from recsys.inputs.frames import as_frame, column_array
from recsys.records.arrays import Array, Float, Int
from recsys.records.checks import is_number, one_or_several
from recsys.records.facts import Kind, Note, Verdict, note
from recsys.stats.adjustment import variance_saved_share
from recsys.stats.corrections import adjust
from recsys.stats.mean_inference import infer_difference
from recsys.stats.results import (
    Interval,
    SampleRatioWarning,
    SmallSampleWarning,
    caution,
    check_confidence,
    difference_numbers,
    fieller_lift,
)
from recsys.stats.samples import Sample
from recsys.stats.sequential import boundaries, msprt

# The customary level: a mismatch this unlikely means a broken assignment or log.
SAMPLE_RATIO_LEVEL = 0.001
# With fewer units expected in some group, chi-square is too far from the exact test at this level.
_MIN_EXPECTED = 50
_FRAME_FIELDS = (
    "metric", "kind", "variant", "control", "control_value", "variant_value", "difference", "lift", "p_value",
    "adjusted_p", "n_control", "n_variant", "variance_saved", "verdict",
)  # fmt: skip
_UNTESTED = Verdict("no_difference", "")


@dataclass(frozen=True)
class Looks:
    """A group-sequential plan: fractions of the planned information at the looks so far, this one last."""

    fractions: tuple[float, ...]
    spending: str = "obrien-fleming"


@dataclass(frozen=True)
class SampleRatio:
    """Test of the planned group sizes; `ok` is False if the assignment or the log is broken.

    `statistic` is chi-square; `p_value` is exact if fewer than 50 units are expected in some group.
    """

    counts: dict[str, int]
    expected: dict[str, float]
    statistic: float
    p_value: float
    ok: bool


@dataclass(frozen=True)
class Lift:
    """One variant against the control on one metric."""

    metric: str
    kind: str
    variant: str
    control: str
    control_value: float
    variant_value: float
    difference: float
    interval: Interval
    lift: float
    lift_interval: Interval
    p_value: float
    adjusted_p: float
    n_control: int
    n_variant: int
    variance_saved: float = 0.0
    sequential_p: float | None = None
    sequential_interval: Interval | None = None
    boundary: float | None = None
    verdict: Verdict = _UNTESTED
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True)
class Experiment:
    """All variants against the control; read `sample_ratio` first."""

    rows: tuple[Lift, ...]
    sample_ratio: SampleRatio
    family: str
    notes: tuple[Note, ...] = ()

    def __getitem__(self, key: tuple[str, str]) -> Lift:
        """Return the row of (variant, metric)."""
        for row in self.rows:
            if (row.variant, row.metric) == key:
                return row
        raise UnknownNameError("variant and metric", key, (f"{r.variant}, {r.metric}" for r in self.rows))

    def __str__(self) -> str:
        """Return one line per variant and metric, then whether the groups are as large as planned."""
        lines = [f"{r.variant} against {r.control}, {r.metric} ({r.kind}): {r.verdict}" for r in self.rows]
        sizes = ", ".join(f"{arm} {n:,}" for arm, n in self.sample_ratio.counts.items())
        health = "as planned" if self.sample_ratio.ok else "NOT as planned: find out why first"
        ratio = f"group sizes {sizes}: {health} ({format_p(self.sample_ratio.p_value)})"
        notes = merged([*self.notes, *(note for r in self.rows for note in r.notes)])
        return "\n".join([*lines, ratio, self.family, *notes])

    def to_frame(self) -> Any:
        """Return every number of every row as a pandas table."""
        import pandas as pd

        rows = []
        for r in self.rows:
            cells = {name: getattr(r, name) for name in _FRAME_FIELDS} | {"verdict": str(r.verdict)}
            cells |= {"low": r.interval.low, "high": r.interval.high}
            cells |= {"lift_low": r.lift_interval.low, "lift_high": r.lift_interval.high}
            interval = r.sequential_interval
            if interval is not None:
                name = "boundary" if r.sequential_p is None else "sequential_p"
                cells[name] = getattr(r, name)
                cells |= {"sequential_low": interval.low, "sequential_high": interval.high}
            rows.append(cells)
        return pd.DataFrame(rows)


@dataclass(frozen=True, eq=False)
class _Group:
    numerator: Float
    denominator: Float
    covariate: Float | None

    @property
    def value(self) -> float:
        return float(self.numerator.sum() / self.denominator.sum())

    def linearised(self) -> Float:
        """Return one value per unit whose mean is the ratio (delta method).

        For plain means it is the numerator itself.
        """
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
    expected_effect: float = 0.05,
    correction: str = "holm",
    confidence: float = 0.95,
    mixed: Literal["error", "drop"] = "error",
) -> Experiment:
    """Compare the variants of an online experiment.

    Args:
        frame: the log, a table or a dict of columns with one or more rows per unit.
        unit: the column of the unit of randomisation, usually the user.
        variant: the column of the variant each row saw.
        metric: a column (0/1: conversion, counted once per unit; else summed per unit, such as revenue), a
            ratio of two columns such as "clicks/views", or a list of these.
        control: the variant the others are compared with; by default the first in sorted order.
        shares: {variant: planned share}; equal shares by default.
        covariate: a column of values from before the experiment, for CUPED.
        sequential: "msprt" or Looks(...) if the experiment is looked at while it runs.
        expected_effect: the effect mSPRT is tuned to, in standard deviations of the metric; best is what a
            test at the end would find with a power of 80%, `recsys.stats.minimal_effect(n, sd=2)` for n units
            in two groups. The default loses up to 7 points of power against that from 2,000 to 200,000 units.
            Fix it before the first look: the level holds for any, but not for one that changes.
        correction: of the p-values over all variants and metrics.
        confidence: of the intervals.
        mixed: "drop" leaves out units that saw several variants; "error" refuses them.
    """
    metrics = one_or_several("metric", metric, "Name one column or several.")
    if not metrics:
        raise InputError("name at least one metric.")
    check_choice("choice for mixed units", mixed, ("error", "drop"))
    if not isinstance(sequential, Looks | None):
        check_choice("sequential method (or Looks)", sequential, ("msprt",))
    check_confidence(confidence)
    if not is_number(expected_effect) or not 0 < expected_effect < math.inf:
        raise InputError(
            f"expected_effect is {expected_effect!r}.", hint="Pass a positive number of standard deviations."
        )
    log = frame if isinstance(frame, Mapping) else as_frame(frame)
    if log is None:
        raise came_as("the log", frame, hint="Pass a table or a dict of columns.")
    units, arms, assigned, notes = _assignment(log, unit, variant, mixed)
    control_index = 0
    if control is not None:
        if not isinstance(control, Hashable) or str(control) not in arms:
            raise UnknownNameError("control", control, arms)
        control_index = arms.index(str(control))
    ratio = _sample_ratio(arms, assigned, shares)
    covariate_values = None if covariate is None else _per_unit(log, covariate, units, how="mean")
    n_rows = (len(arms) - 1) * len(metrics)
    rows: list[Lift] = []
    for name in metrics:
        kind, numerator, denominator = _metric_parts(log, name, units)
        groups = []
        for code in range(len(arms)):
            member = assigned == code
            pre_values = None if covariate_values is None else covariate_values[member]
            groups.append(_Group(numerator[member], denominator[member], pre_values))
        empty = [arm for arm, group in zip(arms, groups, strict=True) if not group.denominator.sum()]
        if empty:
            raise InputError(
                f"the denominator of {name} adds up to zero in variant {empty[0]!r}.", column=name
            )
        for code in (code for code in range(len(arms)) if code != control_index):
            pair = (groups[code], groups[control_index])
            samples, saved = _cuped_samples(pair)
            row = _lift(name, kind, pair, samples, confidence)
            row = replace(row, variant=arms[code], control=arms[control_index], variance_saved=saved)
            rows.append(_with_sequential(row, samples, sequential, expected_effect, n_rows=n_rows))
    raw = [row.p_value if row.sequential_p is None else row.sequential_p for row in rows]
    adjusted = adjust(raw, correction)
    verdicts = tuple(
        _with_verdict(row, float(p), correction, healthy=ratio.ok)
        for row, p in zip(rows, adjusted, strict=True)
    )
    size = f"{plural(len(arms) - 1, 'variant')} x {plural(len(metrics), 'metric')}"
    return Experiment(verdicts, ratio, f"{plural(n_rows, 'comparison')} ({size}), {correction}", notes)


def _sample_ratio(arms: list[str], assigned: npt.NDArray[np.int64], shares: Any) -> SampleRatio:
    from scipy.special import chdtrc

    counts = np.bincount(assigned, minlength=len(arms)).astype(np.float64)
    planned_shares: dict[str, Any] = dict.fromkeys(arms, 1.0)
    if shares is not None:
        if not isinstance(shares, Mapping) or not all(map(is_number, shares.values())):
            raise came_as("shares", shares, hint="Pass {variant: number}.")
        planned_shares = {str(name): float(share) for name, share in shares.items()} or planned_shares
    if set(planned_shares) != set(arms) or not all(0 < share < math.inf for share in planned_shares.values()):
        raise InputError(
            f"shares must give every variant a positive share: variants {arms}, got {planned_shares}."
        )
    weights = np.array([planned_shares[arm] for arm in arms])
    expected = counts.sum() * weights / weights.sum()
    statistic = float(((counts - expected) ** 2 / expected).sum())
    p = float(chdtrc(len(arms) - 1, statistic))
    if expected.min() < _MIN_EXPECTED:
        from scipy.stats import binomtest

        # Exact for each group against all others; among three or more, the smallest p counts for all of them.
        n_tests = len(arms) if len(arms) > 2 else 1
        shares_of_all, total = weights / weights.sum(), int(counts.sum())
        exact = [
            binomtest(int(count), total, share).pvalue
            for count, share in zip(counts, shares_of_all.tolist(), strict=True)
        ]
        p = min(1.0, n_tests * float(min(exact)))
    if p < SAMPLE_RATIO_LEVEL:
        caution(SampleRatioWarning, "sample_ratio")
    sizes = {arm: int(n) for arm, n in zip(arms, counts, strict=True)}
    expected_sizes = {arm: float(n) for arm, n in zip(arms, expected, strict=True)}
    return SampleRatio(sizes, expected_sizes, statistic, p, p >= SAMPLE_RATIO_LEVEL)


def _lift(
    name: str, kind: str, groups: tuple[_Group, _Group], samples: Sequence[Sample], confidence: float
) -> Lift:
    notes: tuple[Note, ...] = ()
    n, n_control = (one.n for one in samples)
    if min(n, n_control) < 3:
        notes += (caution(SmallSampleWarning, "few_in_group", n=min(n, n_control)),)
    if kind == "conversion" and min(min(g.numerator.sum(), (1 - g.numerator).sum()) for g in groups) < 10:
        notes += (caution(SmallSampleWarning, "few_conversions"),)
    found = infer_difference(*samples, confidence=confidence)
    base, (variance, base_variance) = samples[1].mean, (one.error * one.error for one in samples)
    lift, lift_interval = fieller_lift(samples[0].mean, base, (variance, 0.0, base_variance), found.interval)
    return Lift(
        name, kind, "", "", groups[1].value, groups[0].value, found.estimate.value, found.interval,
        lift, lift_interval, found.p_value, math.nan, n_control, n, notes=notes,
    )  # fmt: skip


def _cuped_samples(groups: tuple[_Group, _Group]) -> tuple[list[Sample], float]:
    """Values per unit minus what a pre-experiment covariate explains (CUPED), and the share saved."""
    values = [g.linearised() for g in groups]
    plain = [Sample.of(one) for one in values]
    covariates = [g.covariate for g in groups if g.covariate is not None]
    centred = [x - x.mean() for x in covariates]
    covariate_variation = sum(float(x @ x) for x in centred)
    if covariate_variation == 0:
        return plain, 0.0
    slope = sum(float(x @ v) for x, v in zip(centred, values, strict=True)) / covariate_variation
    covariate_mean = float(np.concatenate(covariates).mean())
    adjusted = [Sample.of(v - slope * (x - covariate_mean)) for v, x in zip(values, covariates, strict=True)]
    errors = (math.hypot(*(one.error for one in side)) for side in (adjusted, plain))
    return adjusted, variance_saved_share(*errors)


def _with_sequential(
    row: Lift,
    samples: Sequence[Sample],
    sequential: Literal["msprt"] | Looks | None,
    expected_effect: float,
    *,
    n_rows: int,
) -> Lift:
    """Return the row with a p-value or boundary and an interval that stay valid while the experiment runs.

    Boundaries have no p-values to adjust, so their error rate is divided by the number of rows beforehand.
    """
    if sequential is None:
        return row
    variance = sum(one.error * one.error for one in samples)
    confidence = row.interval.confidence
    if isinstance(sequential, Looks):
        level = (1.0 - confidence) / n_rows
        boundary = boundaries(sequential.fractions, alpha=level, spending=sequential.spending)[-1]
        reach = boundary * math.sqrt(variance) if variance > 0 else math.inf
        interval_of_looks = Interval(
            row.difference - reach, row.difference + reach, confidence, "repeated (all looks)"
        )
        return replace(row, boundary=boundary, sequential_interval=interval_of_looks)
    spread = math.sqrt(sum(one.deviation**2 for one in samples) / 2.0)
    if not variance > 0:
        return replace(row, sequential_p=math.nan, sequential_interval=row.interval)
    p, interval = msprt(row.difference, variance, expected_effect * spread, confidence=confidence)
    return replace(row, sequential_p=p, sequential_interval=interval)


def _with_verdict(row: Lift, adjusted_p: float, correction: str, *, healthy: bool) -> Lift:
    from scipy.special import ndtri

    is_clear = adjusted_p < 1.0 - row.interval.confidence
    # While the experiment runs, the verdict shows the sequential interval.
    shown, lift = row.interval, row.lift
    if row.sequential_interval is not None:
        shown, lift = row.sequential_interval, math.nan
    numbers: dict[str, Any] = {
        **difference_numbers(row.difference, shown, lift, row.lift_interval),
        "p": adjusted_p, "correction": correction, "is_trusted": healthy,
        "is_sequential": row.sequential_p is not None,
    }  # fmt: skip
    if row.boundary is not None:
        z = math.nan if math.isnan(row.p_value) else float(-ndtri(row.p_value / 2.0))
        is_clear = z >= row.boundary
        numbers |= {"boundary": row.boundary, "z": z}
    direction: Kind = "higher" if row.difference > 0 else "lower"
    verdict = Verdict(direction if is_clear else "no_difference", row.metric, numbers)
    return replace(row, adjusted_p=adjusted_p, verdict=verdict)


def _assignment(
    frame: Any, unit: str, variant: str, mixed: str
) -> tuple[Int, list[str], Int, tuple[Note, ...]]:
    """Unit of each row (-1: dropped), names of the variants, variant of each unit, notes."""
    labels, units = _encode_labels(_column(frame, unit), unit)
    names, arms = _encode_labels(_column(frame, variant), variant)
    if len(arms) != len(units):
        raise InputError(f"{unit} has {len(units):,} rows and {variant} {len(arms):,}.", column=variant)
    if len(names) < 2:
        raise InputError(f"an experiment needs at least two variants, got {names.tolist()}.", column=variant)
    lowest_arm = np.full(len(labels), len(names))
    highest_arm = np.full(len(labels), -1)
    np.minimum.at(lowest_arm, units, arms)
    np.maximum.at(highest_arm, units, arms)
    is_mixed = lowest_arm != highest_arm
    notes: tuple[Note, ...] = ()
    if is_mixed.any():
        if mixed != "drop":
            raise InputError(
                f"{plural(int(is_mixed.sum()), 'unit')} saw more than one variant.",
                column=variant,
                row=labels[is_mixed].tolist()[0],
                hint="Find out why; mixed='drop' leaves them out and notes it.",
            )
        notes = (note("mixed_units", n_mixed=int(is_mixed.sum()), n=len(labels)),)
        new_codes = np.cumsum(~is_mixed) - 1
        units = np.where(is_mixed[units], -1, new_codes[units])
        lowest_arm = lowest_arm[~is_mixed]
        variants_without_units = [str(names[arm]) for arm in range(len(names)) if arm not in lowest_arm]
        if variants_without_units:
            raise InputError(
                f"no unit of variant {variants_without_units[0]!r} saw that variant only.", column=variant
            )
    return units, [str(name) for name in names.tolist()], lowest_arm, notes


def _encode_labels(values: Array, column: str) -> tuple[Array, Int]:
    is_missing = np.array(
        [
            value is None
            or type(value).__name__ == "NAType"
            or (isinstance(value, float) and math.isnan(value))
            for value in values.tolist()
        ],
        dtype=bool,
    )
    if is_missing.any():
        raise InputError(
            f"{column} is missing in a row.", column=column, row=int(np.flatnonzero(is_missing)[0])
        )
    try:
        labels, codes = np.unique(values, return_inverse=True)
    except Exception:  # noqa: BLE001 - of many types: cells may hold anything
        kinds = sorted({type(value).__name__ for value in values.tolist()})
        raise IdTypeError(
            f"{column} holds {' and '.join(kinds)} in one column, so none would match.",
            column=column,
            hint="Make them one type, such as frame[column].astype(str).",
        ) from None
    return labels, codes.astype(np.int64)


def _metric_parts(frame: Any, name: Any, units: Int) -> tuple[str, Float, Float]:
    """Kind of a metric, and its numerator and denominator per unit."""
    if isinstance(name, str) and "/" in name and name not in _column_names(frame):
        numerator, denominator = (
            _per_unit(frame, part.strip(), units, how="sum") for part in name.split("/", 1)
        )
        if denominator.sum() == 0:
            raise InputError("the denominator of a ratio adds up to zero.", column=name)
        return "ratio", numerator, denominator
    sums = _per_unit(frame, name, units, how="sum")
    if np.isin(_number_column(frame, name), (0.0, 1.0)).all():
        return "conversion", np.minimum(sums, 1.0), np.ones_like(sums)
    return "mean", sums, np.ones_like(sums)


def _per_unit(frame: Any, name: str, units: Int, *, how: str) -> Float:
    """Return a column summed (or averaged) over the rows of each unit."""
    values = _number_column(frame, name)
    if len(values) != len(units):
        raise InputError(f"{name} has {len(values):,} rows, and the units {len(units):,}.", column=name)
    is_bad = ~np.isfinite(values)
    if is_bad.any():
        raise InputError(
            "a value is missing or infinite.",
            column=name,
            row=int(np.flatnonzero(is_bad)[0]),
            hint="If it means 'nothing happened', fill it with 0.",
        )
    has_unit = units >= 0
    sums: Float = np.bincount(units[has_unit], weights=values[has_unit]).astype(np.float64)
    return sums / np.bincount(units[has_unit]) if how == "mean" else sums


def _number_column(frame: Any, name: str) -> Float:
    column = _column(frame, name)
    try:
        return column.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as exc:
        raise InputError(
            f"the column holds no numbers ({exc}).", column=name, hint="Name a column of numbers, or 0 and 1."
        ) from exc


def _column(frame: Any, name: Any) -> Array:
    names = _column_names(frame)
    if not isinstance(name, str) or names.count(name) != 1:
        problem = "more than one column" if isinstance(name, str) and name in names else "no column"
        shown = name if isinstance(name, str) else type(name).__name__
        raise ColumnError(
            f"the log has {problem} {shown!r}.", column=shown, hint=f"It has: {', '.join(names)}."
        )
    if not isinstance(frame, Mapping):
        return column_array(frame.get_column(name))
    try:
        values = np.asarray(next(values for own, values in frame.items() if str(own) == name))
    except (TypeError, ValueError) as error:  # such as lists of different lengths
        raise ColumnError(f"the column {name!r} cannot be read ({error}).", column=name) from error
    if values.ndim != 1:
        raise ColumnError(
            f"the column {name!r} has {values.ndim} dimensions.", column=name, hint="Pass one value per row."
        )
    return values


def _column_names(frame: Any) -> list[str]:
    return [str(name) for name in (frame if isinstance(frame, Mapping) else frame.columns)]
