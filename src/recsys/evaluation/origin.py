"""What a result can be asked later, which depends on where it came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, NoReturn, Protocol

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import RecsysError
from recsys.evaluation.result_facts import ResultFacts
from recsys.records.arrays import Array, cached_property

if TYPE_CHECKING:
    from recsys.evaluation.asked import Asked
    from recsys.evaluation.bounds import Bounds
    from recsys.evaluation.files.row_folders import RowFolder
    from recsys.evaluation.results import Evaluation
    from recsys.metrics.ranges import Range
    from recsys.records.facts import Caution


class Origin(Protocol):
    """What is behind a result; what takes time is computed when it is first asked for, and kept.

    The properties are those of `Evaluation`, which describes them.
    """

    @property
    def has_lists(self) -> bool:
        """Whether lists and truth are still there."""

    @property
    def facts(self) -> ResultFacts: ...
    @property
    def cautions(self) -> Sequence[Caution]: ...
    @property
    def truth_keys(self) -> Array | None: ...
    @property
    def asked(self) -> Asked | None: ...
    @property
    def ranges(self) -> Mapping[str, Range]: ...

    def under(self, conventions: Conventions, /) -> Evaluation:
        """Return the same lists and truth under other conventions."""

    def bounds(self, values: Mapping[str, float], /) -> Bounds:
        """Compare the values of the result with what lists could reach at best and what chance gives."""


@dataclass(frozen=True, eq=False, kw_only=True)
class StoredOrigin:
    """What is still known of a result that was saved, merged, or made of pieces; its lists are gone.

    `keys`: the truth keys, or the folder of rows that has them.
    """

    facts: ResultFacts = field(default_factory=ResultFacts)
    cautions: Sequence[Caution] = ()
    asked: Asked | None = None
    ranges: Mapping[str, Range] = field(default_factory=dict)
    keys: Array | RowFolder | None = None
    has_lists: ClassVar[bool] = False

    @classmethod
    def of(cls, other: Origin) -> StoredOrigin:
        """Return what is known there, without the lists."""
        known = {name: getattr(other, name) for name in ("facts", "cautions", "asked", "ranges")}
        return cls(**known, keys=other.truth_keys)

    @cached_property
    def truth_keys(self) -> Array | None:
        """The keys themselves; those of a folder are read now."""
        return self.keys if self.keys is None or isinstance(self.keys, np.ndarray) else self.keys.truth_keys

    def under(self, _: Conventions, /) -> Evaluation:
        """Raise an error: nothing can be evaluated again."""
        raise RecsysError(
            "this result was merged or read from a file, so the lists behind it are gone.",
            hint="Evaluate the lists again with the other conventions.",
        )

    def bounds(self, _: Mapping[str, float], /) -> NoReturn:
        """Raise an error: there is nothing to compute bounds of."""
        raise RecsysError(
            "this result was merged, read from a file or made of sampled candidates, "
            "so the lists behind it are gone.",
            hint="Call bounds() on what evaluate returned.",
        )
