"""`recsys report`: results (or lists and their truth) to one HTML page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from recsys.cli import shared_options
from recsys.cli.error_messages import print_warnings
from recsys.errors import FileError
from recsys.inputs.frames import ROLES

_INPUTS = ("truth", "train", "items", "embeddings", "audit", "seen")
_DEFAULT_OUTPUT = Path("recsys-report") / "report.html"


@click.command("report")
@click.argument("files", nargs=-1, required=True, metavar="RESULT…")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              default=_DEFAULT_OUTPUT, show_default=True, help="Where to write it.")  # fmt: skip
@click.option(
    "--baseline", metavar="NAME", help="The model the others are compared with; by default the first."
)
@click.option("--headline", metavar="METRIC", help="The metric the page opens with.")
@click.option("--title", help="The page's heading.")
@click.option("--name", "names", multiple=True, help="What a file's model is called, in the files' order.")
@click.option("--truth", metavar="FILE", help="What was relevant: needed for lists, optional for results.")
@click.option("--train", metavar="FILE", help="What the models learnt from, for groups of users and items.")
@click.option("--items", metavar="FILE", help="Table of the items: titles (and categories).")
@click.option(
    "--embeddings", metavar="FILE", help="One vector per item, in the order of --items: .npy, .npz, …"
)
@click.option("--audit", metavar="FILE", help="What `recsys audit --json` printed.")
@click.option("--history", metavar="FOLDER", help="Results kept over time by `recsys run`.")
@shared_options.metric_options
@shared_options.file_options
@shared_options.data_options
@shared_options.quiet_option
def command(**options: Any) -> None:
    """Write a page about RESULT…: saved results (.json), or list files with --truth. Prints its path.

    recsys report als.json bpr.json --baseline als --items items.csv
    """
    from recsys.cli.output import check_target
    from recsys.cli.verb_compare import evaluate_files
    from recsys.comparison.history import history
    from recsys.report import write_report

    paths = shared_options.paths_by_model(options["files"], options["names"])
    baseline = options["baseline"]
    if baseline is not None and baseline not in paths:
        baseline = {path: name for name, path in paths.items()}.get(baseline, baseline)
    inputs = (*options["files"], *(options[name] for name in _INPUTS))
    check_target(options["output"], "output", inputs=inputs, makes_folder=True)
    with print_warnings(quiet=options["quiet"]):
        results, lists = evaluate_files(paths, options)
        # With lists these files were read above, and their notes were printed then.
        quiet = options | {"quiet": options["quiet"] or bool(lists)}
        page = write_report(
            options["output"],
            results,
            baseline=baseline,
            metric=options["headline"],
            title=options["title"],
            lists=lists or None,
            truth=None if options["truth"] is None else shared_options.read(options["truth"], "truth", quiet),
            train=None if options["train"] is None else shared_options.read(options["train"], "truth", quiet),
            items=None if options["items"] is None else item_table(options["items"], options),
            embeddings=None if options["embeddings"] is None else _read_embeddings(options["embeddings"]),
            audit=None if options["audit"] is None else _read_audit(options["audit"]),
            history=None if options["history"] is None else history(options["history"]),
        )
    click.echo(str(page))


def item_table(path: str, options: dict[str, Any]) -> Any:
    """A table of items; ids are text by default, as in all files."""
    import pandas as pd

    frame = shared_options.read_cells(path, options["encoding"])
    if options["ids"] == "str":
        return frame.astype(str)
    id_column = next((name for name in frame.columns if name.lower().replace("_", "") in ROLES["item"]), None)
    if id_column is not None and pd.to_numeric(frame[id_column], errors="coerce").notna().all():
        frame[id_column] = pd.to_numeric(frame[id_column])
    return frame


def _read_embeddings(path: str) -> Any:
    from recsys.inputs.files.matrices import read_arrays

    matrices = [array for array in read_arrays(path).values() if array.ndim == 2]
    if len(matrices) != 1:
        raise FileError(
            f"{path} holds {len(matrices)} matrices, expected one.", hint="Save the embeddings alone."
        )
    return matrices[0]


def _read_audit(path: str) -> Any:
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FileError(f"{path} is not what recsys audit --json prints ({error}).") from error
