"""The board: one page over many stored results, in which runs are sorted, filtered and laid side by side.

The page computes no statistics: it shows what the results state, the changes of level that
`recsys.history` finds, and where two runs answer different questions.
"""

from __future__ import annotations

import base64
import datetime as dt
import gzip
import json
import math
import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from recsys.comparison.history import Night, ResultHistory, decisions_of, result_paths
from recsys.display.cells import format_cell
from recsys.display.number_words import plural
from recsys.errors import InputError, RecsysError, came_as
from recsys.evaluation.asked import Asked
from recsys.evaluation.files.result_files import document_of, fingerprint
from recsys.evaluation.results import Evaluation, load
from recsys.inputs.files import write_text
from recsys.metrics.registry import Metric
from recsys.records.facts import Caution
from recsys.report import charts
from recsys.report.offline_page import offline_page
from recsys.stats.change_points import MIN_NIGHTS

_MAX_LINES = 8  # in one picture
_PARTS = ("candidates", "items", "seen", "train")  # of a question, as results keep it
Places = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


class Run(NamedTuple):
    """A stored result: what the page shows of it, and keys that tell its question from others."""

    file: str
    name: str
    finished: str
    sha256: str
    users: int
    conventions: str
    cautions: tuple[Caution, ...]
    values: Mapping[str, float]
    metrics: Mapping[str, Metric]
    question: Mapping[str, str | None]  # the keys of its parts; None for what is not known
    decisions: Mapping[str, Mapping[str, Any]]  # of each metric: what its values over time must share

    @classmethod
    def of(cls, result: Evaluation, file: str, name: str | None = None) -> Run:
        """Return what the page needs of a result."""
        document = document_of(result)
        numbers, aggregate = document["result"], result.aggregate
        rows = None if result.partial.per_case is None else result.per_case
        known = (result.facts.n_users, result.counts.get("cases"))
        n_users = next((number for number in known if isinstance(number, int)), 0)
        if rows is not None and not result.partial.sums and rows.clusters is not None:
            n_users = len(set(rows.clusters.tolist()))  # each has several cases
        catalogue, asked = result.partial.catalogue, result.asked or Asked()
        parts = {} if result.asked is None else asked.parts
        question = {
            "users": None if asked.users is None else asked.users.key,
            "truth": None if asked.truth is None else asked.truth.key,
            **{name: parts[name].label if name in parts else None for name in _PARTS},
            "conventions": fingerprint({**numbers["conventions"], "aggregate": numbers.get("aggregate")}),
            "catalogue": None if catalogue is None else f"{catalogue.n:,} items",
        }
        return cls(
            file,
            str(name or result.name or file),
            _in_utc(str(document["run"].get("finished", ""))),
            document["sha256"],
            n_users,
            f"{result.conventions}, {aggregate.words} over users" if aggregate else str(result.conventions),
            result.cautions,
            dict(result),
            {str(request): request.metric for request in result.requests},
            question,
            {str(request): decisions_of(result, request) for request in result.requests},
        )


class _OverTime(NamedTuple):
    """What the section about time shows: names, {metric: its chart, compressed}, rows of changes, notes."""

    names: Sequence[str]
    charts: Mapping[str, str]
    config: Mapping[str, Any]
    changes: Sequence[Sequence[str]]
    notes: Sequence[str]


