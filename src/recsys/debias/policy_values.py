"""What a policy would have earned, from the log of another one: IPS, SNIPS, direct method, doubly robust.

A row of the log is one decision: the action, its probability under the logging policy, and the reward. The
reward model is a table of means that is fitted without the row it is used for, so that the doubly robust
estimate is unbiased where the propensities are right.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from recsys.debias.propensities import Debiased, check_propensities, clip_weights, effective_sample_size
from recsys.errors import ColumnError, InputError, UnknownNameError, notes_only
from recsys.inputs.frames import as_frame, encode_column
from recsys.records.arrays import Array, Float, Ids
from recsys.records.checks import check_choices, is_number, is_whole, to_floats
from recsys.records.facts import Note, note
from recsys.stats.gaffke import mean_bounds
from recsys.stats.intervals import mean_interval, ratio_interval
from recsys.stats.mean_inference import Method
from recsys.stats.results import Estimate, Interval, t_interval
from recsys.stats.samples import FEW, Sample

ESTIMATORS = ("logged", "ips", "snips", "dm", "dr")
_COLUMN_NAMES = {
    "action": ("action", "item", "item_id", "itemid", "arm"),
    "reward": ("reward", "click", "clicked", "label", "rating", "conversion"),
    "propensity": ("propensity", "propensity_score", "pscore", "probability", "action_prob"),
}
_MAX_STANDARD_ERRORS = 4.0  # the mean weight may differ from 1 by this many
_PRIOR = 1.0  # the number of rows by which a mean is shrunk towards the overall one


@dataclass(frozen=True, eq=False)
class Log:
    """Rows of decisions: action and context codes, propensity and reward of what was shown."""

    actions: Ids
    action: Array
    contexts: tuple[Any, ...]
    context: Array
    propensity: Float
    reward: Float

    @property
    def n_contexts(self) -> int:
        return len(self.contexts)


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
            row per decision.
        policy: {action: probability}; {context: {action: probability}} with `context=`; "uniform" over the
            actions of the log; or an array rows x actions, actions in order of their ids.
        context: columns the policy and the reward model depend on, such as "position".
        reward_model: an array rows x actions of predicted rewards; by default the mean of each context and
            action, fitted without the row's own fold.
        clip: the largest weight.
        estimators: some of logged, ips, snips, dm, dr.
        folds: the number of parts for fitting the table of means.
        clusters: column of what is resampled together (a user or session); by default each row by itself.
        columns: names that are not detected: {"action": "ad", "reward": "bought", "propensity": "p"}.
        confidence: of the intervals. That of dm reflects how few rows the means have, not a wrong model.
            Where most rewards are the usual one, or all are 0 or 1, the intervals allow for rewards that were
            not seen, of the largest weight that was. A note says which range they assume where the unusual
            rewards are worth fewer than 20 of equal weight.

    >>> import pandas as pd
    >>> log = pd.DataFrame({"action": list("aabb"), "reward": [1, 0, 1, 1], "propensity": [0.5] * 4})
    >>> values = off_policy(log, {"a": 0.25, "b": 0.75})
    >>> values["ips"].value, values["snips"].value
    (0.875, 0.875)
    """
    names = check_choices("estimator", estimators, ESTIMATORS)
    rows, cluster = _read_log(log, context, clusters, columns)
    target = _read_policy(policy, rows)
    raw = target.probability[target.row, rows.action] / rows.propensity
    w, diagnostics = clip_weights(raw, clip, rows.propensity)
    predicted, predicted_of_logged = _predict_rewards(rows, target, reward_model, folds)
    values = {
        "logged": rows.reward,
        "ips": w * rows.reward,
        "dm": predicted,
        "dr": predicted + w * (rows.reward - predicted_of_logged),
    }
    in_table = None if reward_model is not None else _table_weights(rows, target)
    estimates: dict[tuple[str, str], Estimate] = {}
    for name in names:
        with notes_only():
            if name == "snips":
                if not w.any():
                    raise InputError("the policy never does what the log shows.", hint="Log other actions.")
                method: Method = "normal" if cluster is None else "t"
                estimate = ratio_interval(
                    values["ips"], w, clusters=cluster, method=method, confidence=confidence
                )
            else:
                estimate = mean_interval(values[name], clusters=cluster, confidence=confidence)
        if name == "dm":
            # The mean prediction is as uncertain as the rows' contexts and the table of means together.
            table_error = 0.0 if in_table is None else _table_error(rows, target, cluster)
            error = math.hypot(estimate.standard_error, table_error)
            df = math.inf if cluster is None else estimate.n - 1.0
            if cluster is not None and in_table is not None:
                # As many clusters of equal weight would have an error that is as uncertain.
                df = effective_sample_size(np.bincount(cluster, in_table) ** 2) - 1.0
            interval = t_interval(estimate.value, error, df, confidence)
            estimate = replace(estimate, standard_error=error, interval=interval, notes=())
        estimates["reward", name] = estimate
    rewards = _Rewards(rows.reward, cluster)
    if rewards.rare:
        # Each estimate as a weighted mean: what it would be if all rewards were the usual one, the weight of
        # each row in it, and the weight of the row's reward.
        ones, usual = np.ones(len(w)), rewards.usual
        means = {
            "logged": (ones * usual, ones, ones),
            "ips": (w * usual, ones, w),
            "snips": (w * usual, w, w),
            "dr": (predicted + w * (usual - predicted_of_logged), ones, w),
        }
        if in_table is not None:
            means["dm"] = in_table * usual, in_table, in_table
        used = [name for name in names if name in means]
        few = {name: n for name in used if (n := rewards.effective(means[name][2])) < FEW}
        for name in used:
            estimate = estimates["reward", name]
            interval = rewards.bounds(*means[name], confidence)
            interval = replace(
                interval, low=min(interval.low, estimate.value), high=max(interval.high, estimate.value)
            )
            notes = (rewards.note(few),) if name in few else estimate.notes
            estimates["reward", name] = replace(estimate, interval=interval, notes=notes)
    return Debiased(estimates, diagnostics, notes=_notes(rows, target, w))


