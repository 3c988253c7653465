"""Covariates and strata in a comparison, against statsmodels, textbook formulas and plain loops."""

from __future__ import annotations

import json
import math
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from statsmodels.regression.linear_model import OLS

import recsys
from recsys.errors import ColumnError, IdTypeError, InputError, UnknownNameError
from recsys.metrics.attributes import read_table
from recsys.records.arrays import PerCase
from recsys.stats.adjustment import calibrate, post_stratified
from recsys.stats.comparison import compare_tables
from recsys.stats.comparison_table import Options
from recsys.stats.paired_tests import paired_t
from recsys.stats.results import PopulationWarning, SkewWarning, ZeroVarianceWarning
from recsys.stats.runs import seeds

pytestmark = pytest.mark.filterwarnings("ignore::recsys.stats.PopulationWarning")

N = 60


@pytest.fixture
def world():
    """60 users of a table of 5,000: two models' values, two covariates and a stratum."""
    rng = np.random.default_rng(3)
    x = rng.normal(2.0, 1.0, size=(5000, 2))
    band = rng.choice(["low", "mid", "top"], size=5000, p=[0.5, 0.3, 0.2])
    base = rng.random(N)
    gain = 0.1 + x[:N] @ [0.3, -0.2] + 0.2 * (band[:N] == "top") + rng.normal(0, 0.3, N)
    return x, band, base + gain, base


def users_table(**columns):
    return read_table(
        {name: dict(enumerate(np.asarray(c).tolist())) for name, c in columns.items()}, table="users"
    )


def compared(a, b, *, clusters=None, weights=None, **options):
    ids = np.arange(len(a))
    sides = {n: PerCase(ids, {"m": np.asarray(v)}, clusters, weights) for n, v in (("new", a), ("old", b))}
    return compare_tables(sides, baseline="old", options=Options(correction="none", **options))["new", "m"]


def fit(y, *columns):
    """Intercept of a regression and its HC1 error."""
    result = OLS(y, np.column_stack([np.ones(len(y)), *columns])).fit()
    return result.params[0], result.get_robustcov_results("HC1").bse[0], result


def test_known_means_are_a_regression_evaluated_at_them(world) -> None:
    x, _, new, old = world
    row = compared(new, old, covariates=users_table(age=x[:, 0], taste=x[:, 1]))
    value, error, _ = fit(new - old, x[:N] - x.mean(axis=0))
    assert row.difference == pytest.approx(value, abs=1e-10)
    assert row.standard_error == pytest.approx(error, abs=1e-10)
    reach = stats.t.ppf(0.975, N - 3) * error
    assert (row.interval.low, row.interval.high) == pytest.approx((value - reach, value + reach), abs=1e-10)
    assert row.p_value == pytest.approx(2 * stats.t.sf(abs(value / error), N - 3), rel=1e-9)
    plain = compared(new, old)
    assert row.variance_saved == pytest.approx(1 - (error / plain.standard_error) ** 2, abs=1e-10)
    assert (*map(str, row.notes),) == (
        "adjusted for age, taste: the difference among the 5,000 users of the table",
    )
    given = compared(
        new,
        old,
        covariates=users_table(age=x[:N, 0], taste=x[:N, 1]),
        covariate_means={"taste": float(x[:, 1].mean()), "age": float(x[:, 0].mean())},
    )
    assert given.difference == pytest.approx(value, abs=1e-10)
    assert given.standard_error == pytest.approx(error, abs=1e-10)


