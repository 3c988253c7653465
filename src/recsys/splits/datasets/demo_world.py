"""A small synthetic world with everything an evaluation can need, made in a fraction of a second.

Users have tastes and items have traits, so there is something to learn; a few items are popular and most are
not. The toy recommenders read the training events only and are there to be compared. Nothing here imports the
evaluation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.random import Generator, SeedSequence, default_rng

from recsys.records.arrays import Array, Float

N_USERS, N_ITEMS, N_TRAITS, N_DIMENSIONS = 600, 400, 8, 16
_START, _YEAR = 1_704_067_200, 365 * 86_400
_FEWEST, _TYPICAL, _MOST = 10, 45, 150
_HELD_OUT = 0.2
_PLACES = 20  # of the toy lists
_CATEGORIES = {
    "baking": ("flour", "yeast", "oven", "crust"),
    "camping": ("tent", "stove", "lantern", "trail"),
    "chess": ("opening", "endgame", "gambit", "clock"),
    "cycling": ("saddle", "chain", "gravel", "climb"),
    "gardening": ("seed", "soil", "orchard", "trellis"),
    "knitting": ("wool", "needle", "stitch", "pattern"),
    "sailing": ("mast", "harbour", "tide", "rope"),
    "stargazing": ("telescope", "comet", "nebula", "orbit"),
}
_ADJECTIVES = ("Quiet", "Practical", "Second", "Bright", "Forgotten", "Complete", "Little", "Northern")
_NOUNS = ("Handbook", "Companion", "Season", "Workshop", "Journey", "Primer", "Notebook", "Almanac")


@dataclass(frozen=True, eq=False)
class DemoWorld:
    """Events (user_id, item_id, timestamp, rating), items (title, category, text) and their embeddings.

    `train` and `test` split the events: the last fifth of each user's, by time, is the test. Row i of
    `embeddings` (float32, length 1) belongs to row i of `items`.
    """

    events: pd.DataFrame
    items: pd.DataFrame
    train: pd.DataFrame
    test: pd.DataFrame
    embeddings: Array
    seed: int


def demo_world(seed: int = 0) -> DemoWorld:
    """Return the demo world; the same seed gives the same world.

    >>> world = demo_world()
    >>> len(world.items), sorted(world.items["category"].unique())[:2]
    (400, ['baking', 'camping'])
    >>> len(world.train) + len(world.test) == len(world.events)
    True
    """
    # One stream per purpose: a change to the texts leaves the events as they are.
    traits, tastes, choices, clock, words = (default_rng(s) for s in SeedSequence(seed).spawn(5))
    category = np.sort(traits.integers(0, len(_CATEGORIES), N_ITEMS))
    centres = np.eye(len(_CATEGORIES), N_TRAITS)
    features = 1.6 * centres[category] + 0.5 * traits.standard_normal((N_ITEMS, N_TRAITS))
    # Most users care for two or three traits.
    cares = tastes.dirichlet(np.full(N_TRAITS, 0.25), N_USERS) * 3.0
    likes = (cares + 0.15 * tastes.standard_normal((N_USERS, N_TRAITS))) @ features.T
    popularity = -0.9 * np.log(traits.permutation(N_ITEMS) + 6.0)
    events = _events(likes, popularity, choices, clock)
    items = _item_texts(category, words)
    projection = traits.standard_normal((N_TRAITS, N_DIMENSIONS))
    blurred = features @ projection + 0.3 * traits.standard_normal((N_ITEMS, N_DIMENSIONS))
    embeddings = (blurred / np.linalg.norm(blurred, axis=1, keepdims=True)).astype(np.float32)
    size = events.groupby("user_id")["item_id"].transform("size").to_numpy()
    place = events.groupby("user_id").cumcount().to_numpy()
    held_out = place >= size - np.maximum(1, (size * _HELD_OUT).astype(int))
    train = events[~held_out].reset_index(drop=True)
    test = events[held_out].reset_index(drop=True)
    return DemoWorld(events, items, train, test, embeddings, seed)


def toy_lists(world: DemoWorld) -> dict[str, pd.DataFrame]:
    """Return lists of 20 items (user_id, item_id, rank) of toy recommenders, without items of training."""
    users = np.sort(world.events["user_id"].unique())
    items = world.items["item_id"].to_numpy()
    seen = np.zeros((len(users), len(items)))
    at = np.searchsorted(users, world.train["user_id"]), np.searchsorted(items, world.train["item_id"])
    seen[at] = 1.0
    scores = {
        "random": default_rng([world.seed, 1]).random(seen.shape),
        "popularity": np.broadcast_to(seen.sum(axis=0), seen.shape),
        "item_knn": _item_neighbour_scores(seen),
        "svd": _truncated_svd_scores(seen),
    }
    lists = {}
    for name, score in scores.items():
        # Rounded, so that the last bits of a matrix product, which differ between machines, decide nothing.
        unseen = np.where(seen > 0, -np.inf, np.round(score, 9))
        order = np.argsort(-unseen, axis=1, kind="stable")[:, :_PLACES]
        lists[name] = pd.DataFrame({
            "user_id": np.repeat(users, _PLACES),
            "item_id": items[order].ravel(),
            "rank": np.tile(np.arange(1, _PLACES + 1), len(users)),
        })  # fmt: skip
    return lists


def _events(likes: Float, popularity: Float, choices: Generator, clock: Generator) -> pd.DataFrame:
    """Draw events: a user takes items without repeats, liked and popular ones more often, at random times."""
    counts = np.clip(choices.lognormal(np.log(_TYPICAL), 0.5, N_USERS).astype(int), _FEWEST, _MOST)
    wish = likes + popularity + choices.gumbel(size=likes.shape)
    ranked = np.argsort(-wish, axis=1, kind="stable")
    user = np.repeat(np.arange(N_USERS), counts)
    item = np.concatenate([ranked[u, :n] for u, n in enumerate(counts)])
    joined = clock.integers(0, _YEAR // 2, N_USERS)
    time = _START + joined[user] + (clock.random(len(user)) * (_YEAR - joined[user])).astype(np.int64)
    opinion = 3.0 + 0.7 * likes[user, item] + 0.8 * choices.standard_normal(len(user))
    frame = pd.DataFrame({
        "user_id": _numbered_ids("u", user),
        "item_id": _numbered_ids("i", item),
        "timestamp": time,
        "rating": np.clip(np.rint(opinion), 1, 5).astype(np.int64),
    })  # fmt: skip
    return frame.sort_values(["user_id", "timestamp", "item_id"], ignore_index=True)


def _item_texts(category: Array, rng: Generator) -> pd.DataFrame:
    names = list(_CATEGORIES)
    titles, texts = [], []
    for code in category.tolist():
        adjective, noun = rng.choice(_ADJECTIVES), rng.choice(_NOUNS)
        one, other = rng.choice(_CATEGORIES[names[code]], 2, replace=False)
        titles.append(f"The {adjective} {names[code].title()} {noun}")
        texts.append(f"A {str(adjective).lower()} book on {names[code]}: of {one} and {other}.")
    return pd.DataFrame({
        "item_id": _numbered_ids("i", np.arange(N_ITEMS)),
        "title": titles,
        "category": [names[code] for code in category.tolist()],
        "text": texts,
    })  # fmt: skip


def _numbered_ids(letter: str, codes: Array) -> Array:
    return np.array([f"{letter}{code:03d}" for code in codes.tolist()], dtype=object)


def _item_neighbour_scores(seen: Float) -> Float:
    """Sum the cosine similarities of each item, by the users who took it, to the items of each user."""
    together = seen.T @ seen
    size = np.sqrt(np.diag(together))
    cosine = together / np.maximum(np.outer(size, size), 1.0)
    np.fill_diagonal(cosine, 0.0)
    return np.asarray(seen @ cosine)


def _truncated_svd_scores(seen: Float) -> Float:
    """Return the best approximation of rank 8, with popular items weighted down."""
    from scipy.linalg import eigh

    weight = 1.0 / np.sqrt(np.maximum(seen.sum(axis=0), 1.0))
    weighted = seen * weight
    size = len(weight)
    _, basis = eigh(weighted.T @ weighted, subset_by_index=[size - 8, size - 1])
    return np.asarray((weighted @ basis) @ basis.T / weight)
