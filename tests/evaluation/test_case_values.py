"""Values per case of nested dicts: those of evaluate, in the order of the run."""

import math
import warnings
from collections import OrderedDict, defaultdict
from contextlib import contextmanager
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recsys
from recsys import kernels
from recsys.conventions.decisions import DECISIONS
from recsys.errors import InputError, RecsysError
from recsys.evaluation import case_values
from recsys.evaluation.case_values import values_by_case
from recsys.inputs import nested_dicts
from recsys.metrics.registry import METRICS as ALL_METRICS

RUN = {
    "q3": {"a": 0.5, "b": 0.75, "c": 0.75},
    "q1": {"x": 3, "a": 2, "y": -1.5},
    "only in the run": {"a": 1.0},
    "q2": {"a": 1.0, "é": 2.0},
}
TRUTH = {
    "q1": {"a": 1, "y": 2, "z": 1},
    "q2": {"a": 0, "é": 1},
    "q3": {"c": 1},
    "only in the truth": {"a": 1},
}
METRICS = ["ndcg@10", "map", "mrr", "recall@2", "ndcg(gain=exp2)@2"]


@pytest.mark.parametrize("conventions", [None, "trec_eval", "ranx", {"ties": "expected"}])
@pytest.mark.filterwarnings("ignore::recsys.errors.TieWarning")
def test_values_by_case_are_those_of_evaluate_in_the_order_of_the_run(conventions):
    cases, values = values_by_case(RUN, TRUTH, METRICS, conventions)
    assert cases == ["q3", "q1", "q2"]
    assert list(values) == METRICS
    both = {case: TRUTH[case] for case in cases}
    result = recsys.evaluate({case: RUN[case] for case in cases}, both, METRICS, conventions=conventions)
    for metric in METRICS:
        assert values[metric].tolist() == result.per_user[metric].loc[cases].tolist(), metric


def test_names_stay_as_they_were_asked_for():
    _, values = values_by_case(RUN, TRUTH, ["NDCG@5", "reciprocal_rank"], None)
    assert list(values) == ["NDCG@5", "reciprocal_rank"]


def test_cases_that_a_mean_leaves_out_are_nan_and_nothing_is_warned_of(recwarn):
    cases, values = values_by_case({"q": {}, "p": {"a": 1.0}}, {"q": {"a": 1}, "p": {}}, ["mrr"], "trec_eval")
    assert cases == ["q", "p"]
    assert [math.isnan(value) for value in values["mrr"]] == [True, True]
    assert not recwarn.list


def test_no_shared_case_gives_no_values():
    cases, values = values_by_case({"q": {"a": 1.0}}, {"p": {"a": 1}}, ["mrr", "map"], None)
    assert cases == []
    assert {name: column.shape for name, column in values.items()} == {"mrr": (0,), "map": (0,)}


def test_whole_numbers_are_ids_too():
    cases, values = values_by_case({7: {1: 0.5, 2: 0.75}, 3: {1: 1.0}}, {3: {1: 1}, 7: {1: 1}}, ["mrr"], None)
    assert cases == [7, 3]
    assert values["mrr"].tolist() == [0.5, 1.0]


def test_a_metric_of_the_whole_catalogue_is_refused():
    with pytest.raises(InputError, match="no value per case"):
        values_by_case(RUN, TRUTH, ["coverage@10"], None)


# ---- the compiled walk against the general way


def requests_of_places(k):
    """Every metric that reads nothing but places, with and without a cut-off."""
    plain = [m for m in ALL_METRICS.values() if not m.needs and m.kind != "catalogue"]
    cut = [f"{m.name}@{k}" for m in plain if m.at_k != "never"]
    return cut + [m.name for m in plain if m.at_k != "required"]


