"""At a few points, what scripts/faults.py shows at length: whoever is disturbed leaves no half file."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "scripts" / "faults.py"
PIECES = r"^(save|record|split|checkpoint) . (killed at a call|interrupted|full|unwritable|crowd)$"


@pytest.mark.skipif(sys.platform != "linux", reason="the faults are those of Linux")
@pytest.mark.skipif(shutil.which("cc") is None, reason="compiles a library that lets system calls fail")
@pytest.mark.timeout(600)
def test_whoever_is_disturbed_while_writing_leaves_the_old_or_the_new(tmp_path):
    pytest.importorskip("duckdb")
    done = subprocess.run(
        [sys.executable, SCRIPT, tmp_path / "pieces.jsonl", "--points", "2", "--only", PIECES],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "20 pieces" in done.stdout
