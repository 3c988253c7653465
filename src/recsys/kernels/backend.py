"""The backends of the kernels: what each can run, and which one a call uses.

A backend is one file that makes a `Backend` and puts it into `BACKENDS`; another package names such a module
as an entry point in the group "recsys.backends". All backends give the same arrays to the last bit.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from recsys.errors import InputError, RecsysError, UnknownNameError
from recsys.kernels.kernel_results import Bools, Csr, Factors, Int64s, Matches, ScanResult
from recsys.kernels.scan_problem import ScanProblem
from recsys.types import Registry

# More threads would only wait for each other; the number must also fit a C int.
MAX_THREADS = 1 << 10
MAX_MEMORY_BUDGET = 1 << 62
# With fewer entries a second thread costs more than it saves.
ENTRIES_PER_THREAD = 2_000_000
PRUNE_MODES: dict[bool | str, int] = {False: 0, True: 1, "auto": 2}


@dataclass(frozen=True, eq=False)
class ScoreProblem:
    """Inputs of one ranking of given scores: types and shapes are known, values are in range."""

    scores: Factors
    """One row per case, one column per item."""
    candidate: Bools
    k: int
    """Places of a list; 0 for no lists."""
    truth: Csr
    item_rank: Int64s
    """Among equal scores the smaller rank comes first."""


@dataclass(frozen=True)
class Execution:
    """How a kernel runs; the result does not depend on it."""

    threads: int | None = None
    """None for as many as pay off."""
    memory_budget: float = 64 << 20
    """Bytes of working memory, besides inputs and results."""
    prune: bool | Literal["auto"] = "auto"
    cpu_level: str | None = None

    def __post_init__(self) -> None:
        threads: Any = self.threads
        is_whole = isinstance(threads, int | np.integer) and not isinstance(threads, bool)
        if threads is not None and not (is_whole and threads >= 1):
            raise InputError(
                f"threads is {threads!r}.", hint="Give a whole number from 1, or None for all cores."
            )
        budget: Any = self.memory_budget
        is_number = isinstance(budget, int | float | np.integer | np.floating)
        if not (is_number and 0 <= budget <= MAX_MEMORY_BUDGET):
            raise InputError(f"memory_budget is {budget!r}.", hint="Give a number of bytes.")
        prune: Any = self.prune
        if not isinstance(prune, bool | str) or prune not in PRUNE_MODES:
            raise UnknownNameError("prune", prune, ("True", "False", "auto"))
        if not isinstance(self.cpu_level, str | None):
            raise InputError(f"cpu_level is {self.cpu_level!r}; expected a name, or None for the best one.")

    def n_threads(self, n_entries: int | None = None) -> int:
        """The given number of threads, or one per core this process may use, if so many entries pay off."""
        if self.threads is not None:
            return min(int(self.threads), MAX_THREADS)
        try:
            n_cores = max(1, len(os.sched_getaffinity(0)))
        except AttributeError:
            n_cores = max(1, os.cpu_count() or 1)
        return n_cores if n_entries is None else min(n_cores, 1 + n_entries // ENTRIES_PER_THREAD)


@dataclass(frozen=True, eq=False)
class Backend:
    """One way to run the kernels. A kernel it does not have is run by the backend that "auto" stands for."""

    name: str
    why_not: Callable[[], str | None]
    """Why it cannot be used on this machine; None where it can."""
    match_lists: Callable[[Csr, Csr, Execution], Matches] | None = None
    scan: Callable[[ScanProblem, Execution], ScanResult] | None = None
    rank_scores: Callable[[ScoreProblem, Execution], ScanResult] | None = None
    preference: int = 0
    """"auto" stands for the usable backend with the highest one; 0: only on demand."""


BACKENDS: Registry[Backend] = Registry("backend", "recsys.backends")


def kernel_of(name: Any, kernel: Literal["match_lists", "scan", "rank_scores"]) -> Callable[..., Any]:
    """The function that runs a kernel on the backend of this name, or on the one that "auto" stands for."""
    if name != "auto":
        if not isinstance(name, str) or (name not in BACKENDS and name not in BACKENDS.load_plugins()):
            raise UnknownNameError("backend", name, ("auto", *BACKENDS))
        if reason := BACKENDS[name].why_not():
            raise RecsysError(
                f"backend={name!r} was asked for, but {reason}.",
                hint="Use backend='auto'; the result is the same bits everywhere.",
            )
        chosen: Callable[..., Any] | None = getattr(BACKENDS[name], kernel)
        if chosen is not None:
            return chosen
    by_preference = sorted(BACKENDS.values(), key=lambda backend: -backend.preference)
    usable = (getattr(b, kernel) for b in by_preference if b.preference > 0 and b.why_not() is None)
    best: Callable[..., Any] = next(run for run in usable if run is not None)
    return best
