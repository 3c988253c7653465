"""conform(): whether an implementation, in any language, gives the numbers of the standard (docs/standard).

Every test vector is a question to the implementation: lists, truth, k, a metric, its parameters, the
decisions that differ from the default, and what else is known. It may answer with the number over all cases
or with one number per case.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from recsys.comparison.implementations import Answer, Function, Refusal, answers_of, check_tolerance
from recsys.comparison.standard import TOLERANCE, VERSION, Vector, standard_metrics, vectors
from recsys.conventions.decisions import DECISIONS
from recsys.display.tabled import Tabled
from recsys.errors import InputError, Phrase, UnknownNameError, verb
from recsys.metrics.registry import lookup, lookup_rating, split_names
from recsys.records.checks import check_choices, one_or_several

Verdict = Literal["passed", "failed", "refused"]
_Name = TypeVar("_Name", str, tuple[str, str])


@dataclass(frozen=True)
class VectorResult:
    """One vector, what was answered, and whether that is what the standard says."""

    vector: Vector
    answer: Answer
    verdict: Verdict

    @property
    def size(self) -> int:
        """How much one has to read to understand the question."""
        return len(json.dumps(self.vector.question()))

    def to_dict(self) -> dict[str, Any]:
        """Return the question, the expected answer and the one that came."""
        got = {"error": str(self.answer)} if isinstance(self.answer, Refusal) else {"value": self.answer}
        expected = dict(self.vector.expected)
        return {"question": self.vector.question(), "expected": expected, "got": got}


@dataclass(frozen=True, repr=False)
class Conformance(Tabled):
    """How many vectors of the standard an implementation gets right; true if it is all of them.

    A vector is refused if the implementation answers with an error where the standard has a number.
    """

    results: tuple[VectorResult, ...]

    def __bool__(self) -> bool:
        return all(result.verdict == "passed" for result in self.results)

    @property
    def by_metric(self) -> dict[str, dict[Verdict, int]]:
        """{metric: {"passed": …, "failed": …, "refused": …}}; those of predictions by their family too."""
        shared = {m.name for m in standard_metrics() if "predictions" not in m.needs}

        def name(vector: Vector) -> str:
            twice = vector.family == "predictions" and vector.metric in shared
            return f"{vector.metric} of predictions" if twice else vector.metric

        return _counts((name(result.vector), result.verdict) for result in self.results)

    @property
    def by_decision(self) -> dict[str, dict[Verdict, int]]:
        """The same for every value of a decision, such as "gain=exp2", and for "default"."""
        return {"=".join(filter(None, words)): row for words, row in self._by_value().items()}

    def _by_value(self) -> dict[tuple[str, str], dict[Verdict, int]]:
        rows = []
        for result in self.results:
            changed = [(name, str(value)) for name, value in result.vector.conventions.items()]
            rows += [(words, result.verdict) for words in changed or [("default", "")]]
        return _counts(rows)

    def _wrong_by_decision(self) -> dict[str, str]:
        """For each decision how many vectors were answered otherwise, and under which of its values."""
        wrong: dict[str, dict[str, int]] = {}
        asked: Counter[str] = Counter()
        for (name, value), row in self._by_value().items():
            asked[name] += sum(row.values())
            short = value if len(value) < 20 else "a table"
            wrong.setdefault(name, {})[short] = row["failed"] + row["refused"]
        lines = {}
        for name, values in sorted(wrong.items(), key=lambda one: one[0] != "default"):
            under = "" if all(values.values()) else ": " + ", ".join(v for v, n in values.items() if n)
            if any(values.values()):
                lines[name] = f"{name} ({sum(values.values())} of {asked[name]}{under})"
        return lines

    @property
    def smallest_failure(self) -> VectorResult | None:
        """The shortest question that was answered otherwise than the standard says."""
        wrong = [result for result in self.results if result.verdict != "passed"]
        return min(wrong, key=lambda result: (result.verdict == "refused", result.size), default=None)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as values that JSON can hold."""
        smallest = self.smallest_failure
        return {
            "standard": VERSION,
            "conforms": bool(self),
            "vectors": len(self.results),
            "metrics": self.by_metric,
            "decisions": self.by_decision,
            "smallest_failure": None if smallest is None else smallest.to_dict(),
        }

    def _columns(self) -> dict[str, list[Any]]:
        rows = self.by_metric
        counts: dict[str, list[Any]] = {v: [row[v] for row in rows.values()] for v in _VERDICTS}
        return {"metric": [*rows], **counts}

    def _footnotes(self) -> list[str]:
        passed = sum(result.verdict == "passed" for result in self.results)
        notes = [f"{passed} of {len(self.results)} vectors of the standard, version {VERSION}"]
        wrong = self._wrong_by_decision()
        if wrong:
            notes.append("not as the standard says: " + ", ".join(wrong.values()))
        if len(wrong) > 1 and "default" in wrong:
            notes.append(Phrase("every decision builds on the default: begin with {conform.decisions=[]}"))
        smallest = self.smallest_failure
        if smallest is not None:
            shown = smallest.to_dict()
            notes.append(f"the smallest of these: {smallest.vector.name}")
            notes += [f"{part}: {json.dumps(shown[part])}" for part in ("question", "expected", "got")]
        return notes


