"""Is the difference real, how large is it, and how sure can one be: statistics on per-case values.

Plain NumPy arrays in, small frozen results out. Names are imported when first used; SciPy only inside the
functions that need it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recsys.records.registry import lazy_names

if TYPE_CHECKING:
    from recsys.errors import StatisticsWarning as StatisticsWarning
    from recsys.stats.adjustment import Adjusted as Adjusted
    from recsys.stats.adjustment import covariate_adjusted as covariate_adjusted
    from recsys.stats.adjustment import post_stratified as post_stratified
    from recsys.stats.bootstrap import Replicates as Replicates
    from recsys.stats.bootstrap import Resampler as Resampler
    from recsys.stats.bootstrap import Units as Units
    from recsys.stats.bootstrap import groups_of as groups_of
    from recsys.stats.bootstrap import random_order as random_order
    from recsys.stats.bootstrap import replicate as replicate
    from recsys.stats.bootstrap import unit_keys as unit_keys
    from recsys.stats.comparison import compare_tables as compare_tables
    from recsys.stats.comparison_table import ComparisonTable as ComparisonTable
    from recsys.stats.comparison_table import Options as Options
    from recsys.stats.comparison_table import Row as Row
    from recsys.stats.corrections import FriedmanResult as FriedmanResult
    from recsys.stats.corrections import MaxT as MaxT
    from recsys.stats.corrections import adjust as adjust
    from recsys.stats.corrections import friedman as friedman
    from recsys.stats.corrections import max_t as max_t
    from recsys.stats.corrections import omnibus as omnibus
    from recsys.stats.effects import Effect as Effect
    from recsys.stats.effects import cliffs_delta as cliffs_delta
    from recsys.stats.effects import d_z as d_z
    from recsys.stats.effects import glass_delta as glass_delta
    from recsys.stats.effects import hedges_g as hedges_g
    from recsys.stats.effects import label_of as label_of
    from recsys.stats.effects import minimal_effect as minimal_effect
    from recsys.stats.effects import pooled_d as pooled_d
    from recsys.stats.effects import power as power
    from recsys.stats.effects import rank_biserial as rank_biserial
    from recsys.stats.effects import users_needed as users_needed
    from recsys.stats.group_jackknife import Jackknife as Jackknife
    from recsys.stats.group_jackknife import catalogue_difference as catalogue_difference
    from recsys.stats.group_jackknife import catalogue_interval as catalogue_interval
    from recsys.stats.group_jackknife import catalogue_jackknife as catalogue_jackknife
    from recsys.stats.group_jackknife import coverage_interval as coverage_interval
    from recsys.stats.group_jackknife import coverage_jackknife as coverage_jackknife
    from recsys.stats.group_jackknife import jackknife as jackknife
    from recsys.stats.intervals import mean_interval as mean_interval
    from recsys.stats.intervals import ratio_difference as ratio_difference
    from recsys.stats.intervals import ratio_interval as ratio_interval
    from recsys.stats.intervals import ratio_units as ratio_units
    from recsys.stats.intervals import statistic_interval as statistic_interval
    from recsys.stats.margins import BayesResult as BayesResult
    from recsys.stats.margins import EquivalenceResult as EquivalenceResult
    from recsys.stats.margins import bayes_paired as bayes_paired
    from recsys.stats.margins import equivalence as equivalence
    from recsys.stats.margins import non_inferiority as non_inferiority
    from recsys.stats.paired_tests import bootstrap_test as bootstrap_test
    from recsys.stats.paired_tests import normality as normality
    from recsys.stats.paired_tests import paired_t as paired_t
    from recsys.stats.paired_tests import sign_flip as sign_flip
    from recsys.stats.paired_tests import statistic_permutation as statistic_permutation
    from recsys.stats.pairing import Differences as Differences
    from recsys.stats.pairing import align as align
    from recsys.stats.pairing import pair as pair
    from recsys.stats.pairing import tables_of as tables_of
    from recsys.stats.rank_tests import sign_test as sign_test
    from recsys.stats.rank_tests import signed_rank_sums as signed_rank_sums
    from recsys.stats.rank_tests import wilcoxon as wilcoxon
    from recsys.stats.results import Estimate as Estimate
    from recsys.stats.results import Interval as Interval
    from recsys.stats.results import PopulationWarning as PopulationWarning
    from recsys.stats.results import RankTestWarning as RankTestWarning
    from recsys.stats.results import SampleRatioWarning as SampleRatioWarning
    from recsys.stats.results import SkewWarning as SkewWarning
    from recsys.stats.results import SmallSampleWarning as SmallSampleWarning
    from recsys.stats.results import StoppedWarning as StoppedWarning
    from recsys.stats.results import TestResult as TestResult
    from recsys.stats.results import UnpairedWarning as UnpairedWarning
    from recsys.stats.results import ZeroVarianceWarning as ZeroVarianceWarning
    from recsys.stats.runs import RunsResult as RunsResult
    from recsys.stats.runs import folds as folds
    from recsys.stats.runs import seeds as seeds
    from recsys.stats.sequential import ConfidenceSequence as ConfidenceSequence
    from recsys.stats.sequential import Watch as Watch
    from recsys.stats.sequential import boundaries as boundaries
    from recsys.stats.sequential import msprt as msprt

__getattr__, __dir__, __all__ = lazy_names(__name__)
