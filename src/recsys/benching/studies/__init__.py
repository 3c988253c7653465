"""Five small studies of evaluation itself: one question each, small models, an answer from the data.

The sentences of an answer are made from the numbers of the run. A function below `@_study(...)` is one more
study: it gives the lines about its data and conventions, a table, the answer and a function that draws the
figure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recsys.benching.studies.setting import (
    CONVENTIONS,
    ERRORS,
    LEARNED,
    RANKING,
    Predictor,
    Setting,
    described,
    popularity_model,
    ranking_metrics,
    rating_errors,
    setting_of,
    train_model,
)
from recsys.comparison.compare import compare
from recsys.display.cells import Columns
from recsys.display.tabled import Tabled
from recsys.display.text_tables import note_text
from recsys.errors import UnknownNameError
from recsys.evaluation.evaluate import evaluate
from recsys.inputs.files import write_text
from recsys.ranks.sources import Scores
from recsys.records.arrays import Array, Float
from recsys.report import figures
from recsys.splits import global_temporal, per_user_ratio, random_ratio

__all__ = ["STUDIES", "Setting", "StudyResult", "run_study", "setting_of"]


def __dir__() -> list[str]:
    return __all__


_Table = dict[str, list[Any]]
_Finding = tuple[list[str], _Table, list[str], Callable[[], Any]]
_Function = Callable[[Setting, int], _Finding]

STUDIES: dict[str, str] = {}
"""The studies: {name: question}."""
_FUNCTIONS: dict[str, _Function] = {}
SIGMAS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0)
_NOISY_RANKING = ("precision@10", "recall@10", "ndcg@10", "map@10", "mrr", "auc")
_AMONG_TEST = "ndcg@10 among test items"
_FEW, _MANY, _ENOUGH_USERS = 10, 50, 30
_AT_RANDOM = "80 % of the rows for training, 20 % for test, drawn at random"


@dataclass(frozen=True, repr=False)
class StudyResult(Tabled):
    """One question and its answer; prints as text, saves itself with its figure.

    `about` says what the numbers are of: the data, the split, the seed, and the conventions of the rankings.
    """

    name: str
    question: str
    about: Sequence[str]
    table: dict[str, list[Any]]
    answer: Sequence[str]
    draw: Callable[[], Any]

    def to_text(self) -> str:
        """Return the question, what the numbers are of, the table and the answer."""
        return "\n".join([*map(note_text, (self.question, *self.about)), "", super().to_text()])

    def _columns(self) -> Columns:
        return self.table

    def _footnotes(self) -> Sequence[str]:
        return self.answer

    def save(self, folder: str | Path) -> tuple[Path, Path]:
        """Write NAME.md and NAME.png into a folder; returns the two paths."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        picture = target / f"{self.name}.png"
        figures.save(self.draw(), picture)
        page = target / f"{self.name}.md"
        about = [f"- {line}" for line in self.about]
        body = [f"# {self.question}", "", *about, "", self.to_markdown(), "", *self.answer, "",
                f"![{self.question}]({picture.name})", ""]  # fmt: skip
        write_text(page, "\n".join(body))
        return page, picture


def run_study(name: str, data: Any = None, *, seed: int = 0) -> StudyResult:
    """Run one study on a data set with ratings and times, or on the demo world."""
    if name not in STUDIES:
        raise UnknownNameError("study", name, STUDIES)
    return StudyResult(name, STUDIES[name], *_FUNCTIONS[name](setting_of(data, seed=seed), seed))


def _study(name: str, question: str) -> Callable[[_Function], _Function]:
    def register(function: _Function) -> _Function:
        STUDIES[name], _FUNCTIONS[name] = question, function
        return function

    return register


