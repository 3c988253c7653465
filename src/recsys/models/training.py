"""One trainer for all networks: binary cross-entropy against negatives that are drawn anew every epoch.

Pairs, negatives and batches live on the model's device and are drawn there by its own seeded generator, so
an epoch has no Python per pair and no copy to the device; memory holds one chunk of an epoch at a time.
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
_BITMAP = 1 << 28  # cells of users x items up to which what is known is looked up in one byte each
_ROUNDS = 200  # of drawing again what turned out to be known


@dataclass(frozen=True)
class Epoch:
    """What one pass over the pairs came to."""

    number: int
    loss: float
    seconds: float


@dataclass
class History:
    """The epochs of one training, and what was left out of it."""

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
    """Teach a network `(users, items) -> logits` to tell pairs from drawn negatives.

    Args:
        model: any of `recsys.models`, or a torch module of the same form; it ends on `device`.
        pairs: what users had; their other items are the negatives.
        epochs: passes over the pairs, at most.
        negatives: drawn uniformly for each pair, never one of the user's own.
        batch: pairs and negatives in one step.
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
    there = device_of(device)
    model.to(there)
    feed = _Feed(pairs, negatives, batch, there, seed)
    if optimiser is None:
        optimiser = torch.optim.Adam(
            model.parameters(), lr=learning_rate, weight_decay=weight_decay, fused=there.type == "cuda"
        )
    history = History(str(there))
    whole = len(pairs) * (1 + negatives)
    with _own_randomness(there, seed):
        for number in range(1, epochs + 1):
            began = time.perf_counter()
            told = None if progress is None else _further(progress, (number - 1) * whole, epochs * whole)
            loss = _epoch(model, feed, optimiser, told)
            if not math.isfinite(loss):
                raise InputError(
                    f"the loss of epoch {number} is {loss}.", hint="Use a smaller learning_rate."
                )
            history.epochs.append(Epoch(number, loss, time.perf_counter() - began))
            if after_epoch is not None and after_epoch(number, model):
                history.stopped = True
                break
    history.negatives_left_out = feed.left_out
    return history


def _epoch(model: Any, feed: _Feed, optimiser: Any, told: Callable[[int], object] | None) -> float:
    """One pass over the pairs; the mean loss."""
    model.train()
    total, count = torch.zeros((), dtype=torch.float64, device=_wide(feed.device)), 0
    for users, items, labels in feed:
        optimiser.zero_grad(set_to_none=True)
        logits = model(users, items)
        loss: Any = torch.nn.functional.binary_cross_entropy_with_logits(logits.reshape(-1), labels)
        loss.backward()
        optimiser.step()
        total += loss.detach().to(total) * len(labels)
        count += len(labels)
        if told is not None:
            told(count)
    return float(total) / count


def _further(progress: Progress, done: int, whole: int) -> Callable[[int], object]:
    return lambda count: progress(min(done + count, whole), whole)


@contextmanager
def _own_randomness(device: torch.device, seed: int) -> Iterator[None]:
    """Dropout draws from torch's global generators: borrowed for the training, and put back."""
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        yield


def _wide(device: torch.device) -> torch.device:
    return torch.device("cpu") if device.type == "mps" else device  # MPS has no float64


class _Feed:
    """Batches of (users, items, labels) of one epoch, in a new order with new negatives each time."""

    def __init__(self, pairs: Pairs, negatives: int, batch: int, device: torch.device, seed: int) -> None:
        self.users = torch.as_tensor(pairs.users, device=device)
        self.items = torch.as_tensor(pairs.items, device=device)
        self.n_items, self.negatives, self.batch, self.device = pairs.n_items, negatives, batch, device
        self.generator = torch.Generator(device=device).manual_seed(seed)
        self.left_out = 0
        keys: Any = self.users * self.n_items + self.items
        cells = pairs.n_users * pairs.n_items
        self.seen: torch.Tensor | None = None
        if cells <= _BITMAP:
            self.seen = torch.zeros(cells, dtype=torch.bool, device=device)
            self.seen[keys] = True
        else:
            self.keys = keys.unique()

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
        order: Any = torch.randperm(len(self.users), generator=self.generator, device=self.device)
        for chunk in order.split(_CHUNK):
            users, items, labels = self._chunk(chunk)
            mixed: Any = torch.randperm(len(users), generator=self.generator, device=self.device)
            for at in mixed.split(self.batch):
                yield users[at], items[at], labels[at]

    def _chunk(self, chunk: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        users, items = self.users[chunk], self.items[chunk]
        against = users.repeat(self.negatives)
        drawn, usable = self._drawn(against)
        if not usable:
            kept = ~self._known(against, drawn)
            against, drawn = against[kept], drawn[kept]
        labels = torch.zeros(len(users) + len(against), device=self.device)
        labels[: len(users)] = 1.0
        return torch.cat([users, against]), torch.cat([items, drawn]), labels

    def _drawn(self, users: torch.Tensor) -> tuple[torch.Tensor, bool]:
        """One unknown item for each entry, by drawing again what is known; whether all succeeded."""
        drawn = torch.randint(self.n_items, (len(users),), generator=self.generator, device=self.device)
        again = self._known(users, drawn).nonzero()[:, 0]
        for _ in range(_ROUNDS):
            if not len(again):
                return drawn, True
            fresh = torch.randint(self.n_items, (len(again),), generator=self.generator, device=self.device)
            drawn[again] = fresh
            again = again[self._known(users[again], fresh)]
        self.left_out += len(again)
        return drawn, not len(again)

    def _known(self, users: torch.Tensor, items: torch.Tensor) -> Any:
        keys = users * self.n_items + items
        if self.seen is not None:
            return self.seen[keys]
        at = torch.searchsorted(self.keys, keys).clamp_(max=len(self.keys) - 1)
        return self.keys[at] == keys
