"""Resample weights and signs: one matrix, shared by every metric and model, so comparisons stay paired.

Draws are counter-based and keyed by (seed, purpose, unit id), so neither the order of rows nor their split
into shards or blocks changes them. The matrix is never held whole: it is made in blocks within a memory
budget and used at once in a matrix product. (The multinomial scheme needs the sorted units together.)
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
# Below this many units a Poisson total wanders too far from n for small-sample methods.
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
    return np.fromiter((_digest(str(one)) for one in ids.tolist()), dtype=np.uint64, count=len(ids))


def groups_of(ids: Array, n_groups: int = 64) -> npt.NDArray[np.int64]:
    """The jackknife group of each id, from its key alone, so that exposures of shards simply add up."""
    return ((unit_keys(ids) >> np.uint64(32)) % np.uint64(n_groups)).astype(np.int64)


def seed_of(rng: Rng) -> int:
    """A seed from what the caller gave; a Generator moves on by one draw."""
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(0, 2**63))
    try:
        return operator.index(rng)
    except TypeError:
        raise InputError(
            f"rng must be an int or a numpy Generator, got {type(rng).__name__}.", hint="Try rng=0."
        ) from None


def check_resamples(n_resamples: int) -> None:
    """Refuse a number of draws that is none."""
    if not is_whole(n_resamples) or n_resamples < 1:
        raise InputError(f"n_resamples must be a whole number of at least 1, got {n_resamples!r}.")


def random_order(ids: Array, rng: Rng, *, purpose: str = "order") -> npt.NDArray[np.int64]:
    """A random order of the ids that does not depend on the order they came in."""
    words = _scramble(unit_keys(ids) + np.uint64(_digest(f"{seed_of(rng)}:{purpose}")))
    return np.argsort(words, kind="stable")


def _poisson_table() -> Float:
    """Poisson(1) for a 16-bit uniform, rounded so that mean 1 and variance 1 are exact."""
    counts = [24103, 24124, 12046, 4018, 1005, 201, 33, 5, 1]
    return np.repeat(np.arange(9.0), counts)


@dataclass(frozen=True, eq=False)
class Resampler:
    """How the units are redrawn; the same object gives the same draws to every column it is shown."""

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
        """Columns x units in; for each column and resample the sum of weight times value out."""
        if self.resolved_scheme == "multinomial":
            return self._products(columns, self._multinomial_blocks())
        return self._products(columns, self._poisson_blocks())

    def flipped(self, columns: Float) -> Float:
        """Columns x units in; for each column and resample the sum of the values under random signs out."""
        total: Float = columns.sum(axis=1)[:, None]
        return total - 2.0 * self._products(columns, self._bit_blocks())

    def _products(self, columns: Float, blocks: Iterator[tuple[slice, slice, Float]]) -> Float:
        sums = np.zeros((self.n_resamples, columns.shape[0]))
        for units, resamples, block in blocks:
            # This way round BLAS packs the narrow side; the other costs twice the time for few columns.
            sums[resamples] += block.T @ np.ascontiguousarray(columns[:, units].T)
            if self.progress is not None and units.stop >= len(self.keys):
                self.progress(resamples.stop, self.n_resamples)
        return np.ascontiguousarray(sums.T)

    def _panels(
        self, per_word: int, decode: Callable[[Words, Float], None]
    ) -> Iterator[tuple[slice, slice, Float]]:
        """Blocks of weights, units down and resamples across; every word holds `per_word` of them.

        Words are made and decoded in strips that fit a cache, but multiplied in large panels: each product
        wakes the BLAS threads once, which is what costs on a busy machine.
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
        place = np.empty(n, dtype=np.int64)
        place[order] = np.arange(n)
        # One stream a resample would cost more than its draws; one stream advanced in order gives the
        # same draws for every block width.
        stream = np.random.Generator(np.random.Philox(key=_digest(f"{self.seed}:multinomial")))
        for start in range(0, self.n_resamples, width):
            b = min(width, self.n_resamples - start)
            drawn = stream.integers(0, n, size=(b, n)) + np.arange(b)[:, None] * n
            counts = np.bincount(drawn.ravel(), minlength=b * n).reshape(b, n)
            yield slice(0, n), slice(start, start + b), counts[:, place].T.astype(np.float64)


def bernoulli_signs(n: int) -> Iterator[Float]:
    """Every assignment of signs to n units, in blocks of rows, as 0/1 bits (1 = flipped)."""
    total = 1 << n
    for start in range(0, total, 1 << 12):
        codes = np.arange(start, min(start + (1 << 12), total), dtype=np.int64)
        yield ((codes[:, None] >> np.arange(n)) & 1).astype(np.float64)
