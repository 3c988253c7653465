"""Result files that earlier builds wrote open in this one, with the same numbers.

A folder of `stored/` is named for a format and holds a result of every kind there was then: files that end in
.json, and folders of values per user. A new format needs a folder of its own, which this makes:

    python tests/evaluation/files/test_stored_results.py format-3
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import recsys
from recsys.errors import NoRowsError
from recsys.evaluation.files import result_files, row_folders

STORED = Path(__file__).parent / "stored"
FILES = sorted(path for path in STORED.glob("*/*") if path.suffix == ".json" or path.is_dir())
KINDS = ("groups", "conventions", "aggregate", "ratings", "rows")
METRICS = ["recall@3", "ndcg@3", "mrr", "coverage@2", "precision(average=pooled)@3"]
INT_LISTS = {u: [(u * 3 + step) % 11 for step in (0, 7, 4, 1)] for u in range(12)}
LISTS = {f"ü{u}": items for u, items in INT_LISTS.items()}
TRUTH = {f"ü{u}": {u % 11: 1.0, (5 * u + 3) % 11: 2.0} for u in range(13)}

near = partial(pytest.approx, rel=1e-12, nan_ok=True)  # a later build may round a last digit otherwise


def made(kind: str, folder: Path) -> recsys.Evaluation:
    """A result of this kind, computed now; `folder` is for files of its own."""
    if kind == "groups":
        by = {user: "ab"[at % 2] for at, user in enumerate(TRUTH)}
        weights = {user: 0.5 + at % 3 for at, user in enumerate(TRUTH)}
        clusters = {user: at // 3 for at, user in enumerate(TRUTH)}
        return recsys.evaluate(LISTS, TRUTH, METRICS, by=by, case_weights=weights, clusters=clusters)
    if kind == "conventions":
        scored = {u: [(i, 1.0 + i % 3) for i in items] for u, items in INT_LISTS.items()}
        truth = {u: TRUTH[f"ü{u}"] for u in range(13)}
        return recsys.evaluate(scored, truth, METRICS, conventions={"ties": "expected", "gain": "exp2"})
    if kind == "aggregate":
        return recsys.evaluate(LISTS, TRUTH, METRICS[:3], aggregate="trimmed(0.1)")
    if kind == "ratings":
        rated = [(u, i, (u * i) % 5 + 1.0, (u + i) % 5 + 1.25) for u in range(6) for i in range(4)]
        frame = pd.DataFrame(rated, columns=["user", "item", "rating", "prediction"])
        return recsys.evaluate_ratings(frame, metrics=["mse", "mae", "bias"])
    lists = [(u, i, -at) for u, items in LISTS.items() for at, i in enumerate(items)]
    truth = [(u, i, grade) for u, items in TRUTH.items() for i, grade in items.items()]
    pd.DataFrame(lists, columns=["user", "item", "score"]).to_csv(folder / "lists.csv", index=False)
    pd.DataFrame(truth, columns=["user", "item", "grade"]).to_csv(folder / "truth.csv", index=False)
    paths = [str(folder / name) for name in ("lists.csv", "truth.csv")]
    return recsys.evaluate(*paths, METRICS, memory="16GB", per_user=folder / "rows")


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name} {path.name}")
def test_a_stored_result_opens_with_the_numbers_of_today(path: Path, tmp_path: Path):
    now, opened = made(path.stem, tmp_path), recsys.load(path)
    document = json.loads((path / "manifest.json" if path.is_dir() else path).read_text("utf-8"))
    stated = (document["result"] if path.is_dir() else document)["result"]["metrics"]
    assert dict(opened) == {row["metric"]: row["value"] for row in stated}
    assert dict(opened) == near(dict(now))
    assert {group: dict(row) for group, row in opened.by.items()} == {
        group: near(dict(row)) for group, row in now.by.items()
    }
    for name, one in now.intervals().items():
        then = opened.intervals()[name]
        assert [then.interval.low, then.interval.high] == near([one.interval.low, one.interval.high])
    if path.name == "rows.json":  # sums, without the values of users
        with pytest.raises(NoRowsError):
            opened.per_case  # noqa: B018
    else:
        then, rows = opened.per_case, now.per_case
        assert then.ids.tolist() == rows.ids.tolist()
        for given in ("weights", "clusters"):
            assert np.array_equal(getattr(then, given), getattr(rows, given))
        for name, values in rows.columns.items():
            assert then.columns[name].tolist() == near(values.tolist())
    opened.save(tmp_path / "again.json")
    assert dict(recsys.load(tmp_path / "again.json")) == dict(opened)


def test_every_format_has_stored_results_of_every_kind():
    formats = range(2, result_files.FORMAT + 1)
    held = {
        number: {path.name for path in FILES if path.parent.name.startswith(f"format-{number}")}
        for number in formats
    }
    newest = {f"{kind}.json" for kind in KINDS} | {"rows"}
    assert all(held.values())
    assert held[result_files.FORMAT] == newest
    documents = [json.loads(path.read_text("utf-8")) for path in FILES if path.suffix == ".json"]
    assert {document["result"]["schema"] for document in documents} == {*range(1, result_files.SCHEMA + 1)}
    assert {document["format"] for document in documents} == {*formats}
    manifests = [json.loads((path / "manifest.json").read_text("utf-8")) for path in FILES if path.is_dir()]
    assert row_folders.SCHEMA in {manifest["schema"] for manifest in manifests}


if __name__ == "__main__":
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as folder:
            target = STORED / sys.argv[1]
            target.mkdir(parents=True, exist_ok=True)
            made(kind, Path(folder)).save(target / f"{kind}.json")
            if kind == "rows":
                shutil.copytree(Path(folder) / "rows", target / "rows")
