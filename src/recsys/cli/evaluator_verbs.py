"""Verbs about evaluators in any language: `recsys identify` and `recsys conform`."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from recsys.cli import shared_options
from recsys.cli.error_messages import FAILED, note
from recsys.cli.output import show
from recsys.cli.verb_options import METRICS, NEW_FILE, POSITIVE, Given, argument, command, option

_command_argument = argument("command", "[COMMAND …]", nargs=-1)
_timeout_option = option("--timeout SECONDS", "How long COMMAND may take.", type=POSITIVE, default=60.0)


@command(
    "identify",
    _command_argument,
    option("-m, --metric TEXT", "What it computes, without @k.", METRICS, default="ndcg"),
    option(
        "--probes FILE",
        "Write the questions, one per line as JSON, to be answered elsewhere.",
        type=NEW_FILE,
    ),
    option("--answers FILE", "Read answers given elsewhere: the same lines, each with a value."),
    option(
        "--tolerance",
        "The largest difference; by default 1e-6, or half of the last decimal given.",
        type=POSITIVE,
    ),
    _timeout_option,
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
        lines = probe_lines(given.metric)
        write_text(given.probes, "".join(json.dumps(line) + "\n" for line in lines))
        note(
            f"{given.probes}: {len(lines)} questions about {given.metric}. Add a value to each line; "
            f"then: recsys identify -m '{given.metric}' --answers {given.probes}"
        )
        return
    options = given.pick("answers", "tolerance", "timeout")
    found = identify(_words(given), given.metric, **options)
    show(found, given.shown_as)
    if not found:
        sys.exit(FAILED)


def _words(given: Given) -> Any:
    """COMMAND, as one text or as its words; None if there is none."""
    return given.command[0] if len(given.command) == 1 else list(given.command) or None


@command(
    "conform",
    _command_argument,
    shared_options.metrics_option("Such as ndcg, without @k; repeatable; all by default."),
    option("--decision NAME ...", "A decision it knows, such as gain; repeatable. By default all."),
    option("--default-only", "It knows the default of every decision and nothing else."),
    option("--tolerance", "The largest relative difference; 1e-12.", type=click.FloatRange(min=0)),
    _timeout_option,
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
    if given.vectors:
        for vector in ask_for(given.metrics or None, known):
            click.echo(json.dumps({**vector.question(), "expected": vector.expected}))
        return
    tolerance = TOLERANCE if given.tolerance is None else given.tolerance
    result = conform(
        _words(given), given.metrics or None, decisions=known, tolerance=tolerance, timeout=given.timeout
    )
    show(result, given.shown_as)
    if not result:
        sys.exit(FAILED)
