"""What a worker does with its partition: the rows of some users to what these add to the result."""

from __future__ import annotations

import json
import uuid
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from recsys import __version__, errors
from recsys.errors import FileError, RecsysError, RecsysWarning
from recsys.evaluation.files.row_folders import write_piece
from recsys.evaluation.in_pieces.evaluator import Evaluator
from recsys.evaluation.in_pieces.pieces import PieceResult, name_row
from recsys.inputs import read_interactions
from recsys.ranks.rankings import RankingOptions
from recsys.ranks.sources import Factors
from recsys.spark.cluster_frames import split_rows
from recsys.spark.exposure_rows import ShownRows, without_exposure
from recsys.spark.item_factors import ItemFactors

ERROR_MARK = "recsys error: "
_ROWS_AT_ONCE = 1 << 16


@dataclass(frozen=True, eq=False)
class PartitionJob:
    """What a worker does with one partition."""

    evaluator: Evaluator
    sent: Mapping[str, Mapping[str, str]]
    folder: str | None
    whole_users: bool
    item_type: str | None
    items: ItemFactors | None = None

    def run(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Turn rows of all tables into what the partition adds: exposure of items, then a row of the rest."""
        tables = split_rows(batches, self.sent)
        if self.items is not None and tables and not tables["truth"].num_rows:
            return  # no users to rank for
        if not any(table.num_rows for table in tables.values()):
            return
        about: dict[str, Any] = {"id": uuid.uuid4().hex, "recsys": __version__}
        part: bytes | None = None
        shown: list[ShownRows] = []
        try:
            part, shown = self._evaluate(tables, about)
        except RecsysError as error:
            about["error"] = _describe_error(error, tables)
        yield from self._batches(about, part, shown)

    def _evaluate(self, tables: dict[str, Any], about: dict[str, Any]) -> tuple[bytes, list[ShownRows]]:
        histories = {name: tables[name] for name in ("seen", "eligible") if name in tables}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", RecsysWarning)
            lists = tables["lists"] if self.items is None else self.items.model(tables["user_factors"])
            measured = self.evaluator.measured(lists, tables["truth"], **histories)
            partial = measured.partial
        about["warnings"] = [[one.category.__name__, str(one.message)] for one in caught]
        if partial.rows.weights is not None:
            about["weighs"] = bool(partial.rows.weights.any())
        if self.folder is not None:
            file = Path(self.folder) / f"part-{about['id']}.parquet"
            try:
                about["written"] = write_piece(file, partial.rows, partial.terms, measured.truth_keys)
            except OSError as error:
                raise FileError(
                    f"a worker cannot write to {file.parent}: {error.strerror or error}.",
                    hint="Name a folder that driver and workers share, or leave out per_user_path=.",
                ) from error
        piece = PieceResult.of(measured, whole_users=self.whole_users)
        if isinstance(lists, Factors):
            known, users = lists.user_rows.ids, measured.run.truth.cases
            examples = known.name(0) if len(known) else None, users.name(0)
            piece = replace(piece, matched=int((known.code_of(users.values) >= 0).sum()), examples=examples)
        partial, shown = without_exposure(piece.partial)
        return replace(piece, partial=partial).to_bytes(), shown

    def _batches(self, about: Any, part: bytes | None, shown: Sequence[ShownRows]) -> Iterator[Any]:
        import pyarrow as pa

        types = {"part": pa.binary(), "about": pa.string()}
        if self.item_type is not None:
            of_items = pa.int64() if self.item_type == "bigint" else pa.string()
            types |= {"key": pa.int64(), "grp": pa.int16(), "item": of_items, "units": pa.int64()}

        def batch(n: int, **cells: Any) -> Any:
            columns = {name: pa.array(cells.get(name, [None] * n), kind) for name, kind in types.items()}
            return pa.record_batch(columns)

        for key, group, items, units in shown:
            for start in range(0, len(items), _ROWS_AT_ONCE):
                cut = slice(start, start + _ROWS_AT_ONCE)
                n = len(items[cut])
                groups = group[cut].astype(np.int16)
                yield batch(n, key=np.full(n, key), grp=groups, item=items[cut], units=units[cut])
        yield batch(1, part=[part], about=[json.dumps(about)])


@dataclass(frozen=True, eq=False)
class ShardJob:
    """What a worker does with some users and some shards of the catalogue: the best items of each."""

    items: ItemFactors
    sent: Mapping[str, Mapping[str, str]]
    edges: Sequence[int]
    k: int
    options: RankingOptions

    def run(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Turn rows of users into rows of their best items, shard by shard."""
        import pyarrow as pa
        import pyarrow.compute as pc

        held = list(batches)
        rows = pa.Table.from_batches(held) if held else pa.table({"shard": []})
        for number in pc.unique(rows.column("shard")).to_pylist():
            tables = split_rows(rows.filter(pc.equal(rows.column("shard"), number)).to_batches(), self.sent)
            if not tables["user_factors"].num_rows:
                continue
            shard, options = slice(self.edges[number], self.edges[number + 1]), self.options
            try:
                model = self.items.model(tables["user_factors"], shard)
                if "seen" in tables:
                    seen = read_interactions(
                        tables["seen"],
                        columns=self.sent["seen"],
                        table="seen",
                        pairs_only=True,
                        allow_empty=True,
                    )
                    options = replace(options, seen=seen)
                best = model.top(None, self.k, options)
            except RecsysError as error:  # its rows are lists, so the words of Spark's own error carry it
                raise RuntimeError(ERROR_MARK + json.dumps(_describe_error(error, tables))) from error
            columns = {
                "user": np.repeat(best.cases.values, best.sizes),
                "item": best.items.values[best.codes],
                "score": best.scores,
            }
            yield from pa.table(columns).to_batches(_ROWS_AT_ONCE)


def _describe_error(error: RecsysError, tables: Mapping[str, Any]) -> dict[str, Any]:
    """Make an error for the driver, where row numbers mean nothing: it names the user and the item."""
    name_row(error, tables)
    row = error.row if isinstance(error.row, str | int | None) else str(error.row)
    where = {"table": error.table, "column": error.column, "row": row, "hint": error.hint}
    return {"kind": type(error).__name__, "message": error.message, **where}


def rebuild_error(fields: Mapping[str, Any]) -> RecsysError:
    """Return the error that a worker described."""
    kind = getattr(errors, fields["kind"], RecsysError)
    error: RecsysError = kind.__new__(kind)
    RecsysError.__init__(error, **{name: value for name, value in fields.items() if name != "kind"})
    return error
