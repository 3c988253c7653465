"""Which metrics the best items of each user are enough for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recsys
from recsys.conventions.decisions import Conventions
from recsys.errors import NotDefinedError
from recsys.evaluation.in_pieces.pieces import check_on_lists, why_not_on_lists
from recsys.metrics.registry import METRICS, parse_all
from worlds.lists import World, known_of

pytestmark = pytest.mark.filterwarnings("ignore::recsys.errors.TieWarning")
RULES = {"max_grade": 3}
N_USERS = 6


@st.composite
def catalogues(draw: st.DrawFn) -> dict[str, Any]:
    """Factors with many ties, ids in any order, and what may not be recommended."""
    n_items = draw(st.integers(1, 25))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    numbers = rng.permutation(1000)[:n_items]
    text = draw(st.booleans())
    items = [f"i{n}" if text else int(n) for n in numbers]
    users = [f"u{n}" if text else n for n in range(N_USERS)]
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    factors = rng.integers(-1, 2, (N_USERS + n_items, 2)).astype(dtype)
    if draw(st.booleans()):
        factors *= dtype(0.1)  # sums that are rounded

    def some(most: int) -> list[Any]:
        return [items[i] for i in rng.permutation(n_items)[: rng.integers(0, most + 1)]]

    truth = {u: {i: float(rng.integers(1, 4)) for i in some(4)} or {items[0]: 1.0} for u in users}
    choices: dict[str, Any] = {}
    if draw(st.booleans()):
        choices["seen"] = {u: some(5) for u in users}
    if draw(st.booleans()):
        choices["exclude"] = some(3)
    if draw(st.integers(0, 3)) == 0:
        choices["eligible"] = {u: some(n_items) for u in users}
    return {
        "users": (users, factors[:N_USERS]),
        "items": (items, factors[N_USERS:]),
        "bias": rng.integers(-1, 2, n_items) * 0.5 if draw(st.booleans()) else None,
        "truth": truth,
        "choices": choices,
        "k": draw(st.integers(1, 6)),
    }


def model_of(world: dict[str, Any]) -> recsys.Factors:
    (users, user_factors), (items, item_factors) = world["users"], world["items"]
    return recsys.Factors(user_factors, item_factors, user_ids=users, item_ids=items, item_bias=world["bias"])


def on_lists(k: int) -> list[str]:
    """Every metric of the registry that lists are enough for."""
    requests = [f"{name}@{k}" for name, metric in METRICS.items() if metric.at_k != "never"]
    conventions = Conventions.of(RULES)
    return [str(r) for r in parse_all(requests, None) if why_not_on_lists(r, conventions) is None]


@given(world=catalogues())
def test_lists_of_a_scan_have_its_values(world):
    k, choices, (items, _) = world["k"], world["choices"], world["items"]
    whole = model_of(world)
    lists = recsys.recommend(whole, k, **choices)

    weights = dict.fromkeys(world["users"][0], 1.0), dict.fromkeys(items, 1.0)
    known = known_of(World({}, world["truth"], k, items, *weights, {}))
    asked = {
        **known.keywords(),
        "items": {"worth": {item: float(len(kind)) for item, kind in known.kinds.items()}},
        "intents": "worth",
        "conventions": RULES,
        **choices,
    }
    del asked["catalogue"]
    one = recsys.evaluate(whole, world["truth"], on_lists(k), **asked)
    two = recsys.evaluate(lists, world["truth"], on_lists(k), **asked, catalogue=items)
    assert {n: v.hex() for n, v in two.items()} == {n: v.hex() for n, v in one.items()}
    assert two.per_case.ids.tolist() == one.per_case.ids.tolist()
    for name, column in one.per_case.columns.items():
        assert two.per_case.columns[name].tobytes() == column.tobytes(), name


@pytest.mark.parametrize(
    ("metric", "rules", "reason"),
    [
        ("auc", {}, "compares the relevant items with every candidate"),
        ("mrr", {}, "no cut-off"),
        ("r_precision", {}, "no cut-off"),
        ("coverage", {}, "no cut-off"),
        ("ndcg@5", {"ties": "expected"}, "behind the last place"),
        ("ndcg@5", {"judged_only": "yes"}, "places below the first k, which unjudged items leave"),
    ],
)
def test_what_needs_more_than_lists_is_refused_with_the_reason(metric, rules, reason):
    with pytest.raises(NotDefinedError, match=reason):
        check_on_lists(parse_all(metric, None), Conventions.of(rules))


@pytest.mark.parametrize("ties", ["by_id_desc", "expected", "best"])
def test_refused_rules_for_ties_would_give_other_values(ties):
    """All four items tie, and the lists cannot say so."""
    lists = recsys.recommend(recsys.Factors([[1.0]], np.ones((4, 1))), 2)
    whole = recsys.evaluate(
        recsys.Factors([[1.0]], np.ones((4, 1))), {0: [3]}, ["recall@2"], conventions={"ties": ties}
    )
    assert recsys.evaluate(lists, {0: [3]}, ["recall@2"], conventions={"ties": ties}) != whole
