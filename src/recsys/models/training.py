"""One trainer for all networks: binary cross-entropy against negatives that are drawn anew every epoch.

Pairs, negatives and batches live on the model's device and are drawn there by a seeded generator, so an epoch
runs no Python per pair and copies nothing to the device; memory holds one chunk of an epoch at a time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from recsys.errors import InputError
from recsys.models.torch_import import device_of, torch
from recsys.models.training_pairs import Pairs

AfterEpoch = Callable[[int, Any], Any]
Progress = Callable[[int, int], object]

_CHUNK = 1 << 20  # positives whose negatives are drawn at once
_MAX_BITMAP = (
    1 << 28
)  # largest users x items for which known pairs are looked up in a table of one byte per cell
_MAX_ROUNDS = 200  # of redrawing negatives that are known pairs


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
    with _torch_seed(torch_device, seed):
        for number in range(1, epochs + 1):
            began = time.perf_counter()
            on_batch = None
            if progress is not None:
                on_batch = _add_to_progress(progress, (number - 1) * n_examples, epochs * n_examples)
            loss = _train_epoch(model, batches, optimiser, on_batch)
            if not math.isfinite(loss):
                raise InputError(
                    f"the loss of epoch {number} is {loss}.", hint="Use a smaller learning_rate."
                )
            history.epochs.append(Epoch(number, loss, time.perf_counter() - began))
            if after_epoch is not None and after_epoch(number, model):
                history.stopped = True
                break
    history.negatives_left_out = batches.n_left_out
    return history


def _train_epoch(
    model: Any, batches: _Batches, optimiser: Any, on_batch: Callable[[int], object] | None
) -> float:
    """One pass over the pairs; the mean loss."""
    model.train()
    # MPS has no float64.
    sum_device = torch.device("cpu") if batches.device.type == "mps" else batches.device
    total, count = torch.zeros((), dtype=torch.float64, device=sum_device), 0
    for users, items, labels in batches:
        optimiser.zero_grad(set_to_none=True)
        logits = model(users, items)
        loss: Any = torch.nn.functional.binary_cross_entropy_with_logits(logits.reshape(-1), labels)
        loss.backward()
        optimiser.step()
        total += loss.detach().to(total) * len(labels)
        count += len(labels)
        if on_batch is not None:
            on_batch(count)
    return float(total) / count


def _add_to_progress(progress: Progress, done: int, total: int) -> Callable[[int], object]:
    """Report the examples of this epoch on top of those of the epochs before."""
    return lambda count: progress(min(done + count, total), total)


@contextmanager
def _torch_seed(device: torch.device, seed: int) -> Iterator[None]:
    """Seed torch's global generators, which dropout uses, and restore their state afterwards."""
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        yield


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
        users, items = self.users[chunk], self.items[chunk]
        negative_users = users.repeat(self.negatives)
        negative_items, complete = self._draw_negatives(negative_users)
        if not complete:
            is_negative = ~self._is_known_pair(negative_users, negative_items)
            negative_users, negative_items = negative_users[is_negative], negative_items[is_negative]
        labels = torch.zeros(len(users) + len(negative_users), device=self.device)
        labels[: len(users)] = 1.0
        return torch.cat([users, negative_users]), torch.cat([items, negative_items]), labels

    def _draw_negatives(self, users: torch.Tensor) -> tuple[torch.Tensor, bool]:
        """One negative for each entry, redrawn where it is a known pair; and whether all succeeded."""
        items = torch.randint(self.n_items, (len(users),), generator=self.generator, device=self.device)
        again = self._is_known_pair(users, items).nonzero()[:, 0]
        for _ in range(_MAX_ROUNDS):
            if not len(again):
                return items, True
            fresh = torch.randint(self.n_items, (len(again),), generator=self.generator, device=self.device)
            items[again] = fresh
            again = again[self._is_known_pair(users[again], fresh)]
        self.n_left_out += len(again)
        return items, not len(again)

    def _is_known_pair(self, users: torch.Tensor, items: torch.Tensor) -> Any:
        keys = users * self.n_items + items
        if self.seen is not None:
            return self.seen[keys]
        at = torch.searchsorted(self.keys, keys).clamp_(max=len(self.keys) - 1)
        return self.keys[at] == keys
