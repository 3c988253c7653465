"""The state of floating-point arithmetic, which other libraries may have changed for this thread.

Flushing subnormal numbers to zero (torch.set_flush_denormal, libraries compiled with -ffast-math) changes
scores. The compiled kernels set the state themselves; NumPy has no function for it, but the C library has.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

# The size of the C type fenv_t is 8 to 32 bytes on all known platforms.
ENVIRONMENT_BYTES = 256


@contextmanager
def exact_floats() -> Iterator[None]:
    """Round to nearest and keep subnormal numbers, for this thread, within the block."""
    environment = _math_library()
    if environment is None:
        yield
        return
    library, default = environment
    before = ctypes.create_string_buffer(ENVIRONMENT_BYTES)
    library.fegetenv(before)
    library.fesetenv(default)
    try:
        yield
    finally:
        library.fesetenv(before)


@cache
def _math_library() -> tuple[Any, Any] | None:
    """The C library and its default environment; None on platforms without access to it."""
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
