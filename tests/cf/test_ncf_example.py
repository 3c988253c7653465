"""The example on MovieLens 1M: its data are the authors' split, its stored results what the page claims."""

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


def stored(recipe):
    document = json.loads((EXAMPLE / "results" / f"{recipe}.json").read_text("utf-8"))
    return {row["model"]: row["metrics"] for row in document["models"]}, document


@pytest.mark.parametrize("recipe", ["cpu", "gpu"])
@pytest.mark.parametrize("model", AT_LEAST)
def test_the_models_reach_the_typical_numbers_and_the_whole_catalogue_is_beside_them(recipe, model):
    rows, document = stored(recipe)
    found = rows[model]
    assert found["hit@10"]["sampled"] >= AT_LEAST[model][0]
    assert found["ndcg@10"]["sampled"] >= AT_LEAST[model][1]
    for metric in ("hit@10", "ndcg@10"):
        truth, seen = found[metric]["full"], found[metric]["sampled"]
        assert truth < seen / 5
        for method in ("cls", "bv", "mle"):
            assert abs(found[metric]["estimates"][method][0] - truth) < 0.1 * abs(seen - truth)
        assert found[metric]["full"] > rows["popularity"][metric]["full"]
    verdicts = [
        r for r in document["full differences"] if {r["model"], r["against"]} == {model, "popularity"}
    ]
    assert all(row["verdict"].startswith(("better", "worse")) for row in verdicts)


@pytest.mark.parametrize("recipe", ["cpu", "gpu"])
def test_the_page_shows_the_stored_numbers(recipe):
    rows, _ = stored(recipe)
    page = (ROOT / "docs" / "ncf.md").read_text("utf-8")
    for name, shown in (("gmf", "GMF"), ("mlp", "MLP"), ("neumf", "NeuMF")):
        (line,) = re.findall(rf"^\| {shown} \| {recipe.upper()} \| (.*) \|$", page, re.MULTILINE)
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
    held = module.prepared(shared_dir / "data" / "ml-1m")
    assert len(held["users"]) == 994_169
    assert held["test_negatives"].shape == (6040, 99)
    assert len(held["held_users"]) == 6040
    pairs = set(zip(held["users"].tolist(), held["items"].tolist(), strict=True))
    assert not pairs & set(zip(held["test_users"].tolist(), held["test_items"].tolist(), strict=True))
    assert pairs >= set(zip(held["held_users"].tolist(), held["held_items"].tolist(), strict=True))
    drawn = zip(
        np.repeat(held["held_users"], 99).tolist(), held["held_negatives"].reshape(-1).tolist(), strict=True
    )
    assert not pairs & set(drawn)
