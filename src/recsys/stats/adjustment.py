"""Less variance by covariates and strata of users: CUPED and post-stratification in one.

Both are a regression of the values on covariates and strata, evaluated at their known means. That is a
weighted mean of the values with weights `g` that do not depend on the values (generalised regression, or
calibration, in survey sampling), and its error is that of the residuals times `g`. So each unit gets one
value such that the mean of these values is the adjusted mean and s / sqrt(n) its error, and any test of a
mean can use them. With known shares p of the strata, known means M of the covariates x and their slopes b,
the adjusted mean of y is

    sum p mean(y) + (M - sum p mean(x)) b

over the means in each stratum (CUPED: Deng, Xu, Kohavi and Walker 2013; Särndal, Swensson and Wretman 1992).

Two models that are compared see the same users, so covariates are always balanced between them. A covariate
moves the estimate only if its population mean is known, from a table with more users than were evaluated or
as a given number. Otherwise the estimate stays and its variance loses what the covariate explains; it then
holds only for users with the same values. Strata and their shares work the same way.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from recsys.errors import ColumnError, IdTypeError, InputError, Phrase, UnknownNameError, came_as
from recsys.metrics.attributes import read_table
from recsys.records.arrays import Array, Bool, Float, Ids, Int, Table
from recsys.records.checks import is_number, to_floats
from recsys.records.facts import Note, note
from recsys.stats.bootstrap import unit_keys
from recsys.stats.pairing import Differences
from recsys.stats.results import Estimate, PopulationWarning, caution, t_interval
from recsys.stats.samples import linearised

# Singular values below this share of the largest are rounding: the columns depend on each other.
_RANK_TOLERANCE = 1e-10
NO_LABEL = "(missing)"
_STRATA = "Texts are for strata."
# With at least this many times the evaluated users, a table's mean is as good as the population's.
_POPULATION_FACTOR = 10
# The probability that a random sample is so far from the population means.
_RARE_CHANCE = 0.001


@dataclass(frozen=True, eq=False)
class Calibration:
    """Weights that bring covariates and strata to their known means and shares.

    `basis` holds the covariates within strata, orthonormal; `spent` counts the degrees of freedom of both.
    `distance` is how far the covariates' means are from the known ones: chi-square with `rank` degrees of
    freedom where the units are a random sample.
    """

    weights: Float
    codes: Int
    sizes: Float
    basis: Float
    to_slopes: Float
    distance: float

    @property
    def rank(self) -> int:
        return int(self.basis.shape[1])

    @property
    def spent(self) -> int:
        return self.rank + len(self.sizes) - 1

    def values(self, rows: Float) -> Float:
        """Rows with one value per unit: the mean of each is the adjusted mean, and s / sqrt(n) its error.

        Strata alone give the textbook variance within strata, covariates the sandwich variance (HC1).
        """
        n = rows.shape[1]
        residuals = _centre_within_strata(rows, self.codes, self.sizes)
        residuals -= (residuals @ self.basis) @ self.basis.T
        if self.rank:
            scale: Float = np.full(n, math.sqrt((n - 1.0) / (n - 1.0 - self.spent)))
        else:
            scale = np.sqrt((n - 1.0) / n * self.sizes / (self.sizes - 1.0))[self.codes]
        means: Float = rows @ self.weights / n
        return means[:, None] + scale * self.weights * residuals

    def slopes(self, values: Float) -> Float:
        """The regression slope of each covariate; 0 for one that is constant within strata."""
        slopes: Float = self.to_slopes @ (self.basis.T @ values)
        return slopes


def calibrate(
    covariates: Float,
    means: Float | None = None,
    codes: Int | None = None,
    shares: Float | None = None,
    labels: Array | None = None,
) -> Calibration:
    """Weights for units x covariates (possibly no column) and strata codes 0, 1, … (default: one stratum).

    Without `means` the covariates keep their sample means within strata; without `shares` the strata keep
    theirs. Then all weights are 1 and only the variance is adjusted. `labels` name the strata in errors.
    """
    n, k = covariates.shape
    strata = np.zeros(n, dtype=np.int64) if codes is None else codes
    sizes = np.bincount(strata).astype(np.float64)
    if codes is not None and sizes.min() < 2:
        name = int(sizes.argmin()) if labels is None else labels.tolist()[int(sizes.argmin())]
        raise InputError(
            f"stratum {name!r} has fewer than 2 users.", hint="Merge strata; use numbers as covariates."
        )
    target_shares = sizes / n if shares is None else shares
    centred = _centre_within_strata(covariates.T, strata, sizes).T
    spread = np.sqrt((centred**2).mean(axis=0))
    # A column that is constant up to rounding explains nothing; the others are scaled to unit variance.
    constant = spread <= 1e-12 * np.abs(covariates).max(axis=0, initial=0.0)
    scale = np.where(constant, 1.0, spread)
    left_vectors, singular_values, right_vectors = np.linalg.svd(
        np.where(constant, 0.0, centred / scale), full_matrices=False
    )
    rank = int(np.count_nonzero(singular_values > _RANK_TOLERANCE * singular_values.max(initial=0.0)))
    if n - len(sizes) - rank < 2:
        raise InputError(
            f"{n} users are too few for {k} covariate(s)"
            + (f" and {len(sizes)} strata." if codes is not None else ".")
        )
    basis, to_slopes = (
        left_vectors[:, :rank],
        right_vectors[:rank].T / singular_values[:rank] / scale[:, None],
    )
    weights = (target_shares * n / sizes)[strata]
    shift = np.zeros(rank)
    if means is not None:
        stratum_means = np.stack([np.bincount(strata, weights=column) / sizes for column in covariates.T])
        shift = (means - stratum_means @ target_shares) @ to_slopes
        weights = weights + n * (basis @ shift)
    return Calibration(weights, strata, sizes, basis, to_slopes, float(n**2 * (shift @ shift)))


def _centre_within_strata(rows: Float, codes: Int, sizes: Float) -> Float:
    """Rows minus their mean in each stratum."""
    if len(sizes) == 1:
        return np.asarray(rows - rows.mean(axis=1, keepdims=True), dtype=np.float64)
    centred: Float = np.empty(rows.shape)
    for row, centred_row in zip(rows, centred, strict=True):
        centred_row[:] = row - (np.bincount(codes, weights=row) / sizes)[codes]
    return centred


@dataclass(frozen=True)
class Adjusted:
    """An estimate with less variance than the plain mean, and the share of variance saved."""

    estimate: Estimate
    plain: Estimate
    variance_saved: float
    coefficients: tuple[float, ...] = ()


def covariate_adjusted(
    values: npt.ArrayLike,
    covariates: npt.ArrayLike,
    population_means: npt.ArrayLike,
    *,
    confidence: float = 0.95,
) -> Adjusted:
    """Mean adjusted by covariates (one column each) whose population means are known, as in CUPED.

    Covariates must not depend on the model: activity, past taste for popular items; for differences of two
    models also anything known before either was trained.
    """
    y = _finite_vector(values, "values")
    x = to_floats(covariates, "covariates", _STRATA)
    if x.ndim not in (1, 2) or len(x) != len(y):
        raise InputError(
            f"there are {len(y)} values and covariates of shape {x.shape}.",
            hint=f"Pass one row per value and one column per covariate: ({len(y)},) or ({len(y)}, k).",
        )
    x = x.reshape(len(y), -1)
    means = np.atleast_1d(to_floats(population_means, "population_means", _STRATA))
    if means.shape != (x.shape[1],) or not (np.isfinite(x).all() and np.isfinite(means).all()):
        raise InputError(
            f"covariates and their means must be finite, one mean per covariate: {x.shape[1]} covariate(s), "
            f"means {means.tolist()}.",
            hint="Pass population_means in the order of the columns.",
        )
    calibration = calibrate(x, means)
    return _adjusted_result(calibration, y, confidence, tuple(calibration.slopes(y).tolist()))


def post_stratified(
    values: npt.ArrayLike,
    strata: npt.ArrayLike,
    shares: Mapping[object, float],
    *,
    confidence: float = 0.95,
) -> Adjusted:
    """Mean over strata (activity bands, countries) weighted by their known shares of the population."""
    y = _finite_vector(values, "values")
    given: Any = strata
    if isinstance(given, Mapping) or not hasattr(given, "__len__") or getattr(given, "ndim", 1) == 0:
        raise came_as("strata", given, hint="Pass one label per value, in the order of values.")
    labels = given.tolist() if hasattr(given, "tolist") else list(given)
    if len(labels) != len(y):
        raise InputError(
            f"there are {len(y)} values and {len(labels)} strata.",
            hint="Pass one label per value, in the order of values.",
        )
    for row, label in enumerate(labels):
        if not (isinstance(label, str) or (is_number(label) and not math.isnan(label))):
            raise InputError(
                f"strata hold {label!r}.",
                row=row,
                hint="A stratum is a text or a number; give values without one a stratum of their own.",
            )
    if len({isinstance(label, str) for label in labels}) > 1:
        kinds = sorted({type(label).__name__ for label in labels})
        raise IdTypeError(
            f"strata hold {' and '.join(kinds)}, so some would match no share.",
            hint="Make them one type, such as [str(label) for label in strata].",
        )
    names, codes = np.unique(np.asarray(labels), return_inverse=True)
    calibration = calibrate(np.empty((len(y), 0)), None, codes, known_shares(names, shares), names)
    return _adjusted_result(calibration, y, confidence, ())


def known_shares(labels: Array, shares: Mapping[object, float]) -> Float:
    """Shares in the order of the strata seen; both must name the same strata."""
    if not isinstance(shares, Mapping):
        raise came_as("shares", shares, hint="Pass {stratum: share}, such as {'new': 0.3, 'old': 0.7}.")
    names = labels.tolist()
    if set(names) != {name for name, share in shares.items() if share != 0}:
        raise InputError(
            f"strata seen {names} and shares given {sorted(map(str, shares))} do not match.",
            hint="Merge strata, so that each has users here and a share of the population.",
        )
    values = np.array([shares[name] for name in names], dtype=np.float64)
    if not (values > 0).all() or not math.isclose(float(values.sum()), 1.0, rel_tol=1e-9):
        raise InputError(f"the shares must be positive and add up to 1, got {values.tolist()}.")
    return values


def _adjusted_result(
    calibration: Calibration, y: Float, confidence: float, coefficients: tuple[float, ...]
) -> Adjusted:
    n = len(y)
    plain = _mean_estimate(y, n - 1, confidence)
    estimate = _mean_estimate(calibration.values(y[None, :])[0], n - 1 - calibration.spent, confidence)
    return Adjusted(
        estimate, plain, variance_saved_share(estimate.standard_error, plain.standard_error), coefficients
    )


def _mean_estimate(values: Float, df: int, confidence: float) -> Estimate:
    mean, error = float(values.mean()), float(values.std(ddof=1)) / math.sqrt(len(values))
    return Estimate(mean, error, t_interval(mean, error, df, confidence), len(values))


def variance_saved_share(error: float, unadjusted_error: float) -> float:
    """The share of variance that an adjustment saves; below 0 if it costs more than it explains."""
    return 1.0 - (error / unadjusted_error) ** 2 if unadjusted_error > 0 else 0.0


def _finite_vector(values: npt.ArrayLike, what: str) -> Float:
    array = to_floats(values, what, _STRATA)
    if array.ndim != 1 or len(array) < 2 or not np.isfinite(array).all():
        raise InputError(f"{what} must be at least two finite numbers in one dimension.")
    return array


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
    notes: tuple[Note, ...]


@dataclass(frozen=True, eq=False)
class UserStrata:
    """The stratum of each unit, population shares if known (else None), and notes on the estimand."""

    labels: Array
    shares: Mapping[object, float] | None
    notes: tuple[Note, ...]


def lookup_covariates(table: Table, known_means: Mapping[str, float] | None, users: Array) -> Covariates:
    """The covariates of these users; `known_means` may else come from further users in the table."""
    row_of_user = _user_rows(table, users, "covariates")
    columns = {name: _covariate_numbers(name, column) for name, column in table.columns.items()}
    if not columns:
        raise ColumnError("covariates has no column other than the users.", table="covariates")
    values = {
        name: np.where(row_of_user >= 0, column[row_of_user], np.nan) for name, column in columns.items()
    }
    notes: tuple[Note, ...] = ()
    for name, column in values.items():
        n_missing = int(np.isnan(column).sum())
        if n_missing == len(users):
            raise InputError(f"no user evaluated has a value of {name!r}.", table="covariates", column=name)
        if n_missing:
            notes += (note("missing_covariate", n_missing=n_missing, n=len(users), name=name),)
    adjusted_for, names = f"adjusted for {', '.join(columns)}", tuple(columns)
    if known_means is not None:
        if set(known_means) != set(names):
            raise InputError(
                f"covariate_means names {sorted(map(str, known_means))}, the covariates are {sorted(names)}.",
                hint="Give one mean for each covariate.",
            )
        means = np.array([float(known_means[name]) for name in names])
        if not np.isfinite(means).all():
            raise InputError(f"covariate_means must be finite, got {dict(known_means)}.")
        estimand = note("means_given", what=adjusted_for, means=dict(zip(names, means.tolist(), strict=True)))
    elif _has_other_users(table, row_of_user):
        means = np.array([float(np.nanmean(column)) for column in columns.values()])
        estimand = _table_users_note(adjusted_for, len(table.ids), len(users))
    else:
        means, estimand = None, _same_users_caution(adjusted_for, "values", "covariate_means")
    return Covariates(names, np.stack(list(values.values()), axis=1), means, (estimand, *notes))


def lookup_strata(table: Table, known_shares: Mapping[Any, float] | None, users: Array) -> UserStrata:
    """The strata of these users; `known_shares` may else come from further users in the table."""
    row_of_user = _user_rows(table, users, "strata")
    if not table.columns:
        raise ColumnError("strata has no column other than the users.", table="strata")
    # Several columns are crossed.
    columns = [[_cell_label(cell) for cell in column.tolist()] for column in table.columns.values()]
    labels = np.empty(len(table.ids), dtype=object)
    labels[:] = [" / ".join(cells) for cells in zip(*columns, strict=True)]
    user_labels = np.append(labels, NO_LABEL)[row_of_user].astype(str)
    stratified_by = f"stratified by {', '.join(table.columns)}"
    n_missing = int(np.count_nonzero(row_of_user < 0))
    if known_shares is not None:
        shares: dict[object, float] = {
            _cell_label(name): float(share) for name, share in known_shares.items()
        }
        return UserStrata(user_labels, shares, (note("shares_given", what=stratified_by),))
    if not _has_other_users(table, row_of_user):
        notes = (note("missing_strata", n_missing=n_missing, n=len(users)),) if n_missing else ()
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


def _has_other_users(table: Table, row_of_user: Int) -> bool:
    """Whether the table has users that were not evaluated."""
    return len(table.ids) > len(np.unique(row_of_user[row_of_user >= 0]))


def _same_users_caution(what: str, of: str, option: str) -> Note:
    """Warn that the estimate holds for users like the evaluated ones only; return the note."""
    return caution(PopulationWarning, "same_users", what=what, of=of, option=option)


def _table_users_note(adjustment: str, n_table: int, n_evaluated: int) -> Note:
    """Describe the estimand of a table with more users; warn if they are too few to stand for everybody."""
    if n_table >= _POPULATION_FACTOR * n_evaluated:
        return note("table_users", what=adjustment, n_table=n_table, share_left=None)
    share_left = max(0.0, 1.0 - n_evaluated / n_table)
    return caution(PopulationWarning, "table_users", what=adjustment, n_table=n_table, share_left=share_left)


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
            hint=Phrase("Use it as a stratum: {compare.strata=}; or leave the column out.", strata=name),
        ) from None
    if np.isinf(numbers).any():
        raise InputError(f"the covariate {name!r} holds an infinite value.", table="covariates", column=name)
    return numbers


def _cell_label(cell: Any) -> str:
    if cell is None or cell == "" or (isinstance(cell, float) and math.isnan(cell)):
        return NO_LABEL
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


@dataclass(frozen=True, eq=False)
class Adjustment:
    """Covariates and strata of every evaluated unit, with their known population means and shares."""

    users: Array
    covariates: Covariates
    strata: UserStrata | None
    _cache: dict[bytes, tuple[Calibration, tuple[Note, ...]]] = field(default_factory=dict)

    def pairs(self, differences: Differences) -> tuple[Differences, float]:
        """The pairs of a row adjusted, one per unit, and the share of variance saved."""
        sides = differences.sides
        keys = sides.keys[sides.weights[0] != 0]
        calibration, notes = self._calibration(np.isin(unit_keys(self.users), keys))
        unadjusted = np.stack([linearised(sides, row, plain=True) for row in range(2)])
        adjusted = calibration.values(unadjusted)
        spreads = (float((first - second).std(ddof=1)) for first, second in (adjusted, unadjusted))
        notes = differences.notes + notes
        pairs = Differences(adjusted[0], adjusted[1], None, keys, None, notes, calibration.spent)
        return pairs, variance_saved_share(*spreads)

    def values(self, rows: Float, users: Array) -> Float:
        """Rows with one value per user (such as runs), adjusted."""
        return self._calibration(np.isin(self.users, users))[0].values(rows)

    def _calibration(self, present: Bool) -> tuple[Calibration, tuple[Note, ...]]:
        """The weights of a row's units, with notes; computed once for all rows with the same units."""
        from scipy.special import chdtrc

        key = np.packbits(present).tobytes()
        if key in self._cache:
            return self._cache[key]
        known = self.covariates
        x = known.values[present]
        sample_means = np.nansum(x, axis=0) / np.maximum(np.count_nonzero(~np.isnan(x), axis=0), 1)
        x = np.where(np.isnan(x), sample_means if known.means is None else known.means, x)
        labels, codes, shares = None, None, None
        notes = known.notes
        if self.strata is not None:
            labels, codes = np.unique(self.strata.labels[present], return_inverse=True)
            shares = None if self.strata.shares is None else known_shares(labels, self.strata.shares)
            notes += self.strata.notes
        calibration = calibrate(x, known.means, codes, shares, labels)
        n_idle = len(known.names) - calibration.rank
        if n_idle:
            notes += (note("idle_covariates", n=n_idle, names=known.names),)
        if (
            known.means is not None
            and calibration.rank
            and chdtrc(calibration.rank, calibration.distance) < _RARE_CHANCE
        ):
            # The adjustment extrapolates along a line.
            pairs = zip(sample_means.tolist(), known.means.tolist(), strict=True)
            means = dict(zip(known.names, pairs, strict=True))
            notes += (caution(PopulationWarning, "no_random_sample", means=means),)
        self._cache[key] = calibration, notes
        return self._cache[key]
