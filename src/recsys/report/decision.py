"""The decision a report opens with: which model, by how much, at what price, and what would change it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recsys.display.number_words import interval_text, plural
from recsys.display.words import format_p
from recsys.errors import Phrase, worded
from recsys.records.arrays import Ids
from recsys.report.costs import UNITS, costs
from recsys.report.section_numbers import (
    ahead_in_group,
    coverage,
    head_and_tail,
    main_metrics,
)
from recsys.stats.comparison_table import Row
from recsys.stats.samples import FEW

if TYPE_CHECKING:
    from recsys.report.study import Study

_FRACTIONS = {
    4 / 5: "four fifths of", 3 / 4: "three quarters of", 2 / 3: "two thirds of", 3 / 5: "three fifths of",
    1 / 2: "half of", 2 / 5: "two fifths of", 1 / 3: "a third of", 1 / 4: "a quarter of",
    1 / 5: "a fifth of", 1 / 6: "a sixth of", 1 / 7: "a seventh of", 1 / 8: "an eighth of",
    1 / 9: "a ninth of", 1 / 10: "a tenth of",
}  # fmt: skip
# Costs are compared with those of models that are nearly as good, and times vary from run to run.
_NEARLY_AS_GOOD, _SAME_COST = 0.9, 2 / 3
_MIN_GROUP, _MOST_GROUPS_NAMED, _NEAR_BORDER = 20, 3, 0.01


@dataclass(frozen=True)
class Tile:
    """One number of the card: what it is, the number, a line about it and its small print.

    `is_sum`: the line names the parts that the number adds up, and is complete without it.
    """

    label: str
    number: str
    text: str = ""
    small: str = ""
    tone: str = ""
    href: str = ""
    is_sum: bool = False


class Price(NamedTuple):
    """One thing the best has less of (or more of, where less is better) than another model, as text."""

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


def decide(study: Study, n_cautions: int = 0) -> Decision:
    """Return the decision on the headline metric."""
    best, metric = study.best, study.headline
    value, low, high = study.intervals[best, metric]
    if study.nothing_found or math.isnan(value):
        return _nothing_found(study)
    over = _over(study)
    interval = f" {interval_text(low, high)}".rstrip()
    trust = _trust(study, n_cautions)
    if len(study.names) == 1:
        says = f"{best} has {metric} {value:.4f}{interval}{over}. "
        says += "There is no second model to compare it with."
        small = f"95% interval {interval.strip()}" if interval else ""
        tile = Tile(metric, f"{value:.4f}", f"{best}{over}", small)
        return Decision(f"{best} reaches {metric} {value:.4f}", says, [tile, trust])
    tied = study.ties_with_best
    tiles = [*_lifts(study), *_who_loses(study), trust]
    prices = price(study)
    costs = [one.says for one in prices] or _costs_nothing(study)
    if _same_values(study):
        says = f"All {len(study.names)} models have {metric} {value:.4f}{interval}{over}."
    else:
        extremes = {"higher": "highest", "lower": "lowest", "zero": "smallest"}
        extreme = extremes[study.requests[metric].metric.better]
        says = (
            f"Of {len(study.names)} models, {best} has the {extreme} {metric}, {value:.4f}{interval}{over}."
        )
        if tied:
            advice = f"{'choose by the price, or ' if prices else ''}evaluate with more users"
            says += f" No test separates {_and(tied)} from it: {advice}."
    once = [n for n in (best, *tied) if len(study.runs[n]) == 1 and "seed" in study.first(n).run]
    if once:
        were = f"{_and(once)} {'were' if len(once) > 1 else 'was'} trained"
        says += f" {were} with one seed: what others would change is open (recsys bench --seeds 5 tests it)."
    unknown = [n for n in study.names if math.isnan(study.value(n, metric))]
    if unknown:
        says += f" Without a value of it: {_and(unknown)}."
    if study.is_random_split:
        says += " The test was drawn at random, so this says nothing about the future."
    changes = [*_changes(study, tied), *_other_goals(study, prices)]
    return Decision(_heading(study, tied), says, tiles, costs, changes)


def _over(study: Study) -> str:
    """Return how many users the headline value is over, and what the others lack."""
    first = study.first(study.best)
    n, n_all = first.n_cases.get(study.headline), first.counts.get("cases", 0)
    if not n:
        return ""
    n_runs = len(study.runs[study.best])
    over = f"{f', the mean of {n_runs} runs,' if n_runs > 1 else ''} over "
    over += plural(n, study.case_noun)
    if n_all <= n:
        return over
    why = "have nothing relevant" if n_all - n == first.counts.get("without_truth") else "have no value of it"
    return f"{over} (the other {n_all - n:,} of {n_all:,} {why})"


def _same_values(study: Study) -> bool:
    return len({study.value(n, study.headline) for n in study.names}) == 1


def _heading(study: Study, tied: Sequence[str]) -> str:
    best, metric = study.best, study.headline
    rows = [study.rows.get((best, other, metric)) for other in study.names[1:]]
    if all(row is not None and row.verdict.kind == "identical" for row in rows):
        return f"{_and(study.names)} are identical on {metric}"
    if _same_values(study):
        return f"{_and(study.names)} have the same {metric}"
    if not any(rows):
        return f"{best} leads on {metric}, untested"
    has_errors = any(finding["severity"] == "error" for finding in study.audited)
    if tied:
        errors = ", and the audit found errors" if has_errors else ""
        return f"Nothing separates {_and([best, *tied])}{errors}"
    if has_errors:
        return f"{best} leads, but the audit found errors"
    if study.is_beyond_accuracy(metric):  # which is not better in itself
        return f"{best} leads on {metric}"
    return f"Keep {best}: nothing beats it" if best == study.baseline else f"Ship {best}"


def _lifts(study: Study) -> Iterator[Tile]:
    """Yield the best against the baseline and against the next best."""
    next_best = study.names[1]
    titles = {} if study.baseline in (None, study.best) else {study.baseline: "the baseline"}
    titles[next_best] = "the baseline and the next best" if next_best in titles else "the next best"
    for other, title in titles.items():
        row = study.rows.get((study.best, other, study.headline))
        if row is None:
            continue
        kind = row.verdict.kind
        tone = kind if kind in {"better", "worse"} else "unclear"
        number = f"{100 * row.relative:+.1f}%" if math.isfinite(row.relative) else f"{row.difference:+.4f}"
        mean = "" if study.first(study.best).aggregate is None else "mean "  # other than the value above it
        text = f"{mean}{study.headline} {row.value:.4f} against {row.baseline_value:.4f}"
        if tone == "unclear":
            text += f": {row.verdict.word if kind != 'nothing_found' else 'no hit'}"
        yield Tile(f"over {other}, {title}", number, text, _small_print(row, study), tone)


def _small_print(row: Row, study: Study) -> str:
    """Interval, p and effect of a comparison; interval and p are corrected over its family."""
    parts = []
    lift, gap = row.relative_interval, row.interval
    ends = f"{100 * lift.low:+.1f} to {100 * lift.high:+.1f}%"
    if not math.isfinite(row.relative + lift.low + lift.high):
        unit = " of the difference" if math.isfinite(row.relative) else ""  # the number above is a lift
        ends = f"{unit} {gap.low:+.4f} to {gap.high:+.4f}".lstrip() if math.isfinite(gap.low) else ""
    if ends and gap.low < gap.high:
        confidence = row.own_interval.confidence
        word = "simultaneous interval" if gap.confidence > confidence else "interval"
        parts.append(f"{100 * confidence:.4g}% {word} {ends}")
    if math.isfinite(row.adjusted_p):
        parts.append(f"{_p_text(row.adjusted_p)} ({correction_words(study)})")
    if row.effect.name and math.isfinite(row.effect.value):
        parts.append(f"{row.effect.name} {row.effect.value:.2f}")
    return ", ".join(parts)


def _p_text(p: float) -> str:
    """Return a p-value with non-breaking spaces."""
    return format_p(p).replace(" ", "\u00a0")


def correction_words(study: Study) -> str:
    """Return how the comparison corrects p-values, such as "Holm over 4 comparisons"."""
    if study.comparison is None or study.comparison.table.options.correction == "none":
        return "not corrected"
    name = study.comparison.table.options.correction
    names = {"max-t": "max-T", "bh": "Benjamini-Hochberg", "by": "Benjamini-Yekutieli"}
    metric = study.comparison.headline
    n = sum(row.metric == metric for row in study.comparison.rows)
    over = plural(n, "comparison")
    return f"{names.get(name, name.title())} over {over} on {metric}"


def effect_name(study: Study) -> str:
    """Return the effect size of the comparison, such as d_z."""
    rows = () if study.comparison is None else study.comparison.rows
    return next((row.effect.name for row in rows if row.effect.name), "effect")


def _who_loses(study: Study) -> Iterator[Tile]:
    """Yield how many users the rival serves better, and in which group they are most frequent."""
    rival = study.rival or study.best
    row = study.rows.get((study.best, rival, study.headline))
    if row is None or not row.effect.name or not row.n_units:
        return
    share = row.losses / row.n_units
    groups = []
    for stratum in study.strata:
        for label in stratum.masks:
            against = study.group_rows[study.best].get((rival, stratum.name, label))
            if against is not None:
                n = against.wins + against.ties + against.losses
                groups.append((against.wins / n, against.wins, n, stratum.who(label)))
    small = ""
    if groups and row.losses:
        most, losses, n, who = max(groups)
        small = f"Most often among {study.case_noun}s {who} ({100 * most:.0f}%, {losses:,} of {n:,})."
    text = f"{row.losses:,} of {row.n_units:,} users are served worse than by {rival}, {row.wins:,} better"
    yield Tile("who loses", f"{100 * share:.0f}%" if share == 0 or share >= 0.005 else "< 1%", text, small)


def _trust(study: Study, n_cautions: int) -> Tile:
    """Return what the audit found, and how many cautions there are."""
    counts = {s: sum(f["severity"] == s for f in study.audited) for s in ("error", "warning")}
    found = [f"{n} audit {word}{'s' if n > 1 else ''}" for word, n in counts.items() if n]
    parts = [", ".join(found)] if found else []
    parts += [plural(n_cautions, "caution")] if n_cautions else []
    total = sum(counts.values()) + n_cautions
    named = [f["name"] for f in study.audited if f["severity"] in counts]
    nothing = "the audit found nothing" if study.audited else "nothing to be careful about"
    small = f"{', '.join(named[:4])}{' …' if len(named) > 4 else ''}"
    if not study.audited:
        small = worded(Phrase("Not audited: {report.write_report.audit=} adds what {audit()} found."))
    tone = "worse" if counts["error"] else "unclear" if total else ""
    href = "#cautions" if n_cautions and not named else "#audit" if study.audited else ""
    text = " and ".join(parts) or nothing
    return Tile("to be careful about", str(total), text, small, tone, href, is_sum=bool(parts))


def price(study: Study) -> list[Price]:
    """Return what the best gives up, against the best of each among the models that come near it in accuracy.

    Where a value is the same to the digits that are shown nothing is given up.
    """
    prices = []
    for label, values in _other_merits(study).items():
        shown = _short(values[study.best])
        near = _near_the_best(study, _NEARLY_AS_GOOD if label in UNITS else 0.5)
        leader = _leader(study, label, {n: values[n] for n in near if n in values})
        if shown == _short(values[leader]):
            continue
        unit = f" {UNITS[label]}" if label in UNITS else ""
        if label in study.requests and "in bits" in study.requests[label].metric.meaning:
            unit = " bits"
        less, more = sorted((values[leader], values[study.best]))
        ratio = less / more if less >= 0 else 0.0
        if label in UNITS and ratio > _SAME_COST:
            continue
        words = _in_words(ratio, is_more=_is_lower(study, label)) if less > 0 else "against"
        says = f"{label} {shown}{unit}, {words} {_of(leader)} {_short(values[leader])}{unit}"
        prices.append(Price(ratio, label, leader, says))
    return sorted(prices, key=lambda one: (one.label in UNITS, one.ratio))


def _is_lower(study: Study, label: str) -> bool:
    return label in UNITS or (label in study.requests and study.lower_is_better(label))


def _leader(study: Study, label: str, values: Mapping[str, float]) -> str:
    """Return the model with the best of these values."""
    return (min if _is_lower(study, label) else max)(values, key=lambda name: values[name])


def _other_merits(study: Study) -> dict[str, dict[str, float]]:
    """Find what else models are judged by: the values that the best and one near it have."""
    facts: dict[str, Mapping[str, float]] = {}
    covered = coverage(study)
    if covered is not None:
        facts[covered[0]] = covered[1]
    tail = head_and_tail(study)
    if tail is not None:
        for label, by_model in zip(("share of places for the tail", "recall of the tail"), tail, strict=True):
            facts[label] = {n: by_model[n]["tail"] for n in study.names if "tail" in by_model.get(n, {})}
    for name in main_metrics(study):
        if study.is_beyond_accuracy(name) and study.requests[name].metric.better != "zero":
            facts.setdefault(name, {n: study.value(n, name) for n in study.names})
    facts.pop(study.headline, None)
    facts |= costs(study)
    near, merits = set(_near_the_best(study)), {}
    for label, values in facts.items():
        known = {name: value for name, value in values.items() if math.isfinite(value)}
        if study.best in known and len(near & known.keys()) > 1:
            merits[label] = known
    return merits


def _near_the_best(study: Study, share: float = 0.5) -> list[str]:
    """Return the models with at least this share of the best headline value.

    Return all of them where that says nothing.
    """
    top = study.value(study.best, study.headline)
    is_share = study.requests[study.headline].metric.better == "higher" and top > 0
    near = [n for n in study.names if not is_share or study.value(n, study.headline) >= share * top]
    return near if len(near) > 1 else study.names


def _costs_nothing(study: Study) -> list[str]:
    """That nothing is given up against the models near the best, and which of the others is ahead."""
    merits, further = _other_merits(study), dict[str, list[str]]()
    merits = {label: values for label, values in merits.items() if label not in UNITS}
    for label, values in merits.items():
        leader = _leader(study, label, values)
        if _short(values[leader]) != _short(values[study.best]):
            further.setdefault(leader, []).append(f"{label} ({_short(values[leader])})")
    if not merits:
        return []
    is_far = len(_near_the_best(study)) < len(study.names)
    near = f"no other model{f' with at least half of its {study.headline}' if is_far else ''}"
    parts = [f"costs nothing measured here: {near} is ahead on {_and([*merits], 'or')}"]
    for leader, ahead in further.items():
        value = study.value(leader, study.headline)
        parts.append(f"{leader} is ahead on {_and(ahead)}, with {study.headline} {value:.4f}")
    return ["; ".join(parts)]


def _in_words(ratio: float, *, is_more: bool) -> str:
    """Write a ratio of two values, the smaller as a share of the larger: "half of", "2.0 times"."""
    if ratio > 0.97:
        return "much the same as"
    if ratio > 0.87:
        return "a little more than" if is_more else "a little behind"
    if is_more:
        return f"{1 / ratio:.1f} times"
    if ratio < 0.08:
        return "less than a tenth of"
    return _FRACTIONS[min(_FRACTIONS, key=lambda f: abs(math.log(f / ratio)))]


def _of(name: str) -> str:
    return f"{name}'" if name.endswith("s") else f"{name}'s"


def _short(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 0.1 else f"{value:.2f}"


def _changes(study: Study, tied: Sequence[str]) -> Iterator[str]:
    """Yield what would change the verdict."""
    best, metric = study.best, study.headline
    accuracy = [m for m in study.metrics if not study.is_beyond_accuracy(m) and m != metric]
    ahead: dict[str, list[str]] = {}
    for other in accuracy:
        leader = study.ranked(other)[0]
        if leader != best and study.value(leader, other) != study.value(best, other):
            row = study.rows.get((leader, best, other))
            is_clear = row is not None and row.verdict.kind == "better"
            ahead.setdefault(leader, []).append(other + (" (clearly)" if is_clear else " (not clearly)"))
    for leader, metrics in ahead.items():
        yield f"A secondary metric or cut-off: {leader} is ahead on {_and(metrics)}."
    if accuracy and not ahead:
        others = f"other {len(accuracy)}" if len(accuracy) > 1 else "other"
        leads = all(study.value(n, m) != study.value(best, m) for m in accuracy for n in study.names[1:])
        says = f"{best} leads on the {others} as well" if leads else f"no model is ahead on the {others}"
        yield f"No secondary metric of accuracy: {says}."
    elif not accuracy:
        yield "Another metric or cut-off may: no other metric of accuracy was evaluated."
    yield from _other_groups(study)
    next_row = study.rows.get((best, study.names[1], metric))
    if next_row is None or not next_row.effect.name:
        return
    differing, units = next_row.wins + next_row.losses, next_row.n_units
    if differing < FEW:
        if differing < units or units < _MIN_GROUP:
            yield f"More users: the two best differ for {differing:,} of {units:,} only."
    elif tied and next_row.difference and next_row.runs is None and next_row.standard_error > 0:
        # As many as the correction asks for: it leaves this comparison a part of the error rate.
        part = next_row.p_value / next_row.adjusted_p if next_row.adjusted_p > 0 else 1.0
        needed = next_row.users_needed(alpha=(1.0 - next_row.own_interval.confidence) * min(part, 1.0))
        if needed is not None and needed > next_row.n_units:
            yield (
                f"More users: if the difference from {study.names[1]} is real, about {needed:,} would show "
                f"it; there are {next_row.n_units:,}."
            )
    elif not tied and next_row.adjusted_p > _NEAR_BORDER:
        p = _p_text(next_row.adjusted_p)
        yield f"Other users: the lead over {study.names[1]} is close to the border, {p}."


def _other_goals(study: Study, prices: Sequence[Price]) -> Iterator[str]:
    """Yield who is ahead where something else than accuracy counts more."""
    ahead: dict[str, list[str]] = {}
    for one in prices:
        if one.leader != study.best and one.ratio < 0.97:
            ahead.setdefault(one.leader, []).append(one.label)
    if ahead:
        lines = [f"{leader} is ahead on {_and(labels)}" for leader, labels in ahead.items()]
        yield f"Another goal: {'; '.join(lines)}."


def _other_groups(study: Study) -> Iterator[str]:
    """Yield the groups for whom another model is ahead, by tests that hold over all groups and models."""
    groups = [(stratum, label) for stratum in study.strata for label in stratum.masks]
    leaders = [(ahead_in_group(study, *group), *group) for group in groups]
    lines = [f"{leader} for users {one.who(label)}" for leader, one, label in leaders if leader is not None]
    if lines:
        more = f" and {len(lines) - _MOST_GROUPS_NAMED} more" if len(lines) > _MOST_GROUPS_NAMED else ""
        named = "; ".join(lines[:_MOST_GROUPS_NAMED])
        over = plural(len(study.group_rows[study.best]), "comparison")
        where = f"in some groups another model is ahead of {study.best} ({named}{more})"
        yield f"Who your users are: {where}, by sign flips, Holm over {over} in groups."


def _nothing_found(study: Study) -> Decision:
    """Name the likely causes where no value is above 0, with the counts that point at one."""
    values = [study.value(n, study.headline) for n in study.names]
    subject = "No model" if len(values) > 1 else study.best
    if all(map(math.isnan, values)):
        heading = f"{subject} has {'a' if len(values) > 1 else 'no'} value of {study.headline}"
        says = f"{study.best} has no value of {study.headline}: no user is in its mean."
    else:
        heading = f"{subject} found {'anything' if len(values) > 1 else 'nothing'}"
        says = f"{study.headline} is 0 for everybody: no relevant item is in the places that count."
    return Decision(heading, says, causes=list(_causes(study)))


def _causes(study: Study) -> Iterator[str]:
    """Yield what can be the cause, by what is known of the results, the lists and the truth."""
    first, k = study.first(study.best), study.requests[study.headline].k
    counts, n_found = first.counts, first.counts.get("found")
    known = list(_what_differs(study))
    if not known and not n_found and None in (study.lists.get(study.best), study.truth):
        known = ["Ids that do not match: '7' as text and 7 as a number, blanks, another numbering."]
    if "lists_and_truth_swapped" in {caution.code for caution in first.cautions}:
        known.append("The two files may be swapped: recommendations come first, the truth second.")
    if counts.get("without_list"):
        known.append(f"Users without a list: {counts['without_list']:,} of {counts.get('cases', 0):,}.")
    if counts.get("without_truth"):
        of = f"{counts['without_truth']:,} of {counts.get('cases', 0):,}"
        known.append(f"Users without anything relevant: {of}.")
    if counts.get("not_candidates"):
        n = counts["not_candidates"]
        known.append(f"Judged items that no model could rank: {n:,} (new, or left out as seen).")
    if k is not None:
        below = f"{n_found:,} relevant items are further down" if n_found else "a larger one shows more"
        known.append(f"The cut-off: only the first {k} places count; {below}.")
    floor = first.conventions.relevant_from
    if floor or counts.get("without_truth"):
        border = f"of {floor:g} or more is relevant" if floor else "of 0 is not relevant"
        known.append(f"The grades: a grade {border}.")
    yield from known or ["None that the counts show: recsys inspect shows single users."]


def _what_differs(study: Study) -> Iterator[str]:
    """Users and items of the truth that the lists of the best do not have, and whether ids match at all."""
    lists, truth, train = study.lists.get(study.best), study.truth, study.history
    if lists is None or truth is None:
        return
    kinds = "the ids do not match: text on one side, numbers on the other"
    users, wanted = Ids(truth.cases.values[truth.sizes > 0]), Ids(truth.items.values[np.unique(truth.codes)])
    listed, shown = Ids(lists.cases.values[lists.sizes > 0]), Ids(lists.items.values[np.unique(lists.codes)])
    old = None if train is None else Ids(train.items.values[np.unique(train.codes)])
    n = _shared(listed, users)
    if n < len(users):
        why = "" if n else f"; {kinds if _differ_in_kind(listed, users) else 'other users, or other ids'}"
        yield f"Users: {n:,} of the {len(users):,} of the truth have a list of {study.best}{why}."
    n = _shared(shown, wanted)
    if n < len(wanted):
        why = ""
        if n == 0 and _differ_in_kind(shown, wanted):
            why = f"; {kinds}"
        elif n == 0 and old is not None and (n_old := _shared(old, wanted)):
            why = f"; the ids match, as {n_old:,} of them occur in training"
        elif n == 0:
            unseen = "" if train is None else ", nor in training"
            why = f"{unseen}: they are new, or their ids are written in another way"
        yield f"Items: {n:,} of the {len(wanted):,} relevant ones occur in the lists of {study.best}{why}."


def _differ_in_kind(first: Ids, second: Ids) -> bool:
    return first.values.dtype.kind != second.values.dtype.kind


def _shared(first: Ids, second: Ids) -> int:
    """Return how many ids of the second also occur in the first; ids of another kind never do."""
    return 0 if _differ_in_kind(first, second) else int((first.code_of(second.values) >= 0).sum())


def _and(names: Sequence[str], word: str = "and") -> str:
    """Names as an enumeration: the first three, and how many more there are."""
    names = list(names) if len(names) <= 4 else [*names[:3], f"{len(names) - 3} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"
