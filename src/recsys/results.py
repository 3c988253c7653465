"""What an evaluation hands back: a mapping that prints, and the tables behind it.

The numbers and the conventions they were made under travel together; a result file has a part that is
reproducible byte for byte (`result`, hashed) and one that is not (`run`).
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from recsys import tables
from recsys.conventions import Conventions
from recsys.engine import merge, summarise
from recsys.errors import FileError, MergeError, NotDefinedError, RecsysError
from recsys.exposure import by_group, catalogue_value, exposure_key
from recsys.limits import Bounds
from recsys.plan import Request
from recsys.saved import fingerprint, pack, unpack
from recsys.stats.cautions import said_once
from recsys.stats.intervals import Method
from recsys.stats.outcomes import Estimate
from recsys.stats.resample import Rng
from recsys.types import Array, Exposure, Float, Partial, PerCase
from recsys.uncertainty import Intervals, estimate

SCHEMA = 1
_NORMAL = 1.959963984540054
_FEWEST = 10  # users a group must have before its mean has an interval
_PARTS = {"result", "sha256", "cases", "cases_sha256", "run"}
_RESULT = "Save one with evaluation.save(path), or recsys evaluate … --save FILE."


class Evaluation(Mapping[str, float]):
    """{metric: value} with per-case values, conventions and counts behind it.

    >>> import recsys
    >>> result = recsys.evaluate({1: [3, 5, 8], 2: [4, 5, 6]}, {1: {3, 8}, 2: {7}}, ["recall@3", "mrr"])
    >>> dict(result)
    {'recall@3': 0.5, 'mrr': 0.5}
    """

    def __init__(
        self,
        partial: Partial,
        requests: Sequence[Request],
        conventions: Conventions,
        *,
        by: Mapping[Any, Array] | None = None,
        notes: Mapping[str, Any] | None = None,
        again: Callable[[Conventions], Evaluation] | None = None,
        limits: Callable[[Mapping[str, float]], Bounds] | None = None,
        run: Mapping[str, Any] | None = None,
    ) -> None:
        self.partial = partial
        self.requests = list(requests)
        self.conventions = conventions
        self.notes = dict(notes or {})
        self.run = dict(run or {})
        self._by = by
        self._again = again
        self._limits = limits
        self.overall: dict[str, float] = summarise(partial, requests, conventions=conventions)

    def __getitem__(self, name: str) -> float:
        return self.overall[self._key(name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self.overall)

    def __len__(self) -> int:
        return len(self.overall)

    def _key(self, name: str) -> str:
        if name in self.overall:
            return name
        try:
            key = str(Request.parse(name))
        except RecsysError as error:
            raise KeyError(str(error)) from None
        if key not in self.overall:
            raise KeyError(f"{name!r} was not evaluated; this result holds {', '.join(self.overall)}.")
        return key

    @property
    def per_case(self) -> PerCase:
        """Ids and one float64 column a metric; NaN = not in the mean."""
        return self.partial.per_case

    @property
    def counts(self) -> Mapping[str, int]:
        """Cases, exclusions, repeats, ties: what was counted instead of silently dropped."""
        return self.partial.counts

    @cached_property
    def n_cases(self) -> dict[str, int]:
        """How many cases are in each metric's mean."""
        return {str(r): self._n_in_mean("", str(r)) for r in self.requests}

    @property
    def per_user(self) -> Any:
        """A pandas table by user id with one column a metric."""
        return self.per_user_frame("pandas")

    def per_user_frame(self, kind: str = "pandas") -> Any:
        """Per-user values as a pandas (indexed by id), polars or arrow table."""
        return tables.per_case_table(self.per_case, kind)

    def values_of(self, metric: str) -> Float:
        """One metric's per-case values, in the order of `per_case.ids`."""
        return self.per_case.columns[self._key(metric)]

    @cached_property
    def by(self) -> dict[Any, dict[str, float]]:
        """{group: {metric: value}} where `by=` was given."""
        out = {}
        for label, stratum in self.partial.strata.items():
            if stratum.of == "item":
                out[label] = summarise(stratum.partial, self.requests, conventions=self.conventions)
                continue
            of_users = summarise(self.partial, self.requests, self.group_masks[label])
            shelves = [r for r in self.requests if r.metric.kind == "catalogue"]
            out[label] = of_users | summarise(stratum.partial, shelves, conventions=self.conventions)
        given = self._by or {}
        return out | {label: summarise(self.partial, self.requests, mask) for label, mask in given.items()}

    @cached_property
    def group_masks(self) -> Mapping[Any, Array]:
        """{group: which cases are in it} where `by=` was given, in the order of `per_case.ids`.

        A group of items is a mask of the cases that have something of it in their truth or list.
        """
        masks = {}
        for label, stratum in self.partial.strata.items():
            rows = stratum.partial.per_case
            if stratum.of == "user":
                masks[label] = np.isin(self.per_case.ids, rows.ids)
            else:
                known = [~np.isnan(column) for column in rows.columns.values()]
                masks[label] = np.logical_or.reduce(known) if known else np.ones(len(rows.ids), dtype=bool)
        return masks | dict(self._by or {})

    @property
    def by_sizes(self) -> dict[Any, int]:
        """How many cases each group holds."""
        return {label: int(mask.sum()) for label, mask in self.group_masks.items()}

    def gaps(self) -> dict[str, Gap]:
        """{metric: the best and the worst group, their difference and ratio} where `by=` was given.

        Between groups of users the difference of a mean has a 95% interval, as if the two groups had been
        named beforehand; with many groups, the extreme two differ by chance alone.
        """
        if not self.by:
            raise NotDefinedError("there are no groups to compare.", hint="Pass by= to evaluate.")
        out = {}
        for request in self.requests:
            name = str(request)
            gap = _gap(request, {label: row[name] for label, row in self.by.items()})
            is_mean = name in self.per_case.columns and name not in self.partial.terms
            if is_mean and gap.best in self.group_masks and self.per_case.weights is None:
                gap = gap._replace(interval=self._between(name, gap))
            out[name] = gap
        return out

    def _between(self, name: str, gap: Gap) -> tuple[float, float] | None:
        """A normal interval of the difference of two groups' means; None where groups share users."""
        masks = [self.group_masks[label] for label in (gap.best, gap.worst)]
        columns = [self.per_case.columns[name][mask] for mask in masks]
        known = [column[~np.isnan(column)] for column in columns]
        of_items = any(stratum.of == "item" for stratum in self.partial.strata.values())
        if of_items or (masks[0] & masks[1]).any() or min(map(len, known)) < _FEWEST:
            return None
        error = math.sqrt(sum(float(column.var(ddof=1)) / len(column) for column in known))
        return gap.difference - _NORMAL * error, gap.difference + _NORMAL * error

    def _request(self, name: str) -> Request:
        key = self._key(name)
        return next(r for r in self.requests if str(r) == key)

    def _exposure_of(self, request: Request, held: Partial | None = None) -> Exposure:
        if request.metric.kind != "catalogue":
            raise NotDefinedError(
                f"{request} is a mean over users, not a metric of the catalogue.",
                hint="values_of(metric) holds its value for each user.",
            )
        shown = (held or self.partial).exposure
        return shown[exposure_key(request, request.conventions(self.conventions))]

    def exposure(self, metric: str) -> tuple[Float, Array]:
        """How often each item was shown, by group of users: groups x items, and the item ids."""
        known = self._exposure_of(self._request(metric))
        return by_group(known), known.items.values

    def statistic(self, metric: str) -> Callable[[Float], float]:
        """A catalogue metric as a function of how often each item was shown, as `exposure` orders them."""
        request = self._request(metric)
        self._exposure_of(request)
        return lambda counts: catalogue_value(self.partial, request, self.conventions, counts)

    def intervals(
        self,
        confidence: float = 0.95,
        *,
        method: Method = "t",
        metrics: Sequence[str] | None = None,
        n_resamples: int = 10_000,
        rng: Rng = 0,
    ) -> Intervals:
        """Each value with its interval, as a mapping that prints: users are what is resampled.

        Args:
            confidence: how often such intervals hold what they estimate.
            method: "t", "normal", "studentised", "bca" or "percentile", for means over users; metrics of the
                catalogue have a jackknife over 64 groups of users.
            metrics: which; all without.
            n_resamples: how often the bootstraps draw.
            rng: a seed or a numpy Generator.
        """
        wanted = self.requests if metrics is None else [self._request(name) for name in metrics]
        choices = {"method": method, "confidence": confidence, "n_resamples": n_resamples, "rng": rng}
        with said_once():
            return Intervals({str(r): self._estimate(r, **choices) for r in wanted})

    def _estimate(self, request: Request, **choices: Any) -> Estimate:
        return estimate(self.partial, request, self.conventions, **choices)

    def bounds(self) -> Bounds:
        """Each value beside the best any list could reach here and what a random ranking has on average.

        Relevant items that could not be shown (seen, unknown, not eligible) cannot be reached; where a metric
        has no such limit, or none is known, it is n/a.
        """
        if self._limits is None:
            raise RecsysError(
                "this result was merged or read from a file, so the lists behind it are gone.",
                hint="Call bounds() on what evaluate returned.",
            )
        return self._limits(self.overall)

    def merge(self, *others: Evaluation) -> Evaluation:
        """The result over the cases of all; equal to evaluating them at once."""
        for other in others:
            if other.conventions != self.conventions:
                raise MergeError(
                    f"the results have different conventions: {self.conventions} and {other.conventions}.",
                    hint="recsys.explain(a, b) says what differs.",
                )
        whole = merge([self.partial, *(o.partial for o in others)])
        return Evaluation(whole, self.requests, self.conventions, notes=self.notes)

    def under(self, conventions: Conventions | str | Mapping[str, Any]) -> Evaluation:
        """The same lists and truth under other conventions."""
        if self._again is None:
            raise RecsysError(
                "this result was merged or read from a file, so the lists behind it are gone.",
                hint="Evaluate the lists again with the other conventions.",
            )
        return self._again(Conventions.of(conventions))

    def report(self, path: str | os.PathLike[str], **given: Any) -> Path:
        """Write an HTML report about it; see recsys.report.write_report for what else may be given."""
        from recsys.report.html import write_report

        return write_report(path, self, **given)

    @property
    def plot(self) -> Any:
        """Its pictures as matplotlib Axes: plot.bars(), plot.curve(), plot.distribution(), plot.strata()."""
        from recsys.report.pictures import EvaluationPictures

        return EvaluationPictures(self, "figures")

    @property
    def chart(self) -> Any:
        """The same pictures as Vega-Lite charts, which notebooks draw: chart.curve() and so on."""
        from recsys.report.pictures import EvaluationPictures

        return EvaluationPictures(self, "charts")

    def to_dict(self) -> dict[str, float]:
        return dict(self.overall)

    def log_to(self, tracker: Any, *, step: int | None = None, prefix: str = "") -> None:
        """Hand the values to MLflow, Weights & Biases, TensorBoard, a Lightning logger or a function."""
        from recsys.trackers import log

        log(self.overall, tracker, step=step, prefix=prefix)

    def to_frame(self, kind: str = "pandas") -> Any:
        """metric, value, cases as a pandas, polars or arrow table; with `by=` one block a group."""
        return tables.frame(self._columns(), kind)

    def to_markdown(self) -> str:
        return tables.markdown(self._columns())

    def to_latex(self) -> str:
        return tables.latex(self._columns())

    def to_json(self, *, indent: int | None = 2) -> str:
        """A document with a reproducible, hashed `result` and a `run` part with versions."""
        return json.dumps(self._document(), indent=indent, ensure_ascii=False)

    def save(self, path: str | os.PathLike[str], *, name: str | None = None, **facts: Any) -> None:
        """Write all there is, per-user values included, as one JSON file that `recsys.load` reads back.

        Args:
            path: the file; it changes at once or not at all.
            name: what the model is called in comparisons and histories; the file's name unless said.
            facts: anything else worth keeping about the run, such as commit="1f3a".
        """
        from recsys.files import write_text

        document = self._document()
        document["run"] |= {"name": Path(path).stem if name is None else name, **facts}
        document["cases"] = pack({"partial": self.partial, "by": self._by or {}, "notes": _kept(self.notes)})
        document["cases_sha256"] = fingerprint(document["cases"])
        write_text(path, json.dumps(document, indent=1, ensure_ascii=False) + "\n")

    @cached_property
    def name(self) -> str | None:
        """What the model was called when the result was saved."""
        return self.run.get("name")

    def _document(self) -> dict[str, Any]:
        from recsys.provenance import run_facts

        result = {
            "schema": SCHEMA,
            "metrics": [
                {"metric": n, "value": _number(v), "cases": self.n_cases[n]} for n, v in self.overall.items()
            ],
            "by": [
                {"group": _plain(label), "metrics": {n: _number(v) for n, v in row.items()}}
                for label, row in self.by.items()
            ],
            "counts": dict(self.counts),
            "conventions": self.conventions.to_dict(),
        }
        if self.partial.catalogue is not None:
            result["catalogue"] = {"items": self.partial.catalogue.n, "known_by": self.partial.catalogue.how}
        return {"result": result, "sha256": fingerprint(result), "run": self.run or run_facts()}

    def _columns(self) -> dict[str, list[Any]]:
        rows = [("", self.overall)] + [(label, row) for label, row in self.by.items()]
        flat = [(label, name, value) for label, row in rows for name, value in row.items()]
        columns: dict[str, list[Any]] = {"group": [str(r[0]) for r in flat]} if self.by else {}
        columns |= {"metric": [r[1] for r in flat], "value": [r[2] for r in flat]}
        columns["cases"] = [self._n_in_mean(r[0], r[1]) for r in flat]
        return columns

    def _n_in_mean(self, label: Any, name: str) -> int:
        stratum = self.partial.strata.get(label) if label != "" or label in self.by else None
        if name not in self.per_case.columns:
            held = self.partial if stratum is None else stratum.partial
            return int(self._exposure_of(self._request(name), held).cases.sum()) if held.exposure else 0
        inside = ~np.isnan(self.per_case.columns[name])
        if stratum is not None and stratum.of == "item":
            inside = ~np.isnan(stratum.partial.per_case.columns[name])
        elif label in self.group_masks:
            inside &= self.group_masks[label]
        return int(inside.sum())

    def __getstate__(self) -> dict[str, Any]:
        """What goes to another process: everything but the way back to the lists."""
        return {**self.__dict__, "_again": None, "_limits": None}

    def __repr__(self) -> str:
        return "\n".join([tables.text(self._columns()), "", *self._footnotes()])

    def _repr_html_(self) -> str:
        return tables.html(self._columns(), self._footnotes())

    def _footnotes(self) -> list[str]:
        clusters = self.per_case.clusters
        n_users = None if clusters is None else len(set(clusters.tolist()))
        notes = tables.footnotes(self.counts, self.conventions, self.notes, n_users=n_users)
        catalogue = self.partial.catalogue
        if catalogue is None:
            return notes
        how = " (those of train, lists and truth)" if catalogue.how == "found" else ""
        return [*notes[:-1], f"catalogue: {catalogue.n:,} items{how}", notes[-1]]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Evaluation):
            return NotImplemented if not isinstance(other, Mapping) else dict(self) == dict(other)
        same = list(self.overall) == list(other.overall) and self.conventions == other.conventions
        mine, theirs = self.per_case, other.per_case
        return (
            same
            and np.array_equal(mine.ids, theirs.ids)
            and all(np.array_equal(mine.columns[n], theirs.columns[n], equal_nan=True) for n in mine.columns)
            and [*map(repr, self.overall.values())] == [*map(repr, other.overall.values())]
        )

    __hash__ = None  # type: ignore[assignment]


