"""`recsys split`: a file of interactions into a folder with its parts and the manifest that makes them again.

Cells of text files are written as they were read. The folder appears whole or not at all.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from recsys.cli import shared_options
from recsys.cli.error_messages import as_option
from recsys.cli.output import show
from recsys.cli.shared_options import FileOptions, column_option, format_option
from recsys.cli.verb_options import (
    CHANCE,
    COLUMNS,
    COUNT,
    OUTPUT,
    SEED,
    Given,
    Option,
    VerbCommand,
    argument,
    command,
    option,
)
from recsys.errors import Fix, worded


def _number_or_text(_: Any, __: Any, value: str | None) -> Any:
    return None if value is None else shared_options.number_or_text(value)


def _check_format(_: click.Context, option: Any, value: str | None) -> str | None:
    if value is not None and value not in option.format_names():
        raise click.BadParameter(f"{value!r} is not one of {', '.join(option.format_names())}.")
    return value


def _value(typed: str, text: str) -> Option:
    return option(typed, text, callback=_number_or_text)


def _number(typed: str, text: str) -> Option:
    return option(typed, text, type=COUNT)


_amounts = (
    _value("--test-share SHARE", "Share to test (0.2), or number of rows (or users)."),
    _value("--validation SHARE", "Share or number for validation."),
    option("-n N", "leave_last, leave_last_folds: how many rows of each user.", type=COUNT),
    option("--which", "leave_one_out: which row.", type=click.Choice(["last", "random"])),
    _value("--at TIME", "global_temporal: when the test begins: a date, or a number."),
    _value("--validation-at TIME", "global_temporal: when the validation begins."),
    _number("--folds N", "k_fold, leave_last_folds: how many."),
    option("--split-by WHAT", "k_fold: rows, user_rows or users. unseen_users: random or time."),
    _value("--length LENGTH", "rolling_windows: how long a test window is: 7d, or a number."),
    _number("--windows N", "rolling_windows: how many."),
    _value("--step LENGTH", "rolling_windows: from one window to the next."),
    _value("--train-length LENGTH", "rolling_windows: how far training reaches back."),
    _value("--gap LENGTH", "rolling_windows: between training and test."),
    _value("--start TIME", "rolling_windows: when the first window begins."),
    option("--known SHARE", "unseen_users: what is known of a user.", type=float),
)
_rules = (
    option("--seed", "Of all random draws.  [default: 0]", CHANCE, type=SEED),
    option("--on-tie RULE", "Equal times at a border: together, train, by_item, random, row_order or error."),
    option("--rounding RULE", "Of shares: down (but at least 1), nearest or up."),
    option("--short RULE", "Users with too few rows: exclude, train, test or error."),
    option("--bad-rows RULE", "Rows without time or rating, or off the scale: error or exclude.", COLUMNS),
    option("--scale LOW HIGH", "The lowest and highest rating.", nargs=2, type=float),
    option("--unit UNIT", "What numeric times count since 1970: s, ms, us or ns.", COLUMNS),
    option("--min-user N", "Rows every user must have (k-core).", type=int),
    option("--min-item N", "Rows every item must have (k-core).", type=int),
    option("--warm-users", "Exclude users that are not in train.", default=None),
    option("--warm-items", "Exclude items that are not in train.", default=None),
    option("--new-pairs", "Exclude tested rows whose user has the item in train.", default=None),
)


class SplitCommand(VerbCommand):
    """Reads the ways to split from their registry: the values of --how, the help, an option per parameter.

    A way to split declares all that next to its function, as a file format does, so the help loads NumPy.
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


@command(
    "split",
    argument("file", "FILE"),
    option("--how HOW", "Which way; see above."),
    option(
        "-o, --output FOLDER",
        "For the parts and manifest.json; created if missing, must be empty.",
        OUTPUT,
        required=True,
        type=click.Path(path_type=Path),
    ),
    option(
        "--rerun MANIFEST",
        "Make the split of a manifest again, and check that it is the same.",
        type=click.Path(path_type=Path, dir_okay=False),
    ),
    _amounts,
    _rules,
    column_option("user", "users"),
    column_option("item", "items"),
    column_option("time", "times"),
    column_option("grade", "ratings"),
    shared_options.ids_option,
    format_option("Of the file, if its name does not say", "read_whole"),
    shared_options.encoding_option,
    format_option(
        "Format of the parts", "write", typed="--to FORMAT", name="to", section=OUTPUT, callback=_check_format
    ),
    option("--json", "Print the manifest.", OUTPUT),
    option("-q, --quiet", "Print nothing but errors.", OUTPUT),
    cls=SplitCommand,
)
def split_command(given: Given) -> None:
    """Split interactions in FILE; write train, test (validation, excluded) and manifest.json to a folder."""
    from recsys.inputs.files import FORMATS
    from recsys.inputs.files.formats import open_file
    from recsys.inputs.files.reader import detect_format, read_table
    from recsys.splits import Folds, rerun, save, split

    if (given.how is None) == (given.rerun is None):
        raise click.UsageError(
            "Say --how, such as --how leave_last -n 5 (see --help), or --rerun a manifest; not both."
        )
    if given.output.exists() and (not given.output.is_dir() or any(given.output.iterdir())):
        raise click.UsageError(f"-o {given.output} already exists; name a new or empty folder.")
    if not given.output.absolute().parent.is_dir():
        raise click.UsageError(f"-o {given.output}: there is no folder {given.output.absolute().parent}.")
    columns = given.gather(FileOptions).columns("truth") or None
    source = open_file(given.file)
    form = given.form or detect_format(source)
    reading: dict[str, Any] = {"columns": columns, "format": form, **given.pick("ids", "encoding")}
    frame, _ = read_table(source, **reading)
    raw = frame if FORMATS[form].typed else read_table(source, **reading, text=True)[0]
    if given.how is None:
        splits = [rerun(str(given.rerun), frame)]
    else:
        parts = split(frame, given.how, columns=columns, **_parameters(vars(given)))
        splits = list(parts) if isinstance(parts, Folds) else [parts]
    # The parts get the format asked for, else that of the file; .csv if that is only read.
    written = FORMATS[given.to or form]
    ending = written.suffixes[0] if written.write is not None else ".csv"
    manifests = save(splits, given.output, ending=ending, rows=raw)
    if given.json:
        show(manifests[0] if len(manifests) == 1 else manifests)
    elif not given.quiet:
        click.echo("\n\n".join(str(part) for part in splits))
        click.echo(f"Written to {given.output}.")


def _parameters(values: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a split whose options were typed."""
    from recsys.splits import STRATEGIES
    from recsys.splits.job import DEFAULTS

    names = {*DEFAULTS, *(name for each in STRATEGIES.values() for name in each.parameters)} - {"columns"}
    typed = {n: as_option(Fix(n, of="split")).lstrip("-").replace("-", "_") for n in names}
    return {name: values[option] for name, option in typed.items() if values.get(option) is not None}
