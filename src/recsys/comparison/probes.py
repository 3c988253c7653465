"""The questions that `recsys.identify` asks: small, fixed and numbered, so that stored answers suffice.

A list is written as "b cad e": letters are items, best first, and those of one word have the same score, in
the order given. A truth is written as "b3 d1 x2": items with their grades. Scores are multiples of 1/64 above
0, so a float32 holds them and none is taken for a missing score.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from recsys.records.arrays import cached_property

VERSION = 3
"""Changes whenever a question does; answers to another version are refused."""

Rows = list[list[Any]]


@dataclass(frozen=True)
class Probe:
    """One question: lists and truth by user, a cut-off, and what it was made to show.

    `tells` are decisions: a metric that reads none of them is not asked. Every user of the lists has a truth,
    which may be empty.
    """

    name: str
    k: int
    run: Mapping[str, Rows]
    truth: Mapping[str, Mapping[str, float]]
    why: str = ""
    tells: tuple[str, ...] = ()

    @classmethod
    def written(cls, row: Sequence[str]) -> Probe:
        """Return a probe of name, k, lists, truth, why and tells.

        Users are separated by commas: "u: a b, v: c".
        """
        name, k, lists, truth, why, tells = row
        run = {user: _rows(text) for user, text in by_user(lists)}
        grades = {user: {word[0]: float(word[1:]) for word in text.split()} for user, text in by_user(truth)}
        return cls(name, int(k), run, grades, why, tuple(tells.split()))

    @property
    def question(self) -> dict[str, Any]:
        """What an implementation is asked."""
        return {
            "run": {user: [[*row] for row in rows] for user, rows in self.run.items()},
            "truth": {user: dict(grades) for user, grades in self.truth.items()},
            "k": self.k,
        }

    @cached_property
    def text(self) -> str:
        """The question as JSON, which identifies it."""
        return json.dumps(self.question)

    @property
    def size(self) -> int:
        """How many rows one has to read to understand it."""
        return sum(map(len, self.run.values())) + sum(map(len, self.truth.values()))

    def __str__(self) -> str:
        lists = ", ".join(f"{user}: {_line(rows)}" for user, rows in self.run.items())
        truth = ", ".join(
            f"{user}: " + (" ".join(f"{item}={grade:g}" for item, grade in grades.items()) or "nothing")
            for user, grades in self.truth.items()
        )
        return f"{self.name} (k={self.k}; lists {lists}; truth {truth})"


def by_user(text: str) -> Iterable[tuple[str, str]]:
    """Yield what is written of each user: "u: a b, v: c"."""
    for part in text.split(","):
        user, _, rest = part.partition(":")
        yield user.strip(), rest.strip()


def _rows(text: str) -> Rows:
    words = text.split()
    return [[item, (len(words) - at) / 64] for at, word in enumerate(words) for item in word]


def _line(rows: Rows) -> str:
    """Return the items of a list, best first; those of equal scores are joined by "="."""
    parts: list[str] = []
    for at, (item, score) in enumerate(rows):
        if at and rows[at - 1][1] == score:
            parts[-1] += f"={item}"
        else:
            parts.append(str(item))
    return " ".join(parts)


# Name, k, lists, truth, what it shows; then the decisions without which there is no need to ask.
_WRITTEN = (
    ("graded", "4", "u: a b c d e f", "u: b3 d1 e2 f1 x2 y1", "three grades, more relevant items than k", ""),
    ("few relevant", "3", "u: a b c d e", "u: b1 e1", "fewer relevant items than k, one of them below k", ""),
    ("short list", "5", "u: a b", "u: b1 x2 y3", "a list that ends before k", ""),
    ("judged", "5", "u: a b c d e f", "u: a0 c1 d0 f2", "items judged not relevant", ""),
    ("one of three", "3", "u: c a b d", "u: x1 a1 y1", "one of three relevant items, not the first", ""),
    ("perfect", "3", "u: a b c", "u: a1 b1", "nothing better is possible", ""),
    ("three users", "2", "u: a b c, v: a b c, w: c a", "u: a1 b2 c1, v: x1 y1, w: c3 d1 e1 f1 g2",
     "users with all, none and some of their items", ""),
    ("below k", "2", "u: a b c d e f, v: a b", "u: a0 b0 c0 d1 e0 f0, v: a0 x1",
     "the only hit is below k, among items judged not relevant", ""),
    ("tied, first", "2", "u: cadb e", "u: c1 x2", "of four equal scores, the first is relevant", "ties"),
    ("tied, second", "2", "u: cadb e", "u: a1 x2", "the second one given is relevant", "ties"),
    ("tied, last", "2", "u: cadb e", "u: b1 x2", "the last one given is relevant", "ties"),
    ("tied, two", "3", "u: e cadb f", "u: a2 b1 x1", "two relevant items among equal scores", "ties"),
    ("repeated hit", "4", "u: b a c a d", "u: a2 w1 x1 y1 z1", "a relevant item listed twice", "duplicates"),
    ("repeated miss", "4", "u: b a b c d", "u: a1 d1 x2", "another item is listed twice", "duplicates"),
    ("repeated often", "4", "u: c c a a b", "u: a2 b2",
     "few relevant items, one of which closing up brings before k", "duplicates"),
    ("no truth", "3", "u: a b c, v: a b", "u: b1 x2, v:", "a user without judgements", "no_truth"),
    ("nothing relevant", "3", "u: a b c, v: a b", "u: b1 x2, v: a0",
     "a user with judgements, none of them relevant", "no_truth"),
    ("no list", "3", "u: a b c", "u: b1 x2, v: a1", "a user without a list", "no_list"),
)  # fmt: skip
PROBES = tuple(map(Probe.written, _WRITTEN))


EXTREMES_K, EXTREMES_LENGTH, EXTREMES_GRADE = 10, 20, 3.0


@lru_cache(maxsize=4)
def extremes(k: int, length: int, grade: float) -> tuple[Probe, ...]:
    """Return questions about one user that reach the greatest value of a formula, whichever it is.

    A sum over places is greatest where each of them holds a hit, and what it is divided by is smallest where
    few items are relevant: one item all over the list, or n items and nothing else, for every n. Grades are
    all 1, all the highest, or in the truth's order the opposite of the list's.
    """
    found = []
    for n in sorted({1, 2, 3, 4, k - 1, k, k + 1, length} & {*range(1, length + 1)}):
        items = [f"d{at:03}" for at in range(n)]
        for grades in ([1.0] * n, [grade] * n, [1.0] * (n - 1) + [grade]):
            truth = dict(zip(items, grades, strict=True))
            best = sorted(items, key=lambda item: -truth[item])
            fill = [f"z{at:03}" for at in range(length - n)]
            for listed in (best, best + fill, best[:1] * length, best[:1] * k):
                run = [[item, float(length - at)] for at, item in enumerate(listed)]
                found.append(Probe("extreme", k, {"u": run}, {"u": truth}))
    return tuple(found)


def probes_for(reads: Iterable[str]) -> tuple[Probe, ...]:
    """Return the probes for a metric that reads these decisions."""
    known = set(reads)
    return tuple(probe for probe in PROBES if not probe.tells or known & set(probe.tells))
