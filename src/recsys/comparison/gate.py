"""gate(): may the new model ship? Shown to be no worse than the old one by more than a margin, or refused.

A gate asks the opposite of a significance test: the burden of proof is on "no worse", so too few users fail
it instead of passing it. Every metric must pass, and therefore none of the tests needs a correction.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from recsys.errors import ConventionError, InputError, NotDefinedError
from recsys.evaluation import tables
from recsys.evaluation.results import Evaluation
from recsys.evaluation.uncertainty import is_grouped, mean_column
from recsys.metrics.requests import Request
from recsys.stats.alignment import Aligned, Differences, align
from recsys.stats.inference_results import check_confidence
from recsys.stats.resampling import unit_keys
from recsys.stats.statistics_warnings import StatisticsWarning
from recsys.stats.tests import paired_t
from recsys.types import Float, PerCase


@dataclass(frozen=True)
class GateCheck:
    """One metric held against its margin; `change` is the new value's gain (positive: better), relative."""

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

    @property
    def words(self) -> str:
        """The verdict on this metric."""
        limit = f"{100 * self.margin:.3g}%" if self.relative else f"{self.margin:.3g}"
        reached = f"{self.bound:+.2%}" if self.relative else f"{self.bound:+.4g}"
        reached = reached if math.isfinite(self.bound) else "anything"
        if self.passed:
            how = "better" if self.margin == 0 else f"no worse than {limit}"
            return f"shown to be {how}: at least {reached}"
        wanted = "that it is better" if self.margin == 0 else f"that it is no worse than {limit}"
        return f"not shown {wanted}: it may be {reached}"


@dataclass(frozen=True, repr=False)
class Gate(tables.Tabled):
    """All the checks; passed when every one of them is."""

    checks: tuple[GateCheck, ...]
    confidence: float
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return all(check.passed for check in self.checks)

    def __bool__(self) -> bool:
        return self.passed

    def to_markdown(self) -> str:
        """A summary for a pull request."""
        head = f"### Recommendation quality: {'passed' if self.passed else 'FAILED'}"
        notes = [f"- {note}" for note in self._footnotes()[1:]]
        return "\n".join([head, "", tables.markdown(self._columns()), "", *notes])

    def to_json(self, *, indent: int | None = 2) -> str:
        checks = [{name: _plain(value) for name, value in asdict(check).items()} for check in self.checks]
        document = {"passed": self.passed, "confidence": self.confidence, "checks": checks}
        return json.dumps(document | {"notes": list(self.notes)}, indent=indent, ensure_ascii=False)

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
        many = (f"{users[0]:,} to " if len(users) > 1 else "") + tables.many(users[-1], "user|users")
        return [
            "passed" if self.passed else "FAILED",
            f"{many}, paired by id; one-sided bounds of {self.confidence:.0%} confidence",
            "every metric must pass, so none is corrected for the others",
            *self.notes,
        ]


def gate(
    new: Evaluation,
    against: Evaluation,
    margins: Mapping[str, str | float],
    *,
    confidence: float = 0.95,
) -> Gate:
    """Whether each metric is shown to be no worse than before by more than a margin.

    Args:
        new: the evaluation that asks to pass.
        against: the one in force, of the same users under the same conventions.
        margins: how much worse each metric may be: "1%" of the old value, or 0.005 in its own units; 0 asks
            that it is shown to be better.
        confidence: of the one-sided bound.

    >>> import recsys
    >>> truth = {u: {u} for u in range(400)}
    >>> old = recsys.evaluate({u: [u if u % 2 else -1] for u in truth}, truth, ["hit@1"])
    >>> bool(gate(old, old, {"hit@1": "1%"})), bool(gate(old, old, {"hit@1": 0}))
    (True, False)
    """
    check_confidence(confidence)
    if not isinstance(margins, Mapping):
        raise InputError(
            f"the margins came as {type(margins).__name__}.",
            hint='Pass a margin a metric: {"ndcg@10": "1%"}.',
        )
    if not margins:
        raise InputError("no metric was named.", hint='Say which: {"ndcg@10": "1%"}.')
    for side in (new, against):
        if not isinstance(side, Evaluation):
            raise InputError(f"a gate got {type(side).__name__}.", hint="Pass what recsys.evaluate returned.")
    if new.conventions != against.conventions:
        raise ConventionError(
            f"the new result was evaluated under other conventions ({new.conventions}) than the one it is "
            f"held against ({against.conventions}).",
            hint="recsys.explain(a, b) says what differs.",
        )
    known = {str(r): r for r in new.requests}
    requests = [known.get(str(asked), asked) for asked in map(Request.parse, margins)]
    for at, request in enumerate(requests):
        _check_pairs(request)
        if str(request) in map(str, requests[:at]):
            raise InputError(f"{request} has two margins.", hint="Name each metric once.")
        for name, side in (("new result", new), ("result it is held against", against)):
            if str(request) not in side:
                raise InputError(
                    f"the {name} has no {request}.", column=str(request), hint=f"It has {', '.join(side)}."
                )
    rows = {"new": _means(new, requests), "old": _means(against, requests)}
    aligned = align(rows, [str(r) for r in requests])
    with warnings.catch_warnings():
        # Few users or no spread fail the gate by themselves; the verdict says so.
        warnings.simplefilter("ignore", StatisticsWarning)
        checks = tuple(
            _checked(aligned, request, given, confidence)
            for request, given in zip(requests, margins.values(), strict=True)
        )
    said = (aligned.note(), _stopped({"the new result": new, "the one it is held against": against}))
    return Gate(checks, confidence, tuple(note for note in said if note))


