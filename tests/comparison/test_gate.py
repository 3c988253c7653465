"""The gate passes models shown to be no worse and fails all others, whatever direction a metric has."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats

import recsys
from recsys.comparison.history import record
from recsys.errors import ConventionError, InputError, NotDefinedError, RecsysError
from recsys.records.arrays import GroupKey
from recsys.records.facts import Caution, note
from worlds.metric_values import MARGINALS, correlated, evaluation_of


@cache
def world(share, n=2000, seed=0):
    rng = np.random.default_rng(seed)
    truth = {u: {u % 50} for u in range(n)}
    lists = {u: [u % 50 if rng.random() < share else 99, 98, 97] for u in truth}
    return recsys.evaluate(lists, truth, ["hit@1", "ndcg@3"])


def old_model():
    return world(0.5)


def same_model():
    return world(0.5, seed=1)


def worse_model():
    return world(0.4, seed=2)


def better_model():
    return world(0.6, seed=3)


def test_verdicts():
    assert recsys.gate(better_model(), old_model(), {"hit@1": "1%", "ndcg@3": "1%"}).passed
    assert not recsys.gate(worse_model(), old_model(), {"hit@1": "1%"})
    assert recsys.gate(old_model(), old_model(), {"hit@1": "1%"})
    assert not recsys.gate(old_model(), old_model(), {"hit@1": 0})
    assert recsys.gate(better_model(), old_model(), {"hit@1": 0})
    mixed = recsys.gate(better_model(), old_model(), {"hit@1": "1%", "ndcg@3": 0})
    assert [c.metric for c in mixed.checks] == ["hit@1", "ndcg@3"]


def test_it_tends_to_the_shifted_paired_t_test():
    a, b = same_model().values_of("hit@1"), old_model().values_of("hit@1")
    absolute = recsys.gate(same_model(), old_model(), {"hit@1": 0.03}).checks[0]
    expected = scipy_stats.ttest_rel(a + 0.03, b, alternative="greater")
    assert expected.pvalue < absolute.p_value < expected.pvalue + 0.005
    bound = expected.confidence_interval(0.95).low - 0.03
    assert bound - 0.001 < absolute.bound < bound
    relative = recsys.gate(same_model(), old_model(), {"hit@1": "6%"}).checks[0]
    p = scipy_stats.ttest_rel(a, 0.94 * b, alternative="greater").pvalue
    assert p < relative.p_value < p + 0.005


def test_few_users_fail():
    few = {u: {1} for u in range(3)}
    old = recsys.evaluate({u: [1] if u else [2] for u in few}, few, ["hit@1"])
    new = recsys.evaluate({u: [1] if u != 1 else [2] for u in few}, few, ["hit@1"])
    assert not recsys.gate(new, old, {"hit@1": "1%"})
    one, two = (recsys.evaluate({1: [item]}, {1: {1}}, ["hit@1"]) for item in (1, 2))
    said = str(recsys.gate(two, one, {"hit@1": "1%"}))
    assert "it may be -100.00%" in said
    assert "hit@1: 1% is too narrow a margin for 1 user: even identical lists need 299" in said
    assert "\n1 user, paired by id" in said


def test_lower_is_better_turns_the_direction():
    truth = {u: {0} for u in range(200)}

    def ranks(at):
        lists = {u: [*range(1, at + u % 2), 0, 20 + u % 3] for u in truth}
        return recsys.evaluate(lists, truth, ["average_rank"], full_ranking=True)

    assert recsys.gate(ranks(2), ranks(4), {"average_rank": 0})
    assert not recsys.gate(ranks(4), ranks(2), {"average_rank": "10%"})


def test_error_rate_at_the_margin():
    """A model worse by exactly the margin passes in at most 5 % of all trials (plus sampling error)."""
    rng = np.random.default_rng(5)
    truth = {u: {1} for u in range(400)}
    passed = 0
    for _ in range(200):
        old = recsys.evaluate({u: [1 if rng.random() < 0.5 else 2] for u in truth}, truth, ["hit@1"])
        new = recsys.evaluate({u: [1 if rng.random() < 0.45 else 2] for u in truth}, truth, ["hit@1"])
        passed += bool(recsys.gate(new, old, {"hit@1": 0.05}))
    assert passed <= scipy_stats.binom.ppf(0.999, 200, 0.05)


def test_outputs():
    made = recsys.gate(worse_model(), old_model(), {"hit@1": "1%"})
    assert json.loads(made.to_json())["checks"][0]["passed"] is False
    assert "not shown that it is no worse than 1%" in str(made)


def test_the_comment_says_the_verdict_first_and_what_to_do():
    passed = recsys.gate(better_model(), old_model(), {"hit@1": "1%"}).to_markdown()
    assert passed.startswith("### Recommendation quality: passed\n\nEvery metric passes.")
    margins = {"hit@1": "1%", "ndcg@3": 0.2}
    failed = recsys.gate(worse_model(), old_model(), margins).to_markdown()
    head, _, reason, *_ = failed.splitlines()
    assert head == "### Recommendation quality: FAILED"
    assert reason.startswith("- **hit@1**: not shown that it is no worse than 1%: it may be -")
    assert "exceeds the margin" in reason
    assert "- **ndcg@3**" not in failed
    (row,) = [line for line in failed.splitlines() if line.startswith("| ndcg@3 |")]
    bound = recsys.gate(worse_model(), old_model(), margins).checks[1].bound
    assert f"| {bound:+.4g} | above -0.2 | pass |" in row
    assert (
        failed.index("<details>") < failed.index("- 2,000 users, paired by id") < failed.index("</details>")
    )
    unsure = recsys.gate(same_model(), old_model(), {"hit@1": "1%"}).to_markdown()
    assert "No loss beyond the margin was seen, but one is not ruled out" in unsure
    no_gain = recsys.gate(old_model(), old_model(), {"hit@1": 0}).to_markdown()
    assert "above 0 | FAIL |" in no_gain
    assert "ask only that it is no worse" in no_gain


def test_the_comment_does_not_fold_cautions():
    compared = recsys.gate(better_model(), old_model(), {"hit@1": "1%"})
    comment = replace(compared, cautions=(Caution.of("code", "the truth differs."),)).to_markdown()
    assert comment.index("**caution: the truth differs. \\[code\\]**") < comment.index("<details>")
    assert comment.count("the truth differs") == 1


@pytest.mark.parametrize(
    ("hostile", "dangers"),
    [
        ("ping @everyone, @some-team and (@a/b)", ["@e", "@s", "@a"]),
        ("see www.example.org or https://example.org", ["www.", "://"]),
        ("write to a@example.org, mailto:b", ["a@e", "mailto:b"]),
    ],
)
def test_the_comment_mentions_nobody_and_links_nothing(hostile, dangers):
    """Sites that show Markdown link these wherever they stand, whatever is escaped."""
    compared = recsys.gate(better_model(), old_model(), {"hit@1": "1%"})
    said = note("said", text=hostile)
    checks = tuple(replace(check, notes=(said,)) for check in compared.checks)
    own = replace(compared, checks=checks, cautions=(Caution.of("code", hostile),), notes=(said,))
    comment = own.to_markdown()
    assert "| hit@1 |" in comment
    assert [danger for danger in dangers if danger in comment] == []
    assert hostile in comment.replace("\u200b", "")


def test_a_margin_that_no_model_can_fail_is_refused():
    """A forgotten % would pass anything; half of the old value, or an old value of 0, is no such mistake."""
    for margin, hint in (("1", "'1%'"), (5, "'5%'"), (0.6, "'0.6%'")):
        with pytest.raises(InputError, match=f"no model can fail the margin .*Did you mean {hint}"):
            recsys.gate(worse_model(), old_model(), {"hit@1": margin})
    with pytest.raises(InputError, match="no model can fail") as refused:
        recsys.gate(worse_model(), old_model(), {"hit@1": 150})
    assert "Did you mean" not in str(refused.value)
    half = 0.5 * old_model()["hit@1"]
    assert recsys.gate(worse_model(), old_model(), {"hit@1": half})
    nothing = world(0.0)
    assert not recsys.gate(nothing, old_model(), {"hit@1": half})
    assert recsys.gate(old_model(), nothing, {"hit@1": 0.01})
    # One hit of 50: the true value may well be four times as large, and so the margin is a demand.
    truth = {u: {1} for u in range(50)}
    rare = recsys.evaluate({u: [1 if u == 0 else 2] for u in truth}, truth, ["hit@1"])
    assert not recsys.gate(recsys.evaluate({u: [2] for u in truth}, truth, ["hit@1"]), rare, {"hit@1": 0.04})


def test_margins_reach_as_far_as_the_worst_value_in_the_direction_of_the_metric():
    truth = {u: {0} for u in range(200)}

    def result(at):
        lists = {u: [*range(1, at + u % 2), 0, *range(at + u % 2, 40)] for u in truth}
        return recsys.evaluate(
            lists, truth, ["average_rank", "dcg@40", "gini@5"], full_ranking=True, catalogue=40
        )

    old, new = result(3), result(5)
    assert recsys.gate(new, old, {"average_rank": 5})  # five places more; 3.5 is the old value
    high = old.ranges["average_rank"][1]
    with pytest.raises(InputError, match=rf"the value is 3.5 now, and the worst there is {high:g}"):
        recsys.gate(new, old, {"average_rank": high})
    with pytest.raises(InputError, match="margin 1 of dcg@40"):  # it has no greatest value
        recsys.gate(new, old, {"dcg@40": 1})
    with pytest.raises(InputError, match="margin 1 of gini@5"):  # one number of all lists
        recsys.gate(new, old, {"gini@5": 1})


def test_bad_input():
    for wrong in ("x", "-1%", "100%", float("nan"), -0.1):
        with pytest.raises(InputError, match="margin"):
            recsys.gate(same_model(), old_model(), {"hit@1": wrong})
    with pytest.raises(InputError, match="no metric"):
        recsys.gate(same_model(), old_model(), {})
    other = recsys.evaluate({1: [1]}, {1: {1}}, ["hit@1"], conventions="trec_eval")
    with pytest.raises(ConventionError):
        recsys.gate(other, old_model(), {"hit@1": "1%"})
    with pytest.raises(InputError, match="'the old result' is list, and results are compared"):
        recsys.gate(old_model(), [old_model()], {"hit@1": "1%"})
    with pytest.raises(InputError, match="recall@7"):
        recsys.gate(same_model(), old_model(), {"recall@7": "1%"})
    shown = recsys.evaluate({1: [1]}, {1: {1}}, ["coverage@1"])
    assert not recsys.gate(shown, shown, {"coverage@1": "1%"})  # of one user nothing is known
    with pytest.raises(InputError, match=r"no confidence of 0\.5"):
        recsys.gate(shown, shown, {"coverage@1": "1%"}, confidence=0.5)
    stranger = recsys.evaluate({-1: [1]}, {-1: {1}}, ["hit@1"])
    with pytest.raises(InputError, match="no user"):
        recsys.gate(stranger, old_model(), {"hit@1": "1%"})


def rated(seed, noise, n=300):
    rng = np.random.default_rng(seed)
    user = np.repeat(np.arange(n), rng.integers(1, 9, size=n))
    rating = np.random.default_rng(0).integers(1, 6, size=50 * n)[: len(user)].astype(float)
    table = pd.DataFrame({"user": user, "rating": rating})
    return recsys.evaluate_ratings(
        table.assign(prediction=rating + rng.normal(0, noise, len(user))), metrics=["rmse", "bias", "r2"]
    )


def test_what_is_pooled_is_gated_as_it_was_reported():
    """A pooled number is no mean of the users' values: gate and result must show the same one."""
    rng = np.random.default_rng(3)
    truth = {u: set(rng.choice(50, size=rng.integers(1, 8), replace=False).tolist()) for u in range(400)}
    old, new = (
        recsys.evaluate(
            {u: rng.permutation(50)[:10].tolist() for u in truth},
            truth,
            ["recall@10"],
            conventions={"average": "pooled"},
        )
        for _ in range(2)
    )
    found = recsys.gate(new, old, {"recall@10": "1%"}).checks[0]
    assert old["recall@10"] != pytest.approx(old.values_of("recall@10").mean(), rel=1e-3)
    assert (found.value, found.against) == pytest.approx((new["recall@10"], old["recall@10"]), rel=1e-12)
    assert found.change == pytest.approx(new["recall@10"] / old["recall@10"] - 1, rel=1e-9)


