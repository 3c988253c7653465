"""Reference models: popularity, item-kNN, EASE, ALS, BPR and others by name; GMF, MLP, NeuMF and MF to train.

They exist to be evaluated: exact factors for the kernels where a model has them, blocks of scores where it
has not. PyTorch (extra `torch`) and implicit (extra `implicit`) are imported when a name is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recsys.records.registry import lazy_names

if TYPE_CHECKING:
    from recsys.models.implicit_feedback import FactorModel, Pairs, als, bpr
    from recsys.models.model_files import describe_model, load_model, save_model
    from recsys.models.networks import GMF, MF, MLP, BiasedMF, NeuMF, load_network, network
    from recsys.models.trainable import TRAINABLE, Trainable, Trial, Tuned, train_model, tune
    from recsys.models.training import Epoch, History, train

__all__ = [
    "GMF",
    "MF",
    "MLP",
    "TRAINABLE",
    "BiasedMF",
    "Epoch",
    "FactorModel",
    "History",
    "NeuMF",
    "Pairs",
    "Trainable",
    "Trial",
    "Tuned",
    "als",
    "bpr",
    "describe_model",
    "load_model",
    "load_network",
    "network",
    "save_model",
    "train",
    "train_model",
    "tune",
]
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "implicit_feedback": ("FactorModel", "Pairs", "als", "bpr"),
        "model_files": ("describe_model", "load_model", "save_model"),
        "networks": ("GMF", "MF", "MLP", "BiasedMF", "NeuMF", "load_network", "network"),
        "trainable": ("TRAINABLE", "Trainable", "Trial", "Tuned", "train_model", "tune"),
        "training": ("Epoch", "History", "train"),
    },
)
