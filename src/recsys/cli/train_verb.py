"""`recsys train NAME FILE -o model.npz`: a file of interactions in, the file of a model out.

Every row of TRAINABLE is a command with its settings as --set; `ncf` trains networks and has its own options.
"""

from __future__ import annotations

import time as clock
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from recsys.cli import shared_options
from recsys.cli.error_messages import note
from recsys.cli.output import progress_bar, show
from recsys.cli.shared_options import FileOptions
from recsys.cli.verb_options import (
    COUNT,
    INPUT,
    METRICS,
    OUTPUT,
    SEED,
    Given,
    Target,
    VerbCommand,
    argument,
    command,
    option,
)
from recsys.errors import check_choice

if TYPE_CHECKING:
    from recsys.models.trainable import Trainable
    from recsys.records.arrays import Interactions

_TRAINING = ("epochs", "negatives", "batch", "learning_rate", "weight_decay", "device", "seed")  # of `train`
_output_option = option(
    "-o, --output FILE",
    "Where the model goes: .npz or .safetensors.",
    OUTPUT,
    required=True,
    type=Target(".npz", ".safetensors"),
)
_reading_options = (
    shared_options.column_option("user", "users"),
    shared_options.column_option("item", "items"),
    shared_options.column_option("time", "times"),
    shared_options.ids_option,
)