@_study("metric-comparison", "Do models rank the same under every metric?")
def _metric_comparison(setting: Setting, seed: int) -> _Finding:
    """Train the models on a random 80 % and compare their orders under six metrics."""
    train, test = random_ratio(setting.frame, 0.2, seed=seed)
    models = [train_model(name, train, setting, seed) for name in LEARNED]
    models += [popularity_model(by, train, setting) for by in ("mean", "count")]
    users, items = test["user"].to_numpy(), test["item"].to_numpy()
    rows, rankings = {}, {}
    for model in models:
        rankings[model.name] = ranking_metrics(model.source, train, test)
        rows[model.name] = {**rating_errors(model, test), **rankings[model.name]}
        # Only the user's test items are ranked, as many tutorials do.
        lists = test[["user", "item"]].assign(score=(model.score or model.predict)(users, items))
        among = evaluate(lists, test[["user", "item", "rating"]], ["ndcg@10"], conventions=CONVENTIONS)
        rows[model.name][_AMONG_TEST] = among["ndcg@10"]
    metrics = [*ERRORS, *RANKING, _AMONG_TEST]
    table: _Table = {"model": list(rows)}
    table |= {metric: [row[metric] for row in rows.values()] for metric in metrics}
    places = {one: places_of(one, {name: row[one] for name, row in rows.items()}) for one in metrics}
    distinct = {tuple(by_model.items()) for by_model in places.values()}
    if len(distinct) == 1:
        answer = [f"Yes: every metric orders them {_order(places['ndcg@10'])}."]
    else:
        by_winner: dict[str, list[str]] = {}
        for metric, by_model in places.items():
            winner = " and ".join(name for name, place in by_model.items() if place == 1)
            by_winner.setdefault(winner, []).append(metric)
        winners = "; ".join(f"{name} under {', '.join(names)}" for name, names in by_winner.items())
        answer = [f"No: {len(distinct)} different orders under {len(places)} metrics. Best is {winners}."]
    best = min(rows, key=places["ndcg@10"].__getitem__)
    others = compare(rankings, best, ["ndcg@10"])
    beaten = [row.model for row in others if row.difference < 0 and row.adjusted_p < 0.05]
    answer.append(
        f"Under ndcg@10 over the whole catalogue, {best} is surely better than {', '.join(beaten) or 'none'} "
        f"(paired by user, Holm, 5 %). Ranking only the user's own test items, as "
        f"'{_AMONG_TEST}' does, asks an easier question and may answer it differently."
    )
    by_name = {
        name: {metric.replace(" among ", "\n"): by_model[name] for metric, by_model in places.items()}
        for name in sorted(rows)
    }
    title = "Place of each model under each metric"
    about = described(setting, _AT_RANDOM, seed)
    return about, table, answer, lambda: figures.heat(by_name, title=title)


def places_of(metric: str, values: dict[str, float]) -> dict[str, int]:
    """Return the place of each model under a metric.

    It is 1 + the number of better ones, so equal values share a place.

    >>> places_of("rmse", {"a": 0.9, "b": 1.1, "c": 0.9}), places_of("ndcg@10", {"a": 0.2, "b": 0.3})
    ({'a': 1, 'b': 3, 'c': 1}, {'a': 2, 'b': 1})
    """
    sign = -1 if metric in ERRORS else 1
    return {
        name: 1 + sum(sign * other > sign * value for other in values.values())
        for name, value in values.items()
    }


def _order(places: dict[str, int]) -> str:
    """Return the models by place, as "a > b = c"."""
    by_place: dict[int, list[str]] = {}
    for name in sorted(places, key=lambda name: (places[name], name)):
        by_place.setdefault(places[name], []).append(name)
    return " > ".join(" = ".join(names) for names in by_place.values())


@_study("temporal-vs-random", "Which split gives the more optimistic error, and why?")
def _temporal_vs_random(setting: Setting, seed: int) -> _Finding:
    """Train on 80 %, chosen at random and chosen by time, and compare the errors and what leaked."""
    parts = {
        "random": random_ratio(setting.frame, 0.2, seed=seed),
        "temporal": global_temporal(setting.frame, 0.2),
    }
    rows = []
    errors: dict[str, dict[str, float]] = {"random": {}, "temporal": {}}
    leaked, new = {}, {}
    for how, (train, test) in parts.items():
        known = test["user"].isin(train["user"]).to_numpy()
        new[how] = 1 - float(known.mean())
        # The share of test rows that are older than a training row of the same user.
        newest = train.groupby("user")["timestamp"].max()
        leaked[how] = float((test["user"].map(newest) > test["timestamp"]).mean())
        for name in ("MF", "MF-bias"):
            model = train_model(name, train, setting, seed)
            result = rating_errors(model, test)
            errors[how][name] = result["mse"]
            mse_known = rating_errors(model, test[known])["mse"] if known.any() else float("nan")
            rows.append({
                "model": name, "split": how, **result, "mse, known users": mse_known, "test rows": len(test),
                "new users": f"{new[how]:.0%}", "peeks ahead": f"{leaked[how]:.0%}",
            })  # fmt: skip
    answer = []
    for name in errors["random"]:
        lower, higher = sorted(errors, key=lambda how: errors[how][name])
        low, high = errors[lower][name], errors[higher][name]
        answer.append(f"{name}: the {lower} split gives the lower MSE, {low:.3f} against {high:.3f} "
                      f"({high / low - 1:+.1%} on the other).")  # fmt: skip
    answer.append(
        "On the random split the model was trained on later ratings of the same user for "
        f"{leaked['random']:.0%} of the test rows, on the temporal split for {leaked['temporal']:.0%}."
    )
    share = f"{new['temporal']:.0%} of the later ratings come from"
    if all(error < errors["temporal"][name] for name, error in errors["random"].items()):
        answer.append(
            "Predicting the past from the future is easier, and no production system can do it"
            + (f"; and {share} users the model has never met." if new["temporal"] else ".")
        )
    else:
        answer.append(
            "The random split is not clearly the optimistic one here: tastes do not drift in this data"
            + (f", though {share} new users." if new["temporal"] else " and no user is new.")
        )

    def draw() -> Any:
        axes = figures.bars(errors)
        axes.set_title("MSE by split")
        return axes

    split = "20 % of the rows for test, drawn at random, and the newest 20 % (rows of one time together)"
    about = described(setting, split, seed, ranked=False)
    return about, {column: [row[column] for row in rows] for column in rows[0]}, answer, draw


