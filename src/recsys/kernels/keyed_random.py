"""Random numbers that belong to an id, not to a place in a table.

A draw is a hash of the seed and of an id (a user, a user and an item, a counter), so it depends neither on
the order of rows nor on the other rows, and needs no state: it is the same on every machine, in any order, in
blocks of any size. The mixing function is that of SplitMix64 (Steele, Lea & Flood, 2014).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from recsys.records.arrays import Array, Float, Ids
from recsys.records.checks import check_seed

Keys = npt.NDArray[np.uint64]

GOLDEN_RATIO = np.uint64(0x9E3779B97F4A7C15)
_FIRST_FACTOR, _SECOND_FACTOR = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_BLOCK = 1 << 20  # keys at a time, which stay in the cache
_WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,17}")


def mix_bits(keys: Array) -> Keys:
    """Map 64 bits to 64 well-mixed bits: a bijection, so different keys never collide.

    >>> mix_bits(np.array([0, 1], dtype=np.uint64)).tolist()
    [16294208416658607535, 10451216379200822465]
    """
    values = np.atleast_1d(keys)
    out = np.empty(values.shape, dtype=np.uint64)
    flat, target = values.reshape(-1), out.reshape(-1)
    buffer = np.empty(min(len(flat), _BLOCK), dtype=np.uint64)
    for start in range(0, len(flat), _BLOCK):
        block = np.add(
            flat[start : start + _BLOCK], GOLDEN_RATIO, out=target[start : start + _BLOCK], casting="unsafe"
        )
        scratch = buffer[: len(block)]
        for shift, factor in ((30, _FIRST_FACTOR), (27, _SECOND_FACTOR)):
            block ^= np.right_shift(block, np.uint64(shift), out=scratch)
            block *= factor
        block ^= np.right_shift(block, np.uint64(31), out=scratch)
    return out


def id_keys(ids: Ids, seed: int, *, purpose: str) -> Keys:
    """Return one key per id; the keys of different purposes are independent, also with the same seed."""
    start = blake2b(f"{purpose}:{check_seed(seed)}".encode(), digest_size=8).digest()
    offset = np.uint64(int.from_bytes(start, "little"))
    if ids.kind == "int":
        return mix_bits(mix_bits(ids.values.astype(np.int64).view(np.uint64)) ^ offset)
    return mix_bits(text_keys(ids.values) ^ offset)


def text_keys(texts: Iterable[str]) -> Keys:
    """Return a key per text: the first bytes of its BLAKE2b hash; no two texts are known to share one.

    A whole number written as text has the key of the number: a file read as text gives the same draws.
    """
    all_texts = list(texts)
    is_number = np.fromiter(
        (_WHOLE_NUMBER.fullmatch(text) is not None for text in all_texts), dtype=bool, count=len(all_texts)
    )
    keys = np.empty(len(all_texts), dtype=np.uint64)
    numbers = np.array(
        [int(text) for text, is_number_text in zip(all_texts, is_number, strict=True) if is_number_text],
        dtype=np.int64,
    )
    keys[is_number] = mix_bits(numbers.view(np.uint64))
    other_texts = (
        text for text, is_number_text in zip(all_texts, is_number, strict=True) if not is_number_text
    )
    hashes = [blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest() for text in other_texts]
    keys[~is_number] = np.frombuffer(b"".join(hashes), dtype="<u8")
    return keys


def unit_keys(ids: Array) -> Keys:
    """Return a stable 64-bit key per id: the same in every process, shard and row order."""
    ids = np.asarray(ids)
    if ids.dtype.kind in "iub":
        return mix_bits(ids.astype(np.int64).view(np.uint64))
    hashes = b"".join(blake2b(str(label).encode(), digest_size=8).digest() for label in ids.tolist())
    return np.frombuffer(hashes, dtype="<u8").astype(np.uint64)


def pair_keys(first: Keys, second: Keys) -> Keys:
    """Return one key per pair; (a, b) and (b, a) differ."""
    return mix_bits(mix_bits(first) + second)


def unit_floats(keys: Keys) -> Float:
    """Keys as numbers in [0, 1)."""
    return (keys >> np.uint64(11)).astype(np.float64) * 2.0**-53


def digest(keys: Keys) -> str:
    """Return a digest of a collection of keys in any order; equal keys count as often as they occur."""
    sums = [int(np.add.reduce(mix_bits(keys ^ np.uint64(salt)), dtype=np.uint64)) for salt in (1, 2, 3, 4)]
    data = b"".join(part.to_bytes(8, "little") for part in (len(keys), *sums))
    return blake2b(data, digest_size=16).hexdigest()


def ordered_digest(keys: Keys) -> str:
    """Return a digest of a sequence of keys."""
    return blake2b(np.ascontiguousarray(keys.astype("<u8")).tobytes(), digest_size=16).hexdigest()
