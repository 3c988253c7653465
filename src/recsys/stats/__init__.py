"""Is the difference real, how large is it, and how sure can one be: statistics on per-case values.

Plain NumPy arrays in, small frozen results out. Names are imported when first used; SciPy only inside the
functions that need it.
"""

from __future__ import annotations

from recsys import lazy_names

_MODULES = {
    "alignment": ("Differences", "Units", "align"),
    "bootstrap": ("Replicates", "replicate"),
    "variance_reduction": ("Adjusted", "covariate_adjusted", "post_stratified"),
    "catalogue_intervals": (
        "Jackknife",
        "catalogue_difference",
        "catalogue_interval",
        "catalogue_jackknife",
        "coverage_interval",
        "coverage_jackknife",
        "jackknife",
    ),
    "statistics_warnings": (
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
    "comparison_options": ("Options",),
    "paired_comparison": ("compare_tables",),
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
    "equivalence_tests": (
        "BayesResult",
        "EquivalenceResult",
        "bayes_paired",
        "equivalence",
        "non_inferiority",
    ),
    "group_sequential": ("boundaries", "msprt"),
    "intervals": ("mean_interval", "ratio_difference", "ratio_interval", "ratio_units"),
    "omnibus_tests": ("FriedmanResult", "MaxT", "friedman", "max_t", "omnibus"),
    "normality_tests": ("normality",),
    "inference_results": ("Estimate", "Interval", "TestResult"),
    "custom_statistic": ("statistic_interval", "statistic_permutation"),
    "planning": ("minimal_effect", "power", "users_needed"),
    "resampling": ("Resampler", "groups_of", "random_order", "unit_keys"),
    "runs": ("RunsResult", "folds", "seeds"),
    "paired_samples": ("pair", "tables_of"),
    "sequential": ("ConfidenceSequence", "Watch"),
    "comparison_table": ("ComparisonTable", "Row"),
    "tests": ("bootstrap_test", "paired_t", "sign_flip", "sign_test", "signed_rank_sums", "wilcoxon"),
}

__all__ = [name for names in _MODULES.values() for name in names]
__getattr__, __dir__ = lazy_names(__name__, _MODULES)
