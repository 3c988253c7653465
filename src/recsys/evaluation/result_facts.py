"""What is known about a result besides its numbers, as records; `result.notes` and the footnotes show them.

What depends on a fact reads its field, never the note or the line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from recsys.conventions.decisions import Conventions
from recsys.display.number_words import plural
from recsys.records.arrays import Catalogue
from recsys.records.read_facts import NOTHING_READ, ReadFacts

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
TrainingItems = Literal["ranked", "with a score"]
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
        lines: all of it in sentences.
    """

    n_seen: int
    n_total: int
    confidence: float
    about: str
    reason: str | None = None
    intervals: Mapping[str, Watched] = field(default_factory=dict)
    lines: tuple[str, ...] = ()

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
        known = {name: fact for name, fact in vars(self).items() if fact not in (None, {})}
        known["share_saved"], known["says"] = self.share_saved, "\n".join(known.pop("lines"))
        if self.intervals:
            rows = {name: watched._asdict() for name, watched in self.intervals.items()}
            known["intervals"] = {
                name: {n: fact for n, fact in row.items() if fact is not None} for name, row in rows.items()
            }
        return known

    @classmethod
    def of_notes(cls, notes: Mapping[str, Any]) -> StopFacts:
        """Return the facts that `to_notes` wrote."""
        facts = {name: fact for name, fact in notes.items() if name not in ("says", "share_saved")}
        facts["intervals"] = {name: Watched(**row) for name, row in notes.get("intervals", {}).items()}
        return cls(**facts, lines=tuple(notes["says"].splitlines()))


@dataclass(frozen=True, kw_only=True)
class ResultFacts:
    """What was noticed while a result was made; None where it does not apply or is not known.

    Attributes:
        lists, truth: what their readers noticed; lists that a model made have nothing.
        ratings: what was noticed of a table of predicted and actual numbers.
        user_ids, item_ids: the kinds of the ids, "int" or "str".
        backend: that the chosen one does not match ready lists.
        catalogue_of: the tables whose items are the catalogue, where it was not given.
        training_items: where no seen items were given: all were "ranked", or those "with a score".
        sampled: that each positive was ranked among sampled candidates, and how many.
        stopped: how far the evaluation went, if it could stop early.
        n_users: users of the cases, where these are not users and not kept.
    """

    lists: ReadFacts | None = None
    truth: ReadFacts | None = None
    ratings: ReadFacts = NOTHING_READ
    user_ids: str | None = None
    item_ids: str | None = None
    backend: str | None = None
    catalogue_of: tuple[str, ...] = ()
    training_items: TrainingItems | None = None
    sampled: str | None = None
    stopped: StopFacts | None = None
    n_users: int | None = None

    @property
    def n_seen(self) -> int | None:
        """How many users were evaluated, if it could stop early."""
        return None if self.stopped is None else self.stopped.n_seen

    @property
    def stopped_early(self) -> bool:
        """Whether some users did not have to be evaluated."""
        return self.stopped is not None and self.stopped.share_saved > 0

    def joined(self, other: ResultFacts) -> ResultFacts:
        """Return those of two parts of the users: counts add up, others are of the first that has them."""
        facts: dict[str, Any] = {n: getattr(other, n) if f is None else f for n, f in vars(self).items()}
        for name in ("lists", "truth"):
            mine, theirs = getattr(self, name), getattr(other, name)
            facts[name] = mine.joined(theirs) if mine and theirs else mine or theirs
        if self.n_users is not None and other.n_users is not None:
            facts["n_users"] = self.n_users + other.n_users
        return ResultFacts(**facts | {"catalogue_of": self.catalogue_of or other.catalogue_of})

    def to_notes(self) -> dict[str, Any]:
        """Return the facts by the names that `result.notes` and result files have for them."""
        facts: dict[str, Any] = {name: getattr(self, name) for name in ("lists", "truth", "stopped")}
        notes = {name: fact.to_notes() for name, fact in facts.items() if fact is not None}
        if self.user_ids is not None:
            notes["ids"] = {"user": self.user_ids, "item": self.item_ids}
        rest = {
            "backend": self.backend,
            "catalogue_of": list(self.catalogue_of) or None,
            "seen": self._seen,
            "sampled": self.sampled,
            "n_users": self.n_users,
        }
        return self.ratings.to_notes() | notes | {n: fact for n, fact in rest.items() if fact is not None}

    @property
    def _seen(self) -> str | None:
        return None if self.training_items is None else _TRAINING_ITEMS[self.training_items]

    @classmethod
    def of_notes(cls, notes: Mapping[str, Any]) -> ResultFacts:
        """Return the facts that `to_notes` wrote; a TypeError or a ValueError says what is not one."""
        texts: dict[str, Any] = {name: notes.get(name) for name in ("backend", "sampled", "n_users")}
        of_ids, stopped = notes.get("ids", {}), notes.get("stopped")
        ranked: dict[Any, Any] = {sentence: kind for kind, sentence in _TRAINING_ITEMS.items()}
        return cls(
            lists=ReadFacts.of_notes(notes["lists"]) if "lists" in notes else None,
            truth=ReadFacts.of_notes(notes["truth"]) if "truth" in notes else None,
            ratings=ReadFacts.of_notes(notes),
            user_ids=of_ids.get("user"),
            item_ids=of_ids.get("item"),
            catalogue_of=tuple(notes.get("catalogue_of", ())),
            training_items=ranked.get(notes.get("seen")),
            stopped=None if stopped is None else StopFacts.of_notes(stopped),
            **texts,
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
        lines += self.stopped.lines if self.stopped else ()
        return [*lines, *filter(None, (self.sampled, self._seen, self.backend))]


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
