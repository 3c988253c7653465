"""Every error and warning the library raises on purpose.

Each one says what came, what was expected and what to do; the parts are also fields, so a program
can read them. All errors derive from RecsysError and from the built-in a caller would expect.
"""

from __future__ import annotations

import difflib
import inspect
import warnings
from collections.abc import Iterable
from typing import Any

__all__ = [
    "ColumnError",
    "ConventionError",
    "CutoffError",
    "DuplicateError",
    "FileError",
    "FloatIdWarning",
    "IdTypeError",
    "InputError",
    "ManifestError",
    "MergeError",
    "MissingExtraError",
    "NotDefinedError",
    "OutOfBoundsError",
    "RecsysError",
    "RecsysWarning",
    "SplitError",
    "SwappedFactorsWarning",
    "TieWarning",
    "UnknownNameError",
    "warn",
]


class RecsysError(Exception):
    """Base of all errors; `table`, `column`, `row` say where, `hint` says what to do.

    The text is the message, then the hint, then the place in brackets.
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
        self.message = message
        self.table = table
        self.column = column
        self.row = row
        self.hint = hint
        super().__init__(message)

    def __str__(self) -> str:
        where = [
            f"{name} {value!r}"
            for name, value in (("table", self.table), ("column", self.column), ("row", self.row))
            if value is not None
        ]
        hint = f" {self.hint}" if self.hint else ""
        place = f" [{', '.join(where)}]" if where else ""
        return f"{self.message}{hint}{place}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.__dict__.copy())


def _rebuild(kind: type[RecsysError], message: str, state: dict[str, Any]) -> RecsysError:
    """Unpickle an error without running its own __init__: the signatures differ."""
    bare: RecsysError = type(kind.__name__, (kind,), {"__init__": Exception.__init__})(message)
    bare.__class__ = kind
    bare.__dict__.update(state)
    return bare


class InputError(RecsysError, ValueError):
    """A table, list or array that cannot be evaluated as it is."""


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


class CutoffError(InputError):
    """A cut-off k that is not a positive whole number, or is missing or not allowed."""


class UnknownNameError(RecsysError, ValueError):
    """An unknown metric, convention, preset or option; the nearest names are suggested."""

    def __init__(self, what: str, name: object, known: Iterable[str], *, hint: str | None = None) -> None:
        choices = sorted(set(known))
        near = difflib.get_close_matches(str(name).lower(), choices, n=3, cutoff=0.5)
        advice = f"Did you mean {' or '.join(map(repr, near))}?" if near else f"Known: {', '.join(choices)}."
        parts = [advice] if choices else []
        super().__init__(f"unknown {what} {name!r}.", hint=" ".join([*parts, *([hint] if hint else [])]))
        self.name = name
        self.near = near


class ConventionError(RecsysError, ValueError):
    """A convention value that is not allowed, or contradicts another option."""


class NotDefinedError(RecsysError, ValueError):
    """The metric is not defined on this input (say, AUC on truncated lists)."""


class MergeError(RecsysError, ValueError):
    """Partial results that cannot be merged: a case occurs twice, or the requests differ."""


class OutOfBoundsError(RecsysError, ArithmeticError):
    """A metric left its own range: a defect of the metric, never returned as a result."""


class MissingExtraError(RecsysError, ImportError):
    """An optional package is needed; the hint is the command that installs it."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed.",
            hint=f"Install it with: pip install 'recsys-evaluation[{extra}]'",
        )
        self.package = package
        self.extra = extra


class FileError(InputError, OSError):
    """A file that is missing, truncated, of an unknown kind, or refused (pickle)."""


class RecsysWarning(UserWarning):
    """Base of all warnings."""


class TieWarning(RecsysWarning):
    """The value depends on how equal scores were ordered."""


class FloatIdWarning(RecsysWarning):
    """Ids came as floats; they were whole numbers and were read as integers."""


class SwappedFactorsWarning(RecsysWarning):
    """The user matrix holds the items and vice versa; the two were exchanged."""


def warn(category: type[Warning], text: str) -> None:
    """Warn at the caller's line outside the library, however deep the call is."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__")).split(".")[0] == "recsys":
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=max(level - 1, 1) if frame is None else level)


def __dir__() -> list[str]:
    return __all__
