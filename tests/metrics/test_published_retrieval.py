"""Published numbers of retrieval: tools of TREC, learning to rank, textbooks and papers, as printed there."""

from __future__ import annotations

import math
from math import log2
from typing import Any

import numpy as np
import pandas as pd
import pytest

import recsys
from recsys.stats.sampled import expected_error

EXACT = 1e-12


def value(lists: Any, truth: Any, request: str, **options: Any) -> float:
    return recsys.evaluate(lists, truth, [request], **options)[request]


def values_by_user(lists: Any, truth: Any, request: str, **options: Any) -> np.ndarray:
    return recsys.evaluate(lists, truth, [request], **options).values_of(request)


def scored(scores: list[float]) -> list[tuple[int, float]]:
    return list(enumerate(scores))


# ir_measures, test/: the run and judgements most of its tests share.
RUN = {
    "0": [("D0", 0.8), ("D2", 0.7), ("D1", 0.3), ("D3", 0.4), ("D4", 0.1)],
    "1": [("D1", 0.8), ("D3", 0.7), ("D4", 0.3), ("D2", 0.4)],
}
JUDGED = {"0": {"D0": 0, "D1": 1, "D2": 1, "D3": 2, "D4": 0}, "1": {"D0": 1, "D3": 2, "D5": 2}}
INTENTS = {
    "0": {"D1": ["0"], "D2": ["0", "1"], "D3": ["1"]},
    "1": {"D0": ["0"], "D3": ["0"], "D5": ["1"]},
}


@pytest.mark.parametrize(
    ("request_", "numbers", "within"),
    [
        ("ndcg(gain=exp2)@20", [0.6201, 0.35099], 1e-5), ("ndcg(gain=exp2)@2", [0.17377, 0.38685], 1e-5),
        ("err@20", [0.10175, 0.09375], 1e-5), ("err@2", [0.03125, 0.09375], 1e-5),
        ("judged@1000", [1, 0.25], EXACT), ("judged@3", [1, 1 / 3], EXACT), ("judged@1", [1, 0], EXACT),
        ("err_ia@20", [0.4659, 0.1803], 5e-5),
    ],
)  # fmt: skip
def test_gdeval_ndeval_and_judged(request_, numbers, within) -> None:
    ours = values_by_user(RUN, JUDGED, request_, conventions="ir_measures", intents=INTENTS)
    assert ours == pytest.approx(numbers, abs=within)


@pytest.mark.parametrize(
    ("level", "precision", "recall", "success"),
    [(1, [0.6, 0.25], [1, 0.5], [1, 0]), (2, [0.4, 0.25], [1, 1], [1, 0]), (3, [0, 0], [0, 0], [0, 0])],
)
def test_levels_of_relevance(level, precision, recall, success) -> None:
    """ir_measures, test_pytrec_eval.py: SetP, SetR and Success with rel=1, 2 and 3."""
    run = {"0": RUN["0"], "1": [("D1", 0.8), ("D4", 0.7), ("D3", 0.3), ("D2", 0.4)]}
    judged = {"0": {"D0": 0, "D1": 1, "D2": 2, "D3": 2, "D4": 0}, "1": {"D0": 1, "D3": 2, "D5": 0}}
    rules = recsys.Conventions.of("ir_measures").but(relevant_from=float(level))
    for request, numbers in (("precision", precision), ("recall", recall), ("hit@2", success)):
        assert values_by_user(run, judged, request, conventions=rules) == pytest.approx(numbers, abs=EXACT)


