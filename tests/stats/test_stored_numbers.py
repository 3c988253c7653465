"""Corrections, bounds and resampled intervals of fixed samples, digit by digit.

Simulations show that these methods keep their level; they would not show a correction that is a little off.
`stored_numbers.json` has what they gave when the simulations passed. After an intended change that the
simulations (`make nominal`) confirm, `make restate` stores them anew; read the difference.
"""

from __future__ import annotations

import contextlib
import json
import math
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recsys.errors import RecsysError
from recsys.records.arrays import PerCase
from recsys.records.facts import Note, Verdict
from recsys.stats.adjustment import covariate_adjusted, post_stratified, variance_saved_share
from recsys.stats.bootstrap import (
    Resampler,
    Units,
    collapse,
    groups_of,
    random_order,
    replicate,
    unit_keys,
)
from recsys.stats.change_points import change_points
from recsys.stats.comparison import compare_tables
from recsys.stats.comparison_table import Options, Row
from recsys.stats.corrections import adjust, friedman
from recsys.stats.effects import (
    cliffs_delta,
    d_z,
    glass_delta,
    hedges_g,
    minimal_effect,
    pooled_d,
    power,
    rank_biserial,
    users_needed,
)
from recsys.stats.gaffke import mean_bounds, mean_p, units_needed
from recsys.stats.group_jackknife import (
    catalogue_difference,
    catalogue_jackknife,
    coverage_interval,
    coverage_jackknife,
    jackknife,
    mean_jackknife,
)
from recsys.stats.intervals import mean_interval, ratio_units
from recsys.stats.mean_inference import bounded_mean_test, infer_mean, skew_notes, tail_notes
from recsys.stats.online_experiments import ab
from recsys.stats.pairing import pair
from recsys.stats.results import Estimate
from recsys.stats.runs import folds, seeds
from recsys.stats.sampled.estimates import estimate, fit_ranks, inclusion_chances
from recsys.stats.sampled.expected_errors import expected_error, negatives_needed, winner_probability
from recsys.stats.samples import Sample, linearised
from recsys.stats.sequential import betting_limits, boundaries, msprt

STORED = Path(__file__).with_name("stored_numbers.json")


def numbers(n: int, step: float = 1.0) -> np.ndarray:
    """n numbers between 0 and 1 without an order, the same with every release of NumPy."""
    return np.modf(np.abs(np.sin(step * np.arange(1, n + 1)) * 1000.0))[0]


def exposure(n_groups: int, n_items: int, rare: float) -> np.ndarray:
    """How often each group of users was shown each item; `rare` items are shown to few groups."""
    random = numbers(n_groups * n_items, 1.7).reshape(n_groups, n_items)
    popular = 1.0 / (1.0 + rare * np.arange(n_items))
    return np.floor(4.0 * random * (random < popular) + 2.0 * (random < 0.1 * popular))


def gini(total: np.ndarray) -> float:
    shares = np.sort(total) / max(total.sum(), 1.0)
    n = len(shares)
    return float(((2.0 * np.arange(1, n + 1) - n - 1.0) * shares).sum() / n)


def of_estimate(found: Estimate) -> list[float]:
    return [found.value, found.standard_error, found.interval.low, found.interval.high, float(found.n)]