def test_sides_are_adjusted_alike(world) -> None:
    x, _, new, old = world
    row = compared(new, old, covariates=users_table(age=x[:, 0]), margin=0.05, no_worse_than=0.1, rope=0.02)
    off = x[:N, 0] - x[:, 0].mean()
    assert row.value == pytest.approx(fit(new, off)[0], abs=1e-10)
    assert row.baseline_value == pytest.approx(fit(old, off)[0], abs=1e-10)
    assert row.difference == row.value - row.baseline_value
    assert row.relative == pytest.approx(row.value / row.baseline_value - 1)
    # Fieller's limits are the lifts at which a t-test of value - lift * base just does not reject.
    for lift in (row.relative_interval.low, row.relative_interval.high):
        mean, error, _ = fit(new - (1 + lift) * old, off)
        assert abs(mean / error) == pytest.approx(stats.t.ppf(0.975, N - 2), rel=1e-8)
    mean, error, _ = fit(new - old, off)
    assert row.equivalence.p_above_low == pytest.approx(stats.t.sf((mean + 0.05) / error, N - 2), rel=1e-8)
    assert row.non_inferiority.p_value == pytest.approx(stats.t.sf((mean + 0.1) / error, N - 2), rel=1e-8)
    assert row.bayes.scale == pytest.approx(error, rel=1e-9)
    assert row.bayes.df == N - 2
    # Effect, wins and losses describe the users, so they are not adjusted.
    plain = compared(new, old)
    assert (row.effect, row.wins, row.ties, row.losses) == (
        plain.effect,
        plain.wins,
        plain.ties,
        plain.losses,
    )


def test_same_users_only_reduce_the_variance(world) -> None:
    x, _, new, old = world
    with pytest.warns(PopulationWarning, match="not for users at large"):
        row = compared(new, old, covariates=users_table(age=x[:N, 0], taste=x[:N, 1]))
    plain = compared(new, old)
    _, _, result = fit(new - old, x[:N])
    assert row.difference == pytest.approx(plain.difference, abs=1e-12)
    assert row.standard_error == pytest.approx(math.sqrt(result.ssr / (N - 3) / N), abs=1e-10)
    assert row.variance_saved == pytest.approx(result.rsquared_adj, abs=1e-10)
    assert "covariate_means=" in str(row.notes[0])


def test_strata_are_the_textbook(world) -> None:
    _, band, new, old = world
    gaps, mine = new - old, band[:N]
    row = compared(new, old, strata=users_table(band=band))
    value = variance = 0.0
    for label in ("low", "mid", "top"):
        share, inside = np.mean(band == label), gaps[mine == label]
        value += share * inside.mean()
        variance += share**2 * inside.var(ddof=1) / len(inside)
    assert row.difference == pytest.approx(value, abs=1e-10)
    assert row.standard_error == pytest.approx(math.sqrt(variance), abs=1e-10)
    reach = stats.t.ppf(0.975, N - 3) * math.sqrt(variance)
    assert row.interval.high == pytest.approx(value + reach, abs=1e-10)
    shares = {label: float(np.mean(band == label)) for label in ("low", "mid", "top")}
    given = compared(new, old, strata=users_table(band=mine), stratum_shares=shares)
    assert given.difference == pytest.approx(value, abs=1e-10)
    alone = post_stratified(gaps, mine, shares)
    assert alone.estimate.standard_error == pytest.approx(row.standard_error, abs=1e-12)
    assert alone.variance_saved == pytest.approx(row.variance_saved, abs=1e-10)

    kept = compared(new, old, strata=users_table(band=mine))
    within = sum(len(g) * g.var(ddof=1) for g in (gaps[mine == label] for label in ("low", "mid", "top")))
    assert kept.difference == pytest.approx(gaps.mean(), abs=1e-12)
    assert kept.standard_error == pytest.approx(math.sqrt(within) / N, abs=1e-10)
    assert "not for users at large" in str(kept.notes[0])


def test_both_are_one_regression(world) -> None:
    x, band, new, old = world
    row = compared(new, old, covariates=users_table(age=x[:, 0]), strata=users_table(band=band))
    dummies = [(band[:N] == label) - np.mean(band == label) for label in ("mid", "top")]
    value, error, _ = fit(new - old, x[:N, 0] - x[:, 0].mean(), *dummies)
    assert row.difference == pytest.approx(value, abs=1e-10)
    assert row.standard_error == pytest.approx(error, abs=1e-10)
    # Strata known, covariates only of these users: they stay as they are within each stratum.
    half = compared(new, old, covariates=users_table(age=x[:N, 0]), strata=users_table(band=band))
    alone = compared(new, old, strata=users_table(band=band))
    assert half.difference == pytest.approx(alone.difference, abs=1e-12)
    assert half.variance_saved > alone.variance_saved


