"""The verbs of ranx: evaluate, compare, fuse, normalize, optimize_fusion, plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Any

import numpy as np

from recsys.compat.ranx import add_modules
from recsys.compat.ranx.data_structures import (
    OptimizationReport,
    Qrels,
    Report,
    Run,
    TypeMismatchError,
    UnlikeQueriesError,
)
from recsys.compat.ranx.fusion import fused
from recsys.compat.ranx.fusion_optimization import has_hyperparams, optimize
from recsys.compat.ranx.metrics import as_dicts, interpolated_precision_at_recall, values
from recsys.compat.ranx.normalization import norm_switch, normalised, pool_of
from recsys.compat.ranx.statistical_tests import compute_statistical_significance
from recsys.ranks.fusion import find_fusion, find_normalisation, norm_of
from recsys.ranks.fusion import normalise as normalise_pool

__all__ = ["compare", "evaluate", "fuse", "normalize", "optimize_fusion", "plot"]
_WINS: tuple[tuple[str, Any], ...] = (("W", np.greater), ("T", np.equal), ("L", np.less))


def evaluate(
    qrels: Any,
    run: Any,
    metrics: Sequence[str] | str,
    return_mean: bool = True,
    return_std: bool = False,
    threads: int = 0,
    save_results_in_run: bool = True,
    make_comparable: bool = False,
) -> Any:
    """The metrics of a run: the mean over the queries, or an array with one value per query.

    Args:
        qrels: Qrels, a nested dict, or one array of (document, grade) rows per query.
        run: Run, a nested dict, or one array of (document, score) rows per query, best first.
        metrics: one or several of "hits", "hit_rate", "precision", "recall", "f1", "r-precision", "mrr",
            "map", "dcg", "ndcg", "dcg_burges", "ndcg_burges" (with @k), "bpref", "rbp.95"; -l2 behind it
            makes grades from 2 on relevant.
        return_mean: False gives one value per query, in the order of their ids.
        return_std: also the standard deviation: {"mean": …, "std": …}.
        threads: not looked at.
        save_results_in_run: keep the values in `run.scores`, `run.mean_scores` and `run.std_scores`.
        make_comparable: `run.make_comparable(qrels)` first.

    Returns:
        One number or array for one metric, else a dict of them.

    Raises:
        UnlikeQueriesError: the two sides are not about the same queries.
    """
    del threads
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    if not all(isinstance(name, str) for name in names):
        raise TypeMismatchError(f"metrics came as {metrics!r}.", hint='Pass names such as "ndcg@10".')
    if make_comparable and isinstance(qrels, Qrels) and isinstance(run, Run):
        run = run.make_comparable(qrels)
    if isinstance(qrels, Qrels | Mapping) and isinstance(run, Run | Mapping) and qrels.keys() != run.keys():
        raise UnlikeQueriesError(
            "qrels and run are not about the same queries.",
            hint="make_comparable=True gives a query without results an empty list and drops queries "
            "without qrels.",
        )
    if isinstance(run, Run) and not run.sorted:
        run.sort()
    found = values(_nested(qrels, is_run=False), _nested(run, is_run=True), names)
    if isinstance(run, Run) and save_results_in_run:
        for name, column in found.items():
            run.mean_scores[name] = np.mean(column)
            if return_std and return_mean:
                run.std_scores[name] = np.std(column)
            run.scores[name].update(zip(run.keys(), column, strict=True))
    out: dict[str, Any] = dict(found)
    if return_mean:
        out = {name: np.mean(column) for name, column in found.items()}
        if return_std:
            out = {name: {"mean": mean, "std": np.std(found[name])} for name, mean in out.items()}
    return out[names[0]] if len(names) == 1 else out


def _nested(side: Any, *, is_run: bool) -> Mapping[str, Mapping[str, float]]:
    if isinstance(side, Qrels | Run):
        return side.nested
    if not isinstance(side, Mapping):
        return as_dicts(side, is_run=is_run)
    # Of equal scores in a plain dict ranx takes the last one first.
    return {q: dict(reversed(found.items())) for q, found in side.items()} if is_run else side


def compare(
    qrels: Qrels,
    runs: Sequence[Run],
    metrics: Sequence[str] | str,
    stat_test: str = "student",
    n_permutations: int = 1000,
    max_p: float = 0.01,
    random_seed: int = 42,
    threads: int = 0,
    rounding_digits: int = 3,
    show_percentages: bool = False,
    make_comparable: bool = False,
) -> Report:
    """Evaluate several runs and test which of them differ.

    Args:
        qrels: what is relevant.
        runs: the runs; one without a name is run_1, run_2, …
        metrics: as in `evaluate`.
        stat_test: "student" for the paired t-test, "fisher" for the permutation test, "tukey" for Tukey's
            honestly significant differences.
        n_permutations: of "fisher".
        max_p: up to which p-value a difference is significant.
        random_seed: of "fisher".
        threads: not looked at.
        rounding_digits: of the printed report.
        show_percentages: print percentages.
        make_comparable: as in `evaluate`.
    """
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    columns: dict[str, dict[str, Any]] = {}
    models = [run.name if run.name is not None else f"run_{number}" for number, run in enumerate(runs, 1)]
    for model, run in zip(models, runs, strict=True):
        found = evaluate(
            qrels, run, names, return_mean=False, threads=threads, make_comparable=make_comparable
        )
        columns[model] = found if len(names) > 1 else {names[0]: found}
    wins: dict[tuple[str, str], dict[str, dict[str, int]]] = {
        (a, b): {
            name: {letter: int(is_so(columns[a][name], columns[b][name]).sum()) for letter, is_so in _WINS}
            for name in names
        }
        for a, b in permutations(columns, 2)
    }
    return Report(
        model_names=models,
        results={
            model: {name: float(np.mean(found[name])) for name in names} for model, found in columns.items()
        },
        comparisons=compute_statistical_significance(
            list(columns), columns, stat_test, n_permutations, max_p, random_seed
        ),
        metrics=names,
        max_p=max_p,
        win_tie_loss=wins,
        rounding_digits=rounding_digits,
        show_percentages=show_percentages,
        stat_test=stat_test,
    )


def normalize(run: Run, norm: str = "min-max") -> Run:
    """The run with comparable scores: "min-max", "min-max-inverted", "max", "sum", "zmuv", "rank"."""
    found: Run = norm_switch(norm)(run)
    return found


def fuse(
    runs: Sequence[Run],
    norm: str | None = "min-max",
    method: str = "wsum",
    params: Mapping[str, Any] | None = None,
) -> Run:
    """One run from several; docs/fusion.md has the methods and their parameters."""
    _check_queries(runs)
    row = find_fusion(method)
    chosen = norm_of(row, norm)
    places = row.reads == "places" or chosen is None or find_normalisation(chosen).reads == "places"
    pool = normalise_pool(pool_of(runs, infinite=places), row, norm)
    return fused(pool, row, sorted(runs[0].keys()), params or {})


def optimize_fusion(
    qrels: Qrels,
    runs: Sequence[Run],
    norm: str | None = "min-max",
    method: str = "wsum",
    metric: str = "ndcg",
    return_optimization_report: bool = False,
    rounding_digits: int = 3,
    show_percentages: bool = False,
    **kwargs: Any,
) -> Any:
    """The parameters of a fusion method that do best on these runs, for `fuse(…, params=…)`.

    They are chosen on these queries: use them on others. `step`, `min_…` and `max_…` say what is tried.
    """
    _check_queries(runs, qrels)
    ready = list(runs) if norm is None else normalised(runs, norm)
    found, report = optimize(method, qrels, ready, metric, **kwargs)
    if not (return_optimization_report and has_hyperparams(method)):
        return found
    tried = list(report), list(report.values())
    return found, OptimizationReport(method, *tried, metric, rounding_digits, show_percentages)


def _check_queries(runs: Sequence[Run], qrels: Qrels | None = None) -> None:
    if len(runs) < 2:
        raise UnlikeQueriesError(f"{len(runs)} run came.", hint="Pass two runs or more.")
    for number, run in enumerate(runs):
        for other, what in ((runs[0], "run 0"), *(((qrels, "the qrels"),) if qrels is not None else ())):
            if run.keys() != other.keys():
                raise UnlikeQueriesError(
                    f"run {number} and {what} are not about the same queries.",
                    hint="run.make_comparable(qrels) makes them so.",
                )


def plot(
    qrels: Qrels,
    runs: Run | Sequence[Run],
    graph: str = "iprec_at_recall",
    return_graph: bool = True,
    figsize: tuple[float, float] | None = None,
    seaborn_kwargs: Mapping[str, Any] | None = None,
) -> Any:
    """Draw the best precision at each recall with matplotlib; the table of it with return_graph=False."""
    import pandas as pd

    del graph
    several = [runs] if isinstance(runs, Run) else list(runs)
    names = [
        run.name if run.name is not None else "run" if isinstance(runs, Run) else f"run_{number}"
        for number, run in enumerate(several, start=1)
    ]
    recall = np.arange(0, 1.1, 0.1)
    judged = qrels.to_typed_list()
    table = pd.concat(
        pd.DataFrame({
            "Model": name,
            "recall": recall,
            "precision": interpolated_precision_at_recall(judged, run.to_typed_list()).mean(axis=0),
        })
        for name, run in zip(names, several, strict=True)
    ).reset_index(drop=True)  # fmt: skip
    if not return_graph:
        return table
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(figsize=figsize or (8, 5))
    for name, rows in table.groupby("Model", sort=False):
        axes.plot(rows["recall"], rows["precision"], label=name, **(seaborn_kwargs or {"linewidth": 2.5}))
    axes.set(title="Precision at recall", xlabel="Recall", ylabel="Precision", xticks=recall, yticks=recall)
    axes.legend(title="Model")
    plt.show()
    return None


add_modules(__name__, {name: {name: globals()[name]} for name in __all__})
