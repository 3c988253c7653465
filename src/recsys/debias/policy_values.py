"""What a policy would have earned, from the log of another one: IPS, SNIPS, direct method, doubly robust.

A row of the log is one decision: what was shown, how likely the logging policy was to show it, what came of
it. The reward model is a table of means that is fitted without the row it is used for, so that the doubly
robust estimate stays unbiased where the propensities are right.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from recsys.debias.debiased_estimates import Debiased, quietly
from recsys.debias.propensities import checked, diagnosed
from recsys.errors import ColumnError, InputError, UnknownNameError
from recsys.inputs.frames import as_frame, coded_column
from recsys.stats.inference_results import Estimate, t_interval
from recsys.stats.intervals import mean_interval, ratio_interval
from recsys.types import Array, Float, Ids

ESTIMATORS = ("logged", "ips", "snips", "dm", "dr")
_NAMES = {
    "action": ("action", "item", "item_id", "itemid", "arm"),
    "reward": ("reward", "click", "clicked", "label", "rating", "conversion"),
    "propensity": ("propensity", "propensity_score", "pscore", "probability", "action_prob"),
}
_FAR = 4.0  # standard errors
_PRIOR = 1.0  # a mean is drawn towards the overall one as by this many rows


@dataclass(frozen=True, eq=False)
class Log:
    """Rows of decisions: action and context codes, propensity and reward of what was shown."""

    actions: Ids
    action: Array
    n_contexts: int
    context: Array
    context_names: tuple[Any, ...]
    propensity: Float
    reward: Float


def off_policy(
    log: Any,
    policy: Any,
    *,
    context: str | Sequence[str] = (),
    reward_model: Any = None,
    clip: float | None = None,
    estimators: Sequence[str] = ESTIMATORS,
    folds: int = 5,
    clusters: str | None = None,
    columns: Mapping[str, str] | None = None,
    confidence: float = 0.95,
) -> Debiased:
    """Estimate the mean reward of `policy` from a log made by another policy.

    Args:
        log: a table with what was shown (action or item_id), reward (or click) and propensity columns, one
            row a decision.
        policy: {action: probability}; {context: {action: probability}} with `context=`; "uniform" over the
            actions of the log; or an array rows x actions, actions in order of their ids.
        context: columns the policy and the reward model look at, such as "position".
        reward_model: an array rows x actions of predicted rewards; the mean of each context and action,
            fitted without the row's own fold, when it is not given.
        clip: the largest weight.
        estimators: some of logged, ips, snips, dm, dr.
        folds: parts the table of means is fitted in.
        clusters: column of what is resampled together (a user or session); rows by themselves otherwise.
        columns: names where detection fails: {"action": "ad", "reward": "bought", "propensity": "p"}.
        confidence: of the intervals. That of dm knows how few rows the means have, not that a model is wrong.

    >>> import pandas as pd
    >>> log = pd.DataFrame({"action": list("aabb"), "reward": [1, 0, 1, 1], "propensity": [0.5] * 4})
    >>> found = off_policy(log, {"a": 0.25, "b": 0.75})
    >>> found["ips"].value, found["snips"].value
    (0.875, 0.875)
    """
    for name in estimators:
        if name not in ESTIMATORS:
            raise UnknownNameError("estimator", name, ESTIMATORS)
    rows, who = _read(log, context, clusters, columns)
    target = _target(policy, rows)
    raw = target.chance[target.row, rows.action] / rows.propensity
    if clip is not None and not clip > 0:
        raise InputError(f"clip={clip!r} is no largest weight.", hint="Use a number above 0, such as 100.")
    weights = raw if clip is None else np.minimum(raw, clip)
    error = 0.0 if reward_model is not None else _table_error(rows, target)
    values = _Values(rows, weights, *_fitted(rows, target, reward_model, folds), model_error=error)
    estimates = {("reward", name): values.estimate(name, who, confidence) for name in estimators}
    diagnostics = diagnosed(weights, n_clipped=int((raw > weights).sum()), chance=rows.propensity)
    return Debiased(estimates, diagnostics, notes=_notes(rows, target, weights))


@dataclass(frozen=True, eq=False)
class _Values:
    """What the estimators are made of, a number a row."""

    rows: Log
    weights: Float
    of_policy: Float
    of_logged: Float
    model_error: float

    def estimate(self, name: str, clusters: Array | None, confidence: float) -> Estimate:
        reward, w = self.rows.reward, self.weights
        if name == "snips":
            if not w.any():
                raise InputError("the policy never does what the log shows.", hint="Log other actions.")
            return quietly(lambda: ratio_interval(w * reward, w, clusters=clusters, confidence=confidence))
        missed = w * (reward - self.of_logged)
        made = {
            "logged": reward,
            "ips": w * reward,
            "dm": self.of_policy,
            "dr": self.of_policy + missed,
        }[name]
        if name == "dm":
            return self._direct(made, clusters, confidence)
        return quietly(lambda: mean_interval(made, clusters=clusters, confidence=confidence))

    def _direct(self, made: Float, clusters: Array | None, confidence: float) -> Estimate:
        """The mean prediction, as unsure as the rows' contexts and the means of the table are."""
        found = quietly(lambda: mean_interval(made, clusters=clusters, confidence=confidence))
        error = math.hypot(found.standard_error, self.model_error)
        return replace(
            found, standard_error=error, interval=t_interval(found.value, error, math.inf, confidence)
        )


