"""Comparisons of results whose rows lie in folders, piece by piece: the answers of the rows in memory."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import subprocess
import sys
import warnings
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import recsys
from recsys.conventions.decisions import Conventions
from recsys.errors import FileError, IdTypeError, InputError, NoRowsError
from recsys.evaluation.engine import merge, without_rows
from recsys.evaluation.files import row_folders
from recsys.evaluation.files.result_files import whole_document
from recsys.evaluation.files.row_folders import RowFolder, RowWriter
from recsys.evaluation.origin import StoredOrigin
from recsys.evaluation.results import Evaluation
from recsys.metrics.registry import Request
from recsys.records.arrays import Partial, PerCase
from recsys.stats import samples
from recsys.stats.effects import STANDARDISED

few = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
NUMBER = re.compile(r"[+-]?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")
DERIVED = "f1(f1_of=means)@10"
# Each has another kind of values, terms, or direction.
VALUES = {
    "hit@10": [0.0, 0.0, 1.0],
    "ndcg@10": [0.0, 0.3, 0.1 + 0.2, 0.5, 1.0],
    "dcg@10": np.arange(0, 4, 0.0037),
    "average_rank": [1.0, 2.0, 5.0, 11.0],
    DERIVED: [0.0, 0.25, 1.0],
}


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch):
    """Hundreds of folders need not be safe from a power cut."""
    monkeypatch.setattr(row_folders.os, "fsync", lambda _: None)


def result_of(ids, columns, terms, keys=None):
    requests = [Request.parse(name) for name in columns]
    rows = PerCase(ids, columns)
    return Evaluation(Partial(rows, terms, {}), requests, Conventions(), origin=StoredOrigin(keys=keys))


def stored(result, folder, owner=None, manifest=None):
    """The same result, its rows dealt to the pieces of a folder."""
    rows, terms, keys = result.per_case, result.partial.terms, result.truth_keys
    owner = np.zeros(len(rows), dtype=np.int64) if owner is None else owner
    with RowWriter(folder) as writer:
        for piece in range(int(owner.max(initial=0)) + 1):
            at = np.flatnonzero(owner == piece)
            part = PerCase(
                rows.ids[at],
                {name: column[at] for name, column in rows.columns.items()},
                *(None if field is None else field[at] for field in (rows.clusters, rows.weights)),
            )
            part_terms = {name: (x[at], y[at]) for name, (x, y) in terms.items()}
            writer.write(part, part_terms, None if keys is None else keys[at])
        opened = writer.close(manifest or {})
    partial = dataclasses.replace(
        result.partial, per_case=opened.rows(), terms=opened.terms, sums=without_rows(result.partial).sums
    )
    origin = StoredOrigin(cautions=result.cautions, ranges=result.ranges, keys=opened)
    return Evaluation(partial, result.requests, result.conventions, origin=origin)


def assert_same(one, other, where="", slack=1e-10):
    """Numbers to 10 digits, all else exactly; of numbers in sentences, the last digit may differ."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_same(one[key], other[key], f"{where}.{key}", slack)
    elif isinstance(one, list | tuple):
        assert len(one) == len(other), (where, one, other)
        for at, (first, second) in enumerate(zip(one, other, strict=True)):
            assert_same(first, second, f"{where}[{at}]", slack)
    elif isinstance(one, float) and isinstance(other, float):
        assert math.isnan(one) == math.isnan(other), (where, one, other)
        assert math.isnan(one) or other == pytest.approx(one, rel=slack, abs=1e-13), where
    elif isinstance(one, str):
        assert NUMBER.sub("#", one) == NUMBER.sub("#", other), where
        for first, second in zip(NUMBER.findall(one), NUMBER.findall(other), strict=True):
            numbers = (float(text.replace(",", "")) for text in (first, second))
            assert next(numbers) == pytest.approx(next(numbers), rel=0.02, abs=0.1), where
    else:
        assert one == other, where


