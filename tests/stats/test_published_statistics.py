"""Worked examples of manuals, papers and tables: the same data, the printed results."""

from __future__ import annotations

import math

import numpy as np
import pytest

from recsys.stats import (
    ZeroVarianceWarning,
    adjust,
    boundaries,
    d_z,
    friedman,
    hedges_g,
    pair,
    paired_t,
    pooled_d,
    power,
    rank_biserial,
    sign_test,
    signed_rank_sums,
    statistic_interval,
    users_needed,
    wilcoxon,
)

# ?sleep: extra hours of sleep of ten patients under two drugs.
SLEEP_1 = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
SLEEP_2 = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
# ?wilcox.test: Hamilton depression scale of nine patients before and after.
BEFORE = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30]
AFTER = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29]
# ?friedman.test: times to round first base, 22 players x 3 methods.
ROUNDING = [
    [5.40, 5.50, 5.55], [5.85, 5.70, 5.75], [5.20, 5.60, 5.50], [5.55, 5.50, 5.40], [5.90, 5.85, 5.70],
    [5.45, 5.55, 5.60], [5.40, 5.40, 5.35], [5.45, 5.50, 5.35], [5.25, 5.15, 5.00], [5.85, 5.80, 5.70],
    [5.25, 5.20, 5.10], [5.65, 5.55, 5.45], [5.60, 5.35, 5.45], [5.05, 5.00, 4.95], [5.50, 5.50, 5.40],
    [5.45, 5.55, 5.50], [5.55, 5.55, 5.35], [5.45, 5.50, 5.55], [5.50, 5.45, 5.25], [5.65, 5.60, 5.40],
    [5.70, 5.65, 5.55], [6.30, 6.30, 6.25],
]  # fmt: skip


def test_t_test_of_sleep() -> None:
    result = paired_t(pair(SLEEP_1, SLEEP_2))
    assert result.statistic == pytest.approx(-4.0621, abs=5e-5)
    assert result.df == 9
    assert result.p_value == pytest.approx(0.002833, abs=5e-7)
    assert result.interval.low == pytest.approx(-2.4598858, abs=5e-8)
    assert result.interval.high == pytest.approx(-0.7001142, abs=5e-8)


def test_signed_ranks_of_depression() -> None:
    d = pair(BEFORE, AFTER)
    assert signed_rank_sums(d)[0] == 40
    assert wilcoxon(d, alternative="greater").p_value == pytest.approx(0.01953, abs=5e-6)


def test_friedman_of_rounding_times() -> None:
    result = friedman(-np.array(ROUNDING))
    assert result.statistic == pytest.approx(11.143, abs=5e-4)
    assert result.p_value == pytest.approx(0.003805, abs=5e-7)


def test_adjusted_p_of_benjamini_and_hochbergs_paper() -> None:
    """The 15 p-values of their example: four discoveries at 5 %, three for Bonferroni."""
    p = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719,
         0.6528, 0.7590, 1.0000]  # fmt: skip
    assert (adjust(p, "bh") <= 0.05).sum() == 4
    assert (adjust(p, "bonferroni") <= 0.05).sum() == 3
    assert adjust(p, "bh")[3] == pytest.approx(0.0095 * 15 / 4)


def test_sample_size_of_cohens_table() -> None:
    """A medium effect (0.5) at 5 % two-sided with power 0.8 needs 34 pairs."""
    assert users_needed(0.5) == 34
    assert power(0.5, 34) == pytest.approx(0.8078, abs=5e-5)


# Demsar, Statistical comparisons of classifiers over multiple data sets (2006), table 6: AUC on 14 data sets.
DEMSAR = [
    [0.763, 0.768, 0.771, 0.798], [0.599, 0.591, 0.590, 0.569], [0.954, 0.971, 0.968, 0.967],
    [0.628, 0.661, 0.654, 0.657], [0.882, 0.888, 0.886, 0.898], [0.936, 0.931, 0.916, 0.931],
    [0.661, 0.668, 0.609, 0.685], [0.583, 0.583, 0.563, 0.625], [0.775, 0.838, 0.866, 0.875],
    [1.000, 1.000, 1.000, 1.000], [0.940, 0.962, 0.965, 0.962], [0.619, 0.666, 0.614, 0.669],
    [0.972, 0.981, 0.975, 0.975], [0.957, 0.978, 0.946, 0.970],
]  # fmt: skip


def test_critical_difference_of_demsar() -> None:
    result = friedman(DEMSAR)
    # He ranks the best 1, we rank it last; 3.143, 2.000, 2.893 and 1.964, but for a tie of voting he breaks.
    assert [5 - rank for rank in result.mean_ranks] == pytest.approx([3.143, 2.0, 2.893, 1.964], abs=0.04)
    assert result.critical_difference == pytest.approx(1.25, abs=0.005)


@pytest.mark.parametrize(
    ("alpha", "table"),
    [
        (0.05, [2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164]),
        (0.10, [2.052, 2.291, 2.459, 2.589, 2.693, 2.780, 2.855, 2.920]),
    ],
)
def test_nemenyis_critical_values(alpha, table) -> None:
    rng = np.random.default_rng(0)
    for k, q in enumerate(table, 3):
        result = friedman(rng.random((20, k)), alpha=alpha)
        assert result.critical_difference / np.sqrt(k * (k + 1) / 120) == pytest.approx(q, abs=1e-3)


