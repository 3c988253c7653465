"""`recsys explain`: which decisions differ between two presets or results, and what each does to a number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from recsys.cli import shared_options
from recsys.cli.error_messages import print_warnings


@click.command("explain")
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option("--lists", metavar="FILE", help="Try each decision on these lists …")
@click.option("--truth", metavar="FILE", help="… against this truth.")
@shared_options.metric_options
@shared_options.file_options
@shared_options.quiet_option
def command(**options: Any) -> None:
    """Explain the difference between A and B: names of conventions, or saved results (.json).

    With --lists and --truth each decision is switched in turn on that data, so the steps add up to the whole:
    recsys explain default rectools --lists als.csv --truth test.csv -m ndcg@10
    """
    from recsys.comparison.explain import explain

    if (options["lists"] is None) != (options["truth"] is None):
        raise click.UsageError("--lists and --truth go together.")
    sides = [_conventions_or_result(options[name]) for name in ("first", "second")]
    data: dict[str, Any] = {}
    if options["lists"] is not None:
        data = {
            "lists": shared_options.read(options["lists"], "lists", options),
            "truth": shared_options.read(options["truth"], "truth", options),
            "metrics": shared_options.metric_requests(options),
        }
    with print_warnings(quiet=options["quiet"]):
        click.echo(str(explain(*sides, **data)))


def _conventions_or_result(text: str) -> Any:
    """The result in a file, or the name of conventions; whatever has a suffix is taken as a file."""
    if shared_options.is_result(text) or Path(text).suffix or Path(text).exists():
        from recsys.evaluation.results import load

        return load(text)
    return text
