"""evaluate_ratings(): predicted against actual numbers, over all rows and per user.

Rows are sorted by user and by their two numbers, so no value depends on the order of the input, and
pooled sums are exact. The result is an Evaluation, so compare, slices and exports work on it as on any other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import Fix, InputError, MergeError, Phrase, RecsysError, came_as
from recsys.evaluation.bounds import Bounds, Limits
from recsys.evaluation.engine import summarise
from recsys.evaluation.groups import masks_by_label
from recsys.evaluation.options import check_flag
from recsys.evaluation.origin import StoredOrigin
from recsys.evaluation.result_facts import ResultFacts
from recsys.evaluation.results import Evaluation
from recsys.evaluation.uncertainty import mask_jackknife
from recsys.inputs.containers import as_array, rows_of_container
from recsys.inputs.frames import as_frame, column_array, encode_column, find_columns
from recsys.inputs.ids import encode, ids_from_sequence
from recsys.inputs.rows import Rows, finite_numbers
from recsys.kernels.exact_sums import exact_mean
from recsys.metrics import lookup_rating
from recsys.metrics.predictions import TERMS, Predictions
from recsys.metrics.registry import SETS, Request, split_names
from recsys.records.arrays import Array, Bool, Float, Ids, Partial, PerCase
from recsys.records.checks import to_floats
from recsys.records.read_facts import ReadFacts
from recsys.stats.results import Estimate, clip_interval

Metrics = str | Iterable[str | Request] | None

_PUNISH_CERTAINTY = ("log_loss", "normalised_entropy")  # a wrong 0 or 1 weighs almost without limit in them
_CAPTION = "best: perfect predictions; floor: the mean of all ratings, predicted for every row"
_NO_VALUE = "it has no value where all predictions, or all ratings, are equal"

__all__ = [
    "SETS",
    "RatingEvaluation",
    "evaluate_ratings",
    "parse_ratings",
    "read_predictions",
    "rows_of_pairs",
]


def evaluate_ratings(
    predictions: Any,
    truth: Any = None,
    metrics: Metrics = None,
    *,
    scale: tuple[float, float] | None = None,
    clip: bool = False,
    missing: str = "error",
    by: Mapping[Any, Any] | Callable[[Any], Any] | None = None,
    columns: Mapping[str, str] | None = None,
) -> RatingEvaluation:
    """Score predicted ratings, or predicted click probabilities, against the actual ones.

    Args:
        predictions: a table with user, prediction and rating (or label, click, …) columns, one row per rating
            or impression; or {user: [(predicted, actual), …]}.
        truth: the actual ratings as a table or {user: {item: rating}}, if `predictions` has none: the
            two are joined by user and item.
        metrics: names such as "rmse" or "user_mae", or one of the sets "ratings" (default) and "clicks".
        scale: lowest and highest possible rating; an actual rating outside it is an error.
        clip: move predictions outside the scale to its border (counted).
        missing: "error", or "skip" to leave out and count ratings without a prediction.
        by: group of each user, as {user: group} or a function of the user id; results per group.
        columns: column names if detection fails: {"user": "uid", "prediction": "p", "actual": "stars"}.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"user": [1, 1, 2], "rating": [4, 2, 5], "prediction": [3.0, 2.0, 3.0]})
    >>> print(evaluate_ratings(table, metrics=["rmse", "user_rmse", "bias"]))
    metric       value  users
    ---------  -------  -----
    rmse        1.2910      2
    user_rmse   1.3536      2
    bias       -1.0000      2
    <BLANKLINE>
    3 rows of 2 users
    a plain name is over all rows, user_ the mean over users
    """
    requests = parse_ratings(metrics)
    if type(missing) is not str or missing not in ("error", "skip"):
        raise InputError(f"missing={missing!r} is neither 'error' nor 'skip'.")
    counts: dict[str, int] = {}
    if truth is not None:
        rows, counts = _join_tables(predictions, truth, columns, missing)
    elif isinstance(predictions, Mapping) and not hasattr(predictions, "columns"):
        rows = rows_of_pairs(predictions)
    else:
        rows = read_predictions(predictions, columns=columns)
    if rows.grade is None or rows.score is None:
        what, holder = ("rating", "truth") if rows.grade is None else ("prediction", "predictions")
        role = "actual" if rows.grade is None else "prediction"
        raise InputError(
            f"the {holder} came without a {what} for each item.",
            table=holder,
            hint=Phrase(
                "Give each item a {}; {evaluate_ratings.columns=} names its column in a table.",
                what,
                columns={role: ...},
            ),
        )
    actual = finite_numbers(rows.grade, rows, "rating", "actual")
    predicted = finite_numbers(rows.score, rows, "prediction")
    if check_flag("clip", clip) or scale is not None:
        hint = Phrase("Pass the lowest and highest rating: {evaluate_ratings.scale=(1, 5)}.")
        if scale is None:
            raise InputError(
                Phrase("{evaluate_ratings.clip=True} moves predictions to the border of a scale."),
                hint=Phrase("Pass {evaluate_ratings.scale=(1, 5)} too."),
            )
        ends = to_floats(scale, "scale", hint)
        if ends.shape != (2,) or not ends[0] < ends[1]:
            raise InputError(
                Phrase("{} is not a scale.", Fix("scale", scale, of="evaluate_ratings")), hint=hint
            )
        low, high = ends.tolist()
        off_scale = (actual < low) | (actual > high)
        if off_scale.any():
            row = int(np.argmax(off_scale))
            raise InputError(
                f"the rating {actual[row]:g} of {rows.name(row)} is outside the scale from {low:g} to "
                f"{high:g} ({int(off_scale.sum())} such rows).",
                table=rows.table,
                column="rating",
                row=row,
                hint="Fix the data, or state the scale it really has.",
            )
        n_outside = int(((predicted < low) | (predicted > high)).sum())
        counts["clipped" if clip else "outside_scale"] = n_outside
        predicted = np.clip(predicted, low, high) if clip else predicted
    used = np.unique(rows.case)  # a user without any remaining row has no values
    cases = Ids(rows.cases.values[used])
    rated = RatingRows.sorted(cases, np.searchsorted(used, rows.case), actual, predicted)
    if any(r.metric.name.removeprefix("user_") in _PUNISH_CERTAINTY for r in requests):
        counts["certain_and_wrong"] = int((np.abs(rated.predicted - rated.actual) == 1).sum())
    groups = None if by is None else masks_by_label(rated.cases.values, by)
    return RatingEvaluation(rated, requests, by=groups, facts=ResultFacts(ratings=rows.facts), counts=counts)


def parse_ratings(metrics: Metrics) -> list[Request]:
    """Requests of rating metrics, in the order of `metrics`, without repeats."""
    names: Any = SETS["ratings"] if metrics is None else metrics
    if isinstance(names, str):
        names = SETS.get(names) or split_names(names)
    if hasattr(names, "shape"):
        raise came_as("metrics=", metrics, hint='Name metrics, such as ["rmse", "mae"].')
    try:
        requests = {str(r): r for r in [Request.parse(text, lookup_rating) for text in names]}
    except TypeError:
        raise came_as("metrics=", metrics, hint='Name metrics, such as ["rmse", "mae"].') from None
    if not requests:
        raise InputError("no metric was asked for.", hint='Ask for one, such as "rmse".')
    return list(requests.values())


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
        """Return one group per user."""
        return Predictions(self.case, len(self.cases), self.actual, self.predicted)

    def pooled(self, mask: Bool | None = None) -> Predictions:
        """Return one group of all rows, or of those of the users in a mask."""
        keep: Any = slice(None) if mask is None else mask[self.case]
        actual, user = self.actual[keep], self.case[keep]
        return Predictions(np.zeros(len(actual), dtype=np.int64), 1, actual, self.predicted[keep], user)


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
        facts: ResultFacts | None = None,
        counts: Mapping[str, int] | None = None,
    ) -> None:
        self.rated = rated
        users = rated.per_user()
        columns: dict[str, Float] = {}
        terms: dict[str, tuple[Float, Float]] = {}  # of pooled metrics that are a ratio of two sums
        for request in requests:
            name, metric = str(request), request.metric
            columns[name] = column = np.asarray(metric.body(users, **request.own_params))
            if metric.name in TERMS:
                terms[name] = TERMS[metric.name](users, column, **request.own_params)
        all_counts = {"cases": len(rated.cases), "rows": len(rated.actual), **(counts or {})}
        partial = Partial(PerCase(rated.cases.values, columns), terms, all_counts)
        super().__init__(
            partial, requests, Conventions(), by=by, origin=StoredOrigin(facts=facts or ResultFacts())
        )
        self.overall = self._summarise(None)

    def _summarise(self, mask: Bool | None) -> dict[str, float]:
        """Summarise over users; metrics that are not a function of two sums are computed from the rows."""
        out = summarise(self.partial, self.requests, mask)
        pooled = self.rated.pooled(mask)
        for request in self._row_requests():
            out[str(request)] = float(np.asarray(request.metric.body(pooled, **request.own_params))[0])
        return out

    def _row_requests(self) -> list[Request]:
        return [r for r in self.requests if r.metric.kind == "rows"]

    def values_by(self, masks: Mapping[Any, Array]) -> dict[Any, dict[str, float]]:
        """Return {group: {metric: value}} of groups given as masks; pooled over the rows of each."""
        return {label: self._summarise(mask) for label, mask in masks.items()}

    def _is_mean(self, request: Request) -> bool:
        return super()._is_mean(request) and request not in self._row_requests()

    def _estimate(self, request: Request, partial: Partial, **options: Any) -> Estimate:
        """Recompute a pooled number that is not a ratio of sums without each group of users."""
        name = str(request)
        if request.metric.kind != "rows":
            return super()._estimate(request, partial, **options)
        inside = Ids(partial.rows.ids).code_of(self.per_case.ids) >= 0
        found = mask_jackknife(self.per_case.ids, inside, lambda mask: self._summarise(mask)[name])
        return clip_interval(found.estimate(options["confidence"]), request.metric.bounds)

    def bounds(self) -> Bounds:
        """Compare each value with perfect predictions, and with predicting the mean of all ratings."""
        cases, case, actual = self.rated.cases, self.rated.case, self.rated.actual
        constant = np.full(len(actual), exact_mean(actual))
        floor, best = (
            RatingEvaluation(RatingRows.sorted(cases, case, actual, predicted), self.requests).overall
            for predicted in (constant, actual)
        )
        limits = {}
        for name, value in self.overall.items():
            how = ["" if math.isnan(limit) else "exact" for limit in (floor[name], best[name])]
            why = "" if all(how) else _NO_VALUE
            limits[name] = Limits(value, floor[name], best[name], how[0], how[1], why=why)
        return Bounds(limits, caption=_CAPTION, parse=partial(Request.parse, find=lookup_rating))

    def merge(self, *others: Evaluation) -> Evaluation:
        """Return the result over the users of all; equal to evaluating their rows at once."""
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
        return RatingEvaluation(rated, self.requests, facts=self.facts, counts=counts)

    def save(self, path: Any, *, name: str | None = None, **facts: Any) -> None:
        """Write the result with its users, like Evaluation.save; refuses metrics that need every row."""
        if self._row_requests():
            names = ", ".join(map(str, self._row_requests()))
            raise RecsysError(
                f"{names} cannot be saved to {Path(path)}: made of all rows at once, and a file holds users.",
                hint="Leave such metrics out, or use to_json() for numbers and per_user_frame() for users.",
            )
        super().save(path, name=name, **facts)


def read_predictions(
    data: Any,
    *,
    held: tuple[str, ...] = ("prediction", "actual"),
    columns: Mapping[str, str] | None = None,
    table: str = "predictions",
) -> Rows:
    """Predicted and actual numbers, one row each: `score` and `grade` of the returned rows.

    `held`: which of the two the table holds; with both, it needs no item column.
    """
    frame = as_frame(data)
    if frame is None:
        return rows_of_container(data, ordered="prediction" in held, table=table)
    if len(frame) == 0:
        raise InputError(f"the {table} table has no rows.", table=table, hint="Check what it came from.")
    ids = ("user",) if len(held) == 2 else ("user", "item")
    roles = ("case", "user", "item", *held)
    if columns is not None and not isinstance(columns, Mapping):
        raise came_as("columns", columns, hint='Pass {"prediction": "p", "actual": "stars"}.')
    known = {role: name for role, name in (columns or {}).items() if role in roles}
    found = find_columns(list(frame.columns), roles, known, table, needed=(*ids, *held))
    cases, case = encode_column(frame, found.get("case", found.get("user", "")), table)
    items, item = Ids(np.arange(len(frame)), is_range=True), np.arange(len(frame), dtype=np.int32)
    if "item" in found:
        items, item = encode_column(frame, found["item"], table)
    values = {role: column_array(frame[found[role]]) for role in held}
    return Rows(
        table,
        cases,
        case,
        items,
        item,
        score=values.get("prediction"),
        grade=values.get("actual"),
        facts=ReadFacts(columns=found),
    )


def rows_of_pairs(pairs_by_user: Mapping[Any, Any]) -> Rows:
    """Return {user: [(predicted, actual), …]}, or n x 2 arrays, as rows in the same order."""
    users = list(pairs_by_user)
    if not users:
        raise InputError("there are no predictions.", table="predictions", hint="Pass {user: [(p, r), …]}.")
    parts = []
    for user in users:
        values = pairs_by_user[user]  # an array, a table, a tensor, or an iterable of pairs
        try:
            if hasattr(values, "__array__"):
                part = as_array(values).astype(np.float64)
            else:
                pairs_of_user = list(values)
                try:
                    part = np.asarray(pairs_of_user, dtype=np.float64)
                except (RuntimeError, TypeError):  # numbers in tensors that NumPy cannot convert
                    part = np.array([[float(as_array(n)) for n in pair] for pair in pairs_of_user])
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(
                f"user {user!r} holds something that is not a pair of numbers ({error}).",
                table="predictions",
                row=user,
                hint="Write [(predicted, actual), …].",
            ) from error
        if part.size and (part.ndim != 2 or part.shape[1] != 2):
            raise InputError(
                f"user {user!r} holds an array of shape {part.shape}.",
                table="predictions",
                row=user,
                hint="Write [(predicted, actual), …].",
            )
        parts.append(part.reshape(-1, 2))
    ids, codes = encode(
        ids_from_sequence(users, table="predictions", column="user"), table="predictions", column="user"
    )
    sizes = [len(part) for part in parts]
    pairs = np.concatenate(parts)
    item = np.arange(len(pairs), dtype=np.int32)
    items = Ids(np.arange(len(pairs)), is_range=True)
    return Rows(
        "predictions", ids, np.repeat(codes, sizes), items, item, score=pairs[:, 0], grade=pairs[:, 1]
    )


def _join_tables(
    predictions: Any, truth: Any, columns: Mapping[str, str] | None, missing: str
) -> tuple[Rows, dict[str, int]]:
    """Ratings with the prediction of their (user, item); pairs are unique on both sides."""
    predicted = read_predictions(predictions, held=("prediction",), columns=columns)
    actual = read_predictions(truth, held=("actual",), columns=columns, table="truth")
    cases, _, _ = actual.cases.union(predicted.cases, what="user")
    items, _, _ = actual.items.union(predicted.items, what="item")
    predicted_pairs, order = _sorted_pairs(predicted, cases, items)
    if not len(predicted_pairs):
        raise InputError(
            "the predictions table has no rows.", table="predictions", hint="Pass one row per rated pair."
        )
    actual_pairs, at = _sorted_pairs(actual, cases, items)
    place = np.minimum(np.searchsorted(predicted_pairs, actual_pairs), len(predicted_pairs) - 1)
    found = predicted_pairs[place] == actual_pairs
    n_missing = int((~found).sum())
    if n_missing and (missing == "error" or not found.any()):
        row = int(at[np.argmin(found)])
        raise InputError(
            f"{n_missing} of {len(actual_pairs)} ratings have no prediction, such as that of "
            f"{actual.name(row)}.",
            table="predictions",
            hint="Predict every rating, or pass missing='skip' to leave them out.",
        )
    counts = {"without_prediction": n_missing, "without_rating": len(predicted_pairs) - int(found.sum())}
    rows = at[found]
    return Rows(
        "predictions", actual.cases, actual.case[rows], actual.items, actual.item[rows],
        score=None if predicted.score is None else predicted.score[order[place[found]]],
        grade=None if actual.grade is None else actual.grade[rows],
    ), counts  # fmt: skip


def _sorted_pairs(rows: Rows, cases: Ids, items: Ids) -> tuple[Array, Array]:
    """Return (user, item) as one ascending number, and the row of each; a repeated pair is an error."""
    case = cases.code_of(rows.cases.values)[rows.case]
    key = case * max(len(items), 1) + items.code_of(rows.items.values)[rows.item]
    order = np.argsort(key, kind="stable")
    key = key[order]
    repeated = np.flatnonzero(key[1:] == key[:-1])
    if len(repeated):
        row = int(order[repeated[0] + 1])
        raise InputError(
            f"{rows.name(row)} occurs more than once, so the two tables cannot be joined.",
            table=rows.table,
            row=row,
            hint="Put prediction and rating into one table, one row per pair.",
        )
    return key, order


def __dir__() -> list[str]:
    return __all__
