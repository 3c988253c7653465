"""Which stored numbers are not ours, and why. No pattern is idle, and no match is a number we reproduce."""

from __future__ import annotations

TWICE = "an item listed twice enters the truth twice: three relevant items where the truth holds two"
RAISES = "the library raises an error; ours is a number"
IS_NAN = "the library returns NaN; ours is a number"
TOPK = "ties fall as torch.topk leaves them, which promises no order; ours is the expectation over all orders"
NOISE = "ties are broken by one draw of noise; ours is the expectation over all draws"
NOT_AP = "the mean of precision@1 … precision@k is not average precision"
GROUP_END = "every relevant item of a tied group gets the group's last place, which only one item can hold"
ROUNDED = "rounded to four places"
ABOVE_ONE = "average precision above 1 for users with fewer rows than k"
PLACES_LOST = "equal scores share an average rank, cut to a whole number, so places go missing"
FLOAT32 = "single precision shows in the sixth digit"
WITH_HIT = "averaged over users with a hit only"

# (library, case, key, reason); case and key are patterns.
REFUSED: tuple[tuple[str, str, str, str], ...] = (
    ("ranx", "[FZ]_*", "* (default)", "raises unless make_comparable is set; so does no_list='error'"),
    ("rectools", "G_*", "precision (r_precision=True)", TWICE),
    ("rectools", "G_*", "recall", TWICE),
    ("rectools", "G_*", "f1", TWICE),
    ("rectools", "G_*", "map", TWICE),
    ("rectools", "G_*", "ndcg (divide_by_achievable=True)", TWICE),
    ("elliot", "[ABDEFGHIJKZ]*_*", "map", NOT_AP),
    ("cornac", "[FKZ]_*", "mrr", RAISES),
    ("cornac", "[FK]_*", "f1", "a constant in the divisor moves the seventh digit"),
    ("cornac", "[BDKZ]_*", "map", GROUP_END),
    ("recommenders", "G_*", "ndcg", "1.106: an item listed twice takes NDCG above 1"),
    ("recommenders", "H?_*", "r_precision", IS_NAN),
    ("recommenders", "[KZ]_*", "r_precision", WITH_HIT),
    ("implicit", "G_*", "auc (limited)", "an item listed twice counts as a second relevant item"),
    ("torchmetrics", "G_*", "recall", TWICE),
    ("torchmetrics", "G_*", "ndcg*", TWICE),
    ("torchmetrics", "D_*", "ndcg*", FLOAT32),
    ("torchmetrics", "H?_*", "mrr", TOPK),
    ("torchmetrics", "H?_*", "map", TOPK),
    ("torchmetrics", "[DZ]_*", "precision (adaptive_k)", "divides by rows that hold no recommendation"),
    ("evidently", "C_*", "f1", IS_NAN),
    ("evidently", "D_*", "*", RAISES),
    ("evidently", "[FZ]_*", "map", ABOVE_ONE),
    ("evidently", "Z_*", "[!m]*", PLACES_LOST),
    ("evidently", "Z_*", "mrr", PLACES_LOST),
    ("evidently", "G_*", "recall", TWICE),
    ("evidently", "G_*", "f1", TWICE),
    ("evidently", "G_*", "map", TWICE),
    ("evidently", "G_*", "ndcg", TWICE),
    ("evidently", "H?_*", "map", PLACES_LOST),
    ("evidently", "H?_*", "hit", RAISES),
    ("evidently", "H?_*", "mrr", RAISES),
    ("evidently", "H?_*", "ndcg", RAISES),
    ("rs_metrics", "[EZ]_*", "recall", IS_NAN),
    ("rs_metrics", "[EZ]_*", "ndcg", IS_NAN),
    ("rs_metrics", "[FZ]_*", "precision", IS_NAN),
    ("recmetrics", "?*_*", "map (mapk)", RAISES),
    ("recmetrics", "[AD]_*", "recall (no k)", ROUNDED),
    ("recmetrics", "[EZ]_*", "recall (no k)", RAISES),
    ("recmetrics", "[FZ]_*", "precision (no k)", RAISES),
    ("recometrics", "H?_*", "mrr", NOISE),
    ("recometrics", "H?_*", "map*", NOISE),
    ("recometrics", "H?_*", "ndcg", NOISE),
    (
        "recbole",
        "beyond",
        "entropy*",
        "an entropy in nats divided by the number of items shown is not an entropy",
    ),
    (
        "recommenders",
        "beyond",
        "coverage*",
        "items without a user count above the line, not below: it can exceed 1",
    ),
    ("seed000_code", "beyond", "ild*", "each list's distance is cut at 1, though cosine distance reaches 2"),
    ("recmetrics", "beyond", "novelty", RAISES),
)
