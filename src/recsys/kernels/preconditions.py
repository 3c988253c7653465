"""Checks before a kernel may read the arrays; the backends rely on them and check no more."""

from __future__ import annotations

from typing import Any

import numpy as np

from recsys.errors import InputError
from recsys.kernels.kernel_results import Csr


def as_rows(name: str, indptr: Any, items: Any, n_cases: int | None = None) -> Csr:
    """CSR rows as contiguous (int64 indptr, int32 items); an error names a wrong type or shape."""
    starts = np.asarray(indptr)
    if starts.size and starts.dtype.kind not in "iu":
        raise InputError(f"{name}: indptr is {starts.dtype}, expected int64.", table=name)
    starts = np.ascontiguousarray(starts, dtype=np.int64)
    codes = np.asarray(items)
    if codes.dtype != np.int32:
        codes = _as_int32(name, codes)
    codes = np.ascontiguousarray(codes)
    if starts.ndim != 1 or codes.ndim != 1 or starts.size == 0:
        raise InputError(
            f"{name}: indptr and items must be one-dimensional, indptr with n + 1 entries.", table=name
        )
    if n_cases is not None and starts.size != n_cases + 1:
        raise InputError(
            f"{name}: indptr has {starts.size} entries for {n_cases} cases, expected {n_cases + 1}.",
            table=name,
        )
    if starts[0] != 0 or starts[-1] != codes.size or bool(np.any(starts[1:] < starts[:-1])):
        raise InputError(
            f"{name}: indptr must rise from 0 to the number of items ({codes.size}); "
            f"it runs from {starts[0]} to {starts[-1]}.",
            table=name,
        )
    return starts, codes


def _as_int32(name: str, codes: Any) -> Any:
    if codes.size and not np.issubdtype(codes.dtype, np.integer):
        raise InputError(f"{name}: items are {codes.dtype}, expected int32 codes.", table=name)
    limits = np.iinfo(np.int32)
    if codes.size and (codes.min() < limits.min or codes.max() > limits.max):
        raise InputError(f"{name}: an item code does not fit int32.", table=name)
    return codes.astype(np.int32)
