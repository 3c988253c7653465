"""The recipes of examples/recipes that need torch run and learn; those of other packages: tests/ecosystem."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

RECIPES = Path(__file__).resolve().parents[2] / "examples" / "recipes"


@pytest.fixture
def recipe(tmp_path, monkeypatch):
    """What `main` of a recipe returns."""
    torch = pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield lambda name: runpy.run_path(str(RECIPES / f"{name}.py"))["main"]()
    torch.set_num_threads(threads)


def test_recipes_are_short():
    lengths = {path.name: len(path.read_text("utf-8").splitlines()) for path in RECIPES.glob("*.py")}
    assert len(lengths) == 5
    assert all(length < 60 for length in lengths.values()), lengths


def test_a_sequence_model_finds_what_comes_next(recipe):
    result = recipe("sequence_model")
    # Three items may come next: chance would be right in 5 % of the first five places.
    assert result["hit@5"] > 0.9
    assert 0.2 < result["hit@1"] < 0.5
    assert result.counts["cases"] == 300


def test_two_towers_beat_popularity(recipe):
    result = recipe("two_tower")
    assert result["ndcg@10"] > 0.3  # popularity has 0.21
    assert result.partial.catalogue.n == 400
