"""User and item factors: the score of a pair is their product, summed in float64 in a fixed order.

Only the rows of the users to rank for are read, so memory-mapped matrices are not loaded whole. Files hold
one matrix each, and optionally the ids of its rows, as an array `user_ids` or `item_ids`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recsys import kernels
from recsys.errors import FileError, InputError
from recsys.inputs.containers import as_array
from recsys.inputs.files.formats import read_error, read_text_file
from recsys.inputs.ids import IdKind, ids_of_texts
from recsys.ranks.ranked_truth import CountedTruth
from recsys.ranks.rankings import RankingOptions
from recsys.ranks.sources.factor_files import pick_matrix
from recsys.ranks.sources.source import IdRows, UsersByItems
from recsys.records.arrays import Array, Codes, Ids, Int, Interactions, Lists, count_entries

if TYPE_CHECKING:
    from recsys.ranks.sources.blocked_scan import RowReader

FilePath = str | os.PathLike[str]


class Factors(UsersByItems):
    """Matrices U (users x factors) and V (items x factors), with optional ids and item biases.

    >>> import recsys
    >>> model = Factors([[1.0, 0.0], [0.0, 1.0]], [[3.0, 1.0], [2.0, 2.0], [1.0, 5.0]])
    >>> model
    Factors(2 users x 3 items, 2 factors)
    >>> recsys.evaluate(model, {0: [1], 1: [2]}, ["mrr", "auc"], seen={0: [0]})["mrr"]
    1.0
    """

    def __init__(
        self,
        users: Any,
        items: Any,
        *,
        user_ids: Iterable[Any] | None = None,
        item_ids: Iterable[Any] | None = None,
        item_bias: Any = None,
    ) -> None:
        self.users, self.items = as_matrix(users, "users"), as_matrix(items, "items")
        if self.users.shape[1] != self.items.shape[1]:
            raise InputError(
                f"users have shape {self.users.shape} and items {self.items.shape}: the factors do not fit.",
                hint="Both matrices must have the same number of columns (rows are users, and items).",
            )
        self.user_rows = IdRows(len(self.users), user_ids, what="user")
        self.item_rows = IdRows(len(self.items), item_ids, what="item")
        self.item_bias = None if item_bias is None else as_array(item_bias)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, {self.users.shape[1]} factors)"

    def judge(self, truth: Interactions, options: RankingOptions) -> CountedTruth:
        """Count the place of each judged item among all candidates."""
        self.check_ids(truth, "truth")
        rows = self.user_rows.row_of(truth.cases.values)
        known_cases = np.flatnonzero(rows >= 0)
        item = self.item_rows.row_of(truth.items.values)[truth.codes]
        case = np.repeat(np.arange(len(truth.cases)), truth.sizes)
        known = (item >= 0) & (rows[case] >= 0)
        sizes = np.bincount(case[known], minlength=len(truth.cases))[known_cases]
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        cases = truth.cases if len(known_cases) == len(rows) else Ids(truth.cases.values[known_cases])
        judged_items = (indptr, item[known].astype(np.int32))
        result = self._scan(rows[known_cases], cases, options, k=options.k, truth=judged_items)
        above = np.full(len(item), -1, dtype=np.int64)
        tied, ahead = np.zeros(len(item), dtype=np.int64), np.zeros(len(item), dtype=np.int64)
        above[known], tied[known], ahead[known] = result.above, result.tied, result.ahead
        n_candidates = np.zeros(len(rows), dtype=np.int64)
        n_candidates[known_cases] = result.n_candidates
        if options.k is None:
            return self._count_truth(truth, (above, tied, ahead), n_candidates, None)
        lengths = np.zeros(len(rows), dtype=np.int64)
        lengths[known_cases] = np.diff(result.list_indptr)
        scores = result.list_scores if options.with_scores else None
        shown = lengths, result.list_items, scores
        return self._count_truth(truth, (above, tied, ahead), n_candidates, shown)

    def top(self, users: Iterable[Any] | None, k: int, options: RankingOptions) -> Lists:
        """Return the k best candidates of these users, or of all."""
        cases, rows = self.cases_of(users)
        result = self._scan(rows, cases, options, k=k)
        codes = self._item_codes(result.list_items)
        return Lists(cases, self.item_rows.ids, result.list_indptr, codes, result.list_scores)

    def memory_needed(self, truth: Interactions, options: RankingOptions) -> int:
        """Return the least `memory`, in bytes, to rank the truth with: that of the smallest blocks."""
        from recsys.ranks.sources.blocked_scan import memory_needed

        tables = [data for data in (options.seen, options.eligible) if data is not None]
        n_seen = sum(int(data.sizes.max(initial=0)) for data in tables)
        return memory_needed(*self._row_readers(), options.k, int(truth.sizes.max(initial=0)), n_seen)

    def _row_readers(self) -> tuple[RowReader, RowReader]:
        from recsys.ranks.sources.blocked_scan import RowReader

        return RowReader("users", self.users), RowReader("items", self.items)

    def _scan(
        self,
        rows: Int,
        cases: Ids,
        options: RankingOptions,
        *,
        k: int | None = None,
        truth: tuple[Int, Codes] | None = None,
    ) -> kernels.ScanResult:
        item_rank = None if self.item_rows.sorted else self.item_rows.rank
        if options.memory is not None:
            from recsys.ranks.sources.blocked_scan import BlockedScan

            n_seen = sum(
                (count_entries(data, cases) for data in (options.seen, options.eligible) if data is not None),
                start=np.zeros(len(cases), dtype=np.int64),
            )
            blocks = BlockedScan(
                *self._row_readers(),
                memory=options.memory,
                k=k,
                deepest=options.deepest,
                item_bias=self.item_bias,
                item_rank=item_rank,
                never=self.excluded_rows(options),
                threads=options.threads,
                backend=options.backend,
                progress=options.progress,
            )
            return blocks.run(
                rows,
                truth,
                n_seen,
                lambda first, stop: self.rows_of_cases(options, Ids(cases.values[first:stop])),
            )
        seen, eligible, never = self.candidate_rows(options, cases)
        all_users = len(rows) == len(self.users) and bool((rows == np.arange(len(rows))).all())
        return kernels.scan(
            self.users,
            self.items,
            user_rows=None if all_users else rows,
            k=k,
            truth=truth,
            deepest=options.deepest,
            seen=seen,
            eligible=eligible,
            never=never,
            item_bias=self.item_bias,
            item_rank=item_rank,
            threads=options.threads,
            backend=options.backend,
            progress=options.progress,
        )


def as_matrix(values: Any, name: str) -> Array:
    """Return a matrix; raise an error at masked arrays and tables, which would lose mask or index."""
    if np.ma.isMaskedArray(values) or hasattr(values, "iloc"):
        raise InputError(
            f"{name} came as {type(values).__name__}, whose mask or index would be lost.",
            table=name,
            hint="Pass a plain array (.to_numpy()), with user_ids= and item_ids= for the ids.",
        )
    array = values if isinstance(values, np.ndarray) and values.dtype.kind != "V" else as_array(values)
    if array.ndim != 2:
        raise InputError(f"{name} must be a matrix; got shape {array.shape}.", table=name)
    return array


def read_factors(
    users: FilePath,
    items: FilePath,
    *,
    user_ids: FilePath | None = None,
    item_ids: FilePath | None = None,
    ids: IdKind | None = None,
) -> Factors:
    """Factors of the matrices in two files (.npy without loading it whole, .npz, .safetensors, .pt).

    Args:
        users: a file with one row of factors per user; of several matrices the one that is named so, as in U
            or user_factors.
        items: a file with one row of factors per item; it may be the same.
        user_ids: a file with the id of each row of users: one per line, or a .npy. By default the array
            `user_ids` next to the matrix; row numbers where there is none.
        item_ids: the same for the rows of items.
        ids: the type of ids, as in read_file: "str" for text, row numbers included; "int" for whole numbers;
            "auto" for the type that the file has, text or numbers. By default ids of files are text, ids
            next to a matrix stay as they are, and row numbers are numbers.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> np.save(folder / "U.npy", np.ones((2, 3))), np.save(folder / "V.npy", np.ones((4, 3)))
    (None, None)
    >>> read_factors(folder / "U.npy", folder / "V.npy").n_items
    4
    """
    from recsys.inputs.files.matrices import read_arrays

    for file in (users, items, *(f for f in (user_ids, item_ids) if f is not None)):
        if not isinstance(file, str | os.PathLike):
            raise FileError(
                f"a {type(file).__name__} is not the path of a file.",
                hint="recsys.Factors(U, V) takes matrices.",
            )
    arrays = [read_arrays(Path(file)) for file in (users, items)]
    matrices: list[Array] = []
    for what, file, found in zip(("user", "item"), (users, items), arrays, strict=True):
        named = {name: array for name, array in found.items() if array.ndim == 2}
        if not named:
            raise FileError(f"{file} holds no matrix.", hint="Store one with a row per user, or per item.")
        only = next(iter(named.values())) if len(named) == 1 else None
        matrices.append(pick_matrix(named, what, Path(file)) if only is None else only)
    source = Factors(
        *matrices,
        user_ids=row_ids(user_ids, "user", ids, (users, arrays[0])),
        item_ids=row_ids(item_ids, "item", ids, (items, arrays[1])),
    )
    return source.with_text_ids() if ids == "str" else source


def row_ids(
    file: FilePath | None,
    what: str,
    ids: IdKind | None,
    model: tuple[FilePath, Mapping[str, Array]] | None = None,
) -> Array | None:
    """Return the ids of the rows of a matrix, of the type `ids`; None for row numbers.

    They are those in the file, else the array `user_ids` or `item_ids` among the arrays of the model. Floats
    are refused: 10.0 would not match 10 elsewhere.
    """
    place, kind = str(file), ids or "str"
    cells: list[Any] | None = None
    stored: Array | None = None
    if file is None:
        source, arrays = model or ("", {})
        place, kind, stored = f"{what}_ids in {source}", ids or "auto", arrays.get(f"{what}_ids")
        if stored is None:
            return None
    try:
        if file is not None and Path(file).suffix.lower() != ".npy":
            cells = read_text_file(Path(file), "utf-8-sig").splitlines()
        elif file is not None:
            stored = np.load(file, mmap_mode="r", allow_pickle=False)  # a damaged header asks for any memory
        if stored is not None and stored.ndim == 1 and stored.dtype.kind in "iuUS":
            cells = stored.tolist()
    except OSError as error:
        raise read_error(place, error) from error
    except Exception as error:  # of many types where the header is damaged
        raise FileError(
            f"{place} cannot be read ({error}).", hint="Write one id per line, or a .npy of ids."
        ) from error
    if stored is not None:
        if cells is None:
            raise FileError(
                f"{place} holds {stored.dtype} values of shape {stored.shape}, not ids.",
                hint="Save one row of whole numbers or strings: np.save(path, ids.astype(np.int64)).",
            )
        kind = "int" if kind == "auto" and stored.dtype.kind in "iu" else kind
    texts = (
        id_.decode(errors="surrogateescape") if isinstance(id_, bytes) else str(id_) for id_ in cells or ()
    )
    return ids_of_texts(texts, kind, place, what)
