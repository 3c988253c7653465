"""Corrections of sampled ranks, checked by enumeration, by simulation and against uncorrected metrics."""

from __future__ import annotations

import itertools
import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recsys import sampled
from recsys.errors import CutoffError, InputError, NotDefinedError, UnknownNameError
from recsys.stats.sampled.estimates import _small_products, corrected_values, resampled_metrics
from recsys.stats.sampled.sampled_ranks import (
    Cases,
    binned_values,
    chances,
    parse_rank_metric,
    rank_grid,
    rank_prior,
    values_by_rank,
)

N_ITEMS, N_NEGATIVES, N_CASES = 2000, 99, 4000
METRICS = ("hit@10", "ndcg@10", "map")


def true_ranks(alpha=0.6, n_cases=N_CASES, n_items=N_ITEMS, seed=0):
    """Ranks of a good model: more likely at the top, by a power law."""
    chance = np.arange(1, n_items + 1.0) ** -alpha
    return 1 + np.random.default_rng(seed).choice(n_items, n_cases, p=chance / chance.sum())


def sample(ranks, n=N_NEGATIVES, n_items=N_ITEMS, *, replacement=False, seed=1):
    rng = np.random.default_rng(seed)
    if replacement:
        return 1 + rng.binomial(n, (ranks - 1) / (n_items - 1))
    return 1 + rng.hypergeometric(ranks - 1, n_items - ranks, n)


def truth_of(metric, ranks, n_items=N_ITEMS):
    return float(values_by_rank(parse_rank_metric(metric), n_items)[ranks - 1].mean())


class TestValues:
    @pytest.mark.parametrize(
        ("metric", "value"),
        [
            ("hit@3", lambda r, _n: float(r <= 3)),
            ("recall@3", lambda r, _n: float(r <= 3)),
            ("ndcg@3", lambda r, _n: 1 / math.log2(r + 1) if r <= 3 else 0.0),
            ("ndcg", lambda r, _n: 1 / math.log2(r + 1)),
            ("ndcg(discount=reciprocal)@3", lambda r, _n: 1 / r if r <= 3 else 0.0),
            ("map", lambda r, _n: 1 / r),
            ("mrr@4", lambda r, _n: 1 / r if r <= 4 else 0.0),
            ("auc", lambda r, n: (n - r) / (n - 1)),
            ("average_rank", lambda r, _n: r),
        ],
    )
    def test_values_are_the_definitions(self, metric, value):
        assert values_by_rank(parse_rank_metric(metric), 9).tolist() == pytest.approx(
            [value(r, 9) for r in range(1, 10)]
        )

    def test_a_metric_that_is_not_of_the_rank_is_refused(self):
        with pytest.raises(UnknownNameError):
            parse_rank_metric("accuracy_of_nothing@3")
        with pytest.raises(NotDefinedError, match="sampling does not apply"):
            parse_rank_metric("mcc@3")
        for wrong in ("ndcg@x", "ndcg@0", "auc@3", "pauc"):
            with pytest.raises(CutoffError):
                parse_rank_metric(wrong)


class TestChances:
    @pytest.mark.parametrize("replacement", [False, True])
    def test_by_enumeration_of_every_sample(self, replacement):
        n_items, n = 6, 3
        table = chances(n, n_items, replacement=replacement)
        others = range(n_items - 1)
        draws = itertools.product(others, repeat=n) if replacement else itertools.permutations(others, n)
        draws = list(draws)
        for rank in range(1, n_items + 1):
            above = np.array([sum(each < rank - 1 for each in draw) for draw in draws])
            result = np.bincount(above, minlength=n + 1) / len(draws)
            assert table[rank - 1] == pytest.approx(result, abs=1e-12)

    @given(st.integers(2, 5000), st.data())
    def test_rows_are_distributions_with_the_right_mean(self, n_items, data):
        n = data.draw(st.integers(1, min(n_items - 1, 60)))
        for replacement in (False, True):
            table = chances(n, n_items, replacement=replacement)
            assert table.sum(axis=1) == pytest.approx(np.ones(len(table)))
            mean = table @ np.arange(n + 1)
            share = (rank_grid(n_items).rank - 1) / (n_items - 1)
            assert mean == pytest.approx(n * share, rel=1e-6, abs=1e-6)

    @given(st.integers(1, 200_000))
    def test_bins_hold_every_rank_once(self, n_items):
        grid = rank_grid(n_items)
        assert grid.size.sum() == n_items
        assert ((grid.start <= grid.rank) & (grid.rank < grid.start + grid.size)).all()
        assert (grid.start[1:] == grid.start[:-1] + grid.size[:-1]).all()

    def test_impossible_samples_are_refused(self):
        with pytest.raises(InputError, match="cannot come from"):
            chances(10, 5, replacement=False)
        with pytest.raises(InputError, match="cannot be sampled"):
            chances(0, 5, replacement=True)


