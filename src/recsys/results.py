"""What an evaluation hands back: a mapping that prints, and the tables behind it.

The numbers and the conventions they were made under travel together; a result file has a part that is
reproducible byte for byte (`result`, hashed) and one that is not (`run`).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from recsys import tables
from recsys.conventions import Conventions
from recsys.engine import merge, summarise
from recsys.errors import MergeError, RecsysError
from recsys.plan import Request
from recsys.types import Array, Float, Partial, PerCase

SCHEMA = 1


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
    ) -> None:
        self.partial = partial
        self.requests = list(requests)
        self.conventions = conventions
        self.notes = dict(notes or {})
        self._by = by
        self._again = again
        self.overall: dict[str, float] = summarise(partial, requests)

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
        return {name: int((~np.isnan(col)).sum()) for name, col in self.per_case.columns.items()}

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
        if self._by is None:
            return {}
        return {label: summarise(self.partial, self.requests, mask) for label, mask in self._by.items()}

    @property
    def by_sizes(self) -> dict[Any, int]:
        """How many cases each group holds."""
        return {label: int(mask.sum()) for label, mask in (self._by or {}).items()}

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

    def to_dict(self) -> dict[str, float]:
        return dict(self.overall)

    def to_frame(self, kind: str = "pandas") -> Any:
        """metric, value, cases as a pandas, polars or arrow table; with `by=` one block a group."""
        return tables.frame(self._columns(), kind)

    def to_markdown(self) -> str:
        return tables.markdown(self._columns())

    def to_latex(self) -> str:
        return tables.latex(self._columns())

    def to_json(self, *, indent: int | None = 2) -> str:
        """A document with a reproducible, hashed `result` and a `run` part with versions."""
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
        text = json.dumps(result, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        digest = hashlib.sha256(text.encode()).hexdigest()
        document = {"result": result, "sha256": digest, "run": run_facts()}
        return json.dumps(document, indent=indent, ensure_ascii=False)

    def _columns(self) -> dict[str, list[Any]]:
        rows = [("", self.overall)] + [(label, row) for label, row in self.by.items()]
        flat = [(label, name, value) for label, row in rows for name, value in row.items()]
        columns: dict[str, list[Any]] = {"group": [str(r[0]) for r in flat]} if self._by else {}
        columns |= {"metric": [r[1] for r in flat], "value": [r[2] for r in flat]}
        columns["cases"] = [self._n_in_mean(r[0], r[1]) for r in flat]
        return columns

    def _n_in_mean(self, label: Any, name: str) -> int:
        column = self.per_case.columns[name]
        inside = ~np.isnan(column)
        return int((inside & self._by[label]).sum() if self._by and label in self._by else inside.sum())

    def __getstate__(self) -> dict[str, Any]:
        """What goes to another process: everything but the way back to the lists."""
        return {**self.__dict__, "_again": None}

    def __repr__(self) -> str:
        return "\n".join([tables.text(self._columns()), "", *self._footnotes()])

    def _repr_html_(self) -> str:
        return tables.html(self._columns(), self._footnotes())

    def _footnotes(self) -> list[str]:
        clusters = self.per_case.clusters
        n_users = None if clusters is None else len(set(clusters.tolist()))
        return tables.footnotes(self.counts, self.conventions, self.notes, n_users=n_users)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Evaluation):
            return NotImplemented if not isinstance(other, Mapping) else dict(self) == dict(other)
        same = list(self.overall) == list(other.overall) and self.conventions == other.conventions
        mine, theirs = self.per_case, other.per_case
        return (
            same
            and np.array_equal(mine.ids, theirs.ids)
            and all(np.array_equal(mine.columns[n], theirs.columns[n], equal_nan=True) for n in self.overall)
        )

    __hash__ = None  # type: ignore[assignment]


def _plain(label: Any) -> Any:
    if isinstance(label, np.generic):
        label = label.item()
    return label if isinstance(label, str | int | bool | None) else str(label)


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
