"""Covariates and strata from tables of users: read them, look users up by id, and describe the estimand.

A table with more users than were evaluated describes the population: its means and shares count as known. A
table of the evaluated users alone describes only these.
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
# With at least this many times the evaluated users, a table's mean is as good as the population's.
_POPULATION_FACTOR = 10


def read_user_tables(choices: Mapping[str, Any]) -> dict[str, Any]:
    """The options with covariates= and strata= as tables; strata= may name a column of covariates=."""
    options = dict(choices)
    covariates, strata = (choices.get(name) for name in ("covariates", "strata"))
    table = None if covariates is None else read_table(_series_as_columns(covariates), table="users")
    if isinstance(strata, str):
        columns = {} if table is None else dict(table.columns)
        if table is None or strata not in columns:
            raise UnknownNameError("stratum", strata, columns, hint="Pass covariates= with such a column.")
        strata = Table(table.ids, {strata: columns.pop(strata)})
        table = Table(table.ids, columns) if columns else None
    elif strata is not None:
        strata = read_table(_series_as_columns(strata), table="users")
    return options | {
        name: table_read
        for name, table_read in (("covariates", table), ("strata", strata))
        if name in options
    }


def _series_as_columns(data: Any) -> Any:
    """A Series as {its name: {user: value}}."""
    if getattr(data, "ndim", 2) == 1 and hasattr(data, "to_dict"):
        return {str(data.name or "value"): data.to_dict()}
    return data


@dataclass(frozen=True, eq=False)
class Covariates:
    """Units x covariates (NaN: unknown), population means if known (else None), and notes on the estimand."""

    names: tuple[str, ...]
    values: Float
    means: Float | None
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class UserStrata:
    """The stratum of each unit, population shares if known (else None), and notes on the estimand."""

    labels: Array
    shares: Mapping[object, float] | None
    notes: tuple[str, ...]


def lookup_covariates(table: Table, known_means: Mapping[str, float] | None, users: Array) -> Covariates:
    """The covariates of these users; `known_means` may else come from further users in the table."""
    row_of_user = _user_rows(table, users, "covariates")
    columns = {name: _covariate_numbers(name, column) for name, column in table.columns.items()}
    if not columns:
        raise ColumnError("covariates has no column besides the users.", table="covariates")
    values = {
        name: np.where(row_of_user >= 0, column[row_of_user], np.nan) for name, column in columns.items()
    }
    notes: tuple[str, ...] = ()
    for name, column in values.items():
        n_missing = int(np.isnan(column).sum())
        if n_missing == len(users):
            raise InputError(f"no user evaluated has a value of {name!r}.", table="covariates", column=name)
        if n_missing:
            notes += (f"{n_missing:,} of {len(users):,} users have no {name} and count as average in it",)
    adjusted_for, names = f"adjusted for {', '.join(columns)}", tuple(columns)
    if known_means is not None:
        means = _check_means(known_means, names)
        listed = ", ".join(f"{name} {mean:g}" for name, mean in zip(names, means, strict=True))
        estimand = f"{adjusted_for}: the difference among users with a mean of {listed}"
    elif _has_other_users(table, row_of_user):
        means = np.array([float(np.nanmean(column)) for column in columns.values()])
        estimand = _table_users_note(adjusted_for, len(table.ids), len(users))
    else:
        means, estimand = None, _same_users_caution(adjusted_for, "values", "covariate_means")
    return Covariates(names, np.stack(list(values.values()), axis=1), means, (estimand, *notes))


def lookup_strata(table: Table, known_shares: Mapping[Any, float] | None, users: Array) -> UserStrata:
    """The strata of these users; `known_shares` may else come from further users in the table."""
    row_of_user = _user_rows(table, users, "strata")
    labels = _stratum_labels(table)
    user_labels = np.append(labels, NO_LABEL)[row_of_user].astype(str)
    stratified_by = f"stratified by {', '.join(table.columns)}"
    n_missing = int(np.count_nonzero(row_of_user < 0))
    if known_shares is not None:
        shares: dict[object, float] = {
            _cell_label(name): float(share) for name, share in known_shares.items()
        }
        return UserStrata(user_labels, shares, (f"{stratified_by}: the difference with the shares given",))
    if not _has_other_users(table, row_of_user):
        notes = (
            (f"{n_missing:,} of {len(users):,} users are in no stratum and form one",) if n_missing else ()
        )
        return UserStrata(
            user_labels, None, (_same_users_caution(stratified_by, "shares", "stratum_shares"), *notes)
        )
    if n_missing:
        raise InputError(
            f"{n_missing:,} of {len(users):,} users evaluated are not in strata "
            f"(first: {users[row_of_user < 0].tolist()[0]!r}), whose users say how large each stratum is.",
            table="strata",
            hint="Add them to the table, or give stratum_shares=.",
        )
    strata, counts = np.unique(labels.astype(str), return_counts=True)
    shares = dict(zip(strata.tolist(), (counts / counts.sum()).tolist(), strict=True))
    return UserStrata(user_labels, shares, (_table_users_note(stratified_by, len(table.ids), len(users)),))


def _check_means(known_means: Mapping[str, float], names: tuple[str, ...]) -> Float:
    if set(known_means) != set(names):
        raise InputError(
            f"covariate_means names {sorted(map(str, known_means))}, the covariates are {sorted(names)}.",
            hint="Give one mean for each covariate.",
        )
    means: Float = np.array([float(known_means[name]) for name in names])
    if not np.isfinite(means).all():
        raise InputError(f"covariate_means must be finite, got {dict(known_means)}.")
    return means


def _has_other_users(table: Table, row_of_user: Int) -> bool:
    """Whether the table has users that were not evaluated."""
    return len(table.ids) > len(np.unique(row_of_user[row_of_user >= 0]))


def _same_users_caution(what: str, of: str, option: str) -> str:
    """Warn that the estimate holds for users like the evaluated ones only; return the note."""
    return caution(
        PopulationWarning,
        f"{what} at these users' {of}: holds for users with the same {of}, not for users at large, for whom "
        f"nothing is saved (give a table of more users than were evaluated, or {option}=)",
    )


def _table_users_note(adjustment: str, n_table: int, n_evaluated: int) -> str:
    """Describe the estimand of a table with more users; warn if they are too few to stand for everybody."""
    text = f"{adjustment}: the difference among the {n_table:,} users of the table"
    if n_table >= _POPULATION_FACTOR * n_evaluated:
        return text
    share_left = max(0.0, 1.0 - n_evaluated / n_table)
    return caution(PopulationWarning, f"{text}; for users beyond it {share_left:.0%} of that saving holds")


def _user_rows(table: Table, users: Array, table_name: str) -> Int:
    """The row of each user in the table, -1 for users it lacks.

    Raises:
        InputError: if the table has none of the users.
    """
    ids = Ids(users if users.dtype.kind in "iuO" else users.astype(object))
    table.ids.same_kind(ids, what="user")
    rows = table.ids.code_of(ids.values)
    if not (rows >= 0).any():
        content = f"holds {table.ids.name(0)!r}, …" if len(table.ids) else "is empty"
        raise InputError(
            f"{table_name} has none of the {len(users):,} users evaluated ({users.tolist()[0]!r}, …): "
            f"it {content}.",
            table=table_name,
            hint="Key it by the users of the evaluations (their cases, where no clusters= were given).",
        )
    return rows


def _covariate_numbers(name: str, column: Array) -> Float:
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


def _stratum_labels(table: Table) -> Array:
    """The stratum of each user in the table; several columns are crossed."""
    if not table.columns:
        raise ColumnError("strata has no column besides the users.", table="strata")
    columns = [[_cell_label(cell) for cell in column.tolist()] for column in table.columns.values()]
    labels = np.empty(len(table.ids), dtype=object)
    labels[:] = [" / ".join(cells) for cells in zip(*columns, strict=True)]
    return labels


def _cell_label(cell: Any) -> str:
    if cell is None or cell == "" or (isinstance(cell, float) and math.isnan(cell)):
        return NO_LABEL
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
