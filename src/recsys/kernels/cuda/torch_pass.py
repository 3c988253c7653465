"""The fast pass of a block of users over tiles of items, in plain torch; triton_kernels has it for a GPU.

For every row and tile: scores are compared with the row's thresholds, and those that are too near one, or
reach the row's cut, are written to the row's buffer for the second look.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from recsys.kernels.cuda.packed_rows import LOW, TILE, UP, PackedItems, PackedRows, width_of


@dataclass(eq=False)
class PassOutputs:
    """What a pass writes: scores above each threshold, and a buffer of entries a row."""

    above: Any
    """Thresholds x rows, int32."""
    at: Any
    """Rows x capacity: positions, int32."""
    score: Any
    """Rows x capacity: fast scores in units of their tile, float32."""
    n: Any
    """Entries of each row; more than the capacity where it did not suffice."""

    @property
    def capacity(self) -> int:
        return int(self.at.shape[1])


@dataclass(frozen=True, eq=False)
class PassInputs:
    """The rows of a block and what is asked about them, in units of the catalogue."""

    users: PackedRows
    thresholds: Any
    """Thresholds x rows, float32, +inf where a row has fewer."""
    n_thresholds: Any
    """Of each row, int32; rows with equally many stand together."""
    cut: Any
    """Float32, rounded down: at least k candidates score this much; +inf where no list is asked for."""
    stop: Any
    """The tile from which on a row has nothing to find, int32."""
    has_lists: bool


def sweep(
    torch: Any, asked: PassInputs, catalogue: PackedItems, found: PassOutputs, tiles: tuple[int, int]
) -> None:
    """The pass as the definition has it, one tile after the other."""
    users, items = asked.users, catalogue.rows
    for tile in range(*tiles):
        part = slice(tile * TILE, (tile + 1) * TILE)
        score = fast_scores(users, items, part)
        position = torch.arange(tile * TILE, (tile + 1) * TILE, device=score.device)
        valid = (position < catalogue.n)[None, :] & (tile < asked.stop)[:, None]
        width = width_of(users, catalogue, tile)[:, 0]
        thresholds = asked.thresholds * catalogue.scale[tile]
        found.above += ((score[None] > thresholds[:, :, None]) & valid).sum(dim=2).int()
        near = ((score[None] - thresholds[:, :, None]).abs() <= width[None, :, None]).any(dim=0)
        reach = score >= (asked.cut * catalogue.scale[tile] - width * UP)[:, None]
        _push(found, (near | reach) & valid, position, score)


def fast_scores(users: PackedRows, items: PackedRows, part: slice) -> Any:
    """Scores of all rows with some positions: products of half-precision numbers, summed in float32."""
    score = users.high.float() @ items.high[part].float().T
    if items.low is not None:
        rest = users.high.float() @ items.low[part].float().T
        score += (rest + users.low.float() @ items.high[part].float().T) * 2.0**-LOW
    return score


def _push(found: PassOutputs, which: Any, position: Any, score: Any) -> None:
    row, lane = which.nonzero(as_tuple=True)
    place = found.n[row] + (which.cumsum(dim=1)[row, lane] - 1)
    fits = place < found.capacity
    row, lane, place = row[fits], lane[fits], place[fits]
    found.at[row, place] = position[lane].int()
    found.score[row, place] = score[row, lane]
    found.n += which.sum(dim=1).int()


def exact_pairs(torch: Any, users: Any, catalogue: PackedItems, rows: Any, items: Any) -> Any:
    """Scores as they are defined: widened products added one by one, then the bias."""
    scores = torch.zeros(len(rows), dtype=torch.float64, device=rows.device)
    x, y = users[rows], catalogue.factors[items]
    for j in range(users.shape[1]):
        scores = scores + x[:, j].double() * y[:, j].double()
    return scores if catalogue.bias is None else scores + catalogue.bias[items]
