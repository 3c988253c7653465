"""Covariates and strata as tables of users: read, looked up by id, and said in words what they stand for.

A table of more users than were evaluated tells what the population is like: its means and shares count as
known. One of the same users only tells what these are like.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from recsys.errors import ColumnError, InputError, UnknownNameError
from recsys.metrics.attributes import read_table
from recsys.stats.statistics_warnings import PopulationWarning, caution
from recsys.types import Array, Float, Ids, Int, Table

NO_LABEL = "(missing)"
# From this many times the users evaluated on, a table's mean is as good as the population's.
_MANY = 10


def tables_of_users(choices: Mapping[str, Any]) -> dict[str, Any]:
    """The choices with covariates= and strata= read; a stratum may be named by its column of covariates=."""
    read = dict(choices)
    covariates, strata = (choices.get(name) for name in ("covariates", "strata"))
    table = None if covariates is None else read_table(_named(covariates), table="users")
    if isinstance(strata, str):
        columns = {} if table is None else dict(table.columns)
        if table is None or strata not in columns:
            raise UnknownNameError("stratum", strata, columns, hint="Pass covariates= with such a column.")
        strata = Table(table.ids, {strata: columns.pop(strata)})
        table = Table(table.ids, columns) if columns else None
    elif strata is not None:
        strata = read_table(_named(strata), table="users")
    return read | {name: one for name, one in (("covariates", table), ("strata", strata)) if name in read}


def _named(data: Any) -> Any:
    """A Series as {its name: {user: value}}."""
    if getattr(data, "ndim", 2) == 1 and hasattr(data, "to_dict"):
        return {str(data.name or "value"): data.to_dict()}
    return data


@dataclass(frozen=True, eq=False)
class Covariates:
    """Units x covariates (NaN: not known), their means where more is known than these, and the estimand."""

    names: tuple[str, ...]
    values: Float
    means: Float | None
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class UserStrata:
    """The label of each unit's stratum, the shares where more is known than these, and the estimand."""

    labels: Array
    shares: Mapping[object, float] | None
    notes: tuple[str, ...]


def covariates_of(table: Table, given: Mapping[str, float] | None, users: Array) -> Covariates:
    """The covariates of these users; `given` are known means, which else come from users beyond these."""
    at = _places(table, users, "covariates")
    columns = {name: _numbers(name, column) for name, column in table.columns.items()}
    if not columns:
        raise ColumnError("covariates has no column besides the users.", table="covariates")
    values = {name: np.where(at >= 0, column[at], np.nan) for name, column in columns.items()}
    notes: tuple[str, ...] = ()
    for name, column in values.items():
        lacking = int(np.isnan(column).sum())
        if lacking == len(users):
            raise InputError(f"no user evaluated has a value of {name!r}.", table="covariates", column=name)
        if lacking:
            notes += (f"{lacking:,} of {len(users):,} users have no {name} and count as average in it",)
    what, names = f"adjusted for {', '.join(columns)}", tuple(columns)
    if given is not None:
        means = _given_means(given, names)
        shown = ", ".join(f"{name} {mean:g}" for name, mean in zip(names, means, strict=True))
        said = f"{what}: the difference among users with a mean of {shown}"
    elif _reaches_beyond(table, at):
        means = np.array([float(np.nanmean(column)) for column in columns.values()])
        said = _of_table(what, len(table.ids), len(users))
    else:
        means, said = None, _as_they_are(what, "values", "covariate_means")
    return Covariates(names, np.stack(list(values.values()), axis=1), means, (said, *notes))


