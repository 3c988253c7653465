"""The vectors of docs/standard: every metric and decision is in them, and the plain definitions agree.

That the files are what the code makes, byte for byte, is a test of the generated pages (tests/docs).
"""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from oracles import ranking, shown
from recsys.comparison import standard
from recsys.conventions.decisions import DECISIONS, Conventions
from recsys.metrics import METRICS, Metric

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "standard" / "vectors"
FILES = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.json"))}
VECTORS = [(family, vector) for family, file in FILES.items() for vector in file["vectors"]]
BY_QUESTION = {
    (family, v["input"], v["metric"], v["k"], json.dumps(v["params"]), json.dumps(v["conventions"])): v
    for family, v in VECTORS
}
LISTS_AS_SETS = {
    "count", "filled", "set_f", "set_map", "set_precision", "set_recall", "set_relative_precision",
    "user_coverage", "utility", "valid",
}  # fmt: skip
# Metrics that read a decision and are not moved on any input: most of them ask which items there are, not how
# often or at which of the first places they stand.
NOT_MOVED: dict[tuple[str, Any], set[str]] = {
    ("ties", "worst"): {"tail_share"},
    ("duplicates", "all"): {
        "cold_coverage", "compat", "count", "coverage", "distinct_items", "g", "hit", "kinds", "mrr",
        "ndcg_rel", "personalisation", "r_ndcg", "subtopic_recall", "user_coverage", "valid",
    },
    ("duplicates", "collapse"): {"bpm", "hit", "set_recall", "user_coverage"},
    ("rank_gaps", "kept"): {"exposure_ratio", "set_recall", "unseen", "user_coverage", "valid"},
    ("unknown_items", "drop"): {
        "cold_coverage", "count", "coverage", "distinct_items", "entropy", "exposure_gap", "exposure_ratio",
        "gini", "personalisation",
    },
    ("seen_truth", "drop"): {
        "count", "distinct_items", "ee_d", "entropy", "exposure_gap", "exposure_ratio", "personalisation",
    },
    ("judged_only", "yes"): {"bpref", "set_recall"},
    ("relevant_from", 0.75): {"ee_d", "epc", "popularity_serendipity", "serendipity"},
}  # fmt: skip
SAME_FOR_ONE_USER = {("user_fcp", "over")}


def cannot_move(metric: Metric, decision: str, value: Any) -> bool:
    """Whether the declaration of a metric says that this value leaves it as it is, or refuses it."""
    left_out = metric.empty is not None and math.isnan(metric.empty)
    if decision == "no_truth":
        return value != "error" and (left_out or (value == "unjudged" and metric.population == "judged"))
    if decision == "no_list":
        return value == "skip" and left_out
    if decision == "ties":
        one_order = metric.tied.tie_order == "unknown" or metric.kind == "catalogue"
        refused = {
            "expected": metric.tied.ties in ("refuse", "shown"),
            "best": one_order,
            "worst": one_order,
        }
        return metric.name in LISTS_AS_SETS or refused.get(value, False)
    if decision == "rank_gaps":
        return "full_ranking" in FILES[standard.family_of(metric)]["inputs"]["ranks with gaps"]["context"]
    return decision == "relevant_from" and metric.population == "judged"


def default_of(family: str, vector: dict[str, Any], without: str) -> dict[str, Any] | None:
    """The vector of the same question without one of its decisions."""
    left = {name: value for name, value in vector["conventions"].items() if name != without}
    question = (vector["input"], vector["metric"], vector["k"], json.dumps(vector["params"]))
    return BY_QUESTION.get((family, *question, json.dumps(left)))


def test_the_files_say_which_standard_they_are_of_and_stay_small():
    assert {file["standard"] for file in FILES.values()} == {standard.VERSION}
    assert sum(path.stat().st_size for path in FOLDER.glob("*.json")) < 2_000_000
    assert len(BY_QUESTION) == len(VECTORS), "a question is asked twice"


def test_every_metric_of_the_registry_has_vectors_under_the_default_and_with_every_parameter():
    asked = {(family, v["metric"]) for family, v in VECTORS if not v["conventions"]}
    every = standard.standard_metrics()
    assert asked == {(standard.family_of(metric), metric.name) for metric in every}
    values = {(f, v["metric"], n, str(value)) for f, v in VECTORS for n, value in v["params"].items()}
    for metric in every:
        for name, default in metric.params.items():
            choices = metric.choices.get(name, ())
            words = [word for word in choices if isinstance(word, str)] if isinstance(choices, tuple) else []
            assert words or not isinstance(default, str), f"{metric.name} does not say what {name} may be"
            family = standard.family_of(metric)
            missing = [w for w in words if (family, metric.name, name, w) not in values]
            if (metric.name, name) in SAME_FOR_ONE_USER:
                continue
            assert not missing, f"no vector of {metric.name} shows {name}={missing}"


@pytest.mark.parametrize(
    ("decision", "value"),
    [
        (decision, value)
        for decision in (*DECISIONS, "relevant_from", "max_grade")
        for value in standard.decision_values(decision)
    ],
)
def test_every_decision_changes_the_metrics_that_read_it(decision, value):
    told = json.loads(json.dumps(value))
    changed = set()
    for family, vector in VECTORS:
        if vector["conventions"].get(decision) == told:
            usual = default_of(family, vector, decision)
            if usual is not None and usual["expected"] != vector["expected"]:
                changed.add(vector["metric"])
            alone = set(vector["conventions"]) == {decision}
            if alone and usual is None and vector["input"] not in standard._EDGES:
                changed.add(vector["metric"])
    readers = [m for m in standard.standard_metrics() if decision in m.reads]
    assert changed, f"no vector shows {decision}={value}"
    if value != "error":  # what refuses the truth refuses it for every metric
        assert changed <= {metric.name for metric in readers}
    may_move = {metric.name for metric in readers if not cannot_move(metric, decision, value)}
    unmoved = may_move - changed - NOT_MOVED.get((decision, value), set())
    assert not unmoved, f"{decision}={value} moves {sorted(unmoved)} on no input"


