"""PyTorch, or the line that installs it; and which device a name means.

The one place of this package that imports torch, so that its absence is told in the same words everywhere.
"""

from __future__ import annotations

from typing import Any

from recsys.errors import InputError, MissingExtraError

try:
    import torch
except ImportError as error:
    raise MissingExtraError("torch", "torch", "Training and running neural models") from error

__all__ = ["device_of", "torch"]


def device_of(name: Any) -> torch.device:
    """The device of this name, seen to be there.

    >>> device_of("cpu")
    device(type='cpu')
    """
    if name == "auto":
        best = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
        return torch.device(best)
    try:
        device = torch.device(name)
        # Adding two numbers up asks more of a device than its name: meta, for one, holds no values.
        torch.ones(2, device=device).sum().item()
    except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
        present = ["cpu"]
        present += ["cuda"] if torch.cuda.is_available() else []
        present += ["mps"] if torch.backends.mps.is_available() else []
        raise InputError(
            f"device={name!r} cannot be used here: {str(error).splitlines()[0]}",
            hint=f"This machine has {', '.join(present)}.",
        ) from error
    return device
