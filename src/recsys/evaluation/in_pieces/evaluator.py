"""Evaluator: users evaluated batch by batch, for loops that never hold all lists at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Unpack

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import ConventionError, InputError, MergeError, check_choice
from recsys.evaluation.engine import merge
from recsys.evaluation.evaluate_keywords import BatchKeywords
from recsys.evaluation.in_pieces.pieces import Remarks
from recsys.evaluation.options import EvaluationOptions, refuse_no_weight
from recsys.evaluation.origin import StoredOrigin
from recsys.evaluation.reading import CommonInputs
from recsys.evaluation.results import Evaluation
from recsys.evaluation.run import RunOrigin
from recsys.metrics.registry import Metrics
from recsys.records.arrays import Array, Ids, Partial

_FEW_TIMES = 16
_REFUSED = {
    "stop_when": "It draws from all users at once: use recsys.evaluate, or stop updating.",
    "progress": "It follows one call: report after each update instead.",
    **dict.fromkeys(
        ("memory", "per_user", "checkpoint"),
        "It is for inputs that are cut into batches by the call itself: use recsys.evaluate.",
    ),
}


class Evaluator:
    """Evaluates users batch by batch; memory holds one row per user, never the lists.

    It takes the keywords of evaluate but those that need all users at once (stop_when, progress). What they
    hold is read once. `seen` and `eligible` may come with each batch instead, for its users alone.

    A batch may lack lists, truth or both: a user with one of them counts as the conventions say. The result
    has the same bits as one call of evaluate, and its counts. Only its remarks about the data differ:

    - a caution that is not about counts of the result is kept if the batches that give it hold at least half
      of the users, in the words of the largest of them;
    - notes about columns are those of the first batch;
    - `ranges` are the union of those of the batches, which may be narrower than those of all users.

    >>> evaluator = Evaluator(["recall@2"])
    >>> _ = evaluator.update({1: [3, 4]}, {1: [3]}).update({2: [5, 6]}, {2: [7]}).update({}, {})
    >>> evaluator.result()["recall@2"]
    0.5
    """

    def __init__(self, metrics: Metrics = None, **options: Unpack[BatchKeywords]) -> None:
        for name in options:
            if name in _REFUSED:
                raise InputError(f"an Evaluator takes no {name}=.", hint=_REFUSED[name])
            check_choice("keyword of Evaluator", name, BatchKeywords.__annotations__)
        others: Any = {name: value for name, value in options.items() if name != "conventions"}
        self.inputs = CommonInputs(metrics, EvaluationOptions(**others))
        self.requests = self.inputs.requests
        self.conventions = Conventions.of(options.get("conventions"))
        self.inputs.read()
        self.reset()

    def reset(self) -> Evaluator:
        """Forget all users."""
        self._parts: list[_Batch] = []
        self._ids: list[Array] = []
        self._remarks = Remarks()
        return self

    def update(self, lists: Any, truth: Any, *, seen: Any = None, eligible: Any = None) -> Evaluator:
        """Add users that are in no earlier batch.

        Args:
            lists: the lists of these users, or what ranks them, as for evaluate; a table or dict without
                rows if they have none.
            truth: what was relevant to these users, likewise.
            seen: what these users had already, unless the Evaluator knows it of all users.
            eligible: the only items of these users, likewise.

        Raises:
            MergeError: a user is in an earlier batch.
        """
        piece = self.measured(lists, truth, seen=seen, eligible=eligible)
        if len(piece.partial.rows):
            self._add([_Batch(piece.partial, piece.truth_keys)])
            self._remarks = self._remarks.join(Remarks.of(piece))
        return self

    def measured(self, lists: Any, truth: Any, *, seen: Any = None, eligible: Any = None) -> RunOrigin:
        """Return what `update` would add, without keeping it."""
        run = self.inputs.run_of(lists, truth, seen=seen, eligible=eligible, is_batch=True)
        if run.effective(self.conventions) != self.conventions:
            names = [str(r) for r in self.requests if "max_grade" in r.metric.conventions]
            raise ConventionError(
                f"the highest grade of all users is not known from a batch, and {', '.join(names)} "
                f"{'needs' if len(names) == 1 else 'need'} it.",
                hint="Pass conventions={'max_grade': 5} to the Evaluator.",
            )
        return RunOrigin(run, run.partial(self.conventions), self.conventions)

    def merge(self, other: Evaluator) -> Evaluator:
        """Take over the users of another Evaluator of the same metrics and conventions."""
        if not isinstance(other, Evaluator):
            raise MergeError(f"an Evaluator merges with another one, not with {type(other).__name__}.")
        if other.requests != self.requests or other.conventions != self.conventions:
            raise MergeError("the two evaluators differ in metrics, conventions or aggregate.")
        if other._parts:
            self._add(other._parts)
        self._remarks = self._remarks.join(other._remarks)
        return self

    def result(self) -> Evaluation:
        """Return the evaluation of all users so far; equal to evaluating them at once."""
        if not self._parts:
            raise InputError("nothing has been evaluated yet.", hint="Call update(lists, truth) first.")
        self._parts = [_Batch.join(self._parts)]
        partial, truth_keys = self._parts[0]
        refuse_no_weight(partial.rows.weights)
        if partial.strata:
            labels = self.inputs.by.ordered(partial.strata)
            partial = replace(partial, strata={label: partial.strata[label] for label in labels})
        remarks, silenced = self._remarks, self.inputs.silenced
        origin = StoredOrigin(
            facts=remarks.facts,
            cautions=remarks.cautions_for(len(partial.rows), partial.counts, silenced),
            asked=remarks.asked,
            ranges=remarks.ranges,
            keys=truth_keys,
        )
        return Evaluation(partial, self.requests, self.conventions, origin=origin)

    def _add(self, parts: Sequence[_Batch]) -> None:
        """Keep parts, unless one of their users is here already."""
        ids = [_sorted_ids([part.partial.rows.ids for part in parts])]
        for known in self._ids:
            _refuse_same_user(known, ids[0])
        if self._parts and (self._parts[0].clusters is None) != (parts[0].clusters is None):
            raise MergeError("some parts have users of their cases, and others have none.")
        self._parts.extend(parts)
        # Sorted ids of about the same number become one array, so that there are never many of them.
        while self._ids and len(self._ids[-1]) < 2 * len(ids[0]):
            ids = [_sorted_ids([self._ids.pop(), *ids])]
        self._ids.extend(ids)


class _Batch(NamedTuple):
    """The result of some users, and the keys of their truth."""

    partial: Partial
    truth_keys: Array

    @property
    def clusters(self) -> Array | None:
        return self.partial.rows.clusters

    @classmethod
    def join(cls, parts: Sequence[_Batch]) -> _Batch:
        if len(parts) == 1:
            return parts[0]
        order = np.argsort(np.concatenate([part.partial.rows.ids for part in parts]), kind="stable")
        keys = np.concatenate([part.truth_keys for part in parts])[order]
        return cls(merge([part.partial for part in parts]), keys)


def _sorted_ids(parts: Sequence[Array]) -> Array:
    """Return the ids of several sorted arrays, sorted."""
    return parts[0] if len(parts) == 1 else np.sort(np.concatenate(parts), kind="stable")


def _refuse_same_user(known: Array, new: Array) -> None:
    """Raise an error if a user is known already; both arrays are sorted."""
    ids = Ids(known)
    if ids.kind != Ids(new).kind:
        raise MergeError("the parts hold ids of different types (int and str).")
    apart = new[0] > known[-1] or new[-1] < known[0]
    if not apart and ids.kind == "str" and len(known) < _FEW_TIMES * len(new):
        apart = set(new.tolist()).isdisjoint(known.tolist())  # much faster than comparing texts
    if apart:
        return
    codes = ids.code_of(new)
    repeated = codes[codes >= 0]
    if len(repeated):
        raise MergeError(
            f"user {ids.name(repeated[0])!r} is in two of the parts.",
            hint="Each user must be evaluated in one part only.",
        )
