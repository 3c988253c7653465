"""`recsys split`: a file of interactions into a folder with its parts and the manifest that makes them again.

Cells of text files are written as they were read. The folder appears whole or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from recsys.cli.error_messages import as_options, print_warnings
from recsys.cli.shared_options import combine_options, format_option

_HELP = (
    "Split the interactions in FILE and write train, test (validation, excluded) and manifest.json to DIR."
)
# Parameters that the command calls by another name.
_RENAMED = {"n": "n_last", "n_folds": "folds", "n_windows": "windows", "train": "train_length"}


def _number_or_text(_: Any, __: Any, value: str | None) -> Any:
    """5 is a number, 0.2 a share, 2026-01-31 a date, 7d a length."""
    if value is None:
        return None
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value


def _check_format(_: click.Context, option: Any, value: str | None) -> str | None:
    if value is not None and value not in option.format_names():
        raise click.BadParameter(f"{value!r} is not one of {', '.join(option.format_names())}.")
    return value


def _value_option(name: str, text: str, metavar: str) -> Callable[[Any], Any]:
    return click.option(f"--{name}", metavar=metavar, callback=_number_or_text, help=text)


_amounts = combine_options(
    _value_option("test", "Share to test (0.2), or number of rows (or users).", "SHARE"),
    _value_option("validation", "Share or number for validation.", "SHARE"),
    click.option("-n", "n_last", type=click.IntRange(min=1), metavar="N",
                 help="leave_last: how many rows of each user."),
    click.option("--which", type=click.Choice(["last", "random"]), help="leave_one_out: which row."),
    _value_option("at", "global_temporal: when the test begins: a date, or a number.", "TIME"),
    _value_option("validation-at", "global_temporal: when the validation begins.", "TIME"),
    click.option("--folds", type=click.IntRange(min=2), metavar="N", help="k_fold: how many."),
    click.option("--by", metavar="WHAT",
                 help="k_fold: rows, user_rows or users. unseen_users: random or time."),
    _value_option("length", "rolling_windows: how long a test window is: 7d, or a number.", "LENGTH"),
    click.option("--windows", type=click.IntRange(min=1), metavar="N", help="rolling_windows: how many."),
    _value_option("step", "rolling_windows: from one window to the next.", "LENGTH"),
    _value_option("train-length", "rolling_windows: how far training reaches back.", "LENGTH"),
    _value_option("gap", "rolling_windows: between training and test.", "LENGTH"),
    _value_option("start", "rolling_windows: when the first window begins.", "TIME"),
    click.option("--known", type=float, metavar="SHARE", help="unseen_users: what is known of a user."),
)  # fmt: skip
_rules = combine_options(
    click.option("--seed", type=int, metavar="N", help="Of all draws; by default 0."),
    click.option("--on-tie", metavar="RULE",
                 help="Equal times at a border: together, train, by_item, random, row_order or error."),
    click.option("--rounding", metavar="RULE", help="Of shares: down (but at least 1), nearest or up."),
    click.option("--short", metavar="RULE",
                 help="Users with too few rows: exclude, train or error."),
    click.option("--bad-rows", metavar="RULE",
                 help="Rows without time or rating, or off the scale: error or exclude."),
    click.option("--scale", nargs=2, type=float, metavar="LOW HIGH", help="The lowest and highest rating."),
    click.option("--unit", metavar="UNIT", help="What numeric times count since 1970: s, ms, us or ns."),
    click.option("--min-user", type=int, metavar="N", help="Rows every user must have (k-core)."),
    click.option("--min-item", type=int, metavar="N", help="Rows every item must have (k-core)."),
    click.option("--warm-users", is_flag=True, default=None, help="Exclude users that are not in train."),
    click.option("--warm-items", is_flag=True, default=None, help="Exclude items that are not in train."),
)  # fmt: skip
_reading = combine_options(
    *(click.option(f"--{role}", metavar="COLUMN", help=f"Column of the {what}.")
      for role, what in (("user", "users"), ("item", "items"), ("time", "times"), ("grade", "ratings"))),
    click.option("--ids", type=click.Choice(["str", "int", "auto"]), default="str", show_default=True,
                 help="Read ids as text or as whole numbers."),
    format_option("--format", "form", which="read_whole", help="Of the file, if its name does not say"),
    click.option("--encoding", default="utf-8", show_default=True, help="Of text files."),
)  # fmt: skip


class SplitCommand(click.Command):
    """Reads the ways to split from their registry: the values of --how, the help, an option per parameter."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        from recsys.splits import STRATEGIES

        params = list(super().get_params(ctx))
        known = {param.name for param in params}
        for strategy in STRATEGIES.load_plugins().values():
            for name in strategy.parameters:
                if _RENAMED.get(name, name) not in known:
                    known.add(name)
                    text = f"{strategy.name}: its {name.replace('_', ' ')}."
                    option = click.Option(
                        [f"--{name.replace('_', '-')}"], metavar="VALUE", callback=_number_or_text, help=text
                    )
                    params.append(option)
        next(param for param in params if param.name == "how").type = click.Choice(list(STRATEGIES))
        return params

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from recsys.splits import STRATEGIES

        super().format_help_text(ctx, formatter)
        lines = [f"{name:17}  {as_options(each.help)}" for name, each in STRATEGIES.load_plugins().items()]
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text("\b\n" + "\n".join(lines))  # \b: lines stay as they are


