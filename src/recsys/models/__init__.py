"""Small reference models and their trainer: GMF, MLP, NeuMF, MF with and without biases, ALS and BPR.

They exist to be evaluated: exact factors for the kernels where a model has them, a plain forward pass where
it has not. PyTorch (extra `torch`) and implicit (extra `implicit`) are imported when a name is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recsys import lazy_names

if TYPE_CHECKING:
    from recsys.models.checkpoints import load_model, save_model
    from recsys.models.factor_models import FactorModel, als, bpr
    from recsys.models.networks import GMF, MF, MLP, BiasedMF, NeuMF, network
    from recsys.models.training import Epoch, History, train
    from recsys.models.training_pairs import Pairs

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
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "checkpoints": ("load_model", "save_model"),
        "factor_models": ("FactorModel", "als", "bpr"),
        "networks": ("GMF", "MF", "MLP", "BiasedMF", "NeuMF", "network"),
        "training_pairs": ("Pairs",),
        "training": ("Epoch", "History", "train"),
    },
)
