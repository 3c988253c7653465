"""`recsys.compat.pytrec_eval` beside pytrec_eval itself: the same keys, numbers to the last bit, errors."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
import types

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from recsys.compat import pytrec_eval as ours
from worlds.parity import SEEDS, peer

theirs = peer("pytrec_eval")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]
BOTH = [ours, theirs]

# What they hold is no number of the run: the run's name and the string of judgements, read as numbers.
NO_NUMBER = {"runid", "relstring"}
MEASURES = sorted(theirs.supported_measures - NO_NUMBER)
MORE = ["P.1,3", "ndcg_cut.1,3,7", "iprec_at_recall.0.33,0.5,2", "Rprec_mult.0.5,3", "recall_2", "set_F_2"]
POINTS = "11pt_avg.0.1,0.25,0.4,0.8,0.9,1"
DOCUMENTS = [*(f"d{n}" for n in range(12)), "9", "10", "é", "日本", "🎬", "a b", ""]
grades = st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(-3, 4), min_size=1).filter(
    lambda judged: max(judged.values()) >= 0  # theirs reads memory it never wrote where all are negative
)
scores = st.one_of(
    st.integers(-2, 3), st.floats(allow_nan=False), st.floats(0.9999999, 1.0000001), st.just(-0.0)
)
lists = st.dictionaries(st.sampled_from(DOCUMENTS), scores, min_size=1)


def per_query(of):
    return st.dictionaries(st.sampled_from(["q1", "q2", "10", "9", "ü"]), of)


def compare(judged, run, measures, **options):
    mine, other = (lib.RelevanceEvaluator(judged, measures, **options).evaluate(run) for lib in BOTH)
    assert list(mine) == list(other)
    for query, values in other.items():
        assert list(mine[query]) == list(values)
        for key, value in values.items():
            if math.isnan(value):  # 0/0 of a list that judged_docs_only_flag has emptied
                assert key.startswith(("iprec", "11pt"))
                assert mine[query][key] == 0.0
            else:
                assert mine[query][key] == value, (query, key)
            assert type(mine[query][key]) is float


@settings(max_examples=600, deadline=None)
@given(per_query(grades), per_query(lists), st.integers(1, 4), st.booleans())
@example({"q1": {"d1": 1}}, {"q1": {"d2": 1.0}}, 1, True)
def test_every_measure_to_the_last_bit(judged, run, level, judged_only):
    compare(judged, run, [*MEASURES, *MORE], relevance_level=level, judged_docs_only_flag=judged_only)
    compare(judged, run, [POINTS], relevance_level=level, judged_docs_only_flag=judged_only)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("levels", [None, 5])
def test_long_lists(seed, levels):
    rng = random.Random(seed)
    pool = [f"doc{n}" for n in range(1500)]

    def score():
        return rng.random() if levels is None else float(rng.randrange(levels))

    run = {f"q{q}": {d: score() for d in rng.sample(pool, 1200)} for q in range(20)}
    judged = {f"q{q}": {d: rng.choice([-1, 0, 0, 1, 2, 3]) for d in rng.sample(pool, 300)} for q in range(25)}
    compare(judged, run, MEASURES)


@settings(max_examples=200, deadline=None)
@given(st.sets(st.sampled_from([*MEASURES, *MORE, "official", "set", "all_trec"])))
def test_any_set_of_measures_has_the_same_keys(measures):
    judged, run = {"q": {"a": 1, "b": 2, "c": 0}}, {"q": {"a": 1.0, "c": 2.0, "x": 3.0}}
    keys = [list(lib.RelevanceEvaluator(judged, measures).evaluate(run)["q"]) for lib in BOTH]
    assert keys[0] == keys[1]


@pytest.mark.parametrize(
    "measures",
    [
        ["P_5", "P_10"], ["P", "P_7"], ["P.10,5"], ["P_5.5,3"], ["P.5foo"], ["P.007"], ["map.5"], "P",
        ("map", "map"), {"map": 1}, frozenset({"ndcg"}), ["set_F.10,2"], ["set_F.0.5,2"], ["infAP_3"],
        ["iprec_at_recall.0.001,0.004"], ["Rprec_mult.0"], ["utility.0.5,1,2,3"], ["num_q.3"], [],
        ["11pt_avg.0.5"], ["11pt_avg.0.3,0.1,1,0.70"], ["11pt_avg_5"], ["set_F.0"], ["P.99999999"],
    ],
)  # fmt: skip
def test_parameters(measures):
    compare({"q": {"a": 1, "b": 0, "e": 2}}, {"q": {"a": 1.0, "c": 2.0, "e": 0.5}}, measures)


def test_the_names_it_has():
    assert ours.supported_measures == theirs.supported_measures
    assert ours.supported_nicknames == theirs.supported_nicknames
    assert set(theirs.__all__) <= set(dir(ours))
    assert ours.__version__ == theirs.__version__


JUDGED, RUN = {"q": {"a": 1, "b": 0}}, {"q": {"a": 1.0, "c": 2.0}}
WRONG = {
    "float relevance": ({"q": {"a": 1.0}}, ["map"], RUN, {}),
    "text relevance": ({"q": {"a": "1"}}, ["map"], RUN, {}),
    "no relevance": ({"q": {"a": None}}, ["map"], RUN, {}),
    "number as document": ({"q": {1: 1}}, ["map"], RUN, {}),
    "number as query": ({1: {"a": 1}}, ["map"], RUN, {}),
    "list of judgements": ({"q": ["a"]}, ["map"], RUN, {}),
    "judgements no dict": ([1], ["map"], RUN, {}),
    "no judgements": (None, ["map"], RUN, {}),
    "judgements of a query no dict": ({"q": types.MappingProxyType({"a": 1})}, ["map"], RUN, {}),
    "unknown measure": (JUDGED, ["foo"], RUN, {}),
    "name in letters": (JUDGED, "map", RUN, {}),
    "negative cut-off": (JUDGED, ["P.-5"], RUN, {}),
    "preferences": (JUDGED, ["prefs"], RUN, {}),
    "no measures": (JUDGED, None, RUN, {}),
    "number as measure": (JUDGED, [1], RUN, {}),
    "list as measure": (JUDGED, [["map"]], RUN, {}),
    "run as a list": (JUDGED, ["map"], [1], {}),
    "run as a mapping": (JUDGED, ["map"], types.MappingProxyType(RUN), {}),
    "list of pairs": (JUDGED, ["map"], {"q": [("a", 1.0)]}, {}),
    "text score": (JUDGED, ["map"], {"q": {"a": "1"}}, {}),
    "no score": (JUDGED, ["map"], {"q": {"a": None}}, {}),
    "number as document of a run": (JUDGED, ["map"], {"q": {1: 1.0}}, {}),
    "number as query of a run": (JUDGED, ["map"], {1: {"a": 1.0}}, {}),
    "level 0": (JUDGED, ["map"], RUN, {"relevance_level": 0}),
    "fraction as level": (JUDGED, ["map"], RUN, {"relevance_level": 2.0}),
    "text as level": (JUDGED, ["map"], RUN, {"relevance_level": "1"}),
    "level of 33 bits": (JUDGED, ["map"], RUN, {"relevance_level": 2**31}),
    "flag of 33 bits": (JUDGED, ["map"], RUN, {"judged_docs_only_flag": -(2**31) - 1}),
    "text as flag": (JUDGED, ["map"], RUN, {"judged_docs_only_flag": "a"}),
    "none as flag": (JUDGED, ["map"], RUN, {"judged_docs_only_flag": None}),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_has_the_same_type_of_error(name):
    judged, measures, run, options = WRONG[name]
    kinds = []
    for lib in BOTH:
        with pytest.raises(Exception) as caught:  # noqa: PT011 - the two types are compared
            lib.RelevanceEvaluator(judged, measures, **options).evaluate(run)
        kinds.append(caught.type)
    assert kinds[0] is kinds[1]


@pytest.mark.parametrize("run", [{}, None, {"z": {"a": 1.0}}])
def test_nothing_to_evaluate(run):
    results = [lib.RelevanceEvaluator(JUDGED, {"map"}).evaluate(run) for lib in BOTH]
    assert results == [{}, {}]


@pytest.mark.parametrize("level", [True, np.int64(2), np.uint8(1), 2**31 - 1])
def test_whole_numbers_of_any_kind_as_level_and_flag(level):
    run = {"q": {"a": np.float64(1), "c": 2, "b": True}}
    compare(JUDGED, run, {"map", "P_2"}, relevance_level=level, judged_docs_only_flag=np.int8(1))


def test_one_evaluator_for_many_runs_and_judgements_that_change_later():
    for lib in BOTH:
        judged = {"q": {"a": 1}, "r": {}}
        evaluator = lib.RelevanceEvaluator(judged, {"map"})
        judged["q"]["a"], judged["r"] = 0, {"a": 1}
        for at, run in (
            (1.0, {"q": {"a": 2.0, "b": 1.0}, "r": {"a": 1.0}}),
            (0.5, {"q": {"a": 2.0, "b": 3.0}}),
        ):
            assert evaluator.evaluate(run) == {"q": {"map": at}}


def test_lines_of_files():
    run, qrel = ["q Q0 d 1 2.5 t\n", "q Q0 e 2 1 t"], ["q 0 d 1\n", "r 0 d -1\n"]
    assert ours.parse_run(run) == theirs.parse_run(run)
    assert ours.parse_qrel(qrel) == theirs.parse_qrel(qrel)
    for parse, lines in (
        ("parse_run", ["q Q0 d 1 2\n"]), ("parse_run", [run[0]] * 2), ("parse_run", ["q Q0 d 1 x t"]),
        ("parse_qrel", ["q 0 d 1.5"]), ("parse_qrel", [qrel[0]] * 2), ("parse_qrel", ["\n"]),
    ):  # fmt: skip
        kinds = []
        for lib in BOTH:
            with pytest.raises((ValueError, AssertionError)) as caught:
                getattr(lib, parse)(lines)
            kinds.append(caught.type)
        assert kinds[0] is kinds[1]


@given(st.sampled_from(["map", "num_ret", "gm_map", "ndcg"]), st.lists(st.floats(-20, 20), max_size=20))
def test_aggregates(measure, values):
    mine, other = (lib.compute_aggregated_measure(measure, values) for lib in BOTH)
    assert mine == other or (math.isnan(mine) and math.isnan(other))


def test_what_kills_the_original_is_an_error_or_a_value_here():
    """docs/drop-in.md lists these; the original aborts the process, or reads memory it never wrote."""
    for measures in ({"P.0"}, {"ndcg.1"}, {"utility.1"}):
        with pytest.raises(ValueError, match="takes"):
            ours.RelevanceEvaluator(JUDGED, measures)
    with pytest.raises(ValueError, match="NaN"):
        ours.RelevanceEvaluator(JUDGED, {"map"}).evaluate({"q": {"a": math.nan}})
    evaluator = ours.RelevanceEvaluator({"q": {"a": 1}, "n": {"a": -1}}, {"map", "num_rel", "num_ret"})
    assert evaluator.evaluate({"q": {}, "n": {"a": 1.0}}) == {
        "q": {"num_ret": 0.0, "num_rel": 1.0, "map": 0.0},
        "n": {"num_ret": 0.0, "num_rel": 0.0, "map": 0.0},
    }


# ------------------------------------------------------------------------------- the tests of ir_measures
UNDER_THEIR_NAMES = """
import json, re, sys
import pytest

