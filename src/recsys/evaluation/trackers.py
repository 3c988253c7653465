"""Log results to experiment trackers: MLflow, Weights & Biases, TensorBoard, Lightning loggers.

A tracker is recognised by its logging method, so none of these packages is imported here, and anything with
the same method works too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from recsys.errors import InputError

_UNSAFE = re.compile(r"[^\w\-. :/]")


def log(values: Mapping[str, float], tracker: Any, *, step: int | None = None, prefix: str = "") -> None:
    """Log each value under its name; values that are not finite are left out.

    >>> log({"ndcg@10": 0.5}, lambda name, value, step: print(name, value, step), step=3)
    ndcg@10 0.5 3
    """
    finite = {prefix + name: float(value) for name, value in values.items() if math.isfinite(value)}
    for matches, send in _TRACKERS:
        if matches(tracker):
            send(tracker, finite, step)
            return
    raise InputError(
        f"a {type(tracker).__name__} is no tracker that is known here.",
        hint="Pass the mlflow or wandb module, a wandb run, a SummaryWriter, a Lightning logger, "
        "or a function of (name, value, step).",
    )


def plain_name(name: str) -> str:
    """A metric's name in characters that every tracker accepts.

    >>> plain_name("ndcg(gain=exp2)@10")
    'ndcg.gain-exp2_at_10'
    """
    readable = (
        name.replace("@", "_at_").replace("(", ".").replace(")", "").replace("=", "-").replace(", ", ".")
    )
    return _UNSAFE.sub("_", readable)


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


def _has_method(method: str) -> Callable[[Any], bool]:
    return lambda tracker: callable(getattr(tracker, method, None))


_TRACKERS: tuple[
    tuple[Callable[[Any], bool], Callable[[Any, Mapping[str, float], int | None], None]], ...
] = (
    (_has_method("add_scalar"), _to_tensorboard),
    (_has_method("log_metrics"), _to_mlflow),
    (_has_method("log"), _to_wandb),
    (callable, _to_function),
)
