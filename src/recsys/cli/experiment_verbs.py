"""Whole experiments: `recsys demo`, `recsys run`, `recsys study` and `recsys train`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import click

from recsys.cli import shared_options
from recsys.cli.error_messages import in_protocol, note, print_warnings
from recsys.cli.output import check_target, print_json, print_result, progress_bar

_FILE = click.Path(dir_okay=False, path_type=Path)
_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command("demo")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Another world.")
@click.option("-o", "--output", type=_FILE, metavar="FILE", default=Path("recsys-report", "demo.html"),
              show_default=True, help="The report.")  # fmt: skip
@click.option("--no-report", is_flag=True, help="Only the table.")
@shared_options.quiet_option
def demo_command(*, seed: int, output: Path, no_report: bool, quiet: bool) -> None:
    """Compare ALS, BPR, popularity, chance, item similarity and a hybrid; nothing is downloaded."""
    from recsys.cli.demo import showcase
    from recsys.errors import MissingExtraError

    with print_warnings(quiet=quiet):
        result = showcase(seed)
        click.echo(str(result))
        if no_report:
            return
        try:
            written = result.write(output)
        except MissingExtraError as error:
            note(f"no report: {error}")
            return
    click.echo(f"\nreport: {written}")


@click.command("run")
@click.argument("protocol", type=_FILE, metavar="PROTOCOL.toml")
@click.option("-o", "--output", "folder", type=_FOLDER, metavar="FOLDER",
              help="Where results are added; by default where the protocol says.")  # fmt: skip
@click.option("--report", type=_FILE, metavar="FILE", help="Also write the report (.html).")
@click.option("--check", is_flag=True, help="Only check the file and its inputs.")
@click.option("--fingerprints", is_flag=True, help="Only print the [data.sha256] table of its inputs.")
@shared_options.cautions_option
@shared_options.json_option
@shared_options.quiet_option
def run_command(
    *,
    protocol: Path,
    folder: Path | None,
    report: Path | None,
    check: bool,
    fingerprints: bool,
    silenced: tuple[str, ...],
    as_json: bool,
    quiet: bool,
) -> None:
    """Split, evaluate and compare as PROTOCOL.toml says; the same file and data give the same bytes."""
    from recsys.cli.protocol import input_digests, read_protocol, run_protocol

    cautions = shared_options.silenced_cautions(silenced)
    written = read_protocol(protocol)
    if fingerprints:
        digests = input_digests(written, check=False)
        rows = [f'{json.dumps(name, ensure_ascii=False)} = "{digest}"' for name, digest in digests.items()]
        click.echo("\n".join(["[data.sha256]", *rows]))
        return
    if check:
        input_digests(written)
        click.echo(f"{protocol}: {len(written.content['models'])} models, {len(written.requests)} metrics, "
                   "all inputs found.")  # fmt: skip
        return
    with print_warnings(quiet=quiet), in_protocol():
        outcome = run_protocol(
            written, folder=folder, report=report, cautions=cautions, progress=None if quiet else note
        )
    if as_json:
        print_json(outcome.to_json())
    else:
        click.echo(str(outcome))
    if quiet:
        return
    for path in outcome.paths.values():
        note(f"kept {path}")
    if outcome.report is not None:
        note(f"report {outcome.report}")


@click.command("study")
@click.argument("name", required=False)
@click.option(
    "--data", metavar="PATH", help="A MovieLens folder or a table of ratings; by default the demo world."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("-o", "--output", "folder", type=_FOLDER, default=Path("recsys-report"), show_default=True,
              help="Where NAME.md and NAME.png go.")  # fmt: skip
@shared_options.quiet_option
def study_command(*, name: str | None, data: str | None, seed: int, folder: Path, quiet: bool) -> None:
    """Run the study NAME: train small models, print the answer, draw the picture; without NAME list them."""
    from recsys.cli.studies import STUDIES, run_study

    if name is None:
        for known, question in STUDIES.items():
            click.echo(f"{known:<20} {question}")
        return
    with print_warnings(quiet=quiet):
        study = run_study(name, data, seed=seed)
        page, picture = study.save(folder)
    click.echo(str(study))
    if not quiet:
        note(f"written {page} and {picture}")


@click.group("train")
def train_command() -> None:
    """Train a small reference model to evaluate others against."""


@train_command.command("ncf", short_help="GMF, MLP, NeuMF or matrix factorisation, on a file.")
@click.argument("file", metavar="FILE")
@click.option("-o", "--out", required=True, type=_FILE, metavar="FILE",
              help="Where the model goes: .safetensors or .npz.")  # fmt: skip
@click.option("--model", "kind", type=click.Choice(["gmf", "mlp", "neumf", "mf", "biased_mf"]), default="gmf",
              show_default=True)  # fmt: skip
@click.option("--factors", type=click.IntRange(min=1), default=16, show_default=True, help="Of all but mlp.")
@click.option("--layers", default="64,32,16,8", show_default=True, help="Widths, the input's first.")
@click.option("--dropout", type=click.FloatRange(0, 0.99), default=0.0, show_default=True)
@click.option("--epochs", type=click.IntRange(min=1), default=20, show_default=True, help="At most.")
@click.option("--negatives", type=click.IntRange(min=0), default=4, show_default=True,
              help="Drawn anew for each interaction in every epoch.")  # fmt: skip
@click.option("--batch", type=click.IntRange(min=1), default=4096, show_default=True)
@click.option("--learning-rate", type=click.FloatRange(min=0, min_open=True), default=3e-3, show_default=True)
@click.option("--weight-decay", type=click.FloatRange(min=0), default=0.0, show_default=True)
@click.option("--patience", type=click.IntRange(min=1), default=2, show_default=True,
              help="Epochs without a better value before stopping.")  # fmt: skip
@click.option("-m", "--metric", default="ndcg@10", show_default=True, help="What stopping looks at.")
@click.option("--all-epochs", is_flag=True, help="Train for all --epochs and hold nothing out.")
@click.option("--device", default="auto", show_default=True, help="cpu, cuda, mps or auto.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--test", nargs=2, metavar="RATING NEGATIVE", default=None,
              help="Positives and negatives (NCF's files, or tables), evaluated once.")  # fmt: skip
@shared_options.column_option("user", "users")
@shared_options.column_option("item", "items")
@shared_options.column_option("time", "times")
@click.option("--ids", type=click.Choice(["str", "int", "auto"]),
              help="Read ids as text, as whole numbers, or as the file stores them (auto); by default text "
                   "becomes numbers if every id is one.")  # fmt: skip
@shared_options.json_option
@shared_options.quiet_option
def ncf_command(
    *,
    file: str,
    out: Path,
    kind: str,
    factors: int,
    layers: str,
    dropout: float,
    epochs: int,
    negatives: int,
    batch: int,
    learning_rate: float,
    weight_decay: float,
    patience: int,
    metric: str,
    all_epochs: bool,
    device: str,
    seed: int,
    test: tuple[str, str] | None,
    user: str | None,
    item: str | None,
    time: str | None,
    ids: Literal["str", "int", "auto"] | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Train a model on the interactions in FILE and keep it in a file.

    Each user's last interaction is set aside to choose the number of epochs; the model is then trained anew
    on everything. FILE is a table with user, item and time, or NCF's .train.rating.
    """
    from recsys.models import NeuMF, network, save_model, train
    from recsys.models.callbacks import FinalTest, Fitted, fit

    if out.suffix not in (".safetensors", ".npz"):
        raise click.UsageError(f"--out {out}: the name must end in .safetensors or .npz.")
    check_target(out, "out", inputs=(file, *(test or ())))
    try:
        deep: dict[str, Any] = {"layers": [int(width) for width in layers.split(",")], "dropout": dropout}
    except ValueError:
        raise click.UsageError(f"--layers {layers} is not a list of widths such as 64,32,16,8.") from None
    shapes: dict[str, dict[str, Any]] = {"mlp": deep, "neumf": {"factors": factors, **deep}}
    training: dict[str, Any] = {
        "epochs": epochs, "batch": batch, "negatives": negatives, "learning_rate": learning_rate,
        "weight_decay": weight_decay, "device": device, "seed": seed,
    }  # fmt: skip

    def fit_network(part: str, make: Callable[[str], Any]) -> Any:
        def note_epoch(epoch: int, result: Any) -> None:
            values = ", ".join(f"{name} {value:.4f}" for name, value in result.items())
            note(f"{part}, epoch {epoch}: {values} (held out)")

        with progress_bar(f"training {part}", quiet=quiet) as bar:
            if all_epochs:
                model = make("final")
                return Fitted(model, model, None, train(model, pairs, progress=bar, **training))
            return fit(
                make, pairs, patience=patience, metric=metric, progress=bar,
                told=None if quiet else note_epoch, **training,
            )  # fmt: skip

    def fit_new(part: str) -> Any:
        shape = shapes.get(part, {"factors": factors})
        return fit_network(part, lambda _: network(part, pairs.n_users, pairs.n_items, seed=seed, **shape))

    with print_warnings(quiet=quiet):
        pairs, candidates = _read_pairs(file, test, {"user": user, "item": item, "time": time}, ids)
        if pairs.tied_last() and not all_epochs and not quiet:
            note(f"{pairs.tied_last():,} users have several last items; of these the highest id was held out")
        if kind == "neumf":  # it starts from a GMF and an MLP, and needs smaller steps from there on
            parts = [fit_new("gmf"), fit_new("mlp")]
            training["learning_rate"] /= 6
            attribute = {"tuned": "tuned", "final": "model"}
            fitted = fit_network(
                kind, lambda stage: NeuMF.of(*(getattr(part, attribute[stage]) for part in parts))
            )
        else:
            fitted = fit_new(kind)
        save_model(fitted.model, out, user_ids=pairs.user_ids, item_ids=pairs.item_ids)
        result = None if candidates is None else FinalTest(candidates).evaluate(fitted.model)
    if not quiet:
        note(f"{out}: {kind} of {pairs.n_users:,} users and {pairs.n_items:,} items")
    if result is not None:
        print_result(result, as_json=as_json, as_csv=False, quiet=quiet)


