"""A sequence model like SASRec, through recsys.Scores: a block of users is scored when it is ranked.

    python examples/recipes/sequence_model.py      # needs torch

No matrix of users x items is ever made: `Scores` asks the function for as many users as fit into a block.
"""

import numpy as np
import pandas as pd
import torch
from torch import nn

import recsys

N_USERS, N_ITEMS, LENGTH, WIDTH = 300, 100, 20, 32


class Transformer(nn.Module):
    """Scores of all items after each place of a history."""

    def __init__(self) -> None:
        super().__init__()
        self.items = nn.Parameter(0.1 * torch.randn(N_ITEMS, WIDTH))
        self.places = nn.Parameter(0.1 * torch.randn(LENGTH, WIDTH))
        self.layer = nn.TransformerEncoderLayer(WIDTH, 2, WIDTH, dropout=0, batch_first=True, norm_first=True)

    def forward(self, histories: torch.Tensor) -> torch.Tensor:
        causal = nn.Transformer.generate_square_subsequent_mask(LENGTH)
        return self.layer(self.items[histories] + self.places, src_mask=causal, is_causal=True) @ self.items.T


def main() -> recsys.Evaluation:
    torch.manual_seed(0)
    # What comes next depends on what came last: it is one to three items further on.
    steps = np.random.default_rng(0).integers(1, 4, (N_USERS, LENGTH + 2))
    taken = (np.arange(N_USERS)[:, None] + steps.cumsum(axis=1)) % N_ITEMS
    user, time = np.indices(taken.shape)
    events = pd.DataFrame({"user_id": user.ravel(), "item_id": taken.ravel(), "timestamp": time.ravel()})
    split = recsys.split(events, "leave_last")  # the last event of each user is the test

    model, sequences = Transformer(), torch.tensor(taken[:, :-1])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(50):
        loss = nn.functional.cross_entropy(model(sequences[:, :-1]).mT, sequences[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    def score(users: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return model(sequences[users, 1:])[:, -1].numpy()

    ids = {"user_ids": range(N_USERS), "item_ids": range(N_ITEMS)}
    scores = recsys.Scores(score, n_users=N_USERS, n_items=N_ITEMS, **ids)
    return recsys.evaluate(scores, split.test, ["hit@1", "hit@5", "ndcg@10"], seen=split.train)


if __name__ == "__main__":
    print(main())
