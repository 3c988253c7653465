"""What evaluators outside the field decide and do differently: facts read in their sources (the .toml file).

A row is not a preset: it says nothing about ties or users where the evaluator is handed one list at a time.
Where it has no cut-off of its own, it is handed the first k.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import NamedTuple


class Transcription(NamedTuple):
    """An evaluator at a commit or version, the file that was read, and what it does by metric.

    What it does is written as decisions, such as "gain=exp2", and the words of deviations.
    """

    repository: str
    version: str
    file: str
    metrics: Mapping[str, Sequence[str]]

    def decisions(self, metric: str) -> dict[str, str]:
        """Return the values of decisions on a metric."""
        texts = (text for part in self.metrics[metric] if "=" in part for text in part.split())
        return dict(text.split("=") for text in texts)

    def deviations(self, metric: str) -> tuple[str, ...]:
        """Return what it does beyond decisions."""
        return tuple(part for part in self.metrics[metric] if "=" not in part)


_TABLES = tomllib.loads(files("recsys.comparison").joinpath("transcriptions.toml").read_text("utf-8"))
EVALUATORS = {name: Transcription(**row) for name, row in _TABLES.items()}
