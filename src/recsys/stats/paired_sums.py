"""Pairs of values that are added up piece by piece, so that a comparison need not hold them.

Sums are exact, so they do not depend on where the pieces were cut. For most metrics the differences are few
distinct numbers, and their histogram tells the rest. Where there are too many, a second pass over the pieces,
with the mean known, adds up what tests look at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from recsys.errors import InputError, NoRowsError
from recsys.kernels.exact_sums import exact_sum
from recsys.records.arrays import Array, Bool, Float, Histogram, Int
from recsys.records.facts import Note
from recsys.stats.pairing import (
    Aligned,
    Differences,
    Sides,
    describe_missing,
    pair,
)
from recsys.stats.rare_values import FEW, BoundedSample, common_value, count_differing, count_wins_and_losses
from recsys.stats.resampling import (
    Replicates,
    Resampler,
    Units,
    Words,
    replicates_from,
    unit_keys,
    weighted_sums,
)
from recsys.stats.sign_flips import SignFlips
from recsys.stats.spread import SummedSpread, powers_of
from recsys.stats.sums import add_histograms, histogram_of

Triple = tuple[str, str, str]
# A piece: the values of all models over the same cases, and those in which wins and losses are counted.
Pieces = Callable[[Sequence[str]], Iterable[tuple[Aligned, Aligned]]]
_MOST_LEVELS = 1 << 16  # distinct differences that are counted
_KEPT_IDS = 1000


class PairedSums:
    """What the pairs of two sides, each with weight 1, add up to; it stands in for `Differences`.

    `add` every piece, then `look_again` at every piece if `needs_second_look`. `centres` are numbers close to
    the means of both sides, for accuracy.
    """

    spent = 0  # degrees of freedom: nothing is adjusted

    def __init__(self, centres: tuple[float, float] = (0.0, 0.0), *, dead_zone: float = 0.0) -> None:
        self.n_cases = 0
        self.n_unpaired = 0
        self.notes: tuple[Note, ...] = ()
        self._centres = centres
        self._dead_zone = dead_zone
        self._sums = dict.fromkeys(("a", "b", "aa", "ab", "bb", "first", "second", "difference"), Fraction(0))
        self._ends = dict.fromkeys(("first", "second", "difference"), (math.inf, -math.inf))
        self._n_differing = 0
        self._head: Float = np.empty(0)
        self._levels: Histogram | None = histogram_of([self._head])
        self._powers = [Fraction(0)] * 4
        self._counts: Int = np.zeros(4, dtype=np.int64)  # wins, losses, not 0, not the common difference

    def add(self, first: Float, second: Float) -> None:
        """Add pairs, of which both sides have a value."""
        difference = first - second
        if not np.isfinite(difference).all():
            raise InputError("values must be finite or NaN (excluded), got an infinite one.")
        a, b = first - self._centres[0], second - self._centres[1]
        columns = {"first": first, "second": second, "difference": difference}
        for name, column in columns.items():
            least, most = self._ends[name]
            self._ends[name] = (
                min(least, float(column.min(initial=math.inf))),
                max(most, float(column.max(initial=-math.inf))),
            )
        for name, column in (columns | {"a": a, "b": b, "aa": a * a, "ab": a * b, "bb": b * b}).items():
            self._sums[name] += exact_sum(column)
        self.n_cases += len(first)
        self._n_differing += int(np.count_nonzero(difference))
        self._head = np.append(self._head, difference[: 2 * FEW + 1 - len(self._head)])
        if self._levels is not None:
            more = histogram_of([difference], _MOST_LEVELS)
            self._levels = add_histograms([self._levels, more], _MOST_LEVELS)

    def state(self) -> dict[str, Any]:
        """All of it as plain numbers and arrays, by name without an underscore."""
        plain = {name.lstrip("_"): value for name, value in vars(self).items()}
        sums = {name: value.as_integer_ratio() for name, value in self._sums.items()}
        return {**plain, "sums": sums, "powers": [value.as_integer_ratio() for value in self._powers]}

    @classmethod
    def from_states(cls, states: Sequence[Mapping[str, Any]]) -> PairedSums:
        """What several parts of the pairs add up to, from the state of each."""
        first = states[0]
        out = cls(first["centres"], dead_zone=first["dead_zone"])
        for state in states:
            out.n_cases += state["n_cases"]
            out.n_unpaired += state["n_unpaired"]
            out._n_differing += state["n_differing"]
            for name, ratio in state["sums"].items():
                out._sums[name] += Fraction(*ratio)
            for name, (least, most) in state["ends"].items():
                out._ends[name] = min(out._ends[name][0], least), max(out._ends[name][1], most)
        out._head = np.concatenate([state["head"] for state in states])[: 2 * FEW + 1]
        out._levels = add_histograms([state["levels"] for state in states], _MOST_LEVELS)
        out.take_looks(states)
        return out

    def take_looks(self, states: Sequence[Mapping[str, Any]]) -> None:
        """What `look_again` found in several parts of the pairs, from the state of each."""
        powers = zip(*(state["powers"] for state in states), strict=True)
        self._powers = [sum((Fraction(*ratio) for ratio in ratios), Fraction(0)) for ratios in powers]
        self._counts = np.sum([state["counts"] for state in states], axis=0)

    @property
    def is_known(self) -> bool:
        """Whether all differences are known, with how often each occurs."""
        return self._levels is not None

    @property
    def needs_second_look(self) -> bool:
        return not self.is_known

    def look_again(self, first: Float, second: Float) -> None:
        """Add up what needs the mean to be known."""
        difference = first - second
        if self._levels is None:
            centred = (difference - self.estimate()) / self._spread_of([]).largest
            for place, power in enumerate(powers_of(centred)):
                self._powers[place] += exact_sum(power, within=1.0)
            largest = self._size("difference")
            n_above, n_below = count_wins_and_losses(difference, self._dead_zone, largest=largest)
            n_not_zero, n_uncommon = (
                count_differing(difference, common, largest=largest)
                for common in (0.0, common_value(self._head))
            )
            self._counts += [n_above, n_below, n_not_zero, n_uncommon]

    def _size(self, name: str) -> float:
        """The largest magnitude in a column."""
        return max(map(abs, self._ends[name]))

    def estimate(self) -> float:
        return float(self._sums["difference"] / self.n_cases)

    def _spread_of(self, powers: Sequence[float]) -> SummedSpread:
        ends = self._ends["difference"]
        return SummedSpread(self.n_cases, self.estimate(), *ends, self._n_differing, powers)

    def spread(self) -> SummedSpread:
        spread = self._spread_of([float(power) for power in self._powers])
        if self._levels is None:
            return spread
        centred = (self._levels.rows[:, 0] - spread.mean) / (spread.largest or 1.0)
        counts = self._levels.counts.astype(np.float64)
        return replace(spread, sums=[float(power @ counts) for power in powers_of(centred)])

    def side_estimates(self) -> Sides:
        n, sums = self.n_cases, self._sums
        first, second = (float(sums[name] / n) for name in ("first", "second"))
        variances = {}
        for a, b in ("aa", "ab", "bb"):
            square = float(sums[a + b] - sums[a] * sums[b] / n)
            variances[a + b] = square / n / (n - 1) if n > 1 else math.nan
        for name, mean, gone in (("first", first, ("aa", "ab")), ("second", second, ("bb", "ab"))):
            least, most = self._ends[name]
            if max(most - mean, mean - least) <= 1e-12 * self._size(name):  # rounding only
                variances |= dict.fromkeys(gone, variances[gone[0]] * 0.0)
        return Sides(first, second, (variances["aa"], variances["ab"], variances["bb"]), n - 1.0)

    def ends_seen(self) -> tuple[float, float]:
        lows, highs = zip(*(self._ends[name] for name in ("first", "second")), strict=True)
        return min(lows), max(highs)

    def levels(self) -> tuple[Float, Float]:
        """The distinct differences, and how often each occurs."""
        if self._levels is None:
            raise NoRowsError("a number that single differences decide")
        return self._levels.rows[:, 0], self._levels.counts.astype(np.float64)

    @property
    def bounded(self) -> BoundedSample:
        if self._levels is None:
            ends, spread = np.array(self._ends["difference"]), self.spread()
            return BoundedSample(ends, np.empty(0), known=spread.moments())
        values, counts = self.levels()
        return BoundedSample.of(values, None, counts)

    @property
    def flips(self) -> SignFlips:
        if self._levels is None:
            return SignFlips(self.spread().moments())
        values, counts = self.levels()
        return SignFlips.of(values, None, counts)

    @property
    def differing(self) -> tuple[int, int]:
        if self._levels is None:
            return int(self._counts[2]), int(self._counts[3])
        means, counts = self.levels()
        return count_differing(means, 0.0, counts), count_differing(means, None, counts)

    def wins_ties_losses(self, dead_zone: float = 0.0) -> tuple[int, int, int]:
        n_above, n_below = self._counts[:2].tolist()
        if self._levels is not None:
            means, counts = self.levels()
            n_above, n_below = count_wins_and_losses(means, dead_zone, counts)
        return n_above, self.n_cases - n_above - n_below, n_below


Paired = Differences | PairedSums


def as_paired(differences: Paired | npt.ArrayLike) -> Paired:
    """Pairs unchanged, or made from plain numbers, one per unit."""
    return differences if isinstance(differences, Differences | PairedSums) else pair(differences)


class MissingIds:
    """The ids that a model lacks: how many, and the first 1,000 of them."""

    def __init__(self) -> None:
        self._n = 0
        self._first: list[int | str] = []

    def add(self, ids: Array, n: int | None = None) -> None:
        """Add the ids of a piece, or the first of `n`."""
        self._n += len(ids) if n is None else n
        self._first += ids[: _KEPT_IDS - len(self._first)].tolist()

    def __len__(self) -> int:
        return self._n

    def tolist(self) -> list[int | str]:
        """The first 1,000."""
        return list(self._first)

    def __repr__(self) -> str:
        return f"{self._n:,} ids" + (f", such as {self._first[0]!r}" if self._first else "")


class SumsOfPieces:
    """The sums of all pairs of models and metrics, in one pass over the pieces, and a second where needed.

    `values` are those of the values that are averaged, `counted` those in which wins and losses are counted;
    for metrics without terms they are the same.
    """

    def __init__(
        self,
        pieces: Pieces,
        triples: Sequence[Triple],
        centres: Mapping[str, Mapping[str, float]],
        has_terms: Collection[str] = (),
        *,
        dead_zone: float = 0.0,
    ) -> None:
        self._pieces = pieces
        self.values = {
            (model, base, metric): PairedSums(
                (centres[model][metric], centres[base][metric]), dead_zone=dead_zone
            )
            for model, base, metric in triples
        }
        self.counted = {
            triple: PairedSums(dead_zone=dead_zone) if triple[2] in has_terms else self.values[triple]
            for triple in triples
        }
        self.missing: dict[str, MissingIds] = {}
        self.n_cases = 0
        for values, counted in pieces(_metrics_of(triples)):
            self.n_cases += len(values.ids)
            for name, ids in values.missing.items():
                self.missing.setdefault(name, MissingIds()).add(ids)
            for triple in triples:
                self._add(self.values[triple], values, triple)
                if self.counted[triple] is not self.values[triple]:
                    self._add(self.counted[triple], counted, triple)

    @staticmethod
    def _add(sums: PairedSums, aligned: Aligned, triple: Triple) -> None:
        both, n_unpaired = aligned.paired(*triple)
        sums.n_unpaired += n_unpaired
        sums.add(*_sides(aligned, triple, both))

    def look_again(self) -> None:
        """A second pass for what the first could not tell."""
        triples = [
            t for t in self.values if self.values[t].needs_second_look or self.counted[t].needs_second_look
        ]
        if triples:
            self._look_at(triples)

    def _look_at(self, triples: Sequence[Triple]) -> None:
        """Show the pieces once more to the sums that need it."""
        for values, counted in self._pieces(_metrics_of(triples)):
            for triple in triples:
                sides = ((self.values[triple], values), (self.counted[triple], counted))
                for sums, aligned in sides if sides[0][0] is not sides[1][0] else sides[:1]:
                    if sums.needs_second_look:
                        sums.look_again(*_sides(aligned, triple, aligned.paired(*triple)[0]))

    def notes(self) -> tuple[Note, ...]:
        """A note on the cases each model lacks, if any is missing."""
        return describe_missing(self.missing, self.n_cases)

    def differences(self, triples: Sequence[Triple]) -> Iterable[tuple[Words, Float]]:
        """Piece by piece the keys of the cases, and for each triple the differences, NaN where unpaired."""
        for values, _ in self._pieces(_metrics_of(triples)):
            yield unit_keys(values.ids), np.stack([values.differences(*triple) for triple in triples])


def _metrics_of(triples: Iterable[Triple]) -> list[str]:
    return list(dict.fromkeys(metric for *_, metric in triples))


def _sides(aligned: Aligned, triple: Triple, both: Bool) -> tuple[Float, Float]:
    model, baseline, metric = triple
    return aligned.tables[model][metric][both], aligned.tables[baseline][metric][both]


class SummedRows:
    """Rows of differences that were added up; it stands in for `Units`."""

    keys: Words = np.empty(0, dtype=np.uint64)

    def __init__(self, sums: SumsOfPieces, triples: Sequence[Triple]) -> None:
        self._sums = sums
        self._triples = triples
        self._rows = [sums.values[triple] for triple in triples]
        self._spreads = [row.spread() for row in self._rows]

    def estimates(self) -> Float:
        return np.array([row.estimate() for row in self._rows])

    def small_sample_errors(self) -> Float:
        errors = [
            s.deviation / math.sqrt(s.n) if s.largest_residual or s.n < 2 else 0.0 for s in self._spreads
        ]
        return np.array(errors)

    def degrees_of_freedom(self) -> Float:
        return np.array([spread.df for spread in self._spreads])

    @property
    def n_units(self) -> Int:
        return np.array([spread.n for spread in self._spreads], dtype=np.int64)

    def n_differing(self) -> Int:
        return np.array([spread.n_differing for spread in self._spreads], dtype=np.int64)

    def has_heavy_tails(self) -> Bool:
        return np.array([spread.tails()[2] for spread in self._spreads], dtype=bool)

    def few_differ(self, fewer_than: int) -> Bool:
        return Units.few_differ(self, fewer_than)  # type: ignore[arg-type]

    def replicate(self, resampler: Resampler) -> Replicates:
        """The bootstrap of all rows, in another pass: Poisson weights are drawn for each unit by itself."""
        estimates = self.estimates()[:, None]
        is_constant = np.array([not spread.largest_residual for spread in self._spreads])
        sums: list[Float] = []
        for keys, differences in self._sums.differences(self._triples):
            is_present = ~np.isnan(differences)
            residuals = np.where(is_present & ~is_constant[:, None], differences - estimates, 0.0)
            draws = replace(resampler, keys=keys, scheme="poisson", progress=None)
            more = weighted_sums(residuals, is_present.astype(np.float64), draws)
            sums = [one + other for one, other in zip(sums, more, strict=True)] if sums else more
        with np.errstate(divide="ignore", invalid="ignore"):
            powers = np.array([spread.sums[:2] for spread in self._spreads])
            accelerations = powers[:, 1] / (6.0 * powers[:, 0] ** 1.5)
        errors, n = self.small_sample_errors(), self.n_units
        return replicates_from([sums], self.estimates(), errors, accelerations, n_units=n, scheme="poisson")
