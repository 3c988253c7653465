"""The standard of docs/standard in plain Python, to be read beside its pages.

`evaluate` answers one question of the vectors. This module has the steps of the standard in their order; the
formulas of the metrics are in `second_metrics`, those of predicted numbers in `second_predictions`.
Everything is spelled out and nothing is made fast: ties are settled by trying every order.
"""

import math
from dataclasses import replace
from itertools import permutations, product

from standard.second_metrics import METRICS, Case, Question, Ratio, RefusedError, f_of, quotient
from standard.second_predictions import evaluate_predictions

DEFAULTS = {
    "gain": "grade",
    "discount": "log2",
    "ideal": "reachable",
    "recall_over": "relevant",
    "precision_over": "k",
    "ap_over": "min",
    "accuracy_over": "list",
    "f1_of": "case",
    "gini_over": "catalogue",
    "no_truth": "skip",
    "no_list": "empty",
    "ties": "by_id",
    "duplicates": "first",
    "rank_gaps": "closed",
    "unknown_items": "miss",
    "seen_truth": "miss",
    "judged_only": "no",
    "negative_grades": "error",
    "average": "macro",
    "relevant_from": None,
    "max_grade": None,
}
TRIED = ("best", "worst", "expected")


def evaluate(run, truth, k, *, metric, params, conventions, context, family):
    """`{"value": …, "cases": {user: …}}` of one question; RefusedError where the standard has an error."""
    if family == "predictions":
        return evaluate_predictions(run, truth, metric, params)
    spec = METRICS[metric]
    if spec.cut == "required" and k is None:
        raise RefusedError(f"{metric} needs a cut-off")
    question = Question(run, truth, k, params, DEFAULTS | conventions, context)
    truth_left, negatives, lists = prepared(question)
    question = replace(question, max_grade=highest_grade(question), truth_left=truth_left)
    if params.get("min_grade", -math.inf) >= question.max_grade:
        raise RefusedError("the highest grade is not above the lowest")
    users = sorted(set(run) | set(truth))
    orders = {
        user: orders_of(question, spec, lists.get(user, []), truth_left.get(user, {})) for user in users
    }
    cases = {
        user: [
            Case(question, user, places, truth_left.get(user, {}), negatives.get(user, set()))
            for places in orders[user]
        ]
        for user in users
    }
    if spec.overall == "catalogue":
        return {"value": value_of_the_catalogue(question, spec, cases)}
    settled = {user: settle(question, spec, tried) for user, tried in cases.items()}
    return {
        "value": average(question, spec, settled),
        "cases": {user: None if found is None else found.value for user, found in settled.items()},
    }


# Steps 1 to 5: what is judged, and what is listed


def highest_grade(question):
    """Step 1: the highest grade of the truth as given, unless it is set."""
    if question.conventions["max_grade"] is not None:
        return question.conventions["max_grade"]
    highest = max((grade for grades in question.truth.values() for grade in grades.values()), default=1)
    return highest if highest > 0 else 1


def prepared(question):
    """Steps 2 to 5: the truth that is left, the items of a negative grade, the entries of each list."""
    decided, context = question.conventions, question.context
    truth = {user: dict(grades) for user, grades in question.truth.items()}
    negatives = {user: {i for i, grade in grades.items() if grade < 0} for user, grades in truth.items()}
    if decided["negative_grades"] == "error" and any(negatives.values()):
        raise RefusedError("a negative grade")
    truth = without(truth, negatives)
    catalogue = context.get("catalogue")
    if isinstance(catalogue, list):
        unknown = {user: set(grades) - set(catalogue) for user, grades in truth.items()}
        truth = after_decision(decided["unknown_items"], truth, unknown)
    if "seen" in context:
        seen = {user: set(grades) & set(context["seen"].get(user, [])) for user, grades in truth.items()}
        truth = after_decision(decided["seen_truth"], truth, seen)
    lists = dict(question.run)
    if decided["judged_only"] == "yes":
        lists = {
            user: [entry for entry in entries if entry[0] in truth.get(user, {})]
            for user, entries in lists.items()
        }
    if decided["duplicates"] == "collapse":
        take_out = closed_up if context.get("ranks") else collapsed
        lists = {user: take_out(entries) for user, entries in lists.items()}
    return truth, negatives, lists


