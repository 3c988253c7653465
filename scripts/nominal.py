"""Whether every statistical promise holds, by simulation: how often tests, gates and intervals are wrong.

    python scripts/nominal.py rates.jsonl                   2,000 worlds of what decides, 200 of the rest
    python scripts/nominal.py rates.jsonl --worlds 20       a coarse run: 200 and 20
    python scripts/nominal.py rates.jsonl --cells "gate.*hit"   the cells whose name matches
    python scripts/nominal.py rates.jsonl --table           afterwards writes docs/nominal.md from the file

A cell is one procedure in one world with one number of users (or nights). Its draws follow from its name
alone, so cells can be run in any order and again. The file has one line per finished cell; a cell that is
there, from the same source and with as many worlds, is not run again, and no other is written into the page.
The exit status is 1 if a promise does not hold where nothing is documented against it (KNOWN), or is off by
more than is documented.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import os
import re
import sys
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from proofs import ROOT, Finished
from scipy import stats
from scipy.special import ndtr

import recsys
from recsys.comparison.history import Night, ResultHistory
from recsys.debias.policy_values import ESTIMATORS as POLICY_VALUES
from recsys.debias.propensity_metrics import ESTIMATORS as OBSERVED
from recsys.errors import InputError
from recsys.metrics.registry import Request
from recsys.report.decision import decide
from recsys.report.study import make_study
from recsys.stats.bootstrap import Resampler, Units, unit_keys
from recsys.stats.comparison_table import EFFECTS, TESTS
from recsys.stats.corrections import CORRECTIONS, adjust
from recsys.stats.mean_inference import METHODS
from recsys.stats.online_experiments import SAMPLE_RATIO_LEVEL, Looks
from recsys.stats.rank_sets import over_tasks, place_sets, shown_better
from recsys.stats.sampled import METHODS as SAMPLED
from recsys.stats.sampled import estimate_all, estimate_weighted
from recsys.stats.sequential import SPENDING

sys.path.insert(0, str(ROOT / "tests"))
from worlds.metric_values import DISCOUNTS, MARGINALS, SKEWED, Marginal, correlated, evaluation_of

PAGE = ROOT / "docs" / "nominal.md"
SOURCES = [ROOT / "src", ROOT / "tests" / "worlds" / "metric_values.py", Path(__file__).resolve()]
BEGIN, END = "<!-- rates: written by scripts/nominal.py -->", "<!-- end of rates -->"
ALPHA = 0.05
# What people act on, with 100 users or more, is simulated in ten times as many worlds as the rest: at 2,000
# of them the standard error of a rate of 5% is half a point.
DECISIVE = {
    "equal", "at the margin", "alike", "few differ", "rare losses", "never hits", "intervals",
    "groups", "models in groups", "three models", "five models", "boards", "races", "half widths",
}  # fmt: skip
CHANCE = 0.001  # a rate is off if a procedure that holds would show it less often than this
USERS = (30, 100, 300, 1_000, 10_000)

# {name: (what counts as wrong, how often it may happen)}
PROMISES = {
    "default test": ("compare() calls two equal models different", ALPHA),
    "difference": ("the interval of the difference in compare() misses it", ALPHA),
    "lift": ("the interval of the lift in compare() misses it", ALPHA),
    "power": ("compare() finds less than the paired t-test where that test holds (net loss)", 0.01),
    **{test: (f'compare(test="{test}") calls two equal models different', ALPHA) for test in TESTS[1:]},
    **{
        f"difference, {method}": (
            f'the interval of compare(interval="{method}") misses the difference',
            ALPHA,
        )
        for method in METHODS[1:]
    },
    **{
        f"effect, {effect}": (f'the interval of compare(effect="{effect}") misses the effect', ALPHA)
        for effect in EFFECTS
    },
    "rope": ("compare(rope=) gives 97.5% to one of two equal models", ALPHA),
    "covariates": ("the interval of the difference in compare(covariates=) misses it", ALPHA),
    "strata": ("the interval of the difference in compare(strata=) misses it", ALPHA),
    "gate": ("gate() passes a model that is worse by the margin, half of the old value, in units", ALPHA),
    "gate, relative": ('gate() passes a model that is worse by the margin, "20%"', ALPHA),
    "gate power": (
        "gate() passes fewer equal models than a bound of t, 20% hits, margin 10% (net loss)",
        0.06,
    ),
    "no_worse_than": ("compare(no_worse_than=) passes a model that is worse by the margin", ALPHA),
    "margin": ("compare(margin=) calls a model equivalent that is worse by the margin", ALPHA),
    "interval": ("the interval of intervals() misses the mean", ALPHA),
    **{
        f"interval, {method}": (f'the interval of intervals(method="{method}") misses the mean', ALPHA)
        for method in METHODS[1:]
    },
    "aggregate": ("the interval of evaluate(aggregate=) misses the number", ALPHA),
    "gap": ("the interval of gaps() misses the difference of two groups", ALPHA),
    "ahead in groups": ("the card says that of equal models another is ahead in some groups", ALPHA),
    **{
        correction: (f'correction="{correction}" finds something in a family of 6 equal metrics', ALPHA)
        for correction in ("max-t", *CORRECTIONS)
        if correction not in {"none", "bh", "by"}
    },
    **{
        correction: (
            f'correction="{correction}": the part of its findings in 6 metrics that is false',
            ALPHA,
        )
        for correction in ("bh", "by")
    },
    "max-t power": ('correction="max-t" finds less than "holm" in the same family (net loss)', 0.01),
    "gate, 14 looks": (
        "gate(looks=14) passes a model that is worse by the margin on one of 14 nights",
        ALPHA,
    ),
    "pairs": ("pairs() calls two of three equal models different", ALPHA),
    "card": ("the card of a report names one of five equal models", ALPHA),
    "card, wrong": ("the card names another than the best of five models", ALPHA),
    "card, metrics": ("the card names fewer or others with nine more metrics", 0.0),
    "card power": ("the card names the best of five less often than t-tests by Holm (net loss)", 0.01),
    "places": ("rank() gives a model a set of places that lacks its own", ALPHA),
    "places power": ("rank() shows the best alone less often than t-tests by Holm (net loss)", 0.2),
    "Friedman": ("omnibus calls three equal models different", ALPHA),
    "Nemenyi": ("omnibus calls two of three equal models different", ALPHA),
    "runs test": ("compare() of several runs calls two equal models different", ALPHA),
    "runs lift": ("the interval of the lift over several runs misses it", ALPHA),
    "folds test": ("compare() of several folds calls two equal models different", ALPHA),
    "folds lift": ("the interval of the lift over several folds misses it", ALPHA),
    "change points": ("history() reports a change in a series without one", 0.01),
    **{
        f"{promise}{kind}": (f"{what} {whom}at some time", ALPHA)
        for kind, whom in (("", "of users at large "), (", these users", "of the users of the test set "))
        for promise, what in (
            ("stop_when", "stop_when=StopWhen(threshold=) excludes the value"),
            ("against", "stop_when=StopWhen(against=) excludes the difference"),
            ("race", "race() calls one of two models better that are equal by the mean"),
        )
    },
    "stop_when, half width": ("the interval of stop_when=0.02 misses the value of users at large", ALPHA),
    "race power": ("race() of 10,000 users does not name a model with 30% more hits", 0.01),
    "race, users read": ("race() reads more than 1,500 of 10,000 users to name a model with 30% more", 0.2),
    **{
        method: (f"the interval of sampled.estimate() by {method} misses its expected value", ALPHA)
        for method in (*SAMPLED, "weighted")
    },
    **{name: (f"the interval of off_policy() by {name} misses the value", ALPHA) for name in POLICY_VALUES},
    **{
        f"observed, {name}": (f"the interval of debias.evaluate() by {name} misses the value", ALPHA)
        for name in OBSERVED
    },
    "ab test": ("ab() calls two equal variants different", ALPHA),
    "ab interval": ("the interval of ab() misses the difference", ALPHA),
    "ab lift": ("the interval of the lift in ab() misses it", ALPHA),
    "msprt": ('ab(sequential="msprt") calls two equal variants different at one of 10 looks', ALPHA),
    "msprt, 100 looks": (
        'ab(sequential="msprt") calls two equal variants different at one of 100 looks',
        ALPHA,
    ),
    "msprt power": (
        'ab(sequential="msprt") finds less than with the effect that n units detect (net loss)',
        0.05,
    ),
    **{
        name: (f'ab(sequential=Looks(…, "{name}")) calls equal variants different at one of 4 looks', ALPHA)
        for name in SPENDING
    },
    "sample ratio": ("ab() says that groups drawn as planned are not", SAMPLE_RATIO_LEVEL),
}
# What is documented not to keep its rate, how high that may be, and why: promise and world by pattern. The
# tests that are not of the mean reach 100% with enough users.
UNBOUNDED = "nothing bounds the values: the mean hangs on users who were not drawn"
KNOWN = [
    ("wilcoxon|sign", ".*other shape.*", 1.0, "it does not test the mean, and warns"),
    ("default test", "heavy, other shape.*", 0.4, UNBOUNDED),
    ("t|studentised|bca|rope", "heavy, other shape.*", 0.4, UNBOUNDED),
    (
        "default test",
        "ndcg@10, other shape.*",
        0.12,
        "with 100 users or fewer, of whom few gain much; the result warns of the skewness",
    ),
    ("t", "ndcg@10, other shape.*", 0.2, "with 30 users, of whom few gain much; the result warns"),
    ("difference, normal", "hit, 10%", 0.2, "with 30 users, of whom 3 have a hit; the result warns"),
    (
        "gate power",
        "ndcg@10, 80% zeros.*",
        0.1,
        "few values come near the end of the range, and the bound allows for users there at any time",
    ),
    (
        "power",
        "hit.*",
        0.15,
        "of hits, the signs are exact, and the t-test calls up to 8% of equal models different",
    ),
    ("difference|lift|gate|no_worse_than|margin|interval", "heavy, 80% zeros.*", 0.3, UNBOUNDED),
    (
        "difference|lift",
        "(hit, 2%|ndcg@10, 9[05]% zeros).*",
        0.9,
        "it is of the users seen, and few differ; a note says which losses or gains are not excluded",
    ),
    ("ab interval|ab lift", "revenue, 95% zeros", 0.3, UNBOUNDED),
    (
        "gate|difference",
        "gmap@10 of all users",
        0.25,
        "gmap is the exponential of a mean of logarithms: its spread is skewed",
    ),
    (
        "change points",
        re.escape("AR(1) 0.6"),
        0.15,
        "nights depend on each other strongly, and the history says so",
    ),
]


@dataclass
class Rate:
    """How often a procedure was wrong in so many worlds.

    `gained`: it found what its rival did not. `silent`: it gave no answer. `cautioned`: it was wrong, and the
    result said to be careful.
    """

    wrong: int = 0
    worlds: int = 0
    gained: int = 0
    silent: int = 0
    cautioned: int = 0

    @property
    def value(self) -> float:
        return (self.wrong - self.gained) / self.worlds

    def error(self, nominal: float) -> float:
        """The Monte Carlo standard error, not below that of the nominal rate."""
        seen = (self.wrong + self.gained) / self.worlds
        return math.sqrt(max(seen - self.value**2, nominal * (1 - nominal)) / self.worlds)

    def off_by(self, nominal: float) -> float:
        """How far the rate is beyond the nominal one; 0 if chance explains it."""
        if self.gained:
            beyond = self.value > nominal - float(stats.norm.ppf(CHANCE)) * self.error(nominal)
        else:
            beyond = bool(stats.binom.sf(self.wrong - 1, self.worlds, nominal) < CHANCE)
        return self.value - nominal if beyond else 0.0


class Tally(defaultdict[str, Rate]):
    """The rate of each promise of a cell."""

    def __init__(self) -> None:
        super().__init__(Rate)

    def add(self, promise: str, wrong: Iterable[Any], *, silent: Any = 0, cautioned: Any = 0) -> None:
        """Count worlds: whether each was wrong, gave no answer, and was wrong with a caution beside it."""
        flags = np.asarray(list(wrong), dtype=bool)
        rate = self[promise]
        rate.wrong += int(flags.sum())
        rate.worlds += flags.size
        rate.silent += int(np.sum(silent))
        rate.cautioned += int(np.sum(flags & np.asarray(cautioned, dtype=bool)))

    def cover(self, promise: str, intervals: Sequence[Any], truth: float, cautioned: Any = 0) -> None:
        """Count intervals that miss the truth; one without numbers misses nothing and is silent."""
        ends = np.array([(one.low, one.high) for one in intervals], dtype=float)
        misses = (ends[:, 0] > truth) | (truth > ends[:, 1])
        silent = np.isnan(ends).any(axis=1) | ~np.isfinite(ends).any(axis=1)
        self.add(promise, misses, silent=silent, cautioned=cautioned)

    def versus(self, promise: str, ours: Any, theirs: Any) -> None:
        """Count what a rival finds and we do not, and the other way round."""
        self.add(promise, theirs & ~ours)
        self[promise].gained += int(np.sum(ours & ~theirs))


@dataclass(frozen=True)
class Cell:
    """One procedure in one world; `share` is the part of the worlds asked for that it is run in."""

    family: str
    world: str
    n: int
    share: float = 1.0
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.family}: {self.world}, {self.n}"

    def run(self, worlds: int) -> dict[str, Any]:
        """Simulate it in so many worlds; the line that is stored."""
        seed = hashlib.sha256(self.name.encode()).digest()
        rng = np.random.default_rng(np.frombuffer(seed, dtype=np.uint32))
        tally, began = Tally(), time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # cautions are counted where results carry them
            FAMILIES[self.family](tally, rng, worlds, self.n, **self.options)
        return {
            "piece": self.name,
            "family": self.family,
            "world": self.world,
            "n": self.n,
            "worlds": worlds,
            "seconds": round(time.process_time() - began, 2),
            "rates": {name: asdict(rate) for name, rate in tally.items()},
        }

    def worlds(self, asked: int) -> int:
        if self.family in DECISIVE and self.n >= 100:
            return 10 * asked
        return max(int(asked * self.share), min(asked, 20))

    def is_in(self, finished: Finished, asked: int) -> bool:
        """Whether it was run in as many worlds as are asked for."""
        return finished.done.get(self.name, {"worlds": 0})["worlds"] >= self.worlds(asked)


Family = Callable[..., None]
FAMILIES: dict[str, Family] = {}


def family(function: Family) -> Family:
    """A simulation that fills a tally: function(tally, rng, worlds, n, ...)."""
    FAMILIES[function.__name__.replace("_", " ")] = function
    return function


def batches(worlds: int, n: int, most: int = 60) -> Iterator[int]:
    """Sizes that add up to the worlds; a batch is one call of the library, each of its metrics a world."""
    size = max(1, min(most, 200_000 // n))
    for start in range(0, worlds, size):
        yield min(size, worlds - start)


# --- pairs of models ------------------------------------------------------------------------------------


class Design:
    """Which cases the users have, their weights, and whether values depend on either ("telling")."""

    def __init__(self, rng: np.random.Generator, n: int, kind: str = "") -> None:
        self.rng, self.truth_factor = rng, 1.0
        self.clusters = self.weights = self.chance = None
        if kind.startswith("clustered"):
            sizes = np.minimum(rng.zipf(2.0, n), 50)
            self.clusters = np.repeat(np.arange(n), sizes)
            size = np.arange(1, 51)
            pmf = stats.zipf.pmf(size, 2.0)
            pmf[-1] = stats.zipf.sf(49, 2.0)
            heavy, share_of_heavy = sizes[self.clusters] > 2, float(pmf[2:] @ size[2:] / (pmf @ size))
        elif kind.startswith("weighted"):
            self.weights = rng.lognormal(0, 1, n)
            heavy, share_of_heavy = self.weights > 1, float(ndtr(1.0))
        if "telling" in kind:
            self.chance = np.where(heavy, 1.0, 1 / 3)
            self.truth_factor = 1.5 * share_of_heavy + 0.5 * (1 - share_of_heavy)
        self.n = n if self.clusters is None else len(self.clusters)

    def scores(self, worlds: int, correlation: float) -> list[np.ndarray]:
        """Standard normal scores of two models; half of their variance is shared by the cases of a user."""
        scores = correlated(self.rng, (worlds, self.n), correlation)
        if self.clusters is None:
            return scores
        users = correlated(self.rng, (worlds, int(self.clusters[-1]) + 1), correlation)
        return [(a + b[:, self.clusters]) / math.sqrt(2) for a, b in zip(scores, users, strict=True)]

    def evaluations(self, marginals: Sequence[Marginal], scores: Sequence[np.ndarray]) -> list[Any]:
        """The evaluation of each model."""
        kept = 1.0
        if self.chance is not None:
            kept = self.rng.random(scores[0].shape) < self.chance
            marginals = [marginal.times(1.5) for marginal in marginals]
        return [
            evaluation_of(m.metric, m.at(z) * kept, clusters=self.clusters, weights=self.weights)
            for m, z in zip(marginals, scores, strict=True)
        ]


def compared(old: Any, new: Any, **options: Any) -> tuple[list[Any], np.ndarray]:
    """The rows of a comparison of one metric per world, and whether each has a caution."""
    rows = list(recsys.compare({"old": old, "new": new}, "old", correction="none", **options))
    return rows, np.array([any("no lift" not in str(note) for note in row.notes) for row in rows])


def significant(results: Iterable[Any]) -> np.ndarray:
    return np.array([r.p_value <= ALPHA for r in results])


@family
def equal(
    tally: Tally, rng: Any, worlds: int, n: int, *, sides: Any, correlation: float, design: str = ""
) -> None:
    """Two models with the same mean."""
    for size in batches(worlds, n, 4 if design else 60):
        drawn = Design(rng, n, design)
        rows, cautions = compared(*drawn.evaluations(sides, drawn.scores(size, correlation)))
        tally.add("default test", significant(rows), cautioned=cautions)


@family
def different(
    tally: Tally, rng: Any, worlds: int, n: int, *, old: Marginal, correlation: float, design: str = ""
) -> None:
    """A model that is half better than the other."""
    for size in batches(worlds, n, 4 if design else 60):
        drawn = Design(rng, n, design)
        sides = drawn.evaluations([old, old.times(1.5)], drawn.scores(size, correlation))
        rows, cautions = compared(*sides)
        truth = 0.5 * old.mean * drawn.truth_factor
        tally.cover("difference", [row.interval for row in rows], truth, cautions)
        tally.cover("lift", [row.relative_interval for row in rows], 0.5, cautions)
        if not design and not old.tail and n * (1 - old.zeros) >= 60:
            values = [np.array(list(side.per_case.columns.values())) for side in sides]
            tally.versus("power", significant(rows), stats.ttest_rel(*values, axis=1).pvalue <= ALPHA)


@family
def few_differ(tally: Tally, rng: Any, worlds: int, n: int, *, differing: int) -> None:
    """Two models alike but for so many users, who gain or lose a few hundredths."""
    for size in batches(worlds, n):
        change = np.zeros((size, n))
        signs = rng.choice([-1.0, 1.0], (size, differing))
        change[:, :differing] = signs * rng.choice([0.02, 0.03, 0.05, 0.08], (size, differing))
        rows, cautions = compared(*(evaluation_of("ndcg", 0.5 + c) for c in (np.zeros((size, n)), change)))
        tally.add("default test", significant(rows), cautioned=cautions)


@family
def resampled(tally: Tally, rng: Any, worlds: int, n: int, *, sides: Any, correlation: float) -> None:
    """Two models with the same mean, by the tests that resample."""
    for size in batches(worlds, n, 20):
        drawn = Design(rng, n)
        both = drawn.evaluations(sides, drawn.scores(size, correlation))
        for test in TESTS[1:]:
            rows, cautions = compared(*both, test=test, n_resamples=1999, rope=1e-9)
            tally.add(test, significant(rows), cautioned=cautions)
        sure = [row.bayes and max(row.bayes.p_better, row.bayes.p_worse) > 1 - ALPHA / 2 for row in rows]
        tally.add("rope", sure, silent=sum(row.bayes is None for row in rows))


@family
def methods(tally: Tally, rng: Any, worlds: int, n: int, *, old: Marginal) -> None:
    """One model, and one that is half better, by the methods of an interval."""
    for size in batches(worlds, n, 20):
        drawn = Design(rng, n)
        sides = drawn.evaluations([old, old.times(1.5)], drawn.scores(size, 0.8))
        for method in METHODS[1:]:
            found = list(sides[0].intervals(method=method, n_resamples=999).values())
            cautions = np.array([bool(each.notes) for each in found])
            tally.cover(f"interval, {method}", [each.interval for each in found], old.mean, cautions)
            rows, cautions = compared(*sides, interval=method, n_resamples=999)
            tally.cover(f"difference, {method}", [row.interval for row in rows], 0.5 * old.mean, cautions)


@family
def effects(tally: Tally, rng: Any, worlds: int, n: int, *, old: Marginal) -> None:
    """A model that is half better; the truth is the effect among very many users."""
    many = Design(rng, 500_000)
    everybody = many.evaluations([old, old.times(1.5)], many.scores(1, 0.8))
    for size in batches(worlds, n):
        drawn = Design(rng, n)
        sides = drawn.evaluations([old, old.times(1.5)], drawn.scores(size, 0.8))
        for effect in EFFECTS:
            truth = compared(*everybody, effect=effect)[0][0].effect.value
            rows, cautions = compared(*sides, effect=effect)
            tally.cover(f"effect, {effect}", [row.effect.interval for row in rows], truth, cautions)


@family
def adjusted(tally: Tally, rng: Any, worlds: int, n: int, *, old: Marginal) -> None:
    """A model that is half better, for active users more so; the mean activity of all users is known."""
    for size in batches(worlds, n):
        activity = rng.standard_normal(n)
        scores = [0.6 * activity + 0.8 * z for z in correlated(rng, (size, n), 0.8)]
        sides = Design(rng, n).evaluations([old, old.times(1.5)], scores)
        level = dict(enumerate(np.digitize(activity, [-0.5, 0.5]).tolist()))
        shares = dict(enumerate(np.diff(ndtr([-np.inf, -0.5, 0.5, np.inf])).tolist()))
        known = {
            "covariates": {
                "covariates": {"activity": dict(enumerate(activity.tolist()))},
                "covariate_means": {"activity": 0.0},
            },
            "strata": {"strata": level, "stratum_shares": shares},
        }
        for promise, options in known.items():
            rows, cautions = compared(*sides, **options)
            tally.cover(promise, [row.interval for row in rows], 0.5 * old.mean, cautions)


@family
def three_models(tally: Tally, rng: Any, worlds: int, n: int, *, old: Marginal) -> None:
    """Three models with the same distribution."""
    for _ in range(worlds):
        scores = math.sqrt(0.8) * rng.standard_normal(n) + math.sqrt(0.2) * rng.standard_normal((3, n))
        models = {f"model {at}": evaluation_of(old.metric, old.at(z)[None]) for at, z in enumerate(scores)}
        table = recsys.compare(models, "model 0")
        tally.add("pairs", [any(row.adjusted_p <= ALPHA for row in table.pairs())])
        (ranks,) = table.omnibus.values()
        tally.add("Friedman", [ranks.p_value <= ALPHA])
        tally.add("Nemenyi", [min(ranks.pairs.values()) <= ALPHA])


@family
def five_models(tally: Tally, rng: Any, worlds: int, n: int, *, old: Marginal) -> None:
    """Five models with the same distribution, and four beside a better one that most tests can see."""
    better = old.times(1.0 + 3.5 * math.sqrt(old.zeros / (1.0 - old.zeros) / n))
    for world in range(worlds):
        scores = math.sqrt(0.6) * rng.standard_normal(n) + math.sqrt(0.4) * rng.standard_normal((5, n))
        for best in (old, better):
            rows = [m.at(z) for m, z in zip([old] * 4 + [best], scores, strict=True)]
            named = named_by_card([row[None] for row in rows])
            if best is old:
                tally.add("card", [named])
                continue
            tally.add("card, wrong", [named not in ("", "model 4")])
            first, *others = sorted(range(5), key=lambda at: -rows[at].mean())
            p_values = [stats.ttest_rel(rows[first], rows[other]).pvalue for other in others]
            by_holm = first == 4 and max(adjust(p_values)) <= ALPHA
            tally.versus("card power", np.array([named == "model 4"]), np.array([by_holm]))
            if world % 10 == 0:
                more = [np.stack([row, *old.at(rng.standard_normal((9, n)))]) for row in rows]
                tally.add("card, metrics", [named_by_card(more) != named])


@family
def boards(
    tally: Tally, rng: Any, worlds: int, n: int, *, old: Marginal, gains: Sequence[float], tasks: int
) -> None:
    """Models of which each gains by so much, on one task or on several with users of their own."""
    marginals, truth, m = [old.times(gain) for gain in gains], -np.asarray(gains), len(gains)
    for seed in range(worlds):
        rows = []
        for _ in range(tasks):
            scores = math.sqrt(0.6) * rng.standard_normal(n) + math.sqrt(0.4) * rng.standard_normal((m, n))
            values = np.stack([one.at(z) for one, z in zip(marginals, scores, strict=True)])
            rows.append(Units(unit_keys(np.arange(n)), values, np.ones((1, n))))
        units = over_tasks({str(task): row for task, row in enumerate(rows)})
        sets = place_sets(shown_better(units.totals, Resampler(units.keys, 1_000, seed), ALPHA))
        ends = [(1 + np.sum(truth < own), np.sum(truth <= own)) for own in truth]
        lacks = [p.best > low or p.worst < high for p, (low, high) in zip(sets, ends, strict=True)]
        tally.add("places", [any(lacks)])
        if np.sum(truth == truth[0]) == 1:
            variances = sum(np.var(row.totals[:1] - row.totals[1:], axis=1, ddof=1) for row in rows)
            gaps = units.totals[0].sum() - units.totals[1:].sum(axis=1)
            p_values = np.minimum(2.0 * stats.norm.sf(gaps * tasks * np.sqrt(n / variances)), 1.0)
            by_holm = max(adjust(p_values)) <= ALPHA
            tally.versus("places power", np.array([sets[0].worst == 1]), np.array([by_holm]))


def named_by_card(columns: Sequence[np.ndarray]) -> str:
    """The model that the card of a report tells to ship; each has a row per metric. Empty if none."""
    models = {f"model {at}": evaluation_of("ndcg", rows) for at, rows in enumerate(columns)}
    ship, _, name = decide(make_study(models)).heading.partition(" ")
    return name if ship == "Ship" else ""


@family
def at_the_margin(
    tally: Tally, rng: Any, worlds: int, n: int, *, old: Marginal, correlation: float, design: str = ""
) -> None:
    """A model that is worse by exactly the margin."""
    for size in batches(worlds, n, 4 if design else 60):
        drawn = Design(rng, n, design)
        scores = drawn.scores(size, correlation)
        margin = 0.5 * old.mean * drawn.truth_factor
        base, half = drawn.evaluations([old, old.times(0.5)], scores)
        gated(tally, "gate", half, base, margin)
        ask = partial(compared, base, half, no_worse_than=margin, margin=margin)
        found = per_world(base, lambda names, ask=ask: zip(*ask(metrics=names), strict=True))
        for promise, part in (("no_worse_than", "non_inferiority"), ("margin", "equivalence")):
            passed = [one is not None and getattr(one[0], part).p_value <= ALPHA for one in found]
            cautions = [one is not None and one[1] for one in found]
            tally.add(promise, passed, silent=found.count(None), cautioned=cautions)
        base, fifth = drawn.evaluations([old, old.times(0.8)], scores)
        gated(tally, "gate, relative", fifth, base, "20%")


@family
def rare_losses(tally: Tally, rng: Any, worlds: int, n: int, *, lost: float) -> None:
    """Every user moves a little, and a share of the users loses everything: worse by exactly the margin."""
    for size in batches(worlds, n):
        moved = 0.58 + rng.choice([-0.04, 0.0, 0.0, 0.04], (size, n))
        new = np.where(rng.random((size, n)) < lost, 0.0, moved)
        sides = (evaluation_of("ndcg", values) for values in (new, np.full((size, n), 0.58)))
        gated(tally, "gate", *sides, lost * 0.58)


@family
def alike(tally: Tally, rng: Any, worlds: int, n: int, *, old: Marginal, correlation: float) -> None:
    """Two models with the same mean, and a margin of a tenth."""
    for size in batches(worlds, n):
        drawn = Design(rng, n)
        base, new = drawn.evaluations([old, old], drawn.scores(size, correlation))
        values = [np.array(list(side.per_case.columns.values())) for side in (new, base)]
        by_t = stats.ttest_1samp(values[0] - 0.9 * values[1], 0.0, axis=1, alternative="greater").pvalue
        checks = recsys.gate(new, base, dict.fromkeys(new, "10%")).checks
        tally.versus("gate power", np.array([check.passed for check in checks]), by_t <= ALPHA)


@family
def never_hits(tally: Tally, rng: Any, worlds: int, n: int, *, old: Marginal) -> None:
    """A model that finds nothing, against a rare metric with half of its value as the margin."""
    for size in batches(worlds, n):
        values = old.at(rng.standard_normal((size, n)))
        base, nothing = evaluation_of(old.metric, values), evaluation_of(old.metric, np.zeros((size, n)))
        gated(tally, "gate", nothing, base, 0.5 * old.mean)


def gated(tally: Tally, promise: str, new: Any, old: Any, margin: Any) -> None:
    """Count the worlds whose gate lets the new model pass."""
    checks = per_world(new, lambda names: recsys.gate(new, old, dict.fromkeys(names, margin)).checks)
    passed = [check is not None and check.passed for check in checks]
    cautions = [check is not None and bool(check.notes) for check in checks]
    tally.add(promise, passed, silent=checks.count(None), cautioned=cautions)


def per_world(worlds: Iterable[str], ask: Callable[[list[str]], Iterable[Any]]) -> list[Any]:
    """What is answered to each world; None where a margin is refused, since no model could fail it."""
    names = list(worlds)
    try:
        return list(ask(names))
    except InputError:
        if len(names) == 1:
            return [None]
    half = len(names) // 2
    return [*per_world(names[:half], ask), *per_world(names[half:], ask)]


@family
def intervals(tally: Tally, rng: Any, worlds: int, n: int, *, old: Marginal, design: str = "") -> None:
    """One model."""
    for size in batches(worlds, n, 4 if design else 60):
        drawn = Design(rng, n, design)
        (one,) = drawn.evaluations([old], drawn.scores(size, 0.0)[:1])
        found = list(one.intervals().values())
        cautions = [bool(each.notes) for each in found]
        tally.cover(
            "interval", [each.interval for each in found], old.mean * drawn.truth_factor, np.array(cautions)
        )


@family
def families(tally: Tally, rng: Any, worlds: int, n: int, *, sparse: bool) -> None:
    """Six metrics of two models; `sparse`: one of them hardly ever differs."""
    plain, rare = MARGINALS["ndcg@10, 70% zeros"], Marginal("ndcg", 1 - 3 / n)
    for _ in range(worlds):
        shared = rng.standard_normal((2, 1, n))
        scores = math.sqrt(0.7) * shared + math.sqrt(0.3) * rng.standard_normal((2, 6, n))
        for factor in (1.0, 1.0 + 10 / math.sqrt(n)):
            sides = [[plain] * 6, [plain.times(factor), *[plain] * 5]]
            if sparse:
                sides = [[*side[:5], rare] for side in sides]
            old, new = (
                evaluation_of("ndcg", np.stack([m.at(z) for m, z in zip(side, rows, strict=True)]))
                for side, rows in zip(sides, scores, strict=True)
            )
            found = {}
            for correction in ("max-t", *CORRECTIONS[1:]):
                options = {"correction": correction, "n_resamples": 999}
                table = recsys.compare({"old": old, "new": new}, "old", **options)
                found[correction] = np.array([row.adjusted_p <= ALPHA for row in table])
            if factor == 1:
                for correction in set(found) - {"bh", "by"}:
                    tally.add(correction, [found[correction].any()])
            else:
                tally.versus("max-t power", found["max-t"][:1], found["holm"][:1])
                for correction in ("bh", "by"):  # one finding by chance is false as often as it is of all
                    which = np.flatnonzero(found[correction])
                    tally.add(correction, [len(which) and rng.choice(which) > 0])


@family
def several_runs(tally: Tally, rng: Any, worlds: int, n: int, *, old: Marginal, runs: int) -> None:
    """Models trained several times: users, models, runs and chance each have a part in the scores."""
    for size in batches(worlds, n * runs):
        users = rng.standard_normal((2, size, 1, 1, n)) * np.array([0.6, 0.3])[:, None, None, None, None]
        parts = users[0] + math.sqrt(1 - 0.6**2 - 0.3**2 - 0.15**2) * rng.standard_normal((size, 2, runs, n))
        scores = (
            parts
            + 0.15 * rng.standard_normal((size, 2, runs, 1))
            + 0.3 * rng.standard_normal((size, 2, 1, n))
        )
        for promise, new in (("runs test", old), ("runs lift", old.times(1.5))):
            sides = [
                [evaluation_of(old.metric, m.at(scores[:, side, run])) for run in range(runs)]
                for side, m in enumerate((old, new))
            ]
            rows, cautions = compared(*sides)
            if promise == "runs test":
                tally.add(promise, significant(rows), cautioned=cautions)
            else:
                tally.cover(promise, [row.relative_interval for row in rows], 0.5, cautions)


@family
def recipes(
    tally: Tally, rng: Any, worlds: int, n: int, *, old: Marginal, runs: int, draws: tuple[bool, bool]
) -> None:
    """Two recipes with the same mean over seeds, which spread by 5% where a recipe draws."""
    for size in batches(worlds, n * runs):
        users = math.sqrt(0.8) * rng.standard_normal((size, n))
        sides: list[list[Any]] = []
        for drawn in draws:
            factors = 1.0 + 0.05 * drawn * rng.standard_normal((runs if drawn else 1, size))
            scores = users + math.sqrt(0.2) * rng.standard_normal((*factors.shape, n))
            values = [
                np.stack([old.times(factor).at(z) for factor, z in zip(of_run, own, strict=True)])
                for of_run, own in zip(factors, scores, strict=True)
            ]
            sides.append([evaluation_of(old.metric, run) for run in values])
        rows, cautions = compared(*sides)
        tally.add("runs test", significant(rows), cautioned=cautions)


@family
def gate_on_nights(
    tally: Tally, rng: Any, worlds: int, n: int, *, old: Marginal, correlation: float, accumulate: bool
) -> None:
    """A model that is worse by a tenth, the margin, asked about on 14 nights of n users."""
    for size in batches(worlds, 14 * n):
        seen, passed = [np.empty((size, 0))] * 2, np.zeros(size, dtype=bool)
        for _ in range(14):
            scores = correlated(rng, (size, n), correlation)
            tonight = [m.at(z) for m, z in zip((old, old.times(0.9)), scores, strict=True)]
            seen = [np.concatenate(both, axis=1) for both in zip(seen, tonight, strict=True)]
            base, worse = (evaluation_of(old.metric, rows) for rows in (seen if accumulate else tonight))
            margins = dict.fromkeys(worse, 0.1 * old.mean)
            passed |= [check.passed for check in recsys.gate(worse, base, margins, looks=14).checks]
        tally.add("gate, 14 looks", passed)


@family
def cross_validation(tally: Tally, rng: Any, worlds: int, n: int, *, old: Marginal, folds: int) -> None:
    """Models trained once for each part of the users, on the others: what they learnt is alike."""
    for size in batches(worlds, n):
        shared = rng.standard_normal((size, 2, 1, 1)) / math.sqrt(folds)
        learnt = shared + math.sqrt(1 - 1 / folds) * rng.standard_normal((size, 2, folds, 1))
        each = n // folds
        users = rng.standard_normal((size, 1, folds, each))
        own = rng.standard_normal((size, 2, folds, each))
        scores = 0.8 * users + 0.05 * learnt + math.sqrt(1 - 0.8**2 - 0.05**2) * own
        for promise, new in (("folds test", old), ("folds lift", old.times(1.5))):
            sides = [
                [
                    evaluation_of(old.metric, m.at(scores[:, side, at]), first_id=at * each)
                    for at in range(folds)
                ]
                for side, m in enumerate((old, new))
            ]
            rows, cautions = compared(*sides)
            if promise == "folds test":
                tally.add(promise, significant(rows), cautioned=cautions)
            else:
                tally.cover(promise, [row.relative_interval for row in rows], 0.5, cautions)


@family
def aggregates(
    tally: Tally, rng: Any, worlds: int, n: int, *, aggregate: str, truth: float, design: str
) -> None:
    """Squares of uniform values, by another number than their mean."""
    for size in batches(worlds, n, 4 if design else 60):
        drawn = Design(rng, n, design)
        options = {"clusters": drawn.clusters, "weights": drawn.weights, "aggregate": aggregate}
        one = evaluation_of("ndcg", ndtr(drawn.scores(size, 0.0)[0]) ** 2, **options)
        tally.cover("aggregate", [each.interval for each in one.intervals().values()], truth)


# --- numbers of all users together ----------------------------------------------------------------------


def shelves(rng: np.random.Generator, taste: np.ndarray, length: int, power: float = 1.0) -> np.ndarray:
    """Items of each user, of 300 with a long tail; a user likes a fifth of them more than the others."""
    items = np.arange(300)
    liking = -0.8 * np.log1p(items) + 1.5 * (items % 5 == taste[:, None])
    return np.argsort(-power * liking - rng.gumbel(size=liking.shape), axis=1)[:, :length]


@family
def whole(tally: Tally, rng: Any, worlds: int, n: int, *, metric: str) -> None:
    """Two models alike and one that shows fewer items; the truth is what such test sets have on average."""
    found = []
    for _ in range(worlds):
        taste, lengths = rng.integers(0, 5, n), rng.integers(1, 6, n).tolist()
        wanted = shelves(rng, taste, 5).tolist()
        truth = {
            user: items[:length] for user, (items, length) in enumerate(zip(wanted, lengths, strict=True))
        }
        options = {"catalogue": range(300), "conventions": {"average": "pooled", "f1_of": "means"}}
        models = [dict(enumerate(shelves(rng, taste, 10, power).tolist())) for power in (1.0, 1.0, 1.5)]
        found.append([recsys.evaluate(lists, truth, [metric], **options) for lists in models])
    means = np.array([[one[metric] for one in world] for world in found]).mean(axis=0)
    worse = 0 if (means[2] > means[0]) == (Request.parse(metric).metric.better == "higher") else 2
    for one, twin, other in found:
        estimate = one.intervals()[metric]
        tally.cover("interval", [estimate.interval], means[0], np.array([bool(estimate.notes)]))
        rows, cautions = compared(one, twin)
        tally.add("default test", significant(rows), cautioned=cautions)
        rows, cautions = compared(one, other)
        tally.cover("difference", [row.interval for row in rows], means[2] - means[0], cautions)
        new, old = (one, other) if worse == 0 else (other, one)
        gated(tally, "gate", new, old, abs(means[2] - means[0]))


@family
def ratings(tally: Tally, rng: Any, worlds: int, n: int, *, metric: str) -> None:
    """Predictions whose errors differ from user to user."""
    truth = {"rmse": math.exp(0.3**2), "mae": math.sqrt(2 / math.pi) * math.exp(0.3**2 / 2)}[metric]
    for _ in range(worlds):
        user = np.repeat(np.arange(n), 1 + rng.poisson(4, n))
        rating = rng.normal(3, 1, len(user))
        error = rng.lognormal(0, 0.3, n)[user] * rng.standard_normal(len(user))
        columns = {"user": user, "item": np.arange(len(user)), "rating": rating, "prediction": rating + error}
        estimate = recsys.evaluate_ratings(pd.DataFrame(columns), metrics=[metric]).intervals()[metric]
        tally.cover("interval", [estimate.interval], truth, np.array([bool(estimate.notes)]))


@family
def groups(tally: Tally, rng: Any, worlds: int, n: int, *, hits: tuple[float, ...]) -> None:
    """Groups of users with these chances of a hit; the data choose the best and the worst."""
    member = np.arange(n) % len(hits)
    for _ in range(worlds):
        lists, wanted = ranked(rng, n, np.array(hits)[member], 1000)
        truth, by = dict(enumerate(wanted[:, None].tolist())), dict(enumerate(member.tolist()))
        gap = recsys.evaluate(dict(enumerate(lists.tolist())), truth, ["ndcg@10"], by=by).gaps()["ndcg@10"]
        low, high = gap.interval or (math.nan, math.nan)
        difference = float(DISCOUNTS.mean()) * (hits[gap.best] - hits[gap.worst])
        tally.add("gap", [low > difference or high < difference], silent=math.isnan(low))


@family
def models_in_groups(tally: Tally, rng: Any, worlds: int, n: int, *, models: int, among: int) -> None:
    """Equal models and groups of users, in each of which any of the models could be ahead."""
    by = dict(enumerate((np.arange(n) % among).tolist()))
    for _ in range(worlds):
        wanted = dict(enumerate(rng.integers(0, 1000, (n, 1)).tolist()))
        found = rng.random((models, n)) < 0.3
        results = {
            f"model {m}": recsys.evaluate(
                {u: wanted[u] if found[m, u] else [-1] for u in wanted}, wanted, ["hit@1"], by=by
            )
            for m in range(models)
        }
        changes = decide(make_study(results)).changes
        tally.add("ahead in groups", [any("another model is ahead" in line for line in changes)])


# --- nights, looks, samples, logs, experiments ----------------------------------------------------------


def series(rng: np.random.Generator, noise: str, n: int) -> np.ndarray:
    """Values of nights without a change."""
    if noise == "flips of one item in 1,000":
        return (900 + rng.integers(0, 2, n)) / 1000
    if noise == "heavy, t(3)":
        return 0.3 + 0.01 * rng.standard_t(3, n)
    values = rng.standard_normal(n)
    if noise.startswith("AR(1)"):
        lag = float(noise.split()[1])
        for night in range(1, n):
            values[night] = lag * values[night - 1] + math.sqrt(1 - lag**2) * values[night]
    return 0.3 + 0.01 * values


@family
def nights(tally: Tally, rng: Any, worlds: int, n: int, *, noise: str) -> None:
    """Nights whose own errors are not known."""
    for _ in range(worlds):
        values = series(rng, noise, n).tolist()
        found = ResultHistory(
            [
                Night(f"{at:03}", "model", "ndcg@10", value, value, value, 1000, f"{at}.json")
                for at, value in enumerate(values)
            ]
        )
        tally.add("change points", [bool(found.changes())])


def ranked(rng: np.random.Generator, n: int, hits: Any, items: int) -> tuple[np.ndarray, np.ndarray]:
    """Lists of ten items and one relevant item of each user, which is in `hits` of the lists."""
    wanted = rng.integers(0, items, n)
    lists = (wanted[:, None] + 1 + rng.permuted(np.tile(np.arange(10), (n, 1)), axis=1)) % items
    found = rng.random(n) < hits
    lists[found, rng.integers(0, 10, n)[found]] = wanted[found]
    return lists, wanted


def listed(place: np.ndarray, wanted: np.ndarray) -> dict[int, list[int]]:
    """Lists of ten items that hold the relevant item at these places; from 10 on they do not."""
    lists = (wanted[:, None] + 1 + np.arange(10)) % 1000
    lists[place < 10, place[place < 10]] = wanted[place < 10]
    return dict(enumerate(lists.tolist()))


def misses(stopped: Mapping[str, Any], metric: str, truth: float) -> bool:
    """Whether the interval of a result that stopped early misses the truth, by more than rounding."""
    ends = stopped["intervals"][metric]
    return not ends["low"] - 1e-12 <= truth <= ends["high"] + 1e-12


@family
def looks(tally: Tally, rng: Any, worlds: int, n: int, *, metric: str, hits: float) -> None:
    """A threshold at the mean, and two models with the same mean: of users at large, or of these users."""
    for world in range(worlds):
        found = rng.random((2, n)) < hits
        wanted, places = rng.integers(0, 1000, n), np.where(found, rng.integers(0, 10, (2, n)), 10)
        prices = rng.lognormal(0, 1.5, 1000)
        options = {"items": {"price": dict(enumerate(prices))}} if metric.startswith("value") else {}
        at_large = hits * float(prices.mean() if options else DISCOUNTS.mean())
        truth, shown = dict(enumerate(wanted[:, None].tolist())), listed(places[0], wanted)
        here = recsys.evaluate(shown, truth, [metric], **options)[metric]
        # Among these users, the other model's means are equal if its hits are at the same places.
        others = {"users at large": places[1], "these users": rng.permutation(places[0])}
        for about, mean in (("users at large", at_large), ("these users", here)):
            kind, how = "" if about == "users at large" else f", {about}", {"rng": world, "about": about}
            stop = recsys.StopWhen(threshold={metric: mean}, **how)
            stopped = recsys.evaluate(shown, truth, [metric], stop_when=stop, **options).notes["stopped"]
            tally.add(f"stop_when{kind}", [misses(stopped, metric, mean)])
            if options:  # the price of a hit depends on the user
                continue
            models = {"one": shown, "other": listed(others[about], wanted)}
            legs = recsys.race(models, truth, [metric], stop_when=recsys.StopWhen(**how)).legs
            tally.add(f"race{kind}", [any(leg.verdict.kind != "undecided" for leg in legs)])
            stop = recsys.StopWhen(against=recsys.evaluate(models["other"], truth, [metric]), **how)
            stopped = recsys.evaluate(shown, truth, [metric], stop_when=stop).notes["stopped"]
            tally.add(f"against{kind}", [misses(stopped, metric, 0.0)])


@family
def half_widths(tally: Tally, rng: Any, worlds: int, n: int, *, hits: float) -> None:
    """Users are read until the interval is as narrow as asked, or until there are no more."""
    for world in range(worlds):
        place = np.where(rng.random(n) < hits, rng.integers(0, 10, n), 10)
        wanted = rng.integers(0, 1000, n)
        truth, stop = dict(enumerate(wanted[:, None].tolist())), recsys.StopWhen(0.02, rng=world)
        stopped = recsys.evaluate(listed(place, wanted), truth, ["ndcg@10"], stop_when=stop).notes["stopped"]
        tally.add("stop_when, half width", [misses(stopped, "ndcg@10", hits * float(DISCOUNTS.mean()))])


@family
def races(tally: Tally, rng: Any, worlds: int, n: int, *, hits: float, factor: float) -> None:
    """Two models that see the same users alike, one of which has more hits."""
    for world in range(worlds):
        scores = correlated(rng, (1, n), 0.8)
        wanted, places = rng.integers(0, 1000, n), rng.integers(0, 10, (2, n))
        shares = (hits, hits * factor)
        old, new = (
            listed(np.where(ndtr(z[0]) < share, place, 10), wanted)
            for z, share, place in zip(scores, shares, places, strict=True)
        )
        truth, stop = dict(enumerate(wanted[:, None].tolist())), recsys.StopWhen(rng=world)
        found = recsys.race({"old": old, "new": new}, truth, ["ndcg@10"], stop_when=stop)
        tally.add("race power", [found.winner["ndcg@10"] != "new"])
        tally.add("race, users read", [found.n_seen["new"] > 1_500])


@family
def sampled_ranks(tally: Tally, rng: Any, worlds: int, n: int, *, zipf: float, names: Sequence[str]) -> None:
    """Ranks among 99 of 3,706 items; the truth is the mean of the estimates, as bias is not covered."""
    chances = np.arange(1, 3707) ** -zipf
    chances /= chances.sum()
    found = []
    for _ in range(worlds):
        ranks = rng.choice(3706, n, p=chances)
        above = rng.hypergeometric(ranks, 3705 - ranks, 99)
        found.append(estimate_all(above + 1, 99, 3706, ["ndcg@10"], methods=names)["ndcg@10"])
    for name in names:
        truth = float(np.mean([one[name].value for one in found]))
        tally.cover(name, [one[name] for one in found], truth)


@family
def weighted_samples(tally: Tally, rng: Any, worlds: int, n: int, *, power: float) -> None:
    """99 of 1,000 items for each case, popular ones more often; the truth as for ranks, above."""
    chances = np.arange(1, 1001) ** -power
    chances /= chances.sum()
    place, found = rng.permutation(1000), []  # the place of each item, whatever its popularity
    for _ in range(worlds):
        drawn = rng.choice(1000, (n, 99), p=chances)
        above = place[drawn] < rng.geometric(0.005, n)[:, None]
        options = {"replacement": True}
        found.append(estimate_weighted(above, chances[drawn], 1001, "ndcg@10", **options))
    tally.cover("weighted", found, float(np.mean([one.value for one in found])))


@family
def observations(tally: Tally, rng: Any, worlds: int, n: int, *, least: float) -> None:
    """Users with five relevant items of 100; popular ones are shown more, and observed up to always."""
    chance = np.linspace(1.0, least, 100)
    found = []
    for _ in range(worlds):
        shown = np.argsort(-np.linspace(2, 0, 100) - rng.gumbel(size=(n, 100)), axis=1)[:, :10]
        wanted = np.argsort(rng.random((n, 100)), axis=1)[:, :5]
        seen = rng.random((n, 5)) < chance[wanted]
        truth = {
            user: items[mask].tolist() for user, (items, mask) in enumerate(zip(wanted, seen, strict=True))
        }
        found.append(
            recsys.debias.evaluate(
                dict(enumerate(shown.tolist())), {u: i for u, i in truth.items() if i}, ["recall@10"],
                propensities=dict(enumerate(chance)), n_relevant=dict.fromkeys(truth, 5), estimators=OBSERVED,
            )
        )  # fmt: skip
    for name in OBSERVED:  # the first and the third are of the items observed, and so is their truth
        estimates = [one["recall@10", name] for one in found]
        mean = float(np.mean([estimate.value for estimate in estimates]))
        truth = mean if name in {"naive", "snips"} else 0.1
        cautions = np.array([bool(estimate.notes) for estimate in estimates])
        tally.cover(f"observed, {name}", [estimate.interval for estimate in estimates], truth, cautions)


@family
def decisions(
    tally: Tally,
    rng: Any,
    worlds: int,
    n: int,
    *,
    rewards: float,
    clusters: bool = False,
    rarest: float = 0.1,
) -> None:
    """A log of five actions made by another policy; `clusters`: users of five rows with rewards alike.

    `rarest`: how often the log shows what the policy shows most.
    """
    logging = np.array([0.5 - rarest, 0.25, 0.15, 0.1, rarest])
    policy = np.array([0.1, 0.1, 0.15, 0.25, 0.4])
    chances = rewards * np.array([0.5, 0.75, 1.0, 1.25, 1.5])
    truth = float(policy @ chances)
    for _ in range(worlds):
        action = rng.choice(5, n, p=logging)
        while len(np.unique(action)) < 5:  # what the log never shows is refused
            action = rng.choice(5, n, p=logging)
        scores = rng.standard_normal(n)
        if clusters:
            scores = (scores + np.repeat(rng.standard_normal(-(-n // 5)), 5)[:n]) / math.sqrt(2)
        rewarded = (ndtr(scores) < chances[action]).astype(int)
        columns = {"action": action, "reward": rewarded, "propensity": logging[action]}
        log = pd.DataFrame({**columns, "user": np.arange(n) // 5})
        options = {"clusters": "user"} if clusters else {}
        values = recsys.debias.off_policy(log, dict(enumerate(policy)), **options)
        for name in POLICY_VALUES:
            found = values[name]
            value = float(logging @ chances) if name == "logged" else truth
            tally.cover(name, [found.interval], value, np.array([bool(found.notes)]))


def visits(
    rng: np.random.Generator, worlds: int, n: int, kind: str, factor: float = 1.0
) -> tuple[dict[str, Any], list[str], float]:
    """The log of an experiment, its metrics (one per world), and the mean of the first variant.

    The mean of the second variant is `factor` times as large.
    """
    variant = np.arange(n) % 2
    times = np.where(variant, factor, 1.0)
    log: dict[str, Any] = {"user": np.arange(n), "variant": variant}
    names = [f"m{at}" for at in range(worlds)]
    if kind == "clicks/views":
        views = 1 + rng.poisson(4, (worlds, n))
        clicks = rng.binomial(views, rng.uniform(0.1, 0.3, (worlds, n)) * times)
        log |= {f"{name}v": row for name, row in zip(names, views, strict=True)}
        log |= dict(zip(names, clicks, strict=True))
        return log, [f"{name}/{name}v" for name in names], 0.2
    if kind == "spending, a covariate":
        log["covariate"] = rng.exponential(2.0, n)
        values, mean = times * (log["covariate"] + rng.exponential(1.0, (worlds, n))), 3.0
    elif kind.startswith("conversion"):
        mean = float(kind.split()[1][:-1]) / 100
        values = (rng.random((worlds, n)) < mean * times).astype(int)
    else:
        buyers, scores = Marginal("value", 0.95, tail=1.5), rng.standard_normal((worlds, n))
        values, mean = np.where(variant, buyers.times(factor).at(scores), buyers.at(scores)), buyers.mean
    return log | dict(zip(names, values, strict=True)), names, mean


def analysed(log: Mapping[str, Any], metrics: Sequence[str], **options: Any) -> Sequence[Any]:
    """The rows of an experiment, one for each world."""
    covariate = "covariate" if "covariate" in log else None
    columns = {"unit": "user", "variant": "variant", "covariate": covariate}
    return recsys.ab(log, metric=metrics, correction="none", **columns, **options).rows


def looked_at(log: Mapping[str, Any], metrics: Sequence[str], n: int, n_looks: int, **how: Any) -> np.ndarray:
    """Which metrics differ by mSPRT at one of so many looks, the last of them at all n units."""
    crossed = np.zeros(len(metrics), dtype=bool)
    for look in range(1, n_looks + 1):
        part = {name: column[: n * look // n_looks] for name, column in log.items()}
        rows = analysed(part, metrics, sequential="msprt", **how)
        crossed |= np.array([row.sequential_p is not None and row.sequential_p <= ALPHA for row in rows])
    return crossed


@family
def always_valid(tally: Tally, rng: Any, worlds: int, n: int, *, mean: str, factor: float) -> None:
    """Conversions looked at 100 times where variants are equal, and 5 times where they are not."""
    tuned = recsys.stats.minimal_effect(n, sd=2.0)
    for size in batches(worlds, n):
        log, metrics, _ = visits(rng, size, n, f"conversion {mean}")
        tally.add("msprt, 100 looks", looked_at(log, metrics, n, 100))
        log, metrics, _ = visits(rng, size, n, f"conversion {mean}", factor)
        found = [looked_at(log, metrics, n, 5, **how) for how in ({}, {"expected_effect": tuned})]
        tally.versus("msprt power", *found)


@family
def experiment(tally: Tally, rng: Any, worlds: int, n: int, *, kind: str) -> None:
    """Two variants that are the same, and two of which one has half more; n units together."""
    for size in batches(worlds, n):
        log, metrics, mean = visits(rng, size, n, kind, 1.5)
        rows = analysed(log, metrics)
        cautions = np.array([bool(row.notes) for row in rows])
        tally.cover("ab interval", [row.interval for row in rows], 0.5 * mean, cautions)
        tally.cover("ab lift", [row.lift_interval for row in rows], 0.5, cautions)
        log, metrics, _ = visits(rng, size, n, kind)
        rows = analysed(log, metrics)
        tally.add("ab test", significant(rows), cautioned=[bool(row.notes) for row in rows])
        tally.add("msprt", looked_at(log, metrics, n, 10))


@family
def planned_looks(tally: Tally, rng: Any, worlds: int, n: int, *, kind: str) -> None:
    """Two variants that are the same, looked at four times."""
    for size in batches(worlds, n, 10):  # boundaries share the rate of a call among its rows
        log, metrics, _ = visits(rng, size, n, kind)
        for spending in SPENDING:
            crossed = np.zeros(size, dtype=bool)
            for look in range(1, 5):
                part = {name: column[: n * look // 4] for name, column in log.items()}
                plan = Looks(tuple(np.arange(1, look + 1) / 4), spending)
                rows = analysed(part, metrics, sequential=plan, confidence=1 - ALPHA * size)
                crossed |= np.array([row.verdict.kind != "no_difference" for row in rows])
            tally.add(spending, crossed)


@family
def assignment(tally: Tally, rng: Any, worlds: int, n: int) -> None:
    """Units assigned to one of two variants by chance."""
    for _ in range(worlds):
        log = {"user": np.arange(n), "variant": rng.integers(0, 2, n), "bought": np.arange(n) % 3 % 2}
        found = recsys.ab(log, unit="user", variant="variant", metric="bought")
        tally.add("sample ratio", [not found.sample_ratio.ok])


# --- the grid -------------------------------------------------------------------------------------------


CORRELATIONS = (0.2, 0.8, 0.99)
BOARDS = {
    "8 equal models": (1.0,) * 8,
    "20 equal models": (1.0,) * 20,
    "8 models that spread": tuple(1.6 - 0.1 * at for at in range(8)),
    "20 models that spread": tuple(1.6 - 0.04 * at for at in range(20)),
    "4 of 8 models at the top": (1.3,) * 4 + (1.0, 0.9, 0.8, 0.7),
}


def pairs(n: int, share: float) -> Iterator[Cell]:
    """Two models on n users: every marginal, other shapes, clusters and weights."""
    for name, marginal in MARGINALS.items():
        yield Cell("intervals", name, n, share, {"old": marginal})
        for correlation in CORRELATIONS:
            world, options = f"{name}, correlation {correlation}", {"correlation": correlation}
            yield Cell("equal", world, n, share, {"sides": [marginal] * 2, **options})
            yield Cell("different", world, n, share, {"old": marginal, **options})
            yield Cell("at the margin", world, n, share / 2, {"old": marginal, **options})
    for name, sides in SKEWED.items():
        for correlation in CORRELATIONS:
            options = {"sides": sides, "correlation": correlation}
            yield Cell("equal", f"{name}, correlation {correlation}", n, share, options)
    for name in ("ndcg@10, 70% zeros", "ndcg@10, 90% zeros", "hit, 10%"):
        for design in ("clustered", "clustered, telling", "weighted", "weighted, telling"):
            world, options = f"{name}, {design}", {"design": design, "correlation": 0.8}
            marginal = MARGINALS[name]
            yield Cell("intervals", world, n, share, {"old": marginal, "design": design})
            yield Cell("equal", world, n, share, {"sides": [marginal] * 2, **options})
            yield Cell("different", world, n, share, {"old": marginal, **options})
            yield Cell("at the margin", world, n, share / 2, {"old": marginal, **options})


def resampling(n: int) -> Iterator[Cell]:
    """The tests that resample, and a model that never hits."""
    for name in ("ndcg@10, 90% zeros", "hit, 2%"):
        for correlation in CORRELATIONS[1:]:
            options = {"sides": [MARGINALS[name]] * 2, "correlation": correlation}
            yield Cell("resampled", f"{name}, correlation {correlation}", n, 0.5, options)
    for name, sides in SKEWED.items():
        options = {"sides": sides, "correlation": 0.8}
        yield Cell("resampled", f"{name}, correlation 0.8", n, 0.5, options)
    for differing in (6, 12, 19, 20, 40):
        if n in {100, 1_000}:
            yield Cell("few differ", f"{differing} users differ", n, 1.0, {"differing": differing})
    for lost in (0.01, 0.003):
        yield Cell("rare losses", f"all move a little, {lost:.1%} lose everything", n, 1.0, {"lost": lost})
    if n == 1_000:
        for name, marginal in (
            ("hit, 20%", Marginal("hit", 0.8)),
            ("ndcg@10, 80% zeros", Marginal("ndcg", 0.8, tuple(DISCOUNTS))),
        ):
            for correlation in (0.8, 0.95):
                options = {"old": marginal, "correlation": correlation}
                yield Cell("alike", f"{name}, correlation {correlation}", n, 1.0, options)
    rare = {"old": MARGINALS["hit, 2%"]}
    yield Cell("never hits", "hit, 2%, against a model that never hits", n, 1.0, rare)
    for name in ("ndcg@10, 70% zeros", "ndcg@10, 90% zeros", "hit, 10%"):
        yield Cell("methods", name, n, 0.5, {"old": MARGINALS[name]})


def several(n: int) -> Iterator[Cell]:
    """Several metrics, several runs."""
    for sparse in (False, True):
        world = "ndcg@10, 70% zeros" + (", one metric with 3 hits" if sparse else "")
        yield Cell("families", world, n, 0.5, {"sparse": sparse})
    for name in ("ndcg@10, 70% zeros", "ndcg@10, 90% zeros"):
        for runs in (2, 3, 5):
            options = {"old": MARGINALS[name], "runs": runs}
            yield Cell("several runs", f"{name}, {runs} runs", n, 1.0, options)
        for draws, who in (((True, True), "both draw"), ((False, True), "one draws")):
            for runs in (2, 3, 5):
                options = {"old": MARGINALS[name], "runs": runs, "draws": draws}
                yield Cell("recipes", f"{name}, {runs} seeds that spread by 5%, {who}", n, 1.0, options)
        options = {"old": MARGINALS[name]}
        for folds in (5, 10):
            yield Cell("cross validation", f"{name}, {folds} folds", n, 1.0, {**options, "folds": folds})
        yield Cell("five models", name, n, 2.0, options)
        for kind in ("effects", "adjusted", "three models"):
            yield Cell(kind, name, n, 0.5 if kind == "three models" else 1.0, options)
    for aggregate, truth in (("median", 0.25), ("p90", 0.81), ("trimmed(0.1)", 0.91 / 3)):
        for design in ("", "clustered") if aggregate[0] == "t" else ("", "clustered", "weighted"):
            world, options = f"{aggregate} {design}".strip(), {"aggregate": aggregate, "design": design}
            yield Cell("aggregates", world, n, 1.0, options | {"truth": truth})
    yield from grouped(n)
    for metric in ("rmse", "mae"):
        yield Cell("ratings", f"{metric} of ratings", n, 1.0, {"metric": metric})


def grouped(n: int) -> Iterator[Cell]:
    """Groups of users."""
    for hits in ((0.4, 0.5), (0.02, 0.05)):
        world = f"two groups with hits of {hits[0]:.0%} and {hits[1]:.0%}"
        yield Cell("groups", world, n, 1.0, {"hits": hits})
    for among, hit in ((8, 0.3), (8, 0.02), (20, 0.3)) if n >= 1_000 else ((8, 0.3),):
        yield Cell("groups", f"{among} groups with hits of {hit:.0%}", n, 1.0, {"hits": (hit,) * among})
    for models, among in ((2, 8), (5, 8), (5, 20)) if n >= 1_000 else ((2, 4),):
        options = {"models": models, "among": among}
        yield Cell("models in groups", f"{models} equal models, {among} groups", n, 0.25, options)


def ranked_boards(n: int) -> Iterator[Cell]:
    """Boards of one data set and of four."""
    for name in ("ndcg@10, 70% zeros", "ndcg@10, 90% zeros"):
        for what, gains in BOARDS.items():
            for tasks in (1, 4) if len(gains) == 8 else (1,):
                world = f"{name}, {what}" + (", 4 data sets" if tasks > 1 else "")
                yield Cell("boards", world, n, 1.0, {"old": MARGINALS[name], "gains": gains, "tasks": tasks})


def together(n: int) -> Iterator[Cell]:
    """Numbers of all users together."""
    for metric, what in (
        ("recall@10", "pooled"), ("f1@10", "of means"), ("gmap@10", "of all users"),
        ("coverage@10", "of 300 items"), ("gini@10", "of 300 items"), ("entropy@10", "of 300 items"),
    ):  # fmt: skip
        share = 0.25 if n == 1_000 or metric in {"gini@10", "entropy@10"} else 1.0
        yield Cell("whole", f"{metric} {what}", n, share, {"metric": metric})


def others() -> Iterator[Cell]:
    """Nights, looks and samples."""
    for noise in ("normal", "flips of one item in 1,000", "heavy, t(3)", "AR(1) 0.3", "AR(1) 0.6"):
        for n in (5, 7, 8, 20, 60, 120):
            yield Cell("nights", noise, n, 1.0, {"noise": noise})
    for name, old in (
        ("ndcg@10, 70% zeros", MARGINALS["ndcg@10, 70% zeros"]),
        ("hit, 50%", Marginal("hit", 0.5)),
    ):
        for accumulate, users in ((False, "fresh users"), (True, "users accumulate")):
            options = {"old": old, "correlation": 0.8, "accumulate": accumulate}
            yield Cell("gate on nights", f"{name}, {users}", 500, 0.5, options)
    for metric, hits in (("dcg@10", 0.01), ("dcg@10", 0.003), ("ndcg@10", 0.01), ("value@10", 0.2)):
        share = 2.0 if metric == "ndcg@10" else 0.25
        yield Cell("looks", f"{metric}, {hits:.1%} hits", 2_000, share, {"metric": metric, "hits": hits})
    yield Cell("looks", "ndcg@10, 20.0% hits", 2_000, 2.0, {"metric": "ndcg@10", "hits": 0.2})
    yield Cell("looks", "ndcg@10, 20.0% hits", 10_000, 0.5, {"metric": "ndcg@10", "hits": 0.2})
    for n, share in ((1_000, 2.0), (10_000, 0.5)):
        yield Cell("half widths", "ndcg@10, 20% hits", n, share, {"hits": 0.2})
    yield Cell("races", "ndcg@10, 20% hits, +30%", 10_000, 0.5, {"hits": 0.2, "factor": 1.3})
    for zipf in (0.7, 1.2):
        for n, share, names in ((300, 1.0, SAMPLED[:-1]), (1_000, 0.1, ["mle"]), (2_000, 1.0, SAMPLED[:-1])):
            options = {"zipf": zipf, "names": names}
            yield Cell("sampled ranks", f"ranks of Zipf {zipf}", n, share, options)
    for power in (0.5, 1.0):
        yield Cell("weighted samples", f"popularity of power {power}", 1_000, 0.5, {"power": power})


def logs() -> Iterator[Cell]:
    """What another policy did, what was observed, and experiments."""
    for n in (300, 2_000):
        for rewards in (0.01, 0.25):
            yield Cell("decisions", f"rewards of {rewards:.0%}", n, 1.0, {"rewards": rewards})
        options = {"rewards": 0.1, "rarest": 0.02}
        yield Cell("decisions", "rewards of 10%, few decisions weigh most", n, 1.0, options)
        options = {"rewards": 0.25, "clusters": True}
        yield Cell("decisions", "rewards of 25%, users of 5 rows", n, 1.0, options)
        for least in (0.5, 0.1):
            world = f"items observed with a chance of {least} or more"
            yield Cell("observations", world, n, 0.5, {"least": least})
    kinds = ("conversion 2%", "conversion 10%", "clicks/views", "spending, a covariate", "revenue, 95% zeros")
    for n in (100, 1_000, 10_000):
        for kind in kinds:
            yield Cell("experiment", kind, n, 0.5, {"kind": kind})
        for kind in kinds[1:3]:
            yield Cell("planned looks", kind, n, 0.5, {"kind": kind})
        yield Cell("assignment", "two variants", n)
    for n in (2_000, 20_000):
        yield Cell("always valid", "conversion 5%, +20%", n, 2.0, {"mean": "5%", "factor": 1.2})


def grid() -> list[Cell]:
    """Every cell, in the order of the page."""
    return [
        *(cell for n in USERS for cell in pairs(n, 0.25 if n > 1000 else 1.0)),
        *(cell for n in USERS[:4] for cell in resampling(n)),
        *(cell for n in (100, 1_000) for cell in several(n)),
        *(cell for n in (300, 3_000) for cell in ranked_boards(n)),
        *(cell for n in (300, 1_000) for cell in together(n)),
        *others(),
        *logs(),
    ]


# --- running and reading --------------------------------------------------------------------------------


def simulate(cells: Sequence[Cell], finished: Finished, *, worlds: int, jobs: int) -> int:
    """Run what is not finished yet and keep it, cell by cell; how many ended in an error."""
    left = [cell for cell in cells if not cell.is_in(finished, worlds)]
    failed = 0
    with ProcessPoolExecutor(jobs) as pool:
        # The large ones first, so that no worker is left alone with one at the end.
        futures = {
            pool.submit(c.run, c.worlds(worlds)): c
            for c in sorted(left, key=lambda c: -c.n * c.worlds(worlds))
        }
        for at, future in enumerate(as_completed(futures), 1):
            progress = f"{at}/{len(left)} {futures[future].name}"
            if future.exception():
                print(f"{progress}: {future.exception()!r}", flush=True)
                failed += 1
                continue
            line = future.result()
            finished.add(line)
            for promise, rate in line["rates"].items():
                off = Rate(**rate).off_by(PROMISES[promise][1])
                if off:
                    print(f"{progress}: {promise} is off by {100 * off:.1f} points", flush=True)
    return failed


def known(promise: str, world: str) -> tuple[float, str]:
    """How high the rate may be in this world, and why it is not what was promised; no reason if it is."""
    for promises, worlds, ceiling, why in KNOWN:
        if re.fullmatch(promises, promise) and re.fullmatch(worlds, world):
            return ceiling, why
    return PROMISES[promise][1], ""


def verdict(rates: Mapping[int, Rate | None], nominal: float, ceiling: float = 1.0, why: str = "") -> str:
    """Whether a row of the table holds, where it does not, and why it need not."""
    ran = {n: rate for n, rate in rates.items() if rate is not None}
    off = {n: rate.off_by(nominal) for n, rate in ran.items()}
    words = []
    if any(off.values()):
        parts = [f"{100 * value:.1f} at {n:,}" for n, value in off.items() if value]
        words.append(f"off by {', '.join(parts)}")
        wrong = sum(ran[n].wrong for n, value in off.items() if value)
        cautioned = sum(ran[n].cautioned for n, value in off.items() if value)
        if cautioned:
            words.append(f"{cautioned / wrong:.0%} of these with a caution")
        if why:
            words.append(f"documented up to {ceiling:.0%}: {why}")
        if why and any(rate.off_by(ceiling) for rate in ran.values()):
            words.append("it is more than that")
    elif len(ran) == len(rates):
        words.append("holds")
        silent = [n for n, rate in ran.items() if rate.silent > rate.worlds / 2]
        if silent:
            words.append(f"mostly no answer at {', '.join(f'{n:,}' for n in silent)}")
    if len(ran) < len(rates):
        words.append(f"not run at {', '.join(f'{n:,}' for n, rate in rates.items() if rate is None)}")
    return "; ".join(words)


def table(lines: Iterable[Mapping[str, Any]], missing: Iterable[Cell] = ()) -> str:
    """All promises in short; then one section per promise, one row per world, one column per size."""
    rates: dict[str, dict[str, dict[int, Rate | None]]] = defaultdict(lambda: defaultdict(dict))
    promises: dict[str, set[str]] = defaultdict(set)
    for line in lines:
        for promise, rate in line["rates"].items():
            rates[promise][line["world"]][line["n"]] = Rate(**rate)
            promises[line["family"]].add(promise)
    for cell in missing:  # what it would have told is what the others of its family tell
        for promise in promises[cell.family]:
            rates[promise][cell.world][cell.n] = None
    short = [
        "| promise, and what breaks it | promised at most | seen at most | holds in |",
        "|---|---|---|---|",
    ]
    sections = []
    for promise, (wrong, nominal) in PROMISES.items():
        if promise not in rates:
            continue
        rows = {world: dict(sorted(row.items())) for world, row in rates[promise].items()}
        sizes = sorted({n for row in rows.values() for n in row})
        every = [rate for row in rows.values() for rate in row.values() if rate is not None]
        fewest, most = min(rate.worlds for rate in every), max(rate.worlds for rate in every)
        count = f"{fewest:,} to {most:,}" if most > fewest else f"{most:,}"
        words = {world: verdict(row, nominal, *known(promise, world)) for world, row in rows.items()}
        held = sum(text.startswith("holds") for text in words.values())
        worst, limit = max(rate.value for rate in every), f"{100 * nominal:g}%"
        cells = [
            f"[{promise}](#{slug(promise)}): {wrong}",
            limit,
            f"{100 * worst:.1f}%",
            f"{held} of {len(rows)} worlds",
        ]
        short.append(f"| {' | '.join(cells)} |")
        unit = "nights" if promise == "change points" else "users"
        sections += [
            "",
            f"## {promise}",
            "",
            f"How often, in percent, {wrong}: at most {100 * nominal:g}. {count} test sets for each entry.",
            "",
            f"| world | {' | '.join(f'{n:,} {unit}' for n in sizes)} | |",
            f"|---|{'---|' * len(sizes)}---|",
        ]
        for world, row in rows.items():
            entries = {
                n: f"{100 * rate.value:.1f} ± {100 * rate.error(nominal):.1f}" if rate else "not run"
                for n, rate in row.items()
            }
            cells = [world, *(entries.get(n, "") for n in sizes), words[world]]
            sections.append(f"| {' | '.join(cells if words[world][0] == 'h' else map(bold, cells))} |")
    return "\n".join([BEGIN, "", *short, *sections, "", END])


def slug(promise: str) -> str:
    """The anchor of its heading."""
    return re.sub(r"[^\w -]", "", promise.lower()).replace(" ", "-")


def bold(text: str) -> str:
    return f"**{text}**" if text else ""


def write_table(lines: Sequence[Mapping[str, Any]], missing: Sequence[Cell]) -> None:
    """Put the rates into the page, and all promises in short into the page on statistics."""
    text = table(lines, missing)
    short = text.split("\n## ")[0].removesuffix(END).replace("](#", f"]({PAGE.name}#")
    for page, content in ((PAGE, text), (PAGE.with_name("statistics.md"), f"{short.rstrip()}\n\n{END}")):
        head, rest = page.read_text(encoding="utf-8").split(BEGIN)
        page.write_text(head + content + rest.split(END)[1], encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("file", type=Path, help="the JSON lines of finished cells")
    parser.add_argument("--cells", default="", help="run the cells whose name matches this pattern")
    parser.add_argument(
        "--worlds", type=int, default=200, help="worlds of a cell; of one that decides, ten times"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--table", action="store_true", help="write docs/nominal.md from the file")
    arguments = parser.parse_args()
    cells = [cell for cell in grid() if re.search(arguments.cells, cell.name)]
    if not cells:
        parser.error(f"no cell matches {arguments.cells!r}")
    finished = Finished(arguments.file, SOURCES)
    failed = simulate(cells, finished, worlds=arguments.worlds, jobs=arguments.jobs)
    lines, missing = [], []
    for cell in grid():
        if cell.is_in(finished, arguments.worlds):
            lines.append(finished.done[cell.name])
        else:
            missing.append(cell)
    if arguments.table and missing and arguments.cells:
        print(f"the pages are left as they are: {len(missing)} cells have not been run")
    elif arguments.table:
        write_table(lines, missing)
    count: Counter[str] = Counter()
    for line in (line for line in lines if re.search(arguments.cells, line["piece"])):
        for promise, seen in line["rates"].items():
            rate, (ceiling, _) = Rate(**seen), known(promise, line["world"])
            off = rate.off_by(PROMISES[promise][1])
            count["holds" if not off else "off" if rate.off_by(ceiling) else "documented"] += 1
    print(
        f"{len(cells)} cells: {count['holds']} rates hold, {count['documented']} are off as documented, "
        f"{count['off']} are off, {failed} cells ended in an error"
    )
    return int(count["off"] + failed > 0)


if __name__ == "__main__":
    sys.exit(main())
