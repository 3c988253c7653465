"""Rows of factors as the fast pass reads them: scaled by powers of two, in half precision, with their norms.

A row is scaled to a largest magnitude in [1, 2): users each by their own power, items by one for the whole
catalogue and one more for their tile. Items stand in the order of their norms, longest first. With n terms
the fast score of scaled rows x, y is within

    c |x| |y| + a (|x|_1 + |y|_1) + n 2^-49

of the exact one. In one half-precision number a factor has a relative error of 2^-11, so c is 2^-10 + 2^-21 +
n 2^-22 and a is 2^-24; in two of them, the second scaled by 2^11, c is (n + 8) 2^-22 and a is 2^-34. What
tensor cores may lose in summing is n 2^-22: they truncate, by how much is not documented, and measured errors
are smaller by a factor of forty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from recsys.kernels.scan_problem import ScanProblem

TILE = 128
"""Items that share an exponent and a bound."""
WIDTHS = (16, 32, 64)
"""Rows are filled up with zeros to one of these, or to a multiple of the last: what tensor cores take."""
LOW = 11
"""Binary places the second half-precision number stands below the first."""
# Items shorter than this against the longest keep its exponent: float32 thresholds must not overflow.
SHORTEST = -60
STAGE_BYTES = 1 << 24
ROWS_AT_ONCE = 1 << 16
UP = 1 + 2.0**-20


class Doubt(NamedTuple):
    """Constants of the error bound."""

    c: float
    a: float
    e: float


def doubt_of(n_terms: int, *, split: bool) -> Doubt:
    """The bound for rows in one (or, split, two) half-precision numbers a factor; rounding up is included."""
    # 2^-21 covers thresholds, cuts and differences rounded to float32, against the longest score of the tile:
    # one beyond twice that cannot be near any of them.
    c = (n_terms + 8) * 2.0**-22 if split else 2.0**-10 + 2.0**-21 + n_terms * 2.0**-22
    return Doubt((c + 2.0**-21) * UP, 2.0 ** (-34 if split else -24) * UP, n_terms * 2.0**-49)


@dataclass(frozen=True, eq=False)
class PackedRows:
    """Scaled rows in half precision with bounds on their lengths (float32, rounded up)."""

    high: Any
    low: Any
    norm: Any
    norm_1: Any


@dataclass(frozen=True, eq=False)
class PackedItems:
    """The items that may be recommended, longest first; per tile the longest lengths and its scale."""

    rows: PackedRows
    scale: Any
    """Per tile, float32: scores in units of the catalogue times this are in units of the tile."""
    item_at: Any
    """The item at each position, int64."""
    position_of: Any
    """The position of each item, -1 where it may not be recommended."""
    tie_rank: Any
    """Of every item: among equal scores the smaller one goes first."""
    reach: Any
    """What no item from a tile on can score for a user of norm 1, the last tile first (so it rises)."""
    doubt: Doubt
    exponent: int
    factors: Any
    """All items as given, for exact scores."""
    bias: Any

    @property
    def n(self) -> int:
        return int(self.item_at.shape[0])

    @property
    def n_tiles(self) -> int:
        return int(self.scale.shape[0])


def tensor_of(torch: Any, array: Any, device: Any) -> Any:
    """An array of any layout on the device, some rows at a time."""
    whole = torch.empty(array.shape, dtype=getattr(torch, array.dtype.name), device=device)
    n_rows = max(1, STAGE_BYTES * len(array) // max(1, array.nbytes))
    stages = _Stages(torch, whole, n_rows) if device.type == "cuda" and len(array) > n_rows else None
    for start in range(0, len(array), n_rows):
        part = array[start : start + n_rows]
        # What torch takes as it is: nothing read-only, and no negative stride, not even of a single row.
        if not (part.flags.c_contiguous and part.flags.writeable and min(part.strides) >= 0):
            part = np.array(part, order="C")
        to, given = whole[start : start + n_rows], torch.from_numpy(part)
        if stages is None:
            to.copy_(given)
        else:
            stages.send(given, to)
    return whole


class _Stages:
    """Two pieces of memory the device reads by itself: one is filled while the other is on its way."""

    def __init__(self, torch: Any, whole: Any, n_rows: int) -> None:
        shape = (n_rows, *whole.shape[1:])
        self._memory = [torch.empty(shape, dtype=whole.dtype, pin_memory=True) for _ in range(2)]
        self._sent = [torch.cuda.Event() for _ in range(2)]

    def send(self, given: Any, to: Any) -> None:
        memory, sent = self._memory[0][: len(given)], self._sent[0]
        sent.synchronize()
        memory.copy_(given)
        to.copy_(memory, non_blocking=True)
        sent.record()
        self._memory.reverse()
        self._sent.reverse()


def width_of(users: PackedRows, catalogue: PackedItems, tile: Any) -> Any:
    """Rows x tiles: how far fast scores may be off, in units of the tile; triton_kernels has it too."""
    items, doubt = catalogue.rows, catalogue.doubt
    lengths = users.norm[:, None] * items.norm[tile]
    return (doubt.c * lengths + doubt.a * (users.norm_1[:, None] + items.norm_1[tile]) + doubt.e) * UP


def exponent_of(largest: float) -> int:
    """The exponent that brings a number into [1, 2); 0 for 0."""
    return int(np.frexp(largest)[1]) - 1 if largest else 0


def scaled(torch: Any, values: Any, exponents: Any) -> Any:
    """Values * 2^-exponents in two steps, since 2^1074 is no float64."""
    half = torch.div(exponents, 2, rounding_mode="floor")
    return values * power_of_two(torch, -half) * power_of_two(torch, half - exponents)


def power_of_two(torch: Any, exponents: Any) -> Any:
    """2^exponents, made from its bits: no library function is trusted to be exact."""
    return ((exponents.to(torch.int64) + 1023) << 52).view(torch.float64)


def exponents_of(torch: Any, largest: Any) -> Any:
    """The same for a tensor."""
    return torch.where(largest > 0, torch.frexp(largest).exponent - 1, 0).to(torch.int64)


def pack_items(torch: Any, problem: ScanProblem, device: Any, *, split: bool) -> PackedItems:
    """Sort the candidates by norm and pack them tile by tile."""
    factors = tensor_of(torch, problem.items, device)
    bias = None if problem.bias is None else tensor_of(torch, problem.bias, device)
    kept = np.arange(problem.n_items) if problem.never is None else np.flatnonzero(~problem.never)
    items = torch.from_numpy(kept.astype(np.int64)).to(device)
    exponent = torch.tensor(exponent_of(problem.largest), device=device)

    def rows(which: Any) -> Any:
        return scaled(torch, with_bias(torch, factors[which].double(), bias, which), exponent)

    norms = torch.cat([_norm(torch, rows(part)) for part in items.split(ROWS_AT_ONCE)])
    item_at = items[torch.sort(norms, descending=True, stable=True).indices]
    n_terms = problem.items.shape[1] + (bias is not None)
    doubt = doubt_of(n_terms, split=split)
    n_tiles = -(-len(item_at) // TILE)
    high = _empty(torch, n_tiles * TILE, n_terms, device)
    low = _empty(torch, n_tiles * TILE, n_terms, device) if split else None
    scale, norm, norm_1 = (torch.zeros(n_tiles, dtype=torch.float32, device=device) for _ in range(3))
    for start in range(0, len(item_at), ROWS_AT_ONCE):
        values = rows(item_at[start : start + ROWS_AT_ONCE])
        missing = -len(values) % TILE
        values = torch.cat([values, values.new_zeros(missing, n_terms)])
        tiles = values.view(-1, TILE, n_terms)
        own = exponents_of(torch, tiles.abs().amax(dim=(1, 2))).clamp(SHORTEST, 0)
        tiles = scaled(torch, tiles, own[:, None, None])
        at = slice(start // TILE, start // TILE + len(tiles))
        scale[at] = power_of_two(torch, -own).float()
        norm[at] = up(torch, _norm(torch, tiles).amax(dim=1))
        norm_1[at] = up(torch, tiles.abs().sum(dim=2).amax(dim=1))
        values = tiles.reshape(-1, n_terms)
        fill(torch, high, low, start, values)
    position_of = torch.full((problem.n_items,), -1, dtype=torch.int64, device=device)
    position_of[item_at] = torch.arange(len(item_at), device=device)
    rank = np.empty(problem.n_items, np.int64)
    rank[np.argsort(problem.tie_key, kind="stable")] = np.arange(problem.n_items)
    return PackedItems(
        PackedRows(high, low, norm, norm_1),
        scale,
        item_at,
        position_of,
        torch.from_numpy(rank).to(device),
        _reach(torch, PackedRows(high, low, norm, norm_1), scale, doubt, n_terms),
        doubt,
        int(exponent),
        factors,
        bias,
    )


def _reach(torch: Any, rows: PackedRows, scale: Any, doubt: Doubt, n_terms: int) -> Any:
    """Lengths times lengths, and the doubt; a sum of magnitudes is at most sqrt(n) times the norm."""
    bound = (1 + doubt.c) * rows.norm.double()
    bound = (bound + doubt.a * (n_terms**0.5 + rows.norm_1.double()) + doubt.e) / scale.double() * UP
    # A running maximum is a slow kernel.
    from_the_end = np.maximum.accumulate(bound.cpu().numpy()[::-1])
    return torch.from_numpy(from_the_end).to(scale.device)


def pack_users(torch: Any, factors: Any, *, has_bias: bool, split: bool) -> tuple[PackedRows, Any]:
    """The users of a block, and the exponents they were scaled by."""
    values = factors.double()
    if has_bias:
        values = torch.cat([values, torch.ones_like(values[:, :1])], dim=1)
    largest = values.abs().amax(dim=1) if values.shape[1] else values.new_zeros(len(values))
    exponents = exponents_of(torch, largest)
    values = scaled(torch, values, exponents[:, None])
    high = _empty(torch, len(values), values.shape[1], values.device)
    low = _empty(torch, len(values), values.shape[1], values.device) if split else None
    fill(torch, high, low, 0, values)
    norm_1 = up(torch, values.abs().sum(dim=1))
    return PackedRows(high, low, up(torch, _norm(torch, values)), norm_1), exponents


def with_bias(torch: Any, values: Any, bias: Any, which: Any) -> Any:
    """The bias of an item is one more factor; every user has 1 there."""
    return values if bias is None else torch.cat([values, bias[which][:, None]], dim=1)


def fill(torch: Any, high: Any, low: Any, start: int, values: Any) -> None:
    """Round scaled rows to one or two half-precision numbers a factor."""
    at = (slice(start, start + len(values)), slice(0, values.shape[1]))
    high[at] = values.to(torch.float16)
    if low is not None:
        low[at] = ((values - high[at].double()) * 2.0**LOW).to(torch.float16)


def up(torch: Any, values: Any) -> Any:
    """float64 to float32, rounded up."""
    near = (values * (1 + 2.0**-30)).to(torch.float32)
    return torch.nextafter(near, torch.full_like(near, torch.inf))


def _norm(torch: Any, rows: Any) -> Any:
    return torch.sqrt((rows * rows).sum(dim=-1)) * (1 + 2.0**-30) + 2.0**-500


def _empty(torch: Any, n: int, n_terms: int, device: Any) -> Any:
    widest = WIDTHS[-1]
    width = next((w for w in WIDTHS if n_terms <= w), -(-n_terms // widest) * widest)
    return torch.zeros((n, width), dtype=torch.float16, device=device)
