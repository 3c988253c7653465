"""Every error and warning the library raises on purpose.

Each one says what came, what was expected and what to do; the parts are also fields, so a program
can read them. All errors derive from RecsysError and from the built-in a caller would expect.
What to type is a `Fix` in the text, so that the command and protocol files word it for themselves.
"""

from __future__ import annotations

import difflib
import inspect
import re
import warnings
from ast import literal_eval
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from string import Formatter
from typing import Any, ParamSpec, Self, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

__all__ = [
    "ColumnError",
    "ConventionError",
    "CutoffError",
    "DuplicateError",
    "FileError",
    "Fix",
    "FloatIdWarning",
    "IdTypeError",
    "InputError",
    "ManifestError",
    "MergeError",
    "MissingExtraError",
    "MissingFileError",
    "NoRowsError",
    "NotDefinedError",
    "OutOfBoundsError",
    "Phrase",
    "ProtocolError",
    "RecsysDeprecationWarning",
    "RecsysError",
    "RecsysWarning",
    "SplitError",
    "SwappedFactorsWarning",
    "TieWarning",
    "TunedOnItselfWarning",
    "UnknownNameError",
    "hush",
    "verb",
    "warn",
    "worded",
    "wording",
]

# What a caller passed may be of any length; a message about it may not.
_LONGEST_VALUE = 200
_LONGEST_PART = 2000
_MOST_REMEMBERED = 1000  # warnings of one module that were shown already
_CERTAINLY_SHORT = 600  # in a text of this length nothing between quotes is cut: it may be a sentence
_LONG_WORD = re.compile(rf"\S{{{_LONGEST_VALUE},}}")
_LONG_QUOTE = re.compile(rf"'[^']{{{_LONGEST_VALUE},}}'|\"[^\"]{{{_LONGEST_VALUE},}}\"")


@dataclass(frozen=True)
class Fix:
    """What to type: a parameter of a function, with a value; `str` of it is the keyword argument in Python.

    Args:
        parameter: its name; "" means the function itself.
        example: its value; `...` leaves it open, also within a dict.
        of: the function, a public name of recsys, or a method of what it returns, such as
            "Evaluation.intervals"; the decisions of the conventions count as parameters of evaluate.

    >>> print(Fix("ties", "best"), Fix("train"), Fix("columns", {"user": ...}), Fix("", of="explain"))
    ties='best' train= columns={'user': ...} recsys.explain
    """

    parameter: str
    example: Any = ...
    of: str = "evaluate"

    def __post_init__(self) -> None:
        if isinstance(self.example, float):  # 4.0 is typed as 4, and NumPy's numbers as Python's
            whole = self.example.is_integer()
            object.__setattr__(self, "example", int(self.example) if whole else float(self.example))

    def __str__(self) -> str:
        value = "" if self.example is ... else repr(self.example).replace("Ellipsis", "...")
        owner, _, method = self.of.partition(".")
        called = f"result.{method}()" if method else f"recsys.{owner}"
        return f"{self.parameter}={value}" if self.parameter else called


Face = Callable[[Fix], str]  # the words of a place where one types: Python, the command, a protocol file
_FACE: ContextVar[Face] = ContextVar("_FACE", default=str)