class _ModelGroup(click.Group):
    """Its commands are the rows of TRAINABLE, and those that are added to it."""

    get_help_option_names = VerbCommand.get_help_option_names

    def list_commands(self, ctx: click.Context) -> list[str]:
        from recsys.models.trainable import TRAINABLE

        return [*TRAINABLE.load_plugins(), *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        from recsys.models.trainable import TRAINABLE

        own = super().get_command(ctx, cmd_name)
        if own is None and cmd_name in TRAINABLE.load_plugins():
            return _model_command(cmd_name, TRAINABLE[cmd_name])
        return own

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if not ctx.resilient_parsing:
            check_choice("model", args[0], self.list_commands(ctx))
        return super().resolve_command(ctx, args)


@click.group("train", cls=_ModelGroup, subcommand_metavar="NAME FILE -o MODEL [OPTIONS]")
def train_command() -> None:
    """Train a model on the interactions in FILE, and keep it in a file that every verb reads.

    recsys train item-knn train.csv -o knn.npz --set neighbours=50

    recsys evaluate knn.npz test.csv --train train.csv
    """


def _model_command(name: str, entry: Trainable) -> click.Command:
    """The command of one row of TRAINABLE."""
    defaults = {key: "none" if value is None else value for key, value in entry.settings.items()}
    settings = ", ".join(f"{key}={value}" for key, value in defaults.items())

    @command(
        name,
        argument("file", "FILE"),
        _output_option,
        option("--set SETTING=VALUE ...", "Change one setting; repeatable.", METRICS, name="changes"),
        option("--items FILE", "Table of all items: those without events are ranked, too.", INPUT),
        shared_options.seed_option,
        _reading_options,
        shared_options.format_option("Of FILE, if its name does not say"),
        shared_options.encoding_option,
        shared_options.quiet_option,
        help=f"{entry.help}\n\nSettings and their defaults: {settings or 'none'}.",
    )
    def train(given: Given) -> None:
        from recsys.models.trainable import train_model

        chosen = entry.settings | _read_settings(name, entry.settings, given.changes)
        files = given.gather(FileOptions)
        history = _read_history(files, given.file)
        catalogue = _read_catalogue(files, given.items, history)
        began = clock.perf_counter()
        source = train_model(name, history, catalogue=catalogue, seed=given.seed, **chosen)
        seconds = round(clock.perf_counter() - began, 3)
        about = {"name": name, "settings": chosen, "seed": given.seed, "seconds": seconds}
        _keep(given.output, source, about, (source.user_rows.size, source.n_items), history=history)

    return train


def _read_settings(name: str, defaults: Mapping[str, Any], changes: tuple[str, ...]) -> dict[str, Any]:
    """What --set says, each value of the type that its default has."""
    settings: dict[str, Any] = {}
    for setting, text in shared_options.assignments("--set", changes, "SETTING=VALUE").items():
        check_choice(f"setting of {name}", setting, defaults)
        default, value = defaults[setting], shared_options.number_or_text(text)
        if default is None:  # a number or a text, such as 604800 or 7d
            settings[setting] = None if text.lower() == "none" else value
        elif isinstance(default, str):
            settings[setting] = text
        elif isinstance(value, str) or (isinstance(default, int) and not isinstance(value, int)):
            what = "a whole number" if isinstance(default, int) else "a number"
            raise click.UsageError(f"--set {setting}={text}: {setting} is {what}, such as {default}.")
        else:
            settings[setting] = type(default)(value)
    return settings


def _keep(
    output: Path, model: Any, about: dict[str, Any], sizes: tuple[int, int], *, history: Interactions
) -> None:
    """Write a model of so many users and items, with what is known about it."""
    from recsys.models.model_files import fingerprint, save_model

    save_model(output, model, about | {"data": fingerprint(history)})
    of = f"{about['name']} of {sizes[0]:,} users and {sizes[1]:,} items"
    note(f"{output}: {of}, trained in {about['seconds']:.1f} s")


def _read_history(files: FileOptions, path: str) -> Interactions:
    """The interactions of a file, but those without a rating."""
    from recsys.benching.bench_plan import read_rated
    from recsys.display.number_words import plural

    reading = {"ids": files.ids, "format": files.form, "encoding": files.encoding}
    history, n_missing = read_rated(path, files.columns("truth") or None, **reading)
    if n_missing:
        note(f"left out: {plural(n_missing, 'row')} without a rating.", head="warning")
    return history


def _read_catalogue(files: FileOptions, path: str | None, history: Interactions) -> list[Any] | None:
    """The ids of all items: those of a table, and those of the history; None without a table."""
    if path is None:
        return None
    from recsys.inputs.files.reader import read_attributes

    kind: Literal["str", "int"] = "int" if "int" in (files.ids, history.items.kind) else "str"
    frame, ids = read_attributes(path, "item", column=files.item, ids=kind, encoding=files.encoding)
    return sorted({*frame[ids].tolist(), *history.items.values[history.codes].tolist()})


@command(
    "ncf",
    argument("file", "FILE"),
    _output_option,
    option(
        "--model", section=INPUT, type=click.Choice(["gmf", "mlp", "neumf", "mf", "biased_mf"]), default="gmf"
    ),
    option("--factors", "Of all but mlp.", INPUT, type=COUNT, default=16),
    option("--layers TEXT", "Widths, the input's first.", default="64,32,16,8"),
    option("--dropout", type=click.FloatRange(0, 0.99), default=0.0),
    option("--epochs", "At most.", type=COUNT, default=20),
    option("--negatives", "Drawn anew for each interaction in every epoch.", type=SEED, default=4),
    option("--batch", type=COUNT, default=4096),
    option("--learning-rate", type=click.FloatRange(min=0, min_open=True), default=3e-3),
    option("--weight-decay", type=click.FloatRange(min=0), default=0.0),
    option("--patience", "Epochs without a better value before stopping.", type=COUNT, default=2),
    option("-m, --metric TEXT", "What stopping looks at.", METRICS, default="ndcg@10"),
    option("--all-epochs", "Train for all --epochs and hold nothing out."),
    option("--device TEXT", "cpu, cuda, mps or auto.", default="auto"),
    shared_options.seed_option,
    option(
        "--test RATING NEGATIVE",
        "Positives and negatives (NCF's files, or tables), evaluated once.",
        INPUT,
        nargs=2,
    ),
    _reading_options,
    shared_options.json_option,
    shared_options.quiet_option,
    short_help="A network: GMF, MLP, NeuMF or matrix factorisation.",
)
def ncf_command(given: Given) -> None:
    """Train a network on the interactions in FILE and keep it in a file.

    Each user's last interaction is set aside to choose the number of epochs; the model is then trained anew
    on everything. FILE is a table with user, item and time, or NCF's .train.rating.
    """
    from recsys.inputs.files import read_ncf_files
    from recsys.models.callbacks import FinalTest
    from recsys.models.network_fitting import fit_network, pairs_and_candidates

    try:
        layers = [int(width) for width in given.layers.split(",")]
    except ValueError:
        raise click.UsageError(
            f"--layers {given.layers} is not a list of widths such as 64,32,16,8."
        ) from None
    shape = {"factors": given.factors, "layers": layers, "dropout": given.dropout}
    training = given.pick(*_TRAINING)

    def note_epoch(part: str, epoch: int, result: Any) -> None:
        values = ", ".join(f"{name} {value:.4f}" for name, value in result.items())
        note(f"{part}, epoch {epoch}: {values} (held out)")

    history = _read_history(given.gather(FileOptions), given.file)
    test = None if given.test is None else read_ncf_files(*given.test)
    pairs, candidates = pairs_and_candidates(history, test)
    if pairs.tied_last() and not given.all_epochs:
        note(f"{pairs.tied_last():,} users have several last items; of these the highest id was held out")
    began = clock.perf_counter()
    with progress_bar("training") as progress:
        model = fit_network(
            given.model,
            pairs,
            shape=shape,
            hold_out=not given.all_epochs,
            on_evaluation=note_epoch,
            progress=progress,
            **given.pick("patience", "metric"),
            **training,
        ).model
    seconds = round(clock.perf_counter() - began, 3)
    settings = {name: value for name, value in shape.items() if name in model.shape} | training
    about = {"name": given.model, "settings": settings, "seconds": seconds}
    _keep(given.output, model, about, (pairs.n_users, pairs.n_items), history=history)
    if candidates is not None:
        show(FinalTest(candidates).evaluate(model), given.shown_as, intervals=None)


train_command.add_command(ncf_command)
