"""Each preset is a row that builds, prints and comes back; what it does not copy stays within bounds here."""

from __future__ import annotations

import ast
import datetime as dt
import inspect
import math
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recsys
from recsys.conventions import presets
from recsys.conventions.decisions import Conventions, describe
from recsys.conventions.presets import PRESETS, preset, preset_name
from recsys.errors import DuplicateError, UnknownNameError
from recsys.metrics import METRICS

pytestmark = pytest.mark.filterwarnings("ignore::recsys.errors.TieWarning")

PEERS = {
    "ranx", "trec_eval", "ir_measures", "rectools", "lenskit", "replay", "recpack", "recbole", "elliot",
    "warprec", "cornac", "microsoft", "implicit", "torchmetrics", "evidently", "rs_metrics", "recometrics",
    "irspack", "cf_evaluation", "cf_evaluation_code", "recommender_evaluator", "ncf_evaluator",
    "rating_threshold", "rating_and_ranking",
}  # fmt: skip

# One user with a hit at the first place, in five rows; shared by many tests below.
FIVE = [(1, 0.9), (2, 0.8), (3, 0.7), (4, 0.6), (5, 0.5)]
TWICE = [(1, 0.9), (1, 0.8), (2, 0.7), (3, 0.6), (4, 0.5)]


def value(name: str, request: str, lists: object, truth: object, **options: object) -> float:
    return recsys.evaluate(lists, truth, [request], conventions=name, **options)[request]


def test_every_peer_and_every_document_has_a_row():
    assert set(PRESETS) >= PEERS


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("seed000", "cf_evaluation"),
        ("seed000_text", "cf_evaluation"),
        ("seed_000", "cf_evaluation"),
        ("seed000_code", "cf_evaluation_code"),
        ("seed001", "recommender_evaluator"),
        ("seed_001", "recommender_evaluator"),
        ("seed002", "ncf_evaluator"),
        ("seed003", "rating_threshold"),
        ("seed004", "rating_and_ranking"),
    ],
)
def test_the_documents_are_found_by_their_former_names(alias, name):
    assert preset(alias) is PRESETS[name]


@pytest.mark.parametrize("row", PRESETS.values(), ids=str)
class TestEveryRow:
    def test_prints_its_name_and_comes_back_by_it(self, row):
        assert str(row.conventions) == row.name
        assert Conventions.named(str(row.conventions)) == row.conventions
        assert Conventions.of(row.name) is row.conventions
        assert row.library in str(row)
        assert row.version in str(row)

    def test_is_found_by_every_alias_however_it_is_spelled(self, row):
        for name in (row.name, *row.aliases):
            assert preset(name) is row
            assert preset(f" {name.upper().replace('_', '-')}") is row

    def test_decides_something_differently_from_us(self, row):
        assert row.conventions != Conventions()
        assert preset_name(row.conventions) == row.name

    def test_says_when_it_was_checked(self, row):
        assert dt.date.fromisoformat(row.checked) >= dt.date(2026, 11, 15)
        assert row.version

    def test_speaks_in_sentences(self, row):
        for note in row.notes:
            assert note.endswith(".")
            assert "://" not in note

    def test_overrides_only_metrics_there_are(self, row):
        for metric, decisions in row.conventions.per_metric:
            assert metric in METRICS
            seen = row.conventions.for_metric(metric)
            for decision, choice in decisions:
                assert getattr(seen, decision) == choice != getattr(row.conventions, decision)

    def test_a_changed_decision_is_no_longer_the_row(self, row):
        other = "pooled" if row.conventions.average == "macro" else "macro"
        changed = row.conventions.but(average=other)
        assert preset_name(changed) is None
        assert f"average={other}" in str(changed) or other == "macro"


def test_no_two_rows_decide_alike():
    same = [(a.name, b.name) for a, b in combinations(PRESETS.values(), 2) if a.conventions == b.conventions]
    assert not same


def test_no_two_rows_share_a_name():
    names = [key for row in PRESETS.values() for key in (row.name, *row.aliases)]
    assert len(names) == len(set(names))
    assert "default" not in names


def test_our_own_conventions_are_called_default():
    assert preset_name(Conventions()) == "default"
    assert Conventions.of("default") == Conventions()


