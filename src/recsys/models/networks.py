"""The networks of Neural Collaborative Filtering (He et al. 2017), and matrix factorisation beside them.

Every network is `(users, items) -> logits` of shape (n,). The order of logits is the order of
probabilities, so ranking needs no sigmoid. GMF, MF and BiasedMF are products of factors and have
`user_factors` and `item_factors`, which evaluate ranks with the exact kernels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np

from recsys.errors import InputError, UnknownNameError
from recsys.models.torch_import import torch
from recsys.types import Array

_INITIAL_STD = 0.01  # of the initial embeddings, as in the paper


@contextmanager
def _torch_seed(seed: int) -> Iterator[None]:
    """Seed torch's global generator, which initialises the layers, and restore its state afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


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


class MF(_Network):
    """Matrix factorisation: the logit is the product of the two factors.

    >>> model = MF(3, 5, factors=2)
    >>> model(torch.tensor([0, 2]), torch.tensor([4, 1])).shape
    torch.Size([2])
    """

    def __init__(self, n_users: int, n_items: int, *, factors: int = 8, seed: int = 0) -> None:
        super().__init__(n_users, n_items, factors=factors)
        with _torch_seed(seed):
            self.users = _embedding(n_users, factors, "users")
            self.items = _embedding(n_items, factors, "items")

    def forward(self, users: torch.Tensor, items: torch.Tensor) -> Any:
        return (self.users(users) * self.items(items)).sum(dim=-1)

    @property
    def user_factors(self) -> Array:
        return _to_numpy(self.users.weight)

    @property
    def item_factors(self) -> Array:
        return _to_numpy(self.items.weight)


class BiasedMF(_Network):
    """Matrix factorisation with a bias for every user, for every item, and one overall.

    As factors, the biases are two more columns: the user's beside a 1, and a 1 beside the item's.
    """

    def __init__(self, n_users: int, n_items: int, *, factors: int = 8, seed: int = 0) -> None:
        super().__init__(n_users, n_items, factors=factors)
        with _torch_seed(seed):
            self.users = _embedding(n_users, factors, "users")
            self.items = _embedding(n_items, factors, "items")
        self.user_bias = torch.nn.Embedding(n_users, 1, _weight=torch.zeros(n_users, 1))
        self.item_bias = torch.nn.Embedding(n_items, 1, _weight=torch.zeros(n_items, 1))
        self.bias = torch.nn.Parameter(torch.zeros(1))

    def forward(self, users: torch.Tensor, items: torch.Tensor) -> Any:
        product = (self.users(users) * self.items(items)).sum(dim=-1)
        return product + self.user_bias(users)[..., 0] + self.item_bias(items)[..., 0] + self.bias

    @property
    def user_factors(self) -> Array:
        bias = _to_numpy(self.user_bias.weight) + _to_numpy(self.bias)
        return np.hstack([_to_numpy(self.users.weight), bias, np.ones_like(bias)])

    @property
    def item_factors(self) -> Array:
        bias = _to_numpy(self.item_bias.weight)
        return np.hstack([_to_numpy(self.items.weight), np.ones_like(bias), bias])


class GMF(_Network):
    """Generalised matrix factorisation: a learned weight for every factor of the product.

    The weights can be multiplied into either side: `user_factors` are the users times the weights, with the
    bias as one more column.
    """

    def __init__(self, n_users: int, n_items: int, *, factors: int = 8, seed: int = 0) -> None:
        super().__init__(n_users, n_items, factors=factors)
        with _torch_seed(seed):
            self.users = _embedding(n_users, factors, "users")
            self.items = _embedding(n_items, factors, "items")
            self.output = _output_layer(factors)

    def product(self, users: torch.Tensor, items: torch.Tensor) -> Any:
        """The products of the factors, before the output layer."""
        return self.users(users) * self.items(items)

    def forward(self, users: torch.Tensor, items: torch.Tensor) -> Any:
        return self.output(self.product(users, items))[..., 0]

    @property
    def user_factors(self) -> Array:
        weighted = _to_numpy(self.users.weight) * _to_numpy(self.output.weight)
        return np.hstack([weighted, np.full((len(weighted), 1), _to_numpy(self.output.bias)[0])])

    @property
    def item_factors(self) -> Array:
        items = _to_numpy(self.items.weight)
        return np.hstack([items, np.ones((len(items), 1), dtype=items.dtype)])


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
        with _torch_seed(seed):
            self.users = _embedding(n_users, widths[0] // 2, "users")
            self.items = _embedding(n_items, widths[0] // 2, "items")
            self.layers = torch.nn.Sequential(*_hidden_layers(widths, float(dropout)))
            self.output = _output_layer(widths[-1])

    def last_layer(self, users: torch.Tensor, items: torch.Tensor) -> Any:
        """The activations of the last hidden layer, before the output layer."""
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
        with _torch_seed(seed + 2):
            self.output = _output_layer(factors + int(layers[-1]))

    @classmethod
    def of(cls, gmf: GMF, mlp: MLP, *, alpha: float = 0.5) -> NeuMF:
        """A NeuMF that starts where two trained models ended."""
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
    """The network of this name.

    >>> network("gmf", 3, 5, factors=4).user_factors.shape
    (3, 5)
    """
    if name not in NETWORKS:
        raise UnknownNameError("model", name, NETWORKS)
    return NETWORKS[name](n_users, n_items, **shape)


def _output_layer(width: int) -> torch.nn.Linear:
    layer = torch.nn.Linear(width, 1)
    bound = math.sqrt(3.0 / width)
    torch.nn.init.uniform_(layer.weight, -bound, bound)
    torch.nn.init.zeros_(layer.bias)
    return layer


def _hidden_layers(widths: Sequence[int], dropout: float) -> Iterator[torch.nn.Module]:
    for before, after in pairwise(widths):
        linear = torch.nn.Linear(before, after)
        torch.nn.init.xavier_uniform_(linear.weight)
        torch.nn.init.zeros_(linear.bias)
        yield linear
        yield torch.nn.ReLU()
        if dropout:
            yield torch.nn.Dropout(dropout)


def _to_numpy(tensor: torch.Tensor) -> Array:
    array: Array = tensor.detach().to("cpu", torch.float32).numpy()
    return array
