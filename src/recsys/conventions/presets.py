"""The decisions of other libraries and of five design documents, one row each, with the version checked.

A row holds what a library decides, so that its numbers can be reproduced; what it gets wrong is listed as a
defect and not copied. A library's new version is a new row, never an edit: old results keep their name.
The documents describe the package `recsys.cf.evaluation`; their rows are also found by their numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from recsys.conventions.decisions import Conventions
from recsys.errors import UnknownNameError

PerMetric = tuple[tuple[str, tuple[tuple[str, Any], ...]], ...]


@dataclass(frozen=True)
class Preset:
    """The decisions of one library or document.

    `defects` are errors of the library that are not copied; `facts` concern its inputs and outputs.

    >>> print(preset("pytrec_eval"))
    trec_eval (pytrec-eval-terrier 0.5.11, checked 2026-11-15)
    """

    name: str
    library: str
    version: str
    conventions: Conventions
    checked: str = "2026-11-15"
    aliases: tuple[str, ...] = ()
    defects: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Everything known besides the decisions: first what is not copied, then the facts."""
        return (*(f"Not copied: {defect}" for defect in self.defects), *self.facts)

    def __str__(self) -> str:
        return f"{self.name} ({self.library} {self.version}, checked {self.checked})"


def preset(name: str) -> Preset:
    """Return the row of this name or alias; case, spaces and hyphens do not matter.

    Raises:
        UnknownNameError: no row has this name; the message suggests the nearest ones.

    >>> preset("recommenders").name, preset("CF-evaluation").conventions.ap_over
    ('microsoft', 'hits')
    """
    key = str(name).strip().lower().replace("-", "_").replace(" ", "_")
    if key in _NAME_BY_ALIAS:
        return PRESETS[_NAME_BY_ALIAS[key]]
    raise UnknownNameError("preset", name, ["default", *_NAME_BY_ALIAS])


def preset_name(conventions: Conventions) -> str | None:
    """Return the name of the preset with exactly these decisions, None if there is none.

    >>> preset_name(Conventions()), preset_name(Conventions(ap_over="k"))
    ('default', None)
    >>> preset_name(Conventions.named("pytrec_eval"))
    'trec_eval'
    """
    if conventions == Conventions():
        return "default"
    return next((name for name, row in PRESETS.items() if row.conventions == conventions), None)


def _for_metrics(metrics: str, **decisions: str) -> PerMetric:
    """Decisions that hold for these metrics only."""
    return tuple((metric, tuple(sorted(decisions.items()))) for metric in sorted(metrics.split()))


