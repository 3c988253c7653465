"""Whether a change left every number alone: hashes of some sixty calls, held against those in digest.json.

    python scripts/digest.py            prints what differs; exit status 1 if anything does
    python scripts/digest.py --write    stores the hashes of this tree

It uses public names only, so it outlives any move inside the package. Ranks, lists, values and means are
hashed bit by bit; p-values, intervals and what linear algebra made are rounded to nine digits, as they may
differ in the last ones between machines.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import recsys

STORED = Path(__file__).with_suffix(".json")
CASES: dict[str, Callable[[], Any]] = {}
EXACT: set[str] = set()
PROSE = {
    "verdict",
    "notes",
    "why",
    "test",
    "how",
    "best_how",
    "floor_how",
}  # columns of words, free to improve
METRICS = ["precision", "recall", "f1", "hit", "ndcg", "map", "dcg", "rbp", "err"]


def case(function: Callable[[], Any]) -> Callable[[], Any]:
    """A call whose numbers are hashed bit by bit."""
    CASES[function.__name__] = function
    EXACT.add(function.__name__)
    return function


def near(function: Callable[[], Any]) -> Callable[[], Any]:
    """A call whose numbers are hashed to nine digits."""
    CASES[function.__name__] = function
    return function


def plain(value: Any, exact: Any) -> Any:
    """Numbers, text and containers of them, in a form whose JSON is the same wherever the numbers are."""
    if isinstance(value, pd.DataFrame):
        value = {n: value[n].tolist() for n in value if n not in PROSE} | {"index": value.index.tolist()}
    if isinstance(value, Mapping):
        return [[plain(k, exact), plain(v, exact)] for k, v in value.items()]
    if isinstance(value, np.ndarray):
        return plain(value.tolist(), exact)
    if isinstance(value, set | frozenset):
        return sorted(plain(v, exact) for v in value)
    if isinstance(value, list | tuple):
        return [plain(v, exact) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value.hex() if exact else f"{value + 0.0:.9g}"
    return value if isinstance(value, str | int | bool | None) else str(value)


def hashed(name: str) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text = json.dumps(plain(CASES[name](), name in EXACT))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def document(result: recsys.Evaluation) -> Any:
    """The reproducible part of a result file, and every user's values."""
    made = json.loads(result.to_json())
    return made["sha256"], made["result"]["metrics"], made["result"]["by"], result.per_user_frame()


# ---- worlds

SMALL = np.random.default_rng(5)


class Demo:
    """Some hundred users who took items one after the other; the last two of each are the test."""

    n_users, n_items = 300, 200
    likes = SMALL.standard_normal((300, 4)) @ SMALL.standard_normal((4, 200)) - 0.02 * np.arange(200)
    embeddings = SMALL.standard_normal((200, 6)).astype(np.float32)
    items = tuple(f"i{n:03d}" for n in range(200))

    def __init__(self) -> None:
        ranked = np.argsort(-(self.likes + SMALL.gumbel(size=self.likes.shape)), axis=1, kind="stable")
        rows = [
            (f"u{u:03d}", self.items[i], 1_700_000_000 + 86_400 * at + 60 * u, int(SMALL.integers(1, 6)))
            for u in range(self.n_users)
            for at, i in enumerate(ranked[u, : 6 + u % 9].tolist())
        ]
        self.events = pd.DataFrame(rows, columns=["user_id", "item_id", "timestamp", "rating"])
        newest = self.events.groupby("user_id").cumcount(ascending=False)
        self.train, self.test = self.events[newest >= 2], self.events[newest < 2]

    def lists(self, noise: float, k: int = 20) -> pd.DataFrame:
        taken = set(zip(self.train["user_id"], self.train["item_id"], strict=True))
        ranked = np.argsort(-(self.likes + noise * SMALL.standard_normal(self.likes.shape)), axis=1)
        rows = []
        for u in range(self.n_users):
            free = [i for i in ranked[u].tolist() if (f"u{u:03d}", self.items[i]) not in taken][:k]
            rows += [(f"u{u:03d}", self.items[i], at) for at, i in enumerate(free, start=1)]
        return pd.DataFrame(rows, columns=["user_id", "item_id", "rank"])


