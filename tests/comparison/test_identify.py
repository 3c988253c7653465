"""identify: every preset is found by its numbers, every mistake by its words."""

from __future__ import annotations

import json
import math
import shlex
import sys
import time
import warnings
import zlib
from collections.abc import Callable
from itertools import combinations
from math import log, log2, log10, sqrt

import numpy as np
import pytest

import recsys
from recsys.comparison import probes
from recsys.comparison.identify import probe_lines
from recsys.conventions.decisions import DECISIONS, Conventions
from recsys.conventions.presets import PRESETS
from recsys.errors import FileError, InputError, NotDefinedError
from recsys.metrics.registry import METRICS, Request

METRICS_OF_PEERS = (
    "precision",
    "recall",
    "f",
    "hit",
    "mrr",
    "map",
    "ndcg",
    "r_precision",
    "dcg",
    "rbp",
    "err",
)
SILENT = {"unknown_items", "seen_truth", "negative_grades", "rank_gaps"}
"""No question has a catalogue, a history, a negative grade or a column of ranks."""


def under(metric: str, conventions: object, *, per_user: bool = False, k_is_used: bool = True) -> Callable:
    """Our own evaluation as a stranger's."""

    def evaluator(run, truth, k):
        request = metric if Request.parse(metric).metric.at_k == "never" or not k_is_used else f"{metric}@{k}"
        lists = {user: [tuple(row) for row in rows] for user, rows in run.items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = recsys.evaluate(lists, truth, [request], conventions=conventions)
        if not per_user:
            return result[request]
        return dict(zip(result.per_case.ids, result.values_of(request), strict=True))

    return evaluator


def decisions_of(name: str, metric: str) -> dict[str, object]:
    rules = Request.parse(metric).conventions(PRESETS[name].conventions)
    return {d: getattr(rules, d) for d in METRICS[metric].reads if d not in SILENT}


@pytest.mark.parametrize(
    ("metric", "per_user"),
    [*((metric, False) for metric in METRICS_OF_PEERS), ("precision", True), ("ndcg", True)],
)
def test_every_preset_is_found_by_its_own_numbers(metric, per_user):
    classes: dict[tuple, str] = {}
    for name in PRESETS:
        classes.setdefault(tuple(decisions_of(name, metric).items()), name)
    for name in classes.values():
        evaluator = under(metric, name, per_user=per_user)
        found = recsys.identify(evaluator, metric)
        assert found, name
        assert not found.deviations
        remaining = [other for names in found.presets for other in names]
        assert name in remaining
        mine = decisions_of(name, metric)
        for decision, value in found.fixed.items():
            assert mine.get(decision, value) == value
        for names in found.presets:  # whatever else remains gives the same answers to every probe
            if name in names:
                continue
            theirs = under(metric, names[0], per_user=per_user)
            for line in probe_lines(metric):
                question = line["run"], line["truth"], line["k"]
                assert theirs(*question) == pytest.approx(evaluator(*question), abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("metric", METRICS_OF_PEERS)
def test_presets_of_one_class_decide_alike_and_those_of_two_do_not(metric):
    found = recsys.identify(under(metric, "recbole"), metric)
    for names in found.presets:
        assert all(decisions_of(name, metric) == decisions_of(names[0], metric) for name in names)
    for one, other in combinations(found.presets, 2):
        differ = {
            d
            for d, value in decisions_of(one[0], metric).items()
            if decisions_of(other[0], metric)[d] != value
        }
        assert differ <= set(found.open)


@pytest.mark.parametrize("metric", ["ndcg", "map", "precision", "recall", "f"])
def test_every_value_of_every_decision_is_told_from_the_others(metric):
    for decision in METRICS[metric].reads:
        for value in DECISIONS.get(decision, {}):
            if decision in SILENT or value == "error":
                continue
            rules = Conventions(gain="binary").but(**{decision: value})
            found = recsys.identify(under(metric, rules), metric)
            assert found, (decision, value)
            if decision in found.fixed:
                assert found.fixed[decision] == value
            else:  # nothing else could be seen either
                assert value in found.open[decision].values
                told = {v for v in found.open[decision].values if v != value}
                for other in told - {"error"}:
                    for line in probe_lines(metric):
                        question = line["run"], line["truth"], line["k"]
                        theirs = under(metric, rules.but(**{decision: other}))(*question)
                        assert theirs == pytest.approx(under(metric, rules)(*question), abs=1e-9)


# Evaluators with mistakes, written plainly.


def top(rows: list, k: int) -> list:
    return [item for item, _ in sorted(rows, key=lambda row: -row[1])][:k]


def over_users(per_user: Callable) -> Callable:
    def evaluator(run, truth, k):
        judged = [u for u in truth if any(grade > 0 for grade in truth[u].values())]
        return sum(per_user(run.get(u, []), truth[u], k) for u in judged) / len(judged)

    return evaluator


def dcg(gains: list, discount: Callable = lambda r: log2(r + 1)) -> float:
    return sum(gain / discount(place) for place, gain in enumerate(gains, start=1))


def ndcg(
    discount: Callable = lambda r: log2(r + 1),
    ideal_discount: Callable = lambda r: log2(r + 1),
    ideal: Callable = lambda _gains, truth, k: sorted(truth.values(), reverse=True)[:k],
    gain: Callable = lambda grade: grade,
    read: Callable = top,
) -> Callable:
    def of_user(rows, truth, k):
        grades = {item: gain(grade) for item, grade in truth.items() if grade > 0}
        gains = [grades.get(item, 0) for item in read(rows, k)]
        best = dcg(ideal(gains, grades, k), ideal_discount)
        return dcg(gains, discount) / best if best else 0.0

    return over_users(of_user)


def hits(rows: list, truth: dict, k: int) -> list[int]:
    return [place for place, item in enumerate(top(rows, k), start=1) if truth.get(item, 0) > 0]


def relevant(truth: dict) -> int:
    return sum(grade > 0 for grade in truth.values())


def precisions(places: list[int], shift: int = 0) -> float:
    return sum(n / (place + shift) for n, place in enumerate(places, start=1))


def one_more(r: int) -> float:
    return log2(r + 2)


def natural(r: int) -> float:
    return log(r + 1)


def reversed_ties(rows: list, k: int) -> list:
    return [item for item, _ in sorted(rows, key=lambda row: row[1])[::-1]][:k]


def wrong_users(run, truth, k):
    values = [len(hits(run.get(u, []), truth[u], k)) / k for u in truth if relevant(truth[u])]
    return sum(values) / (sum(map(bool, values)) or 1)


BROKEN = {
    "place r is discounted by log2(r + 2)": ("ndcg", ndcg(one_more, one_more)),
    "by log2(r + 2) in the list": ("ndcg", ndcg(one_more)),
    "by ln(r + 1) in the list": ("ndcg", ndcg(natural)),
    "relevant items it lacks are forgotten": (
        "ndcg",
        ndcg(ideal=lambda gains, _truth, _k: sorted(gains, reverse=True)),
    ),
    "not divided by that of an ideal list": ("ndcg", ndcg(ideal=lambda _gains, _truth, _k: [1])),
    "divided by k in place of": (
        "ndcg",
        over_users(lambda rows, truth, k: dcg([truth.get(i, 0) for i in top(rows, k)]) / k),
    ),
    "k hits of the highest gain": ("ndcg", ndcg(ideal=lambda _gains, truth, k: [max(truth.values())] * k)),
    "the gain of a hit is 2^grade": ("ndcg", ndcg(gain=lambda grade: 2.0**grade)),
    "reverse of the order": ("ndcg", ndcg(read=reversed_ties)),
    "the lowest score comes first": (
        "ndcg",
        ndcg(read=lambda rows, k: [item for item, _ in sorted(rows, key=lambda row: row[1])][:k]),
    ),
    "the first k + 1 places": ("ndcg", lambda run, truth, k: ndcg()(run, truth, k + 1)),
    "k is not used": ("ndcg", lambda run, truth, _k: ndcg()(run, truth, 1000)),
    "place r is discounted by ln(r + 1)": (
        "dcg",
        over_users(lambda rows, truth, k: dcg([truth.get(i, 0) for i in top(rows, k)], natural)),
    ),
    "1 / (r + 1)": (
        "mrr",
        over_users(lambda rows, truth, k: 1 / (hits(rows, truth, k)[0] + 1) if hits(rows, truth, k) else 0.0),
    ),
    "precision at place r divides by r + 1": (
        "map",
        over_users(lambda rows, truth, k: precisions(hits(rows, truth, k), 1) / min(k, relevant(truth))),
    ),
    "divided by the length of the list": (
        "map",
        over_users(
            lambda rows, truth, k: precisions(hits(rows, truth, k)) / min(k, len(rows)) if rows else 0.0
        ),
    ),
    "hits are divided by max(k, relevant)": (
        "recall",
        over_users(lambda rows, truth, k: len(hits(rows, truth, k)) / max(k, relevant(truth))),
    ),
    "users with a value above 0 only": ("precision", wrong_users),
    "added over the users": (
        "precision",
        lambda run, truth, k: sum(len(hits(run.get(u, []), truth[u], k)) / k for u in truth),
    ),
    "count as relevant": (
        "precision",
        lambda run, truth, k: np.mean(
            [sum(i in truth[u] for i in top(run.get(u, []), k)) / k for u in truth if truth[u]]
        ),
    ),
    "arithmetic mean of precision and recall": (
        "f",
        over_users(
            lambda rows, truth, k: (
                (len(hits(rows, truth, k)) / k + len(hits(rows, truth, k)) / relevant(truth)) / 2
            )
        ),
    ),
}


def judged_in(rows: list, truth: dict, k: int) -> int:
    return sum(item in truth for item in top(rows, k))


def ap(precision: Callable, divisor: Callable) -> Callable:
    """The precision of the h-th hit at place p, over a divisor of k, relevant items and length."""

    def of_user(rows, truth, k):
        found = [precision(h, p) for h, p in enumerate(first_hits(rows, truth, k), start=1)]
        by = divisor(k, relevant(truth), len(rows))
        return sum(found) / by if by else 0.0

    return over_users(of_user)


def first_hits(rows: list, truth: dict, k: int) -> list[int]:
    """Places of hits, each item once."""
    items = top(rows, k)
    return [place for place in hits(rows, truth, k) if items.index(items[place - 1]) == place - 1]


def of_hits(value: Callable) -> Callable:
    """A function of hits, k, the number of relevant items, the truth and the rows."""
    return over_users(
        lambda rows, truth, k: value(len(first_hits(rows, truth, k)), k, relevant(truth), truth, rows)
    )


def of_first(value: Callable) -> Callable:
    return over_users(lambda rows, truth, k: value(hits(rows, truth, k)[0]) if hits(rows, truth, k) else 0.0)


def err_without_stop(rows: list, truth: dict, k: int) -> float:
    places = first_hits(rows, truth, k)
    return sum((2 ** truth[top(rows, k)[p - 1]] - 1) / 2**4 / p for p in places)


def of_places(value: Callable) -> Callable:
    return over_users(lambda rows, truth, k: value(first_hits(rows, truth, k)))


BROKEN |= {
    "hits of gain 1, whatever": ("ndcg", ndcg(ideal=lambda _gains, truth, k: [1] * min(k, len(truth)))),
    "in the order of the truth": ("ndcg", ndcg(ideal=lambda _gains, truth, k: [*truth.values()][:k])),
    "2^grade - 1 in the ideal list": (
        "ndcg",
        ndcg(ideal=lambda _gains, truth, k: sorted((2**g - 1 for g in truth.values()), reverse=True)[:k]),
    ),
    "not cut at k, the ideal list is": ("ndcg", ndcg(read=lambda rows, _k: top(rows, 99))),
    "ideal list is cut at k + 1": (
        "ndcg",
        ndcg(ideal=lambda _gains, truth, k: sorted(truth.values(), reverse=True)[: k + 1]),
    ),
    "ideal list is cut at k - 1": (
        "ndcg",
        ndcg(ideal=lambda _gains, truth, k: sorted(truth.values(), reverse=True)[: k - 1]),
    ),
    "discounted by log10(r + 1)": (
        "dcg",
        over_users(lambda rows, t, k: dcg([t.get(i, 0) for i in top(rows, k)], lambda r: log10(r + 1))),
    ),
    "by the square root of r": (
        "dcg",
        over_users(lambda rows, truth, k: dcg([truth.get(i, 0) for i in top(rows, k)], sqrt)),
    ),
    "the length of the whole list": ("map", ap(lambda h, p: h / p, lambda _k, _n, length: length)),
    "by max(k, relevant)": ("map", ap(lambda h, p: h / p, lambda k, n, _length: max(k, n))),
    "divides by r - 1": ("map", ap(lambda h, p: h / max(p - 1, 1), lambda k, n, _length: min(k, n))),
    "1 / r of each hit": ("map", ap(lambda _h, p: 1 / p, lambda _k, n, _length: n)),
    "gives 1 / (r - 1)": ("mrr", of_first(lambda p: 1 / max(p - 1, 1))),
    "1 / log2(r + 1)": ("mrr", of_first(lambda p: 1 / log2(p + 1))),
    "hits are divided by k - 1": ("precision", of_hits(lambda h, k, *_: h / (k - 1))),
    "hits are divided by k all the same": (
        "precision",
        over_users(lambda rows, truth, k: len(first_hits(rows, truth, k + 1)) / k),
    ),
    "by the different items": (
        "precision",
        of_hits(lambda h, k, _n, _truth, rows: h / len(set(top(rows, k))) if rows else 0.0),
    ),
    "by the judged items": (
        "precision",
        of_hits(lambda h, k, _n, truth, rows: h / judged_in(rows, truth, k) if h else 0.0),
    ),
    "by all judged items": ("recall", of_hits(lambda h, _k, _n, truth, _rows: h / len(truth))),
    "one more than the relevant": ("recall", of_hits(lambda h, _k, n, *_: h / (n + 1))),
    "items count by their grade": (
        "recall",
        of_hits(
            lambda _h, k, _n, truth, rows: (
                sum(truth.get(item, 0) for item in {*top(rows, k)}) / sum(truth.values())
            )
        ),
    ),
    "geometric mean": ("f", of_hits(lambda h, k, n, *_: sqrt(h / k * h / n))),
    "the smaller of precision and recall": ("f", of_hits(lambda h, k, n, *_: min(h / k, h / n))),
    "(Jaccard)": (
        "f",
        of_hits(lambda h, k, n, _truth, rows: h / (len({*top(rows, k)}) + n - h)),
    ),
    "every relevant item is found": ("hit", of_hits(lambda h, _k, n, *_: float(h == n))),
    "only the first place is read": (
        "hit",
        over_users(lambda rows, truth, _k: float(bool(hits(rows, truth, 1)))),
    ),
    "k is not used: whole lists": (
        "hit",
        over_users(lambda rows, truth, _k: float(bool(hits(rows, truth, 99)))),
    ),
    "p^r in place of": ("rbp", of_places(lambda places: 0.3 * sum(0.7**p for p in places))),
    "not multiplied by 1 - p": ("rbp", of_places(lambda places: sum(0.9 ** (p - 1) for p in places))),
    "the user never stops": ("err", over_users(err_without_stop)),
    "values are percentages": ("recall", of_hits(lambda h, _k, n, *_: 100 * h / n)),
}  # fmt: skip


@pytest.mark.parametrize("words", BROKEN)
def test_a_broken_evaluator_is_told_in_words(words):
    metric, evaluator = BROKEN[words]
    found = recsys.identify(evaluator, metric)
    assert len(found.deviations) == 1, found.deviations
    assert words in found.deviations[0]
    assert found.deviations[0] in found.to_json()
    assert found.deviations[0] in str(found)


def test_a_mistake_is_told_under_other_decisions_too():
    """The formula is another one; what is relevant, its divisor and its parameters are still decided."""
    for over, divisor in (
        ("min", lambda k, n, _: min(k, n)),
        ("relevant", lambda _k, n, _: n),
        ("k", lambda k, *_: k),
    ):
        found = recsys.identify(ap(lambda h, p: h / (p + 1), divisor), "map")
        assert "divides by r + 1" in found.deviations[0]
        assert found.fixed["ap_over"] == over
    for p in (0.5, 0.7, 0.95):
        found = recsys.identify(of_places(lambda places, p=p: sum(p ** (r - 1) for r in places)), "rbp")
        assert found.deviations == ("the sum is not multiplied by 1 - p",)
        assert found.fixed["p"] == p

    def over_the_list(run, truth, k):
        high = {user: {i: g for i, g in own.items() if g >= 2} for user, own in truth.items()}
        return of_hits(lambda h, _k, _n, _truth, rows: h / len(rows) if rows else 0.0)(run, high, k)

    found = recsys.identify(over_the_list, "precision")
    assert found.deviations == ("hits are divided by the length of the whole list",)
    assert found.fixed["relevant_from"] == 2.0


def test_percentages_per_user_and_rounded_numbers():
    per_user = recsys.identify(
        lambda *q: {u: 100 * v for u, v in under("recall", "recbole", per_user=True)(*q).items()}, "recall"
    )
    assert "percentages" in per_user.deviations[0]
    rounded = recsys.identify(lambda *q: round(under("recall", "recbole")(*q), 2), "recall")
    assert "2 decimals" in rounded.precision
    assert rounded.fixed["recall_over"] == "relevant"


@pytest.mark.parametrize("value", [1, 0.0, 0.5])
def test_one_number_for_every_question_is_no_evaluator(value):
    found = recsys.identify(lambda *_: value, "recall")
    assert not found
    assert (found.fixed, found.deviations, found.presets, found.other_metrics) == ({}, (), (), ())
    assert f"every answer is {value:g}, whatever was asked" in str(found)


def test_mistakes_that_are_decisions_are_named_as_such():
    in_k = ndcg(gain=lambda _grade: 1.0, ideal=lambda _gains, _truth, k: [1] * k)
    assert recsys.identify(in_k, "ndcg").fixed["ideal"] == "k"
    no_cut = ndcg(ideal=lambda _gains, truth, _k: sorted(truth.values(), reverse=True))
    assert recsys.identify(no_cut, "ndcg").fixed["ideal"] == "all"
    by_list = over_users(
        lambda rows, truth, k: len(hits(rows, truth, k)) / min(k, len(rows)) if rows else 0.0
    )
    assert recsys.identify(by_list, "precision").fixed["precision_over"] == "list"
    assert recsys.identify(ndcg(), "ndcg").fixed["duplicates"] == "all"
    # In a quotient of two sums the base of the logarithm cancels out.
    assert recsys.identify(ndcg(natural, natural), "ndcg").fixed["discount"] == "log2"


def test_two_mistakes_at_once():
    evaluator = ndcg(read=reversed_ties, ideal=lambda gains, _truth, _k: sorted(gains, reverse=True))
    (both,) = recsys.identify(evaluator, "ndcg").deviations
    assert "reverse of the order" in both
    assert "forgotten" in both


def test_a_shuffled_order_of_equal_scores_is_no_rule():
    def shuffled(rows, k):
        return top(sorted(rows, key=lambda row: {"d": 0, "a": 1, "c": 2, "b": 3}.get(row[0], 9)), k)

    (words,) = recsys.identify(ndcg(read=shuffled), "ndcg").deviations
    assert "no rule known" in words


def test_what_is_known_nowhere_is_contradicted_by_the_smallest_probe_that_can():
    found = recsys.identify(lambda run, truth, k: ndcg()(run, truth, k) ** 2, "ndcg")
    assert not found
    clash = found.contradiction
    assert clash.alone
    for probe in probes.probes_for(METRICS["ndcg"].reads):
        if probe.size < clash.probe.size or probe is clash.probe:
            value = ndcg()(probe.run, probe.truth, probe.k) ** 2
            alone = recsys.identify(metric="ndcg", answers={probe.name: value})
            assert (bool(alone) and not alone.deviations) == (probe is not clash.probe)
    assert clash.nearest
    values = [value for _, value, _ in clash.nearest]
    assert all(not math.isclose(value, clash.answer, abs_tol=1e-6) for value in values)
    assert found.to_dict()["contradiction"]["probe"]["probe"] == clash.probe.name
    assert "nothing known fits" in str(found)
    assert clash.probe.name in str(found)


def test_another_metric_is_named():
    found = recsys.identify(under("recall", "ranx"), "mrr")
    assert not found
    assert "recall" in found.other_metrics
    assert "another metric" in str(found)


def test_precision_of_the_answers():
    def exact(run, truth, k):
        return ndcg()(run, truth, k)

    assert "double precision" in recsys.identify(exact, "ndcg").precision
    single = recsys.identify(lambda *q: float(np.float32(exact(*q))), "ndcg")
    assert "single precision" in single.precision
    assert single.presets == recsys.identify(exact, "ndcg").presets
    rounded = recsys.identify(lambda *q: round(exact(*q), 4), "ndcg")
    assert "4 decimals" in rounded.precision
    assert rounded.presets == single.presets
    assert recsys.identify(lambda *q: round(exact(*q), 2) + 1e-4, "ndcg", tolerance=0.006)


def test_a_probe_that_is_not_answered_leaves_its_decision_open():
    def strict(run, truth, k):
        if set(run) != set(truth):
            raise KeyError("v")
        return ndcg()(run, truth, k)

    found = recsys.identify(strict, "ndcg")
    assert found.unanswered == {"no list": "raised KeyError: 'v'"}
    assert found.open["no_list"].values == ("empty", "skip", "error")
    assert "not answered: no list" in found.open["no_list"].why
    assert "raised KeyError" in str(found)


def test_parameters_of_the_metric_are_found_or_taken_as_known():
    assert recsys.identify(under("f(beta=2)", "default"), "f").fixed["beta"] == 2.0
    assert recsys.identify(under("rbp(p=0.9)", "default"), "rbp").fixed["p"] == 0.9
    found = recsys.identify(under("ndcg(gain=exp2)", "ranx"), "ndcg(gain=exp2)")
    assert found.fixed["gain"] == "exp2"
    assert ("ranx",) in found.presets


@pytest.mark.parametrize(
    ("metric", "rules"),
    [
        ("map", PRESETS["lenskit"].conventions),
        ("precision", Conventions(precision_over="list", average="pooled", no_list="skip")),
        ("ndcg", Conventions(relevant_from=3, judged_only="yes", discount="log2_max2")),
        ("hit", Conventions(ties="best")),
        ("hit", Conventions(judged_only="yes")),
        ("hit", Conventions(ties="best", judged_only="yes")),
        ("mrr", Conventions(ties="worst", relevant_from=2)),
    ],
)
def test_the_conventions_found_give_the_same_numbers(metric, rules):
    evaluator = under(metric, rules)
    found = recsys.identify(evaluator, metric)
    assert not found.deviations
    for line in probe_lines(metric):
        question = line["run"], line["truth"], line["k"]
        expected = pytest.approx(evaluator(*question), abs=1e-12, nan_ok=True)
        assert under(metric, found.conventions)(*question) == expected
    assert found.to_dict()["example"] == found.example
    assert all(found.example[name] == value for name, value in found.fixed.items())


def test_open_decisions_that_depend_on_each_other_say_so():
    """Whatever is called equal fits beside all that is left; the rest names what it depends on."""
    found = recsys.identify(under("hit", Conventions(ties="best", judged_only="yes")), "hit")
    assert set(found.open["ties"].values) == {*DECISIONS["ties"]}
    assert found.open["ties"].why == "which of them it is depends on judged_only"
    assert found.open["judged_only"].why == "which of them it is depends on ties"
    assert found.open["duplicates"].why == "equal on every probe"
    assert all(differences for differences in found.nearest.values())


def test_one_published_number_in_every_form(tmp_path):
    run, truth = {"u": [["a", 0.9], ["b", 0.8]]}, {"u": {"b": 1, "c": 1, "d": 1}}
    row = {"run": run, "truth": truth, "k": 2, "value": 0.25}
    ours = {**probe_lines("map")[0], "value": 0.5}
    for name, one in (("own", row), ("ours", ours), ("named", {"probe": "graded", "value": 0.5})):
        (tmp_path / name).write_text(json.dumps(one) + "\n")
        expected = recsys.identify(metric="map", answers=[one]).to_dict()
        for answers in (one, tmp_path / name):
            assert recsys.identify(metric="map", answers=answers).to_dict() == expected
    assert recsys.identify(metric="map", answers=row).open["ap_over"].values == ("min", "k", "list")
    for k in (0, -1, 2.5):
        with pytest.raises(InputError, match=f"answer 1 .* k={k}"):
            recsys.identify(metric="map", answers={**row, "k": k})
    with pytest.raises(InputError, match="has no value"):
        recsys.identify(metric="map", answers={"run": run, "truth": truth, "k": 2})


def test_stored_answers_in_every_form(tmp_path):
    evaluator = under("map", "trec_eval")
    lines = probe_lines("map")
    rows = [{**line, "value": evaluator(line["run"], line["truth"], line["k"])} for line in lines]
    expected = recsys.identify(evaluator, "map")
    bare = [{"value": row["value"]} for row in rows]
    numbers = [row["value"] for row in rows]
    (tmp_path / "numbers.txt").write_text("".join(f"{number}\n" for number in numbers))
    by_name = {row["probe"]: row["value"] for row in rows}
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "names.json").write_text(json.dumps(by_name))
    files = (tmp_path / "rows.jsonl", str(tmp_path / "names.json"), tmp_path / "numbers.txt")
    for answers in (rows, bare, numbers, by_name, *files):
        found = recsys.identify(metric="map", answers=answers)
        assert (found.fixed, found.presets) == (expected.fixed, expected.presets)
    with pytest.raises(InputError, match="version 0"):
        recsys.identify(metric="map", answers=[{**rows[0], "version": 0}])
    with pytest.raises(InputError, match="which does not exist"):
        recsys.identify(metric="map", answers={"nonsense": 0.5})
    with pytest.raises(InputError, match="has no value"):
        recsys.identify(metric="map", answers=[{"probe": "graded"}])
    with pytest.raises(InputError, match="cannot be read"):
        recsys.identify(metric="map", answers=[{"run": [], "truth": {}, "k": 1, "value": 1}])
    with pytest.raises(FileError):
        recsys.identify(metric="map", answers=tmp_path / "missing.json")


def test_questions_of_ones_own():
    """A number of a paper with its lists and truth says something, too; ids may be numbers."""
    run, truth = {"1": [[9, 0.5], [10, 0.5], [3, 0.1]]}, {"1": {"10": 1}}
    found = recsys.identify(metric="mrr", answers=[{"run": run, "truth": truth, "k": 3, "value": 0.5}])
    assert "by_id_desc" not in found.open["ties"].values  # 10 comes after 9, as numbers do
    assert {"by_id", "given", "worst"} <= set(found.open["ties"].values)


def test_a_command_answers_like_a_function():
    program = (
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    q = json.loads(line)\n"
        "    tops = {u: [i for i, _ in q['run'].get(u, [])][:q['k']] for u in q['truth']}\n"
        "    good = {u: {i for i, g in t.items() if g > 0} for u, t in q['truth'].items()}\n"
        "    values = {u: sum(i in good[u] for i in tops[u]) / q['k'] for u in tops if good[u]}\n"
        "    print(json.dumps({'value': values}))\n"
    )
    found = recsys.identify(shlex.join([sys.executable, "-c", program]), "precision")
    assert found.fixed["precision_over"] == "k"
    assert "per user" in found.open["average"].why


def test_errors():
    with pytest.raises(InputError, match="every probe brings its own"):
        recsys.identify(ndcg(), "ndcg@10")
    with pytest.raises(NotDefinedError, match="embeddings"):
        recsys.identify(ndcg(), "ild")
    with pytest.raises(InputError, match="not both"):
        recsys.identify(ndcg(), "ndcg", answers={})
    with pytest.raises(InputError, match="not both"):
        recsys.identify(metric="ndcg")
    with pytest.raises(InputError, match="no answer with a value"):
        recsys.identify(metric="ndcg", answers=[{"probe": "graded", "error": "no"}])


def test_probes_are_small_fixed_and_show_what_they_say():
    """Whoever changes a probe raises VERSION: stored answers would be to another question."""
    assert len({probe.name for probe in probes.PROBES}) == len(probes.PROBES)
    assert all(probe.size <= 20 for probe in probes.PROBES)
    text = "".join(probe.text for probe in probes.PROBES)
    assert (probes.VERSION, zlib.crc32(text.encode())) == (3, PROBE_SUM)
    for probe in probes.PROBES:
        assert set(probe.run) <= set(probe.truth)
        assert set(probe.tells) <= set(DECISIONS)


PROBE_SUM = 404878534


def test_identify_takes_seconds():
    from recsys.comparison.identify import _space_of

    _space_of.cache_clear()
    start = time.process_time()
    recsys.identify(ndcg(), "ndcg")
    assert time.process_time() - start < 10


def test_where_no_preset_decides_so_the_nearest_are_named():
    rules = PRESETS["recmetrics"].conventions.but(gain="exp2")
    found = recsys.identify(under("ndcg", rules), "ndcg")
    assert (found.presets, found.nearest["recmetrics"]) == ((), ("gain",))
    assert "  recmetrics, but for gain\n" in f"{found}\n"
    assert all(len(decisions) == 1 for decisions in found.nearest.values())
    assert recsys.identify(under("ndcg", "recmetrics"), "ndcg").nearest == {}


def test_its_tables_are_no_wider_than_a_page():
    other = recsys.identify(under("precision", "ranx"), "recall")
    assert " more " in str(other)
    assert max(map(len, other.to_text().split("\n\n")[0].splitlines())) < 110
    metric, mean_of_both = BROKEN["arithmetic mean of precision and recall"]
    assert "open: 0.5, 1, 2 " in str(recsys.identify(mean_of_both, metric))


def test_it_is_a_table_everywhere():
    found = recsys.identify(ndcg(), "ndcg")
    assert "<table" in found._repr_html_()
    assert json.loads(found.to_json())["fixed"]["gain"] == "grade"
    assert found.to_frame().shape[1] == 3


def test_a_list_that_closes_up_over_its_repeats_is_a_convention():
    closing_up = ndcg(read=lambda rows, k: list(dict.fromkeys(top(rows, 99)))[:k])
    found = recsys.identify(closing_up, "ndcg")
    assert found.fixed["duplicates"] == "collapse"
    assert not found.deviations


def _expected_ndcg(run, truth, k):
    """NDCG whose lists end with the judged items that they lack, all tied: the mean over their orders."""
    values = {}
    for user, grades in truth.items():
        rows = list(run.get(user, []))
        lacks = [item for item, grade in grades.items() if grade > 0 and item not in {i for i, _ in rows}]
        lowest = min((score for _, score in rows), default=0.0) - 1.0
        if not (rows or lacks) or not any(grades.values()):
            values[user] = 0.0
            continue
        whole = [(item, float(score)) for item, score in [*rows, *((item, lowest) for item in lacks)]]
        wanted = {item: int(grade) for item, grade in grades.items() if grade > 0}
        found = recsys.evaluate({user: whole}, {user: wanted}, f"ndcg@{k}", conventions={"ties": "expected"})
        values[user] = found[f"ndcg@{k}"]
    return values


def test_items_put_at_the_end_of_a_list_tie_there():
    found = recsys.identify(_expected_ndcg, "ndcg")
    assert "relevant items that are not listed are put at the end of the list" in str(found)
    assert found.conventions.ties == "expected"


@pytest.mark.parametrize("metric", ["hits", "capped_recall"])
def test_mistakes_with_counts_and_capped_recall_are_known(metric):
    def evaluator(run, truth, k):
        values = {}
        for user, grades in truth.items():
            wanted = {item for item, grade in grades.items() if grade > 0}
            # Equal scores in an order of no rule: by the last letter, those of the truth last but one.
            rows = sorted(run.get(user, []), key=lambda row: (-row[1], (ord(row[0][0]) * 7) % 5))
            hits = len({item for item, _ in rows[:k]} & wanted)
            values[user] = float(hits if metric == "hits" else hits / max(min(k, len(wanted)), 1))
        return values

    found = recsys.identify(evaluator, metric)
    assert found
    assert "equal scores" in str(found)
