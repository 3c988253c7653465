"""The NCF example on MovieLens 1M: its data are the authors' split, its stored results those on the page."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "ncf"
AT_LEAST = {"gmf": (0.58, 0.33), "mlp": (0.55, 0.31), "neumf": (0.60, 0.35)}


def stored_results(recipe):
    document = json.loads((EXAMPLE / "results" / f"{recipe}.json").read_text("utf-8"))
    return {row["model"]: row["metrics"] for row in document["models"]}, document


@pytest.mark.parametrize("recipe", ["cpu", "gpu"])
@pytest.mark.parametrize("model", AT_LEAST)
def test_the_models_reach_the_typical_numbers_and_the_whole_catalogue_is_beside_them(recipe, model):
    rows, document = stored_results(recipe)
    metrics = rows[model]
    assert metrics["hit@10"]["sampled"] >= AT_LEAST[model][0]
    assert metrics["ndcg@10"]["sampled"] >= AT_LEAST[model][1]
    for metric in ("hit@10", "ndcg@10"):
        full, sampled = metrics[metric]["full"], metrics[metric]["sampled"]
        assert full < sampled / 5
        for method in ("cls", "bv", "mle"):
            assert abs(metrics[metric]["estimates"][method][0] - full) < 0.1 * abs(sampled - full)
        assert metrics[metric]["full"] > rows["popularity"][metric]["full"]
    verdicts = [
        r for r in document["full differences"] if {r["model"], r["against"]} == {model, "popularity"}
    ]
    assert all(row["verdict"].startswith(("better", "worse")) for row in verdicts)


@pytest.mark.parametrize("recipe", ["cpu", "gpu"])
def test_the_page_shows_the_stored_numbers(recipe):
    rows, _ = stored_results(recipe)
    page = (ROOT / "docs" / "ncf.md").read_text("utf-8")
    for name, label in (("gmf", "GMF"), ("mlp", "MLP"), ("neumf", "NeuMF")):
        (line,) = re.findall(rf"^\| {label} \| {recipe.upper()} \| (.*) \|$", page, re.MULTILINE)
        cells = [float(cell) for cell in line.split("|")]
        metrics = rows[name]
        expected = [
            value
            for metric in ("hit@10", "ndcg@10")
            for value in (
                metrics[metric]["sampled"],
                metrics[metric]["full"],
                *(metrics[metric]["estimates"][m][0] for m in ("cls", "bv", "mle")),
            )
        ]
        assert cells == pytest.approx(expected, abs=6e-4)


@pytest.mark.shared
def test_the_data_are_the_authors_split(shared_dir):
    spec = importlib.util.spec_from_file_location("prepare", EXAMPLE / "prepare.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    arrays = module.prepare_arrays(shared_dir / "data" / "ml-1m")
    assert len(arrays["users"]) == 994_169
    assert arrays["test_negatives"].shape == (6040, 99)
    assert len(arrays["held_users"]) == 6040
    pairs = set(zip(arrays["users"].tolist(), arrays["items"].tolist(), strict=True))
    assert not pairs & set(zip(arrays["test_users"].tolist(), arrays["test_items"].tolist(), strict=True))
    assert pairs >= set(zip(arrays["held_users"].tolist(), arrays["held_items"].tolist(), strict=True))
    negative_pairs = zip(
        np.repeat(arrays["held_users"], 99).tolist(),
        arrays["held_negatives"].reshape(-1).tolist(),
        strict=True,
    )
    assert not pairs & set(negative_pairs)