def _read_pairs(
    path: str,
    test_files: tuple[str, str] | None,
    columns: dict[str, str | None],
    ids: Literal["str", "int", "auto"] | None,
) -> tuple[Any, Any]:
    """The training pairs, and the test cases as rows of the same tables."""
    import numpy as np

    from recsys.evaluation.candidates import Candidates
    from recsys.inputs import read_interactions
    from recsys.inputs.files import read_ncf_files
    from recsys.inputs.files.ncf import has_no_header, read_pairs
    from recsys.inputs.files.reader import read_table
    from recsys.inputs.timestamps import to_seconds
    from recsys.models import Pairs

    users: Any
    if has_no_header(path):
        users, items, _, order = read_pairs(path)
    else:
        named = {role: name for role, name in columns.items() if name is not None}
        frame, _ = read_table(path, columns=named or None, ids=ids)
        interactions = read_interactions(frame, columns=named or None, table=path)
        pairs = Pairs.from_interactions(interactions)
        users, items = interactions.cases.values[pairs.users], interactions.items.values[pairs.items]
        order = None if pairs.order is None else to_seconds(pairs.order)
    if test_files is None:
        return Pairs.of_ids(users, items, order=order), None
    test = read_ncf_files(*test_files)
    negatives = list(test.negatives)
    test_items = np.concatenate([test.items, *negatives])
    pairs = Pairs.of_ids(users, items, order=order, more_users=test.users, more_items=test_items)
    rows = [pairs.rows_of(row, "items") for row in negatives]
    return pairs, Candidates.of(pairs.rows_of(test.users, "users"), pairs.rows_of(test.items, "items"), rows)