def outcome(call):
    """What a call gives, or how it fails."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call()
        except InputError as error:
            return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("verb", [recsys.compare, partial(recsys.gate, margins={"hit@10": "1%"})])
def test_folders_without_any_user_are_refused_like_their_rows(verb, tmp_path):
    empty = result_of(np.zeros(0, dtype=np.int64), {"hit@10": np.zeros(0)}, {}, np.zeros(0, dtype=np.uint64))
    kept = [stored(empty, tmp_path / name) for name in "ab"]
    given = [({"a": a, "b": b},) if verb is recsys.compare else (a, b) for a, b in ([empty] * 2, kept)]
    in_memory, in_folders = (outcome(lambda one=one: verb(*one)) for one in given)
    assert in_memory == in_folders
    assert "hit@10" in in_memory


def as_numbers(found):
    if isinstance(found, str):
        return found
    table = found.table
    return {
        "rows": [dataclasses.asdict(row) for row in found.rows],
        "family": found.family,
        "notes": [str(note) for note in table.notes if note.code != "in_memory"],
        "missing": {name: (len(ids), ids.tolist()[:3]) for name, ids in found.missing.items()},
        "cautions": [one.to_dict() for one in found.cautions],
    }


@st.composite
def models(draw, n_models=None):
    """Results over overlapping users; some values are NaN, and some models nearly the same."""
    kind = draw(st.sampled_from(["int", "str"]))
    n = draw(st.integers(1, 70))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rare = draw(st.booleans())
    pools = {name: rng.choice(values, n) for name, values in VALUES.items()}
    keys = rng.integers(0, 2**63, n).astype(np.uint64)
    found = {}
    for number in range(n_models or draw(st.sampled_from([2, 2, 3]))):
        present = rng.random(n) < draw(st.sampled_from([1.0, 1.0, 0.8]))
        columns, terms = {}, {}
        for name, pool in pools.items():
            values = pool.copy()
            moved = rng.random(n) < (0.05 if rare else 0.7)
            values[moved] = rng.permutation(pool)[moved]
            values[rng.random(n) < draw(st.sampled_from([0.0, 0.0, 0.2]))] = np.nan
            columns[name] = values[present]
            if name in (DERIVED, "average_rank"):
                second = np.where(np.isnan(values), np.nan, rng.integers(1, 4, n))
                terms[name] = (values[present], second[present])
        ids = np.flatnonzero(present)
        if kind == "str":
            ids = np.array([f"u{i:03}" for i in ids], dtype=object)
        found["abc"[number]] = result_of(ids, columns, terms, keys[present])
    return found


@st.composite
def deals(draw, results):
    """For each result the piece of each row: ranges, or dealt."""
    out = {}
    for name, result in results.items():
        n, n_pieces = len(result.per_case), draw(st.integers(1, 4))
        rng = np.random.default_rng(draw(st.integers(0, 99)))
        owner = rng.integers(0, n_pieces, n)
        out[name] = np.sort(owner) if draw(st.booleans()) else owner
    return out


options = st.fixed_dictionaries(
    {},
    optional={
        "baseline": st.sampled_from(["a", "b"]),
        "test": st.sampled_from(["t", "sign"]),
        "interval": st.sampled_from(["t", "normal"]),
        "correction": st.sampled_from(["holm", "bh", "none"]),
        "margin": st.sampled_from([0.05, 1.0]),
        "no_worse_than": st.sampled_from([0.05, 1.0]),
        "rope": st.sampled_from([0.01, 0.5]),
        "tie": st.sampled_from([0.1, 0.5]),
        "confidence": st.sampled_from([0.8, 0.99]),
    },
)


@few
@given(data=st.data(), chosen=options, most=st.sampled_from([1 << 16, 2]))
def test_the_pieces_give_the_table_of_the_rows(data, chosen, most, tmp_path_factory, monkeypatch):
    """`most`: how many differences are counted one by one."""
    monkeypatch.setattr(samples, "MOST_DISTINCT", most)
    results = data.draw(models())
    folder, owner = tmp_path_factory.mktemp("rows"), data.draw(deals(results))
    by_pieces = {name: stored(one, folder / name, owner[name]) for name, one in results.items()}
    in_memory = outcome(lambda: recsys.compare(results, **chosen))
    found = outcome(lambda: recsys.compare(by_pieces, **chosen))
    if not isinstance(found, str):  # the last digit may decide between two labels
        effects = np.array([abs(row.effect.value) for row in found])
        assume(not any(np.isclose(effects, edge, rtol=1e-9).any() for edge, _ in STANDARDISED))
    assert_same(as_numbers(in_memory), as_numbers(found))


@few
@given(data=st.data(), most=st.sampled_from([1 << 16, 2]), margin=st.sampled_from(["1%", "30%", 0.05, 0]))
def test_the_pieces_give_the_gate_of_the_rows(data, most, margin, tmp_path_factory, monkeypatch):
    monkeypatch.setattr(samples, "MOST_DISTINCT", most)
    results = data.draw(models(2))
    folder, owner = tmp_path_factory.mktemp("rows"), data.draw(deals(results))
    new, old = (stored(one, folder / name, owner[name]) for name, one in results.items())
    margins = dict.fromkeys(VALUES, margin)
    in_memory = outcome(lambda: recsys.gate(*results.values(), margins))
    found = outcome(lambda: recsys.gate(new, old, margins))
    if not isinstance(found, str):
        found = dataclasses.replace(found, notes=tuple(n for n in found.notes if n.code != "in_memory"))
        found = dataclasses.asdict(found)
        in_memory = dataclasses.asdict(in_memory)
    assert_same(in_memory, found)


TRUTH = {user: {1000 + user % 40, 1, 2} for user in range(1200)}


def evaluated(seed, share, metrics, users=TRUTH, **more):
    rng, lists = np.random.default_rng(seed), {}
    for user in users:
        listed = rng.permutation(300)[:9].tolist()
        if rng.random() < share:
            listed.insert(int(rng.integers(0, 4)), 1000 + user % 40)
        lists[user] = listed
    return recsys.evaluate(lists, {user: TRUTH[user] for user in users}, metrics, catalogue=1500, **more)


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """Real results with every kind of metric, in memory and in folders cut in different places."""
    metrics = ["ndcg@5", "hit@5", "precision@5", "coverage@5", "gini@5", "gmap@5", DERIVED]
    found = {
        "old": evaluated(1, 0.3, metrics, conventions={"average": "pooled"}),
        "new": evaluated(2, 0.5, metrics, conventions={"average": "pooled"}),
        "odd": evaluated(3, 0.31, metrics, users=list(TRUTH)[:1100], conventions={"average": "pooled"}),
    }
    folder = tmp_path_factory.mktemp("real")
    pieces = {}
    for number, (name, one) in enumerate(found.items()):
        owner = np.arange(len(one.per_case)) // (200 + 131 * number)
        pieces[name] = stored(one, folder / name, owner)
    return SimpleNamespace(memory=found, pieces=pieces)


@pytest.mark.parametrize(
    "chosen",
    [
        {},
        {"baseline": "old", "margin": 0.1, "no_worse_than": 0.05, "rope": 0.02},
        {"test": "studentised", "n_resamples": 400},
        {"interval": "percentile", "n_resamples": 400, "scheme": "poisson", "rng": 3},
        {"baseline": "old", "correction": "max-t", "n_resamples": 400},
    ],
)
def test_every_kind_of_metric_without_holding_rows(real, chosen, monkeypatch):
    whole, read = [], RowFolder._read_pieces
    monkeypatch.setattr(
        RowFolder, "_read_pieces", lambda folder, name: whole.append(name) or read(folder, name)
    )
    found = as_numbers(outcome(lambda: recsys.compare(real.pieces, **chosen)))
    assert set(whole) <= {"user", "gmap@5"}  # a geometric mean is no sum
    assert_same(as_numbers(outcome(lambda: recsys.compare(real.memory, **chosen))), found)
    assert len(found["rows"]) == 7 * 2


@pytest.mark.parametrize(
    ("chosen", "reason"),
    [
        ({"test": "wilcoxon"}, "test='wilcoxon' needs all values"),
        ({"interval": "bca", "n_resamples": 100}, "interval='bca' needs all values"),
        ({"effect": "cliffs_delta"}, "effect='cliffs_delta' needs all values"),
        ({"strata": {user: user % 3 for user in TRUTH}}, "covariates and strata need all users at once"),
        (
            {"test": "studentised", "scheme": "multinomial", "n_resamples": 100},
            "a bootstrap with replacement needs all users at once",
        ),
    ],
)
def test_what_needs_all_values_reads_them_and_says_so(real, chosen, reason):
    chosen = {"metrics": ["ndcg@5", "coverage@5"], **chosen}
    found = outcome(lambda: recsys.compare(real.pieces, **chosen))
    assert str(found.table.notes[-1]) == f"the values per user were read into memory: {reason}"
    assert_same(as_numbers(outcome(lambda: recsys.compare(real.memory, **chosen))), as_numbers(found))


def test_runs_weights_clusters_and_results_in_memory_are_read_into_memory(real, tmp_path):
    old, new = real.pieces["old"], real.pieces["new"]
    memory = real.memory
    weights = {user: 1.0 + user % 3 for user in TRUTH}
    weighted = {name: evaluated(seed, 0.4, ["hit@5"], case_weights=weights) for seed, name in enumerate("ab")}
    in_folders = {name: stored(one, tmp_path / name) for name, one in weighted.items()}
    for by_pieces, in_memory, reason in (
        ({"old": old, "new": [new, new]}, {"old": memory["old"], "new": [memory["new"]] * 2}, "several runs"),
        ({"old": old, "new": memory["new"]}, {n: memory[n] for n in ("old", "new")}, "new does not lie in"),
        (in_folders, weighted, "there are weights, or several cases of a user"),
    ):
        found = outcome(lambda by_pieces=by_pieces: recsys.compare(by_pieces, metrics=["hit@5"]))
        assert reason in str(found.table.notes[-1])
        expected = outcome(lambda in_memory=in_memory: recsys.compare(in_memory, metrics=["hit@5"]))
        assert_same(as_numbers(expected), as_numbers(found))
    decision = recsys.gate(*in_folders.values(), {"hit@5": "1%"})
    assert "read into memory: there are weights" in str(decision.notes[-1])
    assert_same(
        [dataclasses.asdict(check) for check in recsys.gate(*weighted.values(), {"hit@5": "1%"}).checks],
        [dataclasses.asdict(check) for check in decision.checks],
    )


def test_too_many_distinct_differences_of_few_users_are_read_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(samples, "MOST_DISTINCT", 3)
    old, new = np.full(300, 0.4), np.full(300, 0.4)
    new[:9] += np.linspace(-0.2, 0.5, 9)
    memory = {
        name: result_of(np.arange(300), {"ndcg@5": side}, {}) for name, side in (("old", old), ("new", new))
    }
    folders = {name: stored(one, tmp_path / name) for name, one in memory.items()}
    found = outcome(lambda: recsys.compare(folders))
    assert not found.table.notes
    assert_same(as_numbers(outcome(lambda: recsys.compare(memory))), as_numbers(found))


def test_without_values_per_user_there_is_nothing_to_pair(real):
    bare = Evaluation(without_rows(real.memory["new"].partial), *_rules(real.memory["new"]))
    with pytest.raises(
        NoRowsError, match="comparing 'new' with another result user by user needs the values"
    ):
        recsys.compare({"old": real.memory["old"], "new": bare})
    with pytest.raises(NoRowsError, match="comparing 'the new result' with another"):
        recsys.gate(bare, real.memory["old"], {"hit@5": "1%"})


def _rules(result):
    requests = [request for request in result.requests if "gmap" not in str(request)]
    return requests, result.conventions


def test_folders_with_ids_of_different_types_do_not_match(real, tmp_path):
    texts = result_of(np.array(["1", "2"], dtype=object), {"hit@5": np.ones(2)}, {})
    models = {"old": real.pieces["old"], "new": stored(texts, tmp_path / "texts")}
    with pytest.raises(IdTypeError, match="different types"):
        recsys.compare(models, metrics=["hit@5"])
    with pytest.raises(IdTypeError, match="different types"):
        recsys.gate(models["new"], models["old"], {"hit@5": "1%"})


def test_a_folder_without_rows_has_no_case_in_common(real, tmp_path):
    nobody = result_of(np.array([], dtype=np.int64), {"hit@5": np.empty(0)}, {})
    with pytest.raises(InputError, match="'new' and 'old' have no case in common on 'hit@5'"):
        recsys.compare({"old": real.pieces["old"], "new": stored(nobody, tmp_path / "f")}, metrics=["hit@5"])


def test_another_truth_is_seen_in_folders(real, tmp_path):
    old = real.memory["old"]
    keys = old.truth_keys.copy()
    keys[:7] += 1
    other = result_of(old.per_case.ids, {"hit@5": old.per_case.columns["hit@5"]}, {}, keys)
    half = result_of(old.per_case.ids[:500], {"hit@5": np.ones(500)}, {}, old.truth_keys[:500])
    for one, sentence in (
        (other, "7 of 1,200 users have another truth in new than in old"),
        (half, "old and new share 500 of 1,200 users, and only these are compared"),
    ):
        models = {"old": real.pieces["old"], "new": stored(one, tmp_path / str(len(one.per_case)))}
        for found in (models, {"old": old, "new": one}):
            comparison = outcome(lambda found=found: recsys.compare(found, metrics=["hit@5"]))
            assert [c.sentence for c in comparison.cautions if c.code == "different_questions"] == [sentence]


def saved(result, folder):
    """The path of a folder that `recsys.load` opens."""
    small = Evaluation(without_rows(result.partial), result.requests, result.conventions)
    stored(result, folder, manifest={"result": whole_document(small, groups={}, run={"name": folder.name})})
    return folder


def test_paths_of_files_and_folders_stand_for_results(tmp_path):
    old, new = (evaluated(seed, share, ["ndcg@5", "hit@5"]) for seed, share in ((1, 0.3), (2, 0.5)))
    old.save(tmp_path / "old.json")
    folders = {"old": saved(old, tmp_path / "old"), "new": str(saved(new, tmp_path / "new"))}
    expected = as_numbers(recsys.compare({"old": old, "new": new}))
    found = recsys.compare(folders)
    assert found.table.notes == ()
    assert_same(expected, as_numbers(found))
    mixed = recsys.compare({"old": tmp_path / "old.json", "new": folders["new"]})
    assert (*map(str, mixed.table.notes),) == (
        "the values per user were read into memory: old does not lie in a folder",
    )
    assert_same(expected, as_numbers(mixed))
    assert_same(expected["rows"][1]["value"], recsys.compare([*folders.values()])[1].value)
    runs = {"old": [tmp_path / "old.json"] * 2, "new": [folders["new"]] * 2}
    assert outcome(lambda: recsys.compare(runs))[0].runs is not None
    decision = recsys.gate(folders["new"], folders["old"], {"ndcg@5": "1%"})
    assert (decision.passed, decision.notes) == (True, ())
    assert decision.checks[0].users == 1200
    with pytest.raises(InputError, match="a comparison got str"):
        recsys.compare(folders["new"])
    with pytest.raises(FileError, match="there is no file"):
        recsys.compare({"old": tmp_path / "nothing.json", "new": new})


def test_the_command_compares_folders(tmp_path, command):
    paths = [
        str(saved(evaluated(seed, share, ["ndcg@5", "hit@5"]), tmp_path / name))
        for seed, share, name in ((1, 0.3, "old"), (2, 0.5, "new"))
    ]
    done = command("compare", *paths, "--baseline", "old", "--json")
    rows = json.loads(done.stdout)["rows"]
    assert [(row["model"], row["baseline"], row["n_units"]) for row in rows] == [("new", "old", 1200)] * 2
    assert command("gate", paths[1], "--against", paths[0], "-m", "ndcg@5").exit_code == 0


PEAK = """
import re, sys
from pathlib import Path
import recsys

