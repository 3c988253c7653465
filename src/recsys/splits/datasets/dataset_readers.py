"""Readers of the formats of published data sets: MovieLens, Amazon, RecBole, and any other table.

Columns are named as in the header of the file; in a format without a header they are user_id, item_id, rating
and timestamp.
"""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, TypedDict, Unpack

import numpy as np

from recsys.errors import ColumnError, FileError, MissingFileError, UnknownNameError
from recsys.inputs.files.formats import UNPACKED_RATIO, FileContent, is_glob, is_unpacked_too_large
from recsys.inputs.files.reader import detect_format, read_table
from recsys.inputs.files.split_text import RATING_COLUMNS
from recsys.inputs.ids import IdKind

# The MD5 sums that GroupLens publishes with its archives.
ARCHIVES = {
    "ml-100k.zip": "0e33842e24a9c977be4e0107933c0723",
    "ml-1m.zip": "c4d9eecfca2ab87c1945afe126590906",
    "ml-10m.zip": "ce571fd55effeba0271552578f2648bd",
    "ml-20m.zip": "cd245b17a1ae2cc31bb14903e1204af3",
    "ml-25m.zip": "6b51fb2759a8657d3bfcbfc42b592ada",
}
DOWNLOAD_HINTS = {
    ("ml-", "movielens"): "MovieLens is at https://grouplens.org/datasets/movielens/; "
    "a .zip need not be unpacked.",
    ("amazon", "ratings_"): "Amazon's ratings are at https://cseweb.ucsd.edu/~jmcauley/datasets.html.",
    (".inter", "recbole"): "RecBole's data sets are at https://recbole.io/dataset_list.html.",
}
_MOVIELENS_FILES = ("u.data", "ratings.dat", "ratings.csv")  # 100K; 1M and 10M; 20M, 25M and latest
_GENRES = (
    "unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama",
    "Fantasy", "Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War", "Western",
)  # fmt: skip
_U_ITEM = ("item_id", "title", "release_date", "video_release_date", "url", *_GENRES)
_U_USER = ("user_id", "age", "gender", "occupation", "zip_code")
_MOVIES_DAT = ("item_id", "title", "genres")
_USERS_DAT = ("user_id", "gender", "age", "occupation", "zip_code")
_PUBLISHED = {
    "ml-100k": 100_000,
    "ml-1m": 1_000_209,
    "ml-10m": 10_000_054,
    "ml-20m": 20_000_263,
    "ml-25m": 25_000_095,
}
_ORDERS = {"user_first": RATING_COLUMNS, "item_first": ("item_id", "user_id", "rating", "timestamp")}
_ASIN_LENGTH = 10
_INTERACTIONS = ("interactions.parquet", "interactions.csv", "interactions.tsv", "ratings.parquet")
_SIDE_TABLES = {
    "items": ("items.parquet", "items.csv", "movies.parquet", "movies.csv"),
    "users": ("users.parquet", "users.csv"),
}


@dataclass(frozen=True, eq=False)
class Dataset:
    """Interactions, and the tables of items and users if the data has them; all pandas.

    `roles` has the column of `interactions` that is the user, item, grade and time; `notes` has what the
    reader found: the format, the checksum of the archive, the number of rows.
    """

    name: str
    interactions: Any
    items: Any = None
    users: Any = None
    roles: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        n_users, n_items = (self.interactions[self.roles[role]].nunique() for role in ("user", "item"))
        tables = [name for name in ("items", "users") if getattr(self, name) is not None]
        published = self.notes.get("published_rows", len(self.interactions))
        published_note = "" if published == len(self.interactions) else f" ({published:,} were published)"
        rows = f"{len(self.interactions):,} rows{published_note}"
        facts = [rows, f"{n_users:,} users", f"{n_items:,} items"]
        facts += [f"with tables of {' and '.join(tables)}"] if tables else []
        return f"Dataset({self.name}: {', '.join(facts)})"


