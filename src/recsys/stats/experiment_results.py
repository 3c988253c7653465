"""What an online experiment hands back: one lift a variant and metric, and whether the groups are sound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from recsys.errors import UnknownNameError
from recsys.stats.inference_results import Interval
from recsys.stats.verdicts import said_p

_SHOWN = (
    "metric", "kind", "variant", "control", "control_value", "variant_value", "difference", "lift", "p_value",
    "adjusted_p", "n_control", "n_variant", "variance_saved", "verdict",
)  # fmt: skip


@dataclass(frozen=True)
class SampleRatio:
    """Are the groups as large as planned? Chi-square; `ok` is False when the assignment or log is broken."""

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
        """One line a variant and metric, then whether the groups are as large as planned."""
        lines = [f"{r.variant} against {r.control}, {r.metric} ({r.kind}): {r.verdict}" for r in self.rows]
        sizes = ", ".join(f"{arm} {n:,}" for arm, n in self.sample_ratio.counts.items())
        health = "as planned" if self.sample_ratio.ok else "NOT as planned: find out why first"
        ratio = f"group sizes {sizes}: {health} ({said_p(self.sample_ratio.p_value, 'none')})"
        notes = dict.fromkeys(note for r in self.rows for note in r.notes)
        return "\n".join([*lines, ratio, self.family, *self.notes, *notes])

    def to_frame(self) -> Any:
        """Every number of every row as a pandas table."""
        import pandas as pd

        return pd.DataFrame(
            [
                {
                    **{name: getattr(r, name) for name in _SHOWN},
                    "low": r.interval.low,
                    "high": r.interval.high,
                    "lift_low": r.lift_interval.low,
                    "lift_high": r.lift_interval.high,
                    **_looked(r),
                }
                for r in self.rows
            ]
        )


def _looked(row: Lift) -> dict[str, float | None]:
    """What there is besides when the experiment is looked at while it runs."""
    wide = row.sequential_interval
    if wide is None:
        return {}
    name = "boundary" if row.sequential_p is None else "sequential_p"
    return {name: getattr(row, name), "sequential_low": wide.low, "sequential_high": wide.high}
