"""bench(): from a table of interactions to a decision between recommenders, and its price.

The plan says what the table is and how it is split (`bench_plan`). Every recommender of `TRAINABLE` is tuned
on the validation part, fitted again on everything before the test, and ranks the whole catalogue for the
users of the test, next to the models that are passed. The decision is that of the report.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Self, Unpack

import numpy as np

from recsys.audits import Audit, Finding, audit
from recsys.benching.bench_plan import (
    PARTS,
    BenchPlan,
    Relevant,
    Remark,
    make_plan,
    plan_of_folder,
    plan_of_parts,
    read_events,
    with_ids_of,
    words_on_missing_lists,
)
from recsys.benching.time_plan import fit_into
from recsys.comparison.compare import compare
from recsys.comparison.history import record
from recsys.conventions.decisions import Conventions
from recsys.display.cells import Columns
from recsys.display.notebook_html import notebook_card
from recsys.display.number_words import plural
from recsys.display.text_tables import in_bold, note_text
from recsys.errors import (
    InputError,
    MissingExtraError,
    RecsysError,
    TieWarning,
    came_as,
    check_choice,
    hush,
    notes_only,
)
from recsys.evaluation.files.result_files import run_facts
from recsys.evaluation.options import EvaluationOptions
from recsys.evaluation.reading import CommonInputs
from recsys.evaluation.results import Evaluation
from recsys.inputs.ids import ID_KINDS, IdKind
from recsys.metrics.registry import Request, metric_set, set_requests
from recsys.models.model_files import fingerprint
from recsys.models.trainable import TRAINABLE, Trainable, free_memory, tune
from recsys.ranks.open_ranking import open_ranking
from recsys.ranks.ranked_truth import without_history
from recsys.ranks.sources.source_files import arrays_of
from recsys.records.arrays import Interactions, Lists, cached_property
from recsys.records.checks import check_choices, check_seed, is_number, is_whole
from recsys.records.facts import Caution, Tone
from recsys.report.methods import Methods, MethodsFacts
from recsys.report.study import Study, findings_of, make_study
from recsys.splits import Split
from recsys.stats.comparison_table import Row

__all__ = ["Bench", "bench"]

BASELINE = "popularity"
STOPPED = "it was stopped."
_TRIALS = 8
_LEAK = "trained_on_test"
_K, _OTHER_CUTS, _LIST_LENGTH = 10, (5, 20), 20
_FEWEST_USERS = 20
Progress = Callable[[int, int, str], object]


@dataclass(frozen=True)
class Training:
    """How a recommender was trained: its settings, how many were tried, and the seconds all of it took."""

    settings: Mapping[str, Any]
    trials: int
    seconds: float

    def __str__(self) -> str:
        settings = ", ".join(f"{name}={value}" for name, value in self.settings.items())
        return f"{settings or 'as they are'} (of {plural(self.trials, 'trial')})"


class Against(str):
    """The word of a verdict with the lift, in the colour of the verdict."""

    __slots__ = ("tone", "word")
    tone: Tone
    word: str

    def __new__(cls, row: Row) -> Self:
        lift = f" {row.relative:+.0%}" if math.isfinite(row.relative) else ""
        text = super().__new__(cls, row.verdict.word + lift)
        text.tone, text.word = row.verdict.tone, row.verdict.word
        return text


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Bench(Study):
    """What `bench` found: prints the decision, the models by merit, and how it came about.

    It is a study: `runs` on the test, best first, one for each seed where training draws; `lists` of the
    first runs; the `comparison` of the best with each other; and their `decision`.

    Attributes:
        plan: what the data is and how it was split.
        test: what was to be found.
        history: what the models learnt from in the end: everything before the test.
        training: {model: settings, trials and seconds} of the models that were trained here.
        left_out: {model: why it was not trained}.
        findings: of the audit, about what was given: a model that was trained on rows of the test,
            lists for few users, or with items that users had before.
        audit: what is wrong with the split, the lists of the best model, or what models learnt from.
        notes: what else there is to say: (heading, sentence) each.
    """

    plan: BenchPlan
    test: Interactions
    history: Interactions
    training: Mapping[str, Training]
    left_out: Mapping[str, str]
    findings: Sequence[Finding]
    audit: Audit
    notes: Sequence[Remark]

    def _decision_lines(self) -> list[str]:
        """Return the decision card as lines, the heading first."""
        decision = self.decision
        lines = [f"{decision.heading}.", decision.says]
        for tile in decision.tiles:
            number = "" if tile.is_sum or tile.text.startswith(tile.number) else f"{tile.number}, "
            small = tile.small.removesuffix(".")
            if small:
                small = f". {small}" if small[0].isupper() else f" ({small})"
            lines.append(f"{tile.label[0].upper()}{tile.label[1:]}: {number}{tile.text}{small}.")
        lines += [f"Price: {'; '.join(decision.price)}."] if decision.price else []
        return [line.replace("\u00a0", " ") for line in (*lines, *decision.causes)]

    def to_text(self) -> str:
        """Return the decision, the table and the notes below it."""
        heading, *lines = map(note_text, self._decision_lines())
        return "\n".join([in_bold(heading), *lines, "", super().to_text()])

    def _repr_html_(self) -> str:
        return notebook_card(*self._decision_lines()) + super()._repr_html_()

    def _columns(self) -> Columns:
        columns: dict[str, list[Any]] = {"model": self.names}
        for name in (m for m, r in self.requests.items() if r.k == _K or m == self.headline):
            columns[name] = [self.value(model, name) for model in self.runs]
        if any(len(runs) > 1 for runs in self.runs.values()):
            columns["runs"] = list(map(len, self.runs.values()))
        rows = [self.rows.get((model, self.best, self.headline)) for model in self.runs]
        columns[f"against {self.best}"] = [Against(row) if row else "" for row in rows]
        columns["seconds"] = [
            f"{self.training[model].seconds:.1f}" if model in self.training else "" for model in self.runs
        ]
        return columns

    def _footnotes(self) -> list[object]:
        leaks = [f"Leak: {one.message}" for one in self.findings if one.severity == "error"]
        odd = [Caution.of(one.name, one.message) for one in self.findings if one.severity == "warning"]
        remarks = [f"{heading}: " + sentence for heading, sentence in self.notes]
        return [*leaks, *remarks, *odd, *super()._footnotes()]

    def to_dict(self) -> dict[str, Any]:
        """Return the decision, every value, and how it came about, as values that JSON can hold."""
        decision = self.decision
        return {
            "decision": {"heading": decision.heading, "says": decision.says, "price": list(decision.price)},
            "headline": self.headline,
            "models": {model: {m: self.value(model, m) for m in self.metrics} for model in self.runs},
            "runs": {model: [dict(run) for run in runs] for model, runs in self.runs.items()},
            "training": {
                model: {"settings": dict(t.settings), "trials": t.trials, "seconds": t.seconds}
                for model, t in self.training.items()
            },
            "left_out": dict(self.left_out),
            "notes": [*map(str, self._footnotes())],
            "split": {"how": self.plan.how, **self.plan.parameters},
            "relevant_from": self.plan.ratings.relevant_from,
            "comparison": None if self.comparison is None else self.comparison.to_dict(),
            "audit": self.audit.to_dict(),
        }

    def save(self, folder: str | os.PathLike[str]) -> dict[str, Path]:
        """Add every result to a folder, which compare, gate, history and board take; {name: its file}."""
        paths = {}
        for model, runs in self.runs.items():
            for run in runs:
                name = f"{model}, seed {run.run['seed']}" if len(runs) > 1 else model
                paths[name] = record(Path(folder), run, name, **run.run)
        return paths

    def methods(self, **facts: Unpack[MethodsFacts]) -> Methods:
        """Return a methods paragraph for a paper, with BibTeX; it knows the split and the candidates."""
        return super().methods(**{**self.facts, **facts})


def bench(
    data: Any = None,
    test: Any = None,
    *,
    models: Mapping[str, Any] | None = None,
    output: str | os.PathLike[str] | None = None,
    split: str | os.PathLike[str] | Split | Sequence[Any] | None = None,
    baselines: Sequence[str] | None = None,
    headline: str | None = None,
    items: Any = None,
    trials: int | Mapping[str, int] = 8,
    minutes: float | None = None,
    relevant_from: float | None = None,
    relevant: Relevant | None = None,
    columns: Mapping[str, str | None] | None = None,
    ids: IdKind = "str",
    seed: int = 0,
    seeds: int = 1,
    progress: Progress | None = None,
) -> Bench:
    """Compare recommenders on a table of interactions: what to ship, and what it costs.

    The columns, the meaning of the ratings and a split that leaks as little as the data allows are read off
    the table, and the result says why. Baselines are tuned on the validation part and trained on all that
    comes before the test.

    Args:
        data: a pandas, polars or Arrow table with columns of users and items, and if possible of times and
            ratings; or the path of a file.
        test: the rows to predict, where `data` are those to learn from; by default a split is proposed.
        models: {name: model} to compare with the baselines, as evaluate takes them: lists for the users of
            the test, Factors, Scores, a fitted model, the path of either. They must not have seen the test:
            train them on the parts of `split`. A model of `recsys train` that has is an error of the audit.
        output: also write the report here (.html).
        split: instead of data, a folder that `recsys bench --split-to` or `recsys split` wrote, what
            `recsys.split` returns, or (train, test) or (train, validation, test).
        baselines: names in `recsys.models.trainable.TRAINABLE`; by default all. Popularity is always there.
        headline: the metric that decides, and that settings are chosen by; by default ndcg@10.
        items: {item: title}, or a table with item and title columns, for the report.
        trials: how many settings of each baseline are tried at most; {baseline: number} of those with another
            number than 8.
        minutes: about how long the baselines may take on one core. Settings and baselines are left out by
            estimates made beforehand, the slowest first, and the result says with what to run the same again.
        relevant_from: the rating from which on an item is relevant; by default the ratings decide.
        relevant: which kinds of events are relevant: {"event": "purchase"}, several in a list, or
            {"event": {"cart": 1, "purchase": 3}} with weights as grades. The others are learnt from. Of
            several events of a user and an item the strongest counts.
        columns: the column of each role ("user", "item", "time", "grade") that is not recognised; None for
            a role that is not to be read.
        ids: how the ids of files are read: "str" as text, "int" as whole numbers. Where every id is a whole
            number they are numbers, of files and of tables: of two equals the lower one comes first.
        seed: of random splits and of training.
        seeds: how many models are trained where training draws, with this seed and those after it: the spread
            between them is then part of every verdict. Settings are chosen with the first.
        progress: called with (steps done, steps in all, what is being done).

    Returns:
        The results; `print` shows the decision, the table of models and how it came about.

    Raises:
        InputError: there is one user or one item only, or the data is not a table.
        SplitError: no user has enough rows.

    >>> import pandas as pd
    >>> events = pd.DataFrame([(u, (u * 7 + t * t) % 13, t) for u in range(40) for t in range(6)])
    >>> events.columns = ["user", "item", "time"]
    >>> result = bench(events.drop_duplicates(["user", "item"]), baselines=["item-knn"], trials=2)
    >>> sorted(result.evaluations), result.plan.how
    (['item-knn', 'popularity'], 'leave_last')
    """
    if not is_whole(seeds, 1):
        raise InputError(f"seeds is {seeds!r}.", hint="Such as seeds=5.")
    check_choice("value of ids", ids, ID_KINDS)
    seed = check_seed(seed)
    options = {"columns": columns, "relevant_from": relevant_from, "relevant": relevant, "seed": seed}
    plan = _read_plan(data, test, split, ids, **options)
    usual = set_requests("bench", _K)
    asked = Request.parse(usual[0] if headline is None else headline)
    drawn = [metric.name for metric in metric_set("bench") if metric.population == "relevant"]
    curves = [f"{name}@{k}" for name in drawn for k in _OTHER_CUTS]
    requests = tuple(dict.fromkeys((str(asked), *usual, *curves)))
    history, validation = plan.history("train", "validation"), plan.held_out("validation")
    left_out, notes = dict[str, str](), list[Remark]()
    entries = _find_baselines(baselines, {} if models is None else models, history, left_out)
    seeds_of = {name: entry.runs(seed, seeds) for name, entry in entries.items()}
    n_trials = _count_trials(trials, entries, is_tuned=validation is not None)
    if minutes is not None:
        fits = {name: len(of) for name, of in seeds_of.items()}
        timed = fit_into(minutes, entries, n_trials, history, fits)
        n_trials = timed.trials
        left_out |= timed.left_out
        notes.append(("Time", timed.explain(minutes)))
    work = _Work(
        plan, plan.test, history, validation, str(asked), requests, n_trials, seeds_of, models or {},
        seed, ids, left_out,
    )  # fmt: skip
    work.run(progress or (lambda *_: None))
    if not work.runs:
        words = "; ".join(f"{name}, as {why}" for name, why in left_out.items())
        raise InputError(f"there is no model to compare: {words}", hint="Name others, or fix that.")
    has_split = test is not None or split is not None
    result = work.finish(items, notes, has_split=has_split)
    if output is not None:
        result.report(output)
    return result


@dataclass(frozen=True)
class _Work:
    """What is run, in this order: baselines with their trials and runs, then models that were handed over.

    The last fields fill on the way; `finish` makes the study of them.
    """

    plan: BenchPlan
    test: Interactions
    history: Interactions
    validation: Interactions | None
    headline: str
    requests: Sequence[str]
    trials: Mapping[str, int]
    seeds: Mapping[str, list[dict[str, int]]]
    models: Mapping[str, Any]
    seed: int
    ids: IdKind
    left_out: dict[str, str]
    runs: dict[str, list[Evaluation]] = field(default_factory=dict)
    lists: dict[str, Lists] = field(default_factory=dict)
    training: dict[str, Training] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    ready: set[str] = field(default_factory=set)

    @cached_property
    def conventions(self) -> Conventions:
        """The default ones, with the border of relevance that the plan found."""
        return Conventions().but(relevant_from=self.plan.ratings.relevant_from)

    @cached_property
    def _of_models(self) -> CommonInputs:
        return CommonInputs(self.requests, EvaluationOptions(seen=self.history, train=self.history))

    @cached_property
    def _of_lists(self) -> CommonInputs:
        asked, catalogue = self._of_models.options, _items_of(self.history)
        return CommonInputs(self.requests, asked.but(catalogue=catalogue))

    @cached_property
    def before_validation(self) -> Interactions:
        """What is learnt from while settings are chosen."""
        return self.plan.history("train")

    def run(self, progress: Progress) -> None:
        """Evaluate every model; an interrupt ends it and keeps what is done."""
        done = 0
        steps = {name: n + len(self.seeds[name]) for name, n in self.trials.items()}
        steps |= dict.fromkeys(self.models, 1)
        total, names = sum(steps.values()), list(steps)
        for name in names:
            step = partial(self._step, progress, done, total)
            step(0, name)
            try:
                self._read(name) if name in self.models else self._train(name, step)
            except (MissingExtraError, MemoryError) as error:
                self._leave_out(name, str(error) or "the memory does not suffice.")
            except KeyboardInterrupt:
                if not self.runs:
                    raise
                for other in names[names.index(name) :]:
                    self._leave_out(other, STOPPED)
                break
            except RecsysError as error:
                error.message = f"{name}: " + error.message
                raise
            else:
                value = self.runs[name][0][self.headline]
                step(steps[name], f"{name}: {self.headline} {value:.4f}")
            done += steps[name]
        progress(total, total, "comparing")

    def finish(self, items: Any, notes: Sequence[Remark], *, has_split: bool) -> Bench:
        """Return the study of what was run, compared and audited."""
        plan, compared = self.plan, None
        rows = {part: int(mask.sum()) for part, mask in plan.masks.items()}
        parameters = {**plan.parameters, **({} if plan.seed is None else {"seed": plan.seed})}
        facts = {
            "split": {"how": plan.how, "parameters": parameters, "counts": {"rows": rows}},
            "candidates": "but for the items that the user had before the test",
        }
        study = make_study(
            self.runs, baseline=BASELINE, headline=self.headline, lists=self.lists, truth=self.test,
            train=self.history, items=items, methods=facts,
        )  # fmt: skip
        if len(self.runs) > 1:
            with notes_only():
                compared = compare(study.runs, None, headline=self.headline)
        found = self._audit(study.best)
        notes = [*plan.explain(), *notes, *self._warn(study, has_split=has_split), *self._explain()]
        how = [Finding("warning" if one in plan.odd else "info", one[1], name=one[0]) for one in notes]
        return Bench.of(
            replace(study, compared=compared, audited=findings_of([*found, *how])),
            plan=plan, training=self.training, left_out=self.left_out, findings=self.findings, audit=found,
            notes=notes,
        )  # fmt: skip

    def _audit(self, best: str) -> Audit:
        """Return what is wrong with the split, the lists of the best, or what models learnt from."""
        found = audit(self.history, self.test, self.lists[best], conventions=self.runs[best][0].conventions)
        # Lists that were made here are the first places of all items, however few.
        fitting = [one for one in found if best in self.ready or one.name != "sampled_candidates"]
        return Audit([*self.findings, *fitting], [_LEAK, *found.checked], found.skipped, found.facts)

    def _explain(self) -> list[Remark]:
        """Return the settings that were chosen, and what was not run."""
        chosen = [f"{model}: {training}" for model, training in self.training.items() if training.trials]
        settings = [("Settings", f"{'; '.join(chosen)}, by {self.headline} on validation.")] if chosen else []
        return [*settings, *(("Not run", f"{model}, as {why}") for model, why in self.left_out.items())]

    def _warn(self, study: Study, *, has_split: bool) -> Iterator[Remark]:
        """Yield what weakens the result: few users, and models that may know the test."""
        n_users = study.first(study.best).n_cases.get(self.headline, _FEWEST_USERS)
        if n_users < _FEWEST_USERS:
            words = plural(n_users, "user")
            sentence = f"{words} with something relevant in the test, too few to tell models apart."
            yield "Few users", sentence
        if self.models and not has_split:
            sentence = (
                "they must not have learnt from the test: --split-to FOLDER writes the parts to train on, "
                "--split FOLDER evaluates on them."
            )
            yield "Models that were given", sentence

    @staticmethod
    def _step(progress: Progress, done: int, total: int, at: int, what: str) -> None:
        progress(done + at, total, what)

    def _train(self, name: str, step: Callable[[int, str], None]) -> None:
        """Add a fitted baseline for each seed; its settings are those that do best on validation."""
        began, settings, seconds = time.perf_counter(), {}, 0.0
        entry, n_trials = TRAINABLE.find(name), self.trials[name]
        if n_trials and self.validation is not None:
            tuned = tune(
                name, self.before_validation, self.validation, metric=self.headline, trials=n_trials,
                seed=self.seed, conventions=self.conventions, progress=lambda at, _: step(at, name),
            )  # fmt: skip
            settings = dict(tuned.settings)
        for at, facts in enumerate(self.seeds[name], start=n_trials):
            step(at, name)
            source = entry.fit(self.history, **facts, **settings)
            seconds += time.perf_counter() - began
            self.training[name] = Training(settings, n_trials, seconds)
            self._add(name, source, **facts)
            began = time.perf_counter()

    def _read(self, name: str) -> None:
        """Add a model that was handed over."""
        given = self.models[name]
        source = open_ranking(given, ids=self.ids if isinstance(given, str | os.PathLike) else None).given
        source = with_ids_of(self.history, source)
        self._add(name, source)
        self.findings.extend(_find_leak(name, source, self.plan, self.history))

    def _add(self, name: str, source: Any, **facts: Any) -> None:
        """Evaluate a run: lists, or what ranks the catalogue, for the users of the test; `facts` of it."""
        is_ready, costs = isinstance(source, Lists), dict[str, float]()
        if is_ready:
            source = self._unseen(name, source)
            self.ready.add(name)
        run = (self._of_lists if is_ready else self._of_models).run_of(source, self.test)
        with hush(TieWarning) as ties:
            if is_ready:
                evaluation, lists = run.evaluate(self.conventions), source
            else:
                evaluation, lists, seconds = run.evaluate_with_lists(self.conventions, _LIST_LENGTH)
                costs = self._costs(name, source, seconds, len(lists.cases))
        self.runs.setdefault(name, []).append(evaluation)
        evaluation.run = {**run_facts(), **facts}
        if name in self.lists:
            return
        evaluation.run |= costs
        self.lists[name] = lists
        if name in self.training:
            return
        for words in words_on_missing_lists(evaluation):
            self._find("users_without_list", name, words + ".", evaluation.counts["without_list"])
        for _, text in ties:
            self._find("tied_scores", name, text, evaluation.counts["tied"])

    def _costs(self, name: str, source: Any, seconds: float, n_users: int) -> dict[str, float]:
        """Return what a model costs to train, to keep and to ask, as far as it is known."""
        n_bytes = sum(array.nbytes for array in arrays_of(source)[1].values())
        found = {"milliseconds_per_user": 1e3 * seconds / max(n_users, 1)}
        found |= {"model_bytes": n_bytes} if n_bytes else {}
        return found | ({"training_seconds": self.training[name].seconds} if name in self.training else {})

    def _unseen(self, name: str, lists: Lists) -> Lists:
        """Return the lists as models rank here: without the items that users had before the test."""
        shorter, n_had = without_history(lists, self.history)
        if n_had:
            words = f"{n_had:,} of {len(lists.codes):,} items were in training and were left out, as for all"
            n_short = int(((lists.sizes >= _K) & (shorter.sizes < _K)).sum())
            words += f"; {n_short:,} lists have fewer than {_K} without them" if n_short else ""
            self._find("training_items_in_lists", name, words + ".", n_had)
        return shorter

    def _find(self, code: str, name: str, words: str, n: int) -> None:
        """Note what is odd about lists that were given."""
        todo = "Rank all items for all users of the test, without those that users had before."
        self.findings.append(
            Finding("warning", f"{name}: " + words, n, todo=todo, area="candidates", name=code)
        )

    def _leave_out(self, name: str, why: str) -> None:
        """State why a model was not trained or not to the end, and forget what there is of it."""
        self.left_out[name] = why
        for known in (self.training, self.runs, self.lists):
            known.pop(name, None)


def _count_trials(
    trials: int | Mapping[str, int], entries: Mapping[str, Trainable], *, is_tuned: bool
) -> dict[str, int]:
    """Return how many settings of each baseline are tried."""
    of_each = trials if isinstance(trials, Mapping) else {}
    most = _TRIALS if isinstance(trials, Mapping) else trials
    if not all(is_whole(n, 0) for n in (most, *of_each.values())):
        raise InputError(f"trials is {trials!r}.", hint="Such as trials=8, or trials={'ease': 2}.")
    check_choices("baseline of trials", list(of_each), entries)
    return {
        name: min(of_each.get(name, most), len(entry.trials)) * is_tuned for name, entry in entries.items()
    }


def _read_plan(data: Any, test: Any, split: Any, ids: IdKind, **options: Any) -> BenchPlan:
    """Return the plan of a table, of a file, of parts, or of a folder of parts."""
    relevant_from = options["relevant_from"]
    if relevant_from is not None and not is_number(relevant_from):
        raise InputError(f"relevant_from is {relevant_from!r}.", hint="Pass a rating, such as 4.")
    options["relevant_from"] = None if relevant_from is None else float(relevant_from)
    if test is not None and data is not None and split is None:
        data, split = None, (data, test)
    if (data is None) == (split is None) or (test is not None and data is not None):
        raise InputError(
            "bench takes a table, train and test, or split=; one of the three.",
            hint="Pass a table with user and item columns.",
        )
    if split is None:
        if isinstance(data, str | os.PathLike):
            data = read_events(data, columns=options["columns"], ids=ids)
        return make_plan(data, **options)
    del options["seed"]
    if isinstance(split, str | os.PathLike):
        return plan_of_folder(split, ids=ids, **options)
    if isinstance(split, Split):
        parts = {name: getattr(split, name) for name in split.names}
        plan = plan_of_parts(parts, **options)
        return replace(plan, how=split.how, parameters=split.parameters, why=f"by {split.how}.")
    if not (isinstance(split, tuple | list) and len(split) in (2, 3)):
        hint = "Name a folder, or pass what recsys.split returns, or (train, test)."
        raise came_as("split", split, hint=hint)
    names = ("train", "test") if len(split) == 2 else PARTS
    parts = dict(zip(names, split, strict=True))
    for name, part in parts.items():
        if isinstance(part, str | os.PathLike):
            parts[name] = read_events(part, columns=options["columns"], ids=ids)
    return plan_of_parts(parts, **options)


def _find_leak(name: str, model: Any, plan: BenchPlan, history: Interactions) -> list[Finding]:
    """Return a finding if a model from a file was trained on rows of the test, as far as the file tells."""
    about = getattr(model, "about", {}).get("data")
    data = about if isinstance(about, Mapping) else {}
    n_learnt, pairs, n_before = data.get("interactions"), data.get("pairs"), len(history.codes)
    learnt = None
    if isinstance(n_learnt, int):
        users, codes = plan.table.ids("user")
        n_others = int((users.code_of(model.user_rows.ids.values) < 0).sum())
        # What the plan leaves out may have been learnt from, and as many rows of each user who is not here as
        # anybody has who is.
        if n_learnt > n_before + plan.n_left_out + n_others * np.bincount(codes).max():
            learnt = f"{n_learnt:,} rows, and {n_before:,} come before the test"
    if learnt is None and pairs is not None:
        for parts in (("test",), ("train", "test"), ("validation", "test"), PARTS):
            if fingerprint(plan.history(*parts))["pairs"] == pairs:
                learnt = f"the rows of {' and '.join(parts)}"
                break
    if learnt is None:
        return []
    todo = "Train it on train and validation of recsys bench FILE --split-to FOLDER."
    return [Finding("error", f"{name} learnt from {learnt}.", todo=todo, area="leakage", name=_LEAK)]


def _find_baselines(
    baselines: Sequence[str] | None,
    models: Mapping[str, Any],
    history: Interactions,
    left_out: dict[str, str],
) -> dict[str, Trainable]:
    """Return the baselines to run, popularity among them, and put why not into `left_out` for the others.

    A model called so is an error.
    """
    names = list(TRAINABLE.load_plugins())
    if baselines is not None:
        names = [BASELINE, *check_choices("baseline", baselines, names)]
    if not isinstance(models, Mapping | None):
        raise came_as("models", models, hint="Pass {name: model}.")
    for name in models or ():
        if not isinstance(name, str):
            raise InputError(f"a model is called {name!r}.", hint="Name models by text: {name: model}.")
        if name in names:
            raise InputError(f"a model is called {name!r}, as a baseline is.", hint="Give it another name.")
    reasons = {name: _why_not(TRAINABLE.find(name), history) for name in names}
    left_out |= {name: why for name, why in reasons.items() if why is not None}
    return {name: TRAINABLE.find(name) for name in names if name not in left_out}


def _why_not(entry: Trainable, history: Interactions) -> str | None:
    """Return why a baseline cannot be trained here; None if it can."""
    if entry.needs_times and history.times is None:
        return "there are no times."
    if entry.extra is not None and not entry.installed:
        return str(MissingExtraError(entry.extra, entry.extra, "it"))
    free = free_memory()
    if entry.memory is None or free is None:
        return None
    n_items = len(_items_of(history))
    needed = entry.memory(n_items)
    if needed <= free / 2:
        return None
    return (
        f"{n_items:,} items would take {needed / 1e9:.1f} GB, and half of the free memory is "
        f"{free / 2e9:.1f} GB."
    )


def _items_of(history: Interactions) -> list[Any]:
    """Return the items that occur."""
    items: list[Any] = history.items.values[np.unique(history.codes)].tolist()
    return items
