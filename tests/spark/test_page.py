"""The snippets of docs/spark.md that need no cluster, on the session of these tests."""

import contextlib
import io
import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "spark.md"
FENCE = re.compile(
    r"^```python notest\n(?P<code>.*?)^```\n(?:\s*^```text\n(?P<printed>.*?)^```$)?", re.MULTILINE | re.DOTALL
)


def test_the_page_does_what_it_says(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    shown = []
    for fence in FENCE.finditer(PAGE.read_text("utf-8")):
        if fence["code"].startswith("# on a cluster"):
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(fence["code"], names)  # noqa: S102
        shown.append(printed.getvalue())
        assert [line.rstrip() for line in shown[-1].splitlines()] == fence["printed"].splitlines()
    assert len(shown) == 3
