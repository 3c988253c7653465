"""Rows of a comparison adjusted for covariates and strata of users: CUPED for paired models.

Both models see the same users, so nothing is ever out of balance between them. A covariate helps where more
is known of it than the users evaluated show: its mean in a table of more users, or one that was given.
Otherwise the values of these users are taken as they are: the estimate stays, and its variance loses what the
covariate explains, because nothing is said of users who have other values. Strata and shares are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from recsys.stats.alignment import Differences, Units
from recsys.stats.comparison_options import Options
from recsys.stats.statistics_warnings import PopulationWarning, caution
from recsys.stats.user_covariates import Covariates, UserStrata, covariates_of, strata_of
from recsys.stats.variance_reduction import Calibration, calibrate, known_shares, saved
from recsys.types import Array, Bool, Float

# A random sample of the population is further from its means than this once in so many times.
_RARE = 0.001


@dataclass(frozen=True, eq=False)
class AdjustedSides:
    """Model and baseline over their units, adjusted alike, and the differences with what they cost."""

    sides: Units
    differences: Differences
    variance_saved: float


@dataclass(frozen=True, eq=False)
class Adjustment:
    """Covariates and strata of every unit evaluated, and what is known of them beyond these."""

    users: Array
    covariates: Covariates
    strata: UserStrata | None
    _made: dict[bytes, tuple[Calibration, tuple[str, ...]]] = field(default_factory=dict)

    def sides(self, sides: Units, differences: Differences, present: Bool) -> AdjustedSides:
        """Both sides of a row brought to what is known; `present` says which units they are of."""
        found, notes = self._on(present)
        plain = np.stack([sides.linearised(0), sides.linearised(1)])
        both = found.values(plain)
        gaps = both[0] - both[1]
        kept = sides.keys[sides.weights[0] != 0]
        return AdjustedSides(
            Units(kept, both, np.ones_like(both)),
            Differences(gaps, np.zeros_like(gaps), None, kept, None, differences.notes + notes, found.spent),
            saved(float(gaps.std(ddof=1)), float((plain[0] - plain[1]).std(ddof=1))),
        )

    def values(self, rows: Float, users: Array) -> Float:
        """Rows of one value a user, such as runs, brought to what is known."""
        return self._on(np.isin(self.users, users))[0].values(rows)

    def _on(self, present: Bool) -> tuple[Calibration, tuple[str, ...]]:
        """The weights of a row's units and what to keep in mind; made once for all rows with these units."""
        key = np.packbits(present).tobytes()
        if key not in self._made:
            self._made[key] = self._calibrated(present)
        return self._made[key]

    def _calibrated(self, present: Bool) -> tuple[Calibration, tuple[str, ...]]:
        known = self.covariates
        x = known.values[present]
        here = np.nansum(x, axis=0) / np.maximum(np.count_nonzero(~np.isnan(x), axis=0), 1)
        x = np.where(np.isnan(x), here if known.means is None else known.means, x)
        labels, codes, shares = None, None, None
        notes = known.notes
        if self.strata is not None:
            labels, codes = np.unique(self.strata.labels[present], return_inverse=True)
            shares = None if self.strata.shares is None else known_shares(labels, self.strata.shares)
            notes += self.strata.notes
        found = calibrate(x, known.means, codes, shares, labels)
        return found, notes + _idle(found, known.names) + _far(found, known, here)


def adjustment_of(options: Options, users: Array) -> Adjustment | None:
    """What the options ask to be adjusted for, looked up for these users; None where nothing is."""
    if not options.adjusts:
        return None
    covariates, strata = Covariates((), np.empty((len(users), 0)), None, ()), None
    if options.covariates is not None:
        covariates = covariates_of(options.covariates, options.covariate_means, users)
    if options.strata is not None:
        strata = strata_of(options.strata, options.stratum_shares, users)
    return Adjustment(users, covariates, strata)


def adjusted_units(units: Units, rows: Sequence[AdjustedSides]) -> Units:
    """The family's rows with adjusted values in place, so that all are drawn alike; unchanged without any."""
    if not rows:
        return units
    present = units.weights != 0
    totals: Float = np.zeros_like(units.totals)
    for into, here, row in zip(totals, present, rows, strict=True):
        into[here] = row.differences.values
    return Units(units.keys, totals, present.astype(np.float64))


def _idle(found: Calibration, names: Sequence[str]) -> tuple[str, ...]:
    """A word where covariates say nothing, or what others say already."""
    idle = len(names) - found.rank
    if not idle:
        return ()
    what = f"{idle} of {len(names)} covariates ({', '.join(names)})"
    return (f"{what} do not vary, or follow from others or from strata: they change nothing",)


def _far(found: Calibration, known: Covariates, here: Float) -> tuple[str, ...]:
    """A word where users are unlike the population: then a straight line carries the number over."""
    from scipy.special import chdtrc

    if known.means is None or not found.rank or chdtrc(found.rank, found.distance) >= _RARE:
        return ()
    each = zip(known.names, here, known.means, strict=True)
    told = ", ".join(f"{name} {a:.4g} against {b:.4g}" for name, a, b in each)
    text = (
        f"the users evaluated are no random sample of the population ({told}): the adjusted difference is "
        "right as far as it follows these along a straight line"
    )
    return (caution(PopulationWarning, text),)
