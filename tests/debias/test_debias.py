"""Debiased estimates: by hand, unbiased in simulation, off-policy on the Open Bandit data, and refusals."""

from __future__ import annotations

import math
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recsys
from recsys import debias
from recsys.debias.policy_values import ESTIMATORS
from recsys.errors import ColumnError, InputError, NotDefinedError, UnknownNameError
from recsys.metrics import METRICS

LISTS = {1: ["a", "b", "c"], 2: ["c", "a", "x"]}
TRUTH = {1: {"a", "x"}, 2: {"a", "c", "b"}}
CHANCE = {"a": 1.0, "b": 0.5, "c": 0.25, "x": 0.2}


def by_hand(item_value, weighted):
    """Mean over users of the (weighted) mean value of the user's relevant items."""
    values = []
    for user, items in TRUTH.items():
        w = [1 / CHANCE[i] if weighted else 1.0 for i in sorted(items)]
        c = [item_value(LISTS[user], i) for i in sorted(items)]
        values.append(np.dot(w, c) / np.sum(w))
    return np.mean(values)


def recall_at_2(shown, item):
    return float(item in shown[:2])


def dcg_at_3(shown, item):
    return 1 / math.log2(shown.index(item) + 2) if item in shown[:3] else 0.0


@pytest.mark.parametrize(("name", "item_value"), [("recall@2", recall_at_2), ("dcg@3", dcg_at_3)])
def test_naive_and_snips_by_hand(name, item_value):
    got = debias.evaluate(LISTS, TRUTH, name, propensities=CHANCE)
    assert got[name, "naive"].value == pytest.approx(by_hand(item_value, weighted=False))
    assert got[name, "snips"].value == pytest.approx(by_hand(item_value, weighted=True))


def test_naive_recall_is_evaluates_own_and_snips_is_item_weights():
    got = debias.evaluate(LISTS, TRUTH, "recall@2", propensities=CHANCE)
    assert got["recall@2"]["naive"].value == recsys.evaluate(LISTS, TRUTH, "recall@2")["recall@2"]
    weights = {item: 1 / chance for item, chance in CHANCE.items()}
    weighted = recsys.evaluate(LISTS, TRUTH, "recall@2", item_weights=weights)
    assert got["recall@2", "snips"].value == pytest.approx(weighted["recall@2"])


@given(seed=st.integers(0, 200))
def test_naive_auc_and_recall_are_the_engines_on_factors(seed):
    rng = np.random.default_rng(seed)
    model = recsys.Factors(
        rng.integers(-2, 3, (4, 2)).astype(float), rng.integers(-2, 3, (9, 2)).astype(float)
    )
    truth = {u: rng.choice(9, size=rng.integers(1, 5), replace=False).tolist() for u in range(4)}
    rules = {"ties": "expected"}
    names = ["auc", "recall@3", "percentile_rank"]
    whole = recsys.evaluate(model, truth, names, conventions=rules)
    got = debias.evaluate(
        model,
        truth,
        names,
        propensities=dict.fromkeys(range(9), 0.5),
        conventions=rules,
        estimators=["naive", "snips"],
    )
    for name in names:
        assert got[name, "naive"].value == pytest.approx(whole[name])
        assert got[name, "snips"].value == pytest.approx(whole[name])


def test_equal_propensities_change_nothing_and_lose_nothing():
    got = debias.evaluate(LISTS, TRUTH, "recall@2", propensities=dict.fromkeys(CHANCE, 0.3))
    assert got["recall@2", "snips"].value == pytest.approx(got["recall@2", "naive"].value)
    assert got.diagnostics.effective == pytest.approx(5)
    assert got.diagnostics.share == pytest.approx(1.0)


def test_clipping_caps_the_weights_and_is_counted():
    got = debias.evaluate(LISTS, TRUTH, "recall@2", propensities=CHANCE, clip=1.0)
    assert got["recall@2", "snips"].value == pytest.approx(got["recall@2", "naive"].value)
    assert got.diagnostics.clipped == 3
    assert "clipped" in str(got)


def simulate(n_users=300, n_items=60, seed=0):
    """The full preferences of all users, chances of being observed that grow with popularity, and a model."""
    rng = np.random.default_rng(seed)
    popularity = np.linspace(0.05, 0.9, n_items)
    likes = rng.random((n_users, n_items)) < 0.25
    likes[:, 0] = True
    # The model favours popular items, which are observed more often: the naive estimate flatters it.
    model = recsys.Factors(np.ones((n_users, 1)), (popularity + rng.normal(0, 0.2, n_items))[:, None])
    return rng, likes, popularity, model


