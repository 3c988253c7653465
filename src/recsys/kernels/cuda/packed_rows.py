"""Rows of factors as the fast pass reads them: scaled by powers of two, in half precision, with their norms.

A row is scaled to a largest magnitude in [1, 2): users each by their own power, items by one for the whole
catalogue and one more for their tile. Items are ordered by norm, longest first. With n terms
the fast score of scaled rows x, y is within

    c |x| |y| + a (|x|_1 + |y|_1) + n 2^-49

of the exact one. In one half-precision number a factor has a relative error of 2^-11, so c is 2^-10 + 2^-21 +
n 2^-22 and a is 2^-24; in two of them, the second scaled by 2^11, c is (n + 8) 2^-22 and a is 2^-34. The
sums of tensor cores may be off by n 2^-22: they truncate, by how much is not documented, and measured errors
are smaller by a factor of forty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from recsys.kernels.backend import ScanProblem

TILE = 128
"""Items that share an exponent and a bound."""
WIDTHS = (16, 32, 64)
"""Rows are padded with zeros to one of these widths, or to a multiple of the last, for tensor cores."""
LOW_SHIFT = 11
"""The second half-precision number is scaled by this power of two."""
# Tiles of much shorter items than the longest keep this exponent: float32 thresholds must not overflow.
MIN_TILE_EXPONENT = -60
BUFFER_BYTES = 1 << 24
ROWS_PER_STEP = 1 << 16
ROUND_UP = 1 + 2.0**-20


class ErrorBound(NamedTuple):
    """Constants of the error bound."""

    c: float
    a: float
    e: float


def error_bound_of(n_terms: int, *, split: bool) -> ErrorBound:
    """Return the bound for one (split: two) half-precision numbers per factor; rounding is included."""
    # 2^-21 covers thresholds, cuts and differences rounded to float32, relative to the largest score of the
    # tile: a threshold above twice that cannot be near any of its scores.
    c = (n_terms + 8) * 2.0**-22 if split else 2.0**-10 + 2.0**-21 + n_terms * 2.0**-22
    return ErrorBound(
        (c + 2.0**-21) * ROUND_UP, 2.0 ** (-34 if split else -24) * ROUND_UP, n_terms * 2.0**-49
    )


@dataclass(frozen=True, eq=False)
class PackedRows:
    """Scaled rows in half precision with bounds on their lengths (float32, rounded up)."""

    high: Any
    low: Any
    norm: Any
    norm_1: Any


@dataclass(frozen=True, eq=False)
class PackedItems:
    """The items that may be recommended, longest first; per tile the largest norms and its scale."""

    rows: PackedRows
    scale: Any
    """Per tile, float32: scores in units of the catalogue times this are in units of the tile."""
    item_at: Any
    """The item at each position, int64."""
    position_of: Any
    """The position of each item, -1 if it may not be recommended."""
    tie_rank: Any
    """Of every item: among equal scores the smaller rank goes first."""
    reach: Any
    """Upper bounds of the scores from each tile on for a user of norm 1, the last tile first (ascending)."""
    error_bound: ErrorBound
    exponent: int
    factors: Any
    """All items, unpacked, for exact scores."""
    bias: Any

    @property
    def n(self) -> int:
        return int(self.item_at.shape[0])

    @property
    def n_tiles(self) -> int:
        return int(self.scale.shape[0])


def to_device(torch: Any, array: Any, device: Any) -> Any:
    """Copy an array of any layout to the device, some rows at a time."""
    tensor = torch.empty(array.shape, dtype=getattr(torch, array.dtype.name), device=device)
    n_rows = max(1, BUFFER_BYTES * len(array) // max(1, array.nbytes))
    buffers = _PinnedBuffers(torch, tensor, n_rows) if device.type == "cuda" and len(array) > n_rows else None
    for start in range(0, len(array), n_rows):
        part = array[start : start + n_rows]
        # torch takes no read-only array and no negative stride, not even of a single row.
        if not (part.flags.c_contiguous and part.flags.writeable and min(part.strides) >= 0):
            part = np.array(part, order="C")
        target, source = tensor[start : start + n_rows], torch.from_numpy(part)
        if buffers is None:
            target.copy_(source)
        else:
            buffers.send(source, target)
    return tensor


class _PinnedBuffers:
    """Two pinned buffers, which the device reads directly: one is filled while the other is copied."""

    def __init__(self, torch: Any, tensor: Any, n_rows: int) -> None:
        shape = (n_rows, *tensor.shape[1:])
        self._buffers = [torch.empty(shape, dtype=tensor.dtype, pin_memory=True) for _ in range(2)]
        self._events = [torch.cuda.Event() for _ in range(2)]

    def send(self, source: Any, target: Any) -> None:
        buffer, event = self._buffers[0][: len(source)], self._events[0]
        event.synchronize()
        buffer.copy_(source)
        target.copy_(buffer, non_blocking=True)
        event.record()
        self._buffers.reverse()
        self._events.reverse()


def error_width(users: PackedRows, catalogue: PackedItems, tile: Any) -> Any:
    """Return the error bound of fast scores, rows x tiles, in the tile's units; triton_kernels has it too."""
    items, error_bound = catalogue.rows, catalogue.error_bound
    norm_products = users.norm[:, None] * items.norm[tile]
    return (
        error_bound.c * norm_products
        + error_bound.a * (users.norm_1[:, None] + items.norm_1[tile])
        + error_bound.e
    ) * ROUND_UP