def peak_mb():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) / 1024

def results(*names):
    return {name: recsys.load(Path(sys.argv[1]) / name) for name in names}

recsys.compare(results("small", "tiny"))
recsys.gate(*results("small", "tiny").values(), {"hit@10": "1%"})
big = results("a", "b")
before = peak_mb()
row = recsys.compare(big)["b", "dcg@10"]
passed = recsys.gate(big["b"], big["a"], {"dcg@10": "1%", "hit@10": 0.01}).passed
print(row.n_units, row.wins + row.losses, passed, peak_mb() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_two_folders_of_two_million_users_take_little_memory(tmp_path):
    """In memory the comparison takes 350 MB; piece by piece it may take 110."""
    requests = [Request.parse(name) for name in ("hit@10", "dcg@10")]
    for name, n_pieces, seed in (("a", 20, 0), ("b", 16, 1), ("small", 1, 2), ("tiny", 1, 3)):
        size = {"a": 100_000, "b": 125_000}.get(name, 1000)
        rng, parts = np.random.default_rng(seed), []
        with RowWriter(tmp_path / name) as writer:
            for piece in range(n_pieces):
                values = rng.random(size)
                rows = PerCase(
                    np.arange(piece * size, (piece + 1) * size),
                    {"hit@10": (values > 0.6).astype(float), "dcg@10": values * (values > 0.6)},
                )
                writer.write(rows, {})
                parts.append(without_rows(Partial(rows, {}, {"cases": size})))
            whole = Evaluation(merge(parts), requests, Conventions())
            writer.close({"result": whole_document(whole, groups={}, run={"name": name})})
    done = subprocess.run(
        [sys.executable, "-c", PEAK, str(tmp_path)], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    n_users, n_differing, passed, grown = done.stdout.split()
    assert (n_users, passed) == ("2000000", "True")
    assert 1_200_000 < int(n_differing) < 1_400_000
    assert float(grown) < 110
