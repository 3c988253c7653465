"""The log of an online experiment, per unit of randomisation: who saw which variant and did what."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from recsys.errors import ColumnError, IdTypeError, InputError
from recsys.stats.verdicts import counted_as
from recsys.types import Array, Float, Int


def _names(frame: Any) -> list[str]:
    """The columns of a pandas, polars or arrow table, or of a dict of columns."""
    for place in ("column_names", "columns"):
        if hasattr(frame, place):
            return [str(name) for name in getattr(frame, place)]
    if isinstance(frame, Mapping):
        return [str(name) for name in frame]
    raise InputError(f"the log came as {type(frame).__name__}.", hint="Pass a table or a dict of columns.")


def _column(frame: Any, name: str) -> Array:
    known = _names(frame)
    if known.count(name) != 1:
        many = "more than one column" if name in known else "no column"
        raise ColumnError(f"the log has {many} {name!r}.", column=name, hint=f"It has: {', '.join(known)}.")
    return np.asarray(frame[name])


def _codes(values: Array, what: str) -> tuple[Array, Int]:
    empty = np.array(
        [
            value is None
            or type(value).__name__ == "NAType"
            or (isinstance(value, float) and math.isnan(value))
            for value in values.tolist()
        ],
        dtype=bool,
    )
    if empty.any():
        raise InputError(f"{what} is missing in a row.", column=what, row=int(np.flatnonzero(empty)[0]))
    try:
        labels, codes = np.unique(values, return_inverse=True)
    except TypeError:
        kinds = sorted({type(value).__name__ for value in values.tolist()})
        raise IdTypeError(
            f"{what} holds {' and '.join(kinds)} in one column, so none would match.",
            column=what,
            hint="Make them one type, such as frame[column].astype(str).",
        ) from None
    return labels, codes.astype(np.int64)


def assignment(
    frame: Any, unit: str, variant: str, mixed: str
) -> tuple[Int, list[str], Int, tuple[str, ...]]:
    """Unit of each row (-1: dropped), names of the variants, variant of each unit."""
    labels, units = _codes(_column(frame, unit), unit)
    names, arms = _codes(_column(frame, variant), variant)
    if len(names) < 2:
        raise InputError(f"an experiment needs at least two variants, got {names.tolist()}.", column=variant)
    lowest = np.full(len(labels), len(names))
    highest = np.full(len(labels), -1)
    np.minimum.at(lowest, units, arms)
    np.maximum.at(highest, units, arms)
    torn = lowest != highest
    notes: tuple[str, ...] = ()
    if torn.any():
        if mixed != "drop":
            raise InputError(
                f"{counted_as(int(torn.sum()), 'unit')} saw more than one variant.",
                column=variant,
                row=labels[torn].tolist()[0],
                hint="Find out why; mixed='drop' leaves them out and says so.",
            )
        notes = (f"{int(torn.sum())} of {len(labels)} units saw more than one variant and were left out",)
        place = np.cumsum(~torn) - 1
        units = np.where(torn[units], -1, place[units])
        lowest = lowest[~torn]
        gone = [str(names[arm]) for arm in range(len(names)) if arm not in lowest]
        if gone:
            raise InputError(f"no unit of variant {gone[0]!r} saw that variant only.", column=variant)
    return units, [str(name) for name in names.tolist()], lowest, notes


def _numbers(frame: Any, name: str) -> Float:
    column = _column(frame, name)
    try:
        return column.astype(np.float64)
    except (TypeError, ValueError) as exc:
        raise InputError(
            f"the column holds no numbers ({exc}).", column=name, hint="Name a column of numbers, or 0 and 1."
        ) from exc


def per_unit(frame: Any, name: str, units: Int, *, how: str) -> Float:
    """A column summed (or averaged) over the rows of each unit."""
    values = _numbers(frame, name)
    wrong = ~np.isfinite(values)
    if wrong.any():
        raise InputError(
            "a value is missing or infinite.",
            column=name,
            row=int(np.flatnonzero(wrong)[0]),
            hint="If it means 'nothing happened', fill it with 0.",
        )
    kept = units >= 0
    sums: Float = np.bincount(units[kept], weights=values[kept]).astype(np.float64)
    return sums / np.bincount(units[kept]) if how == "mean" else sums


def metric_parts(frame: Any, name: str, units: Int) -> tuple[str, Float, Float]:
    """Kind of a metric and its numerator and denominator per unit."""
    if "/" in name and name not in _names(frame):
        over, under = (per_unit(frame, part.strip(), units, how="sum") for part in name.split("/", 1))
        if under.sum() == 0:
            raise InputError("the denominator of a ratio adds up to zero.", column=name)
        return "ratio", over, under
    sums = per_unit(frame, name, units, how="sum")
    if np.isin(_numbers(frame, name), (0.0, 1.0)).all():
        return "conversion", np.minimum(sums, 1.0), np.ones_like(sums)
    return "mean", sums, np.ones_like(sums)
