"""race(): several models on the same users in the same random order, until the winner is clear.

A confidence sequence watches every difference between two models; the error rate holds whenever the race
stops and covers all watched pairs and metrics. A model that can no longer win is not evaluated further.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Unpack

from recsys.conventions.decisions import AnyConventions, Conventions
from recsys.display.number_words import plural
from recsys.display.tabled import Tabled
from recsys.errors import InputError, UnknownNameError
from recsys.evaluation.cautions import comparison_cautions
from recsys.evaluation.evaluate_keywords import OF_MODELS, RunKeywords
from recsys.evaluation.options import EvaluationOptions
from recsys.evaluation.origin import StoredOrigin
from recsys.evaluation.reading import CommonInputs
from recsys.evaluation.result_facts import StopFacts
from recsys.evaluation.results import Evaluation
from recsys.evaluation.run import RunOrigin
from recsys.evaluation.stopping import (
    SteppedEvaluation,
    StopWhen,
    describe_users,
    difference_bounds,
    format_unlimited,
    watched_metrics,
)
from recsys.inputs import read_interactions
from recsys.metrics.registry import Metrics
from recsys.records.facts import Kind, Verdict
from recsys.records.keywords import takes
from recsys.stats.results import Interval
from recsys.stats.sequential import ConfidenceSequence

Key = tuple[str, str, str]

_BY_DESIGN = frozenset({"different_questions"})  # models that are out see fewer users


@dataclass(frozen=True)
class Leg:
    """One model against another on one metric: `verdict` is better, worse or undecided."""

    model: str
    against: str
    metric: str
    difference: float
    interval: Interval
    n_users: int
    verdict: Verdict


@dataclass(eq=False, repr=False)
class Race(Tabled, Mapping[str, Evaluation]):
    """{model: evaluation over the users it was evaluated on}; prints the verdicts and the work saved.

    `unlimited` are means over users that have no range, and so were not watched. `about` says whom the
    verdicts are about, as StopWhen does.
    """

    evaluations: dict[str, Evaluation]
    legs: tuple[Leg, ...]
    winner: dict[str, str | None]
    n_total: int
    confidence: float
    about: str = "users at large"
    unlimited: tuple[str, ...] = ()

    def __getitem__(self, model: str) -> Evaluation:
        return self.evaluations[model]

    def __iter__(self) -> Iterator[str]:
        return iter(self.evaluations)

    def __len__(self) -> int:
        return len(self.evaluations)

    @property
    def n_seen(self) -> dict[str, int]:
        """How many users each model was evaluated on."""
        return {name: stop.n_seen for name, e in self.evaluations.items() if (stop := e.facts.stopped)}

    @property
    def share_saved(self) -> float:
        """The share of all evaluations (models x users) that was not needed."""
        return 1.0 - sum(self.n_seen.values()) / (len(self) * self.n_total)

    @property
    def decided(self) -> bool:
        """Whether every watched metric has a winner."""
        return all(name is not None for name in self.winner.values())

    def _columns(self) -> dict[str, list[Any]]:
        """Return one row per pair of models and metric."""
        return {
            "model": [leg.model for leg in self.legs],
            "against": [leg.against for leg in self.legs],
            "metric": [leg.metric for leg in self.legs],
            "difference": [leg.difference for leg in self.legs],
            "low": [leg.interval.low for leg in self.legs],
            "high": [leg.interval.high for leg in self.legs],
            "users": [leg.n_users for leg in self.legs],
            "verdict": [leg.verdict for leg in self.legs],
        }

    def _footnotes(self) -> list[object]:
        winners = [f"{metric}: {name or 'no clear winner'}" for metric, name in self.winner.items()]
        methods = ", ".join(dict.fromkeys(leg.interval.method for leg in self.legs))
        seen = ", ".join(f"{name} {n:,}" for name, n in self.n_seen.items())
        validity = "it holds" if len(self.legs) == 1 else "they hold together"
        whom = describe_users(self.about, self.n_total)
        guarantee = f"for {whom} {validity}, at all times, with {self.confidence:.0%}"
        models = {name: [evaluation] for name, evaluation in self.evaluations.items()}
        return [
            f"winner by {', '.join(winners)}",
            f"{self.share_saved:.1%} of the work saved: {seen} of {self.n_total:,} users",
            f"{plural(len(self.legs), 'difference')} watched by {methods}; {guarantee}",
            *format_unlimited(self.unlimited),
            *comparison_cautions(models, self.winner, _BY_DESIGN),
        ]


@takes(RunKeywords, elsewhere=OF_MODELS)
def race(
    models: Mapping[str, Any],
    truth: Any,
    metrics: Metrics = None,
    *,
    baseline: str | None = None,
    stop_when: float | StopWhen | None = None,
    conventions: AnyConventions = None,
    **given: Unpack[RunKeywords],
) -> Race:
    """Evaluate several models only until it is clear which is best, or which beat the baseline.

    Args:
        models: {name: what evaluate takes as lists: factors, scores, a model, ready lists}.
        truth: what was relevant, as for evaluate.
        metrics: which metrics; all means over users that have a range (`evaluation.ranges`) are watched
            unless stop_when names some.
        baseline: stop when every other model is known to be better or worse than this one; by default stop
            when the best model is known for every watched metric.
        stop_when: a half-width: differences known this well need not be decided; or a StopWhen, such as
            StopWhen(about="these users") if the winner among the users of this test set is all you ask.
        conventions: as for evaluate.
        given: keywords of evaluate, which `help(recsys.race)` and the page docs/keywords.md list.

    >>> import recsys
    >>> truth = {u: [u % 50] for u in range(3000)}
    >>> good = {u: [u % 50 if u % 10 < 6 else -1] for u in truth}
    >>> poor = {u: [u % 50 if u % 10 < 3 else -1] for u in truth}
    >>> result = race({"good": good, "poor": poor}, truth, ["hit@1"])
    >>> result.winner, result.share_saved > 0.8
    ({'hit@1': 'good'}, True)
    """
    by_name: Any = models
    if not isinstance(by_name, Mapping) or len(by_name) < 2:
        got = list(by_name) if isinstance(by_name, Mapping) else type(by_name).__name__
        raise InputError(
            f"a race needs at least two models, got {got}.", hint="Pass {name: lists, factors or a model}."
        )
    name: Any = baseline
    if name is not None and not any(type(name) is type(one) and name == one for one in by_name):
        raise UnknownNameError("baseline", baseline, models)
    stop = StopWhen() if stop_when is None else StopWhen.of(stop_when)
    if stop.threshold is not None or stop.against is not None:
        raise InputError(
            "a race is between its models; threshold= and against= are for one.",
            hint="Use evaluate(..., stop_when=...).",
        )
    interactions = truth if hasattr(truth, "__fspath__") or isinstance(truth, str) else read_interactions(
        truth, table="truth", columns=(given.get("columns") or {}).get("truth", given.get("columns"))
    )  # fmt: skip
    chosen, options = Conventions.of(conventions), EvaluationOptions(**given)
    # Models may list different users; they are compared on the users with truth, which all of them share.
    runs, entries = {}, {}
    for name, model in models.items():
        runs[name] = run = CommonInputs(metrics, options).run_of(model, interactions)
        entries[name] = run.steps(run.effective(chosen), stop, with_truth=True)
        if not entries[name].advance():
            raise InputError("the truth holds no user.", table="truth")
    state = _RaceState(entries, baseline, stop)
    state.run()
    finished = {}
    for name, entry in entries.items():
        stopped = StopFacts(
            n_seen=entry.n_seen, n_total=state.n_total, confidence=stop.confidence, about=stop.about
        )
        stopped = replace(stopped, says=f"a race: {stopped.seen}")
        partial, rules = entry.merged(), entry.conventions
        origin = StoredOrigin.of(RunOrigin(runs[name], partial, rules, stopped=stopped))
        origin = replace(origin, ranges=entry.ranges)
        finished[name] = Evaluation(partial, entry.requests, rules, origin=origin)
    return Race(
        finished,
        state.legs(),
        state.winners(),
        n_total=state.n_total,
        confidence=stop.confidence,
        about=stop.about,
        unlimited=tuple(state.unlimited),
    )


class _RaceState:
    """The state of the race: a confidence sequence for every pair of models and metric."""

    def __init__(
        self, entries: Mapping[str, SteppedEvaluation], baseline: str | None, stop: StopWhen
    ) -> None:
        first = next(iter(entries.values()))
        self.entries, self.baseline, self.stop = entries, baseline, stop
        self.n_total = len(first.cases)
        self.metrics, self.unlimited = watched_metrics([*entries.values()], stop)
        self.lower = {str(r) for r in first.requests if r.metric.better == "lower"}
        pairs = (
            list(itertools.combinations(entries, 2))
            if baseline is None
            else [(name, baseline) for name in entries if name != baseline]
        )
        share = (1.0 - stop.confidence) / (len(pairs) * len(self.metrics))
        self.sequences: dict[Key, ConfidenceSequence] = {}
        for one, other in pairs:
            for metric in self.metrics:
                bounds = difference_bounds(entries[one].ranges[metric], entries[other].ranges[metric])
                sequence = ConfidenceSequence(first.n_units, bounds=bounds, alpha=share)
                self.sequences[one, other, metric] = sequence
        self.running = set(entries)

    def run(self) -> None:
        """Evaluate block after block until no pair is open."""
        more = True
        while more:
            for (one, other, metric), sequence in self.sequences.items():
                if {one, other} <= self.running:
                    a, b = self.entries[one], self.entries[other]
                    sequence.update(*a.by_user(a.latest(metric) - b.latest(metric)))
            open_pairs = {key[:2] for key in self.sequences if self._is_open(key)}
            self.running &= {name for pair in open_pairs for name in pair}
            # Models never return, so those still running have seen the same blocks.
            running = [entry for name, entry in self.entries.items() if name in self.running]
            more = bool(running) and all(entry.advance() for entry in running)

    def _is_open(self, key: Key) -> bool:
        """Return whether more users could still change the verdict."""
        one, other, metric = key
        width = self.stop.width_of(metric)
        interval = self.sequences[key].interval
        if self.ahead(key) or (width is not None and interval.high - interval.low <= 2.0 * width):
            return False
        # Without a baseline only models that may still be the best matter.
        return self.baseline is not None or {one, other} <= self.candidates(metric)

    def ahead(self, key: Key) -> str | None:
        """Return the better model of a pair, once it is clear."""
        one, other, metric = key
        interval = self.sequences[key].interval
        if not (interval.low > 0 or interval.high < 0):
            return None
        return one if (interval.low > 0) != (metric in self.lower) else other

    def candidates(self, metric: str) -> set[str]:
        """Models that no other model clearly beats."""
        keys = [key for key in self.sequences if key[2] == metric]
        beaten = {name for key in keys for name in key[:2] if self.ahead(key) not in (None, name)}
        return set(self.entries) - beaten

    def winners(self) -> dict[str, str | None]:
        """Return the best model by each metric, or None if it is not known."""
        winners: dict[str, str | None] = {}
        for metric in self.metrics:
            remaining = self.candidates(metric)
            winners[metric] = remaining.pop() if len(remaining) == 1 else None
        return winners

    def legs(self) -> tuple[Leg, ...]:
        """Return the difference and the verdict of each pair and metric."""
        out = []
        for key, sequence in self.sequences.items():
            best = self.ahead(key)
            kind: Kind = "undecided" if best is None else "better" if best == key[0] else "worse"
            out.append(Leg(*key, sequence.mean, sequence.interval, sequence.n_seen, Verdict(kind, key[2])))
        return tuple(out)
