"""The list of checks: each is one small function of the evidence that returns a finding, some, or none."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from recsys.audit.evidence import Evidence
from recsys.audit.findings import Finding

Found = Finding | Iterable[Finding] | None


class Check(NamedTuple):
    """A check, what it looks at in words, and what must be there for it to run."""

    name: str
    needs: tuple[str, ...]
    run: Callable[[Evidence], Found]

    @property
    def area(self) -> str:
        """What it is about: the module it stands in."""
        return {"identity": "ids"}.get(name := self.run.__module__.rpartition(".")[2], name)

    @property
    def meaning(self) -> str:
        """The first line of its docstring."""
        return (self.run.__doc__ or "").strip().split("\n")[0]


CHECKS: dict[str, Check] = {}

NEEDS: dict[str, tuple[str, Callable[[Evidence], bool]]] = {
    "times": (
        "both sides need a time column without gaps",
        lambda e: e.train.time is not None and e.test.time is not None,
    ),
    "lists": ("pass lists=", lambda e: e.ranked is not None),
    "ready lists": (
        "pass lists= (ready ones; a source that ranks everything has none)",
        lambda e: e.ranked is not None and not e.is_source,
    ),
    "scores": ("pass lists= with scores", lambda e: e.lists is not None and e.lists.score is not None),
    "items": (
        "pass items= or what ranks the whole catalogue",
        lambda e: e.catalogue is not None or e.is_source,
    ),
    "factors": ("pass Factors as lists=", lambda e: e.is_source),
    "popularity": (
        "pass popularity=, or a popularity column in items=",
        lambda e: e.given_popularity is not None,
    ),
    "models": ("pass models={name: lists} with at least two", lambda e: len(e.models) > 1),
}


def check(*needs: str) -> Callable[[Callable[[Evidence], Found]], Callable[[Evidence], Found]]:
    """Add a function to the list of checks, under its own name."""

    def register(run: Callable[[Evidence], Found]) -> Callable[[Evidence], Found]:
        CHECKS[run.__name__] = Check(run.__name__, needs, run)
        return run

    return register
