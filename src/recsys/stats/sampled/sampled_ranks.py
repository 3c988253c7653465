"""Sampled ranks with what they were sampled from: how many negatives, of how many items, case by case.

Cases with the same numbers form a class. Where users differ in how many items they could be shown, numbers
of items within one percent count as one class, so that a correction is worked out dozens of times, not
thousands.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from recsys.errors import InputError
from recsys.stats.sampled.rank_chances import check
from recsys.types import Array, Float, Int

_STEP = 0.01


class Class(NamedTuple):
    """Cases that were sampled alike."""

    n_negatives: int
    n_items: int
    members: Int


@dataclass(frozen=True, eq=False)
class Cases:
    """One entry a case: negatives above the positive, how many places it shares, what was sampled of what."""

    above: Int
    tied: Int
    n_negatives: Int
    n_items: Int
    replacement: bool
    clusters: Array | None = None

    @classmethod
    def of(
        cls,
        ranks: Any,
        n_negatives: Any,
        n_items: Any,
        *,
        tied: Any = None,
        replacement: bool = False,
        clusters: Any = None,
    ) -> Cases:
        """From ranks (1 is best), or from counted candidates, which know their negatives."""
        if hasattr(ranks, "above") and hasattr(ranks, "n_candidates"):
            counted = ranks
            above, tied = counted.above, counted.tied
            n_negatives = counted.n_candidates - 1 if n_negatives is None else n_negatives
            clusters = counted.clusters if clusters is None else clusters
            if (above < 0).any():
                raise InputError(
                    f"{int((above < 0).sum())} positives are no candidates, so they have no sampled rank."
                )
        else:
            above = _whole(ranks, "ranks") - 1
        if n_negatives is None:
            raise InputError("how many negatives were sampled is not known.", hint="Pass n_negatives=99.")
        n = len(above)
        if n == 0:
            raise InputError("there are no sampled ranks.")
        made = cls(
            above,
            np.ones(n, dtype=np.int64) if tied is None else _whole(tied, "tied"),
            _each(n_negatives, n, "n_negatives"),
            _each(n_items, n, "n_items"),
            bool(replacement),
            None if clusters is None else np.asarray(clusters),
        )
        made.check()
        return made

    def check(self) -> None:
        """Ranks lie between 1 and n + 1, and so many negatives can be drawn."""
        last = self.above + self.tied
        wrong = (self.above < 0) | (self.tied < 1) | (last > self.n_negatives + 1)
        if wrong.any():
            at = int(np.argmax(wrong))
            raise InputError(
                f"the sampled rank {int(self.above[at]) + 1} of case {at} cannot be: "
                f"there are {int(self.n_negatives[at])} negatives.",
                row=at,
                hint="Sampled ranks count from 1 to n_negatives + 1.",
            )
        for n, items in {*zip(self.n_negatives.tolist(), self.n_items.tolist(), strict=True)}:
            check(n, items, replacement=self.replacement)

    def __len__(self) -> int:
        return len(self.above)

    @cached_property
    def classes(self) -> list[Class]:
        """Cases sampled alike; numbers of items within a percent are one."""
        return self.in_classes(_STEP)

    def in_classes(self, step: float) -> list[Class]:
        """Classes whose numbers of items differ by no more than a share."""
        exact = len(np.unique(self.n_items)) <= 16
        level = self.n_items if exact else np.round(np.log(self.n_items) / step).astype(np.int64)
        keys, at = np.unique(np.stack([self.n_negatives, level]), axis=1, return_inverse=True)
        out = []
        for number in range(keys.shape[1]):
            members = np.flatnonzero(at.reshape(-1) == number)
            items = int(np.round(np.exp(np.log(self.n_items[members]).mean())))
            n = int(keys[0, number])
            out.append(Class(n, max(items, n + 1), members))
        return out

    def spread(self, of_class: Class, values: Float) -> Float:
        """Each member's value, where `values` has one a sampled rank; a shared place gets their mean."""
        above, tied = self.above[of_class.members], self.tied[of_class.members]
        total = np.concatenate([[0.0], np.cumsum(values)])
        single = tied == 1
        return np.where(single, values[above], (total[above + tied] - total[above]) / tied)

    def counts(self, of_class: Class, times: Array | None = None) -> Float:
        """How many members have each sampled rank; a shared place counts in parts, a member `times` times."""
        above, tied = self.above[of_class.members], self.tied[of_class.members]
        share = (1.0 if times is None else times) / tied
        change = np.bincount(above, share, of_class.n_negatives + 2)
        change -= np.bincount(above + tied, share, of_class.n_negatives + 2)
        return np.maximum(np.cumsum(change)[:-1], 0.0)


def _whole(values: Any, what: str) -> Int:
    array = np.asarray(values)
    if array.ndim != 1 or not (array.dtype.kind in "iu" or bool((array == np.floor(array)).all())):
        raise InputError(
            f"{what} came as {array.dtype} with shape {array.shape}.",
            hint="Give one whole number a case; for tied scores pass tied= beside the best rank.",
        )
    return array.astype(np.int64)


def _each(values: Any, n: int, what: str) -> Int:
    array = np.asarray(values)
    if array.ndim == 0:
        array = np.full(n, array)
    out = _whole(array, what)
    if len(out) != n:
        raise InputError(f"{what} holds {len(out)} values for {n} cases.")
    return out
