"""rank(): which places of a board are really different? The places that each model may have, all together.

Results in, of one data set or of several, or a table of other people's values per user; the statistics are in
recsys.stats.rank_sets.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from recsys.comparison.compare import Comparison, compare_results, mean_columns, read_results
from recsys.display.cells import Columns
from recsys.display.tabled import Tabled
from recsys.errors import InputError, UnknownNameError, came_as, notes_only
from recsys.evaluation.results import Evaluation, evaluation_of
from recsys.evaluation.uncertainty import needs_jackknife
from recsys.inputs.files.reader import read_table
from recsys.inputs.frames import as_frame, column_array, find_columns
from recsys.metrics.registry import Request
from recsys.records.arrays import Bool, PerCase
from recsys.records.checks import to_floats
from recsys.records.facts import Note, note
from recsys.stats.bootstrap import Resampler, Rng, Units, seed_from_rng
from recsys.stats.pairing import Aligned, align, describe_missing
from recsys.stats.rank_sets import Places, over_tasks, place_sets, shown_better
from recsys.stats.results import check_confidence

_SUCH_AS = "Such as recsys.rank({'als': als, 'bpr': bpr}), or recsys.rank('board.csv')."
Runs = dict[Any, list[Evaluation]]
_LONG = ("task", "system", "case", "user", "value")


class Ranks(Tabled, Mapping[Any, Places]):
    """{model: the best and the worst place it may have}, the best model first; prints as a table.

    Attributes:
        metric: what the models are ranked by.
        values: {model: its value}; over several tasks the mean of theirs.
        confidence: of all places together.
        n_users: how many users all models share, of all tasks together.
        wins: {model: on how many tasks it has the best value}; empty if there is one task.
    """

    def __init__(
        self,
        metric: str,
        values: Mapping[Any, float],
        is_better: Bool,
        *,
        confidence: float,
        n_users: int,
        wins: Mapping[Any, int] = {},
        notes: Sequence[Note] = (),
        lower_is_better: bool = False,
    ) -> None:
        places = dict(zip(values, place_sets(is_better), strict=True))
        sign = 1.0 if lower_is_better else -1.0
        order = sorted(values, key=lambda name: (sign * values[name], places[name]))
        self.metric, self.confidence, self.n_users, self.notes = metric, confidence, n_users, tuple(notes)
        self.values_by_model = {name: values[name] for name in order}
        self.wins = {name: wins[name] for name in order} if wins else {}
        self._places: dict[Any, Places] = {name: places[name] for name in order}

    def __getitem__(self, model: Any) -> Places:
        if model not in self._places:
            raise UnknownNameError("model", model, self._places)
        return self._places[model]

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._places)

    @property
    def may_be_first(self) -> tuple[Any, ...]:
        """The models that may be the best."""
        return tuple(name for name, places in self.items() if places.best == 1)

    def _all_columns(self) -> Columns:
        columns: dict[str, Sequence[Any]] = {
            "model": [*self],
            "value": [*self.values_by_model.values()],
            "best": [places.best for places in self.values()],
            "worst": [places.worst for places in self.values()],
        }
        return columns | ({"wins": [*self.wins.values()]} if self.wins else {})

    def _columns(self) -> Columns:
        columns = self._all_columns()
        shown = {
            "model": columns["model"],
            self.metric: columns["value"],
            "place": [*map(str, self.values())],
        }
        return shown | ({"wins": columns["wins"]} if self.wins else {})

    def to_dict(self) -> dict[str, Any]:
        """Return every place and value, as values that JSON can hold."""
        facts = {"metric": self.metric, "confidence": self.confidence, "users": self.n_users}
        return facts | super().to_dict()

    def _footnotes(self) -> list[object]:
        facts = {"n_users": self.n_users, "confidence": self.confidence}
        return [note("may_be_first", n=len(self.may_be_first), of=len(self), **facts), *self.notes]


def rank(
    results: Any,
    metric: str | None = None,
    *,
    confidence: float = 0.95,
    lower_is_better: bool | None = None,
    columns: Mapping[str, str] | None = None,
    n_resamples: int = 10_000,
    rng: Rng = 0,
) -> Ranks:
    """Return which places each model may have, so that all hold together with 95% confidence.

    A model is behind those that are shown to be better, by one test of all pairs of models with random signs
    of whole users (of several runs of a model: by t-tests over the runs, corrected by Holm). Models that
    nothing separates share their places.

    Args:
        results: {model: result, its path, or its runs}, or a list of paths; {data set: {model: result}} for
            these data sets, each with the same weight; or a table (or its file) of other people's values with
            the columns model and value, one row per user or query in the column case, and task if there are
            several data sets.
        metric: what to rank by; by default the first that the results hold.
        confidence: with which no place is wrong.
        lower_is_better: of a table's values; the metrics of results know.
        columns: names of the columns of a table, such as {"case": "qid"}.
        n_resamples: how many random signs are drawn for each user.
        rng: the seed.

    >>> import recsys
    >>> truth = {u: {u} for u in range(300)}
    >>> every = {"a": 2, "b": 3, "c": 3, "d": 30}
    >>> results = {
    ...     name: recsys.evaluate({u: [u if (u + ord(name)) % n == 0 else -1] for u in truth}, truth, "hit@1")
    ...     for name, n in every.items()
    ... }
    >>> print(*(f"{model}: {places}" for model, places in rank(results).items()))
    a: 1 b: 2-3 c: 2-3 d: 4
    """
    check_confidence(confidence)
    confidence = float(confidence)
    if isinstance(results, str | os.PathLike) or as_frame(results) is not None:
        board = _read_table(results, metric, columns, lower=bool(lower_is_better))
    else:
        if lower_is_better is not None or columns is not None:
            what = "lower_is_better" if columns is None else "columns"
            raise InputError(f"{what}= is for tables: results know theirs.", hint=_SUCH_AS)
        runs_of, request = _read_tasks(_by_task(results), metric)
        if needs_jackknife(request) or any(len(r) > 1 for runs in runs_of.values() for r in runs.values()):
            return _of_pairs(runs_of, request, confidence)
        board = _Board(
            {
                task: align({n: mean_columns(r[0], [request]) for n, r in runs.items()}, [str(request)])
                for task, runs in runs_of.items()
            },
            str(request),
            request.metric.better == "lower",
        )
    return board.ranks(confidence, n_resamples, rng)


class _Board(NamedTuple):
    """The values of all models, for each task; `of_users`: those of users, not the means of tasks alone."""

    tasks: Mapping[str, Aligned]
    metric: str
    lower: bool
    of_users: bool = True

    def ranks(self, confidence: float, n_resamples: int, rng: Rng) -> Ranks:
        """Return the places, from the users that all models share."""
        units = {task: self._units(task) for task in self.tasks}
        models = list(next(iter(self.tasks.values())).tables)
        means = np.array([[math.fsum(row) for row in u.totals] / u.weights[0].sum() for u in units.values()])
        is_better = np.zeros((len(models), len(models)), dtype=bool)
        notes, n_users = [note("means_only")], 0
        if self.of_users:
            joined = over_tasks(units)
            resampler, n_users = Resampler(joined.keys, n_resamples, seed_from_rng(rng)), len(joined.keys)
            values = -joined.totals if self.lower else joined.totals
            is_better = shown_better(values, resampler, 1.0 - confidence)
            notes = [
                one.about(task) if len(units) > 1 else one
                for task, aligned in self.tasks.items()
                for one in describe_missing(aligned.missing, len(aligned.ids))
            ]
        mean_of = dict(zip(models, (math.fsum(of) / len(units) for of in means.T), strict=True))
        best = means == (means.min if self.lower else means.max)(axis=1, keepdims=True)
        wins = dict(zip(models, best.sum(axis=0).tolist(), strict=True)) if len(units) > 1 else {}
        return Ranks(
            self.metric, mean_of, is_better, confidence=confidence, n_users=n_users, wins=wins, notes=notes,
            lower_is_better=self.lower,
        )  # fmt: skip

    def _units(self, task: str) -> Units:
        """Return the units that every model has a value for."""
        aligned = self.tasks[task]
        values = np.stack([columns[self.metric] for columns in aligned.tables.values()])
        shared: Bool = np.asarray(~np.isnan(values).any(axis=0))
        if not shared.any():
            on = f" of {task!r}" if len(self.tasks) > 1 else ""
            raise InputError(
                f"no case{on} has a value of {self.metric} from every model.", column=self.metric
            )
        return aligned.units(values, shared)


def _of_pairs(runs_of: Mapping[str, Runs], request: Request, confidence: float) -> Ranks:
    """The places from the comparison of every pair: of several runs, or of what is not a mean over users."""
    if len(runs_of) > 1:
        what = "is not a mean over users" if needs_jackknife(request) else "has several runs of a model"
        raise InputError(
            f"{request} {what}, and places over several data sets need one value per user.",
            hint="Rank each data set by itself.",
        )
    [runs] = runs_of.values()
    options: Any = {"correction": "holm", "confidence": confidence}
    with notes_only():
        pairs = compare_results(runs, None, str(request), options, cautions="ignore", every_pair=True)
    models = list(runs)
    is_better = np.zeros((len(models), len(models)), dtype=bool)
    for row in pairs:
        at = models.index(row.model), models.index(row.baseline)
        if row.verdict.kind in ("better", "worse"):
            is_better[at if row.verdict.kind == "better" else at[::-1]] = True
    values = {name: math.fsum(one[str(request)] for one in of) / len(of) for name, of in runs.items()}
    n_users = min(one.n_cases.get(str(request), 0) for of in runs.values() for one in of)
    return Ranks(
        str(request), values, is_better, confidence=confidence, n_users=n_users,
        notes=pairs.table.notes, lower_is_better=request.metric.better == "lower",
    )  # fmt: skip


def _by_task(results: Any) -> dict[str, dict[Any, Any]]:
    """Return {task: {model: result or runs}} of what was given; one task has no name."""
    if isinstance(results, Comparison):
        return {"": dict(results.evaluations)}
    if not isinstance(results, Mapping):
        if isinstance(results, Evaluation) or not isinstance(results, Sequence):
            raise came_as("results", results, hint=_SUCH_AS)
        loaded = [(one, evaluation_of(one)) for one in results]
        names = [
            getattr(e, "name", None) or (f"model {at}" if e is one else Path(one).stem)
            for at, (one, e) in enumerate(loaded, 1)
        ]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"two results are called {twice!r}.", hint=_SUCH_AS)
        return {"": {name: e for name, (_, e) in zip(names, loaded, strict=True)}}
    nested = [isinstance(of, Mapping) and not isinstance(of, Evaluation) for of in results.values()]
    if any(nested) and not all(nested):
        name = list(results)[nested.index(False)]
        raise InputError(f"{name!r} is not a mapping of models, as others are.", hint=_SUCH_AS)
    if not any(nested):
        return {"": dict(results)}
    first, *others = results
    for other in others:
        differ = [*results[first].keys() ^ results[other].keys()]
        if differ:
            raise InputError(f"{differ[0]!r} is not on both {first!r} and {other!r}.", hint="Leave it out.")
    return {str(task): {name: of[name] for name in results[first]} for task, of in results.items()}


def _read_tasks(
    by_task: Mapping[str, Mapping[Any, Any]], metric: str | None
) -> tuple[dict[str, Runs], Request]:
    """Return the runs of each model on each task, and the metric."""
    runs_of: dict[str, Runs] = {}
    requests: list[Request] = []
    for task, by_model in by_task.items():
        if len(by_model) < 2:
            raise InputError(f"ranks need at least two models, got {list(by_model)}.", hint=_SUCH_AS)
        runs_of[task], requests = read_results(by_model, metric)
        metric = str(requests[0])
    return runs_of, requests[0]


def _read_table(
    results: Any, metric: str | None, columns: Mapping[str, str] | None, *, lower: bool
) -> _Board:
    """Return the board of a long table: one row per task, model and user, or per task and model."""
    is_file = isinstance(results, str | os.PathLike)
    name = str(results) if is_file else "results"
    frame = as_frame(read_table(results)[0] if is_file else results)
    names = [*map(str, frame.columns)]
    roles = find_columns(names, _LONG, columns, name, needed=("system", "value"))
    metric_column = next((n for n in names if n.lower() == "metric" and n not in roles.values()), None)
    if metric_column is not None:
        cells = column_array(frame[metric_column]).astype(str)
        known = [*dict.fromkeys(cells.tolist())]
        if (metric is None and len(known) > 1) or metric not in (None, *known):
            raise UnknownNameError("metric of the table", metric or "", known)
        frame = frame.filter((cells == (metric or known[0])).tolist())
        metric = metric or known[0]
    text = {
        role: column_array(frame[roles[role]]).astype(str) for role in ("task", "system") if role in roles
    }
    value = to_floats(column_array(frame[roles["value"]]), f"the values of {name}", "One number per row.")
    case_role = next((role for role in ("case", "user") if role in roles), None)
    n = len(value)
    cases = np.zeros(n, dtype=np.int64) if case_role is None else column_array(frame[roles[case_role]])
    tasks = text.get("task", np.full(n, ""))
    models = [*dict.fromkeys(text["system"].tolist())]
    if len(models) < 2:
        raise InputError(f"ranks need at least two models, got {models}.", table=name, hint=_SUCH_AS)
    metric = metric or roles["value"]
    found = {}
    for task in dict.fromkeys(tasks.tolist()):
        tables = {}
        for model in models:
            at = np.flatnonzero((tasks == task) & (text["system"] == model))
            ids, first = np.unique(cases[at], return_index=True)
            on = f" on {task!r}" if task else ""
            if not len(at):
                raise InputError(f"{model!r} has no row{on}.", table=name, hint="Leave it out.")
            if len(ids) < len(at):
                again = cases[at][np.setdiff1d(np.arange(len(at)), first)].tolist()[0]
                what = "several rows and no column of cases" if case_role is None else f"case {again!r} twice"
                raise InputError(f"{model!r} has {what}{on}.", table=name, hint="One row per model and case.")
            tables[model] = PerCase(ids, {metric: value[at][first]})
        found[task] = align(tables, [metric])
    return _Board(found, metric, lower, case_role is not None)
