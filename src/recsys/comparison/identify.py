"""identify(): which conventions an evaluator follows, found by asking it a few small questions.

A hypothesis gives a value to each decision that the metric reads. Probes are taken one after the other. On
each, only the decisions that it can show are given values, and a hypothesis that predicts another number is
dropped: the join of what every probe leaves. If nothing is left, the same is done with the options of every
part of an evaluator, mistakes among them (deviations.py), and what excuses least remains.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from recsys.comparison.deviations import (
    AT_END,
    ITEMS,
    MEAN,
    NUMBERS,
    READING,
    TIES,
    Formulas,
    Habit,
    formulas_of,
    read,
)
from recsys.comparison.implementations import (
    Answer,
    Function,
    Refusal,
    answers_of,
    check_tolerance,
    read_answer,
    read_answers,
)
from recsys.comparison.probes import (
    EXTREMES_GRADE,
    EXTREMES_K,
    EXTREMES_LENGTH,
    PROBES,
    VERSION,
    Probe,
    extremes,
    probes_for,
)
from recsys.comparison.transcriptions import EVALUATORS, Transcription
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
from recsys.records.json_values import json_value

_TOLERANCE = 1e-6
_DOUBLE = 1e-12
_FEWEST_DECIMALS, _MOST_DECIMALS = 2, 6
_NEAREST = 5
_EXCUSED = (1.5, 2.75, 4.0)
_MOST_WAYS = 120
_MOST_BOUNDED = 50

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
        max(q["truth"].get(user, {}).values(), default=0) < NUMBERS["relevant_from"][-1]
        for user in {**q["run"], **q["truth"]}
    ),
    **{name: lambda _: False for name in _NEVER_SHOWN},
}


class Prediction(NamedTuple):
    """What a hypothesis gives: the mean, the value of each user in it, or why there is none."""

    value: float
    users: Mapping[str, float]
    error: str = ""


@dataclass(frozen=True)
class Hypothesis:
    """Values of decisions and parameters, those not named being free, and what is done differently.

    `replaces` are decisions that a deviation takes the place of, and `known_of` the presets whose library is
    known for all that deviates.
    """

    values: Mapping[str, Any]
    deviations: tuple[str, ...] = ()
    known_of: frozenset[str] = frozenset()
    replaces: frozenset[str] = frozenset()
    difference: float = 0.0

    @property
    def deviation(self) -> str:
        return "; ".join(self.deviations)


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
    fits, `other_metrics` are those that all answers would fit. `evaluators` do the same in their sources as
    far as is known (transcriptions.py). `at_most` is the greatest value where it may pass 1: of a list of up
    to 20 items with grades of up to 3, at k=10.
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
    evaluators: tuple[str, ...] = ()
    at_most: float | None = None

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
        clash = self.contradiction
        contradiction = clash and {
            "probe": {"probe": clash.probe.name, **clash.probe.question},
            "value": clash.answer,
            "alone": clash.alone,
            "nearest": [
                dict(zip(("hypothesis", "value", "fits"), row, strict=True)) for row in clash.nearest
            ],
        }
        left = {name: vars(one) for name, one in self.open.items()}
        own = {**vars(self), "open": left, "contradiction": contradiction}
        found: dict[str, Any] = json_value({"metric": self.metric, "probes": VERSION, **own})
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
        if self.at_most is not None:
            notes.append(
                f"may exceed 1, by at most {format_cell(self.at_most - 1)}: k={EXTREMES_K}, lists of up to "
                f"{EXTREMES_LENGTH} items, grades of up to {EXTREMES_GRADE:g}"
            )
        if self.evaluators:
            notes.append(f"evaluators that do so: {', '.join(self.evaluators)}")
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
    request = _request_of(metric)
    if tolerance is not None:
        tolerance = check_tolerance(tolerance)
    if (implementation is None) == (answers is None):
        raise InputError(
            "identify needs an implementation or its stored answers, and not both.",
            hint="Write identify(f, metric) or identify(metric=metric, answers=…).",
        )
    probes = probes_for(request.metric.reads)
    if implementation is not None:
        given = answers_of(implementation, [probe.question for probe in probes], timeout=timeout)
        asked = list(zip(probes, given, strict=True))
    else:
        asked = _stored(answers, probes)
    known = _answered(asked)
    if not known:
        raise InputError("there is no answer with a value.", hint='Answers look like {"value": 0.5}.')
    space = _space_of(request)
    constant = len(known) > 1 and len({n for _, answer in known for n in _numbers(answer)}) == 1
    tolerances = list(_tolerances([answer for _, answer in known], tolerance))
    for within, precision in tolerances:
        if remaining := space.remaining(known, within):
            return _describe(space, asked, remaining, precision)
    within = tolerance or _TOLERANCE
    formulas = None if constant else formulas_of(request.metric.name)
    others: tuple[str, ...] = ()
    if formulas is not None:
        mistakes = _Mistakes(space, formulas, known)
        for number, most in enumerate(_EXCUSED):
            for close, precision in tolerances if not others else ():
                if left := mistakes.remaining(close, most):
                    return _describe(space, asked, left, precision)
            # Another metric without a mistake is more likely than this one with two.
            others = others if number else _other_metrics(request, known, within)
    elif not constant:
        others = _other_metrics(request, known, within)
    return _contradict(space, asked, within, others, constant=constant)


def _other_metrics(request: Request, known: Sequence[tuple[Probe, Answer]], within: float) -> tuple[str, ...]:
    """Return the metrics that all answers would fit without a deviation."""
    return tuple(
        other.name
        for other in METRICS.values()
        if other is not request.metric and not {*other.needs} - {"lists"}
        if _space_of(Request(other, None)).fitting(known, within)[0]
    )


def _answered(asked: Iterable[tuple[Probe, Answer]]) -> list[tuple[Probe, Answer]]:
    return [(probe, answer) for probe, answer in asked if not isinstance(answer, Refusal)]


def _refused(asked: Iterable[tuple[Probe, Answer]]) -> dict[str, str]:
    return {probe.name: str(answer) for probe, answer in asked if isinstance(answer, Refusal)}


def _numbers(answer: Answer) -> list[float]:
    if isinstance(answer, Refusal):
        return []
    return list(answer.values()) if isinstance(answer, dict) else [answer]


def _request_of(text: str) -> Request:
    request = Request.parse(text)
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
    return request


def _tolerances(answers: Sequence[Answer], tolerance: float | None) -> Iterator[tuple[float, str]]:
    if tolerance is not None:
        yield tolerance, f"within {tolerance:g}, as asked"
        return
    yield _TOLERANCE, ""
    numbers = [number for answer in answers for number in _numbers(answer)]
    for decimals in range(_FEWEST_DECIMALS, _MOST_DECIMALS + 1):
        if _are_rounded(numbers, decimals):
            yield 0.501 * 10**-decimals, f"the answers are rounded to {decimals} decimals"
            return


def _are_rounded(numbers: Iterable[float], decimals: int) -> bool:
    return all(abs(number - round(number, decimals)) < _DOUBLE for number in numbers)


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
            name: [*DECISIONS.get(name, NUMBERS.get(name, (None,))), *(getattr(p, name) for p in presets)]
            for name in metric.reads
        }
        choices |= {n: [*NUMBERS.get(n, ()), default] for n, default in metric.params.items()}
        self.choices = {
            name: (own[name],) if name in own else tuple(dict.fromkeys(values))
            for name, values in choices.items()
        }
        # What may differ between requests of one run; the rest differs from run to run.
        self._in_request = {*metric.params, *metric.conventions, "relevant_from", "duplicates"}
        self._in_request.discard("max_grade")
        self._runs: dict[str, EvaluationRun] = {}
        self._found: dict[tuple[str, _Key, _Key], Prediction] = {}

    def shown(self, probe: Probe) -> list[str]:
        """Return the decisions that can move the answer to this probe."""
        question = probe.question
        return [name for name in self.choices if name not in _SHOWN_BY or _SHOWN_BY[name](question)]

    def predictions(self, probe: Probe, several: Sequence[Mapping[str, Any]]) -> list[Prediction]:
        """Return what each of these sets of decisions gives for a probe."""
        names = [*self.choices][::-1]
        parted = [self._parted(values) for values in several]
        by_run: dict[_Key, dict[_Key, dict[str, Any]]] = {}
        for in_run, in_request in parted:
            if (probe.text, _key(in_run), _key(in_request)) not in self._found:
                by_run.setdefault(_key(in_run), {})[_key(in_request)] = in_request
        for run_key, requests in by_run.items():
            # Values that are refused together are adjacent, so that halving finds them soon.
            ordered = sorted(requests.values(), key=lambda own: [str(own[n]) for n in names if n in own])
            for chosen, one in self._measure(probe, dict(run_key), ordered):
                self._found[probe.text, run_key, _key(chosen)] = one
        return [self._found[probe.text, _key(in_run), _key(in_request)] for in_run, in_request in parted]

    def predicted(self, probe: Probe, values: Mapping[str, Any]) -> Prediction:
        """Return what one set of decisions gives for a probe."""
        return self.predictions(probe, [{name: values[name] for name in self.shown(probe)}])[0]

    def _parted(self, values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what differs from run to run, and what differs between requests of one run."""
        in_request = {name: value for name, value in values.items() if name in self._in_request}
        return {name: value for name, value in values.items() if name not in in_request}, in_request

    def _measure(
        self, probe: Probe, in_run: Mapping[str, Any], combinations: list[dict[str, Any]]
    ) -> Iterator[tuple[dict[str, Any], Prediction]]:
        """Find the places once; measure all requests together, and halves of them where one is refused."""
        metric = self.request.metric
        at = None if metric.at_k == "never" else probe.k
        requests = [Request(metric, at, tuple(chosen.items())) for chosen in combinations]
        try:
            run = replace(self._run_of(probe), requests=requests)
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

    def _run_of(self, probe: Probe) -> EvaluationRun:
        if probe.text not in self._runs:
            items = {str(i) for rows in probe.run.values() for i, _ in rows}
            items |= {str(i) for grades in probe.truth.values() for i in grades}
            kind: Callable[[Any], Any] = int if all(item.isdecimal() for item in items) else str
            lists = {u: [(kind(i), float(s)) for i, s in rows] for u, rows in probe.run.items()}
            truth = {u: {kind(i): g for i, g in grades.items()} for u, grades in probe.truth.items()}
            metric = self.request.metric
            asked = self.request if metric.at_k == "never" else replace(self.request, k=probe.k)
            options = EvaluationOptions(full_ranking="candidates" in metric.needs)
            self._runs[probe.text] = CommonInputs([asked], options).run_of(lists, truth)
        return self._runs[probe.text]

    def remaining(self, known: Sequence[tuple[Probe, Answer]], within: float) -> list[Hypothesis]:
        """Return what fits every answer, with no deviation, and how far it is off."""
        return [
            Hypothesis(values, difference=max(_difference(a, self.predicted(p, values)) for p, a in known))
            for values in self.fitting(known, within)[0]
        ]

    def fitting(
        self, known: Sequence[tuple[Probe, Answer]], within: float
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]], int]:
        """Return what fits all probes.

        Otherwise return what fitted before the first probe that nothing fits, and its number.
        """
        survivors: list[dict[str, Any]] = [{}]
        for number, (probe, answer) in enumerate(known):
            after = self.fit(probe, answer, within, survivors)
            if not after:
                return [], survivors, number
            survivors = after
        return survivors, survivors, len(known)

    def fit(
        self, probe: Probe, answer: Answer, within: float, before: Sequence[Mapping[str, Any]]
    ) -> list[dict[str, Any]]:
        """Return those of `before`, with values for what this probe shows, that give its answer."""
        shown = self.shown(probe)
        candidates = []
        for values in before:
            new = [name for name in shown if name not in values]
            every = product(*(self.choices[name] for name in new))
            candidates += [{**values, **dict(zip(new, chosen, strict=True))} for chosen in every]
        keys = [_key({name: full[name] for name in shown}) for full in candidates]
        visible = list(dict.fromkeys(keys))
        predicted = self.predictions(probe, [dict(key) for key in visible])
        fits = {key for key, p in zip(visible, predicted, strict=True) if _difference(answer, p) <= within}
        return [full for full, key in zip(candidates, keys, strict=True) if key in fits]

    def of_preset(self, conventions: Conventions) -> dict[str, Any]:
        """Return the decisions of a preset on this metric."""
        rules = self.request.conventions(conventions)
        return {name: getattr(rules, name) for name in self.request.metric.reads}


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