class Folder:
    """The files of a data set, in a folder or in a zip archive; nothing is unpacked to disk."""

    def __init__(self, path: Any) -> None:
        self.path = Path(path)
        self.notes: dict[str, Any] = {}
        self._archive: zipfile.ZipFile | None = None
        if self.path.is_dir():
            self._names = {file.name: str(file) for file in sorted(self.path.iterdir()) if file.is_file()}
        elif self.path.is_file() and self.path.suffix.lower() == ".zip":
            self._archive = self._open_archive()
            parts = [(PurePosixPath(name), name) for name in sorted(self._archive.namelist())]
            self._names = {place.name: name for place, name in parts if len(place.parts) <= 2 and place.name}
        elif self.path.is_file():
            self._names = {self.path.name: str(self.path)}
        else:
            raise MissingFileError(
                f"there is no file or folder {self.path}.", hint=_where_to_get(self.path.name)
            )

    @property
    def name(self) -> str:
        """The name of the data set."""
        return self.path.stem if self.path.suffix else self.path.name

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def ending(self, *endings: str) -> list[str]:
        """Return the files whose names end with one of `endings`."""
        return [name for name in self._names if name.lower().endswith(endings)]

    def source(self, name: str) -> FileContent:
        """Return the content of one of the files."""
        if self._archive is None:
            return FileContent(self._names[name], Path(self._names[name]))
        size = self._archive.getinfo(self._names[name]).file_size
        if is_unpacked_too_large(size, self.path.stat().st_size):
            raise FileError(
                f"{name} in {self.path} unpacks to over {UNPACKED_RATIO} times its size.",
                hint="Unpack it yourself first.",
            )
        try:
            data = self._archive.read(self._names[name])
        except Exception as error:  # of many types where the archive is damaged
            raise FileError(
                f"{name} in {self.path} is damaged ({error}).", hint="Fetch the archive again."
            ) from error
        source = FileContent(f"{self.path}:{name}", None)
        source.__dict__["data"] = data  # the value of the cached property
        return source

    def _open_archive(self) -> zipfile.ZipFile:
        data = self.path.read_bytes()
        published = ARCHIVES.get(self.path.name.lower())
        actual = hashlib.md5(data, usedforsecurity=False).hexdigest()
        if published is not None and actual != published:
            raise FileError(
                f"{self.path} is damaged, or not as published: its MD5 is {actual}, expected {published}.",
                hint=_where_to_get(self.path.name),
            )
        self.notes["md5"] = f"{actual}, as published" if published else f"{actual}, no published sum is known"
        try:
            return zipfile.ZipFile(io.BytesIO(data))
        except Exception as error:  # of many types where the archive is damaged
            raise FileError(f"{self.path} is not a zip archive ({error}).", hint="Fetch it again.") from error


class TableOptions(TypedDict, total=False):
    """The options of `table`, which `read` takes too."""

    columns: Mapping[str, str] | None
    ids: IdKind | None
    format: str | None
    encoding: str


def movielens(path: str | os.PathLike[str]) -> Dataset:
    """Return a MovieLens folder, its .zip archive (whose checksum is verified) or its ratings file.

    Interactions have the columns user_id, item_id, rating, timestamp (userId, movieId … in the CSV editions).
    Items and users are read too if their files exist.
    """
    folder = Folder(path)
    name = next((name for name in _MOVIELENS_FILES if name in folder), None)
    if name is None:
        raise FileError(
            f"{path} holds none of u.data, ratings.dat and ratings.csv, so it is not MovieLens.",
            hint=_where_to_get("ml-"),
        )
    frame, roles = read_table(folder.source(name), format="csv" if name == "ratings.csv" else "ratings")
    _require(roles, frame, name, "user", "item", "grade")
    _check_scale(frame, roles["grade"], (1.0 if name == "u.data" else 0.5, 5.0), name)
    items = users = None
    if name == "u.data":
        items = _read_headerless(folder, "u.item", _U_ITEM)
        if items is not None:
            flags = items[list(_GENRES)].to_numpy() == "1"
            genres = np.array([np.array(_GENRES, dtype=object)[row] for row in flags], dtype=object)
            items = items.drop(columns=list(_GENRES)).assign(genres=["|".join(row) for row in genres])
        users = _read_headerless(folder, "u.user", _U_USER)
        if users is not None:
            users = users.assign(age=users["age"].astype(np.int64))
    elif name == "ratings.dat":
        items = _read_headerless(folder, "movies.dat", _MOVIES_DAT)
        users = _read_headerless(folder, "users.dat", _USERS_DAT)
    elif "movies.csv" in folder:
        items, _ = read_table(folder.source("movies.csv"), format="csv")
    notes = {"format": name, **folder.notes, "rows": len(frame)}
    if folder.name.lower() in _PUBLISHED:
        notes["published_rows"] = _PUBLISHED[folder.name.lower()]
    return Dataset(folder.name, frame, items, users, roles, notes)