def collapsed(entries):
    """Step 5: the entry of each item with the highest score, of equal scores the first."""
    best = {}
    for item, score in entries:
        if item not in best or score > best[item]:
            best[item] = score
    return [*best.items()]


def closed_up(entries):
    """Step 5 of entries with ranks: that of the lowest rank stays, lowered by those taken out above it."""
    kept, n_taken_out = {}, 0
    for item, rank in sorted(entries, key=lambda entry: entry[1]):
        if item in kept:
            n_taken_out += 1
        else:
            kept[item] = rank - n_taken_out
    return [*kept.items()]


def without(truth, dropped):
    """The truth without the items that are dropped from each case."""
    return {
        user: {item: grade for item, grade in grades.items() if item not in dropped[user]}
        for user, grades in truth.items()
    }


def after_decision(decision, truth, concerned):
    """Steps 3 and 4: the items concerned stay (`miss`), go (`drop`) or are refused (`error`)."""
    if decision == "error" and any(concerned.values()):
        raise RefusedError("a judged item outside the catalogue, or seen before")
    return without(truth, concerned) if decision == "drop" else truth


# Steps 6 and 7: places


def orders_of(question, spec, entries, judged):
    """Every order of a list that `ties` means: for each one the items at places 1, 2, …"""
    decided = question.conventions
    if decided["duplicates"] == "error" and len({item for item, _ in entries}) < len(entries):
        raise RefusedError("an item listed twice")
    if question.context.get("ranks"):
        return [places_of_ranks(question, entries)]
    groups = [[item for item, score in entries if score == shared] for shared in scores_down(entries)]
    ties = decided["ties"]
    if ties == "given":
        return [[item for group in groups for item in group]]
    if ties == "by_id_desc":
        return [[item for group in groups for item in sorted(group, reverse=True)]]
    if ties in TRIED:
        items = [item for item, _ in entries]
        tied = {item for group in groups if len(group) > 1 for item in group}
        if any(item in judged and items.count(item) > 1 for item in tied):
            raise RefusedError("a judged item that is repeated and ties")
    expectation = spec.expectation(question.params)
    if ties == "expected" and expectation == "refused" and any(len(group) > 1 for group in groups):
        raise RefusedError("no expectation over the orders of equal scores")
    if ties == "by_id" or (ties == "expected" and expectation != "mean"):
        return [[item for group in groups for item in sorted(group)]]
    if spec.overall == "catalogue":
        if order_matters(question, groups):
            raise RefusedError("a metric of the whole catalogue has no best or worst order of a case")
        return [[item for group in groups for item in group]]
    return [
        [item for group in chosen for item in group]
        for chosen in product(*(permutations(group) for group in groups))
    ]


def order_matters(question, groups):
    """Whether a tie goes beyond place k, or lies within the first k places and their weights differ."""
    by_place = question.params.get("weight", "none") != "none"
    above = 0
    for group in groups:
        within = question.k is None or above < question.k
        beyond = question.k is not None and above + len(group) > question.k
        if len(group) > 1 and within and (by_place or beyond):
            return True
        above += len(group)
    return False


def scores_down(entries):
    """The different scores of a list, highest first."""
    return sorted({score for _, score in entries}, reverse=True)


def places_of_ranks(question, entries):
    """The items by rank, lowest first; with `rank_gaps=kept` None stands at the places that are left out."""
    decided = question.conventions
    ranked = {rank: item for item, rank in entries}
    if decided["rank_gaps"] == "kept":
        if question.context.get("full_ranking"):
            raise RefusedError("a complete list has no gaps")
        if decided["judged_only"] != "yes":
            return [ranked.get(rank) for rank in range(1, int(max(ranked, default=0)) + 1)]
    return [ranked[rank] for rank in sorted(ranked)]


