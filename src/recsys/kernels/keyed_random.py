"""Random numbers that belong to an id, not to a place in a table.

A draw is a hash of the seed and of what was typed (a user, a user and an item, a counter), so it depends
neither on the order of rows nor on which other rows there are, and needs no state: the same on every machine,
in any order, in blocks of any size. The mixing function is SplitMix64's (Steele, Lea & Flood, 2014).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from recsys.errors import InputError
from recsys.types import Array, Float, Ids

Keys = npt.NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_STEP = 1 << 20
_CANONICAL = re.compile(r"0|-?[1-9][0-9]{0,17}")


def mixed(keys: Array) -> Keys:
    """64 bits in, 64 well-mixed bits out: a bijection, so different keys never collide.

    >>> mixed(np.array([0, 1], dtype=np.uint64)).tolist()
    [16294208416658607535, 10451216379200822465]
    """
    given = np.atleast_1d(keys)
    out = np.empty(given.shape, dtype=np.uint64)
    flat, target = given.reshape(-1), out.reshape(-1)
    spare = np.empty(min(len(flat), _STEP), dtype=np.uint64)
    for start in range(0, len(flat), _STEP):  # a block at a time stays in the cache
        part = np.add(
            flat[start : start + _STEP], _GOLDEN, out=target[start : start + _STEP], casting="unsafe"
        )
        some = spare[: len(part)]
        for shift, factor in ((30, _FIRST), (27, _SECOND)):
            part ^= np.right_shift(part, np.uint64(shift), out=some)
            part *= factor
        part ^= np.right_shift(part, np.uint64(31), out=some)
    return out


def checked_seed(seed: object) -> int:
    """A seed is a whole number; anything else would not be written into a manifest the same way."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise InputError(f"seed={seed!r} is not a whole number.", hint="Pass a number, such as seed=7.")
    return int(seed)


def id_keys(ids: Ids, seed: int, *, purpose: str) -> Keys:
    """One key an id; different purposes of one seed have nothing to do with each other."""
    start = blake2b(f"{purpose}:{checked_seed(seed)}".encode(), digest_size=8).digest()
    offset = np.uint64(int.from_bytes(start, "little"))
    if ids.kind == "int":
        return mixed(mixed(ids.values.astype(np.int64).view(np.uint64)) ^ offset)
    return mixed(text_keys(ids.values) ^ offset)


def text_keys(texts: Iterable[str]) -> Keys:
    """One key a text: the first bytes of its BLAKE2b, so that no two texts are known to share one.

    A whole number written as text has the key of the number: a file read as text draws as the table does.
    """
    given = list(texts)
    whole = np.fromiter(
        (_CANONICAL.fullmatch(text) is not None for text in given), dtype=bool, count=len(given)
    )
    keys = np.empty(len(given), dtype=np.uint64)
    numbers = np.array(
        [int(text) for text, is_whole in zip(given, whole, strict=True) if is_whole], dtype=np.int64
    )
    keys[whole] = mixed(numbers.view(np.uint64))
    others = (text for text, is_whole in zip(given, whole, strict=True) if not is_whole)
    parts = [blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest() for text in others]
    keys[~whole] = np.frombuffer(b"".join(parts), dtype="<u8")
    return keys


def pair_keys(first: Keys, second: Keys) -> Keys:
    """One key a pair; (a, b) and (b, a) differ."""
    return mixed(mixed(first) + second)


def fractions(keys: Keys) -> Float:
    """Keys as numbers in [0, 1)."""
    return (keys >> np.uint64(11)).astype(np.float64) * 2.0**-53


def digest(keys: Keys) -> str:
    """A digest of a collection of keys whatever their order; equal keys count as often as they occur."""
    sums = [int(np.add.reduce(mixed(keys ^ np.uint64(salt)), dtype=np.uint64)) for salt in (1, 2, 3, 4)]
    data = b"".join(part.to_bytes(8, "little") for part in (len(keys), *sums))
    return blake2b(data, digest_size=16).hexdigest()


def ordered_digest(keys: Keys) -> str:
    """A digest of a sequence of keys."""
    return blake2b(np.ascontiguousarray(keys.astype("<u8")).tobytes(), digest_size=16).hexdigest()
