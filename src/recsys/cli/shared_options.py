"""Options that several verbs share: files and their columns, metrics, conventions.

`given.gather(FileOptions)` makes one object of the options of `file_options`, which turns them into what the
library takes, and so on. Metrics and conventions are checked before any file is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
from click.shell_completion import CompletionItem

from recsys.cli.error_messages import note
from recsys.cli.verb_options import (
    CHANCE,
    COLUMNS,
    COUNT,
    INPUT,
    METRICS,
    OUTPUT,
    PAGE,
    SEED,
    Given,
    Option,
    inputs_of,
    keyword,
    option,
)  # fmt: skip
from recsys.conventions.decisions import Conventions
from recsys.errors import ColumnError

if TYPE_CHECKING:
    from recsys.metrics.registry import Request

FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)
_SETTING = "DECISION=VALUE, such as --set ties=expected"
_NUMERIC_DECISIONS = ("relevant_from", "max_grade")
_NOTE_WORDS = {
    "comments": "comment lines skipped",
    "negative_grades": "negative grades (an error, unless --set negative_grades=unjudged or a preset reads "
    "them as not judged)",
    "padded_user_ids": "user ids that begin or end with a blank",
    "padded_item_ids": "item ids that begin or end with a blank",
}


@dataclass(frozen=True)
class FileOptions:
    """The columns of each role, and how files are read."""

    user: str | None = None
    item: str | None = None
    score: str | None = None
    rank: str | None = None
    grade: str | None = None
    time: str | None = None
    case: str | None = None
    truth_user: str | None = None
    truth_item: str | None = None
    ids: Literal["str", "int", "auto"] = "str"
    form: str | None = None
    encoding: str = "utf-8"

    def read(self, path: str | None, kind: Literal["lists", "truth"]) -> Any:
        """A file of lists, or of interactions ("truth"); None without a path. Oddities are noted."""
        if not path:
            return None
        from recsys.inputs.files import read_file

        reading: Any = {"format": self.form, "ids": self.ids, "encoding": self.encoding}
        data = read_file(path, kind, columns=self.columns(kind) or None, **reading)
        for name, words in _NOTE_WORDS.items():
            if count := getattr(data.facts, name):
                note(f"{path}: {words}: {count:,}")
        return data

    def read_seen(self, given: Given, train: Any, *, is_model: bool, unread: bool = False) -> Any:
        """What is not ranked again: the file of --seen; for a model by default `train`, that of --train.

        `unread`: the path of --seen.
        """
        if given.seen == "none":
            return {} if is_model else None
        if given.seen is None and given.train and is_model:
            note(f"items of {given.train} (--train) are left out of the rankings; --seen none keeps them")
            return train
        return given.seen if unread else self.read(given.seen, "truth")

    def columns(self, kind: Literal["lists", "truth"]) -> dict[str, str]:
        """The columns that were named of a file of lists, or of interactions."""
        from recsys.inputs.files.formats import ROLES

        named = {role: getattr(self, role) for role in ROLES[kind]}
        if kind == "truth":
            named |= {"user": self.truth_user or self.user, "item": self.truth_item or self.item}
        return {role: name for role, name in named.items() if name is not None}

    def read_ranked(self, path: str, *, user_ids: str | None = None, item_ids: str | None = None) -> Any:
        """Lists of recommendations, or the model that `recsys train` kept in the file."""
        from recsys.ranks.sources import is_model_path, load_model

        if is_model_path(path):
            return load_model(path, ids=self.ids, user_ids=user_ids, item_ids=item_ids)
        if user_ids is not None or item_ids is not None:
            raise click.UsageError(
                f"--user-ids and --item-ids name the rows of a model, and {path} holds lists."
            )
        return self.read(path, "lists")

    def read_attributes(
        self,
        path: str | None,
        role: Literal["user", "item"],
        columns: Sequence[str] = (),
        *,
        text: bool = False,
    ) -> Any:
        """A table of users or items, or the ids and some columns of it; None without a path.

        Ids are read as --ids says; with `text`, other cells stay text.
        """
        if path is None:
            return None
        from recsys.inputs.files.reader import read_attributes

        named = {"ids": self.ids, "column": getattr(self, role), "encoding": self.encoding}
        frame, ids = read_attributes(path, role, text=text, **named)
        for name in columns:
            if name not in frame.columns:
                known = ", ".join(map(str, frame.columns))
                raise ColumnError(f"there is no column {name!r}.", table=path, hint=f"There are {known}.")
        return frame[[ids, *columns]] if columns else frame


def assignments(flag: str, texts: Iterable[str], form: str) -> dict[str, str]:
    """{name: value} of an option that is typed in this form, such as NAME=FILE; each name once."""
    found: dict[str, str] = {}
    for text in texts:
        name, _, value = (part.strip() for part in text.partition("="))
        if not (name and value):
            raise click.UsageError(f"{flag} {text} is not {form}.")
        if name in found:
            raise click.UsageError(f"{flag} {name} is given twice.")
        found[name] = value
    return found


def number_or_text(text: str) -> float | str:
    """5 is a number, 0.2 a share, 2026-01-31 a date, 7d a length."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


def requests_of(given: Given) -> list[Request]:
    """Every metric of -m at every cut-off of -k."""
    from recsys.metrics.registry import parse_all

    return parse_all(",".join(given.metrics) or None, list(given.cuts) or None)


