"""The generated pages are up to date, the console snippets print what they show, and no link is broken.

The Python of the pages is run by test_snippets.py.
"""

from __future__ import annotations

import html
import importlib
import importlib.util
import re
import shlex
from pathlib import Path
from types import FunctionType, ModuleType

import pytest
from click.testing import CliRunner

import recsys
from recsys.cli.app import cli
from recsys.conventions.presets import PRESETS
from recsys.metrics import METRICS
from worlds.pages import PAGES, ROOT

FILES = {
    "lists.csv": "user_id,item_id,score\nann,a,0.9\nann,b,0.8\nann,c,0.7\nbob,b,0.9\nbob,d,0.1\n",
    "truth.csv": "user_id,item_id\nann,a\nann,c\nbob,d\n",
}


def generator():
    spec = importlib.util.spec_from_file_location("write_docs", ROOT / "scripts" / "write_docs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_pages_are_up_to_date():
    made = {name: page() for name, page in generator().PAGES.items()}
    stale = [name for name, text in made.items() if (ROOT / "docs" / name).read_text("utf-8") != text]
    assert not stale, "run make docs"
    left = {f"api/{page.name}" for page in (ROOT / "docs" / "api").glob("*.md")} - set(made)
    assert not left, f"pages of rooms that are gone: {left}"


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
            anchors |= set(re.findall(r"^::: (\S+)$", aim.read_text(encoding="utf-8"), re.MULTILINE))
            assert anchor in anchors, target


def test_the_architecture_names_every_room():
    rooms = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    source = ROOT / "src" / "recsys"
    modules = {p.stem for p in source.glob("*.py")} | {p.parent.name for p in source.glob("*/__init__.py")}
    missing = {name for name in modules if not name.startswith("_") and f"`{name}`" not in rooms}
    assert not missing, f"docs/architecture.md says nothing of {missing}"


def test_the_home_page_shows_what_it_is(site):
    home = (site / "index.html").read_text(encoding="utf-8")
    assert "pip install recsys-evaluation" in home
    assert "images/report.png" in home
    assert (site / "images" / "report.png").exists()
    assert (site / "tutorial.html").exists()


def public_names():
    """(page of the reference, name as the page shows it, the thing itself) of everything public."""
    for name in recsys.__all__:
        yield "index", f"recsys.{name}", getattr(recsys, name)
    for name, path in generator().ROOMS.items():
        room = importlib.import_module(path)
        for inner in room.__all__:
            value = getattr(room, inner)
            if isinstance(value, ModuleType):
                for each in value.__all__:
                    yield name, f"recsys.{name}.{inner}.{each}", getattr(value, each)
            else:
                yield name, f"recsys.{name}.{inner}", value


def test_the_reference_has_every_public_name(site):
    """Each has a heading; below that of a function is its signature, or a link if it has another name."""
    pages, missing = {}, []
    for page, name, value in public_names():
        if page not in pages:
            text = (site / "api" / f"{page}.html").read_text(encoding="utf-8")
            pages[page] = " ".join(html.unescape(re.sub(r"<[^>]+>", "", text)).split())
        below = rf"¶ (recsys\.|{value.__name__}\b)" if isinstance(value, FunctionType) else ""
        if not re.search(rf"{re.escape(name)}\b ?{below}", pages[page]):
            missing.append(name)
    assert not missing
    assert len(pages) == len(generator().ROOMS) + 1


def test_the_readme_opens_with_what_to_type():
    opening = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:20]
    typed = [line.split()[:2] for line in opening if line.startswith("    ")]
    assert typed[0] == ["pip", "install"]
    assert [words for words in typed if words[0] == "make"] == [["make", "demo"], ["make", "test"]]


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_number_of_libraries_with_a_preset_is_right(page):
    libraries = [row for row in PRESETS.values() if "design document" not in row.library]
    text = (ROOT / page).read_text(encoding="utf-8")
    assert set(re.findall(r"(\d+)\s(?:other\s)?libraries", text)) == {str(len(libraries))}
