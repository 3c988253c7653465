"""Results logged to the real trackers, offline: they store what was evaluated."""

from __future__ import annotations

import pandas as pd
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
    assert not mlflow.artifacts.list_artifacts(run_id=run.info.run_id), "a step of training keeps no files"


def test_mlflow_keeps_the_users_and_the_report(result, tmp_path):
    mlflow = pytest.importorskip("mlflow")
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/runs.db")
    experiment = mlflow.create_experiment("files", artifact_location=(tmp_path / "artifacts").as_uri())
    page = tmp_path / "als.html"
    page.write_text("<title>als</title>")
    with mlflow.start_run(experiment_id=experiment) as run:
        result.log_to(mlflow)
        result.log_to(mlflow, prefix="test/", report=page)
        result.log_to(mlflow, per_user=False)
    kept = {each.path for each in mlflow.artifacts.list_artifacts(run_id=run.info.run_id)}
    assert kept == {"per_user.parquet", "test_per_user.parquet", "als.html"}
    local = mlflow.artifacts.download_artifacts(run_id=run.info.run_id, artifact_path="per_user.parquet")
    stored = pd.read_parquet(local).set_index("user")
    pd.testing.assert_frame_equal(stored, result.per_user)


def test_wandb(result, tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb")
    settings = {"MODE": "offline", "SILENT": "true", "DATA_DIR": tmp_path, "CACHE_DIR": tmp_path}
    for name, value in settings.items():
        monkeypatch.setenv(f"WANDB_{name}", str(value))
    run = wandb.init(project="recsys", dir=str(tmp_path), settings=wandb.Settings(console="off"))
    log_artifact, kept = run.log_artifact, []
    monkeypatch.setattr(
        run, "log_artifact", lambda *a, **k: kept.append(log_artifact(*a, **k)), raising=False
    )
    try:
        result.log_to(run, prefix="test/")
        assert run.summary["test/ndcg@2"] == result["ndcg@2"]
        result.log_to(run, per_user=False)
        result.log_to(run, step=3)
    finally:
        run.finish()
    (users,) = kept
    (entry,) = users.manifest.entries.values()
    assert (users.type, entry.path) == ("evaluation", "test_per_user.parquet")
    stored = pd.read_parquet(entry.local_path).set_index("user")  # W&B's own copy, to be uploaded
    pd.testing.assert_frame_equal(stored, result.per_user)


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


def test_what_keeps_no_files_says_so(result, tmp_path):
    tensorboard = pytest.importorskip("tensorboardX")
    with tensorboard.SummaryWriter(str(tmp_path)) as writer:
        result.log_to(writer)
        for files in ({"per_user": True}, {"report": True}):
            with pytest.raises(InputError, match="keeps no files"):
                result.log_to(writer, **files)


def test_anything_else_is_refused(result, tmp_path):
    with pytest.raises(InputError, match="unsupported tracker"):
        result.log_to(42)
    mlflow = pytest.importorskip("mlflow")
    with pytest.raises(InputError, match=r"no report .*gone\.html"):
        result.log_to(mlflow, report=tmp_path / "gone.html")
