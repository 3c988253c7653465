"""Sizes of memory as people write them: "1GB", "512 MB", "1GiB", or a number of bytes."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import numpy as np

from recsys.errors import InputError, Phrase

_UNITS = ("", "K", "M", "G", "T")
_SIZE = re.compile(r"(\d+\.?\d*|\.\d+)\s*([KMGT]?)((?<=[KMGT])I)?B?", re.IGNORECASE | re.ASCII)
_MOST = 1 << 62


def parse_memory(size: Any) -> int:
    """Bytes of a size; KB, MB, GB, TB are powers of 1000, KiB, MiB, GiB, TiB of 1024.

    Args:
        size: text, or a whole number of bytes.

    >>> parse_memory("1.5GB"), parse_memory("512 MiB"), parse_memory(4096)
    (1500000000, 536870912, 4096)
    """
    n_bytes: int | Fraction = 0
    if isinstance(size, str) and (found := _SIZE.fullmatch(size.strip())):
        number, unit, binary = found.groups()
        n_bytes = Fraction(number) * (1024 if binary else 1000) ** _UNITS.index(unit.upper())
    elif isinstance(size, int | float | np.integer | np.floating) and not isinstance(size, bool):
        n_bytes = int(size) if size == size // 1 else 0  # neither NaN nor infinity is
    if not 1 <= n_bytes <= _MOST:
        raise InputError(
            Phrase("{memory=} is not a size of memory.", memory=size),
            hint=Phrase("Write {memory='1GB'} or 512MB, or a whole number of bytes."),
        )
    return int(n_bytes)


def format_memory(n_bytes: int) -> str:
    """Return a size in two or three digits that `parse_memory` reads, rounded up so that it is enough.

    >>> format_memory(4_194_304), format_memory(812), format_memory(1_000_000_001)
    ('4.2MB', '812B', '1.1GB')
    """
    power = min(max(0, len(str(int(n_bytes))) - 1) // 3, len(_UNITS) - 1)
    number = -(-n_bytes * 10 // 1000**power) / 10
    return f"{number:.1f}".removesuffix(".0") + f"{_UNITS[power]}B"
