"""MovieLens 1M as the NCF paper split it, in one small file that NumPy can read.

Training pairs are all pairs except the test pairs; the 99 negatives of each test pair are the authors' own.
For stopping and tuning, each user's last training item (the second-to-last of all) is held out with 99
negatives sampled from the items the user has no training pair with. The test pairs are not used for this.

    python examples/ncf/prepare.py ml1m.npz
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from recsys.models import Pairs

DATA = Path(os.environ.get("RECSYS_SHARED", "../shared")) / "data" / "ml-1m"


def prepare_arrays(folder: Path, *, seed: int = 0) -> dict[str, np.ndarray]:
    """The arrays that training and evaluation read, by name; users and items are numbered from 0."""
    rows = pq.read_table(folder / "interactions.parquet")
    test = pq.read_table(folder / "ncf_test.parquet")
    stored = np.load(folder / "ncf_negatives.npz")
    movies = stored["ncf_item_to_movie"]
    item_row = np.full(int(movies.max()) + 1, -1)
    item_row[movies] = np.arange(len(movies))
    users = rows["user"].to_numpy().astype(np.int64) - 1
    items = item_row[rows["item"].to_numpy()]
    positives = test["ncf_item"].to_numpy().astype(np.int64)
    is_test = items == positives[users]
    whole = Pairs.of(
        users[~is_test],
        items[~is_test],
        n_users=len(positives),
        n_items=len(movies),
        order=rows["position"].to_numpy()[~is_test].astype(np.int64),
    )
    rest, last = whole.without_last()
    return {
        "users": whole.users.astype(np.int32),
        "items": whole.items.astype(np.int32),
        "order": whole.order.astype(np.int32),
        "held_users": last.users.astype(np.int32),
        "held_items": last.items.astype(np.int32),
        "held_negatives": whole.unseen(last.users, 99, seed=seed).astype(np.int32),
        "test_users": np.arange(len(positives), dtype=np.int32),
        "test_items": positives.astype(np.int32),
        "test_negatives": stored["negatives"].astype(np.int32),
        "n_users_items": np.array([rest.n_users, rest.n_items]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", type=Path)
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    arrays = prepare_arrays(options.data)
    np.savez_compressed(options.target, **arrays)
    print(f"{options.target}: " + ", ".join(f"{name} {value.shape}" for name, value in arrays.items()))


if __name__ == "__main__":
    main()