def test_several_cases_of_a_user_count_as_one_unit() -> None:
    rng = np.random.default_rng(5)
    sizes = rng.integers(1, 5, size=200)
    user = np.repeat(np.arange(200), sizes)
    x = rng.normal(size=4000)
    new = 0.5 * x[user] + np.repeat(rng.normal(size=200), sizes) + rng.normal(size=len(user))
    old = rng.normal(size=len(user))
    weights = rng.uniform(0.5, 2.0, size=len(user))
    for share in (None, weights):
        row = compared(new, old, clusters=user, weights=share, covariates=users_table(age=x))
        w = np.ones(len(user)) if share is None else share
        totals, amounts = np.zeros(200), np.zeros(200)
        for u, d, one in zip(user, new - old, w, strict=True):
            totals[u] += one * d
            amounts[u] += one
        ratio = totals.sum() / amounts.sum()
        value, error, _ = fit(ratio + (totals - ratio * amounts) / amounts.mean(), x[:200] - x.mean())
        assert row.difference == pytest.approx(value, abs=1e-10)
        assert row.standard_error == pytest.approx(error, abs=1e-10)
        assert row.n_units == 200
        assert row.variance_saved > 0.03


@pytest.mark.parametrize("test", ["t", "studentised", "bca"])
def test_every_test_of_a_mean_uses_the_same_values(world, test) -> None:
    x, _, new, old = world
    options = {"test": test, "n_resamples": 999}
    row = compared(new, old, covariates=users_table(age=x[:, 0]), **options)
    result = calibrate(x[:N, :1], x[:, :1].mean(axis=0))
    values = result.values(np.stack([new, old]))
    same = compared(*values, **options)
    assert row.difference == pytest.approx(same.difference, abs=1e-12)
    assert row.standard_error == pytest.approx(same.standard_error, abs=1e-12)
    assert row.test == f"{same.test}, adjusted"
    if test != "t":
        assert row.p_value == same.p_value
    if test in ("studentised", "bca"):
        assert (row.interval.low, row.interval.high) == pytest.approx(
            (same.interval.low, same.interval.high), abs=1e-12
        )
    # The hypothesis of no difference in the sides' own values is what t tests, too.
    assert row.statistic == pytest.approx(paired_t(values[0] - values[1]).statistic)


def test_adjusted_values_are_tested_by_t_where_others_are_by_sign_flips(world) -> None:
    x, _, new, old = world
    by_default, by_t = (
        compared(new, old, covariates=users_table(age=x[:, 0]), **options) for options in ({}, {"test": "t"})
    )
    assert by_default.test == by_t.test == "paired t, adjusted"
    assert (by_default.p_value, by_default.interval) == (by_t.p_value, by_t.interval)


def test_max_t_draws_adjusted_values(world) -> None:
    x, _, new, old = world
    ids = np.arange(N)
    tables = {name: PerCase(ids, {"m": v, "half": v / 2}) for name, v in (("new", new), ("old", old))}
    options = Options(correction="max-t", n_resamples=999, covariates=users_table(age=x[:, 0]))
    rows = compare_tables(tables, baseline="old", options=options).rows
    # A repeated comparison does not make the family larger under max-T.
    assert rows[0].adjusted_p == rows[1].adjusted_p
    assert rows[0].adjusted_p == pytest.approx(rows[0].p_value, abs=0.02)


