"""Small reference models and their trainer: GMF, MLP, NeuMF, MF with and without biases, ALS and BPR.

They exist to be evaluated: exact factors for the kernels where a model has them, a plain forward pass where
it has not. PyTorch (extra `torch`) and implicit (extra `implicit`) are imported when a name is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recsys.models.checkpoints import load_model, save_model
    from recsys.models.factor_models import FactorModel, als, bpr
    from recsys.models.networks import GMF, MF, MLP, BiasedMF, NeuMF, network
    from recsys.models.pairs import Pairs
    from recsys.models.training import Epoch, History, train

_ROOMS = {
    "checkpoints": ("load_model", "save_model"),
    "factor_models": ("FactorModel", "als", "bpr"),
    "networks": ("GMF", "MF", "MLP", "BiasedMF", "NeuMF", "network"),
    "pairs": ("Pairs",),
    "training": ("Epoch", "History", "train"),
}
_HOMES = {name: f"recsys.models.{room}" for room, names in _ROOMS.items() for name in names}

__all__ = [
    "GMF",
    "MF",
    "MLP",
    "BiasedMF",
    "Epoch",
    "FactorModel",
    "History",
    "NeuMF",
    "Pairs",
    "als",
    "bpr",
    "load_model",
    "network",
    "save_model",
    "train",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'recsys.models' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return list(__all__)
