"""Tables as text within a width: nothing is lost, no line is wider."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

import recsys
from recsys.display.text_tables import fitted, text_page, text_table
from recsys.errors import Phrase, wording
from recsys.records.facts import Verdict

CELL = st.text("ab \n_|/-é映\u0301", max_size=60)
NUMBER = st.floats(-1e6, 1e6) | st.integers(-(10**6), 10**6)


def width_of(line):
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in line
    )


@given(st.data(), st.integers(40, 120), st.integers(1, 9))
def test_whatever_the_cells_no_line_is_wider_and_no_character_is_lost(data, width, n_columns):
    n_rows = data.draw(st.integers(1, 3))
    columns = {
        f"column {n}": [data.draw(kind) for _ in range(n_rows)]
        for n in range(n_columns)
        for kind in (data.draw(st.sampled_from([CELL, NUMBER])),)
    }  # fmt: skip
    whole = Counter(re.sub(r"[\s-]", "", text_table(columns)))
    with fitted(width):
        text = text_table(columns)
    assert max(map(width_of, text.split("\n"))) <= width
    assert not whole - Counter(re.sub(r"[\s-]", "", text))
    assert text_table(columns) == text_table(columns)  # the width ended with the block


def test_columns_that_do_not_fit_stand_below_with_the_first_column_again():
    columns = {"model": ["als", "bpr"]} | {f"metric {n}@10": [0.1 + n, 0.2 + n] for n in range(8)}
    with fitted(50):
        blocks = text_table(columns).split("\n\n")
    assert len(blocks) > 1
    assert all(re.search(r"^als +\d", block, re.MULTILINE) for block in blocks)
    shown = "".join(blocks)
    assert all(f"{0.1 + n:.4f}" in shown for n in range(8))


def test_headings_stand_where_the_section_changes():
    text = text_table({"metric": ["mrr", "hit", "mrr"], "value": [0.1, 0.2, 0.3]}, sections=["a", "a", "b"])
    lines = text.split("\n")
    assert [lines.index("a"), lines.index("b")] == [2, 6]
    assert lines[5] == ""


def test_notes_are_worded_and_broken_between_words():
    with fitted(40), wording(lambda fix: f"-{fix.parameter} {fix.example}"):
        note = Phrase("a note that is longer than forty columns, about {k=10}")
        text = text_page({"a": [1]}, [note])
    *_, first, second = text.split("\n")
    assert (first, second) == ("a note that is longer than forty", "  columns, about -k 10")


def test_a_verdict_has_the_colour_of_its_word():
    verdicts = [Verdict(kind, "hit@1") for kind in ("better", "worse", "no_worse", "higher", "undecided")]
    codes = [32, 31, 32, 2, 2, 2]
    with fitted(80, colour=True):
        _, _, *lines = text_table({"verdict": [*verdicts, "baseline"]}).split("\n")
    words = [*map(str, verdicts), "baseline"]
    assert lines == [f"\x1b[{code}m{word}\x1b[0m" for code, word in zip(codes, words, strict=True)]


def test_wide_signs_keep_columns_apart():
    """A terminal draws CJK characters two columns wide and combining marks with no width."""
    users = {u: [u] for u in range(4)}
    groups = {0: "映画", 1: "映画", 2: "e\u0301te\u0301", 3: "abc"}
    lines = str(recsys.evaluate(users, users, ["hit@1"], by=groups)).splitlines()
    assert [line for line in lines if line.startswith(("映", "e\u0301", "abc"))] == [
        "abc      hit@1   1.0000      1",
        "e\u0301te\u0301      hit@1   1.0000      1",
        "映画     hit@1   1.0000      2",
    ]


def test_an_interval_is_not_broken_while_columns_can_follow_below():
    interval = "[0.1200, 0.1300]"
    columns = {"model": ["als_with_128_factors_and_more"]} | {f"interval {n}": [interval] for n in range(5)}
    for width in (40, 60, 80):
        with fitted(width):
            assert text_table(columns).count(interval) == 5


def test_signs_without_width_keep_columns_apart():
    assert text_table({"model": ["a\u200bb"], "n": [1]}).split("\n")[-1] == "a\u200bb     1"