@pytest.mark.parametrize(
    ("typed", "meant"), [("rank", "ranx"), ("trec-evil", "trec_eval"), ("ncf_evaluation", "ncf_evaluator")]
)
def test_an_unknown_name_suggests_the_nearest(typed, meant):
    with pytest.raises(UnknownNameError) as error:
        preset(typed)
    assert meant in error.value.near or meant in str(error.value)


def test_the_module_knows_conventions_and_errors_only():
    tree = ast.parse(inspect.getsource(presets))
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {m for m in modules if m.startswith("recsys")} == {"recsys.conventions.decisions", "recsys.errors"}
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Import)]


def test_the_text_of_document_000_divides_by_the_hits():
    truth = {1: {1: 1, 3: 1, 9: 1}}
    assert value("cf_evaluation", "map@5", {1: FIVE}, truth) == pytest.approx((1 + 2 / 3) / 2)
    assert value("default", "map@5", {1: FIVE}, truth) == pytest.approx((1 + 2 / 3) / 3)


REQUESTS = ["precision@4", "recall@4", "f1@4", "hit@4", "mrr@4", "map@4", "ndcg@4", "rbp", "mrr"]
ITEMS = st.integers(1, 7)
LISTS = st.lists(st.tuples(ITEMS, st.sampled_from([0.1, 0.5, 0.9])), max_size=6).map(
    lambda rows: sorted(rows, key=lambda row: -row[1])
)
TRUTHS = st.dictionaries(ITEMS, st.integers(0, 3), max_size=5)


@pytest.mark.parametrize("name", PRESETS)
@settings(max_examples=25, deadline=None)
@given(lists=st.lists(LISTS, min_size=3, max_size=3), truths=st.lists(TRUTHS, min_size=3, max_size=3))
def test_no_row_ever_leaves_the_bounds(name, lists, truths):
    """Repeats that would take a value past 1, such as a precision of 1.25, are refused instead."""
    lists, truths = dict(enumerate(lists)), dict(enumerate(truths))
    try:
        results = [recsys.evaluate(lists, truths, REQUESTS, conventions=name)]
    except DuplicateError:
        assert any(len({item for item, _ in rows}) < len(rows) for rows in lists.values())
        results = [
            r for r in (evaluate_one(request, lists, truths, name) for request in REQUESTS) if r is not None
        ]
    for result in results:
        for request in result:
            assert all(math.isnan(v) or 0 <= v <= 1 for v in (result[request], *result.values_of(request)))


def evaluate_one(request, lists, truths, name):
    try:
        return recsys.evaluate(lists, truths, [request], conventions=name)
    except DuplicateError:
        return None


def test_a_precision_of_five_quarters_is_refused():
    five_times = [(1, 0.9), (1, 0.8), (1, 0.7), (1, 0.6), (1, 0.5)]
    with pytest.raises(DuplicateError):
        value("implicit", "precision@5", {1: five_times}, {1: {1, 2, 3, 4}})
    with pytest.raises(DuplicateError):
        value("recbole", "recall@5", {1: five_times}, {1: {1, 2, 3, 4}})


CHECKS = {}


def shows(name: str, defect: int):
    """Mark the test that a defect of this row is not copied."""

    def register(check):
        CHECKS[name, defect] = check
        return check

    return register


@pytest.mark.parametrize(
    "key", [(n, d) for n, row in PRESETS.items() for d in range(len(row.defects))], ids=str
)
def test_a_defect_is_not_copied(key):
    assert key in CHECKS, f"no test for: {PRESETS[key[0]].defects[key[1]]}"
    CHECKS[key]()


def test_every_check_is_about_a_defect():
    assert set(CHECKS) == {(n, d) for n, row in PRESETS.items() for d in range(len(row.defects))}


@shows("ranx", 0)
def ranx_rbp():
    items = list(range(20))
    found = value("ranx", "rbp", {1: items}, {1: dict.fromkeys(items, 3)})
    assert found == pytest.approx(1 - 0.8**20)


