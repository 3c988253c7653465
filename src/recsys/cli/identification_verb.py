"""`recsys identify`: which conventions an evaluator, in any language, follows."""

from __future__ import annotations

import json
import sys

import click

from recsys.cli import shared_options
from recsys.cli.error_messages import FAILED, note
from recsys.cli.output import check_target, print_page
from recsys.cli.verb_options import METRICS, Given, argument, command, option


@command(
    "identify",
    argument("command", "[COMMAND …]", nargs=-1),
    option("-m, --metric TEXT", "What it computes, without @k.", METRICS, default="ndcg"),
    option(
        "--probes FILE",
        "Write the questions, one per line as JSON, to be answered elsewhere.",
        type=shared_options.FILE,
    ),
    option(
        "--answers FILE",
        "Read answers given elsewhere: the same lines, each with a value.",
        type=shared_options.FILE,
    ),
    option(
        "--tolerance",
        "The largest difference; by default 1e-6, or half of the last decimal given.",
        type=click.FloatRange(min=0, min_open=True),
    ),
    option(
        "--timeout SECONDS",
        "How long COMMAND may take.",
        type=click.FloatRange(min=0, min_open=True),
        default=60.0,
    ),
    shared_options.json_option,
    shared_options.quiet_option,
)
def identify_command(given: Given) -> None:
    """Say which decisions and presets the evaluator COMMAND follows; exit with 1 if nothing known fits.

    COMMAND reads one question per line as JSON, {"run": {user: [[item, score], …]}, "truth": {user: {item:
    grade}}, "k": 3}, and prints {"value": …} for each, one number or one per user:
    recsys identify -m ndcg -- node evaluator.mjs
    """
    from recsys.comparison.identify import identify, probe_lines
    from recsys.inputs.files import write_text

    if sum((bool(given.command), given.probes is not None, given.answers is not None)) != 1:
        raise click.UsageError("Name a COMMAND, or --probes FILE to write questions, or --answers FILE.")
    if given.probes is not None:
        check_target(given.probes, "probes")
        lines = probe_lines(given.metric)
        write_text(given.probes, "".join(json.dumps(line) + "\n" for line in lines))
        if not given.quiet:
            note(
                f"{given.probes}: {len(lines)} questions about {given.metric}. Add a value to each line; "
                f"then: recsys identify -m '{given.metric}' --answers {given.probes}",
                head="note",
            )
        return
    words = given.command[0] if len(given.command) == 1 else list(given.command)
    found = identify(
        None if given.answers is not None else words,
        given.metric,
        answers=given.answers,
        tolerance=given.tolerance,
        timeout=given.timeout,
    )
    print_page(found, as_json=given.json)
    if not found:
        sys.exit(FAILED)