def _read_headerless(folder: Folder, name: str, header: tuple[str, ...]) -> Any:
    """Read a table next to the ratings: cells between | or ::, no header, UTF-8 or (old ones) Latin-1."""
    if name not in folder:
        return None
    try:
        return read_table(folder.source(name), format="tsv", header=header)[0]
    except FileError as error:
        if "is not utf-8" not in str(error):
            raise
    return read_table(folder.source(name), format="tsv", header=header, encoding="latin-1")[0]


def amazon(path: str | os.PathLike[str], *, order: str | None = None) -> Dataset:
    """Amazon reviews, "ratings only": user, item, rating and time without a header, gzipped or not.

    The edition of 2014 has the user first, those of 2018 and later the item. `order` is "user_first" or
    "item_first"; by default the content decides.
    """
    if order is not None and order not in _ORDERS:
        raise UnknownNameError("value of order", order, _ORDERS)
    folder = Folder(path)
    source = folder.source(folder.path.name)
    file_format = detect_format(source)
    if file_format not in ("ratings", "csv"):
        raise FileError(
            f"{path} is {file_format}, not user,item,rating,time.", hint="Use recsys.datasets.table(path)."
        )
    frame, roles = read_table(source, format="ratings", ids="str", header=_ORDERS[order or "user_first"])
    if order is None:
        # An item has ten characters, a user (nearly always) more.
        first, second = (
            np.array([len(cell) for cell in frame[column].to_numpy()[:10_000].tolist()])
            for column in ("user_id", "item_id")
        )
        if (first == _ASIN_LENGTH).all() and (second != _ASIN_LENGTH).mean() > 0.5:
            order = "item_first"
            frame = frame.rename(columns={"user_id": "item_id", "item_id": "user_id"})
    _check_scale(frame, roles["grade"], (1.0, 5.0), str(path))
    notes = {"format": "amazon", "order": order or "user_first", "rows": len(frame)}
    return Dataset(folder.name, frame, None, None, roles, notes)


def recbole(path: str | os.PathLike[str]) -> Dataset:
    """Read RecBole's atomic files: a folder with one .inter file (and .item, .user), or that file itself.

    Columns are converted to the type in their header cell (name:type), which is dropped: a token stays an id
    or text, a float becomes a number, a sequence stays text.
    """
    folder = Folder(path)
    inter_files = folder.ending(".inter")
    if len(inter_files) != 1:
        raise FileError(
            f"{path} holds {len(inter_files)} .inter files, expected one.",
            hint="Name the file." if inter_files else _where_to_get(".inter"),
        )
    frame, roles = _read_typed_table(folder, inter_files[0])
    _require(roles, frame, inter_files[0], "user", "item")
    files = [folder.ending(ending)[:1] for ending in (".item", ".user")]
    items, users = (_read_typed_table(folder, file[0])[0] if file else None for file in files)
    return Dataset(folder.name, frame, items, users, roles, {"format": "inter", **folder.notes})


def _read_typed_table(folder: Folder, name: str) -> tuple[Any, dict[str, str]]:
    frame, roles = read_table(folder.source(name), format="inter")
    for column in frame.columns:
        kind = str(column).partition(":")[2]
        if kind == "float" and frame[column].dtype.kind not in "iuf":
            try:
                frame[column] = np.array([float(cell or "nan") for cell in frame[column]])
            except ValueError as error:
                raise FileError(
                    f"{name}: {column} holds a cell that is not a number ({error}).", hint="Correct the cell."
                ) from error
    names = {column: str(column).partition(":")[0] for column in frame.columns}
    if len(set(names.values())) < len(names):
        raise FileError(f"{name}: two columns differ only in their type.", hint="Rename one of them.")
    return frame.rename(columns=names), {role: names[column] for role, column in roles.items()}


