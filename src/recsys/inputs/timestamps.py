"""A column of times as numbers that can be compared, and borders in the same numbers.

Times are whole or decimal numbers, dates and times with or without a time zone, or text that is one of these.
A column that mixes times with and without a zone has no order and is refused. Nothing is assumed about the
unit of numbers: a date as the border of a numeric column needs `unit=`.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from recsys.errors import ColumnError, Fix, InputError, Phrase, SplitError
from recsys.inputs.ids import refuse_masked
from recsys.inputs.rows import PLAIN_NUMBER
from recsys.records.arrays import Array, Bool, Float

UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_NANOSECONDS_PER = {"w": 604_800 * 10**9, "d": 86_400 * 10**9, "h": 3600 * 10**9, "min": 60 * 10**9} | UNITS
_LENGTH_TEXT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(w|d|h|min|s|ms|us|ns)\s*", re.IGNORECASE)
_ZONE_SUFFIX = re.compile(r"(?:Z|[+-]\d\d:?\d\d)$", re.IGNORECASE)
_INTEGER_TEXT = re.compile(r"[+-]?[0-9]+")
_MISSING_TEXTS = ("", "nan", "nat")  # in any case; str() writes so what is missing
_INT64 = np.iinfo(np.int64)
_FORMATS_HINT = "Times are numbers, dates, or ISO text such as 2026-01-31T12:00:00."


@dataclass(frozen=True, eq=False)
class Clock:
    """Times as comparable `values` (int64 or float64), which mean nothing where `missing`.

    `kind`: "number", "plain" (dates without a zone) or "zoned"; `tick`: nanoseconds per unit, if known.
    """

    values: Array
    missing: Bool
    kind: str
    tick: int | None

    def at(self, border: Any, *, what: str = "at") -> int | float:
        """Return a border in the unit of this clock, rounded up to the next whole number."""
        came, hint = Fix(what, border, of="split"), Phrase("Pass {}.", Fix(what, "2026-01-31", of="split"))
        if _is_number(border):
            if self.kind != "number":
                raise SplitError(Phrase("{} is a number, the times are dates.", came), hint=hint)
            return int(border) if isinstance(border, int | np.integer) else float(border)
        if self.tick is None:
            raise SplitError(
                Phrase("{} is a date, the times are numbers.", came),
                hint=Phrase("Pass a number, or what they count since 1970: {split.unit='s'} (ms, us, ns)."),
            )
        import pandas as pd

        try:
            timestamp: Any = pd.Timestamp(border)
        except (ValueError, TypeError):
            timestamp = pd.NaT
        if timestamp is pd.NaT:
            raise SplitError(Phrase("{} is not a date.", came), hint=hint)
        zoned = timestamp.tzinfo is not None
        if self.kind != "number" and zoned != (self.kind == "zoned"):
            has, have = ("a", "none") if zoned else ("no", "one")
            raise SplitError(
                Phrase("{} has {} time zone and the times have {}.", came, has, have),
                hint="Write both the same way; '2026-01-31T00:00:00+00:00' has a time zone.",
            )
        date = timestamp.tz_convert(None) if zoned else timestamp
        nanoseconds = int(date.asm8.astype(np.int64)) * UNITS[date.unit]
        # No time of this clock is beyond 64 bits, so a border there may be the last one.
        return min(max(-(-nanoseconds // self.tick), int(_INT64.min)), int(_INT64.max))

    def length(self, length: Any, *, what: str) -> int | float:
        """Return a length of time in the unit of this clock; `what` is the parameter that errors name."""
        came, hint = Fix(what, length, of="split"), Phrase("Pass {}.", Fix(what, "7d", of="split"))
        if _is_number(length):
            if self.kind != "number":
                raise SplitError(Phrase("{} is a number, the times are dates.", came), hint=hint)
            span: int | float = int(length) if isinstance(length, int | np.integer) else float(length)
        else:
            if self.tick is None:
                raise SplitError(
                    Phrase("{} is a length of time, the times are plain numbers.", came),
                    hint=Phrase("Pass a number, or what they count: {split.unit='s'} (ms, us, ns)."),
                )
            match = _LENGTH_TEXT.fullmatch(length) if isinstance(length, str) else None
            if match is not None:
                nanoseconds = int(Fraction(match[1]) * _NANOSECONDS_PER[match[2].lower()])
            else:
                import pandas as pd

                try:
                    nanoseconds = int(pd.Timedelta(length).value)
                except (ValueError, TypeError, OverflowError) as error:
                    raise SplitError(Phrase("{} is not a length of time.", came), hint=hint) from error
            span = nanoseconds // self.tick
        if not 0 < span < int(_INT64.max):
            raise SplitError(Phrase("{} is not a positive length of time of 64 bits.", came), hint=hint)
        return span

    def shown(self, value: Any) -> str:
        """Return a value of this clock as text."""
        if self.kind == "number":
            return f"{value:g}" if isinstance(value, float | np.floating) else str(int(value))
        import pandas as pd

        unit = next(unit for unit, tick in UNITS.items() if tick == (self.tick or 1))
        date: Any = np.array(int(value)).astype(f"datetime64[{unit}]")[()]
        return str(pd.Timestamp(date, tz="UTC" if self.kind == "zoned" else None))

    def in_ticks(self, tick: int) -> Array:
        """Return the values in units of `tick` nanoseconds, at most as long as the unit of this clock."""
        if self.tick is None or self.tick == tick:
            return self.values
        factor = self.tick // tick
        last = int(_INT64.max) // factor
        outside = ~self.missing & ((self.values > last) | (self.values < -last))
        if outside.any():
            row = int(np.argmax(outside))
            raise InputError(
                f"the time {self.shown(self.values[row])} cannot be compared with times in nanoseconds, "
                "which lie between 1677 and 2262.",
                column="time",
                row=row,
                hint="Bring all tables to microseconds or seconds: times.astype('datetime64[us]').",
            )
        return self.values * factor


def read_times(column: Any, name: str, *, unit: str | None = None) -> Clock:
    """Read a column of times, a narwhals series or an array; `unit` is that of numbers."""
    if unit is not None and unit not in UNITS:
        raise SplitError(
            Phrase("{split.unit=} is not a unit of time.", unit=unit), hint=f"Units are {', '.join(UNITS)}."
        )
    if isinstance(column, np.ndarray):
        refuse_masked(column, table="data")
        clock = _array_clock(np.asarray(column), name)
    else:
        clock = _series_clock(column, name)
    if clock.kind == "number":
        clock = replace(clock, tick=UNITS.get(unit or ""))
    if clock.values.dtype.kind == "f" and bool(np.isinf(clock.values).any()):
        row = int(np.argmax(np.isinf(clock.values)))
        raise InputError("the time is infinite.", table="data", column=name, row=row, hint=_FORMATS_HINT)
    return clock


def to_seconds(times: Array) -> Float:
    """Times as numbers: dates in any spelling as seconds since 1970, NaN where missing.

    >>> to_seconds(np.array(["1970-01-01T01:00:05+01:00", ""], dtype=object)).tolist()
    [5.0, nan]
    """
    clock = read_times(np.asarray(times), "time")
    scale = 1.0 if clock.kind == "number" else (clock.tick or 1) / UNITS["s"]
    return np.where(clock.missing, np.nan, clock.values * scale)


def _series_clock(series: Any, name: str) -> Clock:
    import narwhals.stable.v2 as nw

    if series.dtype == nw.Date:
        series = series.cast(nw.Datetime("us"))
    if isinstance(series.dtype, nw.Datetime):
        missing = series.is_null().to_numpy().astype(bool)
        unit = {"s": "ms"}.get(series.dtype.time_unit, series.dtype.time_unit)
        ticks = series.dt.timestamp(unit)
        values = (ticks.fill_null(0) if missing.any() else ticks).to_numpy().astype(np.int64)
        zoned = series.dtype.time_zone is not None
        return Clock(values, missing, "zoned" if zoned else "plain", UNITS[unit])
    if series.dtype.is_integer() and "128" not in str(series.dtype):
        missing = series.is_null().to_numpy().astype(bool)
        return _array_clock((series.fill_null(0) if missing.any() else series).to_numpy(), name, missing)
    if series.dtype.is_float():
        return _array_clock(series.to_numpy(), name)
    if series.dtype in (nw.Categorical, nw.Enum):
        series = series.cast(nw.String)
    return _object_clock(series.to_list(), name)


def _array_clock(values: Array, name: str, missing: Bool | None = None) -> Clock:
    if values.dtype.kind in "iu":
        if values.dtype.kind == "u" and len(values) and int(values.max()) >= 1 << 63:
            raise InputError("a time exceeds 64 bits.", table="data", column=name, hint=_FORMATS_HINT)
        no_missing = np.zeros(len(values), dtype=bool)
        return Clock(
            values.astype(np.int64, copy=False), no_missing if missing is None else missing, "number", None
        )
    if values.dtype.kind == "f":
        return Clock(values.astype(np.float64, copy=False), np.isnan(values), "number", None)
    if values.dtype.kind == "M":
        is_missing = np.isnat(values)
        unit = "ns" if np.datetime_data(values.dtype) == ("ns", 1) else "us"
        ticks = values.astype(f"datetime64[{unit}]", copy=False)
        changed = ~is_missing & (ticks.astype(values.dtype, copy=False) != values)
        if changed.any():
            row = int(np.argmax(changed))
            problem = f"the time {values[row]} is not a whole microsecond of the years before 292,000."
            raise InputError(problem, table="data", column=name, row=row, hint=_FORMATS_HINT)
        return Clock(np.where(is_missing, 0, ticks.astype(np.int64)), is_missing, "plain", UNITS[unit])
    if values.dtype.kind in "OUT":
        return _object_clock(values.tolist(), name)
    raise ColumnError(f"times came as {values.dtype}.", table="data", column=name, hint=_FORMATS_HINT)


def _object_clock(values: list[Any], name: str) -> Clock:
    """Python objects: text, dates or numbers, all of one kind; None, NaN, NaT, "", "nan" are missing."""
    missing = np.fromiter((_is_missing(v) for v in values), dtype=bool, count=len(values))
    kinds = {type(v) for v, is_missing in zip(values, missing.tolist(), strict=True) if not is_missing}
    if not kinds:
        return Clock(np.zeros(len(values), dtype=np.int64), missing, "number", None)
    if all(issubclass(kind, str) for kind in kinds):
        return _text_clock(values, missing, name)
    if all(issubclass(kind, int | float | np.number) and kind is not bool for kind in kinds):
        return _number_clock(
            [0 if m else v for v, m in zip(values, missing.tolist(), strict=True)], missing, name
        )
    if all(issubclass(kind, dt.date | np.datetime64) for kind in kinds):
        zones = {
            getattr(v, "tzinfo", None) is not None for v, m in zip(values, missing, strict=True) if not m
        }
        _refuse_mixed_zones(zones, name)
        return _parse_dates(values, missing, name, zoned=zones == {True})
    type_names = ", ".join(sorted(kind.__name__ for kind in kinds))
    verb = "are a mixture of" if len(kinds) > 1 else "came as"
    raise ColumnError(f"times {verb} {type_names}.", table="data", column=name, hint=_FORMATS_HINT)


def _text_clock(values: list[Any], missing: Bool, name: str) -> Clock:
    texts = ["" if is_missing else v.strip() for v, is_missing in zip(values, missing.tolist(), strict=True)]
    present = [text for text in texts if text]
    if all(map(_INTEGER_TEXT.fullmatch, present)):
        return _number_clock([int(text or 0) for text in texts], missing, name)
    if all(map(PLAIN_NUMBER.fullmatch, present)):
        numbers = [int(text or 0) if _INTEGER_TEXT.fullmatch(text or "0") else float(text) for text in texts]
        return _number_clock(numbers, missing, name)
    zones = {_ZONE_SUFFIX.search(text) is not None and ":" in text for text in set(present)}
    _refuse_mixed_zones(zones, name)
    return _parse_dates(texts, missing, name, zoned=zones == {True})


def _number_clock(numbers: list[Any], missing: Bool, name: str) -> Clock:
    """Return numbers kept exactly: whole ones in 64 bits, decimal ones in float64."""
    whole = all(isinstance(number, int | np.integer) for number in numbers)
    try:
        values = np.array(numbers, dtype=np.int64 if whole else np.float64)
    except (OverflowError, TypeError) as error:
        problem = "a time exceeds 64 bits or is not a number."
        raise InputError(problem, table="data", column=name, hint=_FORMATS_HINT) from error
    for row, number in enumerate(() if whole else numbers):
        if isinstance(number, int | np.integer) and int(number) != int(values[row]):
            raise InputError(
                f"the time {number} cannot be compared exactly with times that are decimal numbers.",
                table="data",
                column=name,
                row=row,
                hint="Write all times as whole numbers.",
            )
    return Clock(values, missing, "number", None)


def _parse_dates(values: list[Any], missing: Bool, name: str, *, zoned: bool) -> Clock:
    import pandas as pd

    series = pd.Series(
        [None if is_missing else v for v, is_missing in zip(values, missing.tolist(), strict=True)],
        dtype=object,
    )
    try:
        dates = pd.to_datetime(
            series, format="ISO8601" if isinstance(values[int(np.argmin(missing))], str) else None, utc=zoned
        )
    except (ValueError, TypeError, OverflowError) as error:
        fine = isinstance(error, pd.errors.OutOfBoundsDatetime)
        row = next((i for i, v in enumerate(series) if v is not None and not _is_date(v, fine=fine)), 0)
        problem = "lies outside 1677 to 2262, where times have nanoseconds" if fine else "cannot be read"
        hint = "Cut all times to microseconds, or bring this one into these years." if fine else _FORMATS_HINT
        if fine and pd.__version__.startswith("2."):  # which gives all of them nanoseconds
            hint = "Bring this one into these years, or install pandas 3, which reads others."
        raise InputError(
            f"the time {values[row]!r} {problem}.",
            table="data",
            column=name,
            row=row,
            hint=hint,
        ) from error
    relative = [i for i, v in enumerate(values) if isinstance(v, str) and v.lower() in ("now", "today")]
    if relative:
        problem = f"the time {values[relative[0]]!r} is another one each time it is read."
        raise InputError(problem, table="data", column=name, row=relative[0], hint=_FORMATS_HINT)
    plain = (dates.dt.tz_convert(None) if zoned else dates).to_numpy()
    exact = np.datetime_data(plain.dtype)[0] == "ns" and bool((plain.astype(np.int64)[~missing] % 1000).any())
    ticks = plain.astype("datetime64[ns]" if exact else "datetime64[us]").astype(np.int64)
    tick = UNITS["ns" if exact else "us"]
    return Clock(np.where(missing, 0, ticks), missing, "zoned" if zoned else "plain", tick)


def _refuse_mixed_zones(zones: set[bool], name: str) -> None:
    if len(zones) > 1:
        raise InputError(
            "some times have a time zone and some have none, so they have no order.",
            table="data",
            column=name,
            hint="Give all of them a zone, or remove it from all of them.",
        )


def _is_date(value: Any, *, fine: bool) -> bool:
    """Return whether a value is a date; `fine`: one that nanoseconds can hold."""
    import pandas as pd

    try:
        dates = pd.to_datetime([value], format="ISO8601" if isinstance(value, str) else None)
        if fine:
            dates.as_unit("ns")
    except (ValueError, TypeError, OverflowError):
        return False
    return True


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, int | float | np.integer | np.floating)
    return is_number and not isinstance(value, bool | np.timedelta64)  # NumPy calls a timedelta an integer


def _is_missing(value: Any) -> bool:
    if value is None or (isinstance(value, str) and value.strip().lower() in _MISSING_TEXTS):
        return True
    if getattr(value, "ndim", 0) > 0:  # tables and tensors among the times have errors of their own
        return False
    try:
        return bool(value != value)  # noqa: PLR0124 - NaN and NaT differ from themselves
    except Exception:  # noqa: BLE001 - nor is it known what other objects do
        return False
