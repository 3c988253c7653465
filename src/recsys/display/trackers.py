"""Numbers for trackers of experiments: MLflow, Weights & Biases, TensorBoard, Lightning, or a function."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from itertools import takewhile
from numbers import Real
from typing import TYPE_CHECKING, Any

from recsys.errors import InputError

if TYPE_CHECKING:
    from recsys.display.cells import Columns


def log_numbers(tracker: Any, numbers: Mapping[str, float], step: int | None) -> None:
    """Log numbers, those that are finite; a tracker is recognised by its logging method.

    Raises:
        InputError: it has none, and is not a function of (name, value, step).
    """
    values = {name: float(value) for name, value in numbers.items() if math.isfinite(value)}
    plain = {plain_name(name): value for name, value in values.items()}
    if callable(getattr(tracker, "add_scalar", None)):
        for name, value in plain.items():
            tracker.add_scalar(name, value, step)
    elif callable(getattr(tracker, "log_metrics", None)):
        tracker.log_metrics(plain, step=step)
    elif callable(getattr(tracker, "log", None)):
        tracker.log(values, step=step)
    elif callable(tracker):
        for name, value in values.items():
            tracker(name, value, step)
    else:
        raise InputError(
            f"unsupported tracker: {type(tracker).__name__}.",
            hint="Pass the mlflow or wandb module, a wandb run, a SummaryWriter, a Lightning logger, "
            "or a function of (name, value, step).",
        )


def numbers_of(columns: Columns) -> Iterator[tuple[str, float]]:
    """Yield each number of a table, named by the texts that its row begins with and its column.

    >>> dict(numbers_of({"model": ["als"], "metric": ["mrr"], "value": [0.5], "test": ["t"], "n": [9]}))
    {'als/mrr/value': 0.5, 'als/mrr/n': 9.0}
    """
    for row in zip(*columns.values(), strict=True):
        label = [*takewhile(lambda cell: isinstance(cell, str), row)]
        for column, cell in zip(columns, row, strict=True):
            if isinstance(cell, Real):
                yield "/".join([*label, column]), float(cell)


def plain_name(name: str) -> str:
    """Return a metric's name in characters that every tracker accepts: MLflow refuses "@", "(" and "=".

    >>> plain_name("ndcg(gain=exp2)@10")
    'ndcg.gain-exp2_at_10'
    """
    readable = (
        name.replace("@", "_at_").replace("(", ".").replace(")", "").replace("=", "-").replace(", ", ".")
    )
    return re.sub(r"[^\w\-. :/]", "_", readable)
