"""NCFEvaluator and NCFTestDataset of document 002: each positive is ranked among sampled negatives.

`recsys.evaluation.candidates` counts the ranks and computes the metrics.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from recsys.cf.evaluation.translation import cutoff, cutoff_list, id_list
from recsys.conventions.decisions import Conventions
from recsys.errors import UnknownNameError
from recsys.evaluation.candidates import Candidates, count_candidates, evaluate_counted, rank_metrics
from recsys.evaluation.results import Evaluation
from recsys.evaluation.single import score_list
from recsys.inputs.containers import as_array
from recsys.inputs.files.ncf import NcfTest, read_ncf_files
from recsys.metrics.registry import parse_all
from recsys.ranks.ranked_truth import CountedTruth
from recsys.ranks.sources.candidate_sets import read_candidates
from recsys.records.arrays import cached_property
from recsys.stats.sampled import METHODS, SampledEstimate, estimate_all

_CUTOFFS = (1, 5, 10, 20, 50)


class NCFTestDataset:
    r"""The test cases of two files: `dataset[i]` is (user, positive item, negative items), as tensors.

    Args:
        test_csv: the users and positives: a table with UserID and ItemID, or the authors' `.test.rating`.
        test_negative_csv: the negatives: a table with UserID, ItemID and NegativeItems ("[1, 2, 3]"), or
            the authors' `.test.negative`. The layout is detected from the content.

    It is a map-style dataset for a DataLoader; NCFEvaluator reads its arrays directly.
    """

    def __init__(self, test_csv: str | os.PathLike[str], test_negative_csv: str | os.PathLike[str]) -> None:
        self.files: NcfTest = read_ncf_files(test_csv, test_negative_csv)
        self.candidates = Candidates.of(self.files.users, self.files.items, self.files.negatives)

    def __len__(self) -> int:
        return len(self.candidates)

    def __getitem__(self, index: int) -> tuple[Any, int, Any]:
        """One case; the user and the negatives are tensors that a model takes as they are."""
        from recsys.models.torch_import import torch

        cases = self.candidates
        case = range(len(cases))[index]
        negatives = cases.negatives[cases.indptr[case] : cases.indptr[case + 1]]
        return (
            torch.tensor(int(cases.users[case])),
            int(cases.items[case]),
            torch.from_numpy(negatives.copy()),
        )

    def __iter__(self) -> Iterator[tuple[Any, int, Any]]:
        return (self[case] for case in range(len(self)))


class NCFEvaluator:
    """Hit rate and NDCG of a model that ranks each positive among its negatives.

    Args:
        model: a torch module, or any callable, `(users, items) -> scores` of shape (n,) or (n, 1); logits
            and probabilities give the same ranks. Its modes and its device are restored. An object that is
            not callable but has `predict(users, items)` gets arrays.
        test_negative_dataset: a Dataset, DataLoader or iterable of (user, positive, negatives).
        top_k: the cut-off of `evaluate`.
        device: where to score: "cpu", "cuda", "mps", "auto".
        ties: how equal scores count: "expected" is the mean over all orders, "best" the order in the
            positive's favour, which gives a constant model 1.0. A warning counts the tied positives.
        duplicates: a positive among its own negatives is the same item ("collapse") or another candidate
            that is ranked first ("pessimistic"); `evaluate_all().counts` says how many there are.
        autocast: "bfloat16" or "float16" for mixed precision.
        batch_size: pairs in one forward pass; by default chosen from the available memory.
    """

    def __init__(
        self,
        model: Any,
        test_negative_dataset: Any,
        top_k: int = 10,
        device: Any = "cpu",
        *,
        ties: str = "expected",
        duplicates: str = "collapse",
        autocast: Any = None,
        batch_size: int | None = None,
    ) -> None:
        from recsys.models.torch_import import device_of

        self.model = model
        self.test_negative_dataset = test_negative_dataset
        given: Any = top_k
        self.top_k = cutoff(int(given) if isinstance(given, float) and given.is_integer() else given, "top_k")
        self.device = device_of(device)
        self.conventions = Conventions(ties=ties)
        if duplicates not in ("collapse", "pessimistic"):
            raise UnknownNameError("value of duplicates", duplicates, ("collapse", "pessimistic"))
        self.duplicates, self.autocast = duplicates, autocast
        self.batch_size = None if batch_size is None else cutoff(batch_size, "batch_size")

    @cached_property
    def cases(self) -> Candidates:
        """The test cases, read once."""
        return read_candidates(self.test_negative_dataset)

    def evaluate(self) -> tuple[list[float], list[float]]:
        """Hit and NDCG at `top_k` of every case, in the order of the dataset."""
        requests = parse_all([f"hit@{self.top_k}", f"ndcg@{self.top_k}"], None)
        result = evaluate_counted(self._count_ranks(), requests, self.conventions)
        hits, ndcgs = (self.cases.in_given_order(result.values_of(str(r))).tolist() for r in requests)
        return hits, ndcgs

    def evaluate_all(
        self, metrics: Any = None, *, k: int | Sequence[int] | None = None, conventions: Any = None
    ) -> Evaluation:
        """Every metric of the rank at every cut-off, with per-case values, counts and conventions.

        Args:
            metrics: names of metrics; by default all but those about judged items (bpref, judged): no
                negative is judged.
            k: cut-offs; by default 1, 5, 10, 20, 50 and top_k, up to the number of candidates.
            conventions: conventions instead of those of the evaluator.
        """
        ranks = self._count_ranks()
        if metrics is None:
            largest = max(int(ranks.n_candidates.max()), self.top_k)
            cutoffs = (
                [at for at in (*_CUTOFFS, self.top_k) if at <= largest] if k is None else cutoff_list(k, "k")
            )
            requests = rank_metrics(sorted(set(cutoffs)), tied=bool((ranks.tied > 1).any()))
        else:
            requests = parse_all(metrics, k)
        chosen = self.conventions if conventions is None else Conventions.of(conventions)
        return evaluate_counted(ranks, requests, chosen)

    def estimate_full(
        self,
        n_items: Any,
        metrics: Iterable[Any] | None = None,
        *,
        methods: Iterable[str] = METHODS,
        replacement: bool = False,
        **options: Any,
    ) -> dict[str, dict[str, SampledEstimate]]:
        """Estimates of the metrics among all items, by each method: {metric: {method: estimate}}.

        Args:
            n_items: how many items a positive could be ranked among, including itself: one number, or one
                per case in the order of the dataset.
            metrics: by default hit and NDCG at `top_k`, AP and AUC.
            methods: those of `recsys.sampled.estimate`.
            replacement: whether a negative could be drawn twice; repeats that were collapsed do not count.
            options: those of `recsys.sampled.estimate_all`.
        """
        defaults = (f"hit@{self.top_k}", f"ndcg@{self.top_k}", "map", "auc")
        requests = defaults if metrics is None else metrics
        catalogue_sizes = np.asarray(n_items)
        if catalogue_sizes.ndim:
            catalogue_sizes = self.cases.in_id_order(catalogue_sizes)
        options |= {"methods": methods, "replacement": replacement}
        return estimate_all(self._count_ranks(), None, catalogue_sizes, requests, **options)

    def getHitRate(self, ranklist: Iterable[Any], get_item: Any) -> float:  # noqa: N802 - the name in document 002
        """1 if the item is in the list, else 0.

        >>> NCFEvaluator(None, []).getHitRate([4, 2, 7], 7)
        1.0
        """
        return _score_item_in_list(ranklist, get_item, "hit")

    def getNDCG(self, ranklist: Iterable[Any], get_item: Any) -> float:  # noqa: N802 - the name in document 002
        """1 / log2(place + 1) of the item in the list, 0 if it is not in the list.

        >>> NCFEvaluator(None, []).getNDCG([4, 2, 7], 7)
        0.5
        """
        return _score_item_in_list(ranklist, get_item, "ndcg")

    def _count_ranks(self) -> CountedTruth:
        def predict_scores(users: Any, items: Any) -> Any:
            return as_array(self.model.predict(as_array(users), as_array(items)))

        is_scorer = callable(self.model) or not hasattr(self.model, "predict")
        return count_candidates(
            self.model if is_scorer else predict_scores,
            self.cases,
            duplicates=self.duplicates,
            device=self.device,
            autocast=self.autocast,
            batch=self.batch_size,
        )


def _score_item_in_list(ranklist: Iterable[Any], item: Any, metric: str) -> float:
    items = [_python_value(entry) for entry in id_list(ranklist, "ranklist", ranked=True)]
    return score_list(items, {_python_value(item)}, metric) if items else 0.0


def _python_value(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
