"""The declaration of a keyword argument: its words, default and heading, beside its type in a TypedDict.

A field `k: Annotated[int, Keyword("cut-offs", group="what to measure")]` declares the keyword `k` of every
function whose TypedDict has the field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, eq=False)
class Keyword:
    """A keyword argument, as it is declared once for all functions that take it.

    Args:
        words: what it means, as documentation and help show it.
        default: its value where it is left out.
        group: the heading it is documented under.
        name: its name, and `type` its type and `taken_by` the functions that take it: `read_keywords` fills
            them in.
    """

    words: str
    default: Any = None
    group: str = ""
    name: str = ""
    type: Any = None
    taken_by: tuple[str, ...] = ()


def read_keywords(tables: Mapping[str, type]) -> dict[str, Keyword]:
    """Return the keywords by name that {function: TypedDict} declare, in the order of their fields.

    >>> from typing import Annotated, TypedDict
    >>> Cutoffs = TypedDict("Cutoffs", {"k": Annotated[int, Keyword("cut-offs", 10)]})
    >>> found = read_keywords({"evaluate": Cutoffs})["k"]
    >>> found.name, found.type, found.default, found.taken_by
    ('k', <class 'int'>, 10, ('evaluate',))
    """
    found: dict[str, Keyword] = {}
    for function, table in tables.items():
        for name, annotation in table.__annotations__.items():
            known = found.get(name)
            if known is None:
                kind, declared = annotation.__origin__, annotation.__metadata__[0]
                known = replace(declared, name=name, type=kind)
            found[name] = replace(known, taken_by=(*known.taken_by, function))
    return found
