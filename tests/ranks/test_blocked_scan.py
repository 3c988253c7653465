"""Factors ranked within a budget of memory: the same bits, and no more memory than was said."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import recsys
from recsys import kernels
from recsys.conventions.decisions import Conventions
from recsys.errors import InputError
from recsys.evaluation.engine import merge
from recsys.evaluation.options import EvaluationOptions
from recsys.evaluation.reading import CommonInputs
from recsys.evaluation.results import Evaluation
from recsys.inputs import read_interactions
from recsys.inputs.byte_sizes import parse_memory
from recsys.ranks.rankings import RankingOptions
from recsys.ranks.sources import blocked_scan
from recsys.ranks.sources.blocked_scan import BlockedScan, RowReader
from recsys.records.arrays import Ids
from worlds.kernels import assert_same, is_finite_world, worlds

pytestmark = pytest.mark.filterwarnings("ignore::recsys.errors.TieWarning")
BACKENDS = ["reference", *(["native"] if kernels.backends().native else [])]


def scan_in_blocks(users, items, options, *, memory, rows=None, deepest=None, backend="auto"):
    """The same scan by `BlockedScan`; `rows` are the rows of users in the order of the cases."""
    tables = [options.get(name) for name in ("seen", "eligible")]
    chosen = np.arange(len(users)) if rows is None else rows
    n_seen = sum((np.diff(t[0]) for t in tables if t is not None), start=np.zeros(len(chosen), np.int64))
    scan = BlockedScan(
        RowReader("users", users),
        RowReader("items", items),
        memory,
        k=options.get("k"),
        deepest=deepest,
        item_bias=options.get("item_bias"),
        item_rank=options.get("item_rank"),
        never=options.get("never"),
        threads=1,
        backend=backend,
        progress=None,
    )
    return scan.run(
        chosen,
        options.get("truth"),
        n_seen,
        lambda first, stop: tuple(
            None if t is None else blocked_scan._cut_rows(t, first, stop) for t in tables
        ),
    )


@pytest.fixture
def no_least_memory(monkeypatch):
    """Budgets of a few hundred bytes, so that small worlds are cut into many blocks and shards."""
    for name in ("_LEAST_MEMORY", "_LEAST_USERS", "_LEAST_ITEMS"):
        monkeypatch.setattr(blocked_scan, name, 1)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(world=worlds(), data=st.data())
@pytest.mark.parametrize("backend", BACKENDS)
def test_any_blocks_and_shards_give_the_arrays_of_one_scan(no_least_memory, backend, world, data):
    users, items, options = world
    assume(is_finite_world(users, items))
    options["ties"] = "by_id"
    deepest = data.draw(st.none() | st.integers(1, 5))
    expected = kernels.scan(users, items, **options, deepest=deepest, backend="reference")
    most = [
        int(np.diff(options[name][0]).max(initial=0)) if name in options else 0
        for name in ("truth", "seen", "eligible")
    ]
    readers = RowReader("users", users), RowReader("items", items)
    least = blocked_scan.memory_needed(*readers, options.get("k"), most[0], most[1] + most[2])
    memory = data.draw(st.sampled_from([least, 2 * least, 5 * least, 1 << 30]))
    found = scan_in_blocks(users, items, options, memory=memory, deepest=deepest, backend=backend)
    assert_same(found, expected, (memory, least))


def test_small_budgets_cut_users_and_items(no_least_memory, monkeypatch):
    rng = np.random.default_rng(1)
    users, items = (rng.integers(-2, 3, (n, 3)).astype(np.float32) for n in (40, 600))
    truth = np.arange(41) * 2, np.tile(np.array([3, 50], np.int32), 40)
    options = {"k": 4, "truth": truth, "ties": "by_id"}
    expected, scan, shapes = kernels.scan(users, items, **options), kernels.scan, []
    monkeypatch.setattr(
        kernels, "scan", lambda u, v, **how: shapes.append((len(u), len(v))) or scan(u, v, **how)
    )
    found = scan_in_blocks(users, items, options, memory=60_000)
    blocks, shards = zip(*shapes, strict=True)
    assert 5 < max(blocks) < 20
    assert 50 < max(shards) < 200
    assert_same(found, expected)


def evaluate_within(memory, model, truth, metrics, **options):
    """What evaluate gives with a budget of memory for the ranking."""
    run = CommonInputs(metrics, EvaluationOptions(**options)).run_of(model, truth)
    run = replace(run, ranking_options=replace(run.ranking_options, memory=memory))
    return run.evaluate(Conventions())


def world_of(n_users=120, n_items=30_000, n_factors=8, dtype=np.float32):
    """More items than 8 MB hold at once, whole numbers for ties, ids in no order."""
    rng = np.random.default_rng(7)
    users = rng.integers(-2, 3, (n_users, n_factors)).astype(dtype)
    items = rng.integers(-2, 3, (n_items, n_factors)).astype(dtype)
    names = rng.permutation(n_items) + 10
    truth = {
        u: {
            int(names[i]): float(g)
            for i, g in zip(rng.choice(n_items, 5, replace=False), [1, 2, 1, 3, 1], strict=True)
        }
        for u in range(n_users)
    }
    seen = {u: [int(i) for i in names[rng.choice(n_items, 20, replace=False)]] for u in range(0, n_users, 2)}
    return users, items, names, truth, seen


METRICS = ["ndcg@10", "mrr", "auc", "recall@20", "coverage@10", "gini@10"]


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.dtype(">f4")])
def test_the_result_is_the_same_for_every_budget(tmp_path, dtype):
    users, items, names, truth, seen = world_of(dtype=dtype)
    for name, matrix in (("U", users), ("V", items)):
        np.save(tmp_path / f"{name}.npy", matrix)
    mapped = [np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in "UV"]
    never = [int(names[5]), int(names[25_000])]
    plain = recsys.Factors(users, items, item_ids=names)
    expected = recsys.evaluate(plain, truth, METRICS, seen=seen, exclude=never)
    for model in (plain, recsys.Factors(*mapped, item_ids=names)):
        for memory in (8_500_000, 20_000_000):
            found = evaluate_within(memory, model, truth, METRICS, seen=seen, exclude=iter(never))
            assert found == expected
            for name, column in expected.per_case.columns.items():
                assert found.per_case.columns[name].tobytes() == column.tobytes()
    lists = recsys.recommend(plain, 10, seen=seen)
    within = plain.top(None, 10, RankingOptions(seen=read_interactions(seen), memory=8 << 20))
    assert within.codes.tolist() == lists.codes.tolist()
    assert within.scores.tobytes() == lists.scores.tobytes()


def test_a_map_with_changes_of_its_own_keeps_them(tmp_path):
    np.save(tmp_path / "V.npy", np.zeros((50, 2)))
    items = np.load(tmp_path / "V.npy", mmap_mode="c")
    items[7] = 1.0
    model = recsys.Factors(np.ones((1, 2)), items)
    assert evaluate_within(8 << 20, model, {0: [7]}, ["mrr"]) == {"mrr": 1.0}
    assert items[7].tolist() == [1.0, 1.0]


def test_errors_name_rows_of_the_whole_matrices(tmp_path):
    users, items, *_ = world_of(n_items=20_000)
    items[15_000, 3] = np.nan
    np.save(tmp_path / "V.npy", items)
    model = recsys.Factors(users, np.load(tmp_path / "V.npy", mmap_mode="r"))
    with pytest.raises(InputError, match="items has a NaN or infinite value in row 15000"):
        evaluate_within(8 << 20, model, {0: [1]}, ["mrr"])
    model = recsys.Factors(users * np.float64(1e200), items[:100] * np.float64(1e200))
    with pytest.raises(InputError, match="scores may overflow"):
        evaluate_within(8 << 20, model, {0: [1]}, ["mrr"])


def test_too_small_a_budget_is_an_error_that_says_how_much_is_needed():
    users, items, *_ = world_of(n_factors=64)
    model = recsys.Factors(users, items)
    truth = {0: list(range(8_000))}
    with pytest.raises(
        InputError,
        match=r'memory is 1MB, and the smallest blocks of these factors need (.*)\. Write memory="\1"',
    ) as error:
        evaluate_within(1_000_000, model, truth, ["mrr"])
    enough = parse_memory(str(error.value).split('"')[1])
    needed = model.memory_needed(read_interactions(truth), RankingOptions())
    assert enough >= needed > model.memory_needed(read_interactions({0: [1]}), RankingOptions())
    assert evaluate_within(enough, model, truth, ["mrr"]) == recsys.evaluate(model, truth, ["mrr"])
    scores = recsys.Scores(np.random.default_rng(2).random((20, 50_000)))
    with pytest.raises(InputError, match=r'Write memory="2\.4MB"'):
        evaluate_within(1_000_000, scores, {0: [1]}, ["mrr"])
    truth = {user: [user] for user in range(20)}
    assert scores.memory_needed(read_interactions(truth), RankingOptions()) == 2_400_000
    assert evaluate_within(2_400_000, scores, truth, ["mrr"]) == recsys.evaluate(scores, truth, ["mrr"])


def test_memory_counts_what_the_evaluation_has_taken_and_not_what_the_process_held(monkeypatch):
    held = iter((50_000_000_000, 50_200_000_000, 50_200_000_000))
    monkeypatch.setattr("recsys.evaluation.in_pieces.checkpoints.resident_bytes", lambda: next(held))
    scores = recsys.Scores(lambda _: None, n_users=10, n_items=10_000_000)
    match = r"memory='1GB' is too little: .* needs 1\.2GB on top of .* has taken 200MB of it already"
    with pytest.raises(InputError, match=match) as error:
        recsys.evaluate(scores, {0: [1]}, ["mrr"], memory="1GB")
    assert error.value.hint == "Write memory='1.2GB'."


@pytest.mark.parametrize("memory", [None, 8 << 20])
def test_ranges_of_users_one_after_the_other_are_one_evaluation(memory):
    users, items, names, truth, seen = world_of()
    options = EvaluationOptions(
        seen=seen, by=dict.fromkeys(range(40), "old") | dict.fromkeys(range(40, 120), "new")
    )
    model = recsys.Factors(users, items, item_ids=names)
    run = CommonInputs([*METRICS, "err@5"], options).run_of(model, truth)
    run = replace(run, ranking_options=replace(run.ranking_options, memory=memory))
    conventions = run.effective(Conventions())
    whole = run.evaluate(Conventions())
    edges = [0, 1, 50, 51, 119, 120]
    parts = []
    for first, stop in pairwise(edges):
        piece = run.of_cases(Ids(run.truth.cases.values[first:stop]))
        assert len(piece.truth.codes) == 5 * (stop - first)  # it holds the truth of its users alone
        parts.append(piece.partial(conventions))
    merged = merge(parts)
    assert merged.rows.ids.tolist() == whole.per_case.ids.tolist()
    for name, column in whole.per_case.columns.items():
        assert merged.rows.columns[name].tobytes() == column.tobytes(), name
    assert merged.counts == whole.partial.counts
    again = Evaluation(merged, run.requests, conventions)
    assert {name: value.hex() for name, value in again.items()} == {n: v.hex() for n, v in whole.items()}
    assert again.by == whole.by


PEAK = """
import sys, threading, time
import numpy as np
import recsys
sys.path.insert(0, sys.argv[1])
from ranks.test_blocked_scan import METRICS, evaluate_within

