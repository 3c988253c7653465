"""Python in a process of its own, and tables that are large enough for it to take a while."""

from __future__ import annotations

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


def large_tables(folder: Path, n_users: int) -> None:
    """Ten places and four relevant items a user, in no order."""
    rng = np.random.default_rng(0)
    for name, n in (("lists", 10), ("truth", 4)):
        users = rng.permutation(np.repeat(np.arange(n_users), n))
        cells = {"user": users, "item": rng.integers(0, 5000, len(users))}
        if name == "lists":
            cells["score"] = rng.random(len(users)).astype(np.float32)
        pq.write_table(pa.table(cells), folder / f"{name}.parquet", row_group_size=1 << 17)
