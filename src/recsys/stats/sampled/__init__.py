"""Estimate metrics on the whole catalogue from ranks among sampled negatives (Krichene & Rendle, KDD 2020).

The rank of a positive among n sampled negatives has a known distribution given its true rank. So a metric of
the true rank can be estimated from sampled ranks, with an error that can be computed before anything is
measured. Names are imported when first used; SciPy only inside the functions that need it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recsys.records.registry import lazy_names

if TYPE_CHECKING:
    from recsys.stats.sampled.estimates import METHODS as METHODS
    from recsys.stats.sampled.estimates import RankDistribution as RankDistribution
    from recsys.stats.sampled.estimates import SampledEstimate as SampledEstimate
    from recsys.stats.sampled.estimates import estimate as estimate
    from recsys.stats.sampled.estimates import estimate_all as estimate_all
    from recsys.stats.sampled.estimates import estimate_weighted as estimate_weighted
    from recsys.stats.sampled.estimates import fit_ranks as fit_ranks
    from recsys.stats.sampled.estimates import inclusion_chances as inclusion_chances
    from recsys.stats.sampled.estimates import weighted_ranks as weighted_ranks
    from recsys.stats.sampled.expected_errors import ExpectedError as ExpectedError
    from recsys.stats.sampled.expected_errors import expected_error as expected_error
    from recsys.stats.sampled.expected_errors import negatives_needed as negatives_needed
    from recsys.stats.sampled.expected_errors import winner_probability as winner_probability

__getattr__, __dir__, __all__ = lazy_names(__name__)
