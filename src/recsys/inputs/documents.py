"""What a retriever returns for a query, dicts or objects with an id and a score, as (item, number)."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any

from recsys.errors import InputError
from recsys.records.arrays import Array

_IDS = ("node_id", "doc_id", "id", "_id", "id_", "document_id")
_NUMBERS = {True: ("score", "similarity"), False: ("grade", "relevance", "score")}


def pairs_of_documents(
    entries: list[Any], user_names: Array, first: Any, *, ordered: bool, table: str
) -> list[Any]:
    """Return entries as they are, or where the first holds documents all of them as ids or pairs.

    The number is a score of lists (`ordered`) or a grade of truth; the ids are those of the first document.

    Raises:
        InputError: a document has no id or, where others have one, no number.
    """
    name = next((name for name in _IDS if _value(first, name) is not None), None)
    if name is None or isinstance(first, str | bytes | numbers.Number | type):
        return entries
    number = next((n for n in _NUMBERS[ordered] if _value(first, n) is not None), None)
    found = []
    for entry, user in zip(entries, user_names.tolist(), strict=True):
        if not isinstance(entry, list | tuple):
            raise InputError(
                f"user {user} holds {type(entry).__name__}, the users before hold lists of documents.",
                table=table,
                row=user,
                hint="Write every user as a list of documents.",
            )
        pairs = []
        for place, one in enumerate(entry, start=1):
            item, value = _value(one, name), None if number is None else _value(one, number)
            if item is None or (number is not None and value is None):
                raise InputError(
                    f"document {place} of user {user} has no {name if item is None else number}, "
                    "and the first document has.",
                    table=table,
                    row=user,
                    hint=f"Give each document the same keys, such as {{'{name}': 'd1', "
                    f"'{number or 'score'}': 0.5}}.",
                )
            pairs.append(item if number is None else (item, value))
        found.append(pairs)
    return found


def _value(document: Any, name: str) -> Any:
    if isinstance(document, Mapping):
        return document.get(name)
    return getattr(document, name, None)