class _StoredRuns:
    """The runs in some places; a file is opened again only when its time or size has changed."""

    def __init__(self, places: Places) -> None:
        self._places = [Path(p) for p in ([places] if isinstance(places, str | os.PathLike) else places)]
        self._opened: dict[Path, tuple[tuple[int, int], Run | str]] = {}
        self._not_searched: list[tuple[str, str]] = []

    @property
    def title(self) -> str | None:
        """The heading of the page, where one folder is shown."""
        return f"Results in {self._places[0].resolve().name}" if len(self._places) == 1 else None

    @property
    def folder(self) -> str:
        """The prefix of the names of the files, such as "results/"; empty where they are paths."""
        if len(self._places) > 1:
            return ""
        place = self._places[0]
        folder = (place.parent if [*self._opened] == [place] else place).as_posix()
        return "" if folder == "." else f"{folder.rstrip('/')}/"

    @property
    def runs(self) -> list[Run]:
        return [run for _, run in self._opened.values() if isinstance(run, Run)]

    @property
    def unopened(self) -> list[tuple[str, str]]:
        """(file, reason) of what is not a result, or cannot be read now."""
        failed = [(self._label(p), why) for p, (_, why) in self._opened.items() if isinstance(why, str)]
        return [*failed, *self._not_searched]

    def html(self, title: str | None, refresh: float | None) -> str:
        """Return the page of these runs."""
        title = title or self.title
        return board_html(self.runs, self.unopened, title=title, refresh=refresh, folder=self.folder)

    def look(self) -> bool:
        """Open what is new or has changed; whether anything did."""
        before = (self._opened, self._not_searched)
        opened: dict[Path, tuple[tuple[int, int], Run | str]] = {}
        for path in self._paths():
            try:
                facts = (path / "manifest.json" if path.is_dir() else path).stat()
            except FileNotFoundError:  # it went away since the folder was read
                continue
            except OSError as error:  # such as a link that leads to itself
                opened[path] = ((0, 0), f"It cannot be read: {error.strerror}.")
                continue
            stamp = (facts.st_mtime_ns, facts.st_size)
            known = self._opened.get(path)
            if known is None or known[0] != stamp:
                try:
                    known = (stamp, Run.of(load(path), self._label(path)))
                except RecsysError as error:
                    known = (stamp, str(error))
            opened[path] = known
        self._opened = opened
        return (self._opened, self._not_searched) != before

    def _paths(self) -> list[Path]:
        paths: dict[Path, None] = {}
        self._not_searched = []
        for place in self._places:
            if place.is_file():
                paths[place] = None
                continue
            paths |= dict.fromkeys(result_paths(place))
            for folder in sorted(place.iterdir()):
                found = [] if not folder.is_dir() or folder in paths else [*folder.glob("*.json")]
                if found:
                    count = plural(len(found), "JSON file")
                    reason = f"a folder with {count}, which is not searched. Name it as well."
                    self._not_searched.append((folder.name, reason))
        return list(paths)

    def _label(self, path: Path) -> str:
        """Return the file as the page names it: its name if all come from one folder."""
        return path.name if len(self._places) == 1 else str(path)


def write_board(
    path: str | os.PathLike[str],
    results: Places | Evaluation | Mapping[str, Evaluation] | Sequence[Evaluation],
    *,
    title: str | None = None,
    refresh: float | None = None,
) -> Path:
    """Write a board of many results as one HTML file that opens from disk, offline.

    Args:
        path: the file to write.
        results: a folder of saved results (as `recsys run` and `evaluation.save` write them), several folders
            and files, an evaluation, {name: evaluation}, or a list of evaluations.
        title: the page's heading.
        refresh: after how many seconds the opened page reads its file again; by default never.

    Returns:
        The path of the file.

    Raises:
        InputError: there is no result at all.
        MissingExtraError: jinja2 or vl-convert is not installed.

    >>> import recsys, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> recsys.evaluate({1: [3, 5]}, {1: {5}}, ["mrr"]).save(folder / "als.json")
    >>> write_board(folder / "board.html", folder).name
    'board.html'
    """
    unopened: list[tuple[str, str]] = []
    folder = ""
    named = _in_memory(results)
    if named:
        runs = [Run.of(result, "", name) for name, result in named]
    else:
        stored = _StoredRuns(cast("Places", results))
        stored.look()
        runs, unopened, title = stored.runs, stored.unopened, title or stored.title
        folder = stored.folder
    if not runs:
        reason = f": {unopened[0][1]}" if unopened else "."
        hint = "recsys evaluate … --save FILE saves one."
        raise InputError(f"there is no result to show{reason}", hint=hint)
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_text(target, board_html(runs, unopened, title=title, refresh=refresh, folder=folder))
    return target


