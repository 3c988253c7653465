"""The Python in README.md and docs/ runs, and prints what the page says it prints.

The ```python fences of a page run in order, in one namespace, as a reader would type them. A ```text fence
right after one is what it prints. A fence with >>> is a doctest; ```python notest is only to be read.
"""

import contextlib
import doctest
import io
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from recsys.cli.app import cli
from recsys.metrics.registry import _ALIASES, METRICS
from recsys.ranks.fusion import FUSIONS

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(
    r"^```python *(?P<notest>notest)?\n(?P<code>.*?)^```\n(?:\s*^```text\n(?P<printed>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def pages():
    """Pages with Python in them."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
    return [
        page.relative_to(ROOT).as_posix()
        for page in found
        if page.exists() and FENCE.search(page.read_text("utf-8"))
    ]


def run(code, name, names):
    """What a fence prints; for a doctest, its failures."""
    printed = io.StringIO()
    if ">>> " in code:
        test = doctest.DocTestParser().get_doctest(code, names, name, name, 0)
        doctest.DocTestRunner(optionflags=FLAGS).run(test, out=printed.write, clear_globs=False)
        names.update(test.globs)
    else:
        with contextlib.redirect_stdout(printed):
            exec(compile(code, name, "exec"), names)  # noqa: S102
    return printed.getvalue()


@pytest.fixture(autouse=True)
def registry():
    """What a page registers is gone after the page."""
    held = [(known, dict(known)) for known in (METRICS, _ALIASES, FUSIONS)]
    yield
    for known, before in held:
        known.clear()
        known.update(before)


@pytest.mark.parametrize("page", pages())
def test_a_page_does_what_it_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / page).read_text("utf-8")
    names = {"__name__": "__main__"}
    for fence in FENCE.finditer(text):
        if fence["notest"]:
            continue
        line = text.count("\n", 0, fence.start()) + 2
        printed = run("\n" * (line - 1) + fence["code"], page, names)
        if ">>> " in fence["code"]:
            assert not printed, printed
        elif fence["printed"] is not None:
            stated = [each.rstrip() for each in fence["printed"].strip("\n").split("\n")]
            assert [each.rstrip() for each in printed.strip("\n").split("\n")] == stated, (
                f"{page}, line {line}"
            )
    if page in {"docs/tutorial.md", "docs/how-to.md"}:  # their commands are about the files made above
        commands = re.findall(r"^    recsys (.+)$", text, re.MULTILINE)
        assert commands
        for command in commands:
            done = CliRunner().invoke(cli, shlex.split(command), prog_name="recsys")
            assert done.exit_code == 0, f"recsys {command}: {done.output}"
