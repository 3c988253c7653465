"""What can be evaluated, in one shape: for each case items in an order, or what puts them in one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Protocol

from recsys.errors import InputError
from recsys.kernels import BACKENDS
from recsys.ranks.ranked_truth import RankedTruth, match_truth
from recsys.records.arrays import Array, Context, Ids, Interactions, Lists, changed, restrict_to_cases

LISTS, ALL, ELIGIBLE, SAMPLED = "ready lists", "all items", "eligible items", "sampled items"
SCORED = "items with a score"  # the scores themselves rule some out

TrainingItems = Literal["ranked", "with a score"]


@dataclass(frozen=True, eq=False)
class RankingOptions:
    """How a ranking is made or read: what is left out, and what is asked of it."""

    seen: Interactions | None = None
    eligible: Interactions | None = None
    exclude: Iterable[object] | None = None
    backend: str = "auto"
    threads: int | None = None
    progress: Callable[[int, int], object] | None = None
    k: int | None = None
    """The length of the lists, if metrics about the items shown need lists."""
    with_scores: bool = False
    """Whether these lists are kept with their scores, as `CountedTruth.top`."""
    deepest: int | None = None
    """The largest place that any metric reads; None if a metric reads all places."""
    memory: int | None = None
    """Bytes that ranking may take besides what it is given and what it returns; None for as it likes.

    Factors are then read in blocks, memory-mapped ones straight from the file, whose pages are handed back
    once they have been read: neither U nor V is ever held whole unless it fits. The result has the same bits.
    """
    shared: bool = False
    """Whether some user of the truth must be ranked for; a block of users need not have one."""
    rank_gaps: str = "closed"
    """Whether the places of ranks that ready lists leave out stay empty, as the conventions say it."""
    places_only: bool = False
    """Whether nothing but the places of the judged items is read, not even which items they are."""
    own_clusters: bool = True
    """Whether the users that a table names for its cases are joined; others may stand for them."""


class RankingFacts(NamedTuple):
    """What a result says of how it was ranked; None where there is nothing to say."""

    backend: str | None = None
    """That a backend was asked for and did not take part."""
    training_items: TrainingItems | None = None
    """That nothing says which items users had before, so that these are ranked too."""


class Ranking(Protocol):
    """Ready lists, factors, scores, models: whatever gives the judged items of a case their places."""

    @property
    def lists(self) -> Lists:
        """The lists that were handed over; without rows where items are ranked only when asked for."""

    @property
    def given(self) -> object:
        """What was handed over, as a user passes it."""

    @property
    def catalogue(self) -> Ids | None:
        """The ids of the items it chooses from, if they are known."""

    @property
    def n_items(self) -> int | None:
        """How many items it chooses from, if that is known."""

    @property
    def n_places(self) -> int:
        """How many places the longest of its lists has."""

    @property
    def complete(self) -> bool:
        """Whether it ranks every candidate."""

    def rank(self, truth: Interactions, options: RankingOptions) -> RankedTruth:
        """Find the place of each judged item."""

    def of_cases(self, cases: Ids) -> Ranking:
        """Return the same ranking for some cases only."""

    def covered(self, truth: Interactions) -> Ids:
        """Return the cases that it has items for, as far as those of the truth tell."""

    def cases_with(self, truth: Interactions) -> tuple[Ids, Array | None]:
        """Return the cases of an evaluation against this truth, and their users where users have several."""

    def among(self, catalogue: Ids | None, n_items: int | None, *, complete: bool, source: str) -> Ranking:
        """Return the ranking with what is known of its candidates; an error if it knows them itself."""

    def chosen_from(self, options: RankingOptions) -> str:
        """Return what the items of each list were chosen from."""

    def check_inputs(
        self,
        truth: Interactions,
        options: RankingOptions,
        context: Context,
        *,
        cases_are_users: bool,
        needs: Collection[str],
    ) -> None:
        """Raise an error if the other inputs do not fit it."""

    def facts(self, options: RankingOptions, context: Context) -> RankingFacts:
        """Return what a result says of how it was ranked."""


@dataclass(frozen=True, eq=False)
class ListRanking:
    """Lists that are ready, and what is known of the items they were chosen from.

    `source`: what that is, as `Asked` has it; the lists themselves do not say.
    """

    lists: Lists
    catalogue: Ids | None = None
    n_items: int | None = None
    complete: bool = False
    source: str = LISTS

    @property
    def given(self) -> Lists:
        return self.lists

    @property
    def n_places(self) -> int:
        return int(self.lists.sizes.max(initial=0))

    def rank(self, truth: Interactions, options: RankingOptions) -> RankedTruth:
        """Match the lists with the truth; an entry that stands for other items would become those here."""
        lists = self.lists if options.own_clusters else replace(self.lists, clusters=None)
        return match_truth(
            lists,
            truth,
            complete=self.complete,
            backend=options.backend,
            threads=options.threads,
            shared=options.shared,
            rank_gaps=options.rank_gaps,
            places_only=options.places_only,
        )

    def of_cases(self, cases: Ids) -> ListRanking:
        return replace(self, lists=restrict_to_cases(self.lists, cases))

    def covered(self, truth: Interactions) -> Ids:
        del truth
        return self.lists.cases

    def cases_with(self, truth: Interactions) -> tuple[Ids, Array | None]:
        matched = match_truth(self.lists, truth)
        return matched.cases, matched.clusters

    def among(
        self, catalogue: Ids | None, n_items: int | None, *, complete: bool, source: str
    ) -> ListRanking:
        return changed(self, catalogue=catalogue, n_items=n_items, complete=complete, source=source)

    def chosen_from(self, options: RankingOptions) -> str:
        del options
        return self.source

    def check_inputs(
        self,
        truth: Interactions,
        options: RankingOptions,
        context: Context,
        *,
        cases_are_users: bool,
        needs: Collection[str],
    ) -> None:
        """Raise an error if candidates were to be chosen, unless a metric reads which they are."""
        del truth, context, cases_are_users
        if (options.exclude is not None or options.eligible is not None) and "eligible" not in needs:
            raise InputError(
                "exclude= and eligible= choose candidates, and ready lists have none.", table="lists"
            )

    def facts(self, options: RankingOptions, context: Context) -> RankingFacts:
        del context
        name: Any = options.backend
        backend = BACKENDS.get(name) if isinstance(name, str) else None
        if backend is None or backend.match_lists is not None:
            return RankingFacts()
        text = f"backend={backend.name!r} ranks factors and scores; ready lists were matched on the CPU"
        return RankingFacts(backend=text)
