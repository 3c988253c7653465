"""`comparison.by`: is a model better for each group of users? The same pairs again within each group.

The rows of a metric in all groups of a grouping are one family of the correction, and their intervals hold
together, so that the group that gains or loses most may be looked for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from recsys.display.cells import Columns
from recsys.display.tabled import Tabled
from recsys.display.words import merged
from recsys.errors import NotDefinedError, UnknownNameError, notes_only
from recsys.evaluation.results import Evaluation
from recsys.evaluation.uncertainty import mean_column
from recsys.metrics.registry import Request
from recsys.records.arrays import Partial, PerCase
from recsys.records.facts import note
from recsys.stats.comparison import compare_tables
from recsys.stats.comparison_table import ComparisonTable, Options, Row, display_columns, number_columns

Runs = Mapping[str, Sequence[Evaluation]]


class GroupRows(Tabled, Sequence[Row]):
    """One row per group, pair of models and metric, each with its verdict; prints as a table.

    Attributes:
        grouping: its name.
        rows: of the headline first; `row.group` is the label.
        without: {label: how many users} of groups in which some model has no value.
    """

    def __init__(self, grouping: str, tables: Sequence[ComparisonTable], without: Mapping[Any, int]) -> None:
        self.grouping, self.tables, self.without = grouping, tuple(tables), dict(without)
        self.rows = tuple(row for table in tables for row in table.rows)

    def __getitem__(self, key: Any) -> Any:
        """Return a row by its place, or by (group, metric) or (group, model, metric)."""
        if not isinstance(key, tuple):
            return self.rows[key]
        label, *model, metric = key
        name = str(Request.parse(metric))
        for row in self.rows:
            if row.group == label and row.metric == name and model in ([], [row.model]):
                return row
        raise UnknownNameError("row", ", ".join(map(str, key)), [f"{r.group}, {r.metric}" for r in self.rows])

    def __len__(self) -> int:
        return len(self.rows)

    def by_lift(self, metric: str | None = None) -> list[Row]:
        """Return the rows of a metric (the headline by default), those where the model loses most first."""
        name = self.rows[0].metric if metric is None else str(Request.parse(metric))
        rows = [row for row in self.rows if row.metric == name]
        lower = name in self.tables[0].options.lower_is_better
        return sorted(rows, key=lambda row: (-row.difference if lower else row.difference, str(row.group)))

    def _with_groups(self, columns: Sequence[Columns]) -> Columns:
        joined: dict[str, list[Any]] = {self.grouping: [row.group for row in self.rows]}
        for table in columns:
            for name, cells in table.items():
                joined.setdefault(name, []).extend(cells)
        return joined

    def _all_columns(self) -> Columns:
        return self._with_groups([number_columns(table) for table in self.tables])

    def _columns(self) -> Columns:
        return self._with_groups([display_columns(table) for table in self.tables])

    def _footnotes(self) -> list[object]:
        n = len({row.group for row in self.rows})
        lines: list[object] = [note("over_groups", n=n, correction=self.tables[0].options.correction)]
        if self.without:
            lines.append(note("empty_groups", groups=self.without))
        notes = (one.about(f"{self.grouping} {row.group}") for row in self.rows for one in row.notes)
        return [*lines, *merged(notes)]


class ByGrouping(dict[str, GroupRows]):
    """{grouping: its rows}."""

    def __missing__(self, name: str) -> GroupRows:
        raise UnknownNameError("grouping", name, self)


def compare_groups(
    runs: Runs,
    grouping: str,
    requests: Sequence[Request],
    *,
    options: Options,
    pairs: Sequence[tuple[str, str]],
    chosen: int = 0,
) -> GroupRows:
    """Compare pairs of models within each group of a grouping, metric by metric.

    Args:
        runs: the results of each model.
        grouping: which all of them have.
        requests: the metrics.
        options: those of the comparison of all users.
        pairs: (model, baseline).
        chosen: they are those of the best of so many models.
    """
    parts = {name: [_parts(one, grouping, options.missing) for one in of] for name, of in runs.items()}
    every = [one for of in parts.values() for one in of]
    sizes = {label: part.n for one in every for label, part in one.items()}
    tables, without = [], dict[Any, int]()
    own = replace(
        options, headline="", covariates=None, strata=None, covariate_means=None, stratum_shares=None
    )
    for request in requests:
        metric = str(request)
        names = {str(at): g for at, g in enumerate(sizes) if all(g in p and p[g].has(request) for p in every)}
        without |= {label: n for label, n in sizes.items() if label not in names.values()}
        if not names:
            continue
        results = [one for of in runs.values() for one in of]
        lows, highs = zip(*(one.ranges.get(metric, request.metric.bounds) for one in results), strict=True)
        is_value = not any(metric in one.partial.terms for one in results)
        ends = (min(lows), max(highs)) if is_value else (-math.inf, math.inf)
        columns = {
            name: [_columns(one, part, names, request) for one, part in zip(of, parts[name], strict=True)]
            for name, of in runs.items()
        }
        lower = frozenset(names if metric in options.lower_is_better else ())
        with notes_only():
            table = compare_tables(
                columns, pairs=pairs, metrics=list(names), options=replace(own, lower_is_better=lower),
                ranges=dict.fromkeys(names, ends), chosen=chosen,
            )  # fmt: skip
        rows = tuple(
            replace(row, group=names[row.metric], metric=metric, verdict=replace(row.verdict, metric=metric))
            for row in table.rows
        )
        tables.append(replace(table, rows=rows, options=replace(options, headline=str(requests[0]))))
    if not tables:
        raise NotDefinedError(f"no group of {grouping!r} has values of every model.")
    return GroupRows(grouping, tables, without)


class _KnownGroup(NamedTuple):
    """One group of a result: which of its cases are in it, and what is known of them."""

    inside: Any
    partial: Partial
    n: int

    def has(self, request: Request) -> bool:
        """Return whether some case of the group has a value."""
        return bool((~np.isnan(mean_column(self.partial, request))).any())


def _parts(result: Evaluation, grouping: str, missing: Any) -> dict[Any, _KnownGroup]:
    """Return {label: what is known of the group}."""
    parts = {}
    for label, group in result.groups_in(grouping, missing).items():
        partial, mask = result.partial_of(group), result.group_masks[group]
        whole = len(partial.rows) == len(mask)  # a group of items, of which all cases may have some
        parts[label] = _KnownGroup(slice(None) if whole else mask, partial, int(mask.sum()))
    return parts


def _columns(
    result: Evaluation, parts: Mapping[Any, _KnownGroup], names: Mapping[str, Any], request: Request
) -> PerCase:
    """Return one column per group, NaN for all other cases."""
    columns = {}
    for name, label in names.items():
        columns[name] = np.full(len(result.per_case), math.nan)
        columns[name][parts[label].inside] = mean_column(parts[label].partial, request)
    return replace(result.per_case, columns=columns)
