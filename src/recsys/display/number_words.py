"""Numbers with the words that belong to them."""

from __future__ import annotations

import re


def count_with_noun(n: int, words: str) -> str:
    """A count with its noun, in the singular or the plural.

    >>> count_with_noun(1, "item|items shown that has|have no vector"), count_with_noun(2000, "user|users")
    ('1 item shown that has no vector', '2,000 users')
    """
    return f"{n:,} " + re.sub(r"(\w+)\|(\w+)", r"\1" if n == 1 else r"\2", words)