def _table_error(rows: Log, target: _Policy) -> float:
    """Standard error the table of means brings to the direct method: its cells are means of few rows."""
    n_actions = len(rows.actions)
    cell = rows.context * n_actions + rows.action
    size = np.bincount(cell, minlength=rows.n_contexts * n_actions)
    if len(target.chance) == rows.n_contexts:
        in_context = np.bincount(rows.context, minlength=rows.n_contexts) / len(cell)
        share = (target.chance * in_context[:, None]).ravel()
    else:
        share = np.zeros((rows.n_contexts, n_actions))
        np.add.at(share, rows.context, target.chance[target.row] / len(cell))
        share = share.ravel()
    mean = np.bincount(cell, weights=rows.reward, minlength=len(size)) / np.maximum(size, 1)
    spread = np.bincount(cell, weights=(rows.reward - mean[cell]) ** 2, minlength=len(size))
    # A cell of few rows says little about its own spread; all rows together say the rest.
    variance = (spread + _PRIOR * float(rows.reward.var())) / (size + _PRIOR)
    return float(np.sqrt((share**2 * variance * size / (size + _PRIOR) ** 2).sum()))


def _read(
    log: Any, context: str | Sequence[str], clusters: str | None, columns: Mapping[str, str] | None
) -> tuple[Log, Array | None]:
    frame = as_frame(log)
    if frame is None or len(frame) == 0:
        raise InputError(
            f"the log came as {type(log).__name__}{'' if frame is None else ' without rows'}.",
            table="log",
            hint="Pass a table with action, reward and propensity columns.",
        )
    names = {role: _column(list(frame.columns), role, columns) for role in _NAMES}
    actions, action = coded_column(frame, names["action"], "log")
    reward = _finite(frame, names["reward"], "reward")
    propensity = checked(_finite(frame, names["propensity"], "propensity"))
    wanted = [context] if isinstance(context, str) else list(context)
    keys, code = _contexts(frame, wanted)
    who = None
    if clusters is not None:
        who = coded_column(frame, _present(frame, clusters), "log")[1]
    return Log(actions, action, len(keys), code, keys, propensity, reward), who


def _column(names: list[str], role: str, given: Mapping[str, str] | None) -> str:
    if given and role in given:
        if given[role] not in names:
            raise ColumnError(
                f"there is no column {given[role]!r}.", table="log", hint=f"They are: {', '.join(names)}."
            )
        return given[role]
    found = [n for n in names if n.lower() in _NAMES[role]]
    if len(found) != 1:
        raise ColumnError(
            f"{'several columns' if found else 'no column'} of {', '.join(names)} could be the {role}.",
            table="log",
            column=role,
            hint=f"Say which: columns={{{role!r}: ...}}.",
        )
    return found[0]


def _present(frame: Any, name: str) -> str:
    if name not in frame.columns:
        raise ColumnError(
            f"there is no column {name!r}.", table="log", hint=f"They are: {', '.join(frame.columns)}."
        )
    return name


def _finite(frame: Any, name: str, what: str) -> Float:
    values = np.asarray(frame[name].to_numpy())
    if values.dtype.kind not in "iufb" or not np.isfinite(values.astype(np.float64)).all():
        raise InputError(
            f"the {what} column {name!r} holds something that is no finite number.", table="log", column=name
        )
    return values.astype(np.float64)


def _contexts(frame: Any, names: list[str]) -> tuple[tuple[Any, ...], Array]:
    """The different contexts, as a value or a tuple of them, and the context of each row."""
    if not names:
        return (None,), np.zeros(len(frame), dtype=np.int64)
    parts = [coded_column(frame, _present(frame, name), "log") for name in names]
    code = np.zeros(len(frame), dtype=np.int64)
    for ids, codes in parts:
        code = code * len(ids) + codes
    distinct, back = np.unique(code, return_inverse=True)
    keys = []
    for key in distinct.tolist():
        rest, values = key, []
        for ids, _ in reversed(parts):
            rest, place = divmod(rest, len(ids))
            values.append(ids.name(place))
        keys.append(values[0] if len(values) == 1 else tuple(reversed(values)))
    return tuple(keys), np.ravel(back)


class _Policy(NamedTuple):
    """Probabilities, a row a context (or a decision), and which row belongs to each decision."""

    chance: Array
    row: Array


