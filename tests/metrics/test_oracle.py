"""The oracle itself, compared with values computed by hand or printed in the literature."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given

from oracles.ranking import NAMES, NEED_CANDIDATES, RefusedError, Request, evaluate, resolve, score
from recsys.conventions.decisions import Conventions
from worlds.lists import worlds

PLAIN = Conventions()
LIST = [1, 5, 3, 8, 2]
TRUTH = {3: 1, 8: 1, 10: 1}


def value(
    name,
    ranking=LIST,
    truth=TRUTH,
    k=None,
    *,
    n_items=None,
    full_ranking=False,
    weights=None,
    own=None,
    **rules,
):
    """One case under the default conventions but `rules`."""
    return score(
        name, own or {}, k, ranking, truth, PLAIN.but(**rules),
        n_items=n_items, full_ranking=full_ranking, item_weights=weights,
    )  # fmt: skip


# hits at places 3 and 4 of five, three relevant items
@pytest.mark.parametrize(
    ("name", "k", "rules", "expected"),
    [
        ("hits", 5, {}, 2),
        ("hits", 3, {}, 1),
        ("hits", None, {}, 2),
        ("hit", 2, {}, 0),
        ("hit", 3, {}, 1),
        ("precision", 5, {}, 2 / 5),
        ("precision", 10, {}, 2 / 10),
        ("precision", 10, {"precision_over": "list"}, 2 / 5),
        ("precision", 10, {"precision_over": "min"}, 2 / 3),
        ("precision", 2, {"precision_over": "min"}, 0),
        ("precision", None, {}, 2 / 5),
        ("precision", None, {"precision_over": "min"}, 2 / 3),
        ("recall", 5, {}, 2 / 3),
        ("recall", 3, {}, 1 / 3),
        ("recall", 2, {"recall_over": "min"}, 0),
        ("recall", 3, {"recall_over": "min"}, 1 / 3),
        ("capped_recall", 4, {}, 2 / 3),
        ("f", 5, {}, 2 * (2 / 5) * (2 / 3) / (2 / 5 + 2 / 3)),
        ("mrr", None, {}, 1 / 3),
        ("mrr", 2, {}, 0),
        ("map", 5, {}, 5 / 18),
        ("map", None, {}, 5 / 18),
        ("map", 3, {}, 1 / 9),
        ("map", 2, {}, 0),
        ("map", 5, {"ap_over": "hits"}, 5 / 12),
        ("map", 5, {"ap_over": "relevant"}, 5 / 18),
        ("map", 5, {"ap_over": "k"}, 1 / 6),
        ("map", 10, {"ap_over": "list"}, 5 / 18),
        ("map", 10, {"ap_over": "k"}, 1 / 12),
        ("map", None, {"ap_over": "k"}, 1 / 6),
        ("mar", 5, {}, 5 / 18),
        ("mar", 3, {}, 1 / 9),
        ("r_precision", None, {}, 1 / 3),
        ("judged", 5, {}, 2 / 5),
        ("judged", 10, {}, 2 / 5),
        ("dcg", 5, {}, 1 / 2 + 1 / math.log2(5)),
        ("dcg", 5, {"discount": "reciprocal"}, 1 / 3 + 1 / 4),
        ("dcg", 5, {"discount": "log2_max2"}, 1 / math.log2(3) + 1 / 2),
        ("dcg", 5, {"discount": (1, 1, 0.5)}, 0.5),
        ("ndcg", 5, {}, (1 / 2 + 1 / math.log2(5)) / (1 + 1 / math.log2(3) + 1 / 2)),
        ("ndcg", 3, {}, (1 / 2) / (1 + 1 / math.log2(3) + 1 / 2)),
        ("ndcg", 5, {"discount": "reciprocal"}, (7 / 12) / (11 / 6)),
        ("ndcg", 5, {"discount": "reciprocal", "ideal": "k"}, (7 / 12) / (137 / 60)),
        ("ndcg", 10, {"discount": "reciprocal", "ideal": "k"}, (7 / 12) / (7381 / 2520)),
        ("ndcg", None, {"discount": "reciprocal", "ideal": "k"}, (7 / 12) / (137 / 60)),
        ("ndcg", 2, {"ideal": "all"}, 0),
        ("ndcg", 3, {"discount": "reciprocal", "ideal": "all"}, (1 / 3) / (11 / 6)),
        ("rbp", None, {}, 0.2 * (0.8**2 + 0.8**3)),
        ("rbp", 3, {}, 0.2 * 0.8**2),
        ("err", None, {}, (1 / 2) / 3 + (1 / 4) / 4),
        ("bpref", None, {}, 2 / 3),
        ("iprec", None, {}, 2 / 4),
        ("eleven_point", None, {}, 8 * (1 / 2) / 11),  # 0.7 x 3 + 0.9 is a little less than 3
        ("set_precision", None, {}, 2 / 5),
        ("set_recall", None, {}, 2 / 3),
        ("set_f", None, {}, 1 / 2),
        ("set_map", None, {}, 4 / 15),
        ("set_relative_precision", None, {}, 2 / 3),
        ("inf_ap", None, {}, (1 / 3 + 1 / 4 + (1 / 4) * (1.00001 / 1.00002)) / 3),
        ("bpm", 10, {}, 1 / 3),
        ("bpm", 2, {}, 0),
        ("sdcg", 2, {}, 0),
        ("sdcg", 3, {}, (1 / 2) / (1 + 1 / math.log2(3) + 1 / 2)),
        ("sdcg", 3, {"max_grade": 4}, (1 / 8) / (1 + 1 / math.log2(3) + 1 / 2)),
        ("graded_rbp", 3, {}, 0.2 * 0.8**2),
    ],
)
def test_one_list_worked_out_on_paper(name, k, rules, expected):
    assert value(name, k=k, **rules) == pytest.approx(expected, rel=1e-14, abs=0)


def test_parameters_of_a_metric_move_its_value():
    assert value("f", k=5, own={"beta": 2}) == pytest.approx(5 * (2 / 5) * (2 / 3) / (4 * 2 / 5 + 2 / 3))
    assert value("rbp", own={"p": 0.5}) == 0.5 * (0.25 + 0.125)
    assert score("map", {"over": "hits"}, 5, LIST, TRUTH, PLAIN) == pytest.approx(5 / 12)
    assert value("iprec", own={"recall": 0}) == value("iprec", own={"recall": 0.6}) == 1 / 2
    assert value("iprec", own={"recall": 0.8}) == 0
    assert value("set_f", own={"beta": 4}) == value("f", own={"beta": 2})
    assert value("bpm", k=10, own={"target": 2}) == 2 / 4
    assert value("graded_rbp", truth={3: 1, 8: 3}, own={"p": 0.5}) == 0.5 * (0.25 + 3 * 0.125)


def test_adaptive_readers_and_ideal_lists():
    # going on from places 1, 2, 3 with (2/3)^2, (3/4)^2, (3/4)^2: at the third one of two wanted is found
    looked_at = [1, 4 / 9, 1 / 4, 9 / 64]
    by_hand = (looked_at[2] + looked_at[3]) / sum(looked_at)
    assert value("inst", own={"depth": 4}) == pytest.approx(by_hand, rel=1e-14)
    # the ideal list is 8, 3, 10: both hold one item at depth 3, and two from depth 4 on
    graded, p = {3: 1, 8: 2, 10: 1}, 0.95
    common = p**2 * (1 / 3) * 1 + p**3 * (2 / 4) + p**4 * (2 / 5)
    best = 1 + p + p**2 + p**3 * (3 / 4) + p**4 * (3 / 5)
    assert value("compat", truth=graded) == pytest.approx(common / best, rel=1e-14)
    weights = 1 + p + p**2 + p**3 + p**4
    assert value("compat", truth=graded, own={"over": "weights"}) == pytest.approx(
        common / weights, rel=1e-14
    )
    assert value("compat", truth=graded, k=3) == pytest.approx(p**2 / 3 / (1 + p + p**2), rel=1e-14)


def test_croft_metzler_strohman_average_precision():
    # "Search Engines: Information Retrieval in Practice", figures 8.2 and 8.3: 0.62, 0.44, MAP 0.53
    first = dict.fromkeys((1, 3, 6, 9, 10), 1)
    second = dict.fromkeys((2, 5, 7), 1)
    ranking = list(range(1, 11))
    assert value("map", ranking, first) == float(
        (1 + Fraction(2, 3) + Fraction(1, 2) + Fraction(4, 9) + Fraction(1, 2)) / 5
    )
    assert round(value("map", ranking, first), 2) == 0.62
    assert round(value("map", ranking, second), 2) == 0.44
    overall, _ = evaluate({"a": ranking, "b": ranking}, {"a": first, "b": second}, Request("map"), PLAIN)
    assert round(overall, 2) == 0.53


def test_discounted_gain_of_the_encyclopedia():
    # Wikipedia, "Discounted cumulative gain": grades 3 2 3 0 1 2, two more (3, 2) never shown
    ranking = list("abcdef")
    truth = dict(zip("abcdefgh", (3, 2, 3, 0, 1, 2, 3, 2), strict=True))
    assert value("dcg", ranking, truth, 6) == pytest.approx(6.861, abs=5e-4)
    assert value("ndcg", ranking, truth, 6) == pytest.approx(0.785, abs=5e-4)
    shown_only = {item: truth[item] for item in ranking}
    assert value("ndcg", ranking, shown_only, 6) == pytest.approx(0.961, abs=5e-4)


@pytest.mark.parametrize(
    ("gain", "gains"),
    [
        ("grade", (3, 1)),
        ("binary", (1, 1)),
        ("exp2", (7, 1)),
        ("exp2_next", (15, 3)),
        ({1: 10, 3: 0.5}, (0.5, 10)),
        (lambda g: g * g, (9, 1)),
    ],
)
def test_gains(gain, gains):
    assert value("dcg", ["x", "b", "a"], {"a": 3, "b": 1}, gain=gain, discount="reciprocal") == pytest.approx(
        gains[1] / 2 + gains[0] / 3
    )
    best = sorted(gains, reverse=True)
    assert value("ndcg", ["a"], {"a": 3, "b": 1}, 2, gain=gain, discount="reciprocal") == pytest.approx(
        gains[0] / (best[0] + best[1] / 2)
    )
    assert value("ndcg", ["a"], {"a": 3, "b": 1}, 2, gain=gain, ideal="list") == gains[0] / best[0]


def test_chapelle_expected_reciprocal_rank():
    # grades 2, 1, 0 of at most 2: stops with 3/4, then 1/4
    truth = {"a": 2, "b": 1, "c": 0}
    assert value("err", ["a", "b", "c"], truth) == 3 / 4 + (1 / 4) * (1 / 4) / 2
    assert value("err", ["c", "b", "a"], truth) == (1 / 4) / 2 + (3 / 4) * (3 / 4) / 3
    assert value("err", ["a"], truth, max_grade=4) == 3 / 16


def test_moffat_zobel_rank_biased_precision():
    # hits at 1, 2, 4, 8 of 9 with p = 0.8: 0.2 (1 + 0.8 + 0.8^3 + 0.8^7)
    ranking = list(range(1, 10))
    assert value("rbp", ranking, {1: 1, 2: 1, 4: 1, 8: 1}) == pytest.approx(
        0.2 * (1 + 0.8 + 0.512 + 0.2097152)
    )


def test_buckley_voorhees_bpref():
    # relevant r, judged other n, unjudged u: r n r n r u; R = 4 (one never found), N = 3
    ranking = ["r1", "n1", "r2", "n2", "u", "r3"]
    truth = {"r1": 1, "r2": 1, "r3": 1, "r4": 1, "n1": 0, "n2": 0, "n3": 0}
    assert value("bpref", ranking, truth) == float((1 + (1 - Fraction(1, 3)) + (1 - Fraction(2, 3))) / 4)
    # above more others than there are relevant items the term is 0, not negative
    assert value("bpref", ["n1", "n2", "n3", "r1"], {"r1": 1, "n1": 0, "n2": 0, "n3": 0}) == 0
    assert value("bpref", ["r1"], {"r1": 1}) == 1


def test_relevance_needs_a_grade_above_zero_and_the_threshold():
    truth = {"a": 0, "b": 2, "c": 4}
    assert value("precision", ["a", "b", "c"], truth, 3) == 2 / 3
    assert value("precision", ["a", "b", "c"], truth, 3, relevant_from=3) == 1 / 3
    assert value("precision", ["a", "b", "c"], truth, 3, relevant_from=-1) == 2 / 3
    assert value("ndcg", ["b", "c"], truth, 2, relevant_from=3) == pytest.approx(1 / math.log2(3))
    assert value("judged", ["a", "b", "x"], truth, 3) == 2 / 3


def test_repeats():
    twice = ["a", "a", "b"]
    truth = {"a": 1, "b": 1, "c": 1}
    assert value("hits", twice, truth, 3) == 2
    assert value("hits", twice, truth, 3, duplicates="all") == 3
    assert value("map", twice, truth, 3) == float((1 + Fraction(2, 3)) / 3)
    assert value("map", twice, truth, 3, duplicates="all") == 1
    with pytest.raises(RefusedError):
        value("hits", twice, truth, 3, duplicates="error")


# complete rankings: a relevant item at 1 and 4 of five candidates
@pytest.mark.parametrize(
    ("name", "k", "expected"),
    [
        ("average_rank", None, 5 / 2),
        ("percentile_rank", None, 3 / 8),
        ("expected_percentile_rank", None, (1 * 0 + 2 * 3 / 4) / (1 + 2)),
        ("auc", None, 4 / 6),
        ("gauc", None, 4 / 6),
        ("pauc", 1, 1 / 2),
        ("pauc", 2, 2 / 4),
        ("pauc", 3, 4 / 6),
        ("pauc", 9, 4 / 6),
    ],
)
def test_whole_rankings(name, k, expected):
    truth = {"a": 1, "d": 2, "elsewhere": 1}
    assert value(name, list("abcde"), truth, k, full_ranking=True) == expected
    assert value(name, list("bc"), truth, k, full_ranking=True) is None
    with pytest.raises(RefusedError):
        value(name, list("abcde"), truth, k)


def test_whole_rankings_at_the_edge():
    assert value("percentile_rank", ["a"], {"a": 1}, full_ranking=True) == 0
    assert value("average_rank", ["a"], {"a": 1}, full_ranking=True) == 1
    assert value("auc", ["a"], {"a": 1}, full_ranking=True) is None
    assert value("average_rank", ["a"], {}, full_ranking=True, no_truth="zero") is None
    assert value("average_rank", [], {"a": 1}, full_ranking=True) is None


def test_gauc_weighs_its_cases():
    lists = {1: list("abc"), 2: list("abcdef")}
    truth = {1: {"b": 1}, 2: {"a": 1, "b": 1}}
    whole = {"full_ranking": True}
    assert evaluate(lists, truth, Request("gauc"), PLAIN, **whole)[0] == pytest.approx((3 * 0.5 + 6 * 1) / 9)
    by_relevant = Request("gauc", None, {"weight": "relevant"})
    assert evaluate(lists, truth, by_relevant, PLAIN, **whole)[0] == pytest.approx((1 * 0.5 + 2 * 1) / 3)
    assert evaluate(lists, truth, Request("auc"), PLAIN, **whole)[0] == 0.75


def test_confusion_of_the_cut():
    # ten items, four shown: tp 2, fp 2, fn 1, tn 5
    truth = {"a": 1, "b": 1, "z": 1}
    assert value("accuracy", list("abcd"), truth, 4, n_items=10) == 7 / 10
    assert value("mcc", list("abcd"), truth, 4, n_items=10) == pytest.approx(8 / math.sqrt(4 * 3 * 7 * 6))
    # of six places asked for, the four that were filled: two more are wrong if empty places count
    assert value("accuracy", list("abcd"), truth, 6, n_items=10) == 7 / 10
    assert value("accuracy", list("abcd"), truth, 6, n_items=10, accuracy_over="k") == 5 / 10
    with_empty = 2 * 3 - 4 * 1
    assert value("mcc", list("abcd"), truth, 6, n_items=10, accuracy_over="k") == pytest.approx(
        with_empty / math.sqrt(6 * 3 * 7 * 4)
    )
    assert value("mcc", list("abcd"), dict.fromkeys("abcd", 1), 4, n_items=4) == 0
    assert value("mcc", list("ab"), dict.fromkeys("ab", 1), 2, n_items=4) == 1
    with pytest.raises(RefusedError):
        value("mcc", list("abcd"), truth, 4)


def test_tie_rules_order_a_group():
    tied = [("b", 1.0), ("c", 1.0), ("a", 1.0), ("top", 2.0)]
    truth = {"b": 1, "a": 3}

    def order(ties):
        (only,) = resolve(tied, truth, PLAIN.but(ties=ties))
        return "".join(item[0] for item in only)

    assert order("by_id") == "tabc"
    assert order("by_id_desc") == "tcba"
    assert order("given") == "tbca"
    assert value("dcg", tied, truth, ties="best") == pytest.approx(3 / math.log2(3) + 1 / 2)
    assert value("dcg", tied, truth, ties="worst") == pytest.approx(1 / 2 + 3 / math.log2(5))


def test_mcsherry_najork_expectations():
    # one relevant item among four tied: each place with probability 1/4
    tied = [(item, 0.5) for item in "abcd"]
    truth = {"c": 1}
    expected = {"ties": "expected"}
    assert value("precision", tied, truth, 1, **expected) == 1 / 4
    assert value("mrr", tied, truth, **expected) == float(
        (1 + Fraction(1, 2) + Fraction(1, 3) + Fraction(1, 4)) / 4
    )
    assert value("ndcg", tied, truth, 2, **expected) == pytest.approx((1 + 1 / math.log2(3)) / 4)
    assert value("average_rank", tied, truth, full_ranking=True, **expected) == 2.5
    assert value("auc", tied, truth, full_ranking=True, **expected) == 0.5
    # two relevant among three tied; orders rrn, rnr, nrr
    two = [(item, 0.5) for item in "abc"]
    assert value("map", two, {"a": 1, "b": 1}, **expected) == float(
        (1 + (1 + Fraction(2, 3)) / 2 + (Fraction(1, 2) + Fraction(2, 3)) / 2) / 3
    )
    assert value("hit", two, {"a": 1, "b": 1}, 1, **expected) == 2 / 3
    for name in ("bpref", "pauc"):
        assert value(name, ["a", "b"], {"a": 1}, full_ranking=True, **expected) == 1
        with pytest.raises(RefusedError):
            value(name, two, {"a": 1}, full_ranking=True, **expected)


def test_expected_ties_within_two_groups():
    ranking = [("a", 2.0), ("x", 2.0), ("b", 1.0), ("y", 1.0)]
    truth = {"a": 1, "b": 1}
    by_hand = [Fraction(1), Fraction(1, 2)]  # the first hit stands at 1 or at 2
    assert value("mrr", ranking, truth, ties="expected") == float(sum(by_hand) / 2)
    assert value("hits", ranking, truth, 3, ties="expected") == 1.5


@pytest.mark.parametrize(
    ("case", "no_truth", "no_list", "expected"),
    [
        ("no truth", "skip", "empty", None),
        ("no truth", "zero", "empty", 0),
        ("no list", "skip", "empty", 0),
        ("no list", "skip", "skip", None),
        ("neither", "skip", "empty", None),
        ("neither", "zero", "skip", None),
        ("neither", "zero", "empty", 0),
        ("only grade 0", "skip", "empty", None),
        ("only grade 0", "unjudged", "empty", 0),
        ("no truth", "unjudged", "empty", None),
        ("neither", "unjudged", "empty", None),
        ("no truth", "error", "empty", RefusedError),
        ("no list", "skip", "error", RefusedError),
    ],
)
def test_populations(case, no_truth, no_list, expected):
    ranking, truth = {
        "no truth": (["a"], {}),
        "no list": ([], {"a": 1}),
        "neither": ([], {}),
        "only grade 0": (["a"], {"a": 0}),
    }[case]
    for name in ("precision", "ndcg", "hits", "map"):
        if expected is RefusedError:
            with pytest.raises(RefusedError):
                value(name, ranking, truth, 3, no_truth=no_truth, no_list=no_list)
        else:
            assert value(name, ranking, truth, 3, no_truth=no_truth, no_list=no_list) == expected


def test_aggregates():
    lists = {1: ["a", "b"], 2: ["x"], 3: ["a"]}
    truth = {1: {"a": 1}, 2: {"x": 1, "y": 1, "z": 1}, 4: {"a": 1}}
    overall, per_case = evaluate(lists, truth, Request("precision", 2), PLAIN)
    assert per_case == {1: 0.5, 2: 0.5, 3: None, 4: 0}
    assert overall == 1 / 3
    overall, _ = evaluate(lists, truth, Request("recall", 2), PLAIN.but(average="pooled"))
    assert overall == 2 / 5
    overall, _ = evaluate(lists, truth, Request("recall", 2), PLAIN, case_weights={1: 2, 2: 3, 3: 9, 4: 0})
    assert overall == (2 * 1 + 3 / 3) / 5
    overall, _ = evaluate(lists, truth, Request("f", 2), PLAIN.but(f1_of="means"))
    p, r = 1 / 3, (1 + 1 / 3) / 3
    assert overall == pytest.approx(2 * p * r / (p + r))
    overall, _ = evaluate(lists, truth, Request("gmap"), PLAIN)
    assert overall == pytest.approx((1 * (1 / 3) * 1e-5) ** (1 / 3))
    overall, _ = evaluate(lists, truth, Request("gmap", None, {"eps": 0.1}), PLAIN)
    assert overall == pytest.approx((1 * (1 / 3) * 0.1) ** (1 / 3))
    assert evaluate({}, {1: {}}, Request("recall", 2), PLAIN) == (None, {1: None})


def test_an_ideal_of_ones_needs_gains_of_at_most_one():
    assert value("ndcg", ["a"], {"a": 3}, 1, ideal="k", gain="binary") == 1
    with pytest.raises(RefusedError):
        evaluate({1: ["b"]}, {1: {"a": 3}}, Request("ndcg", 1), Conventions(ideal="k"))


def test_weighted_items():
    weights = {"a": 0.5, "b": 2, "c": 4}
    truth = {"a": 1, "b": 3, "c": 1}
    assert value("hits", ["a", "x", "b"], truth, 3, weights=weights) == 2.5
    assert value("recall", ["a", "x", "b"], truth, 3, weights=weights) == 2.5 / 6.5
    rules = {"weights": weights, "discount": "reciprocal"}
    assert value("dcg", ["a", "x", "b"], truth, 3, **rules) == 0.5 + 6 / 3
    assert value("ndcg", ["a", "x", "b"], truth, 2, **rules) == 0.5 / (6 + 4 / 2)
    with pytest.raises(RefusedError):
        value("map", ["a"], truth, 3, weights=weights)


def test_items_outside_the_catalogue():
    lists, truth = {1: ["a", "b"]}, {1: {"a": 1, "new": 1}}
    recall = Request("recall", 2)
    assert evaluate(lists, truth, recall, PLAIN, catalogue="abc")[0] == 0.5
    assert evaluate(lists, truth, recall, PLAIN.but(unknown_items="drop"), catalogue="abc")[0] == 1
    with pytest.raises(RefusedError):
        evaluate(lists, truth, recall, PLAIN.but(unknown_items="error"), catalogue="abc")


def test_measures_of_trec_eval():
    ranking, truth = ["x", "a", "y", "b"], {"a": 2, "b": 1, "c": 1, "y": 0}
    third, fifth = 1 / math.log2(3), 1 / math.log2(5)
    for what, expected in (("listed", 4), ("relevant", 3), ("not_relevant", 1)):
        assert score("count", {"what": what}, None, ranking, truth, PLAIN) == expected
    assert score("utility", {"missed": -2.0}, None, ranking, truth, PLAIN) == 2 - 2 - 2
    assert score("r_precision_at", {"multiple": 1.0}, None, ranking, truth, PLAIN) == pytest.approx(1 / 3)
    assert value("binary_g", ranking, truth, None) == pytest.approx((third + 1 / 2) / 3)
    assert value("g", ranking, truth, None) == pytest.approx((2 * third + 1 / 2) / 4)
    ends = 2 * third / (2 + third), (2 * third + fifth) / (2 + third + 1 / 2)
    assert value("ndcg_rel", ranking, truth, None) == pytest.approx((ends[0] + 2 * ends[1]) / 3)
    assert value("r_ndcg", ranking, truth, None) == pytest.approx((0 + 2 * third / (2 + third + 1 / 2)) / 2)


def test_a_preset_may_decide_per_metric():
    rules = Conventions(per_metric={"map": {"ap_over": "hits"}})
    assert score("map", {}, 5, LIST, TRUTH, rules) == pytest.approx(5 / 12)
    assert score("recall", {}, 5, LIST, TRUTH, rules) == pytest.approx(2 / 3)


def test_every_metric_has_a_paper_value():
    source = Path(__file__).read_text(encoding="utf-8")
    assert [name for name in sorted(NAMES) if f'"{name}"' not in source] == []


@given(world=worlds(repeats=False, complete=True))
def test_the_oracle_keeps_within_bounds(world):
    for name in sorted(NAMES - {"hits", "dcg", "average_rank", "graded_rbp", "count", "utility"}):
        whole = {"full_ranking": True, "n_items": len(world.item_weights) + 9}
        k = None if name in NEED_CANDIDATES - {"pauc"} else world.k
        overall, per_case = evaluate(world.lists, world.truth, Request(name, k), PLAIN, **whole)
        values = [value for value in (overall, *per_case.values()) if value is not None]
        assert all(-1 <= value <= 1 + 1e-15 for value in values), name
        assert name == "mcc" or all(value >= 0 for value in values), name
        assert sorted(per_case) == world.cases
