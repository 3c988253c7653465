"""`torch_pass` as Triton kernels: scores stay in registers, only entries and counts are written."""

# Triton compiles the source of these functions: names, annotations and loops follow its rules.
# mypy: ignore-errors
# ruff: noqa: ANN001, ANN202, C901, N803, PLR0917

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import triton
import triton.language as tl

from recsys.kernels.cuda.packed_rows import LOW_SHIFT, ROUND_UP, TILE, WIDTHS, PackedItems

if TYPE_CHECKING:
    from recsys.kernels.cuda.torch_pass import PassInputs, PassOutputs

# Measured best on an H200 of the shapes 64, 128 and 256 rows, 4 and 8 warps, 32 to 128 tiles.
ROWS, TILES_PER_PROGRAM = 64, 32
FEW = 8
# Rows of users up to this width stay on the chip for all tiles.
MAX_CACHED_WIDTH = 128


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
    in_range = row < n_rows
    norm = tl.load(user_norm + row, mask=in_range, other=0.0)
    norm_1 = tl.load(user_norm_1 + row, mask=in_range, other=0.0)
    last = tl.load(stop + row, mask=in_range, other=0)
    furthest = tl.minimum(tl.max(last, 0), last_tile)
    n_thresholds_max = tl.max(tl.load(n_thresholds + row, mask=in_range, other=0), 0)
    reach = tl.load(cut + row, mask=in_range, other=float("inf"))
    start = first_tile + tl.program_id(1) * TILES
    # Counts of the first thresholds stay in registers; there are rarely more.
    column = tl.arange(0, FEW)
    counted = tl.zeros((ROWS, FEW), tl.int32)
    if WIDTH == STEP:
        term = tl.arange(0, STEP)
        users = row[:, None] * WIDTH + term[None, :]
        x = tl.load(high_users + users, mask=in_range[:, None], other=0.0)
        if SPLIT:
            x_low = tl.load(low_users + users, mask=in_range[:, None], other=0.0)
    for tile in range(start, tl.minimum(start + TILES, furthest)):
        position = tile * TILE + lane
        score = tl.zeros((ROWS, TILE), tl.float32)
        rest = tl.zeros((ROWS, TILE), tl.float32)
        for j in range(0, WIDTH, STEP):
            term = j + tl.arange(0, STEP)
            items = position[None, :].to(tl.int64) * WIDTH + term[:, None]
            if WIDTH != STEP:
                users = row[:, None] * WIDTH + term[None, :]
                x = tl.load(high_users + users, mask=in_range[:, None], other=0.0)
                if SPLIT:
                    x_low = tl.load(low_users + users, mask=in_range[:, None], other=0.0)
            y = tl.load(high_items + items)
            score = tl.dot(x, y, score)
            if SPLIT:
                rest = tl.dot(x, tl.load(low_items + items), rest)
                rest = tl.dot(x_low, y, rest)
        if SPLIT:
            score += rest * low_scale
        unit = tl.load(scale + tile)
        width = (c * norm * tl.load(item_norm + tile) + a * (norm_1 + tl.load(item_norm_1 + tile)) + e) * up
        # Most tiles have nothing to write: the best score and the nearest threshold of each row show it.
        hit = tl.zeros((ROWS,), tl.int1)
        if LISTS:
            # A row that has stopped reaches nothing.
            least = tl.where(tile < last, reach * unit - width * up, float("inf"))
            hit = tl.max(score, 1) >= least
        if COUNTS:
            nearest = tl.full((ROWS, TILE), float("inf"), tl.float32)
            for t in range(n_thresholds_max):
                threshold = tl.load(thresholds + t * n_rows + row, mask=in_range, other=float("inf")) * unit
                nearest = tl.minimum(nearest, tl.abs(score - threshold[:, None]))
                n_higher = tl.sum((score > threshold[:, None]).to(tl.int32), 1)
                if t < FEW:
                    counted += tl.where(column[None, :] == t, n_higher[:, None], 0)
                else:
                    tl.atomic_add(above + t * n_rows + row, n_higher, mask=in_range, sem="relaxed")
            hit = hit | (tl.min(nearest, 1) <= width)
        if tl.max(hit.to(tl.int32), 0) > 0:
            is_entry = tl.zeros((ROWS, TILE), tl.int1)
            if LISTS:
                is_entry = score >= least[:, None]
            if COUNTS:
                is_entry = is_entry | (nearest <= width[:, None])
            is_entry = is_entry & (position < n_items)[None, :]
            own = row[:, None] + tl.zeros((ROWS, TILE), tl.int32)
            place = tl.atomic_add(
                counter + own, tl.full((ROWS, TILE), 1, tl.int32), mask=is_entry, sem="relaxed"
            )
            fits = is_entry & (place < capacity)
            to = own * capacity + place  # below 2^31: cuda_scan.ENTRIES_PER_BLOCK
            tl.store(buffer_at + to, position[None, :] + tl.zeros((ROWS, TILE), tl.int32), mask=fits)
            tl.store(buffer_score + to, score, mask=fits)
    if COUNTS:
        to = above + column[None, :] * n_rows + row[:, None]
        known = in_range[:, None] & (column[None, :] < n_thresholds_max)
        tl.atomic_add(to, counted, mask=known, sem="relaxed")


