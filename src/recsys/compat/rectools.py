"""`calc_metrics` of RecTools over this library: its metric objects and tables in, its dict of numbers out.

Objects are known by the name of their class and its attributes, so that RecTools need not be imported. Its
tables become lists with the same numbers: a place that the rank column leaves out holds an item that no user
wants, and an item listed twice is two relevant items.

>>> import pandas as pd
>>> class NDCG:  # as rectools.metrics has it
...     k, divide_by_achievable, debias_config = 2, False, None
>>> reco = pd.DataFrame({"user_id": [1, 1, 2], "item_id": [10, 20, 10], "rank": [1, 2, 1]})
>>> interactions = pd.DataFrame({"user_id": [1, 2], "item_id": [20, 10]})
>>> calc_metrics({"ndcg@2": NDCG()}, reco, interactions)
{'ndcg@2': 0.5}
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import ColumnError, DuplicateError, InputError, RecsysWarning, warn
from recsys.evaluation.evaluate import evaluate
from recsys.evaluation.results import Evaluation
from recsys.metrics.registry import Request
from recsys.records.arrays import Array

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["calc_metrics"]
_USER, _ITEM, _RANK = _COLUMNS = ["user_id", "item_id", "rank"]


def calc_metrics(
    metrics: Mapping[str, Any],
    reco: pd.DataFrame,
    interactions: pd.DataFrame | None = None,
    prev_interactions: pd.DataFrame | None = None,
    catalog: Collection[Any] | None = None,
    ref_reco: pd.DataFrame | Mapping[Any, pd.DataFrame] | None = None,
) -> dict[str, float]:
    """The number of every metric by its name; of an Intersection with several references, name_reference.

    Args:
        metrics: {name: object of rectools.metrics}.
        reco: recommendations with the columns user_id, item_id and rank.
        interactions: what was relevant: user_id, item_id.
        prev_interactions: what users had before, likewise, for novelty, popularity and serendipity.
        catalog: all items that could be recommended.
        ref_reco: recommendations of another model, or {name: recommendations}, for Intersection.

    Raises:
        InputError: something that a metric needs is not given.
    """
    tables = _Tables(reco, interactions, prev_interactions, catalog, ref_reco)
    results: dict[str, float] = {}
    judged: dict[Any, dict[str, tuple[Any, str]]] = {}
    for name, metric in metrics.items():
        classes = [base.__name__ for base in type(metric).__mro__]
        kind = next((known for known in classes if known in _JUDGED or known in _OTHERS), None)
        if kind in _OVER_TRUTH and interactions is not None and not len(interactions):
            results[name] = math.nan  # the mean over no user
        elif kind in _JUDGED:
            judged.setdefault(metric.debias_config, {})[name] = metric, f"{_JUDGED[kind](metric)}@{metric.k}"
        elif kind in _OTHERS:
            results |= {name + ending: value for ending, value in _OTHERS[kind](metric, tables)}
        else:
            warn(RecsysWarning, f"Custom metrics are not supported: {name!r}, a {classes[0]}, is left out.")
    for asked in judged.values():  # what reads the places of relevant items, in one pass
        lists, truth = _places(
            reco, tables.truth(next(iter(asked.values()))[0]), max(m.k for m, _ in asked.values())
        )
        whole = next((m for m, request in asked.values() if request.startswith(("accuracy", "mcc"))), None)
        n_items = None if whole is None else len(tables.need("catalog", whole))
        found = _evaluate(lists, truth, [request for _, request in asked.values()], catalogue=n_items)
        for name, (_, request) in asked.items():  # added up as there, for the last bit
            results[name] = float(np.mean(found.values_of(request)))
    return results


class _Tables:
    """What the metrics are given."""

    def __init__(self, reco: Any, interactions: Any, previous: Any, catalog: Any, references: Any) -> None:
        self.reco, self._references = reco, references
        self._given = {"interactions": interactions, "prev_interactions": previous, "catalog": catalog}
        for name, table in {**self._given, "catalog": None, "reco": reco}.items():
            missing = [
                c for c in _COLUMNS[: 3 if name == "reco" else 2] if c not in getattr(table, "columns", [c])
            ]
            if missing:
                raise ColumnError(f"{name} has no column {missing[0]!r}.", table=name, column=missing[0])
        _check_ranks("reco", reco)

    def need(self, name: str, metric: Any) -> Any:
        """What a metric cannot do without."""
        if self._given[name] is None:
            raise InputError(f"{type(metric).__name__} needs {name}.", hint=f"Pass {name}= to calc_metrics.")
        return self._given[name]

    def truth(self, metric: Any) -> Any:
        """The interactions; with a debias_config, those that RecTools draws of them."""
        interactions = self.need("interactions", metric)
        if metric.debias_config is None:
            return interactions
        from rectools.metrics import debias_interactions

        return debias_interactions(interactions, metric.debias_config)

    def shown(self, k: int) -> Any:
        """The rows of the first k places, best first."""
        return self.reco.loc[self.reco[_RANK] <= k, _COLUMNS].sort_values(_RANK, kind="stable")

    def references(self) -> dict[str, Any]:
        """The lists of other models, by what they add to the name of a result."""
        if self._references is None or (isinstance(self._references, Mapping) and not self._references):
            raise InputError("Intersection needs ref_reco.", hint="Pass ref_reco= to calc_metrics.")
        if isinstance(self._references, Mapping):
            return {f"_{name}": table for name, table in self._references.items()}
        return {"": self._references}


def _check_ranks(name: str, table: pd.DataFrame) -> None:
    """Refuse ranks that are not places of a list: below 1, between two places, or twice for a user.

    RecTools takes them, and its metrics then contradict each other or leave their ranges.
    """
    ranks = table[_RANK]
    wrong = ranks[~((ranks >= 1) & (ranks == ranks.round()))].tolist()
    if wrong:
        hint = (
            "Ranks are whole numbers from 1, the best item. Of an item at rank 0 RecTools' HitRate is 1, "
            "its MAP 0 and its NDCG infinite."
        )
        raise InputError(f"{name} holds the rank {wrong[0]!r}.", table=name, column=_RANK, hint=hint)
    shared = table.loc[table.duplicated([_USER, _RANK]), [_USER, _RANK]].to_numpy().tolist()
    if shared:
        user, rank = shared[0]
        raise DuplicateError(
            f"{name} holds two items of user {user!r} at rank {rank}.",
            table=name,
            column=_RANK,
            hint="Give each item of a user a rank of its own. RecTools takes both as the item of that place, "
            "and its Precision, MCC and NDCG may be above 1.",
        )


def _places(reco: pd.DataFrame, truth: pd.DataFrame, n_places: int) -> tuple[Array, pd.DataFrame]:
    """One row of item codes for each user of the truth, best first, and the codes that are relevant.

    These come as user (the row), item and rank, NaN where the list lacks the item.
    """
    import pandas as pd

    users = pd.Index(truth[_USER].unique())
    shown = reco.loc[reco[_USER].isin(users), _COLUMNS]
    shown = shown.assign(time=shown.groupby([_USER, _ITEM]).cumcount())
    pairs = truth[[_USER, _ITEM]].drop_duplicates()
    wanted = pairs.merge(shown, how="left", on=[_USER, _ITEM]).fillna({"time": 0})
    codes = pd.concat([shown, wanted]).groupby([_ITEM, "time"], sort=False).ngroup().to_numpy()
    lists = np.tile(len(codes) + np.arange(n_places), (len(users), 1))
    place = shown[_RANK].round().astype(int).to_numpy() - 1
    inside = place < n_places
    lists[users.get_indexer(shown[_USER])[inside], place[inside]] = codes[: len(shown)][inside]
    relevant = {"user": users.get_indexer(wanted[_USER]), "item": codes[len(shown) :]}
    return lists, pd.DataFrame({**relevant, _RANK: wanted[_RANK].to_numpy()})


def _evaluate(lists: Any, truth: pd.DataFrame, requests: Any, **options: Any) -> Evaluation:
    """The values under the decisions of RecTools; other decisions are among the options."""
    decisions = {name: options.pop(name) for name in ("no_list", "no_truth") if name in options}
    conventions = Conventions.of("rectools").but(**decisions)
    pairs = truth[[column for column in truth.columns if column in (_USER, _ITEM, "user", "item")]]
    return evaluate(lists, pairs, requests, conventions=conventions, cautions="ignore", **options)


def _of_lists(
    metric: Any, tables: _Tables, request: str | Request, **options: Any
) -> Iterator[tuple[str, float]]:
    """A metric of what is shown, over the users of the table of recommendations."""
    lists, truth = options.pop("lists", tables.shown(metric.k)), options.pop("truth", tables.reco)
    if lists.empty:  # no user has a list: each counts as 0, or there is no mean
        yield "", 0.0 if options.get("no_list") == "empty" and len(truth) else math.nan
        return
    yield "", _evaluate(lists, truth, request, **{"no_list": "skip", **options})[str(request)]


def _partial_auc(metric: Any, tables: _Tables) -> Iterator[tuple[str, float]]:
    """Lists go on with k items that no user wants, and then with the relevant items they lack."""
    import pandas as pd

    truth = tables.truth(metric)
    own = tables.reco[tables.reco[_USER].isin(truth[_USER])]
    n_places = (int(own[_RANK].max()) if len(own) else 0) + metric.k
    lists, wanted = _places(own, truth, n_places)
    user, place = np.divmod(np.arange(lists.size), n_places)
    missing = wanted[wanted[_RANK].isna()]
    table = pd.DataFrame(
        {
            "user": np.append(user, missing["user"]),
            "item": np.append(lists.ravel(), missing["item"]),
            _RANK: np.append(place, n_places + missing.groupby("user").cumcount()) + 1,
        }
    )
    if metric.insufficient_handling != "ignore":  # lists that lack relevant items and k others
        users = pd.Index(truth[_USER].unique())
        n_listed = own.groupby(_USER)[_RANK].max().reindex(users, fill_value=0)  # gaps are others
        n_others = n_listed.to_numpy() - np.bincount(
            wanted["user"][wanted[_RANK].notna()], minlength=len(lists)
        )
        short = np.intersect1d(missing["user"], np.flatnonzero(n_others < metric.k))
        if len(short) and metric.insufficient_handling == "raise":
            raise InputError(
                f"{type(metric).__name__}: {len(short)} users have lists that lack relevant items and have "
                f"fewer than {metric.k} others.",
                hint="Recommend more, or use insufficient_handling='exclude' or 'ignore'.",
            )
        table, wanted = (rows[~rows["user"].isin(short)] for rows in (table, wanted))
        if wanted.empty:
            return iter([("", math.nan)])
    if any(base.__name__ == "PAP" for base in type(metric).__mro__):  # of the first k relevant items alone
        wanted = wanted.sort_values(_RANK, kind="stable").groupby("user").head(metric.k)
    request = f"pauc@{metric.k}"
    return iter([("", _evaluate(table, wanted, request, full_ranking=True)[request])])


def _coverage(metric: Any, tables: _Tables) -> Iterator[tuple[str, float]]:
    n_items = len(tables.need("catalog", metric))
    request = f"{'coverage' if metric.normalize else 'distinct_items'}@{metric.k}"
    options = {"catalogue": n_items if metric.normalize else None}
    found = 0.0 if tables.shown(metric.k).empty else dict(_of_lists(metric, tables, request, **options))[""]
    return iter([("", found if metric.normalize else int(found))])


def _popularity(metric: Any, tables: _Tables) -> Iterator[tuple[str, float]]:
    previous = tables.need("prev_interactions", metric)
    counts = previous[_ITEM].value_counts(normalize=metric.normalize).to_dict()
    return _of_lists(metric, tables, f"average_popularity@{metric.k}", popularity=counts)


def _novelty(metric: Any, tables: _Tables) -> Iterator[tuple[str, float]]:
    previous = tables.need("prev_interactions", metric)[[_USER, _ITEM]]
    return _of_lists(metric, tables, f"novelty@{metric.k}", train=previous)


def _serendipity(metric: Any, tables: _Tables) -> Iterator[tuple[str, float]]:
    truth, previous = (tables.need(name, metric) for name in ("interactions", "prev_interactions"))
    n_items, users = len(tables.need("catalog", metric)), tables.shown(metric.k)[_USER]
    if len(users) and not users.isin(truth[_USER]).any():
        return iter([("", 0.0)])
    given = {"truth": truth, "train": previous[[_USER, _ITEM]], "catalogue": n_items}
    request = f"popularity_serendipity(over=list)@{metric.k}"
    return _of_lists(metric, tables, request, no_truth="zero", **given)


def _diversity(metric: Any, tables: _Tables) -> Iterator[tuple[str, float]]:
    """The distance of two items is what the calculator of RecTools says of their ids."""
    items = tables.reco[_ITEM].unique()

    def distance(first: Array, second: Array) -> float:
        pair = items[[int(first[0])]], items[[int(second[0])]]
        found = float(metric.distance_calculator[pair][0])
        if math.isnan(found):
            raise InputError(
                f"items {pair[0][0]!r} and {pair[1][0]!r} have no distance.", hint="Add features."
            )
        return found

    request = Request.of(f"ild@{metric.k}", distance=distance)
    return _of_lists(metric, tables, request, embeddings=(items, np.arange(len(items))[:, None]))


def _intersection(metric: Any, tables: _Tables) -> Iterator[tuple[str, float]]:
    """The recall of what is shown in the lists of another model."""
    ref_k = metric.k if metric.ref_k is None else metric.ref_k
    for ending, reference in tables.references().items():
        _check_ranks("ref_reco", reference)
        shown = tables.shown(metric.k)
        if reference.empty or shown.empty:  # the mean over no user
            yield ending, math.nan
            continue
        lists, truth = _places(reference, shown, ref_k)
        yield ending, _evaluate(lists, truth, f"recall@{ref_k}")[f"recall@{ref_k}"]


def _sufficient(metric: Any, tables: _Tables) -> Iterator[tuple[str, float]]:
    request = f"filled@{metric.k}" if metric.deep else f"user_coverage(least={metric.k})@{metric.k}"
    return _of_lists(metric, tables, request, no_list="empty")


def _unrepeated(metric: Any, tables: _Tables) -> Iterator[tuple[str, float]]:
    """Without `deep`, the share of the users who have a list that repeats nothing."""
    if metric.deep:
        return _of_lists(metric, tables, f"valid@{metric.k}")
    shown = tables.shown(metric.k)
    repeating = shown.loc[shown.duplicated([_USER, _ITEM]), _USER]
    once = shown[~shown[_USER].isin(repeating)]
    return _of_lists(metric, tables, f"user_coverage@{metric.k}", lists=once, truth=shown, no_list="empty")


def _covered_users(metric: Any, tables: _Tables) -> Iterator[tuple[str, float]]:
    truth, shown = tables.need("interactions", metric), tables.shown(metric.k)
    lists = shown[shown[_USER].isin(truth[_USER])]
    return _of_lists(metric, tables, f"user_coverage@{metric.k}", lists=lists, truth=truth, no_list="empty")


_JUDGED: dict[Any, Callable[[Any], str]] = {
    "Precision": lambda metric: "precision(over=min)" if metric.r_precision else "precision",
    "Recall": lambda _: "recall",
    "F1Beta": lambda metric: str(Request.of("f", beta=float(metric.beta))),
    "Accuracy": lambda _: "accuracy",
    "MCC": lambda _: "mcc",
    "HitRate": lambda _: "hit",
    "MAP": lambda metric: "map(over=k)" if metric.divide_by_k else "map",
    "NDCG": lambda metric: "ndcg(ideal=reachable)" if metric.divide_by_achievable else "ndcg",
    "MRR": lambda _: "mrr",
}
_OVER_TRUTH = {*_JUDGED, "PartialAUC", "PAP", "CoveredUsers"}  # the mean over the users of the interactions
_OTHERS: dict[Any, Callable[[Any, _Tables], Iterator[tuple[str, float]]]] = {
    "PartialAUC": _partial_auc,
    "PAP": _partial_auc,
    "CatalogCoverage": _coverage,
    "MeanInvUserFreq": _novelty,
    "AvgRecPopularity": _popularity,
    "IntraListDiversity": _diversity,
    "Serendipity": _serendipity,
    "Intersection": _intersection,
    "SufficientReco": _sufficient,
    "UnrepeatedReco": _unrepeated,
    "CoveredUsers": _covered_users,
}
