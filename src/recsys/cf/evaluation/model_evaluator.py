"""The model evaluators of document 000: ModelEvaluator, BatchModelEvaluator and their functions.

`recsys.evaluate` counts the place of every test item among all unseen items, in blocks within a memory
budget, so `batch_size` and `use_argpartition` do not affect results. MRR is over the whole ranking and does
not depend on `k_values`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from recsys.analysis import by_activity
from recsys.cf.evaluation import translation
from recsys.cf.evaluation.loading import load_cf_model, load_model, load_test_data
from recsys.cf.evaluation.metrics import BaseMetric, MetricFactory
from recsys.cf.evaluation.reporting import json_value
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
        U: one row per user.
        V: one row per item.
        k_values: the cut-offs.
        batch_size: accepted and ignored; it would not affect results.
        use_argpartition: accepted and ignored; the top k is always exact.
        user_ids: the id of each row of U, if users are not row numbers.
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
        U: Any,  # noqa: N803 - the name in document 000
        V: Any,  # noqa: N803 - the name in document 000
        k_values: Sequence[int] = _K,
        batch_size: int = 1000,
        use_argpartition: bool = True,  # noqa: FBT001, FBT002 - the signature in document 000
        *,
        user_ids: Iterable[Any] | None = None,
        item_ids: Iterable[Any] | None = None,
    ) -> None:
        self.source = Factors(U, V, user_ids=user_ids, item_ids=item_ids)
        self.U, self.V = self.source.users, self.source.items
        self.num_users, self.factors = self.U.shape
        self.num_items = len(self.V)
        self.k_values = translation.cutoffs(k_values)
        self.max_k = max(self.k_values)
        self.batch_size = batch_size
        self.use_argpartition = use_argpartition
        self.metrics: dict[str, BaseMetric] = MetricFactory.create_standard_metrics(self.k_values)
        self._last_results: translation.Results | None = None

    def evaluate(
        self,
        test_data: Any,
        user_pos_train: Any = None,
        user_col: str = translation.USER,
        item_col: str = translation.ITEM,
        compute_per_user: bool = True,  # noqa: FBT001, FBT002 - per-user values are always computed
        *,
        rating_col: str | None = None,
    ) -> dict[str, Any]:
        """All metrics over the test users; their training items are left out of the lists.

        `test_data` is a table or {user: items}; {user: {item: grade}} or `rating_col` makes it graded.
        """
        del compute_per_user
        truth = translation.read_truth(test_data, user_col, item_col, rating_col)
        return self._evaluate_interactions(
            truth, translation.training_history(test_data, user_pos_train, user_col, item_col)
        )

    def _evaluate_interactions(
        self, truth: Interactions, history: Interactions | None
    ) -> translation.Results:
        self._last_results = translation.standard_results(self.source, truth, history, self.k_values)
        return self._last_results

    def generate_recommendations(
        self, test_users: Iterable[Any], user_pos_train: Any = None, k: int | None = None
    ) -> dict[Any, list[Any]]:
        """{user: the k best items not in their training items}; k is by default the largest of `k_values`."""
        length = self.max_k if k is None else translation.cutoff(k)
        users = translation.id_list(test_users)
        if not users:
            return {}
        lists = recommend(self.source, length, users=users, seen=translation.read_history(user_pos_train))
        return translation.lists_for_users(translation.items_by_user(lists), users)

    def get_per_user_metrics(self) -> Any:
        """A DataFrame by user id, one column per metric, evaluated users only."""
        return translation.per_user_table(
            None if self._last_results is None else self._last_results.evaluation
        )

    def get_metric_distribution(self, metric: str = "recall", k: int | None = 10) -> Any:
        """The values of a metric over the evaluated users, as an array; "recall" with k, or "recall@10"."""
        table = self.get_per_user_metrics()
        name = metric if metric in table.columns else f"{metric}@{k}"
        if name not in table.columns:
            raise UnknownNameError("evaluated metric", name, table.columns)
        return table[name].dropna().to_numpy()

    def stratify_by_activity(
        self, user_interaction_counts: Mapping[Any, int], bins: Sequence[tuple[float, float]] | None = None
    ) -> dict[str, dict[str, float]]:
        """{bin: {metric: mean}} by the number of training interactions.

        `bins` are (from, below); by default the users are split into low, medium and high thirds.
        """
        if self._last_results is None or self._last_results.evaluation is None:
            raise InputError(
                "nothing was evaluated yet.", hint="Call evaluate(test_data, user_pos_train) first."
            )
        return by_activity(self._last_results.evaluation, user_interaction_counts, bins)

    def save_results(
        self,
        output_path: str | Path,
        model_name: str = "model",
        hyperparams: Mapping[str, Any] | None = None,
    ) -> Path:
        """Write the last results as JSON, with model shape, hyperparameters and conventions."""
        if self._last_results is None or self._last_results.evaluation is None:
            raise InputError(
                "nothing was evaluated yet.", hint="Call evaluate(test_data, user_pos_train) first."
            )
        shape = {"num_users": self.num_users, "num_items": self.num_items, "factors": self.factors}
        document = {
            "model_name": model_name,
            "model_shape": shape,
            "k_values": self.k_values,
            "hyperparams": dict(hyperparams or {}),
            "metrics": dict(self._last_results),
            "conventions": self._last_results.evaluation.conventions.to_dict(),
            "run": run_facts(),
        }
        target = Path(output_path)
        target.parent.mkdir(parents=True, exist_ok=True)
        write_text(target, json.dumps(json_value(document), indent=2, ensure_ascii=False))
        return target

    def _prepare_ground_truth(
        self, test_data: Any, user_col: str = translation.USER, item_col: str = translation.ITEM
    ) -> dict[Any, set[Any]]:
        """{user: set of test items} of a table or a dict."""
        return translation.items_by_user(translation.read_truth(test_data, user_col, item_col), set)

    def _compute_metrics(
        self, recommendations: Mapping[Any, Any], ground_truth: Any, k_values: Sequence[int] | None = None
    ) -> dict[str, float]:
        """The standard metrics of lists of items; MRR is over the whole lists."""
        cutoffs = self.k_values if k_values is None else translation.cutoffs(k_values)
        return dict(evaluate(recommendations, ground_truth, translation.standard_names(cutoffs)))

    def _get_top_k(self, scores: Any, k: int, exclude_indices: Iterable[int] | None = None) -> Any:
        """Indices of the k highest scores of one user, best first, without the excluded ones."""
        excluded = None if exclude_indices is None else translation.id_list(exclude_indices)
        lists = recommend(Scores(np.atleast_2d(scores)), translation.cutoff(k), never=excluded or None)
        return lists.codes.astype(np.int64)


class BatchModelEvaluator:
    """Evaluates several models on one test set, which is read once.

    >>> batch = BatchModelEvaluator(k_values=[1])
    >>> batch.add_model("good", [[1.0]], [[0.0], [1.0]])
    >>> batch.add_model("bad", [[1.0]], [[1.0], [0.0]])
    >>> _ = batch.evaluate_all({0: {1}}, {})
    >>> batch.get_best_model("recall@1")
    ('good', 1.0)
    """

    def __init__(self, k_values: Sequence[int] = _K) -> None:
        self.k_values = translation.cutoffs(k_values)
        self.models: dict[str, tuple[ModelEvaluator, dict[str, Any]]] = {}
        self.results: dict[str, translation.Results] = {}

    def add_model(self, name: str, U: Any, V: Any, hyperparams: Mapping[str, Any] | None = None) -> None:  # noqa: N803
        """Add a model, with hyperparameters to show beside its results."""
        self.models[name] = ModelEvaluator(U, V, self.k_values), dict(hyperparams or {})

    def evaluate_all(
        self,
        test_data: Any,
        user_pos_train: Any = None,
        user_col: str = translation.USER,
        item_col: str = translation.ITEM,
    ) -> dict[str, dict[str, Any]]:
        """{model: results} of all models."""
        if not self.models:
            raise InputError("no model was added.", hint="Call add_model(name, U, V) first.")
        truth = translation.read_truth(test_data, user_col, item_col)
        history = translation.training_history(test_data, user_pos_train, user_col, item_col)
        self.results = {
            name: evaluator._evaluate_interactions(truth, history)  # noqa: SLF001
            for name, (evaluator, _) in self.models.items()
        }
        return dict(self.results)

    def get_per_user_metrics(self, name: str) -> Any:
        """One model's DataFrame by user id."""
        return translation.per_user_table(self._results_of(name).evaluation)

    def get_comparison_table(self) -> Any:
        """A DataFrame with one row per model: its hyperparameters, then its results."""
        import pandas as pd

        rows = [{"model": name, **self.models[name][1], **self._results_of(name)} for name in self.results]
        hyperparams = dict.fromkeys(key for name in self.results for key in self.models[name][1])
        columns = dict.fromkeys(["model", *hyperparams, *(key for row in rows for key in row)])
        return pd.DataFrame(rows, columns=list(columns))

    def get_best_model(self, metric: str = "ndcg@10") -> tuple[str, float]:
        """(name, value) of the model with the highest value; of equal ones, the first added."""
        if not self.results:
            raise InputError("nothing was evaluated yet.", hint="Call evaluate_all(test_data, …) first.")
        for results in self.results.values():
            if metric not in results:
                raise UnknownNameError("evaluated metric", metric, results)
        best = max(self.results, key=lambda name: self.results[name][metric])
        return best, self.results[best][metric]

    def _results_of(self, name: str) -> translation.Results:
        if name not in self.results:
            raise UnknownNameError("evaluated model", name, self.results)
        return self.results[name]


def evaluate_model(
    U: Any,  # noqa: N803 - the name in document 000
    V: Any,  # noqa: N803 - the name in document 000
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
    """Load a model from a folder or file and evaluate it; the ids of the data reveal exchanged U and V.

    `name` says which model if the folder holds several.
    """
    truth = translation.read_truth(test_data, **columns)
    names = {name: columns[name] for name in ("user_col", "item_col") if name in columns}
    history = translation.training_history(test_data, user_pos_train, **names)
    users, items = load_model(model_dir, name=name, needs=(truth, history))
    return ModelEvaluator(users, items, k_values)._evaluate_interactions(truth, history)  # noqa: SLF001
