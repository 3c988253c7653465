"""What a metric may need besides the places of the relevant items, and the keyword that provides it.

A missing need is an error that names the keyword; the docs and the command use the same words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from recsys.errors import NotDefinedError
from recsys.types import Context


class Need(NamedTuple):
    """A need in words, what to pass, and whether a context provides it."""

    words: str
    hint: str
    is_met: Callable[[Context], bool]


NEEDS: dict[str, Need] = {
    "candidates": Need(
        "lists that rank every candidate (complete=True)",
        "If each list ranks every candidate, pass complete=True; otherwise use a metric with @k.",
        lambda c: c.complete,
    ),
    "catalogue": Need(
        "the size of the catalogue",
        "Pass catalogue= (ids, or how many).",
        lambda c: c.n_items is not None,
    ),
    "predictions": Need(
        "predicted ratings", "Use recsys.evaluate_ratings, or a metric of lists.", lambda _: False
    ),
    "lists": Need("the lists themselves", "Use recsys.evaluate.", lambda _: True),
    "train": Need(
        "what the users had before (train=)",
        "Pass train=, a table, dict or matrix of interactions.",
        lambda c: c.train is not None,
    ),
    "popularity": Need(
        "how many users had each item before (train= or popularity=)",
        "Pass train=, or popularity={item: users}.",
        lambda c: c.train is not None or c.popularity is not None,
    ),
    "embeddings": Need(
        "a vector for each item (embeddings=)",
        "Pass embeddings={item: vector}, (ids, matrix), or a matrix whose row is the item.",
        lambda c: c.embeddings is not None,
    ),
    "profiles": Need(
        "a vector for each user (profiles=, or train= to make one of the items the user had)",
        "Pass profiles={user: vector}, or train=.",
        lambda c: c.profiles is not None or c.train is not None,
    ),
    "items": Need(
        "what is known about the items (items=)",
        "Pass items=, a table with an item column, or {column: {item: value}}.",
        lambda c: c.items is not None,
    ),
    "reference": Need(
        "lists to compare these with (reference=)",
        "Pass reference=, another model's lists, or one list that everybody would get.",
        lambda c: c.reference is not None,
    ),
    "eligible": Need(
        "which items may be shown (catalogue=, never=, eligible=), unless all may", "", lambda _: True
    ),
    "intents": Need(
        "what each relevant item is relevant for (intents=)",
        "Pass intents=, a column of items=, or {user: {item: [intents]}}.",
        lambda c: c.intents is not None,
    ),
}


def check_needs(name: str, needs: tuple[str, ...], context: Context) -> None:
    """Raise NotDefinedError if the context lacks a need of the metric `name`."""
    for need in needs:
        if not NEEDS[need].is_met(context):
            cut = need == "candidates"
            what = "every candidate's place, and the lists are cut off" if cut else NEEDS[need].words
            raise NotDefinedError(f"{name} needs {what}.", hint=NEEDS[need].hint)
