"""Parameters of fusion methods found as ranx finds them: the same trials, and of equal ones the last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from recsys.compat.ranx.data_structures import Qrels, Run, finite
from recsys.compat.ranx.fusion import ParameterError, judged
from recsys.compat.ranx.metrics import conventions, read_metric
from recsys.errors import InputError
from recsys.evaluation.fusion_tuning import tune_fusion
from recsys.inputs.containers import read_lists
from recsys.ranks.fusion import FUSIONS, Fusion, find_fusion


def trials_of(row: Fusion, n_runs: int, given: dict[str, Any]) -> list[Any]:
    """What ranx tries; `given` may hold min_…, max_… and step."""
    if row.tuned == "weights":
        step = given.pop("step", 0.1)
        digits = str(step)[::-1].find(".")
        weights = [round(float(x), digits) for x in np.arange(0, 1 + step, step)]
        # ranx compares the rounded sum with 1, and so leaves some of them out, such as (0.7, 0.2, 0.1).
        return [tried for tried in product(weights, repeat=n_runs) if sum(tried) == 1.0]
    usual = row.trials(n_runs) if row.trials is not None else []
    least, most = given.pop(f"min_{row.tuned}", usual[0]), given.pop(f"max_{row.tuned}", usual[-1])
    step = given.pop("step", usual[1] - usual[0] if isinstance(usual[0], int) else 0.01)
    if all(isinstance(number, int) for number in (least, most, step)):
        return list(range(least, most + 1, step))
    digits = str(step)[::-1].find(".")
    tried = [round(float(x), digits) for x in np.arange(least, most + step, step)]
    return [x for x in tried if x <= 1 or row.tuned not in ("phi", "sigma")]  # these are shares


def optimize(
    method: str, qrels: Qrels, runs: Sequence[Run], metric: str = "ndcg", **given: Any
) -> tuple[dict[str, Any], dict[str, float]]:
    """The best parameters of a method, and the metric of everything that was tried."""
    row = find_fusion(method)
    given.pop("show_progress", None)
    trials = trials_of(row, len(runs), given) if row.trials is not None else None
    if given:
        raise ParameterError(
            f"{method} takes no {', '.join(given)}.", hint="step, min_… and max_… say what is tried."
        )
    request, level = read_metric(metric)
    lists = [read_lists(finite(run.nested), allow_empty=True) for run in runs]
    tuned = tune_fusion(
        lists, judged(qrels), row.name, request, norm=None, conventions=conventions(level), trials=trials
    )
    found = dict(tuned.parameters)
    if row.name == "probfuse":
        found["probs"] = np.array(found["probs"])
    return found, {str(tried): value for tried, value in tuned.trials}


def has_hyperparams(method: str) -> bool:
    """Whether a method has parameters that are tried, and not only trained."""
    if find_fusion(method).trials is None:
        raise InputError(f"{method} has nothing to report: it is only trained.", hint="Leave the report out.")
    return True


def optimization_switch(method: str) -> Callable[..., Any]:
    """The function that finds the parameters of a method."""
    row = find_fusion(method)

    def find(
        qrels: Qrels, runs: Sequence[Run], *, return_optimization_report: bool = False, **given: Any
    ) -> Any:
        found, report = optimize(row.name, qrels, runs, **given)
        return (found, report) if return_optimization_report else found

    return find


_FUNCTIONS = {
    f"optimize_{name}": optimization_switch(name) for name, row in FUSIONS.items() if row.trials or row.train
}
globals().update(_FUNCTIONS)
__all__ = [*_FUNCTIONS]  # noqa: PLE0604 - what the line above defines
