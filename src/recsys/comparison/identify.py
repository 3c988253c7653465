"""identify(): which conventions an evaluator follows, found by asking it a few small questions.

A hypothesis gives a value to each decision that the metric reads, and possibly deviates in one way that is
known (deviations.py). Probes are taken one after the other. On each, only the decisions that it can show are
given values, and a hypothesis that predicts another number is dropped: the join of what every probe leaves.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from recsys.comparison.deviations import AS_KNOWN, QUESTIONS, Deviation, Ranked, both, deviations_for
from recsys.comparison.implementations import (
    Answer,
    Function,
    Refusal,
    answers_of,
    check_tolerance,
    read_answer,
    read_answers,
)
from recsys.comparison.probes import PROBES, VERSION, Probe, probes_for
from recsys.conventions.decisions import DECISIONS, Conventions, describe
from recsys.conventions.presets import PRESETS
from recsys.display.cells import format_cell
from recsys.display.number_words import plural
from recsys.display.tabled import Tabled
from recsys.errors import InputError, NotDefinedError, RecsysError, verb
from recsys.evaluation.engine import measure, summarise
from recsys.evaluation.options import EvaluationOptions
from recsys.evaluation.reading import CommonInputs
from recsys.evaluation.run import EvaluationRun
from recsys.metrics.registry import METRICS, Request

_TOLERANCE = 1e-6
_DOUBLE = 1e-12
_FEWEST_DECIMALS, _MOST_DECIMALS = 2, 6
_NEAREST = 5
_ANY_ORDER = QUESTIONS[-1]

# Values that are tried where a decision or a parameter is a number.
_NUMBERS: dict[str, tuple[Any, ...]] = {
    "relevant_from": (None, 2.0, 3.0),
    "max_grade": (None, 2.0, 3.0, 4.0, 5.0),
    "beta": (0.5, 1.0, 2.0),
    "p": (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99),
    "alpha": (0.5,),
}
_NEVER_SHOWN = {
    "unknown_items": "no probe names a catalogue",
    "seen_truth": "no probe names what the users had before",
    "negative_grades": "no probe has a negative grade",
    "gini_over": "no probe names a catalogue",
    "rank_gaps": "no probe has a column of ranks",
}
# Which questions can show a decision; those without a row are shown by every question.
_SHOWN_BY: dict[str, Callable[[Mapping[str, Any]], bool]] = {
    "ties": lambda q: any(len({s for _, s in rows}) < len(rows) for rows in q["run"].values()),
    "duplicates": lambda q: any(len({i for i, _ in rows}) < len(rows) for rows in q["run"].values()),
    "no_list": lambda q: any(not q["run"].get(user) for user in q["truth"]),
    "no_truth": lambda q: any(
        max(q["truth"].get(user, {}).values(), default=0) < _NUMBERS["relevant_from"][-1]
        for user in {**q["run"], **q["truth"]}
    ),
    **{name: lambda _: False for name in _NEVER_SHOWN},
}
# What stays free where a formula is another one, besides relevant_from and what the formula reads itself.
_FORMULA_DECIDES = {
    "gain": tuple(DECISIONS["gain"]),
    "ties": ("by_id", "by_id_desc", "given"),
    "duplicates": ("first", "all"),
    "no_truth": ("skip", "zero", "unjudged"),
    "no_list": ("empty", "skip"),
}
_GAINS: dict[str, Callable[[float], float]] = {
    "grade": float,
    "binary": lambda grade: float(grade > 0),
    "exp2": lambda grade: 2**grade - 1,
    "exp2_next": lambda grade: 2 ** (grade + 1) - 1 if grade > 0 else 0.0,
}


class Prediction(NamedTuple):
    """What a hypothesis gives: the mean, the value of each user in it, or why there is none."""

    value: float
    users: Mapping[str, float]
    error: str = ""


@dataclass(frozen=True)
class Hypothesis:
    """Values of decisions and parameters, those not named being free, and a deviation."""

    values: Mapping[str, Any]
    deviation: Deviation = AS_KNOWN


@dataclass(frozen=True)
class Open:
    """A decision that the answers leave open: the values that remain, and why."""

    values: tuple[Any, ...]
    why: str


@dataclass(frozen=True)
class Contradiction:
    """The smallest probe that rules out every decision known: alone, or with the smaller ones.

    `nearest` are described hypotheses, the value each gives here and how many of the answered probes it fits.
    """

    probe: Probe
    answer: Answer
    alone: bool
    nearest: tuple[tuple[str, float | Mapping[str, float] | str, int], ...]


@dataclass(frozen=True, repr=False)
class Identification(Tabled):
    """What the answers say about an evaluator; prints as a table, and is false if nothing known fits.

    `presets` are classes: those in one class decide the same on this metric, different classes differ in
    something the answers do not show. `deviations` are the known mistakes or habits that explain the answers;
    then `presets` holds the libraries known for it, and `otherwise` those that decide the rest the same way.
    Where no preset decides so, `nearest` has those that differ in the fewest decisions, and what these are.
    `example` is one set of decisions and parameters that gives every answer, the nearest to the default or a
    preset: where open decisions depend on each other, not every choice of their values does. Where nothing
    fits, `other_metrics` are those that all answers would fit.
    """

    metric: str
    fixed: Mapping[str, Any]
    open: Mapping[str, Open]
    presets: tuple[tuple[str, ...], ...]
    answered: int
    largest_difference: float
    precision: str
    deviations: tuple[str, ...] = ()
    otherwise: tuple[tuple[str, ...], ...] = ()
    nearest: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unanswered: Mapping[str, str] = field(default_factory=dict)
    contradiction: Contradiction | None = None
    other_metrics: tuple[str, ...] = ()
    example: Mapping[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.contradiction is None

    @property
    def conventions(self) -> Conventions:
        """The decisions of `example`, the default for what no answer shows.

        They give the same numbers unless there are `deviations`; a parameter, such as p of rbp, is not a
        convention and belongs to the request.
        """
        known = dict(Conventions().items())
        return Conventions().but(**{name: value for name, value in self.example.items() if name in known})

    def to_dict(self) -> dict[str, Any]:
        """Everything, as values that JSON can hold."""
        found: dict[str, Any] = {
            "metric": self.metric,
            "probes": VERSION,
            "answered": self.answered,
            "unanswered": dict(self.unanswered),
            "precision": self.precision,
            "largest_difference": None if self.contradiction else self.largest_difference,
            "fixed": dict(self.fixed),
            "open": {name: {"values": list(one.values), "why": one.why} for name, one in self.open.items()},
            "presets": [list(names) for names in self.presets],
            "deviations": list(self.deviations),
            "otherwise": [list(names) for names in self.otherwise],
            "nearest": {name: list(others) for name, others in self.nearest.items()},
            "contradiction": None,
            "other_metrics": list(self.other_metrics),
            "example": dict(self.example),
        }
        if self.contradiction is not None:
            clash = self.contradiction
            found["contradiction"] = {
                "probe": {"probe": clash.probe.name, **clash.probe.question},
                "value": clash.answer,
                "alone": clash.alone,
                "nearest": [
                    {"hypothesis": words, "value": value, "fits": fits}
                    for words, value, fits in clash.nearest
                ],
            }
        return found

    def _columns(self) -> dict[str, list[str]]:
        if self.contradiction is not None:
            rows = self.contradiction.nearest
            return {
                "nearest known": [_shortened(words) for words, _, _ in rows],
                "gives": [_shown(value) for _, value, _ in rows],
                "fits": [f"{fits} of {self.answered}" for _, _, fits in rows],
            }
        fixed, left = self.fixed.items(), self.open.items()
        return {
            "decision": [*self.fixed, *self.open],
            "value": [_choice(value) for _, value in fixed]
            + [f"open: {', '.join(map(_choice, one.values))}" for _, one in left],
            "meaning": [_words(*one) for one in fixed] + [one.why for _, one in left],
        }

    def _footnotes(self) -> list[str]:
        notes = [f"{self.metric}: {plural(self.answered, 'probe')} answered; {self.precision}"]
        if self.contradiction is not None:
            clash = self.contradiction
            how = "alone rules" if clash.alone else "and the probes before it rule"
            notes.append(
                f"nothing known fits: the probe {clash.probe}, answered {_shown(clash.answer)}, {how} out "
                "every decision known"
            )
        if self.other_metrics:
            notes.append(f"the answers are those of another metric: {', '.join(self.other_metrics)}")
        notes += [f"it deviates: {words}" for words in self.deviations]
        if self.presets:
            notes.append("presets that remain: " + "; ".join(" = ".join(names) for names in self.presets))
        elif self.contradiction is None:
            notes.append("no preset decides so" + ("; the nearest:" if self.nearest else ""))
            notes += [f"  {name}, but for {', '.join(others)}" for name, others in self.nearest.items()]
        if self.otherwise:
            names = "; ".join(" = ".join(one) for one in self.otherwise)
            notes.append(f"presets that decide the rest the same way: {names}")
        notes += [f"not answered: {name} ({reason})" for name, reason in self.unanswered.items()]
        return notes


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{user}: {_shown(v)}" for user, v in value.items()) or "no user"
    return "none" if value is None else format_cell(value)


def _choice(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else _shown(value)


def _shortened(words: str) -> str:
    """Return the first of many sets of decisions; all of them are in `to_dict`."""
    names = words.split("; ")
    n_more = len(names) - _NEAREST
    return "; ".join(names[:_NEAREST]) + (f" and {n_more} more" if n_more > 0 else "")


def _words(name: str, value: Any) -> str:
    known = name in DECISIONS or name in ("relevant_from", "max_grade")
    return describe(name, value) if known else "parameter of the metric"


@verb
def identify(
    implementation: Function | str | Sequence[str] | None = None,
    metric: str = "ndcg",
    *,
    answers: Mapping[str, Any] | Sequence[Mapping[str, Any]] | str | Path | None = None,
    tolerance: float | None = None,
    timeout: float = 60.0,
) -> Identification:
    """Find which conventions an evaluator follows: decisions, presets, or where it contradicts all of them.

    Args:
        implementation: a function `f(run, truth, k)` that returns one number or {user: number}, with `run`
            {user: [[item, score], …]}, best first, and `truth` {user: {item: grade}}; or a command, as text
            or a list of words, that reads such questions as JSON lines and prints {"value": …} for each.
        metric: what it claims to compute, without a cut-off; parameters in brackets are taken as known.
        answers: in place of an implementation, what was answered before: {probe: value}, rows such as
            {"probe": …, "value": …} or {"run": …, "truth": …, "k": …, "value": …}, one such row, or a file
            of any of these.
        tolerance: the largest difference from our number; by default 1e-6, or half of the last decimal if
            all answers are rounded to 2 to 6 decimals and nothing fits closer.
        timeout: seconds that a command may take.

    Raises:
        InputError: nothing was answered, or an answer is not a number.
        NotDefinedError: the metric needs more than lists and truth.

    >>> def evaluator(run, truth, k):  # hits over k, ties as they come, users without truth left out
    ...     users = [user for user in truth if any(truth[user].values())]
    ...     tops = {user: [item for item, _ in run.get(user, [])][:k] for user in users}
    ...     return sum(sum(truth[u].get(i, 0) > 0 for i in tops[u]) / k for u in users) / len(users)
    >>> found = identify(evaluator, "precision")
    >>> found.fixed["precision_over"], found.fixed["ties"], found.fixed["no_truth"]
    ('k', 'given', 'skip')
    >>> ("recbole", "cornac") in found.presets
    True
    """
    request = Request.parse(metric)
    _check_metric(request, metric)
    if tolerance is not None:
        tolerance = check_tolerance(tolerance)
    if (implementation is None) == (answers is None):
        raise InputError(
            "identify needs an implementation or its stored answers, and not both.",
            hint="Write identify(f, metric) or identify(metric=metric, answers=…).",
        )
    if implementation is not None:
        probes: Sequence[Probe] = probes_for(request.metric.reads)
        given = answers_of(implementation, [probe.question for probe in probes], timeout=timeout)
        asked = list(zip(probes, given, strict=True))
    else:
        asked = _stored(answers, probes_for(request.metric.reads))
    known = _answered(asked)
    if not known:
        raise InputError("there is no answer with a value.", hint='Answers look like {"value": 0.5}.')
    space = _space_of(request)
    constant = len(known) > 1 and len({n for _, answer in known for n in _numbers(answer)}) == 1
    for deviations in [[AS_KNOWN]] if constant else _stages(space):
        for within, precision in _tolerances([answer for _, answer in known], tolerance):
            remaining = _Search(space, known, within).remaining(deviations)
            if remaining:
                return _describe(space, asked, remaining, precision)
    return _contradict(space, asked, tolerance or _TOLERANCE, constant=constant)


def _answered(asked: Iterable[tuple[Probe, Answer]]) -> list[tuple[Probe, Answer]]:
    return [(probe, answer) for probe, answer in asked if not isinstance(answer, Refusal)]


def _refused(asked: Iterable[tuple[Probe, Answer]]) -> dict[str, str]:
    return {probe.name: str(answer) for probe, answer in asked if isinstance(answer, Refusal)}


def _numbers(answer: Answer) -> list[float]:
    if isinstance(answer, Refusal):
        return []
    return list(answer.values()) if isinstance(answer, dict) else [answer]


def _check_metric(request: Request, text: str) -> None:
    if request.k is not None:
        raise InputError(
            f"{text!r} has a cut-off, and every probe brings its own.",
            hint=f"Write {text.partition('@')[0]!r}; the evaluator gets k with each question.",
        )
    needs = [need for need in request.metric.needs if need not in ("lists", "candidates")]
    if needs:
        raise NotDefinedError(
            f"{request.metric.name} needs {', '.join(needs)}, and a probe has only lists and a truth.",
            hint="Metrics of places can be identified, such as ndcg, map, recall or mrr.",
        )


def _tolerances(answers: Sequence[Answer], tolerance: float | None) -> Iterator[tuple[float, str]]:
    if tolerance is not None:
        yield tolerance, f"within {tolerance:g}, as asked"
        return
    yield _TOLERANCE, ""
    numbers = [number for answer in answers for number in _numbers(answer)]
    for decimals in range(_FEWEST_DECIMALS, _MOST_DECIMALS + 1):
        if all(abs(number - round(number, decimals)) < _DOUBLE for number in numbers):
            yield 0.501 * 10**-decimals, f"the answers are rounded to {decimals} decimals"
            return


def _stages(space: _Space) -> Iterator[Sequence[Deviation]]:
    """Deviations in the order of how much they excuse: none, one, any order of ties, two."""
    yield [AS_KNOWN]
    single = deviations_for(space.request.metric.name, has_cut=space.request.metric.at_k != "never")
    exact = [one for one in single if one is not _ANY_ORDER]
    yield exact
    yield [_ANY_ORDER]
    # One that shows on few probes may join any other; the rest would fit by chance, and take long.
    pairs = ((a, b) for n, a in enumerate(exact) if a.joins for b in exact[n + 1 :] if a.decides or b.joins)
    yield list(filter(None, (both(a, b) for a, b in pairs)))
    yield list(filter(None, (both(one, _ANY_ORDER) for one in exact)))


_Key = tuple[tuple[str, Any], ...]


def _key(values: Mapping[str, Any]) -> _Key:
    return tuple(sorted(values.items()))


@lru_cache(maxsize=32)
def _space_of(request: Request) -> _Space:
    """Keep what is predicted: it does not depend on the evaluator, so the next one is quicker."""
    return _Space(request)


class _Space:
    """Everything that could be: the values of each decision, and what they predict for a question."""

    def __init__(self, request: Request) -> None:
        self.request = request
        metric = request.metric
        own = dict(request.params)
        # A library may decide with a table or a number of its own.
        presets = [row.conventions.for_metric(metric.name) for row in PRESETS.values()]
        choices = {
            name: [*DECISIONS.get(name, _NUMBERS.get(name, (None,))), *(getattr(p, name) for p in presets)]
            for name in metric.reads
        }
        choices |= {n: [*_NUMBERS.get(n, ()), default] for n, default in metric.params.items()}
        self.choices = {
            name: (own[name],) if name in own else tuple(dict.fromkeys(values))
            for name, values in choices.items()
        }
        # What may differ between requests of one run; the rest differs from run to run.
        self._in_request = {*metric.params, *metric.conventions, "relevant_from", "duplicates"}
        self._in_request.discard("max_grade")
        self._runs: dict[str, EvaluationRun] = {}
        self._found: dict[tuple[str, _Key, _Key], Prediction] = {}
        self._questions: dict[tuple[str, str], tuple[tuple[str, dict[str, Any]], ...]] = {}

    def choices_under(self, deviation: Deviation) -> dict[str, tuple[Any, ...]]:
        """Return the values to try; what a deviation decides, or has no use for, is left out."""
        free = {name: values for name, values in self.choices.items() if name not in deviation.decides}
        if deviation.formula is None:
            return free
        allowed = {name: free[name] for name in ("relevant_from", *deviation.reads)} | _FORMULA_DECIDES
        return {
            name: tuple(value for value in free[name] if value in values)
            for name, values in allowed.items()
            if name in free
        }

    def questions(self, probe: Probe, deviation: Deviation) -> tuple[tuple[str, dict[str, Any]], ...]:
        """Return what is read of a probe, each with the text that identifies it."""
        key = probe.text, str(deviation)
        if key not in self._questions:
            asked: Iterable[Any] = [probe.question]
            if deviation.questions is not None:
                asked = deviation.questions(probe.question)
            if deviation.cut is not None:
                asked = [{**question, "k": deviation.cut(question["k"])} for question in asked]
            self._questions[key] = tuple({json.dumps(q): q for q in asked}.items())
        return self._questions[key]

    def shown(self, probe: Probe, deviation: Deviation) -> list[str]:
        """Return the decisions that can move the answer to this probe."""
        asked = self.questions(probe, deviation)
        return [
            name
            for name in self.choices_under(deviation)
            if name not in _SHOWN_BY or any(_SHOWN_BY[name](question) for _, question in asked)
        ]

    def predictions(
        self, probe: Probe, deviation: Deviation, several: Sequence[Mapping[str, Any]]
    ) -> list[list[Prediction]]:
        """Return what each of these hypotheses gives for a probe.

        There are several numbers where any of them may be right.
        """
        asked = self.questions(probe, deviation)
        decided = [{**values, **deviation.decides} for values in several]
        if deviation.formula is None:
            self._prepare(asked, decided)
        return [
            [self._predicted(text, question, deviation, values) for text, question in asked]
            for values in decided
        ]

    def _predicted(
        self, text: str, question: Mapping[str, Any], deviation: Deviation, values: Mapping[str, Any]
    ) -> Prediction:
        """Return what a hypothesis gives for a question, measured before where there is no formula."""
        if deviation.formula is not None:
            one = _by_formula(deviation.formula, question, values)
        else:
            in_run, in_request = self._parted(values)
            one = self._found[text, _key(in_run), _key(in_request)]
        if deviation.combine is not None and one.users:
            one = one._replace(value=float(deviation.combine(list(one.users.values()))))
        scale = deviation.scale
        if scale == 1.0:
            return one
        return Prediction(scale * one.value, {u: scale * v for u, v in one.users.items()}, one.error)

    def predicted(self, probe: Probe, one: Hypothesis) -> list[Prediction]:
        """Return what one hypothesis gives for a probe."""
        visible = {name: one.values[name] for name in self.shown(probe, one.deviation)}
        return self.predictions(probe, one.deviation, [visible])[0]

    def _prepare(
        self, asked: Iterable[tuple[str, Mapping[str, Any]]], several: Iterable[Mapping[str, Any]]
    ) -> None:
        """Measure what is not known yet, all that one run can tell at once."""
        names = [*self.choices][::-1]
        parted = [self._parted(values) for values in several]
        for text, question in asked:
            by_run: dict[_Key, dict[_Key, dict[str, Any]]] = {}
            for in_run, in_request in parted:
                if (text, _key(in_run), _key(in_request)) not in self._found:
                    by_run.setdefault(_key(in_run), {})[_key(in_request)] = in_request
            for run_key, requests in by_run.items():
                # Values that are refused together are adjacent, so that halving finds them soon.
                ordered = sorted(requests.values(), key=lambda own: [str(own[n]) for n in names if n in own])
                for chosen, one in self._measure(text, question, dict(run_key), ordered):
                    self._found[text, run_key, _key(chosen)] = one

    def _parted(self, values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what differs from run to run, and what differs between requests of one run."""
        in_request = {name: value for name, value in values.items() if name in self._in_request}
        return {name: value for name, value in values.items() if name not in in_request}, in_request

    def _measure(
        self,
        text: str,
        question: Mapping[str, Any],
        in_run: Mapping[str, Any],
        combinations: list[dict[str, Any]],
    ) -> Iterator[tuple[dict[str, Any], Prediction]]:
        """Find the places once; measure all requests together, and halves of them where one is refused."""
        metric, k = self.request.metric, question["k"]
        at = None if metric.at_k == "never" else k
        requests = [Request(metric, at, tuple(chosen.items())) for chosen in combinations]
        try:
            if at is not None and at < 1:
                raise InputError("nothing is read.")
            run = replace(self._run_of(text, question), requests=requests)
            rules = run.effective(Conventions().but(**in_run))
            judged, context = run.rank_truth(rules)
        except RecsysError as error:
            yield from ((chosen, Prediction(math.nan, {}, str(error))) for chosen in combinations)
            return
        parts = [list(zip(combinations, requests, strict=True))]
        while parts:
            part = parts.pop()
            own = [request for _, request in part]
            try:
                partial = measure(judged, own, rules, context)
                means = summarise(partial, own, conventions=rules)
            except RecsysError as error:
                if len(part) == 1:
                    yield part[0][0], Prediction(math.nan, {}, str(error))
                else:
                    parts += [part[: len(part) // 2], part[len(part) // 2 :]]
                continue
            users = [str(user) for user in partial.rows.ids.tolist()]
            for chosen, request in part:
                column = partial.rows.columns.get(str(request), ())
                rows = {user: float(v) for user, v in zip(users, column, strict=False) if not math.isnan(v)}
                yield chosen, Prediction(means[str(request)], rows)

    def _run_of(self, text: str, question: Mapping[str, Any]) -> EvaluationRun:
        if text not in self._runs:
            items = {str(i) for rows in question["run"].values() for i, _ in rows}
            items |= {str(i) for grades in question["truth"].values() for i in grades}
            kind: Callable[[Any], Any] = int if all(item.isdecimal() for item in items) else str
            lists = {u: [(kind(i), float(s)) for i, s in rows] for u, rows in question["run"].items()}
            truth = {u: {kind(i): g for i, g in grades.items()} for u, grades in question["truth"].items()}
            metric, k = self.request.metric, question["k"]
            asked = self.request if metric.at_k == "never" else replace(self.request, k=k)
            options = EvaluationOptions(full_ranking="candidates" in metric.needs)
            self._runs[text] = CommonInputs([asked], options).run_of(lists, truth)
        return self._runs[text]

    def of_preset(self, conventions: Conventions) -> dict[str, Any]:
        """Return the decisions of a preset on this metric."""
        rules = self.request.conventions(conventions)
        return {name: getattr(rules, name) for name in self.request.metric.reads}


def _by_formula(
    formula: Callable[[Ranked], float], question: Mapping[str, Any], values: Mapping[str, Any]
) -> Prediction:
    """Evaluate a formula for each user; decisions as they are meant, in plain steps."""
    own = values.get("gain", "binary")
    gain = _GAINS[own] if isinstance(own, str) else lambda grade: float(own(grade)) if grade > 0 else 0.0
    lowest = values.get("relevant_from")
    users: dict[str, float] = {}
    for user in {**question["run"], **question["truth"]}:
        rows, grades = question["run"].get(user, []), question["truth"].get(user, {})
        ties = values.get("ties", "given")
        if ties != "given":
            rows = sorted(rows, key=lambda row: row[0], reverse=ties == "by_id_desc")
        rows = sorted(rows, key=lambda row: -row[1])
        repeats = [
            values.get("duplicates") != "all" and item in {i for i, _ in rows[:at]}
            for at, (item, _) in enumerate(rows)
        ]
        gains_of = {item: gain(g) for item, g in grades.items() if g > 0 and (lowest is None or g >= lowest)}
        no_truth = values.get("no_truth", "skip")
        left_out = no_truth == "skip" or (no_truth == "unjudged" and not grades)
        if (not rows and values.get("no_list") == "skip") or (not gains_of and left_out):
            continue
        gains = [
            0.0 if again else gains_of.get(item, 0.0) for (item, _), again in zip(rows, repeats, strict=True)
        ]
        k = question["k"] if question["k"] is not None else len(rows)
        ranked = Ranked(gains, [*gains_of.values()], k, rows, grades, values)
        users[user] = formula(ranked) if gains_of and rows and k > 0 else 0.0
    mean = math.fsum(users.values()) / len(users) if users else math.nan
    return Prediction(mean, users)


def _difference(answer: Answer, prediction: Prediction) -> float:
    """Return how far an answer is from what is predicted.

    It is infinite if the two are not about the same users.
    """
    if prediction.error or isinstance(answer, Refusal):
        return math.inf
    if not isinstance(answer, dict):
        gap = abs(answer - prediction.value) / max(1.0, abs(prediction.value))
        return math.inf if math.isnan(gap) else gap
    if answer.keys() != prediction.users.keys():
        return math.inf
    return max((abs(answer[u] - v) / max(1.0, abs(v)) for u, v in prediction.users.items()), default=0.0)


class _Search:
    """The hypotheses that fit every answer within a tolerance."""

    def __init__(self, space: _Space, known: Sequence[tuple[Probe, Answer]], within: float) -> None:
        self.space = space
        self.known = known
        self.within = within

    def remaining(self, deviations: Iterable[Deviation]) -> list[Hypothesis]:
        return [
            Hypothesis(values, deviation) for deviation in deviations for values in self.fitting(deviation)[0]
        ]

    def fitting(self, deviation: Deviation) -> tuple[list[dict[str, Any]], list[dict[str, Any]], int]:
        """Return what fits all probes.

        Otherwise return what fitted before the first probe that nothing fits, and its number.
        """
        survivors: list[dict[str, Any]] = [{}]
        for number, (probe, answer) in enumerate(self.known):
            after = self.fit(probe, answer, deviation, survivors)
            if not after:
                return [], survivors, number
            survivors = after
        return survivors, survivors, len(self.known)

    def fit(
        self, probe: Probe, answer: Answer, deviation: Deviation, before: Sequence[Mapping[str, Any]]
    ) -> list[dict[str, Any]]:
        """Return those of `before`, with values for what this probe shows, that give its answer."""
        choices = self.space.choices_under(deviation)
        shown = self.space.shown(probe, deviation)
        candidates = []
        for values in before:
            new = [name for name in shown if name not in values]
            every = product(*(choices[name] for name in new))
            candidates += [{**values, **dict(zip(new, chosen, strict=True))} for chosen in every]
        keys = [_key({name: full[name] for name in shown}) for full in candidates]
        visible = list(dict.fromkeys(keys))
        predicted = self.space.predictions(probe, deviation, [dict(key) for key in visible])
        fits = {
            key
            for key, several in zip(visible, predicted, strict=True)
            if any(_difference(answer, one) <= self.within for one in several)
        }
        return [full for full, key in zip(candidates, keys, strict=True) if key in fits]


def _classes(
    space: _Space, remaining: Sequence[Hypothesis], *, known_only: bool
) -> tuple[tuple[str, ...], ...]:
    """Return the presets among the hypotheses, those that decide the same on this metric together."""
    classes: dict[tuple[Any, ...], list[str]] = {}
    for name, row in PRESETS.items():
        decisions = space.of_preset(row.conventions)
        if any(
            all(one.values.get(decision, value) == value for decision, value in decisions.items())
            for one in remaining
            if one.deviation is AS_KNOWN or not known_only or name in one.deviation.known_of
        ):
            classes.setdefault(tuple(decisions.items()), []).append(name)
    return tuple(tuple(names) for names in classes.values())


def _describe(
    space: _Space,
    asked: Sequence[tuple[Probe, Answer]],
    remaining: Sequence[Hypothesis],
    precision: str,
) -> Identification:
    """Return what all remaining hypotheses have in common, and what they do not."""
    known = _answered(asked)
    fixed: dict[str, Any] = {}
    left: dict[str, Open] = {}
    for name, choices in space.choices.items():
        named = [one.values[name] for one in remaining if name in one.values]
        values = tuple(v for v in choices if v in named) if len(named) == len(remaining) else choices
        if len(values) == 1 and len(named) == len(remaining):
            fixed[name] = values[0]
        elif len(choices) > 1:
            left[name] = Open(values, _why_open(space, name, remaining, asked))
    largest = min(
        max(min(_difference(answer, p) for p in space.predicted(probe, one)) for probe, answer in known)
        for one in remaining
    )
    if not precision:
        kind = "double precision" if largest <= _DOUBLE else "single precision"
        precision = f"the largest difference is {largest:.1g} ({kind})"
    deviations = tuple(dict.fromkeys(filter(None, (str(one.deviation) for one in remaining))))
    presets = _classes(space, remaining, known_only=True)
    named_presets = {name for names in presets for name in names}
    otherwise = _classes(space, remaining, known_only=False) if deviations else ()
    rest = tuple(tuple(n for n in names if n not in named_presets) for names in otherwise)
    # For the default and each preset: what the hypothesis nearest to it decides otherwise, and its values.
    others: dict[str, tuple[tuple[str, ...], Mapping[str, Any]]] = {}
    rules = {"": Conventions()} | {name: row.conventions for name, row in PRESETS.items()}
    for name, conventions in rules.items():
        decided = space.of_preset(conventions).items()
        differ = [tuple(n for n, v in decided if one.values.get(n, v) != v) for one in remaining]
        nearest = min(range(len(remaining)), key=lambda at: len(differ[at]))
        others[name] = differ[nearest], remaining[nearest].values
    example = min(others.values(), key=lambda one: len(one[0]))[1]
    del others[""]
    fewest = min(len(differ) for differ, _ in others.values())
    nearest_presets = [(name, differ) for name, (differ, _) in others.items() if len(differ) == fewest][:3]
    return Identification(
        metric=str(space.request),
        fixed=fixed,
        open=left,
        presets=presets,
        answered=len(known),
        largest_difference=largest,
        precision=precision,
        deviations=deviations,
        otherwise=tuple(names for names in rest if names),
        nearest={} if presets or otherwise else dict(nearest_presets),
        unanswered=_refused(asked),
        example=example,
    )


def _why_open(
    space: _Space, name: str, remaining: Sequence[Hypothesis], asked: Sequence[tuple[Probe, Answer]]
) -> str:
    if name in _NEVER_SHOWN:
        return _NEVER_SHOWN[name]
    without = [one.deviation for one in remaining if name not in one.values and one.deviation is not AS_KNOWN]
    if without and name not in space.choices_under(without[0]):
        return "the deviation below takes its place"
    rule = space.request.metric.pooling.combine_if
    if rule is not None and rule[0] == name and all(isinstance(a, dict) for _, a in _answered(asked)):
        return "the answers are per user, and it is about all of them"
    unanswered = [probe for probe, answer in asked if isinstance(answer, Refusal)]
    showing = [p.name for p in unanswered if name in _SHOWN_BY and _SHOWN_BY[name](p.question)]
    if showing:
        return f"the probes that show it were not answered: {', '.join(showing)}"
    # Its values are equal only if each of them fits along with whatever else fits.
    by_rest: dict[tuple[str, _Key], set[Any]] = {}
    for one in remaining:
        rest = {n: v for n, v in one.values.items() if n != name}
        by_rest.setdefault((str(one.deviation), _key(rest)), set()).add(one.values.get(name))
    if len({frozenset(values) for values in by_rest.values()}) == 1:
        return "equal on every probe"
    partners = []
    for other in space.choices:
        pairs = {(one.values.get(name), one.values.get(other)) for one in remaining}
        mine, theirs = {value for value, _ in pairs}, {value for _, value in pairs}
        if other != name and len(pairs) < len(mine) * len(theirs):
            partners.append(other)
    if len({str(one.deviation) for one in remaining}) > 1:
        partners.append("the deviation")
    return f"which of them it is depends on {', '.join(partners) or 'the other open decisions'}"


def _contradict(
    space: _Space, asked: Sequence[tuple[Probe, Answer]], within: float, *, constant: bool
) -> Identification:
    """Find where the answers fit nothing that is known."""
    known = _answered(asked)
    search = _Search(space, known, within)
    _, before, number = search.fitting(AS_KNOWN)
    smallest_first = sorted(known, key=lambda one: one[0].size)
    alone = next((one for one in smallest_first if not search.fit(*one, AS_KNOWN, [{}])), None)
    probe, answer = alone or known[number]
    candidates = {str(Conventions()): space.of_preset(Conventions())}
    candidates |= {name: space.of_preset(row.conventions) for name, row in PRESETS.items()}
    for values in before[:50]:
        decisions = {**space.of_preset(Conventions()), **values}
        changed = {n: v for n, v in decisions.items() if n in dict(Conventions().items())}
        candidates.setdefault(str(Conventions().but(**changed)), decisions)
    rows = []
    for words, decisions in candidates.items():
        full = Hypothesis({name: decisions.get(name, values[0]) for name, values in space.choices.items()})
        fits = sum(_difference(given, space.predicted(one, full)[0]) <= within for one, given in known)
        here = space.predicted(probe, full)[0]
        value = here.error or (here.users if isinstance(answer, dict) else here.value)
        rows.append((-fits, _difference(answer, here), words, value))
    by_value: dict[str, tuple[list[str], Any, int]] = {}
    for fits, _, words, value in sorted(rows, key=lambda row: row[:2]):
        by_value.setdefault(f"{value}", ([], value, -fits))[0].append(words)
    nearest = tuple(("; ".join(names), value, fits) for names, value, fits in by_value.values())[:_NEAREST]
    precision = f"no known decisions fit within {within:g}"
    if constant:
        same = next(n for _, given in known for n in _numbers(given))
        precision = f"every answer is {same:g}, whatever was asked"
    return Identification(
        metric=str(space.request),
        fixed={},
        open={},
        presets=(),
        answered=len(known),
        largest_difference=math.inf,
        precision=precision,
        unanswered=_refused(asked),
        contradiction=Contradiction(probe, answer, alone is not None, nearest),
        other_metrics=tuple(
            other.name
            for other in METRICS.values()
            if not constant and other is not space.request.metric and not {*other.needs} - {"lists"}
            if _Search(_space_of(Request(other, None)), known, within).remaining([AS_KNOWN])
        ),
    )


def probe_lines(metric: str) -> list[dict[str, Any]]:
    """Return the questions about a metric as in a file, each with its name and the set's version.

    >>> probe_lines("ndcg")[0]["probe"], probe_lines("ndcg")[0]["k"]
    ('graded', 4)
    """
    request = Request.parse(metric)
    _check_metric(request, metric)
    return [
        {"probe": probe.name, "version": VERSION, **probe.question}
        for probe in probes_for(request.metric.reads)
    ]


def _stored(answers: Any, probes: Sequence[Probe]) -> list[tuple[Probe, Answer]]:
    """Return answers given before, each with its question; in the order of the probes if they name none."""
    where = "the answers"
    if isinstance(answers, str | Path):
        where, answers = str(answers), read_answers(Path(answers))
    if isinstance(answers, Mapping) and {"value", "error", "probe", "run"} & {*answers}:
        rows: list[Any] = [answers]  # one row, as a file of one line holds it
    elif isinstance(answers, Mapping):
        rows = [{"probe": name, "value": value} for name, value in answers.items()]
    else:
        is_column = isinstance(answers, Iterable) and getattr(answers, "ndim", 1) == 1
        rows = list(answers) if is_column else [answers]
    if len(rows) == len(probes) and not any(
        isinstance(row, Mapping) and {"probe", "run"} & {*row} for row in rows
    ):
        rows = [
            {"probe": probe.name, **(row if isinstance(row, Mapping) else {"value": row})}
            for probe, row in zip(probes, rows, strict=True)
        ]
    by_name = {probe.name: probe for probe in PROBES}
    asked: list[tuple[Probe, Answer]] = []
    for number, row in enumerate(rows, start=1):
        place = f"answer {number} of {where}"
        if not isinstance(row, Mapping) or not {"value", "error"} & {*row}:
            raise InputError(f"{place} has no value.", hint='Write {"probe": "graded", "value": 0.5}.')
        if str(row.get("version", VERSION)) != str(VERSION):
            raise InputError(
                f"{place} is to version {row['version']} of the probes, and these are version {VERSION}.",
                hint="Ask again: `recsys identify --probes probes.jsonl` writes the questions.",
            )
        if {"run", "truth", "k"} <= {*row}:
            probe = _own_probe(row, number, place)
        elif str(row.get("probe")) in by_name:
            probe = by_name[str(row["probe"])]
        else:
            raise InputError(
                f"{place} is to the probe {row.get('probe')!r}, which does not exist.",
                hint=f"Name one of {', '.join(by_name)}; or add run, truth and k; or give all {len(probes)} "
                "answers in the order of the probes.",
            )
        refusal = Refusal(str(row["error"])) if row.get("error") is not None else None
        asked.append((probe, refusal or read_answer(row.get("value"), probe.question, place)))
    return asked


def _own_probe(row: Mapping[str, Any], number: int, place: str) -> Probe:
    """Return a question that is not one of ours, with its answer."""
    try:
        run = {str(u): [[str(i), float(s)] for i, s in rows] for u, rows in row["run"].items()}
        truth = {str(u): {str(i): float(g) for i, g in own.items()} for u, own in row["truth"].items()}
        k = int(row["k"])
        is_whole = k == float(row["k"])
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InputError(
            f"{place} has a question that cannot be read ({error}).",
            hint='Write {"run": {"u": [["a", 0.9]]}, "truth": {"u": {"a": 1}}, "k": 3, "value": 1.0}.',
        ) from None
    if k < 1 or not is_whole:
        raise InputError(
            f"{place} is to a question with k={row['k']!r}.",
            hint="k is a whole number from 1 on, such as 10.",
        )
    return Probe(str(row.get("probe", f"question {number}")), k, run, truth)
