"""Networks by name: NeuMF from its parts, and NCF's test files as rows of the history's tables."""

from __future__ import annotations

import numpy as np
import pytest

from recsys.inputs import read_interactions
from recsys.inputs.files.ncf import NcfTest

pytest.importorskip("torch")

from recsys.models import Pairs
from recsys.models.network_fitting import fit_network, pairs_and_candidates

PAIRS = Pairs.of([0, 0, 0, 1, 1, 1], [0, 1, 2, 1, 2, 3], n_items=110, order=[1, 2, 3, 1, 2, 3])
SHAPE = {"factors": 2, "layers": [4, 2], "dropout": 0.0}
TRAINING = {"epochs": 2, "seed": 3, "learning_rate": 0.06, "negatives": 1, "device": "cpu"}


def test_neumf_is_fitted_after_its_parts_each_under_its_name():
    seen = []
    fitted = fit_network(
        "neumf", PAIRS, shape=SHAPE, metric="hit@1",
        on_evaluation=lambda part, epoch, result: seen.append((part, epoch, "hit@1" in result)), **TRAINING,
    )  # fmt: skip
    assert [*dict.fromkeys(part for part, *_ in seen)] == ["gmf", "mlp", "neumf"]
    assert all(epoch in (1, 2) and has_metric for _, epoch, has_metric in seen)
    assert (fitted.model.shape["factors"], fitted.model.shape["layers"]) == (2, [4, 2])


def test_nothing_is_held_out_where_all_epochs_are_wanted():
    shown = []
    fitted = fit_network(
        "mf", PAIRS, shape=SHAPE, hold_out=False, progress=lambda *step: shown.append(step), **TRAINING
    )
    assert (fitted.watch, len(fitted.history.epochs)) == (None, 2)
    assert shown[-1] == (24, 24, "training mf")


@pytest.mark.parametrize("as_text", [True, False])
def test_numbers_of_test_files_are_ids_of_the_history(as_text):
    kind = str if as_text else int
    history = read_interactions({kind(u): [kind(7), kind(8)] for u in (1, 2)})
    test = NcfTest(np.array([2]), np.array([9]), [np.array([7, 11])])
    pairs, candidates = pairs_and_candidates(history, test)
    assert [kind(i) for i in (7, 8, 9, 11)] == sorted(pairs.item_ids.tolist(), key=int)
    assert candidates.users.tolist() == [1]
    assert pairs.item_ids[candidates.items].tolist() == [kind(9)]
    assert pairs_and_candidates(history, None)[1] is None
