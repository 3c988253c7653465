"""A comparison: the options it was made with, one row per model and metric, the table and its columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any

from recsys.display.words import merged
from recsys.errors import InputError, NotDefinedError, Phrase, UnknownNameError, check_choice
from recsys.records.arrays import PValue, Table
from recsys.records.checks import is_number
from recsys.records.facts import Note, Verdict
from recsys.stats.bootstrap import Progress, Rng, Scheme
from recsys.stats.corrections import CORRECTIONS
from recsys.stats.effects import (
    Effect,
    cliffs_delta,
    d_z,
    glass_delta,
    hedges_g,
    minimal_effect,
    pooled_d,
    rank_biserial,
    users_needed,
)
from recsys.stats.margins import BayesResult, EquivalenceResult
from recsys.stats.mean_inference import METHODS, Inference, Method
from recsys.stats.results import Interval, check_confidence
from recsys.stats.runs import RunsResult
from recsys.stats.sign_flips import METHOD as FLIPS

Triple = tuple[str, str, str]
Columns = dict[str, list[Any]]
TESTS = ("permutation", "t", "wilcoxon", "sign", "studentised", "bca")
RANK_TESTS = ("wilcoxon", "sign")
EFFECTS: dict[str, Callable[..., Effect]] = {
    "d_z": d_z,
    "d": pooled_d,
    "hedges_g": hedges_g,
    "glass_delta": glass_delta,
    "cliffs_delta": cliffs_delta,
    "rank_biserial": rank_biserial,
}
_EFFECT_WORDS = {
    "d_z": "the mean difference in standard deviations of the differences",
    "d": "the difference in standard deviations, of both models together",
    "hedges_g": "the difference in standard deviations, of both models together and without their bias",
    "glass_delta": "the difference in standard deviations of the baseline",
    "cliffs_delta": "how much more often a value of the model is above one of the baseline than below",
    "rank_biserial": "the ranks of the users won less those of the users lost, of all",
}
_ROW_FIELDS = (
    "model", "baseline", "metric", "value", "baseline_value", "difference", "standard_error", "relative",
    "statistic", "p_value", "adjusted_p", "wins", "ties", "losses", "n_cases", "n_units", "test", "verdict",
)  # fmt: skip
_ROW_PARTS = {
    "family": "family", "low": "interval.low", "high": "interval.high",
    "own_low": "own_interval.low", "own_high": "own_interval.high",
    "effect": "effect.value", "effect_low": "effect.interval.low", "effect_high": "effect.interval.high",
    "effect_label": "effect.label",
    "relative_low": "relative_interval.low", "relative_high": "relative_interval.high",
}  # fmt: skip
# What a row says of users, whether it has one run of each model or several.
OF_USERS = ("effect", "wins", "ties", "losses", "n_cases", "n_units")
_UNTESTED = Verdict("no_difference", "")
# Equivalence has no column of its own: it is part of the verdict.
_HEADINGS = {
    "non_inferiority_p": "p, no worse", "p_worse": "P(worse)", "p_equal": "P(equal)", "p_better": "P(better)",
}  # fmt: skip


@dataclass(frozen=True)
class Options:
    """Test, interval, correction and effect; `margin` adds an equivalence test, `rope` a Bayesian posterior.

    `no_worse_than` adds a non-inferiority test: worse by less than this, in the metric's units.

    The test is that of sign flips ("permutation"), which tends to t. By default the interval follows the
    test: sign flips and bootstraps have their own, all others use the t interval. `headline` is the metric
    that decides (the first by default): its rows are one family of the correction, all others another.
    `tie` is the dead zone of win/tie/loss and of the sign test. `runs`: how several runs relate.

    `covariates` (numbers per user) and `strata` (groups of users) lower the variance. Their population means
    and shares come from the other users in the same tables, or from `covariate_means` and `stratum_shares`.
    """

    test: str = "permutation"
    interval: Method | None = None
    correction: str = "holm"
    effect: str = "d_z"
    confidence: float = 0.95
    margin: float | None = None
    no_worse_than: float | None = None
    rope: float | None = None
    tie: float = 0.0
    headline: str | None = None
    lower_is_better: frozenset[str] = frozenset()
    runs: str = "auto"
    test_over_train: float | None = None
    n_resamples: int = 10_000
    scheme: Scheme = "auto"
    rng: Rng = 0
    progress: Progress | None = None
    covariates: Table | None = None
    covariate_means: Mapping[str, float] | None = None
    strata: Table | None = None
    stratum_shares: Mapping[Any, float] | None = None
    missing: str = "group"

    def __post_init__(self) -> None:
        known = {
            "test": TESTS,
            "interval": (*METHODS[1:], None),  # differences are tested by the units seen
            "correction": (*CORRECTIONS, "max-t"),
            "effect": tuple(EFFECTS),
            "runs": ("auto", "seeds", "folds"),
            "missing": ("group", "drop", "error"),
        }
        for name, allowed in known.items():
            if getattr(self, name) is not None or None not in allowed:
                check_choice(name, getattr(self, name), filter(None, allowed))
        check_confidence(self.confidence)
        for margin in (self.margin, self.no_worse_than):
            if margin is not None and not (is_number(margin) and margin > 0):
                raise InputError(f"the margin must be positive, got {margin!r}.", hint="One number.")
        if not (is_number(self.tie) and self.tie >= 0):
            raise InputError(f"tie must be zero or a positive number, got {self.tie!r}.")
        for known_values, table in (("covariate_means", "covariates"), ("stratum_shares", "strata")):
            given = getattr(self, known_values)
            if given is not None and getattr(self, table) is None:
                raise InputError(f"{known_values} was given without {table}.", hint=f"Pass {table}= too.")
            if given is not None and not (isinstance(given, Mapping) and all(map(is_number, given.values()))):
                raise InputError(f"{known_values} came as {given!r}.", hint="Pass {name: number}.")
        if self.correction == "max-t" and self.test in RANK_TESTS:
            raise InputError(
                Phrase("max-T corrects tests of the mean, which {compare.test=} is not.", test=self.test),
                hint=Phrase("Use {compare.correction='holm'}."),
            )
        if self.adjusts and self.test in RANK_TESTS:
            raise InputError(
                Phrase("{compare.test=} does not look at the mean, which ", test=self.test)
                + "is what covariates and strata adjust.",
                hint=Phrase("Use {compare.test='t'}, permutation, studentised or bca."),
            )

    @property
    def adjusts(self) -> bool:
        """Whether differences are adjusted for covariates or strata."""
        return self.covariates is not None or self.strata is not None

    @property
    def tests_margins(self) -> bool:
        """Whether a margin or a region of practical equivalence was given."""
        return not (self.margin is None and self.no_worse_than is None and self.rope is None)

    @property
    def interval_method(self) -> str:
        """The method of the interval, after defaults."""
        if self.interval is not None:
            return self.interval
        if self.test == "permutation":
            return FLIPS
        return self.test if self.test in ("studentised", "bca") else "t"


@dataclass(frozen=True)
class Row:
    """One model against the baseline on one metric; `difference` is model minus baseline.

    `found` is what is known about it: its estimate, own interval, test and notes, which also have names here.
    `relative` is the lift over the baseline's mean. `interval` and `relative_interval` hold together with
    those of all rows of the `family` ("headline" or "secondary") that p is corrected over, and exclude 0
    where the verdict does; the pair's own is `own_interval`. Wins, ties and losses count units; a win is
    better. `variance_saved` is the share of the difference's variance that covariates and strata removed; NaN
    without covariates and strata, or where the metric is not adjusted. `group`: the users it is about.
    """

    model: str
    baseline: str
    metric: str
    value: float
    baseline_value: float
    found: Inference
    interval: Interval
    relative: float
    relative_interval: Interval
    effect: Effect
    wins: int
    ties: int
    losses: int
    n_cases: int
    n_units: int
    adjusted_p: float = math.nan
    verdict: Verdict = _UNTESTED
    equivalence: EquivalenceResult | None = None
    non_inferiority: EquivalenceResult | None = None
    bayes: BayesResult | None = None
    runs: RunsResult | None = None
    variance_saved: float = math.nan
    family: str = "headline"
    group: Any = None

    difference = property(attrgetter("found.estimate.value"))
    standard_error = property(attrgetter("found.estimate.standard_error"))
    own_interval = property(attrgetter("found.interval"))
    notes = property(attrgetter("found.notes"))
    test = property(attrgetter("found.method"))
    statistic = property(attrgetter("found.statistic"))
    p_value = property(attrgetter("found.p_value"))

    def minimal_effect(self, *, power: float = 0.8, alpha: float = 0.05) -> float:
        """The smallest difference that this many users with this spread detect with the given power."""
        return minimal_effect(self.n_units, sd=self._standard_deviation(), alpha=alpha, power=power)

    def users_needed(
        self, difference: float | None = None, *, power: float = 0.8, alpha: float = 0.05
    ) -> int | None:
        """How many users detect this difference (default: the one seen); None for a difference of 0."""
        if not self.effect.name:
            raise NotDefinedError(
                f"{self.metric} is not a mean over users, so more users change what is estimated."
            )
        effect = self.difference if difference is None else difference
        return (
            users_needed(abs(effect), sd=self._standard_deviation(), alpha=alpha, power=power)
            if effect
            else None
        )

    def _standard_deviation(self) -> float:
        if self.runs is not None:
            raise NotDefinedError(
                "more users do not lower the spread between runs, so users alone cannot be planned with.",
                hint="Compare one run of each model, or plan the runs.",
            )
        if not self.standard_error > 0 or self.n_units < 2:
            raise NotDefinedError(
                f"{self.metric} does not vary between users here, so there is nothing to plan with."
            )
        return float(self.standard_error * math.sqrt(self.n_units))


@dataclass(frozen=True)
class ComparisonTable:
    """All rows, the families that p-values are corrected over, and the cases each model lacks.

    A higher value of a metric `beyond_accuracy` is not better in itself: its verdict is higher or lower.
    `chosen`: the best of so many models is compared with the others, 0 if the pairs were named.
    """

    rows: tuple[Row, ...]
    families: str
    options: Options
    missing: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    beyond_accuracy: frozenset[str] = frozenset()
    chosen: int = 0

    @property
    def family(self) -> str:
        """The families, and how p-values are corrected over them."""
        return f"{self.families}, {self.options.correction}"

    def __getitem__(self, key: tuple[str, str]) -> Row:
        """The first row of (model, metric)."""
        for row in self.rows:
            if (row.model, row.metric) == key:
                return row
        raise UnknownNameError("model and metric", key, (f"{r.model}, {r.metric}" for r in self.rows))

    def ranking(self, metric: str | None = None) -> tuple[str, ...]:
        """Models by their value on a metric (default: the first one), best first."""
        name = metric or self.options.headline or self.rows[0].metric
        values = {r.baseline: r.baseline_value for r in self.rows if r.metric == name}
        values |= {r.model: r.value for r in self.rows if r.metric == name}
        ordered = sorted(values, key=lambda model: values[model], reverse=True)
        return tuple(reversed(ordered) if name in self.options.lower_is_better else ordered)


def display_columns(table: ComparisonTable) -> Columns:
    """The columns a reader sees, verdict last."""
    rows = table.rows
    columns: Columns = {
        "model": [r.model for r in rows],
        "metric": [r.metric for r in rows],
        "value": [r.value for r in rows],
        "against": [f"{r.baseline} {r.baseline_value:.4f}" for r in rows],
        "won/tied/lost": [f"{r.wins:,}/{r.ties:,}/{r.losses:,}" if r.effect.name else "-" for r in rows],
    }
    if table.options.adjusts:
        columns["variance saved"] = [
            "-" if math.isnan(r.variance_saved) else f"{r.variance_saved:.1%}" for r in rows
        ]
    requested = _margin_and_rope_columns(rows)
    for name, heading in _HEADINGS.items():
        if name in requested:
            columns[heading] = [PValue(value) for value in requested[name]]
    return columns | {"verdict": _shown_verdicts(table)}


def _shown_verdicts(table: ComparisonTable) -> list[Verdict]:
    return [shown_verdict(r, is_beyond_accuracy=r.metric in table.beyond_accuracy) for r in table.rows]


def shown_verdict(row: Row, *, is_beyond_accuracy: bool) -> Verdict:
    """The verdict of a row; "higher" or "lower" where a higher value is not better in itself."""
    if row.verdict.kind in ("better", "worse") and is_beyond_accuracy:
        return replace(row.verdict, kind="higher" if row.difference > 0 else "lower")
    return row.verdict


def columns_by_metric(table: ComparisonTable) -> tuple[list[str], Columns]:
    """The metric of each row, and the columns a reader sees: metric by metric, the best model first.

    A baseline that all others are compared with has a row of its own; of several pairs, each is a row.
    """
    columns = display_columns(table)
    metrics = columns.pop("metric")
    place = {(r.model, r.metric): number for number, r in enumerate(table.rows)}
    against = {(r.metric, r.baseline, r.baseline_value) for r in table.rows}
    if len(against) > len(set(metrics)) or len(place) < len(table.rows):
        order = sorted(range(len(metrics)), key=lambda row: [*dict.fromkeys(metrics)].index(metrics[row]))
        return [metrics[row] for row in order], {
            n: [cells[row] for row in order] for n, cells in columns.items()
        }
    del columns["against"]
    sections: list[str] = []
    ordered: Columns = {name: [] for name in columns}
    for metric, baseline, value in sorted(against, key=lambda one: metrics.index(one[0])):
        own_row = {"model": baseline, "value": value, "verdict": "baseline"}
        for model in table.ranking(metric):
            row = place.get((model, metric))
            for name, cells in columns.items():
                ordered[name].append(own_row.get(name, "") if row is None else cells[row])
            sections.append(metric)
    return sections, ordered


def footnotes(table: ComparisonTable) -> list[str]:
    """The family of the correction, what the words mean, the notes of the table, each note of a row once."""
    names = dict.fromkeys(row.effect.name for row in table.rows if row.effect.name)
    words = [f"{name}: {_EFFECT_WORDS[table.options.effect]}" for name in names]
    if table.options.correction != "none":
        together = any(row.interval.confidence > table.options.confidence for row in table.rows)
        what = f"p_{table.options.correction}{' and intervals' if together else ''}"
        words.append(f"{what}: corrected for all comparisons of the family")
    return [
        table.family,
        *(["; ".join(words)] if words else []),
        *map(str, table.notes),
        *merged(note for row in table.rows for note in row.notes),
    ]


def number_columns(table: ComparisonTable) -> Columns:
    """All numbers of all rows, by name."""
    rows = table.rows
    columns: Columns = {name: [getattr(r, name) for r in rows] for name in _ROW_FIELDS}
    columns["verdict"] = [str(verdict) for verdict in _shown_verdicts(table)]
    columns |= {name: list(map(attrgetter(part), rows)) for name, part in _ROW_PARTS.items()}
    if table.options.adjusts:
        columns["variance_saved"] = [r.variance_saved for r in rows]
        columns["notes"] = ["; ".join(map(str, r.notes)) for r in rows]
    return columns | _margin_and_rope_columns(rows)


def _margin_and_rope_columns(rows: Sequence[Row]) -> Columns:
    """The columns that margin=, no_worse_than= and rope= add; no posterior where a metric is not a mean."""
    columns: Columns = {
        f"{name}_p": [getattr(r, name).p_value for r in rows]
        for name in ("equivalence", "non_inferiority")
        if any(getattr(r, name) is not None for r in rows)
    }
    if any(r.bayes is not None for r in rows):
        for name in ("p_worse", "p_equal", "p_better"):
            columns[name] = [math.nan if r.bayes is None else getattr(r.bayes, name) for r in rows]
    return columns
