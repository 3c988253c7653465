"""Rating and click metrics of four peers: the same numbers, to their own precision."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from recsys.evaluation.ratings import evaluate_ratings
from worlds.parity import FLOAT32, SEEDS, peer

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


def rated(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    pairs = rng.choice(40 * 60, size=900, replace=False)
    stars = rng.integers(1, 6, 900)
    return pd.DataFrame({
        "userID": pairs // 60, "itemID": pairs % 60, "rating": stars.astype(float),
        "prediction": stars + rng.normal(0.1, 1.0, 900),
    })  # fmt: skip


def clicked(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    chance = rng.integers(0, 101, 900) / 100
    return pd.DataFrame({
        "userID": rng.integers(0, 40, 900), "itemID": np.arange(900),
        "rating": (rng.random(900) < chance**1.5).astype(float), "prediction": chance,
    })  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
def test_microsoft_recommenders(seed):
    theirs = peer("recommenders.evaluation.python_evaluation")
    table = rated(seed)
    names = {
        "rmse": theirs.rmse,
        "mae": theirs.mae,
        "r2": theirs.rsquared,
        "explained_variance": theirs.exp_var,
    }
    got = evaluate_ratings(table, metrics=list(names))
    truth, said = table[["userID", "itemID", "rating"]], table[["userID", "itemID", "prediction"]]
    for name, way in names.items():
        assert got[name] == pytest.approx(way(truth, said), abs=1e-12), name
    clicks = clicked(seed)
    got = evaluate_ratings(clicks, metrics=["auc", "log_loss"])
    truth, said = clicks[["userID", "itemID", "rating"]], clicks[["userID", "itemID", "prediction"]]
    assert got["auc"] == pytest.approx(theirs.auc(truth, said), abs=1e-12)
    assert got["log_loss"] == pytest.approx(theirs.logloss(truth, said), rel=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_surprise(seed):
    accuracy = peer("surprise.accuracy")
    table = rated(seed)
    rows = [(u, i, r, p, {}) for u, i, r, p in table.itertuples(index=False)]
    names = ["rmse", "mse", "mae", "fcp"]
    got = evaluate_ratings(table, metrics=names)
    for name in names:
        assert got[name] == pytest.approx(getattr(accuracy, name)(rows, verbose=False), abs=1e-12)
    # With few rows a user often has no concordant, or no discordant, pair; many predictions are equal.
    coarse = table.assign(prediction=table.prediction.round())[:120]
    rows = [(u, i, r, p, {}) for u, i, r, p in coarse.itertuples(index=False)]
    assert evaluate_ratings(coarse, metrics=["fcp"])["fcp"] == pytest.approx(
        accuracy.fcp(rows, verbose=False), abs=1e-12
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_cornac(seed):
    theirs = peer("cornac.metrics")
    table = rated(seed)
    got = evaluate_ratings(table, metrics=["rmse", "mse", "mae"])
    for name, metric in (("rmse", theirs.RMSE()), ("mse", theirs.MSE()), ("mae", theirs.MAE())):
        values = metric.compute(gt_ratings=table.rating.to_numpy(), pd_ratings=table.prediction.to_numpy())
        assert got[name] == pytest.approx(values, abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_torchmetrics(seed):
    """Its bins hold their lower edge, ours the upper one: predictions off the edges are binned alike."""
    torch, theirs = peer("torch"), peer("torchmetrics.functional")
    clicks = clicked(seed)
    clicks["prediction"] = clicks.prediction.clip(0.001, 0.999) + 0.0003
    p, y = torch.tensor(clicks.prediction.to_numpy()), torch.tensor(clicks.rating.to_numpy(dtype=int))
    got = evaluate_ratings(clicks, metrics=["auc", "ece", "mce"])
    assert got["auc"] == pytest.approx(float(theirs.auroc(p, y, task="binary")), abs=FLOAT32)
    classification = peer("torchmetrics.functional.classification.calibration_error")
    edges = torch.linspace(0, 1, 11, dtype=torch.float64)
    for name, norm in (("ece", "l1"), ("mce", "max")):
        # The public function measures confidence in the likelier class; its inner step takes any pair.
        gap = float(classification._ce_compute(p, y.double(), edges, norm=norm))
        assert got[name] == pytest.approx(gap, abs=1e-5)


@pytest.mark.parametrize("seed", SEEDS)
def test_recbole(seed):
    theirs = peer("recbole.evaluator.metrics")
    table, clicks = rated(seed), clicked(seed)
    config = {"metric_decimal_place": 12, "topk": [5]}

    def asked(way, frame):
        metric = getattr(theirs, way)(config)
        return metric.metric_info(frame.prediction.to_numpy(), frame.rating.to_numpy())

    got = evaluate_ratings(table, metrics=["rmse", "mae"])
    assert got["rmse"] == pytest.approx(asked("RMSE", table), abs=1e-12)
    assert got["mae"] == pytest.approx(asked("MAE", table), abs=1e-12)
    inside = clicks.assign(prediction=clicks.prediction.clip(0.01, 0.99))
    got = evaluate_ratings(inside, metrics=["log_loss", "auc"])
    assert got["log_loss"] == pytest.approx(asked("LogLoss", inside), abs=1e-12)
    assert got["auc"] == pytest.approx(asked("AUC", inside), abs=1e-9)
    assert not math.isnan(got["auc"])
