"""The metrics of one list in document 000, as classes and as functions.

Each class names a metric that `score_list` computes. A ground truth of {item: grade} is graded relevance.
`map_at_k` divides by min(k, relevant items), not by the number of hits as the formula of document 000 does:
with that divisor a list with a single early hit would score 1.

`recall_at_k`, `precision_at_k` and `ndcg_at_k` are also names of document 001; with its keywords
(`recommended=`, `relevant=`, `relevance_scores=`) its functions are called. They are 0.0 for k <= 0, which
is an error here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, ClassVar

from recsys.cf.evaluation.translation import STANDARD, cutoff, cutoff_list, document_words, value_of_lists
from recsys.errors import InputError, UnknownNameError
from recsys.evaluation.single import score_list

_KEYWORDS_OF_DOCUMENT_001 = frozenset({"recommended", "relevant", "relevance_scores"})
Truth = Collection[Any] | Mapping[Any, float]


class NamedMetric(ABC):
    """A name and `compute`."""

    name: str

    def __init__(self, name: str | None = None) -> None:
        if name is not None:
            self.name = name

    @abstractmethod
    def compute(self, *args: Any, **kwargs: Any) -> float:
        """The metric's value."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r})"


class BaseMetric(NamedMetric):
    """Base class: a name, `compute` and `validate_inputs`."""

    def validate_inputs(self, predictions: Any, ground_truth: Any) -> bool:
        """Whether there is something to score; False means the value is 0.0.

        A set, which has no order, as predictions and arguments that are not collections raise an InputError.

        >>> RecallAtK().validate_inputs([1, 2], {2}), RecallAtK().validate_inputs([], {2})
        (True, False)
        """
        if predictions is None or ground_truth is None:
            return False
        for items, name in ((predictions, "predictions"), (ground_truth, "ground_truth")):
            if isinstance(items, str) or not hasattr(items, "__len__"):
                raise InputError(
                    f"{name} came as {type(items).__name__}.",
                    table=name,
                    hint="Pass a list of item ids, best first, and a set of relevant ones.",
                )
        if isinstance(predictions, set | frozenset):
            raise InputError(
                "predictions came as a set, which has no order.", hint="Pass a list, best first."
            )
        return len(predictions) > 0 and len(ground_truth) > 0


class _AtK(BaseMetric):
    """A metric of the registry at a cut-off."""

    _metric: ClassVar[str]

    def __init__(self, k: int = 10) -> None:
        self.k = cutoff(k)
        self.name = f"{self._metric}@{self.k}"

    def compute(self, predictions: Iterable[Any], ground_truth: Truth, k: int | None = None) -> float:
        """The value of one list, best item first; `k` overrides the cut-off of the instance."""
        at = self.k if k is None else cutoff(k)
        if not self.validate_inputs(predictions, ground_truth):
            return 0.0
        return score_list(predictions, ground_truth, f"{self._metric}@{at}")


class RecallAtK(_AtK):
    """The share of the relevant items that are in the first k places.

    >>> RecallAtK(k=10).compute(predictions=[1, 5, 3, 8, 2], ground_truth={3, 8, 10})
    0.6666666666666666
    """

    _metric = "recall"


class PrecisionAtK(_AtK):
    """The share of the first k places that hold a relevant item; a shorter list still divides by k.

    >>> PrecisionAtK(k=10).compute([1, 5, 3, 8, 2], {3, 8, 10})
    0.2
    """

    _metric = "precision"


class NDCGAtK(_AtK):
    """DCG over the DCG of the ideal first k places; {item: grade} makes it graded.

    >>> round(NDCGAtK(k=10).compute([1, 5, 3, 8, 2], {3, 8, 10}), 4)
    0.4367
    >>> round(NDCGAtK(k=10).compute([1, 5, 3, 8, 2], {3: 1, 8: 3, 10: 2}), 4)
    0.3763
    """

    _metric = "ndcg"


class MAPAtK(_AtK):
    """Average precision over min(k, relevant items).

    >>> round(MAPAtK(k=10).compute([1, 5, 3, 8, 2], {3, 8, 10}), 4)
    0.2778
    """

    _metric = "map"


class HitRate(_AtK):
    """1 if a relevant item is in the first k places, else 0.

    >>> HitRate(k=3).compute([1, 5, 3, 8, 2], {3, 8, 10})
    1.0
    """

    _metric = "hit"


class MRR(BaseMetric):
    """1 / place of the first relevant item in the list; no cut-off unless k is given.

    >>> MRR().compute([1, 5, 3, 8, 2], {3, 8, 10})
    0.3333333333333333
    """

    name = "mrr"

    def compute(self, predictions: Iterable[Any], ground_truth: Truth, k: int | None = None) -> float:
        """The reciprocal rank of one list."""
        if not self.validate_inputs(predictions, ground_truth):
            return 0.0
        return score_list(predictions, ground_truth, "mrr" if k is None else f"mrr@{cutoff(k)}")


