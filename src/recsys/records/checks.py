"""Checks of plain arguments: one number, whole numbers, names, numbers in any arrangement."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Real
from typing import Any

import numpy as np

from recsys.errors import InputError, came_as, check_choice
from recsys.records.arrays import Float


def check_choices(what: str, values: Any, allowed: Iterable[str]) -> list[str]:
    """Return a list of allowed names, from one name or several."""
    names = tuple(allowed)
    chosen = one_or_several(what, values, f"Name some of {', '.join(names)}.")
    for value in chosen:
        check_choice(what, value, names)
    return chosen


def one_or_several(what: str, values: Any, hint: str) -> list[Any]:
    """Return a list of one text or several; raise an error at anything else, such as a number."""
    if not isinstance(values, Iterable) or getattr(values, "ndim", 1) != 1:
        raise came_as(f"{what}s", values, hint=hint)
    return [values] if isinstance(values, str) else [*values]


def is_number(value: object) -> bool:
    """Return whether a value is one real number of Python or NumPy, and none that float64 cannot hold."""
    if not isinstance(value, Real):
        return False
    try:
        float(value)
    except (OverflowError, TypeError):  # NumPy's timedelta64 is an integer and not a number
        return False
    return True


def is_whole(value: object, least: int | None = None) -> bool:
    """Return whether a value is one whole number of Python or NumPy, of at least `least` and below 2^63.

    >>> is_whole(3, 1), is_whole(0, 1), is_whole(True), is_whole(3.0)
    (True, False, False, False)
    """
    if isinstance(value, bool | np.timedelta64) or not isinstance(value, int | np.integer):
        return False
    return least is None or least <= int(value) < 1 << 63


def to_floats(values: Any, what: str, hint: str | None = None) -> Float:
    """Return numbers in any arrangement as float64, NaN where masked; raise an error at anything else.

    >>> to_floats([[1, 2], [3, True]], "weights").tolist()
    [[1.0, 2.0], [3.0, 1.0]]
    """
    try:
        if isinstance(values, np.ma.MaskedArray):
            values = np.ma.filled(values.astype(np.float64), np.nan)
        array = np.asarray(values)
        if array.dtype.kind not in "mMc":  # NumPy would turn dates into numbers
            return array.astype(np.float64, copy=False)
        why = f"they are {array.dtype}"
    except Exception as error:  # noqa: BLE001 - tables and tensors have errors of their own
        why = str(error).rstrip(".")
    raise InputError(f"{what} must hold numbers: {why}.", hint=hint)


def check_seed(seed: object) -> int:
    """Return the seed as an int; raise an error if it is not a whole number: no manifest could repeat it."""
    if not is_whole(seed):
        raise InputError(f"seed={seed!r} is not a whole number.", hint="Pass a number, such as seed=7.")
    return int(seed)  # type: ignore[call-overload, no-any-return]