def jackknives() -> dict[str, list[float]]:
    out = {}
    for n_groups, n_items, rare in (
        (5, 9, 0.1),
        (15, 30, 0.3),
        (16, 40, 0.2),
        (20, 25, 0.5),
        (64, 90, 1.0),
        (70, 60, 2.0),
    ):
        counts = exposure(n_groups, n_items, rare)
        sizes = np.floor(3.0 + 9.0 * numbers(n_groups, 0.3))
        sizes[1] = 0.0 if n_groups == 15 else sizes[1]
        name = f"{n_groups} groups, {n_items} items"
        for what, found in (
            ("coverage", coverage_jackknife(counts, n_items=n_items + 7)),
            ("coverage, sizes", coverage_jackknife(counts, sizes=sizes)),
            ("gini", catalogue_jackknife(counts, gini)),
            ("gini, sizes", catalogue_jackknife(counts, gini, sizes=sizes)),
            (
                "mean of two",
                mean_jackknife([catalogue_jackknife(counts, gini), catalogue_jackknife(counts[::-1], gini)]),
            ),
            (
                "alone",
                jackknife(
                    lambda left, sizes=sizes: float(np.delete(sizes, left).mean()), sizes, together=False
                ),
            ),
        ):
            spread = [found.variance(), found.df, found.rise, found.fall]
            out[f"{what} of {name}"] = [*of_estimate(found.estimate(0.9)), *spread]
        out[f"difference of {name}"] = of_estimate(
            catalogue_difference(counts, counts[:, ::-1] + counts, gini)
        )
        out[f"coverage within 0 and 1 of {name}"] = of_estimate(coverage_interval(counts))
    everywhere = np.ones((20, 6))
    out["everything is shown to everybody"] = of_estimate(coverage_interval(everywhere, n_items=8))
    out["three groups have users"] = of_estimate(
        coverage_jackknife(np.vstack([exposure(3, 8, 0.1), np.zeros((2, 8))])).estimate()
    )
    return out


def rare_values() -> dict[str, list[float]]:
    out = {}
    few = np.append(np.zeros(60), [0.3, 0.7, 1.0])
    samples = {
        "few": Sample.of(few),
        "negative": Sample.of(np.append(few, [-0.5, -1.0])),
        "weighted": Sample.of(few, 1.0 + np.floor(5.0 * numbers(63))),
        "counted": Sample.of(np.array([0.0, 0.5, 1.0]), counts=np.array([900.0, 7.0, 4.0])),
        "many, weighted": Sample.of(np.append(np.zeros(200), numbers(90)), 0.5 + numbers(290)),
        "one value": Sample.of(np.full(30, 0.4)),
    }
    for name, sample in samples.items():
        for alternative in ("two-sided", "greater", "less"):
            for low, high in ((-1.0, 1.0), (-1.0, math.inf), (-math.inf, 1.0)):
                found = mean_bounds(sample, low, high, 0.9, alternative=alternative)
                ps = [mean_p(sample, c, low, high, alternative) for c in (-0.02, 0.0, 0.05, 0.4)]
                out[f"{name}, {alternative}, {low} to {high}"] = [found.low, found.high, *ps]
        for alternative in ("greater", "less"):
            needed = units_needed(sample, 0.05, -1.0, 1.0, alternative, alpha=0.05)
            out[f"{name}, units needed, {alternative}"] = [math.nan if needed is None else float(needed)]
    return out


