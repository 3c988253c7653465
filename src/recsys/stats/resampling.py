"""Resampling weights and signs: one matrix, shared by every metric and model, so comparisons stay paired.

Draws are counter-based and keyed by (seed, purpose, unit id), so neither the order of rows nor their split
into shards or blocks changes them. The matrix never exists as a whole: blocks within a memory budget are
generated and multiplied at once. (The multinomial scheme needs all units together, sorted.)
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from recsys.errors import InputError, UnknownNameError
from recsys.stats.inference_results import is_whole
from recsys.types import Array, Float

Words = npt.NDArray[np.uint64]
Scheme = Literal["auto", "poisson", "multinomial"]
Rng = int | np.random.Generator
Progress = Callable[[int, int], None]

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_ROUNDS = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))
_PANEL = 8192
_STRIP = 256
_BUDGET = 64 << 20
# With fewer units a Poisson total varies too much around n for small-sample methods.
_POISSON_FROM = 1000


def _scramble(words: Words) -> Words:
    """SplitMix64's finaliser, in place: a bijection that turns counters into independent-looking words."""
    scratch = np.empty_like(words)
    for shift, factor in _ROUNDS:
        np.right_shift(words, shift, out=scratch)
        np.bitwise_xor(words, scratch, out=words)
        np.multiply(words, factor, out=words)
    np.right_shift(words, np.uint64(31), out=scratch)
    np.bitwise_xor(words, scratch, out=words)
    return words


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def unit_keys(ids: Array) -> Words:
    """A stable 64-bit key per id: the same in every process, shard and row order."""
    ids = np.asarray(ids)
    if ids.dtype.kind in "iub":
        return _scramble(ids.astype(np.int64).view(np.uint64) + GOLDEN)
    return np.fromiter((_digest(str(label)) for label in ids.tolist()), dtype=np.uint64, count=len(ids))


def groups_of(ids: Array, n_groups: int = 64) -> npt.NDArray[np.int64]:
    """The jackknife group of each id, from its key alone, so that exposures of shards add up."""
    return ((unit_keys(ids) >> np.uint64(32)) % np.uint64(n_groups)).astype(np.int64)


def seed_from_rng(rng: Rng) -> int:
    """The seed of an `rng` argument; a Generator advances by one draw."""
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(0, 2**63))
    try:
        return operator.index(rng)
    except TypeError:
        raise InputError(
            f"rng must be an int or a numpy Generator, got {type(rng).__name__}.", hint="Try rng=0."
        ) from None


def check_resamples(n_resamples: int) -> None:
    """Refuse a number of resamples that is not a whole number of at least 1."""
    if not is_whole(n_resamples) or n_resamples < 1:
        raise InputError(f"n_resamples must be a whole number of at least 1, got {n_resamples!r}.")


def random_order(ids: Array, rng: Rng, *, purpose: str = "order") -> npt.NDArray[np.int64]:
    """A random order of the ids that does not depend on their present order."""
    words = _scramble(unit_keys(ids) + np.uint64(_digest(f"{seed_from_rng(rng)}:{purpose}")))
    return np.argsort(words, kind="stable")


def _poisson_table() -> Float:
    """Poisson(1) for a 16-bit uniform, rounded so that mean 1 and variance 1 are exact."""
    counts = [24103, 24124, 12046, 4018, 1005, 201, 33, 5, 1]
    return np.repeat(np.arange(9.0), counts)