@click.command(
    "split",
    cls=SplitCommand,
    help=_HELP,
    short_help="Split interactions into parts that do not leak.",
)
@click.argument("file", metavar="FILE")
@click.option("--how", metavar="HOW", help="Which way; see above.")
@click.option("-o", "--out", "folder", required=True, type=click.Path(path_type=Path), metavar="DIR",
              help="Folder for the parts and manifest.json; created if missing, must be empty.")  # fmt: skip
@click.option("--rerun", "manifest", type=click.Path(path_type=Path, dir_okay=False), metavar="MANIFEST",
              help="Make the split of a manifest again, and check that it is the same.")  # fmt: skip
@_amounts
@_rules
@_reading
@format_option("--to", which="write", callback=_check_format, help="Format of the parts")
@click.option("--json", "as_json", is_flag=True, help="Print the manifest.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
def command(**options: Any) -> None:
    """Write the parts of a file and the manifest that makes them again."""
    if (options["how"] is None) == (options["manifest"] is None):
        raise click.UsageError("Say --how, or --rerun a manifest; not both.")
    from recsys.splits import save

    folder = options["folder"]
    _check_folder(folder)
    with print_warnings(quiet=options["quiet"]):
        splits, raw, form = _split(options)
        suffix = _suffix(options["to"], form)
        manifests = save(splits, folder, ending=suffix, rows=raw)
    if options["as_json"]:
        click.echo(
            json.dumps(manifests[0] if len(manifests) == 1 else manifests, indent=2, ensure_ascii=False)
        )
    elif not options["quiet"]:
        click.echo("\n\n".join(str(part) for part in splits))
        click.echo(f"Written to {folder}.")


def _check_folder(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise click.UsageError(f"-o {folder}: it is there already; name a new or empty folder.")
    if not folder.absolute().parent.is_dir():
        raise click.UsageError(f"-o {folder}: there is no folder {folder.absolute().parent}.")


def _suffix(to: str | None, form: str) -> str:
    """The ending of the parts: of the format asked for, else of the file's own; .csv if that is only read."""
    from recsys.inputs.files import FORMATS

    return FORMATS[to or form].suffixes[0] if FORMATS[to or form].write is not None else ".csv"


def _split(options: dict[str, Any]) -> tuple[list[Any], Any, str]:
    """The splits, what their rows are written from, and the format the file came in."""
    from recsys.inputs.files import FORMATS
    from recsys.inputs.files.content import open_file
    from recsys.inputs.files.reader import detect_format, read_table
    from recsys.splits import Folds, rerun, split

    columns = {role: options[role] for role in ("user", "item", "time", "grade") if options[role] is not None}
    source = open_file(options["file"])
    form = options["form"] or detect_format(source)
    reading = {
        "columns": columns or None,
        "ids": options["ids"],
        "format": form,
        "encoding": options["encoding"],
    }
    frame, _ = read_table(source, **reading)
    raw = frame if FORMATS[form].typed else read_table(source, **reading, text=True)[0]
    if options["manifest"] is not None:
        return [rerun(options["manifest"], frame)], raw, form
    parameters = _parameters(options)
    result = split(frame, options["how"], columns=columns or None, **parameters)
    return list(result) if isinstance(result, Folds) else [result], raw, form


def _parameters(options: dict[str, Any]) -> dict[str, Any]:
    """What the way to split is called with; an error for an option it does not have, or one it needs."""
    from recsys.splits import STRATEGIES
    from recsys.splits.job import DEFAULTS

    how = options["how"]
    own = STRATEGIES[how].parameters
    every = [name for strategy in STRATEGIES.values() for name in strategy.parameters]
    parameters = {}
    for name in dict.fromkeys([*every, *DEFAULTS]):
        option = _RENAMED.get(name, name)
        shown = "-n" if option == "n_last" else f"--{option.replace('_', '-')}"
        value = None if name == "columns" else options[option]
        if value is not None:
            if name not in own and name not in DEFAULTS:
                raise click.UsageError(f"{shown} means nothing to --how {how}.")
            parameters[name] = value
        elif name in own and own[name].default is own[name].empty:
            example = ", such as 7d" if name == "length" else ""
            raise click.UsageError(f"--how {how} needs {shown}{example}.")
    return parameters
