"""Adjusted comparisons on simulated worlds, seeded: what they cover, what they save, and what they do not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from recsys.records.arrays import Ids, PerCase, Table
from recsys.stats.adjustment import calibrate
from recsys.stats.bootstrap import Resampler, replicate, unit_keys
from recsys.stats.comparison import compare_tables
from recsys.stats.comparison_table import Options
from worlds.statistics import ALPHA, alone, flip_p, t_p, upper

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::recsys.stats.StatisticsWarning")]

N, WORLDS = 1000, 4000
# Coverage of 95 % measured over 4,000 worlds: three standard errors are one point.
HOLDS = (0.94, 0.96)


def row_of(gaps, **choices):
    """The adjusted row of two models that differ by these gaps."""
    users = np.arange(len(gaps))
    tables = {"new": PerCase(users, {"m": gaps}), "old": PerCase(users, {"m": np.zeros(len(gaps))})}
    return compare_tables(tables, baseline="old", options=Options(correction="none", **choices))["new", "m"]


def table(ids, column) -> Table:
    return Table(Ids(np.asarray(ids)), {"x": column})


def gap_at(x):
    """How the difference depends on the covariate: bent, so that a straight line is not the truth."""
    return 0.3 * x + 0.05 * x**2 - 0.5


def noise(rng, x):
    """Skewed, and larger where the covariate is."""
    return (rng.exponential(size=x.shape) - 1.0) * (0.3 + 0.2 * x)


def test_known_mean_covers_and_saves_as_reported() -> None:
    """x is exponential with mean 1: E gap = 0.3 + 0.05 * 2 - 0.5 = -0.1."""
    rng = np.random.default_rng(1)
    covered, saved, estimates = 0, [], []
    for _ in range(WORLDS):
        x = rng.exponential(size=N)
        gaps = gap_at(x) + noise(rng, x)
        row = row_of(gaps, covariates=table(np.arange(N), x), covariate_means={"x": 1.0})
        covered += -0.1 in row.interval
        saved.append(row.variance_saved)
        estimates.append((gaps.mean(), row.difference))
    assert HOLDS[0] <= covered / WORLDS <= HOLDS[1]
    plain, adjusted = np.var(np.array(estimates), axis=0)
    # Squared correlation in the population; E x^k = k! gives Cov(gap, x) = 0.3 + 0.05 * 4 and the variance.
    explained = 0.5**2 / (0.09 + 0.03 * 4 + 0.0025 * 20 + (0.09 + 0.12 + 0.04 * 2))
    assert np.mean(saved) == pytest.approx(explained, abs=0.01)
    # The ratio of two variances over 4,000 correlated pairs is known to about 3 %.
    assert 1 - adjusted / plain == pytest.approx(explained, abs=0.04)


def test_a_table_of_more_users_covers_its_own_mean() -> None:
    """20,000 users stay the same, 1,000 of them are evaluated; the target is the mean over the table."""
    rng = np.random.default_rng(2)
    x = rng.lognormal(0.0, 0.6, size=20_000)
    target = gap_at(x).mean()
    covered = 0
    for _ in range(WORLDS):
        who = rng.choice(20_000, size=N, replace=False)
        order = np.concatenate([who, np.setdiff1d(np.arange(20_000), who, assume_unique=True)])
        gaps = gap_at(x[who]) + noise(rng, x[who])
        covered += target in row_of(gaps, covariates=table(np.arange(20_000), x[order])).interval
    assert HOLDS[0] <= covered / WORLDS <= HOLDS[1]


def test_what_holds_beyond_the_table() -> None:
    """With a table of twice the users evaluated, half of the saving holds beyond it, as the note says."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(WORLDS, 2 * N))
    gaps = 0.8 * x[:, :N] + 0.6 * rng.normal(size=(WORLDS, N))
    results = [row_of(g, covariates=table(np.arange(2 * N), one)) for g, one in zip(gaps, x, strict=True)]
    assert "for users beyond it 50% of that saving holds" in str(results[0].notes[-1])
    saved = 1 - np.var([row.difference for row in results]) / np.var(gaps.mean(axis=1))
    assert np.mean([row.variance_saved for row in results]) == pytest.approx(0.64, abs=0.005)
    assert saved == pytest.approx(0.64 / 2, abs=0.05)


