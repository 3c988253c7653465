"""Results whose values per user lie in folders, as pieces for comparisons that hold none of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from recsys.evaluation.results import Evaluation
from recsys.metrics.registry import Request
from recsys.records.arrays import PerCase
from recsys.stats.pairing import Aligned, align

if TYPE_CHECKING:
    from recsys.evaluation.files.row_folders import Piece, RowFolder
    from recsys.stats.intervals import Combination


def folder_of(result: Evaluation) -> RowFolder | None:
    """Return the folder that has the rows of a result, which are then read as they are needed."""
    return getattr(result.partial.per_case, "folder", None)


def why_in_memory(results: Mapping[str, Evaluation]) -> str:
    """Return why the rows must be read into memory.

    The reason is empty if all of them are in folders and can be added up.
    """
    for name, result in results.items():
        folder = folder_of(result)
        if folder is None:
            return f"{name} does not lie in a folder"
        roles = {column.role for column in folder.columns}
        if "clusters" in roles or "weights" in roles:
            return "there are weights, or several cases of a user"
    return ""


@dataclass(frozen=True, eq=False)
class RowPieces:
    """The values of folders piece by piece, of the metrics that it is called with; see `row_pieces`."""

    folders: Mapping[str, RowFolder]
    combinations: Mapping[str, Mapping[str, Combination]]

    def __call__(self, metrics: Sequence[str]) -> Iterable[tuple[Aligned, Aligned]]:
        from recsys.evaluation.files.rows_in_step import rows_in_step

        return (self.align(found, metrics) for found in rows_in_step(self.folders, metrics))

    def align(self, found: Mapping[str, Piece], metrics: Sequence[str]) -> tuple[Aligned, Aligned]:
        """Return one piece of each folder, of the same users, as values that are averaged and as they are."""
        counted = align({name: piece.rows for name, piece in found.items()}, metrics)
        if not any(metric in by_metric for by_metric in self.combinations.values() for metric in metrics):
            return counted, counted
        averaged = {
            name: PerCase(
                piece.rows.ids,
                {
                    metric: self.combinations[name][metric].values(*piece.terms[metric])
                    if metric in self.combinations[name]
                    else piece.rows.columns[metric]
                    for metric in metrics
                },
            )
            for name, piece in found.items()
        }
        return align(averaged, metrics), counted


def row_pieces(results: Mapping[str, Evaluation], requests: Sequence[Request]) -> RowPieces:
    """Return the values of `requests` by piece, whose means are the reported numbers, and as they are."""
    from recsys.stats.sums import combination_from

    folders = {name: folder for name, result in results.items() if (folder := folder_of(result)) is not None}
    combinations = {
        name: {
            str(r): combination_from(result.partial.sums[str(r)], partial(_combine, r))
            for r in requests
            if str(r) in result.partial.terms
        }
        for name, result in results.items()
    }
    return RowPieces(folders, combinations)


def _combine(request: Request, first: float, second: float) -> float:
    return request.metric.pooling.combine(first, second, **request.own_params)
