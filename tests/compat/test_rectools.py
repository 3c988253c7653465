"""calc_metrics of RecTools: what it needs is named, what it does not know is said."""

import math
import sys

import pandas as pd
import pytest

from recsys.compat.rectools import calc_metrics
from recsys.errors import ColumnError, DuplicateError, InputError, RecsysWarning

RECO = pd.DataFrame({"user_id": ["u", "u", "v"], "item_id": ["a", "b", "a"], "rank": [1, 3, 1]})
INTERACTIONS = pd.DataFrame({"user_id": ["u", "w"], "item_id": ["b", "a"]})


def metric(name, k=3, **attributes):
    """An object as RecTools makes them: known by the name of its class."""
    return type(name, (), {"k": k, "debias_config": None, **attributes})()


def test_places_are_those_of_the_rank_column():
    asked = {"mrr": metric("MRR"), "first": metric("HitRate", 1), "seen": metric("CoveredUsers")}
    assert calc_metrics(asked, RECO, INTERACTIONS) == {"mrr": 1 / 6, "first": 0.0, "seen": 0.5}


@pytest.mark.parametrize(
    ("asked", "missing"),
    [
        (metric("MRR"), "interactions"),
        (metric("MeanInvUserFreq"), "prev_interactions"),
        (metric("CatalogCoverage", normalize=True), "catalog"),
        (metric("Intersection", ref_k=None), "ref_reco"),
    ],
)
def test_what_a_metric_needs_is_named(asked, missing):
    with pytest.raises(InputError, match=f"{type(asked).__name__} needs {missing}"):
        calc_metrics({"m": asked}, RECO)


def test_accuracy_needs_the_catalogue_and_a_table_its_columns():
    with pytest.raises(InputError, match="Accuracy needs catalog"):
        calc_metrics({"m": metric("Accuracy")}, RECO, INTERACTIONS)
    with pytest.raises(ColumnError, match="reco has no column 'rank'"):
        calc_metrics({"m": metric("MRR")}, RECO.drop(columns="rank"), INTERACTIONS)


def test_an_unknown_object_is_left_out_and_named():
    with pytest.warns(RecsysWarning, match="not supported: 'own', a MyMetric"):
        found = calc_metrics({"own": metric("MyMetric"), "mrr": metric("MRR")}, RECO, INTERACTIONS)
    assert found == {"mrr": 1 / 6}


def test_items_without_a_distance_are_named():
    class Distances:
        def __getitem__(self, pairs):
            return [
                float("nan") if "b" in (first, second) else 1.0 for first, second in zip(*pairs, strict=True)
            ]

    asked = {"ild": metric("IntraListDiversity", distance_calculator=Distances())}
    with pytest.raises(InputError, match="items 'a' and 'b' have no distance"):
        calc_metrics(asked, RECO)


def test_tables_without_rows_or_without_common_users_have_the_values_of_rectools():
    over_truth = {
        "mrr": metric("MRR"), "p": metric("Precision", r_precision=False), "seen": metric("CoveredUsers"),
        "pap": metric("PAP", insufficient_handling="ignore"),
    }  # fmt: skip
    assert all(map(math.isnan, calc_metrics(over_truth, RECO, INTERACTIONS[:0]).values()))
    nobody = INTERACTIONS.assign(user_id=["x", "y"])
    serendipity = {"s": metric("Serendipity")}
    for truth in (nobody, INTERACTIONS[:0]):
        assert calc_metrics(serendipity, RECO, truth, INTERACTIONS, ["a", "b"]) == {"s": 0.0}
    assert calc_metrics({"seen": over_truth["seen"]}, RECO, nobody) == {"seen": 0.0}
    shown = {
        "mean": metric("MeanInvUserFreq"), "share": metric("UnrepeatedReco", deep=True),
        "few": metric("SufficientReco", deep=False), **serendipity,
    }  # fmt: skip
    found = calc_metrics(shown, RECO[:0], INTERACTIONS, INTERACTIONS, ["a", "b"])
    assert all(map(math.isnan, found.values()))
    assert calc_metrics({"few": shown["few"]}, RECO.assign(rank=[9, 10, 9])) == {"few": 0.0}
    twice = pd.concat([RECO, RECO.assign(rank=[2, 4, 2])])
    assert calc_metrics({"once": metric("UnrepeatedReco", deep=False)}, twice) == {"once": 0.0}


def test_items_shown_are_a_whole_number_and_their_share_is_not():
    asked = {
        "items": metric("CatalogCoverage", normalize=False),
        "share": metric("CatalogCoverage", normalize=True),
    }
    for reco, n_items in ((RECO, 2), (RECO[:0], 0)):
        found = calc_metrics(asked, reco, catalog=["a", "b", "c", "d"])
        assert found == {"items": n_items, "share": n_items / 4}
        assert [type(value) for value in found.values()] == [int, float]


