"""The state of floating-point arithmetic, which other libraries may have changed for this thread.

Flushing subnormal numbers to zero (torch.set_flush_denormal, libraries compiled with -ffast-math) changes
scores. The compiled kernels see to it themselves; NumPy has no word for it, but the C library has.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

# An environment is 8 to 32 bytes on the platforms there are.
ENVIRONMENT_BYTES = 256


@contextmanager
def exact_floats() -> Iterator[None]:
    """Round to nearest and keep subnormal numbers, for this thread and for as long as the block lasts."""
    found = _library()
    if found is None:
        yield
        return
    library, default = found
    before = ctypes.create_string_buffer(ENVIRONMENT_BYTES)
    library.fegetenv(before)
    library.fesetenv(default)
    try:
        yield
    finally:
        library.fesetenv(before)


@cache
def _library() -> tuple[Any, Any] | None:
    """The C library and its default environment; None where there is no way to ask for it."""
    names = {"linux": "libm.so.6", "darwin": None}
    if sys.platform not in names:
        return None
    try:
        library = ctypes.CDLL(names[sys.platform])
        if sys.platform == "darwin":
            return library, ctypes.byref(ctypes.c_char.in_dll(library, "_FE_DFL_ENV"))
    except (OSError, ValueError):
        return None
    return library, ctypes.c_void_p(-1)
