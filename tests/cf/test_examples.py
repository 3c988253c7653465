"""The MovieLens examples: their claims hold on the stored numbers and on a model trained by the test."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pandas as pd
import pytest

from recsys.cf.evaluation import ModelComparator, ModelEvaluator, PopularityBaseline

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def stored_results(name):
    return json.loads((EXAMPLES / "results" / f"{name}.json").read_text("utf-8"))


@pytest.mark.parametrize("world", ["ml-100k", "ml-latest-small"])
def test_the_stored_results_meet_the_criteria(world):
    tests = stored_results("cf_vs_popularity")[world]["tests"]
    for kind in ("als", "bpr"):
        assert tests[f"{kind} recall@10"]["lift in percent"] >= 20
        assert tests[f"{kind} recall@10"]["p, corrected"] < 0.05
    hybrid = stored_results("hybrid")[world]
    rows = {(row["alpha"], row["diversity"]): row for row in hybrid["test"]}
    before = rows[1.0, 0.0]
    assert hybrid["all three rise at"]
    for setting in hybrid["all three rise at"]:
        row = rows[setting["alpha"], setting["diversity"]]
        for metric in ("diversity@10", "semantic_alignment@10", "cold_start_coverage"):
            assert row[metric] > before[metric]
    assert stored_results("cf_vs_popularity")["seconds for 12,000 users"] < 30


def test_the_page_shows_the_stored_numbers():
    page = " ".join((EXAMPLES.parent / "docs" / "cf-evaluation.md").read_text("utf-8").split())
    stored = stored_results("cf_vs_popularity")
    labels = {"ALS": "als", "BPR": "bpr", "popularity": "popularity", "random, expected": "random, expected"}
    for label, name in labels.items():
        results = stored["ml-100k"][name]["results"]
        coverage = f" {results['coverage']:.2f}" if "coverage" in results else ""
        assert f"| {label} | {results['recall@10']:.3f} | {results['ndcg@10']:.3f} |{coverage} |" in page
    test = stored["ml-100k"]["tests"]["als recall@10"]
    lift, low, high = re.findall(r"\d+\.\d", test["verdict"])[:3]
    other = stored["ml-latest-small"]["tests"]["als recall@10"]["lift in percent"]
    assert f"{test['lift in percent']:.1f}" == lift
    assert f"by {lift} % in recall@10 (interval {low} to {high} %, corrected p < 0.0001)" in page
    assert f"on ml-latest-small by {other:.1f} %" in page
    assert f"evaluated in {stored['seconds for 12,000 users']:.2g} s" in page
    chosen = stored_results("hybrid")["ml-100k"]["chosen"]
    gains = {
        name: f"{float(row['improvement'].rstrip('%')):+.0f} %"
        for name, row in chosen["test"].items()
        if row["improvement"].endswith("%")
    }
    assert f"(alpha = {chosen['alpha']}, diversity = {chosen['diversity']})" in page
    assert f"{gains['semantic_alignment@10']} alignment, {gains['diversity@10']} diversity" in page
    assert f"at the cost of {gains['ndcg@10'].lstrip('-')} of NDCG" in page


@pytest.mark.shared
def test_als_beats_popularity_on_movielens(shared_dir, monkeypatch):
    pytest.importorskip("implicit")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setenv("RECSYS_SHARED", str(shared_dir))
    import movielens

    data = movielens.load_dataset("ml-100k")
    sizes = data.test.groupby("user_id").size()
    assert (len(sizes), set(sizes)) == (943, {movielens.N_LAST})
    known = pd.concat([data.train, data.validation])
    settings = stored_results("cf_vs_popularity")["ml-100k"]["als"]["settings"]
    model = movielens.fit_model(data, "als", settings, known)
    train, test = movielens.items_by_user(known), movielens.items_by_user(data.test)
    comparator = ModelComparator()
    results = ModelEvaluator(model.user_factors, model.item_factors, [10]).evaluate(test, train)
    comparator.add_model_results("als", results)
    popular = PopularityBaseline(data.counts(known)).evaluate(test, train, [10])
    comparator.add_baseline_results("popularity", popular)
    (row,) = comparator.get_improvement_summary("popularity", ["recall@10"]).itertuples(index=False)
    assert row.relative_percent >= 20
    assert row.adjusted_p_value < 0.05
    expected = stored_results("cf_vs_popularity")["ml-100k"]["als"]["results"]["recall@10"]
    assert results["recall@10"] == pytest.approx(expected, rel=0.05)
    sys.modules.pop("movielens")


def test_twelve_thousand_users_take_far_less_than_thirty_seconds(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import cf_vs_popularity

    assert cf_vs_popularity.time_evaluation() < 15  # half a second on an idle machine
    sys.modules.pop("movielens")
