"""Cold items: which items have few interactions, and what share of them each list shows."""

from __future__ import annotations

from typing import Any

import numpy as np

from recsys.inputs.frames import read_lists
from recsys.models.baselines import item_scores_of
from recsys.types import Array, Float


def _cold_and_all_ids(item_counts: Any, below: float) -> tuple[Array, Array]:
    """Ids of the cold items, and of all items."""
    ids, counts = item_scores_of(item_counts)
    all_ids = np.arange(len(counts)) if ids is None else ids
    return all_ids[counts < below], all_ids


def cold_items(item_counts: Any, below: float = 5) -> dict[str, Any]:
    """How many items have fewer than `below` interactions, and which.

    >>> cold_items([9, 0, 4], below=5)["cold_items"]
    [1, 2]
    """
    cold, all_ids = _cold_and_all_ids(item_counts, below)
    return {
        "cold_threshold": below,
        "total_items": len(all_ids),
        "num_cold_items": len(cold),
        "num_warm_items": len(all_ids) - len(cold),
        "cold_percentage": 100.0 * len(cold) / max(len(all_ids), 1),
        "cold_items": cold.tolist(),
    }


def cold_shares(lists: Any, item_counts: Any, below: float = 5) -> Float:
    """The share of all cold items that each list holds, in the order of the users' ids.

    >>> cold_shares({0: [1, 2], 1: [0]}, [9, 0, 4], below=5).tolist()
    [1.0, 0.0]
    """
    cold, _ = _cold_and_all_ids(item_counts, below)
    rows = read_lists(lists)
    cold_ids = set(cold.tolist())
    is_cold = np.array([item in cold_ids for item in rows.items.values.tolist()], dtype=bool)[rows.codes]
    case = np.repeat(np.arange(len(rows.cases)), rows.sizes).astype(np.int64)
    pairs = np.unique(case[is_cold] * max(len(rows.items), 1) + rows.codes[is_cold])
    n_cold_shown = np.bincount(pairs // max(len(rows.items), 1), minlength=len(rows.cases))
    return np.asarray(n_cold_shown / max(len(cold), 1))