class TestCorrections:
    def test_all_items_sampled_needs_no_correction(self):
        """n = N - 1 without replacement: the sampled rank is the true one, and every method says so."""
        ranks = np.array([1, 2, 7, 20])
        for method in ("uncorrected", "rank", "cls", "bv"):
            result = sampled.estimate(ranks, 19, 20, "ndcg@5", method=method)
            assert result.value == pytest.approx(truth_of("ndcg@5", ranks, 20), abs=1e-6)

    @pytest.mark.parametrize(
        ("metric", "formula"),
        [
            ("hit@10", lambda r, _n: float(r <= 10)),
            ("recall@3", lambda r, _n: float(r <= 3)),
            ("precision@5", lambda r, _n: float(r <= 5) / 5),
            ("ndcg@10", lambda r, _n: 1 / math.log2(r + 1) if r <= 10 else 0.0),
            ("ndcg", lambda r, _n: 1 / math.log2(r + 1)),
            ("ndcg(discount=reciprocal)@3", lambda r, _n: 1 / r if r <= 3 else 0.0),
            ("map", lambda r, _n: 1 / r),
            ("mrr@10", lambda r, _n: 1 / r if r <= 10 else 0.0),
            ("rbp", lambda r, _n: 0.2 * 0.8 ** (r - 1)),
            ("auc", lambda r, n: (n - r) / (n - 1)),
            ("percentile_rank", lambda r, n: (r - 1) / (n - 1)),
            ("average_rank", lambda r, _n: r),
        ],
    )
    @pytest.mark.parametrize(("n", "n_items"), [(4, 10), (7, 60), (99, 3706), (30, 32)])
    def test_rank_is_the_formula_at_the_scaled_rank_which_is_not_rounded(self, metric, formula, n, n_items):
        """Krichene & Rendle, section 5.1: M(1 + (N - 1) (r - 1) / n), with M at real ranks."""
        scaled = [1 + (n_items - 1) * (rank - 1) / n for rank in range(1, n + 2)]
        result = corrected_values(parse_rank_metric(metric), "rank", n, n_items)
        assert result.tolist() == pytest.approx([formula(r, n_items) for r in scaled], rel=1e-12)

    def test_cls_is_monotone_and_no_other_monotone_correction_is_less_biased(self):
        metric, n, n_items = parse_rank_metric("ndcg@10"), 20, 300
        table, truth = (
            chances(n, n_items, replacement=False),
            binned_values(parse_rank_metric("ndcg@10"), n_items),
        )
        weight = rank_prior("uniform", n_items)

        def bias(values):
            return float(weight @ (table @ values - truth) ** 2)

        result = corrected_values(metric, "cls", n, n_items)
        assert (np.diff(result) <= 1e-12).all()
        rng = np.random.default_rng(0)
        for _ in range(300):
            other = np.maximum(result + rng.normal(0, 0.02, n + 1), 0)
            assert bias(np.maximum.accumulate(other[::-1])[::-1]) >= bias(result) - 1e-12
        assert bias(result) < bias(corrected_values(metric, "uncorrected", n, n_items))

    @pytest.mark.parametrize("gamma", [0.01, 0.1, 1.0])
    def test_bv_minimises_bias_and_variance_together(self, gamma):
        n, n_items = 20, 300
        table, truth = (
            chances(n, n_items, replacement=True),
            binned_values(parse_rank_metric("hit@10"), n_items),
        )
        weight = rank_prior("uniform", n_items)

        def loss(values):
            mean = table @ values
            variance = table @ values**2 - mean**2
            return float(weight @ ((mean - truth) ** 2 + gamma * variance))

        result = corrected_values(
            parse_rank_metric("hit@10"), "bv", n, n_items, replacement=True, gamma=gamma
        )
        rng = np.random.default_rng(0)
        for _ in range(200):
            assert loss(result + rng.normal(0, 0.01, n + 1)) >= loss(result) - 1e-9

    def test_gamma_one_is_the_posterior_mean(self):
        n, n_items = 20, 300
        table, truth = (
            chances(n, n_items, replacement=False),
            binned_values(parse_rank_metric("hit@10"), n_items),
        )
        weight = rank_prior("log", n_items)
        joint = weight[:, None] * table
        posterior = (truth @ joint) / joint.sum(axis=0)
        result = corrected_values(parse_rank_metric("hit@10"), "bv", n, n_items, gamma=1.0, prior="log")
        assert result == pytest.approx(posterior, abs=1e-4)

    @pytest.mark.parametrize("replacement", [False, True])
    @pytest.mark.parametrize("metric", METRICS)
    @pytest.mark.parametrize("alpha", [0.4, 0.7, 1.0])
    def test_every_correction_beats_the_uncorrected_metric(self, metric, replacement, alpha):
        ranks = true_ranks(alpha)
        sampled_ranks = sample(ranks, replacement=replacement)
        truth = truth_of(metric, ranks)
        errors = {}
        for method in ("uncorrected", "cls", "bv"):
            result = sampled.estimate(
                sampled_ranks, N_NEGATIVES, N_ITEMS, metric, method=method, replacement=replacement
            )
            errors[method] = abs(result.value - truth)
        fitted = sampled.fit_ranks(sampled_ranks, N_NEGATIVES, N_ITEMS, replacement=replacement)
        errors["mle"] = abs(fitted.mean_of(metric) - truth)
        for method in ("cls", "bv", "mle"):
            assert errors[method] < 0.5 * errors["uncorrected"], errors

    @pytest.mark.parametrize("method", sampled.METHODS)
    def test_auc_needs_no_correction_and_gets_none(self, method):
        ranks = true_ranks()
        result = sampled.estimate(sample(ranks), N_NEGATIVES, N_ITEMS, "auc", method=method)
        assert result.value == pytest.approx(truth_of("auc", ranks), abs=0.01)
        assert result.low < truth_of("auc", ranks) < result.high

    def test_the_wrong_kind_of_draw_is_another_distribution(self):
        """Half of all items drawn: with replacement the ranks spread more, and the corrections differ."""
        without = corrected_values(parse_rank_metric("hit@10"), "bv", 50, 101)
        with_ = corrected_values(parse_rank_metric("hit@10"), "bv", 50, 101, replacement=True)
        assert not np.allclose(without, with_, atol=0.01)

    def test_intervals_hold_the_expected_value_as_often_as_they_say(self):
        """Of the sampled metric itself, over draws of cases and negatives."""
        chance = np.arange(1, N_ITEMS + 1.0) ** -0.6
        chance /= chance.sum()
        rng = np.random.default_rng(0)
        correction = corrected_values(parse_rank_metric("hit@10"), "bv", 20, N_ITEMS)
        expected = float(
            (chances(20, N_ITEMS, replacement=False) @ correction)
            @ np.add.reduceat(chance, rank_grid(N_ITEMS).start - 1)
        )
        inside = 0
        for at in range(200):
            ranks = 1 + rng.choice(N_ITEMS, 300, p=chance)
            result = sampled.estimate(sample(ranks, 20, seed=at), 20, N_ITEMS, "hit@10")
            inside += result.low <= expected <= result.high
        assert 180 <= inside <= 200

    def test_the_worst_bias_is_the_worst_over_all_ranks(self):
        result = sampled.estimate([1, 5, 19], 20, 300, "hit@10", method="uncorrected")
        table = chances(20, 300, replacement=False)
        truth = values_by_rank(parse_rank_metric("hit@10"), 300)
        seen = table @ values_by_rank(parse_rank_metric("hit@10"), 21)
        by_hand = max(abs(seen[at] - truth[r - 1]) for at, r in enumerate(rank_grid(300).rank))
        assert result.worst_bias == pytest.approx(by_hand)