@shows("ir_measures", 0)
def ir_measures_ties():
    tied, truth = {1: [(1, 0.5), (2, 0.5), (3, 0.5)]}, {1: {2}}
    both = recsys.evaluate(tied, truth, ["mrr", "mrr@3"], conventions="ir_measures")
    assert both["mrr"] == both["mrr@3"] == 0.5
    both = recsys.evaluate(tied, {1: {1}}, ["mrr", "mrr@3"], conventions="ir_measures")
    assert both["mrr"] == both["mrr@3"] == pytest.approx(1 / 3)


@shows("ir_measures", 1)
def ir_measures_gains():
    lists, truth = {1: [3, 1, 9]}, {1: {1: 1, 2: 3, 3: 2}}
    requests = ["ndcg@5", "ndcg(gain=exp2)@5"]
    together = recsys.evaluate(lists, truth, requests, conventions="ir_measures")
    assert list(together.values()) == [value("ir_measures", r, lists, truth) for r in requests]
    assert together["ndcg@5"] != together["ndcg(gain=exp2)@5"]


def the_truth_keeps_its_size(name):
    """Two hits are counted where an item is listed twice, but never three relevant items."""
    assert value(name, "recall@5", {1: TWICE}, {1: {1, 9, 10, 11}}) == 2 / 4


for peer, number in (("rectools", 0), ("torchmetrics", 2), ("evidently", 4)):
    CHECKS[peer, number] = lambda peer=peer: the_truth_keeps_its_size(peer)


def test_a_short_list_of_rectools_has_k_places():
    """One item of ten is shown, the relevant one: nothing is wrong, and RecTools has an accuracy of 0.9."""
    lists, truth = {1: [1]}, {1: {1}}
    assert value("default", "accuracy@2", lists, truth, catalogue=10) == 1
    assert value("rectools", "accuracy@2", lists, truth, catalogue=10) == 0.9
    assert value("rectools", "accuracy(over=list)@2", lists, truth, catalogue=10) == 1
    assert value("rectools", "mcc@2", lists, truth, catalogue=10) == pytest.approx(8 / (2 * 9 * 8) ** 0.5)


@shows("replay", 0)
def replay_containers():
    tied = [(1, 0.9), (2, 0.5), (3, 0.5), (4, 0.5)]
    frame = pd.DataFrame([(1, *row) for row in tied], columns=["user", "item", "score"])
    truth = pd.DataFrame({"user": [1], "item": [2]})
    assert value("replay", "mrr@4", {1: tied}, {1: {2}}) == value("replay", "mrr@4", frame, truth) == 0.25


@shows("elliot", 0)
def elliot_map():
    assert value("elliot", "map@5", {1: FIVE}, {1: {1}}) == 1.0  # the mean of the precisions is 0.4567


@shows("cornac", 0)
def cornac_mrr():
    assert value("cornac", "mrr", {1: FIVE, 2: FIVE}, {1: {1}, 2: {9}}) == 0.5


@shows("cornac", 1)
def cornac_map():
    """Two relevant items tied at the end of four take places 3 and 4, not place 4 both."""
    tied = {1: [(1, 0.5), (2, 0.5), (3, 0.5), (4, 0.5)]}
    assert value("cornac", "map", tied, {1: {1, 2}}) == pytest.approx((1 / 3 + 2 / 4) / 2)


@shows("cornac", 2)
def cornac_f1():
    assert value("cornac", "f1@5", {1: FIVE}, {1: {1}}) == pytest.approx(1 / 3, rel=0, abs=1e-15)


@shows("microsoft", 0)
def microsoft_ndcg():
    assert value("microsoft", "ndcg@5", {1: TWICE}, {1: {1, 9}}) == 1.0  # there 1.106


@shows("microsoft", 1)
def microsoft_r_precision():
    assert value("microsoft", "r_precision", {1: FIVE, 2: FIVE}, {1: {1}, 2: {6, 7}}) == 0.5
    assert value("microsoft", "r_precision", {1: FIVE}, {1: {9}}) == 0.0


@shows("implicit", 0)
def implicit_auc():
    rest = [(item, 0.0) for item in range(5, 10)]
    rules = Conventions.named("implicit").but(ties="expected")
    auc = recsys.evaluate({1: [*TWICE, *rest]}, {1: {1, 9}}, ["auc"], conventions=rules, full_ranking=True)[
        "auc"
    ]
    assert 0.5 < auc < 1


