"""MovieLens in its three formats: u.data (100K), ratings.dat (1M, 10M), ratings.csv (20M, 25M, latest)."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from recsys.errors import FileError
from recsys.inputs.files.whole_tables import read_table
from recsys.splits.datasets.dataset import Dataset, Folder, check_scale, require, where_to_get

_GENRES = (
    "unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama",
    "Fantasy", "Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War", "Western",
)  # fmt: skip
_U_ITEM = ("item_id", "title", "release_date", "video_release_date", "url", *_GENRES)
_U_USER = ("user_id", "age", "gender", "occupation", "zip_code")
_MOVIES_DAT, _USERS_DAT = (
    ("item_id", "title", "genres"),
    ("user_id", "gender", "age", "occupation", "zip_code"),
)
_PUBLISHED = {
    "ml-100k": 100_000,
    "ml-1m": 1_000_209,
    "ml-10m": 10_000_054,
    "ml-20m": 20_000_263,
    "ml-25m": 25_000_095,
}
_WHOLE_STARS, _HALF_STARS = (1.0, 5.0), (0.5, 5.0)


def movielens(path: str | os.PathLike[str]) -> Dataset:
    """A MovieLens folder, its .zip archive (whose checksum is verified) or its ratings file.

    Interactions have the columns user_id, item_id, rating, timestamp (userId, movieId … in the CSV editions).
    Items and users are read too if their files exist.
    """
    folder = Folder(path)
    for name, read in _READERS.items():
        if name in folder:
            dataset = read(folder)
            n_published = _PUBLISHED.get(folder.name.lower())
            rows = {"rows": len(dataset.interactions)} | (
                {"published_rows": n_published} if n_published else {}
            )
            return Dataset(
                dataset.name, dataset.interactions, dataset.items, dataset.users, dataset.roles,
                {**dataset.notes, **folder.notes, **rows},
            )  # fmt: skip
    raise FileError(
        f"{path} holds none of u.data, ratings.dat and ratings.csv, so it is not MovieLens.",
        hint=where_to_get("ml-"),
    )


def _read_u_data(folder: Folder) -> Dataset:
    frame, roles = read_table(folder.source("u.data"), format="ratings")
    _check_ratings(frame, roles, _WHOLE_STARS, "u.data")
    items = _read_side_table(folder, "u.item", _U_ITEM)
    if items is not None:
        flags = items[list(_GENRES)].to_numpy() == "1"
        genres = np.array([np.array(_GENRES, dtype=object)[row] for row in flags], dtype=object)
        items = items.drop(columns=list(_GENRES)).assign(genres=["|".join(row) for row in genres])
    users = _read_side_table(folder, "u.user", _U_USER)
    if users is not None:
        users = users.assign(age=users["age"].astype(np.int64))
    return Dataset(folder.name, frame, items, users, roles, {"format": "u.data"})


def _read_ratings_dat(folder: Folder) -> Dataset:
    frame, roles = read_table(folder.source("ratings.dat"), format="ratings")
    _check_ratings(frame, roles, _HALF_STARS, "ratings.dat")
    items = _read_side_table(folder, "movies.dat", _MOVIES_DAT)
    users = _read_side_table(folder, "users.dat", _USERS_DAT)
    return Dataset(folder.name, frame, items, users, roles, {"format": "ratings.dat"})


def _read_ratings_csv(folder: Folder) -> Dataset:
    frame, roles = read_table(folder.source("ratings.csv"), format="csv")
    _check_ratings(frame, roles, _HALF_STARS, "ratings.csv")
    items = None
    if "movies.csv" in folder:
        items, _ = read_table(folder.source("movies.csv"), format="csv")
    return Dataset(folder.name, frame, items, None, roles, {"format": "ratings.csv"})


def _check_ratings(frame: Any, roles: dict[str, str], scale: tuple[float, float], name: str) -> None:
    require(roles, frame, name, "user", "item", "grade")
    check_scale(frame, roles["grade"], scale, name)


def _read_side_table(folder: Folder, name: str, header: tuple[str, ...]) -> Any:
    """A table beside the ratings: separated by | or ::, without a header, in UTF-8 or (old ones) Latin-1."""
    if name not in folder:
        return None
    try:
        return read_table(folder.source(name), format="tsv", header=header)[0]
    except FileError as error:
        if "is not utf-8" not in str(error):
            raise
    return read_table(folder.source(name), format="tsv", header=header, encoding="latin-1")[0]


_READERS = {"u.data": _read_u_data, "ratings.dat": _read_ratings_dat, "ratings.csv": _read_ratings_csv}