class TestCases:
    def test_tied_positives_count_as_the_mean_of_their_places(self):
        others = [1, 6, 9, 10]
        tied = sampled.estimate([2, *others], 9, 50, "ndcg@5", method="bv", tied=[3, 1, 1, 1, 1])
        apart = [sampled.estimate([r, *others], 9, 50, "ndcg@5", method="bv").per_case[0] for r in (2, 3, 4)]
        assert tied.per_case[0] == pytest.approx(np.mean(apart))

    @given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 5)), min_size=1, max_size=8))
    def test_counts_of_shared_places_add_up(self, rows):
        rows = [(above, min(tied, 10 - above)) for above, tied in rows]
        cases = Cases.from_ranks([a + 1 for a, _ in rows], 9, 50, tied=[t for _, t in rows])
        (every,) = cases.classes
        expected = np.zeros(10)
        for above, tied in rows:
            expected[above : above + tied] += 1 / tied
        assert cases.counts(every) == pytest.approx(expected)

    def test_cases_may_differ_in_negatives_and_items(self):
        result = sampled.estimate([1, 3, 2], [9, 9, 19], [50, 80, 80], "hit@5", method="cls")
        rows = ((1, 9, 50), (3, 9, 80), (2, 19, 80))
        alone = [corrected_values(parse_rank_metric("hit@5"), "cls", n, items)[r - 1] for r, n, items in rows]
        assert result.per_case == pytest.approx(alone)

    def test_many_sizes_of_catalogue_are_few_classes_and_change_little(self):
        items = np.random.default_rng(0).integers(1500, 2000, N_CASES)
        ranks = np.minimum(true_ranks(), items)
        sampled_ranks = 1 + np.random.default_rng(1).hypergeometric(ranks - 1, items - ranks, N_NEGATIVES)
        cases = Cases.from_ranks(sampled_ranks, N_NEGATIVES, items)
        assert len(cases.classes) < 40
        truth = float((ranks <= 10).mean())
        result = sampled.estimate(sampled_ranks, N_NEGATIVES, items, "hit@10", method="bv")
        assert result.value == pytest.approx(truth, abs=0.03)
        auc = sampled.estimate(sampled_ranks, N_NEGATIVES, items, "auc", method="mle")
        assert auc.value == pytest.approx(float(((items - ranks) / (items - 1)).mean()), abs=0.01)

    @pytest.mark.parametrize(
        ("given_ranks", "n", "items", "words"),
        [
            ([0], 9, 50, "is impossible"),
            ([11], 9, 50, "is impossible"),
            ([], 9, 50, "no sampled ranks"),
            ([1.5], 9, 50, "whole number"),
            ([1], 60, 50, "cannot come from"),
            ([1], None, 50, "n_negatives="),
            ([1, 2], [9], 50, "1 values for 2 cases"),
        ],
    )
    def test_impossible_ranks_are_refused(self, given_ranks, n, items, words):
        with pytest.raises(InputError, match=words):
            sampled.estimate(given_ranks, n, items, "hit@10")

    def test_clusters_widen_the_interval(self):
        sampled_ranks = np.repeat(sample(true_ranks(n_cases=200)), 5)
        alone = sampled.estimate(sampled_ranks, N_NEGATIVES, N_ITEMS, "hit@10", method="bv")
        for method in ("bv", "mle"):
            alone = sampled.estimate(sampled_ranks, N_NEGATIVES, N_ITEMS, "hit@10", method=method)
            together = sampled.estimate(
                sampled_ranks,
                N_NEGATIVES,
                N_ITEMS,
                "hit@10",
                method=method,
                clusters=np.repeat(np.arange(200), 5),
            )
            assert together.value == pytest.approx(alone.value)
            assert together.high - together.low > 1.5 * (alone.high - alone.low)

    def test_counted_candidates_are_accepted(self):
        from recsys.evaluation.candidates import Candidates

        rng = np.random.default_rng(0)
        cases = Candidates.of(np.arange(50), np.full(50, 99), rng.integers(0, 99, (50, 20)))
        counted = cases.judge(lambda _u, i: rng.permutation(len(i)).astype(float))
        result = sampled.estimate(counted, None, 100, "hit@5", method="bv")
        by_hand = sampled.estimate(counted.above + 1, counted.n_candidates - 1, 100, "hit@5", method="bv")
        assert result.value == by_hand.value  # repeated negatives were collapsed, so cases differ in n


