"""The keywords of compare: declared once, with the defaults that the statistics have."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import get_args

import pytest

import recsys
from recsys.comparison.compare_keywords import GROUPS, CompareOptions
from recsys.errors import RecsysWarning, UnknownNameError, hush
from recsys.records.keywords import read_keywords
from recsys.stats.comparison_table import EFFECTS, TESTS, Options
from recsys.stats.corrections import CORRECTIONS

KEYWORDS = read_keywords({"compare": CompareOptions})


def test_each_is_an_option_of_the_statistics_with_the_same_default():
    defaults = {field.name: field.default for field in fields(Options)}
    del defaults["lower_is_better"]  # metrics define their direction
    assert {name: keyword.default for name, keyword in KEYWORDS.items()} == defaults
    assert {keyword.group for keyword in KEYWORDS.values()} == set(GROUPS)


def test_choices_are_those_of_the_statistics():
    assert get_args(KEYWORDS["test"].type) == TESTS
    assert get_args(KEYWORDS["effect"].type) == tuple(EFFECTS)
    assert get_args(KEYWORDS["correction"].type) == (*CORRECTIONS, "max-t")


def test_help_lists_them_and_others_are_refused():
    assert all(f"\n    {name}: " in inspect.getdoc(recsys.compare) for name in KEYWORDS)
    result = recsys.evaluate({1: [2]}, {1: [2]}, "mrr")
    with pytest.raises(UnknownNameError, match=r"keyword of compare 'corection'\. Did you mean 'correction'"):
        recsys.compare([result, result], corection="bh")
    with hush(RecsysWarning):
        comparison = recsys.compare([result, result])
    with pytest.raises(UnknownNameError, match="keyword of pairs 'tests'"):
        comparison.pairs(tests="t")