reached, outcomes = set(), {}
if sys.argv[2] == "faces":
    import recsys.compat.pytrec_eval, recsys.compat.ranx
    sys.modules["pytrec_eval"] = recsys.compat.pytrec_eval
    sys.modules["ranx"] = recsys.compat.ranx


class Outcomes:
    current = None

    def pytest_runtest_setup(self, item):
        Outcomes.current = item.nodeid.rsplit("/", 1)[-1]

    def pytest_runtest_logreport(self, report):
        part = getattr(getattr(report, "context", None), "kwargs", {})
        name = report.nodeid.rsplit("/", 1)[-1] + "".join(f" {k}={v}" for k, v in sorted(part.items()))
        name = re.sub(" at 0x[0-9a-f]+", "", name)
        outcomes[name] = outcomes.get(name, True) and report.outcome != "failed"


def marked(function):
    def call(*args, **options):
        reached.add(Outcomes.current)
        return function(*args, **options)
    return call


if sys.argv[2] == "faces":
    import pytrec_eval, ranx
    pytrec_eval.RelevanceEvaluator.evaluate = marked(pytrec_eval.RelevanceEvaluator.evaluate)
    ranx.evaluate = marked(ranx.evaluate)
pytest.main(["-q", "-p", "no:randomly", "-p", "no:cacheprovider", sys.argv[1]], plugins=[Outcomes()])
json.dump([outcomes, sorted(filter(None, reached))], open("outcomes.json", "w"))
"""


@pytest.mark.shared
@pytest.mark.timeout(1200)
def test_the_tests_of_ir_measures(shared_dir, tmp_path):
    """Unmodified: what passes with the originals passes with the faces, and 18 tests reach one."""
    found, suite = {}, str(shared_dir / "peer_suites" / "ir_measures" / "tests")
    for kind in ("originals", "faces"):
        subprocess.run(
            [sys.executable, "-c", UNDER_THEIR_NAMES, suite, kind],
            cwd=tmp_path, check=False, timeout=500, capture_output=True,
        )  # fmt: skip
        found[kind] = json.loads((tmp_path / "outcomes.json").read_text())
        (tmp_path / "outcomes.json").unlink()
    (originals, _), (faces, reached) = found["originals"], found["faces"]
    assert faces == originals
    assert sum(originals.values()) > len(reached)
    assert len(reached) == 18, reached
