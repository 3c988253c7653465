"""A result that is a table with notes below it, in every format.

The formats are imported when they are asked for: a small call prints nothing.
"""

from __future__ import annotations

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
    def _footnotes(self) -> Sequence[str]:
        """The notes below the table."""

    def to_frame(self, kind: str = "pandas") -> Any:
        """The table as a pandas, polars or arrow table."""
        from recsys.display.exports import frame_of

        return frame_of(self._columns(), kind)

    def to_markdown(self) -> str:
        from recsys.display.markup import markdown_table

        return markdown_table(self._columns())

    def to_latex(self) -> str:
        from recsys.display.markup import latex_table

        return latex_table(self._columns())

    def to_text(self) -> str:
        """The table and the notes below it."""
        from recsys.display.text_tables import text_page

        return text_page(self._columns(), self._footnotes())

    def __repr__(self) -> str:
        return Tabled.to_text(self)

    def _repr_html_(self) -> str:
        from recsys.display.notebook_html import notebook_table

        return notebook_table(self._columns(), self._footnotes())

    def _ipython_key_completions_(self) -> list[Any]:
        """What a notebook offers between the brackets: the keys, such as metrics or models."""
        return list(self) if isinstance(self, Mapping) else []
