"""Cautions: where a result may answer another question than the one that was meant.

A rule is one function. Its docstring says when it speaks and, after "Silent:", which similar cases it
passes over; docs/cautions.md is written from it. Rules look at what was read, when `cautions` is first
asked for, so an evaluation takes no longer for them.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from recsys.errors import Fix, InputError, Phrase
from recsys.evaluation.asked import differences
from recsys.ranks.ranked_truth import in_history
from recsys.ranks.sources import Factors, UsersByItems
from recsys.records.arrays import (
    NO_GROUP,
    Array,
    Ids,
    Interactions,
    Lists,
    Partial,
    cached_property,
    entries_of_cases,
)
from recsys.records.facts import Caution
from recsys.records.registry import Registry

if TYPE_CHECKING:
    from recsys.conventions.decisions import Conventions
    from recsys.evaluation.results import Evaluation
    from recsys.evaluation.run import EvaluationRun

Rule = TypeVar("Rule", bound=Callable[..., "str | None"])
_RATINGS = ("rating", "ratings", "star", "stars")
_TIMES = ("timestamp", "time", "ts", "date", "datetime", "unixtime")
_SCORES = ("score", "scores", "rank", "prediction", "pred", "predicted")
_FEW, _MOST = 0.1, 0.9
_MANY_USERS = 100  # of fewer, shares say little and chance much
_EXPLAIN_CHANCE = ("ids_off_by_one", "training_items_ranked", "truth_already_seen")
_SAMPLE = 2000  # users who are looked at
_FLOAT = re.compile(r"^([+-]?[0-9]+)\.0+$")  # a whole number that is written as a float


class CautionRule(NamedTuple):
    """What a rule is about ("evaluation", "lists" or "comparison"), and the function that finds a sentence.

    `of_counts`: it is a function of the counts of a result alone, which pieces of the users add up to.
    `unless`: the rules that explain what it finds; it is silent where one of them speaks.
    """

    about: str
    find: Callable[..., str | None]
    of_counts: bool = False
    unless: frozenset[str] = frozenset()


@dataclass(frozen=True, eq=False)
class Question:
    """What the rules about one evaluation look at."""

    run: EvaluationRun
    partial: Partial
    conventions: Conventions

    @cached_property
    def relevant(self) -> Interactions:
        """The truth without what is judged and not relevant."""
        truth, border = self.run.truth, self.conventions.relevant_from
        if truth.grades is None:
            return truth
        return truth.kept(truth.grades > 0 if border is None else truth.grades >= border)

    @cached_property
    def history(self) -> tuple[str, Interactions | None]:
        """What users had before, and which argument says so; train does not if a user has several cases."""
        seen, train = self.run.ranking_options.seen, self.run.context.train
        return ("train", train if self.run.cases_are_users else None) if seen is None else ("seen", seen)

    @cached_property
    def sample(self) -> SampledUsers:
        """At most 2,000 users with relevant items; of ready lists, those who have one."""
        truth, lists, users = self.relevant, self.run.ranking.lists, _user_ids(self.relevant)
        if len(lists.codes):
            users = users[Ids(_user_ids(lists)).code_of(users) >= 0]
        sides: list[Any] = [truth.kept(truth.codes < 0)] * 2
        for at, side in enumerate((lists, self.history[1])):
            if side is not None and side.items.kind == truth.items.kind:
                sides[at] = side
        return SampledUsers.of(Ids(users[:: len(users) // _SAMPLE + 1]), sides[0], truth, sides[1])

    @property
    def many_lists(self) -> SampledUsers | None:
        """The same, if there are ready lists of enough users to tell anything from chance."""
        if not len(self.run.ranking.lists.codes) or len(self.run.truth.cases) < _MANY_USERS:
            return None
        return self.sample if self.sample.places.nnz and self.sample.n_users >= _MANY_USERS else None


class SampledUsers(NamedTuple):
    """Users by the items that occur, as sparse matrices: the place of each item, from 1 on."""

    items: Array
    places: Any
    truth: Any
    history: Any

    @classmethod
    def of(cls, users: Ids, *sides: Lists | Interactions) -> SampledUsers:
        """Return the users' entries; an item that a list repeats is at its first place."""
        from scipy.sparse import csr_matrix

        entries = [entries_of_cases(data, users) for data in sides]
        values = [data.items.values[data.codes[at]] for data, (_, at) in zip(sides, entries, strict=True)]
        items, column = np.unique(np.concatenate(values), return_inverse=True)
        columns = np.split(column, np.cumsum([len(v) for v in values])[:-1])
        matrices = []
        for (row, _), own in zip(entries, columns, strict=True):
            place = np.arange(1, len(row) + 1) - np.searchsorted(row, row)
            _, at = np.unique(row * len(items) + own, return_index=True)
            matrices.append(csr_matrix((place[at], (row[at], own[at])), (len(users), len(items))))
        return cls(items, *matrices)

    @property
    def n_users(self) -> int:
        return int(self.places.shape[0])

    @property
    def hits(self) -> Any:
        """The places of the relevant items that are listed."""
        return _common(self.places, self.truth)


def _common(first: Any, second: Any) -> Any:
    """Return the entries of the first that the second has, too."""
    return first.multiply(second != 0).tocsr()


