"""recsys.compat.rectools: the numbers of RecTools for its own objects; exceptions are known one by one."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from recsys.compat.rectools import _JUDGED, _OTHERS, calc_metrics
from worlds.parity import SEEDS, peer

rectools = peer("rectools.metrics")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]
N_ITEMS = 25
FEATURES = pd.DataFrame(np.random.default_rng(0).integers(0, 3, (N_ITEMS, 4)), index=range(N_ITEMS))


def frames(seed: int, *, longest: int = 12, shortest: int = 1, repeats: float = 0.0, gaps: float = 0.0):
    """Recommendations of users 0-29, of whom some have none, interactions of users 5-34, and earlier ones."""
    rng, rows = np.random.default_rng(seed), []
    for user in range(30):
        n = int(rng.integers(shortest, longest + 1))
        items, ranks = rng.permutation(N_ITEMS)[:n], np.arange(1, n + 1)
        items = np.where(rng.random(n) < repeats, items[0], items)
        kept = rng.random(n) >= gaps
        if rng.random() > 0.1:
            rows += [(user, int(i), int(r)) for i, r in zip(items[kept], ranks[kept], strict=True)]
    reco = pd.DataFrame(rows, columns=["user_id", "item_id", "rank"]).sample(frac=1, random_state=seed)

    def pairs(users, most, n_items):
        drawn = [(u, int(i)) for u in users for i in rng.permutation(n_items)[: rng.integers(1, most)]]
        return pd.DataFrame(drawn, columns=["user_id", "item_id"])

    return reco, pairs(range(5, 35), 6, N_ITEMS), pairs(range(30), 9, N_ITEMS - 3)


def objects(k: int) -> dict[str, object]:
    m = rectools
    return {
        "Precision": m.Precision(k),
        "Precision of r": m.Precision(k, r_precision=True),
        "Recall": m.Recall(k),
        "F1Beta": m.F1Beta(k),
        "F1Beta of 0.7": m.F1Beta(k, beta=0.7),
        "Accuracy": m.Accuracy(k),
        "MCC": m.MCC(k),
        "HitRate": m.HitRate(k),
        "MAP": m.MAP(k),
        "MAP over k": m.MAP(k, divide_by_k=True),
        "NDCG": m.NDCG(k),
        "NDCG of 3": m.NDCG(k, log_base=3),
        "NDCG achievable": m.NDCG(k, divide_by_achievable=True),
        "MRR": m.MRR(k),
        "PartialAUC": m.PartialAUC(k),
        "PAP": m.PAP(k),
        "CatalogCoverage": m.CatalogCoverage(k),
        "CatalogCoverage share": m.CatalogCoverage(k, normalize=True),
        "MeanInvUserFreq": m.MeanInvUserFreq(k),
        "AvgRecPopularity": m.AvgRecPopularity(k),
        "AvgRecPopularity share": m.AvgRecPopularity(k, normalize=True),
        "IntraListDiversity": m.IntraListDiversity(k, m.PairwiseHammingDistanceCalculator(FEATURES)),
        "Serendipity": m.Serendipity(k),
        "Intersection": m.Intersection(k),
        "Intersection of 2": m.Intersection(k, ref_k=2),
        "SufficientReco": m.SufficientReco(k),
        "SufficientReco deep": m.SufficientReco(k, deep=True),
        "UnrepeatedReco": m.UnrepeatedReco(k),
        "UnrepeatedReco deep": m.UnrepeatedReco(k, deep=True),
        "CoveredUsers": m.CoveredUsers(k),
    }


def differing(seed: int, k: int, **shape: float) -> set[str]:
    """The classes whose numbers differ in the 12th digit."""
    reco, interactions, previous = frames(seed, **shape)
    given = (reco, interactions, previous, range(N_ITEMS), {"other": frames(seed + 50, **shape)[0]})
    asked = objects(k)
    theirs, ours = rectools.calc_metrics(asked, *given), calc_metrics(asked, *given)
    assert ours.keys() == theirs.keys()
    equal = {n: math.isclose(ours[n], theirs[n], rel_tol=1e-12, abs_tol=1e-14) for n in theirs}
    return {name.split(" ")[0].removesuffix("_other") for name, same in equal.items() if not same}


@pytest.mark.parametrize("k", [1, 3, 10, 15])
@pytest.mark.parametrize("seed", SEEDS)
def test_short_lists_and_missing_users(seed, k):
    assert differing(seed, k) == set()
    assert differing(seed, k, shortest=12) == set()


@pytest.mark.parametrize("seed", SEEDS)
def test_items_listed_twice_but_for_intersections(seed):
    """What is shown twice is then the truth of an Intersection twice, which RecTools adds up."""
    assert differing(seed, 3, repeats=0.3) | differing(seed, 10, repeats=0.3) == {"Intersection"}


@pytest.mark.parametrize("seed", SEEDS)
def test_gaps_in_the_rank_column(seed):
    assert differing(seed, 10, gaps=0.2) == set()


@pytest.mark.parametrize("empty", ["interactions", "reco", "no common user", "no first places"])
def test_nothing_to_evaluate(empty):
    reco, interactions, previous = frames(1)
    if empty == "interactions":
        interactions = interactions[:0]
    elif empty == "reco":
        reco = reco[:0]
    elif empty == "no common user":
        interactions = interactions.assign(user_id=interactions["user_id"] + 100)
    else:
        reco = reco.assign(rank=reco["rank"] + 5)
    asked = {name: one for name, one in objects(3).items() if not name.startswith("Intersection")}
    given = reco, interactions, previous, range(N_ITEMS)
    theirs, ours = (f(asked, *given) for f in (rectools.calc_metrics, calc_metrics))
    assert ours == pytest.approx(theirs, rel=1e-12, nan_ok=True)
    whole = "CatalogCoverage"
    assert isinstance(ours[whole], int)
    assert isinstance(theirs[whole], int)


def test_debiased_interactions():
    reco, interactions, _ = frames(0)
    popular = pd.DataFrame({"user_id": range(60), "item_id": 7})
    interactions = pd.concat([interactions, popular]).drop_duplicates(ignore_index=True)
    config = rectools.DebiasConfig(iqr_coef=1.0, random_state=3)
    asked = {
        "debiased": rectools.Recall(5, debias_config=config),
        "auc": rectools.PartialAUC(5, debias_config=config),
        "plain": rectools.Recall(5),
    }
    theirs, ours = (f(asked, reco, interactions) for f in (rectools.calc_metrics, calc_metrics))
    assert ours == pytest.approx(theirs, rel=1e-12)
    assert ours["debiased"] != ours["plain"]


def test_every_class_is_known():
    base = rectools.Precision.__mro__[-2]
    found = {n for n in rectools.__all__ if isinstance(getattr(rectools, n), type)}
    assert {n for n in found if issubclass(getattr(rectools, n), base)} == {*_JUDGED, *_OTHERS}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", ["PartialAUC", "PAP"])
def test_lists_too_short_for_a_partial_area(seed, kind):
    reco, interactions, _ = frames(seed, longest=5)
    for k in (1, 2, 4):
        asked = {how: getattr(rectools, kind)(k, insufficient_handling=how) for how in ("ignore", "exclude")}
        theirs, ours = (f(asked, reco, interactions) for f in (rectools.calc_metrics, calc_metrics))
        assert ours == pytest.approx(theirs, rel=1e-12, nan_ok=True)
    for calculate in (rectools.calc_metrics, calc_metrics):
        with pytest.raises(ValueError, match=f"(?s){kind}.* users"):
            calculate({"m": getattr(rectools, kind)(4, insufficient_handling="raise")}, reco, interactions)


@pytest.mark.parametrize(
    ("ranks", "n_relevant", "theirs"),
    [
        ([1, 1], 2, {"HitRate": 1, "MAP": 1, "Precision": 2, "NDCG": 2, "Accuracy": 26 / 25}),
        ([0, 1], 1, {"HitRate": 1, "MAP": 0, "Precision": 1, "NDCG": math.inf, "MRR": math.inf}),
    ],
    ids=["shared", "zero"],
)
def test_ranks_of_which_the_numbers_of_rectools_contradict_each_other_are_refused(ranks, n_relevant, theirs):
    """These numbers are why: when they change, so may the answer here."""
    reco = pd.DataFrame({"user_id": 1, "item_id": [1, 2], "rank": ranks})
    truth = reco.loc[: n_relevant - 1, ["user_id", "item_id"]]
    previous = pd.DataFrame({"user_id": [7, 8], "item_id": [1, 3]})
    asked = objects(1)
    found = rectools.calc_metrics({name: asked[name] for name in theirs}, reco, truth, catalog=range(N_ITEMS))
    assert found == pytest.approx(theirs)
    for name, one in asked.items():
        with pytest.raises(ValueError, match=r"(?s)^reco holds .*RecTools"):
            calc_metrics({name: one}, reco, truth, previous, range(N_ITEMS), {"other": reco})
