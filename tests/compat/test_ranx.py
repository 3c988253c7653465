"""`recsys.compat.ranx` by itself; beside ranx, and under its own tests: tests/parity/test_ranx_face.py."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import recsys
from recsys.compat import ranx
from recsys.compat.ranx import Qrels, Run
from recsys.compat.ranx.metrics import read_metric
from recsys.errors import InputError, UnknownNameError

QRELS = {"q2": {"d1": 1, "d2": 2}, "q1": {"d1": 3}}
RUN = {"q1": {"d2": 0.5, "d1": 0.5, "d3": 0.1}, "q2": {"d2": 1, "d9": 2}}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("ndcg@10", ("ndcg@10", 1)),
        ("map@100-l2", ("map@100", 2)),
        ("hit_rate", ("hit", 1)),
        ("mrr@0", ("mrr", 1)),
        ("r-precision@5", ("r_precision", 1)),
        ("dcg_burges@3-l3", ("dcg(gain=exp2)@3", 3)),
        ("rbp.5", ("graded_rbp(p=0.5)", 1)),
        ("rbp@95-l2", ("graded_rbp(p=0.95)", 2)),
    ],
)
def test_what_a_metric_of_ranx_is_here(written, meant):
    assert read_metric(written) == meant


def test_metrics_that_ranx_does_not_have():
    with pytest.raises(UnknownNameError, match="ndcg"):
        read_metric("ndgc@10")
    with pytest.raises(InputError, match="persistence"):
        read_metric("rbp")
    with pytest.raises(AssertionError, match="metrics came as"):
        ranx.evaluate(Qrels(QRELS), Run(RUN), [3])
    for written in ("ndcg@", "ndcg-l", "ndcg@a"):
        with pytest.raises(ValueError, match="invalid literal"):
            read_metric(written)
    with pytest.raises(NotImplementedError, match="statistical test"):
        ranx.compare(Qrels(QRELS), [Run(RUN)] * 2, "map", stat_test="foo")
    with pytest.raises(TypeError, match="wsum needs weights"):
        ranx.fuse([Run(RUN)] * 2, method="wsum")


def test_a_level_below_1_makes_judged_documents_relevant():
    qrels, run = Qrels({"q": {"a": 0, "b": 2, "c": -1}}), Run({"q": {"c": 3, "a": 2, "b": 1}})
    found = ranx.evaluate(qrels, run, ["hits-l0", "mrr-l0", "hits", "dcg-l0"])
    assert found == {"hits-l0": 2.0, "mrr-l0": 0.5, "hits": 1.0, "dcg-l0": 1.0}


def test_evaluate_is_the_evaluation_under_its_preset():
    metrics = {"ndcg@2": "ndcg@2", "map": "map", "f1@2": "f1@2", "hit_rate@1": "hit@1"}
    ours = ranx.evaluate(Qrels(QRELS), Run(RUN), list(metrics))
    with pytest.warns(recsys.errors.TieWarning):
        expected = recsys.evaluate(RUN, QRELS, list(metrics.values()), conventions="ranx")
    assert [ours[name] for name in metrics] == pytest.approx([expected[name] for name in metrics.values()])


def test_equal_scores_of_plain_dicts_are_taken_from_the_end():
    qrels = {"q": {"a": 1}}
    run = {"q": {"a": 1.0, "b": 1.0}}
    assert ranx.evaluate(Qrels(qrels), Run(run), "mrr") == 1.0
    assert ranx.evaluate(qrels, run, "mrr") == 0.5


INFINITE = {"q": {"a": 0.9, "b": -np.inf, "c": 0.5}, "r": {"a": np.inf, "b": 0.5, "c": -np.inf}}


@pytest.mark.parametrize("run", [Run(INFINITE), INFINITE])
def test_infinite_scores_have_a_place(run):
    judged = {"q": {"b": 1}, "r": {"b": 1}}
    found = ranx.evaluate(
        judged if isinstance(run, dict) else Qrels(judged), run, ["mrr", "bpref", "hits-l0"]
    )
    assert (found["mrr"], found["bpref"], found["hits-l0"]) == ((1 / 3 + 1 / 2) / 2, 1.0, 1.0)
    assert ranx.evaluate({"q": {"a": 1}}, {"q": {"a": np.float32(-np.inf), "b": 0.1}}, "mrr") == 0.5


def test_runs_with_infinite_scores_are_fused_but_not_normalised():
    runs = [Run(INFINITE), Run({"q": {"a": 0.1, "d": 0.2}, "r": {"b": 1.0}})]
    fused = ranx.fuse(runs, method="rrf")
    assert (list(fused["q"]), list(fused["r"])) == (["a", "d", "c", "b"], ["b", "a", "c"])
    assert fused.run == ranx.fusion.rrf(runs).run
    assert list(ranx.fuse(runs, norm=None, method="sum")["q"]) == ["a", "c", "d", "b"]
    assert list(ranx.fuse(runs, norm="rank", method="sum")["q"])[-1] == "b"
    assert ranx.optimize_fusion(Qrels({"q": {"b": 1}, "r": {"b": 1}}), runs, None, "rrf") == {"k": 100}
    assert ranx.normalize(runs[0], "rank")["q"] == pytest.approx({"a": 1.0, "c": 2 / 3, "b": 1 / 3})
    for call in (lambda: ranx.fuse(runs, method="sum"), lambda: ranx.normalize(runs[0])):
        with pytest.raises(InputError, match=r"the score -inf of user .* row 1"):
            call()


def test_values_of_a_run_are_added_to_those_it_has():
    run = Run(RUN)
    run.scores["mrr"]["own"] = 0.25
    ranx.evaluate(Qrels(QRELS), run, "mrr")
    assert run.scores["mrr"] == {"q1": 0.5, "q2": 0.5, "own": 0.25}
    assert isinstance(run.scores["mrr"]["q1"], np.float64)


def test_values_per_query_are_in_the_order_of_their_ids_and_kept():
    run = Run({query: RUN[query] for query in ("q2", "q1")})
    values = ranx.evaluate(Qrels(QRELS), run, "mrr", return_mean=False)
    assert values.tolist() == [0.5, 0.5]
    assert run.scores["mrr"] == {"q1": 0.5, "q2": 0.5}
    assert run.mean_scores == {"mrr": 0.5}
    assert run.std_scores == {}
    ranx.evaluate(Qrels(QRELS), run, "map", save_results_in_run=False)
    assert "map" not in run.scores


def test_a_run_is_a_copy_and_shows_itself_in_order():
    given = {"q2": {"a": 1, "b": 2}, "q1": {"a": 1}}
    run = Run(given)
    given["q2"]["a"] = 9
    assert list(run.run.items()) == [("q1", {"a": 1.0}), ("q2", {"b": 2.0, "a": 1.0})]
    assert list(run.run["q2"]) == ["b", "a"]
    run.run["q2"]["a"] = 3.0
    assert ranx.evaluate(Qrels({"q1": {"a": 1}, "q2": {"a": 1}}), run, "mrr") == 1.0
    run.add_score("q2", "c", 9)
    assert run.sorted is False
    run.add("q0", ["x", "y"], [1, 2])
    assert run.sorted is True
    assert list(run.run) == ["q0", "q1", "q2"]
    assert list(run["q2"]) == ["c", "a", "b"]
    assert (len(run), run.size, run.get_query_ids()) == (3, 3, ["q0", "q1", "q2"])


def test_grades_are_whole_and_a_level_makes_them_lower():
    qrels = Qrels({"q": {"a": 1.9, "b": 3}})
    assert qrels["q"] == {"b": 3, "a": 1}
    qrels.set_relevance_level(3)
    assert qrels["q"] == {"b": 1, "a": -1}
    assert ranx.evaluate(qrels, Run({"q": {"a": 1.0, "b": 0.5}}), "mrr") == 0.5
    assert ranx.evaluate(qrels, Run({"q": {"a": 1.0, "b": 0.5}}), "bpref") == 0.0  # a is judged


def test_queries_on_one_side():
    with pytest.raises(AssertionError, match="make_comparable=True"):
        ranx.evaluate(Qrels(QRELS), Run({"q1": {"d1": 1.0}, "q3": {}}), "mrr")
    run = Run({"q1": {"d1": 1.0}, "q3": {"d1": 1.0}})
    assert ranx.evaluate(Qrels(QRELS), run, "mrr", make_comparable=True) == 0.5
    assert run.run == {"q1": {"d1": 1.0}, "q2": {}}
    with pytest.raises(AssertionError, match="run 1 and run 0"):
        ranx.fuse([Run({"a": {"x": 1}}), Run({"b": {"x": 1}})])
    with pytest.raises(AssertionError, match="two runs or more"):
        ranx.fuse([Run({"a": {"x": 1}})])


@pytest.mark.parametrize("suffix", ["json", "trec", "txt", "parquet"])
def test_files(suffix, tmp_path):
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    for thing in (Run(RUN, name="bm25"), Qrels(QRELS)):
        path = str(tmp_path / f"{type(thing).__name__}.{suffix}")
        thing.save(path)
        assert type(thing).from_file(path).to_dict() == thing.to_dict()
    assert Run.from_file(str(tmp_path / f"Run.{suffix}")).name == (
        "bm25" if suffix in ("trec", "txt") else None
    )


def test_tables_have_text_ids_and_the_right_numbers():
    table = Run(RUN).to_dataframe()
    assert Run.from_df(table).run == Run(RUN).run
    with pytest.raises(AssertionError, match="int64"):
        Qrels.from_df(table)
    with pytest.raises(AssertionError, match="text"):
        Run.from_df(table.assign(q_id=1))


def test_fusion_is_that_of_the_library_under_its_names():
    runs = [Run({"q": {"a": 3.0, "b": 1.0}}), Run({"q": {"b": 2.0, "c": 1.0}})]
    lists = recsys.fuse([run.run for run in runs], "wsum", weights=[0.25, 0.75])
    ours = ranx.fuse(runs, params={"weights": [0.25, 0.75]})
    assert ours.name == "weighted_sum"
    assert list(ours["q"].values()) == lists.scores.tolist()
    assert list(ours["q"]) == lists.items.values[lists.codes].tolist()
    assert ranx.fuse(runs, None, "rrf", {"k": 1, "name": "mine"}).name == "mine"
    assert runs[0].run == {"q": {"a": 3.0, "b": 1.0}}


def test_parameters_are_found():
    runs = [Run({"q": {"a": 3.0, "b": 1.0}}), Run({"q": {"b": 2.0, "c": 1.0}})]
    qrels = Qrels({"q": {"b": 1}})
    found, report = ranx.optimize_fusion(qrels, runs, metric="mrr", return_optimization_report=True, step=0.5)
    assert found == {"weights": (0.0, 1.0)}
    assert report.results == [1.0, 0.5, 0.5]
    assert "(0.0, 1.0)" in str(report)
    assert ranx.optimize_fusion(qrels, runs, method="mapfuse") == {"map_scores": [0.5, 1.0]}
    with pytest.raises(InputError, match="only trained"):
        ranx.optimize_fusion(qrels, runs, method="mapfuse", return_optimization_report=True)
    with pytest.raises(InputError, match="takes no steps"):
        ranx.optimize_fusion(qrels, runs, steps=3)


def test_a_report_names_who_is_better_than_whom():
    rng = np.random.default_rng(0)
    qrels = Qrels({f"q{n}": {"d0": 1} for n in range(40)})
    good = Run(
        {f"q{n}": {"d0": 1.0, "d1": float(rng.random() < 0.1) * 2} for n in range(40)}, name="good_one"
    )
    bad = Run({f"q{n}": {"d0": 1.0, "d1": float(rng.random() < 0.9) * 2} for n in range(40)})
    report = ranx.compare(qrels, [good, bad], ["mrr", "ndcg@1"], show_percentages=True)
    assert isinstance(report, ranx.Report)
    assert report.model_names == ["good_one", "run_2"]
    assert ranx.compare(qrels, [good, good], ["mrr"]).model_names == ["good_one", "good_one"]
    assert report.get_superscript_for_latex("good_one", "mrr") == "b"
    assert report.get_superscript_for_latex("run_2", "mrr") == ""
    assert "ᵇ" in str(report).splitlines()[2]
    latex = report.to_latex()
    assert r"good\_one" in latex
    assert r"\textbf{" in latex
    assert r"paired Student's t-test, $p \le 0.01$" in latex
    assert report.to_dataframe().columns.tolist() == ["model_names", "mrr", "ndcg@1"]
    with pytest.raises(UnknownNameError, match="student"):
        ranx.compare(qrels, [good, bad], "mrr", stat_test="studnet")


def test_a_report_of_more_models_than_letters_names_them_all():
    qrels = Qrels({f"q{n}": {"a": 1} for n in range(30)})
    runs = [
        Run(
            {f"q{n}": {"a": 1.0, "b": 0.0 if n % 9 < (27 - at) // 3 else 2.0} for n in range(30)},
            name=f"m{at}",
        )
        for at in range(28)
    ]
    report = ranx.compare(qrels, runs, "mrr", max_p=0.05)
    rows = [line.split()[:2] for line in report.to_table().splitlines()[2:]]
    assert rows[25:] == [["z", "m25"], ["aa", "m26"], ["ab", "m27"]]
    assert all(f"m{at} &" in report.to_latex() for at in range(28))
    # "ab" without a comma could be two models.
    assert report.get_superscript_for_latex("m0", "mrr") == ",".join([*"efghijklmnopqrstuvwxyz", "aa", "ab"])
    assert report.get_superscript_for_table("m0", "mrr").endswith("ʸ,ᶻ,ᵃᵃ,ᵃᵇ")
    assert report.get_phantoms_for_latex("m0", "mrr") == "b,c,d"


def test_nothing_is_bold_where_every_score_is_0():
    runs = [Run({"q": {"x": 1.0}, "r": {"x": 1.0}}, name=name) for name in "ab"]
    report = ranx.compare(Qrels({"q": {"a": 1}, "r": {"a": 1}}), runs, "mrr")
    assert r"\textbf{0" not in report.to_latex()


def test_metrics_on_arrays():
    from recsys.compat.ranx.metrics import get_hit_lists, interpolated_precision_at_recall, ndcg, precision

    judged = [np.array([[1, 2], [2, 1]]), np.array([[7, 1]])]
    found = [np.array([[2, 9], [3, 5], [1, 1]]), np.array([[8, 1]])]
    assert precision(judged, found, 2).tolist() == [0.5, 0.0]
    assert precision(judged, found, 2, rel_lvl=2).tolist() == [0.0, 0.0]
    assert ndcg(judged, found)[0] == pytest.approx((1 + 2 / 2) / (2 + 1 / np.log2(3)))
    assert [hits.tolist() for hits in get_hit_lists(judged, found, 2)] == [[1, 0], [0]]
    assert interpolated_precision_at_recall(judged, found).shape == (2, 11)


def test_the_plot_draws_or_gives_its_table():
    table = ranx.plot(Qrels(QRELS), Run(RUN), return_graph=False)
    assert table["Model"].unique().tolist() == ["run"]
    assert len(table) == 11
    assert isinstance(table, pd.DataFrame)


def test_importing_it_needs_neither_pandas_nor_numba():
    script = (
        "import sys, recsys.compat.ranx as face\n"
        "assert not {'pandas', 'numba', 'ranx'} & set(sys.modules)\n"
        "sys.modules['ranx'] = face\n"
        "import ranx.fusion.bayesfuse\n"
        "from ranx.data_structures.run import Run\n"
        "from ranx.fusion import bayesfuse\n"
        "assert Run is face.Run and callable(bayesfuse)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=600)


def test_a_score_beyond_every_float_is_refused():
    with pytest.raises(ValueError, match="beyond the range of floats"):
        Run({"q": {"a": 10**400, "b": np.float32(0.5)}})
