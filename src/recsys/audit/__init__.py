"""audit(): what the numbers of an evaluation were measured on, and what is wrong with it.

Every check is one small function in the list `CHECKS`; it runs where what it needs is there, and the report
says which did not. All work is on whole arrays, so a million rows take seconds.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from recsys.audit import bias, candidate_checks, identity, leakage, sampling
from recsys.audit.check_registry import CHECKS, NEEDS, Check
from recsys.audit.evidence import Evidence, RawTable
from recsys.audit.evidence_reader import items_of, lists_of, read_side, shared_ids, side_of
from recsys.audit.findings import SEVERITIES, Audit, Finding
from recsys.conventions.decisions import AnyConventions, Conventions
from recsys.errors import CutoffError, InputError, RecsysError, RecsysWarning, UnknownNameError
from recsys.types import Float, Ids

__all__ = ["CHECKS", "SEVERITIES", "Audit", "Check", "Finding", "audit"]


def __dir__() -> list[str]:
    return __all__


def audit(
    train: Any,
    test: Any,
    lists: Any = None,
    items: Any = None,
    *,
    models: Mapping[str, Any] | None = None,
    popularity: Mapping[Any, float] | None = None,
    sampled: int | None = None,
    k: int = 10,
    metrics: Iterable[str] | None = None,
    conventions: AnyConventions = None,
    checks: Iterable[str] | None = None,
    examples: int = 5,
    columns: Mapping[str, Any] | None = None,
) -> Audit:
    """Look for leaks, impossible candidates, biases and wrong ids in a split and what was recommended for it.

    Args:
        train: what the model learnt from: a table with user, item and, if possible, time columns; a dict, a
            sparse matrix, Interactions.
        test: what is to be predicted, likewise.
        lists: what was recommended, as for recsys.evaluate; Factors and Scores are ranked here.
        items: the catalogue: item ids, or a table with an item column (and a popularity column).
        models: {name: lists} of several models, to see whether metrics agree on the best.
        popularity: {item: number} a baseline or metric used, to see what it was counted on.
        sampled: how many negatives were sampled for each user, where they were.
        k: the cut-off.
        metrics: names for the checks that evaluate; recall and NDCG at k unless given.
        conventions: as for recsys.evaluate.
        checks: names of the checks to run; all unless given.
        examples: how many to show for each finding.
        columns: names where detection fails: {"user": "uid", "item": "sku", "time": "when"}.

    >>> train = {"ann": ["a", "b"], "bob": ["b"]}
    >>> found = audit(train, {"ann": ["b"], "bob": ["c"]}, checks=["pairs_in_both", "cold_items"])
    >>> found.passed, [f.name for f in found]
    (False, ['pairs_in_both', 'cold_items'])
    """
    wanted = _wanted(checks)
    if type(k) is not int or k < 1:
        raise CutoffError(f"k={k!r} is not a positive whole number.", hint="Use k >= 1, such as k=10.")
    evidence, found = _evidence(train, test, lists, items, columns)
    if evidence is None:
        return Audit(found, ["reading"], dict.fromkeys(wanted, "the tables cannot be brought together"))
    evidence = replace(
        evidence,
        models={name: lists_of(each) for name, each in (models or {}).items()},
        k=k,
        metrics=tuple(metrics or ()),
        conventions=Conventions.of(conventions),
        n_examples=examples,
        sampled=sampled,
    )
    if popularity is not None:
        evidence = replace(evidence, given_popularity=_numbers(popularity, evidence.items))
    return _run(evidence, wanted, found)


def _run(e: Evidence, wanted: list[str], found: list[Finding]) -> Audit:
    skipped: dict[str, str] = {}
    ran: list[str] = []
    for name in wanted:
        check = CHECKS[name]
        missing = [NEEDS[n][0] for n in check.needs if not NEEDS[n][1](e)]
        if missing:
            skipped[name] = missing[0]
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RecsysWarning)  # what they say is a finding of its own
                made = check.run(e)
        except RecsysError as error:
            skipped[name] = str(error)
            continue
        ran.append(name)
        several = [] if made is None else [made] if isinstance(made, Finding) else list(made)
        found += [replace(finding, area=check.area) for finding in several]
    facts = {
        "train_rows": len(e.train), "test_rows": len(e.test), "users": e.n_users, "items": e.n_items,
        "k": e.k,
    }  # fmt: skip
    return Audit(found, ran, skipped, facts)


def _wanted(checks: Iterable[str] | None) -> list[str]:
    if checks is None:
        areas = [area.__name__ for area in (identity, leakage, candidate_checks, sampling, bias)]
        return sorted(CHECKS, key=lambda name: areas.index(CHECKS[name].run.__module__))
    names = [checks] if isinstance(checks, str) else list(checks)
    for name in names:
        if name not in CHECKS:
            raise UnknownNameError("check", name, CHECKS)
    return names


def _evidence(
    train: Any, test: Any, lists: Any, items: Any, columns: Mapping[str, Any] | None
) -> tuple[Evidence | None, list[Finding]]:
    raw: dict[str, RawTable] = {}
    found: list[Finding] = []
    for name, data in (("train", train), ("test", test)):
        raw[name], seen = read_side(data, name, columns)
        found += seen
    clocks = {name: r.clock.kind for name, r in raw.items() if r.clock is not None}
    if len(set(clocks.values())) > 1:
        found.append(_clocks(clocks))
        raw = {name: r._replace(clock=None) for name, r in raw.items()}
    ranked = lists_of(lists)
    catalogue, numbers = items_of(items, columns)
    kinds = _kinds(raw, ranked, catalogue)
    if kinds is not None:
        return None, [*found, kinds]
    users = shared_ids([raw["train"].users, raw["test"].users])
    both = shared_ids(
        [raw["train"].items, raw["test"].items, *([catalogue] if catalogue is not None else [])]
    )
    ticks = [r.clock.tick for r in raw.values() if r.clock is not None and r.clock.tick is not None]
    unit = min(ticks) if ticks else None
    given = None
    if numbers is not None and catalogue is not None:
        given = np.zeros(len(both))
        given[both.code_of(catalogue.values)] = numbers
    clock = raw["train"].clock
    made = Evidence(
        raw, users, both, side_of(raw["train"], users, both, unit),
        side_of(raw["test"], users, both, unit), ranked=ranked, catalogue=catalogue, given_popularity=given,
        clock=clock if clock is None or unit is None else replace(clock, tick=unit),
    )  # fmt: skip
    return made, found


def _kinds(raw: Mapping[str, RawTable], ranked: Any, catalogue: Ids | None) -> Finding | None:
    """Ids that are numbers in one table and text in another: nothing could be compared."""
    tables = {
        "train": (raw["train"].users, raw["train"].items),
        "test": (raw["test"].users, raw["test"].items),
    }
    if ranked is not None and hasattr(ranked, "cases"):
        tables["lists"] = (ranked.cases, ranked.items)
    if catalogue is not None:
        tables["items"] = (tables["train"][0], catalogue)
    for at, column in enumerate(("user", "item")):
        kinds = {name: ids[at].kind for name, ids in tables.items() if len(ids[at])}
        if len(set(kinds.values())) > 1:
            said = ", ".join(f"{kind} in {name}" for name, kind in kinds.items())
            return Finding(
                "ids_of_different_kinds",
                "error",
                f"{column} ids are {said}: none of them would match",
                1,
                tuple(tables[name][at].name(0) for name in kinds),
                "Make them the same, for example with .astype(str) on both sides.",
                {"column": column, **kinds},
            )
    return None


def _clocks(kinds: Mapping[str, str]) -> Finding:
    """Dates with a zone on one side and without on the other, or numbers: they have no common order."""
    words = {"number": "numbers", "plain": "dates without a time zone", "zoned": "dates with a time zone"}
    said = " and ".join(f"{words[kind]} in {name}" for name, kind in kinds.items())
    return Finding(
        "times_of_different_kinds",
        "error",
        f"times are {said}, which cannot be compared",
        1,
        (),
        "Write both sides the same way.",
        dict(kinds),
    )


def _numbers(given: Mapping[Any, float], items: Ids) -> Float:
    if not hasattr(given, "items"):
        raise InputError(f"popularity came as {type(given).__name__}.", hint="Pass {item: number}.")
    table = dict(given.items())
    return np.array([float(table.get(i, 0.0)) for i in items.values.tolist()])
