"""What models cost: read from the facts of their runs, beside what else is paid for accuracy."""

import numpy as np

from recsys.report.costs import costs, costs_table
from recsys.report.decision import price
from recsys.report.study import make_study
from worlds.metric_values import evaluation_of

FACTS = {
    "best": {"training_seconds": 40.0, "model_bytes": 12_000_000, "milliseconds_per_user": 0.5},
    "near": {"training_seconds": 10.0, "model_bytes": 10_000_000, "milliseconds_per_user": 0.4},
    "far": {"training_seconds": 0.0, "model_bytes": 1, "milliseconds_per_user": 0.001},
}


def data(**facts):
    """Three models, of which one is nearly as good as the best and one is not."""
    values = {"best": 0.5, "near": 0.48, "far": 0.3}
    results = {name: evaluation_of("ndcg", np.full((1, 40), value)) for name, value in values.items()}
    for name, result in results.items():
        result.run |= facts.get(name, {})
    return make_study(results)


def test_costs_are_those_of_the_runs_in_their_units():
    assert costs(data(**FACTS)) == {
        "training": {"best": 40.0, "near": 10.0, "far": 0.0},
        "size": {"best": 12.0, "near": 10.0, "far": 1e-6},
        "time per user": {"best": 0.5, "near": 0.4, "far": 0.001},
    }
    (table,) = costs_table(data(**FACTS))
    assert table.heads == ["model", "training (s)", "size (MB)", "time per user (ms)"]
    assert [cell.text for cell in table.rows[0]][:2] == ["best", "40.0000"]


def test_only_costs_that_differ_from_those_of_a_model_nearly_as_good_are_a_price():
    """The far model is as good as free, and 12 MB are not much more than 10."""
    (paid,) = price(data(**FACTS))
    assert paid.says == "training 40.00 s, 4.0 times near's 10.00 s"


def test_what_is_not_known_is_neither_shown_nor_paid():
    nothing = data()
    assert costs(nothing) == {}
    assert costs_table(nothing) == []
    assert price(nothing) == []
    some = costs(data(near={"model_bytes": 5}))
    assert some == {"size": {"near": 5e-6}}
    assert price(data(near={"model_bytes": 5})) == []
