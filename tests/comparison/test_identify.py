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
from math import log, log2

import numpy as np
import pytest

import recsys
from recsys.comparison import probes
from recsys.comparison.deviations import FORMULAS, QUESTIONS
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
    "the list closes up": ("ndcg", ndcg(read=lambda rows, k: list(dict.fromkeys(top(rows, 99)))[:k])),
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


@pytest.mark.parametrize("words", BROKEN)
def test_a_broken_evaluator_is_told_in_words(words):
    metric, evaluator = BROKEN[words]
    found = recsys.identify(evaluator, metric)
    assert len(found.deviations) == 1, found.deviations
    assert words in found.deviations[0]
    assert found.deviations[0] in found.to_json()
    assert found.deviations[0] in str(found)


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


def test_the_conventions_found_give_the_same_numbers():
    evaluator = under("map", "lenskit")
    rules = recsys.identify(evaluator, "map").conventions
    for line in probe_lines("map"):
        question = line["run"], line["truth"], line["k"]
        assert under("map", rules)(*question) == pytest.approx(evaluator(*question), abs=1e-12)


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
    with pytest.raises(InputError, match="which is none"):
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
    assert (probes.VERSION, zlib.crc32(text.encode())) == (1, PROBE_SUM)
    for probe in probes.PROBES:
        assert set(probe.run) <= set(probe.truth)
        assert set(probe.tells) <= set(DECISIONS)


PROBE_SUM = 3756784923


def test_every_deviation_changes_an_answer():
    """A row that no probe shows would be found in everybody's evaluator."""
    from recsys.comparison.identify import _space_of

    for one in (*QUESTIONS, *FORMULAS):
        metric = one.metrics[0] if one.metrics else "recall"
        space = _space_of(Request.parse(metric))
        found = recsys.identify(under(metric, "recbole"), metric)
        base = {**{n: v[0] for n, v in space.choices.items()}, **found.fixed}
        moved = False
        for probe in probes.probes_for(METRICS[metric].reads):
            plain = [{n: base[n] for n in space.shown(probe, None)}]
            other = [{n: base[n] for n in space.shown(probe, one)}]
            ours = space.predictions(probe, None, plain)[0][0].value
            theirs = [p.value for p in space.predictions(probe, one, other)[0]]
            moved = moved or any(abs(value - ours) > 1e-7 for value in theirs)
        assert moved, one.words


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
    shifted = recsys.identify(ndcg(discount=lambda r: log2(r + 2)), "ndcg")
    assert "open: none, 2, 3 " in str(shifted)


def test_it_is_a_table_everywhere():
    found = recsys.identify(ndcg(), "ndcg")
    assert "<table" in found._repr_html_()
    assert json.loads(found.to_json())["fixed"]["gain"] == "grade"
    assert found.to_frame().shape[1] == 3
