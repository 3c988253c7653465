"""Imports PyTorch, or says how to install it; its devices and its seeds.

The only module of this package that imports torch, so that the message is the same wherever it is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from recsys.errors import InputError, needs_extra

with needs_extra("torch", "torch", "Training and running neural models"):
    import torch

__all__ = ["device_of", "torch", "torch_seed"]


def device_of(name: Any) -> torch.device:
    """Return the device of this name, after checking that it works; "auto" is the best one there is.

    >>> device_of("cpu")
    device(type='cpu')
    """
    if name == "auto":
        best = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
        return torch.device(best)
    try:
        device = torch.device(name)
        # A sum shows that the device holds values: "meta" has a name and no memory.
        torch.ones(2, device=device).sum().item()
    except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
        others = {"cuda": torch.cuda, "mps": torch.backends.mps}
        available_devices = ["cpu", *(kind for kind, module in others.items() if module.is_available())]
        raise InputError(
            f"device={name!r} cannot be used here: {str(error).splitlines()[0]}",
            hint=f"This machine has {', '.join(available_devices)}.",
        ) from error
    return device


@contextmanager
def torch_seed(seed: int, device: torch.device | None = None) -> Iterator[None]:
    """Seed torch's global generators, which layers and dropout use, and restore their state afterwards."""
    with torch.random.fork_rng(devices=[device] if device is not None and device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield
