"""Arrays of what other libraries hand out; torch is never imported, tensors are known by what they offer."""

from __future__ import annotations

from typing import Any

import numpy as np

from recsys.types import Array


def as_array(values: Any) -> Array:
    """A NumPy array: tensors without their history and from any device, bfloat16 widened without loss.

    >>> as_array([1, 2]).tolist()
    [1, 2]
    """
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        values = values.float() if str(values.dtype) == "torch.bfloat16" else values
    array: Array = np.asarray(values)
    plain = array.dtype.kind in "biufO"  # bfloat16 is none of NumPy's own kinds, and asking for names is slow
    return array if plain or array.dtype.name != "bfloat16" else array.astype(np.float32)