def test_pooled_ratings_are_gated_as_reported_and_what_is_never_compared_is_refused():
    old, new = rated(1, 1.0), rated(1, 0.9)
    assert new.per_case.ids.tolist() == old.per_case.ids.tolist()
    found = recsys.gate(new, old, {"rmse": "1%"}).checks[0]
    assert (found.value, found.against) == pytest.approx((new["rmse"], old["rmse"]), rel=1e-12)
    assert found.passed
    assert not recsys.gate(old, new, {"rmse": "1%"})
    for name in ("bias", "r2"):
        with pytest.raises(NotDefinedError, match=f"not compared on {name}"):
            recsys.gate(new, old, {name: "1%"})


def test_a_number_of_all_lists_is_gated_by_the_interval_of_compare():
    metrics = ["hit@5", "coverage@5", "gini@5", "gmap@5"]
    truth = {u: {u % 60} for u in range(400)}

    def result(n_items, seed, n_catalogue=2000):
        rng = np.random.default_rng(seed)
        lists = {u: rng.permutation(n_items)[:5].tolist() for u in truth}
        return recsys.evaluate(lists, truth, metrics, catalogue=n_catalogue)

    old, same, narrow = result(1500, 1), result(1500, 2), result(1100, 3)
    margins = {"coverage@5": "5%", "hit@5": 0.02, "gini@5": 0.05, "gmap@5": "60%"}
    passed = recsys.gate(same, old, margins)
    assert [check.metric for check in passed.checks] == list(margins)
    assert passed, str(passed)
    failed = {check.metric: check for check in recsys.gate(narrow, old, margins).checks}
    assert not failed["coverage@5"].passed
    assert not failed["gini@5"].passed  # less even is worse: lower is better
    row = recsys.compare({"old": old, "new": narrow}, "old", ["coverage@5"], confidence=0.9)
    strict = recsys.gate(narrow, old, {"coverage@5": 0}).checks[0]
    assert strict.bound == pytest.approx(row["new", "coverage@5"].interval.low, rel=1e-12)
    assert strict.change == pytest.approx(narrow["coverage@5"] / old["coverage@5"] - 1, rel=1e-12)
    assert recsys.gate(old, narrow, {"coverage@5": 0})
    assert not recsys.gate(old, old, {"coverage@5": 0})
    assert recsys.gate(old, old, {"coverage@5": "1%"})
    (caution,) = recsys.gate(result(1500, 2, 1800), old, {"coverage@5": "5%"}).cautions
    assert caution.sentence.startswith("catalogues differ (the old result 2,000, the new one 1,800 items)")
    assert recsys.gate(result(1500, 2, 1800), old, {"hit@5": "5%"}).cautions == ()


