"""Numbers with the words that belong to them."""

from __future__ import annotations

import math
import re


def count_with_noun(n: int, words: str) -> str:
    """A count with its noun, in the singular or the plural.

    >>> count_with_noun(1, "item|items shown that has|have no vector"), count_with_noun(2000, "user|users")
    ('1 item shown that has no vector', '2,000 users')
    """
    return f"{n:,} " + re.sub(r"(\w+)\|(\w+)", r"\1" if n == 1 else r"\2", words)


def interval_text(low: float, high: float, form: str = ".4f") -> str:
    """The ends of an interval in brackets, by a format specification; empty if the lower is not finite.

    >>> interval_text(0.25, 0.5), interval_text(-1.5, 12.25, "+.1f"), interval_text(float("nan"), 1.0)
    ('[0.2500, 0.5000]', '[-1.5, +12.2]', '')
    """
    return f"[{low:{form}}, {high:{form}}]" if math.isfinite(low) else ""