def test_the_edges_are_among_the_inputs():
    inputs = {name: one for file in FILES.values() for name, one in file["inputs"].items()}
    lists = [entries for one in inputs.values() for entries in one["run"].values()]
    truths = [grades for one in inputs.values() for grades in one["truth"].values()]
    grades = {grade for truth in truths for grade in truth.values()}
    assert [] in lists
    assert any(len(entries) == 1 for entries in lists)
    assert {} in truths
    assert 0 in grades
    assert any(grade != int(grade) for grade in grades)
    repeated = [entries for entries in lists if len({item for item, _ in entries}) < len(entries)]
    tied = [entries for entries in lists if len({score for _, score in entries}) < len(entries)]
    assert repeated
    assert tied
    longest = {name: max(map(len, one["run"].values())) for name, one in inputs.items()}
    assert any(v["k"] and v["k"] > longest[v["input"]] for _, v in VECTORS)
    kinds = Counter("error" if "error" in v["expected"] else v["expected"]["value"] for _, v in VECTORS)
    assert kinds["error"]
    assert kinds[None]


def test_the_pages_have_every_key_of_the_inputs_every_decision_and_a_vector_as_it_is():
    page = (FOLDER.parent / "index.md").read_text("utf-8")
    shown_vector = json.loads(page.split("```json\n")[1].split("```")[0])
    assert shown_vector in [vector for _, vector in VECTORS]
    keys = {key for file in FILES.values() for one in file["inputs"].values() for key in one["context"]}
    assert not [key for key in keys if f"| `{key}` |" not in page]
    decisions = (FOLDER.parent / "decisions.md").read_text("utf-8")
    metrics = (FOLDER.parent / "metrics.md").read_text("utf-8")
    assert not [name for name in DECISIONS if f"\n## {name}\n" not in decisions]
    names = [
        m.name for m in standard.standard_metrics() if not m.name.startswith("user_") or m.name in METRICS
    ]
    assert not [name for name in names if f"\n### {name}" not in metrics]


def answer_of_oracle(family: str, vector: dict[str, Any]) -> tuple[float | None, dict[str, Any]] | None:
    """The answer of the plain definitions; None where they do not read what the input holds."""
    source, name = FILES[family]["inputs"][vector["input"]], vector["metric"]
    context, told = source["context"], vector["conventions"]
    rules = Conventions(**{n: tuple(map(_pair, v)) if isinstance(v, list) else v for n, v in told.items()})
    run = {user: [tuple(entry) for entry in entries] for user, entries in source["run"].items()}
    if "ranks" in context:
        run = {u: [item for item, _ in sorted(own, key=lambda pair: pair[1])] for u, own in run.items()}
    truth = source["truth"]
    if "seen_truth" in told and "seen" in context:
        seen = context["seen"]
        truth = {
            u: {i: g for i, g in own.items() if g < 0 or i not in seen.get(u, ())} for u, own in truth.items()
        }
    request = ranking.Request(name, vector["k"], {n: v for n, v in vector["params"].items() if v is not None})
    catalogue = context.get("catalogue")
    ids = catalogue if isinstance(catalogue, list) else None
    if family == "predictions" or told.get("seen_truth") == "error" or "rank_gaps" in told:
        return None
    if name in ranking.NAMES:
        n_items = None if isinstance(catalogue, list) else catalogue
        options = {"n_items": n_items, "catalogue": ids, "full_ranking": context.get("full_ranking", False)}
        return ranking.evaluate(run, truth, request, rules, **options)
    plain_train = all(isinstance(had, list) for had in context.get("train", {"": {}}).values())
    plain = plain_train and not {"profiles", "popularity", "exclude", "eligible"} & set(context)
    plain = plain and isinstance(context.get("intents", ""), str)
    plain = plain and rules.ties not in ("best", "worst") and not isinstance(catalogue, int)
    plain = plain and (rules.ties != "expected" or METRICS[name].tied.ties == "shown")
    if name not in shown.NAMES or not plain or "unknown_items" in told or "users" in request.params:
        return None
    known = shown.Known(
        train=context["train"],
        embeddings=context["embeddings"],
        kinds={item: "|".join(labels) for item, labels in context["items"]["kind"].items()},
        price=context["items"]["price"],
        reference=context["reference"],
        catalogue=ids,
    )
    return shown.evaluate(run, truth, request, rules, known)


def _pair(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@pytest.mark.parametrize("family", sorted(FILES))
def test_the_plain_definitions_agree(family):
    checked = Counter()
    for vector in FILES[family]["vectors"]:
        expected, of_an_edge = vector["expected"], vector["input"] in standard._EDGES
        try:
            answer = answer_of_oracle(family, vector)
        except ranking.RefusedError:
            answer = ("error", {})
        if answer is None or ("error" in expected and (family != "ranking" or of_an_edge)):
            continue  # the second implementation (tests/standard) has every error of the pages
        value, cases = answer
        if "error" in expected:
            assert value == "error", vector
        else:
            assert near(value, expected["value"]), (vector, value)
            for user, number in expected.get("cases", {}).items():
                assert near(cases[user], number), (vector, user, cases[user])
        checked[vector["metric"]] += 1
    covered = {v["metric"] for v in FILES[family]["vectors"]} & (ranking.NAMES | shown.NAMES)
    if family != "predictions":
        assert set(checked) == covered
        assert covered == {name for name, metric in METRICS.items() if standard.family_of(metric) == family}


def near(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
