"""The result of a reader, and where to get published data sets.

Columns are named as in the header of the file; in a format without a header they are user_id, item_id, rating
and timestamp.
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

# The MD5 sums that GroupLens publishes with its archives.
ARCHIVES = {
    "ml-100k.zip": "0e33842e24a9c977be4e0107933c0723",
    "ml-1m.zip": "c4d9eecfca2ab87c1945afe126590906",
    "ml-10m.zip": "ce571fd55effeba0271552578f2648bd",
    "ml-20m.zip": "cd245b17a1ae2cc31bb14903e1204af3",
    "ml-25m.zip": "6b51fb2759a8657d3bfcbfc42b592ada",
}
DOWNLOAD_HINTS = {
    (
        "ml-",
        "movielens",
    ): "MovieLens is at https://grouplens.org/datasets/movielens/; a .zip need not be unpacked.",
    ("amazon", "ratings_"): "Amazon's ratings are at https://cseweb.ucsd.edu/~jmcauley/datasets.html.",
    (".inter", "recbole"): "RecBole's data sets are at https://recbole.io/dataset_list.html.",
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
        facts = [
            f"{len(self.interactions):,} rows{published_note}",
            f"{n_users:,} users",
            f"{n_items:,} items",
        ]
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
            raise FileError(f"there is no file or folder {self.path}.", hint=where_to_get(self.path.name))

    @property
    def name(self) -> str:
        """The name of the data set."""
        return self.path.stem if self.path.suffix else self.path.name

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def ending(self, *endings: str) -> list[str]:
        """The files whose names end with one of `endings`."""
        return [name for name in self._names if name.lower().endswith(endings)]

    def source(self, name: str) -> FileContent:
        """The content of one of the files."""
        if self._archive is None:
            return FileContent(self._names[name], Path(self._names[name]))
        try:
            data = self._archive.read(self._names[name])
        except (zipfile.BadZipFile, RuntimeError, OSError) as error:
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
                hint=where_to_get(self.path.name),
            )
        self.notes["md5"] = f"{actual}, as published" if published else f"{actual}, no published sum is known"
        try:
            return zipfile.ZipFile(io.BytesIO(data))
        except zipfile.BadZipFile as error:
            raise FileError(f"{self.path} is no zip archive ({error}).", hint="Fetch it again.") from error


def where_to_get(name: str) -> str:
    """A sentence on where to get a data set of that name."""
    lowered = name.lower()
    hint = next(
        (
            hint_text
            for marks, hint_text in DOWNLOAD_HINTS.items()
            if lowered.startswith(marks) or lowered.endswith(marks)
        ),
        None,
    )
    return hint or "Check the path; nothing is downloaded."


def require(roles: Mapping[str, str], frame: Any, name: str, *needed: str) -> None:
    """An error if no column has one of the needed roles."""
    for role in needed:
        if role not in roles:
            raise ColumnError(
                f"{name}: no column was recognised as the {role}.",
                column=role,
                hint=f"Name it: columns={{{role!r}: ...}}. Columns: {', '.join(map(str, frame.columns))}.",
            )


def check_scale(frame: Any, column: str, scale: tuple[float, float], name: str) -> None:
    """An error if a rating lies outside the scale of its format."""
    values = frame[column].to_numpy()
    is_outside = ~((values >= scale[0]) & (values <= scale[1]))
    if is_outside.any():
        row = int(np.argmax(is_outside))
        raise FileError(
            f"{name}, row {row + 1}: the rating {values[row]:g} lies outside {scale[0]:g} to {scale[1]:g} "
            f"({int(is_outside.sum()):,} such rows).",
            hint="Check the file, or read it as a plain table: recsys.data.table(path).",
        )
