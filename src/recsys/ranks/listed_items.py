"""Lists of entries that stand for items, as lists of these items: several items of an entry are tied."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from recsys.errors import InputError
from recsys.inputs.ids import encode, object_array
from recsys.inputs.items_of import ItemsOf, Meaning
from recsys.inputs.rows import Rows, to_interactions
from recsys.ranks.ranked_truth import in_history
from recsys.ranks.rankings import RankingOptions
from recsys.records.arrays import Array, Bool, Ids, Int, Interactions, Lists, is_repeat, positions, runs

_NAMED = 20  # entries that the facts list


def as_items(
    lists: Lists, table: Any, truth: Interactions, how: RankingOptions, never: Ids | None, *, is_batch: bool
) -> Lists:
    """Return the items that the entries of lists stand for; those of one entry have one score.

    Items that the user had, that are excluded or not eligible leave the entry before. Of an entry that shares
    items with one above, what is left stays, unless both stand for that item alone: then it is a repeat. An
    entry without an item is an item of its own, which is not in the truth.

    Raises:
        InputError: no entry of the lists is in the table, none of its items is in the truth, or ranks that
            leave places out meet entries of several items.
    """
    found: Meaning = table.look_up(lists.items)
    n_items = found.sizes
    n_listed = np.ones(len(lists.items), dtype=np.int64)
    if (n_items != 1).any():
        n_listed = np.bincount(lists.codes, minlength=len(lists.items))
    if not is_batch and not (n_items * n_listed).any():
        _refuse_unknown(lists, table)
    found.items.same_kind(truth.items, what="item")
    if not is_batch and len(truth.items) and (found.items.code_of(truth.items.values) < 0).all():
        raise InputError(
            f"no item of items_of ({found.items.name(0)!r}, …) occurs in the truth "
            f"({truth.items.name(0)!r}, …).",
            table="items_of",
            column="item",
            hint="Both must have the same item ids; a mapping goes from the entry to its items.",
        )
    several = (n_listed > 0) & (n_items > 1)
    unknown = np.flatnonzero((n_listed > 0) & (n_items == 0))
    items, found = _with_unknown(found, lists.items, truth.items, unknown)
    facts = replace(lists.facts, **_facts(lists, n_listed, several, unknown))
    chosen = any(rule is not None for rule in (how.seen, how.eligible, never))
    if not several.any() and not chosen:
        first = np.append(found.codes, np.int32(0))[found.indptr[:-1]]
        return replace(lists, items=items, codes=first[lists.codes], facts=facts)
    if lists.ranks is not None:
        raise InputError(
            "the lists leave ranks out, and an entry of several items has no single place.",
            table="lists",
            column="rank",
            hint="Number the places of each list from 1, or pass scores.",
        )
    sizes = found.sizes[lists.codes]
    entry = np.repeat(np.arange(len(lists.codes)), sizes)
    item = found.codes[positions(found.indptr[lists.codes], sizes)]
    starts = np.concatenate([[0], np.cumsum(sizes)])[lists.indptr]
    # Without scores the place in the list is one: numbers that fall along all lists.
    score = (-np.arange(len(lists.codes), dtype=np.float64) if lists.scores is None else lists.scores)[entry]
    expanded = replace(lists, items=items, indptr=starts, codes=item, scores=score, facts=facts)
    keep = np.isin(item, found.codes[found.indptr[unknown]])
    keep |= _may_be_listed(expanded, how, never)
    left = _not_above(expanded, several[lists.codes][entry], np.flatnonzero(keep))
    n_left = len(np.unique(entry[left]))
    case = np.repeat(np.arange(len(lists.cases), dtype=np.int64), lists.sizes)
    return replace(
        expanded,
        indptr=np.searchsorted(left, starts),
        codes=item[left],
        scores=score[left],
        facts=replace(
            facts,
            entries_repeated=int(is_repeat(case * len(lists.items) + lists.codes).sum()),
            entries_used_up=len(lists.codes) - n_left,
        ),
    )


def entries_of(truth: Interactions, table: ItemsOf) -> Interactions:
    """Return the truth by entries: an item is the entry that stands for it and for the fewest others.

    An entry has the highest grade of its items; an item without an entry is one that is not listed.
    """
    meaning, names = table.meaning, table.entries.values
    entry = np.repeat(np.arange(len(names)), meaning.sizes)
    longest_first = [-len(str(name)) for name in names.tolist()]
    order = np.lexsort((entry, np.array(longest_first)[entry], meaning.sizes[entry], meaning.codes))
    first = order[runs(meaning.codes[order])[0]]  # every item of the table has a row
    at = meaning.items.code_of(truth.items.values)
    missing = np.flatnonzero(at < 0)
    own = _unused_ids(truth.items.values[missing], names, table.entries.kind, "no entry")
    entries, codes = encode(np.concatenate([names, own]), table="truth", column="item")
    of_item = codes[entry[first][at]]
    of_item[missing] = codes[len(names) :]
    case = np.repeat(np.arange(len(truth.cases), dtype=np.int32), truth.sizes)
    rows = Rows("truth", truth.cases, case, entries, of_item[truth.codes], grade=truth.grades)
    return replace(to_interactions(rows, negatives=True), clusters=truth.clusters)


def _refuse_unknown(lists: Lists, table: Any) -> NoReturn:
    """Raise the error about lists of which no entry stands for an item."""
    example = lists.items.name(lists.codes[0]) if len(lists.codes) else None
    known = getattr(table, "entries", None)
    problem = f"no entry of the lists ({example!r}, …) is in items_of"
    hint = "A mapping goes from the entry to its items; the entries of the lists are looked up as they are."
    if known is not None:
        problem += f" ({known.name(0)!r}, …)"
        if (table.meaning.items.code_of(lists.items.values) >= 0).any():
            hint = "The lists hold what items_of has as items: turn it round, {entry: items}."
        elif known.kind != lists.items.kind:
            hint = f"Its entries are {known.kind}, those of the lists {lists.items.kind}: make them one type."
    raise InputError(f"{problem}.", table="items_of", column="entry", hint=hint)


def _with_unknown(found: Meaning, entries: Ids, truth: Ids, unknown: Int) -> tuple[Ids, Meaning]:
    """Return all items, and the meaning in which an unknown entry is an item that nothing else is."""
    if not len(unknown):
        return found.items, found
    taken = np.concatenate([found.items.values, truth.values.astype(found.items.values.dtype)])
    names = _unused_ids(entries.values[unknown], taken, found.items.kind, "no item")
    both = np.concatenate([found.items.values, names])
    items, codes = encode(both, table="lists", column="item")
    sizes, n_items = found.sizes.copy(), len(found.items)
    known = np.flatnonzero(sizes)
    sizes[unknown] = 1
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    all_codes = np.zeros(indptr[-1], dtype=np.int32)
    all_codes[positions(indptr[known], sizes[known])] = codes[:n_items][found.codes]
    all_codes[indptr[unknown]] = codes[n_items:]
    return items, Meaning(items, indptr, all_codes)


def _unused_ids(values: Array, used: Array, kind: str, why: str) -> Array:
    """Return an id of a kind for each value, which follows from it and is not in use."""
    taken, ids = set(used.tolist()), list[Any]()
    for value in values.tolist():
        text, found = f"{value} ({why})", None
        while found is None or found in taken:
            digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=7).digest()
            found = text if kind == "str" else -1 - int.from_bytes(digest, "big")
            text += "'"
        taken.add(found)
        ids.append(found)
    return object_array(ids) if kind == "str" else np.array(ids, dtype=np.int64)


def _may_be_listed(lists: Lists, how: RankingOptions, never: Ids | None) -> Bool:
    """Return which entries their users may be shown."""
    may = np.ones(len(lists.codes), dtype=bool)
    if how.seen is not None:
        may &= ~in_history(lists, how.seen)
    if how.eligible is not None:
        may &= in_history(lists, how.eligible)
    if never is not None:
        never.same_kind(lists.items, what="item")
        may &= (never.code_of(lists.items.values) < 0)[lists.codes]
    return may


def _not_above(lists: Lists, of_group: Bool, at: Int) -> Int:
    """Return those of some entries whose item is not above; a repeat that no group has a part in stays."""
    case = np.repeat(np.arange(len(lists.cases), dtype=np.int64), lists.sizes)[at]
    key = case * len(lists.items) + lists.codes[at]
    order = np.argsort(key, kind="stable")
    starts, sizes = runs(key[order])
    first = np.repeat(order[starts], sizes)
    is_left = np.ones(len(at), dtype=bool)
    is_left[order] = (first == order) | ~(of_group[at][order] | of_group[at][first])
    return at[is_left]


def _facts(lists: Lists, n_listed: Int, several: Bool, unknown: Int) -> dict[str, Any]:
    """Return what is noticed of the entries: how many there are, without an item and with several."""
    names = [
        [lists.items.name(code) for code in codes[:_NAMED]] for codes in (unknown, np.flatnonzero(several))
    ]
    return {
        "entries": len(lists.codes),
        "entries_without_item": int(n_listed[unknown].sum()),
        "entries_of_several": int(n_listed[several].sum()),
        "unknown_entries": tuple(names[0]) or None,
        "shared_entries": tuple(names[1]) or None,
    }
