"""Sampled ranks with the number of negatives and of items they were sampled from, case by case.

Cases with the same numbers form a class. If users differ in the number of their candidate items, numbers
within one percent form one class, so that a correction is computed dozens of times, not thousands.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from recsys.errors import InputError
from recsys.stats.sampled.rank_chances import check_sampling
from recsys.types import Array, Float, Int

_ITEM_COUNT_STEP = 0.01


class SamplingClass(NamedTuple):
    """Cases with the same number of negatives and (nearly) the same number of items."""

    n_negatives: int
    n_items: int
    members: Int


@dataclass(frozen=True, eq=False)
class Cases:
    """One entry per case: negatives above the positive, places it shares by ties, negatives and items."""

    above: Int
    tied: Int
    n_negatives: Int
    n_items: Int
    replacement: bool
    clusters: Array | None = None

    @classmethod
    def from_ranks(
        cls,
        ranks: Any,
        n_negatives: Any,
        n_items: Any,
        *,
        tied: Any = None,
        replacement: bool = False,
        clusters: Any = None,
    ) -> Cases:
        """From ranks (1 is best), or from truth counted among candidates, which has its own n_negatives."""
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
            above = _whole_numbers(ranks, "ranks") - 1
        if n_negatives is None:
            raise InputError("how many negatives were sampled is not known.", hint="Pass n_negatives=99.")
        n = len(above)
        if n == 0:
            raise InputError("there are no sampled ranks.")
        cases = cls(
            above,
            np.ones(n, dtype=np.int64) if tied is None else _whole_numbers(tied, "tied"),
            _one_per_case(n_negatives, n, "n_negatives"),
            _one_per_case(n_items, n, "n_items"),
            bool(replacement),
            None if clusters is None else np.asarray(clusters),
        )
        cases.check()
        return cases

    def check(self) -> None:
        """Refuse ranks outside 1 to n_negatives + 1, and samples that cannot be drawn."""
        last_place = self.above + self.tied
        is_wrong = (self.above < 0) | (self.tied < 1) | (last_place > self.n_negatives + 1)
        if is_wrong.any():
            row = int(np.argmax(is_wrong))
            raise InputError(
                f"the sampled rank {int(self.above[row]) + 1} of case {row} is impossible: "
                f"there are {int(self.n_negatives[row])} negatives.",
                row=row,
                hint="Sampled ranks count from 1 to n_negatives + 1.",
            )
        for n, items in {*zip(self.n_negatives.tolist(), self.n_items.tolist(), strict=True)}:
            check_sampling(n, items, replacement=self.replacement)

    def __len__(self) -> int:
        return len(self.above)

    @cached_property
    def classes(self) -> list[SamplingClass]:
        """Cases in classes; numbers of items within one percent are the same class."""
        return self.in_classes(_ITEM_COUNT_STEP)

    def in_classes(self, step: float) -> list[SamplingClass]:
        """Cases in classes whose numbers of items differ by at most the share `step`."""
        exact = len(np.unique(self.n_items)) <= 16
        item_level = self.n_items if exact else np.round(np.log(self.n_items) / step).astype(np.int64)
        keys, class_of_case = np.unique(np.stack([self.n_negatives, item_level]), axis=1, return_inverse=True)
        classes = []
        for number in range(keys.shape[1]):
            members = np.flatnonzero(class_of_case.reshape(-1) == number)
            items = int(np.round(np.exp(np.log(self.n_items[members]).mean())))
            n = int(keys[0, number])
            classes.append(SamplingClass(n, max(items, n + 1), members))
        return classes

    def values_by_case(self, of_class: SamplingClass, values: Float) -> Float:
        """The value of each member, from one value per sampled rank; ties get the mean of their places."""
        above, tied = self.above[of_class.members], self.tied[of_class.members]
        cumulative = np.concatenate([[0.0], np.cumsum(values)])
        untied = tied == 1
        return np.where(untied, values[above], (cumulative[above + tied] - cumulative[above]) / tied)

    def counts(self, of_class: SamplingClass, times: Array | None = None) -> Float:
        """How many members have each sampled rank, each counted `times` times; ties are split evenly."""
        above, tied = self.above[of_class.members], self.tied[of_class.members]
        weight = (1.0 if times is None else times) / tied
        steps = np.bincount(above, weight, of_class.n_negatives + 2)
        steps -= np.bincount(above + tied, weight, of_class.n_negatives + 2)
        return np.maximum(np.cumsum(steps)[:-1], 0.0)


def _whole_numbers(values: Any, what: str) -> Int:
    array = np.asarray(values)
    if array.ndim != 1 or not (array.dtype.kind in "iu" or bool((array == np.floor(array)).all())):
        raise InputError(
            f"{what} came as {array.dtype} with shape {array.shape}.",
            hint="Give one whole number per case; for tied scores pass tied= beside the best rank.",
        )
    return array.astype(np.int64)


def _one_per_case(values: Any, n: int, what: str) -> Int:
    array = np.asarray(values)
    if array.ndim == 0:
        array = np.full(n, array)
    numbers = _whole_numbers(array, what)
    if len(numbers) != n:
        raise InputError(f"{what} holds {len(numbers)} values for {n} cases.")
    return numbers
