"""Values as JSON can hold them: for files, manifests and whatever a result is printed as."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from typing import Any


def json_value(value: Any) -> Any:
    """Return a value as JSON can hold it, nested ones included.

    A number that is not finite becomes None, a duration its seconds, a function its name, and what JSON does
    not know its text.

    >>> import numpy as np
    >>> json_value({"top": (np.float64(0.5), float("nan")), 3: {"a"}})
    {'top': [0.5, None], '3': ['a']}
    """
    if hasattr(value, "tolist"):  # of NumPy: a number, or an array
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): json_value(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [json_value(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, dt.timedelta):
        return f"{value.total_seconds()}s"
    if callable(value):
        return f"{getattr(value, '__module__', '?')}.{getattr(value, '__qualname__', repr(value))}"
    return str(value)


def none_if_nan(value: float) -> float | None:
    """Return a number, None if it is not defined."""
    return None if math.isnan(value) else value


def json_rows(columns: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return the rows of a table as JSON values.

    >>> json_rows({"model": ["als", "bpr"], "value": [0.5, float("nan")]})
    [{'model': 'als', 'value': 0.5}, {'model': 'bpr', 'value': None}]
    """
    cells = zip(*(json_value([*column]) for column in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in cells]
