"""A result that is a table with notes below it, in every format.

The formats are imported when they are asked for: a small call prints nothing.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recsys.display.cells import Columns


class Tabled(ABC):
    """A result that is a table with notes below it; it prints and exports itself in every format."""

    @abstractmethod
    def _columns(self) -> Columns:
        """The columns of the table."""

    @abstractmethod
    def _footnotes(self) -> Sequence[object]:
        """The notes below the table: texts, and records that a reader must not miss."""

    def _printed(self) -> tuple[Columns, Sequence[object], Sequence[str] | None]:
        """Return the table as it is printed, the notes, and the heading of each row, if any."""
        return self._columns(), self._footnotes(), None

    def _all_columns(self) -> Columns:
        """Return the columns of a data frame: also what is too much to print."""
        return self._columns()

    def to_dict(self) -> dict[str, Any]:
        """Everything, as values that JSON can hold."""
        from recsys.records.json_values import json_rows

        return {"rows": json_rows(self._all_columns()), "notes": [*map(str, self._footnotes())]}

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return what `to_dict` has, as JSON."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)

    def to_frame(self, kind: str = "pandas") -> Any:
        """Return every number as a pandas, polars or arrow table."""
        from recsys.display.exports import frame_of

        return frame_of(self._all_columns(), kind)

    def to_markdown(self) -> str:
        from recsys.display.markup import markdown_table

        return markdown_table(self._columns())

    def to_latex(self) -> str:
        from recsys.display.markup import latex_table

        return latex_table(self._columns())

    def log_to(self, tracker: Any, *, step: int | None = None, prefix: str = "") -> None:
        """Log every number of the table, under the names of its row and its column, such as "als/mrr/value".

        Args:
            tracker: the mlflow or wandb module, a run, a writer, a logger, or a function of
                (name, value, step).
            step: the epoch, or whatever the tracker counts.
            prefix: put before every name.
        """
        from recsys.display.trackers import log_numbers, numbers_of

        log_numbers(tracker, {prefix + name: v for name, v in numbers_of(self._all_columns())}, step)

    def to_text(self) -> str:
        """Return the table and the notes below it."""
        from recsys.display.text_tables import text_page

        columns, notes, sections = self._printed()
        return text_page(columns, notes, sections=sections)

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        from recsys.display.notebook_html import notebook_table

        columns, notes, sections = self._printed()
        return notebook_table(columns, notes, sections=sections)

    def _ipython_key_completions_(self) -> list[Any]:
        """Return what a notebook offers between the brackets: the keys, such as metrics or models."""
        return list(self) if isinstance(self, Mapping) else []
