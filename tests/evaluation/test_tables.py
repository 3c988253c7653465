"""Tables as text within a width and as HTML for notebooks: nothing is lost, no name is obeyed."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from html import escape
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recsys
from recsys.display import tables

HOSTILE = "<script>alert(1)</script>\x1b[31m\"'&<img src=x onerror=y>"
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
    whole = Counter(re.sub(r"[\s-]", "", tables.text(columns)))
    with tables.fitted(width):
        text = tables.text(columns)
    assert max(map(width_of, text.split("\n"))) <= width
    assert not whole - Counter(re.sub(r"[\s-]", "", text))
    assert tables.text(columns) == tables.text(columns)  # the width ended with the block


def test_columns_that_do_not_fit_stand_below_with_the_first_column_again():
    columns = {"model": ["als", "bpr"]} | {f"metric {n}@10": [0.1 + n, 0.2 + n] for n in range(8)}
    with tables.fitted(50):
        blocks = tables.text(columns).split("\n\n")
    assert len(blocks) > 1
    assert all(re.search(r"^als +\d", block, re.MULTILINE) for block in blocks)
    shown = "".join(blocks)
    assert all(f"{0.1 + n:.4f}" in shown for n in range(8))


def test_headings_stand_where_the_section_changes():
    text = tables.text({"metric": ["mrr", "hit", "mrr"], "value": [0.1, 0.2, 0.3]}, sections=["a", "a", "b"])
    lines = text.split("\n")
    assert [lines.index("a"), lines.index("b")] == [2, 6]
    assert lines[5] == ""


def test_notes_are_worded_and_broken_between_words():
    with tables.fitted(40, wording=lambda note: note.replace("k=", "-k ")):
        text = tables.page({"a": [1]}, ["a note that is longer than forty columns, about k=10"])
    *_, first, second = text.split("\n")
    assert (first, second) == ("a note that is longer than forty", "  columns, about -k 10")


def models(names=("old", "new", "best"), n=400):
    rng = np.random.default_rng(0)
    truth = {u: {u % 7} for u in range(n)}
    lists = [{u: rng.permutation(size)[:2].tolist() for u in truth} for size in (20, 12, 7)]
    kinds = pd.DataFrame({"user": [*truth], "kind": ["even", "odd"] * (n // 2)})
    made = [
        recsys.evaluate(own, truth, ["hit@2", "mrr", "coverage@2"], users=kinds, by="kind") for own in lists
    ]
    return dict(zip(names, made, strict=True))


class Tags(HTMLParser):
    """The tags of a page, the text in its cells, and how each number is aligned."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.cells, self.styles = [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag == "td":
            self.cells.append("")
            self.styles.append(dict(attrs)["style"])

    def handle_data(self, data):
        if self.cells and self.tags[-1] in ("td", "b"):
            self.cells[-1] += data


def test_a_result_in_a_notebook_has_intervals_aligned_numbers_and_folded_groups():
    result = models()["new"]
    page = result._repr_html_()
    seen = Tags(page)
    interval = result.intervals()["hit@2"].interval
    assert f"[{interval.low:.4f}, {interval.high:.4f}]" in seen.cells
    numbers = [
        style for cell, style in zip(seen.cells, seen.styles, strict=True) if re.fullmatch(r"[\d.,]+", cell)
    ]
    assert numbers
    assert all("text-align:right" in style for style in numbers)
    assert page.count("<details><summary><b>") == 2  # the groups; all users together are open
    assert not re.search(r"(?<!-)color:(#000|#fff|black|white)|background:(?!none)", page)  # light and dark


def test_a_comparison_in_a_notebook_folds_all_but_the_first_metric():
    comparison = recsys.compare(models(), baseline="old")
    page = comparison._repr_html_()
    assert page.count("<details><summary><b>") == 2
    words = ("hit@2", "mrr (secondary)", "coverage@2 (secondary)")
    assert [page.count(f">{word}</b>") for word in words] == [1, 1, 1]
    assert 'style="color:#' in page
    assert all(escape(row.verdict.partition(": ")[2]) in page for row in comparison)