def exponent_of(largest: float) -> int:
    """Return the exponent that brings a number into [1, 2); 0 for 0."""
    return int(np.frexp(largest)[1]) - 1 if largest else 0


def scale_down(torch: Any, values: Any, exponents: Any) -> Any:
    """Return values * 2^-exponents, in two steps, since float64 cannot hold 2^1074."""
    half = torch.div(exponents, 2, rounding_mode="floor")
    return values * power_of_two(torch, -half) * power_of_two(torch, half - exponents)


def power_of_two(torch: Any, exponents: Any) -> Any:
    """Return 2^exponents from their bits, since library functions need not be exact."""
    return ((exponents.to(torch.int64) + 1023) << 52).view(torch.float64)


def exponents_of(torch: Any, largest: Any) -> Any:
    """Return `exponent_of` for a tensor."""
    return torch.where(largest > 0, torch.frexp(largest).exponent - 1, 0).to(torch.int64)


def pack_items(torch: Any, problem: ScanProblem, device: Any, *, split: bool) -> PackedItems:
    """Sort the candidates by norm and pack them tile by tile."""
    factors = to_device(torch, problem.items, device)
    bias = None if problem.bias is None else to_device(torch, problem.bias, device)
    candidates = np.arange(problem.n_items) if problem.never is None else np.flatnonzero(~problem.never)
    items = torch.from_numpy(candidates.astype(np.int64)).to(device)
    exponent = torch.tensor(exponent_of(problem.largest), device=device)

    def scaled_rows(which: Any) -> Any:
        return scale_down(torch, append_bias(torch, factors[which].double(), bias, which), exponent)

    norms = torch.cat([_norm_rounded_up(torch, scaled_rows(part)) for part in items.split(ROWS_PER_STEP)])
    item_at = items[torch.sort(norms, descending=True, stable=True).indices]
    n_terms = problem.items.shape[1] + (bias is not None)
    error_bound = error_bound_of(n_terms, split=split)
    n_tiles = -(-len(item_at) // TILE)
    high = _empty_rows(torch, n_tiles * TILE, n_terms, device)
    low = _empty_rows(torch, n_tiles * TILE, n_terms, device) if split else None
    scale, norm, norm_1 = (torch.zeros(n_tiles, dtype=torch.float32, device=device) for _ in range(3))
    for start in range(0, len(item_at), ROWS_PER_STEP):
        values = scaled_rows(item_at[start : start + ROWS_PER_STEP])
        n_padding = -len(values) % TILE
        values = torch.cat([values, values.new_zeros(n_padding, n_terms)])
        tiles = values.view(-1, TILE, n_terms)
        tile_exponents = exponents_of(torch, tiles.abs().amax(dim=(1, 2))).clamp(MIN_TILE_EXPONENT, 0)
        tiles = scale_down(torch, tiles, tile_exponents[:, None, None])
        tile_range = slice(start // TILE, start // TILE + len(tiles))
        scale[tile_range] = power_of_two(torch, -tile_exponents).float()
        norm[tile_range] = round_up(torch, _norm_rounded_up(torch, tiles).amax(dim=1))
        norm_1[tile_range] = round_up(torch, tiles.abs().sum(dim=2).amax(dim=1))
        values = tiles.reshape(-1, n_terms)
        fill_half_precision(torch, high, low, start, values)
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
        _score_limits(torch, PackedRows(high, low, norm, norm_1), scale, error_bound, n_terms),
        error_bound,
        int(exponent),
        factors,
        bias,
    )


def _score_limits(torch: Any, rows: PackedRows, scale: Any, error_bound: ErrorBound, n_terms: int) -> Any:
    """Return scores no item from a tile on exceeds; a sum of magnitudes is at most sqrt(n) times the norm."""
    limit = (1 + error_bound.c) * rows.norm.double()
    limit = (
        (limit + error_bound.a * (n_terms**0.5 + rows.norm_1.double()) + error_bound.e)
        / scale.double()
        * ROUND_UP
    )
    # A running maximum is slow on a GPU.
    from_last_tile = np.maximum.accumulate(limit.cpu().numpy()[::-1])
    return torch.from_numpy(from_last_tile).to(scale.device)


def pack_users(torch: Any, factors: Any, *, has_bias: bool, split: bool) -> tuple[PackedRows, Any]:
    """Return the packed users of a block, and the exponents by which they were scaled."""
    values = factors.double()
    if has_bias:
        values = torch.cat([values, torch.ones_like(values[:, :1])], dim=1)
    largest = values.abs().amax(dim=1) if values.shape[1] else values.new_zeros(len(values))
    exponents = exponents_of(torch, largest)
    values = scale_down(torch, values, exponents[:, None])
    high = _empty_rows(torch, len(values), values.shape[1], values.device)
    low = _empty_rows(torch, len(values), values.shape[1], values.device) if split else None
    fill_half_precision(torch, high, low, 0, values)
    norm_1 = round_up(torch, values.abs().sum(dim=1))
    return PackedRows(high, low, round_up(torch, _norm_rounded_up(torch, values)), norm_1), exponents


def append_bias(torch: Any, values: Any, bias: Any, which: Any) -> Any:
    """Append the bias of each item as one more factor; every user has a 1 there."""
    return values if bias is None else torch.cat([values, bias[which][:, None]], dim=1)


def fill_half_precision(torch: Any, high: Any, low: Any, start: int, values: Any) -> None:
    """Write scaled rows as one or two half-precision numbers per factor."""
    cells = (slice(start, start + len(values)), slice(0, values.shape[1]))
    high[cells] = values.to(torch.float16)
    if low is not None:
        low[cells] = ((values - high[cells].double()) * 2.0**LOW_SHIFT).to(torch.float16)


def round_up(torch: Any, values: Any) -> Any:
    """Round float64 up to float32."""
    near = (values * (1 + 2.0**-30)).to(torch.float32)
    return torch.nextafter(near, torch.full_like(near, torch.inf))


def _norm_rounded_up(torch: Any, rows: Any) -> Any:
    return torch.sqrt((rows * rows).sum(dim=-1)) * (1 + 2.0**-30) + 2.0**-500


def _empty_rows(torch: Any, n: int, n_terms: int, device: Any) -> Any:
    widest = WIDTHS[-1]
    width = next((w for w in WIDTHS if n_terms <= w), -(-n_terms // widest) * widest)
    return torch.zeros((n, width), dtype=torch.float16, device=device)
