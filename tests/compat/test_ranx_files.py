"""Files, reports and functions of `recsys.compat.ranx` that need neither ranx nor packages of its own."""

from __future__ import annotations

import importlib
import math
import sys

import numpy as np
import pytest

from recsys.compat import ranx
from recsys.compat.ranx import Qrels, Run
from recsys.errors import FileError, InputError, MissingExtraError, UnknownNameError

RUNS = [Run({"q": {"a": 3.0, "b": 1.0}}), Run({"q": {"b": 2.0, "c": 1.0}})]
QRELS = Qrels({"q": {"b": 1}})


def test_a_run_that_was_changed_is_in_order_wherever_it_is_read(tmp_path):
    def changed():
        run = Run({"q2": {"a": 1.0}})
        run.add_score("q1", "x", 1)
        run.add_score("q1", "y", 2)
        return run

    path = str(tmp_path / "run.trec")
    changed().save(path)
    assert (tmp_path / "run.trec").read_text().splitlines() == [
        "q1 Q0 y 1 2.0 None", "q1 Q0 x 2 1.0 None", "q2 Q0 a 1 1.0 None",
    ]  # fmt: skip
    first, second = changed().to_typed_list()
    assert first[:, 1].tolist() == [2.0, 1.0]
    assert second[:, 1].tolist() == [1.0]
    run = changed()
    values = ranx.evaluate(Qrels({"q1": {"y": 1}, "q2": {"b": 1}}), run, "mrr", return_mean=False)
    assert values.tolist() == [1.0, 0.0]
    assert run.scores["mrr"] == {"q1": 1.0, "q2": 0.0}


def test_a_file_of_an_unknown_kind_or_with_another_number_of_columns(tmp_path):
    with pytest.raises(
        AssertionError, match=r"(?s)'csv' is not a kind of file.*json, trec, gz, parquet, lz4"
    ):
        RUNS[0].save(str(tmp_path / "run.csv"))
    with pytest.raises(AssertionError, match=r"(?s)'lz4' is not a kind of file.*json, trec, gz, parquet\."):
        QRELS.save(str(tmp_path / "qrels.json"), kind="lz4")
    (tmp_path / "run.txt").write_text("q Q0 a 1 3.0 bm25\nq a 2.0\n")
    with pytest.raises(InputError, match=r"(?s)'q a 2.0' has 3 columns.*A line of a Run has 6"):
        Run.from_file(str(tmp_path / "run.txt"))
    (tmp_path / "qrels.json").write_text("{")
    with pytest.raises(FileError, match=r"qrels\.json cannot be read"):
        Qrels.from_file(str(tmp_path / "qrels.json"))


@pytest.mark.parametrize("name", ["run.json", "run.trec", "run.gz", "run.parquet"])
def test_a_missing_file_is_a_file_not_found(name, tmp_path):
    for kind in (Run, Qrels):
        with pytest.raises(FileNotFoundError, match=r"there is no file .* Check the path") as caught:
            kind.from_file(str(tmp_path / name))
        assert isinstance(caught.value, FileError)
    with pytest.raises(FileNotFoundError):
        ranx.io.load_json(str(tmp_path / name))


def test_lz4_says_which_packages_it_needs(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "cbor2", None)
    path = str(tmp_path / "run.lz4")
    for call in (lambda: RUNS[0].save(path), lambda: Run.from_file(path)):
        with pytest.raises(MissingExtraError, match="lz4 cbor2"):
            call()


def test_helpers_read_files_of_any_name_as_dicts(tmp_path):
    from recsys.compat.ranx.utils import python_dict_to_typed_list, qrels_file_to_dict, run_file_to_dict

    (tmp_path / "run.results").write_text("q Q0 a 1 1.0 bm25\nq Q0 b 2 3.0 bm25\n")
    (tmp_path / "judged").write_text("q 0 a 2\n")
    assert run_file_to_dict(str(tmp_path / "run.results")) == {"q": {"b": 3.0, "a": 1.0}}
    assert qrels_file_to_dict(str(tmp_path / "judged")) == {"q": {"a": 2}}
    given = {"q": {"a": 1, "b": 2}}
    assert python_dict_to_typed_list(given)[0][:, 1].tolist() == [2.0, 1.0]
    assert python_dict_to_typed_list(given, sort=False)[0][:, 1].tolist() == [1.0, 2.0]


def test_means_come_with_their_standard_deviation_on_request():
    run = Run({"q1": {"a": 1.0}, "q2": {"b": 2.0, "a": 1.0}})
    qrels = Qrels({"q1": {"a": 1}, "q2": {"a": 1}})
    found = ranx.evaluate(qrels, run, "mrr", return_std=True)
    assert found == {"mean": 0.75, "std": 0.25}
    assert (run.mean_scores, run.std_scores) == ({"mrr": 0.75}, {"mrr": 0.25})


def test_arrays_are_evaluated_as_they_stand():
    judged, found = [np.array([[1, 1], [2, 0]])], [np.array([[2, 9.0], [1, 5.0]])]
    assert ranx.evaluate(judged, found, "mrr") == 0.5