class _Rewards:
    """Rewards of which most are the usual one, and intervals that allow for others.

    A clicked advertisement is rare, and the weights make it rarer: a standard error knows only those clicks
    that happened. Rewards that were not seen are taken to lie between 0 and 1, or between the least and the
    most that were seen if that is wider; one more cluster has at most one more of them than any other.
    """

    def __init__(self, reward: Float, cluster: Array | None) -> None:
        levels, counts = np.unique(reward, return_counts=True)
        self.usual = float(levels[np.argmax(counts)])
        self.excess = reward - self.usual
        self.unit = np.arange(len(reward)) if cluster is None else cluster
        self.clustered = cluster is not None
        self.least, self.most = min(0.0, float(levels[0])), max(1.0, float(levels[-1]))
        per_unit = np.bincount(self.unit, self.excess != 0)
        self.n_unusual, self.most_in_unit = int(per_unit.sum()), int(per_unit.max())
        binary = cluster is None and bool(np.isin(levels, (0.0, 1.0)).all())
        self.rare = binary or 2 * int((per_unit > 0).sum()) < len(per_unit)

    def effective(self, weights: Float) -> float:
        """Return how many unusual rewards of equal weight those that were seen are worth."""
        return effective_sample_size(np.bincount(self.unit, np.abs(weights * self.excess)))

    def bounds(self, offset: Float, weights: Float, reward_weights: Float, confidence: float) -> Interval:
        """Interval of the sum of offset and weighted excess rewards, over the sum of weights."""
        unit_weights: Float = np.bincount(self.unit, weights).astype(np.float64)
        used = unit_weights > 0
        unit_weights = unit_weights[used]
        base = np.bincount(self.unit, offset)[used] / unit_weights
        values = base + np.bincount(self.unit, reward_weights * self.excess)[used] / unit_weights
        reach = float((reward_weights[weights > 0] / weights[weights > 0]).max())
        if self.clustered:
            reach = min(reach, (self.most_in_unit + 1) * float(reward_weights.max() / unit_weights.mean()))
        low = float(base.min()) + reach * (self.least - self.usual)
        high = float(base.max()) + reach * (self.most - self.usual)
        return mean_bounds(Sample.of(values, unit_weights), low, high, confidence)

    def note(self, effective: Mapping[str, float]) -> Note:
        """That few rewards decide these estimates, and what their intervals assume."""
        worth = min(effective.values())
        return note(
            "few_rewards",
            n_unusual=self.n_unusual,
            n=len(self.excess),
            usual=self.usual,
            worth=worth if worth < 0.9 * self.n_unusual else None,
            estimators=[*effective],
            bounds=(self.least, self.most),
            most_in_cluster=self.most_in_unit + 1 if self.clustered else None,
        )