def watch_board(
    path: str | os.PathLike[str],
    places: Places,
    *,
    title: str | None = None,
    refresh: float | None = None,
    every: float = 1.0,
) -> Iterator[tuple[int, int]]:
    """Write the board again whenever a result comes, changes or goes, without an end.

    The page is replaced at once or not at all. A file that could not be opened, such as one that is still
    being written, is tried again when its time or size has changed; so is a folder that is gone for a moment,
    as while another takes its place.

    Args:
        path: the file to write.
        places: a folder of saved results, or several folders and files.
        title: the page's heading.
        refresh: after how many seconds the opened page reads its file again; by default never.
        every: seconds between two looks at the files.

    Yields:
        After each writing: how many runs the page shows, and how many files it could not open.
    """
    stored, target = _StoredRuns(places), Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    first = True
    while True:
        has_changed = False
        try:
            has_changed = stored.look()
        except OSError:  # the folder is gone for a moment
            if first:
                raise
        if has_changed or first:
            write_text(target, stored.html(title, refresh))
            yield len(stored.runs), len(stored.unopened)
            first = False
        time.sleep(every)


def board_html(
    runs: Sequence[Run],
    unopened: Sequence[tuple[str, str]] = (),
    *,
    title: str | None = None,
    refresh: float | None = None,
    folder: str = "",
) -> str:
    """Return the board as text; see write_board. `folder` precedes the files in the commands it shows."""
    if refresh is not None and not 0 < refresh < math.inf:
        raise InputError(f"refresh={refresh!r} is not a time to wait.", hint="Pass seconds above 0.")
    runs = sorted(runs, key=lambda run: (run.finished, run.file), reverse=True)
    metrics: dict[str, Metric] = {}
    for run in runs:
        metrics |= {name: metric for name, metric in run.metrics.items() if name not in metrics}
    names = Counter(run.name for run in runs)
    values = np.array([[run.values.get(m, math.nan) for run in runs] for m in metrics], dtype="<f8")
    cautions = list(dict.fromkeys(caution for run in runs for caution in run.cautions))
    over_time = _over_time(runs, metrics)
    data = {
        "metrics": [{"name": name, "better": metric.better} for name, metric in metrics.items()],
        "runs": [
            [run.file, run.name, run.finished, run.sha256, run.users, run.conventions,
             [cautions.index(caution) for caution in run.cautions]]
            for run in runs
        ],
        "questions": {
            part: _numbered([run.question[part] for run in runs])
            for part in ("users", "truth", "conventions", "catalogue", *_PARTS)
        },
        "asked": {part: [run.question[part] for run in runs] for part in _PARTS},
        "cautions": [f"{caution.sentence} [{caution.code}]" for caution in cautions],
        "values": base64.b64encode(values.tobytes()).decode("ascii"),
        "charts": over_time.charts,
        "config": over_time.config,
        "refresh": refresh,
        "folder": folder,
    }  # fmt: skip
    facts = [
        plural(len(runs), "run"),
        plural(len(names), "name"),
        plural(len(metrics), "metric"),
    ]
    moments = [run.finished for run in runs if run.finished]
    if moments:
        first, last = _day_and_time(moments[-1]), _day_and_time(moments[0])
        facts.append(first if first == last else f"{first} to {last}")
    rows = [
        {
            "run": run,
            "when": _day_and_time(run.finished),
            "cells": [format_cell(run.values[m]) if m in run.values else "" for m in metrics],
            "codes": [caution.code for caution in run.cautions],
        }
        for run in runs
    ]
    return offline_page(
        "board", data, draws=bool(over_time.charts), title=title or "Board of results", facts=facts,
        metrics=metrics, rows=rows, over_time=over_time, unopened=unopened, refresh=refresh,
    )  # fmt: skip


