"""`recsys demo`: six models on the demo world, a table in the terminal and the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from recsys.cli import shared_options
from recsys.cli.error_messages import note, print_warnings


@click.command("demo")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Another world.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              default=Path("recsys-report", "demo.html"), show_default=True, help="The report.")  # fmt: skip
@click.option("--no-report", is_flag=True, help="Only the table.")
@shared_options.quiet_option
def command(**options: Any) -> None:
    """Compare ALS, BPR, popularity, chance, item similarity and a hybrid; nothing is downloaded."""
    from recsys.cli.showcase import showcase
    from recsys.errors import MissingExtraError

    with print_warnings(quiet=options["quiet"]):
        result = showcase(options["seed"])
        click.echo(str(result))
        if options["no_report"]:
            return
        try:
            written = result.write(options["output"])
        except MissingExtraError as error:
            note(f"no report: {error}")
            return
    click.echo(f"\nreport: {written}")