class _User(NamedTuple):
    """A user as read under some options, and what every formula makes of each order that is possible."""

    name: str
    has_list: bool
    has_judgements: bool
    has_relevant: bool
    ways: list[tuple[tuple[np.ndarray, ...], np.ndarray]]


_Choice = tuple[int, ...]
_FREE = -1


class _Mistakes:
    """The options of every part that fit all answers; those not shown by any probe stay free."""

    def __init__(self, space: _Space, formulas: Formulas, known: Sequence[tuple[Probe, Answer]]) -> None:
        self.space = space
        self.formulas = formulas
        self.known = known
        own = space.choices
        possible = [
            all(not o.decision or o.value in own.get(o.decision, (o.value,)) for o in options)
            for options in formulas.options
        ]
        self._possible = np.flatnonzero(possible)
        self._costs = np.array([sum(option.cost for option in options) for options in formulas.options])
        self._mean = dict(MEAN)
        if formulas.pooled is not None:
            decision, *both = formulas.pooled
            self._mean["mean"] = (*(Habit("", decision, one) for one in both), *MEAN["mean"][2:])
        self._words = {option.words for options in formulas.options for option in options if option.words}
        self._possible_means = [[*range(len(options))] for options in self._mean.values()]
        if formulas.pooled is None:
            self._possible_means[2].remove(1)
        self._possible_means[-1] = self._possible_scales()
        self._users: dict[tuple[str, _Choice], list[_User]] = {}

    def remaining(self, within: float, most: float) -> list[Hypothesis]:
        """Return the hypotheses that excuse least, and no more than `most`."""
        found = self._fitting(within, most)
        costs = {key: self._costs[at] + self._cost(*key) for key, (at, _) in found.items()}
        least = min((float(several.min()) for several in costs.values()), default=0.0)
        return [
            self._hypothesis(*key, int(one), float(gap))
            for key, (at, worst) in found.items()
            for one, gap, cost in zip(at, worst, costs[key], strict=True)
            if cost <= least
        ]

    def _fitting(
        self, within: float, most: float
    ) -> dict[tuple[_Choice, _Choice], tuple[np.ndarray, np.ndarray]]:
        """Return the formulas that fit, and how far they are off, under each choice of the other parts."""
        free = (_FREE,) * len(READING), (_FREE,) * len(MEAN)
        survivors = {free: (self._possible, np.zeros(len(self._possible)))}
        for probe, answer in sorted(self.known, key=lambda one: _effort(one[0])):
            after = {}
            for (reading, mean), (at, worst) in survivors.items():
                costs = self._costs[at]
                left = most - costs.min()
                for new_reading in self._readings(probe, reading):
                    if self._cost(new_reading, mean) > left:
                        continue
                    users = self._read(probe, new_reading)
                    for new_mean in self._means(users, answer, mean):
                        cost = self._cost(new_reading, new_mean)
                        if cost > left:
                            continue
                        affordable = costs + cost <= most
                        gap = self._gap(users, new_mean, answer, at[affordable])
                        fits = gap <= within
                        if fits.any():
                            farthest = np.maximum(worst[affordable], gap)
                            after[new_reading, new_mean] = at[affordable][fits], farthest[fits]
            survivors = after
        return survivors

    def _cost(self, reading: _Choice, mean: _Choice) -> float:
        return sum(option.cost for option, _ in self._chosen(reading, mean))

    def _chosen(self, reading: _Choice, mean: _Choice) -> Iterator[tuple[Habit, Sequence[Habit]]]:
        for chosen, parts in ((reading, READING), (mean, self._mean)):
            for at, options in zip(chosen, parts.values(), strict=True):
                if at != _FREE:
                    yield options[at], options

    def _hypothesis(self, reading: _Choice, mean: _Choice, formula: int, gap: float) -> Hypothesis:
        taken = [(option, {o.decision for o in part}) for option, part in self._chosen(reading, mean)]
        every = {o.decision for options in self.formulas.options for o in options}
        own = self.formulas.options[formula]
        n_read = sum(at != _FREE for at in reading)
        options = [*(o for o, _ in taken[:n_read]), *own, *(o for o, _ in taken[n_read:])]
        values = {o.decision: o.value for o in options if o.decision in self.space.choices}
        deviating = [option for option in options if option.words]
        replaces = set.union(*(part for option, part in taken if option.words), every) - {*values}
        known = [frozenset(option.known_of) for option in deviating]
        return Hypothesis(
            values,
            tuple(option.words for option in deviating),
            frozenset.intersection(*known) if known else frozenset(PRESETS),
            frozenset(replaces),
            gap,
        )

    def _readings(self, probe: Probe, chosen: _Choice) -> Iterator[_Choice]:
        """Yield the options of reading with those chosen that this probe shows."""
        question = probe.question
        shown = True, True, _SHOWN_BY["ties"](question), _SHOWN_BY["duplicates"](question), True, True
        unlisted = (len(own.keys() - {i for i, _ in probe.run.get(u, ())}) for u, own in probe.truth.items())
        ties_at_end = max(unlisted, default=0) > 1
        for one in _choices(chosen, shown, [range(len(options)) for options in READING.values()]):
            if ties_at_end and one[ITEMS] == AT_END and one[TIES] == _FREE:
                for at in range(len(READING["ties"])):
                    yield (*one[:TIES], at, *one[TIES + 1 :])
            else:
                yield one

    def _means(self, users: Sequence[_User], answer: Answer, chosen: _Choice) -> Iterator[_Choice]:
        """Yield the options of the mean with those chosen that these users show."""
        shown = (
            not all(user.has_relevant for user in users),
            not all(user.has_list for user in users),
            len(users) > 1 and not isinstance(answer, dict),
            True,
        )
        return _choices(chosen, shown, self._possible_means)

    def _possible_scales(self) -> list[int]:
        """Return the options of scale that the answers do not rule out at once."""
        single = [
            number
            for probe, answer in self.known
            if isinstance(answer, dict) or len({**probe.run, **probe.truth}) == 1
            for number in _numbers(answer)
        ]
        has_percentages = any(number > 1 for _, answer in self.known for number in _numbers(answer))
        rounded = [3 + at for at, n in enumerate((2, 3, 4)) if single and _are_rounded(single, n)]
        return [0, 2] + [1] * has_percentages + rounded

    def _read(self, probe: Probe, reading: _Choice) -> list[_User]:
        key = probe.text, reading
        if key not in self._users:
            choice = [max(at, 0) for at in reading]
            highest = max((g for own in probe.truth.values() for g in own.values()), default=0.0)
            self._users[key] = [
                self._user(user, probe, choice, highest) for user in {**probe.run, **probe.truth}
            ]
        return self._users[key]

    def _user(self, name: str, probe: Probe, choice: Sequence[int], highest: float) -> _User:
        rows, grades = probe.run.get(name, []), probe.truth.get(name, {})
        how, orders = read(rows, grades, probe.k, choice, highest)
        counted = [one for one in orders if len(one.relevant) and one.items and one.k > 0]
        every = [self.formulas.parts(one) for one in counted]
        ways = [(parts, self.formulas.value(*parts)) for parts in every]
        if not ways:
            ways = [((), np.zeros(len(self.formulas.options)))]
        elif how != "any" and len(ways) > 1:
            reductions: dict[str, Callable[..., Any]] = {"expected": np.mean, "best": np.max, "worst": np.min}
            reduced = reductions[how]([value for _, value in ways], axis=0)
            means = tuple(np.mean(several, axis=0) for several in zip(*every, strict=True))
            ways = [(means, reduced)]
        is_listed = bool(rows) or bool(orders[0].items)
        return _User(name, is_listed, bool(grades), bool(len(orders[0].relevant)), ways)

    def _gap(self, users: Sequence[_User], mean: _Choice, answer: Answer, at: np.ndarray) -> np.ndarray:
        """Return how far each formula is from an answer, with the order of equal scores that is nearest."""
        mean = tuple(max(one, 0) for one in mean)
        counted = self._counted(users, mean)
        groups: list[tuple[Sequence[_User], float]] = []
        if not isinstance(answer, dict | Refusal):
            groups = [(counted, answer)] if counted else []
        elif isinstance(answer, dict) and answer.keys() == {user.name for user in counted}:
            groups = [([user], answer[user.name]) for user in counted]
        never = np.full(len(at), np.inf)
        is_fitted = groups or (answer == {} and not counted)
        farthest = np.zeros(len(at)) if is_fitted else never
        for group, number in groups:
            every = self._predicted(group, mean, at)
            gaps = [np.abs(number - one) / np.maximum(1.0, np.abs(one)) for one in every]
            farthest = np.maximum(farthest, np.fmin.reduce([never, *gaps]))
        return farthest

    def _counted(self, users: Sequence[_User], mean: _Choice) -> list[_User]:
        no_truth, no_list, *_ = mean
        return [
            user
            for user in users
            if (user.has_list or no_list == 0)
            and (user.has_relevant or no_truth in (1, 3) or (no_truth == 2 and user.has_judgements))
        ]

    def _predicted(self, users: Sequence[_User], mean: _Choice, at: np.ndarray) -> Iterator[np.ndarray]:
        """Yield what these formulas make of the users, for each order that equal scores may be in."""
        no_truth, _, over_users, scale = mean
        for ways in islice(product(*(user.ways for user in users)), _MOST_WAYS):
            if over_users == 1 and len(users) > 1:
                parts = [own for own, _ in ways if own]
                if not parts:
                    return
                means = [sum(several) / len(ways) for several in zip(*parts, strict=True)]
                total = self.formulas.value(*means)[at]
            else:
                rows = np.array(
                    [
                        np.ones(len(at)) if no_truth == 3 and not user.has_relevant else way[at]
                        for user, (_, way) in zip(users, ways, strict=True)
                    ]
                )
                if scale >= 3:
                    rows = np.round(rows, scale - 1)
                total = _over_users(rows, over_users)
            yield (total, 100 * total, 1 - total)[scale] if scale < 3 else total

    def at_most(self, several: Sequence[Hypothesis]) -> float:
        """Return the greatest value of a list that any of these can give (see EXTREMES)."""
        greatest = 0.0
        for one in several:
            reading = tuple(self._option(one, options) for options in READING.values())
            *mean, _ = (self._option(one, options) for options in self._mean.values())
            at = self._formula(one)
            for probe in extremes(EXTREMES_K, EXTREMES_LENGTH, EXTREMES_GRADE):
                users = self._read(probe, reading)
                values = [float(v[0]) for v in self._predicted(users, (*mean, 0), np.array([at]))]
                greatest = max(greatest, *values)
        return greatest

    def _formula(self, one: Hypothesis) -> int:
        """Return which formula a hypothesis takes, the first where several do."""
        words = self._words & {*one.deviations}
        for at in self._possible:
            options = self.formulas.options[at]
            if all(self._takes(one, o) for o in options) and words <= {o.words for o in options}:
                return int(at)
        return 0

    def _option(self, one: Hypothesis, options: Sequence[Habit]) -> int:
        """Return which option of a part a hypothesis takes: one it names, or the first where that is free."""
        taken = [self._takes(one, option) * (1 + bool(option.words)) for option in options]
        return taken.index(max(taken))

    @staticmethod
    def _takes(one: Hypothesis, option: Habit) -> bool:
        if option.words:
            return option.words in one.deviations
        return option.decision not in one.values or one.values[option.decision] == option.value


