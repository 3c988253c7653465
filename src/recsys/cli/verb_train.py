"""`recsys train ncf`: interactions in, a model file out, the number of epochs chosen on held-out items."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from recsys.cli import shared_options
from recsys.cli.error_messages import note, print_warnings
from recsys.cli.output import print_result, progress_bar


@click.group("train")
def command() -> None:
    """Train a small reference model to evaluate others against."""


@command.command("ncf", short_help="GMF, MLP, NeuMF or matrix factorisation, on a file.")
@click.argument("file", metavar="FILE")
@click.option("-o", "--out", required=True, type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Where the model goes: .safetensors or .npz.")  # fmt: skip
@click.option("--model", type=click.Choice(["gmf", "mlp", "neumf", "mf", "biased_mf"]), default="gmf",
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
@click.option("--user", metavar="COLUMN", help="Column of the users.")
@click.option("--item", metavar="COLUMN", help="Column of the items.")
@click.option("--time", metavar="COLUMN", help="Column of the times.")
@click.option("--ids", type=click.Choice(["str", "int", "auto"]), default="auto", show_default=True,
              help="Read ids as text or as whole numbers.")  # fmt: skip
@shared_options.json_option
@shared_options.quiet_option
def ncf(**options: Any) -> None:
    """Train a model on the interactions in FILE and keep it in a file.

    Each user's last interaction is set aside to choose the number of epochs; the model is then trained anew
    on everything. FILE is a table with user, item and time, or NCF's .train.rating.
    """
    from recsys.models import save_model
    from recsys.models.callbacks import FinalTest

    _check_target(options)
    with print_warnings(quiet=options["quiet"]):
        pairs, test = _read_data(options)
        if pairs.tied_last() and not options["all_epochs"] and not options["quiet"]:
            note(f"{pairs.tied_last():,} users have several last items; of these the highest id was held out")
        fitted = _train(options, pairs)
        save_model(fitted.model, options["out"], user_ids=pairs.user_ids, item_ids=pairs.item_ids)
        result = None if test is None else FinalTest(test).evaluate(fitted.model)
    if not options["quiet"]:
        note(f"{options['out']}: {options['model']} of {pairs.n_users:,} users and {pairs.n_items:,} items")
    if result is not None:
        print_result(result, as_json=options["as_json"], as_csv=False)


def _check_target(options: dict[str, Any]) -> None:
    """Refuse a file that cannot be written, before the model is trained."""
    target: Path = options["out"]
    if target.suffix not in (".safetensors", ".npz"):
        raise click.UsageError(f"--out {target}: the name must end in .safetensors or .npz.")
    if not target.parent.is_dir():
        raise click.UsageError(f"--out {target}: there is no folder {target.parent}.")
    inputs = [options["file"], *(options["test"] or ())]
    if target.resolve() in [Path(path).resolve() for path in inputs]:
        raise click.UsageError(f"--out {target} would overwrite an input file.")


def _read_data(options: dict[str, Any]) -> tuple[Any, Any]:
    """The training pairs, and the test cases as rows of the same tables."""
    from recsys.evaluation.candidates import Candidates
    from recsys.inputs.files import read_file, read_ncf_files
    from recsys.inputs.files.ncf import has_no_header, read_pairs
    from recsys.inputs.timestamps import to_seconds
    from recsys.models import Pairs

    columns = {role: options[role] for role in ("user", "item", "time") if options[role] is not None}
    users: Any
    if has_no_header(options["file"]):
        users, items, _, order = read_pairs(options["file"])
    else:
        interactions = read_file(options["file"], "truth", columns=columns or None, ids=options["ids"])
        pairs = Pairs.from_interactions(interactions)
        users, items = interactions.cases.values[pairs.users], interactions.items.values[pairs.items]
        order = None if pairs.order is None else to_seconds(pairs.order)
    if options["test"] is None:
        return Pairs.of_ids(users, items, order=order), None
    test = read_ncf_files(*options["test"])
    negatives = list(test.negatives)
    test_items = np.concatenate([test.items, *negatives])
    pairs = Pairs.of_ids(users, items, order=order, more_users=test.users, more_items=test_items)
    rows = [pairs.rows_of(row, "items") for row in negatives]
    return pairs, Candidates.of(pairs.rows_of(test.users, "users"), pairs.rows_of(test.items, "items"), rows)


def _train(options: dict[str, Any], pairs: Any) -> Any:
    """The fitted model; NeuMF starts from a GMF and an MLP that are trained first."""
    from recsys.models import NeuMF, network, train
    from recsys.models.callbacks import Fitted, fit

    training = {name: options[name] for name in ("batch", "negatives", "learning_rate", "weight_decay")}
    training |= {"device": options["device"], "seed": options["seed"], "epochs": options["epochs"]}
    shape = {"factors": options["factors"]}
    deep = {"layers": _parse_layers(options["layers"]), "dropout": options["dropout"]}
    shapes = {"mlp": deep, "neumf": shape | deep}

    def build(kind: str) -> Any:
        return network(kind, pairs.n_users, pairs.n_items, seed=options["seed"], **shapes.get(kind, shape))

    def fit_network(kind: str, make: Any) -> Any:
        def note_epoch(epoch: int, result: Any) -> None:
            values = ", ".join(f"{name} {value:.4f}" for name, value in result.items())
            note(f"{kind}, epoch {epoch}: {values} (held out)")

        with progress_bar(f"training {kind}", quiet=options["quiet"]) as bar:
            if options["all_epochs"]:
                model = make("final")
                return Fitted(model, model, None, train(model, pairs, progress=bar, **training))
            return fit(
                make, pairs, patience=options["patience"], metric=options["metric"], progress=bar,
                told=None if options["quiet"] else note_epoch, **training,
            )  # fmt: skip

    kind = options["model"]
    if kind != "neumf":
        return fit_network(kind, lambda _: build(kind))
    parts = {part: fit_network(part, lambda _, part=part: build(part)) for part in ("gmf", "mlp")}
    # Pre-trained parts need smaller steps from there on.
    training["learning_rate"] /= 6
    attribute_of_stage = {"tuned": "tuned", "final": "model"}
    return fit_network(
        kind, lambda stage: NeuMF.of(*(getattr(parts[p], attribute_of_stage[stage]) for p in ("gmf", "mlp")))
    )


def _parse_layers(text: str) -> list[int]:
    try:
        return [int(width) for width in text.split(",")]
    except ValueError:
        raise click.UsageError(f"--layers {text} is not a list of widths such as 64,32,16,8.") from None
