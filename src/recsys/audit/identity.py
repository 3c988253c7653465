"""Whether ids are what they seem: whole, of one kind, spelt one way, in the right columns."""

from __future__ import annotations

import math
import re

import numpy as np

from recsys.audit.check_registry import Found, check
from recsys.audit.evidence import Evidence, RawTable
from recsys.audit.findings import Finding
from recsys.ranks.sources import Factors
from recsys.types import Ids

_MISREAD = re.compile("[\ufffd\ufeff\x00-\x1f\x7f-\x9f]|\u00c3[\u0080-\u00bf]|\u00e2\u20ac")
_FLOAT = re.compile(r"-?\d+\.0")
_MANY = 0.1
_LONG_AGO = 1e8
_NEAR = 0.2
_CLEAR = 0.1  # how much better the other column must fit before columns look swapped


@check()
def whitespace_in_ids(e: Evidence) -> Found:
    """Ids that begin or end with a blank, so that they match nothing."""
    return _odd(
        e,
        "whitespace_in_ids",
        lambda text: text != text.strip(),
        "begin or end with a blank",
        "Strip them where the table is read: .str.strip().",
    )


@check()
def ids_like_floats(e: Evidence) -> Found:
    """Ids that are the text of a float, such as '12.0'."""
    return _odd(
        e,
        "ids_like_floats",
        lambda text: _FLOAT.fullmatch(text) is not None,
        "are the text of a float",
        "Turn the column into whole numbers before it becomes text: .astype('Int64').astype(str).",
    )


@check()
def misread_encoding(e: Evidence) -> Found:
    """Ids with signs of text that was read in the wrong encoding."""
    return _odd(
        e,
        "misread_encoding",
        lambda text: _MISREAD.search(text) is not None,
        "hold control characters or the marks of a wrong encoding",
        "Read the file as UTF-8 (encoding='utf-8-sig' for one that starts with a byte order mark).",
    )


def _odd(e: Evidence, name: str, is_odd: object, words: str, todo: str) -> list[Finding]:
    out = []
    for table, column, ids in _columns(e):
        if ids.kind != "str":
            continue
        odd = [value for value in ids.values.tolist() if is_odd(value)]  # type: ignore[operator]
        if odd:
            out.append(
                Finding(
                    name,
                    "warning",
                    f"{len(odd):,} of {len(ids):,} {column} ids of {table} {words}",
                    len(odd),
                    tuple(map(repr, odd[: e.n_examples])),
                    todo,
                    {"table": table, "column": column},
                )
            )
    return out


@check()
def ids_that_differ_in_spelling(e: Evidence) -> Found:
    """Ids of the two sides that are the same but for case, blanks, leading zeros or a trailing .0."""
    out = []
    for column in ("user", "item"):
        train, test = (_ids(e.raw[side], column) for side in ("train", "test"))
        if train.kind != "str" or test.kind != "str":
            continue
        known = set(train.values.tolist())
        strangers = [value for value in test.values.tolist() if value not in known]
        if not strangers:
            continue
        by_form = {_form(value): value for value in known}
        alike = [(value, by_form[_form(value)]) for value in strangers if _form(value) in by_form]
        if alike:
            out.append(
                Finding(
                    "ids_that_differ_in_spelling",
                    # A few may be different things whose names differ in case only.
                    "error" if len(alike) >= _MANY * len(strangers) else "warning",
                    f"{len(alike):,} {column} ids of test are not in train, but are there in "
                    "another spelling",
                    len(alike),
                    tuple(f"{a!r} and {b!r}" for a, b in alike[: e.n_examples]),
                    "Write ids the same way on both sides.",
                    {"column": column},
                )
            )
    return out


def _form(value: str) -> str:
    bare = value.strip().casefold()
    bare = bare[:-2] if _FLOAT.fullmatch(bare) else bare
    return bare.lstrip("0") or "0" if bare.isdigit() else bare