def _choices(chosen: _Choice, shown: Sequence[bool], possible: Sequence[Sequence[int]]) -> Iterator[_Choice]:
    """Yield options of each part: all that are possible where it is free and shown."""
    parts = zip(chosen, shown, possible, strict=True)
    return product(*(options if at == _FREE and is_shown else (at,) for at, is_shown, options in parts))


def _effort(probe: Probe) -> tuple[bool, int]:
    """Return what puts probes that leave little to choose first: no ties and repeats, then few users."""
    question = probe.question
    has_choices = _SHOWN_BY["ties"](question) or _SHOWN_BY["duplicates"](question)
    return has_choices, len({**probe.run, **probe.truth})


def _over_users(rows: np.ndarray, over_users: int) -> np.ndarray:
    """Bring users together under an option of MEAN["mean"]."""
    total: np.ndarray = rows.sum(axis=0)
    if over_users == 2:
        total = total / np.maximum(np.count_nonzero(rows, axis=0), 1)
    elif over_users == 4:
        total = np.median(rows, axis=0)
    return total / len(rows) if over_users < 2 else total


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
            if not one.deviations or not known_only or name in one.known_of
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
    largest = min(one.difference for one in remaining)
    metric, formulas = space.request.metric.name, formulas_of(space.request.metric.name)
    at_most = 0.0
    if formulas is not None and metric != "dcg":
        at_most = _Mistakes(space, formulas, known).at_most(remaining[:_MOST_BOUNDED])
    if not precision:
        kind = "double precision" if largest <= _DOUBLE else "single precision"
        precision = f"the largest difference is {largest:.1g} ({kind})"
    deviations = tuple(dict.fromkeys(filter(None, (one.deviation for one in remaining))))
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
        evaluators=tuple(
            name
            for name, row in EVALUATORS.items()
            if metric in row.metrics
            and any(_is_of(one, row, metric, is_rounded="decimals" in precision) for one in remaining)
        ),
        at_most=at_most if at_most > 1 + _TOLERANCE else None,
    )


