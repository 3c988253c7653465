"""Threads that call the library at the same time get the answers, and the warnings, of their own calls."""

import json
import re
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest

from recsys.errors import FloatIdWarning, TieWarning, hush, warn
from recsys.records.registry import Registry

ROOT = Path(__file__).resolve().parents[1]


def test_what_one_thread_keeps_to_itself_another_still_hears():
    inside, heard = threading.Event(), threading.Event()

    def keep():
        with hush(TieWarning) as kept:
            warn(TieWarning, "of this thread")
            inside.set()
            heard.wait(30)
            texts.extend(text for _, text in kept)

    texts = []
    thread = threading.Thread(target=keep)
    filters = [*warnings.filters]
    thread.start()
    assert inside.wait(30)
    with pytest.warns(TieWarning, match="of the other"):
        warn(TieWarning, "of the other")
    heard.set()
    thread.join(30)
    assert texts == ["of this thread"]
    assert warnings.filters == filters


def test_only_the_named_categories_are_kept_and_the_innermost_list_gets_them():
    with hush(TieWarning) as outer, hush(TieWarning) as inner:
        warn(TieWarning, "equal scores")
        with pytest.warns(FloatIdWarning):
            warn(FloatIdWarning, "ids are floats")
    assert (outer, inner) == ([], [(TieWarning, "equal scores")])
    with pytest.warns(TieWarning):
        warn(TieWarning, "after it")


def test_warnings_with_numbers_do_not_fill_memory_for_good():
    shown = globals().setdefault("__warningregistry__", {})
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = lambda *_, **__: None
        for number in range(2500):
            warn(TieWarning, f"{number} cases have ties")
    assert 0 < len(shown) < 1100


def test_a_thread_waits_for_plugins_that_another_is_loading(monkeypatch):
    loading, go_on = threading.Event(), threading.Event()
    registry = Registry("metric", "recsys.metrics")

    class Slow:
        name, value, dist = "slow", "slow", None

        def load(self):
            loading.set()
            go_on.wait(0.5)
            registry["theirs"] = 1

    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: [Slow()])
    first = threading.Thread(target=registry.load_plugins)
    first.start()
    assert loading.wait(30)
    assert registry.find("theirs") == 1  # and not an error because the name is not there yet
    first.join(30)


def test_no_call_changes_the_warning_filters_of_the_process():
    # The command has its process to itself, and so has a worker of Spark.
    own_process = {"cli/error_messages.py", "spark/partition_jobs.py"}
    source = ROOT / "src" / "recsys"
    changes = re.compile(r"catch_warnings\(|simplefilter\(|filterwarnings\(|showwarning =")
    found = {
        file.relative_to(source).as_posix()
        for file in source.rglob("*.py")
        if changes.search(file.read_text(encoding="utf-8"))
    }
    assert found == own_process


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory and open files are read from /proc")
def test_eight_threads_and_a_thousand_small_calls_for_some_seconds(tmp_path):
    path = tmp_path / "load.jsonl"
    command = [sys.executable, ROOT / "scripts" / "load.py", path, "--seconds", "12"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    pieces = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert {piece["piece"] for piece in pieces} == {"small calls, 2 s", "threads, 12 s, 1 of 1"}, ended.stderr
    assert [(piece["wrong"], piece["grew"]) for piece in pieces] == [({}, {})] * 2
    assert min(piece["calls"] for piece in pieces) > 10
