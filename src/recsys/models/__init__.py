"""Reference models: popularity, item-kNN, EASE, ALS, BPR and others by name; GMF, MLP, NeuMF and MF to train.

They exist to be evaluated: exact factors for the kernels where a model has them, blocks of scores where it
has not. PyTorch (extra `torch`) and implicit (extra `implicit`) are imported when a name is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recsys.records.registry import lazy_names

if TYPE_CHECKING:
    from recsys.models.implicit_feedback import FactorModel as FactorModel
    from recsys.models.implicit_feedback import Pairs as Pairs
    from recsys.models.implicit_feedback import als as als
    from recsys.models.implicit_feedback import bpr as bpr
    from recsys.models.model_files import describe_model as describe_model
    from recsys.models.model_files import load_model as load_model
    from recsys.models.model_files import save_model as save_model
    from recsys.models.networks import GMF as GMF
    from recsys.models.networks import MF as MF
    from recsys.models.networks import MLP as MLP
    from recsys.models.networks import BiasedMF as BiasedMF
    from recsys.models.networks import NeuMF as NeuMF
    from recsys.models.networks import load_network as load_network
    from recsys.models.networks import network as network
    from recsys.models.trainable import TRAINABLE as TRAINABLE
    from recsys.models.trainable import Trainable as Trainable
    from recsys.models.trainable import Trial as Trial
    from recsys.models.trainable import Tuned as Tuned
    from recsys.models.trainable import train_model as train_model
    from recsys.models.trainable import tune as tune
    from recsys.models.training import Epoch as Epoch
    from recsys.models.training import History as History
    from recsys.models.training import train as train

__getattr__, __dir__, __all__ = lazy_names(__name__)