def status(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(name)) * 1024

folder, memory = sys.argv[2], int(sys.argv[3]) or None
ones = np.ones((3, 64), np.float32)
evaluate_within(8 << 20, recsys.Factors(ones, ones), {0: [1]}, METRICS, seen={0: [2]})  # loads what there is
users, items = (np.load(f"{folder}/{name}.npy", mmap_mode="r") for name in "UV")
truth = {user: [user % 100_000, 5] for user in range(0, 200_000, 400)}
model = recsys.Factors(users, items)
before, peak, done = {n: status(n) for n in ("RssAnon", "VmRSS")}, 0, False
with open("/proc/self/clear_refs", "w") as reset:
    reset.write("5")  # VmHWM, the peak of VmRSS, starts again

def watch():
    global peak
    while not done:
        peak = max(peak, status("RssAnon"))
        time.sleep(0.001)

watcher = threading.Thread(target=watch)
watcher.start()
result = evaluate_within(memory, model, truth, METRICS, seen={0: [7]})
done = True
watcher.join()
print(peak - before["RssAnon"], status("VmHWM") - before["VmRSS"], [value.hex() for value in result.values()])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_mapped_factors_stay_within_the_budget(tmp_path):
    rng = np.random.default_rng(0)
    for name, n_rows in (("U", 200_000), ("V", 100_000)):
        matrix = np.lib.format.open_memmap(tmp_path / f"{name}.npy", "w+", np.float32, (n_rows, 64))
        matrix[:] = rng.integers(-9, 10, (1, 64))
        matrix *= rng.integers(1, 1000, (n_rows, 1))
    budget, tests = 16_000_000, str(Path(__file__).parents[1])

    def run(memory: int) -> tuple[int, int, str]:
        command = [sys.executable, "-W", "ignore", "-c", PEAK, tests, str(tmp_path), str(memory)]
        out = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600).stdout
        anonymous, resident, values = out.split(maxsplit=2)
        return int(anonymous), int(resident), values

    (anonymous, resident, values), unlimited = run(budget), run(0)
    assert values == unlimited[2]
    arenas = 2 << 20  # of the interpreter's own objects
    assert anonymous < budget + arenas < unlimited[0]
    assert resident < budget + (4 << 20) < unlimited[1]  # and the pages of the files that are being read
