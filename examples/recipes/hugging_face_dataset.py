"""A Hugging Face dataset, through Arrow: split, recommend and evaluate without writing a file.

    python examples/recipes/hugging_face_dataset.py      # needs datasets

Where the data are on the hub, `datasets.load_dataset(...)` stands in place of `Dataset.from_pandas`.
"""

from datasets import Dataset

import recsys
from recsys.models import baselines
from recsys.splits.datasets.demo_world import demo_world


def main() -> recsys.Evaluation:
    events = Dataset.from_pandas(demo_world().events, preserve_index=False).remove_columns("rating")
    split = recsys.split(events.with_format("arrow")[:], "leave_last", n=5)
    counts = baselines.training_counts(split.train)
    model = baselines.popularity(counts, users=events.unique("user_id"))
    lists = recsys.recommend(model, 20, seen=split.train)
    # What a model recommended may be kept as a dataset, too.
    kept = Dataset.from_pandas(lists.to_frame(), preserve_index=False)
    return recsys.evaluate(kept.with_format("arrow")[:], split.test, ["ndcg@10", "recall@10"])


if __name__ == "__main__":
    print(main())
