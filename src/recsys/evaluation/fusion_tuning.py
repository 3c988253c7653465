"""The parameters of a fusion method found on validation data: trained, tried one by one, or both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from recsys.conventions.decisions import AnyConventions, Conventions, relevant
from recsys.display.number_words import plural
from recsys.errors import InputError, TieWarning, TunedOnItselfWarning, came_as, hush, verb, warn
from recsys.evaluation.evaluate import evaluate
from recsys.evaluation.files.digests import digest
from recsys.inputs.containers import columns_for, open_interactions
from recsys.metrics.registry import Request
from recsys.ranks import fusion
from recsys.records.arrays import Lists


@dataclass(frozen=True, eq=False)
class FusionTuning:
    """The parameters of a fusion method that did best on validation data.

    `trials` has (what was tried, the metric) for each trial, in order; it is empty for a method that is only
    trained. `value` is the metric of the chosen one, on the data it was chosen on: no estimate of how well
    it does elsewhere.
    """

    method: str
    norm: str | None
    parameters: Mapping[str, Any]
    metric: str
    value: float
    n_cases: int
    trials: tuple[tuple[Any, float], ...] = ()
    seen_runs: tuple[str, ...] = field(default=(), repr=False)

    @verb
    def fuse(
        self,
        runs: Sequence[Any],
        *,
        missing: Literal["empty", "error"] = "empty",
        columns: Mapping[str, str] | None = None,
    ) -> Lists:
        """Fuse other runs of the same recommenders, in the same order, with these parameters.

        Warns with TunedOnItselfWarning if they are the runs it was tuned on.
        """
        lists = fusion.read_runs(runs, columns, missing)
        if _digests(lists) == self.seen_runs:
            warn(
                TunedOnItselfWarning,
                "these are the runs that the parameters were chosen on: what they score says nothing of "
                "other data. Fuse the runs on test data.",
            )
        return fusion.fuse(lists, self.method, self.norm, **self.parameters)

    def __str__(self) -> str:
        found = ", ".join(f"{name}={_shortly(value)}" for name, value in self.parameters.items())
        values = {value for _, value in self.trials}
        trials = plural(len(self.trials), "trial")
        which = f"all {trials} are equal" if len(values) == 1 < len(self.trials) else f"the best of {trials}"
        tried = f", {which}" if self.trials else ""
        return (
            f"{self.method} with {found or 'no parameters'}, norm {self.norm}\n"
            f"{self.metric} = {self.value:.4f} on the {plural(self.n_cases, 'case')} it was "
            f"tuned on{tried}; "
            "evaluate .fuse(...) of other data"
        )


@verb
def tune_fusion(
    runs: Sequence[Any],
    truth: Any,
    method: str = "wsum",
    metric: str = "ndcg@10",
    *,
    norm: str | None = "default",
    conventions: AnyConventions = None,
    trials: Sequence[Any] | None = None,
    missing: Literal["empty", "error"] = "empty",
    columns: Mapping[str, Any] | None = None,
) -> FusionTuning:
    """Find the parameters of a fusion method on validation data; `.fuse(runs)` of the result applies them.

    Weights and the like are tried one by one, and the metric decides; of equal values the last trial wins.
    Methods such as "mapfuse" and "probfuse" are trained: they estimate from the truth how good each run is.

    Args:
        runs: lists of the recommenders on validation data, as in `fuse`.
        truth: what was relevant there, as in `evaluate`. Users without it are left out, users without a list
            count as ever.
        method: a method with parameters, see docs/fusion.md.
        metric: what is best, such as "ndcg@10".
        norm: how scores are made comparable first, as in `fuse`.
        conventions: those of the metric.
        trials: the values to try instead of the method's own: one weight per run in steps of 0.1, say.
        missing: as in `fuse`.
        columns: column names of tables, as in `evaluate`.

    >>> import recsys
    >>> runs = [{1: {"a": 3.0, "b": 1.0, "c": 0.5}}, {1: {"c": 9.0, "b": 2.0}}]
    >>> tuned = recsys.tune_fusion(runs, {1: {"c"}}, "wsum", "mrr")
    >>> tuned.parameters, tuned.value
    ({'weights': (0.4, 0.6)}, 1.0)
    """
    row = fusion.find_fusion(method)
    if row.trials is None and row.train is None:
        raise InputError(
            f"{row.name} has no parameters to find.",
            hint=f"recsys.fuse(runs, {row.name!r}) is all; "
            f"{', '.join(name for name, one in fusion.FUSIONS.items() if one.trials)} are tuned.",
        )
    lists = fusion.read_runs(runs, columns_for("lists", columns), missing)
    judged = open_interactions(truth, "truth", columns)
    rules, request = Conventions.of(conventions), Request.parse(metric)
    pool = fusion.normalise(fusion.pool_runs(lists, judged.cases), row, norm)
    if not len(pool.case):
        raise InputError(
            f"no user of the truth ({judged.cases.name(0)!r}, …) has a list in any run.",
            column="user",
            hint="Check that both sides use the same user ids, and are of the same part of the data.",
        )

    def scored(fused: Lists, by: str) -> float:
        with hush(TieWarning):
            value = evaluate(fused, judged, [by], conventions=rules, cautions="ignore")[by]
        return float(value)

    every = np.ones(len(judged.codes), dtype=bool)
    good = every if judged.grades is None else relevant(judged.grades, rules.relevant_from)
    training = fusion.JudgedPool.of(pool, judged, good, lambda: [scored(run, "map") for run in lists])
    candidates: list[Any] = [None]
    if row.trials is not None:
        candidates = row.trials(pool.n_runs) if trials is None else fusion.as_list(trials)
        if not isinstance(candidates, list | tuple):
            raise came_as("trials", trials, hint=f"Pass a list of {row.tuned}.")
    sign = -1.0 if request.metric.better == "lower" else 1.0
    trained: list[Any] | None = None
    best: tuple[float, dict[str, Any]] | None = None
    tried = []
    for candidate in candidates:
        parameters: dict[str, Any] = {}
        trains_anew = row.tuned not in row.parameters
        if row.train is not None and (trained is None or trains_anew):
            trained = row.train(training, **({row.tuned: candidate} if row.tuned and trains_anew else {}))
        if trained is not None:
            parameters[row.trained] = trained
        if row.tuned in row.parameters:
            parameters[row.tuned] = candidate
        value = scored(pool.to_lists(fusion.combine(pool, row, parameters)), metric)
        tried.append((candidate, value))
        if best is None or sign * value >= sign * best[0]:
            best = value, parameters
    if best is None:
        raise InputError("trials is empty.", hint=f"Leave it out, or pass values of {row.tuned}.")
    return FusionTuning(
        row.name,
        fusion.norm_of(row, norm),
        best[1],
        metric,
        best[0],
        len(judged.cases),
        tuple(tried) if row.trials is not None else (),
        _digests(lists),
    )


def _digests(lists: Sequence[Lists]) -> tuple[str, ...]:
    return tuple(
        digest([run.cases.values, run.items.values, run.indptr, run.codes, run.scores]) for run in lists
    )


def _shortly(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"<{type(value).__name__} of {len(value)}>"
