"""The log of an online experiment, summed per unit of randomisation: its variant and its metrics."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from recsys.errors import ColumnError, IdTypeError, InputError
from recsys.stats.verdicts import plural
from recsys.types import Array, Float, Int


def _column_names(frame: Any) -> list[str]:
    """The columns of a pandas, polars or arrow table, or of a dict of columns."""
    for attribute in ("column_names", "columns"):
        if hasattr(frame, attribute):
            return [str(name) for name in getattr(frame, attribute)]
    if isinstance(frame, Mapping):
        return [str(name) for name in frame]
    raise InputError(f"the log came as {type(frame).__name__}.", hint="Pass a table or a dict of columns.")


def _column(frame: Any, name: str) -> Array:
    names = _column_names(frame)
    if names.count(name) != 1:
        problem = "more than one column" if name in names else "no column"
        raise ColumnError(
            f"the log has {problem} {name!r}.", column=name, hint=f"It has: {', '.join(names)}."
        )
    return np.asarray(frame[name])


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
    except TypeError:
        kinds = sorted({type(value).__name__ for value in values.tolist()})
        raise IdTypeError(
            f"{column} holds {' and '.join(kinds)} in one column, so none would match.",
            column=column,
            hint="Make them one type, such as frame[column].astype(str).",
        ) from None
    return labels, codes.astype(np.int64)


def assignment(
    frame: Any, unit: str, variant: str, mixed: str
) -> tuple[Int, list[str], Int, tuple[str, ...]]:
    """Unit of each row (-1: dropped), names of the variants, variant of each unit, notes."""
    labels, units = _encode_labels(_column(frame, unit), unit)
    names, arms = _encode_labels(_column(frame, variant), variant)
    if len(names) < 2:
        raise InputError(f"an experiment needs at least two variants, got {names.tolist()}.", column=variant)
    lowest_arm = np.full(len(labels), len(names))
    highest_arm = np.full(len(labels), -1)
    np.minimum.at(lowest_arm, units, arms)
    np.maximum.at(highest_arm, units, arms)
    is_mixed = lowest_arm != highest_arm
    notes: tuple[str, ...] = ()
    if is_mixed.any():
        if mixed != "drop":
            raise InputError(
                f"{plural(int(is_mixed.sum()), 'unit')} saw more than one variant.",
                column=variant,
                row=labels[is_mixed].tolist()[0],
                hint="Find out why; mixed='drop' leaves them out and notes it.",
            )
        notes = (f"{int(is_mixed.sum())} of {len(labels)} units saw more than one variant and were left out",)
        new_codes = np.cumsum(~is_mixed) - 1
        units = np.where(is_mixed[units], -1, new_codes[units])
        lowest_arm = lowest_arm[~is_mixed]
        variants_without_units = [str(names[arm]) for arm in range(len(names)) if arm not in lowest_arm]
        if variants_without_units:
            raise InputError(
                f"no unit of variant {variants_without_units[0]!r} saw that variant only.", column=variant
            )
    return units, [str(name) for name in names.tolist()], lowest_arm, notes


def _number_column(frame: Any, name: str) -> Float:
    column = _column(frame, name)
    try:
        return column.astype(np.float64)
    except (TypeError, ValueError) as exc:
        raise InputError(
            f"the column holds no numbers ({exc}).", column=name, hint="Name a column of numbers, or 0 and 1."
        ) from exc


def per_unit(frame: Any, name: str, units: Int, *, how: str) -> Float:
    """A column summed (or averaged) over the rows of each unit."""
    values = _number_column(frame, name)
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


def metric_parts(frame: Any, name: str, units: Int) -> tuple[str, Float, Float]:
    """Kind of a metric, and its numerator and denominator per unit."""
    if "/" in name and name not in _column_names(frame):
        numerator, denominator = (
            per_unit(frame, part.strip(), units, how="sum") for part in name.split("/", 1)
        )
        if denominator.sum() == 0:
            raise InputError("the denominator of a ratio adds up to zero.", column=name)
        return "ratio", numerator, denominator
    sums = per_unit(frame, name, units, how="sum")
    if np.isin(_number_column(frame, name), (0.0, 1.0)).all():
        return "conversion", np.minimum(sums, 1.0), np.ones_like(sums)
    return "mean", sums, np.ones_like(sums)