@pytest.mark.parametrize("clustered", [False, True])
def test_seeds_are_adjusted_run_by_run(world, clustered) -> None:
    x, _, new, old = world
    rng = np.random.default_rng(1)
    user = np.arange(N) // 2 if clustered else np.arange(N)
    who = user if clustered else None
    first = [new + rng.normal(0.05 * r, 0.1, N) for r in range(4)]
    second = [old + rng.normal(0, 0.1, N) for _ in range(4)]
    first[2][5] = np.nan  # a case that one run lacks is in none; its user, if there is more of them, stays
    runs = {
        name: [PerCase(np.arange(N), {"m": v}, who) for v in values]
        for name, values in (("new", first), ("old", second))
    }
    options = Options(correction="none", covariates=users_table(age=x[:, 0]), margin=0.1)
    row = compare_tables(runs, baseline="old", options=options)["new", "m"]
    kept = np.arange(N) != 5
    gaps = (np.array(first) - np.array(second))[:, kept]
    here = np.unique(user[kept])
    sizes = np.array([np.sum(user[kept] == u) for u in here])
    totals = np.array([[g[user[kept] == u].sum() for u in here] for g in gaps])
    ratio = gaps.mean(axis=1, keepdims=True)
    values = ratio + (totals - ratio * sizes) / sizes.mean()
    known = calibrate(x[here, :1], x[:, :1].mean(axis=0))
    result = seeds(known.values(values))
    plain = compare_tables(runs, baseline="old")["new", "m"]
    assert row.difference == pytest.approx(result.difference, abs=1e-12)
    assert row.standard_error == pytest.approx(result.standard_error, abs=1e-12)
    assert row.value - row.baseline_value == pytest.approx(row.difference, abs=1e-12)
    assert row.interval.high == pytest.approx(result.interval.high, abs=1e-12)
    assert row.equivalence.interval.high < row.interval.high
    assert row.variance_saved == pytest.approx(1 - (result.standard_error / plain.standard_error) ** 2)
    assert row.test == "users and runs crossed, adjusted"
    assert "adjusted for age: the difference among the 5,000 users of the table" in map(str, row.notes)


def test_cases_without_a_value_are_left_out_of_the_row_only(world) -> None:
    x, _, new, old = world
    some = new.copy()
    some[:10] = np.nan
    tables = {
        "new": PerCase(np.arange(N), {"all": new, "some": some}),
        "old": PerCase(np.arange(N), {"all": old, "some": old}),
    }
    options = Options(covariates=users_table(age=x[:, 0]))
    result = compare_tables(tables, baseline="old", options=options)
    off = x[:N, 0] - x[:, 0].mean()
    assert result["new", "all"].difference == pytest.approx(fit(new - old, off)[0], abs=1e-10)
    assert result["new", "some"].difference == pytest.approx(fit((new - old)[10:], off[10:])[0], abs=1e-10)


def test_missing_values_count_as_average_and_are_noted(world) -> None:
    x, band, new, old = world
    holes = {u: v for u, v in enumerate(x[:, 0].tolist()) if u not in (3, 7)}
    holes[11] = None
    row = compared(new, old, covariates=read_table({"age": holes}, table="users"))
    assert "3 of 60 users have no age and count as average in it" in map(str, row.notes)
    known = np.array([v for v in holes.values() if v is not None]).mean()
    filled = np.array([known if holes.get(u) is None else holes[u] for u in range(N)])
    assert row.difference == pytest.approx(fit(new - old, filled - known)[0], abs=1e-10)

    labels = {u: b for u, b in enumerate(band[:N].tolist()) if u not in (3, 7)}
    row = compared(new, old, strata=read_table({"band": labels}, table="users"))
    assert "2 of 60 users are in no stratum and form one" in map(str, row.notes)
    more = {u: b for u, b in enumerate(band.tolist()) if u not in (3, 7)}
    with pytest.raises(InputError, match=r"2 of 60 users evaluated are not in strata \(first: 3\)"):
        compared(new, old, strata=read_table({"band": more}, table="users"))


