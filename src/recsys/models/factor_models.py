"""ALS and BPR through implicit.

The result holds factors with the ids they belong to, which evaluate, recommend and compare accept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from recsys.errors import MissingExtraError
from recsys.models.training_pairs import Pairs
from recsys.types import Array, Interactions


@dataclass(frozen=True, eq=False)
class FactorModel:
    """Factors, and the ids of their rows where there are some; `model` is the library's own object."""

    user_factors: Array
    item_factors: Array
    user_ids: Array | None
    item_ids: Array | None
    model: Any


def als(train: Interactions | Pairs, *, factors: int = 64, seed: int = 0, **options: Any) -> FactorModel:
    """Alternating least squares; `options` are those of implicit's AlternatingLeastSquares."""
    return _fit_implicit("als", "AlternatingLeastSquares", train, {"factors": factors, **options}, seed)


def bpr(train: Interactions | Pairs, *, factors: int = 64, seed: int = 0, **options: Any) -> FactorModel:
    """Bayesian personalised ranking; `options` are those of implicit's BayesianPersonalizedRanking."""
    return _fit_implicit("bpr", "BayesianPersonalizedRanking", train, {"factors": factors, **options}, seed)


def _fit_implicit(
    module: str, name: str, train: Interactions | Pairs, options: dict[str, Any], seed: int
) -> FactorModel:
    from importlib import import_module

    try:
        # The CPU classes: implicit's factory functions may choose a GPU build.
        kind = getattr(import_module(f"implicit.cpu.{module}"), name)
    except ImportError as error:
        raise MissingExtraError("implicit", "implicit", name) from error
    from scipy.sparse import csr_matrix

    pairs = train if isinstance(train, Pairs) else Pairs.from_interactions(train)
    counts = np.ones(len(pairs), dtype=np.float32)
    matrix = csr_matrix((counts, (pairs.users, pairs.items)), shape=(pairs.n_users, pairs.n_items))
    # implicit has its own threads; BLAS threads would compete with them.
    with import_module("threadpoolctl").threadpool_limits(1, "blas"):
        model = kind(random_state=seed, **options)
        model.fit(matrix, show_progress=False)
    return FactorModel(
        np.asarray(model.user_factors),
        np.asarray(model.item_factors),
        pairs.user_ids,
        pairs.item_ids,
        model,
    )