DEMO = Demo()
LISTS = {
    "random": DEMO.lists(9.0),
    "popularity": DEMO.lists(3.0),
    "item_knn": DEMO.lists(1.5),
    "svd": DEMO.lists(1.0),
}
GRADED = {
    int(u): {
        int(i): float(g)
        for i, g in zip(SMALL.choice(60, 6, replace=False), SMALL.integers(0, 5, 6), strict=True)
    }
    for u in range(40)
}
SCORED = {
    u: [(int(i), float(s)) for i, s in zip(SMALL.permutation(60)[:15], SMALL.integers(0, 9, 15), strict=True)]
    for u in range(42)
}
FULL = {u: SMALL.permutation(60).tolist() for u in range(40)}
USERS, ITEMS = SMALL.standard_normal((40, 8)), SMALL.standard_normal((60, 8))
SEEN = {u: SMALL.choice(60, 4, replace=False).tolist() for u in range(40)}
TRAIN = {u: SMALL.choice(60, 7, replace=False).tolist() for u in range(40)}
KINDS = {"genre": {i: "abc"[i % 3] for i in range(60)}}
VECTORS = SMALL.standard_normal((60, 5))


def demo(name: str, metrics: Any = None, **options: Any) -> recsys.Evaluation:
    chosen = metrics or ["ndcg@10", "recall@10", "mrr"]
    return recsys.evaluate(LISTS[name], DEMO.test, chosen, **options)


# ---- evaluations of lists


@case
def lists_every_cutoff() -> Any:
    return document(recsys.evaluate(LISTS["svd"], DEMO.test, METRICS, k=[1, 5, 10, 20]))


@case
def lists_relevant_from() -> Any:
    return document(demo("item_knn", ["ndcg@10", "precision@5"], conventions={"relevant_from": 4}))


@case
def lists_scored_with_ties() -> Any:
    return [
        document(
            recsys.evaluate(SCORED, GRADED, ["ndcg@5", "map@5", "mrr", "hit@3"], conventions={"ties": t})
        )
        for t in ("by_id", "by_id_desc", "expected", "best", "worst")
    ]


@case
def every_preset() -> Any:
    asked = ["precision@5", "recall@5", "map@5", "ndcg@5", "mrr@5", "hit@5", "f1@5"]
    names = [
        "default", "trec_eval", "rectools", "lenskit", "torchmetrics", "ranx", "recbole", "recpack", "replay",
        "implicit", "recommenders", "irspack", "seed000", "seed001", "seed003", "seed004",
    ]  # fmt: skip
    out = {}
    for name in names:
        try:
            out[name] = document(recsys.evaluate(SCORED, GRADED, asked, conventions=name))
        except recsys.errors.RecsysError as error:
            out[name] = type(error).__name__
    return out


@case
def lists_by_user_group() -> Any:
    return document(demo("svd", by="activity", train=DEMO.train))


@case
def lists_by_item_group() -> Any:
    return document(demo("svd", by="popularity", train=DEMO.train))


@case
def gaps_between_groups() -> Any:
    made = demo("svd", by=lambda user: int(user[1:]) % 3)
    return {m: (g.best, g.worst) for m, g in made.gaps().items()}, made.by, made.by_sizes


