"""Write a folder that appears whole or not at all: made under a hidden name next to its place, then renamed.

The process that writes it holds a lock on the hidden folder. If that process is killed, the lock goes with
it, and the next writer to the same place removes what was left.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import sys
from pathlib import Path

from recsys.inputs.files.atomic_write import flush_folder, write_errors_of

_UNFINISHED, _REPLACED = ".unfinished", ".replaced"
_SWAP = 2  # RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS
_WORKING_FOLDER = -100  # AT_FDCWD of Linux


class HiddenFolder:
    """A new hidden folder at `path`; `publish` makes it the target, `remove` deletes it.

    An existing target is replaced at once, whatever it holds: the caller decides whether it may be.

    >>> import tempfile
    >>> hidden = HiddenFolder(Path(tempfile.mkdtemp()) / "out")
    >>> _ = (hidden.path / "a.txt").write_text("whole")
    >>> hidden.publish()
    >>> [file.name for file in hidden.target.iterdir()]
    ['a.txt']
    """

    def __init__(self, target: str | os.PathLike[str]) -> None:
        self.target = Path(os.path.abspath(target))  # noqa: PTH100 - "..", but no links, is resolved
        self._lock: int | None = None
        prefix = f".{self.target.name[:50]}."
        with write_errors_of(self.target):
            for sibling in self.target.parent.glob(f"{_literal(prefix)}*{_UNFINISHED}"):
                _remove_if_abandoned(sibling)
            while True:
                self.path = self.target.with_name(f"{prefix}{secrets.token_hex(6)}{_UNFINISHED}")
                try:
                    self.path.mkdir()
                    if self._locked():
                        break
                except BaseException:  # also Ctrl-C: no caller has this object yet, so none can remove it
                    self.remove()
                    raise
                self.remove()

    def _locked(self) -> bool:
        """Lock the folder; False if another process found it before that, and removes it."""
        try:
            self._lock = lock_folder(self.path)
        except (BlockingIOError, FileNotFoundError):
            return False
        except (ImportError, OSError):  # no such locks here, so it will not be taken for abandoned
            self._lock = None
        return self.path.is_dir()

    def publish(self) -> None:
        """Flush the folder and rename it to the target, which changes at once or not at all."""
        try:
            with write_errors_of(self.target):
                flush_folder(self.path)
                if self.target.is_dir() and any(self.target.iterdir()):
                    self.path.chmod(self.target.stat().st_mode & 0o777)
                    _exchange(self.path, self.target)
                else:
                    with contextlib.suppress(FileNotFoundError):
                        self.target.rmdir()
                    self.path.rename(self.target)
                flush_folder(self.target.parent)
        finally:
            self.remove()

    def remove(self) -> None:
        """Delete what is under the hidden name, if anything, and give the lock back."""
        remove_folder(self.path)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def remove_folder(path: Path) -> None:
    """Remove a folder of ours as far as possible: once more if a disk or Ctrl-C kept some of it."""
    try:
        shutil.rmtree(path, ignore_errors=True)
    finally:
        if path.exists():
            shutil.rmtree(path, ignore_errors=True)


def replaced_copies(target: Path) -> list[Path]:
    """Earlier contents of the target, left by a process that was killed while it replaced them.

    This can only happen where two folders cannot be exchanged in one step.
    """
    return sorted(target.parent.glob(f"{_literal(f'.{target.name[:50]}.')}*{_REPLACED}"))


def _literal(name: str) -> str:
    """Return a name as a pattern that matches only this name."""
    return "".join(f"[{letter}]" if letter in "[*?" else letter for letter in name)


def lock_folder(folder: Path) -> int:
    """Return an open handle that locks the folder as long as this process lives.

    Raises:
        BlockingIOError: another process holds the lock.
    """
    import fcntl

    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise
    return handle


def _remove_if_abandoned(folder: Path) -> None:
    with contextlib.suppress(ImportError, OSError):
        handle = lock_folder(folder)
        remove_folder(folder)
        os.close(handle)


def _exchange(new: Path, old: Path) -> None:
    """Swap the names of two folders: at once on Linux and macOS, elsewhere by two renames."""
    import ctypes

    with contextlib.suppress(AttributeError, OSError, TypeError):  # no such function in this C library
        library = ctypes.CDLL(None, use_errno=True)
        names = os.fsencode(new), os.fsencode(old)
        if sys.platform == "darwin":
            failed = library.renamex_np(*names, _SWAP)
        else:
            failed = library.renameat2(_WORKING_FOLDER, names[0], _WORKING_FOLDER, names[1], _SWAP)
        if not failed:
            return
    aside = new.with_suffix(_REPLACED)
    old.rename(aside)
    try:
        new.rename(old)
    except OSError:
        aside.rename(old)
        raise
    remove_folder(aside)
