"""compare(): is the new model really better? Evaluations in, a table with verdicts out.

Pairs by id, corrects over the whole family, and prints one line a model and metric; the arithmetic is
in recsys.stats, this module only hands it the tables and shows what comes back.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from recsys import tables
from recsys.errors import ConventionError, InputError, UnknownNameError
from recsys.plan import Request
from recsys.results import Evaluation
from recsys.stats.choices import Options
from recsys.stats.compare import ComparisonTable, Row, compare_tables

Evaluations = Mapping[str, Evaluation | Sequence[Evaluation]] | Sequence[Evaluation]


class Comparison(Sequence[Row]):
    """One row a model and metric, each with its verdict; prints as a table."""

    def __init__(self, table: ComparisonTable) -> None:
        self.table = table

    @property
    def rows(self) -> tuple[Row, ...]:
        return self.table.rows

    @property
    def family(self) -> str:
        """What the correction is over."""
        return self.table.family

    @property
    def missing(self) -> Mapping[str, Any]:
        """Users a model lacks that another one has: {model: ids}."""
        return self.table.missing

    def __getitem__(self, key: Any) -> Any:
        """A row by place, by (model, metric), or by (model, baseline, metric) where there are several."""
        if not isinstance(key, tuple):
            return self.rows[key]
        model, *base, metric = key
        name = str(Request.parse(metric))
        found = [r for r in self.rows if (r.model, r.metric) == (model, name) and base in ([], [r.baseline])]
        if len(found) == 1:
            return found[0]
        known = [f"{r.model}, {r.baseline}, {r.metric}" for r in self.rows]
        if not found:
            raise UnknownNameError("comparison", ", ".join(map(str, key)), known)
        raise InputError(
            f"{model!r} is compared with {', '.join(repr(r.baseline) for r in found)} on {name}.",
            hint=f"Say which: comparison[{model!r}, {found[0].baseline!r}, {name!r}].",
        )

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def to_frame(self, kind: str = "pandas") -> Any:
        """Every number of every row as a pandas, polars or arrow table."""
        return tables.frame(self._columns(), kind)

    def to_markdown(self) -> str:
        return tables.markdown(self._shown())

    def to_latex(self) -> str:
        return tables.latex(self._shown())

    def to_json(self, *, indent: int | None = 2) -> str:
        columns = self._columns()
        rows = [{name: _number(column[i]) for name, column in columns.items()} for i in range(len(self.rows))]
        document = {
            "family": self.family,
            "rows": rows,
            "missing": {n: len(v) for n, v in self.missing.items()},
        }
        return json.dumps(document, indent=indent, ensure_ascii=False)

    def __repr__(self) -> str:
        return "\n".join([tables.text(self._shown()), "", *self._footnotes()])

    def _repr_html_(self) -> str:
        return tables.html(self._shown(), self._footnotes())

    def _footnotes(self) -> list[str]:
        notes = dict.fromkeys(note for row in self.rows for note in row.notes)
        return [self.family, *self.table.notes, *notes]

    def _shown(self) -> dict[str, list[Any]]:
        return {
            "model": [r.model for r in self.rows],
            "metric": [r.metric for r in self.rows],
            "value": [r.value for r in self.rows],
            "against": [r.baseline for r in self.rows],
            "its value": [r.baseline_value for r in self.rows],
            "won/tied/lost": [f"{r.wins:,}/{r.ties:,}/{r.losses:,}" for r in self.rows],
            "verdict": [r.verdict for r in self.rows],
        }

    def _columns(self) -> dict[str, list[Any]]:
        plain = (
            "model", "baseline", "metric", "value", "baseline_value", "difference", "relative", "statistic",
            "p_value", "adjusted_p", "wins", "ties", "losses", "n_cases", "n_units", "test", "verdict",
        )  # fmt: skip
        columns: dict[str, list[Any]] = {name: [getattr(r, name) for r in self.rows] for name in plain}
        columns |= {
            "low": [r.interval.low for r in self.rows],
            "high": [r.interval.high for r in self.rows],
            "effect": [r.effect.value for r in self.rows],
            "effect_low": [r.effect.interval.low for r in self.rows],
            "effect_high": [r.effect.interval.high for r in self.rows],
            "effect_label": [r.effect.label for r in self.rows],
        }
        return columns


def compare(
    evaluations: Evaluations,
    baseline: str | None = None,
    metrics: str | Sequence[str] | None = None,
    **choices: Any,
) -> Comparison:
    """Say whether models differ, by how much and how surely, paired user by user.

    Args:
        evaluations: {name: evaluation}, or {name: [run, run, …]} for several runs of a model, or a list.
        baseline: the model the others are held against; every pair without one.
        metrics: which metrics; those all evaluations share without.
        choices: test= ("t", "permutation", "wilcoxon", "sign", "studentised", "bca"), interval=, correction=
            ("holm", "bonferroni", "hochberg", "bh", "by", "max-t"), effect=, confidence=, margin= for
            equivalence, rope= for the Bayesian view, n_resamples=, rng=; see recsys.stats.Options.

    >>> import recsys
    >>> truth = {u: {u} for u in range(300)}
    >>> old = recsys.evaluate({u: [u if u % 3 == 0 else -1] for u in truth}, truth, ["hit@1"])
    >>> new = recsys.evaluate({u: [u if u % 2 == 0 else -1] for u in truth}, truth, ["hit@1"])
    >>> compare({"old": old, "new": new}, baseline="old")["new", "hit@1"].verdict
    'better: +50.0% [20.4, 79.6], d_z 0.24 small, p_holm < 1e-4'
    """
    named = (
        evaluations
        if isinstance(evaluations, Mapping)
        else dict(zip(_letters(len(evaluations)), evaluations, strict=True))
    )
    runs = {name: [e] if isinstance(e, Evaluation) else list(e) for name, e in named.items()}
    _check(runs)
    wanted = (
        None
        if metrics is None
        else [str(Request.parse(m)) for m in ([metrics] if isinstance(metrics, str) else metrics)]
    )
    lower = {
        str(r) for several in runs.values() for e in several for r in e.requests if r.metric.better == "lower"
    }
    for name in choices:
        if name not in Options.__dataclass_fields__:
            raise UnknownNameError("choice", name, Options.__dataclass_fields__)
    options = Options(lower_is_better=frozenset(lower), **choices)
    per_case = {
        name: several[0].per_case if len(several) == 1 else [e.per_case for e in several]
        for name, several in runs.items()
    }
    return Comparison(compare_tables(per_case, baseline=baseline, metrics=wanted, options=options))


def _letters(n: int) -> list[str]:
    return [f"model {i}" for i in range(1, n + 1)]


def _check(runs: Mapping[str, list[Evaluation]]) -> None:
    first: Evaluation | None = None
    for name, several in runs.items():
        for result in several:
            if not isinstance(result, Evaluation):
                raise InputError(
                    f"{name!r} is {type(result).__name__}.", hint="Pass what recsys.evaluate returned."
                )
            if first is not None and result.conventions != first.conventions:
                raise ConventionError(
                    f"{name!r} was evaluated under other conventions ({result.conventions}) than the rest "
                    f"({first.conventions}), so the difference would be theirs.",
                    hint="recsys.explain(a, b) says what differs.",
                )
            first = first or result


def _number(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
