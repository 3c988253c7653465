"""Document 000: every code block runs as written and gives the results the document states.

The fences are read from the document, in order. A block that uses the API is executed verbatim, with the
names it leaves undefined supplied; one that defines a function is an oracle; for a block that is not valid
Python the smallest fix is listed. (test_document_000_statistics checks the values of the statistical blocks.)
"""

from __future__ import annotations

import ast
import csv
import json
import math
import re
import tomllib
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import recsys.cf.evaluation as cf_evaluation
from recsys.analysis import inspect_user_recommendations
from recsys.stats import SkewWarning

pytestmark = pytest.mark.shared

FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
N_USERS, N_ITEMS, N_FACTORS, N_DIMENSIONS = 120, 2231, 16, 24

# What every fence of the document is, by its number. "run": executed verbatim. "fixed": executed with the one
# replacement listed. "formula", "data", "list": not code; checked by a test below.
TABLE = {
    0: "list", 1: "formula", 2: "run", 3: "formula", 4: "run", 5: "formula", 6: "fixed", 7: "formula",
    8: "run", 9: "formula", 10: "run", 11: "formula", 12: "run", 13: "run", 14: "run", 15: "run",
    16: "formula", 17: "run", 18: "run", 19: "run", 20: "run", 21: "run", 22: "run", 23: "data", 24: "run",
    25: "run", 26: "run", 27: "formula", 28: "run", 29: "oracle", 30: "run", 31: "run", 32: "formula",
    33: "run", 34: "formula", 35: "run", 36: "formula", 37: "run", 38: "formula", 39: "run", 40: "formula",
    41: "run", 42: "run", 43: "run", 44: "run", 45: "data", 46: "list", 47: "run", 48: "run",
}  # fmt: skip
FIXES = {6: ("recsys.cf/evaluation", "recsys.cf.evaluation")}


@pytest.fixture(scope="module")
def fences(shared_dir):
    (path,) = (shared_dir / "seeds").glob("000_*.txt")
    return [(kind, code) for kind, code in FENCE.findall(path.read_text("utf-8"))]


@pytest.fixture(scope="module")
def world():
    """A model that is better than popularity, with item counts, embeddings, training and test items."""
    rng = np.random.default_rng(7)
    weight = 1.0 / np.arange(1, N_ITEMS + 1) ** 0.8
    users, items = rng.standard_normal((N_USERS, N_FACTORS)), rng.standard_normal((N_ITEMS, N_FACTORS))
    liking = users @ items.T + np.log(weight) + rng.gumbel(size=(N_USERS, N_ITEMS))
    order = np.argsort(-liking, axis=1)
    train = {u: set(order[u, 5:45].tolist()) for u in range(N_USERS)}
    test = pd.DataFrame(
        [(u, int(i), 5) for u in range(N_USERS) for i in order[u, :5]], columns=["u_idx", "i_idx", "rating"]
    )
    counts = np.bincount([i for user_items in train.values() for i in user_items], minlength=N_ITEMS)
    embeddings = rng.standard_normal((N_ITEMS, N_DIMENSIONS)).astype(np.float32)
    bias = np.concatenate([users, np.ones((N_USERS, 1))], axis=1)
    return SimpleNamespace(
        U=bias, V=np.concatenate([items, np.log(weight)[:, None]], axis=1), train=train, test=test,
        counts=counts, embeddings=embeddings, rng=rng,
    )  # fmt: skip


@pytest.fixture
def names(world, tmp_path, monkeypatch):
    """The names the document's blocks leave undefined."""
    monkeypatch.chdir(tmp_path)
    Path("artifacts/cf/als").mkdir(parents=True)
    np.save("artifacts/cf/als/als_U.npy", world.U)
    np.save("artifacts/cf/als/als_V.npy", world.V)
    Path("data/processed").mkdir(parents=True)
    world.test.to_csv("data/processed/test.csv", index=False)
    pairs = [(u, i) for u, user_items in world.train.items() for i in sorted(user_items)]
    pd.DataFrame(pairs, columns=["u_idx", "i_idx"]).to_csv("data/processed/train.csv", index=False)
    results = cf_evaluation.evaluate_model(world.U, world.V, world.test, world.train)
    popular = cf_evaluation.evaluate_baseline_popularity(world.test, world.counts, world.train)
    noisy = world.V + 0.5 * np.random.default_rng(1).standard_normal(world.V.shape)
    other = cf_evaluation.evaluate_model(world.U, noisy, world.test, world.train)
    als, pop = (r.evaluation.per_user["recall@10"].to_numpy() for r in (results, popular))
    profiles = cf_evaluation.compute_all_user_profiles(world.train, world.embeddings)
    test_users = sorted(world.train)
    lists = cf_evaluation.ModelEvaluator(world.U, world.V).generate_recommendations(
        test_users, world.train, 10
    )
    names = {
        "U": world.U, "V": world.V, "U_als": world.U, "V_als": world.V, "U_bpr": world.U, "V_bpr": noisy,
        "test_data": world.test, "user_pos_train": world.train, "item_popularity": world.counts,
        "item_counts": pd.Series(world.counts), "item_interaction_counts": pd.Series(world.counts),
        "bert_embeddings": world.embeddings, "item_to_idx": {i: i for i in range(N_ITEMS)},
        "user_profile_bert": profiles[0], "profile_0": profiles[0], "profile_1": profiles[1],
        "user_profiles": profiles, "recommendations": lists, "test_users": test_users,
        "als_results": results, "bpr_results": other, "pop_results": popular,
        "als_per_user_recall": als, "pop_per_user_recall": pop,
        "cf_per_user_recall": als, "baseline_per_user_recall": pop, "np": np,
    }  # fmt: skip
    loading = ("load_model", "load_cf_model", "load_test_data")
    for name in ("compute_item_similarity", "ModelEvaluator", *loading):
        names[name] = getattr(cf_evaluation, name)
    return names