class Phrase(str):
    """A text with fixes in it: their keywords in Python, and what another face of the library makes of them.

    `template` is the text, with a place `{}` for each value, as `str.format` has them. `{train=}` is a fix,
    `{ties='best'}` one with an example, `{split.test=0.2}` one of another function than evaluate,
    `{columns.user=}` the name of a column, and `{explain()}` a function; as in an f-string, the value of
    `{memory=}` may be given by name. `values` are fixes, phrases, and whatever can be formatted; `named` are
    those of places with a name, `{n}`, and the examples of fixes.

    >>> text = Phrase("{:.1f} MB: pass {ties='best'} or {memory=}.", 0.25, memory="2GB")
    >>> text
    "0.2 MB: pass ties='best' or memory='2GB'."
    >>> worded("Error: " + text, lambda fix: f"--{fix.parameter}")
    'Error: 0.2 MB: pass --ties or --memory.'
    """

    __slots__ = ("parts",)
    parts: tuple[str | Fix, ...]

    def __new__(cls, template: str, *values: object, **named: object) -> Self:
        left, parts = iter(values), list[str | Fix]()
        for text, field, form, conversion in Formatter().parse(template):
            parts.append(text)
            if field is None:
                continue
            if field.isidentifier() or not field:
                value = named[field] if field else next(left)
            else:
                value = _fix_of(field, named)
            if isinstance(value, Phrase):
                parts += value.parts
            else:
                value = repr(value) if conversion == "r" else value
                parts.append(value if isinstance(value, Fix) else format(value, form or ""))
        phrase = super().__new__(cls, _shorten("".join(map(str, parts))))
        phrase.parts = tuple(parts)
        return phrase

    def __str__(self) -> str:
        return self  # not a copy without the fixes

    def __add__(self, other: str) -> Phrase:
        return Phrase("{}{}", self, other)

    def __radd__(self, other: str) -> Phrase:
        return Phrase("{}{}", other, self)

    def __reduce__(self) -> tuple[Any, ...]:
        return Phrase, ("{}" * len(self.parts), *self.parts)


def _fix_of(field: str, examples: Mapping[str, object]) -> Fix:
    """Return the fix that a field of a phrase names, such as "split.test=0.2" or "explain()"."""
    path, _, value = field.partition("=")
    if path.endswith("()"):
        return Fix("", of=path[:-2])
    *of, parameter = path.split(".")
    example = literal_eval(value) if value else examples.get(parameter, ...)
    if of[-1:] == ["columns"]:
        parameter, example = of.pop(), {parameter: example}
    return Fix(parameter, example, ".".join(of) or "evaluate")


def worded(text: str, face: Face | None = None) -> str:
    """Return the text with its fixes in the words of a face, by default that of `wording`."""
    if not isinstance(text, Phrase):
        return text
    face = face or _FACE.get()
    return _shorten("".join(face(part) if isinstance(part, Fix) else part for part in text.parts))


class RecsysError(Exception):
    """Base of all errors; `table`, `column`, `row` say where, `hint` says what to do.

    The text is the message, then the hint, then the place in brackets. Values in it that are longer than 200
    letters are cut in the middle.

    >>> len(str(InputError(f"unknown id {'x' * 100_000!r}.", hint="Check the ids."))) < 250
    True
    """

    def __init__(
        self,
        message: str,
        *,
        table: str | None = None,
        column: str | None = None,
        row: Any = None,
        hint: str | None = None,
    ) -> None:
        self.message = _shorten(message)
        self.table = table
        self.column = column
        self.row = row
        self.hint = None if hint is None else _shorten(hint)
        super().__init__(self.message)

    def __str__(self) -> str:
        where = [
            f"{name} {_cut(repr(value), _LONGEST_VALUE)}"
            for name, value in (("table", self.table), ("column", self.column), ("row", self.row))
            if value is not None
        ]
        # A message that ends with the words of another error may lack the full stop before the advice.
        stop = "" if self.message.endswith((".", "!", "?", ":", ";")) else "."
        hint = f"{stop} " + self.hint if self.hint else ""
        return self.message + hint + (f" [{', '.join(where)}]" if where else "")

    def word(self, face: Face) -> None:
        """Put the fixes in the message and the hint into the words of a face, for good."""
        self.message, self.hint = worded(self.message, face), self.hint and worded(self.hint, face)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.__dict__.copy())


def _shorten(text: str) -> str:
    """Cut long values of a text in the middle; return it as it is if it is long for another reason."""
    if isinstance(text, Phrase):
        return text  # it was shortened when it was made
    for pattern, short in ((_LONG_WORD, _LONGEST_VALUE), (_LONG_QUOTE, _CERTAINLY_SHORT)):
        if len(text) > short:
            text = pattern.sub(lambda found: _cut(found.group(), _LONGEST_VALUE), text)
    return _cut(text, _LONGEST_PART)


