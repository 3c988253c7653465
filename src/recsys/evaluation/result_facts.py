"""What is known about a result besides its numbers, as records; `result.notes` and the footnotes show them.

What depends on a fact reads its field, never the note or the line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from recsys.conventions.decisions import Conventions
from recsys.display.number_words import plural
from recsys.ranks.rankings import TrainingItems
from recsys.records.arrays import Catalogue
from recsys.records.read_facts import NOTHING_READ, Facts, ReadFacts

_TREATMENTS = {
    "skip": "left out",
    "zero": "count as 0",
    "unjudged": "left out if nothing is judged, else count as 0",
    "empty": "count as an empty list",
}
_REPEATS = {
    "first": ": each counts at its first place, and its repeats take places as misses",
    "all": ": each counts at all its places",
    "collapse": ": each stays at its first place, and the lists close up",
}
_COUNT_NOTES = {
    "repeated_items": "item|items listed more than once",
    "repeated_rows": "repeated truth row|rows merged",
    "conflicting_grades": "pair|pairs with conflicting grades (the highest was kept)",
    "unknown_items": "judged item|items outside the catalogue",
    "seen_truth": "judged item|items the users had already seen",
    "negative_grades": "item|items of a negative grade read as unjudged",
    "not_candidates": "judged item|items that is|are not among the candidates"
    " (seen, ineligible, unknown or not ranked)",
    "without_vector": "item|items shown that has|have no vector",
    "without_facts": "item|items shown that the items table says nothing about",
    "positive_among_negatives": "relevant item|items that is|are also among its|their own negatives",
    "repeated_negatives": "negative|negatives that its|their case held already",
    "tied": "judged item|items found that shares|share its|their score with another item",
}
_RATING_COUNT_NOTES = {
    "clipped": "prediction|predictions moved to the border of the scale",
    "outside_scale": "prediction|predictions outside the scale",
    "certain_and_wrong": "prediction|predictions of exactly 0 or 1 that was|were wrong (moved by 2^-52)",
    "without_prediction": "rating|ratings without a prediction (left out)",
    "without_rating": "prediction|predictions without a rating (left out)",
}
# Files hold these sentences: they stay as they are.
_SEEN = "no seen items were given, so training items are ranked too"
_TRAINING_ITEMS: dict[TrainingItems, str] = {
    "ranked": _SEEN,
    "with a score": f"{_SEEN}, unless their score is -inf",
}


class Watched(NamedTuple):
    """What blocks of users showed of one metric, with a verdict where two models were compared."""

    value: float
    low: float
    high: float
    method: str
    verdict: str | None = None


@dataclass(frozen=True, kw_only=True)
class StopFacts:
    """How far an evaluation went that stopped when its question was answered.

    Attributes:
        n_seen, n_total: the users that were evaluated, and all of them.
        confidence: of all intervals together.
        about: whom the answer is about.
        reason: why it stopped; None in a race, whose models stop together.
        intervals: {metric: what was found of it}; of a race, they are those of `Race`.
        says: all of it in sentences, one on each line.
    """

    n_seen: int
    n_total: int
    confidence: float
    about: str
    reason: str | None = None
    intervals: Mapping[str, Watched] = field(default_factory=dict)
    says: str = ""

    @property
    def share_saved(self) -> float:
        """The share of the users that did not have to be evaluated."""
        return 1.0 - self.n_seen / self.n_total if self.n_total else 0.0

    @property
    def seen(self) -> str:
        """How many users were evaluated."""
        return f"{self.n_seen:,} of {self.n_total:,} users ({self.share_saved:.1%} of the work saved)"

    def to_notes(self) -> dict[str, Any]:
        """Return the facts as JSON values."""
        intervals = {name: _known(watched._asdict()) for name, watched in self.intervals.items()}
        return _known({**vars(self), "share_saved": self.share_saved, "intervals": intervals or None})

    @classmethod
    def of_notes(cls, notes: Mapping[str, Any]) -> StopFacts:
        """Return the facts that `to_notes` wrote."""
        facts = {name: fact for name, fact in notes.items() if name != "share_saved"}
        intervals = {name: Watched(**row) for name, row in notes.get("intervals", {}).items()}
        return cls(**facts | {"intervals": intervals})


class IdKinds(NamedTuple):
    """Whether the ids of users and items are "int" or "str"."""

    user: str
    item: str


@dataclass(frozen=True, kw_only=True)
class ResultFacts(Facts):
    """What was noticed while a result was made; None where it does not apply or is not known.

    Attributes:
        lists, truth: what their readers noticed; lists that a model made have nothing.
        ratings: what was noticed of a table of predicted and actual numbers.
        ids: the kinds of the ids.
        backend: that the chosen one does not match ready lists.
        catalogue_of: the tables whose items are the catalogue, where it was not given.
        training_items: where no seen items were given: all were "ranked", or those "with a score".
        sampled: that each positive was ranked among sampled candidates, and how many.
        stopped: how far the evaluation went, if it could stop early.
        n_users: users of the cases, where these are not users and not kept.
        of_entries: {metric: its value if the entries of the lists were the items}, where several items have
            one; not known of all pieces of the users together.
    """

    lists: ReadFacts | None = None
    truth: ReadFacts | None = None
    ratings: ReadFacts = NOTHING_READ
    ids: IdKinds | None = None
    backend: str | None = None
    catalogue_of: tuple[str, ...] | None = None
    training_items: TrainingItems | None = None
    sampled: str | None = None
    stopped: StopFacts | None = None
    n_users: int | None = None
    of_entries: Mapping[str, float] | None = None

    @property
    def stopped_early(self) -> bool:
        """Whether some users did not have to be evaluated."""
        return self.stopped is not None and self.stopped.share_saved > 0

    def joined(self, other: ResultFacts) -> ResultFacts:
        """Return those of both parts; no part knows the values of all entries."""
        return replace(super().joined(other), of_entries=None)

    def to_notes(self) -> dict[str, Any]:
        """Return the facts by the names that `result.notes` and result files have for them."""
        facts: dict[str, Any] = {**vars(self), "seen": self._seen}
        del facts["ratings"], facts["training_items"]
        for name, fact in facts.items():
            if isinstance(fact, ReadFacts | StopFacts):
                facts[name] = fact.to_notes()
        facts["ids"] = None if self.ids is None else self.ids._asdict()
        return self.ratings.to_notes() | _known(facts)

    @property
    def _seen(self) -> str | None:
        return None if self.training_items is None else _TRAINING_ITEMS[self.training_items]

    @classmethod
    def of_notes(cls, notes: Mapping[str, Any]) -> ResultFacts:
        """Return the facts that `to_notes` wrote; a TypeError or a ValueError says what is not one."""
        records: dict[str, Any] = {"lists": ReadFacts, "truth": ReadFacts, "stopped": StopFacts}
        facts = {name: kind.of_notes(notes[name]) for name, kind in records.items() if name in notes}
        facts |= {name: notes.get(name) for name in ("backend", "sampled", "n_users", "of_entries")}
        kinds: dict[Any, Any] = {sentence: kind for kind, sentence in _TRAINING_ITEMS.items()}
        return cls(
            ratings=ReadFacts.of_notes(notes),
            ids=IdKinds(**notes["ids"]) if "ids" in notes else None,
            catalogue_of=tuple(notes["catalogue_of"]) if "catalogue_of" in notes else None,
            training_items=kinds.get(notes.get("seen")),
            **facts,
        )

    def lines(self, conventions: Conventions) -> list[str]:
        """Return what a reader of the numbers must know of them."""
        read = self.lists or NOTHING_READ
        lines = [f"lists {read.order}"] if read.order else []
        if read.users_with_gaps is not None:
            what = "with empty places" if conventions.rank_gaps == "kept" else "closed up"
            who = plural(read.users_with_gaps, "user|users leaves|leave")
            lines.append(f"lists {what} where the ranks of {who} places out")
        lines += ["lists in the order of their rows"] if read.arrangement == "grouped" else []
        if read.entries is not None:
            parts = [
                (read.entries_of_several, "of several items"),
                (read.entries_without_item, "without an item"),
                (read.entries_repeated, "repeated"),
                (read.entries_used_up, "with nothing left that is not above or seen"),
            ]
            kinds = "; ".join(f"{n:,} {words}" for n, words in parts if n)
            lines.append(plural(read.entries, "entry|entries listed") + (f": {kinds}" if kinds else ""))
        if self.of_entries:
            values = ", ".join(f"{name} {value:.4f}" for name, value in self.of_entries.items())
            lines.append(f"if entries were the items: {values}")
        lines += self.stopped.says.splitlines() if self.stopped else []
        return [*lines, *filter(None, (self.sampled, self._seen, self.backend))]


def _known(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: fact for name, fact in facts.items() if fact is not None}


def footnotes_of(
    counts: Mapping[str, int],
    conventions: Conventions,
    facts: ResultFacts,
    *,
    n_users: int | None = None,
    catalogue: Catalogue | None = None,
) -> list[str]:
    """Return what a reader must know to trust the numbers; `n_users` is set if users have several cases."""
    if "rows" in counts:
        return _rating_footnotes(counts)
    n_cases = counts.get("cases", 0)
    lines = [plural(n_cases, "user")]
    if n_users is not None:
        lines = [f"{plural(n_cases, 'case')} of {plural(n_users, 'user')}"]
    for name, words in (
        ("without_truth", "without relevant items ({})"),
        ("without_list", "without recommendations ({})"),
    ):
        if counts.get(name):
            rule = conventions.no_truth if name == "without_truth" else conventions.no_list
            treatment = _TREATMENTS.get(rule, rule)
            lines[0] += f", {counts[name]:,} " + words.format(treatment)
    for name, words in _COUNT_NOTES.items():
        if counts.get(name):
            rule = _REPEATS.get(conventions.duplicates, "") if name == "repeated_items" else ""
            lines.append(plural(counts[name], words) + rule)
    if counts.get("found") == 0 and counts.get("judged"):
        lines.append("no listed item is in its user's truth: do both sides have the same ids, and split?")
    lines += facts.lines(conventions)
    if catalogue is not None:
        *sources, last = facts.catalogue_of or ("",)
        how = f" (those of {', '.join(sources)} and {last})" if sources else ""
        lines.append(f"catalogue: {plural(catalogue.n, 'item')}{how}")
    return [*lines, f"conventions: {conventions}"]


def _rating_footnotes(counts: Mapping[str, int]) -> list[str]:
    """Return the footnotes of rating metrics, which have rows instead of lists, and no conventions."""
    users = plural(counts.get("cases", 0), "user")
    lines = [f"{plural(counts['rows'], 'row')} of {users}"]
    lines += [plural(counts[n], words) for n, words in _RATING_COUNT_NOTES.items() if counts.get(n)]
    return [*lines, "a plain name is over all rows, user_ the mean over users"]
