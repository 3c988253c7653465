"""The pairs of values of two models: all of them in memory, or added up piece by piece without holding them.

Both give the same sums and the same sample of differences, so all that follows is the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from recsys.records.arrays import Array, Float
from recsys.stats.bootstrap import (
    Replicates,
    Resampler,
    collapse,
    replicate,
    replicates_from,
    unit_keys,
    weighted_sums,
)
from recsys.stats.pairing import Aligned, Differences, Paired, PairSums, unpaired_notes

Triple = tuple[str, str, str]
# A piece: the values of all models over the same cases, and those in which wins and losses are counted.
Pieces = Callable[[Sequence[str]], Iterable[tuple[Aligned, Aligned]]]
_KEPT_IDS = 1000


@dataclass(frozen=True, eq=False)
class PairsInMemory:
    """The pairs of tables in one order of ids; `counted` are those of wins and losses, if they are others."""

    aligned: Aligned
    counted: Aligned | None = None

    @property
    def missing(self) -> Mapping[str, Array]:
        return self.aligned.missing

    @property
    def n_cases(self) -> int:
        return len(self.aligned.ids)

    def of(self, triple: Triple) -> tuple[Differences, Differences]:
        """The pairs of values that are averaged, and of those in which wins and losses are counted."""
        values = self.aligned.pair(triple)
        return values, values if self.counted is None else self.counted.pair(triple)

    def replicate(
        self, triples: Sequence[Triple], tested: Sequence[Paired], resampler: Resampler
    ) -> Replicates:
        """All rows with the same weights of units; adjusted values take the places of their units."""
        aligned = self.aligned
        rows = np.stack([aligned.differences(*triple) for triple in triples])
        units = collapse(rows, aligned.clusters, keys=aligned.keys, weights=aligned.weights)
        totals, weights = units.totals.copy(), units.weights.copy()
        for place, one in enumerate(tested):
            if isinstance(one, Differences) and one.spent is not None:
                present = units.weights[place] != 0
                totals[place], weights[place] = 0.0, present
                totals[place, present] = one.values
        units = replace(units, totals=totals, weights=weights)
        return replicate(units, replace(resampler, keys=units.keys))


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


class PairsOfPieces:
    """The pairs of all models and metrics, added up in one pass over the pieces.

    Where a pair has too many distinct differences to be counted, they are read when they are needed: 8 bytes
    per user, of one pair at a time. `centres` are the means of each model, about. The `sums` of a pair are
    those of values that are averaged, or that are counted; those of other pieces can be added.
    """

    def __init__(
        self,
        pieces: Pieces,
        triples: Sequence[Triple],
        centres: Mapping[str, Mapping[str, float]],
        has_terms: Collection[str] = (),
    ) -> None:
        self._pieces = pieces
        self._centres, self._has_terms = centres, has_terms
        self.sums: dict[tuple[Triple, bool], PairSums] = {}
        self.missing: dict[str, MissingIds] = {}
        self.n_cases = 0
        for piece in pieces(_metrics_of(triples)):
            self.n_cases += len(piece[0].ids)
            for name, ids in piece[0].missing.items():
                self.missing.setdefault(name, MissingIds()).add(ids)
            for triple in triples:
                for is_counted in (False, True)[: 1 + (triple[2] in has_terms)]:
                    sums = self._sums_of(piece[is_counted], triple, is_counted=is_counted)
                    self.add((triple, is_counted), sums)

    def _sums_of(self, aligned: Aligned, triple: Triple, *, is_counted: bool) -> PairSums:
        model, base, metric = triple
        both, n_unpaired = aligned.paired(*triple)
        first, second = (aligned.tables[name][metric][both] for name in (model, base))
        centres = (0.0, 0.0) if is_counted else (self._centres[model][metric], self._centres[base][metric])
        so_far = self.sums.get((triple, is_counted))
        counts = so_far is None or so_far.levels is not None  # no more once they are too many
        return replace(PairSums.of(first, second, centres, counts=counts), n_unpaired=n_unpaired)

    def add(self, key: tuple[Triple, bool], more: PairSums) -> None:
        """Add the sums of a piece to those of a pair, of values that are averaged or that are counted."""
        self.sums[key] = PairSums.total([self.sums[key], more]) if key in self.sums else more

    def of(self, triple: Triple) -> tuple[Paired, Paired]:
        """The pairs of values that are averaged, and of those in which wins and losses are counted."""
        values = self._paired(triple, is_counted=False)
        return values, self._paired(triple, is_counted=True) if triple[2] in self._has_terms else values

    def _paired(self, triple: Triple, *, is_counted: bool) -> PairSums:
        nothing = np.zeros(0)  # where there is no user at all
        found = self.sums.get((triple, is_counted)) or PairSums.of(nothing, nothing)
        read = partial(self._read, triple, is_counted=is_counted)
        return replace(found, notes=unpaired_notes(found.n_unpaired), read=read)

    def _read(self, triple: Triple, *, is_counted: bool) -> Float:
        """The differences of a pair, in the order of its users."""
        found, n_read = np.empty(self.sums[triple, is_counted].n_cases), 0  # filled in place: it is large
        for piece in self._pieces([triple[2]]):
            differences = piece[is_counted].differences(*triple)
            present = differences[~np.isnan(differences)]
            found[n_read : n_read + len(present)] = present
            n_read += len(present)
        return found

    def replicate(
        self, triples: Sequence[Triple], tested: Sequence[Paired], resampler: Resampler
    ) -> Replicates:
        """The bootstrap of all rows, in another pass: Poisson weights are drawn for each unit by itself."""
        samples = [one.sample for one in tested]
        estimates = np.array([sample.mean for sample in samples])
        varies = np.array([sample.varies for sample in samples])
        sums: list[Float] = []
        for values, _ in self._pieces(_metrics_of(triples)):
            differences = np.stack([values.differences(*triple) for triple in triples])
            is_present = ~np.isnan(differences)
            residuals = np.where(is_present & varies[:, None], differences - estimates[:, None], 0.0)
            draws = replace(resampler, keys=unit_keys(values.ids), scheme="poisson", progress=None)
            more = weighted_sums(residuals, is_present.astype(np.float64), draws)
            sums = [one + other for one, other in zip(sums, more, strict=True)] if sums else more
        with np.errstate(divide="ignore", invalid="ignore"):
            powers = np.array([sample.powers[:2] for sample in samples])
            accelerations = powers[:, 1] / (6.0 * powers[:, 0] ** 1.5)
        errors, n = np.array([s.error for s in samples]), np.array([s.n for s in samples], dtype=np.int64)
        return replicates_from([sums], estimates, errors, accelerations, n_units=n, scheme="poisson")


PairSource = PairsInMemory | PairsOfPieces


def _metrics_of(triples: Iterable[Triple]) -> list[str]:
    return list(dict.fromkeys(metric for *_, metric in triples))