def truth_of(mask):
    return {u: np.flatnonzero(row).tolist() for u, row in enumerate(mask)}


@pytest.mark.parametrize("name", ["recall@15", "dcg@15", "auc"])
def test_ips_is_unbiased_and_naive_is_not(name):
    rng, likes, chance, model = simulate()
    propensities = dict(enumerate(chance.tolist()))
    full = truth_of(likes)
    everything = dict.fromkeys(range(len(chance)), 1.0)
    target = debias.evaluate(model, full, name, propensities=everything)[name, "naive"].value
    if name != "dcg@15":  # which is per relevant item here
        assert target == pytest.approx(recsys.evaluate(model, full, name)[name])
    estimates = {"naive": [], "ips": [], "snips": [], "snips_pooled": []}
    covered = 0
    for _ in range(30):
        observed = truth_of(likes & (rng.random(likes.shape) < chance))
        got = debias.evaluate(
            model, observed, name, propensities=propensities, n_relevant={u: len(v) for u, v in full.items()}
        )
        for estimator, values in estimates.items():
            values.append(got[name, estimator].value)
        covered += target in got[name, "ips"].interval
    mean = {estimator: np.mean(values) for estimator, values in estimates.items()}
    error = np.std(estimates["ips"], ddof=1) / math.sqrt(30)
    assert abs(mean["ips"] - target) < 3.5 * error
    assert covered >= 24
    assert abs(mean["naive"] - target) > 4 * abs(mean["snips_pooled"] - target)
    assert abs(mean["naive"] - target) > 2 * abs(mean["snips"] - target)


def test_popularity_propensities_are_a_power():
    got = debias.popularity_propensities({1: [7, 8], 2: [7], 3: [7], 4: [7]})
    assert got == {7: 1.0, 8: pytest.approx(0.25**1.5)}
    assert set(debias.popularity_propensities({1: [7, 8], 2: [7]}, power=0).values()) == {1.0}
    assert debias.popularity_propensities({1: [7, 8], 2: [7]}, gamma=3)[8] == 0.25


def test_items_unknown_to_train_get_the_largest_weight_and_are_counted():
    got = debias.evaluate(LISTS, TRUTH, "recall@2", train={1: ["a", "b"], 2: ["a", "b"], 3: ["a"], 4: ["c"]})
    assert got.counts["without_propensity"] == 1
    assert "not in train" in str(got)


def test_propensities_of_pairs():
    rows = [(u, i, CHANCE[i]) for u, items in TRUTH.items() for i in items]
    pairs = pd.DataFrame(rows, columns=["user", "item", "propensity"])
    by_item = debias.evaluate(LISTS, TRUTH, "recall@2", propensities=CHANCE)
    by_pair = debias.evaluate(LISTS, TRUTH, "recall@2", propensities=pairs)
    assert by_pair["recall@2", "snips"].value == by_item["recall@2", "snips"].value
    with pytest.raises(InputError, match="1 relevant pairs"):
        debias.evaluate(LISTS, TRUTH, "recall@2", propensities=pairs[1:])
    with pytest.raises(ColumnError):
        debias.evaluate(LISTS, TRUTH, "recall@2", propensities=pairs.assign(also=1, propensity=1).rename(
            columns={"propensity": "x"}))  # fmt: skip


@pytest.mark.parametrize(
    "name", ["ndcg@2", "precision@2", "map@2", "f1@2", "err@2", "hit@2", "mrr", "r_precision"]
)
def test_metrics_that_are_no_sum_over_relevant_items_are_refused(name):
    with pytest.raises(NotDefinedError, match="cannot be debiased"):
        debias.evaluate(LISTS, TRUTH, name, propensities=CHANCE)


def test_hit_and_mrr_are_sums_where_each_user_has_one_item():
    one = {1: ["c"], 2: ["c"]}
    got = debias.evaluate(LISTS, one, ["hit@1", "mrr"], propensities=CHANCE)
    assert got["hit@1", "snips"].value == 0.5
    assert got["mrr", "naive"].value == pytest.approx((1 / 3 + 1) / 2)