def _cut(text: str, longest: int) -> str:
    half = (longest - 3) // 2
    return text if len(text) <= longest else f"{text[:half]} … {text[-half:]}"


def _rebuild(kind: type[RecsysError], message: str, state: dict[str, Any]) -> RecsysError:
    """Unpickle an error without running its own __init__: the signatures differ."""
    bare: RecsysError = type(kind.__name__, (kind,), {"__init__": Exception.__init__})(message)
    bare.__class__ = kind
    bare.__dict__.update(state)
    return bare


@contextmanager
def wording(face: Face) -> Iterator[None]:
    """Within it texts have the words of a face, such as the options of the command; so have its errors."""
    token = _FACE.set(face)
    try:
        yield
    except RecsysError as error:
        error.word(face)
        raise
    finally:
        _FACE.reset(token)


class InputError(RecsysError, ValueError):
    """A table, list or array that cannot be evaluated as it is."""


def came_as(what: str, value: object, *, hint: str | None = None, table: str | None = None) -> InputError:
    """Return an InputError about a value of a type that cannot be read; `what` says what it was to be."""
    return InputError(f"{what} came as {type(value).__name__}.", hint=hint, table=table)


class IdTypeError(InputError, TypeError):
    """Ids of mixed or unsupported type, or of different types on the two sides."""


class ColumnError(InputError):
    """A column is missing, ambiguous or of the wrong type."""


class DuplicateError(InputError):
    """Duplicate rows or list entries where the conventions say they are an error."""


class SplitError(InputError):
    """A split or sample that cannot be made: a fraction out of range, an empty side, a tie."""


class ManifestError(InputError):
    """Data or results differ from what a manifest describes; `differs` names what differs."""

    def __init__(self, message: str, *, differs: Iterable[str] = (), hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.differs = list(differs)


class ProtocolError(InputError):
    """A protocol that asks for what no protocol may do, such as writing outside its own folder."""


class CutoffError(InputError):
    """A cut-off k that is not a positive whole number, or is missing or not allowed."""


class UnknownNameError(RecsysError, ValueError):
    """An unknown metric, convention, preset or option; the nearest names are suggested."""

    def __init__(self, what: str, name: object, known: Iterable[object], *, hint: str | None = None) -> None:
        by_text = {str(one): one for one in known}  # names of models may be numbers
        choices = sorted(by_text)
        try:
            text = name if isinstance(name, str) else repr(name)
        except Exception:  # noqa: BLE001 - a damaged object may not be printable
            text = type(name).__name__
        near = difflib.get_close_matches(text[:_LONGEST_VALUE].lower(), choices, n=3, cutoff=0.5)
        suggestions = " or ".join(repr(by_text[choice]) for choice in near)
        advice = f"Did you mean {suggestions}?" if near else f"Known: {', '.join(choices)}."
        advice = advice if choices else ""
        shown = repr(name) if isinstance(name, str) else text
        super().__init__(
            f"unknown {what} {shown}.", hint=f"{advice} " + hint if advice and hint else hint or advice
        )
        self.name = name
        self.near = near


def check_choice(what: str, value: object, known: Iterable[str]) -> None:
    """Raise an error if a value is not one of the known names."""
    names = tuple(known)
    if not isinstance(value, str) or value not in names:
        raise UnknownNameError(what, value, names)


class ConventionError(RecsysError, ValueError):
    """A convention value that is not allowed, or contradicts another option."""


class NotDefinedError(RecsysError, ValueError):
    """The metric is not defined on this input (say, AUC on truncated lists)."""


class NoRowsError(NotDefinedError):
    """The values per user, which the result does not hold, are needed; `why` says where they were sought."""

    def __init__(self, what: str = "this", why: str = "") -> None:
        super().__init__(
            f"{what} needs the values per user, and {why or 'they were not kept'}.",
            hint=("Put that folder back, or evaluate" if why else "Evaluate")
            + Phrase(" again with {per_user='folder/'}."),
        )


class MergeError(RecsysError, ValueError):
    """Partial results that cannot be merged: a case occurs twice, or the requests differ."""


class OutOfBoundsError(RecsysError, ArithmeticError):
    """A metric left its own range: a defect of the metric, never returned as a result."""


class MissingExtraError(RecsysError, ImportError):
    """An optional package is needed; the hint is the command that installs it.

    `extra` is the extra of this library that has the package, None if no extra has it.
    """

    def __init__(self, package: str, extra: str | None, purpose: str) -> None:
        what = package if extra is None else f"'recsys-evaluation[{extra}]'"
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed.",
            hint=f"Install it with: pip install {what}",
        )
        self.package = package
        self.extra = extra


