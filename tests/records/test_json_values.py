"""Values as JSON can hold them."""

from __future__ import annotations

import datetime as dt
import json
import math

import numpy as np

from recsys.records.json_values import json_rows, json_value


def test_whatever_a_value_is_json_holds_it():
    values = {
        ("a", 1): np.int64(3),
        "array": np.array([[1.0, np.nan], [np.inf, -0.5]]),
        "set": frozenset({2}),
        "nested": ({"x": [math.nan]},),
        "flag": np.bool_(True),
        "time": dt.timedelta(minutes=2),
        "date": dt.date(2024, 5, 1),
        "function": math.log2,
        "nothing": None,
    }
    held = json_value(values)
    assert json.loads(json.dumps(held, allow_nan=False)) == held
    assert held == {
        "('a', 1)": 3, "array": [[1.0, None], [None, -0.5]], "set": [2], "nested": [{"x": [None]}],
        "flag": True, "time": "120.0s", "date": "2024-05-01", "function": "math.log2", "nothing": None,
    }  # fmt: skip
    assert type(held["flag"]) is bool


def test_a_table_is_its_rows():
    columns = {"n": range(2), "value": np.array([0.5, np.nan])}
    assert json_rows(columns) == [{"n": 0, "value": 0.5}, {"n": 1, "value": None}]
    assert json_rows({}) == []
