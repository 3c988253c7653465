"""Training networks: on pairs, against negatives that are drawn anew every epoch; or on ratings.

`train` learns which items are taken, by binary cross-entropy. Pairs, negatives and batches are on the model's
device and are drawn there by a seeded generator, so an epoch runs no Python per pair and copies nothing to
the device; memory holds one chunk of an epoch at a time. `fit_ratings` learns the rating itself, by squared
error around the training mean, and stops early on held-out training rows.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypedDict

import numpy as np

from recsys.errors import InputError
from recsys.models.implicit_feedback import Pairs
from recsys.models.torch_import import device_of, torch, torch_seed
from recsys.records.arrays import Array, Float

AfterEpoch = Callable[[int, Any], Any]
Progress = Callable[[int, int], object]

_CHUNK = 1 << 20  # positives whose negatives are drawn at once
_MAX_BITMAP = 1 << 28  # largest users x items whose known pairs are in a table of one byte per cell
_MAX_ROUNDS = 200  # of redrawing negatives that are known pairs
_TUNING_SHARE = 0.1  # of the ratings, which decide when to stop
_BLOCK = 1 << 18  # ratings predicted at once


class TrainKeywords(TypedDict, total=False):
    """The keywords of train that `callbacks.fit` hands on."""

    negatives: int
    batch: int
    learning_rate: float
    weight_decay: float
    optimiser: Any
    progress: Progress | None


@dataclass(frozen=True)
class Epoch:
    """The loss and the duration of one pass over the pairs."""

    number: int
    loss: float
    seconds: float


@dataclass
class History:
    """The epochs of one training, and how many negatives were left out."""

    device: str
    epochs: list[Epoch] = field(default_factory=list)
    stopped: bool = False
    negatives_left_out: int = 0

    def __repr__(self) -> str:
        last = f", loss {self.epochs[-1].loss:.4f}" if self.epochs else ""
        return f"History({len(self.epochs)} epochs on {self.device}{last})"


def train(
    model: Any,
    pairs: Pairs,
    *,
    epochs: int = 20,
    negatives: int = 4,
    batch: int = 2048,
    learning_rate: float = 1e-3,
    weight_decay: float = 0.0,
    optimiser: Any = None,
    seed: int = 0,
    device: Any = "auto",
    after_epoch: AfterEpoch | None = None,
    progress: Progress | None = None,
) -> History:
    """Train a network `(users, items) -> logits` to tell pairs from sampled negatives.

    Args:
        model: any of `recsys.models`, or a torch module of the same form; it is moved to `device`.
        pairs: what users had; their other items are the negatives.
        epochs: the largest number of passes over the pairs.
        negatives: how many are drawn uniformly for each pair, never from the user's own items.
        batch: the number of pairs and negatives in one step.
        learning_rate: of Adam.
        weight_decay: of Adam.
        optimiser: a torch optimiser of the model's parameters, instead of Adam.
        seed: the same seed gives the same weights on the same device and versions.
        device: "cpu", "cuda", "mps" or "auto" for the best there is.
        after_epoch: called with (epoch number, model); True stops. See `recsys.callbacks`.
        progress: called with (examples done, examples in all).

    >>> from recsys.models import GMF
    >>> history = train(GMF(2, 4), Pairs.of([0, 1, 1], [0, 1, 2], n_items=4), epochs=2, device="cpu")
    >>> len(history.epochs)
    2
    """
    if min(epochs, batch) < 1 or negatives < 0:
        raise InputError(
            f"epochs={epochs}, batch={batch}, negatives={negatives} make no training.",
            hint="Use at least one epoch, a batch of at least 1 and 0 or more negatives.",
        )
    torch_device = device_of(device)
    model.to(torch_device)
    batches = _Batches(pairs, negatives, batch, torch_device, seed)
    if optimiser is None:
        optimiser = torch.optim.Adam(
            model.parameters(), lr=learning_rate, weight_decay=weight_decay, fused=torch_device.type == "cuda"
        )
    history = History(str(torch_device))
    n_examples = len(pairs) * (1 + negatives)
    # MPS has no float64.
    sum_device = torch.device("cpu") if torch_device.type == "mps" else torch_device
    with torch_seed(seed, torch_device):
        for number in range(1, epochs + 1):
            began = time.perf_counter()
            model.train()
            total, count = torch.zeros((), dtype=torch.float64, device=sum_device), 0
            for users, items, labels in batches:
                optimiser.zero_grad(set_to_none=True)
                logits = model(users, items)
                loss: Any = torch.nn.functional.binary_cross_entropy_with_logits(logits.reshape(-1), labels)
                loss.backward()
                optimiser.step()
                total += loss.detach().to(total) * len(labels)
                count += len(labels)
                if progress is not None:
                    done = (number - 1) * n_examples + count
                    progress(min(done, epochs * n_examples), epochs * n_examples)
            mean_loss = float(total) / count
            if not math.isfinite(mean_loss):
                raise InputError(
                    f"the loss of epoch {number} is {mean_loss}.", hint="Use a smaller learning_rate."
                )
            history.epochs.append(Epoch(number, mean_loss, time.perf_counter() - began))
            if after_epoch is not None and after_epoch(number, model):
                history.stopped = True
                break
    history.negatives_left_out = batches.n_left_out
    return history


class _Batches:
    """Each iteration is one epoch of (users, items, labels), in a new order and with new negatives."""

    def __init__(self, pairs: Pairs, negatives: int, batch: int, device: torch.device, seed: int) -> None:
        self.users = torch.as_tensor(pairs.users, device=device)
        self.items = torch.as_tensor(pairs.items, device=device)
        self.n_items, self.negatives, self.batch, self.device = pairs.n_items, negatives, batch, device
        self.generator = torch.Generator(device=device).manual_seed(seed)
        self.n_left_out = 0
        keys: Any = self.users * self.n_items + self.items
        cells = pairs.n_users * pairs.n_items
        self.seen: torch.Tensor | None = None
        if cells <= _MAX_BITMAP:
            self.seen = torch.zeros(cells, dtype=torch.bool, device=device)
            self.seen[keys] = True
        else:
            self.keys = keys.unique()

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
        order: Any = torch.randperm(len(self.users), generator=self.generator, device=self.device)
        for chunk in order.split(_CHUNK):
            users, items, labels = self._with_negatives(chunk)
            shuffled: Any = torch.randperm(len(users), generator=self.generator, device=self.device)
            for rows in shuffled.split(self.batch):
                yield users[rows], items[rows], labels[rows]

    def _with_negatives(self, chunk: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Some pairs and their negatives; a negative that is a known pair is redrawn, at last left out."""
        users, items = self.users[chunk], self.items[chunk]
        negative_users = users.repeat(self.negatives)
        negative_items = self._random_items(len(negative_users))
        again = self._is_known_pair(negative_users, negative_items).nonzero()[:, 0]
        for _ in range(_MAX_ROUNDS):
            if not len(again):
                break
            fresh = self._random_items(len(again))
            negative_items[again] = fresh
            again = again[self._is_known_pair(negative_users[again], fresh)]
        if len(again):
            self.n_left_out += len(again)
            is_negative = ~self._is_known_pair(negative_users, negative_items)
            negative_users, negative_items = negative_users[is_negative], negative_items[is_negative]
        labels = torch.zeros(len(users) + len(negative_users), device=self.device)
        labels[: len(users)] = 1.0
        return torch.cat([users, negative_users]), torch.cat([items, negative_items]), labels

    def _random_items(self, n: int) -> torch.Tensor:
        return torch.randint(self.n_items, (n,), generator=self.generator, device=self.device)

    def _is_known_pair(self, users: torch.Tensor, items: torch.Tensor) -> Any:
        keys = users * self.n_items + items
        if self.seen is not None:
            return self.seen[keys]
        at = torch.searchsorted(self.keys, keys).clamp_(max=len(self.keys) - 1)
        return self.keys[at] == keys


