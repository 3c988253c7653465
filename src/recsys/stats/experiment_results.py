"""The result of an online experiment: one lift per variant and metric, and a check of the group sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from recsys.errors import UnknownNameError
from recsys.stats.inference_results import Interval
from recsys.stats.verdicts import format_p

_FRAME_FIELDS = (
    "metric", "kind", "variant", "control", "control_value", "variant_value", "difference", "lift", "p_value",
    "adjusted_p", "n_control", "n_variant", "variance_saved", "verdict",
)  # fmt: skip


@dataclass(frozen=True)
class SampleRatio:
    """Chi-square test of the planned group sizes; `ok` is False if the assignment or the log is broken."""

    counts: dict[str, int]
    expected: dict[str, float]
    statistic: float
    p_value: float
    ok: bool


@dataclass(frozen=True)
class Lift:
    """One variant against the control on one metric."""

    metric: str
    kind: str
    variant: str
    control: str
    control_value: float
    variant_value: float
    difference: float
    interval: Interval
    lift: float
    lift_interval: Interval
    p_value: float
    adjusted_p: float
    n_control: int
    n_variant: int
    variance_saved: float = 0.0
    sequential_p: float | None = None
    sequential_interval: Interval | None = None
    boundary: float | None = None
    verdict: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Experiment:
    """All variants against the control; read `sample_ratio` first."""

    rows: tuple[Lift, ...]
    sample_ratio: SampleRatio
    family: str
    notes: tuple[str, ...] = ()

    def __getitem__(self, key: tuple[str, str]) -> Lift:
        """The row of (variant, metric)."""
        for row in self.rows:
            if (row.variant, row.metric) == key:
                return row
        raise UnknownNameError("variant and metric", key, (f"{r.variant}, {r.metric}" for r in self.rows))

    def __str__(self) -> str:
        """One line per variant and metric, then whether the groups are as large as planned."""
        lines = [f"{r.variant} against {r.control}, {r.metric} ({r.kind}): {r.verdict}" for r in self.rows]
        sizes = ", ".join(f"{arm} {n:,}" for arm, n in self.sample_ratio.counts.items())
        health = "as planned" if self.sample_ratio.ok else "NOT as planned: find out why first"
        ratio = f"group sizes {sizes}: {health} ({format_p(self.sample_ratio.p_value, 'none')})"
        notes = dict.fromkeys(note for r in self.rows for note in r.notes)
        return "\n".join([*lines, ratio, self.family, *self.notes, *notes])

    def to_frame(self) -> Any:
        """Every number of every row as a pandas table."""
        import pandas as pd

        return pd.DataFrame(
            [
                {
                    **{name: getattr(r, name) for name in _FRAME_FIELDS},
                    "low": r.interval.low,
                    "high": r.interval.high,
                    "lift_low": r.lift_interval.low,
                    "lift_high": r.lift_interval.high,
                    **_sequential_columns(r),
                }
                for r in self.rows
            ]
        )


def _sequential_columns(row: Lift) -> dict[str, float | None]:
    """The additional columns of a sequential analysis."""
    interval = row.sequential_interval
    if interval is None:
        return {}
    name = "boundary" if row.sequential_p is None else "sequential_p"
    return {name: getattr(row, name), "sequential_low": interval.low, "sequential_high": interval.high}
