"""The rows of several folders side by side, piece by piece, without holding any of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from recsys.errors import IdTypeError, Phrase
from recsys.evaluation.files.row_folders import ROWS_AT_ONCE, Piece, RowFolder


def rows_in_step(
    folders: Mapping[str, RowFolder], metrics: Sequence[str] | None = None, *, rows: int = ROWS_AT_ONCE
) -> Iterator[dict[str, Piece]]:
    """Yield the rows of each folder in one range of ids after the other, in ascending order.

    A folder that has no rows in a range has a piece without rows there. At most `rows` rows of each folder
    are held at a time.

    Raises:
        IdTypeError: ids are texts in one folder and numbers in another.
    """
    kinds = {name: folder.manifest["ids"] for name, folder in folders.items()}
    if len(set(kinds.values())) > 1:
        raise IdTypeError(
            f"ids are of different types, so none would match: {kinds}.",
            hint=Phrase("Evaluate all with {ids='str'}."),
        )
    streams = {name: folder.ascending_pieces(metrics, rows=rows) for name, folder in folders.items()}
    waiting = {name: next(stream, None) for name, stream in streams.items()}
    none = {name: folder.no_rows(metrics) for name, folder in folders.items()}
    while ends := [piece.rows.ids[-1] for piece in waiting.values() if piece is not None]:
        last = min(ends)  # up to here, all folders are known
        found = {}
        for name, piece in waiting.items():
            found[name] = none[name]
            if piece is not None:
                ids = piece.rows.ids
                cut = int(np.searchsorted(ids, np.array([last], dtype=ids.dtype), side="right")[0])
                if cut == len(ids):
                    found[name], waiting[name] = piece, next(streams[name], None)
                else:
                    found[name], waiting[name] = piece.take(slice(0, cut)), piece.take(slice(cut, None))
        yield found
