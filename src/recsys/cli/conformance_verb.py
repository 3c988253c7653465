"""`recsys conform`: score an evaluator, in any language, against the test vectors of the standard."""

from __future__ import annotations

import json
import sys

import click

from recsys.cli import shared_options
from recsys.cli.error_messages import FAILED
from recsys.cli.option_sections import VerbCommand
from recsys.cli.output import print_page


@click.command("conform", cls=VerbCommand)
@click.argument("command", nargs=-1, metavar="[COMMAND …]")
@click.option(
    "-m", "--metric", "metrics", multiple=True, help="Such as ndcg, without @k; repeatable; all by default."
)
@click.option("--decision", "decisions", multiple=True, metavar="NAME",
              help="A decision it knows, such as gain; repeatable. By default all.")  # fmt: skip
@click.option("--default-only", is_flag=True, help="It knows the default of every decision and nothing else.")
@click.option("--tolerance", type=click.FloatRange(min=0), help="The largest relative difference; 1e-12.")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), default=60.0, show_default=True,
              metavar="SECONDS", help="How long it may take.")  # fmt: skip
@click.option("--vectors", is_flag=True, help="Print the questions and their answers as JSON lines instead.")
@shared_options.json_option
def conform_command(
    *,
    command: tuple[str, ...],
    metrics: tuple[str, ...],
    decisions: tuple[str, ...],
    default_only: bool,
    tolerance: float | None,
    timeout: float,
    vectors: bool,
    as_json: bool,
) -> None:
    """Exit with 0 if COMMAND gives the numbers of the standard, else with 1.

    COMMAND reads one question per line, as JSON, and prints {"value": …} for each:
    recsys conform -m ndcg -m recall -- node evaluator.mjs
    """
    from recsys.comparison.conformance import ask_for, conform
    from recsys.comparison.standard import TOLERANCE

    if default_only and decisions:
        raise click.UsageError("--default-only and --decision exclude each other.")
    if vectors == bool(command):
        raise click.UsageError("Name a COMMAND, or ask for --vectors.")
    known = () if default_only else decisions or None
    if not command:
        for vector in ask_for(metrics or None, known):
            click.echo(json.dumps({**vector.question(), "expected": vector.expected}))
        return
    result = conform(
        command[0] if len(command) == 1 else list(command),
        metrics or None,
        decisions=known,
        tolerance=TOLERANCE if tolerance is None else tolerance,
        timeout=timeout,
    )
    print_page(result, as_json=as_json)
    if not result:
        sys.exit(FAILED)
