"""Compare pure CF with CF + content re-ranking.

    python scripts/compare_cf_hybrid.py --cf-model artifacts/cf/als/v2 --bert-embeddings embeddings.pt

Prints the comparison and writes it to reports/cf_vs_hybrid_comparison.csv. The model is a folder with
*_U.npy and *_V.npy, an .npz or a .safetensors file; embeddings are .pt, .npy, .npz or .safetensors, one row
per item. If they have `product_ids`, a JSON file with `idx_to_item` or `item_to_idx` says which item of the
model each is: beside the model, beside the data, or --mappings. Nothing is unpickled.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pandas as pd

from recsys.analysis import improvement
from recsys.cf.evaluation.loading import load_cf_model, load_embeddings, load_item_rows, load_test_data
from recsys.cf.evaluation.translation import read_history, read_truth
from recsys.cf.metrics import compute_all_user_profiles, evaluate_hybrid_model, evaluate_with_reranking
from recsys.errors import RecsysError
from recsys.inputs.files import write_text


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--cf-model", required=True, help="folder or file with the user and item factors")
    add("--bert-embeddings", required=True, help="item embeddings, in the order of the item factors")
    add("--test-data", default="data/processed", help="folder with train and test tables (u_idx, i_idx)")
    add("--mappings", type=Path, help="JSON file with idx_to_item or item_to_idx (default: beside the model)")
    add("--alpha", type=float, default=0.7, help="share of CF in the blend, 1 is CF alone (default 0.7)")
    add("--diversity", type=float, default=0.0, help="strength of MMR from 0 to 1 (default 0: none)")
    add("--k", type=int, default=10, help="length of the lists (default 10)")
    add("--cold-threshold", type=float, default=5, help="items with fewer interactions are cold (default 5)")
    add("--output", type=Path, default=Path("reports/cf_vs_hybrid_comparison.csv"))
    return parser.parse_args(arguments)


def compare(args: argparse.Namespace) -> pd.DataFrame:
    """One row for each evaluation and one for the improvement in percent."""
    data = load_test_data(args.test_data)
    users, items = load_cf_model(args.cf_model, needs=(read_truth(data), read_history(data.user_pos_train)))
    model = Path(args.cf_model)
    places = [model if model.is_dir() else model.parent, Path(args.test_data)]
    item_rows = load_item_rows(*(places if args.mappings is None else [args.mappings]))
    rows, item_to_idx = load_embeddings(args.bert_embeddings, item_rows, n_items=len(items))
    settings = {"item_to_idx": item_to_idx, "k": args.k, "cold_threshold": args.cold_threshold}
    print("Evaluating pure CF...", file=sys.stderr)
    pure = evaluate_hybrid_model(users, items, rows, data, user_profiles=None, **settings)
    print("Evaluating CF + content re-ranking...", file=sys.stderr)
    profiles = compute_all_user_profiles(data, rows, item_to_idx)
    hybrid = evaluate_with_reranking(
        users, items, rows, data, profiles, alpha=args.alpha, diversity=args.diversity, **settings
    )
    gains = {key: improvement(hybrid[key], pure[key])["relative_percent"] for key in pure}
    return pd.DataFrame({"Pure CF": pure, "CF + BERT": hybrid, "Improvement": gains}).T


def format_table(comparison: pd.DataFrame) -> str:
    """The comparison as text, one row per metric."""
    lines = ["Metric                  | Pure CF | CF + BERT | Improvement"]
    lines.append("------------------------|---------|-----------|------------")
    for name, (pure, hybrid, gain) in comparison.items():
        gain_text = f"{gain:+.1f}%" if gain == gain else "n/a"  # noqa: PLR0124 - NaN
        lines.append(f"{name:<23} | {pure:.3f}   | {hybrid:.3f}     | {gain_text}")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    args = parse_arguments(arguments)
    try:
        comparison = compare(args)
        args.output.parent.mkdir(parents=True, exist_ok=True)
        write_text(args.output, comparison.to_csv(na_rep="NA"))
    except RecsysError as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    print(format_table(comparison))
    print(f"written to {args.output}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