def test_names_are_text_in_notebooks():
    hostile = recsys.compare(models((HOSTILE, "a", "b")))
    for page in (hostile._repr_html_(), recsys.compare(models((HOSTILE, "a", "b")), HOSTILE)._repr_html_()):
        assert set(Tags(page).tags) <= {
            "div", "table", "thead", "tbody", "tr", "th", "td", "b", "small", "details", "summary",
        }  # fmt: skip
        assert "\x1b" not in page
        assert "&lt;script&gt;" in page


def test_a_card_is_text_in_notebooks():
    card = tables.html_card(HOSTILE, f"One: {HOSTILE}", "Two.")
    assert Tags(card).tags == ["div", "b", "div", "div"]
    assert "\x1b" not in card
    assert card.index("&lt;script&gt;") < card.index("One: ") < card.index("Two.")


def test_notebooks_complete_keys():
    made = models()
    comparison = recsys.compare(made, baseline="old")
    assert made["new"]._ipython_key_completions_() == ["hit@2", "mrr", "coverage@2"]
    assert made["new"].intervals()._ipython_key_completions_() == ["hit@2", "mrr", "coverage@2"]
    for rows in (comparison, recsys.compare(made)):
        keys = rows._ipython_key_completions_()
        assert [rows[key] for key in keys] == list(rows)


def test_a_user_with_several_cases_is_counted_in_cases_and_a_frame_keeps_its_names():
    truth, lists = {1: {3}, 2: {4}, 3: {5}}, {1: [3], 2: [5], 3: [5]}
    by_user = recsys.evaluate(lists, truth, ["mrr"])
    by_case = recsys.evaluate(lists, truth, ["mrr"], clusters={1: "ann", 2: "ann", 3: "bob"})
    assert "users" in str(by_user).split("\n")[0]
    assert "cases" in str(by_case).split("\n")[0]
    assert [list(each.to_frame()) for each in (by_user, by_case)] == [["metric", "value", "cases"]] * 2


def test_a_value_has_no_interval_where_only_rows_could_tell(monkeypatch):
    result = models()["new"]
    whole = recsys.evaluation.results.Evaluation.intervals

    def of_sums(self, *arguments, metrics=None, **keywords):
        if "mrr" in metrics:
            raise recsys.errors.NoRowsError("an interval over users whose cases lie in several pieces")
        return whole(self, *arguments, metrics=metrics, **keywords)

    monkeypatch.setattr(recsys.evaluation.results.Evaluation, "intervals", of_sums)
    text = result.to_text(intervals=True)
    assert "no interval of mrr: the values per user were not kept" in text
    assert re.search(r"^hit@2 +\d\.\d{4}  \[", text, re.MULTILINE)


@pytest.mark.parametrize("baseline", [None, "old"])
def test_what_a_comparison_says_is_in_every_form_of_it(baseline):
    comparison = recsys.compare(models(), baseline, no_worse_than=0.1, rope=0.01)
    grouped, plain = comparison.to_text(), str(comparison)
    for row in comparison:
        assert row.verdict in grouped
        assert row.verdict in plain
        assert f"{row.value:.4f}" in grouped
        assert f"{row.baseline_value:.4f}" in grouped
    assert "d_z: the mean difference in standard deviations of the differences" in plain


def test_a_verdict_has_the_colour_of_its_word():
    columns = {"verdict": ["better: +1%", "worse: -1%", "higher: +1%"]}
    with tables.fitted(80, colour=True):
        _, _, *lines = tables.text(columns).split("\n")
    assert lines == ["\x1b[32mbetter: +1%\x1b[0m", "\x1b[31mworse: -1%\x1b[0m", "\x1b[2mhigher: +1%\x1b[0m"]


def test_the_note_says_what_was_done_with_users_without_lists_or_truth():
    lists, truth = {"u": ["a"], "v": ["a"]}, {"u": {"a": 1}, "v": {"a": 0}, "w": {"a": 1}}
    for rules, words in (
        ({}, "1 without relevant items (left out), 1 without recommendations (count as an empty list)"),
        ({"no_truth": "zero", "no_list": "skip"}, "(count as 0), 1 without recommendations (left out)"),
        ({"no_truth": "unjudged"}, "(left out if nothing is judged, else count as 0)"),
    ):
        assert words in str(recsys.evaluate(lists, truth, "ndcg@1", conventions=rules))
