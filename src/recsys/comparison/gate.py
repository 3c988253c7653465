"""gate(): may the new model ship? Only if it is shown to be no worse than the old one by more than a margin.

A gate reverses a significance test: the burden of proof is on "no worse", so with too few users it fails
instead of passing. Users who do not differ prove little: where fewer than 20 do, or large losses are rare,
the bound allows for losses that were not seen (Gaffke's bound, from the range of the metric), and a note says
how many more users it would take. Every metric must pass, so none of the tests needs a correction.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from numbers import Real

import numpy as np

from recsys.comparison.compare import json_number, mean_columns, stopped_early, value_ranges
from recsys.errors import InputError, NotDefinedError
from recsys.evaluation import tables
from recsys.evaluation.cautions import Caution, comparison_cautions
from recsys.evaluation.results import Evaluation
from recsys.evaluation.uncertainty import needs_jackknife
from recsys.metrics.registry import Request, check_same_decisions
from recsys.stats.comparison_table import merge_notes
from recsys.stats.inference_results import check_confidence, notes_only
from recsys.stats.paired_tests import paired_t, rare_mean_test
from recsys.stats.pairing import Aligned, Differences, align
from recsys.stats.rare_values import METHOD, count_differing
from recsys.stats.resampling import unit_keys
from recsys.types import Float


@dataclass(frozen=True)
class GateCheck:
    """One metric compared with its margin; `change` is the relative gain of the new value."""

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
    notes: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The verdict on this metric."""
        limit = f"{100 * self.margin:.3g}%" if self.relative else f"{self.margin:.3g}"
        bound = f"{self.bound:+.2%}" if self.relative else f"{self.bound:+.4g}"
        bound = bound if math.isfinite(self.bound) else "anything"
        if self.passed:
            how = "better" if self.margin == 0 else f"no worse than {limit}"
            return f"shown to be {how}: at least {bound}"
        claim = "that it is better" if self.margin == 0 else f"that it is no worse than {limit}"
        return f"not shown {claim}: it may be {bound}"


@dataclass(frozen=True, repr=False)
class Gate(tables.Tabled):
    """All checks; passed if every one of them is."""

    checks: tuple[GateCheck, ...]
    confidence: float
    notes: tuple[str, ...] = ()
    cautions: tuple[Caution, ...] = ()

    @property
    def passed(self) -> bool:
        return all(check.passed for check in self.checks)

    def __bool__(self) -> bool:
        return self.passed

    def to_markdown(self) -> str:
        """A summary for a pull request."""
        head = f"### Recommendation quality: {'passed' if self.passed else 'FAILED'}"
        notes = [f"- {tables.markdown_text(note)}" for note in self._footnotes()[1:]]
        return "\n".join([head, "", tables.markdown(self._columns()), "", *notes])

    def to_json(self, *, indent: int | None = 2) -> str:
        checks = [
            {name: json_number(value) for name, value in asdict(check).items()} for check in self.checks
        ]
        document = {
            "passed": self.passed,
            "confidence": self.confidence,
            "checks": checks,
            "notes": list(self.notes),
            "cautions": [one._asdict() for one in self.cautions],
        }
        return json.dumps(document, indent=indent, ensure_ascii=False)

    def _columns(self) -> dict[str, list[object]]:
        return {
            "metric": [c.metric for c in self.checks],
            "new": [c.value for c in self.checks],
            "against": [c.against for c in self.checks],
            "change": [f"{c.change:+.2%}" if math.isfinite(c.change) else "n/a" for c in self.checks],
            "verdict": [c.words for c in self.checks],
            "": ["pass" if c.passed else "FAIL" for c in self.checks],
        }

    def _footnotes(self) -> list[str]:
        users = sorted({c.users for c in self.checks})
        users_text = (f"{users[0]:,} to " if len(users) > 1 else "") + tables.count_with_noun(
            users[-1], "user|users"
        )
        return [
            "passed" if self.passed else "FAILED",
            f"{users_text}, paired by id; one-sided bounds of {self.confidence:.0%} confidence",
            "every metric must pass, so none is corrected for the others",
            *self.notes,
            *merge_notes((c.metric, f"{c.metric}: {note}") for c in self.checks for note in c.notes),
            *map(str, self.cautions),
        ]


