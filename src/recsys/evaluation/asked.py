"""What an evaluation was asked: all that decides what was ranked, of whom, and against which truth.

The record is kept with the result, in files too, so that whatever compares two results can say where their
questions differ. Tables are distinguished by their content: not by the order of rows, nor by the pieces they
came in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from recsys.errors import InputError, Phrase
from recsys.kernels.keyed_random import Keys, id_keys, mix_bits, pair_keys, text_keys
from recsys.ranks.rankings import ALL, ELIGIBLE, LISTS, SCORED
from recsys.records.arrays import Ids, Interactions, Partial

if TYPE_CHECKING:
    from recsys.evaluation.run import EvaluationRun

_UNKNOWN = frozenset({LISTS, SCORED})  # these do not say what users could be shown


def case_keys(table: Interactions, *, graded: bool = False) -> Keys:
    """Return one number per case that tells its items, and their grades, from others; 0 for none."""
    used = np.unique(table.codes)
    of_item = np.zeros(len(table.items), dtype=np.uint64)
    of_item[used] = id_keys(Ids(table.items.values[used]), 0, purpose="truth")
    keys = of_item[table.codes]
    if graded:
        grades = np.ones(1) if table.grades is None else table.grades
        keys = pair_keys(keys, mix_bits(grades.view(np.uint64)))
    has_items = table.sizes > 0
    of_case = np.zeros(len(table.cases), dtype=np.uint64)
    if len(keys):
        of_case[has_items] = np.add.reduceat(keys, table.indptr[:-1][has_items])
    return of_case


class Content(NamedTuple):
    """How many rows a table has, and what tells them from others; those of its parts add up."""

    rows: int
    key: str

    @classmethod
    def of_keys(cls, keys: Keys, n_rows: int | None = None) -> Content:
        """Of keys in any order."""
        total = int(np.add.reduce(mix_bits(keys), dtype=np.uint64))
        return cls(len(keys) if n_rows is None else n_rows, f"{total:016x}")

    @classmethod
    def of_numbers(cls, numbers: Mapping[Any, Any]) -> Content:
        """Of a number for each id, given as {id: number}."""
        values = np.array([float(value) for value in numbers.values()])
        return cls.of_keys(pair_keys(text_keys(map(str, numbers)), values.view(np.uint64)))

    @classmethod
    def of(cls, table: Ids | Interactions, *, graded: bool = False) -> Content:
        """Of ids, or of pairs of user and item with their grades; what many pieces share is read once."""
        known, name = vars(table), f"content, graded={graded}"
        if name not in known:
            if isinstance(table, Ids):
                known[name] = cls.of_keys(id_keys(table, 0, purpose="id"))
            else:
                has_items = table.sizes > 0
                users = id_keys(Ids(table.cases.values[has_items]), 0, purpose="user")
                keys = pair_keys(users, case_keys(table, graded=graded)[has_items])
                known[name] = cls.of_keys(keys, len(table.codes))
        content: Content = known[name]
        return content

    def joined(self, other: Content) -> Content:
        """Of both parts together."""
        total = (int(self.key, 16) + int(other.key, 16)) % (1 << 64)
        return Content(self.rows + other.rows, f"{total:016x}")


class Aspect(NamedTuple):
    """One part of a question: its kind, which other tests can share, its content and a description of it."""

    kind: str
    content: tuple[Content | None, ...]
    words: str

    @property
    def label(self) -> str:
        """Words that tell it from others, also of the same size."""
        return self.words + "".join(f" [{one.key[:8]}]" for one in self.content if one and one.key)


@dataclass(frozen=True)
class Asked:
    """What decided what was ranked and how it was judged; None where it was not given or is not known.

    candidates: what each list was chosen from; what ready lists were chosen from is not known.
    catalogue: the items of the model, or those of catalogue=; without a key if only their number is known.
    eligible, excluded: the pairs that eligible= or a sample left of them; the items of exclude=.
    seen, train: these tables, as pairs of user and item.
    truth: its pairs with their grades; users: the cases of the result.
    case_weights, item_weights: the weights that were used.
    """

    candidates: str = LISTS
    catalogue: Content | None = None
    eligible: Content | None = None
    excluded: Content | None = None
    seen: Content | None = None
    train: Content | None = None
    truth: Content | None = None
    users: Content | None = None
    case_weights: Content | None = None
    item_weights: Content | None = None

    @classmethod
    def of(cls, run: EvaluationRun, partial: Partial) -> Asked:
        """Return what was asked in an evaluation with this result."""
        how, ranking, train = run.ranking_options, run.ranking, run.context.train
        facts: dict[str, Any] = {"candidates": ranking.chosen_from(how)}
        ids, n_items = ranking.catalogue, ranking.n_items
        if n_items is not None:
            facts["catalogue"] = Content(n_items, "") if ids is None else Content.of(ids)
        tables = {"eligible": how.eligible, "seen": how.seen, "train": train}
        facts |= {name: Content.of(table) for name, table in tables.items() if table is not None}
        if how.exclude is not None:
            facts["excluded"] = Content.of_keys(text_keys({str(item) for item in how.exclude}))
        if run.item_weights is not None:
            facts["item_weights"] = Content.of_numbers(run.item_weights)
        rows = partial.rows
        if rows.weights is not None:
            weights = zip(rows.ids.tolist(), rows.weights.tolist(), strict=True)
            facts["case_weights"] = Content.of_numbers(dict(weights))
        return cls(truth=Content.of(run.truth, graded=True), users=Content.of(Ids(rows.ids)), **facts)

    @classmethod
    def read(cls, facts: Mapping[str, Any]) -> Asked:
        """Read what `to_dict` wrote."""
        read = {n: Content(**fact) if isinstance(fact, Mapping) else fact for n, fact in facts.items()}
        return cls(**cast("dict[str, Any]", read))

    def to_dict(self) -> dict[str, Any]:
        """Return all that is known, as JSON values."""
        known = {name: fact for name, fact in vars(self).items() if fact is not None}
        return {n: fact._asdict() if isinstance(fact, Content) else fact for n, fact in known.items()}

    @property
    def parts(self) -> dict[str, Aspect]:
        """What is known of the question, part by part."""
        found: dict[str, Aspect] = {}
        if self.candidates not in _UNKNOWN:
            words = self.candidates
            if self.eligible is not None:
                words = f"{self.eligible.rows:,} pairs of user and item ({words})"
            words += "" if self.excluded is None else f" but {self.excluded.rows:,} excluded ones"
            found["candidates"] = Aspect(self.candidates, (self.eligible, self.excluded), f"ranked {words}")
        if self.catalogue is not None and self.candidates in (ALL, ELIGIBLE):
            n_seen = 0 if self.seen is None else self.seen.rows
            kind, what = "left out" if n_seen else "ranked", "what users had before"
            found["items"] = Aspect(
                "", (self.catalogue,), f"ranks a catalogue of {self.catalogue.rows:,} items"
            )
            words = f"{kind} {what} ({f'{n_seen:,} pairs in' if n_seen else 'no'} " + Phrase("{seen=})")
            found["seen"] = Aspect(kind, (self.seen,) if n_seen else (), words)
        if self.train is not None:
            found["train"] = Aspect("", (self.train,), Phrase("has {:,} pairs in {train=}", self.train.rows))
        given = [name for name in ("case_weights", "item_weights") if getattr(self, name) is not None]
        words = f"weighs by {' and '.join(given) or 'nothing'}"
        return found | {"weights": Aspect(words, (self.item_weights,), words)}


def join_asked(parts: Sequence[Asked | None]) -> Asked | None:
    """Join what was asked of the users of each part: what came in parts adds up, what all share is kept."""
    known = [part for part in parts if part is not None]
    facts = zip(*(vars(part).values() for part in known), strict=True)
    return Asked(*(reduce(_join, of_parts) for of_parts in facts)) if known else None


def _join(one: Any, other: Any) -> Any:
    both_known = isinstance(one, Content) and isinstance(other, Content) and one != other
    return one.joined(other) if both_known else one or other


class Difference(NamedTuple):
    """Where two questions differ, and whether their values are then so unlike that no gate takes them."""

    sentence: str
    refused: bool


def differences(first: Asked | None, second: Asked | None, names: tuple[str, str]) -> dict[str, Difference]:
    """Return where two questions differ, by part; what is not known does not differ.

    Of other tests only the kinds are compared: candidates, train and seen of another night hold other rows.
    """
    if first is None or second is None:
        return {}
    found = {}
    same_test = None in (first.truth, second.truth) or first.truth == second.truth
    for name, one in first.parts.items():
        other = second.parts.get(name, one)
        if one.kind != other.kind or (same_test and one.content != other.content):
            words = f"{names[0]} {one.words}, {names[1]} {other.words}"
            refused = name == "candidates" or (name == "seen" and one.kind != other.kind)
            found[name] = Difference(words + ", not the same ones" * (one.words == other.words), refused)
    return found


def refuse_other_question(first: Asked | None, second: Asked | None, names: tuple[str, str]) -> None:
    """Raise an error if the values of two results are of different quantities."""
    for difference in differences(first, second, names).values():
        if difference.refused:
            raise InputError(
                "the results answer different questions: " + difference.sentence + ".",
                hint=Phrase(
                    "Evaluate both with the same {seen=}, {eligible=} and {exclude=}, or use {compare()}."
                ),
            )
