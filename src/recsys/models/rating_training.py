"""Training a network to predict ratings: squared error, with early stopping on held-out training rows.

`recsys.models.train` learns which items are taken; here the rating itself is the target, so a prediction is
the training mean plus the output of the network.
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
    """A trained network and the mean rating it was trained around."""

    network: Any
    mean: float
    epochs: int

    def predict(self, users: Array, items: Array) -> Float:
        """The predicted rating of each pair."""
        device = next(self.network.parameters()).device
        parts = []
        with torch.no_grad():
            for start in range(0, max(len(users), 1), _BLOCK):
                block = slice(start, start + _BLOCK)
                pair = (torch.as_tensor(np.array(side[block]), device=device) for side in (users, items))
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
    """Fit a network `(users, items) -> number` to ratings; a tenth of the rows decides when to stop.

    >>> from recsys.models import BiasedMF
    >>> model = fit_ratings(BiasedMF(2, 2, factors=2), [0, 1] * 20, [0, 1] * 20, [5.0, 1.0] * 20)
    >>> first, second = model.predict([0, 1], [0, 1])
    >>> bool(first > 3 > second)
    True
    """
    values = np.asarray(ratings, dtype=np.float64)
    if not len(values) or not np.isfinite(values).all():
        raise InputError("ratings are missing or not finite.", hint="Drop rows without a rating.")
    torch_device = device_of(device)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(values))
    n_tuning = max(1, int(_TUNING_SHARE * len(values)))
    mean = float(values[order[n_tuning:]].mean()) if len(values) > 1 else float(values[0])
    columns = [torch.as_tensor(np.array(side), device=torch_device) for side in (users, items)]
    target = torch.as_tensor(values - mean, dtype=torch.float32, device=torch_device)
    tuning, training = (
        torch.as_tensor(part, device=torch_device) for part in (order[:n_tuning], order[n_tuning:])
    )
    training = tuning if not len(training) else training
    network.to(torch_device)
    optimiser = torch.optim.Adam(network.parameters(), lr=learning_rate, weight_decay=weight_decay)
    generator = torch.Generator(device=torch_device).manual_seed(seed)
    best, best_state, best_epoch = float("inf"), copy.deepcopy(network.state_dict()), 0
    for epoch in range(1, epochs + 1):
        network.train()
        for rows in training[torch.randperm(len(training), generator=generator, device=torch_device)].split(
            batch
        ):  # type: ignore[no-untyped-call, unused-ignore]
            optimiser.zero_grad(set_to_none=True)
            residual = network(columns[0][rows], columns[1][rows]).reshape(-1) - target[rows]
            (residual**2).mean().backward()
            optimiser.step()
        network.eval()
        with torch.no_grad():
            error = float(
                ((network(columns[0][tuning], columns[1][tuning]).reshape(-1) - target[tuning]) ** 2).mean()
            )
        if error < best:
            best, best_state, best_epoch = error, copy.deepcopy(network.state_dict()), epoch
        elif epoch - best_epoch >= patience:
            break
    network.load_state_dict(best_state)
    return RatingModel(network.eval(), mean, best_epoch)
