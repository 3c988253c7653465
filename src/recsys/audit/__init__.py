"""audit(): what is wrong with a split, or with the lists evaluated on it.

Every check is one function in the registry `CHECKS`. It runs if its inputs are there; the report names those
that did not run. All work is on whole arrays, so a million rows take seconds.
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
from recsys.audit.evidence_reader import (
    read_catalogue,
    read_lists_or_source,
    read_table,
    shared_ids,
    to_split_side,
)
from recsys.audit.findings import SEVERITIES, Audit, Finding
from recsys.conventions.decisions import AnyConventions, Conventions
from recsys.errors import CutoffError, InputError, RecsysError, RecsysWarning, UnknownNameError
from recsys.types import Ids

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
    """Look for leaks, impossible candidates, biases and wrong ids in a split and in its recommendations.

    Args:
        train: what the model learnt from: a table with user, item and, if possible, time columns; a dict, a
            sparse matrix, Interactions.
        test: what is to be predicted, in the same forms.
        lists: what was recommended, as for recsys.evaluate; Factors and Scores are ranked by the audit.
        items: the catalogue: item ids, or a table with an item column (and a popularity column).
        models: {name: lists} of several models, to see whether metrics agree on the best.
        popularity: {item: number} as used by a baseline or metric, to see what it was counted on.
        sampled: how many negatives were sampled for each user, if any.
        k: the cut-off.
        metrics: names for the checks that evaluate; by default recall and NDCG at k.
        conventions: as for recsys.evaluate.
        checks: names of the checks to run; by default all.
        examples: how many to show for each finding.
        columns: names of columns that are not detected: {"user": "uid", "item": "sku", "time": "when"}.

    Returns:
        The findings, most severe first, with the checks that ran and those that were skipped.

    Raises:
        CutoffError: k is not a positive whole number.
        UnknownNameError: a check does not exist.

    >>> train = {"ann": ["a", "b"], "bob": ["b"]}
    >>> found = audit(train, {"ann": ["b"], "bob": ["c"]}, checks=["pairs_in_both", "cold_items"])
    >>> found.passed, [f.name for f in found]
    (False, ['pairs_in_both', 'cold_items'])
    """
    names = _check_names(checks)
    if type(k) is not int or k < 1:
        raise CutoffError(f"k={k!r} is not a positive whole number.", hint="Use k >= 1, such as k=10.")
    evidence, findings = _gather_evidence(train, test, lists, items, columns)
    if evidence is None:
        return Audit(findings, ["reading"], dict.fromkeys(names, "the tables cannot be brought together"))
    evidence = replace(
        evidence,
        models={
            name: read_lists_or_source(lists_of_model) for name, lists_of_model in (models or {}).items()
        },
        k=k,
        metrics=tuple(metrics or ()),
        conventions=Conventions.of(conventions),
        n_examples=examples,
        sampled=sampled,
    )
    if popularity is not None:
        if not hasattr(popularity, "items"):
            raise InputError(f"popularity came as {type(popularity).__name__}.", hint="Pass {item: number}.")
        by_item = dict(popularity.items())
        numbers = np.array([float(by_item.get(i, 0.0)) for i in evidence.items.values.tolist()])
        evidence = replace(evidence, given_popularity=numbers)
    return _run_checks(evidence, names, findings)


def _run_checks(e: Evidence, names: list[str], findings: list[Finding]) -> Audit:
    """Run the checks whose needs are met, and add their findings to those of reading the tables."""
    skipped: dict[str, str] = {}
    ran: list[str] = []
    for name in names:
        check = CHECKS[name]
        missing = [NEEDS[n][0] for n in check.needs if not NEEDS[n][1](e)]
        if missing:
            skipped[name] = missing[0]
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RecsysWarning)  # the audit reports the same as findings
                result = check.run(e)
        except RecsysError as error:
            skipped[name] = str(error)
            continue
        ran.append(name)
        new = [] if result is None else [result] if isinstance(result, Finding) else list(result)
        findings += [replace(finding, area=check.area) for finding in new]
    facts = {
        "train_rows": len(e.train), "test_rows": len(e.test), "users": e.n_users, "items": e.n_items,
        "k": e.k,
    }  # fmt: skip
    return Audit(findings, ran, skipped, facts)


def _check_names(checks: Iterable[str] | None) -> list[str]:
    """The names of the checks to run, by area; an unknown one is an error."""
    if checks is None:
        areas = [area.__name__ for area in (identity, leakage, candidate_checks, sampling, bias)]
        return sorted(CHECKS, key=lambda name: areas.index(CHECKS[name].run.__module__))
    names = [checks] if isinstance(checks, str) else list(checks)
    for name in names:
        if name not in CHECKS:
            raise UnknownNameError("check", name, CHECKS)
    return names


def _gather_evidence(
    train: Any, test: Any, lists: Any, items: Any, columns: Mapping[str, Any] | None
) -> tuple[Evidence | None, list[Finding]]:
    """The tables over shared ids, or None where their ids cannot be compared; and what reading them found."""
    raw: dict[str, RawTable] = {}
    findings: list[Finding] = []
    for name, data in (("train", train), ("test", test)):
        raw[name], new = read_table(data, name, columns)
        findings += new
    clocks = {name: r.clock.kind for name, r in raw.items() if r.clock is not None}
    if len(set(clocks.values())) > 1:
        findings.append(_different_time_kinds(clocks))
        raw = {name: r._replace(clock=None) for name, r in raw.items()}
    ranked = read_lists_or_source(lists)
    catalogue, numbers = read_catalogue(items, columns)
    mismatch = _different_id_kinds(raw, ranked, catalogue)
    if mismatch is not None:
        return None, [*findings, mismatch]
    users = shared_ids([raw["train"].users, raw["test"].users])
    item_ids = shared_ids(
        [raw["train"].items, raw["test"].items, *([catalogue] if catalogue is not None else [])]
    )
    ticks = [r.clock.tick for r in raw.values() if r.clock is not None and r.clock.tick is not None]
    unit = min(ticks) if ticks else None
    popularity = None
    if numbers is not None and catalogue is not None:
        popularity = np.zeros(len(item_ids))
        popularity[item_ids.code_of(catalogue.values)] = numbers
    clock = raw["train"].clock
    evidence = Evidence(
        raw, users, item_ids, to_split_side(raw["train"], users, item_ids, unit),
        to_split_side(raw["test"], users, item_ids, unit),
        ranked=ranked, catalogue=catalogue, given_popularity=popularity,
        clock=clock if clock is None or unit is None else replace(clock, tick=unit),
    )  # fmt: skip
    return evidence, findings


def _different_id_kinds(raw: Mapping[str, RawTable], ranked: Any, catalogue: Ids | None) -> Finding | None:
    """Ids that are numbers in one table and text in another, so that none would match."""
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
            text = ", ".join(f"{kind} in {name}" for name, kind in kinds.items())
            return Finding(
                "ids_of_different_kinds",
                "error",
                f"{column} ids are {text}: none of them would match",
                1,
                tuple(tables[name][at].name(0) for name in kinds),
                "Make them the same, for example with .astype(str) on both sides.",
                {"column": column, **kinds},
            )
    return None


def _different_time_kinds(kinds: Mapping[str, str]) -> Finding:
    """Numbers, dates with a time zone and dates without one, which have no common order."""
    kind_names = {
        "number": "numbers",
        "plain": "dates without a time zone",
        "zoned": "dates with a time zone",
    }
    text = " and ".join(f"{kind_names[kind]} in {name}" for name, kind in kinds.items())
    return Finding(
        "times_of_different_kinds",
        "error",
        f"times are {text}, which cannot be compared",
        1,
        (),
        "Write both sides the same way.",
        dict(kinds),
    )