def test_degenerate_covariates(world) -> None:
    x, _, new, old = world
    plain = compared(new, old)
    flat = compared(new, old, covariates=users_table(one=np.ones(5000)))
    assert flat.difference == pytest.approx(plain.difference, abs=1e-12)
    assert flat.standard_error == pytest.approx(plain.standard_error, abs=1e-12)
    assert flat.variance_saved == pytest.approx(0, abs=1e-12)
    assert any("do not vary" in str(note) for note in flat.notes)
    single = compared(new, old, covariates=users_table(age=x[:, 0]))
    twice = compared(new, old, covariates=users_table(age=x[:, 0], months=12 * x[:, 0] + 7))
    assert twice.difference == pytest.approx(single.difference, abs=1e-10)
    assert twice.standard_error == pytest.approx(single.standard_error, abs=1e-10)
    assert any(str(note).startswith("1 of 2 covariates (age, months)") for note in twice.notes)
    # Neither scale nor offset matters, up to rounding.
    far = compared(new, old, covariates=users_table(age=1e6 + 1e-3 * x[:, 0]))
    assert far.difference == pytest.approx(single.difference, rel=1e-6)
    with pytest.warns(ZeroVarianceWarning):
        same = compared(old, old, covariates=users_table(age=x[:, 0]))
    assert same.verdict.kind == "identical"
    with pytest.warns(ZeroVarianceWarning):
        explained = compared(old + 1 + x[:N, 0], old, covariates=users_table(age=x[:, 0]))
    assert explained.difference == pytest.approx(1 + x[:, 0].mean(), abs=1e-12)
    assert explained.variance_saved == pytest.approx(1, abs=1e-12)


def test_refusals(world) -> None:
    x, band, new, old = world
    age = users_table(age=x[:, 0])
    for test in ("wilcoxon", "sign"):
        with pytest.raises(InputError, match="does not look at the mean"):
            compared(new, old, covariates=age, test=test)
    with pytest.raises(InputError, match="without strata"):
        Options(stratum_shares={"a": 1.0})
    with pytest.raises(InputError, match="'59' has fewer than 2 users"):
        compared(new, old, strata=users_table(which=np.where(np.arange(N) == 59, 59, 0)))
    with pytest.raises(InputError, match="do not match"):
        compared(new, old, strata=users_table(band=np.append(band[:N], ["new"])))
    with pytest.raises(InputError, match="positive and add up to 1"):
        compared(new, old, strata=users_table(band=band), stratum_shares={"low": 0.5, "mid": 0.2, "top": 0.2})
    with pytest.raises(ColumnError, match="strata='band'"):
        compared(new, old, covariates=users_table(band=band))
    with pytest.raises(InputError, match="infinite"):
        compared(new, old, covariates=users_table(age=np.append(np.inf, x[1:, 0])))
    with pytest.raises(InputError, match="no user evaluated has a value of 'age'"):
        compared(new, old, covariates=users_table(age=[None] * N + [1.0]))
    with pytest.raises(InputError, match="has none of the 60 users"):
        compared(new, old, covariates=read_table({100: 1.0, 101: 2.0}, table="users"))
    with pytest.raises(IdTypeError, match="none of them would match"):
        compared(new, old, covariates=read_table({"a": 1.0}, table="users"))
    with pytest.raises(InputError, match="one mean for each"):
        compared(new, old, covariates=age, covariate_means={"years": 1.0})
    with pytest.raises(InputError, match="finite"):
        compared(new, old, covariates=age, covariate_means={"age": math.nan})
    for means in (0.5, {"age": "young"}):
        with pytest.raises(InputError, match="covariate_means came as"):
            compared(new, old, covariates=age, covariate_means=means)
    with pytest.raises(InputError, match="stratum_shares came as"):
        compared(new, old, strata=age, stratum_shares=[0.5, 0.5])
    with pytest.raises(InputError, match="too few"):
        compared(new[:3], old[:3], covariates=age)
    parts = [np.arange(30), np.arange(30, 60)]
    runs = {n: [PerCase(p, {"m": v[p]}) for p in parts] for n, v in (("a", new), ("b", old))}
    with pytest.raises(InputError, match="folds are compared by their means"):
        compare_tables(runs, options=Options(covariates=age))


