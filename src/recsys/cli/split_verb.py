"""`recsys split`: a file of interactions into a folder with its parts and the manifest that makes them again.

Cells of text files are written as they were read. The folder appears whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import click

from recsys.cli import shared_options
from recsys.cli.error_messages import as_option, print_warnings
from recsys.cli.option_sections import VerbCommand
from recsys.cli.output import print_json
from recsys.cli.shared_options import column_option, combine_options, format_option
from recsys.errors import Fix, worded


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
    click.option("--test-share", metavar="SHARE", callback=_number_or_text,
                   help="Share to test (0.2), or number of rows (or users)."),
    _value_option("validation", "Share or number for validation.", "SHARE"),
    click.option("-n", type=click.IntRange(min=1), metavar="N",
                 help="leave_last, leave_last_folds: how many rows of each user."),
    click.option("--which", type=click.Choice(["last", "random"]), help="leave_one_out: which row."),
    _value_option("at", "global_temporal: when the test begins: a date, or a number.", "TIME"),
    _value_option("validation-at", "global_temporal: when the validation begins.", "TIME"),
    click.option("--folds", type=click.IntRange(min=1), metavar="N",
                 help="k_fold, leave_last_folds: how many."),
    click.option("--split-by", metavar="WHAT",
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
    click.option("--seed", type=click.IntRange(min=0), help="Of all random draws.  [default: 0]"),
    click.option("--on-tie", metavar="RULE",
                 help="Equal times at a border: together, train, by_item, random, row_order or error."),
    click.option("--rounding", metavar="RULE", help="Of shares: down (but at least 1), nearest or up."),
    click.option("--short", metavar="RULE",
                 help="Users with too few rows: exclude, train, test or error."),
    click.option("--bad-rows", metavar="RULE",
                 help="Rows without time or rating, or off the scale: error or exclude."),
    click.option("--scale", nargs=2, type=float, metavar="LOW HIGH", help="The lowest and highest rating."),
    click.option("--unit", metavar="UNIT", help="What numeric times count since 1970: s, ms, us or ns."),
    click.option("--min-user", type=int, metavar="N", help="Rows every user must have (k-core)."),
    click.option("--min-item", type=int, metavar="N", help="Rows every item must have (k-core)."),
    click.option("--warm-users", is_flag=True, default=None, help="Exclude users that are not in train."),
    click.option("--warm-items", is_flag=True, default=None, help="Exclude items that are not in train."),
    click.option("--new-pairs", is_flag=True, default=None,
                 help="Exclude tested rows whose user has the item in train."),
)  # fmt: skip


class SplitCommand(VerbCommand):
    """Reads the ways to split from their registry: the values of --how, the help, an option per parameter.

    A way to split declares all that beside its function, as a file format does, so the help loads NumPy.
    """

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        from recsys.splits import STRATEGIES

        params = list(super().get_params(ctx))
        known = {option for param in params for option in param.opts}
        for strategy in STRATEGIES.load_plugins().values():
            for name in strategy.parameters:
                option = as_option(Fix(name, of="split"))
                if option not in known:
                    known.add(option)
                    text = f"{strategy.name}: its {name.replace('_', ' ')}."
                    params.append(
                        click.Option([option], metavar="VALUE", callback=_number_or_text, help=text)
                    )
        next(param for param in params if param.name == "how").type = click.Choice(list(STRATEGIES))
        return params

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from recsys.splits import STRATEGIES

        super().format_help_text(ctx, formatter)
        lines = [
            f"{name:17}  {worded(each.help, as_option)}" for name, each in STRATEGIES.load_plugins().items()
        ]
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text("\b\n" + "\n".join(lines))  # \b: lines stay as they are


@click.command("split", cls=SplitCommand)
@click.argument("file", metavar="FILE")
@click.option("--how", metavar="HOW", help="Which way; see above.")
@click.option("-o", "--output", "folder", required=True, type=click.Path(path_type=Path),
                metavar="FOLDER",
                help="For the parts and manifest.json; created if missing, must be empty.")  # fmt: skip
@click.option("--rerun", "manifest", type=click.Path(path_type=Path, dir_okay=False), metavar="MANIFEST",
              help="Make the split of a manifest again, and check that it is the same.")  # fmt: skip
@_amounts
@_rules
@column_option("user", "users")
@column_option("item", "items")
@column_option("time", "times")
@column_option("grade", "ratings")
@shared_options.ids_option
@format_option("--format", "form", which="read_whole", help="Of the file, if its name does not say")
@shared_options.encoding_option
@format_option("--to", which="write", callback=_check_format, help="Format of the parts")
@click.option("--json", "as_json", is_flag=True, help="Print the manifest.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
def split_command(
    *,
    file: str,
    how: str | None,
    folder: Path,
    manifest: Path | None,
    user: str | None,
    item: str | None,
    time: str | None,
    grade: str | None,
    ids: Literal["str", "int", "auto"],
    form: str | None,
    encoding: str,
    to: str | None,
    as_json: bool,
    quiet: bool,
    **amounts_and_rules: Any,  # an option for each parameter of each way to split: the registry knows them
) -> None:
    """Split interactions in FILE; write train, test (validation, excluded) and manifest.json to a folder."""
    from recsys.inputs.files import FORMATS
    from recsys.inputs.files.formats import open_file
    from recsys.inputs.files.reader import detect_format, read_table
    from recsys.splits import Folds, rerun, save, split

    if (how is None) == (manifest is None):
        raise click.UsageError(
            "Say --how, such as --how leave_last -n 5 (see --help), or --rerun a manifest; not both."
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise click.UsageError(f"-o {folder}: it is there already; name a new or empty folder.")
    if not folder.absolute().parent.is_dir():
        raise click.UsageError(f"-o {folder}: there is no folder {folder.absolute().parent}.")
    columns = {"user": user, "item": item, "time": time, "grade": grade}
    columns = {role: name for role, name in columns.items() if name is not None}
    with print_warnings(quiet=quiet):
        source = open_file(file)
        form = form or detect_format(source)
        reading: dict[str, Any] = {
            "columns": columns or None, "ids": ids, "format": form, "encoding": encoding,
        }  # fmt: skip
        frame, _ = read_table(source, **reading)
        raw = frame if FORMATS[form].typed else read_table(source, **reading, text=True)[0]
        if how is None:
            splits = [rerun(str(manifest), frame)]
        else:
            parts = split(frame, how, columns=columns or None, **_parameters(how, amounts_and_rules))
            splits = list(parts) if isinstance(parts, Folds) else [parts]
        # The parts get the format asked for, else that of the file; .csv if that is only read.
        written = FORMATS[to or form]
        ending = written.suffixes[0] if written.write is not None else ".csv"
        manifests = save(splits, folder, ending=ending, rows=raw)
    if as_json:
        document = manifests[0] if len(manifests) == 1 else manifests
        print_json(document)
    elif not quiet:
        click.echo("\n\n".join(str(part) for part in splits))
        click.echo(f"Written to {folder}.")


def _parameters(how: str, values: dict[str, Any]) -> dict[str, Any]:
    """What the way to split is called with; an error for an option it does not have, or one it needs."""
    from recsys.splits import STRATEGIES
    from recsys.splits.job import DEFAULTS

    own = STRATEGIES[how].parameters
    every = [name for strategy in STRATEGIES.values() for name in strategy.parameters]
    parameters = {}
    for name in dict.fromkeys([*every, *DEFAULTS]):
        shown = as_option(Fix(name, of="split"))
        value = None if name == "columns" else values.get(shown.lstrip("-").replace("-", "_"))
        if value is not None:
            if name not in own and name not in DEFAULTS:
                raise click.UsageError(f"{shown} means nothing to --how {how}.")
            parameters[name] = value
        elif name in own and own[name].default is own[name].empty:
            example = ", such as 7d" if name == "length" else ""
            raise click.UsageError(f"--how {how} needs {shown}{example}.")
    return parameters
