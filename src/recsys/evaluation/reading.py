"""Read what an evaluation was given: lists or a model, truth, and what all users share, each once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from recsys.errors import CutoffError, IdTypeError, InputError, Phrase, UnknownNameError
from recsys.evaluation.asked import LISTS
from recsys.evaluation.options import EvaluationOptions, check_flag, check_ids, check_n_items
from recsys.evaluation.run import EvaluationRun
from recsys.inputs import read_interactions, read_lists
from recsys.inputs.containers import as_array
from recsys.inputs.ids import ID_KINDS, IdKind, encode, ids_to_array
from recsys.inputs.nested_dicts import read_dicts
from recsys.metrics.attributes import read_context, read_reference
from recsys.metrics.registry import Metrics, Request, largest_k, max_place_read, parse_all
from recsys.ranks.sources import RankingOptions, UsersByItems, is_model_path
from recsys.records.arrays import Context, Ids, Interactions, Lists, cached_property

if TYPE_CHECKING:
    from recsys.ranks.sources import Source

_Data = TypeVar("_Data", Lists, Interactions)
MODEL_ATTRIBUTES = ("user_factors", "get_user_representations", "predict", "state_dict")
_PAIRS_ONLY = ("seen", "eligible")  # only (user, item) pairs are read of these, which is much faster


class CommonInputs:
    """What all users share: the metrics, and every input but lists and truth, read once when it is needed."""

    def __init__(self, metrics: Metrics, options: EvaluationOptions) -> None:
        if options.ids not in (None, *ID_KINDS):
            raise UnknownNameError("value of ids", options.ids, ID_KINDS)
        self.options = options
        self.requests = parse_all(metrics, options.k)
        if options.aggregate is not None:
            from recsys.stats.aggregates import Aggregate

            aggregate = Aggregate.of(options.aggregate)
            self.requests = [replace(request, aggregate=aggregate) for request in self.requests]
        self.exclude = exclude_items(options.exclude)
        self.candidates = LISTS

    @cached_property
    def seen(self) -> Interactions | None:
        """What each user had already."""
        options = self.options
        return load_optional_interactions(options.seen, "seen", options.columns, options.ids)

    @cached_property
    def eligible(self) -> Interactions | None:
        """The only items of each user."""
        options = self.options
        return load_optional_interactions(options.eligible, "eligible", options.columns, options.ids)

    @cached_property
    def context(self) -> Context:
        """What is known about items and users, but for the reference and what may come with the users."""
        options = self.options
        return read_context(
            train=load_optional_interactions(options.train, "train", options.columns, options.ids),
            popularity=options.popularity,
            items=options.items,
            users=options.users,
            embeddings=options.embeddings,
            profiles=options.profiles,
            intents=options.intents,
            never=self.exclude,
        )

    @cached_property
    def reference_model(self) -> Any:
        """The model that makes the reference lists, None if they are ready; its rows have the same ids."""
        reference = self.options.reference
        is_model = isinstance(reference, UsersByItems) or is_model_path(reference)
        if not is_model and not hasattr(reference, "item_factors"):
            return None
        return load_ranking(reference, ids=self.options.ids)

    @cached_property
    def reference(self) -> Lists | None:
        """The lists of another model, as long as the metrics read them."""
        model = self.reference_model
        if model is None:
            reference, ids = self.options.reference, self.options.ids
            if isinstance(reference, str | Path):
                return _read_lists_file(reference, "reference", self.options.columns, ids)
            return None if reference is None else _check_id_kind(read_reference(reference), "reference", ids)
        of_reference = [r for r in self.requests if "reference" in r.metric.needs]
        top: Lists = model.top(None, list_length(of_reference or self.requests, model), RankingOptions())
        return top

    @cached_property
    def catalogue(self) -> tuple[Ids | None, int | None]:
        """The ids of all items and their number."""
        return parse_catalogue(self.options.catalogue)

    @cached_property
    def by(self) -> Any:
        """The groups that a name stands for, or `by` as it was given."""
        if not isinstance(self.options.by, str):
            return self.options.by
        from recsys.evaluation.groups import groups_from_name

        return groups_from_name(self.options.by, self.context)

    @cached_property
    def silenced(self) -> frozenset[str]:
        """The codes of the suppressed cautions."""
        if self.options.cautions is None:
            return frozenset()
        from recsys.evaluation.cautions import silenced_codes

        return silenced_codes(self.options.cautions)

    @cached_property
    def complete(self) -> bool:
        """Whether each list ranks every candidate."""
        return check_flag("full_ranking", self.options.full_ranking)

    def read(self) -> None:
        """Read everything now."""
        _ = self.seen, self.eligible, self.context, self.reference, self.catalogue
        _ = self.silenced, self.complete, self.by

    def run_of(
        self,
        lists: Any,
        truth: Any,
        *,
        seen: Any = None,
        eligible: Any = None,
        is_batch: bool = False,
    ) -> EvaluationRun:
        """Return the evaluation of these users; those of a batch may be without rows, and on different sides.

        `seen` and `eligible` are of these users alone, where they were not given for all.
        """
        options, columns, ids = self.options, self.options.columns, self.options.ids
        dicts = read_dicts(lists, truth)
        lists, truth = (lists, truth) if dicts is None else dicts
        can_recommend = not _is_data(lists) and callable(getattr(lists, "recommend", None))
        asks = can_recommend and not hasattr(lists, "user_factors")
        ranking = None if asks else load_ranking(lists, columns, ids=ids, allow_empty=is_batch)
        known = load_interactions(truth, "truth", columns, ids=ids, allow_empty=is_batch)
        if ranking is None:
            longest = largest_k(self.requests)
            if longest is None:
                raise CutoffError(
                    f"{type(lists).__name__} has to be asked for lists of some length, and a metric has no "
                    "cut-off.",
                    hint='Give every metric one, such as "mrr@10".',
                )
            from recsys.ranks.sources import lists_from_recommender

            asked = lists_from_recommender(lists, known.cases.values, longest)
            ranking = load_ranking(asked, columns, allow_empty=is_batch)
        needs = {need for request in self.requests for need in request.metric.needs}
        ready = isinstance(ranking, Lists)
        chosen = self.exclude is not None or options.eligible is not None or eligible is not None
        if ready and chosen and "eligible" not in needs:
            raise InputError(
                "exclude= and eligible= choose candidates, and ready lists have none.", table="lists"
            )
        if not ready and options.catalogue is not None:
            hint = Phrase("Leave out {catalogue=}, or use {exclude=}.")
            raise InputError("the items of the model are the catalogue.", hint=hint)
        ranking_options = RankingOptions(
            seen=self._of_users("seen", seen),
            eligible=self._of_users("eligible", eligible),
            exclude=self.exclude,
            backend=options.backend,
            threads=options.threads,
            progress=options.progress,
            k=list_length(self.requests, ranking) if "lists" in needs else None,
            deepest=max_place_read(self.requests),
        )
        context = self.context
        if self.reference_model is not None:
            try:
                self.reference_model.check_ids(known, "truth")
            except InputError as error:
                error.hint = Phrase("Give the reference its ids: {Factors.user_ids=}, {Factors.item_ids=}.")
                raise
        catalogue, n_items = self.catalogue
        histories = {"train": options.train, "seen": options.seen if seen is None else seen}
        pairs = [name for name, data in histories.items() if isinstance(data, list | tuple | np.ndarray)]
        if pairs:
            from recsys.evaluation.cautions import are_pairs

            pairs = [name for name in pairs if are_pairs(histories[name], known.cases.values)]
        return EvaluationRun(
            ranking,
            known,
            self.requests,
            ranking_options,
            replace(context, reference=self.reference, eligible=ranking_options.eligible),
            catalogue=catalogue,
            n_items=n_items,
            complete=self.complete,
            clusters=options.clusters,
            case_weights=options.case_weights,
            item_weights=options.item_weights,
            by=self.by,
            shared=not is_batch,
            silenced=self.silenced,
            pairs=tuple(pairs),
            candidates=self.candidates,
        )

    def _of_users(self, name: str, data: Any) -> Interactions | None:
        """Return what was given for all users, or with some of them."""
        for_all: Interactions | None = getattr(self, name)
        if data is None:
            return for_all
        if for_all is not None:
            raise InputError(
                f"{name}= was given for all users, and again with some of them.",
                table=name,
                hint=f"Pass {name}= once: to the Evaluator, or to each update.",
            )
        return load_interactions(data, name, self.options.columns, ids=self.options.ids, allow_empty=True)


def load_ranking(
    lists: Any,
    columns: Mapping[str, Any] | None = None,
    *,
    ids: IdKind | None = None,
    allow_empty: bool = False,
) -> Lists | Source:
    """Ready lists, or a source that ranks the catalogue."""
    if isinstance(lists, UsersByItems):
        return cast("Source", lists)
    if not _is_data(lists) and (callable(lists) or any(hasattr(lists, n) for n in MODEL_ATTRIBUTES)):
        from recsys.ranks.sources import from_model

        return from_model(lists)
    if is_model_path(lists):
        from recsys.ranks.sources import load_model

        return load_model(lists, ids=ids or "str")
    if isinstance(lists, str | Path):
        ready = _read_lists_file(lists, "lists", columns, ids)
    else:
        if hasattr(lists, "detach") or (isinstance(lists, np.ndarray) and lists.dtype.kind == "f"):
            values = as_array(lists)
            if values.dtype.kind == "f" and (np.isfinite(values) & (values != np.floor(values))).any():
                raise InputError(
                    f"lists came as {type(lists).__name__} of shape {values.shape} that holds fractions; "
                    "items are whole numbers or text.",
                    table="lists",
                    hint="Did you mean recsys.Scores(matrix)? It ranks all items by their scores.",
                )
        ready = read_lists(lists, columns=columns_for("lists", columns), allow_empty=allow_empty)
        _check_id_kind(ready, "lists", ids)
    return ready


def _read_lists_file(path: str | Path, table: str, columns: Any, ids: IdKind | None) -> Lists:
    from recsys.inputs.files import read_file

    return read_file(path, "lists", columns=columns_for(table, columns), ids=ids or "str")


def _check_id_kind(data: _Data, table: str, ids: IdKind | None) -> _Data:
    """Raise an error if data in memory has ids of another type than asked for: only files are converted."""
    if ids in (None, "auto"):
        return data
    for what, own in (("user", data.cases), ("item", data.items)):
        if len(own) and own.kind != ids:
            raise IdTypeError(
                Phrase("{ids=} is for files, and the ", ids=ids)
                + f"{what} ids of data in memory are {own.kind}.",
                table=table,
                column=what,
                hint=Phrase("Convert them, for example with .astype({}), or leave out {ids=}.", ids),
            )
    return data


def _is_data(lists: Any) -> bool:
    """Return whether it is a container or a table, which may have a column of any name."""
    return isinstance(lists, np.ndarray | dict | list | tuple) or hasattr(lists, "__dataframe__")


def load_interactions(
    data: Any,
    table: str,
    columns: Mapping[str, Any] | None,
    *,
    ids: IdKind | None = None,
    allow_empty: bool = False,
) -> Interactions:
    """Return the items each user had; `table` is the name in errors and in `columns`."""
    if isinstance(data, str | Path):
        from recsys.inputs.files import read_file

        data = read_file(data, "truth", columns=columns_for(table, columns), ids=ids or "str")
    interactions = read_interactions(
        data,
        table=table,
        columns=columns_for(table, columns),
        pairs_only=table in _PAIRS_ONLY,
        allow_empty=allow_empty,
        negatives=table == "truth",
    )
    return _check_id_kind(interactions, table, ids)


def load_optional_interactions(
    data: Any, table: str, columns: Mapping[str, Any] | None = None, ids: IdKind | None = None
) -> Interactions | None:
    """Read a history, or return None without one; `seen={}` is a history in which no user had anything."""
    is_empty = table == "seen" and isinstance(data, Mapping) and not data
    return None if data is None else load_interactions(data, table, columns, ids=ids, allow_empty=is_empty)


def columns_for(table: str, columns: Any) -> Any:
    """Return the column names of one table, if each table has its own."""
    per_table = isinstance(columns, Mapping) and any(isinstance(v, Mapping) for v in columns.values())
    return columns.get(table) if per_table else columns


def list_length(requests: Sequence[Request], ranked: Lists | Source) -> int:
    """Return the length the lists must have for the metrics about the items shown."""
    longest = largest_k(r for r in requests if "lists" in r.metric.needs)
    if longest is not None:
        return longest
    return 1 if isinstance(ranked, Lists) else ranked.n_items


def exclude_items(items: Iterable[Any] | None) -> Iterable[Any] | None:
    """Return the items of `exclude`, checked; a list where they can be read only once."""
    if items is not None:
        check_ids(items, "exclude", "item ids")
    return list(items) if isinstance(items, Iterator) else items  # they are read several times


def parse_catalogue(catalogue: int | Iterable[Any] | None) -> tuple[Ids | None, int | None]:
    """Return the ids of a catalogue and their number, or the number alone."""
    if catalogue is None or isinstance(catalogue, int | np.integer):
        return None, check_n_items(catalogue)
    check_ids(catalogue, "catalogue", "all item ids, or their number")
    values = ids_to_array(catalogue, table="catalogue", column="item")
    if len(values) == 0:
        raise InputError(
            "the catalogue is empty.", table="catalogue", hint="Pass all item ids, or their number."
        )
    ids, _ = encode(values, table="catalogue", column="item")
    return ids, len(ids)