@pytest.mark.parametrize(
    ("request_", "numbers"),
    [
        ("map", [0.7087, 0.7438, 0.3068]), ("mrr", [1, 1, 0.1667]), ("precision@20", [0.25, 0.3, 0.2]),
        ("rbp(p=0.9)", [0.3501, 0.3996, 0.1988]), ("ndcg(gain=binary, ideal=k)@10", [0.5645, 0.6531, 0.2848]),
        ("sdcg(max_grade=1)@10", [0.5645, 0.6531, 0.2848]), ("bpm(max_grade=1)@20", [1, 1, 0.1667]),
        ("bpm(target=2, max_grade=1)@10", [0.6667, 1, 0.2857]),
        ("inst(max_grade=1)", [0.7934, 0.9226, 0.0888]),
        ("inst(target=2, max_grade=1)", [0.5994, 0.6924, 0.1397]),
    ],
)  # fmt: skip
def test_cwl_eval(request_, numbers) -> None:
    """ir_measures, test_cwl_eval.py: SDCG assumes as many relevant items as places."""
    relevant = {"T1": [1, 3, 4, 7, 9], "T2": [1, 2, 5, 7, 8, 9], "T3": [6, 7, 8, 10]}
    ours = values_by_user(
        {t: list(range(1, 11)) for t in relevant}, relevant, request_, conventions="ir_measures"
    )
    assert ours == pytest.approx(numbers, abs=1e-4)


def test_bpref() -> None:
    """ranx, bpref_test.py; and the correction NIST published in 2005: what is not retrieved stands below."""
    judged = {
        1: {2: 1, 5: 1, 1: 0, 4: 0}, 2: {2: 1, 5: 1, 1: 0, 6: 0}, 3: {2: 1, 5: 1, 7: 1, 1: 0, 6: 0, 8: 0},
        4: {2: 1, 4: 1, 6: 1, 9: 1, 1: 0, 3: 0, 7: 0, 8: 0},
    }  # fmt: skip
    run = {1: [1, 2, 3, 4], 2: list(range(1, 7)), 3: list(range(1, 9)), 4: [1, 2, 3, 4, 6, 7, 8]}
    numbers = [0.25, 0.5, (2 / 3 + 2 / 3 + 1 / 3) / 3, (3 / 4 + 1 / 2 + 1 / 2) / 4]
    assert values_by_user(run, judged, "bpref", conventions="ranx") == pytest.approx(numbers, abs=EXACT)
    nist = {**{f"good {i}": 1 for i in range(6)}, **{f"bad {i}": 0 for i in range(4)}}
    run = {0: ["bad 0", "good 0", "good 1", "good 2", "good 3"]}
    assert value(run, {0: nist}, "bpref") == 0.5


@pytest.mark.parametrize(("p", "number"), [(0.5, 0.7661), (0.8, 0.4526), (0.95, 0.1881)])
def test_rbp_of_ranx(p, number) -> None:
    ours = value({0: list(range(1, 21))}, {0: [1, 2, 6, 11, 17]}, f"rbp(p={p})", conventions="ranx")
    assert ours == pytest.approx(number, abs=5e-5)


@pytest.mark.parametrize(
    ("request_", "number"),
    [
        ("ndcg", 0.8467), ("map", 0.7917), ("precision@2", 0.5), ("r_precision", 0.75), ("recall@2", 0.75),
        ("auc", 0.75), ("mrr", 0.75),
    ],
)  # fmt: skip
def test_torchmetrics(request_, number) -> None:
    """TorchMetrics, the examples of its retrieval metrics."""
    lists = {0: scored([0.2, 0.3, 0.5]), 1: scored([0.1, 0.3, 0.5, 0.2])}
    ours = value(lists, {0: [2], 1: [1, 3]}, request_, conventions="torchmetrics", full_ranking=True)
    assert ours == pytest.approx(number, abs=5e-5)


