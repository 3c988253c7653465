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
import re
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recsys.display.number_words import plural
from recsys.errors import FileError, InputError
from recsys.inputs.files.formats import read_text_file
from recsys.records.checks import is_number

Question = Mapping[str, Any]
Function = Callable[..., Any]
_SHOWN = 300  # letters of what a program printed
_MOST_BYTES, _CHUNK_BYTES = 1 << 24, 1 << 16  # of each of its outputs
_LONGEST_TIMEOUT = 1e7  # seconds; systems cannot wait for any length of time
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
    """Return what an implementation answers to each question, in their order.

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
    if not is_number(timeout) or not 0 < timeout <= _LONGEST_TIMEOUT:
        raise InputError(f"timeout is {timeout!r}.", hint="Pass a number of seconds, such as 60.")
    if callable(implementation):
        answers = [_call(implementation, question) for question in questions]
    else:
        words: Any = _split(implementation) if isinstance(implementation, str) else implementation
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
            hint=f"Try it on one question: {json.dumps(dict(questions[0]))}",
        )
    return answers


def check_tolerance(tolerance: Any) -> float:
    """Return the number; raise if it is not one, below zero or infinite."""
    if not is_number(tolerance) or not 0 <= tolerance < math.inf:
        raise InputError(f"tolerance is {tolerance!r}.", hint="Pass a small number, such as 1e-9.")
    return float(tolerance)


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        raise InputError(
            f"the command `{command}` cannot be split into words ({error}).",
            hint="Close its quotes, or pass it as a list of words, such as ['python', 'evaluator.py'].",
        ) from None


def read_answer(value: Any, question: Question, where: str) -> Answer:
    """Return a value as it was given, checked: finite numbers, of users that occur in the question.

    Raises:
        InputError: it is neither a number nor a mapping of users to numbers.
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
    """Return a number of Python, NumPy or a tensor of one number; NaN where there is none."""
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
    """Run one process for all questions: write everything, then read everything."""
    command = shlex.join(words)
    lines = "".join(json.dumps(dict(question)) + "\n" for question in questions)
    with _terminations_as_exceptions():
        try:
            process = subprocess.Popen(  # noqa: S603 - the command is the user's own
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:  # a NUL or half a letter in a word is a ValueError
            raise FileError(
                f"the command `{command}` cannot be started ({getattr(error, 'strerror', None) or error}).",
                hint="Check the name of the program, and that it may be executed.",
            ) from error
        try:
            printed, complaints = _exchange(process, command, lines.encode(), timeout)
        except subprocess.TimeoutExpired:
            raise InputError(
                f"the command `{command}` did not finish {len(questions)} questions in {timeout:g} seconds.",
                hint="It must end when its standard input ends. If it is slow, allow more with timeout= "
                "(--timeout).",
            ) from None
        finally:
            if process.returncode is None:
                _kill(process)
    replies = [line for line in printed.split("\n") if line.strip()]
    if process.returncode or len(replies) != len(questions):
        ended = f"ended with {process.returncode} after" if process.returncode else "printed"
        complained = complaints.strip()[-_SHOWN:]
        other = next((line for line in replies if not line.lstrip().startswith("{")), None)
        hint = _FORM
        if other is not None:
            hint = f"Print answers alone, and anything else on standard error. {_FORM}"
        elif len(replies) == len(questions):
            hint = "Let it end with the exit code 0."
        raise InputError(
            f"the command `{command}` {ended} {plural(len(replies), 'line')} for "
            f"{plural(len(questions), 'question')}"
            + (f", such as {other[:_SHOWN]!r}" if other is not None else "")
            + (f"; its last words: {complained}" if complained else "."),
            hint=hint,
        )
    return [
        _read_line(line, question, f"answer {number} of `{command}`")
        for number, (line, question) in enumerate(zip(replies, questions, strict=True), start=1)
    ]


def _exchange(process: subprocess.Popen[bytes], command: str, lines: bytes, timeout: float) -> list[str]:
    """Return what a command prints on its two outputs while the questions are written to it.

    Raises:
        InputError: it prints too much.
        subprocess.TimeoutExpired: it takes too long.
    """
    outputs = bytearray(), bytearray()

    def read(stream: Any, into: bytearray) -> None:
        with stream:
            while len(into) <= _MOST_BYTES and (chunk := stream.read1(_CHUNK_BYTES)):
                into += chunk
        if len(into) > _MOST_BYTES:
            _kill(process)  # so that the others end, too

    def write(stream: Any) -> None:
        with contextlib.suppress(OSError), stream:  # it need not read all questions
            stream.write(lines)

    work: list[tuple[Callable[..., None], Any]] = [(write, (process.stdin,))]
    work += [(read, of) for of in zip((process.stdout, process.stderr), outputs, strict=True)]
    threads = [threading.Thread(target=what, args=of, daemon=True) for what, of in work]
    deadline = time.monotonic() + timeout
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(deadline - time.monotonic(), 0.0))
    if any(len(output) > _MOST_BYTES for output in outputs):
        raise InputError(f"the command `{command}` printed more than {_MOST_BYTES >> 20} MB.", hint=_FORM)
    if any(map(threading.Thread.is_alive, threads)):
        raise subprocess.TimeoutExpired(process.args, timeout)
    process.wait(max(deadline - time.monotonic(), 0.0))
    return [re.sub(r"\r\n?", "\n", output.decode("utf-8", "replace")) for output in outputs]


@contextlib.contextmanager
def _terminations_as_exceptions() -> Iterator[None]:
    """Within it, being asked to end raises SystemExit, so that a command in its own session ends as well."""

    def stop(number: int, _: Any) -> None:
        raise SystemExit(128 + number)

    is_main = threading.current_thread() is threading.main_thread()  # others may not set handlers
    asked = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if is_main and hasattr(signal, name)]
    ours = [number for number in asked if signal.getsignal(number) is signal.SIG_DFL]
    try:
        for number in ours:
            signal.signal(number, stop)
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a command with whatever it started, which may hold its pipes open."""
    with contextlib.suppress(ProcessLookupError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
    process.wait()


def _read_line(line: str, question: Question, where: str) -> Answer:
    try:
        reply = json.loads(line)
    except (ValueError, RecursionError):
        raise InputError(f"{where} is not JSON: {line[:_SHOWN]!r}.", hint=_FORM) from None
    if isinstance(reply, Mapping) and reply.get("error") is not None:
        return Refusal(str(reply["error"])[:_SHOWN])
    if not isinstance(reply, Mapping) or "value" not in reply:
        raise InputError(f"{where} has no value: {line[:_SHOWN]!r}.", hint=_FORM)
    return read_answer(reply["value"], question, where)


def read_answers(path: Path) -> Any:
    """Return what a file of answers holds: one JSON document, or one object or number per line.

    Raises:
        FileError: the file cannot be read, or a line is neither.
    """
    text = read_text_file(path)
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(text)
    objects = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                found = json.loads(line)
            except (ValueError, RecursionError):
                found = None
            if isinstance(found, int | float) and not isinstance(found, bool):
                found = {"value": found}
            if not isinstance(found, dict):
                raise FileError(
                    f"line {number} of {path} is not an answer in JSON: {line[:_SHOWN]!r}.",
                    hint='Write one object per line, such as {"probe": "…", "value": 0.5}.',
                )
            objects.append(found)
    return objects