class TestRankDistribution:
    def test_the_likelihood_rises_and_the_chances_add_up(self):
        sampled_ranks = sample(true_ranks())
        few = sampled.fit_ranks(sampled_ranks, N_NEGATIVES, N_ITEMS, iterations=3)
        many = sampled.fit_ranks(sampled_ranks, N_NEGATIVES, N_ITEMS, iterations=200)
        table = chances(N_NEGATIVES, N_ITEMS, replacement=False)

        def likelihood(fitted):
            return float(np.log(fitted.chance @ table)[sampled_ranks - 1].sum())

        assert likelihood(many) > likelihood(few)
        assert many.chance.sum() == pytest.approx(1)

    def test_it_is_exact_where_everything_was_sampled(self):
        ranks = np.array([1, 1, 2, 5, 9])
        fitted = sampled.fit_ranks(ranks, 9, 10)
        assert fitted.chance == pytest.approx(np.bincount(ranks - 1, minlength=10) / 5, abs=1e-6)

    def test_resamples_are_fitted_as_one_after_the_other(self):
        """Plain expectation-maximisation, a resample at a time."""
        cases = Cases.from_ranks(sample(true_ranks(n_cases=300), 20), 20, N_ITEMS)
        table = chances(20, N_ITEMS, replacement=False)
        rng = np.random.default_rng(5)
        for resampled in resampled_metrics(cases, [parse_rank_metric("hit@10")], 8, 5)[0][0]:
            times = np.bincount(rng.integers(300, size=300), minlength=300)
            count = np.bincount(cases.above, times, 21)
            chance = rank_prior("log", N_ITEMS)
            for _ in range(500):
                chance = chance * (table @ (count / (chance @ table)))
                chance /= chance.sum()
            chance = chance * (table @ (count / (chance @ table)))
            expected = chance @ binned_values(parse_rank_metric("hit@10"), N_ITEMS) / chance.sum()
            assert resampled == pytest.approx(expected, rel=1e-9)

    def test_an_interval_does_not_lean_away_from_the_mean_of_all_fits(self):
        """Resamples that started from the fit of the sample would go on where it stopped.

        The intervals then leave the mean by a quarter of the sample's own distance from it, and hold it in 85
        instead of 95 of 100 samples.
        """
        mean_of_fits = 0.2737  # of 4,000 samples
        rng = np.random.default_rng(1)
        chance = np.arange(1, 3707.0) ** -1.2
        off, lean = [], []
        for _ in range(12):
            ranks = 1 + rng.choice(3706, 1000, p=chance / chance.sum())
            sampled_ranks = 1 + rng.hypergeometric(ranks - 1, 3706 - ranks, 20)
            found = sampled.estimate(sampled_ranks, 20, 3706, "mrr", method="mle")
            off.append(found.value - mean_of_fits)
            lean.append((found.low + found.high) / 2 - found.value)
        slope = np.dot(off, lean) / np.dot(off, off)
        assert slope < 0.13  # standard error 0.07

    def test_the_interval_holds_the_mean_of_all_fits_where_nearly_all_sampled_ranks_are_alike(self):
        mean_of_fits = {"hit@3": 0.9431, "mrr": 0.8225}
        n_worlds, n_items, n = 20, 30, 5
        rng = np.random.default_rng(0)
        chance = np.arange(1, n_items + 1.0) ** -2.5
        inside = dict.fromkeys(mean_of_fits, 0)
        for _ in range(n_worlds):
            ranks = 1 + rng.choice(n_items, 30, p=chance / chance.sum())
            sampled_ranks = 1 + rng.hypergeometric(ranks - 1, n_items - ranks, n)
            found = sampled.estimate_all(sampled_ranks, n, n_items, list(mean_of_fits), methods=["mle"])
            for metric, mean in mean_of_fits.items():
                inside[metric] += found[metric]["mle"].low <= mean <= found[metric]["mle"].high
        assert min(inside.values()) / n_worlds >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / n_worlds), inside

    def test_where_everything_was_sampled_few_misses_are_judged_exactly(self):
        """3 of 30 misses: the interval is Clopper and Pearson's, up to the error of 100 random weights."""
        found = sampled.estimate([1] * 27 + [20] * 3, 19, 20, "hit@10", method="mle")
        assert found.low == pytest.approx(0.7347, abs=0.05)
        assert found.high == pytest.approx(0.9789, abs=0.01)

    @pytest.mark.parametrize("method", sampled.METHODS)
    @pytest.mark.parametrize("rank", [1, 10])
    def test_an_interval_is_never_a_point(self, method, rank):
        """Thirty cases of one sampled rank do not show that all others have it."""
        found = sampled.estimate([rank] * 30, 9, 50, "ndcg@5", method=method)
        assert found.high - found.low > 0.03
        grouped = sampled.estimate(
            [rank] * 30, 9, 50, "ndcg@5", method=method, clusters=np.repeat(np.arange(10), 3)
        )
        assert grouped.high - grouped.low > found.high - found.low

    def test_an_interval_of_weighted_negatives_is_never_a_point(self):
        found = sampled.estimate_weighted([[1, 1]] * 30, [[0.1, 0.1]] * 30, 50, "hit@5")
        assert (found.low, found.value) == (0.0, 0.0)
        assert found.high == pytest.approx(1 - 0.025 ** (1 / 30))

    def test_a_metric_that_has_one_value_only_is_certain(self):
        found = sampled.estimate([1, 4, 9], 9, 50, "hit@50")
        assert found.low == found.value == found.high == pytest.approx(1.0)

    @pytest.mark.parametrize("shape", [(100, 435, 100), (33, 700, 1000), (16, 5, 3), (1, 435, 100)])
    def test_products_in_blocks_are_the_products(self, shape):
        """No block is so large that BLAS would start threads, which cost more than the arithmetic."""
        rows, inner, columns = shape
        rng = np.random.default_rng(0)
        left, right = rng.random((rows, inner)), rng.random((inner, columns))
        assert _small_products(left, right) == pytest.approx(left @ right, rel=1e-13)
        assert _small_products(left @ right, right.T) == pytest.approx(left @ right @ right.T, rel=1e-13)

    def test_an_interval_takes_little_time(self):
        ranks = sample(true_ranks(n_cases=500))
        began = time.process_time()
        sampled.estimate(ranks, N_NEGATIVES, N_ITEMS, "ndcg@10", method="mle")
        assert time.process_time() - began < 3


