"""`recsys history`: a metric over nights, with intervals and the nights on which it moved."""

from __future__ import annotations

from typing import Any

import click

from recsys.cli import shared_options
from recsys.cli.error_messages import note


@click.command("history")
@click.argument("folder", metavar="FOLDER", default="results")
@click.option("-m", "--metric", "metrics", multiple=True, help="Such as ndcg@10; repeatable; by default all.")
@click.option("--name", metavar="MODEL", help="One model only.")
@shared_options.json_option
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV, with all digits.")
def command(**options: Any) -> None:
    """Show the results of FOLDER (by default ./results), oldest first; new levels are marked."""
    from recsys.comparison.history import history

    if options["as_json"] and options["as_csv"]:
        raise click.UsageError("--json and --csv exclude each other.")
    nights = history(options["folder"], list(options["metrics"]) or None, name=options["name"])
    if options["as_json"]:
        click.echo(nights.to_json())
    elif options["as_csv"]:
        click.echo(nights.to_frame().to_csv(index=False), nl=False)
        for message in nights.skipped:
            note(f"skipped: {message}", head="warning")
    else:
        click.echo(str(nights))
