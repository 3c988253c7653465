"""Read what an evaluation was given: lists or a model, truth, and what all users share, each once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from recsys.errors import CutoffError, InputError, Phrase, UnknownNameError
from recsys.evaluation.options import EvaluationOptions, check_flag, check_ids, check_n_items
from recsys.evaluation.run import EvaluationRun
from recsys.inputs.containers import check_id_kind, columns_for, open_history, open_interactions, open_lists
from recsys.inputs.ids import ID_KINDS, encode, ids_to_array
from recsys.inputs.nested_dicts import read_dicts
from recsys.metrics.attributes import read_context, read_reference
from recsys.metrics.registry import Metrics, Request, largest_k, max_place_read, parse_all
from recsys.ranks.open_ranking import open_ranking, ranks_catalogue
from recsys.ranks.rankings import LISTS, ListRanking, Ranking, RankingOptions
from recsys.records.arrays import Array, Context, Ids, Interactions, Lists, cached_property, changed


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
        return open_history(options.seen, "seen", options.columns, options.ids)

    @cached_property
    def eligible(self) -> Interactions | None:
        """The only items of each user."""
        options = self.options
        return open_history(options.eligible, "eligible", options.columns, options.ids)

    @cached_property
    def context(self) -> Context:
        """What is known about items and users, but for the reference and what may come with the users."""
        options = self.options
        return read_context(
            train=open_history(options.train, "train", options.columns, options.ids),
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
        if reference is None or not ranks_catalogue(reference):
            return None
        return open_ranking(reference, ids=self.options.ids)

    @cached_property
    def reference(self) -> Lists | None:
        """The lists of another model, as long as the metrics read them."""
        model = self.reference_model
        if model is None:
            reference, ids = self.options.reference, self.options.ids
            if isinstance(reference, str | Path):
                return open_lists(reference, "reference", self.options.columns, ids=ids)
            return None if reference is None else check_id_kind(read_reference(reference), "reference", ids)
        of_reference = [r for r in self.requests if "reference" in r.metric.needs]
        top: Lists = model.top(None, list_length(of_reference or self.requests, model), RankingOptions())
        return top

    @cached_property
    def catalogue(self) -> tuple[Ids | None, int | None]:
        """The ids of all items and their number; without them, lists of codes have the items of all codes."""
        if self.options.catalogue is None and self.items_of is not None:
            return self.items_of.items, len(self.items_of.items)
        return parse_catalogue(self.options.catalogue)

    @cached_property
    def items_of(self) -> Any:
        """What the entries of lists stand for."""
        if self.options.items_of is None:
            return None
        from recsys.inputs.items_of import read_items_of

        return read_items_of(
            self.options.items_of, columns_for("items_of", self.options.columns), self.options.ids
        )

    @cached_property
    def by(self) -> Any:
        """The groupings that `by` names; None without one."""
        if self.options.by is None:
            return None
        from recsys.evaluation.groups import Groupings

        return Groupings.of(self.options.by, self.context)

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
        lists = lists if self.items_of is None else self.items_of.as_text(lists)
        lists, truth = read_dicts(lists, truth) or (lists, truth)

        def asks() -> tuple[Array, int]:
            nonlocal truth
            truth = open_interactions(truth, "truth", columns, ids=ids, allow_empty=is_batch)
            return truth.cases.values, self._length_to_ask(lists)

        ranking = open_ranking(lists, columns, ids=ids, allow_empty=is_batch, asks=asks)
        known = open_interactions(truth, "truth", columns, ids=ids, allow_empty=is_batch)
        if self.items_of is not None and not isinstance(ranking, ListRanking):
            raise InputError(
                "the model ranks items already, and items_of= is about the entries of lists.",
                hint=Phrase("Leave out {items_of=}."),
            )
        ranking = self._among(ranking)
        needs = {need for request in self.requests for need in request.metric.needs}
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
        histories = {"train": options.train, "seen": options.seen if seen is None else seen}
        pairs = [name for name, data in histories.items() if isinstance(data, list | tuple | np.ndarray)]
        if pairs:
            from recsys.evaluation.cautions import are_pairs

            pairs = [name for name in pairs if are_pairs(histories[name], known.cases.values)]
        context = changed(context, reference=self.reference, eligible=ranking_options.eligible)
        of_entries: EvaluationRun | None = None
        if self.items_of is not None:
            entries = ranking.lists
            ranking = self._as_items(entries, known, ranking_options, is_batch=is_batch)
            ranking_options = replace(ranking_options, exclude=None, eligible=None)  # they left the entries
            if ranking.lists.facts.entries_of_several and not is_batch:
                of_entries = self._of_entries(entries, known)
        return EvaluationRun(
            ranking,
            known,
            self.requests,
            ranking_options,
            context,
            of_entries=of_entries,
            clusters=options.clusters,
            case_weights=options.case_weights,
            item_weights=options.item_weights,
            by=self.by,
            shared=not is_batch,
            silenced=self.silenced,
            pairs=tuple(pairs),
        )

    def _length_to_ask(self, model: Any) -> int:
        """Return how many items a model is asked for that can only recommend."""
        longest = largest_k(self.requests)
        if longest is None:
            raise CutoffError(
                f"{type(model).__name__} has to be asked for lists of some length, and a metric has no "
                "cut-off.",
                hint='Give every metric one, such as "mrr@10".',
            )
        return longest

    def _among(self, ranking: Ranking) -> Ranking:
        """Return the ranking with what is known of its candidates."""
        return ranking.among(*self.catalogue, complete=self.complete, source=self.candidates)

    def _as_items(
        self, entries: Lists, truth: Interactions, how: RankingOptions, *, is_batch: bool
    ) -> Ranking:
        """Return the items that the entries of ready lists stand for."""
        from recsys.ranks.listed_items import as_items

        lists = as_items(entries, self.items_of, truth, how, self.context.never, is_batch=is_batch)
        return self._among(ListRanking(lists))

    def _of_entries(self, entries: Lists, truth: Interactions) -> EvaluationRun | None:
        """Return the evaluation in which entries are the items, by the metrics that read places alone."""
        from recsys.inputs.items_of import ItemsOf
        from recsys.ranks.listed_items import entries_of

        requests = [r for r in self.requests if not r.metric.needs and r.metric.kind == "per_case"]
        table = self.items_of
        if not isinstance(table, ItemsOf) or not requests or self.options.item_weights is not None:
            return None
        return EvaluationRun(
            ListRanking(entries),
            entries_of(truth, table),
            requests,
            RankingOptions(backend=self.options.backend, threads=self.options.threads),
            Context(),
            clusters=self.options.clusters,
            case_weights=self.options.case_weights,
            shared=False,
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
        return open_interactions(data, name, self.options.columns, ids=self.options.ids, allow_empty=True)


def list_length(requests: Sequence[Request], ranked: Ranking) -> int:
    """Return the length the lists must have for the metrics about the items shown."""
    longest = largest_k(r for r in requests if "lists" in r.metric.needs)
    if longest is not None:
        return longest
    return ranked.n_items or 1


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
