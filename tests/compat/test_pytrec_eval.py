"""`recsys.compat.pytrec_eval` without the original: the compiled way and the general one give the same bits.

tests/parity/test_pytrec_eval_face.py compares with pytrec_eval itself.
"""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recsys.compat import pytrec_eval as face

MEASURES = [*face.supported_measures, "P.1,3", "ndcg_cut.1,3", "iprec_at_recall.0.33,2", "set_F_2"]
DOCUMENTS = [*(f"d{n}" for n in range(9)), "9", "10", "é", "🎬", ""]
judgements = st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(-2, 3))
scores = st.one_of(st.integers(-2, 3), st.floats(allow_nan=False), st.floats(0.9999999, 1.0000001))
rankings = st.dictionaries(st.sampled_from(DOCUMENTS), scores)


def per_query(of):
    return st.dictionaries(st.sampled_from(["q1", "q2", "10", "9"]), of)


@given(per_query(judgements), per_query(rankings), st.integers(1, 3), st.booleans())
def test_both_ways_give_the_same_bits(judged, run, level, judged_only):
    found = []
    for take_compiled in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            if not take_compiled:
                patch.setattr(face, "plain_values", lambda *_, **__: None)
                patch.setattr(face, "hold_truth", lambda *_, **__: None)
            evaluator = face.RelevanceEvaluator(judged, MEASURES, level, judged_only)
            found.append(evaluator.evaluate(run))
    assert found[0] == found[1]
    assert [*found[0]] == [query for query in run if judged.get(query)]


def test_what_the_original_prints():
    """The example of its documentation."""
    qrel = {"q1": {"d1": 0, "d2": 1, "d3": 0}, "q2": {"d2": 1, "d3": 1}}
    run = {"q1": {"d1": 1.0, "d2": 0.0, "d3": 1.5}, "q2": {"d1": 1.5, "d2": 0.2, "d3": 0.5}}
    assert face.RelevanceEvaluator(qrel, {"map", "ndcg"}).evaluate(run) == {
        "q1": {"map": 0.3333333333333333, "ndcg": 0.5},
        "q2": {"map": 0.5833333333333333, "ndcg": 0.6934264036172708},
    }


def test_mistakes_are_told():
    wrong = {"foo": "unsupported measure foo", "P.0": "at least 1", "ndcg.1": "pairs"}
    for measure, words in wrong.items():
        with pytest.raises(ValueError, match=words):
            face.RelevanceEvaluator({"q": {"a": 1}}, {measure})
    with pytest.raises(TypeError, match=r"relevances should not be float: make them int\(…\)"):
        face.RelevanceEvaluator({"q": {"a": 1.0}}, {"map"})
    evaluator = face.RelevanceEvaluator({"q": {"a": 1}}, {"map"})
    for wrong_score, kind in (("1", "str"), (np.float32(1), "float32")):
        with pytest.raises(TypeError, match=rf"scores should not be {kind}: make them float\(…\)"):
            evaluator.evaluate({"q": {"a": wrong_score}})
    with pytest.raises(ValueError, match="NaN"):
        evaluator.evaluate({"q": {"a": float("nan")}})


@pytest.mark.parametrize(
    ("judged", "measure", "level", "words"),
    [
        ({"q": {"a": 1}}, "map", 0, "relevance_level should be positive, and numbers below 2^31"),
        ({"q": {"a": 1}}, "map", 2**31, "numbers below 2^31"),
        ({3: {"a": 1}}, "map", 1, "query_relevance should map text to dicts, not int to dict."),
        ({"q": ["a"]}, "map", 1, "query_relevance should map text to dicts, not str to list."),
    ],
)
def test_arguments_of_another_type_are_told_by_name(judged, measure, level, words):
    with pytest.raises(TypeError, match=re.escape(words)):
        face.RelevanceEvaluator(judged, {measure}, level)


def test_a_run_of_another_type_is_told_and_an_empty_one_has_no_values():
    evaluator = face.RelevanceEvaluator({"q": {"a": 1}}, {"map"})
    assert evaluator.evaluate({}) == {}
    with pytest.raises(TypeError, match=r"scores should be a dict, not list\."):
        evaluator.evaluate([("q", {"a": 1.0})])
    with pytest.raises(TypeError, match=r"scores should map text to dicts, not str to tuple\."):
        evaluator.evaluate({"q": ("a", 1.0)})


def test_parameters_of_single_measures():
    qrel, run = {"q": {"a": 1, "b": 0, "c": 1}}, {"q": {"a": 3.0, "b": 2.0}}
    asked = {"11pt_avg.0.2,0.8", "set_F.0", "utility.1,2,3,4", "set_P"}
    found = face.RelevanceEvaluator(qrel, asked).evaluate(run)["q"]
    # Recall 0.2 is reached with precision 1, recall 0.8 never; beta 0 of set_F is the precision of the set.
    assert found["11pt_avg"] == 0.5
    assert found["set_F"] == found["set_P"] == 0.5
    assert found["utility"] == 1 + 2 + 3 - 3 * 4  # without a catalogue the rest is 0 + 1 - 2 - 2
    with pytest.raises(ValueError, match=r"utility takes four different weights, not 1,2\."):
        face.RelevanceEvaluator(qrel, {"utility.1,2"})


def test_files_of_trec_are_read_and_a_bad_line_is_shown():
    run = ["q1 Q0 d1 1 0.5 bm25\n", "q1 Q0 d2 2 0.25 bm25\n", "q2 Q0 d1 1 3 bm25\n"]
    assert face.parse_run(run) == {"q1": {"d1": 0.5, "d2": 0.25}, "q2": {"d1": 3.0}}
    assert face.parse_qrel(["q1 0 d1 2", "q1 0 d2 0"]) == {"q1": {"d1": 2, "d2": 0}}
    with pytest.raises(ValueError, match="6 columns were expected, and 'q1 Q0 d1' has 3"):
        face.parse_run(["q1 Q0 d1\n"])
    with pytest.raises(ValueError, match="4 columns were expected, and 'q1 0 d1 2 x' has 5"):
        face.parse_qrel(["q1 0 d1 2 x"])
    with pytest.raises(AssertionError, match="query 'q1' has 'd1' twice"):
        face.parse_qrel(["q1 0 d1 2", "q1 0 d1 0"])


@pytest.mark.parametrize(
    ("measure", "value"),
    [("num_ret", 7.0), ("map", 3.5), ("gm_map", math.exp(3.5)), ("num_q", 7.0)],
)
def test_values_of_queries_become_one_number(measure, value):
    assert face.compute_aggregated_measure(measure, [3.0, 4.0]) == value
