"""The Python in README.md and docs/ runs, and prints what the page says it prints.

The ```python fences of a page run in order, in one namespace, as a reader would type them. A ```text fence
right after one is what it prints. A fence with >>> is a doctest; one below <!-- not run: REASON --> is only
to be read.
"""

import contextlib
import doctest
import io
import re
import shlex

import pytest
from click.testing import CliRunner

from recsys.cli.app import cli
from recsys.metrics.registry import _ALIASES, METRICS
from recsys.ranks.fusion import FUSIONS
from worlds.pages import PAGES, ROOT, odd_fences, python_of

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def pages():
    """Pages with Python in them."""
    return [page.relative_to(ROOT).as_posix() for page in PAGES if any(python_of(page))]


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


@pytest.mark.parametrize("page", [page.relative_to(ROOT).as_posix() for page in PAGES])
def test_every_fence_is_understood(page):
    assert odd_fences((ROOT / page).read_text("utf-8")) == []


@pytest.mark.parametrize(
    "text",
    [
        "```python notest\na\n```\n",
        "```py\na\n```\n",
        "``` python\na\n```\n",
        "  ```python\na\n  ```\n",
        "~~~\na\n~~~\n",
        "```text\na\n",
        "```\na\n```\n",
        "<!-- not run: -->\n\n```python\na\n```\n",
        "<!-- not run: needs a cluster -->\n\n```text\na\n```\n",
        "<!-- not run: needs a cluster -->\n\nand then\n\n```python\na\n```\n",
        "<!--not run: needs a cluster-->\n\n```python\na\n```\n",
    ],
)
def test_a_fence_that_is_not_understood_is_found(text):
    assert odd_fences(text)


def test_fences_are_run_unless_a_comment_says_why_not(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "```python\na\n```\n\n```text\n1\n```\n\n<!-- not run: needs a cluster -->\n\n```python\nb\n```\n",
        "utf-8",
    )
    assert list(python_of(page)) == [(2, "a\n", "1\n", None), (12, "b\n", None, "needs a cluster")]
    assert odd_fences(page.read_text("utf-8")) == []


@pytest.mark.parametrize("page", pages())
def test_a_page_does_what_it_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for line, code, expected, not_run in python_of(ROOT / page):
        if not_run:
            continue
        printed = run("\n" * (line - 1) + code, page, names)
        if ">>> " in code:
            assert not printed, printed
        elif expected is not None:
            stated = [each.rstrip() for each in expected.strip("\n").split("\n")]
            assert [each.rstrip() for each in printed.strip("\n").split("\n")] == stated, (
                f"{page}, line {line}"
            )
    if page in {"docs/tutorial.md", "docs/how-to.md"}:  # their commands are about the files made above
        commands = re.findall(r"^    recsys (.+)$", (ROOT / page).read_text("utf-8"), re.MULTILINE)
        assert commands
        for command in commands:
            done = CliRunner().invoke(cli, shlex.split(command), prog_name="recsys")
            assert done.exit_code == 0, f"recsys {command}: {done.output}"
