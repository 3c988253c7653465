"""A piece of the users, evaluated by itself wherever it is, and what it adds to the result of all of them.

Out of core, on a cluster and batch by batch the flow is the same: something brings together what belongs to a
user, an Evaluator measures the piece, and what the pieces say is joined. A piece crosses processes as JSON.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial as bind
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from recsys.conventions.decisions import Conventions
from recsys.errors import ColumnError, InputError, NoRowsError, NotDefinedError, Phrase, RecsysError
from recsys.evaluation.asked import Asked, join_asked
from recsys.evaluation.cautions import CAUTIONS, find_cautions
from recsys.evaluation.engine import merge, without_rows
from recsys.evaluation.exposure import catalogue_context
from recsys.evaluation.files.result_files import pack, unpack, whole_document
from recsys.evaluation.origin import StoredOrigin
from recsys.evaluation.reading import CommonInputs
from recsys.evaluation.result_facts import ResultFacts
from recsys.evaluation.results import Evaluation
from recsys.evaluation.run import EvaluationRun, RunOrigin
from recsys.inputs.files.formats import most_unpacked
from recsys.metrics.ranges import Range, union_ranges
from recsys.metrics.registry import Request
from recsys.records.arrays import Catalogue, Context, Ids, Lists, Partial
from recsys.records.facts import Caution

if TYPE_CHECKING:
    from recsys.evaluation.files.row_folders import RowFolder, RowWriter


class PieceCaution(NamedTuple):
    """A caution in the words of the largest piece that gives it, and the users of all that do."""

    caution: Caution
    largest: int
    n_users: int


@dataclass(frozen=True)
class Remarks:
    """What pieces report besides their numbers: facts, cautions, ranges of metrics, what was asked."""

    facts: ResultFacts = field(default_factory=ResultFacts)
    cautions: Mapping[str, PieceCaution] = field(default_factory=dict)
    ranges: Mapping[str, Range] = field(default_factory=dict)
    asked: Asked | None = None

    @classmethod
    def of(cls, piece: RunOrigin) -> Remarks:
        """Return those of one piece."""
        n = len(piece.partial.rows)
        cautions = {one.code: PieceCaution(one, n, n) for one in piece.cautions_of_data}
        return cls(piece.facts, cautions, piece.ranges, piece.asked)

    def join(self, other: Remarks) -> Remarks:
        """Return those of both: counts add up, anything else in the facts is that of the first."""
        cautions = dict(self.cautions)
        for code, new in other.cautions.items():
            old = cautions.get(code, new._replace(n_users=0))
            largest = max(old, new, key=lambda one: one.largest)
            cautions[code] = largest._replace(n_users=old.n_users + new.n_users)
        return Remarks(
            self.facts.joined(other.facts),
            cautions,
            union_ranges(self.ranges, other.ranges),
            join_asked([self.asked, other.asked]),
        )

    def cautions_for(
        self, n_users: int, counts: Mapping[str, int], silenced: frozenset[str]
    ) -> list[Caution]:
        """Return the cautions of pieces with at least half of all users, and those about all counts."""
        of_counts = find_cautions("evaluation", counts, silenced, of_counts=True)
        given = {one.code: one for one in of_counts}
        for code, one in self.cautions.items():
            if 2 * one.n_users >= n_users:
                words = one.caution.words
                words = words if one.largest == n_users else f"in the largest such batch, {words}"
                given[code] = Caution.of(code, words)
        return [given[code] for code in CAUTIONS if code in given]


@dataclass(frozen=True, eq=False)
class PieceResult:
    """What one piece adds to the result, without its rows: of the same size for any number of users.

    `matched`: how many users have both a list and truth; `examples`: a user of each side, for errors.
    """

    partial: Partial
    remarks: Remarks
    n_cases: int
    matched: int
    examples: tuple[Any, Any]

    @classmethod
    def of(cls, piece: RunOrigin, *, whole_users: bool = True) -> PieceResult:
        """Return what a piece adds; `whole_users`: no other piece has cases of the same users."""
        run, partial = piece.run, piece.partial
        if any(request.conventions(piece.conventions).ties == "given" for request in run.requests):
            _refuse_ties(run.ranking.lists)
        covered, cases = run.ranking.covered(run.truth), run.truth.cases
        matched = int((covered.code_of(cases.values) >= 0).sum())
        one, other = (ids.name(0) if len(ids) else None for ids in (covered, cases))
        small = _without_shared(without_rows(partial, whole_users=whole_users))
        remarks = Remarks.of(piece)
        clusters = partial.rows.clusters
        if clusters is not None and whole_users:
            facts = replace(remarks.facts, n_users=len(np.unique(clusters)))
            remarks = replace(remarks, facts=facts)
        return cls(small, remarks, len(partial.rows), matched, (one, other))

    def to_bytes(self) -> bytes:
        """Return the piece as compressed JSON."""
        document = {
            "partial": pack(self.partial),
            "notes": self.remarks.facts.to_notes(),
            "cautions": [
                [*one.caution.to_dict().values(), one.largest, one.n_users]
                for one in self.remarks.cautions.values()
            ],
            "ranges": pack(self.remarks.ranges),
            "question": cast("Asked", self.remarks.asked).to_dict(),
            "counts": [self.n_cases, self.matched, *self.examples],
        }
        return zlib.compress(json.dumps(document).encode(), 6)

    @classmethod
    def from_bytes(cls, data: bytes) -> PieceResult:
        """Return the piece that `to_bytes` wrote."""
        unpacking = zlib.decompressobj()
        text = unpacking.decompress(data, most_unpacked(len(data)))
        if not unpacking.eof:
            raise ValueError("it is cut off, or unpacks to far more than its size")
        document = json.loads(text)
        cautions = {row[0]: PieceCaution(Caution.of(*row[:2]), *row[3:]) for row in document["cautions"]}
        asked = Asked.read(document["question"])
        remarks = Remarks(
            ResultFacts.of_notes(document["notes"]), cautions, unpack(document["ranges"]), asked
        )
        n_cases, matched, *examples = document["counts"]
        return cls(unpack(document["partial"]), remarks, n_cases, matched, tuple(examples))


def refuse_no_order(table: str, column_of: Mapping[str, str], hint: str) -> None:
    """Refuse lists that only the order of their rows would rank."""
    if table == "lists" and not {"rank", "score"} & column_of.keys():
        raise ColumnError(
            "the lists have no rank and no score, and beyond memory and on a cluster rows have no order.",
            table=table,
            column="rank",
            hint=hint,
        )


def refuse_summaries(requests: Sequence[Request], *, by: Any, keeps_values: bool) -> None:
    """Refuse metrics whose summary needs the values of all users, where it cannot be computed from pieces."""
    of_values = [str(request) for request in requests if request.metric.pooling.summary is not None]
    if of_values and not keeps_values:
        raise NoRowsError(f"{of_values[0]}, whose summary is not a mean,")
    if of_values and by is not None:
        raise NotDefinedError(
            f"{of_values[0]}, whose summary is not a mean, has no values by group when users come in pieces.",
            hint=Phrase("Leave it out, or leave out {by=}."),
        )


def check_on_lists(requests: Iterable[Request], conventions: Conventions) -> None:
    """Raise NotDefinedError, with the reason, if a metric needs more than the k best items of each user.

    >>> from recsys import Conventions
    >>> from recsys.metrics.registry import parse_all
    >>> check_on_lists(parse_all("auc", None), Conventions())
    Traceback (most recent call last):
    ...
    recsys.errors.NotDefinedError: auc cannot be computed from lists of the best items: it compares ...
    """
    for request in requests:
        if reason := why_not_on_lists(request, conventions):
            raise NotDefinedError(
                f"{request} cannot be computed from lists of the best items: {reason}.",
                hint='Ask for metrics with a cut-off, such as "mrr@10", or rank the whole catalogue at once.',
            )


def why_not_on_lists(request: Request, conventions: Conventions) -> str | None:
    """Return why a metric needs more than the k best items of each user; None if these are enough."""
    if "candidates" in request.metric.needs:
        return "it compares the relevant items with every candidate"
    if request.k is None:
        return "it has no cut-off, so no length of the lists is enough"
    own = request.conventions(conventions)
    if own.ties not in ("by_id", "given"):
        return f"ties={own.ties!r} asks which items behind the last place have the same score"
    if own.judged_only == "yes":
        return "judged_only='yes' reads places below the first k, which unjudged items leave"
    return None


def _refuse_ties(lists: Lists) -> None:
    """Refuse equal scores in a list that are to stay in the order of the rows: in pieces rows have none."""
    if lists.scores is None:
        return
    equal = np.flatnonzero(lists.scores[1:] == lists.scores[:-1]) + 1
    if len(tied := np.setdiff1d(equal, lists.indptr)):
        user = lists.cases.name(int(np.searchsorted(lists.indptr, tied[0], side="right")) - 1)
        item = lists.items.name(lists.codes[tied[0]])
        raise InputError(
            f"user {user!r} has equal scores (item {item!r}), which "
            + Phrase("{ties='given'} leaves in the order of the rows, and beyond memory and on a cluster ")
            + "rows have none.",
            table="lists",
            hint=Phrase("Add a column such as rank, or choose {ties='by_id'} or {ties='expected'}."),
        )


def _without_shared(partial: Partial) -> Partial:
    """Return the partial without what all pieces share."""
    strata = {label: replace(s, partial=_without_shared(s.partial)) for label, s in partial.strata.items()}
    for label, stratum in strata.items():
        if stratum.of == "user":
            strata[label] = replace(stratum, partial=replace(stratum.partial, catalogue=None))
    given = partial.catalogue is not None and partial.catalogue.how == "ids"
    return replace(partial, context=Context(), strata=strata, catalogue=None if given else partial.catalogue)


def name_row(error: RecsysError, tables: Mapping[str, Any]) -> None:
    """Let an error about a row name its user and item: the number of a row of a piece means nothing."""
    table, row = tables.get(error.table or ""), error.row
    if table is not None and isinstance(row, int | np.integer) and 0 <= row < table.num_rows:
        cells = table.slice(int(row), 1).to_pylist()[0]
        error.row = ", ".join(f"{name} {value!r}" for name, value in cells.items())


def join_pieces(pieces: Sequence[PieceResult]) -> PieceResult:
    """Return what all the pieces add up to."""
    sides = zip(*(piece.examples for piece in pieces), strict=True)
    lists, truth = (next((one for one in side if one is not None), None) for side in sides)
    return PieceResult(
        merge([piece.partial for piece in pieces]),
        reduce(Remarks.join, (piece.remarks for piece in pieces)),
        sum(piece.n_cases for piece in pieces),
        sum(piece.matched for piece in pieces),
        (lists, truth),
    )


def result_of(
    piece: PieceResult,
    inputs: CommonInputs,
    conventions: Conventions,
    folder: RowFolder | None = None,
    *,
    catalogue: Ids | None = None,
    whole: EvaluationRun | None = None,
) -> Evaluation:
    """Return the result over all users, from what the pieces add up to and what they share.

    `folder`: where the values per user are, if they were kept; `catalogue`: the items of a model; `whole`:
    what was cut into the pieces, if it is in memory. Its cautions are then those of the result.
    """
    if not piece.matched and None not in piece.examples:
        lists, truth = piece.examples
        raise InputError(
            f"no user of the lists ({lists!r}, …) occurs in the truth ({truth!r}, …).",
            column="user",
            hint="Check that both sides use the same user ids.",
        )
    context = catalogue_context(inputs.requests, inputs.context)
    partial = replace(piece.partial, context=context)
    if folder is not None:
        partial = replace(partial, per_case=folder.rows(), terms=folder.terms)
    ids = inputs.catalogue[0] if catalogue is None else catalogue
    if partial.exposure and partial.catalogue is None and ids is not None:
        partial = replace(partial, catalogue=Catalogue(ids, len(ids)))
    if partial.strata:
        strata = {}
        for label in inputs.by.ordered(partial.strata):
            stratum = partial.strata[label]
            part = replace(stratum.partial, context=context)
            if stratum.of == "user":
                part = replace(part, catalogue=partial.catalogue)
            elif partial.catalogue is not None and partial.catalogue.how == "ids":
                ids = Ids(partial.catalogue.ids.values[inputs.by.members(label, partial.catalogue.ids)])
                part = replace(part, catalogue=Catalogue(ids, len(ids)))
            strata[label] = replace(stratum, partial=part)
        partial = replace(partial, strata=strata)
    if whole is None:
        cautions = piece.remarks.cautions_for(piece.n_cases, partial.counts, inputs.silenced)
    else:
        cautions = list(RunOrigin(whole, partial, conventions).cautions)
    remarks = piece.remarks
    origin = StoredOrigin(
        facts=remarks.facts, cautions=cautions, asked=remarks.asked, ranges=remarks.ranges, keys=folder
    )
    return Evaluation(partial, inputs.requests, conventions, origin=origin)


def written_result(
    piece: PieceResult,
    inputs: CommonInputs,
    conventions: Conventions,
    writer: RowWriter | None,
    *,
    catalogue: Ids | None = None,
    whole: EvaluationRun | None = None,
    **facts: Any,
) -> Evaluation:
    """Return the result of `result_of`, with these facts, once its folder of values per user is complete."""
    finish = bind(result_of, piece, inputs, conventions, catalogue=catalogue, whole=whole)
    if writer is None:
        return finish()
    document = whole_document(finish(writer.preview()), groups={}, run={})
    return finish(writer.close({"result": document, **facts}))
