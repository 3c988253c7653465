"""Error rates and coverage on simulated worlds, seeded: what the methods promise, measured."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import stats

from recsys.records.arrays import PerCase
from recsys.stats.bootstrap import Resampler, Units, groups_of, replicate, unit_keys
from recsys.stats.comparison import compare_tables
from recsys.stats.corrections import max_t
from recsys.stats.effects import cliffs_delta, d_z, glass_delta, pooled_d, rank_biserial
from recsys.stats.group_jackknife import Jackknife, Plan, coverage_jackknife, jackknife, plan_groups
from recsys.stats.intervals import delta_values, mean_interval
from recsys.stats.online_experiments import _cuped_samples, _Group, _lift
from recsys.stats.paired_tests import sign_flip
from recsys.stats.pairing import pair
from recsys.stats.rank_tests import sign_test, wilcoxon
from recsys.stats.results import RankTestWarning, SkewWarning, StatisticsWarning, t_interval
from recsys.stats.sequential import ConfidenceSequence, Watch, boundaries, msprt
from worlds.statistics import ALPHA, alone, flip_p, t_p, upper

pytestmark = pytest.mark.slow


def covers(share: float, n: int, target: tuple[float, float] = (0.945, 0.955)) -> bool:
    """Whether n intervals of 95 % cover the truth as often as targeted, up to three standard errors."""
    low, high = target
    return low - 3 * np.sqrt(low * (1 - low) / n) <= share <= upper(high, n)


def batches(world, n_worlds: int, seed: int, size: int = 500):
    """Worlds in batches, each with its own draws: shared draws would make their errors dependent."""
    rng = np.random.default_rng(seed)
    for start in range(0, n_worlds, size):
        yield start, np.stack([world(rng) for _ in range(size)])


def swapped(rng) -> np.ndarray:
    """Null A: discrete, zero-inflated, tied; the labels of the two models are swapped user by user."""
    grades = np.array([0, 0, 0, 0, 0, 0.3, 0.43, 0.5, 0.63, 1.0])
    a = rng.choice(grades, size=1000)
    b = np.where(rng.random(1000) < 0.6, a, rng.choice(grades, size=1000))
    return (a - b) * rng.choice([-1.0, 1.0], size=1000)


def skewed(rng, n: int = 1000) -> np.ndarray:
    """Null B: one user in twenty gains a lot, the others lose a little; the mean difference is zero."""
    lucky = rng.random(n) < 0.05
    return np.where(lucky, 1.0, -1 / 19) * rng.uniform(0.5, 1.5, size=n)


def test_null_a_every_test_holds() -> None:
    worlds = 2000
    rejected: dict[str, int] = {}
    for start, rows in batches(swapped, worlds, seed=1):
        replicates = replicate(alone(rows), Resampler(unit_keys(np.arange(1000)), 1999, seed=start))
        results = {
            "t": t_p(rows),
            "sign-flip": flip_p(rows, start),
            "studentised": replicates.p_values("studentised"),
            "bca": replicates.p_values("bca"),
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", StatisticsWarning)
            results["wilcoxon"] = np.array([wilcoxon(row).p_value for row in rows])
            results["sign"] = np.array([sign_test(row).p_value for row in rows])
        for name, p in results.items():
            rejected[name] = rejected.get(name, 0) + int(np.sum(p <= ALPHA))
    rates = {name: count / worlds for name, count in rejected.items()}
    assert max(rates.values()) <= upper(ALPHA, worlds), rates
    assert min(rates.values()) >= 0.03, rates


def test_null_b_means_hold_and_ranks_fail() -> None:
    worlds = 4000
    rejected: dict[str, int] = {}
    for start, rows in batches(skewed, worlds, seed=2, size=1000):
        replicates = replicate(alone(rows), Resampler(unit_keys(np.arange(1000)), 1999, seed=start))
        results = {
            "t": t_p(rows),
            "studentised": replicates.p_values("studentised"),
            "studentised less": replicates.p_values("studentised", "less"),
            "studentised greater": replicates.p_values("studentised", "greater"),
            "sign-flip": flip_p(rows, start),
            "sign-flip less": flip_p(rows, start, "less"),
        }
        for name, p in results.items():
            rejected[name] = rejected.get(name, 0) + int(np.sum(p <= ALPHA))
    rates = {name: count / worlds for name, count in rejected.items()}
    limit = upper(ALPHA, worlds)
    for name in ("t", "studentised", "studentised less", "studentised greater"):
        assert rates[name] <= limit, rates
    assert rates["sign-flip less"] > limit, rates
    # Two-sided the errors of the tails cancel: sign-flips then do as the t-test does.
    assert abs(rates["sign-flip"] - rates["t"]) < 0.005, rates


def test_null_b_cautions_come_with_the_failures() -> None:
    rng = np.random.default_rng(3)
    rows = [skewed(rng) for _ in range(50)]
    with pytest.warns(RankTestWarning):
        assert np.mean([wilcoxon(row).p_value <= ALPHA for row in rows]) > 0.9
    with pytest.warns(RankTestWarning):
        assert np.mean([sign_test(row).p_value <= ALPHA for row in rows]) > 0.9
    warned = 0
    for row in rows:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            sign_flip(row, alternative="less")
        warned += any(issubclass(w.category, SkewWarning) for w in caught)
    assert warned == 50


def ndcg_like(rng, n: int = 1000) -> np.ndarray:
    return rng.choice([0, 0, 0, 0, 0, 0, 0.3, 0.43, 0.63, 1.0], size=n)


def test_intervals_of_means_cover() -> None:
    worlds, truth = 4000, (0.3 + 0.43 + 0.63 + 1) / 10
    inside: dict[str, int] = {}
    for start, rows in batches(ndcg_like, worlds, seed=4, size=1000):
        units = alone(rows)
        replicates = replicate(units, Resampler(units.keys, 1999, seed=start))
        limits = {name: replicates.limits(name, 0.95) for name in ("studentised", "bca", "percentile")}
        for name, df in (("t", 999.0), ("normal", np.inf)):
            pairs = zip(units.estimates(), units.standard_errors(), strict=True)
            results = [t_interval(float(m), float(e), df, 0.95) for m, e in pairs]
            limits[name] = np.array([(one.low, one.high) for one in results])
        for name, ends in limits.items():
            hits = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
            inside[name] = inside.get(name, 0) + int(hits.sum())
    shares = {name: count / worlds for name, count in inside.items()}
    assert all(covers(share, worlds) for share in shares.values()), shares


def test_intervals_of_ratios_and_clusters_cover() -> None:
    """Users with several cases, whose values depend on how many they have: a mean over cases is a ratio."""
    rng = np.random.default_rng(5)
    worlds, inside = 3000, {"t": 0, "studentised": 0, "bca": 0}
    truth = 0.5 + 0.05 * (1 + 4 + 9 + 16) / (1 + 2 + 3 + 4)
    for start in range(0, worlds, 1000):
        sizes = rng.integers(1, 5, size=(1000, 1000)).astype(float)
        level = 0.5 + 0.05 * sizes + rng.exponential(0.3, size=sizes.shape) - 0.3
        totals = sizes * level + np.sqrt(sizes) * rng.normal(0, 0.2, size=sizes.shape)
        units = Units(unit_keys(np.arange(1000)), totals, sizes)
        replicates = replicate(units, Resampler(units.keys, 1499, seed=start))
        reach = stats.t.ppf(0.975, 999) * units.standard_errors()
        limits = {
            "t": np.stack([units.estimates() - reach, units.estimates() + reach], axis=1),
            "studentised": replicates.limits("studentised", 0.95),
            "bca": replicates.limits("bca", 0.95),
        }
        for name, ends in limits.items():
            inside[name] += int(((ends[:, 0] <= truth) & (truth <= ends[:, 1])).sum())
    shares = {name: count / worlds for name, count in inside.items()}
    assert all(covers(share, worlds) for share in shares.values()), shares


def test_intervals_of_effects_cover() -> None:
    rng = np.random.default_rng(6)

    def sides(n):
        a = ndcg_like(rng, n)
        b = np.where(rng.random(n) < 0.5, a, ndcg_like(rng, n)) * (rng.random(n) < 0.8)
        return pair(a, b)

    effects = [d_z, pooled_d, glass_delta, cliffs_delta, rank_biserial]
    huge = sides(2_000_000)
    truths = [effect(huge).value for effect in effects]
    inside = np.zeros(len(effects))
    worlds = 4000
    for _ in range(worlds):
        d = sides(1000)
        inside += [truth in effect(d).interval for effect, truth in zip(effects, truths, strict=True)]
    assert all(covers(share, worlds) for share in inside / worlds), inside / worlds


def test_intervals_of_lifts_cover() -> None:
    """The lift is a ratio of two means over the same users."""
    rng = np.random.default_rng(16)
    worlds, inside = 3000, 0
    for _ in range(worlds):
        base = ndcg_like(rng)
        model = np.where(rng.random(1000) < 0.6, base, ndcg_like(rng)) + 0.05 * (rng.random(1000) < 0.5)
        tables = {
            "base": PerCase(np.arange(1000), {"m": base}),
            "model": PerCase(np.arange(1000), {"m": model}),
        }
        row = compare_tables(tables, baseline="base").rows[0]
        inside += 0.025 / 0.236 in row.relative_interval
    assert covers(inside / worlds, worlds), inside / worlds


def test_intervals_of_experiments_cover() -> None:
    """Two groups of users: revenue with a heavy tail, and a ratio whose denominators vary."""
    rng = np.random.default_rng(26)
    worlds, inside = 3000, {"mean": 0, "lift": 0, "ratio": 0}
    ones = np.ones(1500)
    for _ in range(worlds):
        a, b = rng.exponential(2.0, 1500), rng.exponential(2.2, 1500)
        pair_of = _Group(b, ones, None), _Group(a, ones, None)
        row = _lift("m", "mean", pair_of, _cuped_samples(pair_of)[0], 0.95)
        inside["mean"] += 0.2 in row.interval
        inside["lift"] += 0.1 in row.lift_interval
        views = [rng.integers(1, 9, 1500) for _ in range(2)]
        clicks = [rng.binomial(v, p) for v, p in zip(views, (0.22, 0.2), strict=True)]
        pair_of = tuple(
            _Group(c.astype(float), v.astype(float), None) for c, v in zip(clicks, views, strict=True)
        )
        row = _lift("m", "ratio", pair_of, _cuped_samples(pair_of)[0], 0.95)
        inside["ratio"] += 0.02 in row.interval
    shares = {name: count / worlds for name, count in inside.items()}
    assert all(covers(share, worlds) for share in shares.values()), shares


def test_intervals_of_derived_numbers_cover() -> None:
    """F1 of mean precision and mean recall by the delta method, a geometric mean by groups of users."""
    rng = np.random.default_rng(36)
    worlds, inside = 3000, {"f1": 0, "geometric": 0}
    groups = groups_of(np.arange(1000))
    sizes = np.bincount(groups, minlength=64)
    truth = {"f1": 2 * 0.2 * 0.4 / 0.6, "geometric": np.exp(-1.0)}
    for _ in range(worlds):
        both = rng.random(1000) ** 1.5
        columns = 0.5 * both, both + rng.normal(0, 0.2, 1000)
        values = delta_values(*columns, lambda p, r: 2 * p * r / (p + r))
        inside["f1"] += truth["f1"] in mean_interval(values).interval
        logs = np.log(rng.random(1000))
        sums = np.bincount(groups, weights=logs, minlength=64)

        def without(gone, sums=sums):
            return np.exp((sums.sum() - sums[gone].sum()) / (1000 - sizes[gone].sum()))

        inside["geometric"] += (
            truth["geometric"] in jackknife(without, sizes, together=False).estimate().interval
        )
    shares = {name: count / worlds for name, count in inside.items()}
    assert all(covers(share, worlds) for share in shares.values()), shares


def gini(counts: np.ndarray) -> float:
    ordered = np.sort(counts)
    n = len(ordered)
    return float((2 * np.arange(1, n + 1) - n - 1) @ ordered / (n * ordered.sum()))


def entropy(counts: np.ndarray) -> float:
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log2(shares)).sum())


def pool_of_lists(rng, n_users: int = 20_000, n_items: int = 1000, k: int = 10) -> np.ndarray:
    """Top-10 lists of users with one of 20 tastes over a long-tailed catalogue."""
    wait = np.arange(1, n_items + 1) * np.exp(rng.normal(0, 1.5, size=(20, n_items)))
    lists = np.empty((n_users, k), dtype=np.int64)
    for start in range(0, n_users, 1000):
        arrival = rng.standard_exponential((1000, n_items), dtype=np.float32)
        arrival *= wait[rng.integers(0, 20, size=1000)]
        lists[start : start + 1000] = np.argpartition(arrival, k, axis=1)[:, :k]
    return lists


def niches(rng, n_users: int = 20_000, n_items: int = 1000, k: int = 10) -> np.ndarray:
    """Most users see the head of the catalogue, one in ten a run of neighbours in its tail."""
    head = rng.random((n_users, 100)).argpartition(k, axis=1)[:, :k]
    tail = rng.integers(100, n_items - k, size=(n_users, 1)) + np.arange(k)
    return np.where(rng.random((n_users, 1)) < 0.9, head, tail)


def exposure_of(lists: np.ndarray, groups: np.ndarray, n_items: int) -> np.ndarray:
    cells = (groups[:, None] * n_items + lists).ravel()
    return np.bincount(cells, minlength=64 * n_items).reshape(64, n_items)


def sound(values: np.ndarray, jackknives: list[Jackknife], factor: float = 1.0) -> tuple[bool, bool, str]:
    """Whether intervals hold the mean of `values` in 94 to 96 of 100, and variances are theirs within 5 %.

    Both limits are wider by three standard errors of the simulation. `factor` is what variances are made
    wrong by. Coverage alone hardly sees a quarter (it is 97 % then); the variance does.
    """
    truth, spread = values.mean(), values.var(ddof=1)
    variances = factor * np.array([one.variance() for one in jackknives])
    limits = [t_interval(j.value, np.sqrt(v), j.df, 0.95) for j, v in zip(jackknives, variances, strict=True)]
    share, ratio = np.mean([truth in one for one in limits]), variances.mean() / spread
    kurtosis = ((values - truth) ** 4).mean() / spread**2
    chance = (kurtosis - 1) / len(values) + variances.var() / variances.mean() ** 2 / len(jackknives)
    checks = covers(share, len(jackknives), (0.94, 0.96)), abs(ratio - 1) <= 0.05 + 3 * np.sqrt(chance)
    return *checks, f"{share:.4f} held, variance {ratio:.3f} (chance {np.sqrt(chance):.3f})"


def assert_sound(values: np.ndarray, jackknives: list[Jackknife]) -> None:
    """The jackknife is sound, and the check would see a variance that is wrong by a quarter."""
    *checks, text = sound(values, jackknives)
    assert all(checks), text
    for factor in (0.75, 1.25):
        assert not all(sound(values, jackknives, factor)[:2]), (factor, text)


def shown(lists: np.ndarray, n_items: int) -> float:
    return np.count_nonzero(np.bincount(lists.ravel(), minlength=n_items)) / n_items


@pytest.mark.parametrize(("make", "n_items"), [(pool_of_lists, 1000), (pool_of_lists, 4000), (niches, 2000)])
def test_coverage_intervals_cover_and_a_bootstrap_does_not(make, n_items) -> None:
    rng = np.random.default_rng(7)
    pool, n_users = make(rng, n_items=n_items), 1000
    groups = groups_of(np.arange(n_users))
    sizes = np.bincount(groups, minlength=64)

    def draw() -> np.ndarray:
        return pool[rng.integers(0, len(pool), size=n_users)]

    values = np.array([shown(draw(), n_items) for _ in range(8000)])
    jackknives = [coverage_jackknife(exposure_of(draw(), groups, n_items), sizes=sizes) for _ in range(800)]
    assert_sound(values, jackknives)
    for _ in range(10):
        lists = draw()
        again = [shown(lists[rng.integers(0, n_users, n_users)], n_items) for _ in range(100)]
        assert shown(lists, n_items) > np.quantile(again, 0.975)


def test_differences_of_coverage_cover() -> None:
    """Two models that share half of each list: pairing matters, and the interval accounts for it."""
    rng = np.random.default_rng(17)
    one, other = pool_of_lists(rng), pool_of_lists(rng)
    other[:, :5] = one[:, :5]
    groups = groups_of(np.arange(1000))
    sizes = np.bincount(groups, minlength=64)

    def draw() -> tuple[np.ndarray, np.ndarray]:
        users = rng.integers(0, len(one), size=1000)
        return one[users], other[users]

    values = np.array([shown(a, 1000) - shown(b, 1000) for a, b in (draw() for _ in range(8000))])
    jackknives = []
    for _ in range(800):
        a, b = (coverage_jackknife(exposure_of(lists, groups, 1000), sizes=sizes) for lists in draw())
        jackknives.append(a - b)
    assert_sound(values, jackknives)


def evenness(exposure: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Gini, Gini of the items shown and entropy (one row each) without each set of groups, all at once."""
    n_items = exposure.shape[1]
    seen = exposure[:, exposure.any(axis=0)].astype(np.float32)
    counts = np.sort(kept @ seen, axis=1).astype(np.int64)
    total, width = counts.sum(axis=1), counts.shape[1]
    shown = (counts > 0).sum(axis=1)
    ranked = counts @ (2 * np.arange(1, width + 1) - width)  # the largest comes last, in any catalogue
    over_all = (ranked + total * (n_items - width) - total) / (n_items * total)
    over_shown = (ranked + total * (shown - width) - total) / (shown * total)
    at_most = int(counts.max()) + 1
    table = np.arange(at_most) * np.log2(np.maximum(np.arange(at_most), 1))
    return np.stack([over_all, over_shown, np.log2(total) - table[counts].sum(axis=1) / total])