def _table_weights(rows: Log, target: _Policy) -> Float:
    """Return the weight of each row's reward in the mean prediction of the table of means."""
    cell, size, share = _policy_shares(rows, target)
    per_row = share / (size + _PRIOR)
    # A cell's mean is shrunk towards the overall one, in which every row has the same weight.
    return np.asarray(per_row[cell] + _PRIOR * per_row.sum() / len(cell))


def _table_error(rows: Log, target: _Policy, cluster: Array | None) -> float:
    """Return the standard error that the table of means, with few rows a cell, adds to the direct method."""
    cell, size, share = _policy_shares(rows, target)
    total = np.bincount(cell, weights=rows.reward, minlength=len(size))
    if cluster is None:
        spread = np.bincount(cell, (rows.reward - (total / np.maximum(size, 1))[cell]) ** 2, len(size))
        # A cell's variance is shrunk towards that of all rows, as a cell with few rows says little about it.
        variance = (spread + _PRIOR * float(rows.reward.var())) / (size + _PRIOR)
        return float(np.sqrt((share**2 * variance * size / (size + _PRIOR) ** 2).sum()))
    # Rows of a cluster vary together: leave out one cluster after the other (jackknife).
    pair, part = np.unique(cluster * len(size) + cell, return_inverse=True)
    part = np.ravel(part)
    owner, of = np.divmod(pair, len(size))
    prior = _PRIOR * float(rows.reward.mean())
    without = (total[of] - np.bincount(part, rows.reward) + prior) / (size[of] - np.bincount(part) + _PRIOR)
    change = share[of] * (without - (total[of] + prior) / (size[of] + _PRIOR))
    changes = np.bincount(owner, change)
    n = len(changes)
    return math.sqrt((n - 1) / n * float(((changes - changes.mean()) ** 2).sum()))


def _policy_shares(rows: Log, target: _Policy) -> tuple[Array, Array, Float]:
    """Return the cell (context and action) of each row, and the rows and share of the policy of each cell."""
    n_actions = len(rows.actions)
    cell = rows.context * n_actions + rows.action
    size = np.bincount(cell, minlength=rows.n_contexts * n_actions)
    if target.by_context:
        in_context = np.bincount(rows.context, minlength=rows.n_contexts) / len(cell)
        return cell, size, (target.probability * in_context[:, None]).ravel()
    share = np.zeros((rows.n_contexts, n_actions))
    np.add.at(share, rows.context, target.probability[target.row] / len(cell))
    return cell, size, share.ravel()


def _read_log(
    log: Any, context: str | Sequence[str], clusters: str | None, columns: Mapping[str, str] | None
) -> tuple[Log, Array | None]:
    frame = as_frame(log)
    if frame is None or len(frame) == 0:
        raise InputError(
            f"the log came as {type(log).__name__}{'' if frame is None else ' without rows'}.",
            table="log",
            hint="Pass a table with action, reward and propensity columns.",
        )
    names = {role: _find_column(frame, role, columns) for role in _COLUMN_NAMES}
    actions, action = encode_column(frame, names["action"], "log")
    reward = _finite_column(frame, names["reward"], "reward")
    propensity = check_propensities(_finite_column(frame, names["propensity"], "propensity"))
    if not isinstance(context, str | Sequence):
        raise InputError(f"context came as {type(context).__name__}.", hint="Name columns of the log.")
    contexts, context_code = _contexts(frame, [context] if isinstance(context, str) else list(context))
    cluster = None
    if clusters is not None:
        cluster = encode_column(frame, _check_column(frame, clusters), "log")[1]
    return Log(actions, action, contexts, context_code, propensity, reward), cluster


