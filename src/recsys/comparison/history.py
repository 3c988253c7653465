"""history(): a folder of results over time, a metric per night, and when it changed.

Results are only added: files are named by time, model and content, so two machines may write into one folder
and nothing is overwritten. Reading relies on the contents of the files, not on their names.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import math
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from recsys.comparison.row_pieces import folder_of
from recsys.display.cells import Columns
from recsys.display.number_words import plural
from recsys.display.tabled import Tabled
from recsys.errors import FileError, InputError, notes_only
from recsys.evaluation.asked import Asked, Content
from recsys.evaluation.engine import is_aggregated
from recsys.evaluation.results import Evaluation, load
from recsys.evaluation.uncertainty import needs_jackknife
from recsys.inputs.files.atomic_write import rename_if_absent, write_errors_of
from recsys.metrics.registry import Request
from recsys.records.json_values import json_value
from recsys.stats.change_points import MIN_NIGHTS, Change, change_points


@dataclass(frozen=True)
class Night:
    """One metric of one stored result, with its interval and the decisions that its value depends on."""

    finished: str
    name: str
    metric: str
    value: float
    low: float
    high: float
    users: int
    path: str
    decisions: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def unlike(self, other: Night) -> bool:
        """Return whether a decision that is known of both nights differs."""
        shared = self.decisions.keys() & other.decisions.keys()
        return any(self.decisions[name] != other.decisions[name] for name in shared)


class ResultHistory(Tabled, Sequence[Night]):
    """The values of stored results, oldest first; prints as a table with the changes below."""

    def __init__(self, nights: Sequence[Night], skipped: Sequence[str] = ()) -> None:
        self.nights = sorted(nights, key=lambda night: (night.name, night.metric, night.finished, night.path))
        self.skipped = tuple(skipped)

    def __getitem__(self, at: Any) -> Any:
        return self.nights[at]

    def __len__(self) -> int:
        return len(self.nights)

    def series(self) -> Iterator[tuple[tuple[str, str], list[Night]]]:
        """Yield the nights of each (model, metric)."""
        for key, nights in groupby(self.nights, key=lambda night: (night.name, night.metric)):
            yield key, list(nights)

    def comparable(self) -> Iterator[tuple[tuple[str, str], list[Night]]]:
        """Yield the nights of each (model, metric) evaluated under the same decisions as the newest."""
        for key, nights in self.series():
            yield key, [night for night in nights if not night.unlike(nights[-1])]

    def changes(self) -> dict[tuple[str, str], list[tuple[Night, Change]]]:
        """Return the changes of each (model, metric).

        A change is the first night of a new level, among comparable nights.
        """
        changes = {}
        for key, nights in self.comparable():
            points = change_points([n.value for n in nights])
            if points:
                changes[key] = [(nights[change.at], change) for change in points]
        return changes

    def too_few_nights(self) -> dict[tuple[str, str], int]:
        """Count the nights of each (model, metric) that has too few to distinguish a change from noise."""
        counts = {key: len(nights) for key, nights in self.comparable()}
        return {key: count for key, count in counts.items() if count < MIN_NIGHTS}

    def notes(self) -> list[str]:
        """Since when the conventions of a series are others, which they are, and what is not compared."""
        metrics: dict[tuple[str, str], list[str]] = {}
        for (name, metric), nights in self.series():
            now, unlike = nights[-1].decisions, [n for n in nights if n.unlike(nights[-1])]
            if not unlike:
                continue
            since, before = nights[nights.index(unlike[-1]) + 1].finished, unlike[-1].decisions
            differ = "; ".join(
                f"{decision}: {before.get(decision)}, now {value}"
                for decision, value in now.items()
                if before.get(decision, value) != value
            )
            more = "" if all(n.decisions == before for n in unlike) else "; some nights differ in other ways"
            text = (
                f"the conventions are others since {since} ({differ}{more}), so "
                f"{plural(len(unlike), 'night|nights is|are')} shown and not compared"
            )
            metrics.setdefault((name, text), []).append(metric)
        return [f"{name}: {', '.join(names)}: {text}" for (name, text), names in metrics.items()]

    def _all_columns(self) -> Columns:
        names = ("finished", "name", "metric", "value", "low", "high", "users", "path")
        return {name: [getattr(n, name) for n in self.nights] for name in names}

    def to_dict(self) -> dict[str, Any]:
        """Return every night, change of level and note, as values that JSON can hold."""
        moved = [
            {"name": name, "metric": metric, "finished": night.finished, "before": change.before,
             "after": change.after, "p_value": change.p_value, "note": change.note}
            for (name, metric), rows in self.changes().items()
            for night, change in rows
        ]  # fmt: skip
        too_few = [
            {"name": name, "metric": metric, "nights": count, "nights_needed": MIN_NIGHTS}
            for (name, metric), count in self.too_few_nights().items()
        ]
        return {
            "nights": [json_value(vars(night)) for night in self.nights],
            "changes": moved,
            "too_few_nights": too_few,
            "notes": self.notes(),
            "skipped": [*self.skipped],
        }

    def _columns(self) -> Columns:
        changes = self.changes()
        marks = dict.fromkeys((n.path, key) for key, nights in self.comparable() for n in nights)
        marks |= {(n.path, key): "<- new level" for key, rows in changes.items() for n, _ in rows}
        return {
            "finished": [n.finished for n in self.nights],
            "model": [n.name for n in self.nights],
            "metric": [n.metric for n in self.nights],
            "value": [n.value for n in self.nights],
            # No interval: too few users, or groups of them, to estimate the noise.
            "95% interval": [f"[{n.low:.4f}, {n.high:.4f}]" if n.low < n.high else "-" for n in self.nights],
            "users": [n.users for n in self.nights],
            "": [marks.get((n.path, (n.name, n.metric)), "not compared") or "" for n in self.nights],
        }

    def _footnotes(self) -> list[str]:
        lines = [
            f"{name}: {metric} went from {change.before:.4f} to {change.after:.4f} on {night.finished} "
            f"(p = {change.p_value:.2g} that noise looks like this{change.note and '; '}{change.note})"
            for (name, metric), rows in self.changes().items()
            for night, change in rows
        ]
        too_few = self.too_few_nights()
        if not lines and len(too_few) < sum(1 for _ in self.series()):
            lines = ["no change of level beyond the noise"]
        if too_few:
            counts = [f"{name}: {metric} has {count}" for (name, metric), count in too_few.items()]
            more = [f"{len(counts) - 3} more series have too few"] if len(counts) > 3 else []
            lines.append(
                f"too few nights to tell a change of level from noise, which takes {MIN_NIGHTS}: "
                + ", ".join(counts[:3] + more)
            )
        return [*lines, *self.notes(), *(f"skipped: {message}" for message in self.skipped)]


def history(
    folder: str | Path, metrics: str | Sequence[str] | None = None, *, name: str | None = None
) -> ResultHistory:
    """Read the results of a folder over time, for some metrics (default: all) and one model or all."""
    paths = result_paths(folder)
    names = [metrics] if isinstance(metrics, str) else metrics
    requested = None if names is None else [str(Request.parse(m)) for m in names]
    nights: list[Night] = []
    skipped, available = [], set()
    named: set[Path] = set()  # folders that a saved result names for its values: the same night again
    for path in sorted(paths, key=Path.is_dir):
        if path.absolute() in named:
            continue
        try:
            result = load(path)
        except FileError as error:
            skipped.append(str(error))
            continue
        place = path.absolute().name
        rows = folder_of(result)
        named |= set() if rows is None else {rows.path}
        available |= {f"{result.name or place}: {metric}" for metric in result}
        if name is not None and (result.name or place) != name:
            continue
        for request in result.requests:
            metric, value = str(request), result.overall[str(request)]
            if (requested is not None and metric not in requested) or math.isnan(value):
                continue
            with notes_only():  # warnings about a single night do not matter here
                estimate = result.intervals(metrics=[metric])[metric]
            known = math.isfinite(estimate.standard_error)
            low, high = (estimate.interval.low, estimate.interval.high) if known else (value, value)
            finished, n_users = str(result.run.get("finished", "")), result.n_cases.get(metric, 0)
            decisions = decisions_of(result, request)
            nights.append(
                Night(finished, result.name or place, metric, value, low, high, n_users, place, decisions)
            )
    if not nights:
        if available:
            more = f" and {len(available) - 8} more" if len(available) > 8 else ""
            names_text = ", ".join(sorted(available)[:8]) + more
            raise InputError(f"{folder} holds no such metric of such a model.", hint=f"It has {names_text}.")
        reason = f" ({skipped[0]})" if skipped else ""
        raise InputError(f"{folder} holds no result{reason}.", hint="Check the folder.")
    return ResultHistory(nights, skipped)


def earlier_looks(candidate: Evaluation, folder: str | Path) -> int:
    """On how many other tests a folder holds a candidate: results of its name.

    One that is known to have learnt from other data (`train=`) is another candidate. The same test is not
    another look: the same lists give the same result there, and other lists are of another model.
    """
    if candidate.name is None:
        hint = "Save it under one, result.save(path, name='als-7'), and pass that path."
        raise InputError("the new result has no name to find it by in the history.", hint=hint)
    own, tests = candidate.asked or Asked(), set[Content | None]()
    for path in result_paths(folder):
        with contextlib.suppress(FileError):
            result = load(path)
            asked = result.asked or Asked()
            if result.name == candidate.name and len({own.train, asked.train} - {None}) < 2:
                tests.add(asked.truth)
    return len(tests - {own.truth, None})


def decisions_of(result: Evaluation, request: Request) -> dict[str, Any]:
    """Return what values must share to be compared.

    These are the decisions the metric reads, the aggregate and the candidates.
    """
    values = request.conventions(result.conventions).to_dict()
    decisions = {name: value for name, value in values.items() if name in request.metric.reads}
    if not needs_jackknife(request):
        decisions["aggregate"] = str(request.aggregate) if is_aggregated(result.partial, request) else "mean"
    parts = {} if result.asked is None else result.asked.parts
    return decisions | {name: parts[name].kind for name in ("candidates", "seen") if name in parts}


def result_paths(folder: str | Path) -> list[Path]:
    """Return the files of a folder that may be results, and its folders of values per user, by name.

    A folder that holds the values per user of one result is that result.
    """
    if not isinstance(folder, str | Path):
        raise FileError(f"a {type(folder).__name__} is not a folder.", hint="Pass the path of one.")
    directory = Path(folder)
    try:
        exists = directory.is_dir()
    except (OSError, ValueError):  # a name that no folder can have
        exists = False
    if not exists:
        raise FileError(f"there is no folder {directory}.", hint="recsys run fills one.")
    try:
        folders = [path.parent for path in directory.glob("*/manifest.json")]
        files = [*directory.glob("*.json")]
    except OSError as error:
        raise FileError(f"the folder {directory} cannot be read: {error.strerror}.") from error
    if not folders and [file.name for file in files] == ["manifest.json"]:
        return [directory]
    return sorted([*files, *folders])


def record(folder: str | Path, evaluation: Evaluation, name: str, **facts: Any) -> Path:
    """Add a result to a folder under a new name; existing files are never changed."""
    directory = Path(folder)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"the folder {directory} cannot be made: {error.strerror}.") from error
    now = dt.datetime.now(dt.UTC)
    document = json.loads(evaluation.to_json())
    safe_name = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "model"
    stem = f"{now:%Y%m%dT%H%M%SZ}-{safe_name[:60]}-{document['sha256'][:8]}"
    temporary = directory / f".{stem}.{secrets.token_hex(6)}.part"
    try:
        with write_errors_of(directory):
            evaluation.save(temporary, name=name, **facts)
            for attempt in range(1000):
                path = directory / f"{stem}{f'-{attempt}' if attempt else ''}.json"
                if rename_if_absent(temporary, path):
                    return path
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
    raise FileError(f"{directory} holds a thousand results of this second.", hint="Use another folder.")
