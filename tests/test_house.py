"""The counters of scripts/house.py and scripts/english.py: what they count, and what they leave out."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def house(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import house

    yield house
    for name in ("house", "english"):
        sys.modules.pop(name)


@pytest.fixture
def english(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import english

    yield english
    sys.modules.pop("english")


SOURCE = '''"""A module.

Of some lines.
"""

# A comment.
VALUE = 1  # a line with a comment
"""What the value is."""

TEXT = """
two lines, and a blank one below

"""


def function(
    a,  # one parameter
    b,
):
    """A docstring."""

    # Another comment.
    return (
        a
        + b
    )
'''


def test_code_lines_are_neither_blank_nor_comments_nor_documentation(house):
    n_value, n_text, n_function = 1, 3, 4 + 4
    assert house.code_lines(SOURCE) == n_value + n_text + n_function
    assert house.code_lines("") == house.code_lines('"""Only words."""\n') == 0
    assert house.code_lines("def f(): ...\n") == 1


def test_an_import_counts_wherever_it_is_made(house):
    source = """
from recsys.errors import InputError
if TYPE_CHECKING:
    from recsys.models import train
def late():
    import recsys.report.page
    return import_module("recsys.cli.app"), import_module(f"recsys.splits.{name}"), import_module("torch")
"""
    every, eager = house.room_edges({"stats.means": ast.parse(source)})
    assert every == {("stats", room) for room in ("errors", "report", "cli", "splits")}
    assert eager == {("stats", "errors")}


def test_lines_are_counted_by_room_and_language(house):
    sources = [
        ("recsys/stats/means.py", SOURCE),
        ("recsys/stats/sampled/ranks.py", "a = 1\n\n"),
        ("recsys/report/page.html", "<p>\n\n</p>\n"),
        ("recsys/report/third_party.txt", "not code\n"),
        ("recsys/errors.py", "b = 2\n"),
        ("recsys/kernels/native/scan.cpp", "// words\nint main() {}\n"),
    ]
    rooms = house.lines_by_room(iter(sources))
    assert rooms == {
        "stats": {"Python": 13},
        "report": {"web": 3},
        "errors.py": {"Python": 1},
        "kernels": {"C++": 2},
    }
    past = {"stats": Counter({"Python": 20}), "audit": Counter({"Python": 5})}
    rows = [row.split() for row in house.table_of_lines(rooms, past)]
    assert rows[0] == ["room", "Python", "C++", "web", "lines", "change"]
    assert ["stats", "13", "13", "-7"] in rows
    assert ["audit", "0", "-5"] in rows
    assert rows[-1] == ["total", "14", "2", "3", "19", "-6"]
    assert house.table_of_lines(rooms, None)[-1].split() == ["total", "14", "2", "3", "19"]


def test_a_revision_has_the_lines_of_its_files(house, tmp_path, monkeypatch):
    (tmp_path / "src" / "recsys" / "stats").mkdir(parents=True)
    (tmp_path / "src" / "recsys" / "stats" / "means.py").write_text(SOURCE)
    (tmp_path / "src" / "recsys" / "py.typed").touch()
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "Begin"]):
        subprocess.run([*git, *command], cwd=tmp_path, check=True)
    monkeypatch.setattr(house, "SOURCE", tmp_path / "src" / "recsys")
    assert dict(house.sources_then("HEAD")) == dict(house.sources_now()) == {"recsys/stats/means.py": SOURCE}


@pytest.mark.parametrize(
    ("word", "wrong", "right"),
    [
        (
            "is no",
            "a path that is no\n    # file, and they are no names",
            "there is no file; it is no longer",
        ),
        ("is none", "row 5 is none of them", "there is none"),
        ("settle", "ties are settled", "unsettled"),
        ("in words", "the value in words", "for word in words"),
        ("nobody", "Nobody has it", "no user has it"),
        ("beside", "beside the file", "besides"),
        ("mend", "Mend the line", "recommend"),
        ("lie", "both files lie there", "the value lies between 0 and 1"),
        ("stand", "it stands in a row", "n stands for the number; stand-alone; understand"),
    ],
)
def test_a_word_is_found_where_it_is_wrong(english, word, wrong, right):
    assert len(list(english.places(word, wrong))) == (2 if word == "is no" else 1)
    assert list(english.places(word, right)) == []


def test_a_word_above_its_ceiling_fails_and_ceilings_only_fall(english, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(
        english, "texts", lambda: iter([(Path("a.py"), "told\n"), (Path("b.py"), "told said")])
    )
    monkeypatch.setattr(english, "CEILINGS", dict.fromkeys(english.WORDS, 1))
    (line,) = english.above_ceilings()
    assert line.startswith('the word "told" occurs 2 times, at most 1 may stay: write another sentence')
    assert english.main(["told"]) == 0
    assert capsys.readouterr().out == "a.py:1: told\nb.py:1: told said\n"
    own = tmp_path / "english.py"
    own.write_text('"told": 1,\n"said": 1,\n"mend": 1,\n')
    monkeypatch.setattr(english, "__file__", str(own))
    assert english.main(["--lower"]) == 0
    assert own.read_text() == '"told": 1,\n"said": 1,\n"mend": 0,\n'
