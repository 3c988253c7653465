"""Items on a plane: do the embeddings put like with like? By any method that has fit_transform."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from recsys.errors import InputError, MissingExtraError, UnknownNameError
from recsys.types import Array, Float

METHODS = ("tsne", "pca", "umap", "pacmap")


def item_map(
    embeddings: Any,
    *,
    method: Any = "tsne",
    labels: Any = None,
    item_ids: Any = None,
    seed: int = 0,
    **options: Any,
) -> Any:
    """Each item's place on a plane: a frame with x, y, and the label it may be coloured by.

    Args:
        embeddings: one row an item, such as the item factors V; rows of zeros or NaN have no place.
        method: "tsne" and "pca" (scikit-learn), "umap" or "pacmap" where installed, or any object with
            fit_transform(matrix) -> two columns.
        labels: category, brand, … of each row, or {item id: label}.
        item_ids: the index of the frame; row numbers without.
        seed: of the methods that draw.
        options: passed on to the method.

    `frame.attrs["neighbours"]` says how often an item's nearest neighbour on the map has its label, and what
    chance would give, where there are labels: a number for "do they cluster by category?".

    >>> import numpy as np
    >>> rows = np.vstack([np.zeros((5, 4)), np.ones((5, 4))]) + np.random.default_rng(0).normal(
    ...     0, 0.01, (10, 4)
    ... )
    >>> made = item_map(rows, method="pca", labels=["a"] * 5 + ["b"] * 5)
    >>> made.shape, made.attrs["neighbours"]["same label"]
    ((10, 3), 1.0)
    """
    import pandas as pd

    rows = np.asarray(embeddings, dtype=np.float64)
    if rows.ndim != 2 or np.isinf(rows).any():
        raise InputError(
            f"the embeddings must be a finite matrix; got shape {rows.shape}.", table="embeddings"
        )
    present = ~np.isnan(rows).any(axis=1) & rows.any(axis=1)
    if int(present.sum()) < 3:
        raise InputError("fewer than three items have an embedding.", table="embeddings")
    if rows.shape[1] < 2 or not np.ptp(rows[present], axis=0).any():
        # Not left to the methods: t-SNE of equal rows brings the interpreter down.
        raise InputError("all items have the same embedding, or one number each.", table="embeddings")
    kinds = None if labels is None else _labels(labels, range(len(rows)) if item_ids is None else item_ids)
    if kinds is not None and len(kinds) != len(rows):
        raise InputError(f"there are {len(rows)} items and {len(kinds)} labels.", table="labels")
    places = np.full((len(rows), 2), np.nan)
    flat = np.asarray(_reducer(method, int(present.sum()), seed, options).fit_transform(rows[present]))
    if flat.ndim != 2 or flat.shape[0] != int(present.sum()) or flat.shape[1] < 2:
        raise InputError(f"the method gave shape {flat.shape}, expected two columns an item.")
    places[present] = flat[:, :2]
    frame = pd.DataFrame({"x": places[:, 0], "y": places[:, 1]}, index=item_ids)
    if kinds is not None:
        frame["label"] = kinds
        frame.attrs["neighbours"] = _agreement(places[present], np.asarray(frame["label"])[present])
    frame.attrs["without_embedding"] = int((~present).sum())
    return frame


def _labels(labels: Iterable[Any], ids: Iterable[Any]) -> list[Any]:
    """One label a row; {item: label} goes by id, None where it has none."""
    return [labels.get(one) for one in ids] if isinstance(labels, Mapping) else list(labels)


def _reducer(method: Any, n: int, seed: int, options: dict[str, Any]) -> Any:
    if hasattr(method, "fit_transform"):
        return method
    if method == "tsne":
        chosen = {"perplexity": min(30.0, (n - 1) / 3), "init": "pca", **options}
        return _imported("sklearn.manifold", "scikit-learn").TSNE(random_state=seed, **chosen)
    if method == "pca":
        return _imported("sklearn.decomposition", "scikit-learn").PCA(
            n_components=2, random_state=seed, **options
        )
    if method == "umap":
        return _imported("umap", "umap-learn").UMAP(n_components=2, random_state=seed, **options)
    if method == "pacmap":
        return _imported("pacmap", "pacmap").PaCMAP(n_components=2, random_state=seed, **options)
    raise UnknownNameError("method", method, METHODS)


def _imported(module: str, package: str) -> Any:
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(package, "embed", "A map of the items") from error


def _agreement(places: Float, labels: Array) -> dict[str, float]:
    """How often the nearest neighbour has the same label, and how often a random other item would.

    Among items that have a label.
    """
    from scipy.spatial import KDTree

    labelled = np.array([not (one is None or one != one) for one in labels.tolist()])  # noqa: PLR0124 - NaN
    places, labels = places[labelled], labels[labelled]
    if len(labels) < 2:
        return {"same label": np.nan, "by chance": np.nan}
    nearest = np.asarray(KDTree(places).query(places, k=2)[1])
    own = np.arange(len(places))
    other = np.where(nearest[:, 0] == own, nearest[:, 1], nearest[:, 0])
    _, sizes = np.unique(labels.astype(str), return_counts=True)
    chance = float((sizes * (sizes - 1)).sum()) / (len(labels) * (len(labels) - 1))
    return {"same label": float((labels[other] == labels).mean()), "by chance": chance}
