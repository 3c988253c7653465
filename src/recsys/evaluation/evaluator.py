"""Evaluator: users evaluated batch by batch, for loops that never hold all lists at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack

from recsys.conventions.decisions import AnyConventions, Conventions
from recsys.errors import ConventionError, InputError, MergeError, UnknownNameError
from recsys.evaluation.cautions import Caution
from recsys.evaluation.engine import merge
from recsys.evaluation.options import ContextKeywords
from recsys.evaluation.results import Evaluation
from recsys.evaluation.run import (
    EvaluationRun,
    list_length,
    load_interactions,
    load_ranking,
    parse_catalogue,
)
from recsys.metrics.attributes import read_context
from recsys.metrics.ranges import Range, union_ranges
from recsys.metrics.registry import Metrics, parse_all
from recsys.ranks.sources import RankingOptions
from recsys.types import Partial

_CONTEXT_KEYWORDS = tuple(ContextKeywords.__annotations__)
_NEEDS_ALL_USERS = "Other arguments of evaluate (by=, seen=, stop_when=, …) need all users at once."


class Evaluator:
    """Evaluates users batch by batch; memory holds one row per user, never the lists.

    `known` is the context that metrics about the items shown need, as for evaluate: train=, popularity=,
    items=, users=, embeddings=, profiles=, reference=, intents=.

    >>> evaluator = Evaluator(["recall@2"])
    >>> _ = evaluator.update({1: [3, 4]}, {1: [3]}).update({2: [5, 6]}, {2: [7]})
    >>> evaluator.result()["recall@2"]
    0.5
    """

    def __init__(
        self,
        metrics: Metrics = None,
        *,
        k: int | Sequence[int] | None = None,
        conventions: AnyConventions = None,
        columns: Mapping[str, Any] | None = None,
        catalogue: int | Iterable[Any] | None = None,
        complete: bool = False,
        **known: Unpack[ContextKeywords],
    ) -> None:
        self.requests = parse_all(metrics, k)
        self.conventions = Conventions.of(conventions)
        self._columns = columns
        for name in known:
            if name not in _CONTEXT_KEYWORDS:
                raise UnknownNameError("keyword of Evaluator", name, _CONTEXT_KEYWORDS, hint=_NEEDS_ALL_USERS)
        self._context = read_context(**known)
        self._catalogue, self._n_items = parse_catalogue(catalogue)
        self._complete = complete
        self._parts: list[Partial] = []
        self._cautions: tuple[Caution, ...] = ()
        self._ranges: dict[str, Range] = {}

    def update(
        self,
        lists: Any,
        truth: Any,
        *,
        user_ids: Iterable[Any] | None = None,
        item_ids: Iterable[Any] | None = None,
    ) -> Evaluator:
        """Add users that are in no earlier batch; the ids are those of a model's rows, as for evaluate."""
        ranking = load_ranking(lists, self._columns, user_ids, item_ids)
        needs_lists = any("lists" in r.metric.needs for r in self.requests)
        run = EvaluationRun(
            ranking,
            load_interactions(truth, "truth", self._columns),
            self.requests,
            RankingOptions(k=list_length(self.requests, ranking) if needs_lists else None),
            self._context,
            catalogue=self._catalogue,
            n_items=self._n_items,
            complete=self._complete,
            shared=False,
        )
        if run.effective(self.conventions) != self.conventions:
            raise ConventionError(
                "err needs to know the highest grade, which a batch cannot tell.",
                hint="Pass conventions={'max_grade': 5} to the Evaluator.",
            )
        part = run.partial(self.conventions)
        if not self._parts:
            self._cautions = run.cautions(part, self.conventions)
        self._parts.append(part)
        self._ranges = union_ranges(self._ranges, run.ranges(self.conventions))
        return self

    def merge(self, other: Evaluator) -> Evaluator:
        """Take over the users of another Evaluator of the same metrics and conventions."""
        if not isinstance(other, Evaluator):
            raise MergeError(f"an Evaluator merges with another one, not with {type(other).__name__}.")
        if [*map(str, other.requests)] != [*map(str, self.requests)] or other.conventions != self.conventions:
            raise MergeError("the two evaluators differ in metrics or conventions.")
        self._parts.extend(other._parts)
        self._ranges = union_ranges(self._ranges, other._ranges)
        return self

    def reset(self) -> Evaluator:
        """Forget all users."""
        self._parts, self._ranges = [], {}
        return self

    def result(self) -> Evaluation:
        """The evaluation of all users so far; equal to evaluating them at once."""
        if not self._parts:
            raise InputError("nothing was evaluated yet.", hint="Call update(lists, truth) first.")
        self._parts = [merge(self._parts)]
        return Evaluation(
            self._parts[0], self.requests, self.conventions, cautions=self._cautions, ranges=self._ranges
        )
