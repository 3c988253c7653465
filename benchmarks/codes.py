"""Lists of codes judged as items: MovieLens 100K, codes of residual k-means over vectors of the items' texts.

A pure SVD ranks the items of each user; a code is ranked by the best of its items that the user had not. The
last item of a user is the truth.

    python benchmarks/codes.py --data FOLDER    # with interactions.parquet and item_text_embeddings.npz
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.cluster.vq import kmeans2, vq
from scipy.sparse import csr_array
from scipy.sparse.linalg import svds

import recsys

LEVELS, DEPTH = (64, 16, 16), 10
METRIC = "hit@10"


def codes_of(vectors: np.ndarray, n_levels: int) -> list[tuple[int, ...]]:
    """The code of each item: the cluster of its vector, then of what is left of it, and so on."""
    parts, left = [], vectors.astype(np.float64)
    for n in LEVELS[:n_levels]:
        centres, _ = kmeans2(left, n, minit="++", seed=0)
        parts.append(vq(left, centres)[0])
        left = left - centres[parts[-1]]
    return list(zip(*(part.tolist() for part in parts), strict=True))


def worlds(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame, np.ndarray, np.ndarray, np.ndarray]:
    """Train and test rows, scores of all users and items, and the ids and vectors of the items."""
    events = pd.read_parquet(folder / "interactions.parquet").sort_values(["user", "timestamp", "item"])
    is_last = ~events.duplicated("user", keep="last")
    train, test = events[~is_last], events[is_last]
    stored = np.load(folder / "item_text_embeddings.npz")
    items, vectors = stored["item"], stored["embedding"]
    row = np.searchsorted(np.unique(events["user"]), train["user"])
    column = pd.Series(np.arange(len(items)), index=items).reindex(train["item"]).to_numpy()
    n_users = events["user"].nunique()
    matrix = csr_array((np.ones(len(train)), (row, column)), shape=(n_users, len(items)))
    u: Any
    v: Any
    u, s, v = svds(matrix, k=40, random_state=0)
    scores = (u * s) @ v
    scores[row, column] = -np.inf
    return train, test, scores, items, vectors


def main(folder: Path) -> None:
    """Print the table."""
    warnings.simplefilter("ignore", recsys.errors.TieWarning)
    train, test, scores, items, vectors = worlds(folder)
    users = np.unique(train["user"])
    truth = test[["user", "item"]]
    best = np.argsort(-scores, axis=1, kind="stable")[:, :DEPTH]
    of_items = recsys.evaluate(dict(zip(users.tolist(), items[best].tolist(), strict=True)), truth, [METRIC])
    print("| codes | as codes | expected | best | worst | given |\n|---|---|---|---|---|---|")
    for n_levels in range(1, len(LEVELS) + 1):
        codes = codes_of(vectors, n_levels)
        names = sorted(set(codes))
        at = np.array([names.index(code) for code in codes])
        order = np.argsort(at, kind="stable")
        starts = np.flatnonzero(np.r_[True, np.diff(at[order]) > 0])
        by_code = np.maximum.reduceat(scores[:, order], starts, axis=1)
        top = np.argsort(-by_code, axis=1, kind="stable")[:, :DEPTH]
        lists = {user: [names[code] for code in row] for user, row in zip(users.tolist(), top, strict=True)}
        table = pd.DataFrame({"item": items, "code": codes})
        seen = train[["user", "item"]]
        result = recsys.evaluate(
            lists, truth, [METRIC], items_of=table, seen=seen, conventions={"ties": "expected"}
        )
        rules = ("expected", "best", "worst", "given")
        values = [result.under({"ties": rule})[METRIC] for rule in rules]
        cells = [f"{value:.4f}" for value in [result.notes["of_entries"][METRIC], *values]]
        print(f"| {len(names):,} | " + " | ".join(cells) + " |")
    print(f"| {len(items):,} items | | {of_items[METRIC]:.4f} | | | |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    main(parser.parse_args().data)