TEXTS = st.sampled_from(["a", "b", "aa", "B", "", "é", "中", "\U0001f600", "\uffff", "z" * 9, "z" * 9 + "é"])
SCORES = st.sampled_from(
    [0.0, -0.0, 1.0, 0.5, -2.0, 1e308, 5e-324, 1, -3, True, np.float32(0.5), np.int64(1)]
)
GRADES = st.sampled_from([0, 1, 2, 0.5, 3.0, np.float64(2.0), np.int64(1), False])
RUNS = st.dictionaries(TEXTS, st.dictionaries(TEXTS, SCORES, max_size=9), min_size=1, max_size=5)
JUDGED = st.dictionaries(
    TEXTS, st.dictionaries(TEXTS, GRADES | st.just(-1), max_size=9), min_size=1, max_size=5
)
RULES = st.fixed_dictionaries(
    {}, optional={name: st.sampled_from(list(words)) for name, words in DECISIONS.items()}
)


@contextmanager
def walking(*, is_on):
    """Nested dicts walked over, however few; or read like any other container."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nested_dicts, "_MANY_USERS", 1)
        if not is_on:
            for module in (nested_dicts, case_values):
                patch.setattr(module, "rank_dicts", lambda *_, **__: None)
        yield


def outcome(call):
    """What a call gives, or the error it ends with; and what it warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = call()
        except RecsysError as error:
            found = type(error), str(error)
    return found, [str(warning.message) for warning in caught]


def both_ways(call):
    found = []
    for is_on in (True, False):
        with walking(is_on=is_on):
            found.append(outcome(call))
    return found


def same_bits(one, other):
    assert one.keys() == other.keys()
    for name, column in one.items():
        assert column.dtype == other[name].dtype == np.float64
        assert column.tobytes() == other[name].tobytes(), name


@settings(max_examples=150, deadline=None)
@given(
    run=RUNS, truth=JUDGED, rules=RULES, metrics=st.lists(st.sampled_from(requests_of_places(2)), min_size=1)
)
def test_a_walk_gives_the_bits_of_the_general_way(run, truth, rules, metrics):
    (walked, told), (general, told_of_general) = both_ways(lambda: values_by_case(run, truth, metrics, rules))
    assert told == told_of_general
    if isinstance(walked[0], type):
        assert walked == general
        return
    assert walked[0] == general[0]
    same_bits(walked[1], general[1])


@settings(max_examples=100, deadline=None)
@given(run=RUNS, truth=JUDGED, rules=RULES)
def test_evaluate_has_the_same_result_either_way(run, truth, rules):
    metrics = ["ndcg@2", "map", "mrr", "recall@3", "f@2", "err@4"]
    found = both_ways(lambda: recsys.evaluate(run, truth, metrics, conventions=rules))
    (walked, told), (general, told_of_general) = found
    assert told == told_of_general
    if isinstance(walked, tuple):
        assert walked == general
        return
    assert dict(walked) == pytest.approx(dict(general), rel=0, abs=0, nan_ok=True)
    assert walked.counts == general.counts
    assert walked.notes == general.notes
    assert walked.conventions == general.conventions
    rows, of_general = walked.partial.rows, general.partial.rows
    assert rows.ids.tolist() == of_general.ids.tolist()
    same_bits(rows.columns, of_general.columns)


@pytest.mark.skipif(not kernels.backends().native, reason="the compiled kernels are not installed")
@pytest.mark.parametrize("n_judged", [3, 60])
def test_many_ties_among_many_items_are_put_in_order_as_in_the_general_way(n_judged):
    rng = np.random.default_rng(n_judged)
    names = [f"d{n}" for n in rng.permutation(400)]
    run = {
        f"q{q}": dict(zip(rng.permutation(names), rng.integers(0, 9, 400).tolist(), strict=True))
        for q in range(9)
    }
    run = {case: {str(item): score for item, score in entry.items()} for case, entry in run.items()}
    truth = {
        case: dict(
            zip(
                rng.permutation(names)[:n_judged].tolist(), rng.integers(0, 3, n_judged).tolist(), strict=True
            )
        )
        for case in reversed(run)
    }
    assert kernels.rank_dicts(run, truth) is not None
    for ties in DECISIONS["ties"]:
        (walked, _), (general, _) = both_ways(
            lambda: values_by_case(run, truth, ["ndcg@20", "map", "mrr@5", "recall@100"], {"ties": ties})  # noqa: B023
        )
        same_bits(walked[1], general[1])


