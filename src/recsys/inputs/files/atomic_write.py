"""Writing that leaves either the old file or the whole new one, never half of it.

The text goes to a sibling under another name, is flushed to the disk and renamed; on any error the sibling
is removed. A symbolic link is refused rather than followed.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

from recsys.errors import FileError


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write UTF-8 text; the file under `path` changes at once or not at all."""
    write_bytes(path, text.encode())


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Write bytes; the file under `path` changes at once or not at all."""
    target = Path(path)
    _check(target)
    sibling = target.with_name(f".{target.name[:100]}.{secrets.token_hex(6)}.part")
    try:
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o666
        _write(sibling, data, mode)
        sibling.replace(target)
        _flush_folder(target.parent)
    except OSError as error:
        raise FileError(
            f"{target} could not be written: {error.strerror or error}.",
            hint="Nothing was changed. Check the free space and the folder's permissions.",
        ) from error
    finally:
        with contextlib.suppress(OSError):
            sibling.unlink(missing_ok=True)


def put_new(made: Path, target: Path) -> bool:
    """Give a finished file its name, unless another has it: False then, whoever was first.

    A hard link is made or not made, also between machines; where there are none, the name is taken first.
    """
    try:
        target.hardlink_to(made)
    except FileExistsError:
        return False
    except OSError:
        try:
            target.touch(exist_ok=False)
        except FileExistsError:
            return False
        made.replace(target)
        return True
    made.unlink()
    return True


def _check(target: Path) -> None:
    if target.is_symlink():
        raise FileError(f"{target} is a symbolic link.", hint="Name the file it points to.")
    if target.exists() and not target.is_file():
        raise FileError(f"{target} is not a regular file.", hint="Name a file.")
    if not target.parent.is_dir():
        raise FileError(f"there is no folder {target.parent}.", hint="Make it first.")


def _write(path: Path, data: bytes, mode: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(path, flags, mode), "wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())


def _flush_folder(folder: Path) -> None:
    """Make the rename itself last; some file systems have no such call."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