def test_a_relative_margin_is_a_share_of_the_mean_where_users_lie_on_both_sides_of_zero():
    """mean(new) > mean(old) - 10% of mean(old): the t-test of new - 0.9 old."""
    vectors = {i: [np.cos(i), np.sin(i)] for i in range(12)}
    truth = {u: {u % 12} for u in range(200)}
    old, new = (
        recsys.evaluate(
            {u: [(u * step) % 12, (u * step + 1) % 12] for u in truth},
            truth,
            ["alignment@2"],
            train={u: [u % 7] for u in truth},
            embeddings=vectors,
        )
        for step in (1, 2)
    )
    a, b = new.values_of("alignment@2"), old.values_of("alignment@2")
    assert b.min() < 0 < b.max()
    found = recsys.gate(new, old, {"alignment@2": "10%"}).checks[0]
    share = np.sign(b.mean()) * 0.1
    expected = scipy_stats.ttest_rel(a + share * b, b, alternative="greater")
    assert expected.pvalue < found.p_value < expected.pvalue + 0.1  # values as far as 2 apart were not seen


def test_a_result_that_stopped_early_is_said_to_have():
    truth = {u: {u % 50} for u in range(3000)}
    lists = {u: [u % 50 if u % 3 else 99] for u in truth}
    early = recsys.evaluate(lists, truth, ["hit@1"], stop_when=0.1)
    assert early.counts["cases"] < 3000
    said = str(recsys.gate(early, early, {"hit@1": "1%"}))
    assert "the new result and the one it is compared with stopped early" in said
    assert "stopped early" not in str(recsys.gate(old_model(), old_model(), {"hit@1": "1%"}))


