"""What every benchmark measures the same way: seconds of a call, and the facts of the machine."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any


def timed(work: Callable[[], object], rounds: int) -> dict[str, float]:
    """Median and best wall seconds, median CPU seconds."""
    wall, cpu = [], []
    for _ in range(rounds):
        began, spent = time.perf_counter(), time.process_time()
        work()
        wall.append(time.perf_counter() - began)
        cpu.append(time.process_time() - spent)
    return {"wall_s": statistics.median(wall), "best_s": min(wall), "cpu_s": statistics.median(cpu)}


def machine(*packages: str) -> dict[str, Any]:
    """Processor, load and the versions of some packages; None for one that is not there."""
    return {
        "cpu": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in packages},
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