@_study("popularity", "How close do the most popular items come to learned models?")
def _popularity(setting: Setting, seed: int) -> _Finding:
    """Rank by popularity in two ways and by three learned models, and pair them user by user."""
    train, test = random_ratio(setting.frame, 0.2, seed=seed)
    models = [popularity_model(by, train, setting) for by in ("mean", "count")]
    models += [train_model(name, train, setting, seed) for name in LEARNED]
    results = {model.name: ranking_metrics(model.source, train, test) for model in models}
    ndcg = {name: result["ndcg@10"] for name, result in results.items()}
    best = max(LEARNED, key=lambda name: ndcg[name])
    share = {name: f"{value / ndcg[best]:.0%}" for name, value in ndcg.items()}
    table: _Table = {"model": list(results)}
    table |= {metric: [result[metric] for result in results.values()] for metric in RANKING}
    table[f"share of {best}'s ndcg@10"] = list(share.values())
    comparison = compare(results, best, ["ndcg@10"])
    answer = [
        f"{name} reaches {share[name]} of the ndcg@10 of {best}, the best learned model here "
        f"({comparison[name, 'ndcg@10'].verdict})."
        for name in ("popular by mean", "popular by count")
    ]
    if ndcg["popular by count"] > ndcg["popular by mean"]:
        answer.append(
            "Ranking by the highest mean rating is the weaker baseline: items with a handful of perfect "
            "ratings come first, and hardly anybody meets them. Count ratings before you call a model good."
        )
    if ndcg["popular by count"] > ndcg[best]:
        answer.append(
            "Models fitted to rating errors are not made to rank: none of them beats counting ratings here."
        )
    values = {name: dict(result) for name, result in results.items()}
    about = described(setting, _AT_RANDOM, seed)
    return about, table, answer, lambda: figures.bars(values, baseline="popular by count")


@_study("per-user", "Which users does each model serve better, those with few ratings or with many?")
def _per_user(setting: Setting, seed: int) -> _Finding:
    """Errors by activity: users with fewer than 10 and more than 50 ratings to learn from."""
    train, test = per_user_ratio(setting.frame, 0.2, seed=seed)
    train, remarks = _thin_out(train, seed)
    few, some, many = f"fewer than {_FEW}", f"{_FEW} to {_MANY}", f"more than {_MANY}"
    activity = train.groupby("user").size()
    n_ratings = {user: int(activity.get(user, 0)) for user in test["user"].unique().tolist()}
    group_of = {user: few if n < _FEW else many if n > _MANY else some for user, n in n_ratings.items()}
    models = [train_model(name, train, setting, seed) for name in LEARNED]
    models.append(popularity_model("mean", train, setting))
    results = {model.name: rating_errors(model, test, ["rmse"], by=group_of) for model in models}
    sizes = next(iter(results.values())).by_sizes
    groups = [group for group in (few, some, many) if group in sizes]
    rmse = {name: {group: result.by[group]["rmse"] for group in groups} for name, result in results.items()}
    table: _Table = {"training ratings": groups, "users": [sizes[group] for group in groups]}
    table |= {name: list(by_group.values()) for name, by_group in rmse.items()}
    answer = []
    for name, by_group in rmse.items():
        low, high = by_group[groups[0]], by_group[groups[-1]]
        better = groups[-1] if high < low else groups[0]
        answer.append(f"{name} serves users with {better} ratings better: RMSE {min(low, high):.3f} against "
                      f"{max(low, high):.3f}.")  # fmt: skip
    best = {group: min(rmse, key=lambda name: rmse[name][group]) for group in groups}
    answer.append("; ".join(f"best with {group} ratings: {name}" for group, name in best.items()) + ".")
    title = "RMSE by number of training ratings"
    about = described(setting, "a fifth of each user's rows for test, drawn at random", seed, ranked=False)
    return about, table, [*answer, *remarks], lambda: figures.strata(rmse, metric="RMSE", title=title)


