"""Evaluators outside the field, written anew from what their sources decide, are told by their answers."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable
from math import log, log2, log10

import numpy as np
import pytest

import recsys
from recsys.comparison import identify
from recsys.comparison.deviations import CUT, MEAN, READING, REPEATS, formulas_of
from recsys.comparison.probes import probes_for
from recsys.comparison.transcriptions import EVALUATORS
from recsys.conventions.decisions import DECISIONS
from recsys.metrics.registry import METRICS, Request

# One list at a time, as (items of the first k, {item: grade}, k, all rows): the tools of what follows.


def relevant(truth: dict) -> dict:
    return {item: grade for item, grade in truth.items() if grade > 0}


def dcg(gains: list) -> float:
    return sum(gain / log2(place + 1) for place, gain in enumerate(gains, start=1))


def over(a: float, b: float) -> float:
    return a / b if b else 0.0


def mean(value: Callable, *, over_users: Callable = statistics.fmean, empty: object = 0.0) -> Callable:
    """The mean over all users of the truth; `empty` is what a user without relevant items has."""

    def evaluator(run: dict, truth: dict, k: int) -> float:
        values = []
        for user, grades in truth.items():
            rows = sorted(run.get(user, []), key=lambda row: -row[1])
            if not relevant(grades) and empty != "own":
                values.append(empty)
            else:
                values.append(value([item for item, _ in rows[:k]], grades, k, rows))
        counted = [value for value in values if value is not None]
        return over_users(counted)

    return evaluator


def strict(value: Callable) -> Callable:
    """One that raises an error for an empty list or truth."""

    def checked(items: list, truth: dict, k: int, rows: list) -> float:
        if not items or not relevant(truth):
            raise ValueError("ids must be provided")
        return value(items, truth, k, rows)

    return mean(checked, empty="own")


def listed(value: Callable, empty: object = 0.0) -> Callable:
    """One of a table of rows with a label and a score: an item without a row does not exist."""

    def evaluator(run: dict, truth: dict, k: int) -> float:
        values = []
        for user, rows in run.items():
            best = sorted(rows, key=lambda row: -row[1])
            if len({item for item, _ in best}) < len(best):
                raise ValueError("an item has one row")
            labels = [truth[user].get(item, 0) for item, _ in best]
            values.append(value(labels, k, best) if any(labels) else empty)
        return statistics.fmean(values)

    return evaluator


def matrix(value: Callable, empty: object = 0.0) -> Callable:
    """One of a matrix of all items: it cannot be asked about short lists and repeats."""

    def checked(items: list, truth: dict, k: int, rows: list) -> float:
        if len(items) < k or len({item for item, _ in rows}) < len(rows):
            raise ValueError("every item has one score")
        return value(items, truth, k, rows)

    return mean(checked, empty=empty)


def places(items: list, truth: dict) -> list[int]:
    return [place for place, item in enumerate(items, start=1) if truth.get(item, 0) > 0]


def firsts(items: list, truth: dict) -> list[int]:
    return [place for place in places(items, truth) if items[place - 1] not in items[: place - 1]]


def precisions(found: list[int]) -> float:
    return sum(number / place for number, place in enumerate(found, start=1))


def reciprocal(items, truth, _k, _rows):
    return 1 / places(items, truth)[0] if places(items, truth) else 0.0


def hit(items, truth, _k, _rows):
    return float(bool(places(items, truth)))


def recall_of_set(items, truth, _k, _rows):
    return over(len(firsts(items, truth)), len(relevant(truth)))


def recall_of_list(items, truth, _k, _rows):
    return len(places(items, truth)) / len(relevant(truth))


def precision_of_list(items, truth, _k, _rows):
    return over(len(places(items, truth)), len(items))


def precision_of_set(items, truth, _k, _rows):
    return over(len(firsts(items, truth)), len(set(items)))


def set_over_list(items, truth, _k, _rows):
    return over(len(firsts(items, truth)), len(items))


def capped_recall(items, truth, k, _rows):
    return len(firsts(items, truth)) / min(k, len(relevant(truth)))


def precision_at_k(items, truth, k, _rows):
    return len(places(items, truth)) / k


def ap(divisor: Callable, found: Callable = places) -> Callable:
    return lambda items, truth, k, _rows: over(
        precisions(found(items, truth)), divisor(len(relevant(truth)), k, len(found(items, truth)))
    )


def ndcg(ideal: Callable, gain: Callable = float, found: Callable = places) -> Callable:
    def of_user(items, truth, k, rows):
        gains = [gain(truth[i]) if p in found(items, truth) else 0 for p, i in enumerate(items, start=1)]
        best = [gain(grade) for grade in relevant(truth).values()]
        return over(dcg(gains), dcg(ideal(best, k, len(items))))

    return of_user


def binary(_grade: float) -> float:
    return 1.0


def exp2(grade: float) -> float:
    return 2**grade - 1


def reachable(best, k, _n):
    return sorted(best, reverse=True)[:k]


def everything(best, _k, _n):
    return sorted(best, reverse=True)


def of_list(best, _k, n):
    return sorted(best, reverse=True)[:n]


def average_at_each_hit(items, truth, _k, _rows):
    good = set(relevant(truth))
    found = [len(good & set(items[:p])) / p for p in places(items, truth)]
    return sum(found) / len(good)


def with_expanded_truth(items, truth, _k, _rows):
    n = len(relevant(truth)) + len(places(items, truth)) - len(firsts(items, truth))
    gains = [float(truth.get(item, 0) > 0) for item in items]
    return over(dcg(gains), dcg([1] * min(n, len(items))))


def zeros_too(value: Callable) -> Callable:
    """Items of grade 0 are golden as well; a user without golden items has no value."""

    def of_user(items, truth, k, rows):
        return value(items, dict.fromkeys(truth, 1), k, rows) if truth else None

    return mean(of_user, empty="own")


def trulens_ndcg(items, truth, k, rows):
    return ndcg(reachable)(items, truth, k, rows) if truth else None


def rounded(value: Callable) -> Callable:
    return lambda *asked: round(value(*asked), 2)


def ndcg_of_rows(gain: Callable, *, curve: bool = False, cut: bool = True) -> Callable:
    def of_rows(labels, k, _rows):
        gains = [gain(label) for label in labels]
        n = k if cut else len(gains)
        value = dcg(gains[:n]) / dcg(sorted(gains, reverse=True)[:n])
        return 1 - value if curve else value

    return of_rows


def recall_over_sessions(run, truth, k):
    found = total = 0
    for user, rows in run.items():
        if len({item for item, _ in rows}) < len(rows):
            raise ValueError("an item has one row")
        for item, score in rows:
            good = truth[user].get(item, 0) > 0
            total += good
            found += good and sum(other > score for _, other in rows) < k
    return found / total


def ap_of_rows(divisor: Callable) -> Callable:
    def of_rows(labels, k, _rows):
        hits = [place for place, label in enumerate(labels, start=1) if label]
        return precisions([p for p in hits if p <= k]) / divisor(len(hits), k, len(labels))

    return of_rows


def average_over_ties(labels, k, rows):
    total, at = 0.0, 0
    while at < len(rows):
        tied = [n for n in range(at, len(rows)) if rows[n][1] == rows[at][1]]
        weight = sum(1 / log2(n + 2) for n in tied if n < k)
        total += sum(labels[n] for n in tied) / len(tied) * weight
        at += len(tied)
    return total / dcg(sorted(labels, reverse=True)[:k])


def target(value: Callable, *, full: bool = False) -> Callable:
    """One relevant item for each user: the first one of the truth."""

    def of_user(items, truth, k, rows):
        if full and len(items) < k:
            return 0.0
        return value(items, dict.fromkeys([*relevant(truth)][:1], 1), k, rows)

    return mean(of_user)


def one_place(items, truth, _k, _rows):
    found = places(items, truth)
    return 1 / log(found[0] + 1) * log(2) if found else 0.0


def mean_of_each(items, truth, _k, _rows):
    return sum(1 / p for p in firsts(items, truth)) / len(relevant(truth))


def in_order(best, k, _n):
    return best[:k]


WRITTEN: dict[str, dict[str, Callable]] = {
    "LlamaIndex": {
        "hit": strict(hit),
        "mrr": strict(reciprocal),
        "precision": strict(precision_of_set),
        "recall": strict(recall_of_set),
        "map": strict(average_at_each_hit),
        "ndcg": strict(ndcg(lambda _best, _k, n: [1] * n, binary)),
    },
    "Haystack": {
        "recall": mean(recall_of_set),
        "mrr": mean(reciprocal),
        "map": mean(ap(lambda n, _k, _h: n, firsts)),
        "ndcg": mean(ndcg(everything, found=firsts)),
    },
    "Haystack before 3.2": {"map": mean(ap(lambda _n, _k, h: h)), "ndcg": mean(ndcg(everything))},
    "MLflow": {
        "precision": mean(precision_of_list),
        "recall": mean(recall_of_set),
        "ndcg": mean(with_expanded_truth),
    },
    "TruLens": {
        "ndcg": mean(trulens_ndcg, empty="own"),
        "precision": zeros_too(precision_of_list),
        "recall": zeros_too(recall_of_list),
        "hit": zeros_too(hit),
    },
    "ragas": {
        "precision": mean(
            lambda items, *rest: precision_of_set(items, *rest) if items else None, empty="own"
        ),
        "recall": mean(recall_of_set, empty=None),
        "map": mean(ap(lambda _n, _k, h: h + 1e-10)),
    },
    "ignite": {"hit": matrix(hit, None), "ndcg": matrix(ndcg(reachable, exp2), None)},
    "metrax": {
        "precision": matrix(precision_at_k),
        "recall": matrix(recall_of_set),
        "map": matrix(ap(lambda n, _k, _h: n)),
        "mrr": matrix(reciprocal),
        "ndcg": matrix(lambda *asked: min(ndcg(reachable, exp2)(*asked), 1.0)),
    },
    "keras-rs": {
        "precision": listed(lambda labels, k, _rows: sum(map(bool, labels[:k])) / len(labels[:k])),
        "recall": listed(lambda labels, k, _rows: sum(map(bool, labels[:k])) / sum(map(bool, labels))),
        "map": listed(ap_of_rows(lambda hits, _k, _n: hits)),
        "mrr": listed(lambda labels, k, _rows: max(bool(g) / p for p, g in enumerate(labels[:k], 1))),
        "ndcg": listed(ndcg_of_rows(exp2)),
    },
    "torchrec": {
        "ndcg": listed(ndcg_of_rows(float, curve=True, cut=False), 1.0),
        "recall": recall_over_sessions,
    },
    "OpenSearch": {
        "precision": mean(rounded(precision_of_list)),
        "recall": mean(rounded(recall_of_list)),
        "map": mean(rounded(ap(lambda n, _k, _h: n))),
        "mrr": mean(rounded(reciprocal)),
        "ndcg": mean(rounded(ndcg(reachable, exp2))),
    },
    "Spark RankingMetrics": {
        "precision": mean(precision_at_k),
        "recall": mean(recall_of_list),
        "map": mean(ap(lambda n, k, _h: min(n, k))),
        "ndcg": mean(ndcg(reachable, binary)),
    },
    "Spark RankingMetrics with relevance": {"ndcg": mean(ndcg(in_order, exp2))},
    "XGBoost": {
        "precision": listed(lambda labels, k, _rows: sum(labels[:k]) / len(labels[:k])),
        "map": listed(ap_of_rows(lambda hits, k, _n: min(hits, k)), 1.0),
        "ndcg": listed(ndcg_of_rows(exp2), 1.0),
    },
    "LightGBM": {
        "map": listed(ap_of_rows(min), 1.0),
        "ndcg": listed(ndcg_of_rows(exp2), 1.0),
    },
    "scikit-learn": {"ndcg": listed(average_over_ties)},
    "GRID": {
        "recall": matrix(capped_recall),
        "ndcg": matrix(ndcg(reachable, binary)),
    },
    "MIMIGenRec": {"hit": target(hit, full=True), "ndcg": target(one_place, full=True)},
    "MiniOneRec": {"hit": target(hit), "ndcg": target(one_place)},
    "OneRec-Think": {"hit": target(hit, full=True), "ndcg": target(ndcg(reachable))},
    "AutoRAG": {
        "precision": mean(set_over_list, empty=None),
        "recall": mean(recall_of_set, empty=None),
        "ndcg": mean(ndcg(of_list, binary), empty=None),
        "mrr": mean(mean_of_each, empty=None),
        "map": mean(ap(lambda _n, _k, h: h), empty=None),
    },
    "BEIR": {
        "mrr": mean(reciprocal),
        "hit": mean(hit),
        "recall": mean(capped_recall, empty=None),
    },
}  # fmt: skip
ASKED = [(name, metric) for name, metrics in WRITTEN.items() for metric in metrics]


def is_told(found: recsys.Identification, name: str, metric: str) -> bool:
    """Exactly or by its mistakes: what is found agrees with all that is known of it."""
    row = EVALUATORS[name]
    decided = row.decisions(metric).items()
    agrees = all(str(found.fixed.get(decision, value)) == value for decision, value in decided)
    deviations = [
        w for w in row.deviations(metric) if "decimals" not in f"{found.precision}" or "rounded" not in w
    ]
    return (
        bool(found)
        and agrees
        and "; ".join(sorted(deviations))
        in {"; ".join(sorted(words.split("; "))) for words in found.deviations or ("",)}
    )


def test_every_row_is_written_and_every_word_is_that_of_an_option():
    assert {name: {*metrics} for name, metrics in WRITTEN.items()} == {
        name: {*row.metrics} for name, row in EVALUATORS.items()
    }
    for row in EVALUATORS.values():
        for metric in row.metrics:
            options = [*(o for part in (*READING.values(), *MEAN.values()) for o in part)]
            options += [o for several in formulas_of(metric).options for o in several]
            assert {*row.deviations(metric)} <= {option.words for option in options}
            for decision, value in row.decisions(metric).items():
                assert value in DECISIONS[decision]


@pytest.mark.parametrize(("name", "metric"), ASKED)
def test_an_evaluator_is_named(name, metric):
    found = recsys.identify(WRITTEN[name][metric], metric)
    assert name in found.evaluators, found
    assert is_told(found, name, metric), found


def test_an_evaluator_that_no_row_holds_is_told_by_what_it_does(monkeypatch):
    """Each is held out of the table."""
    told = 0
    for name, metric in ASKED:
        others = {one: row for one, row in EVALUATORS.items() if one != name}
        monkeypatch.setattr(identify, "EVALUATORS", others)
        found = recsys.identify(WRITTEN[name][metric], metric)
        assert name not in found.evaluators
        told += is_told(found, name, metric)
    assert told >= 0.9 * len(ASKED)


def rank_from_0(items, truth, _k, _rows):
    return 1 / max(places(items, truth)[0] - 1, 1) if places(items, truth) else 0.0


def pooled_precision(run, truth, k):
    tops = {user: [item for item, _ in run.get(user, [])[:k]] for user in truth}
    hits = sum(len(places(tops[user], truth[user])) for user in truth)
    return hits / sum(map(len, tops.values()))


def by_id(value: Callable) -> Callable:
    """Equal scores in the order of ids."""

    def evaluator(run: dict, truth: dict, k: int) -> float:
        ordered = {user: sorted(rows, key=lambda row: (-row[1], row[0])) for user, rows in run.items()}
        return value(ordered, truth, k)

    return evaluator


def after_cut(items, truth, k, rows):
    return ndcg(reachable, exp2)(list(dict.fromkeys(items)), truth, k, rows)


def user_by_user(run, truth, k):
    """The users of the lists alone, and 1 for a user without relevant items; clicks of grade 2 and more."""
    values = {}
    for user, rows in run.items():
        good = {item for item, grade in truth[user].items() if grade >= 2}
        top = [item for item, _ in rows[:k]]
        values[user] = len(good & set(top)) / len(good) if good else 1.0
    return values


# Evaluators that are in no table: what they are asked as, and what has to be told of each.
INVENTED: dict[str, tuple[Callable, str, dict[str, object], str]] = {
    "ideal of k, ln in the list": (
        mean(
            lambda items, truth, k, _r: sum(1 / log(p + 1) for p in places(items, truth)) / dcg([1] * k)
        ),
        "ndcg", {"ideal": "k", "gain": "binary", "no_truth": "zero"}, "ln(r + 1) in the list",
    ),
    "cut, then repeats out, gain 2^g - 1": (
        mean(after_cut), "ndcg", {"gain": "exp2"}, "repeats are taken out of the first k places",
    ),
    "gain g in the list, 2^g - 1 in the ideal": (
        mean(lambda items, truth, k, _r: over(
            dcg([truth.get(i, 0) for i in items]), dcg(sorted(map(exp2, truth.values()), reverse=True)[:k])
        )),
        "ndcg", {"duplicates": "all"}, "2^grade - 1 in the ideal list, the grade in the list",
    ),
    "divided by k, empty as 1": (
        mean(lambda items, truth, k, _r: dcg([float(truth.get(i, 0) > 0) for i in items]) / k, empty=1.0),
        "ndcg", {"gain": "binary"}, "divided by k in place of",
    ),
    "rank from 0": (mean(rank_from_0, empty=None), "mrr", {"no_truth": "skip"}, "counted from 0"),
    "last hit, whole list, percent": (
        mean(lambda _i, truth, _k, rows: over(
            100, max(places([i for i, _ in rows], truth), default=0)
        )),
        "mrr", {"no_truth": "zero"}, "1 / r of the last hit",
    ),
    "MAP over max(k, relevant), by id": (
        by_id(mean(ap(lambda n, k, _h: max(n, k), firsts))), "map", {"ties": "by_id"}, "max(k, relevant)",
    ),
    "MAP over relevant and one more, median": (
        mean(ap(lambda n, _k, _h: n + 1), over_users=statistics.median),
        "map", {"duplicates": "all"}, "one more than the relevant",
    ),
    "micro precision over what is listed": (pooled_precision, "precision", {"average": "pooled"}, ""),
    "found by any of several, users added": (
        mean(hit, over_users=sum), "hit", {}, "added over the users",
    ),
    "recall per user, empty as 1": (
        user_by_user, "recall", {"relevant_from": 2.0, "duplicates": "first", "no_list": "skip"},
        "counts as 1",
    ),
    "precision of grades": (
        mean(lambda items, truth, k, _r: sum(truth.get(item, 0) for item in items) / k),
        "precision", {"duplicates": "all"}, "items count by their grade",
    ),
    "F of k + 1 places, arithmetic": (
        lambda run, truth, k: mean(
            lambda items, own, k, _r: (len(firsts(items, own)) / k + recall_of_set(items, own, k, _r)) / 2
        )(run, truth, k + 1),
        "f", {"precision_over": "k"}, "the first k + 1 places",
    ),
    "DCG of g + 1 by log10": (
        mean(lambda items, truth, _k, _r: sum(
            (truth[items[p - 1]] + 1) / log10(p + 1) for p in places(items, truth)
        )),
        "dcg", {}, "log10(r + 1)",
    ),
}  # fmt: skip


def test_evaluators_of_no_table_are_told_by_what_they_do():
    wrong = []
    for name, (evaluator, metric, decisions, words) in INVENTED.items():
        found = recsys.identify(evaluator, metric)
        fits = all(found.fixed.get(decision) == value for decision, value in decisions.items())
        if not (found and fits and words in "; ".join(found.deviations)):
            wrong.append((name, found))
    assert len(wrong) <= 0.1 * len(INVENTED), wrong


def f_of_all_users(run, truth, k):
    """Micro-averaged, clicks of grade 2 and more: some decisions fit each probe about one user."""
    tops = {user: {item for item, _ in run.get(user, [])[:k]} for user in truth}
    good = {user: {item for item, grade in truth[user].items() if grade >= 2} for user in truth}
    hits = sum(len(tops[user] & good[user]) for user in truth)
    return 2 * hits / (k * len(truth) + sum(map(len, good.values())))


def test_nothing_fits_within_a_second():
    """Of a machine that is not busy: processor time."""
    for metric in ("ndcg", "map", "recall", "f"):
        identify._space_of.cache_clear()
        start = time.process_time()
        found = recsys.identify(lambda *asked: mean(ndcg(reachable))(*asked) ** 2 / 3, metric)
        assert not found
        assert time.process_time() - start < 3


@pytest.mark.parametrize(("metric", "evaluator"), [("f", f_of_all_users), ("ndcg", mean(hit))])
def test_what_fits_many_probes_is_refused_as_soon(metric, evaluator):
    identify._space_of.cache_clear()
    start = time.process_time()
    assert not recsys.identify(evaluator, metric)
    assert time.process_time() - start < 4


# Whether the greatest value is reached, and never passed: every list of 4 places over 3 items at k=2.
BOUNDED = {
    "haystack, before": (WRITTEN["Haystack before 3.2"]["ndcg"], "ndcg"),
    "LlamaIndex": (WRITTEN["LlamaIndex"]["map"], "map"),
    "Spark": (WRITTEN["Spark RankingMetrics"]["recall"], "recall"),
    "Spark, AP": (WRITTEN["Spark RankingMetrics"]["map"], "map"),
    "Spark, graded": (WRITTEN["Spark RankingMetrics with relevance"]["ndcg"], "ndcg"),
    "TruLens": (WRITTEN["TruLens"]["ndcg"], "ndcg"),
    "list against ideal of k - 1": (
        mean(ndcg(lambda best, k, _n: sorted(best, reverse=True)[: k - 1])),
        "ndcg",
    ),
    "places from 0": (INVENTED["rank from 0"][0], "mrr"),
}


@pytest.mark.parametrize("name", BOUNDED)
def test_how_far_above_1_it_goes_is_reached_and_not_passed(name, monkeypatch):
    evaluator, metric = BOUNDED[name]
    k, length, grade = 2, 4, 3.0
    for constant, value in (("EXTREMES_K", k), ("EXTREMES_LENGTH", length), ("EXTREMES_GRADE", grade)):
        monkeypatch.setattr(identify, constant, value)
    found = recsys.identify(evaluator, metric)
    greatest = 0.0
    for items in itertools.chain(*(itertools.product("abc", repeat=n) for n in range(1, length + 1))):
        rows = [[item, float(length - at)] for at, item in enumerate(items)]
        for grades in itertools.product((0, 1, grade), repeat=3):
            truths = itertools.permutations(zip("abc", grades, strict=True))
            for truth in truths if "graded" in name else itertools.islice(truths, 1):
                if any(grades):
                    own = {item: g for item, g in truth if g}
                    greatest = max(greatest, evaluator({"u": rows}, {"u": own}, k))
    if greatest > 1 + 1e-9:
        assert found.at_most == pytest.approx(greatest)
        assert "may exceed 1" in str(found)
    else:
        assert found.at_most is None


def test_what_may_exceed_1_says_by_how_much():
    found = recsys.identify(WRITTEN["Haystack before 3.2"]["ndcg"], "ndcg")
    assert found.at_most == pytest.approx(sum(1 / log2(place + 1) for place in range(1, 11)))
    assert found.to_dict()["at_most"] == found.at_most
    value = WRITTEN["Haystack before 3.2"]["ndcg"](
        {"u": [["a", 10 - at] for at in range(10)]}, {"u": {"a": 1}}, 10
    )
    assert value == pytest.approx(found.at_most)
    assert recsys.identify(WRITTEN["Haystack"]["ndcg"], "ndcg").at_most is None


def answers_of(asked: identify._Mistakes, metric: str, reading: tuple, mean: tuple) -> np.ndarray:
    """What every formula makes of every probe under these options, with the last order where several are."""
    every = np.arange(len(asked.formulas.options))
    found = []
    for probe in probes_for(METRICS[metric].reads):
        users = asked._counted(asked._read(probe, reading), mean)
        found.append([*asked._predicted(users, mean, every)][-1] if users else np.full(len(every), -1.0))
    return np.array(found)


def with_option(part: int, at: int, n_parts: int) -> tuple[int, ...]:
    return tuple(at if n == part else 0 for n in range(n_parts))


@pytest.mark.parametrize(
    "metric", ["precision", "recall", "f", "hit", "mrr", "map", "ndcg", "dcg", "rbp", "err"]
)
def test_every_option_changes_an_answer(metric):
    """An option that no probe shows would be found in everybody's evaluator."""
    formulas = formulas_of(metric)
    probe = probes_for(METRICS[metric].reads)[0]
    asked = identify._Mistakes(identify._space_of(Request.parse(metric)), formulas, [(probe, 0.5)])
    plain = (0,) * len(READING), (0,) * len(MEAN)
    ours = answers_of(asked, metric, *plain)
    # Some formulas differ only where repeats count, or another k is read.
    readings = [plain[0], with_option(REPEATS, 1, len(READING)), with_option(CUT, 2, len(READING))]
    seen = np.concatenate([answers_of(asked, metric, reading, plain[1]) for reading in readings])
    decided = [not any(o.words for o in options) for options in formulas.options]
    shown = {o.words for options in formulas.options for o in options if o.words}
    for at, options in enumerate(formulas.options):
        words = [o.words for o in options if o.words]
        if len(words) == 1 and np.abs(seen[:, [at]] - seen[:, decided]).max(axis=0).min() > 1e-7:
            shown.discard(words[0])
    assert not shown
    for part, several in enumerate(READING.values()):
        for at, option in enumerate(several):
            theirs = answers_of(asked, metric, with_option(part, at, len(READING)), plain[1])
            is_usual = not option.words or (metric == "hit" and option.words.startswith("repeats"))
            assert is_usual or np.abs(theirs - ours).max() > 1e-7, option.words
    for part, several in enumerate(MEAN.values()):
        for at, option in enumerate(several):
            theirs = answers_of(asked, metric, plain[0], with_option(part, at, len(MEAN)))
            assert not option.words or np.abs(theirs - ours).max() > 1e-7, option.words
