"""Processes may be made, in whatever way, while threads evaluate: all come to the same, and nobody waits."""

from __future__ import annotations

import multiprocessing
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import recsys
from recsys.records.arrays import cached_property

_FORKS_WHILE_THREADS_EVALUATE = """
import os, signal, threading, time
import numpy as np
import recsys

rng = np.random.default_rng(0)
lists = {u: rng.permutation(50)[:20].tolist() for u in range(200)}
truth = {u: rng.permutation(50)[:5].tolist() for u in range(200)}
asked = ["ndcg@10", "map@10", "mrr", "err@10", "bpref", "novelty@10"]
train = {u: rng.permutation(50)[:5].tolist() for u in range(200)}

def once():
    return recsys.evaluate(lists, truth, asked, train=train)["ndcg@10"]

expected, stop = once(), threading.Event()
threads = [threading.Thread(target=lambda: [once() for _ in iter(stop.is_set, True)]) for _ in range(4)]
for thread in threads:
    thread.start()
failed = 0
for _ in range(40):
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # a child that waits for ever is ended by the system
        os._exit(0 if once() == expected else 1)
    failed += os.waitpid(child, 0)[1] != 0
    if failed:
        break
stop.set()
for thread in threads:
    thread.join()
print("failed", failed)
"""


@pytest.mark.uncounted
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_child_forked_while_threads_evaluate_evaluates_too():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _FORKS_WHILE_THREADS_EVALUATE],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "failed 0\n"), done.stderr


_WORKERS_WHILE_THREADS_EVALUATE = """
import multiprocessing, sys, threading
from concurrent.futures import ProcessPoolExecutor
import numpy as np
import recsys

rng = np.random.default_rng(0)
truth = {u: rng.permutation(500)[:5].tolist() for u in range(300)}
lists = {u: rng.permutation(500)[:20].tolist() for u in truth}
model = recsys.Factors(rng.standard_normal((300, 8)), rng.standard_normal((500, 8)))

def once(_=None):
    asked = ["ndcg@10", "map@10", "mrr", "coverage@10"]
    both = [recsys.evaluate(ranked, truth, asked) for ranked in (lists, model)]
    return [value.hex() for result in both for value in result.values()]

if __name__ == "__main__":
    expected, stop, wrong = once(), threading.Event(), []

    def evaluate_until_stopped():
        while not stop.is_set():
            if once() != expected:
                wrong.append("a thread")

    threads = [threading.Thread(target=evaluate_until_stopped) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(3):
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(sys.argv[1])) as pool:
            wrong += ["a worker" for found in pool.map(once, range(6)) if found != expected]
    stop.set()
    for thread in threads:
        thread.join()
    print(wrong, multiprocessing.active_children())
"""


@pytest.mark.parametrize("how", multiprocessing.get_all_start_methods())
def test_workers_of_every_kind_and_threads_come_to_the_same(tmp_path, how):
    script = tmp_path / "script.py"
    script.write_text(_WORKERS_WHILE_THREADS_EVALUATE)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", script, how],
        capture_output=True, text=True, timeout=600, check=False, env={**os.environ, "RECSYS_THREADS": "2"},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "[] []\n"), done.stderr


def test_threads_do_not_wait_for_each_other_and_keep_the_first_value():
    both = threading.Barrier(2, timeout=600)

    class Slow:
        @cached_property
        def value(self) -> object:
            both.wait()  # with a lock around it the second thread would never come here
            return object()

    slow, seen = Slow(), []
    threads = [threading.Thread(target=lambda: seen.append(slow.value)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen[0] is seen[1] is slow.value


def test_an_error_in_a_cached_property_is_not_kept():
    class Late:
        ready = False

        @cached_property
        def value(self) -> float:
            """Its words."""
            if not self.ready:
                raise ValueError("not yet")
            return time.monotonic()

    late = Late()
    with pytest.raises(ValueError, match="not yet"):
        _ = late.value
    late.ready = True
    assert late.value == late.value
    assert Late.value.__doc__ == "Its words."


def test_no_module_uses_the_cached_property_with_a_lock():
    root = Path(recsys.__file__).parent
    imports = re.compile(r"from functools import[^\n]*cached_property|functools\.cached_property")
    assert not [path for path in root.rglob("*.py") if imports.search(path.read_text("utf-8"))]
