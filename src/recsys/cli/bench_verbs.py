"""From a file of interactions to a decision, `recsys bench`, or to a protocol file, `recsys init`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recsys.cli import shared_options
from recsys.cli.error_messages import is_quiet, note
from recsys.cli.output import progress_bar, show
from recsys.cli.shared_options import FOLDER, FileOptions, column_option, format_option, page_option
from recsys.cli.verb_options import (
    CHANCE,
    COUNT,
    INPUT,
    METRICS,
    NEW_FILE,
    OUTPUT,
    Given,
    VerbCommand,
    argument,
    command,
    option,
)

if TYPE_CHECKING:
    from recsys.benching.bench_plan import BenchPlan

_data_options = (
    column_option("user", "users"),
    column_option("item", "items"),
    column_option("time", "times"),
    column_option("grade", "ratings"),
    option(
        "--relevant-from RATING",
        "From which rating on an item is relevant; by default the ratings decide.",
        type=float,
    ),
    shared_options.ids_option,
    format_option("Of FILE, if its name does not say", "read_whole"),
    shared_options.encoding_option,
)
_seeds_option = option(
    "--seeds N",
    "Train models that draw random numbers N times, so that verdicts count how far runs differ.",
    CHANCE,
    type=COUNT,
    default=1,
)


class BenchCommand(VerbCommand):
    """Takes several files after one --models."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Write --models before each of its files, as click has it."""
        spread: list[str] = []
        is_model = False
        for arg in args:
            if arg.startswith("-") and arg != "-":
                is_model = arg == "--models"
                if is_model:
                    continue
            spread += ["--models", arg] if is_model else [arg]
        if args and args[-1] == "--models":
            spread.append("--models")  # without a file: click says what is missing
        return super().parse_args(ctx, spread)


class Kinds(click.ParamType[dict[str, Any]]):
    """COLUMN=KIND,KIND or COLUMN=KIND:WEIGHT,KIND:WEIGHT."""

    name = "kinds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, Any]:
        """Read the column and its kinds, with weights if all have one."""
        column, sign, kinds = str(value).partition("=")
        if not (column and sign and kinds):
            self.fail(f"{value!r} is not COLUMN=KIND, such as event=purchase.", param, ctx)
        pairs = [kind.strip().rpartition(":") for kind in kinds.split(",")]
        if not any(sign for _, sign, _ in pairs):
            return {column: [kind for _, _, kind in pairs]}
        try:
            return {column: {kind: float(weight) for kind, _, weight in pairs}}
        except ValueError:
            return self.fail(
                f"{kinds!r} needs a weight for each kind, such as cart:1,purchase:3.", param, ctx
            )


class Trials(click.ParamType[int | dict[str, int]]):
    """A number, or NAME=NUMBER of several recommenders."""

    name = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | dict[str, int]:
        """Read the number, or those of each recommender."""
        if "=" not in str(value):
            return COUNT.convert(value, param, ctx)
        pairs = (part.partition("=") for part in value.split(","))
        return {name.strip(): click.IntRange(min=0).convert(number, param, ctx) for name, _, number in pairs}


@command(
    "bench",
    argument("file", "[FILE]", required=False),
    option("--models FILE… ...", "Your own: of `recsys train`, factors, or lists for the users of the test."),
    shared_options.row_id_options,
    option("--baselines NAMES", "Only these, separated by commas; popularity is always there."),
    option(
        "--headline METRIC", "The metric that decides, also between settings.", METRICS, default="ndcg@10"
    ),
    option("--items FILE", "Table of items with their titles, for the report.", INPUT),
    option(
        "--trials NUMBER",
        "Settings of each baseline that are tried on validation, at most; ease=2,als=4 of some, 8 of others.",
        type=Trials(),
        default=8,
    ),
    option(
        "--relevant COLUMN=KINDS",
        "Which kinds of events are relevant: event=purchase, or event=cart:1,purchase:3 with weights.",
        type=Kinds(),
    ),
    option("--minutes N", "Choose beforehand what fits into so many minutes on one core.", type=float),
    _seeds_option,
    option(
        "--split-to FOLDER",
        "Only write the parts of the split here, to train your own models on.",
        type=FOLDER,
    ),
    option("--split FOLDER", "Use the parts in this folder instead of FILE.", type=FOLDER),
    page_option("bench.html", "The report."),
    option("--save-to FOLDER", "Add the results here, for compare, gate and board.", OUTPUT, type=FOLDER),
    option("--no-report", "Write no report."),
    option("--title TEXT", "The report's heading.", OUTPUT),
    _data_options,
    shared_options.seed_option,
    shared_options.json_option,
    shared_options.quiet_option,
    cls=BenchCommand,
)
def bench_command(given: Given) -> None:
    """Compare recommenders on the interactions in FILE: what to ship, and what it costs.

    Columns, the meaning of ratings and a split are read off FILE, and the output says why. Baselines are
    tuned on validation, trained on what comes before the test, and rank the whole catalogue.

    recsys bench ratings.csv --split-to parts, then recsys bench --split parts --models mine.npz lists.csv
    """
    from recsys.benching.bench import STOPPED, bench
    from recsys.display.number_words import plural
    from recsys.errors import MissingExtraError
    from recsys.models.model_files import is_model_file
    from recsys.ranks.sources import is_model_path

    if (given.file is None) == (given.split is None):
        raise click.UsageError(
            "name a FILE of interactions before --models, or --split FOLDER with the parts of one; not both."
        )
    if given.split_to is not None:
        if given.file is None:
            raise click.UsageError("--split-to writes the parts of a FILE; --split FOLDER has them already.")
        _write_parts(_plan(given, relevant=given.relevant), given.split_to)
        return
    factors = [path for path in given.models if is_model_path(path) and not is_model_file(path)]
    if (given.user_ids or given.item_ids) and len(factors) != 1:
        raise click.UsageError(
            "--user-ids and --item-ids name the rows of one file of factors, and --models has "
            f"{len(factors)}; each file may hold them itself, as arrays user_ids and item_ids."
        )
    row_ids = given.pick("user_ids", "item_ids")
    files = FileOptions(ids=given.ids, encoding=given.encoding)
    names = None if given.baselines is None else [name.strip() for name in given.baselines.split(",")]
    with _steps() as progress:
        result = bench(
            None if given.file is None else _read_events(given),
            models={
                name: files.read_ranked(path, **(row_ids if path in factors else {}))
                for name, path in _names_of_models(given.models).items()
            },
            baselines=names,
            items=files.read_attributes(given.items, "item"),
            columns=_columns(given),
            progress=progress,
            **given.pick("split", "headline", "trials", "minutes", "relevant", "relevant_from"),
            **given.pick("ids", "seed", "seeds"),
        )
    show(result, given.shown_as)
    if given.save_to is not None:
        note(f"results {given.save_to}, {plural(len(result.save(given.save_to)), 'file')}")
    if not given.no_report:
        try:
            title = given.title or f"Bench of {Path(given.file or str(given.split)).name}"
            note(f"report {result.report(given.output, title=title)}")
        except MissingExtraError as error:
            note(f"no report: {error}")
    if STOPPED in result.left_out.values():
        raise KeyboardInterrupt