class Gap(NamedTuple):
    """How far apart the groups are in one metric."""

    best: Any
    worst: Any
    difference: float
    ratio: float
    interval: tuple[float, float] | None = None


def _gap(request: Request, values: Mapping[Any, float]) -> Gap:
    known = {label: value for label, value in values.items() if not math.isnan(value)}
    if not known:
        return Gap(None, None, math.nan, math.nan)
    order = sorted(known, key=lambda label: known[label], reverse=request.metric.better != "lower")
    high, low = max(known.values()), min(known.values())
    return Gap(order[0], order[-1], high - low, low / high if high else math.nan)


def load(path: str | os.PathLike[str]) -> Evaluation:
    """An evaluation that was saved; what the file says must be what its own values give.

    >>> import recsys, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "als.json"
    >>> recsys.evaluate({1: [3, 5]}, {1: {5}}, ["mrr"]).save(path)
    >>> recsys.load(path).name, dict(recsys.load(path))
    ('als', {'mrr': 0.5})
    """
    document = _read_document(path)
    try:
        result, held = document["result"], unpack(document["cases"])
        conventions = Conventions.of(
            {
                **result["conventions"],
                "per_metric": {m: dict(r) for m, r in result["conventions"]["per_metric"]},
            }
        )
        requests = [Request.parse(row["metric"]) for row in result["metrics"]]
        made = Evaluation(
            held["partial"], requests, conventions, by=held["by"] or None, notes=held["notes"],
            run=document["run"],
        )  # fmt: skip
        again = json.loads(made.to_json())
        same = all(again[part] == document[part] for part in ("result", "sha256"))
    except FileError:
        raise
    except (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise FileError(f"{path} is no result that recsys saved ({error!r}).", hint=_RESULT) from error
    if document["cases_sha256"] != fingerprint(document["cases"]):
        raise FileError(
            f"{path}: the part about users does not match its checksum.",
            hint="It was changed after it was saved; evaluate again.",
        )
    if not same:
        raise FileError(
            f"{path}: the values per user do not give the result the file states.",
            hint="It was changed after it was saved, or saved by another version; evaluate again.",
        )
    return made


def _read_document(path: str | os.PathLike[str]) -> dict[str, Any]:
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}.", hint="Check the path.") from error
    except (RecursionError, ValueError) as error:
        raise FileError(f"{path} is not JSON ({error}).", hint=_RESULT) from error
    if (
        not isinstance(document, dict)
        or not document.keys() >= _PARTS
        or not isinstance(document["run"], dict)
    ):
        raise FileError(f"{path} is no result that recsys saved with its users.", hint=_RESULT)
    return document


def _kept(notes: Mapping[str, Any]) -> dict[str, Any]:
    """What of the notes a file holds: plain values, by name."""
    out: dict[str, Any] = {}
    for name, value in notes.items():
        if isinstance(value, Mapping):
            out[name] = _kept(value)
        elif value is None or isinstance(value, bool | int | float | str):
            out[name] = value
    return out


def _plain(label: Any) -> Any:
    if isinstance(label, np.generic):
        label = label.item()
    return label if isinstance(label, str | int | bool | None) else str(label)


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