def run(fences, number, names):
    """Execute a fence in a namespace of its own and return the namespace."""
    kind, code = fences[number]
    assert kind == "python"
    code = code.replace(*FIXES.get(number, ("", "")))
    namespace = dict(names, __name__="document")
    with warnings.catch_warnings():
        # The warning is about these small numbers, not about the block.
        warnings.simplefilter("ignore", SkewWarning)
        exec(compile(code, f"fence {number}", "exec"), namespace)  # noqa: S102
    return namespace


def test_the_table_knows_every_fence(fences):
    assert list(TABLE) == list(range(len(fences)))
    for number, (kind, code) in enumerate(fences):
        if TABLE[number] in ("run", "oracle"):
            ast.parse(code)
        elif kind == "python" and number in FIXES:
            with pytest.raises(SyntaxError):
                ast.parse(code)
        assert (kind == "python") == (TABLE[number] in ("run", "oracle", "fixed") or number == 46)


@pytest.mark.parametrize(
    "number", [n for n, kind in TABLE.items() if kind in ("run", "fixed") and n not in (24, 44)]
)
def test_a_block_runs_as_written(fences, names, number):
    run(fences, number, names)


def test_the_modules_and_names_of_the_overview_exist(fences, shared_dir):
    modules = re.findall(r"(\w+)\.py", fences[0][1])
    for module in modules:
        __import__("recsys.cf.evaluation" if module == "__init__" else f"recsys.cf.evaluation.{module}")
    (path,) = (shared_dir / "seeds").glob("000_*.txt")
    overview = path.read_text("utf-8").split("#### Core Exports")[1].split("## Core Metrics")[0]
    exports = [
        n
        for row in re.findall(r"^- (.*)$", overview, re.MULTILINE)
        for n in re.findall(r"`(\w+)(?:\(\))?`", row)
    ]
    assert len(exports) > 40
    for name in exports:
        assert getattr(cf_evaluation, name) is not None
        assert name in cf_evaluation.__all__, name


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (2, 2 / 3),
        (4, (1 / math.log2(4) + 1 / math.log2(5)) / (1 + 1 / math.log2(3) + 1 / math.log2(4))),
        (6, 2 / 10),
        (8, 1 / 3),
        (10, (1 / 3 + 2 / 4) / 3),  # over min(k, relevant), not over the two hits found
        (12, 7 / 100),
    ],
)
def test_the_metrics_have_the_formulas_value(fences, names, number, expected):
    assert run(fences, number, names)["score"] == pytest.approx(expected, abs=1e-12)


def results_by_formula(lists, truth, k):
    """The document's formulas, user by user."""
    recall, ndcg, precision, average = [], [], [], []
    for user, relevant in truth.items():
        hits = [item in relevant for item in lists[user][:k]]
        recall.append(sum(hits) / len(relevant))
        precision.append(sum(hits) / k)
        dcg = sum(hit / math.log2(place + 2) for place, hit in enumerate(hits))
        ndcg.append(dcg / sum(1 / math.log2(place + 2) for place in range(min(k, len(relevant)))))
        precisions = [sum(hits[: place + 1]) / (place + 1) for place, hit in enumerate(hits) if hit]
        average.append(sum(precisions) / min(k, len(relevant)))
    return {f"recall@{k}": recall, f"ndcg@{k}": ndcg, f"precision@{k}": precision, f"map@{k}": average}


