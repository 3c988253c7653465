"""Teaching a network to predict ratings: squared error, stopped where held-out rows of the training side say.

The trainer beside this one tells taken items from others; here the number itself is the target, so a
prediction is the training mean plus what the network says.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from recsys.errors import InputError
from recsys.models.torch_import import device_of, torch
from recsys.types import Array, Float

_TUNING_SHARE = 0.1
_BLOCK = 1 << 18


@dataclass(frozen=True)
class RatingModel:
    """A trained network and the mean it was trained around."""

    network: Any
    mean: float
    epochs: int

    def predict(self, users: Array, items: Array) -> Float:
        """The predicted rating of each pair."""
        where = next(self.network.parameters()).device
        parts = []
        with torch.no_grad():
            for start in range(0, max(len(users), 1), _BLOCK):
                some = slice(start, start + _BLOCK)
                pair = (torch.as_tensor(np.array(side[some]), device=where) for side in (users, items))
                parts.append(self.network(*pair).reshape(-1).cpu().numpy().astype(np.float64))
        return self.mean + np.concatenate(parts)


def fit_ratings(
    network: Any,
    users: Array,
    items: Array,
    ratings: Array,
    *,
    epochs: int = 60,
    batch: int = 4096,
    learning_rate: float = 5e-3,
    weight_decay: float = 0.0,
    patience: int = 4,
    seed: int = 0,
    device: Any = "cpu",
) -> RatingModel:
    """Fit `(users, items) -> number` to ratings; a tenth of the rows only decides when to stop.

    >>> from recsys.models import BiasedMF
    >>> made = fit_ratings(BiasedMF(2, 2, factors=2), [0, 1] * 20, [0, 1] * 20, [5.0, 1.0] * 20)
    >>> first, second = made.predict([0, 1], [0, 1])
    >>> bool(first > 3 > second)
    True
    """
    numbers = np.asarray(ratings, dtype=np.float64)
    if not len(numbers) or not np.isfinite(numbers).all():
        raise InputError("ratings are missing or not finite.", hint="Drop rows without a rating.")
    where = device_of(device)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(numbers))
    n_held = max(1, int(_TUNING_SHARE * len(numbers)))
    mean = float(numbers[order[n_held:]].mean()) if len(numbers) > 1 else float(numbers[0])
    columns = [torch.as_tensor(np.array(side), device=where) for side in (users, items)]
    target = torch.as_tensor(numbers - mean, dtype=torch.float32, device=where)
    held, rest = (torch.as_tensor(part, device=where) for part in (order[:n_held], order[n_held:]))
    rest = held if not len(rest) else rest
    network.to(where)
    optimiser = torch.optim.Adam(network.parameters(), lr=learning_rate, weight_decay=weight_decay)
    draws = torch.Generator(device=where).manual_seed(seed)
    best, best_state, best_epoch = float("inf"), copy.deepcopy(network.state_dict()), 0
    for epoch in range(1, epochs + 1):
        network.train()
        for at in rest[torch.randperm(len(rest), generator=draws, device=where)].split(batch):  # type: ignore[no-untyped-call, unused-ignore]
            optimiser.zero_grad(set_to_none=True)
            missed = network(columns[0][at], columns[1][at]).reshape(-1) - target[at]
            (missed**2).mean().backward()
            optimiser.step()
        network.eval()
        with torch.no_grad():
            error = float(
                ((network(columns[0][held], columns[1][held]).reshape(-1) - target[held]) ** 2).mean()
            )
        if error < best:
            best, best_state, best_epoch = error, copy.deepcopy(network.state_dict()), epoch
        elif epoch - best_epoch >= patience:
            break
    network.load_state_dict(best_state)
    return RatingModel(network.eval(), mean, best_epoch)
