"""Hashes of the content of tables: of their cells, not of the bytes of a file.

Each row has two 64-bit hashes, and a table has their sums modulo 2^64: these depend neither on the order of
rows nor on where a table was cut, and those of its pieces add up. The mixing function is a bijection, so a
row of which one cell changes always has another hash.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from recsys.kernels.keyed_random import Keys, mix_bits
from recsys.records.arrays import Int

_BLOCK = 1 << 14  # rows whose hashes stay in the cache
_STARTS = np.array([0x6A09E667F3BCC908, 0xBB67AE8584CAA73B], dtype=np.uint64)  # of the two hashes
_NAN = np.float64(np.nan).view(np.uint64)
_FIRST_BYTES = np.array([256**n - 1 for n in range(9)], dtype=np.uint64)


def hash_rows(batch: Any, columns: Sequence[tuple[str, str]]) -> str:
    """Return the sums of the two hashes of each row of an Arrow batch, as hexadecimal text.

    Columns are given as (name, kind), where the kind is "int", "str", "float" or "key". They are hashed in
    the order of their names. All NaN are one; 0.0 and -0.0 are two.
    """
    sums = np.zeros(2, dtype=np.uint64)
    for start in range(0, batch.num_rows, _BLOCK):
        block = batch.slice(start, _BLOCK)
        hashes = np.repeat(_STARTS[:, None], block.num_rows, axis=1)
        for name, kind in sorted(columns):
            cells = block.column(name)
            if kind == "str":
                bits = _text_bits(cells)
            else:
                values = cells.to_numpy(zero_copy_only=False)
                bits = values.view(np.uint64)
                if kind == "float" and (is_nan := np.isnan(values)).any():
                    bits = np.where(is_nan, _NAN, bits)
            hashes = mix_bits(hashes + bits)
        sums += hashes.sum(axis=1, dtype=np.uint64)
    return _to_hex(sums)


def add_hashes(hashes: Sequence[str]) -> str:
    """Return the hash of several pieces together, from those of each.

    >>> add_hashes(["0000000000000001" * 2, "ffffffffffffffff" * 2])
    '00000000000000000000000000000000'
    """
    sums = np.zeros(2, dtype=np.uint64)
    for one in hashes:
        sums += np.frombuffer(bytes.fromhex(one), dtype=">u8").astype(np.uint64)
    return _to_hex(sums)


def hash_table(columns: Sequence[tuple[str, ...]], n_rows: int, rows: str) -> str:
    """Return the SHA-256 of the columns in any order, the number of rows and their hash."""
    described = json.dumps([sorted(columns), n_rows, rows], ensure_ascii=False)
    return hashlib.sha256(described.encode()).hexdigest()


def _to_hex(sums: Keys) -> str:
    return sums.astype(">u8").tobytes().hex()


def _text_bits(texts: Any) -> Keys:
    """Return two hashes of each text.

    They are of its length and its UTF-8 bytes, eight at a time for all texts together.
    """
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    starts, sizes, n_bytes = ends[:-1] - ends[0], np.diff(ends), int(ends[-1] - ends[0])
    padded = np.zeros(n_bytes + 8, dtype=np.uint8)
    if n_bytes:
        padded[:n_bytes] = np.frombuffer(data, dtype=np.uint8)[ends[0] : ends[-1]]
    eight_bytes_from = np.ndarray(n_bytes + 1, dtype="<u8", buffer=padded, strides=(1,))
    hashes = mix_bits(_STARTS[:, None] + sizes.view(np.uint64))
    # Most texts have about the same length: as long as none has ended, no index is needed.
    unfinished: slice | Int = slice(None) if sizes.all() else np.flatnonzero(sizes)
    at, left = 0, sizes[unfinished]
    while len(left):
        words = eight_bytes_from[starts[unfinished] + at].astype(np.uint64)
        words &= _FIRST_BYTES[np.minimum(left, 8)]
        for row in hashes:
            row[unfinished] = mix_bits(row[unfinished] + words)
        going_on = left > 8
        if not going_on.all():
            unfinished = np.arange(len(sizes))[unfinished][going_on]
        at, left = at + 8, left[going_on] - 8
    return hashes