def test_the_evaluator_agrees_with_the_formulas(fences, names, world):
    namespace = run(fences, 19, names)
    results, per_user = namespace["results"], namespace["per_user"]
    truth = world.test.groupby("u_idx")["i_idx"].apply(set).to_dict()
    scores = world.U @ world.V.T
    ranked = {}
    for user, seen in world.train.items():
        scores[user, sorted(seen)] = -np.inf
        ranked[user] = np.argsort(-scores[user], kind="stable").tolist()
    for k in (10, 20):
        for name, values in results_by_formula(ranked, truth, k).items():
            assert results[name] == pytest.approx(np.mean(values), abs=1e-12)
            assert per_user[name].tolist() == pytest.approx(values, abs=1e-12)
    first = [1 / (1 + min(ranked[u].index(i) for i in relevant)) for u, relevant in truth.items()]
    assert results["mrr"] == pytest.approx(np.mean(first))
    shown_items = {item for items in ranked.values() for item in items[:20]}
    assert results["coverage"] == pytest.approx(len(shown_items) / N_ITEMS)
    assert per_user.index.tolist() == sorted(truth)
    assert results["num_users_evaluated"] == N_USERS
    assert namespace["evaluator"].generate_recommendations([3, 1], world.train, 4) == {
        u: ranked[u][:4] for u in (1, 3)
    }


def test_the_result_keys_are_the_documents(fences, names):
    documented = eval(fences[21][1], dict(names))  # noqa: S307
    assert set(documented) <= set(names["als_results"])
    assert all(type(names["als_results"][key]) is type(value) for key, value in documented.items())


def test_popularity_and_chance(fences, names, world):
    results = run(fences, 13, names)["results"]
    order = np.lexsort((np.arange(N_ITEMS), -world.counts)).tolist()
    truth = world.test.groupby("u_idx")["i_idx"].apply(set).to_dict()
    ranked = {u: [i for i in order if i not in world.train[u]] for u in truth}
    for k in (10, 20):
        for name, values in results_by_formula(ranked, truth, k).items():
            assert results[name] == pytest.approx(np.mean(values), abs=1e-12)
    namespace = run(fences, 14, names)
    assert namespace["results"] == {
        **run(fences, 14, names)["results"],
        **elapsed_seconds(namespace["results"]),
    }


def elapsed_seconds(results):
    return {"evaluation_time_seconds": results["evaluation_time_seconds"]}


def test_item_similarity_by_matrix_and_by_embeddings_agree(fences, names, world):
    by_matrix = run(fences, 15, names)["results"]
    by_rows = cf_evaluation.ItemSimilarityBaseline(item_embeddings=world.embeddings).evaluate(
        world.test, world.train
    )
    for name in ("recall@10", "ndcg@20", "mrr", "coverage"):
        assert by_matrix[name] == pytest.approx(by_rows[name], abs=1e-9)


def test_the_improvement_is_the_formula(fences, names, capsys):
    namespace = run(fences, 17, names)
    cf, base = names["als_results"]["recall@10"], names["pop_results"]["recall@10"]
    assert namespace["improvement"]["relative_percent"] == pytest.approx((cf - base) / base * 100)
    assert capsys.readouterr().out.startswith("Improvement: ")


def test_the_summary_files(fences, names):
    run(fences, 22, names)
    namespace = run(fences, 24, names)
    assert set(namespace["df"]["model"]) == {"als", "bpr", "popularity"}
    assert namespace["df_sorted"]["model"].iloc[0] == "als"
    header = fences[23][1].splitlines()[0].split(",")
    assert (
        json.loads(Path("reports/cf_eval_summary.json").read_text())["models"]["als"]["metadata"]["factors"]
        == 64
    )
    assert "| als" in Path("reports/cf_eval_summary.md").read_text()
    rows = list(csv.DictReader(fences[23][1].splitlines()))
    generator = cf_evaluation.ReportGenerator("again")
    for row in rows:
        known = {n: float(v) for n, v in row.items() if v != "NA" and n != "model"}
        metrics = {n: v for n, v in known.items() if "@" in n or n == "coverage"}
        # Added in reverse order: the generator decides the order of the columns.
        rest = dict(reversed([(n, v) for n, v in known.items() if n not in metrics]))
        generator.add_results(row["model"], dict(reversed(metrics.items())), metadata=rest)
    written = generator.generate_csv_report("cf_eval_summary.csv").read_text().splitlines()
    assert written[0].split(",") == header
    assert [line.split(",")[3] for line in written[1:]] == ["10.0", "NA", "NA"]


