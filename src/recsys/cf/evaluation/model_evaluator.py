"""Factor models evaluated in seed 000's words: ModelEvaluator, BatchModelEvaluator and their functions.

The engine counts the place of every test item among all unseen items, in blocks within a memory budget, so
`batch_size` and `use_argpartition` change nothing in a result; MRR is over the whole ranking and does not
move with `k_values`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from recsys.analysis import by_activity
from recsys.cf.evaluation import translation as words
from recsys.cf.evaluation.loading import load_cf_model, load_model, load_test_data
from recsys.cf.evaluation.metrics import BaseMetric, MetricFactory
from recsys.cf.evaluation.reporting import plain
from recsys.errors import InputError, UnknownNameError
from recsys.evaluation.evaluate import evaluate, recommend
from recsys.evaluation.provenance import run_facts
from recsys.inputs.files import write_text
from recsys.ranks.sources import Factors, Scores
from recsys.types import Interactions

__all__ = [
    "BatchModelEvaluator",
    "ModelEvaluator",
    "evaluate_model",
    "load_and_evaluate",
    "load_cf_model",
    "load_model",
    "load_test_data",
]

_K = (10, 20)


class ModelEvaluator:
    """Evaluates user factors U and item factors V.

    Args:
        U: one row a user.
        V: one row an item.
        k_values: the cut-offs.
        batch_size: accepted; the engine works in blocks of its own, which change no result.
        use_argpartition: accepted; the engine's top k is exact either way.
        user_ids: the id of each row of U where users are not numbered by it.
        item_ids: the same for V.

    >>> evaluator = ModelEvaluator(
    ...     [[1.0, 0.0], [0.0, 1.0]], [[3.0, 1.0], [2.0, 2.0], [1.0, 5.0]], k_values=[1, 2]
    ... )
    >>> results = evaluator.evaluate({0: {1}, 1: {1}}, {0: {0}})
    >>> results["recall@1"], results["mrr"], results["coverage"], results["num_users_evaluated"]
    (0.5, 0.75, 0.6666666666666666, 2)
    """

    def __init__(
        self,
        U: Any,  # noqa: N803 - the seed's name
        V: Any,  # noqa: N803 - the seed's name
        k_values: Sequence[int] = _K,
        batch_size: int = 1000,
        use_argpartition: bool = True,  # noqa: FBT001, FBT002 - the seed's signature
        *,
        user_ids: Iterable[Any] | None = None,
        item_ids: Iterable[Any] | None = None,
    ) -> None:
        self.source = Factors(U, V, user_ids=user_ids, item_ids=item_ids)
        self.U, self.V = self.source.users, self.source.items
        self.num_users, self.factors = self.U.shape
        self.num_items = len(self.V)
        self.k_values = words.cutoffs(k_values)
        self.max_k = max(self.k_values)
        self.batch_size = batch_size
        self.use_argpartition = use_argpartition
        self.metrics: dict[str, BaseMetric] = MetricFactory.create_standard_metrics(self.k_values)
        self._last: words.Results | None = None

    def evaluate(
        self,
        test_data: Any,
        user_pos_train: Any = None,
        user_col: str = words.USER,
        item_col: str = words.ITEM,
        compute_per_user: bool = True,  # noqa: FBT001, FBT002 - per-user values are always kept
        *,
        rating_col: str | None = None,
    ) -> dict[str, Any]:
        """All metrics of the test users, with what they took in training left out of their lists.

        `test_data` is a table or {user: items}; {user: {item: grade}} or `rating_col` makes it graded.
        """
        del compute_per_user
        truth = words.truth_of(test_data, user_col, item_col, rating_col)
        return self._evaluated(
            truth, words.history_of(words.brought(test_data, user_pos_train), user_col, item_col)
        )

    def _evaluated(self, truth: Interactions, history: Interactions | None) -> words.Results:
        self._last = words.evaluated(self.source, truth, history, self.k_values)
        return self._last

    def generate_recommendations(
        self, test_users: Iterable[Any], user_pos_train: Any = None, k: int | None = None
    ) -> dict[Any, list[Any]]:
        """{user: the k best items not in their training items}; the largest of k_values without k."""
        at = self.max_k if k is None else words.cutoff(k)
        users = words.listed(test_users)
        if not users:
            return {}
        lists = recommend(self.source, at, users=users, seen=words.history_of(user_pos_train))
        return words.in_order(words.as_dict(lists), users)

    def get_per_user_metrics(self) -> Any:
        """A DataFrame by user id, one column a metric, evaluated users only."""
        return words.per_user_table(None if self._last is None else self._last.evaluation)

    def get_metric_distribution(self, metric: str = "recall", k: int | None = 10) -> Any:
        """The values of one metric over the evaluated users, as an array; "recall" at k, or "recall@10"."""
        table = self.get_per_user_metrics()
        name = metric if metric in table.columns else f"{metric}@{k}"
        if name not in table.columns:
            raise UnknownNameError("evaluated metric", name, table.columns)
        return table[name].dropna().to_numpy()

    def stratify_by_activity(
        self, user_interaction_counts: Mapping[Any, int], bins: Sequence[tuple[float, float]] | None = None
    ) -> dict[str, dict[str, float]]:
        """{bin: {metric: mean}} by the number of training interactions.

        `bins` are (from, below); without, the users are cut into low, medium and high thirds.
        """
        if self._last is None or self._last.evaluation is None:
            raise InputError(
                "nothing was evaluated yet.", hint="Call evaluate(test_data, user_pos_train) first."
            )
        return by_activity(self._last.evaluation, user_interaction_counts, bins)

    def save_results(
        self,
        output_path: str | Path,
        model_name: str = "model",
        hyperparams: Mapping[str, Any] | None = None,
    ) -> Path:
        """The last results as JSON, with the model's shape, its hyperparameters and the conventions."""
        if self._last is None or self._last.evaluation is None:
            raise InputError(
                "nothing was evaluated yet.", hint="Call evaluate(test_data, user_pos_train) first."
            )
        shape = {"num_users": self.num_users, "num_items": self.num_items, "factors": self.factors}
        document = {
            "model_name": model_name,
            "model_shape": shape,
            "k_values": self.k_values,
            "hyperparams": dict(hyperparams or {}),
            "metrics": dict(self._last),
            "conventions": self._last.evaluation.conventions.to_dict(),
            "run": run_facts(),
        }
        target = Path(output_path)
        target.parent.mkdir(parents=True, exist_ok=True)
        write_text(target, json.dumps(plain(document), indent=2, ensure_ascii=False))
        return target

    def _prepare_ground_truth(
        self, test_data: Any, user_col: str = words.USER, item_col: str = words.ITEM
    ) -> dict[Any, set[Any]]:
        """{user: set of test items}, from a table or a dict."""
        return words.as_dict(words.truth_of(test_data, user_col, item_col), set)

    def _compute_metrics(
        self, recommendations: Mapping[Any, Any], ground_truth: Any, k_values: Sequence[int] | None = None
    ) -> dict[str, float]:
        """The standard metrics of ready lists; MRR is over the lists as given."""
        at = self.k_values if k_values is None else words.cutoffs(k_values)
        return dict(evaluate(recommendations, ground_truth, words.standard_names(at)))

    def _get_top_k(self, scores: Any, k: int, exclude_indices: Iterable[int] | None = None) -> Any:
        """Indices of the k highest scores of one user, best first, without the excluded ones."""
        never = None if exclude_indices is None else words.listed(exclude_indices)
        lists = recommend(Scores(np.atleast_2d(scores)), words.cutoff(k), never=never or None)
        return lists.codes.astype(np.int64)