def test_what_two_users_say_of_the_catalogue_may_be_anything():
    truth, items = {1: ["a"], 2: ["a"]}, ["a", "b", "c"]
    new, old = (
        recsys.evaluate(lists, truth, ["coverage@1"], catalogue=items)
        for lists in ({1: ["a", "b"], 2: ["b", "a"]}, {1: ["a", "b"], 2: ["a", "b"]})
    )
    gated = recsys.gate(new, old, {"coverage@1": 0.1})
    assert not gated.passed
    assert "not shown that it is no worse than 0.1: it may be anything" in gated.to_text()


# Several looks at the same candidate


def night(at, name="als-7", folder=None, *, share=0.5, train=None):
    """The candidate on 400 users of its own, as it was saved."""
    users = range(1000 * at, 1000 * at + 400)
    truth = {u: {u % 50} for u in users}
    lists = {u: [u % 50 if u % 10 < 10 * share else 99] for u in users}
    result = recsys.evaluate(lists, truth, ["hit@1"], train=train)
    return result if folder is None else recsys.load(record(folder, result, name))


def test_each_planned_look_has_the_same_part_of_the_level():
    options = {"hit@1": "6%", "ndcg@3": "6%"}
    planned = recsys.gate(same_model(), old_model(), options, looks=14)
    alone = recsys.gate(same_model(), old_model(), options, confidence=1 - 0.05 / 14)
    assert [replace(c, notes=()) for c in planned.checks] == [replace(c, notes=()) for c in alone.checks]
    assert recsys.gate(same_model(), old_model(), options, looks=1) == recsys.gate(
        same_model(), old_model(), options
    )
    assert "one-sided bounds of 99.64% confidence, 95% over 14 planned looks" in str(planned)
    assert "at least (99.64%)" in planned.to_markdown()
    found = json.loads(planned.to_json())
    assert (found["confidence"], found["looks"], found["look"]) == (0.95, 14, 1)