@pytest.mark.parametrize(
    ("kwargs", "error"),
    [
        ({}, InputError),
        ({"propensities": {"a": 1.0}}, InputError),
        ({"propensities": {**CHANCE, "a": 0.0}}, InputError),
        ({"propensities": {**CHANCE, "a": 1.5}}, InputError),
        ({"propensities": {**CHANCE, "a": math.nan}}, InputError),
        ({"propensities": [1, 2]}, InputError),
        ({"propensities": {**CHANCE, "a": (1, 2)}}, InputError),
        ({"propensities": {**CHANCE, "a": "x"}}, InputError),
        ({"propensities": {item: [0.5, 0.5] for item in CHANCE}}, InputError),
        ({"propensities": CHANCE, "clip": "x"}, InputError),
        ({"propensities": CHANCE, "estimators": 5}, InputError),
        ({"propensities": CHANCE, "n_relevant": [1, 2]}, InputError),
        ({"propensities": CHANCE, "clip": 0}, InputError),
        ({"propensities": CHANCE, "estimators": ["ips"]}, InputError),
        ({"propensities": CHANCE, "estimators": ["dr"]}, UnknownNameError),
        ({"propensities": CHANCE, "n_relevant": {1: 3}}, InputError),
        ({"propensities": CHANCE, "n_relevant": 0}, InputError),
        ({"train": LISTS, "power": -1}, InputError),
    ],
)
def test_bad_input_says_so(kwargs, error):
    with pytest.raises(error):
        debias.evaluate(LISTS, TRUTH, "recall@2", **kwargs)


def test_auc_needs_every_candidate():
    with pytest.raises(NotDefinedError, match="candidate"):
        debias.evaluate(LISTS, TRUTH, "auc", propensities=CHANCE)


def test_results_print_and_export():
    got = debias.evaluate(LISTS, TRUTH, ["recall@2", "dcg@2"], propensities=CHANCE)
    assert len(got.to_frame()) == 6
    assert '"effective"' in got.to_json()
    assert "worth" in str(got)
    with pytest.raises(UnknownNameError):
        _ = got["recall@3", "snips"]
    with pytest.raises(UnknownNameError):
        _ = got["snips"]


def test_effective_sample_size():
    assert debias.effective_sample_size([]) == 0.0
    assert debias.effective_sample_size([2, 2]) == 2.0
    assert debias.effective_sample_size([3, 1]) == pytest.approx(1.6)


def make_log(n, seed=0):
    """A log of a policy that prefers action 0; reward depends on action and position."""
    rng = np.random.default_rng(seed)
    position = rng.integers(0, 2, n)
    chance = np.array([[0.7, 0.2, 0.1], [0.5, 0.3, 0.2]])
    action = np.array([rng.choice(3, p=chance[p]) for p in position])
    mean_reward = np.array([[0.1, 0.3, 0.6], [0.2, 0.2, 0.4]])
    reward = (rng.random(n) < mean_reward[position, action]).astype(int)
    log = pd.DataFrame({
        "action": action, "position": position, "reward": reward, "propensity": chance[position, action]
    })  # fmt: skip
    policy = {0: {0: 0.1, 1: 0.1, 2: 0.8}, 1: {0: 0.2, 1: 0.3, 2: 0.5}}
    value = np.mean([sum(policy[p][a] * mean_reward[p, a] for a in range(3)) for p in range(2)])
    return log, policy, value


def test_off_policy_estimates_are_unbiased_and_covered():
    values = {name: [] for name in ("ips", "snips", "dm", "dr")}
    covered = dict.fromkeys(values, 0)
    for seed in range(40):
        log, policy, value = make_log(800, seed)
        got = debias.off_policy(log, policy, context="position")
        for name, estimates in values.items():
            estimates.append(got[name].value)
            covered[name] += value in got[name].interval
    for name in ("ips", "snips", "dr"):
        error = np.std(values[name], ddof=1) / math.sqrt(40)
        assert abs(np.mean(values[name]) - value) < 3.5 * error, name
        assert covered[name] >= 34, name
    assert covered["dm"] >= 30
    assert np.std(values["dr"]) < np.std(values["ips"])
    assert abs(np.mean(values["dm"]) - value) < 0.02


def test_doubly_robust_survives_wrong_rewards_and_the_direct_method_does_not():
    log, policy, value = make_log(20_000, 5)
    wrong = np.full((len(log), 3), 0.9)
    got = debias.off_policy(log, policy, context="position", reward_model=wrong)
    assert value in got["dr"].interval
    assert got["dm"].value == pytest.approx(0.9)


