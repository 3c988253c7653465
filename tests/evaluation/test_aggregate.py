"""evaluate(aggregate=): the same values per user, another number of them; everywhere the number is stated."""

import json
from dataclasses import replace

import numpy as np
import pytest

import recsys
from recsys.errors import (
    ConventionError,
    FileError,
    MergeError,
    NoRowsError,
    NotDefinedError,
    UnknownNameError,
)
from recsys.evaluation.engine import without_rows
from recsys.evaluation.origin import StoredOrigin
from recsys.evaluation.results import Evaluation
from recsys.report.board import Run

USERS = range(120)
RNG = np.random.default_rng(0)
LISTS = {user: RNG.permutation(40)[:10].tolist() for user in USERS}
TRUTH = {user: set(RNG.permutation(40)[: 1 + user % 4].tolist()) for user in USERS}
METRICS = ["ndcg@10", "recall@5"]


def lower_median(values):
    return sorted(values)[(len(values) - 1) // 2]


def test_the_mean_is_the_default_to_the_last_byte():
    plain, named = (recsys.evaluate(LISTS, TRUTH, METRICS, **a) for a in ({}, {"aggregate": "mean"}))
    assert plain == named
    assert json.loads(plain.to_json())["sha256"] == json.loads(named.to_json())["sha256"]
    assert "aggregate" not in json.loads(plain.to_json())["result"]


@pytest.mark.parametrize("name", ["median", "p90", "trimmed(0.1)"])
def test_the_number_is_that_of_the_values_per_user(name):
    mean = recsys.evaluate(LISTS, TRUTH, METRICS)
    result = recsys.evaluate(LISTS, TRUTH, METRICS, aggregate=name)
    for metric in METRICS:
        values = mean.values_of(metric)
        expected = {
            "median": lower_median(values.tolist()),
            "p90": float(np.quantile(values, 0.9, method="inverted_cdf")),
            "trimmed(0.1)": float(np.sort(values)[12:-12].mean()),
        }[name]
        assert result[metric] == pytest.approx(expected, rel=1e-14)
        assert np.array_equal(result.values_of(metric), values)
        estimate = result.intervals()[metric]
        assert estimate.value == result[metric]
        assert estimate.interval.low <= result[metric] <= estimate.interval.high
    assert result.aggregate.name == name
    assert result != mean
    assert f"value: the {result.aggregate.words} over users" in str(result)


def test_groups_have_their_own_and_gaps_no_interval_of_means():
    result = recsys.evaluate(LISTS, TRUTH, METRICS, by={u: u % 2 for u in USERS}, aggregate="median")
    for label in (0, 1):
        values = [v for u, v in zip(USERS, result.values_of("ndcg@10"), strict=True) if u % 2 == label]
        assert result.by[label]["ndcg@10"] == lower_median(values)
    assert result.gaps()["ndcg@10"].interval is None


def test_what_is_one_number_of_all_users_stays_and_is_named():
    metrics = ["hit@10", "coverage@10", "gmap", "f1@10"]
    conventions = {"f1_of": "means"}
    mean = recsys.evaluate(LISTS, TRUTH, metrics, catalogue=40, conventions=conventions)
    result = recsys.evaluate(LISTS, TRUTH, metrics, catalogue=40, conventions=conventions, aggregate="p10")
    assert result["hit@10"] == 0.0 < mean["hit@10"]
    assert [result[m] for m in metrics[1:]] == [mean[m] for m in metrics[1:]]
    assert "value: the 10th percentile over users; coverage@10, gmap, f1@10 are of all users together" in str(
        result
    )


def test_files_and_merged_parts_state_the_same_number(tmp_path):
    result = recsys.evaluate(LISTS, TRUTH, METRICS, aggregate="p90")
    result.save(tmp_path / "a.json")
    loaded = recsys.load(tmp_path / "a.json")
    assert loaded == result
    assert loaded.aggregate == result.aggregate
    assert str(loaded) == str(result)
    halves = [
        recsys.evaluate(
            *({u: side[u] for u in USERS if u % 2 == half} for side in (LISTS, TRUTH)),
            METRICS,
            aggregate="p90",
        )
        for half in (0, 1)
    ]
    assert dict(halves[0].merge(halves[1])) == dict(result)
    with pytest.raises(MergeError, match="different aggregates: p90 and mean"):
        halves[0].merge(recsys.evaluate({500: [1]}, {500: {1}}, METRICS))
    document = json.loads((tmp_path / "a.json").read_text())
    document["result"]["aggregate"] = "median"
    (tmp_path / "a.json").write_text(json.dumps(document))
    with pytest.raises(FileError, match="do not give the result"):
        recsys.load(tmp_path / "a.json")


def test_users_in_batches_and_beyond_memory(tmp_path):
    pytest.importorskip("duckdb")
    pd = pytest.importorskip("pandas")
    files = {}
    for side, data in (("lists", LISTS), ("truth", TRUTH)):
        rows = [(u, i, r) for u, items in data.items() for r, i in enumerate(items, start=1)]
        table = pd.DataFrame(rows, columns=["user", "item", "rank"])
        files[side] = tmp_path / f"{side}.parquet"
        (table if side == "lists" else table.drop(columns="rank")).to_parquet(files[side])
    for name in ("median", "trimmed(0.1)"):
        expected = recsys.evaluate(LISTS, TRUTH, METRICS, aggregate=name, by={u: u % 3 for u in USERS})
        evaluator = recsys.Evaluator(METRICS, aggregate=name)
        for half in (0, 1):
            evaluator.update(*({u: side[u] for u in USERS if u % 2 == half} for side in (LISTS, TRUTH)))
        assert dict(evaluator.result()) == dict(expected)
        beyond = recsys.evaluate(
            files["lists"],
            files["truth"],
            METRICS,
            aggregate=name,
            memory="4GB",
            by={u: u % 3 for u in USERS},
        )
        assert dict(beyond) == dict(expected)
        assert beyond.by == expected.by
        for metric in METRICS:
            here, there = (r.intervals()[metric].interval for r in (expected, beyond))
            assert (there.low, there.high) == pytest.approx((here.low, here.high))
        kept = {"memory": "4GB", "per_user": tmp_path / "kept"}
        recsys.evaluate(files["lists"], files["truth"], METRICS, aggregate=name, **kept)
        folder = recsys.load(tmp_path / "kept")
        assert dict(folder) == dict(expected)
        assert folder.aggregate == expected.aggregate
    with pytest.raises(MergeError, match="aggregate"):
        recsys.Evaluator(METRICS).merge(recsys.Evaluator(METRICS, aggregate="median"))


def test_beyond_the_histogram_the_number_is_that_of_kept_values(monkeypatch):
    whole = recsys.evaluate(LISTS, TRUTH, METRICS, aggregate="median")
    monkeypatch.setattr("recsys.stats.sums.histogram_of", lambda *_: None)
    sums = without_rows(whole.partial)
    kept = Evaluation(
        replace(sums, per_case=whole.partial.per_case),
        whole.requests,
        whole.conventions,
        origin=StoredOrigin(ranges=whole.ranges),
    )
    assert dict(kept) == dict(whole)
    assert repr(kept.intervals()) == repr(whole.intervals())
    with pytest.raises(NoRowsError, match="distinct values"):
        dict(Evaluation(sums, whole.requests, whole.conventions))


def test_comparisons_and_gates_are_of_means_and_say_so():
    better = {
        user: [*sorted(TRUTH[user])[:1], *(i for i in LISTS[user] if i not in TRUTH[user])] for user in USERS
    }
    sides = [{"old": LISTS, "new": better}, {}]
    means, medians = (
        {name: recsys.evaluate(lists, TRUTH, METRICS, **a) for name, lists in sides[0].items()}
        for a in ({}, {"aggregate": "median"})
    )
    expected, found = recsys.compare(means, "old"), recsys.compare(medians, "old")
    assert [row.verdict for row in found] == [row.verdict for row in expected]
    assert found["new", "ndcg@10"].value == pytest.approx(means["new"]["ndcg@10"])
    assert "means over users are compared; results state the median" in str(found)
    gate = recsys.gate(medians["new"], medians["old"], {"ndcg@10": "1%"})
    assert gate.checks[0].value == pytest.approx(means["new"]["ndcg@10"])
    assert "means over users are compared" in str(gate)
    assert "different aggregates: the mean and the median" in str(
        recsys.explain(means["old"], medians["old"])
    )


def test_pages_show_the_number_and_say_what_it_is(tmp_path):
    result = recsys.evaluate(LISTS, TRUTH, METRICS, aggregate="p90")
    run, other = Run.of(result, "a.json"), Run.of(recsys.evaluate(LISTS, TRUTH, METRICS), "b.json")
    assert run.values == dict(result)
    assert "90th percentile over users" in run.conventions
    assert run.question["conventions"] != other.question["conventions"]
    page = result.report(tmp_path / "report.html").read_text()
    assert "values: the 90th percentile over users" in page
    assert f"{result['ndcg@10']:.4f}" in page
    assert "Values are the 90th percentile over users." in str(result.methods())


def test_bounds_are_of_the_same_number():
    limits = recsys.evaluate(LISTS, TRUTH, ["recall@1"], aggregate="median", catalogue=40).bounds()[
        "recall@1"
    ]
    best = [1 / len(TRUTH[user]) for user in USERS]
    assert limits.best == lower_median(best)
    assert limits.floor == 0.0


def test_what_has_no_such_form_is_refused():
    with pytest.raises(ConventionError, match="cannot be computed with case_weights"):
        recsys.evaluate(
            LISTS, TRUTH, METRICS, aggregate="trimmed(0.2)", case_weights=dict.fromkeys(USERS, 2.0)
        )
    with pytest.raises(NotDefinedError, match="mean over users"):
        recsys.evaluate(LISTS, TRUTH, METRICS, aggregate="median", stop_when=0.01)
    with pytest.raises(UnknownNameError, match="mode"):
        recsys.evaluate(LISTS, TRUTH, METRICS, aggregate="mode")
