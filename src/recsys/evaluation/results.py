"""The result of an evaluation: a mapping that prints, and the tables behind it.

The numbers and the conventions they were computed under travel together, also into files.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast, overload

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.display.tabled import Tabled
from recsys.errors import (
    InputError,
    MergeError,
    NoRowsError,
    NotDefinedError,
    Phrase,
    RecsysError,
    UnknownNameError,
    came_as,
    check_choice,
)
from recsys.evaluation.engine import is_aggregated, merge, summarise
from recsys.evaluation.exposure import catalogue_value, exposure_by_group, exposure_key
from recsys.metrics import lookup
from recsys.metrics.ranges import Range, union_ranges
from recsys.metrics.registry import METRICS, Request
from recsys.records.arrays import (
    NO_GROUP,
    Array,
    Exposure,
    Float,
    GroupKey,
    Partial,
    PerCase,
    cached_property,
)

# What an evaluation only sometimes needs is imported by the method that needs it: a small call stays quick.
if TYPE_CHECKING:
    from recsys.display.cells import Columns
    from recsys.evaluation.asked import Asked
    from recsys.evaluation.bounds import Bounds
    from recsys.evaluation.files.result_files import MissingRows
    from recsys.evaluation.groups import Gap
    from recsys.evaluation.origin import Origin, StoredOrigin
    from recsys.evaluation.result_facts import ResultFacts
    from recsys.evaluation.uncertainty import GroupIntervals, Intervals
    from recsys.records.facts import Caution
    from recsys.report.methods import Methods, MethodsFacts
    from recsys.report.page import ReportOptions
    from recsys.stats.aggregates import Aggregate
    from recsys.stats.bootstrap import Rng
    from recsys.stats.mean_inference import Method
    from recsys.stats.results import Estimate


Missing = Literal["group", "drop", "error"]
_QUICK_VALUES = 10_000_000  # of so many values the intervals are computed within a quarter of a second
_OVERALL = object()  # the row of all groups together, which no label equals


def stored_origin(**known: Any) -> StoredOrigin:
    """Return the origin of a result whose lists are gone; what it is made of is imported for it."""
    from recsys.evaluation.origin import StoredOrigin

    return StoredOrigin(**known)


class Reported(Tabled):
    """A result that reports are made of: an evaluation, a comparison, or what holds these."""

    @property
    def _results(self) -> Any:
        """The evaluation, or the comparison."""
        return self

    def _report_inputs(self) -> dict[str, Any]:
        """Return what a report is made of, by the arguments of recsys.report.write_report."""
        return {"results": self._results}

    def report(self, path: str | os.PathLike[str], **options: Unpack[ReportOptions]) -> Path:
        """Write an HTML report, making its folder; see recsys.report.write_report for further arguments."""
        from recsys.report.page import write_report

        return write_report(path, **{**self._report_inputs(), **options})

    def methods(self, **facts: Unpack[MethodsFacts]) -> Methods:
        """Return a methods paragraph for a paper, with BibTeX.

        Pass data= and split=, which are not known here.
        """
        from recsys.report.methods import methods_paragraph

        return methods_paragraph(self._results, **facts)

    @property
    def plot(self) -> Any:
        """Its pictures as matplotlib Axes: plot.bars(), .curve(), .distribution(), .strata().

        Those of a comparison have plot.forest(), .winloss(), .duel() and .tradeoff(x), too.
        """
        from recsys.report.accessors import pictures_of

        return pictures_of(self._results, "figures")

    @property
    def chart(self) -> Any:
        """The same pictures as Vega-Lite charts, which notebooks draw: chart.bars() and so on."""
        from recsys.report.accessors import pictures_of

        return pictures_of(self._results, "charts")


class Evaluation(Reported, Mapping[str, float]):
    """{metric: value} with per-case values, conventions and counts behind it.

    >>> import recsys
    >>> result = recsys.evaluate({1: [3, 5, 8], 2: [4, 5, 6]}, {1: {3, 8}, 2: {7}}, ["recall@3", "mrr"])
    >>> dict(result)
    {'recall@3': 0.5, 'mrr': 0.5}
    """

    _find = staticmethod(lookup)  # resolves metric names

    def __init__(
        self,
        partial: Partial,
        requests: Sequence[Request],
        conventions: Conventions,
        *,
        by: Mapping[Any, Array] | None = None,
        origin: Origin | None = None,
        run: Mapping[str, Any] | None = None,
    ) -> None:
        self.partial = partial
        self.requests = list(requests)
        self.conventions = conventions
        self.origin = origin or stored_origin()
        self.run = dict(run or {})
        self._by = {GroupKey.of(key): mask for key, mask in (by or {}).items()}
        self.missing_rows: MissingRows | None = None
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
            key = str(Request.parse(name, self._find))
        except RecsysError as error:
            raise KeyError(str(error)) from None
        if key not in self.overall:
            raise KeyError(f"{name!r} was not evaluated; this result holds {', '.join(self.overall)}.")
        return key

    @property
    def aggregate(self) -> Aggregate | None:
        """What makes one number of the values per case, where `aggregate=` was given; None for the mean."""
        return cast("Aggregate | None", self.requests[0].aggregate)

    @property
    def per_case(self) -> PerCase:
        """Ids and one float64 column per metric; NaN = not in the mean.

        Raises:
            NoRowsError: they were not kept, or their folder is not where the saved result says.
        """
        if self.missing_rows is not None:
            raise NoRowsError(why=self.missing_rows.why)
        return self.partial.rows

    @property
    def counts(self) -> Mapping[str, int]:
        """Cases, exclusions, repeats, ties: everything that was counted instead of silently dropped."""
        return self.partial.counts

    @property
    def facts(self) -> ResultFacts:
        """What was noticed while lists and truth were read and ranked."""
        return self.origin.facts

    @cached_property
    def notes(self) -> Mapping[str, Any]:
        """The facts by name, as files hold them."""
        return self.facts.to_notes()

    @property
    def cautions(self) -> tuple[Caution, ...]:
        """Where the numbers may answer another question than was meant: code, sentence and page of each.

        >>> import recsys
        >>> lists = {user: [user + 1, user + 2, user + 3] for user in range(5)}
        >>> recsys.evaluate(lists, {0: {2}, 4: {9}}, ["recall@20"]).cautions[0].code
        'k_beyond_lists'
        """
        return tuple(self.origin.cautions)

    @property
    def truth_keys(self) -> Array | None:
        """One number per case that tells its truth from others; None if the truth is not known any more."""
        return self.origin.truth_keys

    @property
    def asked(self) -> Asked | None:
        """What decided what was ranked and how it was judged; None where a file does not say it.

        >>> import recsys
        >>> result = recsys.evaluate(recsys.Scores([[0.9, 0.1, 0.5]]), {0: [2]}, ["mrr"], seen={0: [0]})
        >>> result.asked.candidates, result.asked.catalogue.rows, result.asked.seen.rows
        ('all items', 3, 1)
        """
        return self.origin.asked

    @cached_property
    def ranges(self) -> dict[str, Range]:
        """{metric: the least and the greatest value one case can have}; infinite where nothing limits it.

        A metric without declared bounds has them from the truth, the conventions and the length of the lists.

        >>> import recsys
        >>> result = recsys.evaluate({1: [3, 5], 2: [4]}, {1: {3, 8}, 2: {4}}, ["hit@2", "hits@2"])
        >>> result.ranges
        {'hit@2': (0.0, 1.0), 'hits@2': (0.0, 2.0)}
        """
        known = self.origin.ranges
        per_case = [request for request in self.requests if request.metric.kind != "catalogue"]
        return {str(request): known.get(str(request), request.metric.bounds) for request in per_case}

    @cached_property
    def n_cases(self) -> dict[str, int]:
        """How many cases are in each metric's mean."""
        return {str(r): self._n_in_mean("", str(r)) for r in self.requests}

    @property
    def per_user(self) -> Any:
        """A pandas table by user id with one column per metric."""
        return self.per_user_frame("pandas")

    def per_user_frame(self, kind: str = "pandas") -> Any:
        """Per-user values as a pandas (indexed by id), polars or arrow table."""
        from recsys.display.exports import frame_of

        rows, name = self.per_case, "user" if self.per_case.clusters is None else "case"
        users = {} if rows.clusters is None else {"user": rows.clusters}
        table = frame_of({name: rows.ids, **users, **rows.columns}, kind)
        return table.set_index(name) if kind == "pandas" else table

    def values_of(self, metric: str) -> Float:
        """Return one metric's per-case values, in the order of `per_case.ids`."""
        return self.per_case.columns[self._key(metric)]

    @property
    def by(self) -> dict[Any, Any]:
        """{group: {metric: value}} where `by=` was given; of several groupings {grouping: {group: …}}."""
        return self._nested(self.values_by_group)

    @property
    def by_sizes(self) -> dict[Any, Any]:
        """How many cases each group holds, by group as in `by`."""
        return self._nested({group: self._size_of(group) for group in self.values_by_group})

    @staticmethod
    def _nested(found: Mapping[GroupKey, Any]) -> dict[Any, Any]:
        """Return {label: …} of one grouping, and {grouping: {label: …}} of several."""
        nested: dict[str, dict[Any, Any]] = {group.grouping: {} for group in found}
        for group, value in found.items():
            nested[group.grouping][group.label] = value
        return nested if len(nested) != 1 else next(iter(nested.values()))

    def _size_of(self, group: GroupKey) -> int:
        if self.partial.sums:
            return self.partial.strata[group].partial.counts["in_group"]
        return int(self.group_masks[group].sum())

    @cached_property
    def values_by_group(self) -> dict[GroupKey, dict[str, float]]:
        """{group of a grouping: {metric: value}}."""
        if self.partial.sums:
            return {
                group: summarise(stratum.partial, self.requests, conventions=self.conventions)
                for group, stratum in self.partial.strata.items()
            }
        return self.values_by(self.group_masks)

    def values_by(self, masks: Mapping[Any, Array]) -> dict[Any, dict[str, float]]:
        """Return {group: {metric: value}} of groups given as masks, in the order of `per_case.ids`."""
        from recsys.evaluation.groups import values_by_group

        return values_by_group(self.partial, self.requests, self.conventions, masks)

    @cached_property
    def group_masks(self) -> dict[GroupKey, Array]:
        """{group of a grouping: which cases are in it}, in the order of `per_case.ids`.

        For a group of items: the cases that have one of its items in their truth or list.
        """
        if not self.partial.strata:
            return dict(self._by)
        if self.partial.sums:
            raise NoRowsError("who is in which group")
        from recsys.evaluation.groups import masks_of

        return masks_of(self.partial) | self._by

    def groups_in(self, by: str | None = None, missing: Missing = "group") -> dict[Any, GroupKey]:
        """Return {label: group} of one grouping, which needs no name where there is one.

        Args:
            by: the name of the grouping, such as "country", or "country x age" of a combination.
            missing: whether users without a group are a group, are left out ("drop") or raise an error.

        Raises:
            NotDefinedError: the result has no groups.
            UnknownNameError: it has no such grouping.
            InputError: users have no group, and `missing` is "error".
        """
        known = dict.fromkeys(group.grouping for group in self.values_by_group)
        if not known:
            raise NotDefinedError("there are no groups to compare.", hint=Phrase("Pass {by=} to evaluate."))
        if by is not None and not isinstance(by, str):
            raise came_as("by=", by, hint=f"Name a grouping, such as by={next(iter(known))!r}.")
        if by is None and len(known) > 1:
            raise UnknownNameError("grouping", "", known, hint="Say which.")
        name = by or next(iter(known))
        check_choice("grouping", name, known)
        check_choice("value of missing", missing, ("group", "drop", "error"))
        found = {one.label: one for one in self.values_by_group if one.grouping == name}
        if missing != "group" and NO_GROUP in found:
            without = found.pop(NO_GROUP)
            if missing == "error":
                raise InputError(
                    f"{self._size_of(without):,} users have no {without.grouping}.",
                    hint='Give each a group, or leave them out: missing="drop".',
                )
        return found

    def gaps(self, by: str | None = None) -> dict[str, Gap]:
        """Return {metric: the best and the worst group, their difference and ratio} where `by=` was given.

        Between groups of users the difference of a mean has a 95% interval. As the data chose the two groups,
        it is simultaneous over every pair of all groups (`simultaneous_over`): among equal groups of any
        number it excludes 0 in at most 5 of 100 results, while the difference itself grows with that number.
        There is none where the values per user were not kept in memory. Users without a group are left out.

        `by` names the grouping where there are several.
        """
        from recsys.evaluation.groups import gap_of, with_interval

        groups = self.groups_in(by, "drop")
        of_items = any(
            self.partial.strata[g].of == "item" for g in groups.values() if g in self.partial.strata
        )
        has_interval = not of_items and not self.partial.sums and self.per_case.weights is None
        masks = {label: self.group_masks[group] for label, group in groups.items()} if has_interval else {}
        gaps = {}
        for request in self.requests:
            name = str(request)
            values = {label: self.values_by_group[group][name] for label, group in groups.items()}
            gap = gap_of(values, request.metric.better)
            if gap.best in masks and self._is_mean(request):
                gap = with_interval(gap, self.per_case, name, masks, self.ranges.get(name))
            gaps[name] = gap
        return gaps

    def _is_mean(self, request: Request) -> bool:
        """Return whether the number is a mean over cases, and higher or lower is better."""
        name, metric = str(request), request.metric
        is_mean = metric.kind != "catalogue" and name not in self.partial.terms and request.summary is None
        return is_mean and metric.better != "zero"

    def _request(self, name: str) -> Request:
        key = self._key(name)
        return next(r for r in self.requests if str(r) == key)

    def _exposure_of(self, request: Request, stratum_partial: Partial | None = None) -> Exposure:
        if request.metric.kind != "catalogue":
            raise NotDefinedError(
                f"{request} is a mean over users, not a metric of the catalogue.",
                hint="values_of(metric) holds its value for each user.",
            )
        shown = (stratum_partial or self.partial).exposure
        return shown[exposure_key(request, request.conventions(self.conventions))]

    def exposure(self, metric: str) -> tuple[Float, Array]:
        """Return how often each item was shown, by group of users: groups x items, and the item ids."""
        exposure_counts = self._exposure_of(self._request(metric))
        return exposure_by_group(exposure_counts), exposure_counts.items.values

    def statistic(self, metric: str) -> Callable[[Float], float]:
        """Return a catalogue metric as a function of how often each item of `exposure` was shown."""
        request = self._request(metric)
        self._exposure_of(request)
        return lambda counts: catalogue_value(self.partial, request, self.conventions, counts)

    @overload
    def intervals(
        self, confidence: float = ..., *, method: Method = ..., metrics: Sequence[str] | None = ...,
        by: None = None, n_resamples: int = ..., rng: Rng = ...,
    ) -> Intervals: ...  # fmt: skip

    @overload
    def intervals(
        self, confidence: float = ..., *, method: Method = ..., metrics: Sequence[str] | None = ...,
        by: str, missing: Missing = ..., n_resamples: int = ..., rng: Rng = ...,
    ) -> GroupIntervals: ...  # fmt: skip

    def intervals(
        self,
        confidence: float = 0.95,
        *,
        method: Method = "gaffke",
        metrics: Sequence[str] | None = None,
        by: str | None = None,
        missing: Missing = "group",
        n_resamples: int = 10_000,
        rng: Rng = 0,
    ) -> Intervals | GroupIntervals:
        """Return each value with its interval, as a mapping that prints; users are resampled.

        By default the interval of a mean within known bounds is Gaffke's, which allows for values that were
        not seen (Clopper and Pearson's of 0 and 1); without bounds it is that of t. It also replaces other
        methods where few users differ, or weigh nearly everything, and a note says so.

        Args:
            confidence: how often such intervals hold what they estimate.
            method: "gaffke", "t", "normal", "studentised", "bca" or "percentile", for means over users;
                metrics of the catalogue have a jackknife over 64 groups of users, percentiles that of order
                statistics and trimmed means that of the winsorised variance.
            metrics: which metrics; all by default.
            by: the name of a grouping: {group: its intervals}, each by itself.
            missing: users without a group are one ("group"), are left out ("drop") or raise an "error".
            n_resamples: how often the bootstraps draw.
            rng: a seed or a numpy Generator.
        """
        from recsys.evaluation.uncertainty import GroupIntervals, Intervals, warn_if_stopped
        from recsys.records.facts import note
        from recsys.stats.results import warn_once

        names = [metrics] if isinstance(metrics, str) else metrics
        selected = self.requests if names is None else [self._request(name) for name in names]
        options = {"method": method, "confidence": confidence, "n_resamples": n_resamples, "rng": rng}

        def found(partial: Partial) -> dict[str, Estimate]:
            estimates = {str(r): self._estimate(r, partial, **options) for r in selected}
            return {name: warn_if_stopped(value, self.facts) for name, value in estimates.items()}

        with warn_once():
            if by is not None:
                groups = self.groups_in(by, missing)
                return GroupIntervals(
                    {label: Intervals(found(self.partial_of(g))) for label, g in groups.items()}
                )
            notes = [note("all_users")] if self.values_by_group else []
            return Intervals(found(self.partial), notes=notes)

    def of_group(self, group: GroupKey) -> Evaluation:
        """Return the result of one group alone."""
        return Evaluation(
            self.partial_of(group), self.requests, self.conventions, origin=stored_origin(ranges=self.ranges)
        )

    def partial_of(self, group: GroupKey) -> Partial:
        """Return what is known of one group alone."""
        stratum = self.partial.strata.get(group)
        if stratum is not None and (stratum.of == "item" or self.partial.sums):
            return stratum.partial
        mask, rows = self.group_masks[group], self.per_case
        fields = {name: getattr(rows, name) for name in ("clusters", "weights")}
        own = {name: None if field is None else field[mask] for name, field in fields.items()}
        columns = {name: column[mask] for name, column in rows.columns.items()}
        terms = {name: (a[mask], b[mask]) for name, (a, b) in self.partial.terms.items()}
        part = self.partial if stratum is None else stratum.partial
        return replace(part, per_case=PerCase(rows.ids[mask], columns, **own), terms=terms, sums={})

    def quantiles(
        self, levels: Sequence[float] = (0.1, 0.25, 0.5, 0.75, 0.9), *, metrics: Sequence[str] | None = None
    ) -> dict[str, dict[float, float]]:
        """Return {metric: {level: the least value that this share of users does not exceed}}, without NaNs.

        With weights, the share of the weight. Metrics of the catalogue have no values per user.

        Args:
            levels: shares between 0 and 1.
            metrics: which metrics; by default all that have values per user.

        >>> import recsys
        >>> lists = {user: [user % 4] for user in range(8)}
        >>> result = recsys.evaluate(lists, {user: {0} for user in lists}, ["hit@1"])
        >>> result.quantiles([0.5, 0.9])
        {'hit@1': {0.5: 0.0, 0.9: 1.0}}
        """
        from recsys.stats.sums import CaseValues

        names = [metrics] if isinstance(metrics, str) else metrics
        wanted = [r for r in self.requests if r.metric.kind != "catalogue"]
        wanted = wanted if names is None else [self._request(name) for name in names]
        for level in levels:
            if not 0 <= level <= 1:
                raise InputError(f"level {level!r} is not a share.", hint="Pass levels such as [0.1, 0.9].")
        found = {}
        for name in map(str, wanted):
            sums = self.partial.sums.get(name)
            if sums is not None and (sums.counted is not None or self.partial.per_case is None):
                cases = CaseValues.of_sums(sums)
            else:
                cases = CaseValues.of(self.values_of(name), self.per_case.weights)
            found[name] = dict(zip(levels, cases.quantiles(levels), strict=True))
        return found

    def _estimate(self, request: Request, partial: Partial, **options: Any) -> Estimate:
        from recsys.evaluation.uncertainty import estimate

        bounds = self.ranges.get(str(request))
        return estimate(partial, request, self.conventions, bounds=bounds, **options)

    def bounds(self) -> Bounds:
        """Return each value with the best value any lists could reach, and the mean value of random rankings.

        Each limit says how it was obtained: exact, drawn (the mean of random rankings, with standard error)
        or found (lists that reach it were built; better ones are not excluded). Items that could not be shown
        (seen, unknown, not eligible) are not attainable; an unknown limit is n/a with the reason.
        """
        return self.origin.bounds(self.overall)

    def merge(self, *others: Evaluation) -> Evaluation:
        """Return the result over the cases of all results; equal to evaluating them at once."""
        for other in others:
            if not isinstance(other, Evaluation):
                raise MergeError(
                    f"a result merges with other results, not with {type(other).__name__}.",
                    hint="Write first.merge(second, third), or first.merge(*rest) for a list.",
                )
            for what, mine, theirs in (
                ("metrics", ", ".join(self), ", ".join(other)),
                ("conventions", self.conventions, other.conventions),
                ("aggregates", self.aggregate or "mean", other.aggregate or "mean"),
            ):
                if mine != theirs:
                    raise MergeError(
                        f"the results have different {what}: {mine} and {theirs}.",
                        hint=Phrase("Evaluate every part in the same way; {explain()} says what differs."),
                    )
        from recsys.evaluation.asked import join_asked
        from recsys.evaluation.cautions import unique_cautions

        parts, keys = (self, *others), None
        merged = merge([part.partial for part in parts])
        known = [part.truth_keys for part in parts if part.truth_keys is not None]
        if merged.per_case is not None and len(known) == len(parts):
            ids = np.concatenate([part.per_case.ids for part in parts])
            keys = np.concatenate(known)[np.argsort(ids, kind="stable")]
        origin = stored_origin(
            facts=reduce(type(self.facts).joined, (part.facts for part in parts)),
            cautions=unique_cautions(part.cautions for part in parts),
            keys=keys,
            asked=join_asked([part.asked for part in parts]),
            ranges=union_ranges(*(part.ranges for part in parts)),
        )
        return Evaluation(merged, self.requests, self.conventions, origin=origin)

    @property
    def has_lists(self) -> bool:
        """Whether lists and truth are available for `under` and `explain`."""
        return self.origin.has_lists

    def under(self, conventions: Conventions | str | Mapping[str, Any]) -> Evaluation:
        """Return the same lists and truth under other conventions."""
        return self.origin.under(Conventions.of(conventions))

    def to_dict(self) -> dict[str, float]:
        return dict(self.overall)

    def log_to(
        self,
        tracker: Any,
        *,
        step: int | None = None,
        prefix: str = "",
        per_user: bool | None = None,
        report: bool | str | os.PathLike[str] = False,
    ) -> None:
        """Log the values to MLflow, Weights & Biases, TensorBoard, a Lightning logger or a function.

        Values that are not finite are left out. A tracker is recognised by its logging method; MLflow and
        Weights & Biases also keep files.

        Args:
            tracker: the mlflow or wandb module, a run, a writer, a logger, or a function.
            step: the epoch, or whatever the tracker counts.
            prefix: put before every name.
            per_user: keep the values per user, too, as per_user.parquet (.csv without pyarrow); by default
                where the tracker keeps files, no step is given and the values are there.
            report: keep a report, too: True writes one, a path is that of one which was written.

        >>> import recsys
        >>> result = recsys.evaluate({1: [3, 5]}, {1: {5}}, ["mrr"])
        >>> result.log_to(lambda name, value, step: print(name, value, step), step=3)
        mrr 0.5 3
        """
        from recsys.display.trackers import log_numbers

        keeps_files = callable(getattr(tracker, "log_artifact", None))
        if (per_user or report) and not keeps_files:
            raise InputError(
                f"a {type(tracker).__name__} keeps no files.",
                hint="per_user= and report= are for the mlflow module and for wandb.",
            )
        if not isinstance(report, bool) and not Path(report).is_file():
            raise InputError(f"there is no report {os.fspath(report)}.", hint="Pass what report() returned.")
        log_numbers(tracker, {prefix + name: value for name, value in self.overall.items()}, step)
        if per_user is None:
            per_user = keeps_files and step is None and self.partial.per_case is not None
        if per_user or report:
            from tempfile import TemporaryDirectory

            kind = {} if hasattr(tracker, "log_metrics") else {"type": "evaluation"}  # W&B wants to know
            with TemporaryDirectory() as folder:
                for path in self._write_files(Path(folder), prefix, per_user=per_user, report=report):
                    tracker.log_artifact(str(path), **kind)

    def _write_files(
        self, folder: Path, prefix: str, *, per_user: bool, report: bool | str | os.PathLike[str]
    ) -> Iterator[Path]:
        """Yield the files that a tracker is to keep, written into a folder; a report may be there already."""
        start = re.sub(r"[^\w.-]", "_", prefix)
        if per_user:
            from importlib.util import find_spec

            from recsys.inputs.files.reader import write_table

            kind, ending = ("arrow", "parquet") if find_spec("pyarrow") else ("pandas", "csv")
            path, table = folder / f"{start}per_user.{ending}", self.per_user_frame(kind)
            write_table(path, table if kind == "arrow" else table.reset_index())
            yield path
        if report:
            yield self.report(folder / f"{start}report.html") if isinstance(report, bool) else Path(report)

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return a document with a reproducible, hashed `result` and a `run` part with versions."""
        from recsys.evaluation.files.result_files import document_of

        return json.dumps(document_of(self), indent=indent, ensure_ascii=False)

    def save(self, path: str | os.PathLike[str], *, name: str | None = None, **facts: Any) -> None:
        """Write the whole result, per-user values included, as one JSON file that `recsys.load` reads back.

        Args:
            path: the file; it is replaced at once or not at all. The folder that holds the values per user
                holds the whole result already: there, name and facts are added to it.
            name: the name of the model in comparisons and histories; the file's name by default.
            facts: further facts about the run, such as commit="1f3a".
        """
        from recsys.evaluation.files.result_files import write_result

        model_name = Path(path).stem if name is None else name
        write_result(path, self, groups=self._by or {}, run={"name": model_name, **facts})

    @cached_property
    def name(self) -> str | None:
        """The name of the model, if the result was saved under one."""
        name = self.run.get("name")
        return None if name is None else str(name)

    def _all_columns(self) -> Columns:
        """metric, value and cases; with `by=` also group."""
        return {"cases" if name == "users" else name: cells for name, cells in self._columns().items()}

    def to_text(self, *, intervals: bool | None = False) -> str:
        """Return the printed table, with groups under headings.

        Args:
            intervals: whether to add the 95% interval of each value; None: where that takes no time.

        >>> import recsys
        >>> lists, truth = {user: [user % 3] for user in range(60)}, {user: {0} for user in range(60)}
        >>> print(recsys.evaluate(lists, truth, ["hit@1"]).to_text(intervals=True))
        metric   value  95% interval      users
        ------  ------  ----------------  -----
        hit@1   0.3333  [0.2169, 0.4669]     60
        <BLANKLINE>
        60 users
        conventions: default
        """
        from recsys.display.text_tables import text_page

        columns, notes, sections = self._printed(intervals=intervals)
        return text_page(columns, notes, sections=sections)

    def __repr__(self) -> str:
        from recsys.display.text_tables import text_page

        return text_page(self._columns(), self._footnotes())

    def _printed(
        self, *, intervals: bool | None = None
    ) -> tuple[Columns, Sequence[object], Sequence[str] | None]:
        columns, notes = self._columns_with_intervals(intervals=intervals)
        groups, groupings = columns.pop("group", None), columns.pop("grouping", None)
        if groups and groupings:
            groups = [
                f"{name}: {label}" if name else label for name, label in zip(groupings, groups, strict=True)
            ]
        return columns, notes, groups

    def _columns_with_intervals(self, *, intervals: bool | None) -> tuple[dict[str, list[Any]], list[object]]:
        """Return the columns and the notes; with the intervals of the values of all users, see `to_text`."""
        from recsys.errors import notes_only
        from recsys.evaluation.uncertainty import Intervals, is_quick

        columns, notes = self._columns(), self._footnotes()
        chosen = [str(r) for r in self.requests if intervals or (intervals is None and is_quick(r))]
        if intervals is None and sum(self.n_cases[name] for name in chosen) > _QUICK_VALUES:
            chosen = []
        if not chosen:
            return columns, notes
        found, without_rows = Intervals({}), []
        with notes_only():
            for name in chosen:
                try:
                    own = self.intervals(metrics=[name])
                    found = Intervals({**found, **own}, notes=own.notes)
                except NoRowsError:
                    without_rows.append(name)
        cells = ["" for _ in columns["metric"]]
        for row, name in enumerate(self.overall):
            interval = found[name].interval if name in found else None
            if interval is not None and interval.low <= interval.high:
                cells[row] = f"[{interval.low:.4f}, {interval.high:.4f}]"
        missing = [name for name in self.overall if name not in chosen]
        remarks = found.remarks()
        if missing:
            how = Phrase(" takes longer: {Evaluation.intervals()} gives it")
            remarks.append(f"the interval of {', '.join(missing)}" + how)
        if without_rows:
            remarks.append(f"no interval of {', '.join(without_rows)}: the values per user were not kept")
        place = list(columns).index("value") + 1
        names = [*list(columns)[:place], "95% interval", *list(columns)[place:]]
        columns["95% interval"] = cells
        n_own = len(notes) - len(self.cautions)
        return {name: columns[name] for name in names}, [*notes[:n_own], *remarks, *notes[n_own:]]

    def _columns(self) -> dict[str, list[Any]]:
        """metric, value, users (cases where a user has several); with `by=` one block per group."""
        rows: list[tuple[Any, dict[str, float]]] = [(_OVERALL, self.overall), *self.values_by_group.items()]
        flat = [(group, name, value) for group, row in rows for name, value in row.items()]
        columns: dict[str, list[Any]] = {}
        if self.values_by_group:
            whole = "(overall)" if "overall" in self.by else "overall"
            if len({group.grouping for group in self.values_by_group}) > 1:
                columns["grouping"] = ["" if r[0] is _OVERALL else r[0].grouping for r in flat]
            columns["group"] = [whole if r[0] is _OVERALL else str(r[0].label) for r in flat]
        columns |= {"metric": [r[1] for r in flat], "value": [r[2] for r in flat]}
        units = "users" if self.n_users is None else "cases"
        columns[units] = [self._n_in_mean(r[0], r[1]) for r in flat]
        return columns

    def _n_in_mean(self, group: Any, name: str) -> int:
        stratum = self.partial.strata.get(group)
        if self._request(name).metric.kind == "catalogue":
            part = self.partial if stratum is None else stratum.partial
            return int(self._exposure_of(self._request(name), part).cases.sum()) if part.exposure else 0
        sums = (self.partial if stratum is None else stratum.partial).sums
        if sums:
            return sums[name].n_cases
        inside = ~np.isnan(self.per_case.columns[name])
        if stratum is not None and stratum.of == "item":
            inside = ~np.isnan(stratum.partial.rows.columns[name])
        elif group in self.group_masks:
            inside &= self.group_masks[group]
        return int(inside.sum())

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for another process: everything except the access to the lists."""
        from recsys.evaluation.origin import StoredOrigin

        return {**self.__dict__, "origin": StoredOrigin.of(self.origin)}

    @cached_property
    def n_users(self) -> int | None:
        """How many users there are where a user has several cases, else None."""
        if not self.partial.sums and self.per_case.clusters is not None:
            return len(set(self.per_case.clusters.tolist()))
        return self.facts.n_users

    def _footnotes(self) -> list[object]:
        from recsys.evaluation.result_facts import footnotes_of

        notes = footnotes_of(
            self.counts, self.conventions, self.facts, n_users=self.n_users, catalogue=self.partial.catalogue
        )
        owners = {str(r): METRICS.owner_of(r.metric.body.__module__) for r in self.requests}
        notes += [
            f"{name} of {owner} has no value for anybody"
            for name, owner in owners.items()
            if owner is not None and math.isnan(self.overall[name])
        ]
        return [*self._aggregate_note(), *notes, *self.cautions]

    def _aggregate_note(self) -> list[str]:
        """Return what the values are, where they are not means over cases."""
        if self.aggregate is None:
            return []
        others = [str(r) for r in self.requests if not is_aggregated(self.partial, r)]
        unit = "users" if self.n_users is None else "cases"
        stays = f"; {', '.join(others)} {'is' if len(others) == 1 else 'are'} of all {unit} together"
        return [f"value: the {self.aggregate.words} over {unit}{stays if others else ''}"]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Evaluation):
            return NotImplemented if not isinstance(other, Mapping) else dict(self) == dict(other)
        same = list(self.overall) == list(other.overall) and self.conventions == other.conventions
        same = same and self.aggregate == other.aggregate
        mine, theirs = self.partial.per_case, other.partial.per_case
        if mine is None or theirs is None:
            from recsys.evaluation.files.result_files import document_of

            return same and document_of(self)["sha256"] == document_of(other)["sha256"]
        return (
            same
            and np.array_equal(mine.ids, theirs.ids)
            and all(np.array_equal(mine.columns[n], theirs.columns[n], equal_nan=True) for n in mine.columns)
            and [*map(repr, self.overall.values())] == [*map(repr, other.overall.values())]
        )

    __hash__ = None  # type: ignore[assignment]


def evaluation_of(result: Any) -> Any:
    """Return the evaluation itself: of a path where one was saved, or of results that carry theirs."""
    if isinstance(result, str | os.PathLike):
        return load(result)
    return result if isinstance(result, Evaluation) else getattr(result, "evaluation", result)


def load(path: str | os.PathLike[str]) -> Evaluation:
    """Read a saved evaluation; the result the file states must follow from its values.

    >>> import recsys, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "als.json"
    >>> recsys.evaluate({1: [3, 5]}, {1: {5}}, ["mrr"]).save(path)
    >>> recsys.load(path).name, dict(recsys.load(path))
    ('als', {'mrr': 0.5})
    """
    from recsys.evaluation.files.result_files import read_result

    return read_result(path, Evaluation)