ODD_NUMBERS = [math.nan, math.inf, 2**53, -(2**53) - 1, 2**70, "0.5", None, np.float16(1), 1 + 0j, [1.0]]
ODD_IDS = ["\ud800", 7, np.str_("z"), b"a", None, ("a",), 1.5, True]


@pytest.mark.parametrize("odd", ODD_NUMBERS, ids=repr)
@pytest.mark.parametrize("side", ["score", "grade"])
def test_odd_numbers_are_answered_in_the_words_of_the_general_way(odd, side):
    run, truth = {"p": {"a": 1.0, "b": 0.5}, "q": {"a": 1.0}}, {"p": {"b": 1}, "q": {"a": 1, "c": 2}}
    (run if side == "score" else truth)["q"]["a"] = odd
    assert kernels.rank_dicts(run, truth) is None
    walked, general = both_ways(lambda: recsys.evaluate(run, truth, ["ndcg@2"]))
    assert str(walked) == str(general)


@pytest.mark.parametrize("odd", ODD_IDS, ids=ascii)
@pytest.mark.parametrize(
    "where", ["case of the run", "case of the truth", "item of the run", "item of the truth"]
)
def test_odd_ids_are_answered_in_the_words_of_the_general_way(odd, where):
    run, truth = {"p": {"a": 1.0, "b": 0.5}, "q": {"a": 1.0}}, {"p": {"b": 1}, "q": {"a": 1, "c": 2}}
    side = run if "run" in where else truth
    (side if "case" in where else side["q"])[odd] = {"a": 1} if "case" in where else 1
    assert kernels.rank_dicts(run, truth) is None
    walked, general = both_ways(lambda: recsys.evaluate(run, truth, ["ndcg@2"]))
    assert str(walked) == str(general)


class Text(str):
    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other):
        raise AssertionError("no code of a key may run during the walk")


def test_keys_with_code_of_their_own_are_left_to_python():
    assert kernels.rank_dicts({"q": {Text("a"): 1.0}}, {"q": {"a": 1}}) is None
    assert kernels.rank_dicts({Text("q"): {"a": 1.0}}, {"q": {"a": 1}}) is None


@pytest.mark.parametrize(
    "kind", [dict, defaultdict, OrderedDict, MappingProxyType], ids=lambda kind: kind.__name__
)
def test_every_kind_of_mapping_gives_the_same_values(kind):
    def made(data):
        return kind(dict, data) if kind is defaultdict else kind(data)

    run, truth = (made({case: made(entry) for case, entry in side.items()}) for side in (RUN, TRUTH))
    is_plain = kind in (dict, defaultdict) and kernels.backends().native
    assert (kernels.rank_dicts(run, truth) is not None) == is_plain
    found = values_by_case(run, truth, METRICS, "trec_eval")
    expected = values_by_case(RUN, TRUTH, METRICS, "trec_eval")
    assert found[0] == expected[0]
    same_bits(found[1], expected[1])
    assert len(run) == len(RUN)


def test_a_result_is_of_the_dicts_as_they_were():
    run = {f"q{q}": {"a": 1.0, "b": 0.5, "c": 0.25} for q in range(40)}
    truth = {f"q{q}": {"b": 1, "d": 1} for q in range(40)}
    result = recsys.evaluate(run, truth, ["ndcg@2", "recall@2"])
    with walking(is_on=False):
        expected = recsys.evaluate(run, truth, ["ndcg@2", "recall@2"])
        bounds = expected.bounds()
        text = str(expected)
    run["q0"].clear()
    truth.clear()
    assert str(result) == text
    assert str(result.bounds()) == str(bounds)
    assert result.truth_keys.tolist() == expected.truth_keys.tolist()