def gate(
    new: Evaluation,
    against: Evaluation,
    margins: Mapping[str, str | float],
    *,
    confidence: float = 0.95,
) -> Gate:
    """Test whether each metric is no worse than before by more than a margin.

    Where fewer than 20 users differ, or large losses are rare, the bound allows for losses that were not seen
    (anywhere in the range of the metric); a note says how many more users would be needed.

    Args:
        new: the evaluation of the new model.
        against: the evaluation of the current model, of the same users under the same conventions.
        margins: how much worse each metric may be: "1%" of the old value, or 0.005 in its own units; 0 asks
            that it is shown to be better.
        confidence: of the one-sided bound.

    >>> import recsys
    >>> truth = {u: {u} for u in range(1000)}
    >>> old = recsys.evaluate({u: [u if u % 2 else -1] for u in truth}, truth, ["hit@1"])
    >>> bool(gate(old, old, {"hit@1": "1%"})), bool(gate(old, old, {"hit@1": 0}))
    (True, False)
    """
    check_confidence(confidence)
    confidence = float(confidence)
    if not isinstance(margins, Mapping):
        raise InputError(
            f"the margins came as {type(margins).__name__}.",
            hint='Pass a margin for each metric: {"ndcg@10": "1%"}.',
        )
    if not margins:
        raise InputError("no metric was named.", hint='Say which: {"ndcg@10": "1%"}.')
    for side in (new, against):
        if not isinstance(side, Evaluation):
            raise InputError(f"a gate got {type(side).__name__}.", hint="Pass what recsys.evaluate returned.")
    evaluated = {str(r): r for r in new.requests}
    requests = [evaluated.get(str(request), request) for request in map(Request.parse, margins)]
    for at, request in enumerate(requests):
        _check_pairable(request)
        if str(request) in map(str, requests[:at]):
            raise InputError(f"{request} has two margins.", hint="Name each metric once.")
        for name, side in (("new result", new), ("result it is compared with", against)):
            if str(request) not in side:
                raise InputError(
                    f"the {name} has no {request}.", column=str(request), hint=f"It has {', '.join(side)}."
                )
    check_same_decisions(
        requests, ("the one it is compared with", against.conventions), ("the new result", new.conventions)
    )
    rows = {"new": mean_columns(new, requests), "old": mean_columns(against, requests)}
    aligned = align(rows, [str(r) for r in requests])
    ranges = value_ranges(requests, [new, against])
    counted = aligned
    if any(str(r) in new.partial.terms for r in requests):
        # Values of the delta method all move if one user differs.
        counted = align({"new": new.per_case, "old": against.per_case}, [str(r) for r in requests])
    with notes_only():
        checks = tuple(
            _check_metric(aligned, counted, request, (margin_text, confidence), ranges[str(request)])
            for request, margin_text in zip(requests, margins.values(), strict=True)
        )
    notes = [aligned.note()]
    early = stopped_early({"the new result": [new], "the one it is compared with": [against]})
    if early:
        how = "stopped early, and the bounds take the number of users for fixed beforehand"
        notes.append(f"{' and '.join(early)} {how}")
    cautions = comparison_cautions({"the old result": [against], "the new one": [new]})
    return Gate(checks, confidence, tuple(note for note in notes if note), cautions)


def _check_pairable(request: Request) -> None:
    """Refuse metrics that are no mean over users: they have no value per user to pair."""
    if needs_jackknife(request):
        raise NotDefinedError(
            f"{request} is one number of all lists, no mean: there is no value for each user to pair.",
            hint="recsys.compare says whether it differs; gate on metrics with a value for each user.",
        )
    if request.metric.unpaired:
        raise NotDefinedError(
            f"there is no gate on {request}: {request.metric.unpaired}.",
            hint="Name other metrics, such as rmse, mae or user_auc.",
        )


def _check_metric(
    aligned: Aligned,
    counted: Aligned,
    request: Request,
    demand: tuple[str | float, float],
    bounds: tuple[float, float],
) -> GateCheck:
    """One metric against its margin and confidence; users who differ are counted in `counted`."""
    name, (margin_text, confidence) = str(request), demand
    margin, relative = _parse_margin(name, margin_text)
    new, old = aligned.tables["new"][name], aligned.tables["old"][name]
    keep = ~(np.isnan(new) | np.isnan(old))
    if not keep.any():
        raise InputError(f"no user has {name} in both results.")
    sign = 1.0 if request.metric.better == "higher" else -1.0
    new_values, old_values = sign * new[keep], sign * old[keep]

    def paired(first: Float, second: Float) -> Differences:
        clusters = None if aligned.clusters is None else aligned.clusters[keep]
        weights = None if aligned.weights is None else aligned.weights[keep]
        return Differences(first, second, clusters, unit_keys(aligned.ids[keep]), weights)

    base = float(paired(old_values, np.zeros_like(old_values)).units().estimates()[0])
    difference = float(paired(new_values, old_values).units().estimates()[0])
    sides = paired(*(counted.tables[side][name][keep] for side in ("new", "old")))
    # A relative margin is a share of each user's own old value: no estimated mean is plugged in. With the
    # sign of the mean, these add up to that share of it, even if some users lie on the other side of 0.
    share = math.copysign(margin, base) if relative else 0.0
    shifted = paired(new_values + (share * old_values if relative else margin), old_values)
    # The range of new - (1 - share) * old, where both lie between the bounds.
    low, high = sorted(sign * end for end in bounds)
    shift = 0.0 if relative else margin
    ends = low - (1.0 - share) * high + shift, high - (1.0 - share) * low + shift
    test = rare_mean_test(
        shifted,
        0.0,
        ends,
        "greater",
        confidence=confidence,
        n_differing=count_differing(sides.unit_means(), 0.0),
    ) or paired_t(shifted, alternative="greater", confidence=confidence)
    bound = math.nan if test.interval is None else test.interval.low
    scale = abs(base) if base else math.nan
    least = (bound - margin * abs(base)) / scale if relative else bound - margin
    if relative and test.method == METHOD and low >= 0:
        least = max(least, -1.0)  # nothing falls below 0
    return GateCheck(
        metric=name,
        value=sign * (base + difference),
        against=sign * base,
        change=difference / scale,
        bound=least,
        margin=margin,
        relative=relative,
        p_value=test.p_value,
        users=len(new_values),
        passed=test.p_value <= 1 - confidence,
        notes=test.notes,
    )


def _parse_margin(metric: str, margin_text: str | float) -> tuple[float, bool]:
    text = str(margin_text).strip() if isinstance(margin_text, str | Real | Decimal) else ""
    relative = text.endswith("%")
    try:
        value = float(text[:-1]) / 100 if relative else float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf or (relative and value >= 1):
        raise InputError(
            f"the margin {margin_text!r} of {metric} is neither a share nor a number.",
            hint="Write '1%' of the old value, or 0.005 in the metric's own units.",
        )
    return value, relative