def _is_of(one: Hypothesis, row: Transcription, metric: str, *, is_rounded: bool) -> bool:
    """Return whether an evaluator decides and deviates so, as far as is known of it."""
    decided = row.decisions(metric).items()
    own = {words for words in row.deviations(metric) if not (is_rounded and "rounded" in words)}
    return own == {*one.deviations} and all(
        str(one.values.get(decision, value)) == value for decision, value in decided
    )


def _why_open(
    space: _Space, name: str, remaining: Sequence[Hypothesis], asked: Sequence[tuple[Probe, Answer]]
) -> str:
    if name in _NEVER_SHOWN:
        return _NEVER_SHOWN[name]
    if any(name in one.replaces for one in remaining):
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
        by_rest.setdefault((one.deviation, _key(rest)), set()).add(one.values.get(name))
    if len({frozenset(values) for values in by_rest.values()}) == 1:
        return "equal on every probe"
    partners = []
    for other in space.choices:
        pairs = {(one.values.get(name), one.values.get(other)) for one in remaining}
        mine, theirs = {value for value, _ in pairs}, {value for _, value in pairs}
        if other != name and len(pairs) < len(mine) * len(theirs):
            partners.append(other)
    if len({one.deviation for one in remaining}) > 1:
        partners.append("the deviation")
    return f"which of them it is depends on {', '.join(partners) or 'the other open decisions'}"


