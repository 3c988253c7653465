"""`recsys.compat.ranx` beside ranx itself: the same calls, the same numbers, and ranx's own tests."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import recsys.compat.ranx as face
from worlds.parity import peer

ranx = peer("ranx")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]
SOME = settings(max_examples=40, deadline=None)

METRICS = [
    "hits@3", "hits", "hit_rate@2", "precision@3", "precision", "recall@3", "recall", "f1@3", "f1",
    "r-precision", "mrr@2", "mrr", "map@3", "map", "dcg@3", "dcg", "dcg_burges@3", "ndcg@3", "ndcg",
    "ndcg_burges@3", "ndcg@3-l2", "map-l2", "mrr-l3", "bpref", "bpref-l2", "rbp.95", "rbp.5-l2",
    "hits-l0", "precision@3-l0", "r-precision-l0", "map@3-l0", "mrr-l0", "ndcg@3-l0", "rbp.5-l0",
]  # fmt: skip
DOCUMENTS = [f"d{n:02}" for n in range(12)]
QUERIES = ["q1", "q2", "q3"]
# ranx sorts lists of up to 15 so that equal scores stay as they were; longer ones it does not.
rankings = st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(-3, 6).map(lambda n: n / 2), max_size=12)
judgements = st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(-1, 3), min_size=1)


def one_per_query(of):
    """In order of their ids: of plain dicts ranx compares query by query, whatever their ids."""
    found = st.tuples(*[of] * len(QUERIES)).filter(any)
    return found.map(lambda entries: dict(zip(QUERIES, entries, strict=True)))


runs = one_per_query(rankings)
# zmuv of an empty list divides by nought in ranx, and leaves other queries out as well.
full_runs = one_per_query(rankings.filter(bool))
several_runs = st.lists(full_runs, min_size=2, max_size=3)


def equal(ours, theirs):
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-12, atol=1e-12)


def same_runs(ours, theirs):
    assert list(ours.keys()) == list(theirs.keys())
    for query in ours.keys():  # noqa: SIM118 - runs are no dicts
        assert ours[query].keys() == theirs[query].keys()
        equal([ours[query][d] for d in theirs[query]], list(theirs[query].values()))


# ---------------------------------------------------------------------------------------- evaluate
@SOME
@given(qrels=one_per_query(judgements), run=runs)
def test_evaluate_gives_the_same_number_for_every_query(qrels, run):
    ours = face.evaluate(face.Qrels(qrels), face.Run(run), METRICS, return_mean=False)
    theirs = ranx.evaluate(ranx.Qrels(qrels), ranx.Run(run), METRICS, return_mean=False)
    for metric in METRICS:
        least = int(metric.partition("-l")[2] or 1)
        if "bpref" in metric and not all(min(g.values()) < least <= max(g.values()) for g in qrels.values()):
            continue  # ranx divides by nought, and then leaves other queries at 0 as well
        equal(ours[metric], theirs[metric])


@SOME
@given(qrels=one_per_query(judgements), run=full_runs)
def test_evaluate_of_plain_dicts(qrels, run):
    for metric in ("ndcg@3", "map", "mrr"):
        equal(face.evaluate(qrels, run, metric), ranx.evaluate(qrels, run, metric))


def test_what_evaluate_returns_and_keeps():
    qrels, run = {"b": {"x": 1, "y": 2}, "a": {"x": 1}}, {"a": {"y": 1.0, "x": 0.5}, "b": {"y": 2, "z": 1}}
    kept = []
    for library in (face, ranx):
        found = library.Run(run, name="r")
        judged = library.Qrels(qrels)
        one = library.evaluate(judged, found, "mrr")
        both = library.evaluate(judged, found, ["mrr", "ndcg@2"], return_std=True)
        library.evaluate(judged, found, "map", save_results_in_run=False)
        kept.append(
            (one, both, {m: dict(v) for m, v in found.scores.items()}, found.mean_scores, found.std_scores)
        )
    ours, theirs = (re.sub(r"np\.float64\((.*?)\)", r"\1", str(one)) for one in kept)
    assert ours == theirs


def test_infinite_scores():
    judged = {"q": {"a": 1, "b": 1}, "r": {"c": 1}}
    run = {"q": {"a": 0.9, "b": -math.inf, "c": 0.5}, "r": {"a": math.inf, "b": -math.inf, "c": 0.5}}
    metrics = [metric for metric in METRICS if "bpref" not in metric]
    for one, other in (
        (lambda lib: lib.Qrels(judged), lambda lib: lib.Run(run)),
        (lambda _: judged, lambda _: run),
    ):
        ours, theirs = (
            lib.evaluate(one(lib), other(lib), metrics, return_mean=False) for lib in (face, ranx)
        )
        for metric in metrics:
            equal(ours[metric], theirs[metric])
    second = {"q": {"a": 0.1, "d": 0.2}, "r": {"b": 1.0}}
    for norm, method in (
        ("min-max", "rrf"),
        (None, "isr"),
        ("rank", "sum"),
        (None, "bordafuse"),
        (None, "min"),
    ):
        ours, theirs = (lib.fuse([lib.Run(run), lib.Run(second)], norm, method) for lib in (face, ranx))
        assert {q: list(ours[q]) for q in "qr"} == {q: list(theirs[q]) for q in "qr"}


def test_modules_are_attributes_and_scores_are_of_numpy():
    qrels, given_runs = drawn_runs(3)
    for library in (face, ranx):
        assert library.utils.qrels_file_to_dict
        assert library.io.load_json
        report = library.compare(library.Qrels(qrels), [library.Run(run) for run in given_runs], "mrr")
        assert isinstance(report.comparisons["run_1", "run_2"]["mrr"]["p_value"], np.float64)
        nothing = library.compare(
            library.Qrels({q: {"nowhere": 1} for q in qrels}), [library.Run(run) for run in given_runs], "mrr"
        )
        assert r"\textbf{0" not in nothing.to_latex()


def test_runs_that_are_made_comparable():
    qrels = {"a": {"x": 1}, "b": {"y": 1}}
    for library in (face, ranx):
        run = library.Run({"a": {"x": 1.0}, "c": {"x": 1.0}})
        with pytest.raises(AssertionError):
            library.evaluate(library.Qrels(qrels), run, "mrr")
        assert library.evaluate(library.Qrels(qrels), run, "mrr", make_comparable=True) == 0.5
        assert sorted(run.keys()) == ["a", "b"]


# ---------------------------------------------------------------------------------------- fusion
PARAMETERS = {
    "gmnz": {"gamma": 0.5}, "logn_isr": {"sigma": 0.2}, "rrf": {"k": 7}, "rbc": {"phi": 0.7},
}  # fmt: skip
METHODS = [
    "sum", "min", "max", "med", "mnz", "anz", "gmnz", "isr", "log_isr", "logn_isr", "rrf", "rbc", "bordafuse",
]  # fmt: skip
WEIGHTED = ["wsum", "wmnz", "mixed", "w_bordafuse"]
TRAINED = ["mapfuse", "posfuse", "probfuse", "segfuse", "slidefuse", "bayesfuse"]
NORMS = [None, "min-max", "min-max-inverted", "max", "sum", "zmuv", "rank"]


@pytest.mark.parametrize("method", [*METHODS, *WEIGHTED])
@settings(SOME, max_examples=8)
@given(given_runs=several_runs, norm=st.sampled_from(NORMS))
def test_a_fusion_method(method, given_runs, norm):
    params = dict(PARAMETERS.get(method, {}))
    if method == norm == "max":  # ranx takes no maximum below -1e9, which 0 as the highest score leads to
        assume(all(max(documents.values()) > 0 for run in given_runs for documents in run.values()))
    if method in WEIGHTED:
        params["weights"] = [0.2, 0.5, 0.3][: len(given_runs)]
    ours = face.fuse([face.Run(run) for run in given_runs], norm, method, params)
    theirs = ranx.fuse([ranx.Run(run) for run in given_runs], norm, method, params)
    assert ours.name == theirs.name
    same_runs(ours, theirs)


@settings(SOME, max_examples=8)
@given(given_runs=several_runs)
def test_borda_as_a_normalisation(given_runs):
    ours = face.fuse([face.Run(run) for run in given_runs], "borda", "sum")
    same_runs(ours, ranx.fuse([ranx.Run(run) for run in given_runs], "borda", "sum"))


@pytest.mark.parametrize("norm", [norm for norm in NORMS if norm])
@settings(SOME, max_examples=8)
@given(run=full_runs)
def test_a_normalisation(norm, run):
    same_runs(face.normalize(face.Run(run), norm), ranx.normalize(ranx.Run(run), norm))


@pytest.mark.parametrize("method", ["condorcet", "w_condorcet"])
@settings(SOME, max_examples=8)
@given(order=st.permutations(DOCUMENTS[:6]), data=st.data())
def test_condorcet_where_majorities_have_no_circle(method, order, data):
    # Two of three runs agree on every pair, so that the order is theirs; ranx's depends on hashes otherwise.
    third = data.draw(st.permutations(DOCUMENTS[:6]))
    given_runs = [
        {"q": {d: float(6 - at) for at, d in enumerate(ranking)}} for ranking in (order, order, third)
    ]
    params = {"weights": [0.4, 0.3, 0.3]} if method == "w_condorcet" else {}
    ours = face.fuse([face.Run(run) for run in given_runs], None, method, params)
    same_runs(ours, ranx.fuse([ranx.Run(run) for run in given_runs], None, method, params))


@pytest.mark.parametrize("method", TRAINED)
@settings(SOME, max_examples=10)
@given(qrels=one_per_query(judgements), given_runs=several_runs)
def test_a_trained_method(method, qrels, given_runs):
    found = []
    for library in (face, ranx):
        judged, several = library.Qrels(qrels), [library.Run(run) for run in given_runs]
        options = (
            {"max_n_segments": 4} if method == "probfuse" else {"max_w": 3} if method == "slidefuse" else {}
        )
        if method in ("probfuse", "slidefuse"):
            options["show_progress"] = False
        params = library.optimize_fusion(judged, several, "min-max", method, "ndcg", **options)
        found.append((params, library.fuse(several, "min-max", method, params)))
    (ours, fused), (theirs, fused_by_ranx) = found
    assert ours.keys() == theirs.keys()
    if ours.get("w") == theirs.get("w") and len(ours.get("probs", [[]])[0]) == len(
        theirs.get("probs", [[]])[0]
    ):
        for name in ours:
            for mine, other in (
                zip(*(params[name] for params in (ours, theirs)), strict=True) if name != "w" else ()
            ):
                equal(mine, other)
        same_runs(fused, fused_by_ranx)


@pytest.mark.parametrize(
    ("method", "options"),
    [("wsum", {"step": 0.2}), ("wmnz", {"step": 0.5}), ("mixed", {"step": 0.5}),
     ("w_bordafuse", {"step": 0.5}), ("rrf", {"max_k": 40}),
     ("gmnz", {"step": 0.1, "min_gamma": 0.1}), ("logn_isr", {"step": 0.1, "min_sigma": 0.1}),
     ("rbc", {"step": 0.1, "min_phi": 0.1})],
)  # fmt: skip
def test_the_same_trials_and_the_same_best(method, options):
    rng = np.random.default_rng(5)
    documents = [f"d{n}" for n in range(14)]  # beyond 15 equal scores have no order in ranx

    def drawn():
        return {f"q{q}": {d: float(rng.normal()) for d in rng.permutation(documents)[:12]} for q in range(20)}

    given_runs = [drawn(), drawn(), drawn()]
    qrels = {q: {d: int(rng.integers(0, 3)) for d in rng.permutation(documents)[:8]} for q in given_runs[0]}
    found = []
    for library in (face, ranx):
        judged, several = library.Qrels(qrels), [library.Run(run) for run in given_runs]
        found.append(
            library.optimize_fusion(
                judged, several, method=method, metric="ndcg@5", return_optimization_report=True,
                show_progress=False, **options,
            )
        )  # fmt: skip
    (ours, report), (theirs, report_of_ranx) = found
    assert report.configs == [
        re.sub(r"np\.float64\((.*?)\)", r"\1", tried) for tried in report_of_ranx.configs
    ]
    equal(report.results, report_of_ranx.results)
    assert ours == theirs


# ---------------------------------------------------------------------------------------- compare
def drawn_runs(seed, n_queries=60):
    rng = np.random.default_rng(seed)
    documents = [f"d{n}" for n in range(15)]
    queries = [f"q{n:02}" for n in range(n_queries)]
    qrels = {q: {d: int(rng.integers(0, 3)) for d in documents[:8]} for q in queries}
    given_runs = [
        {q: {d: float(better * qrels[q].get(d, 0) + rng.normal()) for d in documents} for q in queries}
        for better in (0.0, 0.4, 1.5)
    ]
    return qrels, given_runs


def compared(library, stat_test, **options):
    qrels, given_runs = drawn_runs(3)
    several = [library.Run(run, name=f"m_{n}") for n, run in enumerate(given_runs)]
    return library.compare(
        library.Qrels(qrels), several, ["map", "ndcg@5", "mrr-l2"], stat_test=stat_test, **options
    )


@pytest.mark.parametrize("stat_test", ["student", "tukey", "fisher"])
def test_compare(stat_test, tmp_path):
    ours, theirs = compared(face, stat_test), compared(ranx, stat_test)
    for mine, other in zip(ours.to_dict().values(), theirs.to_dict().values(), strict=True):
        if not isinstance(mine, dict):
            assert mine == other
            continue
        equal(list(mine["scores"].values()), list(other["scores"].values()))
        assert mine["win_tie_loss"] == other["win_tie_loss"]
        for against, p_values in other["comparisons"].items():
            found = [mine["comparisons"][against][metric] for metric in p_values]
            # 1,000 permutations, other random numbers: three standard errors of both.
            expected = pytest.approx(
                list(p_values.values()), rel=1e-9, abs=0.07 if stat_test == "fisher" else 1e-12
            )
            assert found == expected
    tables = ours.to_dataframe(), theirs.to_dataframe()
    assert list(tables[0]) == list(tables[1])
    equal(*(table.set_index("model_names") for table in tables))
    ours.save(tmp_path / "report.json")
    assert json.loads((tmp_path / "report.json").read_text())["stat_test"] == stat_test
    if stat_test != "fisher":
        assert [line.split() for line in str(ours).splitlines() if "m_" in line] == [
            line.split() for line in str(theirs).splitlines() if "m_" in line
        ]
        for model in ours.model_names:
            for metric in ours.metrics:
                assert ours.get_superscript_for_latex(model, metric) == theirs.get_superscript_for_latex(
                    model, metric
                )


def test_the_way_numbers_and_metrics_are_written():
    for options in ({}, {"rounding_digits": 4}, {"show_percentages": True, "rounding_digits": 4}):
        ours, theirs = compared(face, "student", **options), compared(ranx, "student", **options)
        assert [ours.format_score(x) for x in (0.12345, 1.0)] == [
            theirs.format_score(x) for x in (0.12345, 1.0)
        ]
    for metric in ("ndcg@10", "hit_rate", "map@5-l2", "mrr-l3", "rbp.95", "r-precision", "ndcg_burges@3"):
        assert ours.get_metric_label(metric) == theirs.get_metric_label(metric)


def test_the_table_of_the_plot():
    qrels, given_runs = drawn_runs(3)
    ours, theirs = (
        library.plot(library.Qrels(qrels), [library.Run(run) for run in given_runs], return_graph=False)
        for library in (face, ranx)
    )
    assert ours["Model"].tolist() == theirs["Model"].tolist()
    equal(ours["precision"], theirs["precision"])


# ---------------------------------------------------------------------------------------- mistakes
QRELS, RUN = {"q": {"a": 1, "b": 2}, "r": {"a": 1}}, {"q": {"a": 0.5, "x": 0.4}, "r": {"a": 0.1, "b": 0.2}}


def judged(library):
    return library.Qrels(QRELS)


def both(library):
    return [library.Run(RUN, name="a")] * 2


MISTAKES = {
    "unknown metric": lambda lib: lib.evaluate(judged(lib), both(lib)[0], "foo"),
    "no cut-off": lambda lib: lib.evaluate(judged(lib), both(lib)[0], "ndcg@"),
    "no level": lambda lib: lib.evaluate(judged(lib), both(lib)[0], "ndcg-l"),
    "cut-off in letters": lambda lib: lib.evaluate(judged(lib), both(lib)[0], "ndcg@a"),
    "number as metric": lambda lib: lib.evaluate(judged(lib), both(lib)[0], ["map", 5]),
    "rbp alone": lambda lib: lib.evaluate(judged(lib), both(lib)[0], "rbp"),
    "other queries": lambda lib: lib.evaluate(judged(lib), lib.Run({"z": {"a": 1.0}}), "map"),
    "unknown test": lambda lib: lib.compare(judged(lib), both(lib), ["map"], stat_test="foo"),
    "unknown method": lambda lib: lib.fuse(both(lib), method="foo"),
    "unknown normalisation": lambda lib: lib.fuse(both(lib), norm="foo", method="sum"),
    "one run": lambda lib: lib.fuse(both(lib)[:1], method="sum"),
    "no weights": lambda lib: lib.fuse(both(lib), method="wsum"),
    "unknown parameter": lambda lib: lib.fuse(both(lib), method="rrf", params={"z": 3}),
    "nothing to optimise": lambda lib: lib.optimize_fusion(judged(lib), both(lib), method="sum"),
    "unknown setting": lambda lib: lib.optimize_fusion(judged(lib), both(lib), method="wsum", z=3),
    "kind of file": lambda lib: both(lib)[0].save("run.json", kind="foo"),
    "missing file": lambda lib: lib.Run.from_file("nowhere.json"),
    "no mapping": lambda lib: lib.Run([("q", {"a": 1.0})]),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_caught_as_that_of_ranx(name):
    with pytest.raises(Exception) as caught:  # noqa: PT011 - its type is what the other is compared with
        MISTAKES[name](ranx)
    with pytest.raises(caught.type):
        MISTAKES[name](face)


def test_lines_with_other_columns_and_the_usual_file_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "three.trec").write_text("q Q0 a\n")
    (tmp_path / "qrels.trec").write_text("q 0 a 1\n")
    for library in (face, ranx):
        for kind, file in (("Run", "three"), ("Qrels", "three"), ("Run", "qrels")):
            with pytest.raises(ValueError, match=r"values to unpack|columns"):
                getattr(library, kind).from_file(f"{file}.trec")
        library.Run(RUN).save()
        library.Qrels(QRELS).save()
        assert json.loads((tmp_path / "run.json").read_text()).keys() == RUN.keys()
        (tmp_path / "qrels.json").unlink()
        (tmp_path / "run.json").unlink()


# ---------------------------------------------------------------------------------------- files
@pytest.mark.parametrize("suffix", ["json", "trec", "txt", "lz4", "parquet"])
def test_files_of_one_are_read_by_the_other(suffix, tmp_path):
    run = {"q2": {"a": 0.25, "b": 0.5}, "q1": {"a": 1.0}}
    for writer, reader in ((face, ranx), (ranx, face)):
        path = str(tmp_path / f"{writer.__name__}.{suffix}")
        writer.Run(run, name="bm25").save(path)
        read = reader.Run.from_parquet(path) if suffix == "parquet" else reader.Run.from_file(path)
        assert {q: dict(read[q]) for q in read.keys()} == run  # noqa: SIM118
        if suffix in ("trec", "txt"):
            assert read.name == "bm25"


# ---------------------------------------------------------------------------------------- its own tests
# They put `run.run` into a typed list of numba, which takes dicts of numba only; ours are Python's.
NOT_FOR_US = {
    "tests.unit.ranx.fusion.condorcet_test::test_get_candidates",
    "tests.unit.ranx.fusion.condorcet_test::test_get_results",
}
UNDER_ITS_NAME = """
import sys
import pytest
import recsys.compat.ranx
sys.modules["ranx"] = recsys.compat.ranx
plugins = ["-p", "no:randomly", "-p", "no:cacheprovider"]
sys.exit(pytest.main(["-q", *plugins, "--junitxml=results.xml", "tests"]))
"""


@pytest.mark.shared
def test_the_tests_of_ranx(shared_dir, tmp_path):
    """All pass but those that are listed above and on docs/drop-in.md; they write files, so a copy runs."""
    shutil.copytree(shared_dir / "peer_suites" / "ranx" / "tests", tmp_path / "tests")
    subprocess.run(
        [sys.executable, "-c", UNDER_ITS_NAME], cwd=tmp_path, check=False, timeout=500, capture_output=True
    )
    cases = ET.parse(tmp_path / "results.xml").iter("testcase")  # noqa: S314 - pytest wrote it
    passed = {
        f"{case.get('classname')}::{case.get('name')}": case.find("failure") is None
        and case.find("error") is None
        for case in cases
    }
    assert len(passed) == 124
    assert {name for name, well in passed.items() if not well} == NOT_FOR_US


def test_a_module_under_another_name_is_the_module_itself():
    script = (
        "import sys, recsys.compat.ranx as face\n"
        "sys.modules['ranx'] = face\n"
        "import ranx.fusion.bayesfuse, ranx.metrics.bpref\n"
        "from ranx.data_structures.run import Run\n"
        "from ranx.fusion import bayesfuse, rrf\n"
        "from ranx.metrics import bpref\n"
        "assert Run is face.Run\n"
        "assert callable(bayesfuse) and callable(bpref)\n"
        "assert rrf is sys.modules['recsys.compat.ranx.fusion'].rrf\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=100)


def test_its_bpref_of_a_query_without_a_judged_irrelevant_document_is_nought_by_nought():
    qrels, run = {"q": {"a": 1}}, {"q": {"a": 1.0}}
    found = ranx.evaluate(ranx.Qrels(qrels), ranx.Run(run), "bpref")
    assert found == 0 or math.isnan(found)
    assert face.evaluate(face.Qrels(qrels), face.Run(run), "bpref") == 1.0