def test_a_walk_is_made_of_many_users_only(monkeypatch):
    walks = []
    monkeypatch.setattr(nested_dicts, "rank_dicts", lambda *_, **__: walks.append(1))
    for n_users, n_walks in ((31, 0), (32, 1)):
        run = {f"q{q}": {"a": 1.0} for q in range(n_users)}
        recsys.evaluate(run, {case: {"a": 1} for case in run}, iter(["mrr"]))
        assert len(walks) == n_walks
    recsys.evaluate(
        {case: list(entry) for case, entry in run.items()}, {case: {"a": 1} for case in run}, ["mrr"]
    )
    assert len(walks) == 1


@pytest.mark.skipif(not kernels.backends().native, reason="the compiled kernels are not installed")
def test_scores_of_32_bits_are_equal_where_trec_eval_has_them_equal():
    run, truth = {"q": {"b": 0.1, "a": 0.1 + 1e-12}}, {"q": {"b": 1}}
    for float32, place in ((False, 2), (True, 1)):
        found = case_values.plain_values(run, truth, ["mrr"], {"ties": "by_id_desc"}, float32=float32)
        assert found is not None
        assert found[1]["mrr"].tolist() == [1 / place]
    for odd in (1e39, math.nan, np.float32(0.5), "1"):
        assert case_values.plain_values({"q": {"a": odd}}, truth, ["mrr"], float32=True) is None


@pytest.mark.skipif(not kernels.backends().native, reason="the compiled kernels are not installed")
def test_a_truth_that_is_held_is_as_it_was_and_takes_plain_dicts_only():
    truth = {"q": {"a": 1, "b": -2}, "none": {}, "p": {"a": True}}
    held = kernels.hold_truth(truth)
    truth["q"]["a"] = 2
    truth.clear()
    assert held.dicts() == {"q": {"a": 1, "b": -2}, "p": {"a": 1}}
    for odd in ({"q": {"a": 0.5}}, {"q": {7: 1}}, {7: {"a": 1}}, {"q": [1]}, {"q": {"\ud800": 1}}, [1]):
        assert kernels.hold_truth(odd) is None
    with pytest.raises(ValueError, match="shared"):
        kernels.rank_dicts({"q": {"a": 1.0}}, held)


@pytest.mark.skipif(not kernels.backends().native, reason="the compiled kernels are not installed")
@given(RUNS, JUDGED, st.booleans())
def test_a_truth_that_is_held_gives_the_same_places(run, truth, float32):
    held = kernels.hold_truth(
        {case: {item: int(grade) for item, grade in row.items()} for case, row in truth.items()}
    )
    plain = kernels.rank_dicts(run, held.dicts(), shared=True, float32=float32)
    for again in range(2):
        found = kernels.rank_dicts(
            dict(reversed(run.items())) if again else run, held, shared=True, float32=float32
        )
        assert (plain is None) == (found is None)
        if plain is not None and found is not None:
            assert sorted(plain.cases) == sorted(found.cases)
            for name in ("truth_indptr", "truth_grade", "case", "grade", "above", "n_listed"):
                assert getattr(plain, name).tolist() == getattr(found, name).tolist()


def test_rows_become_dicts_with_and_without_the_kernels(monkeypatch):
    rows = np.array([[0.5, 1.0], [0.25, math.inf]])
    expected = {"p": {"map": 0.5, "mrr": 1.0}, "q": {"map": 0.25, "mrr": math.inf}}
    assert kernels.dict_rows(["p", "q"], ["map", "mrr"], rows) == expected
    monkeypatch.setattr(kernels.native_backend, "load", lambda: (None, ""))
    assert kernels.dict_rows(["p", "q"], ["map", "mrr"], rows) == expected
    with pytest.raises(InputError, match="each name and each key"):
        kernels.dict_rows(["p"], ["map", "mrr"], rows)