_VERDICTS: tuple[Verdict, ...] = ("passed", "failed", "refused")


def _counts(rows: Iterable[tuple[_Name, Verdict]]) -> dict[_Name, dict[Verdict, int]]:
    counts: dict[_Name, dict[Verdict, int]] = {}
    for name, verdict in rows:
        counts.setdefault(name, dict.fromkeys(_VERDICTS, 0))[verdict] += 1
    return counts


@verb
def conform(
    implementation: Function | str | Sequence[str],
    metrics: str | Iterable[str] | None = None,
    *,
    decisions: str | Iterable[str] | None = None,
    tolerance: float = TOLERANCE,
    timeout: float = 60.0,
) -> Conformance:
    """Score an evaluator against the test vectors of the standard.

    Args:
        implementation: a function `f(run, truth, k, *, metric, params, conventions, context, family)` that
            returns one number, or {user: number} without the users who are left out; or a command, as text or
            a list of words, that reads such questions as JSON lines and prints {"value": …} for each. An
            error, or {"error": …}, says that it has no answer.
        metrics: names, without a cut-off; by default every metric of the standard.
        decisions: the decisions it knows: vectors that change others are left out. None: all of them; an
            empty list: those under the default alone.
        tolerance: the largest difference, relative to the larger of 1 and the expected value.
        timeout: seconds that a command may take.

    Raises:
        UnknownNameError: a metric or a decision is not known.
        InputError: nothing was answered, or an answer is not a number.

    >>> def hit_rate(run, truth, k, conventions, **asked):
    ...     if conventions:
    ...         raise NotImplementedError("one convention only")
    ...     users = [user for user, grades in truth.items() if any(grades.values())]
    ...     tops = {u: sorted(run.get(u, []), key=lambda pair: (-pair[1], pair[0]))[:k] for u in users}
    ...     return {u: float(any(truth[u].get(item, 0) > 0 for item, _ in tops[u])) for u in users}
    >>> result = conform(hit_rate, "hit", decisions=[])
    >>> result.by_metric["hit"]["failed"], bool(result)
    (0, True)
    """
    tolerance = check_tolerance(tolerance)
    asked = ask_for(metrics, decisions)
    answers = answers_of(implementation, [vector.question() for vector in asked], timeout=timeout)
    pairs = zip(asked, answers, strict=True)
    return Conformance(tuple(VectorResult(v, answer, _judge(v, answer, tolerance)) for v, answer in pairs))


def ask_for(metrics: str | Iterable[str] | None, decisions: str | Iterable[str] | None) -> list[Vector]:
    """Return the vectors of these metrics in which no other decision than these differs from the default."""
    known = None if decisions is None else _decision_names(decisions)
    asked = [v for v in vectors(_metric_names(metrics)) if known is None or set(v.conventions) <= known]
    if not asked:
        raise InputError(
            "the standard has no vector of these metrics and decisions.", hint="Ask for more of either."
        )
    return asked


def _metric_names(metrics: str | Iterable[str] | None) -> set[str] | None:
    if metrics is None:
        return None
    known = {metric.name for metric in standard_metrics()}
    texts = one_or_several("metric", metrics, "Name one metric or several.")
    found: set[str] = set()
    for text in split_names(metrics) if isinstance(metrics, str) else texts:
        if not isinstance(text, str):
            raise UnknownNameError("metric of the standard", text, known)
        name = text.strip().replace("-", "_")
        if name in known:
            found.add(name)
            continue
        metric = (lookup_rating if name.startswith("user_") else lookup)(name)[0]
        if metric.name not in known:
            raise UnknownNameError("metric of the standard", text, known)
        found.add(metric.name)
    return found


def _decision_names(decisions: str | Iterable[str]) -> set[str]:
    return set(check_choices("convention", decisions, [*DECISIONS, "relevant_from", "max_grade"]))


def _judge(vector: Vector, answer: Answer, tolerance: float) -> Verdict:
    expected: Mapping[str, Any] = vector.expected
    if expected.get("value") is None:  # an error, or no user is in the mean
        return "passed" if isinstance(answer, Refusal) or (answer == {} and "value" in expected) else "failed"
    if isinstance(answer, Refusal):
        return "refused"
    if isinstance(answer, float):
        return "passed" if _near(answer, expected["value"], tolerance) else "failed"
    cases = {user: value for user, value in expected.get("cases", {}).items() if value is not None}
    same = answer.keys() == cases.keys() and all(_near(answer[u], cases[u], tolerance) for u in cases)
    return "passed" if cases and same else "failed"


def _near(got: float, expected: float, tolerance: float) -> bool:
    return abs(got - expected) <= tolerance * max(1.0, abs(expected))
