"""A LightGBM ranker, through a table: candidates of a first stage are ranked anew.

    python examples/recipes/lightgbm_ranker.py      # needs lightgbm

Lists are any table with user, item and score; the better model has to beat the first stage alone.
"""

import lightgbm
import pandas as pd

import recsys
from recsys.splits.datasets.demo_world import demo_world

PAIR = ["user_id", "item_id"]
FEATURES = ["popularity", "affinity"]


def candidates(history: pd.DataFrame, items: pd.DataFrame, n: int = 200) -> pd.DataFrame:
    """The n most popular items without those a user has, and what the ranker may look at."""
    taken = history.merge(items[["item_id", "category"]], on="item_id")
    popularity = taken["item_id"].value_counts().rename("popularity").head(n)
    affinity = taken.groupby("user_id")["category"].value_counts(normalize=True).rename("affinity")
    pairs = pd.MultiIndex.from_product([taken["user_id"].unique(), popularity.index], names=PAIR)
    rows = pairs.difference(pd.MultiIndex.from_frame(taken[PAIR])).to_frame(index=False)
    rows = rows.merge(items[["item_id", "category"]], on="item_id").join(popularity, on="item_id")
    return rows.join(affinity, on=["user_id", "category"]).fillna({"affinity": 0.0}).sort_values(PAIR)


def main() -> recsys.Comparison:
    world = demo_world()
    # The ranker learns from the end of the training data; the test is not touched.
    inner = recsys.split(world.train, "leave_last", n=5)
    rows = candidates(inner.train, world.items)
    was_taken = pd.MultiIndex.from_frame(rows[PAIR]).isin(pd.MultiIndex.from_frame(inner.test[PAIR]))
    ranker = lightgbm.LGBMRanker(n_estimators=50, num_leaves=15, random_state=0, n_jobs=1, verbose=-1)
    ranker.fit(rows[FEATURES], was_taken.astype(int), group=rows.groupby("user_id").size())

    rows = candidates(world.train, world.items)
    scores = {"popularity": rows["popularity"], "ranker": ranker.predict(rows[FEATURES])}
    results = {
        name: recsys.evaluate(
            rows[PAIR].assign(score=score),
            world.test[PAIR],
            ["ndcg@10", "recall@10"],
            conventions={"ties": "expected"},  # trees give many candidates the same score
        )
        for name, score in scores.items()
    }
    return recsys.compare(results, baseline="popularity")


if __name__ == "__main__":
    print(main())
