"""The tables and factors that benchmarks/scale.py measures on: made once, kept under build/scale/.

Lists and truth are dealt to files apart, so no file holds all of a user; rows are shuffled within files up to
two million users and grouped by user above, unless told.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "build" / "scale"
K = 10
N_ITEMS = 200_000
SHUFFLED_UP_TO = 2_000_000


def tables(n_users: int, ids: str = "int", order: str | None = None) -> Path:
    """The folder of lists/ and truth/ for so many users; written where it is not there yet."""
    order = order or ("shuffled" if n_users <= SHUFFLED_UP_TO else "grouped")
    folder = DATA / f"{n_users}-{ids}-{order}"
    if folder.is_dir():
        return folder
    rng = np.random.default_rng(0)
    half_done = folder.with_suffix(".half-done")
    shutil.rmtree(half_done, ignore_errors=True)
    n_files = max(4, n_users // 250_000)
    # One permutation for the lists, another for the truth: a user's rows are in files that do not match.
    for what, rows in (("lists", list_rows), ("truth", truth_rows)):
        (half_done / what).mkdir(parents=True)
        for n, users in enumerate(np.array_split(rng.permutation(n_users), n_files)):
            write_part(half_done / what / f"part-{n:04d}.parquet", rows(users, rng), ids, order, rng)
    half_done.rename(folder)
    return folder


def liked(users: np.ndarray) -> np.ndarray:
    """Six items a user may like, the same whenever the user comes up; some of them may be the same."""
    mixed = (users[:, None] * 6 + np.arange(6)).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    return ((mixed >> np.uint64(11)).astype(np.float64) / 2**53) ** 3 * N_ITEMS // 1


def list_rows(users: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Ten distinct items a user, popular ones more often, one in seven of them liked."""
    own = liked(users)
    items = rng.random((len(users), K)) ** 3 * N_ITEMS // 1
    mine = rng.random(items.shape) < 0.15
    items[mine] = own[np.nonzero(mine)[0], rng.integers(0, 6, int(mine.sum()))]
    repeating = np.arange(len(users))
    while len(repeating):
        by_item = np.argsort(items[repeating], axis=1, kind="stable")
        again = np.diff(np.take_along_axis(items[repeating], by_item, 1), axis=1) == 0
        row, place = np.nonzero(again)
        items[repeating[row], by_item[row, place + 1]] = rng.integers(0, N_ITEMS, len(row))
        repeating = repeating[np.unique(row)]
    ranks = np.tile(np.arange(1, K + 1, dtype=np.int32), len(users))
    return {"user": np.repeat(users, K), "item": items.ravel().astype(np.int64), "rank": ranks}


def truth_rows(users: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Five of six liked items; one user in a thousand has no truth."""
    users = users[rng.random(len(users)) < 0.999]
    own = np.sort(liked(users), axis=1)
    kept = rng.random(own.shape) < 5 / 6
    kept[:, 1:] &= own[:, 1:] != own[:, :-1]
    return {"user": np.repeat(users, 6)[kept.ravel()], "item": own[kept].astype(np.int64)}


def write_part(
    path: Path, rows: dict[str, np.ndarray], ids: str, order: str, rng: np.random.Generator
) -> None:
    if order == "shuffled":
        shuffle = rng.permutation(len(rows["user"]))
        rows = {name: column[shuffle] for name, column in rows.items()}
    table = pa.table(rows)
    if ids == "text":
        for at, name in enumerate(("user", "item")):
            digits = pc.utf8_lpad(table[name].cast(pa.string()), 10, padding="0")
            table = table.set_column(at, name, pc.binary_join_element_wise(name, digits, "-"))
    pq.write_table(table, path, row_group_size=1 << 20)


def factors(n_users: int, n_items: int = 100_000, n_factors: int = 64) -> Path:
    """The folder of users.npy, items.npy, users.parquet and truth.parquet; written where it is not there."""
    folder = DATA / f"factors-{n_users}-{n_items}-{n_factors}"
    if folder.is_dir():
        return folder
    rng = np.random.default_rng(0)
    half_done = folder.with_suffix(".half-done")
    shutil.rmtree(half_done, ignore_errors=True)
    half_done.mkdir(parents=True)
    spectrum = (1.0 / np.sqrt(1 + np.arange(n_factors))).astype(np.float32)
    users = rng.standard_normal((n_users, n_factors), dtype=np.float32) * spectrum
    items = rng.standard_normal((n_items, n_factors), dtype=np.float32) * spectrum
    np.save(half_done / "users.npy", users)
    np.save(half_done / "items.npy", items)
    vectors = pa.ListArray.from_arrays(np.arange(0, users.size + 1, n_factors, dtype=np.int32), users.ravel())
    table = pa.table({"user": np.arange(n_users), "factors": vectors})
    pq.write_table(table, half_done / "users.parquet", row_group_size=1 << 16)
    truth = np.unique(np.repeat(np.arange(n_users), 5) * n_items + rng.integers(0, n_items, 5 * n_users))
    pq.write_table(pa.table({"user": truth // n_items, "item": truth % n_items}), half_done / "truth.parquet")
    half_done.rename(folder)
    return folder