@dataclass(frozen=True, eq=False)
class Resampler:
    """How the units are resampled; the same object applies the same draws to every column."""

    keys: Words
    n_resamples: int = 10_000
    seed: int = 0
    scheme: Scheme = "auto"
    budget: int = _BUDGET
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if self.scheme not in ("auto", "poisson", "multinomial"):
            raise UnknownNameError("resampling scheme", self.scheme, ("auto", "poisson", "multinomial"))
        check_resamples(self.n_resamples)

    @property
    def resolved_scheme(self) -> str:
        if self.scheme != "auto":
            return self.scheme
        return "poisson" if len(self.keys) >= _POISSON_FROM else "multinomial"

    def weighted(self, columns: Float) -> Float:
        """The sum of weight times value for each column and resample, from columns x units."""
        if self.resolved_scheme == "multinomial":
            return self._products(columns, self._multinomial_blocks())
        return self._products(columns, self._poisson_blocks())

    def flipped(self, columns: Float) -> Float:
        """The sum of the values under random signs for each column and resample, from columns x units."""
        total: Float = columns.sum(axis=1)[:, None]
        return total - 2.0 * self._products(columns, self._bit_blocks())

    def _products(self, columns: Float, blocks: Iterator[tuple[slice, slice, Float]]) -> Float:
        sums = np.zeros((self.n_resamples, columns.shape[0]))
        for units, resamples, block in blocks:
            # In this order BLAS packs the narrow side; the other order takes twice as long for few columns.
            sums[resamples] += block.T @ np.ascontiguousarray(columns[:, units].T)
            if self.progress is not None and units.stop >= len(self.keys):
                self.progress(resamples.stop, self.n_resamples)
        return np.ascontiguousarray(sums.T)

    def _panels(
        self, per_word: int, decode: Callable[[Words, Float], None]
    ) -> Iterator[tuple[slice, slice, Float]]:
        """Blocks of weights (units x resamples); every word holds `per_word` weights.

        Words are generated and decoded in strips that fit a cache, but multiplied in large panels: each
        product wakes the BLAS threads once, which is the main cost on a busy machine.
        """
        n = len(self.keys)
        height = min(n, _PANEL)
        width = max(64, min(self.n_resamples + 63, self.budget // (8 * height)) // 64 * 64)
        keys = _scramble(self.keys + np.uint64(_digest(f"{self.seed}:resample:{per_word}")))
        panel = np.empty((height, width))
        for start in range(0, self.n_resamples, width):
            stop = min(start + width, self.n_resamples)
            counters = np.arange(start // per_word, (start + width) // per_word, dtype=np.uint64) * GOLDEN
            for top in range(0, n, height):
                bottom = min(top + height, n)
                for row in range(top, bottom, _STRIP):
                    strip = slice(row, min(row + _STRIP, bottom))
                    words = _scramble(keys[strip, None] + counters).astype("<u8", copy=False)
                    decode(words, panel[row - top : strip.stop - top])
                yield slice(top, bottom), slice(start, stop), panel[: bottom - top, : stop - start]

    def _poisson_blocks(self) -> Iterator[tuple[slice, slice, Float]]:
        table = _poisson_table()

        def decode(words: Words, out: Float) -> None:
            np.take(table, words.view("<u2"), out=out, mode="clip")

        return self._panels(4, decode)

    def _bit_blocks(self) -> Iterator[tuple[slice, slice, Float]]:
        def decode(words: Words, out: Float) -> None:
            out[...] = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")

        return self._panels(64, decode)

    def _multinomial_blocks(self) -> Iterator[tuple[slice, slice, Float]]:
        n = len(self.keys)
        width = max(1, min(self.n_resamples, self.budget // (32 * max(n, 1))))
        order = np.argsort(self.keys, kind="stable")
        position_of_unit = np.empty(n, dtype=np.int64)
        position_of_unit[order] = np.arange(n)
        # One stream per resample would cost more than its draws; one stream advanced in order gives the
        # same draws for every block width.
        stream = np.random.Generator(np.random.Philox(key=_digest(f"{self.seed}:multinomial")))
        for start in range(0, self.n_resamples, width):
            n_rows = min(width, self.n_resamples - start)
            draws = stream.integers(0, n, size=(n_rows, n)) + np.arange(n_rows)[:, None] * n
            counts = np.bincount(draws.ravel(), minlength=n_rows * n).reshape(n_rows, n)
            yield slice(0, n), slice(start, start + n_rows), counts[:, position_of_unit].T.astype(np.float64)


def bernoulli_signs(n: int) -> Iterator[Float]:
    """Every assignment of signs to n units, in blocks of rows, as 0/1 bits (1 = flipped)."""
    total = 1 << n
    for start in range(0, total, 1 << 12):
        codes = np.arange(start, min(start + (1 << 12), total), dtype=np.int64)
        yield ((codes[:, None] >> np.arange(n)) & 1).astype(np.float64)