class TestPlanning:
    @pytest.mark.parametrize("replacement", [False, True])
    @pytest.mark.parametrize("method", ["uncorrected", "cls", "bv"])
    def test_the_expected_error_is_what_a_simulation_shows(self, method, replacement):
        ranks = true_ranks(n_cases=500)
        result = sampled.expected_error(
            "hit@10", 50, N_ITEMS, n_cases=500, ranks=ranks, method=method, replacement=replacement
        )
        values = [
            sampled.estimate(
                sample(ranks, 50, seed=s, replacement=replacement), 50, N_ITEMS, "hit@10",
                method=method, replacement=replacement,
            ).value
            for s in range(150)
        ]  # fmt: skip
        assert result.truth == pytest.approx(truth_of("hit@10", ranks))
        assert np.mean(values) == pytest.approx(result.expected, abs=4 * result.deviation / math.sqrt(150))
        assert np.std(values) == pytest.approx(result.deviation, rel=0.25)
        assert result.error == pytest.approx(math.hypot(result.bias, result.deviation))

    def test_the_example_of_the_ml_1m_test(self):
        """99 negatives of 3,705: an item at rank 200 counts as a top-10 hit almost always."""
        assert sampled.expected_error("hit@10", 99, 3706, ranks=[200]).expected == pytest.approx(
            0.96, abs=0.02
        )
        assert sampled.expected_error("hit@10", 99, 3706, ranks=[400]).expected == pytest.approx(
            0.42, abs=0.08
        )

    def test_more_negatives_mean_less_error_and_enough_are_enough(self):
        ranks = true_ranks()
        errors = [
            sampled.expected_error("ndcg@10", n, N_ITEMS, ranks=ranks).error
            for n in (10, 50, 200, 1000, 1999)
        ]
        assert errors == sorted(errors, reverse=True)
        needed = sampled.negatives_needed("ndcg@10", N_ITEMS, ranks=ranks, tolerance=0.02)
        assert sampled.expected_error("ndcg@10", needed, N_ITEMS, ranks=ranks).error <= 0.02
        assert sampled.expected_error("ndcg@10", needed - 1, N_ITEMS, ranks=ranks).error > 0.02
        fewer = sampled.negatives_needed("ndcg@10", N_ITEMS, ranks=ranks, tolerance=0.02, method="bv")
        assert fewer < needed
        assert sampled.negatives_needed("ndcg@10", 10**6, tolerance=1e-9) == 10**6 - 1

    def test_the_winners_probability_is_how_often_a_sample_names_it(self):
        ranks = true_ranks(0.7, n_cases=400)
        other = np.minimum(N_ITEMS, (ranks * 1.15).astype(int) + 1)
        text = sampled.winner_probability(ranks, other, 50, N_ITEMS, "hit@10", ranks="true")
        wins = [
            (sample(ranks, 50, seed=2 * s) <= 10).sum() > (sample(other, 50, seed=2 * s + 1) <= 10).sum()
            for s in range(400)
        ]
        assert text == pytest.approx(np.mean(wins), abs=0.08)
        swapped = sampled.winner_probability(other, ranks, 50, N_ITEMS, "hit@10", ranks="true")
        assert swapped == pytest.approx(text)

    def test_a_sampled_winner_can_be_the_true_loser(self):
        """One model is good at the very top, the other never bad: samples see only the second."""
        top = np.where(np.arange(1000) < 300, 5, 1500)
        steady = np.full(1000, 60)
        assert truth_of("hit@10", top) > truth_of("hit@10", steady)
        text = sampled.winner_probability(top, steady, N_NEGATIVES, N_ITEMS, "hit@10", ranks="true")
        assert text < 0.01
        sampled_ranks = sample(top), sample(steady, seed=2)
        sure = sampled.winner_probability(*sampled_ranks, N_NEGATIVES, N_ITEMS, "hit@10")
        assert sure < 0.5  # the corrected difference points the other way

    def test_equal_models_win_half_the_time(self):
        ranks = true_ranks(n_cases=300)
        assert sampled.winner_probability(ranks, ranks, 50, N_ITEMS, "hit@10", ranks="true") == 0.5

    @pytest.mark.parametrize(
        ("call", "words"),
        [
            (lambda: sampled.expected_error("hit@10", 9, 50, ranks=[51]), "between 1 and 50"),
            (lambda: sampled.expected_error("hit@10", 9, 50, method="mle"), "mle"),
            (lambda: sampled.expected_error("hit@10", 9, 50, n_cases=0), "n_cases"),
            (lambda: sampled.negatives_needed("hit@10", 50, tolerance=0), "tolerance"),
            (lambda: sampled.winner_probability([1, 2, 3], [1, 2, 3, 9], 9, 50), "same cases"),
            (lambda: sampled.winner_probability([1], [2], 9, 50, ranks="maybe"), "neither"),
        ],
    )
    def test_impossible_plans_are_refused(self, call, words):
        with pytest.raises(InputError, match=words):
            call()


