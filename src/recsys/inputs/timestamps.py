"""A column of times as numbers that can be compared, and borders in the same numbers.

Times are whole or decimal numbers, dates and times with or without a time zone, or text that is one of these.
A column that mixes zoned and plain times has no order and is refused. Nothing is assumed about what a number
counts: a date as the border of a numeric column needs `unit=`.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from recsys.errors import ColumnError, InputError, SplitError
from recsys.types import Array, Bool, Float

UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_LENGTHS = {"w": 604_800 * 10**9, "d": 86_400 * 10**9, "h": 3600 * 10**9, "min": 60 * 10**9} | UNITS
_LENGTH = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(w|d|h|min|s|ms|us|ns)\s*", re.IGNORECASE)
_ZONE = re.compile(r"(?:Z|[+-]\d\d:?\d\d)$", re.IGNORECASE)
_WHOLE = re.compile(r"[+-]?\d{1,18}")
_READABLE = "Times are numbers, dates, or ISO text such as 2026-01-31T12:00:00."


@dataclass(frozen=True, eq=False)
class Clock:
    """`values` to compare (int64 or float64); where `missing`, they mean nothing.

    `kind`: "number", "plain" (dates without a zone) or "zoned"; `tick`: nanoseconds of one unit, if known.
    """

    values: Array
    missing: Bool
    kind: str
    tick: int | None

    def at(self, border: Any, *, what: str = "at") -> int | float:
        """A border as a number of this clock: the first one not before it."""
        if _is_number(border):
            if self.kind != "number":
                raise SplitError(
                    f"{what}={border!r} is a number, the times are dates.", hint=f"Pass {what}='2026-01-31'."
                )
            return border if isinstance(border, int) else float(border)
        if self.tick is None:
            raise SplitError(
                f"{what}={border!r} is a date, the times are numbers.",
                hint=f"Pass {what}= as such a number, or say what they count since 1970: unit='s', 'ms', ….",
            )
        stamp = _stamp(border, what)
        zoned = stamp.tzinfo is not None
        if self.kind != "number" and zoned != (self.kind == "zoned"):
            told = ("has a time zone", "have none") if zoned else ("has no time zone", "have one")
            raise SplitError(
                f"{what}={border!r} {told[0]} and the times {told[1]}.",
                hint="Write both the same way; '2026-01-31T00:00:00+00:00' has a time zone.",
            )
        return -(-int(stamp.value) // self.tick)

    def length(self, given: Any, *, what: str) -> int | float:
        """A length of time as a number of this clock."""
        if _is_number(given):
            if self.kind != "number":
                raise SplitError(
                    f"{what}={given!r} is a number, the times are dates.", hint=f"Pass {what}='7d'."
                )
            made: int | float = given if isinstance(given, int) else float(given)
        else:
            if self.tick is None:
                raise SplitError(
                    f"{what}={given!r} is a length of time, the times are plain numbers.",
                    hint=f"Pass {what}= as such a number, or say what they count: unit='s' (or ms, us, ns).",
                )
            made = _nanoseconds(given, what) // self.tick
        if not made > 0:
            raise SplitError(f"{what}={given!r} is not longer than nothing.", hint=f"Pass {what}='7d'.")
        return made

    def shown(self, value: Any) -> str:
        """A value of this clock as a person would write it."""
        if self.kind == "number":
            return f"{value:g}" if isinstance(value, float | np.floating) else str(int(value))
        import pandas as pd

        return str(pd.Timestamp(int(value) * (self.tick or 1), tz="UTC" if self.kind == "zoned" else None))


def _nanoseconds(given: Any, what: str) -> int:
    found = _LENGTH.fullmatch(given) if isinstance(given, str) else None
    if found is not None:
        return int(Fraction(found[1]) * _LENGTHS[found[2].lower()])
    import pandas as pd

    try:
        return int(pd.Timedelta(given).value)
    except (ValueError, TypeError) as error:
        raise SplitError(f"{what}={given!r} is no length of time.", hint=f"Pass {what}='7d'.") from error


def clock_of(column: Any, name: str, *, unit: str | None = None) -> Clock:
    """Read a column of times: a narwhals series or an array."""
    if unit is not None and unit not in UNITS:
        raise SplitError(f"unit={unit!r} is not a unit of time.", hint=f"Units are {', '.join(UNITS)}.")
    made = _of_array(np.asarray(column), name) if isinstance(column, np.ndarray) else _of_series(column, name)
    if made.kind == "number":
        made = replace(made, tick=UNITS.get(unit or ""))
    infinite = made.values.dtype.kind == "f" and bool(np.isinf(made.values).any())
    if infinite:
        row = int(np.argmax(np.isinf(made.values)))
        raise InputError("the time is infinite.", table="data", column=name, row=row, hint=_READABLE)
    return made


def seconds_of(times: Array, name: str = "time") -> Float:
    """Times as numbers: seconds since 1970 where they are dates in any spelling; NaN where one is missing.

    >>> seconds_of(np.array(["1970-01-01T01:00:05+01:00", ""], dtype=object)).tolist()
    [5.0, nan]
    """
    clock = clock_of(np.asarray(times), name)
    scale = 1.0 if clock.kind == "number" else (clock.tick or 1) / UNITS["s"]
    return np.where(clock.missing, np.nan, clock.values * scale)


def _of_series(series: Any, name: str) -> Clock:
    import narwhals.stable.v2 as nw

    if series.dtype == nw.Date:
        series = series.cast(nw.Datetime("us"))
    if isinstance(series.dtype, nw.Datetime):
        missing = series.is_null().to_numpy().astype(bool)
        unit = {"s": "ms"}.get(series.dtype.time_unit, series.dtype.time_unit)
        counted = series.dt.timestamp(unit)
        values = (counted.fill_null(0) if missing.any() else counted).to_numpy().astype(np.int64)
        zoned = series.dtype.time_zone is not None
        return Clock(values, missing, "zoned" if zoned else "plain", UNITS[unit])
    if series.dtype.is_integer():
        missing = series.is_null().to_numpy().astype(bool)
        return _of_array((series.fill_null(0) if missing.any() else series).to_numpy(), name, missing)
    if series.dtype.is_float():
        return _of_array(series.to_numpy(), name)
    if series.dtype in (nw.Categorical, nw.Enum):
        series = series.cast(nw.String)
    return _of_objects(series.to_list(), name)


def _of_array(values: Array, name: str, missing: Bool | None = None) -> Clock:
    if values.dtype.kind in "iu":
        if values.dtype.kind == "u" and len(values) and int(values.max()) >= 1 << 63:
            raise InputError("a time lies outside 64 bits.", table="data", column=name, hint=_READABLE)
        none = np.zeros(len(values), dtype=bool)
        return Clock(
            values.astype(np.int64, copy=False), none if missing is None else missing, "number", None
        )
    if values.dtype.kind == "f":
        return Clock(values.astype(np.float64, copy=False), np.isnan(values), "number", None)
    if values.dtype.kind == "M":
        absent = np.isnat(values)
        counted = values.astype("datetime64[us]") if np.datetime_data(values.dtype)[0] != "ns" else values
        tick = 1 if counted is values else UNITS["us"]
        return Clock(np.where(absent, 0, counted.astype(np.int64)), absent, "plain", tick)
    if values.dtype.kind in "OUT":
        return _of_objects(values.tolist(), name)
    raise ColumnError(f"times came as {values.dtype}.", table="data", column=name, hint=_READABLE)


def _of_objects(values: list[Any], name: str) -> Clock:
    """Python objects: text, dates or numbers, all of one kind; None, NaN, NaT and "" are missing."""
    missing = np.fromiter((_is_missing(v) for v in values), dtype=bool, count=len(values))
    kinds = {type(v) for v, absent in zip(values, missing.tolist(), strict=True) if not absent}
    if not kinds:
        return Clock(np.zeros(len(values), dtype=np.int64), missing, "number", None)
    if all(issubclass(kind, str) for kind in kinds):
        return _of_texts(values, missing, name)
    if all(issubclass(kind, int | float | np.number) and kind is not bool for kind in kinds):
        numbers = np.array([0 if m else v for v, m in zip(values, missing.tolist(), strict=True)])
        return Clock(numbers, missing, "number", None)
    if all(issubclass(kind, dt.date | np.datetime64) for kind in kinds):
        zones = {
            getattr(v, "tzinfo", None) is not None for v, m in zip(values, missing, strict=True) if not m
        }
        _refuse_mixed(zones, name)
        return _stamped(values, missing, name, zoned=zones == {True})
    told = ", ".join(sorted(kind.__name__ for kind in kinds))
    verb = "are a mixture of" if len(kinds) > 1 else "came as"
    raise ColumnError(f"times {verb} {told}.", table="data", column=name, hint=_READABLE)


def _of_texts(values: list[Any], missing: Bool, name: str) -> Clock:
    texts = ["" if absent else v.strip() for v, absent in zip(values, missing.tolist(), strict=True)]
    present = [text for text in texts if text]
    if all(map(_WHOLE.fullmatch, present)):
        return Clock(np.array([int(text or 0) for text in texts], dtype=np.int64), missing, "number", None)
    try:
        numbers = np.array([float(text or "nan") for text in texts])
    except ValueError:
        zones = {_ZONE.search(text) is not None and ":" in text for text in set(present)}
        _refuse_mixed(zones, name)
        return _stamped(texts, missing, name, zoned=zones == {True})
    return Clock(numbers, missing, "number", None)


def _stamped(values: list[Any], missing: Bool, name: str, *, zoned: bool) -> Clock:
    import pandas as pd

    given = pd.Series(
        [None if absent else v for v, absent in zip(values, missing.tolist(), strict=True)], dtype=object
    )
    try:
        made = pd.to_datetime(
            given, format="ISO8601" if isinstance(values[int(np.argmin(missing))], str) else None, utc=zoned
        )
    except (ValueError, TypeError, OverflowError) as error:
        row = next((i for i, v in enumerate(given) if v is not None and not _parses(v)), 0)
        raise InputError(
            f"the time {values[row]!r} cannot be read.", table="data", column=name, row=row, hint=_READABLE
        ) from error
    plain = made.dt.tz_convert(None) if zoned else made
    counted = plain.to_numpy().astype("datetime64[ns]").astype(np.int64)
    return Clock(np.where(missing, 0, counted), missing, "zoned" if zoned else "plain", 1)


def _refuse_mixed(zones: set[bool], name: str) -> None:
    if len(zones) > 1:
        raise InputError(
            "some times have a time zone and some have none, so they have no order.",
            table="data",
            column=name,
            hint="Give all of them a zone, or take it from all of them.",
        )


def _stamp(border: Any, what: str) -> Any:
    import pandas as pd

    try:
        made: Any = pd.Timestamp(border)
    except (ValueError, TypeError) as error:
        raise SplitError(f"{what}={border!r} is no date.", hint=f"Pass {what}='2026-01-31'.") from error
    if made is pd.NaT:
        raise SplitError(f"{what}={border!r} is no date.", hint=f"Pass {what}='2026-01-31'.")
    return made.as_unit("ns")


def _parses(value: Any) -> bool:
    import pandas as pd

    try:
        pd.to_datetime([value], format="ISO8601" if isinstance(value, str) else None)
    except (ValueError, TypeError, OverflowError):
        return False
    return True


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _is_missing(value: Any) -> bool:
    if value is None or (isinstance(value, str) and not value.strip()):
        return True
    try:
        return bool(value != value)  # noqa: PLR0124 - NaN and NaT are not themselves
    except (TypeError, ValueError):
        return False
