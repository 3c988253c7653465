"""Whatever is passed: an error of recsys.errors, shortly said, or a result within its bounds.

The values and the places are in worlds/hostile.py; `python scripts/fuzz.py --walk PLACE` walks some of them.
"""

from __future__ import annotations

import math
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import recsys
from recsys.errors import InputError, RecsysError, UnknownNameError
from worlds import hostile

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module", autouse=True)
def safe() -> Iterator[None]:
    """No hostile size may take the machine down."""
    hostile.warm_up()
    with hostile.limited_memory():
        yield


@pytest.mark.parametrize("where", hostile.ENTRIES)
def test_every_value_is_read_or_refused(where):
    ends = {what: hostile.outcome(hostile.ENTRIES[where], make) for what, make in hostile.VALUES.items()}
    defects = {what: how for what, how in ends.items() if isinstance(how, hostile.Defect)}
    assert defects == {}


def test_the_table_is_large():
    assert len(hostile.ENTRIES) > 250
    assert len(hostile.VALUES) > 130


def test_a_call_that_waits_and_a_number_that_is_none_are_defects(monkeypatch):
    monkeypatch.setattr(hostile, "LONGEST_WAIT", 0.2)
    before = signal.getitimer(signal.ITIMER_REAL)[0]  # of pytest, where a test has a limit
    assert hostile.ended(lambda: time.sleep(5)) == ("takes more than 0.2 s", "outside the library")
    assert (signal.getitimer(signal.ITIMER_REAL)[0] > 0) == (before > 0)
    for value in (math.nan, math.inf, -5.0):
        assert hostile.ended(lambda value=value: value) == (f"the value is {value!r}", "result")
    assert hostile.ended(lambda: 0.5) == "result"


@pytest.mark.parametrize("length", [300, 5_000, 100_000])
@pytest.mark.parametrize("letter", ["x", "x ", "'", "\n", "é"])
def test_messages_have_an_end(length, letter):
    """Values are cut in the middle, so that both ends can be recognised."""
    value = (letter * length)[:length]
    for call in (
        lambda: recsys.evaluate({1: [2]}, {1: [2]}, [f"first{value}last"]),
        lambda: recsys.evaluate({1: [2]}, {1: [2]}, ["mrr"], conventions=value),
        lambda: recsys.evaluate({1: [2]}, {1: [2]}, ["mrr"], case_weights={value: 1.0}),
    ):
        with pytest.raises(RecsysError) as error:
            call()
        assert len(str(error.value)) < 3000


def test_a_long_value_is_cut_in_the_middle_and_a_long_sentence_is_not():
    text = str(InputError(f"the id {'a' * 500 + 'z' * 500!r} is unknown.", hint="Check the ids."))
    assert text.startswith("the id 'aaa")
    assert "zzz' is unknown. Check" in text.replace("'.", "' .")[:400] or "zzz'" in text
    assert len(text) < 300
    sentence = "isn't a word of it left out? " * 15
    assert str(InputError(sentence)) == sentence
    assert str(InputError("no", row="r" * 9999)).count("r") < 250


def test_misspelt_keywords_name_the_nearest():
    for call, meant in (
        (lambda: recsys.evaluate({1: [2]}, {1: [2]}, metric="mrr"), "metrics"),
        (lambda: recsys.evaluate({1: [2]}, {1: [2]}, catalog=[2]), "catalogue"),
        (lambda: recsys.recommend(hostile.factors(), 2, user=[1]), "users"),
        (lambda: recsys.score_list([1], {1}, metrics="mrr"), "metric"),
        (lambda: recsys.evaluate_candidates(np.eye(2, 3), hostile.CASES, metric="mrr"), "metrics"),
    ):
        with pytest.raises(UnknownNameError, match=f"Did you mean '{meant}'"):
            call()


def test_a_matrix_of_scores_is_not_read_as_lists():
    scores = np.array([[0.1, 0.9], [0.5, 0.2]])
    for lists in (scores, scores.astype(np.float16), hostile.VALUES["tensor"]()):
        with pytest.raises(InputError, match=r"fractions.*Did you mean recsys\.Scores"):
            recsys.evaluate(lists, {0: [1]}, "mrr")
    with pytest.warns(recsys.errors.FloatIdWarning):
        assert recsys.evaluate(np.array([[1.0, 2.0]]), {0: [2]}, "mrr")["mrr"] == 0.5


@pytest.mark.parametrize("listed", ["abc", b"abc", None, 5, np.eye(2), np.array(3), float("nan"), list])
def test_one_list_is_a_list(listed):
    with pytest.raises(InputError, match="came as"):
        recsys.score_list(listed, {1}, "mrr")
    with pytest.raises(InputError, match="came as"):
        recsys.score_list([1], listed, "mrr")


def test_a_table_is_no_list_of_pairs():
    """Its columns may be named by pairs; there are as many of them as there are rows only by chance."""
    tables = np.empty(1, dtype=object)
    tables[0] = hostile.VALUES["table of levels"]()
    with pytest.raises(InputError, match="holds DataFrame"):
        recsys.evaluate(tables, {0: [1]}, "mrr")


def test_a_backend_without_the_kernel_for_lists_says_so(monkeypatch):
    from recsys.kernels.backend import BACKENDS, Backend

    monkeypatch.setitem(BACKENDS, "elsewhere", Backend("elsewhere", lambda: None))
    result = recsys.evaluate({1: [2]}, {1: [2]}, "mrr", backend="elsewhere")
    assert result["mrr"] == 1.0
    assert "ready lists were matched on the CPU" in str(result)
    assert "CPU" not in str(recsys.evaluate({1: [2]}, {1: [2]}, "mrr", backend="reference"))


def test_a_flag_is_no_text():
    """`full_ranking="no"` would count as yes."""
    with pytest.raises(InputError, match="full_ranking='no' is neither True nor False"):
        recsys.evaluate({1: [2]}, {1: [2]}, "mrr", full_ranking="no")
    with pytest.raises(InputError, match="neither True nor False"):
        recsys.score_list([1], {1}, "mrr", full_ranking="no")


def test_a_way_to_split_says_what_it_lacks():
    with pytest.raises(recsys.errors.SplitError, match=r"'rolling_windows' needs length=.*It takes length="):
        recsys.split(hostile.EVENTS, "rolling_windows")


def test_a_cutoff_beyond_every_catalogue_is_called_so():
    with pytest.raises(recsys.errors.CutoffError, match="beyond every catalogue"):
        recsys.evaluate({1: [2]}, {1: [2]}, "ndcg", k=2**63 - 1)


@pytest.mark.parametrize(
    "by", ["activity(bins=1.2.3)", "activity(bins=0)", "item_age(bins=0)", "popularity(bins=1e9)"]
)
def test_a_number_of_groups_can_be_made(by):
    with pytest.raises(InputError, match="bins"):
        recsys.evaluate({1: [2]}, {1: [2]}, "mrr", by=by, train={1: [3]})


def test_groups_are_named_in_time_that_grows_with_the_name():
    with pytest.raises(UnknownNameError):
        recsys.evaluate({1: [2]}, {1: [2]}, "mrr", by="a" + " " * 100_000 + "a")


def test_fuzz():
    """The first cases of `make fuzz`, in a process of their own: a damaged heap must not be ours."""
    command = [sys.executable, str(ROOT / "scripts/fuzz.py"), "--cases", "500"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, cwd=ROOT
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    ran = [int(row.split("|")[2].replace(",", "")) for row in done.stdout.splitlines() if "MB |" in row]
    assert len(ran) == 6
    assert min(ran) > 400  # some values cannot be built
