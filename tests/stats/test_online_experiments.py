"""Online experiments: against SciPy and statsmodels on unit level, health checks, several variants, looks."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.weightstats import CompareMeans, DescrStatsW

from recsys.display.words import format_p
from recsys.errors import ColumnError, IdTypeError, InputError, UnknownNameError
from recsys.stats.effects import minimal_effect
from recsys.stats.online_experiments import Looks, _sample_ratio, ab
from recsys.stats.results import SampleRatioWarning, SmallSampleWarning, StatisticsWarning
from recsys.stats.sequential import boundaries


@pytest.fixture
def log() -> pd.DataFrame:
    """Several rows per user; variant b converts more, c earns more."""
    rng = np.random.default_rng(0)
    user = np.repeat(np.arange(3000), rng.integers(1, 5, size=3000))
    arm = np.array(["a", "b", "c"])[user % 3]
    n = len(user)
    habit = rng.normal(size=3000)
    views = rng.integers(1, 6, size=n)
    return pd.DataFrame(
        {
            "user": user,
            "arm": arm,
            "bought": (rng.random(n) < 0.05 + 0.05 * (arm == "b")).astype(int),
            "revenue": rng.exponential(2, size=n) + 0.5 * (arm == "c") + habit[user],
            "views": views,
            "clicks": rng.binomial(views, 0.2),
            "before": habit[user],
        }
    )


def per_user(log, column, arm, how="sum") -> np.ndarray:
    return log[log.arm == arm].groupby("user")[column].agg(how).to_numpy(dtype=float)


def test_revenue_is_welchs_test_over_users(log) -> None:
    row = ab(log, unit="user", variant="arm", metric="revenue")["c", "revenue"]
    c, a = per_user(log, "revenue", "c"), per_user(log, "revenue", "a")
    theirs = stats.ttest_ind(c, a, equal_var=False)
    low, high = CompareMeans(DescrStatsW(c), DescrStatsW(a)).tconfint_diff(usevar="unequal")
    np.testing.assert_allclose(
        [row.p_value, row.difference, row.interval.low, row.interval.high],
        [theirs.pvalue, c.mean() - a.mean(), low, high],
        rtol=1e-10,
    )
    assert row.kind == "mean"
    assert (row.n_variant, row.n_control) == (1000, 1000)


def test_a_unit_converts_once(log) -> None:
    row = ab(log, unit="user", variant="arm", metric="bought")["b", "bought"]
    assert row.kind == "conversion"
    assert row.variant_value == pytest.approx(per_user(log, "bought", "b", "max").mean())
    assert str(row.verdict).startswith("higher: +")


def test_ratio_is_the_delta_method_over_users(log) -> None:
    row = ab(log, unit="user", variant="arm", metric="clicks/views")["b", "clicks/views"]
    variances = {}
    for arm in "ab":
        x, y = per_user(log, "clicks", arm), per_user(log, "views", arm)
        ratio = x.sum() / y.sum()
        variances[arm] = (x - ratio * y).var(ddof=1) / y.mean() ** 2 / len(x)
        assert (row.variant_value if arm == "b" else row.control_value) == pytest.approx(ratio)
    width = row.interval.high - row.interval.low
    assert width / (2 * 1.961) == pytest.approx(np.sqrt(sum(variances.values())), rel=1e-3)
    rows_only = stats.ttest_ind(log.clicks[log.arm == "b"], log.clicks[log.arm == "a"])
    assert row.p_value != pytest.approx(rows_only.pvalue)


def test_cuped_saves_what_the_past_explains(log) -> None:
    once = log.groupby("user", as_index=False).agg({"arm": "first", "revenue": "mean", "before": "first"})
    plain = ab(once, unit="user", variant="arm", metric="revenue")["c", "revenue"]
    helped = ab(once, unit="user", variant="arm", metric="revenue", covariate="before")["c", "revenue"]
    assert helped.variance_saved > 0.15
    ratio = (helped.interval.high - helped.interval.low) / (plain.interval.high - plain.interval.low)
    assert ratio**2 == pytest.approx(1 - helped.variance_saved, rel=0.01)
    assert abs(helped.difference - 0.5) < abs(plain.difference - 0.5) + 0.1
    assert helped.control_value == plain.control_value
    same = ab(
        once.assign(before=1.0), unit="user", variant="arm", metric="revenue", covariate="before"
    )["c", "revenue"]  # fmt: skip
    assert (same.variance_saved, same.interval) == (0.0, plain.interval)


def test_multiple_variants_are_corrected(log) -> None:
    result = ab(log, unit="user", variant="arm", metric=["revenue", "bought"], correction="bonferroni")
    assert result.family == "4 comparisons (2 variants x 2 metrics), bonferroni"
    for row in result.rows:
        assert row.adjusted_p == pytest.approx(min(1, 4 * row.p_value))
        assert row.control == "a"
    named = ab(log, unit="user", variant="arm", metric="revenue", control="c")
    assert {r.variant for r in named.rows} == {"a", "b"}


def test_sample_ratio_is_the_chi_square_and_warns(log) -> None:
    result = ab(log, unit="user", variant="arm", metric="revenue").sample_ratio
    assert result.ok
    assert result.p_value == pytest.approx(stats.chisquare([1000, 1000, 1000]).pvalue)
    broken = log[~((log.arm == "b") & (log.user % 5 == 0))]
    with pytest.warns(SampleRatioWarning, match="planned size"):
        bad = ab(broken, unit="user", variant="arm", metric="revenue")
    counts = list(bad.sample_ratio.counts.values())
    assert bad.sample_ratio.p_value == pytest.approx(stats.chisquare(counts).pvalue, rel=1e-9)
    assert str(bad.rows[0].verdict).startswith("not to be trusted")
    planned = ab(broken, unit="user", variant="arm", metric="revenue", shares={"a": 5, "b": 4, "c": 5})
    assert planned.sample_ratio.ok


@pytest.mark.parametrize(("n", "shares"), [(20, (95, 5)), (40, (95, 5)), (200, (99, 1)), (30, (8, 1, 1))])
def test_small_groups_are_called_wrong_once_in_a_thousand(n: int, shares: tuple[int, ...]) -> None:
    """Every split of n units with its probability: the level is that of all splits that are called wrong."""
    names = [f"v{i}" for i in range(len(shares))]
    plan = dict(zip(names, shares, strict=True))
    share = np.array(shares) / sum(shares)
    called_wrong = 0.0
    for first in itertools.product(range(n + 1), repeat=len(shares) - 1):
        sizes = (*first, n - sum(first))
        probability = stats.multinomial.pmf(sizes, n, share) if sizes[-1] >= 0 else 0.0
        if probability > 1e-12:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SampleRatioWarning)
                ratio = _sample_ratio(names, np.repeat(np.arange(len(sizes)), sizes), plan)
            called_wrong += 0.0 if ratio.ok else probability
    assert called_wrong <= 0.001


def test_looking_early_needs_more(log) -> None:
    plain = ab(log, unit="user", variant="arm", metric="bought")["b", "bought"]
    always = ab(log, unit="user", variant="arm", metric="bought", sequential="msprt", expected_effect=0.1)[
        "b", "bought"
    ]
    assert always.sequential_p > plain.p_value
    assert (
        always.sequential_interval.low
        < plain.interval.low
        < plain.interval.high
        < always.sequential_interval.high
    )
    look = ab(log, unit="user", variant="arm", metric="bought", sequential=Looks((0.25, 0.5)))["b", "bought"]
    assert look.boundary == pytest.approx(boundaries((0.25, 0.5), alpha=0.025)[-1])
    assert "boundary" in str(look.verdict)


def test_msprt_holds_at_every_look_and_finds_what_its_default_is_for() -> None:
    """Conversions of 5% and 7% of 4,000 units: the best-tuned mSPRT finds the difference in a third."""
    rng, n, worlds = np.random.default_rng(0), 4000, 200
    names, arm = [f"m{at}" for at in range(worlds)], np.arange(n) % 2

    def share_found(rate: float, looks: int, **how: float) -> float:
        crossed = np.zeros(worlds, dtype=bool)
        bought = rng.random((worlds, n)) < np.where(arm, rate, 0.05)
        for look in range(1, looks + 1):
            part = {"user": np.arange(n), "arm": arm, **dict(zip(names, bought.astype(int), strict=True))}
            part = {name: column[: n * look // looks] for name, column in part.items()}
            found = ab(part, unit="user", variant="arm", metric=names, sequential="msprt", **how)
            crossed |= np.array([row.sequential_p < 0.05 for row in found.rows])
        return float(crossed.mean())

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SmallSampleWarning)
        assert share_found(0.05, 20) <= 0.05
        assert share_found(0.07, 1) > 0.2
        assert share_found(0.07, 1, expected_effect=0.02) < 0.1
        tuned = minimal_effect(n, sd=2.0)
        assert share_found(0.07, 1) > share_found(0.07, 1, expected_effect=tuned) - 0.1


@pytest.mark.parametrize("kind", ["dict", "polars"])
def test_other_frames_give_the_same(log, kind) -> None:
    columns = {name: log[name].to_numpy() for name in log}
    other = columns if kind == "dict" else pytest.importorskip("polars").DataFrame(columns)
    a, b = (ab(f, unit="user", variant="arm", metric="clicks/views") for f in (log, other))
    assert [r.p_value for r in a.rows] == [r.p_value for r in b.rows]


def test_rows_may_come_in_any_order(log) -> None:
    shuffled = log.sample(frac=1, random_state=1)
    a, b = (ab(f, unit="user", variant="arm", metric="revenue") for f in (log, shuffled))
    assert [r.p_value for r in a.rows] == pytest.approx([r.p_value for r in b.rows], rel=1e-10)


def test_a_unit_in_two_variants_is_an_error_or_dropped_with_a_note(log) -> None:
    torn = pd.concat([log, log.iloc[[0]].assign(arm="b")])
    with pytest.raises(InputError, match="1 unit"):
        ab(torn, unit="user", variant="arm", metric="revenue")
    result = ab(torn, unit="user", variant="arm", metric="revenue", mixed="drop")
    assert result.sample_ratio.counts["a"] == 999
    assert "1 of 3000 units" in str(result.notes[0])
    without = ab(log[log.user != 0], unit="user", variant="arm", metric="revenue")
    assert result.rows[0].p_value == pytest.approx(without.rows[0].p_value, rel=1e-12)


def test_few_conversions_warn() -> None:
    frame = {"u": np.arange(100), "v": np.arange(100) % 2, "x": (np.arange(100) < 4).astype(int)}
    with pytest.warns(SmallSampleWarning, match="fewer than 10"):
        ab(frame, unit="u", variant="v", metric="x")


def test_refusals(log) -> None:
    with pytest.raises(ColumnError, match="It has: user"):
        ab(log, unit="user", variant="arm", metric="profit")
    with pytest.raises(InputError, match="at least two variants"):
        ab(log[log.arm == "a"], unit="user", variant="arm", metric="revenue")
    with pytest.raises(InputError, match="fill it with 0"):
        ab(log.assign(revenue=np.nan), unit="user", variant="arm", metric="revenue")
    with pytest.raises(UnknownNameError, match="control"):
        ab(log, unit="user", variant="arm", metric="revenue", control="z")
    with pytest.raises(InputError, match="positive share"):
        ab(log, unit="user", variant="arm", metric="revenue", shares={"a": 1})
    with pytest.raises(InputError, match="missing in a row"):
        ab(log.assign(arm=None), unit="user", variant="arm", metric="revenue")
    with pytest.raises(UnknownNameError, match="msprt"):
        ab(log, unit="user", variant="arm", metric="revenue", sequential="sprt")
    with pytest.raises(UnknownNameError, match="variant and metric"):
        ab(log, unit="user", variant="arm", metric="revenue")["b", "profit"]


def test_an_experiment_prints_and_tabulates(log) -> None:
    result = ab(log, unit="user", variant="arm", metric=["bought", "revenue"])
    text = str(result)
    assert "against" in text
    assert "group sizes" in text
    assert "as planned" in text
    assert len(result.to_frame()) == len(result.rows)
    assert {"lift_low", "verdict"} <= set(result.to_frame().columns)


def test_a_column_of_texts_is_no_metric_and_notes_are_printed(log: pd.DataFrame) -> None:
    with pytest.raises(InputError, match="holds no numbers"):
        ab(log.assign(bought="yes"), unit="user", variant="arm", metric="bought")
    with pytest.warns(SmallSampleWarning):
        result = ab(log.assign(bought=0), unit="user", variant="arm", metric="bought")
    assert "fewer than 10 conversions" in str(result)


def test_a_ratio_of_nothing_and_a_missing_variant_are_errors(log: pd.DataFrame) -> None:
    none = log.assign(views=np.where(log["arm"] == "b", 0, 1), clicks=1)
    with pytest.raises(InputError, match="zero in variant 'b'"):
        ab(none, unit="user", variant="arm", metric="clicks/views")
    torn = log.assign(arm=pd.array([None, *log["arm"][1:]], dtype="string"))
    with pytest.raises(InputError, match="arm is missing"):
        ab(torn, unit="user", variant="arm", metric="bought")


@pytest.mark.parametrize("sequential", [Looks((0.5, 1.0)), "msprt", None])
def test_without_variation_nothing_is_significant(log, sequential) -> None:
    flat = log.assign(flat=1.5)
    result = ab(flat, unit="user", variant="arm", metric=["views", "flat/flat"], sequential=sequential)
    row = result["b", "flat/flat"]
    assert np.isnan(row.adjusted_p)
    assert row.verdict.kind == "no_difference"
    assert np.isfinite(result["b", "views"].adjusted_p)


@pytest.mark.parametrize("sequential", [Looks((0.5, 1.0)), "msprt", None])
def test_one_unit_is_never_significant(log, sequential) -> None:
    few = log[(log.arm == "a") | (log.user == 1)]
    choices = {"unit": "user", "variant": "arm", "metric": "revenue", "covariate": "before"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", StatisticsWarning)
        row = ab(few, **choices, sequential=sequential, shares={"a": 0.999, "b": 0.001})["b", "revenue"]
    assert "no clear difference" in str(row.verdict)
    assert (row.interval.low, row.interval.high) == (-np.inf, np.inf)


def test_a_sequential_verdict_shows_the_sequential_interval(log) -> None:
    choices = {"unit": "user", "variant": "arm", "metric": "revenue"}
    look = ab(log, **choices, sequential=Looks((0.25, 0.5)))["c", "revenue"]
    # Two comparisons share the error; the interval leaves out 0 exactly when |z| passes the boundary.
    bound = boundaries((0.25, 0.5), alpha=0.025)[-1]
    error = (look.interval.high - look.difference) / stats.t.ppf(0.975, 1990)
    assert look.sequential_interval.high - look.difference == pytest.approx(bound * error, rel=1e-3)
    always = ab(log, **choices, sequential="msprt")["c", "revenue"]
    for row in (look, always):
        assert f"[{row.sequential_interval.low:.4g}, {row.sequential_interval.high:.4g}]" in str(row.verdict)


def test_an_arrow_table_and_a_column_with_a_slash(log) -> None:
    arrow = pytest.importorskip("pyarrow")
    expected = ab(log, unit="user", variant="arm", metric="revenue")["c", "revenue"]
    assert ab(arrow.Table.from_pandas(log), unit="user", variant="arm", metric="revenue")[
        "c", "revenue"
    ].p_value == pytest.approx(expected.p_value)
    named = log.rename(columns={"revenue": "revenue/day"})
    row = ab(named, unit="user", variant="arm", metric="revenue/day")["c", "revenue/day"]
    assert (row.kind, row.p_value) == ("mean", expected.p_value)


def test_odd_logs_are_refused_with_a_clear_message(log) -> None:
    choices = {"unit": "user", "variant": "arm", "metric": "revenue"}
    texts = log.assign(user=[str(u) if u % 2 else u for u in log.user])
    with pytest.raises(IdTypeError, match="user holds int and str"):
        ab(texts, **choices)
    with pytest.raises(ColumnError, match=r"name occurs twice.*'revenue'"):
        ab(pd.concat([log, log[["revenue"]]], axis=1), **choices)
    with pytest.raises(InputError, match="the log came as list"):
        ab([1, 2], **choices)
    with pytest.raises(InputError, match="positive share"):
        ab(log, **choices, shares={"a": 1, "b": 1, "c": float("nan")})
    with pytest.raises(UnknownNameError, match="mixed units"):
        ab(log, **choices, mixed="keep")
    torn = pd.concat([log, log[log.user < 3].assign(arm="d")])
    with pytest.raises(InputError, match="no unit of variant 'd'"):
        ab(torn, **choices, mixed="drop")


@pytest.mark.parametrize("given", [{"fractions": [float("nan")]}, {"fractions": [0.5, 1.0], "alpha": 5.0}])
def test_boundaries_refuse_invalid_fractions(given) -> None:
    with pytest.raises(InputError, match=r"fractions|alpha"):
        boundaries(**given)


def test_the_frame_has_the_sequential_columns(log) -> None:
    choices = {"unit": "user", "variant": "arm", "metric": "revenue"}
    for sequential, name in ((Looks((0.25, 0.5)), "boundary"), ("msprt", "sequential_p")):
        result = ab(log, **choices, sequential=sequential)
        frame = result.to_frame()
        assert frame[name].tolist() == [getattr(row, name) for row in result.rows]
        assert frame["sequential_low"].tolist() == [row.sequential_interval.low for row in result.rows]
    assert "sequential_low" not in ab(log, **choices).to_frame()


def test_numbers_are_formatted_as_in_other_verdicts(log) -> None:
    one = ab(log, unit="user", variant="arm", metric="revenue")
    assert one.family == "2 comparisons (2 variants x 1 metric), holm"
    two_arms = log[log.arm != "c"]
    assert ab(two_arms, unit="user", variant="arm", metric="revenue").family == (
        "1 comparison (1 variant x 1 metric), holm"
    )
    row = one.rows[0]
    assert str(row.verdict).endswith(format_p(row.adjusted_p, "holm"))
    watched = ab(log, unit="user", variant="arm", metric="revenue", sequential="msprt").rows[0]
    assert str(watched.verdict).endswith(f"always-valid {format_p(watched.adjusted_p, 'holm')}")
    flat = log.assign(flat=1.5)
    for sequential, text in ((None, "p_holm not defined"), ("msprt", "always-valid p_holm not defined")):
        result = ab(flat, unit="user", variant="arm", metric="flat/flat", sequential=sequential)
        assert str(result.rows[0].verdict).endswith(text)
        assert "nan" not in str(result.rows[0].verdict).rpartition("]")[2]
    look = ab(flat, unit="user", variant="arm", metric="flat/flat", sequential=Looks((0.5, 1.0))).rows[0]
    assert "|z| not defined against a boundary" in str(look.verdict)
