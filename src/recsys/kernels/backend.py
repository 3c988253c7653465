"""Which backend runs: the compiled kernels where they are installed and load, NumPy otherwise.

The choice is made per call: every call may name its backend, and tests may name the CPU level.
"""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Literal, NamedTuple

import numpy as np

from recsys.errors import InputError, RecsysError, UnknownNameError

BackendName = Literal["auto", "native", "reference", "cuda"]
# More threads would only wait for each other; the number must also fit a C int.
MAX_THREADS = 1 << 10
NAMES = ("auto", "native", "reference", "cuda")


class Backends(NamedTuple):
    """The backend in use, and why."""

    in_use: str
    native: bool
    cpu_level: str | None
    cpu_levels: tuple[str, ...]
    why: str
    gpu: str

    def __str__(self) -> str:
        levels = f"\nCPU levels: {', '.join(self.cpu_levels)}" if self.cpu_levels else ""
        return f"in use: {self.in_use}, because {self.why}{levels}\ncuda: {self.gpu}"

    def __repr__(self) -> str:
        return str(self)


@cache
def _load() -> tuple[ModuleType | None, str]:
    try:
        module = import_module("recsys.kernels._native")
    except ImportError as error:
        return None, f"the compiled kernels cannot be imported ({error}), so NumPy does the work"
    return module, "the compiled kernels are installed"


def native_module(backend: str) -> Any:
    """The compiled module if this call uses it, None if NumPy does the work."""
    if backend not in NAMES:
        raise UnknownNameError("backend", backend, NAMES)
    if backend == "reference":
        return None
    module, why = _load()
    if module is None and backend == "native":
        raise RecsysError(f"backend='native' was asked for, but {why}.", hint="Use backend='auto'.")
    return module


def backends() -> Backends:
    """Say which backend `auto` stands for on this machine, and why."""
    module, why = _load()
    reason = why_no_gpu()
    gpu = f"not usable, because {reason}" if reason else "usable; ask for it with backend='cuda'"
    if module is None:
        return Backends("reference", False, None, (), why, gpu)
    levels = tuple(module.cpu_levels())
    return Backends("native", True, levels[-1], levels, f"{why}; this CPU runs the {levels[-1]} tile", gpu)


@cache
def why_no_gpu() -> str | None:
    """Why backend="cuda" cannot be used here; None where it can."""
    for name in ("torch", "triton"):
        if find_spec(name) is None:
            return f"{name} is not installed"
    return None if import_module("torch").cuda.is_available() else "torch sees no GPU"


def n_threads(threads: Any) -> int:
    """The given number of threads, or one per core this process may use."""
    if threads is None:
        try:
            return max(1, len(os.sched_getaffinity(0)))
        except AttributeError:
            return max(1, os.cpu_count() or 1)
    if isinstance(threads, bool) or not isinstance(threads, int | np.integer) or threads < 1:
        raise InputError(
            f"threads is {threads!r}.", hint="Give a whole number from 1, or None for all cores."
        )
    return min(int(threads), MAX_THREADS)
