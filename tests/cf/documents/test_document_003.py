"""Document 003: compute_metrics against the definitions in its text, and its example as written."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recsys.cf.evaluation import compute_metrics, compute_user_metrics
from recsys.errors import CutoffError, InputError, TieWarning, UnknownNameError

NAMES = ["precision", "recall", "hit_rate", "ndcg", "rmse"]
HALVES = st.integers(-4, 10).map(lambda n: n / 2)
PAIRS = st.lists(st.tuples(HALVES, HALVES), max_size=7)
WORLDS = st.dictionaries(st.integers(0, 6), PAIRS, min_size=1).filter(lambda w: any(w.values()))


def user_values_by_definition(pairs, k, threshold):
    """The definitions of the document for one user; None if there are no relevant items."""
    order = sorted(range(len(pairs)), key=lambda i: -pairs[i][0])  # equal predictions keep their order
    top = [pairs[i][1] >= threshold for i in order[:k]]
    relevant = sum(true >= threshold for _, true in pairs)
    dcg = sum(hit / math.log2(place + 2) for place, hit in enumerate(top))
    ideal = sum(1 / math.log2(place + 2) for place in range(min(k, relevant)))
    return {
        "precision": sum(top) / k,
        "recall": sum(top) / relevant if relevant else None,
        "hit_rate": float(any(top)),
        "ndcg": dcg / ideal if relevant else None,
        "rmse": math.sqrt(sum((p - t) ** 2 for p, t in pairs) / len(pairs)) if pairs else None,
    }


def values_by_definition(world, k, threshold):
    users = {user: user_values_by_definition(pairs, k, threshold) for user, pairs in world.items()}
    means = {}
    for name in NAMES[:4]:
        values = [v[name] for v in users.values() if v[name] is not None]
        means[name] = sum(values) / len(values) if values else None
    errors = [(p - t) ** 2 for pairs in world.values() for p, t in pairs]
    return means | {"rmse": math.sqrt(sum(errors) / len(errors))}


@pytest.mark.filterwarnings("ignore::recsys.errors.TieWarning")
@given(world=WORLDS, k=st.integers(1, 8), threshold=HALVES)
def test_all_users_agree_with_the_definitions(world, k, threshold):
    got, expected = compute_metrics(world, NAMES, k, threshold), values_by_definition(world, k, threshold)
    assert list(got) == NAMES
    assert [got[n] is None for n in NAMES] == [expected[n] is None for n in NAMES]
    assert {n: v for n, v in got.items() if v is not None} == pytest.approx(
        {n: v for n, v in expected.items() if v is not None}, abs=1e-12
    )


@pytest.mark.filterwarnings("ignore::recsys.errors.TieWarning")
@given(world=WORLDS, k=st.integers(1, 8), threshold=HALVES)
def test_each_user_agrees_with_the_definitions(world, k, threshold):
    got = compute_user_metrics(world, NAMES, k, threshold)
    for user, pairs in world.items():
        expected = user_values_by_definition(pairs, k, threshold)
        for name in NAMES:
            assert (got[user][name] is None) == (expected[name] is None), (user, name)
            if expected[name] is not None:
                assert got[user][name] == pytest.approx(expected[name], abs=1e-12)


@pytest.mark.shared
def test_the_example_runs_as_written(shared_dir, capsys):
    (path,) = (shared_dir / "seeds").glob("003_*.txt")
    # The closing fence is at the end of the last line, not on a line of its own.
    (code,) = re.findall(r"^```python\n(.*?)```", path.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    rng = np.random.default_rng(0)
    predictions = {user: [tuple(row) for row in rng.uniform(1, 5, (15, 2))] for user in range(30)}
    names = {"compute_metrics": compute_metrics, "user_predictions_dict": predictions}
    exec(code, names)  # noqa: S102 - the document's own code
    assert list(names["results"]) == ["precision", "recall", "ndcg", "rmse"]
    expected = values_by_definition(predictions, 10, 3.5)
    assert names["results"] == pytest.approx({n: expected[n] for n in names["results"]})
    assert "'precision': 0." in capsys.readouterr().out


def test_the_example_of_the_ideal_list():
    ndcg = compute_user_metrics({1: [(3, 1), (2, 0), (1, 1)]}, ["ndcg"], k=3, threshold=0.5)[1]["ndcg"]
    assert ndcg == pytest.approx(1.5 / (1 + 1 / math.log2(3)))


def test_equal_predictions_keep_their_order_with_a_warning():
    for pairs, expected in (([(2, 5), (2, 1)], 1.0), ([(2, 1), (2, 5)], 0.0)):
        with pytest.warns(TieWarning, match="equal predictions keep the order they came in"):
            assert compute_metrics({1: pairs}, ["precision"], k=1)["precision"] == expected


def test_arrays_and_other_spellings():
    world = {"a": np.array([[4.0, 5.0], [3.0, 2.0]]), "b": [(1, 1)]}
    got = compute_metrics(world, ["hit", "hitrate", "hit_rate", "mae", "map"], k=1)
    assert got["hit"] == got["hitrate"] == got["hit_rate"] == 0.5
    assert got["mae"] == pytest.approx(2 / 3)
    assert compute_metrics(world, "rmse") == {"rmse": pytest.approx(math.sqrt(2 / 3))}


def test_recall_is_none_if_no_user_has_relevant_items():
    assert compute_metrics({1: [(3, 1)]}, ["recall", "precision"]) == {"recall": None, "precision": 0.0}


@pytest.mark.parametrize(
    ("predictions", "kwargs", "error"),
    [
        ({}, {}, InputError),
        ({1: [(math.nan, 3.0)]}, {}, InputError),
        ({1: [(3.0, math.nan)]}, {}, InputError),
        ({1: [(3.0, math.inf)]}, {"metrics": ["rmse"]}, InputError),
        ({1: [(3.0, 2.0, 1.0)]}, {}, InputError),
        ({1: ["ab"]}, {}, InputError),
        ({1: [(3.0, 2.0)]}, {"k": 0}, CutoffError),
        ({1: [(3.0, 2.0)]}, {"metrics": ["recal"]}, UnknownNameError),
        ({1: [(3.0, 2.0)]}, {"metrics": ["auc"]}, UnknownNameError),
        ({1: [(3.0, 2.0)]}, {"metrics": []}, UnknownNameError),
    ],
)
def test_invalid_input_is_an_error(predictions, kwargs, error):
    with pytest.raises(error):
        compute_metrics(predictions, **kwargs)
