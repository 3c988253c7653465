"""audit(): what is wrong with a split, or with the lists evaluated on it.

Every check is one function in the registry `CHECKS`. It runs if its inputs are there; the report names those
that did not run. All work is on whole arrays, so a million rows take seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from recsys.audits import bias, candidate_checks, identity, leakage  # noqa: F401 - their checks register
from recsys.audits.check_registry import AREAS, CHECKS, NEEDS
from recsys.audits.evidence import Evidence, gather_evidence
from recsys.audits.findings import Audit, Finding
from recsys.conventions.decisions import AnyConventions, Conventions
from recsys.errors import CutoffError, InputError, RecsysError, RecsysWarning, hush
from recsys.ranks.open_ranking import open_ranking


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
    for name, value in (("checks", checks), ("metrics", metrics)):
        named = [value] if isinstance(value, str) else value
        if named is not None and not (
            isinstance(named, list | tuple | set | frozenset) and all(isinstance(n, str) for n in named)
        ):
            raise InputError(f"{name}= came as {type(value).__name__}.", hint="Pass a list of names.")
    counts: tuple[tuple[str, Any], ...] = (("examples", examples), ("sampled", sampled))
    for name, number in counts:
        if number is not None and (type(number) is not int or not 0 <= number < 1 << 63):
            given = number if isinstance(number, int | float) else type(number).__name__
            raise InputError(f"{name}={given} is not a whole number.", hint=f"Use {name}=5.")
    if models is not None and not isinstance(models, Mapping):
        raise InputError(f"models came as {type(models).__name__}.", hint="Pass {name: lists}.")
    if checks is None:
        names = sorted(CHECKS.load_plugins(), key=lambda name: AREAS.index(CHECKS[name].area))
    else:
        names = [CHECKS.find(name).name for name in ([checks] if isinstance(checks, str) else checks)]
    if type(k) is not int or k < 1:
        raise CutoffError(f"k={k!r} is not a positive whole number.", hint="Use k >= 1, such as k=10.")
    evidence, findings = gather_evidence(train, test, lists, items, columns)
    if evidence is None:
        return Audit(findings, ["reading"], dict.fromkeys(names, "the tables cannot be brought together"))
    evidence = replace(
        evidence,
        models={name: open_ranking(data) for name, data in (models or {}).items()},
        k=k,
        metrics=(metrics,) if isinstance(metrics, str) else tuple(metrics or ()),
        conventions=Conventions.of(conventions),
        n_examples=examples,
        sampled=sampled,
    )
    if popularity is not None:
        if not hasattr(popularity, "items"):
            raise InputError(f"popularity came as {type(popularity).__name__}.", hint="Pass {item: number}.")
        by_item = dict(popularity.items())
        try:
            numbers = np.array([float(by_item.get(i, 0.0)) for i in evidence.items.values.tolist()])
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(
                f"popularity holds something that is not a number ({error}).", hint="Pass {item: number}."
            ) from None
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
            with hush(RecsysWarning):  # the audit reports the same as findings
                result = check.run(e)
                new = [result] if isinstance(result, Finding) else list(result or ())
        except RecsysError as error:
            skipped[name] = str(error)
            continue
        ran.append(name)
        findings += [replace(finding, name=name, area=check.area) for finding in new]
    facts = {
        "train_rows": len(e.train), "test_rows": len(e.test), "users": e.n_users, "items": e.n_items,
        "k": e.k,
    }  # fmt: skip
    return Audit(findings, ran, skipped, facts)
