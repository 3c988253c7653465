"""RecBole end to end, through recsys.Scores: it splits and trains, its scores are evaluated here.

    python examples/recipes/recbole_end_to_end.py      # needs recbole

Under the preset `recbole` the numbers are RecBole's own.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

import recsys
from recsys.splits.datasets.demo_world import demo_world

# RecBole 1.2.1 uses names that NumPy 2 no longer has.
for name, now in {"float_": np.float64, "complex_": np.complex128, "unicode_": np.str_}.items():
    setattr(np, name, now)

PAIR = ["user_id", "item_id"]
SETTINGS = {
    "load_col": {"inter": PAIR}, "metrics": ["NDCG", "Recall", "MRR"], "topk": [10],
    "valid_metric": "NDCG@10", "metric_decimal_place": 12, "epochs": 5, "train_batch_size": 1024,
    "device": "cpu",
}  # fmt: skip


def main() -> tuple[recsys.Evaluation, dict[str, float]]:
    from recbole.config import Config
    from recbole.data import create_dataset, data_preparation
    from recbole.model.general_recommender import BPR
    from recbole.trainer import Trainer
    from recbole.utils.case_study import full_sort_scores

    with TemporaryDirectory() as folder:
        path = Path(folder, "demo", "demo.inter")
        path.parent.mkdir()
        events = demo_world().events[PAIR]
        events.to_csv(path, sep="\t", index=False, header=["user_id:token", "item_id:token"])
        config = Config("BPR", "demo", config_dict=SETTINGS | {"data_path": folder, "checkpoint_dir": folder})
        dataset = create_dataset(config)
        train, _, test = data_preparation(config, dataset)
        model = BPR(config, train.dataset)
        trainer = Trainer(config, model)
        trainer.fit(train, saved=False)
        theirs = trainer.evaluate(test, load_best_model=False)

    # Number 0 is padding. Items of training and validation have the score -inf, which is no candidate here.
    scores = full_sort_scores(np.arange(1, dataset.user_num), model, test, device="cpu")[:, 1:]
    user_ids, item_ids = (dataset.field2id_token[field][1:] for field in PAIR)
    source = recsys.Scores(scores, user_ids=user_ids, item_ids=item_ids)
    truth = pd.DataFrame({f: dataset.id2token(f, test.dataset.inter_feat[f].numpy()) for f in PAIR})
    ours = recsys.evaluate(source, truth, ["ndcg@10", "recall@10", "mrr@10"], conventions="recbole")
    return ours, theirs


if __name__ == "__main__":
    print(*main(), sep="\n\n")
