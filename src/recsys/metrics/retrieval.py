"""Metrics of retrieval evaluators: precision at a recall, sets, inferred precision, models of readers.

trec_eval defines the first ones, ir_measures (through cwl_eval and the Compatibility program) the others.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import ConventionError
from recsys.kernels.exact_sums import geometric_weights
from recsys.metrics.ranking import MANNING
from recsys.metrics.readings import Reading
from recsys.metrics.registry import chained_metric, divide_or_zero, metric
from recsys.metrics.traits import UNIT, Between
from recsys.metrics.weights import graded_shares
from recsys.records.arrays import Array, Float, Int

_TREC_EVAL = "trec_eval 9"
_POINTS = tuple(level / 10 for level in range(11))
_DEEPEST = 1 << 24


def _best_precision(h: Reading, recall: float) -> Float:
    """Return the highest precision from the hit on that reaches this recall; 0 if none reaches it."""
    needed = np.maximum((recall * h.n_relevant + 0.9).astype(np.int64), 1)
    precisions = h.cached("precision at each hit", lambda: h.order / h.rank)
    out = np.zeros(h.n_cases)
    reaches = h.order >= needed[h.case]
    np.maximum.at(out, h.case[reaches], precisions[reaches])
    return out


@chained_metric(
    "iprec",
    formula="max over hits from number max(floor(recall relevant + 0.9), 1) on of (hits so far / place)",
    reference=MANNING,
    aliases=("iprec_at_recall",),
    choices={"recall": Between(0, 1, closed=True)},
)
def iprec(h: Reading, k: int | None, c: Conventions, *, recall: float = 0.5) -> Float:
    """Interpolated precision: the best precision at this recall or a higher one.

    The number of hits that a recall asks for is rounded as in trec_eval 9, up from 0.1 on: 2.05 hits
    are 2, 2.2 are 3. A list that never reaches the recall has 0.

    >>> import recsys
    >>> recsys.score_list([3, 5, 8, 1], {3, 8}, "iprec(recall=1)")
    0.6666666666666666
    """
    return _best_precision(h, recall)


@chained_metric(
    "eleven_point",
    formula="mean of iprec at recall 0, 0.1, … 1",
    reference=MANNING,
    aliases=("iprec_11",),
)
def eleven_point(h: Reading, k: int | None, c: Conventions) -> Float:
    """Interpolated precision averaged over eleven levels of recall; 11pt_avg of trec_eval.

    >>> import recsys
    >>> round(recsys.score_list([3, 5, 8, 1], {3, 8}, "eleven_point"), 4)
    0.8485
    """
    total = np.zeros(h.n_cases)
    for recall in reversed(_POINTS):  # added in this order by trec_eval too, for the last bit
        total += _best_precision(h, recall)
    return total / len(_POINTS)


@metric(
    "set_precision",
    formula="hits / length of the list",
    reference=_TREC_EVAL,
    at_k="never",
    aliases=("set_p",),
)
def set_precision(h: Reading, k: int | None, c: Conventions) -> Float:
    """How much of the whole list is relevant, whatever its length; set_P of trec_eval.

    >>> import recsys
    >>> recsys.score_list([3, 5, 8, 1], {3, 8, 9}, "set_precision")
    0.5
    """
    return divide_or_zero(h.count(None), h.n_listed)


@metric("set_recall", formula="hits / relevant", reference=_TREC_EVAL, at_k="never")
def set_recall(h: Reading, k: int | None, c: Conventions) -> Float:
    """How much of what is relevant the whole list holds.

    >>> import recsys
    >>> recsys.score_list([3, 5, 8, 1], {3, 8, 9, 10}, "set_recall")
    0.5
    """
    return divide_or_zero(h.count(None), h.n_relevant)


@metric(
    "set_f",
    formula="(1 + beta) P R / (beta P + R), P = set_precision, R = set_recall",
    reference=_TREC_EVAL,
    at_k="never",
    choices={"beta": Between(0)},
)
def set_f(h: Reading, k: int | None, c: Conventions, *, beta: float = 1.0) -> Float:
    """Precision and recall of the whole list in one number.

    trec_eval does not square beta: set_f(beta=4) weighs recall as f(beta=2) does.

    >>> import recsys
    >>> recsys.score_list([3, 5, 8, 1], {3, 8, 9, 10}, "set_F")
    0.5
    """
    p, r = set_precision(h, k, c), set_recall(h, k, c)
    return divide_or_zero((beta + 1.0) * p * r, beta * p + r)


@metric(
    "set_map",
    formula="hits^2 / (length of the list x relevant)",
    reference=_TREC_EVAL,
    at_k="never",
)
def set_map(h: Reading, k: int | None, c: Conventions) -> Float:
    """Average precision of a list without an order: set_precision times set_recall.

    >>> import recsys
    >>> recsys.score_list([3, 5, 8, 1], {3, 8, 9, 10}, "set_map")
    0.25
    """
    hits = h.count(None)
    return divide_or_zero(hits * hits, h.n_listed * h.n_relevant.astype(np.float64))


@metric(
    "set_relative_precision",
    formula="hits / min(length of the list, relevant)",
    reference=_TREC_EVAL,
    at_k="never",
    aliases=("set_relative_p",),
)
def set_relative_precision(h: Reading, k: int | None, c: Conventions) -> Float:
    """Precision of the whole list, as a share of the most that a list of its length can have.

    >>> import recsys
    >>> recsys.score_list([3, 5, 8, 1], {3, 8, 9}, "set_relative_P")
    0.6666666666666666
    """
    return divide_or_zero(h.count(None), np.minimum(h.n_listed, h.n_relevant))


@chained_metric(
    "inf_ap",
    formula="1/relevant sum over hits at place r of (1 + (judged above + pooled above) (relevant above + e) /"
    " (judged above + 2e)) / r, e = 0.00001; pooled = of a negative grade",
    reference="Yilmaz & Aslam, Estimating average precision with incomplete and imperfect judgments (2006)",
    aliases=("infap",),
    reads_judgements=True,
    reads_pool=True,
)
def inf_ap(h: Reading, k: int | None, c: Conventions) -> Float:
    """Average precision inferred from the judged items: those above a hit say how many above it are relevant.

    An item without a judgement counts as not relevant, one of a negative grade (negative_grades=unjudged) as
    pooled and not judged: relevant as often as those judged. Grades of 0 are judgements; infAP of trec_eval.
    "Above" counts items of the list at higher places, repeats left out; judged ones are relevant or not.

    >>> import recsys
    >>> round(recsys.score_list([1, 3, 5, 8], {1: 0, 3: 1, 8: 1}, "inf_ap"), 4)
    0.5
    """
    small = 0.00001
    above = h.rank - 1.0
    relevant = h.order - 1.0
    judged = relevant + h.bad_above
    share = divide_or_zero(judged + h.unjudged_above, above)
    rest = (above / (above + 1.0)) * share * ((relevant + small) / (judged + 2 * small))
    return divide_or_zero(h.add(1.0 / (above + 1.0) + rest), h.n_relevant)


@metric(
    "compat",
    formula="sum over depths d <= D of p^(d - 1) (items in the first d places of both) / d, over that of the "
    "ideal list with itself; D = k, or the length of the longer one",
    reference="Clarke, Vtyurina & Smucker, Assessing top-k preferences (2021)",
    aliases=("compatibility",),
    choices={"p": UNIT, "over": ("best", "weights")},
    ties="refuse",
    not_additive="it compares the list with an ideal list of the observed items",
)
def compat(h: Reading, k: int | None, c: Conventions, *, p: float = 0.95, over: str = "best") -> Float:
    """Rank-biased overlap of the list with an ideal one: the relevant items, those of the best grade first.

    The ideal list holds all relevant items. Those of equal grade keep their order in the list itself, and
    those that it does not hold come after the others. An item of the list counts at its first place,
    whatever `duplicates` says. The divisor is the sum over d <= D of p^(d - 1) min(d, relevant) / d;
    over=weights divides by the sum of p^(d - 1) instead, so that a short ideal list cannot reach 1.

    >>> import recsys
    >>> round(recsys.score_list([3, 5, 8], {3: 1, 8: 2}, "compat(p=0.5)"), 4)
    0.25
    """
    h = h.once
    depth = np.maximum(h.n_listed, h.n_relevant) if k is None else np.full(h.n_cases, k)
    deepest = int(depth.max(initial=1))
    if deepest > _DEEPEST:
        raise ConventionError(f"compat looks {deepest:,} places deep.", hint="Ask for a smaller cut-off.")
    weights = geometric_weights(p, deepest)
    running = np.concatenate([[0.0], np.cumsum(weights / np.arange(1, deepest + 1))])

    def from_depth(first: Array, case: Array) -> Float:
        """Return what an item adds that both lists hold from this depth on."""
        return np.asarray(running[depth[case]] - running[np.minimum(first - 1, depth[case])])

    score = h.add(from_depth(np.maximum(h.rank, h.place_in_ideal), h.case))
    if over == "weights":
        return divide_or_zero(score, np.concatenate([[0.0], np.cumsum(weights)])[depth])
    case = np.repeat(np.arange(h.n_cases), h.n_relevant)
    starts = np.cumsum(h.n_relevant) - h.n_relevant
    best = h.sum_by_case(case, from_depth(np.arange(1, len(case) + 1) - starts[case], case))
    return divide_or_zero(score, best)


def _in_turn(numbers: Int) -> Iterator[tuple[int, Int]]:
    """Yield each number in ascending order, with the indices at which it occurs."""
    order = np.argsort(numbers, kind="stable")
    distinct, starts = np.unique(numbers[order], return_index=True)
    return zip(distinct.tolist(), np.split(order, starts)[1:], strict=True)


@chained_metric(
    "inst",
    formula="sum of W_r gain, W_r proportional to the product over i < r of C_i, "
    "C_i = ((i - 1 + 2 target - gains so far) / (i + 2 target - gains so far))^2; gain = grade / max_grade",
    reference="Moffat et al., INST: an adaptive metric for information retrieval evaluation (2015)",
    conventions=("max_grade",),
    choices={  # below a target of 0.25, going on would be likelier than certain
        "target": Between(0.25, closed=True),
        "depth": Between(1, _DEEPEST, closed=True, whole=True),
    },
    tie_order="unknown",
)
def inst(
    h: Reading,
    k: int | None,
    c: Conventions,
    *,
    target: float = 1.0,
    min_grade: float = 0.0,
    depth: float = 1000.0,
) -> Float:
    """What a reader gains per item who wants `target` in all, and goes on the likelier the more is missing.

    The gain of a hit is (grade - min_grade) / (max_grade - min_grade), within 0 and 1; "gains so far" are
    those of places 1 … i. The reader looks at `depth` places at most, as in cwl_eval: W_1 … W_depth add up to
    1, and places without a hit, also those beyond the end of a list, gain nothing.

    >>> import recsys
    >>> round(recsys.score_list([3, 5, 8], {3, 8}, "inst"), 4)
    0.7233
    """
    gain = graded_shares(h.grade, min_grade, c.max_grade)
    hits_at = dict(_in_turn(h.rank))
    gained, value, total = np.zeros(h.n_cases), np.zeros(h.n_cases), np.zeros(h.n_cases)
    reach = np.ones(h.n_cases)
    for place in range(1, int(depth) + 1):
        at = hits_at.get(place)
        if at is not None:
            gained[h.case[at]] += gain[at]
            value[h.case[at]] += reach[h.case[at]] * gain[at]
        total += reach
        wanted = (place + target) + (target - gained)
        reach *= ((wanted - 1.0) / wanted) ** 2
    return divide_or_zero(value, total)


@chained_metric(
    "bpm",
    formula="gains up to s / s, s = min(k, place at which they reach the target); gain = grade / max_grade",
    reference="Zhang et al., Evaluating web search with a Bejeweled player model (2017)",
    at_k="required",
    conventions=("max_grade",),
    choices={"target": Between(0)},
    tie_order="unknown",
)
def bpm(h: Reading, k: int | None, c: Conventions, *, target: float = 1.0, min_grade: float = 0.0) -> Float:
    """What a reader gains per item who stops after k items, or as soon as the gains reach `target`.

    The static form, as in cwl_eval; the gain of a hit is (grade - min_grade) / (max_grade - min_grade),
    within 0 and 1. s is k where the target is not reached, also if the list is shorter.

    >>> import recsys
    >>> recsys.score_list([3, 5, 8], {3, 8}, "bpm(target=2)@10")
    0.6666666666666666
    """
    gain = graded_shares(h.grade, min_grade, c.max_grade)
    gained, stop = np.zeros(h.n_cases), np.full(h.n_cases, float(k or 1))
    for _, at in _in_turn(h.order):
        inside = at[h.rank[at] <= stop[h.case[at]]]
        case = h.case[inside]
        gained[case] += gain[inside]
        stop[case] = np.where(gained[case] >= target, h.rank[inside], stop[case])
    return np.asarray(gained / stop)
