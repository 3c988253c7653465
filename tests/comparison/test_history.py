"""A folder of results over nights: nothing is overwritten, and changes of level are separated from noise."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import recsys
from recsys.comparison.history import Night, ResultHistory, history, record
from recsys.errors import FileError, InputError
from recsys.evaluation.files.result_files import fingerprint


def night(share, seed, n=500):
    rng = np.random.default_rng(seed)
    truth = {u: {1} for u in range(n)}
    return recsys.evaluate({u: [1 if rng.random() < share else 2] for u in truth}, truth, ["hit@1", "mrr"])


@pytest.fixture
def folder(tmp_path):
    for i in range(12):
        result = night(0.5 if i < 7 else 0.3, i)
        result.run = {"finished": f"2026-01-{i + 1:02d}T02:00:00+00:00"}
        record(tmp_path, result, "als")
    return tmp_path


def test_a_drop_is_found_on_its_night(folder):
    made = history(folder, "hit@1")
    assert len(made) == 12
    ((_, change),) = made.changes()["als", "hit@1"]
    assert change.at == 7
    assert change.after < change.before
    assert "2026-01-08" in str(made)
    document = json.loads(made.to_json())
    assert document["changes"][0]["finished"].startswith("2026-01-08")
    assert len(document["nights"]) == 12


def test_intervals_hold_the_value(folder):
    frame = history(folder).to_frame()
    assert ((frame.low <= frame.value) & (frame.value <= frame.high)).all()
    assert set(frame.metric) == {"hit@1", "mrr"}


def test_nothing_is_overwritten(tmp_path):
    result = night(0.5, 0)
    paths = {record(tmp_path, result, "a/../<b>") for _ in range(5)}
    assert len(paths) == 5
    assert all(path.parent == tmp_path for path in paths)


def _fails(*_args, **_options):
    raise OSError(5, "Input/output error")


def test_a_result_counts_though_its_second_name_cannot_be_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "unlink", _fails)
    path = record(tmp_path, night(0.5, 0), "als")
    assert len(history(tmp_path, "mrr")) == 1
    assert path in tmp_path.iterdir()


def test_without_hard_links_a_rename_that_fails_leaves_no_empty_file(tmp_path, monkeypatch):
    replace = Path.replace

    def only_hidden(self, target):
        return replace(self, target) if Path(target).name.startswith(".") else _fails()

    monkeypatch.setattr(Path, "hardlink_to", _fails)
    assert record(tmp_path / "whole", night(0.5, 0), "als").stat().st_size
    monkeypatch.setattr(Path, "replace", only_hidden)
    with pytest.raises(FileError, match=r"could not be written: Input/output error\. Nothing was changed"):
        record(tmp_path / "none", night(0.5, 0), "als")
    assert not any((tmp_path / "none").iterdir())


def test_other_files_are_said_not_swallowed(folder):
    (folder / "note.json").write_text("{}")
    assert "note.json" in str(history(folder, "mrr"))


def test_file_names_bring_no_escapes_into_a_terminal(folder):
    (folder / "c\x1b[31mZ\u202e.json").write_text("{}")
    shown = str(history(folder, "mrr"))
    assert "skipped: " in shown
    assert "Z.json" in shown
    assert not {"\x1b", "\u202e"} & {*shown}


def test_what_is_not_there(tmp_path):
    with pytest.raises(FileError, match="no folder"):
        history(tmp_path / "x")
    with pytest.raises(InputError, match="no result"):
        history(tmp_path)


def test_a_name_that_is_not_there_comes_with_those_that_are(folder):
    (folder / "note.json").write_text("{}")
    with pytest.raises(InputError, match="It has als: hit@1, als: mrr"):
        history(folder, "ndcg@10")
    with pytest.raises(InputError, match="such a model"):
        history(folder, name="bpr")


def test_intervals_are_those_of_the_result_whatever_the_metric(tmp_path):
    rng = np.random.default_rng(0)
    truth = {u: set(rng.choice(60, size=rng.integers(1, 9), replace=False).tolist()) for u in range(300)}
    lists = {u: rng.permutation(60)[:3].tolist() for u in truth}
    pooled = {"average": "pooled"}
    result = recsys.evaluate(lists, truth, ["recall@3", "coverage@2", "gmap@3"], conventions=pooled)
    record(tmp_path, result, "als")
    frame = history(tmp_path).to_frame().set_index("metric")
    for name, found in result.intervals().items():
        assert (frame.low[name], frame.high[name]) == (found.interval.low, found.interval.high)


def test_a_metric_without_users_claims_no_interval(tmp_path):
    record(tmp_path, recsys.evaluate({1: [1], 2: [2]}, {1: {1}, 2: {1}}, ["coverage@1"]), "als")
    assert str(history(tmp_path)).splitlines()[2].split()[-2:] == ["-", "2"]


def in_words(values):
    nights = [
        Night(f"2026-01-{i + 1:02d}", "als", "mrr", value, value, value, 500, f"{i}.json")
        for i, value in enumerate(values)
    ]
    return ResultHistory(nights)


def test_few_nights_are_said_to_be_too_few():
    made = in_words([0.30, 0.301, 0.302, 0.25, 0.251, 0.252])
    assert made.changes() == {}
    assert "too few nights to tell a change of level from noise, which takes 10: als: mrr has 6" in str(made)
    assert "no change of level" not in str(made)
    assert json.loads(made.to_json())["too_few_nights"] == [
        {"name": "als", "metric": "mrr", "nights": 6, "nights_needed": 10}
    ]
    assert "no change of level beyond the noise" in str(in_words([0.30, 0.31] * 5))


def test_nights_that_are_very_similar_are_noted():
    rng = np.random.default_rng(5)
    walk = np.cumsum(rng.normal(0, 0.01, 100))
    assert "neighbouring nights are similar (correlation about 0.8)" in str(in_words(walk))
    step = np.concatenate([rng.normal(0.3, 0.01, 50), rng.normal(0.2, 0.01, 50)])
    assert "mrr went from 0.30" in str(in_words(step))
    assert "similar" not in str(in_words(step))


def nights_of(folder, *kinds):
    """16 nights of one model under these conventions in turn: (how many nights, keywords of evaluate)."""
    rng, truth = np.random.default_rng(0), {u: {1: 5, 2: 3} for u in range(300)}
    keywords = [options for count, options in kinds for _ in range(count)]
    for number, options in enumerate(keywords):
        lists = {u: rng.permutation([1, 2, 3, 4, 5]).tolist() for u in truth}
        result = recsys.evaluate(lists, truth, ["recall@1", "coverage@1"], **options)
        result.run = {"finished": f"2026-01-{number + 1:02d}"}
        record(folder, result, "als")
    return history(folder)


FROM_4 = {"conventions": {"relevant_from": 4}}


def test_other_conventions_are_no_new_level(tmp_path):
    made = nights_of(tmp_path, (10, FROM_4), (6, {}))
    assert made.changes() == {}
    assert made.too_few_nights() == {("als", "recall@1"): 6}
    shown = str(made)
    assert shown.count("not compared\n") == 10
    said = "als: recall@1: the conventions are others since 2026-01-11 (relevant_from: 4.0, now None), so"
    (note,) = made.notes()
    assert note == f"{said} 10 nights are shown and not compared"
    document = json.loads(made.to_json())
    assert document["notes"] == [note]
    found = [
        night["decisions"]["relevant_from"] for night in document["nights"] if night["metric"] == "recall@1"
    ]
    assert found == [4.0] * 10 + [None] * 6
    # coverage does not read which items are relevant: all its nights are compared.
    assert [len(nights) for _, nights in made.comparable()] == [16, 6]


def test_nights_of_the_same_conventions_are_compared_past_an_odd_one(tmp_path):
    made = nights_of(tmp_path, (9, {}), (1, FROM_4), (1, {"aggregate": "p90"}), (5, {}))
    assert made.too_few_nights() == {}
    assert made.changes() == {}
    (note,) = made.notes()
    assert (
        "since 2026-01-12 (aggregate: p90, now mean; some nights differ in other ways), so 2 nights are"
        in note
    )


def test_a_change_is_found_among_the_nights_of_the_newest_conventions():
    nights = [
        Night(
            f"{i:02}",
            "als",
            "mrr",
            value,
            value,
            value,
            9,
            f"{i}.json",
            {"gain": "exp2" if i < 4 else "grade"},
        )
        for i, value in enumerate([0.9] * 4 + [0.3, 0.31] * 5 + [0.2, 0.21] * 5)
    ]
    ((found, change),) = ResultHistory(nights).changes()["als", "mrr"]
    assert (found.finished, change.at) == ("14", 10)


def of_model(night, **options):
    truth = {u: {u % 20} for u in range(60)}
    result = recsys.evaluate(
        recsys.Scores(np.sin(np.arange(1200.0) + night).reshape(60, 20)), truth, ["mrr"], **options
    )
    result.run = {"finished": f"2026-01-{night:02d}T02:00:00+00:00"}
    return result


def test_nights_among_other_candidates_are_not_compared_and_other_rows_are(tmp_path):
    seen = {u: [(u + 1) % 20] for u in range(60)}
    for number, options in enumerate([{}, {"eligible": {u: range(9) for u in range(60)}}, {"seen": seen}], 1):
        record(tmp_path, of_model(number, **options), "als")
    record(tmp_path, of_model(4, seen={**seen, 3: [5]}), "als")
    made = history(tmp_path)
    ((_, nights),) = made.comparable()
    assert [night.finished[:10] for night in nights] == ["2026-01-03", "2026-01-04"]
    assert "seen: ranked, now left out" in str(made)


def test_a_night_that_does_not_say_its_candidates_is_compared(tmp_path):
    for number in (1, 2):
        record(tmp_path, of_model(number), "als")
    first = min(tmp_path.glob("*.json"))
    document = json.loads(first.read_text())
    del document["result"]["question"]
    document["sha256"] = fingerprint(document["result"])
    first.write_text(json.dumps(document))
    made = history(tmp_path)
    assert [len(nights) for _, nights in made.comparable()] == [2]
    assert made.notes() == []
