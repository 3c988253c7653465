"""What a cell shows."""

from __future__ import annotations

from recsys.display.cells import format_cell


def test_rounding_below_zero_is_shown_as_zero():
    assert [format_cell(value) for value in (-1e-9, -0.0, -0.00006, float("nan"))] == [
        "0.0000",
        "0.0000",
        "-0.0001",
        "n/a",
    ]
