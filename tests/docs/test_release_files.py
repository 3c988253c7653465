"""The files of a release say what is so: the workflow runs the quick tests, hooks name tools of the lock."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).resolve().parents[2]
if not (ROOT / "requirements").is_dir():
    pytest.skip("a source distribution comes without the workflow and the lock", allow_module_level=True)
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
WORKFLOW = (ROOT / ".github" / "workflows" / "wheels.yml").read_text("utf-8")


def test_the_workflow_runs_the_quick_tests():
    words = re.search(r"^QUICK = \$\(addprefix tests/,(.*?)\)", MAKEFILE, re.MULTILINE | re.DOTALL).group(1)
    quick = [f"tests/{word}" for word in words.replace("\\\n", " ").split()]
    assert yaml.safe_load(WORKFLOW)["env"]["QUICK"].split() == quick
    assert all((ROOT / path).exists() for path in quick)


def test_the_workflow_calls_targets_that_exist_and_tests_what_it_builds():
    jobs = yaml.safe_load(WORKFLOW)["jobs"]
    called = [step["run"].split()[1] for step in jobs["release"]["steps"] if "run" in step]
    known = set(re.search(r"^\.PHONY: (.*?)[^\\]\n", MAKEFILE, re.MULTILINE | re.DOTALL).group(1).split())
    assert set(called) <= known
    assert jobs["test"]["strategy"]["matrix"]["os"] == jobs["build"]["strategy"]["matrix"]["os"]
    assert WORKFLOW.startswith("# ")
    assert "WHAT WAS NEVER RUN" in WORKFLOW


def test_hooks_call_what_the_lock_installs():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"][0]["hooks"]
    tools = {"ruff": "ruff", "clang-format": "clang-format", "lint-imports": "import-linter", "mypy": "mypy"}
    lock = (ROOT / "requirements" / "lock.txt").read_text("utf-8")
    for hook in hooks:
        program, *words = shlex.split(hook["entry"])
        folder, name = program.rsplit("/", 1)
        assert folder == ".venv/bin"
        if name == "python":
            assert (ROOT / words[0]).is_file()
        else:
            assert f"\n{tools[name]}==" in lock


def test_make_restate_rewrites_every_stored_text_of_the_tests():
    words = re.search(r"^RESTATED = (.*?[^\\])\n", MAKEFILE, re.MULTILINE | re.DOTALL).group(1)
    restated = set(words.replace("\\\n", " ").split())
    writes = re.compile(r'^if __name__ == "__main__":\n(?: .*\n)*?.*\.write_text\(', re.MULTILINE)
    tests = [path for path in (ROOT / "tests").rglob("*.py") if writes.search(path.read_text("utf-8"))]
    assert {path.relative_to(ROOT).as_posix() for path in tests} == restated


def test_the_policy_names_what_is_deprecated():
    policy = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    (named,) = re.findall(r"^Deprecated now: (.*?)\n\n", policy, re.MULTILINE | re.DOTALL)
    warning = re.compile(r"warn\(\s*RecsysDeprecationWarning")
    modules = [path for path in (ROOT / "src").rglob("*.py") if warning.search(path.read_text("utf-8"))]
    assert len([one for one in named.split(";") if one != "nothing."]) == len(modules)
