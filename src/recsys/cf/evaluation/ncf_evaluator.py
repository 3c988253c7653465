"""The face of the NCF evaluation: NCFEvaluator and NCFTestDataset, in the words of its description.

Words are translated here and nothing is computed: candidates are counted, the engine measures.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import CutoffError
from recsys.evaluation.candidates import Candidates, count_candidates, measured, rank_metrics
from recsys.evaluation.results import Evaluation
from recsys.evaluation.single import score_list
from recsys.inputs.files.ncf import NcfTest, read_ncf_files
from recsys.metrics.requests import parse_all
from recsys.ranks.counting import CountedTruth
from recsys.ranks.sources.candidate_reader import read_candidates
from recsys.ranks.sources.foreign_arrays import as_array
from recsys.stats.sampled import METHODS, SampledEstimate, estimate_all

_CUTS = (1, 5, 10, 20, 50)


class NCFTestDataset:
    r"""The test cases of two files: `dataset[i]` is (user, positive item, negative items), as tensors.

    Args:
        test_csv: users and positives: a table with UserID and ItemID, or the authors' `.test.rating`.
        test_negative_csv: the negatives: a table with UserID, ItemID and NegativeItems ("[1, 2, 3]"), or
            the authors' `.test.negative`. Which layout a file has is told by its content.

    A data loader takes it as a map-style dataset; NCFEvaluator reads its arrays without a loop.
    """

    def __init__(self, test_csv: str | os.PathLike[str], test_negative_csv: str | os.PathLike[str]) -> None:
        self.files: NcfTest = read_ncf_files(test_csv, test_negative_csv)
        self.candidates = Candidates.of(self.files.users, self.files.items, self.files.negatives)

    def __len__(self) -> int:
        return len(self.candidates)

    def __getitem__(self, index: int) -> tuple[Any, int, Any]:
        """One case; the user and the negatives are tensors, for a model to take as they are."""
        from recsys.models.torch_import import torch

        cases = self.candidates
        at = range(len(cases))[index]
        negatives = cases.negatives[cases.indptr[at] : cases.indptr[at + 1]]
        return torch.tensor(int(cases.users[at])), int(cases.items[at]), torch.from_numpy(negatives.copy())

    def __iter__(self) -> Iterator[tuple[Any, int, Any]]:
        return (self[at] for at in range(len(self)))


class NCFEvaluator:
    """Hit rate and NDCG of a model that ranks each positive among its negatives.

    Args:
        model: a torch module, or any callable, `(users, items) -> scores` of shape (n,) or (n, 1); logits
            and probabilities rank alike. Its modes and its device are given back as they were. What is not
            called but has `predict(users, items)` gets arrays.
        test_negative_dataset: a Dataset, DataLoader or iterable of (user, positive, negatives).
        top_k: the cut-off of `evaluate`.
        device: where to score: "cpu", "cuda", "mps", "auto".
        ties: how equal scores count: "expected" is the mean over all orders, "best" the order in the
            positive's favour, which gives a constant model 1.0. Tied positives are told by a warning.
        duplicates: a positive among its own negatives is the same item ("collapse"), or a candidate of its
            own that comes first ("pessimistic"); `evaluate_all().counts` says how many there are.
        autocast: "bfloat16" or "float16" for mixed precision.
        batch_size: pairs in one forward pass; follows from the memory at hand when not given.
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
        if isinstance(top_k, bool) or int(top_k) != top_k or top_k < 1:
            raise CutoffError(f"top_k={top_k!r} is not a positive whole number.", hint="Use top_k=10.")
        self.model = model
        self.test_negative_dataset = test_negative_dataset
        self.top_k = int(top_k)
        self.device = _device(device)
        self.conventions = Conventions(ties=ties)
        self.duplicates, self.autocast, self.batch_size = duplicates, autocast, batch_size

    @cached_property
    def cases(self) -> Candidates:
        """The test cases, read once."""
        return read_candidates(self.test_negative_dataset)

    def evaluate(self) -> tuple[list[float], list[float]]:
        """Hit and NDCG at `top_k` of every case, in the order of the dataset."""
        requests = parse_all([f"hit@{self.top_k}", f"ndcg@{self.top_k}"], None)
        result = measured(self._counted(), requests, self.conventions)
        hits, ndcgs = (self.cases.in_given_order(result.values_of(str(r))).tolist() for r in requests)
        return hits, ndcgs

    def evaluate_all(
        self, metrics: Any = None, *, k: int | Sequence[int] | None = None, conventions: Any = None
    ) -> Evaluation:
        """Every metric of the place, at every cut-off: per case, with counts and conventions.

        Args:
            metrics: names, where not all are wanted.
            k: cut-offs; 1, 5, 10, 20, 50 and top_k unless said, as far as there are candidates.
            conventions: other decisions than the evaluator's.
        """
        counted = self._counted()
        if metrics is None:
            most = max(int(counted.n_candidates.max()), self.top_k)
            cuts = {cut for cut in (*_CUTS, self.top_k) if cut <= most} if k is None else np.atleast_1d(k)
            requests = rank_metrics(sorted(map(int, cuts)), tied=bool((counted.tied > 1).any()))
        else:
            requests = parse_all(metrics, k)
        chosen = self.conventions if conventions is None else Conventions.of(conventions)
        return measured(counted, requests, chosen)

    def estimate_full(
        self,
        n_items: Any,
        metrics: Iterable[Any] | None = None,
        *,
        methods: Iterable[str] = METHODS,
        replacement: bool = False,
        **options: Any,
    ) -> dict[str, dict[str, SampledEstimate]]:
        """What the metrics would be among all items, by each correction: {metric: {method: estimate}}.

        Args:
            n_items: items a positive could be ranked among, itself included: one number, or one a case in
                the order of the dataset.
            metrics: hit and NDCG at `top_k`, AP and AUC unless said.
            methods: of `recsys.sampled.estimate`.
            replacement: whether a negative could be drawn twice; collapsed repeats leave different ones.
            options: of `recsys.sampled.estimate_all`.
        """
        wanted = metrics or (f"hit@{self.top_k}", f"ndcg@{self.top_k}", "map", "auc")
        numbers = np.asarray(n_items)
        if numbers.ndim:
            numbers = self.cases.in_id_order(numbers)
        return estimate_all(
            self._counted(), None, numbers, wanted, methods=methods, replacement=replacement, **options
        )

    def getHitRate(self, ranklist: Iterable[Any], get_item: Any) -> float:  # noqa: N802 - the described name
        """1 if the item is in the list, else 0.

        >>> NCFEvaluator(None, []).getHitRate([4, 2, 7], 7)
        1.0
        """
        return _of_list(ranklist, get_item, "hit")

    def getNDCG(self, ranklist: Iterable[Any], get_item: Any) -> float:  # noqa: N802 - the described name
        """1 / log2(place + 1) of the item in the list, 0 if it is not there.

        >>> NCFEvaluator(None, []).getNDCG([4, 2, 7], 7)
        0.5
        """
        return _of_list(ranklist, get_item, "ndcg")

    def _counted(self) -> CountedTruth:
        return count_candidates(
            _as_called(self.model),
            self.cases,
            duplicates=self.duplicates,
            device=self.device,
            autocast=self.autocast,
            batch=self.batch_size,
        )


def _as_called(model: Any) -> Any:
    """A model that only predicts, as a function."""
    if callable(model) or not hasattr(model, "predict"):
        return model

    def predicted(users: Any, items: Any) -> Any:
        return as_array(model.predict(as_array(users), as_array(items)))

    return predicted


def _of_list(ranklist: Iterable[Any], item: Any, metric: str) -> float:
    shown = [_plain(each) for each in ranklist]
    return score_list(shown, {_plain(item)}, metric) if shown else 0.0


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def _device(device: Any) -> Any:
    from recsys.models.torch_import import device_of

    return device_of(device)