@case
def lists_weighted_and_clustered() -> Any:
    weights = {u: 1 + u % 3 for u in GRADED}
    clusters = {u: u // 2 for u in SCORED}
    given = {"case_weights": weights | {40: 1, 41: 1}, "clusters": clusters}
    return document(recsys.evaluate(SCORED, GRADED, ["recall@5", "ndcg@5"], **given))


@case
def lists_item_weights() -> Any:
    weights = {i: 1.0 + i % 4 for i in range(60)}
    return document(recsys.evaluate(SCORED, GRADED, ["recall@5", "dcg@5", "ndcg@5"], item_weights=weights))


@case
def complete_rankings() -> Any:
    asked = ["auc", "average_rank", "mrr", "ndcg", "r_precision", "bpref"]
    return document(recsys.evaluate(FULL, GRADED, asked, complete=True, catalogue=60))


@near
def beyond_accuracy() -> Any:
    asked = [
        "coverage@10",
        "gini@10",
        "entropy@10",
        "novelty@10",
        "ild@10",
        "serendipity@10",
        "personalisation@10",
    ]
    known = {"embeddings": (list(DEMO.items), DEMO.embeddings), "catalogue": DEMO.items}
    made = demo("svd", asked, train=DEMO.train, reference=LISTS["popularity"], **known)
    return made.to_dict(), made.per_user_frame()


@near
def intent_and_calibration() -> Any:
    asked = ["alpha_ndcg@10", "miscalibration@10", "err_ia@10", "map_ia@10"]
    found = {}
    for name in asked:
        try:
            found[name] = recsys.evaluate(
                FULL, GRADED, [name], items=KINDS, train=TRAIN, intents="genre"
            ).to_dict()
        except recsys.errors.RecsysError as error:
            found[name] = type(error).__name__
    return found


@case
def containers_agree() -> Any:
    frame = LISTS["svd"].sample(frac=1.0, random_state=3)
    as_dict = {u: g["item_id"].tolist() for u, g in LISTS["svd"].groupby("user_id")}
    wanted = {u: set(g["item_id"]) for u, g in DEMO.test.groupby("user_id")}
    return [document(recsys.evaluate(x, wanted, ["ndcg@10"])) for x in (frame, as_dict)]


@case
def batches_merge() -> Any:
    whole = recsys.Evaluator(["recall@5", "ndcg@5", "mrr"])
    for user in sorted(GRADED):
        whole.update({user: SCORED[user]}, {user: GRADED[user]})
    return document(whole.result())


@case
def single_lists() -> Any:
    return [
        recsys.score_list([i for i, _ in SCORED[u]], GRADED[u], name)
        for u in range(20)
        for name in ("ndcg@5", "map@5", "recall@10", "mrr", "precision@3", "rbp@10")
    ]


@case
def under_other_conventions() -> Any:
    first = recsys.evaluate(SCORED, GRADED, ["ndcg@5", "map@5"])
    steps = recsys.explain(first, first.under("trec_eval")).steps
    return [dict(step.moved) for step in steps], document(first.under("rectools"))


@case
def files_read_back() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        out = []
        for suffix, separator in ((".csv", ","), (".tsv", "\t")):
            path = Path(folder) / f"lists{suffix}"
            LISTS["svd"].to_csv(path, sep=separator, index=False)
            out.append(document(recsys.evaluate(path, DEMO.test, ["ndcg@10"])))
        demo("svd").save(Path(folder) / "svd.json")
        out.append(document(recsys.load(Path(folder) / "svd.json")))
    return out


# ---- factors, scores, candidates


@case
def factors_counted() -> Any:
    asked = ["recall@5", "ndcg@10", "mrr", "auc", "map"]
    return document(recsys.evaluate(recsys.Factors(USERS, ITEMS), GRADED, asked, seen=SEEN))


@case
def factors_float32_biased() -> Any:
    model = recsys.Factors(USERS.astype(np.float32), ITEMS.astype(np.float32), item_bias=VECTORS[:, 0])
    return document(recsys.evaluate(model, GRADED, ["recall@5", "coverage@5", "gini@5"], never=[3, 4]))


@case
def factors_reference_kernel() -> Any:
    model = recsys.Factors(USERS, ITEMS)
    return document(recsys.evaluate(model, GRADED, ["ndcg@10", "auc"], backend="reference"))


@case
def scores_matrix() -> Any:
    model = recsys.Scores(np.round(USERS @ ITEMS.T, 1))
    return document(
        recsys.evaluate(model, GRADED, ["ndcg@10", "mrr", "auc"], conventions={"ties": "expected"})
    )


@case
def eligible_items() -> Any:
    allowed = {u: list(range(u % 7, 60, 2)) for u in range(40)}
    return document(
        recsys.evaluate(recsys.Factors(USERS, ITEMS), GRADED, ["recall@5", "mrr"], eligible=allowed)
    )


@case
def recommended_lists() -> Any:
    return recsys.recommend(recsys.Factors(USERS, ITEMS), 7, seen=SEEN).to_frame()


@case
def sampled_candidates() -> Any:
    ways = ("uniform", "popularity")
    return [recsys.negatives.sample(TRAIN, 20, also=GRADED, how=how, seed=4).to_frame() for how in ways]


@case
def candidate_metrics() -> Any:
    rng = np.random.default_rng(8)
    rows = np.stack([rng.choice(60, 21, replace=False) for _ in range(40)])
    held = recsys.Candidates.of(np.arange(40), rows[:, 0], rows[:, 1:])
    model = np.take_along_axis(np.round(USERS @ ITEMS.T, 1), rows, axis=1)
    return document(recsys.evaluate_candidates(model, held, k=[1, 5, 10]))


@case
def baseline_models() -> Any:
    bases = recsys.baselines
    users = sorted(set(DEMO.test["user_id"]))
    made = {
        "popularity": bases.popularity(bases.training_counts(DEMO.train), users=users),
        "recent": bases.popularity(bases.training_counts(DEMO.train, half_life=5 * 86400), users=users),
    }
    return {n: document(recsys.evaluate(m, DEMO.test, ["ndcg@10"], seen=DEMO.train)) for n, m in made.items()}


@near
def expected_of_chance() -> Any:
    return recsys.baselines.random_expectation(GRADED, ["recall@5", "ndcg@5", "mrr"], n_items=60).to_dict()


@near
def reranked() -> Any:
    pool = recsys.recommend(recsys.Factors(USERS, ITEMS), 20)
    return recsys.rerank.diversify(pool, VECTORS, k=10).to_frame()


# ---- ratings


@near
def rating_errors() -> Any:
    rng = np.random.default_rng(2)
    frame = DEMO.test.assign(prediction=DEMO.test["rating"] + np.round(rng.normal(0, 0.7, len(DEMO.test)), 2))
    made = recsys.evaluate_ratings(
        frame[["user_id", "item_id", "prediction"]], DEMO.test, ["rmse", "mae", "r2"]
    )
    return made.to_dict(), made.per_user_frame()


# ---- statistics


def three() -> dict[str, recsys.Evaluation]:
    return {
        name: demo(name, ["ndcg@10", "recall@10", "coverage@10"])
        for name in ("popularity", "item_knn", "svd")
    }


@near
def compared_with_baseline() -> Any:
    return recsys.compare(three(), baseline="popularity").to_frame()


@near
def compared_pairs_permutation() -> Any:
    found = recsys.compare(
        three(), metrics=["ndcg@10"], test="permutation", n_resamples=999, correction="max-t"
    )
    return found.to_frame()


@near
def compared_wilcoxon_equivalence() -> Any:
    held = {n: e for n, e in three().items() if n != "popularity"}
    return recsys.compare(held, "item_knn", ["ndcg@10"], test="wilcoxon", margin=0.01).to_frame()


@near
def compared_with_covariates() -> Any:
    activity = DEMO.train.groupby("user_id").size().to_dict()
    return recsys.compare(three(), "popularity", ["ndcg@10"], covariates={"activity": activity}).to_frame()


@near
def omnibus_test() -> Any:
    found = recsys.compare(three(), metrics=["ndcg@10"]).omnibus["ndcg@10"]
    return found.statistic, found.p_value


@near
def intervals_of_all_kinds() -> Any:
    made = demo("svd", ["ndcg@10", "coverage@10", "hit@10"])
    kinds = ("t", "normal", "studentised", "bca", "percentile")
    return [
        {
            n: (e.value, e.standard_error, e.interval.low, e.interval.high)
            for n, e in made.intervals(method=m, n_resamples=300).items()
        }
        for m in kinds
    ]


@near
def bounds_and_floor() -> Any:
    made = recsys.evaluate(SCORED, GRADED, ["ndcg@5", "recall@5", "mrr", "precision@5"], catalogue=60)
    return made.bounds().to_frame()


@near
def gated() -> Any:
    held = three()
    found = recsys.gate(held["svd"], held["item_knn"], {"ndcg@10": "2%", "recall@10": 0.01})
    return found.passed, [(c.metric, c.p_value, c.bound) for c in found.checks]


@near
def raced() -> Any:
    found = recsys.race({n: LISTS[n] for n in ("random", "svd")}, DEMO.test, ["ndcg@10"])
    return found.n_seen, {n: e.to_dict() for n, e in found.items()}


@near
def stopped_early() -> Any:
    return demo("svd", ["hit@10"], stop_when=0.05).to_dict()


@near
def online_experiment() -> Any:
    rng = np.random.default_rng(9)
    log = pd.DataFrame({
        "user": np.arange(3000), "group": rng.choice(["a", "b"], 3000), "clicks": rng.poisson(1.0, 3000),
    })  # fmt: skip
    found = recsys.ab(log, unit="user", variant="group", metric="clicks", control="a")
    return found.rows[0].p_value, found.rows[0].difference


@near
def statistics_functions() -> Any:
    rng = np.random.default_rng(3)
    a, b = rng.random(80), rng.random(80)
    stats = recsys.stats
    return (
        stats.paired_t(a - b).p_value, stats.wilcoxon(a - b).p_value, stats.sign_test(a - b).p_value,
        stats.sign_flip(a - b, rng=1).p_value, stats.d_z(a - b).value,
        stats.adjust([0.01, 0.02, 0.2, 0.04], "holm"), stats.power(0.3, 80), stats.users_needed(0.2),
    )  # fmt: skip


@near
def sampled_estimates() -> Any:
    rng = np.random.default_rng(4)
    ranks = rng.integers(1, 101, 500)
    found = [recsys.sampled.estimate(ranks, 100, 2000, "hit@10", method=m) for m in recsys.sampled.METHODS]
    return [(one.value, one.low, one.high) for one in found]


@near
def debiased_metrics() -> Any:
    chances = recsys.debias.popularity_propensities(DEMO.events)
    found = recsys.debias.evaluate(LISTS["svd"], DEMO.test, ["recall@10", "dcg@10"], propensities=chances)
    return found.to_dict()


@near
def off_policy_value() -> Any:
    rng = np.random.default_rng(6)
    n = 800
    log = pd.DataFrame({
        "context": rng.integers(0, 3, n), "action": rng.integers(0, 2, n), "reward": rng.random(n),
        "propensity": np.full(n, 0.5),
    })  # fmt: skip
    return recsys.debias.off_policy(log, {0: 0.8, 1: 0.2}).to_dict()


# ---- splits, audits, analysis, reports


@case
def every_split() -> Any:
    events = DEMO.events.head(4000)
    ways: dict[str, dict[str, Any]] = {
        "random_ratio": {"seed": 1}, "per_user_ratio": {"seed": 1}, "k_fold": {"n_folds": 3, "seed": 1},
        "leave_one_out": {"seed": 1}, "leave_last": {"n": 2}, "per_user_temporal": {}, "global_temporal": {},
        "rolling_windows": {"length": 86_400 * 2, "n_windows": 2}, "unseen_users": {"seed": 1},
    }  # fmt: skip
    out = {}
    for how, given in ways.items():
        try:
            made = recsys.split(events, how, **given)
        except (recsys.errors.RecsysError, TypeError) as error:
            out[how] = type(error).__name__
            continue
        parts = [made] if hasattr(made, "train") else list(made)
        out[how] = [(part.train.index.tolist(), part.test.index.tolist()) for part in parts]
    return out


@case
def audit_findings() -> Any:
    found = recsys.audit(DEMO.train, DEMO.test, LISTS["svd"])
    return found.passed, [(f.name, f.severity, f.count) for f in found]


@case
def worst_and_losing_users() -> Any:
    base, new = demo("popularity"), demo("svd")
    return recsys.analysis.worst_users(new, DEMO.train, DEMO.test)["value"], recsys.analysis.losing_users(
        new, base, "ndcg@10"
    )


@case
def report_numbers() -> Any:
    held = {n: demo(n, ["ndcg@5", "ndcg@10", "recall@10"]) for n in ("popularity", "svd")}
    page = recsys.report.report_html(held)
    return sorted(
        {cell for cell in page.replace("<", ">").split(">") if cell.strip().replace(".", "", 1).isdigit()}
    )


@near
def history_of_nights() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        for night, name in enumerate(("popularity", "item_knn", "svd")):
            demo(name, ["ndcg@10"]).save(Path(folder) / f"{night}.json", name="model")
        return [(n.metric, n.value) for n in recsys.history(folder)]


@near
def study_of_users() -> Any:
    return recsys.studies.run_study("per-user", seed=1).table


# ---- the package the five documents describe


@near
def document_000_functions() -> Any:
    made = recsys.cf.evaluation
    out = []
    for u in range(20):
        listed, wanted = [i for i, _ in SCORED[u]], {i for i, g in GRADED[u].items() if g > 0}
        out += [
            f(listed, wanted, 10)
            for f in (made.recall_at_k, made.precision_at_k, made.ndcg_at_k, made.map_at_k)
        ]
        out += [made.mrr(listed, wanted), made.hit_rate(listed, wanted, 5)]
    return out


@near
def document_000_evaluators() -> Any:
    made = recsys.cf.evaluation
    test = {u: set(list(g)[:3]) for u, g in GRADED.items()}
    train = {u: set(TRAIN[u]) - test[u] for u in test}
    one = made.ModelEvaluator(USERS, ITEMS, k_values=[5, 10])
    counts = np.bincount([i for held in train.values() for i in held], minlength=60)
    found = one.evaluate(test, train), made.evaluate_baseline_popularity(test, counts, train)
    return [{name: value for name, value in each.items() if "time" not in name} for each in found]


@near
def document_000_statistics() -> Any:
    made = recsys.cf.evaluation
    rng = np.random.default_rng(1)
    a, b = rng.random(60), rng.random(60) + 0.05
    return made.paired_t_test(a, b), made.cohens_d(a, b), made.bootstrap_confidence_interval(a)


@near
def document_000_hybrid() -> Any:
    made = recsys.cf.evaluation
    lists = {u: [i for i, _ in SCORED[u]][:8] for u in range(20)}
    return (
        made.DiversityMetric().compute_batch(lists, VECTORS),
        [made.compute_semantic_alignment(VECTORS[u], lists[u], VECTORS) for u in range(20)],
    )


@near
def document_001_evaluator() -> Any:
    made = recsys.cf.evaluation
    return (
        made.gini_coefficient(FULL, 10), made.catalog_coverage(FULL, 100, 3),
        [made.average_precision_at_k([i for i, _ in SCORED[u]], set(GRADED[u]), 10) for u in range(20)],
        [made.dcg_at_k([i for i, _ in SCORED[u]], GRADED[u], 5) for u in range(20)],
    )  # fmt: skip


@near
def document_003_threshold() -> Any:
    rng = np.random.default_rng(7)
    held = {
        u: [(float(p), float(t)) for p, t in zip(rng.random(12) * 5, rng.integers(1, 6, 12), strict=True)]
        for u in range(30)
    }
    return recsys.cf.evaluation.compute_metrics(held, k=5, threshold=4.0)


@near
def document_004_precision_recall() -> Any:
    frame = pd.DataFrame([(u, i, g) for u, held in GRADED.items() for i, g in held.items()],
                         columns=["user_id", "item_id", "rating"])  # fmt: skip
    train = pd.DataFrame([(u, i, 3.0) for u, held in TRAIN.items() for i in held], columns=frame.columns)
    return recsys.cf.evaluation.precision_recall_at_k(
        lambda users, items: np.asarray([USERS[u] @ ITEMS[i] for u, i in zip(users, items, strict=True)]),
        frame, train, k=5, threshold=3.5,
    )  # fmt: skip


def main(arguments: list[str]) -> int:
    only = [a for a in arguments if not a.startswith("-")]
    found = {name: hashed(name) for name in CASES if not only or name in only}
    if "--show" in arguments:
        for name in found:
            print(name, json.dumps(plain(CASES[name](), name in EXACT))[:600])
        return 0
    if "--write" in arguments:
        STORED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        print(f"{len(found)} hashes written")
        return 0
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    differ = [name for name in found if stored.get(name) != found[name]]
    gone = [] if only else [name for name in stored if name not in found]
    for name in [*differ, *gone]:
        print(f"{name}: {stored.get(name)} -> {found.get(name)}")
    print(f"{len(found)} cases, {len(differ) + len(gone)} differ")
    return int(bool(differ or gone))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
