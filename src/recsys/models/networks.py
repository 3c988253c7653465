"""The networks of Neural Collaborative Filtering (He et al. 2017), matrix factorisation, and their files.

Every network is `(users, items) -> logits` of shape (n,). The order of logits is the order of
probabilities, so ranking needs no sigmoid. GMF, MF and BiasedMF are products of factors and have
`user_factors` and `item_factors`, which evaluate ranks with the exact kernels.

A file holds the weights, the arguments the network was built with, and the ids of its rows; never a pickle.
`.safetensors` (extra `safetensors`) is the format to share; `.npz` needs NumPy alone.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from recsys.errors import FileError, InputError, check_choice
from recsys.models.torch_import import torch, torch_seed
from recsys.ranks.sources.network_scores import network_factors
from recsys.ranks.sources.source_files import read_network_file, write_model_file
from recsys.records.arrays import Array

_INITIAL_STD = 0.01  # of the initial embeddings, as in the paper


def _embedding(rows: int, width: int, what: str) -> torch.nn.Embedding:
    if rows < 1 or width < 1:
        raise InputError(
            f"{rows} {what} with {width} factors make no model.", hint="Both must be at least 1."
        )
    embedding = torch.nn.Embedding(rows, width)
    torch.nn.init.normal_(embedding.weight, std=_INITIAL_STD)
    return embedding


class _Network(torch.nn.Module):  # type: ignore[misc, unused-ignore]
    """The numbers of users and items, and in `shape` the arguments that rebuild the network."""

    def __init__(self, n_users: int, n_items: int, **shape: Any) -> None:
        super().__init__()
        self.n_users, self.n_items = int(n_users), int(n_items)
        self.shape: dict[str, Any] = {"n_users": self.n_users, "n_items": self.n_items, **shape}

    def _embed(self, width: int) -> None:
        """Give every user and every item `width` factors."""
        self.users = _embedding(self.n_users, width, "users")
        self.items = _embedding(self.n_items, width, "items")


class _Product(_Network):
    """A network whose logits are the products of `user_factors` and `item_factors`."""

    kind: ClassVar[str]

    @property
    def user_factors(self) -> Array:
        return self._factors()[0]

    @property
    def item_factors(self) -> Array:
        return self._factors()[1]

    def _factors(self) -> tuple[Array, Array]:
        weights = {name: _to_numpy(tensor) for name, tensor in self.state_dict().items()}
        return network_factors(self.kind, weights)


class MF(_Product):
    """Matrix factorisation: the logit is the product of the two factors.

    >>> model = MF(3, 5, factors=2)
    >>> model(torch.tensor([0, 2]), torch.tensor([4, 1])).shape
    torch.Size([2])
    """

    kind = "mf"

    def __init__(self, n_users: int, n_items: int, *, factors: int = 8, seed: int = 0) -> None:
        super().__init__(n_users, n_items, factors=factors)
        with torch_seed(seed):
            self._embed(factors)

    def forward(self, users: torch.Tensor, items: torch.Tensor) -> Any:
        return (self.users(users) * self.items(items)).sum(dim=-1)


class BiasedMF(MF):
    """Matrix factorisation with a bias for every user, for every item, and one overall.

    As factors, the biases are two more columns: the user's next to a 1, and a 1 next to the item's.
    """

    kind = "biased_mf"

    def __init__(self, n_users: int, n_items: int, *, factors: int = 8, seed: int = 0) -> None:
        super().__init__(n_users, n_items, factors=factors, seed=seed)
        self.user_bias = torch.nn.Embedding(n_users, 1, _weight=torch.zeros(n_users, 1))
        self.item_bias = torch.nn.Embedding(n_items, 1, _weight=torch.zeros(n_items, 1))
        self.bias = torch.nn.Parameter(torch.zeros(1))

    def forward(self, users: torch.Tensor, items: torch.Tensor) -> Any:
        product = super().forward(users, items)
        return product + self.user_bias(users)[..., 0] + self.item_bias(items)[..., 0] + self.bias


class GMF(_Product):
    """Generalised matrix factorisation: a learned weight for every factor of the product.

    The weights can be multiplied into either side: `user_factors` are the users times the weights, with the
    bias as one more column.
    """

    kind = "gmf"

    def __init__(self, n_users: int, n_items: int, *, factors: int = 8, seed: int = 0) -> None:
        super().__init__(n_users, n_items, factors=factors)
        with torch_seed(seed):
            self._embed(factors)
            self.output = _output_layer(factors)

    def product(self, users: torch.Tensor, items: torch.Tensor) -> Any:
        """Return the products of the factors, before the output layer."""
        return self.users(users) * self.items(items)

    def forward(self, users: torch.Tensor, items: torch.Tensor) -> Any:
        return self.output(self.product(users, items))[..., 0]


class MLP(_Network):
    """User and item embeddings side by side through dense layers; `layers` are the widths, input first."""

    def __init__(
        self,
        n_users: int,
        n_items: int,
        *,
        layers: Sequence[int] = (64, 32, 16, 8),
        dropout: float = 0.0,
        seed: int = 0,
    ) -> None:
        widths = [int(width) for width in layers]
        if len(widths) < 2 or widths[0] % 2:
            raise InputError(
                f"layers={list(layers)!r} cannot be built.",
                hint="Give the widths from the input on, the first even: [64, 32, 16, 8].",
            )
        super().__init__(n_users, n_items, layers=widths, dropout=float(dropout))
        with torch_seed(seed):
            self._embed(widths[0] // 2)
            hidden: list[torch.nn.Module] = []
            for before, after in pairwise(widths):
                linear = torch.nn.Linear(before, after)
                torch.nn.init.xavier_uniform_(linear.weight)
                torch.nn.init.zeros_(linear.bias)
                hidden += [linear, torch.nn.ReLU(), *([torch.nn.Dropout(dropout)] if dropout else [])]
            self.layers = torch.nn.Sequential(*hidden)
            self.output = _output_layer(widths[-1])

    def last_layer(self, users: torch.Tensor, items: torch.Tensor) -> Any:
        """Return the activations of the last hidden layer, before the output layer."""
        return self.layers(torch.cat([self.users(users), self.items(items)], dim=-1))

    def forward(self, users: torch.Tensor, items: torch.Tensor) -> Any:
        return self.output(self.last_layer(users, items))[..., 0]


class NeuMF(_Network):
    """GMF and MLP with embeddings of their own, joined in the last layer.

    `NeuMF.of(gmf, mlp)` starts from two trained models, weighted by `alpha` and 1 - alpha.
    """

    def __init__(
        self,
        n_users: int,
        n_items: int,
        *,
        factors: int = 8,
        layers: Sequence[int] = (64, 32, 16, 8),
        dropout: float = 0.0,
        seed: int = 0,
    ) -> None:
        super().__init__(
            n_users, n_items, factors=factors, layers=[int(w) for w in layers], dropout=float(dropout)
        )
        self.gmf = GMF(n_users, n_items, factors=factors, seed=seed)
        self.mlp = MLP(n_users, n_items, layers=layers, dropout=dropout, seed=seed + 1)
        # Their own output layers would be parameters without a gradient.
        del self.gmf.output, self.mlp.output
        with torch_seed(seed + 2):
            self.output = _output_layer(factors + int(layers[-1]))

    @classmethod
    def of(cls, gmf: GMF, mlp: MLP, *, alpha: float = 0.5) -> NeuMF:
        """Return a NeuMF that starts where two trained models ended."""
        if (gmf.n_users, gmf.n_items) != (mlp.n_users, mlp.n_items):
            raise InputError(
                f"the GMF is of {gmf.n_users} x {gmf.n_items} users and items, "
                f"the MLP of {mlp.n_users} x {mlp.n_items}.",
                hint="Train both on the same data.",
            )
        model = cls(
            gmf.n_users,
            gmf.n_items,
            factors=gmf.shape["factors"],
            layers=mlp.shape["layers"],
            dropout=mlp.shape["dropout"],
        )
        model.to(gmf.output.weight.device)
        with torch.no_grad():
            for part, trained in ((model.gmf, gmf), (model.mlp, mlp)):
                state = {n: v for n, v in trained.state_dict().items() if not n.startswith("output.")}
                part.load_state_dict(state)
            halves = [alpha * gmf.output.weight, (1 - alpha) * mlp.output.weight]
            model.output.weight.copy_(torch.cat([half.to(halves[0].device) for half in halves], dim=1))
            bias = mlp.output.bias.to(gmf.output.bias.device)
            model.output.bias.copy_(alpha * gmf.output.bias + (1 - alpha) * bias)
        return model

    def forward(self, users: torch.Tensor, items: torch.Tensor) -> Any:
        joined = torch.cat([self.gmf.product(users, items), self.mlp.last_layer(users, items)], dim=-1)
        return self.output(joined)[..., 0]


NETWORKS = {"gmf": GMF, "mlp": MLP, "neumf": NeuMF, "mf": MF, "biased_mf": BiasedMF}


def network(name: str, n_users: int, n_items: int, **shape: Any) -> Any:
    """Return the network of this name.

    >>> network("gmf", 3, 5, factors=4).user_factors.shape
    (3, 5)
    """
    check_choice("model", name, NETWORKS)
    return NETWORKS[name](n_users, n_items, **shape)


def _output_layer(width: int) -> torch.nn.Linear:
    layer = torch.nn.Linear(width, 1)
    bound = math.sqrt(3.0 / width)
    torch.nn.init.uniform_(layer.weight, -bound, bound)
    torch.nn.init.zeros_(layer.bias)
    return layer


def _to_numpy(tensor: torch.Tensor) -> Array:
    array: Array = tensor.detach().to("cpu", torch.float32).numpy()
    return array


def save_network(path: str | os.PathLike[str], model: Any, about: Mapping[str, Any] | None = None) -> Path:
    """Write a network of this module, with its `user_ids` and `item_ids` if it has them; see `save_model`."""
    name = next((n for n, kind in NETWORKS.items() if type(model) is kind), None)
    if name is None:
        raise FileError(
            f"a {type(model).__name__} is not a network of recsys.models, so it could not be rebuilt.",
            hint="Save its state_dict with safetensors yourself.",
        )
    weights = {key: value.detach().cpu().numpy() for key, value in model.state_dict().items()}
    ids = {what: getattr(model, f"{what}_ids", None) for what in ("user", "item")}
    return write_model_file(path, name, weights, ids=ids, about=about, shape=model.shape)


def load_network(path: str | os.PathLike[str]) -> Any:
    """Return the network in a file, in evaluation mode, with `user_ids` and `item_ids` where they were saved.

    `load_model` reads the same file as a source of rankings, without PyTorch.
    """
    source = Path(path)
    arrays, metadata = read_network_file(source)
    if metadata.get("model") not in list(NETWORKS):
        raise FileError(
            f"{source.name} holds a model of the kind {metadata.get('model')!r}, which is not a network.",
            hint="recsys.models.load_model(path) reads it.",
        )
    try:
        with torch.device("meta"):  # no memory for what the description only claims to be there
            model = network(metadata["model"], **metadata["shape"])
        tensors = {name: torch.from_numpy(np.array(value, np.float32)) for name, value in arrays.items()}
        model.load_state_dict(tensors, assign=True)
    except (InputError, RuntimeError, TypeError, ValueError, KeyError) as error:
        raise FileError(f"{source.name} does not fit its own description: {error}") from error
    for what in ("user_ids", "item_ids"):
        if metadata[what] is not None:
            setattr(model, what, metadata[what])
    return model.eval()