def test_same_users_cover_what_is_conditional_and_nothing_else() -> None:
    """The interval covers new outcomes of the same users, but not other users, as the warning says."""
    rng = np.random.default_rng(4)
    fixed = rng.normal(1.0, 1.0, size=N)
    here = elsewhere = 0
    for _ in range(WORLDS):
        gaps = 0.8 * fixed + 0.6 * (rng.exponential(size=N) - 1)
        row = row_of(gaps, covariates=table(np.arange(N), fixed))
        here += 0.8 * fixed.mean() in row.interval
        x = rng.normal(1.0, 1.0, size=N)
        gaps = 0.8 * x + 0.6 * (rng.exponential(size=N) - 1)
        elsewhere += 0.8 in row_of(gaps, covariates=table(np.arange(N), x)).interval
    assert HOLDS[0] <= here / WORLDS <= HOLDS[1]
    # The error is 0.6 of what it would have to be: 2 * Phi(0.6 * 1.96) - 1.
    assert elsewhere / WORLDS == pytest.approx(2 * stats.norm.cdf(0.6 * 1.96) - 1, abs=0.025)


def test_same_users_are_conservative_for_a_curve() -> None:
    rng = np.random.default_rng(5)
    x = rng.exponential(size=N)
    target = gap_at(x).mean()
    hits = sum(
        target in row_of(gap_at(x) + noise(rng, x), covariates=table(np.arange(N), x)).interval
        for _ in range(WORLDS)
    )
    assert hits / WORLDS >= HOLDS[0]


def test_strata_cover_with_known_shares_and_with_their_own() -> None:
    rng = np.random.default_rng(6)
    means, sizes = np.array([-0.4, 0.1, 1.0]), np.array([0.5, 0.3, 0.2])
    known, own, saved, estimates = 0, 0, [], []
    fixed = rng.choice(3, size=N, p=sizes)
    for _ in range(WORLDS):
        which = rng.choice(3, size=N, p=sizes)
        gaps = means[which] + (0.2 + 0.3 * which) * (rng.exponential(size=N) - 1)
        shares = dict(enumerate(sizes))
        row = row_of(gaps, strata=table(np.arange(N), which), stratum_shares=shares)
        known += float(means @ sizes) in row.interval
        saved.append(row.variance_saved)
        estimates.append((gaps.mean(), row.difference))
        gaps = means[fixed] + (0.2 + 0.3 * fixed) * (rng.exponential(size=N) - 1)
        own += means[fixed].mean() in row_of(gaps, strata=table(np.arange(N), fixed)).interval
    assert HOLDS[0] <= known / WORLDS <= HOLDS[1]
    assert HOLDS[0] <= own / WORLDS <= HOLDS[1]
    between = sizes @ means**2 - (sizes @ means) ** 2
    explained = between / (between + sizes @ (0.2 + 0.3 * np.arange(3)) ** 2)
    assert np.mean(saved) == pytest.approx(explained, abs=0.01)
    plain, adjusted = np.var(np.array(estimates), axis=0)
    assert 1 - adjusted / plain == pytest.approx(explained, abs=0.04)


def test_users_with_several_cases_are_covered() -> None:
    """A user's activity is how many cases there are: the mean over cases is a ratio, and still adjusted."""
    rng = np.random.default_rng(7)
    covered = 0
    for _ in range(WORLDS):
        sizes = rng.integers(1, 6, size=N)
        user = np.repeat(np.arange(N), sizes)
        gaps = 0.2 * sizes[user] + rng.normal(size=N)[user] + rng.normal(size=len(user))
        tables = {
            "new": PerCase(np.arange(len(user)), {"m": gaps}, user),
            "old": PerCase(np.arange(len(user)), {"m": np.zeros(len(user))}, user),
        }
        options = Options(covariates=table(np.arange(N), sizes.astype(float)), covariate_means={"x": 3.0})
        row = compare_tables(tables, baseline="old", options=options)["new", "m"]
        # Cases are a size-biased sample of users: E[s * 0.2 s] / E[s] = 0.2 * 11 / 3.
        covered += 0.2 * 11 / 3 in row.interval
    assert HOLDS[0] <= covered / WORLDS <= HOLDS[1]


def test_null_holds_for_every_test() -> None:
    """No difference on average over the population, although it depends on the covariate."""
    rng = np.random.default_rng(8)
    worlds, size, rejected = 2000, 500, {}
    for start in range(0, worlds, size):
        x = rng.exponential(size=(size, N))
        gaps = gap_at(x) + 0.1 + noise(rng, x)
        values = np.stack(
            [
                calibrate(one[:, None], np.ones(1)).values(g[None, :])[0]
                for one, g in zip(x, gaps, strict=True)
            ]
        )
        replicates = replicate(alone(values), Resampler(unit_keys(np.arange(N)), 1999, seed=start))
        results = {
            "t": t_p(values),
            "sign-flip": flip_p(values, start),
            "studentised": replicates.p_values("studentised"),
            "bca": replicates.p_values("bca"),
        }
        for name, p in results.items():
            rejected[name] = rejected.get(name, 0) + int(np.sum(p <= ALPHA))
    rates = {name: count / worlds for name, count in rejected.items()}
    assert max(rates.values()) <= upper(ALPHA, worlds), rates
    assert min(rates.values()) >= 0.03, rates
