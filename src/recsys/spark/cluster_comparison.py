"""Pairs of models added up on a cluster: the workers read the folders, the driver joins their sums."""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import partial, reduce
from typing import Any

import numpy as np

from recsys.comparison.row_pieces import RowPieces
from recsys.errors import InputError
from recsys.evaluation.files.result_files import pack, unpack
from recsys.evaluation.files.row_folders import Piece
from recsys.records.arrays import PerCase
from recsys.spark.cluster_evaluation import clear_errors
from recsys.stats.pair_pieces import MissingIds, PairsOfPieces, Pieces, Triple
from recsys.stats.pairing import PairSums


class ClusterPairs(PairsOfPieces):
    """The pairs of all models and metrics, added up by the workers of a session.

    What needs all differences of a pair, and replicates of a bootstrap, is read on the driver.
    """

    def __init__(
        self,
        pieces: Pieces,
        triples: Sequence[Triple],
        centres: Mapping[str, Mapping[str, float]],
        has_terms: Collection[str] = (),
        *,
        session: Any,
        partitions: int | None = None,
    ) -> None:
        if not isinstance(pieces, RowPieces) or not all(map(len, pieces.folders.values())):
            raise InputError("the values per user of all models must be in folders, and there must be some.")
        self._of_folders, self._session, self._partitions = pieces, session, partitions
        super().__init__(lambda _: (), triples, centres, has_terms)
        self._pieces = pieces
        add_up = partial(PairsOfPieces, triples=triples, centres=centres, has_terms=has_terms)
        found = self._ask(triples, add_up)
        self.n_cases = sum(part["n_cases"] for part in found)
        for name in dict.fromkeys(name for part in found for name in part["missing"]):
            counts, ids = zip(
                *(part["missing"][name] for part in found if name in part["missing"]), strict=True
            )
            self.missing[name] = MissingIds()
            self.missing[name].add(np.sort(np.concatenate(ids)), sum(counts))
        for part in found:
            for *triple, is_counted, sums in part["sums"]:
                self.add(((triple[0], triple[1], triple[2]), is_counted), _opened(sums))

    def _ask(self, triples: Sequence[Triple], add_up: Any) -> list[dict[str, Any]]:
        """Return what each partition of the users finds."""
        folders = self._of_folders.folders
        metrics = list(dict.fromkeys(metric for *_, metric in triples))
        job = _ComparisonJob(replace(self._of_folders, folders={}), [*folders], metrics, add_up)
        rows = [self._rows_of(name, number, metrics) for number, name in enumerate(folders)]
        union = reduce(lambda one, other: one.unionByName(other), rows)
        by = ["recsys_case"] if self._partitions is None else [self._partitions, "recsys_case"]

        with clear_errors():
            sent = union.repartition(*by).mapInArrow(job.run, "part binary").toArrow()
        return [unpack(json.loads(zlib.decompress(part))) for part in sent.column("part").to_pylist()]

    def _rows_of(self, name: str, number: int, metrics: Sequence[str]) -> Any:
        """Return the users of one folder, with their values and terms."""
        from pyspark.sql import functions as F  # noqa: N812

        folder = self._of_folders.folders[name]
        files = [str(folder.path / piece["file"]) for piece in folder.manifest["pieces"]]
        frame = self._session.read.parquet(*files)
        names = [
            c.name for c in folder.columns if c.role in ("metric", "first", "second") and c.metric in metrics
        ]
        cells = [F.col("`" + column.replace("`", "``") + "`").alias(column) for column in names]
        ids = F.col(folder.columns[0].name).alias("recsys_case")
        return frame.select(F.lit(number).alias("recsys_model"), ids, *cells)


def _packed(sums: PairSums) -> dict[str, Any]:
    """Sums as plain numbers and arrays, by name."""
    plain = {f.name: getattr(sums, f.name) for f in fields(sums) if f.name != "read"}
    return plain | {"sums": {name: one.as_integer_ratio() for name, one in sums.sums.items()}}


def _opened(packed: Mapping[str, Any]) -> PairSums:
    sums = {name: Fraction(*ratio) for name, ratio in packed["sums"].items()}
    return PairSums(**{**packed, "sums": sums})


@dataclass(frozen=True, eq=False)
class _ComparisonJob:
    """What a worker does with the users of its partition."""

    pieces: RowPieces
    models: Sequence[str]
    metrics: Sequence[str]
    add_up: Any

    def run(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Turn rows of all models into the sums of their pairs."""
        import pyarrow as pa

        held = list(batches)
        if not held:
            return
        rows = pa.Table.from_batches(held)
        aligned = self.pieces.align(self._pieces(rows), self.metrics)
        pairs = self.add_up(lambda _: [aligned])
        missing = {
            name: (len(ids), np.array(ids.tolist(), dtype=aligned[0].ids.dtype))
            for name, ids in pairs.missing.items()
        }
        sums = [(*triple, counted, _packed(one)) for (triple, counted), one in pairs.sums.items()]
        found = {"n_cases": pairs.n_cases, "missing": missing, "sums": sums}
        document = zlib.compress(json.dumps(pack(found)).encode(), 6)
        yield pa.record_batch({"part": pa.array([document], pa.binary())})

    def _pieces(self, rows: Any) -> dict[str, Piece]:
        """Return the rows of each model, in ascending order of ids."""
        model = rows.column("recsys_model").to_numpy()
        ids = rows.column("recsys_case").to_numpy()
        pieces = {}
        for number, name in enumerate(self.models):
            at = np.flatnonzero(model == number)
            at = at[np.argsort(ids[at], kind="stable")]

            def column(column: str, at: Any = at) -> Any:
                return rows.column(column).to_numpy()[at]

            values = {metric: column(metric) for metric in self.metrics}
            terms = {
                metric: (column(f"{metric}|first"), column(f"{metric}|second"))
                for metric in self.metrics
                if f"{metric}|first" in rows.column_names
            }
            pieces[name] = Piece(PerCase(ids[at], values), terms, None)
        return pieces