def strata_of(table: Table, given: Mapping[Any, float] | None, users: Array) -> UserStrata:
    """The strata of these users; `given` are known shares, which else come from users beyond these."""
    at = _places(table, users, "strata")
    cells = _labels(table)
    mine = np.append(cells, NO_LABEL)[at].astype(str)
    what = f"stratified by {', '.join(table.columns)}"
    lacking = int(np.count_nonzero(at < 0))
    if given is not None:
        shares: dict[object, float] = {_label(name): float(share) for name, share in given.items()}
        return UserStrata(mine, shares, (f"{what}: the difference with the shares given",))
    if not _reaches_beyond(table, at):
        notes = (f"{lacking:,} of {len(users):,} users are in no stratum and form one",) if lacking else ()
        return UserStrata(mine, None, (_as_they_are(what, "shares", "stratum_shares"), *notes))
    if lacking:
        raise InputError(
            f"{lacking:,} of {len(users):,} users evaluated are not in strata "
            f"(first: {users[at < 0].tolist()[0]!r}), whose users say how large each stratum is.",
            table="strata",
            hint="Add them to the table, or give stratum_shares=.",
        )
    held, counts = np.unique(cells.astype(str), return_counts=True)
    shares = dict(zip(held.tolist(), (counts / counts.sum()).tolist(), strict=True))
    return UserStrata(mine, shares, (_of_table(what, len(table.ids), len(users)),))


def _given_means(given: Mapping[str, float], names: tuple[str, ...]) -> Float:
    if set(given) != set(names):
        raise InputError(
            f"covariate_means names {sorted(map(str, given))}, the covariates are {sorted(names)}.",
            hint="Give one mean for each covariate.",
        )
    means: Float = np.array([float(given[name]) for name in names])
    if not np.isfinite(means).all():
        raise InputError(f"covariate_means must be finite, got {dict(given)}.")
    return means


def _reaches_beyond(table: Table, at: Int) -> bool:
    """Whether a table has users that were not evaluated."""
    return len(table.ids) > len(np.unique(at[at >= 0]))


def _as_they_are(what: str, of: str, choice: str) -> str:
    """The estimand where no more is known than the users evaluated show."""
    return caution(
        PopulationWarning,
        f"{what} at these users' {of}: holds for users with the same {of}, not for users at large, for whom "
        f"nothing is saved (give a table of more users than were evaluated, or {choice}=)",
    )


def _of_table(what: str, n_table: int, n: int) -> str:
    """The estimand where a table of more users says what is known."""
    text = f"{what}: the difference among the {n_table:,} users of the table"
    if n_table >= _MANY * n:
        return text
    left = max(0.0, 1.0 - n / n_table)
    return caution(PopulationWarning, f"{text}; for users beyond it {left:.0%} of that saving holds")


def _places(table: Table, users: Array, what: str) -> Int:
    """The row of each user in a table, -1 for one it lacks; a table that has none of them is an error."""
    ids = Ids(users if users.dtype.kind in "iuO" else users.astype(object))
    table.ids.same_kind(ids, what="user")
    at = table.ids.code_of(ids.values)
    if not (at >= 0).any():
        held = f"holds {table.ids.name(0)!r}, …" if len(table.ids) else "is empty"
        raise InputError(
            f"{what} has none of the {len(users):,} users evaluated ({users.tolist()[0]!r}, …): it {held}.",
            table=what,
            hint="Key it by the users of the evaluations (their cases, where no clusters= were given).",
        )
    return at


def _numbers(name: str, column: Array) -> Float:
    """A covariate as numbers, NaN where a cell is empty."""
    try:
        numbers: Float = np.array(
            [math.nan if cell == "" else float(cell) for cell in column.tolist()]
            if column.dtype.kind not in "fiub"
            else column,
            dtype=np.float64,
        )
    except (TypeError, ValueError) as error:
        raise ColumnError(
            f"the covariate {name!r} holds no numbers ({error}).",
            table="covariates",
            column=name,
            hint=f"Use it as a stratum: strata={name!r}; or leave the column out.",
        ) from None
    if np.isinf(numbers).any():
        raise InputError(f"the covariate {name!r} holds an infinite value.", table="covariates", column=name)
    return numbers


def _labels(table: Table) -> Array:
    """The stratum of each user of a table; several columns are crossed."""
    if not table.columns:
        raise ColumnError("strata has no column besides the users.", table="strata")
    parts = [[_label(cell) for cell in column.tolist()] for column in table.columns.values()]
    out = np.empty(len(table.ids), dtype=object)
    out[:] = [" / ".join(cells) for cells in zip(*parts, strict=True)]
    return out


def _label(cell: Any) -> str:
    if cell is None or cell == "" or (isinstance(cell, float) and math.isnan(cell)):
        return NO_LABEL
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
