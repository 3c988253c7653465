"""How to compare: one object with every option, checked on creation and printed with the result."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from recsys.errors import InputError, UnknownNameError
from recsys.stats.corrections import CORRECTIONS
from recsys.stats.effects import Effect, cliffs_delta, d_z, glass_delta, hedges_g, pooled_d, rank_biserial
from recsys.stats.inference_results import check_confidence, is_number
from recsys.stats.intervals import METHODS, Method
from recsys.stats.resampling import Progress, Rng, Scheme
from recsys.types import Table

TESTS = ("t", "permutation", "wilcoxon", "sign", "studentised", "bca")
RANK_TESTS = ("wilcoxon", "sign")
EFFECTS: dict[str, Callable[..., Effect]] = {
    "d_z": d_z,
    "d": pooled_d,
    "hedges_g": hedges_g,
    "glass_delta": glass_delta,
    "cliffs_delta": cliffs_delta,
    "rank_biserial": rank_biserial,
}


@dataclass(frozen=True)
class Options:
    """Test, interval, correction and effect; `margin` adds an equivalence test, `rope` a Bayesian posterior.

    `no_worse_than` adds a non-inferiority test: worse by less than this, in the metric's units.

    By default the interval follows the test: a bootstrap test has its own, all others use the t interval.
    `tie` is the dead zone of win/tie/loss and of the sign test. `runs`: how several runs relate.

    `covariates` (numbers per user) and `strata` (groups of users) lower the variance. Their population means
    and shares come from the other users in the same tables, or from `covariate_means` and `stratum_shares`.
    """

    test: str = "t"
    interval: Method | None = None
    correction: str = "holm"
    effect: str = "d_z"
    confidence: float = 0.95
    margin: float | None = None
    no_worse_than: float | None = None
    rope: float | None = None
    tie: float = 0.0
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

    def __post_init__(self) -> None:
        known = {
            "test": TESTS,
            "interval": (*METHODS, None),
            "correction": (*CORRECTIONS, "max-t"),
            "effect": tuple(EFFECTS),
            "runs": ("auto", "seeds", "folds"),
        }
        for name, allowed in known.items():
            if getattr(self, name) not in allowed:
                raise UnknownNameError(
                    name, getattr(self, name), (choice for choice in allowed if choice is not None)
                )
        check_confidence(self.confidence)
        for margin in (self.margin, self.no_worse_than):
            if margin is not None and not (is_number(margin) and margin > 0):
                raise InputError(f"the margin must be positive, got {margin!r}.", hint="One number.")
        if not (is_number(self.tie) and self.tie >= 0):
            raise InputError(f"tie must be zero or a positive number, got {self.tie!r}.")
        for known_values, table in (("covariate_means", "covariates"), ("stratum_shares", "strata")):
            if getattr(self, known_values) is not None and getattr(self, table) is None:
                raise InputError(f"{known_values} was given without {table}.", hint=f"Pass {table}= too.")
        if self.correction == "max-t" and self.test in RANK_TESTS:
            raise InputError(
                f"max-T corrects tests of the mean, which test={self.test!r} is not.",
                hint="Use correction='holm'.",
            )
        if self.adjusts and self.test in RANK_TESTS:
            raise InputError(
                f"test={self.test!r} does not look at the mean, which is what covariates and strata adjust.",
                hint="Use test='t', 'permutation', 'studentised' or 'bca'.",
            )

    @property
    def adjusts(self) -> bool:
        """Whether differences are adjusted for covariates or strata."""
        return self.covariates is not None or self.strata is not None

    @property
    def interval_method(self) -> Method:
        """The method of the interval, after defaults."""
        if self.interval is not None:
            return self.interval
        return "studentised" if self.test == "studentised" else "bca" if self.test == "bca" else "t"


def non_inferiority_margin(options: Options, metric: str) -> tuple[float, float]:
    """The range of differences that are worse by less than `no_worse_than`, or not worse at all."""
    margin = math.inf if options.no_worse_than is None else options.no_worse_than
    return (-math.inf, margin) if metric in options.lower_is_better else (-margin, math.inf)
