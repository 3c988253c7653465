"""The family `predictions` of docs/standard/metrics.md: numbers predicted for pairs of user and item.

A row is a pair (prediction, actual). A formula takes the rows of each user, so that it can count pairs within
a user, and gives a number, or None where there is no value.
"""

import math


def evaluate_predictions(run, truth, metric, params):
    """The value over all rows, or of `user_…` and `gauc` the values of the users too."""
    rows = {
        user: [(prediction, truth[user][item]) for item, prediction in entries]
        for user, entries in run.items()
    }
    if metric == "gauc":
        values = {user: auc({user: own}, params) for user, own in rows.items()}
        return {"value": weighted_mean(rows, values, params["weight"]), "cases": values}
    if metric.startswith("user_"):
        formula = FORMULAS[metric.removeprefix("user_")]
        values = {user: formula({user: own}, params) for user, own in rows.items()}
        known = [value for value in values.values() if value is not None]
        return {"value": sum(known) / len(known) if known else None, "cases": values}
    return {"value": FORMULAS[metric](rows, params)}


def all_rows(rows):
    return [row for own in rows.values() for row in own]


def errors(rows):
    return [prediction - actual for prediction, actual in all_rows(rows)]


def actuals(rows):
    return [actual for _, actual in all_rows(rows)]


def mean(numbers):
    numbers = list(numbers)
    return sum(numbers) / len(numbers)


def variance(numbers):
    middle = mean(numbers)
    return mean((number - middle) ** 2 for number in numbers)


def mse(rows, _):
    return mean(error**2 for error in errors(rows))


def rmse(rows, params):
    return math.sqrt(mse(rows, params))


def mae(rows, _):
    return mean(abs(error) for error in errors(rows))


def bias(rows, _):
    return mean(errors(rows))


def r2(rows, _):
    actual = actuals(rows)
    if min(actual) == max(actual):
        return None
    middle = mean(actual)
    return 1 - sum(error**2 for error in errors(rows)) / sum((a - middle) ** 2 for a in actual)


def explained_variance(rows, _):
    actual = actuals(rows)
    if min(actual) == max(actual):
        return None
    return 1 - variance(errors(rows)) / variance(actual)


def clicked(actual):
    return 1 if actual > 0 else 0


def log_loss(rows, _):
    losses = []
    for prediction, actual in all_rows(rows):
        p = min(max(prediction, 2**-52), 1 - 2**-52)
        losses.append(-math.log(p) if clicked(actual) else -math.log(1 - p))
    return mean(losses)


def normalised_entropy(rows, params):
    s = mean(clicked(actual) for actual in actuals(rows))
    if s in {0, 1}:
        return None
    return log_loss(rows, params) / -(s * math.log(s) + (1 - s) * math.log(1 - s))


def bin_of(prediction, predictions, bins, binning):
    if binning == "count":
        return math.floor(sum(1 for other in predictions if other < prediction) * bins / len(predictions))
    return next(i for i in range(1, bins + 1) if prediction <= i / bins)


def bin_gaps(rows, params):
    """(rows, |mean p - share of clicks|) of every bin that holds a row."""
    bins = int(params["bins"])
    predictions = [prediction for prediction, _ in all_rows(rows)]
    filled = {}
    for prediction, actual in all_rows(rows):
        filled.setdefault(bin_of(prediction, predictions, bins, params["binning"]), []).append(
            (prediction, clicked(actual))
        )
    return [(len(own), abs(mean(p for p, _ in own) - mean(y for _, y in own))) for own in filled.values()]


def ece(rows, params):
    return sum(count * gap for count, gap in bin_gaps(rows, params)) / len(all_rows(rows))


def mce(rows, params):
    return max(gap for _, gap in bin_gaps(rows, params))


def auc(rows, _):
    positive = [prediction for prediction, actual in all_rows(rows) if clicked(actual)]
    negative = [prediction for prediction, actual in all_rows(rows) if not clicked(actual)]
    if not positive or not negative:
        return None
    right = sum(1.0 if high > low else 0.5 if high == low else 0.0 for high in positive for low in negative)
    return right / (len(positive) * len(negative))


def fcp(rows, params):
    concordant, discordant = [], []
    for own in rows.values():
        pairs = [(a, b) for a in own for b in own if a[1] > b[1]]
        right = sum(1 for a, b in pairs if a[0] > b[0])
        concordant.append(right)
        discordant.append(len(pairs) - right)
    if not sum(concordant) + sum(discordant):
        return None
    if params["over"] == "pairs":
        return sum(concordant) / (sum(concordant) + sum(discordant))
    good, bad = mean_of_those_who_have(concordant), mean_of_those_who_have(discordant)
    return good / (good + bad)


def mean_of_those_who_have(counts):
    positive = [count for count in counts if count]
    return mean(positive) if positive else 0.0


def weighted_mean(rows, values, weight):
    weights = {
        "impressions": len,
        "clicks": lambda own: sum(clicked(actual) for _, actual in own),
        "users": lambda _: 1,
    }
    known = {user: weights[weight](rows[user]) for user, value in values.items() if value is not None}
    total = sum(known.values())
    return sum(w * values[user] for user, w in known.items()) / total if total else None


FORMULAS = {
    "mse": mse,
    "rmse": rmse,
    "mae": mae,
    "bias": bias,
    "r2": r2,
    "explained_variance": explained_variance,
    "log_loss": log_loss,
    "normalised_entropy": normalised_entropy,
    "ece": ece,
    "mce": mce,
    "auc": auc,
    "fcp": fcp,
}
