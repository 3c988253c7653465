"""The result of a study: the question, a table, the answer in words, and its figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recsys.evaluation import tables
from recsys.inputs.files import write_text


@dataclass(frozen=True)
class Study:
    """One question and its answer; prints as text, saves itself with its figure."""

    name: str
    question: str
    data: str
    table: dict[str, list[Any]]
    answer: Sequence[str]
    draw: Callable[[], Any]

    def __str__(self) -> str:
        parts = [self.question, self.data, "", tables.text(self.table), "", *self.answer]
        return "\n".join(parts)

    __repr__ = __str__

    def save(self, folder: str | Path) -> tuple[Path, Path]:
        """Write NAME.md and NAME.png into a folder; returns the two paths."""
        from recsys.report import figures

        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        picture = target / f"{self.name}.png"
        figures.save(self.draw(), picture)
        page = target / f"{self.name}.md"
        body = [f"# {self.question}", "", self.data, "", tables.markdown(self.table), "", *self.answer, "",
                f"![{self.question}]({picture.name})", ""]  # fmt: skip
        write_text(page, "\n".join(body))
        return page, picture
