"""Every argument of statistics and comparisons, given every kind of nonsense: an answer or a typed error."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import recsys
from recsys import debias, sampled, stats
from recsys.errors import RecsysError

pytestmark = pytest.mark.filterwarnings("ignore")

NONSENSE = {
    "None": None,
    "a number": 5,
    "negative": -1,
    "zero": 0,
    "a fraction": 1.5,
    "NaN": float("nan"),
    "infinity": float("inf"),
    "text nan": "nan",
    "text": "x",
    "no text": "",
    "bytes": b"x",
    "past float64": 10**400,
    "a decimal": Decimal("1.5"),
    "a decimal NaN": Decimal("NaN"),
    "NA": pd.NA,
    "NaT": pd.NaT,
    "a date": np.datetime64("2020"),
    "an object": object(),
    "a dict": {},
    "a list": [],
    "a set": {1, 2},
    "a frozenset": frozenset([1, 2]),
    "a range": range(3),
    "uneven rows": [[1], [2, 3]],
    "a tuple inside": [(1, 2), 3],
    "0-d": np.array(5),
    "2-d": np.array([[1, 2], [3, 4]]),
    "complex": 1j,
    "a flag": True,
    "masked": np.ma.masked_equal([1, 2, 3], 2),
    "texts": ["a", "b"],
    "Nones": [None, None],
    "dates": np.array(["2020", "2021"], dtype="datetime64[Y]"),
    "a dict of NaT": {1: pd.NaT},
    "a dict of text": {"a": "x"},
    "a series": pd.Series([1.0, pd.NA]),
    "past int64": np.array([2**63 + 5], dtype=np.uint64),
    "three": (1, 2, 3),
}  # fmt: skip
RNG = np.random.default_rng(0)
GAPS, OTHERS = RNG.normal(size=30), RNG.normal(size=30)
TRUTH = {u: [u % 7, (u * 3) % 7] for u in range(30)}
LISTS = {n: {u: [(u * n + j) % 7 for j in range(4)] for u in TRUTH} for n in (1, 2)}
A, B = (recsys.evaluate(lists, TRUTH, ["ndcg@3", "hit@1"]) for lists in LISTS.values())
LOG = pd.DataFrame({"action": list("aabb"), "reward": [1.0, 0, 1, 1], "propensity": [0.5] * 4})
RATINGS = {1: {5: 4.0, 6: 2.0}, 2: {5: 3.0}}
CHANCES = dict.fromkeys(range(7), 0.5)

# ruff: noqa: C408 - keyword arguments read best as keyword arguments
CALLS = {
    "sampled.estimate": (sampled.estimate, dict(ranks=[1, 2, 3], n_negatives=9, n_items=50, metric="ndcg@5",
        method="bv", tied=None, gamma=0.1, prior="uniform", clusters=None, confidence=0.9)),
    "sampled.estimate by mle": (lambda **k: sampled.estimate(method="mle", **k), dict(ranks=[1, 2, 3],
        n_negatives=9, n_items=50, metric="hit@5", clusters=None, confidence=0.9, seed=0)),
    "sampled.estimate_all": (sampled.estimate_all, dict(ranks=[1, 2, 3], n_negatives=9, n_items=50,
        metrics=["hit@5"], methods=["bv"])),
    "sampled.fit_ranks": (sampled.fit_ranks, dict(ranks=[1, 2], n_negatives=9, n_items=50, prior="log",
        iterations=5)),
    "sampled.expected_error": (sampled.expected_error, dict(metric="hit@5", n_negatives=9, n_items=50,
        n_cases=10, ranks=[1, 2], method="bv", gamma=0.1, prior="log")),
    "sampled.negatives_needed": (sampled.negatives_needed, dict(metric="hit@5", n_items=50, tolerance=0.1)),
    "sampled.winner_probability": (sampled.winner_probability, dict(first=[1, 2], second=[3, 4],
        n_negatives=9, n_items=50, metric="hit@5", ranks="true", method="bv")),
    "sampled.inclusion_chances": (sampled.inclusion_chances, dict(weights=[1.0, 2.0, 3.0], n=2)),
    "sampled.estimate_weighted": (sampled.estimate_weighted, dict(above=[[1, 0], [0, 0], [1, 1]],
        chances=[[0.5, 0.5]] * 3, n_items=5, metric="auc", clusters=None, confidence=0.9)),
    "compare": (recsys.compare, dict(evaluations={"a": A, "b": B}, baseline="a", metrics=["ndcg@3"],
        test="t", interval="t", correction="holm", effect="d_z", confidence=0.9, margin=0.1,
        no_worse_than=0.1, rope=0.1, tie=0.0, runs="auto", test_over_train=None, n_resamples=50,
        scheme="auto", rng=0)),
    "gate": (recsys.gate, dict(new=A, against=B, margins={"ndcg@3": 0.5}, confidence=0.9)),
    "race": (recsys.race, dict(models={"a": LISTS[1], "b": LISTS[2]}, truth=TRUTH, metrics=["hit@1"],
        baseline="a", stop_when=0.5)),
    "evaluate_ratings": (recsys.evaluate_ratings, dict(predictions=RATINGS, truth=RATINGS, metrics=["rmse"],
        scale=(1, 5), clip=True, missing="error", columns=None)),
    "evaluate": (lambda **k: recsys.evaluate(LISTS[1], TRUTH, ["hit@1"], **k), dict(clusters=None,
        case_weights=None, item_weights=None, stop_when=0.5)),
    "debias.evaluate": (lambda **k: debias.evaluate(LISTS[1], TRUTH, "recall@2", **k), dict(
        propensities=CHANCES, clip=9.0, n_relevant=3, estimators=["ips"], confidence=0.9)),
    "debias.popularity_propensities": (debias.popularity_propensities, dict(train=TRUTH, power=1.5,
        gamma=None)),
    "debias.effective_sample_size": (debias.effective_sample_size, dict(weights=[1, 2])),
    "debias.off_policy": (debias.off_policy, dict(log=LOG, policy={"a": 0.5, "b": 0.5}, context=(),
        reward_model=None, clip=None, estimators=["ips"], folds=2, clusters=None, columns=None,
        confidence=0.9)),
    "wilcoxon": (stats.wilcoxon, dict(differences=GAPS, alternative="less", method="auto", equal_within=0)),
    "paired_t": (stats.paired_t, dict(differences=GAPS, alternative="less", confidence=0.9)),
    "sign_flip": (stats.sign_flip, dict(differences=GAPS, confidence=0.9)),
    "sign_test": (stats.sign_test, dict(differences=GAPS, dead_zone=0)),
    "bootstrap_test": (stats.bootstrap_test, dict(differences=GAPS, method="bca", n_resamples=50)),
    "equivalence": (stats.equivalence, dict(differences=GAPS, margin=0.1, confidence=0.9)),
    "non_inferiority": (stats.non_inferiority, dict(differences=GAPS, margin=0.1)),
    "bayes_paired": (stats.bayes_paired, dict(differences=GAPS, rope=0.1, correlation=0.0)),
    "pair": (stats.pair, dict(first=GAPS, second=OTHERS, clusters=None, ids=None, weights=None)),
    "mean_interval": (stats.mean_interval, dict(values=GAPS, method="t", clusters=None, confidence=0.9)),
    "adjust": (stats.adjust, dict(p_values=[0.1, 0.2], method="holm")),
    "friedman": (stats.friedman, dict(scores=RNG.random((5, 3)), names=None, alpha=0.05)),
    "seeds": (stats.seeds, dict(differences=RNG.random((3, 5)))),
    "folds": (stats.folds, dict(per_fold=[0.1, 0.2, 0.3], test_over_train=None)),
    "effects": (stats.cliffs_delta, dict(differences=stats.pair(GAPS, OTHERS))),
    "rank_biserial": (stats.rank_biserial, dict(differences=GAPS, equal_within=0)),
    "power": (stats.power, dict(effect=0.1, n=20, sd=1.0, alpha=0.05)),
    "users_needed": (stats.users_needed, dict(effect=0.1, sd=1.0, alpha=0.05, power=0.8)),
    "minimal_effect": (stats.minimal_effect, dict(n=20, sd=1.0, alpha=0.05, power=0.8)),
    "ConfidenceSequence": (stats.ConfidenceSequence, dict(n_total=10, bounds=(0, 1), alpha=0.05)),
    "ConfidenceSequence.update": (lambda **k: stats.ConfidenceSequence(10, bounds=(0, 1)).update(**k),
        dict(values=[0.1], weights=None)),
    "boundaries": (stats.boundaries, dict(fractions=(0.5, 1.0), alpha=0.05, spending="pocock")),
    "coverage_interval": (stats.coverage_interval, dict(exposure=RNG.integers(0, 5, (6, 4)), n_items=None)),
    "post_stratified": (stats.post_stratified, dict(values=GAPS, strata=["x", "y"] * 15,
        shares={"x": 0.5, "y": 0.5})),
    "covariate_adjusted": (stats.covariate_adjusted, dict(values=GAPS, covariates=OTHERS,
        population_means=[0.5])),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "argument"), [(name, argument) for name, (_, usual) in CALLS.items() for argument in usual]
)
def test_nonsense_gets_an_answer_or_a_typed_error(name, argument):
    call, usual = CALLS[name]
    call(**usual)
    untyped = {}
    for what, value in NONSENSE.items():
        try:
            call(**{**usual, argument: value})
        except RecsysError:
            continue
        except Exception as error:  # noqa: BLE001 - what is looked for
            untyped[what] = repr(error)[:200]
    assert untyped == {}


@pytest.mark.parametrize(
    "number", ["nan", Decimal("NaN"), 10**400, float("inf"), 9.5, [9, 9], (9, (9, 9)), None]
)
@pytest.mark.parametrize("argument", ["n_negatives", "n_items"])
def test_how_much_was_sampled_is_a_whole_number(argument, number):
    arguments = {"n_negatives": 9, "n_items": 50, argument: number}
    with pytest.raises(RecsysError, match=argument):
        sampled.estimate([1, 2, 3], **arguments)
