"""NumPy arrays from other libraries; torch is never imported, tensors are recognised by their methods."""

from __future__ import annotations

from typing import Any

import numpy as np

from recsys.types import Array


def as_array(values: Any) -> Array:
    """A NumPy array: tensors are detached and copied from any device, bfloat16 is widened without loss.

    >>> as_array([1, 2]).tolist()
    [1, 2]
    """
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        values = values.float() if str(values.dtype) == "torch.bfloat16" else values
    array: Array = np.asarray(values)
    is_native = array.dtype.kind in "biufO"  # bfloat16 is not a NumPy kind; dtype.name is slow
    return array if is_native or array.dtype.name != "bfloat16" else array.astype(np.float32)
