"""Someone else's evaluator: functions and commands, and what goes wrong with them."""

from __future__ import annotations

import os
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from recsys.comparison.implementations import Refusal, answers_of, read_answers
from recsys.errors import FileError, InputError

QUESTIONS = [{"run": {"u": [["a", 1.0]]}, "truth": {"u": {"a": 1}}, "k": k} for k in (1, 2, 3)]
QUARTERS = [0.25, 0.5, 0.75]


def script(body: str) -> list[str]:
    """A Python program that runs `body` for each question."""
    return [
        sys.executable,
        "-c",
        f"import json, sys\nfor line in sys.stdin:\n    q = json.loads(line)\n    {body}",
    ]


def test_a_function_gets_run_truth_k_and_whatever_else_is_asked():
    questions = [{**QUESTIONS[0], "metric": "ndcg"}]
    assert answers_of(lambda *_, metric: float(metric == "ndcg"), questions) == [1.0]


def test_a_function_may_spoil_its_question():
    def spoil(run, truth, k):
        run.clear()
        truth["u"].clear()
        return k / 4

    assert answers_of(spoil, QUESTIONS) == QUARTERS
    assert QUESTIONS[0]["run"] == {"u": [["a", 1.0]]}


def test_numbers_of_numpy_are_numbers_and_a_user_without_one_is_left_out():
    given = [np.float32(0.25), {"u": np.nan}, {"u": np.float64(0.75)}]
    assert answers_of(lambda *question: given[question[2] - 1], QUESTIONS) == [0.25, {}, {"u": 0.75}]


def test_an_error_and_an_infinite_number_are_refusals():
    def moody(run, truth, k):
        if k == 1:
            raise KeyError("u")
        return np.inf if k == 2 else 0.75

    first, second, third = answers_of(moody, QUESTIONS)
    assert first == Refusal("raised KeyError: 'u'")
    assert second == Refusal("answered inf")
    assert third == 0.75


@pytest.mark.parametrize(
    ("value", "words"), [("0.5", "not a number"), (True, "not a number"), ({"x": 1.0}, "user 'x'")]
)
def test_what_is_no_number_is_an_error(value, words):
    with pytest.raises(InputError, match=words):
        answers_of(lambda *_: value, QUESTIONS)


def test_no_answer_at_all_is_an_error_with_the_first_reason():
    with pytest.raises(InputError, match="none of 3 questions; the first one: raised ZeroDivisionError"):
        answers_of(lambda *_: 1 / 0, QUESTIONS)


def test_a_command_in_python():
    assert answers_of(script("print(json.dumps({'value': q['k'] / 4}))"), QUESTIONS) == QUARTERS


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_a_command_in_javascript():
    program = (
        "require('readline').createInterface({input: process.stdin}).on('line', (line) =>"
        " console.log(JSON.stringify({value: {u: JSON.parse(line).k / 4}})))"
    )
    assert answers_of(["node", "-e", program], QUESTIONS) == [{"u": value} for value in QUARTERS]


def test_a_command_as_text_and_one_that_answers_with_errors():
    body = (
        "print(json.dumps({'error': 'no'} if q['k'] == 2 else {'value': float('nan') if q['k'] == 3 else 1}))"
    )
    assert answers_of(shlex.join(script(body)), QUESTIONS) == [1.0, Refusal("no"), Refusal("answered nan")]


