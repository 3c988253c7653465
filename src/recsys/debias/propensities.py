"""The chance of each relevant item to be observed, weights of one over it, and what they estimate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from recsys.display.tabled import Tabled
from recsys.display.words import merged
from recsys.errors import ColumnError, InputError, UnknownNameError
from recsys.inputs import read_interactions
from recsys.inputs.frames import as_frame, encode_column, find_columns
from recsys.inputs.ids import encode, ids_from_sequence
from recsys.records.arrays import Array, Float, Interactions
from recsys.records.checks import is_number, to_floats
from recsys.records.json_values import json_rows
from recsys.stats.results import Estimate

YANG_POWER = 1.5  # (gamma + 1) / 2 with gamma = 2
LOW_SHARE = 0.1  # effective over actual sample size below which a warning is printed


def popularity_propensities(
    train: Any,
    *,
    power: float = YANG_POWER,
    gamma: float | None = None,
    columns: Mapping[str, str] | None = None,
) -> dict[Any, float]:
    """Return {item: chance of being observed}, which grows with a power of how many users had the item.

    Yang et al. (2018) derive (users of the item)^((gamma + 1) / 2) for a catalogue whose popularity follows a
    power law; power=1.5 is gamma=2, which may be given instead; power=0 makes all items equal. Only ratios
    are known, so the most popular item gets 1.

    >>> popularity_propensities({1: ["a", "b"], 2: ["a"], 3: ["a"], 4: ["a", "b"]}, power=0.5)
    {'a': 1.0, 'b': 0.7071067811865476}
    """
    if gamma is not None:
        if not is_number(gamma):
            raise InputError(f"gamma={gamma!r} is not a number.", hint="Use 2, or power=1.5.")
        power = (gamma + 1) / 2
    known = read_interactions(train, table="train", columns=columns)
    counts = np.bincount(known.codes, minlength=len(known.items))
    seen = np.flatnonzero(counts)
    if len(seen) == 0:
        raise InputError("train holds no item.", table="train", hint="Popularity is counted in its rows.")
    chance = popularity_power(counts[seen], power)
    return dict(zip(known.items.values[seen].tolist(), chance.tolist(), strict=True))


def popularity_power(counts: Array, power: float) -> Float:
    """Return (counts / the largest)^power."""
    if not (is_number(power) and 0 <= power < 100):
        raise InputError(f"power={power!r} is not a power of popularity.", hint="Use 0.5, 1 or 1.5.")
    return np.asarray((counts / counts.max()) ** power, dtype=np.float64)


def truth_propensities(
    truth: Interactions, propensities: Any, train: Any, power: float
) -> tuple[Float, dict[str, int]]:
    """Return the propensity of each entry of the truth, and counts for the result."""
    if propensities is None:
        if train is None:
            raise InputError(
                "how likely an item was to be observed is not known.",
                hint="Pass propensities= ({item: chance} or a table with user, item, propensity), or train= "
                "for propensities from popularity.",
            )
        by_item = popularity_propensities(train, power=power)
        return _propensities_by_item(truth, by_item, default=min(by_item.values()))
    frame = as_frame(propensities)
    if frame is not None:
        return _propensities_by_pair(truth, frame), {}
    if hasattr(propensities, "index") and hasattr(propensities, "to_dict"):  # a Series by item
        propensities = propensities.to_dict()
    if not isinstance(propensities, Mapping):
        raise InputError(
            f"propensities came as {type(propensities).__name__}.",
            hint="Pass {item: chance}, or a table with user, item and propensity columns.",
        )
    return _propensities_by_item(truth, propensities, default=None)


def _propensities_by_item(
    truth: Interactions, by_item: Any, *, default: float | None
) -> tuple[Float, dict[str, int]]:
    names = ids_from_sequence(list(by_item.keys()), table="propensities", column="item")
    ids, codes = encode(names, table="propensities", column="item")
    ids.same_kind(truth.items, what="item")
    chance = np.empty(len(ids))
    chance[codes] = check_propensities(list(by_item.values()))
    code = ids.code_of(truth.items.values)[truth.codes]
    unknown = code < 0
    if unknown.any() and default is None:
        item = truth.items.name(truth.codes[int(np.argmax(unknown))])
        raise InputError(
            f"{int(unknown.sum())} relevant items have no propensity, {item!r} for one.",
            table="propensities",
            hint="Give every relevant item its chance of being observed.",
        )
    out = np.where(unknown, 1.0 if default is None else default, chance[np.maximum(code, 0)])
    return out, {"without_propensity": int(unknown.sum())}


def _propensities_by_pair(truth: Interactions, frame: Any) -> Float:
    names = list(frame.columns)
    columns = find_columns(names, ("user", "item"), None, "propensities")
    rest = [n for n in names if n not in columns.values()]
    candidates = [n for n in rest if "propens" in n.lower()] or rest
    if len(candidates) != 1:
        raise ColumnError(
            f"which of {', '.join(rest) or 'no column'} holds the propensities?",
            table="propensities",
            hint="Call the column 'propensity'.",
        )
    cases, case = encode_column(frame, columns["user"], "propensities")
    items, item = encode_column(frame, columns["item"], "propensities")
    cases.same_kind(truth.cases, what="user")
    items.same_kind(truth.items, what="item")
    chance = check_propensities(frame[candidates[0]].to_numpy())
    table_key = _pair_keys(cases.values[case], items.values[item], truth)
    order = np.argsort(table_key, kind="stable")
    truth_key = _pair_keys(np.repeat(truth.cases.values, truth.sizes), truth.items.values[truth.codes], truth)
    at = np.minimum(np.searchsorted(table_key[order], truth_key), len(order) - 1)
    missing = table_key[order][at] != truth_key
    if missing.any():
        raise InputError(
            f"{int(missing.sum())} relevant pairs of user and item have no propensity.",
            table="propensities",
            hint="The table needs a row for every pair in the truth.",
        )
    return np.asarray(chance[order[at]])


def _pair_keys(users: Array, items: Array, truth: Interactions) -> Array:
    """Return one number per pair of user and item; -1 where the truth does not know both."""
    case, item = truth.cases.code_of(users), truth.items.code_of(items)
    return np.where((case < 0) | (item < 0), -1, case * max(len(truth.items), 1) + item)


def check_propensities(propensities: Any) -> Float:
    """Return the propensities, if all are probabilities above 0."""
    hint = "A propensity is the chance that a relevant item is observed: above 0, at most 1."
    chance = to_floats(propensities, "propensities", hint)
    if chance.ndim != 1:
        raise InputError(f"propensities came with shape {chance.shape}, expected one each.", hint=hint)
    invalid = ~((chance > 0) & (chance <= 1))
    if invalid.any():
        raise InputError(
            f"the propensity {float(chance[np.argmax(invalid)]):g} is not a probability above 0.",
            table="propensities",
            row=int(np.argmax(invalid)),
            hint=hint,
        )
    return chance


def effective_sample_size(weights: Any) -> float:
    """Return (sum w)^2 / sum w^2: how many equally weighted observations the weighted ones are worth.

    >>> effective_sample_size([1, 1, 1, 1]), effective_sample_size([10, 0, 0, 0])
    (4.0, 1.0)
    """
    w = to_floats(weights, "weights")
    square = float((w * w).sum())
    return float(w.sum()) ** 2 / square if square else 0.0


@dataclass(frozen=True)
class Diagnostics:
    """Facts about the weights: their number, effective sample size, share of the largest, number clipped."""

    n: int
    effective: float
    largest_share: float
    clipped: int
    lowest: float
    highest: float

    @property
    def share(self) -> float:
        """Effective over actual sample size."""
        return self.effective / self.n if self.n else 0.0

    def lines(self) -> list[str]:
        """Return the diagnostics as a sentence."""
        lines = [
            (
                f"{self.n:,} weighted observations are worth {self.effective:,.0f} equal ones "
                f"({self.share:.1%}); the largest weight decides {self.largest_share:.1%}"
            ),
            f"propensities from {self.lowest:.3g} to {self.highest:.3g}",
        ]
        if self.clipped:
            lines.append(f"{self.clipped:,} weights were clipped, which biases towards the naive estimate")
        if self.share < LOW_SHARE:
            lines.append("few observations carry the estimate: clip the weights, or use snips")
        return lines


def inverse_propensity_weights(chance: Float, clip: float | None) -> tuple[Float, Diagnostics]:
    """Return the weights 1 / propensity, at most `clip`, and their diagnostics."""
    return clip_weights(1.0 / chance, clip, chance)


def clip_weights(raw: Float, clip: float | None, chance: Float) -> tuple[Float, Diagnostics]:
    """Weights of at most `clip`, and their diagnostics; `chance` holds the propensities behind them."""
    if clip is not None and not (is_number(clip) and clip > 0):
        raise InputError(f"clip={clip!r} is not a largest weight.", hint="Use a number above 0, such as 100.")
    weights = raw if clip is None else np.minimum(raw, float(clip))
    total = float(weights.sum())
    return weights, Diagnostics(
        n=len(weights),
        effective=effective_sample_size(weights),
        largest_share=float(weights.max(initial=0.0)) / total if total else 0.0,
        clipped=int((raw > weights).sum()),
        lowest=float(chance.min(initial=1.0)),
        highest=float(chance.max(initial=0.0)),
    )


class Debiased(Tabled):
    """{(metric, estimator): Estimate}; prints as a table with the weights' diagnostics below."""

    def __init__(
        self,
        estimates: Mapping[tuple[str, str], Estimate],
        diagnostics: Diagnostics,
        *,
        notes: tuple[str, ...] = (),
        counts: Mapping[str, int] | None = None,
    ) -> None:
        self.estimates = dict(estimates)
        self.diagnostics = diagnostics
        self.notes = (*notes, *merged(note for e in self.estimates.values() for note in e.notes))
        self.counts = dict(counts or {})

    def __getitem__(self, key: str | tuple[str, str]) -> Any:
        """Return one estimate by (metric, estimator); all of a metric, or of the only metric, by name."""
        if isinstance(key, tuple):
            if key not in self.estimates:
                raise UnknownNameError("estimate", ", ".join(key), [", ".join(k) for k in self.estimates])
            return self.estimates[key]
        of_metric = {e: value for (m, e), value in self.estimates.items() if m == key}
        if of_metric:
            return of_metric
        of_estimator = [value for (_, e), value in self.estimates.items() if e == key]
        if len(of_estimator) != 1:
            names = dict.fromkeys(name for side in zip(*self.estimates, strict=True) for name in side)
            raise UnknownNameError("estimate", key, names)
        return of_estimator[0]

    def _columns(self) -> dict[str, list[Any]]:
        """Return metric, estimator, value, low, high, std_error."""
        rows = [(*key, value) for key, value in self.estimates.items()]
        return {
            "metric": [r[0] for r in rows],
            "estimator": [r[1] for r in rows],
            "value": [r[2].value for r in rows],
            "low": [r[2].interval.low for r in rows],
            "high": [r[2].interval.high for r in rows],
            "std_error": [r[2].standard_error for r in rows],
        }

    def to_dict(self) -> dict[str, Any]:
        return {
            "estimates": json_rows(self._columns()),
            "diagnostics": {**self.diagnostics.__dict__, "share": self.diagnostics.share},
            "counts": self.counts,
            "notes": list(self.notes),
        }

    def _footnotes(self) -> list[str]:
        return [*self.diagnostics.lines(), *self.notes]