@pytest.mark.parametrize("looks", [0, -1, 1.5, "14", float("nan")])
def test_looks_are_a_whole_number(looks):
    with pytest.raises(InputError, match=r"looks=.* is not a number of looks"):
        recsys.gate(old_model(), old_model(), {"hit@1": "1%"}, looks=looks)


def test_a_second_look_is_noted_and_more_than_planned_is_an_error(tmp_path):
    margins, old = {"hit@1": "20%"}, night(1)
    first = night(1, folder=tmp_path)
    for again in (first, recsys.load(record(tmp_path, night(1), "als-7"))):  # the same test is the same look
        found = recsys.gate(again, old, margins, history=tmp_path)
        assert (found.look, found.passed, "look" in str(found)) == (1, True, False)
    second = night(2, folder=tmp_path)
    found = recsys.gate(second, night(2), margins, history=tmp_path)
    words = "this is look 2 at als-7, and the confidence is that of one. "
    words += "Plan all looks from the first on (looks=)."
    assert (found.look, found.passed, *map(str, found.notes)) == (2, True, words)
    assert f"**{words}**" in found.to_markdown()
    assert found.to_markdown().count("look 2") == 1
    assert json.loads(found.to_json())["notes"] == [words]
    planned = recsys.gate(second, night(2), margins, looks=2, history=tmp_path)
    assert (planned.look, planned.notes) == (2, ())
    third = night(3, folder=tmp_path)
    with pytest.raises(InputError, match="this is look 3 at als-7, and the confidence is that of 2"):
        recsys.gate(third, night(3), margins, looks=2, history=tmp_path)


