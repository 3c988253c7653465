"""The recipes of examples/recipes that need other packages run, and their numbers hold."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

RECIPES = Path(__file__).resolve().parents[2] / "examples" / "recipes"


@pytest.fixture
def recipe(tmp_path, monkeypatch):
    """What `main` of a recipe returns."""
    monkeypatch.chdir(tmp_path)  # RecBole writes into the folder it runs in
    return lambda name: runpy.run_path(str(RECIPES / f"{name}.py"))["main"]()


def test_a_lightgbm_ranker_beats_its_first_stage(recipe):
    pytest.importorskip("lightgbm")
    compared = recipe("lightgbm_ranker")
    for metric in ("ndcg@10", "recall@10"):
        assert str(compared["ranker", metric].verdict).startswith("better: ")


def test_recbole_reports_the_same_numbers(recipe, monkeypatch):
    pytest.importorskip("recbole")
    for name in ("float_", "complex_", "unicode_"):  # the recipe sets them: afterwards they are gone again
        monkeypatch.setattr(np, name, None, raising=False)
    ours, theirs = recipe("recbole_end_to_end")
    assert list(ours) == list(theirs) == ["ndcg@10", "recall@10", "mrr@10"]
    assert dict(ours) == pytest.approx(dict(theirs), abs=1e-9)
    assert ours["ndcg@10"] > 0
    assert ours.counts["cases"] == 600


def test_a_hugging_face_dataset(recipe):
    pytest.importorskip("datasets")
    result = recipe("hugging_face_dataset")
    assert result.counts["cases"] == 600
    assert result["ndcg@10"] > 0.1
    assert result.notes["lists"]["read"]["item_column"] == "item"
