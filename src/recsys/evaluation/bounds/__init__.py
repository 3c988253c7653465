"""The range of a metric under the same protocol: the best value of any lists, and the value of random lists.

Every list fills its places with candidates of its user. If that determines a limit, the limit is exact. If a
random ranking has no closed form, random lists are drawn; if the best value cannot be derived, good lists are
built. The ordinary engine measures both: no metric has a second definition here. `best_and_floor` finds the
limits; this module holds the table of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from recsys.display.cells import Columns
from recsys.display.exports import frame_of
from recsys.display.markup import markdown_table
from recsys.display.tabled import Tabled
from recsys.metrics.registry import Request

__all__ = ["Bounds", "Limits", "frame_of"]

HOW = {
    "exact": "no list is better, and some list is as good; of the floor: the expectation itself",
    "drawn": "the mean over random rankings that were drawn, with its standard error",
    "found": "lists that reach it were built; better ones are not excluded",
}
_MIN_RELATIVE_SPAN = 1e-6
_MAX_SHARE = 10.0  # a value further away than ten times the span says that the span is small, not more
_ROUNDING = 1e-9  # relative to the value, in case both ends are 0 except for rounding
CAPTION = "best: the best any list can reach; floor: a random ranking of the candidates, on average"


class Limits(NamedTuple):
    """The value of a metric, the mean value of random rankings, and the best attainable value.

    `floor_how` and `best_how` say how each was obtained: "exact", "drawn" or "found" (see HOW), or "" if it
    is NaN; `why` then gives the reason. `floor_error` is the standard error of a drawn floor.
    """

    value: float
    floor: float
    best: float
    floor_how: str = ""
    best_how: str = ""
    floor_error: float = 0.0
    why: str = ""

    @property
    def reached(self) -> float:
        """The share of the distance from floor to best that the value covers; NaN if it is hardly any."""
        span = self.best - self.floor
        negligible = max(
            _MIN_RELATIVE_SPAN * max(abs(self.best), abs(self.floor)),
            _ROUNDING * abs(self.value),
            abs(self.value - self.floor) / _MAX_SHARE,
        )
        return (self.value - self.floor) / span if abs(span) >= negligible and span else math.nan

    @property
    def reason(self) -> str:
        """Why a limit or `reached` is NaN; empty if nothing is."""
        if self.why or math.isnan(self.value) or not math.isnan(self.reached):
            return self.why
        return (
            f"floor {self.floor:.6g} and best {self.best:.6g} are too close together for a share of the way "
            "between them"
        )


class Bounds(Tabled, Mapping[str, Limits]):
    """{metric: its value, floor and best attainable value}; prints as a table.

    `notes` adds what a reader must know: lists that break the protocol, how many random lists were drawn.
    """

    def __init__(
        self,
        limits: Mapping[str, Limits],
        notes: Sequence[str] = (),
        *,
        caption: str = CAPTION,
        parse: Callable[[str], Request] = Request.parse,
    ) -> None:
        self._limits = dict(limits)
        self._caption, self._parse = caption, parse
        self.notes = tuple(notes)

    def __getitem__(self, metric: str) -> Limits:
        return self._limits[metric if metric in self._limits else str(self._parse(metric))]

    def __iter__(self) -> Iterator[str]:
        return iter(self._limits)

    def __len__(self) -> int:
        return len(self._limits)

    def _all_columns(self) -> Columns:
        """Also how each limit was obtained."""
        rows = self._limits.values()
        details = {
            name: [getattr(r, name) for r in rows] for name in ("floor_how", "best_how", "floor_error")
        }
        return self._value_columns() | details | {"why": [r.reason for r in rows]}

    def to_markdown(self) -> str:
        """Return a pipe table with footnotes below it."""
        return "\n".join(
            [markdown_table(self._value_columns() | self._method_columns()), "", *self._footnotes()]
        )

    def _columns(self) -> dict[str, list[Any]]:
        exact = all(r.floor_how == r.best_how == "exact" for r in self._limits.values())
        return self._value_columns() | ({} if exact else self._method_columns())

    def _value_columns(self) -> dict[str, list[Any]]:
        rows = self._limits.values()
        return {
            "metric": list(self._limits),
            "value": [r.value for r in rows],
            "floor": [r.floor for r in rows],
            "best": [r.best for r in rows],
            "reached": [r.reached for r in rows],
        }

    def _method_columns(self) -> dict[str, list[Any]]:
        rows = self._limits.values()
        return {
            "floor is": [r.floor_how or "n/a" for r in rows],
            "best is": [r.best_how or "n/a" for r in rows],
        }

    def _footnotes(self) -> list[str]:
        rows = self._limits.values()
        lines = [self._caption]
        used = {how for r in rows for how in (r.floor_how, r.best_how)}
        lines += [f"{how}: {HOW[how]}" for how in ("drawn", "found") if how in used]
        lines += self.notes
        return lines + [f"{name}: {row.reason}" for name, row in self._limits.items() if row.reason]
