"""match_lists in NumPy: always available, and simple enough to be checked by reading.

It works in blocks, so that memory stays bounded; every other backend must give the same arrays.
"""

from __future__ import annotations

import numpy as np

from recsys.kernels.kernel_results import Bools, Int32s, Int64s, Matches

# Keys, their sorted copy and the filter of one block stay in a core's cache.
ENTRIES_PER_BLOCK = 1 << 16
# With this many cases per block, case * span fits an int64 for any two int32 items.
CASES_PER_BLOCK = 1 << 30


def match_lists(
    list_indptr: Int64s, list_items: Int32s, truth_indptr: Int64s, truth_items: Int32s
) -> Matches:
    """Find every list entry that is in the truth of its case; truth ascending and unique per case."""
    parts = []
    n_repeated, first_repeated = 0, -1
    for start, stop in _blocks(list_indptr):
        entries = slice(int(list_indptr[start]), int(list_indptr[stop]))
        judged = slice(int(truth_indptr[start]), int(truth_indptr[stop]))
        list_keys, truth_keys = _case_item_keys(
            (np.diff(list_indptr[start : stop + 1]), list_items[entries]),
            (np.diff(truth_indptr[start : stop + 1]), truth_items[judged]),
        )
        list_at, truth_at = _find_keys(list_keys, truth_keys)
        is_repeat = _repeat_flags(list_keys)
        if is_repeat is not None:
            if first_repeated < 0:
                first_repeated = entries.start + int(is_repeat.argmax())
            n_repeated += int(is_repeat.sum())
        repeat = np.zeros(list_at.size, np.bool_) if is_repeat is None else is_repeat[list_at]
        parts.append((list_at + entries.start, truth_at + judged.start, repeat))
    if not parts:
        parts.append((np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.bool_)))
    list_at, truth_at, repeat = (np.concatenate(column) for column in zip(*parts, strict=True))
    case = np.searchsorted(list_indptr, list_at, side="right").astype(np.int32) - np.int32(1)
    return Matches(list_at, truth_at, case, repeat, n_repeated, first_repeated)


def _blocks(indptr: Int64s) -> list[tuple[int, int]]:
    """Runs of whole cases with about ENTRIES_PER_BLOCK entries (one case may have more)."""
    blocks, start, n_cases = [], 0, indptr.size - 1
    while start < n_cases:
        reach = int(np.searchsorted(indptr, indptr[start] + ENTRIES_PER_BLOCK, side="right")) - 1
        stop = min(max(reach, start + 1), start + CASES_PER_BLOCK, n_cases)
        blocks.append((start, stop))
        start = stop
    return blocks


def _case_item_keys(*tables: tuple[Int64s, Int32s]) -> list[Int64s]:
    """One number per (case, item), ordered by case then item, for tables of (lengths, items)."""
    present = [items for _, items in tables if items.size]
    if not present:
        return [np.empty(0, np.int64) for _ in tables]
    low = min(int(items.min()) for items in present)
    span = max(int(items.max()) for items in present) - low + 1
    starts = np.arange(tables[0][0].size, dtype=np.int64) * span - low
    return [np.repeat(starts, lengths) + items for lengths, items in tables]


def _find_keys(keys: Int64s, sorted_keys: Int64s) -> tuple[Int64s, Int64s]:
    """Positions of the keys that occur in sorted_keys, and where they occur there."""
    # Most entries are in no truth: a small hash table rules them out before the binary search.
    n_bits = int(sorted_keys.size * 8).bit_length() + 1
    is_used = np.zeros(1 << n_bits, np.bool_)
    is_used[_hash_slots(sorted_keys, n_bits)] = True
    candidates = np.flatnonzero(is_used[_hash_slots(keys, n_bits)])
    candidate_keys = keys[candidates]
    place = np.searchsorted(sorted_keys, candidate_keys)
    place[place == sorted_keys.size] = 0
    is_found = (
        sorted_keys[place] == candidate_keys if sorted_keys.size else np.zeros(candidate_keys.size, np.bool_)
    )
    return candidates[is_found], place[is_found]


def _hash_slots(keys: Int64s, n_bits: int) -> Int64s:
    mixed = keys.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return (mixed >> np.uint64(64 - n_bits)).view(np.int64)


def _repeat_flags(keys: Int64s) -> Bools | None:
    """One flag per key: whether it occurred before; None if no key did."""
    if not _has_repeats(keys):
        return None
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    repeated = np.zeros(keys.size, np.bool_)
    repeated[order[1:][ordered[1:] == ordered[:-1]]] = True
    return repeated


def _has_repeats(keys: Int64s) -> bool:
    """Equal keys share a slot of a hash table, so only keys that lost their slot to another need a sort."""
    n_bits = int(keys.size * 8).bit_length() + 1
    slot = _hash_slots(keys, n_bits)
    index = np.arange(keys.size, dtype=np.int64)
    last_in_slot = np.empty(1 << n_bits, np.int64)
    last_in_slot[slot] = index
    winner = last_in_slot[slot]
    lost = np.flatnonzero(winner != index)
    losers = np.sort(keys[lost])
    return bool(np.any(keys[lost] == keys[winner[lost]]) or np.any(losers[1:] == losers[:-1]))