@contextmanager
def needs_extra(package: str, extra: str | None, purpose: str) -> Iterator[None]:
    """Turn an import that fails inside into a MissingExtraError of this package."""
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(package, extra, purpose) from error


class FileError(InputError, OSError):
    """A file that is missing, truncated, of an unknown kind, or refused (pickle)."""


class MissingFileError(FileError, FileNotFoundError):
    """There is no such file."""


class RecsysWarning(UserWarning):
    """Base of all warnings."""


class RecsysDeprecationWarning(RecsysWarning, FutureWarning):
    """The call works today and will be an error in a later version; the text says what to write instead."""


class StatisticsWarning(RecsysWarning):
    """A doubtful number, or a test or interval that may not hold its level; `recsys.stats` has each kind."""


class TieWarning(RecsysWarning):
    """The value depends on how equal scores were ordered."""


class FloatIdWarning(RecsysWarning):
    """Ids came as floats; they were whole numbers and were read as integers."""


class SwappedFactorsWarning(RecsysWarning):
    """The user matrix holds the items and vice versa; the two were swapped."""


class TunedOnItselfWarning(RecsysWarning):
    """Runs are fused with parameters that were chosen on them, so their metrics are too good to be true."""


def verb(function: Callable[P, R]) -> Callable[P, R]:
    """Wrap a function of the public face: a misspelt keyword raises an error that names the nearest ones."""
    code = function.__code__
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]

    @wraps(function)
    def call(*arguments: P.args, **keywords: P.kwargs) -> R:
        for name in keywords:
            if name not in known:
                raise UnknownNameError(f"keyword of {function.__name__}", name, known)
        return function(*arguments, **keywords)

    return call


_Given = list[tuple[type[Warning], str]]
_HUSHED: ContextVar[tuple[tuple[tuple[type[Warning], ...], _Given], ...]] = ContextVar("_HUSHED", default=())


@contextmanager
def hush(*categories: type[Warning]) -> Iterator[_Given]:
    """Keep warnings of ours of these categories in a list inside, and do not give them.

    It is for this thread alone. `warnings.catch_warnings` changes the whole process: a thread would hear the
    warnings of another, and two threads that leave it in the wrong order leave the filters changed for good.
    """
    kept: _Given = []
    token = _HUSHED.set(((categories, kept), *_HUSHED.get()))
    try:
        yield kept
    finally:
        _HUSHED.reset(token)


@contextmanager
def notes_only() -> Iterator[None]:
    """Inside, cautions of statistics do not warn: they are notes on the results only."""
    with hush(StatisticsWarning):
        yield


def warn(category: type[Warning], text: str) -> None:
    """Warn at the caller's line outside the library, however deep the call is."""
    for categories, kept in _HUSHED.get():
        if issubclass(category, categories):
            kept.append((category, text))
            return
    level, frame = 1, inspect.currentframe()
    # A `with` of ours that warns at its end is called by contextlib.
    while frame is not None and str(frame.f_globals.get("__name__")).split(".")[0] in (
        "recsys",
        "contextlib",
    ):
        level, frame = level + 1, frame.f_back
    # Python remembers every text it has shown for a module, and ours have numbers in them.
    shown = {} if frame is None else frame.f_globals.get("__warningregistry__", {})
    if len(shown) > _MOST_REMEMBERED:
        shown.clear()
    warnings.warn(text, category, stacklevel=max(level - 1, 1) if frame is None else level)


def __dir__() -> list[str]:
    return __all__
