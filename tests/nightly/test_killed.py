"""An evaluation beyond memory that is killed at any point and started again comes to the same bits."""

from __future__ import annotations

import json
import subprocess
import time

import numpy as np
import pytest

from worlds.processes import large_tables, run_python

pytest.importorskip("duckdb")


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("how", ["tables", "factors"])
def test_killed_at_any_point_and_resumed_it_comes_to_the_same(tmp_path, record_property, how):
    n_users, n_kills = (200_000, 100) if how == "tables" else (20_000, 20)
    large_tables(tmp_path, n_users)
    code = """
import sys, numpy as np, pathlib, recsys
from recsys.evaluation.in_pieces import out_of_core
folder, out, checkpoint, how = map(pathlib.Path, sys.argv[1:5])
out_of_core._BYTES_PER_ROW, out_of_core._FEW_SCANS, out_of_core._PIECE_USERS = 1500, 1, 1000
lists = str(folder / "lists.parquet")
if str(how) == "factors":
    rng = np.random.default_rng(0)
    lists = recsys.Factors(rng.standard_normal((20_000, 8)), rng.standard_normal((5000, 8)))
kept = {} if str(checkpoint) == "none" else {"checkpoint": checkpoint}
print("start", flush=True)
metrics = ["recall@10", "ndcg@10", "mrr@10", "coverage@10"]
found = recsys.evaluate(lists, str(folder / "truth.parquet"), metrics,
    memory="1GB", per_user=out, ids="auto", **kept)
print(found.to_json(indent=None), flush=True)
"""
    begun = time.monotonic()
    with run_python(code, tmp_path, tmp_path / "whole", "none", how) as process:
        assert process.stdout is not None
        process.stdout.readline()
        after_start = time.monotonic()
        out, errors = process.communicate()
    assert process.returncode == 0, errors.decode()
    seconds = time.monotonic() - after_start
    expected = json.loads(out)
    content = json.loads((tmp_path / "whole" / "manifest.json").read_text())["content"]
    rng = np.random.default_rng(int(begun))
    killed = finished = 0
    while killed < n_kills or (tmp_path / "checkpoint").exists():
        limit = float(rng.uniform(0, 1.2 * seconds)) if killed < n_kills else None
        with run_python(code, tmp_path, tmp_path / "out", tmp_path / "checkpoint", how) as process:
            assert process.stdout is not None
            process.stdout.readline()
            try:
                out, errors = process.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                killed += 1
                continue
        assert process.returncode == 0, errors.decode()
        finished += 1
        assert json.loads(out)["sha256"] == expected["sha256"]
        assert json.loads((tmp_path / "out" / "manifest.json").read_text())["content"] == content
        assert not (tmp_path / "checkpoint").exists()
    assert finished
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    for name, fact in {"killed": killed, "finished": finished, "seconds of a run": seconds}.items():
        record_property(name, fact)
