"""Parts and manifest in a folder, which appears whole or not at all."""

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
    """Write all parts and manifest.json; several splits go to fold-1, fold-2 and so on.

    Args:
        made: a split of a table, or several.
        folder: a folder that is not there yet, or is empty.
        ending: .parquet, .csv, .tsv or .inter.
        rows: a table of as many rows that the parts are taken from instead, say the same with its text as it
            was in a file.

    Returns:
        The manifests, with the SHA-256 of each file in them.
    """
    target = Path(folder).absolute()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise FileError(f"{folder} is there already.", hint="Name a new or an empty folder.")
    if not target.parent.is_dir():
        raise FileError(f"there is no folder {target.parent}.", hint="Make it first.")
    several = [made] if isinstance(made, Split) else list(made)
    beside = target.with_name(f".{target.name}.{secrets.token_hex(6)}.part")
    try:
        beside.mkdir()
        manifests = [
            _saved(each, rows, beside / f"fold-{at}" if len(several) > 1 else beside, ending)
            for at, each in enumerate(several, 1)
        ]
        if target.exists():
            target.rmdir()
        beside.rename(target)
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(
            f"{folder} could not be written: {error.strerror or error}.",
            hint="Nothing was changed. Check the free space and the folder's permissions.",
        ) from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return manifests


def _saved(split: Split, rows: Any, folder: Path, ending: str) -> dict[str, Any]:
    folder.mkdir(exist_ok=True)
    files = {}
    for name in [*split.names, *(["excluded"] if split.reasons else [])]:
        target = folder / f"{name}{ending}"
        part = getattr(split, name) if rows is None else _taken(rows, split.mask(name))
        write_table(target, _explained(part, split.reason_of_row) if name == "excluded" else part)
        files[target.name] = hashlib.sha256(target.read_bytes()).hexdigest()
    manifest = {**split.manifest, "files": files}
    write_text(folder / "manifest.json", to_json(manifest))
    return manifest


def _taken(rows: Any, mask: Any) -> Any:
    frame = as_frame(rows)
    if frame is None or len(frame) != len(mask):
        raise FileError(f"rows= is no table of {len(mask):,} rows.", hint="Pass the table that was split.")
    return FrameTable(frame, None).take(mask)


def _explained(part: Any, reasons: Any) -> Any:
    """The excluded rows with the reason of each in a column of its own."""
    frame = as_frame(part)
    if frame is None:
        raise FileError(f"{type(part).__name__} is no table.", hint="Save splits of tables.")
    return frame.to_pandas().assign(excluded_because=np.asarray(reasons, dtype=object))
