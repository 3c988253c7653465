"""Under ties="best" and ties="worst" a metric has the best and the worst value of any order, or refuses."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import recsys
from oracles.best_and_worst_order import lowest_and_highest, n_orders
from oracles.ranking import parameters_to_try
from recsys.conventions.decisions import Conventions
from recsys.errors import ConventionError
from recsys.metrics import metric as register
from recsys.metrics.expectation import _precision_in_group
from recsys.metrics.registry import METRICS, Request
from worlds.lists import World, known_of, worlds

pytestmark = pytest.mark.filterwarnings("ignore::recsys.errors.TieWarning")

EXAMPLES = settings.default.max_examples
# Nothing is known of their best and worst order.
NO_ORDER = ("awrf", "bpm", "ee_d", "ee_l", "ee_r", "g", "inst", "ndcg_rel", "r_ndcg")
PER_CASE = sorted(n for n, metric in METRICS.items() if metric.kind != "catalogue" and n not in NO_ORDER)
MORE_PARAMETERS: dict[str, list[dict[str, Any]]] = {
    "novelty": [{"cold": "drop"}, {"cold": "zero"}, {"over": "events"}],
    "surprisal": [{"over": "k"}],
    "average_popularity": [{"over": "users"}, {"over": "events"}],
    "epc": [{"weight": "none"}, {"weight": "geometric", "p": 0.5}],
    "ild": [{"distance": "jaccard"}, {"missing": "zero"}],
    "unexpectedness": [{"missing": "zero"}],
    "serendipity": [{"expected": "own"}],
    "overlap": [{"over": "union"}],
    "rbo": [{"p": 0.5}, {"form": "sum"}],
    "user_coverage": [{"least": 3.0}],
    "miscalibration": [{"by": "kind", "divergence": "js"}],
    "alpha_dcg": [{"alpha": 0.9}],
    "nrbp": [{"beta": 0.75}],
    "f": [{"beta": 2.0}],
    "rbp": [{"p": 0.5}],
    "gauc": [{"weight": "relevant"}],
    "iprec": [{"recall": 0.0}, {"recall": 1.0}],
    "compat": [{"p": 0.5}, {"over": "weights"}],
}


def requests(k: int, names: list[str] = PER_CASE) -> list[str]:
    out = []
    for name in names:
        cuts = {"optional": (None, k), "required": (k,), "never": (None,)}[METRICS[name].at_k]
        for params, cut in itertools.product(
            [*parameters_to_try(name), *MORE_PARAMETERS.get(name, [])], cuts
        ):
            inside = ", ".join(f"{n}={v}" for n, v in params.items())
            out.append(name + (f"({inside})" if inside else "") + ("" if cut is None else f"@{cut}"))
    return [str(Request.parse(text)) for text in out]


def columns(lists, world: World, asked: list[str], known: dict[str, Any], rules: Conventions):
    result = recsys.evaluate(lists, dict(world.truth), asked, conventions=rules, full_ranking=True, **known)
    return {name: result.values_of(name) for name in asked}


def check(world: World, asked: list[str], known: dict[str, Any], rules: Conventions) -> None:
    """Worst, expected and best against all orders, for lists in two orders of their rows."""
    assume(n_orders(world.lists) <= 24)
    low, high = lowest_and_highest(
        world.lists, lambda lists: columns(lists, world, asked, known, rules.but(ties="given"))
    )
    backwards = {case: entries[::-1] for case, entries in world.lists.items()}
    for ties in ("worst", "best"):
        found = columns(dict(world.lists), world, asked, known, rules.but(ties=ties))
        again = columns(backwards, world, asked, known, rules.but(ties=ties))
        for name in asked:
            lower = (ties == "best") == (METRICS[Request.parse(name).metric.name].better == "lower")
            true = (low if lower else high)[name]
            np.testing.assert_allclose(found[name], true, rtol=1e-9, atol=1e-9, err_msg=f"{name} {ties}")
            np.testing.assert_allclose(again[name], found[name], rtol=1e-12, atol=1e-12, err_msg=name)
    fair = [name for name in asked if Request.parse(name).metric.tied.ties in ("linear", "own")]
    mean = columns(dict(world.lists), world, fair, known, rules.but(ties="expected"))
    for name in fair:
        assert not (mean[name] > high[name] + 1e-9).any(), name
        assert not (mean[name] < low[name] - 1e-9).any(), name


def keywords(world: World) -> dict[str, Any]:
    return {**known_of(world).keywords(), "catalogue": sorted(world.item_weights)}


def has_a_settled_order(world: World) -> bool:
    """No item shares its score with its own repeat, which has no first place then."""
    for entries in world.lists.values():
        scores = [score for _, score in entries]
        items = [item for item, _ in entries]
        if any(items.count(i) > 1 and scores.count(s) > 1 for i, s in entries):
            return False
    return True


@pytest.mark.parametrize("part", range(3))
@settings(max_examples=max(EXAMPLES // 10, 3))
@given(world=worlds(scored=True, repeats=False), relevant_from=st.sampled_from([None, 2.0]))
def test_every_metric_has_the_best_and_the_worst_value_of_any_order(part, world, relevant_from):
    asked = requests(world.k, PER_CASE[part::3])
    longest = max(map(len, world.truth.values()), default=0)
    if world.k + longest > len(world.item_weights):  # k places and the truth may not fit into the catalogue
        asked = [name for name in asked if "accuracy_over=k" not in name]
    check(world, asked, keywords(world), Conventions(relevant_from=relevant_from))


@settings(max_examples=max(EXAMPLES // 10, 3))
@given(world=worlds(scored=True), duplicates=st.sampled_from(["first", "all", "collapse"]))
def test_lists_that_repeat_items(world, duplicates):
    assume(duplicates == "collapse" or has_a_settled_order(world))
    names = [n for n in PER_CASE if METRICS[n].bounds[1] > 1 or duplicates != "all"]
    names = [n for n in names if "candidates" not in METRICS[n].needs and "catalogue" not in METRICS[n].needs]
    check(world, requests(world.k, names), keywords(world), Conventions(duplicates=duplicates))


@settings(max_examples=EXAMPLES // 4)
@given(
    world=worlds(scored=True, repeats=False),
    gain=st.sampled_from(
        ["grade", "exp2", {0.0: 5, 0.1: 1, 0.5: 2, 1.0: 4, 1.5: 0, 2.0: 1, 2.25: 1, 3.0: 3, 4.0: 0}]
    ),
    discount=st.sampled_from(["log2", (0.2, 1.0, 0.0, 0.5, 0.7), lambda places: (places % 3) / 3]),
)
def test_weights_of_items_and_gains_and_discounts_that_do_not_fall(world, gain, discount):
    # The ideal list of ndcg falls.
    names = [name for name in PER_CASE if METRICS[name].truth.weighted and name != "ndcg"]
    asked = [f"{name}{cut}" for name in names for cut in ("", f"@{world.k}")]
    rules = Conventions(gain=gain, discount=discount)
    check(world, asked, {"item_weights": dict(world.item_weights)}, rules)
    check(world, asked, {}, rules)


@settings(max_examples=EXAMPLES // 4)
@given(world=worlds(scored=True, repeats=False))
def test_a_group_of_items_is_ordered_in_its_own_favour(world):
    assume(n_orders(world.lists) <= 24)
    half = dict(zip(world.item_weights, itertools.cycle("xy"), strict=False))
    known = {**keywords(world), "items": {"half": half, "price": known_of(world).price}, "by": "half"}
    names = ("hits", "recall", "dcg", "map", "judged", "value(of=price)", "shown_value(of=price)", "novelty")
    asked = [f"{name}@{world.k}" for name in (*names, "average_popularity", "user_coverage", "unseen")]

    def of_groups(lists, ties):
        result = recsys.evaluate(lists, dict(world.truth), asked, conventions={"ties": ties}, **known)
        return {
            f"{label}/{name}": stratum.partial.per_case.columns[name]
            for label, stratum in result.partial.strata.items()
            for name in asked
        }

    low, high = lowest_and_highest(world.lists, lambda lists: of_groups(lists, "given"))
    for ties in ("worst", "best"):
        for name, found in of_groups(dict(world.lists), ties).items():
            lower = (ties == "best") == ("average_popularity" in name)
            true = (low if lower else high)[name]
            np.testing.assert_allclose(found, true, rtol=1e-9, atol=1e-9, err_msg=f"{name} {ties}")


@pytest.mark.parametrize("seed", range(3))
def test_a_model_and_the_lists_it_makes_have_the_same_best_and_worst(seed):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 3, (6, 9)).astype(float)
    truth = {
        user: {int(i): float(rng.integers(0, 4)) for i in rng.choice(9, 4, replace=False)}
        for user in range(6)
    }
    lists = {user: list(enumerate(row.tolist())) for user, row in enumerate(scores)}
    known = {"item_weights": {item: float(rng.integers(1, 6)) for item in range(9)}}
    asked = ["recall@3", "ndcg@3", "dcg", "hits@4"]
    plain = ["map(ap_over=hits)@3", "err@3", "mrr", "bpref", "auc", "mpr", "pauc@2", "judged@3"]
    for ties, (names, about) in itertools.product(("best", "worst"), ((asked, known), (plain, {}))):
        options = {"conventions": {"ties": ties}, **about}
        model = recsys.evaluate(recsys.Scores(scores), truth, names, **options)
        ready = recsys.evaluate(lists, truth, names, full_ranking=True, **options)
        for name in names:
            np.testing.assert_allclose(model.values_of(name), ready.values_of(name), rtol=1e-12, err_msg=name)


def tied(n: int) -> dict[int, list[tuple[str, float]]]:
    return {1: [(letter, 1.0) for letter in "abcdefghijklmnop"[:n]]}


VECTORS = {letter: [float(at % 3), float(at % 5)] for at, letter in enumerate("abcdefghijklmnop")}


@pytest.mark.parametrize("ties", ["best", "worst"])
def test_more_than_eight_tied_items_are_refused_where_nothing_proves_an_order(ties):
    known: dict[str, Any] = {"embeddings": VECTORS, "conventions": {"ties": ties}}
    assert recsys.evaluate(tied(8), {1: {"a"}}, "ild@4", **known)["ild@4"] >= 0
    with pytest.raises(
        ConventionError, match=f"no known {ties} order of equal scores: 9 items of user 1 share"
    ):
        recsys.evaluate(tied(9), {1: {"a"}}, "ild@4", **known)
    # No group crosses the cut, or the items' own values prove an order.
    assert recsys.evaluate(tied(9), {1: {"a"}}, "ild@9", **known)["ild@9"] >= 0
    price = {letter: float(at) for at, letter in enumerate("abcdefghijklmnop")}
    result = recsys.evaluate(
        tied(16), {1: {"a"}}, "shown_value@2", items={"price": price}, conventions={"ties": ties}
    )
    assert result["shown_value@2"] == (29.0 if ties == "best" else 1.0)


@pytest.mark.parametrize("ties", ["best", "worst"])
def test_intents_of_many_alike_items_are_searched_and_of_many_different_ones_refused(ties):
    rules = {"conventions": {"ties": ties}}
    truth = {1: [*"abcdefghijklmnop"]}
    alike = {1: {letter: ["xy"[at % 2]] for at, letter in enumerate("abcdefghijklmnop")}}
    different = {1: {letter: [letter] for letter in "abcdefghijklmnop"}}
    first, second = 1.0, 1.0 if ties == "best" else 0.5
    value = recsys.evaluate(tied(16), truth, "alpha_dcg@2", intents=alike, **rules)["alpha_dcg@2"]
    weight = 1 / np.log2(3)
    assert value == pytest.approx((first + second * weight) / (2 * (1 + 0.5 * weight)))
    with pytest.raises(ConventionError, match="at most 8 different items"):
        recsys.evaluate(tied(16), truth, "alpha_dcg@2", intents=different, **rules)
    assert recsys.evaluate(tied(8), truth, "alpha_dcg@2", intents=different, **rules)["alpha_dcg@2"] > 0
    assert recsys.evaluate(tied(16), truth, "p_ia@2", intents=different, **rules)["p_ia@2"] > 0


def test_items_without_a_value_and_users_without_a_profile_do_not_stand_in_the_way():
    vectors = {letter: [1.0, float(at)] for at, letter in enumerate("abcdefghijklmnop")}
    lists = {user: [(letter, 1.0) for letter in "abcdefghijklmnop"] for user in (1, 2)}
    lists[3] = [("a", 1.0), ("b", 1.0), ("x", 1.0)]  # x has no vector, so all choices of the three are tried
    profiles = {1: [1.0, 0.0], 3: [1.0, 0.0]}
    found = recsys.evaluate(
        lists,
        {1: {"a"}, 2: {"a"}, 3: {"a"}},
        "alignment@2",
        embeddings=vectors,
        profiles=profiles,
        conventions={"ties": "best"},
    ).values_of("alignment@2")
    assert found[0] == pytest.approx((1 + 1 / np.sqrt(2)) / 2)
    assert np.isnan(found[1])
    assert found[2] == pytest.approx(1.0)


def test_a_metric_of_lists_that_says_nothing_of_its_order_is_refused():
    @register(
        "first_letter",
        formula="1 if the first item is a",
        reference="a test",
        needs=("lists",),
        population="listed",
    )
    def first_letter(reading, k, conventions):
        """Whether a is first."""
        del k, conventions
        first = reading.listed.place == 1
        return (reading.facts.ids.values[reading.listed.item[first]] == "a").astype(float)

    try:
        lists, truth = {1: [("b", 1.0), ("a", 1.0), ("c", 0.5), ("d", 0.5)]}, {1: {"a"}}
        with pytest.raises(ConventionError, match="it is not known how the order moves it"):
            recsys.evaluate(lists, truth, "first_letter", conventions={"ties": "best"})
        lists[1][0] = ("b", 2.0)
        assert (
            recsys.evaluate(lists, truth, "first_letter@2", conventions={"ties": "best"})["first_letter@2"]
            == 0
        )
    finally:
        del METRICS["first_letter"]


@pytest.mark.parametrize("name", sorted(METRICS))
def test_a_metric_declares_a_way_that_is_known(name):
    order = METRICS[name].tied.tie_order
    assert callable(order) or order in ("relevance", "number", "items", "set", "unknown")
    assert (order == "unknown") == (METRICS[name].kind == "catalogue" or name in NO_ORDER)


@pytest.mark.parametrize("request_", ["bpm@3", "inst"])
@pytest.mark.parametrize("ties", ["best", "worst"])
def test_a_metric_whose_best_order_is_not_known_is_refused_where_there_are_ties(request_, ties):
    truth, rules = {1: {"a": 1, "b": 3}}, {"ties": ties}
    with pytest.raises(ConventionError, match=f"it is not known .* no {ties} one"):
        recsys.evaluate({1: [("a", 1.0), ("b", 1.0)]}, truth, request_, conventions=rules)
    untied = recsys.evaluate({1: [("a", 2.0), ("b", 1.0)]}, truth, request_, conventions=rules)
    assert untied[request_] == recsys.score_list(["a", "b"], truth[1], request_)


CATALOGUE = sorted(name for name, metric in METRICS.items() if metric.kind == "catalogue")


@pytest.mark.parametrize("name", CATALOGUE)
@pytest.mark.parametrize("ties", ["best", "worst"])
def test_metrics_of_all_lists_at_once_are_refused_where_the_order_matters(name, ties):
    options: dict[str, Any] = {
        "conventions": {"ties": ties},
        "items": {"kind": dict.fromkeys("abcd", "x")},
        "train": {1: ["a"]},
    }
    lists = {1: [("a", 2.0), ("b", 1.0), ("c", 1.0)], 2: [("d", 1.0)]}
    with pytest.raises(
        ConventionError, match=f"no known {ties} order of equal scores: it is about the lists of all"
    ):
        recsys.evaluate(lists, {1: {"a"}, 2: {"d"}}, f"{name}@2", **options)
    assert np.isfinite(recsys.evaluate(lists, {1: {"a"}, 2: {"d"}}, f"{name}@1", **options)[f"{name}@1"])
    plain = {**options, "conventions": {"ties": ties, "per_metric": {name: {"ties": "by_id"}}}}
    assert np.isfinite(recsys.evaluate(lists, {1: {"a"}, 2: {"d"}}, f"{name}@2", **plain)[f"{name}@2"])


@pytest.mark.parametrize("ties", ["best", "worst"])
def test_the_lists_of_a_model_do_not_say_who_shares_the_last_score(ties):
    scores = recsys.Scores([[1.0, 1.0, 0.0], [0.0, 1.0, 2.0]])
    options: dict[str, Any] = {"train": {0: [0], 1: [0, 1]}, "conventions": {"ties": ties}}
    assert recsys.evaluate(scores, {0: [0], 1: [1]}, "ndcg@1", **options)["ndcg@1"] >= 0
    with pytest.raises(ConventionError, match="which items share the last score is not kept"):
        recsys.evaluate(scores, {0: [0], 1: [1]}, ["ndcg@1", "novelty@1"], **options)


@pytest.mark.parametrize(
    ("ties", "order"), [("by_id", "abc"), ("by_id_desc", "cba"), ("given", "bca"), ("expected", "abc")]
)
def test_what_is_shown_of_equal_scores_follows_the_order_asked_for(ties, order):
    lists = {1: [("z", 2.0), ("b", 1.0), ("c", 1.0), ("a", 1.0)]}
    known: dict[str, Any] = {
        "train": {1: ["a", "z"], 2: ["a", "b", "z"], 3: ["a", "b", "c", "z"], 4: ["z"]},
        "embeddings": {"z": [1.0, 0.0], "a": [1.0, 0.0], "b": [0.0, 1.0], "c": [-1.0, 0.0]},
        "items": {"price": {"z": 0.0, "a": 1.0, "b": 2.0, "c": 4.0}},
        "reference": ["z", "c"],
        "catalogue": [*"abcz"],
    }
    asked = ["coverage@2", "cold_coverage(below=2)@2", "novelty@2", "diversity@2", "shown_value@2", "rbo@2"]
    shown = recsys.evaluate(lists, {1: {"a"}}, asked, conventions={"ties": ties}, **known)
    first = recsys.evaluate({1: ["z", *order]}, {1: {"a"}}, asked, **known)
    assert dict(shown) == dict(first)
    assert shown["shown_value@2"] == {"a": 1.0, "b": 2.0, "c": 4.0}[order[0]]


def test_a_debiased_sum_has_no_best_order():
    lists, truth = {1: [("a", 1.0), ("b", 1.0)]}, {1: {"a", "b"}}
    for ties in ("best", "worst"):
        with pytest.raises(ConventionError, match=f"there is no {ties} order of equal scores"):
            recsys.debias.evaluate(
                lists, truth, "recall@1", propensities={"a": 0.5, "b": 1}, conventions={"ties": ties}
            )


def test_item_weights_decide_whatever_the_order_of_the_rows():
    for rows in ([("a", 1.0), ("b", 1.0)], [("b", 1.0), ("a", 1.0)]):
        values = [
            recsys.evaluate(
                {1: rows},
                {1: ["a", "b"]},
                "recall@1",
                item_weights={"a": 1, "b": 5},
                conventions={"ties": ties},
            )["recall@1"]
            for ties in ("worst", "expected", "best")
        ]
        assert values == pytest.approx([1 / 6, 1 / 2, 5 / 6])


def test_average_precision_over_hits_may_gain_from_a_hit_beyond_the_cut():
    lists, truth = {1: [("x", 3.0), ("a", 2.0), ("b", 2.0), ("c", 2.0)]}, {1: ["a", "x"]}
    values = [
        recsys.evaluate(lists, truth, "map(ap_over=hits)@3", conventions={"ties": ties}).values_of(
            "map(ap_over=hits)@3"
        )[0]
        for ties in ("worst", "expected", "best")
    ]
    assert values == pytest.approx([5 / 6, (1 + 5 / 6 + 1) / 3, 1.0])


def test_the_expected_precision_of_equal_scores_is_added_exactly():
    """Whatever sum() does: from Python 3.12 on it adds floats in another way."""
    for above, tied, relevant, before in itertools.product(range(5), range(2, 12), range(1, 4), range(3)):
        share, slope = relevant / tied, (relevant - 1) / (tied - 1)
        terms = [share * (before + 1 + (i - 1) * slope) / (above + i) for i in range(1, tied + 1)]
        exact = float(sum(map(Fraction, terms), Fraction(0)))
        assert _precision_in_group(above, tied, float(relevant), before, None) == exact