@shows("torchmetrics", 0)
def torchmetrics_ties():
    tied = {1: [(1, 0.9), (2, 0.5), (3, 0.5), (4, 0.5)]}
    assert value("torchmetrics", "mrr@4", tied, {1: {2}}) == pytest.approx((1 / 2 + 1 / 3 + 1 / 4) / 3)


@shows("torchmetrics", 1)
def torchmetrics_short_list():
    truth = {1: {1, 8, 9}, 2: {2}}
    assert value("torchmetrics", "hit@5", {1: FIVE[:2]}, truth) == 0.5  # there 1
    ideal = 1 + 1 / math.log2(3) + 1 / 2
    assert value("torchmetrics", "ndcg@5", {1: FIVE[:2]}, {1: truth[1]}) == pytest.approx(1 / ideal)


@shows("evidently", 0)
def evidently_map():
    assert value("evidently", "map@5", {1: FIVE, 2: [(2, 0.0)]}, {1: {1}, 2: {2}}) == 1.0  # there 3


@shows("evidently", 1)
def evidently_long_k():
    assert value("evidently", "precision@5", {1: FIVE[:2]}, {1: {1, 8, 9}}) == 0.5


@shows("evidently", 2)
def evidently_f():
    assert value("evidently", "f1@2", {1: FIVE}, {1: {3}}) == 0.0


@shows("evidently", 3)
def evidently_places():
    tied = [(1, 0.9), (2, 0.5), (3, 0.5), (4, 0.5)]
    found = [value("evidently", f"hits@{k}", {1: tied}, {1: {1, 2, 3, 4}}) for k in (1, 2, 3, 4)]
    assert found == [1, 2, 3, 4]


@shows("rs_metrics", 0)
def rs_metrics_nan():
    lists, truth = {1: FIVE, 2: FIVE}, {1: {1}, 2: {}, 3: {1}}
    for request in ("precision@5", "recall@5", "ndcg@5"):
        assert 0 < value("rs_metrics", request, lists, truth) < 1


@shows("recmetrics", 0)
def recmetrics_recall():
    assert value("recmetrics", "recall", {1: FIVE}, {1: {1, 3, 9}}) == 2 / 3
    assert value("recmetrics", "recall", {1: FIVE, 2: FIVE}, {1: {1}, 2: {}}) == 0.5


@shows("recmetrics", 1)
def recmetrics_precision():
    assert value("recmetrics", "precision", {1: FIVE}, {1: {1}, 2: {2}}) == 0.1


@shows("ncf_evaluator", 0)
def ncf_evaluator_constant_scorer():
    """One positive, first of a hundred equal scores: a tenth of the time it is in the top ten."""
    lists = {1: [(item, 0.5) for item in range(100)]}
    assert value("ncf_evaluator", "hit@10", lists, {1: {0}}) == pytest.approx(0.1)


def trec_eval(qrels, run, level):
    """Some measures of trec_eval -l `level`, from their definitions, query by query."""
    values = {}
    for query, judged in qrels.items():
        ranked = sorted(run[query], key=lambda d: (run[query][d], d), reverse=True)
        grades = [judged.get(document, 0) for document in ranked]
        good = [place for place, grade in enumerate(grades, 1) if grade >= level]
        n_relevant = sum(grade >= level for grade in judged.values())
        n_bad = len(judged) - n_relevant
        ideal = sorted(judged.values(), reverse=True)
        bad_above = [sum(d in judged and judged[d] < level for d in ranked[: place - 1]) for place in good]

        def dcg(gains, k):
            return sum(gain / math.log2(place + 1) for place, gain in enumerate(gains[:k], 1))

        values[query] = {
            "precision@3": sum(place <= 3 for place in good) / 3,
            "recall@3": sum(place <= 3 for place in good) / n_relevant if n_relevant else 0.0,
            "map": sum(n / place for n, place in enumerate(good, 1)) / n_relevant if n_relevant else 0.0,
            "mrr": 1 / good[0] if good else 0.0,
            "r_precision": sum(p <= n_relevant for p in good) / n_relevant if n_relevant else 0.0,
            "bpref": sum(
                1 - (min(above, n_relevant) / min(n_relevant, n_bad) if above else 0) for above in bad_above
            )
            / n_relevant
            if n_relevant
            else 0.0,
            "hit@1": float(1 in good),
            "hits": float(len(good)),
            # The gain is the grade whatever the level.
            "ndcg(relevant_from=none)": dcg(grades, 99) / dcg(ideal, 99),
            "ndcg(relevant_from=none)@2": dcg(grades, 2) / dcg(ideal, 2),
        }
    return values


