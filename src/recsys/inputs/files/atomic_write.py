"""Writing that leaves either the old file or the whole new one, never half of it.

The data goes to a sibling file, is flushed to the disk and renamed; on any error the sibling is removed.
Symbolic links are refused, not followed.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from recsys.errors import FileError


@contextlib.contextmanager
def write_errors_of(
    target: Path, hint: str = "Nothing was changed. Check the free space and the folder's permissions."
) -> Iterator[None]:
    """Errors of the system inside say that the target could not be written."""
    try:
        yield
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"{target} could not be written: {error.strerror or error}.", hint=hint) from error


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write UTF-8 text; the file at `path` changes at once or not at all."""
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise FileError(
            f"{path} could not be written: {error.object[error.start]!r} is half of a letter.",
            hint="Leave it out of names and titles.",
        ) from None
    write_bytes(path, data)


def write_bytes(path: str | os.PathLike[str], data: bytes | memoryview) -> None:
    """Write bytes; the file at `path` changes at once or not at all."""
    target = Path(path)
    if target.is_symlink():
        raise FileError(f"{target} is a symbolic link.", hint="Name the file it points to.")
    if target.exists() and not target.is_file():
        raise FileError(f"{target} is not a regular file.", hint="Name a file.")
    if not target.parent.is_dir():
        raise FileError(f"there is no folder {target.parent}.", hint="Make it first.")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    sibling = target.with_name(f".{target.name[:100]}.{secrets.token_hex(6)}.part")
    try:
        with write_errors_of(target):
            mode = target.stat().st_mode & 0o777 if target.exists() else 0o666
            with os.fdopen(os.open(sibling, flags, mode), "wb") as out:
                out.write(data)
                out.flush()
                os.fsync(out.fileno())
            sibling.replace(target)
            flush_folder(target.parent)
    finally:
        with contextlib.suppress(OSError):
            sibling.unlink(missing_ok=True)


def flush_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk, such as a rename; not every file system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def rename_if_absent(finished: Path, target: Path) -> bool:
    """Rename a finished file to `target` unless that exists; returns whether it was renamed.

    Making a hard link is atomic, also between machines; without hard links an empty target is created first.
    """
    try:
        target.hardlink_to(finished)
    except FileExistsError:
        return False
    except OSError:
        try:
            target.touch(exist_ok=False)
        except FileExistsError:
            return False
        try:
            finished.replace(target)
        except OSError:
            target.unlink()
            raise
        return True
    with contextlib.suppress(OSError):  # the target is there: a second name does no harm
        finished.unlink()
    return True