# Step 9, and who is in the mean


def settle(question, spec, tried):
    """The Ratio of a case after the rules of "who is in the mean"; None if it is left out."""
    found = over_orders(question, spec, tried)
    case = tried[0]
    if not case.places:
        found = for_an_empty_list(spec, found)
    found = for_no_truth(question, spec, case, found)
    given = question.run.get(case.user)
    if not given:
        if question.conventions["no_list"] == "error":
            raise RefusedError("a case without recommendations")
        if question.conventions["no_list"] == "skip":
            return None
    return found


def over_orders(question, spec, tried):
    """Line 1: what the formula gives; over several orders the best, the worst or the mean."""
    values = [as_ratio(spec.formula(case)) for case in tried]
    if question.conventions["duplicates"] == "all":
        refuse_outside(spec.bounds, values)
    known = [found for found in values if found is not None]
    if len(known) <= 1:
        return known[0] if known else None
    ties = question.conventions["ties"]
    if ties == "expected":
        return Ratio(
            *(sum(part) / len(known) for part in zip(*((f.above, f.below) for f in known), strict=True)),
            value=sum(found.value for found in known) / len(known),
        )
    highest = (ties == "best") == (spec.better == "higher")
    return (max if highest else min)(known, key=lambda found: found.value)


def as_ratio(found):
    """A number is a ratio over 1."""
    if found is None or isinstance(found, Ratio):
        return found
    return Ratio(found, 1.0, value=found)


def refuse_outside(bounds, values):
    """Under `duplicates=all` a value outside the bounds of its metric is an error."""
    low, high = bounds
    for found in values:
        if found is not None and not low - 1e-12 <= found.value <= high + 1e-12:
            raise RefusedError("a repeat takes the value out of the bounds of the metric")


def for_an_empty_list(spec, found):
    """Line 2: 0, left out, or what the formula gave."""
    if spec.empty == "left out":
        return None
    if spec.empty == "formula":
        return found
    return Ratio(0.0, 0.0 if found is None else found.below, value=0.0)


def for_no_truth(question, spec, case, found):
    """Line 3: a case without relevant (or judged) items."""
    if spec.about == "shown":
        return found
    asked_for = case.relevant if spec.about == "relevant" else case.truth
    if asked_for:
        return found
    decision = question.conventions["no_truth"]
    if decision == "error":
        raise RefusedError("a case without relevant items")
    if decision == "skip" or spec.empty == "left out":
        return None
    if decision == "unjudged" and not case.truth:
        return None
    return Ratio(0.0, 0.0 if found is None else found.below, value=0.0)


# Step 11


def average(question, spec, settled):
    """The value over all cases; None if no case is in the mean."""
    within = {user: found for user, found in settled.items() if found is not None}
    if not within:
        return None
    values = list(within.values())
    decided = question.conventions
    if spec.overall == "pooled" or (spec.overall == "ratio" and decided["average"] == "pooled"):
        return quotient(sum(found.above for found in values), sum(found.below for found in values))
    if spec.overall == "lift" and decided["average"] == "pooled":
        return quotient(sum(found.above for found in values), sum(found.below for found in values)) - 1
    if spec.overall == "geometric":
        least = question.params["eps"]
        return math.exp(sum(math.log(max(found.value, least)) for found in values) / len(values))
    if spec.overall == "f" and decided["f1_of"] == "means":
        precision = sum(found.above for found in values) / len(values)
        recall = sum(found.below for found in values) / len(values)
        return f_of(precision, recall, question.params["beta"])
    return sum(found.value for found in values) / len(values)


def value_of_the_catalogue(question, spec, cases):
    """A metric of the whole catalogue: one value, None if no case has anything in its list."""
    lists = [tried[0] for tried in cases.values()]
    if not any(case.places for case in lists):
        return None
    return spec.formula(question, lists)