@pytest.mark.parametrize(
    ("request_", "first", "second"),
    [
        ("mrr", 0.5, 0.75), ("hit@1", 0, 0.5), ("precision@2", 0.5, 0.5), ("recall@2", 0.5, 0.75),
        ("ndcg(gain=exp2)", 0.6934264, 0.7974351), ("dcg(gain=exp2)", 1.1309297, 2.065465),
    ],
)  # fmt: skip
def test_tensorflow_ranking(request_, first, second) -> None:
    """TensorFlow Ranking, the two examples of each of its Keras metrics."""
    ours = value({0: scored([3.0, 1.0, 2.0])}, {0: {0: 0, 1: 1, 2: 1}}, request_)
    assert ours == pytest.approx(first, abs=1e-6)
    lists, truth = {0: scored([2.0, 1.0]), 1: scored([2.0, 5.0, 4.0])}, {0: {1: 1}, 1: {0: 1, 1: 2}}
    assert value(lists, truth, request_) == pytest.approx(second, abs=1e-6)


def test_pytorchltr() -> None:
    """PyTorchLTR, test_dcg.py: gains of the grade and of two to the grade."""
    lists = {0: scored([10.0, 5.0, 2.0, 3.0, 4.0]), 1: scored([5.0, 6.0, 4.0, 2.0])}
    truth = {0: {1: 1, 2: 1, 4: 1}, 1: {0: 3, 1: 1, 3: 1}}
    for request, numbers in (
        ("dcg(gain=exp2)@3", [1.1309297535714575, 5.4165082750002025]),
        ("dcg(gain=exp2)@5", [1.5177825608059992, 5.847184833073595]),
        ("dcg@5", [1.5177825608059992, 3.3234658187877653]),
        ("ndcg@5", [1.5177825608059992 / 2.1309297535714578, 3.3234658187877653 / 4.130929753571458]),
    ):
        assert values_by_user(lists, truth, request) == pytest.approx(numbers, abs=EXACT), request


@pytest.mark.parametrize(
    ("grades", "request_", "number"),
    [
        ([1, 1, 0, 1, 0, 1, 0, 0, 0, 1], "map(over=hits)", 0.7833333333333333),
        ([3, 2, 3, 0, 0, 1, 2, 2, 3, 0], "dcg(discount=log2_max2)@2", 5.0),
        ([3, 2, 3, 0, 0, 1, 2, 2, 3, 0], "dcg@2", 4.2618595071429155),
        ([3, 2, 3, 0, 0, 1, 2, 2, 3, 0], "dcg(discount=log2_max2)@10", 9.6051177391888114),
        ([2, 1, 2, 0], "ndcg(discount=log2_max2)@4", 0.9203032077642922),
        ([2, 1, 2, 0], "ndcg@4", 0.96519546960144276),
    ],
)
def test_rank_metrics(grades, request_, number) -> None:
    """rank_metrics.py of B. White, the examples of its functions."""
    ours = value({0: list(range(len(grades)))}, {0: dict(enumerate(grades))}, request_)
    assert ours == pytest.approx(number, abs=EXACT)


def test_scikit_learn() -> None:
    """scikit-learn, the examples of its ranking and regression metrics."""
    truth = {0: dict(enumerate([10, 0, 0, 1, 5]))}
    tied = {"conventions": {"ties": "expected"}}
    for scores, request, number, options in (
        ([0.1, 0.2, 0.3, 4, 70], "ndcg", 0.69569, {}), ([0.05, 1.1, 1.0, 0.5, 0.0], "ndcg", 0.49372, {}),
        ([0.05, 1.1, 1.0, 0.5, 0.0], "ndcg@4", 0.35202, {}), ([1, 0, 0, 0, 1], "ndcg@1", 0.75, tied),
        ([0.1, 0.2, 0.3, 4, 70], "dcg", 9.49946, {}), ([1, 0, 0, 0, 1], "dcg@1", 7.5, tied),
    ):  # fmt: skip
        assert value({0: scored(scores)}, truth, request, **options) == pytest.approx(number, abs=1e-4)
    table = pd.DataFrame({"user": 0, "rating": [3, -0.5, 2, 7], "prediction": [2.5, 0.0, 2, 8]})
    asked = {"r2": 0.94861, "explained_variance": 0.95717, "mse": 0.375, "mae": 0.5, "rmse": 0.61237}
    ours = recsys.evaluate_ratings(table, metrics=list(asked))
    assert {name: ours[name] for name in asked} == pytest.approx(asked, abs=5e-6)


