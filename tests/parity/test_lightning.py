"""Lightning's own Trainer takes EpochEvaluation as a callback: evaluates, logs, stops, checkpoints."""

import numpy as np
import pytest

lightning = pytest.importorskip("lightning")
torch = pytest.importorskip("torch")

from recsys.models import GMF, Pairs  # noqa: E402
from recsys.models.callbacks import EpochEvaluation, hold_out_last  # noqa: E402

pytestmark = pytest.mark.parity


def world():
    rng = np.random.default_rng(0)
    users, items = np.divmod(rng.choice(40 * 60, 600, replace=False), 60)
    return Pairs.of(users, items, n_users=40, n_items=60, order=rng.permutation(600))


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.network = GMF(40, 60, factors=4)

    def forward(self, users, items):
        return self.network(users, items)

    def training_step(self, batch, _):
        users, items = batch
        assert self.training
        return torch.nn.functional.softplus(-self(users, items)).mean()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)


def trainer(tmp_path, callbacks, epochs):
    return lightning.Trainer(
        max_epochs=epochs,
        callbacks=callbacks,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=tmp_path,
    )


def loader(pairs):
    data = torch.utils.data.TensorDataset(torch.as_tensor(pairs.users), torch.as_tensor(pairs.items))
    return torch.utils.data.DataLoader(data, batch_size=64)


def test_it_evaluates_every_epoch_and_logs(tmp_path):
    rest, cases = hold_out_last(world(), negatives=20)
    watch = EpochEvaluation(cases, metric="ndcg@10", metrics=["hit@10"])
    checkpoint = lightning.pytorch.callbacks.ModelCheckpoint(
        tmp_path, monitor="ndcg@10", mode="max", save_top_k=1
    )
    run = trainer(tmp_path, [watch, checkpoint], 3)
    run.fit(Module(), loader(rest))
    assert [epoch for epoch, _ in watch.history] == [1, 2, 3]
    assert float(run.callback_metrics["ndcg@10"]) == pytest.approx(watch.history[-1][1]["ndcg@10"])
    assert float(checkpoint.best_model_score) == pytest.approx(watch.best)
    stored = torch.load(checkpoint.best_model_path, weights_only=True)["callbacks"]
    assert stored[watch.state_key]["best"] == pytest.approx(watch.best)


def test_it_stops_the_trainer(tmp_path):
    rest, cases = hold_out_last(world(), negatives=20)
    # A difference nobody can reach: the first epoch stays the best.
    watch = EpochEvaluation(cases, metric="ndcg@10", patience=2, min_delta=1.0)
    run = trainer(tmp_path, [watch], 50)
    run.fit(Module(), loader(rest))
    assert run.current_epoch == 3
    assert watch.best_epoch == 1


def test_it_goes_on_where_a_checkpoint_was_taken(tmp_path):
    rest, cases = hold_out_last(world(), negatives=20)
    first = EpochEvaluation(cases)
    run = trainer(tmp_path, [first], 2)
    run.fit(Module(), loader(rest))
    run.save_checkpoint(tmp_path / "two.ckpt")
    second = EpochEvaluation(cases)
    trainer(tmp_path, [second], 3).fit(Module(), loader(rest), ckpt_path=tmp_path / "two.ckpt")
    assert [epoch for epoch, _ in second.history] == [1, 2, 3]
    assert second.history[:2] == first.history