def test_evenness_of_many_sets_is_that_of_each() -> None:
    rng = np.random.default_rng(28)
    exposure = rng.poisson(0.05, size=(64, 300))
    plan = plan_groups(64, together=True)
    kept = kept_by(plan)
    result = evenness(exposure, kept)
    for at in (0, 5, 100, 300, len(plan.left_out) - 1):
        left = np.delete(exposure, plan.left_out[at], axis=0).sum(axis=0).astype(float)
        expected = gini(left), gini(left[left > 0]), entropy(left)
        np.testing.assert_allclose(result[:, at], expected, rtol=1e-12)


def kept_by(plan: Plan) -> np.ndarray:
    kept = np.ones((len(plan.left_out), 64), dtype=np.float32)
    for row, gone in zip(kept, plan.left_out, strict=True):
        row[gone] = 0
    return kept


@pytest.mark.parametrize(("n_items", "worlds"), [(1000, 500), (4000, 400)])
def test_intervals_of_evenness_cover(n_items, worlds) -> None:
    """Over 4,000 items most are shown by a few users only, and the plain jackknife is a sixth too large."""
    rng = np.random.default_rng(27)
    pool, n_users = pool_of_lists(rng, n_items=n_items), 1000
    groups = groups_of(np.arange(n_users))
    sizes = np.bincount(groups, minlength=64).astype(float)
    plan = plan_groups(64, together=True)
    kept, whole = kept_by(plan), np.ones((1, 1), dtype=np.float32)

    def draw() -> np.ndarray:
        return pool[rng.integers(0, len(pool), size=n_users)]

    def total() -> np.ndarray:
        return np.bincount(draw().ravel(), minlength=n_items)[None, :]

    values = np.stack([evenness(total(), whole)[:, 0] for _ in range(8000)])
    jackknives = [evenness(exposure_of(draw(), groups, n_items), kept) for _ in range(worlds)]
    for row in range(3):
        assert_sound(values[:, row], [Jackknife(one[row], sizes, plan) for one in jackknives])


