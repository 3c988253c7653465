"""The MovieLens examples: their claims hold on the stored numbers and on a model trained by the test."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pandas as pd
import pytest

from recsys.cf.evaluation import ModelComparator, ModelEvaluator, PopularityBaseline
from recsys.errors import TieWarning

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
    # Items without training interactions have zero factors, so they tie.
    with pytest.warns(TieWarning):
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
