"""From a file of interactions to a decision, `recsys bench`, or to a protocol file, `recsys init`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from recsys.cli import shared_options
from recsys.cli.error_messages import note, print_warnings
from recsys.cli.output import check_target, print_json, print_page, progress_bar, screen
from recsys.cli.shared_options import FILE, FOLDER, FileOptions, column_option, format_option
from recsys.cli.verb_options import (
    CHANCE,
    COUNT,
    INPUT,
    METRICS,
    OUTPUT,
    Given,
    VerbCommand,
    argument,
    command,
    option,
)

if TYPE_CHECKING:
    from recsys.benching.bench_plan import BenchPlan


@dataclass(frozen=True)
class DataOptions:
    """How a file of interactions is read: the columns of its roles, what is relevant, ids and format."""

    user: str | None
    item: str | None
    time: str | None
    grade: str | None
    relevant_from: float | None
    ids: Literal["str", "int", "auto"]
    form: str | None
    encoding: str

    @property
    def columns(self) -> dict[str, str | None] | None:
        """The columns that were named; None for times or ratings that are not to be read."""
        named = {role: getattr(self, role) for role in ("user", "item", "time", "grade")}
        given = {role: name for role, name in named.items() if name is not None}
        unread = [role for role in ("time", "grade") if given.get(role, "").lower() == "none"]
        return {**given, **dict.fromkeys(unread)} or None

    def read(self, file: str) -> Any:
        """The table in the file."""
        from recsys.benching.bench_plan import read_events

        return read_events(file, columns=self.columns, ids=self.ids, format=self.form, encoding=self.encoding)

    def plan(self, file: str, seed: int) -> BenchPlan:
        """What the file says of itself."""
        from recsys.benching.bench_plan import make_plan

        return make_plan(self.read(file), columns=self.columns, relevant_from=self.relevant_from, seed=seed)


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
        "--trials", "Settings of each baseline that are tried on validation, at most.", type=COUNT, default=8
    ),
    _seeds_option,
    option(
        "--split-to FOLDER",
        "Only write the parts of the split here, to train your own models on.",
        type=FOLDER,
    ),
    option("--split FOLDER", "Use the parts in this folder instead of FILE.", type=FOLDER),
    option(
        "-o, --output FILE", "The report.", OUTPUT, type=FILE, default=Path("recsys-report", "bench.html")
    ),
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
    from recsys.benching.bench import bench
    from recsys.errors import MissingExtraError
    from recsys.models.model_files import is_model_file
    from recsys.ranks.sources import is_model_path

    data = given.gather(DataOptions)
    if (given.file is None) == (given.split is None):
        raise click.UsageError(
            "name a FILE of interactions before --models, or --split FOLDER with the parts of one; not both."
        )
    if given.split_to is not None:
        if given.file is None:
            raise click.UsageError("--split-to writes the parts of a FILE; --split FOLDER has them already.")
        with print_warnings(quiet=given.quiet):
            _write_parts(data.plan(given.file, given.seed), given.split_to, quiet=given.quiet)
        return
    if not given.no_report:
        check_target(
            given.output, "output", inputs=(given.file, given.items, *given.models), makes_folder=True
        )
    paths = _names_of_models(given.models)
    factors = [path for path in given.models if is_model_path(path) and not is_model_file(path)]
    if (given.user_ids or given.item_ids) and len(factors) != 1:
        raise click.UsageError(
            "--user-ids and --item-ids name the rows of one file of factors, and --models has "
            f"{len(factors)}; each file may hold them itself, as arrays user_ids and item_ids."
        )
    row_ids = {"user_ids": given.user_ids, "item_ids": given.item_ids}
    files = FileOptions(ids=data.ids, encoding=data.encoding, quiet=given.quiet)
    with print_warnings(quiet=given.quiet), _steps(quiet=given.quiet) as progress:
        result = bench(
            None if given.file is None else data.read(given.file),
            models={
                name: files.read_ranked(path, **(row_ids if path in factors else {}))
                for name, path in paths.items()
            },
            split=given.split,
            baselines=None
            if given.baselines is None
            else [name.strip() for name in given.baselines.split(",")],
            headline=given.headline,
            items=files.read_attributes(given.items, "item"),
            trials=given.trials,
            relevant_from=data.relevant_from,
            columns=data.columns,
            ids=data.ids,
            seed=given.seed,
            seeds=given.seeds,
            progress=progress,
        )
        text = result.to_json() if given.json else ""
    if given.json:
        print_json(text)
    else:
        print_page(result)
    if given.no_report:
        return
    try:
        title = given.title or f"Bench of {Path(given.file or str(given.split)).name}"
        written = result.report(given.output, title=title)
    except MissingExtraError as error:
        note(f"no report: {error}")
        return
    if not given.quiet:
        note(f"report {written}")


def _write_parts(plan: BenchPlan, target: Path, *, quiet: bool) -> None:
    """Write the parts of the proposed split, and say what to do with them."""
    from recsys.display.text_tables import note_text
    from recsys.splits import save

    save([] if plan.split is None else plan.split, target, ending=".csv")
    if quiet:
        return
    with screen():
        click.echo("\n".join(note_text(f"{head}: " + line) for head, line in plan.explain()))
    click.echo(
        f"Written to {target}. Train your models on train.csv (and validation.csv in the end), then:\n"
        f"recsys bench --split {target} --models MINE…"
    )


@contextmanager
def _steps(*, quiet: bool) -> Iterator[Callable[[int, int, str], None]]:
    """A progress bar that names what is being done; lines where standard error is no terminal."""
    with progress_bar("reading", quiet=quiet) as bar:
        named: list[str] = []

        def show(done: int, total: int, what: str) -> None:
            if bar is not None:
                bar(done, total, what)
            elif not quiet and named[-1:] != [what]:
                note(f"{what} (step {done + 1} of {total})" if done < total else what)
            named.append(what)

        yield show


def _names_of_models(paths: Sequence[str]) -> dict[str, str]:
    """{name: file} of models; one that is called as a baseline keeps the ending of its file."""
    from recsys.cli.compare_verb import ModelFile
    from recsys.models.trainable import TRAINABLE

    names: dict[str, str] = {}
    for path in paths:
        candidates = (ModelFile(path, None).stem, Path(path).name, path)
        name = next((n for n in candidates if n not in names and n not in TRAINABLE), None)
        if name is None:
            raise click.UsageError(f"--models {path} is named twice.")
        names[name] = path
    return names


@command(
    "init",
    argument("file", "FILE"),
    option(
        "-o, --output FILE", "The protocol, a new file.", OUTPUT, type=FILE, default=Path("protocol.toml")
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

    data = given.gather(DataOptions)
    if given.output.exists():
        raise click.UsageError(f"--output {given.output}: it is there already; name a new file.")
    check_target(given.output, "protocol", inputs=(given.file,))
    with print_warnings(quiet=given.quiet):
        plan = data.plan(given.file, given.seed)
        encoding = None if data.encoding == "utf-8" else data.encoding
        reading = {"ids": data.ids, "format": data.form, "encoding": encoding}
        write_text(
            given.output,
            protocol_text(
                plan, given.file, given.output, draws={"seed": given.seed, "seeds": given.seeds}, **reading
            ),
        )
    click.echo(str(given.output))
    if not given.quiet:
        needed = "" if find_spec("jsonschema") else "; it needs pip install 'recsys-evaluation[cli]'"
        note(f"recsys run {given.output} executes it{needed}")
