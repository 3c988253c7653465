"""`recsys study`: one of the five studies, answered on your data or on the demo world."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from recsys.cli import shared_options
from recsys.cli.error_messages import note, print_warnings


@click.command("study")
@click.argument("name", required=False)
@click.option(
    "--data", metavar="PATH", help="A MovieLens folder or a table of ratings; by default the demo world."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("-o", "--output", "folder", type=click.Path(file_okay=False, path_type=Path),
              default=Path("recsys-report"), show_default=True,
              help="Where NAME.md and NAME.png go.")  # fmt: skip
@shared_options.quiet_option
def command(**options: Any) -> None:
    """Run the study NAME: train small models, print the answer, draw the picture; without NAME list them."""
    from recsys.cli.studies import STUDIES, run_study

    if options["name"] is None:
        for name, question in STUDIES.items():
            click.echo(f"{name:<20} {question}")
        return
    with print_warnings(quiet=options["quiet"]):
        study = run_study(options["name"], options["data"], seed=options["seed"])
        page, picture = study.save(options["folder"])
    click.echo(str(study))
    if not options["quiet"]:
        note(f"written {page} and {picture}")