@pytest.mark.parametrize("level", [1, 2, 3])
def test_the_relevance_level_of_trec_eval(level):
    """docs/migrating/trec_eval.md: relevant_from= for the measures that count, and not for ndcg."""
    rng = np.random.default_rng(level)
    qrels = {
        str(query): {f"d{n}": int(rng.integers(0, 4)) for n in rng.choice(12, 8, replace=False)} | {"top": 3}
        for query in range(30)
    }
    run = {query: {f"d{n}": float(score) for n, score in enumerate(rng.permutation(12))} for query in qrels}
    expected = trec_eval(qrels, run, level)
    rules = Conventions.named("trec_eval").but(relevant_from=level)
    result = recsys.evaluate(run, qrels, [*expected["0"]], conventions=rules)
    for query, values in expected.items():
        for measure, value in values.items():
            assert result.per_user[measure][query] == pytest.approx(value, abs=1e-12), (query, measure)
    once = rules.but(per_metric={"ndcg": {"relevant_from": None}})
    assert (
        recsys.evaluate(run, qrels, ["ndcg"], conventions=once)["ndcg"] == result["ndcg(relevant_from=none)"]
    )
    if level > 1:
        plain = recsys.evaluate(run, qrels, ["ndcg"], conventions=rules)["ndcg"]
        assert abs(plain - result["ndcg(relevant_from=none)"]) > 0.01


def test_published_numbers_of_trec_eval_at_level_2():
    """From the tests of ir_measures 0.4.3 with pytrec_eval: AP(rel=2), and nDCG, which has no level."""
    qrels = {"0": {"D0": 1, "D2": 0, "D3": 2, "D4": 0}, "1": {"D0": 1, "D3": 2, "D5": 0}}
    run = {
        "0": {"D0": 0.8, "D2": 0.7, "D1": 0.3, "D3": 0.4, "D4": 0.1},
        "1": {"D1": 0.8, "D4": 0.7, "D3": 0.3, "D2": 0.4},
    }
    rules = Conventions.named("trec_eval").but(relevant_from=2)
    names = ["map", "ndcg(relevant_from=none)", "ndcg(relevant_from=none)@3"]
    result = recsys.evaluate(run, qrels, names, conventions=rules).per_user
    assert result["map"].tolist() == pytest.approx([0.33333, 0.25], abs=5e-5)
    assert result["ndcg(relevant_from=none)"].tolist() == pytest.approx([0.76018, 0.32739], abs=1e-5)
    assert result["ndcg(relevant_from=none)@3"].tolist() == pytest.approx([0.76018, 0.0], abs=1e-5)


def test_a_difference_of_single_metrics_is_told():
    """per_metric is no decision by itself: what it decides, and for whom, is said."""
    assert describe("per_metric", ()) == "no metric decides otherwise than the rest"
    told = describe("per_metric", Conventions.named("warprec").per_metric)
    assert told == "for f only: a case without relevant items counts as 0"
    step = recsys.explain("default", "warprec").steps[-1]
    assert (step.decision, step.words) == ("per_metric", told)
    several = Conventions(per_metric={m: {"duplicates": "all"} for m in ("ndcg", "map")}).per_metric
    assert describe("per_metric", several) == "for map, ndcg only: an item listed twice counts twice"


def test_a_gain_of_ones_own_is_named_by_its_module_and_an_unknown_decision_by_its_name():
    rules = Conventions(gain=math.sqrt)
    assert rules.to_dict()["gain"] == "math.sqrt"
    assert describe("gain", math.sqrt) == "gain is math.sqrt"
    with pytest.raises(UnknownNameError, match="unknown convention 'zz'"):
        Conventions(per_metric={"map": {"zz": 1}})
