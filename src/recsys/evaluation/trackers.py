"""Results handed to experiment trackers: MLflow, Weights & Biases, TensorBoard, Lightning loggers.

A tracker is whatever object the caller has: it is recognised by the method it logs with, so none of these
packages is ever imported here, and whatever speaks like one of them works too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from recsys.errors import InputError

_PLAIN = re.compile(r"[^\w\-. :/]")


def log(values: Mapping[str, float], tracker: Any, *, step: int | None = None, prefix: str = "") -> None:
    """Hand each value to a tracker under its name; values that are not a number are left out.

    >>> log({"ndcg@10": 0.5}, lambda name, value, step: print(name, value, step), step=3)
    ndcg@10 0.5 3
    """
    named = {prefix + name: float(value) for name, value in values.items() if math.isfinite(value)}
    for recognised, send in _TRACKERS:
        if recognised(tracker):
            send(tracker, named, step)
            return
    raise InputError(
        f"a {type(tracker).__name__} is no tracker that is known here.",
        hint="Pass the mlflow or wandb module, a wandb run, a SummaryWriter, a Lightning logger, "
        "or a function of (name, value, step).",
    )


def plain_name(name: str) -> str:
    """A metric's name in the characters every tracker takes.

    >>> plain_name("ndcg(gain=exp2)@10")
    'ndcg.gain-exp2_at_10'
    """
    spelled = (
        name.replace("@", "_at_").replace("(", ".").replace(")", "").replace("=", "-").replace(", ", ".")
    )
    return _PLAIN.sub("_", spelled)


def _to_mlflow(tracker: Any, values: Mapping[str, float], step: int | None) -> None:
    # MLflow refuses "@", "(" and "=" in names.
    tracker.log_metrics({plain_name(name): value for name, value in values.items()}, step=step)


def _to_wandb(tracker: Any, values: Mapping[str, float], step: int | None) -> None:
    tracker.log(dict(values), step=step)


def _to_tensorboard(tracker: Any, values: Mapping[str, float], step: int | None) -> None:
    for name, value in values.items():
        tracker.add_scalar(plain_name(name), value, step)


def _to_function(tracker: Any, values: Mapping[str, float], step: int | None) -> None:
    for name, value in values.items():
        tracker(name, value, step)


def _speaks(method: str) -> Callable[[Any], bool]:
    return lambda tracker: callable(getattr(tracker, method, None))


_TRACKERS: tuple[
    tuple[Callable[[Any], bool], Callable[[Any, Mapping[str, float], int | None], None]], ...
] = (
    (_speaks("add_scalar"), _to_tensorboard),
    (_speaks("log_metrics"), _to_mlflow),
    (_speaks("log"), _to_wandb),
    (callable, _to_function),
)