@pytest.mark.parametrize(
    ("other", "p", "number"),
    [
        ("drfuoxnpszeva", 0.1, 0.000246), ("akdwcjomxrubqitenhspyl", 0.1, 0.948509), ("dnty", 0.1, 0.00025),
        ("b", 0.2, 0.092574), ("av", 0.2, 0.9), ("bncxagm", 0.2, 0.105466), ("aptkn", 0.2, 0.892587),
        ("auzemcwhrtjvbfqxyk", 0.4, 0.772647), ("yad", 0.4, 0.187572), ("ma", 0.4, 0.200001),
        ("karfvodcjmwgzlypebunq", 0.9, 0.468431), ("zhatsimjpnkvcfxwqgoeryubd", 0.9, 0.364444),
        ("f", 0.9, 0.05309), ("zclx", 0.9, 0.233312), ("nxqyk", 0.9, 0.04905),
    ],
)  # fmt: skip
def test_rank_biased_overlap_of_uneven_lists(other, p, number) -> None:
    """Against the alphabet; values of Webber's own program, as stored with the Rust crate rbo."""
    alphabet, options = list("abcdefghijklmnopqrstuvwxyz"), {0: ["a"]}
    for one, two in ((alphabet, list(other)), (list(other), alphabet)):
        assert value({0: one}, options, f"rbo(p={p})", reference={0: two}) == pytest.approx(
            number, abs=1.1e-6
        )


def test_average_overlap_of_webber_moffat_and_zobel() -> None:
    """Their figure 5: average overlap of a-g and z-c-a-v-w-x-y at depths 1 to 7."""
    numbers = [0, 0, 0.222, 0.292, 0.313, 0.317, 0.312]
    options = {"reference": {0: list("zcavwxy")}}
    ours = [value({0: list("abcdefg")}, {0: ["a"]}, f"average_overlap@{k}", **options) for k in range(1, 8)]
    assert ours == pytest.approx(numbers, abs=6e-4)


def test_alpha_ndcg_of_clarke_and_others() -> None:
    """Their example of 2008: gains of the ten documents in the order given, and in the best one."""
    nuggets = {"a": "24", "b": "2", "c": "2", "e": "16", "f": "6", "g": "3", "h": "6"}
    gains, best = [2, 0.5, 0.25, 0, 2, 0.5, 1, 0.25, 0, 0], [2, 2, 1, 0.5, 0.5, 0.25, 0.25, 0, 0, 0]
    intents = {0: {item: list(served) for item, served in nuggets.items()}}
    for k in (1, 3, 5, 10):
        got, most = (sum(g / log2(r + 2) for r, g in enumerate(row[:k])) for row in (gains, best))
        ours = value({0: list("abcdefghij")}, {0: list(nuggets)}, f"alpha_ndcg@{k}", intents=intents)
        assert ours == pytest.approx(got / most, abs=EXACT)


@pytest.mark.parametrize(
    ("judgements", "missing", "numbers"),
    [
        ("RRNNNNNNRNRNNNRNNNNR", 2, {"precision@20": 0.3, "f1@20": 3 / 7, "map": 0.4163}),
        ("RNRNNNNNRR", 0, {"map": 0.6, "r_precision": 0.5}),
        ("NRNNRRRNNN", 0, {"map": 0.4929, "r_precision": 0.25}),
    ],
)
def test_exercises_of_introduction_to_information_retrieval(judgements, missing, numbers) -> None:
    """Manning, Raghavan and Schütze, exercises 8.8 and 8.9."""
    relevant = [place for place, letter in enumerate(judgements) if letter == "R"]
    truth = {0: [*relevant, *range(100, 100 + missing)]}
    for request, number in numbers.items():
        assert value({0: list(range(len(judgements)))}, truth, request) == pytest.approx(number, abs=5e-5)


