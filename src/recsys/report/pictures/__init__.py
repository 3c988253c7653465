"""Every picture, described once: a function of plain data that returns a `Picture`.

`recsys.report.charts` draws it as Vega-Lite, `recsys.report.figures` with matplotlib, both by its name. A
value is a number or (value, low, high). Everything is aggregated before it is described: a picture of a
million users holds as many numbers as one of a hundred. `order` lists all models of the page, so that each
has the same colour in every picture; `baseline` is grey. Of more than twelve models, the first seven and the
baseline have a look and a name in the picture; the others are pale, and pointing at them tells their names.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import numpy as np

from recsys.errors import InputError
from recsys.records.registry import Registry
from recsys.report import style
from recsys.report.pictures.vocabulary import (
    Axis,
    Mark,
    Panel,
    Picture,
    Row,
    Series,
    model_series,
    names_axis,
    nice_ticks,
    number_axis,
    number_text,
    place_labels,
    spread,
    text_width,
    value_rows,
)

__all__ = ["PICTURES", "Axis", "Mark", "Panel", "Picture", "Series", "drawn_by", "picture"]
Describe = Callable[..., Picture]
Names = Sequence[str]
Table = Mapping[str, Mapping[str, Any]]
PICTURES: Registry[Describe] = Registry("picture", "recsys.pictures")
_VALUES = ("value", "low", "high")
_VALUE_TIPS = (("value", ".4f"), ("low", ".4f"), ("high", ".4f"))
_SHARES = Axis("share of users", "linear", (0.0, 1.0), *nice_ticks(0, 1, 5, percent=True), grid=False)


def picture(describe: Describe) -> Describe:
    """Register a function that describes a picture; charts and figures then have it by its name."""
    PICTURES[describe.__name__] = describe
    return describe


def drawn_by(render: Callable[..., Any], module: str, returns: str, *more: str) -> Callable[[str], Any]:
    """`__getattr__` of a module that has every picture, as a function of its data that draws it.

    Args:
        render: draws a Picture.
        module: its `__name__`.
        returns: what the functions return, in their signatures.
        more: keywords of `render` that the functions take besides those of the picture.
    """

    def __getattr__(name: str) -> Any:  # noqa: N807 - it becomes the module's own
        if name not in PICTURES and (name.startswith("_") or name not in PICTURES.load_plugins()):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        describe = PICTURES[name]

        @functools.wraps(describe)
        def draw(*data: Any, **options: Any) -> Any:
            own = {key: options.pop(key) for key in more if key in options}
            return render(describe(*data, **options), **own)

        known = inspect.signature(describe)
        added = [inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=None) for key in more]
        signature = known.replace(parameters=[*known.parameters.values(), *added], return_annotation=returns)
        draw.__signature__ = signature  # type: ignore[attr-defined]
        return draw

    return __getattr__


@picture
def bars(values: Table, *, baseline: str | None = None, title: str = "", order: Names = ()) -> Picture:
    """Models side by side, metric by metric."""
    rows, along = value_rows(values, "metric"), names_axis(style.keys_of(values))
    marks = [
        Mark("bar", "metric", "value", tips=(("model", None), ("metric", None), *_VALUE_TIPS)),
        Mark("interval", "metric", "low", y2="high", colour=style.INK, size=1.5),
    ]
    series, upward = model_series(values, baseline, order, legend="bottom"), number_axis(rows, _VALUES, title)
    width = max(220, min(60 + 26 * len(along.ticks) * (len(values) + 1), 760))
    panel = Panel(rows, marks, along, upward, series, width=width, dodge=True)
    return Picture(f"{', '.join(along.ticks)} of {_listed(values)}.", [panel])


@picture
def curve(
    values: Mapping[str, Mapping[int, Any]],
    *,
    metric: str = "",
    baseline: str | None = None,
    order: Names = (),
) -> Picture:
    """A metric against the cut-off k, one line per model."""
    panel = _cut_off_panel(values, model_series(values, baseline, order), y_title=metric)
    at = ", ".join(str(k) for k in panel.x.ticks)
    return Picture(f"{metric} at the cut-offs {at} of {_listed(values)}.", [panel])


@picture
def cutoffs(
    values: Mapping[str, Mapping[str, Mapping[int, Any]]], *, baseline: str | None = None, order: Names = ()
) -> Picture:
    """Several metrics against the cut-off, one small panel each: {metric: {model: {k: value}}}."""
    names = style.keys_of(values)
    panels = [
        _cut_off_panel(
            by_model,
            model_series(by_model, baseline, order or names),
            title=f"{family}@k",
            width=190,
            height=170,
        )
        for family, by_model in values.items()
    ]
    return Picture(f"{_listed(values)} by cut-off, for {_listed(names)}.", panels)


@picture
def lines(
    values: Mapping[str, Mapping[Any, Any]],
    *,
    x: str = "",
    y: str = "",
    baseline: str | None = None,
    order: Names = (),
) -> Picture:
    """Any quantity against any other, one line per name."""
    rows = value_rows(values, "x")
    along = number_axis(rows, ("x",), x, zero=False)
    panel = _line_panel(rows, model_series(values, baseline, order), along, y)
    return Picture(f"{y or 'Values'} by {x or 'x'} of {_listed(values)}.", [panel])


@picture
def history(
    rows: Mapping[str, Sequence[tuple[Any, Any]]],
    *,
    metric: str = "",
    changes: Sequence[Any] = (),
    baseline: str | None = None,
    order: Names = (),
) -> Picture:
    """A metric over time; changes are marked. Times are dates, datetimes, or such in ISO format."""
    by_time = [{name: {_time(when): value}} for name, values in rows.items() for when, value in values]
    points = [row for one in by_time for row in value_rows(one, "x")]
    marked = [{"x": _time(change)} for change in changes]
    times = [row["x"] for row in (*points, *marked)] or [_time(date(2000, 1, 1))]
    room = timedelta(hours=12) if min(times) == max(times) else timedelta()
    along = Axis(kind="time", domain=(min(times) - room, max(times) + room), grid=False)
    panel = _line_panel(points, model_series(rows, baseline, order), along, metric, zero=False)
    rule = Mark("rule", "x", colour=style.WORSE, size=1.6, dash=(5, 4), rows=marked)
    return Picture(f"{metric} over time of {_listed(rows)}.", [replace(panel, marks=[rule, *panel.marks])])


@picture
def tradeoff(
    points: Mapping[str, tuple[float, float]],
    *,
    x: str = "coverage",
    y: str = "accuracy",
    baseline: str | None = None,
    order: Names = (),
) -> Picture:
    """One point per model: accuracy against coverage, or any two numbers.

    A name that would cover another is left out; pointing at the chart tells it.
    """
    series = model_series(points, baseline, order)
    rows: list[Row] = [
        {"model": str(name), "x": float(across), "y": float(up)}
        | ({"label": style.short(name, 22), "size": 130} if str(name) in series.highlighted else {"size": 40})
        for name, (across, up) in points.items()
        if math.isfinite(across) and math.isfinite(up)
    ]
    rows.sort(key=lambda row: "label" in row)  # these are drawn over the others
    point = Mark("point", "x", "y", size="size", tips=(("model", None), ("x", ".4f"), ("y", ".4f")))
    panel = _labelled_points(rows, point, series, 300)
    panel = replace(panel, x=replace(panel.x, title=x), y=replace(panel.y, title=y))
    return Picture(f"{y} against {x} of {_listed(points)}.", [panel])


@picture
def distribution(
    values: Mapping[str, Any], *, metric: str = "", baseline: str | None = None, order: Names = ()
) -> Picture:
    """How a metric spreads over users: share of users in each bin, one stepped line per model."""
    edges, shares = style.histograms(values)
    rows: list[Row] = []
    for name, by_bin in shares.items():
        bins = zip(edges.tolist(), edges[1:].tolist(), by_bin.tolist(), strict=False)
        rows += [{"model": str(name), "from": low, "to": high, "share": share} for low, high, share in bins]
        # One more point, so that the last step has a width.
        rows.append({"model": str(name), "from": float(edges[-1]), "share": float(by_bin[-1])})
    along = number_axis(rows, ("from",), metric, zero=False)
    upward = number_axis(rows, ("share",), "share of users", percent=True)
    tips = (("model", None), ("from", ".3f"), ("to", ".3f"), ("share", ".1%"))
    series = model_series(values, baseline, order, legend="bottom")
    panel = Panel(rows, [Mark("line", "from", "share", step=True, tips=tips)], along, upward, series)
    return Picture(f"How {metric} spreads over the users, for {_listed(values)}.", [panel])


@picture
def strata(
    values: Table,
    *,
    metric: str = "",
    sizes: Mapping[str, int] | None = None,
    title: str = "",
    baseline: str | None = None,
    order: Names = (),
) -> Picture:
    """A metric by group of users, a point with its interval for each model."""
    users = {str(group): int(n) for group, n in (sizes or {}).items()}
    ticks = {g: style.short(g, 24) + (f"\n{users[g]:,} users" if g in users else "")
             for g in map(str, style.keys_of(values))}  # fmt: skip
    rows = [
        row | {"at": ticks[row["group"]], "users": users.get(row["group"])}
        for row in value_rows(values, "group")
    ]
    tips = (("model", None), ("group", None), ("users", ",d"), *_VALUE_TIPS)
    marks = [
        Mark("interval", "at", "low", y2="high", size=1.6),
        Mark("point", "at", "value", size=70, tips=tips),
    ]
    series = model_series(values, baseline, order, legend="bottom")
    width = max(220, min(60 + 100 * len(ticks), 760))
    panel = Panel(rows, marks, names_axis(ticks.values(), title), number_axis(rows, _VALUES, metric), series,
                  width=width, dodge=True)  # fmt: skip
    return Picture(f"{metric} by {title or 'group'} of {_listed(values)}.", [panel])


@picture
def headtail(shares: Mapping[str, Mapping[str, float]], *, baseline: str | None = None) -> Picture:
    """What share of the places goes to popular and to rare items; one bar per row."""
    del baseline  # the other pictures take it too; the rows here are not only models
    groups = [str(group) for group in style.keys_of(shares)]
    says = f"Share of places by popularity of the item, for {_listed(shares)}."
    return _stacked(shares, dict(zip(groups, style.steps(len(groups)), strict=True)), says)


@picture
def hits(shares: Mapping[str, Sequence[float]], *, k: int | None = None) -> Picture:
    """Users with no hit, one, and two or more among the first k: {model: (none, one, more)}."""
    groups = {"no hit": style.STEPS[3], "1 hit": style.STEPS[1], "2+ hits": style.STEPS[0]}
    first = f" in the first {k}" if k else ""
    says = f"Share of users with no hit, one, and two or more{first}, for {_listed(shares)}."
    rows = {name: dict(zip(groups, row, strict=True)) for name, row in shares.items()}
    return _stacked(rows, groups, says, title=f"share of users by hits{first}")


@picture
def winloss(counts: Mapping[str, tuple[int, int, int]], *, baseline: str | None = None) -> Picture:
    """Users won, tied and lost; one bar per row."""
    users = {str(name): dict(zip(style.OUTCOMES, map(int, row), strict=True)) for name, row in counts.items()}
    shares = {name: {o: n / max(sum(row.values()), 1) for o, n in row.items()} for name, row in users.items()}
    against = f" against {style.short(baseline)}" if baseline else ""
    says = f"Share of users won, tied and lost{against}, for {_listed(counts)}."
    return _stacked(shares, style.OUTCOMES, says, users, title=f"share of users{against}")


@picture
def forest(
    rows: Mapping[str, Any],
    *,
    unit: str | Mapping[str, str] = "",
    title: str = "",
    lower: Collection[str] = (),
    baseline: str | None = None,
    order: Names = (),
) -> Picture:
    """Differences with their intervals around zero, one panel per metric with an axis of its own.

    Args:
        rows: {metric: {model: (value, low, high)}}, models in the order they are shown; or of one metric
            {model: (value, low, high)}.
        unit: "%" where the values are shares of the baseline; or {metric: unit}.
        title: of the axes, such as "lift over popularity".
        lower: the metrics (of one metric: the models' rows) where less is better.
        baseline: is grey, if it has a row.
        order: all models of the page.
    """
    several = all(isinstance(by_model, Mapping) for by_model in rows.values())
    by_metric: Table = rows if several else {"": rows}
    names = style.keys_of(by_metric)
    panels = []
    for metric, by_model in by_metric.items():
        points: list[Row] = []
        for name, triple in by_model.items():
            numbers = zip(_VALUES, style.value_and_interval(triple), strict=True)
            side = style.interval_side(*triple[1:], lower_is_better=(metric if several else name) in lower)
            points.append(
                {"label": str(name), "side": side} | {key: v for key, v in numbers if not math.isnan(v)}
            )
        percent = (unit if isinstance(unit, str) else unit.get(metric, "")) == "%"
        along = number_axis(
            points, _VALUES, title or "difference", signed=True, percent=percent, n_ticks=4, pad=0.06
        )
        digits = max(int(along.format.split(".")[1][:-1]) + 1, 1 if percent else 3)
        form = f"+.{digits}{along.format[-1]}"  # a digit more than the ticks have
        for point in points:
            text = number_text(point["value"], form) if "value" in point else "n/a"
            point |= {"end": along.domain[1], "shown": text, "dx": 8, "anchor": "left"}
        tips = (("label", None), ("value", form), ("low", form), ("high", form), ("side", None))
        marks = [
            Mark("rule", "zero", colour=style.RULE, size=1.2, dash=(4, 3), rows=[{"zero": 0.0}]),
            Mark("interval", "low", "label", x2="high", size=2.4, tips=tips),
            Mark("point", "value", "label", size=85, tips=tips),
            Mark("text", "end", "label", text="shown", colour=style.INK, size=12),
        ]
        label_width = 36 + sum(
            max((text_width(style.short(p[key])) for p in points), default=0) for key in ("label", "shown")
        )
        panels.append(
            Panel(points, marks, along, names_axis(by_model),
                  model_series(by_model, baseline, order or names, field="label"), str(metric),
                  width=250 if len(by_metric) > 1 else 420, height=26 * len(points) + 4,
                  label_width=label_width)
        )  # fmt: skip
    on = f" on {_listed(by_metric)}" if several else ""
    return Picture(f"{title or 'Difference'} with its interval, for {_listed(names)}{on}.", panels)


@picture
def places(
    sets: Mapping[Any, tuple[int, int]],
    *,
    metric: str = "",
    baseline: str | None = None,
    order: Names = (),
) -> Picture:
    """The places that each model may have, as bars from the best to the worst.

    Args:
        sets: {model: (best, worst)}, models in the order they are shown.
        metric: that they are ranked by.
        baseline: is grey.
        order: all models of the page.
    """
    rows: list[Row] = [
        {"model": str(name), "from": best - 0.4, "to": worst + 0.4, "best": best, "worst": worst}
        for name, (best, worst) in sets.items()
    ]
    ticks = [*range(1, len(rows) + 1, max(1, -(-len(rows) // 12)))]
    along = Axis(
        f"place on {metric}" if metric else "place", "linear", (0.5, max(len(rows), 1) + 0.5), ticks, "d"
    )
    tips = (("model", None), ("best", "d"), ("worst", "d"))
    marks = [Mark("interval", "from", "model", x2="to", size=9, tips=tips)]
    series = model_series(sets, baseline, order)
    panel = Panel(
        rows, marks, along, names_axis(sets), series, width=420, height=24 * len(rows) + 4,
        label_width=24 + max((text_width(style.short(row["model"])) for row in rows), default=0),
    )  # fmt: skip
    return Picture(f"The places that {_listed(sets)} may have{metric and f' on {metric}'}.", [panel])


@picture
def sorted_differences(
    values: Any, *, names: Names = ("baseline", "model"), metric: str = "", lower: bool = False
) -> Picture:
    """Users sorted by their difference, from those the model serves better to those it serves worse.

    Args:
        values: the difference of each user: the value of the second name less that of the first.
        names: the two models.
        metric: whose values they are.
        lower: whether less is better.
    """
    known = np.sort(style.finite(values))[:: 1 if lower else -1]
    better, n = (known < 0 if lower else known > 0), max(len(known), 1)
    won, tied = int(better.sum()), int((known == 0).sum())
    counts = {"won": won, "tied": tied, "lost": len(known) - won - tied}
    rows: list[Row] = []
    starts = {"won": 0, "tied": won, "lost": won + tied}
    words = {outcome: f"{outcome} {count / n:.0%}" for outcome, count in counts.items()}
    for outcome, count in counts.items():
        start = starts[outcome]
        # At most 80 users of each: the steps between them are finer than a pixel.
        at = np.unique(np.linspace(0, count - 1, min(count, 80)).round().astype(int)) + start
        part = [(i, float(known[i])) for i in at.tolist()]
        part += [(start + count, value) for _, value in part[-1:]]
        rows += [{"users": words[outcome], "x": i / n, "value": value, "zero": 0.0} for i, value in part]
    marks = [
        Mark("area", "x", "value", y2="zero", tips=(("users", None), ("value", "+.4f"))),
        Mark("line", "x", "zero", size=3),
    ]
    pair = [style.short(name) for name in names]
    upward = number_axis(rows, ("value",), f"{metric} of {pair[1]} less {pair[0]}".strip(), signed=True)
    series = Series("users", list(words.values()), list(style.OUTCOMES.values()), legend="bottom")
    shares = ", ".join(f"{count:,} {outcome}" for outcome, count in counts.items())
    says = f"{names[1]} against {names[0]} on {metric}, users sorted by their difference: {shares}."
    return Picture(says, [Panel(rows, marks, _SHARES, upward, series)])


@picture
def duel(
    baseline_values: Any,
    model_values: Any,
    *,
    names: tuple[str, str] = ("baseline", "model"),
    metric: str = "",
) -> Picture:
    """Win/loss map: users by their value under both models; above the diagonal the second one wins."""
    edges, counts = style.paired_histogram(baseline_values, model_values)
    limits = sorted({1, *(math.ceil(int(counts.max(initial=1)) ** (i / 4)) for i in range(1, 5))})
    groups = [f"{high:,} user{'s' * (high > 1)}" if high == low + 1 else f"{low + 1:,} to {high:,} users"
              for low, high in zip([0, *limits], limits, strict=False)]  # fmt: skip
    rows = [
        {"x": edges[c], "x2": edges[c + 1], "y": edges[r], "y2": edges[r + 1], "users": int(counts[r, c]),
         "group": groups[int(np.searchsorted(limits, counts[r, c]))]}
        for r, c in np.argwhere(counts > 0).tolist()
    ]  # fmt: skip
    ends = (float(edges[0]), float(edges[-1]))
    along, upward = (
        Axis(f"{metric} of {style.short(name)}".strip(), "linear", ends, *nice_ticks(*ends, 5))
        for name in names
    )
    marks = [
        Mark("cell", "x", "y", "x2", "y2", tips=(("x", ".3f"), ("y", ".3f"), ("users", ",d"))),
        Mark(
            "line", "x", "y", colour=style.INK, size=1.2, dash=(4, 3), rows=[{"x": e, "y": e} for e in ends]
        ),
    ]
    shades = style.steps(max(len(groups), 4))[: len(groups)][::-1]
    says = f"Users by {metric}, {names[0]} across and {names[1]} up; above the diagonal {names[1]} wins."
    series = Series("group", groups, shades, legend="bottom")
    return Picture(says, [Panel(rows, marks, along, upward, series, height=340, width=380)])


@picture
def embedding(
    coordinates: Any,
    *,
    labels: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    sizes: Sequence[float] | None = None,
    title: str = "",
) -> Picture:
    """Items by the coordinates of their embeddings, in two dimensions; up to 25 items are labelled."""
    places = style.points(coordinates)
    largest = 1.0 if sizes is None else max(float(np.max(sizes, initial=0.0)), 1e-12)
    rows: list[Row] = [
        {"x": float(f"{x:.4g}"), "y": float(f"{y:.4g}"), "item": str(i if labels is None else labels[i]),
         "group": "" if groups is None else str(groups[i])}
        | ({} if sizes is None else {"size": round(14 + 146 * float(sizes[i]) / largest, 1)})
        | ({"label": style.short(labels[i], 22)} if labels is not None and len(places) <= 25 else {})
        for i, (x, y) in enumerate(places.tolist())
        if math.isfinite(x + y)
    ]  # fmt: skip
    tips = (("item", None), *((("group", None),) if groups is not None else ()))
    point = Mark("point", "x", "y", size=34 if sizes is None else "size", opacity=0.75, tips=tips)
    series = model_series(dict.fromkeys(row["group"] for row in rows), field="group", legend="bottom")
    panel = _labelled_points(rows, point, series, 400)
    x, y = (replace(axis, kind="none") for axis in (panel.x, panel.y))
    says = title or f"{len(rows):,} items placed by their embeddings"
    return Picture(f"{says}.", [replace(panel, x=x, y=y, title=title)])


@picture
def heat(values: Table, *, title: str = "") -> Picture:
    """A table as a heat map, its numbers written in the cells."""
    rows = value_rows(values, "column", "row")
    known = style.finite([row["value"] for row in rows])
    low, high = (known.min(), known.max()) if len(known) else (0.0, 1.0)
    decimals = 3 if (known % 1).any() else 0
    shades = style.steps(32)[::-1]
    for row in rows:
        fill = shades[int(31 * (row["value"] - low) / max(high - low, 1e-300))]
        row |= {"fill": fill, "ink": style.letters_on(fill), "shown": f"{row['value']:.{decimals}f}"}
    marks = [
        Mark("cell", "column", "row", colour="fill", tips=(("row", None), ("column", None), ("value", None))),
        Mark("text", "column", "row", text="shown", colour="ink", size=12),
    ]
    along, down = names_axis(style.keys_of(values)), names_axis(values)
    panel = Panel(rows, marks, along, down, Series("row", [], []), title, height=30 * len(values) + 4,
                  width=max(260, min(80 * len(along.ticks), 760)))  # fmt: skip
    return Picture(f"{title or 'Values'} of {_listed(values)}.", [panel])


def _listed(names: Iterable[Any]) -> str:
    """Return the first four names, and how many more there are."""
    texts = [str(name) for name in names]
    return ", ".join(texts[:4]) + (f" and {len(texts) - 4} more" if len(texts) > 4 else "")


def _time(when: Any) -> datetime:
    """Return a time as a datetime without a zone, of UTC where it has one."""
    moment = when.astype("datetime64[us]").item() if isinstance(when, np.datetime64) else when
    if isinstance(moment, str):
        with contextlib.suppress(ValueError):
            moment = datetime.fromisoformat(moment)
    if isinstance(moment, date) and not isinstance(moment, datetime):
        moment = datetime.combine(moment, time())
    if not isinstance(moment, datetime):
        hint = 'Pass dates, datetimes or text such as "2026-01-31T04:00".'
        raise InputError(f"{when!r} is not a time.", hint=hint)
    return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)


def _labelled_points(rows: list[Row], point: Mark, series: Series, height: int) -> Panel:
    """Draw points over rows of x and y; a label is next to its point, where there is room for it."""
    x, y = (number_axis(rows, (axis,), zero=False, pad=0.15) for axis in ("x", "y"))
    labelled = [row for row in rows if "label" in row]
    places = [(x.place(row["x"]), 1.0 - y.place(row["y"])) for row in labelled]
    offers = place_labels(places, [row["label"] for row in labelled], height)
    words = [row | offer for row, offer in zip(labelled, offers, strict=True) if offer]
    text = Mark("text", "x", "y", text="label", colour=style.INK, size=12, rows=words)
    return Panel(rows, [point, text], x, y, series, height=height)


def _cut_off_panel(values: Mapping[str, Mapping[int, Any]], series: Series, **options: Any) -> Panel:
    """Lines over the cut-offs, each of which has a tick."""
    cut_offs = sorted(style.keys_of(values)) or [1]
    kind = "log" if len(cut_offs) > 3 and cut_offs[0] > 0 else "linear"
    ends = (cut_offs[0], cut_offs[-1]) if len(cut_offs) > 1 else (cut_offs[0] - 1, cut_offs[0] + 1)
    along = Axis("cut-off k", kind, ends, cut_offs, "d", grid=False)
    return _line_panel(value_rows(values, "x"), series, along, **options)


def _line_panel(
    rows: list[Row], series: Series, along: Axis, y_title: str = "", *, zero: bool = True, **options: Any
) -> Panel:
    """Draw lines with their intervals over rows of model, x and value, and names at their ends."""
    upward = number_axis(rows, _VALUES, y_title, zero=zero, pad=0.0 if zero else 0.05)
    tip = ("x", "%Y-%m-%d %H:%M" if along.kind == "time" else None)
    marks = [
        Mark("line", "x", "value", size=2.2),
        Mark("point", "x", "value", size=45, tips=(("model", None), tip, *_VALUE_TIPS)),
    ]
    if len(series.names) <= 5:
        marks.insert(0, Mark("area", "x", "low", y2="high", opacity=0.14))
    rows.sort(key=lambda row: row["model"] in series.highlighted)  # these are drawn over the others
    panel = Panel(rows, marks, along, upward, series, **options)
    label_width = 20 + max((text_width(number_text(tick, upward.format)) for tick in upward.ticks), default=0)
    last = {row["model"]: row for row in sorted(rows, key=lambda row: row["x"])}
    if len(series.names) < 2 or not last:
        return replace(panel, label_width=label_width)
    (low, high), (start, end) = upward.domain, along.domain
    edge = end * (end / start) ** 0.07 if along.kind == "log" else end + (end - start) * 0.07
    named = {name: row for name, row in last.items() if name in series.highlighted}
    ends = spread([row["value"] for row in named.values()], 14 * (high - low) / panel.height, low, high)
    names = [
        {"model": name, "x": edge, "at": at, "label": style.short(name, 22), "dx": 4, "anchor": "left"}
        for name, at in zip(named, ends, strict=True)
    ]
    leaders = [{"model": name, "x": row["x"], "at": row["value"]} for name, row in named.items()]
    marks += [
        Mark("line", "x", "at", size=1, opacity=0.6, dash=(1, 0), rows=[*leaders, *names]),
        Mark("text", "x", "at", text="label", colour=style.INK, size=12, rows=names),
    ]
    label_width += max(text_width(row["label"]) for row in names)
    return replace(panel, x=replace(along, domain=(start, edge)), label_width=label_width)


def _stacked(
    shares: Mapping[str, Mapping[str, float]],
    groups: Mapping[str, str],
    says: str,
    users: Mapping[str, Mapping[str, int]] | None = None,
    *,
    title: str = "",
) -> Picture:
    """Bars of shares that add up to one; `groups` has their colours, `users` the numbers behind them."""
    rows: list[Row] = []
    for label, by_group in shares.items():
        start = 0.0
        for group, share in ((str(g), float(s)) for g, s in by_group.items() if math.isfinite(s)):
            row = {"who": str(label), "group": group, "share": share, "from": start, "to": start + share}
            if share >= 0.12:  # has room for its number
                ink = style.letters_on(groups[group])
                row |= {"middle": start + share / 2, "shown": f"{share:.0%}", "ink": ink}
            rows.append(row if users is None else row | {"users": users[str(label)][group]})
            start += share
    size = ("share", ".1%") if users is None else ("users", ",d")
    marks = [
        Mark("bar", "from", "who", x2="to", tips=(("who", None), ("group", None), size)),
        Mark("text", "middle", "who", text="shown", colour="ink", size=11),
    ]
    series = Series("group", list(groups), list(groups.values()), legend="top")
    along = replace(_SHARES, title=title, domain=(0.0, max([1.0, *(row["to"] for row in rows)])))
    height = 28 * len(shares) + 4
    return Picture(says, [Panel(rows, marks, along, names_axis(shares), series, height=height)])
