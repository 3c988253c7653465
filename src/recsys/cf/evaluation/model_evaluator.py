"""The model evaluators of document 000: ModelEvaluator, BatchModelEvaluator and their functions.

`recsys.evaluate` counts the place of every test item among all unseen items, in blocks within a memory
budget, so `batch_size` and `use_argpartition` do not affect results. MRR is over the whole ranking and does
not depend on `k_values`.

`evaluate_hybrid_model` and `evaluate_with_reranking` are what the comparison script of the document calls.
All their numbers come from the same lists, in one call of `recsys.evaluate` per model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from recsys.cf.evaluation import translation
from recsys.cf.evaluation.evaluators import SeveralEvaluators, StandardEvaluator
from recsys.cf.evaluation.hybrid_metrics import arrays_by_user, item_vectors
from recsys.cf.evaluation.loading import load_model
from recsys.errors import InputError, RecsysWarning, warn
from recsys.evaluation.evaluate import evaluate, recommend
from recsys.models.baselines import training_counts
from recsys.models.rerankers import blend, diversify, unit_rows
from recsys.models.rerankers import user_profiles as profiles_of
from recsys.ranks.ranked_truth import in_history
from recsys.ranks.sources import Factors, Scores
from recsys.records.arrays import Interactions, Vectors

_POOL = 100


class ModelEvaluator(StandardEvaluator):
    """Evaluates user factors U and item factors V.

    Args:
        U: one row per user.
        V: one row per item.
        k_values: the cut-offs.
        batch_size: has nothing to do: scores are counted in blocks that fit the memory, whatever it says.
        use_argpartition: has nothing to do either: a kernel finds the exact top k in one pass.
        user_ids: the id of each row of U, if users are not row numbers.
        item_ids: the same for V.

    >>> evaluator = ModelEvaluator(
    ...     [[1.0, 0.0], [0.0, 1.0]], [[3.0, 1.0], [2.0, 2.0], [1.0, 5.0]], k_values=[1, 2]
    ... )
    >>> results = evaluator.evaluate({0: {1}, 1: {1}}, {0: {0}})
    >>> results["recall@1"], results["mrr"], results["coverage"], results["num_users_evaluated"]
    (0.5, 0.75, 0.6666666666666666, 2)
    """

    _id_advice = "ModelEvaluator(U, V, user_ids=..., item_ids=...) takes the id of each row."

    def __init__(
        self,
        U: Any,  # noqa: N803 - the name in document 000
        V: Any,  # noqa: N803 - the name in document 000
        k_values: Sequence[int] = translation.K_VALUES,
        batch_size: int = 1000,
        use_argpartition: bool = True,  # noqa: FBT001, FBT002 - the signature in document 000
        *,
        user_ids: Iterable[Any] | None = None,
        item_ids: Iterable[Any] | None = None,
    ) -> None:
        self.source = Factors(U, V, user_ids=user_ids, item_ids=item_ids)
        self.U, self.V = self.source.users, self.source.items
        self.num_items = len(self.V)
        self.k_values = translation.cutoffs(k_values)
        translation.cutoff(batch_size, "batch_size")
        del use_argpartition

    def evaluate(
        self,
        test_data: Any,
        user_pos_train: Any = None,
        user_col: str = translation.USER,
        item_col: str = translation.ITEM,
        *,
        rating_col: str | None = None,
    ) -> translation.Results:
        """All metrics over the test users; their training items are left out of the lists.

        `test_data` is a table or {user: items}; {user: {item: grade}} or `rating_col` makes it graded.
        """
        columns = {"user_col": user_col, "item_col": item_col, "rating_col": rating_col}
        return self._evaluate_test_set(test_data, user_pos_train, self.k_values, **columns)

    def _lists_or_source(self, truth: Interactions, history: Interactions | None, k: int) -> Factors:
        del truth, history, k
        return self.source

    def generate_recommendations(
        self, test_users: Iterable[Any], user_pos_train: Any = None, k: int | None = None
    ) -> dict[Any, list[Any]]:
        """{user: the k best items not in their training items}; k is by default the largest of `k_values`."""
        length = max(self.k_values) if k is None else translation.cutoff(k)
        users = translation.id_list(test_users)
        if not users:
            return {}
        history = translation.read_history(user_pos_train)
        with translation.document_words(self._id_advice):
            lists = recommend(self.source, length, users=users, seen=history)
        return translation.lists_for_users(lists, users)

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
        lists = recommend(Scores(np.atleast_2d(scores)), translation.cutoff(k), exclude=excluded or None)
        return lists.codes.astype(np.int64)


class BatchModelEvaluator(SeveralEvaluators):
    """Evaluates several models on one test set, which is read once; all cores rank one model after the other.

    >>> batch = BatchModelEvaluator(k_values=[1])
    >>> batch.add_model("good", [[1.0]], [[0.0], [1.0]])
    >>> batch.add_model("bad", [[1.0]], [[1.0], [0.0]])
    >>> batch.evaluate_all({0: {1}}, {})["good"]["recall@1"]
    1.0
    """

    kind, _adder = "model", "add_model(name, U, V)"

    def add_model(self, name: str, U: Any, V: Any, hyperparams: Mapping[str, Any] | None = None) -> None:  # noqa: N803
        """Add a model, with hyperparameters to show with its results."""
        self._evaluate[name] = ModelEvaluator(U, V, self.k_values).evaluate
        self._hyperparams[name] = dict(hyperparams or {})


def evaluate_model(
    U: Any,  # noqa: N803 - the name in document 000
    V: Any,  # noqa: N803 - the name in document 000
    test_data: Any,
    user_pos_train: Any = None,
    k_values: Sequence[int] = translation.K_VALUES,
    **columns: Any,
) -> translation.Results:
    """ModelEvaluator(U, V, k_values).evaluate(test_data, user_pos_train)."""
    return ModelEvaluator(U, V, k_values).evaluate(test_data, user_pos_train, **columns)


def load_and_evaluate(
    model_dir: str | Path,
    test_data: Any,
    user_pos_train: Any = None,
    k_values: Sequence[int] = translation.K_VALUES,
    *,
    name: str | None = None,
    **columns: Any,
) -> translation.Results:
    """Load a model from a folder or file and evaluate it; the ids of the data reveal swapped U and V.

    `name` says which model if the folder holds several.
    """
    test_set = translation.read_test_set(test_data, user_pos_train, **columns)
    users, items = load_model(model_dir, name=name, needs=test_set)
    return ModelEvaluator(users, items, k_values).evaluate(*test_set)


class UserProfiles(dict[Any, Any]):
    """{user: vector}, and the interactions they were made of."""

    made_of: Interactions


def compute_all_user_profiles(
    test_data: Any,
    bert_embeddings: Any,
    item_to_idx: Mapping[Any, int] | None = None,
    *,
    user_col: str = translation.USER,
    item_col: str = translation.ITEM,
    rating_col: str | None = None,
) -> dict[Any, Any]:
    """{user: mean embedding of the items they took}; users without an embedded item are left out.

    Of what `load_test_data` returns, the training part is used. A table or {user: items} is used as it is, so
    pass the training data: profiles made of test items leak the answers.

    >>> {u: p.tolist() for u, p in compute_all_user_profiles({7: [0, 1]}, [[1.0, 0.0], [0.0, 1.0]]).items()}
    {7: [0.5, 0.5]}
    """
    loaded = isinstance(test_data, translation.EvaluationData)
    history = translation.read_truth(
        test_data.user_pos_train if loaded else test_data, user_col, item_col, rating_col
    )
    vectors = item_vectors(bert_embeddings, item_to_idx)
    profiles = profiles_of(
        history, vectors.matrix[vectors.rows], item_ids=vectors.ids.values, weighted=rating_col is not None
    )
    keep = ~np.isin(profiles.ids, profiles.without)
    by_user = UserProfiles(zip(profiles.ids[keep].tolist(), profiles.vectors[keep], strict=True))
    by_user.made_of = history
    return by_user


def evaluate_hybrid_model(
    U: Any,  # noqa: N803 - the name in document 000
    V: Any,  # noqa: N803 - the name in document 000
    bert_embeddings: Any,
    test_data: Any,
    user_profiles: Mapping[Any, Any] | None = None,
    **options: Any,
) -> translation.Results:
    """Accuracy, coverage and content metrics of the factors U and V without re-ranking.

    The arguments and keys are those of `evaluate_with_reranking`, without alpha.
    """
    return evaluate_with_reranking(U, V, bert_embeddings, test_data, user_profiles, alpha=None, **options)


def evaluate_with_reranking(
    U: Any,  # noqa: N803 - the name in document 000
    V: Any,  # noqa: N803 - the name in document 000
    bert_embeddings: Any,
    test_data: Any,
    user_profiles: Mapping[Any, Any] | None = None,
    *,
    alpha: float | None = 0.7,
    diversity: float = 0.0,
    user_pos_train: Any = None,
    item_counts: Any = None,
    item_to_idx: Mapping[Any, int] | None = None,
    k: int = 10,
    cold_threshold: float = 5,
) -> translation.Results:
    """Accuracy, coverage and content metrics of alpha * model + (1 - alpha) * content over the catalogue.

    Both scores are scaled to the spread of the user's scores.

    Args:
        U: user factors.
        V: item factors.
        bert_embeddings: one row per item, in the order of V (or of `item_to_idx`).
        test_data: what `load_test_data` returns, a table or {user: items}.
        user_profiles: {user: vector}, or one row per user. By default they are made of the training items; if
            there are none, of the test items, which leak the answers.
        alpha: the weight of the model; None ranks by the model alone.
        diversity: above 0, lists are picked by MMR from the 100 best items.
        user_pos_train: {user: training items}; by default those loaded with `test_data`.
        item_counts: how many users took each item; by default counted in the data the profiles come from.
        item_to_idx: {item: row of the embeddings}.
        k: the length of the lists.
        cold_threshold: items with fewer interactions are cold.

    Keys: recall@k, ndcg@k, coverage, diversity@k, semantic_alignment@k, cold_start_coverage.

    Warns:
        RecsysWarning: profiles know the test items; items of the model have no embedding, or embeddings no
            item of the model.
    """
    k, cold_threshold = translation.cutoff(k), translation.finite(cold_threshold, "cold_threshold")
    truth, history = translation.read_test_set(test_data, user_pos_train)
    vectors = item_vectors(bert_embeddings, item_to_idx)
    taken = truth if history is None else history
    if user_profiles is None:
        user_profiles = compute_all_user_profiles(taken, bert_embeddings, item_to_idx)
    _check_profiles(user_profiles, truth)
    profiles = arrays_by_user(user_profiles)
    if not profiles:
        raise InputError("no user has a profile.", hint="Check that the items users took have an embedding.")
    if not len(vectors.ids):
        raise InputError("no item has an embedding.", hint="Check item_to_idx={item: row of the embeddings}.")
    n_items = len(V)
    _check_items(vectors, n_items, len(bert_embeddings) if item_to_idx is None else n_items)
    counts = training_counts(taken) if item_counts is None else item_counts
    if hasattr(counts, "ids"):
        counts = translation.values_by_index(counts.ids, counts.values, n_items, "user_pos_train")

    # Row numbers as item ids: items without users are part of the catalogue.
    source = Factors(U, V, item_ids=np.arange(n_items))
    if alpha is not None:
        source = blend(source, _content_factors(vectors, profiles, n_items), alpha)
    names = {
        f"recall@{k}": f"recall@{k}",
        f"ndcg@{k}": f"ndcg@{k}",
        "coverage": f"coverage@{k}",
        f"diversity@{k}": f"ild@{k}",
        f"semantic_alignment@{k}": f"alignment@{k}",
        "cold_start_coverage": f"cold_coverage(below={cold_threshold:g})@{k}",
    }
    facts: dict[str, Any] = {"embeddings": vectors, "profiles": profiles, "popularity": counts}
    requests = list(names.values())
    with translation.document_words("Map ids to the row numbers of U and V first."):
        if diversity == 0:
            result = evaluate(source, truth, requests, seen=history, **facts)
        else:
            pool = recommend(source, max(_POOL, k), users=truth.cases.values, seen=history)
            rows = vectors.matrix[vectors.rows]
            lists = diversify(pool, rows, k, diversity=diversity, item_ids=vectors.ids.values)
            result = evaluate(lists, truth, requests, catalogue=range(n_items), **facts)
    return translation.Results.of({key: result[name] for key, name in names.items()}, result)


def _content_factors(vectors: Vectors, profiles: Mapping[Any, Any], n_items: int) -> Factors:
    """The cosine of every row of V with each user's profile; 0 for items without an embedding."""
    inside = np.isin(vectors.ids.values, np.arange(n_items))
    content = np.zeros((n_items, vectors.matrix.shape[1]))
    content[vectors.ids.values[inside]] = vectors.matrix[vectors.rows[inside]]
    users = unit_rows(list(profiles.values()))
    return Factors(users, unit_rows(content), user_ids=list(profiles))


def _check_items(vectors: Vectors, n_items: int, n_rows: int) -> None:
    """Warn if items with an embedding and the rows of V are not the same."""
    inside = np.isin(vectors.ids.values, np.arange(n_items))
    if not inside.all() or n_rows != n_items:
        warn(
            RecsysWarning,
            f"{int((~inside).sum()):,} of {len(inside):,} items with an embedding are not rows of V, and "
            f"{n_items - int(inside.sum()):,} of its {n_items:,} rows have none; say which belongs to which: "
            "item_to_idx={row of V: row of the embeddings}.",
        )


def _check_profiles(profiles: Any, truth: Interactions) -> None:
    """Warn if profiles were made of the test items, so that the answers leak."""
    made_of = getattr(profiles, "made_of", None)
    if made_of is None or made_of.items.kind != truth.items.kind or made_of.cases.kind != truth.cases.kind:
        return
    n_known = int(in_history(truth, made_of).sum())
    if 2 * n_known >= len(truth.codes) > 0:
        warn(
            RecsysWarning,
            f"the user profiles were made of {n_known:,} of the {len(truth.codes):,} test items, so they "
            "know the answers; make them of the training data: compute_all_user_profiles(user_pos_train, …).",
        )
