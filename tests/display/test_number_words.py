"""Numbers with their words."""

from __future__ import annotations

import math

import pytest

from recsys.display.number_words import interval_text, plural


@pytest.mark.parametrize(
    ("n", "words", "shown"),
    [
        (1, "item|items", "1 item"),
        (0, "item|items", "0 items"),
        (1234, "night|nights is|are", "1,234 nights are"),
        (1, "night|nights is|are", "1 night is"),
    ],
)
def test_a_count_has_its_noun_in_the_right_number(n, words, shown):
    assert plural(n, words) == shown


def test_an_interval_whose_lower_end_is_not_finite_is_not_shown():
    assert interval_text(-0.5, 1 / 3) == "[-0.5000, 0.3333]"
    assert interval_text(0.05, math.inf, "+.1f") == "[+0.1, +inf]"
    assert interval_text(-math.inf, 1.0) == interval_text(math.nan, math.nan) == ""