# fmt: off
_ROWS = (
    Preset(
        "ranx", "ranx", "0.3.21",
        Conventions(ap_over="relevant", no_truth="zero", ties="given"),
        defects=("RBP multiplies by the grade, so a graded truth takes it above 1.",),
        facts=(
            "A user without a list is an error unless make_comparable is set; this row counts 0, as then.",
            "A run is a dict, so an item cannot be listed twice.",
            "ndcg_burges is ndcg(gain=exp2); RBP of a graded truth is graded_rbp.",
        ),
    ),
    Preset(
        "trec_eval", "pytrec-eval-terrier", "0.5.11",
        Conventions(
            ap_over="relevant", no_truth="unjudged", no_list="skip", ties="by_id_desc",
            negative_grades="unjudged",
        ),
        aliases=("pytrec_eval", "pytrec_eval_terrier", "trec"),
        facts=(
            "Ids are text and equal scores are ordered by it: pass ids as str to get its order for 9 and 10.",
            "Scores are kept as float32, so two that differ beyond that are tied.",
            "recip_rank has no cut-off: ask for mrr without @k.",
            "Its option -J is judged_only='yes'.",
        ),
    ),
    Preset(
        "ir_measures", "ir-measures", "0.4.3",
        Conventions(
            ap_over="relevant", max_grade=4.0, no_truth="unjudged", ties="by_id_desc",
            negative_grades="unjudged",
        ),
        aliases=("irmeasures",),
        defects=(
            "RR@k and Judged@k order equal scores by ascending id, RBP, BPM, SDCG and INST as given.",
            "nDCG with and without gains, asked for in one call, can get each other's values.",
        ),
        facts=(
            "Ids are text and equal scores are ordered by it.",
            "Of an item listed twice the last score stays; ERR takes 4 for the highest grade.",
        ),
    ),
    Preset(
        "rectools", "rectools", "0.19.0",
        Conventions(
            ap_over="relevant", ideal="k", gain="binary", accuracy_over="k", ties="given", duplicates="all",
            rank_gaps="kept",
        ),
        defects=("An item listed twice also enters the truth twice, so recall of one hit in two is 2/3.",),
        facts=(
            "The order is that of the rank column; a gap in it is an empty place.",
            "Accuracy and MCC take the places that a short list leaves empty for wrong recommendations.",
            "r_precision=True is precision(over=min), divide_by_k=True is map(over=k).",
            "divide_by_achievable=True is ndcg(ideal=reachable).",
            "Its cross-validation takes cold items out of the truth by default: unknown_items='drop'.",
        ),
    ),
    Preset(
        "lenskit", "lenskit", "2025.8.1",
        Conventions(
            precision_over="list", recall_over="min", ap_over="list", gain="binary", discount="log2_max2",
            no_truth="zero", no_list="skip", ties="given", duplicates="all",
        ),
        aliases=("lkpy",),
        facts=(
            "NDCG with gain= is ndcg(gain=grade); RBP is rbp(p=0.85) unless another patience is given.",
            "Average precision exists from version 2026 on.",
        ),
    ),
    Preset(
        "replay", "replay-rec", "0.22.0",
        Conventions(
            gain="binary", ties="by_id_desc", per_metric=_for_metrics("dcg map ndcg", duplicates="all"),
        ),
        aliases=("replay_rec",),
        defects=("Another container, another number: in a dict, ties stay as given and no truth counts 0.",),
        facts=(
            "Its Novelty is unseen, the share of items the user has not seen; Unexpectedness is 1 - overlap.",
            "Surprisal divides by k, however short the list: surprisal(over=k).",
        ),
    ),
    Preset(
        "recpack", "recpack", "0.3.6",
        Conventions(gain="binary", ties="by_id_desc"),
        facts=(
            "HitK is hits@k, a count; CalibratedRecallK is capped_recall@k; there is no average precision.",
            "Predictions are a matrix: the scores of an item listed twice add up.",
            "Ties are left to a partial sort, which promises no order; the runs here were in descending one.",
        ),
    ),
    Preset(
        "recbole", "recbole", "1.2.1",
        Conventions(gain="binary", ties="given", duplicates="all"),
        facts=("It ranks the whole catalogue, so every user has a list; values are rounded to 4 places.",),
    ),
    Preset(
        "elliot", "elliot", "from source",
        Conventions(gain="exp2", no_list="skip", ties="given", duplicates="all"),
        defects=("MAP is the mean of precision@1 … precision@k, whether the place holds a hit or not.",),
        facts=(
            "The gain is 2^(grade - threshold + 1) - 1; this row is threshold 1.",
            "nDCGRendle2020 is ndcg(gain=binary).",
        ),
    ),
    Preset(
        "warprec", "warprec", "from source",
        Conventions(gain="exp2_next", ties="by_id_desc", per_metric=_for_metrics("f", no_truth="zero")),
        facts=(
            "F1 counts users without relevant items as 0, precision and recall leave them out.",
            "Its later sources leave them out of F1 too: Conventions.of('warprec').but(per_metric=()).",
            "Ties are left to torch.topk, which promises no order; the runs here were in descending order.",
            "nDCGRendle2020 is ndcg(gain=binary).",
        ),
    ),
    Preset(
        "cornac", "cornac", "3.0.1",
        Conventions(
            gain="binary", ties="given", duplicates="all",
            per_metric=_for_metrics("map", ties="worst", duplicates="first"),
        ),
        defects=(
            "MRR raises an error for a user without a hit.",
            "MAP gives every relevant item of a tied group the group's last place.",
            "F1 adds a small constant to its divisor, which shows in the seventh digit.",
        ),
        facts=(
            "MAP has no cut-off and ranks the whole catalogue: pass complete rankings and ask for map.",
            "Its evaluation takes unknown items out of the truth by default: unknown_items='drop'.",
        ),
    ),
    Preset(
        "microsoft", "recommenders", "1.2.1",
        Conventions(
            gain="binary", no_list="skip", ties="given", duplicates="all",
            per_metric=_for_metrics("dcg ndcg", no_list="empty"),
        ),
        aliases=("recommenders", "ms_recommenders", "microsoft_recommenders"),
        defects=(
            "NDCG passes 1 when an item is listed twice.",
            "r_precision_at_k is averaged over the users with a hit only, and is NaN when there is none.",
        ),
        facts=(
            "Users without recommendations are left out of precision, recall and MAP, and count 0 in NDCG.",
            "map is map(over=relevant); score_type raw and exp are gain=grade and gain=exp2.",
            "r_precision_at_k is r_precision of lists that end at k.",
        ),
    ),
    Preset(
        "implicit", "implicit", "0.7.3",
        Conventions(precision_over="min", gain="binary", ties="given", duplicates="all", average="pooled"),
        defects=("With an item listed twice its AUC counts a second relevant item.",),
        facts=(
            "precision is pooled hits over pooled min(k, relevant).",
            "AUC puts what is not in the top k into one tied group below it: auc of such a complete ranking.",
        ),
    ),
    Preset(
        "torchmetrics", "torchmetrics", "1.9.0",
        Conventions(ap_over="hits", no_truth="zero", ties="expected", duplicates="all"),
        defects=(
            "Ties are averaged in NDCG only; elsewhere they fall as torch.topk leaves them.",
            "Every relevant item is a row: NDCG and hit rate credit a short list with items it never held.",
            "An item listed twice is two relevant items.",
        ),
        facts=(
            "Precision, recall, MAP and MRR drop rows with a score of 0 or less, NDCG and hit rate do not.",
            "NDCG is graded when the target holds integers, else ndcg(gain=binary).",
            "empty_target_action is no_truth; adaptive_k is precision(over=list).",
        ),
    ),
    Preset(
        "evidently", "evidently", "0.7.23",
        Conventions(precision_over="list", ap_over="relevant", f1_of="means", ties="given", duplicates="all"),
        defects=(
            "MAP passes 1 for a user with fewer rows than k.",
            "A k beyond the longest list raises a KeyError.",
            "F is NaN when precision and recall are 0.",
            "Equal scores share an average rank that is then cut to a whole number, so places go missing.",
            "An item listed twice is two relevant items.",
        ),
        facts=(
            "Every relevant item must be a row; no_feedback_users=True is no_truth='zero'.",
            "Novelty is novelty(cold=drop).",
        ),
    ),
    Preset(
        "rs_metrics", "rs-metrics", "0.6.0",
        Conventions(
            precision_over="list", ap_over="relevant", gain="binary", no_truth="zero", ties="given",
            duplicates="all", per_metric=_for_metrics("capped_recall recall", duplicates="first"),
        ),
        defects=("One user without relevant items or without a list turns the whole mean into NaN.",),
    ),
    Preset(
        "recmetrics", "recmetrics", "0.1.5",
        Conventions(
            no_truth="zero", ties="given", duplicates="all",
            per_metric=_for_metrics("mar", duplicates="first"),
        ),
        defects=(
            "Recall is rounded to four places, and one user without relevant items raises an error.",
            "One user without a list raises an error in precision.",
        ),
        facts=("Precision and recall have no cut-off: ask for them without @k.",),
    ),
    Preset(
        "recometrics", "recometrics", "0.1.6.post13",
        Conventions(ap_over="relevant", ties="expected"),
        facts=(
            "Ties are broken by noise from a seed; this row takes the expectation over such draws.",
            "P@K and AP@K truncated are precision(over=min) and map(over=min).",
            "Scores come from two factor matrices, so every user has a list without repeats.",
        ),
    ),
    Preset(
        "irspack", "irspack", "0.5.2",
        Conventions(
            precision_over="list", ap_over="relevant", ideal="list", gain="binary", no_list="skip",
            ties="given", duplicates="all",
        ),
        facts=("recall_with_cutoff is recall(over=min); Gini and entropy are over items in lists or truth.",),
    ),
    Preset(
        "cf_evaluation", "design document 000", "text",
        Conventions(
            ap_over="hits", gain="binary", ties="given",
            per_metric=_for_metrics("dcg map ndcg", duplicates="all"),
        ),
        aliases=("seed000", "seed000_text", "seed_000"),
        facts=("MRR has no cut-off.", "AP divides by the hits in the top k, so one early hit gives 1."),
    ),
    Preset(
        "cf_evaluation_code", "the repository of design document 000", "from source",
        Conventions(
            precision_over="list", ap_over="list", ideal="list", gain="binary", ties="given",
            per_metric=_for_metrics("dcg map ndcg", duplicates="all"),
        ),
        aliases=("seed000_code",),
        facts=("MRR has no cut-off, but lists are as long as the largest k, so it moves with k_values.",),
    ),
    Preset(
        "recommender_evaluator", "design document 001", "text",
        Conventions(gini_over="recommended", no_truth="zero", no_list="skip", ties="given", duplicates="all"),
        aliases=("seed001", "seed_001"),
        facts=("f1_at_k is per user; the evaluator's F1 is f(f1_of=means).",),
    ),
    Preset(
        "ncf_evaluator", "design document 002", "text",
        Conventions(gain="exp2", ties="expected"),
        aliases=("seed002", "seed_002"),
        defects=("The positive comes first and ties stay as given: a constant scorer gets a hit rate of 1.",),
        facts=("One positive is ranked among sampled negatives.",),
    ),
    Preset(
        "rating_threshold", "design document 003", "text",
        Conventions(
            gain="binary", ties="given", duplicates="all",
            per_metric=_for_metrics("hit precision", no_truth="zero"),
        ),
        aliases=("seed003", "seed_003"),
        facts=(
            "Only the user's own test items are ranked; relevant from a threshold on, say relevant_from=3.5.",
        ),
    ),
    Preset(
        "rating_and_ranking", "design document 004", "text",
        Conventions(gain="exp2", ties="given", per_metric=_for_metrics("dcg map ndcg", duplicates="all")),
        aliases=("seed004", "seed_004"),
        facts=("Only items of the test set are ranked; relevant from a threshold on, say relevant_from=4.",),
    ),
)
# fmt: on

PRESETS: dict[str, Preset] = {row.name: row for row in _ROWS}
"""The decisions of other libraries, by name."""
_NAME_BY_ALIAS: dict[str, str] = {key: row.name for row in _ROWS for key in (row.name, *row.aliases)}