def test_doubly_robust_survives_wrong_propensities():
    log, policy, value = make_log(20_000, 6)
    shifted = log.assign(propensity=log.propensity * 0.5)
    got = debias.off_policy(shifted, policy, context="position")
    assert abs(got["ips"].value - value) > 0.2
    assert abs(got["dr"].value - value) < 0.03
    assert any("instead of 1" in str(note) for note in got.notes)


def test_the_logging_policy_itself_is_the_mean_reward():
    log, _, _ = make_log(500)
    own = {p: g.action.value_counts(normalize=True).to_dict() for p, g in log.groupby("position")}
    exact = log.assign(propensity=[own[p][a] for p, a in zip(log.position, log.action, strict=True)])
    got = debias.off_policy(exact, own, context="position")
    assert got["ips"].value == pytest.approx(log.reward.mean())
    assert got["snips"].value == pytest.approx(log.reward.mean())
    assert got["logged"].value == log.reward.mean()
    assert got.diagnostics.share == pytest.approx(1.0)


def test_a_policy_may_be_an_array_or_uniform():
    log, policy, _ = make_log(300)
    rows = np.array([[policy[p][a] for a in range(3)] for p in log.position])
    same = debias.off_policy(log, rows, context="position")
    for name in ("ips", "snips", "dm", "dr"):
        assert same[name].value == pytest.approx(
            debias.off_policy(log, policy, context="position")[name].value
        )
    flat = debias.off_policy(log, "uniform")
    assert flat["ips"].value == pytest.approx(np.mean(log.reward / 3 / log.propensity))


@pytest.mark.parametrize(
    ("change", "policy", "error"),
    [
        ({}, {0: 0.5, 1: 0.2}, InputError),
        ({}, {0: 0.5, 1: 0.2, 9: 0.3}, InputError),
        ({}, {0: -0.5, 1: 1.5}, InputError),
        ({}, "greedy", UnknownNameError),
        ({}, np.ones((2, 3)), InputError),
        ({"propensity": 0.0}, "uniform", InputError),
        ({"propensity": math.nan}, "uniform", InputError),
        ({"reward": math.inf}, "uniform", InputError),
        ({"click": 1}, "uniform", ColumnError),
    ],
)
def test_a_log_or_policy_that_cannot_be_used_says_so(change, policy, error):
    log, _, _ = make_log(30)
    with pytest.raises(error):
        debias.off_policy(log.assign(**change), policy)
    with pytest.raises(InputError):
        debias.off_policy(log[:0], policy)


@pytest.fixture(scope="module")
def bandit(shared_dir):
    folder = shared_dir / "data" / "obd-men"
    return {name: pd.read_parquet(folder / f"{name}.parquet") for name in ("random", "bts")}


@pytest.mark.shared
def test_the_uniform_policys_value_from_the_thompson_log(bandit):
    """On-policy the uniform policy got 46 clicks in 10,000; the other log's estimates must agree."""
    on_policy = debias.off_policy(bandit["random"], "uniform", context="position")["logged"]
    assert on_policy.value == pytest.approx(0.0046)
    got = debias.off_policy(bandit["bts"], "uniform", context="position")
    p = bandit["bts"].propensity_score
    assert got["ips"].value == pytest.approx(float(np.mean(bandit["bts"].click / 34 / p)))
    for name in ("ips", "snips", "dm", "dr"):
        gap = abs(got[name].value - on_policy.value)
        assert gap < 2.6 * math.hypot(got[name].standard_error, on_policy.standard_error), name
    # The logging policy itself does better, and its own mean is no estimate of the other's value.
    assert got["logged"].value == pytest.approx(0.0069)
    assert got.diagnostics.share < 0.1


@pytest.mark.shared
def test_the_thompson_policys_value_from_the_uniform_log(bandit):
    policy = {
        p: g.item_id.value_counts(normalize=True).to_dict() for p, g in bandit["bts"].groupby("position")
    }
    got = debias.off_policy(bandit["random"], policy, context="position")
    on_policy = debias.off_policy(bandit["bts"], "uniform", context="position")["logged"]
    for name in ("ips", "snips", "dm", "dr"):
        gap = abs(got[name].value - on_policy.value)
        assert gap < 2.6 * math.hypot(got[name].standard_error, on_policy.standard_error), name
    assert got["dr"].interval.low > 0


