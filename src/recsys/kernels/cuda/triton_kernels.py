"""The passes of `torch_pass` as Triton kernels: scores stay in registers, entries and counts are written."""

# Triton reads these functions' source: names, annotations and plain loops are its language, not Python's.
# mypy: ignore-errors
# ruff: noqa: ANN001, ANN202, C901, N803, PLR0917

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import triton
import triton.language as tl

from recsys.kernels.cuda.packed_rows import LOW, TILE, UP, WIDTHS, PackedItems

if TYPE_CHECKING:
    from recsys.kernels.cuda.torch_pass import PassInputs, PassOutputs

# Measured best on an H200 of the shapes 64, 128 and 256 rows, 4 and 8 warps, 32 to 128 tiles.
ROWS, TILES_PER_PROGRAM = 64, 32
FEW = 8
# Users' rows up to this width stay on the chip for all tiles.
WHOLE = 128


@triton.jit
def _sweep(
    high_users, low_users, high_items, low_items,
    user_norm, user_norm_1, item_norm, item_norm_1, scale,
    cut, stop, thresholds, n_thresholds, above, buffer_at, buffer_score, counter,
    n_rows, n_items, first_tile, last_tile, capacity, c, a, e, up, low_scale,
    WIDTH: tl.constexpr, STEP: tl.constexpr, ROWS: tl.constexpr, TILE: tl.constexpr, TILES: tl.constexpr,
    FEW: tl.constexpr, LISTS: tl.constexpr, COUNTS: tl.constexpr, SPLIT: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    lane = tl.arange(0, TILE)
    here = row < n_rows
    norm = tl.load(user_norm + row, mask=here, other=0.0)
    norm_1 = tl.load(user_norm_1 + row, mask=here, other=0.0)
    last = tl.load(stop + row, mask=here, other=0)
    furthest = tl.minimum(tl.max(last, 0), last_tile)
    n_deep = tl.max(tl.load(n_thresholds + row, mask=here, other=0), 0)
    reach = tl.load(cut + row, mask=here, other=float("inf"))
    start = first_tile + tl.program_id(1) * TILES
    # Counts of the first thresholds stay in registers; there are rarely more.
    column = tl.arange(0, FEW)
    counted = tl.zeros((ROWS, FEW), tl.int32)
    if WIDTH == STEP:
        term = tl.arange(0, STEP)
        users = row[:, None] * WIDTH + term[None, :]
        x = tl.load(high_users + users, mask=here[:, None], other=0.0)
        if SPLIT:
            x_low = tl.load(low_users + users, mask=here[:, None], other=0.0)
    for tile in range(start, tl.minimum(start + TILES, furthest)):
        position = tile * TILE + lane
        score = tl.zeros((ROWS, TILE), tl.float32)
        rest = tl.zeros((ROWS, TILE), tl.float32)
        for j in range(0, WIDTH, STEP):
            term = j + tl.arange(0, STEP)
            items = position[None, :].to(tl.int64) * WIDTH + term[:, None]
            if WIDTH != STEP:
                users = row[:, None] * WIDTH + term[None, :]
                x = tl.load(high_users + users, mask=here[:, None], other=0.0)
                if SPLIT:
                    x_low = tl.load(low_users + users, mask=here[:, None], other=0.0)
            y = tl.load(high_items + items)
            score = tl.dot(x, y, score)
            if SPLIT:
                rest = tl.dot(x, tl.load(low_items + items), rest)
                rest = tl.dot(x_low, y, rest)
        if SPLIT:
            score += rest * low_scale
        unit = tl.load(scale + tile)
        width = (c * norm * tl.load(item_norm + tile) + a * (norm_1 + tl.load(item_norm_1 + tile)) + e) * up
        # Most tiles hold nothing to write: the best score and the nearest threshold of each row tell.
        hit = tl.zeros((ROWS,), tl.int1)
        if LISTS:
            # A row that is done reaches nothing.
            least = tl.where(tile < last, reach * unit - width * up, float("inf"))
            hit = tl.max(score, 1) >= least
        if COUNTS:
            nearest = tl.full((ROWS, TILE), float("inf"), tl.float32)
            for t in range(n_deep):
                threshold = tl.load(thresholds + t * n_rows + row, mask=here, other=float("inf")) * unit
                nearest = tl.minimum(nearest, tl.abs(score - threshold[:, None]))
                n_higher = tl.sum((score > threshold[:, None]).to(tl.int32), 1)
                if t < FEW:
                    counted += tl.where(column[None, :] == t, n_higher[:, None], 0)
                else:
                    tl.atomic_add(above + t * n_rows + row, n_higher, mask=here, sem="relaxed")
            hit = hit | (tl.min(nearest, 1) <= width)
        if tl.max(hit.to(tl.int32), 0) > 0:
            wanted = tl.zeros((ROWS, TILE), tl.int1)
            if LISTS:
                wanted = score >= least[:, None]
            if COUNTS:
                wanted = wanted | (nearest <= width[:, None])
            wanted = wanted & (position < n_items)[None, :]
            own = row[:, None] + tl.zeros((ROWS, TILE), tl.int32)
            place = tl.atomic_add(
                counter + own, tl.full((ROWS, TILE), 1, tl.int32), mask=wanted, sem="relaxed"
            )
            fits = wanted & (place < capacity)
            to = own * capacity + place  # below 2^31: cuda_scan.ENTRIES_PER_BLOCK
            tl.store(buffer_at + to, position[None, :] + tl.zeros((ROWS, TILE), tl.int32), mask=fits)
            tl.store(buffer_score + to, score, mask=fits)
    if COUNTS:
        to = above + column[None, :] * n_rows + row[:, None]
        known = here[:, None] & (column[None, :] < n_deep)
        tl.atomic_add(to, counted, mask=known, sem="relaxed")


@triton.jit
def _exact(users, items, rows, which, scores, n, n_factors, user_stride, item_stride, SIZE: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    here = at < n
    row = tl.load(rows + at, mask=here, other=0).to(tl.int64) * user_stride
    item = tl.load(which + at, mask=here, other=0).to(tl.int64) * item_stride
    total = tl.zeros((SIZE,), tl.float64)
    for j in range(n_factors):
        x = tl.load(users + row + j, mask=here, other=0.0).to(tl.float64)
        y = tl.load(items + item + j, mask=here, other=0.0).to(tl.float64)
        total = total + x * y
    tl.store(scores + at, total, mask=here)


def sweep(
    _torch: Any, asked: PassInputs, catalogue: PackedItems, found: PassOutputs, tiles: tuple[int, int]
) -> None:
    """Launch the pass for every group of rows and every run of tiles, as deep a pipeline as fits the chip."""
    for n_stages in (3, 2, 1):
        try:
            return _launch(asked, catalogue, found, tiles, n_stages)
        except triton.runtime.errors.OutOfResources:
            if n_stages == 1:
                raise
    return None


def _launch(
    asked: PassInputs, catalogue: PackedItems, found: PassOutputs, tiles: tuple[int, int], n_stages: int
) -> None:
    users, items, doubt = asked.users, catalogue.rows, catalogue.doubt
    n_rows, width = users.high.shape
    split = items.low is not None
    grid = (triton.cdiv(n_rows, ROWS), triton.cdiv(tiles[1] - tiles[0], TILES_PER_PROGRAM))
    _sweep[grid](
        users.high, users.low if split else users.high, items.high, items.low if split else items.high,
        users.norm, users.norm_1, items.norm, items.norm_1, catalogue.scale,
        asked.cut, asked.stop, asked.thresholds, asked.n_thresholds,
        found.above, found.at, found.score, found.n,
        n_rows, catalogue.n, *tiles, found.capacity, doubt.c, doubt.a, doubt.e, UP, 2.0**-LOW,
        WIDTH=width, STEP=width if width <= WHOLE else WIDTHS[-1], ROWS=ROWS, TILE=TILE,
        TILES=TILES_PER_PROGRAM, FEW=FEW,
        LISTS=asked.has_lists, COUNTS=len(asked.thresholds) > 0, SPLIT=split,
        num_warps=4, num_stages=n_stages,
    )  # fmt: skip
    n_empty = catalogue.n_tiles * TILE - catalogue.n
    if len(asked.thresholds) and n_empty and tiles[1] == catalogue.n_tiles:
        # Lanes without an item score 0 and were counted like the others.
        found.above -= n_empty * (asked.thresholds * catalogue.scale[-1] < 0).int()


def exact_pairs(torch: Any, users: Any, catalogue: PackedItems, rows: Any, items: Any) -> Any:
    """The same sums, one thread a pair; no fused multiply-adds, which change those of float64."""
    scores = torch.zeros(len(rows), dtype=torch.float64, device=rows.device)
    if len(rows):
        factors = catalogue.factors
        size = 128
        _exact[(triton.cdiv(len(rows), size),)](
            users, factors, rows, items, scores, len(rows),
            users.shape[1], users.stride(0), factors.stride(0),
            SIZE=size, num_warps=4, enable_fp_fusion=False,
        )  # fmt: skip
    return scores if catalogue.bias is None else scores + catalogue.bias[items]
