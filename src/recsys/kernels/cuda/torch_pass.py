"""The fast pass of a block of users over tiles of items, in plain torch; triton_kernels is the GPU version.

For every row and tile, scores are compared with the thresholds of the row; those too near a threshold, and
those that reach the cut of the row, are written to its buffer to be scored exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from recsys.kernels.cuda.packed_rows import LOW_SHIFT, ROUND_UP, TILE, PackedItems, PackedRows, error_width


@dataclass(eq=False)
class PassOutputs:
    """The outputs of a pass: counts of scores above each threshold, and a buffer of entries per row."""

    above: Any
    """Thresholds x rows, int32."""
    at: Any
    """Rows x capacity: positions, int32."""
    score: Any
    """Rows x capacity: fast scores in units of their tile, float32."""
    n: Any
    """The number of entries of each row; more than the capacity if the buffer overflowed."""

    @property
    def capacity(self) -> int:
        return int(self.at.shape[1])


@dataclass(frozen=True, eq=False)
class PassInputs:
    """The rows of a block with their thresholds and cuts, in units of the catalogue."""

    users: PackedRows
    thresholds: Any
    """Thresholds x rows, float32, +inf if a row has fewer."""
    n_thresholds: Any
    """The number of thresholds of each row, int32; rows with equal numbers are neighbours."""
    cut: Any
    """Float32, rounded down: at least k candidates score this much; +inf if no list is wanted."""
    stop: Any
    """The tile from which on a row has nothing more to find, int32."""
    has_lists: bool


def sweep(
    torch: Any, inputs: PassInputs, catalogue: PackedItems, outputs: PassOutputs, tiles: tuple[int, int]
) -> None:
    """Make the pass by its definition, one tile after the other."""
    users, items = inputs.users, catalogue.rows
    for tile in range(*tiles):
        part = slice(tile * TILE, (tile + 1) * TILE)
        score = fast_scores(users, items, part)
        position = torch.arange(tile * TILE, (tile + 1) * TILE, device=score.device)
        is_valid = (position < catalogue.n)[None, :] & (tile < inputs.stop)[:, None]
        width = error_width(users, catalogue, tile)[:, 0]
        thresholds = inputs.thresholds * catalogue.scale[tile]
        outputs.above += ((score[None] > thresholds[:, :, None]) & is_valid).sum(dim=2).int()
        is_near = ((score[None] - thresholds[:, :, None]).abs() <= width[None, :, None]).any(dim=0)
        reaches_cut = score >= (inputs.cut * catalogue.scale[tile] - width * ROUND_UP)[:, None]
        _append_entries(outputs, (is_near | reaches_cut) & is_valid, position, score)


def fast_scores(users: PackedRows, items: PackedRows, part: slice) -> Any:
    """Scores of all rows with some positions: products of half-precision numbers, summed in float32."""
    score = users.high.float() @ items.high[part].float().T
    if items.low is not None:
        rest = users.high.float() @ items.low[part].float().T
        score += (rest + users.low.float() @ items.high[part].float().T) * 2.0**-LOW_SHIFT
    return score


def _append_entries(outputs: PassOutputs, which: Any, position: Any, score: Any) -> None:
    """Append the entries `which` (rows x lanes) to the buffers of their rows, as far as they fit."""
    row, lane = which.nonzero(as_tuple=True)
    place = outputs.n[row] + (which.cumsum(dim=1)[row, lane] - 1)
    fits = place < outputs.capacity
    row, lane, place = row[fits], lane[fits], place[fits]
    outputs.at[row, place] = position[lane].int()
    outputs.score[row, place] = score[row, lane]
    outputs.n += which.sum(dim=1).int()


def exact_pairs(torch: Any, users: Any, catalogue: PackedItems, rows: Any, items: Any) -> Any:
    """Scores by the definition: float64 products added one by one, then the bias."""
    scores = torch.zeros(len(rows), dtype=torch.float64, device=rows.device)
    x, y = users[rows], catalogue.factors[items]
    for j in range(users.shape[1]):
        scores = scores + x[:, j].double() * y[:, j].double()
    return scores if catalogue.bias is None else scores + catalogue.bias[items]
