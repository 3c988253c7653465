"""The retrieval classes of torchmetrics over this library: update, compute, reset, tensors in and out.

A row of the tensors is an item of the query that `indexes` names, so every query is a list with all of its
items in it. Where scores are equal, every class gives the expectation over all orders, as that of NDCG does
in torchmetrics; the others there take the order that an unstable sort leaves. Torch is imported when a class
is first used.

>>> import torch
>>> indexes = torch.tensor([0, 0, 0, 1, 1, 1, 1])
>>> preds = torch.tensor([0.2, 0.3, 0.5, 0.1, 0.3, 0.5, 0.2])
>>> target = torch.tensor([False, False, True, False, True, False, True])
>>> recall = RetrievalRecall(top_k=2)
>>> recall(preds, target, indexes=indexes)
tensor(0.7500)
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import InputError, NotDefinedError
from recsys.evaluation.evaluate import evaluate
from recsys.evaluation.options import check_flag
from recsys.kernels.exact_sums import exact_mean
from recsys.records.arrays import Array, Bool, Float, best_entries
from recsys.stats.aggregates import Aggregate

__all__ = [
    "RetrievalAUROC",
    "RetrievalFallOut",
    "RetrievalHitRate",
    "RetrievalMAP",
    "RetrievalMRR",
    "RetrievalNormalizedDCG",
    "RetrievalPrecision",
    "RetrievalPrecisionRecallCurve",
    "RetrievalRPrecision",
    "RetrievalRecall",
    "RetrievalRecallAtFixedPrecision",
]

Action = Literal["error", "skip", "neg", "pos"]
_AGGREGATES: dict[str, Callable[[Float], float]] = {
    "mean": exact_mean,
    "median": Aggregate("median", 0.5),
    "min": np.min,
    "max": np.max,
}
_SCORED = ("precision", "recall", "map", "mrr")  # an item with a score of 0 or less counts as not found


@dataclass(frozen=True)
class _Scored:
    """The query of each row, its score and its target; whether a score of 0 or less may rule out a hit."""

    index: Array
    score: Array
    target: Array
    is_scored: bool = True

    def first(self, k: int) -> _Scored:
        """The k rows of each query that score highest."""
        kept = np.sort(best_entries(self.index, self.score, np.arange(len(self.index)), k))
        return replace(self, index=self.index[kept], score=self.score[kept], target=self.target[kept])


class _Retrieval:
    """What all classes share: rows are kept by `update` and evaluated by `compute`."""

    is_differentiable: ClassVar[bool] = False
    higher_is_better: ClassVar[bool] = True
    full_state_update: ClassVar[bool] = False
    _device: Any = "cpu"
    top_k: int | None = None
    _name: ClassVar[str]  # of the metric here
    _graded: ClassVar[bool] = False

    def __init__(
        self,
        empty_target_action: Action = "neg",
        ignore_index: int | None = None,
        aggregation: str | Callable[..., Any] = "mean",
    ) -> None:
        if empty_target_action not in ("error", "skip", "neg", "pos"):
            raise InputError(
                f"empty_target_action={empty_target_action!r} is unknown.",
                hint="Use error, skip, neg or pos.",
            )
        if ignore_index is not None and type(ignore_index) is not int:
            raise InputError(f"ignore_index={ignore_index!r} is not a whole number.", hint="Use -1, or None.")
        if not callable(aggregation) and aggregation not in _AGGREGATES:
            raise InputError(
                f"aggregation={aggregation!r} is unknown.",
                hint=f"Use {', '.join(_AGGREGATES)} or a function of a tensor.",
            )
        self.empty_target_action = empty_target_action
        self.ignore_index = ignore_index
        self.aggregation = aggregation
        self.reset()

    def reset(self) -> None:
        """Forget all rows."""
        self._updates: list[_Scored] = []

    def to(self, device: Any) -> Self:
        """Put results on this device; rows are kept in main memory whatever it is."""
        import torch

        self._device = torch.device(device)
        return self

    @property
    def device(self) -> Any:
        """Where results are: that of the last scores, or of `to`."""
        import torch

        return torch.device(self._device)

    def clone(self) -> Self:
        """A copy with the rows so far."""
        return copy.deepcopy(self)

    @property
    def update_count(self) -> int:
        """How many updates there were since the last reset."""
        return len(self._updates)

    @property
    def update_called(self) -> bool:
        """Whether there was one."""
        return bool(self._updates)

    def update(self, preds: Any, target: Any, indexes: Any) -> None:
        """Add rows: the score, the target and the query of each.

        Args:
            preds: a tensor of floats.
            target: a tensor of booleans, integers or floats; 0 and 1 but for RetrievalNormalizedDCG.
            indexes: a tensor of long integers; a query may go on in the next update.
        """
        import torch

        if indexes is None or not indexes.shape == preds.shape == target.shape:
            shapes = [tuple(getattr(tensor, "shape", ())) for tensor in (preds, target, indexes)]
            raise InputError(f"preds, target and indexes differ in shape: {shapes}.")
        if indexes.dtype is not torch.long or not preds.is_floating_point():
            raise InputError(
                f"indexes are {indexes.dtype} and preds {preds.dtype}.", hint="Pass long integers and floats."
            )
        kept = target != self.ignore_index if self.ignore_index is not None else target == target  # noqa: PLR0124
        index, score, grade = (tensor[kept].detach().cpu() for tensor in (indexes, preds, target))
        rows = _Scored(index.numpy(), score.float().numpy(), grade.double().numpy())
        if not len(rows.index) or not preds.ndim:
            raise InputError("there are no rows to add.", hint="Leave out empty batches.")
        if self._graded and (rows.target < 0).any():
            raise InputError("a target is negative.", hint="Use grades from 0 on, or ignore_index.")
        if not self._graded and not np.isin(rows.target, (0, 1)).all():
            raise InputError(
                "a target is neither 0 nor 1.", hint="RetrievalNormalizedDCG alone takes grades."
            )
        self._updates.append(rows)
        self._device = preds.device

    def forward(self, preds: Any, target: Any, indexes: Any) -> Any:
        """Add rows, and return the value of these rows alone."""
        before, self._updates = self._updates, []
        try:
            self.update(preds, target, indexes)
            value = self.compute()
        finally:
            self._updates = [*before, *self._updates]
        return value

    __call__ = forward

    def compute(self) -> Any:
        """The value over all queries, as a tensor."""
        request = self._name + ("" if self.top_k is None else f"@{self.top_k}")
        (values,), full = _values(self._rows(), [request])
        return self._aggregate(values, full)

    def _rows(self) -> _Scored:
        if not self._updates:
            raise InputError("nothing was added yet.", hint="Call update(preds, target, indexes) first.")
        columns = zip(*((rows.index, rows.score, rows.target) for rows in self._updates), strict=True)
        index, score, target = map(np.concatenate, columns)
        return _Scored(index, score, target)

    def _aggregate(self, values: Float, full: Bool) -> Any:
        """One number of the values per query, for every row if there are rows, as a tensor.

        `full`: which queries have a positive target; the others count as they shall.
        """
        import torch

        if self.empty_target_action == "error" and not full.all():
            raise InputError("a query has no positive target.", hint="Use empty_target_action='skip'.")
        kept = np.where(full, values, 1.0 if self.empty_target_action == "pos" else 0.0)
        if self.empty_target_action == "skip":
            kept = kept[..., full]
        if not kept.shape[-1]:
            return torch.zeros(kept.shape[:-1], device=self.device)
        if callable(self.aggregation):
            by_query = torch.tensor(kept.T, dtype=torch.float32, device=self.device)
            return self.aggregation(by_query, dim=None if kept.ndim == 1 else 0)
        values = np.apply_along_axis(_AGGREGATES[self.aggregation], -1, kept)
        return torch.tensor(values, dtype=torch.float32, device=self.device)


class _AtTopK(_Retrieval):
    """A class with one number, of the first `top_k` items.

    Args:
        empty_target_action: what a query without a positive target counts: "neg" 0, "pos" 1, "skip" nothing;
            "error" raises one.
        ignore_index: rows with this target are left out.
        top_k: how many items; all by default.
        aggregation: "mean", "median", "min" or "max" of the values of the queries, or a function that takes
            a tensor of them and dim=.
    """

    def __init__(
        self,
        empty_target_action: Action = "neg",
        ignore_index: int | None = None,
        top_k: int | None = None,
        aggregation: str | Callable[..., Any] = "mean",
    ) -> None:
        super().__init__(empty_target_action, ignore_index, aggregation)
        self.top_k = _check_k(top_k, "top_k")


class RetrievalMAP(_AtTopK):
    """Average precision over the hits; items with a score of 0 or less are not hits."""

    _name = "map"


class RetrievalMRR(_AtTopK):
    """The reciprocal rank of the first hit; items with a score of 0 or less are not hits."""

    _name = "mrr"


class RetrievalRecall(_AtTopK):
    """The share of the relevant items that are found; those with a score of 0 or less are not."""

    _name = "recall"


class RetrievalHitRate(_AtTopK):
    """Whether something relevant is found."""

    _name = "hit"


class RetrievalNormalizedDCG(_AtTopK):
    """DCG over that of the best order; targets are grades."""

    _name, _graded = "ndcg", True


class RetrievalFallOut(_AtTopK):
    """The share of the items that are not relevant which are found: the recall of the others."""

    _name, higher_is_better = "recall", False

    def __init__(
        self,
        empty_target_action: Action = "pos",
        ignore_index: int | None = None,
        top_k: int | None = None,
        aggregation: str | Callable[..., Any] = "mean",
    ) -> None:
        super().__init__(empty_target_action, ignore_index, top_k, aggregation)

    def _rows(self) -> _Scored:
        rows = super()._rows()
        return replace(rows, target=(rows.target == 0).astype(np.float64), is_scored=False)


class RetrievalRPrecision(_Retrieval):
    """The precision of as many items as are relevant."""

    _name = "r_precision"


class RetrievalPrecision(_AtTopK):
    """The share of the first top_k items that are relevant; those with a score of 0 or less count as not.

    With adaptive_k, a query with fewer items is divided by their number.
    """

    def __init__(
        self,
        empty_target_action: Action = "neg",
        ignore_index: int | None = None,
        top_k: int | None = None,
        adaptive_k: bool = False,
        aggregation: str | Callable[..., Any] = "mean",
    ) -> None:
        super().__init__(empty_target_action, ignore_index, top_k, aggregation)
        self.adaptive_k = check_flag("adaptive_k", adaptive_k)

    @property
    def _name(self) -> str:  # type: ignore[override]
        return "precision(over=list)" if self.adaptive_k else "precision"


class RetrievalAUROC(_AtTopK):
    """The area under the ROC curve of the first top_k items; 0 where they are all relevant, or none is."""

    def __init__(
        self,
        empty_target_action: Action = "neg",
        ignore_index: int | None = None,
        top_k: int | None = None,
        max_fpr: float | None = None,
        aggregation: str | Callable[..., Any] = "mean",
    ) -> None:
        if max_fpr is not None:
            raise NotDefinedError(
                "RetrievalAUROC cannot be computed with max_fpr here.", hint="Leave it out."
            )
        super().__init__(empty_target_action, ignore_index, top_k, aggregation)

    def compute(self) -> Any:
        rows = self._rows()
        _, full = _values(rows, [])
        if self.top_k is not None:
            rows = rows.first(self.top_k)
        (values,), _ = _values(rows, ["auc"], complete=True)
        return self._aggregate(values, full)


class RetrievalPrecisionRecallCurve(_Retrieval):
    """Precision and recall at every cut-off from 1 to max_k, which is by default the size of a query."""

    def __init__(
        self,
        max_k: int | None = None,
        adaptive_k: bool = False,
        empty_target_action: Action = "neg",
        ignore_index: int | None = None,
        aggregation: str | Callable[..., Any] = "mean",
    ) -> None:
        super().__init__(empty_target_action, ignore_index, aggregation)
        self.max_k = _check_k(max_k, "max_k")
        self.adaptive_k = check_flag("adaptive_k", adaptive_k)

    def compute(self) -> Any:
        """Precision, recall and the cut-offs, as tensors."""
        import torch

        rows = replace(self._rows(), is_scored=False)
        max_k = self.max_k or int(np.unique(rows.index, return_counts=True)[1].max())
        precision = "precision(over=list)" if self.adaptive_k else "precision"
        cuts = range(1, max_k + 1)
        curves = (
            self._aggregate(*_values(rows, [f"{name}@{k}" for k in cuts])) for name in (precision, "recall")
        )
        return *curves, torch.tensor(cuts, device=self.device)


class RetrievalRecallAtFixedPrecision(RetrievalPrecisionRecallCurve):
    """The best recall at a cut-off with at least min_precision, and that cut-off."""

    def __init__(
        self,
        min_precision: float = 0.0,
        max_k: int | None = None,
        adaptive_k: bool = False,
        empty_target_action: Action = "neg",
        ignore_index: int | None = None,
        aggregation: str | Callable[..., Any] = "mean",
    ) -> None:
        super().__init__(max_k, adaptive_k, empty_target_action, ignore_index, aggregation)
        if not 0 <= min_precision <= 1:
            raise InputError(
                f"min_precision={min_precision!r} is not a share.", hint="Use a float such as 0.5."
            )
        self.min_precision = min_precision

    def compute(self) -> Any:
        """The recall, and the largest cut-off that has it; the last cut-off if the recall is 0."""
        precision, recall, cuts = super().compute()
        good = [(r, k) for p, r, k in zip(precision, recall, cuts, strict=True) if p >= self.min_precision]
        best, k = max(good, default=(recall.new_zeros(()), cuts[-1]))
        return best, k if best else cuts[-1]


def _check_k(k: Any, name: str) -> int | None:
    if k is not None and (type(k) is not int or k < 1):
        raise InputError(f"{name}={k!r} is not a positive whole number.", hint=f"Use {name}=10, or None.")
    return k


def _values(rows: _Scored, requests: Sequence[str], *, complete: bool = False) -> tuple[Float, Bool]:
    """Requests x queries, in the order of their numbers, and which queries have a positive target.

    A value that is not defined is 0.
    """
    import pandas as pd

    queries, code = np.unique(rows.index, return_inverse=True)
    positive = rows.target > 0
    full = np.bincount(code[positive], minlength=len(queries)) > 0
    if not full.any() or not requests:
        return np.zeros((len(requests), len(queries))), full
    item = np.arange(len(code))
    wanted = item
    if rows.is_scored and requests[0].startswith(_SCORED):
        # What has no score above 0 stays relevant, as an item that no list holds.
        wanted = np.where(rows.score > 0, item, item + len(item))
    result = evaluate(
        pd.DataFrame({"user": code, "item": item, "score": rows.score}),
        pd.DataFrame({"user": code, "item": wanted, "grade": rows.target})[positive],
        requests,
        conventions=Conventions.of("torchmetrics").but(no_truth="skip"),
        full_ranking=complete,
        cautions="ignore",
    )
    return np.nan_to_num(np.stack([result.values_of(request) for request in requests])), full