def test_confidence_sequences_hold_at_every_time() -> None:
    rng = np.random.default_rng(8)
    worlds, total, ever_missed = 600, 1000, 0
    for _ in range(worlds):
        values = np.where(rng.random(total) < 0.3, np.clip(rng.normal(0.1, 0.4, total), -1, 1), 0.0)
        truth = values.mean()
        sequence = ConfidenceSequence(total, bounds=(-1.0, 1.0))
        for start in range(0, total - 40, 40):
            interval = sequence.update(values[start : start + 40])
            if not interval.low <= truth <= interval.high:
                ever_missed += 1
                break
    assert ever_missed / worlds <= upper(ALPHA, worlds)


def test_watching_many_keeps_the_error_rate() -> None:
    rng = np.random.default_rng(9)
    worlds, wrong = 200, 0
    names = [f"m{j}" for j in range(6)]
    for _ in range(worlds):
        shared = rng.normal(0, 0.2, size=800)
        values = {name: np.clip(shared + rng.normal(0, 0.2, size=800), -1, 1) for name in names}
        values = {name: column - column.mean() for name, column in values.items()}
        watch = Watch(dict.fromkeys(names, (-1.2, 1.2)), 800)
        for start in range(0, 760, 40):
            watch.update({name: column[start : start + 40] for name, column in values.items()})
            if any(verdict.decided for verdict in watch.verdicts()):
                wrong += 1
                break
    assert wrong / worlds <= upper(ALPHA, worlds)


