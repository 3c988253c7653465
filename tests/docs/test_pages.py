"""The generated pages are up to date, the console snippets print what they show, and no link is broken.

The Python of the pages is run by test_snippets.py.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from recsys.cli.app import cli
from recsys.conventions.presets import PRESETS
from recsys.metrics import METRICS

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
FILES = {
    "lists.csv": "user_id,item_id,score\nann,a,0.9\nann,b,0.8\nann,c,0.7\nbob,b,0.9\nbob,d,0.1\n",
    "truth.csv": "user_id,item_id\nann,a\nann,c\nbob,d\n",
}


def generator():
    spec = importlib.util.spec_from_file_location("write_docs", ROOT / "scripts" / "write_docs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["metrics.md", "conventions.md", "conventions-explained.md"])
def test_generated_pages_are_up_to_date(name):
    stored = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert stored == generator().PAGES[name](), "run make docs"


def test_every_metric_and_preset_has_its_section():
    metrics = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    conventions = (ROOT / "docs" / "conventions.md").read_text(encoding="utf-8")
    assert all(f"\n## {name}\n" in metrics for name in METRICS)
    assert all(f"\n### {name}\n" in conventions for name in PRESETS)


def console_snippets():
    """(page, command, what it prints) of every `$ recsys …` line in a console fence."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for fence in re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            for part in re.split(r"^\$ ", fence, flags=re.MULTILINE)[1:]:
                command, _, printed = part.partition("\n")
                yield page.name, command, printed


@pytest.mark.parametrize(("page", "command", "printed"), list(console_snippets()))
def test_console_snippets_print_what_they_show(page, command, printed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        Path(name).write_text(content)
    program, *arguments = shlex.split(command)
    assert program == "recsys"
    result = CliRunner().invoke(cli, arguments, prog_name="recsys")
    assert result.exit_code == 0, result.output
    assert result.stdout.rstrip() == printed.rstrip()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith("http"):
            continue
        path, _, anchor = target.partition("#")
        aim = (page.parent / path) if path else page
        assert aim.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", aim.read_text(encoding="utf-8"), re.MULTILINE)
            anchors = {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}
            assert anchor in anchors, target


def test_the_architecture_names_every_room():
    rooms = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    source = ROOT / "src" / "recsys"
    modules = {p.stem for p in source.glob("*.py")} | {p.parent.name for p in source.glob("*/__init__.py")}
    missing = {name for name in modules if not name.startswith("_") and f"`{name}`" not in rooms}
    assert not missing, f"docs/architecture.md says nothing of {missing}"


def test_the_site_builds_strictly(tmp_path):
    """No broken link or anchor, and every page has its place in the navigation."""
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "-d", str(tmp_path)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "tutorial.html").exists()


def test_the_readme_opens_with_the_two_commands():
    opening = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:12]
    assert [line.split()[:2] for line in opening if line.startswith("    make")] == [
        ["make", "demo"],
        ["make", "test"],
    ]