def _common_by_chance(first: Any, second: Any) -> float:
    """Return how many there would be if each row of the first went to some other user."""
    return float(_per_item(first) @ _per_item(second)) / int(first.shape[0])


def _per_item(matrix: Any) -> Array:
    return np.bincount(matrix.indices, minlength=matrix.shape[1]).astype(np.float64)


def _kind_of_lists(places: Any) -> str:
    """Return whether the lists of all users are similar, random, or personal (similar for similar users).

    Similar: two users share at least half of their items on average. Personal: the number they share varies
    more than half as much again as where each item is shown to as many users, drawn at random (then less).
    """
    listed = (places[:1000] > 0).astype(np.float64)
    shared = (listed @ listed.T).toarray()[np.triu_indices(listed.shape[0], 1)]
    if 2 * shared.mean() >= listed.nnz / listed.shape[0]:
        return "similar"
    share = (_per_item(listed) / listed.shape[0]) ** 2
    return "personal" if shared.var() > 1.5 * (share * (1 - share)).sum() else "random"


class Compared(NamedTuple):
    """What the rules about a comparison look at: the evaluations of each model, and the metrics compared."""

    models: Mapping[str, Sequence[Evaluation]]
    metrics: frozenset[str]


CAUTIONS: Registry[CautionRule] = Registry("caution", "recsys.cautions")


def caution_rule(about: str, *unless: str, of_counts: bool = False) -> Callable[[Rule], Rule]:
    """Register a function as a rule; its name is the code.

    Args:
        about: "evaluation" for a function of a Question; "lists" for one of SampledUsers, at least 100 with
            ready lists; "comparison" for one of a Compared.
        *unless: where one of these rules speaks, which are registered before it, this one is silent.
        of_counts: whether it is a function of the counts of an evaluation instead.
    """
    return CAUTIONS.adding(lambda find: CautionRule(about, find, of_counts, frozenset(unless)))


def silenced_codes(cautions: str | Iterable[str] | None) -> frozenset[str]:
    """Return the codes that `cautions=` silences.

    These are all codes for "ignore", those of a list, none for None.
    """
    if cautions is None or cautions == "ignore":
        return frozenset() if cautions is None else frozenset(CAUTIONS.load_plugins())
    if not isinstance(cautions, Iterable):
        raise InputError(
            f"cautions= came as {type(cautions).__name__}.",
            hint='Pass "ignore", or the codes to silence, such as ["k_beyond_lists"].',
        )
    codes = [cautions] if isinstance(cautions, str) else list(cautions)
    for code in codes:
        CAUTIONS.find(code)
    return frozenset(codes)


def find_cautions(
    about: str, evidence: Any, silenced: frozenset[str] = frozenset(), *, of_counts: bool = False
) -> tuple[Caution, ...]:
    """Return what the rules say, in the order they are registered."""
    found: dict[str, Caution] = {}
    for code, rule in CAUTIONS.load_plugins().items():
        of_lists = about == "evaluation" and rule.about == "lists" and not of_counts
        asked = evidence.many_lists if of_lists else evidence
        is_asked = of_lists or (rule.about, rule.of_counts) == (about, of_counts)
        if not is_asked or asked is None or code in silenced or rule.unless & found.keys():
            continue
        sentence = _sentence_of(code, rule, asked)
        if sentence is not None:
            found[code] = Caution.of(code, sentence)
    return tuple(found.values())


def _sentence_of(code: str, rule: CautionRule, evidence: Any) -> str | None:
    """Return what a rule says; one of another package that fails is named in a warning and left out."""
    try:
        return rule.find(evidence)
    except (Exception, SystemExit) as error:
        owner = CAUTIONS.owner_of(rule.find.__module__)
        if owner is None:
            raise
        CAUTIONS.leave_out(f"the caution {code!r} of {owner}", error)
        return None


def unique_cautions(results: Iterable[Iterable[Caution]]) -> tuple[Caution, ...]:
    """Return the cautions of several results, the first of each code."""
    first: dict[str, Caution] = {}
    for cautions in results:
        for one in cautions:
            first.setdefault(one.code, one)
    return tuple(first.values())


def comparison_cautions(
    models: Mapping[str, Sequence[Evaluation]],
    metrics: Iterable[str],
    silenced: frozenset[str] = frozenset(),
) -> tuple[Caution, ...]:
    """Return the cautions about a comparison by some metrics, and those of its models, each sentence once."""
    models_of: dict[Caution, list[str]] = {}
    for name, evaluations in models.items():
        for one in unique_cautions(e.cautions for e in evaluations):
            models_of.setdefault(one, []).append(name)
    of_models = (
        one if len(names) == len(models) else one.about(", ".join(names))
        for one, names in models_of.items()
        if one.code not in silenced
    )
    compared = Compared(models, frozenset(metrics))
    return (*find_cautions("comparison", compared, silenced), *of_models)


