"""Numbers with the words that belong to them."""

from __future__ import annotations

import math
import re


def plural(n: int, words: str) -> str:
    """Return a count with its noun, which takes an s for all but 1; with a bar, both forms are given.

    >>> plural(1, "row"), plural(2000, "row"), plural(2, "query|queries is|are")
    ('1 row', '2,000 rows', '2 queries are')
    """
    if "|" not in words:
        return f"{n:,} {words}{'' if n == 1 else 's'}"
    return f"{n:,} " + re.sub(r"(\w+)\|(\w+)", r"\1" if n == 1 else r"\2", words)


def interval_text(low: float, high: float, form: str = ".4f") -> str:
    """Return the ends of an interval in brackets, by a format specification.

    The text is empty if the lower end is not finite.

    >>> interval_text(0.25, 0.5), interval_text(-1.5, 12.25, "+.1f"), interval_text(float("nan"), 1.0)
    ('[0.2500, 0.5000]', '[-1.5, +12.2]', '')
    """
    return f"[{low:{form}}, {high:{form}}]" if math.isfinite(low) else ""
