"""Checks of plain arguments."""

from __future__ import annotations

import numpy as np
import pytest

from recsys.records.checks import is_whole


@pytest.mark.parametrize("value", [0, 7, -3, np.int8(4), np.uint64(5), 10**30])
def test_whole_numbers_of_python_and_numpy_are_whole(value):
    assert is_whole(value)


@pytest.mark.parametrize(
    "value", [True, np.True_, 3.0, np.float64(3), "3", None, np.timedelta64(3, "s"), [3]]
)
def test_flags_times_and_fractions_are_not_whole(value):
    assert not is_whole(value)


@pytest.mark.parametrize(
    ("value", "least", "expected"), [(1, 1, True), (0, 1, False), (0, 0, True), (2**63, 0, False)]
)
def test_a_least_number_also_sets_the_greatest(value, least, expected):
    assert is_whole(value, least) is expected
