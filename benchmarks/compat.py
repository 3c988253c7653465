"""The evaluators of others and ours on their own forms: equal work, one run, interleaved; CPU time.

Nested dicts of text, as BEIR, MTEB and pytrec_eval pass them: 20,000 queries x 20 documents, ten judged, four
measures. pytrec_eval and our face of it are built and asked in the timed call; ranx and our face of it
evaluate objects that are ready, ranx after its functions were compiled. `python loops` is what CPython takes
to visit, look up and sort the same dicts, and computes nothing. The tables are those of `lists.py`, 100,000
users x top-20 with 18 metrics, once with whole numbers for ids and once with text. Every pair is first held
to the same numbers. Run it where the peers are installed; they keep pandas 2, whose strings are Python
objects, so the tables are measured by themselves where pandas is new, too (results/text_ids.json):
python benchmarks/compat.py [--rounds 9] [--queries 20000] [--users 100000] [--tables-only]
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lists as tables
import numpy as np
from measuring import machine

import recsys
from recsys.compat import pytrec_eval as pytrec_face
from recsys.compat import ranx as ranx_face
from recsys.evaluation.case_values import values_by_case

MEASURES = {"ndcg_cut.10", "map", "recip_rank", "recall.20"}
METRICS = ["ndcg@10", "map", "mrr", "recall@20"]
N_DOCUMENTS, N_LISTED, N_JUDGED = 200_000, 20, 10
Nested = dict[str, dict[str, Any]]


PAIRS = [
    ("pytrec_eval", "recsys.compat.pytrec_eval"),
    ("pytrec_eval", "recsys.evaluate"),
    ("ranx", "recsys.compat.ranx"),
]


def nested_dicts(n_queries: int) -> tuple[Nested, Nested]:
    """Scores and grades; half of the judged documents are in the list."""
    rng = np.random.default_rng(0)
    run: Nested = {}
    truth: Nested = {}
    for query in range(n_queries):
        listed = rng.choice(N_DOCUMENTS, N_LISTED, replace=False)
        found = rng.choice(listed, N_JUDGED // 2, replace=False)
        judged = np.concatenate([found, rng.choice(N_DOCUMENTS, N_JUDGED // 2)])
        grades = rng.integers(0, 4, N_JUDGED)
        scores = rng.random(N_LISTED).astype(np.float32).tolist()
        run[f"q{query}"] = {f"doc{n}": score for n, score in zip(listed, scores, strict=True)}
        truth[f"q{query}"] = {f"doc{n}": int(grade) for n, grade in zip(judged, grades, strict=True)}
    return run, truth


def python_loops(run: Nested, truth: Nested) -> int:
    """Visit, look up and sort every document in Python."""
    total = 0
    for query, listed in run.items():
        judged = truth[query]
        for document, _ in sorted(listed.items(), key=lambda pair: -pair[1]):
            total += judged.get(document, 0)
    return total


def dict_work(n_queries: int) -> dict[str, Callable[[], Any]]:
    """What is timed on nested dicts."""
    run, truth = nested_dicts(n_queries)
    pytrec_eval, ranx = (importlib.import_module(name) for name in ("pytrec_eval", "ranx"))
    qrels, ranked = ranx.Qrels(truth), ranx.Run(run)
    own_qrels, own_ranked = ranx_face.Qrels(truth), ranx_face.Run(run)
    work: dict[str, Callable[[], Any]] = {
        "python loops": lambda: python_loops(run, truth),
        "pytrec_eval": lambda: pytrec_eval.RelevanceEvaluator(truth, MEASURES).evaluate(run),
        "recsys.compat.pytrec_eval": lambda: pytrec_face.RelevanceEvaluator(truth, MEASURES).evaluate(run),
        "values_by_case": lambda: values_by_case(run, truth, METRICS, "trec_eval"),
        "recsys.evaluate": lambda: recsys.evaluate(run, truth, METRICS, conventions="trec_eval"),
        "ranx": lambda: ranx.evaluate(qrels, ranked, METRICS, threads=1),
        "recsys.compat.ranx": lambda: ranx_face.evaluate(own_qrels, own_ranked, METRICS),
    }
    peer, face = work["pytrec_eval"](), work["recsys.compat.pytrec_eval"]()
    for query, row in peer.items():
        check(face[query], row)
    keys = zip(METRICS, ("ndcg_cut_10", "map", "recip_rank", "recall_20"), strict=True)
    means = {name: float(np.mean([row[key] for row in peer.values()])) for name, key in keys}
    check(dict(work["recsys.evaluate"]()), means)
    check(dict(work["recsys.compat.ranx"]()), dict(work["ranx"]()))
    return work


def check(found: dict[str, float], expected: dict[str, float]) -> None:
    """Raise an error if numbers differ by more than their last bits."""
    if found.keys() != expected.keys() or any(abs(found[n] - v) > 1e-12 for n, v in expected.items()):
        raise ValueError(f"{found} and {expected} differ")


def table_work(n_users: int) -> dict[str, Callable[[], Any]]:
    """The same tables with whole numbers and with text for ids."""
    listed, truth = tables.world(n_users, n_users // 2, 20)
    evaluate, work = tables.ours("auto"), {}
    for name, make in tables.shapes(listed, truth).items():
        data = make()
        work[name] = lambda data=data: evaluate(*data)
    check(work["grouped, Arrow strings"](), work["grouped, int ids"]())
    return work


def measured(work: dict[str, Callable[[], Any]], rounds: int) -> dict[str, dict[str, float]]:
    """Best and median CPU seconds of each, one call of each in every round."""
    seconds: dict[str, list[float]] = {name: [] for name in work}
    for call in work.values():
        call()
    for _ in range(rounds):
        for name, call in work.items():
            began = time.process_time()
            result = call()
            seconds[name].append(time.process_time() - began)
            del result
    return {name: {"best_s": min(s), "cpu_s": statistics.median(s)} for name, s in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--queries", type=int, default=20_000)
    parser.add_argument("--users", type=int, default=100_000)
    parser.add_argument("--tables-only", action="store_true")
    chosen = parser.parse_args()
    dicts = {} if chosen.tables_only else measured(dict_work(chosen.queries), chosen.rounds)
    frames = measured(table_work(chosen.users), chosen.rounds)
    cpu_s = {name: times["cpu_s"] for name, times in {**dicts, **frames}.items()}
    pairs = [] if chosen.tables_only else PAIRS
    pairs += [(name, f"{name.split(',')[0]}, int ids") for name in frames if "int" not in name]
    result = {
        "machine": machine("recsys-evaluation", "pytrec-eval-terrier", "ranx", "numpy", "pandas"),
        "queries": chosen.queries,
        "rounds": chosen.rounds,
        "dicts": dicts,
        "tables": frames,
        "ratios": {f"{a} / {b}": round(cpu_s[a] / cpu_s[b], 2) for a, b in pairs},
    }
    file = "text_ids.json" if chosen.tables_only else "compat.json"
    (Path(__file__).parent / "results" / file).write_text(json.dumps(result, indent=2) + "\n")
    json.dump(result, sys.stdout, indent=2)


if __name__ == "__main__":
    main()
