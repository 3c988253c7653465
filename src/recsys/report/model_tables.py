"""The tables of the models: one metric against one model, all main metrics, every comparison.

`selection` holds the same numbers for every metric and group a reader may choose in the page: they
are computed here, and the page's script only shows them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from recsys.display.number_words import interval_text
from recsys.records.arrays import PValue
from recsys.records.facts import Verdict
from recsys.report.decision import correction_words, effect_name
from recsys.report.html_tables import Cell, Forest, HtmlTable, cell, table_of_rows
from recsys.report.section_numbers import (
    GroupRow,
    Triple,
    ahead_in_group,
    lifts_or_differences,
    main_metrics,
)
from recsys.report.study import Study
from recsys.stats.comparison_table import ComparisonTable, Row, number_columns, shown_verdict
from recsys.stats.sign_flips import SignFlips

_MOST_COLUMNS = 10
_FILE_COLUMNS = (
    "metric", "family", "model", "value", "baseline", "baseline_value", "difference", "low", "high",
    "own_low", "own_high", "relative", "p_value", "adjusted_p", "effect", "wins", "ties", "losses", "verdict",
)  # fmt: skip
_SIGNS = {"better": "▲", "worse": "▼", "higher": "▲", "lower": "▼"}


def verdict_shown(study: Study, row: Row) -> Verdict:
    """Return the verdict of a row; a metric of what is shown is higher or lower, not better or worse."""
    return shown_verdict(row, is_beyond_accuracy=study.is_beyond_accuracy(row.metric))


def _mark(verdict: Verdict) -> str:
    """Return a verdict with its sign."""
    return f"{_SIGNS.get(verdict.kind, '≈')} {verdict.word}"


def _tone(verdict: Verdict) -> str:
    return verdict.kind if verdict.kind in {"better", "worse"} else "unclear"


def _effect(row: Row) -> float:
    """Return the effect size; NaN for a metric of the catalogue, and where all users differ by the same."""
    return row.effect.value if row.effect.name and math.isfinite(row.effect.value) else math.nan


def _p_cell(p: float) -> Cell:
    return Cell("" if math.isnan(p) else f"{PValue(p):.2g}", p)


def ranking(study: Study) -> HtmlTable:
    """Return the models on the headline metric, best first, each against the reference."""
    metric, base = study.headline, study.reference
    values = {n: study.intervals[n, metric] for n in study.names}
    tied = study.ties_with_best
    rows = {n: study.rows[n, base, metric] for n in study.names if base and (n, base, metric) in study.rows}
    lifts, unit = lifts_or_differences(rows) if rows else ({}, "")
    ends = [v for triple in lifts.values() for v in triple if math.isfinite(v)] + [0.0]
    low, high = min(ends), max(ends)
    lines = []
    for name in study.names:
        line = [_name_cell(study, name, tied), _value_cell(values[name], values)]
        row = rows.get(name)
        if rows and row is None:
            line += [Cell("", math.nan)] * 4
        elif row is not None:
            line += _comparison_cells(row, verdict_shown(study, row), lifts[name], unit, (low, high))
        lines.append(line)
    heads = ["model", metric]
    if rows:
        lift = f"{'lift over' if unit else 'difference from'} {base}"
        heads += [lift, "adjusted p", effect_name(study), "won / tied / lost"]
    columns: dict[str, list[Any]] = {"model": study.names}
    columns |= {h: [values[n][i] for n in study.names] for i, h in enumerate((metric, "low", "high"))}
    if rows:
        columns |= {
            "verdict": [verdict_shown(study, rows[n]).word if n in rows else "" for n in study.names],
            "lift": [rows[n].relative if n in rows else None for n in study.names],
            "adjusted p": [rows[n].adjusted_p if n in rows else None for n in study.names],
        }
    title = f"The models on {metric}" + (f", against {base}" if rows else "")
    numeric = [False, *(True for _ in heads[1:])]
    return HtmlTable("ranking", title, heads, lines, numeric, columns, {"adjusted p": "p"})


def _name_cell(study: Study, name: str, tied: Sequence[str]) -> Cell:
    notes = ["baseline"] if name == study.baseline else []
    if name in tied:
        notes.append("ties with the best")
    return Cell(
        name, None, "\n".join(notes), "first" if name == study.best else "tied" if name in tied else ""
    )


def _value_cell(value: Triple, values: Mapping[str, Triple]) -> Cell:
    """Return a value with its interval and a bar, whose length is its share of the largest value."""
    number = cell(value[0])
    top = max((v[0] for v in values.values() if math.isfinite(v[0])), default=0.0)
    is_drawn = top > 0 and value[0] >= 0
    return replace(
        number,
        text=number.text or "n/a",
        small=interval_text(*value[1:]),
        bar=round(100 * value[0] / top, 1) if is_drawn else None,
    )


def _comparison_cells(
    row: Row, verdict: Verdict, lift: Triple, unit: str, ends: tuple[float, float]
) -> list[Cell]:
    """Return the lift drawn on an axis that all rows share, p, effect and the users won, tied and lost."""
    percent = 100.0 if unit else 1.0
    form, sign = ("+.1f", "%") if unit else ("+.4f", "")
    text = f"{percent * lift[0]:{form}}{sign}" if math.isfinite(lift[0]) else "n/a"
    interval = interval_text(percent * lift[1], percent * lift[2], form)
    span = ends[1] - ends[0] or 1.0
    places = [round(100 * (v - ends[0]) / span, 1) if math.isfinite(v) else None for v in (*lift, 0.0)]
    forest = Forest(*places) if places[0] is not None else None
    cells = [
        Cell(text, lift[0], f"{interval}\n{_mark(verdict)}".strip(), _tone(verdict), forest=forest),
        _p_cell(row.adjusted_p),
    ]
    if not row.effect.name:
        return [*cells, Cell("", math.nan), Cell("", math.nan)]
    counts = (row.wins, row.ties, row.losses)
    total = max(sum(counts), 1)
    shares = tuple(round(100 * n / total, 1) for n in counts)
    won = Cell(" / ".join(f"{n:,}" for n in counts), row.wins / total, outcomes=shares)
    return [*cells, cell(_effect(row), ".2f"), won]


def overview(study: Study) -> tuple[HtmlTable, list[HtmlTable]]:
    """Return the main metrics, one row per model; and every metric, one row per model and metric.

    The best value of a metric of accuracy is marked, and on the headline what no test separates from it;
    metrics of what is shown are listed apart, without a mark.
    """
    metrics = main_metrics(study)[:_MOST_COLUMNS]
    values = {m: {n: study.intervals[n, m] for n in study.names} for m in study.metrics}
    rows = [[Cell(model, None, "", "first" if model == study.best else "")] for model in study.names]
    for m in metrics:
        beyond = study.is_beyond_accuracy(m)
        tied = study.ties_with_best if m == study.headline and not beyond else []
        best = "" if beyond or len({v[0] for v in values[m].values()}) < 2 else study.ranked(m)[0]
        is_first_beyond = beyond and m == next(b for b in metrics if study.is_beyond_accuracy(b))
        for name, line in zip(study.names, rows, strict=True):
            made = _value_cell(values[m][name], values[m])
            is_best, is_tied = name == best, bool(best) and name != best and name in tied
            word = "best" if is_best else "ties with the best" if is_tied else ""
            tone = f"{'best' if is_best else 'tied' if is_tied else ''} {'apart' if is_first_beyond else ''}"
            small = "\n".join(filter(None, [made.small, "≈ ties" if is_tied else ""]))
            line.append(replace(made, small=small, tone=tone.strip(), spoken=word, quiet=beyond))
    columns: dict[str, list[Any]] = {"model": study.names}
    for m in metrics:
        columns[m], low, high = ([values[m][n][i] for n in study.names] for i in range(3))
        if any(map(math.isfinite, low)):
            columns |= {f"{m} low": low, f"{m} high": high}
    numeric = [False, *(True for _ in metrics)]
    summary = HtmlTable("summary", "Models and metrics", ["model", *metrics], rows, numeric, columns)
    heads = ("model", "metric", "value", "low", "high", "users")
    lines = [
        (model, m, *values[m][model], study.first(model).n_cases.get(m))
        for m in study.metrics
        for model in study.ranked(m)
    ]
    return summary, [table_of_rows("values", "Every value, one line each", heads, lines)]


def comparisons(study: Study) -> list[HtmlTable]:
    """Return every metric against the reference; and the best against each other on the headline."""
    made = study.comparison
    if made is None:
        return []
    rows = _against(study, study.reference, list(dict.fromkeys(row.metric for row in made)))
    best = _against(study, study.best, [study.headline]) if study.reference != study.best else ()
    titles = {"comparison": "Every comparison in full", "best": f"The best, {study.best}, against each other"}
    return [
        _comparison_table(study, name, titles[name], replace(made.table, rows=tuple(own)))
        for name, own in (("comparison", rows), ("best", best))
        if own
    ]


def _against(study: Study, base: str | None, metrics: Sequence[str]) -> list[Row]:
    """Return the rows of all models against one, metric by metric."""
    pairs = ((n, base or "", m) for m in metrics for n in study.ranked(m))
    return [study.rows[key] for key in pairs if key in study.rows]


def _comparison_table(study: Study, name: str, title: str, table: ComparisonTable) -> HtmlTable:
    """Few columns to read; the files hold numbers in columns of their own, named as compare names them."""
    numbers = number_columns(table)
    columns = {heading: numbers[heading] for heading in _FILE_COLUMNS}
    heads = ["metric", "model", "against", "difference", "lift", "adjusted p", effect_name(study)]
    heads += ["won / tied / lost", "verdict"]
    lines = []
    for r in table.rows:
        verdict, gap, lift = verdict_shown(study, r), r.interval, r.relative_interval
        has_lift = math.isfinite(r.relative)
        lines.append([
            Cell(r.metric, None, r.family),
            Cell(r.model, None, f"{r.value:.4f}"),
            Cell(r.baseline, None, f"{r.baseline_value:.4f}"),
            Cell(f"{r.difference:+.4f}", r.difference, interval_text(gap.low, gap.high, "+.4f")),
            Cell(f"{100 * r.relative:+.1f}%" if has_lift else "", r.relative,
                 interval_text(100 * lift.low, 100 * lift.high, "+.1f")
                 if has_lift and math.isfinite(lift.high) else ""),
            _p_cell(r.adjusted_p),
            cell(_effect(r), ".2f"),
            Cell(f"{r.wins:,} / {r.ties:,} / {r.losses:,}" if r.effect.name else "", r.wins),
            Cell(_mark(verdict), None, "", _tone(verdict)),
        ])  # fmt: skip
    formats = {"p_value": "p", "adjusted_p": "p", "effect": ".2f"}
    return HtmlTable(name, title, heads, lines, [h in heads[3:8] for h in heads], columns, formats)


def selection(study: Study) -> dict[str, Any]:
    """Return what the page's script shows for every choice.

    That is values, comparisons with the reference, and groups.

    A comparison is [lift, low, high, difference, low, high, adjusted p, effect, won, tied, lost, verdict],
    rounded as it is shown, lifts in percent. `tied` are those that no test separates from the best.
    """
    names, base, words = study.names, study.reference, ["better", "worse"]
    metrics = []
    for m in study.metrics:
        request = study.requests[m]
        found = [study.rows.get((model, base or "", m)) for model in names]
        rows = [row and _numbers(row, verdict_shown(study, row).word, words) for row in found]
        metrics.append({
            "name": m, "family": request.family, "k": request.k,
            "beyond": study.is_beyond_accuracy(m),
            "order": [names.index(n) for n in study.ranked(m)],
            "values": [[_as_shown(v) for v in study.intervals[n, m]] for n in names],
            "rows": rows if any(rows) else None,
        })  # fmt: skip
    return {
        "models": names, "reference": None if base is None else names.index(base),
        "baseline": None if study.baseline is None else names.index(study.baseline),
        "headline": study.metrics.index(study.headline), "metrics": metrics, "groups": _groups(study),
        "tied": [names.index(n) for n in study.ties_with_best],
        "words": words, "correction": correction_words(study), "effect": effect_name(study),
    }  # fmt: skip


def _groups(study: Study) -> list[dict[str, Any]]:
    """Return the headline metric in each group, and which model is `ahead` of the overall best there."""
    groups, base = [], study.reference
    low, high = study.requests[study.headline].metric.bounds
    found = {} if base is None else study.group_rows[base]
    for stratum in study.strata:
        for label in stratum.masks:
            rows = [found.get((name, stratum.name, label)) for name in study.names]
            values = [stratum.values[n][label] for n in study.names]
            order = sorted(range(len(values)), key=lambda i: -study.merit(values[i][0], study.headline))
            ahead = ahead_in_group(study, stratum, label)
            groups.append({
                "by": stratum.title, "name": label, "n": stratum.sizes[label], "order": order,
                "values": [[_as_shown(v) for v in value] for value in values],
                "rows": [_group_numbers(row, high - low) for row in rows],
                "ahead": None if ahead is None else study.names.index(ahead),
            })  # fmt: skip
    return groups


def _group_numbers(row: GroupRow | None, reach: float) -> list[Any] | None:
    if row is None:
        return None
    ends = SignFlips.of(row.pair.sample).interval(row.confidence, reach=reach)
    gaps = map(_as_shown, (row.pair.sample.mean, ends.low, ends.high))
    p, counts = _as_shown(row.adjusted_p, ".2g"), (row.wins, row.ties, row.losses)
    return [None, None, None, *gaps, p, None, *counts, None]


def _numbers(row: Row, word: str, words: list[str]) -> list[Any]:
    if word not in words:
        words.append(word)
    lift, gap = row.relative_interval, row.interval
    counts = (row.wins, row.ties, row.losses) if row.effect.name else (None, None, None)
    lifts = (100 * row.relative, 100 * lift.low, 100 * lift.high)
    gaps = (row.difference, gap.low, gap.high)
    p = 0.0 if row.adjusted_p < 1e-4 else row.adjusted_p  # shown as < 0.0001
    shown = [*(_as_shown(v, ".1f") for v in lifts), *map(_as_shown, gaps)]
    return [*shown, _as_shown(p, ".2g"), _as_shown(_effect(row), ".2f"), *counts, words.index(word)]


def _as_shown(value: float, form: str = ".4f") -> float | int | None:
    """Return a number rounded as it is shown; None where there is none."""
    if not math.isfinite(value):
        return None
    short = float(format(value, form))
    return int(short) if short == int(short) else short