def _stopped(sides: Mapping[str, Evaluation]) -> str:
    """A word where a result was stopped once it looked clear: no bound here knows of that."""
    early = [name for name, e in sides.items() if e.notes.get("stopped", {}).get("share_saved", 0.0) > 0]
    how = "stopped early, and the bounds take the number of users for fixed beforehand"
    return f"{' and '.join(early)} {how}" if early else ""


def _check_pairs(request: Request) -> None:
    """Refuse what is no mean over users: no value of a user's own says what the number gained."""
    if is_grouped(request):
        raise NotDefinedError(
            f"{request} is one number of all lists, no mean: there is no value for each user to pair.",
            hint="recsys.compare says whether it differs; gate on metrics with a value for each user.",
        )
    if request.metric.unpaired:
        raise NotDefinedError(
            f"there is no gate on {request}: {request.metric.unpaired}.",
            hint="Name other metrics, such as rmse, mae or user_auc.",
        )


def _means(evaluation: Evaluation, requests: Sequence[Request]) -> PerCase:
    """Values per case whose means are the numbers reported: pooled and derived ones by the delta method."""
    held = {str(r): r for r in requests if str(r) in evaluation.per_case.columns}
    return replace(
        evaluation.per_case, columns={name: mean_column(evaluation.partial, r) for name, r in held.items()}
    )


def _checked(aligned: Aligned, request: Request, given: str | float, confidence: float) -> GateCheck:
    name = str(request)
    margin, relative = _margin(name, given)
    new, old = aligned.tables["new"][name], aligned.tables["old"][name]
    keep = ~(np.isnan(new) | np.isnan(old))
    if not keep.any():
        raise InputError(f"no user has {name} in both results.")
    sign = 1.0 if request.metric.better == "higher" else -1.0
    mine, theirs = sign * new[keep], sign * old[keep]

    def paired(first: Float, second: Float) -> Differences:
        clusters = None if aligned.clusters is None else aligned.clusters[keep]
        weights = None if aligned.weights is None else aligned.weights[keep]
        return Differences(first, second, clusters, unit_keys(aligned.ids[keep]), weights)

    base = float(paired(theirs, np.zeros_like(theirs)).units().estimates()[0])
    difference = float(paired(mine, theirs).units().estimates()[0])
    # A relative margin moves with each user's own old value: no estimated mean is plugged in. Taken with the
    # sign of the mean, these add up to that share of it, also where some users lie on the other side of 0.
    shifted = paired(mine + (math.copysign(margin, base) * theirs if relative else margin), theirs)
    test = paired_t(shifted, alternative="greater", confidence=confidence)
    bound = math.nan if test.interval is None else test.interval.low
    low = bound - (margin * abs(base) if relative else margin)
    scale = abs(base) if base else math.nan
    return GateCheck(
        metric=name,
        value=sign * (base + difference),
        against=sign * base,
        change=difference / scale,
        bound=low / scale if relative else low,
        margin=margin,
        relative=relative,
        p_value=test.p_value,
        users=len(mine),
        passed=test.p_value <= 1 - confidence,
    )


def _plain(value: object) -> object:
    """A value as JSON knows it: nothing where there is no number."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _margin(metric: str, given: str | float) -> tuple[float, bool]:
    text = str(given).strip()
    relative = text.endswith("%")
    try:
        value = float(text[:-1]) / 100 if relative else float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf or (relative and value >= 1):
        raise InputError(
            f"the margin {given!r} of {metric} is neither a share nor a number.",
            hint="Write '1%' of the old value, or 0.005 in the metric's own units.",
        )
    return value, relative