class TestImportance:
    def popular_world(self, *, replacement, n_items=2000, n=100, n_cases=600, seed=0):
        """Popular items score higher, and are drawn more often: sampled ranks look worse than they are."""
        rng = np.random.default_rng(seed)
        weight = 1.0 / np.arange(1, n_items) ** 0.7
        share = weight / weight.sum()
        included = sampled.inclusion_chances(weight, n)
        scores = np.log(weight) + rng.normal(0, 1.0, (n_cases, n_items - 1))
        own = rng.normal(np.quantile(scores, 0.985), 0.8, n_cases)
        ranks = 1 + (scores > own[:, None]).sum(axis=1)
        if replacement:
            sampled_ranks = rng.choice(n_items - 1, (n_cases, n), p=share)
            chance = share[sampled_ranks]
        else:
            keys = rng.exponential(size=(n_cases, n_items - 1)) / weight
            sampled_ranks = np.argpartition(keys, n, axis=1)[:, :n]
            chance = included[sampled_ranks]
        above = np.take_along_axis(scores, sampled_ranks, axis=1) > own[:, None]
        return ranks, above, chance

    @pytest.mark.parametrize("replacement", [False, True])
    def test_weights_bring_the_ranks_back_without_bias(self, replacement):
        worlds = [self.popular_world(replacement=replacement, seed=s) for s in range(5)]
        ranks, above, chance = (np.concatenate(part) for part in zip(*worlds, strict=True))
        result = sampled.weighted_ranks(above, chance, 2000, replacement=replacement)
        naive = 1 + above.mean(axis=1) * 1999
        assert abs(result.mean() - ranks.mean()) < 0.05 * abs(naive.mean() - ranks.mean())

    @pytest.mark.parametrize("replacement", [False, True])
    @pytest.mark.parametrize("metric", ["hit@10", "ndcg@10", "map", "auc"])
    def test_weights_beat_corrections_that_take_the_sample_for_uniform(self, replacement, metric):
        ranks, above, chance = self.popular_world(replacement=replacement)
        truth = truth_of(metric, ranks, 2000)
        ours = sampled.estimate_weighted(above, chance, 2000, metric, replacement=replacement)
        for method in ("rank", "cls", "bv"):
            other = sampled.estimate(
                1 + above.sum(axis=1), 100, 2000, metric, method=method, replacement=replacement
            )
            assert abs(ours.value - truth) < abs(other.value - truth), method

    def test_equal_chances_are_uniform_sampling(self):
        above = np.random.default_rng(0).random((20, 30)) < 0.4
        result = sampled.weighted_ranks(above, np.full((20, 30), 30 / 199), 200)
        assert result == pytest.approx(1 + above.sum(axis=1) * 199 / 30)
        by_draw = sampled.weighted_ranks(above, np.full((20, 30), 1 / 199), 200, replacement=True)
        assert by_draw == pytest.approx(result)

    def test_cases_may_differ_in_items(self):
        result = sampled.estimate_weighted([[1, 0]] * 3, [[0.5, 0.5]] * 3, [5, 9, 17], "auc")
        assert result.per_case == pytest.approx([0.5, 0.75, 0.875])

    def test_inclusion_chances_are_those_of_drawing(self):
        weight = np.array([8.0, 4.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
        rng = np.random.default_rng(0)
        keys = rng.exponential(size=(40_000, 10)) / weight
        taken = np.bincount(np.argsort(keys, axis=1)[:, :3].reshape(-1), minlength=10) / 40_000
        result = sampled.inclusion_chances(weight, 3)
        assert result.sum() == pytest.approx(3)
        assert result == pytest.approx(taken, abs=0.03)
        assert sampled.inclusion_chances(weight, 10).tolist() == [1.0] * 10

    @pytest.mark.parametrize(
        ("call", "words"),
        [
            (lambda: sampled.weighted_ranks([[1, 0]], [[0.5]], 10), "shape"),
            (lambda: sampled.weighted_ranks([[1, 0]], [[0.5, 0.0]], 10), "outside"),
            (lambda: sampled.weighted_ranks([1, 0], [0.5, 0.5], 10), "one row per case"),
            (lambda: sampled.inclusion_chances([1.0, 0.0], 2), "1 items"),
            (lambda: sampled.inclusion_chances([1.0, -1.0], 1), "at least 0"),
        ],
    )
    def test_invalid_weights_are_refused(self, call, words):
        with pytest.raises(InputError, match=words):
            call()


def test_all_methods_at_once_equal_single_calls():
    sampled_ranks = sample(true_ranks())
    result = sampled.estimate_all(sampled_ranks, N_NEGATIVES, N_ITEMS, ["hit@10", "auc"])
    for metric, row in result.items():
        assert list(row) == list(sampled.METHODS)
        for method, value in row.items():
            alone = sampled.estimate(sampled_ranks, N_NEGATIVES, N_ITEMS, metric, method=method)
            assert (value.value, value.low, value.high) == (alone.value, alone.low, alone.high)
    assert str(result["hit@10"]["cls"]).startswith("hit@10 0.")
    with pytest.raises(UnknownNameError, match="cls"):
        sampled.estimate(sampled_ranks, N_NEGATIVES, N_ITEMS, method="clss")
