"""Borders of blocks, batches and arguments in many rooms: the last that belongs, the first that does not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import recsys
from recsys import kernels
from recsys.errors import CutoffError, InputError, MergeError
from recsys.kernels import reference_backend
from recsys.splits import manifest


@pytest.mark.parametrize("entries", [1, 2, 5, 100])
@pytest.mark.parametrize("cases", [1, 2, 100])
def test_lists_are_matched_in_blocks_of_any_size(entries, cases, monkeypatch):
    lists = [[1, 2, 3, 4, 5, 6], [], [2, 2], [7], [1, 9, 3]]
    truth = [[2, 5, 6], [1], [2], [], [3, 9]]

    def rows(table):
        indptr = np.cumsum([0, *map(len, table)], dtype=np.int64)
        return indptr, np.array([item for row in table for item in row], np.int32)

    whole = kernels.match_lists(*rows(lists), *rows(truth), backend="reference")
    monkeypatch.setattr(reference_backend, "ENTRIES_PER_BLOCK", entries)
    monkeypatch.setattr(reference_backend, "CASES_PER_BLOCK", cases)
    blocks = kernels.match_lists(*rows(lists), *rows(truth), backend="reference")
    assert blocks.at.tolist() == whole.at.tolist() == [1, 4, 5, 6, 7, 10, 11]
    assert blocks.truth.tolist() == whole.truth.tolist()
    assert blocks.case.tolist() == whole.case.tolist()
    assert blocks.repeat.tolist() == whole.repeat.tolist()
    assert (blocks.n_repeated, blocks.first_repeated) == (whole.n_repeated, whole.first_repeated)


def test_keys_tell_numbers_apart_and_not_their_types():
    whole = manifest._array_keys(np.array([0, 1, 2]), None, "x").tolist()
    assert manifest._array_keys(np.array([0.0, 1.0, 2.0]), None, "x").tolist() == whole
    assert manifest._array_keys(np.array([-0.0, 1.0, 2.0]), None, "x").tolist() == whole
    numbers = [0.0, 0.25, 0.5, 0.75, 1.0, -0.5, np.inf, -np.inf, 2.0**53, 2.0**60, 1e300]
    assert len(set(manifest._array_keys(np.array(numbers), None, "x").tolist())) == len(numbers)
    days = np.array(["2026-01-01", "2026-01-02"], dtype="datetime64[D]")
    assert len(set(manifest._array_keys(days, None, "x").tolist())) == 2
    assert (
        manifest._array_keys(days.astype("datetime64[us]"), None, "x")
        == manifest._array_keys(days, None, "x")
    ).all()


@pytest.mark.parametrize("second", [[3], [1], [5, 3], [1, 0], [2, 9]])
@pytest.mark.parametrize("as_text", [False, True])
def test_a_user_may_be_in_one_batch_only(second, as_text):
    def batch(users):
        named = [f"u{user}" if as_text else user for user in users]
        return {user: ["a"] for user in named}, {user: ["a", "b"] for user in named}

    evaluator = recsys.Evaluator(["recall@1"])
    evaluator.update(*batch([1, 2, 3]))
    with pytest.raises(MergeError):
        evaluator.update(*batch(second))
    evaluator.update(*batch([0])).update(*batch([4, 5]))
    assert evaluator.result()["recall@1"] == 0.5
    assert len(evaluator.result().per_case) == 6


def test_groups_of_cold_items_and_users_have_their_usual_borders():
    train = pd.DataFrame([(u, i) for i, n in (("few", 4), ("some", 5), ("many", 9)) for u in range(n)])
    train.columns = ["user", "item"]
    lists, truth = {u: ["few", "x", "many"] for u in range(9)}, {u: ["few", "some", "many"] for u in range(9)}

    def groups(by: str) -> object:
        return recsys.evaluate(lists, truth, ["recall@3"], train=train, by=by).by

    assert groups("cold_item") == groups("cold_item(below=5)") != groups("cold_item(below=6)")
    assert groups("cold_item")["cold"]["recall@3"] == 1.0


def test_arguments_of_an_audit():
    train, test = {"a": [1, 2], "b": [2]}, {"a": [3], "b": [1]}
    assert recsys.audit(train, test, k=1).passed
    assert recsys.audit(train, test, examples=0, sampled=0) is not None
    for wrong in ({"k": 0}, {"k": 1.5}, {"k": True}):
        with pytest.raises(CutoffError):
            recsys.audit(train, test, **wrong)
    for wrong in ({"examples": -1}, {"sampled": -1}, {"examples": 2**63}, {"examples": 1.0}, {"models": []}):
        with pytest.raises(InputError):
            recsys.audit(train, test, **wrong)
    for wrong in ({"checks": 5}, {"metrics": [5]}, {"popularity": 5}, {"popularity": {1: "many"}}):
        with pytest.raises(InputError):
            recsys.audit(train, test, **wrong)


def test_training_needs_an_epoch_and_a_batch_and_may_do_without_negatives():
    pytest.importorskip("torch")
    from recsys.models import GMF, BiasedMF
    from recsys.models.training import Pairs, fit_ratings, train

    pairs = Pairs.of([0, 1, 1], [0, 1, 2], n_items=4)
    for allowed in ({"epochs": 1}, {"batch": 1}, {"negatives": 0}):
        options = {"epochs": 1, "device": "cpu", **allowed}
        assert len(train(GMF(2, 4), pairs, **options).epochs) == 1
    for refused in ({"epochs": 0}, {"batch": 0}, {"negatives": -1}):
        with pytest.raises(InputError):
            train(GMF(2, 4), pairs, device="cpu", **refused)
    one = fit_ratings(BiasedMF(1, 1, factors=1), [0], [0], [4.0], epochs=1)
    assert one.predict([0], [0])[0] == pytest.approx(4.0, abs=0.5)
    for wrong in ([], [np.nan], [np.inf]):
        with pytest.raises(InputError):
            fit_ratings(BiasedMF(1, 1, factors=1), [0] * len(wrong), [0] * len(wrong), wrong)