def test_a_new_candidate_is_not_a_second_look(tmp_path):
    margins = {"hit@1": "20%"}
    night(1, "als-6", tmp_path), night(2, "als-7", tmp_path, train={1: [1]})
    (tmp_path / "other.json").write_text("{}")
    for at, options, look in ((3, {"train": {1: [1, 2]}}, 1), (4, {"train": {1: [1]}}, 2), (5, {}, 4)):
        found = recsys.gate(night(at, "als-7", tmp_path, **options), night(at), margins, history=tmp_path)
        assert found.look == look, at
    with pytest.raises(InputError, match="no name to find it by"):
        recsys.gate(night(6), night(6), margins, history=tmp_path)


def nights_of(n_nights, n_worlds, gain, *, accumulate=False):
    """Evaluations of the new and the old model on nights of 500 users, half of whom the old one hits."""
    rng, old = np.random.default_rng(2), MARGINALS["hit, 10%"].times(5)
    seen = [np.empty((n_worlds, 0))] * 2
    for _ in range(n_nights):
        scores = correlated(rng, (n_worlds, 500), 0.8)
        tonight = [old.times(gain).at(scores[0]), old.at(scores[1])]
        seen = [np.concatenate(both, axis=1) for both in zip(seen, tonight, strict=True)]
        yield [evaluation_of("hit", values) for values in (seen if accumulate else tonight)]


@pytest.mark.parametrize("accumulate", [False, True])
def test_a_model_at_the_margin_passes_on_one_of_14_nights_in_5_of_100_worlds_at_most(accumulate):
    planned, alone = np.zeros((2, 60), dtype=bool)
    for new, old in nights_of(14, 60, 0.9, accumulate=accumulate):
        checks = recsys.gate(new, old, dict.fromkeys(new, 0.05), looks=14).checks
        planned |= [check.passed for check in checks]
        alone |= [check.p_value <= 0.05 for check in checks]
    assert planned.mean() <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 60)
    assert alone.mean() > 0.1  # what looks that were not planned come to


def test_planned_looks_cost_some_power_on_each_night():
    """An equal model, a margin of 10%, 500 users: how often one look passes it."""
    ((new, old),) = nights_of(1, 100, 1.0)
    rates = []
    for looks in (1, 5, 14):
        checks = recsys.gate(new, old, dict.fromkeys(new, "10%"), looks=looks).checks
        rates.append(np.mean([check.passed for check in checks]))
    assert rates == sorted(rates, reverse=True)
    assert np.all(np.array(rates) >= (0.7, 0.45, 0.3)), rates


def test_a_gate_that_passes_calls_no_margin_too_narrow():
    truth = {user: {1} for user in range(300)}
    old, new = (
        recsys.evaluate({user: [1] if user < hits else [2] for user in truth}, truth, ["hit@1"])
        for hits in (100, 200)
    )
    assert recsys.gate(new, old, {"hit@1": "1%"})
    assert "too narrow" not in str(recsys.gate(new, old, {"hit@1": "1%"}))
    assert "too narrow" in str(recsys.gate(old, old, {"hit@1": "1%"}))


