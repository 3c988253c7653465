"""What a person at the terminal reads when something is wrong, and the exit code a script reads.

The library's errors speak of keyword arguments; here they are worded as options of the command.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import click

from recsys.conventions.decisions import DECISIONS, Conventions
from recsys.errors import (
    ConventionError,
    CutoffError,
    Fix,
    IdTypeError,
    MissingExtraError,
    NotDefinedError,
    OutOfBoundsError,
    Phrase,
    RecsysError,
    UnknownNameError,
    worded,
)

FAILED, USAGE, DATA, EXTRA, INTERNAL, INTERRUPTED, PIPE = 1, 2, 3, 4, 5, 130, 141
_USAGE_ERRORS = (UnknownNameError, ConventionError, CutoffError, NotDefinedError)
# Parameters whose option is not their own name with dashes, by function; None: they are for Python alone.
OPTIONS: dict[tuple[str, str], str | None] = {
    ("evaluate", "per_user"): "--per-user-to",
    ("evaluate", "embeddings"): None,
    ("split", "test"): "--test-share",
}
_DECISION_NAMES = "|".join([*DECISIONS, "relevant_from", "max_grade"])
_OPTION_WORDING: tuple[tuple[str, str], ...] = (
    (r"columns=\{'(\w+)': \.\.\.\}", r"--\1 COLUMN"),
    (r"columns=\{'(\w+)': '?([^'}]*)'?\}", r"--\1 \2"),
    (r"\brecsys\.(compare|explain)(\(a, b\))?(?= says)", r"`recsys \1`"),
    (r"\bfull_ranking=True", "--full-ranking"),
    (r"\bcatalogue= ?\([^)]*\)", "--catalogue N"),
    (r", for example with \.astype\(str\)(; recsys\.read_file[^.]*)?", ""),
    (r"\b(ids|format|encoding|short|unit)='([\w-]+)'", r"--\1 \2"),
    # Not within a metric's parentheses: "ndcg(gain=exp2)@10" is what one types here, too.
    (rf"(?<!\()(?<!--set )\b({_DECISION_NAMES})='?([\w.]+)'?", r"--set \1=\2"),
    (r"\b(user|item)_ids=", r"--\1-ids"),
    (r"\brelevant_from=(?= )", "--relevant-from"),
    (r"\border= \(times, or places in time\)", "--time COLUMN"),
    (r"pass popularity=, or (?=a popularity column)", "pass "),
    (r"\bseen=None", "--seen none"),
    (r"\b(train|items|lists|users|reference|seen|at|length|catalogue|looks)=(?=[ ,.):]|$)", r"--\1"),
    (r"\btest=(?=[ ,.):;]|$)", "--test-share"),
    (r"\btest='([a-z]+)'", r"--statistic \1"),
    (r"\btest=(?=['\d-])'?([^ ',]*[^ ',.])'?", r"--test-share \1"),
    (r"\b(validation|known|at|length)=(?=['\d-])'?([^ ',]*[^ ',.])'?", r"--\1 \2"),
    (r"result\.intervals\(\) has it", "--intervals prints it"),
    (r"pass models=\{name: lists\} with at least two", "pass --model NAME=FILE at least twice"),
    (r"per_user='folder/' \(the command: (--per-user-to folder/)\)", r"\1"),
    (r"\bper_user='([^']*)'", r"--per-user-to \1"),
    (r"\bper_user=(?=[ ,.)]|$)", "--per-user-to"),
    (r"\b(memory|checkpoint)='([^']*)'", r"--\1 \2"),
    (r"\b(memory|checkpoint)=(?=[ ,.)]|$)", r"--\1"),
    (r"\bon_tie='(\w+)'", r"--on-tie \1"),
    (r"needs weights=\. recsys\.tune_fusion", r"needs --weights, one per file. recsys.tune_fusion"),
    (r"needs (\w+)=\. recsys\.tune_fusion", r"needs --param \1=NUMBER. recsys.tune_fusion"),
    (r"recsys\.tune_fusion\(runs, truth[^)]*\) finds it", "--tune-on FILE … --truth FILE finds it"),
    (r'\b(missing|norm)="([\w-]+)"', r"--\1 \2"),
    (r"\bbad_rows='(\w+)'", r"--bad-rows \1"),
    (r", or (covariate_means|stratum_shares)=", ""),
    (r"Pass embeddings=\{item: vector\}[^.]*\.", "Vectors are given in Python: evaluate(…, embeddings=…)."),
    (r", or popularity=\{[^}]*\}| or popularity=", ""),
    (r"\bstrata='?(\w+)'?", r"--strata \1"),
    (r"\bmargin=(?=\d)", "--margin "),
    (r"\bno_worse_than=(?=\d)", "--no-worse-than "),
)


_SETTING_WORDING: tuple[tuple[str, str], ...] = (
    (r"columns=\{'(\w+)': \.\.\.\}", r'[data.columns] \1 = "COLUMN" (of lists: [models.NAME.columns])'),
    (r"columns=\{'(\w+)': '?([^'}]*)'?\}", r'[data.columns] \1 = "\2" (of lists: [models.NAME.columns])'),
    (r", for example with \.astype\(str\)(; recsys\.read_file[^.]*)?", ""),
    (r"\bids='(\w+)'", r'ids = "\1" in [data]'),
    (r"\b(user|item)_ids=", r'\1_ids = "FILE"'),
    (rf"(?<!\()\b({_DECISION_NAMES})='?([\w.]+)'?", r'\1 = "\2" in [conventions]'),
    (r"\btrain=(?=[ ,.)]|$)", 'train = "FILE" in [data]'),
    (r"\b(\w+)='([\w-]+)'", r'\1 = "\2"'),
)


@contextmanager
def in_protocol() -> Iterator[None]:
    """Reword errors as settings of the protocol file, not as options of the command."""
    try:
        yield
    except RecsysError as error:
        from recsys.benching.protocol.keys import as_key

        error.word(as_key)
        error.message, error.hint = (_reword(t, _SETTING_WORDING) for t in (error.message, error.hint or ""))
        raise _ReportedError(str(error), _exit_code(error)) from error


class _ReportedError(RecsysError):
    """An error whose message is worded already."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code


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
        error.word(as_option)
        text = str(error)
        with suppress(MemoryError):  # the words of the library do, too
            text = text if isinstance(error, _ReportedError) else as_options(text)
        if isinstance(error, IdTypeError) and "--ids" not in text:
            text += " --ids str or --ids int reads both files the same way."
        _exit_with(text, _exit_code(error), debug=debug)
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
def print_warnings(*, quiet: bool) -> Iterator[None]:
    """Print each warning as one line on standard error, or not at all."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if not quiet:
            note(as_options(message if isinstance(message, str) else message.args[0]), head="warning")

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show
        yield


def note(text: str, *, head: str = "note") -> None:
    """Print one line on standard error that a terminal only shows; in colour unless piped or NO_COLOR."""
    from recsys.display.cells import printable

    colour = {"error": "red", "warning": "yellow", "caution": "yellow"}.get(head, "cyan")
    line = printable(text, " ")
    coloured = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    click.echo(f"{click.style(head, fg=colour) if coloured else head}: {line}", err=True)


def as_options(text: str) -> str:
    """A message of the library in the words of the command.

    >>> as_options("Say which: columns={'user': 'uid'}, or use ties='best'.")
    'Say which: --user uid, or use --set ties=best.'
    """
    return worded(text, as_option) if isinstance(text, Phrase) else _reword(text, _OPTION_WORDING)


def as_option(fix: Fix) -> str:
    """What is typed in the command.

    >>> print(as_option(Fix("ties", "best")), as_option(Fix("columns", {"user": ...})))
    --set ties=best --user COLUMN
    >>> print(as_option(Fix("test", 0.2, of="split")), as_option(Fix("", of="explain")))
    --test-share 0.2 recsys explain
    """
    if not fix.parameter:
        return f"recsys {fix.of}"
    if fix.parameter == "columns" and isinstance(fix.example, dict):
        return " ".join(f"--{name} {_typed(column) or 'COLUMN'}" for name, column in fix.example.items())
    option = OPTIONS.get((fix.of, fix.parameter), f"--{fix.parameter.replace('_', '-')}")
    if option is None:
        return f"{fix} in Python"
    if fix.of == "evaluate" and fix.parameter in Conventions.__dataclass_fields__:
        return f"--set {fix.parameter}={_typed(fix.example)}"
    return f"{option} {_typed(fix.example)}".rstrip()


def _typed(value: Any) -> str:
    """A value as it is typed in a shell; nothing for a flag and for one that is left open."""
    return "" if value in (..., True) else "none" if value is None else shlex.quote(str(value))


def _reword(text: str, wording: tuple[tuple[str, str], ...]) -> str:
    for pattern, replacement in wording:
        text = re.sub(pattern, replacement, text)
    return text


def _exit_code(error: RecsysError) -> int:
    if isinstance(error, _ReportedError):
        return error.code
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
