"""A keyword declared once, in the field of a TypedDict: its type, words, default and heading.

A function that has `**options: Unpack[Table]` takes the keywords of the fields of `Table`: type checkers know
them from there. At run time `takes(Table)` refuses other names and lists the fields in the docstring.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import wraps
from textwrap import fill
from typing import Any, ParamSpec, TypeVar

from recsys.errors import UnknownNameError

P = ParamSpec("P")
R = TypeVar("R")
_WIDTH = 110


@dataclass(frozen=True, eq=False)
class Keyword:
    """A keyword argument, as it is declared once for all functions that take it.

    Args:
        words: what it means, as documentation and help show it.
        default: its value where it is left out.
        group: the heading it is documented under.
        option: its option in the command with the form of its value ("--items FILE"), "" if it has none.
        line: the line of the option in the help; by default the first sentence of `words`.
        name: its name, and `type` its type and `taken_by` the functions that take it: `read_keywords` fills
            them in.
    """

    words: str
    default: Any = None
    group: str = ""
    option: str = ""
    line: str = ""
    name: str = ""
    type: Any = None
    taken_by: tuple[str, ...] = ()

    @property
    def help(self) -> str:
        """The line of its option in the help of the command."""
        first = self.words.partition(". ")[0].removesuffix(".") + "."
        return self.line or first[0].upper() + first[1:]


def declarations(table: type) -> dict[str, Keyword]:
    """Return the keywords that the fields of a TypedDict declare, in their order.

    >>> from typing import Annotated, TypedDict
    >>> declarations(TypedDict("Cutoffs", {"k": Annotated[int, Keyword("cut-offs.", 10)]}))["k"].default
    10
    """
    return {name: field.__metadata__[0] for name, field in table.__annotations__.items()}


def read_keywords(tables: Mapping[str, type]) -> dict[str, Keyword]:
    """Return the keywords by name that {function: TypedDict} declare, with types and who takes them.

    >>> from typing import Annotated, TypedDict
    >>> Cutoffs = TypedDict("Cutoffs", {"k": Annotated[int, Keyword("cut-offs", 10)]})
    >>> found = read_keywords({"evaluate": Cutoffs})["k"]
    >>> found.name, found.type, found.default, found.taken_by
    ('k', <class 'int'>, 10, ('evaluate',))
    """
    takers: dict[str, list[str]] = {}
    declared: dict[str, Keyword] = {}
    for function, table in tables.items():
        for name, keyword in declarations(table).items():
            takers.setdefault(name, []).append(function)
            kind = table.__annotations__[name].__origin__
            declared.setdefault(name, replace(keyword, name=name, type=kind))
    return {name: replace(keyword, taken_by=tuple(takers[name])) for name, keyword in declared.items()}


def takes(
    *tables: type, elsewhere: Mapping[str, str] | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function take the keywords of TypedDicts, and raise UnknownNameError for any other.

    Its docstring gets a list of them, under their headings. The signature need not name all of them.

    Args:
        tables: the TypedDicts.
        elsewhere: what to do instead, for keywords that something else takes.
    """
    table = {name: keyword for each in tables for name, keyword in declarations(each).items()}

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        code = function.__code__
        known = dict.fromkeys(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]) | table

        @wraps(function)
        def call(*arguments: P.args, **keywords: P.kwargs) -> R:
            if not keywords.keys() <= known.keys():
                wrong = next(name for name in keywords if name not in known)
                advice = (elsewhere or {}).get(wrong)
                near = () if advice else known
                raise UnknownNameError(f"keyword of {function.__name__}", wrong, near, hint=advice)
            return function(*arguments, **keywords)

        call.__doc__ = f"{(function.__doc__ or '').rstrip()}\n\n{list_keywords(table)}\n    "
        call.keywords = tuple(known)  # type: ignore[attr-defined]
        return call

    return decorate


def list_keywords(table: Mapping[str, Keyword]) -> str:
    """Return the keywords under their headings, indented as sections of a docstring."""
    groups: dict[str, list[str]] = {}
    for name, keyword in table.items():
        default = "" if keyword.default is None else f" (default: {keyword.default!r})"
        text = f"{name}: {keyword.words.removesuffix('.')}{default}."
        shape = {"initial_indent": " " * 8, "subsequent_indent": " " * 12, "break_on_hyphens": False}
        groups.setdefault(keyword.group, []).append(fill(text, _WIDTH, **shape))  # type: ignore[arg-type]
    return "\n\n".join("\n".join([f"    {group}:", *lines]) for group, lines in groups.items())
