"""What a reader gives back, and where published data sets are found.

Column names are the library's own (user_id, item_id, rating, timestamp) where a format has none, the file's
where it has a header.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from recsys.errors import ColumnError, FileError
from recsys.inputs.files.content import FileContent

# GroupLens publishes these sums beside its archives.
ARCHIVES = {
    "ml-100k.zip": "0e33842e24a9c977be4e0107933c0723",
    "ml-1m.zip": "c4d9eecfca2ab87c1945afe126590906",
    "ml-10m.zip": "ce571fd55effeba0271552578f2648bd",
    "ml-20m.zip": "cd245b17a1ae2cc31bb14903e1204af3",
    "ml-25m.zip": "6b51fb2759a8657d3bfcbfc42b592ada",
}
PLACES = {
    (
        "ml-",
        "movielens",
    ): "MovieLens is at https://grouplens.org/datasets/movielens/; a .zip need not be unpacked.",
    ("amazon", "ratings_"): "Amazon's ratings are at https://cseweb.ucsd.edu/~jmcauley/datasets.html.",
    (".inter", "recbole"): "RecBole's data sets are at https://recbole.io/dataset_list.html.",
}


@dataclass(frozen=True, eq=False)
class Dataset:
    """Interactions, and items and users where the data has tables of them; all pandas.

    `roles` says which column of `interactions` is the user, item, grade and time; `notes` what was found out
    on the way: the format, the archive's checksum, how many rows there are.
    """

    name: str
    interactions: Any
    items: Any = None
    users: Any = None
    roles: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        n_users, n_items = (self.interactions[self.roles[role]].nunique() for role in ("user", "item"))
        beside = [name for name in ("items", "users") if getattr(self, name) is not None]
        published = self.notes.get("published_rows", len(self.interactions))
        missed = "" if published == len(self.interactions) else f" ({published:,} were published)"
        told = [f"{len(self.interactions):,} rows{missed}", f"{n_users:,} users", f"{n_items:,} items"]
        told += [f"with tables of {' and '.join(beside)}"] if beside else []
        return f"Dataset({self.name}: {', '.join(told)})"


class Folder:
    """The files of a data set, in a folder or in a zip archive; nothing is unpacked to disk."""

    def __init__(self, path: Any) -> None:
        self.path = Path(path)
        self.notes: dict[str, Any] = {}
        self._archive: zipfile.ZipFile | None = None
        if self.path.is_dir():
            self._names = {file.name: str(file) for file in sorted(self.path.iterdir()) if file.is_file()}
        elif self.path.is_file() and self.path.suffix.lower() == ".zip":
            self._archive = self._opened()
            parts = [(PurePosixPath(name), name) for name in sorted(self._archive.namelist())]
            self._names = {place.name: name for place, name in parts if len(place.parts) <= 2 and place.name}
        elif self.path.is_file():
            self._names = {self.path.name: str(self.path)}
        else:
            raise FileError(f"there is no file or folder {self.path}.", hint=where_to_get(self.path.name))

    @property
    def name(self) -> str:
        """What the data set is called."""
        return self.path.stem if self.path.suffix else self.path.name

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def ending(self, *endings: str) -> list[str]:
        """The files whose names end so."""
        return [name for name in self._names if name.lower().endswith(endings)]

    def source(self, name: str) -> FileContent:
        """One of the files."""
        if self._archive is None:
            return FileContent(self._names[name], Path(self._names[name]))
        try:
            data = self._archive.read(self._names[name])
        except (zipfile.BadZipFile, RuntimeError, OSError) as error:
            raise FileError(
                f"{name} in {self.path} is damaged ({error}).", hint="Fetch the archive again."
            ) from error
        source = FileContent(f"{self.path}:{name}", None)
        source.__dict__["data"] = data  # what the cached property would hold
        return source

    def _opened(self) -> zipfile.ZipFile:
        data = self.path.read_bytes()
        known = ARCHIVES.get(self.path.name.lower())
        found = hashlib.md5(data, usedforsecurity=False).hexdigest()
        if known is not None and found != known:
            raise FileError(
                f"{self.path} is damaged, or not what was published: its MD5 is {found}, expected {known}.",
                hint=where_to_get(self.path.name),
            )
        self.notes["md5"] = f"{found}, as published" if known else f"{found}, no published sum is known"
        try:
            return zipfile.ZipFile(io.BytesIO(data))
        except zipfile.BadZipFile as error:
            raise FileError(f"{self.path} is no zip archive ({error}).", hint="Fetch it again.") from error


def where_to_get(name: str) -> str:
    """A sentence on where a data set of that name is found."""
    low = name.lower()
    found = next(
        (words for mark, words in PLACES.items() if low.startswith(mark) or low.endswith(mark)), None
    )
    return found or "Check the path; nothing is downloaded."


def require(roles: Mapping[str, str], frame: Any, name: str, *needed: str) -> None:
    """A data set without users, items or what else its format promises is another table."""
    for role in needed:
        if role not in roles:
            raise ColumnError(
                f"{name}: no column was recognised as the {role}.",
                column=role,
                hint=f"Say which: columns={{{role!r}: ...}}. Columns: {', '.join(map(str, frame.columns))}.",
            )


def check_scale(frame: Any, column: str, scale: tuple[float, float], name: str) -> None:
    """Ratings a format cannot hold are a damaged file."""
    values = frame[column].to_numpy()
    wrong = ~((values >= scale[0]) & (values <= scale[1]))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise FileError(
            f"{name}, row {row + 1}: the rating {values[row]:g} lies outside {scale[0]:g} to {scale[1]:g} "
            f"({int(wrong.sum()):,} such rows).",
            hint="Check the file, or read it as a plain table: recsys.data.table(path).",
        )
