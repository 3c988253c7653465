"""Small worlds for the tests of the report, with whole-number ids so that only the report is tested."""

import numpy as np
import pandas as pd

import recsys

HOSTILE = (
    "<script>window.owned=1</script>",
    "</script><script>window.owned=1</script>",
    '"><img src=x onerror="window.owned=1">',
    "'><svg onload=window.owned=1>",
    "javascript:window.owned=1",
    "{{ 7*7 }}{% raw %}",
    "</style><script>window.owned=1</script>",
    "<!--<script>window.owned=1//-->",
    "datum.x + signal('y') ]]>",
    "\u2028window.owned=1\u2029",
    "${window.owned=1}",
    "]]><iframe srcdoc='<script>parent.owned=1</script>'>",
    "&lt;script&gt;window.owned=1&lt;/script&gt;",
    "<a href='javascript:window.owned=1'>x</a>",
    "<math><mtext></mtext><mglyph><style><img src=x onerror=window.owned=1></style></mglyph></math>",
    "constructor",
    "__proto__",
    "<meta http-equiv=refresh content='0;url=https://example.invalid'>",
    "<link rel=stylesheet href=https://example.invalid/x.css>",
    "<base href=https://example.invalid/>",
)


def world(n_users=120, n_items=60, seed=0, n_models=3):
    """(lists by model, truth, train, items): later models are better, the first is the baseline."""
    rng = np.random.default_rng(seed)
    users = np.arange(n_users)
    weight = 1.0 / np.arange(2, n_items + 2)
    weight /= weight.sum()
    truth = {
        int(u): set(rng.choice(n_items, rng.integers(1, 6), replace=False, p=weight).tolist()) for u in users
    }
    had = {int(u): rng.choice(n_items, rng.integers(0, 9), replace=False, p=weight).tolist() for u in users}
    train = pd.DataFrame([(u, i) for u, items in had.items() for i in items], columns=["user_id", "item_id"])
    lists = {}
    for m in range(n_models):
        by_user = {}
        for u, relevant in truth.items():
            hits = [i for i in sorted(relevant) if rng.random() < 0.15 + 0.3 * m]
            rest = [int(i) for i in rng.permutation(n_items) if i not in hits][: 10 - len(hits)]
            by_user[u] = rng.permutation(hits + rest).tolist()
        lists[f"model {m}"] = by_user
    items = pd.DataFrame({
        "item_id": np.arange(n_items),
        "title": [f"Item number {i}" for i in range(n_items)],
        "category": [f"kind {i % 4}" for i in range(n_items)],
    })  # fmt: skip
    return lists, truth, train, items


def evaluations(lists, truth, metrics=("ndcg", "recall", "mrr"), k=(10, 1, 5), **options):
    return {n: recsys.evaluate(own, truth, list(metrics), k=list(k), **options) for n, own in lists.items()}