def test_dcg_and_mrr_of_wikipedia() -> None:
    truth = {0: dict(enumerate([3, 2, 3, 0, 1, 2, 3, 2]))}
    assert value({0: list(range(6))}, truth, "dcg@6") == pytest.approx(6.861, abs=5e-4)
    assert value({0: list(range(6))}, truth, "ndcg@6") == pytest.approx(0.785, abs=5e-4)
    lists = {0: [1, 2, 3], 1: [1, 2, 3], 2: [1, 2, 3]}
    assert value(lists, {0: [3], 1: [2], 2: [1]}, "mrr") == pytest.approx(11 / 18, abs=EXACT)


# Krichene & Rendle, On sampled metrics for item recommendation (2020), tables 1 and 2: one relevant item of
# 10,000, five times; AUC, AP, NDCG and recall@10, of all items and of 99 sampled ones with their deviation.
KRICHENE = [
    ([100] * 5, [0.990, 0.010, 0.150, 0], [0.990, 0.630, 0.724, 1.0], [0.004, 0.129, 0.097, 0]),
    (
        [40, 40, 8437, 9266, 4482],
        [0.555, 0.010, 0.122, 0],
        [0.555, 0.336, 0.444, 0.4],
        [0.014, 0.073, 0.054, 0],
    ),
    (
        [212, 2, 743, 5342, 1548],
        [0.843, 0.101, 0.208, 0.2],
        [0.843, 0.325, 0.460, 0.567],
        [0.014, 0.050, 0.039, 0.092],
    ),
]


@pytest.mark.parametrize(("ranks", "whole", "sampled", "deviations"), KRICHENE)
def test_three_recommenders_of_krichene_and_rendle(ranks, whole, sampled, deviations) -> None:
    lists = {user: list(range(1, 10_001)) for user in range(5)}
    asked = ["auc", "map", "ndcg", "recall@10"]
    ours = recsys.evaluate(lists, {u: [r] for u, r in enumerate(ranks)}, asked, full_ranking=True)
    assert [ours[name] for name in asked] == pytest.approx(whole, abs=6e-4)
    for name, number, deviation in zip(asked, sampled, deviations, strict=True):
        said = expected_error(name, 99, 10_000, ranks=ranks, n_cases=5, replacement=True)
        # They averaged 1,000 draws and print three digits.
        assert said.expected == pytest.approx(number, abs=3 * deviation / math.sqrt(1000) + 6e-4), name
        assert said.deviation == pytest.approx(deviation, abs=0.08 * deviation + 6e-4), name
        assert said.truth == pytest.approx(ours[name], abs=EXACT), name
    share = (np.array(ranks) - 1) / 9999
    said = expected_error("map", 99, 10_000, ranks=ranks, replacement=True)
    assert said.expected == pytest.approx(((1 - (1 - share) ** 100) / (100 * share)).mean(), abs=1e-9)


def test_calibration_of_steck() -> None:
    """Seven romances and three action films, and only romances shown: KL with alpha 0.01."""
    had = {0: [f"r{i}" for i in range(7)] + [f"a{i}" for i in range(3)]}
    genre = {f"{letter}{i}": letter for letter in "ra" for i in range(20)}
    options = {"train": had, "items": {"genre": genre}}
    romances = {0: [f"r{i}" for i in range(10, 20)]}
    number = 0.7 * math.log(0.7 / 0.997) + 0.3 * math.log(0.3 / 0.003)
    assert value(romances, {0: ["r10"]}, "calibration_kl", **options) == pytest.approx(number, abs=EXACT)
    mixed = {0: [f"r{i}" for i in range(10, 17)] + ["a10", "a11", "a12"]}
    assert value(mixed, {0: ["r10"]}, "calibration_kl", **options) == pytest.approx(0, abs=EXACT)