class BatchModelEvaluator:
    """Several models on one test set: it is read once, and every model answers for the same users.

    >>> batch = BatchModelEvaluator(k_values=[1])
    >>> batch.add_model("good", [[1.0]], [[0.0], [1.0]])
    >>> batch.add_model("bad", [[1.0]], [[1.0], [0.0]])
    >>> _ = batch.evaluate_all({0: {1}}, {})
    >>> batch.get_best_model("recall@1")
    ('good', 1.0)
    """

    def __init__(self, k_values: Sequence[int] = _K) -> None:
        self.k_values = words.cutoffs(k_values)
        self.models: dict[str, tuple[ModelEvaluator, dict[str, Any]]] = {}
        self.results: dict[str, words.Results] = {}

    def add_model(self, name: str, U: Any, V: Any, hyperparams: Mapping[str, Any] | None = None) -> None:  # noqa: N803
        """Take a model in, with hyperparameters to show beside its results."""
        self.models[name] = ModelEvaluator(U, V, self.k_values), dict(hyperparams or {})

    def evaluate_all(
        self,
        test_data: Any,
        user_pos_train: Any = None,
        user_col: str = words.USER,
        item_col: str = words.ITEM,
    ) -> dict[str, dict[str, Any]]:
        """{model: results} of every model added."""
        if not self.models:
            raise InputError("no model was added.", hint="Call add_model(name, U, V) first.")
        truth = words.truth_of(test_data, user_col, item_col)
        history = words.history_of(words.brought(test_data, user_pos_train), user_col, item_col)
        self.results = {name: one._evaluated(truth, history) for name, (one, _) in self.models.items()}  # noqa: SLF001
        return dict(self.results)

    def get_per_user_metrics(self, name: str) -> Any:
        """One model's DataFrame by user id."""
        return words.per_user_table(self._of(name).evaluation)

    def get_comparison_table(self) -> Any:
        """One row a model: its hyperparameters, then its results."""
        import pandas as pd

        rows = [{"model": name, **self.models[name][1], **self._of(name)} for name in self.results]
        own = dict.fromkeys(key for name in self.results for key in self.models[name][1])
        shown = dict.fromkeys(["model", *own, *(key for row in rows for key in row)])
        return pd.DataFrame(rows, columns=list(shown))

    def get_best_model(self, metric: str = "ndcg@10") -> tuple[str, float]:
        """(name, value) of the model with the highest value; the first added of equal ones."""
        if not self.results:
            raise InputError("nothing was evaluated yet.", hint="Call evaluate_all(test_data, …) first.")
        for results in self.results.values():
            if metric not in results:
                raise UnknownNameError("evaluated metric", metric, results)
        best = max(self.results, key=lambda name: self.results[name][metric])
        return best, self.results[best][metric]

    def _of(self, name: str) -> words.Results:
        if name not in self.results:
            raise UnknownNameError("evaluated model", name, self.results)
        return self.results[name]


def evaluate_model(
    U: Any,  # noqa: N803 - the seed's name
    V: Any,  # noqa: N803 - the seed's name
    test_data: Any,
    user_pos_train: Any = None,
    k_values: Sequence[int] = _K,
    **columns: Any,
) -> dict[str, Any]:
    """ModelEvaluator(U, V, k_values).evaluate(test_data, user_pos_train)."""
    return ModelEvaluator(U, V, k_values).evaluate(test_data, user_pos_train, **columns)


def load_and_evaluate(
    model_dir: str | Path,
    test_data: Any,
    user_pos_train: Any = None,
    k_values: Sequence[int] = _K,
    *,
    name: str | None = None,
    **columns: Any,
) -> dict[str, Any]:
    """Load a model's folder or file and evaluate it; exchanged U and V are told by what the data needs.

    `name` says which model where the folder holds several.
    """
    truth = words.truth_of(test_data, **columns)
    names = {name: columns[name] for name in ("user_col", "item_col") if name in columns}
    history = words.history_of(words.brought(test_data, user_pos_train), **names)
    users, items = load_model(model_dir, name=name, needs=(truth, history))
    return ModelEvaluator(users, items, k_values)._evaluated(truth, history)  # noqa: SLF001
