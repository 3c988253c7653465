"""Small worlds for the scan kernels, and the definition of a scan in plain Python."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import strategies as st

from recsys import kernels

LEVELS = kernels.backends().cpu_levels

plain = st.sampled_from([0.0, 1.0, -1.0, 0.5, 2.0, -3.0, 0.1, 0.3])
# Neighbours in the last bit, float32's subnormals and extremes: where a fast pass cannot decide the order.
close = st.sampled_from([1.0, 1.0 + 2**-23, 1.0 - 2**-24, 1.0 + 2**-22, -1.0, 0.0])
tiny = st.sampled_from([0.0, 1e-45, -1e-45, 1e-40, 1e-38, 1.0, 3e-39])
huge = st.sampled_from([3e38, -3e38, 1e30, 1e-30, 1.0, 0.0])
wide64 = st.sampled_from([1e150, -1e150, 1e-160, 1e-200, 5e-324, 1.0, 1.0 + 2**-52, 0.0, 0.1])
any32 = st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=-1e6, max_value=1e6)


def draw_rows(draw, n_cases, n_items, most=6):
    rows = [
        sorted(draw(st.sets(st.integers(0, n_items - 1), max_size=most))) if n_items else []
        for _ in range(n_cases)
    ]
    return to_rows(rows)


def to_rows(rows):
    indptr = np.cumsum([0, *(len(row) for row in rows)], dtype=np.int64)
    return indptr, np.array([item for row in rows for item in row], np.int32)


@st.composite
def worlds(draw):
    n_cases, n_items, n_factors = draw(st.integers(0, 5)), draw(st.integers(0, 40)), draw(st.integers(0, 5))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    values = draw(
        st.sampled_from([plain, close, tiny, huge, any32, *([wide64] if dtype is np.float64 else [])])
    )

    def matrix(n_rows):
        pool = draw(
            st.lists(st.lists(values, min_size=n_factors, max_size=n_factors), min_size=1, max_size=8)
        )
        picks = draw(st.lists(st.integers(0, len(pool) - 1), min_size=n_rows, max_size=n_rows))
        array = np.array([pool[i] for i in picks], dtype).reshape(n_rows, n_factors)
        return np.asfortranarray(array) if draw(st.booleans()) else array

    options = {"ties": draw(st.sampled_from(["by_id", "by_id_desc"]))}
    if draw(st.booleans()):
        options["k"] = draw(st.integers(1, 45))
    if draw(st.booleans()) or "k" not in options:
        options["truth"] = draw_rows(draw, n_cases, n_items)
    if draw(st.booleans()):
        options["seen"] = draw_rows(draw, n_cases, n_items, most=n_items)
    if draw(st.booleans()):
        options["item_bias"] = np.array(draw(st.lists(plain, min_size=n_items, max_size=n_items)), np.float64)
    if draw(st.booleans()):
        options["never"] = np.array(
            draw(st.lists(st.booleans(), min_size=n_items, max_size=n_items)), np.bool_
        )
    if draw(st.integers(0, 4)) == 0:
        options["eligible"] = draw_rows(draw, n_cases, n_items, most=n_items)
    if draw(st.booleans()):
        options["item_rank"] = np.array(draw(st.permutations(range(n_items))), np.int32)
    return matrix(n_cases), matrix(n_items), options


def score(x, y, bias):
    total = 0.0
    for a, b in zip(x, y, strict=True):
        total = total + float(a) * float(b)
    return total + float(bias)


def row(rows, case):
    return rows[1][rows[0][case] : rows[0][case + 1]].tolist()


def oracle(users, items, options):
    """Every case on its own: score everything, sort, count."""
    n_items = len(items)
    bias = options.get("item_bias", np.zeros(n_items))
    never = options.get("never", np.zeros(n_items, bool))
    key = options.get("item_rank", np.arange(n_items))
    sign = -1 if options["ties"] == "by_id_desc" else 1
    lists, scores, above, tied, before, truth_scores, n_candidates = [], [], [], [], [], [], []
    for case, x in enumerate(users.tolist()):
        all_scores = [score(x, y, bias[i]) for i, y in enumerate(items.tolist())]
        seen = set(row(options["seen"], case)) if "seen" in options else set()
        allowed = set(row(options["eligible"], case)) if "eligible" in options else set(range(n_items))
        pool = [i for i in range(n_items) if i in allowed and i not in seen and not never[i]]
        n_candidates.append(len(pool))
        ranked = sorted(pool, key=lambda i: (-all_scores[i], sign * int(key[i])))[: options.get("k", 0)]
        lists.append(ranked)
        scores += [all_scores[i] for i in ranked]
        for i in row(options["truth"], case) if "truth" in options else []:
            truth_scores.append(all_scores[i])
            above.append(sum(all_scores[j] > all_scores[i] for j in pool) if i in pool else -1)
            level = [j for j in pool if all_scores[j] == all_scores[i]] if i in pool else []
            tied.append(len(level))
            before.append(sum((sign * int(key[j]), j) < (sign * int(key[i]), i) for j in level))
    indptr, listed = to_rows(lists)
    return kernels.ScanResult(
        indptr, listed, *(np.array(a) for a in (scores, above, tied, before, truth_scores, n_candidates))
    )


def assert_same(actual, expected, what=""):
    for name, mine, theirs in zip(kernels.ScanResult._fields, actual, expected, strict=True):
        assert mine.shape == np.shape(theirs), (what, name, mine.shape, np.shape(theirs))
        same = mine.astype(np.float64).tobytes() == np.asarray(theirs, np.float64).tobytes()
        assert same, (what, name, mine.tolist()[:40], np.asarray(theirs).tolist()[:40])


def variants():
    """Every way to run a scan; none may change a bit."""
    yield "reference", {"backend": "reference"}
    yield "reference, small blocks", {"backend": "reference", "memory_budget": 1000}
    for level in LEVELS:
        for prune in (True, False):
            for threads in (1, 2, 8) if level == LEVELS[-1] else (1,):
                yield (
                    f"{level}, prune={prune}, threads={threads}",
                    {"backend": "native", "cpu_level": level, "prune": prune, "threads": threads},
                )


def is_finite_world(users, items):
    f = max(1, items.shape[1])
    big = float(np.abs(users).max(initial=0)) * float(np.abs(items).max(initial=0))
    return math.isfinite(big) and f * big + 3 < 2.0**1023