def conventions_of(given: Given, name: str | None = None) -> Conventions:
    """The preset of --conventions, or that of a name, with the decisions of --set."""
    decisions: dict[str, Any] = {}
    for decision, value in assignments("--set", given.changes, _SETTING).items():
        decisions[decision] = value
        if decision in _NUMERIC_DECISIONS:
            decisions[decision] = None if value.lower() == "none" else number_or_text(value)
    return Conventions.of(name or given.preset).but(**decisions)


def _codes(_: click.Context, __: click.Parameter, texts: Sequence[str]) -> str | list[str] | None:
    """What --cautions says, as `cautions=` of the library takes it; an unknown code is an error."""
    from recsys.evaluation.cautions import silenced_codes

    codes = [code.strip() for text in texts for code in text.split(",") if code.strip()]
    cautions = "ignore" if "ignore" in codes else codes or None
    silenced_codes(cautions)
    return cautions


class _FormatOption(Option):
    """Takes the name of a file format; the help lists them, and only then are they loaded."""

    def __init__(self, *names: Any, which: str, help: str, **attributes: Any) -> None:  # noqa: A002 - click's
        super().__init__(*names, **attributes)
        self.which, self.start_of_help = which, help

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        *names, last = self.format_names()
        self.help = f"{self.start_of_help}: {', '.join(names)} or {last}."
        return super().get_help_record(ctx)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        del ctx
        return [CompletionItem(name) for name in self.format_names() if name.startswith(incomplete)]

    def format_names(self) -> list[str]:
        from recsys.inputs.files import FORMATS

        return [f.name for f in FORMATS.load_plugins().values() if getattr(f, self.which) is not None]


def format_option(
    help: str,  # noqa: A002 - click's
    which: str = "read",
    *,
    typed: str = "--format FORMAT",
    section: str = COLUMNS,
    name: str = "form",
    **attributes: Any,
) -> Option:
    """An option for a format that one can read, `read_whole` (tables) or `write`."""
    return option(typed, help, section, name=name, cls=_FormatOption, which=which, **attributes)


def column_option(role: str, what: str) -> Option:
    """An option that names the column of a role."""
    return option(f"--{role} COLUMN", f"Column of the {what}.", COLUMNS)


def _stored_ids(ctx: click.Context, _: click.Parameter, value: str | None) -> str:
    """How ids are read where --ids does not say; what was typed is known by then, and names the files."""
    if value is not None:
        return value
    from recsys.inputs.files.reader import stored_ids

    return stored_ids(*inputs_of(ctx)) or "str"


ids_option = keyword("ids", type=click.Choice(["str", "int", "auto"]), callback=_stored_ids)
encoding_option = option("--encoding TEXT", "Of text files.", COLUMNS, default="utf-8")
raw_option = option(
    "--raw",
    "In CSV, leave text that a spreadsheet takes for a formula (= + - @) without an apostrophe.",
    OUTPUT,
)
quiet_option = option("-q, --quiet", "No notes, warnings and progress.", OUTPUT)
json_option = option("--json", "Print JSON, with all digits.", OUTPUT)
csv_option = option("--csv", "Print CSV, with all digits.", OUTPUT)
markdown_option = option("--markdown", "Print Markdown.", OUTPUT)
name_option = option(
    "--name MODEL ...", "What a file's model is called, in the files' order.", OUTPUT, name="names"
)
cautions_option = keyword("cautions", multiple=True, callback=_codes)
preset_option = keyword("conventions", name="preset", default="default", show_default=False)
changes_option = option(
    "--set DECISION=VALUE ...",
    "Change one decision, such as relevant_from=4; repeatable.",
    METRICS,
    name="changes",
)
seed_option = option("--seed", "Of all random draws.", CHANCE, type=SEED, default=0, show_default=True)
decision_options = (
    option(
        "--baseline NAME",
        "Compare the others with this model; by default the first of two, of more the best.",
        CHANCE,
    ),
    keyword("headline", section=METRICS),
)


def metrics_option(text: str, **attributes: Any) -> Option:
    """The option of the metrics of a verb."""
    return option("-m, --metric TEXT ...", text, METRICS, name="metrics", **attributes)


request_options = (
    metrics_option("Such as ndcg@10 or 'ndcg(gain=exp2)@10'; repeatable."),
    keyword("k", "Cut-off for metrics that name none; repeatable.", name="cuts", multiple=True, type=int),
)
metric_options = (*request_options, preset_option, changes_option)


def page_option(name: str, text: str, section: str = OUTPUT) -> Option:
    """The option of the page that a verb writes, by default in the folder recsys-report."""
    return option("-o, --output FILE", text, section, type=PAGE, default=Path("recsys-report", name))


def file_options_for(lists: str, truth: str) -> tuple[Option, ...]:
    """The options of files, for a verb that calls its lists and its truth so."""
    return (
        column_option("user", "users"),
        column_option("item", "items"),
        column_option("score", f"scores, in {lists}"),
        column_option("rank", f"ranks from 1 on, in {lists}"),
        column_option("grade", f"grades, in {truth}"),
        column_option("case", "cases, where a user has several rankings"),
        column_option("truth-user", f"users in {truth}, if it has another name there"),
        column_option("truth-item", f"items in {truth}, if it has another name there"),
        ids_option,
        format_option("Of the files, if their names do not say"),
        encoding_option,
    )


file_options = file_options_for("LISTS", "TRUTH")
row_id_options = (
    option("--user-ids FILE", "Ids of a model's rows of users, one per line, or .npy.", INPUT),
    option("--item-ids FILE", "Ids of a model's rows of items, one per line, or .npy.", INPUT),
)
data_options = (keyword("train"), keyword("seen"), keyword("catalogue", type=COUNT), keyword("full_ranking"))
