"""What the long proofs share: the file of finished pieces, and the section of docs/reliability.md.

A proof is a list of named pieces. Each finished piece is one line of JSON in a file under build/, with a hash
of the sources it speaks of; a piece that is there for the same sources is not run again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reliability.md"


def hash_of(sources: Iterable[Path]) -> str:
    """A short hash of files: a folder stands for every file of source code in it."""
    digest = hashlib.sha256()
    for source in sources:
        inside = source.rglob("*") if source.is_dir() else [source]
        for file in sorted(
            f for f in inside if f.is_file() and f.suffix in {".py", ".c", ".cpp", ".hpp", ".sh"}
        ):
            digest.update(f"{file.relative_to(ROOT)}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:12]


class Finished:
    """The finished pieces of a proof, by the name under "piece"; only those of the same sources count.

    Args:
        path: the file of JSON lines; it is made with the first piece.
        sources: files and folders (absolute) that the proof speaks of. Its own script is one.
    """

    def __init__(self, path: Path, sources: Iterable[Path]) -> None:
        self.path, self.source = path, hash_of(sources)
        self.done: dict[str, dict[str, Any]] = {}
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        # A last line that was cut by a kill is no piece, and the next one must not be glued to it.
        self._cut = bool(text) and not text.endswith("\n")
        for line in text.splitlines()[: -1 if self._cut else None]:
            piece = json.loads(line)
            if piece["source"] == self.source:
                self.done[piece["piece"]] = piece

    def add(self, piece: dict[str, Any]) -> None:
        """Keep a finished piece: it has its name under "piece" and whatever else JSON can hold."""
        line = piece | {"source": self.source}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self._cut:
            whole = self.path.read_text(encoding="utf-8").rpartition("\n")
            self.path.write_text(whole[0] + whole[1], encoding="utf-8")
            self._cut = False
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        self.done[line["piece"]] = line


def write_section(name: str, text: str) -> None:
    """Put a summary between its two marker comments of the page; print it where the page has none."""
    begin, end = f"<!-- {name}: written by scripts/{name}.py -->", f"<!-- end of {name} -->"
    page = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    head, found, rest = page.partition(begin)
    if not found or end not in rest:
        print(text)
        return
    PAGE.write_text(f"{head}{begin}\n\n{text.strip()}\n\n{end}{rest.partition(end)[2]}", encoding="utf-8")
