"""One evaluation on a cluster: its tables, the job, and the result of what the partitions send."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import os
import re
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from recsys import __version__, errors
from recsys.errors import (
    FileError,
    InputError,
    MissingExtraError,
    NoRowsError,
    TieWarning,
    warn,
)
from recsys.evaluation.engine import warn_of_ties
from recsys.evaluation.evaluate_keywords import CONTEXT
from recsys.evaluation.files.row_folders import RowFolder, RowWriter, WrittenPiece
from recsys.evaluation.in_pieces.evaluator import Evaluator
from recsys.evaluation.in_pieces.pieces import (
    PieceResult,
    check_on_lists,
    join_pieces,
    refuse_summaries,
    result_of,
    written_result,
)
from recsys.evaluation.results import Evaluation, load
from recsys.evaluation.run import highest_of, with_highest_grade
from recsys.inputs.frames import column_facts, table_without_rows
from recsys.metrics.registry import largest_k
from recsys.ranks.rankings import ALL, RankingOptions
from recsys.spark.cluster_frames import UserFrame, check_partitions, union_rows
from recsys.spark.exposure_rows import rows_by_key, with_exposure
from recsys.spark.item_factors import ItemFactors
from recsys.spark.partition_jobs import ERROR_MARK, PartitionJob, ShardJob, rebuild_error

_PIECES_AT_ONCE = 64


class ClusterEvaluation:
    """Tables of users, and an Evaluator that has read what all users share."""

    def __init__(
        self,
        tables: Sequence[UserFrame],
        evaluator: Evaluator,
        options: Mapping[str, Any],
        items: ItemFactors | None = None,
    ) -> None:
        self.tables = {table.name: table for table in tables}
        self.ids: str | None = options.get("ids")
        self.items = items
        self.source = self  # whose answer it is: of shards of a catalogue that of the whole one
        self.evaluator = copy.copy(evaluator)
        self.evaluator.conventions = with_highest_grade(
            evaluator.conventions, evaluator.requests, self._highest_grade
        )
        self.requests = evaluator.requests
        self.has_exposure = any(request.metric.kind == "catalogue" for request in self.requests)
        # What all users share was read already: workers need not get it twice.
        self.evaluator.inputs = copy.copy(evaluator.inputs)
        read: dict[str, Any] = dict.fromkeys((*CONTEXT, "ids"))
        own_columns = {name: table.sent for name, table in self.tables.items()}
        self.evaluator.inputs.options = evaluator.inputs.options.but(columns=own_columns, **read)
        cases = [table.has_cases for table in tables]
        self.key = "user" if all(cases) else "case"
        self.whole_users = (all(cases) or not any(cases)) and options.get("clusters") is None

    def _highest_grade(self) -> float | None:
        truth = self.tables["truth"]
        if "grade" not in truth.column_of:
            return None
        from pyspark.sql import functions as F  # noqa: N812

        grade = truth.cells("grade", None).cast("double")
        return highest_of(*truth.frame.agg(F.min(grade), F.max(grade)).first())

    def of_shards(self, shards: int, items: ItemFactors) -> ClusterEvaluation:
        """Return the same about ready lists: the best items of every shard of the catalogue."""
        from pyspark.sql import functions as F  # noqa: N812

        inputs, tables = self.evaluator.inputs, dict(self.tables)
        if type(shards) is not int or shards < 1:
            raise InputError(f"shards={shards!r} is not a number of shards.", hint="Write shards=8.")
        if "eligible" in tables or inputs.eligible is not None:
            raise InputError("eligible= is not taken with shards=.", hint="Leave out one of them.")
        check_on_lists(self.requests, self.evaluator.conventions)
        users, truth = tables.pop("user_factors"), tables["truth"]
        with_truth = truth.frame.select(truth.cells("user", self.ids).alias("recsys_user")).distinct()
        is_wanted = users.cells("user", self.ids) == with_truth["recsys_user"]
        users = replace(users, frame=users.frame.join(with_truth, is_wanted, "left_semi"))
        sides = {"user_factors": users, **{name: tables[name] for name in ("seen",) if name in tables}}
        rows, kinds = union_rows(list(sides.values()), self.ids)
        rows = rows.withColumn("shard", F.explode(F.sequence(F.lit(0), F.lit(shards - 1))))
        edges = np.linspace(0, items.n_items, shards + 1).astype(np.int64).tolist()
        job = ShardJob(
            items,
            {name: table.sent for name, table in sides.items()},
            edges,
            largest_k(self.requests) or 1,
            RankingOptions(
                seen=inputs.seen, exclude=inputs.exclude, backend=inputs.options.backend, threads=1
            ),
        )

        schema = f"user {kinds['case']}, item {items.id_type}, score double"
        best = rows.repartition("shard", "case").mapInArrow(job.run, schema)
        tables["lists"] = UserFrame("lists", best, {"user": "user", "item": "item", "score": "score"})
        evaluator = copy.copy(self.evaluator)
        evaluator.inputs = copy.copy(inputs)
        known = items.catalogue()
        evaluator.inputs.catalogue = (known.ids, known.n)
        evaluator.inputs.complete = False
        evaluator.inputs.candidates = ALL  # lists of the whole catalogue
        order = ("lists", "truth", "seen")
        of_lists = ClusterEvaluation(
            [tables[name] for name in order if name in tables], evaluator, {"ids": self.ids}
        )
        of_lists.source = self
        return of_lists

    def answer(
        self, per_user_path: str | os.PathLike[str] | None, *, overwrite: bool, partitions: int | None
    ) -> Evaluation:
        """Return the result, from the folder of an earlier call or from the cluster."""
        check_partitions(partitions)
        inputs, rules = self.evaluator.inputs, self.evaluator.conventions
        try:
            refuse_summaries(self.requests, by=inputs.by, keeps_values=per_user_path is not None)
        except NoRowsError as error:
            error.hint = "Pass per_user_path='folder'."
            raise
        if per_user_path is None:
            return result_of(self.ask(partitions, None), inputs, rules)
        folder = _local_folder(per_user_path)
        question = self.source.fingerprint()
        if not overwrite and (folder / "manifest.json").is_file():
            with contextlib.suppress(FileError):
                if RowFolder.open(folder).manifest.get("question") == question:
                    return load(folder)
        with RowWriter(folder) as writer:
            return written_result(self.ask(partitions, writer), inputs, rules, writer, question=question)

    def ask(self, partitions: int | None, writer: RowWriter | None) -> PieceResult:
        """Evaluate all partitions on the cluster, and what they add up to."""
        from pyspark.sql import functions as F  # noqa: N812

        rows, kinds = union_rows(list(self.tables.values()), self.ids)
        by = [self.key] if partitions is None else [partitions, self.key]
        job = PartitionJob(
            self.evaluator,
            {name: table.sent for name, table in self.tables.items()},
            folder=None if writer is None else str(writer.path),
            whole_users=self.whole_users,
            item_type=kinds["item"] if self.has_exposure else None,
            items=self.items,
        )

        schema = "part binary, about string"
        if self.has_exposure:
            schema += f", key bigint, grp smallint, item {kinds['item']}, units bigint"
        sent = rows.repartition(*by).mapInArrow(job.run, schema)
        if self.has_exposure:
            # What a partition adds is a key here, and unique; so the job runs once.
            keys = [name for name in sent.columns if name != "units"]
            sent = sent.groupBy(*keys).agg(F.sum("units").alias("units"))
        with clear_errors():
            found = sent.toArrow()
        pieces = self._read(found.filter(found.column("about").is_valid()), writer)
        joined = self._joined(pieces)
        if self.has_exposure:
            partial, shown = joined.partial, found.filter(found.column("key").is_valid())
            if self.items is not None:
                partial = replace(partial, catalogue=self.items.catalogue())
            joined = replace(joined, partial=with_exposure(partial, rows_by_key(shown)))
        warn_of_ties(joined.partial.counts, self.evaluator.conventions)
        return joined

    def _read(self, rows: Any, writer: RowWriter | None) -> Iterator[PieceResult]:
        """Yield what each partition sent; raise the error that a worker sent."""
        abouts = [json.loads(text) for text in rows.column("about").to_pylist()]
        for about in abouts:
            if about["recsys"] != __version__:
                raise InputError(
                    f"a worker has version {about['recsys']} of recsys, and the driver {__version__}.",
                    hint="Install the same version everywhere.",
                )
            if "error" in about:
                raise rebuild_error(about["error"])
        # What several partitions warn of is reported once, and ties in `ask` by the counts of all of them.
        for kind, text in dict.fromkeys(tuple(one) for about in abouts for one in about["warnings"]):
            if kind != TieWarning.__name__:
                warn(getattr(errors, kind), text)
        if any("weighs" in about for about in abouts) and not any(about["weighs"] for about in abouts):
            raise InputError("every weight in case_weights is 0.", hint="Give some user a weight above 0.")
        if writer is not None:
            for about in abouts:
                written = WrittenPiece.read(*about["written"])
                if written.rows and not (writer.path / written.file).is_file():
                    raise FileError(
                        f"{writer.path.parent} does not hold what the workers wrote: theirs is another one.",
                        hint="Name a folder that driver and workers share, or leave out per_user_path=.",
                    )
                writer.add(written)
        for part in rows.column("part"):
            yield PieceResult.from_bytes(part.as_py())

    def _joined(self, pieces: Iterator[PieceResult]) -> PieceResult:
        waiting: list[PieceResult] = []
        for piece in pieces:
            waiting.append(piece)
            if len(waiting) == _PIECES_AT_ONCE:
                waiting = [join_pieces(waiting)]
        sides = [name for name in ("lists", "truth") if name in self.tables]
        if not waiting:
            raise table_without_rows(sides[0])
        joined = join_pieces(waiting)
        facts = joined.remarks.facts
        for name in sides:
            if joined.examples[name == "truth"] is None:
                raise table_without_rows(name)
            read = column_facts(self.tables[name].column_of, self.tables[name].frame.columns)
            of_side: Any = replace(getattr(facts, name), columns=read.columns, unused=read.unused)
            facts = replace(facts, **{name: of_side})
        return replace(joined, remarks=replace(joined.remarks, facts=facts))

    def fingerprint(self) -> str:
        """Return what tells the question from others: what all users share, and the rows of the tables."""
        from pyspark import cloudpickle
        from pyspark.sql import functions as F  # noqa: N812

        rows, kinds = union_rows(list(self.tables.values()), self.ids)
        cells = [F.col(name) for name in rows.columns]
        # A hash ignores cells without a value, so which ones those are is hashed, too.
        key = F.xxhash64(*cells, *map(F.isnull, cells)).cast("decimal(20, 0)")
        with clear_errors():
            content = [*map(str, rows.agg(F.count("*"), F.sum(key)).first())]
        dumps: Any = cloudpickle.dumps
        state = None if self.items is None else self.items.state
        shared = __version__, self.evaluator, self.ids, self.items, state
        return hashlib.sha256(dumps((*shared, kinds, content))).hexdigest()


def _local_folder(path: str | os.PathLike[str]) -> Path:
    """Return the folder for values per user; a path with a scheme is not one that all can write as a file."""
    text = os.fspath(path)
    if text.startswith("file:"):
        text = urllib.parse.unquote(urllib.parse.urlsplit(text).path)
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", text):
        raise FileError(
            f"per_user_path={text!r} is not a path of a file system.",
            hint="Name a folder that is mounted on the driver and all workers, such as /mnt/… or /dbfs/….",
        )
    return Path(text)


@contextlib.contextmanager
def clear_errors() -> Iterator[None]:
    """Errors of workers as ours: those that a job describes, and workers without this package."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        if re.search(r"ModuleNotFoundError: No module named '(recsys|pyarrow|narwhals|scipy)", str(error)):
            missing = MissingExtraError("recsys-evaluation", None, "Every worker")
            missing.hint = (
                "Install recsys-evaluation[spark] in the workers' Python (PYSPARK_PYTHON), or send an "
                "environment with spark.archives."
            )
            raise missing from error
        described = re.search(re.escape(ERROR_MARK) + r"(\{.*\})", str(error))
        if described is not None:
            raise rebuild_error(json.loads(described[1])) from error
        raise