def _thin_out(train: pd.DataFrame, seed: int) -> tuple[pd.DataFrame, list[str]]:
    """Cut a seeded third of the users to 3 to 9 ratings where few have under ten; a sentence says so.

    There are none in any MovieLens set.
    """
    sizes = train.groupby("user").size()
    n_few = int((sizes < _FEW).sum())
    if n_few >= _ENOUGH_USERS:
        return train, []
    rng = np.random.default_rng([seed, 4])
    users = np.sort(sizes.index.to_numpy())
    chosen = np.sort(rng.choice(users, len(users) // 3, replace=False))
    n_kept = dict(zip(chosen.tolist(), rng.integers(3, _FEW, len(chosen)).tolist(), strict=True))
    order = rng.permutation(len(train))
    place = train.iloc[order].groupby("user").cumcount().sort_index()
    limit = train["user"].map(n_kept).fillna(np.inf)
    inside = place.reindex(train.index) < limit
    remark = (f"Only {n_few} users have fewer than {_FEW} training ratings here, so a seeded third of all "
            f"({len(chosen):,}) was thinned to 3 to {_FEW - 1}.")  # fmt: skip
    return train[inside], [remark]


@_study("metric-sensitivity", "Which metrics degrade fastest when predictions get noisy?")
def _metric_sensitivity(setting: Setting, seed: int) -> _Finding:
    """Noise of nine sizes on the predictions of MF-bias; every metric as a share of its noiseless value."""
    train, test = random_ratio(setting.frame, 0.2, seed=seed)
    model = train_model("MF-bias", train, setting, seed)
    items = np.arange(setting.n_items)
    clean = np.stack([model.predict(np.full(len(items), user), items) for user in range(setting.n_users)])
    noise = np.random.default_rng([seed, 5]).standard_normal(clean.shape)
    values: dict[str, list[float]] = {name: [] for name in (*ERRORS, *_NOISY_RANKING)}
    for sigma in SIGMAS:
        scores = clean + sigma * noise
        noisy = Predictor("noisy", partial(_scores_at, scores), Scores(scores))
        metrics = {**rating_errors(noisy, test), **ranking_metrics(noisy.source, train, test, _NOISY_RANKING)}
        for name, by_sigma in values.items():
            by_sigma.append(metrics[name])
    shares = {name: quality(name, by_sigma) for name, by_sigma in values.items()}
    halves = {name: half_point(share) for name, share in shares.items()}
    order = sorted(halves, key=lambda name: halves[name])
    at = {name: "never" if math.isinf(half) else f"{half:.2f}" for name, half in halves.items()}
    slowest = ", ".join(name for name in order if halves[name] == halves[order[-1]])
    listing = ", ".join(f"{name} {at[name]}" for name in order)
    answer = [
        f"{order[0]} degrades fastest: half of it is gone at sigma {at[order[0]]}; {slowest} slowest.",
        f"Sigma at which half is left: {listing} (errors: at which they have doubled; auc: above 0.5).",
        "Errors grow by the noise itself, whatever it does to the order; metrics of the first ten places",
        "fall as soon as the noise exceeds the small gaps between the best items.",
    ]

    curves = {name: dict(zip(SIGMAS, share, strict=True)) for name, share in shares.items()}
    draw = partial(figures.lines, curves, x="sigma of the noise", y="share of the noiseless quality")
    spread = f"MF-bias, whose predictions have a spread of {clean.std():.2f}."
    about = described(setting, _AT_RANDOM, seed, more=spread)
    return about, {"sigma": list(SIGMAS), **values}, answer, draw


def _scores_at(scores: Float, users: Array, items: Array) -> Float:
    return scores[users, items]


def quality(name: str, by_sigma: list[float]) -> list[float]:
    """Return what is left of a metric's noiseless value: 1 without noise.

    For an error it is how much larger it got.
    """
    first = by_sigma[0]
    if name in ERRORS:
        return [first / value for value in by_sigma]
    floor = 0.5 if name == "auc" else 0.0
    return [(value - floor) / (first - floor) if first > floor else math.nan for value in by_sigma]


def half_point(shares: list[float]) -> float:
    """Return the sigma at which half is left, interpolated between those tried; infinite if never."""
    for i in range(1, len(shares)):
        if shares[i] <= 0.5:
            fallen = (shares[i - 1] - 0.5) / (shares[i - 1] - shares[i])
            return SIGMAS[i - 1] + fallen * (SIGMAS[i] - SIGMAS[i - 1])
    return math.inf
