"""How to compare: one value that holds every choice, checked when it is made and printed with the result."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from recsys.errors import InputError, UnknownNameError
from recsys.stats.corrections import CORRECTIONS
from recsys.stats.effects import Effect, cliffs_delta, d_z, glass_delta, hedges_g, pooled_d, rank_biserial
from recsys.stats.intervals import METHODS, Method
from recsys.stats.outcomes import check_confidence
from recsys.stats.resample import Progress, Rng, Scheme

TESTS = ("t", "permutation", "wilcoxon", "sign", "studentised", "bca")
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
    """Test, interval, correction and effect; `margin` asks for equivalence, `rope` for the Bayesian view.

    `no_worse_than` asks for non-inferiority: worse by less than this, in the metric's units.

    The interval goes with the test unless named: a bootstrap test brings its own, all others the t interval.
    `tie` is the dead zone of win/tie/loss and of the sign test. `runs` says what several runs of a model are.
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

    def __post_init__(self) -> None:
        known = {
            "test": TESTS,
            "interval": (*METHODS, None),
            "correction": (*CORRECTIONS, "max-t"),
            "effect": tuple(EFFECTS),
            "runs": ("auto", "seeds", "folds"),
        }
        for name, choices in known.items():
            if getattr(self, name) not in choices:
                raise UnknownNameError(name, getattr(self, name), (one for one in choices if one is not None))
        check_confidence(self.confidence)
        for margin in (self.margin, self.no_worse_than):
            if margin is not None and not margin > 0:
                raise InputError(f"the margin must be positive, got {margin!r}.")

    @property
    def interval_method(self) -> Method:
        """The interval that will be made."""
        if self.interval is not None:
            return self.interval
        return "studentised" if self.test == "studentised" else "bca" if self.test == "bca" else "t"


def worse_by(options: Options, metric: str) -> tuple[float, float]:
    """Differences that are worse by less than `no_worse_than`, or not worse at all."""
    margin = math.inf if options.no_worse_than is None else options.no_worse_than
    return (-math.inf, margin) if metric in options.lower_is_better else (-margin, math.inf)
