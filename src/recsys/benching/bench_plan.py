"""What a table of interactions shows: its columns, what its ratings mean, how to split it and why.

Nothing is trained here: `recsys bench` evaluates by the plan, `recsys init` writes it down as a protocol, and
`recsys run` makes the same plan of the same table, with what was written down in place of what is chosen.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.exceptions import NarwhalsError

from recsys.display.number_words import plural
from recsys.display.text_tables import note_text
from recsys.errors import (
    ColumnError,
    FileError,
    IdTypeError,
    InputError,
    Phrase,
    SplitError,
    came_as,
    check_choice,
)
from recsys.evaluation.results import Evaluation
from recsys.inputs import read_interactions, read_lists
from recsys.inputs.files.formats import open_file
from recsys.inputs.files.ncf import has_no_header
from recsys.inputs.files.reader import read_file, read_table
from recsys.inputs.frames import as_frame, column_array, detect_columns, find_columns
from recsys.inputs.ids import convert_ids
from recsys.inputs.timestamps import Clock
from recsys.records.arrays import Array, Bool, Ids, Int, Interactions, Lists
from recsys.records.checks import is_number
from recsys.splits import Split, split
from recsys.splits.split_result import SIDES
from recsys.splits.split_table import FrameTable

_ROLES = {"user": "users", "item": "items", "time": "times", "grade": "ratings"}
PARTS = ("train", "validation", "test")
_TOP_SHARE = 0.8  # relevant is what reaches this share of the highest rating: 4 of 5, 8 of 10
_HIGHEST_STAR = 10.0  # whole numbers beyond it are counts, unless they crowd at the upper end
_HELD_OUT_SHARE = 0.1  # of the rows, for test and for validation
_KNOWN_SHARE, _FEWEST_KNOWN = 0.5, 20  # of the users of a test, those a border in time must leave a history
_FEWEST_ROWS = 3  # of a user: to learn from, to validate and to test
_HIGHEST_GRADE = 1e300  # as conventions have it
_MOST_WITHOUT = 0.1  # of the users of the test may lack a list before it is worth a word
_STRANGE_SHARE, _STRANGE = 0.005, 1.5  # so few ratings so far above all others are not on their scale
_PERCENT = 100.0  # the highest rating of a scale, unless most ratings are the lowest
_SPIKE, _SPIKE_TIMES = 0.01, 5  # of the rows at the newest time, and times those of any other: a placeholder
_LONG_HISTORY, _LONG_TEST = 30, 5  # users with so many rows can spare five for the test


Remark = tuple[str, str]  # a heading and a sentence
Relevant = Mapping[str, Any]  # {column: kind, kinds, or {kind: weight}}
_ODD = ("Odd ratings", "Odd times")


class Ratings(NamedTuple):
    """From which rating on an item is relevant (None: every row is), why, and what is odd about them."""

    relevant_from: float | None
    why: str
    odd: str = ""


@dataclass(frozen=True, eq=False)
class BenchPlan:
    """A table with its roles, the meaning of its ratings, and its parts.

    Attributes:
        table: the rows that are used.
        columns: the column of each role; None for a role that is not read.
        ratings: what counts as relevant, and why.
        how: the way to split, by its name in `recsys.splits`, and `parameters`, what it is called with.
        why: the reason for this way.
        masks: which rows are train, validation and test.
        split: the split itself; None if the parts came from a folder.
        remarks: what else was seen, such as rows that were left out: (heading, sentence) each.
        n_left_out: how many rows were left out.
        seed: of the split.
        rating_column: where ratings were looked for; rows without one were left out, even if every row that
            is left is relevant.
    """

    table: FrameTable
    columns: Mapping[str, Any]
    ratings: Ratings
    how: str
    parameters: Mapping[str, Any]
    why: str
    masks: Mapping[str, Bool]
    split: Split | None
    remarks: tuple[Remark, ...]
    n_left_out: int = 0
    seed: int | None = None
    rating_column: str | None = None

    @property
    def odd(self) -> list[Remark]:
        """The remarks to be careful about."""
        return [one for one in self.remarks if one[0] in _ODD]

    @property
    def test(self) -> Interactions:
        """What is to be found: the rows of the test whose users have a history."""
        test = self.held_out("test")
        if test is None:
            raise SplitError(
                "no user of the test has a history, so nothing can be predicted.",
                hint="Users need a row to learn from and a row to predict.",
            )
        return test

    def history(self, *parts: str) -> Interactions:
        """Return all rows of these parts together."""
        return self._read(np.logical_or.reduce([self.masks[part] for part in parts]), parts[0])

    def held_out(self, part: str) -> Interactions | None:
        """Return the rows of a part whose users occur in the parts before it; None if there are none."""
        mask = self.masks[part] & self._known("user", part)
        return self._read(mask, part) if mask.any() else None

    def _read(self, mask: Bool, name: str) -> Interactions:
        return read_interactions(self.table.take(mask), columns=self.columns, table=name)

    def _known(self, role: str, part: str) -> Bool:
        """Of each row, whether its user (or item) occurs in the parts before this one."""
        ids, codes = self.table.ids(role)
        known = np.zeros(len(ids), dtype=bool)
        for before in PARTS[: PARTS.index(part)]:
            known[codes[self.masks[before]]] = True
        return np.asarray(known[codes])

    def explain(self) -> list[Remark]:
        """Return the plan in sentences, each with its heading."""
        sizes = [plural(len(self.table), "row")]
        sizes += [plural(len(self.table.ids(role)[0]), role) for role in ("user", "item")]
        named = [f"{_ROLES[role]} {name!r}" for role, name in self.columns.items() if name is not None]
        unused = [name for name in self.table.names if name not in self.columns.values()]
        named += [f"not used: {', '.join(unused)}"] if unused else []
        parts = [f"{int(mask.sum()):,} {part}" for part, mask in self.masks.items() if mask.any()]
        return [
            ("Data", f"{', '.join(sizes)}. Columns: {'; '.join(named)}."),
            ("Relevance", self.ratings.why),
            ("Split", self.why + f" Rows: {', '.join(parts)}."),
            *self.remarks,
            *self._strangers(),
        ]

    def to_text(self) -> str:
        return "\n".join(note_text(f"{heading}: " + sentence) for heading, sentence in self.explain())

    def _strangers(self) -> list[Remark]:
        """State how many users and items of the test are new to training."""
        remarks = []
        for role, consequence in (
            ("user", "left out, as nothing is known about them"),
            ("item", "these count as misses for a model that cannot recommend them"),
        ):
            codes = self.table.ids(role)[1]
            is_new = self.masks["test"] & ~self._known(role, "test")
            if is_new.any():
                n_new, n_all = (len(np.unique(codes[mask])) for mask in (is_new, self.masks["test"]))
                rows = plural(int(is_new.sum()), "row")
                sentence = f"{n_new:,} of {n_all:,} {role}s ({rows}); {consequence}."
                remarks.append(("New in the test", sentence))
        return remarks


def make_plan(
    data: Any,
    *,
    columns: Mapping[str, str | None] | None = None,
    relevant_from: float | None = None,
    seed: int = 0,
    decided: Mapping[str, Any] | None = None,
    relevant: Relevant | None = None,
) -> BenchPlan:
    """Read what a table is, and propose how to evaluate recommenders on it.

    Args:
        data: a pandas, polars or Arrow table with columns of users and items, if possible of times and
            ratings too.
        columns: the column of each role ("user", "item", "time", "grade") that is not recognised; None for a
            role that is not to be read.
        relevant_from: the rating from which on an item is relevant; by default the ratings decide.
        seed: of a random split.
        decided: the split that a protocol has written down, {"how": ..., and parameters}, instead of what the
            table proposes; every row is then relevant if relevant_from is None.
        relevant: which kinds of events are relevant: {column: kind}, {column: kinds} or {column: {kind:
            weight}}. Of several events of a user and an item the strongest counts, of these the first.

    Raises:
        InputError: the data is not a table, or has a single user or item.
        SplitError: no user has enough rows.
    """
    if relevant is not None:
        weighed = weigh_events(data, columns, relevant, relevant_from)
        plan = make_plan(
            weighed.frame, columns=weighed.columns, relevant_from=weighed.ratings.relevant_from, seed=seed
        )
        n_left_out = plan.n_left_out + weighed.n_weaker
        return replace(
            plan, ratings=weighed.ratings, remarks=(*weighed.remarks, *plan.remarks), n_left_out=n_left_out
        )
    frame = as_frame(data)
    data = data if frame is None else frame
    table, roles, remarks, _ = _read_roles(data, columns)
    n_left_out, time = len(data) - len(table), roles["time"]
    rating_column = roles["grade"]
    if decided is not None and relevant_from is None:
        ratings = Ratings(None, "every row is relevant, as was decided.")
    else:
        ratings = read_ratings(table, rating_column, relevant_from)
    roles["grade"] = rating_column if ratings.relevant_from is not None else None
    table = FrameTable(table.frame, roles)
    if decided is None:
        how, parameters, why = _choose_split(table, time)
    else:
        parameters = dict(decided)
        how = parameters.pop("how")
        why = f"{how}, as was decided."
    try:
        made = cast("Split", split(table, how, seed=seed, **parameters))
    except SplitError as error:
        if decided is not None:
            raise
        if time is not None and np.bincount(table.ids("user")[1]).max() >= _FEWEST_ROWS:
            untimed: Any = {**(columns or {}), "time": None}
            plan = make_plan(data, columns=untimed, relevant_from=relevant_from, seed=seed)
            not_read = ("Not read", f"the column {time!r}: its times do not order the rows of a user.")
            return replace(plan, remarks=(not_read, *plan.remarks))
        raise SplitError(
            "no user has enough rows for a test, a validation and something to learn from: " + error.message,
            hint="Users need at least three rows; check which column is the user.",
        ) from error
    test = made.mask("test")
    n_users = len(np.unique(table.ids("user")[1][test]))
    if how == "leave_last" and test.sum() > parameters["n"] * n_users:
        together = f"{int(test.sum()):,} rows of {plural(n_users, 'user')}"
        why += f" Rows of the same time stay together, so the test has {together}."
    remarks += [("Odd ratings", ratings.odd)] if ratings.odd else []
    n_short = made.notes.get("users_too_short", 0)
    if n_short:
        remarks.append(("Only trained on", f"{plural(n_short, 'user')} with too few rows for a test."))
    masks = {part: made.mask(part) for part in PARTS}
    return BenchPlan(
        table, roles, ratings, how, parameters, why, masks, made, tuple(remarks), n_left_out, seed,
        rating_column,
    )  # fmt: skip


class Weighed(NamedTuple):
    """Events with their weights as grades, the strongest of each user and item, and what that means."""

    frame: Any
    columns: dict[str, Any]
    ratings: Ratings
    n_weaker: int

    @property
    def remarks(self) -> list[Remark]:
        """How many rows were left out."""
        rows = plural(self.n_weaker, "row")
        words = f"{rows} of a user and an item with a stronger or an earlier equal event."
        return [("Left out", words)] if self.n_weaker else []


def weigh_events(
    data: Any,
    columns: Mapping[str, str | None] | None,
    relevant: Relevant,
    relevant_from: float | None = None,
    *,
    repeats: bool = False,
) -> Weighed:
    """Return events with their weights as grades; with `repeats` all of them.

    >>> import pandas as pd
    >>> events = pd.DataFrame({"user": [1, 1, 2], "item": [5, 5, 5], "event": ["view", "buy", "view"]})
    >>> weigh_events(events, None, {"event": "buy"}).frame.to_native()["relevance"].tolist()
    [1.0, 0.0]
    """
    frame = as_frame(data)
    if frame is None:
        raise came_as("data", data, hint="Pass a pandas, polars or Arrow table, or the path of a file.")
    is_one = isinstance(cast("object", relevant), Mapping) and len(relevant) == 1
    if not is_one or (columns or {}).get("grade") is not None:
        raise InputError(
            "what is relevant is asked for by the kinds in one column, without ratings.",
            hint=Phrase("Such as {bench.relevant=}.", relevant={"event": "purchase"}),
        )
    ((name, asked),) = relevant.items()
    if name not in frame.columns:
        raise ColumnError(
            f"there is no column {name!r}.", table="data", hint=f"Columns are {', '.join(frame.columns)}."
        )
    kinds = np.array([_name_of_kind(kind) for kind in column_array(frame[name]).tolist()], dtype=object)
    if not isinstance(asked, Mapping):
        asked = dict.fromkeys(asked if isinstance(asked, list | tuple | set) else [asked], 1.0)
    weights = {_name_of_kind(kind): weight for kind, weight in asked.items()}
    known = sorted(set(kinds.tolist()))
    for kind, weight in weights.items():
        check_choice(f"kind of {name}", kind, known)
        if not is_number(weight) or weight < 0:
            raise InputError(f"the weight of {kind!r} is {weight!r}.", hint="Pass a number of 0 or more.")
    positive = [float(weight) for weight in weights.values() if weight > 0]
    if not positive:
        raise InputError("no kind has a weight above 0.", hint="Name what is relevant.")
    grade = next(word for word in ("relevance", f"{name} relevance") if word not in frame.columns)
    values = np.array([float(weights.get(kind, 0.0)) for kind in kinds.tolist()])
    frame = frame.with_columns(nw.new_series(grade, values, backend=frame.implementation))
    named = {**(columns or {}), "grade": grade}
    border = min(positive) if relevant_from is None else relevant_from
    counts = [kind for kind in known if weights.get(kind, 0.0) >= border]
    others = [kind for kind in known if kind not in counts]
    why = f"{name!r}: {', '.join(counts)} {'counts' if len(counts) == 1 else 'count'} as relevant; "
    ratings = Ratings(border, why + (f"{', '.join(others)}: only learnt from." if others else "every row."))
    if repeats:
        return Weighed(frame, named, ratings, 0)
    table = FrameTable(frame, find_columns(list(frame.columns), tuple(_ROLES), cast("Any", named), "data"))
    first = first_of_pairs(table, values)
    return Weighed(as_frame(table.take(first)), named, ratings, int((~first).sum()))


def _name_of_kind(kind: Any) -> str:
    """Return the name of a kind of events; those without one are named, too."""
    is_missing = kind is None or (not isinstance(kind, str) and str(kind) in ("nan", "NaT", "<NA>"))
    return "(none)" if is_missing or kind == "" else str(kind)


def plan_of_folder(
    folder: str | os.PathLike[str],
    *,
    columns: Mapping[str, str | None] | None = None,
    relevant_from: float | None = None,
    relevant: Relevant | None = None,
    **reading: Any,
) -> BenchPlan:
    """Return the plan of parts that `recsys split` or `recsys bench --split-to` wrote.

    Other arguments are those of make_plan.

    The files are those that the manifest names, as they were written; without a manifest those that are
    called train.csv, say, with an ending of a format that is read.

    Args:
        folder: with train and test, and perhaps validation, and the manifest.
        columns: as for make_plan.
        relevant_from: as for make_plan.
        relevant: as for make_plan.
        reading: how files are read, as `read_table` takes it.
    """
    from recsys.splits.manifest import part_file, read_manifest

    place = Path(folder)
    manifest: dict[str, Any] = {"how": "by hand", "parameters": {}}
    if not place.is_dir() or (place / "manifest.json").exists():
        manifest = read_manifest(place / "manifest.json")
    files = {part: part_file(place, part, manifest) for part in SIDES}
    lacking = [part for part in ("train", "test") if files[part] is None]
    if lacking:
        raise FileError(
            f"{place} has no file of the part {lacking[0]!r}.", hint="Name a folder that recsys split wrote."
        )
    parts = {part: read_events(file, columns=columns, **reading) for part, file in files.items() if file}
    parameters = {key: value for key, value in manifest["parameters"].items() if key != "columns"}
    plan = plan_of_parts(parts, columns=columns, relevant_from=relevant_from, relevant=relevant)
    return replace(
        plan,
        how=manifest["how"],
        parameters=parameters,
        why=f"as {place.name} has it.",
        seed=manifest.get("seed"),
    )


def plan_of_parts(
    parts: Mapping[str, Any],
    *,
    columns: Mapping[str, str | None] | None = None,
    relevant_from: float | None = None,
    relevant: Relevant | None = None,
) -> BenchPlan:
    """Return the plan of tables that are split already.

    Args:
        parts: {"train": table, "test": table}, and perhaps validation, and known and validation_known, what
            is known about users who are not in train: pandas, polars or Arrow. Columns that not all of
            them have are not read.
        columns: as for make_plan.
        relevant_from: as for make_plan.
        relevant: as for make_plan.
    """
    frames = {part: as_frame(table) for part, table in parts.items()}
    for part, frame in frames.items():
        if frame is None:
            raise came_as(part, parts[part], hint="Pass a pandas, polars or Arrow table.")
    shared = [name for name in frames["train"].columns if all(name in f.columns for f in frames.values())]
    try:
        whole = nw.concat([frame.select(shared) for frame in frames.values()])
    except (TypeError, NarwhalsError) as error:
        raise InputError(
            f"the parts are not tables of one kind: {error}.", hint="Pass all of them as pandas, say."
        ) from error
    sides = [part if part in PARTS else "train" for part in frames]
    weighed = None
    if relevant is not None:
        weighed = weigh_events(whole, columns, relevant, relevant_from, repeats=True)
        whole, columns = weighed.frame, weighed.columns
    side = np.repeat(sides, [len(frame) for frame in frames.values()])
    table, roles, remarks, rows = _read_roles(whole, columns, repeats=True)
    ratings = read_ratings(table, roles["grade"], relevant_from) if weighed is None else weighed.ratings
    roles["grade"] = roles["grade"] if ratings.relevant_from is not None else None
    masks = {part: side[rows] == part for part in PARTS}
    if not masks["validation"].any():
        remarks.append(("Not tuned", "there is no validation part."))
    return BenchPlan(
        FrameTable(table.frame, roles), roles, ratings, "by hand", {}, "as the parts were given.",
        masks, None, tuple(remarks), len(whole) - len(table),
    )  # fmt: skip


def read_events(
    path: str | os.PathLike[str], *, columns: Mapping[str, str | None] | None = None, **reading: Any
) -> Any:
    """Return the table in a file; where cells of ratings are empty, they are missing.

    Args:
        path: the file.
        columns: as for make_plan.
        reading: how it is read, as `read_table` takes it.
    """
    source, named = open_file(path), dict[str, Any](columns or {})
    try:
        return read_table(source, columns=named or None, **reading)[0]
    except FileError:
        unrated: Any = {**named, "grade": None}  # whose cells stay text
        table, _ = read_table(source, columns=unrated, **reading)
        name = detect_columns(list(table.columns), ("grade",), named, source.name).get("grade")
        if name is None or "" not in set(table[name]):
            raise
        ratings = []
        for cell in table[name]:
            try:
                ratings.append(float(cell) if cell else np.nan)
            except ValueError:
                raise FileError(
                    f"{source.name}: the grade {cell!r} is not a number.",
                    hint=Phrase("Fix the cell, or name another column: {bench.columns.grade=}."),
                ) from None
        return table.assign(**{name: ratings})


def read_rated(path: str, columns: Mapping[str, str] | None, **reading: Any) -> tuple[Interactions, int]:
    """Return the interactions in a file without the rows that lack a rating, and how many these are.

    A text without a header has users, items, ratings and times, in this order.
    """
    if reading.get("format") is None and Path(path).is_file() and has_no_header(path):
        reading["format"] = "ratings"
    try:
        return read_file(path, "truth", columns=columns, **reading), 0
    except InputError:
        if path == "-":
            raise
        frame = as_frame(read_events(path, columns=columns, **reading))
        roles = find_columns(list(frame.columns), tuple(_ROLES), columns, path)
        table, name = FrameTable(frame, roles), roles.get("grade")
        missing = np.zeros(len(table), dtype=bool) if name is None else _missing_ratings(table, name)
        if not missing.any():
            raise
    return read_interactions(table.take(~missing), columns=roles, table=path), int(missing.sum())


def _read_roles(
    data: Any, columns: Mapping[str, str | None] | None, *, repeats: bool = False
) -> tuple[FrameTable, dict[str, Any], list[Remark], Int]:
    """Return the usable rows, the column of each role, remarks on what was left out, and row numbers.

    Args:
        data: the table.
        columns: the columns that were named.
        repeats: keep rows that repeat a user and an item.
    """
    frame = as_frame(data)
    if frame is None:
        raise InputError(
            f"the data came as {type(data).__name__}.",
            table="data",
            hint="Expected a pandas, polars or Arrow table, or the path of a file.",
        )
    if len(frame) == 0:
        raise InputError("the data has no rows.", table="data", hint="Check the filter or the file.")
    given: Any = columns
    found = find_columns(list(frame.columns), tuple(_ROLES), given, "data")
    roles: dict[str, Any] = {role: found.get(role) for role in _ROLES}
    frame = _with_whole_ids(frame, roles)
    remarks: list[Remark] = []
    table, rows = FrameTable(frame, roles), np.arange(len(frame))

    def leave_out(those: Bool) -> tuple[FrameTable, Int]:
        return FrameTable(as_frame(table.take(~those)), roles), rows[~those]

    if roles["time"] is not None and not repeats:
        filler, odd = _placeholders(table.clock(roles["time"], None))
        remarks += odd
        if 2 * filler.sum() > len(filler):
            roles["time"] = None
        elif odd:
            table, rows = leave_out(filler)
    for role, noun in (("time", "time"), ("grade", "rating")):
        name = roles[role]
        if name is None:
            continue
        missing = table.clock(name, None).missing if role == "time" else _missing_ratings(table, name)
        if missing.all():
            roles[role] = None
            remarks.append(("Not read", f"the column {name!r}, which is empty."))
        elif missing.any():
            table, rows = leave_out(missing)
            remarks.append(("Left out", f"{plural(int(missing.sum()), 'row')} without a {noun}."))
    _refuse_a_single_id(table)
    first = np.ones(len(table), dtype=bool) if repeats else first_of_pairs(table)
    if not first.all():
        remarks.append(("Left out", f"{describe_repeats(first)}."))
        table, rows = leave_out(~first)
    return table, roles, remarks, rows


def _with_whole_ids(frame: Any, roles: Mapping[str, Any]) -> Any:
    """Return the table with ids as numbers where all are whole.

    Of equal rows the lower comes first, also of text.
    """
    for role in ("user", "item"):
        ids, codes = FrameTable(frame, roles).ids(role)
        numbers = _whole_numbers(ids)
        if numbers is not None:
            column = nw.new_series(roles[role], numbers[codes], backend=frame.implementation)
            frame = frame.with_columns(column)
    return frame


def _whole_numbers(ids: Ids) -> Array | None:
    """Return the number of each id, if they are texts and every one is a whole number of 64 bits."""
    if ids.kind == "int":
        return None
    try:
        whole, codes = convert_ids(ids, np.arange(len(ids), dtype=np.int32), None, "ids", str)
    except IdTypeError:
        return None
    return None if whole is ids else whole.values[codes]


def words_on_missing_lists(evaluation: Evaluation) -> list[str]:
    """Return how many users of the test lack a list.

    It says nothing where they are left out, or a tenth of all or fewer.
    """
    n_without, n_users = (evaluation.counts.get(n, 0) for n in ("without_list", "cases"))
    if n_without <= _MOST_WITHOUT * n_users or evaluation.conventions.no_list == "skip":
        return []
    return [f"{n_without:,} of the {n_users:,} users of the test have no list and count 0"]


def with_ids_of(history: Interactions, ranking: Any) -> Any:
    """Lists, or a model, with text ids as the whole numbers that those of the history are."""
    if isinstance(ranking, Lists):
        cases = np.repeat(np.arange(len(ranking.cases)), ranking.sizes)
        columns = _numbers_of(history, (ranking.cases, cases), (ranking.items, ranking.codes))
        return read_lists(ranking.to_frame().assign(**columns)) if columns else ranking
    columns = _numbers_of(
        history, *((rows.ids, rows.rank) for rows in (ranking.user_rows, ranking.item_rows))
    )
    return ranking.renamed(columns.get("user"), columns.get("item")) if columns else ranking


def _numbers_of(history: Interactions, *sides: tuple[Ids, Array]) -> dict[str, Array]:
    """Return the numbers that text ids of users and items are, by code, where the history has numbers."""
    columns: dict[str, Array] = {}
    for name, wanted, (ids, codes) in zip(
        ("user", "item"), (history.cases, history.items), sides, strict=True
    ):
        numbers = _whole_numbers(ids) if wanted.kind == "int" else None
        if numbers is not None:
            columns[name] = numbers[codes]
    return columns


def _refuse_a_single_id(table: FrameTable) -> None:
    """Raise an error if all rows are of one user, or of one item."""
    for role, needed in (
        ("user", "what users have in common is what a recommender learns"),
        ("item", "there is nothing to rank"),
    ):
        ids = table.ids(role)[0]
        if len(ids) == 1:
            raise InputError(
                f"all {plural(len(table), 'row')} are of one {role}, {ids.name(0)!r}: {needed}.",
                table="data",
                column=table.role(role),
                hint=Phrase("Expected two or more. Name the column: {bench.columns=}.", columns={role: ...}),
            )


def first_of_pairs(table: FrameTable, strength: Array | None = None) -> Bool:
    """Of each row, whether it is the first of its user and item: in time, then in the order of the rows.

    With `strength` it is the first of the strongest.

    >>> import pandas as pd
    >>> events = pd.DataFrame({"user": [1, 1, 2], "item": [5, 5, 5], "time": [20, 10, 30]})
    >>> first_of_pairs(FrameTable(as_frame(events), None)).tolist()
    [False, True, True]
    """
    user, item, time = table.ids("user")[1], table.ids("item")[1], table.role("time")
    keys: list[Array] = [np.arange(len(table))]
    if time is not None:
        clock = table.clock(time, None)
        keys += [clock.values, clock.missing]
    order = np.lexsort(keys if strength is None else [*keys, -strength])
    pairs = user.astype(np.int64) * len(table.ids("item")[0]) + item
    first = np.zeros(len(table), dtype=bool)
    first[order[np.unique(pairs[order], return_index=True)[1]]] = True
    return first


def describe_repeats(first: Bool) -> str:
    """State how many rows `first_of_pairs` leaves out."""
    n_repeats = plural(int((~first).sum()), "row")
    return f"{n_repeats} of a user and an item that occurred before: the first counts"


def _placeholders(clock: Clock) -> tuple[Bool, list[Remark]]:
    """Return the rows at the newest time, if too many for it to be a time, and a remark on them."""
    times, counts = np.unique(clock.values[~clock.missing], return_counts=True)
    others = counts[:-1].max(initial=0)
    least = max(_SPIKE * len(clock.values), _SPIKE_TIMES * others, _FEWEST_KNOWN)
    if not others or counts[-1] < least:
        return np.zeros(len(clock.values), dtype=bool), []
    filler = (clock.values == times[-1]) & ~clock.missing
    todo = "the column of times is not read" if 2 * filler.sum() > len(filler) else "they are left out"
    rows = f"{plural(int(filler.sum()), 'row')} ({filler.mean():.0%})"
    time = clock.shown(times[-1])
    return filler, [("Odd times", f"{rows} at the newest time, {time}, as if it stood for none: {todo}.")]


def _missing_ratings(table: FrameTable, name: str) -> Bool:
    try:
        return np.isnan(column_array(table.column(name)).astype(np.float64))
    except (TypeError, ValueError) as error:
        raise ColumnError(
            f"the ratings are not numbers ({error}).",
            table="data",
            column=name,
            hint=Phrase("Convert them, leave the column out, or name another: {bench.columns.grade=}."),
        ) from None


def read_ratings(table: FrameTable, column: str | None, relevant_from: float | None = None) -> Ratings:
    """Return what the ratings mean: stars, counts, labels, or only that something happened.

    >>> import pandas as pd
    >>> events = pd.DataFrame({"user": [1, 1, 2, 3], "item": [5, 6, 5, 7], "rating": [4.0, 5.0, 2.5, 3.0]})
    >>> read_ratings(FrameTable(as_frame(events), None), "rating").why
    'ratings 2.5 to 5: 4 and more count as relevant; relevant_from= sets another border.'
    """
    if column is None:
        if relevant_from is not None:
            raise InputError(
                f"relevance from {relevant_from:g} on needs ratings, and no column was recognised as them.",
                hint=Phrase("Name it: {bench.columns.grade=}."),
            )
        return Ratings(None, "there are no ratings, so every row is relevant.")
    values = column_array(table.column(column)).astype(np.float64)
    levels, sizes = np.unique(values, return_counts=True)
    low, high, odd = float(levels[0]), float(levels[-1]), ""
    in_scale = levels <= _STRANGE * levels[np.cumsum(sizes) >= (1.0 - _STRANGE_SHARE) * len(values)][0]
    if high < _HIGHEST_GRADE and not in_scale.all():
        few = plural(int(sizes[~in_scale].sum()), "rating")
        odd = f"{few} beyond {levels[in_scale][-1]:g}, up to {high:g}: the scale is read off the others."
        levels, sizes, high = levels[in_scale], sizes[in_scale], float(levels[in_scale][-1])
    scale = f"{low:g} to {high:g}"
    if relevant_from is not None:
        if not levels[levels >= relevant_from].size:
            raise InputError(
                f"no rating is {relevant_from:g} or more: they go from {scale}.",
                hint="Choose a lower border.",
            )
        share = sizes[levels >= relevant_from].sum() / len(values)
        return Ratings(
            float(relevant_from),
            f"ratings {scale}: {relevant_from:g} and more count as relevant, as asked for ({share:.0%}).",
        )
    problem = "and grades start at 0" if low < 0 else "which is too much for a grade"
    if low < 0 or not high < _HIGHEST_GRADE:
        raise InputError(
            f"the ratings go from {scale}, {problem}.",
            table="data",
            column=column,
            hint=Phrase("Change their scale, or leave the ratings out: {bench.columns.grade=None}."),
        )
    if len(levels) == 1:
        return Ratings(None, f"all ratings are {low:g}, so every row is relevant.")
    is_whole = bool((levels == np.floor(levels)).all())
    # Of counts most are the smallest; of stars most lie in the upper half.
    is_count = is_whole and low >= 1 and (sizes[0] > len(values) / 2 or high > _HIGHEST_STAR)
    is_scale = high == _PERCENT and (low == 0 or sizes.argmax() > 0)
    if (is_count or high > _HIGHEST_STAR) and np.median(values) < high / 2 and not is_scale:
        what = "counts" if is_whole else "amounts"
        return Ratings(
            None,
            f"{column!r} holds {what} ({scale}), so every row is relevant; "
            + Phrase("{bench.relevant_from=} sets a border."),
            odd if high <= _HIGHEST_STAR else "",
        )
    border = float(levels[levels >= _TOP_SHARE * high][0])
    return Ratings(
        border,
        f"ratings {scale}: {border:g} and more count as relevant; "
        + Phrase("{bench.relevant_from=} sets another border."),
        odd,
    )


def _choose_split(table: FrameTable, time: str | None) -> tuple[str, dict[str, Any], str]:
    """Return the way to split, its parameters, and why."""
    sizes = np.bincount(table.ids("user")[1])
    if time is None:
        parameters = {"test": 2 * _HELD_OUT_SHARE, "validation": _HELD_OUT_SHARE, "short": "train"}
        return "per_user_ratio", parameters, Phrase(
            "no times are known ({bench.columns.time=} names their column), so a fifth of each user's rows "
            "is drawn for the test and a tenth for validation. Nothing can be known about the future: "
            "models may learn from what came after the test."
        )  # fmt: skip
    n = _LONG_TEST if np.median(sizes) >= _LONG_HISTORY else 1
    last = {"n": n, "validation": n, "short": "train"}
    rows = f"{n} rows" if n > 1 else "row"
    per_user = f"each user's last {rows} are the test" if n > 1 else "each user's last row is the test"
    per_user += f", the {rows} before {'are' if n > 1 else 'is'} validation"
    leak = "It leaks across users: a model may learn from what others did later."
    clock = table.clock(time, None)
    if _counts_within_users(clock, table.ids("user")[1]):
        return (
            "leave_last",
            last,
            (f"{time!r} counts the rows of each user, so there is no common time: {per_user}. {leak}"),
        )
    whole = {"test": _HELD_OUT_SHARE, "validation": _HELD_OUT_SHARE}
    validation, test = _known_users(table, whole)
    if any(part.known < _KNOWN_SHARE * part.users for part in (validation, test)):
        left = (
            f"{validation.known:,} of {validation.users:,} users of the validation and {test.known:,} of "
            f"{test.users:,} of the test with a history"
        )
    elif min(validation.known, test.known) < _FEWEST_KNOWN:
        few = f"{validation.known:,} in the validation and {test.known:,} in the test"
        left = f"too few users with a history ({few}; it takes {_FEWEST_KNOWN})"
    else:
        return "global_temporal", whole, (
            f"one border in time for all: the newest {test.share:.0%} of the rows are the test, "
            f"{_before_them(validation.share, test.share)}; nothing is learnt from the future. "
            f"{test.known:,} of {test.users:,} users of the test have a history."
        )  # fmt: skip
    return "leave_last", last, f"a border in time for all would leave {left}, so {per_user}. {leak}"


def _counts_within_users(clock: Clock, user: Array) -> bool:
    """Return whether times are places in the history of each user.

    They are if most begin with the same, and none is large.
    """
    if clock.kind != "number":
        return False
    first = np.full(int(user.max()) + 1, clock.values.max())
    np.minimum.at(first, user, clock.values)
    _, same = np.unique(first, return_counts=True)
    spread = clock.values.max() - clock.values.min()
    if 2 * same.max() < len(first) or spread >= 2 * np.bincount(user).max():
        return False
    order = np.lexsort([clock.values, user])  # a count goes up with each row
    return bool(((np.diff(clock.values[order]) != 0) | (np.diff(user[order]) != 0)).all())


def _before_them(validation: float, test: float) -> str:
    """State how large the validation of a border in time is; rows of the same time stay together."""
    are_equal = f"{validation:.0%}" == f"{test:.0%}"
    words = "as much before them is" if are_equal else f"the {validation:.0%} before them are"
    usual = f"{test:.0%}" == f"{_HELD_OUT_SHARE:.0%}"
    return f"{words} validation" + ("" if usual else f" ({_HELD_OUT_SHARE:.0%} each, but for equal times)")


class _HeldOut(NamedTuple):
    """Of a part of a split: the users with a history, all of them, and the share of the rows."""

    known: int
    users: int
    share: float


def _known_users(table: FrameTable, parameters: Mapping[str, float]) -> list[_HeldOut]:
    """Return what a border in time makes of validation and test."""
    try:
        made = cast("Split", split(table, "global_temporal", **parameters))
    except SplitError:
        return [_HeldOut(0, 1, 0.0)] * 2
    user, parts = table.ids("user")[1], []
    before = np.unique(user[made.mask("train")])
    for name in PARTS[1:]:
        users = np.unique(user[made.mask(name)])
        parts.append(_HeldOut(int(np.isin(users, before).sum()), len(users), float(made.mask(name).mean())))
        before = np.union1d(before, users)
    return parts
