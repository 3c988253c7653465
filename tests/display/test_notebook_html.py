"""Tables in notebooks: aligned, folded, and no name is obeyed."""

from __future__ import annotations

import re
from html import escape
from html.parser import HTMLParser

import numpy as np
import pandas as pd

import recsys
from recsys.display.notebook_html import notebook_card

HOSTILE = "<script>alert(1)</script>\x1b[31m\"'&<img src=x onerror=y>"


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
    assert all(escape(str(row.verdict).removeprefix(row.verdict.word)) in page for row in comparison)


def test_names_are_text_in_notebooks():
    hostile = recsys.compare(models((HOSTILE, "a", "b")))
    for page in (hostile._repr_html_(), recsys.compare(models((HOSTILE, "a", "b")), HOSTILE)._repr_html_()):
        assert set(Tags(page).tags) <= {
            "div", "table", "thead", "tbody", "tr", "th", "td", "b", "small", "details", "summary",
        }  # fmt: skip
        assert "\x1b" not in page
        assert "&lt;script&gt;" in page


def test_a_card_is_text_in_notebooks():
    card = notebook_card(HOSTILE, f"One: {HOSTILE}", "Two.")
    assert Tags(card).tags == ["div", "b", "div", "div"]
    assert "\x1b" not in card
    assert card.index("&lt;script&gt;") < card.index("One: ") < card.index("Two.")
