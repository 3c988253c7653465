"""The snippets of docs/spark.md that need no cluster, on the session of these tests."""

import contextlib
import io

from worlds.pages import ROOT, python_of


def test_the_page_does_what_it_says(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    shown = []
    for _, code, expected, not_run in python_of(ROOT / "docs" / "spark.md"):
        if not_run in (None, "needs a cluster"):
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, names)  # noqa: S102
        shown.append(printed.getvalue())
        assert [line.rstrip() for line in shown[-1].splitlines()] == expected.splitlines()
    assert len(shown) == 3