def test_a_margin_that_is_too_narrow_names_one_number_of_users():
    first = recsys.evaluate(
        {u: [u] for u in range(40)}, {u: {u if u % 3 else -1} for u in range(40)}, ["hit@1"]
    )
    truth = {u: {u if u % 3 or u == 0 else -1} for u in range(40)}
    second = recsys.evaluate({u: [u] for u in range(40)}, truth, ["hit@1"])
    notes = [str(one) for one in recsys.gate(first, second, {"hit@1": "5%"}).checks[0].notes]
    assert any("too narrow a margin" in one for one in notes)
    assert not any("would be needed" in one for one in notes)
    assert any("of 40 users differ" in one for one in notes)


EVEN = {"a": 0.5, "b": 0.5, "c": 0.5}


class TestGroups:
    """Margins of every group of users."""

    @staticmethod
    def model(shares, seed=0, sizes=(400, 400, 20)):
        rng = np.random.default_rng(seed)
        labels = [label for label, n in zip("abc", sizes, strict=True) for _ in range(n)]
        truth = {u: {u} for u in range(len(labels))}
        lists = {u: [u if rng.random() < shares[labels[u]] else -1] for u in truth}
        return recsys.evaluate(lists, truth, ["hit@1"], by={u: labels[u] for u in truth})

    def test_each_group_is_gated_as_its_users_alone(self):
        old, new = self.model(EVEN), self.model({**EVEN, "a": 0.9}, seed=1)
        decision = recsys.gate(new, old, {"hit@1": "5%"}, groups={"group": {"hit@1": "10%"}})
        for check in decision.checks[1:]:
            group = GroupKey("group", check.group.removeprefix("group: "))
            own = recsys.gate(new.of_group(group), old.of_group(group), {"hit@1": "10%"}).checks[0]
            assert (check.value, check.bound, check.passed) == (own.value, own.bound, own.passed)

    def test_a_group_that_loses_fails_the_gate(self):
        old, new = self.model(EVEN), self.model({"a": 0.95, "b": 0.3, "c": 0.5}, seed=1)
        assert recsys.gate(new, old, {"hit@1": "5%"})
        decision = recsys.gate(new, old, {"hit@1": "5%"}, groups={"group": {"hit@1": "5%"}})
        assert not decision
        assert [c.group for c in decision.checks if c.decides and not c.passed] == ["group: b"]
        assert "hit@1 (group: b)" in decision.to_markdown()

    def test_groups_that_are_too_small_are_listed(self):
        old, new = self.model(EVEN), self.model({"a": 0.95, "b": 0.95, "c": 0.5}, seed=1)
        margins = {"groups": {"group": {"hit@1": "5%"}}}
        decision = recsys.gate(new, old, {"hit@1": "5%"}, **margins)
        small = decision.checks[-1]
        assert decision.passed
        assert (small.group, small.users, small.decides, small.passed) == ("group: c", 20, False, False)
        assert small.needed > 20
        assert f"too few users: {math.ceil(small.needed)} needed" in str(decision)
        assert not recsys.gate(new, old, {"hit@1": "5%"}, small="fail", **margins)
        # identical lists of as many users as are needed pass
        enough = math.ceil(small.needed)
        same = self.model(dict.fromkeys("abc", 0.5), sizes=(1, 1, enough))
        checks = recsys.gate(same, same, {"hit@1": "50%"}, **margins).checks
        assert checks[-1].passed or checks[-1].needed > enough

    @pytest.mark.parametrize(
        ("options", "says"),
        [
            ({"groups": {"country": {"hit@1": "1%"}}}, "country"),
            ({"groups": {"group": {}}}, "no metric"),
            ({"groups": {"group": {"mrr": "1%"}}}, "mrr"),
            ({"groups": {"group": "1%"}}, "came as str"),
            ({"small": "pass"}, "small"),
        ],
    )
    def test_what_is_refused(self, options, says):
        old = self.model(EVEN)
        with pytest.raises(RecsysError, match=says):
            recsys.gate(old, old, {"hit@1": "5%"}, **options)
