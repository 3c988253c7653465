"""`recsys.compat.pytrec_eval` without the original: the compiled way and the general one give the same bits.

tests/parity/test_pytrec_eval_face.py compares with pytrec_eval itself.
"""

from __future__ import annotations

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
    with pytest.raises(TypeError, match="relevances should not be float"):
        face.RelevanceEvaluator({"q": {"a": 1.0}}, {"map"})
    evaluator = face.RelevanceEvaluator({"q": {"a": 1}}, {"map"})
    with pytest.raises(TypeError, match="scores should not be str"):
        evaluator.evaluate({"q": {"a": "1"}})
    with pytest.raises(ValueError, match="NaN"):
        evaluator.evaluate({"q": {"a": float("nan")}})