def test_notes_on_the_population(world) -> None:
    x, _, new, old = world
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compared(new, old, covariates=users_table(age=x[:, 0]))
    with pytest.warns(PopulationWarning, match="among the 240 users of the table; for users beyond it 75%"):
        compared(new, old, covariates=users_table(age=x[:240, 0]))
    picked = np.argsort(-x[:, 0])
    # So far from the population the line is carried by a few users, who decide the adjusted difference.
    far = pytest.warns(
        PopulationWarning, match=r"not a random sample of the population \(age .* against 2.009"
    )
    with pytest.warns(SkewWarning, match="heavy tails"), far:
        row = compared(new, old, covariates=users_table(age=x[picked, 0]))
    assert any("straight line" in str(note) for note in row.notes)


@pytest.fixture
def results():
    rng = np.random.default_rng(0)
    truth = {u: [u] for u in range(400)}
    habit = rng.exponential(size=4000)
    lists = {
        name: {u: [u if rng.random() < 0.2 + gain * habit[u] else -1, -2] for u in truth}
        for name, gain in (("old", 0.0), ("new", 0.2))
    }
    metrics = ["hit@1", "precision(average=pooled)@2", "coverage@1"]
    evaluations = {name: recsys.evaluate(one, truth, metrics) for name, one in lists.items()}
    users = pd.DataFrame({"user": np.arange(4000), "habit": habit, "land": rng.choice(["a", "b"], 4000)})
    return evaluations, users


def test_compare_takes_any_table(results) -> None:
    evaluations, users = results
    habit = users[["user", "habit"]]
    forms = (
        habit,
        habit.sample(frac=1.0, random_state=0),
        pl.from_pandas(habit),
        users.set_index("user")["habit"],
        {"habit": dict(zip(users.user, users.habit, strict=True))},
        dict(zip(users.user, users.habit, strict=True)),
    )
    rows = [recsys.compare(evaluations, "old", "hit@1", covariates=one)["new", "hit@1"] for one in forms]
    assert len({(row.difference, row.standard_error, row.verdict) for row in rows}) == 1
    assert rows[0].variance_saved > 0.02
    named = recsys.compare(evaluations, "old", "hit@1", covariates=users, strata="land")["new", "hit@1"]
    apart = recsys.compare(evaluations, "old", "hit@1", covariates=habit, strata=users[["user", "land"]])[0]
    assert (named.difference, named.standard_error) == (apart.difference, apart.standard_error)
    with pytest.raises(UnknownNameError, match="unknown stratum"):
        recsys.compare(evaluations, "old", covariates=habit, strata="land")
    crossed = recsys.compare(
        evaluations, "old", "hit@1", strata=users.assign(half=users.user % 2)[["user", "land", "half"]]
    )
    assert str(crossed[0].notes[0]).startswith("stratified by land, half")


def test_compare_shows_what_was_saved(results) -> None:
    evaluations, users = results
    result = recsys.compare(evaluations, "old", covariates=users, strata="land")
    frame = result.to_frame()
    assert frame["variance_saved"].notna().tolist() == [True, True, False]
    assert frame["notes"].str.contains("the difference among the 4,000 users of the table").tolist() == [
        True,
        True,
        False,
    ]
    assert frame["notes"].iloc[2].endswith("coverage@1: not adjusted, it is not a mean over users")
    rows = json.loads(result.to_json())["rows"]
    assert rows[0]["variance_saved"] == result[0].variance_saved
    assert rows[2]["variance_saved"] is None
    assert "variance saved" in str(result)
    assert str(result).count("adjusted for habit: the difference among the 4,000 users of the table") == 1
    plain = recsys.compare(evaluations, "old")
    assert "variance_saved" not in plain.to_frame()
    assert math.isnan(plain[0].variance_saved)
    again = result.pairs(correction="holm")
    assert again[0].difference == result[0].difference
    # A number that is made of sums is adjusted through its values per user.
    pooled = result["new", "precision(average=pooled)@2"]
    assert pooled.difference == pytest.approx(result[0].difference / 2, abs=1e-12)
    assert pooled.variance_saved == pytest.approx(result[0].variance_saved, abs=1e-9)
