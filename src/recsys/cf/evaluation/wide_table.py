"""Tables of results that print all their columns; pandas alone shows the first and the last few."""

from __future__ import annotations

import pandas as pd

_LINE = 110


class WideTable(pd.DataFrame):
    """A DataFrame whose text has every column, in blocks below each other where a line is too short."""

    def __repr__(self) -> str:
        return str(self.to_string(line_width=_LINE))
