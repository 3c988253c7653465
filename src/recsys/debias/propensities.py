"""How likely each relevant item was to be observed, and what weights of one over that do to a sample."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from recsys.debias.debiased_estimates import Diagnostics
from recsys.errors import ColumnError, InputError
from recsys.inputs.frames import as_frame, coded_column, find_columns, read_interactions
from recsys.inputs.ids import encode, of_sequence
from recsys.types import Array, Float, Ids, Interactions

YANG = 1.5  # (gamma + 1) / 2 with gamma = 2


def popularity_propensities(
    train: Any,
    *,
    power: float = YANG,
    gamma: float | None = None,
    columns: Mapping[str, str] | None = None,
) -> dict[Any, float]:
    """{item: chance of being observed}, taken to grow with a power of how many users had the item.

    Yang et al. (2018) derive (users of the item)^((gamma + 1) / 2) for a catalogue whose popularity follows a
    power law; power=1.5 is gamma=2, which may be given instead, power=0 makes all items alike. Only ratios
    are known, so the most popular item gets 1.

    >>> popularity_propensities({1: ["a", "b"], 2: ["a"], 3: ["a"], 4: ["a", "b"]}, power=0.5)
    {'a': 1.0, 'b': 0.7071067811865476}
    """
    if gamma is not None:
        power = (gamma + 1) / 2
    known = read_interactions(train, table="train", columns=columns)
    counts = np.bincount(known.codes, minlength=len(known.items))
    used = np.flatnonzero(counts)
    chance = powered(counts[used], power)
    return dict(zip(known.items.values[used].tolist(), chance.tolist(), strict=True))


def powered(counts: Array, power: float) -> Float:
    """(counts / the largest)^power."""
    if not 0 <= power < 100:
        raise InputError(f"power={power!r} is no power of popularity.", hint="Use 0.5, 1 or 1.5.")
    return np.asarray((counts / counts.max()) ** power, dtype=np.float64)


def propensities_of(
    truth: Interactions, given: Any, train: Any, power: float
) -> tuple[Float, dict[str, int]]:
    """The propensity of each entry of the truth, and what was counted on the way."""
    if given is None:
        if train is None:
            raise InputError(
                "there is nothing to tell how likely an item was to be observed.",
                hint="Pass propensities= ({item: chance} or a table with user, item, propensity), or train= "
                "for propensities from popularity.",
            )
        given = popularity_propensities(train, power=power)
        least = min(given.values())
        return _by_item(truth, given, otherwise=least)
    frame = as_frame(given)
    if frame is not None:
        return _by_pair(truth, frame), {}
    if not hasattr(given, "items"):
        raise InputError(
            f"propensities came as {type(given).__name__}.",
            hint="Pass {item: chance}, or a table with user, item and propensity columns.",
        )
    return _by_item(truth, given, otherwise=None)


def _by_item(truth: Interactions, given: Any, *, otherwise: float | None) -> tuple[Float, dict[str, int]]:
    names = of_sequence(list(given.keys()), table="propensities", column="item")
    ids, codes = encode(names, table="propensities", column="item")
    ids.same_kind(truth.items, what="item")
    chance = np.empty(len(ids))
    chance[codes] = checked(np.asarray(list(given.values()), dtype=np.float64))
    place = ids.code_of(truth.items.values)[truth.codes]
    unknown = place < 0
    if unknown.any() and otherwise is None:
        item = truth.items.name(truth.codes[int(np.argmax(unknown))])
        raise InputError(
            f"{int(unknown.sum())} relevant items have no propensity, {item!r} for one.",
            table="propensities",
            hint="Give every relevant item its chance of being observed.",
        )
    out = np.where(unknown, 1.0 if otherwise is None else otherwise, chance[np.maximum(place, 0)])
    return out, {"without_propensity": int(unknown.sum())}


def _by_pair(truth: Interactions, frame: Any) -> Float:
    names = list(frame.columns)
    found = find_columns(names, ("user", "item"), None, "propensities")
    rest = [n for n in names if n not in found.values()]
    like = [n for n in rest if "propens" in n.lower()] or rest
    if len(like) != 1:
        raise ColumnError(
            f"which of {', '.join(rest) or 'no column'} holds the propensities?",
            table="propensities",
            hint="Call the column 'propensity'.",
        )
    cases, case = coded_column(frame, found["user"], "propensities")
    items, item = coded_column(frame, found["item"], "propensities")
    cases.same_kind(truth.cases, what="user")
    items.same_kind(truth.items, what="item")
    chance = checked(np.asarray(frame[like[0]].to_numpy(), dtype=np.float64))
    have = _keys(cases.values[case], items.values[item], truth)
    order = np.argsort(have, kind="stable")
    want = _keys(np.repeat(truth.cases.values, truth.sizes), truth.items.values[truth.codes], truth)
    at = np.minimum(np.searchsorted(have[order], want), len(order) - 1)
    lost = have[order][at] != want
    if lost.any():
        raise InputError(
            f"{int(lost.sum())} relevant pairs of user and item have no propensity.",
            table="propensities",
            hint="The table needs a row for every pair in the truth.",
        )
    return np.asarray(chance[order[at]])


def _keys(users: Array, items: Array, truth: Interactions) -> Array:
    case, item = _code(truth.cases, users), _code(truth.items, items)
    return np.where((case < 0) | (item < 0), -1, case * max(len(truth.items), 1) + item)


def _code(ids: Ids, values: Array) -> Array:
    return ids.code_of(values)


def checked(chance: Float) -> Float:
    """Propensities that are probabilities above 0."""
    wrong = ~((chance > 0) & (chance <= 1))
    if wrong.any():
        raise InputError(
            f"the propensity {float(chance[np.argmax(wrong)]):g} is no probability above 0.",
            table="propensities",
            row=int(np.argmax(wrong)),
            hint="A propensity is the chance that a relevant item is observed: above 0, at most 1.",
        )
    return chance


def effective_sample_size(weights: Any) -> float:
    """(sum w)^2 / sum w^2: how many equally weighted observations the weighted ones are worth.

    >>> effective_sample_size([1, 1, 1, 1]), effective_sample_size([10, 0, 0, 0])
    (4.0, 1.0)
    """
    w = np.asarray(weights, dtype=np.float64)
    square = float((w * w).sum())
    return float(w.sum()) ** 2 / square if square else 0.0


def weights_of(chance: Float, clip: float | None) -> tuple[Float, Diagnostics]:
    """1 / propensity, at most `clip`, and what the weights look like."""
    raw = 1.0 / chance
    if clip is not None and not clip > 0:
        raise InputError(f"clip={clip!r} is no largest weight.", hint="Use a number above 0, such as 100.")
    weights = raw if clip is None else np.minimum(raw, clip)
    return weights, diagnosed(weights, n_clipped=int((raw > weights).sum()), chance=chance)


def diagnosed(weights: Float, *, n_clipped: int, chance: Float) -> Diagnostics:
    """What there is to know about a set of weights."""
    total = float(weights.sum())
    return Diagnostics(
        n=len(weights),
        effective=effective_sample_size(weights),
        largest_share=float(weights.max(initial=0.0)) / total if total else 0.0,
        clipped=n_clipped,
        lowest=float(chance.min(initial=1.0)),
        highest=float(chance.max(initial=0.0)),
    )