@dataclass(frozen=True)
class RatingModel:
    """A trained network and the mean rating it was trained around."""

    network: Any
    mean: float
    epochs: int

    def predict(self, users: Array, items: Array) -> Float:
        """Return the predicted rating of each pair."""
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
    tuning, training = (torch.as_tensor(part, device=torch_device) for part in np.split(order, [n_tuning]))
    training = training if len(training) else tuning

    def squared_error(rows: torch.Tensor) -> Any:
        predicted = network(columns[0][rows], columns[1][rows]).reshape(-1)
        return ((predicted - target[rows]) ** 2).mean()

    network.to(torch_device)
    optimiser = torch.optim.Adam(network.parameters(), lr=learning_rate, weight_decay=weight_decay)
    generator = torch.Generator(device=torch_device).manual_seed(seed)
    best, best_state, best_epoch = float("inf"), copy.deepcopy(network.state_dict()), 0
    for epoch in range(1, epochs + 1):
        network.train()
        shuffled: Any = torch.randperm(len(training), generator=generator, device=torch_device)
        for rows in training[shuffled].split(batch):  # type: ignore[no-untyped-call, unused-ignore]
            optimiser.zero_grad(set_to_none=True)
            squared_error(rows).backward()
            optimiser.step()
        network.eval()
        with torch.no_grad():
            error = float(squared_error(tuning))
        if error < best:
            best, best_state, best_epoch = error, copy.deepcopy(network.state_dict()), epoch
        elif epoch - best_epoch >= patience:
            break
    network.load_state_dict(best_state)
    return RatingModel(network.eval(), mean, best_epoch)