@caution_rule("evaluation")
def ids_are_not_rows(question: Question) -> str | None:
    """Ids that count from 1 seem to meet a model whose rows have no ids: every one would be one row off.

    The ids of truth, seen and train together cover at least 90% of the rows of users or of items, but never
    row 0.

    Silent: truth is a matrix, whose ids are row numbers; the model has ids of its own; some id is 0; row
    0 of the factors is 0, the padding of an embedding.
    """
    run = question.run
    if not isinstance(run.ranking, UsersByItems) or run.truth.facts.n_rows is not None:
        return None
    tables = [t for t in (run.truth, run.ranking_options.seen, run.context.train) if t is not None]
    parts = []
    for rows, ids_of in ((run.ranking.user_rows, _user_ids), (run.ranking.item_rows, _item_ids)):
        covered = np.zeros(rows.size, dtype=bool)
        for table in tables if rows.numbered else ():
            if table is not run.context.train or rows.what == "item" or run.cases_are_users:
                covered[rows.row_of(ids_of(table))] = True
        model: Any = run.ranking
        is_padded = isinstance(model, Factors) and not getattr(model, f"{rows.what}s")[0].any()
        if rows.size > 1 and not covered[0] and covered.mean() >= _MOST and not is_padded:
            share = f"{covered.mean():.0%} of the model's {rows.size:,} rows"
            parts.append(f"{rows.what} ids cover {share} but never row 0")
    if not parts:
        return None
    advice = Phrase("give it {Factors.user_ids=} and {Factors.item_ids=}")
    return f"{' and '.join(parts)}: if they count from 1 every row is one off; " + advice


@caution_rule("evaluation")
def k_beyond_lists(question: Question) -> str | None:
    """No list reaches the cut-off of a metric, and the lists were cut: recall@50 of lists of 20 is recall@20.

    At least half of the lists end at the same length although there are more items.

    Silent: some list reaches k; the lists are complete or come from a model that ranks everything; the
    catalogue is smaller than k; the lists end at different lengths; all have the same length of 5 or fewer,
    the places of a page, and k is at most 10.
    """
    run, ranking = question.run, question.run.ranking
    if ranking.complete:
        return None
    sizes = ranking.lists.sizes[ranking.lists.sizes > 0]
    longest = int(sizes.max(initial=0))
    beyond = [r for r in run.requests if r.k is not None and r.k > longest]
    n_alike = int(np.unique(sizes, return_counts=True)[1].max(initial=0))
    if not beyond or n_alike < 2 or 2 * n_alike < len(sizes):
        return None
    if longest <= 5 and n_alike == len(sizes) and max(r.k or 0 for r in beyond) <= 10:
        return None
    n_known = len(np.union1d(_item_ids(ranking.lists), _item_ids(run.truth)))
    if ranking.n_items is None and longest >= n_known:
        return None
    if ranking.n_items is not None and ranking.n_items < max(longest + 1, min(r.k or 0 for r in beyond)):
        return None
    names = ", ".join(map(str, beyond[:3])) + (f" and {len(beyond) - 3} more" if len(beyond) > 3 else "")
    look = "looks" if len(beyond) == 1 else "look"
    return f"no list is longer than {longest:,}, so {names} {look} no further; make longer lists, or lower k"


@caution_rule("evaluation")
def codes_of_several_items(question: Question) -> str | None:
    """A hit on a code is not a hit on an item: at least 10% of the entries listed stand for several items.

    Scored as codes, lists gain by every item that shares one; all items on one code would hit always.

    Silent: each entry stands for one item, as chunks do; fewer entries stand for several.
    """
    run, facts = question.run, question.run.ranking.lists.facts
    share = (facts.entries_of_several or 0) / (facts.entries or 1)
    if run.of_entries is None or share < _FEW:
        return None
    name, value = next(iter(run.of_entries.values(question.conventions).items()))
    return (
        f"{share:.0%} of the listed entries stand for several items: of entries {name} would be {value:.3f}, "
        "which is not comparable with that of lists of items"
    )


@caution_rule("evaluation")
def relevant_from_unset(question: Question) -> str | None:
    """Every star rating above 0 counts as relevant, one star too, and this was not chosen.

    The truth has a column called rating or stars with three values or more, and neither relevant_from nor a
    preset was chosen. From 100 users on two values are enough, and grades of any name, or of none, are taken
    for stars: the greatest is 5, the least 2 or less, all are halves, and the mean is at least 2.5.

    Silent: counts, which are mostly 1; qrels; relevant_from is set, also as a parameter of the metrics; a
    preset.
    """
    from recsys.conventions.presets import preset_name

    truth, conventions = question.run.truth, question.conventions
    if truth.grades is None or not len(truth.grades):
        return None
    column = (truth.facts.columns or {}).get("grade")
    is_rating = column is not None and _plain_name(column) in _RATINGS
    are_many = np.count_nonzero(truth.sizes) >= _MANY_USERS
    if not is_rating and not (are_many and _look_like_stars(truth.grades)):
        return None
    chosen = [r.conventions(conventions).relevant_from is not None for r in question.run.requests]
    if all(chosen) or preset_name(conventions) not in (None, "default"):
        return None
    values = np.unique(truth.grades[truth.grades > 0])
    if len(values) < (2 if are_many else 3):
        return None
    high = values[np.searchsorted(values, 0.8 * values[-1])]
    share = np.count_nonzero(truth.grades >= high) / np.count_nonzero(truth.grades > 0)
    of = "" if column is None else f" of {column!r}"
    fewer = Phrase("{relevant_from=} would leave {:.0%} of them", share, relevant_from=float(f"{high:g}"))
    return f"grades {values[0]:g} to {values[-1]:g}{of} all count as relevant; " + fewer