@check()
def swapped_columns(e: Evidence) -> Found:
    """Users and items exchanged on one of the two sides."""
    train, test = e.raw["train"], e.raw["test"]
    finding = _swapped("test", (test.users, test.items), (train.users, train.items))
    found = [] if finding is None else [finding]
    if e.ranked is not None and not e.is_source:
        lists = _swapped("lists", (e.ranked.cases, e.ranked.items), (e.users, e.items))
        found += [] if lists is None else [lists]
    return found


def _swapped(name: str, sides: tuple[Ids, Ids], known: tuple[Ids, Ids]) -> Finding | None:
    own = (_share(sides[0], known[0]), _share(sides[1], known[1]))
    other = (_share(sides[0], known[1]), _share(sides[1], known[0]))
    # Cold users alone fit badly, too: both columns must fit at least as well the other way round.
    worse = other[0] < own[0] or other[1] < own[1]
    if worse or min(other) < 0.5 or sum(other) < sum(own) + _CLEAR:
        return None
    return Finding(
        "swapped_columns",
        "error",
        f"{other[0]:.0%} of the users of {name} are items of train and {other[1]:.0%} of its items "
        "are users: the "
        f"columns look swapped ({own[0]:.0%} and {own[1]:.0%} fit as they are)",
        len(sides[0]),
        tuple(sides[0].values[:3].tolist()),
        f"Exchange the user and item columns of {name}, or name them with columns=.",
        {"as_is": own, "swapped": other},
    )


def _share(these: Ids, those: Ids) -> float:
    """How many of these ids are among those."""
    if these.kind != those.kind or len(these) == 0 or len(those) == 0:
        return 0.0
    return float((those.code_of(these.values) >= 0).mean())


@check("factors")
def swapped_factors(e: Evidence) -> Found:
    """Matrices of users and items exchanged: the ids fit only the other way round."""
    if not isinstance(e.ranked, Factors) or e.users.kind != "int" or e.items.kind != "int":
        return None
    n_users, n_items = len(e.ranked.users), len(e.ranked.items)
    if e.ranked.user_rows.named or e.ranked.item_rows.named:
        return None
    most_user, most_item = int(e.users.values.max()), int(e.items.values.max())
    fits = most_user < n_users and most_item < n_items
    fits_swapped = most_user < n_items and most_item < n_users
    if fits or not fits_swapped:
        return None
    return Finding(
        "swapped_factors",
        "error",
        f"the user matrix has {n_users:,} rows and the item matrix {n_items:,}, while users go up "
        f"to {most_user:,} and "
        f"items up to {most_item:,}: the matrices look swapped",
        1,
        (),
        "Exchange them: Factors(V, U).",
        {"n_users": n_users, "n_items": n_items},
    )


@check()
def time_units_differ(e: Evidence) -> Found:
    """Times that count seconds on one side and milliseconds on the other."""
    clocks = [e.raw[side].clock for side in ("train", "test")]
    if any(c is None or c.kind != "number" or c.missing.all() for c in clocks):
        return None
    train, test = (float(np.median(np.abs(c.values[~c.missing]))) for c in clocks if c is not None)
    low, high = sorted((train, test))
    ratio = high / max(low, 1.0)
    # Seconds since 1970 have ten digits; small numbers are places in a row and may differ as they like.
    if low < _LONG_AGO or all(abs(math.log10(ratio) - power) > _NEAR for power in (3, 6, 9)):
        return None
    return Finding(
        "time_units_differ",
        "error",
        f"times of one side are about {ratio:,.0f} times those of the other: seconds on one, "
        "milliseconds on the "
        "other?",
        1,
        (f"train {train:g}", f"test {test:g}"),
        "Bring both to one unit.",
        {"ratio": ratio},
    )


def _columns(e: Evidence) -> list[tuple[str, str, Ids]]:
    """(table, column, ids) of everything that has ids."""
    out = [(side, column, _ids(raw, column)) for side, raw in e.raw.items() for column in ("user", "item")]
    if e.ranked is not None and not e.is_source:
        out += [("lists", "user", e.ranked.cases), ("lists", "item", e.ranked.items)]
    return out


def _ids(raw: RawTable, column: str) -> Ids:
    return raw.users if column == "user" else raw.items
