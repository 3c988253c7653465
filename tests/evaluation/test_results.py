"""The printed and exported forms of a result, and inputs that were once misread."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import recsys
from recsys.errors import ColumnError, InputError, MergeError, RecsysError, UnknownNameError

LISTS = {"ann": ["a", "b"], "bob": ["b", "c"], "eve": ["c"]}
TRUTH = {"ann": {"a"}, "bob": {"c"}, "eve": {"a"}}


def test_a_result_crosses_processes():
    result = recsys.evaluate(LISTS, TRUTH, ["mrr"])
    again = pickle.loads(pickle.dumps(result))  # noqa: S301 - our own bytes
    assert again == result
    with pytest.raises(RecsysError, match="Evaluate the lists again"):
        again.under("trec_eval")


def test_groups_show_how_many_cases_they_hold():
    result = recsys.evaluate(LISTS, TRUTH, ["hit@1"], by={"ann": "old", "bob": "new", "eve": "new"})
    frame = result.to_frame()
    assert frame["group"].tolist() == ["overall", "new", "old"]
    assert frame["cases"].tolist() == [3, 2, 1]
    assert result.by["old"]["hit@1"] == 1.0
    assert result.by_sizes == {"new": 2, "old": 1}


def test_all_groups_together_have_a_name_that_no_group_has():
    result = recsys.evaluate(LISTS, TRUTH, ["hit@1"], by={"ann": "", "bob": "overall", "eve": "overall"})
    frame = result.to_frame()
    assert frame["group"].tolist() == ["(overall)", "", "overall"]
    assert frame["cases"].tolist() == [3, 1, 2]


def test_groups_of_another_type_stay_apart_in_json():
    result = recsys.evaluate(LISTS, TRUTH, ["mrr"], by={"ann": 1, "bob": "1", "eve": 1})
    groups = [row["group"] for row in json.loads(result.to_json())["result"]["by"]]
    assert groups == [1, "1"]


def test_the_hash_is_of_the_result_alone():
    first, second = (json.loads(recsys.evaluate(LISTS, TRUTH, ["mrr"]).to_json()) for _ in range(2))
    assert first["sha256"] == second["sha256"]
    other = json.loads(recsys.evaluate(LISTS, TRUTH, ["mrr"], conventions="ranx").to_json())
    assert other["sha256"] != first["sha256"]


def test_cases_of_users_are_called_so():
    lists = pd.DataFrame({"case": [1, 2, 3], "user": ["u", "u", "v"], "item": ["a", "b", "a"]})
    truth = pd.DataFrame({"case": [1, 2, 3], "user": ["u", "u", "v"], "item": ["a", "a", "a"]})
    result = recsys.evaluate(lists, truth, ["hit@1"])
    assert "3 cases of 2 users" in str(result)
    assert result.per_case.clusters.tolist() == ["u", "u", "v"]


def test_rank_goes_before_score_and_says_so():
    lists = pd.DataFrame({"user": [1, 1], "item": ["a", "b"], "score": [0.9, 0.5], "rank": [2, 1]})
    result = recsys.evaluate(lists, {1: ["b"]}, ["mrr"])
    assert result["mrr"] == 1.0
    assert "ordered by 'rank'; 'score' was not used" in str(result)


def test_a_column_that_looks_like_the_score_is_not_passed_over():
    lists = pd.DataFrame({"user": [1, 1], "item": [2, 3], "yhat": [1.0, 5.0]})
    with pytest.raises(ColumnError, match="yhat"):
        recsys.evaluate(lists, {1: [3]}, ["mrr"])
    assert recsys.evaluate(lists, {1: [3]}, ["mrr"], columns={"score": "yhat"})["mrr"] == 1.0
    assert recsys.evaluate(lists.rename(columns={"yhat": "rating"}), {1: [3]}, ["mrr"])["mrr"] == 1.0


def test_relevant_items_a_complete_list_lacks_are_said():
    lists = {"a": ["x", "y"], "b": ["x", "y"]}
    result = recsys.evaluate(lists, {"a": ["q"], "b": ["x"]}, ["auc"], full_ranking=True)
    assert result.counts["not_candidates"] == 1
    assert "1 judged item that is not among the candidates" in str(result)


@pytest.mark.parametrize("scores", [pd.to_datetime(["NaT", "2020"]), pd.to_timedelta([None, "1s"]), [1j, 2j]])
def test_dates_are_no_scores(scores):
    lists = pd.DataFrame({"user": [1, 1], "item": [2, 3], "score": scores})
    with pytest.raises(InputError, match="not numbers"):
        recsys.evaluate(lists, {1: [2]}, ["mrr"])


def test_one_list_with_its_scores_in_a_dict():
    assert recsys.score_list({"a": 0.1, "b": 0.9}, {"b"}, "mrr") == 1.0


def test_one_list_without_truth():
    assert recsys.score_list([1, 2], [], "ndcg@2") == 0.0
    assert np.isnan(recsys.score_list([1, 2], [], "average_rank", full_ranking=True))
    with pytest.raises(InputError):
        recsys.score_list([1, 2], [], "ndcg@2", conventions={"no_truth": "error"})


BAD = {
    "groups as text": lambda: recsys.evaluate(LISTS, TRUTH, ["mrr"], by="user"),
    "groups as a list": lambda: recsys.evaluate(LISTS, TRUTH, ["mrr"], by=["g"]),
    "a group that is a list": lambda: recsys.evaluate(
        LISTS, TRUTH, ["mrr"], by={user: ["g"] for user in LISTS}
    ),
    "metrics as a number": lambda: recsys.evaluate(LISTS, TRUTH, 5),
    "metrics of nothing": lambda: recsys.evaluate(LISTS, TRUTH, []),
    "a metric without a name": lambda: recsys.evaluate(LISTS, TRUTH, ["@10"]),
    "catalogue as a fraction": lambda: recsys.evaluate(LISTS, TRUTH, ["mrr"], catalogue=2.5),
    "catalogue as text": lambda: recsys.evaluate(LISTS, TRUTH, ["mrr"], catalogue="abc"),
    "weights as a list": lambda: recsys.evaluate(LISTS, TRUTH, ["mrr"], case_weights=[1, 2, 3]),
    "columns as text": lambda: recsys.evaluate(pd.DataFrame({"u": [1]}), TRUTH, ["mrr"], columns="u"),
    "columns with numbers for names": lambda: recsys.evaluate(pd.DataFrame([[1, 2]]), TRUTH, ["mrr"]),
    "merge with nothing": lambda: recsys.Evaluator(["mrr"]).merge(None),
    "a masked matrix": lambda: recsys.Factors(np.ma.masked_greater(np.eye(2), 0.5), np.eye(2)),
    "a frame as factors": lambda: recsys.Factors(pd.DataFrame(np.eye(2), index=[1, 0]), np.eye(2)),
    "an unknown choice": lambda: recsys.compare([recsys.evaluate(LISTS, TRUTH, ["mrr"])] * 2, tset="t"),
    "recommend without k": lambda: recsys.recommend(recsys.Factors(np.eye(2), np.eye(2)), None),
}


@pytest.mark.parametrize("name", BAD)
def test_a_mistake_is_typed_and_has_a_way_out(name):
    with pytest.raises(RecsysError) as caught:
        BAD[name]()
    assert isinstance(caught.value, MergeError) or caught.value.hint


def test_comparisons_of_three_name_both_sides():
    people = {n: {n} for n in range(60)}
    models = {
        name: recsys.evaluate({n: [n if n % every == 0 else -1] for n in people}, people, ["hit@1"])
        for name, every in (("a", 2), ("b", 3), ("c", 5))
    }
    assert [(row.model, row.baseline) for row in recsys.compare(models)] == [("a", "b"), ("a", "c")]
    found = recsys.compare(models).pairs()
    assert [line.split()[2] for line in str(found).split("\n")[3:6]] == ["a", "a", "b"]
    assert found["c", "b", "hit@1"].baseline == "b"
    assert found["b", "hit@1"].baseline == "a"
    with pytest.raises(InputError, match="compared with 'a', 'b'"):
        found["c", "hit@1"]
    with pytest.raises(UnknownNameError):
        found["d", "hit@1"]


def test_errors_name_ids_that_were_given():
    with pytest.raises(InputError, match="item 1000 of the truth"):
        recsys.evaluate(recsys.Factors(np.eye(3), np.eye(3)), {0: [1000]}, ["mrr"])
    with pytest.raises(RecsysError, match=r"int in one table \(7, "):
        recsys.evaluate({1: [7]}, {1: ["x"]}, ["mrr"])


def test_lists_close_up_over_their_repeats_before_the_cut():
    lists, truth = {1: ["a", "a", "b", "a", "c"], 2: ["b"]}, {1: {"b", "c"}, 2: {"b"}}
    result = recsys.evaluate(lists, truth, ["hits@2", "hits(duplicates=collapse)@2", "distinct_items@2"])
    assert result.per_user["hits@2"].tolist() == [0, 1]
    assert result.per_user["hits(duplicates=collapse)@2"].tolist() == [1, 1]
    whole = result.under({"duplicates": "collapse"})
    assert whole.per_user["hits@2"].tolist() == [1, 1]
    assert result["distinct_items@2"] == 2
    assert recsys.score_list(lists[1], truth[1], "hits(duplicates=collapse)@2") == 1
    scored = {1: [("a", 3.0), ("a", 3.0), ("b", 3.0), ("c", 1.0)]}
    tied = {"duplicates": "collapse", "ties": "expected"}
    result = recsys.evaluate(scored, truth, "hits@1", conventions=tied)
    assert result.per_user["hits@1"].tolist()[0] == 0.5
    assert recsys.score_list(scored[1], truth[1], "hits(duplicates=collapse)@3") == 2


def test_one_is_counted_as_one():
    one = recsys.evaluate({1: [3, 3, 4]}, {1: {4}}, ["recall@3", "coverage@3"], catalogue=[3])
    first = ": each counts at its first place, and its repeats take places as misses"
    assert f"\n1 item listed more than once{first}\n" in str(one)
    twice = str(one.under({"duplicates": "all"}))
    assert "\n1 item listed more than once: each counts at all its places\n" in twice
    collapsed = one.under({"duplicates": "collapse"})
    assert "\n1 item listed more than once: each stays at its first place, and the lists" in str(collapsed)
    assert "catalogue: 1 item\n" in str(one)
    assert "catalogue: 3 items" in str(recsys.evaluate({1: [3, 4]}, {1: {5}}, ["coverage@3"]))


def test_lists_are_short_to_look_at_and_come_back_from_their_table():
    rng = np.random.default_rng(0)
    model = recsys.Factors(rng.standard_normal((30, 4)), rng.integers(0, 2, (50, 4)).astype(float))
    truth = {u: [u] for u in range(30)}
    lists = recsys.recommend(model, 5)
    assert repr(lists) == f"Lists(30 cases, {lists.to_frame().item.nunique()} items, 150 rows, with scores)"
    assert list(lists.to_frame()) == ["user", "item", "score"]
    one, other = (
        recsys.evaluate(held, truth, "ndcg@5", conventions={"ties": "expected"})
        for held in (lists.to_frame(), lists)
    )
    assert one == other
    assert one.counts["tied"] > 0
    plain = recsys.read_lists({"ann": ["b", "a"], "bob": ["c"]})
    assert plain.to_frame().to_dict("list") == {
        "user": ["ann", "ann", "bob"],
        "item": ["b", "a", "c"],
        "rank": [1, 2, 1],
    }
    cases = pd.DataFrame({"case": [1, 2], "user": [7, 7], "item": [4, 5], "rank": [1, 1]})
    assert recsys.read_lists(cases).to_frame().equals(cases)
    assert repr(recsys.read_interactions({1: {3: 2.0}})) == "Interactions(1 case, 1 item, 1 row, with grades)"


def test_other_conventions_ask_for_the_highest_grade_again():
    """max_grade was not set, so it is that of the truth, however the conventions were changed."""
    lists, truth = {1: [3, 4], 2: [5, 3]}, {1: {4: 5.0, 3: 1.0}, 2: {3: 2.0}}
    asked = {"metrics": ["err@2", "ndcg@2"]}
    moved = recsys.evaluate(lists, truth, **asked).under("rectools")
    assert moved == recsys.evaluate(lists, truth, **asked, conventions="rectools")


class Tracker:
    """Keeps numbers and files, as MLflow does."""

    def __init__(self):
        self.values, self.files = {}, {}

    def log_metrics(self, values, *, step):
        self.values |= {(name, step): value for name, value in values.items()}

    def log_artifact(self, path):
        self.files[Path(path).name] = Path(path).read_text(encoding="utf-8")


def test_a_tracker_gets_the_users_as_csv_where_there_is_no_parquet(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", {}.get)
    result = recsys.evaluate({"ann": [3, 5], "bob": [4]}, {"ann": {5}, "bob": {4}}, ["mrr"])
    tracker = Tracker()
    result.log_to(tracker, prefix="a/b ")
    assert tracker.values == {("a/b mrr", None): 0.75}
    assert tracker.files == {"a_b_per_user.csv": "user,mrr\nann,0.5\nbob,1.0\n"}


def test_a_tracker_gets_a_report_that_is_written_or_was(tmp_path):
    pytest.importorskip("jinja2")
    result = recsys.evaluate({1: [3, 5], 2: [4]}, {1: {5}, 2: {4}}, ["mrr"])
    tracker = Tracker()
    result.log_to(tracker, report=True, per_user=False)
    assert list(tracker.files) == ["report.html"]
    assert "mrr" in tracker.files["report.html"]
    (tmp_path / "old.html").write_text("old")
    result.log_to(tracker, report=tmp_path / "old.html", per_user=False, step=1)
    assert tracker.files["old.html"] == "old"
    with pytest.raises(InputError, match="keeps no files"):
        result.log_to(print, report=True)


class Writer:
    """Takes one number at a time, as TensorBoard does."""

    def __init__(self):
        self.values = []

    def add_scalar(self, name, value, step):
        self.values.append((name, value, step))


class Run:
    """Takes a dict of numbers, as W&B does."""

    def __init__(self):
        self.values = []

    def log(self, values, *, step):
        self.values.append((values, step))


def test_a_tracker_gets_numbers_in_the_form_it_takes():
    result = recsys.evaluate({1: [3, 5], 2: [4]}, {1: {5}, 2: {4}}, ["mrr", "hit@1"])
    writer, run = Writer(), Run()
    result.log_to(writer, step=7)
    assert writer.values == [("mrr", 0.75, 7), ("hit_at_1", 0.5, 7)]
    result.log_to(run, step=8, prefix="test/")
    assert run.values == [({"test/mrr": 0.75, "test/hit@1": 0.5}, 8)]
    with pytest.raises(InputError, match="unsupported tracker: int") as caught:
        result.log_to(42)
    assert "a function of (name, value, step)" in str(caught.value)
    with pytest.raises(InputError, match=r"there is no report gone\.html"):
        result.log_to(Tracker(), report="gone.html")


@pytest.mark.parametrize("level", [-0.1, 1.5])
def test_a_level_of_a_quantile_is_a_share(level):
    result = recsys.evaluate({1: [3, 5], 2: [4]}, {1: {5}, 2: {4}}, ["mrr"])
    with pytest.raises(InputError, match=f"level {level} is not a share"):
        result.quantiles([0.5, level])


def test_a_table_of_an_unknown_kind_is_refused():
    result = recsys.evaluate({1: [3]}, {1: {3}}, ["mrr"])
    with pytest.raises(UnknownNameError, match=r"unknown kind of table 'csv'\. Known: arrow, pandas, polars"):
        result.to_frame("csv")


def test_intervals_that_take_long_are_left_out_of_a_print_unless_asked_for(monkeypatch):
    result = recsys.evaluate({1: [3, 5], 2: [4, 1]}, {1: {5}, 2: {4}}, ["mrr"])
    assert "95% interval" in result.to_text(intervals=None)
    monkeypatch.setattr("recsys.evaluation.results._QUICK_VALUES", 1)
    assert result.to_text(intervals=None) == result.to_text()
    assert "95% interval" in result.to_text(intervals=True)


def test_groups_without_a_value_have_no_gap():
    lists, truth = {1: ["a"], 2: ["b"]}, {1: ["a"], 2: ["b"]}
    result = recsys.evaluate(lists, truth, "ndcg@2", by={1: "x", 2: "y"}, conventions={"relevant_from": 5})
    gap = result.gaps()["ndcg@2"]
    assert (gap.best, gap.worst) == (None, None)
    assert np.isnan([gap.difference, gap.ratio]).all()


def test_a_user_with_several_cases_is_counted_in_cases_and_a_frame_keeps_its_names():
    truth, lists = {1: {3}, 2: {4}, 3: {5}}, {1: [3], 2: [5], 3: [5]}
    by_user = recsys.evaluate(lists, truth, ["mrr"])
    by_case = recsys.evaluate(lists, truth, ["mrr"], clusters={1: "ann", 2: "ann", 3: "bob"})
    assert "users" in str(by_user).split("\n")[0]
    assert "cases" in str(by_case).split("\n")[0]
    assert [list(each.to_frame()) for each in (by_user, by_case)] == [["metric", "value", "cases"]] * 2


def test_a_value_has_no_interval_where_only_rows_could_tell(monkeypatch):
    result = recsys.evaluate(
        {u: [u % 20, u % 7] for u in range(400)}, {u: {u % 7} for u in range(400)}, ["hit@2", "mrr"]
    )
    whole = recsys.evaluation.results.Evaluation.intervals

    def of_sums(self, *arguments, metrics=None, **keywords):
        if "mrr" in metrics:
            raise recsys.errors.NoRowsError("an interval over users whose cases lie in several pieces")
        return whole(self, *arguments, metrics=metrics, **keywords)

    monkeypatch.setattr(recsys.evaluation.results.Evaluation, "intervals", of_sums)
    text = result.to_text(intervals=True)
    assert "no interval of mrr: the values per user were not kept" in text
    assert re.search(r"^hit@2 +\d\.\d{4}  \[", text, re.MULTILINE)


def test_the_note_says_what_was_done_with_users_without_lists_or_truth():
    lists, truth = {"u": ["a"], "v": ["a"]}, {"u": {"a": 1}, "v": {"a": 0}, "w": {"a": 1}}
    for rules, words in (
        ({}, "1 without relevant items (left out), 1 without recommendations (count as an empty list)"),
        ({"no_truth": "zero", "no_list": "skip"}, "(count as 0), 1 without recommendations (left out)"),
        ({"no_truth": "unjudged"}, "(left out if nothing is judged, else count as 0)"),
    ):
        assert words in str(recsys.evaluate(lists, truth, "ndcg@1", conventions=rules))