def _look_like_stars(grades: Array) -> bool:
    low, high = grades.min(), grades.max()
    return bool(0 < low <= 2 and high == 5 and grades.mean() >= 2.5 and not (2 * grades % 1).any())


@caution_rule("evaluation")
def row_order_as_rank(question: Question) -> str | None:
    """The order of the lists' rows is taken as the ranking, and does not look like one.

    The lists are a table without rank and score, and the rows of different users interleave, or the rows of
    every user follow the item ids.

    Silent: each user's rows are together in another order (a note says so); rank or score is there; dicts
    and arrays.
    """
    lists = question.run.ranking.lists
    if lists.facts.arrangement is None:
        return None
    why = "the rows of different users interleave" if lists.facts.arrangement == "interleaved" else ""
    if not why:
        rises = np.append(lists.codes[1:] > lists.codes[:-1], True)
        rises[lists.indptr[1:][lists.sizes > 0] - 1] = True
        # Chance puts a list of n in order once in n! times; here it must be rarer than 1 in 1,000.
        if not rises.all() or sum(math.lgamma(size + 1) for size in lists.sizes.tolist()) < math.log(1000):
            return None
        why = "the rows of every user follow the item ids"
    return f"the lists have no rank and no score, so their rows are the ranking, yet {why}; add such a column"


@caution_rule("evaluation")
def lists_and_truth_swapped(question: Question) -> str | None:
    """The lists have a column of ratings or times, and the truth has scores or ranks, or the same rows.

    Or the truth has scores or ranks and is longer than the lists of any user, which have neither.

    Silent: only one of the two is so; the lists have scores or ranks, too.
    """
    truth, lists = question.run.truth, question.run.ranking.lists
    if not len(lists.codes):
        return None
    in_truth = [n for n in truth.facts.column_names if _plain_name(n) in _SCORES]
    in_lists = [n for n in lists.facts.column_names if _plain_name(n) in _RATINGS + _TIMES]
    has_order = any(_plain_name(n) in _SCORES for n in lists.facts.column_names)
    are_short = lists.facts.arrangement is not None and lists.sizes.max() < truth.sizes.min()
    if in_truth and not has_order and (in_lists or are_short):
        has = repr(in_lists[0]) if in_lists else "neither score nor rank"
        return f"the truth has a column {in_truth[0]!r} and the lists have {has}: are they swapped?"
    if in_lists and question.partial.counts["found"] == len(truth.codes) == len(lists.codes):
        return f"lists and truth hold the same rows, with {in_lists[0]!r}: was one file given twice?"
    return None


@caution_rule("evaluation")
def few_ids_shared(question: Question) -> str | None:
    """Hardly any user or item matched.

    Fewer than 10% of the users of the truth have lists, from 100 users on fewer than half; fewer than 2% of
    the items of either side occur on the other, from 100 users on; or text ids would match after strip(), in
    Unicode's NFC, or as whole numbers ("7" and "7.0").

    Silent: a truth of few of the users that have lists; lists of a few popular items that all occur in the
    truth, or a small truth whose items are shown; users without lists are left out (no_list="skip").
    """
    run = question.run
    ranking = run.ranking
    parts = []
    are_many = len(_user_ids(run.truth)) >= _MANY_USERS
    for what, ids_of in (("user", _user_ids), ("item", _item_ids)):
        known = ids_of(run.truth)
        rows = getattr(ranking, f"{what}_rows", None)
        shown = ids_of(ranking.lists) if rows is None or rows.numbered else rows.ids.values
        if len(known) == 0 or len(shown) == 0:
            continue
        shared = Ids(shown).code_of(known) >= 0
        is_few = shared.mean() < (0.5 if are_many else _FEW) and question.conventions.no_list != "skip"
        if what == "item":  # lists of popular items hold few of the truth's, and are what they should be
            most = min(len(known), len(shown)) if are_many else 0
            is_few = most >= 50 and shared.sum() < 0.02 * most
        if is_few:
            of = f"{shared.sum():,} of the {len(known):,} {what}s of the truth"
            parts.append(f"only {of} occur among the {len(shown):,} of the lists")
        if known.dtype == object and not _are_plain([*known.tolist(), *shown.tolist()]):
            plain = {_plain_id(i): i for i in shown[Ids(known).code_of(shown) < 0].tolist()}
            pairs = [(i, plain[_plain_id(i)]) for i in known[~shared].tolist() if _plain_id(i) in plain]
            if pairs:
                one, other = pairs[0]
                example = f"such as {one!r} and {other!r}"
                if _FLOAT.fullmatch(one) or _FLOAT.fullmatch(other):
                    advice = Phrase("read files with {ids='int'}")
                    parts.append(f"{what} ids are written as floats, {example}: " + advice)
                else:
                    if one.strip() != other.strip():  # they look the same
                        example += f", which differ in their Unicode form ({one!a} and {other!a})"
                    parts.append(f"{what} ids differ only in blanks or in how letters are coded, {example}")
    return "; ".join(parts) or None


