"""The registry of checks: each is one function of the evidence that returns a finding, several, or None."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from recsys.audits.evidence import Evidence
from recsys.audits.findings import Finding
from recsys.errors import Phrase, check_choice
from recsys.records.registry import Registry

CheckResult = Finding | Iterable[Finding] | None


class Check(NamedTuple):
    """A check: its name, the inputs it needs (keys of NEEDS), its function and its area (one of AREAS)."""

    name: str
    needs: tuple[str, ...]
    run: Callable[[Evidence], CheckResult]
    area: str

    @property
    def meaning(self) -> str:
        """The first line of its docstring."""
        return (self.run.__doc__ or "").strip().split("\n")[0]


CHECKS: Registry[Check] = Registry("check", "recsys.checks")
"""Every check of the audit, by name; `@check(...)` adds one."""
# What checks are about, in the order they run.
AREAS = ("ids", "leakage", "candidates", "sampling", "bias")

# What a check may need: what to do if it is missing, and whether it is there.
NEEDS: dict[str, tuple[str, Callable[[Evidence], bool]]] = {
    "times": (
        "both sides need a time column without gaps",
        lambda e: e.train.time is not None and e.test.time is not None,
    ),
    "lists": (Phrase("pass {audit.lists=}"), lambda e: e.ranked is not None),
    "ready lists": (
        Phrase("pass {audit.lists=} (ready ones; a source that ranks everything has none)"),
        lambda e: e.ranked is not None and not e.is_source,
    ),
    "scores": (Phrase("pass {audit.lists=} with scores"), lambda e: e.lists.score is not None),
    "items": (
        Phrase("pass {audit.items=} or what ranks the whole catalogue"),
        lambda e: e.catalogue is not None or e.is_source,
    ),
    "factors": (Phrase("pass Factors as {audit.lists=}"), lambda e: e.is_source),
    "popularity": (
        Phrase("pass {audit.popularity=}, or a popularity column in {audit.items=}"),
        lambda e: e.given_popularity is not None,
    ),
    "models": (Phrase("pass {audit.models=} with two or more"), lambda e: len(e.models) > 1),
}


def check(
    area: str, *needs: str
) -> Callable[[Callable[[Evidence], CheckResult]], Callable[[Evidence], CheckResult]]:
    """Register a function as a check under its own name.

    Args:
        area: what it is about, one of AREAS.
        needs: the inputs it cannot do without, keys of NEEDS.
    """
    check_choice("area", area, AREAS)
    return CHECKS.adding(lambda run: Check(run.__name__, needs, run, area))
