"""What does content add to collaborative filtering? ALS, and ALS blended with text embeddings, on MovieLens.

    python examples/hybrid.py                       # prints the tables, writes examples/results/

Every blend (alpha) and every strength of diversification (MMR) is evaluated; a setting is chosen on the
validation part, where alignment, cold-start coverage and diversity all lie above those of ALS alone and NDCG
is highest, and held against the test part.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pandas as pd
from movielens import WORLDS, World, fitted, tuned, world, write

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


def swept(here: World, model: Any, known: pd.DataFrame, truth: pd.DataFrame) -> Sweep:
    """The trade-off curve of one model on one part."""
    columns = ["user_id", "item_id"]
    taken = recsys.read_interactions(known[columns])
    source = recsys.Factors(model.user_factors, model.item_factors)
    return sweep(
        source,
        content(taken, here.embeddings),
        truth[columns],
        METRICS,
        alphas=ALPHAS,
        diversities=DIVERSITIES,
        embeddings=here.embeddings,
        seen=taken,
        train=taken,
        catalogue=range(here.n_items),
    )


def compared(here: World) -> dict[str, Any]:
    """Pure ALS against every hybrid, printed, and as plain numbers."""
    settings, _ = tuned(here, "als")
    on_validation = swept(here, fitted(here, "als", settings, here.train), here.train, here.validation)
    known = pd.concat([here.train, here.validation])
    on_test = swept(here, fitted(here, "als", settings, known), known, here.test)
    table = on_test.frame.rename(columns=NAMES)
    print(f"\n{here.name}: ALS {settings}, test part")
    print(table.round(4).to_string(index=False))
    three = on_test.rising([*CONTENT, "ild@10"])
    out = {
        "settings": settings,
        "test": table.to_dict("records"),
        "rises": {NAMES[metric]: risen(on_test, metric) for metric in CONTENT},
        "all three rise at": three[["alpha", "diversity"]].to_dict("records"),
        "best trade-offs of NDCG and alignment": on_test.front("alignment@10")[
            ["alpha", "diversity"]
        ].to_dict("records"),
    }
    out["chosen"] = chosen(on_validation, on_test)
    return out


def risen(curve: Sweep, metric: str) -> dict[str, Any]:
    """From which alpha on a metric lies above the model alone, and whether it falls as content grows."""
    blends = curve.frame[curve.frame["diversity"] == 0].sort_values("alpha", ascending=False)
    above = blends[blends[metric] > blends[metric].iloc[0]]
    never_falls = bool((blends[metric].diff().dropna() >= 0).all())
    return {"from alpha": float(above["alpha"].max()) if len(above) else None, "never falls": never_falls}


def chosen(on_validation: Sweep, on_test: Sweep) -> dict[str, Any] | None:
    """The setting the validation part picks, on the test part; None where none lifts all three there."""
    candidates = on_validation.rising([*CONTENT, "ild@10"])
    if not len(candidates):
        print("no setting lifts alignment, cold-start coverage and diversity at once on the validation part")
        return None
    at = candidates["ndcg@10"].idxmax()
    before, after = on_test.frame.iloc[0], on_test.frame.loc[at]
    print(f"\nchosen on the validation part: alpha={after['alpha']:g}, diversity={after['diversity']:g}")
    print("Metric                  | Pure CF | Hybrid  | Improvement")
    print("------------------------|---------|---------|------------")
    rows = {}
    for metric in ("recall@10", "ndcg@10", "coverage@10", "ild@10", "alignment@10", COLD):
        gain = improvement(after[metric], before[metric])["relative_percent"]
        name, said = NAMES.get(metric, metric), f"{gain:+.1f}%" if before[metric] else "from nothing"
        print(f"{name:<23} | {before[metric]:.4f}  | {after[metric]:.4f}  | {said}")
        rows[name] = {"pure": before[metric], "hybrid": after[metric], "improvement": said}
    return {"alpha": after["alpha"], "diversity": after["diversity"], "test": rows}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--world", choices=WORLDS, action="append", help="one of them; both without")
    arguments.add_argument("--output", type=Path, default=OUT)
    options = arguments.parse_args()
    out: dict[str, Any] = {name: compared(world(name)) for name in options.world or WORLDS}
    print("\ncriteria")
    for name in options.world or WORLDS:
        for metric, found in out[name]["rises"].items():
            good = found["from alpha"] is not None and found["never falls"]
            print(f"[{'x' if good else ' '}] {name}: {metric} rises from alpha={found['from alpha']} on")
        places = out[name]["all three rise at"]
        said = f"rise at {len(places)} settings" if places else "rise at no setting on this data"
        print(f"[{'x' if places else ' '}] {name}: alignment, cold-start coverage and diversity all {said}")
    out["recsys"] = recsys.__version__
    write(options.output, out)


if __name__ == "__main__":
    main()