@caution_rule("evaluation")
def training_items_ranked(question: Question) -> str | None:
    """What users had already takes places: a model has train= without seen=, or ready lists show it.

    At least 20% of what ready lists show are items their users have in seen or train; of fewer than 100
    users, at least 90%.

    Silent: for a model, seen= is given, also as seen={} (nothing is left out on purpose), or eligible=; train
    is missing (a note says so); at least 10% of the relevant items are repeats, too.
    """
    run = question.run
    if not len(run.ranking.lists.codes):
        chosen = run.ranking_options.seen is not None or run.ranking_options.eligible is not None
        if chosen or run.context.train is None:
            return None
        return Phrase(
            "items of train are ranked too and take places; {seen=} says what is left out, {} that none is",
            Fix("seen", {}),
        )
    lists, (name, _) = question.sample, question.history
    share = _common(lists.places, lists.history).nnz / max(lists.places.nnz, 1)
    repeats = _common(lists.truth, lists.history).nnz / max(lists.truth.nnz, 1)
    if share < (0.2 if lists.n_users >= _MANY_USERS else _MOST) or repeats >= _FEW:
        return None
    return (
        f"{share:.0%} of the places in the lists hold items that their users have in {name}; leave them out"
    )


@caution_rule("evaluation")
def truth_already_seen(question: Question) -> str | None:
    """At least half of the relevant items were seen by their users before, so no list can hold them.

    They are in seen=, which is left out of the ranking, and count as misses. Or they are in train=, of 100
    users or more, and ready lists hold none of its items, not even by chance; or train is the truth.

    Silent: fewer than half; lists that show them all the same; seen_truth="drop" takes them out of the truth.
    """
    run, truth, seen = question.run, question.relevant, question.run.ranking_options.seen
    if seen is None:
        return _truth_in_train(question)
    if not question.partial.counts.get("seen_truth", 0) or question.conventions.seen_truth != "miss":
        return None
    lost = in_history(truth, seen)
    lost &= ~in_history(truth, run.ranking.lists)
    n_lost, n_relevant = int(lost.sum()), len(lost)
    if not n_lost or 2 * n_lost < n_relevant:
        return None
    why = "no list shows them" if len(run.ranking.lists.codes) else "seen items are not ranked"
    return (
        f"{n_lost:,} of {n_relevant:,} relevant items were seen by their users before and {why}, so these "
        "count as misses; leave repeats out of the test, or rank what was seen, too"
    )


def _truth_in_train(question: Question) -> str | None:
    """That the relevant items are in train, whose items the lists leave out, or that they are all of it."""
    sample, (_, train) = question.sample, question.history
    n_relevant, n_known = sample.truth.nnz, _common(sample.truth, sample.history).nnz
    share = f"{n_known / max(n_relevant, 1):.0%} of the relevant items are in train"
    if train is None or sample.n_users < _MANY_USERS or 2 * n_known < n_relevant:
        return None
    if n_known >= _MOST * n_relevant and len(question.relevant.codes) >= _MOST * len(train.codes):
        return f"{share}, and little else is: is train the test?"
    left_out = _common_by_chance(sample.places, sample.history) >= 10
    if not left_out or _common(sample.places, sample.history).nnz:
        return None
    return f"{share}, whose items the lists leave out: is the truth that of another split?"


@caution_rule("lists")
def ids_off_by_one(sample: SampledUsers) -> str | None:
    """With whole-number item ids one higher or one lower, ready lists would find far more.

    They would find at least twice as many relevant items, by six standard errors, and half as many again as
    lists of other users would.

    Silent: fewer than 100 users have a list and relevant items; ids of other kinds; the same list for
    everybody.
    """
    try:
        numbers = sample.items.astype(np.int64)
    except (ValueError, OverflowError):
        return None
    order, n_hits = np.argsort(numbers, kind="stable"), sample.hits.nnz
    for step, words in ((1, "higher"), (-1, "lower")):
        at = Ids(numbers[order]).code_of(numbers + step)
        moved = _common(sample.truth[:, order[at]], sample.truth[:, order[at]].multiply(at >= 0))
        n_moved, by_chance = _common(sample.places, moved).nnz, _common_by_chance(sample.places, moved)
        if n_moved >= max(2 * n_hits, 1.5 * by_chance) and n_moved - n_hits > 6 * math.sqrt(n_moved + n_hits):
            counts = f"{n_hits:,} relevant items, and {n_moved:,} if their item ids were one {words}"
            return f"the lists hold {counts}: do one side's ids count from 0 and the other's from 1?"
    return None


@caution_rule("lists")
def truth_leads_every_list(sample: SampledUsers) -> str | None:
    """Every list begins with the relevant items: the lists were made from the truth.

    Chance would do that less than once in a million times.

    Silent: fewer than 100 users have a list and relevant items; a user is without; all items are relevant.
    """
    n_hits, n_relevant = np.diff(sample.hits.indptr), np.diff(sample.truth.indptr)
    leading = np.minimum(n_relevant, np.diff(sample.places.indptr))
    if (n_hits < leading).any() or (sample.hits.data > np.repeat(leading, n_hits)).any():
        return None
    place = np.concatenate([np.arange(n) for n in leading])
    chances = (np.repeat(n_relevant, leading) - place) / (len(sample.items) - place)
    if np.log10(chances).sum() > -6:
        return None
    return f"all {sample.n_users:,} lists begin with the relevant items: were they made from the truth?"


