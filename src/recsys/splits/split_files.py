"""Write parts and manifest to a folder, completely or not at all."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from recsys.errors import FileError
from recsys.inputs.files import write_text
from recsys.inputs.files.whole_tables import write_table
from recsys.inputs.frames import as_frame
from recsys.splits.manifest import to_json
from recsys.splits.split_result import Split
from recsys.splits.split_table import FrameTable


def save(
    made: Split | Iterable[Split],
    folder: str | os.PathLike[str],
    *,
    ending: str = ".parquet",
    rows: Any = None,
) -> list[dict[str, Any]]:
    """Write all parts and manifest.json; several splits go to the folders fold-1, fold-2 and so on.

    Args:
        made: a split of a table, or several.
        folder: a folder that does not exist yet, or is empty.
        ending: .parquet, .csv, .tsv or .inter.
        rows: a table with as many rows from which the parts are taken instead, for example the same rows with
            the text of the original file.

    Returns:
        The manifests, each with the SHA-256 of its files.

    Raises:
        FileError: the folder exists or cannot be written, or the data is no table.
    """
    target = Path(folder).absolute()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise FileError(f"{folder} already exists.", hint="Name a new or an empty folder.")
    if not target.parent.is_dir():
        raise FileError(f"there is no folder {target.parent}.", hint="Make it first.")
    splits = [made] if isinstance(made, Split) else list(made)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}.part")
    try:
        temporary.mkdir()
        manifests = [
            _write_split(split, rows, temporary / f"fold-{at}" if len(splits) > 1 else temporary, ending)
            for at, split in enumerate(splits, 1)
        ]
        if target.exists():
            target.rmdir()
        temporary.rename(target)
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(
            f"{folder} could not be written: {error.strerror or error}.",
            hint="Nothing was changed. Check the free space and the folder's permissions.",
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return manifests


def _write_split(split: Split, rows: Any, folder: Path, ending: str) -> dict[str, Any]:
    """Write the parts and the manifest of one split; the excluded rows get a column with their reason."""
    folder.mkdir(exist_ok=True)
    source = None if rows is None else as_frame(rows)
    n_rows = split.counts["rows"]["input"]
    if rows is not None and (source is None or len(source) != n_rows):
        raise FileError(f"rows= is no table of {n_rows:,} rows.", hint="Pass the table that was split.")
    files = {}
    for name in [*split.names, *(["excluded"] if split.reasons else [])]:
        part = getattr(split, name) if source is None else FrameTable(source, None).take(split.mask(name))
        if name == "excluded":
            frame = as_frame(part)
            if frame is None:
                raise FileError(f"{type(part).__name__} is no table.", hint="Save splits of tables.")
            reasons = np.asarray(split.reason_of_row, dtype=object)
            part = frame.to_pandas().assign(excluded_because=reasons)
        target = folder / f"{name}{ending}"
        write_table(target, part)
        files[target.name] = hashlib.sha256(target.read_bytes()).hexdigest()
    manifest = {**split.manifest, "files": files}
    write_text(folder / "manifest.json", to_json(manifest))
    return manifest
