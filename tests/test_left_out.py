"""The two commands run the same everywhere; no worker keeps much; the end says what was left out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
CASES = """
def test_frames(spark): ...
def test_page(browser): ...
def test_world(shared_dir): ...
def test_report(browser): ...
def test_numbers(): ...
"""


@pytest.mark.parametrize("workers", [0, 2])
def test_what_is_left_out_is_said_in_one_line_with_how_to_have_it(tmp_path, workers):
    (tmp_path / "test_cases.py").write_text(CASES)
    command = [sys.executable, "-m", "pytest"]
    options = ["-p", "conftest", "-n", str(workers), "--rootdir", tmp_path]
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | {
        "PATH": "", "PYTHONPATH": str(TESTS), "RECSYS_SHARED": str(tmp_path / "none"),
        "RECSYS_LEFT_OUT": str(tmp_path / "left-out"),
    }  # fmt: skip
    done = subprocess.run(
        [*command, *options, tmp_path],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("Tests left out")]
    assert "; ".join(lines) == (
        "Tests left out: 2 of pages in a browser (apt-get install chromium); 1 of Spark (apt-get install "
        "default-jre-headless, or JAVA_HOME=FOLDER: Java 17 or newer); 1 with published data "
        "(RECSYS_SHARED=FOLDER)."
    )
    assert (tmp_path / "left-out").read_text().splitlines() == lines


def test_what_must_pass_before_a_change_lands_is_what_the_readme_says():
    lines = (TESTS.parent / ".ci" / "run").read_text().splitlines()
    commands = [line for line in lines if line and not line.startswith(("#", "set ", "cd "))]
    assert commands == ["make check", "make test"]


def test_the_commands_do_not_ask_where_they_run():
    plain = {
        name: value for name, value in os.environ.items() if name != "CI" and not name.startswith("MAKE")
    }
    for command in ("check", "test"):
        said = {
            subprocess.run(
                ["make", "-n", command], cwd=TESTS.parent, env=plain | more, capture_output=True, text=True,
                timeout=600, check=True,
            ).stdout
            for more in ({}, {"CI": "true"}, {"GITHUB_ACTIONS": "true", "CI": "1"})
        }  # fmt: skip
        assert len(said) == 1


CYCLE = """
from conftest import GROWTH, resident_bytes

def test_first():
    held = [b"x" * (2 * GROWTH)]
    held.append(held)

def test_second():
    assert resident_bytes() < GROWTH
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_worker_does_not_keep_what_a_test_left_behind(tmp_path):
    (tmp_path / "test_cases.py").write_text(CYCLE)
    options = ["-q", "-p", "conftest", "-p", "no:randomly", "--rootdir", tmp_path, tmp_path]
    environment = os.environ | {"PYTHONPATH": str(TESTS)}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options], env=environment, capture_output=True, text=True,
        timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
