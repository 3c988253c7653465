"""Models as files: their names, and lists of a model that ranks."""

from __future__ import annotations

import numpy as np
import pytest

import recsys
from recsys.errors import FileError, UnknownNameError
from recsys.evaluation.files_of_models import evaluate_files, files_by_model, find_model
from recsys.inputs import read_interactions
from recsys.metrics.registry import Request
from recsys.models import load_model, save_model

LISTS = "user,item,rank\n1,3,1\n1,5,2\n2,4,1\n"
TRUTH = {1: {5}, 2: {4}}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "als.csv").write_text(LISTS)
    (tmp_path / "als.tsv").write_text(LISTS.replace(",", "\t"))
    recsys.evaluate({1: [5], 2: [4]}, TRUTH, ["hit@1"]).save(tmp_path / "night.json")
    return tmp_path


def test_files_with_one_name_are_called_by_their_paths(folder):
    assert [*files_by_model(["als.csv", "night.json"])] == ["als", "night"]
    assert [*files_by_model(["als.csv", "als.tsv"])] == ["als.csv", "als.tsv"]
    assert [*files_by_model(["als.csv", "als.tsv"], ["old", "new"])] == ["old", "new"]


def test_a_file_that_does_not_exist_is_an_error_before_any_is_evaluated(folder):
    with pytest.raises(FileError, match=r"no file missing\.csv"):
        files_by_model(["als.csv", "missing.csv"])


def test_a_model_is_found_by_its_file(folder):
    models = files_by_model(["als.csv", "night.json"], ["old", "new"])
    assert [find_model(name, models) for name in (None, "old", "als", "night.json")] == [
        None, "old", "old", "new",
    ]  # fmt: skip
    with pytest.raises(UnknownNameError, match="bpr"):
        find_model("bpr", models)


@pytest.mark.parametrize("makes_lists", [True, False])
def test_a_model_makes_lists_of_the_users_it_knows(folder, makes_lists):
    save_model("m.npz", recsys.Scores(np.array([[0.1, 0.9, 0.5]]), user_ids=[1], item_ids=[3, 4, 5]))
    truth = read_interactions(TRUTH)
    found, lists = evaluate_files(
        files_by_model(["m.npz", "night.json"]), load_model, truth, [Request.parse("hit@1")],
        seen={True: read_interactions({1: [4]})}, lists_of_models=makes_lists,
    )  # fmt: skip
    assert {name: result["hit@1"] for name, result in found.items()} == {"m": 0.5, "night": 1.0}
    assert {name: len(own.cases) for name, own in lists.items()} == ({"m": 1} if makes_lists else {})