def _over_time(runs: Sequence[Run], metrics: Mapping[str, Metric]) -> _OverTime:
    """Return the metrics over time of names with several runs."""
    counts = Counter(run.name for run in runs if run.finished)
    history = ResultHistory([
        Night(run.finished, run.name, metric, value, math.nan, math.nan, run.users, run.file,
              run.decisions[metric])
        for run in runs
        for metric, value in run.values.items()
        if run.finished and counts[run.name] > 1 and math.isfinite(value)
    ])  # fmt: skip
    series = dict(history.series())
    found = history.changes()
    changed = {name for name, _ in found}
    names = [name for name, count in counts.most_common() if count > 1]
    drawn = sorted(names, key=lambda name: name not in changed)[:_MAX_LINES]
    packed: dict[str, str] = {}
    config: Mapping[str, Any] = {}
    for metric in metrics:
        by_name = {name: series[name, metric] for name in drawn if len(series.get((name, metric), ())) > 1}
        if not by_name:
            continue
        moments = [night.finished for name in by_name for night, _ in found.get((name, metric), ())]
        points = {name: [(n.finished, n.value) for n in nights] for name, nights in by_name.items()}
        chart = charts.history(points, metric=metric, changes=list(dict.fromkeys(moments)))
        config = chart.spec["config"]
        text = json.dumps(chart.page_spec, ensure_ascii=False, separators=(",", ":"))
        packed[metric] = base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode("ascii")
    changes = [
        [name, metric, _day_and_time(night.finished), f"{change.before:.4f}", f"{change.after:.4f}",
         f"{change.p_value:.2g}", change.note]
        for (name, metric), rows in found.items()
        for night, change in rows
    ]  # fmt: skip
    changes.sort(key=lambda row: row[2], reverse=True)
    notes = []
    if len(names) > len(drawn):
        notes.append(
            f"The picture shows {_MAX_LINES} of the {len(names):,} names with several runs: those with a "
            "change of level, then those with the most runs; recsys history FOLDER --name NAME prints any."
        )
    unlike = history.notes()
    notes += [f"{note}." for note in unlike[:3]]
    if len(unlike) > 3:
        notes.append(f"{len(unlike) - 3:,} more notes of this kind; recsys history FOLDER prints all.")
    too_few = len(history.too_few_nights())
    if too_few:
        notes.append(
            f"{too_few:,} of {len(series):,} series have fewer than {MIN_NIGHTS} runs: too few to tell a "
            "change of level from noise."
        )
    return _OverTime(drawn, packed, config, changes, notes)


def _numbered(keys: Sequence[str | None]) -> list[int | None]:
    """Equal keys as equal small numbers; what is not known stays None."""
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    return [None if key is None else numbers[key] for key in keys]


def _in_memory(results: Any) -> list[tuple[str, Evaluation]]:
    """Return (name, result) of evaluations; nothing if these are paths."""
    if isinstance(results, str | os.PathLike):
        return []
    if isinstance(results, Mapping) and not isinstance(results, Evaluation):
        named = list(results.items())
    else:
        several = results if isinstance(results, Sequence) else [results]
        named = [(getattr(one, "name", None) or f"run {n}", one) for n, one in enumerate(several, 1)]
        if all(isinstance(one, str | os.PathLike) for one in several):
            return []
    for name, result in named:
        if not isinstance(result, Evaluation):
            raise came_as(name, result, hint="Pass a folder, paths, evaluations, or {name: evaluation}.")
    return named


def _in_utc(text: str) -> str:
    """Return a time in UTC, in one form, so that times sort as text; "" for anything else.

    >>> _in_utc("2026-01-01T02:00:00+01:00"), _in_utc("yesterday")
    ('2026-01-01T01:00:00Z', '')
    """
    try:
        moment = dt.datetime.fromisoformat(text)
        moment = moment.astimezone(dt.UTC) if moment.tzinfo else moment
    except (OverflowError, ValueError):
        return ""
    return f"{moment:%Y-%m-%dT%H:%M:%S}Z"


def _day_and_time(moment: str) -> str:
    return moment[:16].replace("T", " ")
