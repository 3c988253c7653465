"""The workflow files of docs/ci.md are YAML whose commands run, in a shell with the real `recsys`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="runs the commands in bash")

# Stands for everything that is not here: pip, the services and their programs.
PROGRAMS = {
    "pip": "exit 0",
    "python": "cp branch.csv lists.csv",
    "gh": """case "$*" in
    "run list"*) echo 7 ;;
    "run download"*) mkdir main && cp in_force.json main/result.json ;;
    *--edit-last*) exit 1 ;;
    "pr comment 12"*) cp "$5" posted.md ;;
    *) exit 99 ;;
    esac""",
    "curl": """case "$*" in
    *JOB-TOKEN:\\ job*api/projects/5/jobs/artifacts/main/raw/result.json*) cp in_force.json main.json ;;
    *PRIVATE-TOKEN:\\ secret*body@comment.md*projects/5/merge_requests/12/notes*) cp comment.md posted.md ;;
    *) exit 99 ;;
    esac""",
}
VARIABLES = {
    "GITHUB_STEP_SUMMARY": "summary.md", "NUMBER": "12", "CI_API_V4_URL": "api", "CI_PROJECT_ID": "5",
    "CI_DEFAULT_BRANCH": "main", "CI_JOB_TOKEN": "job", "GATE_TOKEN": "secret", "CI_MERGE_REQUEST_IID": "12",
    "CI_PIPELINE_SOURCE": "merge_request_event",
}  # fmt: skip


def workflows():
    text = (ROOT / "docs" / "ci.md").read_text("utf-8")
    fences = re.findall(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    github, gitlab = map(yaml.safe_load, fences)
    return github["jobs"]["gate"]["steps"], gitlab["recommendations"]


@pytest.fixture
def shell(tmp_path, monkeypatch):
    """A folder with the files of a project, and a function that runs commands in it as the services do."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "programs"
    folder.mkdir()
    for name, body in PROGRAMS.items():
        (folder / name).write_text(f"#!/bin/sh\n{body}\n")
        (folder / name).chmod(0o755)
    (folder / "recsys").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m recsys "$@"\n')
    (folder / "recsys").chmod(0o755)
    rng = np.random.default_rng(0)
    users = np.arange(400)
    pd.DataFrame({"user": users, "item": users % 20}).to_csv("test.csv", index=False)

    def lists(share):
        hit = np.where(rng.random(400) < share, users % 20, 99)
        return pd.DataFrame({"user": users, "item": hit, "rank": 1})

    lists(0.5).to_csv("lists.csv", index=False)
    environment = os.environ | VARIABLES | {"PATH": f"{folder}:{os.environ['PATH']}"}

    def run(commands, **changes):
        script = "\n".join(commands)
        done = subprocess.run(
            ["bash", "-e", "-c", script],
            capture_output=True,
            text=True,
            check=False,
            env=environment | changes,
        )
        return done.returncode

    def propose(share):
        lists(share).to_csv("branch.csv", index=False)

    return run, propose


@pytest.mark.parametrize(("share", "status", "verdict"), [(0.9, 0, "passed"), (0.1, 1, "FAILED")])
@pytest.mark.parametrize("service", ["github", "gitlab"])
def test_a_workflow_gates_and_comments(shell, service, share, status, verdict):
    run, propose = shell
    steps, job = workflows()
    by_name = {step.get("name", step.get("run", step.get("uses"))): step.get("run") for step in steps}
    (evaluate,) = [command for command in job["script"] if command.startswith("recsys evaluate")]
    assert evaluate in by_name, "both services evaluate alike"
    assert run([evaluate]) == 0
    Path("result.json").rename("in_force.json")
    propose(share)
    if service == "gitlab":
        assert run(job["script"]) == status
    else:
        before = [
            command
            for name, command in by_name.items()
            if command and name not in ("Gate", "Comment on the change")
        ]
        assert run(before) == 0
        assert run([by_name["Gate"]]) == status
        assert run([by_name["Comment on the change"]]) == 0
        assert Path("summary.md").read_text() == Path("comment.md").read_text()
    assert Path("posted.md").read_text().startswith(f"### Recommendation quality: {verdict}\n")


def test_the_main_branch_keeps_its_result(shell):
    run, propose = shell
    steps, job = workflows()
    propose(0.5)
    assert run(job["script"], CI_PIPELINE_SOURCE="push") == 0
    assert Path("result.json").exists()
    assert not Path("comment.md").exists()
    assert job["artifacts"]["paths"] == ["result.json"]
    kept = next(step for step in steps if step.get("uses", "").startswith("actions/upload-artifact"))
    assert kept["if"] == "github.event_name == 'push'"
    assert kept["with"] == {"name": "result", "path": "result.json"}
