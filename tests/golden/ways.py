"""How each stored number is asked for: our preset, our request, and what was handed to the library.

A key of results.json is the name its run gave the number; options of the library stand in its brackets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

# Where results.json calls a library otherwise than its preset; the design documents have numbers there.
PRESET_OF = {
    "pytrec_eval": "trec_eval",
    "recommenders": "microsoft",
    "seed000_text": "cf_evaluation",
    "seed000_code": "cf_evaluation_code",
    "seed001": "recommender_evaluator",
    "seed002": "ncf_evaluator",
    "seed003": "rating_threshold",
    "seed004": "rating_and_ranking",
}


@dataclass(frozen=True)
class Way:
    """A request with `{k}` to fill in, changes to the preset, and the form the lists were handed in.

    Forms: `given`; `cut` at k; `rows`, every relevant item that is not listed as one more row with score 0;
    `catalogue`, every item that is not listed tied below the list; `padded`, cut or filled with misses to
    exactly k, with all of the 400 items implicit was given tied below. `given` is what else the library was
    given, see `about` in table.py; `then` is what it does to the number before it shows it.
    """

    request: str
    but: Mapping[str, Any] = field(default_factory=dict)
    form: str = "given"
    given: tuple[str, ...] = ()
    then: Callable[[float], float] = float


PLAIN = {
    "precision": Way("precision@{k}"),
    "recall": Way("recall@{k}"),
    "f1": Way("f1@{k}"),
    "hit": Way("hit@{k}"),
    "mrr": Way("mrr@{k}"),
    "map": Way("map@{k}"),
    "ndcg": Way("ndcg@{k}"),
    "ndcg_exp": Way("ndcg(gain=exp2)@{k}"),
    "ndcg_linear": Way("ndcg(gain=grade)@{k}"),
}
UNCUT_MRR = {"mrr": Way("mrr")}
RENDLE = {"ndcg (nDCGRendle2020)": Way("ndcg(gain=binary)@{k}")}
# Evidently is given every relevant item as a row and sees lists only through those rows.
AS_ROWS = {key: Way(way.request, form="rows") for key, way in PLAIN.items()}


def with_option(option: str, changes: Mapping[str, Any], ways: Mapping[str, Way] = PLAIN) -> dict[str, Way]:
    """The same requests under an option of the library."""
    return {f"{key} ({option})": Way(w.request, {**w.but, **changes}, w.form) for key, w in ways.items()}


SPECIAL: dict[str, dict[str, Way]] = {
    "ranx": {
        **with_option("make_comparable", {}),
        **with_option("default", {"no_list": "error"}),
        "mrr (no @k)": Way("mrr"),
    },
    "ir_measures": {**UNCUT_MRR, "mrr_at_k": Way("mrr@{k}", {"ties": "by_id"})},
    "pytrec_eval": UNCUT_MRR,
    "rectools": {
        "precision (r_precision=True)": Way("precision(over=min)@{k}"),
        "map (divide_by_k=True)": Way("map(over=k)@{k}"),
        "ndcg (divide_by_achievable=True)": Way("ndcg(ideal=reachable)@{k}"),
    },
    "replay": with_option("dict input", {"ties": "given", "no_truth": "zero"}),
    "recpack": {"recall (CalibratedRecallK)": Way("capped_recall@{k}"), "hit (HitK)": Way("hits@{k}")},
    "elliot": RENDLE,
    "warprec": RENDLE,
    "cornac": {**UNCUT_MRR, "map": Way("map", form="catalogue")},
    "recommenders": {
        "map (no cut in divisor)": Way("map(over=relevant)@{k}"),
        "r_precision": Way("r_precision", form="cut"),
    },
    "implicit": {"auc (limited)": Way("auc", {"ties": "expected"}, "padded")},
    "torchmetrics": {
        "precision (adaptive_k)": Way("precision(over=list)@{k}"),
        "hit": Way("hit@{k}", form="rows"),
        "ndcg": Way("ndcg(gain=binary)@{k}", form="rows"),
        "ndcg (empty_target_action=skip)": Way("ndcg(gain=binary)@{k}", {"no_truth": "skip"}, "rows"),
        "ndcg_linear": Way("ndcg(gain=grade)@{k}", form="rows"),
    },
    "evidently": {**AS_ROWS, **with_option("no_feedback_users=True", {"no_truth": "zero"}, AS_ROWS)},
    "recmetrics": {
        "map (mapk)": Way("map@{k}"),
        "mar (mark)": Way("mar@{k}"),
        "precision (no k)": Way("precision"),
        "recall (no k)": Way("recall"),
    },
    "recometrics": {
        "precision (truncated)": Way("precision(over=min)@{k}"),
        "map (truncated)": Way("map(over=min)@{k}"),
    },
    "seed000_text": UNCUT_MRR,
    "seed000_code": UNCUT_MRR,
    "seed001": {
        "f1 (per user)": Way("f1@{k}"),
        "f1 (evaluator: F1 of the mean P and mean R)": Way("f1@{k}", {"f1_of": "means"}),
        "precision (evaluator)": Way("precision@{k}"),
        "recall (evaluator)": Way("recall@{k}"),
        "ndcg example (seed says 0.952)": Way("ndcg@{k}"),
        "ap example (seed says 0.756)": Way("map@{k}"),
    },
    # The document ranks the positive first, here it stands where the case puts it; its order is kept.
    "seed002": {"ndcg": Way("ndcg@{k}", {"ties": "given"})},
    # The run handed over only users with relevant items.
    "seed003": {key: Way(PLAIN[key].request, {"per_metric": ()}) for key in ("precision", "hit")},
}

# The inputs in the docstrings of document 001, which are in no case of cases.json.
DOCSTRINGS = {
    "ndcg example (seed says 0.952)": {
        "k": 5,
        "recs": {"1": [[3, 5.0], [1, 4.0], [5, 3.0], [2, 2.0], [4, 1.0]]},
        "truth": {"1": {"1": 3, "2": 2, "3": 3, "4": 1, "5": 2}},
    },
    "ap example (seed says 0.756)": {
        "k": 5,
        "recs": {"1": [[1, 5.0], [2, 4.0], [3, 3.0], [4, 2.0], [5, 1.0]]},
        "truth": {"1": {"1": 1, "3": 1, "5": 1}},
    },
}

CATALOGUE = ("catalogue",)
COVERAGE = Way("coverage@{k}", given=CATALOGUE)
ENTROPY = Way("entropy@{k}", given=CATALOGUE)
NOVELTY = Way("novelty@{k}", given=("train",))
POPULARITY = Way("average_popularity@{k}", given=("train",))
ILD = Way("ild@{k}", given=("features",))


def complement(value: float) -> float:
    return 1.0 - value


def percent(value: float) -> float:
    return 100.0 * value


def nats(bits: float) -> float:
    return bits * math.log(2)


# Numbers about the items shown.
BEYOND: dict[str, dict[str, Way]] = {
    "rectools": {
        "coverage": Way("distinct_items@{k}", given=CATALOGUE),
        "coverage (normalize=True)": COVERAGE,
        "novelty (MeanInvUserFreq)": NOVELTY,
        "popularity (AvgRecPopularity)": POPULARITY,
        "ild (Hamming on boolean features)": Way("ild(distance=hamming)@{k}", given=("boolean",)),
    },
    "lenskit": {
        "gini (ListGini over catalogue)": Way("gini@{k}", given=CATALOGUE),
        "gini (ExposureGini)": Way("gini(weight=geometric)@{k}", given=CATALOGUE),
        "popularity (MeanPopRank)": Way("popularity_percentile@{k}", given=("train",)),
    },
    "replay": {
        "coverage (of the train items)": Way("coverage@{k}", given=("train_catalogue",)),
        "novelty (Surprisal)": Way("surprisal@{k}", given=("train",)),
        "novelty (Novelty = share unseen by the user)": Way("unseen@{k}", given=("train",)),
    },
    "recpack": {
        "coverage": Way("coverage@{k}", given=("columns",)),
        "ild (Jaccard on boolean features)": Way("ild(distance=jaccard)@{k}", given=("boolean",)),
    },
    "recbole": {
        "coverage": COVERAGE,
        "gini": Way("gini@{k}", given=CATALOGUE),
        "entropy (divided by the number of distinct items)": ENTROPY,
        "popularity (AveragePopularity)": POPULARITY,
    },
    "elliot": {
        "coverage (ItemCoverage, a count)": Way("distinct_items@{k}", given=CATALOGUE),
        "gini (1 - Gini)": Way("gini(corrected=yes)@{k}", given=CATALOGUE, then=complement),
        "entropy": ENTROPY,
    },
    "recommenders": {
        "coverage (catalog_coverage)": Way("coverage@{k}", given=("train_catalogue",)),
        "entropy (distributional_coverage)": ENTROPY,
        "novelty": Way("novelty(cold=zero, over=events)@{k}", given=("train",)),
        "ild (diversity, item_feature_vector)": ILD,
        "ild (diversity, co-occurrence)": Way("ild(missing=zero)@{k}", given=("train_columns",)),
        "serendipity": Way("unexpectedness(missing=zero)@{k}", given=("train", "train_columns")),
    },
    "rs_metrics": {
        "coverage": COVERAGE,
        "novelty (surprisal)": NOVELTY,
        "popularity": Way("average_popularity(over=users)@{k}", given=("train",)),
    },
    "recmetrics": {
        "coverage (prediction_coverage, percent)": Way("coverage@{k}", given=CATALOGUE, then=percent),
        "novelty": NOVELTY,
        "ild (intra_list_similarity)": Way("ild@{k}", given=("features",), then=complement),
    },
    "irspack": {
        "gini (over items in recs or truth)": Way("gini@{k}"),
        "entropy (nats)": Way("entropy@{k}", given=CATALOGUE, then=nats),
    },
    "seed000_code": {
        "coverage": COVERAGE,
        "novelty": Way("novelty(cold=drop)@{k}", given=("train",)),
        "ild (1 - mean cosine, clamped to [0,1])": ILD,
        "cold_start_coverage (<2 interactions; unused index 0 counts as an item)": Way(
            "cold_coverage(below=2)@{k}", given=("train", "columns")
        ),
    },
    "seed001": {
        "coverage": COVERAGE,
        "gini (over recommended items only)": Way("gini@{k}", given=CATALOGUE),
        "ild (mean cosine distance)": ILD,
    },
}


def way_of(library: str, key: str, case: str = "") -> Way:
    """How to ask for this number; an unknown key is an error."""
    if case == "beyond":
        return BEYOND[library][key]
    special = SPECIAL.get(library, {})
    return special[key] if key in special else PLAIN[key]