def table(
    path: str | os.PathLike[str],
    *,
    columns: Mapping[str, str] | None = None,
    ids: IdKind | None = None,
    format: str | None = None,  # noqa: A002 - the word users expect
    encoding: str = "utf-8",
) -> Dataset:
    """Interactions from a CSV, TSV, Parquet, .inter or headerless ratings file, with all its columns.

    `path` may be a glob or a folder of such files, read as one table. `columns` maps roles to columns that
    are not recognised: {"user": "uid", "item": "sku", "time": "when"}. `ids` as in recsys.read_file; by
    default text is read as whole numbers if every id of the column is one.
    """
    name = Path(path).parent.name if is_glob(path) else Folder(path).name
    frame, roles = read_table(path, columns=columns, ids=ids, format=format, encoding=encoding)
    _require(roles, frame, str(path), "user", "item")
    return Dataset(name, frame, None, None, roles, {"rows": len(frame)})


def read(path: str | os.PathLike[str], **options: Unpack[TableOptions]) -> Dataset:
    """Return a data set of any known format; `options` are those of `table`.

    A MovieLens folder or archive, RecBole's atomic files, Amazon's ratings, a folder with
    interactions.parquet (or .csv), or one table, which may be a glob.
    """
    if is_glob(path):
        return table(path, **options)
    folder = Folder(path)
    if folder.path.is_file() and folder.path.suffix.lower() != ".zip":
        name = folder.path.name
        if name.endswith(".inter") and not options:
            return recbole(path)
        is_amazon = name.lower().removesuffix(".gz").endswith(".csv") and name.lower().startswith("ratings_")
        return amazon(path) if is_amazon and not options else table(path, **options)
    if any(name in folder for name in _MOVIELENS_FILES):
        return movielens(path)
    if folder.ending(".inter"):
        return recbole(path)
    interactions = next((name for name in _INTERACTIONS if name in folder), None)
    if interactions is None:
        raise FileError(
            f"{path} holds no data set of a known format.",
            hint=f"Expected one of {', '.join((*_MOVIELENS_FILES, *_INTERACTIONS))} or an .inter file.",
        )
    frame, roles = read_table(folder.source(interactions), **options)
    _require(roles, frame, interactions, "user", "item")
    side_tables = {
        kind: next((read_table(folder.source(name))[0] for name in names if name in folder), None)
        for kind, names in _SIDE_TABLES.items()
    }
    notes = {"rows": len(frame), **folder.notes}
    return Dataset(folder.name, frame, side_tables["items"], side_tables["users"], roles, notes)


def _where_to_get(name: str) -> str:
    """Return a sentence on where to get a data set of that name."""
    lowered = name.lower()
    for marks, hint in DOWNLOAD_HINTS.items():
        if lowered.startswith(marks) or lowered.endswith(marks):
            return hint
    return "Check the path; nothing is downloaded."


def _require(roles: Mapping[str, str], frame: Any, name: str, *needed: str) -> None:
    """Raise an error if no column has one of the needed roles."""
    for role in needed:
        if role not in roles:
            raise ColumnError(
                f"{name}: no column was recognised as the {role}.",
                column=role,
                hint=f"Name it: columns={{{role!r}: ...}}. Columns: {', '.join(map(str, frame.columns))}.",
            )


def _check_scale(frame: Any, column: str, scale: tuple[float, float], name: str) -> None:
    """Raise an error if a rating is outside the scale of its format."""
    values = frame[column].to_numpy()
    is_outside = ~((values >= scale[0]) & (values <= scale[1]))
    if is_outside.any():
        row = int(np.argmax(is_outside))
        raise FileError(
            f"{name}, row {row + 1}: the rating {values[row]:g} is outside {scale[0]:g} to {scale[1]:g} "
            f"({int(is_outside.sum()):,} such rows).",
            hint="Check the file, or read it as a plain table: recsys.datasets.table(path).",
        )
