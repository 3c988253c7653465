"""The same evaluation on Spark: one shuffle brings together what belongs to a user, our engine measures it.

Only DataFrames are used, so classic sessions and Spark Connect are both served. Each partition of the users
is evaluated by itself and sends one row: what it adds to the result. Values per user go from the workers
straight into files; the exposure of items is added up on the cluster. Nothing per user reaches the driver.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Unpack

from recsys.comparison.compare import Comparison, Evaluations, compare_results
from recsys.comparison.compare_keywords import CompareOptions
from recsys.errors import InputError
from recsys.evaluation.evaluate_keywords import CONTEXT, BatchKeywords
from recsys.evaluation.in_pieces.evaluator import Evaluator
from recsys.evaluation.results import Evaluation
from recsys.metrics.registry import Metrics
from recsys.records.keywords import takes
from recsys.spark.cluster_comparison import ClusterPairs
from recsys.spark.cluster_evaluation import ClusterEvaluation
from recsys.spark.cluster_frames import UserFrame, check_partitions, check_session, collect, is_frame
from recsys.spark.item_factors import ItemFactors

__all__ = ["compare", "evaluate", "evaluate_factors"]


def evaluate(
    lists: Any,
    truth: Any,
    metrics: Metrics = None,
    *,
    per_user_path: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    partitions: int | None = None,
    **options: Unpack[BatchKeywords],
) -> Evaluation:
    """Score recommendations that are in Spark; the result has the bits of recsys.evaluate in one process.

    All other keywords of recsys.evaluate mean the same, but for those that need all users at once
    (stop_when, progress).

    Args:
        lists: a DataFrame of who was recommended what: user, item, and rank or score, since the rows of a
            cluster have no order.
        truth: a DataFrame of what was relevant: user, item, and a grade if relevance is graded.
        metrics: as for recsys.evaluate.
        per_user_path: a folder for the values per user, on a file system that the driver and all workers
            share; `recsys.load` opens it. By default only their sums are kept.
        overwrite: evaluate again, even if the folder holds the result of the same question about the same
            rows, which are read to find out. By default that result is returned.
        partitions: into how many pieces the users are cut, best about 250,000 users each; by default as many
            as `spark.sql.shuffle.partitions` says, and fewer where these are small.
        **options: seen and eligible may be DataFrames, which are shuffled with the lists; train, popularity,
            items, users, … DataFrames of up to 5 million rows, which are sent to all workers whole; or
            anything that recsys.evaluate takes. ids="str" reads ids as text.

    Raises:
        RecsysError: what recsys.evaluate raises; an error about a row names its user and item.
        MissingExtraError: the workers do not have this package.
    """
    tables, shared = _divide({"lists": lists, "truth": truth}, options)
    question = ClusterEvaluation(tables, Evaluator(metrics, **shared), options)
    return question.answer(per_user_path, overwrite=overwrite, partitions=partitions)


def evaluate_factors(
    user_factors: Any,
    item_factors: Any,
    truth: Any,
    metrics: Metrics = None,
    *,
    item_ids: Any = None,
    shards: int | None = None,
    per_user_path: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    partitions: int | None = None,
    **options: Unpack[BatchKeywords],
) -> Evaluation:
    """Rank the whole catalogue for users whose factors are in Spark, and score the rankings.

    The result has the bits of recsys.evaluate(recsys.Factors(U, V), truth, …) in one process.

    Args:
        user_factors: a DataFrame with a user column and one array of numbers, such as ALSModel.userFactors.
        item_factors: an array (items x factors) of up to 64 MB, a DataFrame of as many,
            such as ALSModel.itemFactors, or the path of a .npy file that the driver and all workers can read.
        truth: a DataFrame of what was relevant, as for `evaluate`.
        metrics: as for recsys.evaluate.
        item_ids: the item of each row of `item_factors`; by default items are row numbers.
        shards: for a catalogue that is too large for a worker: cut it into so many shards, rank each by
            itself and merge the best of all. For metrics with a cut-off; others need the whole catalogue.
        per_user_path: as for `evaluate`.
        overwrite: as for `evaluate`.
        partitions: into how many pieces the users are cut.
        **options: as for `evaluate`.

    Raises:
        NotDefinedError: with shards=, a metric that needs more than the best items.
    """
    matrix = ItemFactors.of(item_factors, item_ids)
    tables, shared = _divide({"user_factors": user_factors, "truth": truth}, options)
    for table in tables:
        if "case" in table.column_of:
            raise InputError(
                f"{table.name} has cases ({table.column_of['case']!r}), and factors rank one list per user.",
                table=table.name,
                hint="Leave the column out, or rename it to user.",
            )
    evaluator = Evaluator(metrics, **shared)
    question = ClusterEvaluation(tables, evaluator, options, matrix)
    if shards is not None:
        question = question.of_shards(shards, matrix)
    return question.answer(per_user_path, overwrite=overwrite, partitions=partitions)


@takes(CompareOptions)
def compare(
    evaluations: Evaluations,
    baseline: str | None = None,
    metrics: str | Sequence[str] | None = None,
    *,
    session: Any = None,
    partitions: int | None = None,
    cautions: str | Iterable[str] | None = None,
    **options: Unpack[CompareOptions],
) -> Comparison:
    """Compare models as recsys.compare does, from folders of values per user that the workers read.

    The rows of a user are brought together on the cluster, and what the pairs of each partition add up to is
    joined on the driver. Numbers are those of recsys.compare to 10 digits. Where that reads the values into
    memory (rank tests, permutations, covariates, weights, …), this does so too, on the driver, and says so; a
    bootstrap (test="studentised" with scheme="poisson") is drawn on the driver piece by piece.

    Args:
        evaluations: {name: folder or evaluation}, from `evaluate(..., per_user_path=)`; the folders must be
            on a file system that the driver and all workers share.
        baseline: the model that the others are compared with; by default as for recsys.compare.
        metrics: which metrics; by default those that all evaluations share.
        session: the SparkSession; by default the active one.
        partitions: into how many pieces the users are cut, as for `evaluate`.
        cautions: as for recsys.compare.
        **options: as for recsys.compare.
    """
    from pyspark.sql import SparkSession

    session = session or SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
    check_session(session)
    check_partitions(partitions)
    pairs = partial(ClusterPairs, session=session, partitions=partitions)
    return compare_results(evaluations, baseline, metrics, options, cautions=cautions, make_pairs=pairs)


def _divide(required: Mapping[str, Any], given: Mapping[str, Any]) -> tuple[list[UserFrame], dict[str, Any]]:
    """Return the tables that are shuffled by user, and the keywords of an Evaluator, for all workers."""
    for name, data in required.items():
        if not is_frame(data):
            raise InputError(
                f"{name} came as {type(data).__name__}, not as a DataFrame of Spark.",
                table=name,
                hint="Use recsys.evaluate, or spark.createDataFrame(table).",
            )
    of_users = {name: given[name] for name in ("seen", "eligible") if is_frame(given.get(name))}
    tables = [
        UserFrame.open(name, data, given.get("columns")) for name, data in {**required, **of_users}.items()
    ]
    shared = {**given, "threads": given.get("threads") or 1, **dict.fromkeys(of_users)}
    for name in CONTEXT:
        if is_frame(shared.get(name)):
            shared[name] = collect(shared[name], name)
    return tables, shared


def __dir__() -> list[str]:
    return __all__
