"""Titles to items: `items_of=recsys.titles(table, rule=...)` reads lists of text that a model wrote."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from recsys.errors import InputError, check_choice
from recsys.inputs.ids import encode
from recsys.inputs.items_of import Meaning, pairs_of
from recsys.records.arrays import Ids, cached_property

_YEAR = re.compile(r"\s*[(\[]\s*\d{4}\s*[)\]]\s*$")
_LAST_ARTICLE = re.compile(r"^(.*), (the|an?|les?|la|el|los|las|der|die|das|il|lo)$")
_FIRST_ARTICLE = re.compile(r"^(the|an?) (?=\S)")


def titles(
    table: Any, *, rule: str = "exact", threshold: float = 0.75, columns: Mapping[str, str] | None = None
) -> Titles:
    """Find the items of lists that hold text, for `items_of=`; no language model is run.

    Args:
        table: {title: item or items}, a table or a file with a column of titles and one of items.
        rule: "exact"; "normalised" leaves case, accents, punctuation, a year in brackets at the end and an
            article at the beginning (or after a comma at the end) out; "tokens" takes the titles that share
            the most words with the text, which are at least `threshold` of the words of both.
        threshold: for "tokens": words in common over different words of both, above 0 and at most 1.
        columns: names where detection fails: {"entry": "name", "item": "movie"}.

    Returns:
        What `items_of=` takes. `resolve(text)` gives the items of one text; a text with several is a group of
        tied items. `result.notes["lists"]["entries"]` lists texts without an item and with several.

    Raises:
        UnknownNameError: there is no such rule.
        InputError: the table is empty or no table, or the threshold is not a share.

    >>> found = titles({"The Matrix (1999)": 7, "Amélie": 3}, rule="normalised")
    >>> found.resolve("matrix, the"), found.resolve("AMELIE!"), found.resolve("Matrix 2")
    ([7], [3], [])
    """
    check_choice("rule of titles", rule, _RULES)
    share: Any = threshold
    if not isinstance(share, int | float) or not 0 < share <= 1:
        raise InputError(
            "threshold= is not above 0 and at most 1.", hint="Pass a share of words, such as 0.75."
        )
    texts, items = pairs_of(table, columns, None, "titles", "title")
    if not all(isinstance(text, str) for text in texts):
        raise InputError("titles must be text.", table="titles", hint="Pass {title: item}.")
    ids, codes = encode(items, table="titles", column="item")
    return Titles(tuple(texts), ids, tuple(codes.tolist()), rule, threshold)


@dataclass(frozen=True, eq=False, repr=False)
class Titles:
    """The titles of items, and the rule by which a text is one of them."""

    texts: tuple[str, ...]
    items: Ids
    item: tuple[int, ...]
    rule: str
    threshold: float

    @cached_property
    def _items_by_key(self) -> Mapping[str, list[int]]:
        found: dict[str, dict[int, None]] = {}
        for text, item in zip(self.texts, self.item, strict=True):
            found.setdefault(_RULES[self.rule](text), {})[item] = None
        return {key: [*items] for key, items in found.items()}

    @cached_property
    def _keys_by_word(self) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = {}
        for key in self._items_by_key:
            for word in set(key.split()):
                found.setdefault(word, []).append(key)
        return found

    def resolve(self, text: str) -> list[Any]:
        """Return the items that a text stands for, in the order of the table."""
        return [self.items.name(code) for code in self._codes_of(text)]

    def look_up(self, entries: Ids) -> Meaning:
        """Return the items of the texts of lists."""
        found = [self._codes_of(text) for text in entries.values.tolist()]
        indptr = np.concatenate([[0], np.cumsum([len(codes) for codes in found], dtype=np.int64)])
        return Meaning(self.items, indptr, np.array([c for codes in found for c in codes], dtype=np.int32))

    def as_text(self, lists: Any) -> Any:
        """Return the lists, which hold text."""
        return lists

    def _codes_of(self, text: Any) -> list[int]:
        key = _RULES[self.rule](str(text))
        if self.rule != "tokens" or key in self._items_by_key:
            return self._items_by_key.get(key, [])
        words = set(key.split())
        n_shared: dict[str, int] = {}
        for word in words:
            for other in self._keys_by_word.get(word, ()):
                n_shared[other] = n_shared.get(other, 0) + 1
        overlap = {
            other: n / (len(words) + len(set(other.split())) - n) for other, n in sorted(n_shared.items())
        }
        best = max(overlap.values(), default=0.0)
        keys = [other for other, share in overlap.items() if share == best >= self.threshold]
        return [*dict.fromkeys(code for other in keys for code in self._items_by_key[other])]

    def __repr__(self) -> str:
        return f"titles({len(self.texts):,} of {len(self.items):,} items, rule={self.rule!r})"


def _normalised(text: str) -> str:
    """Return a text as "normalised" compares it.

    >>> _normalised("Good, the Bad and the Ugly, The (1966)")
    'good the bad and the ugly'
    """
    plain = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    plain = _YEAR.sub("", plain.casefold()).strip()
    plain = _LAST_ARTICLE.sub(r"\1", plain)
    words = re.sub(r"[\W_]+", " ", re.sub("['\u2019`]", "", plain)).strip()
    return _FIRST_ARTICLE.sub("", words) or plain


_RULES: Mapping[str, Callable[[str], str]] = {"exact": str, "normalised": _normalised, "tokens": _normalised}
