"""Someone else's evaluator, in any language, as one thing that answers questions.

A question is a mapping that JSON can hold: `run` {user: [[item, score], …]}, `truth` {user: {item: grade}},
`k`, and whatever else its asker adds. An implementation is a Python function, called as
`f(run, truth, k, **rest)`, or a command, which reads one question per line and prints one answer per line:
{"value": 0.5}, {"value": {"user": 0.5}} or {"error": "why there is none"}.
"""

from __future__ import annotations

import contextlib
import copy
import json
import math
import os
import shlex
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recsys.errors import FileError, InputError

Question = Mapping[str, Any]
Function = Callable[..., Any]
_SHOWN = 300  # letters of what a program printed
_FORM = 'Answer {"value": 0.5}, {"value": {"user": 0.5}} or {"error": "why there is none"}, one per line.'


@dataclass(frozen=True)
class Refusal:
    """No number, and why: the implementation raised an error, or its answer is not finite."""

    reason: str

    def __str__(self) -> str:
        return self.reason


Answer = float | dict[str, float] | Refusal
"""One number, one number per user (a user who is not in the mean is missing), or none."""


def answers_of(
    implementation: Function | str | Sequence[str], questions: Sequence[Question], *, timeout: float = 60.0
) -> list[Answer]:
    """What an implementation answers to each question, in their order.

    Args:
        implementation: a function, or a command as one text or as a list of its words.
        questions: see the module; the function gets copies, so it may change them.
        timeout: seconds that a command may take for all questions together.

    Raises:
        InputError: the answers cannot be read, are too few or too many, or there is no number among them.
        FileError: the command cannot be started.

    >>> answers_of(lambda run, truth, k: k / 4, [{"run": {}, "truth": {}, "k": 1}])
    [0.25]
    """
    if callable(implementation):
        answers = [_call(implementation, question) for question in questions]
    else:
        words: Any = shlex.split(implementation) if isinstance(implementation, str) else implementation
        is_command = isinstance(words, Sequence) and all(isinstance(word, str) for word in words)
        if not is_command or not words:
            raise InputError(
                f"the implementation came as {type(implementation).__name__}.",
                hint="Pass a function f(run, truth, k), or a command such as ['python', 'evaluator.py'].",
            )
        answers = _run(list(words), questions, timeout)
    if answers and all(isinstance(answer, Refusal) for answer in answers):
        raise InputError(
            f"the implementation answered none of {len(answers)} questions; the first one: {answers[0]}",
            hint="Try it on one question: run {'u': [['a', 0.9], ['b', 0.8]]}, truth {'u': {'a': 1}}, k 2.",
        )
    return answers


def read_answer(value: Any, question: Question, where: str) -> Answer:
    """A value as it was given, checked: finite numbers, of users that occur in the question.

    Raises:
        InputError: it is no number and no mapping of users to numbers.
    """
    if value is None:
        return Refusal("no value")
    if not isinstance(value, Mapping):
        number = _number(value, where)
        return number if math.isfinite(number) else Refusal(f"answered {number:g}")
    users = {str(user) for side in (question["run"], question["truth"]) for user in side}
    strangers = sorted({str(user) for user in value} - users)
    if strangers:
        raise InputError(
            f"{where} has a value of user {strangers[0]!r}, who is not in the question.",
            hint="Answer one number, or one per user of the question.",
        )
    numbers = {str(user): _number(v, f"{where}, user {user!r}") for user, v in value.items()}
    infinite = [user for user, number in numbers.items() if math.isinf(number)]
    if infinite:
        return Refusal(f"answered {numbers[infinite[0]]:g} for user {infinite[0]!r}")
    return {user: number for user, number in numbers.items() if not math.isnan(number)}


def _number(value: Any, where: str) -> float:
    """A number of Python, NumPy or a tensor of one number; NaN where there is none."""
    if value is None:
        return math.nan
    number: float | None = None
    if not isinstance(value, str | bytes | bool):
        with contextlib.suppress(TypeError, ValueError, RuntimeError, OverflowError):  # the message is below
            number = float(value)
    if number is None:
        raise InputError(f"{where} is {value!r}, not a number.", hint="Answer one number, or {user: number}.")
    return number


def _call(function: Function, question: Question) -> Answer:
    own = copy.deepcopy(dict(question))
    run, truth, k = own.pop("run"), own.pop("truth"), own.pop("k")
    try:
        value = function(run, truth, k, **own)
    except Exception as error:  # noqa: BLE001 - whatever a stranger's function raises is its answer
        return Refusal(f"raised {type(error).__name__}: {error}".rstrip(": "))
    return read_answer(value, question, "the value that the function returned")


def _run(words: list[str], questions: Sequence[Question], timeout: float) -> list[Answer]:
    """One process for all questions: everything is written, then everything is read."""
    command = shlex.join(words)
    lines = "".join(json.dumps(dict(question)) + "\n" for question in questions)
    try:
        process = subprocess.Popen(  # noqa: S603 - the command is the user's own
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise FileError(
            f"the command `{command}` cannot be started ({error.strerror or error}).",
            hint="Check the name of the program, and that it may be executed.",
        ) from error
    try:
        printed, complaints = process.communicate(lines, timeout=timeout)
    except BaseException as error:
        _kill(process)
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
        raise InputError(
            f"the command `{command}` did not finish {len(questions)} questions in {timeout:g} seconds.",
            hint="It must end when its standard input ends. If it is slow, allow more with timeout= "
            "(--timeout).",
        ) from None
    replies = [line for line in printed.splitlines() if line.strip()]
    if process.returncode or len(replies) != len(questions):
        ended = f"ended with {process.returncode} after" if process.returncode else "printed"
        said = complaints.strip()[-_SHOWN:]
        raise InputError(
            f"the command `{command}` {ended} {len(replies)} answers to {len(questions)} questions"
            + (f"; its last words: {said}" if said else "."),
            hint=_FORM,
        )
    return [
        _read_line(line, question, f"answer {number} of `{command}`")
        for number, (line, question) in enumerate(zip(replies, questions, strict=True), start=1)
    ]


def _kill(process: subprocess.Popen[str]) -> None:
    """End a command with whatever it started, which may hold its pipes open."""
    with contextlib.suppress(ProcessLookupError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
    process.communicate()


def _read_line(line: str, question: Question, where: str) -> Answer:
    try:
        reply = json.loads(line)
    except ValueError:
        raise InputError(f"{where} is no JSON: {line[:_SHOWN]!r}.", hint=_FORM) from None
    if isinstance(reply, Mapping) and reply.get("error") is not None:
        return Refusal(str(reply["error"])[:_SHOWN])
    if not isinstance(reply, Mapping) or "value" not in reply:
        raise InputError(f"{where} has no value: {line[:_SHOWN]!r}.", hint=_FORM)
    return read_answer(reply["value"], question, where)


def read_json_lines(path: str | Path) -> list[dict[str, Any]]:
    """The objects of a file with one JSON object per line.

    Raises:
        FileError: the file cannot be read, or a line is no JSON object.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise FileError(f"{path} cannot be read ({error}).", hint="Check the path.") from error
    objects = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                found = json.loads(line)
            except ValueError:
                found = None
            if not isinstance(found, dict):
                raise FileError(
                    f"line {number} of {path} is no JSON object: {line[:_SHOWN]!r}.",
                    hint='Write one object per line, such as {"probe": "…", "value": 0.5}.',
                )
            objects.append(found)
    return objects
