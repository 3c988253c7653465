"""A map of items in two dimensions: whether similar items have similar embeddings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from recsys.errors import InputError, check_choice, needs_extra
from recsys.records.arrays import Array, Float

METHODS = {  # package, the extra that has it, module and class
    "tsne": ("scikit-learn", "embed", "sklearn.manifold", "TSNE"),
    "pca": ("scikit-learn", "embed", "sklearn.decomposition", "PCA"),
    "umap": ("umap-learn", None, "umap", "UMAP"),
    "pacmap": ("pacmap", None, "pacmap", "PaCMAP"),
}


def item_map(
    embeddings: Any,
    *,
    method: Any = "tsne",
    labels: Any = None,
    item_ids: Any = None,
    seed: int = 0,
    **options: Any,
) -> Any:
    """Return the coordinates of each item in two dimensions: a frame with x, y, and labels if given.

    Args:
        embeddings: one row per item, such as the item factors V; rows of zeros or NaN get NaN coordinates.
        method: "tsne" and "pca" (scikit-learn, in the extra `embed`), "umap" or "pacmap" where installed
            (umap-learn and pacmap, in no extra), or any object with fit_transform(matrix) -> two columns.
        labels: category, brand, … of each row, or {item id: label}.
        item_ids: the index of the frame; by default row numbers.
        seed: the random seed of the method.
        options: passed on to the method.

    With labels, `frame.attrs["neighbours"]` says how often the nearest neighbour on the map has the same
    label, and how often it would by chance: whether items cluster by category.

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
        # Checked here: t-SNE of equal rows crashes the interpreter.
        raise InputError("all items have the same embedding, or one number each.", table="embeddings")
    if isinstance(labels, Mapping):
        labels = [labels.get(i) for i in (range(len(rows)) if item_ids is None else item_ids)]
    row_labels = None if labels is None else list(labels)
    if row_labels is not None and len(row_labels) != len(rows):
        raise InputError(f"there are {len(rows)} items and {len(row_labels)} labels.", table="labels")
    places = np.full((len(rows), 2), np.nan)
    flat = np.asarray(_reducer(method, int(present.sum()), seed, options).fit_transform(rows[present]))
    if flat.ndim != 2 or flat.shape[0] != int(present.sum()) or flat.shape[1] < 2:
        raise InputError(f"the method gave shape {flat.shape}, expected two columns per item.")
    places[present] = flat[:, :2]
    frame = pd.DataFrame({"x": places[:, 0], "y": places[:, 1]}, index=item_ids)
    if row_labels is not None:
        frame["label"] = row_labels
        frame.attrs["neighbours"] = _neighbour_agreement(places[present], np.asarray(frame["label"])[present])
    frame.attrs["without_embedding"] = int((~present).sum())
    return frame


def _reducer(method: Any, n: int, seed: int, options: dict[str, Any]) -> Any:
    from importlib import import_module

    if hasattr(method, "fit_transform"):
        return method
    check_choice("method", method, METHODS)
    package, extra, module, name = METHODS[method]
    with needs_extra(package, extra, "A map of the items"):
        kind = getattr(import_module(module), name)
    if method == "tsne":
        return kind(random_state=seed, **{"perplexity": min(30.0, (n - 1) / 3), "init": "pca", **options})
    return kind(n_components=2, random_state=seed, **options)


def _neighbour_agreement(places: Float, labels: Array) -> dict[str, float]:
    """Among labelled items: how often the nearest neighbour has the same label, and how often by chance."""
    from scipy.spatial import KDTree

    labelled = np.array([not (label is None or label != label) for label in labels.tolist()])  # noqa: PLR0124 - NaN
    places, labels = places[labelled], labels[labelled]
    if len(labels) < 2:
        return {"same label": np.nan, "by chance": np.nan}
    nearest = np.asarray(KDTree(places).query(places, k=2)[1])
    own = np.arange(len(places))
    other = np.where(nearest[:, 0] == own, nearest[:, 1], nearest[:, 0])
    _, sizes = np.unique(labels.astype(str), return_counts=True)
    chance = float((sizes * (sizes - 1)).sum()) / (len(labels) * (len(labels) - 1))
    return {"same label": float((labels[other] == labels).mean()), "by chance": chance}
