"""Results logged to the real trackers, offline: they store what was evaluated."""

from __future__ import annotations

import pytest

import recsys
from recsys.errors import InputError


@pytest.fixture
def result():
    return recsys.evaluate({1: [3, 5], 2: [4]}, {1: {5}, 2: {4}}, ["ndcg@2", "ndcg(gain=exp2)@1", "mrr"])


def test_mlflow(result, tmp_path):
    mlflow = pytest.importorskip("mlflow")
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/runs.db")
    experiment = mlflow.create_experiment("recsys", artifact_location=(tmp_path / "artifacts").as_uri())
    with mlflow.start_run(experiment_id=experiment) as run:
        result.log_to(mlflow, step=2)
    stored = mlflow.get_run(run.info.run_id).data.metrics
    assert stored == {
        "ndcg_at_2": result["ndcg@2"],
        "ndcg.gain-exp2_at_1": result["ndcg(gain=exp2)@1"],
        "mrr": result["mrr"],
    }


def test_wandb(result, tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    run = wandb.init(project="recsys", dir=str(tmp_path), settings=wandb.Settings(console="off"))
    try:
        result.log_to(run, prefix="test/")
        assert run.summary["test/ndcg@2"] == result["ndcg@2"]
    finally:
        run.finish()


def test_tensorboard(result, tmp_path):
    tensorboard = pytest.importorskip("tensorboardX")
    with tensorboard.SummaryWriter(str(tmp_path)) as writer:
        result.log_to(writer, step=7)
    (events,) = tmp_path.glob("events*")
    assert b"ndcg_at_2" in events.read_bytes()


def test_a_lightning_logger(result, tmp_path):
    loggers = pytest.importorskip("lightning.pytorch.loggers")
    logger = loggers.CSVLogger(str(tmp_path))
    result.log_to(logger, step=1)
    logger.save()
    (written,) = tmp_path.rglob("metrics.csv")
    assert "ndcg_at_2" in written.read_text()


def test_anything_else_is_refused(result):
    with pytest.raises(InputError, match="no tracker"):
        result.log_to(42)
