"""Is the difference real, how large is it, and how sure can one be: statistics on per-case values.

Plain NumPy arrays in, small frozen results out. Names are imported when first used; SciPy only inside the
functions that need it.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

_ROOMS = {
    "align": ("Differences", "Units", "align"),
    "bootstrap": ("Replicates", "replicate"),
    "calibration": ("Adjusted", "covariate_adjusted", "post_stratified"),
    "catalogue": (
        "Jackknife",
        "catalogue_difference",
        "catalogue_interval",
        "catalogue_jackknife",
        "coverage_interval",
        "coverage_jackknife",
        "jackknife",
    ),
    "cautions": (
        "PopulationWarning",
        "RankTestWarning",
        "SampleRatioWarning",
        "SkewWarning",
        "SmallSampleWarning",
        "StatisticsWarning",
        "StoppedWarning",
        "UnpairedWarning",
        "ZeroVarianceWarning",
    ),
    "choices": ("Options",),
    "compare": ("compare_tables",),
    "corrections": ("adjust",),
    "effects": (
        "Effect",
        "cliffs_delta",
        "d_z",
        "glass_delta",
        "hedges_g",
        "label_of",
        "pooled_d",
        "rank_biserial",
    ),
    "equivalence": ("BayesResult", "EquivalenceResult", "bayes_paired", "equivalence", "non_inferiority"),
    "group_sequential": ("boundaries", "msprt"),
    "intervals": ("mean_interval", "ratio_difference", "ratio_interval", "ratio_units"),
    "many": ("FriedmanResult", "MaxT", "friedman", "max_t", "omnibus"),
    "normality": ("normality",),
    "outcomes": ("Estimate", "Interval", "TestResult"),
    "own_statistic": ("statistic_interval", "statistic_permutation"),
    "planning": ("minimal_effect", "power", "users_needed"),
    "resample": ("Resampler", "groups_of", "random_order", "unit_keys"),
    "runs": ("RunsResult", "folds", "seeds"),
    "samples": ("pair", "tables_of"),
    "sequential": ("ConfidenceSequence", "Watch"),
    "table": ("ComparisonTable", "Row"),
    "tests": ("bootstrap_test", "paired_t", "sign_flip", "sign_test", "signed_rank_sums", "wilcoxon"),
}
_HOMES = {name: f"recsys.stats.{room}" for room, names in _ROOMS.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'recsys.stats' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])


class _Face(ModuleType):
    """A function and the module it lives in may share a name (equivalence); the name means the function."""

    def __setattr__(self, name: str, value: Any) -> None:
        shared = isinstance(value, ModuleType) and _HOMES.get(name) == value.__name__
        super().__setattr__(name, getattr(value, name, value) if shared else value)


sys.modules[__name__].__class__ = _Face
