"""What a person at the terminal reads when something is wrong, and the exit code a script reads.

What the library says to type is a keyword argument in Python; here it is worded as an option.
"""

from __future__ import annotations

import os
import shlex
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from recsys.comparison.compare_keywords import CompareOptions
from recsys.errors import (
    ConventionError,
    CutoffError,
    Fix,
    MissingExtraError,
    NotDefinedError,
    OutOfBoundsError,
    RecsysError,
    UnknownNameError,
    worded,
)
from recsys.evaluation.evaluate_keywords import EvaluateKeywords
from recsys.records.keywords import declarations

FAILED, USAGE, DATA, EXTRA, INTERNAL, INTERRUPTED, PIPE = 1, 2, 3, 4, 5, 130, 141
_USAGE_ERRORS = (UnknownNameError, ConventionError, CutoffError, NotDefinedError)
# Parameters whose option is not their own name with dashes, by function; None: they are for Python alone.
OPTIONS: dict[tuple[str, str], str | None] = {
    **{
        (function, name): keyword.option.partition(" ")[0] or None
        for function, table in (("compare", CompareOptions), ("evaluate", EvaluateKeywords))
        for name, keyword in declarations(table).items()
    },
    ("Evaluation.intervals", ""): "--intervals", ("audit", "models"): "--model",
    ("gate", "margins"): "--non-inferior",
    ("conform", "decisions"): "--default-only",
    ("fuse", "gamma"): "--param gamma=NUMBER",
    ("fuse", "k"): "--param k=NUMBER", ("fuse", "phi"): "--param phi=NUMBER",
    ("fuse", "sigma"): "--param sigma=NUMBER", ("fuse", "w"): "--param w=NUMBER",
    ("models.Pairs.of_ids", "order"): "--time COLUMN", ("split", "by"): "--split-by", ("split", "n"): "-n",
    ("split", "n_folds"): "--folds", ("split", "n_windows"): "--windows", ("split", "test"): "--test-share",
    ("split", "train"): "--train-length", ("tune_fusion", ""): "--tune-on FILE … --truth FILE",
    **dict.fromkeys([
        ("audit", "popularity"), ("evaluate", "per_metric"), ("fuse", "log_odds"), ("fuse", "map_scores"),
        ("fuse", "probs"),
    ]),
}  # fmt: skip


def as_option(fix: Fix) -> str:
    """What is typed in the command.

    >>> print(as_option(Fix("ties", "best")), as_option(Fix("columns", {"user": ...})))
    --set ties=best --user COLUMN
    >>> print(as_option(Fix("test", 0.2, of="split")), as_option(Fix("", of="explain")))
    --test-share 0.2 recsys explain
    """
    usual = f"--{fix.parameter.replace('_', '-')}" if fix.parameter else f"recsys {fix.of.rpartition('.')[2]}"
    option = OPTIONS.get((fix.of, fix.parameter), usual)
    if fix.parameter == "columns" and isinstance(fix.example, dict):
        return " ".join(f"--{name} {_typed(column) or 'COLUMN'}" for name, column in fix.example.items())
    if option is None:
        return f"{fix} in Python"
    from recsys.conventions.decisions import Conventions

    if fix.of == "evaluate" and fix.parameter in Conventions.__dataclass_fields__:
        return f"--set {fix.parameter}={_typed(fix.example)}"
    return f"{option} {_typed(fix.example)}".rstrip()


def _typed(value: Any) -> str:
    """A value as it is typed in a shell; nothing for a flag and for one that is left open."""
    if value is ... or value is True or value == []:
        return ""
    if isinstance(value, tuple):
        return " ".join(map(_typed, value))
    if isinstance(value, list | dict) and value:
        pairs = (f"{name}={n}" for name, n in value.items()) if isinstance(value, dict) else map(str, value)
        return ",".join(map(shlex.quote, pairs))
    return "none" if value is None or value == {} else shlex.quote(str(value))


@contextmanager
def exit_on_errors(*, debug: bool) -> Iterator[None]:
    """Turn errors into one paragraph and an exit code; with `debug` the traceback comes first."""
    try:
        yield
    except (click.exceptions.Exit, click.ClickException, click.Abort):
        raise
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(PIPE)
    except KeyboardInterrupt:
        _exit_with("interrupted.", INTERRUPTED, debug=debug)
    except RecsysError as error:
        _exit_with(str(error), _exit_code(error), debug=debug)
    except OSError as error:
        file = f"{error.filename}: " if error.filename else ""
        text = f"{file}{error.strerror or error}. Check the path, its permissions and the space left."
        _exit_with(text, DATA, debug=debug)
    except MemoryError:
        text = "there is not enough memory. recsys evaluate --memory SIZE reads tables piece by piece."
        _exit_with(text, DATA, debug=debug)
    except Exception as error:  # noqa: BLE001 - the last line of defence
        text = f"{type(error).__name__}: {error}. This is a defect; recsys --debug … shows where."
        _exit_with(f"internal error: {text}", INTERNAL, debug=debug)


@contextmanager
def print_warnings() -> Iterator[None]:
    """Print each warning as one line on standard error."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        note(message if isinstance(message, str) else message.args[0], head="warning")

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show
        yield


def is_quiet() -> bool:
    """Whether the verb was called with --quiet."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.params.get("quiet"))


def note(text: str, *, head: str = "note") -> None:
    """Print one line on standard error that a terminal only shows; with --quiet nothing but errors.

    It is in colour unless piped or NO_COLOR.
    """
    from recsys.display.cells import printable

    if head != "error" and is_quiet():
        return
    colour = {"error": "red", "warning": "yellow", "caution": "yellow"}.get(head, "cyan")
    line = printable(worded(text), " ")
    coloured = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    click.echo(f"{click.style(head, fg=colour) if coloured else head}: {line}", err=True)


def _exit_code(error: RecsysError) -> int:
    if isinstance(error, MissingExtraError):
        return EXTRA
    if isinstance(error, _USAGE_ERRORS):
        return USAGE
    return INTERNAL if isinstance(error, OutOfBoundsError) else DATA


def _exit_with(text: str, code: int, *, debug: bool) -> None:
    if debug:
        traceback.print_exc()
    note(text, head="error")
    sys.exit(code)
