"""Five small studies of evaluation itself: one question each, small models, an answer from the data.

The sentences of an answer are made from the numbers of the run.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from recsys.cli.studies.setting import Setting, setting_of
from recsys.cli.studies.study import Study
from recsys.errors import UnknownNameError

STUDIES = {
    "metric-comparison": "Do models rank the same under every metric?",
    "temporal-vs-random": "Which split gives the more optimistic error, and why?",
    "popularity": "How close do the most popular items come to learned models?",
    "per-user": "Which users does each model serve better, those with few ratings or with many?",
    "metric-sensitivity": "Which metrics degrade fastest when predictions get noisy?",
}


def run_study(name: str, data: Any = None, *, seed: int = 0) -> Study:
    """Run one study on a data set with ratings and times, or on the demo world."""
    if name not in STUDIES:
        raise UnknownNameError("study", name, STUDIES)
    study: Callable[[Setting, int], Study] = import_module(
        f"recsys.cli.studies.{name.replace('-', '_')}"
    ).study
    return study(setting_of(data, seed=seed), seed)


__all__ = ["STUDIES", "Setting", "Study", "run_study", "setting_of"]


def __dir__() -> list[str]:
    return __all__