class Coverage(BaseMetric):
    """The share of the catalogue that is in at least one list.

    >>> Coverage().compute(recommendations={0: [1, 5, 3], 1: [2, 5, 8], 2: [3, 7, 9]}, num_total_items=100)
    0.07
    """

    name = "coverage"

    def compute(self, recommendations: Mapping[Any, Any], num_total_items: int) -> float:
        """Distinct items over all lists / `num_total_items`."""
        n_items = cutoff(num_total_items, "num_total_items")
        with document_words(catalogue="num_total_items"):
            return value_of_lists(recommendations, "coverage", catalogue=n_items)


class MetricFactory:
    """Creates metrics by name.

    >>> MetricFactory.create("recall", k=5), list(MetricFactory.create_standard_metrics([10]))
    (RecallAtK(name='recall@5'), ['recall@10', 'ndcg@10', 'precision@10', 'map@10', 'mrr'])
    """

    METRIC_REGISTRY: ClassVar[dict[str, type[BaseMetric]]] = {
        "recall": RecallAtK,
        "precision": PrecisionAtK,
        "ndcg": NDCGAtK,
        "mrr": MRR,
        "map": MAPAtK,
        "hit_rate": HitRate,
        "coverage": Coverage,
    }

    @classmethod
    def create(cls, metric_name: str, **kwargs: Any) -> BaseMetric:
        """The metric of that name; keywords go to its class."""
        metric_class = cls.METRIC_REGISTRY.get(str(metric_name).lower())
        if metric_class is None:
            raise UnknownNameError("metric", metric_name, cls.METRIC_REGISTRY)
        return metric_class(**kwargs)

    @classmethod
    def create_standard_metrics(cls, k_values: Sequence[int] = (10, 20)) -> dict[str, BaseMetric]:
        """{result key: metric} for recall, NDCG, precision and MAP at each k, and MRR."""
        metrics = {f"{name}@{k}": cls.create(name, k=k) for name in STANDARD for k in cutoff_list(k_values)}
        return {**metrics, "mrr": MRR()}


def _accepts_keywords_of_document_001(function: Callable[..., float]) -> Callable[..., float]:
    """Call the function of the same name in document 001 if its keywords are used."""

    @wraps(function)
    def dispatch(*args: Any, **kwargs: Any) -> float:
        if _KEYWORDS_OF_DOCUMENT_001.isdisjoint(kwargs):
            return function(*args, **kwargs)
        from recsys.cf.evaluation import recommender_evaluator

        document_001_function: Callable[..., float] = getattr(recommender_evaluator, function.__name__)
        return document_001_function(*args, **kwargs)

    return dispatch


@_accepts_keywords_of_document_001
def recall_at_k(predictions: Iterable[Any], ground_truth: Truth, k: int = 10) -> float:
    """Recall of the first k places; see RecallAtK."""
    return RecallAtK(k).compute(predictions, ground_truth)


@_accepts_keywords_of_document_001
def precision_at_k(predictions: Iterable[Any], ground_truth: Truth, k: int = 10) -> float:
    """Precision of the first k places; see PrecisionAtK.

    >>> precision_at_k([1, 5], {5}, 2), precision_at_k(recommended=[1, 5], relevant={5}, k=0)
    (0.5, 0.0)
    """
    return PrecisionAtK(k).compute(predictions, ground_truth)


@_accepts_keywords_of_document_001
def ndcg_at_k(predictions: Iterable[Any], ground_truth: Truth, k: int = 10) -> float:
    """NDCG of the first k places; see NDCGAtK."""
    return NDCGAtK(k).compute(predictions, ground_truth)


def map_at_k(predictions: Iterable[Any], ground_truth: Truth, k: int = 10) -> float:
    """Average precision of the first k places, over min(k, relevant items); see MAPAtK.

    The formula of document 000 is `score_list(predictions, ground_truth, "map(over=hits)@10")`.
    """
    return MAPAtK(k).compute(predictions, ground_truth)


def hit_rate(predictions: Iterable[Any], ground_truth: Truth, k: int = 10) -> float:
    """1 if a relevant item is in the first k places, else 0; see HitRate."""
    return HitRate(k).compute(predictions, ground_truth)


def mrr(predictions: Iterable[Any], ground_truth: Truth) -> float:
    """Reciprocal rank of the first relevant item; see MRR."""
    return MRR().compute(predictions, ground_truth)


def coverage(recommendations: Mapping[Any, Any], num_total_items: int) -> float:
    """The share of the catalogue that is in at least one list; see Coverage."""
    return Coverage().compute(recommendations, num_total_items)
