"""comparison.by: each group is compared as its users alone are, and corrected over the groups."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import recsys
from recsys.errors import NotDefinedError, UnknownNameError

METRICS = ["hit@1", "f1@2", "coverage@2"]
COUNTRIES = ["FR", "DE", "US"]


def world(n=300, missing=6):
    users = {
        "country": {u: COUNTRIES[u % 3] for u in range(n - missing)},
        "age": {u: u % 2 for u in range(n)},
    }
    return {u: {u, u + n} for u in range(n)}, users


def model(share, seed, n=300, by=("country",), only=None, **options):
    """A model that finds the first relevant item of a share of each country's users."""
    truth, users = world(n)
    rng = np.random.default_rng(seed)
    lists = {u: [u if rng.random() < share.get(COUNTRIES[u % 3], 0.3) else -1, u + n + 1] for u in truth}
    keep = truth if only is None else only
    return recsys.evaluate(
        {u: lists[u] for u in keep},
        {u: truth[u] for u in keep},
        METRICS,
        users=users,
        by=list(by) or None,
        **options,
    )


OLD, NEW = ({}, 0), ({"FR": 0.05, "DE": 0.9, "US": 0.35}, 1)


@pytest.fixture(scope="module")
def compared():
    return recsys.compare({"old": model(*OLD), "new": model(*NEW)}, "old")


def test_a_group_is_compared_as_its_users_alone(compared):
    rows = compared.by["country"]
    assert [row.group for row in rows if row.metric == "hit@1"] == ["DE", "FR", "US", "(no group)"]
    for at, label in enumerate(COUNTRIES):
        only = [u for u in range(294) if u % 3 == at]
        alone = recsys.compare({"old": model(*OLD, only=only), "new": model(*NEW, only=only)}, "old")
        for metric in ("hit@1", "f1@2"):
            row, own = rows[label, metric], alone["new", metric]
            assert (row.value, row.baseline_value, row.difference) == pytest.approx(
                (own.value, own.baseline_value, own.difference)
            )
            assert (row.wins, row.ties, row.losses, row.n_units) == (
                own.wins,
                own.ties,
                own.losses,
                own.n_units,
            )
            assert row.p_value == pytest.approx(own.p_value)


def test_verdicts_and_intervals_hold_together_over_the_groups(compared):
    rows = compared.by["country"]
    assert rows["DE", "hit@1"].verdict.kind == "better"
    assert rows["FR", "hit@1"].verdict.kind == "worse"
    assert rows["US", "hit@1"].verdict.kind == "no_difference"
    own = [row for row in rows if row.metric == "hit@1"]
    raw = [row.p_value for row in own]
    assert [row.adjusted_p for row in own] == pytest.approx(recsys.stats.adjust(raw, "holm").tolist())
    assert rows["US", "hit@1"].interval.high > rows["US", "hit@1"].own_interval.high
    assert compared["new", "hit@1"].verdict.kind == "better"  # all users together, as without groups


def test_who_loses_most_comes_first(compared):
    losers = compared.by["country"].by_lift()
    assert [row.group for row in losers if row.group != "(no group)"] == ["FR", "US", "DE"]
    assert all(a.difference <= b.difference for a, b in itertools.pairwise(losers))


def test_the_table_prints_and_exports(compared):
    rows = compared.by["country"]
    assert "hold together over 4 groups" in str(rows)
    frame = rows.to_frame()
    assert frame.columns[0] == "country"
    assert len(frame) == len(rows) == 8
    assert rows.to_markdown().startswith("| country | model |")
    with pytest.raises(UnknownNameError):
        _ = rows["XX", "hit@1"]


def test_users_without_a_group_are_left_out_on_request():
    models = {"old": model(*OLD), "new": model(*NEW)}
    rows = recsys.compare(models, "old", missing="drop").by["country"]
    assert {row.group for row in rows} == set(COUNTRIES)
    with pytest.raises(recsys.errors.InputError, match="6 users have no country"):
        _ = recsys.compare(models, "old", missing="error").by


def test_several_groupings_and_the_best_of_several_models():
    by = ("country", ("country", "age"))
    models = {name: model(*of, by=by) for name, of in {"a": OLD, "b": NEW, "c": ({}, 5)}.items()}
    compared = recsys.compare(models)
    assert [*compared.by] == ["country", "country x age"]
    rows = compared.by["country"]
    assert {row.model for row in rows} == {compared.rows[0].model}
    raw = [row.p_value for row in rows if row.metric == "hit@1"]
    adjusted = [row.adjusted_p for row in rows if row.metric == "hit@1"]
    assert all(p >= min(1.0, 3 * r) - 1e-12 for r, p in zip(raw, adjusted, strict=True) if r == min(raw))


def test_groups_of_items_and_several_runs():
    truth, _ = world()
    items = {"kind": {i: "even" if i % 2 == 0 else "odd" for i in range(-2, 902)}}
    models = {
        name: [
            recsys.evaluate(
                {u: [u if np.random.default_rng(s * 1000 + u).random() < share else -1] for u in truth},
                truth, ["recall@1"], by="kind", items=items,
            )
            for s in range(4)
        ]
        for name, share in (("old", 0.3), ("new", 0.7))
    }  # fmt: skip
    rows = recsys.compare(models, "old").by["kind"]
    assert {(row.group, row.verdict.kind) for row in rows} == {("even", "better"), ("odd", "better")}
    assert rows["even", "recall@1"].runs is not None


def test_a_group_without_values_is_named():
    truth, _ = world()
    lists = {u: [u if u % 3 else -1] for u in truth}
    old = recsys.evaluate(lists, truth, ["hit@1"], by=dict.fromkeys(truth, "all"))
    lists |= {u: [u] for u in range(100)}
    new = recsys.evaluate(lists, truth, ["hit@1"], by={u: "all" if u else "one" for u in truth})
    rows = recsys.compare({"old": old, "new": new}, "old").by["group"]
    assert rows.without == {"one": 1}
    assert "one (1 user)" in str(rows)
    assert rows["all", "hit@1"].n_units == 299


def test_groups_that_share_nothing_are_refused():
    truth, _ = world()
    models = {
        name: recsys.evaluate(
            {u: [u if u % n else -1] for u in truth}, truth, ["hit@1"], by=dict.fromkeys(truth, name)
        )
        for name, n in (("old", 2), ("new", 3))
    }
    with pytest.raises(NotDefinedError, match="no group of 'group' has values of every model"):
        _ = recsys.compare(models, "old").by


def test_results_without_groups_have_none():
    models = {"old": model(*OLD, by=()), "new": model(*NEW, by=())}
    with pytest.raises(NotDefinedError, match="no groups in common"):
        _ = recsys.compare(models, "old").by
