"""A two-tower model, through recsys.Factors: the whole catalogue is ranked exactly.

    python examples/recipes/two_tower.py      # needs torch

What the towers give for every user and item is all it takes, and a bias of the items where there is one.
"""

import numpy as np
import pandas as pd
import torch
from torch import nn

import recsys
from recsys.splits.datasets.demo_world import demo_world


def tower(n_inputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(n_inputs, 64), nn.ReLU(), nn.Linear(64, 16))


def main() -> recsys.Evaluation:
    torch.manual_seed(0)
    world = demo_world()
    user_ids, item_ids = np.unique(world.train["user_id"]), world.items["item_id"]
    user = torch.tensor(pd.Index(user_ids).get_indexer(world.train["user_id"]))
    item = torch.tensor(pd.Index(item_ids).get_indexer(world.train["item_id"]))

    # An item is the embedding of its text; a user is the mean of what they took.
    of_items = torch.tensor(world.embeddings)
    of_users = torch.zeros(len(user_ids), of_items.shape[1]).index_add(0, user, of_items[item])
    of_users = nn.functional.normalize(of_users)
    users, items = tower(of_users.shape[1]), tower(of_items.shape[1])
    bias = nn.Parameter(torch.zeros(len(item_ids)))
    optimizer = torch.optim.Adam([*users.parameters(), *items.parameters(), bias], lr=0.01)
    for _ in range(100):
        batch = torch.randint(len(user), (1024,))
        logits = users(of_users[user[batch]]) @ items(of_items).T + bias
        loss = nn.functional.cross_entropy(logits, item[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    with torch.no_grad():
        factors = recsys.Factors(
            users(of_users), items(of_items), item_bias=bias, user_ids=user_ids, item_ids=item_ids
        )
    truth = world.test[["user_id", "item_id"]]
    return recsys.evaluate(factors, truth, ["ndcg@10", "recall@10", "coverage@10"], seen=world.train)


if __name__ == "__main__":
    print(main())
