"""The numbers of this machine and tree have the stored digests, to the last bit.

scripts/same_bytes.py compares all of them, in every way to compute them; the pieces here take some seconds.
After an intended change of a number, `make restate` stores the new digests, and the changelog names the
numbers that moved.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "scripts" / "same_values.py"
SLOW = {"all", "presets", "fusion"}


def test_the_numbers_have_their_stored_digests():
    stored = json.loads(SCRIPT.with_suffix(".json").read_text(encoding="utf-8"))
    setting = json.dumps({"pieces": "|".join(stored.keys() - SLOW)})
    found = subprocess.run([sys.executable, SCRIPT, setting, "--digest"], capture_output=True, check=True)
    assert {name: digest for name, digest in json.loads(found.stdout).items() if name != "all"} == {
        name: digest for name, digest in stored.items() if name not in SLOW
    }
