"""calc_metrics of RecTools: what it needs is named, what it does not know is said."""

import pandas as pd
import pytest

from recsys.compat.rectools import calc_metrics
from recsys.errors import ColumnError, InputError, RecsysWarning

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
    with pytest.warns(RecsysWarning, match="'own' is a MyMetric"):
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
