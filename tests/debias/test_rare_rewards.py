"""Intervals of debiased estimates: as often right as they say, for what they say, and never a point."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import recsys
from recsys import debias
from recsys.debias.policy_values import ESTIMATORS

ACTIONS = np.arange(10)
LOGGING = np.exp(-0.35 * ACTIONS) / np.exp(-0.35 * ACTIONS).sum()
POLICY = np.exp(0.25 * ACTIONS) / np.exp(0.25 * ACTIONS).sum()


def least_share(n_worlds, level=0.95):
    """The level less three Monte Carlo standard errors."""
    return level - 3 * math.sqrt(level * (1 - level) / n_worlds)


def draw_log(rng, n, mean_reward, n_users=None, spread=0.0):
    """A log of n decisions; users differ in how much they like everything."""
    action = rng.choice(len(ACTIONS), n, p=LOGGING)
    action[: len(ACTIONS)] = ACTIONS
    chance = mean_reward[action]
    log = {"action": action, "propensity": LOGGING[action]}
    if n_users is not None:
        log["user"] = rng.integers(0, n_users, n)
        chance = np.clip(chance * (1 + rng.normal(0, spread, n_users))[log["user"]], 0, 1)
    return pd.DataFrame({**log, "reward": (rng.random(n) < chance).astype(int)})


@pytest.mark.parametrize(("n", "n_worlds"), [(300, 40), (2000, 40)])
def test_intervals_hold_the_value_of_the_policy_where_rewards_are_rare(n, n_worlds):
    """About 3 or 20 rewards, and one of an action that the policy prefers has 40 times the usual weight."""
    rng = np.random.default_rng(0)
    mean_reward = 0.0125 * np.exp((ACTIONS - 4.5) / 9)
    value = float(POLICY @ mean_reward)
    inside = dict.fromkeys(("ips", "snips", "dr"), 0)
    for _ in range(n_worlds):
        log = draw_log(rng, n, mean_reward)
        found = debias.off_policy(log, dict(enumerate(POLICY)), estimators=list(inside))
        for name in inside:
            inside[name] += value in found[name].interval
    assert min(inside.values()) / n_worlds >= least_share(n_worlds), inside


def test_intervals_allow_for_heavy_rewards_that_were_not_seen_however_many_were():
    """300 rewards are worth 40 of equal weight; a t interval misses the value in 7 or 8 of 100 worlds."""
    rng, n, n_worlds = np.random.default_rng(0), 3000, 60
    logging, policy = np.array([0.97, 0.03]), np.array([0.2, 0.8])
    chances = np.array([0.1, 0.3])
    value, missed, wider = float(policy @ chances), 0, []
    for _ in range(n_worlds):
        action = (rng.random(n) < logging[1]).astype(int)
        reward = (rng.random(n) < chances[action]).astype(int)
        log = pd.DataFrame({"action": action, "reward": reward, "propensity": logging[action]})
        found = debias.off_policy(log, {0: 0.2, 1: 0.8}, estimators=["ips"])["ips"].interval
        weighted = reward * (policy / logging)[action]
        missed += value not in found
        wider.append((found.high - weighted.mean()) / (1.96 * weighted.std() / math.sqrt(n)))
    assert missed <= (1 - least_share(n_worlds)) * n_worlds
    assert min(wider) > 1.1
    assert max(wider) < 1.6


@pytest.mark.parametrize(("n", "n_users", "spread"), [(1000, 30, 0.5), (2000, 40, 0.5)])
def test_intervals_of_the_direct_method_count_users_who_differ(n, n_users, spread):
    rng = np.random.default_rng(0)
    mean_reward = 0.26 * np.exp((ACTIONS - 4.5) / 9)
    value, n_worlds, inside = float(POLICY @ mean_reward), 200, 0
    for _ in range(n_worlds):
        log = draw_log(rng, n, mean_reward, n_users, spread)
        found = debias.off_policy(log, dict(enumerate(POLICY)), clusters="user", estimators=["dm"])
        inside += value in found["dm"].interval
    assert inside / n_worlds >= least_share(n_worlds), inside


@pytest.mark.parametrize("clusters", [None, "user"])
@pytest.mark.parametrize("reward", [0.0, 1.0, 5.0])
def test_no_interval_is_a_point_where_all_rewards_are_the_same(reward, clusters):
    log = draw_log(np.random.default_rng(0), 200, np.zeros(10), 50).assign(reward=reward)
    found = debias.off_policy(log, dict(enumerate(POLICY)), clusters=clusters)
    for name in ESTIMATORS:
        interval = found[name].interval
        assert interval.low <= found[name].value <= interval.high, name
        assert 0.01 * max(1.0, reward) < interval.high - interval.low < math.inf, name
    if clusters is None and reward == 0:
        assert found["logged"].interval.high == pytest.approx(1 - 0.025 ** (1 / 200))
        words = "0 of 200 decisions had a reward other than 0: the intervals of logged, ips, snips, dm, dr"
        assert any(str(note).startswith(words) for note in found.notes)


def test_few_rewards_are_said_and_common_ones_cost_little():
    rng = np.random.default_rng(1)
    rare = debias.off_policy(draw_log(rng, 2000, np.full(10, 0.01)), dict(enumerate(POLICY)))
    (note,) = [note for note in rare.notes if "allow for rewards that were not seen" in note]
    assert " of 2,000 decisions had a reward other than 0, worth " in note
    assert note.endswith("if all are between 0 and 1")
    assert note in str(rare)
    log = draw_log(rng, 2000, np.full(10, 0.3))
    common = debias.off_policy(log, dict(enumerate(POLICY)))
    assert not any("not seen" in str(note) for note in common.notes)
    weighted = log.reward * POLICY[log.action] / log.propensity
    reach, interval = 1.96 * weighted.std() / math.sqrt(2000), common["ips"].interval
    assert 2 * reach < interval.high - interval.low < 1.2 * 2 * reach


def test_bounds_of_few_rewards_in_clusters_allow_for_one_more_than_any_cluster_had():
    rng = np.random.default_rng(2)
    log = draw_log(rng, 1000, np.full(10, 0.004), 100)
    found = debias.off_policy(log, dict(enumerate(POLICY)), clusters="user")
    assert any(
        str(note).endswith("between 0 and 1 and no cluster has more than 2 of them") for note in found.notes
    )
    for name in ("ips", "snips", "dm", "dr"):
        assert found[name].interval.low <= 0.004 <= found[name].interval.high < 0.5, name


CHANCE = np.linspace(0.05, 0.9, 50)
MODEL = recsys.Factors(np.ones((200, 1)), CHANCE[:, None])  # recommends what is observed most


def draw_likes(rng, n_users):
    """Users like 2 items or 8; those who like 2 prefer what is observed more often."""
    n_liked = rng.choice([2, 8], n_users)
    order = rng.random((n_users, 50)) / np.where(n_liked[:, None] == 2, np.sqrt(CHANCE), 1.0)
    return np.argsort(np.argsort(order, axis=1), axis=1) < n_liked[:, None]


def test_every_interval_holds_what_its_estimator_estimates():
    """Of observed items with and without weights, of all relevant items, and of those by user."""
    rng = np.random.default_rng(0)
    found_in_top_10 = (np.arange(50) >= 40).astype(float)
    likes = draw_likes(rng, 50_000)
    seen = likes & (rng.random(likes.shape) < CHANCE)
    any_seen = seen.any(axis=1)
    weight = seen[any_seen] / CHANCE
    estimated = {
        "naive": (seen[any_seen] @ found_in_top_10 / seen[any_seen].sum(axis=1)).mean(),
        "snips": (weight @ found_in_top_10 / weight.sum(axis=1)).mean(),
        "snips_pooled": (likes @ found_in_top_10).sum() / likes.sum(),
        "ips": (likes @ found_in_top_10 / likes.sum(axis=1)).mean(),
    }
    n_worlds, inside, above = 50, dict.fromkeys(estimated, 0), 0
    for _ in range(n_worlds):
        likes = draw_likes(rng, 200)
        seen = likes & (rng.random(likes.shape) < CHANCE)
        found = debias.evaluate(
            MODEL,
            {user: np.flatnonzero(row).tolist() for user, row in enumerate(seen)},
            "recall@10",
            propensities=dict(enumerate(CHANCE)),
            n_relevant={user: int(n) for user, n in enumerate(likes.sum(axis=1))},
        )
        for name, value in estimated.items():
            inside[name] += value in found["recall@10", name].interval
        above += found["recall@10", "snips"].interval.low > estimated["ips"]
    assert min(inside.values()) / n_worlds >= least_share(n_worlds), inside
    assert above > 0.8 * n_worlds  # what snips leaves of the bias
    assert sum("does not cover the bias" in str(note) for note in found.notes) == 2
    assert any(str(note).startswith("snips_pooled: mean over all relevant items") for note in found.notes)


@pytest.mark.parametrize("name", ["recall@2", "dcg@2", "hits@2"])
def test_no_interval_is_a_point_where_nothing_was_hit(name):
    lists, truth = {user: ["a", "b"] for user in range(40)}, {user: ["x", "y"] for user in range(40)}
    found = debias.evaluate(lists, truth, name, propensities={"x": 0.2, "y": 0.5}, n_relevant=4)
    assert found[name, "naive"].interval.high == pytest.approx(1 - 0.025 ** (1 / 40))
    for estimator in ("snips", "snips_pooled", "ips"):
        assert found[name, estimator].interval.low == 0
        assert 0.05 < found[name, estimator].interval.high < 0.5
    assert "all 40 units have the same value: the interval allows for values not seen" in str(found)
