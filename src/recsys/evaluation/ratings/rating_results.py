"""The result of rating metrics: sorted rows, exact pooled sums, and one row of values per user."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import MergeError, RecsysError
from recsys.evaluation.bounds import Bounds, Limits
from recsys.evaluation.partials import summarise
from recsys.evaluation.results import Evaluation
from recsys.evaluation.uncertainty import N_GROUPS
from recsys.kernels.exact_sums import exact_mean
from recsys.metrics import lookup_rating
from recsys.metrics.predictions import ROW_VALUES, Predictions, gauc_weights
from recsys.metrics.requests import Request
from recsys.stats.group_jackknife import jackknife
from recsys.stats.inference_results import Estimate, clip_interval
from recsys.stats.resampling import groups_of
from recsys.types import Array, Bool, Float, Ids, Int, Partial, PerCase

_CAPTION = "best: perfect predictions; floor: the mean of all ratings, predicted for every row"
_NO_VALUE = "it has no value where all predictions, or all ratings, are equal"


@dataclass(frozen=True, eq=False)
class RatingRows:
    """Rows of all users: a user code, the actual and the predicted number; sorted by these three."""

    cases: Ids
    case: Array
    actual: Float
    predicted: Float

    @classmethod
    def sorted(cls, cases: Ids, case: Array, actual: Float, predicted: Float) -> RatingRows:
        order = np.lexsort((predicted, actual, case))
        return cls(cases, case[order], actual[order], predicted[order])

    def per_user(self) -> Predictions:
        """One group per user."""
        return Predictions(self.case, len(self.cases), self.actual, self.predicted)

    def pooled(self, mask: Bool | None = None) -> Predictions:
        """One group of all rows, or of those of the users in a mask."""
        keep: Any = slice(None) if mask is None else mask[self.case]
        actual = self.actual[keep]
        return Predictions(np.zeros(len(actual), dtype=np.int64), 1, actual, self.predicted[keep])


class RatingEvaluation(Evaluation):
    """{metric: value} of predicted numbers, with one row per user behind it.

    A pooled metric (`rmse`) is computed over all rows at once, `user_rmse` is the mean of the users' values;
    in the per-user table both hold the user's own value. compare() takes users as the sample for either.
    """

    _find = staticmethod(lookup_rating)

    def __init__(
        self,
        rated: RatingRows,
        requests: list[Request],
        *,
        by: Mapping[Any, Array] | None = None,
        notes: Mapping[str, Any] | None = None,
        counts: Mapping[str, int] | None = None,
    ) -> None:
        self.rated = rated
        users = rated.per_user()
        columns: dict[str, Float] = {
            str(r): np.asarray(r.metric.body(users, **r.own_params)) for r in requests
        }
        terms = {
            str(r): pair for r in requests if (pair := _ratio_terms(users, r, columns[str(r)])) is not None
        }
        all_counts = {"cases": len(rated.cases), "rows": len(rated.actual), **(counts or {})}
        partial = Partial(PerCase(rated.cases.values, columns), terms, all_counts)
        super().__init__(partial, requests, Conventions(), by=by, notes=notes)
        self.overall = self._summarise(None)

    def _summarise(self, mask: Bool | None) -> dict[str, float]:
        """Summarise over users; metrics that are no function of two sums are computed from the rows."""
        out = summarise(self.partial, self.requests, mask)
        pooled = self.rated.pooled(mask)
        for request in self._row_requests():
            out[str(request)] = float(np.asarray(request.metric.body(pooled, **request.own_params))[0])
        return out

    def _row_requests(self) -> list[Request]:
        terms = self.partial.terms
        return [r for r in self.requests if r.metric.kind == "derived" and str(r) not in terms]

    def values_by(self, masks: Mapping[Any, Array]) -> dict[Any, dict[str, float]]:
        """{group: {metric: value}} of groups given as masks; pooled over the rows of each."""
        return {label: self._summarise(mask) for label, mask in masks.items()}

    def _is_mean(self, request: Request) -> bool:
        return super()._is_mean(request) and request not in self._row_requests()

    def _estimate(self, request: Request, **options: Any) -> Estimate:
        """Recompute a pooled number that is no ratio of sums without each group of users."""
        name = str(request)
        if name in self.partial.terms or request.metric.kind not in ("derived", "ratio"):
            return super()._estimate(request, **options)
        group = groups_of(self.per_case.ids)

        def without(groups: Int) -> float:
            return self._summarise(~np.isin(group, groups))[name]

        sizes = np.bincount(group, minlength=N_GROUPS)
        estimate = jackknife(without, sizes, together=False).estimate(options["confidence"])
        return clip_interval(estimate, request.metric.bounds)

    def bounds(self) -> Bounds:
        """Each value with that of perfect predictions, and that of predicting the mean of all ratings."""
        actual = self.rated.actual
        constant = np.full(len(actual), exact_mean(actual))
        floor, best = (self._values_predicting(predicted) for predicted in (constant, actual))

        def limits(name: str) -> Limits:
            low, high = floor[name], best[name]
            how = ["" if math.isnan(value) else "exact" for value in (low, high)]
            return Limits(self[name], low, high, how[0], how[1], why="" if all(how) else _NO_VALUE)

        parse = partial(Request.parse, find=lookup_rating)
        return Bounds({name: limits(name) for name in self.overall}, says=_CAPTION, parse=parse)

    def _values_predicting(self, predicted: Float) -> Mapping[str, float]:
        """The values of other predictions for the same rows."""
        rated = RatingRows.sorted(self.rated.cases, self.rated.case, self.rated.actual, predicted)
        return RatingEvaluation(rated, self.requests).overall

    def merge(self, *others: Evaluation) -> Evaluation:
        """The result over the users of all; equal to evaluating their rows at once."""
        if not all(isinstance(o, RatingEvaluation) for o in others):
            raise MergeError("a result of ratings merges with another one of ratings only.")
        parts = [self, *(o for o in others if isinstance(o, RatingEvaluation))]
        if any([*map(str, p.requests)] != [*map(str, self.requests)] for p in parts):
            raise MergeError("the parts hold different metrics.", hint="Evaluate them with the same ones.")
        cases = self.rated.cases
        for part in parts[1:]:
            cases, _, _ = cases.union(part.rated.cases, what="user")
        if len(cases) != sum(len(p.rated.cases) for p in parts):
            raise MergeError("a user is in two of the parts.", hint="Keep each user's rows in one part.")
        places = [cases.code_of(p.rated.cases.values)[p.rated.case] for p in parts]
        rated = RatingRows.sorted(
            cases,
            np.concatenate(places),
            np.concatenate([p.rated.actual for p in parts]),
            np.concatenate([p.rated.predicted for p in parts]),
        )
        names = dict.fromkeys(n for p in parts for n in p.counts if n not in ("cases", "rows"))
        counts = {n: sum(p.counts.get(n, 0) for p in parts) for n in names}
        return RatingEvaluation(rated, self.requests, notes=self.notes, counts=counts)

    def save(self, path: Any, *, name: str | None = None, **facts: Any) -> None:
        """Write the result with its users, like Evaluation.save; refuses metrics that need every row."""
        if self._row_requests():
            names = ", ".join(map(str, self._row_requests()))
            raise RecsysError(
                f"{names} cannot be saved to {Path(path)}: made of all rows at once, and a file holds users.",
                hint="Leave such metrics out, or use to_json() for numbers and per_user_frame() for users.",
            )
        super().save(path, name=name, **facts)


def _ratio_terms(users: Predictions, request: Request, column: Float) -> tuple[Float, Float] | None:
    """Numerator and denominator per user for compare(), if the pooled metric is a ratio of two sums."""
    if request.metric.kind == "ratio":
        weights = gauc_weights(users, **request.own_params)
        return column * weights, np.where(np.isnan(column), np.nan, weights)
    if request.metric.kind == "derived" and request.metric.name in ROW_VALUES:
        return users.total(ROW_VALUES[request.metric.name](users)), users.n
    return None
