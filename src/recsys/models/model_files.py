"""Models in files: whatever `recsys train` writes, and the one reader of it; never a pickle.

`save_model` keeps a source (factors, scores, weights with their histories) or a network of `recsys.models`;
`load_model` makes a source of either, in NumPy.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recsys.errors import InputError
from recsys.ranks.sources.source_files import (
    describe_model,
    fingerprint,
    is_model_file,
    load_model,
    save_source,
)

__all__ = ["describe_model", "fingerprint", "is_model_file", "load_model", "save_model"]


def save_model(path: str | os.PathLike[str], source: Any, about: Mapping[str, Any] | None = None) -> Path:
    """Write a model with the ids of its rows, wholly or not at all, and return the path.

    Args:
        path: .npz, or .safetensors (extra `safetensors`).
        source: `recsys.Factors`, `recsys.Scores` of a matrix, what `train_model` returned, or a network of
            `recsys.models` (with its attributes `user_ids` and `item_ids` where it has them).
        about: where it comes from, such as {"name": "ease", "settings": {…}}: JSON, which `describe_model`
            reads.

    >>> import tempfile, recsys
    >>> path = Path(tempfile.mkdtemp()) / "model.npz"
    >>> _ = save_model(path, recsys.Scores([[0.1, 0.9]], user_ids=["ann"], item_ids=["a", "b"]))
    >>> recsys.recommend(load_model(path), 1).to_frame()["item"].tolist()
    ['b']
    """
    if not isinstance(path, str | os.PathLike):
        raise InputError(
            f"a {type(path).__name__} is not the path of a file.", hint="Write save_model(path, model)."
        )
    if hasattr(source, "state_dict"):
        from recsys.models.networks import save_network

        return save_network(path, source, about)
    return save_source(path, source, about)
