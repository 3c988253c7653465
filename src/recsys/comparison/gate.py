"""gate(): may the new model ship? Only if it is shown to be no worse than the old one by more than a margin.

A gate reverses a significance test: the burden of proof is on "no worse", so with too few users it fails
instead of passing. Users who do not differ prove little: where fewer than 20 do, or large losses are rare,
the bound allows for losses that were not seen (Gaffke's bound, from the range of the metric), and a note says
how many more users it would take. A metric that is one number of all lists, such as coverage, has no value
for each user: its bound leaves out groups of users, as that of `compare` does. Every metric must pass, so
none of the tests needs a correction. A candidate that may pass on any of several nights has as many chances
to pass wrongly: each of the planned looks gets the same part of the level (Bonferroni), which holds whether
users are fresh or accumulate, and for bounds that are not normal.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from numbers import Real
from pathlib import Path
from typing import Any, Literal, NamedTuple

from recsys.comparison.compare import (
    aggregate_notes,
    mean_columns,
    read_results,
    stopped_early,
    value_ranges,
    why_no_demand,
)
from recsys.comparison.history import earlier_looks
from recsys.comparison.row_pieces import folder_of, row_pieces, why_in_memory
from recsys.display.markup import markdown_table, markdown_text
from recsys.display.number_words import plural
from recsys.display.tabled import Tabled
from recsys.display.words import PLAN_LOOKS, look_words, merged
from recsys.errors import InputError, Phrase, came_as, check_choice, notes_only, worded
from recsys.evaluation.asked import refuse_other_question
from recsys.evaluation.cautions import comparison_cautions
from recsys.evaluation.results import Evaluation, Missing
from recsys.evaluation.uncertainty import group_jackknife, needs_jackknife
from recsys.metrics.registry import Request
from recsys.records.arrays import Float, GroupKey
from recsys.records.checks import is_whole
from recsys.records.facts import Caution, Kind, Note, Verdict, note
from recsys.records.json_values import json_value
from recsys.stats.gaffke import METHOD
from recsys.stats.mean_inference import infer_mean
from recsys.stats.pair_pieces import PairsInMemory, PairsOfPieces, PairSource, Pieces, Triple
from recsys.stats.pairing import Aligned, align, describe_missing
from recsys.stats.results import check_confidence, t_ratio, t_tail
from recsys.stats.samples import Sample
from recsys.stats.sign_flips import SignFlips


@dataclass(frozen=True)
class GateCheck:
    """One metric compared with its margin; `change` is the relative gain of the new value.

    `group`: the users it is about, such as "country: FR", None for all. Too few of them to clear the margin
    with identical lists do not decide (`decides`); `needed` is how many could.
    """

    metric: str
    value: float
    against: float
    change: float
    bound: float
    margin: float
    relative: bool
    p_value: float
    users: int
    passed: bool
    notes: tuple[Note, ...] = ()
    needed: float = 0.0
    group: str | None = None
    decides: bool = True

    @property
    def name(self) -> str:
        """The metric, and the group where it is about one."""
        return self.metric if self.group is None else f"{self.metric} ({self.group})"

    @property
    def outcome(self) -> Verdict:
        """Whether it passed, or why it does not decide."""
        kind: Kind = "passed" if self.passed else "failed" if self.decides else "too_small"
        return Verdict(kind, self.metric, {"needed": self.needed})

    @property
    def limit(self) -> str:
        """The margin as it is written: a share of the old value, or a number."""
        return _limit(self.margin, relative=self.relative)

    @property
    def least(self) -> str:
        """The gain that the new value has at least, at the confidence of the gate."""
        if not math.isfinite(self.bound):
            return "anything"
        return f"{self.bound:+.2%}" if self.relative else f"{self.bound:+.4g}"

    @property
    def verdict(self) -> Verdict:
        """Whether the metric is shown to be better, or no worse by more than the margin."""
        numbers = {"limit": None if self.margin == 0 else self.limit, "least": self.least}
        return Verdict("shown" if self.passed else "not_shown", self.metric, numbers)

    @property
    def advice(self) -> str:
        """What to do about this metric where it failed."""
        gain = self.change if self.relative else self.change * abs(self.against)
        if gain < -self.margin:
            return Phrase(
                "The loss that was seen exceeds the margin: `{Comparison.report()}` shows which users lost."
            )
        if self.margin == 0:
            return Phrase("Evaluate more users, or ask only that it is no worse (`{gate.margins=}`).")
        return (
            "No loss beyond the margin was seen, but one is not ruled out: evaluate more users, or allow a "
            "larger margin if such a loss is acceptable."
        )


@dataclass(frozen=True, repr=False)
class Gate(Tabled):
    """All checks; passed if every one of them is.

    `confidence` is that of all planned `looks` together, and this is look number `look` as far as is known.
    """

    checks: tuple[GateCheck, ...]
    confidence: float
    notes: tuple[Note, ...] = ()
    cautions: tuple[Caution, ...] = ()
    looks: int = 1
    look: int = 1

    @property
    def passed(self) -> bool:
        return all(check.passed or not check.decides for check in self.checks)

    def __bool__(self) -> bool:
        return self.passed

    @property
    def _bound_confidence(self) -> str:
        """The confidence of each bound, in percent."""
        return f"{100 * (1.0 - (1.0 - self.confidence) / self.looks):.4g}%"

    def to_markdown(self) -> str:
        """Return a comment on a change: the verdict, what to do, the table, and how it was tested."""
        advice = ["Every metric passes. Nothing has to be done."]
        if not self.passed:
            advice = [
                f"- **{markdown_text(c.name)}**: {markdown_text(c.verdict)}. {worded(c.advice)}"
                for c in self.checks
                if c.decides and not c.passed
            ]
        cells = self._columns()
        columns: dict[str, list[Any]] = {
            **({"group": cells["group"]} if "group" in cells else {}),
            "metric": cells["metric"],
            "new": cells["new"],
            "old": cells["against"],
            "change": cells["change"],
            f"at least ({self._bound_confidence})": [c.least for c in self.checks],
            "needed": ["above 0" if c.margin == 0 else f"above -{c.limit}" for c in self.checks],
            "": cells[""],
        }
        late = [one for one in self.notes if one.code == "unplanned_look"]
        notes = self._tested([one for one in self.notes if one not in late])
        lines = [
            f"### Recommendation quality: {'passed' if self.passed else 'FAILED'}",
            *("", *advice),
            *("", markdown_table(columns)),
            *(f"\n**{markdown_text(caution)}**" for caution in (*late, *self.cautions)),
            *("", "<details><summary>How this was tested</summary>", ""),
            *(f"- {markdown_text(note)}" for note in notes),
            *("", "</details>"),
        ]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        return {
            "passed": self.passed,
            "confidence": self.confidence,
            "looks": self.looks,
            "look": self.look,
            "checks": json_value([vars(check) for check in self.checks]),
            "notes": json_value(self.notes),
            "cautions": [one.to_dict() for one in self.cautions],
        }

    def _columns(self) -> dict[str, list[object]]:
        in_groups = any(c.group for c in self.checks)
        groups: dict[str, list[object]] = {"group": [c.group or "all" for c in self.checks]}
        return (groups if in_groups else {}) | {
            "metric": [c.metric for c in self.checks],
            "new": [c.value for c in self.checks],
            "against": [c.against for c in self.checks],
            "change": [f"{c.change:+.2%}" if math.isfinite(c.change) else "n/a" for c in self.checks],
            "verdict": [c.verdict for c in self.checks],
            "": [c.outcome for c in self.checks],
        }

    def _footnotes(self) -> list[object]:
        return ["passed" if self.passed else "FAILED", *self._tested(self.notes), *self.cautions]

    def _tested(self, notes: Iterable[Note]) -> list[str]:
        """Return how it was tested, and these notes."""
        users = sorted({c.users for c in self.checks})
        users_text = (f"{users[0]:,} to " if len(users) > 1 else "") + plural(users[-1], "user")
        planned = f", {100 * self.confidence:.4g}% over {self.looks} planned looks" if self.looks > 1 else ""
        return [
            f"{users_text}, paired by id; one-sided bounds of {self._bound_confidence} confidence{planned}",
            "every metric must pass, so none is corrected for the others",
            *map(str, notes),
            *merged(note.about(c.name) for c in self.checks for note in c.notes),
        ]


def gate(
    new: Evaluation | str | os.PathLike[str],
    against: Evaluation | str | os.PathLike[str],
    margins: Mapping[str, str | float],
    *,
    confidence: float = 0.95,
    looks: int | None = None,
    history: str | Path | None = None,
    groups: Mapping[str, Mapping[str, str | float]] | None = None,
    small: Literal["list", "fail"] = "list",
    missing: Missing = "group",
) -> Gate:
    """Test whether each metric is no worse than before by more than a margin.

    The bound allows for losses that were not seen, anywhere in the range of the metric. Notes say where even
    identical lists of so many users could not pass, and how many more would be needed where few differ.
    Results whose values per user lie in folders are compared piece by piece, without holding the values.

    Args:
        new: the evaluation of the new model, or the path where it was saved.
        against: that of the current model, of the same users under the same conventions. An error says where
            their candidates differ, or one of them left out what users had before (`seen=`).
        margins: how much worse each metric may be: "1%" of the old value, or 0.005 in its own units; 0 asks
            that it is shown to be better. One so wide that no model can fail it is refused.
        confidence: of the one-sided bound.
        looks: how often this candidate may be asked about on other users, of which passing once is enough:
            wrongly passing any of them is as unlikely as confidence says. By default once.
        history: a folder of results over time. From the second test on which it holds the candidate (by name,
            unless it learnt from other data), a note says so; more looks than were planned are an error.
        groups: {grouping: margins} that every group of users must keep, too, such as {"country": {"ndcg@10":
            "2%"}}; both results must have these groups (`evaluate(by=)`).
        small: groups of so few users that even identical lists could not clear the margin are listed with
            the users they need ("list"), or fail.
        missing: users without a group are one ("group"), are left out ("drop") or raise an "error".

    >>> import recsys
    >>> truth = {u: {u} for u in range(1000)}
    >>> old = recsys.evaluate({u: [u if u % 2 else -1] for u in truth}, truth, ["hit@1"])
    >>> bool(gate(old, old, {"hit@1": "1%"})), bool(gate(old, old, {"hit@1": 0}))
    (True, False)
    """
    check_confidence(confidence)
    check_choice("value of small", small, ("list", "fail"))
    confidence, by_metric = float(confidence), _margins_by_metric(margins)
    if groups is not None and not isinstance(groups, Mapping):
        raise came_as("groups", groups, hint='Such as {"country": {"ndcg@10": "2%"}}.')
    of_groups = {grouping: _margins_by_metric(own) for grouping, own in (groups or {}).items()}
    names = list(dict.fromkeys([*by_metric, *itertools.chain(*of_groups.values())]))
    runs, requests = read_results({"the old result": [against], "the new result": [new]}, names)
    (other,), (result,) = runs.values()
    refuse_other_question(other.asked, result.asked, ("the old result", "the new one"))
    ranges = value_ranges(requests, [result, other])
    look, late = _find_look(result, history, looks)
    planned, each = looks or 1, 1.0 - (1.0 - confidence) / (looks or 1)
    request_of = {str(request): request for request in requests}

    def demanded(own: Mapping[str, str | float]) -> dict[str, _Demand]:
        return {name: _demand(request_of[name], text, [other, result], each) for name, text in own.items()}

    demands, sides = demanded(by_metric), {"new": result, "old": other}
    with notes_only():
        checks, notes = _check_all(sides, demands, ranges)
        for grouping, own in of_groups.items():
            of_group, empty = _check_groups(sides, grouping, demanded(own), ranges, missing)
            checks += [replace(check, decides=check.decides or small == "fail") for check in of_group]
            notes += [note("empty_groups", grouping, groups=empty)] if empty else []
    notes += aggregate_notes(sides.values())
    early = stopped_early({"the new result": [result], "the one it is compared with": [other]})
    if early:
        notes.append(note("stopped_results", models=early))
    cautions = comparison_cautions({"the old result": [other], "the new one": [result]}, demands)
    return Gate(tuple(checks), confidence, (*late, *notes), cautions, planned, look)


def _margins_by_metric(margins: Any) -> dict[str, str | float]:
    """Return {metric, as results name it: margin}."""
    if not isinstance(margins, Mapping):
        raise InputError(
            f"the margins came as {type(margins).__name__}.",
            hint='Pass a margin for each metric: {"ndcg@10": "1%"}.',
        )
    if not margins:
        raise InputError("no metric was named.", hint='Say which: {"ndcg@10": "1%"}.')
    names = [str(Request.parse(name)) for name in margins]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{twice} has two margins.", hint="Name each metric once.")
    return dict(zip(names, margins.values(), strict=True))


def _check_all(
    sides: Mapping[str, Evaluation],
    demands: Mapping[str, _Demand],
    ranges: Mapping[str, tuple[float, float]],
) -> tuple[list[GateCheck], list[Note]]:
    """Return a check of each metric, in order, and notes on the rows."""
    of_users = {name: demand for name, demand in demands.items() if not needs_jackknife(demand.request)}
    checks, notes = _check_rows(sides, of_users, ranges) if of_users else ([], [])
    by_name = {check.metric: check for check in checks}
    whole = {n: _check_whole(sides["new"], sides["old"], d) for n, d in demands.items() if n not in by_name}
    return [(by_name | whole)[name] for name in demands], notes


def _check_groups(
    sides: Mapping[str, Evaluation],
    grouping: str,
    demands: Mapping[str, _Demand],
    ranges: Mapping[str, tuple[float, float]],
    missing: Missing,
) -> tuple[list[GateCheck], dict[Any, int]]:
    """Return the checks of each group, and {label: its users} of groups that one of the results lacks."""
    new, old = (sides[side].groups_in(grouping, missing) for side in ("new", "old"))
    checks = []
    for label in [label for label in new if label in old]:
        group = GroupKey(grouping, label)
        found, _ = _check_all({name: side.of_group(group) for name, side in sides.items()}, demands, ranges)
        for check in found:
            # Of an old value of 0, no share is a margin.
            is_small = not check.passed and (
                check.needed > check.users or (check.relative and not check.against)
            )
            checks.append(replace(check, group=str(group), decides=not is_small))
    lacking = {label: by for by, others in ((new, old), (old, new)) for label in by if label not in others}
    return checks, {
        label: int(sides["new" if by is new else "old"].group_masks[GroupKey(grouping, label)].sum())
        for label, by in lacking.items()
    }


def _find_look(
    new: Evaluation, history: str | Path | None, looks: int | None
) -> tuple[int, tuple[Note, ...]]:
    """Return which look at a candidate this is, and a note if none was planned after the first."""
    if looks is not None and not is_whole(looks, 1):
        raise InputError(f"looks={looks!r} is not a number of looks.", hint="Such as 14, for two weeks.")
    look = 1 if history is None else earlier_looks(new, history) + 1
    if look <= (looks or 1):
        return look, ()
    facts: dict[str, Any] = {"look": look, "name": new.name, "planned": looks or "one"}
    if looks is not None:
        raise InputError(f"{look_words(**facts)}.", hint=PLAN_LOOKS)
    return look, (note("unplanned_look", **facts),)


def _check_rows(
    results: Mapping[str, Evaluation],
    demands: Mapping[str, _Demand],
    ranges: Mapping[str, tuple[float, float]],
) -> tuple[list[GateCheck], list[Note]]:
    """Return the checks, of sums over pieces if all rows lie in folders, and notes on the rows."""
    requests, notes = [demand.request for demand in demands.values()], list[Note]()
    names, triples = list(demands), [demand.triple for demand in demands.values()]
    has_terms = [name for name in names if name in results["new"].partial.terms]
    reason = why_in_memory(results)
    if reason:
        values = align({side: mean_columns(e, requests) for side, e in results.items()}, names)
        # Values of the delta method all move if one user differs.
        counted = align({side: e.per_case for side, e in results.items()}, names) if has_terms else None
        if any(folder_of(side) is not None for side in results.values()):
            notes = [note("in_memory", reason=reason)]

    def pairs(change: Callable[[Aligned], Aligned] = lambda values: values) -> PairSource:
        if reason:
            return PairsInMemory(change(values), counted)
        rows, centres = row_pieces(results, requests), {side: e.overall for side, e in results.items()}
        pieces: Pieces = lambda names: ((change(one), other) for one, other in rows(names))  # noqa: E731
        return PairsOfPieces(pieces, triples, centres, has_terms)

    plain, means = pairs(), dict[str, _Means]()
    for name, demand in demands.items():
        found, differing = plain.of(demand.triple)
        if not found.n_cases:
            raise InputError(f"no user has {name} in both results.")
        sides = found.side_estimates()
        base = demand.sign * (sides.second if demand.sign > 0 else sides.first)
        means[name] = _Means(found.n_cases, base, found.sample.mean, differing.sample.differing[0])

    def moved(values: Aligned) -> Aligned:
        new, old = values.tables["new"], values.tables["old"]
        shifted = {n: demands[n].moved(new[n], old[n], means[n].base) for n in new}
        return replace(values, tables={"new": shifted, "old": old})

    by_margin = pairs(moved)
    checks = [
        _check_metric(by_margin.of(demand.triple)[0].sample, demand, means[name], ranges[name])
        for name, demand in demands.items()
    ]
    return checks, [*describe_missing(plain.missing, plain.n_cases), *notes]


def _limit(margin: float, *, relative: bool) -> str:
    return f"{100 * margin:.3g}%" if relative else f"{margin:.3g}"


class _Demand(NamedTuple):
    """What is asked of one metric: a margin, a share of the old value if `relative`, and the confidence."""

    request: Request
    margin: float
    relative: bool
    confidence: float

    @property
    def sign(self) -> float:
        return 1.0 if self.request.metric.better == "higher" else -1.0

    @property
    def triple(self) -> Triple:
        """The two sides and the metric, so that more is better of the difference."""
        sides = ("new", "old") if self.sign > 0 else ("old", "new")
        return (*sides, str(self.request))

    def share(self, base: float) -> float:
        """Return the share of each user's own old value that a relative margin is.

        No estimated mean is plugged in.

        With the sign of the mean, these add up to that share of it, even if some users are on the other side
        of 0.
        """
        return math.copysign(self.margin, base) if self.relative else 0.0

    def moved(self, new: Float, old: Float, base: float) -> Float:
        """Return the new values of users, moved by the margin."""
        return new + (self.share(base) * old if self.relative else self.sign * self.margin)

    def check(self, gain: tuple[float, float, float], bound: float, **found: Any) -> GateCheck:
        """Return the check, from the new value, the old one and their difference, where more is better.

        `bound` is that of the difference, to which the margin was added.
        """
        new, old, difference = gain
        scale = abs(old) if old else math.nan
        return GateCheck(
            metric=str(self.request),
            value=self.sign * new,
            against=self.sign * old,
            change=difference / scale,
            bound=(bound - self.margin * abs(old)) / scale if self.relative else bound - self.margin,
            margin=self.margin,
            relative=self.relative,
            **found,
        )


class _Means(NamedTuple):
    """Of the users who have both values: how many, the old mean, the gain, and how many users differ."""

    users: int
    base: float
    difference: float
    n_differing: int


def _check_metric(shifted: Sample, demand: _Demand, means: _Means, bounds: tuple[float, float]) -> GateCheck:
    """Return one metric against its margin, from differences of which the new value is moved by it."""
    margin, relative, confidence = demand.margin, demand.relative, demand.confidence
    sign, share = demand.sign, demand.share(means.base)
    # The range of new - (1 - share) * old, where both lie between the bounds.
    low, high = sorted(sign * end for end in bounds)
    shift = 0.0 if relative else margin
    ends = low - (1.0 - share) * high + shift, high - (1.0 - share) * low + shift
    test = infer_mean(
        shifted, 0.0, "greater", bounds=ends, confidence=confidence, n_differing=means.n_differing
    )
    passed = test.p_value <= 1 - confidence
    notes = test.notes
    width = abs(demand.share(means.base) * means.base) if relative else margin
    # The bound of identical values is 1 - alpha^(1/n) of the range below them.
    share_of_range = width / (high - low)
    needed = math.log(1.0 - confidence) / math.log1p(-share_of_range) if 1e-300 < share_of_range < 1 else 0.0
    if needed > means.users and not passed:
        narrow = note(
            "narrow_margin", limit=_limit(margin, relative=relative), n=means.users, needed=math.ceil(needed)
        )
        # One number of users that are needed: how many more like these would do is another question.
        notes = (narrow, *(one.but(needed=None) for one in notes))
    if (
        margin == 0
        and not passed
        and (p := SignFlips.of(shifted).p_value()) < 1 - confidence
        and means.difference > 0
    ):
        notes += (note("better_in_compare", p=p),)
    check = demand.check(
        (means.base + means.difference, means.base, means.difference),
        test.interval.low,
        p_value=test.p_value,
        users=means.users,
        passed=passed,
        notes=notes,
        needed=needed,
    )
    if relative and test.method == METHOD and low >= 0:
        return replace(check, bound=max(check.bound, -1.0))  # nothing falls below 0
    return check


def _check_whole(new: Evaluation, old: Evaluation, demand: _Demand) -> GateCheck:
    """Return a metric that is one number of all lists against its margin, by leaving out groups of users."""
    request, margin, relative, confidence = demand
    if not confidence > 0.5:
        raise InputError(f"a gate on {request} has no confidence of {confidence:g}.", hint="Try 0.95.")
    first, second = (
        group_jackknife(side.partial, request, side.conventions).times(demand.sign) for side in (new, old)
    )
    base, shift = second.value, 0.0 if relative else margin
    moved = first - second.times(1.0 - demand.share(base))
    estimate = moved.estimate(2.0 * confidence - 1.0)  # its lower end alone has the confidence of the gate
    bound = estimate.interval.low + shift
    p_value = t_tail(t_ratio(estimate.value + shift, estimate.standard_error), moved.df, "greater")
    return demand.check(
        (first.value, base, first.value - base),
        bound,
        p_value=math.nan if moved.is_constant else p_value,
        users=int(second.sizes.sum()),
        passed=bound > 0,
        notes=estimate.notes,
    )


def _demand(
    request: Request, margin_text: str | float, results: Sequence[Evaluation], confidence: float
) -> _Demand:
    """Return what a margin asks of one metric of `results`, of which the first is the old one."""
    text = str(margin_text).strip() if isinstance(margin_text, str | Real | Decimal) else ""
    relative = text.endswith("%")
    try:
        margin = float(text[:-1]) / 100 if relative else float(text)
    except ValueError:
        margin = math.nan
    hint = "Write '1%' of the old value, or 0.005 in the metric's own units."
    if not 0 <= margin < math.inf or (relative and margin >= 1):
        raise InputError(
            f"the margin {margin_text!r} of {request} is neither a share nor a number.", hint=hint
        )
    reason = None if relative else why_no_demand(margin, request, results[0], results)
    if reason:
        meant = f"Did you mean '{margin:g}%'? " if margin < 100 else ""
        raise InputError(
            f"no model can fail the margin {margin_text!r} of {request}: {reason}.", hint=meant + hint
        )
    return _Demand(request, margin, relative, confidence)
