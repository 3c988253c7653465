"""Options that several verbs share: files and their columns, metrics, conventions.

One decorator per group of options, and one function that turns them into what the library takes. Metrics and
conventions are checked before any file is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from recsys.cli.error_messages import note
from recsys.conventions.decisions import Conventions
from recsys.errors import ConventionError, UnknownNameError

_NUMERIC_DECISIONS = ("relevant_from", "max_grade")
_COLUMN_ROLES = ("user", "item", "score", "rank", "grade", "case")
_NOTE_WORDS = {
    "comments": "comment lines skipped",
    "unjudged": "rows without a judgement (-1) left out",
    "padded_user_ids": "user ids that begin or end with a blank",
    "padded_item_ids": "item ids that begin or end with a blank",
}
_Function = TypeVar("_Function", bound=Callable[..., Any])


def combine_options(*options: Callable[[Any], Any]) -> Callable[[_Function], _Function]:
    """Several options as one decorator, in the order they are given."""

    def decorate(function: _Function) -> _Function:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


class _FormatOption(click.Option):
    """Takes the name of a file format; the help lists them, and only then are they loaded."""

    def __init__(self, *names: Any, which: str, help: str, **attributes: Any) -> None:  # noqa: A002 - click's
        super().__init__(*names, metavar="FORMAT", **attributes)
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


def format_option(*names: str, which: str = "read", **attributes: Any) -> Callable[[Any], Any]:
    """An option for a format that one can read, `read_whole` (tables) or `write`."""
    return click.option(*names, cls=_FormatOption, which=which, **attributes)


def _column_option(role: str, what: str) -> Callable[[Any], Any]:
    return click.option(f"--{role}", metavar="COLUMN", help=f"Column of the {what}.")


def _truth_column_option(role: str, what: str) -> Callable[[Any], Any]:
    text = f"Column of the {what} in TRUTH, if it has another name there."
    return click.option(f"--truth-{role}", metavar="COLUMN", help=text)


metric_options = combine_options(
    click.option(
        "-m", "--metric", "metrics", multiple=True,
        help="Such as ndcg@10 or 'ndcg(gain=exp2)@10'; repeatable.",
    ),
    click.option("-k", "cuts", multiple=True, type=int,
                 help="Cut-off for metrics that name none; repeatable."),
    click.option("--conventions", "preset", metavar="NAME", default="default",
                 help="See `recsys conventions`."),
    click.option(
        "--set", "changes", multiple=True, metavar="DECISION=VALUE", help="Change one decision; repeatable."
    ),
)  # fmt: skip

file_options = combine_options(
    _column_option("user", "users"),
    _column_option("item", "items"),
    _column_option("score", "scores, in LISTS"),
    _column_option("rank", "ranks from 1 on, in LISTS"),
    _column_option("grade", "grades, in TRUTH"),
    _column_option("case", "cases, where a user has several rankings"),
    _truth_column_option("user", "users"),
    _truth_column_option("item", "items"),
    click.option("--ids", type=click.Choice(["str", "int", "auto"]), default="str", show_default=True,
                 help="Read ids as text or as whole numbers."),
    format_option("--format", "form", help="Of the files, if their names do not say"),
    click.option("--encoding", default="utf-8", show_default=True, help="Of text files."),
)  # fmt: skip

data_options = combine_options(
    click.option("--seen", metavar="FILE",
                 help="Training interactions: never recommended by factors; counted among relevant items."),
    click.option("--catalogue", type=click.IntRange(min=1), metavar="N", help="How many items there are."),
    click.option("--complete", is_flag=True,
                 help="Each list ranks every candidate (for auc, average_rank, …)."),
)  # fmt: skip

context_options = combine_options(
    click.option("--train", metavar="FILE",
                 help="What users had before: for novelty, popularity, calibration and --by."),
    click.option("--items", metavar="FILE",
                 help="Table of the items: for calibration, value, exposure, --by."),
    click.option("--users", metavar="FILE", help="Table of the users: for --by."),
    click.option("--reference", metavar="FILE",
                 help="Another model's lists: for serendipity, overlap and rbo."),
    click.option("--by", metavar="GROUP",
                 help="Per group: activity, cold_user, popularity, cold_item, item_age, a column of items or "
                      "users."),
    click.option("--bounds", is_flag=True,
                 help="Also print the best attainable value and the floor of chance."),
)  # fmt: skip

quiet_option = click.option("-q", "--quiet", is_flag=True, help="No notes, warnings and progress.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, with all digits.")


def metric_requests(options: dict[str, Any]) -> list[Any]:
    """The requests of -m and -k."""
    from recsys.metrics.requests import parse_all

    return parse_all(",".join(options["metrics"]) or None, list(options["cuts"]) or None)


def chosen_conventions(options: dict[str, Any]) -> Conventions:
    """The preset of --conventions with the decisions of --set."""
    decisions: dict[str, Any] = {}
    for change in options["changes"]:
        decision, sign, value = (part.strip() for part in change.partition("="))
        if not sign or decision == "per_metric":
            raise ConventionError(f"--set {change} is not decision=value.", hint="Write --set ties=expected.")
        decisions[decision] = _decision_value(decision, value)
    return Conventions.of(options["preset"]).but(**decisions)


def read(path: str, kind: Any, options: dict[str, Any]) -> Any:
    """A file of lists, or of interactions (kind "truth"), read as the options say; oddities are noted."""
    from recsys.inputs.files import read_file

    columns = {role: options[role] for role in _COLUMN_ROLES if options.get(role) is not None}
    if kind == "truth":
        columns |= {
            r: options[f"truth_{r}"] for r in ("user", "item") if options.get(f"truth_{r}") is not None
        }
    data = read_file(
        path,
        kind,
        columns=columns or None,
        format=options.get("form"),
        ids=options.get("ids", "str"),
        encoding=options.get("encoding", "utf-8"),
    )
    if not options.get("quiet"):
        for name, words in _NOTE_WORDS.items():
            if data.notes.get(name):
                note(f"{path}: {words}: {data.notes[name]:,}")
    return data


def read_cells(path: str, encoding: str = "utf-8") -> Any:
    """A table (gzipped or not, - for standard input); cells of text stay text."""
    from recsys.inputs.files.reader import read_table

    return read_table(path, encoding=encoding, text=True)[0]


def read_items(path: str, options: dict[str, Any]) -> Any:
    """A table of the items."""
    return _read_attributes(path, "item", options)


def read_users(path: str, options: dict[str, Any], columns: Sequence[str] | None = None) -> Any:
    """A table of the users; with `columns`, only those and the ids."""
    frame = _read_attributes(path, "user", options)
    if columns is None:
        return frame
    for name in columns:
        if name not in frame.columns:
            raise UnknownNameError(f"column of {path}", name, map(str, frame.columns))
    return frame[[name for name in frame.columns if name in columns or _has_role(name, "user")]]


def _read_attributes(path: str, role: str, options: dict[str, Any]) -> Any:
    """A table of items or users; ids as --ids says, other columns as numbers where every cell is one."""
    import pandas as pd

    frame = read_cells(path, options["encoding"])
    for name in frame.columns:
        is_id = name == options[role] or _has_role(name, role)
        if not is_id or options["ids"] != "str":
            numbers = pd.to_numeric(frame[name].replace("", None), errors="coerce")
            frame[name] = numbers if numbers.notna().sum() == (frame[name] != "").sum() else frame[name]
    return frame if options[role] is None else frame.rename(columns={options[role]: role})


def _has_role(name: str, role: str) -> bool:
    from recsys.inputs.frames import ROLES

    return name.replace("_", "").lower() in ROLES[role]


def paths_by_model(paths: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """{model: path}, named by `names` or by the files, with their folders where two share a name."""
    if names and len(names) != len(paths):
        raise click.UsageError(
            f"{len(names)} names for {len(paths)} files: give one --name per file, or none."
        )
    stems = [Path(path).name.split(".")[0] or path for path in paths]
    if len(set(stems)) < len(stems):
        stems = [str(Path(path).with_suffix("")) for path in paths]
    if len(set(stems)) < len(stems):
        stems = list(paths)
    named = dict(zip(names or stems, paths, strict=True))
    if len(named) < len(paths):
        raise click.UsageError(
            "two models have the same name: give each file once, with a --name of its own."
        )
    return named


def is_result(path: str) -> bool:
    """Whether a file is a saved result rather than lists, judged by its first bytes."""
    place = Path(path)
    if place.suffix.lower() != ".json" or not place.is_file():
        return False
    with place.open("rb") as file:
        head = file.read(200).lstrip(b"\xef\xbb\xbf \r\n\t{")
    return head.startswith(b'"result"')


def _decision_value(decision: str, text: str) -> Any:
    if decision not in _NUMERIC_DECISIONS:
        return text
    if text.lower() == "none":
        return None
    try:
        return float(text)
    except ValueError:
        raise ConventionError(
            f"--set {decision}={text} is not a number.", hint="Give a number, or none."
        ) from None
