"""Adjust rows of a comparison for covariates and strata of users: CUPED for paired models.

Both models see the same users, so covariates are always balanced between them. A covariate moves the
estimate only if its population mean is known, from a table with more users or as a given number. Otherwise
the estimate stays and its variance loses what the covariate explains; it then holds only for users with the
same values. Strata and their shares work the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from recsys.stats.alignment import Differences, Units
from recsys.stats.comparison_options import Options
from recsys.stats.statistics_warnings import PopulationWarning, caution
from recsys.stats.user_covariates import Covariates, UserStrata, lookup_covariates, lookup_strata
from recsys.stats.variance_reduction import Calibration, calibrate, known_shares, variance_saved_share
from recsys.types import Array, Bool, Float

# A random sample lies so far from the population means with this probability.
_RARE_CHANCE = 0.001


@dataclass(frozen=True, eq=False)
class AdjustedSides:
    """Model and baseline over their units, adjusted alike; their differences; the share of variance saved."""

    sides: Units
    differences: Differences
    variance_saved: float


@dataclass(frozen=True, eq=False)
class Adjustment:
    """Covariates and strata of every evaluated unit, with their known population means and shares."""

    users: Array
    covariates: Covariates
    strata: UserStrata | None
    _cache: dict[bytes, tuple[Calibration, tuple[str, ...]]] = field(default_factory=dict)

    def sides(self, sides: Units, differences: Differences, present: Bool) -> AdjustedSides:
        """Both sides of a row, adjusted; `present` marks the units they are made of."""
        calibration, notes = self._calibration(present)
        unadjusted = np.stack([sides.linearised(0), sides.linearised(1)])
        adjusted = calibration.values(unadjusted)
        differences_adjusted = adjusted[0] - adjusted[1]
        keys = sides.keys[sides.weights[0] != 0]
        return AdjustedSides(
            Units(keys, adjusted, np.ones_like(adjusted)),
            Differences(
                differences_adjusted,
                np.zeros_like(differences_adjusted),
                None,
                keys,
                None,
                differences.notes + notes,
                calibration.spent,
            ),
            variance_saved_share(
                float(differences_adjusted.std(ddof=1)), float((unadjusted[0] - unadjusted[1]).std(ddof=1))
            ),
        )

    def values(self, rows: Float, users: Array) -> Float:
        """Rows with one value per user (such as runs), adjusted."""
        return self._calibration(np.isin(self.users, users))[0].values(rows)

    def _calibration(self, present: Bool) -> tuple[Calibration, tuple[str, ...]]:
        """The weights of a row's units, with notes; computed once for all rows with the same units."""
        key = np.packbits(present).tobytes()
        if key in self._cache:
            return self._cache[key]
        known = self.covariates
        x = known.values[present]
        sample_means = np.nansum(x, axis=0) / np.maximum(np.count_nonzero(~np.isnan(x), axis=0), 1)
        x = np.where(np.isnan(x), sample_means if known.means is None else known.means, x)
        labels, codes, shares = None, None, None
        notes = known.notes
        if self.strata is not None:
            labels, codes = np.unique(self.strata.labels[present], return_inverse=True)
            shares = None if self.strata.shares is None else known_shares(labels, self.strata.shares)
            notes += self.strata.notes
        calibration = calibrate(x, known.means, codes, shares, labels)
        notes += _idle_covariates_note(calibration, known.names)
        notes += _unlike_population_note(calibration, known, sample_means)
        self._cache[key] = calibration, notes
        return self._cache[key]


def build_adjustment(options: Options, users: Array) -> Adjustment | None:
    """The adjustment the options ask for, looked up for these users; None if they ask for none."""
    if not options.adjusts:
        return None
    covariates, strata = Covariates((), np.empty((len(users), 0)), None, ()), None
    if options.covariates is not None:
        covariates = lookup_covariates(options.covariates, options.covariate_means, users)
    if options.strata is not None:
        strata = lookup_strata(options.strata, options.stratum_shares, users)
    return Adjustment(users, covariates, strata)


def adjusted_units(units: Units, rows: Sequence[AdjustedSides]) -> Units:
    """The units with adjusted values, so that all rows share their draws; unchanged if `rows` is empty."""
    if not rows:
        return units
    present = units.weights != 0
    totals: Float = np.zeros_like(units.totals)
    for total, units_present, row in zip(totals, present, rows, strict=True):
        total[units_present] = row.differences.values
    return Units(units.keys, totals, present.astype(np.float64))


def _idle_covariates_note(calibration: Calibration, names: Sequence[str]) -> tuple[str, ...]:
    """A note on covariates that explain nothing beyond the others."""
    n_idle = len(names) - calibration.rank
    if not n_idle:
        return ()
    counted = f"{n_idle} of {len(names)} covariates ({', '.join(names)})"
    return (f"{counted} do not vary, or follow from others or from strata: they change nothing",)


def _unlike_population_note(
    calibration: Calibration, known: Covariates, sample_means: Float
) -> tuple[str, ...]:
    """A note if the users differ from the population: the adjustment then extrapolates along a line."""
    from scipy.special import chdtrc

    if (
        known.means is None
        or not calibration.rank
        or chdtrc(calibration.rank, calibration.distance) >= _RARE_CHANCE
    ):
        return ()
    means = zip(known.names, sample_means, known.means, strict=True)
    listed = ", ".join(f"{name} {a:.4g} against {b:.4g}" for name, a, b in means)
    text = (
        f"the users evaluated are no random sample of the population ({listed}): the adjusted difference is "
        "right only if it depends on these along a straight line"
    )
    return (caution(PopulationWarning, text),)
