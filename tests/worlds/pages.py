"""The pages of docs/ and the README: their fences of code, and which of them are run.

A fence of Python below `<!-- not run: REASON -->` is only to be read. Readers of the page do not see the
comment, and whatever renders Markdown takes the fence for Python.
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
FENCE = re.compile(
    r"(?:^<!-- not run: (?P<not_run>[^\n]+) -->\n\n)?"
    r"^```python\n(?P<code>.*?)^```\n(?:\s*^```text\n(?P<printed>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)
LANGUAGES = {"bash", "console", "json", "python", "text", "toml", "yaml"}


def python_of(page):
    """Line, code, what is printed (or None) and why it is not run (or None) of every fence of Python."""
    text = Path(page).read_text("utf-8")
    for found in FENCE.finditer(text):
        line = text.count("\n", 0, found.start("code")) + 1
        yield line, found["code"], found["printed"], found["not_run"]


def odd_fences(text):
    """Lines that open or close a fence, or say that one is not run, and are not understood here."""
    odd, is_open, after_reason = [], False, False
    for number, line in enumerate(text.split("\n"), 1):
        is_fence = line.lstrip().startswith(("```", "~~~"))
        is_reason = not is_open and "not run:" in line and "<!--" in line
        is_python = not is_open and line == "```python"
        if is_fence and line not in ({"```"} if is_open else {f"```{name}" for name in LANGUAGES}):
            odd.append((number, line))
        if after_reason and line and not is_python:
            odd.append((number - 1, "not run: is not about Python"))
        if is_reason and not re.fullmatch(r"<!-- not run: \S.* -->", line):
            odd.append((number, line))
        if line or not after_reason:
            after_reason = is_reason
        is_open ^= is_fence
    return odd + ([(number, "a fence is not closed")] if is_open else [])
