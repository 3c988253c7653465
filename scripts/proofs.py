"""What the long proofs share: finished pieces, the Pythons at hand, the section of docs/reliability.md.

A proof is a list of named pieces. Each finished piece is one line of JSON in a file under build/, with a hash
of the sources it speaks of; a piece that is there for the same sources is not run again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reliability.md"
LOCK = ROOT / "requirements" / "lock.txt"


def hash_of(sources: Iterable[Path]) -> str:
    """A short hash of files: a folder stands for every file in it that is no product of another."""
    digest = hashlib.sha256()
    for source in sources:
        inside = source.rglob("*") if source.is_dir() else [source]
        for file in sorted(f for f in inside if f.is_file() and f.suffix not in {".pyc", ".so"}):
            digest.update(f"{file.relative_to(ROOT)}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:12]


def pythons() -> dict[str, Path]:
    """The interpreters from 3.11 on that the machine has, on the PATH or in pyenv: {"3.11": path}."""
    folder = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    named = [shutil.which(f"python3.{minor}") for minor in range(11, 30)]
    found = {}
    for path in [*(Path(name) for name in named if name), *sorted(folder.glob("3.*/bin/python"))]:
        asked = "import sys; print(*sys.version_info[:2], sys.implementation.name)"
        done = subprocess.run([path, "-c", asked], capture_output=True, text=True, check=False)
        match done.stdout.split():
            case ["3", minor, "cpython"] if int(minor) >= 11:
                found[f"3.{minor}"] = path
    return dict(sorted(found.items(), key=lambda pair: int(pair[0].split(".")[1])))


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a file of JSON; a last one that was cut by a kill is none."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


class Finished:
    """The finished pieces of a proof, by the name under "piece"; only those of the same sources count.

    Args:
        path: the file of JSON lines; it is made with the first piece.
        sources: files and folders (absolute) that the proof speaks of, besides the locked packages. Its own
            script is one.
    """

    def __init__(self, path: Path, sources: Iterable[Path]) -> None:
        self.path, self.source = path, hash_of([*sources, LOCK])
        self.done: dict[str, dict[str, Any]] = {}
        for piece in read_lines(path):
            if piece["source"] == self.source:
                self.done[piece["piece"]] = piece

    def add(self, piece: dict[str, Any]) -> None:
        """Keep a finished piece: it has its name under "piece" and whatever else JSON can hold."""
        line = piece | {"source": self.source}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as file:
            whole = file.tell() == 0 or (file.seek(-1, os.SEEK_END), file.read())[1] == b"\n"
            if not whole:  # a kill has cut the last line, and the next one must not be glued to it
                file.truncate(self.path.read_bytes().rfind(b"\n") + 1)
            file.write(json.dumps(line).encode() + b"\n")
        self.done[line["piece"]] = line


def write_section(name: str, text: str) -> None:
    """Put a summary between its two marker comments of the page, and print it."""
    print(text)
    begin, end = f"<!-- {name}: written by scripts/{name}.py -->", f"<!-- end of {name} -->"
    head, found, rest = PAGE.read_text(encoding="utf-8").partition(begin)
    if not found or end not in rest:
        raise SystemExit(f"{PAGE.name} has no place for it: {begin} … {end}")
    PAGE.write_text(f"{head}{begin}\n\n{text.strip()}\n\n{end}{rest.partition(end)[2]}", encoding="utf-8")
