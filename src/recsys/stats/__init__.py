"""Is the difference real, how large is it, and how sure can one be: statistics on per-case values.

Plain NumPy arrays in, small frozen results out. Names are imported when first used; SciPy only inside the
functions that need it.
"""

from __future__ import annotations

from recsys.records.registry import lazy_names

_MODULES = {
    "comparison_table": ("ComparisonTable", "Options", "Row"),
    "effects": (
        "Effect",
        "cliffs_delta",
        "d_z",
        "glass_delta",
        "hedges_g",
        "label_of",
        "minimal_effect",
        "pooled_d",
        "power",
        "rank_biserial",
        "users_needed",
    ),
    "group_jackknife": (
        "Jackknife",
        "catalogue_difference",
        "catalogue_interval",
        "catalogue_jackknife",
        "coverage_interval",
        "coverage_jackknife",
        "jackknife",
    ),
    "inference_results": (
        "Estimate",
        "Interval",
        "PopulationWarning",
        "RankTestWarning",
        "SampleRatioWarning",
        "SkewWarning",
        "SmallSampleWarning",
        "StatisticsWarning",
        "StoppedWarning",
        "TestResult",
        "UnpairedWarning",
        "ZeroVarianceWarning",
    ),
    "intervals": ("mean_interval", "ratio_difference", "ratio_interval", "ratio_units", "statistic_interval"),
    "multiple_comparisons": ("FriedmanResult", "MaxT", "adjust", "friedman", "max_t", "omnibus"),
    "paired_comparison": ("compare_tables",),
    "paired_tests": (
        "BayesResult",
        "EquivalenceResult",
        "bayes_paired",
        "bootstrap_test",
        "equivalence",
        "non_inferiority",
        "normality",
        "paired_t",
        "sign_flip",
        "sign_test",
        "signed_rank_sums",
        "statistic_permutation",
        "wilcoxon",
    ),
    "pairing": ("Differences", "align", "pair", "tables_of"),
    "resampling": ("Replicates", "Resampler", "Units", "groups_of", "random_order", "replicate", "unit_keys"),
    "runs": ("RunsResult", "folds", "seeds"),
    "sequential": ("ConfidenceSequence", "Watch", "boundaries", "msprt"),
    "variance_reduction": ("Adjusted", "covariate_adjusted", "post_stratified"),
}

__all__ = [name for names in _MODULES.values() for name in names]
__getattr__, __dir__ = lazy_names(__name__, _MODULES)