def test_max_t_bounds_the_family_error_and_beats_holm() -> None:
    rng = np.random.default_rng(10)
    worlds, any_wrong, ours, holms = 400, 0, 0, 0
    for world in range(worlds):
        shared = rng.exponential(size=400) - 1
        rows = 0.9 * shared + 0.45 * (rng.exponential(size=(8, 400)) - 1)
        any_wrong += (
            max_t(alone(rows), Resampler(unit_keys(np.arange(400)), 399, seed=world)).adjusted.min() <= ALPHA
        )
        rows[0] += 0.13
        result = max_t(alone(rows), Resampler(unit_keys(np.arange(400)), 399, seed=world))
        ours += result.adjusted[0] <= ALPHA
        holms += 8 * result.p_values[0] <= ALPHA
    assert any_wrong / worlds <= upper(ALPHA, worlds)
    assert ours > 1.1 * holms


def test_repeated_looks_need_a_correction() -> None:
    """Ten looks: naive z-tests err far too often, mSPRT and a boundary do not."""
    rng = np.random.default_rng(11)
    worlds, looks = 4000, np.arange(1, 11) / 10
    walk = np.cumsum(rng.normal(0, np.sqrt(0.1), size=(worlds, 10)), axis=1)
    z = walk / np.sqrt(looks)
    naive = np.mean((np.abs(z) > 1.96).any(axis=1))
    planned = np.mean((np.abs(z) > np.array(boundaries(looks.tolist()))).any(axis=1))
    always = np.mean(
        [any(msprt(w / t, 1 / t, 1.0)[0] < ALPHA for w, t in zip(path, looks, strict=True)) for path in walk]
    )
    assert naive > 0.15
    assert abs(planned - ALPHA) <= upper(ALPHA, worlds) - ALPHA
    assert always <= upper(ALPHA, worlds)