def _find_column(frame: Any, role: str, given: Any) -> str:
    if given is not None and not isinstance(given, Mapping):
        raise InputError(f"columns came as {type(given).__name__}.", hint="Pass {'action': 'ad', ...}.")
    if given and role in given:
        return _check_column(frame, given[role])
    names: list[Any] = list(frame.columns)
    matches = [n for n in names if isinstance(n, str) and n.lower() in _COLUMN_NAMES[role]]
    if len(matches) != 1:
        raise ColumnError(
            f"{'several columns' if matches else 'no column'} of {', '.join(map(str, names))} could be the "
            f"{role}.",
            table="log",
            column=role,
            hint=f"Say which: columns={{{role!r}: ...}}.",
        )
    return matches[0]


def _check_column(frame: Any, name: Any) -> str:
    """Return the name, if the log has such a column."""
    if not isinstance(name, str) or name not in frame.columns:
        raise ColumnError(
            f"there is no column {name!r}.", table="log", hint=f"They are: {', '.join(frame.columns)}."
        )
    return str(name)


def _finite_column(frame: Any, name: str, what: str) -> Float:
    values = np.asarray(frame[name].to_numpy())
    if values.dtype.kind not in "iufb" or not np.isfinite(values.astype(np.float64)).all():
        raise InputError(
            f"the {what} column {name!r} holds a value that is not a finite number.", table="log", column=name
        )
    return values.astype(np.float64)


def _contexts(frame: Any, names: list[str]) -> tuple[tuple[Any, ...], Array]:
    """Return the distinct contexts, each a value or a tuple of values, and the code of each row's context."""
    if not names:
        return (None,), np.zeros(len(frame), dtype=np.int64)
    parts = [encode_column(frame, _check_column(frame, name), "log") for name in names]
    shape = [len(ids) for ids, _ in parts]
    code = np.ravel_multi_index([codes for _, codes in parts], shape)
    distinct, context = np.unique(code, return_inverse=True)
    places = zip(parts, np.unravel_index(distinct, shape), strict=True)
    columns = [[ids.name(at) for at in column] for (ids, _), column in places]
    return tuple(columns[0] if len(columns) == 1 else zip(*columns, strict=True)), np.ravel(context)


class _Policy(NamedTuple):
    """Probabilities of the actions, one row per context (or per decision), and the row of each decision."""

    probability: Array
    row: Array
    by_context: bool


