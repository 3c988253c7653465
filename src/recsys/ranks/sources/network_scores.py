"""The scores of the networks of `recsys.models`, from their weights alone: in NumPy, without PyTorch.

GMF, MF and BiasedMF are products of factors. The MLP's first layer is a sum of a user's part and an item's
part, so each is computed once per user and once per item.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from recsys.errors import InputError
from recsys.ranks.sources.factors import Factors
from recsys.ranks.sources.scores import Scores
from recsys.records.arrays import Array, Int

FACTOR_NETWORKS = ("mf", "biased_mf", "gmf")
NETWORK_KINDS = (*FACTOR_NETWORKS, "mlp", "neumf")
_BLOCK_BYTES = 32 << 20


def network_factors(kind: str, weights: Mapping[str, Array]) -> tuple[Array, Array]:
    """User and item factors whose products are the scores of a network of FACTOR_NETWORKS.

    The weights of a GMF's output are multiplied into the users, and its bias is one more column; the biases
    of a BiasedMF are two: the user's next to a 1, and a 1 next to the item's.
    """
    users, items = weights["users.weight"], weights["items.weight"]
    one = np.ones((len(items), 1), dtype=items.dtype)
    if kind == "gmf":
        bias = np.full((len(users), 1), weights["output.bias"][0])
        return np.hstack([users * weights["output.weight"], bias]), np.hstack([items, one])
    if kind == "biased_mf":
        bias = weights["user_bias.weight"] + weights["bias"]
        return np.hstack([users, bias, np.ones_like(bias)]), np.hstack(
            [items, one, weights["item_bias.weight"]]
        )
    return users, items


def network_source(kind: str, weights: Mapping[str, Array], **ids: Any) -> Factors | Scores:
    """Factors or scores of a network, by its weights as PyTorch names them; `ids` are those of the rows."""
    if kind in FACTOR_NETWORKS:
        return Factors(*network_factors(kind, weights), **ids)
    prefix = "mlp." if kind == "neumf" else ""
    names = [name for name in weights if name.startswith(f"{prefix}layers.") and name.endswith(".weight")]
    names.sort(key=lambda name: int(name.split(".")[-2]))
    first, *layers = [(weights[name], weights[f"{name.removesuffix('weight')}bias"]) for name in names]
    users, items = weights[f"{prefix}users.weight"], weights[f"{prefix}items.weight"]
    widths = [users.shape[1] + items.shape[1], *(len(offset) for _, offset in (first, *layers))]
    shapes = [weight.shape for weight, _ in (first, *layers)]
    n_products = 0
    if kind == "neumf":
        sides = weights["gmf.users.weight"], weights["gmf.items.weight"]
        n_products = sides[0].shape[1]
        shapes += [side.shape for side in sides]
    shapes.append(weights["output.weight"].shape)
    expected = [(after, before) for before, after in pairwise(widths)]
    expected += [(len(users), n_products), (len(items), n_products)] if kind == "neumf" else []
    if shapes != [*expected, (1, n_products + widths[-1])]:
        raise InputError(f"layers of the shapes {shapes} do not follow each other.")
    of_users = users @ first[0][:, : users.shape[1]].T
    of_items = items @ first[0][:, users.shape[1] :].T + first[1]
    # The output layer of a NeuMF reads the products of its GMF first, then the MLP's last layer.
    output, bias = weights["output.weight"][0], weights["output.bias"][0]
    products = weights["gmf.users.weight"] * output[:n_products] if kind == "neumf" else None
    step = max(1, _BLOCK_BYTES // (len(items) * max(widths[1:]) * of_items.itemsize or 1))

    def block(rows: Int) -> Array:
        scores = np.empty((len(rows), len(items)), dtype=of_items.dtype)
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            values = np.maximum(of_users[part][:, None, :] + of_items, 0).reshape(-1, of_items.shape[1])
            for weight, offset in layers:
                values = np.maximum(values @ weight.T + offset, 0)
            scores[start : start + step] = (values @ output[n_products:] + bias).reshape(len(part), -1)
            if products is not None:
                scores[start : start + step] += products[part] @ weights["gmf.items.weight"].T
        return scores

    return Scores(block, n_users=len(users), n_items=len(items), **ids)