def resampled() -> dict[str, list[float]]:
    out: dict[str, list[float]] = {}
    keys = unit_keys(np.arange(90))
    values = numbers(90) ** 3 - 0.3
    weights = 1.0 + np.floor(6.0 * numbers(90, 0.9))
    clustered = collapse(values[None, :], np.arange(90) // 3 % 17, keys=keys)
    large = unit_keys(np.arange(1200))
    for name, units in (
        ("plain", Units(keys, values[None, :], np.ones((1, 90)))),
        ("weighted", Units(keys, (values * weights)[None, :], weights[None, :])),
        ("clustered", clustered),
        ("ratio", ratio_units(numbers(90), 1.0 + numbers(90, 0.4))),
        ("no spread", Units(keys, np.outer([0.25, -0.25, 0.0], np.ones(90)), np.ones((3, 90)))),
        ("large", Units(large, numbers(1200)[None, :] - 0.4, np.ones((1, 1200)))),
        ("two rows", Units(keys, np.stack([values, np.where(values > 0, values, 0.0)]), np.ones((2, 90)))),
    ):
        replicates = replicate(units, Resampler(units.keys, 499, 7))
        for method in ("percentile", "studentised", "bca"):
            out[f"{name}, {method}, limits"] = replicates.limits(method, 0.9).ravel().tolist()
            if method != "percentile":
                for alternative in ("two-sided", "greater", "less"):
                    out[f"{name}, {method}, {alternative}"] = replicates.p_values(
                        method, alternative
                    ).tolist()
        rows = [Sample.row(units, row) for row in range(len(units.totals))]
        out[f"{name}, errors"] = [
            *units.standard_errors(), *(one.error for one in rows), *(one.df for one in rows),
            *units.estimates(), *units.n_units, *(one.n_not_zero for one in rows),
            *(one.is_uneven for one in rows), *linearised(units)[:5], *linearised(units, plain=True)[:5],
        ]  # fmt: skip
        out[f"{name}, tails"] = [
            part for parts in zip(*(one.tails for one in rows), strict=True) for part in parts
        ]
        for method in ("t", "normal", "studentised", "bca", "percentile"):
            found = infer_mean(units, method=method, n_resamples=299, bounds=(-1.0, 1.0)).estimate
            out[f"{name}, interval by {method}"] = of_estimate(found)
    out["order"] = random_order(np.arange(20), 5).tolist()
    out["order of texts"] = random_order(np.array([*"abcdefgh"], dtype=object), 5, purpose="other").tolist()
    out["groups"] = [*groups_of(np.arange(30)), *groups_of(np.array([*"abcdefgh"], dtype=object), 5)]
    heavy_weight = np.append(np.ones(60), 300.0)
    uneven = Units(unit_keys(np.arange(61)), (numbers(61) * heavy_weight)[None, :], heavy_weight[None, :])
    out["one unit weighs most"] = [
        *of_estimate(infer_mean(uneven).estimate),
        *of_estimate(infer_mean(uneven, bounds=(0.0, 1.0)).estimate),
    ]
    out["a cluster of one"] = of_estimate(
        mean_interval(numbers(12), clusters=np.arange(12) // 2, confidence=0.8)
    )
    return out


def paired() -> dict[str, list[float]]:
    out: dict[str, list[float]] = {}
    base = numbers(80)
    for name, sample in (
        ("skewed", base**8),
        ("skewed to the left", -(base**8)),
        ("one large", np.append(base - 0.5, 40.0)),
        ("losses are rare", np.append(np.full(300, 0.1), np.full(21, -1.0) + 0.01 * np.arange(21))),
        ("few differ", np.append(np.zeros(200), [0.5, 0.2, -0.1])),
        ("even", base - 0.5),
        ("skewed enough for one side", -np.log(numbers(500))),
    ):
        units = Sample.of(sample)
        notes = [len(skew_notes(units, alternative)) for alternative in ("two-sided", "greater", "less")]
        out[f"{name}, notes"] = [
            *notes,
            len(tail_notes(units)),
            *(units.powers[at] for at in (0, 1, 3)),
            units.n_not_zero,
        ]
        for alternative in ("greater", "less"):
            for bounds in ((-1.0, 1.0), (-math.inf, math.inf), (-1.0, math.inf)):
                found = bounded_mean_test(units, 0.02, bounds, alternative, confidence=0.9)
                ends = [] if found is None else [found.p_value, found.interval.low, found.interval.high]
                out[f"{name}, {alternative} within {bounds}"] = ends
    return out


# All that a row of a comparison says, in the order in which it was stored.
ROW = (
    "model", "baseline", "metric", "value", "baseline_value", "difference", "interval", "relative",
    "relative_interval", "own_interval", "statistic", "p_value", "adjusted_p", "effect", "wins", "ties",
    "losses", "n_cases", "n_units", "test", "standard_error", "verdict", "equivalence", "non_inferiority",
    "bayes", "runs", "variance_saved", "family", "notes",
)  # fmt: skip


def flat(found: Any) -> list[float]:
    """Every number in a result, its parts in their order; texts as their length."""
    if isinstance(found, bool | int | float | np.generic):
        return [float(found)]
    if isinstance(found, str | Note | Verdict):
        found = str(found)
        return [float(len(found))]
    if found is None:
        return [math.nan]
    if isinstance(found, np.ndarray):
        return flat(found.ravel().tolist())
    if isinstance(found, Mapping):
        return [number for part in found.values() for number in flat(part)]
    if isinstance(found, list | tuple):
        return [number for part in found for number in flat(part)]
    parts = [getattr(found, name) for name in ROW] if isinstance(found, Row) else vars(found).values()
    return [number for part in parts for number in flat(part)]


def tables() -> dict[str, PerCase]:
    """Three models on 150 users, of whom the last lacks ten."""
    ids, base = np.arange(150), numbers(150)
    better = np.clip(base + 0.08 * numbers(150, 0.6), 0.0, 1.0)
    hits = (base > 0.6).astype(float)
    return {
        "base": PerCase(ids, {"ndcg": base, "hit": hits}),
        "better": PerCase(ids, {"ndcg": better, "hit": np.where(numbers(150, 0.2) > 0.9, 1.0, hits)}),
        "other": PerCase(ids[:140], {"ndcg": base[::-1][:140], "hit": hits[::-1][:140]}),
    }


def comparisons() -> dict[str, list[float]]:
    out = {}
    asked: dict[str, dict[str, Any]] = {
        "t": {"test": "t"},
        "wilcoxon": {"test": "wilcoxon", "correction": "bh", "effect": "rank_biserial"},
        "permutation": {"test": "permutation", "correction": "max-t", "n_resamples": 199, "margin": 0.05},
        "studentised": {"test": "studentised", "n_resamples": 199, "rope": 0.02, "effect": "hedges_g"},
        "sign": {"test": "sign", "correction": "hochberg", "effect": "cliffs_delta", "no_worse_than": 0.03},
    }
    for name, options in asked.items():
        if options.get("correction") != "max-t":  # which is for pairs that were named beforehand
            out[f"by {name}"] = flat(list(compare_tables(tables(), options=Options(**options)).rows))
        with_base = compare_tables(tables(), baseline="base", options=Options(**options))
        out[f"by {name}, with a baseline"] = flat(list(with_base.rows))
    runs_of = {"a": [tables()["base"], tables()["better"]], "b": [tables()["better"], tables()["better"]]}
    found = compare_tables(runs_of, metrics=["ndcg"], options=Options(runs="seeds"))
    out["runs of other seeds"] = flat(list(found.rows))
    out["seeds"] = flat(seeds(numbers(60).reshape(3, 20) - 0.4, users_df=19.0))
    out["folds"] = flat(folds(numbers(5) - 0.3, test_over_train=0.25, n_users=100))
    scores = numbers(60).reshape(20, 3)
    out["friedman"] = flat(friedman(scores, ["a", "b", "c"]))
    p_values = np.array([0.001, 0.04, 0.03, 0.2, math.nan, 0.01])
    for method in ("none", "bonferroni", "holm", "hochberg", "bh", "by"):
        out[f"adjusted by {method}"] = flat(adjust(p_values, method))
    return out


def effects() -> dict[str, list[float]]:
    out = {}
    d = pair(numbers(70) + 0.1, numbers(70, 0.7))
    clustered = pair(numbers(70) + 0.1, numbers(70, 0.7), clusters=np.arange(70) // 2)
    for name, sample in (("plain", d), ("clustered", clustered)):
        for effect in (d_z, pooled_d, glass_delta, cliffs_delta, rank_biserial):
            out[f"{effect.__name__}, {name}"] = flat(effect(sample, confidence=0.9))
        for kind in ("pooled", "paired"):
            with contextlib.suppress(RecsysError):
                out[f"hedges_g, {kind}, {name}"] = flat(hedges_g(sample, kind=kind))
    out["cliffs_delta, not paired"] = flat(cliffs_delta(d, paired=False))
    for alternative in ("two-sided", "greater", "less"):
        sign = -1.0 if alternative == "less" else 1.0
        out[f"plans, {alternative}"] = [
            *(power(sign * 0.3, n, sd=1.2, alternative=alternative) for n in (2, 3, 10, 100)),
            *(minimal_effect(n, sd=1.2, alternative=alternative) for n in (3, 10, 100)),
            *(float(users_needed(sign * e, sd=1.2, alternative=alternative)) for e in (0.1, 0.5, 3.0)),
        ]
    values = numbers(80)
    covariates = np.stack([values + 0.2 * numbers(80, 0.9), numbers(80, 0.4)], axis=1)
    out["covariates"] = flat(covariate_adjusted(values, covariates, [0.6, 0.5]))
    strata = np.array([*"abca"] * 20)
    out["strata"] = flat(post_stratified(values, strata, {"a": 0.4, "b": 0.35, "c": 0.25}))
    out["saved"] = [variance_saved_share(0.8, 1.0), variance_saved_share(1.0, 1.0)]
    return out


def over_time() -> dict[str, list[float]]:
    out = {}
    quiet = 0.3 + 0.01 * numbers(90)
    moved = np.concatenate([quiet[:40], quiet[40:] + 0.02])
    twice = np.concatenate([moved[:70], moved[70:] - 0.05])
    slow = np.cumsum(numbers(60, 0.8) - 0.5) / 50
    for name, nights in (
        ("quiet", quiet),
        ("moved", moved),
        ("twice", twice),
        ("slow", slow),
        ("few", moved[30:48]),
    ):
        for alpha in (0.01, 0.2):
            out[f"{name}, {alpha}"] = flat(change_points(nights, alpha=alpha))
    for spending in ("obrien-fleming", "pocock"):
        with contextlib.suppress(RecsysError):
            out[f"boundaries, {spending}"] = flat(boundaries([0.25, 0.5, 1.0], alpha=0.05, spending=spending))
    out["msprt"] = [
        number for gap in (-0.5, 0.0, 0.1, 2.0) for number in flat(msprt(gap, 0.04, 0.3, confidence=0.9))
    ]
    seen = numbers(40)
    out["betting"] = [
        *betting_limits(seen, 100, 0.05), *betting_limits(seen[:5], 1000, 0.1),
        *betting_limits(seen, 40, 0.05), *betting_limits(seen, 90, 0.05, weights=0.5 + numbers(40, 0.3)),
    ]  # fmt: skip
    n = 300
    log = {
        "user": np.arange(n) // 2, "arm": np.where(np.arange(n) // 2 % 2, "new", "old"),
        "clicks": (numbers(n) > 0.7).astype(float), "money": np.round(30 * numbers(n, 0.3), 2),
        "before": numbers(n, 0.8),
    }  # fmt: skip
    for name, options in (
        ("plain", {}), ("planned", {"shares": {"old": 0.4, "new": 0.6}}),
        ("adjusted", {"covariate": "before"}), ("sequential", {"sequential": "msprt"}),
    ):  # fmt: skip
        found = ab(log, unit="user", variant="arm", metric=["clicks", "money"], control="old", **options)
        out[f"experiment, {name}"] = flat(list(found.rows) if hasattr(found, "rows") else found)
    return out


def sampled() -> dict[str, list[float]]:
    out = {}
    ranks = 1 + np.floor(100 * numbers(80) ** 3).astype(int)
    for metric in ("hit@10", "ndcg@10", "map", "auc", "mrr"):
        for method in ("uncorrected", "rank", "cls", "bv"):
            found = estimate(ranks, 100, 5000, metric, method=method)
            out[f"{metric} by {method}"] = flat(found)
    found = estimate(ranks, 100, 5000, "ndcg@10", method="bv", replacement=True, gamma=0.1, prior="log")
    out["with replacement"] = flat(found)
    fitted = fit_ranks(ranks, 100, 500, iterations=30)
    out["fitted"] = flat(fitted)[:60]
    out["inclusion"] = flat(inclusion_chances(1.0 + np.arange(12.0), 5))
    for method in ("uncorrected", "cls"):
        out[f"error of {method}"] = flat(expected_error("ndcg@10", 50, 1000, n_cases=200, method=method))
    out["needed"] = [float(negatives_needed("hit@10", 500, tolerance=0.05, n_cases=300))]
    out["winner"] = flat(winner_probability(ranks, np.clip(ranks + 3, 1, 101), 100, 2000, "ndcg@10"))
    return out


KINDS: dict[str, Callable[[], dict[str, list[float]]]] = {
    "jackknives": jackknives,
    "rare values": rare_values,
    "resampled": resampled,
    "paired": paired,
    "comparisons": comparisons,
    "effects": effects,
    "over time": over_time,
    "sampled": sampled,
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_numbers_are_those_that_were_stored(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = KINDS[kind]()
    stored = json.loads(STORED.read_text("utf-8"))[kind]
    assert found.keys() == stored.keys()
    for name, wanted in stored.items():
        assert [float(x) for x in found[name]] == pytest.approx(wanted, rel=1e-7, abs=1e-12, nan_ok=True), (
            name
        )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    everything = {kind: {n: [float(x) for x in v] for n, v in make().items()} for kind, make in KINDS.items()}
    STORED.write_text(json.dumps(everything, indent=0) + "\n", encoding="utf-8")