@caution_rule("lists", *_EXPLAIN_CHANCE)
def worse_than_chance(sample: SampledUsers) -> str | None:
    """Ready lists find less than random ones would, or find it at their ends, as if in reverse.

    More of the relevant items they hold are in the last half of the longest list than in the half before, in
    its last third than in the third before, and in its last quarter than in the quarter before; chance would
    do so at most once in a million, a thousand and a hundred times. Or they hold fewer than half as many as
    random lists of the items shown, and by chance would hold so few once in a million times.

    Silent: fewer than 100 users have a list and relevant items; lists that begin with other things than a
    model's best, such as seen or advertised items; lists of items that few want, as of a shelf of rare or new
    ones; another caution explains it (ids that are off by one, training items, a truth of training items).
    """
    from scipy.special import bdtr, pdtr

    hits, sizes = sample.hits, np.diff(sample.places.indptr)
    ends = [_at_the_ends(hits.data, sizes.max(), parts) for parts in (2, 3, 4)]
    if all(bdtr(n[0], sum(n), 0.5) < rare for n, rare in zip(ends, (1e-6, 1e-3, 1e-2), strict=True)):
        where = f"{ends[0][1]:,} in the last half of the lists and {ends[0][0]:,} in the half before"
        return f"of the relevant items are {where}: are the scores distances, or the ranks in reverse?"
    shown = _per_item(sample.places) > 0
    by_chance = float(sizes @ ((sample.truth != 0) @ shown.astype(np.int64))) / shown.sum()
    if 2 * hits.nnz >= by_chance or pdtr(hits.nnz, by_chance) > 1e-6:
        return None
    counts = f"{hits.nnz:,} relevant items, and random lists would hold {by_chance:,.0f}"
    return f"the lists hold {counts}: is their order reversed, or is the truth what they leave out?"