def _columns(given: Given) -> dict[str, str | None] | None:
    """The columns that were named; None for times or ratings that are not to be read."""
    named: dict[str, str | None] = {**given.gather(FileOptions).columns("truth")}
    unread = [role for role in ("time", "grade") if (named.get(role) or "").lower() == "none"]
    return {**named, **dict.fromkeys(unread)} or None


def _read_events(given: Given) -> Any:
    """The table in the file."""
    from recsys.benching.bench_plan import read_events

    reading = {"ids": given.ids, "format": given.form, "encoding": given.encoding}
    return read_events(given.file, columns=_columns(given), **reading)


def _plan(given: Given, **more: Any) -> BenchPlan:
    """What the file says of itself."""
    from recsys.benching.bench_plan import make_plan

    return make_plan(
        _read_events(given), columns=_columns(given), **given.pick("relevant_from", "seed"), **more
    )


def _write_parts(plan: BenchPlan, target: Path) -> None:
    """Write the parts of the proposed split, and say what to do with them."""
    from recsys.splits import save

    save([] if plan.split is None else plan.split, target, ending=".csv")
    if not is_quiet():
        show(plan)
        click.echo(
            f"Written to {target}. Train your models on train.csv (and validation.csv in the end), then:\n"
            f"recsys bench --split {target} --models MINE…"
        )


@contextmanager
def _steps() -> Iterator[Callable[[int, int, str], None]]:
    """A progress bar that names what is being done; lines where standard error is not a terminal."""
    with progress_bar("reading") as bar:
        named: list[str] = []

        def step(done: int, total: int, what: str) -> None:
            if bar is not None:
                bar(done, total, what)
            elif named[-1:] != [what]:
                note(f"{what} (step {done + 1} of {total})" if done < total else what)
            named.append(what)

        yield step


def _names_of_models(paths: Sequence[str]) -> dict[str, str]:
    """{name: file} of models; one that is called as a baseline keeps the ending of its file."""
    from recsys.evaluation.files_of_models import stem_of
    from recsys.models.trainable import TRAINABLE

    names: dict[str, str] = {}
    for path in paths:
        candidates = (stem_of(path), Path(path).name, path)
        name = next((n for n in candidates if n not in names and n not in TRAINABLE), None)
        if name is None:
            raise click.UsageError(f"--models {path} is named twice.")
        names[name] = path
    return names


@command(
    "init",
    argument("file", "FILE"),
    option(
        "-o, --output FILE", "The protocol, a new file.", OUTPUT, type=NEW_FILE, default=Path("protocol.toml")
    ),
    _seeds_option,
    _data_options,
    shared_options.seed_option,
    shared_options.quiet_option,
)
def init_command(given: Given) -> None:
    """Write a protocol file for the interactions in FILE, with the reasons, for `recsys run` to execute.

    The columns, the split, what counts as relevant, the metrics and the baselines are read off FILE.
    """
    from recsys.benching.protocol.draft import protocol_text
    from recsys.inputs.files import write_text

    if given.output.exists():
        raise click.UsageError(f"--output {given.output} already exists; name a new file.")
    encoding = None if given.encoding == "utf-8" else given.encoding
    reading = {"ids": given.ids, "format": given.form, "encoding": encoding}
    text = protocol_text(_plan(given), given.file, given.output, draws=given.pick("seed", "seeds"), **reading)
    write_text(given.output, text)
    click.echo(str(given.output))
    needed = "" if find_spec("jsonschema") else "; it needs pip install 'recsys-evaluation[cli]'"
    note(f"recsys run {given.output} executes it{needed}")