@pytest.mark.parametrize(
    ("method", "settings", "best", "tried"),
    [
        ("rrf", {"min_k": 1, "max_k": 5, "step": 2}, {"k": 5}, ["1", "3", "5"]),
        ("rbc", {"min_phi": 0.2, "max_phi": 0.4, "step": 0.1}, {"phi": 0.4}, ["0.2", "0.3", "0.4"]),
        ("probfuse", {"max_n_segments": 2}, {"probs": [[0.0, 1.0], [1.0, 0.0]]}, ["1", "2"]),
    ],
)
def test_what_is_tried_and_of_equal_ones_the_last(method, settings, best, tried):
    found, report = ranx.optimize_fusion(
        QRELS, RUNS, method=method, metric="mrr", return_optimization_report=True, **settings
    )
    assert {name: np.asarray(value).tolist() for name, value in found.items()} == best
    assert report.configs == tried
    assert isinstance(found.get("probs"), np.ndarray) == (method == "probfuse")


def test_a_step_beyond_1_is_not_tried_where_parameters_are_shares():
    for method in ("rbc", "logn_isr"):
        _, report = ranx.optimize_fusion(QRELS, RUNS, None, method, step=0.3, return_optimization_report=True)
        assert report.configs == ["0.0", "0.3", "0.6", "0.9"]
    _, report = ranx.optimize_fusion(
        QRELS, RUNS, None, "gmnz", step=0.5, max_gamma=2.0, return_optimization_report=True
    )
    assert float(report.configs[-1]) >= 2.0
    with pytest.raises(TypeError, match="phi=2 is not between 0 and 1"):
        ranx.fuse(RUNS, method="rbc", params={"phi": 2})


def test_log_odds_of_bayesfuse_are_those_of_the_mean_of_each_part():
    from recsys.compat.ranx.fusion.bayesfuse import _estimate_log_odds

    found = _estimate_log_odds([[1, 0, 1, 0], [1, 1, 0, 0]], [0, 2, 4])
    assert found == pytest.approx([math.log(3)] * 2 + [-math.log(3)] * 2)


def test_functions_are_found_by_the_names_of_ranx():
    from recsys.compat.ranx import metrics, normalization

    judged, found = [np.array([[1, 1]])], [np.array([[2, 9.0], [1, 5.0]])]
    assert metrics.metric_switch("rbp")(judged, found, 0.5).tolist() == [0.25]
    assert metrics.metric_switch("map")(judged, found).tolist() == [0.5]
    with pytest.raises(UnknownNameError, match="'foo'"):
        metrics.metric_switch("foo")
    assert normalization.norm_switch("max")(RUNS[0])["q"] == {"a": 1.0, "b": 1 / 3}
    assert normalization.norm_switch("borda") is normalization.borda_norm


def test_tests_of_several_models_and_what_a_report_keeps(tmp_path):
    qrels = Qrels({f"q{n}": {"d": 1} for n in range(20)})

    def model(name, place):
        return Run({q: {"d": -place(n), "e": -1.5} for n, q in enumerate(qrels.keys())}, name=name)

    good, bad, odd = model("good", lambda _: 1), model("bad", lambda _: 2), model("odd", lambda n: 1 + n % 2)
    for stat_test, words in (("tukey", "Tukey's HSD test"), ("fisher", "Fisher's randomization test")):
        report = ranx.compare(qrels, [good, bad, odd], ["mrr"], stat_test=stat_test)
        assert words in report.to_latex()
        content = report.to_dict()
        assert (content["stat_test"], content["metrics"]) == (stat_test, ["mrr"])
        assert content["model_names"] == ["good", "bad", "odd"]
        assert content["odd"]["scores"] == {"mrr": 0.75}
        assert content["odd"]["win_tie_loss"] == {
            "good": {"mrr": {"W": 0, "T": 10, "L": 10}},
            "bad": {"mrr": {"W": 10, "T": 10, "L": 0}},
        }
        p_values = content["odd"]["comparisons"]
        assert p_values == {
            name: {"mrr": report.comparisons["odd", name]["mrr"]["p_value"]} for name in p_values
        }
        assert 0 < p_values["good"]["mrr"] < 0.01
        assert report.comparisons["bad", "odd"]["mrr"]["significant"]
        report.save(str(tmp_path / "report.json"))
        from recsys.compat.ranx.io import load_json

        assert load_json(str(tmp_path / "report.json")) == content


def test_the_plot_has_one_line_for_each_run():
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    plt.close("all")
    ranx.plot(QRELS, [Run(RUNS[0].run, name="mine"), RUNS[1]])
    (axes,) = plt.gcf().axes
    assert [line.get_label() for line in axes.lines] == ["mine", "run_2"]
    assert axes.lines[0].get_ydata().tolist() == [0.5] * 11
    assert axes.lines[1].get_ydata().tolist() == [1.0] * 11
    plt.close("all")


def test_a_module_loaded_again_finds_its_modules_once():
    importlib.reload(ranx)
    assert sum(type(finder).__name__ == "_UnderAnotherName" for finder in sys.meta_path) == 1
    assert ranx.Run is Run