def _target(policy: Any, rows: Log) -> _Policy:
    n = len(rows.actions)
    if isinstance(policy, str):
        if policy != "uniform":
            raise UnknownNameError("policy", policy, ("uniform",))
        return _Policy(np.full((rows.n_contexts, n), 1.0 / n), rows.context)
    if isinstance(policy, Mapping):
        nested = any(isinstance(v, Mapping) for v in policy.values())
        tables = (
            [_row_of(policy, key) for key in rows.context_names] if nested else [policy] * rows.n_contexts
        )
        made = _Policy(np.stack([_probabilities(table, rows) for table in tables]), rows.context)
    else:
        made = _Policy(np.asarray(policy, dtype=np.float64), np.arange(len(rows.reward)))
        if made.chance.shape != (len(rows.reward), n):
            raise InputError(
                f"the policy came with shape {made.chance.shape}, expected rows x actions "
                f"{(len(rows.reward), n)}.",
                hint="Pass {action: probability}, or an array with a row a row of the log.",
            )
    total = made.chance.sum(axis=1)
    if not ((made.chance >= 0).all() and np.allclose(total, 1.0, atol=1e-6)):
        raise InputError(
            f"the policy's probabilities add up to between {total.min():.6g} and {total.max():.6g}.",
            hint="They must be at least 0 and add up to 1.",
        )
    return made


def _row_of(policy: Mapping[Any, Any], key: Any) -> Mapping[Any, float]:
    if key not in policy:
        raise InputError(f"the policy says nothing of the context {key!r}.", hint=f"It knows {[*policy]}.")
    table: Mapping[Any, float] = policy[key]
    return table


def _probabilities(table: Mapping[Any, float], rows: Log) -> Float:
    known = set(rows.actions.values.tolist())
    outside = [a for a, p in table.items() if a not in known and p]
    if outside:
        raise InputError(
            f"the policy shows {outside[0]!r}, which the log never shows, so its worth cannot be estimated.",
            hint="Leave such actions out of the policy.",
        )
    return np.array([float(table.get(a, 0.0)) for a in rows.actions.values.tolist()])


def _fitted(rows: Log, target: _Policy, given: Any, folds: int) -> tuple[Float, Float]:
    """Predicted reward under the policy and of the logged action, a number a row."""
    n, n_actions = len(rows.reward), len(rows.actions)
    if given is not None:
        q = np.asarray(given, dtype=np.float64)
        if q.shape != (n, n_actions):
            raise InputError(
                f"the reward model came with shape {q.shape}, expected rows x actions {(n, n_actions)}."
            )
        return np.einsum("ij,ij->i", target.chance[target.row], q), q[np.arange(n), rows.action]
    if folds < 2 or n < 2:
        raise InputError(f"{folds!r} folds of {n} rows cannot be fitted.", hint="Use folds=5, and more rows.")
    folds = min(folds, n)
    fold = np.arange(n) % folds
    cells = rows.n_contexts * n_actions
    cell = rows.context * n_actions + rows.action
    at = fold * cells + cell
    sums = np.bincount(at, weights=rows.reward, minlength=folds * cells).reshape(folds, cells)
    sizes = np.bincount(at, minlength=folds * cells).reshape(folds, cells)
    of_policy, of_logged = np.empty(n), np.empty(n)
    for f in range(folds):
        total, size = sums.sum(axis=0) - sums[f], sizes.sum(axis=0) - sizes[f]
        overall = total.sum() / size.sum()
        q = (total + _PRIOR * overall) / (size + _PRIOR)
        here = np.flatnonzero(fold == f)
        of_logged[here] = q[cell[here]]
        of_policy[here] = _expected(target, q.reshape(rows.n_contexts, n_actions), rows.context, here)
    return of_policy, of_logged


def _expected(target: _Policy, q: Float, context: Array, here: Array) -> Float:
    """The mean of q under the policy for some rows; a context once where the policy knows contexts only."""
    if len(target.chance) == len(q):
        return np.asarray((target.chance * q).sum(axis=1)[context[here]])
    return np.asarray(np.einsum("ij,ij->i", target.chance[target.row[here]], q[context[here]]))


def _notes(rows: Log, target: _Policy, weights: Float) -> tuple[str, ...]:
    notes = [f"{len(rows.reward):,} decisions, {len(rows.actions):,} actions"]
    mean = float(weights.mean())
    error = float(weights.std(ddof=1)) / len(weights) ** 0.5 if len(weights) > 1 else 0.0
    if error and abs(mean - 1.0) > _FAR * error:
        notes.append(f"the weights average {mean:.3f} instead of 1: were these the propensities in use?")
    shown = np.zeros((rows.n_contexts, len(rows.actions)), dtype=bool)
    shown[rows.context, rows.action] = True
    unseen = float(np.where(shown[rows.context], 0.0, target.chance[target.row]).sum(axis=1).max())
    if unseen > 0:
        notes.append(f"up to {unseen:.1%} of the policy's choices never occur in the log in that context")
    return tuple(notes)