def _contradict(
    space: _Space,
    asked: Sequence[tuple[Probe, Answer]],
    within: float,
    others: tuple[str, ...],
    *,
    constant: bool,
) -> Identification:
    """Find where the answers fit nothing that is known."""
    known = _answered(asked)
    _, before, number = space.fitting(known, within)
    # Something fits each of the probes before, so none of them rules out everything alone.
    later = sorted(known[number:], key=lambda one: one[0].size)
    starts: tuple[list[dict[str, Any]], ...] = (before, [{}])
    alone = next((one for one in later if not any(space.fit(*one, within, own) for own in starts)), None)
    probe, answer = alone or known[number]
    candidates = {str(Conventions()): space.of_preset(Conventions())}
    candidates |= {name: space.of_preset(row.conventions) for name, row in PRESETS.items()}
    for values in before[:50]:
        decisions = {**space.of_preset(Conventions()), **values}
        changed = {n: v for n, v in decisions.items() if n in dict(Conventions().items())}
        candidates.setdefault(str(Conventions().but(**changed)), decisions)
    rows = []
    for words, decisions in candidates.items():
        full = {name: decisions.get(name, values[0]) for name, values in space.choices.items()}
        fits = sum(_difference(given, space.predicted(one, full)) <= within for one, given in known)
        here = space.predicted(probe, full)
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
        other_metrics=others,
    )


def probe_lines(metric: str) -> list[dict[str, Any]]:
    """Return the questions about a metric as in a file, each with its name and the set's version.

    >>> probe_lines("ndcg")[0]["probe"], probe_lines("ndcg")[0]["k"]
    ('graded', 4)
    """
    request = _request_of(metric)
    probes = probes_for(request.metric.reads)
    return [{"probe": probe.name, "version": VERSION, **probe.question} for probe in probes]


def _stored(answers: Any, probes: Sequence[Probe]) -> list[tuple[Probe, Answer]]:
    """Return answers given before, each with its question; in the order of the probes if they name none."""
    where = "the answers"
    if isinstance(answers, str | Path):
        where, answers = str(answers), read_answers(Path(answers))
    rows: list[Any] = [answers]  # one row, as a file of one line holds it
    if isinstance(answers, Mapping):
        if not {"value", "error", "probe", "run"} & {*answers}:
            rows = [{"probe": name, "value": value} for name, value in answers.items()]
    elif isinstance(answers, Iterable) and getattr(answers, "ndim", 1) == 1:
        rows = list(answers)
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