def test_the_charts_data(fences, names):
    namespace = run(fences, 25, names)
    assert namespace["bar_data"]["best"] == {"recall@10": "als", "ndcg@10": "als"}
    assert namespace["k_sensitivity_data"]["k_values"] == [10, 20]
    assert namespace["k_sensitivity_data"]["series"]["als"][0] == names["als_results"]["recall@10"]
    assert namespace["tradeoff_data"]["accuracy"][1] == names["bpr_results"]["ndcg@10"]


def test_inspecting_a_user_agrees_with_the_documents_function(fences, world, names, capsys):
    products = pd.DataFrame(
        {
            "product_id": [f"p{i}" for i in range(N_ITEMS)],
            "product_name": [f"Name {i}" for i in range(N_ITEMS)],
            "brand": "b",
            "avg_star": 4.5,
            "num_sold_time": world.counts,
        }
    )
    mappings = {
        "user_to_idx": {f"u{u}": u for u in range(N_USERS)},
        "idx_to_item": {i: f"p{i}" for i in range(N_ITEMS)},
    }
    model = SimpleNamespace(U=world.U, V=world.V)
    namespace = run(fences, 29, {"np": np})
    for user in ("u0", "u17"):
        namespace["inspect_user_recommendations"](user, model, mappings, products, k=10)
        printed = re.findall(r"\bp\d+\b", capsys.readouterr().out)
        ours = inspect_user_recommendations(user, model, mappings, products, k=10)
        assert sorted(printed) == sorted(ours["product_id"])
        scores = world.U[int(user[1:])] @ world.V.T
        assert ours["product_id"].tolist() == [f"p{i}" for i in np.argsort(-scores, kind="stable")[:10]]
        assert capsys.readouterr().out == ""


def unit_rows(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_the_hybrid_metrics_have_the_formulas_values(fences, names, world):
    rows = unit_rows(world.embeddings.astype(np.float64))
    items = [1, 5, 3, 8, 2]
    similarity = rows[items] @ rows[items].T
    pairs = similarity[~np.eye(5, dtype=bool)]
    assert run(fences, 33, names)["score"] == pytest.approx(1 - pairs.mean())
    batch = run(fences, 33, names)["batch_results"]
    assert list(batch) == ["mean", "std", "min", "max"]
    profile = names["user_profile_bert"] / np.linalg.norm(names["user_profile_bert"])
    assert run(fences, 35, names)["score"] == pytest.approx((rows[items] @ profile).mean())
    cold = set(np.flatnonzero(world.counts < 5).tolist())
    assert run(fences, 37, names)["score"] == pytest.approx(len({1, 5, 3, 2, 8} & cold) / len(cold))
    bits = np.log2(26000 / np.maximum(world.counts[items], 1))
    assert run(fences, 39, names)["score"] == pytest.approx(bits.mean())
    assert run(fences, 41, names)["score"] == pytest.approx(2 / 10)


def test_the_collection_and_the_workflow_say_the_same(fences, names):
    together, steps = run(fences, 42, names)["results"], run(fences, 43, names)["hybrid_results"]
    assert together["diversity"] == pytest.approx(steps["diversity@10"])
    assert together["semantic_alignment"] == pytest.approx(steps["semantic_alignment@10"])
    assert together["cold_start_coverage"] == pytest.approx(steps["cold_start_coverage"])


def test_the_comparison_script_of_the_document(fences, names, capsys):
    torch = pytest.importorskip("torch")
    Path("reports").mkdir()
    torch.save({"embeddings": torch.tensor(names["bert_embeddings"])}, "embeddings.pt")
    args = SimpleNamespace(cf_model="artifacts/cf/als", bert_embeddings="embeddings.pt")
    extra = {
        name: getattr(cf_evaluation, name)
        for name in ("compute_all_user_profiles", "evaluate_with_reranking")
    }
    namespace = run(fences, 44, {**names, **extra, "args": args, "torch": torch})
    namespace["main"]()
    written = pd.read_csv("reports/cf_vs_hybrid_comparison.csv", index_col=0)
    assert written.index.tolist() == ["Pure CF", "CF + BERT", "Improvement"]
    rows = [line.split("|")[0].strip() for line in fences[45][1].splitlines()[2:]]
    assert written.columns.tolist() == rows
    assert written.loc["Improvement", "semantic_alignment@10"] > 0
    assert "Comparison:" in capsys.readouterr().out


def test_what_the_document_requires_is_a_dependency_or_an_extra(fences):
    required = re.findall(r"^([\w-]+)>=", fences[46][1], re.MULTILINE)
    with (Path(__file__).parents[3] / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    ours = " ".join(
        [*project["dependencies"], *(n for extra in project["optional-dependencies"].values() for n in extra)]
    )
    # seaborn is the only package of the list that is not needed: the charts use matplotlib.
    assert {name for name in required if name not in ours} == {"seaborn"}