@triton.jit
def _exact(users, items, rows, which, scores, n, n_factors, user_stride, item_stride, SIZE: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    in_range = at < n
    row = tl.load(rows + at, mask=in_range, other=0).to(tl.int64) * user_stride
    item = tl.load(which + at, mask=in_range, other=0).to(tl.int64) * item_stride
    total = tl.zeros((SIZE,), tl.float64)
    for j in range(n_factors):
        x = tl.load(users + row + j, mask=in_range, other=0.0).to(tl.float64)
        y = tl.load(items + item + j, mask=in_range, other=0.0).to(tl.float64)
        total = total + x * y
    tl.store(scores + at, total, mask=in_range)


def sweep(
    _torch: Any, inputs: PassInputs, catalogue: PackedItems, outputs: PassOutputs, tiles: tuple[int, int]
) -> None:
    """Launch the pass for all groups of rows and runs of tiles, with the deepest pipeline that fits."""
    for n_stages in (3, 2, 1):
        try:
            return _launch(inputs, catalogue, outputs, tiles, n_stages)
        except triton.runtime.errors.OutOfResources:
            if n_stages == 1:
                raise
    return None


def _launch(
    inputs: PassInputs, catalogue: PackedItems, outputs: PassOutputs, tiles: tuple[int, int], n_stages: int
) -> None:
    users, items, error_bound = inputs.users, catalogue.rows, catalogue.error_bound
    n_rows, width = users.high.shape
    split = items.low is not None
    grid = (triton.cdiv(n_rows, ROWS), triton.cdiv(tiles[1] - tiles[0], TILES_PER_PROGRAM))
    _sweep[grid](
        users.high, users.low if split else users.high, items.high, items.low if split else items.high,
        users.norm, users.norm_1, items.norm, items.norm_1, catalogue.scale,
        inputs.cut, inputs.stop, inputs.thresholds, inputs.n_thresholds,
        outputs.above, outputs.at, outputs.score, outputs.n,
        n_rows, catalogue.n, *tiles, outputs.capacity, error_bound.c, error_bound.a, error_bound.e,
        ROUND_UP, 2.0**-LOW_SHIFT,
        WIDTH=width, STEP=width if width <= MAX_CACHED_WIDTH else WIDTHS[-1], ROWS=ROWS, TILE=TILE,
        TILES=TILES_PER_PROGRAM, FEW=FEW,
        LISTS=inputs.has_lists, COUNTS=len(inputs.thresholds) > 0, SPLIT=split,
        num_warps=4, num_stages=n_stages,
    )  # fmt: skip
    n_empty = catalogue.n_tiles * TILE - catalogue.n
    if len(inputs.thresholds) and n_empty and tiles[1] == catalogue.n_tiles:
        # Lanes without an item score 0 and were counted too.
        outputs.above -= n_empty * (inputs.thresholds * catalogue.scale[-1] < 0).int()


def exact_pairs(torch: Any, users: Any, catalogue: PackedItems, rows: Any, items: Any) -> Any:
    """Return the same sums, one thread per pair, without fused multiply-adds, which would change them."""
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