def test_lists_that_repeat_an_item_and_lists_too_short():
    twice = pd.concat([RECO, RECO.tail(1).assign(rank=2)])
    deep, plain = (metric("UnrepeatedReco", deep=flag) for flag in (True, False))
    assert calc_metrics({"share": deep, "users": plain}, twice) == {"share": 0.75, "users": 0.5}
    short = {how: metric("PAP", 2, insufficient_handling=how) for how in ("ignore", "exclude", "raise")}
    reco = RECO.assign(rank=[1, 2, 1])
    assert calc_metrics({"all": short["ignore"]}, reco, INTERACTIONS) == {"all": 0.25}
    assert calc_metrics({"without w": short["exclude"]}, reco, INTERACTIONS) == {"without w": 0.5}
    with pytest.raises(InputError, match="PAP: 1 users"):
        calc_metrics({"m": short["raise"]}, reco, INTERACTIONS)


def test_lists_of_other_models_are_one_number_each():
    asked = {"same": metric("Intersection", 3, ref_k=None)}
    other = RECO.assign(item_id=["a", "c", "c"])
    assert calc_metrics(asked, RECO, ref_reco=RECO) == {"same": 1.0}
    assert calc_metrics(asked, RECO, ref_reco={"own": RECO, "other": other}) == {
        "same_own": 1.0,
        "same_other": 0.25,
    }
    with pytest.raises(InputError, match="Intersection needs ref_reco"):
        calc_metrics(asked, RECO, ref_reco={})


def test_a_reference_or_a_list_without_an_item_in_its_first_places_has_no_intersection():
    asked = {"same": metric("Intersection", 2, ref_k=None)}
    for reco, reference in ((RECO, RECO[:0]), (RECO.assign(rank=[5, 6, 7]), RECO), (RECO[:0], RECO)):
        assert math.isnan(calc_metrics(asked, reco, ref_reco=reference)["same"])
    assert calc_metrics(asked, RECO, ref_reco=RECO.assign(rank=[5, 6, 7])) == {"same": 0.0}


@pytest.mark.parametrize(
    ("ranks", "error"), [([1, 1, 1], DuplicateError), ([0, 1, 2], InputError), ([1.5, 2, 1], InputError)]
)
@pytest.mark.parametrize(
    "asked",
    [
        metric("Recall"), metric("PAP", insufficient_handling="ignore"), metric("Serendipity"),
        metric("CatalogCoverage", normalize=False), metric("SufficientReco", deep=True),
    ],
    ids=lambda asked: type(asked).__name__,
)  # fmt: skip
def test_ranks_that_are_not_places_are_refused(asked, ranks, error):
    reco = RECO.assign(rank=ranks)
    with pytest.raises(error, match=r"(?s)^reco holds .*RecTools"):
        calc_metrics({"m": asked}, reco, INTERACTIONS, INTERACTIONS, ["a", "b"])
    with pytest.raises(error, match=r"(?s)^ref_reco holds .*RecTools"):
        calc_metrics({"m": metric("Intersection", ref_k=None)}, RECO, ref_reco=reco)


def test_a_gap_in_the_ranks_is_a_place_that_holds_another_item():
    """RecTools 0.19 excludes v, whose list has one other item, and not u, whose list has four with gaps."""
    reco = pd.DataFrame(
        {"user_id": ["u", "u", "v", "v"], "item_id": ["a", "b", "a", "b"], "rank": [1, 5, 1, 2]}
    )
    truth = pd.DataFrame({"user_id": ["u", "u", "v", "v"], "item_id": ["b", "z", "b", "z"]})
    for name in ("PartialAUC", "PAP"):
        asked = {how: metric(name, 3, insufficient_handling=how) for how in ("ignore", "exclude")}
        assert calc_metrics(asked, reco, truth) == {"ignore": pytest.approx(1 / 6), "exclude": 0.0}
        asked = {"exclude": metric(name, 5, insufficient_handling="exclude")}
        assert math.isnan(calc_metrics(asked, reco, truth)["exclude"])


def test_distances_are_those_of_the_calculator():
    class Distances:
        def __getitem__(self, pairs):
            return [0.5 if first != second else 0.0 for first, second in zip(*pairs, strict=True)]

    asked = {"ild": metric("IntraListDiversity", distance_calculator=Distances())}
    assert calc_metrics(asked, RECO) == {"ild": 0.25}  # v has one item, and no distance


def test_partial_auc_has_no_value_where_every_user_is_excluded():
    reco = RECO.assign(rank=[1, 2, 1])
    short = {how: metric("PartialAUC", 2, insufficient_handling=how) for how in ("ignore", "exclude")}
    assert calc_metrics({"all": short["ignore"]}, reco, INTERACTIONS) == {"all": 0.25}
    nobody = INTERACTIONS[INTERACTIONS["user_id"] == "w"]
    assert math.isnan(calc_metrics({"none": short["exclude"]}, reco, nobody)["none"])


def test_a_debias_config_needs_rectools_to_draw_interactions(monkeypatch):
    monkeypatch.setitem(sys.modules, "rectools", None)
    with pytest.raises(ModuleNotFoundError, match="rectools"):
        calc_metrics({"mrr": metric("MRR", debias_config="of rectools")}, RECO, INTERACTIONS)
