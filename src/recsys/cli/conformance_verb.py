"""`recsys conform`: score an evaluator, in any language, against the test vectors of the standard."""

from __future__ import annotations

import json
import sys

import click

from recsys.cli import shared_options
from recsys.cli.error_messages import FAILED
from recsys.cli.output import print_page
from recsys.cli.verb_options import METRICS, Given, argument, command, option


@command(
    "conform",
    argument("command", "[COMMAND …]", nargs=-1),
    option(
        "-m, --metric TEXT ...",
        "Such as ndcg, without @k; repeatable; all by default.",
        METRICS,
        name="metrics",
    ),
    option("--decision NAME ...", "A decision it knows, such as gain; repeatable. By default all."),
    option("--default-only", "It knows the default of every decision and nothing else."),
    option("--tolerance", "The largest relative difference; 1e-12.", type=click.FloatRange(min=0)),
    option(
        "--timeout SECONDS",
        "How long it may take.",
        type=click.FloatRange(min=0, min_open=True),
        default=60.0,
    ),
    option("--vectors", "Print the questions and their answers as JSON lines instead."),
    shared_options.json_option,
)
def conform_command(given: Given) -> None:
    """Exit with 0 if COMMAND gives the numbers of the standard, else with 1.

    COMMAND reads one question per line, as JSON, and prints {"value": …} for each:
    recsys conform -m ndcg -m recall -- node evaluator.mjs
    """
    from recsys.comparison.conformance import ask_for, conform
    from recsys.comparison.standard import TOLERANCE

    if given.default_only and given.decision:
        raise click.UsageError("--default-only and --decision exclude each other.")
    if given.vectors == bool(given.command):
        raise click.UsageError("Name a COMMAND, or ask for --vectors.")
    known = () if given.default_only else given.decision or None
    if not given.command:
        for vector in ask_for(given.metrics or None, known):
            click.echo(json.dumps({**vector.question(), "expected": vector.expected}))
        return
    result = conform(
        given.command[0] if len(given.command) == 1 else list(given.command),
        given.metrics or None,
        decisions=known,
        tolerance=TOLERANCE if given.tolerance is None else given.tolerance,
        timeout=given.timeout,
    )
    print_page(result, as_json=given.json)
    if not result:
        sys.exit(FAILED)
