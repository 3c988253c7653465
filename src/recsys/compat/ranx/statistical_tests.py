"""The tests of ranx by its names; `recsys.stats` does them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from recsys.compat.ranx import add_modules
from recsys.compat.ranx.data_structures import FrozensetDict
from recsys.errors import UnknownNameError, notes_only
from recsys.records.arrays import Float
from recsys.stats.paired_tests import paired_t, sign_flip

__all__ = [
    "compute_statistical_significance",
    "fisher_randomization_test",
    "paired_student_t_test",
    "tukey_hsd_test",
]


def paired_student_t_test(control: Float, treatment: Float, max_p: float = 0.01) -> tuple[float, bool]:
    """The p-value of the paired t-test, two-sided, and whether it is at most max_p."""
    with notes_only():
        p = paired_t(np.asarray(control) - np.asarray(treatment)).p_value
    return p, p <= max_p


def fisher_randomization_test(
    control: Float,
    treatment: Float,
    n_permutations: int = 1000,  # noqa: ARG001
    max_p: float = 0.01,
    random_seed: int = 42,  # noqa: ARG001
) -> tuple[float, bool]:
    """The p-value of the permutation that swaps the two sides of queries, and whether it is at most max_p.

    It is that of all permutations, which those of ranx sample: their number and the seed change nothing.
    """
    differences = np.asarray(control) - np.asarray(treatment)
    with notes_only():
        p = sign_flip(differences).p_value
    return p, p <= max_p


def tukey_hsd_test(model_names: Sequence[str], scores: Sequence[Float], max_p: float) -> list[dict[str, Any]]:
    """Tukey's honestly significant differences of every pair of models; queries are not paired."""
    from scipy.stats import tukey_hsd

    p_values = tukey_hsd(*scores).pvalue
    return [
        {"control": a, "treatment": b, "p-value": p_values[i, j], "significant": p_values[i, j] <= max_p}
        for i, a in enumerate(model_names)
        for j, b in enumerate(model_names)
    ]


class UnknownTestError(UnknownNameError, NotImplementedError):
    """No statistical test has this name; ranx raises NotImplementedError."""


def compute_statistical_significance(
    model_names: Sequence[str],
    metric_scores: Mapping[str, Mapping[str, Float]],
    stat_test: str = "fisher",
    n_permutations: int = 1000,
    max_p: float = 0.01,
    random_seed: int = 42,
) -> FrozensetDict:
    """{(a, b): {metric: {"p_value", "significant"}}} for every pair of models."""
    if stat_test not in ("fisher", "student", "tukey"):
        raise UnknownTestError("statistical test", stat_test, ("student", "fisher", "tukey"))
    found = FrozensetDict({pair: {} for pair in combinations(model_names, 2)})
    for metric in metric_scores[model_names[0]] if model_names else ():
        columns = {name: np.asarray(metric_scores[name][metric]) for name in model_names}
        if stat_test == "tukey":
            for row in tukey_hsd_test(model_names, list(columns.values()), max_p):
                if row["control"] != row["treatment"]:
                    pair = row["control"], row["treatment"]
                    found[pair][metric] = {"p_value": row["p-value"], "significant": row["significant"]}
            continue
        for a, b in found:
            pair = columns[a], columns[b]
            p, significant = (
                paired_student_t_test(*pair, max_p)
                if stat_test == "student"
                else fisher_randomization_test(*pair, n_permutations, max_p, random_seed)
            )
            found[a, b][metric] = {"p_value": np.float64(p), "significant": significant and not math.isnan(p)}
    return found


add_modules(__name__, {name: {name: globals()[name]} for name in __all__[1:]})