@pytest.mark.parametrize(
    ("spending", "bounds"),
    [
        ("obrien-fleming", [4.8769, 3.3569, 2.6803, 2.2898, 2.0310]),
        ("pocock", [2.4380, 2.4268, 2.4101, 2.3966, 2.3859]),
    ],
)
def test_boundaries_of_lan_and_demets(spending, bounds) -> None:
    """Five equal looks at two-sided 0.05, as the tables of group-sequential software print them."""
    result = boundaries([0.2, 0.4, 0.6, 0.8, 1.0], spending=spending)
    assert result == pytest.approx(bounds, abs=2e-4)


def test_signed_ranks_of_scipys_manual() -> None:
    """Heights of fifteen pairs of maize plants, cross- less self-fertilised."""
    d = [6, 8, 14, 16, 23, 24, 28, 29, 41, -48, 49, 56, 60, -67, 75]
    assert signed_rank_sums(d) == (96, 24)
    assert wilcoxon(d).p_value == pytest.approx(0.041259765625, abs=1e-12)
    assert wilcoxon(d, alternative="greater").p_value == pytest.approx(0.0206298828125, abs=1e-12)


def test_signed_ranks_of_r_with_continuity_correction() -> None:
    """wilcox.test(exact = FALSE) in R, as SciPy's own tests quote it."""
    with pytest.warns(ZeroVarianceWarning):
        assert wilcoxon([0.1] * 10, method="normal").p_value == pytest.approx(0.001904195, abs=5e-10)
    x = [120, 114, 181, 188, 180, 146, 121, 191, 132, 113, 127, 112]
    y = [133, 143, 119, 189, 112, 199, 198, 113, 115, 121, 142, 187]
    assert min(signed_rank_sums(pair(x, y))) == 34
    assert wilcoxon(pair(x, y), method="normal").p_value == pytest.approx(0.7240817, abs=5e-8)


def test_friedman_of_pulse_rates() -> None:
    """Sprent and Smeeton's seven students, as SciPy's manual prints them."""
    rates = [[72, 120, 76], [96, 120, 95], [88, 132, 104], [92, 120, 96], [74, 101, 84], [76, 96, 72],
             [82, 112, 76]]  # fmt: skip
    result = friedman(rates)
    assert result.statistic == pytest.approx(10.57142857142857, abs=1e-12)
    assert result.p_value == pytest.approx(0.005063414171757498, abs=1e-12)


@pytest.mark.parametrize(
    ("method", "adjusted"),
    [
        ("holm", [0.64, 0.012, 0.64, 0.162, 0.0015]),
        ("bh", [0.5, 0.0075, 0.4, 0.09, 0.0015]),
        ("bonferroni", [1, 0.015, 1, 0.27, 0.0015]),
    ],
)
def test_adjusted_p_of_pingouins_manual(method, adjusted) -> None:
    assert adjust([0.50, 0.003, 0.32, 0.054, 0.0003], method) == pytest.approx(adjusted, abs=1e-12)


def test_effects_of_sleep_and_depression() -> None:
    """The manual of effectsize for R: d of pairs, d of groups, and the matched rank-biserial correlation."""
    assert d_z(pair(SLEEP_1, SLEEP_2)).value == pytest.approx(-1.28, abs=5e-3)
    assert pooled_d(pair(SLEEP_1, SLEEP_2)).value == pytest.approx(-0.83, abs=5e-3)
    assert rank_biserial(pair(SLEEP_1, SLEEP_2)).value == -1
    assert rank_biserial(pair(BEFORE, AFTER)).value == pytest.approx(0.78, abs=5e-3)


@pytest.mark.parametrize(("df", "factor"), [(2, 0.5642), (3, 0.7236), (4, 0.7979), (9, 0.9139)])
def test_factors_of_hedges_table(df, factor) -> None:
    """Hedges (1981), table 1: c(m), the exact correction."""
    d = pair(np.arange(df + 1.0) ** 2, np.zeros(df + 1))
    assert hedges_g(d, kind="paired").value / d_z(d).value == pytest.approx(factor, abs=5e-5)


@pytest.mark.parametrize(("effect", "pairs"), [(0.2, 199), (0.5, 34), (0.8, 15)])
def test_pairs_for_cohens_small_medium_and_large(effect, pairs) -> None:
    assert users_needed(effect) == pairs


def test_the_sign_test_is_mcnemars_exact_one() -> None:
    """Agresti's approval ratings: 150 voters changed one way, 86 the other: twice the tail of 86."""
    tail = sum(math.comb(236, n) for n in range(87)) / 2**236
    assert sign_test([1] * 150 + [-1] * 86).p_value == pytest.approx(2 * tail, rel=1e-10)


@pytest.mark.parametrize(("method", "low", "high"), [("percentile", 100.8, 233.9), ("bca", 115.8, 259.6)])
def test_bootstrap_of_the_spatial_test(method, low, high) -> None:
    """Efron and Tibshirani (1993), table 14.2: 90 % intervals of a variance; theirs are 2,000 draws."""
    a = [48, 36, 20, 29, 42, 42, 20, 42, 22, 41, 45, 14, 6, 0, 33, 28, 34, 4, 32, 24, 47, 41, 24, 26, 30, 41]
    result = statistic_interval(a, lambda x: float(np.var(x)), method=method, confidence=0.9)
    assert result.value == pytest.approx(171.5, abs=0.05)
    assert result.interval.low == pytest.approx(low, abs=6)
    assert result.interval.high == pytest.approx(high, abs=6)
