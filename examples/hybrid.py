"""What does content add to collaborative filtering? ALS, and ALS blended with text embeddings, on MovieLens.

    python examples/hybrid.py                       # prints the tables, writes examples/results/

Every blend (alpha) and every strength of diversification (MMR) is evaluated. On the validation set the
setting with the highest NDCG is chosen among those that raise alignment, cold-start coverage and diversity
above ALS alone; it is then evaluated on the test set.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pandas as pd
from movielens import DATASETS, Dataset, fit_model, load_dataset, tune, write_json

import recsys
from recsys.analysis import improvement
from recsys.models.rerankers import Sweep, content, sweep

OUT = Path(__file__).parent / "results" / "hybrid.json"
ALPHAS = (1.0, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.3, 0.0)
DIVERSITIES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
COLD = "cold_coverage@10"  # items with fewer than 5 training interactions
METRICS = ("ndcg@10", "recall@10", "coverage@10", "ild@10", "alignment@10", COLD)
NAMES = {"ild@10": "diversity@10", "alignment@10": "semantic_alignment@10", COLD: "cold_start_coverage"}
CONTENT = ("alignment@10", COLD)


def sweep_blends(data: Dataset, model: Any, known: pd.DataFrame, truth: pd.DataFrame) -> Sweep:
    """The trade-off curve of one model on one part of the data."""
    columns = ["user_id", "item_id"]
    history = recsys.read_interactions(known[columns])
    source = recsys.Factors(model.user_factors, model.item_factors)
    return sweep(
        source,
        content(history, data.embeddings),
        truth[columns],
        METRICS,
        alphas=ALPHAS,
        diversities=DIVERSITIES,
        embeddings=data.embeddings,
        seen=history,
        train=history,
        catalogue=range(data.n_items),
    )


def evaluate_blends(data: Dataset) -> dict[str, Any]:
    """Evaluate ALS and every blend, print the table, and return the numbers."""
    settings, _ = tune(data, "als")
    on_validation = sweep_blends(
        data, fit_model(data, "als", settings, data.train), data.train, data.validation
    )
    known = pd.concat([data.train, data.validation])
    on_test = sweep_blends(data, fit_model(data, "als", settings, known), known, data.test)
    table = on_test.frame.rename(columns=NAMES)
    print(f"\n{data.name}: ALS {settings}, test part")
    print(table.round(4).to_string(index=False))
    settings_with_all_three = on_test.rising([*CONTENT, "ild@10"])
    out = {
        "settings": settings,
        "test": table.to_dict("records"),
        "rises": {NAMES[metric]: describe_rise(on_test, metric) for metric in CONTENT},
        "all three rise at": settings_with_all_three[["alpha", "diversity"]].to_dict("records"),
        "best trade-offs of NDCG and alignment": on_test.front("alignment@10")[
            ["alpha", "diversity"]
        ].to_dict("records"),
    }
    out["chosen"] = evaluate_chosen(on_validation, on_test)
    return out


def describe_rise(curve: Sweep, metric: str) -> dict[str, Any]:
    """The largest alpha at which a metric exceeds the model alone, and if it never falls as content grows."""
    blends = curve.frame[curve.frame["diversity"] == 0].sort_values("alpha", ascending=False)
    above = blends[blends[metric] > blends[metric].iloc[0]]
    never_falls = bool((blends[metric].diff().dropna() >= 0).all())
    return {"from alpha": float(above["alpha"].max()) if len(above) else None, "never falls": never_falls}


def evaluate_chosen(on_validation: Sweep, on_test: Sweep) -> dict[str, Any] | None:
    """Test results of the setting chosen on the validation set; None if no setting raises all three there."""
    candidates = on_validation.rising([*CONTENT, "ild@10"])
    if not len(candidates):
        print("no setting lifts alignment, cold-start coverage and diversity at once on the validation part")
        return None
    best = candidates["ndcg@10"].idxmax()
    before, after = on_test.frame.iloc[0], on_test.frame.loc[best]
    print(f"\nchosen on the validation part: alpha={after['alpha']:g}, diversity={after['diversity']:g}")
    print("Metric                  | Pure CF | Hybrid  | Improvement")
    print("------------------------|---------|---------|------------")
    rows = {}
    for metric in ("recall@10", "ndcg@10", "coverage@10", "ild@10", "alignment@10", COLD):
        gain = improvement(after[metric], before[metric])["relative_percent"]
        name, gain_text = NAMES.get(metric, metric), f"{gain:+.1f}%" if before[metric] else "from nothing"
        print(f"{name:<23} | {before[metric]:.4f}  | {after[metric]:.4f}  | {gain_text}")
        rows[name] = {"pure": before[metric], "hybrid": after[metric], "improvement": gain_text}
    return {"alpha": after["alpha"], "diversity": after["diversity"], "test": rows}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument(
        "--dataset", "--world", choices=DATASETS, action="append", help="one of them (default: both)"
    )
    arguments.add_argument("--output", type=Path, default=OUT)
    options = arguments.parse_args()
    out: dict[str, Any] = {name: evaluate_blends(load_dataset(name)) for name in options.dataset or DATASETS}
    print("\ncriteria")
    for name in options.dataset or DATASETS:
        for metric, found in out[name]["rises"].items():
            good = found["from alpha"] is not None and found["never falls"]
            print(f"[{'x' if good else ' '}] {name}: {metric} rises from alpha={found['from alpha']} on")
        settings_found = out[name]["all three rise at"]
        where = f"at {len(settings_found)} settings" if settings_found else "at no setting on this data"
        mark = "x" if settings_found else " "
        print(f"[{mark}] {name}: alignment, cold-start coverage and diversity all rise {where}")
    out["recsys"] = recsys.__version__
    write_json(options.output, out)


if __name__ == "__main__":
    main()