def _read_policy(policy: Any, rows: Log) -> _Policy:
    n = len(rows.actions)
    if isinstance(policy, str):
        if policy != "uniform":
            raise UnknownNameError("policy", policy, ("uniform",))
        return _Policy(np.full((rows.n_contexts, n), 1.0 / n), rows.context, by_context=True)
    if isinstance(policy, Mapping):
        tables = [policy] * rows.n_contexts
        if any(isinstance(v, Mapping) for v in policy.values()):
            for key in rows.contexts:
                if key not in policy:
                    raise InputError(
                        f"the policy has no probabilities for the context {key!r}.",
                        hint=f"It knows {[*policy]}.",
                    )
            tables = [policy[key] for key in rows.contexts]
            if not all(isinstance(table, Mapping) for table in tables):
                raise InputError(
                    "the policy has probabilities for some contexts only.",
                    hint="Pass {context: {action: probability}}.",
                )
        actions = dict.fromkeys(rows.actions.values.tolist())
        outside = [
            action
            for table in tables
            for action, share in table.items()
            if action not in actions and not (is_number(share) and share == 0)
        ]
        if outside:
            raise InputError(
                f"the policy shows {outside[0]!r}, which the log never shows, so its reward cannot be "
                "estimated.",
                hint="Leave such actions out of the policy.",
            )
        shares = [[table.get(action, 0.0) for action in actions] for table in tables]
        target = _Policy(to_floats(shares, "the policy"), rows.context, by_context=True)
    else:
        target = _Policy(to_floats(policy, "the policy"), np.arange(len(rows.reward)), by_context=False)
    expected = (rows.n_contexts if target.by_context else len(rows.reward), n)
    if target.probability.shape != expected:
        raise InputError(
            f"the policy came with shape {target.probability.shape}, expected rows x actions {expected}.",
            hint="Pass {action: probability}, or an array with one row per row of the log.",
        )
    total = target.probability.sum(axis=1)
    if not ((target.probability >= 0).all() and np.allclose(total, 1.0, atol=1e-6)):
        raise InputError(
            f"the policy's probabilities add up to between {total.min():.6g} and {total.max():.6g}.",
            hint="They must be at least 0 and add up to 1.",
        )
    return target


def _predict_rewards(rows: Log, target: _Policy, given: Any, folds: int) -> tuple[Float, Float]:
    """Predicted reward under the policy and of the logged action, one number per row."""
    n, n_actions = len(rows.reward), len(rows.actions)
    if given is not None:
        q = to_floats(given, "the reward model")
        if q.shape != (n, n_actions):
            raise InputError(
                f"the reward model came with shape {q.shape}, expected rows x actions {(n, n_actions)}."
            )
        return np.einsum("ij,ij->i", target.probability[target.row], q), q[np.arange(n), rows.action]
    if not is_whole(folds, 2) or n < 2:
        raise InputError(f"{folds!r} folds of {n} rows cannot be fitted.", hint="Use folds=5, and more rows.")
    folds = min(folds, n)
    fold = np.arange(n) % folds
    cells = rows.n_contexts * n_actions
    cell = rows.context * n_actions + rows.action
    fold_cell = fold * cells + cell
    sums = np.bincount(fold_cell, weights=rows.reward, minlength=folds * cells).reshape(folds, cells)
    sizes = np.bincount(fold_cell, minlength=folds * cells).reshape(folds, cells)
    under_policy, of_logged = np.empty(n), np.empty(n)
    for f in range(folds):
        total, size = sums.sum(axis=0) - sums[f], sizes.sum(axis=0) - sizes[f]
        overall = total.sum() / size.sum()
        q = (total + _PRIOR * overall) / (size + _PRIOR)
        in_fold = np.flatnonzero(fold == f)
        of_logged[in_fold] = q[cell[in_fold]]
        by_context, context = q.reshape(rows.n_contexts, n_actions), rows.context[in_fold]
        if target.by_context:
            under_policy[in_fold] = (target.probability * by_context).sum(axis=1)[context]
        else:
            probability = target.probability[target.row[in_fold]]
            under_policy[in_fold] = np.einsum("ij,ij->i", probability, by_context[context])
    return under_policy, of_logged


def _notes(rows: Log, target: _Policy, weights: Float) -> tuple[str, ...]:
    notes = [f"{len(rows.reward):,} decisions, {len(rows.actions):,} actions"]
    mean = float(weights.mean())
    error = float(weights.std(ddof=1)) / len(weights) ** 0.5 if len(weights) > 1 else 0.0
    if error and abs(mean - 1.0) > _MAX_STANDARD_ERRORS * error:
        notes.append(f"the weights average {mean:.3f} instead of 1: were these the propensities in use?")
    shown = np.zeros((rows.n_contexts, len(rows.actions)), dtype=bool)
    shown[rows.context, rows.action] = True
    unseen = float(np.where(shown[rows.context], 0.0, target.probability[target.row]).sum(axis=1).max())
    if unseen > 0:
        notes.append(f"up to {unseen:.1%} of the policy's choices never occur in the log in that context")
    return tuple(notes)
