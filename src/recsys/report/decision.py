"""The decision a report opens with: which model, by how much, at what price, and what would change it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from recsys.report.report_data import ReportData, verdict_word
from recsys.report.section_numbers import (
    all_strata,
    coverage,
    group_row,
    head_and_tail,
    main_metrics,
    value_with_interval,
)
from recsys.stats.comparison_table import Row
from recsys.stats.inference_results import format_p
from recsys.types import Ids

_FRACTIONS = {
    4 / 5: "four fifths of", 3 / 4: "three quarters of", 2 / 3: "two thirds of", 1 / 2: "half of",
    1 / 3: "a third of", 1 / 4: "a quarter of", 1 / 5: "a fifth of", 1 / 6: "a sixth of",
    1 / 7: "a seventh of", 1 / 8: "an eighth of", 1 / 9: "a ninth of", 1 / 10: "a tenth of",
}  # fmt: skip
_MIN_GROUP, _MOST_GROUPS_NAMED, _NEAR_BORDER = 20, 3, 0.01


@dataclass(frozen=True)
class Tile:
    """One number of the card: what it is, the number, a line about it and its small print."""

    label: str
    number: str
    text: str = ""
    small: str = ""
    tone: str = ""
    href: str = ""


class Price(NamedTuple):
    """One thing the best has less of (or more of, where less is better) than another model, in words."""

    ratio: float
    label: str
    leader: str
    says: str


@dataclass(frozen=True)
class Decision:
    """What the card says; `causes` are given where nothing was found, and the page then ends with them."""

    heading: str
    says: str
    tiles: Sequence[Tile] = ()
    price: Sequence[str] = ()
    changes: Sequence[str] = ()
    causes: Sequence[str] = ()


def decide(data: ReportData, n_cautions: int = 0) -> Decision:
    """The decision on the headline metric."""
    best, metric = data.best, data.metric
    value, low, high = value_with_interval(data, best, metric)
    if data.nothing_found or math.isnan(value):
        return _nothing_found(data)
    n = data.first(best).n_cases.get(metric)
    over = f" over {n:,} users" if n else ""
    interval = f" [{low:.4f}, {high:.4f}]" if math.isfinite(low) else ""
    trust = _trust(data, n_cautions)
    if len(data.names) == 1:
        says = (
            f"{best} has a mean of {value:.4f}{interval}{over}. There is no second model to compare it with."
        )
        small = f"95 % interval {interval.strip()}" if interval else ""
        tile = Tile(metric, f"{value:.4f}", f"{best}{over}", small)
        return Decision(f"{best} reaches {metric} {value:.4f}", says, [tile, *trust])
    extreme = {"higher": "highest", "lower": "lowest", "zero": "smallest"}[
        data.requests[metric].metric.better
    ]
    tied = data.ties_with_best(metric)
    says = f"Of {len(data.names)} models, {best} has the {extreme} {metric}, {value:.4f}{interval}{over}."
    if tied:
        says += f" No test separates {_and(tied)} from it: choose by the price, or with more users."
    tiles = [*_lifts(data), *_who_loses(data), *trust]
    prices = price(data)
    changes = [*_changes(data, tied), *_other_goals(data, prices)]
    return Decision(_heading(data, tied), says, tiles, [one.says for one in prices], changes)


def _heading(data: ReportData, tied: Sequence[str]) -> str:
    best, metric = data.best, data.metric
    rows = [data.rows.get((best, other, metric)) for other in data.names[1:]]
    if all(row is not None and verdict_word(row).startswith("identical") for row in rows):
        return f"{_and(data.names)} are identical on {metric}"
    if not any(rows):
        return f"{best} leads on {metric}, untested"
    if tied:
        return f"Nothing separates {_and([best, *tied])}"
    if any(finding["severity"] == "error" for finding in data.findings):
        return f"{best} leads, but the audit found errors"
    return f"Keep {best}: nothing beats it" if best == data.baseline else f"Ship {best}"


def _lifts(data: ReportData) -> Iterator[Tile]:
    """The best against the baseline and against the next best."""
    next_best = data.names[1]
    titles = {name: "the baseline" for name in (data.baseline,) if name not in (None, data.best)}
    titles[next_best] = "the baseline and the next best" if next_best in titles else "the next best"
    for other, title in titles.items():
        row = data.rows.get((data.best, str(other), data.metric))
        if row is None:
            continue
        word = verdict_word(row)
        tone = word if word in {"better", "worse"} else "unclear"
        number = f"{100 * row.relative:+.1f} %" if math.isfinite(row.relative) else f"{row.difference:+.4f}"
        text = f"{data.metric} {row.value:.4f} against {row.baseline_value:.4f}"
        if tone == "unclear":
            text += f": {word if word != 'both found nothing' else 'no hit'}"
        yield Tile(f"over {other}, {title}", number, text, _small_print(row, data), tone)


def _small_print(row: Row, data: ReportData) -> str:
    """Interval, p and effect of a comparison."""
    parts = []
    lift = row.relative_interval
    if math.isfinite(row.relative) and math.isfinite(lift.low) and math.isfinite(lift.high):
        parts.append(f"95 % interval {100 * lift.low:+.1f} to {100 * lift.high:+.1f} %")
    elif math.isfinite(row.interval.low):
        parts.append(f"95 % interval {row.interval.low:+.4f} to {row.interval.high:+.4f}")
    if math.isfinite(row.adjusted_p):
        parts.append(f"{p_text(row.adjusted_p)} ({correction_name(data)}, corrected over all pairs)")
    if row.effect.name:
        parts.append(f"{row.effect.name} {row.effect.value:.2f}")
    return ", ".join(parts)


def p_text(p: float) -> str:
    """A p-value with non-breaking spaces."""
    return format_p(p, "none").replace("1e-4", "0.0001").replace(" ", "\u00a0")


def correction_name(data: ReportData) -> str:
    """The correction of the comparison as it is written in a sentence."""
    name = "none" if data.comparison is None else data.comparison.table.options.correction
    return {"max-t": "max-T", "bh": "Benjamini-Hochberg", "by": "Benjamini-Yekutieli"}.get(name, name.title())


def _who_loses(data: ReportData) -> Iterator[Tile]:
    """How many users the rival serves better, and in which group they are most frequent."""
    rival = data.rival
    row = data.rows.get((data.best, str(rival), data.metric))
    if row is None or not row.effect.name or not row.n_units:
        return
    share = row.losses / row.n_units
    groups = []
    for stratum in all_strata(data):
        for label, mask in stratum.masks.items():
            result = group_row(data, data.best, str(rival), mask)
            n = result.wins + result.ties + result.losses
            if n >= _MIN_GROUP:
                groups.append((result.losses / n, result.losses, n, f"{stratum.title}: {label}"))
    small = ""
    if groups and row.losses:
        most, losses, n, label = max(groups)
        small = f"Most often where {label} ({100 * most:.0f} %, {losses:,} of {n:,})."
    text = f"{row.losses:,} of {row.n_units:,} users are served worse than by {rival}, {row.wins:,} better"
    yield Tile("who loses", f"{100 * share:.0f} %" if share == 0 or share >= 0.005 else "< 1 %", text, small)


def _trust(data: ReportData, n_cautions: int) -> list[Tile]:
    """What the audit found, and how many cautions there are."""
    counts = {s: sum(f["severity"] == s for f in data.findings) for s in ("error", "warning")}
    parts = [f"{n} audit {word}{'s' if n > 1 else ''}" for word, n in counts.items() if n]
    if n_cautions:
        parts.append(f"{n_cautions} caution{'s' if n_cautions > 1 else ''}")
    total = sum(counts.values()) + n_cautions
    named = [f["name"] for f in data.findings if f["severity"] in counts]
    text = ", ".join(parts) or ("the audit found nothing" if data.findings else "nothing to be careful about")
    small = f"{', '.join(named[:4])}{' …' if len(named) > 4 else ''}"
    if not data.findings:
        small = "Not audited: --audit (audit= in Python) adds what recsys audit found."
    tone = "worse" if counts["error"] else "unclear" if total else ""
    href = "#cautions" if n_cautions and not named else "#audit" if data.findings else ""
    return [Tile("to be careful about", str(total), text, small, tone, href)]


def price(data: ReportData) -> list[Price]:
    """What the best gives up, against the best of each among the models that come near it in accuracy."""
    best, metric = data.best, data.metric
    top = data.value(best, metric)
    near = [n for n in data.names if data.lower_is_better(metric) or data.value(n, metric) >= top / 2]
    contenders = near if len(near) > 1 else data.names
    facts: dict[str, Mapping[str, float]] = {}
    covered = coverage(data)
    if covered is not None:
        facts[covered[0]] = covered[1]
    tail = head_and_tail(data)
    if tail is not None:
        for label, by_model in zip(("share of places for the tail", "recall of the tail"), tail, strict=True):
            if all("tail" in by_model.get(n, {}) for n in contenders):
                facts[label] = {n: by_model[n]["tail"] for n in contenders}
    for name in main_metrics(data):
        if data.is_beyond_accuracy(name) and data.requests[name].metric.better != "zero":
            facts.setdefault(name, {n: data.value(n, name) for n in contenders})
    prices = []
    for label, values in facts.items():
        known = {n: values[n] for n in contenders if math.isfinite(values[n])}
        if best not in known or len(known) < 2:
            continue
        is_lower = label in data.requests and data.lower_is_better(label)
        leader = (min if is_lower else max)(known, key=lambda n: known[n])
        first, second = (known[leader], known[best]) if is_lower else (known[best], known[leader])
        ratio = first / second if second > 0 else 1.0
        unit = " bits" if label in data.requests and "in bits" in data.requests[label].metric.meaning else ""
        if known[leader] == known[best]:
            leader = best
        words = _in_words(ratio, leader, best, f"{_short(known[leader])}{unit}")
        prices.append(Price(ratio, label, leader, f"{label} {_short(known[best])}{unit}{words}"))
    return sorted(prices, key=lambda one: one.ratio)


def _in_words(ratio: float, leader: str, best: str, value: str) -> str:
    """How a value stands to the best one: "half of bpr's 0.62"."""
    if leader == best:
        return ": nobody has more" if ratio == 1.0 else ""
    if ratio > 0.97:
        return f", much the same as {leader}'s {value}"
    if ratio > 0.87:
        return f", a little behind {leader}'s {value}"
    if ratio < 0.08:
        return f", less than a tenth of {leader}'s {value}"
    fraction = min(_FRACTIONS, key=lambda f: abs(math.log(f / ratio)))
    return f", {_FRACTIONS[fraction]} {leader}'s {value}"


def _short(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 0.1 else f"{value:.2f}"


def _changes(data: ReportData, tied: Sequence[str]) -> Iterator[str]:
    """What would change the verdict."""
    best, metric = data.best, data.metric
    accuracy = [m for m in data.metrics if not data.is_beyond_accuracy(m) and m != metric]
    ahead: dict[str, list[str]] = {}
    for other in accuracy:
        leader = data.ranked(other)[0]
        if leader != best and data.value(leader, other) != data.value(best, other):
            row = data.rows.get((leader, best, other))
            is_clear = row is not None and verdict_word(row) == "better"
            ahead.setdefault(leader, []).append(other + (" (clearly)" if is_clear else " (not clearly)"))
    for leader, metrics in ahead.items():
        yield f"Another metric or cut-off: {leader} is ahead on {_and(metrics)}."
    if accuracy and not ahead:
        yield f"No other metric of accuracy: {best} leads on the other {len(accuracy)} as well."
    elif not accuracy:
        yield "Another metric or cut-off may: only this one was evaluated."
    yield from _other_groups(data)
    next_row = data.rows.get((best, data.names[1], metric))
    if next_row is None or not next_row.effect.name:
        return
    if next_row.n_differing is not None:
        yield f"More users: only {next_row.n_differing:,} of {next_row.n_units:,} tell the two best apart."
    elif tied and next_row.difference and next_row.runs is None and next_row.standard_error > 0:
        # As many as the correction asks for: it leaves this comparison a part of the error rate.
        part = next_row.p_value / next_row.adjusted_p if next_row.adjusted_p > 0 else 1.0
        needed = next_row.users_needed(alpha=0.05 * min(part, 1.0))
        if needed is not None and needed > next_row.n_units:
            yield (
                f"More users: if the difference from {data.names[1]} is real, about {needed:,} would show "
                f"it; there are {next_row.n_units:,}."
            )
    elif not tied and next_row.adjusted_p > _NEAR_BORDER:
        p = p_text(next_row.adjusted_p)
        yield f"Other users: the lead over {data.names[1]} is close to the border, {p}."


def _other_goals(data: ReportData, prices: Sequence[Price]) -> Iterator[str]:
    """Who is ahead where something else than accuracy counts more."""
    ahead: dict[str, list[str]] = {}
    for one in prices:
        if one.leader != data.best and one.ratio < 0.97:
            ahead.setdefault(one.leader, []).append(one.label)
    if ahead:
        lines = [f"{leader} is ahead on {_and(labels)}" for leader, labels in ahead.items()]
        yield f"Another goal: {'; '.join(lines)}."


def _other_groups(data: ReportData) -> Iterator[str]:
    """The groups of users for whom another model is ahead beyond its interval."""
    lines = []
    for stratum in all_strata(data):
        for label, mask in stratum.masks.items():
            values = {n: stratum.values[n][label][0] for n in data.names}
            leader = min(values, key=lambda n: -data.sign(data.metric) * values[n])
            if leader == data.best or stratum.sizes[label] < _MIN_GROUP:
                continue
            difference, low, high = group_row(data, leader, data.best, mask).difference
            if math.isfinite(low) and low * high > 0 and difference:
                lines.append(f"{leader} where {stratum.title}: {label}")
    if lines:
        more = f" and {len(lines) - _MOST_GROUPS_NAMED} more" if len(lines) > _MOST_GROUPS_NAMED else ""
        named = "; ".join(lines[:_MOST_GROUPS_NAMED])
        yield f"Who your users are: in some groups another model is ahead ({named}{more})."


def _nothing_found(data: ReportData) -> Decision:
    """Where every value is 0 or there is none: the likely causes, with the counts that point at one."""
    values = [data.value(n, data.metric) for n in data.names]
    heading = "No model found anything" if len(values) > 1 else f"{data.best} found nothing"
    says = f"{data.metric} is 0 for everybody: no relevant item stands in the places that count."
    if all(map(math.isnan, values)):
        says = f"{data.best} has no value of {data.metric}: no user is in its mean."
    return Decision(heading, says, causes=list(_causes(data)))


def _causes(data: ReportData) -> Iterator[str]:
    counts = data.first(data.best).counts
    lists = data.lists.get(data.best)
    if lists is not None and data.truth is not None:
        for what, shown, known in (
            ("users", lists.cases, data.truth.cases), ("items", lists.items, data.truth.items)
        ):  # fmt: skip
            n = _shared(shown, known)
            if n < len(known):
                yield (
                    f"Ids: {n:,} of the {len(known):,} {what} of the truth occur in the lists of {data.best}"
                    f"{'; the ids do not match' if n == 0 else ''}."
                )
    else:
        yield "Ids that do not match: '7' as text and 7 as a number, blanks, another numbering."
    if counts.get("without_list"):
        yield f"Users without a list: {counts['without_list']:,} of {counts.get('cases', 0):,}."
    if counts.get("without_truth"):
        yield f"Users without anything relevant: {counts['without_truth']:,} of {counts.get('cases', 0):,}."
    if counts.get("not_candidates"):
        n = counts["not_candidates"]
        yield f"Relevant items that no model could rank: {n:,} (new, or left out as seen)."
    yield "The wrong files, or the two exchanged: recommendations first, the truth second."
    yield "Relevant items that were left out as seen: the training data must not hold the test."
    k = data.requests[data.metric].k
    if k is not None:
        yield f"The cut-off: only the first {k} places count; a larger one shows what stands further down."
    floor = data.first(data.best).conventions.relevant_from
    yield (
        f"The grades: relevant is what has a grade of relevant_from={floor} or more."
        if floor
        else ("The grades: a grade of 0 is not relevant.")
    )


def _shared(first: Ids, second: Ids) -> int:
    """How many ids of the second also occur in the first; ids of another kind never do."""
    if first.values.dtype.kind != second.values.dtype.kind:
        return 0
    return int((first.code_of(second.values) >= 0).sum())


def _and(names: Sequence[str]) -> str:
    """Names as an enumeration: the first three, and how many more there are."""
    names = list(names) if len(names) <= 4 else [*names[:3], f"{len(names) - 3} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
