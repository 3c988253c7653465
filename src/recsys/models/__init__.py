"""Small reference models and their trainer: GMF, MLP, NeuMF, MF with and without biases, ALS and BPR.

They exist to be evaluated: exact factors for the kernels where a model has them, a plain forward pass where
it has not. PyTorch (extra `torch`) and implicit (extra `implicit`) are imported when a name is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recsys import lazy_names

if TYPE_CHECKING:
    from recsys.models.implicit_feedback import FactorModel, Pairs, als, bpr
    from recsys.models.networks import GMF, MF, MLP, BiasedMF, NeuMF, load_model, network, save_model
    from recsys.models.training import Epoch, History, train

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
        "implicit_feedback": ("FactorModel", "Pairs", "als", "bpr"),
        "networks": ("GMF", "MF", "MLP", "BiasedMF", "NeuMF", "load_model", "network", "save_model"),
        "training": ("Epoch", "History", "train"),
    },
)
