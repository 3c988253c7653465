"""Checks of ids: whole, of one kind, spelled one way, in the right columns; and of time units."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator

import numpy as np

from recsys.audits.check_registry import CheckResult, check
from recsys.audits.evidence import Evidence, RawTable, users_of_lists
from recsys.audits.findings import Finding
from recsys.errors import Phrase
from recsys.ranks.sources import Factors
from recsys.records.arrays import Ids

_WRONG_ENCODING = re.compile("[\ufffd\ufeff\x00-\x1f\x7f-\x9f]|\u00c3[\u0080-\u00bf]|\u00e2\u20ac")
_FLOAT = re.compile(r"-?\d+\.0")
_ERROR_SHARE = 0.1  # of the unknown ids, those in another spelling from which on it is an error
_LEAST_TIMESTAMP = 1e8  # smaller numbers are not seconds since 1970
_POWER_TOLERANCE = 0.2  # of the ratio of two units, in powers of ten
_SWAP_MARGIN = 0.1  # how much better the other column must fit before columns look swapped


@check("ids")
def whitespace_in_ids(e: Evidence) -> CheckResult:
    """Ids that begin or end with a blank, so that they match nothing."""
    return _flag_ids(
        e,
        lambda text: text != text.strip(),
        "begin or end with a blank",
        "Strip them where the table is read: .str.strip().",
    )


@check("ids")
def ids_like_floats(e: Evidence) -> CheckResult:
    """Ids that are the text of a float, such as '12.0'."""
    return _flag_ids(
        e,
        lambda text: _FLOAT.fullmatch(text) is not None,
        "are the text of a float",
        "Turn the column into whole numbers before it becomes text: .astype('Int64').astype(str).",
    )


@check("ids")
def misread_encoding(e: Evidence) -> CheckResult:
    """Ids with signs of text that was read in the wrong encoding."""
    return _flag_ids(
        e,
        lambda text: _WRONG_ENCODING.search(text) is not None,
        "hold control characters or the marks of a wrong encoding",
        Phrase("Read the file as UTF-8 ({read_file.encoding='utf-8-sig'} ")
        + "for one that starts with a byte order mark).",
    )


def _flag_ids(e: Evidence, is_odd: Callable[[str], bool], fault: str, todo: str) -> Iterator[Finding]:
    """One finding per table and column with odd ids."""
    columns = [
        (side, column, _ids(raw, column)) for side, raw in e.raw.items() for column in ("user", "item")
    ]
    if e.ranked is not None and not e.is_source:
        columns += [
            ("lists", "user", users_of_lists(e.ranked.lists)),
            ("lists", "item", e.ranked.lists.items),
        ]
    for table, column, ids in columns:
        odd = [value for value in ids.values.tolist() if is_odd(value)] if ids.kind == "str" else []
        if odd:
            yield Finding(
                "warning",
                f"{len(odd):,} of {len(ids):,} {column} ids of {table} {fault}",
                len(odd),
                tuple(map(repr, odd[: e.n_examples])),
                todo,
                {"table": table, "column": column},
            )


@check("ids")
def ids_that_differ_in_spelling(e: Evidence) -> Iterator[Finding]:
    """Ids of the two sides that are the same but for case, blanks, leading zeros or a trailing .0."""
    for column in ("user", "item"):
        train, test = (_ids(e.raw[side], column) for side in ("train", "test"))
        if train.kind != "str" or test.kind != "str":
            continue
        known = set(train.values.tolist())
        unknown = [value for value in test.values.tolist() if value not in known]
        by_normal_form = {_normalise(value): value for value in known}
        pairs = [(value, by_normal_form.get(_normalise(value))) for value in unknown]
        respelt = [f"{value!r} and {other!r}" for value, other in pairs if other is not None]
        if respelt:
            yield Finding(
                # A few may be different ids that differ in case only.
                "error" if len(respelt) >= _ERROR_SHARE * len(unknown) else "warning",
                f"{len(respelt):,} {column} ids of test are not in train, but are there in another spelling",
                len(respelt),
                tuple(respelt[: e.n_examples]),
                "Write ids the same way on both sides.",
                {"column": column},
            )


def _normalise(value: str) -> str:
    """An id without case, blanks, leading zeros and a trailing .0."""
    text = value.strip().casefold()
    text = text[:-2] if _FLOAT.fullmatch(text) else text
    return text.lstrip("0") or "0" if text.isdigit() else text


@check("ids")
def swapped_columns(e: Evidence) -> Iterator[Finding]:
    """Users and items swapped on one of the two sides."""
    train, test = e.raw["train"], e.raw["test"]
    yield from _swap_finding("test", (test.users, test.items), (train.users, train.items))
    if e.ranked is not None and not e.is_source:
        yield from _swap_finding(
            "lists", (users_of_lists(e.ranked.lists), e.ranked.lists.items), (e.users, e.items)
        )


def _swap_finding(name: str, sides: tuple[Ids, Ids], known: tuple[Ids, Ids]) -> Iterator[Finding]:
    own = (_share_known(sides[0], known[0]), _share_known(sides[1], known[1]))
    other = (_share_known(sides[0], known[1]), _share_known(sides[1], known[0]))
    # Cold users fit badly, too: both columns must fit at least as well when swapped.
    worse = other[0] < own[0] or other[1] < own[1]
    if worse or min(other) < 0.5 or sum(other) < sum(own) + _SWAP_MARGIN:
        return
    yield Finding(
        "error",
        f"{other[0]:.0%} of the users of {name} are items of train and {other[1]:.0%} of its items "
        f"are users: the columns look swapped ({own[0]:.0%} and {own[1]:.0%} fit as they are)",
        len(sides[0]),
        tuple(sides[0].values[:3].tolist()),
        f"Swap the user and item columns of {name}, or name them with columns=.",
        {"as_is": own, "swapped": other},
    )


def _share_known(ids: Ids, known: Ids) -> float:
    """The share of ids that are among the known ones."""
    if ids.kind != known.kind or len(ids) == 0 or len(known) == 0:
        return 0.0
    return float((known.code_of(ids.values) >= 0).mean())


@check("ids", "factors")
def swapped_factors(e: Evidence) -> CheckResult:
    """Matrices of users and items swapped: the ids fit only after a swap."""
    if not isinstance(e.ranked, Factors) or e.users.kind != "int" or e.items.kind != "int":
        return None
    n_users, n_items = len(e.ranked.users), len(e.ranked.items)
    if e.ranked.user_rows.named or e.ranked.item_rows.named:
        return None
    highest_user, highest_item = int(e.users.values.max()), int(e.items.values.max())
    fits = highest_user < n_users and highest_item < n_items
    fits_swapped = highest_user < n_items and highest_item < n_users
    if fits or not fits_swapped:
        return None
    return Finding(
        "error",
        f"the user matrix has {n_users:,} rows and the item matrix {n_items:,}, while users go up "
        f"to {highest_user:,} and items up to {highest_item:,}: the matrices look swapped",
        1,
        (),
        "Swap them: Factors(V, U).",
        {"n_users": n_users, "n_items": n_items},
    )


@check("ids")
def time_units_differ(e: Evidence) -> CheckResult:
    """Times that count seconds on one side and milliseconds on the other."""
    clocks = [e.raw[side].clock for side in ("train", "test")]
    if any(c is None or c.kind != "number" or c.missing.all() for c in clocks):
        return None
    train, test = (float(np.median(np.abs(c.values[~c.missing]))) for c in clocks if c is not None)
    low, high = sorted((train, test))
    ratio = high / max(low, 1.0)
    # Seconds since 1970 have ten digits; smaller numbers count events and may differ between the sides.
    if low < _LEAST_TIMESTAMP or all(
        abs(math.log10(ratio) - power) > _POWER_TOLERANCE for power in (3, 6, 9)
    ):
        return None
    return Finding(
        "error",
        f"times of one side are about {ratio:,.0f} times those of the other: seconds on one, "
        "milliseconds on the other?",
        1,
        (f"train {train:g}", f"test {test:g}"),
        "Bring both to one unit.",
        {"ratio": ratio},
    )


def _ids(raw: RawTable, column: str) -> Ids:
    return raw.users if column == "user" else raw.items
