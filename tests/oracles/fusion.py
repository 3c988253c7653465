"""Every fusion method and normalisation a second time: one user at a time, in plain Python, on dicts.

A run is {user: {item: score}}, best first; equal scores stay in the order they were written in. Nothing is
shared with the library.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

Ranking = dict[str, float]
Run = dict[str, Ranking]
ODDS_BORDERS = [0, 5, 10, 15, 20, 30, 100, 200, 500, 1000]
DOUBLING_BORDERS = [0, 5, 15, 35, 75, 155, 315, 635, 1275, 2555, 5115]


def best_first(ranking: Ranking) -> Ranking:
    return dict(sorted(ranking.items(), key=lambda pair: -pair[1]))


def normalised(name: str, rankings: Sequence[Ranking]) -> list[Ranking]:
    """The lists of one user, one per run."""
    candidates = [item for ranking in rankings for item in ranking]
    candidates = list(dict.fromkeys(candidates))
    return [best_first(_normalised(name, ranking, candidates)) for ranking in rankings]


def _normalised(name: str, ranking: Ranking, candidates: list[str]) -> Ranking:
    scores, n = list(ranking.values()), len(ranking)
    if name == "borda":
        places = {item: place for place, item in enumerate(ranking)}
        n_all = len(candidates)
        listed = {item: 1 - place / n_all for item, place in places.items()}
        unlisted = {item: 0.5 - (n - 1) / (2 * n_all) for item in candidates if item not in places}
        return listed | unlisted
    if not ranking:
        return {}
    low, high = min(scores), max(scores)
    of: dict[str, Callable[[int, float], float]] = {
        "min-max": lambda _, s: (s - low) / max(high - low, 1e-9),
        "min-max-inverted": lambda _, s: (high - s) / max(high - low, 1e-9),
        "max": lambda _, s: s / max(high, 1e-9),
        "sum": lambda _, s: (s - low) / max(sum(scores) - low * n, 1e-9),
        "zmuv": lambda _, s: (s - statistics.fmean(scores)) / max(statistics.pstdev(scores), 1e-9),
        "rank": lambda place, _: 1 - place / n,
    }
    return {item: of[name](place, s) for place, (item, s) in enumerate(ranking.items())}


def fused(name: str, rankings: Sequence[Ranking], **parameters: Any) -> Ranking:
    """The fused list of one user, best first."""
    candidates = list(dict.fromkeys(item for ranking in rankings for item in ranking))
    if "condorcet" in name:
        return _condorcet(rankings, candidates, parameters.get("weights", [1] * len(rankings)))
    return best_first(
        {item: _fused(name, item, rankings, len(candidates), parameters) for item in candidates}
    )


def _fused(name: str, item: str, rankings: Sequence[Ranking], n_all: int, given: dict[str, Any]) -> float:
    weights = given.get("weights", [1.0] * len(rankings))
    having = [(run, ranking) for run, ranking in enumerate(rankings) if item in ranking]
    scores = [ranking[item] for _, ranking in having]
    places = [list(ranking).index(item) for _, ranking in having]
    n = len(having)
    if name in ("bordafuse", "weighted_bordafuse"):
        points = 0.0
        for weight, ranking in zip(weights, rankings, strict=True):
            listed = item in ranking
            own = n_all - list(ranking).index(item) if listed else (n_all - len(ranking) + 1) / 2
            points += weight * own
        return points
    if name == "bayesfuse":
        total = 0.0
        for run, ranking in enumerate(rankings):
            table = list(given["log_odds"][run])
            place = list(ranking).index(item) if item in ranking else len(table)
            total += table[place] if place < len(table) else math.log(0.001 / 0.999)
        return total
    squares = sum(1 / (place + 1) ** 2 for place in places)
    by_name: dict[str, Callable[[], float]] = {
        "comb_sum": lambda: sum(scores),
        "comb_min": lambda: min(scores),
        "comb_max": lambda: max(scores),
        "comb_med": lambda: statistics.median(scores),
        "comb_anz": lambda: sum(scores) / n,
        "comb_mnz": lambda: sum(scores) * n,
        "comb_gmnz": lambda: sum(scores) * n ** given["gamma"],
        "wsum": lambda: sum(weights[run] * ranking[item] for run, ranking in having),
        "wmnz": lambda: sum(scores) * sum(weights[run] for run, _ in having),
        "mixed": lambda: sum(weights[run] * ranking[item] for run, ranking in having) * math.sqrt(n),
        "isr": lambda: squares * n,
        "log_isr": lambda: squares * math.log(n),
        "logn_isr": lambda: squares * math.log(n + given["sigma"]),
        "rrf": lambda: sum(1 / (given["k"] + place + 1) for place in places),
        "rbc": lambda: sum((1 - given["phi"]) * given["phi"] ** place for place in places),
        "mapfuse": lambda: sum(
            given["map_scores"][run] / (place + 1) for (run, _), place in zip(having, places, strict=True)
        ),
    }
    if name in by_name:
        return by_name[name]()
    total = 0.0
    for (run, ranking), place in zip(having, places, strict=True):
        table = list(given["probs"][run])
        if name == "posfuse":
            total += table[place] if place < len(table) else 0.0
        elif name == "probfuse":
            part = place // math.ceil(len(ranking) / len(table))
            total += table[part] / (part + 1)
        elif name == "segfuse":
            part = next(number for number, stop in enumerate(DOUBLING_BORDERS[1:]) if place < stop)
            total += table[part] * (ranking[item] + 1)
        elif name == "slidefuse":
            window = range(max(place - given["w"], 0), min(place + given["w"], len(ranking) - 1) + 1)
            total += sum(table[at] for at in window if at < len(table)) / len(window)
        else:
            raise KeyError(name)
    return total


def _condorcet(rankings: Sequence[Ranking], candidates: list[str], weights: Sequence[float]) -> Ranking:
    def place(ranking: Ranking, item: str) -> float:
        return list(ranking).index(item) if item in ranking else math.inf

    def beaten(item: str) -> float:
        points = 0.0
        for other in candidates:
            if other != item:
                ahead = 0.0
                for weight, ranking in zip(weights, rankings, strict=True):
                    mine, theirs = place(ranking, item), place(ranking, other)
                    ahead += weight * ((mine < theirs) - (mine > theirs))
                points += 1.0 if ahead > 0 else 0.5 if ahead == 0 else 0.0
        return points

    order = best_first({item: beaten(item) for item in candidates})
    return {item: float(len(order) - at) for at, item in enumerate(order)}


def trained(name: str, run: Run, truth: dict[str, set[str]], **settings: Any) -> list[float]:
    """What a method estimates for one run, from the users of the truth."""
    hit_lists = [[float(item in relevant) for item in run.get(user, {})] for user, relevant in truth.items()]
    if name in ("posfuse", "slidefuse"):
        longest = max((len(hits) for hits in hit_lists), default=0)
        columns = [[hits[place] for hits in hit_lists if place < len(hits)] for place in range(longest)]
        return [sum(column) / len(column) for column in columns]
    if name == "probfuse":
        n = settings["n_segments"]
        means = [0.0] * n
        for hits in hit_lists:
            size = math.ceil(len(hits) / n)
            for part in range(n):
                segment = hits[part * size : (part + 1) * size]
                means[part] += sum(segment) / len(segment) if segment else 0.0
        return [mean / len(hit_lists) for mean in means]
    borders = DOUBLING_BORDERS if name == "segfuse" else ODDS_BORDERS
    means = [
        sum(sum(hits[start:stop]) / (stop - start) for hits in hit_lists) / len(hit_lists)
        for start, stop in pairwise(borders)
    ]
    if name == "segfuse":
        return means
    odds: list[float] = []
    for (start, stop), mean in zip(pairwise(borders), means, strict=True):
        chance = mean or 0.001
        against = 1 - chance if chance != 1 else 0.001
        odds += [math.log(chance / against)] * (stop - start)
    return odds