def _at_the_ends(places: Array, length: int, parts: int) -> tuple[int, int]:
    """Return how many places are in the last but one part of lists of this length, and in the last."""
    size = max(length // parts, int(length > 1))
    late, both = (int(np.count_nonzero(places > length - n * size)) for n in (1, 2))
    return both - late, late


@caution_rule("lists", *_EXPLAIN_CHANCE, "worse_than_chance")
def hits_as_by_chance(sample: SampledUsers) -> str | None:
    """Personal ready lists find no more than those of other users would, as if one side had other ids.

    Users differ in their lists and similar users do not, so a model made them; the most frequent relevant
    items would find 50 or more; and the lists find what chance does, within three standard errors, or at
    most 1.4 times what random lists of the items shown do.

    Silent: fewer than 100 users have a list and relevant items; random lists; the same list for everybody;
    relevant items that no list shows; another caution explains it, or the lists are worse than chance.
    """
    hits, shown = sample.hits.nnz, _per_item(sample.places) > 0
    truth = _common(sample.truth, sample.truth.multiply(shown))
    some, rest = np.array_split(np.random.default_rng(0).permutation(sample.n_users), 2)
    frequent = np.argsort(-_per_item(truth[some]), kind="stable")[: sample.places.nnz // sample.n_users]
    others = _common_by_chance(sample.places, truth)
    at_random = sample.places.nnz * truth.nnz / sample.n_users / shown.sum()
    if 2 * _per_item(truth[rest])[frequent].sum() < 50 or _kind_of_lists(sample.places) != "personal":
        return None
    if hits > max(others + 3 * math.sqrt(others), 1.4 * at_random):
        return None
    counts = f"{hits:,} relevant items of their users, and those of other users would hold {others:,.0f}"
    return f"the lists hold {counts}: do both sides use the same codes for users and items?"


@caution_rule("lists", "truth_leads_every_list", "worse_than_chance")
def everybody_has_a_hit(sample: SampledUsers) -> str | None:
    """Every user has a hit, and that is not the model's doing: the lists or the users were selected.

    Every relevant item is in its list, and what else the lists hold is drawn at random: only sampled
    candidates were ranked. Or half of the lists have the same greatest length, and so many users have their
    first hit near its end that others must have theirs beyond: they were left out. That no user misses would
    be chance at most once in a thousand times, if no user's chance of a first hit grows along the list.

    Silent: fewer than 100 users have a list and relevant items; the lists hold 90% of all items or more, and
    where users seem to be left out, half; a model whose first hits are further up, even if users without a
    hit are left out; candidates that were sampled, then cut or with other items added; another caution
    explains it.
    """
    hits, sizes = sample.hits, np.diff(sample.places.indptr)
    listed = sample.places.nnz / np.prod(sample.places.shape)
    if not np.diff(hits.indptr).all() or listed > _MOST:
        return None
    others = sample.places - hits
    others.eliminate_zeros()
    if hits.nnz == sample.truth.nnz and _kind_of_lists(others) == "random":
        what = f"all relevant items of {sample.n_users:,} users, and others at random"
        return f"the lists hold {what}: values of sampled candidates are far too high; rank all items"
    first = np.minimum.reduceat(hits.data, hits.indptr[:-1])
    are_cut = 2 * np.count_nonzero(sizes == sizes.max()) >= len(first)
    if not are_cut or listed > 0.5 or _chance_of_late_hits(first, sizes.max()) > 1e-3:
        return None
    n_late = int(np.count_nonzero(2 * first > sizes.max()))
    who = f"all {sample.n_users:,} users have a hit, {n_late:,} of them only in the last half of their list"
    return f"{who}: users without a hit seem to be left out, which raises every value"


def _chance_of_late_hits(first: Array, length: int) -> float:
    """Bound the chance that everybody has a hit, and as many as here their first one near the end.

    Let p be the chance that a user who has no hit before the last 1/q of the list finds one there. If such
    chances do not grow along the list, the user is this late with probability (1 - p)^(q - 1) p at most, so
    that Chernoff's bound of the number who are, with the best p of each, holds for users of any kind.
    """
    z, parts, chance = np.geomspace(1.001, 1e6, 500), (4, 5, 10), 1.0
    for q in parts:
        size = int(length) // q
        n_users, n_late = (np.count_nonzero(first > length - n * size) for n in (q, 1))
        per_user = np.log1p(((q - 1) * (z - 1) / (q * z)) ** (q - 1) * (z - 1) / q)
        chance = min(chance, math.exp((n_users * per_user - n_late * np.log(z)).min()))
    return len(parts) * chance


@caution_rule("evaluation")
def pairs_read_as_lists(question: Question) -> str | None:
    """A history that came as pairs [[user, item], …] was read as the items of users 0, 1, 2 and so on.

    The first members of the pairs in train or seen are users of the truth, and the row numbers are not.

    Silent: the row numbers are users of the truth; tables, dicts and matrices.
    """
    if not question.run.pairs:
        return None
    return (
        f"{' and '.join(question.run.pairs)} came as pairs, and each was read as the items of user 0, 1, 2, "
        "…; pass a table with a column of users and one of items, or a mapping from users to their items"
    )


@caution_rule("evaluation", of_counts=True)
def groups_left_out(counts: Mapping[str, int]) -> str | None:
    """by= is given, and some users or relevant items have no group.

    Such users are a group of their own, such items are in no row of the groups.

    Silent: everybody has a group.
    """
    for name, total, what, where in (
        ("users_without_group", "cases", "users", f"are the group {NO_GROUP!r}"),
        ("items_without_group", "judged", "relevant items", "are in the overall values only"),
    ):
        if counts.get(name):
            return f"{counts[name]:,} of {counts[total]:,} {what} have no group and {where}"
    return None


@caution_rule("comparison")
def different_questions(compared: Compared) -> str | None:
    """Two results have another truth for the same users, or share too few of their users.

    They share fewer than half of the users with relevant items, or fewer than 90% of 100 users or more: those
    who are in both may be the easy ones.

    Silent: the same truth for most of the same users; lists for users without truth.
    """
    models = compared.models
    baseline, *others = models
    for name in others:
        n_users, n_shared, n_other = _count_truths(models[baseline], models[name])
        if n_other:
            return f"{n_other:,} of {n_shared:,} users have another truth in {name} than in {baseline}"
        if n_shared < (_MOST if n_users >= _MANY_USERS else 0.5) * n_users:
            of = f"{n_shared:,} of {n_users:,} users"
            return f"{baseline} and {name} share {of}, and only these are compared"
    return None


@caution_rule("comparison")
def catalogues_differ(compared: Compared) -> str | None:
    """A metric of the catalogue, such as coverage, is compared over catalogues of different sizes.

    Each model's catalogue was then made of what occurred in its own lists, so that a model which shows more
    items is measured against more.

    Silent: no such metric is compared; the catalogues have the same size.
    """
    sizes: dict[str, int] = {}
    named: dict[str, None] = {}
    for name, evaluations in compared.models.items():
        for evaluation in evaluations:
            if evaluation.partial.catalogue is not None:
                sizes.setdefault(name, evaluation.partial.catalogue.n)
            of_catalogue = [str(r) for r in evaluation.requests if r.metric.kind == "catalogue"]
            named |= dict.fromkeys(metric for metric in of_catalogue if metric in compared.metrics)
    if not named or len(set(sizes.values())) < 2:
        return None
    has = ", ".join(f"{name} {n:,}" for name, n in sizes.items())
    advice = Phrase("evaluate all models with the same {catalogue=}")
    return (
        f"catalogues differ ({has} items), so that {', '.join(named)} would differ for the same lists; "
        + advice
    )


def _difference(compared: Compared, part: str) -> str | None:
    """Return where a part of the question of a model differs from that of the first one, run by run."""
    first, *others = compared.models.items()
    for name, evaluations in others:
        for one, other in zip(first[1], evaluations, strict=False):
            found = differences(one.asked, other.asked, (first[0], name))
            if part in found:
                return found[part].sentence
    return None


@caution_rule("comparison")
def candidates_differ(compared: Compared) -> str | None:
    """Models ranked other candidates: the whole catalogue, `eligible=`, what `exclude=` left, or a sample.

    Among fewer candidates the same model has higher values. A gate refuses such results.

    Silent: ready lists, and scores of -inf, which do not say what they were chosen from; other eligible or
    excluded items of another test.
    """
    return _difference(compared, "candidates")


@caution_rule("comparison")
def ranked_items_differ(compared: Compared) -> str | None:
    """Models ranked all their items, and these are not the same.

    Silent: ready lists; the items of another test.
    """
    return _difference(compared, "items")


@caution_rule("comparison")
def seen_differs(compared: Compared) -> str | None:
    """What users had before was left out of one ranking and not of the other, or seen= held other rows.

    A gate refuses the former.

    Silent: ready lists, and scores of -inf, which may leave it out themselves; other rows for another test.
    """
    return _difference(compared, "seen")


@caution_rule("comparison")
def trains_differ(compared: Compared) -> str | None:
    """The same truth was evaluated with different training data (`train=`).

    Silent: train= was given for one of the two only; the truth is another as well.
    """
    return _difference(compared, "train")


@caution_rule("comparison")
def weights_differ(compared: Compared) -> str | None:
    """The users of two results, or their relevant items, were weighed in different ways.

    Silent: the same weights; weights of other users.
    """
    return _difference(compared, "weights")


@caution_rule("comparison")
def lists_are_missing(compared: Compared) -> str | None:
    """One model has no list for many users that another has lists for: at least 10% more of 100 or more.

    Silent: every model lacks about as many.
    """
    lacking = {
        name: _total(evaluations, "without_list") / max(1, _total(evaluations, "cases"))
        for name, evaluations in compared.models.items()
    }
    most, least = (choose(lacking, key=lacking.__getitem__) for choose in (max, min))
    if lacking[most] - lacking[least] < _FEW or _total(compared.models[most], "cases") < _MANY_USERS:
        return None
    return f"{most} has no list for {lacking[most]:.0%} of its users, and {least} for {lacking[least]:.0%}"


def are_pairs(data: Any, users: Array) -> bool:
    """Return whether most first members of the rows [user, item] are users and few of the row numbers are."""
    if isinstance(data, np.ndarray):
        firsts = set(data[:, 0].tolist()) if data.ndim == 2 and data.shape[1] == 2 else set()
    else:
        of_two = all(isinstance(row, list | tuple) and len(row) == 2 for row in data)
        firsts = {row[0] for row in data if isinstance(row[0], int | str | np.integer)} if of_two else set()
    known = set(users.tolist())
    n_rows = sum(row in known for row in range(len(data)))
    return bool(firsts) and n_rows < _FEW * len(data) and 2 * len(firsts & known) >= len(firsts)


def _total(evaluations: Sequence[Evaluation], name: str) -> int:
    """Return a count of all runs of a model."""
    return sum(e.counts.get(name, 0) for e in evaluations)


def _user_ids(data: Interactions | Lists) -> Array:
    """Return the users that have at least one row."""
    return data.cases.values[data.sizes > 0]


def _item_ids(data: Interactions | Lists) -> Array:
    """Return the items that occur."""
    occurs = np.zeros(len(data.items), dtype=bool)
    occurs[data.codes] = True
    return data.items.values[occurs]


def _plain_name(name: str) -> str:
    """Return a column's name without case, underscores and RecBole's type."""
    return name.partition(":")[0].strip().lower().replace("_", "")


def _are_plain(names: Sequence[str]) -> bool:
    """Return whether no name has blanks, letters that can be coded in several ways, or may be a float."""
    text = "".join(names)
    return text.isascii() and len(text.split(None, 1)) <= 1 and text == text.strip() and ".0" not in text


def _plain_id(name: str) -> str:
    return _FLOAT.sub(r"\1", unicodedata.normalize("NFC", name).strip())


class _Truths(NamedTuple):
    """Cases in ascending order, and the key of the truth of each; 0 where it is not known."""

    ids: Array
    keys: Array

    @classmethod
    def of(cls, ids: Array, keys: Array | None) -> _Truths:
        """Return those that have truth; others are in no mean of relevant items."""
        if keys is None:
            return cls(ids, np.zeros(len(ids), dtype=np.uint64))
        return cls(ids[keys != 0], keys[keys != 0])

    @classmethod
    def of_runs(cls, evaluations: Sequence[Evaluation]) -> _Truths:
        """Return those of all runs of a model; of a case in several, the last."""
        runs = [cls.of(e.per_case.ids, e.truth_keys) for e in evaluations]
        if len(runs) == 1:
            return runs[0]
        ids, keys = (np.concatenate(columns[::-1]) for columns in zip(*runs, strict=True))
        known, at = np.unique(ids, return_index=True)
        return cls(known, keys[at])

    def compare(self, other: _Truths) -> tuple[int, ...]:
        """Return how many cases each has and both have, and how many of these have another truth there."""
        at = Ids(other.ids).code_of(self.ids)
        here, there = self.keys[at >= 0], other.keys[at[at >= 0]]
        n_other = np.count_nonzero((here != there) & (here != 0) & (there != 0))
        return len(self.ids), len(other.ids), len(here), int(n_other)


def _count_truths(first: Sequence[Evaluation], second: Sequence[Evaluation]) -> tuple[int, int, int]:
    """Return how many cases with truth the larger of two models has.

    Also return how many both have, and how many of these with another truth.
    """
    folders: list[Any] = [getattr(e.per_case, "folder", None) for e in (*first, *second)]
    if len(folders) == 2 and None not in folders:
        from recsys.evaluation.files.rows_in_step import rows_in_step

        counts = np.zeros(4, dtype=np.int64)
        for pieces in rows_in_step(dict(zip(("first", "second"), folders, strict=True)), ()):
            here, there = (_Truths.of(piece.rows.ids, piece.truth_keys) for piece in pieces.values())
            counts += here.compare(there)
    else:
        counts = np.array(_Truths.of_runs(first).compare(_Truths.of_runs(second)))
    n_here, n_there, n_shared, n_other = counts.tolist()
    return max(n_here, n_there), n_shared, n_other