def test_only_the_end_of_a_line_ends_an_answer():
    body = "print(json.dumps({'error': 'a\\u2028b'} if q['k'] == 2 else {'value': 1}, ensure_ascii=False))"
    assert answers_of(script(body), QUESTIONS) == [1.0, Refusal("a\u2028b"), 1.0]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("print(json.dumps({'value': 10**400}))", "not a number"),
        ("print('half')", "answer 1 of .* is not JSON: 'half'"),
        ("print(json.dumps(0.5))", "has no value"),
        ("print(json.dumps({'value': 'x'}))", "not a number"),
        ("print(json.dumps({'value': 1})); print(json.dumps({'value': 1}))", "6 lines for 3 questions"),
        ("sys.exit('out of memory')", "ended with 1 after 0 lines for 3.*out of memory"),
        ("print('loading …'); print(json.dumps({'value': 1}))", "such as 'loading …'.*standard error"),
        ("print(json.dumps({'value': 1})) or q['k'] < 3 or sys.exit(3)", "ended with 3.*the exit code 0"),
        ("print('[' * 100_000)", "is not JSON"),
        ("__import__('time').sleep(60)", "did not finish 3 questions in 0.5 seconds"),
    ],
)
def test_a_command_that_goes_wrong_says_what_and_what_to_print(body, words):
    with pytest.raises(InputError, match=f"(?s){words}"):
        answers_of(script(body), QUESTIONS, timeout=0.5 if "sleep" in body else 60)


def test_a_command_that_leaves_a_child_behind_does_not_hang():
    with pytest.raises(InputError, match="did not finish"):
        answers_of(["sh", "-c", "sleep 60 & cat > /dev/null"], QUESTIONS, timeout=0.5)


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_command_that_prints_without_end_is_ended(stream):
    endless = [sys.executable, "-c", f"import sys\nwhile True: sys.{stream}.write('{{}}\\n' * 10_000)"]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputError, match="printed more than 16 MB") as caught:
        answers_of(endless, QUESTIONS, timeout=500)
    assert caught.value.hint
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10  # in kB


def test_a_command_need_not_read_its_questions():
    many = QUESTIONS[:1] * 50_000  # more than a pipe holds
    with pytest.raises(InputError, match="printed 0 lines for 50,000 questions"):
        answers_of([sys.executable, "-c", "pass"], many)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_command_ends_with_recsys(number, tmp_path):
    """The command and what it started, though they are in a session of their own."""
    started = tmp_path / "started"
    body = f"echo $$ > {started}.part; mv {started}.part {started}; sleep 300 & sleep 300"
    words = [
        sys.executable,
        "-m",
        "recsys",
        "identify",
        "-m",
        "ndcg",
        "--timeout",
        "200",
        "--",
        "sh",
        "-c",
        body,
    ]
    # nohup, which this may run under, has its children ignore the loss of a terminal.
    usual = {"preexec_fn": lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL)}
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **usual) as ours:
        try:
            wait_for(started.exists)
            group = int(started.read_text())
            assert of_group(group)
            ours.send_signal(number)
            assert ours.wait(60) not in (0, None)
            wait_for(lambda: not of_group(group))
        finally:
            ours.kill()


def wait_for(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def of_group(group):
    """Whether a process of the group is alive."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_signals_are_as_before_after_a_command():
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)]
    answers_of(script("print(json.dumps({'value': 0.5}))"), QUESTIONS)
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)] == before


def test_an_unknown_program_and_no_command():
    with pytest.raises(FileError, match="cannot be started"):
        answers_of(["no-such-program"], QUESTIONS)
    with pytest.raises(InputError, match=r"No closing quotation.*Close its quotes"):
        answers_of("node 'evaluator.mjs", QUESTIONS)
    for nothing in ([], "", 3):
        with pytest.raises(InputError, match="Pass a function"):
            answers_of(nothing, QUESTIONS)


def test_a_file_of_answers(tmp_path):
    path = tmp_path / "answers.jsonl"
    path.write_text('{"value": 1}\n\n2.5\n')
    assert read_answers(path) == [{"value": 1}, {"value": 2.5}]
    path.write_text("[1, 2.5]\n")
    assert read_answers(path) == [1, 2.5]
    for wrong in ("[1]", "half", "true", "[" * 100_000):
        path.write_text(f'{{"value": 1}}\n{wrong}\n')
        with pytest.raises(FileError, match="line 2"):
            read_answers(path)
    path.write_bytes(b"\xff\xfe1")
    with pytest.raises(FileError, match="Save it as UTF-8"):
        read_answers(path)
    with pytest.raises(FileError, match="there is no file"):
        read_answers(tmp_path / "missing.jsonl")