def test_a_policy_by_row_is_not_taken_for_one_by_context():
    """As many contexts as rows: the array still goes by row, in the order of the log."""
    log = pd.DataFrame(
        {
            "action": list("aabb"),
            "reward": [1.0, 0.0, 0.3, 0.1],
            "propensity": [0.5] * 4,
            "session": [4, 3, 2, 1],
        }
    )
    rows = np.array([[1.0, 0.0], [1.0, 0.0], [0.9, 0.1], [0.2, 0.8]])
    by_context = {s: dict(zip("ab", row, strict=True)) for s, row in zip(log.session, rows, strict=True)}
    ours, same = (debias.off_policy(log, policy, context="session") for policy in (rows, by_context))
    for name in ESTIMATORS:
        assert ours[name].value == pytest.approx(same[name].value)
        assert ours[name].standard_error == pytest.approx(same[name].standard_error)
    assert ours["dm"].standard_error == pytest.approx(0.0938, abs=5e-5)


def test_a_history_without_items_has_no_propensities():
    with pytest.raises(InputError, match="train holds no item"):
        recsys.debias.popularity_propensities({1: [], 2: []})


def test_a_policy_that_never_does_what_the_log_shows_has_no_normalised_estimate():
    log = pd.DataFrame({"ad": list("aaab"), "reward": [1.0, 0.0, 1.0, 1.0], "propensity": [0.5] * 4})
    columns = {"action": "ad"}
    values = debias.off_policy(log, {"a": 0.0, "b": 1.0}, columns=columns, estimators=["ips", "snips"])
    assert values["ips"].value == 0.5
    assert values["snips"].value == 1.0
    with pytest.raises(InputError, match="the policy never does what the log shows"):
        debias.off_policy(log[2:], np.array([[0.0, 1.0], [1.0, 0.0]]), columns=columns, estimators=["snips"])
    with pytest.raises(InputError, match="columns came as list"):
        debias.off_policy(log, "uniform", columns=["ad"])


def test_a_policy_by_context_has_probabilities_for_each_of_them():
    log = pd.DataFrame({"action": list("ab"), "reward": [1.0, 0.0], "propensity": 0.5, "shop": ["x", "y"]})
    with pytest.raises(InputError, match="the policy has probabilities for some contexts only"):
        debias.off_policy(log, {"x": {"a": 0.5, "b": 0.5}, "y": 0.5}, context="shop")


def test_nothing_observed_has_no_normalised_estimate():
    truth = {user: dict.fromkeys(items, 0.0) for user, items in TRUTH.items()}
    with pytest.raises(InputError, match="no relevant item was observed"):
        debias.evaluate(LISTS, truth, "recall@2", propensities=CHANCE, estimators=["snips"])


def test_items_that_were_no_candidates_are_counted_and_left_out():
    users, items = np.eye(2), np.array([[1.0, 0.2], [0.5, 0.1], [0.2, 0.9]])
    chance = {0: 0.5, 1: 0.5, 2: 0.5}
    options = {"propensities": chance, "estimators": ["naive"]}
    whole = debias.evaluate(recsys.Factors(users, items), {0: [0, 1], 1: [2]}, "recall@1", **options)
    assert "not_candidates of recall@1" not in whole.counts
    assert whole["recall@1", "naive"].value == 0.75
    part = debias.evaluate(recsys.Factors(users, items), {0: [0, 1], 1: [2]}, "auc", seen={0: [1]}, **options)
    assert part.counts["not_candidates of auc"] == 1


def test_every_metric_that_is_a_sum_or_a_mean_over_relevant_items_is_estimated():
    """The definition tried on the engine, and the names of the docstring."""
    ranks = np.random.default_rng(0).permutation(12)
    model = recsys.Factors(np.ones((1, 1)), ranks[:, None] + 1.0)
    truth = {2: 3, 5: 1, 7: 2, 11: 1}
    additive = {name for name, metric in METRICS.items() if metric.additivity.additive is True}
    for name in additive - {"auc"}:  # which leaves the other relevant items out
        request = name if METRICS[name].at_k == "never" else f"{name}@8"
        whole = recsys.evaluate(model, {0: truth}, request)[request]
        parts = [
            recsys.evaluate(model, {0: {item: grade}}, request)[request] for item, grade in truth.items()
        ]
        assert whole == pytest.approx(sum(parts)) or whole == pytest.approx(np.mean(parts)), name
    named = re.search(r"metrics: (.*?); (.*?) with one item", debias.evaluate.__doc__)
    assert set(named[1].split(", ")) == additive
    assert set(named[2].split(" and ")) == {
        n for n, m in METRICS.items() if m.additivity.additive == "one item"
    }
