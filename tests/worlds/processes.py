"""Python in a process of its own, and tables that are large enough for it to take a while."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def run_python(code: str, *arguments: object, **options: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def cpu_of_children() -> float:
    """CPU seconds of the processes that this one started and waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def times_as_dear(code: str, other: str, **options: Any) -> float:
    """How often the CPU time of some code is that of another, each in its own process: best of three."""
    taken: dict[str, list[float]] = {code: [], other: []}
    for one in (code, *(code, other) * 3):  # the first turn compiles and reads from the disk
        before = cpu_of_children()
        subprocess.run([sys.executable, "-c", one], check=True, **options)
        taken[one].append(cpu_of_children() - before)
    return min(taken[code][1:]) / min(taken[other])


def large_tables(folder: Path, n_users: int) -> None:
    """Ten places and four relevant items a user, in no order."""
    rng = np.random.default_rng(0)
    for name, n in (("lists", 10), ("truth", 4)):
        users = rng.permutation(np.repeat(np.arange(n_users), n))
        cells = {"user": users, "item": rng.integers(0, 5000, len(users))}
        if name == "lists":
            cells["score"] = rng.random(len(users)).astype(np.float32)
        pq.write_table(pa.table(cells), folder / f"{name}.parquet", row_group_size=1 << 17)
